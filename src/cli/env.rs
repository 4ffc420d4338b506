//! The one place that reads the environment and the clock.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::flags::{Flags, Voice};
use crate::base::{Actor, Clocks, EntityId, Error, ErrorKind, Now, Result};
use crate::job::Cancel;
use crate::op::{self, Caller, Context, Host, Shell, SupervisorProgram};
use crate::policy::settings::Setting;
use crate::vault::config;
use crate::vault::{AKASHIC, CONFIG_FILE};

/// The name that is looked for from the current folder upwards.
pub const VAULT_NAME: &str = "Vault";

/// The agent, if none is named.
pub const DEFAULT_AGENT: &str = "main";
const PROJECT_NAME: &str = "a project's name has 1 to 64 letters, digits, '_' or '-', the first a letter or digit";
const AGENT_NAME: &str = "an agent's name has 1 to 64 letters, digits, '_' or '-', the first a letter or digit";

fn project(name: &str) -> Result<EntityId> {
    EntityId::parse(name).map_err(|_| Error::usage(PROJECT_NAME))
}

/// How far the clocks of this place are ahead of UTC.
fn local_offset(now: Now) -> i64 {
    use chrono::{Local, Offset, TimeZone};
    let offset = Local.timestamp_opt(now.timestamp().0, 0).single();
    offset.map_or(0, |moment| i64::from(moment.offset().fix().local_minus_utc()))
}

/// What the process was started with.
#[derive(Clone, Debug)]
pub struct Outer {
    pub now: Now,
    pub exit_zero: bool,
    /// Whether a terminal may be given colours.
    pub colours: bool,
    /// How many columns a terminal says that it has.
    pub columns: Option<usize>,
    /// Whether a variable of the shell says that an agent, or something that the toolkit started, is at work.
    pub in_agent_shell: bool,
    agent: Option<String>,
    session: Option<String>,
    vault: Option<PathBuf>,
    check_cmd: Option<String>,
    poll_as: Option<String>,
    search_path: Option<std::ffi::OsString>,
    works: Option<PathBuf>,
    project: Option<String>,
    login: String,
    folder: PathBuf,
    /// The program that looks after jobs.
    supervisor: Option<PathBuf>,
    /// Where a debug build writes every reply as JSON, so that tests can hold it against the schema.
    pub replies: Option<PathBuf>,
}

/// Variables that an agent's shell has.
const OF_AGENTS: &[&str] = &["HF_AGENT", "HF_SESSION", "HF_RUN_ID", "HF_TASK_ID"];

impl Outer {
    /// Reads everything once.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that may")]
    pub fn read() -> Self {
        let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // Only a debug build can be told to break its promises, for scripts/torture.
        #[cfg(debug_assertions)]
        if let Some(name) = var("HF_SABOTAGE") {
            crate::vault::sabotage(&name);
        }
        Outer {
            now: clock(),
            exit_zero: var("HF_EXIT_ZERO").as_deref() == Some("1"),
            colours: var("NO_COLOR").is_none() && var("TERM").as_deref() != Some("dumb"),
            columns: var("COLUMNS").and_then(|columns| columns.parse().ok()),
            in_agent_shell: OF_AGENTS.iter().any(|name| path(name).is_some()),
            // One that is no text is still an agent's.
            agent: path("HF_AGENT").map(|name| name.to_string_lossy().into_owned()),
            session: path("HF_SESSION").map(|name| name.to_string_lossy().into_owned()),
            vault: path("HF_VAULT").or_else(|| path("HIVEFORGE_VAULT_PATH")),
            check_cmd: var("HF_CHECK_CMD"),
            poll_as: var("HF_POLL_AS"),
            search_path: std::env::var_os("PATH"),
            works: path("HF_WORKS"),
            project: path("HF_PROJECT").map(|name| name.to_string_lossy().into_owned()),
            login: var("LOGNAME")
                .or_else(|| var("USER"))
                .filter(|name| Actor::parse(&format!("user:{name}")).is_ok())
                .unwrap_or_else(|| format!("uid-{}", rustix::process::geteuid().as_raw())),
            folder: std::env::current_dir().unwrap_or_default(),
            supervisor: supervisor(),
            replies: if cfg!(debug_assertions) { path("HF_REPLIES") } else { None },
        }
    }

