//! hf-ref: files by short references that carry four digits of their content's hash.
//!
//! The file stays where it is. A reference whose file has another content now is refused, so nobody
//! works from a design that is not the one that was meant.

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
    /// What a file is.
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

    /// What a path tells: its folder, or its ending.
    fn for_path(path: &Path) -> DocumentKind {
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let ending = path.extension().and_then(|ending| ending.to_str());
        match (folder, ending) {
            (Some("taskplans" | "plans"), _) => DocumentKind::Plan,
            (Some("patches"), _) | (_, Some("patch" | "diff")) => DocumentKind::Patch,
            (Some("reports"), _) => DocumentKind::Report,
            _ => DocumentKind::Design,
        }
    }
}

/// A document, and what its file is now.
#[derive(Clone, Debug)]
pub struct DocumentView {
    /// `D0001@a13c`.
    pub reference: String,
    pub path: PathBuf,
    pub sha256: String,
    pub standing: DocumentStanding,
}

names! {
    /// What became of a document's file.
    pub enum DocumentStanding {
        Same = "OK",
        Changed = "CHANGED",
        Missing = "MISSING",
        Unreadable = "UNREADABLE",
    }
}

/// A file that is to have a reference.
#[derive(Clone, Debug, Default)]
pub struct AddRequest {
    /// The file.
    pub path: PathBuf,
    /// What it is; else told from its folder and its ending.
    pub kind: Option<DocumentKind>,
}

/// A file that has a reference now.
#[derive(Debug)]
pub struct AddOutcome {
    pub recorded: Recorded,
    pub view: DocumentView,
}

/// Gives a file a reference. The same file again keeps its number; with another content it has another hash.
pub fn add(ctx: &Context, request: AddRequest) -> Result<AddOutcome> {
    let AddRequest { path, kind } = request;
    let full =
        std::fs::canonicalize(&path).map_err(|e| Error::usage(format!("cannot read {}: {e}", path.display())))?;
    let (sha256, size) = hash(&full)?.ok_or_else(|| Error::usage(format!("{} is gone", path.display())))?;
    let vault = ctx.open()?;
    let kept = kept_path(&vault, &full)?;
    // One number for one path, whoever adds it.
    let key = format!("document:{}", Digest::of_bytes(kept.as_bytes()));
    let mut tx = Transaction::begin(ctx, &vault)?;
    let known = match tx.state().keyed(&key) {
        Some(id) => tx.log.find(id)?.map(|event| Subject::parse(&event.subject)).transpose()?,
        None => None,
    };
    let known = known.and_then(|subject| tx.state().entity(&subject).map(|document| document.into_owned()));
    if let (Some(document), Some(kind)) = (&known, kind)
        && document.as_document().kind() != Some(kind.as_str())
    {
        let said = document.as_document().kind().unwrap_or_default();
        return Err(Error::refused(Reason::KeyConflict, format!("{} is a {said} already", document.subject.id())));
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
            let payload = json!({"kind": kind.as_str(), "path": kept, "sha256": sha256, "size_bytes": size});
            tx.ask(Request { key: Some(key), ..ctx.request(Kind::DocumentAdded, Some(&subject), payload) })?
        }
    };
    let recorded = tx.finish(&[asked])?;
    let entity = recorded.entity.as_ref().ok_or_else(|| Error::corrupt("the document is gone"))?;
    let view = view(&vault, entity);
    Ok(AddOutcome { recorded, view })
}

/// The path as it is recorded: inside the vault from there, so that a vault can be moved.
fn kept_path(vault: &Vault, full: &Path) -> Result<String> {
    let inside =
        std::fs::canonicalize(vault.path()).ok().and_then(|root| Some(full.strip_prefix(root).ok()?.to_owned()));
    let kept = inside.as_deref().unwrap_or(full);
    let kept = kept.to_str().ok_or_else(|| Error::usage("the path is not UTF-8"))?;
    match kept.contains(text::is_unsafe) {
        true => Err(Error::usage("the path holds control or hidden characters")),
        false => Ok(kept.to_owned()),
    }
}

/// The hash and the size of a plain file; nothing if there is none.
fn hash(path: &Path) -> Result<Option<(String, u64)>> {
    let failed = |e| Error::system(format!("cannot read {}", path.display()), e);
    let plain = match std::fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(failed)?.is_file(),
    };
    if !plain {
        return Err(Error::usage(format!("{} is not a plain file", path.display())));
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

/// Reads `D0001` or `D0001@a13c`, in either case; nothing if it has another form.
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

/// A reference whose file is wanted.
#[derive(Clone, Debug, Default)]
pub struct ResolveRequest {
    /// Such as `D0001@a13c`.
    pub reference: String,
}

/// The file of a reference, if it is still what was meant.
pub fn resolve(ctx: &Context, request: ResolveRequest) -> Result<DocumentView> {
    let vault = ctx.open()?;
    let shown = text::cut(&request.reference, 40);
    let form = || Error::usage(format!("'{shown}' is not a reference: write D0001@a13c, with D, P, X or E"));
    let (id, wanted) = parse_reference(&request.reference).ok_or_else(form)?;
    let document = with_view(&vault, |_, state: &State| {
        let found = state.entity(&Subject::new(EntityType::Document, id.clone())).map(|found| found.into_owned());
        found.ok_or_else(|| Error::not_found(format!("nothing here is called '{shown}'")))
    })?;
    let view = view(&vault, &document);
    let changed = |why: String| Err(Error::refused(Reason::Changed, why));
    if wanted.is_some_and(|wanted| wanted != tag(&document)) {
        return changed(format!("{shown} is not what is known by that number: {} is", view.reference));
    }
    match view.standing {
        DocumentStanding::Same => Ok(view),
        DocumentStanding::Changed => changed(format!("{} has changed since: {}", view.reference, view.path.display())),
        DocumentStanding::Missing => {
            Err(Error::not_found(format!("the file of {} is gone: {}", view.reference, view.path.display())))
        }
        DocumentStanding::Unreadable => {
            Err(Error::system(format!("{} cannot be checked", view.reference), view.path.display()))
        }
    }
}

/// Every file that has a reference.
#[derive(Debug)]
pub struct DocumentsOutcome {
    pub documents: Vec<DocumentView>,
}

/// Every document, by number, and whether its file is still what was meant.
pub fn check(ctx: &Context) -> Result<DocumentsOutcome> {
    let vault = ctx.open()?;
    let all = with_view(&vault, |_, state| Ok(state.entities(EntityType::Document, None, usize::MAX)))?;
    Ok(DocumentsOutcome { documents: all.iter().map(|document| view(&vault, document)).collect() })
}
