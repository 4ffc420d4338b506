//! hf-branch: many activities, one mind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args as Arguments, Parser, Subcommand};
use hiveforge::base::{EntityType, limits, text};
use hiveforge::op::branch::{self, CreateRequest, Leaving, Outcome, RecallRequest, Told, WORDS_DEFAULT};
use hiveforge::op::{self, Env, Listed, project};
use hiveforge::state::Entity;
use hiveforge::ui::{self, Cli, Common, Key, Keyed, Next, Out, Output, Paged, Report, Status, outcome};

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
        match args.what {
            What::Create { label, branch_type, task, partner, left, abort, keyed } => {
                let leaving = leaving(left, abort)?;
                let request = CreateRequest { label, branch_type, task, partner, leaving };
                match branch::create(env, request, keyed.key)? {
                    Outcome::Interrupted { left } => Ok(interrupted(&left, named).into()),
                    Outcome::Done(done) => {
                        let social = done.entity.as_ref().filter(|b| b.text("branch_type") == Some("social"));
                        let next = social.map_or(Next::None, |b| outcome::next_about("hf-branch", "resume", b));
                        Ok(outcome::recorded(&done).next(next.of_agent(named)).into())
                    }
                }
            }
            What::List { working: true, .. } => working(env),
            What::List { status, paged, .. } => list(env, status.as_deref(), paged, named),
            What::Show { reference } => Ok(outcome::shown(&op::show(env, &reference, EntityType::Branch)?).into()),
            What::Resume { reference, left, abort, words, out: file } => {
                resume(env, &reference, &leaving(left, abort)?, words, file.as_deref(), out, named)
            }
            What::Suspend { left } => {
                let done = branch::suspend(env, &leaving(left, true)?)?;
                Ok(outcome::recorded(&done).into())
            }
            What::Complete { reference, left } => {
                let done = branch::complete(env, reference.as_deref(), leaving(left, false)?)?;
                Ok(outcome::recorded(&done).into())
            }
            What::Recall { reference, thread, grep, out: file, .. } => {
                let found = branch::recall(env, &RecallRequest { reference, thread, grep })?;
                let report = Report::new(Status::Ok, format!("{} threads, {} messages", found.threads, found.messages));
                let text = if out.json { format!("{}\n", found.json()) } else { found.plain() };
                document(text, report.with(Key::Count, found.messages as u64), file.as_deref())
            }
            What::Note { text, keyed } => {
                let done = branch::note(env, &whole(text)?, keyed.key)?;
                let next = if done.interrupted { inbox(named) } else { Next::None };
                Ok(outcome::recorded(&done.recorded).next(next).with_each(Key::Branch, [line(&done.branch)]).into())
            }
            What::Decide => decide(env, named),
            What::Tell { to, text, keyed } => {
                Ok(outcome::recorded(&branch::tell(env, &to, &whole(text)?, keyed.key)?).into())
            }
            What::Inbox { unread, limit } => {
                let done = branch::inbox(env, unread, limit)?;
                let next =
                    if done.unread > 0 { Next::run("hf-branch").word("read").of_agent(named) } else { Next::None };
                Ok(Report::new(Status::Ok, format!("{} messages, {} unread", done.messages.len(), done.unread))
                    .next(next)
                    .with(Key::Count, done.messages.len() as u64)
                    .with(Key::HasMore, if done.more { "yes" } else { "no" })
                    .with(Key::Unread, done.unread)
                    .with_each(Key::Message, done.messages.iter().map(|told| message(told, true)))
                    .into())
            }
            What::Read { references } => Ok(match branch::read(env, &references)? {
                None => Report::new(Status::Duplicate, "nothing is unread").with(Key::Unread, 0),
                Some(done) => outcome::recorded(&done.recorded)
                    .with(Key::Unread, done.unread)
                    .with_each(Key::Message, done.messages.iter().map(|told| message(told, false))),
            }
            .into()),
        }
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

fn inbox(named: Option<&str>) -> Next {
    Next::run("hf-branch").word("inbox --unread").of_agent(named)
}

/// `BR-0002 free Active 2026-01-31T12:00:00Z A walk round the lake`.
fn line(branch: &Entity) -> String {
    let fact = |name: &str| branch.text(name).unwrap_or("-");
    format!("{} {} {} {} {}", branch.name(), fact("branch_type"), branch.state, fact("last_activity"), fact("label"))
}

