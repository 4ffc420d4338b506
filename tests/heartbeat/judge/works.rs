//! Deep work: what was declared, and how it ended.

use crate::judge::Judge;
use crate::judge::expected::{Expected, Level};
use crate::judge::lies::Lie;
use crate::judge::sight::{Kind, Name, Seen, Sight};
use crate::tree::{Tree, rename};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By a log, or by the agent, which renamed or deleted the file.
    Completed(i64),
    /// At its deadline, or because the agent says so.
    Expired(i64),
    /// By a newer declaration.
    Superseded,
}

#[derive(Clone, Debug)]
pub struct Work {
    pub at: i64,
    id: String,
    /// Of strict deep work.
    pub minutes: Option<i64>,
    pub end: Option<End>,
    was_reported: bool,
}

impl Work {
    pub fn new(seen: &Seen, minutes: Option<i64>) -> Work {
        Work { at: seen.at, id: seen.id.clone(), minutes, end: None, was_reported: false }
    }

    /// The last second of strict deep work.
    fn deadline(&self) -> Option<i64> {
        self.minutes.map(|minutes| self.at + minutes * 60)
    }

    /// Whether a file of this time would have ended this deep work earlier than it ended, had it been there.
    pub fn is_too_late(&self, at: i64) -> bool {
        match self.end {
            Some(End::Completed(end)) => self.at < at && at < end,
            Some(End::Expired(end)) => self.at < at && at <= end,
            Some(End::Superseded) | None => false,
        }
    }

    /// The time from which an introspection counts after this deep work.
    pub fn put_off(&self, lie: Option<Lie>) -> Option<i64> {
        match self.end {
            _ if lie == Some(Lie::EndIgnored) => None,
            Some(End::Completed(at)) => Some(at),
            Some(End::Expired(at)) if lie == Some(Lie::ExpiredPutsOff) => Some(at),
            _ => None,
        }
    }
}

/// What became of the file of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Named(Name),
    Gone,
}

impl Judge<'_> {
    /// Rules 4 and 5: what ends deep work, and what its file is then called.
    pub(super) fn end_works(&mut self, sight: &Sight, tree: &mut Tree, now: i64, expected: &mut Expected) {
        let declared: Vec<i64> = self.works.iter().map(|work| work.at).collect();
        let lie = self.lie;
        for work in &mut self.works {
            if work.end.is_some() {
                if lie == Some(Lie::ExpiredAgain) && work.was_reported {
                    expected.report("DEEPWORK_EXPIRED", Level::Error);
                }
                continue;
            }
            let place = place_of(work, sight);
            let newer = |at: &i64| *at > work.at || (lie == Some(Lie::EqualEnds) && *at == work.at);
            let log = self.logs.iter().map(|log| log.at).find(newer);
            let stays = lie == Some(Lie::StrictStays) && work.minutes.is_some();
            let next = declared.iter().copied().find(|at| *at > work.at && !stays);
            let deadline = work.deadline();
            let in_time = |at: &i64| deadline.is_none_or(|deadline| *at <= deadline);
            let log_in_time = log.filter(|at| in_time(at) || lie == Some(Lie::LateLogCompletes));
            let next_in_time = next.filter(in_time);
            let is_over_time = deadline.is_some_and(|deadline| now > deadline);
            work.end = match (log_in_time, next_in_time) {
                // In one beat, the log comes before the declaration.
                (Some(log), next) if next.is_none_or(|next| log <= next) => Some(End::Completed(log)),
                (_, Some(_)) => Some(End::Superseded),
                _ if is_over_time => deadline.map(End::Expired),
                _ => match place {
                    Place::Named(Name::Open) => None,
                    _ if lie == Some(Lie::RenamedStaysOpen) => None,
                    Place::Named(Name::Expired) => Some(End::Expired(now)),
                    Place::Named(Name::Completed) | Place::Gone => Some(End::Completed(now)),
                },
            };
            let path = |rest: &str| format!("stats/deep_work/{}{rest}.txt", work.id);
            let renamed = match work.end {
                Some(End::Completed(_)) => Some(path(".completed")),
                Some(End::Expired(_)) => Some(path(".expired")),
                _ => None,
            };
            if let Some(renamed) = renamed.filter(|_| place == Place::Named(Name::Open)) {
                rename(tree, &path(""), &renamed);
                expected.present.push(renamed);
                expected.absent.push(path(""));
            }
            if matches!(work.end, Some(End::Expired(_))) && is_over_time {
                expected.report("DEEPWORK_EXPIRED", Level::Error);
                work.was_reported = true;
                if place != Place::Named(Name::Open) {
                    expected.unsure = Some("renamed or deleted by the agent, before or after the deadline");
                }
            }
            if place == Place::Named(Name::Expired) && log.is_some() {
                expected.unsure = Some("called expired by the agent, and then there was a log");
            }
            if log.is_some_and(|log| log > now && !in_time(&log)) && !is_over_time {
                expected.unsure = Some("a log from the near future, after the deadline");
            }
        }
        // A newer strict declaration that came after the deadline suspends this report, too, or it does not.
        if self.works.iter().any(|work| work.end.is_none() && work.minutes.is_some()) {
            expected.optional.insert("DEEPWORK_EXPIRED");
        }
    }
}

fn place_of(work: &Work, sight: &Sight) -> Place {
    let names = sight.files.iter().filter(|seen| seen.id == work.id);
    let mut names = names.filter_map(|seen| match seen.kind {
        Kind::Declaration { name, .. } => Some(Place::Named(name)),
        _ => None,
    });
    names.next().unwrap_or(Place::Gone)
}
