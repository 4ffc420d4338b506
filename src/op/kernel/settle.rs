//! Settling: before it decides anything, a transaction records what is due.
//!
//! First what is independent of the request: a cascade that was cut off, a stop that has only its flag, changed
//! settings, a machine that slept or was restarted, a clock that was set, the caller's session. Then what the request
//! concerns: its subject and what it names, with their tasks, runs and deep work; for a project, its claims and
//! sessions; before a task is chosen, or claimed at the limit of tasks in progress, overdue claims. So a checkpoint does
//! not cost more when much is due elsewhere. The rest is left to the watchdog. What is settled is recorded in separate
//! batches before the request's, unless the batch already contains a request.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::context::Context;
use super::recorded::is_stopped;
use super::transaction::Transaction;
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityType, Result, Subject, limits};
use crate::event::kind::{CHANGED, SETTINGS, Starts};
use crate::event::{Draft, Event, Kind, parse_ulid};
use crate::machine;
use crate::policy::due::{self, Due};
use crate::policy::settings::{Regime, Settings};
use crate::policy::{REACTOR, Request, clock, ready};
use crate::state::Timer;
use crate::vault::{StopFlag, still_stopped};

/// How many overdue claims are settled before a task is chosen.
const CLAIMS_MAX: usize = 100;
/// What is settled is recorded in batches of about this many events.
const SETTLED_MAX_EVENTS: usize = 500;

