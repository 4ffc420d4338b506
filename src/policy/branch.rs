//! Branches: several activities of one persona.
//!
//! Invariant: at most one branch of a persona besides its root is active, and the threads of a branch are a chain: each
//! has the previous one as its anchor (`random_steps_keep_the_branch_rules`). Roots and social branches are never
//! completed.

use serde_json::{Map, Value, json};

use super::knowledge;
use super::react::Reactor;
use super::rules::{Step, illegal};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, Ulid, limits, text};
use crate::event::{Draft, Kind};
use crate::machine::{self, Phase};
use crate::state::branch::root_of;
use crate::state::{Entity, State, linked};

/// The label of a root.
pub const ROOT_LABEL: &str = "the user";

/// The reason of a thread that was aborted because a user sent its persona a message.
pub const INTERRUPTED: &str = "interrupted";

/// Whether an event of this kind is about branches, threads or messages.
pub fn is_of_branches(kind: Kind) -> bool {
    use crate::event::kind::SubjectType;
    let types = [EntityType::Branch, EntityType::Thread, EntityType::Message];
    types.iter().any(|entity| kind.row().about == SubjectType::One(*entity))
}

/// Whether events of this kind follow from others. Messages and notes never do: somebody wrote them.
pub fn may_follow(kind: Kind) -> bool {
    use Kind::{BranchCompleted, BranchCreated, ThreadAborted, ThreadCompleted, ThreadOpened};
    [BranchCreated, BranchCompleted, ThreadOpened, ThreadCompleted, ThreadAborted].contains(&kind)
}

/// The anchor of a new thread: the id of the last thread of its branch.
pub fn anchor(state: &State, kind: Kind, payload: &Map<String, Value>) -> Option<String> {
    let branch = linked(kind, payload).filter(|_| kind == Kind::ThreadOpened)?;
    state.entity(&branch)?.as_branch().last_thread_id().map(str::to_owned)
}

/// Whether a task has ended.
fn is_finished(task: &Entity) -> bool {
    matches!(task.phase, Phase::Succeeded | Phase::Aborted | Phase::Archived)
}

/// The first branch created for `about` that fits.
fn branch_for(state: &State, about: &Subject, fits: impl Fn(&Entity) -> bool) -> Option<Entity> {
    state.made_for(about, EntityType::Branch).into_iter().find(fits)
}

/// The branch in which a persona works on a task.
fn of_task(state: &State, persona: &str, task: &Subject) -> Option<Entity> {
    branch_for(state, task, |branch| branch.as_branch().persona_id() == Some(persona))
}

/// The event that creates an agent's root, which makes it a persona.
pub fn root_draft(state: &State, persona: &EntityId, parent: Option<Ulid>) -> Draft {
    let payload = json!({"persona_id": persona.as_str(), "branch_type": "user", "label": ROOT_LABEL});
    let agent = state.entity(&Subject::new(EntityType::Agent, persona.clone())).map(|agent| agent.first_event);
    Draft {
        kind: Kind::BranchCreated,
        subject: root_of(persona),
        actor: Actor::core(super::REACTOR),
        parents: parent.or(agent).or(state.first_event()).into_iter().collect(),
        key: None,
        payload: payload.as_object().expect("an object").clone(),
    }
}

/// The event that aborts a persona's current thread because a user sent it a message.
pub fn interruption(state: &State, persona: &EntityId) -> Option<Draft> {
    let root = state.root(persona)?;
    let message = root.as_branch().interrupt()?;
    let branch = state.active_branch(&root)?;
    let thread = branch.as_branch().current_thread()?;
    let payload = json!({"branch_id": branch.subject.id(), "reason": INTERRUPTED, "message_id": message.id()});
    Some(Draft {
        kind: Kind::ThreadAborted,
        subject: thread,
        actor: Actor::core(super::REACTOR),
        parents: state.entity(&message).map(|message| message.first_event).into_iter().collect(),
        key: None,
        payload: payload.as_object().expect("an object").clone(),
    })
}

/// The rules about branches, threads and messages.
pub(super) fn branches_are_consistent(state: &State, step: &Step<'_>) -> Result<()> {
    match step.kind {
        Kind::BranchCreated => can_be_created(state, step),
        Kind::BranchCompleted => can_be_completed(state, step),
        Kind::ThreadOpened => can_be_opened(state, step),
        Kind::NoteRecorded => check_branch_of_thread(state, step).map(drop),
        Kind::ThreadCompleted | Kind::ThreadAborted => can_be_closed(state, step),
        Kind::ThreadSummarized => check_branch_of_thread(state, step).map(drop),
        Kind::MessageSent => can_be_sent(state, step),
        Kind::KnowledgeRecorded => knowledge::can_be_recorded(step),
        Kind::MessageRead => can_be_read(state, step),
        _ => Ok(()),
    }
}

