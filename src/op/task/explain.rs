//! `hf-task explain`: why a task is in its current state, as a chain of reasons.

use crate::base::{EntityType, Result, Subject, Timestamp, limits, text};
use crate::machine::Phase;
use crate::op::kernel::View;
use crate::op::{Context, job};
use crate::policy::rules::{Blocker, blockers};
use crate::policy::standing::{Obstacle, Standing};
use crate::policy::{approval, mission, project};
use crate::state::{Entity, State};
use crate::vault::Vault;

/// How many steps are listed; a longer chain is cut.
const CHAIN_MAX: usize = 20;

#[derive(Debug)]
pub struct ExplainOutcome {
    pub task: Entity,
    /// The reasons; each leads to the next.
    pub because: Vec<String>,
}

/// A task to explain.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// The task.
    pub reference: String,
}

/// Explains why a task is in its current state.
pub fn explain(ctx: &Context, request: ExplainRequest) -> Result<ExplainOutcome> {
    let vault = ctx.open()?;
    let view = View::open(ctx, &vault)?;
    let state = view.state();
    let subject = state.find(&request.reference, EntityType::Task)?;
    let task = state.entity(&subject).expect("it was resolved").into_owned();
    let mut chain = Chain { vault: &vault, view: &view, state, steps: Vec::new(), seen: Vec::new() };
    // What has ended does not wait for anything.
    if !is_ended(&task) {
        chain.standing(&task);
    }
    chain.task(&task)?;
    let mut because = chain.steps;
    if because.len() > CHAIN_MAX {
        because.truncate(CHAIN_MAX);
        because.push("… (chain cut)".to_owned());
    }
    Ok(ExplainOutcome { task, because })
}

/// Whether a task has ended.
fn is_ended(task: &Entity) -> bool {
    task.as_task().succeeded_at().is_some() || task.as_task().aborted_at().is_some()
}

/// A time as text; empty if it is unknown.
fn time_text(time: Option<Timestamp>) -> String {
    time.map(|time| time.to_string()).unwrap_or_default()
}

struct Chain<'a> {
    vault: &'a Vault,
    view: &'a View<'a>,
    state: &'a State,
    steps: Vec<String>,
    seen: Vec<Subject>,
}

