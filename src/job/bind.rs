//! The files that a command names, as they are now: what an approval of the command binds.
//!
//! Bound are the program, the interpreters of scripts, and every argument, as far as it is the name of something. A
//! regular file is bound by its digest and by its real path: a link can be made to lead elsewhere. Nothing is executed by
//! the descriptor that was read: a file can be overwritten in place, and inodes are used again.
//!
//! Invariant: a first line that the kernel, or `env`, could read in another way than this module is refused
//! (`a_first_line_is_read_as_the_kernel_reads_it_or_refused`).

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, OFlags, access, major, minor};
use sha2::{Digest as _, Sha256};

use crate::base::{Digest, Error, Result, Timestamp, limits, text};
use crate::policy::command::{BoundFile, FileKind, FileRole};

/// Where programs are searched for if there is no PATH.
pub const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// What runs a program that is neither binary nor begins with `#!`.
const DEFAULT_INTERPRETER: &str = "/bin/sh";
const BINARY: &[u8] = b"\x7fELF";
/// How many interpreters are followed. The kernel allows fewer, but `env` can start from the beginning.
const INTERPRETERS_MAX: usize = 16;
/// How much of the first line of a script the kernel reads.
const FIRST_LINE_MAX_BYTES: usize = 256;
/// Where the same name means something else to every process.
const PROCESSES: &str = "/proc";

/// The files that a command names. Relative names start in `directory`; `search_path` is the command's PATH.
pub fn named_files(words: &[String], directory: &Path, search_path: &OsStr) -> Result<Vec<BoundFile>> {
    let mut look = Look { directory, search_path, left_bytes: limits::BOUND_FILES_MAX_BYTES };
    let mut files = Vec::new();
    if let Some(program) = words.first() {
        match look.found(program)? {
            Some(found) => look.follow(FileRole::Program, found, &mut files)?,
            None => files.push(unknown(FileRole::Program, program, FileKind::Absent)),
        }
    }
    for word in words.iter().skip(1) {
        let at = files.len();
        let is_executable = access(directory.join(word), Access::EXEC_OK).is_ok();
        // A script that the program may start. What it is to the program is not known, so it may have any first line.
        if !is_executable || look.follow(FileRole::Argument, word.clone(), &mut files).is_err() {
            files.truncate(at);
            files.push(look.file(FileRole::Argument, word)?.0);
        }
    }
    Ok(files)
}

/// The path of a program, which may start in `directory`: its name if it has a slash, else the first match in the
/// search path that may be executed.
pub fn find_program(name: &OsStr, directory: &Path, search_path: &OsStr) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let is_program = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let mut found = std::env::split_paths(search_path).map(|dir| dir.join(name));
    found.find(|path| is_program(&directory.join(path)))
}

struct Look<'a> {
    directory: &'a Path,
    search_path: &'a OsStr,
    /// How much more may be read.
    left_bytes: u64,
}

