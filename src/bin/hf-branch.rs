//! hf-branch: many activities, one mind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args as Arguments, Parser, Subcommand};
use hiveforge::base::{EntityType, limits};
use hiveforge::op::branch::{self, CreateRequest, Leaving, Outcome, RecallRequest, WORDS_DEFAULT};
use hiveforge::op::{self, project};
use hiveforge::ui::branch as replies;
use hiveforge::ui::{self, Cli, Common, Key, Keyed, Output, Paged, Report, outcome};

/// Live several activities as one mind: branches, threads, messages
#[derive(Parser, Debug)]
#[command(
    name = "hf-branch",
    version,
    after_help = "Examples:
  hf-branch create 'A walk round the lake' --type free
  hf-branch note 'The lake is frozen'
  hf-branch suspend --summary 'Half way round, the lake is frozen'
  hf-branch create 'Login form' --type task --task T-0001
  hf-branch resume BR-0002 --summary 'The form has its fields' --words 400
  hf-branch tell main 'How far are you?'
  hf-branch decide
  hf-branch read
  hf-branch recall BR-0002 --thread 1
  hf-branch list --working

A persona is an agent. It is at one branch at a time; its root, the branch of the user, is active while no
other is. Whoever leaves a branch says where it stands, and finds that again with resume."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// The persona; else $HF_AGENT, else main. Whoever tells something is himself
    #[arg(long, value_name = "NAME", global = true)]
    agent: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// What is said of a branch that is left.
