//! hf-state go: fire the work, wait for it, hand a failure to the fixer, fire again; at most four rounds.
//!
//! Every step is found in the log before it is taken: a run and a mending are jobs with a key of
//! their mission and round, so whoever begins again goes on where another was killed, and nothing is
//! done twice (`killed_anywhere_and_started_again_it_does_nothing_twice`).

use std::ffi::OsString;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{MissionView, end, log_name, members, next_round, no_mission, record, view};
use crate::base::{EntityId, EntityType, Error, Reason, Result, Subject, limits, text};
use crate::event::Kind;
use crate::job::{self as engine, Beat, Signals};
use crate::machine::State as At;
use crate::op::Env;
use crate::op::job::{FireRequest, JobStanding, JobView, fire, log_path, newest_log, wait_at};
use crate::op::project::with_view;
use crate::op::task::request;
use crate::policy::Request;
use crate::policy::approval::{self, Question};
use crate::policy::mission;
use crate::state::{Entity, State};
use crate::vault::Vault;
use crate::vault::config::Setting;

/// How far it came.
#[derive(Debug)]
pub struct GoOutcome {
    pub standing: GoStanding,
    pub view: MissionView,
    pub summary: String,
    /// What a run that failed printed last.
    pub last5: Vec<String>,
    pub logref: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoStanding {
    Passed,
    /// It takes longer than this call may wait.
    Running,
    /// An operator has to allow the command.
    WaitsForApproval,
    /// Somebody has to mend it by hand.
    Failed,
    /// All rounds are used.
    OutOfRounds,
}

/// The two commands of a round.
#[derive(Clone, Copy)]
enum Part {
    Run,
    Fix,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Part::Run => "run",
            Part::Fix => "fix",
        }
    }

    const fn setting(self) -> Setting {
        match self {
            Part::Run => Setting::RunnerCommand,
            Part::Fix => Setting::FixerCommand,
        }
    }
}

/// Does the work of the mission, for at most `max`; called again, goes on.
pub fn go(env: &Env, max: Duration) -> Result<GoOutcome> {
    let vault = env.open()?;
    let signals = Signals::of_waiter()?;
    let until = engine::moment().checked_add(max);
    let mut going = Going { env: env.clone(), vault: &vault, signals, until, warnings: Vec::new() };
    let mut outcome = loop {
        if let Some(outcome) = going.step()? {
            break outcome;
        }
        going.env.now = (env.clock)();
    };
    outcome.view.warnings.append(&mut going.warnings);
    Ok(outcome)
}

struct Going<'a> {
    env: Env,
    vault: &'a Vault,
    signals: Signals,
    until: Option<Instant>,
    warnings: Vec<String>,
}

