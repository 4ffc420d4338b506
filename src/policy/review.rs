//! Reviews: the format of replies, whose turn it is, which FAILs are open, and whether the reviewers agree.
//!
//! A FAIL is open until a reply about a changed document does not repeat it. So nobody can make reviewers agree by asking
//! another one about the same document (`j7_a_fail_stays_open_until_the_document_changes`).

use serde_json::{Map, Value};

use super::mission;
use crate::base::{Actor, Digest, EntityId, EntityType, Error, Reason, Result, Subject, limits, names, text};
use crate::event::Kind;
use crate::machine::Phase;
use crate::state::{Entity, State, linked};

mod reply;

use reply::REMINDER;
pub use reply::{ReviewReply, parse};

/// The prompt for a reviewer.
pub fn prompt<'a>(spec: &str, fails: impl Iterator<Item = &'a str>) -> String {
    let mut prompt = format!(
        "Review the spec below. Respond ONLY in this format:\nPASS: <item>\nFAIL: <item> -> FIX: <fix in 1 line>\n\
         Max {} words. No prose.\n\n---\n{}\n---\nPrevious FAIL items (if any):\n",
        limits::SHORT_MAX_WORDS,
        spec.trim_end(),
    );
    for fail in fails {
        prompt.push_str("FAIL: ");
        prompt.push_str(fail);
        prompt.push('\n');
    }
    prompt
}

/// The member of a reply with the SHA-256 of the document that it is about.
pub const DOCUMENT: &str = "document_sha256";

/// The member of a reply with the path of its document, or with the document's reference from hf-ref.
pub const DOCUMENT_NAME: &str = "document";

/// Whether the name of a document can be part of a command as it is.
pub fn is_document_name(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"._/@-".contains(&b);
    (1..=limits::FACT_MAX_CHARS).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(is_plain)
}

/// The id in a reference from hf-ref such as `D0001@a13c`, whose tag changes with the content; none for a path.
fn id_of_reference(name: &str) -> Option<&str> {
    let id = name.split_once('@').map_or(name, |(id, _)| id);
    let digits = id.strip_prefix(|c: char| c.is_ascii_alphabetic())?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(id)
}

/// Whether two names are those of different documents. A path and a reference may be of the same one.
fn are_different(one: &str, other: &str) -> bool {
    match (id_of_reference(one), id_of_reference(other)) {
        (Some(one), Some(other)) => !one.eq_ignore_ascii_case(other),
        (None, None) => one != other,
        _ => false,
    }
}

/// Checks that a document, by its hash and its name, can be the one that a debate is about. A debate is about one document:
/// otherwise the reviewers would agree on something that only one of them has seen.
pub fn check_document(state: &State, debate: &Entity, hash: Option<&str>, name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let reviews = state.made_for(&debate.subject, EntityType::Review);
    let other = reviews.iter().map(|review| review.as_review()).find_map(|known| {
        let is_same = hash.is_some() && known.document_sha256() == hash;
        known.document().filter(|before| !is_same && are_different(before, name))
    });
    match other {
        None => Ok(()),
        Some(before) => {
            let why = format!(
                "the open debate is about {before}, not {name}; an operator can start another one with hf-review open"
            );
            Err(Error::refused(Reason::IllegalTransition, why))
        }
    }
}

/// The SHA-256 of a document, as `sha256sum` prints it.
pub fn document_hash(document: &str) -> String {
    Digest::of_bytes(document.as_bytes()).hex()
}

/// Whether a text is the SHA-256 of a document.
pub fn is_document(hash: &str) -> bool {
    Digest::parse(&format!("sha256:{hash}")).is_some()
}

/// The prompt for a reviewer whose reply to it could not be read.
pub fn prompt_again(prompt: &str, why: &Error) -> String {
    format!("{prompt}---\n{REMINDER}Problem: {}\n", text::escape(&why.message))
}

/// The open debate.
pub fn open(state: &State) -> Option<Entity> {
    state.in_phase(EntityType::Debate, Phase::Open, 1).pop()
}

/// The reviewer whose reply comes next.
pub fn turn(debate: &Entity) -> Option<&str> {
    let reviewers: Vec<&str> = debate.as_debate().reviewers().collect();
    reviewers.get((debate.as_debate().round() as usize).checked_rem(reviewers.len())?).copied()
}

/// The newest reply of a debate.
pub fn newest(state: &State, debate: &Entity) -> Option<Entity> {
    state.entity(&debate.as_debate().newest_review()?).map(|review| review.into_owned())
}

names! {
    /// Why a FAIL is still open.
    pub enum OpenReason {
        /// The newest reply has it.
        Raised = "raised",
        /// The document of the newest reply is the one that it was found in.
        Unchanged = "unchanged",
        /// It is not known whether the document has changed: a reply was recorded without it.
        Unknown = "unknown",
    }
}

