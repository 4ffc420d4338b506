//! How a run ended: a record that is written before any event.
//!
//! Its space on disk is reserved before the command starts, so that nothing is lost if the disk is full at the end.
//! Invariant: a record that is reserved but not written counts as missing
//! (`a_reserved_record_is_none_until_it_is_written`).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::{EntityId, Error, Result, Timestamp, seal, text};

/// More than the largest record: seven texts of 400 characters, each escaped to six bytes.
pub const EXIT_RECORD_MAX_BYTES: usize = 32 * 1024;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ended {
    /// On its own, with this exit code.
    Exited { code: i32 },
    /// By a signal that we did not send.
    Signalled { signal: i32 },
    /// By us, because it timed out.
    TimedOut,
    /// By us, because it was cancelled or stopped.
    Halted { why: String },
    /// It did not start.
    NotStarted { reason: String },
}

/// How much was printed, and how much of it is in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSize {
    /// Bytes printed.
    pub bytes: u64,
    /// Bytes of them that are not in the log.
    pub cut: u64,
    /// Why the log is incomplete, if writing failed.
    pub problem: Option<String>,
}

impl LogSize {
    /// How the log differs from what was printed, in words; none if it has everything.
    pub fn gap(&self) -> Option<String> {
        let missing = text::count_noun(self.cut, "byte");
        match (&self.problem, self.cut) {
            (None, 0) => None,
            (None, _) => Some(format!("the log was cut: {missing} missing")),
            (Some(problem), 0) => Some(format!("the log may be incomplete: {problem}")),
            (Some(problem), _) => Some(format!("the log is incomplete: {missing} missing; {problem}")),
        }
    }
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub run_id: String,
    pub ended: Ended,
    #[serde(serialize_with = "write_time", deserialize_with = "read_time")]
    pub started_at: Timestamp,
    #[serde(serialize_with = "write_time", deserialize_with = "read_time")]
    pub finished_at: Timestamp,
    /// The last non-blank line of standard output; untrusted.
    pub last_line: Option<String>,
    /// The last five non-blank lines of standard error, oldest first, or of standard output if standard error has none;
    /// untrusted. Older versions recorded standard error only: read them with `last_lines`.
    pub last5: Vec<String>,
    pub log: LogSize,
    /// Processes that could not be ended, as `PID NAME`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

fn write_time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

fn read_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    Timestamp::parse(&text).ok_or_else(|| de::Error::custom(format!("invalid time '{text}'")))
}

impl ExitRecord {
    /// The last lines that the command printed: of standard error, or of standard output if standard error has none.
    pub fn last_lines(&self) -> Vec<String> {
        match self.last5.is_empty() {
            true => self.last_line.iter().cloned().collect(),
            false => self.last5.clone(),
        }
    }

    /// The record of a run whose command was not even tried.
    pub fn not_started(run_id: &EntityId, reason: String, at: Timestamp) -> Self {
        ExitRecord {
            run_id: run_id.to_string(),
            ended: Ended::NotStarted { reason },
            started_at: at,
            finished_at: at,
            last_line: None,
            last5: Vec::new(),
            log: LogSize::default(),
            left: Vec::new(),
        }
    }
}

/// Parses a record; `None` if it is reserved but not written.
pub fn read(bytes: &[u8]) -> Result<Option<ExitRecord>> {
    match bytes.iter().all(|&byte| byte == b' ') {
        true => Ok(None),
        false => seal::open(bytes).map(Some),
    }
}

/// Reserved disk space for one record.
#[derive(Debug)]
pub struct ExitSlot {
    file: File,
    path: PathBuf,
}

impl ExitSlot {
    /// Reserves the space, durably except for the file's name.
    pub fn reserve(file: File, path: PathBuf) -> Result<ExitSlot> {
        let slot = ExitSlot { file, path };
        let taken = slot.file.write_all_at(&[b' '; EXIT_RECORD_MAX_BYTES], 0).and_then(|()| slot.file.sync_all());
        taken.map_err(|e| slot.failed(e))?;
        Ok(slot)
    }

    /// Writes the record durably.
    pub fn write(&self, record: &ExitRecord) -> Result<()> {
        let bytes = seal::seal(record);
        assert!(bytes.len() <= EXIT_RECORD_MAX_BYTES, "the exit record outgrew its space");
        // The spaces after it are cut off last: at any time, the file is blank, torn, or this record.
        let written = self.file.write_all_at(&bytes, 0).and_then(|()| self.file.set_len(bytes.len() as u64));
        written.and_then(|()| self.file.sync_all()).map_err(|e| self.failed(e))
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::system(format!("cannot write {}", self.path.display()), error)
    }
}
