//! hf-review: reviewers take turns until the newest finds nothing.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hiveforge::base::Error;
use hiveforge::machine::State;
use hiveforge::op::review::{self, DebateView, ReviewOutcome};
use hiveforge::op::{Env, document};
use hiveforge::ui::{self, Acting, Common, Key, Keyed, Next, Output, Report, Status, outcome};

/// Have a spec reviewed in turn, round by round
#[derive(Parser, Debug)]
#[command(
    name = "hf-review",
    version,
    after_help = "Examples:
  hf-review prompt spec.md --reviewer gpt
  hf-review record --reviewer gpt <reply.txt
  hf-review fails R-gpt-0001
  hf-review status

A reply is PASS: and FAIL: ... -> FIX: lines, 200 words at most. One reply is one round, of four. They agree
when everybody has replied and the newest reply has no FAIL. hf-review run exits 0 then, 1 with FAIL lines to
fix, and 3 when every round is used."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    keyed: Keyed,
    #[command(flatten)]
    acting: Acting,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Write what a reviewer is to be asked to standard output
    Prompt {
        /// The spec: a file, - for standard input, or a reference of hf-ref
        spec: PathBuf,
        /// Who is asked; else whose turn it is
        #[arg(long, value_name = "NAME")]
        reviewer: Option<String>,
    },
    /// Record a reviewer's reply from standard input
    Record {
        /// Who replied
        #[arg(long, value_name = "NAME")]
        reviewer: String,
    },
    /// Show the FAIL lines of a reply
    Fails {
        /// The reply, such as R-gpt-0001; else the newest
        reference: Option<String>,
    },
    /// Say whose turn it is, in which round, and whether the reviewers agree
    Status,
    /// Ask the reviewers in turn, by reviewers.NAME.command, until there is something to fix or they agree
    Run {
        /// The spec: a file, - for standard input, or a reference of hf-ref
        spec: PathBuf,
    },
    /// Open another debate; after one that used up its rounds, an operator has to
    Open,
}

hiveforge::cli!(Args, with acting, documents &["prompt"]);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| match args.what {
        What::Prompt { spec, reviewer } => {
            let prompt = review::prompt(env, &read_spec(env, &spec)?, reviewer.as_deref())?;
            let report = Report::new(Status::Ok, format!("a prompt of {} bytes", prompt.len()));
            Ok(Output::Document(prompt.into_bytes(), report))
        }
        What::Record { reviewer } => {
            let reply = ui::read_text(Some("-".to_owned()), None)?.unwrap_or_default();
            Ok(recorded(review::record(env, &reviewer, &reply, args.keyed.key)?, false).into())
        }
        What::Fails { reference } => {
            let (review, fails) = review::fails(env, reference.as_deref())?;
            let sum = format!("FAIL lines of {review}: {}", fails.len());
            Ok(Report::new(Status::Ok, sum).with(Key::Review, review).with_each(Key::Fail, fails).into())
        }
        What::Status => {
            let view = review::status(env)?;
            let sum = match (view.is(State::Converged), view.is(State::Exhausted), &view.turn) {
                (true, ..) => "the reviewers agree".to_owned(),
                (_, true, _) => "every round is used, and there is still something to fix".to_owned(),
                (_, _, turn) => format!("it is the turn of {}", turn.as_deref().unwrap_or("nobody")),
            };
            let next = next(&view);
            Ok(standing(Report::new(Status::Ok, sum), &view).with_each(Key::Fail, view.fails()).next(next).into())
        }
        What::Run { spec } => {
            let spec = read_spec(env, &spec)?;
            let watched = std::io::stderr().is_terminal();
            let mut tell = |reviewer: &str| {
                if watched {
                    eprintln!("asking {reviewer} …");
                }
            };
            Ok(recorded(review::run(env, &spec, &mut tell)?, true).into())
        }
        What::Open => Ok(outcome::recorded(&review::reopen(env)?).into()),
    })
}

/// The text of a spec: a file, or what a reference of hf-ref stands for.
fn read_spec(env: &Env, spec: &Path) -> anyhow::Result<String> {
    let text = match spec.to_str() {
        Some("-") => ui::read_text(Some("-".to_owned()), None)?,
        Some(name) if !spec.exists() && document::parse_reference(name).is_some() => {
            ui::read_text(None, Some(&document::resolve(env, name)?.path))?
        }
        _ => ui::read_text(None, Some(spec))?,
    };
    text.ok_or_else(|| Error::usage("the spec is empty").into())
}

/// Where the debate stands.
fn standing(report: Report, view: &DebateView) -> Report {
    report
        .with(Key::Round, view.round())
        .with_some(Key::Turn, view.turn.as_deref())
        .with(Key::Converged, if view.is(State::Converged) { "yes" } else { "no" })
        .with_some(Key::M1Status, view.m1_status)
}

/// What comes next: a person's word, mending the spec, or nothing that can be named.
fn next(view: &DebateView) -> Next {
    match (view.is(State::Exhausted), view.fails().is_empty()) {
        (true, _) => Next::OPERATOR,
        (false, false) => Next::Patch,
        (false, true) => Next::None,
    }
}

/// A reply was recorded; `ran` if that was the end of a run, whose exit code tells how it ended.
fn recorded(done: ReviewOutcome, ran: bool) -> Report {
    let status = match (ran, done.fails.is_empty()) {
        (true, _) if done.view.is(State::Exhausted) => Status::RoundLimit,
        (true, false) => Status::Fail,
        (true, true) => Status::Converged,
        (false, _) if done.recorded.duplicate => Status::Duplicate,
        (false, _) => Status::Recorded,
    };
    let sum = format!("{}: {} PASS, {} FAIL", done.review, done.passes, done.fails.len());
    let next = next(&done.view);
    standing(Report::new(status, sum), &done.view)
        .with(Key::Review, done.review)
        .with(Key::File, done.file)
        .with_each(Key::Fail, done.fails)
        .with_each(Key::EventId, done.recorded.ids.iter().map(ToString::to_string))
        .warn(done.recorded.warnings)
        .next(next)
}
