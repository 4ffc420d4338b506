//! The oracle of the audit's questions: what the log says, read from its files as JSON without the library.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::test_vault::Reply;

/// Lists of events cut a longer text.
const SUMMARY_MAX_CHARS: usize = 80;

/// How `hf-task explain` says that a constraint gave a task priority.
pub const PUT_FIRST: &str = " put it first: ";

/// A member of an event that is a text.
#[track_caller]
pub fn text<'a>(event: &'a Value, member: &str) -> &'a str {
    event[member].as_str().unwrap_or_else(|| panic!("{member} is missing: {event:#}"))
}

/// A member of the payload that is a text.
pub fn said<'a>(event: &'a Value, member: &str) -> Option<&'a str> {
    event["payload"][member].as_str()
}

pub fn is_kind(event: &Value, kind: &str) -> bool {
    event["event_type"] == kind
}

/// A count with its noun, as replies spell it.
pub fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// An event as lists show it, with the text that sums it up.
pub fn row(event: &Value) -> String {
    let words = ["event_id", "timestamp", "event_type", "subject", "actor"].map(|member| text(event, member)).join(" ");
    let headline = ["title", "summary", "reason", "rationale", "text"].iter().find_map(|member| said(event, member));
    let Some(long) = headline else {
        let retry = &event["payload"];
        return match retry["attempt"].is_u64() {
            true => format!("{words} attempt {} of {}", retry["attempt"], retry["of"]),
            false => words,
        };
    };
    let class = said(event, "error_class").map(|class| format!("{class}: ")).unwrap_or_default();
    match long.chars().count() > SUMMARY_MAX_CHARS {
        true => format!("{words} {class}{}…", long.chars().take(SUMMARY_MAX_CHARS).collect::<String>()),
        false => format!("{words} {class}{long}"),
    }
}

/// The oracle: the events of a vault, read from its files as JSON.
pub struct Log {
    pub events: Vec<Value>,
    /// Where each event is.
    places: BTreeMap<String, usize>,
    /// The short references of tasks, requirements, decisions and constraints, by subject: numbered as they came.
    pub names: BTreeMap<String, String>,
}

impl Log {
    pub fn read(vault: &Path) -> Log {
        let mut files: Vec<_> = fs::read_dir(vault.join("Akashic/events"))
            .expect("a directory")
            .flat_map(|month| fs::read_dir(month.expect("an entry").path()).expect("a directory"))
            .map(|day| day.expect("an entry").path())
            .collect();
        files.sort();
        let lines: String = files.iter().map(|file| fs::read_to_string(file).expect("a segment")).collect();
        let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let places = events.iter().enumerate().map(|(n, event)| (text(event, "event_id").to_owned(), n)).collect();
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for (kind, prefix) in [
            ("TaskProposed", "T"),
            ("RequirementProposed", "REQ"),
            ("DecisionRequested", "DEC"),
            ("ConstraintApplied", "CON"),
        ] {
            for (n, event) in events.iter().filter(|event| is_kind(event, kind)).enumerate() {
                names.insert(text(event, "subject").to_owned(), format!("{prefix}-{:04}", n + 1));
            }
        }
        Log { events, places, names }
    }

