//! The EXIT, STATUS and NEXT of every command that records something.

use crate::call::{Call, Words};
use crate::model::Phase::{
    Aborted, Acknowledged, Active, Analyzed, Approved, Archived, Assigned, Blocked, Closed, Implemented, Open, Paused,
    Proposed, Ready, Rejected, Removed, Running, Succeeded, Superseded, Verified,
};
use crate::model::due::Due;
use crate::model::{Phase, Task, World};

/// What a reply must begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub exit: i32,
    pub status: &'static str,
    /// Another status that is as true, where two rules refuse.
    pub or: Option<&'static str>,
    pub next: String,
    /// Another next step that is as true: what is due may be taken into account or not.
    pub or_next: Option<String>,
}

impl Expected {
    fn new(status: &'static str, next: impl Into<String>) -> Expected {
        let exit = match status {
            "REFUSED" | "STOPPED?" | "EXIT_REQUESTED" | "CLAIM_LOST" | "APPROVAL_REQUIRED" => 3,
            "NO_TASK" => 1,
            "NOT_FOUND" => 6,
            "USAGE" => 2,
            _ => 0,
        };
        // STOPPED is what hf-stop did, or why something is refused.
        Expected { exit, status: status.trim_end_matches('?'), or: None, next: next.into(), or_next: None }
    }
}

const NONE: &str = "NONE";
const ASK: &str = "ASK operator";
const LIST: &str = "ACTION hf-task list";

fn refused(next: &str) -> Option<Expected> {
    Some(Expected::new("REFUSED", next))
}

/// A call, and everything that decides about its reply.
struct Question<'a> {
    words: &'a Words,
    /// The world before the call, with what is due.
    view: &'a World,
    /// The world that the call left behind, with what is due.
    after: &'a World,
    /// The same without what is due.
    recorded: &'a World,
    actor: String,
    is_agent: bool,
    /// The project of what the call is about, that of the caller, and whether anything names that.
    project: String,
    shell: String,
    is_named: bool,
    /// Its session is over.
    is_void: bool,
    is_stopped: bool,
    now: i64,
}

/// What a call must answer. None where neither the design nor the specification says.
pub fn expected(before: &World, after: &World, now: i64, call: &Call) -> Option<Expected> {
    let (words, recorded, after) = (&call.words(), after, &after.applied(now));
    let view = &before.settled(now, |due| is_named(before, words, due));
    let of_session = call.variable("HF_SESSION").or_else(|| words.option("session"));
    let session = of_session.and_then(|name| view.sessions.get(name));
    let as_agent = matches!(words.program.as_str(), "hf-checkpoint" | "hf-activity" | "hf-deepwork" | "hf-session");
    let of_shell = call.variable("HF_AGENT").or_else(|| session.map(|session| session.agent.as_str()));
    let actor = match as_agent {
        true => format!("agent:{}", words.option("agent").or(of_shell).unwrap_or("main")),
        false => match (words.option("actor"), of_shell) {
            (Some(actor), _) => actor.to_owned(),
            (None, Some(agent)) => format!("agent:{agent}"),
            (None, None) => "user:jo".to_owned(),
        },
    };
    let of_session = session.map(|session| session.project.as_str());
    let named = words.option("project").or_else(|| call.variable("HF_PROJECT")).or(of_session);
    let (is_named, shell) = (named.is_some(), named.unwrap_or("main").to_owned());
    let project = of_object(view, words).unwrap_or(&shell).to_owned();
    // An agent has to leave with its session, whatever project it names.
    let sits_in = of_session.filter(|project| view.project_phase(project) != Active);
    let project = sits_in.map_or(project, str::to_owned);
    let is_agent = actor.starts_with("agent:");
    let is_void = (call.variable("HF_SESSION").or_else(|| words.option("session"))).is_some()
        && session.is_none_or(|session| session.phase != Active);
    let is_stopped = view.stop.is_some();
    let question =
        Question { words, view, after, recorded, actor, is_agent, project, shell, is_named, is_void, is_stopped, now };
    let expected = question.answer()?;
    Some(question.told(expected))
}

