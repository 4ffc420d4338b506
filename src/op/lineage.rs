//! hf-lineage: why something is as it is, and what came of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Context, References, references};
use crate::base::{Error, Result, Ulid, text};
use crate::event::{Event, parse_ulid};
use crate::state::State;
use crate::vault::Log;

/// More events than this are not gathered.
const NODES_MAX_COUNT: usize = 1000;

/// Whose causes and consequences.
#[derive(Clone, Debug)]
pub struct LineageRequest {
    /// An event, or an entity by any reference.
    pub reference: String,
    /// Towards its causes.
    pub up: bool,
    /// Towards its consequences.
    pub down: bool,
    /// How many steps at most.
    pub depth: usize,
}

/// One event of the graph.
#[derive(Clone, Debug)]
pub struct Node {
    pub event: Event,
    /// Steps from where the question began: negative towards causes.
    pub distance: i64,
}

/// A cause and its consequence.
pub type Edge = (Ulid, Ulid);

#[derive(Debug)]
pub struct LineageOutcome {
    /// The event that the question is about.
    pub root: Ulid,
    /// In the order of the log.
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Whether something was left out, for depth or number.
    pub truncated: bool,
    /// The short references of the subjects that have one.
    pub references: References,
}

/// The causes and the consequences of an event.
pub fn lineage(ctx: &Context, request: LineageRequest) -> Result<LineageOutcome> {
    let vault = ctx.open()?;
    let (snapshot, state) = vault.view()?;
    let root = find_root(&*snapshot, &state, &request)?;
    let mut graph = Graph { snapshot: &*snapshot, state: &state, nodes: BTreeMap::new(), truncated: false };
    graph.add(root, 0)?;
    if request.up {
        graph.walk(root, request.depth, -1)?;
    }
    if request.down {
        graph.walk(root, request.depth, 1)?;
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

/// Where the question begins: the event itself; of an entity, the event that made it, or its last
/// change when only its causes are asked for.
fn find_root(snapshot: &dyn Log, state: &State, request: &LineageRequest) -> Result<Ulid> {
    let reference = request.reference.as_str();
    if let Some(id) = parse_ulid(reference)
        && snapshot.find(id)?.is_some()
    {
        return Ok(id);
    }
    let unknown = match state.resolve(reference, None) {
        Ok(subject) => {
            let entity = state.entity(&subject).ok_or_else(|| Error::not_found(format!("{subject} does not exist")))?;
            return Ok(if request.down { entity.first_event } else { entity.last_event });
        }
        Err(unknown) => unknown,
    };
    match snapshot.ids_with_prefix(reference)?.as_slice() {
        [one] => Ok(*one),
        [] => Err(unknown),
        _ => Err(Error::not_found(format!("'{}' is the beginning of several event ids", text::cut(reference, 40)))),
    }
}

struct Graph<'a> {
    snapshot: &'a dyn Log,
    state: &'a State,
    nodes: BTreeMap<Ulid, Node>,
    truncated: bool,
}

impl Graph<'_> {
    /// Takes an event in; `false` if there is no more room.
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

    /// Walks breadth first, towards causes (−1) or consequences (+1).
    fn walk(&mut self, root: Ulid, depth: usize, direction: i64) -> Result<()> {
        let mut queue = VecDeque::from([(root, 0)]);
        let mut seen = BTreeSet::from([root]);
        while let Some((id, steps)) = queue.pop_front() {
            let next = match direction {
                1 => self.state.children(id, NODES_MAX_COUNT + 1),
                _ => self.nodes.get(&id).map(|node| node.event.parents.clone()).unwrap_or_default(),
            };
            if steps == depth {
                self.truncated |= next.iter().any(|id| !self.nodes.contains_key(id));
                continue;
            }
            for id in next {
                if seen.insert(id) {
                    if !self.add(id, direction * (steps as i64 + 1))? {
                        return Ok(());
                    }
                    queue.push_back((id, steps + 1));
                }
            }
        }
        Ok(())
    }
}
