//! The command of a job: what `fire` records about it, and what a supervisor runs.
//!
//! A command that requires approval gets an environment of its own, which is recorded with the files that the command
//! names. Everything that runs is read from the log; the files in the job's directory can be changed by anybody who can
//! write there.
//!
//! Invariant: a command that requires approval starts only as it was approved
//! (`a3_a_script_that_changed_after_its_approval_does_not_run`).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::fire::FireRequest;
use crate::base::{Actor, Error, Reason, Result, limits, text};
use crate::event::Event;
use crate::job::{DEFAULT_PATH, Identity, OWNER_VARS, RunCommand, RunEnvironment, Spec, find_program, named_files};
use crate::op::{Context, random_ulid};
use crate::policy::command::{Binding, BoundVariable, COMMAND_HASH, RecordedCommand};
use crate::policy::settings::{Setting, Settings};
use crate::state::Entity;
use crate::vault::Log;

/// Variables that a command gets although it has an environment of its own.
const ALWAYS_PASSED: &[&str] = &["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"];
/// Those with names that begin like this, too.
const LOCALE_PREFIX: &str = "LC_";
/// How the names of the toolkit's variables begin.
const TOOLKIT_PREFIX: &str = "HF_";
/// A variable that a supervisor sets for every job, besides those that say whose shell it is.
const VAULT_VAR: &str = "HF_VAULT";

/// Variables that make programs load code or run others, by their names or how these begin. An operator must see their
/// values. No list of them is complete.
const LOADS_CODE: &[&str] = &[
    "BASHOPTS",
    "BROWSER",
    "CLASSPATH",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSOPEN",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "MFLAGS",
    "OPENSSL_CONF",
    "PAGER",
    "PROMPT_COMMAND",
    "PS4",
    "RSYNC_RSH",
    "SHELLOPTS",
    "TAR_OPTIONS",
    "VISUAL",
    "_JAVA_OPTIONS",
];
const LOADS_CODE_PREFIXES: &[&str] = &[
    "BASH_", "CARGO", "DYLD_", "GIT_", "LD_", "LUA", "NODE_", "NPM_", "PERL", "PHP", "PIP_", "PYTHON", "RUBY", "RUST",
    "XDG_", "ZDOTDIR",
];

/// Refuses a variable whose value an operator must see.
pub(super) fn check_secret(name: &str) -> Result<()> {
    check_name(name)?;
    let loads_code = LOADS_CODE.contains(&name) || LOADS_CODE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    match () {
        () if loads_code || is_always_passed(name) => {
            Err(Error::usage(format!("{name} can make a program run other code, so its value is no secret; use --env")))
        }
        () if name.starts_with(TOOLKIT_PREFIX) => Err(own(name)),
        () => Ok(()),
    }
}

/// Refuses what is no name: with `=` in it, it would be the beginning of another variable.
fn check_name(name: &str) -> Result<()> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match !name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit()) {
        true => Ok(()),
        false => Err(Error::usage(format!("'{}' is not the name of a variable", text::cut(name, 40)))),
    }
}

fn is_always_passed(name: &str) -> bool {
    ALWAYS_PASSED.contains(&name) || name.starts_with(LOCALE_PREFIX)
}

/// Whether a supervisor sets this variable itself.
fn is_own(name: &str) -> bool {
    OWNER_VARS.contains(&name) || name == VAULT_VAR
}

fn own(name: &str) -> Error {
    Error::usage(format!("{name} is a variable of the toolkit, which sets it for every job"))
}

/// The command of a new job, before anything is bound.
pub(super) fn requested(request: &FireRequest) -> RecordedCommand {
    RecordedCommand {
        words: request.argv.iter().map(|word| word.as_bytes().to_vec()).collect(),
        cwd: request.cwd.as_os_str().as_bytes().to_vec(),
        bound: None,
    }
}

/// Makes a command one that can be approved: the program and the directory by their full paths. An approval of a
/// program that is not there would bind nothing.
pub(super) fn resolve(ctx: &Context, request: &mut FireRequest) -> Result<()> {
    let cwd = std::fs::canonicalize(&request.cwd);
    request.cwd = cwd.map_err(|e| Error::system(format!("cannot resolve {}", request.cwd.display()), e))?;
    let name = &request.argv[0];
    let not_found = || Error::usage(format!("command not found: {}", text::escape(&name.to_string_lossy())));
    let program = find_program(name, &request.cwd, &search_path(ctx, request)).ok_or_else(not_found)?;
    let program = request.cwd.join(program);
    if !program.is_file() {
        return Err(not_found());
    }
    request.argv[0] = program.into_os_string();
    Ok(())
}

