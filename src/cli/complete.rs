//! Shell completion: `hf --complete INDEX WORDS…` prints one candidate per line, then a tab and its meaning. The
//! scripts for the shells (man/completions) only call this.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, complete};

use super::env::Environment;
use super::flags::Flags;
use super::main::{format_arg, write_all};
use super::{COMMANDS, CommandRow, hf};
use crate::base::{EntityType, limits, text};
use crate::event::Kind;
use crate::machine::{self, Phase};
use crate::op::Projection;
use crate::vault::Vault;

/// The hidden option of `hf` that asks for candidates.
pub const OPTION: &str = "--complete";

/// How many references are offered at most.
const REFERENCES_MAX: usize = 200;

/// Prints the candidates. An invalid request gets no message: the shell would not show it.
pub fn main(args: &[OsString]) -> ExitCode {
    let index = args.first().and_then(|index| index.to_str()).and_then(|index| index.parse::<usize>().ok());
    let words = args.get(1..).unwrap_or_default().to_vec();
    let Some(index) = index.filter(|index| *index < words.len()) else { return ExitCode::FAILURE };
    let line = |candidate: &CompletionCandidate| {
        let help = candidate.get_help().map(|help| help.to_string()).unwrap_or_default();
        let help = help.lines().next().unwrap_or_default();
        format!("{}\t{}\n", text::escape(&candidate.get_value().to_string_lossy()), text::escape(help))
    };
    let lines: String = candidates(words, index).iter().map(line).collect();
    write_all(io::stdout(), lines.as_bytes());
    ExitCode::SUCCESS
}

/// The candidates for the word at an index.
fn candidates(words: Vec<OsString>, index: usize) -> Vec<CompletionCandidate> {
    let program = words.first().map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str).unwrap_or_default();
    let command = match CommandRow::by_name(program) {
        Some(entry) => (entry.command)(),
        None => hf_with_all_commands(),
    };
    let understood = command.clone().ignore_errors(true).try_get_matches_from(&words).unwrap_or_default();
    let flags = Flags::from_matches::<hf::Args>(&understood);
    let mut command = with_candidates(command, &flags, None);
    let is_empty = words[index].is_empty();
    let directory = std::env::current_dir().ok();
    let mut found = complete(&mut command, words, index, directory.as_deref()).unwrap_or_default();
    found.retain(|candidate| !candidate.is_hide_set());
    // If a value could come next, offer options only after a dash.
    let is_option = |candidate: &CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(b"-");
    if is_empty && !found.iter().all(is_option) {
        found.retain(|candidate| !is_option(candidate));
    }
    found
}

/// The parser of `hf` with every command as a subcommand.
fn hf_with_all_commands() -> clap::Command {
    let commands = COMMANDS.iter().map(|entry| (entry.command)().name(entry.short()).about(entry.about));
    <hf::Args as clap::CommandFactory>::command()
        .mut_args(|arg| match arg.get_id().as_str() {
            "command" => arg.hide(true),
            _ => arg,
        })
        .arg(format_arg())
        .subcommands(commands)
}

/// The types of entities that an argument can name.
fn entity_types_of(command: &str, sub: Option<&str>, arg: &str) -> &'static [EntityType] {
    use EntityType::*;
    const ANYTHING: &[EntityType] = &[Task, Requirement, Decision, Run, Artifact, Constraint];
    match (command, sub, arg) {
        ("branch", Some("read"), "references") => &[Message],
        (_, _, "task" | "after") | ("poll", _, "id") => &[Task],
        (_, _, "requirement" | "by") if command != "log" => &[Requirement],
        (_, _, "session") => &[Session],
        (_, _, "target" | "priority" | "subject") | ("lineage", _, "reference") => ANYTHING,
        (_, _, "reference" | "references") => match command {
            "task" | "job" => &[Task],
            "require" => &[Requirement],
            "decide" => &[Decision],
            "artifact" => &[Artifact],
            "constraint" => &[Constraint],
            "branch" => &[Branch],
            "review" => &[Review],
            "ref" => &[Document],
            _ => &[],
        },
        _ => &[],
    }
}

/// The values that an argument can have, if they are a fixed list that the parser does not know.
fn fixed_values_of(command: &str, arg: &str) -> Vec<&'static str> {
    match arg {
        "status" => {
            let of = match command {
                "project" => &[],
                _ => entity_types_of(command, None, "reference"),
            };
            let is_one = |phase: &Phase| {
                of.is_empty() || of.iter().any(|of| machine::table(*of).iter().any(|row| row.2 == *phase))
            };
            let phases = Phase::ALL.iter().filter(|phase| **phase != Phase::Absent && is_one(phase));
            phases.map(|phase| phase.as_str()).collect()
        }
        "event_type" => Kind::ALL.iter().filter(|kind| !kind.row().reserved).map(|kind| kind.as_str()).collect(),
        "projection" => EntityType::projected().map(EntityType::plural).chain([Projection::IDEMPOTENCY]).collect(),
        _ => Vec::new(),
    }
}

/// The parser with completion of references and fixed values added.
fn with_candidates(command: clap::Command, flags: &Flags, parent: Option<&str>) -> clap::Command {
    let name = command.get_name().trim_start_matches("hf-").to_owned();
    let (of, sub) = match parent {
        Some(parent) if parent != "hf" => (parent.to_owned(), Some(name.clone())),
        _ => (name.clone(), None),
    };
    let subcommands: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| {
        let types = entity_types_of(&of, sub.as_deref(), arg.get_id().as_str());
        let values = fixed_values_of(&of, arg.get_id().as_str());
        match (types.is_empty(), values.is_empty()) {
            (false, _) => {
                let flags = flags.clone();
                arg.add(ArgValueCompleter::new(move |current: &OsStr| reference_candidates(&flags, types, current)))
            }
            (true, false) => {
                arg.add(ArgValueCandidates::new(move || values.iter().map(CompletionCandidate::new).collect()))
            }
            (true, true) => arg,
        }
    });
    subcommands
        .into_iter()
        .fold(command, |command, sub| command.mut_subcommand(sub, |sub| with_candidates(sub, flags, Some(&name))))
}

/// The references of these types that start with the current word, newest first; none if no vault is found.
fn reference_candidates(flags: &Flags, types: &[EntityType], current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy().to_uppercase();
    let state = Environment::read().vault(flags).and_then(|vault| Vault::open(&vault)?.view());
    let Ok((_, state)) = state else { return Vec::new() };
    let mut found = Vec::new();
    for entity in
        types.iter().flat_map(|entity| state.entities(*entity, None, limits::BATCH_MAX_EVENTS).into_iter().rev())
    {
        let name = entity.name();
        if name.to_uppercase().starts_with(&current) && found.len() < REFERENCES_MAX {
            let title = entity.title().or_else(|| entity.path());
            let help = format!("{} {}", entity.phase, text::cut(title.unwrap_or_default(), limits::SUMMARY_MAX_CHARS));
            found.push(CompletionCandidate::new(name).help(Some(help.into())));
        }
    }
    found
}