/// An agent acts only on its own branches.
fn check_is_own(step: &Step<'_>, persona: &str) -> Result<()> {
    match step.actor.agent() {
        Some(me) if me.as_str() != persona => {
            Err(Error::refused(Reason::NotHolder, format!("{} cannot act for agent:{persona}", step.actor)))
        }
        _ => Ok(()),
    }
}

/// A member of the payload that is an id.
fn named(step: &Step<'_>, member: &str) -> Option<EntityId> {
    step.text(member).and_then(|id| EntityId::parse(id).ok())
}

fn can_be_created(state: &State, step: &Step<'_>) -> Result<()> {
    let Some(persona) = named(step, "persona_id") else { return Ok(()) };
    check_is_own(step, persona.as_str())?;
    let (task, partner) = (named(step, "task_id"), named(step, "partner_persona_id"));
    let (kind, id) = (step.text("branch_type").unwrap_or_default(), step.subject.id());
    if (task.is_some(), partner.is_some()) != (kind == "task", kind == "social") {
        return Err(Error::usage(
            "a task branch requires task_id, a social branch partner_persona_id, other branches neither",
        ));
    }
    if kind == "user" {
        return match id == persona.as_str() {
            true => Ok(()),
            false => {
                Err(Error::usage(format!("the root of agent:{persona} must be branch:{persona}, not branch:{id}")))
            }
        };
    }
    if crate::event::parse_ulid(id).is_none() {
        return Err(Error::usage(format!("the id of a branch that is not a root must be a ULID, not '{id}'")));
    }
    check_is_persona(state, &persona)?;
    if let Some(task) = task.map(|task| Subject::new(EntityType::Task, task)) {
        let other = of_task(state, persona.as_str(), &task);
        if let Some(other) = other {
            return Err(already_exists(&other));
        }
        if let Some(finished) = state.entity(&task).filter(|task| is_finished(task)) {
            let why = format!("{} is {}; a branch requires an unfinished task", finished.name(), finished.phase);
            return Err(Error::refused(Reason::NotReady, why));
        }
    }
    if let Some(partner) = partner {
        if partner == persona {
            return Err(Error::usage(format!("agent:{persona} cannot be its own partner")));
        }
        check_is_persona(state, &partner)?;
        if let Some(other) = state.social_branch(&persona, &partner) {
            return Err(already_exists(&other));
        }
    }
    Ok(())
}

fn already_exists(branch: &Entity) -> Error {
    let why = format!("this branch already exists: {}, which is {}", branch.name(), branch.phase);
    Error::refused(Reason::IllegalTransition, why)
}

fn check_is_persona(state: &State, name: &EntityId) -> Result<()> {
    match state.root(name) {
        Some(_) => Ok(()),
        None => Err(Error::not_found(format!("agent:{name} has no branches yet"))),
    }
}

fn can_be_completed(state: &State, step: &Step<'_>) -> Result<()> {
    let Some(branch) = state.entity(step.subject) else { return Ok(()) };
    let persona = branch.as_branch().persona_id().unwrap_or_default();
    check_is_own(step, persona)?;
    let refuse = |what: &str| Err(Error::refused(Reason::IllegalTransition, format!("{} {what}", branch.name())));
    match branch.as_branch().branch_type() {
        Some("user") => refuse("is a root, which cannot be completed"),
        Some("social") => refuse("is a social branch, which cannot be completed"),
        Some("task") => match branch.as_branch().task().and_then(|task| state.entity(&task)) {
            Some(task) if !is_finished(&task) => Err(Error::refused(
                Reason::NotReady,
                format!("{} cannot be completed before {}, which is {}", branch.name(), task.name(), task.phase),
            )),
            _ => Ok(()),
        },
        _ if step.actor.kind != ActorKind::Agent => {
            Err(Error::refused(Reason::NotHolder, format!("only agent:{persona} can complete {}", branch.name())))
        }
        _ => Ok(()),
    }
}

