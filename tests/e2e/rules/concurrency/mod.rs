//! Operations can be called many times, from several threads of one process.
//!
//! Everything runs in a process of its own, so that whatever an operation leaves behind in it is seen: children,
//! threads, descriptors, signal handlers, variables, the working directory.

mod system;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use hiveforge::base::{Actor, EntityId, EntityType, ErrorKind, Now, Result, Ulid};
use hiveforge::event::Kind;
use hiveforge::op::decide::{self, ApproveRequest};
use hiveforge::op::mission::{self, GoRequest, GoStanding, StartMissionRequest};
use hiveforge::op::project::{self};
use hiveforge::op::task::{self, ClaimOutcome, ClaimRequest, ProposeTaskRequest};
use hiveforge::op::{
    self, Caller, Context, Host, InitRequest, Recorded, ResumeSystemRequest, Shell, StopRequest, SupervisorProgram,
};
use hiveforge::state::Entity;
use rustix::event::{Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::docs::layers;
use crate::support::test_vault::{TestVault, binary};

use system::{
    agents, appends, backups, configs, jobs, logs, pauses, projects, sessions, signatures, timers, verdicts, watchdogs,
};
use work::{
    approved_requirement, artifacts, branches, constraints, decisions, documents, missions, requirement, requirements,
    reviews, tasks,
};

const THREADS: usize = 3;
const ROUNDS: usize = 2;
/// Longer than anything here takes, on whatever machine.
const LONG: Duration = Duration::from_secs(60);

/// Settings under which nothing is refused for there being too much of it, and which have somebody to ask.
const SETTINGS: &str = "governance:
  max_concurrent_tasks: 200
hooks:
  on_done: \"cat >/dev/null\"
jobs:
  max_parallel: 200
  kill_grace: 1
reviewers:
  gpt:
    command: \"cat >/dev/null; echo 'PASS: all of it'\"
  gem:
    command: \"cat >/dev/null; echo 'PASS: all of it'\"
runner:
  command: \"echo done\"
";

/// What is given to several threads can be.
const _: () = {
    const fn can_be_shared<T: Send + Sync>() {}
    can_be_shared::<Context>();
};

/// A noun, and what a thread does to it in one round.
type Noun = (&'static str, fn(&Hand, usize));

/// Every noun, in groups of those that are at it together. What reads the whole log comes while that is short.
const NOUNS: &[&[Noun]] = &[
    &[("project", projects), ("append", appends), ("verify", verdicts), ("agent", agents)],
    &[("backup", backups), ("document", documents), ("pause", pauses), ("config", configs), ("sign", signatures)],
    &[("log", logs), ("task", tasks), ("watchdog", watchdogs), ("timer", timers), ("mission", missions)],
    &[("job", jobs), ("constraint", constraints), ("session", sessions), ("artifact", artifacts)],
    &[("branch", branches), ("require", requirements), ("review", reviews), ("decide", decisions)],
];

/// What was acknowledged to any thread.
#[derive(Default)]
struct Acknowledged {
    /// Every id that somebody was told of as recorded just now.
    ids: Mutex<Vec<Ulid>>,
    /// Where an outcome names no event: how many of a kind there must be at least.
    counts: Mutex<BTreeMap<Kind, usize>>,
}

/// One thread's view of the vault.
struct Hand<'a> {
    number: usize,
    dir: PathBuf,
    person: Context,
    agent: Context,
    acknowledged: &'a Acknowledged,
}

impl Hand<'_> {
    /// Keeps what was acknowledged. Gives the subject of it.
    #[track_caller]
    fn told(&self, recorded: &Recorded) -> String {
        if !recorded.duplicate {
            assert!(recorded.ids.contains(&recorded.asked.id), "{recorded:?}");
            self.acknowledged.ids.lock().unwrap().extend(&recorded.ids);
        }
        recorded.asked.subject.clone()
    }

    fn counted(&self, kind: Kind) {
        *self.acknowledged.counts.lock().unwrap().entry(kind).or_default() += 1;
    }

    /// A text that nobody else says.
    fn text(&self, what: &str, round: usize) -> String {
        format!("{what} {} of thread {}", round, self.number)
    }

    /// A key that nobody else has.
    fn key(&self, what: &str, round: usize) -> Option<String> {
        Some(format!("{what}:{}:{round}", self.number))
    }

    /// The same in a project.
    fn within(&self, project: &str) -> Context {
        Context { creates_project: true, project: Some(EntityId::parse(project).unwrap()), ..self.person.clone() }
    }

    /// A task that can be claimed.
    fn task(&self, title: &str) -> String {
        let request = ProposeTaskRequest { title: Some(title.to_owned()), ..Default::default() };
        self.told(&task::propose(&self.person, request).unwrap())
    }

    fn claimed(&self, reference: &str) {
        let request = ClaimRequest { reference: Some(reference.to_owned()), ..Default::default() };
        match task::claim(&self.agent, request).unwrap() {
            ClaimOutcome::Claimed { recorded, .. } => drop(self.told(&recorded)),
            ClaimOutcome::NoTask { .. } => panic!("{reference} cannot be claimed"),
        }
    }
}

