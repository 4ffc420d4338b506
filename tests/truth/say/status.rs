//! The reply of hf-status.

use std::collections::BTreeMap;

use super::{QUOTE_MAX, count, cut};
use crate::clock::time;
use crate::model::Phase::{Active, Approved, Archived, Open, Paused, Proposed, Running};
use crate::model::due::Due;
use crate::model::{Phase, World};

/// How many intervals without a tick are late.
const TICKS_MISSED: i64 = 3;

/// Something that needs somebody.
struct Problem {
    since: Option<i64>,
    kind: &'static str,
    subject: String,
    what: String,
    command: String,
}

/// What hf-status depends on beside the log.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// The last tick of the watchdog.
    pub tick: Option<i64>,
}

/// The lines of the reply, and of those the ones whose order is left open.
pub struct Status {
    pub lines: Vec<String>,
    pub tasks: Vec<String>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    Operator,
    Agent,
}

/// What hf-status must say to an operator, or to an agent.
pub fn status(recorded: &World, now: i64, outside: &Outside, asker: Asker) -> Status {
    let world = recorded.applied(now);
    let problems = problems(recorded, &world, now, outside);
    let state = state(&world);
    let sum = match problems.first() {
        None => format!("{state}; nothing needs attention"),
        Some(first) => {
            format!("{state}; {}; most urgent: {}: {}", count(problems.len(), "problem"), first.subject, first.what)
        }
    };
    let head = match problems.is_empty() {
        true => ["EXIT:0", "STATUS:OK", "NEXT:NONE"],
        false => ["EXIT:1", "STATUS:ATTENTION", "NEXT:ASK operator"],
    };
    let mut lines: Vec<String> = head.iter().map(|line| (*line).to_owned()).collect();
    lines.push(format!("SUM:{sum}"));
    lines.push(format!("SYSTEM_STATE:{state}"));
    lines.push(format!("HIVE:{}", world.settings.name));
    // Nobody adopts settings in these lives.
    let regime = "settings are recorded, not adopted: anyone who can write the settings file can change the rules";
    lines.push(format!("REGIME:{regime}"));
    lines.extend(projects(&world));
    let active = world.crew.iter().filter(|name| world.agents[*name].phase == Active);
    lines.extend(active.map(|name| agent(&world, name, now)));
    let pending = world.decisions.values().filter(|decision| decision.is_open()).count();
    lines.push(format!("PENDING_APPROVALS:{pending}"));
    lines.push(format!("LAST_EVENT_ID:{}", recorded.last.0));
    lines.push(format!("LAST_EVENT_AT:{}", time(recorded.last.1)));
    lines.push(match outside.tick {
        Some(tick) => format!("WATCHDOG:{} age_seconds={}", time(tick), now - tick),
        None => "WATCHDOG:never".to_owned(),
    });
    let up_since = world.resumed.unwrap_or(world.created);
    lines.push(format!("UPTIME_SECONDS:{}", if world.stop.is_some() { 0 } else { now - up_since }));
    lines.push(format!("PROBLEMS:{}", problems.len()));
    lines.extend(problems.iter().map(|problem| problem.line(now)));
    if outside.tick.is_none() && !is_worth_watching(&world) {
        lines.push("NOTICE:the watchdog has never run; start it with: hf-watchdog --install cron".to_owned());
    }
    if asker == Asker::Operator {
        lines.extend(standing(&world));
    }
    let mut phases: BTreeMap<Phase, usize> = BTreeMap::new();
    for task in world.tasks.values().filter(|task| task.phase != Archived) {
        *phases.entry(task.phase).or_default() += 1;
    }
    Status { lines, tasks: phases.iter().map(|(phase, n)| format!("TASKS:{phase:?} {n}")).collect() }
}