/// A FAIL that is not fixed yet, as far as the replies tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFail {
    /// `ITEM -> FIX: …`, as it was last found.
    pub line: String,
    /// The id of the reply that found it last.
    pub review: String,
    pub why: OpenReason,
    /// The document that it was found in, or the first known one since.
    document: Option<String>,
}

impl OpenFail {
    /// Whether it is still open after another reply that does not repeat it, about this document.
    fn stays_open_after(&mut self, now: Option<&str>) -> bool {
        self.why = match (self.document.as_deref(), now) {
            (Some(before), Some(now)) if before != now => return false,
            (Some(_), Some(_)) => OpenReason::Unchanged,
            _ => OpenReason::Unknown,
        };
        if self.document.is_none() {
            self.document = now.map(str::to_owned);
        }
        true
    }
}

/// The open FAILs of a debate, oldest first.
pub fn open_fails(state: &State, debate: &Entity) -> Vec<OpenFail> {
    let mut open: Vec<OpenFail> = Vec::new();
    for review in state.made_for(&debate.subject, EntityType::Review) {
        let (known, document) = (review.as_review(), review.as_review().document_sha256());
        let found: Vec<String> = known.fails().map(reply::item_key).collect();
        // What is found again counts as found in the document of this reply.
        open.retain_mut(|fail| !found.contains(&reply::item_key(&fail.line)) && fail.stays_open_after(document));
        open.extend(known.fails().map(|line| OpenFail {
            line: line.to_owned(),
            review: review.subject.id().to_owned(),
            why: OpenReason::Raised,
            document: document.map(str::to_owned),
        }));
    }
    open
}

/// The event that ends a debate: all reviewers have replied and no FAIL is open, or all rounds are used up.
pub fn verdict(state: &State, debate: &Entity) -> Option<Kind> {
    let round = debate.as_debate().round();
    let newest = newest(state, debate).filter(|_| debate.phase == Phase::Open)?;
    let all_replied = round >= debate.as_debate().reviewers().count() as u64;
    // For version 0.1, which recorded no documents, only the newest reply counted.
    let has_fail = match state.tally().has_settings() {
        true => !open_fails(state, debate).is_empty(),
        false => newest.as_review().fails().next().is_some(),
    };
    match has_fail {
        false if all_replied => Some(Kind::DebateConverged),
        _ if round >= limits::ROUNDS_MAX_COUNT => Some(Kind::DebateExhausted),
        _ => None,
    }
}

/// The id of a reviewer's nth reply.
pub fn id(reviewer: &str, number: u64) -> String {
    format!("R-{reviewer}-{number:04}")
}

/// Checks that a debate may be opened or ended, or a reply recorded.
pub fn check(state: &State, kind: Kind, subject: &Subject, actor: &Actor, payload: &Map<String, Value>) -> Result<()> {
    match kind {
        Kind::DebateOpened => check_opening(state, actor, payload),
        Kind::ReviewRecorded => check_reply(state, subject, payload),
        Kind::DebateConverged | Kind::DebateExhausted => {
            let verdict = state.entity(subject).and_then(|debate| verdict(state, &debate));
            match verdict == Some(kind) {
                true => Ok(()),
                false => {
                    Err(Error::refused(Reason::NotReady, format!("the replies of {subject} do not lead to {kind}")))
                }
            }
        }
        _ => Ok(()),
    }
}

