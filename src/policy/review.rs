//! Reviews: the format of replies, whose turn it is, and whether the reviewers agree.

use serde_json::{Map, Value};

use super::mission::{self, check_short};
use crate::base::{Actor, EntityId, EntityType, Error, Reason, Result, Subject, limits, text};
use crate::event::Kind;
use crate::machine::Phase;
use crate::state::{Entity, State, linked};

/// A reviewer's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewReply {
    /// The items that pass.
    pub passes: Vec<String>,
    /// The items that do not, each with its fix: `ITEM -> FIX: …`.
    pub fails: Vec<String>,
}

/// Parses a reply: `PASS: ITEM` and `FAIL: ITEM -> FIX: FIX` lines only. List markers and code fences, which some
/// reviewers always add, are ignored.
pub fn parse(reply: &str) -> Result<ReviewReply> {
    check_short("the reply", reply)?;
    let (mut passes, mut fails) = (Vec::new(), Vec::new());
    for line in reply.lines().map(bare).filter(|line| !line.is_empty() && !line.starts_with("```")) {
        let shown = || text::cut(line, limits::SUMMARY_MAX_CHARS);
        // Some readers treat U+2028 and U+2029 as the end of a line.
        if line.contains(|c: char| c.is_control() && c != '\t' || matches!(c, '\u{2028}' | '\u{2029}')) {
            return Err(Error::usage("a line of the reply contains control characters"));
        }
        if let Some(item) = line.strip_prefix("PASS:") {
            if item.trim().is_empty() {
                return Err(Error::usage(format!("a PASS line names no item: {}", shown())));
            }
            passes.push(item.trim().to_owned());
        } else if let Some(item) = line.strip_prefix("FAIL:") {
            let (what, fix) = item
                .split_once("-> FIX:")
                .or_else(|| item.split_once("→ FIX:"))
                .ok_or_else(|| Error::usage(format!("a FAIL line has no '-> FIX:': {}", shown())))?;
            if fix.trim().is_empty() {
                return Err(Error::usage(format!("a FAIL line has an empty FIX: {}", shown())));
            }
            if what.trim().is_empty() {
                return Err(Error::usage(format!("a FAIL line names no item: {}", shown())));
            }
            fails.push(format!("{} -> FIX: {}", what.trim(), fix.trim()));
        } else {
            return Err(Error::usage(format!("a line starts with neither 'PASS:' nor 'FAIL:': {}", shown())));
        }
    }
    match passes.is_empty() && fails.is_empty() {
        true => Err(Error::usage("the reply has neither a PASS nor a FAIL line")),
        false => Ok(ReviewReply { passes, fails }),
    }
}

/// A line without its list marker.
fn bare(line: &str) -> &str {
    let line = line.trim();
    ["- ", "* ", "• "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).trim_start()
}

/// The prompt for a reviewer.
pub fn prompt(spec: &str, fails: &[String]) -> String {
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

/// The event that ends a debate: all reviewers have replied and the last reply has no FAIL line, or all rounds are used
/// up.
pub fn verdict(state: &State, debate: &Entity) -> Option<Kind> {
    let round = debate.as_debate().round();
    let newest = newest(state, debate).filter(|_| debate.phase == Phase::Open)?;
    let all_replied = round >= debate.as_debate().reviewers().count() as u64;
    match newest.as_review().fails().next() {
        None if all_replied => Some(Kind::DebateConverged),
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
    match exhausted(state) {
        Some(_) if actor.is_autonomous() => Err(out_of_rounds()),
        _ => Ok(()),
    }
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
    let reply = parse(member("text"))?;
    match payload.get("fails") == Some(&reply.fails.into()) {
        true => Ok(()),
        false => Err(Error::usage("payload.fails does not match the FAIL lines of the reply")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(passes: &[&str], fails: &[&str]) -> ReviewReply {
        let owned = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect();
        ReviewReply { passes: owned(passes), fails: owned(fails) }
    }

    #[test]
    fn a_reply_is_pass_and_fail_lines() {
        let text = "PASS: naming\nFAIL: no timeout -> FIX: add one\n\nFAIL: x → FIX: y";
        assert_eq!(parse(text).unwrap(), reply(&["naming"], &["no timeout -> FIX: add one", "x -> FIX: y"]));
    }

    #[test]
    fn list_markers_and_fences_are_ignored() {
        let text = "```\n- PASS: a\n* FAIL: b -> FIX: c\n```\r\n";
        assert_eq!(parse(text).unwrap(), reply(&["a"], &["b -> FIX: c"]));
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        let long = "PASS: a\n".repeat(101);
        let wide = format!("PASS: {}", "あ".repeat(700));
        for (text, why) in [
            ("", "the reply has neither a PASS nor a FAIL line"),
            ("```\n```", "the reply has neither a PASS nor a FAIL line"),
            ("Looks good to me!", "a line starts with neither 'PASS:' nor 'FAIL:': Looks good to me!"),
            ("PASS: a\nOverall it is fine.", "a line starts with neither 'PASS:' nor 'FAIL:': Overall it is fine."),
            ("FAIL: no fix", "a FAIL line has no '-> FIX:': FAIL: no fix"),
            ("FAIL: a -> FIX:", "a FAIL line has an empty FIX: FAIL: a -> FIX:"),
            (&long, "the reply has 202 words; at most 200"),
            (&wide, "the reply has 2106 bytes; at most 2000"),
        ] {
            assert_eq!(parse(text).unwrap_err().message, why);
        }
    }

    #[test]
    fn a_prompt_has_the_spec_and_the_fails_of_the_round_before() {
        let text = prompt("# Spec\nDo it.\n", &["no timeout -> FIX: add one".to_owned()]);
        let expected = "Review the spec below. Respond ONLY in this format:\nPASS: <item>\n\
            FAIL: <item> -> FIX: <fix in 1 line>\nMax 200 words. No prose.\n\n---\n# Spec\nDo it.\n---\n\
            Previous FAIL items (if any):\nFAIL: no timeout -> FIX: add one\n";
        assert_eq!(text, expected);
    }
}