    /// The vault that a command is about: by its flags, the environment, or the folder.
    pub fn vault(&self, flags: &Flags) -> Result<PathBuf> {
        let named = flags.vault.clone().or_else(|| self.vault.clone()).or_else(|| flags.default_vault.clone());
        Ok(self.folder.join(match named {
            Some(path) => path,
            None => self.nearest()?,
        }))
    }

    /// What an operation has to know. The arguments are parsed by now; a session that is named says whose
    /// shell this is and for which project, so its vault is looked at here.
    pub fn env(&self, flags: &Flags) -> Result<Context> {
        let vault = self.vault(flags)?;
        let session = self.session.as_deref().and_then(|name| op::session::whose(&vault, name));
        let (of_session, project_of_session) = session.unzip();
        let agent = self.agent.clone().or_else(|| of_session.map(|agent: EntityId| agent.to_string()));
        let shell = self.shell(agent.as_deref());
        Ok(Context {
            vault,
            store: None,
            now: self.now,
            caller: Caller {
                actor: match &flags.voice {
                    Voice::Anybody { actor } => self.actor(actor.as_deref(), agent.as_deref(), &shell)?,
                    Voice::Agent { name } => {
                        let name = name.as_deref().or(agent.as_deref()).unwrap_or(DEFAULT_AGENT);
                        EntityId::parse(name).map_err(|_| Error::usage(AGENT_NAME))?;
                        let actor = Actor::parse(&format!("agent:{name}"))?;
                        op::check_actor(&actor, &shell)?;
                        actor
                    }
                },
                shell,
            },
            lock_timeout: Duration::from_secs(flags.lock_timeout),
            project: match flags.project.as_deref().or(self.project.as_deref()) {
                Some(named) => Some(project(named)?),
                None => project_of_session,
            },
            session: flags.session.clone().or_else(|| self.session.clone()),
            cancel: Cancel::never(),
            host: Arc::new(Host {
                supervisor: self.supervisor.clone().map(|program| SupervisorProgram { program }),
                check_cmd: self.check_cmd.clone(),
                poll_as: self.poll_as.clone(),
                search_path: self.search_path.clone(),
                works: flags.works.clone().or_else(|| self.works.clone()).map(|works| self.folder.join(works)),
                utc_offset_seconds: local_offset(self.now),
                clocks,
                ..Host::new(clock)
            }),
        })
    }

    /// Whose shell this is.
    fn shell(&self, agent: Option<&str>) -> Shell {
        match (agent, &self.session) {
            (Some(name), _) => Shell::Agents(name.to_owned()),
            (None, Some(_)) => Shell::SomeAgents,
            (None, None) => Shell::Persons,
        }
    }

    fn actor(&self, given: Option<&str>, agent: Option<&str>, shell: &Shell) -> Result<Actor> {
        match (given, agent) {
            (Some(actor), _) => {
                let actor = Actor::parse(actor)?;
                op::check_actor(&actor, shell)?;
                Ok(actor)
            }
            (None, Some(agent)) => Actor::parse(&format!("agent:{agent}")),
            (None, None) => Actor::parse(&format!("user:{}", self.login)),
        }
    }

    /// The nearest `Vault/`, or the vault that a configuration beside it names.
    fn nearest(&self) -> Result<PathBuf> {
        let found = self.folder.ancestors().find_map(|folder| vault_in(folder).transpose());
        found.unwrap_or_else(|| {
            Err(Error::new(
                ErrorKind::NoVault,
                "no Vault/ here or in a folder above; name one with --vault, or make one with hf-init",
            ))
        })
    }
}

