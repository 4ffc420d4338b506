//! The two files of a systemd timer: a service that makes one tick, and the timer that starts it.

use std::path::PathBuf;

use super::{Period, Scheduler, TickCommand, not_expressible, tick_of};
use crate::base::{Digest, Result};

/// How the names of our units begin.
pub const NAME_PREFIX: &str = "hf-watchdog";
/// How many digits of the hash of a vault's path its units have in their names.
const NAME_HASH_DIGITS: usize = 8;

/// What systemd refuses in the path of a program, however it is written; and the dollar sign, which it takes for a
/// variable in the name that the program is given, but not in the path.
const NOT_IN_PROGRAM: &[char] = &['"', '\'', '\\', '$'];

/// The name of the units of a vault, without their ending.
pub fn name(vault: &str) -> String {
    format!("{NAME_PREFIX}-{}", &Digest::of_bytes(vault.as_bytes()).hex()[..NAME_HASH_DIGITS])
}

/// The service.
pub fn service(command: &TickCommand) -> Result<String> {
    command.check(Scheduler::Systemd, &[])?;
    if let Some(c) = command.program.chars().find(|c| NOT_IN_PROGRAM.contains(c)) {
        return Err(not_expressible(Scheduler::Systemd, c, &command.program));
    }
    let assigned = |(name, value): &(&str, String)| format!("Environment={}\n", quoted(&format!("{name}={value}")));
    let variables: String = command.variables.iter().map(assigned).collect();
    let words: Vec<String> = command.words().into_iter().map(|word| quoted(word).replace('$', "$$")).collect();
    Ok(format!(
        "# Made by hf-watchdog --install systemd; hf-watchdog --uninstall systemd removes it.\n\
         [Unit]\n\
         Description=HiveForge watchdog of {vault}, one tick\n\
         Documentation=man:hf-watchdog(1)\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         {variables}\
         ExecStart={command}\n\
         # 1 means that the watchdog found a problem, which it has already reported.\n\
         SuccessExitStatus=1\n\
         # Keep the processes that a hook started.\n\
         KillMode=process\n",
        vault = command.vault.replace('%', "%%"),
        command = words.join(" "),
    ))
}

/// The timer of the service with the same name.
pub fn timer(period: Period) -> String {
    format!(
        "# Made by hf-watchdog --install systemd; hf-watchdog --uninstall systemd removes it.\n\
         # After the machine was suspended it runs once, not once for every tick that was missed.\n\
         [Unit]\n\
         Description=HiveForge watchdog, {period}\n\
         Documentation=man:hf-watchdog(1)\n\
         \n\
         [Timer]\n\
         OnCalendar={}\n\
         AccuracySec=5s\n\
         \n\
         [Install]\n\
         WantedBy=timers.target\n",
        period.calendar()
    )
}

/// A word of a unit.
fn quoted(word: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_./:,+@=-".contains(&b);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%")),
    }
}

/// What a service runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceEntry {
    /// The command as it is written.
    pub text: String,
    /// As it is written; none if only systemd could tell.
    pub program: Option<String>,
    /// The vault; none if that cannot be told from the file.
    pub vault: Option<PathBuf>,
}

/// The watchdog that a service runs; none if it runs something else.
pub fn service_entry(service: &str, home: Option<&str>) -> Option<ServiceEntry> {
    let values =
        |key: &'static str| service.lines().filter_map(move |line| line.trim().strip_prefix(key)?.strip_prefix('='));
    let text = values("ExecStart").next_back()?.trim();
    let assigned: Vec<Option<String>> = values("Environment").flat_map(|value| split(value, home)).collect();
    let variable = |name: &str| {
        let value = |word: &Option<String>| word.as_deref()?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        assigned.iter().rev().find_map(value).or_else(|| home.filter(|_| name == "HOME").map(str::to_owned))
    };
    // A dollar sign is doubled in a command, and in a command only.
    let single = |word: Option<String>| word.filter(|word| !word.replace("$$", "").contains('$'));
    let command = split(text, home).into_iter().map(|word| single(word).map(|word| word.replace("$$", "$")));
    let tick = tick_of(&command.collect::<Vec<_>>(), &variable)?;
    Some(ServiceEntry { text: text.to_owned(), program: tick.program, vault: tick.vault })
}

