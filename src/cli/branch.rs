//! hf-branch: several activities with a shared memory.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{ArgMatches, Args as Arguments, Parser, Subcommand};

use super::args::{GlobalArgs, KeyArgs, PageArgs, read_text};
use super::main::{has_subcommand, has_flag, has_out_file};
use super::{Command, Output, StdoutWriter};
use crate::base::{EntityType, Error, limits};
use crate::op::branch::{
    self, BranchesRequest, CompleteBranchRequest, CreateRequest, InboxRequest, KnowRequest, KnownRequest, LeavingNote, NoteRequest, Interruptible,
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
  hf-branch know 'Parser' 'The new one is twice as fast'
  hf-branch list --working

A persona is an agent that works on one branch at a time and remembers all of them. Its root, the branch for talking \
with the user, is active while no other branch is. When you leave a branch you summarize its state; hf-branch resume \
gives you that summary back.

If messages, tasks or the end of your task take you away from a branch, every reply says so until you do something \
where you are: hf-branch suspend BR-0002 --summary TEXT keeps what you did there, hf-branch note --branch BR-0001 TEXT \
answers on your root. Until then a note that names no branch is not recorded, and a summary that names none is about the \
branch that you were on. A message is announced until you read or answer it.

What else happened to you, hf-branch decide lists as CHANGE until you do something on a branch; the reply to that repeats \
it.

The context that hf-branch resume prints answers ten questions, one under each heading. Every line of a conversation \
begins with its time and its speaker; you are called you. A heading without an answer is left out.
  You: who am I, and when is it?
  With the user: what did the user say last?
  On your other branches: what else is open, and how does it stand?
  Earlier on this branch: what did I do here before?
  Last time on this branch: what did I do here last, and what was noted since?
  The task: what is this branch for?
  Constraints on the work: what must I keep to?
  What you know: what did I write down about this?
  Now: which branch am I on, since when, and what was said on it?
  How to go on: how do I answer, leave and look back?"
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
        /// A branch that you had to leave, such as BR-0002, to summarize it now [default: the current one]
        reference: Option<String>,
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
        /// Only entries that contain this word, in any case and Unicode form
        #[arg(long, value_name = "WORD")]
        grep: Option<String>,
        /// Search all branches, everything you know, and what was left with your tasks and sessions
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        page: PageArgs,
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
        /// The branch: the current one, or your root to answer the user [default: the current one]
        #[arg(long, value_name = "REF")]
        branch: Option<String>,
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
    #[command(override_usage = "hf-branch tell [OPTIONS] TO TEXT\n       hf-branch tell [OPTIONS] --to NAME... TEXT")]
    Tell {
        /// The name of the agent; without it, use --to
        #[arg(value_name = "TO")]
        first: String,
        /// The message; - reads it from standard input
        #[arg(value_name = "TEXT")]
        second: Option<String>,
        /// An agent; can be given more than once
        #[arg(long = "to", value_name = "NAME")]
        others: Vec<String>,
        #[command(flatten)]
        idempotency: KeyArgs,
        /// The agent that sends the message [default: $HF_AGENT, or you]
        #[arg(id = "teller", long = "agent", value_name = "NAME")]
        teller: Option<String>,
    },
    /// Write down something to know on every branch, or read it; the same title again revises it
    Know {
        /// The title; to read, also a reference such as K-0001
        title: String,
        /// The text itself; - reads it from standard input, --file from a file. Without a text, prints what you know
        text: Option<String>,
        /// Read the text from this file
        #[arg(long, value_name = "FILE", conflicts_with = "text")]
        file: Option<PathBuf>,
        /// Print earlier revisions, too
        #[arg(long, conflicts_with_all = ["text", "file"])]
        history: bool,
        #[command(flatten)]
        idempotency: KeyArgs,
        #[command(flatten)]
        persona: PersonaArgs,
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
        let reads_knowledge = matches.subcommand().is_some_and(|(name, given)| {
            name == "know" && !given.contains_id("text") && !given.contains_id("file")
        });
        (has_subcommand(matches, &["resume", "recall"]) && !has_out_file(matches))
            || has_flag(matches, &["working"])
            || reads_knowledge
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
                let file = file.map(OutFile::open).transpose()?;
                let leaving = leaving.request(Abort::from_flag(abort))?;
                let done = branch::resume(ctx, ResumeBranchRequest { reference, words, leaving })?;
                return match (&done, file) {
                    (Interruptible::Interrupted { .. }, Some(_)) => Ok(done.into()),
                    (Interruptible::Interrupted { .. }, None) => Ok(Output::document(Vec::new(), done.reply())),
                    (Interruptible::Done(resumed), file) => {
                        let context = &resumed.context;
                        let text = if out.is_json() { format!("{}\n", context.json()) } else { context.plain() };
                        document_output(text, done.reply(), file)
                    }
                };
            }
            Verb::Suspend { reference, leaving, .. } => {
                branch::suspend(ctx, SuspendRequest { reference, leaving: leaving.request(Abort::Allowed)? })?.into()
            }
            Verb::Complete { reference, leaving, .. } => {
                let leaving = leaving.request(Abort::Refused)?;
                branch::complete(ctx, CompleteBranchRequest { reference, leaving })?.into()
            }
            Verb::Recall { reference, thread, grep, page, out: file, .. } => {
                let file = file.map(OutFile::open).transpose()?;
                let PageArgs { limit, cursor } = page;
                let found = branch::recall(ctx, RecallRequest { reference, thread, grep, limit, cursor })?;
                let text = if out.is_json() { format!("{}\n", found.json()) } else { found.plain() };
                return document_output(text, found.reply(), file);
            }
            Verb::Note { text, branch, idempotency, .. } => {
                branch::note(ctx, NoteRequest { text: text_or_stdin(text)?, branch, key: idempotency.key })?.into()
            }
            Verb::Decide { .. } => branch::decide(ctx)?.into(),
            Verb::Tell { first, second, others, idempotency, .. } => {
                let (to, text) = match (second, others.is_empty()) {
                    (Some(text), true) => (vec![first], text),
                    (None, false) => (others, first),
                    (None, true) => return Err(Error::usage("missing the message: hf-branch tell TO TEXT").into()),
                    (Some(_), false) => {
                        return Err(Error::usage("with --to, only the message follows: hf-branch tell --to NAME TEXT").into());
                    }
                };
                branch::tell(ctx, TellRequest { to, text: text_or_stdin(text)?, key: idempotency.key })?.into()
            }
            Verb::Know { title, text: None, file: None, history, .. } => {
                let done = branch::known(ctx, KnownRequest { title, history })?;
                let text = if out.is_json() { format!("{}\n", done.json()) } else { done.plain() };
                return document_output(text, done.reply(), None);
            }
            Verb::Know { title, text, file, idempotency, .. } => {
                let text = read_text(text, file.as_deref())?.unwrap_or_default();
                branch::know(ctx, KnowRequest { title, text, key: idempotency.key })?.into()
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

/// A file for a document, opened before anything is recorded: a path that cannot be written changes nothing.
struct OutFile {
    path: PathBuf,
    file: File,
    /// Whether it was created for this, and has nothing in it yet.
    is_new: bool,
}

impl OutFile {
    fn open(path: PathBuf) -> anyhow::Result<Self> {
        let is_new = !path.exists();
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|e| Error::system(format!("cannot write {}", path.display()), e))?;
        Ok(OutFile { path, file, is_new })
    }

    /// Writes the document in place of what the file has.
    fn write(mut self, text: &str) -> anyhow::Result<PathBuf> {
        self.is_new = false;
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(text.as_bytes()));
        written.with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(self.path.clone())
    }
}

impl Drop for OutFile {
    fn drop(&mut self) {
        if self.is_new {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A document for standard output, or written to a file with only the reply left to print.
fn document_output(text: String, reply: Reply, file: Option<OutFile>) -> anyhow::Result<Output> {
    match file {
        None => Ok(Output::document(text, reply)),
        Some(file) => {
            let path = file.write(&text)?;
            Ok(reply.with(Key::Path, path.display().to_string()).into())
        }
    }
}
