//! Operators' signatures: which events an operator signs, what the statement must say, and whether a signed event keeps
//! to it.
//!
//! In a vault with operator keys the signature decides, not the shell: anybody may carry it in. A statement names the
//! event that it answers and the newest change of keys or settings by id and hash. Both must still be in force when it is
//! recorded, so nothing that was signed can be used twice or for something else.
//!
//! Invariant: what an operator signs is computed from the log, by `stated`, before and after it is recorded
//! (`a8_a_statement_that_differs_from_the_event_is_refused`).

use serde_json::{Map, Value};

use super::approval;
use super::rules::Step;
use super::settings::{self, Settings};
use super::statement::{Act, BOUND_KEY, BOUND_SETTINGS, Bound, EventRef, NAMESPACE, StatedAct, Statement};
use super::statement::{StatementRefusal, act_words};
use crate::base::signature::SignatureRefusal;
use crate::base::{Actor, Digest, Error, OperatorKey, Reason, Result, Signature, Strength, Subject, Ulid, limits};
use crate::event::kind::{
    ACT, COMPROMISED, FilledBy, OPERATOR_KEY, OPERATOR_KEYS, SETTINGS, SIGNATURE, SIGNED_BY, STATEMENT,
};
use crate::event::{Event, Kind};
use crate::state::State;

/// Looks up an event that was recorded before, by its id.
pub type Find<'a> = &'a dyn Fn(Ulid) -> Result<Option<Event>>;

/// A signature that was checked.
#[derive(Clone, Debug)]
pub struct Signed {
    pub key: OperatorKey,
    /// The statement, by its digest.
    pub statement: Digest,
    /// Which act of the statement it is, counted from 1, and how many there are.
    pub act: usize,
    pub acts: usize,
    /// The newest event that the operator saw: the signature vouches for the log up to it.
    pub through: Option<EventRef>,
}

/// The acts of a statement, which are recorded in one batch, in order, each once.
#[derive(Clone, Debug, Default)]
pub struct Acts(Option<(Digest, usize, usize)>);

impl Acts {
    /// Takes the next act that was recorded. Returns whether it begins a statement.
    pub fn see(&mut self, signed: &Signed) -> Result<bool> {
        let (begins, follows) = match self.0.take() {
            Some((statement, seen, _)) => (false, statement == signed.statement && signed.act == seen + 1),
            None => (true, signed.act == 1),
        };
        if !follows {
            return Err(bad("the acts of a statement are recorded together, in its order"));
        }
        self.0 = (signed.act < signed.acts).then_some((signed.statement, signed.act, signed.acts));
        Ok(begins)
    }

    /// Refuses to end a batch without the rest of the acts.
    pub fn end(&mut self) -> Result<()> {
        match self.0.take() {
            Some((_, seen, acts)) => {
                Err(bad(format!("only {seen} of {acts} acts of the statement are to be recorded")))
            }
            None => Ok(()),
        }
    }
}

/// The act that an operator must have signed for this step; none if it needs no signature.
pub fn act_of(state: &State, step: &Step<'_>) -> Option<Act> {
    let act = Act::of_kind(step.kind)?;
    // What follows from something that was signed, or from nobody's answer.
    let is_consequence = *step.actor == Actor::core(super::REACTOR);
    // The first key signs itself.
    let is_signed = state.tally().is_keyed() || act == Act::AddKey;
    (is_signed && !is_consequence).then_some(act)
}

/// Whether a step is an operator's act by its signature, no matter who carries it in.
pub fn is_by_signature(state: &State, kind: Kind, payload: &Map<String, Value>) -> bool {
    let is_act = Act::of_kind(kind).is_some() && (state.tally().is_keyed() || kind == Kind::OperatorKeyAdded);
    is_act && payload.contains_key(SIGNATURE)
}

/// The operators' keys in force.
pub fn keys(state: &State) -> Vec<OperatorKey> {
    parsed(state.tally().operator_keys())
}

fn parsed(lines: &[String]) -> Vec<OperatorKey> {
    lines.iter().filter_map(|line| OperatorKey::parse(line).ok()).collect()
}

