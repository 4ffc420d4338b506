//! What a log says about the world, computed once more by hand.
//!
//! This model is written from the design alone and shares nothing with the toolkit: events are JSON, times are seconds,
//! entities are found by their short references. `fold` applies events, `react` says what must follow from one, `due`
//! says what is late, `agents` judges agents.

pub mod agents;
pub mod due;
pub mod fold;
pub mod react;

use std::collections::{BTreeMap, BTreeSet};

/// The states of all entities; each entity uses its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Proposed,
    Ready,
    Assigned,
    Running,
    Failed,
    Retrying,
    Succeeded,
    Aborted,
    Archived,
    Analyzed,
    Approved,
    Rejected,
    Implemented,
    Verified,
    Superseded,
    Blocked,
    Requested,
    Escalated,
    Active,
    Paused,
    Ended,
    Expired,
    Open,
    Acknowledged,
    Closed,
    Removed,
    Stopped,
    Declared,
    Materialized,
    Validated,
    Invalidated,
    Corrupted,
}

use Phase::{
    Aborted, Active, Approved, Archived, Assigned, Escalated, Failed, Open, Paused, Ready, Rejected, Requested,
    Retrying, Running, Succeeded, Superseded, Verified,
};

/// An act with its author and reason.
#[derive(Clone, Debug)]
pub struct Act {
    pub at: i64,
    pub by: String,
    pub reason: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub title: String,
    pub project: String,
    pub proposed_by: String,
    pub proposed_at: i64,
    pub requirement: Option<String>,
    pub after: Vec<String>,
    pub destructive: bool,
    /// An operator approved the destructive operation.
    pub approved: bool,
    pub job: bool,
    /// What a job runs.
    pub command: Vec<String>,
    pub max_retries: Option<i64>,
    pub rework_of: Option<String>,
    /// What was wrong with the result that it repeats.
    pub rework_reason: Option<String>,
    pub phase: Phase,
    pub since: i64,
    /// How many events the log had when it was last assigned.
    pub assigned: usize,
    pub holder: Option<String>,
    /// Who held it before, and lost it without an act of their own.
    pub lost_by: BTreeSet<String>,
    pub lease: Option<i64>,
    pub renewed: i64,
    pub put_first_by: Option<String>,
    pub run: Option<String>,
    /// Class and reason of the newest failure.
    pub failure: Option<(String, String)>,
    /// That failure was not retried.
    pub failed_for_good: bool,
    pub retries: usize,
    pub end: Option<Act>,
    /// How many events the log had when it ended.
    pub ended: usize,
    /// A stop aborted it.
    pub by_stop: bool,
    /// Whether a person ended it: by a stop, by cancelling or aborting it, or by saying no.
    pub by_person: bool,
    /// It is in this phase only because of something that is due: why, and since when.
    pub due: Option<(i64, String)>,
}

impl Task {
    pub fn is_open(&self) -> bool {
        !matches!(self.phase, Succeeded | Aborted | Archived)
    }

    pub fn is_held(&self) -> bool {
        matches!(self.phase, Assigned | Running)
    }

    /// The gate at which the command of a job waits.
    pub fn gate(&self) -> Option<&str> {
        match self.command.as_slice() {
            [program, gate] if program.ends_with("hold") => Some(gate),
            _ => None,
        }
    }

    /// It is aborted, archived since or not.
    pub fn was_aborted(&self) -> bool {
        matches!(self.phase, Aborted | Archived) && self.end.is_some() && !self.succeeded()
    }

    pub fn succeeded(&self) -> bool {
        self.phase == Succeeded || (self.phase == Archived && self.end.as_ref().is_some_and(|end| end.by.is_empty()))
    }
}

#[derive(Clone, Debug)]
pub struct Requirement {
    pub title: String,
    pub project: String,
    pub phase: Phase,
    /// How many events the log had when it was approved.
    pub approved: Option<usize>,
    /// How often its work had to be done again since then.
    pub returns: usize,
}

impl Requirement {
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Rejected | Superseded | Verified)
    }
}

#[derive(Clone, Debug)]
pub struct Artifact {
    pub task: Option<String>,
    /// What was wrong with it.
    pub reason: Option<String>,
    pub phase: Phase,
}

