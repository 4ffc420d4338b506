//! hf-artifact: what work brings forth.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Parser, Subcommand};

use super::args::{Common, Paged, Recording};
use super::main::{called, to_file};
use super::{Command, Out, Output};
use crate::base::{EntityType, Error};
use crate::event::kind::ARTIFACT_KINDS;
use crate::op::artifact::{self, GetOutcome, GetRequest, InvalidateRequest, PutRequest, ValidateRequest};
use crate::op::{self, Context, ListRequest, ShowRequest, project};
use crate::reply::Replies;

/// Store, read and judge what work brings forth
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-artifact put form.py --for T-0001
  hf-artifact get ART-0001 > form.py
  hf-artifact validate ART-0001
  hf-artifact invalidate ART-0002 --reason 'The tests fail'
  hf-artifact list

A content is checked on every read; one that is damaged is never given out (exit 4)."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Store a content
    Put {
        /// The file; - reads standard input
        file: PathBuf,
        /// What it is: code, text, binary, prompt or response; else told from its name and content
        #[arg(long, value_name = "KIND", value_parser = clap::builder::PossibleValuesParser::new(ARTIFACT_KINDS))]
        kind: Option<String>,
        /// The task that made it
        #[arg(long = "for", value_name = "REF")]
        task: Option<String>,
        #[command(flatten)]
        recording: Recording,
    },
    /// Write a content to standard output, or to a file
    Get {
        /// The artifact
        reference: String,
        /// Write it to this file instead
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Show one
    Show {
        /// The artifact
        reference: String,
    },
    /// Say that it was checked and is good
    Validate {
        /// The artifact
        reference: String,
        #[command(flatten)]
        recording: Recording,
    },
    /// Say that it was checked and is not good: its task is done anew
    Invalidate {
        /// The artifact
        reference: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        recording: Recording,
    },
    /// List artifacts
    List {
        /// Only those of this task
        #[arg(long = "for", value_name = "REF")]
        task: Option<String>,
        #[command(flatten)]
        paged: Paged,
    },
}

impl Command for Args {
    const NAME: &str = "hf-artifact";

    fn is_document(matches: &ArgMatches) -> bool {
        called(matches, &["get"]) && !to_file(matches)
    }

    fn run(self, ctx: &Context, out: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Put { file, kind, task, recording } => {
                return put(ctx, &file, PutRequest { kind, task, key: recording.key, ..PutRequest::default() });
            }
            What::Get { reference, out: file } => return get(ctx, GetRequest { reference }, file.as_deref(), out),
            What::Show { reference } => op::show(ctx, ShowRequest { reference, wanted: EntityType::Artifact })?.into(),
            What::Validate { reference, recording } => {
                artifact::validate(ctx, ValidateRequest { reference, key: recording.key })?.into()
            }
            What::Invalidate { reference, reason, recording } => {
                artifact::invalidate(ctx, InvalidateRequest { reference, reason, key: recording.key })?.into()
            }
            What::List { task, paged } => {
                let made_for = task.map(|reference| (reference, EntityType::Task));
                let request = ListRequest { made_for, ..paged.of(EntityType::Artifact, Vec::new()) };
                project::list(ctx, request)?.into()
            }
        })
    }
}

fn put(ctx: &Context, file: &Path, request: PutRequest) -> anyhow::Result<Output> {
    if file == Path::new("-") {
        return Ok(artifact::put(ctx, request, &mut io::stdin().lock())?.into());
    }
    let wrong = |e: io::Error| Error::usage(format!("cannot read {}: {e}", file.display()));
    let mut opened = File::open(file).map_err(wrong)?;
    let about = opened.metadata().map_err(wrong)?;
    if about.is_dir() {
        return Err(Error::usage(format!("{} is a folder: store a file", file.display())).into());
    }
    // A file that the kernel makes up as it is read has no size.
    let size_bytes = Some(about.len()).filter(|size| about.is_file() && *size > 0);
    let request = PutRequest { name: Some(file.to_owned()), size_bytes, ..request };
    Ok(artifact::put(ctx, request, &mut opened)?.into())
}

fn get(ctx: &Context, request: GetRequest, file: Option<&Path>, out: Out) -> anyhow::Result<Output> {
    let mut done = artifact::get(ctx, request)?;
    match file {
        Some(file) => {
            write_file(&mut done, file)?;
            Ok(done.into())
        }
        None => {
            // A reader that went away wants no more; what is left need not be read.
            done.write(&mut |piece| out.write(piece).map(drop))?;
            Ok(Output::document(Vec::new(), done.reply()))
        }
    }
}

/// Writes the content beside its place first, so that what is there is always whole.
fn write_file(done: &mut GetOutcome, file: &Path) -> anyhow::Result<()> {
    use std::io::Write;
    let failed = |e: io::Error| Error::system(format!("cannot write {}", file.display()), e);
    let mut name = file.file_name().ok_or_else(|| Error::usage("--out needs a file name"))?.to_owned();
    name.push(".tmp");
    let beside = file.with_file_name(name);
    let mut opened = File::create(&beside).map_err(failed)?;
    let written = done.write(&mut |piece| opened.write_all(piece).map_err(failed));
    let renamed = written.and_then(|()| std::fs::rename(&beside, file).map_err(failed));
    if renamed.is_err() {
        // The error that matters is the first one.
        let _ = std::fs::remove_file(&beside);
    }
    Ok(renamed?)
}
