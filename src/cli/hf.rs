//! hf: every command in one binary. `hf task claim` is `hf-task claim` for a person; called by the name of a
//! command, it is that command; alone it lists them.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use super::args::Common;
use super::main::run;
use super::{COMMANDS, Command, Entry, Face, Out, Output, complete};
use crate::base::{Error, text};
use crate::op::Context;
use crate::reply::{Key, Reply, Status, row};

/// Run a command of the toolkit, or list them
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    disable_help_subcommand = true,
    after_help = "Examples:
  hf                          list the commands
  hf status                   what hf-status says, for a person at a terminal
  hf task list --format kv    the plain lines, as hf-task prints them
  hf append --help            the arguments of a command

Options stand behind the command. At a terminal, in a shell without HF_AGENT, replies are tables; piped, with
--format kv, or under the name hf-COMMAND they are KEY:VALUE lines. NO_COLOR takes the colours away."
)]
pub struct Args {
    /// The command and its arguments
    #[arg(value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    common: Common,
}

/// From the name it was called by, or its first argument, to the command that is meant.
pub fn main() -> ExitCode {
    let mut argv: Vec<OsString> = std::env::args_os().collect();
    let called = argv.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
    if let Some(entry) = called.and_then(Entry::named) {
        return (entry.run)(argv, Face::Plumbing);
    }
    if argv.get(1).is_some_and(|word| word == complete::NAME) {
        return complete::main(&argv[2..]);
    }
    let command = |at: usize| argv.get(at).and_then(|word| COMMANDS.iter().find(|entry| word == entry.short()));
    match (command(1), argv.get(1), command(2)) {
        (Some(entry), ..) => {
            argv.remove(0);
            (entry.run)(argv, Face::Porcelain)
        }
        (None, Some(word), Some(entry)) if word == "help" => {
            (entry.run)(vec![entry.short().into(), "--help".into()], Face::Porcelain)
        }
        (None, Some(word), None) if word == "help" && argv.len() == 2 => {
            run::<Args>(vec![Args::NAME.into(), "--help".into()], Face::Porcelain)
        }
        (None, Some(word), _) if word.as_encoded_bytes().starts_with(b"-") => {
            // Options before a command would not reach it, and it would act on another vault.
            if let Some(at) = (2..argv.len()).find(|at| command(*at).is_some()) {
                argv = vec![Args::NAME.into(), argv.swap_remove(at)];
            }
            run::<Args>(argv, Face::Porcelain)
        }
        (None, ..) => run::<Args>(argv, Face::Porcelain),
    }
}

impl Command for Args {
    const NAME: &str = "hf";
    // This command opens none.
    const DEFAULT_VAULT: Option<&str> = Some("Vault");

    fn run(self, _: &Context, _: Out) -> anyhow::Result<Output> {
        match self.command.first() {
            None => Ok(list().into()),
            Some(word) => Err(unknown(&word.to_string_lossy()).into()),
        }
    }
}

fn list() -> Reply {
    Reply::new(Status::Ok, format!("{} commands", COMMANDS.len()))
        .with_rows(Key::Command, COMMANDS.iter().map(|entry| row![entry.name, entry.about]))
}

/// Why a word is not a command here, with the one that may be meant.
fn unknown(word: &str) -> Error {
    let shown = text::cut(word, 40);
    if COMMANDS.iter().any(|entry| entry.short() == word) {
        return Error::usage("options stand behind the command: hf COMMAND OPTIONS");
    }
    match nearest(word) {
        Some(name) => Error::usage(format!("'{shown}' is not a command; did you mean {name}?")),
        None => Error::usage(format!("'{shown}' is not a command; hf alone lists them")),
    }
}

/// How like a command a word has to be to be taken for a slip, unless one change makes it one.
const LIKE_ENOUGH: f64 = 0.8;

/// The command that a word is most like, if it is like one at all.
fn nearest(word: &str) -> Option<&'static str> {
    let word = word.strip_prefix("hf-").unwrap_or(word);
    let likeness = |entry: &&'static Entry| strsim::jaro_winkler(word, entry.short());
    let best = COMMANDS.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    let one_change = COMMANDS.iter().find(|entry| strsim::osa_distance(word, entry.short()) == 1);
    one_change.or(Some(best).filter(|best| likeness(best) >= LIKE_ENOUGH)).map(Entry::short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_taken_for_the_command_that_was_meant() {
        for (slip, meant) in
            [("taks", "task"), ("satus", "status"), ("hf-log", "log"), ("verfy", "verify"), ("jbo", "job")]
        {
            assert_eq!(nearest(slip), Some(meant), "{slip}");
        }
        for word in ["nonsense", "", "x", "../hf-log"] {
            assert_eq!(nearest(word), None, "{word}");
        }
    }
}
