//! hf-state: the mission that is under way, kept so short that a lost session can go on from it.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use hiveforge::base::ShortRef;
use hiveforge::machine::State;
use hiveforge::op::job;
use hiveforge::op::mission::{self, GoOutcome, GoStanding, MissionOutcome, MissionView};
use hiveforge::ui::{self, Acting, Common, Key, Keyed, Next, Output, Report, Status};

/// Keep the state of a mission in 200 words, and do its work
#[derive(Parser, Debug)]
#[command(
    name = "hf-state",
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
    keyed: Keyed,
    #[command(flatten)]
    acting: Acting,
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
    },
    /// Change lines: GOAL, TASK_ID, LOGREF, OPEN_K, LAST_ACTION, NEXT_ACTION or REQUIREMENT; NONE takes one away
    Set {
        /// Such as LAST_ACTION='design written'
        #[arg(value_name = "KEY=VALUE", required_unless_present = "constraints")]
        pairs: Vec<String>,
        /// The constraints, all of them anew (three at most)
        #[arg(long = "constraint", value_name = "TEXT")]
        constraints: Vec<String>,
    },
    /// Begin the next round, of four
    Round,
    /// Say that the mission is done
    Done {
        /// What was done last, in one line
        text: Option<String>,
    },
    /// Say that the mission is given up
    Fail {
        /// Why, in one line
        text: Option<String>,
    },
    /// Do the work: fire runner.command, wait, hand a failure to fixer.command, fire again
    Go {
        /// Wait at most this long in one call; called again, it goes on
        #[arg(long, value_name = "TIME", value_parser = ui::parse_seconds, default_value = "270s")]
        max: u64,
    },
    /// The supervisor of a job that go fired; it is started by itself
    #[command(hide = true)]
    Supervise {
        /// The task's id
        task: String,
    },
}

hiveforge::cli!(Args, with acting);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        let key = args.keyed.key;
        let done = match args.what {
            What::Show => return Ok(show(mission::show(env)?).into()),
            What::Supervise { task } => {
                job::supervise(env, &task)?;
                return Ok(Output::Streamed);
            }
            What::Go { max } => return Ok(went(mission::go(env, Duration::from_secs(max))?).into()),
            What::Start { goal, constraints, requirement } => {
                mission::start(env, &goal, &constraints, requirement.as_deref(), key)?
            }
            What::Set { pairs, constraints } => mission::set(env, &pairs, &constraints, key)?,
            What::Round => mission::round(env, key)?,
            What::Done { text } => mission::end(env, true, text, key)?,
            What::Fail { text } => mission::end(env, false, text, key)?,
        };
        Ok(recorded(done).into())
    })
}

/// What the state file says. SUM is short: with it all, the reply is no longer than the file may be.
fn lines(status: Status, sum: String, view: MissionView) -> Report {
    let m1 = view.m1;
    let rounds = m1.rounds();
    Report::new(status, sum)
        .with(Key::M1Status, m1.status)
        .with(Key::Goal, m1.goal)
        .with_each(Key::Constraint, m1.constraints)
        .with(Key::TaskId, m1.task)
        .with(Key::Logref, m1.logref)
        .with(Key::OpenK, m1.open_k)
        .with(Key::Round, rounds)
        .with(Key::LastAction, m1.last_action)
        .with(Key::NextAction, m1.next_action)
        .warn(view.warnings)
}

fn show(view: MissionView) -> Report {
    let (next, sum) = (next(&view), format!("{}: {}", view.mission.name(), view.mission.state));
    lines(Status::Ok, sum, view).next(next)
}

/// A task that runs is waited for; else the next step, if it is a command that is known to be safe.
fn next(view: &MissionView) -> Next {
    if let Some(reference) = view.busy.as_ref().and_then(|task| task.reference()) {
        return Next::run("hf-poll").value(&ShortRef { tag: None, ..reference });
    }
    match view.mission.state {
        State::Running => Next::safe(&view.m1.next_action),
        _ => Next::None,
    }
}

fn recorded(done: MissionOutcome) -> Report {
    let MissionOutcome { recorded, view } = done;
    let status = if recorded.duplicate { Status::Duplicate } else { Status::Recorded };
    let sum = format!("{} is {}, round {}", view.mission.name(), view.mission.state, view.m1.rounds());
    let next = next(&view);
    let ids = recorded.ids.iter().map(ToString::to_string);
    lines(status, sum, view).with_each(Key::EventId, ids).warn(recorded.warnings).next(next)
}

fn went(done: GoOutcome) -> Report {
    let (status, next) = match done.standing {
        GoStanding::Passed => (Status::Done, Next::None),
        GoStanding::Running => (Status::Running, Next::run("hf-state").word("go")),
        GoStanding::WaitsForApproval => (Status::ApprovalRequired, Next::OPERATOR),
        GoStanding::Failed => (Status::Fail, Next::Patch),
        GoStanding::GivenUp => (Status::Fail, Next::OPERATOR),
        GoStanding::OutOfRounds => (Status::RoundLimit, Next::OPERATOR),
    };
    let m1 = &done.view.m1;
    let report = Report::new(status, done.summary)
        .with(Key::M1Status, m1.status)
        .with(Key::TaskId, m1.task.as_str())
        .with(Key::Round, m1.rounds());
    let report = match done.standing {
        GoStanding::Failed | GoStanding::OutOfRounds => report.with_block(Key::Last5, done.last5),
        _ => report,
    };
    report.with_some(Key::Logref, done.logref).warn(done.view.warnings).next(next)
}
