//! The command of a job, as the log has it, and everything that an approval of it binds.
//!
//! | member | what it is |
//! |---|---|
//! | `command`, `cwd` | the words and the working directory, as text |
//! | `command_bytes` | the same in hexadecimal, the directory last, if one of them is not UTF-8 |
//! | `command_hash` | the digest of the words and the directory |
//! | `bound` | of a command that requires approval: its environment, and the files that it names |
//! | `bound_digest` | the digest of `command_hash` and `bound` |
//!
//! Invariant: what is shown is what is hashed, and a run has the command and the digest of its task
//! (`a13_a_shown_command_that_is_not_the_hashed_one_is_found`, `a20_every_run_of_a_job_says_what_runs`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::pattern;
use super::rules::Step;
use super::settings::{Setting, Settings};
use super::statement::{self, Bound};
use crate::base::digest::hex;
use crate::base::{Digest, Error, Reason, Result, names, serde_by_name};
use crate::event::Kind;
use crate::state::{Entity, State, linked};

pub const COMMAND: &str = "command";
pub const CWD: &str = "cwd";
pub const COMMAND_BYTES: &str = "command_bytes";
pub const COMMAND_HASH: &str = "command_hash";
pub const BOUND: &str = "bound";
pub const BOUND_DIGEST: &str = "bound_digest";

/// By how much a file that changes can make a statement longer: a digest and a path.
const FILE_MAX_BYTES: usize = 160;

/// What an approval does not cover, in words.
pub const NOT_BOUND: &str = "what is in directories; libraries, imported files and programs that another program finds; \
                             what is named inside a word, such as a shell script; the content of secret variables; mounts \
                             and limits of the shell that fired it; what changes in the last microseconds before the start";

/// The digest of a command: its words and its directory. None of them contains a NUL, and the number of words comes
/// first, so that no two commands have the same bytes.
pub fn hash<'a>(words: impl ExactSizeIterator<Item = &'a [u8]>, cwd: &'a [u8]) -> String {
    let mut bytes = words.len().to_string().into_bytes();
    bytes.push(0);
    for part in words.chain([cwd]) {
        bytes.extend(part);
        bytes.push(0);
    }
    Digest::of_bytes(&bytes).to_string()
}

names! {
    /// Why a file is bound.
    pub enum FileRole {
        Program = "program",
        /// What a script names in its first line.
        Interpreter = "interpreter",
        Argument = "argument",
    }
}

names! {
    /// What a name stands for.
    pub enum FileKind {
        /// A regular file, bound by its digest.
        File = "file",
        /// A regular file that is too large to be read, bound by its size and time only.
        Large = "large",
        Directory = "directory",
        Device = "device",
        /// A pipe or a socket, or what every process has for itself.
        Other = "other",
        /// No file.
        Absent = "absent",
        /// A symbolic link that leads to no file.
        Dangling = "dangling",
        /// A file that the caller may not read.
        Unreadable = "unreadable",
    }
}

serde_by_name!(FileRole);
serde_by_name!(FileKind);

/// A file that a command names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundFile {
    #[serde(rename = "as")]
    pub role: FileRole,
    /// The word, or the path of an interpreter.
    pub name: String,
    pub kind: FileKind,
    /// Where it really is, or where a link without a file leads.
    #[serde(default, rename = "path", skip_serializing_if = "Option::is_none")]
    pub real: Option<String>,
    /// The number of a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// When it was last modified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

impl BoundFile {
    /// What is known about it: its digest, or its kind, with its size and time where these are all there is.
    pub fn content(&self) -> String {
        let content = match (&self.sha256, self.size, &self.modified, &self.device) {
            (Some(digest), ..) => digest.clone(),
            (None, Some(size), Some(modified), _) => format!("{} ({size} bytes, modified {modified})", self.kind),
            (.., Some(device)) => format!("{} {device}", self.kind),
            _ => self.kind.to_string(),
        };
        match self.real.as_ref().filter(|real| **real != self.name) {
            Some(real) => format!("{content} at {real}"),
            None => content,
        }
    }

