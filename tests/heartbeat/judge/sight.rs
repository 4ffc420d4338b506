//! What is in a tree, read by the names and texts that the source describes.

use std::collections::BTreeSet;

use crate::judge::lies::Lie;
use crate::tree::{Entry, Tree};
use crate::zone::Zone;

/// The most characters that the text of a declaration may have.
const TEXT_MAX: usize = 400;
/// A header is among this many first lines of a log.
const HEADER_LINES: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Log { no: u32, introspection: bool, emergency: bool },
    Checkpoint,
    Declaration { minutes: Option<i64>, name: Name },
}

/// What the name of a declaration says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Open,
    Completed,
    Expired,
}

/// A file with an id that is a time.
#[derive(Clone, Debug)]
pub struct Seen {
    pub path: String,
    pub id: String,
    pub at: i64,
    pub kind: Kind,
}

/// A tree at a moment.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    pub files: Vec<Seen>,
    /// Declarations that cannot be understood.
    pub malformed: Vec<String>,
    /// What cannot be read.
    pub unreadable: Vec<String>,
}

/// Where files are looked for.
#[derive(Clone, Copy)]
enum Room {
    Logs,
    Checkpoints,
    Declarations,
}

/// Looks at everything but the logs and checkpoints that are known already.
pub fn look(tree: &Tree, known: &BTreeSet<String>, zone: Zone, now: i64, strict_max: i64, lie: Option<Lie>) -> Sight {
    let mut sight = Sight::default();
    for (path, entry) in tree.iter().filter(|(path, _)| !known.contains(*path)) {
        if is_passage(path) && *entry == Entry::Link {
            sight.unreadable.push(path.clone());
            continue;
        }
        let Some((room, name)) = room_of(path, lie) else { continue };
        let Some((id, rest)) = split_id(name) else { continue };
        let is_ours = match room {
            Room::Logs => rest == ".md" || (rest.starts_with('_') && rest.len() > 4 && rest.ends_with(".md")),
            Room::Checkpoints => rest == ".txt",
            Room::Declarations => matches!(rest, ".txt" | ".completed.txt" | ".expired.txt"),
        };
        if !is_ours {
            continue;
        }
        let text = match entry {
            Entry::File(text) => text,
            Entry::Link | Entry::Folder => {
                sight.unreadable.push(path.clone());
                continue;
            }
        };
        let zone = if lie == Some(Lie::AlwaysUtc) { Zone::Utc } else { zone };
        let readings = zone.readings(id);
        let Some(first) = readings.first().copied() else {
            sight.unreadable.push(path.clone());
            continue;
        };
        let at = match lie {
            Some(Lie::FirstReading) => first,
            Some(Lie::LastReading) => readings[readings.len() - 1],
            _ => readings.iter().rev().copied().find(|at| *at <= now).unwrap_or(first),
        };
        let kind = match room {
            Room::Logs => log(rest, text, lie),
            Room::Checkpoints => Kind::Checkpoint,
            Room::Declarations => match minutes(text, strict_max, lie) {
                Ok(minutes) => Kind::Declaration { minutes, name: name_of(rest) },
                Err(()) => {
                    if rest == ".txt" {
                        sight.malformed.push(path.clone());
                    }
                    continue;
                }
            },
        };
        sight.files.push(Seen { path: path.clone(), id: id.to_owned(), at, kind });
    }
    if lie == Some(Lie::LinkHidesAll) && sight.unreadable.iter().any(|path| is_passage(path)) {
        sight.files.clear();
    }
    sight
}

fn name_of(rest: &str) -> Name {
    match rest {
        ".completed.txt" => Name::Completed,
        ".expired.txt" => Name::Expired,
        _ => Name::Open,
    }
}

/// Whether a path is a folder on the way to logs.
fn is_passage(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts[..],
        ["artifacts", _]
            | ["artifacts", _, "histories"]
            | ["artifacts", _, "subthemes"]
            | ["artifacts", _, "subthemes", _]
            | ["artifacts", _, "subthemes", _, "histories"]
    )
}

fn room_of(path: &str, lie: Option<Lie>) -> Option<(Room, &str)> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["artifacts", "theme_histories", name] if lie == Some(Lie::ThemeHistoriesCount) => Some((Room::Logs, name)),
        ["artifacts", _, "histories", name] => Some((Room::Logs, name)),
        ["artifacts", _, "subthemes", _, "histories", name] if lie != Some(Lie::NoSubthemes) => {
            Some((Room::Logs, name))
        }
        ["stats", "checkpoints", name] => Some((Room::Checkpoints, name)),
        ["stats", "deep_work", name] => Some((Room::Declarations, name)),
        _ => None,
    }
}

/// The 14 digits at the beginning of a name, and the rest.
fn split_id(name: &str) -> Option<(&str, &str)> {
    let (id, rest) = name.split_at_checked(14)?;
    id.bytes().all(|byte| byte.is_ascii_digit()).then_some((id, rest))
}

fn log(rest: &str, text: &str, lie: Option<Lie>) -> Kind {
    let number = rest.strip_prefix('_').and_then(|rest| rest.strip_suffix(".md")).unwrap_or_default();
    let no = match lie {
        // As text, _10 comes before _2.
        Some(Lie::NumbersAsText) => number.bytes().next().map_or(0, |byte| u32::from(byte) + 1),
        _ => number.parse().unwrap_or(0),
    };
    let mut header = text.lines().take(HEADER_LINES);
    let emergency = match lie {
        Some(Lie::EmergencyAnywhere) => text.contains("emergency: ") || text.contains("緊急対応: "),
        Some(Lie::EmergencyNever) => false,
        _ => header.any(|line| line.starts_with("emergency: ") || line.starts_with("緊急対応: ")),
    };
    let by_word = text.contains("内省") && lie != Some(Lie::NoWord);
    let introspection = by_word || text.lines().take(HEADER_LINES).any(|line| line == "kind: introspection");
    Kind::Log { no, introspection, emergency }
}

/// The minutes of a strict declaration, nothing for a flexible one, or an error if it is malformed.
fn minutes(text: &str, strict_max: i64, lie: Option<Lie>) -> Result<Option<i64>, ()> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).map(str::trim);
    if value("活動予定内容").is_some_and(|text| text.chars().count() > TEXT_MAX) {
        return Err(());
    }
    match value("制限タイプ") {
        Some("flexible") => Ok(None),
        Some("strict") => {
            let minutes = value("予定時間").and_then(|value| value.strip_suffix('分')?.parse::<i64>().ok()).ok_or(())?;
            let is_allowed = minutes <= strict_max || lie == Some(Lie::NoStrictLimit);
            if is_allowed { Ok(Some(minutes)) } else { Err(()) }
        }
        _ => Err(()),
    }
}
