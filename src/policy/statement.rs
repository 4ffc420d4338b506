//! The statement that an operator signs: what they do, to what, and as of which state of the log, in plain words.
//!
//! ```text
//! HiveForge operator statement 1
//! vault: 8350d9da27a1cfc4548df170bd3e519d
//! authority: 01KGC3EG00WQCEHJ7YC617HV4X:sha256:e704a106…
//! head seen: 01KGC3EG00WQCEHJ7YG542ZJ10:sha256:14fdaea2…
//!
//! act 1 of 1: approve a decision
//! subject: decision:01KGC3EG00WQCEHJ7YJRXM2S8V
//! answers: 01KGC3EG00WQCEHJ7YJRXM2S8W:sha256:5f70bf18…
//! binds command: rm -rf build
//! option: yes
//! comment: go ahead
//! ```
//!
//! A person reads it before signing, so it has one fact per line, and no value can make a line or hide in one. It is
//! UTF-8; every line ends with LF, the last one too. Nothing is optional but what is absent: no other text has the
//! same meaning. Statements are read back from old logs, so nothing about version 1 can change, not even which
//! characters are escaped.
//!
//! Invariant: a statement has one text, and a text one statement
//! (`a_statement_has_one_text_and_a_text_has_one_statement`, `no_changed_byte_leaves_the_statement_as_it_was`).

use std::fmt::{self, Write as _};

use crate::base::{Digest, EntityType, Error, Subject, Ulid, names, text};
use crate::event::{Event, Kind, parse_ulid};

/// The SSHSIG namespace of operators' signatures.
pub const NAMESPACE: &str = "hiveforge-operator-v1";
/// The text of a statement.
pub const STATEMENT_MAX_BYTES: usize = 64 * 1024;
/// The acts in one statement.
pub const ACTS_MAX_COUNT: usize = 100;
/// The id of a vault, and the name of something bound.
const WORD_MAX_BYTES: usize = 64;

const TITLE: &str = "HiveForge operator statement ";
const VERSION: &str = "1";
const VAULT: &str = "vault";
const AUTHORITY: &str = "authority";
const HEAD_SEEN: &str = "head seen";
const SUBJECT: &str = "subject";
const ANSWERS: &str = "answers";
const BINDS: &str = "binds ";
const OPTION: &str = "option";
const COMMENT: &str = "comment";
/// Instead of an event, where there is none yet.
const NONE: &str = "none";

names! {
    /// What an operator signs in a vault with operator keys.
    pub enum Act {
        Approve = "approve",
        Reject = "reject",
        Verify = "verify",
        Supersede = "supersede",
        RejectRequirement = "reject_requirement",
        LiftStop = "lift_stop",
        ResumeProject = "resume_project",
        ArchiveProject = "archive_project",
        AdoptSettings = "adopt_settings",
        AddKey = "add_key",
        RemoveKey = "remove_key",
        Recover = "recover",
    }
}

/// The properties of an act.
#[derive(Debug)]
pub struct ActRow {
    pub act: Act,
    /// The event that records it.
    pub kind: Kind,
    /// The act in a statement.
    pub words: &'static str,
    /// The type of its subject.
    pub subject: EntityType,
    /// The event that it answers.
    pub answers: &'static str,
    /// Whether the first such act in a vault may answer no event.
    pub may_be_first: bool,
    /// Whether it chooses an option.
    pub has_option: bool,
    /// The member of the event's payload with the comment.
    pub comment: Option<&'static str>,
    /// What it must bind, besides everything else that it binds.
    pub must_bind: &'static [&'static str],
}

const fn row(act: Act, kind: Kind, words: &'static str, subject: EntityType, answers: &'static str) -> ActRow {
    ActRow { act, kind, words, subject, answers, may_be_first: false, has_option: false, comment: None, must_bind: &[] }
}

impl ActRow {
    const fn may_be_first(self) -> ActRow {
        ActRow { may_be_first: true, ..self }
    }

    const fn has_option(self) -> ActRow {
        ActRow { has_option: true, ..self }
    }

    const fn comment(self, member: &'static str) -> ActRow {
        ActRow { comment: Some(member), ..self }
    }

    const fn must_bind(self, must_bind: &'static [&'static str]) -> ActRow {
        ActRow { must_bind, ..self }
    }
}

