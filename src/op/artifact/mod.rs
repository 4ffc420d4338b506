//! hf-artifact: files that tasks produce, stored by content and checked on every read.

mod manifest;
mod media;

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Context, Recorded, random_id, random_ulid, require};
use crate::base::{Digest, EntityId, EntityType, Error, ErrorKind, Reason, Result, Subject, Ulid, limits, text};
use crate::event::{Event, Kind};
use crate::machine::Phase;
use crate::op::kernel::{Added, Transaction, record_one, with_view};
use crate::policy::Request;
use crate::state::{Entity, State};
use crate::vault::{ARTIFACTS, Incoming, Log, Vault, hash_content, read_content};

/// An artifact that does not exist yet.
#[derive(Clone, Debug, Default)]
pub struct DeclareRequest {
    /// The name of its file.
    pub name: String,
    /// Its kind; default: derived from the name.
    pub kind: Option<String>,
    /// The task that will produce it.
    pub task: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Declares an artifact before it exists. `put` stores its content later, once.
pub fn declare(ctx: &Context, request: DeclareRequest) -> Result<Recorded> {
    let DeclareRequest { name, kind, task, key } = request;
    let mut parts = Path::new(&name).components();
    let is_file_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
    if !is_file_name || name.contains('/') || name.chars().any(text::is_unsafe) {
        return Err(Error::usage(format!("invalid file name '{}'; it must not contain a path", text::cut(&name, 80))));
    }
    let derived = || media::kind(media::extension(Path::new(&name))).map(str::to_owned);
    let unclear = || Error::usage(format!("cannot tell the kind of '{}'; name it with --kind", text::cut(&name, 80)));
    let kind = kind.or_else(derived).ok_or_else(unclear)?;
    let task = task.map(|task| require::find(ctx, &task, EntityType::Task)).transpose()?;
    record_one(ctx, Kind::ArtifactDeclared, None, json!({"kind": kind, "filename": name, "task_id": task}), key)
}

/// Content to store.
#[derive(Clone, Debug, Default)]
pub struct PutRequest {
    /// The artifact that was declared for it; default: a new one.
    pub declared: Option<String>,
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
    let PutRequest { declared, kind, task, name, size_bytes, key } = request;
    let vault = ctx.open()?;
    let task = task.map(|task| require::find(ctx, &task, EntityType::Task)).transpose()?;
    let declared = declared.map(|reference| find(&vault, &reference)).transpose()?;
    // The extension of the declared name counts; without one, that of the file.
    let declared_name = declared.as_ref().and_then(|artifact| artifact.as_artifact().filename()).map(PathBuf::from);
    let extension = declared_name.as_deref().and_then(media::extension);
    let extension = extension.or_else(|| name.as_deref().and_then(media::extension));
    let filename = extension.map_or("content".to_owned(), |extension| format!("content.{extension}"));
    let incoming_id = random_ulid(ctx.now)?.to_string();
    let incoming = vault.take_in(&incoming_id, &filename, from)?;
    let subject = match &declared {
        Some(artifact) => artifact.subject.clone(),
        None => Subject::new(EntityType::Artifact, EntityId::parse(&incoming_id)?),
    };
    let is_declared = declared.is_some();
    let put = Storing { ctx, vault: &vault, subject, is_declared, extension, task, kind, key, size_bytes };
    let stored = put.record(&incoming);
    // Kept only if it was recorded as new, or if that is uncertain.
    let unwanted = match &stored {
        Ok(done) => done.duplicate,
        Err(error) => !matches!(error.kind, ErrorKind::Uncertain { .. }),
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

/// The artifact with this reference.
fn find(vault: &Vault, reference: &str) -> Result<Entity> {
    with_view(vault, |_, state| {
        let subject = state.find(reference, EntityType::Artifact)?;
        Ok(state.entity(&subject).expect("it was resolved").into_owned())
    })
}

struct Storing<'a> {
    ctx: &'a Context,
    vault: &'a Vault,
    /// The new artifact, or the one that was declared.
    subject: Subject,
    is_declared: bool,
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
        let same = |key| same_content(&*tx.log, tx.state(), key);
        let found = [same(&content_key)?, same(&own_key)?];
        let all: Vec<&Entity> = found.iter().flatten().filter(|same| intact.contains(&same.subject)).collect();
        let free = [content_key, own_key].into_iter().find(|key| tx.state().keyed(key).is_none());
        // A key belongs to what the caller asks for: the declaration, if there is none yet.
        let content = self.request(Kind::ArtifactMaterialized, self.content(incoming), None);
        let asked = match self.is_declared {
            true => Request { key: self.key.clone(), ..content.clone() },
            false => self.declaration(incoming),
        };
        if let Some(first) = tx.repeated(&Request { subject: None, ..asked.clone() })? {
            return Ok(first);
        }
        let same = match self.is_declared {
            true => self.stored_before(tx.state(), incoming)?,
            false => {
                let same = all.iter().find(|same| same.as_artifact().task_id() == self.task.as_deref());
                same.map(|same| same.first_event)
            }
        };
        if let Some(id) = same {
            return tx.finish(&[Added { id, already: true }]);
        }
        let declared = if self.is_declared { None } else { Some(tx.ask(asked)?) };
        let own = self.key.clone().filter(|_| self.is_declared);
        let materialized = tx.ask(Request { key: own.or(free), ..content })?;
        let artifact = tx.state().entity(&self.subject).expect("it was declared").into_owned();
        let event = tx.batch().event(materialized.id).expect("it was just added");
        let manifest = manifest::of_content(&artifact, event, &Map::new());
        let link = all.first().map(|same| (same.subject.id(), stored_name(same)));
        self.vault.keep(incoming, self.subject.id(), &manifest, link)?;
        let done = tx.finish(&[materialized])?;
        let asked: Vec<_> = declared.map(|declared| declared.id).into_iter().collect();
        let ids = asked.iter().copied().chain(done.ids.iter().copied().filter(|id| !asked.contains(id))).collect();
        Ok(Recorded { ids, ..done })
    }

