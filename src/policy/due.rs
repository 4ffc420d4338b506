//! What is overdue: every deadline whose expiry is recorded as an event. The limits on an agent's signs of life are in
//! `liveness`.
//!
//! `Moment::due` is a pure function of the state, the settings, the time and the machine. The watchdog, transactions
//! and hf-status all use it, so that they agree at any given time (`tests/e2e/rules/lateness.rs`). The audit uses
//! `Moment::check`, which judges recorded timeouts by the same rules. At its limit something is still in time; it is
//! due from the next second on.
//!
//! Leases, silence and sessions count only the time that the machine was awake; all other limits count calendar time.
//! While the project is paused or the holder is in strict deep work, leases, silence and overtime do not count;
//! afterwards they start again from the beginning. After a boot only leases and silence start again; overtime keeps
//! counting.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::code::Code;
use super::rules::Step;
use super::settings::{Setting, Settings};
use super::{project, ready};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, Timestamp, Ulid};
use crate::event::kind::Claim;
use crate::event::{Draft, Kind};
use crate::machine::Phase;
use crate::state::{Deadline, DeadlineQuery, Entity, State, Timer};

/// The actor that records what is due.
pub const WATCHDOG: &str = "watchdog";
/// A run without a lease is silent after this many intervals without a heartbeat.
pub const SILENT_INTERVALS: u64 = 3;
/// How many tasks are archived at a time.
const ARCHIVE_MAX: usize = 1000;

/// Facts about the machine that are not in the log, collected before the lock is taken.
#[derive(Clone, Debug, Default)]
pub struct MachineFacts {
    /// Whether jobs have a live supervisor. Jobs that are not listed were not checked and are never due.
    pub jobs: BTreeMap<EntityId, SupervisorState>,
}

/// Whether a job has a live supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupervisorState {
    /// Its supervisor is alive and will end it.
    Supervised,
    /// Its supervisor is gone.
    Unsupervised,
}

/// A rule: which timer expires for which type of entity, and the event that records it.
struct DueRule {
    timer: Timer,
    entity: EntityType,
    code: Code,
    kind: Kind,
    reason: Option<&'static str>,
    /// Whether the timer stops while work is interrupted: its project is paused, or its holder is in strict deep work.
    pauses_with_work: bool,
}

#[rustfmt::skip]
const RULES: &[DueRule] = &[
    DueRule { timer: Timer::Lease, entity: EntityType::Task, code: Code::LeaseExpired, kind: Kind::ClaimExpired, reason: None, pauses_with_work: true },
    DueRule { timer: Timer::Lease, entity: EntityType::Run, code: Code::LeaseExpired, kind: Kind::RunTimedOut, reason: Some("silent"), pauses_with_work: true },
    DueRule { timer: Timer::Silence, entity: EntityType::Run, code: Code::RunSilent, kind: Kind::RunTimedOut, reason: Some("silent"), pauses_with_work: true },
    DueRule { timer: Timer::Overtime, entity: EntityType::Run, code: Code::RunOvertime, kind: Kind::RunTimedOut, reason: Some("overtime"), pauses_with_work: true },
    DueRule { timer: Timer::Approval, entity: EntityType::Decision, code: Code::ApprovalOverdue, kind: Kind::ApprovalTimedOut, reason: None, pauses_with_work: false },
    DueRule { timer: Timer::Session, entity: EntityType::Session, code: Code::SessionExpired, kind: Kind::SessionExpired, reason: None, pauses_with_work: false },
    DueRule { timer: Timer::DeepWork, entity: EntityType::DeepWork, code: Code::DeepworkExpired, kind: Kind::DeepWorkExpired, reason: None, pauses_with_work: false },
    DueRule { timer: Timer::Archive, entity: EntityType::Task, code: Code::ArchiveDue, kind: Kind::TaskArchived, reason: None, pauses_with_work: false },
];

/// Timers that end a claim when they expire.
const CLAIM_TIMERS: &[Timer] = &[Timer::Lease, Timer::Silence, Timer::Overtime];

