//! The four questions of an audit (seed 004, §12.1), each answered by one command for every task of a vault in which
//! work waited, was retried, reworked, rejected, superseded, stopped and lost.
//!
//! | question | command | in the reply |
//! |---|---|---|
//! | why was this task made? | `hf-lineage T --up` | above its TaskProposed, the requirement and the decisions |
//! | why was it given priority? | `hf-lineage T --up` | above its TaskAssigned, ConstraintApplied and its approval |
//! | what failed where? | `hf-log --type TaskFailed --json` | error_class and reason; a parent is the run |
//! | why was it retried or aborted? | `hf-log --subject T --json` | TaskRetrying after its failure, TaskAborted |
//!
//! The text of hf-log has no error_class, and nothing about a retry. `hf-task explain T` answers the second and the last
//! question in words; of several failures it names the last. `hf-log show` gives each of these events in full.
//!
//! The oracle is [`Log`]: it reads the files of the log as JSON and uses nothing of the library. It finds causes in two
//! ways: by `parents`, as the commands do, and by what the events say (`requirement_id`, `after`, `rework_of`,
//! `target`), which shows a parent that is missing or wrong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::support::job_fixture::{TestJobVault, kill};
use crate::support::session_fixture::logged_in;
use crate::support::steps::{governed, ok};
use crate::support::test_vault::{Reply, write_private};
use crate::support::watchdog_fixture::{TASKS_ALONE, moment};

/// Longer than a lease.
const LONG_SILENCE_SECONDS: i64 = 1000;

/// Lists of events cut a longer text.
const SUMMARY_MAX_CHARS: usize = 80;

/// Answers that are wrong today, by question. Whoever mends one deletes its rows; the goal is three empty lists.
///
/// TaskReady has only the last of the things that it waited for as a cause: the approval of its requirement, of a
/// destructive task, and other tasks are missing. A task that was proposed with --rework-of has no link to what it
/// repeats. A task under a requirement that came back has the rework as its cause.
const WRONG_ORIGINS: &[&str] = &[
    "Page: DecisionApproved DEC-0003 is missing",
    "Page: RequirementApproved REQ-0002 is missing",
    "Crawl again: TaskAborted T-0015 is missing",
    "Crawl again: TaskProposed T-0015 is missing",
    "Feed again: TaskAborted T-0016 is missing",
    "Feed again: TaskProposed T-0016 is missing",
    "Purge: DecisionApproved DEC-0010 is missing",
    "Launch: TaskSucceeded T-0002 is missing",
    "Manual: T-0029 has nothing to do with it",
    "Manual: T-0030 has nothing to do with it",
];
/// After a retry, and when the task has ended, explain forgets the constraint.
const WRONG_PRIORITIES: &[&str] = &["Second: not said: CON-0001 put it first: Second things first"];
/// The failure of an earlier attempt reads as the last; a repetition that was aborted is not named.
const WRONG_GROUNDS: &[&str] = &[
    "Crawl: not said: an earlier attempt failed (transient): connection reset; retried once",
    "Crawl: said: it failed (transient): connection reset; retried once",
    "Reader: recorded: T-0016, which it depends on, was aborted: nobody subscribes",
    "Reader: not said: T-0018 was aborted at 2026-01-31T12:17:59Z: T-0019, which it depends on, was aborted: \
     nobody subscribes",
    "Reader: said: T-0018 was aborted at 2026-01-31T12:17:59Z: T-0016, which it depends on, was aborted: \
     nobody subscribes",
];

/// How `hf-task explain` says that a constraint gave a task priority.
const PUT_FIRST: &str = " put it first: ";

/// A vault and what happens in it, one command a second.
struct Life {
    story: TestJobVault,
    seconds: i64,
    /// The references of the tasks, by title.
    tasks: BTreeMap<&'static str, String>,
}

impl Life {
    fn new() -> Life {
        let settings = format!("governance:\n  max_retries: 2\n  max_oscillations: 9\n{TASKS_ALONE}");
        Life { story: TestJobVault::new(&settings), seconds: 0, tasks: BTreeMap::new() }
    }

    /// Moves the clock and runs a command that must succeed. `@Some_title` is the reference of a task.
    #[track_caller]
    fn run(&mut self, words: &[&str]) -> Reply {
        self.seconds += 1;
        self.story.at(&moment(self.seconds).to_string());
        let named = |word: &&str| match word.strip_prefix('@') {
            Some(title) => self.task(&title.replace('_', " ")),
            None => (*word).to_owned(),
        };
        let words: Vec<String> = words.iter().map(named).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.story.run(words[0], &words[1..]).expect_exit(0)
    }

