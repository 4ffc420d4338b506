//! Opening LMDB, which is unsafe, and what makes it sound.
//!
//! LMDB maps its file and trusts the content, so a file must not be mapped unless LMDB itself wrote it last. A seal next
//! to it says what the file looked like after the last merge (inode, size, change time); if it differs, it is not opened.
//! Our own lock (`index/.lock`) separates writers and readers, because LMDB's lock file ties readers to process ids.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn, WithoutTls};
use serde::{Deserialize, Serialize};

use super::super::files::Dir;
use super::INDEX;
use crate::base::{Error, Result};

const DATA: &str = "data.mdb";
const LOCK: &str = ".lock";
const SEAL: &str = "seal.json";
/// The maximum size of the map; only the used part takes memory or disk space.
const MAP_BYTES: usize = 64 << 30;
/// The same where address space is limited.
const SMALL_MAP_BYTES: usize = 1 << 30;

/// The directory and files of the index.
pub struct IndexFiles {
    dir: Dir,
}

/// What the data file must look like to be opened. There is no seal during a merge: a store whose merge was interrupted
/// cannot be distinguished from a damaged one and is rebuilt.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seal {
    inode: u64,
    size: u64,
    changed_at: (i64, i64),
}

impl Seal {
    fn of_file(file: &File) -> std::io::Result<Seal> {
        let meta = file.metadata()?;
        Ok(Seal { inode: meta.ino(), size: meta.size(), changed_at: (meta.ctime(), meta.ctime_nsec()) })
    }
}

impl IndexFiles {
    /// Opens the directory, if it exists.
    pub fn open(akashic: &Dir) -> Result<Option<IndexFiles>> {
        Ok(akashic.dir(INDEX)?.map(|dir| IndexFiles { dir }))
    }

    /// Opens the directory, creating it if it is missing.
    pub fn make(akashic: &Dir) -> Result<IndexFiles> {
        let (dir, _) = akashic.make_dir(INDEX)?;
        dir.check_private()?;
        dir.make_file(LOCK)?;
        Ok(IndexFiles { dir })
    }

    pub fn lock_file(&self) -> Result<Option<File>> {
        self.dir.open_file(LOCK)
    }

    /// Opens the store, if it is unchanged since its last merge.
    pub fn open_to_read(&self) -> Option<IndexStore> {
        self.is_sealed().then(|| self.store(EnvFlags::READ_ONLY))?.ok()
    }

    /// Opens the store for a merge, empty if there is none that can be trusted. The caller holds the index's lock
    /// exclusively.
    pub fn open_to_write(&self) -> Result<IndexStore> {
        if !self.is_sealed() {
            self.clear()?;
        }
        self.dir.remove(SEAL)?;
        self.dir.make_file(DATA)?;
        self.store(EnvFlags::empty()).map_err(|e| Error::system("cannot open the index", e))
    }

    /// Marks the data file as complete. The store must be closed.
    pub fn seal(&self) -> Result<()> {
        let Some(data) = self.dir.open_file(DATA)? else { return Ok(()) };
        let seal = Seal::of_file(&data).map_err(|e| Error::system("cannot seal the index", e))?;
        self.dir.replace(SEAL, &serde_json::to_vec(&seal).expect("a plain struct"))
    }

    /// Removes the store without opening it.
    pub fn clear(&self) -> Result<()> {
        self.dir.remove(SEAL)?;
        self.dir.remove(DATA)
    }

    fn is_sealed(&self) -> bool {
        let sealed = || -> Option<bool> {
            let seal: Seal = serde_json::from_slice(&self.dir.read(SEAL).ok()??).ok()?;
            // Anyone else who can write the file could change it while it is mapped, or could have forged it.
            self.dir.check_private().ok()?;
            self.dir.check_file_private(DATA).ok()?;
            let data = self.dir.open_file(DATA).ok()??;
            Some(Seal::of_file(&data).ok()? == seal && reaches_its_last_page(&data)?)
        };
        sealed().unwrap_or(false)
    }

