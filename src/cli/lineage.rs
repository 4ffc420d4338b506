//! hf-lineage: causes and consequences.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{ArgMatches, Parser};

use super::args::GlobalArgs;
use super::main::{has_flag, has_out_file};
use super::{Command, Format, Output, StdoutWriter};
use crate::op::{self, Context, LineageRequest};
use crate::reply::{Key, graph};

/// Show the causes (--up) and consequences (--down) of an event or entity
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-lineage T-0001 --up            why does this task exist?
  hf-lineage REQ-0001 --down        what did this requirement lead to?
  hf-lineage T-0001 --mermaid       a graph for a Markdown page
  hf-lineage T-0001 --dot | dot -Tsvg > why.svg

The reply has NODE: and EDGE: lines. On a terminal, hf lineage draws a tree."
)]
pub struct Args {
    /// An event id, or an entity: its id, TYPE:ID, a reference such as T-0001, or the start of a ULID
    #[arg(value_name = "REF")]
    reference: String,
    /// Show only causes
    #[arg(long, conflicts_with = "down")]
    up: bool,
    /// Show only consequences
    #[arg(long)]
    down: bool,
    /// Follow up to N links from the start
    #[arg(long, value_name = "N", default_value_t = 100)]
    depth: usize,
    /// Print a graph in the DOT language of Graphviz
    #[arg(long, conflicts_with_all = ["mermaid", "tree"])]
    dot: bool,
    /// Print a Mermaid graph
    #[arg(long, conflicts_with = "tree")]
    mermaid: bool,
    /// Print a text tree
    #[arg(long)]
    tree: bool,
    /// Write the graph or tree to this file, and the reply to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-lineage";

    fn writes_document(matches: &ArgMatches) -> bool {
        has_flag(matches, &["dot", "mermaid", "tree"]) && !has_out_file(matches)
    }

    fn run(self, ctx: &Context, out: StdoutWriter) -> anyhow::Result<Output> {
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
