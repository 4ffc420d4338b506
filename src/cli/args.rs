//! Arguments that several commands share, and how their values are read.

use std::fs::File;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::base::{EntityType, Error, Result, Timestamp, limits, text};
use crate::machine::Phase;
use crate::op::{ListRequest, Projection};

/// Every command's.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards
    #[arg(long, value_name = "DIR", global = true)]
    pub vault: Option<PathBuf>,
    /// Reply with one JSON object
    #[arg(long, global = true)]
    pub json: bool,
    /// How long to wait for the vault's lock, in seconds
    #[arg(long, value_name = "SECONDS", global = true, default_value_t = limits::LOCK_TIMEOUT_DEFAULT_SECONDS)]
    pub lock_timeout: u64,
}

/// For what records something.
#[derive(Args, Clone, Debug)]
pub struct Acting {
    /// Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you
    #[arg(long, value_name = "ACTOR")]
    pub actor: Option<String>,
}

/// For what may be repeated after a reply got lost.
#[derive(Args, Clone, Debug)]
pub struct Keyed {
    /// Idempotency key: the same key again records nothing and replies with the first event
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// For what records something and may be repeated after a reply got lost.
#[derive(Args, Clone, Debug)]
pub struct Recording {
    /// Idempotency key: the same key again records nothing and replies with the first event
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    #[command(flatten)]
    pub acting: Acting,
}

/// For what belongs to a project.
#[derive(Args, Clone, Debug)]
pub struct Projected {
    /// The project; else $HF_PROJECT, else that of $HF_SESSION, else main
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
}

/// For work of a project.
#[derive(Args, Clone, Debug)]
pub struct Working {
    #[command(flatten)]
    pub recording: Recording,
    #[command(flatten)]
    pub projected: Projected,
}

/// For commands of an agent's own.
#[derive(Args, Clone, Debug)]
pub struct Agentic {
    /// The agent; else $HF_AGENT, else main
    #[arg(long, value_name = "NAME", global = true)]
    pub agent: Option<String>,
    /// An ai-works tree that is served in place; else $HF_WORKS, else liveness.works_dir
    #[arg(long, value_name = "DIR", global = true)]
    pub works: Option<PathBuf>,
}

/// For commands that list.
#[derive(Args, Clone, Debug)]
pub struct Paged {
    /// Entries on a page, 500 at most
    #[arg(long, value_name = "N", default_value_t = limits::LOG_PAGE_DEFAULT_EVENTS)]
    pub limit: usize,
    /// Go on behind this id, the NEXT_CURSOR of the page before
    #[arg(long, value_name = "ID")]
    pub cursor: Option<String>,
}

impl Paged {
    /// A page of entities: of one type, and in one of these states if there are any.
    pub fn of(self, entity: EntityType, states: Vec<Phase>) -> ListRequest {
        ListRequest { states, limit: self.limit, cursor: self.cursor, ..ListRequest::of(Projection::Of(entity)) }
    }
}

/// Lines of a reader, each without its end, none longer than an event may be.
pub fn read_lines(mut reader: impl BufRead) -> impl FnMut() -> Option<Result<Vec<u8>>> {
    move || {
        let mut line = Vec::new();
        let most = limits::EVENT_MAX_BYTES as u64 + 1;
        match reader.by_ref().take(most).read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => {
                let ended = line.pop_if(|b| *b == b'\n').is_some();
                match !ended && line.len() as u64 == most {
                    true => Some(Err(Error::usage(format!("a line has at most {} bytes", limits::EVENT_MAX_BYTES)))),
                    false => Some(Ok(line)),
                }
            }
            Err(e) => Some(Err(Error::system("cannot read standard input", e))),
        }
    }
}

/// A text that is given on the command line, in a file, or as `-` on standard input; at most what an
/// event can hold.
pub fn read_text(given: Option<String>, file: Option<&Path>) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    let most = limits::EVENT_MAX_BYTES as u64 + 1;
    match (given, file) {
        (Some(text), None) if text != "-" => return Ok(Some(text)),
        (None, None) => return Ok(None),
        (_, Some(file)) => {
            let opened = File::open(file).and_then(|opened| opened.take(most).read_to_end(&mut bytes));
            opened.map_err(|e| Error::usage(format!("cannot read {}: {e}", file.display())))?;
        }
        (Some(_), None) => {
            let read = std::io::stdin().take(most).read_to_end(&mut bytes);
            read.map_err(|e| Error::system("cannot read standard input", e))?;
        }
    }
    if bytes.len() as u64 == most {
        return Err(Error::usage(format!("the text is too long: at most {} bytes", limits::EVENT_MAX_BYTES)));
    }
    let text = String::from_utf8(bytes).map_err(|_| Error::usage("the text is not UTF-8"))?;
    Ok(Some(text.trim_end().to_owned()).filter(|text| !text.is_empty()))
}

/// A length of time: seconds, or a number with s, m, h or d.
pub fn parse_seconds(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err("write seconds, or a number with s, m, h or d".to_owned()),
    };
    let seconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).filter(|n| *n > 0);
    seconds
        .filter(|n| *n <= limits::DURATION_MAX_SECONDS)
        .ok_or_else(|| format!("write a time from 1 second to {} days", limits::DURATION_MAX_SECONDS / (24 * 60 * 60)))
}

/// A moment: a day, a time, or how long ago it was, such as `2h`.
pub fn parse_time(text: &str, now: Timestamp) -> Result<Timestamp> {
    let ago = |text: &str| {
        let with_unit = text.ends_with(|c: char| c.is_ascii_lowercase());
        let seconds = parse_seconds(text).ok().filter(|_| with_unit)?;
        Some(Timestamp(now.0.saturating_sub_unsigned(seconds)))
    };
    Timestamp::parse_lenient(text).or_else(|| ago(text)).ok_or_else(|| {
        let shown = text::cut(text, 40);
        Error::usage(format!(
            "'{shown}' is not a time: write 2026-01-31, 2026-01-31T12:00:00Z, or 2h for two hours ago"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_may_be_a_day_a_time_or_a_while_ago() {
        let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        for (text, moment) in [
            ("2026-01-30", "2026-01-30T00:00:00Z"),
            ("2026-01-30T08:00:00Z", "2026-01-30T08:00:00Z"),
            ("2h", "2026-01-31T10:00:00Z"),
            ("90s", "2026-01-31T11:58:30Z"),
            ("3d", "2026-01-28T12:00:00Z"),
        ] {
            assert_eq!(parse_time(text, now).unwrap().to_string(), moment, "{text}");
        }
        for wrong in ["", "2", "2x", "h", "-2h", "yesterday", "99999999999d"] {
            assert!(parse_time(wrong, now).is_err(), "{wrong}");
        }
    }
}
