//! The environment and the clock. Nothing else reads environment variables; commands that wait read the clock again,
//! through the functions in `Host`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::flags::{ActingAs, Flags};
use crate::base::{Actor, Clocks, EntityId, Error, ErrorKind, Now, Result, Timestamp};
use crate::job::{Cancel, OWNER_VARS};
use crate::op::{self, Caller, Context, Host, Shell, SupervisorProgram, WatchdogProgram};
use crate::policy::scheduler::{ALL_IN_ONE, WATCHDOG_PROGRAM};
use crate::vault::config;
use crate::vault::{AKASHIC, CONFIG_FILE, Notices, Trust};

/// The directory name that is searched for in the current directory and above.
pub const VAULT_NAME: &str = "Vault";

/// The user's list of trusted vaults, in the directory for configuration.
const TRUST_FILE: &str = "hiveforge/trust";

const PROJECT_NAME_RULE: &str = "a project name must be 1 to 64 letters or digits of any script in NFC, '_' or '-', starting with a letter or digit";
const AGENT_NAME_RULE: &str =
    "an agent name must be 1 to 64 letters or digits of any script in NFC, '_' or '-', starting with a letter or digit";

fn parse_project(name: &str) -> Result<EntityId> {
    EntityId::parse(name).map_err(|_| Error::usage(PROJECT_NAME_RULE))
}

/// How many seconds local time is ahead of UTC at a time.
fn local_offset(at: Timestamp) -> i64 {
    use chrono::{Local, Offset, TimeZone};
    let offset = Local.timestamp_opt(at.0, 0).single();
    offset.map_or(0, |time| i64::from(time.offset().fix().local_minus_utc()))
}

/// Everything the process takes from its surroundings: variables, directory and time.
#[derive(Clone, Debug)]
pub struct Environment {
    pub now: Now,
    pub exit_zero: bool,
    /// Whether a terminal may get colours.
    pub colours: bool,
    /// The width of the terminal according to COLUMNS.
    pub columns: Option<usize>,
    /// Whether a variable says that this shell belongs to an agent, or to a program that the toolkit started.
    pub in_agent_shell: bool,
    agent: Option<String>,
    session: Option<String>,
    vault: Option<PathBuf>,
    /// In which vaults the commands in the settings may be run.
    trust: Trust,
    check_cmd: Option<String>,
    poll_as: Option<String>,
    search_path: Option<OsString>,
    kept: Vec<(OsString, OsString)>,
    clock_variables: Vec<(OsString, OsString)>,
    works: Option<PathBuf>,
    operator_key: Option<PathBuf>,
    ssh_dir: Option<PathBuf>,
    temp_dir: PathBuf,
    project: Option<String>,
    login: String,
    directory: PathBuf,
    /// The program that supervises jobs.
    supervisor: Option<PathBuf>,
    /// Where a debug build also writes every reply as JSON, for tests that validate it against the schema.
    pub replies: Option<PathBuf>,
}

/// Variables that a job keeps if its supervisor is lost and another one runs it: where programs, files and the vault
/// are, who runs it, and how it prints. The others may be secrets, and are not written to a file.
const KEPT_VARIABLES: &[&str] = &[
    "HF_AGENT",
    "HF_CHECK_CMD",
    "HF_EXIT_ZERO",
    "HF_OPERATOR_KEY",
    "HF_POLL_AS",
    "HF_PROJECT",
    "HF_RUN_ID",
    "HF_SESSION",
    "HF_TASK_ID",
    "HF_TRUST",
    "HF_VAULT",
    "HF_WORKS",
    "HIVEFORGE_VAULT_PATH",
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
];
const KEPT_PREFIX: &str = "LC_";
/// Variables that set the clock in a debug build.
const CLOCK_VARIABLES: &[&str] = &["HF_NOW", "HF_STEPPED", "HF_SLEPT", "HF_BOOT"];

