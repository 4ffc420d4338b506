//! The context of a call. The front end creates it; no operation reads the environment or a clock by itself.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};

use super::transaction::FindFollowUp;
use crate::base::actor::ActorKind;
use crate::base::{Actor, Clocks, EntityId, Error, Now, Reason, Result, Signature, Subject, Timestamp, Ulid};
use crate::event::Kind;
use crate::job::Cancel;
use crate::policy::belief::Displacement;
use crate::policy::settings::{Setting, Settings};
use crate::policy::statement::Statement;
use crate::policy::{Request, Standing, project, rules};
use crate::vault::{LogStore, Notices, Trust, Vault, WriteOptions};

#[derive(Clone, Debug)]
pub struct Context {
    pub vault: PathBuf,
    /// Where the log is stored, if not in the vault.
    pub store: Option<Arc<dyn LogStore>>,
    /// How long to wait for the vault's lock.
    pub lock_timeout: Duration,
    pub caller: Caller,
    /// The project of the call, if one was named.
    pub project: Option<EntityId>,
    /// Whether that project may be created.
    pub creates_project: bool,
    /// The caller's session, if there is one.
    pub session: Option<String>,
    pub now: Now,
    /// Whether the caller has stopped waiting for an answer.
    pub cancel: Cancel,
    pub host: Arc<Host>,
    /// How an operator's act gets its signature, in a vault with operator keys.
    pub signing: Signing,
    /// What there is to say besides the reply, such as what is wrong with the settings file; the front end takes it.
    pub notices: Notices,
    /// What the call found in the way of all work.
    pub standing: SeenStanding,
}

/// How an operator's act gets its signature.
#[derive(Clone, Debug)]
pub struct Signing {
    /// The file of the private key, or of the public key if the private one is in ssh-agent; default: the host's.
    pub key: Option<PathBuf>,
    /// What was signed elsewhere.
    pub given: Option<Arc<GivenSignature>>,
    pub prompts: Prompts,
    /// Shows a statement and asks whether to sign it; an error if not.
    pub confirm: fn(&Statement) -> Result<()>,
    /// Shows what is about to be approved without a signature, and asks; none if nobody can be asked.
    pub confirm_approval: Option<fn(&Statement) -> Result<()>>,
}

/// A statement and its signature.
#[derive(Clone, Debug)]
pub struct GivenSignature {
    pub statement: Statement,
    pub signature: Signature,
}

/// Who answers when ssh-keygen asks for a passphrase, a PIN or a touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompts {
    /// A person: what ssh-keygen says goes to the terminal.
    OnTerminal,
    /// Nobody: what ssh-keygen says becomes the error message.
    Nobody,
}

impl Default for Signing {
    /// Nobody is there to confirm anything.
    fn default() -> Self {
        let confirm = |_: &Statement| Err(Error::refused(Reason::NotConfirmed, "nobody can be asked to sign"));
        Signing { key: None, given: None, prompts: Prompts::Nobody, confirm, confirm_approval: None }
    }
}

/// What every reply tells its caller, as the last transaction or view of a call found it: what stands in the way of all
/// work, and what took the caller away from its branch. A cloned context is another call, which has seen nothing yet.
#[derive(Debug, Default)]
pub struct SeenStanding(Arc<Mutex<Option<CallersSituation>>>);

/// The situation of a caller.
#[derive(Clone, Debug, Default)]
pub struct CallersSituation {
    /// What stands in the way of its work.
    pub standing: Option<Standing>,
    /// How it leaves what stands still, if it is an agent.
    pub departure: Departure,
    /// What took it away from its branch, if it is a persona.
    pub displacement: Option<Displacement>,
    /// The events that it had not reacted to, and that no longer wait for it because of what this call recorded.
    pub reacted_to: Vec<Ulid>,
}

/// How an agent leaves a project in which no work goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Departure {
    /// Whether it has something to log out of.
    pub can_log_out: bool,
    /// When its session ends at the latest.
    pub by: Option<Timestamp>,
    /// Whether a message waits for it.
    pub has_message: bool,
}

impl Clone for SeenStanding {
    fn clone(&self) -> Self {
        SeenStanding::default()
    }
}

impl SeenStanding {
    /// The same, for a context of the same call.
    pub(super) fn share(&self) -> SeenStanding {
        SeenStanding(Arc::clone(&self.0))
    }

    /// What was found; none if nothing looked.
    pub fn get(&self) -> Option<CallersSituation> {
        self.0.lock().map(|found| found.clone()).unwrap_or_default()
    }

    /// Replaces what was found; what the call has reacted to is kept.
    pub(super) fn set(&self, situation: CallersSituation) {
        if let Ok(mut found) = self.0.lock() {
            let reacted_to = found.take().unwrap_or_default().reacted_to;
            *found = Some(CallersSituation { reacted_to, ..situation });
        }
    }

    /// Adds events that the call has reacted to.
    pub(super) fn add_reacted_to(&self, ids: impl IntoIterator<Item = Ulid>) {
        if let Ok(mut found) = self.0.lock() {
            found.get_or_insert_default().reacted_to.extend(ids);
        }
    }
}

/// The actor that calls, and the owner of its shell.
#[derive(Clone, Debug)]
pub struct Caller {
    pub actor: Actor,
    /// The owner of the shell, which may differ from the actor.
    pub shell: Shell,
}

/// The owner of the shell that a command was started in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shell {
    Persons,
    /// An agent whose name is unknown.
    SomeAgents,
    Agents(String),
    /// No shell: a job's supervisor acts for the actor that fired the job, and records its end even if that actor's
    /// session has ended.
    Supervisors,
}

