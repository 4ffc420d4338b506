//! Whether an agent shows signs of conscious work: pure functions of its signs of life and the current time.
//!
//! At its limit something is still in time; a rule fails from the next second on. A finding below `Level::Error` is
//! only reported.

use super::code::Code;
use super::rules::Step;
use super::settings::{Setting, Settings};
use crate::base::{EntityType, Error, Reason, Result, Subject, Timestamp, names, text};
use crate::event::Kind;
use crate::machine::Phase;
use crate::state::{Clock, Entity, State};
use serde_json::Value;

names! {
    /// The severity of a finding. Only an error is an anomaly.
    pub enum Level {
        Notice = "notice",
        Warn = "warn",
        Error = "error",
    }
}

names! {
    /// What declared deep work suspends.
    pub enum DeepWorkMode {
        /// Checkpoints are still required; activity logs and introspections are not.
        Flexible = "flexible",
        /// Nothing is required until the declared end.
        Strict = "strict",
    }
}

/// The limits, in seconds, after which a rule fails.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    pub never_seen_warn: u64,
    pub never_seen: u64,
    pub inactive_warn: u64,
    pub inactive_error: u64,
    pub introspection_notice: u64,
    pub introspection_warn: u64,
    pub introspection_error: u64,
    pub deepwork_checkpoint: u64,
}

/// Declared deep work that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredDeepWork {
    pub mode: DeepWorkMode,
    pub started_at: Timestamp,
    /// When strict deep work should end; none for flexible deep work.
    pub until: Option<Timestamp>,
}

impl DeclaredDeepWork {
    /// Reads recorded deep work.
    pub fn from_entity(entity: &Entity) -> Option<DeclaredDeepWork> {
        let (mode, started_at) =
            (DeepWorkMode::parse(entity.as_deep_work().mode()?)?, entity.as_deep_work().started_at()?);
        let strict = mode == DeepWorkMode::Strict;
        let until = strict.then(|| {
            Timestamp(started_at.0.saturating_add_unsigned(entity.as_deep_work().minutes().saturating_mul(60)))
        });
        Some(DeclaredDeepWork { mode, started_at, until })
    }

    /// Whether strict deep work is past its declared end.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.until.is_some_and(|until| now > until)
    }
}

/// What is known about an agent.
#[derive(Clone, Debug)]
pub struct SignsOfLife {
    pub agent: Subject,
    pub started_at: Timestamp,
    /// Whether signs of life are expected: it was started explicitly, has declared deep work, is logged in, holds a task,
    /// or lost one because it fell silent.
    pub expected: bool,
    pub last_activity: Option<Timestamp>,
    pub last_checkpoint: Option<Timestamp>,
    pub last_introspection: Option<Timestamp>,
    /// When it last sent a heartbeat of a run, or waited for a job: this is progress, which holds off INACTIVE, but is
    /// nothing that it declared.
    pub last_heartbeat: Option<Timestamp>,
    pub last_wait: Option<Timestamp>,
    /// When it last did anything else about a task, which holds off nothing.
    pub last_seen: Option<Timestamp>,
    /// When deep work was last completed; introspection is not expected during deep work.
    pub last_deepwork_end: Option<Timestamp>,
    pub deep_work: Option<DeclaredDeepWork>,
    /// When another log was written instead of the introspection that is owed after deep work.
    pub duty_broken_at: Option<Timestamp>,
    /// Whether it was started explicitly, not announced by its first command or file.
    pub was_started: bool,
    /// When it was started, if that was explicit or after a stop: nothing before it counts.
    pub counts_from: Option<Timestamp>,
    /// Whether it ever declared deep work.
    pub has_declared_work: bool,
}

impl SignsOfLife {
    /// Reads the signs of life of an agent. `held` lists all tasks that have a holder, `seated` all open sessions.
    pub fn of_agent(state: &State, agent: &Entity, held: &[Entity], seated: &[Entity]) -> SignsOfLife {
        let actor = agent.subject.to_string();
        let open = agent.as_agent().deep_work().and_then(|work| state.entity(&work));
        let announced = agent.as_agent().is_announced();
        let has_declared_work = agent.as_agent().declared_at().is_some();
        SignsOfLife {
            agent: agent.subject.clone(),
            started_at: agent.as_agent().started_at().unwrap_or(agent.created_at),
            expected: !announced
                || has_declared_work
                || agent.as_agent().has_lost_claim()
                || seated.iter().any(|session| session.as_session().agent() == Some(agent.subject.id()))
                || held.iter().any(|task| task.as_task().recorded_holder() == Some(&actor)),
            last_activity: agent.as_agent().last_activity_at(),
            last_checkpoint: agent.as_agent().last_checkpoint_at(),
            last_introspection: agent.as_agent().last_introspection_at(),
            last_heartbeat: agent.as_agent().last_progress_at(),
            last_wait: agent.as_agent().last_waited_at(),
            last_seen: agent.as_agent().last_seen_at(),
            last_deepwork_end: agent.as_agent().last_deep_work_end(),
            deep_work: open.as_deref().filter(|work| work.phase == Phase::Open).and_then(DeclaredDeepWork::from_entity),
            duty_broken_at: agent.as_agent().duty_broken_at(),
            was_started: !announced,
            counts_from: agent
                .as_agent()
                .started_at()
                .filter(|_| !announced || agent.as_agent().stopped_at().is_some()),
            has_declared_work,
        }
    }

