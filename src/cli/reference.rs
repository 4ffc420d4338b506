//! hf-ref: short references to files that include their hash.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};

use super::args::{ActorArgs, GlobalArgs};
use super::{Command, Output, StdoutWriter};
use crate::op::Context;
use crate::op::document::{self, AddRequest, DocumentKind, ResolveRequest};

/// Give files short references that become invalid when the file changes
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-ref add spec.md --kind design
  hf-ref resolve D0001
  hf-ref check

D is a design, P a plan, X a patch, E a report. In D0001@a13c, a13c is the first four hex digits of the hash of the \
content. Adding a changed file again keeps its number and updates the hash."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Give a file a reference, or update the hash of a changed file
    Add {
        /// The file
        file: PathBuf,
        /// The kind of document [default: guessed from its directory and file extension, or design]
        #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(DocumentKind::ALL.iter().map(|k| k.as_str())))]
        kind: Option<String>,
        #[command(flatten)]
        actor: ActorArgs,
    },
    /// Print the path of a referenced file, if it has not changed
    Resolve {
        /// The reference, such as D0001 or D0001@a13c
        reference: String,
    },
    /// Check whether any referenced file has changed
    Check,
}

impl Command for Args {
    const NAME: &str = "hf-ref";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Add { file, kind, .. } => {
                let kind = kind.as_deref().and_then(DocumentKind::parse);
                document::add(ctx, AddRequest { path: file, kind })?.into()
            }
            Verb::Resolve { reference } => document::resolve(ctx, ResolveRequest { reference })?.into(),
            Verb::Check => document::check(ctx)?.into(),
        })
    }
}
