//! `Artifacts/<id>/content.*` and `manifest.json`: contents that are too large for an event.
//!
//! A content is streamed into `.incoming/<id>/new/`, hashed on the way, and takes its name only when it is
//! whole and synced. The same content again is a second name for the same bytes.
//!
//! `.incoming/<id>` is held locked by whoever brings the content, and goes when its event is recorded. One
//! that nobody holds was left by somebody who died: the next one to store something removes it, with the
//! content if the log does not know it.

use std::fs::File;
use std::io::{Read, Write};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Vault;
use super::files::{Dir, failed};
use crate::base::{Digest, Error, Result};

pub const ARTIFACTS: &str = "Artifacts";
const MANIFEST: &str = "manifest.json";
const INCOMING: &str = ".incoming";
/// What will take its place, in the folder of an incoming content.
const NEW: &str = "new";
/// Bytes that are held at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// A content that was taken in and has no name yet.
#[derive(Debug)]
pub struct Incoming {
    id: String,
    pub filename: String,
    pub sha256: Digest,
    pub size_bytes: u64,
    /// How many lines, if it is text.
    pub lines: Option<u64>,
    /// Its folder, locked.
    folder: Dir,
}

/// Hands a reader's bytes on in pieces. Gives their hash and count.
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

/// Whether bytes are text, told from the pieces as they come: UTF-8 without NUL.
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

impl Vault {
    /// Streams a content in, to be kept under this id.
    pub fn take_in(&self, id: &str, filename: &str, from: &mut dyn Read) -> Result<Incoming> {
        self.check_private()?;
        let (artifacts, _) = self.root.make_dir(ARTIFACTS)?;
        artifacts.check_private()?;
        let (incoming, _) = artifacts.make_dir(INCOMING)?;
        let (folder, _) = incoming.make_dir(id)?;
        folder.try_lock()?;
        let taken = folder.make_dir(NEW).and_then(|(new, _)| self.write_content(&new, filename, from));
        match taken {
            Ok((sha256, size_bytes, lines)) => {
                Ok(Incoming { id: id.to_owned(), filename: filename.to_owned(), sha256, size_bytes, lines, folder })
            }
            Err(error) => {
                // Best effort: the error that matters is the first one.
                let _ = forget_incoming(&incoming, id);
                Err(error)
            }
        }
    }

    fn write_content(&self, folder: &Dir, name: &str, from: &mut dyn Read) -> Result<(Digest, u64, Option<u64>)> {
        let (mut file, _) = folder.make_file(name)?;
        let wrong = |doing: &str, e| failed(doing, &folder.path().join(name), e);
        let mut text = TextCheck { text: true, lines: 0, rest: Vec::new() };
        let (sha256, size) = pump(from, &mut |piece| {
            text.see(piece);
            file.write_all(piece).map_err(|e| wrong("write", e))
        })?;
        file.sync_all().map_err(|e| wrong("sync", e))?;
        Ok((sha256, size, text.lines()))
    }

    /// Gives a content its name, with its manifest. `same` is an artifact that has these bytes already:
    /// then they are kept once.
    pub fn keep(&self, incoming: &Incoming, manifest: &Value, same: Option<(&str, &str)>) -> Result<()> {
        let artifacts = self.artifacts()?;
        let gone = || Error::system("cannot keep the content", "it is gone");
        let dir = incoming.folder.dir(NEW)?.ok_or_else(gone)?;
        if let Some((id, filename)) = same
            && let Some(other) = artifacts.dir(id)?
        {
            // A file system without hard links keeps two copies.
            let _ = dir.replace_by_link(&other, filename, &incoming.filename);
        }
        let mut text = serde_json::to_string_pretty(manifest).expect("a JSON value");
        text.push('\n');
        dir.put(MANIFEST, text.as_bytes())?;
        incoming.folder.move_to(NEW, &artifacts, &incoming.id)?;
        artifacts.sync()
    }

    /// Says that the event of a content is recorded. If it cannot be said, the next one finds out.
    pub fn settle(&self, incoming: &Incoming) {
        let _ =
            self.incoming().and_then(|folder| folder.map_or(Ok(()), |folder| forget_incoming(&folder, &incoming.id)));
    }

    /// Removes what was taken in and is not wanted after all, kept already or not.
    pub fn discard(&self, incoming: &Incoming) -> Result<()> {
        forget(&self.artifacts()?, &incoming.id)?;
        self.incoming()?.map_or(Ok(()), |folder| forget_incoming(&folder, &incoming.id))
    }

    /// Removes what was left by those who died. The caller holds the vault's lock, so `is_recorded` is the last word.
    pub fn sweep_incoming(&self, is_recorded: &dyn Fn(&str) -> bool) -> Result<()> {
        let Some(incoming) = self.incoming()? else { return Ok(()) };
        for (id, is_dir) in incoming.list()? {
            let Some(folder) = incoming.dir(&id)?.filter(|_| is_dir) else { continue };
            if !folder.try_lock()? {
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

    /// The file of a content; nothing if it is gone.
    pub fn content(&self, id: &str, filename: &str) -> Result<Option<File>> {
        match self.root.dir(ARTIFACTS)?.map(|dir| dir.dir(id)).transpose()?.flatten() {
            Some(dir) => dir.open_file(filename),
            None => Ok(None),
        }
    }
}

/// Removes a folder of files.
fn forget(parent: &Dir, name: &str) -> Result<()> {
    let Some(dir) = parent.dir(name)? else { return Ok(()) };
    for (file, _) in dir.list()? {
        dir.remove(&file)?;
    }
    parent.remove_dir(name)
}

fn forget_incoming(incoming: &Dir, id: &str) -> Result<()> {
    if let Some(folder) = incoming.dir(id)? {
        forget(&folder, NEW)?;
    }
    incoming.remove_dir(id)
}

/// Reads a content through, handing its bytes on. Gives their hash.
pub fn hash_content(file: &mut File, to: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<Digest> {
    pump(file, to).map(|(hash, _)| hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_apart_wherever_the_pieces_end() {
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
