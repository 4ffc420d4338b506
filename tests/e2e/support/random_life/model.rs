//! An independent model of what is late at a given time, computed from the lines of a log.
//!
//! It is written from the design alone (3.1 and 6) and shares nothing with the toolkit: the log is read as JSON, time
//! is a number of seconds. At its deadline something is still in time; it is late from the next second on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const DAY_SECONDS: i64 = 86_400;

/// The number of days from 1970-01-01 to a date.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Converts a timestamp of the log to seconds.
pub fn second(time: &str) -> i64 {
    let part = |from: usize, to: usize| time[from..to].parse::<i64>().expect("a number");
    let days = days_of(part(0, 4), part(5, 7), part(8, 10));
    days * DAY_SECONDS + part(11, 13) * 3600 + part(14, 16) * 60 + part(17, 19)
}

/// Converts seconds to a timestamp of the log.
pub fn time(second: i64) -> String {
    let (days, of_day) = (second.div_euclid(DAY_SECONDS), second.rem_euclid(DAY_SECONDS));
    let year = (1970..).find(|year| days_of(year + 1, 1, 1) > days).expect("a year");
    let month = (1..=12).rfind(|month| days_of(year, *month, 1) <= days).expect("a month");
    let day = days - days_of(year, month, 1) + 1;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Waiting,
    Ready,
    Assigned,
    Running,
    Over,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub name: String,
    pub project: String,
    pub phase: Phase,
    /// The agent that holds it, or held it last.
    pub holder: Option<String>,
    pub run: Option<String>,
    lease: i64,
    /// When it was claimed, or the claim was last renewed.
    from: i64,
    /// Its time was suspended when it was already late and nothing had recorded that. The design leaves open whether it
    /// then gets a new lease; answers about it only have to agree.
    pub doubtful: bool,
}

#[derive(Clone, Debug)]
struct Run {
    task: String,
    began: i64,
    /// The time of its last heartbeat.
    heard: i64,
    may_take: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct Session {
    pub project: String,
    pub until: i64,
    pub open: bool,
}

#[derive(Clone, Debug)]
pub struct Decision {
    pub name: String,
    asked: i64,
    /// Not answered yet, whether overdue or not.
    pub open: bool,
    timed_out: bool,
}

/// A period of strict deep work.
#[derive(Clone, Copy, Debug)]
pub struct DeepWork {
    pub began: i64,
    /// The declared end.
    pub until: i64,
    pub over: bool,
    pub extended: u32,
}

/// Something that is late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    pub subject: String,
    /// Its short reference.
    pub name: String,
    /// Every rule that it breaks, with the deadline.
    pub rules: BTreeMap<&'static str, i64>,
    pub doubtful: bool,
    /// The task it concerns, if any.
    pub task: Option<String>,
}

/// Everything in the log that can be late.
#[derive(Clone, Debug, Default)]
pub struct World {
    pub tasks: BTreeMap<String, Task>,
    runs: BTreeMap<String, Run>,
    pub sessions: BTreeMap<String, Session>,
    pub decisions: BTreeMap<String, Decision>,
    deep_works: BTreeMap<String, DeepWork>,
    /// The newest strict deep work of each agent, and the last end of any before it.
    strict: BTreeMap<String, (DeepWork, i64)>,
    paused: BTreeSet<String>,
    resumed: BTreeMap<String, i64>,
    /// Short references by subject.
    names: BTreeMap<String, String>,
    made: BTreeMap<&'static str, usize>,
    /// The current `governance.approval_timeout_hours`.
    pub approval_hours: i64,
}

impl World {
    pub fn is_paused(&self, project: &str) -> bool {
        self.paused.contains(project)
    }

    /// The short reference of a subject; anything else is returned unchanged.
    pub fn name<'a>(&'a self, subject: &'a str) -> &'a str {
        self.names.get(subject).map_or(subject, String::as_str)
    }

    /// The current strict deep work of an agent, if its declared end has not passed.
    pub fn deep_work(&self, agent: &str, now: i64) -> Option<DeepWork> {
        let (work, _) = self.strict.get(agent)?;
        Some(*work).filter(|work| !work.over && now <= work.until)
    }

    /// The earliest time from which deadlines of a task are counted. None while its time is suspended.
    fn counts_from(&self, task: &Task, now: i64) -> Option<i64> {
        if self.is_paused(&task.project) {
            return None;
        }
        let agent = task.holder.as_deref().unwrap_or_default();
        if self.deep_work(agent, now).is_some() {
            return None;
        }
        let resumed = self.resumed.get(&task.project).copied().unwrap_or(i64::MIN);
        let surfaced = self.strict.get(agent).map_or(i64::MIN, |(work, before)| work.until.max(*before));
        Some(resumed.max(surfaced))
    }

