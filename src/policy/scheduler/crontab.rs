//! A user's crontab: which lines run a watchdog, and how one is put in or taken out. Every other line stays as it is,
//! byte for byte.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Period, Scheduler, TickCommand, tick_of, words};
use crate::base::{Error, ErrorKind, Result, limits};

/// A line of a crontab that runs a watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrontabEntry {
    /// Its number, from 1.
    pub line: usize,
    pub text: String,
    /// As it is written; none if only a shell could tell.
    pub program: Option<String>,
    /// The vault; none if that cannot be told from the line.
    pub vault: Option<PathBuf>,
    /// Whether the line runs nothing else.
    pub is_alone: bool,
}

/// The same line with as much of PATH as cron allows. Returns the line, and the directories that were left out.
pub fn fitted_entry(period: Period, command: &TickCommand) -> Result<(String, Vec<String>)> {
    let (mut command, mut left_out) = (command.clone(), Vec::new());
    loop {
        let too_long = match entry(period, &command) {
            Ok(line) => return Ok((line, left_out)),
            Err(error) => error,
        };
        let is_too_long = too_long.kind == ErrorKind::LimitExceeded;
        let path = command.variables.iter_mut().find(|(name, _)| is_too_long && *name == "PATH");
        let Some((path, at)) = path.and_then(|(_, path)| path.rfind(':').map(|at| (path, at))) else {
            return Err(too_long);
        };
        left_out.insert(0, path.split_off(at)[1..].to_owned());
    }
}

/// The line that makes a tick in every period.
pub fn entry(period: Period, command: &TickCommand) -> Result<String> {
    // Some versions of cron take a backslash before any character, and others only before a percent sign.
    command.check(Scheduler::Cron, &['\\'])?;
    let variables = command.variables.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
    let words: Vec<String> = variables.chain(command.words().into_iter().map(quoted)).collect();
    // cron takes a bare percent sign for the end of a line.
    let command = words.join(" ").replace('%', "\\%");
    if command.len() > limits::CRON_COMMAND_MAX_BYTES {
        let (long, max) = (command.len(), limits::CRON_COMMAND_MAX_BYTES);
        let why = format!("cron cannot run this command: it has {long} bytes, and {max} are allowed");
        return Err(Error::new(ErrorKind::LimitExceeded, why));
    }
    Ok(format!("{} {command}", period.cron()))
}

/// A word for the shell, without a backslash.
fn quoted(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:,+@-".contains(&b);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\"'\"'")),
    }
}

/// The lines that run a watchdog. `home` is the home directory of the user, in which cron starts commands.
pub fn entries(crontab: &[u8], home: Option<&str>) -> Vec<CrontabEntry> {
    let mut variables: BTreeMap<String, String> =
        home.map(|home| ("HOME".to_owned(), home.to_owned())).into_iter().collect();
    let mut found = Vec::new();
    for (n, line) in lines(crontab).enumerate() {
        let text = String::from_utf8_lossy(line).trim().to_owned();
        if let Some((name, value)) = assignment(&text) {
            variables.insert(name, value);
            continue;
        }
        let Some(command) = command_of(&text) else { continue };
        let variable = |name: &str| variables.get(name).cloned();
        let commands = words::simple_commands(&command, &variable);
        let ticks: Vec<_> = commands.iter().filter_map(|words| tick_of(words, &variable)).collect();
        // Of several, the one whose vault is known says more.
        let told = ticks.iter().find(|tick| tick.vault.is_some()).or(ticks.first());
        found.extend(told.map(|tick| CrontabEntry {
            line: n + 1,
            program: tick.program.clone(),
            vault: tick.vault.clone(),
            is_alone: commands.len() == 1,
            text: text.clone(),
        }));
    }
    found
}

/// The crontab with this entry in place of the lines with these numbers, or at its end.
pub fn with_entry(crontab: &[u8], replaced: &[usize], entry: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (n, line) in lines(crontab).enumerate() {
        match replaced.iter().position(|number| *number == n + 1) {
            None => out.extend_from_slice(line),
            Some(0) => out.extend_from_slice(format!("{entry}\n").as_bytes()),
            Some(_) => {}
        }
    }
    if replaced.is_empty() {
        if !out.is_empty() && !out.ends_with(b"\n") {
            out.push(b'\n');
        }
        out.extend_from_slice(format!("{entry}\n").as_bytes());
    }
    out
}

