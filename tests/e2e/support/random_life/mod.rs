//! A random life: agents that claim and start tasks, send heartbeats, do deep work, log in and are late; an operator
//! who pauses, answers and changes settings; and questions to every command about one moment. Every difference from the
//! model is noted.

mod deeds;
pub mod model;
pub mod place;
mod questions;

use std::collections::BTreeSet;

use crate::support::random_life::model::{World, second, time};
use crate::support::random_life::place::{Caller, Expect, Place, is_asked_for, shown};
use crate::support::test_vault::{Random, Reply, START, write_private};

const AGENTS: [&str; 3] = ["a", "b", "c"];
/// The agent that claims what others lost; it holds no other tasks.
const TAKER: &str = "agent:taker";
const PROJECTS: [&str; 2] = ["main", "beta"];
/// The maximum number of unfinished tasks.
const TASKS_MAX: usize = 7;

/// A random sequence of commands in one vault.
pub struct Life {
    place: Place,
    now: i64,
    dice: Random,
    /// Decides when the watchdog runs, if it runs at all.
    ticks: Option<Random>,
    /// Whether pauses and deep work start only where nothing is late: then the watchdog makes no difference.
    careful: bool,
    /// The newest session of each agent.
    sessions: [Option<String>; AGENTS.len()],
    pub wrong: Vec<String>,
    /// Every command with its result.
    pub story: Vec<String>,
    /// What the questions covered: broken rules, and expected results of calls by holders and in sessions.
    pub asked: BTreeSet<String>,
}

impl Life {
    /// A life without any commands yet.
    pub fn bare(seed: u64) -> Life {
        let mut life = Life {
            place: Place::new(),
            now: second(START),
            dice: Random::new(seed),
            ticks: None,
            careful: true,
            sessions: [const { None }; AGENTS.len()],
            wrong: Vec::new(),
            story: Vec::new(),
            asked: BTreeSet::new(),
        };
        life.set(24, 900);
        life
    }

    pub fn new(seed: u64, ticked: bool, careful: bool) -> Life {
        let mut life = Life { ticks: ticked.then(|| Random::new(!seed)), careful, ..Life::bare(seed) };
        for project in PROJECTS {
            life.tell(&format!("hf-task propose Work --project {project} --create"), Expect::Works);
            life.tell(&format!("hf-task propose Work --project {project} --create --destructive"), Expect::Works);
            life.login(0, project, "6h");
        }
        life
    }

    /// Writes the settings: agents need not report, and the time between two ticks is never a gap.
    pub fn set(&mut self, approval_hours: i64, lease_seconds: i64) {
        let governance = format!(
            "governance:\n  max_retries: 50\n  max_concurrent_tasks: 50\n  approval_timeout_hours: {approval_hours}\n  \
             lease_seconds: {lease_seconds}\n"
        );
        let quiet = "liveness:\n  never_seen_seconds: 100000000\nwatchdog:\n  interval_seconds: 100000000\n";
        let config = self.place.hive.config();
        write_private(&config, format!("{governance}{quiet}").as_bytes());
        self.place.world.approval_hours = approval_hours;
    }

