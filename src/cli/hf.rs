//! hf: every command in one binary. `hf task claim` is `hf-task claim` for a person; invoked under the name of a
//! command (by a link), it is that command; without arguments it lists the commands.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use super::args::GlobalArgs;
use super::main::run;
use super::{COMMANDS, Command, CommandRow, Invocation, Output, StdoutWriter, complete};
use crate::base::{Error, text};
use crate::op::Context;
use crate::reply::{Key, Reply, Status, row};

/// Run a HiveForge command, or list them
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    disable_help_subcommand = true,
    after_help = "Examples:
  hf                          list the commands
  hf status                   run hf-status, with its reply as tables
  hf task list --format kv    print the same KEY:VALUE lines as hf-task list
  hf append --help            show the options of a command

Options go after the command. On a terminal, replies are tables, unless the shell belongs to an agent (HF_AGENT is \
set). In a pipe, with --format kv, or from hf-COMMAND they are KEY:VALUE lines; see hf-output(7). Set NO_COLOR to turn \
colors off.

Some commands are for operators only: a person, whose shell does not belong to an agent. That is a convention unless \
the vault has operator keys; see hf-key(1)."
)]
pub struct Args {
    /// The command and its arguments
    #[arg(value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    global: GlobalArgs,
}

/// Runs the command that the name of the program, or its first argument, says.
pub fn main() -> ExitCode {
    let mut argv: Vec<OsString> = std::env::args_os().collect();
    let program = argv.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str);
    if let Some(entry) = program.and_then(CommandRow::by_name) {
        return (entry.run)(argv, Invocation::Plumbing);
    }
    if argv.get(1).is_some_and(|word| word == complete::OPTION) {
        return complete::main(&argv[2..]);
    }
    let command = |at: usize| argv.get(at).and_then(|word| COMMANDS.iter().find(|entry| word == entry.short()));
    match (command(1), argv.get(1), command(2)) {
        (Some(entry), ..) => {
            argv.remove(0);
            (entry.run)(argv, Invocation::Porcelain)
        }
        (None, Some(word), Some(entry)) if word == "help" => {
            (entry.run)(vec![entry.short().into(), "--help".into()], Invocation::Porcelain)
        }
        (None, Some(word), None) if word == "help" && argv.len() == 2 => {
            run::<Args>(vec![Args::NAME.into(), "--help".into()], Invocation::Porcelain)
        }
        (None, Some(word), _) if word.as_encoded_bytes().starts_with(b"-") => {
            // Options before a command would not reach it, and it might change another vault. So this is an error.
            if let Some(at) = (2..argv.len()).find(|at| command(*at).is_some()) {
                argv = vec![Args::NAME.into(), argv.swap_remove(at)];
            }
            run::<Args>(argv, Invocation::Porcelain)
        }
        (None, ..) => run::<Args>(argv, Invocation::Porcelain),
    }
}

impl Command for Args {
    const NAME: &str = "hf";
    // It opens no vault, and so must not fail where there is none.
    const DEFAULT_VAULT: Option<&str> = Some("Vault");

    fn run(self, _: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        match self.command.first() {
            None => Ok(list().into()),
            Some(word) => Err(unknown_command(&word.to_string_lossy()).into()),
        }
    }
}

/// The reply that lists all commands.
fn list() -> Reply {
    Reply::new(Status::Ok, format!("{} commands", COMMANDS.len()))
        .with_rows(Key::Command, COMMANDS.iter().map(|entry| row![entry.name, entry.about]))
}

/// The error for a word that is not a command, or is after options, with the most similar command.
fn unknown_command(word: &str) -> Error {
    let shown = text::cut(word, 40);
    if COMMANDS.iter().any(|entry| entry.short() == word) {
        return Error::usage("options must come after the command: hf COMMAND OPTIONS");
    }
    match closest_command(word) {
        Some(name) => Error::usage(format!("unknown command '{shown}'; did you mean {name}?")),
        None => Error::usage(format!("unknown command '{shown}'; run hf to list the commands")),
    }
}

/// The similarity from which on a word is taken for a misspelled command, unless a single edit makes it one.
const MIN_SIMILARITY: f64 = 0.8;

/// The command that a word is most similar to, if it is similar to one at all.
fn closest_command(word: &str) -> Option<&'static str> {
    let word = word.strip_prefix("hf-").unwrap_or(word);
    let similarity = |entry: &&'static CommandRow| strsim::jaro_winkler(word, entry.short());
    let best = COMMANDS.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
    let one_edit_away = COMMANDS.iter().find(|entry| strsim::osa_distance(word, entry.short()) == 1);
    one_edit_away.or(Some(best).filter(|best| similarity(best) >= MIN_SIMILARITY)).map(CommandRow::short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_command_is_recognized() {
        for (word, meant) in
            [("taks", "task"), ("satus", "status"), ("hf-log", "log"), ("verfy", "verify"), ("jbo", "job")]
        {
            assert_eq!(closest_command(word), Some(meant), "{word}");
        }
        for word in ["nonsense", "", "x", "../hf-log"] {
            assert_eq!(closest_command(word), None, "{word}");
        }
    }
}
