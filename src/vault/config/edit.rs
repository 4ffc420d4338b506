//! Changes one setting in the text of the settings file, line by line, so that comments and layout stay as they are.
//!
//! Only the plain layout is understood: sections as blocks, and a setting with its value in one line. Invariant: after an
//! edit the file says what it said before with this one setting changed; an edit that cannot promise that is refused
//! (`an_edit_changes_one_setting_or_nothing`).

use std::ops::Range;

use serde_json::Value;

use super::{AGENTS, COMMAND, CONFIG_FILE, LIVENESS, REVIEWERS, parse, unknown_setting};
use crate::base::{Error, Result};
use crate::policy::settings::{Fallback, Setting, Settings};

/// The indentation of a section's members, where the file does not show another one.
const INDENT: usize = 2;

/// A setting by its full name.
enum Named<'a> {
    Global(Setting),
    OfAgent(&'a str, Setting),
    OfReviewer(&'a str),
}

impl Named<'_> {
    fn parse(name: &str) -> Result<Named<'_>> {
        let parts: Vec<&str> = name.split('.').collect();
        let of_agent =
            |key: &str| Setting::parse(&format!("{LIVENESS}.{key}")).filter(|setting| setting.row().per_agent);
        let named = match parts.as_slice() {
            _ if parts.iter().any(|part| !is_plain(part)) => None,
            [AGENTS, agent, key] => of_agent(key).map(|setting| Named::OfAgent(agent, setting)),
            [REVIEWERS, reviewer, COMMAND] => Some(Named::OfReviewer(reviewer)),
            _ => Setting::parse(name).map(Named::Global),
        };
        named.ok_or_else(|| unknown_setting(name))
    }

    /// The value that a text stands for.
    fn value(&self, name: &str, text: &str) -> Result<Value> {
        let fallback = match self {
            Named::Global(setting) | Named::OfAgent(_, setting) => setting.fallback(),
            Named::OfReviewer(_) => Fallback::Text(""),
        };
        let value = match fallback {
            Fallback::Text(_) | Fallback::Choice(_) => Ok(Value::from(text)),
            _ => serde_saphyr::from_str(text),
        };
        let value = value.ok().filter(|value| fallback.fits(value));
        value.ok_or_else(|| Error::usage(format!("{name} must be {}", fallback.wants())))
    }

    fn set(&self, settings: &mut Settings, value: Value) {
        match self {
            Named::Global(setting) => drop(settings.values.insert(*setting, value)),
            Named::OfAgent(agent, setting) => {
                settings.agents.entry((*agent).to_owned()).or_default().insert(*setting, value);
            }
            Named::OfReviewer(name) => {
                let command = value.as_str().unwrap_or_default().to_owned();
                settings.reviewers.insert((*name).to_owned(), command);
            }
        }
    }
}

/// The text of the file with this setting changed, and the settings in it.
pub fn with_setting(text: &str, name: &str, value: &str) -> Result<(String, Settings)> {
    let named = Named::parse(name)?;
    let value = named.value(name, value)?;
    let (mut expected, warnings) = parse(text)?;
    named.set(&mut expected, value.clone());
    let layout = || Error::usage(format!("{name} cannot be changed in this layout; edit {CONFIG_FILE} instead"));
    let path: Vec<&str> = name.split('.').collect();
    let edited = change(text, &path, &value).ok_or_else(layout)?;
    match parse(&edited) {
        Ok((settings, now)) if settings == expected && now == warnings => Ok((edited, settings)),
        _ => Err(layout()),
    }
}

/// Whether a name needs no quotes.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Changes or adds a value. None if the layout is not understood.
fn change(text: &str, path: &[&str], value: &Value) -> Option<String> {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('\n')) {
        last.push('\n');
    }
    let (mut range, mut indent) = (0..lines.len(), 0);
    for (depth, name) in path.iter().enumerate() {
        let Some(at) = find(&lines, range.clone(), indent, name) else {
            // A file that has only comments gets its first setting after them.
            let nothing = if depth == 0 { range.end } else { range.start };
            let place = last_of(&lines, range).map_or(nothing, |last| last + 1);
            lines.splice(place..place, block(&path[depth..], indent, value));
            return Some(lines.concat());
        };
        let members = at + 1..end_of_block(&lines, at, indent);
        if depth + 1 == path.len() {
            // A value of several lines.
            if last_of(&lines, members).is_some() {
                return None;
            }
            lines[at] = with_value(&lines[at], indent + name.len() + 1, value);
            return Some(lines.concat());
        }
        if !content(&lines[at])[name.len() + 1..].trim_start().is_empty() {
            return None;
        }
        indent = members.clone().find(|n| is_active(&lines[*n])).map_or(indent + INDENT, |n| indent_of(&lines[n]));
        range = members;
    }
    None
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Whether a line says something: it is neither blank nor a comment.
fn is_active(line: &str) -> bool {
    !matches!(line.trim_start().chars().next(), None | Some('#'))
}

/// A line without its indentation and its comment.
fn content(line: &str) -> &str {
    let line = line.trim();
    line.find(" #").map_or(line, |comment| line[..comment].trim_end())
}

