//! A timer: cron or systemd makes a tick of this vault's watchdog again and again. Sets one up, removes it, and checks
//! whether there is one and whether it can work.
//!
//! An entry belongs to the vault that it names, no matter who wrote it. So a second installation replaces the first, and the
//! entries of other vaults stay. What the entry says is decided by `policy::scheduler`.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::base::{Error, Result, Timestamp, names, text};
use crate::job::{self, Answer, DEFAULT_PATH, Program, find_program};
use crate::op::Context;
use crate::op::status::WATCHDOG_LATE_INTERVALS;
use crate::policy::scheduler::crontab::{self, CrontabEntry};
use crate::policy::scheduler::units::{self, ServiceEntry};
use crate::policy::scheduler::{Period, Scheduler, TickCommand};
use crate::policy::settings::Setting;
use crate::vault::{Trust, Vault};

/// How long crontab or systemctl may take.
const PROGRAM_MAX: Duration = Duration::from_secs(30);
/// What they are run for.
const PURPOSE: &str = "hf-watchdog";
/// The names of the programs that read crontabs.
const CRON_DAEMONS: &[&str] = &["cron", "crond", "fcron", "bcron-sched"];
/// What reads crontabs where systemd itself does.
const CRON_GENERATOR: &str = "/usr/lib/systemd/system-generators/systemd-crontab-generator";
/// Variables that a tick needs as they are now: where the list of trusted vaults is, and what local time is.
const KEPT_VARIABLES: &[&str] = &["HOME", "XDG_CONFIG_HOME", "TZ"];

/// A timer to set up.
#[derive(Clone, Debug)]
pub struct InstallTimerRequest {
    pub scheduler: Scheduler,
    pub program: WatchdogProgram,
}

/// The program that makes a tick.
#[derive(Clone, Debug)]
pub struct WatchdogProgram {
    pub path: PathBuf,
    /// The word that follows it, if it is not hf-watchdog itself.
    pub subcommand: Option<&'static str>,
}

/// A timer to remove.
#[derive(Clone, Debug)]
pub struct UninstallTimerRequest {
    pub scheduler: Scheduler,
}

/// What became of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerState {
    /// It is there, and nothing is known to be wrong with it.
    Installed,
    /// Something is known to be wrong.
    Incomplete,
    NotInstalled,
    Uninstalled,
}

#[derive(Clone, Debug)]
pub struct TimerOutcome {
    pub state: TimerState,
    /// What was done, in one sentence.
    pub sum: String,
    /// The timers of this vault.
    pub timers: Vec<InstalledTimer>,
    pub checks: Vec<TimerCheck>,
    pub last_tick: Option<Timestamp>,
    pub now: Timestamp,
    pub notices: Vec<String>,
}

/// An entry that runs this vault's watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledTimer {
    pub scheduler: Scheduler,
    /// The line of the crontab, or the file.
    pub place: String,
    /// What it runs, as it is written.
    pub entry: String,
    program: Option<String>,
    /// The name of its units, without their ending.
    unit: Option<String>,
}

names! {
    /// What is checked.
    pub enum TimerCheckName {
        Entry = "entry",
        Program = "program",
        Vault = "vault",
        Service = "service",
        Hooks = "hooks",
        LastTick = "last_tick",
    }
}

names! {
    /// What a check found.
    pub enum CheckResult {
        Ok = "ok",
        Failed = "failed",
        /// It cannot be told from here.
        Unknown = "unknown",
    }
}

/// One check.
#[derive(Clone, Debug)]
pub struct TimerCheck {
    pub name: TimerCheckName,
    pub result: CheckResult,
    pub what: String,
    /// The command that helps.
    pub remedy: Option<String>,
}

impl TimerCheck {
    fn new(name: TimerCheckName, result: CheckResult, what: impl Into<String>) -> TimerCheck {
        TimerCheck { name, result, what: what.into(), remedy: None }
    }

