//! hf-branch: several activities with a shared memory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{ArgMatches, Args as Arguments, Parser, Subcommand};

use super::args::{GlobalArgs, KeyArgs, PageArgs, read_text};
use super::main::{has_subcommand, has_flag, has_out_file};
use super::{Command, Output, StdoutWriter};
use crate::base::{EntityType, limits};
use crate::op::branch::{
    self, BranchesRequest, CompleteBranchRequest, CreateRequest, InboxRequest, LeavingNote, NoteRequest, Interruptible,
    ReadRequest, RecallRequest, ResumeBranchRequest, SuspendRequest, TellRequest, WORDS_DEFAULT,
};
use crate::op::{self, Context, ShowRequest, project};
use crate::reply::{Key, Replies, Reply};

/// Switch between several activities with a shared memory: branches, threads, messages
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-branch create 'Try out the new parser' --type free
  hf-branch note 'It is twice as fast'
  hf-branch suspend --summary 'Works, and is twice as fast; error messages are missing'
  hf-branch create 'Login form' --type task --task T-0001
  hf-branch resume BR-0002 --summary 'Fields done, validation missing' --words 400
  hf-branch tell main 'How far are you?'
  hf-branch decide
  hf-branch read
  hf-branch recall BR-0002 --thread 1
  hf-branch list --working

A persona is an agent that works on one branch at a time and remembers all of them. Its root, the branch for talking \
with the user, is active while no other branch is. When you leave a branch you summarize its state; hf-branch resume \
gives you that summary back."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

/// The persona that the branches belong to.
#[derive(Arguments, Debug)]
struct PersonaArgs {
    /// The persona [default: $HF_AGENT, the agent of $HF_SESSION, or main]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

/// What to remember about the branch you leave.
#[derive(Arguments, Debug)]
struct LeavingArgs {
    /// The state of the branch you leave; - reads it from standard input
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// A file with the last messages of the branch you leave, one per line
    #[arg(long, value_name = "FILE")]
    tail: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Create a branch and switch to it
    Create {
        /// The activity, in one line
        label: String,
        /// The type of activity
        #[arg(long = "type", value_name = "TYPE", value_parser = ["task", "social", "free"])]
        branch_type: String,
        /// The task, such as T-0001; required for --type task
        #[arg(long, value_name = "REF")]
        task: Option<String>,
        /// The agent to talk with; required for --type social
        #[arg(long, value_name = "AGENT")]
        partner: Option<String>,
        #[command(flatten)]
        leaving: LeavingArgs,
        /// Leave the current branch without a summary; its thread is aborted
        #[arg(long, conflicts_with = "summary")]
        abort: bool,
        #[command(flatten)]
        idempotency: KeyArgs,
        #[command(flatten)]
        persona: PersonaArgs,
    },
    /// List the branches of a persona
    List {
        /// Print the ten most recent open branches as JSON for a prompt; the reply goes to standard error
        #[arg(long, conflicts_with_all = ["status", "limit", "cursor"])]
        working: bool,
        /// Only branches in this state, such as Suspended
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        #[command(flatten)]
        page: PageArgs,
        #[command(flatten)]
        persona: PersonaArgs,
    },
    /// Show a branch with its threads
    Show {
        /// The branch, such as BR-0002
        reference: String,
        #[command(flatten)]
        persona: PersonaArgs,
    },
    /// Switch to a branch: start a new thread, and print its context
    Resume {
        /// The branch, such as BR-0002; the root has the name of the persona
        reference: String,
        #[command(flatten)]
        leaving: LeavingArgs,
        /// Leave the current branch without a summary; its thread is aborted
        #[arg(long, conflicts_with = "summary")]
        abort: bool,
        /// Limit the context to N words
        #[arg(long, value_name = "N", default_value_t = WORDS_DEFAULT)]
        words: usize,
        /// Write the context to this file, and the reply to standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        persona: PersonaArgs,
    },
    /// Leave the current branch; without a summary, its thread is aborted
    Suspend {
        #[command(flatten)]
        leaving: LeavingArgs,
        #[command(flatten)]
        persona: PersonaArgs,
    },
    /// Mark a free branch as completed; the branch of a task is completed with its task
    Complete {
        /// The branch, such as BR-0002 [default: the current one]
        reference: Option<String>,
        #[command(flatten)]
        leaving: LeavingArgs,
        #[command(flatten)]
        persona: PersonaArgs,
    },
    /// Print how the threads of a branch ended, and what was noted in them
    Recall {
        /// The branch, such as BR-0002
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        reference: Option<String>,
        /// Print everything in thread N
        #[arg(long, value_name = "N", conflicts_with = "all")]
        thread: Option<u64>,
        /// Only entries that contain this word
        #[arg(long, value_name = "WORD")]
        grep: Option<String>,
        /// Search all branches
        #[arg(long)]
        all: bool,
        /// Write the output to this file, and the reply to standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        persona: PersonaArgs,
    },
    /// Add a note to the current thread
    Note {
        /// What was said or done; - reads it from standard input
        text: String,
        #[command(flatten)]
        idempotency: KeyArgs,
        #[command(flatten)]
        persona: PersonaArgs,
    },
    /// Show what you can do now: react, resume, create or wait
    Decide {
        #[command(flatten)]
        persona: PersonaArgs,
    },
    /// Send a message to an agent; a message from a user interrupts it
    Tell {
        /// The name of the agent
        to: String,
        /// The message; - reads it from standard input
        text: String,
        #[command(flatten)]
        idempotency: KeyArgs,
        /// The agent that sends the message [default: $HF_AGENT, or you]
        #[arg(id = "teller", long = "agent", value_name = "NAME")]
        teller: Option<String>,
    },
    /// List your messages
    Inbox {
        /// Only unread messages
        #[arg(long)]
        unread: bool,
        /// Show up to N messages, 500 at most
        #[arg(long, value_name = "N", default_value_t = limits::PAGE_DEFAULT_COUNT)]
        limit: usize,
        #[command(flatten)]
        persona: PersonaArgs,
    },
    /// Read messages and mark them as read
    Read {
        /// The messages, such as MSG-0001 [default: all unread]
        references: Vec<String>,
        #[command(flatten)]
        persona: PersonaArgs,
    },
}

impl Command for Args {
    const NAME: &str = "hf-branch";