/// The act as it must be stated for this step.
pub fn stated(state: &State, step: &Step<'_>, find: Find<'_>) -> Result<StatedAct> {
    let act = Act::of_kind(step.kind).ok_or_else(|| Error::usage(format!("{} is no act of an operator", step.kind)))?;
    let row = act.row();
    let answers = answered(state, act, step.subject).map(|id| event_ref(find, id)).transpose()?;
    let text = |member: &str| step.text(member).filter(|text| !text.is_empty()).map(str::to_owned);
    Ok(StatedAct {
        act,
        subject: step.subject.clone(),
        answers,
        binds: binds(state, act, step, find)?,
        option: if row.has_option { text("chosen_option") } else { None },
        comment: row.comment.and_then(text),
    })
}

/// The event that an act answers, which must still be in force.
fn answered(state: &State, act: Act, subject: &Subject) -> Option<Ulid> {
    let entity = state.entity(subject);
    match act {
        Act::Approve | Act::Reject => entity.map(|decision| decision.first_event),
        Act::Verify | Act::Supersede | Act::RejectRequirement | Act::LiftStop => entity.map(|entity| entity.last_event),
        // A project that was only opened, perhaps in this batch, has no history to refer to.
        Act::ResumeProject | Act::ArchiveProject => entity
            .filter(|project| project.last_event != project.first_event)
            .map(|project| project.last_event)
            .or(state.first_event()),
        Act::AdoptSettings | Act::AddKey | Act::RemoveKey => state.tally().authority,
        Act::Recover => state.tally().last_event,
    }
}

/// Everything that an act covers, in the order in which it is shown.
fn binds(state: &State, act: Act, step: &Step<'_>, find: Find<'_>) -> Result<Vec<Bound>> {
    let bound = |name: &str, value: Option<&str>| value.map(|value| Bound::new(name, value));
    let entity = state.entity(step.subject);
    Ok(match act {
        Act::Approve | Act::Reject => {
            entity.map(|decision| approval::binds(state, &decision, find)).transpose()?.unwrap_or_default()
        }
        Act::Verify | Act::Supersede | Act::RejectRequirement => {
            let known = entity.as_ref().map(|requirement| requirement.as_requirement());
            let title = bound("title", known.and_then(|known| known.title()));
            let content = bound("content", known.and_then(|known| known.content()));
            title.into_iter().chain(content).chain(bound("by", step.text("by"))).collect()
        }
        Act::LiftStop => {
            let system = entity.as_ref().map(|system| system.as_system());
            let by = bound("stopped_by", system.and_then(|system| system.stopped_by()));
            by.into_iter().chain(bound("stop_reason", system.and_then(|system| system.stop_reason()))).collect()
        }
        Act::ResumeProject | Act::ArchiveProject => {
            let why = entity.as_ref().and_then(|project| project.as_project().pause_reason());
            bound("pause_reason", why).into_iter().collect()
        }
        Act::AdoptSettings => settings_bound(Settings::recorded(state), step.payload),
        Act::AddKey => {
            let key = bound(BOUND_KEY, step.text(OPERATOR_KEY));
            key.into_iter().chain(settings_digest(step.payload)).collect()
        }
        Act::RemoveKey => {
            let compromised = step.payload.get(COMPROMISED) == Some(&Value::Bool(true));
            let compromised = compromised.then(|| Bound::new(COMPROMISED, "yes"));
            bound(BOUND_KEY, step.text(OPERATOR_KEY)).into_iter().chain(compromised).collect()
        }
        // Where the rest is kept is found out only while it is moved there.
        Act::Recover => {
            let is_bound = |member: &&String| !is_signed_member(member) && *member != "file";
            let members = step.payload.keys().filter(is_bound);
            members.map(|member| Bound::new(member, in_words(&step.payload[member]))).collect()
        }
    })
}

fn in_words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_signed_member(member: &str) -> bool {
    [SIGNED_BY, STATEMENT, SIGNATURE, ACT].contains(&member)
}

fn settings_digest(payload: &Map<String, Value>) -> Option<Bound> {
    payload.get(SETTINGS).map(|recorded| Bound::new(BOUND_SETTINGS, settings::digest(recorded).to_string()))
}