/// The crontab without the lines with these numbers.
pub fn without(crontab: &[u8], removed: &[usize]) -> Vec<u8> {
    let kept = lines(crontab).enumerate().filter(|(n, _)| !removed.contains(&(n + 1)));
    kept.flat_map(|(_, line)| line).copied().collect()
}

/// The lines, each with its end.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|b| *b == b'\n')
}

/// The variable that a line sets, if it sets one.
fn assignment(line: &str) -> Option<(String, String)> {
    let bare = |text: &str| {
        let text = text.trim();
        let quotes = ['"', '\''].into_iter().find(|q| text.len() > 1 && text.starts_with(*q) && text.ends_with(*q));
        quotes.map_or(text, |_| &text[1..text.len() - 1]).to_owned()
    };
    let (name, value) = line.split_once('=')?;
    let name = bare(name);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| (name, bare(value)))
}

/// The command of a line as the shell gets it; none if the line runs nothing.
fn command_of(line: &str) -> Option<String> {
    let fields = match line.chars().next()? {
        '#' => return None,
        '@' => 1,
        _ => 5,
    };
    let mut rest = line;
    for _ in 0..fields {
        rest = rest.split_once([' ', '\t'])?.1.trim_start();
    }
    let mut command = String::new();
    let mut chars = rest.chars();
    while let Some(c) = chars.next() {
        match c {
            // What follows is the input of the command.
            '%' => break,
            '\\' if chars.as_str().starts_with('%') => command.extend(chars.next()),
            c => command.push(c),
        }
    }
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::scheduler::tests::odd;

    const HOME: Option<&str> = Some("/home/jo");

    fn command() -> TickCommand {
        TickCommand {
            program: "/home/jo/.local/bin/hf-watchdog".to_owned(),
            subcommand: None,
            vault: "/home/jo/hive/Vault".to_owned(),
            works: None,
            variables: vec![("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned())],
        }
    }

    fn vaults(crontab: &str) -> Vec<(usize, String, bool)> {
        let vault = |entry: &CrontabEntry| entry.vault.as_ref().map_or("?".into(), |path| path.display().to_string());
        entries(crontab.as_bytes(), HOME).iter().map(|e| (e.line, vault(e), e.is_alone)).collect()
    }

    #[test]
    fn an_entry_is_one_line_that_names_everything() {
        assert_eq!(
            entry(Period::Minutes(1), &command()).unwrap(),
            "* * * * * PATH=/usr/local/bin:/usr/bin:/bin /home/jo/.local/bin/hf-watchdog --quiet --vault \
             /home/jo/hive/Vault"
        );
        let all_in_one = TickCommand {
            program: "/opt/hf".to_owned(),
            subcommand: Some("watchdog"),
            works: Some("/home/jo/ai-works".to_owned()),
            variables: Vec::new(),
            ..command()
        };
        let line = entry(Period::Minutes(5), &all_in_one).unwrap();
        assert_eq!(line, "*/5 * * * * /opt/hf watchdog --quiet --vault /home/jo/hive/Vault --works /home/jo/ai-works");
        assert_eq!(vaults(&line), [(1, "/home/jo/hive/Vault".to_owned(), true)]);
    }

    #[test]
    fn an_entry_is_read_back_as_it_was_written() {
        let odd = odd();
        let line = entry(Period::Minutes(1), &odd).unwrap();
        let found = entries(line.as_bytes(), HOME);
        assert_eq!(found.len(), 1, "{line}");
        assert_eq!(found[0].program.as_deref(), Some(odd.program.as_str()), "{line}");
        assert_eq!((found[0].vault.as_deref(), found[0].is_alone), (Some(odd.vault.as_ref()), true), "{line}");
        assert!(!line.replace("\\%", "").contains(['%', '\\']), "{line}");
    }

    #[test]
    fn what_cron_cannot_express_is_refused() {
        for (path, why) in [
            ("/a\nb", "cron cannot run this command: \\n in /a\\nb"),
            ("/a\tb", "cron cannot run this command: \\t in /a\\tb"),
            ("/a\\b", "cron cannot run this command: \\ in /a\\\\b"),
        ] {
            let error = entry(Period::Minutes(1), &TickCommand { vault: path.to_owned(), ..command() }).unwrap_err();
            assert_eq!(error.message, why);
        }
        let long = TickCommand { works: Some(format!("/{}", "x".repeat(1000))), ..command() };
        let error = entry(Period::Minutes(1), &long).unwrap_err();
        assert!(error.message.ends_with(" bytes, and 998 are allowed"), "{error}");
        assert_eq!(fitted_entry(Period::Minutes(1), &long).unwrap_err(), {
            let short = TickCommand { variables: vec![("PATH", "/usr/local/bin".to_owned())], ..long.clone() };
            entry(Period::Minutes(1), &short).unwrap_err()
        });
    }

    #[test]
    fn the_end_of_a_long_path_is_left_out() {
        let directories: Vec<String> = (0..50).map(|n| format!("/opt/directory number {n}/bin")).collect();
        let long = TickCommand { variables: vec![("PATH", directories.join(":"))], ..command() };
        let (line, left_out) = fitted_entry(Period::Minutes(1), &long).unwrap();
        let kept = directories.len() - left_out.len();
        assert_eq!(left_out, directories[kept..]);
        assert!(line.contains(&format!("PATH='{}' ", directories[..kept].join(":"))), "{line}");
        let one_more = TickCommand { variables: vec![("PATH", directories[..=kept].join(":"))], ..command() };
        entry(Period::Minutes(1), &one_more).unwrap_err();
        assert_eq!(fitted_entry(Period::Minutes(1), &command()).unwrap().1, Vec::<String>::new());
    }

    #[test]
    fn lines_that_people_write_are_recognized() {
        let vault = "/home/jo/hive/Vault";
        for line in [
            "* * * * * HF_VAULT=\"$HOME/hive/Vault\" \"$HOME/.local/bin/hf-watchdog\" >/dev/null",
            "* * * * * HF_VAULT=~/hive/Vault hf-watchdog >/dev/null 2>&1",
            "*/5\t* * * *\tHIVEFORGE_VAULT_PATH=hive/Vault nice -n 5 /usr/bin/hf-watchdog --works /x",
            "@reboot hf watchdog --every 60 --vault=/home/jo/hive/Vault &",
            "  0 * * * * env HF_VAULT=/other /usr/bin/env hf-watchdog --vault '/home/jo/hive/Vault' % input",
            "\"HF_VAULT\" = \"/home/jo/hive/Vault\"\n* * * * * hf-watchdog",
        ] {
            let found = vaults(line);
            assert_eq!((found.len(), found[0].1.as_str(), found[0].2), (1, vault, true), "{line}");
        }
        for line in [
            "# * * * * * HF_VAULT=/home/jo/hive/Vault hf-watchdog",
            "* * * * * hf-status --vault /home/jo/hive/Vault",
            "0 * * * * hf-watchdog --check --vault /home/jo/hive/Vault",
            "* * * * * /opt/hf-watchdog-2 --vault /home/jo/hive/Vault",
            "MAILTO=jo",
            "",
            "* * * *",
        ] {
            assert!(vaults(line).is_empty(), "{line}");
        }
        let together = "* * * * * cd /x; hf-watchdog --vault /home/jo/hive/Vault | logger";
        assert_eq!(vaults(together), [(1, vault.to_owned(), false)]);
        assert_eq!(vaults("* * * * * cd /x && hf-watchdog"), [(1, "?".to_owned(), false)]);
        assert_eq!(vaults("* * * * * hf-watchdog --vault $(pwd)/Vault"), [(1, "?".to_owned(), false)]);
    }

    #[test]
    fn every_other_line_stays_as_it_is() {
        let others = b"# mine\nMAILTO=jo\n\n  5 4 * * * backup \\% \xff\r\n".as_slice();
        let entry = "* * * * * hf-watchdog --vault /v";
        let with = with_entry(others, &[], entry);
        assert_eq!(with, [others, entry.as_bytes(), b"\n"].concat());
        assert_eq!(with_entry(&with, &[5], entry), with, "twice is the same as once");
        assert_eq!(without(&with, &[5]), others);
        // Two older ones: the first is replaced, and the other removed.
        let twice = [b"old 1\n".as_slice(), others, b"old 2\n", b"last"].concat();
        let replaced = with_entry(&twice, &[1, 6], entry);
        assert_eq!(replaced, [entry.as_bytes(), b"\n", others, b"last"].concat());
        // A last line without its end gets one.
        assert_eq!(with_entry(b"last", &[], entry), format!("last\n{entry}\n").into_bytes());
        assert_eq!(with_entry(b"", &[], entry), format!("{entry}\n").into_bytes());
        assert_eq!(without(b"", &[]), b"");
    }
}
