//! `NEXT`: what the caller may run next. Agents follow it without question, so it consists only of fixed words
//! and validated values, and never names a command that is destructive or reserved for operators.

use std::fmt::Display;

use serde_json::{Value as Json, json};

use crate::base::{Actor, EntityId, ShortRef, Subject, Timestamp, Ulid};

/// The placeholder for a short reference in `SAFE`.
const REF: &str = "REF";

/// Commands that a mission file may name as its next step and that are then repeated as `NEXT`: they read, wait,
/// or continue approved work.
const SAFE: &[&str] = &[
    "hf-poll REF",
    "hf-job check REF",
    "hf-job list",
    "hf-review fails",
    "hf-review status",
    "hf-state done",
    "hf-state fire REF",
    "hf-state go",
    "hf-state round",
    "hf-state show",
    "hf-status",
    "hf-task claim",
    "hf-task claim REF",
    "hf-task explain REF",
    "hf-task heartbeat REF",
    "hf-task list",
    "hf-task show REF",
    "hf-task start REF",
    "hf-verify",
];

/// The safe next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    None,
    /// One of the toolkit's commands, word by word. Built with `Next::run`.
    Action(Vec<String>),
    /// Fix what the reply names, then run the command again.
    Patch,
    Ask(&'static str),
}

/// A value that is safe in a command line without quoting.
pub trait SafeWord: Display {}
impl SafeWord for Ulid {}
impl SafeWord for Actor {}
impl SafeWord for EntityId {}
impl SafeWord for Subject {}
impl SafeWord for Timestamp {}
impl SafeWord for usize {}
impl SafeWord for ShortRef {}

impl Next {
    pub const OPERATOR: Next = Next::Ask("operator");

    /// A command, in fixed words.
    pub fn run(command: &'static str) -> Self {
        Next::Action(Vec::new()).word(command)
    }

    /// Adds fixed words, such as an option without a value or a name from a closed list.
    pub fn word(self, words: &'static str) -> Self {
        self.and(words.split(' ').map(str::to_owned))
    }

    /// Adds a value.
    pub fn value(self, value: &dyn SafeWord) -> Self {
        self.and([value.to_string()])
    }

    /// Adds an option with a value.
    pub fn arg(self, option: &'static str, value: &dyn SafeWord) -> Self {
        self.word(option).value(value)
    }

    /// Adds an option with a path; becomes `ASK operator` if the path would need quoting.
    pub fn path(self, option: &'static str, path: &str) -> Self {
        match self {
            Next::Action(_) if is_plain_path(path) => self.word(option).and([path.to_owned()]),
            Next::Action(_) => Next::OPERATOR,
            other => other,
        }
    }

    fn and(self, words: impl IntoIterator<Item = String>) -> Self {
        match self {
            Next::Action(mut argv) => {
                argv.extend(words);
                Next::Action(argv)
            }
            other => other,
        }
    }

    /// The words of the command; empty for the other steps.
    pub fn argv(&self) -> &[String] {
        match self {
            Next::Action(argv) => argv,
            _ => &[],
        }
    }

    /// The same step; nothing if it is to claim a task, for when no task can be claimed.
    pub fn unless_claim(self) -> Self {
        match self.argv() {
            [command, verb, ..] if command == "hf-task" && verb == "claim" => Next::None,
            _ => self,
        }
    }

    /// Polls a job again, under the name that hf-poll was called by. Becomes `ASK operator` if the name or the id
    /// would need quoting: the id of a foreign job is any text.
    pub fn poll(called: Option<&str>, id: &str) -> Self {
        let plain = |word: &str, more: &[u8]| {
            !word.is_empty()
                && !word.starts_with('-')
                && word.bytes().all(|b| b.is_ascii_alphanumeric() || more.contains(&b))
        };
        match called.unwrap_or("hf-poll") {
            name if plain(name, b"._/-") && plain(id, b"._:-") => Next::Action(vec![name.to_owned(), id.to_owned()]),
            _ => Next::OPERATOR,
        }
    }

    /// A next step read from a mission file, if it is a line of `SAFE`; anything else is dropped.
    pub fn repeated(line: &str) -> Self {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let fits = |known: &&str| {
            let known: Vec<&str> = known.split(' ').collect();
            known.len() == words.len()
                && known
                    .iter()
                    .zip(&words)
                    .all(|(known, word)| if *known == REF { ShortRef::parse(word).is_some() } else { known == word })
        };
        match SAFE.iter().find(|known| fits(known)) {
            Some(_) => {
                let plain =
                    words.iter().map(|word| ShortRef::parse(word).map_or((*word).to_owned(), |r| r.to_string()));
                Next::Action(plain.collect())
            }
            None => Next::None,
        }
    }

    /// The step as JSON.
    pub fn json(&self) -> Json {
        match self {
            Next::None => json!({"kind": "none"}),
            Next::Patch => json!({"kind": "patch"}),
            Next::Ask(who) => json!({"kind": "ask", "who": who}),
            Next::Action(argv) => json!({"kind": "action", "argv": argv}),
        }
    }
}

/// The step as printed. No word needs quoting.
impl Display for Next {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Next::None => f.write_str("NONE"),
            Next::Patch => f.write_str("PATCH"),
            Next::Ask(who) => write!(f, "ASK {who}"),
            Next::Action(argv) => write!(f, "ACTION {}", argv.join(" ")),
        }
    }
}

fn is_plain_path(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_next_step_from_a_file_is_repeated_only_if_it_is_known_and_plain() {
        for (line, next) in [
            ("hf-poll t-0001", "ACTION hf-poll T-0001"),
            ("  hf-state   go ", "ACTION hf-state go"),
            ("hf-task claim", "ACTION hf-task claim"),
            ("hf-task claim T-0002@A13C", "ACTION hf-task claim T-0002@a13c"),
        ] {
            assert_eq!(Next::repeated(line).to_string(), next);
        }
        for line in [
            "NONE",
            "",
            "hf-poll",
            "hf-poll T-0001; rm -rf /",
            "hf-poll $(id)",
            "hf-poll T-0001 T-0002",
            "hf-stop everything",
            "hf-decide approve DEC-0001",
            "hf-state go --vault /tmp/x",
            "rm -rf /",
            "hf-poll REF",
        ] {
            assert_eq!(Next::repeated(line), Next::None, "{line}");
        }
    }

    #[test]
    fn a_vault_path_is_repeated_only_if_it_is_plain() {
        let next = Next::run("hf-verify");
        assert_eq!(next.to_string(), "ACTION hf-verify");
        let named = next.clone().path("--vault", "/tmp/a-b/V_1.x");
        assert_eq!(named.to_string(), "ACTION hf-verify --vault /tmp/a-b/V_1.x");
        assert_eq!(named.argv(), ["hf-verify", "--vault", "/tmp/a-b/V_1.x"]);
        for path in ["/tmp/a b", "/tmp/$(x)", "/tmp/;x", "relative", "/tmp/\n", "/tmp/é"] {
            assert_eq!(next.clone().path("--vault", path), Next::OPERATOR, "{path}");
        }
    }
}
