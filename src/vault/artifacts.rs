//! `Artifacts/<id>/content.*` and `manifest.json`: contents that are too large for an event.
//!
//! A content is streamed into `.incoming/<id>/new/` and hashed on the way, and gets its final name only when it is
//! complete and synced. Storing the same content again creates a hard link to the same bytes.
//!
//! The process that stores a content keeps `.incoming/<id>` locked and removes it when the event is recorded. One that is
//! not locked was left by a process that died: the next one to store something removes it, and also the content if the
//! log does not mention it.

use std::fs::File;
use std::io::{Read, Seek, Write};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Vault;
use super::files::{Dir, failed};
use super::layout::{AKASHIC, QUARANTINE};
use crate::base::{Digest, Error, ErrorKind, Result, limits};

pub const ARTIFACTS: &str = "Artifacts";
pub const MANIFEST: &str = "manifest.json";
const INCOMING: &str = ".incoming";
/// The future directory of the artifact, inside the directory of an incoming content.
const NEW: &str = "new";
/// A longer manifest is not one of ours, and is not read to its end.
const MANIFEST_MAX_BYTES: u64 = 64 * 1024;
/// Bytes in memory at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// A content that was read in and does not have its final name yet.
#[derive(Debug)]
pub struct Incoming {
    id: String,
    pub filename: String,
    pub sha256: Digest,
    pub size_bytes: u64,
    /// The number of lines, if it is text.
    pub lines: Option<u64>,
    /// Its directory, locked.
    dir: Dir,
}

/// Passes a reader's bytes on in pieces. Returns their hash and number.
fn pump(from: &mut dyn Read, to: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<(Digest, u64)> {
    let (mut hash, mut size, mut piece) = (Sha256::new(), 0, vec![0; PIECE_BYTES]);
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Error::system("cannot read the content", e)),
        };
        hash.update(&piece[..read]);
        size += read as u64;
        to(&piece[..read])?;
    }
    Ok((Digest::from_bytes(hash.finalize().into()), size))
}

/// Checks piece by piece whether bytes are text: UTF-8 without NUL.
#[derive(Debug)]
struct TextCheck {
    text: bool,
    lines: u64,
    /// The beginning of a character whose end is in the next piece.
    rest: Vec<u8>,
}

impl TextCheck {
    fn see(&mut self, piece: &[u8]) {
        if !self.text {
            return;
        }
        self.lines += memchr::memchr_iter(b'\n', piece).count() as u64;
        let bytes = [self.rest.as_slice(), piece].concat();
        let valid = match std::str::from_utf8(&bytes) {
            Ok(_) => bytes.len(),
            Err(e) if e.error_len().is_none() => e.valid_up_to(),
            Err(_) => return self.text = false,
        };
        self.text = memchr::memchr(0, piece).is_none();
        self.rest = bytes[valid..].to_vec();
    }

    fn lines(self) -> Option<u64> {
        (self.text && self.rest.is_empty()).then_some(self.lines)
    }
}

/// Refuses a content that is too large, as one without an end is.
pub fn check_size(bytes: u64) -> Result<()> {
    match bytes > limits::ARTIFACT_MAX_BYTES {
        true => Err(Error::new(
            ErrorKind::LimitExceeded,
            format!("the content is too large; at most {} GiB are stored", limits::ARTIFACT_MAX_BYTES >> 30),
        )),
        false => Ok(()),
    }
}

impl Vault {
    /// Reads a content in, to be stored under this id.
    pub fn take_in(&self, id: &str, filename: &str, from: &mut dyn Read) -> Result<Incoming> {
        self.check_private()?;
        let (artifacts, _) = self.root.make_dir(ARTIFACTS)?;
        artifacts.check_private()?;
        let (incoming, _) = artifacts.make_dir(INCOMING)?;
        let dir = incoming.make_locked_dir(id)?;
        let taken = dir.make_dir(NEW).and_then(|(new, _)| self.write_content(&new, filename, from));
        match taken {
            Ok((sha256, size_bytes, lines)) => {
                Ok(Incoming { id: id.to_owned(), filename: filename.to_owned(), sha256, size_bytes, lines, dir })
            }
            Err(error) => {
                // Best effort: the first error is the one that matters.
                let _ = forget_incoming(&incoming, id);
                Err(error)
            }
        }
    }