    pub fn of_kind(&self, kind: &str) -> impl DoubleEndedIterator<Item = &Value> + use<'_> {
        let kind = kind.to_owned();
        self.events.iter().filter(move |event| is_kind(event, &kind))
    }

    /// The events of one kind about a subject.
    pub fn about(&self, kind: &str, subject: &str) -> impl DoubleEndedIterator<Item = &Value> + use<'_> {
        let subject = subject.to_owned();
        self.of_kind(kind).filter(move |event| event["subject"] == *subject)
    }

    #[track_caller]
    fn get(&self, id: &str) -> &Value {
        &self.events[self.place(id)]
    }

    #[track_caller]
    pub fn place(&self, id: &str) -> usize {
        *self.places.get(id).unwrap_or_else(|| panic!("no event {id}"))
    }

    /// The causes of an event.
    pub fn parents(&self, event: &Value) -> Vec<&Value> {
        let ids = event["parents"].as_array().expect("a list").iter();
        ids.map(|id| self.get(id.as_str().expect("an id"))).collect()
    }

    pub fn tasks(&self) -> Vec<&Value> {
        self.of_kind("TaskProposed").collect()
    }

    /// The last change of a task. The start of a run is one; an escalation changes nothing.
    fn last_of(&self, task: &str) -> &Value {
        let id = task.strip_prefix("task:");
        let is_its = |event: &&Value| match text(event, "event_type") {
            "RunStarted" => said(event, "task_id") == id,
            "EscalationRequired" => false,
            _ => event["subject"] == task,
        };
        self.events.iter().rfind(is_its).expect("an event")
    }

    /// Every cause of an event with its distance, and the event itself.
    fn causes(&self, event: &Value) -> BTreeMap<usize, i64> {
        let first = self.place(text(event, "event_id"));
        let mut found = BTreeMap::from([(first, 0)]);
        let mut queue = VecDeque::from([first]);
        while let Some(place) = queue.pop_front() {
            for parent in self.parents(&self.events[place]) {
                let parent = self.place(text(parent, "event_id"));
                if !found.contains_key(&parent) {
                    found.insert(parent, found[&place] - 1);
                    queue.push_back(parent);
                }
            }
        }
        found
    }

    /// The whole reply of `hf-lineage TASK --up`.
    pub fn lineage(&self, task: &str) -> String {
        let root = self.last_of(task);
        let causes = self.causes(root);
        let (mut nodes, mut edges, mut links) = (String::new(), String::new(), 0);
        for (place, distance) in &causes {
            let event = &self.events[*place];
            writeln!(nodes, "NODE:{distance} {}", row(event)).expect("a string");
            for parent in self.parents(event) {
                links += 1;
                writeln!(edges, "EDGE:{} {}", text(parent, "event_id"), text(event, "event_id")).expect("a string");
            }
        }
        let (count, root) = (causes.len(), text(root, "event_id"));
        let sum = format!("{}, {}", counted(count, "event", "events"), counted(links, "link", "links"));
        format!("EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:{sum}\nROOT:{root}\nCOUNT:{count}\nTRUNCATED:no\n{nodes}{edges}")
    }

    pub fn name<'a>(&'a self, subject: &'a str) -> &'a str {
        self.names.get(subject).map_or(subject, String::as_str)
    }

    /// An event in the words of a reader: `DecisionApproved DEC-0001`.
    pub fn spoken(&self, event: &Value) -> String {
        format!("{} {}", text(event, "event_type"), self.name(text(event, "subject")))
    }

    /// The tasks that repeat a task, directly or not, and the task itself.
    fn repeats(&self, task: &str) -> Vec<String> {
        let mut all = vec![task.to_owned()];
        for proposed in self.tasks() {
            let before = said(proposed, "rework_of").map(|id| format!("task:{id}"));
            if before.is_some_and(|before| all.contains(&before)) {
                all.push(text(proposed, "subject").to_owned());
            }
        }
        all
    }

    /// The decisions about a subject.
    fn decisions(&self, target: &str) -> Vec<&str> {
        let about = self.of_kind("DecisionRequested").filter(|asked| said(asked, "target") == Some(target));
        about.map(|asked| text(asked, "subject")).collect()
    }

    /// The approval of a subject that was in force at some event.
    pub fn approval(&self, target: &str, before: usize) -> Option<&Value> {
        let decisions = self.decisions(target);
        self.events[..before]
            .iter()
            .rfind(|event| is_kind(event, "DecisionApproved") && decisions.contains(&text(event, "subject")))
    }

    /// Why a task exists and may be done, by what the events say and not by their parents.
    pub fn reasons<'a>(&'a self, proposed: &'a Value) -> Vec<&'a Value> {
        let task = text(proposed, "subject");
        let mut reasons = vec![proposed];
        let requirement = said(proposed, "requirement_id").map(|id| format!("requirement:{id}"));
        if let Some(requirement) = &requirement {
            reasons.extend(self.about("RequirementProposed", requirement));
        }
        // What was found wrong, or the end of what is repeated.
        if let Some(before) = said(proposed, "rework_of").map(|id| format!("task:{id}")) {
            reasons.extend(self.about("TaskProposed", &before));
            let place = self.place(text(proposed, "event_id"));
            let why = self.events[..place].iter().rfind(|event| {
                is_kind(event, "ArtifactInvalidated") || (is_kind(event, "TaskAborted") && event["subject"] == *before)
            });
            reasons.extend(why);
        }
        // What had to happen before it could start.
        if let Some(ready) = self.about("TaskReady", task).next() {
            let place = self.place(text(ready, "event_id"));
            if let Some(requirement) = &requirement {
                let approved = self.events[..place]
                    .iter()
                    .rfind(|event| is_kind(event, "RequirementApproved") && event["subject"] == **requirement);
                reasons.push(approved.expect("it was approved"));
                reasons.push(self.approval(requirement, place).expect("it was approved"));
            }
            if proposed["payload"]["destructive"] == true {
                reasons.push(self.approval(task, place).expect("it was approved"));
            }
            for other in proposed["payload"]["after"].as_array().into_iter().flatten() {
                let done = self.repeats(&format!("task:{}", other.as_str().expect("an id")));
                let is_done = |event: &&Value| {
                    is_kind(event, "TaskSucceeded") && done.iter().any(|task| event["subject"] == **task)
                };
                reasons.push(self.events[..place].iter().find(is_done).expect("it was done"));
            }
        }
        reasons
    }

    /// The tasks, requirements, decisions and constraints that a task has to do with, by what the events say.
    pub fn relatives(&self, task: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut queue = vec![task.to_owned()];
        while let Some(subject) = queue.pop() {
            if !found.insert(subject.clone()) {
                continue;
            }
            queue.extend(self.decisions(&subject).into_iter().map(str::to_owned));
            for event in self.events.iter().filter(|event| event["subject"] == *subject) {
                let named = [("requirement_id", "requirement"), ("rework_of", "task"), ("constraint_id", "constraint")];
                for (member, entity) in named {
                    queue.extend(said(event, member).map(|id| format!("{entity}:{id}")));
                }
                for other in event["payload"]["after"].as_array().into_iter().flatten() {
                    queue.extend(self.repeats(&format!("task:{}", other.as_str().expect("an id"))));
                }
            }
        }
        found
    }

    /// The constraints that put a task first, by its assignments.
    pub fn put_first(&self, task: &str) -> Vec<String> {
        let constraints = self.about("TaskAssigned", task).filter_map(|assigned| said(assigned, "constraint_id"));
        constraints.map(|id| format!("constraint:{id}")).collect()
    }

    fn text_of(&self, constraint: &str) -> &str {
        said(self.about("ConstraintApplied", constraint).next().expect("it was applied"), "text").expect("a text")
    }

    /// Why a task was aborted, from the causes of the event and not from its own reason.
    pub fn grounds(&self, aborted: &Value) -> String {
        let task = text(aborted, "subject");
        let reason = |event: &Value| said(event, "reason").expect("a reason").to_owned();
        for cause in self.parents(aborted) {
            let name = self.name(text(cause, "subject"));
            match text(cause, "event_type") {
                "TaskFailed" if cause["subject"] == task => {
                    let retries = self.about("TaskRetrying", task).count();
                    let gave_up = format!("; gave up after {}", counted(retries, "retry", "retries"));
                    let gave_up = if retries > 0 && said(cause, "error_class") == Some("transient") {
                        gave_up
                    } else {
                        String::new()
                    };
                    return reason(cause) + &gave_up;
                }
                "DecisionRejected" => {
                    let why = said(cause, "rationale").expect("a reason");
                    return format!("{name} was rejected by {}: {why}", text(cause, "actor"));
                }
                "RequirementRejected" => return format!("{name} was rejected: {}", reason(cause)),
                "RequirementSuperseded" => {
                    let by = said(cause, "by").map(|id| format!("requirement:{id}")).expect("another requirement");
                    return format!("{name} was superseded by {}", self.name(&by));
                }
                "TaskAborted" => {
                    // It waited for the task that was aborted, or for one that this task repeats.
                    let waits_for = self.about("TaskProposed", task).next().expect("it was proposed");
                    let waits_for = waits_for["payload"]["after"].as_array().into_iter().flatten();
                    let waits_for: Vec<String> =
                        waits_for.map(|id| format!("task:{}", id.as_str().expect("an id"))).collect();
                    let aborted = text(cause, "subject").to_owned();
                    let original = match waits_for.contains(&aborted) {
                        true => String::new(),
                        false => {
                            let repeated = waits_for.iter().find(|other| self.repeats(other).contains(&aborted));
                            format!(", the rework of {}", self.name(repeated.expect("it repeats one of them")))
                        }
                    };
                    return format!("{name}{original}, which it depends on, was aborted: {}", self.grounds(cause));
                }
                "EmergencyStopIssued" => return format!("emergency_stop: {}", reason(cause)),
                _ => {}
            }
        }
        assert!(!text(aborted, "actor").starts_with("core:"), "without grounds: {aborted:#}");
        reason(aborted)
    }

    /// What `hf-task explain` has to say about priority.
    pub fn preferred(&self, task: &str) -> Vec<String> {
        let line = |con: &String| format!("{}{PUT_FIRST}{}", self.name(con), self.text_of(con));
        self.put_first(task).iter().map(line).collect()
    }

    /// What `hf-task explain` has to say about failures, retries and the end of a task.
    pub fn explained(&self, task: &str) -> Vec<String> {
        let name = self.name(task);
        let mut lines = Vec::new();
        let aborted = self.about("TaskAborted", task).next();
        if let Some(done) = self.about("TaskSucceeded", task).next() {
            lines.push(format!("{name} succeeded at {}", text(done, "timestamp")));
        }
        if let Some(aborted) = aborted {
            let by = text(aborted, "actor");
            let by = if by.starts_with("core:") { String::new() } else { format!(" by {by}") };
            lines.push(format!("{name} was aborted at {}{by}: {}", text(aborted, "timestamp"), self.grounds(aborted)));
        }
        if let Some(failure) = self.about("TaskFailed", task).last() {
            let is_last = aborted.is_some_and(|aborted| self.parents(aborted).contains(&failure));
            let what = if is_last { "it" } else { "an earlier attempt" };
            let [class, reason] = ["error_class", "reason"].map(|member| said(failure, member).expect("a text"));
            let retried = match self.about("TaskRetrying", task).count() {
                0 => "not retried".to_owned(),
                1 => "retried once".to_owned(),
                count => format!("retried {count} times"),
            };
            lines.push(format!("{what} failed ({class}): {reason}; {retried}"));
        }
        let id = task.strip_prefix("task:").expect("a task");
        // If it was still running, its failure says why.
        let is_failed = self
            .about("TaskFailed", task)
            .last()
            .is_some_and(|failure| said(failure, "reason").is_some_and(|why| why.starts_with("rework")));
        let results = self.of_kind("ArtifactDeclared").enumerate();
        for (n, result) in results.filter(|(_, result)| said(result, "task_id") == Some(id) && !is_failed) {
            for found in self.about("ArtifactInvalidated", text(result, "subject")) {
                let why = said(found, "reason").map(|why| format!(": {why}")).unwrap_or_default();
                lines.push(format!("its result ART-{:04} was rejected{why}", n + 1));
            }
        }
        if let Some(again) = self.tasks().into_iter().rfind(|other| said(other, "rework_of") == Some(id)) {
            let again = text(again, "subject");
            lines.push(format!("{} repeats the work and is {}", self.name(again), self.state(again)));
        }
        let proposed = self.about("TaskProposed", task).next().expect("it was proposed");
        if let Some(repeated) = said(proposed, "rework_of") {
            let why = said(proposed, "reason").map(|why| format!(": {why}")).unwrap_or_default();
            lines.push(format!("{name} repeats {}{why}", self.name(&format!("task:{repeated}"))));
        }
        lines
    }

    /// The state of a task, from its last event.
    pub fn state(&self, task: &str) -> &'static str {
        match text(self.last_of(task), "event_type") {
            "TaskProposed" => "Proposed",
            "TaskReady" => "Ready",
            "TaskAssigned" => "Assigned",
            "RunStarted" => "Running",
            "TaskSucceeded" => "Succeeded",
            "TaskAborted" => "Aborted",
            other => panic!("{other} is not expected at the end"),
        }
    }
}

