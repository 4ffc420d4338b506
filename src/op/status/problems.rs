//! Everything that needs somebody, most urgent first, each with the command that deals with it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Context;
use super::super::watchdog::WatchdogOutcome;
use serde_json::Value;

use super::scope::Concern;
use crate::base::{EntityId, EntityType, ErrorKind, Reason, Result, ShortRef, Subject, Timestamp, limits, names, text};
use crate::job::JobLiveness;
use crate::machine::Phase;
use crate::op::job::what_is_wrong;
use crate::op::kernel::View;
use crate::policy::approval;
use crate::policy::code::Code;
use crate::policy::due::Due;
use crate::policy::liveness::{Finding, Level};
use crate::policy::settings::Setting;
use crate::policy::standing::Standing;
use crate::policy::{project, rules};
use crate::state::{Entity, State};
use crate::vault::{CONFIG_FILE, Vault};

/// After this many intervals without a tick the watchdog counts as dead.
pub const WATCHDOG_LATE_INTERVALS: u64 = 3;
/// The command that starts a watchdog, and has it started again after a reboot.
pub const WATCHDOG_INSTALL: &str = "hf-watchdog --install cron";
/// The command that starts a watchdog where there is neither cron nor systemd.
pub const WATCHDOG_LOOP: &str = "hf-watchdog --every 60";
/// The command that says why a watchdog does not run.
const WATCHDOG_CHECK: &str = "hf-watchdog --installed";
/// How many problems of one sort are listed at most.
const PROBLEMS_MAX: usize = 1000;

names! {
    /// The sorts of problems, most urgent first.
    pub enum ProblemKind {
        Stopped = "stopped",
        Escalation = "escalation",
        Job = "job",
        Artifact = "artifact",
        OverdueDecision = "overdue_decision",
        Anomaly = "anomaly",
        Decision = "decision",
        Overdue = "overdue",
        Stranded = "stranded",
        Hook = "hook",
        Settings = "settings",
        Paused = "paused",
        Watchdog = "watchdog",
    }
}

/// Something that needs somebody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub kind: ProblemKind,
    /// Since when; none if that is unknown.
    pub since: Option<Timestamp>,
    /// What it is about, by name.
    pub subject: String,
    pub what: String,
    pub remedy: Remedy,
    /// Whom it concerns.
    pub concerns: Concern,
}

/// The command that deals with a problem. Words in capitals are for the operator to fill in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// Fixed words; `{}` stands for the reference or the name.
    template: &'static str,
    /// The reference of an entity, or the name of an agent or a project.
    about: String,
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.template.replace("{}", &self.about))
    }
}

impl Remedy {
    const fn fixed(template: &'static str) -> Remedy {
        Remedy { template, about: String::new() }
    }

    fn about(template: &'static str, entity: &Entity) -> Remedy {
        let reference: Option<ShortRef> = entity.short_reference();
        let about = reference.map_or_else(|| entity.subject.id().to_owned(), |reference| reference.to_string());
        Remedy { template, about }
    }
}

/// Finds every problem, and remarks that are not problems.
pub(super) fn find(
    ctx: &Context,
    vault: &Vault,
    view: &View<'_>,
    tick: &WatchdogOutcome,
) -> Result<(Vec<Problem>, Vec<String>)> {
    let mut found = Finder { view, state: view.state(), now: ctx.now.timestamp(), problems: Vec::new() };
    found.stop();
    found.escalations();
    found.jobs(tick);
    found.artifacts();
    found.decisions();
    found.anomalies(tick);
    found.overdue();
    found.stranded();
    found.hooks();
    found.settings(vault);
    found.pauses();
    let notice = found.watchdog(vault)?;
    let unknown = Timestamp(i64::MAX);
    found.problems.sort_by_key(|problem| (problem.kind, problem.since.unwrap_or(unknown), problem.subject.clone()));
    Ok((found.problems, notice.into_iter().collect()))
}

struct Finder<'a> {
    view: &'a View<'a>,
    /// With what is due applied.
    state: &'a State,
    now: Timestamp,
    problems: Vec<Problem>,
}

