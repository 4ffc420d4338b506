//! What may happen next in a random life.

use crate::call::Call;
use crate::dice::Dice;
use crate::life::{Deed, Life, Step};
use crate::model::Phase::{
    Aborted, Active, Analyzed, Approved, Assigned, Implemented, Materialized, Open, Paused, Proposed, Ready, Running,
    Succeeded,
};
use crate::model::{Phase, Settings, World};

const AGENTS: [&str; 3] = ["a", "b", "c"];
const PROJECTS: [&str; 2] = ["main", "beta"];
const REASONS: [&str; 5] = [
    "net",
    "bad",
    "lost",
    "too-slow",
    "A-reason-so-long-that-it-has-to-be-cut-where-hf-status-quotes-it-since-it-has-more-than-eighty-characters",
];
const TITLES: [&str; 4] = [
    "Form",
    "Login",
    "API",
    "A-title-so-long-that-the-question-about-it-has-to-be-cut-in-hf-status-at-eighty-characters",
];

/// The settings that a life starts with.
pub fn settings(dice: &mut Dice) -> Settings {
    Settings {
        name: dice.pick(&["hive", "lab"]).to_owned(),
        lease: dice.pick(&[120, 900, 900, 3600]),
        retries: dice.pick(&[0, 1, 1, 3]),
        concurrent: dice.pick(&[2, 10, 10, 10]),
        oscillations: dice.pick(&[0, 1, 1, 2, 5]),
        approval_hours: dice.pick(&[1, 6, 24]),
        reject_late: dice.one_in(3),
        ..Settings::default()
    }
}

/// Random deeds in a world.
pub struct Deeds<'a> {
    pub dice: &'a mut Dice,
    pub world: &'a World,
    pub now: i64,
}

/// The next step of a life. In a diligent one work goes on, mostly, and little time passes.
pub fn next(dice: &mut Dice, life: &Life, diligent: bool) -> Step {
    let wait = match diligent && dice.below(4) > 0 {
        true => dice.pick(&[0, 0, 0, 0, 1, 20]),
        false => wait(dice, &life.world, life.now),
    };
    // Often the caller of the last command does what it was told.
    if let Some(advice) = life.advice.clone().filter(|_| dice.below(3) == 0) {
        return Step { wait: 0, deed: Deed::Call(advice), obeys: true };
    }
    let mut deeds = Deeds { dice, world: &life.world, now: life.now + wait };
    loop {
        let forward = if diligent && deeds.dice.below(3) > 0 { deeds.forward().map(Deed::Call) } else { None };
        if let Some(deed) = forward.or_else(|| deeds.any()) {
            return Step { wait, deed, obeys: false };
        }
    }
}

/// How long nothing happens: often until a deadline, or one second longer.
fn wait(dice: &mut Dice, world: &World, now: i64) -> i64 {
    let ahead = world.moments_ahead(now);
    match dice.below(20) {
        0..=8 => 0,
        9..=11 => 1 + dice.below(90) as i64,
        12..=13 => 60 * (1 + dice.below(15) as i64),
        14 => 3600 * (1 + dice.below(5) as i64),
        roll => {
            let next = dice.below(3).min(dice.below(3)) as usize;
            ahead.get(next).map_or(30, |end| end - now + i64::from(roll > 16))
        }
    }
}