impl Environment {
    /// Reads the environment and the clock.
    #[expect(clippy::disallowed_methods, reason = "the environment is read here, once")]
    pub fn read() -> Self {
        let var = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // Debug builds only: break a guarantee on purpose, so that scripts/torture can show that it would notice.
        #[cfg(debug_assertions)]
        if let Some(name) = var("HF_SABOTAGE") {
            crate::vault::sabotage(&name);
        }
        Environment {
            now: clock(),
            exit_zero: var("HF_EXIT_ZERO").as_deref() == Some("1"),
            colours: var("NO_COLOR").is_none() && var("TERM").as_deref() != Some("dumb"),
            columns: var("COLUMNS").and_then(|columns| columns.parse().ok()),
            in_agent_shell: OWNER_VARS.iter().any(|name| path(name).is_some()),
            // A shell with a name that is not UTF-8 still belongs to an agent.
            agent: path("HF_AGENT").map(|name| name.to_string_lossy().into_owned()),
            session: path("HF_SESSION").map(|name| name.to_string_lossy().into_owned()),
            vault: path("HF_VAULT").or_else(|| path("HIVEFORGE_VAULT_PATH")),
            trust: Trust {
                // A relative path there is invalid by the XDG specification.
                file: path("XDG_CONFIG_HOME")
                    .filter(|folder| folder.is_absolute())
                    .or_else(|| path("HOME").map(|home| home.join(".config")))
                    .map(|folder| folder.join(TRUST_FILE)),
                vault_id: var("HF_TRUST"),
            },
            check_cmd: var("HF_CHECK_CMD"),
            poll_as: var("HF_POLL_AS"),
            search_path: std::env::var_os("PATH"),
            kept: std::env::vars_os().filter(|(name, _)| is_kept(name)).collect(),
            clock_variables: std::env::vars_os().filter(|(name, _)| is_one_of(name, CLOCK_VARIABLES)).collect(),
            works: path("HF_WORKS"),
            operator_key: path("HF_OPERATOR_KEY"),
            ssh_dir: path("HOME").map(|home| home.join(".ssh")),
            temp_dir: std::env::temp_dir(),
            project: path("HF_PROJECT").map(|name| name.to_string_lossy().into_owned()),
            login: var("LOGNAME")
                .or_else(|| var("USER"))
                .filter(|name| Actor::parse(&format!("user:{name}")).is_ok())
                .unwrap_or_else(|| format!("uid-{}", rustix::process::geteuid().as_raw())),
            directory: std::env::current_dir().unwrap_or_default(),
            supervisor: supervisor(),
            replies: if cfg!(debug_assertions) { path("HF_REPLIES") } else { None },
        }
    }

    /// The vault of a command: from its options, the environment, or the current directory. An empty path if the
    /// command needs none.
    pub fn vault(&self, flags: &Flags) -> Result<PathBuf> {
        if !flags.needs_vault {
            return Ok(PathBuf::new());
        }
        let named = flags.vault.clone().or_else(|| self.vault.clone()).or_else(|| flags.default_vault.clone());
        Ok(self.directory.join(match named {
            Some(path) => path,
            None => self.nearest_vault()?,
        }))
    }

    /// The context of an operation. If HF_SESSION is set, this reads the vault to find the agent and project of the
    /// session.
    pub fn context(&self, flags: &Flags) -> Result<Context> {
        let vault = self.vault(flags)?;
        let session = self.session.as_deref().and_then(|name| op::session::agent_and_project_of_session(&vault, name));
        let (agent_of_session, project_of_session) = session.unzip();
        let agent = self.agent.clone().or_else(|| agent_of_session.map(|agent: EntityId| agent.to_string()));
        let shell = self.shell(agent.as_deref());
        Ok(Context {
            vault,
            store: None,
            now: self.now,
            caller: Caller {
                actor: match &flags.acting_as {
                    ActingAs::Caller { actor } => self.actor(actor.as_deref(), agent.as_deref(), &shell)?,
                    ActingAs::Agent { name } => {
                        let name = name.as_deref().or(agent.as_deref()).unwrap_or(op::agent::DEFAULT_AGENT);
                        EntityId::parse(name).map_err(|_| Error::usage(AGENT_NAME_RULE))?;
                        let actor = Actor::parse(&format!("agent:{name}"))?;
                        op::check_actor(&actor, &shell)?;
                        actor
                    }
                },
                shell,
            },
            lock_timeout: Duration::from_secs(flags.lock_timeout),
            project: match flags.project.as_deref().or(self.project.as_deref()) {
                Some(named) => Some(parse_project(named)?),
                None => project_of_session,
            },
            creates_project: flags.creates_project,
            session: flags.session.clone().or_else(|| self.session.clone()),
            cancel: Cancel::never(),
            standing: op::SeenStanding::default(),
            host: Arc::new(Host {
                supervisor: self.supervisor.clone().map(|program| SupervisorProgram { program }),
                trust: self.trust.clone(),
                check_cmd: self.check_cmd.clone(),
                poll_as: self.poll_as.clone(),
                search_path: self.search_path.clone(),
                kept_env: self.kept.clone(),
                clock_env: self.clock_variables.clone(),
                works: flags.works.clone().or_else(|| self.works.clone()).map(|works| self.directory.join(works)),
                operator_key: self.operator_key.clone(),
                ssh_dir: self.ssh_dir.clone(),
                temp_dir: self.temp_dir.clone(),
                local_offset,
                clocks,
                variable,
                ..Host::new(clock)
            }),
            signing: op::Signing::default(),
            notices: Notices::default(),
        })
    }

    /// Whose shell this is.
    fn shell(&self, agent: Option<&str>) -> Shell {
        match agent {
            Some(name) => Shell::Agents(name.to_owned()),
            None if self.in_agent_shell => Shell::SomeAgents,
            None => Shell::Persons,
        }
    }

    /// The actor: the given one if the shell may act as it, else the agent, else the user.
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

    /// The nearest `Vault/`, or the vault that a configuration file names, in the current directory or above.
    fn nearest_vault(&self) -> Result<PathBuf> {
        let found = self.directory.ancestors().find_map(|directory| vault_in(directory).transpose());
        found.unwrap_or_else(|| {
            Err(Error::new(
                ErrorKind::NoVault,
                "no Vault/ found in this directory or above; name one with --vault, or create one with hf-init",
            ))
        })
    }
}

