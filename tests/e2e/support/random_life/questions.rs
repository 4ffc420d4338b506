//! Asks every command about the same moment, each on a copy of the vault.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::random_life::model::{Late, time};
use crate::support::random_life::place::{Caller, Expect, is_asked_for, rows, shown};

use super::{AGENTS, Life, PROJECTS, TAKER};

/// The rule that a problem of hf-status is about, of those that this model covers.
fn code_of(kind: &str, what: &str) -> Option<&'static str> {
    match (kind, what.split_whitespace().next()?) {
        ("overdue_decision", _) => Some("APPROVAL_OVERDUE"),
        ("overdue", "lease") => Some("LEASE_EXPIRED"),
        ("overdue", "session") => Some("SESSION_EXPIRED"),
        ("overdue", "run") if what.contains(" exceeded its time limit at ") => Some("RUN_OVERTIME"),
        ("overdue", _) => panic!("an unknown sort of overdue: {what}"),
        _ => None,
    }
}

impl Life {
    pub(super) fn ask(&mut self) {
        let project = self.pick(&PROJECTS);
        self.ask_everybody(project);
    }

    /// Asks the readers, an agent that claims tasks of this project, a holder, and an agent in a session.
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

    /// Asks hf-status and `hf-watchdog --check`. Returns the tasks that the latter reports as lost.
    pub(super) fn ask_readers(&mut self, late: &[Late]) -> BTreeSet<String> {
        let mut copy = self.place.copy(self.now);
        let before = copy.hive.contents();
        let check: Value = serde_json::from_str(&copy.run(&[], "hf-watchdog --check --json").stdout).expect("JSON");
        let status: Value = serde_json::from_str(&copy.run(&[], "hf-status --json").stdout).expect("JSON");
        if copy.hive.contents() != before {
            self.complain("hf-status or hf-watchdog --check changed the vault".to_owned());
        }
        let checked = self.named(&check["anomalies"]);
        self.compare("hf-watchdog --check", &checked, late);
        self.compare_status(&status, late);
        checked.iter().filter_map(|(_, name)| self.world().task_called(name)).collect()
    }

    /// Compares what hf-status reports as late with what is late: everything, and since when.
    fn compare_status(&mut self, status: &Value, late: &[Late]) {
        let problems = rows(&status["problems"]);
        if status["problem_count"].as_u64() != Some(problems.len() as u64) {
            self.complain(format!("hf-status counts {} and lists {}", status["problem_count"], problems.len()));
        }
        let (mut told, mut answerless, mut wrong) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        for problem in problems {
            let [kind, subject, what] =
                ["kind", "subject", "what"].map(|member| problem[member].as_str().unwrap_or(""));
            if kind == "overdue_decision" && self.world().timed_out().any(|name| name == subject) {
                answerless.insert(subject.to_owned());
                continue;
            }
            let Some(code) = code_of(kind, what) else { continue };
            // A run is listed by its task.
            let its =
                |late: &&Late| late.task.as_ref().map_or(late.name.as_str(), |task| self.world().name(task)) == subject;
            let found = late.iter().find(its);
            let since = problem["since"].as_str().unwrap_or_default();
            let due = found.and_then(|late| late.rules.get(code)).map(|due| time(*due));
            if due.as_deref().is_some_and(|due| due != since) && !found.is_some_and(|late| late.doubtful) {
                wrong.push(format!("hf-status: {subject} {what}, since {since}, not {due:?}"));
            }
            told.insert((code.to_owned(), found.map_or(subject, |late| &late.name).to_owned()));
        }
        if !self.world().timed_out().eq(answerless.iter().map(String::as_str)) {
            wrong.push(format!("hf-status lists {answerless:?} as not answered in time"));
        }
        wrong.into_iter().for_each(|what| self.complain(what));
        self.compare("hf-status", &told, late);
    }

    /// The codes and short references in a list of findings, for the rules that this model covers.
    pub(super) fn named(&self, findings: &Value) -> BTreeSet<(String, String)> {
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

    /// Compares what a command reports as late with what is late.
    pub(super) fn compare(&mut self, who: &str, found: &BTreeSet<(String, String)>, late: &[Late]) {
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
            let what = format!("{who} finds {more:?}, which is in time, and misses {}", shown(&missing));
            self.complain(what);
        }
    }

    /// Another agent claims everything available in a project: what is free, what was lost, and nothing else.
    pub(super) fn ask_taker(&mut self, project: &str, let_go: &BTreeSet<String>) {
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
            let what = format!("{line} gets {:?}, where {:?} is available", named(&taken), named(&free));
            self.complain(what);
        }
    }

    /// The holder of a task, or an agent that lost it without knowing, continues its work.
    pub(super) fn ask_holder(&mut self, let_go: &BTreeSet<String>) {
        let Some((subject, caller, line, expect)) = self.deed() else { return };
        let mut copy = self.place.copy(self.now);
        let reply = caller.run(&mut copy, &line, "--actor");
        self.place.wrong.append(&mut copy.wrong);
        let whole = format!("(copy) [{}] {line}", caller.agent);
        self.hold(&whole, &reply, expect);
        self.asked.insert(format!("holder {expect:?}"));
        // Where the design leaves it open, the answers must agree.
        if expect == Expect::Anything && reply.code == Some(0) && let_go.contains(&subject) {
            self.complain(format!("{whole} works, although hf-watchdog --check reports the task as lost"));
        }
    }

    /// An agent in a session may stay, or is told to leave.
    pub(super) fn ask_session(&mut self) {
        let seated: Vec<usize> = (0..AGENTS.len()).filter(|n| self.sessions[*n].is_some()).collect();
        let Some(n) = self.pick_of(&seated) else { return };
        let session = self.sessions[n].clone().expect("looked at above");
        let caller = Caller { agent: AGENTS[n], session: Some(session) };
        let line = self.pick(&["hf-session renew", "hf-checkpoint Here"]);
        let leaves = match line {
            "hf-session renew" => caller.leaves(self.world(), self.now, ""),
            // While it may still tidy up, an agent may report what it does.
            _ => caller.is_void(self.world(), self.now),
        };
        let mut copy = self.place.copy(self.now);
        let reply = caller.run(&mut copy, line, "--agent");
        self.place.wrong.append(&mut copy.wrong);
        let expect = if leaves { Expect::Leave } else { Expect::Works };
        self.hold(&format!("(copy) [{}] {line}", caller.agent), &reply, expect);
        self.asked.insert(format!("session {expect:?}"));
    }
}
