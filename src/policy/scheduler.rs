//! How cron and systemd run the watchdog: what they are told, and how their own files are read back.
//!
//! | module | contents |
//! |---|---|
//! | `crontab` | the lines of a crontab that run a watchdog, and how one is put in or taken out |
//! | `units` | the two files of a systemd timer |
//! | `words` | the words of a shell command |
//!
//! Invariant: what is written is what is read back, whatever the paths contain; what cannot be written is refused
//! (`an_entry_is_read_back_as_it_was_written`, `a_service_is_read_back_as_it_was_written`).

pub mod crontab;
pub mod units;
mod words;

use std::path::PathBuf;

use crate::base::{Error, Result, names, text};

names! {
    /// What runs a command again and again.
    pub enum Scheduler {
        Cron = "cron",
        Systemd = "systemd",
    }
}

/// The name of the program that makes a tick.
pub const WATCHDOG_PROGRAM: &str = "hf-watchdog";
/// The program that has all commands in it, and its word for the watchdog.
pub const ALL_IN_ONE: (&str, &str) = ("hf", "watchdog");
/// Options with which hf-watchdog makes no tick.
const NO_TICK: &[&str] = &["--check", "--install", "--uninstall", "--installed", "--help", "--version"];
/// The variables that name the vault, the first one first.
const VAULT_VARIABLES: &[&str] = &["HF_VAULT", "HIVEFORGE_VAULT_PATH"];

/// How often a tick is made, in a way that both schedulers can express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// From 1 to 59.
    Minutes(u64),
    /// From 1 to 23.
    Hours(u64),
    Day,
}

impl Period {
    /// The period for an interval: rounded up to whole minutes; from an hour on, down to whole hours or a day.
    pub fn from_seconds(seconds: u64) -> Period {
        match seconds.div_ceil(60) {
            minutes @ 0..60 => Period::Minutes(minutes.max(1)),
            minutes @ 60..1440 => Period::Hours(minutes / 60),
            _ => Period::Day,
        }
    }

    /// The longest time between two ticks.
    pub fn seconds(self) -> u64 {
        match self {
            Period::Minutes(n) => n * 60,
            Period::Hours(n) => n * 3600,
            Period::Day => 86_400,
        }
    }

    /// The first five fields of a crontab line.
    pub fn cron(self) -> String {
        match self {
            Period::Minutes(1) => "* * * * *".to_owned(),
            Period::Minutes(n) => format!("*/{n} * * * *"),
            Period::Hours(1) => "0 * * * *".to_owned(),
            Period::Hours(n) => format!("0 */{n} * * *"),
            Period::Day => "0 0 * * *".to_owned(),
        }
    }

    /// The calendar expression of systemd; see systemd.time(7).
    pub fn calendar(self) -> String {
        match self {
            Period::Minutes(1) => "*-*-* *:*:00".to_owned(),
            Period::Minutes(n) => format!("*-*-* *:00/{n}:00"),
            Period::Hours(1) => "*-*-* *:00:00".to_owned(),
            Period::Hours(n) => format!("*-*-* 00/{n}:00:00"),
            Period::Day => "*-*-* 00:00:00".to_owned(),
        }
    }
}

impl std::fmt::Display for Period {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Period::Minutes(1) => f.write_str("every minute"),
            Period::Minutes(n) => write!(f, "every {n} minutes"),
            Period::Hours(1) => f.write_str("every hour"),
            Period::Hours(n) => write!(f, "every {n} hours"),
            Period::Day => f.write_str("every day"),
        }
    }
}

/// The command of a tick: all paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickCommand {
    pub program: String,
    /// The word that follows the program, if it is not hf-watchdog itself.
    pub subcommand: Option<&'static str>,
    pub vault: String,
    pub works: Option<String>,
    /// Variables that the scheduler would not set, or not so, by name.
    pub variables: Vec<(&'static str, String)>,
}

impl TickCommand {
    /// The command, word by word.
    fn words(&self) -> Vec<&str> {
        let works = self.works.as_deref().map(|works| ["--works", works]);
        std::iter::once(self.program.as_str())
            .chain(self.subcommand)
            .chain(["--quiet", "--vault", &self.vault])
            .chain(works.into_iter().flatten())
            .collect()
    }