    /// The deadlines of a held task, each with its rule; none while its time is suspended.
    fn deadlines_of(&self, task: &Task, now: i64) -> Vec<(&'static str, i64)> {
        let Some(counts) = self.counts_from(task, now) else { return Vec::new() };
        match (task.phase, task.run.as_ref().and_then(|run| self.runs.get(run))) {
            (Phase::Assigned, _) => vec![("LEASE_EXPIRED", task.from.max(counts) + task.lease)],
            (Phase::Running, Some(run)) => {
                let lease = ("LEASE_EXPIRED", run.heard.max(counts) + task.lease);
                let overtime = run.may_take.map(|limit| ("RUN_OVERTIME", run.began.max(counts) + limit));
                std::iter::once(lease).chain(overtime).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Every current deadline: the subject, the rule, the time.
    fn deadlines(&self, now: i64) -> Vec<(String, &'static str, i64)> {
        let mut all = Vec::new();
        for (subject, task) in &self.tasks {
            let about = if task.phase == Phase::Running { task.run.as_ref().unwrap_or(subject) } else { subject };
            all.extend(self.deadlines_of(task, now).into_iter().map(|(rule, end)| (about.clone(), rule, end)));
        }
        let sessions = self.sessions.iter().filter(|(_, session)| session.open);
        all.extend(sessions.map(|(subject, session)| (subject.clone(), "SESSION_EXPIRED", session.until)));
        let asked = self.decisions.iter().filter(|(_, decision)| decision.open && !decision.timed_out);
        let limit = self.approval_hours * 3600;
        all.extend(asked.map(|(subject, decision)| (subject.clone(), "APPROVAL_OVERDUE", decision.asked + limit)));
        all
    }

    /// The deadlines that have not passed, and the ends of deep work, in order.
    pub fn moments_ahead(&self, now: i64) -> Vec<i64> {
        let works = self.strict.keys().filter_map(|agent| self.deep_work(agent, now)).map(|work| work.until);
        // Something that is late by one rule has no other deadline ahead, whether or not that is recorded.
        let late: Vec<String> = self.late(now).into_iter().map(|late| late.subject).collect();
        let ahead = self.deadlines(now).into_iter().filter(|(subject, ..)| !late.contains(subject));
        let mut all: Vec<i64> = ahead.map(|(.., end)| end).chain(works).collect();
        all.retain(|end| *end > now);
        all.sort_unstable();
        all
    }

    /// Everything that is late.
    pub fn late(&self, now: i64) -> Vec<Late> {
        let mut all: Vec<Late> = Vec::new();
        for (subject, rule, end) in self.deadlines(now).into_iter().filter(|(.., end)| now > *end) {
            if let Some(late) = all.iter_mut().find(|late| late.subject == subject) {
                late.rules.insert(rule, end);
                continue;
            }
            let task = self.runs.get(&subject).map(|run| run.task.clone());
            let task = task.or_else(|| self.tasks.contains_key(&subject).then(|| subject.clone()));
            let doubtful = task.as_ref().is_some_and(|task| self.tasks[task].doubtful);
            let name = self.name(&subject).to_owned();
            all.push(Late { subject, name, rules: BTreeMap::from([(rule, end)]), doubtful, task });
        }
        all
    }

    /// The late claims and runs of a project.
    pub fn late_in(&self, project: &str, now: i64) -> Vec<Late> {
        let mut all = self.late(now);
        all.retain(|late| late.task.as_ref().is_some_and(|task| self.tasks[task].project == project));
        all
    }

    /// Whether an open decision is overdue, recorded or not.
    pub fn has_unanswered(&self, now: i64) -> bool {
        let late = |decision: &Decision| decision.timed_out || now > decision.asked + self.approval_hours * 3600;
        self.decisions.values().any(|decision| decision.open && late(decision))
    }

    /// The open decisions that were not answered in time, if that is recorded.
    pub fn timed_out(&self) -> impl Iterator<Item = &str> {
        let mut names: Vec<&str> = Vec::new();
        names.extend(self.decisions.values().filter(|d| d.open && d.timed_out).map(|d| d.name.as_str()));
        names.sort_unstable();
        names.into_iter()
    }

    /// The task with a short reference, its own or that of its newest run.
    pub fn task_called(&self, name: &str) -> Option<String> {
        let is_it = |(subject, task): &(&String, &Task)| {
            self.name(subject) == name || task.run.as_ref().is_some_and(|run| self.name(run) == name)
        };
        self.tasks.iter().find(is_it).map(|(subject, _)| subject.clone())
    }

    /// Whether the claim or the run of a task is late.
    pub fn is_late(&self, task: &str, now: i64) -> bool {
        self.late(now).iter().any(|late| late.task.as_deref() == Some(task))
    }

    /// The phase of a task once what is due is applied: an expired claim is no longer held.
    pub fn stands(&self, task: &str, now: i64) -> Phase {
        match self.is_late(task, now) {
            true => Phase::Ready,
            false => self.tasks[task].phase,
        }
    }

    /// What is wrong with an event at its position in the log, as far as time is concerned.
    pub fn judge(&self, event: &Value) -> Option<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (kind, subject, actor) = (text(&event["event_type"]), text(&event["subject"]), text(&event["actor"]));
        let at = second(event["timestamp"].as_str().expect("a time"));
        let about = self.name(&subject);
        match kind.as_str() {
            "ClaimExpired" | "RunTimedOut" | "SessionExpired" | "ApprovalTimedOut" => {
                let all = self.late(at);
                let Some(late) = all.iter().find(|late| late.subject == subject) else {
                    let doubtful = self.task_of(event).is_some_and(|task| self.tasks[&task].doubtful);
                    return (!doubtful).then(|| format!("{kind} of {about} before it was due"));
                };
                let due: Vec<String> = late.rules.values().map(|end| time(*end)).collect();
                let said = text(&event["payload"]["due_at"]);
                (!late.doubtful && !due.contains(&said))
                    .then(|| format!("{kind} of {about} says due_at '{said}', not {}", due.join(" or ")))
            }
            "DeepWorkExpired" => {
                let work = self.deep_works.get(&subject)?;
                (at <= work.until).then(|| format!("{kind} of {subject} before {}", time(work.until)))
            }
            "RunStarted" | "Heartbeat" | "ClaimRenewed" | "RunFinished" | "TaskSucceeded" | "TaskFailed"
                if actor.starts_with("agent:") =>
            {
                let task = self.task_of(event).filter(|task| self.tasks.contains_key(task))?;
                let lost = self.is_late(&task, at) && !self.tasks[&task].doubtful;
                lost.then(|| format!("{kind} of {about} by {actor}, whose claim had expired"))
            }
            "SessionRenewed" => {
                let session = self.sessions.get(&subject)?;
                (at > session.until).then(|| format!("{kind} of {about}, which expired at {}", time(session.until)))
            }
            // The clock of these tests only moves forward: the machine is never suspended.
            "MachineSuspended" | "MachineBooted" => Some(format!("{kind} although the machine was never suspended")),
            _ => None,
        }
    }

    /// The task that an event concerns.
    fn task_of(&self, event: &Value) -> Option<String> {
        let subject = event["subject"].as_str()?;
        match event["payload"]["task_id"].as_str() {
            Some(task) => Some(format!("task:{task}")),
            None => self.runs.get(subject).map_or(Some(subject.to_owned()), |run| Some(run.task.clone())),
        }
    }

    /// Assigns the next short reference to a new subject.
    fn call(&mut self, prefix: &'static str, subject: &str) -> String {
        let made = self.made.entry(prefix).or_default();
        *made += 1;
        let name = format!("{prefix}-{made:04}");
        self.names.insert(subject.to_owned(), name.clone());
        name
    }

    /// Marks claims whose time is suspended although they are already late.
    fn doubt(&mut self, at: i64, concerns: impl Fn(&Task) -> bool) {
        for late in self.late(at) {
            if let Some(task) = late.task.and_then(|task| self.tasks.get_mut(&task)).filter(|task| concerns(task)) {
                task.doubtful = true;
            }
        }
    }

    /// Applies the next event of the log.
    pub fn take(&mut self, event: &Value) {
        let at = second(event["timestamp"].as_str().expect("a time"));
        let payload = &event["payload"];
        let text = |member: &str| payload[member].as_str().map(str::to_owned);
        let project = || text("project_id").unwrap_or_else(|| "main".to_owned());
        let agent = || format!("agent:{}", text("agent_id").unwrap_or_default());
        let subject = event["subject"].as_str().expect("a subject").to_owned();
        let kind = event["event_type"].as_str().expect("a text");
        match kind {
            "TaskProposed" => {
                let (name, project) = (self.call("T", &subject), project());
                let fresh = Task {
                    name,
                    project,
                    phase: Phase::Waiting,
                    holder: None,
                    run: None,
                    lease: 0,
                    from: at,
                    doubtful: false,
                };
                self.tasks.insert(subject, fresh);
            }
            "TaskAssigned" => {
                let task = self.tasks.get_mut(&subject).expect("a task");
                task.lease = payload["lease_seconds"].as_i64().expect("a lease");
                (task.phase, task.holder, task.from, task.doubtful) = (Phase::Assigned, text("holder"), at, false);
            }
            "ClaimRenewed" => self.tasks.get_mut(&subject).expect("a task").from = at,
            "TaskReady" | "ClaimExpired" => self.tasks.get_mut(&subject).expect("a task").phase = Phase::Ready,
            "TaskFailed" | "TaskRetrying" => self.tasks.get_mut(&subject).expect("a task").phase = Phase::Waiting,
            "TaskSucceeded" | "TaskAborted" | "TaskArchived" => {
                self.tasks.get_mut(&subject).expect("a task").phase = Phase::Over;
            }
            "RunStarted" => {
                self.call("RUN", &subject);
                let task = format!("task:{}", text("task_id").expect("a task"));
                let held = self.tasks.get_mut(&task).expect("a task");
                (held.phase, held.run) = (Phase::Running, Some(subject.clone()));
                let may_take = payload["timeout_seconds"].as_i64();
                self.runs.insert(subject, Run { task, began: at, heard: at, may_take });
            }
            "Heartbeat" => self.runs.get_mut(&subject).expect("a run").heard = at,
            "RunFinished" | "RunTimedOut" | "RunCrashed" => {
                let task = self.runs.remove(&subject).expect("a run").task;
                self.tasks.get_mut(&task).expect("a task").phase = Phase::Waiting;
            }
            "SessionStarted" => {
                self.call("S", &subject);
                let until = at + payload["ttl_seconds"].as_i64().expect("a time to live");
                self.sessions.insert(subject, Session { project: project(), until, open: true });
            }
            "SessionRenewed" | "SessionCut" => {
                let session = self.sessions.get_mut(&subject).expect("a session");
                let renewed = payload["ttl_seconds"].as_i64().map(|ttl| at + ttl);
                let cut = payload["seconds"].as_i64().map(|left| session.until.min(at + left));
                session.until = renewed.or(cut).expect("how long");
            }
            "SessionEnded" | "SessionExpired" => self.sessions.get_mut(&subject).expect("a session").open = false,
            "DecisionRequested" => {
                let name = self.call("DEC", &subject);
                self.decisions.insert(subject, Decision { name, asked: at, open: true, timed_out: false });
            }
            "ApprovalTimedOut" => self.decisions.get_mut(&subject).expect("a decision").timed_out = true,
            "DecisionApproved" | "DecisionRejected" | "DecisionSuperseded" => {
                self.decisions.get_mut(&subject).expect("a decision").open = false;
            }
            "ProjectPaused" => {
                let name = subject.trim_start_matches("project:").to_owned();
                self.doubt(at, |task| task.project == name);
                self.paused.insert(name);
            }
            "ProjectResumed" => {
                let name = subject.trim_start_matches("project:").to_owned();
                self.paused.remove(&name);
                self.resumed.insert(name, at);
            }
            kind if kind.starts_with("DeepWork") => self.take_deep_work(kind, at, subject, &agent(), payload),
            _ => {}
        }
        // A task without a holder cannot be in doubt.
        for task in self.tasks.values_mut().filter(|task| !matches!(task.phase, Phase::Assigned | Phase::Running)) {
            task.doubtful = false;
        }
    }

    fn take_deep_work(&mut self, kind: &str, at: i64, subject: String, agent: &str, payload: &Value) {
        let minutes = payload["minutes"].as_i64().unwrap_or_default();
        if kind == "DeepWorkStarted" {
            // Flexible deep work suspends no deadline of this model.
            if payload["mode"] == "strict" {
                self.doubt(at, |task| task.holder.as_deref() == Some(agent));
                let before = self.strict.get(agent).map_or(i64::MIN, |(work, before)| work.until.max(*before));
                let work = DeepWork { began: at, until: at + 60 * minutes, over: false, extended: 0 };
                self.deep_works.insert(subject, work);
                self.strict.insert(agent.to_owned(), (work, before));
            }
            return;
        }
        let Some(work) = self.deep_works.get_mut(&subject) else { return };
        match kind {
            "DeepWorkExtended" => (work.until, work.extended) = (work.until + 60 * minutes, work.extended + 1),
            // Completing it late changes nothing: it ended at its declared time.
            "DeepWorkCompleted" => (work.until, work.over) = (work.until.min(at), true),
            _ => work.over = true,
        }
        if let Some((newest, _)) = self.strict.get_mut(agent).filter(|(newest, _)| newest.began == work.began) {
            *newest = *work;
        }
    }
}