    // Messages of a person come from that person, not from the agent `main`.
    fn acts_as_agent(matches: &ArgMatches) -> bool {
        !has_subcommand(matches, &["tell"])
    }

    fn writes_document(matches: &ArgMatches) -> bool {
        (has_subcommand(matches, &["resume", "recall"]) && !has_out_file(matches)) || has_flag(matches, &["working"])
    }

    fn run(self, ctx: &Context, out: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Create { label, branch_type, task, partner, leaving, abort, idempotency, .. } => {
                let leaving = leaving.request(Abort::from_flag(abort))?;
                let request = CreateRequest { label, branch_type, task, partner, leaving, key: idempotency.key };
                branch::create(ctx, request)?.into()
            }
            Verb::List { working: true, .. } => {
                let done = branch::working(ctx)?;
                return document_output(format!("{}\n", done.memory), done.reply(), None);
            }
            Verb::List { status, page, .. } => {
                let phases = status.as_deref().map(|name| project::parse_status(EntityType::Branch, name)).transpose()?.into_iter().collect();
                branch::branches(ctx, BranchesRequest { phases, limit: page.limit, cursor: page.cursor })?.into()
            }
            Verb::Show { reference, .. } => op::show(ctx, ShowRequest { reference, wanted: &[EntityType::Branch] })?.into(),
            Verb::Resume { reference, leaving, abort, words, out: file, .. } => {
                let leaving = leaving.request(Abort::from_flag(abort))?;
                let done = branch::resume(ctx, ResumeBranchRequest { reference, words, leaving })?;
                return match (&done, file) {
                    (Interruptible::Interrupted { .. }, Some(_)) => Ok(done.into()),
                    (Interruptible::Interrupted { .. }, None) => Ok(Output::document(Vec::new(), done.reply())),
                    (Interruptible::Done(resumed), file) => {
                        let context = &resumed.context;
                        let text = if out.is_json() { format!("{}\n", context.json()) } else { context.plain() };
                        document_output(text, done.reply(), file.as_deref())
                    }
                };
            }
            Verb::Suspend { leaving, .. } => {
                branch::suspend(ctx, SuspendRequest { leaving: leaving.request(Abort::Allowed)? })?.into()
            }
            Verb::Complete { reference, leaving, .. } => {
                let leaving = leaving.request(Abort::Refused)?;
                branch::complete(ctx, CompleteBranchRequest { reference, leaving })?.into()
            }
            Verb::Recall { reference, thread, grep, out: file, .. } => {
                let found = branch::recall(ctx, RecallRequest { reference, thread, grep })?;
                let text = if out.is_json() { format!("{}\n", found.json()) } else { found.plain() };
                return document_output(text, found.reply(), file.as_deref());
            }
            Verb::Note { text, idempotency, .. } => {
                branch::note(ctx, NoteRequest { text: text_or_stdin(text)?, key: idempotency.key })?.into()
            }
            Verb::Decide { .. } => branch::decide(ctx)?.into(),
            Verb::Tell { to, text, idempotency, .. } => {
                branch::tell(ctx, TellRequest { to, text: text_or_stdin(text)?, key: idempotency.key })?.into()
            }
            Verb::Inbox { unread, limit, .. } => {
                branch::inbox(ctx, InboxRequest { only_unread: unread, limit })?.into()
            }
            Verb::Read { references, .. } => branch::read(ctx, ReadRequest { references })?.into(),
        })
    }
}

/// Whether a branch may be left without a summary, which aborts its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Abort {
    Allowed,
    Refused,
}

impl Abort {
    fn from_flag(abort: bool) -> Self {
        if abort { Abort::Allowed } else { Abort::Refused }
    }
}

impl LeavingArgs {
    /// Reads the texts and makes the request.
    fn request(self, abort: Abort) -> anyhow::Result<LeavingNote> {
        let summary = self.summary.map(text_or_stdin).transpose()?;
        let tail = self.tail.map(|file| read_text(None, Some(&file)).map(Option::unwrap_or_default)).transpose()?;
        Ok(LeavingNote { summary, tail, abort: abort == Abort::Allowed })
    }
}

/// A text from the command line, or from standard input if it is `-`; empty if there is none.
fn text_or_stdin(text: String) -> anyhow::Result<String> {
    Ok(read_text(Some(text), None)?.unwrap_or_default())
}

/// A document for standard output, or written to a file with only the reply left to print.
fn document_output(text: String, reply: Reply, file: Option<&Path>) -> anyhow::Result<Output> {
    match file {
        None => Ok(Output::document(text, reply)),
        Some(file) => {
            fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
            Ok(reply.with(Key::Path, file.display().to_string()).into())
        }
    }
}