/// What only one of several callers can get, who all ask for it: the others are refused, and nothing else.
#[track_caller]
fn contended<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(error) => {
            assert!(matches!(error.kind, ErrorKind::Refused(_) | ErrorKind::NotFound), "{error:?}");
            None
        }
    }
}

/// The decision that was asked for along the way.
#[track_caller]
fn decision(recorded: &Recorded) -> String {
    let is_one = |entity: &&Entity| entity.subject.entity == EntityType::Decision;
    recorded.entity.iter().chain(&recorded.followed).find(is_one).expect("a decision").subject.to_string()
}

fn approved(hand: &Hand, decision: String) -> Recorded {
    let done =
        decide::approve(&hand.person, ApproveRequest { references: vec![decision], ..Default::default() }).unwrap();
    hand.told(&done.recorded);
    done.recorded
}

/// Has every thread do the same at the same time.
fn at_once(hands: &[Hand], act: impl Fn(&Hand) + Sync) {
    let barrier = Barrier::new(hands.len());
    thread::scope(|scope| {
        for hand in hands {
            let (barrier, act) = (&barrier, &act);
            scope.spawn(move || {
                barrier.wait();
                act(hand);
            });
        }
    });
}

/// The time of day.
fn clock() -> Now {
    let time = clock_gettime(ClockId::Realtime);
    Now { millis: time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000 }
}

fn hand<'a>(hive: &TestVault, number: usize, acknowledged: &'a Acknowledged) -> Hand<'a> {
    let caller = |actor: &str, shell| Caller { actor: Actor::parse(actor).unwrap(), shell };
    let supervisor = Some(SupervisorProgram { program: binary("job") });
    let host = Host { supervisor, trust: hive.trusts(), search_path: Some("/usr/bin:/bin".into()), ..Host::new(clock) };
    let person = caller(&format!("user:jo-{number}"), Shell::Persons);
    let person = Context { lock_timeout: LONG, ..Context::new(hive.vault(), person, host) };
    let name = format!("worker-{number}");
    let agent = Context { caller: caller(&format!("agent:{name}"), Shell::Agents(name)), ..person.clone() };
    Hand { number, dir: hive.dir().to_owned(), person, agent, acknowledged }
}

/// What an operation must leave as it was: handlers and masks of signals, variables, the working directory.
fn surroundings() -> (Vec<String>, Vec<(OsString, OsString)>, PathBuf) {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let kept = |line: &&str| ["SigCgt", "SigIgn", "SigBlk", "Umask"].iter().any(|name| line.starts_with(name));
    let lines = status.lines().filter(kept).map(str::to_owned).collect();
    (lines, std::env::vars_os().collect(), std::env::current_dir().unwrap())
}

/// What lives in this process, or was started by it and not waited for.
#[derive(Debug, PartialEq)]
struct Lives {
    children: Vec<String>,
    threads: usize,
    descriptors: usize,
}

fn lives() -> Lives {
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    let all = fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let stats = pids.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
    let me = std::process::id().to_string();
    // pid (name) state parent
    let is_child = |stat: &String| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.split(' ').nth(2) == Some(&me));
    let children = stats.filter(is_child).collect();
    Lives { children, threads: count("/proc/self/task"), descriptors: count("/proc/self/fd") }
}