/// Whether a call settles something that is late before it decides: what it names, and for a choice among tasks the
/// overdue work of the project.
fn is_named(world: &World, words: &Words, due: &Due) -> bool {
    if due.kind == "SessionExpired" {
        return true;
    }
    // A claim at the limit of tasks in progress settles whatever may make room.
    let is_full = world.in_progress() >= world.settings.concurrent;
    let chooses = words.program == "hf-task" && (words.plain == ["claim"] || words.verb() == "claim" && is_full);
    if chooses || words.program == "hf-session" {
        return world.tasks.contains_key(&due.shown);
    }
    // What a new task waits for is named with all that it waits for in turn.
    let behind = words.all("after").iter().any(|name| waits_for(world, name, &due.shown));
    behind || words.object().into_iter().chain(words.option("rework-of")).any(|name| name == due.shown)
}

/// Whether a task is another one, or waits for it.
fn waits_for(world: &World, name: &str, other: &str) -> bool {
    let after = world.tasks.get(name).map(|task| task.after.as_slice()).unwrap_or_default();
    name == other || after.iter().any(|earlier| waits_for(world, earlier, other))
}

/// The project of the task or requirement that a call is about.
fn of_object<'a>(view: &'a World, words: &Words) -> Option<&'a str> {
    let task = |name: &str| view.tasks.get(name).map(|task| task.project.as_str());
    match words.program.as_str() {
        "hf-task" => words.object().and_then(task).filter(|_| words.verb() != "propose"),
        "hf-require" => words.object().and_then(|name| Some(view.requirements.get(name)?.project.as_str())),
        _ => None,
    }
}