fn can_be_opened(state: &State, step: &Step<'_>) -> Result<()> {
    let Some(branch) = linked(step.kind, step.payload).and_then(|branch| state.entity(&branch)) else { return Ok(()) };
    check_is_own(step, branch.as_branch().persona_id().unwrap_or_default())?;
    if machine::step(EntityType::Branch, branch.phase, step.kind).is_none() {
        return Err(illegal(state, &branch.subject, step.kind));
    }
    if branch.is_root() && branch.as_branch().threads() > 0 {
        let why = format!("{} is a root, which has only one thread", branch.name());
        return Err(Error::refused(Reason::IllegalTransition, why));
    }
    let root = branch.as_branch().persona_id().and_then(|name| state.root(&EntityId::parse(name).ok()?));
    if let Some(other) = root.and_then(|root| state.active_branch(&root)) {
        let why = format!("{} is active; leave it first", other.name());
        return Err(Error::refused(Reason::IllegalTransition, why));
    }
    if step.text("anchor_id") != branch.as_branch().last_thread_id() {
        let last = branch.as_branch().last_thread_id().map_or("empty".to_owned(), |last| format!("thread:{last}"));
        return Err(Error::usage(format!("the anchor of a new thread of {} must be {last}", branch.name())));
    }
    Ok(())
}

/// The branch of a thread. Refuses an event that names a different branch, or that belongs to another agent.
fn check_branch_of_thread(state: &State, step: &Step<'_>) -> Result<Option<Entity>> {
    let Some(thread) = state.entity(step.subject) else { return Ok(None) };
    if step.text("branch_id") != thread.as_thread().branch_id() {
        let branch = step.text("branch_id").unwrap_or_default();
        return Err(Error::usage(format!("{} is not a thread of branch:{branch}", thread.name())));
    }
    let branch = thread.as_thread().branch().and_then(|branch| state.entity(&branch));
    if let Some(branch) = &branch {
        check_is_own(step, branch.as_branch().persona_id().unwrap_or_default())?;
    }
    Ok(branch.map(|branch| branch.into_owned()))
}

fn can_be_closed(state: &State, step: &Step<'_>) -> Result<()> {
    match check_branch_of_thread(state, step)?.filter(Entity::is_root) {
        Some(root) => Err(Error::refused(
            Reason::IllegalTransition,
            format!("{} is a root; its thread is never closed", root.name()),
        )),
        None => Ok(()),
    }
}

fn can_be_sent(state: &State, step: &Step<'_>) -> Result<()> {
    let Some(to) = named(step, "to") else { return Ok(()) };
    if step.actor.agent().as_ref() == Some(&to) {
        return Err(Error::usage(format!("agent:{to} cannot send itself a message; record a note instead")));
    }
    check_is_persona(state, &to)
}

fn can_be_read(state: &State, step: &Step<'_>) -> Result<()> {
    let message = state.entity(step.subject);
    let to = message.as_ref().and_then(|message| message.as_message().to());
    if step.text("to") != to {
        return Err(Error::usage(format!(
            "payload.to must be '{}', the recipient of the message",
            to.unwrap_or_default()
        )));
    }
    match (step.actor.agent(), to) {
        (Some(me), Some(to)) if me.as_str() == to => Ok(()),
        _ => Err(Error::refused(
            Reason::NotHolder,
            format!("{} cannot read a message to agent:{}", step.actor, to.unwrap_or_default()),
        )),
    }
}