#[derive(Clone, Debug)]
pub struct Decision {
    pub kind: String,
    /// The short reference of what is to be decided, or of a constraint that may not exist yet its subject.
    pub target: String,
    pub summary: String,
    /// What it does to a constraint: apply or remove.
    pub change: Option<String>,
    pub asked: i64,
    /// How many events the log had when it was asked.
    pub no: usize,
    /// When it timed out, if that is recorded.
    pub timed_out: Option<i64>,
    pub phase: Phase,
}

impl Decision {
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Requested | Escalated)
    }
}

#[derive(Clone, Debug)]
pub struct Run {
    pub task: String,
    pub began: i64,
    /// How many events the log had when it began.
    pub no: usize,
    pub heard: i64,
    pub limit: Option<i64>,
    pub phase: Phase,
}

#[derive(Clone, Debug)]
pub struct Session {
    /// How many events the log had when it began.
    pub no: usize,
    pub agent: String,
    pub project: String,
    pub until: i64,
    pub phase: Phase,
    /// Its agent logged out.
    pub left: bool,
}

#[derive(Clone, Debug)]
pub struct Project {
    pub phase: Phase,
    /// The newest pause, or the archiving.
    pub act: Option<Act>,
    pub resumed: Option<i64>,
    pub drained: bool,
}

#[derive(Clone, Debug)]
pub struct Constraint {
    pub text: String,
    /// The reference of the task or requirement that comes first.
    pub priority: Option<String>,
    pub phase: Phase,
}

#[derive(Clone, Debug)]
pub struct Escalation {
    pub about: String,
    pub reason: Option<String>,
    pub code: Option<String>,
    pub raised: i64,
    pub phase: Phase,
}

#[derive(Clone, Debug)]
pub struct DeepWork {
    pub agent: String,
    pub strict: bool,
    pub began: i64,
    pub until: i64,
    pub extended: u32,
    /// Another declaration continued it.
    pub superseded: bool,
    pub phase: Phase,
}

#[derive(Clone, Debug)]
pub struct Agent {
    pub phase: Phase,
    pub started: i64,
    /// Its start was recorded with its first command, not by an event of its own.
    pub announced: bool,
    /// It was stopped at some time.
    pub was_stopped: bool,
    /// It let the time of something it held run out.
    pub has_lost: bool,
    pub checkpoint: Option<i64>,
    pub activity: Option<i64>,
    pub introspection: Option<i64>,
    /// The newest heartbeat of a run of its own; a job beats by itself.
    pub progress: Option<i64>,
    /// When it last waited for a job.
    pub waited: Option<i64>,
    /// When it last did anything else about a task.
    pub seen: Option<i64>,
    /// The tasks that it lost without an act of its own since its last checkpoint or log.
    pub lost: Vec<String>,
    /// It declared deep work, and the log that closes it is not written yet.
    pub is_diving: bool,
    pub duty: Duty,
    /// Codes of anomalies that are recorded and not cleared.
    pub anomalies: Vec<String>,
}

/// The introspection that an agent owes after deep work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    None,
    /// The next log must be an introspection.
    Due,
    /// It was none, at this time.
    Broken(i64),
}