fn check_opening(state: &State, actor: &Actor, payload: &Map<String, Value>) -> Result<()> {
    let names: Vec<&str> =
        payload.get("reviewers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let (count, max) = (names.len(), limits::ROUNDS_MAX_COUNT as usize);
    if count == 0 || count > max {
        return Err(Error::usage(format!("a debate must have 1 to {max} reviewers, not {count}")));
    }
    for (n, name) in names.iter().enumerate() {
        check_name(name)?;
        if names[..n].contains(name) {
            return Err(Error::usage(format!("the reviewer '{name}' is listed twice")));
        }
    }
    if let Some(other) = open(state) {
        let why = format!("{} is still open; only one debate can be open at a time", other.name());
        return Err(Error::refused(Reason::IllegalTransition, why));
    }
    // Otherwise its rounds would not count for the running mission.
    let mission = mission::running(state);
    if payload.get("mission_id").and_then(Value::as_str) != mission.as_ref().map(|mission| mission.subject.id()) {
        let name = mission.map_or_else(|| mission::NONE.to_owned(), |mission| mission.name());
        return Err(Error::usage(format!("a debate must be about the running mission, which is {name}")));
    }
    match (actor.is_autonomous(), exhausted(state), unsettled(state)) {
        (true, Some(_), _) => Err(out_of_rounds()),
        (true, None, Some(debate)) => {
            let why = format!("{} ended with something to fix; an operator opens the next debate", debate.name());
            Err(Error::refused(Reason::RoundLimit, why))
        }
        _ => Ok(()),
    }
}

/// The newest debate, if it ended while a FAIL was open, for whichever mission. An agent would get new rounds for the same
/// document by starting another mission.
fn unsettled(state: &State) -> Option<Entity> {
    let ended = |debate: &Entity| matches!(debate.phase, Phase::Exhausted | Phase::Closed);
    let newest = state.newest(EntityType::Debate).filter(ended)?;
    // Version 0.1 allowed it.
    (state.tally().has_settings() && !open_fails(state, &newest).is_empty()).then_some(newest)
}

/// Checks that a reviewer's name is short and safe in a file name.
pub fn check_name(name: &str) -> Result<()> {
    const NAME_MAX_CHARS: usize = 16;
    match EntityId::parse(name).is_ok() && name.len() <= NAME_MAX_CHARS && !name.contains('-') {
        true => Ok(()),
        false => Err(Error::usage(format!(
            "invalid reviewer name '{}'; must be 1 to {NAME_MAX_CHARS} letters, digits or '_'",
            text::cut(name, 40)
        ))),
    }
}

/// The error that all rounds are used up, so that an operator has to decide how to continue.
pub fn out_of_rounds() -> Error {
    let max = limits::ROUNDS_MAX_COUNT;
    Error::refused(Reason::RoundLimit, format!("all {max} rounds are used up, and there is still something to fix"))
}

/// The newest debate, if it used up its rounds for the mission that is still running.
pub fn exhausted(state: &State) -> Option<Entity> {
    let newest = state.newest(EntityType::Debate).filter(|debate| debate.phase == Phase::Exhausted)?;
    let mission = mission::running(state).map(|mission| mission.subject);
    (newest.as_debate().mission() == mission).then_some(newest)
}

fn check_reply(state: &State, subject: &Subject, payload: &Map<String, Value>) -> Result<()> {
    let member = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    let reviewer = member("reviewer");
    let debate = linked(Kind::ReviewRecorded, payload).and_then(|debate| state.entity(&debate));
    let Some(debate) = debate.filter(|debate| debate.phase == Phase::Open) else {
        return Err(Error::refused(Reason::IllegalTransition, "the debate of this review is not open"));
    };
    match turn(&debate) {
        Some(turn) if turn == reviewer => {}
        turn => {
            let why = format!("it is {}'s turn, not {}'s", turn.unwrap_or("nobody"), text::cut(reviewer, 40));
            return Err(Error::refused(Reason::NotYourTurn, why));
        }
    }
    let number = subject.id().strip_prefix(&format!("R-{reviewer}-"));
    if number.is_none_or(|n| n.len() < 4 || n.bytes().any(|b| !b.is_ascii_digit())) {
        return Err(Error::usage(format!(
            "the id of this review must have the form {}, with four digits or more",
            id(reviewer, 1)
        )));
    }
    if let Some(document) = payload.get(DOCUMENT)
        && !document.as_str().is_some_and(is_document)
    {
        return Err(Error::usage(format!("payload.{DOCUMENT} must be 64 hex digits")));
    }
    if let Some(name) = payload.get(DOCUMENT_NAME)
        && !name.as_str().is_some_and(is_document_name)
    {
        return Err(Error::usage(format!(
            "payload.{DOCUMENT_NAME} must be a path without spaces or special characters"
        )));
    }
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    check_document(state, &debate, text(DOCUMENT), text(DOCUMENT_NAME))?;
    let reply = match state.tally().has_settings() {
        true => parse(member("text"))?,
        false => reply::parse_0_1(member("text"))?,
    };
    match payload.get("fails") == Some(&reply.fails.into()) {
        true => Ok(()),
        false => Err(Error::usage("payload.fails does not match the FAIL lines of the reply")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_different_only_if_both_are_paths_or_both_references() {
        for (one, other, different) in [
            ("a.md", "b.md", true),
            ("a.md", "a.md", false),
            ("D0001@a13c", "D0001@b77f", false),
            ("D0001@a13c", "d0001", false),
            ("D0001@a13c", "D0002@a13c", true),
            ("D0001@a13c", "a.md", false),
        ] {
            assert_eq!(are_different(one, other), different, "{one} {other}");
        }
    }

    #[test]
    fn a_prompt_has_the_spec_and_the_open_fails() {
        let text = prompt("# Spec\nDo it.\n", ["no timeout -> FIX: add one"].into_iter());
        let expected = "Review the spec below. Respond ONLY in this format:\nPASS: <item>\n\
            FAIL: <item> -> FIX: <fix in 1 line>\nMax 200 words. No prose.\n\n---\n# Spec\nDo it.\n---\n\
            Previous FAIL items (if any):\nFAIL: no timeout -> FIX: add one\n";
        assert_eq!(text, expected);
    }
}
