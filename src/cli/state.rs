//! hf-state: the state of the current mission, short enough for a new session to continue from it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use super::args::{ActorArgs, GlobalArgs, WriteArgs, parse_seconds, read_text};
use super::main::cancel_on_signal;
use super::{AfterDelivery, Command, Output, StdoutWriter};
use crate::op::Context;
use crate::base::limits;
use crate::op::mission::{
    self, EndMissionRequest, FirePlannedRequest, GoRequest, GoStanding, MoreRoundsRequest, PlanRequest, ReportedFailureRequest,
    RoundRequest, note_failure_was_reported,
    SetRequest, StartMissionRequest,
};
use crate::reply::Replies;

/// Keep the state of a mission in 200 words, and run its work
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-state start 'Login with two factors' --constraint 'no new dependencies'
  hf-state set OPEN_K=K1,K2 LAST_ACTION='design written' NEXT_ACTION='hf-review status'
  hf-state show
  hf-state plan plan.json
  hf-state done 'all tests pass'

A mission is a goal that is worked on in up to four rounds. Its state is also in Autonomous/state/M1.md, which is \
replaced atomically with every event that changes it.

A job becomes the current one of the running mission when it is fired: by the agent that started the mission, by any \
agent if an operator started it, or for the requirement or a planned task of the mission; not what a run of hf-state go \
fires itself. Its end sets LAST_ACTION and NEXT_ACTION; if hf-state set writes one of them after that, it counts until \
something happens again, each line by itself, and never hides that an operator has to be asked. The replies of reviewers set them, too. The first job begins round 1. A job that is fired after \
a failed one begins the next round: one that exited with an error, was cancelled or stopped, or ran out of time. A job \
that was lost has no result and is repeated in its round, but only once; hf-state go begins the next one. If a person \
cancelled, stopped or rejected a job, NEXT_ACTION asks an operator how to go on.

An agent cannot call a mission done while a job of it runs, after a failed one, or before its plan is done; hf-state \
fail gives up.

Rounds belong to the requirement, so another mission for it continues to count; without a requirement, they belong to \
the mission. Only an operator adds more, with hf-state more-rounds. After a mission that used its rounds up, or that an \
agent gave up in one of them, an agent starts no other one until an operator has added rounds or started a mission; only \
for the same requirement it can go on with the rounds that are left.

The tasks of a plan are proposed under the requirement of the mission, with their dependencies. NEXT_ACTION names the \
first one that has not succeeded. One that fails, is cancelled or stopped is proposed again, and the mission is done \
with the last one, or with the final check after it if runner.command is set. If the command of a task is wrong, hf-job \
fire --task T-0007 -- COMMAND runs another one.

hf-state go fires the tasks of the plan that have a command, one after the other, and then runs runner.command as the \
final check; without a plan, runner.command is all the work. A task without a command is handed over: NEXT claims it. \
hf-state go needs a plan or runner.command in hiveforge.config.yaml, and a requirement that an operator has approved. Both \
runner.command and fixer.command get HF_MISSION, HF_ROUND and HF_GOAL. fixer.command also gets the last lines of the \
failed run on standard input and in HF_LAST5, the path of its log in HF_LOG, and its task in HF_FAILED_TASK. Without a \
fixer, or if the fixer fails, hf-state go reports the failure with NEXT:PATCH. Fix it and run hf-state go again: that \
begins the next round. A call that was killed before it could report a failure costs no round."
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
    /// Start the next round without firing a job; there are four
    Round {
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Propose the tasks of a plan, all or none, which the mission then follows
    ///
    /// The plan is JSON: {"tasks":[{"id","title","description","depends_on","command"}]}. Ids are those of the plan;
    /// depends_on lists them; a command is a list of words, or a script for sh. All but id and title are optional, and
    /// other members are kept.
    #[command(verbatim_doc_comment)]
    Plan {
        /// The file with the plan; - for standard input
        file: PathBuf,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Fire the command that the plan has for a task, in the directory that contains the vault
    Fire {
        /// The task, such as T-0007
        reference: String,
        #[command(flatten)]
        actor: ActorArgs,
    },
    /// Allow more rounds; only an operator can. A mission that failed because it had none left continues
    MoreRounds {
        /// How many
        #[arg(default_value_t = limits::ROUNDS_MAX_COUNT)]
        rounds: u64,
        /// Why, in one line
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
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
    /// Follow the plan, run runner.command and wait for it; after a failure, run fixer.command and start the next round
    Go {
        /// Wait up to this long, such as 90s or 10m; run the command again to continue [default: 270s]
        #[arg(long, value_name = "DURATION", value_parser = parse_seconds)]
        max: Option<u64>,
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
                let request = GoRequest { max: max.map(Duration::from_secs) };
                let outcome = mission::go(&cancel_on_signal(ctx)?, request)?;
                match (outcome.standing, outcome.view.mission.as_mission().task()) {
                    (GoStanding::Failed | GoStanding::EndedByPerson, Some(job)) => {
                        let (ctx, mission) = (ctx.clone(), outcome.view.mission.subject.clone());
                        // If it cannot be recorded, the next call reports the failure again.
                        let told =
                            move || drop(note_failure_was_reported(&ctx, ReportedFailureRequest { mission, job }));
                        Output::Delivered(Box::new(outcome.reply()), AfterDelivery(Box::new(told)))
                    }
                    _ => outcome.into(),
                }
            }
            Verb::Plan { file, write } => {
                let text = match file.to_str() {
                    Some("-") => read_text(Some("-".to_owned()), None)?,
                    _ => read_text(None, Some(&file))?,
                };
                mission::plan(ctx, PlanRequest { plan: text.unwrap_or_default(), key: write.key })?.into()
            }
            Verb::Fire { reference, .. } => mission::fire_planned(ctx, FirePlannedRequest { reference })?.into(),
            Verb::MoreRounds { rounds, reason, write } => {
                mission::more_rounds(ctx, MoreRoundsRequest { rounds, reason, key: write.key })?.into()
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
