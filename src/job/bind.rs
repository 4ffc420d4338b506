//! The files that a command names, as they are now: what an approval of the command binds.
//!
//! Bound are the program, the interpreters in the first lines of scripts, and every argument, as far as it is the name
//! of something. A regular file is bound by its digest, so a name may lead through symbolic links. Nothing is executed
//! by the descriptor that was read: a file can be overwritten in place, and inodes are used again.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest as _, Sha256};

use crate::base::{Digest, Timestamp, limits};
use crate::policy::command::{BoundFile, FileKind, FileRole};

/// How many scripts can interpret each other; the kernel allows no more.
const INTERPRETERS_MAX: usize = 4;
/// Where a program is searched for if there is no PATH.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// How much of the first line of a script the kernel reads.
const FIRST_LINE_MAX_BYTES: usize = 256;

/// The files that a command names. Relative names start in `directory`; `search_path` is the command's PATH.
pub fn named_files(words: &[String], directory: &Path, search_path: &OsStr) -> Vec<BoundFile> {
    let mut look = Look { directory, search_path, left_bytes: limits::BOUND_FILES_MAX_BYTES };
    let mut files = Vec::new();
    if let Some(program) = words.first() {
        look.program(program, &mut files);
    }
    files.extend(words.iter().skip(1).map(|word| look.file(FileRole::Argument, word).0));
    files
}

/// The path of a program, which may start in `directory`: its name if it has a slash, else the first match in the
/// search path.
pub fn find_program(name: &OsStr, directory: &Path, search_path: &OsStr) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let search_path = if search_path.is_empty() { OsStr::new(DEFAULT_PATH) } else { search_path };
    let is_program = |found: Metadata| found.is_file() && found.mode() & 0o111 != 0;
    let mut found = std::env::split_paths(search_path).map(|dir| dir.join(name));
    found.find(|path| directory.join(path).metadata().is_ok_and(is_program))
}

struct Look<'a> {
    directory: &'a Path,
    search_path: &'a OsStr,
    /// How much more may be read.
    left_bytes: u64,
}

impl Look<'_> {
    /// Adds a program and its interpreters.
    fn program(&mut self, name: &str, files: &mut Vec<BoundFile>) {
        let Some(found) = self.found(name) else {
            files.push(unknown(FileRole::Program, name, FileKind::Absent));
            return;
        };
        let (mut role, mut name) = (FileRole::Program, found);
        for _ in 0..=INTERPRETERS_MAX {
            let (file, first_line) = self.file(role, &name);
            files.push(file);
            let Some(words) = first_line.as_deref().and_then(interpreter) else { return };
            let mut words = words.into_iter();
            let Some(interpreter) = words.next() else { return };
            (role, name) = (FileRole::Interpreter, interpreter);
            // `env` finds the interpreter by its name.
            if Path::new(&name).file_name() == Some(OsStr::new("env")) {
                files.push(self.file(role, &name).0);
                let is_program = |word: &String| !word.starts_with('-') && !word.contains('=');
                let Some(found) = words.find(is_program).and_then(|word| self.found(&word)) else { return };
                name = found;
            }
        }
    }

    fn found(&self, name: &str) -> Option<String> {
        find_program(OsStr::new(name), self.directory, self.search_path)?.into_os_string().into_string().ok()
    }

    /// What a name stands for, and the beginning of a regular file.
    fn file(&mut self, role: FileRole, name: &str) -> (BoundFile, Option<Vec<u8>>) {
        let of_kind = |kind| unknown(role, name, kind);
        if name.is_empty() {
            return (of_kind(FileKind::Absent), None);
        }
        let path = self.directory.join(name);
        let found = match path.metadata() {
            Ok(found) => found,
            Err(e) => return (of_kind(kind_of_error(&e)), None),
        };
        match kind_of(&found) {
            FileKind::File => {}
            other => return (of_kind(other), None),
        }
        let by_time = |kind, found: &Metadata| BoundFile {
            size: Some(found.len()),
            modified: Some(modified(found)),
            ..of_kind(kind)
        };
        // Whatever takes its place in the meantime is not waited for.
        let nonblocking = OFlags::NONBLOCK.bits() as i32;
        let opened = File::options().read(true).custom_flags(nonblocking).open(&path);
        let Some((file, found)) = opened.ok().and_then(|file| file.metadata().ok().map(|found| (file, found))) else {
            return (by_time(FileKind::Unreadable, &found), None);
        };
        let is_large = found.len() > limits::BOUND_FILE_MAX_BYTES.min(self.left_bytes);
        match kind_of(&found) {
            FileKind::File if is_large => return (by_time(FileKind::Large, &found), None),
            FileKind::File => {}
            other => return (of_kind(other), None),
        }
        // A file that grows is read up to the limit: its digest is then that of no file that could be read whole.
        let limit = limits::BOUND_FILE_MAX_BYTES.min(self.left_bytes);
        match digest(file.take(limit + 1)) {
            Ok((digest, size, first)) => {
                self.left_bytes = self.left_bytes.saturating_sub(size);
                (BoundFile { sha256: Some(digest), ..of_kind(FileKind::File) }, Some(first))
            }
            Err(_) => (by_time(FileKind::Unreadable, &found), None),
        }
    }
}

