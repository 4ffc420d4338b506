//! Whether an agent is consciously at work: rules over what it has shown, as pure functions of
//! (what is known of it, now).
//!
//! A limit is still in time; what fails does so from the next second on. Below error a finding is a
//! line in a report and nothing more.

use super::code::Code;
use super::rules::Step;
use super::settings::{Setting, Settings};
use crate::base::{EntityType, Error, Reason, Result, Subject, Timestamp, names};
use crate::event::Kind;
use crate::machine::Phase;
use crate::state::{Clock, Entity, State};
use serde_json::Value;

names! {
    /// How bad it is. Only an error is an anomaly.
    pub enum Level {
        Notice = "notice",
        Warn = "warn",
        Error = "error",
    }
}

names! {
    /// What a declaration of deep work suspends.
    pub enum Mode {
        /// Checkpoints come, activity logs and introspections do not.
        Flexible = "flexible",
        /// Nothing comes, until a time that was declared.
        Strict = "strict",
    }
}

/// How long is too long, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    pub never_seen: u64,
    pub inactive_warn: u64,
    pub inactive_error: u64,
    pub introspection_notice: u64,
    pub introspection_warn: u64,
    pub introspection_error: u64,
    pub deepwork_checkpoint: u64,
    pub clock_skew: u64,
}

/// A deep work that was declared and is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeepWork {
    pub mode: Mode,
    pub started_at: Timestamp,
    /// When a strict one should be over.
    pub until: Option<Timestamp>,
}

impl DeepWork {
    /// What a recorded one says.
    pub fn of(entity: &Entity) -> Option<DeepWork> {
        let (mode, started_at) = (Mode::parse(entity.as_deep_work().mode()?)?, entity.as_deep_work().started_at()?);
        let strict = mode == Mode::Strict;
        let until = strict.then(|| {
            Timestamp(started_at.0.saturating_add_unsigned(entity.as_deep_work().minutes().saturating_mul(60)))
        });
        Some(DeepWork { mode, started_at, until })
    }

    /// Whether a strict one is past its time.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| now > until)
    }
}

/// What is known of an agent.
#[derive(Clone, Debug)]
pub struct Life {
    pub agent: Subject,
    pub started_at: Timestamp,
    /// Whether somebody waits for it: it holds a task, or was started in its own right.
    pub expected: bool,
    pub last_activity: Option<Timestamp>,
    pub last_checkpoint: Option<Timestamp>,
    pub last_introspection: Option<Timestamp>,
    /// When a deep work was last over in time; nobody looks inward in the middle of one.
    pub last_deepwork_end: Option<Timestamp>,
    pub deep_work: Option<DeepWork>,
    /// Whether the log after a closing log was not an introspection.
    pub duty_broken: bool,
    /// The newest moment that any of its ids names.
    pub newest_id: Option<Timestamp>,
}

impl Life {
    /// What the log says of an agent. `held` are the tasks that somebody holds.
    pub fn of(state: &State, agent: &Entity, held: &[Entity]) -> Life {
        let actor = agent.subject.to_string();
        let open = agent.as_agent().deep_work().and_then(|work| state.entity(&work));
        let announced = agent.as_agent().is_announced();
        Life {
            agent: agent.subject.clone(),
            started_at: agent.as_agent().started_at().unwrap_or(agent.created_at),
            expected: !announced || held.iter().any(|task| task.as_task().last_holder() == Some(&actor)),
            last_activity: agent.as_agent().last_activity_at(),
            last_checkpoint: agent.as_agent().last_checkpoint_at(),
            last_introspection: agent.as_agent().last_introspection_at(),
            last_deepwork_end: agent.as_agent().last_deep_work_end(),
            deep_work: open.as_deref().filter(|work| work.phase == Phase::Open).and_then(DeepWork::of),
            duty_broken: agent.as_agent().duty() == Some("broken"),
            newest_id: None,
        }
    }

    /// The newest sign that it is consciously at work.
    pub fn last_shown(&self) -> Option<Timestamp> {
        self.last_activity.max(self.last_checkpoint)
    }
}

