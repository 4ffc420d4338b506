//! The audit: replays a log against the rules, event by event.
//!
//! The hash chain proves that no byte was changed. The audit checks every event against the rules, the deadlines and
//! the consequences that must follow, as far as the log alone can decide them, even if it was written without the
//! commands. It cannot know whose shell recorded an event or whether a job had a supervisor, and it does not check the
//! limits on tasks in progress and on the length of deep work.

use std::collections::{HashSet, VecDeque};
use std::fmt;

use super::authority::{self, Acts, Find, Signed};
use super::due::{MachineFacts, Moment};
use super::react::{REACTOR, react};
use super::rules::{self, Step};
use super::statement::{Act, EventRef};
use super::{Settings, branch, clock, command};
use crate::base::{
    Actor, Digest, EntityType, Error, ErrorKind, OperatorKey, Reason, Result, Subject, Timestamp, Ulid, limits, names,
};
use crate::event::kind::SideEffect;
use crate::event::{Draft, Event, Kind, parse_ulid};
use crate::state::State;

/// The state of an audit after the events so far.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    state: State,
    /// In log order, which is also sorted.
    ids: Vec<Ulid>,
    /// The events of the current batch.
    batch: Vec<Event>,
    /// The events of a cascade that continues in further batches.
    cascade: Vec<Event>,
    /// The consequences of an event that are expected next.
    expected: VecDeque<Draft>,
    /// The settings in force; none until the log records some.
    settings: Option<Settings>,
    /// The latest time of an event since the clock was last set.
    latest: Option<Timestamp>,
    /// The statements that were recorded so far: each one stands once.
    statements: HashSet<Digest>,
    /// The statement whose acts are being recorded.
    acts: Acts,
    /// The keys that may sign, from outside the log; any valid one if missing.
    listed: Option<Vec<OperatorKey>>,
    /// The newest event that somebody vouched for with a signature.
    signed_through: Option<EventRef>,
    /// What is wrong with signatures so far: how many are missing and how many are bad.
    unsigned: usize,
    badly_signed: usize,
}

names! {
    /// The verdict on operators' signatures.
    pub enum SignatureVerdict {
        /// Every act of an operator is signed by a listed key.
        Ok = "OK",
        /// Every act is signed by a key of the log, but nothing from outside says whose keys these are.
        Unpinned = "UNPINNED",
        /// An act is not signed.
        Missing = "MISSING",
        /// A signature is not valid, not by a listed key, or for something else.
        Bad = "BAD",
        /// The log has no operator keys, so nothing is signed.
        None = "NONE",
    }
}

/// Something that is wrong with an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditFinding {
    pub about: Aspect,
    pub text: String,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    Rules,
    Signatures,
}

impl fmt::Display for AuditFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The log before the events that an audit has seen.
#[expect(missing_debug_implementations, reason = "functions")]
#[derive(Clone, Copy)]
pub struct Before<'a> {
    /// Whether an id is that of an event which it has not seen.
    pub is_unseen: &'a dyn Fn(Ulid) -> bool,
    /// Looks up any earlier event.
    pub find: Find<'a>,
}

impl Audit {
    /// An audit that continues after this event, in the state after it. The log must not be in the middle of a cascade.
    pub fn after(last: &Event, state: State) -> Audit {
        let settings = Settings::recorded(&state);
        Audit { ids: vec![last.id], latest: Some(last.timestamp), settings, state, ..Audit::default() }
    }

    /// The same audit for which only these keys may sign.
    pub fn with_listed(self, listed: Option<Vec<OperatorKey>>) -> Audit {
        Audit { listed, ..self }
    }

    /// The verdict on signatures so far.
    pub fn signatures(&self) -> SignatureVerdict {
        match (self.badly_signed, self.unsigned, self.state.tally().is_keyed(), &self.listed) {
            (1.., ..) => SignatureVerdict::Bad,
            (_, 1.., ..) => SignatureVerdict::Missing,
            // There should be some.
            (_, _, false, Some(_)) => SignatureVerdict::Missing,
            (_, _, false, None) => SignatureVerdict::None,
            (_, _, true, Some(_)) => SignatureVerdict::Ok,
            (_, _, true, None) => SignatureVerdict::Unpinned,
        }
    }