    fn write_content(&self, dir: &Dir, name: &str, from: &mut dyn Read) -> Result<(Digest, u64, Option<u64>)> {
        let (mut file, _) = dir.make_file(name)?;
        let wrong = |doing: &str, e| failed(doing, &dir.path().join(name), e);
        let mut written = 0;
        let read = examine(from, &mut |piece| {
            written += piece.len() as u64;
            check_size(written)?;
            file.write_all(piece).map_err(|e| wrong("write", e))
        })?;
        file.sync_all().map_err(|e| wrong("sync", e))?;
        Ok(read)
    }

    /// Gives a content its final name, with its manifest. `id` is its artifact, which the log has no content for, and
    /// `same` is an artifact with the same bytes, so that they are stored once.
    pub fn keep(&self, incoming: &Incoming, id: &str, manifest: &Value, same: Option<(&str, &str)>) -> Result<()> {
        let artifacts = self.artifacts()?;
        let missing = || Error::system("cannot store the content", "it was removed");
        let dir = incoming.dir.dir(NEW)?.ok_or_else(missing)?;
        if let Some((id, filename)) = same
            && let Some(other) = artifacts.dir(id)?
        {
            // A file system without hard links stores two copies.
            let _ = dir.replace_by_link(&other, filename, &incoming.filename);
        }
        dir.put(MANIFEST, &manifest_bytes(manifest))?;
        // A process that died before it could record its content may have left it there.
        forget(&artifacts, id)?;
        incoming.dir.move_to(NEW, &artifacts, id)?;
        artifacts.sync()
    }

    /// The manifest of an artifact; none if it is missing.
    pub fn manifest(&self, id: &str) -> Result<Option<Vec<u8>>> {
        let Some(dir) = self.root.dir(ARTIFACTS)?.map(|dir| dir.dir(id)).transpose()?.flatten() else {
            return Ok(None);
        };
        let Some(file) = dir.open_file(MANIFEST)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = file.take(MANIFEST_MAX_BYTES).read_to_end(&mut bytes);
        read.map_err(|e| failed("read", &dir.path().join(MANIFEST), e))?;
        Ok(Some(bytes))
    }

    /// Writes the manifest of an artifact again. What was in its place is moved to quarantine; returns its path there.
    pub fn restore_manifest(&self, id: &str, manifest: &Value, unique: &str) -> Result<Option<String>> {
        self.check_private()?;
        let missing = || Error::not_found(format!("{ARTIFACTS}/{id} is missing"));
        let dir = self.artifacts()?.dir(id)?.ok_or_else(missing)?;
        dir.check_private()?;
        let mut kept = None;
        if dir.list()?.iter().any(|(name, _)| name == MANIFEST) {
            let (quarantine, _) = self.akashic.make_dir(QUARANTINE)?;
            let name = format!("manifest-{id}-{unique}.json");
            dir.move_to(MANIFEST, &quarantine, &name)?;
            quarantine.sync()?;
            kept = Some(format!("{AKASHIC}/{QUARANTINE}/{name}"));
        }
        dir.put(MANIFEST, &manifest_bytes(manifest))?;
        Ok(kept)
    }

    /// Marks the event of a content as recorded. If this fails, the next sweep finds out.
    pub fn settle(&self, incoming: &Incoming) {
        let _ = self.incoming().and_then(|dir| dir.map_or(Ok(()), |dir| forget_incoming(&dir, &incoming.id)));
    }

