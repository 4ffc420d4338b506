//! hf-ref: files by short references that carry their hash.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};

use super::args::{Acting, Common};
use super::{Command, Out, Output};
use crate::op::Context;
use crate::op::document::{self, AddRequest, DocumentKind, ResolveRequest};

/// Name files by short references that no longer hold once the file has changed
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
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
        #[command(flatten)]
        acting: Acting,
    },
    /// Say where the file of a reference is, if it is still what was meant
    Resolve {
        /// Such as D0001@a13c
        reference: String,
    },
    /// Look whether every file is still what was meant
    Check,
}

impl Command for Args {
    const NAME: &str = "hf-ref";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Add { file, kind, .. } => {
                let kind = kind.as_deref().and_then(DocumentKind::parse);
                document::add(ctx, AddRequest { path: file, kind })?.into()
            }
            What::Resolve { reference } => document::resolve(ctx, ResolveRequest { reference })?.into(),
            What::Check => document::check(ctx)?.into(),
        })
    }
}
