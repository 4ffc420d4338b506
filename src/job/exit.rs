//! How a run ended: the record that stands before any event says so.
//!
//! Its room on the disk is taken before the command starts, so that a full disk at the end loses
//! nothing. Invariant: a reserved record that was not written is no record
//! (`a_reserved_record_is_none_until_it_is_written`).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::base::{EntityId, Error, Result, Timestamp, seal};

/// More than the largest record: seven texts of 400 characters, each escaped to six bytes.
pub const EXIT_RECORD_MAX_BYTES: usize = 32 * 1024;

/// The way a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Ended {
    /// By itself, with this exit code.
    Exited { code: i32 },
    /// By a signal that was not ours.
    Signalled { signal: i32 },
    /// By us, because its time was up.
    TimedOut,
    /// By us, because somebody said so.
    Halted { why: String },
    /// It never began.
    NotStarted { reason: String },
}

/// What was printed, and what of it the log has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSize {
    /// Bytes that came.
    pub bytes: u64,
    /// Bytes of them that the log has not.
    pub cut: u64,
    /// Why the log is not whole, if the system failed.
    pub problem: Option<String>,
}

/// One run's end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub run_id: String,
    pub ended: Ended,
    #[serde(serialize_with = "write_time", deserialize_with = "read_time")]
    pub started_at: Timestamp,
    #[serde(serialize_with = "write_time", deserialize_with = "read_time")]
    pub finished_at: Timestamp,
    /// The last line of standard output that is not blank; untrusted.
    pub last_line: Option<String>,
    /// The last five of standard error, oldest first; untrusted.
    pub last5: Vec<String>,
    pub log: LogSize,
}

fn write_time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

fn read_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    let text = String::deserialize(deserializer)?;
    Timestamp::parse(&text).ok_or_else(|| de::Error::custom(format!("'{text}' is not a time")))
}

impl ExitRecord {
    /// The end of a run whose command was not even tried.
    pub fn not_started(run_id: &EntityId, reason: String, at: Timestamp) -> Self {
        ExitRecord {
            run_id: run_id.to_string(),
            ended: Ended::NotStarted { reason },
            started_at: at,
            finished_at: at,
            last_line: None,
            last5: Vec::new(),
            log: LogSize::default(),
        }
    }
}

/// Reads a record; `None` if its room was reserved and nothing written.
pub fn read(bytes: &[u8]) -> Result<Option<ExitRecord>> {
    match bytes.iter().all(|&byte| byte == b' ') {
        true => Ok(None),
        false => seal::open(bytes).map(Some),
    }
}

/// Room on the disk for one record.
#[derive(Debug)]
pub struct ExitSlot {
    file: File,
    path: PathBuf,
}

impl ExitSlot {
    /// Takes the room, durably but for the name.
    pub fn reserve(file: File, path: PathBuf) -> Result<ExitSlot> {
        let slot = ExitSlot { file, path };
        let taken = slot.file.write_all_at(&[b' '; EXIT_RECORD_MAX_BYTES], 0).and_then(|()| slot.file.sync_all());
        taken.map_err(|e| slot.failed(e))?;
        Ok(slot)
    }

    /// Writes the record into its room, durably.
    pub fn write(&self, record: &ExitRecord) -> Result<()> {
        let bytes = seal::seal(record);
        assert!(bytes.len() <= EXIT_RECORD_MAX_BYTES, "the exit record outgrew its room");
        // The blanks behind it go last: at every moment the file is blank, torn, or this record.
        let written = self.file.write_all_at(&bytes, 0).and_then(|()| self.file.set_len(bytes.len() as u64));
        written.and_then(|()| self.file.sync_all()).map_err(|e| self.failed(e))
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::system(format!("cannot write {}", self.path.display()), error)
    }
}