/// The line that tells an operator of a stop or a pause.
pub fn standing(world: &World) -> Option<String> {
    if let Some(stop) = &world.stop {
        let reason = stop.reason.clone().unwrap_or_default();
        return Some(format!("STANDING:stopped {} - by={} {reason}", time(stop.at), stop.by));
    }
    let act = world.projects.get("main")?.act.as_ref()?;
    let (at, by, reason) = (time(act.at), &act.by, act.reason.clone().unwrap_or_default());
    match world.project_phase("main") {
        Paused => Some(format!("STANDING:paused {at} project=main by={by} {reason}")),
        Archived => Some(format!("STANDING:archived {at} project=main by={by} {reason}")),
        _ => None,
    }
}

fn state(world: &World) -> &'static str {
    // Every project that is not archived; main is there from the beginning.
    let phases = world.opened.iter().map(String::as_str).chain(["main"]).map(|project| world.project_phase(project));
    let live: Vec<Phase> = phases.filter(|phase| *phase != Archived).collect();
    match &world.stop {
        Some(_) => "stopped",
        None if !live.is_empty() && live.iter().all(|phase| *phase == Paused) => "paused",
        None => "running",
    }
}

fn projects(world: &World) -> Vec<String> {
    if world.opened.is_empty() {
        return Vec::new();
    }
    let mut others: Vec<String> = world.opened.iter().filter(|name| *name != "main").cloned().collect();
    others.sort();
    let names: Vec<String> = std::iter::once("main".to_owned()).chain(others).collect();
    names
        .iter()
        .map(|name| {
            let sessions = world.sessions.values().filter(|s| s.project == *name && s.phase == Active).count();
            let ours = || world.tasks.values().filter(|task| task.project == *name);
            let running = ours().filter(|task| task.is_held()).count();
            let open = ours().filter(|task| task.is_open()).count();
            let phase = world.project_phase(name);
            // Since when and why nothing goes on in it.
            let act = world.projects.get(name).and_then(|project| project.act.as_ref()).filter(|_| phase != Active);
            let why = |reason: &String| format!(" why={reason}");
            let rest = act.map(|act| {
                let why = act.reason.as_ref().map(why).unwrap_or_default();
                format!(" since={} by={}{why}", time(act.at), act.by)
            });
            let rest = rest.unwrap_or_default();
            format!("PROJECT:{name} {phase:?} sessions={sessions} running={running} open={open}{rest}")
        })
        .collect()
}

fn agent(world: &World, name: &str, now: i64) -> String {
    let codes: Vec<&str> = world.anomalies(name, now).into_iter().map(|(code, _)| code).collect();
    let health = if codes.is_empty() { "HEALTHY".to_owned() } else { codes.join(",") };
    let (sign, held) = (world.last_sign(name), world.held_by(name));
    let holds = (!held.is_empty()).then(|| format!("holds={}", held.join(",")));
    let in_progress = world.deep_work(name).filter(|work| !work.strict || now <= work.until);
    let works = in_progress.map(|work| match work.strict {
        true => format!("deep_work=strict until {}", time(work.until)),
        false => "deep_work=flexible".to_owned(),
    });
    let mut columns = vec![format!("AGENT:{name} {health} {} {} age={}", time(sign.at), sign.sort, now - sign.at)];
    let mut seats = world.sessions.iter().filter(|(_, session)| session.agent == name && session.phase == Active);
    let seats: Vec<&str> = seats.by_ref().map(|(_, session)| session.project.as_str()).collect();
    let seats = (!seats.is_empty()).then(|| format!("in={}", seats.join(",")));
    let mut rest = vec![holds, works, seats];
    // What is missing leaves its place empty, but for the last ones.
    while rest.pop_if(|last| last.is_none()).is_some() {}
    columns.extend(rest.into_iter().map(|column| column.unwrap_or_else(|| "-".to_owned())));
    columns.join(" ")
}

/// Whether a watchdog has something to watch.
fn is_worth_watching(world: &World) -> bool {
    world.agents.values().any(|agent| agent.phase == Active)
        || world.runs.values().any(|run| run.phase == Running)
        || world.jobs().any(|(_, task, _)| task.is_open())
}

