//! hf-state: the state of the current mission, short enough for a new session to continue from it.

use std::time::Duration;

use clap::{Parser, Subcommand};

use super::args::{ActorArgs, GlobalArgs, WriteArgs, parse_seconds};
use super::main::cancel_on_signal;
use super::{Command, Output, StdoutWriter};
use crate::op::Context;
use crate::op::mission::{self, EndMissionRequest, GoRequest, RoundRequest, SetRequest, StartMissionRequest};

/// Keep the state of a mission in 200 words, and run its work
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-state start 'Login with two factors' --constraint 'no new dependencies'
  hf-state set OPEN_K=K1,K2 LAST_ACTION='design written' NEXT_ACTION='hf-review status'
  hf-state show
  hf-state round
  hf-state done 'all tests pass'

A mission is a goal that is worked on in up to four rounds. Its state is also in Autonomous/state/M1.md, which is \
replaced atomically.

hf-state go needs runner.command in hiveforge.config.yaml and a requirement that an operator has approved. Both \
runner.command and fixer.command get HF_MISSION, HF_ROUND and HF_GOAL. fixer.command also gets the last lines of the \
failed run on standard input and in HF_LAST5, the path of its log in HF_LOG, and its task in HF_FAILED_TASK."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Show the state of the mission and its next action
    Show,
    /// Start a mission
    Start {
        /// The goal, in one line
        goal: String,
        /// A constraint on the mission, in one line (repeatable, up to three)
        #[arg(long = "constraint", value_name = "TEXT")]
        constraints: Vec<String>,
        /// The requirement that the mission implements, such as REQ-0001
        #[arg(long, value_name = "REF")]
        requirement: Option<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Change lines of the state: GOAL, TASK_ID, LOGREF (the log of the last run), OPEN_K (open points, such as K1,K2),
    /// LAST_ACTION, NEXT_ACTION or REQUIREMENT
    Set {
        /// A line and its new value, such as LAST_ACTION='design written'; the value NONE clears it
        #[arg(value_name = "KEY=VALUE", required_unless_present = "constraints")]
        pairs: Vec<String>,
        /// Replace all constraints with this one (repeatable, up to three)
        #[arg(long = "constraint", value_name = "TEXT")]
        constraints: Vec<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Start the next round; there are four
    Round {
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Mark the mission as done
    Done {
        /// The last action, in one line
        text: Option<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Mark the mission as failed
    Fail {
        /// Why, in one line
        text: Option<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Run runner.command and wait for it; after a failure, run fixer.command and start the next round
    Go {
        /// Wait up to this long, such as 90s or 10m; run the command again to continue
        #[arg(long, value_name = "DURATION", value_parser = parse_seconds, default_value = "270s")]
        max: u64,
        #[command(flatten)]
        actor: ActorArgs,
    },
}

impl Command for Args {
    const NAME: &str = "hf-state";

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Show => mission::show(ctx)?.into(),
            Verb::Go { max, .. } => {
                let request = GoRequest { max: Duration::from_secs(max) };
                mission::go(&cancel_on_signal(ctx)?, request)?.into()
            }
            Verb::Start { goal, constraints, requirement, write } => {
                let key = write.key;
                mission::start(ctx, StartMissionRequest { goal, constraints, requirement, key })?.into()
            }
            Verb::Set { pairs, constraints, write } => {
                mission::set(ctx, SetRequest { pairs, constraints, key: write.key })?.into()
            }
            Verb::Round { write } => mission::round(ctx, RoundRequest { key: write.key })?.into(),
            Verb::Done { text, write } => {
                mission::end(ctx, EndMissionRequest { passed: true, text, key: write.key })?.into()
            }
            Verb::Fail { text, write } => {
                mission::end(ctx, EndMissionRequest { passed: false, text, key: write.key })?.into()
            }
        })
    }
}
