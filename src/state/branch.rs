//! What the fold keeps of branches beyond the facts of one event: which branch of a persona is active,
//! where its root stands, and the ends of its threads.
//!
//! A persona is an agent. Its root, the branch of the user, has the agent's name for its id, and what is
//! known of the persona is kept there: the branch that is active, the last threads that ended elsewhere,
//! and whether somebody interrupts. The root is active while no other branch of its persona is.

use serde_json::Value;

use super::{Entity, State};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, EntityType, Subject, limits, text};
use crate::event::Event;
use crate::machine::Phase;

/// The root of an agent.
pub fn root_of(persona: &EntityId) -> Subject {
    Subject::new(EntityType::Branch, persona.clone())
}

/// The first line of a text, and not much of it.
pub(super) fn brief(said: &str) -> String {
    text::cut(said.trim().lines().next().unwrap_or_default(), limits::BRIEF_MAX_CHARS)
}

/// A list with one entry more, and no longer than this.
pub(super) fn and_then(list: Option<&Value>, entry: &str, most: usize) -> Value {
    let mut list = list.and_then(Value::as_array).cloned().unwrap_or_default();
    list.push(entry.into());
    let from = list.len().saturating_sub(most);
    list.split_off(from).into()
}

/// What a branch is, as far as its own facts tell.
impl Entity {
    pub fn is_root(&self) -> bool {
        self.text("branch_type") == Some("user") && self.text("persona_id") == Some(self.subject.id())
    }

    /// Whether it is the branch in which a persona talks with this partner.
    pub fn is_social(&self, persona: &str, partner: &str) -> bool {
        self.text("branch_type") == Some("social")
            && self.text("persona_id") == Some(persona)
            && self.text("partner_persona_id") == Some(partner)
    }
}

impl State {
    /// The root of an agent, if the agent is a persona yet.
    pub fn root(&self, persona: &EntityId) -> Option<Entity> {
        self.entity(&root_of(persona)).filter(|root| root.is_root()).map(|root| root.into_owned())
    }

    /// The branch that a persona is at, other than its root.
    pub fn active_branch(&self, root: &Entity) -> Option<Entity> {
        let subject = root.named("active_branch_id", EntityType::Branch)?;
        self.entity(&subject).filter(|branch| branch.phase == Phase::Active).map(|branch| branch.into_owned())
    }

    /// The personas that get to know each other by themselves.
    pub fn personas(&self) -> Vec<EntityId> {
        let system = self.entity(&Subject::SYSTEM);
        system
            .iter()
            .flat_map(|system| system.texts("personas"))
            .filter_map(|name| EntityId::parse(name).ok())
            .collect()
    }

    pub(super) fn count_persona(&mut self, subject: &Subject, event: &Event) {
        let new = self.entity(subject).is_some_and(|root| root.is_root() && root.first_event == event.id);
        if new && self.personas().len() < limits::PERSONAS_MAX_COUNT {
            self.change(&Subject::SYSTEM, |system| {
                let all = and_then(system.facts.get("personas"), subject.id(), limits::PERSONAS_MAX_COUNT);
                system.facts.insert("personas".to_owned(), all);
            });
        }
    }

    pub(super) fn opened(&mut self, thread: &Subject, branch: &Entity, event: &Event) {
        let number = branch.count("threads");
        self.change(thread, |thread| drop(thread.facts.insert("number".to_owned(), number.into())));
        // Of every branch, the newest thread is in the projections.
        let before = self.entity(thread).and_then(|thread| thread.named("anchor_id", EntityType::Thread));
        if let Some(before) = before {
            self.archive(&before);
        }
        if !branch.is_root() {
            let id = branch.subject.id().to_owned();
            self.shift_root(branch, Phase::Suspended, event, |root| {
                root.facts.insert("active_branch_id".to_owned(), id.into());
            });
        }
    }

    pub(super) fn closed(&mut self, thread: &Subject, branch: &Entity, event: &Event) {
        if branch.is_root() {
            return;
        }
        let (id, thread) = (branch.subject.id().to_owned(), thread.id().to_owned());
        self.shift_root(branch, Phase::Active, event, |root| {
            if root.text("active_branch_id") == Some(&id) {
                root.facts.remove("active_branch_id");
            }
            root.facts.remove("interrupt_id");
            let anchors = and_then(root.facts.get("anchors"), &thread, limits::ANCHORS_MAX_COUNT);
            root.facts.insert("anchors".to_owned(), anchors);
        });
    }

