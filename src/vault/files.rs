//! Files of the vault, opened relative to their directory and never through a symbolic link.
//!
//! Invariant: no function here follows a symbolic link, whatever the name (`a_symlink_inside_the_vault_is_refused`).

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::sabotage::{Sabotage, leaves_out};
use crate::base::{Error, Reason, Result};

const DIR_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// What others may do with new files in a tree that is not private is up to the umask.
const SHARED_DIR_MODE: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);
const SHARED_FILE_MODE: Mode = Mode::from_raw_mode(0o666);
/// Write permission for group or others, which nothing in a vault may have.
const OTHERS_WRITE: u32 = 0o022;
/// In a directory with this bit, only the owner of a file can rename or remove it.
const STICKY: u32 = 0o1000;
const ROOT: u32 = 0;
/// A sweep takes a new directory in the moment before it is locked; this often in a row it does not happen.
const MAKE_LOCKED_TRIES: u32 = 100;

/// Whether a file is on the disk before it gets its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    Synced,
    Unsynced,
}

/// What is under a name.
#[derive(Clone, Debug)]
pub struct Entry {
    file_type: FileType,
    pub uid: u32,
    /// Whether it is also under another name.
    pub has_other_names: bool,
    /// Its device, and its number there.
    pub number: String,
    /// When it was last changed in any way, in nanoseconds since 1970; nobody can set this.
    pub changed_ns: i128,
}

impl Entry {
    pub fn is_dir(&self) -> bool {
        self.file_type == FileType::Directory
    }

    /// Its type in words.
    pub fn type_name(&self) -> &'static str {
        match self.file_type {
            FileType::RegularFile => "a file",
            FileType::Directory => "a directory",
            FileType::Symlink => "a symbolic link",
            FileType::Fifo => "a named pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Unknown => "something",
        }
    }
}

/// An open directory. The path is only for messages.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: PathBuf,
    /// Whether new files in it are for this user alone.
    privacy: Privacy,
}

/// Whom new files are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Privacy {
    Private,
    /// For everybody whom the umask lets in: the tree belongs to others, too.
    Shared,
}

