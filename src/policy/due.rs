//! What is due: the one place that compares a time with a limit.
//!
//! `Moment::due` is a pure function of the state, the settings, the moment and the machine. The watchdog, transactions, hf-status
//! and the audit all ask it, so that one moment has one answer (`tests/e2e/rules/lateness.rs`). "At" its limit something is still
//! in time; it is due from the next second on.
//!
//! Leases, silence and sessions go by the time that the machine was awake; the rest goes by the calendar. Where work
//! stands still (a paused project, a strict deep work of the holder, a machine that was off) leases and runs begin again,
//! whole, when it goes on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::code::Code;
use super::project;
use super::rules::Step;
use super::settings::{Setting, Settings};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, Timestamp, Ulid};
use crate::event::kind::Claim;
use crate::event::{Draft, Kind};
use crate::machine::Phase;
use crate::state::{Deadline, DeadlineQuery, Entity, State, Timer};

/// Who acts when time has passed.
pub const WATCHDOG: &str = "watchdog";
/// A supervised run is silent after so many intervals without a heartbeat.
pub const SILENT_INTERVALS: u64 = 3;
/// Tasks that are archived in one go.
const ARCHIVE_MAX: usize = 1000;

/// What the machine knows that is not in the log: collected before a lock is taken.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// How jobs stand that were looked at. Of the others nothing is known, and nothing is due.
    pub jobs: BTreeMap<EntityId, JobLife>,
}

/// Whether somebody looks after a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobLife {
    /// Its supervisor lives, and ends it by itself.
    Supervised,
    /// Nobody does.
    Alone,
}

/// A rule: what runs out for which type, and the event that records it.
struct Rule {
    timer: Timer,
    entity: EntityType,
    code: Code,
    kind: Kind,
    reason: Option<&'static str>,
    /// Whether it stands still while its project or its holder does.
    stands_still: bool,
}

#[rustfmt::skip]
const RULES: &[Rule] = &[
    Rule { timer: Timer::Lease, entity: EntityType::Task, code: Code::LeaseExpired, kind: Kind::ClaimExpired, reason: None, stands_still: true },
    Rule { timer: Timer::Lease, entity: EntityType::Run, code: Code::LeaseExpired, kind: Kind::RunTimedOut, reason: Some("silent"), stands_still: true },
    Rule { timer: Timer::Silence, entity: EntityType::Run, code: Code::RunSilent, kind: Kind::RunTimedOut, reason: Some("silent"), stands_still: true },
    Rule { timer: Timer::Overtime, entity: EntityType::Run, code: Code::RunOvertime, kind: Kind::RunTimedOut, reason: Some("overtime"), stands_still: true },
    Rule { timer: Timer::Approval, entity: EntityType::Decision, code: Code::ApprovalOverdue, kind: Kind::ApprovalTimedOut, reason: None, stands_still: false },
    Rule { timer: Timer::Session, entity: EntityType::Session, code: Code::SessionExpired, kind: Kind::SessionExpired, reason: None, stands_still: false },
    Rule { timer: Timer::DeepWork, entity: EntityType::DeepWork, code: Code::DeepworkExpired, kind: Kind::DeepWorkExpired, reason: None, stands_still: false },
    Rule { timer: Timer::Archive, entity: EntityType::Task, code: Code::ArchiveDue, kind: Kind::TaskArchived, reason: None, stands_still: false },
];

/// Timers whose end takes a claim from its holder.
const OF_CLAIMS: &[Timer] = &[Timer::Lease, Timer::Silence, Timer::Overtime];

/// Something whose time is over, and the event that says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    pub code: Code,
    pub kind: Kind,
    pub subject: Subject,
    /// What it is called.
    pub name: String,
    /// When its time was over.
    pub at: Timestamp,
    /// How long it has lasted, in seconds.
    pub seconds: u64,
    /// Whose it was: the holder of a claim, the agent of a session.
    pub whose: Option<String>,
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

    /// In a few words, for who looks before it is recorded.
    pub fn why(&self) -> String {
        let whose = self.whose.as_ref().map(|whose| format!(" of {whose}")).unwrap_or_default();
        let what = match self.code {
            Code::LeaseExpired => "lease",
            Code::SessionExpired => "session",
            Code::ApprovalOverdue => "approval",
            Code::DeepworkExpired => "deep work",
            Code::ArchiveDue => "time to be archived",
            _ => "run",
        };
        let over = match self.code {
            Code::RunSilent => "fell silent at",
            Code::RunOvertime => "exceeded its time limit at",
            Code::ApprovalOverdue => "was due at",
            Code::ArchiveDue => "came at",
            _ => "expired",
        };
        format!("{what}{whose} {over} {}", self.at)
    }
}