impl Look<'_> {
    /// Adds a file that may be executed, and its interpreters.
    fn follow(&mut self, role: FileRole, name: String, files: &mut Vec<BoundFile>) -> Result<()> {
        // The words after a name in the first line of a script.
        let (mut role, mut name, mut words) = (role, name, None::<String>);
        for _ in 0..INTERPRETERS_MAX {
            let (file, beginning) = self.file(role, &name)?;
            let is_env = |path: &str| Path::new(path).file_name() == Some(OsStr::new("env"));
            let finds_program = is_env(&name) || file.real.as_deref().is_some_and(is_env);
            files.push(file);
            let Some(beginning) = beginning else { return Ok(()) };
            let line = first_line(&name, &beginning)?;
            (name, words) = match (line, words) {
                (Some((interpreter, words)), _) => (interpreter, Some(words)),
                (None, Some(words)) if finds_program => {
                    let program = env_program(&name, &words)?;
                    let Some(found) = self.found(&program)? else {
                        files.push(unknown(FileRole::Interpreter, &program, FileKind::Absent));
                        return Ok(());
                    };
                    (found, None)
                }
                (None, _) if beginning.starts_with(BINARY) => return Ok(()),
                (None, _) if role == FileRole::Argument => return Ok(()),
                (None, _) => (DEFAULT_INTERPRETER.to_owned(), None),
            };
            role = FileRole::Interpreter;
        }
        Err(Error::usage(format!("too many interpreters: {name} is not the last one")))
    }

    fn found(&self, name: &str) -> Result<Option<String>> {
        find_program(OsStr::new(name), self.directory, self.search_path).map(|path| as_text(&path)).transpose()
    }

    /// What a name stands for, and the beginning of a regular file.
    fn file(&mut self, role: FileRole, name: &str) -> Result<(BoundFile, Option<Vec<u8>>)> {
        let of_kind = |kind| unknown(role, name, kind);
        if name.is_empty() {
            return Ok((of_kind(FileKind::Absent), None));
        }
        let path = self.directory.join(name);
        let found = match path.metadata() {
            Ok(found) => found,
            Err(e) => return Ok((missing(of_kind(kind_of_error(&e)), &path), None)),
        };
        let real = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if real.starts_with(PROCESSES) {
            return Ok((of_kind(FileKind::Other), None));
        }
        let known = BoundFile { real: Some(as_text(&real)?), ..of_kind(kind_of(&found)) };
        match known.kind {
            FileKind::File => {}
            FileKind::Device => {
                let number = format!("{}:{}", major(found.rdev()), minor(found.rdev()));
                return Ok((BoundFile { device: Some(number), ..known }, None));
            }
            _ => return Ok((known, None)),
        }
        let by_time = |kind, found: &Metadata| BoundFile {
            kind,
            size: Some(found.len()),
            modified: Some(modified(found)),
            ..known.clone()
        };
        // Whatever takes its place in the meantime is not waited for.
        let nonblocking = OFlags::NONBLOCK.bits() as i32;
        let opened = File::options().read(true).custom_flags(nonblocking).open(&path);
        let Some((file, found)) = opened.ok().and_then(|file| file.metadata().ok().map(|found| (file, found))) else {
            return Ok((by_time(FileKind::Unreadable, &found), None));
        };
        if kind_of(&found) != FileKind::File {
            return Ok((BoundFile { kind: kind_of(&found), ..known }, None));
        }
        let limit = limits::BOUND_FILE_MAX_BYTES.min(self.left_bytes);
        let is_large = found.len() > limit;
        // A file that grows is read up to the limit: its digest is then that of no file that could be read whole.
        match digest(file.take(if is_large { FIRST_LINE_MAX_BYTES as u64 } else { limit + 1 })) {
            Ok((_, _, beginning)) if is_large => Ok((by_time(FileKind::Large, &found), Some(beginning))),
            Ok((digest, size, beginning)) => {
                self.left_bytes = self.left_bytes.saturating_sub(size);
                Ok((BoundFile { sha256: Some(digest), ..known }, Some(beginning)))
            }
            Err(_) => Ok((by_time(FileKind::Unreadable, &found), None)),
        }
    }
}

/// A file of which only the kind is known.
fn unknown(role: FileRole, name: &str, kind: FileKind) -> BoundFile {
    BoundFile { role, name: name.to_owned(), kind, real: None, device: None, sha256: None, size: None, modified: None }
}

/// A name of nothing, or a link that leads nowhere: a command could create what it leads to.
fn missing(file: BoundFile, path: &Path) -> BoundFile {
    match std::fs::read_link(path) {
        Ok(target) if file.kind == FileKind::Absent => {
            BoundFile { kind: FileKind::Dangling, real: Some(target.to_string_lossy().into_owned()), ..file }
        }
        _ => file,
    }
}

