//! `NEXT`: what the caller may run next. Agents are told to obey it, so it is made of fixed words,
//! validated ids and numbers only, and never names what destroys or what only an operator may do.

use std::fmt::Display;

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    None,
    /// A command line of ours. Built by `Next::run` and its arguments.
    Action(String),
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

    pub fn run(command: &'static str) -> Self {
        Next::Action(command.to_owned())
    }

    /// Adds an option of ours with a value that is known to be plain.
    pub fn arg(self, option: &'static str, value: &dyn Plain) -> Self {
        match self {
            Next::Action(line) => Next::Action(format!("{line} {option} {value}")),
            other => other,
        }
    }

    /// Adds a value that is known to be plain.
    pub fn value(self, value: &dyn Plain) -> Self {
        match self {
            Next::Action(line) => Next::Action(format!("{line} {value}")),
            other => other,
        }
    }

    /// For an agent that was named by a flag; a name that is none was refused before.
    pub fn of_agent(self, named: Option<&str>) -> Self {
        match named.and_then(|name| EntityId::parse(name).ok()) {
            Some(name) => self.arg("--agent", &name),
            None => self,
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
            name if plain(name, b"._/-") && plain(id, b"._:-") => Next::Action(format!("{name} {id}")),
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
                Next::Action(plain.collect::<Vec<_>>().join(" "))
            }
            None => Next::None,
        }
    }

    /// Adds fixed words of ours, such as an option without a value or a name from a closed list.
    pub fn word(self, word: &'static str) -> Self {
        match self {
            Next::Action(line) => Next::Action(format!("{line} {word}")),
            other => other,
        }
    }

    /// The line as printed. A vault that was named by a flag is named again, if its path is plain.
    pub fn render(&self, vault_flag: Option<&str>) -> String {
        match (self, vault_flag) {
            (Next::None, _) => "NONE".to_owned(),
            (Next::Patch, _) => "PATCH".to_owned(),
            (Next::Ask(who), _) => format!("ASK {who}"),
            (Next::Action(line), None) => format!("ACTION {line}"),
            (Next::Action(line), Some(path)) if is_plain_path(path) => format!("ACTION {line} --vault {path}"),
            (Next::Action(_), Some(_)) => Next::OPERATOR.render(None),
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
            assert_eq!(Next::safe(line).render(None), next);
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
        assert_eq!(next.render(None), "ACTION hf-verify");
        assert_eq!(next.render(Some("/tmp/a-b/V_1.x")), "ACTION hf-verify --vault /tmp/a-b/V_1.x");
        for path in ["/tmp/a b", "/tmp/$(x)", "/tmp/;x", "relative", "/tmp/\n", "/tmp/é"] {
            assert_eq!(next.render(Some(path)), "ASK operator", "{path}");
        }
    }
}
