//! The vault of a random life, its callers, and the expected results of commands.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command as Process;

use serde_json::Value;

use crate::support::random_life::model::{Late, World, time};
use crate::support::session_fixture::within;
use crate::support::test_vault::{Reply, TestVault};

/// The parent directory of the vaults: in memory if possible, since no test here is about power cuts.
fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if tempfile::tempfile_in(&memory).is_ok() { memory } else { std::env::temp_dir() }
}

/// A vault, and the model of its log so far.
pub struct Place {
    pub hive: TestVault,
    pub world: World,
    /// The number of log lines applied to the model.
    taken: usize,
    /// What is wrong with the recorded events.
    pub wrong: Vec<String>,
}

impl Place {
    pub fn new() -> Place {
        let hive = TestVault::empty_in(&folder());
        hive.run("init", &[]).expect_exit(0);
        Place { hive, world: World::default(), taken: 0, wrong: Vec::new() }
    }

    fn lines(&self) -> Vec<String> {
        let inside = |dir: PathBuf| {
            let mut all: Vec<PathBuf> =
                fs::read_dir(dir).expect("a directory").map(|e| e.expect("one").path()).collect();
            all.sort();
            all
        };
        let months = inside(self.hive.akashic("events"));
        let text: String = months.into_iter().flat_map(inside).map(|f| fs::read_to_string(f).expect("text")).collect();
        text.lines().map(str::to_owned).collect()
    }

    /// Runs a line and applies the events it recorded to the model.
    pub fn run(&mut self, shell: &[(&str, &str)], line: &str) -> Reply {
        let reply = within(&self.hive, shell, line);
        for recorded in self.lines().split_off(self.taken) {
            let event: Value = serde_json::from_str(&recorded).expect("JSON");
            self.wrong.extend(self.world.judge(&event).map(|what| format!("{line} recorded {what}")));
            self.world.take(&event);
            self.taken += 1;
        }
        reply
    }

    /// A copy in another directory, so that one question does not change the answer to another.
    pub fn copy(&self, now: i64) -> Place {
        let mut hive = TestVault::empty_in(&folder());
        hive.at(&time(now));
        let cp = Process::new("cp").arg("-a").arg(self.hive.vault()).arg(hive.vault()).status().expect("cp runs");
        assert!(cp.success());
        Place { hive, world: self.world.clone(), taken: self.taken, wrong: Vec::new() }
    }
}

/// The expected result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    Works,
    /// The claim expired: CLAIM_LOST, with a new claim as the next step.
    Lost,
    /// The session expired, or the project is paused: EXIT_REQUESTED.
    Leave,
    /// Refused, for any of several valid reasons.
    Refused,
    NoTask,
    /// Does not depend on time, or the design leaves it open.
    Anything,
}

impl Expect {
    pub fn is_met(self, reply: &Reply) -> bool {
        let status = reply.all("STATUS");
        let said = (reply.code, status.first().copied().unwrap_or_default());
        match self {
            Expect::Works => said.0 == Some(0),
            Expect::Lost => said == (Some(3), "CLAIM_LOST") && reply.get("NEXT").starts_with("ACTION hf-task claim"),
            Expect::Leave => said == (Some(3), "EXIT_REQUESTED"),
            Expect::Refused => said.0 == Some(3),
            Expect::NoTask => said == (Some(1), "NO_TASK"),
            Expect::Anything => true,
        }
    }
}

/// The caller of a command: an agent, in the shell of its session or without a session.
#[derive(Clone, Debug)]
pub struct Caller {
    pub agent: &'static str,
    /// The subject of the session.
    pub session: Option<String>,
}

impl Caller {
    pub fn actor(&self) -> String {
        format!("agent:{}", self.agent)
    }

    /// Whether every command tells it to leave: its session expired, or its project is paused.
    pub fn leaves(&self, world: &World, now: i64, seat: &str) -> bool {
        match self.session.as_ref().map(|session| &world.sessions[session]) {
            Some(session) => !session.open || now > session.until || world.is_paused(&session.project),
            None => world.is_paused(seat),
        }
    }

    pub fn is_void(&self, world: &World, now: i64) -> bool {
        self.session.as_ref().is_some_and(|session| {
            let session = &world.sessions[session];
            !session.open || now > session.until
        })
    }

    /// Runs a line; without a session, `flag` is the option that names the agent.
    pub fn run(&self, place: &mut Place, line: &str, flag: &str) -> Reply {
        match &self.session {
            Some(session) => {
                let id = session.trim_start_matches("session:").to_owned();
                place.run(&[("HF_AGENT", self.agent), ("HF_SESSION", &id)], line)
            }
            None if flag == "--actor" => place.run(&[], &format!("{line} --actor agent:{}", self.agent)),
            None => place.run(&[], &format!("{line} --agent {}", self.agent)),
        }
    }
}

/// Whether this model covers a rule.
pub fn is_asked_for(code: &str) -> bool {
    ["LEASE_EXPIRED", "RUN_OVERTIME", "SESSION_EXPIRED", "APPROVAL_OVERDUE"].contains(&code)
}

/// The rows of a list, which may also be a single row or null.
pub fn rows(list: &Value) -> Vec<&Value> {
    match list {
        Value::Null => Vec::new(),
        Value::Array(all) => all.iter().collect(),
        one => vec![one],
    }
}

/// Describes what is late, and since when, in one line.
pub fn shown(late: &[Late]) -> String {
    late.iter().fold(String::new(), |mut all, late| {
        let rules: Vec<String> = late.rules.iter().map(|(rule, end)| format!("{rule} since {}", time(*end))).collect();
        let _ = write!(all, "[{} {}]", late.name, rules.join(", "));
        all
    })
}
