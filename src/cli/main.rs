//! Runs a command: parses its arguments, calls it, writes the reply and returns the exit code. Except for completions
//! (`complete`), all standard output is written here.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::error::ErrorKind as ClapKind;
use clap::{Arg, ArgAction, ArgMatches};

use super::Command;
use super::env::Environment;
use super::flags::Flags;
use crate::base::{Error, Result, text};
use crate::job::{Cancel, Signals};
use crate::op::{self, Context};
use crate::reply::table::{self, Screen};
use crate::reply::{self, Replies, Reply, Status};

/// EXIT of hf-poll for an invalid request; its 2 means that the job is still running.
const POLL_USAGE_EXIT: u8 = 64;

/// The result of a command.
#[derive(Debug)]
pub enum Output {
    /// The reply, on standard output.
    Reply(Box<Reply>),
    /// The same; and what to do once the caller has it. If nobody reads it any more, that is not done.
    Delivered(Box<Reply>, AfterDelivery),
    /// A document on standard output; its reply goes to standard error.
    Document(Vec<u8>, Box<Reply>),
    /// No reply: only its warnings, on standard error, and its exit code.
    Quiet(Box<Reply>),
    /// Everything has already been written, through `StdoutWriter`.
    Streamed,
}

/// What is done after a reply was delivered.
pub struct AfterDelivery(pub Box<dyn FnOnce()>);

impl std::fmt::Debug for AfterDelivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AfterDelivery")
    }
}

impl Output {
    /// A document on standard output, and its reply on standard error.
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

/// How a reply is rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    KeyValue,
    Json,
    /// Tables for people.
    Table,
}

/// Standard output, for a command that writes while it runs.
#[derive(Clone, Copy, Debug)]
pub struct StdoutWriter {
    pub format: Format,
    /// The terminal, if the output is for a person.
    pub screen: Option<Screen>,
    command: &'static str,
}

impl StdoutWriter {
    pub fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Writes and flushes one piece. Returns `Break` if the reader has closed the pipe, which is not an error.
    pub fn write(self, piece: &[u8]) -> Result<ControlFlow<()>> {
        let mut out = io::stdout().lock();
        match out.write_all(piece).and_then(|()| out.flush()) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
            Err(e) => Err(Error::system("cannot write to standard output", e)),
        }
    }

    /// Writes one piece of a document: as it is, or on a terminal with what could control it escaped.
    pub fn document(self, piece: &[u8]) -> Result<ControlFlow<()>> {
        self.write(&for_stdout(piece))
    }

    /// Writes one of several replies.
    pub fn reply(self, reply: &Reply) -> Result<ControlFlow<()>> {
        warn(&reply.warnings);
        self.write(if self.is_json() { reply.json() } else { reply.text() }.as_bytes())
    }

    /// Writes the warnings of a reply, for a command that prints errors only.
    pub fn warn(self, reply: &Reply) {
        warn(&reply.warnings);
    }

    /// Writes a reply to standard error, for a command that prints errors only.
    pub fn complain(self, reply: &Reply) {
        warn(&reply.warnings);
        write_all(io::stderr(), if self.is_json() { reply.json() } else { reply.text() }.as_bytes());
    }

    /// The reply for an error that does not end the command.
    pub fn error_reply(self, error: &Error) -> Reply {
        reply::of_error(error, self.command)
    }
}

/// The same context, cancelled by a signal to terminate, so that the command can still report how far it got.
pub fn cancel_on_signal(ctx: &Context) -> Result<Context> {
    Ok(ctx.with_cancel(Cancel::on(Signals::of_waiter()?)))
}

/// How a command was invoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invocation {
    /// As `hf-COMMAND`: the output is always for programs.
    Plumbing,
    /// As `hf COMMAND`: the output may be for a person.
    Porcelain,
}

/// Runs a command under its own name with the arguments of the process.
pub fn main<A: Command>() -> ExitCode {
    run::<A>(std::env::args_os().collect(), Invocation::Plumbing)
}

