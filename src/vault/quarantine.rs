//! `Akashic/quarantine/`: bytes that were cut off the log. No file in it is ever changed or removed.
//!
//! | file | contents |
//! |---|---|
//! | `tail-…` | an unfinished write |
//! | `damage-…` | damaged bytes |
//! | `<event id>.jsonl` | intact lines after damage, byte for byte, named after the first one |
//! | `snapshot-….json` | the latest snapshot, if it is of an event that was cut off |
//!
//! A name follows from the content, so that repeating an interrupted recovery makes no second copy.

use std::io::{BufRead, BufReader};

use super::files::{Dir, failed};
use super::snapshot::Visited;
use super::{Vault, layout};
use crate::base::{Digest, Result};
use crate::chain::check_line;
use crate::event::Event;

/// The end of the name of a file with intact lines.
pub(super) const LINES: &str = ".jsonl";

/// The directory, to keep something in it or to see under which name it would be kept.
#[derive(Debug)]
pub(super) struct Quarantine {
    dir: Option<Dir>,
    is_dry_run: bool,
}

impl Quarantine {
    /// Opens the directory, creating it if it is missing.
    pub fn make(vault: &Vault) -> Result<Self> {
        let (dir, made) = vault.akashic.make_dir(layout::QUARANTINE)?;
        if made {
            vault.akashic.sync()?;
        }
        dir.sweep()?;
        Ok(Quarantine { dir: Some(dir), is_dry_run: false })
    }

    /// The directory for a dry run, which keeps nothing.
    pub fn dry_run(vault: &Vault) -> Result<Self> {
        Ok(Quarantine { dir: vault.akashic.dir(layout::QUARANTINE)?, is_dry_run: true })
    }

    /// Keeps these bytes durably. Returns the name of their file.
    pub fn keep(&self, stem: &str, ending: &str, bytes: &[u8]) -> Result<String> {
        let name = self.name_for(stem, ending, bytes)?;
        match &self.dir {
            Some(dir) if !self.is_dry_run => dir.put(&name, bytes).map(|()| name),
            _ => Ok(name),
        }
    }

    /// A name that is not used, or whose file has the same content.
    fn name_for(&self, stem: &str, ending: &str, bytes: &[u8]) -> Result<String> {
        let name = format!("{stem}{ending}");
        let used = self.read(&name)?.is_some_and(|kept| kept != bytes);
        Ok(if used { format!("{stem}-{}{ending}", &Digest::of_bytes(bytes).hex()[..8]) } else { name })
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        self.dir.as_ref().map_or(Ok(None), |dir| dir.read(name))
    }

    /// Whether one of these files contains these bytes.
    pub fn has<'a>(&self, files: impl Iterator<Item = &'a str>, bytes: &[u8]) -> Result<bool> {
        for name in files {
            if self.read(name)?.is_some_and(|kept| memchr::memmem::find(&kept, bytes).is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Vault {
    /// Visits the intact lines in quarantine, each with the name of its file. Returns a warning for each file that cannot
    /// be read, in whole or in part.
    pub fn quarantined(&self, visit: &mut dyn FnMut(Event, &[u8], &str) -> Visited) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        let Some(dir) = self.akashic.dir(layout::QUARANTINE)? else { return Ok(warnings) };
        for (name, _) in dir.list()?.iter().filter(|(name, _)| name.ends_with(LINES)) {
            let file = match dir.open_file(name) {
                Ok(Some(file)) => file,
                Ok(None) => continue,
                Err(error) => {
                    warnings.push(error.message);
                    continue;
                }
            };
            let (mut reader, mut line, mut unreadable) = (BufReader::with_capacity(64 * 1024, file), Vec::new(), 0);
            loop {
                line.clear();
                let read =
                    reader.read_until(b'\n', &mut line).map_err(|e| failed("read", &dir.path().join(name), e))?;
                if read == 0 {
                    break;
                }
                let text = line.strip_suffix(b"\n").unwrap_or(&line);
                let Ok(event) = check_line(text) else {
                    unreadable += 1;
                    continue;
                };
                if visit(event, text, name)?.is_break() {
                    return Ok(warnings);
                }
            }
            if unreadable > 0 {
                let lines = crate::base::text::count_noun(unreadable, "line");
                warnings.push(format!("{lines} of quarantine/{name} cannot be read any more"));
            }
        }
        Ok(warnings)
    }
}