/// The acts, in the order of `Act`.
#[rustfmt::skip]
pub const ACTS: &[ActRow] = &[
    row(Act::Approve, Kind::DecisionApproved, "approve a decision", EntityType::Decision, "the question")
        .has_option().comment("rationale"),
    row(Act::Reject, Kind::DecisionRejected, "reject a decision", EntityType::Decision, "the question")
        .comment("rationale"),
    row(Act::Verify, Kind::RequirementVerified, "verify a requirement", EntityType::Requirement, "the requirement's last event"),
    row(Act::Supersede, Kind::RequirementSuperseded, "supersede a requirement", EntityType::Requirement, "the requirement's last event"),
    row(Act::RejectRequirement, Kind::RequirementRejected, "reject a requirement", EntityType::Requirement, "the requirement's last event")
        .comment("reason"),
    row(Act::LiftStop, Kind::SystemResumed, "lift a stop", EntityType::System, "the stop")
        .comment("comment"),
    row(Act::ResumeProject, Kind::ProjectResumed, "resume a project", EntityType::Project, "the project's last event")
        .comment("comment"),
    row(Act::ArchiveProject, Kind::ProjectArchived, "archive a project", EntityType::Project, "the project's last event")
        .comment("reason"),
    row(Act::AdoptSettings, Kind::SettingsAdopted, "adopt settings", EntityType::System, "the previous key or settings event")
        .may_be_first().must_bind(&[BOUND_SETTINGS]),
    row(Act::AddKey, Kind::OperatorKeyAdded, "add an operator key", EntityType::System, "the previous key or settings event")
        .may_be_first().must_bind(&[BOUND_KEY]),
    row(Act::RemoveKey, Kind::OperatorKeyRemoved, "remove an operator key", EntityType::System, "the previous key or settings event")
        .must_bind(&[BOUND_KEY]),
    row(Act::Recover, Kind::VaultRecovered, "recover the log", EntityType::System, "the last intact event"),
];

/// The name under which an act binds an operator's key, as a line of a `.pub` file.
pub const BOUND_KEY: &str = "key";
/// The name under which an act binds the digest of settings.
pub const BOUND_SETTINGS: &str = "settings";

// An act is the index of its row.
const _: () = {
    assert!(ACTS.len() == Act::ALL.len());
    let mut n = 0;
    while n < ACTS.len() {
        assert!(ACTS[n].act as usize == n);
        n += 1;
    }
};

impl Act {
    pub const fn row(self) -> &'static ActRow {
        &ACTS[self as usize]
    }

    /// The act that an event of this kind records.
    pub fn of_kind(kind: Kind) -> Option<Self> {
        ACTS.iter().find(|row| row.kind == kind).map(|row| row.act)
    }

    fn from_words(words: &str) -> Option<Self> {
        ACTS.iter().find(|row| row.words == words).map(|row| row.act)
    }
}

/// An act in words, as in `approve a decision`.
pub fn act_words(act: Act) -> &'static str {
    act.row().words
}

/// An event of the log, by id and hash: `ID:HASH`, as in a head anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRef {
    pub id: Ulid,
    pub hash: Digest,
}

impl EventRef {
    pub fn to(event: &Event) -> Self {
        EventRef { id: event.id, hash: event.hash }
    }

    /// Parses the exact form that is written.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, hash) = text.split_once(':')?;
        Some(EventRef { id: parse_ulid(id)?, hash: Digest::parse(hash)? })
    }
}

impl fmt::Display for EventRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.id, self.hash)
    }
}

/// Something that an act covers, exactly as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What it is: lower-case letters, digits and `_`, such as `argument`. A name may occur several times.
    pub name: String,
    /// Any text, even an empty one.
    pub value: String,
}

impl Bound {
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        Bound { name: name.to_owned(), value: value.into() }
    }
}

/// One act of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedAct {
    pub act: Act,
    /// Its subject, of the type in the act's row.
    pub subject: Subject,
    /// The event that it answers; none only for the first settings and keys of a vault.
    pub answers: Option<EventRef>,
    /// Everything it covers, in the order in which it is shown.
    pub binds: Vec<Bound>,
    /// The chosen option.
    pub option: Option<String>,
    pub comment: Option<String>,
}

impl StatedAct {
    /// An act that binds nothing and says nothing more.
    pub fn new(act: Act, subject: Subject, answers: Option<EventRef>) -> Self {
        StatedAct { act, subject, answers, binds: Vec::new(), option: None, comment: None }
    }