    /// The event that declares a new artifact.
    fn declaration(&self, incoming: &Incoming) -> Request {
        let derived = if incoming.lines.is_some() { "text" } else { "binary" };
        let kind = self.kind.as_deref().or(media::kind(self.extension)).unwrap_or(derived);
        let payload = json!({
            "kind": kind, "filename": incoming.filename, "task_id": self.task, "sha256": incoming.sha256.hex(),
        });
        self.request(Kind::ArtifactDeclared, payload, self.key.clone())
    }

    /// What is recorded about a content.
    fn content(&self, incoming: &Incoming) -> Value {
        let mut payload = media::traits(self.extension, incoming.lines);
        payload.insert("sha256".to_owned(), incoming.sha256.hex().into());
        payload.insert("size_bytes".to_owned(), incoming.size_bytes.into());
        let path = format!("{ARTIFACTS}/{}/{}", self.subject.id(), incoming.filename);
        payload.insert("path".to_owned(), path.into());
        payload.into()
    }

    /// The first event of the declared artifact, if it has this content already. Refuses another content.
    fn stored_before(&self, state: &State, incoming: &Incoming) -> Result<Option<Ulid>> {
        let artifact = state.entity(&self.subject).expect("it was resolved").into_owned();
        let (name, phase) = (artifact.name(), artifact.phase);
        let refused = |why: String| Err(Error::refused(Reason::IllegalTransition, why));
        match phase {
            Phase::Declared => Ok(None),
            Phase::Corrupted => refused(format!("{name} is {phase}; store the content as a new artifact")),
            _ if matches(&artifact, &incoming.sha256) => Ok(Some(artifact.first_event)),
            _ => refused(format!("{name} is {phase} with other content; declare another artifact for this one")),
        }
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
        Request { key, ..self.ctx.request(kind, Some(&self.subject.to_string()), payload) }
    }
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
    /// What is wrong with its manifest.
    pub findings: Vec<String>,
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

/// Opens an artifact for reading. Damaged content is recorded as corrupted, and none of it is returned. A manifest
/// that is wrong does not concern the content, and is only reported.
pub fn get(ctx: &Context, request: GetRequest) -> Result<GetOutcome> {
    let (entity, file) = open_checked(ctx, &request.reference)?;
    let vault = ctx.open()?;
    let findings = with_view(&vault, |log, state| Ok(manifest::findings(&vault, log, state, &entity)))?;
    Ok(GetOutcome { entity, findings, file })
}

/// A manifest to restore.
#[derive(Clone, Debug, Default)]
pub struct RepairRequest {
    /// The artifact.
    pub reference: String,
}

/// A manifest after it was restored.
#[derive(Debug)]
pub struct RepairOutcome {
    pub entity: Entity,
    /// What was wrong with it; empty if nothing was changed.
    pub findings: Vec<String>,
    /// Where the wrong one is kept, if there was one.
    pub quarantined: Option<String>,
    /// The path of the manifest in the vault.
    pub path: String,
}

/// Writes the manifest of an intact artifact again, from the log, if it is missing or wrong.
pub fn repair(ctx: &Context, request: RepairRequest) -> Result<RepairOutcome> {
    let (entity, mut file) = open_checked(ctx, &request.reference)?;
    let vault = ctx.open()?;
    let (findings, source) = with_view(&vault, |log, state| {
        let findings = manifest::findings(&vault, log, state, &entity);
        Ok((findings, manifest::source(log, state, &entity, None)))
    })?;
    let path = manifest::path(&entity);
    if findings.is_empty() {
        return Ok(RepairOutcome { entity, findings, quarantined: None, path });
    }
    let missing = || Error::corrupt(format!("the event that stored {} was not found", entity.name()));
    let source = source.ok_or_else(missing)?;
    let (_, _, lines) = read_content(&mut file)?;
    let text = manifest::of_content(&entity, &source, &manifest::traits_of(&entity, lines));
    let quarantined = vault.restore_manifest(entity.subject.id(), &text, &random_id()?)?;
    Ok(RepairOutcome { entity, findings, quarantined, path })
}

fn open_checked(ctx: &Context, reference: &str) -> Result<(Entity, File)> {
    let vault = ctx.open()?;
    let entity = find(&vault, reference)?;
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

/// The name of the stored file of an artifact.
fn stored_name(entity: &Entity) -> &str {
    let path = entity.as_artifact().path().unwrap_or_default();
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("content")
}

/// The stored file of an artifact.
fn content_of(vault: &Vault, entity: &Entity) -> Result<Option<File>> {
    vault.content(entity.subject.id(), stored_name(entity))
}

fn matches(entity: &Entity, found: &Digest) -> bool {
    let stored = entity.as_artifact().sha256().unwrap_or_default();
    stored.trim_start_matches("sha256:") == found.hex()
}

fn damaged(entity: &Entity) -> Error {
    Error::corrupt(format!("the content of {} is damaged", entity.name())).about(entity.short_reference())
}

/// What is wrong with stored artifacts, one sentence each.
#[derive(Debug, Default)]
pub struct ArtifactFindings {
    /// Contents that are damaged or missing.
    pub contents: Vec<String>,
    /// Manifests that are missing, or say something else than the log.
    pub manifests: Vec<String>,
}

/// Reads the content and the manifest of every artifact, and compares them with the log.
pub(super) fn check_all(vault: &Vault) -> Result<ArtifactFindings> {
    with_view(vault, |log, state| {
        let (mut found, mut after) = (ArtifactFindings::default(), None);
        loop {
            let page = state.entities(EntityType::Artifact, after.as_deref(), limits::PAGE_MAX_COUNT);
            let Some(last) = page.last() else { return Ok(found) };
            after = Some(last.subject.id().to_owned());
            for entity in page.iter().filter(|entity| entity.as_artifact().sha256().is_some()) {
                let content = content_of(vault, entity).and_then(|file| file.map(hash_file).transpose());
                // A content that is missing with its manifest is one finding.
                if !matches!(content, Ok(None)) {
                    found.manifests.extend(manifest::findings(vault, log, state, entity));
                }
                let wrong = match content {
                    Ok(Some(content)) if matches(entity, &content) => continue,
                    Ok(Some(_)) => "content is damaged".to_owned(),
                    Ok(None) => "content is missing".to_owned(),
                    // One that cannot be read does not hide the others.
                    Err(error) => error.message,
                };
                found.contents.push(format!("{}: {wrong}", entity.subject));
            }
        }
    })
}

fn hash_file(mut file: File) -> Result<Digest> {
    hash_content(&mut file, &mut |_| Ok(()))
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