    fn remedy(mut self, command: impl Into<String>) -> TimerCheck {
        self.remedy = Some(command.into());
        self
    }
}

/// Sets up a timer, in place of an older one for the same vault.
pub fn install_timer(ctx: &Context, request: InstallTimerRequest) -> Result<TimerOutcome> {
    ctx.check_operator("installing a timer")?;
    let vault = ctx.open()?;
    vault.check_private()?;
    let site = Site::new(ctx);
    let interval = vault.config().count(Setting::WatchdogIntervalSeconds);
    let period = Period::from_seconds(interval);
    let command = site.command(&request.program)?;
    let mut notices = Vec::new();
    if period.seconds() > interval {
        notices.push(format!("{} is {interval}, but the timer runs {period}", Setting::WatchdogIntervalSeconds));
    }
    let (changed, start_error) = match request.scheduler {
        Scheduler::Cron => {
            let (changed, left_out) = site.install_cron(period, &command)?;
            notices.extend(left_out);
            (changed, None)
        }
        Scheduler::Systemd => site.install_units(period, &command)?,
    };
    let found = site.find();
    let checks = site.checks(&found, Some(&Installation { scheduler: request.scheduler, start_error }));
    let vault_name = site.vault.display();
    let sum = match changed {
        true => format!("{} runs the watchdog of {vault_name} {period}", request.scheduler),
        false => format!("{} already has this entry; nothing was changed", request.scheduler),
    };
    let sum = match has_failed(&checks) {
        true => format!("{} has its entry, but a check failed", request.scheduler),
        false => sum,
    };
    let state = if has_failed(&checks) { TimerState::Incomplete } else { TimerState::Installed };
    notices.extend(found.notices.clone());
    notices.extend(site.stops_at_logout(&found));
    Ok(site.outcome(state, sum, found, checks, notices))
}

/// Removes a timer. The vault need not exist any more.
pub fn uninstall_timer(ctx: &Context, request: UninstallTimerRequest) -> Result<TimerOutcome> {
    ctx.check_operator("removing a timer")?;
    let site = Site::new(ctx);
    let (removed, problem) = match request.scheduler {
        Scheduler::Cron => (site.uninstall_cron()?, None),
        Scheduler::Systemd => site.uninstall_units()?,
    };
    let (scheduler, vault) = (request.scheduler, site.vault.display());
    let (state, sum) = match (removed, &problem) {
        (_, Some(_)) => (TimerState::Incomplete, format!("the files are removed, but {scheduler} may still run them")),
        (true, None) => (TimerState::Uninstalled, format!("{scheduler} no longer runs the watchdog of {vault}")),
        (false, None) => {
            (TimerState::Uninstalled, format!("{scheduler} has no entry for {vault}; nothing was changed"))
        }
    };
    let found = site.find();
    let notices = found.notices.clone();
    Ok(site.outcome(state, sum, found, problem.into_iter().collect(), notices))
}

/// Checks whether a timer runs this vault's watchdog.
pub fn check_timer(ctx: &Context) -> Result<TimerOutcome> {
    let site = Site::new(ctx);
    let found = site.find();
    let mut notices = found.notices.clone();
    if found.timers.is_empty() && found.unread.is_empty() {
        let sum = format!("no timer runs the watchdog of {}", site.vault.display());
        let missing = TimerCheck::new(TimerCheckName::Entry, CheckResult::Failed, "neither cron nor systemd has one");
        let checks = vec![missing.remedy("hf-watchdog --install cron")];
        return Ok(site.outcome(TimerState::NotInstalled, sum, found, checks, notices));
    }
    let checks = site.checks(&found, None);
    notices.extend(site.stops_at_logout(&found));
    let is = |name: TimerCheckName, result: CheckResult| checks.iter().any(|c| c.name == name && c.result == result);
    // Without a sign of the service, only a recent tick shows that it runs.
    let shows_nothing =
        is(TimerCheckName::Service, CheckResult::Unknown) && !is(TimerCheckName::LastTick, CheckResult::Ok);
    let (state, sum) = match has_failed(&checks) || shows_nothing || found.timers.is_empty() {
        false => (TimerState::Installed, format!("a timer runs the watchdog of {}", site.vault.display())),
        true => (TimerState::Incomplete, "a timer is set up, but not every check passed".to_owned()),
    };
    Ok(site.outcome(state, sum, found, checks, notices))
}

