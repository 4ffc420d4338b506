//! `NEXT`: what the caller may run next. Agents are told to obey it, so it is made of fixed words,
//! validated ids and numbers only, and never names what destroys or what only an operator may do.

use std::fmt::Display;

use serde_json::{Value as Json, json};

use crate::base::{Actor, EntityId, ShortRef, Subject, Timestamp, Ulid};

/// Where a short reference stands in a known line.
const REF: &str = "REF";

/// Lines that somebody may write down as his next step and that are then repeated: they look, wait, or
/// go on with what was approved.
const SAFE: &[&str] = &[
    "hf-poll REF",
    "hf-job check REF",
    "hf-job list",
    "hf-review fails",
    "hf-review status",
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
    /// A command of ours, word by word. Built by `Next::run` and its arguments.
    Action(Vec<String>),
    /// Mend what was named, then go on.
    Patch,
    Ask(&'static str),
}

/// What may stand in a command line beside our own words.
pub trait Plain: Display {}
impl Plain for Ulid {}
impl Plain for Actor {}
impl Plain for EntityId {}
impl Plain for Subject {}
impl Plain for Timestamp {}
impl Plain for usize {}
impl Plain for ShortRef {}

impl Next {
    pub const OPERATOR: Next = Next::Ask("operator");

    /// A command of ours, in fixed words.
    pub fn run(command: &'static str) -> Self {
        Next::Action(Vec::new()).word(command)
    }

    /// Adds fixed words of ours, such as an option without a value or a name from a closed list.
    pub fn word(self, words: &'static str) -> Self {
        self.and(words.split(' ').map(str::to_owned))
    }

    /// Adds a value that is known to be plain.
    pub fn value(self, value: &dyn Plain) -> Self {
        self.and([value.to_string()])
    }

    /// Adds an option of ours with a value that is known to be plain.
    pub fn arg(self, option: &'static str, value: &dyn Plain) -> Self {
        self.word(option).value(value)
    }

    /// Adds an option that names a folder, or asks an operator if its path is not plain.
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

    /// The words of the command, if it is one.
    pub fn argv(&self) -> &[String] {
        match self {
            Next::Action(argv) => argv,
            _ => &[],
        }
    }

    /// To poll a job again, ours or of a foreign system, under the name that hf-poll was called by.
    /// Words that are not plain are not repeated.
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

    /// A line that somebody wrote down as his next step, if it is one of ours that cannot harm, with
    /// nothing in it but references.
    pub fn safe(line: &str) -> Self {
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

    /// The step for programs.
    pub fn json(&self) -> Json {
        match self {
            Next::None => json!({"kind": "none"}),
            Next::Patch => json!({"kind": "patch"}),
            Next::Ask(who) => json!({"kind": "ask", "who": who}),
            Next::Action(argv) => json!({"kind": "action", "argv": argv}),
        }
    }
}

/// The step as printed. Every word is plain, so none needs quoting.
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
    fn a_next_step_that_was_written_down_is_repeated_only_if_it_is_known_and_plain() {
        for (line, next) in [
            ("hf-poll t-0001", "ACTION hf-poll T-0001"),
            ("  hf-state   go ", "ACTION hf-state go"),
            ("hf-task claim", "ACTION hf-task claim"),
            ("hf-task claim T-0002@A13C", "ACTION hf-task claim T-0002@a13c"),
        ] {
            assert_eq!(Next::safe(line).to_string(), next);
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
            assert_eq!(Next::safe(line), Next::None, "{line}");
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
