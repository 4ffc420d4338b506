//! hf-ref: short references for files, with four digits of the hash of their content.
//!
//! The file stays where it is. A reference is refused if the content of its file has changed, so that no one works
//! from a different version of a design.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{Context, Recorded};
use crate::base::{Digest, EntityId, EntityType, Error, Reason, Result, Subject, names, text};
use crate::event::Kind;
use crate::op::kernel::with_view;
use crate::op::kernel::{Added, Transaction};
use crate::policy::Request;
use crate::state::{Entity, State};
use crate::vault::{Vault, hash_content};

names! {
    /// The kind of a document.
    pub enum DocumentKind {
        Design = "design",
        Plan = "plan",
        Patch = "patch",
        Report = "report",
    }
}

impl DocumentKind {
    const fn letter(self) -> char {
        match self {
            DocumentKind::Design => 'D',
            DocumentKind::Plan => 'P',
            DocumentKind::Patch => 'X',
            DocumentKind::Report => 'E',
        }
    }

    /// The kind that the path suggests, by its directory or its extension.
    fn for_path(path: &Path) -> DocumentKind {
        let dir = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let extension = path.extension().and_then(|extension| extension.to_str());
        match (dir, extension) {
            (Some("taskplans" | "plans"), _) => DocumentKind::Plan,
            (Some("patches"), _) | (_, Some("patch" | "diff")) => DocumentKind::Patch,
            (Some("reports"), _) => DocumentKind::Report,
            _ => DocumentKind::Design,
        }
    }
}

/// A document, and whether its file is unchanged.
#[derive(Clone, Debug)]
pub struct DocumentView {
    /// `D0001@a13c`.
    pub reference: String,
    pub path: PathBuf,
    pub sha256: String,
    pub standing: DocumentStanding,
}

names! {
    /// The state of a document's file.
    pub enum DocumentStanding {
        Same = "OK",
        Changed = "CHANGED",
        Missing = "MISSING",
        Unreadable = "UNREADABLE",
    }
}

/// A file to add.
#[derive(Clone, Debug, Default)]
pub struct AddRequest {
    /// The file.
    pub path: PathBuf,
    /// Its kind; default: derived from the path.
    pub kind: Option<DocumentKind>,
}

/// An added document.
#[derive(Debug)]
pub struct AddOutcome {
    pub recorded: Recorded,
    pub view: DocumentView,
}

/// Gives a file a reference. Added again, it keeps its number; if its content has changed, the hash changes.
pub fn add(ctx: &Context, request: AddRequest) -> Result<AddOutcome> {
    let AddRequest { path, kind } = request;
    let full =
        std::fs::canonicalize(&path).map_err(|e| Error::usage(format!("cannot read {}: {e}", path.display())))?;
    let (sha256, size) = hash(&full)?.ok_or_else(|| Error::usage(format!("{} does not exist", path.display())))?;
    let vault = ctx.open()?;
    let stored = recorded_path(&vault, &full)?;
    // The key makes sure that each path has only one number.
    let key = format!("document:{}", Digest::of_bytes(stored.as_bytes()));
    let mut tx = Transaction::begin(ctx, &vault)?;
    let known = match tx.state().keyed(&key) {
        Some(id) => tx.log.find(id)?.map(|event| Subject::parse(&event.subject)).transpose()?,
        None => None,
    };
    let known = known.and_then(|subject| tx.state().entity(&subject).map(|document| document.into_owned()));
    if let (Some(document), Some(kind)) = (&known, kind)
        && document.as_document().kind() != Some(kind.as_str())
    {
        let known_kind = document.as_document().kind().unwrap_or_default();
        return Err(Error::refused(
            Reason::KeyConflict,
            format!("{} is already a {known_kind}", document.subject.id()),
        ));
    }
    let content = json!({"sha256": sha256, "size_bytes": size});
    let asked = match known {
        Some(document) if document.as_document().sha256() == Some(&sha256) => {
            Added { id: document.last_event, already: true }
        }
        Some(document) => tx.ask(ctx.request(Kind::DocumentChanged, Some(&document.subject.to_string()), content))?,
        None => {
            let kind = kind.unwrap_or_else(|| DocumentKind::for_path(&full));
            let name = |n: u64| format!("{}{n:04}", kind.letter());
            let number = tx.state().free_number(EntityType::Document, name);
            let subject = format!("{}:{}", EntityType::Document, name(number));
            let payload = json!({"kind": kind.as_str(), "path": stored, "sha256": sha256, "size_bytes": size});
            tx.ask(Request { key: Some(key), ..ctx.request(Kind::DocumentAdded, Some(&subject), payload) })?
        }
    };
    let recorded = tx.finish(&[asked])?;
    let entity = recorded.entity.as_ref().ok_or_else(|| Error::corrupt("the document is missing"))?;
    let view = view(&vault, entity);
    Ok(AddOutcome { recorded, view })
}

