//! `Autonomous/`: the files that agents of a workflow read. All except `CHECKPOINTS.md` can be rebuilt from the log.
//!
//! The format of `M1.md` has no room for a checksum, so the hashes of the new and the previous content are written to
//! `Akashic/m1.json` first: whenever a writer is killed, the file is one of the two. A file that is neither, and not the
//! expected content either, was edited by someone else.

use std::io::{Read, Seek, SeekFrom, Write};

use serde::{Deserialize, Serialize};

use super::Vault;
use super::files::{self, Dir};
use crate::base::{Digest, Result, Timestamp, seal};

const AUTONOMOUS: &str = "Autonomous";
const STATE: &str = "state";
const REVIEWS: &str = "reviews";
const M1: &str = "M1.md";
const M1_SEAL: &str = "m1.json";
/// A larger file is not one of ours.
const FILE_MAX_BYTES: u64 = 64 * 1024;

/// The hashes in `m1.json`.
#[derive(Serialize, Deserialize)]
struct M1Record {
    sha256: String,
    /// The hash of the content that it replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
}

/// The content of `M1.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum M1File {
    /// As expected.
    Current,
    /// Missing, or an earlier content of ours.
    Old,
    /// Something that we did not write.
    Edited,
}

impl Vault {
    fn autonomous(&self, name: &str) -> Result<Dir> {
        self.check_private()?;
        let (autonomous, made) = self.root.make_dir(AUTONOMOUS)?;
        if made {
            self.root.sync()?;
        }
        let (dir, made) = autonomous.make_dir(name)?;
        if made {
            autonomous.sync()?;
        }
        Ok(dir)
    }

    /// Appends to a file of `state/`, durably.
    pub fn append_state(&self, name: &str, text: &str) -> Result<()> {
        let state = self.autonomous(STATE)?;
        let (mut file, made) = state.make_file(name)?;
        let wrong = |e| files::failed("write", &state.path().join(name), e);
        file.seek(SeekFrom::End(0)).and_then(|_| file.write_all(text.as_bytes())).map_err(wrong)?;
        file.sync_data().map_err(wrong)?;
        if made { state.sync() } else { Ok(()) }
    }

    /// Compares `M1.md` with its expected content.
    pub fn look_at_m1(&self, wanted: Option<&str>) -> Result<M1File> {
        Ok(match (self.read_m1()?, wanted) {
            (None, None) => M1File::Current,
            (Some(found), Some(wanted)) if found == wanted.as_bytes() => M1File::Current,
            (None, Some(_)) => M1File::Old,
            (Some(found), _) => match self.is_ours(&Digest::of_bytes(&found).to_string())? {
                true => M1File::Old,
                false => M1File::Edited,
            },
        })
    }

    /// The beginning of `M1.md`, which is the whole file if it is ours.
    fn read_m1(&self) -> Result<Option<Vec<u8>>> {
        let state = self.root.dir(AUTONOMOUS)?.map(|autonomous| autonomous.dir(STATE)).transpose()?.flatten();
        let Some(file) = state.as_ref().map(|state| state.open_file(M1)).transpose()?.flatten() else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let read = file.take(FILE_MAX_BYTES).read_to_end(&mut bytes);
        read.map_err(|e| files::failed("read", &self.path.join(AUTONOMOUS).join(STATE).join(M1), e))?;
        Ok(Some(bytes))
    }

    fn m1_record(&self) -> Result<Option<M1Record>> {
        Ok(self.akashic.read(M1_SEAL)?.and_then(|bytes| seal::open(&bytes).ok()))
    }

    /// Whether we wrote a content of `M1.md` with this hash.
    fn is_ours(&self, sha256: &str) -> Result<bool> {
        let record = self.m1_record()?;
        Ok(record.is_some_and(|record| record.sha256 == sha256 || record.before.as_deref() == Some(sha256)))
    }

    /// Rewrites `M1.md`. Its current content must be ours, or have been set aside.
    pub fn put_m1(&self, text: &str) -> Result<()> {
        let before = self.read_m1()?.map(|found| Digest::of_bytes(&found).to_string());
        let sha256 = Digest::of_bytes(text.as_bytes()).to_string();
        let state = self.autonomous(STATE)?;
        self.akashic.replace(M1_SEAL, &seal::seal(&M1Record { sha256, before }))?;
        state.put(M1, text.as_bytes())
    }

    /// Records the hash of the current content of `M1.md`.
    pub fn seal_m1(&self, text: &str) -> Result<()> {
        let sha256 = Digest::of_bytes(text.as_bytes()).to_string();
        match self.is_ours(&sha256)? {
            true => Ok(()),
            false => self.akashic.replace(M1_SEAL, &seal::seal(&M1Record { sha256, before: None })),
        }
    }

    /// Renames `M1.md` to a free name and returns the new path.
    pub fn set_m1_aside(&self, now: Timestamp) -> Result<String> {
        let state = self.autonomous(STATE)?;
        let time = now.to_string().replace(['-', ':'], "");
        let mut name = format!("M1.aside-{time}.md");
        let mut n = 2;
        while state.open_file(&name)?.is_some() {
            name = format!("M1.aside-{time}_{n}.md");
            n += 1;
        }
        state.rename(M1, &name)?;
        state.sync()?;
        Ok(format!("{AUTONOMOUS}/{STATE}/{name}"))
    }

    /// Whether the file of a review exists.
    pub fn has_review(&self, id: &str) -> Result<bool> {
        let reviews = self.root.dir(AUTONOMOUS)?.map(|autonomous| autonomous.dir(REVIEWS)).transpose()?.flatten();
        Ok(reviews.map(|reviews| reviews.open_file(&format!("{id}.md"))).transpose()?.flatten().is_some())
    }

    /// Writes a review. Returns its path, relative to `Autonomous/`.
    pub fn put_review(&self, id: &str, text: &str) -> Result<String> {
        self.autonomous(REVIEWS)?.put(&format!("{id}.md"), text.as_bytes())?;
        Ok(review_path(id))
    }
}

/// The path of a review, relative to `Autonomous/`.
pub fn review_path(id: &str) -> String {
    format!("{REVIEWS}/{id}.md")
}
