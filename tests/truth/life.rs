//! One life: steps that are performed one after the other, each judged by the model.

use std::collections::BTreeMap;

use crate::call::Call;
use crate::clock::{second, time};
use crate::jobs::{Jobs, TRANSIENT, until};
use crate::judge;
use crate::log::{Event, LogReader};
use crate::model::{Phase, Settings, Task, World};
use crate::place::{Commands, Place, Reply};
use crate::say::reply::expected;
use crate::say::status::Outside;

/// The time at which lives start.
pub const START: &str = "2026-01-31T12:00:00Z";

/// What happens next, after some time.
#[derive(Clone, Debug)]
pub struct Step {
    pub wait: i64,
    pub deed: Deed,
    /// The call is the NEXT of the call before, at the same time: it has to work.
    pub obeys: bool,
}

#[derive(Clone, Debug)]
pub enum Deed {
    Call(Call),
    Configure(Box<Settings>),
    /// The command of a job is let through its gate, and ends with a code.
    Open(String, u8),
    /// The supervisor of a job is killed.
    Kill(String),
}

/// A difference between what was said and what is true.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// What differs, without numbers and names: two differences of the same sort have the same cause.
    pub sort: String,
    pub text: String,
}

impl Wrong {
    pub fn new(sort: impl Into<String>, text: impl Into<String>) -> Wrong {
        Wrong { sort: sort.into(), text: text.into() }
    }
}

pub struct Life<'a> {
    /// Dropped before the directory that its processes run in.
    jobs: Jobs,
    place: Place<'a>,
    log: LogReader,
    pub world: World,
    pub outside: Outside,
    pub now: i64,
    pub steps: Vec<Step>,
    /// The newest NEXT of a caller, to obey.
    pub advice: Option<Call>,
    /// The explanations that were compared, by task.
    explained: BTreeMap<String, Vec<String>>,
    /// How many lines were compared.
    pub compared: usize,
    /// How many events of each kind were judged.
    pub kinds: BTreeMap<String, usize>,
}

/// The first call after hf-init: the second project exists from the beginning.
const OPENING: &str = "hf-require propose Opening --project beta --create";