    /// Runs several command lines without spaces in their arguments.
    #[track_caller]
    fn all(&mut self, lines: &[&str]) {
        for line in lines {
            self.run(&line.split(' ').collect::<Vec<_>>());
        }
    }

    #[track_caller]
    fn task(&self, title: &str) -> String {
        self.tasks.get(title).unwrap_or_else(|| panic!("{title} was not proposed")).clone()
    }

    /// Remembers the task that a reply is about.
    #[track_caller]
    fn remember(&mut self, title: &'static str, reply: &Reply) {
        let reference = reply.get("SUM").split(' ').next().expect("a reference").to_owned();
        assert!(reference.starts_with("T-") && self.tasks.insert(title, reference).is_none(), "{title}: {reply:#?}");
    }

    /// Proposes a task with these options.
    #[track_caller]
    fn propose(&mut self, title: &'static str, options: &str) {
        let words: Vec<&str> = ["task", "propose", title].into_iter().chain(options.split_whitespace()).collect();
        let reply = self.run(&words);
        self.remember(title, &reply);
    }

    /// Claims and starts a task by name.
    #[track_caller]
    fn start(&mut self, title: &str) {
        for verb in ["claim", "start"] {
            self.run(&["task", verb, &format!("@{title}")]);
        }
    }

    #[track_caller]
    fn succeed(&mut self, title: &str) {
        self.run(&["task", "succeed", &format!("@{title}")]);
    }

    #[track_caller]
    fn fail(&mut self, title: &str, class: &str, reason: &str) {
        self.run(&["task", "fail", &format!("@{title}"), "--class", class, "--reason", reason]);
    }

    /// Fails a running task for a reason that passes, and starts it again.
    #[track_caller]
    fn retry(&mut self, title: &str, reason: &str) {
        self.fail(title, "transient", reason);
        self.run(&["task", "start", &format!("@{title}")]);
    }

    /// Finds the result of a task invalid, which proposes the task again under the second title.
    #[track_caller]
    fn rework(&mut self, title: &'static str, again: &'static str, reason: &str) {
        let artifact = self.put(title);
        self.run(&["artifact", "invalidate", &artifact, "--reason", reason]);
        self.repeated(title, again);
    }

    /// Stores a result of a task. Returns the reference of the artifact.
    #[track_caller]
    fn put(&mut self, title: &str) -> String {
        let file = format!("{title}.py");
        write_private(&self.story.dir().join(&file), title.as_bytes());
        let reply = self.run(&["artifact", "put", &file, "--for", &format!("@{title}")]);
        reply.get("SUM").split(' ').next().expect("a reference").to_owned()
    }

    /// Remembers the newest task, which repeats another.
    #[track_caller]
    fn repeated(&mut self, title: &str, again: &'static str) {
        let log = self.log();
        let newest = log.of_kind("TaskProposed").last().expect("a task");
        let before = newest["payload"]["rework_of"].as_str().expect("a rework");
        assert_eq!(log.names[&format!("task:{before}")], self.task(title));
        self.tasks.insert(again, log.names[text(newest, "subject")].clone());
    }

    /// Waits for a job that fails.
    #[track_caller]
    fn fails(&self, title: &str) {
        assert_eq!(self.story.poll(&self.task(title)).get("STATUS"), "FAIL", "{title}");
    }

    fn log(&self) -> Log {
        Log::read(&self.story.vault())
    }

    /// The title under which a task was remembered.
    fn title(&self, reference: &str) -> &'static str {
        self.tasks.iter().find(|(_, known)| *known == reference).expect("a task of this life").0
    }
}