impl Problem {
    fn line(&self, now: i64) -> String {
        let (since, age) = match self.since {
            Some(since) => (time(since), format!("age={}", now - since)),
            None => ("-".to_owned(), "-".to_owned()),
        };
        format!("PROBLEM:{since} {age} {} {} {} do={}", self.kind, self.subject, self.what, self.command)
    }
}

/// Everything that needs somebody, in the order in which it is listed.
fn problems(recorded: &World, world: &World, now: i64, outside: &Outside) -> Vec<Problem> {
    let groups = [
        stopped(world),
        escalations(recorded),
        jobs(recorded),
        overdue_decisions(recorded, world, now),
        anomalies(world, now),
        decisions(recorded, world, now),
        overdue(recorded, world, now),
        stranded(world),
        paused(world),
        watchdog(world, now, outside),
    ];
    groups
        .into_iter()
        .flat_map(|mut group| {
            group.sort_by_key(|problem| (problem.since.is_none(), problem.since, problem.subject.clone()));
            group
        })
        .collect()
}

fn problem(since: i64, kind: &'static str, subject: &str, what: String, command: String) -> Problem {
    Problem { since: Some(since), kind, subject: subject.to_owned(), what, command }
}

/// The reason of an act, cut.
fn quoted(act: &crate::model::Act) -> String {
    cut(act.reason.as_deref().unwrap_or_default(), QUOTE_MAX)
}

fn stopped(world: &World) -> Vec<Problem> {
    let line = |stop: &crate::model::Act| {
        let what = format!("everything is stopped by {}: {}", stop.by, stop.reason.clone().unwrap_or_default());
        problem(stop.at, "stopped", "system", what, "hf-resume --system".to_owned())
    };
    world.stop.iter().map(line).collect()
}

fn escalations(world: &World) -> Vec<Problem> {
    let open = world.escalations.iter().filter(|(_, escalation)| escalation.phase == Open);
    open.map(|(name, escalation)| {
        let what = match &escalation.reason {
            Some(reason) => format!("{}: {}", escalation.about, cut(reason, QUOTE_MAX)),
            None => escalation.about.clone(),
        };
        problem(escalation.raised, "escalation", name, what, format!("hf-decide acknowledge {name} --reason TEXT"))
    })
    .collect()
}

fn jobs(world: &World) -> Vec<Problem> {
    let lost = world.lost.iter();
    lost.map(|name| {
        let task = &world.tasks[name];
        // Its supervisor was last heard of in its newest run, also if it waits for another one.
        let since = task.run.as_ref().map_or(task.proposed_at, |run| world.runs[run].heard);
        problem(since, "job", name, unattended(world, name), format!("hf-job check {name}"))
    })
    .collect()
}

/// What is wrong with a job that nobody supervises.
pub fn unattended(world: &World, name: &str) -> String {
    match world.ended.contains_key(name) {
        true => "it has ended, but its result is not recorded".to_owned(),
        false => "its supervisor is gone, and its result is unknown".to_owned(),
    }
}

/// Open questions, those that timed out or the others.
fn questions<'a>(
    world: &'a World,
    applied: &'a World,
    now: i64,
    late: bool,
) -> impl Iterator<Item = (i64, &'a String, String)> {
    let limit = world.settings.approval_hours * 3600;
    let open = world.decisions.iter().filter(|(_, decision)| decision.is_open());
    open.filter_map(move |(name, decision)| {
        let due = decision.timed_out.unwrap_or(decision.asked + limit);
        let timed_out = decision.timed_out.is_some() || now > due;
        // What is due may have answered or closed it: then there is nothing left to decide.
        (timed_out == late && applied.decisions[name].is_open())
            .then(|| (if late { due } else { decision.asked }, name, cut(&decision.summary, QUOTE_MAX)))
    })
}

fn overdue_decisions(world: &World, applied: &World, now: i64) -> Vec<Problem> {
    let line = |(since, name, what): (i64, &String, String)| {
        problem(since, "overdue_decision", name, what, format!("hf-decide show {name}"))
    };
    questions(world, applied, now, true).map(line).collect()
}

