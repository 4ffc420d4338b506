//! The rules that agents can break, as far as they are errors, and their last sign of life.

use std::collections::BTreeSet;

use super::Phase::{Active, Ended, Open};
use super::{DeepWork, Duty, World};

/// The newest sign of life of an agent.
#[derive(Clone, Copy, Debug)]
pub struct Sign {
    pub at: i64,
    pub sort: &'static str,
}

impl World {
    /// The tasks that an agent holds.
    pub fn held_by(&self, agent: &str) -> Vec<String> {
        let holder = Some(format!("agent:{agent}"));
        let held = self.tasks.iter().filter(|(_, task)| task.holder == holder && task.is_held());
        held.map(|(name, _)| name.clone()).collect()
    }

    pub fn last_sign(&self, agent: &str) -> Sign {
        let known = &self.agents[agent];
        // Of two at the same time, what it declared counts, then what it did, then what shows that it runs.
        let signs = [
            ("started", Some(known.started)),
            ("wait", known.waited),
            ("heartbeat", known.progress),
            ("seen", known.seen),
            ("checkpoint", known.checkpoint),
            ("activity", known.activity),
        ];
        let signs = signs.into_iter().filter_map(|(sort, at)| at.map(|at| Sign { at, sort }));
        signs.max_by_key(|sign| sign.at).expect("it has started")
    }

    /// The deep work that an agent has declared and not ended, in time or not.
    pub fn deep_work(&self, agent: &str) -> Option<&DeepWork> {
        self.deep_works.values().rfind(|work| work.agent == agent && work.phase == Open)
    }

    /// The projects that an agent works in: those of what it holds and of its open sessions, else that of its newest
    /// session, else main.
    pub fn projects_of(&self, agent: &str) -> BTreeSet<String> {
        let held = self.held_by(agent).into_iter().map(|task| self.tasks[&task].project.clone());
        let sessions = || self.sessions.values().filter(|session| session.agent == agent);
        let open = sessions().filter(|session| session.phase == Active).map(|session| session.project.clone());
        let mut all: BTreeSet<String> = held.chain(open).collect();
        if all.is_empty() {
            all.insert(sessions().next_back().map_or("main", |session| session.project.as_str()).to_owned());
        }
        all
    }

    /// From when the rules of an agent are counted anew. None while they stand still.
    fn judged_from(&self, agent: &str) -> Option<i64> {
        let mut projects = self.projects_of(agent);
        projects.retain(|project| self.project_phase(project) == Active);
        if self.stop.is_some() || projects.is_empty() {
            return None;
        }
        let resumed = projects.iter().filter_map(|project| self.projects.get(project)?.resumed);
        resumed.chain(self.resumed).max().or(Some(i64::MIN))
    }

    /// The rules that an agent breaks, each with the seconds since it should have been met.
    pub fn anomalies(&self, agent: &str, now: i64) -> Vec<(&'static str, i64)> {
        let Some(from) = self.judged_from(agent) else { return Vec::new() };
        if self.strict(agent, now).is_some() {
            return Vec::new();
        }
        let (known, limits, mut broken) = (&self.agents[agent], &self.settings, Vec::new());
        let mut judge = |code, since: i64, limit: i64| {
            let seconds = now - since.max(from);
            if seconds > limit {
                broken.push((code, seconds));
            }
        };
        let work = self.deep_work(agent);
        let flexible = work.filter(|work| !work.strict);
        let dived = self.deep_works.values().any(|work| work.agent == agent);
        let expected = self.is_expected(agent);
        let declared = known.checkpoint.max(known.activity);
        // Nothing counts from before a start that somebody recorded, or that came after a stop.
        let counts_from = if !known.announced || known.was_stopped { known.started } else { i64::MIN };
        match (self.last_work(agent), flexible) {
            (_, Some(work)) => {
                judge("DEEPWORK_UNCHECKED", work.began.max(known.checkpoint.unwrap_or(i64::MIN)), limits.unchecked);
            }
            (_, None) if declared.is_none() && !expected => {}
            (None, None) => judge("NEVER_SEEN", known.started, limits.never_seen),
            (Some(seen), None) => judge("INACTIVE", seen.max(counts_from), limits.inactive),
        }
        // Expected of whoever was started, or has declared anything.
        if (declared.is_some() || dived || !known.announced) && flexible.is_none() {
            let since = known.introspection.unwrap_or(known.started).max(self.surfaced(agent).unwrap_or(i64::MIN));
            judge("INTROSPECTION_OVERDUE", since.max(counts_from), limits.introspection);
        }
        if let Duty::Broken(at) = known.duty {
            broken.push(("INTROSPECTION_DUTY", now - at));
        }
        if let Some(work) = work.filter(|work| work.strict) {
            broken.push(("DEEPWORK_EXPIRED", now - work.until));
        }
        broken
    }

    /// Whether signs of life are expected of an agent. Who was only announced by a command of its own is expected while
    /// it is logged in or holds something, and after it lost something.
    fn is_expected(&self, agent: &str) -> bool {
        let known = &self.agents[agent];
        let seated = self.sessions.values().any(|session| session.agent == agent && session.phase == Active);
        let dived = self.deep_works.values().any(|work| work.agent == agent);
        !known.announced || dived || known.has_lost || seated || !self.held_by(agent).is_empty()
    }

    /// When an agent last showed that it works: what it declared, a heartbeat, or a wait.
    fn last_work(&self, agent: &str) -> Option<i64> {
        let known = &self.agents[agent];
        known.checkpoint.max(known.activity).max(known.progress).max(known.waited)
    }

    /// What an agent that has waited for a job until now should have shown and has not: that it works, and that it holds
    /// its tasks. Nobody has to show anything twice in half a minute.
    pub fn unheard(&self, agent: &str, now: i64) -> Vec<String> {
        const FRESH_SECONDS: i64 = 30;
        let mut missing = Vec::new();
        let mut check = |what: String, age: Option<i64>, limit: i64| {
            if age.is_none_or(|age| age >= (limit / 3).clamp(1, FRESH_SECONDS)) {
                missing.push(what);
            }
        };
        for name in self.held_by(agent) {
            let task = &self.tasks[&name];
            let until = self.lease_until(task, now).filter(|_| !task.job);
            if let Some((until, lease)) = until.zip(task.lease) {
                check(format!("the claim on {name}"), Some(now - (until - lease)), lease);
            }
        }
        let known = &self.agents[agent];
        let declared = known.checkpoint.max(known.activity);
        if known.phase == Active && (declared.is_some() || self.is_expected(agent)) {
            // A warning comes before the error, at half the time.
            check("its wait".to_owned(), self.last_work(agent).map(|at| now - at), self.settings.inactive / 2);
        }
        missing
    }

    /// When an agent completed its newest deep work. What another declaration continued was not completed.
    fn surfaced(&self, agent: &str) -> Option<i64> {
        let mine = self.deep_works.values().filter(|work| work.agent == agent && !work.superseded);
        let over = mine.filter(|work| work.phase == Ended);
        over.map(|work| work.until).max()
    }
}