    /// Whether another file has the same place in a command.
    fn is_named_like(&self, other: &BoundFile) -> bool {
        (self.role, &self.name) == (other.role, &other.name)
    }
}

/// A variable of a command's environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum BoundVariable {
    Plain {
        name: String,
        value: String,
    },
    /// A secret: only the digest of a salt and the value is recorded.
    Secret {
        name: String,
        salt: String,
        sha256: String,
    },
}

impl BoundVariable {
    pub fn secret(name: &str, salt: &str, value: &str) -> BoundVariable {
        let sha256 = Digest::of_bytes(format!("{salt}\0{value}").as_bytes()).to_string();
        BoundVariable::Secret { name: name.to_owned(), salt: salt.to_owned(), sha256 }
    }

    pub fn name(&self) -> &str {
        match self {
            BoundVariable::Plain { name, .. } | BoundVariable::Secret { name, .. } => name,
        }
    }
}

impl std::fmt::Display for BoundVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BoundVariable::Plain { name, value } => write!(f, "{name}={value}"),
            BoundVariable::Secret { name, sha256, .. } => write!(f, "{name} (secret; {sha256}, salted)"),
        }
    }
}

/// What an approval binds besides the command itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// The whole environment, except for the toolkit's own variables.
    pub environment: Vec<BoundVariable>,
    /// The names of those variables that the caller set for this command.
    pub given: Vec<String>,
    pub files: Vec<BoundFile>,
}

impl Binding {
    /// The digest of this and of a command.
    pub fn digest(&self, command_hash: &str) -> String {
        digest(command_hash, &json!(self))
    }

    /// Each file of this binding with the one of the same name in another one, and then those that only the other has.
    pub fn pairs<'a>(&'a self, other: &'a Binding) -> Vec<(Option<&'a BoundFile>, Option<&'a BoundFile>)> {
        let mut left: Vec<&BoundFile> = other.files.iter().collect();
        let mut pairs = Vec::new();
        for file in &self.files {
            let at = left.iter().position(|other| file.is_named_like(other));
            pairs.push((Some(file), at.map(|at| left.remove(at))));
        }
        pairs.extend(left.into_iter().map(|other| (None, Some(other))));
        pairs
    }

    /// How it differs from what was bound before, in words.
    pub fn differences(&self, before: &Binding) -> Vec<String> {
        let in_words = |(now, before): (Option<&BoundFile>, Option<&BoundFile>)| match (now, before) {
            (Some(now), Some(before)) if now == before => None,
            (Some(now), Some(before)) if now.kind != before.kind => {
                Some(format!("{} is {}, and was {}", now.name, now.kind, before.kind))
            }
            (Some(now), Some(before)) if (&now.sha256, &now.device) == (&before.sha256, &before.device) => {
                Some(format!("{} leads elsewhere", now.name))
            }
            (Some(now), Some(_)) => Some(format!("{} has changed", now.name)),
            (Some(new), None) => Some(format!("{} is used now", new.name)),
            (None, Some(old)) => Some(format!("{} is not used any more", old.name)),
            (None, None) => None,
        };
        self.pairs(before).into_iter().filter_map(in_words).collect()
    }
}

fn digest(command_hash: &str, bound: &Value) -> String {
    let all = json!({COMMAND_HASH: command_hash, BOUND: bound});
    let text = serde_jcs::to_string(&all).expect("parsed JSON always has a canonical form");
    Digest::of_bytes(text.as_bytes()).to_string()
}

/// A command, as an event records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCommand {
    /// The words; at least one.
    pub words: Vec<Vec<u8>>,
    pub cwd: Vec<u8>,
    /// What an approval binds, if it requires one.
    pub bound: Option<Binding>,
}

impl RecordedCommand {
    pub fn hash(&self) -> String {
        hash(self.words.iter().map(Vec::as_slice), &self.cwd)
    }

    pub fn bound_digest(&self) -> Option<String> {
        self.bound.as_ref().map(|bound| bound.digest(&self.hash()))
    }

