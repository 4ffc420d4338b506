//! `hf-task explain`: in one chain, why a task stands where it stands.

use crate::base::{EntityType, Result, Subject, Timestamp, limits, text};
use crate::machine::Phase;
use crate::op::Context;
use crate::op::kernel::View;
use crate::policy::rules::{Blocker, blockers};
use crate::policy::{approval, project};
use crate::state::{Entity, State};

/// Steps of a chain; a longer one is cut.
const CHAIN_MAX: usize = 20;

#[derive(Debug)]
pub struct ExplainOutcome {
    pub task: Entity,
    /// Each step leads to the next.
    pub because: Vec<String>,
}

/// A task whose state is to be explained.
#[derive(Clone, Debug)]
pub struct ExplainRequest {
    /// The task.
    pub reference: String,
}

/// Says why a task is where it is.
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
            chain.say(format!("everything is stopped since {} by {by}: {why}", moment(system.stopped_at())));
        }
        (None, Some(flag)) => chain.say(format!("everything is stopped by {}: {}", flag.by, flag.reason)),
        (None, None) => {}
    }
    chain.project(&task);
    chain.task(&task)?;
    let mut because = chain.steps;
    if because.len() > CHAIN_MAX {
        because.truncate(CHAIN_MAX);
        because.push("… and so on".to_owned());
    }
    Ok(ExplainOutcome { task, because })
}

/// A moment as text; empty if it is not known.
fn moment(time: Option<Timestamp>) -> String {
    time.map(|time| time.to_string()).unwrap_or_default()
}

struct Chain<'a> {
    view: &'a View<'a>,
    state: &'a State,
    steps: Vec<String>,
    seen: Vec<Subject>,
}

impl Chain<'_> {
    fn say(&mut self, step: String) {
        self.steps.push(step);
    }

    /// When an entity came to be where it is.
    fn since(&self, entity: &Entity) -> Result<String> {
        let event = self.view.log().find(entity.last_event)?;
        Ok(match (event, self.view.due_of(&entity.subject)) {
            (Some(event), _) => event.timestamp.to_string(),
            (None, Some(due)) => format!("{} (due: {})", due.at, due.why()),
            (None, None) => "an unknown time".to_owned(),
        })
    }

    /// That its project is held up, and why.
    fn project(&mut self, task: &Entity) {
        let project = project::project_of(task).and_then(|project| self.state.entity(&project));
        let Some(project) = project.filter(|project| project.phase != Phase::Active) else { return };
        let (name, project) = (project.subject.id(), project.as_project());
        self.steps.push(match project.phase {
            Phase::Archived => format!("project {name} is archived since {}", moment(project.archived_at())),
            _ => {
                let (since, by, why) = (moment(project.paused_at()), project.paused_by(), project.pause_reason());
                format!(
                    "project {name} is paused since {since} by {}: {}",
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
                self.say(format!("{name} is {} since {since}", task.phase));
                let waits = blockers(self.state, task);
                if waits.is_empty() && task.phase == Phase::Ready {
                    self.say(format!("nobody has claimed {name}"));
                }
                for wait in waits {
                    self.wait(task, wait)?;
                }
            }
            Phase::Assigned => {
                let until = self.until(task);
                self.say(format!("{name} is held by {}{until}, not started", known.last_holder().unwrap_or("nobody")));
            }
            Phase::Running => {
                let until = self.until(task);
                self.say(format!("{name} is held by {}{until}", known.last_holder().unwrap_or("nobody")));
                let run = task.as_task().last_run().and_then(|run| self.state.entity(&run));
                if let Some(run) = run {
                    let step = format!(
                        "{} runs since {}, last heartbeat {}",
                        run.name(),
                        moment(run.as_run().started_at()),
                        moment(run.as_run().last_heartbeat_at())
                    );
                    self.say(step);
                }
            }
            state => {
                let why = known.abort_reason().map(|why| format!(": {why}")).unwrap_or_default();
                self.say(format!("{name} is {state} since {since}{why}"));
                if let Some(failure) = known.failure() {
                    let class = known.error_class().unwrap_or_default();
                    let retries = known.retry_count();
                    self.say(format!("it failed ({class}): {failure}; it was tried again {retries} times"));
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
                " until a lease after the resume".to_owned()
            }
            None => String::new(),
        }
    }

    /// The task that took the place of one whose result was not good.
    fn successor(&mut self, task: &Entity) {
        let made = self.state.made_for(&task.subject, EntityType::Task);
        if let Some(next) = made.iter().find(|next| next.as_task().rework_of().as_ref() == Some(&task.subject)) {
            self.say(format!("{} does it anew and is {}", next.name(), next.phase));
        }
    }

    fn wait(&mut self, task: &Entity, wait: Blocker) -> Result<()> {
        self.say(wait.why());
        match wait {
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
                let since = moment(decision.as_decision().requested_at());
                self.say(format!("{} is open since {since}: {summary}", decision.name()));
            }
        }
    }
}