/// A life in which everything happens that an audit may ask about.
#[track_caller]
fn rich_life() -> Life {
    let mut life = Life::new();
    // Login is approved, Docs later, Shop is rejected, Old is superseded, Small is implemented and comes back.
    life.all(&["require propose Login", "require analyze REQ-0001 Easy."]);
    life.run(&["decide", "approve", "DEC-0001", "--comment", "wanted by everybody"]);
    life.all(&["require propose Docs", "require propose Shop", "require propose Old", "require propose Small"]);
    life.all(&["require analyze REQ-0004 Easy.", "decide approve DEC-0002"]);
    life.propose("Form", "--requirement REQ-0001");
    life.propose("Page", "--requirement REQ-0002 --after @Form");
    life.propose("Cart", "--requirement REQ-0003");
    life.propose("Checkout", "--after @Cart");
    life.propose("Legacy", "--requirement REQ-0004");
    life.propose("Import", "--requirement REQ-0004");
    life.run(&["require", "analyze", "REQ-0002", "Some pages."]);
    life.run(&["decide", "approve", "DEC-0003", "--comment", "needed for the release"]);
    life.propose("Guide", "--requirement REQ-0002 --after @Form");
    life.run(&["require", "analyze", "REQ-0003", "Expensive."]);
    life.run(&["decide", "reject", "DEC-0004", "--reason", "no money"]);
    life.start("Import");
    life.all(&["require supersede REQ-0004 --by REQ-0001"]);

    // Retried and done; retried until it gave up; failed for good.
    life.propose("Flaky", "--requirement REQ-0001");
    life.propose("Auth", "--requirement REQ-0001");
    life.start("Form");
    life.retry("Form", "network");
    life.retry("Form", "over quota");
    life.succeed("Form");
    life.start("Flaky");
    life.retry("Flaky", "no name server");
    life.retry("Flaky", "no route");
    life.fail("Flaky", "transient", "still no route");
    life.start("Auth");
    life.fail("Auth", "permanent", "wrong password");

    // A run that fell silent; another agent finishes the work.
    life.propose("Search", "--requirement REQ-0002");
    life.all(&["task claim @Search --actor agent:slow", "task start @Search --actor agent:slow"]);
    life.seconds += LONG_SILENCE_SECONDS;
    let late = moment(life.seconds).to_string();
    life.story.at(&late);
    life.story.run("watchdog", &[]).expect_exit(1);
    life.all(&["task claim @Search --actor agent:quick", "task start @Search --actor agent:quick"]);
    life.all(&["task succeed @Search --actor agent:quick"]);

    // Reworked while it ran, and after it was done.
    life.propose("Draft", "--requirement REQ-0002");
    life.start("Draft");
    life.rework("Draft", "Draft again", "no tests");
    life.start("Draft again");
    life.succeed("Draft again");
    life.propose("Poster", "--requirement REQ-0002");
    life.start("Poster");
    let poster = life.put("Poster");
    life.succeed("Poster");
    life.run(&["artifact", "invalidate", &poster, "--reason", "wrong colours"]);
    life.repeated("Poster", "Poster again");

    // Stopped during its second attempt, and repeated afterwards.
    life.propose("Crawl", "--requirement REQ-0001");
    life.start("Crawl");
    life.retry("Crawl", "connection reset");
    life.propose("Feed", "--requirement REQ-0001");
    life.start("Feed");
    life.run(&["stop", "it hurts others"]);
    life.all(&["resume --system"]);
    let again = life.run(&["task", "propose", "--rework-of", "@Crawl"]);
    life.remember("Crawl again", &again);
    life.start("Crawl again");
    life.succeed("Crawl again");
    // What waits for a repeated task is aborted with the repetition.
    life.propose("Reader", "--after @Feed");
    let again = life.run(&["task", "propose", "--rework-of", "@Feed"]);
    life.remember("Feed again", &again);
    life.run(&["task", "abort", "@Feed_again", "--reason", "nobody subscribes"]);

    // Put first: one is done after a retry, one is still claimed. A constraint that was rejected puts nothing first.
    life.propose("Later", "--requirement REQ-0002");
    life.propose("Second", "--requirement REQ-0002");
    life.run(&["constraint", "apply", "Second things first", "--priority", "@Second"]);
    life.run(&["decide", "approve", "DEC-0005", "--comment", "the fair is on Monday"]);
    life.run(&["constraint", "apply", "Later comes first", "--priority", "@Later"]);
    life.run(&["decide", "reject", "DEC-0006", "--reason", "it can wait"]);
    assert_eq!(life.run(&["task", "claim"]).get("SUM"), format!("{} is Assigned: Second", life.task("Second")));
    life.all(&["task start @Second"]);
    life.retry("Second", "disk full");
    life.succeed("Second");
    life.all(&["constraint remove CON-0001", "decide approve DEC-0007"]);
    life.propose("Third", "--requirement REQ-0002");
    life.run(&["constraint", "apply", "Third before the rest", "--priority", "@Third"]);
    life.all(&["decide approve DEC-0008"]);
    assert_eq!(life.run(&["task", "claim"]).get("SUM"), format!("{} is Assigned: Third", life.task("Third")));

    // Destructive: rejected; and approved while it still waited for something else.
    life.propose("Wipe", "--destructive");
    life.run(&["decide", "reject", "DEC-0009", "--reason", "too dangerous"]);
    life.propose("Purge", "--destructive --after @Guide");
    life.run(&["decide", "approve", "DEC-0010", "--comment", "there is a backup"]);
    life.propose("Launch", "--after @Page --after @Guide");
    life.start("Page");
    life.succeed("Page");
    life.start("Guide");
    life.succeed("Guide");

    // Aborted by an operator, with everything behind it.
    life.propose("Banner", "");
    life.propose("Slogan", "--after @Banner");
    life.propose("Print", "--after @Slogan");
    life.run(&["task", "abort", "@Banner", "--reason", "nobody reads banners"]);

    // An implemented requirement comes back with a rework, and gets another task.
    life.all(&["require analyze REQ-0005 Easy.", "decide approve DEC-0011"]);
    life.propose("Tool", "--requirement REQ-0005");
    life.start("Tool");
    let tool = life.put("Tool");
    life.succeed("Tool");
    life.run(&["artifact", "invalidate", &tool, "--reason", "does nothing"]);
    life.repeated("Tool", "Tool again");
    life.propose("Manual", "--requirement REQ-0005");
    life.run(&["constraint", "apply", "Small things first", "--priority", "REQ-0005"]);
    life.all(&["decide approve DEC-0012"]);
    assert_eq!(life.run(&["task", "claim"]).get("SUM"), format!("{} is Assigned: Tool", life.task("Tool again")));
    life.all(&["task start @Tool_again"]);

    jobs(&mut life);
    life
}