/// Something that is overdue, and the event that records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub code: Code,
    pub kind: Kind,
    pub subject: Subject,
    /// The name of the subject.
    pub name: String,
    /// When it became due.
    pub at: Timestamp,
    /// Seconds since its timer started.
    pub seconds: u64,
    /// The holder of the claim, or the agent of the session or deep work.
    pub owner: Option<String>,
    reason: Option<&'static str>,
    agent: Option<String>,
    parent: Ulid,
}

impl Due {
    /// The event that records it.
    pub fn draft(&self) -> Draft {
        let mut payload = Map::from_iter([("due_at".to_owned(), self.at.to_string().into())]);
        payload.extend(self.reason.map(|reason| ("reason".to_owned(), reason.into())));
        payload.extend(self.agent.as_ref().map(|agent| ("agent_id".to_owned(), agent.as_str().into())));
        Draft {
            kind: self.kind,
            subject: self.subject.clone(),
            actor: Actor::core(WATCHDOG),
            parents: vec![self.parent],
            key: None,
            payload,
        }
    }

    /// A short description, for readers who look before it is recorded.
    pub fn why(&self) -> String {
        let owner = self.owner.as_ref().map(|owner| format!(" of {owner}")).unwrap_or_default();
        let what = match self.code {
            Code::LeaseExpired => "lease",
            Code::SessionExpired => "session",
            Code::ApprovalOverdue => "approval",
            Code::DeepworkExpired => "deep work",
            Code::ArchiveDue => "archiving",
            _ => "run",
        };
        let happened = match self.code {
            Code::RunSilent => "fell silent at",
            Code::RunOvertime => "exceeded its time limit at",
            Code::ApprovalOverdue | Code::ArchiveDue => "was due at",
            _ => "expired at",
        };
        format!("{what}{owner} {happened} {}", self.at)
    }
}

/// The age of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimAge {
    /// Seconds since it was made or renewed.
    pub seconds: u64,
    /// Seconds after which it expires.
    pub limit: u64,
}

/// A point in time, and everything else that decides what is due at it.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    pub state: &'a State,
    pub settings: &'a Settings,
    pub now: Timestamp,
    pub machine: &'a MachineFacts,
}

