//! The introspection that an agent owes after deep work.
//!
//! The closing log of a deep work is the first log that is newer than its declaration. Either that log is an
//! introspection, or the next one must be. An emergency puts this off by one log. Any later introspection meets the duty.
//!
//! Files count in the order of the times in their names, however late they are found. A log by a command is newer than what
//! was recorded before it, and than nothing else. So the duty is computed from the agent's latest signs, as `TIME SORT`
//! in the order in which they were recorded.

use serde_json::Value;

use super::Entity;
use crate::base::{Timestamp, names};

/// The fact with the agent's latest signs.
pub(super) const SIGNS: &str = "_duty_signs";
/// How many of them are remembered.
const SIGNS_MAX_COUNT: usize = 32;

names! {
    /// A sign on which the duty depends.
    pub enum DutySign {
        Declared = "declared",
        FileLog = "file-log",
        FileEmergency = "file-emergency",
        FileIntrospection = "file-introspection",
        CommandLog = "command-log",
        CommandEmergency = "command-emergency",
        CommandIntrospection = "command-introspection",
    }
}

impl DutySign {
    fn is_by_command(self) -> bool {
        matches!(self, DutySign::CommandLog | DutySign::CommandEmergency | DutySign::CommandIntrospection)
    }

    fn is_introspection(self) -> bool {
        matches!(self, DutySign::FileIntrospection | DutySign::CommandIntrospection)
    }

    fn is_emergency(self) -> bool {
        matches!(self, DutySign::FileEmergency | DutySign::CommandEmergency)
    }
}

/// The state of the duty, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Duty {
    /// The deep work is over, and the closing log is missing.
    Closing,
    /// The next log must be an introspection.
    Due,
    /// An emergency came first, which is allowed once.
    Deferred,
    /// The log at this time was not an introspection. The earliest one counts.
    Broken(std::cmp::Reverse<Timestamp>),
}

impl Duty {
    pub fn as_str(self) -> &'static str {
        match self {
            Duty::Closing => "closing",
            Duty::Due => "due",
            Duty::Deferred => "deferred",
            Duty::Broken(_) => "broken",
        }
    }

    pub fn broken_at(self) -> Option<Timestamp> {
        match self {
            Duty::Broken(at) => Some(at.0),
            _ => None,
        }
    }
}

type DatedSign = (Timestamp, DutySign);

fn signs_of(agent: &Entity) -> Vec<DatedSign> {
    let texts = agent.facts.get(SIGNS).and_then(Value::as_array).into_iter().flatten();
    let parse = |text: &str| {
        let (time, sign) = text.split_once(' ')?;
        Timestamp::parse(time).zip(DutySign::parse(sign))
    };
    texts.filter_map(Value::as_str).filter_map(parse).collect()
}

/// The remembered signs with another one.
pub(super) fn with_sign(agent: &Entity, at: Timestamp, sign: DutySign) -> Value {
    let mut signs = signs_of(agent);
    remember(&mut signs, (at, sign));
    signs.iter().map(|(at, sign)| Value::from(format!("{at} {sign}"))).collect()
}

fn remember(signs: &mut Vec<DatedSign>, sign: DatedSign) {
    signs.push(sign);
    if signs.len() > SIGNS_MAX_COUNT {
        // The oldest declaration whose duty is not met stays: as long as it does, so does the duty.
        let unmet = (0..signs.len()).find(|position| of_declaration(signs, *position).is_some());
        signs.remove(usize::from(unmet == Some(0)));
    }
}

/// The duty of an agent; none if it owes nothing.
pub(super) fn of_agent(agent: &Entity) -> Option<Duty> {
    // As long as the deep work is open, its closing log is not missing.
    let is_open = agent.facts.contains_key("deepwork_id");
    of_signs(&signs_of(agent)).filter(|duty| !is_open || *duty != Duty::Closing)
}

fn of_signs(signs: &[DatedSign]) -> Option<Duty> {
    (0..signs.len()).filter_map(|position| of_declaration(signs, position)).max()
}

