//! hf-ref: files by short references that carry their hash.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use hiveforge::op::document::{self, DocumentKind, DocumentStanding, DocumentView};
use hiveforge::ui::{self, Acting, Common, Key, Report, Status};

/// Name files by short references that no longer hold once the file has changed
#[derive(Parser, Debug)]
#[command(
    name = "hf-ref",
    version,
    after_help = "Examples:
  hf-ref add spec.md --kind design
  hf-ref resolve D0001
  hf-ref check

D is a design, P a plan, X a patch, E a report. In D0001@a13c, a13c are the first four digits of the content's
hash. Adding a file again after a change keeps its number and gives it another hash."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    acting: Acting,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Give a file a reference, or a new hash after it was changed
    Add {
        /// The file
        file: PathBuf,
        /// What it is; else told from its folder and its ending, else a design
        #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(DocumentKind::ALL.iter().map(|k| k.as_str())))]
        kind: Option<String>,
    },
    /// Say where the file of a reference is, if it is still what was meant
    Resolve {
        /// Such as D0001@a13c
        reference: String,
    },
    /// Look whether every file is still what was meant
    Check,
}

hiveforge::cli!(Args, with acting);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        Ok(match args.what {
            What::Add { file, kind } => {
                let (done, view) = document::add(env, &file, kind.as_deref().and_then(DocumentKind::parse))?;
                let status = if done.duplicate { Status::Duplicate } else { Status::Recorded };
                let ids = done.ids.iter().map(ToString::to_string);
                about(status, &view).with_each(Key::EventId, ids).warn(done.warnings)
            }
            What::Resolve { reference } => about(Status::Ok, &document::resolve(env, &reference)?),
            What::Check => {
                let all = document::check(env)?;
                let wrong = all.iter().filter(|view| view.standing != DocumentStanding::Same).count();
                let status = if wrong == 0 { Status::Ok } else { Status::Failed };
                let line =
                    |view: &DocumentView| format!("{} {} {}", view.reference, view.standing, view.path.display());
                Report::new(status, format!("{} of {} references hold", all.len() - wrong, all.len()))
                    .with_each(Key::Document, all.iter().map(line))
            }
        }
        .into())
    })
}

fn about(status: Status, view: &DocumentView) -> Report {
    Report::new(status, format!("{} is {}", view.reference, view.path.display()))
        .with(Key::Ref, view.reference.as_str())
        .with(Key::Path, view.path.display().to_string())
        .with(Key::Sha256, view.sha256.as_str())
}
