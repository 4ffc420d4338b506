//! hf-review: reviewers take turns until they agree.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Parser, Subcommand};

use super::args::{ActorArgs, GlobalArgs, WriteArgs, read_text, read_whole};
use super::main::has_subcommand;
use super::{Command, Output, StdoutWriter};
use crate::base::Error;
use crate::op::document::{self, ResolveRequest};
use crate::op::review::{self, FailsRequest, PromptRequest, RecordReviewRequest, RunReviewRequest};
use crate::op::Context;
use crate::policy::review::{document_hash, is_document};
use crate::reply::Replies;

/// Have a spec reviewed by several reviewers in rounds, until they agree
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-review prompt spec.md --reviewer gpt
  hf-review record --reviewer gpt --spec spec.md <reply.txt
  hf-review fails R-gpt-0001
  hf-review status

A reply consists of PASS: and FAIL: ... -> FIX: lines, up to 200 words. List marks, numbers, Markdown, case, headings \
and one line of prose before or after the items are ignored; what could be meant in two ways is refused.

A FAIL is open until the document has changed and the next reply does not repeat it: the same text before the arrow, \
without case, marks and list numbers. Each reply is one round, and there are four. The reviewers agree when all of them \
have replied and no FAIL is open. A reply recorded without --spec counts as one about an unchanged document: it closes \
no FAIL. A debate is about one document, by its path or its reference, and another one is refused. After a debate that ended with something to fix, only an operator can open another.

hf-review run exits 0 if the reviewers agree, 1 if a FAIL is open (NEXT:PATCH), and 3 if all rounds are used up. If they \
have agreed on the same document before, or a FAIL is open and the document is unchanged, it asks nobody. A reviewer whose reply cannot be read is asked once more, with \
a reminder of the format. No reviewer is run while everything is stopped or the project is paused; a stop, a timeout or \
the end of hf-review itself ends a running one with everything that it started, and one that has replied leaves nothing behind. Every reviewer needs a command before \
the first one is run. A reviewer runs with HF_AGENT set to its \
name and HF_RUN_ID to reviewers.NAME: it is an agent and cannot approve."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Print the prompt for a reviewer
    Prompt {
        /// The spec: a file, - for standard input, or a reference from hf-ref
        spec: PathBuf,
        /// The reviewer [default: the one whose turn it is]
        #[arg(long, value_name = "NAME")]
        reviewer: Option<String>,
    },
    /// Record the reply of a reviewer from standard input
    Record {
        /// The reviewer who replied
        #[arg(long, value_name = "NAME")]
        reviewer: String,
        /// The spec that the reply is about: a file, a reference from hf-ref, or sha256:HEX as hf-review prompt reports it
        #[arg(long, value_name = "SPEC")]
        spec: Option<PathBuf>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Show the FAIL lines of a reply
    Fails {
        /// The reply, such as R-gpt-0001 [default: the newest]
        reference: Option<String>,
    },
    /// Show whose turn it is, the round, and whether the reviewers agree
    Status,
    /// Run reviewers.NAME.command for each reviewer in turn, until there is something to fix or they agree
    Run {
        /// The spec: a file, - for standard input, or a reference from hf-ref
        spec: PathBuf,
        #[command(flatten)]
        actor: ActorArgs,
    },
    /// Start a new debate; only an operator can do this if the last one has open FAILs or is in progress, which ends it
    Open {
        #[command(flatten)]
        actor: ActorArgs,
    },
}

impl Command for Args {
    const NAME: &str = "hf-review";

    fn writes_document(matches: &ArgMatches) -> bool {
        has_subcommand(matches, &["prompt"])
    }

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Prompt { spec, reviewer } => {
                let spec = read_spec(ctx, &spec)?;
                let done = review::prompt(ctx, PromptRequest { spec, reviewer })?;
                Output::document(done.prompt.as_bytes(), done.reply())
            }
            Verb::Record { reviewer, spec, write } => {
                let document_sha256 = spec.as_ref().map(|spec| hash_of_spec(ctx, spec)).transpose()?;
                let document = spec.as_deref().and_then(name_of_spec);
                let reply = read_text(Some("-".to_owned()), None)?.unwrap_or_default();
                let request = RecordReviewRequest { reviewer, reply, document_sha256, document, key: write.key };
                review::record(ctx, request)?.into()
            }
            Verb::Fails { reference } => review::fails(ctx, FailsRequest { reference })?.into(),
            Verb::Status => review::status(ctx)?.into(),
            Verb::Run { spec, .. } => {
                let (document, spec) = (name_of_spec(&spec), read_spec(ctx, &spec)?);
                let on_terminal = std::io::stderr().is_terminal();
                let mut announce = |reviewer: &str| {
                    if on_terminal {
                        eprintln!("asking {reviewer} …");
                    }
                };
                review::run(ctx, RunReviewRequest { spec, document }, &mut announce)?.into()
            }
            Verb::Open { .. } => review::reopen(ctx)?.into(),
        })
    }
}

/// Reads a spec from standard input, from the file of a reference from hf-ref, or from a file.
fn read_spec(ctx: &Context, spec: &Path) -> anyhow::Result<String> {
    let text = match spec.to_str() {
        Some("-") => read_whole(None)?,
        Some(name) if !spec.exists() && document::parse_reference(name).is_some() => {
            let found = document::resolve(ctx, ResolveRequest { reference: name.to_owned() })?;
            read_whole(Some(&found.path))?
        }
        _ => read_whole(Some(spec))?,
    };
    match text.trim().is_empty() {
        true => Err(Error::usage("the spec is empty").into()),
        false => Ok(text),
    }
}

/// The absolute path of a spec, or its reference; none if it is known by its content alone.
fn name_of_spec(spec: &Path) -> Option<String> {
    match spec.to_str()? {
        "-" => None,
        name if name.starts_with("sha256:") => None,
        name if !spec.exists() => Some(name.to_owned()),
        _ => std::path::absolute(spec).ok()?.into_os_string().into_string().ok(),
    }
}

/// The SHA-256 of a spec, which may be given by it.
fn hash_of_spec(ctx: &Context, spec: &Path) -> anyhow::Result<String> {
    match spec.to_str().and_then(|name| name.strip_prefix("sha256:")) {
        Some(hash) if is_document(hash) => Ok(hash.to_owned()),
        Some(_) => Err(Error::usage("invalid hash; must be sha256: and 64 lower-case hex digits").into()),
        None if spec == Path::new("-") => Err(Error::usage("--spec cannot be -, which is the reply").into()),
        None => Ok(document_hash(&read_spec(ctx, spec)?)),
    }
}