/// A path that an operator can read.
fn as_text(path: &Path) -> Result<String> {
    let shown = path.to_string_lossy().into_owned();
    match path.to_str().is_some_and(|path| !path.chars().any(text::is_unsafe)) {
        true => Ok(shown),
        false => Err(Error::usage(format!("the path {} cannot be shown to an operator", text::escape(&shown)))),
    }
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
    let seconds = Timestamp(found.mtime()).to_string();
    format!("{}.{:09}Z", seconds.trim_end_matches('Z'), found.mtime_nsec())
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

/// The interpreter in the first line of a script, and the words after it, as the kernel reads them: the name ends at a
/// blank, and the words are one argument.
fn first_line(name: &str, beginning: &[u8]) -> Result<Option<(String, String)>> {
    let Some(line) = beginning.strip_prefix(b"#!") else { return Ok(None) };
    let refused = |why: &str| Err(Error::usage(format!("the first line of {name} {why}, so it cannot be approved")));
    let end = line.iter().position(|byte| matches!(byte, b'\n' | 0));
    let line = match end {
        Some(end) => &line[..end],
        None if beginning.len() < FIRST_LINE_MAX_BYTES => line,
        None => return refused("is too long"),
    };
    let Ok(line) = std::str::from_utf8(line) else { return refused("is not UTF-8") };
    let line = line.trim_matches([' ', '\t']);
    if line.chars().any(|c| c != '\t' && text::is_unsafe(c)) {
        return refused("has control characters");
    }
    let (interpreter, words) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    match interpreter.is_empty() {
        true => refused("names no interpreter"),
        false => Ok(Some((interpreter.to_owned(), words.trim_matches([' ', '\t']).to_owned()))),
    }
}

/// The program that `env` runs with these words from the first line of a script. Without -S they are one name.
fn env_program(name: &str, words: &str) -> Result<String> {
    let split = words.strip_prefix("-S").filter(|rest| rest.starts_with([' ', '\t']));
    let program = match split {
        Some(rest) => rest.trim_matches([' ', '\t']).split([' ', '\t']).next().unwrap_or_default(),
        None => words,
    };
    let is_special = |text: &str| text.contains(['"', '\'', '\\', '$', '#', '=']);
    match program.is_empty() || program.starts_with('-') || is_special(split.unwrap_or(words)) {
        true => {
            let why = "names its program in a way that only env can read";
            Err(Error::usage(format!("a script for {name} {why}, so it cannot be approved")))
        }
        false => Ok(program.to_owned()),
    }
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
        named_files(&words, dir, OsStr::new("/usr/bin:/bin")).unwrap().into_iter().map(shown).collect()
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
                "argument dangling dangling",
                "argument -rf absent",
                "argument  absent",
            ]
        );
    }

    #[test]
    fn what_env_finds_is_an_interpreter_too() {
        let dir = tempfile::tempdir().unwrap();
        script(&dir.path().join("run"), "#!/usr/bin/env -S sh -e\n");
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
        let found = named_files(&words, dir.path(), OsStr::new("")).unwrap().pop().unwrap();
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
        assert_eq!(found("tool", "/bin"), None);
        // An empty part of the path is the working directory.
        assert_eq!(found("tool", ""), Some(PathBuf::from("tool")));
        assert_eq!(found("tool", "."), Some(PathBuf::from("./tool")));
    }

    #[test]
    fn a_first_line_is_read_as_the_kernel_reads_it_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = |text: &[u8]| {
            let path = dir.path().join("s");
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            named_files(&["./s".to_owned()], dir.path(), OsStr::new("/usr/bin:/bin")).is_err()
        };
        for text in [
            &b"#!/bin/sh\r\n"[..],
            b"#!/b\xffin/sh\n",
            b"#!\n",
            b"#! \t \n",
            b"#!/usr/bin/env\n",
            b"#!/usr/bin/env -i sh\n",
            b"#!/usr/bin/env A=1 sh\n",
            b"#!/usr/bin/env -S -u FOO sh\n",
            b"#!/usr/bin/env -S A=1 sh\n",
            b"#!/usr/bin/env -S \"sh\"\n",
            b"#!/usr/bin/env -S sh$X\n",
            b"#!./s\n",
        ] {
            assert!(refused(text), "{}", String::from_utf8_lossy(text));
        }
        assert!(refused(&[&b"#!/bin/sh "[..], &[b'x'; 300]].concat()));
        for text in [&b"#! /bin/sh -e\n"[..], b"#!\t/bin/sh", b"#!/bin/sh\0x\n", b"#!/usr/bin/env sh\n", b"echo hi\n"] {
            assert!(!refused(text), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn a_chain_of_interpreters_is_followed_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..6 {
            script(&dir.path().join(format!("s{n}")), &format!("#!./s{}\n", n + 1));
        }
        script(&dir.path().join("s6"), "#!./env sh\n");
        // What is only called env is not env.
        script(&dir.path().join("env"), "#!./real\n");
        script(&dir.path().join("real"), "echo no first line\n");
        let found = look(dir.path(), &["./s0"]);
        assert_eq!(found.len(), 10, "{found:?}");
        assert_eq!(
            found[6..],
            [
                "interpreter ./s6 content",
                "interpreter ./env content",
                "interpreter ./real content",
                "interpreter /bin/sh content"
            ]
        );
        symlink("/usr/bin/env", dir.path().join("e")).unwrap();
        script(&dir.path().join("t"), "#!./e sh\n");
        assert_eq!(look(dir.path(), &["./t"]).len(), 3);
        assert_eq!(look(dir.path(), &["/bin/true", "./t"]).len(), 4);
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = |target: &str| {
            let _ = fs::remove_file(dir.path().join("link"));
            symlink(target, dir.path().join("link")).unwrap();
            let words = ["/bin/true".to_owned(), "link".to_owned(), "/proc/self/status".to_owned()];
            named_files(&words, dir.path(), OsStr::new("")).unwrap().split_off(1)
        };
        for name in ["a", "b"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        for (one, other) in [("a", "b"), ("/dev/null", "/dev/zero"), ("nowhere", "elsewhere")] {
            let (one, other) = (at(one), at(other));
            assert_eq!(one[0].kind, other[0].kind);
            assert_ne!(one[0], other[0]);
            assert_eq!((one[1].kind, &one[1]), (FileKind::Other, &other[1]));
        }
    }
}