/// The settings by their digest, and how they differ from those before.
fn settings_bound(before: Option<Settings>, payload: &Map<String, Value>) -> Vec<Bound> {
    let after = payload.get(SETTINGS).map(Settings::from_json).unwrap_or_default();
    let changes = before.unwrap_or_default().changes_to(&after);
    let change = |(name, change): (&String, &Value)| {
        let value = |member: &str| change.get(member).unwrap_or(&Value::Null).to_string();
        Bound::new("change", format!("{name}: {} -> {}", value("from"), value("to")))
    };
    settings_digest(payload).into_iter().chain(changes.iter().map(change)).collect()
}

/// The acts of the statement with which a vault is created: its settings are adopted and its keys added.
pub fn first_acts(settings: &Value, keys: &[String]) -> Vec<StatedAct> {
    let payload = Map::from_iter([(SETTINGS.to_owned(), settings.clone())]);
    let adopt = StatedAct {
        binds: settings_bound(None, &payload),
        ..StatedAct::new(Act::AdoptSettings, Subject::SYSTEM, None)
    };
    let add = |key: &String| StatedAct {
        binds: vec![Bound::new(BOUND_KEY, key.as_str())],
        ..StatedAct::new(Act::AddKey, Subject::SYSTEM, None)
    };
    std::iter::once(adopt).chain(keys.iter().map(add)).collect()
}

/// The statement of these acts, for an operator to sign now. `head` is the newest event of the log.
pub fn statement(state: &State, acts: Vec<StatedAct>, head: EventRef, find: Find<'_>) -> Result<Statement> {
    let authority = state.tally().authority.map(|id| event_ref(find, id)).transpose()?;
    Statement::new(&vault_id(state, find)?, authority, Some(head), acts).map_err(StatementRefusal::into_error)
}

fn vault_id(state: &State, find: Find<'_>) -> Result<String> {
    let first = state.first_event().map(find).transpose()?.flatten();
    let id = first.as_ref().and_then(|first| first.payload.get("vault_id")).and_then(Value::as_str);
    id.map(str::to_owned).ok_or_else(|| Error::corrupt("the first event of the log has no vault id"))
}

fn event_ref(find: Find<'_>, id: Ulid) -> Result<EventRef> {
    match find(id)? {
        Some(event) => Ok(EventRef::to(&event)),
        None => Err(bad(format!("event {id} is not in the log"))),
    }
}

/// The members that a signature adds to the payload of an event.
pub fn signed_members(statement: &Statement, signature: &Signature, act: usize) -> Map<String, Value> {
    let key = signature.claimed_key().fingerprint().to_string();
    let mut members = Map::from_iter([
        (SIGNED_BY.to_owned(), key.into()),
        (STATEMENT.to_owned(), statement.to_string().into()),
        (SIGNATURE.to_owned(), signature.to_string().into()),
    ]);
    if statement.acts().len() > 1 {
        members.insert(ACT.to_owned(), act.into());
    }
    members
}

fn bad(why: impl Into<String>) -> Error {
    Error::refused(Reason::BadSignature, why)
}

/// What an event of this kind lacks.
pub fn not_signed(kind: Kind) -> Error {
    let what = Act::of_kind(kind).map_or(kind.as_str(), act_words);
    Error::refused(Reason::NotSigned, format!("this vault has operator keys: to {what} requires a signature by one"))
}

/// The statement and the signature in a payload, verified as such: whose signature it is, over which statement.
struct Proven {
    key: OperatorKey,
    strength: Strength,
    statement: Statement,
    act: usize,
}

impl Proven {
    /// `None` if the payload has neither.
    fn read(payload: &Map<String, Value>) -> Result<Option<Proven>> {
        let text = |member: &str| payload.get(member).and_then(Value::as_str);
        if !payload.contains_key(STATEMENT) && !payload.contains_key(SIGNATURE) {
            return Ok(None);
        }
        let (Some(stated), Some(armored)) = (text(STATEMENT), text(SIGNATURE)) else {
            return Err(bad("the statement or the signature is missing"));
        };
        let statement = Statement::parse(stated.as_bytes()).map_err(|why| bad(why.to_string()))?;
        let signature = Signature::parse(armored).map_err(SignatureRefusal::into_error)?;
        // It may come in with other line breaks, but is recorded in its one spelling, as ssh-keygen writes it.
        if signature.to_string() != armored {
            return Err(bad("the signature is not spelled as it is recorded"));
        }
        let proof = signature.verify(stated.as_bytes(), NAMESPACE).map_err(SignatureRefusal::into_error)?;
        if text(SIGNED_BY) != Some(&proof.key.fingerprint().to_string()) {
            return Err(bad("signed_by is not the key that signed"));
        }
        let act = match payload.get(ACT) {
            None => 1,
            Some(number) => number.as_u64().unwrap_or_default() as usize,
        };
        if !(1..=statement.acts().len()).contains(&act) {
            return Err(bad(format!("the statement has no act {act}")));
        }
        Ok(Some(Proven { key: proof.key, strength: proof.strength, statement, act }))
    }

