//! What a gate rests on is read from the log itself. The index can hide an approval, but it cannot invent one.
//!
//! | the step starts a task that | the log must have |
//! |---|---|
//! | any | its TaskProposed, which says whether it is destructive and what requirement it belongs to |
//! | belongs to a requirement | RequirementApproved, caused by the approval of a question about the requirement |
//! | is destructive | the approval of a question about the task |
//! | is a destructive job | the same, of the question that was asked about exactly what is about to run |

use serde_json::Value;

use super::transaction::Transaction;
use crate::base::{Actor, Error, Result, Subject, Ulid};
use crate::event::kind::{OPERATOR_KEYS, SIGNATURE};
use crate::event::{Draft, Event, Kind};
use crate::policy::REACTOR;
use crate::policy::approval::{self, Question};
use crate::policy::authority;
use crate::policy::command::{BOUND_DIGEST, COMMAND_HASH};
use crate::state::linked;

/// How far the request of a decision can be before its answer: only a timeout comes between them.
const REQUEST_MAX_STEPS: usize = 4;

impl Transaction<'_> {
    /// Checks that the log has the approvals that the state says there are.
    pub(super) fn check_evidence(&self, draft: &Draft) -> Result<()> {
        let task = match draft.kind {
            Kind::TaskAssigned => draft.subject.clone(),
            Kind::RunStarted => match linked(draft.kind, &draft.payload) {
                Some(task) => task,
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        let Some(entity) = self.state().entity(&task) else { return Ok(()) };
        let proposed = self.line(entity.first_event, Kind::TaskProposed, &task)?;
        if let Some(requirement) = linked(Kind::TaskProposed, &proposed.payload) {
            let known = self.state().entity(&requirement).and_then(|known| known.as_requirement().approved_by());
            let approved = self.line(known.unwrap_or_default(), Kind::RequirementApproved, &requirement)?;
            self.check_approval(&approved.parents, &requirement)?;
        }
        if proposed.payload.get("destructive") == Some(&Value::Bool(true)) {
            let decision = approval::approved(self.state(), Question::Destructive, &task);
            let answered: Vec<Ulid> = decision.map(|decision| decision.last_event).into_iter().collect();
            let question = self.check_approval(&answered, &task)?;
            if draft.kind == Kind::RunStarted {
                self.check_asked(&question, &task, draft)?;
            }
        }
        Ok(())
    }

    /// Checks that a question was asked about the command that a run is about to start.
    fn check_asked(&self, question: &Event, task: &Subject, run: &Draft) -> Result<()> {
        let asked = |event: &Event| [COMMAND_HASH, BOUND_DIGEST].map(|member| event.payload.get(member).cloned());
        let says_what_runs = |event: &Event| {
            let kind = event.event_type.known();
            matches!(kind, Some(Kind::TaskProposed | Kind::TaskEdited | Kind::CommandChanged))
                && event.subject == task.to_string()
        };
        for cause in &question.parents {
            if let Some(cause) = self.find(*cause)?.filter(says_what_runs) {
                let wanted = [COMMAND_HASH, BOUND_DIGEST].map(|member| run.payload.get(member).cloned());
                return if asked(&cause) == wanted { Ok(()) } else { Err(self.invented(task, Kind::DecisionApproved)) };
            }
        }
        Err(self.invented(task, Kind::DecisionApproved))
    }

    /// Checks that one of these events approves a question about this target. Returns the question.
    fn check_approval(&self, events: &[Ulid], target: &Subject) -> Result<Event> {
        for id in events {
            let Some(answer) = self.find(*id)?.filter(|event| event.event_type.known() == Some(Kind::DecisionApproved))
            else {
                continue;
            };
            let request = self.request_of(&answer)?.filter(|request| self.is_valid(&answer, request));
            if let Some(request) = &request
                && self.must_be_signed(&answer)?
            {
                authority::check_approval(&answer, request, &|id| self.intact(id))?;
            }
            let is_about_it =
                |request: &Event| request.payload.get("target").and_then(Value::as_str) == Some(&target.to_string());
            if let Some(request) = request.filter(is_about_it) {
                return Ok(request);
            }
        }
        Err(self.invented(target, Kind::DecisionApproved))
    }

    /// Whether an operator answered, and the toolkit asked. Version 0.1, which recorded no settings, was less strict.
    fn is_valid(&self, answer: &Event, request: &Event) -> bool {
        let is_old = self.state().tally().settings_since.is_none_or(|since| answer.id < since);
        // A signature decides, not who carried it in.
        let is_signed = answer.payload.contains_key(SIGNATURE);
        let by_operator = Actor::parse(&answer.actor).is_ok_and(|actor| is_signed || !actor.is_autonomous());
        is_old || by_operator && request.actor == Actor::core(REACTOR).to_string()
    }

    /// Whether an answer must be signed: it was given after the first operator key. That a vault had keys from its
    /// beginning is in its first event, whatever the index says.
    fn must_be_signed(&self, answer: &Event) -> Result<bool> {
        let has_signature = answer.payload.contains_key(SIGNATURE);
        let is_keyed = self.state().tally().keyed_since.is_some_and(|since| answer.id > since);
        let first = || Ok(self.state().first_event().map(|id| self.intact(id)).transpose()?.flatten());
        let from_beginning =
            |first: Option<Event>| first.is_some_and(|first| first.payload.contains_key(OPERATOR_KEYS));
        Ok(has_signature || is_keyed || first().map(from_beginning)?)
    }

    /// The request of the decision that an event answers.
    fn request_of(&self, answer: &Event) -> Result<Option<Event>> {
        let mut last = answer.clone();
        for _ in 0..REQUEST_MAX_STEPS {
            let mut earlier = None;
            for parent in &last.parents {
                earlier = earlier.or(self.find(*parent)?.filter(|event| event.subject == answer.subject));
            }
            match earlier {
                Some(event) if event.event_type.known() == Some(Kind::DecisionRequested) => return Ok(Some(event)),
                Some(event) => last = event,
                None => break,
            }
        }
        // A caller may have named other causes.
        let decision = Subject::parse(&answer.subject).ok().and_then(|decision| self.state().entity(&decision));
        let first = decision.map(|decision| self.find(decision.first_event)).transpose()?.flatten();
        Ok(first.filter(|event| event.subject == answer.subject))
    }

    /// The event with this id, if its hash is right: in this batch, whose events are not hashed yet, or in the log.
    fn find(&self, id: Ulid) -> Result<Option<Event>> {
        match self.batch().event(id) {
            Some(event) => Ok(Some(event.clone())),
            None => Ok(self.log.find(id)?.filter(Event::is_intact)),
        }
    }

    /// An event of this kind about this subject.
    fn line(&self, id: Ulid, kind: Kind, subject: &Subject) -> Result<Event> {
        let is_it = |event: &Event| event.event_type.known() == Some(kind) && event.subject == subject.to_string();
        self.find(id)?.filter(is_it).ok_or_else(|| self.invented(subject, kind))
    }

    fn invented(&self, subject: &Subject, kind: Kind) -> Error {
        let name = self.state().entity(subject).map_or_else(|| subject.to_string(), |entity| entity.name());
        Error::corrupt(format!(
            "the index is wrong about {name}: the log has no {kind} for it; run hf-project --rebuild"
        ))
    }
}