/// A reply of `hf-lineage`, as its reader sees it.
pub struct Answer {
    /// Type, subject and actor, by id.
    pub nodes: BTreeMap<String, [String; 3]>,
    pub edges: Vec<[String; 2]>,
}

impl Answer {
    pub fn of(reply: &Reply) -> Answer {
        let node = |line: &&str| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[1].to_owned(), [words[3], words[4], words[5]].map(str::to_owned))
        };
        let edge = |line: &&str| {
            let (cause, event) = line.split_once(' ').expect("two ids");
            [cause, event].map(str::to_owned)
        };
        Answer {
            nodes: reply.all("NODE").iter().map(node).collect(),
            edges: reply.all("EDGE").iter().map(edge).collect(),
        }
    }

    /// The causes of an event.
    pub fn above<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a str> {
        self.edges.iter().filter(move |[_, event]| event == id).map(|[cause, _]| cause.as_str())
    }

    /// The requirement that a task was proposed for: the first above its proposal.
    pub fn requirement(&self, task: &str) -> Option<&str> {
        let is_proposal = |(_, [kind, subject, _]): &(&String, &[String; 3])| kind == "TaskProposed" && subject == task;
        let proposal = self.nodes.iter().find(is_proposal).expect("it is in the answer").0;
        let mut queue = VecDeque::from([proposal.as_str()]);
        while let Some(id) = queue.pop_front() {
            let [_, subject, _] = &self.nodes[id];
            if subject.starts_with("requirement:") {
                return Some(subject);
            }
            queue.extend(self.above(id));
        }
        None
    }
}