fn decisions(world: &World, applied: &World, now: i64) -> Vec<Problem> {
    let line = |(since, name, what): (i64, &String, String)| {
        problem(since, "decision", name, what, format!("hf-decide show {name}"))
    };
    questions(world, applied, now, false).map(line).collect()
}

fn anomalies(world: &World, now: i64) -> Vec<Problem> {
    let mut all = Vec::new();
    for name in world.agents.keys().filter(|name| world.agents[*name].phase == Active) {
        for (code, seconds) in world.anomalies(name, now) {
            let command = match code {
                "NEVER_SEEN" | "INACTIVE" | "DEEPWORK_UNCHECKED" => {
                    format!("hf-append AgentStopped --subject agent:{name}")
                }
                _ => format!("hf-branch tell {name} TEXT"),
            };
            all.push(problem(now - seconds, "anomaly", &format!("agent:{name}"), code.to_owned(), command));
        }
    }
    all
}

fn overdue(world: &World, applied: &World, now: i64) -> Vec<Problem> {
    // Open decisions have lines of their own.
    let is_open = |due: &Due| applied.decisions.get(&due.shown).is_some_and(crate::model::Decision::is_open);
    let late = world.late(now).into_iter().filter(|due| !is_open(due));
    late.map(|due| problem(due.at, "overdue", &due.shown, due.why, "hf-watchdog".to_owned())).collect()
}

fn stranded(world: &World) -> Vec<Problem> {
    let mut all = Vec::new();
    for (name, task) in world.tasks.iter().filter(|(name, task)| task.by_stop && world.rework_of(name).is_none()) {
        // What waits for a task that this one repeats waits for this one.
        let chain = world.chain(name);
        let behind = |other: &crate::model::Task| {
            other.phase == Proposed && other.after.iter().any(|earlier| chain.contains(earlier))
        };
        let mut waiting: Vec<String> = Vec::new();
        let misses = |name: &&String| {
            let requirement = &world.requirements[*name];
            requirement.phase == Approved && requirement.approved.is_some_and(|approved| task.ended > approved)
        };
        waiting.extend(world.tasks.iter().filter(|(_, other)| behind(other)).map(|(name, _)| name.clone()));
        waiting.extend(task.requirement.as_ref().filter(misses).cloned());
        let Some(first) = waiting.first() else { continue };
        let what = match waiting.len() {
            1 => format!("a stop aborted it, and {first} waits for it"),
            n => format!("a stop aborted it, and {first} and {} more wait for it", n - 1),
        };
        let since = task.end.as_ref().map_or(task.since, |end| end.at);
        all.push(problem(since, "stranded", name, what, format!("hf-task propose --rework-of {name}")));
    }
    all
}

fn paused(world: &World) -> Vec<Problem> {
    let paused = world.opened.iter().filter(|name| world.is_paused(name));
    paused
        .map(|name| {
            let act = world.projects[name].act.as_ref().expect("somebody paused it");
            let what = format!("paused by {}: {}", act.by, quoted(act));
            let command = if name == "main" { "hf-resume".to_owned() } else { format!("hf-resume --project {name}") };
            problem(act.at, "paused", &format!("project {name}"), what, command)
        })
        .collect()
}

fn watchdog(world: &World, now: i64, outside: &Outside) -> Vec<Problem> {
    match outside.tick {
        Some(tick) if now - tick > TICKS_MISSED * world.settings.interval => {
            let command = "hf-watchdog --installed".to_owned();
            vec![problem(tick, "watchdog", "watchdog", "has not run since then".to_owned(), command)]
        }
        None if is_worth_watching(world) => {
            let (subject, what) = ("watchdog".to_owned(), "has never run".to_owned());
            let command = "hf-watchdog --install cron".to_owned();
            vec![Problem { since: None, kind: "watchdog", subject, what, command }]
        }
        _ => Vec::new(),
    }
}
