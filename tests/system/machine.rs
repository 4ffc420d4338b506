//! What this machine can do, and mounts that are always undone.
//!
//! Invariant: a test that cannot run here prints one line that begins with `CANNOT`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Whether to run only a sample.
#[expect(clippy::disallowed_methods, reason = "the one switch of these tests, set by scripts/system-test")]
pub fn short() -> bool {
    std::env::var_os("HF_SYSTEM_SHORT").is_some()
}

/// Selects the number for a short or a full run.
pub fn sized(in_short: usize, in_full: usize) -> usize {
    if short() { in_short } else { in_full }
}

/// Runs a system tool until it exits.
pub fn tool(name: &str, args: &[&str]) -> Output {
    Command::new(name).args(args).output().unwrap_or_else(|e| panic!("cannot run {name}: {e}"))
}

/// Runs a tool that must succeed.
#[track_caller]
pub fn must(name: &str, args: &[&str]) {
    let output = tool(name, args);
    assert!(output.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What a test needs beyond the toolchain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Tool(&'static str),
    Root,
    /// Permission to mount: in most containers root alone is not enough.
    Mount,
    Loop,
}

impl Need {
    fn missing(self) -> Option<String> {
        match self {
            Need::Tool(name) => match Command::new(name).arg("--version").output() {
                Err(e) => Some(format!("{name} cannot be run: {e}")),
                Ok(_) => None,
            },
            Need::Root => (!rustix::process::geteuid().is_root()).then(|| "it needs root".to_owned()),
            Need::Mount => {
                let dir = tempfile::tempdir().expect("a temporary directory");
                let tried = Mount::new(dir.path(), &["-t", "tmpfs", "-o", "size=64k", "none"]);
                tried.err().map(|e| format!("mounting is not permitted here: {e}"))
            }
            Need::Loop => {
                let image = tempfile::NamedTempFile::new().expect("a temporary file");
                image.as_file().set_len(1 << 20).expect("a sparse file");
                let output = tool("losetup", &["--find", "--show", &image.path().to_string_lossy()]);
                match output.status.success() {
                    false => Some(format!("no loop device: {}", String::from_utf8_lossy(&output.stderr).trim())),
                    true => {
                        must("losetup", &["--detach", String::from_utf8_lossy(&output.stdout).trim()]);
                        None
                    }
                }
            }
        }
    }
}

/// Whether a test can run here; if not, prints why.
pub fn can(what: &str, needs: &[Need]) -> bool {
    match needs.iter().find_map(|need| need.missing()) {
        None => true,
        Some(why) => {
            println!("CANNOT test {what} here: {why}");
            false
        }
    }
}

/// Something mounted on a directory until this value is dropped.
#[derive(Debug)]
pub struct Mount {
    at: PathBuf,
}

impl Mount {
    /// `mount ARGS DIRECTORY`.
    pub fn new(at: &Path, args: &[&str]) -> Result<Mount, String> {
        let output = Command::new("mount").args(args).arg(at).output().map_err(|e| e.to_string())?;
        match output.status.success() {
            true => Ok(Mount { at: at.to_owned() }),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let at = self.at.to_string_lossy();
        if !tool("umount", &[&at]).status.success() {
            // Still in use: detach it, and the kernel unmounts it later.
            tool("umount", &["--lazy", &at]);
        }
    }
}

/// A file with a file system in it.
pub struct Disk {
    folder: TempDir,
}

impl Disk {
    pub fn new(kind: &str, megabytes: u64) -> Disk {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let disk = Disk { folder };
        let file = std::fs::File::create(disk.image()).expect("an image");
        file.set_len(megabytes << 20).expect("a sparse file");
        must(&format!("mkfs.{kind}"), &["-q", &disk.image().to_string_lossy()]);
        disk
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    pub fn mount(&self, at: &Path) -> Mount {
        Mount::new(at, &["-o", "loop", &self.image().to_string_lossy()]).expect("the disk mounts")
    }
}

/// Fills the file system of a directory to the last byte.
pub fn fill(folder: &Path) -> PathBuf {
    let path = folder.join("filler");
    let mut file = std::fs::File::create(&path).expect("a file");
    let mut piece = vec![b'x'; 1 << 16];
    while !piece.is_empty() {
        if file.write_all(&piece).and_then(|()| file.sync_data()).is_err() {
            piece.truncate(piece.len() / 2);
        }
    }
    path
}

/// Pseudorandom numbers, the same for the same seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Shuffles, so that any part that there is time for is a sample of the whole.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for n in (1..things.len()).rev() {
            things.swap(n, self.below(n as u64 + 1) as usize);
        }
    }
}
