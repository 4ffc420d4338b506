//! A random life: agents that claim, start, beat, dive, log in and are late, an operator who pauses, answers and
//! changes settings, and what everybody says of one moment. Whatever is not as the model says is written down.

pub mod model;
pub mod place;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::random_life::model::{Late, Phase, Task, World, second, time};
use crate::support::random_life::place::{Caller, Expect, Place, is_asked_for, rows, shown};
use crate::support::test_vault::{Random, Reply, START, write_private};

const AGENTS: [&str; 3] = ["a", "b", "c"];
/// Who takes what others let go; it has nothing of its own.
const TAKER: &str = "agent:taker";
const PROJECTS: [&str; 2] = ["main", "beta"];
/// Tasks that are neither proposed nor over, at most.
const TASKS_MAX: usize = 7;

/// A life from its first second on.
pub struct Life {
    place: Place,
    now: i64,
    dice: Random,
    /// When the watchdog comes by, if it does.
    ticks: Option<Random>,
    /// Whether an operator pauses, and an agent dives, only where nothing is late: then no watchdog makes a
    /// difference.
    careful: bool,
    /// The newest session of each agent.
    sessions: [Option<String>; AGENTS.len()],
    pub wrong: Vec<String>,
    /// Every command with what came of it.
    pub story: Vec<String>,
    /// What was asked about: rules that something failed, and what must have come of a holder's or a session's call.
    pub asked: BTreeSet<String>,
}