    fn stated(&self) -> &StatedAct {
        &self.statement.acts()[self.act - 1]
    }

    fn signed(self) -> Signed {
        let seen = self.statement.head_seen().into_iter().chain(self.stated().answers);
        Signed {
            through: seen.max_by_key(|event| event.id),
            statement: self.statement.digest(),
            act: self.act,
            acts: self.statement.acts().len(),
            key: self.key,
        }
    }

    /// Refuses a key that is not in force, and a signature that proves too little.
    fn check_key(&self, keys: &[OperatorKey], needed: Strength) -> Result<()> {
        if !keys.iter().any(|key| key.is_same_key(&self.key)) {
            return Err(bad(format!("{} is not an operator key of this vault", self.key.fingerprint())));
        }
        if self.strength < needed {
            let why = format!("the signature proves '{}', but this vault requires '{needed}'", self.strength);
            return Err(bad(why));
        }
        Ok(())
    }
}

/// Checks the signature of a step that needs one. Returns what it proves; none if the step needs none.
pub fn check(state: &State, step: &Step<'_>, find: Find<'_>) -> Result<Option<Signed>> {
    if step.kind == Kind::VaultInitialized {
        return check_first(step.payload);
    }
    let Some(act) = act_of(state, step) else { return Ok(None) };
    let Some(proven) = Proven::read(step.payload)? else { return Err(not_signed(step.kind)) };
    let is_first_key = act == Act::AddKey && !state.tally().is_keyed();
    let (mut known, needed) = (keys(state), needed(Settings::recorded(state), step.payload));
    if is_first_key {
        known.extend(step.text(OPERATOR_KEY).and_then(|line| OperatorKey::parse(line).ok()));
    }
    proven.check_key(&known, needed)?;
    let statement = &proven.statement;
    if statement.vault() != vault_id(state, find)? {
        return Err(bad("the statement is about another vault"));
    }
    let authority = state.tally().authority.map(|id| event_ref(find, id)).transpose()?;
    if statement.authority() != authority {
        return Err(bad("the keys or the settings have changed since it was signed; sign it again"));
    }
    let Some(seen) = statement.head_seen() else { return Err(bad("the statement names no event as seen")) };
    if find(seen.id)?.is_none_or(|event| EventRef::to(&event) != seen) {
        return Err(bad(format!("the statement was made for another log: it has no event {seen}")));
    }
    // What nobody signed is vouched for by the first key, as far as its owner saw it.
    if is_first_key && state.tally().last_act.is_some_and(|last| last > seen.id) {
        return Err(bad("an operator acted after the log was looked at; sign it again"));
    }
    check_act(&stated(state, step, find)?, proven.stated())?;
    check_members(state, act, step)?;
    check_keys(state, act, step)?;
    Ok(Some(proven.signed()))
}

/// What the signature of a step must prove: a change of the settings as much as the stricter of old and new ones.
fn needed(before: Option<Settings>, payload: &Map<String, Value>) -> Strength {
    let strength = |settings: Settings| settings.approval_strength();
    let after = payload.get(SETTINGS).map(Settings::from_json).map(strength);
    before.map(strength).max(after).unwrap_or(Strength::Key)
}

/// Compares what was signed with what is recorded.
fn check_act(expected: &StatedAct, signed: &StatedAct) -> Result<()> {
    let words = act_words(signed.act);
    if signed.act != expected.act || signed.subject != expected.subject {
        return Err(bad(format!("what was signed is to {words}: {}", signed.subject)));
    }
    if signed.answers != expected.answers {
        let answers = signed.act.row().answers;
        return Err(bad(format!("the statement answers {answers} as it was earlier; sign it again")));
    }
    if signed.binds != expected.binds {
        let differs = |bound: &&Bound| !signed.binds.contains(bound);
        let name = expected.binds.iter().find(differs).or(signed.binds.first()).map_or("", |bound| bound.name.as_str());
        return Err(bad(format!("the statement binds another '{name}' than is there now; sign it again")));
    }
    match (&signed.option, &signed.comment) == (&expected.option, &expected.comment) {
        true => Ok(()),
        false => Err(bad("the statement has another option or comment")),
    }
}