/// The PATH of the command. It always has one, so that what it finds does not depend on who runs it.
fn search_path(ctx: &Context, request: &FireRequest) -> OsString {
    let set = request.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    set.or_else(|| ctx.host.search_path.clone()).unwrap_or_else(|| DEFAULT_PATH.into())
}

/// Everything that an approval of a command is to bind. Reads the files that it names, so nothing may be locked.
pub(super) fn bind(ctx: &Context, request: &FireRequest, settings: &Settings) -> Result<Binding> {
    let command = requested(request);
    let words = command.words.iter().map(|word| readable("the command", word)).collect::<Result<Vec<_>>>()?;
    readable("the working directory", &command.cwd)?;
    let environment = environment(ctx, request, settings)?;
    let given =
        request.env.iter().map(|(name, _)| readable("a variable", name.as_bytes())).collect::<Result<Vec<_>>>()?;
    let given = given.into_iter().chain(request.secrets.iter().cloned()).collect();
    let files = named_files(&words, &request.cwd, &search_path(ctx, request))?;
    let binding = Binding { environment, given, files };
    let bound = RecordedCommand { bound: Some(binding), ..command };
    let (bytes, max) = (bound.stated_bytes_at_most(), limits::BOUND_MAX_BYTES);
    if bytes > max {
        let why = "the command, its variables and the names of its files are too long to be approved";
        return Err(Error::usage(format!("{why}: {bytes} bytes, at most {max}; put the script into a file")));
    }
    Ok(bound.bound.expect("it was just set"))
}

/// Whether a job that was fired before has these variables.
pub(super) fn has_same_variables(ctx: &Context, request: &FireRequest, bound: &Binding) -> bool {
    let value = |name: &OsStr| {
        let given = request.env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        given.or_else(|| (ctx.host.variable)(name))
    };
    let names = request.env.iter().map(|(name, _)| name.to_string_lossy().into_owned());
    let names: Vec<String> = names.chain(request.secrets.iter().cloned()).collect();
    let is_same = |variable: &BoundVariable| {
        let value = value(OsStr::new(variable.name()));
        let value = value.as_deref().and_then(OsStr::to_str);
        match variable {
            BoundVariable::Plain { value: bound, .. } => value == Some(bound),
            BoundVariable::Secret { name, salt, .. } => {
                value.is_some_and(|value| BoundVariable::secret(name, salt, value) == *variable)
            }
        }
    };
    let given = bound.environment.iter().filter(|variable| names.iter().any(|name| name == variable.name()));
    names == bound.given && given.into_iter().all(is_same)
}

/// What an operator must be able to read.
fn readable(what: &str, bytes: &[u8]) -> Result<String> {
    let text = String::from_utf8(bytes.to_vec());
    text.map_err(|_| Error::usage(format!("{what} is not UTF-8, so an operator could not read what to approve")))
}

/// The whole environment of a command that requires approval, sorted by name.
fn environment(ctx: &Context, request: &FireRequest, settings: &Settings) -> Result<Vec<BoundVariable>> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    variables.push(("PATH".into(), search_path(ctx, request)));
    let kept = ctx.host.kept_env.iter().filter(|(name, _)| name.to_str().is_some_and(is_always_passed));
    variables.extend(kept.filter(|(name, _)| name != "PATH").cloned());
    for name in settings.texts(Setting::JobsPassEnv) {
        if is_own(&name) {
            continue;
        }
        variables.extend((ctx.host.variable)(OsStr::new(&name)).map(|value| (OsString::from(name), value)));
    }
    variables.extend(request.env.iter().cloned());
    let mut bound = Vec::new();
    for (name, value) in &variables {
        let name = readable("the name of a variable", name.as_bytes())?;
        check_name(&name)?;
        if is_own(&name) {
            return Err(own(&name));
        }
        let value = readable(&format!("the value of {name}"), value.as_bytes())?;
        bound.retain(|other: &BoundVariable| other.name() != name);
        bound.push(BoundVariable::Plain { name, value });
    }
    let salt = random_ulid(ctx.now)?.to_string();
    for name in &request.secrets {
        let value = secret(ctx, name)?;
        let value = readable(&format!("the value of {name}"), value.as_bytes())?;
        bound.retain(|other| other.name() != name);
        bound.push(BoundVariable::secret(name, &salt, &value));
    }
    bound.sort_by(|a, b| a.name().cmp(b.name()));
    Ok(bound)
}