    /// The latest sign of work: declared, or progress. An agent of which nothing is expected, because it has only
    /// recorded something once, is not measured by its progress.
    pub(super) fn last_shown(&self) -> Option<Timestamp> {
        let declared = self.last_activity.max(self.last_checkpoint);
        let progress = self.last_heartbeat.max(self.last_wait);
        if self.is_watched() { declared.max(progress) } else { None }
    }

    /// Whether it has to show signs of life: they are expected, or it has declared something before.
    pub(super) fn is_watched(&self) -> bool {
        self.expected || self.last_activity.is_some() || self.last_checkpoint.is_some()
    }

    /// The newest introspection, or what counts like one: the start, or the end of deep work. None if no introspection
    /// is expected: the agent has declared nothing so far, and nobody started it.
    fn last_introspected(&self) -> Option<Timestamp> {
        let has_declared = self.last_activity.is_some() || self.last_checkpoint.is_some() || self.has_declared_work;
        let since = self.last_introspection.unwrap_or(self.started_at);
        let since = Some(since).max(self.last_deepwork_end).max(self.counts_from);
        since.filter(|_| has_declared || self.was_started)
    }
}

/// Refuses deep work that is longer, or extended more often, than the settings allow.
pub fn check_declared(state: &State, settings: &Settings, step: &Step<'_>) -> Result<()> {
    let member = |name: &str| step.payload.get(name);
    let (Some(agent), Some(minutes)) =
        (member("agent_id").and_then(Value::as_str), member("minutes").and_then(Value::as_u64))
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
    let max_minutes = settings.count(Setting::StrictMaxMinutes);
    let max_extensions = settings.count(Setting::DeepworkExtendMax);
    if extensions.is_some_and(|extensions| extensions >= max_extensions) {
        let why = format!("extension limit reached: at most {}", text::count_noun(max_extensions, "extension"));
        return Err(Error::refused(Reason::LimitReached, why));
    }
    match before.saturating_add(minutes) > max_minutes {
        true => {
            let max = text::count_noun(max_minutes, "minute");
            Err(Error::usage(format!("strict deep work can last at most {max}")))
        }
        false => Ok(()),
    }
}

/// The assigned or running tasks that have a holder.
pub fn held(state: &State) -> Vec<Entity> {
    let tasks = [Phase::Assigned, Phase::Running].map(|phase| state.in_phase(EntityType::Task, phase, usize::MAX));
    tasks.into_iter().flatten().filter(|task| task.as_task().recorded_holder().is_some()).collect()
}

/// The open sessions.
pub fn seated(state: &State) -> Vec<Entity> {
    state.in_phase(EntityType::Session, Phase::Active, usize::MAX)
}

/// A rule that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: Code,
    pub subject: Subject,
    pub level: Level,
    pub seconds: u64,
    /// When it became due; none if that has no meaning.
    pub due_at: Option<Timestamp>,
    /// Which file or hook it is about, and why.
    pub detail: Option<String>,
    /// Whether it is about an agent that writes files, and is to be told what to do in these terms.
    pub in_files: bool,
}

impl Finding {
    pub fn new(code: Code, subject: Subject, level: Level, seconds: u64) -> Finding {
        Finding { code, subject, level, seconds, due_at: None, detail: None, in_files: false }
    }

    /// What the agent or an operator should do.
    pub fn advice(&self) -> &'static str {
        if self.in_files { self.code.advice_in_files() } else { self.code.advice() }
    }
}

/// The time during which an agent could have shown signs of life.
#[derive(Debug, Default)]
pub struct AudibleTime {
    /// Nothing before this counts: the project was paused, the vault was stopped, or the machine was off.
    from: Option<Timestamp>,
    clock: Clock,
}

impl AudibleTime {
    /// Starts at `from`, or when the machine was last booted or a stop was lifted, if that is later.
    pub fn since(state: &State, from: Timestamp) -> AudibleTime {
        let clock = state.tally().clock.clone();
        let booted = clock.booted.map(|booted| Timestamp(booted.saturating_add(clock.lost_seconds)));
        // Since the vault was made is no reason: an agent's files may be older.
        let system = state.entity(&Subject::SYSTEM);
        let resumed =
            system.and_then(|system| system.as_system().running_since().filter(|since| *since > system.created_at));
        AudibleTime { from: Some(from).max(booted).max(resumed), clock }
    }

