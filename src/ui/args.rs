//! Arguments that every command has, and reading lines from standard input.

use std::io::{BufRead, IsTerminal, Read};
use std::path::PathBuf;

use clap::{Args, Parser};

use crate::base::{Error, Result, limits};

/// A command's arguments, with the common ones among them.
pub trait Cli: Parser {
    /// Flags that make standard output a document: then every reply, also that of an error, goes to
    /// standard error.
    const DOCUMENT_FLAGS: &'static [&'static str] = &[];

    fn common(&self) -> &Common;

    /// The vault, if the command names it in a way of its own.
    fn vault(&self) -> Option<PathBuf> {
        None
    }

    /// The vault if nothing names one, for a command that need not find it.
    fn default_vault(&self) -> Option<PathBuf> {
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
    ($Args:ty, with acting $(, documents $flags:expr)?) => {
        $crate::cli!(@ $Args, { $($flags)? }, {
            fn acting(&self) -> Option<&$crate::ui::Acting> {
                Some(&self.acting)
            }
        });
    };
    (@ $Args:ty, { $($flags:expr)? }, { $($acting:item)? }) => {
        impl $crate::ui::Cli for $Args {
            $(const DOCUMENT_FLAGS: &'static [&'static str] = $flags;)?

            fn common(&self) -> &$crate::ui::Common {
                &self.common
            }

            $($acting)?
        }
    };
}

/// For commands that record something.
#[derive(Args, Clone, Debug)]
pub struct Acting {
    /// Who acts: user:NAME, agent:NAME, core:NAME or external:NAME; else agent:$HF_AGENT, else you
    #[arg(long, value_name = "ACTOR")]
    pub actor: Option<String>,
}

#[derive(Args, Clone, Debug)]
pub struct Common {
    /// The vault; else $HF_VAULT, $HIVEFORGE_VAULT_PATH, or the nearest Vault/ upwards
    #[arg(long, value_name = "DIR")]
    pub vault: Option<PathBuf>,
    /// Reply with one JSON object
    #[arg(long)]
    pub json: bool,
    /// How long to wait for the vault's lock, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = limits::LOCK_TIMEOUT_DEFAULT_SECONDS)]
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

/// Whether a person is looking at standard output.
pub fn on_terminal() -> bool {
    std::io::stdout().is_terminal()
}