    fn check(&self) -> Result<(), StatementRefusal> {
        let row = self.act.row();
        let refused = |why: String| Err(StatementRefusal::Act { act: self.act, why });
        if self.subject.entity != row.subject {
            return refused(format!("its subject must be {}", row.subject.with_article()));
        }
        if self.answers.is_none() && !row.may_be_first {
            return refused(format!("it must answer {}", row.answers));
        }
        if let Some(wrong) = self.binds.iter().find(|bound| !is_name(&bound.name)) {
            let name = text::escape(&text::cut(&wrong.name, 40));
            return refused(format!("invalid name '{name}'; must be lower-case letters, digits and '_'"));
        }
        if let Some(missing) = row.must_bind.iter().find(|name| !self.binds.iter().any(|b| b.name == **name)) {
            return refused(format!("it must bind '{missing}'"));
        }
        if self.option.is_some() && !row.has_option {
            return refused("it has no options to choose from".to_owned());
        }
        if [&self.option, &self.comment].into_iter().flatten().any(String::is_empty) {
            return refused("its option and its comment must be absent or not empty".to_owned());
        }
        Ok(())
    }
}

/// A valid statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    vault: String,
    authority: Option<EventRef>,
    head_seen: Option<EventRef>,
    acts: Vec<StatedAct>,
}

impl Statement {
    /// A statement about the vault with this id. `authority` is the newest event that changed keys or settings, and
    /// `head_seen` any earlier event of the chain; a new vault has neither.
    pub fn new(
        vault: &str,
        authority: Option<EventRef>,
        head_seen: Option<EventRef>,
        acts: Vec<StatedAct>,
    ) -> Result<Self, StatementRefusal> {
        let is_id = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if !(1..=WORD_MAX_BYTES).contains(&vault.len()) || !vault.bytes().all(is_id) {
            return Err(StatementRefusal::Vault);
        }
        if !(1..=ACTS_MAX_COUNT).contains(&acts.len()) {
            return Err(StatementRefusal::Count);
        }
        acts.iter().try_for_each(StatedAct::check)?;
        let statement = Statement { vault: vault.to_owned(), authority, head_seen, acts };
        match statement.to_string().len() > STATEMENT_MAX_BYTES {
            true => Err(StatementRefusal::TooLong),
            false => Ok(statement),
        }
    }

    /// Parses the bytes that were signed.
    pub fn parse(bytes: &[u8]) -> Result<Self, StatementRefusal> {
        if bytes.len() > STATEMENT_MAX_BYTES {
            return Err(StatementRefusal::TooLong);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| StatementRefusal::NotUtf8)?;
        let first = text.split('\n').next().unwrap_or_default();
        match first.strip_prefix(TITLE) {
            None => return Err(StatementRefusal::NotAStatement),
            Some(VERSION) => {}
            Some(other) => return Err(StatementRefusal::Version(other.to_owned())),
        }
        let body = text.strip_suffix('\n').ok_or(StatementRefusal::LastLine)?;
        let mut lines = Lines { rest: body.split('\n').skip(1).collect(), at: 0 };
        let vault = lines.value(VAULT)?;
        let (authority, head_seen) = (lines.event(AUTHORITY)?, lines.event(HEAD_SEEN)?);
        let mut acts = Vec::new();
        while !lines.is_at_end() {
            acts.push(lines.act()?);
        }
        let statement = Statement::new(&vault, authority, head_seen, acts)?;
        // Whatever the parser let pass: only the one text is accepted.
        match statement.to_string() == text {
            true => Ok(statement),
            false => {
                let again = statement.to_string();
                let same = again.split('\n').zip(text.split('\n')).take_while(|(a, b)| a == b).count();
                Err(StatementRefusal::Line { number: same + 1, why: NOT_CANONICAL.to_owned() })
            }
        }
    }

    /// The id of the vault that it is about.
    pub fn vault(&self) -> &str {
        &self.vault
    }

    /// The newest event that changed keys or settings.
    pub fn authority(&self) -> Option<EventRef> {
        self.authority
    }

    /// An event that was in the log when the statement was made.
    pub fn head_seen(&self) -> Option<EventRef> {
        self.head_seen
    }

