//! `hf-task explain`: in one chain, why a task stands where it stands.

use crate::base::{EntityType, Result, Subject, limits, text};
use crate::machine::Phase;
use crate::op::Context;
use crate::op::kernel::View;
use crate::policy::rules::{Wait, waits_for};
use crate::policy::{approval, project};
use crate::state::{Entity, LEASE, State};

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
            let fact = |name: &str| system.text(name).unwrap_or_default().to_owned();
            chain.say(format!(
                "everything is stopped since {} by {}: {}",
                fact("stopped_at"),
                fact("stopped_by"),
                fact("stop_reason")
            ));
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
        let project = project::of(task).and_then(|project| self.state.entity(&project));
        let Some(project) = project.filter(|project| project.phase != Phase::Active) else { return };
        let fact = |name: &str| project.text(name).unwrap_or_default().to_owned();
        let name = project.subject.id();
        self.steps.push(match project.phase {
            Phase::Archived => format!("project {name} is archived since {}", fact("archived_at")),
            _ => {
                let (since, by, why) = (fact("paused_at"), fact("paused_by"), fact("pause_reason"));
                format!("project {name} is paused since {since} by {by}: {why}")
            }
        });
    }

    fn task(&mut self, task: &Entity) -> Result<()> {
        if self.seen.contains(&task.subject) || self.steps.len() > CHAIN_MAX {
            return Ok(());
        }
        self.seen.push(task.subject.clone());
        let since = self.since(task)?;
        let (name, fact) = (task.name(), |name: &str| task.text(name).map(str::to_owned));
        match task.phase {
            Phase::Proposed | Phase::Ready => {
                self.say(format!("{name} is {} since {since}", task.phase));
                let waits = waits_for(self.state, task);
                if waits.is_empty() && task.phase == Phase::Ready {
                    self.say(format!("nobody has claimed {name}"));
                }
                for wait in waits {
                    self.wait(task, wait)?;
                }
            }
            Phase::Assigned => {
                let until = self.until(task);
                self.say(format!(
                    "{name} is held by {}{until}, not started",
                    fact("holder").unwrap_or("nobody".into())
                ));
            }
            Phase::Running => {
                let until = self.until(task);
                self.say(format!("{name} is held by {}{until}", fact("holder").unwrap_or("nobody".into())));
                let run = task.named("last_run_id", EntityType::Run).and_then(|run| self.state.entity(&run));
                if let Some(run) = run {
                    let time = |name: &str| run.text(name).unwrap_or_default().to_owned();
                    let step = format!(
                        "{} runs since {}, last heartbeat {}",
                        run.name(),
                        time("started_at"),
                        time("last_heartbeat_at")
                    );
                    self.say(step);
                }
            }
            state => {
                let why = fact("abort_reason").map(|why| format!(": {why}")).unwrap_or_default();
                self.say(format!("{name} is {state} since {since}{why}"));
                if let Some(failure) = fact("failure") {
                    let class = fact("error_class").unwrap_or_default();
                    let retries = task.count("retry_count");
                    self.say(format!("it failed ({class}): {failure}; it was tried again {retries} times"));
                }
                self.successor(task);
            }
        }
        Ok(())
    }

    fn until(&self, task: &Entity) -> String {
        let project = project::of(task);
        match self.view.moment().held_until(task) {
            Some(until) => format!(" until {until}"),
            None if task.facts.contains_key(LEASE)
                && project.is_some_and(|project| project::standing(self.state, &project) == Phase::Paused) =>
            {
                " until a lease after the resume".to_owned()
            }
            None => String::new(),
        }
    }

    /// The task that took the place of one whose result was not good.
    fn successor(&mut self, task: &Entity) {
        let made = self.state.made_for(&task.subject, EntityType::Task);
        if let Some(next) = made.iter().find(|next| next.text("rework_of") == Some(task.subject.id())) {
            self.say(format!("{} does it anew and is {}", next.name(), next.phase));
        }
    }

    fn wait(&mut self, task: &Entity, wait: Wait) -> Result<()> {
        self.say(wait.why());
        match wait {
            Wait::Requirement(requirement) => self.decisions(&requirement.subject),
            Wait::Approval => self.decisions(&task.subject),
            Wait::Dependency(other) => return self.task(&other),
        }
        Ok(())
    }

    fn decisions(&mut self, target: &Subject) {
        for decision in self.state.made_for(target, EntityType::Decision) {
            if approval::OPEN.contains(&decision.phase) {
                let summary = text::cut(decision.text("summary").unwrap_or_default(), limits::SUMMARY_MAX_CHARS);
                let since = decision.text("requested_at").unwrap_or_default().to_owned();
                self.say(format!("{} is open since {since}: {summary}", decision.name()));
            }
        }
    }
}
