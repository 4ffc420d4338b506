//! Lasting knowledge of a persona: pages with a title, which every branch can read.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::super::agent::one_line;
use super::super::{Context, Recorded};
use super::context::{Memory, indented};
use super::{begin_as_persona, me, store_text};
use crate::base::{EntityId, EntityType, Error, Result, limits, text};
use crate::event::{Kind, parse_ulid};
use crate::op::kernel::{Added, with_view};
use crate::policy::Request;
use crate::policy::knowledge::{page_of, possible_titles};
use crate::state::{Entity, State};

/// How many pages are offered at most.
const OFFERED_MAX: usize = 5;
/// How much of a text is searched for titles.
const SEARCHED_MAX_CHARS: usize = 20_000;

/// A page to write or to revise.
#[derive(Clone, Debug, Default)]
pub struct KnowRequest {
    /// The title, in one line.
    pub title: String,
    /// The text.
    pub text: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Writes a page, or a new revision of it. The same text again changes nothing.
pub fn know(ctx: &Context, request: KnowRequest) -> Result<Recorded> {
    let title = one_line("the title", &request.title, limits::TITLE_MAX_CHARS)?;
    let (name, vault) = (me(ctx)?, ctx.open()?);
    let page = page_of(&name, &title);
    let stored = store_text(ctx, "the text", Some(&request.text))?;
    let (mut tx, _) = begin_as_persona(ctx, &vault)?;
    let payload = json!({
        "persona_id": name.as_str(), "title": title, "text": stored.text, "artifact_id": stored.artifact,
    });
    let written =
        Request { key: request.key, ..ctx.request(Kind::KnowledgeRecorded, Some(&page.to_string()), payload) };
    if let Some(first) = tx.repeated(&written)? {
        return Ok(first);
    }
    let newest = tx.state().entity(&page).and_then(|page| parse_ulid(page.as_knowledge().revision_ids().last()?));
    if let Some(newest) = newest.map(|newest| tx.log.find(newest)).transpose()?.flatten()
        && newest.payload == written.payload
    {
        return tx.finish(&[Added { id: newest.id, already: true }]);
    }
    let asked = tx.ask(written)?;
    tx.finish(&[asked])
}

/// A page to read.
#[derive(Clone, Debug, Default)]
pub struct KnownRequest {
    /// Its title, or its reference.
    pub title: String,
    /// Whether to return earlier revisions, too.
    pub history: bool,
}

/// A page with its revisions, newest first: time, author and text.
#[derive(Debug)]
pub struct KnownOutcome {
    pub page: Entity,
    pub revisions: Vec<(String, String, String)>,
}

/// Reads a page of the caller's knowledge.
pub fn known(ctx: &Context, request: KnownRequest) -> Result<KnownOutcome> {
    let name = me(ctx)?;
    with_view(&ctx.open()?, |snapshot, state| {
        let page = page_named(state, &name, &request.title)?;
        let memory = Memory { ctx, snapshot, state };
        let ids: Vec<_> = page.as_knowledge().revision_ids().filter_map(parse_ulid).collect();
        let wanted = if request.history { ids.len() } else { 1 };
        let read = |id: &_| Ok(memory.line(&memory.event(*id)?, usize::MAX));
        let revisions = ids.iter().rev().take(wanted).map(read).collect::<Result<_>>()?;
        Ok(KnownOutcome { page, revisions })
    })
}

/// A page by its title or its reference.
fn page_named(state: &State, persona: &EntityId, title: &str) -> Result<Entity> {
    let by_title = state.entity(&page_of(persona, title)).map(|page| page.into_owned());
    let by_reference = || {
        let subject = state.find(title, EntityType::Knowledge).ok()?;
        let page = state.entity(&subject)?;
        (page.as_knowledge().persona().as_ref() == Some(persona)).then(|| page.into_owned())
    };
    by_title.or_else(by_reference).ok_or_else(|| {
        Error::not_found(format!("agent:{persona} knows nothing under the title '{}'", text::cut(title, 80)))
    })
}

/// The pages whose titles occur in a text, in its order, each once.
pub(super) fn offered(state: &State, root: &Entity, persona: &EntityId, text: &str) -> Vec<Entity> {
    let lengths = root.as_branch().title_lengths().and_then(Value::as_array);
    let lengths: Vec<usize> = lengths.into_iter().flatten().filter_map(|n| Some(n.as_u64()? as usize)).collect();
    if lengths.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<Entity> = Vec::new();
    let searched = text::caseless(&text.chars().take(SEARCHED_MAX_CHARS).collect::<String>());
    // One title may be written in several ways, and is one page.
    let (mut tried, mut seen) = (HashSet::new(), HashSet::new());
    for piece in possible_titles(&searched, &lengths) {
        if found.len() == OFFERED_MAX {
            break;
        }
        let page = page_of(persona, &piece);
        if !tried.insert(piece) || !seen.insert(page.clone()) {
            continue;
        }
        found.extend(state.entity(&page).map(|page| page.into_owned()));
    }
    found
}

impl KnownOutcome {
    /// The page as text, for a model.
    pub fn plain(&self) -> String {
        let page = self.page.as_knowledge();
        let mut out = format!("# {} {}\n", self.page.name(), text::escape(page.title().unwrap_or_default()));
        for (at, who, text) in &self.revisions {
            out += &format!("## {at} {who}\n");
            indented(&mut out, "", text);
        }
        out
    }

    /// The page as JSON.
    pub fn json(&self) -> Value {
        let revision = |(at, who, text): &(String, String, String)| json!({"at": at, "from": who, "text": text});
        json!({
            "schema": 1, "ref": self.page.name(), "title": self.page.as_knowledge().title(),
            "revisions": self.revisions.iter().map(revision).collect::<Vec<_>>(),
        })
    }
}