/// The words of a value; `None` for one that only systemd could tell.
fn split(value: &str, home: Option<&str>) -> Vec<Option<String>> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_unknown) = (None::<String>, None, false);
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (' ' | '\t', None) => {
                words.extend(word.take().map(|word| (!std::mem::take(&mut is_unknown)).then_some(word)));
            }
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(open)) if c == open => quote = None,
            ('\\', _) => match chars.next() {
                Some(c @ ('\\' | '"' | '\'')) => word.get_or_insert_default().push(c),
                _ => is_unknown = true,
            },
            ('%', _) => match (chars.next(), home) {
                (Some('%'), _) => word.get_or_insert_default().push('%'),
                (Some('h'), Some(home)) => word.get_or_insert_default().push_str(home),
                _ => is_unknown = true,
            },
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(|word| (!is_unknown && quote.is_none()).then_some(word)));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::scheduler::tests::odd;

    #[test]
    fn a_service_is_read_back_as_it_was_written() {
        let odd = TickCommand { program: "/opt/my tools/100%/hf-watchdog".to_owned(), ..odd() };
        for command in [odd.clone(), TickCommand { vault: "/a\\b\"c'd".to_owned(), works: None, ..odd }] {
            let text = service(&command).unwrap();
            let found = service_entry(&text, None).unwrap();
            assert_eq!(found.program.as_deref(), Some(command.program.as_str()), "{text}");
            assert_eq!(found.vault.as_deref(), Some(command.vault.as_ref()), "{text}");
            let assigned =
                text.lines().filter_map(|line| line.strip_prefix("Environment=")).flat_map(|v| split(v, None));
            let expected: Vec<_> = command.variables.iter().map(|(n, value)| Some(format!("{n}={value}"))).collect();
            assert_eq!(assigned.collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn a_unit_that_people_wrote_is_recognized() {
        let by_hand = include_str!("../../../scripts/hf-watchdog.service");
        let found = service_entry(by_hand, Some("/home/jo")).unwrap();
        assert_eq!(found.program.as_deref(), Some("/home/jo/.local/bin/hf-watchdog"));
        assert_eq!(found.vault, Some(PathBuf::from("/home/jo/hive/Vault")));
        assert_eq!(service_entry("[Service]\nExecStart=/bin/true\n", None), None);
        assert_eq!(service_entry("[Service]\n", None), None);
        let unknown = service_entry("ExecStart=/bin/hf-watchdog --vault ${X}/Vault", None).unwrap();
        assert_eq!(unknown.vault, None);
    }

    #[test]
    fn what_systemd_cannot_express_is_refused() {
        let line = TickCommand { vault: "/a\nb".to_owned(), ..odd() };
        assert_eq!(service(&line).unwrap_err().message, "systemd cannot run this command: \\n in /a\\nb");
        for (program, why) in [
            ("/a$b/hf-watchdog", "systemd cannot run this command: $ in /a$b/hf-watchdog"),
            ("/a'b/hf-watchdog", "systemd cannot run this command: ' in /a'b/hf-watchdog"),
        ] {
            let command = TickCommand { program: program.to_owned(), ..odd() };
            assert_eq!(service(&command).unwrap_err().message, why);
        }
    }

    #[test]
    fn each_vault_has_units_of_its_own() {
        assert_eq!(name("/home/jo/hive/Vault").len(), "hf-watchdog-12345678".len());
        assert_ne!(name("/home/jo/a"), name("/home/jo/b"));
    }
}
