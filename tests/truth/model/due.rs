//! What is late: claims, runs, sessions and decisions whose time is over although nothing has recorded that.
//!
//! At its deadline something is still in time; it is late from the next second on.

use serde_json::json;

use super::Phase::{Active, Assigned, Requested, Running};
use super::{Task, World};
use crate::clock::time;
use crate::log::Event;

/// Something that is late.
#[derive(Clone, Debug)]
pub struct Due {
    pub at: i64,
    /// How many events the log had when its time began.
    pub no: usize,
    /// The event that records it, and the short reference of what it is about.
    pub kind: &'static str,
    pub subject: String,
    /// What hf-status calls it: the task of a claim or run, else the same.
    pub shown: String,
    pub why: String,
}

impl World {
    /// The earliest time from which the deadlines of a held task are counted. None while its time is suspended.
    fn counts_from(&self, task: &Task, now: i64) -> Option<i64> {
        let agent = task.holder.as_deref().and_then(|holder| holder.strip_prefix("agent:")).unwrap_or_default();
        if self.is_paused(&task.project) || self.strict(agent, now).is_some() {
            return None;
        }
        let resumed = self.projects.get(&task.project).and_then(|project| project.resumed);
        let surfaced =
            self.deep_works.values().filter(|work| work.agent == agent && work.strict).map(|work| work.until);
        surfaced.chain(resumed).max().or(Some(i64::MIN))
    }

    /// When the claim of a held task ends, unless its holder is heard. None while its time is suspended.
    pub fn lease_until(&self, task: &Task, now: i64) -> Option<i64> {
        let (lease, counts) = (task.lease?, self.counts_from(task, now)?);
        let heard = match task.phase {
            Running => self.runs[task.run.as_ref()?].heard,
            _ => task.renewed,
        };
        Some(heard.max(counts) + lease)
    }

    fn due_of_task(&self, name: &str, task: &Task, now: i64) -> Option<Due> {
        let holder = task.holder.clone().unwrap_or_default();
        let lease = self.lease_until(task, now);
        let expired = |kind, subject: &str, no| {
            lease.map(|at| {
                let why = format!("lease of {holder} expired at {}", time(at));
                Due { at, no, kind, subject: subject.to_owned(), shown: name.to_owned(), why }
            })
        };
        match task.phase {
            Assigned => expired("ClaimExpired", name, task.assigned).filter(|due| now > due.at),
            Running => {
                let run = task.run.as_ref()?;
                let no = self.runs[run].no;
                let limit = self.runs[run].limit.and_then(|limit| {
                    let at = self.runs[run].began.max(self.counts_from(task, now)?) + limit;
                    let why = format!("run of {holder} exceeded its time limit at {}", time(at));
                    Some(Due { at, no, kind: "RunTimedOut", subject: run.clone(), shown: name.to_owned(), why })
                });
                let all = expired("RunTimedOut", run, no).into_iter().chain(limit);
                all.filter(|due| now > due.at).min_by_key(|due| due.at)
            }
            _ => None,
        }
    }

    /// Every claim, run and session that is late, and every decision; in the order of their deadlines.
    pub fn late(&self, now: i64) -> Vec<Due> {
        let mut all: Vec<Due> =
            self.tasks.iter().filter_map(|(name, task)| self.due_of_task(name, task, now)).collect();
        for (name, session) in self.sessions.iter().filter(|(_, s)| s.phase == Active && now > s.until) {
            let why = format!("session of agent:{} expired at {}", session.agent, time(session.until));
            let (subject, shown) = (name.clone(), name.clone());
            all.push(Due { at: session.until, no: session.no, kind: "SessionExpired", subject, shown, why });
        }
        let limit = self.settings.approval_hours * 3600;
        for (name, decision) in self.decisions.iter().filter(|(_, d)| d.phase == Requested && now > d.asked + limit) {
            let (at, subject, shown) = (decision.asked + limit, name.clone(), name.clone());
            let why = format!("approval was due at {}", time(at));
            all.push(Due { at, no: decision.no, kind: "ApprovalTimedOut", subject, shown, why });
        }
        // Of two at the same time, the one comes first that began first.
        all.sort_by_key(|due| (due.at, due.no));
        all
    }

    /// The world with everything applied that is late.
    pub fn applied(&self, now: i64) -> World {
        self.settled(now, |_| true)
    }

    /// The world with some of what is late applied.
    pub fn settled(&self, now: i64, wanted: impl Fn(&Due) -> bool) -> World {
        let mut world = self.clone();
        for due in self.late(now).into_iter().filter(wanted) {
            // An earlier one may have changed what this one is about.
            if world.late(now).iter().any(|late| late.kind == due.kind && late.subject == due.subject) {
                world.apply(&due, now);
            }
        }
        world
    }

    fn apply(&mut self, due: &Due, now: i64) {
        let event = Event {
            id: format!("due-{}", self.count),
            at: now,
            kind: due.kind.to_owned(),
            subject: self.subjects[&due.subject].clone(),
            actor: "core:watchdog".to_owned(),
            payload: json!({"due_at": time(due.at)}),
            batch: (1, 1),
        };
        // What is due first explains a task, whatever else is due after that.
        let earlier: Vec<_> =
            self.tasks.iter().filter_map(|(name, task)| Some((name.clone(), task.due.clone()?))).collect();
        let followed = self.unfold(&event);
        let changed: Vec<String> = followed.iter().map(|event| self.name(&event.subject)).collect();
        for changed in changed.into_iter().chain([due.shown.clone()]) {
            if let Some(task) = self.tasks.get_mut(&changed) {
                task.due = Some((due.at, due.why.clone()));
            }
        }
        for (name, why) in earlier {
            self.tasks.get_mut(&name).expect("it was there").due = Some(why);
        }
    }

    /// The next deadlines, for lives that go exactly there.
    pub fn moments_ahead(&self, now: i64) -> Vec<i64> {
        let held = self.tasks.values().filter(|task| task.is_held());
        let mut all: Vec<i64> = held.filter_map(|task| self.lease_until(task, now)).collect();
        let runs = self.runs.values().filter(|run| run.phase == Running);
        all.extend(runs.filter_map(|run| Some(run.began + run.limit?)));
        all.extend(self.sessions.values().filter(|session| session.phase == Active).map(|session| session.until));
        let limit = self.settings.approval_hours * 3600;
        all.extend(self.decisions.values().filter(|d| d.phase == Requested).map(|decision| decision.asked + limit));
        all.extend(self.deep_works.values().filter(|work| work.strict).map(|work| work.until));
        all.retain(|end| *end > now);
        all.sort_unstable();
        all
    }
}