    pub fn world(&self) -> &World {
        &self.place.world
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.dice.below(from.len() as u64) as usize]
    }

    fn pick_of<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.dice.below(from.len() as u64) as usize].clone())
    }

    fn complain(&mut self, what: String) {
        let at = time(self.now);
        self.wrong.push(format!("{at} {what}"));
    }

    /// Compares a reply with the expected result.
    fn hold(&mut self, line: &str, reply: &Reply, expect: Expect) {
        if !expect.is_met(reply) {
            let said = reply.stdout.lines().take(4).collect::<Vec<_>>().join(" ");
            self.complain(format!("{line} should be {expect:?}: {said}"));
        }
        let wrong = std::mem::take(&mut self.place.wrong);
        wrong.into_iter().for_each(|what| self.complain(what));
    }

    /// Records the result of a command, to compare two lives.
    fn note(&mut self, line: &str, reply: &Reply) {
        let status = reply.all("STATUS").first().copied().unwrap_or_default().to_owned();
        // Logging out of an expired session has another status, but the session is gone either way.
        let status = if line.contains("logout") { String::new() } else { status };
        self.story.push(format!("{} {line} -> {:?} {status}", time(self.now), reply.code));
    }

    /// Runs a command of the operator.
    pub fn tell(&mut self, line: &str, expect: Expect) -> Reply {
        let reply = self.place.run(&[], line);
        self.note(line, &reply);
        self.hold(line, &reply, expect);
        reply
    }

    /// Runs a command of an agent.
    fn act(&mut self, caller: &Caller, line: &str, flag: &str, expect: Expect) -> Reply {
        let reply = caller.run(&mut self.place, line, flag);
        let whole = format!("[{}{}] {line}", caller.agent, if caller.session.is_some() { " in session" } else { "" });
        self.note(&whole, &reply);
        self.hold(&whole, &reply, expect);
        reply
    }

    /// Picks an agent, half of the time in the shell of its newest session.
    fn caller(&mut self) -> Caller {
        let n = self.dice.below(AGENTS.len() as u64) as usize;
        let session = self.sessions[n].clone().filter(|_| self.dice.below(2) == 0);
        Caller { agent: AGENTS[n], session }
    }

    /// The agent that holds a task, or held it last, as a caller.
    fn holder_of(&mut self, task: &str) -> Option<Caller> {
        let holder = self.world().tasks[task].holder.clone()?;
        let n = AGENTS.iter().position(|agent| holder.strip_prefix("agent:") == Some(agent))?;
        let session = self.sessions[n].clone().filter(|_| self.dice.below(3) == 0);
        Some(Caller { agent: AGENTS[n], session })
    }

    pub fn step(&mut self) {
        let at_edge = self.wait();
        let comes = self.ticks.as_mut().is_some_and(|ticks| ticks.below(3) == 0);
        if comes {
            self.tick();
        }
        if self.dice.below(if at_edge { 2 } else { 10 }) == 0 {
            self.ask();
        }
        match self.dice.below(22) {
            0 => self.propose(),
            1..=4 => self.claim(),
            5..=9 => self.work(),
            10..=11 => self.show(),
            12..=15 => self.dive(),
            16..=17 => self.sit(),
            18 => self.answer(),
            19..=20 => self.pause(),
            _ => self.govern(),
        }
    }

    pub fn go_to(&mut self, now: i64) {
        self.now = now;
        self.place.hive.at(&time(now));
    }

    /// Lets time pass, often exactly to a deadline or one second past it. Returns whether it did that.
    fn wait(&mut self) -> bool {
        let ahead = self.world().moments_ahead(self.now);
        let (passed, at_edge) = match self.dice.below(20) {
            0..=4 => (0, false),
            5..=8 => (1 + self.dice.below(90) as i64, false),
            9..=10 => (60 * (1 + self.dice.below(15) as i64), false),
            11 => (3600 * (1 + self.dice.below(5) as i64), false),
            roll => {
                // Usually the next one; otherwise short deadlines would pass untested.
                let next = self.dice.below(3).min(self.dice.below(3)) as usize;
                ahead.get(next).map_or((30, false), |end| (end - self.now + i64::from(roll > 14), true))
            }
        };
        self.go_to(self.now + passed);
        at_edge
    }

    /// Runs the watchdog: it finds everything that is late, and settles it.
    fn tick(&mut self) {
        let late = self.world().late(self.now);
        let reply = self.place.run(&[], "hf-watchdog");
        let found: BTreeSet<(String, String)> = reply
            .all("ANOMALY")
            .into_iter()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .filter(|words| is_asked_for(words[0]))
            .map(|words| (words[0].to_owned(), self.world().name(words[1]).to_owned()))
            .collect();
        self.hold("hf-watchdog", &reply, Expect::Anything);
        self.compare("hf-watchdog", &found, &late);
        let mut left = self.world().late(self.now);
        left.retain(|late| !late.doubtful);
        if !left.is_empty() {
            self.complain(format!("hf-watchdog left {}", shown(&left)));
        }
    }

    /// Checks that the log of the whole life follows the rules.
    pub fn end(&mut self) {
        let reply = self.place.run(&[], "hf-verify --policy");
        if reply.all("POLICY") != ["OK"] {
            self.complain(format!("hf-verify --policy finds {:?}", reply.all("FINDING")));
        }
    }
}
