//! hf-lineage: the causes and the consequences of an event.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Context, References, references};
use crate::base::{Error, Result, Ulid, text};
use crate::event::{Event, parse_ulid};
use crate::state::State;
use crate::vault::Log;

/// At most this many events are collected.
const NODES_MAX_COUNT: usize = 1000;

/// An event to trace.
#[derive(Clone, Debug)]
pub struct LineageRequest {
    /// An event, or an entity.
    pub reference: String,
    /// Whether to follow its causes.
    pub up: bool,
    /// Whether to follow its consequences.
    pub down: bool,
    /// At most this many steps.
    pub depth: usize,
}

/// One event of the graph.
#[derive(Clone, Debug)]
pub struct Node {
    pub event: Event,
    /// Steps from the root; negative for causes.
    pub distance: i64,
}

/// A cause and its consequence.
pub type Edge = (Ulid, Ulid);

#[derive(Debug)]
pub struct LineageOutcome {
    /// The event to trace.
    pub root: Ulid,
    /// In the order of the log.
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Whether events were left out because of depth or number.
    pub truncated: bool,
    /// The short references of the subjects that have one.
    pub references: References,
}

/// Returns the causes and the consequences of an event.
pub fn lineage(ctx: &Context, request: LineageRequest) -> Result<LineageOutcome> {
    let vault = ctx.open()?;
    let (snapshot, state) = vault.view()?;
    let (root, newest) = find_root(&*snapshot, &state, &request)?;
    let mut graph = Graph { snapshot: &*snapshot, state: &state, nodes: BTreeMap::new(), truncated: false };
    graph.add(root, 0)?;
    if request.up {
        graph.walk(root, request.depth, Direction::Causes)?;
    }
    if request.down {
        graph.walk(root, request.depth, Direction::Consequences)?;
    }
    // What happened to it later has causes of its own.
    if request.up && newest != root {
        graph.add(newest, 0)?;
        graph.walk(newest, request.depth, Direction::Causes)?;
    }
    if let Some(fault) = state.fault() {
        return Err(fault);
    }
    let known: BTreeSet<Ulid> = graph.nodes.keys().copied().collect();
    let edges = graph.nodes.values().flat_map(|node| {
        node.event.parents.iter().filter(|p| known.contains(p)).map(|p| (*p, node.event.id)).collect::<Vec<_>>()
    });
    let edges = edges.collect();
    let references = references(&state, graph.nodes.values().map(|node| node.event.subject.as_str()));
    let (nodes, truncated) = (graph.nodes.into_values().collect(), graph.truncated);
    Ok(LineageOutcome { root, nodes, edges, truncated, references })
}

/// The event to start from, and the one whose causes are followed: for an entity its first event, or its last if only
/// causes are requested, and its last.
fn find_root(snapshot: &dyn Log, state: &State, request: &LineageRequest) -> Result<(Ulid, Ulid)> {
    let reference = request.reference.as_str();
    if let Some(id) = parse_ulid(reference)
        && snapshot.find(id)?.is_some()
    {
        return Ok((id, id));
    }
    let unknown = match state.resolve(reference, None) {
        Ok(subject) => {
            let entity = state.entity(&subject).ok_or_else(|| Error::not_found(format!("{subject} not found")))?;
            let root = if request.down { entity.first_event } else { entity.last_event };
            return Ok((root, entity.last_event));
        }
        Err(unknown) => unknown,
    };
    match snapshot.ids_with_prefix(reference)?.as_slice() {
        [one] => Ok((*one, *one)),
        [] => Err(unknown),
        _ => {
            Err(Error::not_found(format!("ambiguous '{}': several event ids start with it", text::cut(reference, 40))))
        }
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Causes,
    Consequences,
}

impl Direction {
    const fn sign(self) -> i64 {
        match self {
            Direction::Causes => -1,
            Direction::Consequences => 1,
        }
    }
}

struct Graph<'a> {
    snapshot: &'a dyn Log,
    state: &'a State,
    nodes: BTreeMap<Ulid, Node>,
    truncated: bool,
}

impl Graph<'_> {
    /// Adds an event. Returns false if the limit is reached.
    fn add(&mut self, id: Ulid, distance: i64) -> Result<bool> {
        if self.nodes.contains_key(&id) {
            return Ok(true);
        }
        if self.nodes.len() >= NODES_MAX_COUNT {
            self.truncated = true;
            return Ok(false);
        }
        if let Some(event) = self.snapshot.find(id)? {
            self.nodes.insert(id, Node { event, distance });
        }
        Ok(true)
    }

    /// Walks the graph breadth first.
    fn walk(&mut self, root: Ulid, depth: usize, direction: Direction) -> Result<()> {
        let mut queue = VecDeque::from([(root, 0)]);
        let mut seen = BTreeSet::from([root]);
        while let Some((id, steps)) = queue.pop_front() {
            let next = match direction {
                Direction::Consequences => self.state.children(id, NODES_MAX_COUNT + 1),
                Direction::Causes => self.nodes.get(&id).map(|node| node.event.parents.clone()).unwrap_or_default(),
            };
            if steps == depth {
                self.truncated |= next.iter().any(|id| !self.nodes.contains_key(id));
                continue;
            }
            for id in next {
                if seen.insert(id) {
                    if !self.add(id, direction.sign() * (steps as i64 + 1))? {
                        return Ok(());
                    }
                    queue.push_back((id, steps + 1));
                }
            }
        }
        Ok(())
    }
}