/// A moment, and everything that its answers depend on.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    pub state: &'a State,
    pub settings: &'a Settings,
    pub now: Timestamp,
    pub machine: &'a Machine,
}

impl Moment<'_> {
    /// What is due of these timers, in one project if it is named; at most so many of each, the oldest first.
    pub fn due(&self, timers: &[Timer], project: Option<&Subject>, most: usize) -> Vec<Due> {
        let projects = match project {
            Some(project) => vec![Some(project.clone())],
            None => self.projects(),
        };
        let mut all = Vec::new();
        for timer in timers {
            let most = if *timer == Timer::Archive { most.min(ARCHIVE_MAX) } else { most };
            projects.iter().for_each(|project| all.extend(self.due_in(*timer, project.as_ref(), most)));
        }
        // What is over in two ways was over with the first.
        let mut first: BTreeMap<Subject, Timestamp> = BTreeMap::new();
        for due in &all {
            let at = first.entry(due.subject.clone()).or_insert(due.at);
            *at = (*at).min(due.at);
        }
        let mut seen: BTreeSet<Subject> = BTreeSet::new();
        all.retain(|due| first[&due.subject] == due.at && seen.insert(due.subject.clone()));
        all
    }

    /// What is due of the claims of a project, the oldest first.
    pub fn due_claims(&self, project: Option<&Subject>, most: usize) -> Vec<Due> {
        let mut claims = self.due(OF_CLAIMS, project, most);
        claims.sort_by_key(|due| due.at);
        claims.truncate(most);
        claims
    }

    /// Whether the time of an entity is over, and by which rule.
    pub fn due_of(&self, entity: &Entity) -> Option<Due> {
        let over = entity.deadlines().into_iter().filter_map(|deadline| self.judge(entity, &deadline));
        over.min_by_key(|due| due.at)
    }

    /// Until when a task's claim holds, as far as that is known; nothing while it stands still.
    pub fn held_until(&self, task: &Entity) -> Option<Timestamp> {
        let run = task.as_task().last_run().and_then(|run| self.state.entity(&run));
        let run = run.filter(|_| task.phase == Phase::Running);
        let entity = run.as_deref().unwrap_or(task);
        let lease = entity.deadlines().into_iter().find(|deadline| deadline.timer == Timer::Lease)?;
        self.until(entity, &lease).map(|(_, until)| until)
    }

    /// Every project that something can belong to, and none.
    fn projects(&self) -> Vec<Option<Subject>> {
        let mut all = vec![None, Some(project::main())];
        if self.state.tally().made(EntityType::Project) > 0 {
            let known = self.state.entities(EntityType::Project, None, usize::MAX);
            let others = known.into_iter().map(|project| project.subject).filter(|other| *other != project::main());
            all.extend(others.map(Some));
        }
        all
    }

    fn due_in(&self, timer: Timer, project: Option<&Subject>, most: usize) -> Vec<Due> {
        let id = project.map(Subject::id);
        let mut found = Vec::new();
        for limit in self.state.limits(id, timer) {
            let length = if limit == 0 { self.limit(timer) } else { limit };
            let length = if timer == Timer::DeepWork { length.min(self.shortest_strict()) } else { length };
            let until = self.clock(timer).saturating_sub_unsigned(length).saturating_sub(1);
            let stands_still = RULES.iter().any(|rule| rule.timer == timer && rule.stands_still);
            if stands_still && self.is_put_off(timer, project, limit, length) {
                continue;
            }
            found.extend(self.oldest_due(&DeadlineQuery { project: id, timer, limit, until, most }));
        }
        found
    }

    /// The time that a timer goes by.
    fn clock(&self, timer: Timer) -> i64 {
        if timer.stops_in_sleep() { self.now.0 - self.lost_seconds() } else { self.now.0 }
    }

    /// Seconds that were lost up to now.
    fn lost_seconds(&self) -> i64 {
        self.state.tally().clock.lost_seconds
    }

    /// A limit that the settings say.
    fn limit(&self, timer: Timer) -> u64 {
        const HOUR_SECONDS: u64 = 60 * 60;
        match timer {
            Timer::Silence => self.settings.count(Setting::HeartbeatIntervalSeconds).saturating_mul(SILENT_INTERVALS),
            Timer::Approval => self.settings.count(Setting::ApprovalTimeoutHours).saturating_mul(HOUR_SECONDS),
            Timer::Archive => self.settings.count(Setting::ArchiveAfterDays).saturating_mul(24 * HOUR_SECONDS),
            Timer::Lease | Timer::Overtime | Timer::Session | Timer::DeepWork => 0,
        }
    }

    /// The shortest time after which the settings end a strict deep work, whoever's it is.
    fn shortest_strict(&self) -> u64 {
        let own = self.settings.agents.values().filter_map(|own| own.get(&Setting::StrictMaxMinutes)?.as_u64());
        own.chain([self.settings.count(Setting::StrictMaxMinutes)]).min().unwrap_or(0).saturating_mul(60)
    }

    /// What is due of a query. More is read only where something that stands still comes first.
    fn oldest_due(&self, query: &DeadlineQuery<'_>) -> Vec<Due> {
        let DeadlineQuery { timer, limit, most, .. } = *query;
        let is_asked = |deadline: &Deadline| deadline.timer == timer && deadline.limit.unwrap_or(0) == limit;
        let mut read = most;
        loop {
            let entities = self.state.counting_from(&DeadlineQuery { most: read, ..*query });
            let due = entities.iter().filter_map(|entity| {
                let deadline = entity.deadlines().into_iter().find(is_asked)?;
                self.judge(entity, &deadline)
            });
            let found: Vec<Due> = due.take(most).collect();
            if found.len() == most || entities.len() < read {
                return found;
            }
            read = read.saturating_mul(2);
        }
    }

    /// Whether a project rests, and nothing of it was over when it came to rest: then it is skipped as a whole.
    fn is_put_off(&self, timer: Timer, project: Option<&Subject>, limit: u64, length: u64) -> bool {
        let project = project.and_then(|project| self.state.entity(project));
        let Some(project) = project.filter(|project| project.phase != Phase::Active) else { return false };
        let lost = if timer.stops_in_sleep() { project.lost_seconds } else { 0 };
        let id = Some(project.subject.id());
        let query = DeadlineQuery { project: id, timer, limit, until: i64::MAX, most: 1 };
        let oldest = self.state.counting_from(&query).into_iter().flat_map(|entity| entity.deadlines());
        let oldest = oldest.filter(|deadline| deadline.timer == timer).map(|deadline| deadline.from).min();
        let paused = project.as_project().paused_at().map(|paused| paused.0 - lost);
        oldest.zip(paused).is_none_or(|(from, paused)| paused <= from.saturating_add_unsigned(length))
    }

    /// When the machine was last started, by a timer's clock: nobody could be heard before.
    fn booted(&self, timer: Timer) -> i64 {
        let booted = self.state.tally().clock.booted;
        booted.filter(|_| matches!(timer, Timer::Lease | Timer::Silence)).unwrap_or(i64::MIN)
    }

    /// When the project of something rested: from when, and until when if that is over.
    fn rests(&self, timer: Timer, project: Option<&Subject>) -> Vec<(i64, Option<i64>)> {
        let Some(project) = project.and_then(|project| self.state.entity(project)) else { return Vec::new() };
        let lost = if timer.stops_in_sleep() { project.lost_seconds } else { 0 };
        let by_its_clock = |time: Option<Timestamp>| time.map(|time| time.0 - lost);
        let project = project.as_project();
        let (paused, resumed) = (by_its_clock(project.paused_at()), by_its_clock(project.resumed_at()));
        let is_at_work = project.phase == Phase::Active;
        // Of an earlier rest only its end is known.
        let earlier = if is_at_work { by_its_clock(project.resumed_before()) } else { resumed };
        let earlier = earlier.map(|resumed| (i64::MIN, Some(resumed)));
        let rest = paused.map(|paused| (paused, resumed.filter(|_| is_at_work)));
        // One that is closed for good without a pause rests, too.
        let closed = (!is_at_work && paused.is_none()).then_some((i64::MIN, None));
        earlier.into_iter().chain(rest).chain(closed).collect()
    }

    /// The same for who holds it: a strict deep work.
    fn dives(&self, timer: Timer, holder: Option<&str>) -> Vec<(i64, Option<i64>)> {
        let agent = holder.and_then(|holder| Subject::parse(holder).ok()).filter(|s| s.entity == EntityType::Agent);
        let Some(agent) = agent.and_then(|agent| self.state.entity(&agent)) else { return Vec::new() };
        let lost = if timer.stops_in_sleep() { self.lost_seconds() } else { 0 };
        let by_its_clock = |time: Option<Timestamp>| time.map(|time| time.0 - lost);
        let agent = agent.as_agent();
        let (Some(since), Some(until)) = (by_its_clock(agent.quiet_since()), by_its_clock(agent.quiet_until())) else {
            return Vec::new();
        };
        // However it was declared, nobody is quiet for longer than the settings allow.
        let most = self.settings.for_agent(agent.subject.id()).count(Setting::StrictMaxMinutes).saturating_mul(60);
        let until = until.min(since.saturating_add_unsigned(most));
        let earlier =
            by_its_clock(agent.quiet_before()).filter(|before| *before <= since).map(|before| (i64::MIN, Some(before)));
        earlier.into_iter().chain([(since, Some(until).filter(|until| self.clock(timer) > *until))]).collect()
    }

    /// The moment from which a deadline counts, by its own clock, and the one at which it is over. Nothing while it
    /// stands still.
    fn until(&self, entity: &Entity, deadline: &Deadline) -> Option<(i64, Timestamp)> {
        let Deadline { timer, limit, mut from } = *deadline;
        let mut limit = limit.unwrap_or_else(|| self.limit(timer));
        if timer == Timer::DeepWork {
            let settings = self.settings.for_agent(entity.agent_id().unwrap_or_default());
            limit = limit.min(settings.count(Setting::StrictMaxMinutes).saturating_mul(60));
        }
        if rule(timer, entity.subject.entity).is_some_and(|rule| rule.stands_still) {
            let task = task_of(self.state, entity);
            let holder = task.as_ref().and_then(|task| task.as_task().last_holder());
            let project = entity.project.as_ref().map(project::subject);
            from = from.max(self.booted(timer));
            let mut still = self.rests(timer, project.as_ref());
            still.extend(self.dives(timer, holder));
            still.sort_unstable();
            for (began, ended) in still {
                // What was over before it stood still stays over.
                if began <= from.saturating_add_unsigned(limit) {
                    from = from.max(ended?);
                }
            }
        }
        let over = from.saturating_add_unsigned(limit);
        let lost = if timer.stops_in_sleep() { self.lost_seconds() } else { 0 };
        Some((from, Timestamp(over.saturating_add(lost))))
    }

    fn judge(&self, entity: &Entity, deadline: &Deadline) -> Option<Due> {
        let rule = rule(deadline.timer, entity.subject.entity)?;
        if rule.timer == Timer::DeepWork && entity.as_deep_work().mode() != Some("strict") {
            return None;
        }
        let (from, at) = self.until(entity, deadline)?;
        if self.now <= at {
            return None;
        }
        let task = task_of(self.state, entity).filter(|_| rule.stands_still);
        if let Some(job) = task.as_ref().filter(|task| task.is_job()) {
            // Its life is in kernel locks, not in the log.
            let id = EntityId::parse(job.subject.id()).ok()?;
            self.machine.jobs.get(&id).filter(|life| **life == JobLife::Alone)?;
        }
        let agent = entity.agent_id().map(str::to_owned);
        let holder = task.and_then(|task| task.as_task().last_holder().map(str::to_owned));
        Some(Due {
            code: rule.code,
            kind: rule.kind,
            subject: entity.subject.clone(),
            name: entity.name(),
            at,
            seconds: self.clock(deadline.timer).saturating_sub(from).max(0) as u64,
            whose: holder.or_else(|| agent.as_ref().map(|agent| format!("agent:{agent}"))),
            reason: rule.reason,
            agent: agent.filter(|_| rule.timer == Timer::DeepWork),
            parent: entity.last_event,
        })
    }

    /// Refuses a step that time forbids: a time-out before its time, and an act on what is over.
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
            let why = format!("the session expired at {}", due.at);
            return Err(Error::refused(Reason::SessionVoid, why));
        }
        self.check_claim(step)
    }

    /// A time-out is legal however late, and never before its time.
    fn check_timeout(&self, step: &Step<'_>, entity: &Entity) -> Result<()> {
        // A person may put a task away whenever they like.
        if step.kind == Kind::TaskArchived && step.actor.kind != ActorKind::Core {
            return Ok(());
        }
        let said = step.payload.get("due_at").and_then(Value::as_str).and_then(Timestamp::parse);
        let of_kind = |deadline: &Deadline| {
            rule(deadline.timer, entity.subject.entity).is_some_and(|rule| rule.kind == step.kind)
        };
        let deadlines: Vec<Deadline> = entity.deadlines().into_iter().filter(of_kind).collect();
        let why = step.text("reason");
        let is_said = |due: &Due| Some(due.at) == said && (due.reason.is_none() || due.reason == why);
        if deadlines.iter().filter_map(|deadline| self.judge(entity, deadline)).any(|due| is_said(&due)) {
            return Ok(());
        }
        let until = deadlines.iter().filter_map(|deadline| self.until(entity, deadline)).map(|(_, until)| until).min();
        let name = entity.name();
        let why = match until {
            Some(until) if self.now > until => format!("{name} is overdue since {until}; {} must say so", step.kind),
            Some(until) => format!("{name} is not overdue before {until}"),
            None => format!("{name} has no time limit now"),
        };
        Err(Error::refused(Reason::NotDue, why))
    }

    /// Nothing rests on a claim whose time is over.
    fn check_claim(&self, step: &Step<'_>) -> Result<()> {
        // What only follows rests on its cause.
        let follows = *step.actor == Actor::core(super::REACTOR);
        let acts = step.kind.row().claim == Claim::Needs && !follows;
        let Some(task) = acts.then(|| step.claimed_task(self.state)).flatten().filter(|task| !task.is_job()) else {
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

fn rule(timer: Timer, entity: EntityType) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.timer == timer && rule.entity == entity)
}