fn is_one_of(name: &OsStr, names: &[&str]) -> bool {
    name.to_str().is_some_and(|name| names.contains(&name))
}

fn is_kept(name: &OsStr) -> bool {
    is_one_of(name, KEPT_VARIABLES) || name.to_str().is_some_and(|name| name.starts_with(KEPT_PREFIX))
}

/// The running program, even if its file was replaced or deleted.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// The program that supervises jobs: the running one if it is `hf-job` or `hf`, else the first of them in the same
/// directory.
fn supervisor() -> Option<PathBuf> {
    let exe = std::fs::read_link(THIS_PROGRAM).ok()?;
    let name = exe.file_name()?.to_string_lossy().into_owned();
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name);
    match SUPERVISORS.contains(&name) {
        true => Some(PathBuf::from(THIS_PROGRAM)),
        false => SUPERVISORS.iter().map(|name| exe.with_file_name(name)).find(|program| program.is_file()),
    }
}

/// The program that makes a tick of the watchdog: this one, or the one beside it that has the name.
pub fn watchdog_program() -> Result<WatchdogProgram> {
    let exe = std::fs::read_link(THIS_PROGRAM).map_err(|e| Error::system("cannot find this program", e))?;
    // The kernel adds this if the file was replaced since this program was started.
    let shown = exe.to_str().map(|path| PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(path)));
    let exe = shown.unwrap_or(exe);
    let named = exe.with_file_name(WATCHDOG_PROGRAM);
    let (all_in_one, word) = ALL_IN_ONE;
    match named.is_file() {
        true => Ok(WatchdogProgram { path: named, subcommand: None }),
        false if exe.is_file() && exe.file_name() == Some(OsStr::new(all_in_one)) => {
            Ok(WatchdogProgram { path: exe, subcommand: Some(word) })
        }
        false => Err(Error::not_found(format!("{} does not exist", named.display()))),
    }
}

/// The names of programs that can supervise jobs.
const SUPERVISORS: &[&str] = &["hf-job", "hf"];

/// The vault of a directory, if it has one. If it cannot be read, that is an error: skipping it would make the command
/// use another vault above.
fn vault_in(directory: &Path) -> Result<Option<PathBuf>> {
    let absent = |e: &io::Error| matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let failed = |path: &Path, e| Error::system(format!("cannot read {}", path.display()), e);
    let vault = directory.join(VAULT_NAME);
    match std::fs::metadata(vault.join(AKASHIC)) {
        Ok(found) if found.is_dir() => return Ok(Some(vault)),
        Err(e) if !absent(&e) => return Err(failed(&vault, e)),
        _ => {}
    }
    let config = directory.join(CONFIG_FILE);
    // A named pipe or a directory in some directory above is no settings file.
    match std::fs::symlink_metadata(&config) {
        Ok(found) if !found.is_file() && !found.is_symlink() => Ok(None),
        Err(e) if absent(&e) => Ok(None),
        Err(e) => Err(failed(&config, e)),
        Ok(_) => config::vault_named_in(directory),
    }
}

/// Where the kernel publishes the id of this boot.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The machine's clocks, or `None` if the kernel does not publish a boot id.
#[cfg_attr(
    debug_assertions,
    expect(clippy::disallowed_methods, reason = "debug builds take the clocks from variables")
)]
fn clocks() -> Option<Clocks> {
    use rustix::time::{ClockId, clock_gettime};
    let millis = |id| {
        let time = clock_gettime(id);
        (time.tv_sec.max(0) as u64) * 1000 + time.tv_nsec as u64 / 1_000_000
    };
    let real = clock();
    // Debug builds only: together with HF_NOW, tests set how long the machine slept and by how much its clock was set.
    #[cfg(debug_assertions)]
    if std::env::var_os("HF_NOW").is_some() {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        let since_boot = (real.millis as i64 - number("HF_STEPPED") * 1000).max(0) as u64;
        let awake = (since_boot as i64 - number("HF_SLEPT") * 1000).max(0) as u64;
        return Some(Clocks {
            boot_id: [number("HF_BOOT") as u8; 16],
            real,
            since_boot_ms: since_boot,
            awake_ms: awake,
        });
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

/// A variable, by its name. Read when it is needed: others may be secrets.
#[expect(clippy::disallowed_methods, reason = "the environment is read here only")]
fn variable(name: &OsStr) -> Option<OsString> {
    std::env::var_os(name)
}

/// The time of day.
#[expect(clippy::disallowed_methods, reason = "the clock is read here only")]
fn clock() -> Now {
    // In a debug build HF_NOW sets the time, so that tests need not wait. A release build ignores it: an agent must not
    // be able to keep the watchdog quiet by setting a variable.
    #[cfg(debug_assertions)]
    if let Some(time) = std::env::var("HF_NOW").ok().and_then(|text| Timestamp::parse_lenient(&text)) {
        return Now { millis: time.0.max(0) as u64 * 1000 };
    }
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Now { millis: since.map_or(0, |d| d.as_millis() as u64) }
}