impl Reactor<'_> {
    /// Adds the reactions to an event that are about branches.
    pub(super) fn follow_branches(&mut self, kind: Kind) {
        match kind {
            Kind::TaskAssigned => self.begin_task_branch(),
            Kind::TaskSucceeded | Kind::TaskAborted => self.end_task_branches(),
            Kind::BranchCreated => self.begin_branch(),
            Kind::MessageSent => self.introduce(),
            _ => {}
        }
        self.interrupt(kind);
    }

    /// Creates a branch for the agent that a task is assigned to. Jobs have no branch: no persona experiences them.
    fn begin_task_branch(&mut self) {
        let member = |name: &str| self.cause.payload.get(name);
        let holder = member("holder").and_then(Value::as_str).and_then(|holder| Actor::parse(holder).ok());
        let Some(persona) = holder.and_then(|holder| holder.agent()) else { return };
        let task = self.entity(&self.subject.clone()).filter(|task| !task.is_job() && !is_finished(task));
        let Some(task) = task.filter(|_| member("job") != Some(&Value::Bool(true))) else { return };
        if of_task(self.state, persona.as_str(), &task.subject).is_some() {
            return;
        }
        let root = root_of(&persona);
        match self.entity(&root) {
            Some(known) if !known.is_root() => return,
            Some(_) => {}
            None => {
                let draft = root_draft(self.state, &persona, Some(self.cause.id));
                self.drafts.push(draft);
            }
        }
        let label = text::cut(task.as_task().title().unwrap_or_default(), limits::SUMMARY_MAX_CHARS);
        let subject = self.new_subject(EntityType::Branch);
        let payload = json!({
            "persona_id": persona.as_str(), "branch_type": "task", "label": label, "task_id": task.subject.id(),
        });
        self.record(Kind::BranchCreated, subject, payload);
    }

    /// Completes the branches of a task that has ended.
    fn end_task_branches(&mut self) {
        let Some(task) = self.entity(&self.subject.clone()).filter(is_finished) else { return };
        for branch in self.state.made_for(&task.subject, EntityType::Branch) {
            if !matches!(branch.phase, Phase::Active | Phase::Suspended) {
                continue;
            }
            let open = branch.as_branch().current_thread();
            if let Some(thread) = open.filter(|_| branch.phase == Phase::Active) {
                let (id, how) = (branch.subject.id(), format!("{} is {}", task.name(), task.phase));
                match task.phase {
                    Phase::Aborted => self.record(Kind::ThreadAborted, thread, json!({"branch_id": id, "reason": how})),
                    _ => self.record(Kind::ThreadCompleted, thread, json!({"branch_id": id, "summary": how})),
                }
            }
            self.record(Kind::BranchCompleted, branch.subject, json!({}));
        }
    }

    /// Opens the first thread of a new branch, after closing the persona's current thread. A social branch gets its first
    /// thread later, when its persona resumes it. A new persona gets social branches with the existing ones.
    fn begin_branch(&mut self) {
        let Some(branch) = self.entity(&self.subject.clone()) else { return };
        let persona = branch.as_branch().persona_id().and_then(|name| EntityId::parse(name).ok());
        let Some(persona) = persona else { return };
        let has_no_thread = branch.phase == Phase::Suspended && branch.as_branch().threads() == 0;
        if has_no_thread && branch.as_branch().branch_type() != Some("social") {
            let active = self.state.root(&persona).and_then(|root| self.state.active_branch(&root));
            if let Some((other, thread)) = active.and_then(|other| {
                let thread = other.as_branch().current_thread()?;
                Some((other, thread))
            }) {
                let reason = format!("{} began", branch.name());
                self.record(Kind::ThreadAborted, thread, json!({"branch_id": other.subject.id(), "reason": reason}));
            }
            let thread = self.new_subject(EntityType::Thread);
            self.record(Kind::ThreadOpened, thread, json!({"branch_id": branch.subject.id()}));
        }
        let personas = self.state.personas();
        if branch.is_root() && personas.contains(&persona) {
            for other in personas.iter().filter(|other| **other != persona) {
                self.introduce_to(&persona, other);
                self.introduce_to(other, &persona);
            }
        }
    }

    /// Creates social branches between the sender and the recipient of a message.
    fn introduce(&mut self) {
        let from = Actor::parse(&self.cause.actor).ok().and_then(|actor| actor.agent());
        let to = self.cause.payload.get("to").and_then(Value::as_str).and_then(|to| EntityId::parse(to).ok());
        if let (Some(from), Some(to)) = (from, to) {
            self.introduce_to(&from, &to);
            self.introduce_to(&to, &from);
        }
    }

    /// Creates the social branch of a persona with a partner, if both are personas and it does not exist.
    fn introduce_to(&mut self, persona: &EntityId, partner: &EntityId) {
        let both = [persona, partner].iter().all(|name| self.state.root(name).is_some());
        if persona == partner || !both || self.state.social_branch(persona, partner).is_some() {
            return;
        }
        let subject = self.new_subject(EntityType::Branch);
        let payload = json!({
            "persona_id": persona.as_str(), "branch_type": "social", "label": format!("with {partner}"),
            "partner_persona_id": partner.as_str(),
        });
        self.record(Kind::BranchCreated, subject, payload);
    }

    /// Returns a persona that has a message from a user to its root, after its next event.
    fn interrupt(&mut self, kind: Kind) {
        let actor = Actor::parse(&self.cause.actor).ok().and_then(|actor| actor.agent());
        let Some(persona) = actor.filter(|_| !self.is_of_a_job(kind)) else { return };
        let Some(mut draft) = interruption(self.state, &persona) else { return };
        if !self.drafts.iter().any(|other| other.subject == draft.subject) {
            draft.parents.push(self.cause.id);
            self.drafts.push(draft);
        }
    }

    /// Whether an event is about a job: its supervisor records it in the name of the agent that started it.
    fn is_of_a_job(&self, kind: Kind) -> bool {
        let run = |subject: &Subject| self.entity(subject).and_then(|run| run.as_run().task());
        let task = match self.subject.entity {
            EntityType::Task => Some(self.subject.clone()),
            EntityType::Run => run(&self.subject).or_else(|| linked(kind, &self.cause.payload)),
            _ => None,
        };
        task.and_then(|task| self.entity(&task)).is_some_and(|task| task.is_job())
    }
}
