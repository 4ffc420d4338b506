//! What an operation knows of the world it was called in. The front end makes it; no operation reads the environment
//! or a clock by itself.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::transaction::AfterCommit;
use crate::base::actor::ActorKind;
use crate::base::{Actor, Clocks, EntityId, Error, Now, Reason, Result, Subject};
use crate::event::Kind;
use crate::job::Cancel;
use crate::policy::settings::{Setting, Settings};
use crate::policy::{Request, project};
use crate::vault::{LogStore, Vault, WriteOptions};

#[derive(Clone, Debug)]
pub struct Context {
    pub vault: PathBuf,
    /// Where its log is kept, if not in the vault itself.
    pub store: Option<Arc<dyn LogStore>>,
    /// How long to wait for the vault's lock.
    pub lock_timeout: Duration,
    pub caller: Caller,
    /// The project that it is about, if one was named.
    pub project: Option<EntityId>,
    /// The session of the caller, if it has one.
    pub session: Option<String>,
    pub now: Now,
    /// Whether the caller no longer waits for an answer.
    pub cancel: Cancel,
    pub host: Arc<Host>,
}

/// Who calls, and from whose shell.
#[derive(Clone, Debug)]
pub struct Caller {
    pub actor: Actor,
    /// Whose shell this is, whatever actor was named.
    pub shell: Shell,
}

/// Whose shell a command was started in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shell {
    Persons,
    /// An agent's whose name is not known.
    SomeAgents,
    Agents(String),
    /// None: a job's supervisor acts for the one who fired it, and records its end whatever became of them.
    Supervisors,
}

/// What the machine and the front end offer.
#[derive(Clone, Debug)]
pub struct Host {
    /// The time of day, for what lives longer than one request.
    pub clock: fn() -> Now,
    /// The machine's clocks; nothing where they are not known.
    pub clocks: fn() -> Option<Clocks>,
    /// The program that looks after jobs; without one, none can be fired.
    pub supervisor: Option<SupervisorProgram>,
    /// How to ask a foreign job system; else the settings say it.
    pub check_cmd: Option<String>,
    /// The name under which hf-poll was called, if by another.
    pub poll_as: Option<String>,
    /// Where programs are looked for.
    pub search_path: Option<OsString>,
    /// An ai-works tree that is served in place; else the settings say it.
    pub works: Option<PathBuf>,
    /// How far local clocks are ahead of UTC.
    pub utc_offset_seconds: i64,
    /// What is to be done after every commit.
    pub after_commit: &'static [AfterCommit],
}

pub use crate::job::SupervisorProgram;

impl Caller {
    /// Whether the shell belongs to an agent.
    pub fn is_in_agent_shell(&self) -> bool {
        matches!(self.shell, Shell::SomeAgents | Shell::Agents(_))
    }
}

impl Context {
    /// The same call, a moment later.
    pub fn at_this_moment(&self) -> Context {
        Context { now: (self.host.clock)(), ..self.clone() }
    }

    /// The same call by somebody else.
    pub fn acting_as(&self, actor: Actor) -> Context {
        Context { caller: Caller { actor, ..self.caller.clone() }, ..self.clone() }
    }

    /// The same call, given up when this says so.
    pub fn with_cancel(&self, cancel: Cancel) -> Context {
        Context { cancel, ..self.clone() }
    }

    /// The project that it is about.
    pub fn project(&self) -> Subject {
        self.project.as_ref().map_or_else(project::main, project::subject)
    }

    pub(in crate::op) fn open(&self) -> Result<Vault> {
        let vault = Vault::open(&self.vault)?.with_lock_timeout(self.lock_timeout);
        Ok(vault.with_store(self.store.clone()))
    }

    pub(in crate::op) fn write_options(&self, settings: &Settings) -> WriteOptions {
        WriteOptions {
            lock_timeout: self.lock_timeout,
            now: self.now,
            segment_max_bytes: settings.count(Setting::EventsMaxFileSizeMb).saturating_mul(1024 * 1024),
        }
    }

    /// Refuses what only a person may do.
    pub(in crate::op) fn check_operator(&self, what: &str) -> Result<()> {
        if self.caller.actor.is_autonomous() || self.caller.is_in_agent_shell() {
            return Err(Error::refused(
                Reason::OperatorOnly,
                format!("{what} is for an operator, not for {}", self.caller.actor),
            ));
        }
        Ok(())
    }

    /// A request by the caller. Members that are null were not given.
    pub(in crate::op) fn request(&self, kind: Kind, subject: Option<&str>, payload: Value) -> Request {
        let Value::Object(payload) = payload else { unreachable!("payloads are objects") };
        Request {
            kind,
            subject: subject.map(str::to_owned),
            actor: self.caller.actor.clone(),
            autonomous: self.caller.is_in_agent_shell(),
            parents: Vec::new(),
            key: None,
            payload: payload.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>(),
        }
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