impl Finder<'_> {
    /// Adds a problem that concerns everybody.
    fn add(&mut self, kind: ProblemKind, since: Option<Timestamp>, subject: String, what: String, remedy: Remedy) {
        self.problems.push(Problem { kind, since, subject, what, remedy, concerns: Concern::default() });
    }

    /// Says about which entity the problem is that was added last.
    fn about(&mut self, entity: &Entity) {
        if let Some(last) = self.problems.last_mut() {
            last.concerns = Concern::of_entity(entity);
        }
    }

    fn stop(&mut self) {
        if let Some(stop) = Standing::of_system(self.state) {
            let by = stop.by.map(|by| format!(" by {by}")).unwrap_or_default();
            let what = format!("everything is stopped{by}: {}", stop.why);
            self.add(ProblemKind::Stopped, stop.since, "system".to_owned(), what, Remedy::fixed("hf-resume --system"));
        }
    }

    fn escalations(&mut self) {
        // One that is only due has no reference yet; what is due is listed instead.
        for escalation in self.view.recorded().in_phase(EntityType::Escalation, Phase::Open, PROBLEMS_MAX) {
            let known = escalation.as_escalation();
            let target = known.about().and_then(|about| self.state.entity(&about)).map(|target| target.into_owned());
            let about = target.as_ref().map(|about| about.spoken_name()).unwrap_or_default();
            let what = match known.reason() {
                Some(reason) => format!("{about}: {}", text::cut(reason, limits::SUMMARY_MAX_CHARS)),
                None => about,
            };
            let remedy = Remedy::about("hf-decide acknowledge {} --reason TEXT", &escalation);
            self.add(ProblemKind::Escalation, known.raised_at(), escalation.name(), what, remedy);
            self.about(target.as_ref().unwrap_or(&escalation));
        }
    }

    fn jobs(&mut self, tick: &WatchdogOutcome) {
        for (task, liveness) in &tick.jobs {
            let run = task.as_task().last_run().and_then(|run| self.state.entity(&run));
            let since = run.as_ref().and_then(|run| run.as_run().last_heartbeat_at()).unwrap_or(task.created_at);
            let Some(what) = what_is_wrong(task, liveness) else { continue };
            let remedy = match liveness {
                JobLiveness::Orphaned(_) => Remedy::about("hf-job cancel {}", task),
                _ => Remedy::about("hf-job check {}", task),
            };
            self.add(ProblemKind::Job, Some(since), task.name(), what.to_owned(), remedy);
            self.about(task);
        }
    }

    fn artifacts(&mut self) {
        for artifact in self.state.in_phase(EntityType::Artifact, Phase::Corrupted, PROBLEMS_MAX) {
            let since = artifact.as_artifact().corrupted_at();
            let what = "its content differs from what was stored".to_owned();
            let remedy = Remedy::fixed("hf-verify --artifacts");
            self.add(ProblemKind::Artifact, since, artifact.name(), what, remedy);
            self.about(&artifact);
        }
    }

    /// Open decisions. One whose time is up is overdue, whether or not that is recorded.
    fn decisions(&mut self) {
        let recorded = self.view.recorded();
        for phase in [Phase::Requested, Phase::Escalated] {
            for decision in recorded.in_phase(EntityType::Decision, phase, PROBLEMS_MAX) {
                // Where nobody answered in time and that is an answer, there is nothing left to decide.
                if !approval::OPEN.contains(&self.state.phase_of(&decision.subject)) {
                    continue;
                }
                let known = decision.as_decision();
                let due = self.view.due_of(&decision.subject).map(|due| due.at);
                let (kind, since) = match known.timed_out_at().or(due) {
                    Some(timed_out) => (ProblemKind::OverdueDecision, Some(timed_out)),
                    None => (ProblemKind::Decision, known.requested_at()),
                };
                let what = text::cut(&decision.heading().unwrap_or_default(), limits::SUMMARY_MAX_CHARS);
                self.add(kind, since, decision.name(), what, Remedy::about("hf-decide show {}", &decision));
                self.about(&decision);
            }
        }
    }

    /// The rules that agents break now. What the tick found about jobs and deadlines is listed elsewhere.
    fn anomalies(&mut self, tick: &WatchdogOutcome) {
        let failing = tick.findings.iter().filter(|finding| finding.level == Level::Error);
        // Failing hooks are problems of their own.
        let concerns = |finding: &Finding| {
            let is_elsewhere = matches!(finding.code, Code::HookFailed | Code::NotTrusted);
            matches!(finding.subject.entity, EntityType::Agent | EntityType::System) && !is_elsewhere
        };
        for finding in failing.filter(|finding| concerns(finding)) {
            let since = match finding.code {
                // An id in the future says nothing about when it began.
                Code::ClockSkew => None,
                _ => Some(Timestamp(self.now.0.saturating_sub_unsigned(finding.seconds))),
            };
            let entity = self.state.entity(&finding.subject);
            let name = entity.as_ref().map_or_else(|| finding.subject.to_string(), |entity| entity.name());
            let about = finding.subject.id().to_owned();
            let remedy = Remedy { template: finding.code.remedy(), about };
            let detail = finding.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
            self.add(ProblemKind::Anomaly, since, name, format!("{}{detail}", finding.code), remedy);
            if let Some(entity) = entity {
                self.about(&entity);
            }
        }
    }

    /// Claims, runs and sessions whose time is up, and decisions that are rejected because of that.
    fn overdue(&mut self) {
        let is_elsewhere = |due: &Due| match due.code {
            Code::ApprovalOverdue => approval::OPEN.contains(&self.state.phase_of(&due.subject)),
            code => code == Code::DeepworkExpired,
        };
        let overdue: Vec<&Due> = self.view.due.iter().filter(|due| !is_elsewhere(due)).collect();
        for due in overdue {
            let entity = self.state.entity(&due.subject);
            let task = entity.as_ref().filter(|run| run.subject.entity == EntityType::Run);
            let task = task.and_then(|run| self.state.entity(&run.as_run().task()?));
            let name = task.as_ref().map_or_else(|| due.name.clone(), |task| task.name());
            let remedy = Remedy::fixed("hf-watchdog");
            self.add(ProblemKind::Overdue, Some(due.at), name, due.why(), remedy);
            // What is due may have freed the task: its holder is the one of the record.
            let recorded = task.or(entity).and_then(|entity| self.view.recorded().entity(&entity.subject));
            if let Some(recorded) = recorded {
                self.about(&recorded);
            }
        }
    }

    /// Work that a stop aborted and that something waits for: other tasks, or its requirement.
    fn stranded(&mut self) {
        for task in self.missed() {
            if !rules::was_stopped(&task) || task.as_task().rework().is_some() {
                continue;
            }
            let mut waiting = self.waiting_for(&task);
            let requirement = task.as_task().requirement().and_then(|requirement| self.state.entity(&requirement));
            // What was aborted before the approval is not part of what was approved.
            let is_missed =
                |requirement: &Entity| task.as_task().aborted_by_event() > requirement.as_requirement().approved_by();
            let requirement = requirement.filter(|r| r.phase == Phase::Approved && is_missed(r));
            waiting.extend(requirement.map(|requirement| requirement.name()));
            let what = match waiting.as_slice() {
                [] => continue,
                [one] => format!("a stop aborted it, and {one} waits for it"),
                [first, others @ ..] => format!("a stop aborted it, and {first} and {} more wait for it", others.len()),
            };
            let remedy = Remedy::about("hf-task propose --rework-of {}", &task);
            self.add(ProblemKind::Stranded, task.as_task().aborted_at(), task.name(), what, remedy);
            self.about(&task);
        }
    }

    /// The aborted tasks that something may wait for, archived since or not.
    fn missed(&self) -> Vec<Entity> {
        let mut found: BTreeMap<Subject, Entity> = BTreeMap::new();
        let mut add = |task: Entity| drop(found.insert(task.subject.clone(), task));
        self.state.in_phase(EntityType::Task, Phase::Aborted, PROBLEMS_MAX).into_iter().for_each(&mut add);
        for requirement in self.state.in_phase(EntityType::Requirement, Phase::Approved, PROBLEMS_MAX) {
            if requirement.as_requirement().unmet_tasks() > 0 {
                self.state.made_for(&requirement.subject, EntityType::Task).into_iter().for_each(&mut add);
            }
        }
        for waiting in self.state.in_phase(EntityType::Task, Phase::Proposed, PROBLEMS_MAX) {
            let ids = waiting.as_task().after().filter_map(|id| EntityId::parse(id).ok());
            let others = ids.filter_map(|id| self.state.entity(&Subject::new(EntityType::Task, id)));
            let newest = |task: Entity| rules::newest_rework(self.state, &task).unwrap_or(task);
            others.map(|other| newest(other.into_owned())).for_each(&mut add);
        }
        found.into_values().collect()
    }

    /// The tasks that wait for a task, or for one that it repeats.
    fn waiting_for(&self, task: &Entity) -> Vec<String> {
        let mut waiting = BTreeSet::new();
        for task in rules::attempts(self.state, task) {
            let depends = |other: &Entity| other.as_task().after().any(|id| id == task.subject.id());
            let made = self.state.made_for(&task.subject, EntityType::Task).into_iter();
            let proposed = made.filter(|other| other.phase == Phase::Proposed && depends(other));
            waiting.extend(proposed.map(|other| (other.ordinal, other.name())));
        }
        waiting.into_iter().map(|(_, name)| name).collect()
    }

    fn hooks(&mut self) {
        let system = self.state.entity(&Subject::SYSTEM);
        let failed = system.as_ref().and_then(|system| system.as_system().failed_hooks()).into_iter().flatten();
        for (hook, failure) in failed {
            let text = |member: &str| failure.get(member).and_then(Value::as_str).unwrap_or_default();
            let what = format!("fails: {}", text::cut(text("reason"), limits::SUMMARY_MAX_CHARS));
            let (since, remedy) = (Timestamp::parse(text("at")), Remedy::fixed("hf-config show"));
            self.add(ProblemKind::Hook, since, hook.clone(), what, remedy);
        }
    }

    /// A settings file that cannot be used or is not in force, and commands that must not be run.
    fn settings(&mut self, vault: &Vault) {
        let config = self.view.config();
        let unusable = |fault: &str| format!("cannot be used; the settings recorded last remain in force: {fault}");
        for what in config.fault().map(unusable).into_iter().chain(config.deviation()) {
            let remedy = Remedy::fixed("hf-config diff");
            self.add(ProblemKind::Settings, None, CONFIG_FILE.to_owned(), what, remedy);
        }
        if config.commands().is_empty() {
            return;
        }
        if let Err(error) = vault.check_commands(config) {
            let remedy = match error.kind {
                ErrorKind::Refused(Reason::NotTrusted) => Remedy::fixed("hf-config trust"),
                _ => Remedy::fixed("hf-config diff"),
            };
            let what = format!("are not run: {}", error.message);
            self.add(ProblemKind::Settings, None, "commands".to_owned(), what, remedy);
        }
    }

    fn pauses(&mut self) {
        for paused in self.state.in_phase(EntityType::Project, Phase::Paused, PROBLEMS_MAX) {
            let known = paused.as_project();
            let by = known.paused_by().map(|by| format!(" by {by}")).unwrap_or_default();
            let why = text::cut(known.pause_reason().unwrap_or_default(), limits::SUMMARY_MAX_CHARS);
            let remedy = match paused.subject.id() {
                project::MAIN => Remedy::fixed("hf-resume"),
                _ => Remedy::about("hf-resume --project {}", &paused),
            };
            self.add(
                ProblemKind::Paused,
                known.paused_at(),
                paused.spoken_name(),
                format!("paused{by}: {why}"),
                remedy,
            );
            self.about(&paused);
        }
    }

    /// A watchdog that is late, or that never ran although there is something to watch. Returns a notice if there is
    /// nothing to watch yet.
    fn watchdog(&mut self, vault: &Vault) -> Result<Option<String>> {
        let interval = self.view.config().count(Setting::WatchdogIntervalSeconds);
        let late_after = interval.saturating_mul(WATCHDOG_LATE_INTERVALS) as i64;
        let (since, what, remedy) = match vault.last_tick()? {
            Some(tick) if self.now.0.saturating_sub(tick.0) > late_after => {
                (Some(tick), "has not run since then", WATCHDOG_CHECK)
            }
            Some(_) => return Ok(None),
            None if self.has_something_to_watch() => (None, "has never run", WATCHDOG_INSTALL),
            None => return Ok(Some(format!("the watchdog has never run; start it with: {WATCHDOG_INSTALL}"))),
        };
        self.add(ProblemKind::Watchdog, since, "watchdog".to_owned(), what.to_owned(), Remedy::fixed(remedy));
        Ok(None)
    }

    fn has_something_to_watch(&self) -> bool {
        let tally = self.state.tally();
        let live = [(EntityType::Agent, Phase::Active), (EntityType::Run, Phase::Running)];
        // A job between two runs, as after the loss of its supervisor in a paused project.
        let between_runs = || {
            let tasks = [Phase::Assigned, Phase::Retrying];
            tasks
                .iter()
                .any(|phase| self.state.in_phase(EntityType::Task, *phase, usize::MAX).iter().any(Entity::is_job))
        };
        live.iter().any(|(entity, phase)| tally.in_phase(*entity, *phase) > 0)
            || tally.waiting_jobs() > 0
            || between_runs()
    }
}
