//! The EXIT, STATUS and NEXT of every command that records something.

mod agent;
mod artifact;
mod decision;
mod job;
mod operator;
mod task;

use crate::call::{Call, Words};
use crate::clock::time;
use crate::model::Phase::{Active, Archived, Paused};
use crate::model::due::Due;
use crate::model::{Phase, World};

/// What a reply must begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub exit: i32,
    pub status: &'static str,
    /// Another status that is as true, where two rules apply.
    pub or: Option<&'static str>,
    pub next: String,
    /// Other next steps that are as true: what is due may be taken into account or not.
    pub or_next: Vec<String>,
}

impl Expected {
    /// Whether a reply with this exit code and status is true.
    pub fn fits(&self, exit: i32, status: &str) -> bool {
        // A refusal for another reason is a refusal.
        let is_other = || self.or == Some(status) && (exit == self.exit || exit == exit_of(status));
        exit == self.exit && status == self.status || is_other()
    }

    fn new(status: &'static str, next: impl Into<String>) -> Expected {
        let exit = exit_of(status);
        // STOPPED is what hf-stop did, or why something is refused.
        Expected { exit, status: status.trim_end_matches('?'), or: None, next: next.into(), or_next: Vec::new() }
    }
}

/// The exit code that goes with a status.
fn exit_of(status: &str) -> i32 {
    match status {
        "REFUSED" | "STOPPED?" | "EXIT_REQUESTED" | "CLAIM_LOST" | "APPROVAL_REQUIRED" => 3,
        "NO_TASK" => 1,
        "NOT_FOUND" => 6,
        "USAGE" => 2,
        _ => 0,
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
    has_session: bool,
    /// Its session is over.
    is_void: bool,
    /// It logged out of that session.
    has_left: bool,
    /// Its session is that of another agent.
    is_foreign: bool,
    is_stopped: bool,
    now: i64,
}

/// The next step of an agent that must not go on, whatever it calls.
pub fn told_to(world: &World, now: i64, call: &Call) -> Option<String> {
    let (words, view) = (&call.words(), &world.applied(now));
    let question = asked(view, view, world, now, call, words);
    let told = question.told(Expected::new("OK", "?"));
    Some(told.next).filter(|next| next != "?")
}

/// What every reply tells an agent of a paused project: why it is paused, and when its session ends.
pub fn leaves_by(world: &World, now: i64, call: &Call) -> Option<String> {
    let (words, view) = (&call.words(), &world.applied(now));
    let question = asked(view, view, world, now, call, words);
    let is_told = question.is_agent && !question.is_stopped && !question.is_void && !question.is_foreign;
    let act = view.projects.get(&question.project)?.act.as_ref();
    let act = act.filter(|_| is_told && question.phase() == Paused)?;
    let me = question.actor.strip_prefix("agent:");
    let mine = view.sessions.values().filter(|s| s.project == question.project && Some(s.agent.as_str()) == me);
    let until = mine.filter(|session| session.phase == Active).map(|session| session.until).max();
    let until = until.map(|until| format!(" leave_by={}", time(until))).unwrap_or_default();
    let (at, by, why) = (time(act.at), &act.by, act.reason.clone().unwrap_or_default());
    Some(format!("STANDING:paused {at} project={} by={by} {why}{until}", question.project))
}

/// What a call must answer. None where neither the design nor the specification says.
pub fn expected(before: &World, after: &World, now: i64, call: &Call) -> Option<Expected> {
    let (words, recorded, after) = (&call.words(), after, &after.applied(now));
    let actor = asked(before, before, before, now, call, words).actor;
    let view = &before.settled(now, |due| is_named(before, &actor, words, due));
    let question = asked(view, after, recorded, now, call, words);
    let expected = question.answer()?;
    let mut told = question.told(expected);
    // Whoever uses the session of another agent may be told that, instead of what is wrong with the session.
    if question.is_foreign && told.exit == exit_of("REFUSED") {
        told.or = told.or.or(Some("REFUSED"));
        told.or_next.push(NONE.to_owned());
    }
    Some(told)
}

/// Who calls, and where.
fn asked<'a>(
    view: &'a World,
    after: &'a World,
    recorded: &'a World,
    now: i64,
    call: &Call,
    words: &'a Words,
) -> Question<'a> {
    let of_session = words.option("session").or_else(|| call.variable("HF_SESSION"));
    let session = of_session
        .and_then(|name| view.sessions.get(name).or_else(|| view.sessions.get(&view.name(&format!("session:{name}")))));
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
    let has_session = of_session.is_some();
    let of_session = session.map(|session| session.project.as_str());
    let named = words.option("archive").or_else(|| words.option("project"));
    let named = named.or_else(|| call.variable("HF_PROJECT")).or(of_session);
    let (is_named, shell) = (named.is_some(), named.unwrap_or("main").to_owned());
    let project = of_object(view, words).unwrap_or(&shell).to_owned();
    // An agent has to leave with its session, whatever project it names.
    let sits_in = of_session.filter(|project| view.project_phase(project) != Active);
    let project = sits_in.map_or(project, str::to_owned);
    let is_agent = actor.starts_with("agent:");
    let is_void = has_session && session.is_none_or(|session| session.phase != Active);
    let has_left = session.is_some_and(|session| session.left);
    let is_foreign = session.zip(call.variable("HF_AGENT")).is_some_and(|(session, me)| session.agent != me);
    let is_stopped = view.stop.is_some();
    Question {
        words,
        view,
        after,
        recorded,
        actor,
        is_agent,
        project,
        shell,
        is_named,
        has_session,
        is_void,
        has_left,
        is_foreign,
        is_stopped,
        now,
    }
}

