//! Arguments that several commands share, and how their values are parsed.

use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::confirm::{ask_to_approve, ask_to_sign};
use crate::base::{Actor, EntityType, Error, Result, Timestamp, limits, text};
use crate::event::check_callers_key;
use crate::machine::Phase;
use crate::op::sign::{self, ReadSignatureRequest};
use crate::op::{Context, ListFilter, ListRequest, Projection, Prompts, Signing};
use crate::policy::statement::Statement;

/// Options of every command.
#[derive(Args, Clone, Debug)]
pub struct GlobalArgs {
    /// The vault [default: $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ in this directory or above]
    #[arg(long, value_name = "DIR", global = true)]
    pub vault: Option<PathBuf>,
    /// Print the reply as a JSON object
    #[arg(long, global = true)]
    pub json: bool,
    /// Wait up to this many seconds for the lock on the vault
    #[arg(long, value_name = "SECONDS", global = true, default_value_t = limits::LOCK_TIMEOUT_DEFAULT_SECONDS, value_parser = parse_timeout)]
    pub lock_timeout: u64,
}

/// Parses a number of seconds, 0 included.
fn parse_timeout(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a number of seconds".to_owned())
}

/// Parses a whole number from 1 on.
pub fn parse_at_least_one(text: &str) -> Result<u64, String> {
    text.parse().ok().filter(|number| *number > 0).ok_or_else(|| "must be a whole number, 1 or more".to_owned())
}

/// For commands that record events.
#[derive(Args, Clone, Debug)]
pub struct ActorArgs {
    /// Act as user:NAME, agent:NAME, core:NAME or external:NAME [default: agent:$HF_AGENT, or you]
    #[arg(long, value_name = "ACTOR")]
    pub actor: Option<String>,
}

/// A key that a caller may choose.
pub fn parse_key(text: &str) -> Result<String, String> {
    check_callers_key(text).map(|()| text.to_owned()).map_err(|error| error.message)
}

/// For commands that can be repeated safely after a lost reply.
#[derive(Args, Clone, Debug)]
pub struct KeyArgs {
    /// Idempotency key: repeating a request with the same key records nothing and returns the first event
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    pub key: Option<String>,
}

/// For commands that record events and can be repeated safely after a lost reply.
#[derive(Args, Clone, Debug)]
pub struct WriteArgs {
    /// Idempotency key: repeating a request with the same key records nothing and returns the first event
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    pub key: Option<String>,
    #[command(flatten)]
    pub actor: ActorArgs,
}

/// For acts of operators, which are signed in a vault with operator keys.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "In a vault with operator keys")]
pub struct SignArgs {
    /// Sign with this key: a private key, or a public key if ssh-agent has the private one [default: $HF_OPERATOR_KEY, or the one in ~/.ssh]
    #[arg(long, value_name = "FILE")]
    pub operator_key: Option<PathBuf>,
    /// Hand in a signature that was made elsewhere with hf-decide sign
    #[arg(long, value_name = "FILE", conflicts_with = "operator_key")]
    pub signature: Option<PathBuf>,
    /// The statement that was signed [default: the file of the signature, without .sig]
    #[arg(long, value_name = "FILE", requires = "signature")]
    pub statement: Option<PathBuf>,
    /// Do not show the statement on the terminal, and do not ask
    #[arg(long)]
    pub yes: bool,
}

impl SignArgs {
    /// The same call with these ways to sign.
    pub fn context(self, ctx: &Context) -> Result<Context> {
        let given = self.signature.map(|signature| {
            sign::read_signature(ReadSignatureRequest { signature, statement: self.statement }).map(Arc::new)
        });
        let confirm: fn(&Statement) -> Result<()> = if self.yes { |_| Ok(()) } else { ask_to_sign };
        let can_ask = !self.yes && io::stdin().is_terminal() && io::stderr().is_terminal();
        let confirm_approval: Option<fn(&Statement) -> Result<()>> = if can_ask { Some(ask_to_approve) } else { None };
        let (key, prompts) = (self.operator_key, prompts());
        Ok(ctx.with_signing(Signing { key, given: given.transpose()?, prompts, confirm, confirm_approval }))
    }
}

/// Who answers when ssh-keygen asks.
pub fn prompts() -> Prompts {
    if io::stderr().is_terminal() { Prompts::OnTerminal } else { Prompts::Nobody }
}

/// For commands about a project.
#[derive(Args, Clone, Debug)]
pub struct ProjectArgs {
    /// The project [default: $HF_PROJECT, the project of $HF_SESSION, or main]
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
}

/// For commands that may be the first in a project.
#[derive(Args, Clone, Debug)]
pub struct CreateArgs {
    /// Create the project if it does not exist (operators only)
    #[arg(long)]
    pub create: bool,
}

/// For commands that record events about work in a project.
#[derive(Args, Clone, Debug)]
pub struct WorkArgs {
    #[command(flatten)]
    pub write: WriteArgs,
    #[command(flatten)]
    pub project: ProjectArgs,
}

/// For commands that act as an agent.
#[derive(Args, Clone, Debug)]
pub struct AgentArgs {
    /// The agent [default: $HF_AGENT, the agent of $HF_SESSION, or main]
    #[arg(long, value_name = "NAME", global = true)]
    pub agent: Option<String>,
    /// Keep the files of agents (checkpoints, activity logs) in this directory instead of the vault [default: $HF_WORKS, or liveness.works_dir]
    #[arg(long, value_name = "DIR", global = true)]
    pub works: Option<PathBuf>,
}

/// For commands that list entities page by page.
#[derive(Args, Clone, Debug)]
pub struct PageArgs {
    /// Show up to N entries per page, 500 at most
    #[arg(long, value_name = "N", default_value_t = limits::PAGE_DEFAULT_COUNT)]
    pub limit: usize,
    /// Continue after this id: NEXT_CURSOR of the previous page
    #[arg(long, value_name = "ID")]
    pub cursor: Option<String>,
}