/// What the machine and the front end offer.
#[derive(Clone, Debug)]
pub struct Host {
    /// The current time, for operations that take long.
    pub clock: fn() -> Now,
    /// The machine's clocks; none if they are unknown.
    pub clocks: fn() -> Option<Clocks>,
    /// The program that supervises jobs and notifies hooks; without it no job can be fired, and only ticks notify.
    pub supervisor: Option<SupervisorProgram>,
    /// In which vaults the commands in the settings may be run.
    pub trust: Trust,
    /// The command that queries a foreign job system; default: from the settings.
    pub check_cmd: Option<String>,
    /// The name that hf-poll was called by, if it is not its own.
    pub poll_as: Option<String>,
    /// The directories that are searched for programs.
    pub search_path: Option<OsString>,
    /// The caller's variables that a job keeps if its supervisor is lost and another one runs it.
    pub kept_env: Vec<(OsString, OsString)>,
    /// A variable of the caller, by its name.
    pub variable: fn(&OsStr) -> Option<OsString>,
    /// Variables that set the clock of a supervisor, in debug builds.
    pub clock_env: Vec<(OsString, OsString)>,
    /// An ai-works tree to use for agents' files; default: from the settings.
    pub works: Option<PathBuf>,
    /// The file of the caller's operator key; none if only an option names it.
    pub operator_key: Option<PathBuf>,
    /// Where the caller's SSH keys are.
    pub ssh_dir: Option<PathBuf>,
    /// Where temporary files are made.
    pub temp_dir: PathBuf,
    /// How many seconds local time is ahead of UTC at a time.
    pub local_offset: fn(Timestamp) -> i64,
    /// The functions that find follow-ups of a commit.
    pub find_follow_ups: &'static [FindFollowUp],
}

pub use crate::job::SupervisorProgram;

impl Caller {
    /// Whether the shell belongs to an agent.
    pub fn is_in_agent_shell(&self) -> bool {
        matches!(self.shell, Shell::SomeAgents | Shell::Agents(_))
    }

    /// Whether an operator calls: a person, in a shell that belongs to no agent.
    pub fn is_operator(&self) -> bool {
        !self.actor.is_autonomous() && !self.is_in_agent_shell()
    }
}

impl Context {
    /// The same call with the current time.
    pub fn at_this_moment(&self) -> Context {
        Context { now: (self.host.clock)(), standing: self.standing.share(), ..self.clone() }
    }

    /// The same call from no session, whose answer does not depend on who asks.
    pub fn without_session(&self) -> Context {
        Context { session: None, ..self.clone() }
    }

    /// The same call by another actor.
    pub fn acting_as(&self, actor: Actor) -> Context {
        Context { caller: Caller { actor, ..self.caller.clone() }, standing: self.standing.share(), ..self.clone() }
    }

    /// The same call with another way to cancel it.
    pub fn with_cancel(&self, cancel: Cancel) -> Context {
        Context { cancel, standing: self.standing.share(), ..self.clone() }
    }

    /// The same call with another way to sign.
    pub fn with_signing(&self, signing: Signing) -> Context {
        Context { signing, standing: self.standing.share(), ..self.clone() }
    }

    /// The project of the call; `main` if none was named.
    pub fn project(&self) -> Subject {
        self.project.as_ref().map_or_else(project::main, project::subject)
    }

    pub(in crate::op) fn open(&self) -> Result<Vault> {
        let vault = Vault::open(&self.vault)?.with_lock_timeout(self.lock_timeout).with_trust(self.host.trust.clone());
        let vault = vault.with_store(self.store.clone()).with_notices(self.notices.clone());
        vault.notices().add(vault.other_owner().map(|owner| {
            format!(
                "{} is somebody else's vault: it belongs to user {owner}, is only read, and none of its commands is run",
                vault.path().display()
            )
        }));
        Ok(vault)
    }

    pub(in crate::op) fn write_options(&self, settings: &Settings) -> WriteOptions {
        WriteOptions {
            lock_timeout: self.lock_timeout,
            now: self.now,
            segment_max_bytes: settings.count(Setting::EventsMaxFileSizeMb).saturating_mul(1024 * 1024),
        }
    }

    /// Refuses the call unless the caller is an operator. `what` is the action, such as "approving".
    pub(in crate::op) fn check_operator(&self, what: &str) -> Result<()> {
        match self.caller.is_operator() {
            true => Ok(()),
            false => Err(rules::operator_only(what, &self.caller.actor)),
        }
    }

    /// A request by the caller. Null members of the payload are dropped.
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

/// Refuses an actor that may not act in this shell: in an agent's shell, only that agent may. Nobody acts as a part of
/// the toolkit.
pub fn check_actor(actor: &Actor, shell: &Shell) -> Result<()> {
    let refused = match shell {
        Shell::Persons | Shell::Supervisors => false,
        Shell::SomeAgents => actor.kind != ActorKind::Agent,
        Shell::Agents(name) => actor.to_string() != format!("agent:{name}"),
    };
    let owner = match shell {
        Shell::Agents(name) => format!("agent {name}"),
        _ => "an agent".to_owned(),
    };
    match refused {
        true => {
            let why = format!("this shell belongs to {owner}; it cannot act as {actor}");
            Err(Error::refused(Reason::OperatorOnly, why))
        }
        false if actor.kind == ActorKind::Core && *shell != Shell::Supervisors => {
            let why = format!("{actor} is reserved; only the toolkit itself acts under this name");
            Err(Error::refused(Reason::ReservedActor, why))
        }
        false => Ok(()),
    }
}