    #[expect(unsafe_code, reason = "a memory map is sound only if nothing else changes the file")]
    fn store(&self, mode: EnvFlags) -> heed::Result<IndexStore> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        let mut open = |bytes: usize| {
            options.map_size(bytes);
            // SAFETY: the file is ours (private directory, no link) and unchanged since we wrote it (`is_sealed`).
            // Writers hold `index/.lock` exclusively and readers hold it shared, which is all that NO_LOCK requires.
            unsafe {
                options.flags(EnvFlags::NO_LOCK | mode);
                options.open(self.dir.path())
            }
        };
        let env = open(MAP_BYTES).or_else(|_| open(SMALL_MAP_BYTES))?;
        let db = if mode.contains(EnvFlags::READ_ONLY) {
            let opened = env.open_databases_and_commit(env.read_txn()?, |opener, txn| {
                Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit(
                    opener.database_options().types::<Bytes, Bytes>().open(txn)?,
                ))
            })?;
            opened.unwrap_commit().ok_or(heed::Error::Mdb(heed::MdbError::NotFound))?
        } else {
            let created = env.create_databases_and_commit(env.write_txn()?, |opener, txn| {
                opener.create_database::<Bytes, Bytes>(txn, None).map(CommitOrAbort::<_, ()>::Commit)
            })?;
            created.unwrap_commit()
        };
        Ok(IndexStore { env, db })
    }
}

/// Whether the file is as long as its newer meta page says: a map has no memory beyond the end of the file.
fn reaches_its_last_page(data: &File) -> Option<bool> {
    const MAGIC: u32 = 0xBEEF_C0DE;
    const META_AT: usize = 16;
    let mut page_bytes = 4096u64;
    let mut newest: Option<(u64, u64)> = None;
    for page in 0..2 {
        let mut meta = [0; 152];
        data.read_exact_at(&mut meta, page * page_bytes).ok()?;
        let number = |at: usize| u64::from_le_bytes(meta[at..at + 8].try_into().expect("eight bytes"));
        let word = |at: usize| u32::from_le_bytes(meta[at..at + 4].try_into().expect("four bytes"));
        if word(META_AT) != MAGIC {
            return Some(false);
        }
        page_bytes = u64::from(word(META_AT + 24));
        let (last_page, txn) = (number(136), number(144));
        newest = newest.max(Some((txn, last_page)));
    }
    let (_, last_page) = newest?;
    Some(data.metadata().ok()?.len() >= last_page.checked_add(1)?.checked_mul(page_bytes)?)
}

/// An open LMDB environment with its one database.
#[derive(Clone, Debug)]
pub struct IndexStore {
    env: Env<WithoutTls>,
    db: Database<'static, Bytes, Bytes>,
}

impl IndexStore {
    pub fn read(&self) -> heed::Result<RoTxn<'static, WithoutTls>> {
        self.env.clone().static_read_txn()
    }

    pub fn write(&self) -> heed::Result<RwTxn<'_>> {
        self.env.write_txn()
    }

    pub fn get<'t>(&self, txn: &'t RoTxn<'_, WithoutTls>, key: &[u8]) -> heed::Result<Option<&'t [u8]>> {
        self.db.get(txn, key)
    }

    pub fn put(&self, txn: &mut RwTxn<'_>, key: &[u8], value: &[u8]) -> heed::Result<()> {
        self.db.put(txn, key, value)
    }

    pub fn delete(&self, txn: &mut RwTxn<'_>, key: &[u8]) -> heed::Result<bool> {
        self.db.delete(txn, key)
    }

    /// Up to `limit` pairs whose key starts with `prefix` and is greater than `after`, in order.
    pub fn range<'t>(
        &self,
        txn: &'t RoTxn<'_, WithoutTls>,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> heed::Result<Vec<(&'t [u8], &'t [u8])>> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let from = match after {
            Some(after) if after >= prefix => Excluded(after),
            _ => Included(prefix),
        };
        let pairs = self.db.range(txn, &(from, Unbounded))?;
        pairs.take_while(|pair| pair.as_ref().map_or(true, |(key, _)| key.starts_with(prefix))).take(limit).collect()
    }

    /// Up to `limit` pairs whose key starts with `prefix`, in order, until a key is not wanted.
    pub fn range_while<'t>(
        &self,
        txn: &'t RoTxn<'_, WithoutTls>,
        prefix: &[u8],
        limit: usize,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> heed::Result<Vec<(&'t [u8], &'t [u8])>> {
        use std::ops::Bound::{Included, Unbounded};
        let pairs = self.db.range(txn, &(Included(prefix), Unbounded))?;
        let fits = |key: &[u8]| key.starts_with(prefix) && wanted(key);
        pairs.take_while(|pair| pair.as_ref().map_or(true, |(key, _)| fits(key))).take(limit).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_store_that_others_can_write_is_not_mapped() {
        let dir = tempfile::tempdir().unwrap();
        let files = IndexFiles::make(&Dir::open_root(dir.path()).unwrap().unwrap()).unwrap();
        drop(files.open_to_write().unwrap());
        files.seal().unwrap();
        assert!(files.open_to_read().is_some());
        let index_dir = dir.path().join(INDEX);
        std::fs::set_permissions(&index_dir, std::fs::Permissions::from_mode(0o770)).unwrap();
        assert!(files.open_to_read().is_none());
    }
}