/// This very program, under whatever name it was replaced or deleted since.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// The program that looks after jobs: `hf-job`, or `hf` under that name. Another command finds one of them beside it.
fn supervisor() -> Option<PathBuf> {
    let exe = std::fs::read_link(THIS_PROGRAM).ok()?;
    let name = exe.file_name()?.to_string_lossy().into_owned();
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
    match SUPERVISORS.contains(&name) {
        true => Some(PathBuf::from(THIS_PROGRAM)),
        false => SUPERVISORS.iter().map(|name| exe.with_file_name(name)).find(|program| program.is_file()),
    }
}

/// What a program that can look after jobs is called.
const SUPERVISORS: &[&str] = &["hf-job", "hf"];

/// The vault that belongs to a folder. One that cannot be looked at is not passed over: the command
/// would go to another one above.
fn vault_in(folder: &Path) -> Result<Option<PathBuf>> {
    let absent = |e: &io::Error| matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let failed = |path: &Path, e| Error::system(format!("cannot look at {}", path.display()), e);
    let vault = folder.join(VAULT_NAME);
    match std::fs::metadata(vault.join(AKASHIC)) {
        Ok(found) if found.is_dir() => return Ok(Some(vault)),
        Err(e) if !absent(&e) => return Err(failed(&vault, e)),
        _ => {}
    }
    let config = folder.join(CONFIG_FILE);
    // A pipe that somebody left in a folder above would make us wait for ever.
    if std::fs::metadata(&config).is_ok_and(|found| !found.is_file()) {
        return Ok(None);
    }
    let text = match std::fs::read_to_string(&config) {
        Err(e) if !absent(&e) => return Err(failed(&config, e)),
        text => text.unwrap_or_default(),
    };
    let (settings, _) = config::parse(&text).map_err(|e| e.at(folder.display()))?;
    Ok(settings.values.get(&Setting::HiveVaultPath).and_then(|path| path.as_str()).map(|path| folder.join(path)))
}

/// Where the kernel says which start of which machine this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The machine's clocks; nothing where the kernel does not tell which machine it is.
#[cfg_attr(debug_assertions, expect(clippy::disallowed_methods, reason = "the only clocks of the toolkit"))]
fn clocks() -> Option<Clocks> {
    use rustix::time::{ClockId, clock_gettime};
    let millis = |id| {
        let time = clock_gettime(id);
        (time.tv_sec.max(0) as u64) * 1000 + time.tv_nsec as u64 / 1_000_000
    };
    let real = clock();
    // With the time of day, a debug build may be told how long the machine slept and by how much its clock was set.
    #[cfg(debug_assertions)]
    if std::env::var_os("HF_NOW").is_some() {
        let told = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        let since_boot = (real.millis as i64 - told("HF_STEPPED") * 1000).max(0) as u64;
        let awake = (since_boot as i64 - told("HF_SLEPT") * 1000).max(0) as u64;
        return Some(Clocks { boot_id: [told("HF_BOOT") as u8; 16], real, since_boot_ms: since_boot, awake_ms: awake });
    }
    let text = std::fs::read_to_string(BOOT_ID).ok()?;
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let boot_id: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>()?;
    Some(Clocks {
        boot_id: boot_id.try_into().ok()?,
        real,
        since_boot_ms: millis(ClockId::Boottime),
        awake_ms: millis(ClockId::Monotonic),
    })
}

#[expect(clippy::disallowed_methods, reason = "the only clock of the toolkit")]
fn clock() -> Now {
    // A debug build may be told the time, so that tests need not wait for it. A release build may
    // not: an agent must not be able to talk the watchdog out of its alarm.
    #[cfg(debug_assertions)]
    if let Some(time) = std::env::var("HF_NOW").ok().and_then(|text| crate::base::Timestamp::parse_lenient(&text)) {
        return Now { millis: time.0.max(0) as u64 * 1000 };
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Now { millis: since.map_or(0, |d| d.as_millis() as u64) }
}