    /// Refuses what a scheduler cannot express: values with one of these characters, or with a control character.
    fn check(&self, scheduler: Scheduler, forbidden: &[char]) -> Result<()> {
        let variables = self.variables.iter().map(|(_, value)| value.as_str());
        for value in self.words().into_iter().chain(variables) {
            if let Some(c) = value.chars().find(|c| c.is_control() || forbidden.contains(c)) {
                return Err(not_expressible(scheduler, c, value));
            }
        }
        Ok(())
    }
}

fn not_expressible(scheduler: Scheduler, c: char, value: &str) -> Error {
    let value = text::escape(value);
    let shown = if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    Error::usage(format!("{scheduler} cannot run this command: {shown} in {value}"))
}

/// A command that makes a tick, as somebody wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WrittenTick {
    /// As it is written: a path, or a name to search for.
    program: Option<String>,
    /// The vault; none if that cannot be told from the command.
    vault: Option<PathBuf>,
}

/// The tick that a simple command makes, if it makes one: the program may follow others such as `env` or `nice`.
/// `None` stands for a word that only a shell can tell. Relative paths start in the home directory.
fn tick_of(command: &[Option<String>], variable: &dyn Fn(&str) -> Option<String>) -> Option<WrittenTick> {
    let is_named = |word: &Option<String>, name: &str| {
        word.as_deref().and_then(|word| word.rsplit('/').next()).is_some_and(|last| last == name)
    };
    let is_word = |at: usize, text: &str| command.get(at).is_some_and(|word| word.as_deref() == Some(text));
    let at = (0..command.len()).find(|at| {
        is_named(&command[*at], WATCHDOG_PROGRAM)
            || is_named(&command[*at], ALL_IN_ONE.0) && is_word(at + 1, ALL_IN_ONE.1)
    })?;
    let arguments = &command[at + 1..];
    let is_option = |word: &str, option: &str| word == option || word.starts_with(&format!("{option}="));
    if arguments.iter().flatten().any(|word| NO_TICK.iter().any(|option| is_option(word, option))) {
        return None;
    }
    // The outer option tells whether the vault is named, the inner one whether that name can be told.
    let by_option = arguments.iter().enumerate().find_map(|(n, word)| match word.as_deref()? {
        "--vault" => Some(arguments.get(n + 1).cloned().flatten()),
        word => word.strip_prefix("--vault=").map(|path| Some(path.to_owned())),
    });
    let assigned = |name: &str| {
        let value = |word: &Option<String>| word.as_deref()?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        command[..at].iter().rev().find_map(value).or_else(|| variable(name))
    };
    let by_variable = || VAULT_VARIABLES.iter().find_map(|name| assigned(name));
    let vault = by_option.unwrap_or_else(by_variable).filter(|path| !path.is_empty()).and_then(|path| {
        let path = PathBuf::from(path);
        if path.is_absolute() { Some(path) } else { Some(PathBuf::from(variable("HOME")?).join(path)) }
    });
    Some(WrittenTick { program: command[at].clone(), vault })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command whose paths contain everything that a shell, cron or systemd could take for something else.
    pub(super) fn odd() -> TickCommand {
        TickCommand {
            program: "/opt/my tools/100%/it's \"here\"/hf-watchdog".to_owned(),
            subcommand: None,
            vault: "/home/jo/a $HOME `id` *?[x] ~ # ; & | <x> 50% %h/Vault".to_owned(),
            works: Some("/home/jo/ai works/$(id)".to_owned()),
            variables: vec![("HOME", "/home/jo".to_owned()), ("PATH", "/a b:/c%d:/it's".to_owned())],
        }
    }

    #[test]
    fn an_interval_becomes_a_period_that_both_can_express() {
        for (seconds, cron, calendar) in [
            (0, "* * * * *", "*-*-* *:*:00"),
            (1, "* * * * *", "*-*-* *:*:00"),
            (60, "* * * * *", "*-*-* *:*:00"),
            (61, "*/2 * * * *", "*-*-* *:00/2:00"),
            (300, "*/5 * * * *", "*-*-* *:00/5:00"),
            (3540, "*/59 * * * *", "*-*-* *:00/59:00"),
            (3541, "0 * * * *", "*-*-* *:00:00"),
            (5400, "0 * * * *", "*-*-* *:00:00"),
            (7200, "0 */2 * * *", "*-*-* 00/2:00:00"),
            (86_399, "0 0 * * *", "*-*-* 00:00:00"),
            (u64::MAX, "0 0 * * *", "*-*-* 00:00:00"),
        ] {
            let period = Period::from_seconds(seconds);
            assert_eq!((period.cron().as_str(), period.calendar().as_str()), (cron, calendar), "{seconds}");
        }
    }
}
