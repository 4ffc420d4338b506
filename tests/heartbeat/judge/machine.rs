//! The machine that agent and watchdog run on: when it was suspended, and when it was started.

use crate::judge::lies::Lie;

#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// From when to when it was suspended.
    pub sleeps: Vec<(i64, i64)>,
    /// When it was started, after the first time.
    pub boots: Vec<i64>,
}

impl Machine {
    /// The seconds for which it has been suspended so far.
    pub fn slept(&self, now: i64) -> i64 {
        self.sleeps.iter().filter(|(_, to)| *to <= now).map(|(from, to)| to - from).sum()
    }

    /// How often it has been started so far.
    pub fn boot(&self, now: i64) -> usize {
        1 + self.boots.iter().filter(|boot| **boot <= now).count()
    }

    /// The seconds that count against an agent: not before the last boot, and not while the machine was suspended.
    pub fn elapsed(&self, from: i64, now: i64, lie: Option<Lie>) -> i64 {
        let boots = self.boots.iter().copied().filter(|boot| *boot <= now && lie != Some(Lie::BootIgnored));
        let from = boots.fold(from, i64::max);
        let sleeps = self.sleeps.iter().filter(|_| lie != Some(Lie::SleepCounts));
        let suspended: i64 = sleeps.map(|(begin, end)| (now.min(*end) - from.max(*begin)).max(0)).sum();
        (now - from - suspended).max(0)
    }
}