/// Runs a command with these arguments, the first of which is its name.
pub fn run<A: Command>(argv: Vec<OsString>, invocation: Invocation) -> ExitCode {
    // Exceeding a file-size limit should make a write fail, not kill the process. Child processes do not inherit a
    // handler, as they would inherit an ignored signal.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let environment = Environment::read();
    let matches = match parse::<A>(invocation, &argv) {
        Ok(matches) => matches,
        Err(error) => return reject::<A>(&environment, invocation, &argv, &error),
    };
    let flags = Flags::from_matches::<A>(&matches);
    let format = format_for(&environment, &flags, invocation);
    let out =
        StdoutWriter { format, screen: (format == Format::Table).then(|| screen(&environment)), command: A::NAME };
    let (result, context) = match environment.context(&flags) {
        Ok(context) => {
            let args = A::from_arg_matches(&matches).map_err(anyhow::Error::from);
            (args.and_then(|args| args.run(&context, out)), Some(context))
        }
        Err(error) => (Err(error.into()), None),
    };
    let output = result.unwrap_or_else(|error| error_output::<A>(&flags, reply::of_failure(&error, A::NAME)));
    let output = match &context {
        // hf-poll has its own format, and waits during a pause because the job may end.
        Some(context) if !A::EXITS_ZERO && flags.needs_vault => with_situation(context, output),
        _ => output,
    };
    warn(&context.map(|context| context.notices.take()).unwrap_or_default());
    emit::<A>(&environment, format, &flags, output)
}

/// Adds what every reply tells the caller about its situation.
fn with_situation(ctx: &Context, output: Output) -> Output {
    // Best effort: a vault that cannot be read was the command's own problem.
    let Ok(situation) = op::callers_situation(ctx) else { return output };
    let changes = op::branch::reacted_to(ctx).unwrap_or_default();
    let tell = |reply: Box<Reply>| Box::new(reply.with_situation(ctx, &situation, &changes));
    match output {
        Output::Reply(reply) => Output::Reply(tell(reply)),
        Output::Delivered(reply, after) => Output::Delivered(tell(reply), after),
        Output::Document(bytes, reply) => Output::Document(bytes, tell(reply)),
        Output::Quiet(_) | Output::Streamed => output,
    }
}

/// Parses a command line. Tries without the `--format` option that `hf` adds first: it is rarely given, and adding it
/// costs as much as all other parsing.
fn parse<A: Command>(invocation: Invocation, argv: &[OsString]) -> Result<ArgMatches, clap::Error> {
    match parser::<A>(Invocation::Plumbing).try_get_matches_from(argv) {
        Err(error) if invocation == Invocation::Porcelain && error.kind() != ClapKind::DisplayVersion => {
            parser::<A>(invocation).try_get_matches_from(argv)
        }
        parsed => parsed,
    }
}

/// The parser of a command; with `hf` it also has the option `--format`.
pub fn parser<A: Command>(invocation: Invocation) -> clap::Command {
    let command = A::command();
    match invocation {
        Invocation::Plumbing => command,
        Invocation::Porcelain => {
            let bin_name = A::NAME.replacen('-', " ", 1);
            command.bin_name(bin_name).arg(format_arg())
        }
    }
}