/// The settings that the lives change.
#[derive(Clone, Debug)]
pub struct Settings {
    pub name: String,
    pub lease: i64,
    pub retries: i64,
    pub concurrent: usize,
    pub oscillations: usize,
    pub approval_hours: i64,
    pub reject_late: bool,
    pub never_seen: i64,
    pub inactive: i64,
    pub introspection: i64,
    pub unchecked: i64,
    pub interval: i64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            name: "hive".to_owned(),
            lease: 900,
            retries: 3,
            concurrent: 10,
            oscillations: 5,
            approval_hours: 24,
            reject_late: false,
            never_seen: 600,
            inactive: 600,
            introspection: 1800,
            unchecked: 600,
            interval: 60,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct World {
    pub settings: Settings,
    pub tasks: BTreeMap<String, Task>,
    pub requirements: BTreeMap<String, Requirement>,
    pub artifacts: BTreeMap<String, Artifact>,
    pub decisions: BTreeMap<String, Decision>,
    pub runs: BTreeMap<String, Run>,
    pub sessions: BTreeMap<String, Session>,
    pub projects: BTreeMap<String, Project>,
    /// In the order of their opening.
    pub opened: Vec<String>,
    pub constraints: BTreeMap<String, Constraint>,
    pub escalations: BTreeMap<String, Escalation>,
    pub deep_works: BTreeMap<String, DeepWork>,
    pub agents: BTreeMap<String, Agent>,
    /// In the order of their first start.
    pub crew: Vec<String>,
    pub stop: Option<Act>,
    /// Beside the log: the open jobs without a supervisor, and the exit codes of those that have ended unrecorded.
    pub lost: BTreeSet<String>,
    pub ended: BTreeMap<String, i64>,
    pub created: i64,
    /// When the newest stop was lifted.
    pub resumed: Option<i64>,
    /// The id and time of the newest event.
    pub last: (String, i64),
    /// How many events were folded.
    pub count: usize,
    /// Short references by subject, and subjects by short reference.
    pub names: BTreeMap<String, String>,
    pub subjects: BTreeMap<String, String>,
    made: BTreeMap<&'static str, usize>,
}

impl World {
    /// The short reference of a subject; anything else stays as it is.
    pub fn name(&self, subject: &str) -> String {
        self.names.get(subject).cloned().unwrap_or_else(|| subject.to_owned())
    }

    /// Gives a new subject its short reference.
    pub fn call(&mut self, prefix: &'static str, subject: &str) -> String {
        let made = self.made.entry(prefix).or_default();
        *made += 1;
        let name = format!("{prefix}-{made:04}");
        self.names.insert(subject.to_owned(), name.clone());
        self.subjects.insert(name.clone(), subject.to_owned());
        name
    }

    pub fn project_phase(&self, project: &str) -> Phase {
        self.projects.get(project).map_or(Active, |project| project.phase)
    }

    pub fn is_paused(&self, project: &str) -> bool {
        self.project_phase(project) == Paused
    }

    pub fn is_archived(&self, project: &str) -> bool {
        self.project_phase(project) == Archived
    }

    /// The project of a task or a requirement.
    pub fn project_of(&self, name: &str) -> Option<&String> {
        let task = self.tasks.get(name).map(|task| &task.project);
        task.or_else(|| self.requirements.get(name).map(|requirement| &requirement.project))
    }

    /// The tasks of a requirement.
    pub fn tasks_of<'a>(&'a self, requirement: &'a str) -> impl Iterator<Item = (&'a String, &'a Task)> {
        self.tasks.iter().filter(move |(_, task)| task.requirement.as_deref() == Some(requirement))
    }

    /// The task that a chain of reworks began with.
    fn root<'a>(&'a self, name: &'a str) -> &'a str {
        self.tasks[name].rework_of.as_ref().map_or(name, |earlier| self.root(earlier))
    }

    /// The reworks of a task: everything that was proposed later to do the same work.
    pub fn reworks<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = (&'a String, &'a Task)> {
        let root = self.root(name);
        self.tasks.iter().filter(move |(other, _)| other.as_str() > name && self.root(other) == root)
    }

    /// The newest rework of a task.
    pub fn rework_of(&self, name: &str) -> Option<&String> {
        let newest = self.reworks(name).next_back()?.0;
        self.tasks.get_key_value(newest).map(|(name, _)| name)
    }

