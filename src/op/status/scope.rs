//! What a filter leaves of the state: what concerns a project or an actor, and what concerns everybody.

use crate::base::{Actor, EntityId, EntityType, Subject};
use crate::machine::Phase;
use crate::op::ListFilter;
use crate::policy::approval;
use crate::state::{Entity, State};

/// Whom a problem concerns; everybody, if neither is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Concern {
    pub project: Option<EntityId>,
    pub actor: Option<String>,
}

impl Concern {
    /// Whom an entity concerns: its project, and who holds it or whose it is.
    pub fn of_entity(entity: &Entity) -> Concern {
        let agent = |name: &str| format!("agent:{name}");
        let actor = match entity.subject.entity {
            EntityType::Agent => Some(agent(entity.subject.id())),
            EntityType::Task if entity.is_job() => entity.as_task().recorded_holder().map(str::to_owned),
            EntityType::Task => entity.holder().map(str::to_owned),
            _ => entity.agent_id().map(agent),
        };
        let project = match entity.subject.entity {
            EntityType::Project => EntityId::parse(entity.subject.id()).ok(),
            _ => entity.project.clone(),
        };
        Concern { project, actor }
    }
}

/// What is shown.
pub struct StatusScope {
    pub filter: ListFilter,
    /// The projects of the filter's actor.
    projects: Vec<EntityId>,
}

/// The projects in which an actor has an open session or holds something.
fn projects_of(state: &State, actor: &Actor) -> Vec<EntityId> {
    let agent = actor.agent().map(|agent| Subject::new(EntityType::Agent, agent));
    let sessions = agent.map(|agent| state.made_for(&agent, EntityType::Session)).unwrap_or_default();
    let open = sessions.into_iter().filter(|session| session.phase == Phase::Active);
    open.chain(state.held_by(&actor.to_string())).filter_map(|entity| entity.project).collect()
}

impl StatusScope {
    pub fn of_filter(state: &State, filter: ListFilter) -> StatusScope {
        let projects = filter.actor.as_ref().map(|actor| projects_of(state, actor)).unwrap_or_default();
        StatusScope { filter, projects }
    }

    fn is_everything(&self) -> bool {
        self.filter.project.is_none() && self.filter.actor.is_none()
    }

    /// Whether something concerns the filter's project and its actor.
    pub fn has(&self, state: &State, concerns: &Concern) -> bool {
        let Concern { project, actor } = concerns;
        let fits_project = self.filter.project.as_ref().is_none_or(|wanted| match (project, actor) {
            (Some(project), _) => project == wanted,
            (None, Some(actor)) => Actor::parse(actor).is_ok_and(|actor| projects_of(state, &actor).contains(wanted)),
            (None, None) => true,
        });
        let fits_actor = self.filter.actor.as_ref().is_none_or(|wanted| match (actor, project) {
            (Some(actor), _) => *actor == wanted.to_string(),
            (None, Some(project)) => self.projects.contains(project),
            (None, None) => true,
        });
        fits_project && fits_actor
    }

    pub fn has_agent(&self, state: &State, agent: &Subject) -> bool {
        self.has(state, &Concern { project: None, actor: Some(agent.to_string()) })
    }

    pub fn has_project(&self, name: &str) -> bool {
        let is_wanted = self.filter.project.as_ref().is_none_or(|wanted| wanted.as_str() == name);
        let is_theirs = || self.projects.iter().any(|project| project.as_str() == name);
        is_wanted && (self.filter.actor.is_none() || is_theirs())
    }

    /// How many tasks there are in each phase.
    pub fn tasks(&self, state: &State) -> Vec<(Phase, u64)> {
        let counted = state.tally().phases(EntityType::Task);
        if self.is_everything() {
            return counted.collect();
        }
        let fitting = |phase: Phase| {
            let tasks = state.in_phase(EntityType::Task, phase, usize::MAX);
            tasks.iter().filter(|task| self.filter.fits(task)).count() as u64
        };
        counted.map(|(phase, _)| (phase, fitting(phase))).filter(|(_, count)| *count > 0).collect()
    }

    /// How many decisions wait for an operator.
    pub fn pending_approvals(&self, state: &State) -> u64 {
        if self.is_everything() {
            return approval::OPEN.iter().map(|phase| state.tally().in_phase(EntityType::Decision, *phase)).sum();
        }
        let open = approval::OPEN.iter().flat_map(|phase| state.in_phase(EntityType::Decision, *phase, usize::MAX));
        open.filter(|decision| self.has(state, &Concern::of_entity(decision))).count() as u64
    }
}