    /// The members of an event that starts it.
    pub fn members(&self) -> Map<String, Value> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let words: Vec<String> = self.words.iter().map(|word| text(word)).collect();
        let mut members = Map::from_iter([
            (COMMAND.to_owned(), json!(words)),
            (CWD.to_owned(), text(&self.cwd).into()),
            (COMMAND_HASH.to_owned(), self.hash().into()),
        ]);
        let parts = || self.words.iter().chain([&self.cwd]);
        if parts().any(|part| std::str::from_utf8(part).is_err()) {
            let bytes: Vec<String> = parts().map(|part| hex(part)).collect();
            members.insert(COMMAND_BYTES.to_owned(), json!(bytes));
        }
        members.extend(self.bound_digest().map(|digest| (BOUND_DIGEST.to_owned(), digest.into())));
        members
    }

    /// The members of an event that says all that an approval binds.
    pub fn members_with_binding(&self) -> Map<String, Value> {
        let mut members = self.members();
        members.extend(self.bound.as_ref().map(|bound| (BOUND.to_owned(), json!(bound))));
        members
    }

    /// Reads a command, if the payload has one. Refuses one whose parts contradict each other.
    pub fn read(payload: &Map<String, Value>) -> Result<Option<RecordedCommand>> {
        let text = |member: &str| payload.get(member).and_then(Value::as_str);
        let Some(recorded) = text(COMMAND_HASH) else { return Ok(None) };
        let wrong = |why: &str| Error::usage(format!("payload.{COMMAND_HASH}: {why}"));
        let texts = |member: &str| {
            let words = payload.get(member).and_then(Value::as_array)?.iter();
            words.map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
        };
        let shown = texts(COMMAND).filter(|words| !words.is_empty()).ok_or_else(|| wrong("no command is shown"))?;
        let cwd = text(CWD).ok_or_else(|| wrong("no working directory is shown"))?;
        let (words, directory) = match texts(COMMAND_BYTES) {
            None => (shown.iter().map(|word| word.clone().into_bytes()).collect(), cwd.as_bytes().to_vec()),
            Some(bytes) => {
                let mut parts: Vec<Vec<u8>> = bytes
                    .iter()
                    .map(|part| from_hexadecimal(part))
                    .collect::<Option<_>>()
                    .ok_or_else(|| wrong("the bytes of the command are not in hexadecimal"))?;
                let directory = parts.pop().unwrap_or_default();
                (parts, directory)
            }
        };
        let is_shown = |bytes: &[u8], text: &str| String::from_utf8_lossy(bytes) == text;
        let all_shown = words.len() == shown.len() && words.iter().zip(&shown).all(|(word, text)| is_shown(word, text));
        if !all_shown || !is_shown(&directory, cwd) || hash(words.iter().map(Vec::as_slice), &directory) != recorded {
            return Err(wrong("the command that is shown is not the one that was hashed"));
        }
        let bound = match payload.get(BOUND) {
            None => None,
            Some(bound) if text(BOUND_DIGEST) == Some(&digest(recorded, bound)) => {
                let bound = serde_json::from_value(bound.clone());
                Some(bound.map_err(|e| Error::usage(format!("payload.{BOUND}: {e}")))?)
            }
            Some(_) => {
                return Err(Error::usage(format!("payload.{BOUND_DIGEST} is not the digest of payload.{BOUND}")));
            }
        };
        Ok(Some(RecordedCommand { words, cwd: directory, bound }))
    }

    /// How long the part of a statement about it is.
    pub fn stated_bytes(&self) -> usize {
        statement::length(&self.binds())
    }

    /// How long it can get, if the files that it names change.
    pub fn stated_bytes_at_most(&self) -> usize {
        let files = self.bound.iter().flat_map(|bound| &bound.files).count();
        self.stated_bytes() + files * FILE_MAX_BYTES
    }

    /// Everything that an approval of it binds, in the order in which it is shown.
    pub fn binds(&self) -> Vec<Bound> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let words = self.words.iter().enumerate();
        let word = |(n, word): (usize, &Vec<u8>)| Bound::new(if n == 0 { "program" } else { "argument" }, text(word));
        let mut binds: Vec<Bound> = words.map(word).collect();
        binds.push(Bound::new("directory", text(&self.cwd)));
        let bound = self.bound.iter();
        binds.extend(bound.clone().flat_map(|bound| &bound.environment).map(|v| Bound::new("variable", v.to_string())));
        let file = |file: &BoundFile| Bound::new("file", format!("{} {} {}", file.role, file.content(), file.name));
        binds.extend(bound.flat_map(|bound| &bound.files).map(file));
        binds
    }
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let is_plain = text.len().is_multiple_of(2) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let pair = |n: usize| u8::from_str_radix(&text[n..n + 2], 16).ok();
    if is_plain { (0..text.len()).step_by(2).map(pair).collect() } else { None }
}

