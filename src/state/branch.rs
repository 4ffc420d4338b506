//! Facts about branches that do not come from a single event: which branch of a persona is active, the phase of its
//! root, its latest closed threads, and which threads have a summary.
//!
//! A persona is an agent. Its root, the branch for the user, has the agent's name as its id. Facts about the persona are
//! stored there: the active branch, the latest threads closed on other branches, the branches of which something was
//! heard last, the message that interrupts it, and where it believes to be (see `belief`). The root is active while no
//! other branch of its persona is.
//!
//! A message between personas belongs to their social branches. While such a branch has no open thread, its messages
//! wait there, and its next thread begins with them.

use serde_json::Value;

use super::belief::UNHEARD;
use super::{Entity, State};
use crate::base::actor::ActorKind;
use crate::base::{Actor, Digest, EntityId, EntityType, Subject, Ulid, limits, text};
use crate::event::{Event, Kind};
use crate::machine::Phase;

/// The root of an agent.
pub fn root_of(persona: &EntityId) -> Subject {
    Subject::new(EntityType::Branch, persona.clone())
}

/// The subject under which the social branch of a persona with a partner is found. No entity has this id.
fn pair(persona: &str, partner: &str) -> Option<Subject> {
    let digest = Digest::of_bytes(format!("{persona} {partner}").as_bytes()).to_string();
    let id: String = digest.chars().skip_while(|c| *c != ':').skip(1).take(PAIR_CHARS).collect();
    EntityId::parse(&id).ok().map(|id| Subject::new(EntityType::Branch, id))
}

/// How many digits of a digest name a pair of personas.
const PAIR_CHARS: usize = 48;

