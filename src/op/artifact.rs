//! hf-artifact: files that tasks produce, stored by content and checked on every read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Context, Recorded, random_ulid, require};
use crate::base::{Digest, EntityType, Error, Result, Subject, limits};
use crate::event::{Event, Kind};
use crate::machine::Phase;
use crate::op::kernel::Transaction;
use crate::op::kernel::record_one;
use crate::op::kernel::with_view;
use crate::policy::Request;
use crate::state::{Entity, State};
use crate::vault::{ARTIFACTS, Incoming, Log, Vault, hash_content};

/// What a file extension implies: extension, kind, media type, language.
const EXTENSIONS: &[(&str, &str, &str, Option<&str>)] = &[
    ("c", "code", "text/x-c", Some("c")),
    ("css", "code", "text/css", Some("css")),
    ("csv", "text", "text/csv", None),
    ("go", "code", "text/x-go", Some("go")),
    ("html", "code", "text/html", Some("html")),
    ("java", "code", "text/x-java", Some("java")),
    ("js", "code", "text/javascript", Some("javascript")),
    ("json", "text", "application/json", None),
    ("md", "text", "text/markdown", None),
    ("pdf", "binary", "application/pdf", None),
    ("png", "binary", "image/png", None),
    ("py", "code", "text/x-python", Some("python")),
    ("rb", "code", "text/x-ruby", Some("ruby")),
    ("rs", "code", "text/x-rust", Some("rust")),
    ("sh", "code", "text/x-shellscript", Some("shell")),
    ("sql", "code", "text/x-sql", Some("sql")),
    ("svg", "text", "image/svg+xml", None),
    ("ts", "code", "text/x-typescript", Some("typescript")),
    ("txt", "text", "text/plain", None),
    ("yaml", "text", "application/yaml", None),
    ("zip", "binary", "application/zip", None),
];

/// The longest file extension that is kept.
const EXTENSION_MAX_CHARS: usize = 16;

/// Content to store.
#[derive(Clone, Debug, Default)]
pub struct PutRequest {
    /// Its kind; default: derived from name and content.
    pub kind: Option<String>,
    /// The task that produced it.
    pub task: Option<String>,
    /// The name of its file, for the extension.
    pub name: Option<PathBuf>,
    /// The expected size, so that a file that changes while it is read is noticed.
    pub size_bytes: Option<u64>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Stored content.
#[derive(Debug)]
pub struct PutOutcome {
    pub recorded: Recorded,
}

/// Stores content, read to its end.
pub fn put(ctx: &Context, request: PutRequest, from: &mut dyn Read) -> Result<PutOutcome> {
    let PutRequest { kind, task, name, size_bytes, key } = request;
    let vault = ctx.open()?;
    let task = task.map(|task| require::find(ctx, &task, EntityType::Task)).transpose()?;
    let extension =
        name.as_deref().and_then(Path::extension).and_then(|e| e.to_str()).filter(|extension| is_plain(extension));
    let filename = extension.map_or("content".to_owned(), |extension| format!("content.{extension}"));
    let id = random_ulid(ctx.now)?.to_string();
    let incoming = vault.take_in(&id, &filename, from)?;
    let put = Storing { ctx, vault: &vault, id, extension, task, kind, key, size_bytes };
    let stored = put.record(&incoming);
    // Kept only if it was recorded as new, or if that is uncertain.
    let unwanted = match &stored {
        Ok(done) => done.duplicate,
        Err(error) => !matches!(error.kind, crate::base::ErrorKind::Uncertain { .. }),
    };
    if unwanted {
        let discarded = vault.discard(&incoming);
        return stored.and_then(|recorded| discarded.map(|()| PutOutcome { recorded }));
    }
    if stored.is_ok() {
        vault.settle(&incoming);
    }
    stored.map(|recorded| PutOutcome { recorded })
}

fn is_plain(extension: &str) -> bool {
    (1..=EXTENSION_MAX_CHARS).contains(&extension.len()) && extension.bytes().all(|b| b.is_ascii_alphanumeric())
}

struct Storing<'a> {
    ctx: &'a Context,
    vault: &'a Vault,
    id: String,
    extension: Option<&'a str>,
    task: Option<String>,
    kind: Option<String>,
    key: Option<String>,
    size_bytes: Option<u64>,
}