impl Deeds<'_> {
    fn any(&mut self) -> Option<Deed> {
        let call = match self.dice.below(64) {
            0..=2 => self.propose_requirement(),
            3..=6 => self.advance_requirement(),
            7..=11 => self.propose_task(),
            12..=16 => self.claim(),
            17..=24 => self.work(),
            25 => self.abort(),
            26..=27 => self.sign(),
            28 => self.deep_work(),
            29..=30 => self.session(),
            31..=33 => self.answer(),
            34 => self.constraint(),
            35 => self.pause(),
            36 => self.stop(),
            37 => self.acknowledge(),
            38 => Some(Call::new("hf-watchdog")),
            40..=43 => self.fire(),
            44..=46 => self.look_at_job(),
            47..=49 => return self.open(),
            50 => return self.kill(),
            51 => self.cancel(),
            54..=57 => self.artifact(),
            58..=60 => self.read(),
            61 => self.archive(),
            62 => self.assign(),
            63 => self.session(),
            52..=53 => Some(Call::new("hf-watchdog")),
            _ => return self.configure(),
        };
        call.map(Deed::Call)
    }

    /// What takes some work one step further.
    fn forward(&mut self) -> Option<Call> {
        let mut ways: Vec<Call> = Vec::new();
        let known = |phases: &[Phase]| self.requirements(phases).into_iter();
        ways.extend(known(&[Proposed]).map(|name| Call::new(format!("hf-require analyze {name} Two-tasks"))));
        let in_project = |name: &str| match self.world.project_of(name).map(String::as_str) {
            None | Some("main") => String::new(),
            Some(project) => format!(" --project {project}"),
        };
        let idle = known(&[Approved]).filter(|name| self.world.tasks_of(name).count() < 3);
        ways.extend(
            idle.map(|name| Call::new(format!("hf-task propose Form --requirement {name}{}", in_project(&name)))),
        );
        let open = self.world.decisions.iter().filter(|(_, decision)| decision.is_open());
        ways.extend(open.map(|(name, _)| Call::new(format!("hf-decide approve {name}"))));
        let by = |holder: &Option<String>, line: String| {
            let agent = holder.as_deref().and_then(|holder| holder.strip_prefix("agent:")).unwrap_or("a");
            Call::new(line).with("HF_AGENT", agent)
        };
        for (name, task) in self.world.tasks.iter().filter(|(_, task)| !task.job) {
            match task.phase {
                Ready => ways.push(by(&None, format!("hf-task claim {name}"))),
                Assigned => ways.push(by(&task.holder, format!("hf-task start {name}"))),
                Running => {
                    ways.push(by(&task.holder, format!("hf-task succeed {name}")));
                    ways.push(by(&task.holder, format!("hf-artifact put ok --for {name}")));
                }
                _ => {}
            }
        }
        let stored = self.world.artifacts.iter().filter(|(_, artifact)| artifact.phase == Materialized);
        ways.extend(stored.map(|(name, _)| Call::new(format!("hf-artifact invalidate {name} --reason bad"))));
        self.dice.pick_of(&ways)
    }

    fn names(&self, wanted: impl Fn(&crate::model::Task) -> bool) -> Vec<String> {
        self.world.tasks.iter().filter(|(_, task)| wanted(task)).map(|(name, _)| name.clone()).collect()
    }

    fn requirements(&self, phases: &[Phase]) -> Vec<String> {
        let fits = self.world.requirements.iter().filter(|(_, requirement)| phases.contains(&requirement.phase));
        fits.map(|(name, _)| name.clone()).collect()
    }

    /// A call by an agent: by variables, in a session, or by flag.
    fn by(&mut self, agent: &str, line: String) -> Call {
        let sessions = self.world.sessions.iter().filter(|(_, session)| session.agent == agent);
        let session = sessions.map(|(name, _)| name.clone()).next_back();
        let as_agent =
            ["hf-checkpoint", "hf-activity", "hf-deepwork", "hf-session"].iter().any(|c| line.starts_with(c));
        match (self.dice.below(4), session) {
            (0, _) if as_agent => Call::new(format!("{line} --agent {agent}")),
            (0, _) => Call::new(format!("{line} --actor agent:{agent}")),
            (1, Some(session)) => Call::new(line).with("HF_AGENT", agent).with("HF_SESSION", &session),
            _ => Call::new(line).with("HF_AGENT", agent),
        }
    }

    fn agent(&mut self) -> &'static str {
        self.dice.pick(&AGENTS)
    }

    fn reason(&mut self) -> &'static str {
        self.dice.pick(&REASONS)
    }

    /// An operator, or sometimes an agent.
    fn somebody(&mut self, line: String) -> Call {
        match self.dice.below(3) {
            0 => {
                let agent = self.agent();
                self.by(agent, line)
            }
            _ => Call::new(line),
        }
    }

    /// The project option of a line, for anything but main.
    fn in_project(&mut self) -> String {
        match self.dice.pick(&["main", "main", "main", "beta"]) {
            "main" => String::new(),
            name => format!(" --project {name}"),
        }
    }

    fn propose_requirement(&mut self) -> Option<Call> {
        if self.world.requirements.len() > 4 {
            return None;
        }
        let (title, project) = (self.dice.pick(&TITLES), self.in_project());
        Some(self.somebody(format!("hf-require propose {title}{project}")))
    }

    fn advance_requirement(&mut self) -> Option<Call> {
        let verb = self.dice.pick(&["analyze", "analyze", "analyze", "reject", "supersede", "verify"]);
        let usual: &[Phase] = match verb {
            "analyze" => &[Proposed],
            "reject" => &[Proposed, Analyzed],
            "supersede" => &[Approved],
            _ => &[Implemented],
        };
        let any = self.world.requirements.keys().cloned().collect::<Vec<_>>();
        let fitting = self.requirements(usual);
        let name = if self.dice.one_in(6) { self.dice.pick_of(&any) } else { self.dice.pick_of(&fitting) }?;
        let others: Vec<String> = any.iter().filter(|other| **other != name).cloned().collect();
        let reason = self.reason();
        Some(match verb {
            "analyze" => self.somebody(format!("hf-require analyze {name} Two-tasks")),
            "reject" => Call::new(format!("hf-require reject {name} --reason {reason}")),
            "supersede" => match self.dice.pick_of(&others).filter(|_| self.dice.below(2) == 0) {
                Some(by) => Call::new(format!("hf-require supersede {name} --by {by}")),
                None => Call::new(format!("hf-require supersede {name}")),
            },
            _ => self.somebody(format!("hf-require verify {name}")),
        })
    }

    fn propose_task(&mut self) -> Option<Call> {
        if self.world.tasks.values().filter(|task| task.is_open()).count() > 7 {
            return None;
        }
        if self.dice.below(4) == 0 {
            let over = self.names(|task| matches!(task.phase, Aborted | Succeeded));
            let over = self.dice.pick_of(&over)?;
            let project = self.world.tasks[&over].project.clone();
            let project = if project == "main" { String::new() } else { format!(" --project {project}") };
            return Some(self.somebody(format!("hf-task propose --rework-of {over}{project}")));
        }
        let known: Vec<String> = self.world.requirements.keys().cloned().collect();
        let mut line = format!("hf-task propose {}", self.dice.pick(&TITLES));
        match self.dice.pick_of(&known).filter(|_| self.dice.below(3) > 0) {
            Some(requirement) => {
                line.push_str(&format!(" --requirement {requirement}"));
                let project = &self.world.requirements[&requirement].project;
                if project != "main" {
                    line.push_str(&format!(" --project {project}"));
                }
            }
            None => line.push_str(&self.in_project()),
        }
        let earlier: Vec<String> = self.world.tasks.keys().cloned().collect();
        for _ in 0..self.dice.pick(&[0, 0, 0, 1, 1, 2]) {
            let other = self.dice.pick_of(&earlier)?;
            line.push_str(&format!(" --after {other}"));
        }
        if self.dice.one_in(5) {
            line.push_str(" --destructive");
        }
        if self.dice.one_in(4) {
            line.push_str(&format!(" --retries {}", self.dice.below(3)));
        }
        Some(self.somebody(line))
    }

    fn claim(&mut self) -> Option<Call> {
        let lease = self.dice.pick(&["", "", " --lease 2m", " --lease 40m"]);
        let agent = self.agent();
        let line = match self.dice.below(3) {
            0 => {
                let all: Vec<String> = self.world.tasks.keys().cloned().collect();
                let name = self.dice.pick_of(&all)?;
                format!("hf-task claim {name}{lease}")
            }
            _ => {
                let ready = self.names(|task| task.phase == Ready);
                let name = self.dice.pick_of(&ready);
                let project = name.map_or("main".to_owned(), |name| self.world.tasks[&name].project.clone());
                let project = if project == "main" { String::new() } else { format!(" --project {project}") };
                format!("hf-task claim{lease}{project}")
            }
        };
        Some(self.by(agent, line))
    }

    /// The holder of a task goes on with it, in time or not; sometimes somebody else tries.
    fn work(&mut self) -> Option<Call> {
        let held = self.names(|task| task.is_held() && !task.job);
        let lost = self.names(|task| !task.lost_by.is_empty());
        let name = if self.dice.one_in(6) { self.dice.pick_of(&lost) } else { self.dice.pick_of(&held) }?;
        let task = &self.world.tasks[&name];
        let holder = task.holder.clone().filter(|_| task.is_held()).or_else(|| task.lost_by.first().cloned())?;
        let agent = match self.dice.below(12) {
            0 => self.agent().to_owned(),
            _ => holder.strip_prefix("agent:")?.to_owned(),
        };
        let verb = match (self.world.tasks[&name].phase, self.dice.below(8)) {
            (Assigned, 0..=5) => "start",
            (Running, 0..=1) => "heartbeat",
            (Running, 2..=4) => "succeed",
            (Running, 5..=6) => "fail",
            (_, roll) => ["start", "heartbeat", "succeed", "fail"][roll as usize % 4],
        };
        let line = match verb {
            "start" => format!("hf-task start {name}{}", self.dice.pick(&["", "", " --timeout 1m", " --timeout 5m"])),
            "fail" => {
                let (class, reason) = (self.dice.pick(&["transient", "permanent"]), self.reason());
                format!("hf-task fail {name} --class {class} --reason {reason}")
            }
            verb => format!("hf-task {verb} {name}"),
        };
        Some(self.by(&agent, line))
    }

    /// An option that puts new work under a requirement, and after other tasks.
    fn place_of(&mut self) -> Option<String> {
        let known: Vec<String> = self.world.requirements.keys().cloned().collect();
        let mut line = String::new();
        match self.dice.pick_of(&known).filter(|_| self.dice.below(3) == 0) {
            Some(requirement) => {
                line.push_str(&format!(" --requirement {requirement}"));
                let project = &self.world.requirements[&requirement].project;
                if project != "main" {
                    line.push_str(&format!(" --project {project}"));
                }
            }
            None => line.push_str(&self.in_project()),
        }
        let earlier: Vec<String> = self.world.tasks.keys().cloned().collect();
        for _ in 0..self.dice.pick(&[0, 0, 0, 0, 1]) {
            line.push_str(&format!(" --after {}", self.dice.pick_of(&earlier)?));
        }
        Some(line)
    }

    fn fire(&mut self) -> Option<Call> {
        if self.world.jobs().filter(|(_, task, _)| task.is_open()).count() > 2 {
            return None;
        }
        let mut line = format!("hf-job fire{}", self.place_of()?);
        if self.dice.one_in(5) {
            line.push_str(" --destructive");
        }
        if self.dice.one_in(2) {
            line.push_str(&format!(" --retries {}", self.dice.below(3)));
        }
        let command = self.dice.pick(&["./ok", "./fail", "./soft", "./crash", "./hold", "./hold", "./hold", "./hold"]);
        let gate = if command == "./hold" { format!(" g{}", self.world.tasks.len() + 1) } else { String::new() };
        let call = self.somebody(String::new());
        // What belongs to hf-job stands before the command of the job.
        Some(Call { line: format!("{line}{} -- {command}{gate}", call.line), ..call })
    }

    fn jobs(&self, wanted: impl Fn(&crate::model::Task) -> bool) -> Vec<String> {
        self.names(|task| task.job && wanted(task))
    }

    fn look_at_job(&mut self) -> Option<Call> {
        let (open, all) = (self.jobs(crate::model::Task::is_open), self.jobs(|_| true));
        let name = if self.dice.one_in(3) { self.dice.pick_of(&all) } else { self.dice.pick_of(&open) }?;
        let line = match self.dice.below(5) {
            0 => "hf-job list".to_owned(),
            1..=2 => format!("hf-job check {name}"),
            _ => format!("hf-poll {name} 1 1"),
        };
        match self.dice.one_in(3) {
            true => Some(Call::new(line).with("HF_AGENT", self.agent())),
            false => Some(Call::new(line)),
        }
    }

    fn cancel(&mut self) -> Option<Call> {
        let (open, all) = (self.jobs(crate::model::Task::is_open), self.jobs(|_| true));
        let name = if self.dice.one_in(4) { self.dice.pick_of(&all) } else { self.dice.pick_of(&open) }?;
        Some(self.somebody(format!("hf-job cancel {name}")))
    }

    fn open(&mut self) -> Option<Deed> {
        let held = self.jobs(|task| task.phase == Running && task.gate().is_some());
        let name = self.dice.pick_of(&held)?;
        Some(Deed::Open(name, self.dice.pick(&[0, 0, 0, 3, 75])))
    }

    fn kill(&mut self) -> Option<Deed> {
        let open = self.jobs(|task| task.is_open());
        self.dice.pick_of(&open).map(Deed::Kill)
    }

    /// An agent looks at what there is to do.
    fn read(&mut self) -> Option<Call> {
        let (agent, all) = (self.agent(), self.names(|_| true));
        let show = self.dice.pick_of(&all).map_or("hf-task list".to_owned(), |name| format!("hf-task show {name}"));
        let line = self.dice.pick(&["hf-status", "hf-status", "hf-task list", "hf-task list --mine", &show]).to_owned();
        let call = Call::new(line).with("HF_AGENT", agent);
        let sessions = self.world.sessions.iter().filter(|(_, session)| session.agent == agent);
        let session = sessions.map(|(name, _)| name.clone()).next_back();
        match session.filter(|_| self.dice.one_in(2)) {
            Some(session) => {
                let line = self.dice.pick(&["hf-session next", "hf-session task", call.line.as_str()]).to_owned();
                Some(Call { line, ..call.with("HF_SESSION", &session) })
            }
            None => Some(call),
        }
    }

    fn archive(&mut self) -> Option<Call> {
        let (over, all) = (self.names(|task| !task.is_open()), self.names(|_| true));
        let name = if self.dice.one_in(6) { self.dice.pick_of(&all) } else { self.dice.pick_of(&over) }?;
        Some(self.somebody(format!("hf-task archive {name}")))
    }

    fn assign(&mut self) -> Option<Call> {
        let (ready, all) = (self.names(|task| task.phase == Ready), self.names(|task| task.is_open()));
        let name = if self.dice.one_in(3) { self.dice.pick_of(&all) } else { self.dice.pick_of(&ready) }?;
        Some(Call::new(format!("hf-task assign {name} {}", self.agent())))
    }

    fn artifact(&mut self) -> Option<Call> {
        let fresh = self.world.artifacts.iter().filter(|(_, artifact)| artifact.phase == Materialized);
        let fresh: Vec<String> = fresh.map(|(name, _)| name.clone()).collect();
        let all: Vec<String> = self.world.artifacts.keys().cloned().collect();
        let name = if self.dice.one_in(8) { self.dice.pick_of(&all) } else { self.dice.pick_of(&fresh) };
        let reason = self.reason();
        match (name, self.dice.below(6)) {
            (Some(name), 0) => Some(self.somebody(format!("hf-artifact validate {name}"))),
            (Some(name), 1..=4) => Some(self.somebody(format!("hf-artifact invalidate {name} --reason {reason}"))),
            _ => {
                let done = self.names(|task| matches!(task.phase, Running | Succeeded) && !task.job);
                let task = self.dice.pick_of(&done)?;
                let file = self.dice.pick(&["ok", "fail", "soft", "crash"]);
                Some(self.somebody(format!("hf-artifact put {file} --for {task}")))
            }
        }
    }

    fn abort(&mut self) -> Option<Call> {
        let all: Vec<String> = self.world.tasks.keys().cloned().collect();
        let (name, reason) = (self.dice.pick_of(&all)?, self.reason());
        let reason = if self.dice.below(2) == 0 { format!(" --reason {reason}") } else { String::new() };
        Some(self.somebody(format!("hf-task abort {name}{reason}")))
    }

    fn sign(&mut self) -> Option<Call> {
        let agent = self.agent();
        let line =
            self.dice.pick(&["hf-checkpoint Here", "hf-activity --kind introspection", "hf-activity --kind creating"]);
        Some(self.by(agent, line.to_owned()))
    }

    fn deep_work(&mut self) -> Option<Call> {
        let agent = self.agent();
        let minutes = self.dice.pick(&[1, 5, 20, 60]);
        let line = match self.dice.below(5) {
            4 => format!("hf-deepwork extend {minutes}"),
            0 => "hf-deepwork complete".to_owned(),
            1 => "hf-deepwork start --flexible Deep".to_owned(),
            _ => format!("hf-deepwork start --strict {minutes} Deep"),
        };
        if line.contains("complete") || line.contains("extend") {
            self.world.deep_work(agent).filter(|work| !work.strict || self.now <= work.until)?;
        }
        Some(self.by(agent, line))
    }

    fn session(&mut self) -> Option<Call> {
        let agent = self.agent();
        let ttl = self.dice.pick(&["", " --ttl 5m", " --ttl 12h"]);
        let sessions = self.world.sessions.iter().filter(|(_, session)| session.agent == agent);
        let newest = sessions.map(|(name, _)| name.clone()).next_back();
        match (newest, self.dice.below(3)) {
            (Some(session), 0) => {
                Some(Call::new(format!("hf-session renew{ttl}")).with("HF_AGENT", agent).with("HF_SESSION", &session))
            }
            (Some(session), 1) => {
                Some(Call::new("hf-session logout").with("HF_AGENT", agent).with("HF_SESSION", &session))
            }
            _ => {
                let project = self.in_project();
                Some(Call::new(format!("hf-session login{ttl}{project}")).with("HF_AGENT", agent))
            }
        }
    }

    fn answer(&mut self) -> Option<Call> {
        let open: Vec<String> =
            self.world.decisions.iter().filter(|(_, d)| d.is_open()).map(|(name, _)| name.clone()).collect();
        let all: Vec<String> = self.world.decisions.keys().cloned().collect();
        let name = if self.dice.one_in(8) { self.dice.pick_of(&all) } else { self.dice.pick_of(&open) }?;
        let reason = self.reason();
        let line = match self.dice.below(4) {
            0 => format!("hf-decide reject {name} --reason {reason}"),
            _ => format!("hf-decide approve {name}"),
        };
        Some(match self.dice.below(10) {
            0 => {
                let agent = self.agent();
                Call::new(line).with("HF_AGENT", agent)
            }
            _ => Call::new(line),
        })
    }

    fn constraint(&mut self) -> Option<Call> {
        let active = self.world.constraints.iter().filter(|(_, constraint)| constraint.phase == Active);
        let active: Vec<String> = active.map(|(name, _)| name.clone()).collect();
        if let Some(name) = self.dice.pick_of(&active).filter(|_| self.dice.below(2) == 0) {
            return Some(self.somebody(format!("hf-constraint remove {name}")));
        }
        let mut first: Vec<String> = self.names(|task| task.is_open());
        first.extend(self.requirements(&[Proposed, Analyzed, Approved]));
        let first = self.dice.pick_of(&first)?;
        Some(self.somebody(format!("hf-constraint apply First --priority {first}")))
    }

    fn pause(&mut self) -> Option<Call> {
        let paused = PROJECTS.into_iter().find(|project| self.world.is_paused(project));
        let name = paused.filter(|_| self.dice.below(4) > 0).unwrap_or(self.dice.pick(&PROJECTS));
        let project = if name == "main" { String::new() } else { format!(" --project {name}") };
        let reason = self.reason();
        Some(match (self.world.project_phase(name), self.dice.below(16)) {
            (_, 0) => Call::new(format!("hf-pause --archive {name} {reason} --yes")),
            (Paused, 1..=13) | (_, 1) => Call::new(format!("hf-resume{project}")),
            (_, 2) => {
                let agent = self.agent();
                Call::new(format!("hf-pause {reason}{project}")).with("HF_AGENT", agent)
            }
            _ => Call::new(format!("hf-pause {reason}{project}")),
        })
    }

    fn stop(&mut self) -> Option<Call> {
        let (stopped, reason) = (self.world.stop.is_some(), self.reason());
        match (stopped, self.dice.below(4)) {
            (true, _) => Some(Call::new("hf-resume --system")),
            (false, 0) => Some(self.somebody(format!("hf-stop {reason}"))),
            (false, _) => None,
        }
    }

    fn acknowledge(&mut self) -> Option<Call> {
        let open = self.world.escalations.iter().filter(|(_, escalation)| escalation.phase == Open);
        let open: Vec<String> = open.map(|(name, _)| name.clone()).collect();
        let (name, reason) = (self.dice.pick_of(&open)?, self.reason());
        Some(Call::new(format!("hf-decide acknowledge {name} --reason {reason}")))
    }

    fn configure(&mut self) -> Option<Deed> {
        Some(Deed::Configure(Box::new(settings(self.dice))))
    }
}
