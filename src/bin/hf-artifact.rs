//! hf-artifact: what work brings forth.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use hiveforge::base::{EntityType, Error};
use hiveforge::event::kind::ARTIFACT_KINDS;
use hiveforge::op::artifact::{self, GetOutcome, PutRequest};
use hiveforge::op::{self, AppendOutcome, Env, ListRequest, Projection, project};
use hiveforge::ui::{self, Acting, Common, Key, Keyed, Next, Out, Output, Paged, Report, Status, outcome};

/// Store, read and judge what work brings forth
#[derive(Parser, Debug)]
#[command(
    name = "hf-artifact",
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
    keyed: Keyed,
    #[command(flatten)]
    acting: Acting,
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
    },
    /// Say that it was checked and is not good: its task is done anew
    Invalidate {
        /// The artifact
        reference: String,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
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

hiveforge::cli!(Args, with acting, documents &["get"]);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, out| {
        let key = args.keyed.key;
        let done = match args.what {
            What::Put { file, kind, task } => return put(env, &file, PutRequest { kind, task }, key),
            What::Get { reference, out: file } => return get(env, &reference, file.as_deref(), out),
            What::Show { reference } => {
                return Ok(outcome::shown(&op::show(env, &reference, EntityType::Artifact)?).into());
            }
            What::Validate { reference } => artifact::validate(env, &reference, key)?,
            What::Invalidate { reference, reason } => artifact::invalidate(env, &reference, &reason, key)?,
            What::List { task, paged } => {
                let plain = task.is_none();
                let request = ListRequest {
                    made_for: task.map(|reference| (reference, EntityType::Task)),
                    limit: paged.limit,
                    cursor: paged.cursor,
                    ..ListRequest::of(Projection::Of(EntityType::Artifact))
                };
                let next = Next::run("hf-artifact").word("list").arg("--limit", &paged.limit);
                let next = if plain { next } else { Next::None };
                let done = project::list(env, &request)?;
                return Ok(outcome::listed(&done, EntityType::Artifact.plural(), next).into());
            }
        };
        Ok(outcome::recorded(&done).into())
    })
}

fn put(env: &Env, file: &Path, request: PutRequest, key: Option<String>) -> anyhow::Result<Output> {
    let done = if file == Path::new("-") {
        artifact::put(env, &mut io::stdin().lock(), None, None, request, key)?
    } else {
        let wrong = |e: io::Error| Error::usage(format!("cannot read {}: {e}", file.display()));
        let mut opened = File::open(file).map_err(wrong)?;
        let about = opened.metadata().map_err(wrong)?;
        if about.is_dir() {
            return Err(Error::usage(format!("{} is a folder: store a file", file.display())).into());
        }
        // A file that the kernel makes up as it is read has no size.
        let size = Some(about.len()).filter(|size| about.is_file() && *size > 0);
        artifact::put(env, &mut opened as &mut dyn Read, Some(file), size, request, key)?
    };
    Ok(stored(&done).into())
}

fn stored(done: &AppendOutcome) -> Report {
    let status = if done.duplicate { Status::Duplicate } else { Status::Stored };
    with_content(outcome::as_status(status, done), done.entity.as_ref())
}

fn with_content(report: Report, entity: Option<&hiveforge::state::Entity>) -> Report {
    report
        .with_some(Key::Sha256, entity.and_then(|e| e.text("sha256")))
        .with_some(Key::SizeBytes, entity.map(|e| e.count("size_bytes")))
        .with_some(Key::Path, entity.and_then(|e| e.text("path")))
}

fn get(env: &Env, reference: &str, file: Option<&Path>, out: Out) -> anyhow::Result<Output> {
    let mut done = artifact::get(env, reference)?;
    match file {
        Some(file) => {
            write_file(&mut done, file)?;
            Ok(with_content(Report::new(Status::Ok, outcome::sentence(&done.entity)), Some(&done.entity)).into())
        }
        None => {
            // A reader that went away wants no more; what is left need not be read.
            done.write(&mut |piece| out.write(piece).map(drop))?;
            let report = with_content(Report::new(Status::Ok, outcome::sentence(&done.entity)), Some(&done.entity));
            Ok(Output::Document(Vec::new(), report))
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