    /// What the operator does; at least one act.
    pub fn acts(&self) -> &[StatedAct] {
        &self.acts
    }

    /// The SHA-256 of its text. It stands once in a log, so that no statement counts twice.
    pub fn digest(&self) -> Digest {
        Digest::of_bytes(self.to_string().as_bytes())
    }
}

/// The text, whose bytes are signed.
impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = |event: Option<EventRef>| event.map_or(NONE.to_owned(), |event| event.to_string());
        writeln!(f, "{TITLE}{VERSION}")?;
        write_line(f, VAULT, &self.vault)?;
        write_line(f, AUTHORITY, &event(self.authority))?;
        write_line(f, HEAD_SEEN, &event(self.head_seen))?;
        for (n, stated) in self.acts.iter().enumerate() {
            writeln!(f)?;
            write_line(f, &act_label(n + 1, self.acts.len()), stated.act.row().words)?;
            write_line(f, SUBJECT, &stated.subject.to_string())?;
            write_line(f, ANSWERS, &event(stated.answers))?;
            for Bound { name, value } in &stated.binds {
                write_line(f, &format!("{BINDS}{name}"), value)?;
            }
            for (label, value) in [(OPTION, &stated.option), (COMMENT, &stated.comment)] {
                value.iter().try_for_each(|value| write_line(f, label, value))?;
            }
        }
        Ok(())
    }
}

fn act_label(number: usize, of: usize) -> String {
    format!("act {number} of {of}")
}

/// How many bytes of a statement these take.
pub fn length(binds: &[Bound]) -> usize {
    let line = |bound: &Bound| BINDS.len() + bound.name.len() + ": \n".len() + escape(&bound.value).len();
    binds.iter().map(line).sum()
}

fn write_line(f: &mut fmt::Formatter<'_>, label: &str, value: &str) -> fmt::Result {
    match value.is_empty() {
        true => writeln!(f, "{label}:"),
        false => writeln!(f, "{label}: {}", escape(value)),
    }
}

fn is_name(name: &str) -> bool {
    (1..=WORD_MAX_BYTES).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// What is wrong with a line that means something but is not written as it must be.
const NOT_CANONICAL: &str = "not written as hf-decide statement writes it";

/// The lines after the first one.
struct Lines<'a> {
    rest: Vec<&'a str>,
    at: usize,
}

impl<'a> Lines<'a> {
    fn is_at_end(&self) -> bool {
        self.at == self.rest.len()
    }

    /// A refusal of the current line.
    fn refuse(&self, why: impl Into<String>) -> StatementRefusal {
        // The first line is not in `rest`, and people count from 1.
        StatementRefusal::Line { number: self.at + 2, why: why.into() }
    }

    /// The escaped value of the current line, if it has this label.
    fn find(&self, label: &str) -> Option<&'a str> {
        let rest = self.rest.get(self.at)?.strip_prefix(label)?.strip_prefix(':')?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix(' ') }
    }

    /// The value of the current line, if it has this label; then the next line is the current one.
    fn value_if(&mut self, label: &str) -> Result<Option<String>, StatementRefusal> {
        let Some(escaped) = self.find(label) else { return Ok(None) };
        let value = unescape(escaped).ok_or_else(|| self.refuse("invalid escape sequence"))?;
        self.at += 1;
        Ok(Some(value))
    }

    fn value(&mut self, label: &str) -> Result<String, StatementRefusal> {
        self.value_if(label)?.ok_or_else(|| self.refuse(format!("expected '{label}: '")))
    }

    fn event(&mut self, label: &str) -> Result<Option<EventRef>, StatementRefusal> {
        let refused = self.refuse(format!("expected '{label}: ' and an event as ID:HASH, or {NONE}"));
        match self.value_if(label)?.as_deref() {
            Some(NONE) => Ok(None),
            Some(text) => EventRef::parse(text).map(Some).ok_or(refused),
            None => Err(refused),
        }
    }

    /// An act, after the empty line before it.
    fn act(&mut self) -> Result<StatedAct, StatementRefusal> {
        if !self.rest[self.at].is_empty() {
            return Err(self.refuse("unexpected; an act ends with an empty line or the end of the statement"));
        }
        self.at += 1;
        // The numbers are compared with the text that is written back.
        let label = self.rest.get(self.at).and_then(|line| line.split(':').next()).unwrap_or_default();
        let refused = self.refuse("expected 'act N of N: ' and a known act");
        let act = match label.starts_with("act ") {
            true => self.value_if(label)?.as_deref().and_then(Act::from_words),
            false => None,
        };
        let act = act.ok_or(refused)?;
        let refused = self.refuse(format!("expected '{SUBJECT}: ' and TYPE:ID, or system"));
        let subject = self.value(SUBJECT).ok().and_then(|text| Subject::parse(&text).ok()).ok_or(refused)?;
        let mut stated = StatedAct::new(act, subject, self.event(ANSWERS)?);
        while let Some(rest) = self.rest.get(self.at).and_then(|line| line.strip_prefix(BINDS)) {
            let name = rest.split(':').next().unwrap_or_default();
            let value = self.value(&format!("{BINDS}{name}"))?;
            stated.binds.push(Bound::new(name, value));
        }
        stated.option = self.value_if(OPTION)?;
        stated.comment = self.value_if(COMMENT)?;
        Ok(stated)
    }
}

