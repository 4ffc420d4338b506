//! hf-lineage: why something is as it is, and what came of it.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use hiveforge::op::{self, LineageOutcome, LineageRequest};
use hiveforge::ui::{self, Common, Key, Output, Report, Status, graph, show};

/// Ask why something is as it is (--up), and what came of it (--down)
#[derive(Parser, Debug)]
#[command(
    name = "hf-lineage",
    version,
    after_help = "Examples:
  hf-lineage T-0001 --up            why does this task exist?
  hf-lineage REQ-0001 --down        what came of this requirement?
  hf-lineage T-0001 --mermaid       a graph for a Markdown page
  hf-lineage T-0001 --dot | dot -Tsvg > why.svg

On a terminal the answer is a tree; in a pipe it is NODE: and EDGE: lines."
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

hiveforge::cli!(Args, documents & ["--dot", "--mermaid", "--tree"]);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, out| {
        let both = !args.up && !args.down;
        let (up, down) = (args.up || both, args.down || both);
        let request = LineageRequest { reference: args.reference, up, down, depth: args.depth };
        let found = op::lineage(env, &request)?;
        let report = report(&found);
        let tree = args.tree || args.out.is_some() || (ui::on_terminal() && !out.json);
        let picture = match (args.dot, args.mermaid, tree) {
            (true, ..) => graph::dot(&found),
            (_, true, _) => graph::mermaid(&found),
            (_, _, true) => graph::tree(&found),
            _ => return Ok(with_graph(report, &found).into()),
        };
        match args.out {
            None => Ok(Output::Document(picture.into_bytes(), report)),
            Some(file) => {
                fs::write(&file, picture).with_context(|| format!("cannot write {}", file.display()))?;
                Ok(report.with(Key::Path, file.display().to_string()).into())
            }
        }
    })
}

fn report(found: &LineageOutcome) -> Report {
    Report::new(Status::Ok, format!("{} events, {} links", found.nodes.len(), found.edges.len()))
        .with(Key::Root, found.root.to_string())
        .with(Key::Count, found.nodes.len() as u64)
        .with(Key::Truncated, if found.truncated { "yes" } else { "no" })
}

fn with_graph(report: Report, found: &LineageOutcome) -> Report {
    report
        .with_each(Key::Node, found.nodes.iter().map(|node| format!("{} {}", node.distance, show::event(&node.event))))
        .with_each(Key::Edge, found.edges.iter().map(|(cause, consequence)| format!("{cause} {consequence}")))
}