impl<'a> Life<'a> {
    pub fn new(commands: &'a Commands, settings: &Settings) -> Life<'a> {
        let place = Place::new(commands);
        let now = second(START);
        let made = place.run(now, &[], "hf-init");
        assert_eq!(made.exit, 0, "{made:?}");
        let made = place.run(now, &[], OPENING);
        assert_eq!(made.exit, 0, "{made:?}");
        let log = place.log();
        let mut life = Life {
            jobs: Jobs::new(place.dir()),
            place,
            log,
            world: World::default(),
            outside: Outside::default(),
            now,
            steps: Vec::new(),
            advice: None,
            explained: BTreeMap::new(),
            compared: 0,
            kinds: BTreeMap::new(),
        };
        life.take_fresh();
        life.configure(settings);
        life
    }

    fn configure(&mut self, settings: &Settings) {
        self.place.configure(&yaml(settings));
        self.world.settings = settings.clone();
    }

    fn take_fresh(&mut self) -> Vec<Event> {
        let fresh = self.log.fresh();
        for event in &fresh {
            self.world.take(event);
        }
        fresh
    }

    pub fn run(&self, call: &Call) -> Reply {
        self.place.run(self.now, &call.variables, &call.line)
    }

    /// Performs a step and judges everything that was said and recorded.
    pub fn perform(&mut self, step: Step) -> Result<(), Wrong> {
        self.now += step.wait;
        self.steps.push(step.clone());
        let advice = self.advice.take();
        if step.wait > 0 {
            self.renew_supervisors()?;
        }
        match &step.deed {
            Deed::Configure(settings) => self.configure(settings),
            Deed::Call(call) => {
                self.lose_stale(call)?;
                self.call(call, step.obeys && advice.as_ref() == Some(call))?
            }
            Deed::Open(name, code) => self.open(name, *code)?,
            Deed::Kill(name) => self.kill(name)?,
        }
        self.rest()?;
        self.look(false)
    }

    /// Jobs that have not begun get supervisors that live now.
    fn renew_supervisors(&mut self) -> Result<(), Wrong> {
        let has_begun = |phase| phase == Phase::Running;
        let waiting = self.world.jobs().filter(|(_, task, _)| task.is_open() && !has_begun(task.phase));
        for subject in waiting.map(|(_, _, subject)| subject.clone()).collect::<Vec<_>>() {
            if self.jobs.is_supervised(&subject) {
                self.jobs.renew_supervisor(&self.place, self.now, &subject)?;
            }
        }
        Ok(())
    }

    /// Before a call that may end a running job, supervisors die that live at another time than now: what they
    /// recorded would be in the past.
    fn lose_stale(&mut self, call: &Call) -> Result<(), Wrong> {
        const ENDING: [&str; 7] = [
            "hf-stop",
            "hf-pause --archive",
            "hf-job cancel",
            "hf-task abort",
            "hf-require",
            "hf-decide",
            "hf-artifact",
        ];
        if !ENDING.iter().any(|start| call.line.starts_with(start)) {
            return Ok(());
        }
        let stale = |task: &Task| {
            let began = task.run.as_ref().map(|run| self.world.runs[run].began);
            task.phase == Phase::Running && began != Some(self.now)
        };
        for (_, _, subject) in self.world.jobs().filter(|(_, task, _)| stale(task)) {
            if self.jobs.is_supervised(subject) {
                self.jobs.kill_supervisor(subject)?;
            }
        }
        self.probe();
        Ok(())
    }

    /// Lets the command of a job end. A supervisor lives at the time at which it was started: if that is over, it is
    /// killed before it can record the end, which is then left to the next command.
    fn open(&mut self, name: &str, code: u8) -> Result<(), Wrong> {
        let Some(task) = self.world.tasks.get(name).filter(|task| task.phase == Phase::Running) else { return Ok(()) };
        let (Some(gate), Some(run)) = (task.gate(), task.run.as_ref()) else { return Ok(()) };
        let (subject, run) = (&self.world.subjects[name], run.clone());
        if !self.jobs.is_supervised(subject) {
            return Ok(());
        }
        if self.world.runs[&run].began != self.now {
            return self.jobs.end_unrecorded(subject, &self.world.subjects[&run], gate, code);
        }
        self.jobs.open(gate, code);
        until("the end of a job is recorded", || {
            self.hear()?;
            Ok(self.world.runs[&run].phase != Phase::Running)
        })
    }

    fn kill(&mut self, name: &str) -> Result<(), Wrong> {
        match self.world.tasks.get(name) {
            Some(task) if task.job => self.jobs.kill_supervisor(&self.world.subjects[name]),
            _ => Ok(()),
        }
    }

    /// Judges what supervisors recorded since. Returns whether there was anything.
    fn hear(&mut self) -> Result<bool, Wrong> {
        let fresh = self.log.fresh();
        self.judge(&fresh)?;
        Ok(!fresh.is_empty())
    }

    fn judge(&mut self, events: &[Event]) -> Result<(), Wrong> {
        for event in events {
            *self.kinds.entry(event.kind.clone()).or_default() += 1;
        }
        judge::events(&mut self.world, events, self.now)
    }

    /// Waits until no job goes on by itself, and judges what the supervisors recorded.
    fn rest(&mut self) -> Result<(), Wrong> {
        if self.world.jobs().next().is_none() {
            return Ok(());
        }
        until("the jobs come to rest", || {
            self.hear()?;
            if self.is_busy() {
                return Ok(false);
            }
            self.probe();
            // A supervisor that was gone just now may have recorded something before.
            Ok(!self.hear()?)
        })
    }

    /// Finds out which jobs have no supervisor, and which of them have ended.
    fn probe(&mut self) {
        let open = self.world.jobs().filter(|(_, task, _)| task.is_open());
        let lost: Vec<_> = open.filter(|(_, _, subject)| !self.jobs.is_supervised(subject)).collect();
        let code = |task: &Task, subject: &str| {
            let run = task.run.as_ref().filter(|_| task.phase == Phase::Running)?;
            self.jobs.exit_record(subject, &self.world.subjects[run])
        };
        let ended = lost.iter().filter_map(|(name, task, subject)| Some(((*name).clone(), code(task, subject)?)));
        let (lost, ended) = (lost.iter().map(|(name, ..)| (*name).clone()).collect(), ended.collect());
        (self.world.lost, self.world.ended) = (lost, ended);
    }

    /// Whether a supervisor has something to do.
    fn is_busy(&mut self) -> bool {
        let (world, jobs) = (&self.world, &mut self.jobs);
        world.jobs().any(|(name, task, subject)| {
            let goes_on = world.goes_on(&task.project);
            jobs.is_supervised(subject)
                && match task.phase {
                    Phase::Proposed => false,
                    Phase::Ready => {
                        goes_on && world.is_unblocked(task) && world.in_progress() < world.settings.concurrent
                    }
                    Phase::Assigned | Phase::Retrying | Phase::Failed => goes_on,
                    Phase::Running => task.gate().is_none_or(|gate| jobs.arrived(gate) < world.runs_of(name)),
                    _ => true,
                }
        })
    }

    fn call(&mut self, call: &Call, obeys: bool) -> Result<(), Wrong> {
        let before = self.world.clone();
        self.jobs.prepare(&call.line);
        let reply = match self.waits(call) {
            true => self.place.interrupt(self.now, &call.variables, &call.line),
            false => self.run(call),
        };
        if obeys && reply.exit != 0 && !matches!(reply.get("STATUS"), "NO_TASK" | "ATTENTION") {
            let words = call.words();
            let sort = format!("NEXT {} {} does not work: {}", words.program, words.verb(), reply.get("STATUS"));
            return Err(Wrong::new(sort, format!("{}\n{}", call.shown(), reply.text)));
        }
        if !matches!(reply.exit, 0 | 1 | 2 | 3 | 6) || reply.errors.contains("panicked") {
            return Err(Wrong::new(format!("exit {}", reply.exit), format!("{reply:?}")));
        }
        let fresh = self.log.fresh();
        // What a supervisor recorded since is not part of the reply.
        let starts_jobs = call.line.starts_with("hf-poll") || call.line == "hf-watchdog";
        let own = if starts_jobs { fresh.len() } else { judge::own(&self.world, &fresh) };
        self.judge(&fresh[..own])?;
        if call.line == "hf-watchdog" {
            self.outside.tick = Some(self.now);
            judge::verdict(&before, &self.world, self.now, call, &reply)?;
        }
        judge::settled(&self.world, call, self.now)?;
        let known = self.world.clone();
        self.judge(&fresh[own..])?;
        if let Some(expected) = expected(&before, &known, self.now, call) {
            judge::reply(call, &reply, &expected)?;
            self.compared += 3;
        }
        if call.line == "hf-status" {
            // It records nothing: what is new was recorded by a supervisor, before it looked or after.
            let compare = |world: &World| judge::status_for(world, self.now, &self.outside, call, &reply);
            compare(&before).or_else(|_| compare(&self.world))?;
            self.compared += reply.text.lines().count();
        }
        if call.line.starts_with("hf-poll ") {
            judge::poll(&known, self.now, call, &reply)?;
            judge::waited(&before, &self.world, &fresh, self.now, call, &reply)?;
            self.compared += reply.text.lines().count();
        }
        self.advice =
            reply.get("NEXT").strip_prefix("ACTION ").map(|line| Call { line: line.to_owned(), ..call.clone() });
        Ok(())
    }

    /// Whether a call waits for a job that does not end by itself.
    fn waits(&self, call: &Call) -> bool {
        let Some(name) = call.line.strip_prefix("hf-poll ").and_then(|rest| rest.split(' ').next()) else {
            return false;
        };
        let Some(task) = self.world.tasks.get(name).filter(|task| task.job && task.is_open()) else { return false };
        // One that was lost is tried again, if it may be, and then goes on like any other.
        let can_go_on = self.world.ended.get(name).is_none_or(|code| *code == TRANSIENT);
        !self.world.lost.contains(name) || can_go_on && self.world.is_retried(task)
    }

    /// Compares hf-status, and the explanation of every task: those that changed, or all.
    pub fn look(&mut self, all: bool) -> Result<(), Wrong> {
        loop {
            match self.look_once(all) {
                // A waiting supervisor may just have recorded that the settings changed.
                Err(_) if self.hear()? => {}
                looked => return looked,
            }
        }
    }

    fn look_once(&mut self, all: bool) -> Result<(), Wrong> {
        if all {
            judge::audit(&self.run(&Call::new("hf-verify --policy")))?;
        }
        let reply = self.run(&Call::new("hf-status"));
        self.compared += reply.text.lines().count();
        judge::status(&self.world, self.now, &self.outside, &reply)?;
        for name in self.world.tasks.keys().cloned().collect::<Vec<_>>() {
            let lines = judge::explanation(&self.world, self.now, &name);
            if !all && self.explained.get(&name) == Some(&lines) {
                continue;
            }
            let reply = self.run(&Call::new(format!("hf-task explain {name}")));
            self.compared += reply.text.lines().count();
            judge::explain(&name, &lines, &reply)?;
            self.explained.insert(name, lines);
        }
        Ok(())
    }
}

/// The settings file of a life.
pub fn yaml(settings: &Settings) -> String {
    let policy = if settings.reject_late { "reject" } else { "escalate" };
    format!(
        "hive:\n  name: {}\ngovernance:\n  lease_seconds: {}\n  max_retries: {}\n  max_concurrent_tasks: {}\n  \
         max_oscillations: {}\n  approval_timeout_hours: {}\n  approval_timeout_policy: {policy}\n",
        settings.name,
        settings.lease,
        settings.retries,
        settings.concurrent,
        settings.oscillations,
        settings.approval_hours
    )
}

/// A life as a shell script.
pub fn script(settings: &Settings, steps: &[Step]) -> String {
    let mut now = second(START);
    let mut lines = vec![format!("export HF_NOW={}", time(now)), "hf-init".to_owned(), OPENING.to_owned()];
    let configure = |settings: &Settings| format!("cat >Vault/hiveforge.config.yaml <<'END'\n{}END", yaml(settings));
    lines.push(configure(settings));
    for step in steps {
        if step.wait > 0 {
            now += step.wait;
            lines.push(format!("export HF_NOW={}", time(now)));
        }
        lines.push(match &step.deed {
            Deed::Call(call) => call.shown(),
            Deed::Configure(settings) => configure(settings),
            Deed::Open(name, code) => {
                format!("echo {code} >GATE.go # of {name}; if the time has moved, its supervisor dies unrecorded")
            }
            Deed::Kill(name) => format!("kill -9 SUPERVISOR # of {name}"),
        });
    }
    lines.join("\n")
}
