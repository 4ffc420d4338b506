//! The harness: parse, call, reply. The only place that writes to standard output or ends a process.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::error::ErrorKind as ClapKind;
use clap::{Arg, ArgAction, ArgMatches};

use super::Command;
use super::env::Outer;
use super::flags::Flags;
use crate::base::{Error, Result, text};
use crate::job::{Cancel, Signals};
use crate::op::Context;
use crate::reply::table::{self, Screen};
use crate::reply::{self, Replies, Reply, Status};

/// What a poll says for a request that is wrong; 2 means that the job still runs.
const POLL_USAGE: u8 = 64;

/// What a command gives back.
#[derive(Debug)]
pub enum Output {
    /// The reply, on standard output.
    Reply(Box<Reply>),
    /// A document on standard output; its reply goes to standard error.
    Document(Vec<u8>, Box<Reply>),
    /// Everything was written already, through `Out`.
    Streamed,
}

impl Output {
    /// A document on standard output.
    pub fn document(bytes: impl Into<Vec<u8>>, reply: Reply) -> Self {
        Output::Document(bytes.into(), Box::new(reply))
    }
}

impl<T: Replies> From<T> for Output {
    fn from(outcome: T) -> Self {
        Output::Reply(Box::new(outcome.reply()))
    }
}

impl Replies for Reply {
    fn reply(&self) -> Reply {
        self.clone()
    }
}

/// What a reply is rendered as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    KeyValue,
    Json,
    /// For a person's eyes.
    Table,
}

/// Standard output for a command that writes as it goes.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    pub format: Format,
    /// What a person looks at, if one does.
    pub screen: Option<Screen>,
    command: &'static str,
}

impl Out {
    pub fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Writes one piece at once. Breaks when nobody reads any more, which is not an error.
    pub fn write(self, piece: &[u8]) -> Result<ControlFlow<()>> {
        let mut out = io::stdout().lock();
        match out.write_all(piece).and_then(|()| out.flush()) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
            Err(e) => Err(Error::system("cannot write the reply", e)),
        }
    }

    /// Writes one reply of several, one after the other.
    pub fn reply(self, reply: &Reply) -> Result<ControlFlow<()>> {
        self.write(if self.is_json() { reply.json() } else { reply.text() }.as_bytes())
    }

    /// The reply for an error that does not end the command.
    pub fn error(self, error: &Error) -> Reply {
        reply::of_error(error, self.command)
    }
}

/// The same call, given up when the process is asked to end: the command still says how far it came.
pub fn until_asked_to_end(ctx: &Context) -> Result<Context> {
    Ok(ctx.with_cancel(Cancel::on(Signals::of_waiter()?)))
}

/// How a command was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// Under its own name: its output is for programs, always.
    Plumbing,
    /// As `hf COMMAND`: its output may be for a person.
    Porcelain,
}

/// A command under its own name, from its arguments to its exit code.
pub fn main<A: Command>() -> ExitCode {
    run::<A>(std::env::args_os().collect(), Face::Plumbing)
}

/// One command, from its arguments (the first is its name) to its exit code.
pub fn run<A: Command>(argv: Vec<OsString>, face: Face) -> ExitCode {
    // A file-size limit is an error of a write, not a death. A handler, unlike "ignore", is not
    // inherited by what we start.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let outer = Outer::read();
    let matches = match parse::<A>(face, &argv) {
        Ok(matches) => matches,
        Err(error) => return reject::<A>(&outer, face, &argv, &error),
    };
    let flags = Flags::of::<A>(&matches);
    let format = format(&outer, &flags, face);
    let result = A::from_arg_matches(&matches).map_err(anyhow::Error::from).and_then(|args| {
        args.run(
            &outer.env(&flags)?,
            Out { format, screen: (format == Format::Table).then(|| screen(&outer)), command: A::NAME },
        )
    });
    let output = result.unwrap_or_else(|error| instead::<A>(&flags, reply::of_failure(&error, A::NAME)));
    emit::<A>(&outer, format, &flags, output)
}

/// What a line says. What `hf` adds is seldom asked for and costs as much as the rest: without it first.
fn parse<A: Command>(face: Face, argv: &[OsString]) -> Result<ArgMatches, clap::Error> {
    match parser::<A>(Face::Plumbing).try_get_matches_from(argv) {
        Err(error) if face == Face::Porcelain && error.kind() != ClapKind::DisplayVersion => {
            parser::<A>(face).try_get_matches_from(argv)
        }
        parsed => parsed,
    }
}

/// The parser of a command; `hf` also lets a person choose the format.
pub fn parser<A: Command>(face: Face) -> clap::Command {
    let command = A::command();
    match face {
        Face::Plumbing => command,
        Face::Porcelain => {
            let called = A::NAME.replacen('-', " ", 1);
            command.bin_name(called).arg(format_arg())
        }
    }
}

