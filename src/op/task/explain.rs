//! `hf-task explain`: why a task is in its current state, as a chain of reasons.

use crate::base::{EntityType, Result, Subject, Timestamp, limits, text};
use crate::machine::Phase;
use crate::op::Context;
use crate::op::kernel::View;
use crate::policy::rules::{Blocker, blockers};
use crate::policy::{approval, project};
use crate::state::{Entity, State};

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
    let flag = vault.stop_flag()?;
    let view = View::open(ctx, &vault)?;
    let state = view.state();
    let subject = state.find(&request.reference, EntityType::Task)?;
    let task = state.entity(&subject).expect("it was resolved").into_owned();
    let mut chain = Chain { view: &view, state, steps: Vec::new(), seen: Vec::new() };
    match (view.recorded().entity(&Subject::SYSTEM).filter(|system| system.phase == Phase::Stopped), flag) {
        (Some(system), _) => {
            let system = system.as_system();
            let (by, why) = (system.stopped_by().unwrap_or_default(), system.stop_reason().unwrap_or_default());
            chain.push(format!("everything was stopped at {} by {by}: {why}", time_text(system.stopped_at())));
        }
        (None, Some(flag)) => chain.push(format!("everything was stopped by {}: {}", flag.by, flag.reason)),
        (None, None) => {}
    }
    chain.project(&task);
    chain.task(&task)?;
    let mut because = chain.steps;
    if because.len() > CHAIN_MAX {
        because.truncate(CHAIN_MAX);
        because.push("… (chain cut)".to_owned());
    }
    Ok(ExplainOutcome { task, because })
}

/// A time as text; empty if it is unknown.
fn time_text(time: Option<Timestamp>) -> String {
    time.map(|time| time.to_string()).unwrap_or_default()
}

struct Chain<'a> {
    view: &'a View<'a>,
    state: &'a State,
    steps: Vec<String>,
    seen: Vec<Subject>,
}

impl Chain<'_> {
    fn push(&mut self, step: String) {
        self.steps.push(step);
    }

    /// When an entity got into its current phase.
    fn since(&self, entity: &Entity) -> Result<String> {
        let event = self.view.log().find(entity.last_event)?;
        Ok(match (event, self.view.due_of(&entity.subject)) {
            (Some(event), _) => event.timestamp.to_string(),
            (None, Some(due)) => format!("{} (due: {})", due.at, due.why()),
            (None, None) => "an unknown time".to_owned(),
        })
    }

    /// Adds why its project is paused or archived.
    fn project(&mut self, task: &Entity) {
        let project = project::project_of(task).and_then(|project| self.state.entity(&project));
        let Some(project) = project.filter(|project| project.phase != Phase::Active) else { return };
        let (name, project) = (project.subject.id(), project.as_project());
        self.steps.push(match project.phase {
            Phase::Archived => format!("project {name} was archived at {}", time_text(project.archived_at())),
            _ => {
                let (since, by, why) = (time_text(project.paused_at()), project.paused_by(), project.pause_reason());
                format!(
                    "project {name} was paused at {since} by {}: {}",
                    by.unwrap_or_default(),
                    why.unwrap_or_default()
                )
            }
        });
    }

    fn task(&mut self, task: &Entity) -> Result<()> {
        if self.seen.contains(&task.subject) || self.steps.len() > CHAIN_MAX {
            return Ok(());
        }
        self.seen.push(task.subject.clone());
        let since = self.since(task)?;
        let (name, known) = (task.name(), task.as_task());
        match task.phase {
            Phase::Proposed | Phase::Ready => {
                self.push(format!("{name} has been {} since {since}", task.phase));
                let blockers = blockers(self.state, task);
                if blockers.is_empty() && task.phase == Phase::Ready {
                    self.push(format!("{name} has not been claimed"));
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
            }
            Phase::Running => {
                let until = self.until(task);
                self.push(format!("{name} is claimed by {}{until}", known.recorded_holder().unwrap_or("nobody")));
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
                self.push(match phase {
                    Phase::Succeeded => format!("{name} succeeded at {since}"),
                    Phase::Aborted => format!("{name} was aborted at {since}{why}"),
                    Phase::Archived => format!("{name} was archived at {since}"),
                    _ => format!("{name} has been {phase} since {since}{why}"),
                });
                if let Some(failure) = known.failure() {
                    let class = known.error_class().unwrap_or_default();
                    let retries = match known.retry_count() {
                        0 => "not retried".to_owned(),
                        1 => "retried once".to_owned(),
                        retries => format!("retried {retries} times"),
                    };
                    let what = if phase == Phase::Succeeded { "an earlier attempt" } else { "it" };
                    self.push(format!("{what} failed ({class}): {failure}; {retries}"));
                }
                self.successor(task);
            }
        }
        Ok(())
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

    /// Adds the task that replaces this one because its result was rejected.
    fn successor(&mut self, task: &Entity) {
        let made = self.state.made_for(&task.subject, EntityType::Task);
        if let Some(next) = made.iter().find(|next| next.as_task().rework_of().as_ref() == Some(&task.subject)) {
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
                let summary =
                    text::cut(decision.as_decision().summary().unwrap_or_default(), limits::SUMMARY_MAX_CHARS);
                let since = time_text(decision.as_decision().requested_at());
                self.push(format!("{} has been open since {since}: {summary}", decision.name()));
            }
        }
    }
}