/// The same parser for an invalid command line: it takes unknown words for values, and accepts any value, so that
/// it finds the options that it knows wherever they are.
fn lenient_parser(command: clap::Command, words: &[&'static str]) -> clap::Command {
    // Each takes a single word; an argument that took several would swallow known options, too.
    let word = |arg: Arg| arg.action(ArgAction::Set).num_args(1).last(false).allow_hyphen_values(true);
    let any = |arg: Arg| match arg.get_action().takes_values() && arg.get_id() != "format" {
        true => arg.value_parser(clap::value_parser!(OsString)),
        false => arg,
    };
    let known = command.ignore_errors(true).mut_args(|arg| {
        let arg = any(arg.required(false));
        if arg.is_positional() { word(arg) } else { arg }
    });
    let skipped = words.iter().map(|id| any(word(Arg::new(*id))));
    known.args(skipped).mut_subcommands(|sub| lenient_parser(sub, words))
}

/// The option `--format` of `hf`.
pub fn format_arg() -> Arg {
    Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .global(true)
        .value_parser(["kv", "json", "table"])
        .conflicts_with("json")
        .help("Print the reply as KEY:VALUE lines, JSON or tables [default: table on a terminal, else kv]")
}

/// The requested format; by default tables if `hf` runs in a person's terminal, else KEY:VALUE lines.
fn format_for(environment: &Environment, flags: &Flags, invocation: Invocation) -> Format {
    match (flags.json, flags.format.as_deref(), invocation) {
        (true, ..) | (_, Some("json"), _) => Format::Json,
        (_, Some("table"), _) => Format::Table,
        (_, None, Invocation::Porcelain) if !environment.in_agent_shell && io::stdout().is_terminal() => Format::Table,
        _ => Format::KeyValue,
    }
}

/// The output of a command that failed. Where standard output is reserved for a document, the reply must not end up
/// in the file that it may be redirected to.
fn error_output<A: Command>(flags: &Flags, reply: Reply) -> Output {
    let reply = match reply.status {
        Status::Usage | Status::LimitExceeded if A::EXITS_ZERO => reply.exit(POLL_USAGE_EXIT),
        _ => reply,
    };
    if flags.document { Output::document(Vec::new(), reply) } else { Output::Reply(Box::new(reply)) }
}

/// Prints help or the version; everything else that the parser returns as an error is a usage error.
fn reject<A: Command>(
    environment: &Environment,
    invocation: Invocation,
    argv: &[OsString],
    error: &clap::Error,
) -> ExitCode {
    if matches!(error.kind(), ClapKind::DisplayHelp | ClapKind::DisplayVersion) {
        return match write_all(io::stdout(), error.render().to_string().as_bytes()) {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(Status::SystemError.exit()),
        };
    }
    let text = error.render().to_string();
    let is_message = |line: &&str| !line.starts_with("Usage:") && !line.starts_with("For more information");
    let lines: Vec<&str> = text.lines().map(str::trim).take_while(is_message).filter(|l| !l.is_empty()).collect();
    let sum = lines.join(" ").replace(" tip: ", "; ");
    let sum = match error.kind() {
        // clap would print the whole help.
        ClapKind::DisplayHelpOnMissingArgumentOrSubcommand => missing_subcommand(&parser::<A>(invocation)),
        _ => sum.strip_prefix("error: ").unwrap_or(&sum).to_owned(),
    };
    // What can be understood of the line: in which format to reply, and where to.
    // One id for each word that may have to be skipped. They leak, but the process ends after this reply.
    let words: Vec<&'static str> = (0..argv.len()).map(|n| &*format!("?{n}").leak()).collect();
    let understood = lenient_parser(parser::<A>(invocation), &words).try_get_matches_from(argv).unwrap_or_default();
    let flags = Flags::from_matches::<A>(&understood);
    // An unknown subcommand writes no document, whatever follows it.
    let document = flags.document && error.kind() != ClapKind::InvalidSubcommand;
    let flags = Flags { vault: None, document, ..flags };
    let reply = reply::of_error(&Error::usage(sum), A::NAME);
    emit::<A>(environment, format_for(environment, &flags, invocation), &flags, error_output::<A>(&flags, reply))
}

/// Says which subcommands there are.
fn missing_subcommand(command: &clap::Command) -> String {
    let names: Vec<&str> =
        command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(|sub| sub.get_name()).collect();
    format!("missing subcommand; one of {}", names.join(", "))
}

/// Writes the output and returns the exit code.
fn emit<A: Command>(environment: &Environment, format: Format, flags: &Flags, output: Output) -> ExitCode {
    let mut after = None;
    let (document, mut reply) = match output {
        Output::Streamed => return ExitCode::SUCCESS,
        Output::Quiet(reply) => {
            warn(&reply.warnings);
            return exit_code::<A>(environment, true, reply.exit);
        }
        Output::Reply(reply) => (None, reply),
        Output::Delivered(reply, then) => {
            after = Some(then);
            (None, reply)
        }
        Output::Document(bytes, reply) => (Some(bytes), reply),
    };
    flags.add_to_next(&mut reply);
    save_for_schema_tests(environment, &reply);
    warn(&reply.warnings);
    let rendered = match format {
        Format::Json => reply.json(),
        Format::KeyValue => reply.text(),
        Format::Table => table::render(&reply, &screen(environment)),
    };
    let written = match document {
        None => match deliver(io::stdout(), rendered.as_bytes()) {
            Ok(()) => {
                after.into_iter().for_each(|then: AfterDelivery| (then.0)());
                true
            }
            Err(e) => e.kind() == io::ErrorKind::BrokenPipe,
        },
        Some(document) => {
            // A person who sees the document does not need the reply, too, unless the command failed.
            if format != Format::Table || reply.exit != 0 {
                write_all(io::stderr(), rendered.as_bytes());
            }
            write_all(io::stdout(), &for_stdout(&document))
        }
    };
    exit_code::<A>(environment, written, reply.exit)
}

/// The exit code of the process.
fn exit_code<A: Command>(environment: &Environment, written: bool, exit: u8) -> ExitCode {
    match (written, (environment.exit_zero && !A::EXIT_CODE_IS_THE_RESULT) || A::EXITS_ZERO) {
        (false, _) => ExitCode::from(Status::SystemError.exit()),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(exit),
    }
}

/// A document as standard output gets it.
fn for_stdout(document: &[u8]) -> Cow<'_, [u8]> {
    match io::stdout().is_terminal() {
        true => Cow::Owned(text::for_terminal(document).into_bytes()),
        false => Cow::Borrowed(document),
    }
}