/// Whether version 1 escapes a character: what can end a line, is invisible, changes the direction of what follows, or
/// may do so one day. This list is frozen; it has everything that `base::text::is_unsafe` has, and more.
fn is_escaped(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\\' | '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}' | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            | '\u{13430}'..='\u{1345f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{10ffff}')
}

/// Escapes a value as `base::text::escape` does. A space at either end or after another one is escaped, too: it would
/// not be seen, and many of them would push the rest of a value to a line of its own on a terminal.
fn escape(value: &str) -> String {
    let is_space = |c: char| matches!(c, ' ' | '\u{3000}');
    let mut line = String::with_capacity(value.len());
    let (mut after_space, mut rest) = (true, value.chars());
    while let Some(c) = rest.next() {
        let at_edge = after_space || rest.as_str().is_empty();
        after_space = is_space(c);
        match c {
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if is_escaped(c) || (is_space(c) && at_edge) => {
                write!(line, "\\u{{{:x}}}", c as u32).expect("writing to a string cannot fail");
            }
            c => line.push(c),
        }
    }
    line
}

/// Reverses `escape`; `None` for a text that it does not write.
fn unescape(line: &str) -> Option<String> {
    let mut value = String::with_capacity(line.len());
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            value.push(c);
            continue;
        }
        value.push(match rest.next()? {
            '\\' => '\\',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (hex, after) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                rest = after.chars();
                char::from_u32(u32::from_str_radix(hex, 16).ok()?)?
            }
            _ => return None,
        });
    }
    (escape(&value) == line).then_some(value)
}

/// Why a text is not a statement, or a statement cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementRefusal {
    TooLong,
    NotUtf8,
    NotAStatement,
    /// A version that this one does not know.
    Version(String),
    /// The last line has no line end.
    LastLine,
    /// A line that is not what it must be; counted from 1.
    Line {
        number: usize,
        why: String,
    },
    Vault,
    /// No act, or too many.
    Count,
    /// An act that cannot be stated like this.
    Act {
        act: Act,
        why: String,
    },
}

impl fmt::Display for StatementRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatementRefusal::TooLong => write!(f, "the statement is too long; at most {STATEMENT_MAX_BYTES} bytes"),
            StatementRefusal::NotUtf8 => f.write_str("not a statement: not UTF-8"),
            StatementRefusal::NotAStatement => write!(f, "not a statement; its first line must be '{TITLE}{VERSION}'"),
            StatementRefusal::Version(version) => {
                let version = text::escape(&text::cut(version, 40));
                write!(f, "unknown version '{version}' of the statement; must be {VERSION}")
            }
            StatementRefusal::LastLine => f.write_str("the last line of the statement does not end with a line feed"),
            StatementRefusal::Line { number, why } => write!(f, "line {number} of the statement: {why}"),
            StatementRefusal::Vault => f.write_str("invalid vault id in the statement"),
            StatementRefusal::Count => write!(f, "a statement has 1 to {ACTS_MAX_COUNT} acts"),
            StatementRefusal::Act { act, why } => write!(f, "cannot state '{}': {why}", act.row().words),
        }
    }
}

impl StatementRefusal {
    /// The error of a command that was given such a statement.
    pub fn into_error(self) -> Error {
        Error::usage(self.to_string())
    }
}

#[cfg(test)]
mod tests;
