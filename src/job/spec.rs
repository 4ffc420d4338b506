//! How to run a job, as the caller writes it for the supervisor, and what to run.
//!
//! Invariant: the bytes of variables are preserved, even if they are not UTF-8
//! (`bytes_that_are_no_text_come_back`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::base::{names, serde_by_name};

/// Bytes from a command line: written as a string if they are UTF-8, else as a list of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawText(pub OsString);

/// The text as it is written.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RawTextJson {
    Text(String),
    Bytes(Vec<u8>),
}

impl RawText {
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }
}

impl<T: Into<OsString>> From<T> for RawText {
    fn from(text: T) -> Self {
        RawText(text.into())
    }
}

impl Serialize for RawText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => RawTextJson::Text(text.to_owned()),
            None => RawTextJson::Bytes(self.0.as_bytes().to_owned()),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match RawTextJson::deserialize(deserializer)? {
            RawTextJson::Text(text) => RawText(text.into()),
            RawTextJson::Bytes(bytes) => RawText(OsString::from_vec(bytes)),
        })
    }
}

names! {
    /// What causes a heartbeat.
    pub enum Beat {
        /// The process is alive.
        Timer = "timer",
        /// The process printed something.
        Output = "output",
    }
}

serde_by_name!(Beat);

/// A command to run: what the log says, not what a file in the job's directory says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunCommand {
    /// The command and its arguments.
    pub argv: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    pub environment: RunEnvironment,
    /// The agent that it runs as; none if a person fired it.
    pub agent: Option<String>,
}

/// The variables of a command, besides the toolkit's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnvironment {
    /// Those that the supervisor inherits, and these.
    Inherited(Vec<(OsString, OsString)>),
    /// Only these.
    Only(Vec<(OsString, OsString)>),
}

/// Specs of earlier versions do not say it.
fn yes() -> bool {
    true
}

/// How to run a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Variables in addition to those that the supervisor inherits. Not used for a job that requires approval.
    pub env: Vec<(RawText, RawText)>,
    /// The names of variables that are not stored anywhere: only the first supervisor inherits them.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// How long it may run; unlimited if missing.
    pub timeout: Option<Duration>,
    /// The time between TERM and KILL.
    pub kill_grace: Duration,
    /// The maximum size of its log.
    pub log_max_bytes: u64,
    /// The minimum time between heartbeats; none are recorded if missing.
    pub heartbeat: Option<Duration>,
    pub beat: Beat,
    /// Data of the caller for the supervisor.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// The variables that another supervisor starts with if the first one is lost. Not all of the caller's: some are
    /// secrets, and this is a file.
    #[serde(default)]
    pub kept_env: Vec<(RawText, RawText)>,
    /// Whether its processes get a control group, where one can be made.
    #[serde(default = "yes")]
    pub control_group: bool,
    /// The number of the lock's file, which a copy of the vault does not have: a copy runs nothing.
    #[serde(default)]
    pub lock_inode: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::seal;

    #[test]
    fn bytes_that_are_no_text_come_back() {
        let odd = OsString::from_vec(vec![b'a', 0xff, b'\n', 0xfe]);
        let spec = Spec {
            env: vec![("A".into(), odd.into()), ("é".into(), "é".into())],
            secrets: vec!["TOKEN".to_owned()],
            timeout: Some(Duration::from_millis(1500)),
            kill_grace: Duration::from_secs(5),
            log_max_bytes: 1 << 20,
            heartbeat: None,
            beat: Beat::Output,
            extra: serde_json::from_str(r#"{"retries":2}"#).unwrap(),
            kept_env: vec![("PATH".into(), "/bin".into())],
            control_group: false,
            lock_inode: Some(7),
        };
        assert_eq!(seal::open::<Spec>(&seal::seal(&spec)).unwrap(), spec);
    }
}