/// A command that the settings say requires approval is not proposed, or given to a task, without it.
pub(super) fn is_gated_by_settings(state: &State, settings: &Settings, step: &Step<'_>) -> Result<()> {
    let is_gated = match step.kind {
        Kind::TaskProposed => step.payload.get("destructive") == Some(&Value::Bool(true)),
        Kind::TaskAssigned => state.entity(step.subject).is_some_and(|task| task.as_task().is_destructive()),
        _ => return Ok(()),
    };
    let Some(command) = RecordedCommand::read(step.payload).ok().flatten().filter(|_| !is_gated) else { return Ok(()) };
    let words: Vec<String> = command.words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    match pattern::matches_any(&settings.texts(Setting::DestructiveCommands), &words) {
        true => Err(Error::refused(Reason::ApprovalRequired, "its command requires approval by an operator")),
        false => Ok(()),
    }
}

/// Checks what an event says about a command: it is shown as it was hashed, an approval binds all of it, and a run is
/// of the command of its task.
pub(super) fn is_the_recorded_one(state: &State, step: &Step<'_>) -> Result<()> {
    // Version 0.1, which recorded no settings, recorded less about commands.
    if !matches!(step.kind, Kind::TaskProposed | Kind::TaskAssigned | Kind::RunStarted | Kind::CommandChanged)
        || !state.tally().has_settings()
    {
        return Ok(());
    }
    let command = RecordedCommand::read(step.payload)?;
    let differs = |task: &Entity| {
        let why = format!("{} has another command", task.name());
        Err(Error::refused(Reason::Changed, why))
    };
    match step.kind {
        Kind::TaskProposed => {
            let is_gated = step.payload.get("destructive") == Some(&Value::Bool(true));
            match command.is_some_and(|command| is_gated != command.bound.is_some()) {
                true => Err(Error::usage(format!("payload.{BOUND} belongs to a command that requires approval"))),
                false => Ok(()),
            }
        }
        Kind::RunStarted => {
            let task = linked(step.kind, step.payload).and_then(|task| state.entity(&task));
            let is_old = |task: &Entity| state.tally().settings_since.is_none_or(|since| task.first_event < since);
            let Some(task) = task.filter(|task| !is_old(task)) else { return Ok(()) };
            let (known, recorded) = (task.as_job(), |member: &str| step.text(member));
            let is_it =
                known.command_hash() == recorded(COMMAND_HASH) && known.bound_digest() == recorded(BOUND_DIGEST);
            if is_it { Ok(()) } else { differs(&task) }
        }
        // A task that requires approval keeps the command that it was proposed with.
        Kind::TaskAssigned => match (state.entity(step.subject), command) {
            (Some(task), Some(_)) if task.as_task().is_destructive() => differs(&task),
            _ => Ok(()),
        },
        _ => {
            let Some(task) = state.entity(step.subject) else { return Ok(()) };
            let is_it = command.as_ref().is_some_and(|command| {
                command.bound.is_some() && task.as_job().command_hash() == Some(&command.hash())
            });
            if is_it && task.as_task().is_destructive() { Ok(()) } else { differs(&task) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&[u8]], cwd: &[u8]) -> RecordedCommand {
        RecordedCommand { words: words.iter().map(|word| word.to_vec()).collect(), cwd: cwd.to_vec(), bound: None }
    }

    #[test]
    fn another_word_or_directory_is_another_command() {
        let all = [
            command(&[b"a", b"b"], b"/"),
            command(&[b"ab"], b"/"),
            command(&[b"a", b"b"], b"/x"),
            command(&[b"a", b"b", b""], b"/"),
            command(&[b"a"], b"b"),
        ];
        let all = all.map(|command| command.hash());
        for (n, one) in all.iter().enumerate() {
            assert!(all[n + 1..].iter().all(|other| other != one));
        }
    }

    #[test]
    fn a_command_comes_back_from_its_members() {
        let bound = Binding {
            environment: vec![
                BoundVariable::Plain { name: "PATH".to_owned(), value: "/bin".to_owned() },
                BoundVariable::secret("TOKEN", "s", "x"),
            ],
            given: vec!["TOKEN".to_owned()],
            files: vec![BoundFile {
                role: FileRole::Program,
                name: "/bin/rm".to_owned(),
                kind: FileKind::File,
                real: None,
                device: None,
                sha256: Some("sha256:00".to_owned()),
                size: None,
                modified: None,
            }],
        };
        for command in [
            command(&[b"rm", b"-rf"], b"/tmp"),
            command(&[b"rm", b"a\xff"], b"/t\xfe"),
            RecordedCommand { bound: Some(bound), ..command(&[b"rm"], b"/") },
        ] {
            let members = command.members_with_binding();
            assert_eq!(RecordedCommand::read(&members).unwrap(), Some(command));
        }
        assert_eq!(RecordedCommand::read(&Map::new()).unwrap(), None);
    }

    #[test]
    fn nothing_in_it_can_be_changed_alone() {
        let bound = Some(Binding::default());
        let members = RecordedCommand { bound, ..command(&[b"rm", b"a\xff"], b"/tmp") }.members_with_binding();
        let changed = |member: &str, value: Value| {
            let mut members = members.clone();
            members.insert(member.to_owned(), value);
            members
        };
        for wrong in [
            changed(COMMAND, json!(["ls", "a\u{fffd}"])),
            changed(COMMAND, json!([])),
            changed(CWD, json!("/")),
            changed(COMMAND_BYTES, json!(["726d", "61", "2f746d70"])),
            changed(COMMAND_BYTES, json!(["7", "61ff", "2f746d70"])),
            changed(COMMAND_HASH, json!("sha256:00")),
            changed(BOUND, json!({"environment": [{"name": "A", "value": "b"}], "given": [], "files": []})),
            changed(BOUND_DIGEST, json!("sha256:00")),
        ] {
            assert!(RecordedCommand::read(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_difference_is_named() {
        let file = |name: &str, kind, sha256: Option<&str>| BoundFile {
            role: FileRole::Argument,
            name: name.to_owned(),
            kind,
            real: None,
            device: None,
            sha256: sha256.map(str::to_owned),
            size: None,
            modified: None,
        };
        let binding = |files: Vec<BoundFile>| Binding { files, ..Binding::default() };
        let before = binding(vec![file("a", FileKind::File, Some("1")), file("b", FileKind::Absent, None)]);
        let after = binding(vec![file("a", FileKind::File, Some("2")), file("b", FileKind::File, Some("3"))]);
        assert_eq!(after.differences(&before), ["a has changed", "b is file, and was absent"]);
        assert_eq!(before.differences(&before), Vec::<String>::new());
        let more = binding(vec![file("x", FileKind::File, Some("1")), file("b", FileKind::Absent, None)]);
        assert_eq!(more.differences(&before), ["x is used now", "a is not used any more"]);
        let elsewhere = BoundFile { real: Some("/b".to_owned()), ..file("a", FileKind::File, Some("1")) };
        let elsewhere = binding(vec![elsewhere, file("b", FileKind::Absent, None)]);
        assert_eq!(elsewhere.differences(&before), ["a leads elsewhere"]);
    }
}
