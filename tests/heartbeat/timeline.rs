//! A timeline: what happens in which second, and when the watchdog looks.

use crate::clock::time;
use crate::dice::Dice;
use crate::judge::Judge;
use crate::judge::expected::Expected;
use crate::judge::lies::Lie;
use crate::judge::machine::Machine;
use crate::tree::{Deed, Tree};
use crate::zone::Zone;

#[derive(Clone, Debug)]
pub struct Timeline {
    pub class: &'static str,
    pub seed: u64,
    pub zone: Zone,
    pub start: i64,
    pub end: i64,
    /// In order of time. A tick in the same second comes after them.
    pub deeds: Vec<(i64, Deed)>,
    /// Seconds in which every schedule has a tick.
    pub probes: Vec<i64>,
    /// Times without any tick.
    pub outages: Vec<(i64, i64)>,
    pub machine: Machine,
    pub strict_max: i64,
}

/// How the watchdog is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    EveryMinute,
    EveryFiveMinutes,
    /// A loop that is sometimes late.
    Loop,
}

pub const SCHEDULES: [Schedule; 3] = [Schedule::EveryMinute, Schedule::EveryFiveMinutes, Schedule::Loop];

impl Schedule {
    pub fn name(self) -> &'static str {
        match self {
            Schedule::EveryMinute => "ticks every 60 s",
            Schedule::EveryFiveMinutes => "ticks every 300 s",
            Schedule::Loop => "an irregular loop",
        }
    }
}

impl Timeline {
    /// The seconds of the ticks.
    pub fn ticks(&self, schedule: Schedule) -> Vec<i64> {
        let mut dice = Dice::new(self.seed ^ 0x10_0b);
        let mut gap = || match schedule {
            Schedule::EveryMinute => 60,
            Schedule::EveryFiveMinutes => 300,
            Schedule::Loop if dice.one_in(8) => 150 + dice.below(250) as i64,
            Schedule::Loop => 58 + dice.below(70) as i64,
        };
        let mut ticks: Vec<i64> =
            std::iter::successors(Some(self.start), |at| Some(at + gap())).take_while(|at| *at <= self.end).collect();
        let is_off = |at: i64| self.outages.iter().chain(&self.machine.sleeps).any(|(from, to)| *from < at && at < *to);
        ticks.retain(|at| !is_off(*at));
        ticks.extend(self.probes.iter().filter(|at| !is_off(**at)));
        // What happened between two looks at a machine that was suspended cannot be told apart, so it is looked at then.
        ticks.extend(self.machine.sleeps.iter().flat_map(|(from, to)| [from, to]));
        ticks.extend(&self.machine.boots);
        ticks.retain(|at| (self.start..=self.end).contains(at));
        ticks.sort_unstable();
        ticks.dedup();
        ticks
    }

    /// Whether every schedule needs a tick in this second.
    pub fn is_forced(&self, at: i64) -> bool {
        let machine = &self.machine;
        let sleeps = machine.sleeps.iter().any(|(from, to)| *from == at || *to == at);
        sleeps || machine.boots.contains(&at) || self.probes.contains(&at)
    }

    pub fn judge(&self, lie: Option<Lie>) -> Judge<'_> {
        Judge::new(self.zone, &self.machine, self.strict_max, lie)
    }

    /// What a judge, or a liar, says at every tick.
    pub fn verdicts(&self, schedule: Schedule, lie: Option<Lie>) -> Vec<(i64, Expected)> {
        let (mut judge, mut tree, mut next) = (self.judge(lie), Tree::new(), 0);
        let look = |now: i64| {
            for (_, deed) in self.deeds[next..].iter().take_while(|(at, _)| *at <= now) {
                next += 1;
                deed.apply(&mut tree);
                if *deed == Deed::Forget {
                    judge.forget();
                }
            }
            (now, judge.look(&mut tree, now))
        };
        self.ticks(schedule).into_iter().map(look).collect()
    }

    /// Why the rules do not decide everything that happens here.
    pub fn unsure(&self) -> Option<&'static str> {
        SCHEDULES.iter().find_map(|schedule| self.verdicts(*schedule, None).iter().find_map(|(_, said)| said.unsure))
    }

    /// Whether two schedules may see this differently for more than a tick.
    pub fn depends_on_ticks(&self) -> bool {
        SCHEDULES.iter().any(|schedule| self.verdicts(*schedule, None).iter().any(|(_, said)| said.depends_on_ticks))
    }

    /// What happened until a time, one deed a line.
    pub fn story(&self, until: i64) -> String {
        let mut lines = vec![format!("starts at {} in {}", time(self.start), self.zone.name())];
        lines.extend(
            self.machine.sleeps.iter().map(|(from, to)| format!("suspended from {} to {}", time(*from), time(*to))),
        );
        lines.extend(self.machine.boots.iter().map(|at| format!("started again at {}", time(*at))));
        lines.extend(self.outages.iter().map(|(from, to)| format!("no ticks from {} to {}", time(*from), time(*to))));
        let deeds = self.deeds.iter().filter(|(at, _)| *at <= until);
        lines.extend(deeds.map(|(at, deed)| format!("{} {}", time(*at), deed.shown())));
        lines.join("\n")
    }
}
