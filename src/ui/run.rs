//! The harness: parse, call, reply. The only place that writes to standard output or ends a process.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::error::ErrorKind as ClapKind;

use super::{Cli, Key, Next, Outer, Report, Status};
use crate::base::{Actor, EntityId, Error, ErrorKind, Reason, Result, ShortRef};
use crate::op::Env;

/// What a poll says for a request that is wrong; 2 means that the job still runs.
const POLL_USAGE: u8 = 64;

/// What a command gives back.
#[derive(Debug)]
pub enum Output {
    /// The reply, on standard output.
    Report(Report),
    /// A document on standard output; its reply goes to standard error.
    Document(Vec<u8>, Report),
    /// Everything was written already, through `Out`.
    Streamed,
}

impl From<Report> for Output {
    fn from(report: Report) -> Self {
        Output::Report(report)
    }
}

/// Standard output for a command that writes as it goes.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    pub json: bool,
}

impl Out {
    /// Writes one piece at once. Breaks when nobody reads any more, which is not an error.
    pub fn write(self, piece: &[u8]) -> Result<ControlFlow<()>> {
        let mut out = io::stdout().lock();
        match out.write_all(piece).and_then(|()| out.flush()) {
            Ok(()) => Ok(ControlFlow::Continue(())),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
            Err(e) => Err(Error::system("cannot write the reply", e)),
        }
    }
}

/// Runs one command from its arguments to its exit code.
pub fn run<A: Cli>(command: impl FnOnce(A, &Env, Out) -> anyhow::Result<Output>) -> ExitCode {
    // A file-size limit is an error of a write, not a death. A handler, unlike "ignore", is not
    // inherited by what we start.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let outer = Outer::read();
    let args = match A::try_parse() {
        Ok(args) => args,
        Err(error) => return reject::<A>(&outer, &error),
    };
    let (common, json) = (args.common().clone(), json_asked());
    let named = args.vault().or_else(|| common.vault.clone()).filter(|path| !path.as_os_str().is_empty());
    let vault_flag = named.map(|path| {
        // Repeated in NEXT from any folder, so it is made absolute; it was opened as given.
        std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned()
    });
    let leave = leave(&args);
    let result = match outer.env(&args) {
        Ok(env) => command(args, &env, Out { json }),
        Err(error) => Err(error.into()),
    };
    let output = result.unwrap_or_else(|error| {
        let report = report_error::<A>(&error);
        let asked = error.downcast_ref::<Error>().is_some_and(|e| matches!(e.kind, ErrorKind::ExitRequested(_)));
        answer::<A>(if asked { report.next(leave) } else { report })
    });
    emit::<A>(&outer, json, vault_flag.as_deref(), output)
}

/// How whoever is asked to leave does so: the session or the agent that a flag named is named again, or
/// another one would be logged out.
fn leave<A: Cli>(args: &A) -> Next {
    let leave = Next::run("hf-session").word("logout");
    let actor = args.acting().and_then(|acting| acting.actor.as_deref()).and_then(|actor| Actor::parse(actor).ok());
    match (args.session(), args.agent().flatten(), actor.and_then(|actor| actor.agent())) {
        (Some(session), ..) => match (ShortRef::parse(session), EntityId::parse(session)) {
            (Some(reference), _) => leave.arg("--session", &reference),
            (None, Ok(id)) => leave.arg("--session", &id),
            (None, Err(_)) => Next::OPERATOR,
        },
        (None, Some(agent), _) => leave.of_agent(Some(agent)),
        (None, None, Some(agent)) => leave.arg("--agent", &agent),
        (None, None, None) => leave,
    }
}