impl Transaction<'_> {
    /// Records a stop that has only its flag; lowers a flag whose stop was lifted.
    pub(super) fn settle_stop(&mut self) -> Result<()> {
        self.stops = self.vault().stop_flags();
        for stop in self.stops.clone() {
            let stopped = is_stopped(self.state());
            let as_event = parse_ulid(&stop.id).map(|id| self.log.find(id)).transpose()?.flatten();
            let recorded = self.state().keyed(&stop.key()).is_some() || as_event.is_some();
            match (stopped, recorded) {
                (true, _) => {}
                (false, true) if self.writes() => {
                    self.vault().lower_stop(&stop).map_err(|error| still_stopped(&error))?;
                }
                (false, true) => {}
                (false, false) => self.record_stop(&stop)?,
            }
        }
        Ok(())
    }

    fn record_stop(&mut self, stop: &StopFlag) -> Result<()> {
        let mut payload = json!({"reason": stop.reason});
        // It has been in force since its flag was raised, which may be long before anybody could record it.
        if let Some(raised) = stop.raised_at().filter(|raised| *raised < self.now.timestamp()) {
            payload["raised_at"] = raised.to_string().into();
        }
        let draft = Draft {
            kind: Kind::EmergencyStopIssued,
            subject: Subject::SYSTEM,
            actor: raised_by(stop),
            parents: Vec::new(),
            key: Some(stop.key()),
            payload: payload.as_object().expect("an object").clone(),
        };
        self.add(draft)?;
        self.write_now()
    }

    /// Records what changed since the last event: settings, and the machine's clocks.
    pub(super) fn settle_world(&mut self, ctx: &Context) -> Result<()> {
        let mut found: Vec<(Kind, Value)> = Vec::new();
        // Clocks that cannot be saved are ignored: each command would find the same change again.
        let now = (ctx.host.clocks)();
        let seen = self.vault().clock_seen().and_then(|seen| match (&seen, &now, self.writes()) {
            (None, Some(now), true) => self.vault().remember_clock(now).map(|()| seen),
            _ => Ok(seen),
        });
        let (seen, now) = match seen {
            Ok(seen) => (seen, now),
            Err(error) => {
                self.warnings.push(format!("cannot save the machine's clocks: {error}"));
                (None, None)
            }
        };
        let changes = now.map(|now| clock::changes(seen.as_ref(), &now)).unwrap_or_default();
        found.extend(changes.iter().map(clock::ClockChange::event));
        found.extend(self.changed_settings(&self.config.settings, &ctx.caller.actor));
        for (kind, payload) in found {
            let parents = self.state().first_event().into_iter().collect();
            let payload = payload.as_object().cloned().unwrap_or_default();
            let actor = Actor::core(clock::KERNEL);
            self.add(Draft { kind, subject: Subject::SYSTEM, actor, parents, key: None, payload })?;
        }
        self.clocks = now;
        self.write_now()
    }

    /// The event that records these settings, found by this actor; none if they are recorded already, or if only adopted
    /// settings count.
    pub(in crate::op) fn changed_settings(&self, settings: &Settings, found_by: &Actor) -> Option<(Kind, Value)> {
        let (recorded, now) = (self.state().settings(), settings.to_json());
        if Regime::of(self.state()).is_strict() || recorded.as_ref() == Some(&now) {
            return None;
        }
        let mut payload = json!({SETTINGS: now, "noticed_by": found_by.to_string()});
        if let Some(recorded) = recorded {
            payload[CHANGED] = Settings::from_json(&recorded).changes_to(settings).into();
        }
        Some((Kind::SettingsChanged, payload))
    }

    /// Continues a cascade that an earlier command could not finish.
    pub(super) fn settle_cascade(&mut self) -> Result<()> {
        match self.state().tally().is_cut_off {
            true => {
                let causes = self.cut_off()?;
                self.resume_cascade(causes)
            }
            false => Ok(()),
        }
    }

    /// The events of the last batches, if they may be a cascade that was cut off: full, and back to the batch that starts
    /// with a request.
    fn cut_off(&self) -> Result<Vec<Event>> {
        let (mut events, mut left): (Vec<Event>, u64) = (Vec::new(), 0);
        let reactor = Actor::core(REACTOR).to_string();
        self.log.read_back(&mut |event| {
            // Only reserved events, which the vault itself records, can follow a cascade that was cut off.
            let reserved = event.event_type.known().is_some_and(|kind| kind.row().reserved);
            if left == 0 && events.is_empty() && reserved && event.batch.is_none_or(|batch| batch.no == batch.of) {
                return Ok(ControlFlow::Continue(()));
            }
            if left == 0 {
                let full = event.batch.is_some_and(|batch| batch.of >= limits::CASCADE_MAX_EVENTS as u64);
                let continues = events.last().is_none_or(|first: &Event| first.actor == reactor);
                if !full || !continues {
                    return Ok(ControlFlow::Break(()));
                }
                left = event.batch.map_or(0, |batch| batch.of);
            }
            left -= 1;
            events.push(event);
            Ok(ControlFlow::Continue(()))
        })?;
        events.reverse();
        Ok(events)
    }

    /// Settles the caller's session.
    pub(super) fn settle_session(&mut self, ctx: &Context) -> Result<()> {
        let session = ctx.session.as_ref().and_then(|name| self.state().find(name, EntityType::Session).ok());
        let Some(session) = session else { return Ok(()) };
        if !self.writes() {
            self.session_due = self.state().entity(&session).and_then(|session| self.moment().due_of(&session));
        }
        self.settle(&[session])
    }

    /// Settles what a request is about.
    pub(super) fn settle_for(&mut self, request: &Request) -> Result<()> {
        // A project without events of its own can still have something overdue.
        let named = request
            .subject
            .as_ref()
            .and_then(|subject| self.state().resolve(subject, None).ok().or_else(|| Subject::parse(subject).ok()));
        let mut subjects: Vec<Subject> = named.into_iter().collect();
        subjects.extend(request.kind.references(&request.payload));
        self.settle(&subjects)?;
        // An expired claim keeps nobody from claiming something else.
        if request.kind.row().starts == Starts::Claim && ready::is_full(self.state(), &self.config) {
            self.settle_claims(None)?;
        }
        Ok(())
    }

    /// Settles these subjects, their tasks and runs, and the deep work of the holders.
    pub fn settle(&mut self, subjects: &[Subject]) -> Result<()> {
        let moment = self.moment();
        let concerned = due::concerned(self.state(), subjects.iter());
        let mut found: Vec<Due> = concerned.iter().filter_map(|entity| moment.due_of(entity)).collect();
        for project in subjects.iter().filter(|subject| subject.entity == EntityType::Project) {
            // What was overdue before a project was paused is still overdue.
            found.extend(moment.due_claims(Some(project), usize::MAX));
            found.extend(moment.due(&[Timer::Session], Some(project), usize::MAX));
        }
        // Housekeeping is left to the watchdog.
        found.retain(|due| due.code.is_anomaly());
        self.record_due(found)
    }

    /// Settles overdue claims and runs of a project, before one of its tasks is chosen.
    pub fn settle_claims(&mut self, project: Option<&Subject>) -> Result<()> {
        let found = self.moment().due_claims(project, CLAIMS_MAX);
        self.record_due(found)
    }

    /// Settles an agent: its deep work, and the tasks it holds.
    pub fn settle_agent(&mut self, actor: &Actor) -> Result<()> {
        let agent = actor.agent().map(|agent| Subject::new(EntityType::Agent, agent));
        self.settle(agent.as_slice())
    }

    /// Settles everything except archiving, for a view. Returns what was due, and what it changed, by subject: the
    /// position of its cause.
    pub fn settle_all(&mut self) -> Result<(Vec<Due>, BTreeMap<Subject, usize>)> {
        let mut found = self.moment().due(Timer::ALL, None, usize::MAX);
        found.retain(|due| due.code.is_anomaly());
        // Settled already, to know whether the caller has a session.
        found.extend(self.session_due.take());
        due::sort(&mut found);
        let mut changed = BTreeMap::new();
        for (position, due) in found.iter().enumerate() {
            self.add_due(due)?;
            let subjects = self.batch().events().iter().filter_map(|event| Subject::parse(&event.subject).ok());
            for subject in subjects {
                changed.entry(subject).or_insert(position);
            }
            self.write_now()?;
        }
        Ok((found, changed))
    }

    /// Adds what records something that is due. A reaction to an earlier one may have settled it already.
    fn add_due(&mut self, due: &Due) -> Result<()> {
        match machine::step(due.subject.entity, self.state().phase_of(&due.subject), due.kind) {
            Some(_) => self.add(due.draft()),
            None => Ok(()),
        }
    }

    fn record_due(&mut self, mut found: Vec<Due>) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        due::sort(&mut found);
        // After a request in the same batch it has to be recorded with that batch.
        let separate = self.batch().events().is_empty();
        for due in found {
            self.add_due(&due)?;
            // Their number is not limited; the size of a batch is.
            if separate && (!self.writes() || self.batch().events().len() > SETTLED_MAX_EVENTS) {
                self.write_now()?;
            }
        }
        if separate { self.write_now() } else { Ok(()) }
    }
}

/// Who raised a stop, as far as its flag can be believed: anybody who can write the file can write any name.
fn raised_by(stop: &StopFlag) -> Actor {
    let named = Actor::parse(&stop.by).ok().filter(|actor| actor.kind != ActorKind::Core);
    named.unwrap_or_else(|| Actor::external("stop-flag"))
}
