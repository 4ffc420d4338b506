//! The commands: one file each, with its arguments and how they become a request.
//!
//! `main` runs a command: it parses the command line, renders the reply and returns the exit code. `env` reads the
//! environment and the clock. `hf` is all commands in one binary; each command is also a separate binary.

mod args;
mod confirm;
mod env;
mod flags;
mod main;
mod progress;

pub mod complete;
pub mod hf;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::ArgMatches;

use crate::op::Context;

pub use main::{AfterDelivery, Format, Invocation, Output, StdoutWriter, main, parser};

/// A command: its arguments, and what it does with them.
pub trait Command: clap::Parser {
    /// Its name, such as `hf-task`.
    const NAME: &str;

    /// Whether the process always exits 0, because its caller takes any other exit code for a broken tool.
    /// EXIT in the reply has its own numbers then. Only hf-poll does this.
    const EXITS_ZERO: bool = false;

    /// Whether the exit code is the result, so that HF_EXIT_ZERO does not apply.
    const EXIT_CODE_IS_THE_RESULT: bool = false;

    /// The vault to use if none is named, for a command that does not need an existing one.
    const DEFAULT_VAULT: Option<&str> = None;

    /// The vault, if the command has another way than `--vault` to name it.
    fn vault_argument(_matches: &ArgMatches) -> Option<PathBuf> {
        None
    }

    /// Whether the command uses a vault at all.
    fn needs_vault(_matches: &ArgMatches) -> bool {
        true
    }

    /// Whether the command acts as an agent, by default the agent `main`.
    fn acts_as_agent(_matches: &ArgMatches) -> bool {
        false
    }

    /// Whether standard output is reserved for a document. If so, the reply goes to standard error, even if
    /// the command fails.
    fn writes_document(_matches: &ArgMatches) -> bool {
        false
    }

    /// Runs the command.
    fn run(self, ctx: &Context, out: StdoutWriter) -> anyhow::Result<Output>;
}

/// A row of the table of commands.
#[derive(Debug)]
pub struct CommandRow {
    /// The full name, such as `hf-task`.
    pub name: &'static str,
    /// The purpose, in one line.
    pub about: &'static str,
    /// Builds the argument parser.
    pub command: fn() -> clap::Command,
    /// Runs the command with these arguments, the first of which is its name.
    pub run: fn(Vec<OsString>, Invocation) -> ExitCode,
}

macro_rules! commands {
    ($($module:ident, $about:literal;)*) => {
        $(pub mod $module;)*

        /// Every command, in alphabetical order.
        pub const COMMANDS: &[CommandRow] = &[$(CommandRow {
            name: <$module::Args as Command>::NAME,
            about: $about,
            command: <$module::Args as clap::CommandFactory>::command,
            run: main::run::<$module::Args>,
        }),*];
    };
}

commands! {
    activity, "log a completed activity";
    append, "record events";
    artifact, "store, read and validate the files that tasks produce";
    backup, "make a consistent, verified copy of the vault";
    branch, "switch between activities with a shared memory: branches, threads, messages";
    checkpoint, "record in one short line what you are doing";
    config, "show, compare, change and adopt settings; trust a vault";
    constraint, "request, remove and list constraints on all work";
    decide, "request decisions from an operator, and make them";
    deepwork, "declare, extend and complete deep work";
    init, "create a vault";
    job, "run commands in the background, and manage them";
    key, "add, remove and list the keys with which operators sign";
    lineage, "show the causes and consequences of an event or entity";
    log, "show events";
    pause, "pause or archive a project";
    poll, "wait for a job, and print the next command to run";
    project, "show and list the state; rebuild or check its caches";
    reference, "give files short references that include their hash";
    require, "propose, analyze and verify requirements";
    resume, "resume a paused project, or everything after a stop";
    review, "have a spec reviewed by several reviewers in rounds";
    session, "log in as an agent, get a task, report, log out";
    state, "keep the state of a mission in 200 words, and run its work";
    status, "show the state of the system on one screen";
    stop, "stop all work in the vault";
    task, "propose, claim, run and explain tasks";
    verify, "verify the hash chain and, on request, everything derived from it";
    watchdog, "check for silent agents and overdue work";
}

impl CommandRow {
    /// The command with this full name.
    pub fn by_name(name: &str) -> Option<&'static CommandRow> {
        COMMANDS.iter().find(|entry| entry.name == name)
    }

    /// The name after `hf`, such as `task`.
    pub fn short(&self) -> &'static str {
        self.name.strip_prefix("hf-").unwrap_or(self.name)
    }
}