    /// The newest event that an operator vouched for with a signature: the log up to it is what they saw.
    pub fn signed_through(&self) -> Option<EventRef> {
        self.signed_through
    }

    /// Checks the next event of a log without operator keys. Returns what is wrong with it.
    pub fn check(&mut self, event: &Event) -> Vec<AuditFinding> {
        self.check_in(event, &|_| Ok(None))
    }

    /// The same for any log that the audit has seen from its beginning.
    pub fn check_in(&mut self, event: &Event, find: Find<'_>) -> Vec<AuditFinding> {
        self.check_after(event, Before { is_unseen: &|_| false, find })
    }

    /// The same for an audit that has not seen the whole log.
    pub fn check_after(&mut self, event: &Event, before: Before<'_>) -> Vec<AuditFinding> {
        let mut signatures = Vec::new();
        let checked = self.signed(event, before).and_then(|signed| signed.map_or(Ok(()), |s| self.see_statement(&s)));
        if let Err(error) = checked {
            match error.kind {
                ErrorKind::Refused(Reason::NotSigned) => self.unsigned += 1,
                _ => self.badly_signed += 1,
            }
            signatures.push(format!("event {}: {error}", event.id));
        }
        let rules = self.check_rules(event, before.is_unseen).into_iter();
        let ended = if event.ends_batch() { self.acts.end() } else { Ok(()) };
        if let Err(error) = ended {
            self.badly_signed += 1;
            signatures.push(format!("event {}: {error}", event.id));
        }
        let finding = |about| move |text| AuditFinding { about, text };
        rules.map(finding(Aspect::Rules)).chain(signatures.into_iter().map(finding(Aspect::Signatures))).collect()
    }

    /// Checks the signature of an event, if an operator has to sign it.
    fn signed(&self, event: &Event, before: Before<'_>) -> Result<Option<Signed>> {
        let is_act = |kind: &Kind| *kind == Kind::VaultInitialized || Act::of_kind(*kind).is_some();
        let kind = event.event_type.known().filter(is_act);
        let (Some(kind), Ok(subject)) = (kind, Subject::parse(&event.subject)) else { return Ok(None) };
        // An act on something else breaks the rules, and nobody can have stated it.
        if !kind.fits(&subject) {
            return Ok(None);
        }
        let Ok(actor) = Actor::parse(&event.actor) else { return Ok(None) };
        let step = Step { kind, subject: &subject, actor: &actor, payload: &event.payload };
        let is_earlier = |id: Ulid| self.ids.binary_search(&id).is_ok() || (before.is_unseen)(id);
        let find = |id: Ulid| if is_earlier(id) { (before.find)(id) } else { Ok(None) };
        let signed = authority::check(&self.state, &step, &find)?;
        if let (Some(signed), Some(listed)) = (&signed, &self.listed)
            && !listed.iter().any(|key| key.is_same_key(&signed.key))
        {
            let why = format!("signed by {}, which is not listed", signed.key.fingerprint());
            return Err(Error::refused(Reason::BadSignature, why));
        }
        Ok(signed)
    }

    /// A statement stands once.
    fn see_statement(&mut self, signed: &Signed) -> Result<()> {
        let seen = [self.signed_through, signed.through];
        self.signed_through = seen.into_iter().flatten().max_by_key(|seen| seen.id);
        match self.acts.see(signed)? && !self.statements.insert(signed.statement) {
            true => Err(Error::refused(Reason::BadSignature, "its statement was used before")),
            false => Ok(()),
        }
    }

