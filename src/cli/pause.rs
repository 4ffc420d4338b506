//! hf-pause: pause a project, so that an operator can look into it; or archive it.

use std::time::Duration;

use clap::Parser;

use super::args::{ActorArgs, GlobalArgs, ProjectArgs, SignArgs, parse_seconds};
use super::confirm::ask_to_archive;
use super::main::cancel_on_signal;
use super::{Command, Output, StdoutWriter};
use crate::op::Context;
use crate::op::pause::{self, RestRequest};

/// Pause a project: nothing new starts, and its agents are asked to log out (operators only)
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-pause 'The direction is wrong'
  hf-pause 'Waiting for the review' --wait --max 10s
  hf-pause --archive brand 'Released, nothing left to do' --yes

Running jobs finish. Tasks keep their state, and after hf-resume each agent gets back the task it had claimed. You can \
still read, add, edit and assign tasks while a project is paused, and its agents can answer. With --wait the exit code \
is 1 if something is still in progress at the end. Archiving is final: an archived project can only be read."
)]
pub struct Args {
    /// Why, in one line
    #[arg(required_unless_present_any = ["archive", "wait"])]
    reason: Option<String>,
    /// Archive the project with this name; this is final, and needs --yes or a person at the terminal
    #[arg(long, value_name = "NAME", conflicts_with_all = ["wait", "project"])]
    archive: Option<String>,
    /// Wait until the last session and the last job have ended
    #[arg(long)]
    wait: bool,
    /// With --wait, wait up to this long, such as 90s or 10m
    #[arg(long, value_name = "DURATION", value_parser = parse_seconds, default_value = "330s", requires = "wait")]
    max: u64,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    actor: ActorArgs,
    #[command(flatten)]
    sign: SignArgs,
    #[command(flatten)]
    global: GlobalArgs,
}

impl Command for Args {
    const NAME: &str = "hf-pause";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        let wait = self.wait.then(|| Duration::from_secs(self.max));
        if let Some(name) = self.archive.as_ref().filter(|_| !self.sign.yes && self.sign.signature.is_none()) {
            // Nobody is asked about a project that does not exist.
            pause::check_exists(ctx)?;
            ask_to_archive(name)?;
        }
        let ctx = &self.sign.context(ctx)?;
        let ctx = &if self.wait { cancel_on_signal(ctx)? } else { ctx.clone() };
        Ok(pause::rest(ctx, RestRequest { reason: self.reason, archive: self.archive.is_some(), wait })?.into())
    }
}