impl Dir {
    /// Opens a directory by its path, following symbolic links: the path is the caller's choice.
    pub fn open_root(path: &Path) -> Result<Option<Dir>> {
        match sys::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(fd) => Ok(Some(Dir { fd, path: path.to_owned(), privacy: Privacy::Private })),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(e) => Err(failed("open", path, e)),
        }
    }

    /// The same for a tree in which new files are not private.
    pub fn open_shared_root(path: &Path) -> Result<Option<Dir>> {
        Ok(Dir::open_root(path)?.map(|root| Dir { privacy: Privacy::Shared, ..root }))
    }

    /// Opens a directory in this one.
    pub fn dir(&self, name: &str) -> Result<Option<Dir>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(self.openat(name, flags)?.map(|fd| Dir { fd, path: self.path.join(name), privacy: self.privacy }))
    }

    /// Opens a directory by its path in this one.
    pub fn dir_at(&self, path: &str) -> Result<Option<Dir>> {
        let mut names = path.split('/');
        let mut found = self.dir(names.next().unwrap_or_default())?;
        for name in names {
            found = match found {
                Some(dir) => dir.dir(name)?,
                None => return Ok(None),
            };
        }
        Ok(found)
    }

    /// Opens the directory of a file that is named by its path in this one. Returns also the file's name there.
    pub fn dir_of<'a>(&self, path: &'a str) -> Result<Option<(Dir, &'a str)>> {
        let (dir, name) = path.rsplit_once('/').unwrap_or((".", path));
        Ok(self.dir_at(dir)?.map(|dir| (dir, name)))
    }

    /// Its device, and its number there.
    pub fn number(&self) -> Result<String> {
        let stat = sys::fstat(&self.fd).map_err(|e| failed("stat", &self.path, e))?;
        Ok(number_of(&stat))
    }

    /// Moves a file to another directory.
    pub fn move_to(&self, name: &str, to: &Dir, to_name: &str) -> Result<()> {
        sys::renameat(&self.fd, name, &to.fd, to_name).map_err(|e| failed("rename", &self.path.join(name), e))
    }

    /// Opens a directory in this one, creating it if it is missing. Returns whether it was created.
    pub fn make_dir(&self, name: &str) -> Result<(Dir, bool)> {
        let mode = if self.privacy == Privacy::Private { DIR_MODE } else { SHARED_DIR_MODE };
        let made = match sys::mkdirat(&self.fd, name, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(e) => return Err(failed("create", &self.path.join(name), e)),
        };
        let dir = self.dir(name)?.ok_or_else(|| failed("open", &self.path.join(name), Errno::NOTDIR))?;
        Ok((dir, made))
    }

    /// Makes a directory in this one and keeps it locked as long as the value lives. A sweep of abandoned directories
    /// may remove the new one before it is locked; then it is made again.
    pub fn make_locked_dir(&self, name: &str) -> Result<Dir> {
        for _ in 0..MAKE_LOCKED_TRIES {
            match sys::mkdirat(&self.fd, name, DIR_MODE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(failed("create", &self.path.join(name), e)),
            }
            let Some(dir) = self.dir(name)? else { continue };
            // Only a sweep can hold it, and not for long.
            sys::flock(&dir.fd, sys::FlockOperation::LockExclusive).map_err(|e| failed("lock", &dir.path, e))?;
            let number = dir.number()?;
            if self.entry(name)?.is_some_and(|entry| entry.number == number) {
                return Ok(dir);
            }
        }
        Err(Error::system(format!("cannot make {}", self.path.join(name).display()), "it was removed again"))
    }

    /// Opens a file for reading.
    pub fn open_file(&self, name: &str) -> Result<Option<File>> {
        self.file(name, OFlags::RDONLY)
    }

    /// Opens a file for writing, if it exists.
    pub fn open_file_to_write(&self, name: &str) -> Result<Option<File>> {
        let file = self.file(name, OFlags::RDWR)?;
        if let Some(file) = &file {
            check_mode(file, &self.path.join(name))?;
        }
        Ok(file)
    }

    /// Opens a file for writing, creating it if it is missing. Returns whether it was created.
    pub fn make_file(&self, name: &str) -> Result<(File, bool)> {
        if let Some(file) = self.open_file_to_write(name)? {
            return Ok((file, false));
        }
        match self.file(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
            Ok(Some(file)) => Ok((file, true)),
            Ok(None) => Err(failed("create", &self.path.join(name), Errno::NOENT)),
            // Another process created it in the meantime.
            Err(e) => match self.open_file_to_write(name)? {
                Some(file) => Ok((file, false)),
                None => Err(e),
            },
        }
    }

    fn file(&self, name: &str, flags: OFlags) -> Result<Option<File>> {
        // NONBLOCK: opening a FIFO instead of a file must not block.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let Some(fd) = self.openat(name, flags)? else { return Ok(None) };
        let stat = sys::fstat(&fd).map_err(|e| failed("stat", &self.path.join(name), e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Error::refused(
                Reason::Symlink,
                format!("{} is not a regular file", self.path.join(name).display()),
            ));
        }
        Ok(Some(File::from(fd)))
    }

    fn openat(&self, name: &str, flags: OFlags) -> Result<Option<OwnedFd>> {
        let path = || self.path.join(name);
        let mode = if self.privacy == Privacy::Private { FILE_MODE } else { SHARED_FILE_MODE };
        match sys::openat(&self.fd, name, flags, mode) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(e @ (Errno::LOOP | Errno::NOTDIR | Errno::MLINK)) => {
                match sys::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => Err(Error::refused(
                        Reason::Symlink,
                        format!("{} is a symbolic link; a vault must not contain any", path().display()),
                    )),
                    _ => Err(failed("open", &path(), e)),
                }
            }
            Err(e) => Err(failed("open", &path(), e)),
        }
    }

    /// The beginning of a file, at most this many bytes.
    pub fn read_prefix(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(max_bytes as u64).read_to_end(&mut bytes).map_err(|e| failed("read", &self.path.join(name), e))?;
        Ok(Some(bytes))
    }

    /// What is under a name, whatever it is; nothing is opened.
    pub fn entry(&self, name: &str) -> Result<Option<Entry>> {
        match sys::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry {
                file_type: FileType::from_raw_mode(stat.st_mode),
                uid: stat.st_uid,
                has_other_names: stat.st_nlink > 1,
                number: number_of(&stat),
                changed_ns: i128::from(stat.st_ctime) * 1_000_000_000 + i128::from(stat.st_ctime_nsec),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(failed("stat", &self.path.join(name), e)),
        }
    }

    /// Creates an empty file under a name that is free. Returns whether it was.
    pub fn claim(&self, name: &str) -> Result<bool> {
        let mode = if self.privacy == Privacy::Private { FILE_MODE } else { SHARED_FILE_MODE };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match sys::openat(&self.fd, name, flags, mode) {
            Ok(_) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(e) => Err(failed("create", &self.path.join(name), e)),
        }
    }

    /// Creates a file under a name that is free, with this content if there is space for it.
    pub fn make_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let missing = || failed("create", &self.path.join(name), Errno::NOENT);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = self.file(name, flags)?.ok_or_else(missing)?;
        let _ = file.write_all(bytes).and_then(|()| file.sync_data());
        Ok(())
    }

    /// The same for a file that nobody sees before it has its whole content.
    pub fn put_new(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let beside = format!(".{name}.{}.tmp", std::process::id());
        let put = self.make_new(&beside, bytes).and_then(|()| {
            sys::renameat_with(&self.fd, &beside, &self.fd, name, RenameFlags::NOREPLACE)
                .map_err(|e| failed("rename", &self.path.join(&beside), e))
        });
        if put.is_err() {
            // Best effort: the first error is the one that matters.
            let _ = self.remove(&beside);
        }
        put
    }

    /// Gives a file in this directory a second name.
    pub fn link(&self, from: &str, to: &str) -> Result<()> {
        sys::linkat(&self.fd, from, &self.fd, to, AtFlags::empty()).map_err(|e| failed("link", &self.path.join(to), e))
    }

    /// The whole content of a file.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(mut file) = self.open_file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|e| failed("read", &self.path.join(name), e))?;
        Ok(Some(bytes))
    }

    /// The content of a file that nobody else can write to. It is opened once and judged by that descriptor, so what was
    /// judged is what is read.
    pub fn read_private(&self, name: &str, max_bytes: u64) -> Result<Option<Vec<u8>>> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        let path = self.path.join(name);
        check_mode(&file, &path)?;
        let mut bytes = Vec::new();
        file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|e| failed("read", &path, e))?;
        match bytes.len() as u64 > max_bytes {
            true => {
                Err(Error::usage(format!("{} is too large; at most {max_bytes} bytes are allowed", path.display())))
            }
            false => Ok(Some(bytes)),
        }
    }

    /// The permissions of a file.
    pub fn mode_of(&self, name: &str) -> Result<Option<Mode>> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        let stat = sys::fstat(&file).map_err(|e| failed("stat", &self.path.join(name), e))?;
        Ok(Some(Mode::from_raw_mode(stat.st_mode)))
    }

    /// Changes the permissions of a file.
    pub fn set_mode(&self, name: &str, mode: Mode) -> Result<()> {
        let path = self.path.join(name);
        let file = self.open_file(name)?.ok_or_else(|| failed("open", &path, Errno::NOENT))?;
        sys::fchmod(&file, mode).map_err(|e| failed("change the mode of", &path, e))
    }

    /// Writes a whole file durably: to a temporary file, synced and renamed, then the directory synced.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_by_rename(name, bytes, Durability::Synced)?;
        self.sync()
    }

    /// The same for a file that can be rebuilt: complete for every reader, but not synced.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put_by_rename(name, bytes, Durability::Unsynced)
    }

    fn put_by_rename(&self, name: &str, bytes: &[u8], durability: Durability) -> Result<()> {
        let beside = format!(".{name}.tmp");
        let put = || -> Result<()> {
            let missing = || failed("create", &self.path.join(&beside), Errno::NOENT);
            let mut file = self.file(&beside, OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)?.ok_or_else(missing)?;
            file.write_all(bytes).map_err(|e| failed("write", &self.path.join(name), e))?;
            if durability == Durability::Synced {
                file.sync_all().map_err(|e| failed("sync", &self.path.join(name), e))?;
            }
            sys::renameat(&self.fd, &beside, &self.fd, name).map_err(|e| failed("rename", &self.path.join(name), e))
        };
        let result = put();
        if result.is_err() {
            // Best effort: the first error is the one that matters.
            let _ = self.remove(&beside);
        }
        result
    }

    /// Removes temporary files left by a process that died. Only for directories with one writer at a time.
    pub fn sweep(&self) -> Result<()> {
        for (name, _) in self.list()?.iter().filter(|(name, _)| name.starts_with('.') && name.ends_with(".tmp")) {
            self.remove(name)?;
        }
        Ok(())
    }

    /// Removes a file if it exists.
    pub fn remove(&self, name: &str) -> Result<()> {
        match sys::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(failed("remove", &self.path.join(name), e)),
        }
    }

    /// Removes an empty directory if it exists.
    pub fn remove_dir(&self, name: &str) -> Result<()> {
        match sys::unlinkat(&self.fd, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(failed("remove", &self.path.join(name), e)),
        }
    }

    /// Renames a file or directory in this directory.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        sys::renameat(&self.fd, from, &self.fd, to).map_err(|e| failed("rename", &self.path.join(from), e))
    }

    /// Replaces a file by a hard link to a file elsewhere.
    pub fn replace_by_link(&self, from: &Dir, from_name: &str, name: &str) -> Result<()> {
        let beside = format!(".{name}.tmp");
        self.remove(&beside)?;
        sys::linkat(&from.fd, from_name, &self.fd, &beside, AtFlags::empty())
            .map_err(|e| failed("link", &self.path.join(name), e))?;
        self.rename(&beside, name)
    }

    /// The names in this directory, sorted, each with whether it is a directory. Symbolic links are refused. Names that
    /// are not UTF-8 are not ours and are skipped.
    pub fn list(&self) -> Result<Vec<(String, bool)>> {
        Ok(self.list_all(&|_| false)?.into_iter().filter_map(|(name, is_dir)| Some((name?, is_dir))).collect())
    }

    /// The same, with `None` for each name that is not UTF-8, and without the names to leave out, whatever they are.
    pub fn list_all(&self, is_left_out: &dyn Fn(&str) -> bool) -> Result<Vec<(Option<String>, bool)>> {
        let mut names = Vec::new();
        for entry in sys::Dir::read_from(&self.fd).map_err(|e| failed("read", &self.path, e))? {
            let entry = entry.map_err(|e| failed("read", &self.path, e))?;
            let Ok(name) = entry.file_name().to_str() else {
                names.push((None, false));
                continue;
            };
            if name == "." || name == ".." || is_left_out(name) {
                continue;
            }
            let kind = self.type_of(name, entry.file_type())?;
            if kind == FileType::Symlink {
                return Err(Error::refused(
                    Reason::Symlink,
                    format!("{} is a symbolic link; a vault must not contain any", self.path.join(name).display()),
                ));
            }
            names.push((Some(name.to_owned()), kind == FileType::Directory));
        }
        names.sort();
        Ok(names)
    }

    /// The names in this directory, sorted, each with its type. Names that are not UTF-8 are skipped.
    pub fn list_types(&self) -> Result<Vec<(String, FileType)>> {
        let mut names = Vec::new();
        for entry in sys::Dir::read_from(&self.fd).map_err(|e| failed("read", &self.path, e))? {
            let entry = entry.map_err(|e| failed("read", &self.path, e))?;
            let Some(name) = entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | "..")) else {
                continue;
            };
            names.push((name.to_owned(), self.type_of(name, entry.file_type())?));
        }
        names.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    }

    /// The type of an entry that was listed with this type.
    fn type_of(&self, name: &str, listed: FileType) -> Result<FileType> {
        match listed {
            FileType::Unknown => sys::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)
                .map(|stat| FileType::from_raw_mode(stat.st_mode))
                .map_err(|e| failed("stat", &self.path.join(name), e)),
            known => Ok(known),
        }
    }

    /// Makes the names in this directory durable.
    pub fn sync(&self) -> Result<()> {
        if leaves_out(Sabotage::DirectorySync) {
            return Ok(());
        }
        sys::fsync(&self.fd).map_err(|e| failed("sync", &self.path, e))
    }

    /// Locks the directory itself as long as this value lives. Returns whether the lock was free.
    pub fn try_lock(&self) -> Result<bool> {
        match sys::flock(&self.fd, sys::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(e) => Err(failed("lock", &self.path, e)),
        }
    }

    /// Refuses a directory that belongs to another user or that others can write to.
    pub fn check_private(&self) -> Result<()> {
        check_mode(&self.fd, &self.path)
    }

    /// Refuses a directory that belongs to another user.
    pub fn check_owner(&self) -> Result<()> {
        let stat = sys::fstat(&self.fd).map_err(|e| failed("stat", &self.path, e))?;
        check_owner_of(&stat, &self.path)
    }

    /// Refuses a directory in which others could replace a file of this user: one that belongs to neither this user nor
    /// root, or that others can write to and that has no sticky bit.
    pub fn check_guarded(&self) -> Result<()> {
        let stat = sys::fstat(&self.fd).map_err(|e| failed("stat", &self.path, e))?;
        let me = rustix::process::geteuid().as_raw();
        if ![me, ROOT].contains(&stat.st_uid) {
            let why = format!("{} belongs to user {}, not to user {me}", self.path.display(), stat.st_uid);
            return Err(Error::refused(Reason::NotOwner, why));
        }
        match stat.st_mode & OTHERS_WRITE != 0 && stat.st_mode & STICKY == 0 {
            true => Err(Error::refused(Reason::NotPrivate, writable(&self.path, stat.st_mode))),
            false => Ok(()),
        }
    }

    /// The user that the directory belongs to, if it is not this one.
    pub fn other_owner(&self) -> Option<u32> {
        let owner = sys::fstat(&self.fd).ok()?.st_uid;
        (owner != rustix::process::geteuid().as_raw()).then_some(owner)
    }

    /// Makes an existing directory private.
    pub fn make_private(&self) -> Result<()> {
        sys::fchmod(&self.fd, DIR_MODE).map_err(|e| failed("change the mode of", &self.path, e))
    }

    /// The same check for a file in it.
    pub fn check_file_private(&self, name: &str) -> Result<()> {
        match self.open_file(name)? {
            Some(file) => check_mode(&file, &self.path.join(name)),
            None => Ok(()),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn number_of(stat: &sys::Stat) -> String {
    format!("{}:{}", stat.st_dev, stat.st_ino)
}

fn check_mode(fd: impl AsFd, path: &Path) -> Result<()> {
    let stat = sys::fstat(fd).map_err(|e| failed("stat", path, e))?;
    check_owner_of(&stat, path)?;
    if stat.st_mode & OTHERS_WRITE != 0 {
        return Err(Error::refused(Reason::NotPrivate, writable(path, stat.st_mode)));
    }
    Ok(())
}

fn check_owner_of(stat: &sys::Stat, path: &Path) -> Result<()> {
    let me = rustix::process::geteuid().as_raw();
    match stat.st_uid == me {
        true => Ok(()),
        false => Err(Error::refused(
            Reason::NotOwner,
            format!("{} belongs to user {}, not to user {me}; it is read-only", path.display(), stat.st_uid),
        )),
    }
}

/// Gives the owner of a directory all rights to it, and others none, if the owner lacks some.
pub fn grant_owner(path: &Path) -> io::Result<()> {
    let found = std::fs::symlink_metadata(path)?;
    let is_lacking = found.is_dir() && found.permissions().mode() & DIR_MODE.bits() != DIR_MODE.bits();
    match is_lacking {
        true => std::fs::set_permissions(path, std::fs::Permissions::from_mode(DIR_MODE.bits())),
        false => Ok(()),
    }
}

fn writable(path: &Path, mode: u32) -> String {
    format!("{} is writable by others (mode {:o})", path.display(), mode & 0o777)
}

/// The error for a failed system call, in one line.
pub fn failed(doing: &str, path: &Path, error: impl Into<io::Error>) -> Error {
    Error::system(format!("cannot {doing} {}", path.display()), error.into())
}

/// Creates the parent directories of a path, durably.
pub fn make_parents(path: &Path) -> Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.exists()) else {
        return Ok(());
    };
    make_parents(parent)?;
    match std::fs::create_dir(parent) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(failed("create", parent, e)),
        _ => sync_parent(parent),
    }
}

/// Makes the name of a path durable.
pub fn sync_parent(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Dir::open_root(parent)?.map_or(Ok(()), |dir| dir.sync())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    /// Removes every directory that nobody has locked, as a sweep does.
    fn sweep(parent: &Dir) {
        for (name, _) in parent.list().unwrap() {
            if let Some(dir) = parent.dir(&name).unwrap()
                && dir.try_lock().unwrap()
            {
                parent.remove_dir(&name).unwrap();
            }
        }
    }

    #[test]
    fn a_sweep_never_takes_a_new_directory_from_the_one_who_made_it() {
        let temporary = tempfile::tempdir().unwrap();
        let open = || Dir::open_root(temporary.path()).unwrap().unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let parent = open();
                while !is_over.load(Ordering::Relaxed) {
                    sweep(&parent);
                }
            });
            let parent = open();
            let used: Vec<Result<()>> = (0..2_000)
                .map(|n| {
                    let dir = parent.make_locked_dir(&n.to_string())?;
                    dir.make_dir("new")?;
                    dir.remove_dir("new")
                })
                .collect();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(used.iter().find_map(|used| used.as_ref().err()).map(ToString::to_string), None);
        });
    }
}