    /// A message that was told belongs to the conversation that it is part of: with the user, to the
    /// root; between personas, to the branches of those who are at it.
    pub(super) fn told(&mut self, message: &Subject, event: &Event) {
        let new = self.entity(message).is_some_and(|message| message.first_event == event.id);
        let to = event.payload.get("to").and_then(Value::as_str).and_then(|to| EntityId::parse(to).ok());
        let (true, Some(to)) = (new, to) else { return };
        let actor = Actor::parse(&event.actor).ok();
        match actor.as_ref().and_then(Actor::agent) {
            Some(from) => {
                self.add_to_talk(&to, &from, event);
                self.add_to_talk(&from, &to, event);
            }
            None => {
                let Some(root) = self.root(&to) else { return };
                // Only a person's word is more than what its reader is at.
                let calls = actor.is_some_and(|actor| actor.kind == ActorKind::User);
                let calls = calls && root.facts.contains_key("active_branch_id");
                self.change(&root.subject, |root| {
                    root.facts.insert("last_activity".to_owned(), event.timestamp.to_string().into());
                    let said = event.payload.get("text").and_then(Value::as_str).unwrap_or_default();
                    root.facts.insert("brief_state".to_owned(), brief(said).into());
                    if calls {
                        root.facts.insert("interrupt_id".to_owned(), message.id().into());
                    }
                });
                self.add_to_thread(&root, event);
            }
        }
    }

    /// Adds a message to the thread of a persona that is talking with this partner just now.
    fn add_to_talk(&mut self, persona: &EntityId, partner: &EntityId, event: &Event) {
        let active = self.root(persona).and_then(|root| self.active_branch(&root));
        if let Some(branch) = active.filter(|branch| branch.is_social(persona.as_str(), partner.as_str())) {
            let said = event.payload.get("text").and_then(Value::as_str).unwrap_or_default();
            self.change(&branch.subject, |branch| {
                branch.facts.insert("last_activity".to_owned(), event.timestamp.to_string().into());
                branch.facts.insert("brief_state".to_owned(), brief(said).into());
            });
            self.add_to_thread(&branch, event);
        }
    }

    fn add_to_thread(&mut self, branch: &Entity, event: &Event) {
        let Some(thread) = branch.named("current_thread_id", EntityType::Thread) else { return };
        self.change(&thread, |thread| {
            let tail = and_then(thread.facts.get("tail"), &event.id.to_string(), limits::TAIL_MAX_COUNT);
            thread.facts.insert("tail".to_owned(), tail);
            thread.facts.insert("messages".to_owned(), (thread.count("messages") + 1).into());
        });
    }

    /// What was read leaves the projections.
    pub(super) fn was_read(&mut self, message: &Subject, event: &Event) {
        let Some(read) = self.entity(message).filter(|message| message.last_event == event.id) else { return };
        let root = read.text("to").and_then(|to| EntityId::parse(to).ok()).map(|to| root_of(&to));
        if let Some(root) = root {
            self.change(&root, |root| {
                root.facts.insert("unread".to_owned(), root.count("unread").saturating_sub(1).into());
            });
        }
        self.archive(message);
    }

    /// Takes the root of a branch's persona to where it stands now.
    fn shift_root(&mut self, branch: &Entity, to: Phase, event: &Event, change: impl FnOnce(&mut Entity)) {
        let persona = branch.text("persona_id").and_then(|name| EntityId::parse(name).ok());
        let Some(mut root) = persona.and_then(|persona| self.root(&persona)) else { return };
        if root.phase != to && root.phase != Phase::Absent {
            self.changes.tally.moved(EntityType::Branch, root.phase, to);
            (root.phase, root.last_event) = (to, event.id);
            match to {
                Phase::Suspended => {
                    drop(root.facts.insert("suspended_at".to_owned(), event.timestamp.to_string().into()))
                }
                _ => drop(root.facts.remove("suspended_at")),
            }
        }
        change(&mut root);
        self.changes.entities.insert(root.subject.clone(), root);
    }

    fn change(&mut self, subject: &Subject, change: impl FnOnce(&mut Entity)) {
        if let Some(mut entity) = self.entity(subject).map(|entity| entity.into_owned()) {
            change(&mut entity);
            self.changes.entities.insert(subject.clone(), entity);
        }
    }
}