/// The path to record: relative if it is inside the vault, so that the vault can be moved.
fn recorded_path(vault: &Vault, full: &Path) -> Result<String> {
    let inside =
        std::fs::canonicalize(vault.path()).ok().and_then(|root| Some(full.strip_prefix(root).ok()?.to_owned()));
    let stored = inside.as_deref().unwrap_or(full);
    let stored = stored.to_str().ok_or_else(|| Error::usage("the path is not UTF-8"))?;
    match stored.contains(text::is_unsafe) {
        true => Err(Error::usage("the path contains control or invisible characters")),
        false => Ok(stored.to_owned()),
    }
}

/// The hash and the size of a regular file; none if it does not exist.
fn hash(path: &Path) -> Result<Option<(String, u64)>> {
    let failed = |e| Error::system(format!("cannot read {}", path.display()), e);
    let plain = match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(failed)?.is_file(),
    };
    if !plain {
        return Err(Error::usage(format!("{} is not a regular file", path.display())));
    }
    let mut size = 0;
    let digest = hash_content(&mut File::open(path).map_err(failed)?, &mut |bytes| {
        size += bytes.len() as u64;
        Ok(())
    })?;
    Ok(Some((digest.hex(), size)))
}

fn view(vault: &Vault, document: &Entity) -> DocumentView {
    let sha256 = document.as_document().sha256().unwrap_or_default().to_owned();
    let path = vault.path().join(document.as_document().path().unwrap_or_default());
    let standing = match hash(&path) {
        Err(_) => DocumentStanding::Unreadable,
        Ok(None) => DocumentStanding::Missing,
        Ok(Some((now, _))) if now == sha256 => DocumentStanding::Same,
        Ok(Some(_)) => DocumentStanding::Changed,
    };
    DocumentView { reference: reference(document), path, sha256, standing }
}

/// `D0001@a13c`.
fn reference(document: &Entity) -> String {
    format!("{}@{}", document.subject.id(), tag(document))
}

fn tag(document: &Entity) -> &str {
    document.as_document().sha256().and_then(|sha256| sha256.get(..4)).unwrap_or_default()
}

/// Parses `D0001` or `D0001@a13c`, in upper or lower case.
pub fn parse_reference(text: &str) -> Option<(EntityId, Option<String>)> {
    let (name, tag) = match text.split_once('@') {
        Some((name, tag)) => (name, Some(tag.to_ascii_lowercase())),
        None => (text, None),
    };
    let name = name.to_ascii_uppercase();
    let (letter, digits) = name.split_at_checked(1)?;
    let known = DocumentKind::ALL.iter().any(|kind| letter.starts_with(kind.letter()));
    let number = digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_digit());
    let hex = tag.as_ref().is_none_or(|tag| tag.len() == 4 && tag.bytes().all(|b| b.is_ascii_hexdigit()));
    (known && number && hex).then(|| EntityId::parse(&name).ok()).flatten().map(|name| (name, tag))
}

/// A reference to resolve.
#[derive(Clone, Debug, Default)]
pub struct ResolveRequest {
    /// Such as `D0001@a13c`.
    pub reference: String,
}

/// Returns the document with this reference, if its file is unchanged.
pub fn resolve(ctx: &Context, request: ResolveRequest) -> Result<DocumentView> {
    let vault = ctx.open()?;
    let shown = text::cut(&request.reference, 40);
    let form = || Error::usage(format!("invalid reference '{shown}'; must be like D0001@a13c, with D, P, X or E"));
    let (id, wanted) = parse_reference(&request.reference).ok_or_else(form)?;
    let document = with_view(&vault, |_, state: &State| {
        let found = state.entity(&Subject::new(EntityType::Document, id.clone())).map(|found| found.into_owned());
        found.ok_or_else(|| Error::not_found(format!("document '{shown}' not found")))
    })?;
    let view = view(&vault, &document);
    let changed = |why: String| Err(Error::refused(Reason::Changed, why));
    if wanted.is_some_and(|wanted| wanted != tag(&document)) {
        return changed(format!("{shown} is out of date; the current reference is {}", view.reference));
    }
    match view.standing {
        DocumentStanding::Same => Ok(view),
        DocumentStanding::Changed => changed(format!(
            "{}: the file has changed: {}; hf-ref add records the change",
            view.reference,
            view.path.display()
        )),
        DocumentStanding::Missing => {
            Err(Error::not_found(format!("the file of {} is missing: {}", view.reference, view.path.display())))
        }
        DocumentStanding::Unreadable => {
            Err(Error::system(format!("cannot read the file of {}", view.reference), view.path.display()))
        }
    }
}

/// Every document.
#[derive(Debug)]
pub struct DocumentsOutcome {
    pub documents: Vec<DocumentView>,
}

/// Checks every document: whether its file is unchanged.
pub fn check(ctx: &Context) -> Result<DocumentsOutcome> {
    let vault = ctx.open()?;
    let all = with_view(&vault, |_, state| Ok(state.entities(EntityType::Document, None, usize::MAX)))?;
    Ok(DocumentsOutcome { documents: all.iter().map(|document| view(&vault, document)).collect() })
}