fn has_failed(checks: &[TimerCheck]) -> bool {
    checks.iter().any(|check| check.result == CheckResult::Failed)
}

/// An installation that was just made.
struct Installation {
    scheduler: Scheduler,
    /// Why its timer could not be started.
    start_error: Option<String>,
}

/// The timers of a vault, as far as they can be found.
#[derive(Debug, Default)]
struct FoundTimers {
    timers: Vec<InstalledTimer>,
    /// Why a scheduler could not be asked.
    unread: Vec<String>,
    notices: Vec<String>,
}

/// The vault and the surroundings of the call.
struct Site<'a> {
    ctx: &'a Context,
    /// The real path of the vault.
    vault: PathBuf,
    home: Option<String>,
}

impl<'a> Site<'a> {
    fn new(ctx: &'a Context) -> Site<'a> {
        let home = (ctx.host.variable)(OsStr::new("HOME")).and_then(|home| home.into_string().ok());
        Site { ctx, vault: real_path(&ctx.vault), home: home.filter(|home| !home.is_empty()) }
    }

    fn outcome(
        &self,
        state: TimerState,
        sum: String,
        found: FoundTimers,
        checks: Vec<TimerCheck>,
        notices: Vec<String>,
    ) -> TimerOutcome {
        let last_tick = self.ctx.open().and_then(|vault| vault.last_tick()).ok().flatten();
        let now = self.ctx.now.timestamp();
        TimerOutcome { state, sum, timers: found.timers, checks, last_tick, now, notices }
    }

    /// The command of a tick of this vault, with the variables that it needs.
    fn command(&self, program: &WatchdogProgram) -> Result<TickCommand> {
        let works = self.ctx.host.works.as_deref().map(real_path);
        let kept = KEPT_VARIABLES.iter().filter_map(|name| {
            let value = (self.ctx.host.variable)(OsStr::new(name))?.into_string().ok()?;
            (!value.is_empty()).then_some((*name, value))
        });
        let path = self.search_path(&program.path);
        Ok(TickCommand {
            program: utf8(&program.path)?,
            subcommand: program.subcommand,
            vault: utf8(&self.vault)?,
            works: works.as_deref().map(utf8).transpose()?,
            variables: kept.chain((!path.is_empty()).then(|| ("PATH", path.join(":")))).collect(),
        })
    }

    /// The directories that hooks search for programs: those of the caller, and that of the watchdog itself. Only
    /// absolute ones that exist: another directory would be searched from where a hook is started.
    fn search_path(&self, program: &Path) -> Vec<String> {
        let callers = self.ctx.host.search_path.clone().unwrap_or_default();
        let all = std::env::split_paths(&callers).chain(program.parent().map(Path::to_owned));
        let mut path: Vec<String> = Vec::new();
        for directory in all.filter(|directory| directory.is_absolute() && directory.is_dir()) {
            let name = directory.into_os_string().into_string().ok();
            // A name that no scheduler can express would make the whole entry impossible.
            let name = name.filter(|name| !name.contains(|c: char| c.is_control() || c == '\\'));
            path.extend(name.filter(|name| !path.contains(name)));
        }
        path
    }

    fn is_mine(&self, vault: Option<&Path>) -> bool {
        vault.is_some_and(|vault| real_path(vault) == self.vault)
    }

    /// Every timer of this vault.
    fn find(&self) -> FoundTimers {
        let mut found = FoundTimers::default();
        match read_crontab(self.ctx) {
            Ok(Some(text)) => {
                for entry in crontab::entries(&text, self.home.as_deref()) {
                    let place = format!("crontab:{}", entry.line);
                    match entry.vault.as_deref() {
                        None => found.notices.push(format!("{place} runs a watchdog, but its vault cannot be told")),
                        vault if self.is_mine(vault) => found.timers.push(InstalledTimer {
                            scheduler: Scheduler::Cron,
                            place,
                            program: entry.program,
                            unit: None,
                            entry: entry.text,
                        }),
                        Some(_) => {}
                    }
                }
            }
            Ok(None) => {}
            Err(error) => found.unread.push(error.message),
        }
        match self.units() {
            Ok(all) => found.timers.extend(all.into_iter().map(|(unit, file, service)| InstalledTimer {
                scheduler: Scheduler::Systemd,
                place: file.with_extension("timer").display().to_string(),
                program: service.program,
                unit: Some(unit),
                entry: service.text,
            })),
            Err(error) => found.unread.push(error.message),
        }
        let is_loud = |timer: &&InstalledTimer| !timer.entry.contains("--quiet");
        found.notices.extend(found.timers.iter().filter(is_loud).map(|timer| {
            let InstalledTimer { place, scheduler, .. } = timer;
            format!("{place} has no --quiet: it prints every tick, or hides errors; hf-watchdog --install {scheduler} replaces it")
        }));
        found
    }

    /// Checks the timers.
    fn checks(&self, found: &FoundTimers, installed: Option<&Installation>) -> Vec<TimerCheck> {
        let mut checks = vec![self.check_entry(found, installed.map(|installed| installed.scheduler))];
        checks.extend(found.timers.iter().map(check_program));
        let opened = self.ctx.open();
        checks.push(match &opened {
            Ok(_) => TimerCheck::new(TimerCheckName::Vault, CheckResult::Ok, self.vault.display().to_string()),
            Err(error) => TimerCheck::new(TimerCheckName::Vault, CheckResult::Failed, error.message.clone()),
        });
        checks.extend(found.timers.iter().map(|timer| match &timer.unit {
            None => self.check_cron(),
            Some(unit) => self.check_unit(unit, installed.and_then(|installed| installed.start_error.as_deref())),
        }));
        if let Ok(vault) = &opened {
            checks.extend(self.check_hooks(vault));
            checks.push(self.check_last_tick(vault, installed.is_some()));
        }
        checks
    }

    fn check_entry(&self, found: &FoundTimers, installed: Option<Scheduler>) -> TimerCheck {
        let check = |result, what: String| TimerCheck::new(TimerCheckName::Entry, result, what);
        let places: Vec<&str> = found.timers.iter().map(|timer| timer.place.as_str()).collect();
        match (&found.timers[..], &found.unread[..]) {
            ([], unread) => check(CheckResult::Unknown, unread.join("; ")),
            ([one], _) if one.unit.is_some() && !Path::new(&one.place).is_file() => {
                check(CheckResult::Failed, format!("{} is missing", one.place)).remedy("hf-watchdog --install systemd")
            }
            ([one], []) => check(CheckResult::Ok, format!("{} alone", one.place)),
            ([one], unread) => check(CheckResult::Unknown, format!("{}; {}", one.place, unread.join("; "))),
            (many, _) => {
                let others = many.iter().map(|timer| timer.scheduler).filter(|one| Some(*one) != installed);
                let kept = installed.unwrap_or(Scheduler::Cron);
                let remedy = match others.into_iter().find(|one| *one != kept) {
                    Some(other) => format!("hf-watchdog --uninstall {other}"),
                    None => format!("hf-watchdog --install {kept}"),
                };
                check(CheckResult::Failed, format!("several timers: {}", places.join(", "))).remedy(remedy)
            }
        }
    }

    fn check_cron(&self) -> TimerCheck {
        let check = |result, what| TimerCheck::new(TimerCheckName::Service, result, what);
        match job::is_running(CRON_DAEMONS) {
            Some(true) => check(CheckResult::Ok, "a cron daemon runs"),
            _ if Path::new(CRON_GENERATOR).is_file() => check(CheckResult::Ok, "systemd reads the crontab"),
            Some(false) => {
                let is_named_crond = ["/usr/sbin/crond", "/sbin/crond"].iter().any(|path| Path::new(path).exists());
                let name = if is_named_crond { "crond" } else { "cron" };
                check(CheckResult::Failed, "no cron daemon runs").remedy(format!("sudo service {name} start"))
            }
            None => check(CheckResult::Unknown, "the processes of others are hidden, so a cron daemon cannot be seen"),
        }
    }

    fn check_unit(&self, unit: &str, start_error: Option<&str>) -> TimerCheck {
        let check = |result, what| TimerCheck::new(TimerCheckName::Service, result, what);
        let timer = format!("{unit}.timer");
        let remedy = format!("systemctl --user daemon-reload && systemctl --user enable --now {timer}");
        if let Some(why) = start_error {
            return check(CheckResult::Failed, format!("{timer} was not started: {why}")).remedy(remedy);
        }
        match self.systemctl(&["is-active", &timer]) {
            Ok(answer) => match String::from_utf8_lossy(&answer.stdout).trim() {
                "active" => check(CheckResult::Ok, format!("{timer} is active")),
                "" => check(CheckResult::Unknown, format!("systemctl: {}", last_line(&answer.stderr))).remedy(remedy),
                state => check(CheckResult::Failed, format!("{timer} is {state}")).remedy(remedy),
            },
            Err(why) => check(CheckResult::Failed, why).remedy(remedy),
        }
    }

    /// Whether the commands in the settings would be run by a tick of the timer.
    fn check_hooks(&self, vault: &Vault) -> Option<TimerCheck> {
        let config = vault.config();
        if config.commands().is_empty() {
            return None;
        }
        // HF_TRUST is the caller's, and is not in the entry.
        let trust = Trust { vault_id: None, ..self.ctx.host.trust.clone() };
        let vault = self.ctx.open().ok()?.with_trust(trust);
        Some(match vault.check_commands(&config) {
            Ok(()) => TimerCheck::new(TimerCheckName::Hooks, CheckResult::Ok, "the commands in the settings are run"),
            Err(error) => {
                TimerCheck::new(TimerCheckName::Hooks, CheckResult::Failed, error.message).remedy("hf-config trust")
            }
        })
    }

    fn check_last_tick(&self, vault: &Vault, is_new: bool) -> TimerCheck {
        let check = |result, what: String| TimerCheck::new(TimerCheckName::LastTick, result, what);
        let interval = vault.config().count(Setting::WatchdogIntervalSeconds);
        let period = Period::from_seconds(interval);
        let late_after = period.seconds().max(interval).saturating_mul(WATCHDOG_LATE_INTERVALS);
        match vault.last_tick() {
            Ok(Some(tick)) => {
                let age = self.ctx.now.timestamp().0.saturating_sub(tick.0).max(0) as u64;
                match age > late_after {
                    false => check(CheckResult::Ok, format!("{} ago", text::count_noun(age, "second"))),
                    true if is_new => {
                        check(CheckResult::Unknown, format!("none since {tick}; the timer runs {period}"))
                    }
                    true => check(CheckResult::Failed, format!("none since {tick}")),
                }
            }
            Ok(None) => check(CheckResult::Unknown, format!("none yet; the timer runs {period}")),
            Err(error) => check(CheckResult::Unknown, error.message),
        }
    }

    /// Puts the entry into the crontab. Returns whether that changed it, and what is missing in PATH.
    fn install_cron(&self, period: Period, command: &TickCommand) -> Result<(bool, Option<String>)> {
        let (entry, left_out) = crontab::fitted_entry(period, command)?;
        let before = self.crontab()?;
        let mine = self.cron_lines(&before)?;
        let after = crontab::with_entry(&before, &mine, &entry);
        if after != before {
            write_crontab(self.ctx, &after)?;
        }
        let left_out = (!left_out.is_empty())
            .then(|| format!("the line would be too long for cron, so PATH in it lacks {}", left_out.join(", ")));
        Ok((after != before, left_out))
    }

    /// Removes the entry from the crontab. Returns whether there was one.
    fn uninstall_cron(&self) -> Result<bool> {
        // Without the program there is nothing that could run an entry.
        let Some(before) = read_crontab(self.ctx)? else { return Ok(false) };
        let mine = self.cron_lines(&before)?;
        if !mine.is_empty() {
            write_crontab(self.ctx, &crontab::without(&before, &mine))?;
        }
        Ok(!mine.is_empty())
    }

    fn crontab(&self) -> Result<Vec<u8>> {
        let missing = "crontab not found; install cron, or use --install systemd, or let hf-watchdog --every 60 run";
        read_crontab(self.ctx)?.ok_or_else(|| Error::new(crate::base::ErrorKind::System, missing))
    }

    /// The numbers of the lines that run this vault's watchdog. Refuses a line that also does something else.
    fn cron_lines(&self, text: &[u8]) -> Result<Vec<usize>> {
        let entries = crontab::entries(text, self.home.as_deref());
        let mine: Vec<CrontabEntry> =
            entries.into_iter().filter(|entry| self.is_mine(entry.vault.as_deref())).collect();
        match mine.iter().find(|entry| !entry.is_alone) {
            Some(CrontabEntry { line, .. }) => Err(Error::usage(format!(
                "line {line} of the crontab runs this watchdog together with other commands; change it with crontab -e"
            ))),
            None => Ok(mine.into_iter().map(|entry| entry.line).collect()),
        }
    }

    /// Where systemd looks for the units of a user.
    fn unit_dir(&self) -> Result<PathBuf> {
        let config = (self.ctx.host.variable)(OsStr::new("XDG_CONFIG_HOME")).map(PathBuf::from);
        let config = config.filter(|path| path.is_absolute());
        let config = config.or_else(|| self.home.as_ref().map(|home| Path::new(home).join(".config")));
        let none = || Error::usage("there is no home directory for systemd units; set HOME");
        Ok(config.ok_or_else(none)?.join("systemd/user"))
    }

    /// The services that run this vault's watchdog: name, file and content.
    fn units(&self) -> Result<Vec<(String, PathBuf, ServiceEntry)>> {
        let Ok(dir) = self.unit_dir() else { return Ok(Vec::new()) };
        let failed = |e| Error::system(format!("cannot read {}", dir.display()), e);
        let listed = match fs::read_dir(&dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(failed)?,
        };
        let mut found = Vec::new();
        for file in listed {
            let file = file.map_err(failed)?.path();
            let name = file.file_name().and_then(OsStr::to_str).and_then(|name| name.strip_suffix(".service"));
            let Some(name) = name.filter(|name| name.starts_with(units::NAME_PREFIX)) else { continue };
            let Ok(text) = fs::read_to_string(&file) else { continue };
            let service = units::service_entry(&text, self.home.as_deref());
            if let Some(service) = service.filter(|service| self.is_mine(service.vault.as_deref())) {
                found.push((name.to_owned(), file.clone(), service));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Writes the units and starts the timer. Returns whether a file changed, and why the timer could not be started.
    fn install_units(&self, period: Period, command: &TickCommand) -> Result<(bool, Option<String>)> {
        let (name, service, timer) = (units::name(&command.vault), units::service(command)?, units::timer(period));
        let dir = self.unit_dir()?;
        fs::create_dir_all(&dir).map_err(|e| Error::system(format!("cannot create {}", dir.display()), e))?;
        let mut changed = false;
        for (older, file, _) in self.units()?.into_iter().filter(|(other, ..)| *other != name) {
            // It may not run at all.
            let _ = self.systemctl_must(&["disable", "--now", &format!("{older}.timer")]);
            remove_units(&file)?;
            changed = true;
        }
        changed |= put_file(&dir.join(format!("{name}.service")), &service)?;
        changed |= put_file(&dir.join(format!("{name}.timer")), &timer)?;
        let timer = format!("{name}.timer");
        let start = if changed { "restart" } else { "start" };
        let steps: [&[&str]; 3] = [&["daemon-reload"], &["enable", &timer], &[start, &timer]];
        Ok((changed, steps.iter().find_map(|step| self.systemctl_must(step).err())))
    }

    /// Stops the timer and removes its units. Returns whether there were any, and what may be left.
    fn uninstall_units(&self) -> Result<(bool, Option<TimerCheck>)> {
        let all = self.units()?;
        let mut problem = None;
        for (name, file, _) in &all {
            let timer = format!("{name}.timer");
            let stopped = self.systemctl_must(&["disable", "--now", &timer]);
            remove_units(file)?;
            if let (Err(why), true) = (stopped, self.may_have_manager()) {
                let check = TimerCheck::new(TimerCheckName::Service, CheckResult::Unknown, why);
                problem = Some(check.remedy(format!("systemctl --user stop {timer}")));
            }
        }
        if !all.is_empty() {
            // Without a manager there is nothing to reload.
            let _ = self.systemctl_must(&["daemon-reload"]);
        }
        Ok((!all.is_empty(), problem))
    }

    /// Whether a user manager of this user may be running.
    fn may_have_manager(&self) -> bool {
        let named = (self.ctx.host.variable)(OsStr::new("XDG_RUNTIME_DIR")).map(PathBuf::from);
        let usual = PathBuf::from(format!("/run/user/{}", rustix::process::geteuid().as_raw()));
        named.into_iter().chain([usual]).any(|dir| dir.join("systemd/private").exists())
    }

    /// Asks systemctl; an error says why that is impossible.
    fn systemctl(&self, args: &[&str]) -> Result<Answer, String> {
        let args: Vec<&str> = std::iter::once("--user").chain(args.iter().copied()).collect();
        match run(self.ctx, "systemctl", &args, b"") {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err("systemctl not found".to_owned()),
            Err(error) => Err(error.message),
        }
    }

    /// The same for a command that must succeed.
    fn systemctl_must(&self, args: &[&str]) -> Result<(), String> {
        let answer = self.systemctl(args)?;
        match answer.code {
            Some(0) => Ok(()),
            _ => Err(format!("systemctl: {}", last_line(&answer.stderr))),
        }
    }

    /// What there is to know about a timer of systemd: without lingering, it ends with the last session of the user.
    fn stops_at_logout(&self, found: &FoundTimers) -> Option<String> {
        found.timers.iter().find(|timer| timer.unit.is_some())?;
        let user = rustix::process::geteuid().as_raw().to_string();
        let answer = run(self.ctx, "loginctl", &["show-user", "--property=Linger", &user], b"").ok()??;
        let lingers = String::from_utf8_lossy(&answer.stdout).trim() != "Linger=no";
        (!lingers).then(|| "the timer stops when you log out, unless you run: loginctl enable-linger".to_owned())
    }
}

fn check_program(timer: &InstalledTimer) -> TimerCheck {
    let check = |result, what: String| TimerCheck::new(TimerCheckName::Program, result, what);
    match timer.program.as_deref() {
        Some(program) if program.starts_with('/') => {
            let is_program =
                Path::new(program).is_file() && rustix::fs::access(program, rustix::fs::Access::EXEC_OK).is_ok();
            match is_program {
                true => check(CheckResult::Ok, program.to_owned()),
                false => check(CheckResult::Failed, format!("{program} is not a program"))
                    .remedy(format!("hf-watchdog --install {}", timer.scheduler)),
            }
        }
        Some(program) => check(CheckResult::Unknown, format!("{program} is searched for in the PATH of the timer")),
        None => check(CheckResult::Unknown, format!("it cannot be told from {}", timer.place)),
    }
}

/// The path without links, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    let whole = || fs::canonicalize(path).ok();
    let parent = || Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    whole().or_else(parent).or_else(|| std::path::absolute(path).ok()).unwrap_or_else(|| path.to_owned())
}

fn utf8(path: &Path) -> Result<String> {
    let unusual = || Error::usage(format!("{} is not UTF-8, so no timer can name it", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(unusual)
}

/// Runs a program of the system; `None` if it is not installed.
fn run(ctx: &Context, name: &'static str, args: &[&str], input: &[u8]) -> Result<Option<Answer>> {
    let path = ctx.host.search_path.clone().unwrap_or_else(|| DEFAULT_PATH.into());
    let Some(program) = find_program(OsStr::new(name), Path::new("/"), &path) else { return Ok(None) };
    // Their messages are recognized in English.
    let program = Program::new(program, PURPOSE).args(args).envs(&[("LC_ALL", "C".to_owned())]);
    job::ask(program, input, PROGRAM_MAX).map(Some).map_err(|error| error.at(name))
}

fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("failed without a message").to_owned()
}

/// The user's crontab, empty if there is none; `None` if crontab is not installed. What cannot be read completely is an
/// error, because a part of it must never be written back.
fn read_crontab(ctx: &Context) -> Result<Option<Vec<u8>>> {
    let Some(answer) = run(ctx, "crontab", &["-l"], b"")? else { return Ok(None) };
    let says = |what: &str| String::from_utf8_lossy(&answer.stderr).contains(what);
    match answer.code {
        Some(0) if answer.stdout.len() < job::OUTPUT_MAX_BYTES as usize => Ok(Some(answer.stdout)),
        Some(0) => Err(Error::system("cannot read the crontab", "it is too long")),
        Some(1) if says("no crontab for") || says("No such file or directory") => Ok(Some(Vec::new())),
        _ => Err(Error::system("cannot read the crontab", last_line(&answer.stderr))),
    }
}

/// Replaces the user's crontab; removes an empty one.
fn write_crontab(ctx: &Context, text: &[u8]) -> Result<()> {
    let arg = if text.is_empty() { "-r" } else { "-" };
    let missing = || Error::system("cannot write the crontab", "crontab not found");
    let answer = run(ctx, "crontab", &[arg], text)?.ok_or_else(missing)?;
    if answer.code != Some(0) {
        return Err(Error::system("cannot write the crontab", last_line(&answer.stderr)));
    }
    match read_crontab(ctx)?.as_deref() == Some(text) {
        true => Ok(()),
        false => Err(Error::system("the crontab is not what was written", "another program changed it; try again")),
    }
}

/// Writes a file unless it has this content already. Returns whether it had not.
fn put_file(path: &Path, text: &str) -> Result<bool> {
    if fs::read(path).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(false);
    }
    let new = path.with_extension("new");
    let written = fs::write(&new, text).and_then(|()| fs::rename(&new, path));
    written.map(|()| true).map_err(|e| Error::system(format!("cannot write {}", path.display()), e))
}

/// Removes a service, its timer, and the link that enables it.
fn remove_units(service: &Path) -> Result<()> {
    let timer = service.with_extension("timer");
    let link = service.parent().zip(timer.file_name()).map(|(dir, name)| dir.join("timers.target.wants").join(name));
    for file in [service.to_owned(), timer].into_iter().chain(link) {
        match fs::remove_file(&file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(Error::system(format!("cannot remove {}", file.display()), e));
            }
            _ => {}
        }
    }
    Ok(())
}