#[test]
#[ignore = "what it looks at is a whole process: the test below gives it one"]
fn operations_from_several_threads_in_their_own_process() {
    let hive = TestVault::empty();
    let acknowledged = Acknowledged::default();
    let hands: Vec<Hand> = (0..THREADS).map(|number| hand(&hive, number, &acknowledged)).collect();
    let (before, alone) = (surroundings(), lives());
    // One of them makes the vault.
    let made = Mutex::new(0);
    at_once(&hands, |hand| {
        if op::init(&hand.person, InitRequest::default()).unwrap().created.is_some() {
            *made.lock().unwrap() += 1;
        }
    });
    assert_eq!(made.into_inner().unwrap(), 1);
    hive.configure(SETTINGS);
    // A task that nobody holds up, an agent that is known: what some operations look for.
    for hand in &hands {
        requirement(hand, "first".to_owned());
    }
    for group in NOUNS {
        at_once(&hands, |hand| {
            for turn in 0..ROUNDS * group.len() {
                // Each begins with another noun, so that any two of them meet.
                let (round, turn) = (turn / group.len(), turn + hand.number * group.len() / THREADS);
                let (name, act) = group[turn % group.len()];
                let began = clock().millis;
                act(hand, round);
                let took = clock().millis - began;
                println!("thread {} round {round}: {name} in {took} ms", hand.number);
                // Two that wait for each other do so until one of them gives up.
                assert!(Duration::from_millis(took) < LONG / 2, "{name} took {took} ms");
            }
        });
        // While somebody always reads, the index falls behind, and everything takes longer.
        project::rebuild(&hands[0].person).unwrap();
    }
    // All of them drive one mission to its end.
    let requirement = Some(approved_requirement(&hands[0], "to go".to_owned()));
    let goal = "go".to_owned();
    let begun = mission::start(&hands[0].person, StartMissionRequest { goal, requirement, ..Default::default() });
    hands[0].told(&begun.unwrap().recorded);
    at_once(&hands, |hand| {
        let done = mission::go(&hand.person.at_this_moment(), GoRequest { max: Some(LONG) }).unwrap();
        assert_eq!(done.standing, GoStanding::Passed, "{done:?}");
    });
    // Stops and resumes cross each other; the last one lets everything go on.
    for _ in 0..ROUNDS {
        at_once(&hands, |hand| {
            let done = op::stop(&hand.person, StopRequest { reason: "enough".to_owned() }).unwrap();
            assert!(done.left.is_empty(), "{done:?}");
            let resumed = contended(op::resume_system(&hand.person, ResumeSystemRequest::default()));
            if let Some(done) = resumed {
                hand.told(&done.recorded);
            }
        });
    }
    if let Some(done) = contended(op::resume_system(&hands[0].person, ResumeSystemRequest::default())) {
        hands[0].told(&done.recorded);
    }
    hands[0].task("after all");

    assert_eq!(surroundings(), before);
    // A job is over a moment before the last that looked after it.
    let pause = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    let mut left = lives();
    for _ in 0..1000 {
        if left == alone {
            break;
        }
        poll(&mut [], Some(&pause)).unwrap();
        left = lives();
    }
    assert_eq!(left, alone);

    let events = hive.events();
    let ids: Vec<&str> = events.iter().map(|event| event["event_id"].as_str().unwrap()).collect();
    let in_log: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(in_log.len(), ids.len(), "an event is there twice");
    let told: Vec<String> = acknowledged.ids.lock().unwrap().iter().map(Ulid::to_string).collect();
    let once: BTreeSet<&str> = told.iter().map(String::as_str).collect();
    assert_eq!(once.len(), told.len(), "an event was acknowledged twice as new");
    let lost: Vec<&&str> = once.difference(&in_log).collect();
    assert!(lost.is_empty(), "{lost:?} was acknowledged and is not there");
    for (kind, count) in acknowledged.counts.lock().unwrap().clone() {
        assert_eq!(events.iter().filter(|event| event["event_type"] == kind.as_str()).count(), count, "{kind}");
    }
    let said = |title: &str| events.iter().filter(|event| event["payload"]["title"] == title).count();
    for round in 0..ROUNDS {
        assert_eq!(said(&format!("shared {round}")), 1);
        for hand in &hands {
            assert_eq!((said(&hand.text("one", round)), said(&hand.text("batch", round))), (1, 4));
        }
    }
    println!("{} events, {} acknowledged", ids.len(), told.len());
    let verified =
        hive.process("verify").env_remove("HF_NOW").args(["--policy", "--projections", "--artifacts"]).output();
    let verified = String::from_utf8(verified.unwrap().stdout).unwrap();
    assert!(verified.starts_with("EXIT:0\n") && verified.contains("\nPOLICY:OK\n"), "{verified}");
}

#[test]
fn every_operation_can_be_called_from_several_threads_at_once() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "rules::concurrency::operations_from_several_threads_in_their_own_process",
        "--exact",
        "--ignored",
        "--nocapture",
    ]);
    let path = ("PATH", "/usr/local/bin:/usr/bin:/bin");
    let done = command.env_clear().envs([path, ("RUST_BACKTRACE", "1")]).output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}

#[test]
fn no_operation_is_left_out() {
    let here = concat!(include_str!("mod.rs"), include_str!("work.rs"), include_str!("system.rs"));
    let missing: Vec<String> =
        layers::operations().into_iter().filter(|name| !here.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "{missing:?} is called by no thread");
}