/// Whether a call settles something that is late before it decides: what it names, and for a choice among tasks the
/// overdue work of the project.
fn is_named(world: &World, actor: &str, words: &Words, due: &Due) -> bool {
    if due.kind == "SessionExpired" {
        return true;
    }
    // A claim at the limit of tasks in progress settles whatever may make room.
    let is_full = world.in_progress() >= world.settings.concurrent;
    let gives = matches!(words.verb(), "claim" | "assign") && is_full;
    if words.program == "hf-task" && (words.plain == ["claim"] || gives) || words.program == "hf-session" {
        return world.tasks.contains_key(&due.shown);
    }
    // A sign of life settles what its agent holds.
    let is_sign = matches!(words.program.as_str(), "hf-checkpoint" | "hf-activity");
    let holder = world.tasks.get(&due.shown).and_then(|task| task.holder.as_deref());
    let me = actor.strip_prefix("agent:").and_then(|me| world.agents.get(me));
    if is_sign && (holder == Some(actor) || me.is_some_and(|me| me.lost.contains(&due.shown))) {
        return true;
    }
    // A decision is named with what it is about, a task with all that it waits for.
    let target = words.object().and_then(|name| Some(world.decisions.get(name)?.target.as_str()));
    let named = words.object().into_iter().chain(target).chain(words.option("rework-of"));
    named.chain(words.all("after").iter().map(String::as_str)).any(|name| waits_for(world, name, &due.shown))
}

/// Whether something is another thing, or a task that waits for it.
fn waits_for(world: &World, name: &str, other: &str) -> bool {
    let Some(task) = world.tasks.get(name) else { return name == other };
    let after = if task.phase == Phase::Proposed { task.after.as_slice() } else { &[] };
    name == other
        || after.iter().any(|earlier| waits_for(world, earlier, other))
        || world.reworks(name).any(|(rework, _)| waits_for(world, rework, other))
}

/// The project of the task or requirement that a call is about.
fn of_object<'a>(view: &'a World, words: &Words) -> Option<&'a str> {
    let task = |name: &str| view.tasks.get(name).map(|task| task.project.as_str());
    match words.program.as_str() {
        "hf-task" | "hf-job" => words.object().and_then(task).filter(|_| words.verb() != "propose"),
        "hf-artifact" => {
            let artifact = words.object().and_then(|name| view.artifacts.get(name)?.task.as_deref());
            artifact.or_else(|| words.option("for")).and_then(task)
        }
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
                (true, _) => (expected.next, expected.or_next) = (ASK.to_owned(), Vec::new()),
                // Between two projects, either may be meant.
                (false, true) if self.is_between() && expected.next == self.leave() => {}
                (false, true) if self.is_between() => expected.or_next.push(self.leave()),
                (false, true) => (expected.next, expected.or_next) = (self.leave(), Vec::new()),
                (false, false) if matches!(self.view.project_phase(&self.shell), Paused | Archived) => {
                    expected.or_next.push(self.leave_from(&self.shell));
                }
                (false, false) => {}
            }
        }
        expected
    }

    fn answer(&self) -> Option<Expected> {
        match self.words.program.as_str() {
            "hf-task" => self.task(),
            "hf-job" => self.job(),
            "hf-artifact" => self.artifact(),
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
            let by_session = self.words.option("session").map(|_| self.actor.as_str());
            repeat("actor", self.words.option("actor").or(by_agent.as_deref()).or(by_session));
        }
        if command.starts_with("hf-session") {
            repeat("session", self.words.option("session"));
        }
        if !command.starts_with("hf-activity") && !command.starts_with("hf-poll") {
            repeat("project", self.words.option("project"));
        }
        line
    }

    fn logout(&self) -> String {
        self.action("hf-session logout")
    }

    /// How the caller leaves its project.
    fn leave(&self) -> String {
        self.leave_from(&self.project)
    }

    /// Whoever has a session logs out of it; whoever has left, or never came, has nothing to leave.
    fn leave_from(&self, project: &str) -> String {
        let me = self.actor.strip_prefix("agent:");
        let mut sessions = self.view.sessions.values();
        let is_there = sessions.any(|s| s.phase == Active && s.project == project && Some(s.agent.as_str()) == me);
        match if self.is_void { !self.has_left } else { is_there } {
            true => self.logout(),
            false => NONE.to_owned(),
        }
    }

    /// The phase of the caller's project.
    fn phase(&self) -> Phase {
        self.view.project_phase(&self.project)
    }

    /// Whether the call is about something in a project that is not active, while the caller's own project is.
    fn is_between(&self) -> bool {
        self.project != self.shell && self.view.project_phase(&self.shell) == Active
    }

    /// The refusal of what the caller may not do in its project now.
    fn kept_out(&self) -> Option<Expected> {
        match self.phase() {
            _ if self.is_void => Some(Expected::new("EXIT_REQUESTED", self.leave())),
            Paused | Archived if self.is_agent => Some(Expected::new("EXIT_REQUESTED", self.leave())),
            Archived => refused(ASK),
            _ => None,
        }
    }

    /// The refusal of what the caller may not do in its project now; or what an active project would answer, if that is
    /// that it holds already, or, between two projects, another refusal.
    fn kept_or(&self, kept: Expected, answer: Option<Expected>) -> Expected {
        let is_as_true = |a: &Expected| a.status == "DUPLICATE" || self.is_between() && a.exit == kept.exit;
        match answer.filter(is_as_true) {
            Some(Expected { status, next, mut or_next, .. }) => {
                or_next.push(next);
                Expected { or: Some(status), or_next, ..kept }
            }
            None => kept,
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
        // What is overdue takes no place, whether it is settled already or not.
        if self.after.is_full() {
            return NONE.to_owned();
        }
        self.action(&format!("hf-task claim {name}"))
    }
}