/// The line of a member of a section.
fn find(lines: &[String], range: Range<usize>, indent: usize, name: &str) -> Option<usize> {
    let names = |line: &String| {
        let rest = line.trim_start().strip_prefix(name).and_then(|rest| rest.strip_prefix(':'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\n', '\r']))
    };
    range.into_iter().find(|n| is_active(&lines[*n]) && indent_of(&lines[*n]) == indent && names(&lines[*n]))
}

/// Where the members of a section, or the lines of a value, end. Entries of a list may be indented as its name.
fn end_of_block(lines: &[String], at: usize, indent: usize) -> usize {
    let belongs = |line: &String| {
        !is_active(line)
            || indent_of(line) > indent
            || (indent_of(line) == indent && line.trim_start().starts_with('-'))
    };
    (at + 1..lines.len()).find(|n| !belongs(&lines[*n])).unwrap_or(lines.len())
}

/// The last line in a range that says something.
fn last_of(lines: &[String], range: Range<usize>) -> Option<usize> {
    range.into_iter().rev().find(|n| is_active(&lines[*n]))
}

/// The lines of a new setting, with the sections around it.
fn block(path: &[&str], indent: usize, value: &Value) -> Vec<String> {
    let line = |depth: usize, name: &str| format!("{}{name}:", " ".repeat(indent + depth * INDENT));
    let mut lines: Vec<String> = path.iter().enumerate().map(|(depth, name)| line(depth, name) + "\n").collect();
    if let Some((last, name)) = lines.last_mut().zip(path.last()) {
        *last = format!("{} {value}\n", line(path.len() - 1, name));
    }
    lines
}

/// A line with another value after this many bytes; its comment is kept.
fn with_value(line: &str, at: usize, value: &Value) -> String {
    let (name, rest) = line.split_at(at);
    let comment = comment_in(rest).map_or("", |comment| rest[comment..].trim_end());
    let gap = if comment.is_empty() { "" } else { "  " };
    format!("{name} {value}{gap}{comment}\n")
}

/// Where the comment after a value begins.
fn comment_in(rest: &str) -> Option<usize> {
    let quotes = rest.trim_start().starts_with(['"', '\'', '[', '{']);
    let (mut open, mut before) = (None, ' ');
    for (at, c) in rest.char_indices() {
        match (open, c) {
            (None, '#') if before.is_whitespace() => return Some(at),
            (None, '"' | '\'') if quotes => open = Some(c),
            (Some(quote), c) if c == quote && before != '\\' => open = None,
            _ => {}
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, name: &str, value: &str) -> Result<String> {
        with_setting(text, name, value).map(|(text, _)| text)
    }

    #[test]
    fn comments_and_layout_stay_as_they_are() {
        let text = "# mine\ngovernance:\n    # why\n    max_retries: 3  # few\n    lease_seconds: 60\n\nhive: # h\n  name: 'a # b' # c\n";
        assert_eq!(set(text, "governance.max_retries", "9").unwrap(), text.replace("3  # few", "9  # few"));
        assert_eq!(set(text, "hive.name", "x").unwrap(), text.replace("'a # b' # c", "\"x\"  # c"));
        let added = set(text, "governance.auto_assign", "true").unwrap();
        assert_eq!(added, text.replace("lease_seconds: 60\n", "lease_seconds: 60\n    auto_assign: true\n"));
        let added = set(text, "watchdog.hooks.on_beat", "say: 'hi' # x").unwrap();
        assert_eq!(added, format!("{text}watchdog:\n  hooks:\n    on_beat: \"say: 'hi' # x\"\n"));
        let listed = set(text, "governance.destructive_commands", "[rm *, dd]").unwrap();
        assert!(listed.contains("    destructive_commands: [\"rm *\",\"dd\"]\n"), "{listed}");
    }

    #[test]
    fn a_file_without_settings_gets_the_section_at_its_end() {
        for text in ["", "# a", &super::super::commented()] {
            let edited = set(text, "agents.a.inactive_warn_seconds", "5").unwrap();
            assert!(edited.ends_with("agents:\n  a:\n    inactive_warn_seconds: 5\n"), "{edited}");
            assert!(edited.starts_with(text));
        }
        assert!(
            set("", "reviewers.gpt.command", "ask").unwrap().ends_with("reviewers:\n  gpt:\n    command: \"ask\"\n")
        );
    }

    #[test]
    fn an_edit_changes_one_setting_or_nothing() {
        let cannot = [
            "{governance: {max_retries: 3}}\n",
            "governance: {max_retries: 3}\n",
            "governance:\n  \"max_retries\": 3\n",
            "\"governance\":\n  max_retries: 3\n",
            "governance:\n  max_retries:\n    3\n",
            "governance: &a\n  max_retries: 3\n",
            "a: [\n",
        ];
        for text in cannot {
            assert!(set(text, "governance.max_retries", "9").is_err(), "{text}");
        }
        for (name, value) in [
            ("governance.max_retries", "-1"),
            ("governance.max_retries", "many"),
            ("governance.approval_timeout_policy", "perhaps"),
            ("governance.unheard_of", "1"),
            ("agents.a.runaway_events", "1"),
            ("agents.a\nb: c.inactive_warn_seconds", "1"),
        ] {
            assert!(set("", name, value).is_err(), "{name} {value}");
        }
        let list = "governance:\n  destructive_commands:\n  - rm\n  max_retries: 3\n";
        assert!(set(list, "governance.destructive_commands", "[]").is_err());
        assert!(set(list, "governance.max_retries", "4").unwrap().ends_with("  - rm\n  max_retries: 4\n"));
    }
}