/// A file of which only the kind is known.
fn unknown(role: FileRole, name: &str, kind: FileKind) -> BoundFile {
    BoundFile { role, name: name.to_owned(), kind, sha256: None, size: None, modified: None }
}

fn kind_of(found: &Metadata) -> FileKind {
    let kind = found.file_type();
    match () {
        () if kind.is_file() => FileKind::File,
        () if kind.is_dir() => FileKind::Directory,
        () if kind.is_char_device() || kind.is_block_device() => FileKind::Device,
        () => FileKind::Other,
    }
}

/// A word that cannot be a name is the name of nothing.
fn kind_of_error(error: &io::Error) -> FileKind {
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::InvalidInput => FileKind::Absent,
        _ => FileKind::Unreadable,
    }
}

fn modified(found: &Metadata) -> String {
    format!("{}.{:09}", Timestamp(found.mtime()), found.mtime_nsec())
}

/// The digest and the size of a file, and its beginning.
fn digest(mut file: impl Read) -> io::Result<(String, u64, Vec<u8>)> {
    let mut hasher = Sha256::new();
    let (mut size, mut first, mut buffer) = (0, Vec::new(), vec![0; 64 * 1024]);
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => return Ok((Digest::from_bytes(hasher.finalize().into()).to_string(), size, first)),
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let missing = FIRST_LINE_MAX_BYTES.saturating_sub(first.len());
        first.extend(&buffer[..read.min(missing)]);
        hasher.update(&buffer[..read]);
        size += read as u64;
    }
}

/// The words after `#!` in the first line of a script.
fn interpreter(first: &[u8]) -> Option<Vec<String>> {
    let line = first.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words = String::from_utf8_lossy(line).split_ascii_whitespace().map(str::to_owned).collect();
    Some(words)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn look(dir: &Path, words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let digest = |name: &str| Digest::of_bytes(&fs::read(dir.join(name)).unwrap()).to_string();
        let shown = |file: BoundFile| {
            let content = match &file.sha256 {
                Some(known) if *known == digest(&file.name) => "content".to_owned(),
                Some(other) => other.clone(),
                None => file.kind.to_string(),
            };
            format!("{} {} {content}", file.role, file.name)
        };
        named_files(&words, dir, OsStr::new("/usr/bin:/bin")).into_iter().map(shown).collect()
    }

    fn script(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_command_names_its_program_its_interpreters_and_its_arguments() {
        let dir = tempfile::tempdir().unwrap();
        script(&dir.path().join("outer"), "#!./inner -x\n");
        script(&dir.path().join("inner"), "#!/bin/sh\n");
        fs::write(dir.path().join("data"), "x").unwrap();
        fs::create_dir(dir.path().join("folder")).unwrap();
        symlink("data", dir.path().join("link")).unwrap();
        symlink("nowhere", dir.path().join("dangling")).unwrap();
        let words = ["./outer", "data", "link", "folder", "/dev/null", "dangling", "-rf", ""];
        assert_eq!(
            look(dir.path(), &words),
            [
                "program ./outer content",
                "interpreter ./inner content",
                "interpreter /bin/sh content",
                "argument data content",
                "argument link content",
                "argument folder directory",
                "argument /dev/null device",
                "argument dangling absent",
                "argument -rf absent",
                "argument  absent",
            ]
        );
    }

    #[test]
    fn what_env_finds_is_an_interpreter_too() {
        let dir = tempfile::tempdir().unwrap();
        script(&dir.path().join("run"), "#!/usr/bin/env -S A=1 sh -e\n");
        let shell = find_program(OsStr::new("sh"), dir.path(), OsStr::new("/usr/bin:/bin")).unwrap();
        let found = look(dir.path(), &["./run"]);
        assert_eq!(found[1], "interpreter /usr/bin/env content");
        assert_eq!(found[2], format!("interpreter {} content", shell.display()));
    }

    #[test]
    fn a_pipe_is_not_waited_for_and_a_long_word_names_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let long = "x".repeat(10_000);
        assert_eq!(look(dir.path(), &["./pipe", &long])[0], "program ./pipe other");
        assert_eq!(look(dir.path(), &["./pipe", &long])[1], format!("argument {long} absent"));
    }

    #[test]
    fn a_file_that_is_too_large_is_known_by_its_size_and_time() {
        let dir = tempfile::tempdir().unwrap();
        let large = File::create(dir.path().join("large")).unwrap();
        large.set_len(limits::BOUND_FILE_MAX_BYTES + 1).unwrap();
        let words = ["/bin/true".to_owned(), "large".to_owned()];
        let found = named_files(&words, dir.path(), OsStr::new("")).pop().unwrap();
        assert_eq!(
            (found.kind, found.size, found.sha256),
            (FileKind::Large, Some(limits::BOUND_FILE_MAX_BYTES + 1), None)
        );
        assert!(found.modified.is_some());
    }

    #[test]
    fn a_program_that_nobody_finds_is_absent_and_the_directory_is_not_searched() {
        let dir = tempfile::tempdir().unwrap();
        script(&dir.path().join("tool"), "x");
        assert_eq!(look(dir.path(), &["tool"]), ["program tool absent"]);
        let found = |name: &str, path: &str| find_program(OsStr::new(name), dir.path(), OsStr::new(path));
        assert_eq!(found("tool", ""), None);
        assert_eq!(found("tool", "."), Some(PathBuf::from("./tool")));
        assert!(found("sh", "").is_some());
    }
}
