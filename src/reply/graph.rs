//! A causal graph as DOT, Mermaid or a text tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::base::{Ulid, text};
use crate::event::kind;
use crate::op::{LineageOutcome, Node};
use crate::reply::table::{self, Screen};

/// The label of a node: type and subject, and the short text below. Everything is escaped: an event of an unknown
/// type can have any text as its type and subject.
fn label(node: &Node) -> (String, Option<String>) {
    let event = &node.event;
    (
        text::escape(&format!("{} {}", event.event_type.as_str(), event.subject)),
        kind::headline(&event.payload).map(|t| text::escape(&t)),
    )
}

/// Graphviz. Labels are quoted strings, in which only `"` and `\` are special.
pub fn dot(graph: &LineageOutcome) -> String {
    let quote = |s: &str| s.replace('\\', "\\\\").replace('"', "\\\"");
    let mut out = String::from("digraph lineage {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for node in &graph.nodes {
        let (title, detail) = label(node);
        let mut text = quote(&title);
        if let Some(detail) = detail {
            text += &format!("\\n{}", quote(&detail));
        }
        let root = if graph.root == node.event.id { ", style=bold" } else { "" };
        writeln!(out, "  \"{}\" [label=\"{text}\"{root}];", node.event.id).expect("writing to a string cannot fail");
    }
    for (cause, consequence) in &graph.edges {
        writeln!(out, "  \"{cause}\" -> \"{consequence}\";").expect("writing to a string cannot fail");
    }
    out + "}\n"
}

/// Mermaid. Characters that are special in Mermaid or HTML become entity codes.
pub fn mermaid(graph: &LineageOutcome) -> String {
    let quote = |s: &str| -> String {
        s.chars()
            .map(|c| match c {
                '"' | '#' | '<' | '>' | '&' | '`' | '\\' | ';' | '{' | '}' | '[' | ']' | '(' | ')' | '|' => {
                    format!("#{};", c as u32)
                }
                c => c.to_string(),
            })
            .collect()
    };
    let mut out = String::from("flowchart TD\n");
    for node in &graph.nodes {
        let (title, detail) = label(node);
        let detail = detail.map(|d| format!("<br/>{}", quote(&d))).unwrap_or_default();
        writeln!(out, "  {}[\"{}{detail}\"]", node.event.id, quote(&title)).expect("writing to a string cannot fail");
    }
    for (cause, consequence) in &graph.edges {
        writeln!(out, "  {cause} --> {consequence}").expect("writing to a string cannot fail");
    }
    writeln!(out, "  style {} stroke-width:3px", graph.root).expect("writing to a string cannot fail");
    out
}

/// A text tree: the event, its causes and its consequences. On a screen subjects are short references, times are
/// relative, and lines are cut to the width of the screen.
pub fn tree(graph: &LineageOutcome, screen: Option<&Screen>) -> String {
    let line = |node: &Node| match screen {
        None => full_line(node),
        Some(screen) => short_line(graph, node, screen),
    };
    let drawn = draw(graph, &line);
    match screen {
        None => drawn,
        Some(screen) => drawn.lines().map(|line| table::cut(line, screen.width()) + "\n").collect(),
    }
}

fn draw(graph: &LineageOutcome, line: &dyn Fn(&Node) -> String) -> String {
    let nodes: BTreeMap<Ulid, &Node> = graph.nodes.iter().map(|node| (node.event.id, node)).collect();
    let causes = |id: Ulid| graph.edges.iter().filter(|e| e.1 == id && nodes[&e.0].distance < 0).map(|e| e.0).collect();
    let consequences =
        |id: Ulid| graph.edges.iter().filter(|e| e.0 == id && nodes[&e.1].distance > 0).map(|e| e.1).collect();
    let mut out = nodes.get(&graph.root).map_or(String::new(), |node| line(node) + "\n");
    let mut writer = TreeWriter { out: &mut out, nodes: &nodes, line, seen: BTreeSet::from([graph.root]) };
    writer.branch(graph.root, "because of", "", &causes);
    writer.seen = BTreeSet::from([graph.root]);
    writer.branch(graph.root, "led to", "", &consequences);
    if graph.truncated {
        out += "… more events left out; use a greater --depth\n";
    }
    out
}

fn full_line(node: &Node) -> String {
    let (title, detail) = label(node);
    let detail = detail.map(|d| format!("  {d}")).unwrap_or_default();
    format!("{title}{detail}  ({}, {})", text::escape(&node.event.actor), node.event.timestamp)
}

fn short_line(graph: &LineageOutcome, node: &Node, screen: &Screen) -> String {
    let event = &node.event;
    let subject = graph.references.get(&event.subject).cloned().unwrap_or_else(|| table::short(&event.subject));
    let detail = kind::headline(&event.payload).map(|text| format!("  {text}")).unwrap_or_default();
    let when = table::relative(event.timestamp, screen.now);
    text::escape(&format!("{} {subject}{detail}  ({}, {when})", event.event_type.as_str(), event.actor))
}

/// Writes the branches of a tree.
struct TreeWriter<'a> {
    out: &'a mut String,
    nodes: &'a BTreeMap<Ulid, &'a Node>,
    line: &'a dyn Fn(&Node) -> String,
    seen: BTreeSet<Ulid>,
}

impl TreeWriter<'_> {
    fn branch(&mut self, id: Ulid, word: &str, indent: &str, next: &dyn Fn(Ulid) -> Vec<Ulid>) {
        let ids = next(id);
        for (n, id) in ids.iter().enumerate() {
            let last = n + 1 == ids.len();
            let (tick, more) = if last { ("└─", "   ") } else { ("├─", "│  ") };
            let again = if self.seen.insert(*id) { "" } else { "  (see above)" };
            let line = (self.line)(self.nodes[id]);
            writeln!(self.out, "{indent}{tick} {word} {line}{again}").expect("writing to a string cannot fail");
            if again.is_empty() {
                self.branch(*id, word, &format!("{indent}{more}"), next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Actor, Subject, Timestamp};
    use crate::event::{Draft, Event, EventType, Kind};

    #[test]
    fn no_event_can_make_a_line_or_steer_a_terminal() {
        let draft = Draft {
            kind: Kind::RequirementProposed,
            subject: Subject::SYSTEM,
            actor: Actor::core("test"),
            parents: vec![],
            key: None,
            payload: serde_json::Map::new(),
        };
        let mut event = Event::from_draft(draft, Ulid::from_parts(1, 1), Timestamp(0));
        let evil = "x\n\u{1b}[2J\u{2028}";
        event.event_type = EventType::Unknown(evil.to_owned());
        (event.subject, event.actor) = (evil.to_owned(), evil.to_owned());
        let graph = LineageOutcome {
            root: event.id,
            nodes: vec![Node { event, distance: 0 }],
            edges: vec![],
            truncated: false,
            references: Default::default(),
        };
        let screen = Screen { columns: Some(80), colours: false, now: Timestamp(0) };
        for (picture, lines) in
            [(tree(&graph, None), 1), (tree(&graph, Some(&screen)), 1), (dot(&graph), 5), (mermaid(&graph), 3)]
        {
            assert_eq!(picture.lines().count(), lines, "{picture}");
            assert!(!picture.chars().any(|c| c != '\n' && text::is_unsafe(c)), "{picture:?}");
        }
    }
}