impl Moment<'_> {
    /// What is due by these timers, in one project if given: at most `max` of each timer and project. Oldest first, so
    /// that consequences are those that would have followed if each had been recorded in time.
    pub fn due(&self, timers: &[Timer], project: Option<&Subject>, max: usize) -> Vec<Due> {
        let projects = match project {
            Some(project) => vec![Some(project.clone())],
            None => self.projects(),
        };
        let mut all = Vec::new();
        for timer in timers {
            let max = if *timer == Timer::Archive { max.min(ARCHIVE_MAX) } else { max };
            projects.iter().for_each(|project| all.extend(self.due_in(*timer, project.as_ref(), max)));
        }
        // If two timers of an entity have expired, the first one counts.
        let mut first: BTreeMap<Subject, Timestamp> = BTreeMap::new();
        for due in &all {
            let at = first.entry(due.subject.clone()).or_insert(due.at);
            *at = (*at).min(due.at);
        }
        let mut seen: BTreeSet<Subject> = BTreeSet::new();
        all.retain(|due| first[&due.subject] == due.at && seen.insert(due.subject.clone()));
        sort(&mut all);
        all
    }

    /// The claims of a project that are due, oldest first.
    pub fn due_claims(&self, project: Option<&Subject>, max: usize) -> Vec<Due> {
        let mut claims = self.due(CLAIM_TIMERS, project, max);
        claims.truncate(max);
        claims
    }

    /// Whether no task can be claimed because of the limit of tasks in progress. What is overdue takes no place, but
    /// each job in the queue will.
    pub fn is_full(&self) -> bool {
        let (active, limit) = (ready::active(self.state), self.settings.max_concurrent_tasks());
        if active + self.state.tally().waiting_jobs() < limit {
            return false;
        }
        let overdue = self.due_claims(None, usize::MAX).len() as u64;
        let queued = ready::queue(self.state, self.settings, &|_| true).len() as u64;
        active.saturating_sub(overdue) + queued >= limit
    }

    /// What is due about an entity, if anything; the earliest if several timers have expired.
    pub fn due_of(&self, entity: &Entity) -> Option<Due> {
        let due = entity.deadlines().into_iter().filter_map(|deadline| self.judge(entity, &deadline));
        due.min_by_key(|due| due.at)
    }

    /// When the lease of a task expires; none if it has no lease, or while its timer is stopped.
    pub fn held_until(&self, task: &Entity) -> Option<Timestamp> {
        let run = task.as_task().last_run().and_then(|run| self.state.entity(&run));
        let run = run.filter(|_| task.phase == Phase::Running);
        let entity = run.as_deref().unwrap_or(task);
        let lease = entity.deadlines().into_iter().find(|deadline| deadline.timer == Timer::Lease)?;
        self.period(entity, &lease).map(|(_, until)| until)
    }

    /// How old the claim on a task is; none if it cannot expire, or while its timer is stopped.
    pub fn claim_age(&self, task: &Entity) -> Option<ClaimAge> {
        let run = task.as_task().last_run().and_then(|run| self.state.entity(&run));
        let run = run.filter(|_| task.phase == Phase::Running);
        let entity = run.as_deref().unwrap_or(task);
        let counts = |deadline: &Deadline| matches!(deadline.timer, Timer::Lease | Timer::Silence);
        let deadline = entity.deadlines().into_iter().find(counts)?;
        let (from, _) = self.period(entity, &deadline)?;
        let seconds = self.clock(deadline.timer).saturating_sub(from).max(0) as u64;
        Some(ClaimAge { seconds, limit: deadline.limit.unwrap_or_else(|| self.limit(deadline.timer)) })
    }

    /// Every project, and none for entities without a project.
    fn projects(&self) -> Vec<Option<Subject>> {
        let mut all = vec![None, Some(project::main())];
        if self.state.tally().made(EntityType::Project) > 0 {
            let known = self.state.entities(EntityType::Project, None, usize::MAX);
            let others = known.into_iter().map(|project| project.subject).filter(|other| *other != project::main());
            all.extend(others.map(Some));
        }
        all
    }

    fn due_in(&self, timer: Timer, project: Option<&Subject>, max: usize) -> Vec<Due> {
        let id = project.map(Subject::id);
        let mut found = Vec::new();
        for limit in self.state.limits(id, timer) {
            let length = if limit == 0 { self.limit(timer) } else { limit };
            let length = if timer == Timer::DeepWork { length.min(self.shortest_strict()) } else { length };
            let until = self.clock(timer).saturating_sub_unsigned(length).saturating_sub(1);
            let pauses = RULES.iter().any(|rule| rule.timer == timer && rule.pauses_with_work);
            if pauses && self.is_stopped_for_all(timer, project, limit, length) {
                continue;
            }
            found.extend(self.oldest_due(&DeadlineQuery { project: id, timer, limit, until, max }));
        }
        found
    }

    /// The current time on the clock that a timer uses.
    fn clock(&self, timer: Timer) -> i64 {
        if timer.stops_in_sleep() { self.now.0 - self.lost_seconds() } else { self.now.0 }
    }

    /// Seconds that the machine was not awake, or that the clock was moved, up to now.
    fn lost_seconds(&self) -> i64 {
        self.state.tally().clock.lost_seconds
    }

    /// The limit of a timer that the settings determine, in seconds; 0 for the others.
    fn limit(&self, timer: Timer) -> u64 {
        const HOUR_SECONDS: u64 = 60 * 60;
        match timer {
            Timer::Silence => self.settings.count(Setting::HeartbeatIntervalSeconds).saturating_mul(SILENT_INTERVALS),
            Timer::Approval => self.settings.count(Setting::ApprovalTimeoutHours).saturating_mul(HOUR_SECONDS),
            Timer::Archive => self.settings.count(Setting::ArchiveAfterDays).saturating_mul(24 * HOUR_SECONDS),
            Timer::Lease | Timer::Overtime | Timer::Session | Timer::DeepWork => 0,
        }
    }

    /// The shortest limit on strict deep work that the settings give any agent, in seconds.
    fn shortest_strict(&self) -> u64 {
        let own = self.settings.agents.values().filter_map(|own| own.get(&Setting::StrictMaxMinutes)?.as_u64());
        own.chain([self.settings.count(Setting::StrictMaxMinutes)]).min().unwrap_or(0).saturating_mul(60)
    }

    /// What is due among the entities of a query. Reads more of them only if the first ones are not due.
    fn oldest_due(&self, query: &DeadlineQuery<'_>) -> Vec<Due> {
        let DeadlineQuery { timer, limit, max, .. } = *query;
        let is_asked = |deadline: &Deadline| deadline.timer == timer && deadline.limit.unwrap_or(0) == limit;
        let mut read = max;
        loop {
            let entities = self.state.counting_from(&DeadlineQuery { max: read, ..*query });
            let due = entities.iter().filter_map(|entity| {
                let deadline = entity.deadlines().into_iter().find(is_asked)?;
                self.judge(entity, &deadline)
            });
            let found: Vec<Due> = due.take(max).collect();
            if found.len() == max || entities.len() < read {
                return found;
            }
            read = read.saturating_mul(2);
        }
    }

    /// Whether a project is not active and none of its timers had expired when it was paused, so that all of them can be
    /// skipped.
    fn is_stopped_for_all(&self, timer: Timer, project: Option<&Subject>, limit: u64, length: u64) -> bool {
        let project = project.and_then(|project| self.state.entity(project));
        let Some(project) = project.filter(|project| project.phase != Phase::Active) else { return false };
        let lost = if timer.stops_in_sleep() { project.lost_seconds } else { 0 };
        let id = Some(project.subject.id());
        let query = DeadlineQuery { project: id, timer, limit, until: i64::MAX, max: 1 };
        let oldest = self.state.counting_from(&query).into_iter().flat_map(|entity| entity.deadlines());
        let oldest = oldest.filter(|deadline| deadline.timer == timer).map(|deadline| deadline.from).min();
        let paused = project.as_project().paused_at().map(|paused| paused.0 - lost);
        oldest.zip(paused).is_none_or(|(from, paused)| paused <= from.saturating_add_unsigned(length))
    }

    /// When the machine was last booted, on a timer's clock: there could be no sign of life before.
    fn booted(&self, timer: Timer) -> i64 {
        let booted = self.state.tally().clock.booted;
        booted.filter(|_| matches!(timer, Timer::Lease | Timer::Silence)).unwrap_or(i64::MIN)
    }

    /// When a project was not active: start, and end unless that is still so.
    fn project_pauses(&self, timer: Timer, project: Option<&Subject>) -> Vec<(i64, Option<i64>)> {
        let Some(project) = project.and_then(|project| self.state.entity(project)) else { return Vec::new() };
        let lost = if timer.stops_in_sleep() { project.lost_seconds } else { 0 };
        let on_timer_clock = |time: Option<Timestamp>| time.map(|time| time.0 - lost);
        let project = project.as_project();
        let (paused, resumed) = (on_timer_clock(project.paused_at()), on_timer_clock(project.resumed_at()));
        let is_active = project.phase == Phase::Active;
        // Of the pause before, only the end is known.
        let earlier = if is_active { on_timer_clock(project.resumed_before()) } else { resumed };
        let earlier = earlier.map(|resumed| (i64::MIN, Some(resumed)));
        let latest = paused.map(|paused| (paused, resumed.filter(|_| is_active)));
        // A project can be archived without having been paused.
        let archived = (!is_active && paused.is_none()).then_some((i64::MIN, None));
        earlier.into_iter().chain(latest).chain(archived).collect()
    }

    /// When the holder was in strict deep work, as in `project_pauses`.
    fn deep_work_pauses(&self, timer: Timer, holder: Option<&str>) -> Vec<(i64, Option<i64>)> {
        let agent = holder.and_then(|holder| Subject::parse(holder).ok()).filter(|s| s.entity == EntityType::Agent);
        let Some(agent) = agent.and_then(|agent| self.state.entity(&agent)) else { return Vec::new() };
        let lost = if timer.stops_in_sleep() { self.lost_seconds() } else { 0 };
        let on_timer_clock = |time: Option<Timestamp>| time.map(|time| time.0 - lost);
        let agent = agent.as_agent();
        let (Some(since), Some(until)) = (on_timer_clock(agent.quiet_since()), on_timer_clock(agent.quiet_until()))
        else {
            return Vec::new();
        };
        // Strict deep work never counts for longer than the settings allow, whatever was declared.
        let max = self.settings.for_agent(agent.subject.id()).count(Setting::StrictMaxMinutes).saturating_mul(60);
        let until = until.min(since.saturating_add_unsigned(max));
        let earlier = on_timer_clock(agent.quiet_before())
            .filter(|before| *before <= since)
            .map(|before| (i64::MIN, Some(before)));
        // What was completed or superseded is over at once; what was declared, after its last second.
        let open = agent.deep_work().and_then(|work| self.state.entity(&work));
        let is_strict = open.is_some_and(|work| work.as_deep_work().mode() == Some("strict"));
        let is_over = !is_strict || self.clock(timer) > until;
        earlier.into_iter().chain([(since, is_over.then_some(until))]).collect()
    }

    /// When a deadline's timer started, on the timer's clock, and when it expires. None while the timer is stopped.
    fn period(&self, entity: &Entity, deadline: &Deadline) -> Option<(i64, Timestamp)> {
        let Deadline { timer, limit, mut from } = *deadline;
        let mut limit = limit.unwrap_or_else(|| self.limit(timer));
        if timer == Timer::DeepWork {
            let settings = self.settings.for_agent(entity.agent_id().unwrap_or_default());
            limit = limit.min(settings.count(Setting::StrictMaxMinutes).saturating_mul(60));
        }
        if rule(timer, entity.subject.entity).is_some_and(|rule| rule.pauses_with_work) {
            let task = task_of(self.state, entity);
            let holder = task.as_ref().and_then(|task| task.as_task().recorded_holder());
            let project = entity.project.as_ref().map(project::subject);
            from = from.max(self.booted(timer));
            let mut pauses = self.project_pauses(timer, project.as_ref());
            pauses.extend(self.deep_work_pauses(timer, holder));
            pauses.sort_unstable();
            for (began, ended) in pauses {
                // A timer that had expired before the pause stays expired.
                if began <= from.saturating_add_unsigned(limit) {
                    from = from.max(ended?);
                }
            }
        }
        let expires = from.saturating_add_unsigned(limit);
        let lost = if timer.stops_in_sleep() { self.lost_seconds() } else { 0 };
        Some((from, Timestamp(expires.saturating_add(lost))))
    }

    /// Whether a deadline of an entity is due.
    fn judge(&self, entity: &Entity, deadline: &Deadline) -> Option<Due> {
        let rule = rule(deadline.timer, entity.subject.entity)?;
        if rule.timer == Timer::DeepWork && entity.as_deep_work().mode() != Some("strict") {
            return None;
        }
        let (from, at) = self.period(entity, deadline)?;
        if self.now <= at {
            return None;
        }
        let task = task_of(self.state, entity).filter(|_| rule.pauses_with_work);
        if let Some(job) = task.as_ref().filter(|task| task.is_job()) {
            // Kernel locks, not the log, show whether its supervisor is alive.
            let id = EntityId::parse(job.subject.id()).ok()?;
            self.machine.jobs.get(&id).filter(|supervisor| **supervisor == SupervisorState::Unsupervised)?;
        }
        let agent = entity.agent_id().map(str::to_owned);
        let holder = task.and_then(|task| task.as_task().recorded_holder().map(str::to_owned));
        Some(Due {
            code: rule.code,
            kind: rule.kind,
            subject: entity.subject.clone(),
            name: entity.name(),
            at,
            seconds: self.clock(deadline.timer).saturating_sub(from).max(0) as u64,
            owner: holder.or_else(|| agent.as_ref().map(|agent| format!("agent:{agent}"))),
            reason: rule.reason,
            agent: agent.filter(|_| rule.timer == Timer::DeepWork),
            parent: entity.last_event,
        })
    }

    /// Refuses a timeout before its time, and a step that relies on an expired session or claim.
    pub fn check(&self, step: &Step<'_>) -> Result<()> {
        let Some(entity) = self.state.entity(step.subject) else {
            return self.check_claim(step);
        };
        if RULES.iter().any(|rule| rule.kind == step.kind) && !is_of_job(self.state, &entity) {
            return self.check_timeout(step, &entity);
        }
        if step.kind == Kind::SessionRenewed
            && let Some(due) = self.due_of(&entity)
        {
            let why = format!("session {} expired at {}", due.name, due.at);
            return Err(Error::refused(Reason::SessionVoid, why));
        }
        self.check_claim(step)
    }

    /// A timeout is legal at any time after its deadline, and never before.
    fn check_timeout(&self, step: &Step<'_>, entity: &Entity) -> Result<()> {
        // A person may archive a task at any time.
        if step.kind == Kind::TaskArchived && step.actor.kind != ActorKind::Core {
            return Ok(());
        }
        let due_at = step.payload.get("due_at").and_then(Value::as_str).and_then(Timestamp::parse);
        let of_kind = |deadline: &Deadline| {
            rule(deadline.timer, entity.subject.entity).is_some_and(|rule| rule.kind == step.kind)
        };
        let deadlines: Vec<Deadline> = entity.deadlines().into_iter().filter(of_kind).collect();
        let reason = step.text("reason");
        let matches = |due: &Due| Some(due.at) == due_at && (due.reason.is_none() || due.reason == reason);
        if deadlines.iter().filter_map(|deadline| self.judge(entity, deadline)).any(|due| matches(&due)) {
            return Ok(());
        }
        let until = deadlines.iter().filter_map(|deadline| self.period(entity, deadline)).map(|(_, until)| until).min();
        let name = entity.name();
        let why = match until {
            Some(until) if self.now > until => {
                format!("{name} was due at {until}; due_at or reason of {} does not match", step.kind)
            }
            Some(until) => format!("{name} is not due until {until}"),
            None => format!("{name} has no deadline"),
        };
        Err(Error::refused(Reason::NotDue, why))
    }

    /// Refuses a step that relies on an expired claim.
    fn check_claim(&self, step: &Step<'_>) -> Result<()> {
        // Reactions are judged by their cause.
        let is_reaction = *step.actor == Actor::core(super::REACTOR);
        let needs_claim = step.kind.row().claim == Claim::Needs && !is_reaction;
        let Some(task) = needs_claim.then(|| step.claimed_task(self.state)).flatten().filter(|task| !task.is_job())
        else {
            return Ok(());
        };
        let run = task.as_task().last_run().and_then(|run| self.state.entity(&run));
        let run = run.filter(|run| run.phase == Phase::Running);
        match self.due_of(&task).or_else(|| self.due_of(run.as_deref()?)).filter(|due| due.code != Code::ArchiveDue) {
            Some(due) => {
                Err(Error::refused(Reason::ClaimLost, format!("your claim on {} expired at {}", task.name(), due.at))
                    .about(task.short_reference()))
            }
            None => Ok(()),
        }
    }
}