    /// Removes a content that is not needed after all, whether it has its final name or not.
    pub fn discard(&self, incoming: &Incoming) -> Result<()> {
        forget(&self.artifacts()?, &incoming.id)?;
        self.incoming()?.map_or(Ok(()), |dir| forget_incoming(&dir, &incoming.id))
    }

    /// Removes what processes that died have left. The caller holds the vault's lock, so that `is_recorded` stays true.
    pub fn sweep_incoming(&self, is_recorded: &dyn Fn(&str) -> bool) -> Result<()> {
        let Some(incoming) = self.incoming()? else { return Ok(()) };
        for (id, _) in incoming.list()?.into_iter().filter(|(_, is_dir)| *is_dir) {
            let Some(dir) = incoming.dir(&id)? else { continue };
            if !dir.try_lock()? {
                continue;
            }
            if !is_recorded(&id) {
                forget(&self.artifacts()?, &id)?;
            }
            forget_incoming(&incoming, &id)?;
        }
        Ok(())
    }

    fn incoming(&self) -> Result<Option<Dir>> {
        self.root.dir(ARTIFACTS)?.map_or(Ok(None), |artifacts| artifacts.dir(INCOMING))
    }

    fn artifacts(&self) -> Result<Dir> {
        self.root.dir(ARTIFACTS)?.ok_or_else(|| Error::not_found("this vault has no artifacts"))
    }

    /// The file of a content; `None` if it is missing.
    pub fn content(&self, id: &str, filename: &str) -> Result<Option<File>> {
        match self.root.dir(ARTIFACTS)?.map(|dir| dir.dir(id)).transpose()?.flatten() {
            Some(dir) => dir.open_file(filename),
            None => Ok(None),
        }
    }
}

fn manifest_bytes(manifest: &Value) -> Vec<u8> {
    let mut text = serde_json::to_string_pretty(manifest).expect("a JSON value");
    text.push('\n');
    text.into_bytes()
}

/// Removes a directory and the files in it.
fn forget(parent: &Dir, name: &str) -> Result<()> {
    let Some(dir) = parent.dir(name)? else { return Ok(()) };
    for (file, _) in dir.list()? {
        dir.remove(&file)?;
    }
    parent.remove_dir(name)
}

fn forget_incoming(incoming: &Dir, id: &str) -> Result<()> {
    if let Some(dir) = incoming.dir(id)? {
        forget(&dir, NEW)?;
    }
    incoming.remove_dir(id)
}

/// Passes a reader's bytes on. Returns their hash, their number, and the number of lines if they are text.
fn examine(from: &mut dyn Read, to: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<(Digest, u64, Option<u64>)> {
    let mut text = TextCheck { text: true, lines: 0, rest: Vec::new() };
    let (sha256, size) = pump(from, &mut |piece| {
        text.see(piece);
        to(piece)
    })?;
    Ok((sha256, size, text.lines()))
}

/// Reads a content from its beginning. Returns its hash, its size, and the number of lines if it is text.
pub fn read_content(file: &mut File) -> Result<(Digest, u64, Option<u64>)> {
    file.rewind().map_err(|e| Error::system("cannot read the content", e))?;
    examine(file, &mut |_| Ok(()))
}

/// Reads a content and passes its bytes on. Returns their hash.
pub fn hash_content(file: &mut File, to: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Digest> {
    pump(file, to).map(|(hash, _)| hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_recognized_wherever_the_pieces_end() {
        let check = |bytes: &[u8], piece: usize| {
            let mut check = TextCheck { text: true, lines: 0, rest: Vec::new() };
            bytes.chunks(piece).for_each(|piece| check.see(piece));
            check.lines()
        };
        for piece in 1..6 {
            assert_eq!(check("内省\nする\n".as_bytes(), piece), Some(2));
            assert_eq!(check(b"a\0b\n", piece), None);
            assert_eq!(check(b"\xff\xfe", piece), None);
            assert_eq!(check("内".as_bytes().split_last().unwrap().1, piece), None);
            assert_eq!(check(b"", piece), Some(0));
        }
    }
}