impl Storing<'_> {
    /// Records content that was read, unless it is stored already.
    fn record(&self, incoming: &Incoming) -> Result<Recorded> {
        if self.size_bytes.is_some_and(|size| size != incoming.size_bytes) {
            return Err(Error::usage("the file changed while it was read; nothing was stored"));
        }
        let known = self.extension.and_then(|e| EXTENSIONS.iter().find(|row| row.0.eq_ignore_ascii_case(e)));
        let derived = known.map_or(if incoming.lines.is_some() { "text" } else { "binary" }, |row| row.1);
        let kind = self.kind.as_deref().unwrap_or(derived);
        // The first artifact with some content is found by the content alone; one for another task, or one that
        // replaces a damaged one, by content and task.
        let content_key = format!("content:{}", incoming.sha256);
        let own_key = format!("{content_key}:{}", self.task.as_deref().unwrap_or("-"));
        let intact = self.intact(&[&content_key, &own_key])?;
        let mut tx = Transaction::begin(self.ctx, self.vault)?;
        let is_recorded = |id: &str| {
            Subject::parse(&format!("{}:{id}", EntityType::Artifact))
                .is_ok_and(|subject| tx.state().entity(&subject).is_some())
        };
        self.vault.sweep_incoming(&is_recorded)?;
        let declared = self.request(
            Kind::ArtifactDeclared,
            json!({
                "kind": kind, "filename": incoming.filename, "task_id": self.task, "sha256": incoming.sha256.hex(),
            }),
            self.key.clone(),
        );
        if let Some(first) = tx.repeated(&Request { subject: None, ..declared.clone() })? {
            return Ok(first);
        }
        let same = |key| same_content(&*tx.log, tx.state(), key);
        let found = [same(&content_key)?, same(&own_key)?];
        let mut all = found.iter().flatten().filter(|same| intact.contains(&same.subject));
        if let Some(same) = all.clone().find(|same| same.as_artifact().task_id() == self.task.as_deref()) {
            let asked = crate::op::kernel::Added { id: same.first_event, already: true };
            return tx.finish(&[asked]);
        }
        let asked = tx.ask(declared)?;
        let path = format!("{ARTIFACTS}/{}/{}", self.id, incoming.filename);
        let payload = json!({
            "sha256": incoming.sha256.hex(), "size_bytes": incoming.size_bytes, "path": path,
        });
        let free = [content_key, own_key].into_iter().find(|key| tx.state().keyed(key).is_none());
        let stored = self.request(Kind::ArtifactMaterialized, payload, free);
        let materialized = tx.ask(stored)?;
        let mut metadata = Map::new();
        metadata.extend(known.and_then(|row| row.3).map(|language| ("language".to_owned(), language.into())));
        metadata.extend(incoming.lines.map(|lines| ("line_count".to_owned(), lines.into())));
        let manifest = json!({
            "artifact_id": self.id,
            "kind": kind,
            "filename": incoming.filename,
            "mime_type": known.map_or(mime(incoming), |row| row.2),
            "sha256": incoming.sha256.hex(),
            "size_bytes": incoming.size_bytes,
            "created_at": self.ctx.now.timestamp().to_string(),
            "source_event_id": materialized.id.to_string(),
            "metadata": metadata,
        });
        let filename = |same: &Entity| same.as_artifact().filename().unwrap_or("content").to_owned();
        let link = all.next().map(|same| (same.subject.id().to_owned(), filename(same)));
        self.vault.keep(incoming, &manifest, link.as_ref().map(|(id, name)| (id.as_str(), name.as_str())))?;
        let done = tx.finish(&[materialized])?;
        let ids = [asked.id].into_iter().chain(done.ids.iter().copied().filter(|id| *id != asked.id)).collect();
        Ok(Recorded { ids, ..done })
    }

    /// The artifacts with these keys whose content is intact: new content must not be replaced by a link to damaged
    /// content. Called without the lock, because large content takes long to read.
    fn intact(&self, keys: &[&str]) -> Result<Vec<Subject>> {
        let mut intact = Vec::new();
        for key in keys {
            let same = with_view(self.vault, |snapshot, state| same_content(snapshot, state, key))?;
            let same = same.map(|same| same.subject);
            intact.extend(same.filter(|subject| open_checked(self.ctx, &subject.to_string()).is_ok()));
        }
        Ok(intact)
    }

    fn request(&self, kind: Kind, payload: Value, key: Option<String>) -> Request {
        let Value::Object(mut payload) = payload else { unreachable!("payloads are objects") };
        payload.retain(|_, value| !value.is_null());
        Request {
            kind,
            subject: Some(format!("{}:{}", EntityType::Artifact, self.id)),
            actor: self.ctx.caller.actor.clone(),
            autonomous: self.ctx.caller.is_in_agent_shell(),
            parents: Vec::new(),
            key,
            payload,
        }
    }
}

fn mime(incoming: &Incoming) -> &'static str {
    if incoming.lines.is_some() { "text/plain" } else { "application/octet-stream" }
}

/// The artifact with this content, unless it is known to be damaged.
fn same_content(snapshot: &dyn Log, state: &State, key: &str) -> Result<Option<Entity>> {
    let Some(id) = state.keyed(key) else { return Ok(None) };
    let event: Option<Event> = snapshot.find(id)?;
    let subject = event.and_then(|event| Subject::parse(&event.subject).ok());
    let entity = subject.and_then(|subject| state.entity(&subject).map(|e| e.into_owned()));
    Ok(entity.filter(|entity| entity.phase != Phase::Corrupted))
}