/// For lists of what belongs to a project and an agent.
#[derive(Args, Clone, Debug)]
pub struct FilterArgs {
    /// Only those of this project
    #[arg(long, value_name = "NAME")]
    pub project: Option<String>,
    /// Only those of this agent
    #[arg(id = "of_agent", long = "agent", value_name = "NAME")]
    pub of_agent: Option<String>,
    /// Only your own
    #[arg(long, conflicts_with = "of_agent")]
    pub mine: bool,
}

impl FilterArgs {
    /// The filter of this call.
    pub fn filter(&self, ctx: &Context) -> Result<ListFilter> {
        let actor = match &self.of_agent {
            Some(name) => Some(Actor::parse(&format!("agent:{name}"))?),
            None => self.mine.then(|| ctx.caller.actor.clone()),
        };
        // The flag alone: a list in a shell with a project of its own shows everything.
        Ok(ListFilter { project: ctx.project.clone().filter(|_| self.project.is_some()), actor })
    }
}

impl PageArgs {
    /// A request for a page of entities of one type, in any of these phases; in all phases if there are none.
    pub fn list_request(self, entity: EntityType, phases: Vec<Phase>) -> ListRequest {
        ListRequest {
            phases,
            limit: self.limit,
            cursor: self.cursor,
            ..ListRequest::first_page(Projection::Of(entity))
        }
    }
}

/// Returns the lines of a reader one by one, without their line ends. A line longer than an event may be is an error.
pub fn read_lines(mut reader: impl BufRead) -> impl FnMut() -> Option<Result<Vec<u8>>> {
    move || {
        let mut line = Vec::new();
        let max_read = limits::EVENT_MAX_BYTES as u64 + 1;
        match reader.by_ref().take(max_read).read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => {
                let ended = line.pop_if(|b| *b == b'\n').is_some();
                match !ended && line.len() as u64 == max_read {
                    true => {
                        Some(Err(Error::usage(format!("a line must have at most {} bytes", limits::EVENT_MAX_BYTES))))
                    }
                    false => Some(Ok(line)),
                }
            }
            Err(e) => Some(Err(Error::system("cannot read standard input", e))),
        }
    }
}

/// Reads a text from the command line, from a file, or from standard input if it is `-`. The limit is the size of
/// an event. A text that was read and is empty counts as none.
pub fn read_text(given: Option<String>, file: Option<&Path>) -> Result<Option<String>> {
    let text = match (given, file) {
        (Some(text), None) if text != "-" => return Ok(Some(text)),
        (None, None) => return Ok(None),
        (_, file) => read_whole(file)?,
    };
    Ok(Some(text.trim_end().to_owned()).filter(|text| !text.is_empty()))
}

/// Reads a whole text from a file, or from standard input.
pub fn read_whole(file: Option<&Path>) -> Result<String> {
    let mut bytes = Vec::new();
    let max_read = limits::EVENT_MAX_BYTES as u64 + 1;
    match file {
        Some(file) => {
            let opened = File::open(file).and_then(|opened| opened.take(max_read).read_to_end(&mut bytes));
            opened.map_err(|e| Error::usage(format!("cannot read {}: {e}", file.display())))?;
        }
        None => {
            let read = std::io::stdin().take(max_read).read_to_end(&mut bytes);
            read.map_err(|e| Error::system("cannot read standard input", e))?;
        }
    }
    if bytes.len() as u64 == max_read {
        return Err(Error::usage(format!("the text is too long; at most {} bytes", limits::EVENT_MAX_BYTES)));
    }
    String::from_utf8(bytes).map_err(|_| Error::usage("the text is not UTF-8"))
}

/// Parses a duration in seconds: a number, or a number with the unit s, m, h or d.
pub fn parse_seconds(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err("must be a number of seconds, or a number with the unit s, m, h or d, such as 15m".to_owned()),
    };
    let seconds = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)).filter(|n| *n > 0);
    seconds
        .filter(|n| *n <= limits::DURATION_MAX_SECONDS)
        .ok_or_else(|| format!("must be from 1 second to {} days", limits::DURATION_MAX_SECONDS / (24 * 60 * 60)))
}

/// Parses a point in time: a day, a time, or how long ago, such as `2h`.
pub fn parse_time(text: &str, now: Timestamp) -> Result<Timestamp> {
    let ago = |text: &str| {
        let with_unit = text.ends_with(|c: char| c.is_ascii_lowercase());
        let seconds = parse_seconds(text).ok().filter(|_| with_unit)?;
        Some(Timestamp(now.0.saturating_sub_unsigned(seconds)))
    };
    Timestamp::parse_lenient(text).or_else(|| ago(text)).ok_or_else(|| {
        let shown = text::cut(text, 40);
        Error::usage(format!("invalid time '{shown}'; write 2026-01-31, 2026-01-31T12:00:00Z, or 2h for two hours ago"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_day_a_time_or_how_long_ago() {
        let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        for (text, expected) in [
            ("2026-01-30", "2026-01-30T00:00:00Z"),
            ("2026-01-30T08:00:00Z", "2026-01-30T08:00:00Z"),
            ("2h", "2026-01-31T10:00:00Z"),
            ("90s", "2026-01-31T11:58:30Z"),
            ("3d", "2026-01-28T12:00:00Z"),
        ] {
            assert_eq!(parse_time(text, now).unwrap().to_string(), expected, "{text}");
        }
        for wrong in ["", "2", "2x", "h", "-2h", "yesterday", "99999999999d"] {
            assert!(parse_time(wrong, now).is_err(), "{wrong}");
        }
    }
}
