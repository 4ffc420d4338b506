//! What the commands do: one public function each. Lock, read, decide, append, outcome.
//!
//! Invariant: nothing here prints, reads arguments or the environment, or looks at a clock.

pub mod agent;
mod append;
pub mod artifact;
mod backup;
pub mod branch;
pub mod constraint;
pub mod decide;
mod desk;
pub mod document;
mod hook;
mod init;
pub mod job;
mod lineage;
mod log;
pub mod mission;
pub mod pause;
pub mod project;
pub mod require;
pub mod review;
pub mod session;
mod show;
mod status;
mod stop;
pub mod task;
mod verify;
mod watchdog;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityId, Error, Now, Reason, Result, Subject, Ulid, limits};
use crate::event::Kind;
use crate::state::State;
use crate::vault::config::{Config, Setting};
use crate::vault::{Vault, WriteOptions};

pub use append::{AppendOutcome, AppendRequest, StreamOutcome, append, append_batch, append_stream, parse_line};
pub use backup::{BackupOutcome, BackupRequest, backup};
pub use init::{InitOutcome, InitRequest, init};
pub use lineage::{Edge, LineageOutcome, LineageRequest, Node, lineage};
pub use log::{Filter, LogOutcome, LogRequest, Start, follow, log};
pub use project::{ListOutcome, ListRequest, Listed, Projection};
pub use show::{ShowOutcome, show};
pub use status::{Metric, MetricsOutcome, StatusOutcome, SystemState, metrics, status};
pub use stop::{ResumeOutcome, StopOutcome, resume_system, stop};
pub use verify::{RecoverOutcome, VerifyOutcome, VerifyRequest, recover, verify};
pub use watchdog::{Health, WatchdogOutcome, watchdog};

/// What a command knows of the world it was started in.
#[derive(Clone, Debug)]
pub struct Env {
    pub vault: PathBuf,
    pub now: Now,
    pub actor: Actor,
    /// Whose shell this is, whatever actor was named.
    pub shell: Shell,
    pub lock_timeout: Duration,
    /// The time of day anew, for what lives longer than a command.
    pub clock: fn() -> Now,
    /// How to ask a foreign job system; else the settings say it.
    pub check_cmd: Option<String>,
    /// The name under which hf-poll was called, if by another.
    pub poll_as: Option<String>,
    /// Where programs are looked for.
    pub search_path: Option<std::ffi::OsString>,
    /// An ai-works tree that is served in place; else the settings say it.
    pub works: Option<PathBuf>,
    /// The project that a command is about, if one was named.
    pub project: Option<EntityId>,
    /// The session of this shell, if it has one.
    pub session: Option<String>,
    /// How far local clocks are ahead of UTC.
    pub utc_offset_seconds: i64,
}

impl Env {
    /// What a program has to say for itself: where, as whom, in whose shell, and what time it is. The rest is
    /// as in a shell that sets nothing.
    pub fn of(vault: PathBuf, actor: Actor, shell: Shell, clock: fn() -> Now) -> Self {
        Env {
            vault,
            now: clock(),
            actor,
            shell,
            lock_timeout: Duration::from_secs(limits::LOCK_TIMEOUT_DEFAULT_SECONDS),
            clock,
            check_cmd: None,
            poll_as: None,
            search_path: None,
            works: None,
            project: None,
            session: None,
            utc_offset_seconds: 0,
        }
    }

    /// Whether the shell belongs to an agent.
    pub fn in_agent_shell(&self) -> bool {
        matches!(self.shell, Shell::SomeAgents | Shell::Agents(_))
    }

    fn open(&self) -> Result<Vault> {
        Ok(Vault::open(&self.vault)?.with_lock_timeout(self.lock_timeout))
    }

    fn write_options(&self, vault: &Vault, warnings: &mut Vec<String>) -> Result<WriteOptions> {
        let (config, unknown) = vault.config()?;
        warnings.extend(unknown);
        Ok(self.options(&config))
    }

    fn options(&self, config: &Config) -> WriteOptions {
        WriteOptions {
            lock_timeout: self.lock_timeout,
            now: self.now,
            segment_max_bytes: config.count(Setting::EventsMaxFileSizeMb).saturating_mul(1024 * 1024),
        }
    }

    /// Refuses what only a person may do.
    fn check_operator(&self, what: &str) -> Result<()> {
        if self.actor.is_autonomous() || self.in_agent_shell() {
            return Err(Error::refused(
                Reason::OperatorOnly,
                format!("{what} is for an operator, not for {}", self.actor),
            ));
        }
        Ok(())
    }
}

/// In an agent's shell nobody but an agent acts, whoever is named; where it has a name, no other one.
pub fn check_actor(actor: &Actor, shell: &Shell) -> Result<()> {
    let other = match shell {
        Shell::Persons | Shell::Supervisors => false,
        Shell::SomeAgents => actor.kind != ActorKind::Agent,
        Shell::Agents(name) => actor.to_string() != format!("agent:{name}"),
    };
    match other {
        true => {
            Err(Error::refused(Reason::OperatorOnly, format!("in an agent's shell that agent acts, and not {actor}")))
        }
        false => Ok(()),
    }
}

/// Whose shell a command was started in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shell {
    Persons,
    /// An agent's whose name is not known.
    SomeAgents,
    Agents(String),
    /// None: a job's supervisor acts for whoever fired it, and records its end whatever became of him.
    Supervisors,
}

/// Short references by the subjects that they name.
pub type References = BTreeMap<String, String>;

/// The short references of those of these subjects that have one.
fn references<'a>(state: &State, subjects: impl Iterator<Item = &'a str>) -> References {
    let subjects: BTreeSet<&str> = subjects.collect();
    let name = |subject: &str| {
        let parsed = Subject::parse(subject).ok()?;
        let entity = state.entity(&parsed)?;
        entity.reference().map(|_| (subject.to_owned(), entity.name()))
    };
    subjects.into_iter().filter_map(name).collect()
}

/// Records one event of a kind, for a command that needs nothing more.
fn record_one(
    env: &Env,
    kind: Kind,
    subject: Option<&str>,
    payload: Value,
    key: Option<String>,
) -> Result<AppendOutcome> {
    let Value::Object(mut payload) = payload else { unreachable!("payloads are objects") };
    // What was not given is left out.
    payload.retain(|_, value| !value.is_null());
    let (event_type, subject) = (kind.to_string(), subject.map(str::to_owned));
    append(env, AppendRequest { event_type, subject, payload, key, ..AppendRequest::default() }, false)
}

/// A ULID for something that is named before it is recorded.
fn random_ulid(now: Now) -> Result<Ulid> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|e| Error::system("the kernel gives no random numbers", e))?;
    Ok(Ulid::from_parts(now.millis, u128::from_le_bytes(random) >> 48))
}

/// A random id for something new outside of the log.
fn random_id() -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|e| Error::system("the kernel gives no random numbers", e))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
