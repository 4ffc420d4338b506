//! The commands: one file each with its arguments and how they become a request.
//!
//! `main` alone parses, reads the environment and the clock, renders and ends the process. `hf` is all of the
//! commands in one binary; each is also one of its own.

mod args;
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

pub use main::{Face, Format, Out, Output, main, parser};

/// A command: its arguments, and what it does with them.
pub trait Command: clap::Parser {
    /// Its name, such as `hf-task`.
    const NAME: &str;

    /// Whether this is a poll, whose caller takes any exit code but 0 for a broken tool: it always
    /// exits 0, and its numbers are its own.
    const POLL: bool = false;

    /// Whether its exit code is what it is run for, so that nothing may hide it.
    const EXIT_IS_THE_ANSWER: bool = false;

    /// The vault if nothing names one, for a command that need not find it.
    const DEFAULT_VAULT: Option<&str> = None;

    /// The vault, if the command names it in a way of its own.
    fn vault(_matches: &ArgMatches) -> Option<PathBuf> {
        None
    }

    /// Whether it is a command of an agent's own, who is `main` if nobody is named.
    fn is_agents(_matches: &ArgMatches) -> bool {
        false
    }

    /// Whether standard output is kept for a document: then every reply, also that of an error, goes to
    /// standard error.
    fn is_document(_matches: &ArgMatches) -> bool {
        false
    }

    fn run(self, ctx: &Context, out: Out) -> anyhow::Result<Output>;
}

/// What is known of a command.
#[derive(Debug)]
pub struct Entry {
    /// `hf-task`.
    pub name: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    /// Its arguments.
    pub command: fn() -> clap::Command,
    /// Runs it.
    pub run: fn(Vec<OsString>, Face) -> ExitCode,
}

macro_rules! commands {
    ($($module:ident, $about:literal;)*) => {
        $(pub mod $module;)*

        /// Every command, in the order of their names.
        pub const COMMANDS: &[Entry] = &[$(Entry {
            name: <$module::Args as Command>::NAME,
            about: $about,
            command: <$module::Args as clap::CommandFactory>::command,
            run: main::run::<$module::Args>,
        }),*];
    };
}

commands! {
    activity, "log an activity that is over";
    append, "record events";
    artifact, "store, read and judge what work brings forth";
    backup, "make a consistent, verified copy of the vault";
    branch, "live several activities as one mind: branches, threads, messages";
    checkpoint, "say in one short line what you are doing";
    config, "show the settings in force, and what the file would change";
    constraint, "ask for a constraint to hold, or no longer";
    decide, "ask an operator, and answer as one";
    deepwork, "declare deep work, look at it, end it";
    init, "make a vault";
    job, "fire commands that outlive their caller, and look after them";
    lineage, "ask why something is as it is, and what came of it";
    log, "read events";
    pause, "hold a project up, or close it for good";
    poll, "wait for a job, and say what to run next";
    project, "show the state, list it, rebuild or check its caches";
    reference, "name files by short references that carry their hash";
    require, "put requirements in, analyse and verify them";
    resume, "let a paused project go on, or everything after a stop";
    review, "have a spec reviewed in turn, round by round";
    session, "come to work as an agent, ask what to do, and leave";
    state, "keep the state of a mission in 200 words, and do its work";
    status, "show how everything stands";
    stop, "stop everything";
    task, "propose, claim and do work, and ask why it stands where it stands";
    verify, "check the hash chain and what it proves";
    watchdog, "look for what has fallen silent or is overdue";
}

impl Entry {
    /// The command of this name.
    pub fn named(name: &str) -> Option<&'static Entry> {
        COMMANDS.iter().find(|entry| entry.name == name)
    }

    /// The name behind `hf`.
    pub fn short(&self) -> &'static str {
        self.name.strip_prefix("hf-").unwrap_or(self.name)
    }
}