/// A job that fails, one that is killed until it gives up, one that is lost, and one that is cancelled.
#[track_caller]
fn jobs(life: &mut Life) {
    let mut at = life.story.gate("at");
    let fired = life.story.fire("exit 3");
    life.remember("job that fails", &fired);
    life.fails("job that fails");
    let fired = life.story.fire_with(&["--retries", "1"], "kill -9 $$");
    life.remember("job that is killed", &fired);
    life.fails("job that is killed");
    let fired = life.story.fire("echo up >at; sleep 1000");
    life.remember("job that is lost", &fired);
    at.line();
    let [supervisor, command] = life.story.pids(&life.task("job that is lost"));
    // The supervisor is held while its command is killed, so that it sees no end.
    for (pid, signal) in [(supervisor, Signal::STOP), (command, Signal::KILL)] {
        kill_process_group(Pid::from_raw(pid).expect("a pid"), signal).expect("it lives");
    }
    kill(supervisor, Signal::KILL);
    life.fails("job that is lost");
    let fired = life.story.fire("echo up >at; sleep 1000");
    life.remember("job that is cancelled", &fired);
    at.line();
    ok(&life.story, &format!("hf-job cancel {}", life.task("job that is cancelled")));
    life.story.gone();
}

/// A member of an event that is a text.
#[track_caller]
fn text<'a>(event: &'a Value, member: &str) -> &'a str {
    event[member].as_str().unwrap_or_else(|| panic!("{member} is missing: {event:#}"))
}

/// A member of the payload that is a text.
fn said<'a>(event: &'a Value, member: &str) -> Option<&'a str> {
    event["payload"][member].as_str()
}

fn is_kind(event: &Value, kind: &str) -> bool {
    event["event_type"] == kind
}

/// A count with its noun, as replies spell it.
fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// An event as lists show it, with the text that sums it up.
fn row(event: &Value) -> String {
    let words = ["event_id", "timestamp", "event_type", "subject", "actor"].map(|member| text(event, member)).join(" ");
    match ["title", "summary", "reason", "rationale", "text"].iter().find_map(|member| said(event, member)) {
        None => words,
        Some(long) if long.chars().count() > SUMMARY_MAX_CHARS => {
            format!("{words} {}…", long.chars().take(SUMMARY_MAX_CHARS).collect::<String>())
        }
        Some(text) => format!("{words} {text}"),
    }
}