#[derive(Arguments, Debug)]
struct Left {
    /// Where the branch that you leave stands; - reads standard input
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// A file with its last messages, one a line
    #[arg(long, value_name = "FILE")]
    tail: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Begin an activity, and be at it
    Create {
        /// What it is, in one line
        label: String,
        /// What kind of activity
        #[arg(long = "type", value_name = "TYPE", value_parser = ["task", "social", "free"])]
        branch_type: String,
        /// The task that it is for
        #[arg(long, value_name = "REF")]
        task: Option<String>,
        /// Who it is with; such branches come by themselves once both are known
        #[arg(long, value_name = "AGENT")]
        partner: Option<String>,
        #[command(flatten)]
        left: Left,
        /// Leave the branch that you are at without a summary
        #[arg(long, conflicts_with = "summary")]
        abort: bool,
        #[command(flatten)]
        keyed: Keyed,
    },
    /// List the branches of a persona
    List {
        /// The ten newest that are not over, as JSON for a prompt
        #[arg(long, conflicts_with_all = ["status", "limit", "cursor"])]
        working: bool,
        /// Only those in this state
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        #[command(flatten)]
        paged: Paged,
    },
    /// Show one, with its threads
    Show {
        /// The branch
        reference: String,
    },
    /// Go to a branch: a new thread, and what is to be known there
    Resume {
        /// The branch; the root has the persona's name
        reference: String,
        #[command(flatten)]
        left: Left,
        /// Leave the branch that you are at without a summary
        #[arg(long, conflicts_with = "summary")]
        abort: bool,
        /// How many words the context has at most
        #[arg(long, value_name = "N", default_value_t = WORDS_DEFAULT)]
        words: usize,
        /// Write the context to this file; the reply is then on standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Leave the branch that you are at; without a summary, its thread is aborted
    Suspend {
        #[command(flatten)]
        left: Left,
    },
    /// Say that a free branch is over; that of a task is when the task is
    Complete {
        /// The branch; else the one that you are at
        reference: Option<String>,
        #[command(flatten)]
        left: Left,
    },
    /// Remember how the threads of a branch ended, and what was said in them
    Recall {
        /// The branch
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        reference: Option<String>,
        /// Everything that was said in this thread
        #[arg(long, value_name = "N", conflicts_with = "all")]
        thread: Option<u64>,
        /// Only what has this word in it
        #[arg(long, value_name = "WORD")]
        grep: Option<String>,
        /// Every branch
        #[arg(long)]
        all: bool,
        /// Write it to this file; the reply is then on standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Note something in the thread that you are in
    Note {
        /// What was said or done; - reads standard input
        text: String,
        #[command(flatten)]
        keyed: Keyed,
    },
    /// Say what can be done now: react, resume, create or wait
    Decide,
    /// Tell an agent something; a user's word interrupts it
    Tell {
        /// The agent
        to: String,
        /// What; - reads standard input
        text: String,
        #[command(flatten)]
        keyed: Keyed,
    },
    /// List what was told to you
    Inbox {
        /// Only what you have not read
        #[arg(long)]
        unread: bool,
        /// Messages at most, 500 at most
        #[arg(long, value_name = "N", default_value_t = limits::LOG_PAGE_DEFAULT_EVENTS)]
        limit: usize,
    },
    /// Read messages: these, or all that are new
    Read {
        /// The messages
        references: Vec<String>,
    },
}

impl Cli for Args {
    const DOCUMENT_FLAGS: &'static [&'static str] = &["resume", "recall", "--working"];

    fn common(&self) -> &Common {
        &self.common
    }

    fn agent(&self) -> Option<Option<&str>> {
        match (&self.what, &self.agent) {
            // A person tells as a person.
            (What::Tell { .. }, None) => None,
            (_, named) => Some(named.as_deref()),
        }
    }
}

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, out| {
        let named = args.agent.as_deref();
        Ok(match args.what {
            What::Create { label, branch_type, task, partner, left, abort, keyed } => {
                let leaving = leaving(left, abort)?;
                let request = CreateRequest { label, branch_type, task, partner, leaving };
                replies::created(&branch::create(env, request, keyed.key)?, named).into()
            }
            What::List { working: true, .. } => {
                let (memory, count) = branch::working(env)?;
                return document(format!("{memory}\n"), replies::worked(count), None);
            }
            What::List { status, paged, .. } => {
                let state = status.as_deref().map(project::parse_status).transpose()?;
                let states: Vec<_> = state.into_iter().collect();
                let done = branch::branches(env, &states, paged.limit, paged.cursor.as_deref())?;
                replies::listed(&done, state, paged.limit, named).into()
            }
            What::Show { reference } => outcome::shown(&op::show(env, &reference, EntityType::Branch)?).into(),
            What::Resume { reference, left, abort, words, out: file } => {
                return match branch::resume(env, &reference, words, &leaving(left, abort)?)? {
                    Outcome::Interrupted { left } => match file {
                        Some(_) => Ok(replies::interrupted(&left, named).into()),
                        None => Ok(Output::Document(Vec::new(), replies::interrupted(&left, named))),
                    },
                    Outcome::Done(done) => {
                        let context = &done.context;
                        let text = if out.json { format!("{}\n", context.json()) } else { context.plain() };
                        document(text, replies::resumed(&done), file.as_deref())
                    }
                };
            }
            What::Suspend { left } => outcome::recorded(&branch::suspend(env, &leaving(left, true)?)?).into(),
            What::Complete { reference, left } => {
                outcome::recorded(&branch::complete(env, reference.as_deref(), leaving(left, false)?)?).into()
            }
            What::Recall { reference, thread, grep, out: file, .. } => {
                let found = branch::recall(env, &RecallRequest { reference, thread, grep })?;
                let text = if out.json { format!("{}\n", found.json()) } else { found.plain() };
                return document(text, replies::recalled(&found), file.as_deref());
            }
            What::Note { text, keyed } => replies::noted(&branch::note(env, &whole(text)?, keyed.key)?, named).into(),
            What::Decide => replies::decided(&branch::decide(env)?, named).into(),
            What::Tell { to, text, keyed } => {
                outcome::recorded(&branch::tell(env, &to, &whole(text)?, keyed.key)?).into()
            }
            What::Inbox { unread, limit } => replies::inbox(&branch::inbox(env, unread, limit)?, named).into(),
            What::Read { references } => replies::read(branch::read(env, &references)?.as_ref()).into(),
        })
    })
}

/// What was said of a branch that is left.
fn leaving(left: Left, abort: bool) -> anyhow::Result<Leaving> {
    let summary = left.summary.map(whole).transpose()?;
    let tail = left.tail.map(|file| ui::read_text(None, Some(&file)).map(Option::unwrap_or_default)).transpose()?;
    Ok(Leaving { summary, tail, abort })
}

/// A text that is given, or comes on standard input; what is empty is not nothing.
fn whole(text: String) -> anyhow::Result<String> {
    Ok(ui::read_text(Some(text), None)?.unwrap_or_default())
}

/// Writes a document to standard output, or to a file.
fn document(text: String, report: Report, file: Option<&Path>) -> anyhow::Result<Output> {
    match file {
        None => Ok(Output::Document(text.into_bytes(), report)),
        Some(file) => {
            fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
            Ok(report.with(Key::Path, file.display().to_string()).into())
        }
    }
}