impl Chain<'_> {
    fn push(&mut self, step: String) {
        self.steps.push(step);
    }

    /// When an entity got into its current phase; with the reason if that is only due.
    fn since(&self, entity: &Entity) -> Result<String> {
        let event = self.view.log().find(entity.last_event)?;
        Ok(match (event, self.view.changed_by(&entity.subject)) {
            (Some(event), _) => event.timestamp.to_string(),
            (None, Some(due)) => format!("{} (due: {})", due.at, due.why()),
            (None, None) => match self.view.unrecorded_stop() {
                Some(raised) => format!("{raised} (by a stop that is not recorded yet)"),
                None => "an unknown time".to_owned(),
            },
        })
    }

    /// Adds why no work goes on: a stop, or its project's pause or end.
    fn standing(&mut self, task: &Entity) {
        let project = project::project_of(task).unwrap_or_else(project::main);
        let Some(standing) = Standing::of_project(self.state, &project) else { return };
        let (since, project) = (time_text(standing.since), project.id());
        let what = match standing.obstacle {
            Obstacle::Stopped => "everything was stopped".to_owned(),
            Obstacle::Archived => return self.push(format!("project {project} was archived at {since}")),
            Obstacle::Paused => format!("project {project} was paused"),
            // Both concern a caller, not a task.
            Obstacle::SessionOver | Obstacle::TaskLimit => return,
        };
        let by = standing.by.map(|by| format!(" by {by}")).unwrap_or_default();
        let why = if standing.why.is_empty() { String::new() } else { format!(": {}", standing.why) };
        self.push(format!("{what} at {since}{by}{why}"));
    }

    fn task(&mut self, task: &Entity) -> Result<()> {
        if self.seen.contains(&task.subject) || self.steps.len() > CHAIN_MAX {
            return Ok(());
        }
        self.seen.push(task.subject.clone());
        self.describe(task)?;
        self.origin(task);
        // Only the kernel's locks know whether somebody takes care of a job.
        match job::unattended(self.vault, task) {
            Ok(None) => {}
            Ok(Some(what)) => self.push(format!("{}: {what}", task.name())),
            Err(_) => self.push(format!("{}: whether it has a supervisor is unknown", task.name())),
        }
        Ok(())
    }

    fn describe(&mut self, task: &Entity) -> Result<()> {
        let since = self.since(task)?;
        let (name, known) = (task.name(), task.as_task());
        match task.phase {
            Phase::Proposed | Phase::Ready => {
                self.push(format!("{name} has been {} since {since}", task.phase));
                let blockers = blockers(self.state, task);
                if blockers.is_empty() && task.phase == Phase::Ready {
                    let why = match mission::out_of_rounds(self.state, task) {
                        Some(mission) => format!("all rounds of {} are used up", mission.name()),
                        None => format!("{name} has not been claimed"),
                    };
                    self.push(why);
                }
                self.earlier_failure(task);
                if let Some(why) = task.as_job().changed_because() {
                    self.push(format!("it was not started: {why}"));
                }
                for blocker in blockers {
                    self.blocker(task, blocker)?;
                }
            }
            Phase::Assigned => {
                let until = self.until(task);
                self.push(format!(
                    "{name} is claimed by {}{until}, but not started",
                    known.recorded_holder().unwrap_or("nobody")
                ));
                self.priority(task);
                self.earlier_failure(task);
            }
            Phase::Running => {
                let until = self.until(task);
                self.push(format!("{name} is claimed by {}{until}", known.recorded_holder().unwrap_or("nobody")));
                self.priority(task);
                self.earlier_failure(task);
                let run = task.as_task().last_run().and_then(|run| self.state.entity(&run));
                if let Some(run) = run {
                    let step = format!(
                        "{} has been running since {}, last heartbeat {}",
                        run.name(),
                        time_text(run.as_run().started_at()),
                        time_text(run.as_run().last_heartbeat_at())
                    );
                    self.push(step);
                }
            }
            phase => {
                let why = known.abort_reason().map(|why| format!(": {why}")).unwrap_or_default();
                let by = known.aborted_by().filter(|by| !by.starts_with("core:"));
                let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
                let ended = |what: &str, at: Option<Timestamp>| format!("{name} {what} at {}", time_text(at));
                match phase {
                    Phase::Succeeded => self.push(ended("succeeded", known.succeeded_at())),
                    Phase::Aborted => self.push(format!("{name} was aborted at {since}{by}{why}")),
                    Phase::Archived => {
                        self.push(format!("{name} was archived at {since}"));
                        match known.succeeded_at() {
                            Some(at) => self.push(ended("succeeded", Some(at))),
                            None => self.push(ended("was aborted", known.aborted_at()) + &by + &why),
                        }
                    }
                    _ => self.push(format!("{name} has been {phase} since {since}")),
                }
                self.priority(task);
                self.earlier_failure(task);
                self.successor(task);
            }
        }
        Ok(())
    }

    /// Adds the constraint that put the task first when it was claimed.
    fn priority(&mut self, task: &Entity) {
        let constraint = task.as_task().constraint().and_then(|constraint| self.state.entity(&constraint));
        if let Some(constraint) = constraint {
            let text = text::cut(constraint.as_constraint().text().unwrap_or_default(), limits::SUMMARY_MAX_CHARS);
            self.push(format!("{} put it first: {text}", constraint.name()));
        }
    }

    /// Adds the last failure, and how often the task was retried.
    fn earlier_failure(&mut self, task: &Entity) {
        let known = task.as_task();
        let Some(failure) = known.failure() else { return };
        let class = known.error_class().unwrap_or_default();
        let retries = match known.retry_count() {
            0 => "not retried".to_owned(),
            1 => "retried once".to_owned(),
            retries => format!("retried {retries} times"),
        };
        // A task that failed for good was aborted because of it.
        let what = if known.failed_by().is_some() { "it" } else { "an earlier attempt" };
        self.push(format!("{what} failed ({class}): {failure}; {retries}"));
    }

    fn until(&self, task: &Entity) -> String {
        let project = project::project_of(task);
        match self.view.moment().held_until(task) {
            Some(until) => format!(" until {until}"),
            None if task.as_task().has_lease()
                && project.is_some_and(|project| project::phase(self.state, &project) == Phase::Paused) =>
            {
                " (the lease starts again when the project is resumed)".to_owned()
            }
            None => String::new(),
        }
    }

    /// Adds the task that this one repeats, and why.
    fn origin(&mut self, task: &Entity) {
        let repeated = task.as_task().rework_of().and_then(|repeated| self.state.entity(&repeated));
        if let Some(repeated) = repeated {
            let why = task.as_task().rework_reason().map(|why| format!(": {why}")).unwrap_or_default();
            self.push(format!("{} repeats {}{why}", task.name(), repeated.name()));
        }
    }

    /// Adds which results of the task were rejected, and the task that replaces it.
    fn successor(&mut self, task: &Entity) {
        // If it was still running, its failure says why.
        let has_ended = task.as_task().failed_by().is_none();
        let results = self.state.made_for(&task.subject, EntityType::Artifact).into_iter();
        for result in results.filter(|result| has_ended && result.phase == Phase::Invalidated) {
            let why = result.as_artifact().invalid_reason().map(|why| format!(": {why}")).unwrap_or_default();
            self.push(format!("its result {} was rejected{why}", result.name()));
        }
        let made = self.state.made_for(&task.subject, EntityType::Task);
        if let Some(next) = made.iter().rev().find(|next| next.as_task().rework_of().as_ref() == Some(&task.subject)) {
            self.push(format!("{} repeats the work and is {}", next.name(), next.phase));
        }
    }

    fn blocker(&mut self, task: &Entity, blocker: Blocker) -> Result<()> {
        self.push(blocker.why());
        match blocker {
            Blocker::Requirement(requirement) => self.decisions(&requirement.subject),
            Blocker::Approval => self.decisions(&task.subject),
            Blocker::Dependency(other) => return self.task(&other),
        }
        Ok(())
    }

    fn decisions(&mut self, target: &Subject) {
        for decision in self.state.made_for(target, EntityType::Decision) {
            if approval::OPEN.contains(&decision.phase) {
                let summary = text::cut(&decision.heading().unwrap_or_default(), limits::SUMMARY_MAX_CHARS);
                let since = time_text(decision.as_decision().requested_at());
                self.push(format!("{} has been open since {since}: {summary}", decision.name()));
            }
        }
    }
}
