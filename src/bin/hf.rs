//! hf: `hf append …` runs `hf-append …`; alone it lists the commands.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Parser;
use hiveforge::base::Error;
use hiveforge::ui::commands::COMMANDS;
use hiveforge::ui::{self, Cli, Common, Key, Output, Report, Status};

/// Run a command of the toolkit, or list them
#[derive(Parser, Debug)]
#[command(
    name = "hf",
    version,
    disable_help_subcommand = true,
    after_help = "Examples:
  hf                 list the commands
  hf append --help   the same as hf-append --help"
)]
pub struct Args {
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
    #[command(flatten)]
    common: Common,
}

impl Cli for Args {
    fn common(&self) -> &Common {
        &self.common
    }

    fn vault(&self) -> Option<PathBuf> {
        // This command opens none.
        Some(PathBuf::new())
    }
}

fn main() -> ExitCode {
    ui::run::<Args>(|args, _, _| match args.command.split_first() {
        None => Ok(list()),
        // Options before the command would not reach it, and it would act on another vault.
        Some((name, _)) if std::env::args_os().nth(1).as_ref() != Some(name) => {
            Err(Error::usage("options stand behind the command: hf COMMAND OPTIONS").into())
        }
        Some((name, rest)) => Err(start(name, rest)?.into()),
    })
}

fn list() -> Output {
    Report::new(Status::Ok, format!("{} commands", COMMANDS.len()))
        .with_each(Key::Command, COMMANDS.iter().map(|(name, about)| format!("hf-{name} {about}")))
        .into()
}

/// Becomes the command; comes back only with the reason why not.
fn start(name: &OsString, rest: &[OsString]) -> anyhow::Result<Error> {
    let known = COMMANDS.iter().find(|(command, _)| name == command);
    let Some((name, _)) = known else {
        return Ok(Error::usage(format!("'{}' is not a command; hf alone lists them", name.display())));
    };
    let file = format!("hf-{name}");
    // The one beside this program, else the one on the path.
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name(&file)).filter(|exe| exe.is_file());
    let error = Command::new(beside.unwrap_or_else(|| file.clone().into())).args(rest).exec();
    Ok(Error::system(format!("cannot run {file}"), error))
}