impl Going<'_> {
    /// Looks where the mission stands and takes it one step further; gives the outcome if there is one.
    fn step(&mut self) -> Result<Option<GoOutcome>> {
        let mission = with_view(self.vault, |_, state| mission::newest(state).ok_or_else(no_mission))?;
        match mission.state {
            At::Passed => return self.outcome(GoStanding::Passed, None, None).map(Some),
            At::Failed => return self.outcome(GoStanding::OutOfRounds, None, None).map(Some),
            _ => {}
        }
        if !self.is_bound(&mission)? {
            return Ok(None);
        }
        let round = mission.count("round");
        if round == 0 {
            return self.begin_round(&mission).map(|()| None);
        }
        let run = self.ensure(&mission, Part::Run, None)?;
        match run.standing {
            JobStanding::Done => {
                let summary = format!("round {round}: {}", text::cut(&run.summary(), limits::SUMMARY_MAX_CHARS));
                self.finish(&mission, true, summary)?;
                Ok(None)
            }
            JobStanding::Fail | JobStanding::Lost => self.after_failure(&mission, &run),
            _ => self.under_way(&run).map(Some),
        }
    }

    /// What comes after a run that failed: its mending and the next round, or the end.
    fn after_failure(&mut self, mission: &Entity, run: &JobView) -> Result<Option<GoOutcome>> {
        let round = mission.count("round");
        let why = format!("round {round} failed: {}", text::cut(&run.summary(), limits::SUMMARY_MAX_CHARS));
        if round >= limits::ROUNDS_MAX_COUNT {
            self.finish(mission, false, why.clone())?;
            return self.outcome(GoStanding::OutOfRounds, Some(why), Some(run)).map(Some);
        }
        // What was lost with its machine has nothing to be mended.
        if run.standing == JobStanding::Lost {
            return self.begin_round(mission).map(|()| None);
        }
        let (config, _) = self.vault.config()?;
        let begun = self.fired(mission, Part::Fix)?.is_some();
        if !begun && config.command(Setting::FixerCommand)?.is_none() {
            self.note(&[&why, "failed"], "mend it, then hf-state round and hf-state go")?;
            return self.outcome(GoStanding::Failed, Some(why), Some(run)).map(Some);
        }
        let fix = self.ensure(mission, Part::Fix, Some(run))?;
        match fix.standing {
            JobStanding::Done | JobStanding::Lost => self.begin_round(mission).map(|()| None),
            JobStanding::Fail => {
                let why = format!("{why}; the fixer failed: {}", text::cut(&fix.summary(), limits::SUMMARY_MAX_CHARS));
                self.note(&[&why, "failed"], "mend it, then hf-state round and hf-state go")?;
                self.outcome(GoStanding::Failed, Some(why), Some(run)).map(Some)
            }
            _ => self.under_way(&fix).map(Some),
        }
    }

    fn under_way(&self, job: &JobView) -> Result<GoOutcome> {
        let waits = job.task.state == At::Proposed && job.task.facts.contains_key("destructive");
        let standing = if waits { GoStanding::WaitsForApproval } else { GoStanding::Running };
        self.outcome(standing, Some(format!("{}: {}", job.task.name(), job.summary())), None)
    }

    fn outcome(&self, standing: GoStanding, summary: Option<String>, failed: Option<&JobView>) -> Result<GoOutcome> {
        let view = with_view(self.vault, |_, state| view(state))?;
        let record = failed.and_then(|job| job.record.as_ref());
        Ok(GoOutcome {
            standing,
            summary: summary.unwrap_or_else(|| view.m1.last_action.clone()),
            last5: record.map(|record| record.last5.clone()).unwrap_or_default(),
            logref: failed.map(|job| job.logref.clone()),
            view,
        })
    }

    /// Whether the mission names a requirement that an operator approved. If it names none and only one
    /// is approved, it is that one from now on.
    fn is_bound(&mut self, mission: &Entity) -> Result<bool> {
        let bound = with_view(self.vault, |_, state| requirement(state, mission))?;
        if mission.text("requirement_id") == Some(bound.id()) {
            return Ok(true);
        }
        let mut members = members(mission);
        members.insert("requirement_id".to_owned(), bound.id().into());
        self.change(mission, members.into())?;
        Ok(false)
    }

    fn begin_round(&mut self, mission: &Entity) -> Result<()> {
        let key = Some(key(mission, "round", mission.count("round") + 1));
        let done = record(&self.env, Request { key, ..next_round(&self.env, mission) })?;
        self.warnings.extend(done.recorded.warnings);
        Ok(())
    }

    fn finish(&mut self, mission: &Entity, passed: bool, text: String) -> Result<()> {
        let fits = |text: &str| {
            let payload = json!({"last_action": text});
            let kind = if passed { Kind::MissionPassed } else { Kind::MissionFailed };
            let payload = payload.as_object().expect("an object");
            with_view(self.vault, |_, state| mission::check(state, kind, &mission.subject, payload)).is_ok()
        };
        let text = Some(text).filter(|text| fits(text));
        let done = end(&self.env, passed, text, Some(format!("{}:end", mission.subject.id())))?;
        self.warnings.extend(done.recorded.warnings);
        Ok(())
    }

    /// The job of this part of the round, fired if it was not, and waited for.
    fn ensure(&mut self, mission: &Entity, part: Part, failed: Option<&JobView>) -> Result<JobView> {
        let task = match self.fired(mission, part)? {
            Some(task) => task,
            None => self.fire(mission, part, failed)?,
        };
        if mission.text("task_id") != Some(task.id()) {
            let name = with_view(self.vault, |_, state| Ok(state.entity(&task).map(|task| task.name())))?;
            let text = format!("round {}: {} is {}", mission.count("round"), part.name(), name.unwrap_or_default());
            self.note_task(&task, &[&text, "fired"])?;
        }
        let left = self.until.map_or(Duration::MAX, |until| until.saturating_duration_since(engine::moment()));
        wait_at(&self.env, self.vault, &task.to_string(), left, &self.signals)
    }

    /// The task of a part of the round, if it was fired.
    fn fired(&self, mission: &Entity, part: Part) -> Result<Option<Subject>> {
        let key = key(mission, part.name(), mission.count("round"));
        with_view(self.vault, |snapshot, state| {
            let Some(id) = state.keyed(&key) else { return Ok(None) };
            let event = snapshot.find(id)?.map(|(_, event)| event);
            event.map(|event| Subject::parse(&event.subject)).transpose()
        })
    }

    fn fire(&mut self, mission: &Entity, part: Part, failed: Option<&JobView>) -> Result<Subject> {
        let (config, _) = self.vault.config()?;
        let command = config.command(part.setting())?;
        let command = command.ok_or_else(|| Error::usage(format!("{} is not set", part.setting())))?;
        let (round, name) = (mission.count("round"), mission.name());
        let mut env = vec![
            ("HF_MISSION", name.clone()),
            ("HF_ROUND", round.to_string()),
            ("HF_GOAL", mission.text("goal").unwrap_or_default().to_owned()),
        ];
        if let Some(job) = failed {
            let last5 = job.record.as_ref().map(|record| record.last5.join("\n")).unwrap_or_default();
            let log = self.vault.path().join(log_path(&job.logref));
            env.extend([
                ("HF_LAST5", last5.replace('\0', " ")),
                ("HF_TASK_ID", job.task.name()),
                ("HF_LOG", log.to_string_lossy().into_owned()),
            ]);
        }
        let script = match part {
            Part::Run => command,
            // It reads the last lines as its input.
            Part::Fix => format!("printf '%s\\n' \"$HF_LAST5\" | (\n{command}\n)"),
        };
        let folder = std::path::absolute(self.vault.path()).map_err(|e| Error::system("cannot name the vault", e))?;
        let request = FireRequest {
            argv: vec!["sh".into(), "-c".into(), script.into()],
            title: Some(format!("{name} round {round}: {}", part.name())),
            task: None,
            requirement: mission.text("requirement_id").map(str::to_owned).filter(|_| matches!(part, Part::Run)),
            after: Vec::new(),
            timeout_seconds: None,
            retries: 0,
            cwd: folder.parent().unwrap_or(&folder).to_owned(),
            env: env.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value))).collect(),
            beat: Beat::Timer,
            destructive: false,
        };
        let done = fire(&self.env, request, Some(key(mission, part.name(), round)))?;
        self.warnings.extend(done.recorded.warnings);
        Ok(done.task.subject)
    }

    /// Lets the file say what was done last and what comes next.
    fn note(&mut self, last: &[&str], next: &str) -> Result<()> {
        let mission = with_view(self.vault, |_, state| mission::newest(state).ok_or_else(no_mission))?;
        let mut members = members(&mission);
        members.insert("next_action".to_owned(), next.into());
        self.say(&mission, members.into(), last)
    }

    fn note_task(&mut self, task: &Subject, last: &[&str]) -> Result<()> {
        let (mission, log) = with_view(self.vault, |_, state| {
            let log = state.entity(task).map(|task| newest_log(state, &task));
            Ok((mission::newest(state).ok_or_else(no_mission)?, log))
        })?;
        let mut members = members(&mission);
        members.insert("task_id".to_owned(), task.id().into());
        members.extend(log.and_then(|log| log_name(&log).ok()).map(|log| ("logref".to_owned(), log.into())));
        members.insert("next_action".to_owned(), "hf-state go".into());
        self.say(&mission, members.into(), last)
    }

    /// Records a change with the first of these texts that the file has room for. One that has none is
    /// told of, and keeps nothing from going on: where the mission stands is in its jobs.
    fn say(&mut self, mission: &Entity, mut members: Value, last: &[&str]) -> Result<()> {
        for text in last {
            members["last_action"] = (*text).into();
            let payload = members.as_object().expect("an object");
            let fits = with_view(self.vault, |_, state| {
                Ok(mission::check(state, Kind::MissionChanged, &mission.subject, payload).is_ok())
            })?;
            if fits {
                return self.change(mission, members);
            }
        }
        self.warnings.push("M1.md has no room for what was done last".to_owned());
        Ok(())
    }

    fn change(&mut self, mission: &Entity, members: Value) -> Result<()> {
        let asked = request(&self.env, Kind::MissionChanged, Some(&mission.subject.to_string()), members);
        let done = record(&self.env, asked)?;
        self.warnings.extend(done.recorded.warnings);
        Ok(())
    }
}

/// The key of a step: the same for whoever takes it.
fn key(mission: &Entity, what: &str, round: u64) -> String {
    format!("{}:{what}:{round}", mission.subject.id())
}

/// The requirement that the mission is for, if an operator approved it.
fn requirement(state: &State, mission: &Entity) -> Result<Subject> {
    let named = mission.text("requirement_id").and_then(|id| EntityId::parse(id).ok());
    let requirement = match named {
        Some(id) => Some(Subject::new(EntityType::Requirement, id)),
        None => match state.in_state(EntityType::Requirement, At::Approved, 2).as_slice() {
            [only] => Some(only.subject.clone()),
            _ => None,
        },
    };
    let missing = |why: String| Error::refused(Reason::ApprovalRequired, why);
    let Some(requirement) = requirement else {
        return Err(missing(format!("{} names no requirement that an operator approved", mission.name())));
    };
    match approval::approved(state, Question::Requirement, &requirement) {
        Some(_) => Ok(requirement),
        None => {
            let name = state.entity(&requirement).map_or_else(|| requirement.to_string(), |r| r.name());
            Err(missing(format!("{name} needs an operator's approval ({}) first", Question::Requirement)))
        }
    }
}