    /// Seconds between `then` and `now`, without the time that does not count.
    fn seconds(&self, then: Timestamp, now: Timestamp) -> u64 {
        let then = self.from.map_or(then, |from| from.max(then));
        now.0.saturating_sub(then.0).saturating_sub(self.clock.lost_since(then)).max(0) as u64
    }
}

/// Returns every rule that fails for an agent. Deep work whose time is over must have been recorded as expired.
pub fn findings(signs: &SignsOfLife, limits: &Thresholds, now: Timestamp, audible: &AudibleTime) -> Vec<Finding> {
    let open = signs.deep_work.as_ref();
    if open.is_some_and(|work| work.mode == DeepWorkMode::Strict && !work.is_expired(now)) {
        return Vec::new();
    }
    let since = |then: Timestamp| audible.seconds(then, now);
    let mut found = Vec::new();
    let mut report = |code, quiet: u64, steps: &[(u64, Level)]| {
        let exceeded = steps.iter().find(|(limit, _)| quiet > *limit);
        found.extend(exceeded.map(|(limit, level)| Finding {
            due_at: Some(Timestamp(now.0.saturating_sub_unsigned(quiet - limit))),
            ..Finding::new(code, signs.agent.clone(), *level, quiet)
        }));
    };
    let flexible = open.filter(|work| work.mode == DeepWorkMode::Flexible);
    match (signs.last_shown(), flexible) {
        (_, Some(work)) => {
            let checked = signs.last_checkpoint.max(Some(work.started_at)).unwrap_or(work.started_at);
            report(Code::DeepworkUnchecked, since(checked), &[(limits.deepwork_checkpoint, Level::Error)]);
        }
        (None, None) if signs.expected => {
            let steps = [(limits.never_seen, Level::Error), (limits.never_seen_warn, Level::Warn)];
            report(Code::NeverSeen, since(signs.started_at), &steps);
        }
        (None, None) => {}
        (Some(shown), None) => {
            let steps = [(limits.inactive_error, Level::Error), (limits.inactive_warn, Level::Warn)];
            // What an agent did before it was started again says nothing about it now.
            report(Code::Inactive, since(signs.counts_from.map_or(shown, |from| from.max(shown))), &steps);
        }
    }
    if let Some(introspected) = signs.last_introspected().filter(|_| flexible.is_none()) {
        let steps = [
            (limits.introspection_error, Level::Error),
            (limits.introspection_warn, Level::Warn),
            (limits.introspection_notice, Level::Notice),
        ];
        report(Code::IntrospectionOverdue, since(introspected), &steps);
    }
    if let Some(broken) = signs.duty_broken_at {
        let seconds = now.0.saturating_sub(broken.0).max(0) as u64;
        found.push(Finding {
            due_at: Some(broken),
            ..Finding::new(Code::IntrospectionDuty, signs.agent.clone(), Level::Error, seconds)
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Thresholds = Thresholds {
        never_seen_warn: 300,
        never_seen: 600,
        inactive_warn: 300,
        inactive_error: 600,
        introspection_notice: 900,
        introspection_warn: 1200,
        introspection_error: 1800,
        deepwork_checkpoint: 600,
    };

    fn signs() -> SignsOfLife {
        SignsOfLife {
            agent: Subject::parse("agent:main").unwrap(),
            started_at: Timestamp(0),
            expected: true,
            last_activity: None,
            last_checkpoint: None,
            last_introspection: None,
            last_heartbeat: None,
            last_wait: None,
            last_seen: None,
            last_deepwork_end: None,
            deep_work: None,
            duty_broken_at: None,
            was_started: false,
            counts_from: None,
            has_declared_work: false,
        }
    }

    fn check(signs: &SignsOfLife, now: i64, expected: &[(Code, Level)]) {
        let found: Vec<_> = findings(signs, &LIMITS, Timestamp(now), &AudibleTime::default())
            .iter()
            .map(|f| (f.code, f.level))
            .collect();
        assert_eq!(found, expected, "at {now}");
    }

    #[test]
    fn every_limit_is_still_in_time_and_the_next_second_is_not() {
        check(&signs(), 300, &[]);
        check(&signs(), 301, &[(Code::NeverSeen, Level::Warn)]);
        check(&signs(), 600, &[(Code::NeverSeen, Level::Warn)]);
        check(&signs(), 601, &[(Code::NeverSeen, Level::Error)]);
        check(&SignsOfLife { expected: false, ..signs() }, 100_000, &[]);
        let seen = SignsOfLife { last_checkpoint: Some(Timestamp(0)), ..signs() };
        check(&seen, 300, &[]);
        check(&seen, 301, &[(Code::Inactive, Level::Warn)]);
        check(&seen, 600, &[(Code::Inactive, Level::Warn)]);
        check(&seen, 601, &[(Code::Inactive, Level::Error)]);
        // A heartbeat counts like a checkpoint, unless nothing is expected.
        let beating = SignsOfLife { last_heartbeat: Some(Timestamp(400)), ..signs() };
        check(&beating, 1000, &[(Code::Inactive, Level::Warn)]);
        check(&beating, 1001, &[(Code::Inactive, Level::Error)]);
        check(&SignsOfLife { expected: false, ..beating.clone() }, 100_000, &[]);
        check(&SignsOfLife { last_heartbeat: Some(Timestamp(400)), ..seen }, 700, &[]);
        // An activity log and no introspection yet; the checkpoint prevents INACTIVE.
        let at = |now: i64| SignsOfLife {
            last_activity: Some(Timestamp(0)),
            last_checkpoint: Some(Timestamp(now)),
            ..signs()
        };
        for (now, level) in [(901, Level::Notice), (1201, Level::Warn), (1801, Level::Error)] {
            check(&at(now), now, &[(Code::IntrospectionOverdue, level)]);
        }
        check(&at(900), 900, &[]);
        let after_work = SignsOfLife { last_deepwork_end: Some(Timestamp(1000)), ..at(1901) };
        check(&after_work, 1901, &[(Code::IntrospectionOverdue, Level::Notice)]);
        check(&SignsOfLife { last_checkpoint: Some(Timestamp(1900)), ..after_work }, 1900, &[]);
        check(
            &SignsOfLife { duty_broken_at: Some(Timestamp(0)), ..at(5) },
            5,
            &[(Code::IntrospectionDuty, Level::Error)],
        );
        // Checkpoints alone do not replace introspections, and neither does a start.
        let checked = SignsOfLife { last_checkpoint: Some(Timestamp(1801)), ..signs() };
        check(&checked, 1801, &[(Code::IntrospectionOverdue, Level::Error)]);
        let started = SignsOfLife { was_started: true, ..signs() };
        check(&started, 1801, &[(Code::NeverSeen, Level::Error), (Code::IntrospectionOverdue, Level::Error)]);
        // An agent that was started again has the whole time again.
        let again =
            SignsOfLife { started_at: Timestamp(5000), was_started: true, counts_from: Some(Timestamp(5000)), ..at(0) };
        check(&again, 5300, &[]);
        check(&again, 5301, &[(Code::Inactive, Level::Warn)]);
    }

    #[test]
    fn a_finding_says_since_when_it_was_due() {
        let seen = SignsOfLife { last_checkpoint: Some(Timestamp(100)), ..signs() };
        let found = findings(&seen, &LIMITS, Timestamp(800), &AudibleTime::default());
        assert_eq!(
            found.iter().map(|f| (f.code, f.due_at)).collect::<Vec<_>>(),
            [(Code::Inactive, Some(Timestamp(700)))]
        );
    }

    #[test]
    fn deep_work_suspends_what_it_says_and_no_longer() {
        let work = |mode, until| Some(DeclaredDeepWork { mode, started_at: Timestamp(0), until });
        let flexible = |checkpoint: Option<i64>| SignsOfLife {
            last_activity: Some(Timestamp(0)),
            last_checkpoint: checkpoint.map(Timestamp),
            deep_work: work(DeepWorkMode::Flexible, None),
            ..signs()
        };
        check(&flexible(None), 600, &[]);
        check(&flexible(None), 601, &[(Code::DeepworkUnchecked, Level::Error)]);
        check(&flexible(Some(5000)), 5600, &[]);
        check(&flexible(Some(5000)), 5601, &[(Code::DeepworkUnchecked, Level::Error)]);
        let strict = SignsOfLife {
            last_activity: Some(Timestamp(0)),
            deep_work: work(DeepWorkMode::Strict, Some(Timestamp(3600))),
            ..signs()
        };
        check(&strict, 3600, &[]);
        let back = [(Code::Inactive, Level::Error), (Code::IntrospectionOverdue, Level::Error)];
        check(&strict, 3601, &back);
    }

    #[test]
    fn nothing_counts_from_before_it_could_be_heard() {
        let seen = SignsOfLife { last_checkpoint: Some(Timestamp(0)), ..signs() };
        let codes = |now: i64, armed: i64| {
            findings(
                &seen,
                &LIMITS,
                Timestamp(now),
                &AudibleTime { from: Some(Timestamp(armed)), ..AudibleTime::default() },
            )
            .len()
        };
        assert_eq!((codes(10_000, 10_000), codes(10_300, 10_000), codes(10_301, 10_000)), (0, 0, 1));
    }
}
