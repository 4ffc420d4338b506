//! hf-branch: many activities, one mind.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{ArgMatches, Args as Arguments, Parser, Subcommand};

use super::args::{Common, Keyed, Paged, read_text};
use super::main::{called, flagged, to_file};
use super::{Command, Out, Output};
use crate::base::{EntityType, limits};
use crate::op::branch::{
    self, BranchesRequest, CompleteBranchRequest, CreateRequest, InboxRequest, LeavingNote, NoteRequest, Interruptible,
    ReadRequest, RecallRequest, ResumeBranchRequest, SuspendRequest, TellRequest, WORDS_DEFAULT,
};
use crate::op::{self, Context, ShowRequest, project};
use crate::reply::{Key, Replies, Reply};

/// Live several activities as one mind: branches, threads, messages
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
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
    #[command(flatten)]
    common: Common,
}

/// Whose branches.
#[derive(Arguments, Debug)]
struct Persona {
    /// The persona; else $HF_AGENT, else main
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
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
        #[command(flatten)]
        persona: Persona,
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
        #[command(flatten)]
        persona: Persona,
    },
    /// Show one, with its threads
    Show {
        /// The branch
        reference: String,
        #[command(flatten)]
        persona: Persona,
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
        #[command(flatten)]
        persona: Persona,
    },
    /// Leave the branch that you are at; without a summary, its thread is aborted
    Suspend {
        #[command(flatten)]
        left: Left,
        #[command(flatten)]
        persona: Persona,
    },
    /// Say that a free branch is over; that of a task is when the task is
    Complete {
        /// The branch; else the one that you are at
        reference: Option<String>,
        #[command(flatten)]
        left: Left,
        #[command(flatten)]
        persona: Persona,
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
        #[command(flatten)]
        persona: Persona,
    },
    /// Note something in the thread that you are in
    Note {
        /// What was said or done; - reads standard input
        text: String,
        #[command(flatten)]
        keyed: Keyed,
        #[command(flatten)]
        persona: Persona,
    },
    /// Say what can be done now: react, resume, create or wait
    Decide {
        #[command(flatten)]
        persona: Persona,
    },
    /// Tell an agent something; a user's word interrupts it
    Tell {
        /// The agent
        to: String,
        /// What; - reads standard input
        text: String,
        #[command(flatten)]
        keyed: Keyed,
        /// The agent that tells it; else $HF_AGENT, else you
        #[arg(id = "teller", long = "agent", value_name = "NAME")]
        teller: Option<String>,
    },
    /// List what was told to you
    Inbox {
        /// Only what you have not read
        #[arg(long)]
        unread: bool,
        /// Messages at most, 500 at most
        #[arg(long, value_name = "N", default_value_t = limits::LOG_PAGE_DEFAULT_EVENTS)]
        limit: usize,
        #[command(flatten)]
        persona: Persona,
    },
    /// Read messages: these, or all that are new
    Read {
        /// The messages
        references: Vec<String>,
        #[command(flatten)]
        persona: Persona,
    },
}

impl Command for Args {
    const NAME: &str = "hf-branch";

    /// A person tells as a person.
    fn is_agents(matches: &ArgMatches) -> bool {
        !called(matches, &["tell"])
    }

    fn is_document(matches: &ArgMatches) -> bool {
        (called(matches, &["resume", "recall"]) && !to_file(matches)) || flagged(matches, &["working"])
    }

    fn run(self, ctx: &Context, out: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Create { label, branch_type, task, partner, left, abort, keyed, .. } => {
                let leaving = leaving(left, abort)?;
                let request = CreateRequest { label, branch_type, task, partner, leaving, key: keyed.key };
                branch::create(ctx, request)?.into()
            }
            What::List { working: true, .. } => {
                let done = branch::working(ctx)?;
                return document(format!("{}\n", done.memory), done.reply(), None);
            }
            What::List { status, paged, .. } => {
                let states = status.as_deref().map(project::parse_status).transpose()?.into_iter().collect();
                branch::branches(ctx, BranchesRequest { states, limit: paged.limit, cursor: paged.cursor })?.into()
            }
            What::Show { reference, .. } => op::show(ctx, ShowRequest { reference, wanted: EntityType::Branch })?.into(),
            What::Resume { reference, left, abort, words, out: file, .. } => {
                let leaving = leaving(left, abort)?;
                let done = branch::resume(ctx, ResumeBranchRequest { reference, words, leaving })?;
                return match (&done, file) {
                    (Interruptible::Interrupted { .. }, Some(_)) => Ok(done.into()),
                    (Interruptible::Interrupted { .. }, None) => Ok(Output::document(Vec::new(), done.reply())),
                    (Interruptible::Done(resumed), file) => {
                        let context = &resumed.context;
                        let text = if out.is_json() { format!("{}\n", context.json()) } else { context.plain() };
                        document(text, done.reply(), file.as_deref())
                    }
                };
            }
            What::Suspend { left, .. } => {
                branch::suspend(ctx, SuspendRequest { leaving: leaving(left, true)? })?.into()
            }
            What::Complete { reference, left, .. } => {
                let leaving = leaving(left, false)?;
                branch::complete(ctx, CompleteBranchRequest { reference, leaving })?.into()
            }
            What::Recall { reference, thread, grep, out: file, .. } => {
                let found = branch::recall(ctx, RecallRequest { reference, thread, grep })?;
                let text = if out.is_json() { format!("{}\n", found.json()) } else { found.plain() };
                return document(text, found.reply(), file.as_deref());
            }
            What::Note { text, keyed, .. } => {
                branch::note(ctx, NoteRequest { text: whole(text)?, key: keyed.key })?.into()
            }
            What::Decide { .. } => branch::decide(ctx)?.into(),
            What::Tell { to, text, keyed, .. } => {
                branch::tell(ctx, TellRequest { to, text: whole(text)?, key: keyed.key })?.into()
            }
            What::Inbox { unread, limit, .. } => {
                branch::inbox(ctx, InboxRequest { only_unread: unread, limit })?.into()
            }
            What::Read { references, .. } => branch::read(ctx, ReadRequest { references })?.into(),
        })
    }
}

/// What was said of a branch that is left.
fn leaving(left: Left, abort: bool) -> anyhow::Result<LeavingNote> {
    let summary = left.summary.map(whole).transpose()?;
    let tail = left.tail.map(|file| read_text(None, Some(&file)).map(Option::unwrap_or_default)).transpose()?;
    Ok(LeavingNote { summary, tail, abort })
}

/// A text that is given, or comes on standard input; what is empty is not nothing.
fn whole(text: String) -> anyhow::Result<String> {
    Ok(read_text(Some(text), None)?.unwrap_or_default())
}

/// Writes a document to standard output, or to a file.
fn document(text: String, reply: Reply, file: Option<&Path>) -> anyhow::Result<Output> {
    match file {
        None => Ok(Output::document(text, reply)),
        Some(file) => {
            fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
            Ok(reply.with(Key::Path, file.display().to_string()).into())
        }
    }
}