/// Writes warnings to standard error.
fn warn(warnings: &[String]) {
    for warning in warnings {
        write_all(io::stderr(), format!("warning: {}\n", text::escape(warning)).as_bytes());
    }
}

/// The size and colours of the terminal.
fn screen(environment: &Environment) -> Screen {
    let terminal = io::stdout().is_terminal();
    let size = terminal.then(|| rustix::termios::tcgetwinsize(io::stdout()).ok()).flatten();
    let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
    Screen {
        columns: columns.or(environment.columns),
        colours: terminal && environment.colours,
        now: environment.now.timestamp(),
    }
}

/// Appends the reply as JSON to the file that HF_REPLIES names, for tests that validate it against the schema.
fn save_for_schema_tests(environment: &Environment, reply: &Reply) {
    if let Some(file) = &environment.replies {
        let opened = std::fs::File::options().create(true).append(true).open(file);
        let _ = opened.and_then(|mut file| file.write_all(reply.json().as_bytes()));
    }
}

/// Writes everything, to a reader that is still there.
fn deliver(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).and_then(|()| to.flush())
}

/// Writes everything; returns false on failure. A closed pipe is not a failure: the command has already done its work.
pub(super) fn write_all(to: impl Write, bytes: &[u8]) -> bool {
    match deliver(to, bytes) {
        Ok(()) => true,
        Err(e) => e.kind() == io::ErrorKind::BrokenPipe,
    }
}

/// Whether the subcommand is one of these.
pub(super) fn has_subcommand(matches: &ArgMatches, names: &[&str]) -> bool {
    matches.subcommand_name().is_some_and(|name| names.contains(&name))
}

/// Whether one of these flags was given to the command or its subcommand.
pub(super) fn has_flag(matches: &ArgMatches, ids: &[&str]) -> bool {
    let at = matches.subcommand().map_or(matches, |(_, inner)| inner);
    ids.iter().any(|id| at.try_get_one::<bool>(id).ok().flatten() == Some(&true))
}

/// Whether `--out` was given: then the document goes to a file and the reply to standard output.
pub(super) fn has_out_file(matches: &ArgMatches) -> bool {
    let at = matches.subcommand().map_or(matches, |(_, inner)| inner);
    at.try_contains_id("out").unwrap_or(false)
}
