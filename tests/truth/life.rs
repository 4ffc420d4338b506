//! One life: steps that are performed one after the other, each judged by the model.

use std::collections::BTreeMap;

use crate::call::Call;
use crate::clock::{second, time};
use crate::judge;
use crate::log::{Event, LogReader};
use crate::model::{Settings, World};
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
}

impl<'a> Life<'a> {
    pub fn new(commands: &'a Commands, settings: &Settings) -> Life<'a> {
        let place = Place::new(commands);
        let now = second(START);
        let made = place.run(now, &[], "hf-init");
        assert_eq!(made.exit, 0, "{made:?}");
        let log = place.log();
        let mut life = Life {
            place,
            log,
            world: World::default(),
            outside: Outside::default(),
            now,
            steps: Vec::new(),
            advice: None,
            explained: BTreeMap::new(),
            compared: 0,
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
        match &step.deed {
            Deed::Configure(settings) => self.configure(settings),
            Deed::Call(call) => self.call(call, step.obeys && advice.as_ref() == Some(call))?,
        }
        self.look(false)
    }

    fn call(&mut self, call: &Call, obeys: bool) -> Result<(), Wrong> {
        let before = self.world.clone();
        let reply = self.run(call);
        if obeys && reply.exit != 0 && !matches!(reply.get("STATUS"), "NO_TASK" | "ATTENTION") {
            let words = call.words();
            let sort = format!("NEXT {} {} does not work: {}", words.program, words.verb(), reply.get("STATUS"));
            return Err(Wrong::new(sort, format!("{}\n{}", call.shown(), reply.text)));
        }
        if !matches!(reply.exit, 0 | 1 | 2 | 3 | 6) {
            return Err(Wrong::new(format!("exit {}", reply.exit), format!("{reply:?}")));
        }
        let fresh = self.log.fresh();
        judge::events(&mut self.world, &fresh, self.now)?;
        if call.line == "hf-watchdog" {
            self.outside.tick = Some(self.now);
        }
        judge::settled(&self.world, call, self.now)?;
        if let Some(expected) = expected(&before, &self.world, self.now, call) {
            judge::reply(call, &reply, &expected)?;
            self.compared += 3;
        }
        self.advice =
            reply.get("NEXT").strip_prefix("ACTION ").map(|line| Call { line: line.to_owned(), ..call.clone() });
        Ok(())
    }

    /// Compares hf-status, and the explanation of every task: those that changed, or all.
    pub fn look(&mut self, all: bool) -> Result<(), Wrong> {
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
         approval_timeout_hours: {}\n  approval_timeout_policy: {policy}\n",
        settings.name, settings.lease, settings.retries, settings.concurrent, settings.approval_hours
    )
}

/// A life as a shell script.
pub fn script(settings: &Settings, steps: &[Step]) -> String {
    let mut now = second(START);
    let mut lines = vec![format!("export HF_NOW={}", time(now)), "hf-init".to_owned()];
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
        });
    }
    lines.join("\n")
}