/// No declaration of deep work is longer than the settings allow, whoever records it.
pub fn check_declared(state: &State, settings: &Settings, step: &Step<'_>) -> Result<()> {
    let said = |member: &str| step.payload.get(member);
    let (Some(agent), Some(minutes)) =
        (said("agent_id").and_then(Value::as_str), said("minutes").and_then(Value::as_u64))
    else {
        return Ok(());
    };
    let work = || state.entity(step.subject);
    let (before, extensions) = match step.kind {
        Kind::DeepWorkStarted => (0, None),
        Kind::DeepWorkExtended => {
            work().map_or((0, None), |w| (w.as_deep_work().minutes(), Some(w.as_deep_work().extensions())))
        }
        _ => return Ok(()),
    };
    let settings = settings.for_agent(agent);
    let (most, times) = (settings.count(Setting::StrictMaxMinutes), settings.count(Setting::DeepworkExtendMax));
    if extensions.is_some_and(|extensions| extensions >= times) {
        return Err(Error::refused(Reason::LimitReached, format!("it was extended {times} times, which is the most")));
    }
    match before.saturating_add(minutes) > most {
        true => Err(Error::usage(format!("a strict deep work has at most {most} minutes"))),
        false => Ok(()),
    }
}

/// The tasks that somebody holds.
pub fn held(state: &State) -> Vec<Entity> {
    let tasks = [Phase::Assigned, Phase::Running].map(|at| state.in_phase(EntityType::Task, at, usize::MAX));
    tasks.into_iter().flatten().filter(|task| task.as_task().last_holder().is_some()).collect()
}

/// One rule that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: Code,
    pub subject: Subject,
    pub level: Level,
    pub seconds: u64,
}

/// When anybody could have been heard.
#[derive(Debug, Default)]
pub struct Awake {
    /// Not before this: the project rested, everything was stopped, or the machine was off.
    from: Option<Timestamp>,
    clock: Clock,
}

impl Awake {
    /// Since a project went on, as far as nothing else came between.
    pub fn since(state: &State, from: Timestamp) -> Awake {
        let clock = state.tally().clock.clone();
        let booted = clock.booted.map(|booted| Timestamp(booted.saturating_add(clock.lost_seconds)));
        let resumed = state.entity(&Subject::SYSTEM).and_then(|system| system.as_system().running_since());
        Awake { from: Some(from).max(booted).max(resumed), clock }
    }

    /// How many seconds have passed since a moment in which somebody could have been heard.
    fn seconds(&self, then: Timestamp, now: Timestamp) -> u64 {
        let then = self.from.map_or(then, |from| from.max(then));
        now.0.saturating_sub(then.0).saturating_sub(self.clock.lost_since(then)).max(0) as u64
    }
}

/// Every rule that fails for an agent.
pub fn findings(life: &Life, limits: &Thresholds, now: Timestamp, awake: &Awake) -> Vec<Finding> {
    let mut found = Vec::new();
    let since = |then: Timestamp| awake.seconds(then, now);
    let mut say = |code, level, seconds| found.push(Finding { code, subject: life.agent.clone(), level, seconds });
    if let Some(newest) = life.newest_id.filter(|newest| newest.0 > now.0.saturating_add(limits.clock_skew as i64)) {
        say(Code::ClockSkew, Level::Error, (newest.0 - now.0) as u64);
    }
    let open = life.deep_work.as_ref();
    match open.map(|work| (work.mode, work.until, work.is_expired(now))) {
        Some((Mode::Strict, Some(until), true)) => say(Code::DeepworkExpired, Level::Error, (now.0 - until.0) as u64),
        Some((Mode::Strict, ..)) => return found,
        Some((Mode::Flexible, ..)) | None => {}
    }
    let flexible = open.filter(|work| work.mode == Mode::Flexible);
    match (life.last_shown(), flexible) {
        (_, Some(work)) => {
            let quiet = since(work.started_at.max(life.last_checkpoint.unwrap_or(work.started_at)));
            if quiet > limits.deepwork_checkpoint {
                say(Code::DeepworkUnchecked, Level::Error, quiet);
            }
        }
        (None, None) if life.expected => {
            if since(life.started_at) > limits.never_seen {
                say(Code::NeverSeen, Level::Error, since(life.started_at));
            }
        }
        (None, None) => {}
        (Some(shown), None) => {
            let steps = [(limits.inactive_error, Level::Error), (limits.inactive_warn, Level::Warn)];
            grade(since(shown), &steps).into_iter().for_each(|level| say(Code::Inactive, level, since(shown)));
        }
    }
    if flexible.is_none() && life.last_activity.is_some() {
        let quiet = since(life.last_introspection.max(life.last_deepwork_end).unwrap_or(life.started_at));
        let steps = [
            (limits.introspection_error, Level::Error),
            (limits.introspection_warn, Level::Warn),
            (limits.introspection_notice, Level::Notice),
        ];
        grade(quiet, &steps).into_iter().for_each(|level| say(Code::IntrospectionOverdue, level, quiet));
    }
    if life.duty_broken {
        let quiet = life.last_activity.map_or(0, |log| now.0.saturating_sub(log.0).max(0) as u64);
        say(Code::IntrospectionDuty, Level::Error, quiet);
    }
    found
}