/// A signed event has no members that its signature does not cover.
fn check_members(state: &State, act: Act, step: &Step<'_>) -> Result<()> {
    if act == Act::Recover {
        return Ok(());
    }
    let is_known = |member: &str| step.kind.row().fields.iter().any(|field| field.name == member);
    if let Some(other) = step.payload.keys().find(|member| !is_known(member) && act.row().comment != Some(member)) {
        return Err(bad(format!("payload.{} is not covered by the signature", crate::base::text::cut(other, 40))));
    }
    // What is no text is not in the statement.
    let comment = act.row().comment.and_then(|member| step.payload.get(member));
    if comment.is_some_and(|comment| comment.as_str().is_none_or(str::is_empty)) {
        return Err(bad("the comment is not covered by the signature"));
    }
    let filled_in = step.kind.row().fields.iter().filter(|field| field.filled_by == FilledBy::Policy);
    let decision = state.entity(step.subject);
    for field in filled_in {
        let asked = decision.as_ref().and_then(|decision| decision.facts().get(field.name));
        if step.payload.get(field.name).is_some_and(|value| Some(value) != asked) {
            return Err(bad(format!("payload.{} is not what was asked", field.name)));
        }
    }
    Ok(())
}

/// Keys are added once and in their one spelling, and the last one stays.
fn check_keys(state: &State, act: Act, step: &Step<'_>) -> Result<()> {
    let line = step.text(OPERATOR_KEY).unwrap_or_default();
    let lines = state.tally().operator_keys();
    let refused = |why: &str| Err(Error::refused(Reason::IllegalTransition, why));
    match act {
        Act::AddKey => {
            let key = OperatorKey::parse(line).map_err(|why| Error::usage(why.to_string()))?;
            if key.to_string() != line {
                return Err(Error::usage("the key is not written as in a .pub file"));
            }
            if keys(state).iter().any(|known| known.is_same_key(&key)) {
                return refused("it is an operator key of this vault already");
            }
            if lines.len() >= limits::OPERATOR_KEYS_MAX_COUNT {
                let why = format!("a vault has at most {} operator keys", limits::OPERATOR_KEYS_MAX_COUNT);
                return Err(Error::refused(Reason::LimitReached, why));
            }
            // The first key makes the vault strict, so it says which settings are in force.
            match (state.tally().is_keyed(), step.payload.get(SETTINGS)) {
                (false, settings) if settings != state.settings().as_ref() => {
                    Err(bad("the first operator key must adopt the settings in force"))
                }
                (true, Some(_)) => Err(bad("only the first operator key adopts settings")),
                _ => Ok(()),
            }
        }
        Act::RemoveKey if !lines.iter().any(|known| known == line) => refused("it is no operator key of this vault"),
        Act::RemoveKey if lines.len() == 1 => refused("the last operator key cannot be removed; add another one first"),
        _ => Ok(()),
    }
}

/// Checks the keys of a new vault, which sign themselves and its settings.
pub fn check_first(payload: &Map<String, Value>) -> Result<Option<Signed>> {
    let lines: Vec<String> = payload
        .get(OPERATOR_KEYS)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|line| line.as_str().map(str::to_owned))
        .collect();
    if lines.is_empty() {
        return match Proven::read(payload)? {
            None => Ok(None),
            Some(_) => Err(bad("a statement without operator keys")),
        };
    }
    let known = parsed(&lines);
    let spelled: Vec<String> = known.iter().map(OperatorKey::to_string).collect();
    let is_twice = (1..known.len()).any(|n| known[..n].iter().any(|key| key.is_same_key(&known[n])));
    if spelled != lines || is_twice || lines.len() > limits::OPERATOR_KEYS_MAX_COUNT {
        return Err(bad("the operator keys are not written as in .pub files, or not different, or too many"));
    }
    let Some(proven) = Proven::read(payload)? else { return Err(not_signed(Kind::OperatorKeyAdded)) };
    proven.check_key(&known, needed(None, payload))?;
    let statement = &proven.statement;
    let id = payload.get("vault_id").and_then(Value::as_str).unwrap_or_default();
    if statement.vault() != id || statement.authority().is_some() || statement.head_seen().is_some() {
        return Err(bad("the statement is about another vault"));
    }
    let expected = first_acts(payload.get(SETTINGS).unwrap_or(&Value::Null), &lines);
    if statement.acts() != expected {
        return Err(bad("the statement is not about these settings and keys"));
    }
    // This one event is all of its acts.
    Ok(Some(Signed { acts: 1, ..proven.signed() }))
}