    /// Checks an event against the rules. Returns what is wrong with it, one message each.
    fn check_rules(&mut self, event: &Event, is_earlier: &dyn Fn(Ulid) -> bool) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut report = |what: String| wrong.push(format!("event {}: {what}", event.id));
        let last = self.ids.last().copied();
        if last.is_some_and(|last| last >= event.id) {
            report("its id is not greater than the previous one".to_owned());
        }
        // An id is made from the clock or is one greater than the previous id, so its time is never earlier.
        if event.timestamp.0.saturating_mul(1000) > event.id.timestamp_ms() as i64 {
            report(format!("its time {} is later than the time in its id", event.timestamp));
        } else if self.settings.is_some() && !is_timely(last, event) {
            report(format!("its time {} does not match the time in its id", event.timestamp));
        }
        for parent in &event.parents {
            if self.ids.binary_search(parent).is_err() && !is_earlier(*parent) {
                report(format!("its parent {parent} is not an earlier event"));
            }
        }
        if let Some(key) = &event.key
            && self.state.keyed(key).is_some()
        {
            report(format!("the key '{key}' was used before"));
        }
        if Actor::parse(&event.actor).is_err() {
            report(format!("invalid actor '{}'", event.actor));
        }
        let begins = event.event_type.known() == Some(Kind::VaultInitialized);
        if begins != self.ids.is_empty() {
            report(
                if begins {
                    "VaultInitialized is not the first event"
                } else {
                    "the first event is not VaultInitialized"
                }
                .to_owned(),
            );
        }
        if let Some(kind) = event.event_type.known() {
            self.check_known(kind, event, &mut report);
            if let Err(why) = clock::check(event, kind) {
                report(why);
            }
        }
        let set = matches!(event.event_type.known(), Some(Kind::ClockStepped | Kind::MachineBooted));
        // A repair of the log is recorded before anything else, even a clock change.
        let repair =
            matches!(event.event_type.known(), Some(Kind::TailQuarantined | Kind::TailAdopted | Kind::VaultRecovered));
        if let Some(latest) = self.latest.filter(|latest| !set && !clock::is_in_order(*latest, event.timestamp))
            && self.settings.is_some()
            && !repair
        {
            report(format!("its time {} is before {latest}, and no clock change was recorded", event.timestamp));
        }
        if let Some(kind) = event.event_type.known()
            && event.actor == Actor::core(REACTOR).to_string()
            && !self.is_consequence(kind, event)
        {
            report(format!("{kind} of {} is not a consequence of any of its parents", event.subject));
        }
        self.latest = if set { Some(event.timestamp) } else { self.latest.max(Some(event.timestamp)) };
        self.ids.push(event.id);
        self.state.apply(event);
        if self.state.changes().settings.is_some() && event.event_type.known().is_some_and(records_settings) {
            self.settings = Settings::recorded(&self.state);
        }
        self.batch.push(event.clone());
        if event.ends_batch() {
            wrong.extend(self.missing());
        }
        wrong
    }

    /// Checks subject, payload, rules and deadlines of an event whose kind this version knows.
    fn check_known(&self, kind: Kind, event: &Event, report: &mut dyn FnMut(String)) {
        if let Err(error) = kind.check_payload(&event.payload) {
            report(error.message);
        }
        let Some(subject) = Subject::parse(&event.subject).ok().filter(|subject| kind.fits(subject)) else {
            return report(format!("{kind} cannot have the subject {}", event.subject));
        };
        let Ok(actor) = Actor::parse(&event.actor) else { return };
        let step = Step { kind, subject: &subject, actor: &actor, payload: &event.payload };
        if let Err(error) = rules::check(&self.state, &step) {
            report(error.message);
        }
        // Versions that recorded no settings did not check deadlines.
        if let Some(settings) = &self.settings {
            let machine = MachineFacts::default();
            let moment = Moment { state: &self.state, settings, now: event.timestamp, machine: &machine };
            let gated = || command::is_gated_by_settings(&self.state, settings, &step);
            if let Err(error) = moment.check(&step).and_then(|()| gated()) {
                report(error.message);
            }
        }
    }

    /// Whether an event of the reactor is what follows from one of its parents, which must be in the same batch or in
    /// the batches of the same cascade.
    fn is_consequence(&mut self, kind: Kind, event: &Event) -> bool {
        let Some(settings) = &self.settings else { return true };
        // What follows for branches depends on ids that the log does not keep.
        if branch::may_follow(kind) {
            return true;
        }
        if self.expected.front().is_some_and(|draft| fits(draft, event)) {
            self.expected.pop_front();
            return true;
        }
        let causes = self.batch.iter().chain(&self.cascade).filter(|cause| event.parents.contains(&cause.id));
        for cause in causes {
            let mut drafts: VecDeque<Draft> = react(&self.state, settings, cause, &mut Ulid::nil).into();
            // Those of branches may come first.
            while drafts.front().is_some_and(|draft| branch::is_of_branches(draft.kind)) {
                drafts.pop_front();
            }
            if drafts.front().is_some_and(|draft| fits(draft, event)) {
                drafts.pop_front();
                self.expected = drafts;
                return true;
            }
        }
        false
    }

    /// The consequences that are missing from a batch. A cascade that fills its batch continues in the next ones.
    fn missing(&mut self) -> Vec<String> {
        let batch = std::mem::take(&mut self.batch);
        // The vault's own events may come between the parts of a cascade.
        let reserved = |event: &Event| event.event_type.known().is_some_and(|kind| kind.row().reserved);
        if !self.cascade.is_empty() && batch.iter().all(reserved) {
            return Vec::new();
        }
        let full = batch.len() >= limits::CASCADE_MAX_EVENTS;
        let mut causes = std::mem::take(&mut self.cascade);
        causes.extend(batch);
        let settings = self.settings.clone().unwrap_or_default();
        let mut wrong = Vec::new();
        for event in &causes {
            let follows = react(&self.state, &settings, event, &mut Ulid::nil);
            let known = |draft: &&Draft| !(self.is_before_branches() && branch::is_of_branches(draft.kind));
            let is_undecidable = |draft: &&Draft| draft.kind.row().depends_on_settings && self.settings.is_none();
            let missing = follows.iter().filter(|draft| !is_undecidable(draft)).filter(known);
            wrong.extend(
                missing.map(|d| format!("event {}: {} of {} must follow, but is missing", event.id, d.kind, d.subject)),
            );
        }
        if full && !wrong.is_empty() {
            self.cascade = causes;
            return Vec::new();
        }
        self.expected.clear();
        wrong
    }

    /// Versions without branches wrote valid logs that contain none.
    fn is_before_branches(&self) -> bool {
        self.state.tally().made(EntityType::Branch) == 0
    }
}

/// Whether the id of an event was made at the time of the event. If the clock stands still or goes back, it follows the
/// previous id instead.
fn is_timely(last: Option<Ulid>, event: &Event) -> bool {
    let made = event.id.timestamp_ms();
    let follows = last.is_some_and(|last| made.saturating_sub(1) <= last.timestamp_ms());
    follows || made / 1000 == event.timestamp.0.max(0) as u64
}

/// Whether an event is the one that a draft describes. The id of a new entity can be any ULID.
fn fits(draft: &Draft, event: &Event) -> bool {
    let subject = Subject::parse(&event.subject).ok();
    let is_minted = draft.subject.id() == Ulid::nil().to_string();
    let same_subject = subject.is_some_and(|subject| match is_minted {
        true => subject.entity == draft.subject.entity && parse_ulid(subject.id()).is_some(),
        false => subject == draft.subject,
    });
    event.event_type.known() == Some(draft.kind)
        && same_subject
        && event.parents == draft.parents
        && event.key.is_none()
        && draft.payload == event.payload
}

/// Whether an event of this kind records the settings in force.
fn records_settings(kind: Kind) -> bool {
    kind.row().side_effect == SideEffect::AdoptsSettings
}
