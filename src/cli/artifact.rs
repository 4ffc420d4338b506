//! hf-artifact: the files that tasks produce.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Parser, Subcommand};
use rustix::fs::{OFlags, makedev};

use super::args::{GlobalArgs, PageArgs, WriteArgs};
use super::main::{has_subcommand, has_out_file};
use super::{Command, Output, StdoutWriter};
use crate::base::{EntityType, Error};
use crate::event::kind::ARTIFACT_KINDS;
use crate::op::artifact::{
    self, DeclareRequest, GetOutcome, GetRequest, InvalidateRequest, PutRequest, RepairRequest, ValidateRequest,
};
use crate::op::{self, Context, ListRequest, ShowRequest, project};
use crate::reply::Replies;
use crate::vault::check_size;

/// Store, read and validate the files that tasks produce
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-artifact put form.py --for T-0001
  hf-artifact declare spec.md --for T-0001
  hf-artifact put spec.md --declared ART-0003
  hf-artifact get ART-0001 > form.py
  hf-artifact validate ART-0001
  hf-artifact invalidate ART-0002 --reason 'The tests fail'
  hf-artifact list

The hash is checked on every read; get fails with exit code 4 if the stored file is damaged. The manifest beside it \
follows from the log: get and hf-verify --artifacts compare the two, and repair writes the manifest again and moves \
the wrong one to Akashic/quarantine/."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Store a file
    Put {
        /// The file to store; - reads standard input
        file: PathBuf,
        /// The kind of content [default: guessed from its name and content]
        #[arg(long, value_name = "KIND", value_parser = clap::builder::PossibleValuesParser::new(ARTIFACT_KINDS))]
        kind: Option<String>,
        /// The task that produced the file, such as T-0001
        #[arg(long = "for", value_name = "REF")]
        task: Option<String>,
        /// The artifact that was declared for this file, such as ART-0001 [default: a new one]
        #[arg(long, value_name = "REF", conflicts_with_all = ["kind", "task"])]
        declared: Option<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Declare an artifact that does not exist yet; put --declared stores it
    Declare {
        /// The name of the file, such as form.py
        name: String,
        /// The kind of content [default: guessed from the name]
        #[arg(long, value_name = "KIND", value_parser = clap::builder::PossibleValuesParser::new(ARTIFACT_KINDS))]
        kind: Option<String>,
        /// The task that will produce the file, such as T-0001
        #[arg(long = "for", value_name = "REF")]
        task: Option<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Write a stored file to standard output, or to another file
    Get {
        /// The artifact, such as ART-0001
        reference: String,
        /// Write to this file instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Show what is recorded about an artifact
    Show {
        /// The artifact, such as ART-0001
        reference: String,
    },
    /// Restore the manifest of an artifact from the log, if it is missing or wrong
    Repair {
        /// The artifact, such as ART-0001
        reference: String,
    },
    /// Mark an artifact as checked and valid
    Validate {
        /// The artifact, such as ART-0001
        reference: String,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Mark an artifact as checked and invalid; its task has to be redone
    Invalidate {
        /// The artifact, such as ART-0001
        reference: String,
        /// Why it is invalid
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// List artifacts
    List {
        /// Only artifacts of this task
        #[arg(long = "for", value_name = "REF")]
        task: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
}

impl Command for Args {
    const NAME: &str = "hf-artifact";

    fn writes_document(matches: &ArgMatches) -> bool {
        has_subcommand(matches, &["get"]) && !has_out_file(matches)
    }

    fn run(self, ctx: &Context, out: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Put { file, kind, task, declared, write } => {
                return put(ctx, &file, PutRequest { kind, task, declared, key: write.key, ..PutRequest::default() });
            }
            Verb::Declare { name, kind, task, write } => {
                artifact::declare(ctx, DeclareRequest { name, kind, task, key: write.key })?.into()
            }
            Verb::Get { reference, out: file } => return get(ctx, GetRequest { reference }, file.as_deref(), out),
            Verb::Show { reference } => op::show(ctx, ShowRequest { reference, wanted: &[EntityType::Artifact] })?.into(),
            Verb::Repair { reference } => artifact::repair(ctx, RepairRequest { reference })?.into(),
            Verb::Validate { reference, write } => {
                artifact::validate(ctx, ValidateRequest { reference, key: write.key })?.into()
            }
            Verb::Invalidate { reference, reason, write } => {
                artifact::invalidate(ctx, InvalidateRequest { reference, reason, key: write.key })?.into()
            }
            Verb::List { task, page } => {
                let made_for = task.map(|reference| (reference, EntityType::Task));
                let request = ListRequest { made_for, ..page.list_request(EntityType::Artifact, Vec::new()) };
                project::list(ctx, request)?.into()
            }
        })
    }
}

/// Stores a file, or standard input if it is `-`.
fn put(ctx: &Context, file: &Path, request: PutRequest) -> anyhow::Result<Output> {
    if file == Path::new("-") {
        return Ok(artifact::put(ctx, request, &mut io::stdin().lock())?.into());
    }
    let unreadable = |e: io::Error| Error::usage(format!("cannot read {}: {e}", file.display()));
    // Opening a pipe that nobody writes to would block, and a device has no end.
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let mut opened = File::options().read(true).custom_flags(nonblocking).open(file).map_err(unreadable)?;
    let metadata = opened.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(Error::usage(format!("{} is a directory; only files can be stored", file.display())).into());
    }
    // The null device is the one with an end.
    let is_null = metadata.file_type().is_char_device() && metadata.rdev() == makedev(1, 3);
    if !metadata.is_file() && !is_null {
        let why = format!("{} is not a regular file; to store the output of a program, pipe it and use -", file.display());
        return Err(Error::usage(why).into());
    }
    check_size(metadata.len())?;
    // Files such as those in /proc have size 0 and still have content; their size is unknown.
    let size_bytes = Some(metadata.len()).filter(|size| *size > 0);
    let request = PutRequest { name: Some(file.to_owned()), size_bytes, ..request };
    Ok(artifact::put(ctx, request, &mut opened)?.into())
}

/// Writes a stored file to standard output, or to a file.
fn get(ctx: &Context, request: GetRequest, file: Option<&Path>, out: StdoutWriter) -> anyhow::Result<Output> {
    let mut done = artifact::get(ctx, request)?;
    match file {
        Some(file) => {
            write_file(&mut done, file)?;
            Ok(done.into())
        }
        None => {
            // A closed pipe is not an error; the rest is read and dropped.
            done.write(&mut |piece| out.document(piece).map(drop))?;
            Ok(Output::document(Vec::new(), done.reply()))
        }
    }
}

/// Writes to a temporary file in the same directory and renames it, so that the file is never incomplete.
fn write_file(done: &mut GetOutcome, file: &Path) -> anyhow::Result<()> {
    use std::io::Write;
    let failed = |e: io::Error| Error::system(format!("cannot write {}", file.display()), e);
    let mut name = file.file_name().ok_or_else(|| Error::usage("--out needs a file name"))?.to_owned();
    name.push(".tmp");
    let temporary = file.with_file_name(name);
    let mut opened = File::create(&temporary).map_err(failed)?;
    let written = done.write(&mut |piece| opened.write_all(piece).map_err(failed));
    let renamed = written.and_then(|()| std::fs::rename(&temporary, file).map_err(failed));
    if renamed.is_err() {
        // Report the first error, not a failure to clean up.
        let _ = std::fs::remove_file(&temporary);
    }
    Ok(renamed?)
}