/// The value of a secret variable, which only the first supervisor of a job inherits.
fn secret(ctx: &Context, name: &str) -> Result<OsString> {
    (ctx.host.variable)(OsStr::new(name))
        .ok_or_else(|| Error::usage(format!("the variable {name} is not set, and its value is not stored anywhere")))
}

/// A job's command in the log.
#[derive(Clone, Debug)]
pub(super) struct LoggedCommand {
    pub command: RecordedCommand,
    /// Who fired it.
    pub actor: Actor,
}

impl LoggedCommand {
    /// Reads the command of a task from the log itself.
    pub fn read(log: &dyn Log, task: &Entity) -> Result<LoggedCommand> {
        let unknown = || {
            let why = format!("the log does not say what {} runs; fire the command again", task.name());
            Error::refused(Reason::Changed, why)
        };
        let is_its = |event: &Event| event.is_intact() && event.subject == task.subject.to_string();
        let by = task.as_job().command_by().ok_or_else(unknown)?;
        let event = log.find(by)?.filter(is_its).ok_or_else(unknown)?;
        // Version 0.1 recorded no directory.
        let command = RecordedCommand::read(&event.payload).ok().flatten().ok_or_else(unknown)?;
        let is_current = event.payload.get(COMMAND_HASH).and_then(Value::as_str) == task.as_job().command_hash();
        // Nor what an approval binds.
        if !is_current || task.as_task().is_destructive() && command.bound.is_none() {
            return Err(unknown());
        }
        Ok(LoggedCommand { command, actor: Actor::parse(&event.actor)? })
    }

    /// What a supervisor runs.
    pub fn to_run(&self, ctx: &Context, spec: &Spec) -> Result<RunCommand> {
        let RecordedCommand { words, cwd, bound } = &self.command;
        let environment = match bound {
            None => {
                let given = spec.env.iter().map(|(name, value)| (name.0.clone(), value.0.clone()));
                let secrets = spec.secrets.iter().map(|name| Ok((OsString::from(name), secret(ctx, name)?)));
                let secrets = secrets.collect::<Result<Vec<_>>>()?;
                RunEnvironment::Inherited(given.chain(secrets).collect())
            }
            Some(bound) => RunEnvironment::Only(of_binding(ctx, bound)?),
        };
        Ok(RunCommand {
            argv: words.iter().map(|word| OsString::from_vec(word.clone())).collect(),
            cwd: PathBuf::from(OsString::from_vec(cwd.clone())),
            environment,
            agent: self.actor.agent().map(|agent| agent.to_string()),
        })
    }

    /// What is bound now that the process of the command waits in its directory; none if it is what was approved.
    pub fn changed(&self, waiting: &Identity) -> Result<Option<Binding>> {
        let Some(approved) = &self.command.bound else { return Ok(None) };
        let cwd = PathBuf::from(OsString::from_vec(self.command.cwd.clone()));
        // The directory of the process itself, whatever its path leads to in the meantime.
        let own = format!("/proc/{}/cwd", waiting.pid);
        let real = std::fs::read_link(&own).map_err(|e| Error::system("cannot read the command's directory", e))?;
        if real != cwd {
            let why = format!("its working directory {} is now {}", cwd.display(), real.display());
            return Err(Error::refused(Reason::Changed, why));
        }
        let now = bound_now(&self.command, approved, Path::new(&own))?;
        Ok((now != *approved).then_some(now))
    }
}

/// What is bound now, if relative names start in this directory: the variables are as they were recorded.
pub(in crate::op) fn bound_now(command: &RecordedCommand, approved: &Binding, directory: &Path) -> Result<Binding> {
    let words: Vec<String> = command.words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let path = approved.environment.iter().find_map(|variable| match variable {
        BoundVariable::Plain { name, value } if name == "PATH" => Some(value.as_str()),
        _ => None,
    });
    let files = named_files(&words, directory, OsStr::new(path.unwrap_or(DEFAULT_PATH)))?;
    Ok(Binding { files, ..approved.clone() })
}

/// The variables of a binding. The caller must have the secrets that it binds.
fn of_binding(ctx: &Context, bound: &Binding) -> Result<Vec<(OsString, OsString)>> {
    let value = |variable: &BoundVariable| match variable {
        BoundVariable::Plain { name, value } => Ok((name.into(), value.into())),
        BoundVariable::Secret { name, salt, .. } => {
            let value = secret(ctx, name)?;
            match value.to_str().is_some_and(|value| BoundVariable::secret(name, salt, value) == *variable) {
                true => Ok((name.into(), value)),
                false => Err(Error::refused(Reason::Changed, format!("the variable {name} has another value"))),
            }
        }
    };
    bound.environment.iter().map(value).collect()
}