/// The duty after one declaration; none if it is met, or if the sign is not a declaration.
fn of_declaration(signs: &[DatedSign], position: usize) -> Option<Duty> {
    let (declared_at, DutySign::Declared) = signs[position] else { return None };
    let is_newer = |(no, (at, sign)): &(usize, &DatedSign)| match sign {
        DutySign::Declared => false,
        sign if sign.is_by_command() => *no > position,
        _ => *at > declared_at,
    };
    let mut logs: Vec<DatedSign> = signs.iter().enumerate().filter(is_newer).map(|(_, sign)| *sign).collect();
    logs.sort_by_key(|(at, _)| *at);
    let is_met = logs.iter().any(|(_, sign)| sign.is_introspection());
    let mut after_closing = logs.iter().skip(1);
    match (logs.is_empty(), after_closing.next()) {
        _ if is_met => None,
        (true, _) => Some(Duty::Closing),
        (false, None) => Some(Duty::Due),
        (false, Some((_, sign))) if sign.is_emergency() => {
            let broken_by = after_closing.next();
            Some(broken_by.map_or(Duty::Deferred, |(at, _)| Duty::Broken(std::cmp::Reverse(*at))))
        }
        (false, Some((at, _))) => Some(Duty::Broken(std::cmp::Reverse(*at))),
    }
}

impl Entity {
    /// The time of the first log of an agent that was found in a file and is newer than this.
    pub fn first_file_log_after(&self, time: Timestamp) -> Option<Timestamp> {
        let is_file_log = |sign: DutySign| sign != DutySign::Declared && !sign.is_by_command();
        let logs = signs_of(self).into_iter().filter(|(at, sign)| is_file_log(*sign) && *at > time);
        logs.map(|(at, _)| at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// The duty after signs such as `d5` (a declaration at second 5), in the order in which they are recorded.
    fn duty(signs: &str) -> Option<Duty> {
        let mut remembered = Vec::new();
        for word in signs.split(' ') {
            let sign = match &word[..1] {
                "d" => DutySign::Declared,
                "l" => DutySign::FileLog,
                "e" => DutySign::FileEmergency,
                "i" => DutySign::FileIntrospection,
                "c" => DutySign::CommandLog,
                _ => unreachable!("no such sign"),
            };
            remember(&mut remembered, (Timestamp(word[1..].parse().unwrap()), sign));
        }
        of_signs(&remembered)
    }

    fn broken(at: i64) -> Option<Duty> {
        Some(Duty::Broken(std::cmp::Reverse(Timestamp(at))))
    }

    #[test]
    fn the_log_after_the_closing_log_must_be_an_introspection() {
        assert_eq!(duty("l1"), None);
        assert_eq!(duty("d5"), Some(Duty::Closing));
        assert_eq!(duty("d5 l5"), Some(Duty::Closing));
        assert_eq!(duty("d5 l6"), Some(Duty::Due));
        assert_eq!(duty("d5 i6"), None);
        assert_eq!(duty("d5 l6 i7"), None);
        assert_eq!(duty("d5 l6 l7"), broken(7));
        assert_eq!(duty("d5 l6 l7 i8"), None);
        assert_eq!(duty("d5 l6 e7"), Some(Duty::Deferred));
        assert_eq!(duty("d5 l6 e7 e8"), broken(8));
        assert_eq!(duty("d5 l6 d7 l8"), broken(8));
        assert_eq!(duty("d5 d6 l7"), Some(Duty::Due));
    }

    #[test]
    fn what_is_found_late_counts_in_its_place() {
        // The emergency was the closing log until an older log was found.
        assert_eq!(duty("d5 e9 l7"), Some(Duty::Deferred));
        assert_eq!(duty("d5 l9 e7"), broken(9));
        assert_eq!(duty("l7 l9 d5"), broken(9));
        assert_eq!(duty("d5 l7 d8 l9 i6"), Some(Duty::Due));
        assert_eq!(duty("d5 l7 i9 l8"), None);
    }

    #[test]
    fn a_log_by_a_command_is_newer_than_what_was_declared_before() {
        assert_eq!(duty("d5 c5"), Some(Duty::Due));
        assert_eq!(duty("c5 d5"), Some(Duty::Closing));
        // The file has the id of a beat before the command, and was written after it.
        assert_eq!(duty("c7 d5"), Some(Duty::Closing));
    }

    #[test]
    fn a_duty_is_not_forgotten_however_many_logs_follow() {
        let many: Vec<String> = (6..200).map(|second| format!("l{second}")).collect();
        let duty = duty(&format!("d5 {}", many.join(" ")));
        assert_eq!(duty.map(Duty::as_str), Some("broken"));
    }
}