/// A list in which this entry is the last, and occurs once.
fn moved_to_end(list: Option<&Value>, entry: &str, max: usize) -> Value {
    let mut list = list.and_then(Value::as_array).cloned().unwrap_or_default();
    list.retain(|known| known.as_str() != Some(entry));
    append_capped(Some(&list.into()), entry, max)
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

    /// The branch in which a persona talks with a partner.
    pub fn social_branch(&self, persona: &EntityId, partner: &EntityId) -> Option<Entity> {
        let found = self.made_for(&pair(persona.as_str(), partner.as_str())?, EntityType::Branch);
        found.into_iter().find(|branch| branch.is_social(persona.as_str(), partner.as_str()))
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

    /// Adds a new persona to the list, up to the limit. A new social branch can be found by its two personas.
    pub(super) fn count_persona(&mut self, subject: &Subject, event: &Event) {
        let social = self.entity(subject).filter(|branch| branch.first_event == event.id).and_then(|branch| {
            let partner = branch.text("partner_persona_id").filter(|_| branch.text("branch_type") == Some("social"))?;
            pair(branch.text("persona_id")?, partner)
        });
        if let Some(pair) = social {
            self.changes.links.insert((pair, subject.clone()));
            self.introduced(subject, event);
        }
        self.note_whereabouts(subject, event);
        let new = self.entity(subject).is_some_and(|root| root.is_root() && root.first_event == event.id);
        if new {
            self.note_first_task(subject, event);
        }
        if new && self.personas().len() < limits::PERSONAS_MAX_COUNT {
            self.change(&Subject::SYSTEM, |system| {
                let all = append_capped(system.facts.get("personas"), subject.id(), limits::PERSONAS_MAX_COUNT);
                system.facts.insert("personas".to_owned(), all);
            });
        }
    }

    pub(super) fn thread_opened(&mut self, thread: &Subject, branch: &Entity, event: &Event) {
        let number = branch.count("threads");
        let waited = branch.count("_waiting_count");
        let before = branch.count("_messages").saturating_sub(waited);
        let waiting = branch.facts.get("_waiting").cloned();
        self.change(thread, |thread| {
            thread.facts.insert("number".to_owned(), number.into());
            thread.facts.insert("_before".to_owned(), before.into());
            if let Some(waiting) = waiting {
                thread.facts.insert("tail".to_owned(), waiting);
                thread.facts.insert("messages".to_owned(), waited.into());
            }
        });
        if waited > 0 {
            self.change(&branch.subject, |branch| {
                branch.facts.retain(|fact, _| fact != "_waiting" && fact != "_waiting_count");
            });
        }
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
        self.note_whereabouts(&branch.subject, event);
    }

    pub(super) fn thread_closed(&mut self, thread: &Subject, branch: &Entity, event: &Event) {
        if branch.is_root() {
            return;
        }
        if event.payload.contains_key("summary") && !event.actor.starts_with("core:") {
            self.add_summary(&branch.subject, thread);
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
        self.heard_of(&branch.subject);
        self.note_whereabouts(&branch.subject, event);
    }

    /// Remembers that a thread has a summary.
    fn add_summary(&mut self, branch: &Subject, thread: &Subject) {
        self.change(branch, |branch| {
            let all = moved_to_end(branch.facts.get("_summaries"), thread.id(), limits::ANCHORS_MAX_COUNT);
            branch.facts.insert("_summaries".to_owned(), all);
            branch.facts.insert("_summary_count".to_owned(), (branch.count("_summary_count") + 1).into());
        });
    }

    /// An aborted thread was summarized.
    pub(super) fn thread_summarized(&mut self, thread: &Subject, branch: &Entity, event: &Event) {
        self.add_summary(&branch.subject, thread);
        self.note_whereabouts(&branch.subject, event);
    }

    /// Remembers what matters to a persona and is not its own act, until it does something on a branch: a task assigned
    /// to it, taken from it or aborted, an answer to its question, the end of its job, an anomaly.
    pub(super) fn note_change(&mut self, kind: Kind, event: &Event) {
        let Ok(subject) = Subject::parse(&event.subject) else { return };
        let entity = self.entity(&subject);
        let concerned = match (kind, &entity) {
            (Kind::TaskAssigned, Some(task)) if !task.is_job() => task.text("holder"),
            (Kind::TaskAborted, Some(task)) if !task.is_job() => {
                task.text("holder").filter(|holder| task.text("_failed_actor") != Some(holder))
            }
            (Kind::TaskSucceeded | Kind::TaskAborted, Some(task)) if task.is_job() => task.text("_proposed_by"),
            (Kind::DecisionApproved | Kind::DecisionRejected, Some(decision)) => {
                decision.text("_requested_by").filter(|by| by.starts_with("agent:"))
            }
            (Kind::AnomalyDetected, _) if subject.entity == EntityType::Agent => Some(event.subject.as_str()),
            _ => return,
        };
        // A question of the toolkit is about work that somebody proposed.
        let of_target = || {
            let decision = entity.as_ref().filter(|entity| entity.subject.entity == EntityType::Decision)?;
            let target = self.entity(&Subject::parse(decision.text("target")?).ok()?)?;
            target.text("_proposed_by").map(str::to_owned)
        };
        let concerned = concerned.map(str::to_owned).or_else(of_target);
        // Its own act is no news to it; a job's end is recorded in its name.
        let is_own = |who: &String| *who == event.actor && !entity.as_ref().is_some_and(|entity| entity.is_job());
        if let Some(concerned) = concerned.filter(|who| !is_own(who)) {
            self.add_change(&concerned, event.id);
        }
    }

    /// Lets the former holder of a task know that somebody took it away.
    pub(super) fn note_taken(&mut self, event: &Event) {
        let is_taken = event.event_type.known() == Some(Kind::TaskAssigned) && event.payload.contains_key("reason");
        let Some(task) = Subject::parse(&event.subject).ok().filter(|_| is_taken) else { return };
        let from = self.entity(&task).and_then(|task| {
            let from = task.text("_taken_from").filter(|from| task.text("holder") != Some(from) && !task.is_job());
            from.map(str::to_owned)
        });
        if let Some(from) = from {
            self.add_change(&from, event.id);
        }
    }

    /// Adds an event to what an actor has to react to, if it is a persona.
    fn add_change(&mut self, who: &str, id: Ulid) {
        let persona = who.strip_prefix("agent:").and_then(|name| EntityId::parse(name).ok());
        let Some(root) = persona.and_then(|persona| self.root(&persona)) else { return };
        self.change(&root.subject, |root| {
            let changes = append_capped(root.facts.get("_changes"), &id.to_string(), limits::CHANGES_MAX_COUNT);
            root.facts.insert("_changes".to_owned(), changes);
        });
    }

    /// An agent becomes a persona because somebody gives it a task: that is what it has to react to first.
    fn note_first_task(&mut self, root: &Subject, event: &Event) {
        let me = format!("agent:{}", root.id());
        let is_given = |task: &Entity| !task.is_job() && task.text("_assigned_by") != Some(&me);
        let given =
            self.held_by(&me).into_iter().find(|task| is_given(task) && event.parents.contains(&task.last_event));
        if let Some(task) = given {
            self.add_change(&me, task.last_event);
        }
    }

    /// Remembers how long the titles of a persona's knowledge are, so that they are found in a text without trying all.
    pub(super) fn knowledge_recorded(&mut self, event: &Event) {
        let persona =
            event.payload.get("persona_id").and_then(Value::as_str).and_then(|name| EntityId::parse(name).ok());
        let title = event.payload.get("title").and_then(Value::as_str).map(text::caseless);
        let Some((root, title)) = persona.and_then(|persona| self.root(&persona)).zip(title) else { return };
        let length = Value::from(title.chars().count());
        let mut lengths = root.facts.get("_title_lengths").and_then(Value::as_array).cloned().unwrap_or_default();
        if !lengths.contains(&length) {
            lengths.push(length);
            self.change(&root.subject, |root| drop(root.facts.insert("_title_lengths".to_owned(), lengths.into())));
        }
    }

    /// Adds a message to the conversation that it belongs to: a message from a user to the root, a message between
    /// personas to their social branches, where it waits if they are not active.
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
                let is_heard_later = interrupts && root.is_elsewhere();
                let interrupts = interrupts && root.facts.contains_key("active_branch_id");
                self.change(&root.subject, |root| {
                    root.facts.insert("last_activity".to_owned(), event.timestamp.to_string().into());
                    let text = event.payload.get("text").and_then(Value::as_str).unwrap_or_default();
                    root.facts.insert("brief_state".to_owned(), brief(text).into());
                    if interrupts {
                        root.facts.insert("interrupt_id".to_owned(), message.id().into());
                    }
                    if is_heard_later {
                        let unheard = append_capped(root.facts.get(UNHEARD), message.id(), limits::TAIL_MAX_COUNT);
                        root.facts.insert(UNHEARD.to_owned(), unheard);
                    }
                });
                self.add_to_thread(&root, event);
            }
        }
    }

    /// Adds a message to the persona's conversation with this partner. If they have none yet, one is created because of
    /// this message, and `introduced` adds it there.
    fn add_to_social_branch(&mut self, persona: &EntityId, partner: &EntityId, event: &Event) {
        let Some(branch) = self.social_branch(persona, partner) else { return };
        let text = event.payload.get("text").and_then(Value::as_str).unwrap_or_default();
        self.change(&branch.subject, |branch| {
            branch.facts.insert("last_activity".to_owned(), event.timestamp.to_string().into());
            branch.facts.insert("brief_state".to_owned(), brief(text).into());
        });
        match branch.phase {
            Phase::Active => self.add_to_thread(&branch, event),
            _ => self.let_wait(&branch, &event.id.to_string()),
        }
    }

    /// Adds the message because of which a social branch was created.
    fn introduced(&mut self, branch: &Subject, event: &Event) {
        let newest = self.nth(EntityType::Message, self.changes.tally.made(EntityType::Message));
        let message = newest.and_then(|newest| self.entity(&newest).map(|message| message.into_owned()));
        let message = message.filter(|message| event.parents.contains(&message.first_event));
        let Some((message, branch)) = message.zip(self.entity(branch).map(|branch| branch.into_owned())) else {
            return;
        };
        let text = brief(message.text("text").unwrap_or_default());
        self.change(&branch.subject, |branch| drop(branch.facts.insert("brief_state".to_owned(), text.into())));
        self.let_wait(&branch, &message.first_event.to_string());
    }

    /// Keeps a message for the next thread of a branch.
    fn let_wait(&mut self, branch: &Entity, message: &str) {
        self.change(&branch.subject, |branch| {
            let waiting = append_capped(branch.facts.get("_waiting"), message, limits::TAIL_MAX_COUNT);
            branch.facts.insert("_waiting".to_owned(), waiting);
            for fact in ["_waiting_count", "_messages"] {
                branch.facts.insert(fact.to_owned(), (branch.count(fact) + 1).into());
            }
        });
        self.heard_of(&branch.subject);
    }

    /// Something was heard of a branch: it comes last among the recent ones, and is counted once.
    fn heard_of(&mut self, branch: &Subject) {
        let Some(mut known) = self.entity(branch).map(|branch| branch.into_owned()) else { return };
        let persona = known.text("persona_id").and_then(|name| EntityId::parse(name).ok());
        let is_first = known.facts.insert("_heard_of".to_owned(), true.into()).is_none();
        self.changes.entities.insert(branch.clone(), known);
        let Some(persona) = persona else { return };
        self.change(&root_of(&persona), |root| {
            let recent = moved_to_end(root.facts.get("_recent"), branch.id(), limits::ANCHORS_MAX_COUNT);
            root.facts.insert("_recent".to_owned(), recent);
            root.facts.insert("_heard_count".to_owned(), (root.count("_heard_count") + u64::from(is_first)).into());
        });
    }

    fn add_to_thread(&mut self, branch: &Entity, event: &Event) {
        let Some(thread) = branch.named("current_thread_id", EntityType::Thread) else { return };
        self.change(&thread, |thread| {
            let tail = append_capped(thread.facts.get("tail"), &event.id.to_string(), limits::TAIL_MAX_COUNT);
            thread.facts.insert("tail".to_owned(), tail);
            thread.facts.insert("messages".to_owned(), (thread.count("messages") + 1).into());
        });
        self.change(&branch.subject, |branch| {
            branch.facts.insert("_messages".to_owned(), (branch.count("_messages") + 1).into());
        });
    }

    /// Archives a message that was read.
    pub(super) fn message_read(&mut self, message: &Subject, event: &Event) {
        let Some(read) = self.entity(message).filter(|message| message.last_event == event.id) else { return };
        let root = read.text("to").and_then(|to| EntityId::parse(to).ok()).map(|to| root_of(&to));
        if let Some(root) = root {
            self.change(&root, |root| {
                root.facts.insert("unread".to_owned(), root.count("unread").saturating_sub(1).into());
                root.heard(message.id());
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

    pub(super) fn change(&mut self, subject: &Subject, change: impl FnOnce(&mut Entity)) {
        if let Some(mut entity) = self.entity(subject).map(|entity| entity.into_owned()) {
            change(&mut entity);
            self.changes.entities.insert(subject.clone(), entity);
        }
    }
}