impl Life {
    /// A life that has not begun.
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
            life.tell(&format!("hf-task propose Work --project {project}"), Expect::Works);
            life.tell(&format!("hf-task propose Work --project {project} --destructive"), Expect::Works);
            life.login(0, project, "6h");
        }
        life
    }

    /// Gives the vault settings: agents are not asked what they do, and no time between two looks is a gap.
    pub fn set(&mut self, approval_hours: i64, lease_seconds: i64) {
        let governance = format!(
            "governance:\n  max_retries: 50\n  max_concurrent_tasks: 50\n  approval_timeout_hours: {approval_hours}\n  \
             lease_seconds: {lease_seconds}\n"
        );
        let quiet = "liveness:\n  never_seen_seconds: 100000000\nwatchdog:\n  interval_seconds: 100000000\n";
        let config = self.place.hive.vault().join("hiveforge.config.yaml");
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

    /// Holds a reply against what was expected of it.
    fn hold(&mut self, line: &str, reply: &Reply, expect: Expect) {
        if !expect.is_met(reply) {
            let said = reply.stdout.lines().take(4).collect::<Vec<_>>().join(" ");
            self.complain(format!("{line} should be {expect:?}: {said}"));
        }
        let wrong = std::mem::take(&mut self.place.wrong);
        wrong.into_iter().for_each(|what| self.complain(what));
    }

    /// What became of a command, for the comparison of two lives.
    fn note(&mut self, line: &str, reply: &Reply) {
        let status = reply.all("STATUS").first().copied().unwrap_or_default().to_owned();
        // Whoever leaves what is over leaves nothing; either way it is gone.
        let status = if line.contains("logout") { String::new() } else { status };
        self.story.push(format!("{} {line} -> {:?} {status}", time(self.now), reply.code));
    }

    /// A command of the operator.
    pub fn tell(&mut self, line: &str, expect: Expect) -> Reply {
        let reply = self.place.run(&[], line);
        self.note(line, &reply);
        self.hold(line, &reply, expect);
        reply
    }

    /// A command of an agent.
    fn act(&mut self, caller: &Caller, line: &str, flag: &str, expect: Expect) -> Reply {
        let reply = caller.run(&mut self.place, line, flag);
        let whole = format!("[{}{}] {line}", caller.agent, if caller.session.is_some() { " in session" } else { "" });
        self.note(&whole, &reply);
        self.hold(&whole, &reply, expect);
        reply
    }

    /// An agent, half the time in the shell of its newest session.
    fn caller(&mut self) -> Caller {
        let n = self.dice.below(AGENTS.len() as u64) as usize;
        let session = self.sessions[n].clone().filter(|_| self.dice.below(2) == 0);
        Caller { agent: AGENTS[n], session }
    }

    /// The agent that has a task, or had it last, as a caller.
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

    /// Time passes; often just until something is, or is not any more, in time. Gives whether it did.
    fn wait(&mut self) -> bool {
        let ahead = self.world().moments_ahead(self.now);
        let (passed, at_edge) = match self.dice.below(20) {
            0..=4 => (0, false),
            5..=8 => (1 + self.dice.below(90) as i64, false),
            9..=10 => (60 * (1 + self.dice.below(15) as i64), false),
            11 => (3600 * (1 + self.dice.below(5) as i64), false),
            roll => {
                // Mostly the next one, or whatever is short is over before it was looked at.
                let next = self.dice.below(3).min(self.dice.below(3)) as usize;
                ahead.get(next).map_or((30, false), |end| (end - self.now + i64::from(roll > 14), true))
            }
        };
        self.go_to(self.now + passed);
        at_edge
    }

    /// The watchdog comes by: it finds what is late, and leaves nothing of it.
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

    fn propose(&mut self) {
        let open = self.world().tasks.values().filter(|task| task.phase != Phase::Over).count();
        let destructive = if self.dice.below(2) == 0 { " --destructive" } else { "" };
        let project = self.pick(&PROJECTS);
        if open < TASKS_MAX {
            self.tell(&format!("hf-task propose Work --project {project}{destructive}"), Expect::Works);
        }
    }

    fn claim(&mut self) {
        let caller = self.caller();
        let lease = self.pick(&["", " --lease 2m", " --lease 10m", " --lease 40m"]);
        if self.dice.below(3) == 0 {
            let tasks: Vec<String> = self.world().tasks.keys().cloned().collect();
            let Some(task) = self.pick_of(&tasks) else { return };
            let (name, expect) = (self.world().tasks[&task].name.clone(), self.of_claim(&caller, &task));
            self.act(&caller, &format!("hf-task claim {name}{lease}"), "--actor", expect);
            return;
        }
        let wanted = self.pick(&PROJECTS);
        let sits_in = caller.session.as_ref().map(|session| self.world().sessions[session].project.clone());
        let named = if sits_in.is_none() { format!(" --project {wanted}") } else { String::new() };
        let project = sits_in.unwrap_or_else(|| wanted.to_owned());
        let free = self.free(&project);
        let expect = match caller.leaves(self.world(), self.now, &project) {
            true => Expect::Leave,
            false if self.is_doubtful_in(&project) => Expect::Anything,
            false if free.is_empty() => Expect::NoTask,
            false => Expect::Works,
        };
        let reply = self.act(&caller, &format!("hf-task claim{named}{lease}"), "--actor", expect);
        self.settled_in(&project, &reply);
        if reply.code == Some(0) && self.dice.below(3) > 0 {
            let name = self.world().name(reply.get("SUBJECT")).to_owned();
            let line = self.start_line(&name);
            self.act(&caller, &line, "--actor", Expect::Works);
        }
        if expect == Expect::Works && reply.code == Some(0) && !free.contains(reply.get("SUBJECT")) {
            self.complain(format!("hf-task claim gave {}, which is not free", self.world().name(reply.get("SUBJECT"))));
        }
    }

    /// Whoever chooses among the tasks of a project leaves none of them late.
    fn settled_in(&mut self, project: &str, reply: &Reply) {
        let mut left = self.world().late_in(project, self.now);
        left.retain(|late| !late.doubtful);
        if reply.code == Some(0) && !left.is_empty() {
            self.complain(format!("hf-task claim left {}", shown(&left)));
        }
    }

    /// What an agent may take in a project.
    fn free(&self, project: &str) -> BTreeSet<String> {
        let ours = self.world().tasks.iter().filter(|(_, task)| task.project == project);
        let free = ours.filter(|(subject, _)| self.world().stands(subject, self.now) == Phase::Ready);
        free.map(|(subject, _)| subject.clone()).collect()
    }

    /// What somebody holds in time.
    fn held(&self) -> Vec<String> {
        let stands = |subject: &&String| self.world().stands(subject, self.now);
        let held = |subject: &&String| matches!(stands(subject), Phase::Assigned | Phase::Running);
        self.world().tasks.keys().filter(held).cloned().collect()
    }

    /// Whether the model leaves open what is free in a project.
    fn is_doubtful_in(&self, project: &str) -> bool {
        self.world().tasks.values().any(|task| task.project == project && task.doubtful)
    }

    /// What must come of the claim of one task.
    fn of_claim(&self, caller: &Caller, subject: &str) -> Expect {
        let (world, task) = (self.world(), &self.world().tasks[subject]);
        match world.stands(subject, self.now) {
            _ if caller.leaves(world, self.now, &task.project) || world.is_paused(&task.project) => Expect::Refused,
            _ if task.doubtful => Expect::Anything,
            Phase::Ready => Expect::Works,
            // To claim what one holds, or what is over, is not a question of time.
            Phase::Assigned | Phase::Running if task.holder.as_ref() != Some(&caller.actor()) => Expect::Refused,
            _ => Expect::Anything,
        }
    }

    /// A task that somebody has or had, what that one may do with it, and what must come of it.
    fn deed(&mut self) -> Option<(String, Caller, String, Expect)> {
        let had = self.world().tasks.iter().filter(|(_, t)| t.holder.is_some() && t.phase != Phase::Over);
        let had: Vec<String> = had.map(|(subject, _)| subject.clone()).collect();
        let held = self.held();
        let subject = if self.dice.below(2) == 0 { self.pick_of(&held) } else { self.pick_of(&had) }?;
        let caller = self.holder_of(&subject)?;
        let (name, project) = (self.world().tasks[&subject].name.clone(), self.world().tasks[&subject].project.clone());
        let stands = self.world().stands(&subject, self.now);
        let (begin, fail) = (self.start_line(&name), format!("hf-task fail {name} --class transient --reason x"));
        let (beat, succeed) = (format!("hf-task heartbeat {name}"), format!("hf-task succeed {name}"));
        let line = match (stands, self.dice.below(4)) {
            (Phase::Assigned, 0..=2) => begin,
            (Phase::Assigned, _) | (Phase::Running, 0..=1) => beat,
            (Phase::Running, 2) => succeed,
            (Phase::Running, _) => fail,
            (_, roll) => [beat, begin, succeed, fail][roll as usize].clone(),
        };
        let world = self.world();
        let leaves = caller.leaves(world, self.now, &project) || world.is_paused(&project);
        let expect = match stands {
            _ if world.tasks[&subject].doubtful => Expect::Anything,
            _ if caller.is_void(world, self.now) => Expect::Leave,
            // The task was lost, and the project is paused: both are true.
            Phase::Ready if leaves => Expect::Refused,
            Phase::Ready => Expect::Lost,
            _ if leaves => Expect::Leave,
            Phase::Assigned | Phase::Running => Expect::Works,
            _ => Expect::Anything,
        };
        Some((subject, caller, line, expect))
    }

    fn start_line(&mut self, name: &str) -> String {
        let timeout = self.pick(&["", "", " --timeout 1m", " --timeout 5m"]);
        format!("hf-task start {name}{timeout}")
    }

    fn work(&mut self) {
        if let Some((_, caller, line, expect)) = self.deed() {
            self.act(&caller, &line, "--actor", expect);
        }
    }

    /// An agent shows what it does: a heartbeat of what it holds, and of nothing that it let go.
    fn show(&mut self) {
        let caller = self.caller();
        let line = self.pick(&["hf-checkpoint Here", "hf-activity --kind introspection"]);
        let expect = if caller.is_void(self.world(), self.now) { Expect::Leave } else { Expect::Works };
        self.act(&caller, line, "--agent", expect);
    }

    /// An agent declares strict deep work, takes longer, or is done.
    fn dive(&mut self) {
        // Mostly one that holds something, or there is nothing to keep.
        let held = self.held();
        let holds = self.pick_of(&held).filter(|_| self.dice.below(3) > 0).and_then(|task| self.holder_of(&task));
        let caller = match holds {
            Some(holder) => holder,
            None => self.caller(),
        };
        let actor = caller.actor();
        let (leaves, void) = (caller.leaves(self.world(), self.now, "main"), caller.is_void(self.world(), self.now));
        let may = if leaves { Expect::Leave } else { Expect::Works };
        match (self.world().deep_work(&actor, self.now), self.dice.below(4)) {
            (Some(work), 0) if work.extended < 2 && work.until - work.began <= 3 * 3600 => {
                self.act(&caller, "hf-deepwork extend 30", "--agent", may);
            }
            (Some(_), 1..=2) => {
                let may = if void { Expect::Leave } else { Expect::Works };
                self.act(&caller, "hf-deepwork complete", "--agent", may);
            }
            (Some(_), _) => {}
            (None, _) => {
                if self.careful && self.has_let_go(|task| task.holder.as_ref() == Some(&actor)) {
                    return;
                }
                let minutes = self.pick(&[1, 5, 20, 60, 120]);
                self.act(&caller, &format!("hf-deepwork start --strict {minutes} Deep"), "--agent", may);
            }
        }
    }

    /// An agent logs in, stays, or leaves.
    fn sit(&mut self) {
        let n = self.dice.below(AGENTS.len() as u64) as usize;
        let agent = AGENTS[n];
        match (self.sessions[n].clone(), self.dice.below(5)) {
            (Some(session), 0..=1) => {
                let caller = Caller { agent, session: Some(session) };
                let leaves = caller.leaves(self.world(), self.now, "");
                let expect = if leaves { Expect::Leave } else { Expect::Works };
                let ttl = self.pick(&["5m", "6h"]);
                self.act(&caller, &format!("hf-session renew --ttl {ttl}"), "--agent", expect);
            }
            (Some(session), 2) => {
                self.act(&Caller { agent, session: Some(session) }, "hf-session logout", "--agent", Expect::Works);
                self.sessions[n] = None;
            }
            _ => {
                let (project, ttl) = (self.pick(&PROJECTS), self.pick(&["5m", "1h", "12h"]));
                self.login(n, project, ttl);
            }
        }
    }

    pub fn login(&mut self, n: usize, project: &str, ttl: &str) {
        let expect = if self.world().is_paused(project) { Expect::Refused } else { Expect::Works };
        let line = format!("hf-session login --project {project} --ttl {ttl}");
        let reply = self.act(&Caller { agent: AGENTS[n], session: None }, &line, "--agent", expect);
        if reply.code == Some(0) {
            self.sessions[n] = Some(reply.get("SUBJECT").to_owned());
        }
    }

    /// An operator answers, in time or late.
    fn answer(&mut self) {
        let open = self.world().decisions.values().filter(|decision| decision.open);
        let open: Vec<String> = open.map(|decision| decision.name.clone()).collect();
        let Some(name) = self.pick_of(&open) else { return };
        let line = match self.dice.below(4) {
            0 => format!("hf-decide reject {name} --reason no"),
            _ => format!("hf-decide approve {name}"),
        };
        self.tell(&line, Expect::Works);
    }

    /// An operator changes the settings. A longer limit takes back what nobody has recorded.
    fn govern(&mut self) {
        let (hours, lease) = (self.pick(&[1, 6, 24, 48]), self.pick(&[120, 900, 3600]));
        if !self.careful || !self.world().has_unanswered(self.now) {
            self.set(hours, lease);
        }
    }

    /// Whether somebody let such a task go and nobody has taken it since, recorded or not.
    fn has_let_go(&self, such: impl Fn(&Task) -> bool) -> bool {
        let world = self.world();
        let had = world.tasks.iter().filter(|(_, task)| task.holder.is_some() && such(task));
        had.into_iter().any(|(subject, _)| world.stands(subject, self.now) == Phase::Ready)
    }

    fn pause(&mut self) {
        let paused = PROJECTS.into_iter().find(|project| self.world().is_paused(project));
        // What is paused mostly goes on before something else is.
        let project = paused.filter(|_| self.dice.below(4) > 0).unwrap_or(self.pick(&PROJECTS));
        if self.world().is_paused(project) {
            self.tell(&format!("hf-resume --project {project}"), Expect::Works);
        } else if self.world().tasks.values().any(|task| task.project == project)
            && !(self.careful && self.has_let_go(|task| task.project == project))
        {
            self.tell(&format!("hf-pause look --project {project}"), Expect::Works);
        }
    }

    // --- What everybody says of one moment, each on a copy of the vault ----------------------------

    fn ask(&mut self) {
        let project = self.pick(&PROJECTS);
        self.ask_everybody(project);
    }

    /// The readers, whoever wants a task of this project, somebody who holds one, somebody who is logged in.
    pub fn ask_everybody(&mut self, project: &str) {
        let late = self.world().late(self.now);
        for late in &late {
            let sort = late.name.split('-').next().unwrap_or_default();
            self.asked.extend(late.rules.keys().map(|rule| format!("{rule} {sort}")));
        }
        let verdict = self.ask_readers(&late);
        self.ask_taker(project, &verdict);
        self.ask_holder(&verdict);
        self.ask_session();
    }

    /// hf-status and `hf-watchdog --check`. Gives the tasks that the latter says were let go.
    fn ask_readers(&mut self, late: &[Late]) -> BTreeSet<String> {
        let mut copy = self.place.copy(self.now);
        let before = copy.hive.contents();
        let check: Value = serde_json::from_str(&copy.run(&[], "hf-watchdog --check --json").stdout).expect("JSON");
        let status: Value = serde_json::from_str(&copy.run(&[], "hf-status --json").stdout).expect("JSON");
        if copy.hive.contents() != before {
            self.complain("hf-status or hf-watchdog --check changed the vault".to_owned());
        }
        let checked = self.named(&check["anomalies"]);
        self.compare("hf-watchdog --check", &checked, late);
        let problems = match &status["problems"] {
            Value::Null => &status["problem"],
            all => all,
        };
        let told = self.named(problems);
        let rows = rows(problems).len() as u64;
        // A status that names all of its problems is held to all of them, any other to what it names and counts.
        if status["problem_count"].as_u64().is_none_or(|count| count == rows) {
            self.compare("hf-status", &told, late);
        } else if !told.is_subset(&checked) {
            self.complain(format!("hf-status names {told:?}, hf-watchdog --check {checked:?}"));
        } else if status["problem_count"].as_u64() < Some(checked.len() as u64) {
            self.complain(format!("hf-status counts {}, hf-watchdog --check {checked:?}", status["problem_count"]));
        }
        checked.iter().filter_map(|(_, name)| self.world().task_called(name)).collect()
    }

    /// What a list of findings names: code and short reference, of the rules that are asked for here.
    fn named(&self, findings: &Value) -> BTreeSet<(String, String)> {
        let words = |row: &Value| -> Vec<String> {
            let members: Vec<&Value> = row.as_object().map_or(vec![row], |row| row.values().collect());
            let texts = members.into_iter().filter_map(Value::as_str);
            texts.flat_map(|text| text.split_whitespace().map(str::to_owned)).collect()
        };
        let pair = |row: &Value| {
            let words = words(row);
            let code = words.iter().find(|word| is_asked_for(word))?.clone();
            let named = words.iter().map(|word| self.world().name(word.split('@').next().unwrap_or(word)));
            let reference = |word: &&str| ["T-", "RUN-", "S-", "DEC-"].iter().any(|prefix| word.starts_with(prefix));
            Some((code, named.into_iter().find(reference).unwrap_or("?").to_owned()))
        };
        rows(findings).into_iter().filter_map(pair).collect()
    }

    /// Holds what somebody finds late against what is late.
    fn compare(&mut self, who: &str, found: &BTreeSet<(String, String)>, late: &[Late]) {
        let fits = |(code, name): &(String, String)| {
            late.iter().any(|late| late.name == *name && late.rules.contains_key(code.as_str()))
        };
        let doubtful =
            |name: &str| self.world().task_called(name).is_some_and(|task| self.world().tasks[&task].doubtful);
        let more: Vec<_> = found.iter().filter(|pair| !fits(pair) && !doubtful(&pair.1)).collect();
        let missing: Vec<&Late> =
            late.iter().filter(|late| !late.doubtful && !found.iter().any(|(_, name)| *name == late.name)).collect();
        if !more.is_empty() || !missing.is_empty() {
            let missing: Vec<Late> = missing.into_iter().cloned().collect();
            let what = format!("{who} finds {more:?} that is in time, and not {}", shown(&missing));
            self.complain(what);
        }
    }

    /// Somebody else takes whatever can be had in a project: what is free, what was let go, and nothing more.
    fn ask_taker(&mut self, project: &str, let_go: &BTreeSet<String>) {
        let mut copy = self.place.copy(self.now);
        let line = format!("hf-task claim --project {project} --actor {TAKER}");
        if self.world().is_paused(project) {
            let reply = copy.run(&[], &line);
            return self.hold(&line, &reply, Expect::Leave);
        }
        let ours = |subject: &String| self.world().tasks[subject].project == project;
        let doubtful = |subject: &String| self.world().tasks[subject].doubtful;
        let mut free: BTreeSet<String> = self.free(project).into_iter().filter(|s| !doubtful(s)).collect();
        free.extend(let_go.iter().filter(|subject| ours(subject) && doubtful(subject)).cloned());
        let mut taken = BTreeSet::new();
        loop {
            let reply = copy.run(&[], &line);
            match reply.code {
                Some(0) if taken.insert(reply.get("SUBJECT").to_owned()) => {}
                Some(1) => break,
                _ => {
                    self.hold(&line, &reply, Expect::NoTask);
                    break;
                }
            }
        }
        self.place.wrong.append(&mut copy.wrong);
        if taken != free {
            let named = |all: &BTreeSet<String>| -> Vec<String> {
                all.iter().map(|subject| self.world().name(subject).to_owned()).collect()
            };
            let what = format!("{line} gets {:?}, where {:?} can be had", named(&taken), named(&free));
            self.complain(what);
        }
    }

    /// Whoever holds a task, or thinks so, goes on with it.
    fn ask_holder(&mut self, let_go: &BTreeSet<String>) {
        let Some((subject, caller, line, expect)) = self.deed() else { return };
        let mut copy = self.place.copy(self.now);
        let reply = caller.run(&mut copy, &line, "--actor");
        self.place.wrong.append(&mut copy.wrong);
        let whole = format!("(copy) [{}] {line}", caller.agent);
        self.hold(&whole, &reply, expect);
        self.asked.insert(format!("holder {expect:?}"));
        // Where the design leaves it open, the others are believed.
        if expect == Expect::Anything && reply.code == Some(0) && let_go.contains(&subject) {
            self.complain(format!("{whole} works, although hf-watchdog --check says that it was let go"));
        }
    }

    /// Whoever sits in a session stays, or is told to leave.
    fn ask_session(&mut self) {
        let seated: Vec<usize> = (0..AGENTS.len()).filter(|n| self.sessions[*n].is_some()).collect();
        let Some(n) = self.pick_of(&seated) else { return };
        let session = self.sessions[n].clone().expect("looked at above");
        let caller = Caller { agent: AGENTS[n], session: Some(session) };
        let line = self.pick(&["hf-session renew", "hf-checkpoint Here"]);
        let leaves = match line {
            "hf-session renew" => caller.leaves(self.world(), self.now, ""),
            // Who is asked to tidy up may say what it does.
            _ => caller.is_void(self.world(), self.now),
        };
        let mut copy = self.place.copy(self.now);
        let reply = caller.run(&mut copy, line, "--agent");
        self.place.wrong.append(&mut copy.wrong);
        let expect = if leaves { Expect::Leave } else { Expect::Works };
        self.hold(&format!("(copy) [{}] {line}", caller.agent), &reply, expect);
        self.asked.insert(format!("session {expect:?}"));
    }

    /// The log of the whole life keeps the rules.
    pub fn end(&mut self) {
        let reply = self.place.run(&[], "hf-verify --policy");
        if reply.all("POLICY") != ["OK"] {
            self.complain(format!("hf-verify --policy finds {:?}", reply.all("FINDING")));
        }
    }
}