/// The oracle: the events of a vault, read from its files as JSON.
struct Log {
    events: Vec<Value>,
    /// Where each event is.
    places: BTreeMap<String, usize>,
    /// The short references of tasks, requirements, decisions and constraints, by subject: numbered as they came.
    names: BTreeMap<String, String>,
}

impl Log {
    fn read(vault: &Path) -> Log {
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

    fn of_kind(&self, kind: &str) -> impl DoubleEndedIterator<Item = &Value> + use<'_> {
        let kind = kind.to_owned();
        self.events.iter().filter(move |event| is_kind(event, &kind))
    }

    /// The events of one kind about a subject.
    fn about(&self, kind: &str, subject: &str) -> impl DoubleEndedIterator<Item = &Value> + use<'_> {
        let subject = subject.to_owned();
        self.of_kind(kind).filter(move |event| event["subject"] == *subject)
    }

    #[track_caller]
    fn get(&self, id: &str) -> &Value {
        &self.events[self.place(id)]
    }

    #[track_caller]
    fn place(&self, id: &str) -> usize {
        *self.places.get(id).unwrap_or_else(|| panic!("no event {id}"))
    }

    /// The causes of an event.
    fn parents(&self, event: &Value) -> Vec<&Value> {
        let ids = event["parents"].as_array().expect("a list").iter();
        ids.map(|id| self.get(id.as_str().expect("an id"))).collect()
    }

    fn tasks(&self) -> Vec<&Value> {
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
    fn lineage(&self, task: &str) -> String {
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

    fn name<'a>(&'a self, subject: &'a str) -> &'a str {
        self.names.get(subject).map_or(subject, String::as_str)
    }

    /// An event in the words of a reader: `DecisionApproved DEC-0001`.
    fn spoken(&self, event: &Value) -> String {
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
    fn approval(&self, target: &str, before: usize) -> Option<&Value> {
        let decisions = self.decisions(target);
        self.events[..before]
            .iter()
            .rfind(|event| is_kind(event, "DecisionApproved") && decisions.contains(&text(event, "subject")))
    }

    /// Why a task exists and may be done, by what the events say and not by their parents.
    fn reasons<'a>(&'a self, proposed: &'a Value) -> Vec<&'a Value> {
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
    fn relatives(&self, task: &str) -> BTreeSet<String> {
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
    fn put_first(&self, task: &str) -> Vec<String> {
        let constraints = self.about("TaskAssigned", task).filter_map(|assigned| said(assigned, "constraint_id"));
        constraints.map(|id| format!("constraint:{id}")).collect()
    }

    fn text_of(&self, constraint: &str) -> &str {
        said(self.about("ConstraintApplied", constraint).next().expect("it was applied"), "text").expect("a text")
    }

    /// Why a task was aborted, from the causes of the event and not from its own reason.
    fn grounds(&self, aborted: &Value) -> String {
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
                    return format!("{name}, which it depends on, was aborted: {}", self.grounds(cause));
                }
                "EmergencyStopIssued" => return format!("emergency_stop: {}", reason(cause)),
                _ => {}
            }
        }
        assert!(!text(aborted, "actor").starts_with("core:"), "without grounds: {aborted:#}");
        reason(aborted)
    }

    /// What `hf-task explain` has to say about priority.
    fn preferred(&self, task: &str) -> Vec<String> {
        let line = |con: &String| format!("{}{PUT_FIRST}{}", self.name(con), self.text_of(con));
        self.put_first(task).iter().map(line).collect()
    }

    /// What `hf-task explain` has to say about failures, retries and the end of a task.
    fn explained(&self, task: &str) -> Vec<String> {
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
        if let Some(again) = self.tasks().into_iter().rfind(|other| said(other, "rework_of") == Some(id)) {
            let again = text(again, "subject");
            lines.push(format!("{} repeats the work and is {}", self.name(again), self.state(again)));
        }
        lines
    }

    /// The state of a task, from its last event.
    fn state(&self, task: &str) -> &'static str {
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
struct Answer {
    /// Type, subject and actor, by id.
    nodes: BTreeMap<String, [String; 3]>,
    edges: Vec<[String; 2]>,
}

impl Answer {
    fn of(reply: &Reply) -> Answer {
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
    fn above<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a str> {
        self.edges.iter().filter(move |[_, event]| event == id).map(|[cause, _]| cause.as_str())
    }

    /// The requirement that a task was proposed for: the first above its proposal.
    fn requirement(&self, task: &str) -> Option<&str> {
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

/// Asks a question about every task of the log. Returns what the answers lack and what they have too much.
#[track_caller]
fn ask(life: &Life, log: &Log, ask: impl Fn(&Value, &str) -> Vec<String>) -> Vec<String> {
    let mut differences = Vec::new();
    for proposed in log.tasks() {
        let name = log.name(text(proposed, "subject"));
        let title = life.title(name);
        differences.extend(ask(proposed, name).into_iter().map(|what| format!("{title}: {what}")));
    }
    differences
}

/// What `hf-task explain` says and should not, and the other way round.
fn compared(lines: &[&str], expected: &[String]) -> Vec<String> {
    let missing =
        expected.iter().filter(|line| !lines.contains(&line.as_str())).map(|line| format!("not said: {line}"));
    let extra = lines.iter().filter(|line| !expected.iter().any(|e| e == *line)).map(|line| format!("said: {line}"));
    let found: Vec<String> = missing.chain(extra).collect();
    assert!(!found.is_empty() || lines == expected, "another order, or a line twice: {lines:#?}");
    found
}

/// Asserts that `hf-log` with these options gives exactly these events, in text and in JSON.
#[track_caller]
fn gives(life: &Life, options: &[&str], expected: &[&Value]) {
    let options = [options, &["--limit", "500"]].concat();
    let reply = life.story.run("log", &options).expect_exit(0);
    let lines: String = expected.iter().map(|event| format!("EVENT:{}\n", row(event))).collect();
    let (count, sum) = (expected.len(), counted(expected.len(), "event", "events"));
    let whole = format!("EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:{sum}\nCOUNT:{count}\nHAS_MORE:no\n{lines}");
    assert_eq!(reply.stdout, whole, "{options:?}");
    let reply = life.story.run("log", &[&options[..], &["--json"]].concat());
    let reply: Value = serde_json::from_str(&reply.stdout).unwrap_or_else(|e| panic!("{e}: {reply:#?}"));
    let events: Vec<&Value> = reply["events"].as_array().expect("a list").iter().collect();
    assert_eq!(events, expected, "{options:?}");
}

/// Asserts that `hf-log show` gives every member of an event, and nothing else.
#[track_caller]
fn shows(life: &Life, event: &Value) {
    let reply = ok(&life.story, &format!("hf-log show {}", text(event, "event_id")));
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut members: BTreeSet<String> =
        ["event_id", "event_type", "version", "timestamp", "actor", "subject", "prev_hash", "hash"]
            .map(|member| format!("{member} {}", plain(&event[member])))
            .into();
    members.extend(event["idempotency_key"].as_str().map(|key| format!("idempotency_key {key}")));
    members.extend(event["batch"].as_object().map(|batch| format!("batch {} of {}", batch["no"], batch["of"])));
    members.extend(event["parents"].as_array().expect("a list").iter().map(|id| format!("parent {}", plain(id))));
    let payload = event["payload"].as_object().expect("an object").iter();
    members.extend(payload.map(|(name, value)| format!("payload.{name} {}", plain(value))));
    let shown: BTreeSet<String> = reply.all("FACT").into_iter().map(str::to_owned).collect();
    assert_eq!(shown, members);
}

#[test]
fn one_command_says_why_a_task_was_made() {
    let life = rich_life();
    let log = life.log();
    let differences = ask(&life, &log, |proposed, name| {
        let task = text(proposed, "subject");
        let reply = ok(&life.story, &format!("hf-lineage {name} --up"));
        assert_eq!(reply.stdout, log.lineage(task), "{name}");
        let answer = Answer::of(&reply);
        let own = said(proposed, "requirement_id").map(|id| format!("requirement:{id}"));
        assert_eq!(answer.requirement(task), own.as_deref(), "{name}: {}", reply.stdout);
        let reasons = log.reasons(proposed).into_iter();
        let missing = reasons.filter(|reason| !answer.nodes.contains_key(text(reason, "event_id")));
        let missing: BTreeSet<String> = missing.map(|reason| format!("{} is missing", log.spoken(reason))).collect();
        let relatives = log.relatives(task);
        let is_foreign = |subject: &&String| log.names.contains_key(*subject) && !relatives.contains(*subject);
        let foreign = answer.nodes.values().map(|[_, subject, _]| subject).filter(is_foreign);
        let foreign: BTreeSet<String> =
            foreign.map(|subject| format!("{} has nothing to do with it", log.name(subject))).collect();
        missing.into_iter().chain(foreign).collect()
    });
    assert_eq!(differences, WRONG_ORIGINS);
    life.story.over();
}

#[test]
fn one_command_says_why_a_task_was_given_priority() {
    let life = rich_life();
    let log = life.log();
    let differences = ask(&life, &log, |proposed, name| {
        let task = text(proposed, "subject");
        let answer = Answer::of(&ok(&life.story, &format!("hf-lineage {name} --up")));
        // The constraints, and who approved them.
        let mut found = Vec::new();
        for [cause, event] in &answer.edges {
            let ([kind, constraint, _], [_, subject, _]) = (&answer.nodes[cause], &answer.nodes[event]);
            if kind == "ConstraintApplied" && subject == task {
                let approvals: Vec<String> = answer.above(cause).map(|id| answer.nodes[id].join(" ")).collect();
                found.push((constraint.clone(), approvals));
            }
        }
        let approved = |constraint: String| {
            let applied = log.about("ConstraintApplied", &constraint).next().expect("it was applied");
            let approval = log.approval(&constraint, log.place(text(applied, "event_id"))).expect("it was approved");
            let words = ["event_type", "subject", "actor"].map(|member| text(approval, member));
            (constraint, vec![words.join(" ")])
        };
        assert_eq!(found, log.put_first(task).into_iter().map(approved).collect::<Vec<_>>(), "{name}");
        // In words.
        let reply = ok(&life.story, &format!("hf-task explain {name}"));
        let lines: Vec<&str> = reply.all("BECAUSE").into_iter().filter(|line| line.contains(PUT_FIRST)).collect();
        compared(&lines, &log.preferred(task))
    });
    let put_first = ask(&life, &log, |proposed, _| log.preferred(text(proposed, "subject")));
    assert_eq!(
        put_first,
        [
            "Second: CON-0001 put it first: Second things first",
            "Third: CON-0002 put it first: Third before the rest",
            "Tool again: CON-0003 put it first: Small things first",
        ]
    );
    assert_eq!(differences, WRONG_PRIORITIES);
    life.story.over();
}

#[test]
fn one_command_says_what_failed_where() {
    let life = rich_life();
    let log = life.log();
    let failures: Vec<&Value> = log.of_kind("TaskFailed").collect();
    gives(&life, &["--type", "TaskFailed"], &failures);
    let mut told = Vec::new();
    for failure in &failures {
        let task = text(failure, "subject");
        let [class, reason] = ["error_class", "reason"].map(|member| said(failure, member).expect("a text"));
        told.push(format!("{}: {class}: {reason}", life.title(log.name(task))));
        // Where: in the run that was going on, which is a cause of the failure.
        let before = &log.events[..log.place(text(failure, "event_id"))];
        let is_run =
            |event: &&Value| is_kind(event, "RunStarted") && said(event, "task_id") == task.strip_prefix("task:");
        let run = text(before.iter().rfind(is_run).expect("a run"), "subject");
        assert!(log.parents(failure).iter().any(|cause| cause["subject"] == run), "{failure:#}");
        shows(&life, failure);
    }
    assert_eq!(
        told,
        [
            "Form: transient: network",
            "Form: transient: over quota",
            "Flaky: transient: no name server",
            "Flaky: transient: no route",
            "Flaky: transient: still no route",
            "Auth: permanent: wrong password",
            "Search: transient: timeout",
            "Draft: permanent: rework: no tests",
            "Crawl: transient: connection reset",
            "Second: transient: disk full",
            "job that fails: permanent: exit code 3",
            "job that is killed: transient: signal 9",
            "job that is killed: transient: signal 9",
            "job that is lost: transient: lost",
        ]
    );
    for proposed in log.tasks() {
        let task = text(proposed, "subject");
        let own: Vec<&Value> = log.about("TaskFailed", task).collect();
        gives(&life, &["--type", "TaskFailed", "--subject", log.name(task)], &own);
    }
    life.story.over();
}

#[test]
fn one_command_says_why_a_task_was_retried_or_aborted() {
    let life = rich_life();
    let log = life.log();
    let differences = ask(&life, &log, |proposed, name| {
        let task = text(proposed, "subject");
        let own: Vec<&Value> = log.events.iter().filter(|event| event["subject"] == task).collect();
        gives(&life, &["--subject", name], &own);
        for (n, retry) in log.about("TaskRetrying", task).enumerate() {
            assert_eq!(retry["payload"]["attempt"], n + 1, "{retry:#}");
            // Its only cause is a failure in the same answer.
            let [failure] = log.parents(retry).try_into().expect("one cause");
            assert!(own.contains(&failure) && is_kind(failure, "TaskFailed"), "{retry:#}");
            assert_eq!(said(failure, "error_class"), Some("transient"));
            shows(&life, retry);
        }
        let mut differences = Vec::new();
        for aborted in log.about("TaskAborted", task) {
            shows(&life, aborted);
            let (reason, grounds) = (said(aborted, "reason").expect("a reason"), log.grounds(aborted));
            if reason != grounds {
                differences.push(format!("recorded: {reason}"));
            }
        }
        // In words.
        let reply = ok(&life.story, &format!("hf-task explain {name}"));
        let state = log.state(task);
        assert_eq!(reply.get("SUM"), format!("{name} is {state}: {}", said(proposed, "title").expect("a title")));
        let matters = |line: &&str| {
            let words = [" was aborted at ", " failed (", " repeats the work and is "];
            let is_ended = matches!(state, "Succeeded" | "Aborted") && !line.contains(PUT_FIRST);
            is_ended || words.iter().any(|words| line.contains(words))
        };
        let lines: Vec<&str> = reply.all("BECAUSE").into_iter().filter(matters).collect();
        differences.extend(compared(&lines, &log.explained(task)));
        differences
    });
    let aborted = ask(&life, &log, |proposed, _| {
        log.about("TaskAborted", text(proposed, "subject")).map(|aborted| log.grounds(aborted)).collect()
    });
    assert_eq!(
        aborted,
        [
            "Cart: REQ-0003 was rejected: no money",
            "Checkout: T-0003, which it depends on, was aborted: REQ-0003 was rejected: no money",
            "Legacy: REQ-0004 was superseded by REQ-0001",
            "Import: REQ-0004 was superseded by REQ-0001",
            "Flaky: still no route; gave up after 2 retries",
            "Auth: wrong password",
            "Draft: rework: no tests",
            "Crawl: emergency_stop: it hurts others",
            "Feed: emergency_stop: it hurts others",
            "Reader: T-0019, which it depends on, was aborted: nobody subscribes",
            "Feed again: nobody subscribes",
            "Wipe: DEC-0009 was rejected by user:jo: too dangerous",
            "Banner: nobody reads banners",
            "Slogan: T-0026, which it depends on, was aborted: nobody reads banners",
            "Print: T-0027, which it depends on, was aborted: T-0026, which it depends on, was aborted: nobody reads \
             banners",
            "job that fails: exit code 3",
            "job that is killed: signal 9; gave up after 1 retry",
            "job that is lost: lost",
            "job that is cancelled: cancelled",
        ]
    );
    assert_eq!(differences, WRONG_GROUNDS);
    life.story.over();
}

/// The same question where tasks are assigned automatically.
#[test]
fn a_task_that_was_assigned_because_of_its_priority_says_so() {
    let hive = governed("auto_assign: true");
    ok(&hive, "hf-task propose First");
    ok(&hive, "hf-task propose Second");
    hive.run("constraint", &["apply", "Second things first", "--priority", "T-0002"]).expect_exit(0);
    ok(&hive, "hf-decide approve DEC-0001");
    logged_in(&hive, "a", "main");
    logged_in(&hive, "b", "main");
    let log = Log::read(&hive.vault());
    for (name, expected) in [("T-0001", vec![]), ("T-0002", vec!["CON-0001 put it first: Second things first"])] {
        let reply = ok(&hive, &format!("hf-lineage {name} --up"));
        let task = log.names.iter().find(|(_, known)| *known == name).expect("a task").0;
        assert_eq!(reply.stdout, log.lineage(task));
        let constraints = reply.all("NODE").into_iter().filter(|node| node.contains(" ConstraintApplied ")).count();
        assert_eq!(
            (log.preferred(task), constraints),
            (expected.iter().map(ToString::to_string).collect(), expected.len())
        );
        let reply = ok(&hive, &format!("hf-task explain {name}"));
        let lines: Vec<&str> = reply.all("BECAUSE").into_iter().filter(|line| line.contains(PUT_FIRST)).collect();
        assert_eq!(lines, expected);
    }
}