    /// The open questions about something, oldest first.
    pub fn open_decisions<'a>(&'a self, target: &'a str) -> impl Iterator<Item = (&'a String, &'a Decision)> {
        self.decisions.iter().filter(move |(_, decision)| decision.target == target && decision.is_open())
    }

    /// Whether nothing keeps a proposed task from being ready.
    pub fn is_unblocked(&self, task: &Task) -> bool {
        let approved = task.requirement.as_ref().is_none_or(|req| self.requirements[req].phase == Approved);
        let done = task.after.iter().all(|other| self.is_done(other));
        approved && done && (!task.destructive || task.approved)
    }

    /// Whether a task succeeded, itself or by a rework.
    pub fn is_done(&self, name: &str) -> bool {
        self.tasks[name].succeeded() || self.reworks(name).any(|(_, rework)| rework.succeeded())
    }

    /// Whether a task was aborted, and so was the newest attempt to do it again. What a stop aborted waits for another.
    pub fn is_hopeless(&self, name: &str) -> bool {
        let newest = self.rework_of(name).map_or(&self.tasks[name], |rework| &self.tasks[rework]);
        !self.is_done(name) && newest.was_aborted() && !newest.by_stop
    }

    /// A task and those that it does again.
    pub fn chain(&self, name: &str) -> Vec<String> {
        let earlier = self.tasks.keys().filter(|other| other.as_str() <= name);
        earlier.filter(|other| self.root(other) == self.root(name)).cloned().collect()
    }

    /// The tasks of a requirement that were aborted for good since its approval.
    pub fn unmet<'a>(&'a self, requirement: &'a str) -> Vec<(&'a String, &'a Task)> {
        let approved = self.requirements[requirement].approved.unwrap_or_default();
        let unmet = |(name, task): &(&String, &Task)| {
            task.was_aborted() && task.ended > approved && self.rework_of(name).is_none()
        };
        self.tasks_of(requirement).filter(unmet).collect()
    }

    /// The strict deep work that an agent is in.
    pub fn strict(&self, agent: &str, now: i64) -> Option<&DeepWork> {
        let mut works = self.deep_works.values().rev();
        works.find(|work| work.agent == agent && work.strict && work.phase == Open && now <= work.until)
    }

    /// The constraint that puts a task first.
    pub fn priority_of(&self, name: &str, task: &Task) -> Option<&String> {
        let fits = |constraint: &Constraint| {
            let first = constraint.priority.as_deref();
            constraint.phase == Active
                && first.is_some()
                && (first == Some(name) || first == task.requirement.as_deref())
        };
        self.constraints.iter().find(|(_, constraint)| fits(constraint)).map(|(name, _)| name)
    }

    /// The task that a claim without a name takes: of this project, or of any.
    pub fn next_claim(&self, project: Option<&str>) -> Option<String> {
        let here = |of: &str| project.is_none_or(|project| project == of) && self.project_phase(of) == Active;
        let can_start = |task: &Task| task.phase == Ready && !task.job && self.is_unblocked(task);
        let ready = || self.tasks.iter().filter(|(_, task)| here(&task.project) && can_start(task));
        let first =
            ready().filter_map(|(name, task)| Some((self.priority_of(name, task)?.clone(), name.clone()))).min();
        first.map(|(_, name)| name).or_else(|| ready().map(|(name, _)| name.clone()).next())
    }

    /// The jobs, each with its subject.
    pub fn jobs(&self) -> impl Iterator<Item = (&String, &Task, &String)> {
        let jobs = self.tasks.iter().filter(|(_, task)| task.job);
        jobs.map(|(name, task)| (name, task, &self.subjects[name]))
    }

    /// Whether a job that failed for now is tried once more.
    pub fn is_retried(&self, task: &Task) -> bool {
        (task.retries as i64) < task.max_retries.unwrap_or_default() && !self.is_archived(&task.project)
    }

    /// How many times a job was begun.
    pub fn runs_of(&self, name: &str) -> usize {
        self.runs.values().filter(|run| run.task == name).count()
    }

    /// Whether work may begin in a project now.
    pub fn goes_on(&self, project: &str) -> bool {
        self.stop.is_none() && self.project_phase(project) == Active
    }

    /// Whether a claim would be refused for the limit of tasks in progress, now or as soon as the jobs that wait for a
    /// place have taken it.
    pub fn is_full(&self) -> bool {
        let can_start = |task: &Task| task.phase == Ready && self.goes_on(&task.project) && self.is_unblocked(task);
        let waiting = self.jobs().filter(|(_, task, _)| can_start(task)).count();
        self.in_progress() + waiting >= self.settings.concurrent
    }

    /// How many tasks count against the limit of tasks in progress.
    pub fn in_progress(&self) -> usize {
        let waits = |task: &Task| self.project_phase(&task.project) != Active && !(task.job && task.phase == Running);
        let active = self.tasks.values().filter(|task| matches!(task.phase, Assigned | Running | Failed | Retrying));
        active.filter(|task| !waits(task)).count()
    }
}