/// The task that something is, or belongs to.
fn task_of(state: &State, entity: &Entity) -> Option<Entity> {
    match entity.subject.entity {
        EntityType::Task => Some(entity.clone()),
        EntityType::Run => state.entity(&entity.as_run().task()?).map(|task| task.into_owned()),
        _ => None,
    }
}

fn is_of_job(state: &State, entity: &Entity) -> bool {
    task_of(state, entity).is_some_and(|task| task.is_job())
}

/// What must be settled before a request about these can be decided: they themselves, the runs of tasks and the tasks of
/// runs.
pub fn concerned<'a>(state: &State, subjects: impl Iterator<Item = &'a Subject>) -> Vec<Entity> {
    let mut found: Vec<Entity> = Vec::new();
    let mut add = |entity: Option<Entity>| {
        if let Some(entity) = entity.filter(|entity| !found.iter().any(|known| known.subject == entity.subject)) {
            found.push(entity);
        }
    };
    // What an agent holds is lost before it says anything of itself.
    let mut all: Vec<Subject> = Vec::new();
    for subject in subjects {
        all.push(subject.clone());
        if subject.entity == EntityType::Agent {
            all.extend(state.held_by(&subject.to_string()).into_iter().map(|task| task.subject));
        }
    }
    for subject in &all {
        let Some(entity) = state.entity(subject).map(|entity| entity.into_owned()) else { continue };
        let task = task_of(state, &entity);
        let run = task.as_ref().and_then(|task| task.as_task().last_run());
        let holder = task.as_ref().and_then(|task| Subject::parse(task.as_task().last_holder()?).ok());
        let agent = holder.as_ref().and_then(|holder| state.entity(holder)).map(|agent| agent.into_owned());
        let agent = Some(agent.as_ref().unwrap_or(&entity)).filter(|agent| agent.subject.entity == EntityType::Agent);
        let work = agent.and_then(|agent| agent.as_agent().deep_work());
        // A deep work that is over suspends nothing, so it comes first.
        for other in [work, run] {
            add(other.and_then(|other| state.entity(&other).map(|other| other.into_owned())));
        }
        add(task);
        add(Some(entity));
    }
    found
}