/// An artifact to read.
#[derive(Clone, Debug, Default)]
pub struct GetRequest {
    /// The artifact.
    pub reference: String,
}

/// An opened artifact whose content is intact.
#[derive(Debug)]
pub struct GetOutcome {
    pub entity: Entity,
    pub warnings: Vec<String>,
    file: File,
}

impl GetOutcome {
    /// Passes the bytes on, and hashes them again meanwhile.
    pub fn write(&mut self, to: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        use std::io::Seek;
        self.file.rewind().map_err(|e| Error::system("cannot read the content", e))?;
        match matches(&self.entity, &hash_content(&mut self.file, to)?) {
            true => Ok(()),
            false => Err(damaged(&self.entity)),
        }
    }
}

/// Opens an artifact for reading. Damaged content is recorded as corrupted, and none of it is returned.
pub fn get(ctx: &Context, request: GetRequest) -> Result<GetOutcome> {
    let (entity, file) = open_checked(ctx, &request.reference)?;
    Ok(GetOutcome { entity, warnings: Vec::new(), file })
}

fn open_checked(ctx: &Context, reference: &str) -> Result<(Entity, File)> {
    let vault = ctx.open()?;
    let entity = with_view(&vault, |_, state| {
        let subject = state.find(reference, EntityType::Artifact)?;
        Ok(state.entity(&subject).expect("it was resolved").into_owned())
    })?;
    if entity.as_artifact().sha256().is_none() {
        return Err(Error::not_found(format!("{} is {}; it has no content yet", entity.name(), entity.phase)));
    }
    let (found, file) = match content_of(&vault, &entity)? {
        Some(mut file) => (Some(hash_content(&mut file, &mut |_| Ok(()))?), Some(file)),
        None => (None, None),
    };
    match (found, file) {
        (Some(found), Some(file)) if matches(&entity, &found) => Ok((entity, file)),
        (found, _) => {
            let found = found.map_or("missing".to_owned(), |found| found.hex());
            let payload = json!({"found_sha256": found});
            // Best effort: the vault may be read-only.
            let _ = record_one(ctx, Kind::ArtifactCorrupted, Some(&entity.subject.to_string()), payload, None);
            Err(damaged(&entity))
        }
    }
}

/// The stored file of an artifact.
fn content_of(vault: &Vault, entity: &Entity) -> Result<Option<File>> {
    let path = entity.as_artifact().path().unwrap_or_default();
    let filename = path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("content");
    vault.content(entity.subject.id(), filename)
}

fn matches(entity: &Entity, found: &Digest) -> bool {
    let stored = entity.as_artifact().sha256().unwrap_or_default();
    stored.trim_start_matches("sha256:") == found.hex()
}

fn damaged(entity: &Entity) -> Error {
    Error::corrupt(format!("the content of {} is damaged", entity.name()))
}

/// Reads the content of every artifact and returns which are damaged or missing.
pub(super) fn damaged_contents(vault: &Vault) -> Result<Vec<String>> {
    with_view(vault, |_, state| {
        let (mut damaged, mut after) = (Vec::new(), None);
        loop {
            let page = state.entities(EntityType::Artifact, after.as_deref(), limits::PAGE_MAX_COUNT);
            let Some(last) = page.last() else { return Ok(damaged) };
            after = Some(last.subject.id().to_owned());
            for entity in page.iter().filter(|entity| entity.as_artifact().sha256().is_some()) {
                let found = content_of(vault, entity)?.map(|mut file| hash_content(&mut file, &mut |_| Ok(())));
                match found.transpose()? {
                    Some(found) if matches(entity, &found) => {}
                    Some(_) => damaged.push(format!("{}: content is damaged", entity.subject)),
                    None => damaged.push(format!("{}: content is missing", entity.subject)),
                }
            }
        }
    })
}

/// An artifact that was checked and is good.
#[derive(Clone, Debug, Default)]
pub struct ValidateRequest {
    /// The artifact.
    pub reference: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Records that an artifact was checked and is good.
pub fn validate(ctx: &Context, request: ValidateRequest) -> Result<Recorded> {
    open_checked(ctx, &request.reference)?;
    record_one(ctx, Kind::ArtifactValidated, Some(&request.reference), json!({}), request.key)
}

/// An artifact that was checked and rejected.
#[derive(Clone, Debug, Default)]
pub struct InvalidateRequest {
    /// The artifact.
    pub reference: String,
    /// The reason.
    pub reason: String,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Records that an artifact was checked and rejected; its task is repeated.
pub fn invalidate(ctx: &Context, request: InvalidateRequest) -> Result<Recorded> {
    let InvalidateRequest { reference, reason, key } = request;
    record_one(ctx, Kind::ArtifactInvalidated, Some(&reference), json!({"reason": reason}), key)
}