/// `MSG-0001 Unread 2026-01-31T12:00:00Z user:jo How far are you?`; in a list, not all of a long one.
fn message(told: &Told, listed: bool) -> String {
    let fact = |name: &str| told.message.text(name).unwrap_or("-");
    let said = if listed { text::cut(&told.text, limits::BLOCK_LINE_MAX_CHARS) } else { told.text.clone() };
    format!("{} {} {} {} {said}", told.message.name(), told.message.state, fact("sent_at"), fact("from"))
}

fn interrupted(left: &Entity, named: Option<&str>) -> Report {
    let sum = format!("somebody told you something: {} is left, and the root is active", left.name());
    Report::new(Status::Interrupted, sum).next(inbox(named))
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

fn working(env: &Env) -> anyhow::Result<Output> {
    let (memory, count) = branch::working(env)?;
    let report = Report::new(Status::Ok, format!("{count} branches")).with(Key::Count, count as u64);
    document(format!("{memory}\n"), report, None)
}

fn list(env: &Env, status: Option<&str>, paged: Paged, named: Option<&str>) -> anyhow::Result<Output> {
    let state = status.map(project::parse_status).transpose()?;
    let states: Vec<_> = state.into_iter().collect();
    let done = branch::branches(env, &states, paged.limit, paged.cursor.as_deref())?;
    let mut next = Next::run("hf-branch").word("list").arg("--limit", &paged.limit).of_agent(named);
    if let Some(state) = state {
        next = next.word("--status").word(state.as_str());
    }
    let lines = done.page.entries.iter().filter_map(|entry| match entry {
        Listed::Entity(branch) => Some(line(branch)),
        Listed::Key(..) => None,
    });
    let report = outcome::page(&done.page, EntityType::Branch.plural(), next);
    Ok(report.with_some(Key::Active, done.active.as_ref().map(line)).with_each(Key::Branch, lines).into())
}

fn resume(
    env: &Env,
    reference: &str,
    leaving: &Leaving,
    words: usize,
    file: Option<&Path>,
    out: Out,
    named: Option<&str>,
) -> anyhow::Result<Output> {
    let done = match branch::resume(env, reference, words, leaving)? {
        Outcome::Interrupted { left } => {
            let report = interrupted(&left, named);
            return Ok(if file.is_some() { report.into() } else { Output::Document(Vec::new(), report) });
        }
        Outcome::Done(done) => done,
    };
    let status = if done.recorded.duplicate { Status::Duplicate } else { Status::Resumed };
    let thread = done.thread.as_ref().map(|thread| format!("{} {}", thread.name(), thread.count("number")));
    let report = Report::new(status, outcome::sentence(&done.branch))
        .with_each(Key::EventId, done.recorded.ids.iter().map(ToString::to_string))
        .with(Key::Subject, done.branch.subject.to_string())
        .with_some(Key::Ref, done.branch.reference().map(|reference| reference.to_string()))
        .with(Key::State, done.branch.state.as_str())
        .with_some(Key::Thread, thread)
        .with(Key::Words, done.context.words() as u64)
        .with(Key::LeftOut, done.context.left_out as u64)
        .warn(done.recorded.warnings.clone());
    let text = if out.json { format!("{}\n", done.context.json()) } else { done.context.plain() };
    document(text, report, file)
}

fn decide(env: &Env, named: Option<&str>) -> anyhow::Result<Output> {
    let done = branch::decide(env)?;
    let (choices, sum): (&[&str], String) = match (done.unread.len(), done.candidates.len()) {
        (0, 0) => (&["CREATE", "WAIT"], "nothing waits for you".to_owned()),
        (0, waiting) => (&["RESUME"], format!("{waiting} branches wait for you")),
        (unread, _) => (&["REACT"], format!("{unread} messages are unread")),
    };
    let next = if done.unread.is_empty() { Next::None } else { inbox(named) };
    let candidate = |(branch, waited): &(Entity, u64)| {
        let fact = |name: &str| branch.text(name).unwrap_or("-");
        format!("{} {} {waited} {}", branch.name(), fact("branch_type"), fact("label"))
    };
    Ok(Report::new(Status::Ok, sum)
        .next(next)
        .with_some(Key::Active, done.active.as_ref().map(line))
        .with_each(Key::Choice, choices.iter().copied())
        .with_each(Key::Message, done.unread.iter().map(|told| message(told, true)))
        .with_each(Key::Candidate, done.candidates.iter().map(candidate))
        .into())
}