/// Sorts by the time at which each was due; of two at the same time, the one that began first.
pub fn sort(due: &mut [Due]) {
    due.sort_by_key(|due| (due.at, due.parent));
}

fn rule(timer: Timer, entity: EntityType) -> Option<&'static DueRule> {
    RULES.iter().find(|rule| rule.timer == timer && rule.entity == entity)
}

/// The task that an entity is, or that its run belongs to.
fn task_of(state: &State, entity: &Entity) -> Option<Entity> {
    match entity.subject.entity {
        EntityType::Task => Some(entity.clone()),
        EntityType::Run => state.entity(&entity.as_run().task()?).map(|task| task.into_owned()),
        _ => None,
    }
}

/// Whether an entity is a job or a run of one.
fn is_of_job(state: &State, entity: &Entity) -> bool {
    task_of(state, entity).is_some_and(|task| task.is_job())
}

/// The tasks with these ids.
fn tasks<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<Subject> {
    ids.filter_map(|id| EntityId::parse(id).ok()).map(|id| Subject::new(EntityType::Task, id)).collect()
}

/// How many tasks that others wait for are settled with them.
const AWAITED_MAX: usize = 100;

/// Adds what proposed tasks wait for, directly or not, and the later attempts at each.
fn add_awaited(state: &State, subjects: &mut Vec<Subject>) {
    let (mut next, end) = (0, subjects.len() + AWAITED_MAX);
    while let Some(subject) = subjects.get(next).filter(|_| subjects.len() < end).cloned() {
        next += 1;
        let Some(task) = state.entity(&subject).filter(|task| task.subject.entity == EntityType::Task) else {
            continue;
        };
        let awaited = if task.phase == Phase::Proposed { tasks(task.as_task().after()) } else { Vec::new() };
        for other in awaited.into_iter().chain(task.as_task().rework()) {
            if !subjects.contains(&other) {
                subjects.push(other);
            }
        }
    }
}