/// The reply for an error: its kind gives the status and the next step.
pub fn report_error<A: Cli>(error: &anyhow::Error) -> Report {
    let Some(typed) = error.downcast_ref::<Error>() else {
        return Report::new(Status::SystemError, format!("{error:#}")).next(Next::OPERATOR);
    };
    let next = match &typed.kind {
        ErrorKind::Usage | ErrorKind::InvalidCursor | ErrorKind::LimitExceeded => {
            Next::run(leak_name::<A>()).word("--help")
        }
        ErrorKind::Refused(Reason::NotYourTurn) => Next::run("hf-review").word("status"),
        ErrorKind::Refused(
            Reason::IllegalTransition | Reason::KeyConflict | Reason::NotHolder | Reason::SummaryRequired,
        ) => Next::None,
        ErrorKind::Refused(Reason::ClaimLost) => Next::run("hf-task").word("claim"),
        ErrorKind::Refused(Reason::NotReady | Reason::TooManyTasks) => Next::run("hf-task").word("list"),
        ErrorKind::Refused(_) | ErrorKind::NoVault | ErrorKind::System => Next::OPERATOR,
        ErrorKind::ExitRequested(_) => Next::run("hf-session").word("logout"),
        ErrorKind::Corrupt => Next::run("hf-verify"),
        ErrorKind::NotFound => Next::run("hf-log").word("--last 20"),
        ErrorKind::Busy | ErrorKind::Uncertain { .. } => Next::None,
    };
    let sum = match &typed.kind {
        ErrorKind::Uncertain { .. } => {
            format!("may or may not be recorded; repeat with the same --key: {}", typed.message)
        }
        _ => typed.message.clone(),
    };
    let report = Report::new(Status::of(&typed.kind), sum).next(next);
    let report = match &typed.kind {
        ErrorKind::Usage | ErrorKind::LimitExceeded if A::POLL => report.with_exit(POLL_USAGE),
        _ => report,
    };
    match &typed.kind {
        ErrorKind::Refused(reason) | ErrorKind::ExitRequested(reason) => report.with(Key::Reason, reason.as_str()),
        ErrorKind::Uncertain { key } => report.with(Key::IdempotencyKey, key.as_str()),
        _ => report,
    }
}

/// Where a reply goes that comes instead of what was asked for: a file that waits for a document
/// must not get an error's text.
fn answer<A: Cli>(report: Report) -> Output {
    let given: Vec<_> = std::env::args_os().skip(1).collect();
    let asked = given.iter().any(|arg| A::DOCUMENT_FLAGS.iter().any(|flag| arg == flag));
    let elsewhere = given.iter().any(|arg| arg.to_string_lossy().starts_with("--out"));
    if asked && !elsewhere { Output::Document(Vec::new(), report) } else { Output::Report(report) }
}

/// Whether the reply shall be JSON, wherever that stands: also behind a word that is no command, and
/// in a line that could not be parsed.
fn json_asked() -> bool {
    std::env::args_os().any(|arg| arg == "--json")
}

/// The command's own name, for its help. Built once per process.
fn leak_name<A: Cli>() -> &'static str {
    A::command().get_name().to_owned().leak()
}

/// Help and version are documents; anything else the parser says is a usage error.
fn reject<A: Cli>(outer: &Outer, error: &clap::Error) -> ExitCode {
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
    let json = json_asked();
    let report = report_error::<A>(&Error::usage(sum).into());
    emit::<A>(outer, json, None, answer::<A>(report))
}

fn emit<A: Cli>(outer: &Outer, json: bool, vault_flag: Option<&str>, output: Output) -> ExitCode {
    let (document, report) = match output {
        Output::Streamed => return ExitCode::SUCCESS,
        Output::Report(report) => (None, report),
        Output::Document(bytes, report) => (Some(bytes), report),
    };
    for warning in &report.warnings {
        write_all(io::stderr(), format!("warning: {}\n", crate::base::text::escape(warning)).as_bytes());
    }
    let reply = match (json, outer.colours && document.is_none() && super::on_terminal()) {
        (true, _) => report.json(vault_flag),
        (false, true) => report.coloured(vault_flag),
        (false, false) => report.lines(vault_flag),
    };
    let written = match document {
        None => write_all(io::stdout(), reply.as_bytes()),
        Some(document) => {
            write_all(io::stderr(), reply.as_bytes());
            write_all(io::stdout(), &document)
        }
    };
    match (written, outer.exit_zero || A::POLL) {
        (false, _) => ExitCode::from(Status::SystemError.exit()),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(report.exit()),
    }
}

/// One write of the whole. A reader that went away is not an error: what was done is done.
fn write_all(mut to: impl Write, bytes: &[u8]) -> bool {
    match to.write_all(bytes).and_then(|()| to.flush()) {
        Ok(()) => true,
        Err(e) => e.kind() == io::ErrorKind::BrokenPipe,
    }
}
