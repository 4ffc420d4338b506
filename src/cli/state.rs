//! hf-state: the mission that is under way, kept so short that a lost session can go on from it.

use std::time::Duration;

use clap::{Parser, Subcommand};

use super::args::{Acting, Common, Recording, parse_seconds};
use super::main::until_asked_to_end;
use super::{Command, Out, Output};
use crate::op::Context;
use crate::op::mission::{self, EndMissionRequest, GoRequest, RoundRequest, SetRequest, StartMissionRequest};

/// Keep the state of a mission in 200 words, and do its work
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-state start 'Login with two factors' --constraint 'no new dependency'
  hf-state set OPEN_K=K1,K2 LAST_ACTION='design written' NEXT_ACTION='hf-review status'
  hf-state show
  hf-state round
  hf-state done 'all tests pass'

The state is also in Autonomous/state/M1.md, which is always written whole. hf-state go needs
runner.command in hiveforge.config.yaml and a requirement that an operator approved. Both commands get HF_MISSION,
HF_ROUND and HF_GOAL; fixer.command also the last lines of the failed run on standard input and in HF_LAST5, its
whole log in HF_LOG, and its task in HF_FAILED_TASK."
)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    common: Common,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Show how the mission stands, and what to do next
    Show,
    /// Begin a mission
    Start {
        /// What it is about, in one line
        goal: String,
        /// What holds for it, in one line (three at most)
        #[arg(long = "constraint", value_name = "TEXT")]
        constraints: Vec<String>,
        /// The requirement that it is for
        #[arg(long, value_name = "REF")]
        requirement: Option<String>,
        #[command(flatten)]
        recording: Recording,
    },
    /// Change lines: GOAL, TASK_ID, LOGREF, OPEN_K, LAST_ACTION, NEXT_ACTION or REQUIREMENT; NONE takes one away
    Set {
        /// Such as LAST_ACTION='design written'
        #[arg(value_name = "KEY=VALUE", required_unless_present = "constraints")]
        pairs: Vec<String>,
        /// The constraints, all of them anew (three at most)
        #[arg(long = "constraint", value_name = "TEXT")]
        constraints: Vec<String>,
        #[command(flatten)]
        recording: Recording,
    },
    /// Begin the next round, of four
    Round {
        #[command(flatten)]
        recording: Recording,
    },
    /// Say that the mission is done
    Done {
        /// What was done last, in one line
        text: Option<String>,
        #[command(flatten)]
        recording: Recording,
    },
    /// Say that the mission is given up
    Fail {
        /// Why, in one line
        text: Option<String>,
        #[command(flatten)]
        recording: Recording,
    },
    /// Do the work: fire runner.command, wait, hand a failure to fixer.command, fire again
    Go {
        /// Wait at most this long in one call; called again, it goes on
        #[arg(long, value_name = "TIME", value_parser = parse_seconds, default_value = "270s")]
        max: u64,
        #[command(flatten)]
        acting: Acting,
    },
}

impl Command for Args {
    const NAME: &str = "hf-state";

    fn run(self, ctx: &Context, _: Out) -> anyhow::Result<Output> {
        Ok(match self.what {
            What::Show => mission::show(ctx)?.into(),
            What::Go { max, .. } => {
                let request = GoRequest { max: Duration::from_secs(max) };
                mission::go(&until_asked_to_end(ctx)?, request)?.into()
            }
            What::Start { goal, constraints, requirement, recording } => {
                let key = recording.key;
                mission::start(ctx, StartMissionRequest { goal, constraints, requirement, key })?.into()
            }
            What::Set { pairs, constraints, recording } => {
                mission::set(ctx, SetRequest { pairs, constraints, key: recording.key })?.into()
            }
            What::Round { recording } => mission::round(ctx, RoundRequest { key: recording.key })?.into(),
            What::Done { text, recording } => {
                mission::end(ctx, EndMissionRequest { passed: true, text, key: recording.key })?.into()
            }
            What::Fail { text, recording } => {
                mission::end(ctx, EndMissionRequest { passed: false, text, key: recording.key })?.into()
            }
        })
    }
}
