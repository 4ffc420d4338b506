//! Facts about branches that do not come from a single event: which branch of a persona is active, the phase of its
//! root, and its latest closed threads.
//!
//! A persona is an agent. Its root, the branch for the user, has the agent's name as its id. Facts about the persona are
//! stored there: the active branch, the latest threads closed on other branches, and the message that interrupts it. The
//! root is active while no other branch of its persona is.

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

/// The first line of a text, cut to a short length.
pub(super) fn brief(full: &str) -> String {
    text::cut(full.trim().lines().next().unwrap_or_default(), limits::BRIEF_MAX_CHARS)
}

/// A list with one more entry; if it is longer than `max`, the oldest entries are dropped.
pub(super) fn append_capped(list: Option<&Value>, entry: &str, max: usize) -> Value {
    let mut list = list.and_then(Value::as_array).cloned().unwrap_or_default();
    list.push(entry.into());
    let from = list.len().saturating_sub(max);
    list.split_off(from).into()
}

impl Entity {
    /// Whether it is the root of a persona.
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
    /// The root of an agent, if the agent is a persona.
    pub fn root(&self, persona: &EntityId) -> Option<Entity> {
        self.entity(&root_of(persona)).filter(|root| root.is_root()).map(|root| root.into_owned())
    }

    /// The active branch of a persona, other than its root.
    pub fn active_branch(&self, root: &Entity) -> Option<Entity> {
        let subject = root.named("active_branch_id", EntityType::Branch)?;
        self.entity(&subject).filter(|branch| branch.phase == Phase::Active).map(|branch| branch.into_owned())
    }

    /// The personas that get social branches with each other automatically.
    pub fn personas(&self) -> Vec<EntityId> {
        let system = self.entity(&Subject::SYSTEM);
        system
            .iter()
            .flat_map(|system| system.texts("personas"))
            .filter_map(|name| EntityId::parse(name).ok())
            .collect()
    }

    /// Adds a new persona to the list, up to the limit.
    pub(super) fn count_persona(&mut self, subject: &Subject, event: &Event) {
        let new = self.entity(subject).is_some_and(|root| root.is_root() && root.first_event == event.id);
        if new && self.personas().len() < limits::PERSONAS_MAX_COUNT {
            self.change(&Subject::SYSTEM, |system| {
                let all = append_capped(system.facts.get("personas"), subject.id(), limits::PERSONAS_MAX_COUNT);
                system.facts.insert("personas".to_owned(), all);
            });
        }
    }

    pub(super) fn thread_opened(&mut self, thread: &Subject, branch: &Entity, event: &Event) {
        let number = branch.count("threads");
        self.change(thread, |thread| drop(thread.facts.insert("number".to_owned(), number.into())));
        // The projections contain only the newest thread of each branch.
        let before = self.entity(thread).and_then(|thread| thread.named("anchor_id", EntityType::Thread));
        if let Some(before) = before {
            self.archive(&before);
        }
        if !branch.is_root() {
            let id = branch.subject.id().to_owned();
            self.move_root(branch, Phase::Suspended, event, |root| {
                root.facts.insert("active_branch_id".to_owned(), id.into());
            });
        }
    }

    pub(super) fn thread_closed(&mut self, thread: &Subject, branch: &Entity, event: &Event) {
        if branch.is_root() {
            return;
        }
        let (id, thread) = (branch.subject.id().to_owned(), thread.id().to_owned());
        self.move_root(branch, Phase::Active, event, |root| {
            if root.text("active_branch_id") == Some(&id) {
                root.facts.remove("active_branch_id");
            }
            root.facts.remove("interrupt_id");
            let anchors = append_capped(root.facts.get("anchors"), &thread, limits::ANCHORS_MAX_COUNT);
            root.facts.insert("anchors".to_owned(), anchors);
        });
    }

    /// Adds a message to the conversation that it belongs to: a message from a user to the root, a message between
    /// personas to their social branches if these are active.
    pub(super) fn message_sent(&mut self, message: &Subject, event: &Event) {
        let new = self.entity(message).is_some_and(|message| message.first_event == event.id);
        let to = event.payload.get("to").and_then(Value::as_str).and_then(|to| EntityId::parse(to).ok());
        let (true, Some(to)) = (new, to) else { return };
        let actor = Actor::parse(&event.actor).ok();
        match actor.as_ref().and_then(Actor::agent) {
            Some(from) => {
                self.add_to_social_branch(&to, &from, event);
                self.add_to_social_branch(&from, &to, event);
            }
            None => {
                let Some(root) = self.root(&to) else { return };
                // Only a message from a user interrupts the current activity.
                let interrupts = actor.is_some_and(|actor| actor.kind == ActorKind::User);
                let interrupts = interrupts && root.facts.contains_key("active_branch_id");
                self.change(&root.subject, |root| {
                    root.facts.insert("last_activity".to_owned(), event.timestamp.to_string().into());
                    let text = event.payload.get("text").and_then(Value::as_str).unwrap_or_default();
                    root.facts.insert("brief_state".to_owned(), brief(text).into());
                    if interrupts {
                        root.facts.insert("interrupt_id".to_owned(), message.id().into());
                    }
                });
                self.add_to_thread(&root, event);
            }
        }
    }

    /// Adds a message to the persona's thread with this partner, if that branch is active.
    fn add_to_social_branch(&mut self, persona: &EntityId, partner: &EntityId, event: &Event) {
        let active = self.root(persona).and_then(|root| self.active_branch(&root));
        if let Some(branch) = active.filter(|branch| branch.is_social(persona.as_str(), partner.as_str())) {
            let text = event.payload.get("text").and_then(Value::as_str).unwrap_or_default();
            self.change(&branch.subject, |branch| {
                branch.facts.insert("last_activity".to_owned(), event.timestamp.to_string().into());
                branch.facts.insert("brief_state".to_owned(), brief(text).into());
            });
            self.add_to_thread(&branch, event);
        }
    }

    fn add_to_thread(&mut self, branch: &Entity, event: &Event) {
        let Some(thread) = branch.named("current_thread_id", EntityType::Thread) else { return };
        self.change(&thread, |thread| {
            let tail = append_capped(thread.facts.get("tail"), &event.id.to_string(), limits::TAIL_MAX_COUNT);
            thread.facts.insert("tail".to_owned(), tail);
            thread.facts.insert("messages".to_owned(), (thread.count("messages") + 1).into());
        });
    }

    /// Archives a message that was read.
    pub(super) fn message_read(&mut self, message: &Subject, event: &Event) {
        let Some(read) = self.entity(message).filter(|message| message.last_event == event.id) else { return };
        let root = read.text("to").and_then(|to| EntityId::parse(to).ok()).map(|to| root_of(&to));
        if let Some(root) = root {
            self.change(&root, |root| {
                root.facts.insert("unread".to_owned(), root.count("unread").saturating_sub(1).into());
            });
        }
        self.archive(message);
    }

    /// Moves the root of a branch's persona to a phase and changes its facts.
    fn move_root(&mut self, branch: &Entity, to: Phase, event: &Event, change: impl FnOnce(&mut Entity)) {
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
