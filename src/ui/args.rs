//! Arguments that every command has, and reading lines from standard input.

use std::fs::File;
use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Parser};

use crate::base::{Error, Result, limits};

/// A command's arguments, with the common ones among them.
pub trait Cli: Parser {
    /// Flags that make standard output a document: then every reply, also that of an error, goes to
    /// standard error.
    const DOCUMENT_FLAGS: &'static [&'static str] = &[];

    /// Whether this is a poll, whose caller takes any exit code but 0 for a broken tool: it always
    /// exits 0, and its numbers are its own.
    const POLL: bool = false;

    fn common(&self) -> &Common;

    /// The vault, if the command names it in a way of its own.
    fn vault(&self) -> Option<PathBuf> {
        None
    }

    /// The vault if nothing names one, for a command that need not find it.
    fn default_vault(&self) -> Option<PathBuf> {
        None
    }

    /// The agent that acts, if the command is one of an agent's own: named, or found otherwise.
    fn agent(&self) -> Option<Option<&str>> {
        None
    }

    /// A works tree that is served in place.
    fn works(&self) -> Option<PathBuf> {
        None
    }

    /// The project, if the command can be told.
    fn project(&self) -> Option<&str> {
        None
    }

    /// The session, if the command can be told.
    fn session(&self) -> Option<&str> {
        None
    }

    /// Who acts, if the command can be told.
    fn acting(&self) -> Option<&Acting> {
        None
    }
}

/// Says that a command's arguments have the common ones in `common`; `with acting`, who acts; with
/// `documents`, which flags ask for a document.
#[macro_export]
macro_rules! cli {
    ($Args:ty $(, documents $flags:expr)?) => {
        $crate::cli!(@ $Args, { $($flags)? }, {});
    };
    ($Args:ty, by agent) => {
        impl $crate::ui::Cli for $Args {
            fn common(&self) -> &$crate::ui::Common {
                &self.common
            }

            fn agent(&self) -> Option<Option<&str>> {
                Some(self.agentic.agent.as_deref())
            }

            fn works(&self) -> Option<std::path::PathBuf> {
                self.agentic.works.clone()
            }
        }
    };
    ($Args:ty, polls) => {
        impl $crate::ui::Cli for $Args {
            const POLL: bool = true;

            fn common(&self) -> &$crate::ui::Common {
                &self.common
            }
        }
    };
    ($Args:ty, with acting, in project $(, documents $flags:expr)?) => {
        $crate::cli!(@ $Args, { $($flags)? }, {
            fn acting(&self) -> Option<&$crate::ui::Acting> {
                Some(&self.acting)
            }

            fn project(&self) -> Option<&str> {
                self.projected.project.as_deref()
            }
        });
    };
    ($Args:ty, with acting $(, documents $flags:expr)?) => {
        $crate::cli!(@ $Args, { $($flags)? }, {
            fn acting(&self) -> Option<&$crate::ui::Acting> {
                Some(&self.acting)
            }
        });
    };
    (@ $Args:ty, { $($flags:expr)? }, { $($item:item)* }) => {
        impl $crate::ui::Cli for $Args {
            $(const DOCUMENT_FLAGS: &'static [&'static str] = $flags;)?

            fn common(&self) -> &$crate::ui::Common {
                &self.common
            }

            $($item)*
        }
    };
}

/// For commands that record something.
#[derive(Args, Clone, Debug)]
pub struct Acting {
    /// Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you
    #[arg(long, value_name = "ACTOR", global = true)]
    pub actor: Option<String>,
}

/// For commands about a project, or about what belongs to one.
#[derive(Args, Clone, Debug)]
pub struct Projected {
    /// The project; else $HF_PROJECT, else that of $HF_SESSION, else main
    #[arg(long, value_name = "NAME", global = true)]
    pub project: Option<String>,
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

/// For commands that may be repeated after a reply got lost.
#[derive(Args, Clone, Debug)]
pub struct Keyed {
    /// Idempotency key: the same key again records nothing and replies with the first event
    #[arg(long, value_name = "KEY", global = true)]
    pub key: Option<String>,
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

/// Whether a person is looking at standard output.
pub fn on_terminal() -> bool {
    std::io::stdout().is_terminal()
}