/// The same parser for a line that is wrong: it takes words that it does not know for values, and any value
/// for a right one, so that what it does know is found wherever it stands.
fn lenient(command: clap::Command, words: &[&'static str]) -> clap::Command {
    // Each takes one word: one that took them all would take the options that it knows, too.
    let word = |arg: Arg| arg.action(ArgAction::Set).num_args(1).last(false).allow_hyphen_values(true);
    let any = |arg: Arg| match arg.get_action().takes_values() && arg.get_id() != "format" {
        true => arg.value_parser(clap::value_parser!(OsString)),
        false => arg,
    };
    let known = command.ignore_errors(true).mut_args(|arg| {
        let arg = any(arg.required(false));
        if arg.is_positional() { word(arg) } else { arg }
    });
    let passed_over = words.iter().map(|id| any(word(Arg::new(*id))));
    known.args(passed_over).mut_subcommands(|sub| lenient(sub, words))
}

/// How a reply is shown, for `hf`.
pub fn format_arg() -> Arg {
    Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .global(true)
        .value_parser(["kv", "json", "table"])
        .conflicts_with("json")
        .help("How to show the reply: kv, json, or table (what a person's terminal gets)")
}

/// What the reply is rendered as: what was asked for, else tables in a person's terminal.
fn format(outer: &Outer, flags: &Flags, face: Face) -> Format {
    match (flags.json, flags.format.as_deref(), face) {
        (true, ..) | (_, Some("json"), _) => Format::Json,
        (_, Some("table"), _) => Format::Table,
        (_, None, Face::Porcelain) if !outer.in_agent_shell && io::stdout().is_terminal() => Format::Table,
        _ => Format::KeyValue,
    }
}

/// Where a reply goes that comes instead of what was asked for: a file that waits for a document
/// must not get an error's text.
fn instead<A: Command>(flags: &Flags, reply: Reply) -> Output {
    let reply = match reply.status {
        Status::Usage | Status::LimitExceeded if A::POLL => reply.exit(POLL_USAGE),
        _ => reply,
    };
    if flags.document { Output::document(Vec::new(), reply) } else { Output::Reply(Box::new(reply)) }
}

/// Help and version are documents; anything else the parser says is a usage error.
fn reject<A: Command>(outer: &Outer, face: Face, argv: &[OsString], error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ClapKind::DisplayHelp | ClapKind::DisplayVersion) {
        return match write_all(io::stdout(), error.render().to_string().as_bytes()) {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(Status::SystemError.exit()),
        };
    }
    let text = error.render().to_string();
    let ours = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more information");
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(ours).filter(|l| !l.is_empty()).collect();
    let sum = lines.join(" ").replace(" tip: ", "; ");
    let sum = sum.strip_prefix("error: ").unwrap_or(&sum).to_owned();
    // What the line did say, as far as it could be read: how to reply, and where.
    // One name for every word that may have to be passed over; the process ends with this reply.
    let words: Vec<&'static str> = (0..argv.len()).map(|n| &*format!("?{n}").leak()).collect();
    let understood = lenient(parser::<A>(face), &words).try_get_matches_from(argv).unwrap_or_default();
    let flags = Flags::of::<A>(&understood);
    // A word that is no sub-command asks for no document, whatever follows it.
    let document = flags.document && error.kind() != ClapKind::InvalidSubcommand;
    let flags = Flags { vault: None, document, ..flags };
    let reply = reply::of_error(&Error::usage(sum), A::NAME);
    emit::<A>(outer, format(outer, &flags, face), &flags, instead::<A>(&flags, reply))
}

fn emit<A: Command>(outer: &Outer, format: Format, flags: &Flags, output: Output) -> ExitCode {
    let (document, mut reply) = match output {
        Output::Streamed => return ExitCode::SUCCESS,
        Output::Reply(reply) => (None, reply),
        Output::Document(bytes, reply) => (Some(bytes), reply),
    };
    flags.repeat_in(&mut reply);
    keep(outer, &reply);
    for warning in &reply.warnings {
        write_all(io::stderr(), format!("warning: {}\n", text::escape(warning)).as_bytes());
    }
    let rendered = match format {
        Format::Json => reply.json(),
        Format::KeyValue => reply.text(),
        Format::Table => table::render(&reply, &screen(outer)),
    };
    let written = match document {
        None => write_all(io::stdout(), rendered.as_bytes()),
        Some(document) => {
            // A person who looks at the document needs no report of it, unless it went wrong.
            if format != Format::Table || reply.exit != 0 {
                write_all(io::stderr(), rendered.as_bytes());
            }
            write_all(io::stdout(), &document)
        }
    };
    match (written, (outer.exit_zero && !A::EXIT_IS_THE_ANSWER) || A::POLL) {
        (false, _) => ExitCode::from(Status::SystemError.exit()),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(reply.exit),
    }
}

/// The terminal that a person looks at.
fn screen(outer: &Outer) -> Screen {
    let terminal = io::stdout().is_terminal();
    let size = terminal.then(|| rustix::termios::tcgetwinsize(io::stdout()).ok()).flatten();
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    Screen { columns: columns.or(outer.columns), colours: terminal && outer.colours, now: outer.now.timestamp() }
}

/// Keeps a reply as JSON where a test wants to hold it against the schema.
fn keep(outer: &Outer, reply: &Reply) {
    if let Some(file) = &outer.replies {
        let opened = std::fs::File::options().create(true).append(true).open(file);
        let _ = opened.and_then(|mut file| file.write_all(reply.json().as_bytes()));
    }
}

/// One write of the whole. A reader that went away is not an error: what was done is done.
pub(super) fn write_all(mut to: impl Write, bytes: &[u8]) -> bool {
    match to.write_all(bytes).and_then(|()| to.flush()) {
        Ok(()) => true,
        Err(e) => e.kind() == io::ErrorKind::BrokenPipe,
    }
}

/// Whether one of these sub-commands was called.
pub(super) fn called(matches: &ArgMatches, names: &[&str]) -> bool {
    matches.subcommand_name().is_some_and(|name| names.contains(&name))
}

/// Whether a flag of this command, or of the sub-command that was called, was given.
pub(super) fn flagged(matches: &ArgMatches, ids: &[&str]) -> bool {
    let at = matches.subcommand().map_or(matches, |(_, inner)| inner);
    ids.iter().any(|id| at.try_get_one::<bool>(id).ok().flatten() == Some(&true))
}

/// Whether the document goes to a file, so that standard output has the reply.
pub(super) fn to_file(matches: &ArgMatches) -> bool {
    let at = matches.subcommand().map_or(matches, |(_, inner)| inner);
    at.try_contains_id("out").unwrap_or(false)
}