/// Checks the signature of an approval by the log alone: the keys are those that the chain of `authority`, from the
/// approval back to the first key, has made valid.
pub fn check_approval(answer: &Event, question: &Event, find: Find<'_>) -> Result<()> {
    let Some(proven) = Proven::read(&answer.payload)? else { return Err(not_signed(Kind::DecisionApproved)) };
    let stated = proven.stated();
    let (keys, strength) = keys_by(proven.statement.authority(), find)?;
    proven.check_key(&keys, strength)?;
    let chosen = answer.payload.get("chosen_option").and_then(Value::as_str);
    let is_it = stated.act == Act::Approve
        && stated.subject.to_string() == answer.subject
        && stated.answers == Some(EventRef::to(question))
        && stated.option.as_deref() == chosen;
    if is_it { Ok(()) } else { Err(bad("what was signed is not this approval")) }
}

/// The keys in force after an event that changed keys or settings, and the strength that they must prove.
fn keys_by(authority: Option<EventRef>, find: Find<'_>) -> Result<(Vec<OperatorKey>, Strength)> {
    let mut changes = Vec::new();
    let mut next = authority;
    while let Some(reference) = next {
        let event = find(reference.id)?.filter(|event| EventRef::to(event) == reference);
        let event = event.ok_or_else(|| bad(format!("event {reference} is not in the log")))?;
        let proven = Proven::read(&event.payload)?;
        next = proven.as_ref().and_then(|proven| proven.statement.authority());
        changes.push((event, proven));
    }
    let (mut keys, mut strength): (Vec<OperatorKey>, Option<Strength>) = (Vec::new(), None);
    for (event, proven) in changes.into_iter().rev() {
        let kind = event.event_type.known();
        let settings = event.payload.get(SETTINGS);
        if kind == Some(Kind::VaultInitialized) {
            check_first(&event.payload)?;
            let lines = event.payload.get(OPERATOR_KEYS).and_then(Value::as_array).into_iter().flatten();
            keys = lines.filter_map(|line| OperatorKey::parse(line.as_str()?).ok()).collect();
        } else if let Some(proven) = proven {
            let stated = proven.stated();
            let line = event.payload.get(OPERATOR_KEY).and_then(Value::as_str);
            let key = line.and_then(|line| OperatorKey::parse(line).ok());
            let binds = |name: &str, value: Option<String>| {
                stated.binds.iter().find(|bound| bound.name == name).map(|bound| &bound.value) == value.as_ref()
            };
            let fits = Act::of_kind(kind.unwrap_or(Kind::VaultInitialized)) == Some(stated.act)
                && binds(BOUND_KEY, line.map(str::to_owned))
                && binds(BOUND_SETTINGS, settings.map(|recorded| settings::digest(recorded).to_string()));
            if !fits {
                return Err(bad(format!("what was signed is not event {}", event.id)));
            }
            // The first key signs itself.
            let known = if keys.is_empty() { key.iter().cloned().collect() } else { keys.clone() };
            let before = strength.map_or(Strength::Key, |strength| strength);
            proven.check_key(&known, needed(None, &event.payload).max(before))?;
            match stated.act {
                Act::AddKey => keys.extend(key),
                Act::RemoveKey => keys.retain(|known| key.as_ref().is_none_or(|key| !known.is_same_key(key))),
                _ => {}
            }
        }
        let set = settings.map(|recorded| Settings::from_json(recorded).approval_strength());
        strength = set.or(strength);
    }
    Ok((keys, strength.unwrap_or(Strength::Key)))
}
