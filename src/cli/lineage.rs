//! hf-lineage: why something is as it is, and what came of it.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{ArgMatches, Parser};

use super::args::Common;
use super::main::{flagged, to_file};
use super::{Command, Format, Out, Output};
use crate::op::{self, Context, LineageRequest};
use crate::reply::{Key, graph};

/// Ask why something is as it is (--up), and what came of it (--down)
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-lineage T-0001 --up            why does this task exist?
  hf-lineage REQ-0001 --down        what came of this requirement?
  hf-lineage T-0001 --mermaid       a graph for a Markdown page
  hf-lineage T-0001 --dot | dot -Tsvg > why.svg

The answer is NODE: and EDGE: lines; hf lineage on a terminal draws a tree."
)]
pub struct Args {
    /// An event's id, or an entity: its id, TYPE:ID, short reference, or the beginning of a ULID
    #[arg(value_name = "REF")]
    reference: String,
    /// Only causes
    #[arg(long, conflicts_with = "down")]
    up: bool,
    /// Only consequences
    #[arg(long)]
    down: bool,
    /// How many steps to go
    #[arg(long, value_name = "N", default_value_t = 100)]
    depth: usize,
    /// A graph for Graphviz
    #[arg(long, conflicts_with_all = ["mermaid", "tree"])]
    dot: bool,
    /// A graph for Mermaid
    #[arg(long, conflicts_with = "tree")]
    mermaid: bool,
    /// A tree of text
    #[arg(long)]
    tree: bool,
    /// Write the graph or tree to this file; the reply is then on standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

impl Command for Args {
    const NAME: &str = "hf-lineage";

    fn is_document(matches: &ArgMatches) -> bool {
        flagged(matches, &["dot", "mermaid", "tree"]) && !to_file(matches)
    }

    fn run(self, ctx: &Context, out: Out) -> anyhow::Result<Output> {
        let both = !self.up && !self.down;
        let (up, down) = (self.up || both, self.down || both);
        let request = LineageRequest { reference: self.reference, up, down, depth: self.depth };
        let found = op::lineage(ctx, request)?;
        let tree = self.tree || self.out.is_some() || out.format == Format::Table;
        let picture = match (self.dot, self.mermaid, tree) {
            (true, ..) => graph::dot(&found),
            (_, true, _) => graph::mermaid(&found),
            (_, _, true) => graph::tree(&found, out.screen.as_ref().filter(|_| !self.tree && self.out.is_none())),
            _ => return Ok(found.into()),
        };
        match self.out {
            None => Ok(Output::document(picture, found.brief())),
            Some(file) => {
                fs::write(&file, picture).with_context(|| format!("cannot write {}", file.display()))?;
                Ok(found.brief().with(Key::Path, file.display().to_string()).into())
            }
        }
    }
}