impl Question<'_> {
    /// An agent that should not go on is told so by every reply.
    fn told(&self, mut expected: Expected) -> Expected {
        let leaves = self.words.program == "hf-session" && self.words.verb() == "logout";
        let stops = self.words.program == "hf-stop";
        if self.is_agent && !leaves && !stops && expected.status != "NOT_FOUND" {
            let leaves = self.is_void || matches!(self.phase(), Paused | Archived);
            match (self.is_stopped, leaves) {
                (true, _) => (expected.next, expected.or_next) = (ASK.to_owned(), None),
                // Between two projects, either may be meant.
                (false, true) if self.project != self.shell && self.view.project_phase(&self.shell) == Active => {
                    expected.or_next = Some(self.logout());
                }
                (false, true) => (expected.next, expected.or_next) = (self.logout(), None),
                (false, false) if matches!(self.view.project_phase(&self.shell), Paused | Archived) => {
                    expected.or_next = Some(self.logout());
                }
                (false, false) => {}
            }
        }
        expected
    }

    fn answer(&self) -> Option<Expected> {
        match self.words.program.as_str() {
            "hf-task" => self.task(),
            "hf-require" => self.requirement(),
            "hf-decide" => self.decision(),
            "hf-checkpoint" | "hf-activity" => self.sign(),
            "hf-deepwork" => self.deep_work(),
            "hf-session" => self.session(),
            "hf-constraint" => self.constraint(),
            "hf-pause" => self.pause(),
            "hf-resume" => self.resume(),
            "hf-stop" => Some(Expected::new(if self.view.stop.is_some() { "DUPLICATE" } else { "STOPPED" }, ASK)),
            _ => None,
        }
    }

    /// A command with the options that the caller gave by flag, as far as it takes them.
    fn action(&self, command: &str) -> String {
        let mut line = format!("ACTION {command}");
        let mut repeat = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                line.push_str(&format!(" --{name} {value}"));
            }
        };
        if command.starts_with("hf-session") || command.starts_with("hf-activity") {
            let by_actor = self.words.option("actor").and_then(|actor| actor.strip_prefix("agent:"));
            repeat("agent", self.words.option("agent").or(by_actor));
        } else {
            let by_agent = self.words.option("agent").map(|agent| format!("agent:{agent}"));
            repeat("actor", self.words.option("actor").or(by_agent.as_deref()));
        }
        if !command.starts_with("hf-activity") {
            repeat("project", self.words.option("project"));
        }
        line
    }

    fn logout(&self) -> String {
        self.action("hf-session logout")
    }

    /// The phase of the caller's project.
    fn phase(&self) -> Phase {
        self.view.project_phase(&self.project)
    }

    /// The refusal of what the caller may not do in its project now.
    fn kept_out(&self) -> Option<Expected> {
        match self.phase() {
            _ if self.is_void => Some(Expected::new("EXIT_REQUESTED", self.logout())),
            Paused | Archived if self.is_agent => Some(Expected::new("EXIT_REQUESTED", self.logout())),
            Archived => refused(ASK),
            _ => None,
        }
    }

    /// The refusal of work while everything is stopped. Where a second rule refuses it too, that may be named instead.
    fn stopped(&self, project: &str) -> Expected {
        let twice = self.is_void || matches!(self.view.project_phase(project), Paused | Archived);
        Expected { or: twice.then_some("EXIT_REQUESTED"), ..Expected::new("STOPPED?", ASK) }
    }

    /// The reply to what only an operator may do.
    fn for_operators(&self) -> Option<Expected> {
        self.is_agent.then(|| Expected::new("REFUSED", ASK))
    }

    /// The claim of a task as the next step, if it would work.
    fn claim_of(&self, world: &World, name: &str) -> String {
        let task = &world.tasks[name];
        if world.stop.is_some() || world.project_phase(&task.project) != Active {
            return ASK.to_owned();
        }
        if world.in_progress() >= world.settings.concurrent {
            return NONE.to_owned();
        }
        self.action(&format!("hf-task claim {name}"))
    }

    // Tasks.

    fn task(&self) -> Option<Expected> {
        let verb = self.words.verb();
        if verb == "propose" {
            return self.proposal();
        }
        let Some(name) = self.words.object() else { return self.claim_any() };
        let Some(task) = self.view.tasks.get(name) else {
            return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
        };
        let held = task.holder.as_ref() == Some(&self.actor);
        let lost = task.lost_by.contains(&self.actor);
        if self.is_stopped && self.is_agent && verb != "abort" {
            return Some(self.stopped(&task.project));
        }
        if self.is_void {
            return self.kept_out();
        }
        let ended = matches!(task.phase, Succeeded | Aborted | Archived);
        if lost && verb != "claim" && (verb != "abort" || task.is_held() && self.is_agent) {
            let or = (self.phase() != Active).then_some("EXIT_REQUESTED");
            return Some(Expected { or, ..Expected::new("CLAIM_LOST", self.after_loss(name)) });
        }
        if ended && verb != "abort" && self.phase() == Archived {
            return Some(Expected { or: Some("EXIT_REQUESTED"), ..Expected::new("REFUSED", NONE) });
        }
        if verb == "abort" && task.phase == Aborted && !(self.is_agent && self.phase() != Active) {
            return Some(self.ended("DUPLICATE", name));
        }
        if let Some(kept) = self.kept_out() {
            return Some(kept);
        }
        match verb {
            "claim" => self.claim(name, held),
            "start" | "heartbeat" | "succeed" | "fail" => self.work(verb, name, held),
            "abort" => match task.phase {
                Aborted => Some(self.ended("DUPLICATE", name)),
                Succeeded | Archived => refused(NONE),
                _ if task.is_held() && !held && self.is_agent => refused(NONE),
                _ => Some(self.ended("RECORDED", name)),
            },
            _ => None,
        }
    }

    fn proposal(&self) -> Option<Expected> {
        let requirement = self.words.option("requirement").map(|name| self.view.requirements.get(name));
        let after: Option<Vec<_>> = self.words.all("after").iter().map(|name| self.view.tasks.get(name)).collect();
        let reworked = self.words.option("rework-of").map(|name| (name, self.view.tasks.get(name)));
        if self.is_named && requirement.flatten().is_some_and(|requirement| requirement.project != self.shell) {
            return None;
        }
        if let Some(kept) = self.kept_out() {
            return Some(kept);
        }
        if matches!(requirement, Some(None)) || after.is_none() || matches!(reworked, Some((_, None))) {
            return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
        }
        let of_rework = reworked.and_then(|(_, task)| task?.requirement.as_ref());
        let requirement = requirement.flatten().or_else(|| self.view.requirements.get(of_rework?));
        let copied = reworked.and_then(|(_, task)| Some(task?.after.as_slice())).unwrap_or_default();
        let after = if self.words.all("after").is_empty() { copied } else { self.words.all("after") };
        let hopeless = after.iter().any(|name| self.view.is_hopeless(name));
        let again = reworked.is_some_and(|(name, task)| {
            let rework = self.view.rework_of(name);
            let is_live = |rework: &String| !self.view.tasks[rework].was_aborted();
            task.is_some_and(|task| task.is_open()) || rework.is_some_and(is_live)
        });
        if requirement.is_some_and(crate::model::Requirement::is_over) || hopeless || again {
            return refused(LIST);
        }
        let (name, made) = self.after.tasks.iter().next_back()?;
        let next = |world: &World, phase| match phase {
            Ready => self.claim_of(world, name),
            _ => format!("ACTION hf-task explain {name}"),
        };
        let or_next = Some(next(self.recorded, self.recorded.tasks[name].phase));
        Some(Expected { or_next, ..Expected::new("RECORDED", next(self.after, made.phase)) })
    }

    /// A claim without a name.
    fn claim_any(&self) -> Option<Expected> {
        if self.words.verb() != "claim" {
            return None;
        }
        if self.is_stopped {
            return Some(self.stopped(&self.project));
        }
        if let Some(kept) = self.kept_out() {
            return Some(kept);
        }
        // Without a project, any task will do.
        let project = Some(self.project.as_str()).filter(|_| self.is_named);
        let Some(name) = self.view.next_claim(project) else {
            let goes_on = |project: &str| self.view.project_phase(project) == Active;
            let mine =
                |task: &Task| task.holder.as_ref() == Some(&self.actor) && task.is_held() && goes_on(&task.project);
            let held = self.view.tasks.iter().find(|(_, task)| mine(task));
            let next = match held {
                Some((name, task)) if task.phase == Assigned => self.action(&format!("hf-task start {name}")),
                Some((name, _)) => format!("ACTION hf-task show {name}"),
                None => NONE.to_owned(),
            };
            return Some(Expected::new("NO_TASK", next));
        };
        if self.view.in_progress() >= self.view.settings.concurrent {
            return refused(LIST);
        }
        Some(Expected::new("CLAIMED", self.action(&format!("hf-task start {name}"))))
    }

    fn claim(&self, name: &str, held: bool) -> Option<Expected> {
        let task = &self.view.tasks[name];
        if self.is_stopped {
            return Some(self.stopped(&task.project));
        }
        let start = self.action(&format!("hf-task start {name}"));
        match task.phase {
            Ready if self.view.in_progress() >= self.view.settings.concurrent => refused(LIST),
            Ready => Some(Expected::new("CLAIMED", start)),
            Assigned if held => Some(Expected::new("DUPLICATE", start)),
            Proposed => self.not_ready(name),
            _ => refused(NONE),
        }
    }

    /// The refusal of a task that something blocks.
    fn not_ready(&self, name: &str) -> Option<Expected> {
        let task = &self.view.tasks[name];
        let unapproved = task.requirement.as_ref().is_some_and(|req| self.view.requirements[req].phase != Approved);
        let waits = task.after.iter().any(|other| !self.view.is_done(other));
        match unapproved || waits {
            true => refused(LIST),
            false => Some(Expected::new("APPROVAL_REQUIRED", ASK)),
        }
    }

    /// What the holder of a task may do.
    fn work(&self, verb: &str, name: &str, held: bool) -> Option<Expected> {
        let task = &self.view.tasks[name];
        match (task.phase, verb) {
            (Succeeded, "succeed") => Some(self.ended("DUPLICATE", name)),
            (Assigned | Running, _) if !held => refused(NONE),
            (Proposed, "start") => self.not_ready(name),
            (Assigned, "start") | (Running, "heartbeat") => Some(Expected::new("RECORDED", NONE)),
            (Running, "start") => Some(Expected::new("DUPLICATE", NONE)),
            (Assigned, "heartbeat") => Some(Expected::new("RECORDED", self.action(&format!("hf-task start {name}")))),
            (Running, "succeed" | "fail") => Some(self.ended("RECORDED", name)),
            _ => refused(NONE),
        }
    }

    /// The reply after a task ended, or went back to its holder.
    fn ended(&self, status: &'static str, name: &str) -> Expected {
        let or_next = Some(self.after_end(self.recorded, name));
        Expected { or_next, ..Expected::new(status, self.after_end(self.after, name)) }
    }

    fn after_end(&self, world: &World, name: &str) -> String {
        let task = &world.tasks[name];
        let requirement = task.requirement.as_ref().map(|name| world.requirements[name].phase);
        if requirement == Some(Implemented) {
            return ASK.to_owned();
        }
        if task.phase == Assigned {
            return self.action(&format!("hf-task start {name}"));
        }
        match world.next_claim(Some(&task.project)) {
            Some(next) => self.claim_of(world, &next),
            None => NONE.to_owned(),
        }
    }

    /// The next step of an agent that lost a task.
    fn after_loss(&self, name: &str) -> String {
        if self.after.in_progress() >= self.after.settings.concurrent {
            return NONE.to_owned();
        }
        match self.after.tasks[name].phase {
            Ready => self.action(&format!("hf-task claim {name}")),
            _ => self.action("hf-task claim"),
        }
    }

    // Requirements and decisions.

    fn requirement(&self) -> Option<Expected> {
        let verb = self.words.verb();
        if verb == "propose" {
            return self.kept_out().or_else(|| Some(Expected::new("RECORDED", NONE)));
        }
        if verb != "analyze"
            && let Some(kept) = self.for_operators()
        {
            return Some(kept);
        }
        let Some(found) = self.words.object().and_then(|name| self.view.requirements.get(name)) else {
            return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
        };
        let kept = self.kept_out();
        if let Some(kept) = kept.clone().filter(|_| self.is_agent) {
            return Some(kept);
        }
        let (allowed, goal, next): (&[Phase], Option<Phase>, &str) = match verb {
            "analyze" => (&[Proposed, Analyzed], None, ASK),
            "reject" => (&[Proposed, Analyzed, Blocked], Some(Rejected), NONE),
            "supersede" => (&[Approved, Blocked], Some(Superseded), NONE),
            "verify" => (&[Implemented], Some(Verified), NONE),
            _ => return None,
        };
        if goal == Some(found.phase) {
            return Some(Expected::new("DUPLICATE", NONE));
        }
        match allowed.contains(&found.phase) {
            true if kept.is_some() => kept,
            true => Some(Expected::new("RECORDED", next)),
            false => refused(NONE),
        }
    }

    fn decision(&self) -> Option<Expected> {
        let verb = self.words.verb();
        if let Some(kept) = self.for_operators() {
            return Some(kept);
        }
        let name = self.words.object()?;
        if verb == "acknowledge" {
            return match self.view.escalations.get(name).map(|escalation| escalation.phase) {
                Some(Open) => Some(Expected::new("RECORDED", NONE)),
                Some(Acknowledged) => Some(Expected::new("DUPLICATE", NONE)),
                Some(Closed) => refused(NONE),
                _ => Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20")),
            };
        }
        let Some(decision) = self.view.decisions.get(name) else {
            return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
        };
        let goal = if verb == "approve" { Approved } else { Rejected };
        let project = self.view.project_of(&decision.target);
        if decision.is_open() && project.is_some_and(|project| self.view.is_archived(project)) {
            return refused(ASK);
        }
        let status = match decision.is_open() {
            true => "RECORDED",
            false if decision.phase == goal => "DUPLICATE",
            false => return refused(NONE),
        };
        if verb == "reject" {
            return Some(Expected::new(status, NONE));
        }
        let next = |world: &World| self.after_approval(world, &decision.kind, &decision.target);
        Some(Expected { or_next: Some(next(self.recorded)), ..Expected::new(status, next(self.after)) })
    }

    fn after_approval(&self, world: &World, kind: &str, target: &str) -> String {
        match kind {
            "requirement_approval" if world.requirements[target].phase == Implemented => ASK.to_owned(),
            "requirement_approval" => {
                let first = world.tasks_of(target).find(|(_, task)| task.phase == Ready);
                first.map_or(NONE.to_owned(), |(name, _)| self.claim_of(world, name))
            }
            "destructive_operation" => match world.tasks[target].phase {
                Ready => self.claim_of(world, target),
                Proposed => format!("ACTION hf-task explain {target}"),
                Assigned if world.tasks[target].holder.as_ref() == Some(&self.actor) => {
                    self.action(&format!("hf-task start {target}"))
                }
                _ => NONE.to_owned(),
            },
            _ => NONE.to_owned(),
        }
    }

    // Agents.

    fn sign(&self) -> Option<Expected> {
        if self.is_void || self.phase() == Archived {
            return self.kept_out();
        }
        let agent = self.after.agents.get(self.actor.strip_prefix("agent:")?)?;
        let due = self.words.program == "hf-activity" && agent.duty != crate::model::Duty::None;
        let next = if due { self.action("hf-activity --kind introspection") } else { NONE.to_owned() };
        Some(Expected::new("RECORDED", next))
    }

    fn deep_work(&self) -> Option<Expected> {
        let agent = self.actor.strip_prefix("agent:")?;
        let tidies = self.words.verb() == "complete" && !self.is_void && self.phase() == Paused;
        if let Some(kept) = self.kept_out().filter(|_| !tidies) {
            return Some(kept);
        }
        let open = self.view.deep_work(agent).filter(|work| !work.strict || self.now <= work.until);
        match self.words.verb() {
            "start" => Some(Expected::new("RECORDED", NONE)),
            _ if open.is_none() => None,
            // The log that closes deep work may be the introspection that is due after it.
            "complete" => Some(Expected::new("RECORDED", self.action("hf-activity --kind introspection"))),
            _ => None,
        }
    }

    fn session(&self) -> Option<Expected> {
        match self.words.verb() {
            "login" => {
                if let Some(kept) = self.kept_out() {
                    return Some(kept);
                }
                let (name, _) = self.after.sessions.iter().next_back()?;
                let id = self.after.subjects[name].trim_start_matches("session:").to_owned();
                Some(Expected::new("RECORDED", format!("ACTION hf-session task --session {id}")))
            }
            "renew" => self.kept_out().or_else(|| Some(Expected::new("RECORDED", NONE))),
            "logout" => None,
            _ => None,
        }
    }

    // Operators.

    fn constraint(&self) -> Option<Expected> {
        if let Some(kept) = self.kept_out().filter(|_| self.is_agent) {
            return Some(kept);
        }
        if self.words.verb() == "remove" {
            let found = self.words.object().and_then(|name| self.view.constraints.get(name));
            return match found.map(|constraint| constraint.phase) {
                None => Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20")),
                Some(Removed) => None,
                Some(_) => Some(Expected::new("RECORDED", ASK)),
            };
        }
        match self.words.option("priority") {
            Some(name) if !self.view.tasks.contains_key(name) && !self.view.requirements.contains_key(name) => {
                Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"))
            }
            _ => Some(Expected::new("RECORDED", ASK)),
        }
    }

    fn unknown_project(&self) -> Option<Expected> {
        let unknown = self.project != "main" && !self.view.projects.contains_key(&self.project);
        unknown.then(|| Expected::new("NOT_FOUND", "ACTION hf-log --last 20"))
    }

    fn pause(&self) -> Option<Expected> {
        if let Some(kept) = self.for_operators() {
            return Some(kept);
        }
        if let Some(unknown) = self.unknown_project() {
            return Some(unknown);
        }
        let archive = self.words.flag("archive");
        match (self.view.project_phase(&self.project), archive) {
            (Archived, true) | (Paused, false) => Some(Expected::new("DUPLICATE", NONE)),
            (Archived, false) => refused(NONE),
            (_, true) => Some(Expected::new("ARCHIVED", NONE)),
            (_, false) => Some(Expected::new("PAUSED", NONE)),
        }
    }

    fn resume(&self) -> Option<Expected> {
        if let Some(kept) = self.for_operators() {
            return Some(kept);
        }
        if self.words.flag("system") {
            let status = if self.view.stop.is_some() { "RESUMED" } else { "DUPLICATE" };
            return Some(Expected::new(status, NONE));
        }
        if let Some(unknown) = self.unknown_project() {
            return Some(unknown);
        }
        match self.view.project_phase(&self.project) {
            _ if self.view.stop.is_some() => Some(Expected::new("STOPPED?", ASK)),
            Paused => Some(Expected::new("RESUMED", NONE)),
            Archived => refused(NONE),
            _ => Some(Expected::new("DUPLICATE", NONE)),
        }
    }
}