/// The entities that must be settled before a request about these subjects can be decided: the subjects themselves, the
/// runs of tasks and the tasks of runs, what agents hold and have lost, what decisions are about, what proposed tasks wait
/// for, and the deep work of holders.
pub fn concerned<'a>(state: &State, subjects: impl Iterator<Item = &'a Subject>) -> Vec<Entity> {
    let mut found: Vec<Entity> = Vec::new();
    let mut add = |entity: Option<Entity>| {
        if let Some(entity) = entity.filter(|entity| !found.iter().any(|known| known.subject == entity.subject)) {
            found.push(entity);
        }
    };
    let mut all: Vec<Subject> = Vec::new();
    for subject in subjects {
        all.push(subject.clone());
        match subject.entity {
            // The tasks of an agent are settled before anything it reports about itself, and it is told what became of
            // those that it lost.
            EntityType::Agent => {
                all.extend(state.held_by(&subject.to_string()).into_iter().map(|task| task.subject));
                all.extend(state.entity(subject).iter().flat_map(|agent| tasks(agent.as_agent().lost_tasks())));
            }
            // Its answer leads to the work that it is about.
            EntityType::Decision => {
                all.extend(state.entity(subject).and_then(|decision| decision.as_decision().target()));
            }
            _ => {}
        }
    }
    add_awaited(state, &mut all);
    for subject in &all {
        let Some(entity) = state.entity(subject).map(|entity| entity.into_owned()) else { continue };
        let task = task_of(state, &entity);
        let run = task.as_ref().and_then(|task| task.as_task().last_run());
        let holder = task.as_ref().and_then(|task| Subject::parse(task.as_task().recorded_holder()?).ok());
        let agent = holder.as_ref().and_then(|holder| state.entity(holder)).map(|agent| agent.into_owned());
        let agent = Some(agent.as_ref().unwrap_or(&entity)).filter(|agent| agent.subject.entity == EntityType::Agent);
        let work = agent.and_then(|agent| agent.as_agent().deep_work());
        // Expired deep work no longer stops a timer, so it comes first.
        for other in [work, run] {
            add(other.and_then(|other| state.entity(&other).map(|other| other.into_owned())));
        }
        add(task);
        add(Some(entity));
    }
    found
}