/// The worst level whose limit is passed.
fn grade(seconds: u64, steps: &[(u64, Level)]) -> Option<Level> {
    steps.iter().find(|(limit, _)| seconds > *limit).map(|(_, level)| *level)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Thresholds = Thresholds {
        never_seen: 300,
        inactive_warn: 300,
        inactive_error: 600,
        introspection_notice: 900,
        introspection_warn: 1200,
        introspection_error: 1800,
        deepwork_checkpoint: 600,
        clock_skew: 120,
    };

    fn life() -> Life {
        Life {
            agent: Subject::parse("agent:main").unwrap(),
            started_at: Timestamp(0),
            expected: true,
            last_activity: None,
            last_checkpoint: None,
            last_introspection: None,
            last_deepwork_end: None,
            deep_work: None,
            duty_broken: false,
            newest_id: None,
        }
    }

    fn check(life: &Life, now: i64, expected: &[(Code, Level)]) {
        let found: Vec<_> =
            findings(life, &LIMITS, Timestamp(now), &Awake::default()).iter().map(|f| (f.code, f.level)).collect();
        assert_eq!(found, expected, "at {now}");
    }

    #[test]
    fn every_limit_is_still_in_time_and_the_next_second_is_not() {
        check(&life(), 300, &[]);
        check(&life(), 301, &[(Code::NeverSeen, Level::Error)]);
        check(&Life { expected: false, ..life() }, 100_000, &[]);
        let seen = Life { last_checkpoint: Some(Timestamp(0)), ..life() };
        check(&seen, 300, &[]);
        check(&seen, 301, &[(Code::Inactive, Level::Warn)]);
        check(&seen, 600, &[(Code::Inactive, Level::Warn)]);
        check(&seen, 601, &[(Code::Inactive, Level::Error)]);
        // An activity log and no introspection yet; checkpoints keep it awake.
        let at = |now: i64| Life { last_activity: Some(Timestamp(0)), last_checkpoint: Some(Timestamp(now)), ..life() };
        for (now, level) in [(901, Level::Notice), (1201, Level::Warn), (1801, Level::Error)] {
            check(&at(now), now, &[(Code::IntrospectionOverdue, level)]);
        }
        check(&at(900), 900, &[]);
        let after_work = Life { last_deepwork_end: Some(Timestamp(1000)), ..at(1901) };
        check(&after_work, 1901, &[(Code::IntrospectionOverdue, Level::Notice)]);
        check(&Life { last_checkpoint: Some(Timestamp(1900)), ..after_work }, 1900, &[]);
        check(&Life { duty_broken: true, ..at(5) }, 5, &[(Code::IntrospectionDuty, Level::Error)]);
        let ahead = |id: i64| Life { newest_id: Some(Timestamp(id)), ..at(5) };
        check(&ahead(125), 5, &[]);
        check(&ahead(126), 5, &[(Code::ClockSkew, Level::Error)]);
    }

    #[test]
    fn deep_work_suspends_what_it_says_and_no_longer() {
        let work = |mode, until| Some(DeepWork { mode, started_at: Timestamp(0), until });
        let flexible = |checkpoint: Option<i64>| Life {
            last_activity: Some(Timestamp(0)),
            last_checkpoint: checkpoint.map(Timestamp),
            deep_work: work(Mode::Flexible, None),
            ..life()
        };
        check(&flexible(None), 600, &[]);
        check(&flexible(None), 601, &[(Code::DeepworkUnchecked, Level::Error)]);
        check(&flexible(Some(5000)), 5600, &[]);
        check(&flexible(Some(5000)), 5601, &[(Code::DeepworkUnchecked, Level::Error)]);
        let strict =
            Life { last_activity: Some(Timestamp(0)), deep_work: work(Mode::Strict, Some(Timestamp(3600))), ..life() };
        check(&strict, 3600, &[]);
        let back = [
            (Code::DeepworkExpired, Level::Error),
            (Code::Inactive, Level::Error),
            (Code::IntrospectionOverdue, Level::Error),
        ];
        check(&strict, 3601, &back);
    }

    #[test]
    fn nothing_counts_from_before_it_could_be_heard() {
        let seen = Life { last_checkpoint: Some(Timestamp(0)), ..life() };
        let codes = |now: i64, armed: i64| {
            findings(&seen, &LIMITS, Timestamp(now), &Awake { from: Some(Timestamp(armed)), ..Awake::default() }).len()
        };
        assert_eq!((codes(10_000, 10_000), codes(10_300, 10_000), codes(10_301, 10_000)), (0, 0, 1));
    }
}
