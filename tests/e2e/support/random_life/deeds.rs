//! The actions of agents and the operator in a random life.

use std::collections::BTreeSet;

use crate::support::random_life::model::{Phase, Task};
use crate::support::random_life::place::{Caller, Expect, shown};
use crate::support::test_vault::Reply;

use super::{AGENTS, Life, PROJECTS, TASKS_MAX};

impl Life {
    pub(super) fn propose(&mut self) {
        let open = self.world().tasks.values().filter(|task| task.phase != Phase::Over).count();
        let destructive = if self.dice.below(2) == 0 { " --destructive" } else { "" };
        let project = self.pick(&PROJECTS);
        if open < TASKS_MAX {
            self.tell(&format!("hf-task propose Work --project {project} --create{destructive}"), Expect::Works);
        }
    }

    pub(super) fn claim(&mut self) {
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

    /// Checks that a claim without a name leaves no overdue task in the project.
    pub(super) fn settled_in(&mut self, project: &str, reply: &Reply) {
        let mut left = self.world().late_in(project, self.now);
        left.retain(|late| !late.doubtful);
        if reply.code == Some(0) && !left.is_empty() {
            self.complain(format!("hf-task claim left {}", shown(&left)));
        }
    }

    /// The tasks of a project that an agent may claim.
    pub(super) fn free(&self, project: &str) -> BTreeSet<String> {
        let ours = self.world().tasks.iter().filter(|(_, task)| task.project == project);
        let free = ours.filter(|(subject, _)| self.world().stands(subject, self.now) == Phase::Ready);
        free.map(|(subject, _)| subject.clone()).collect()
    }

    /// The tasks that are held and not late.
    pub(super) fn held(&self) -> Vec<String> {
        let stands = |subject: &&String| self.world().stands(subject, self.now);
        let held = |subject: &&String| matches!(stands(subject), Phase::Assigned | Phase::Running);
        self.world().tasks.keys().filter(held).cloned().collect()
    }

    /// Whether the model leaves open which tasks of a project are free.
    pub(super) fn is_doubtful_in(&self, project: &str) -> bool {
        self.world().tasks.values().any(|task| task.project == project && task.doubtful)
    }

    /// The expected result of claiming one task.
    pub(super) fn of_claim(&self, caller: &Caller, subject: &str) -> Expect {
        let (world, task) = (self.world(), &self.world().tasks[subject]);
        match world.stands(subject, self.now) {
            _ if caller.leaves(world, self.now, &task.project) || world.is_paused(&task.project) => Expect::Refused,
            _ if task.doubtful => Expect::Anything,
            Phase::Ready => Expect::Works,
            // Claiming one's own task, or a finished one, does not depend on time.
            Phase::Assigned | Phase::Running if task.holder.as_ref() != Some(&caller.actor()) => Expect::Refused,
            _ => Expect::Anything,
        }
    }

    /// A task that an agent holds or held, the agent, a command about the task, and the expected result.
    pub(super) fn deed(&mut self) -> Option<(String, Caller, String, Expect)> {
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
            // The task was lost and the project is paused: either may be the reason.
            Phase::Ready if leaves => Expect::Refused,
            Phase::Ready => Expect::Lost,
            _ if leaves => Expect::Leave,
            Phase::Assigned | Phase::Running => Expect::Works,
            _ => Expect::Anything,
        };
        Some((subject, caller, line, expect))
    }

    pub(super) fn start_line(&mut self, name: &str) -> String {
        let timeout = self.pick(&["", "", " --timeout 1m", " --timeout 5m"]);
        format!("hf-task start {name}{timeout}")
    }

    pub(super) fn work(&mut self) {
        if let Some((_, caller, line, expect)) = self.deed() {
            self.act(&caller, &line, "--actor", expect);
        }
    }

    /// An agent reports what it does, which is a heartbeat for the tasks it holds, and only for those.
    pub(super) fn show(&mut self) {
        let caller = self.caller();
        let line = self.pick(&["hf-checkpoint Here", "hf-activity --kind introspection"]);
        let expect = if caller.is_void(self.world(), self.now) { Expect::Leave } else { Expect::Works };
        self.act(&caller, line, "--agent", expect);
    }

    /// An agent declares, extends or completes strict deep work.
    pub(super) fn dive(&mut self) {
        // Usually an agent that holds a task, because otherwise deep work protects nothing.
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

    /// An agent logs in, renews its session, or logs out.
    pub(super) fn sit(&mut self) {
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
        let line = format!("hf-session login --project {project} --create --ttl {ttl}");
        let reply = self.act(&Caller { agent: AGENTS[n], session: None }, &line, "--agent", expect);
        if reply.code == Some(0) {
            self.sessions[n] = Some(reply.get("SUBJECT").to_owned());
        }
    }

    /// An operator answers a decision, in time or late.
    pub(super) fn answer(&mut self) {
        let open = self.world().decisions.values().filter(|decision| decision.open);
        let open: Vec<String> = open.map(|decision| decision.name.clone()).collect();
        let Some(name) = self.pick_of(&open) else { return };
        let line = match self.dice.below(4) {
            0 => format!("hf-decide reject {name} --reason no"),
            _ => format!("hf-decide approve {name}"),
        };
        self.tell(&line, Expect::Works);
    }

    /// An operator changes the settings. A longer limit cancels what was due but not yet recorded.
    pub(super) fn govern(&mut self) {
        let (hours, lease) = (self.pick(&[1, 6, 24, 48]), self.pick(&[120, 900, 3600]));
        if !self.careful || !self.world().has_unanswered(self.now) {
            self.set(hours, lease);
        }
    }

    /// Whether such a task was lost by its holder and not claimed since, recorded or not.
    pub(super) fn has_let_go(&self, such: impl Fn(&Task) -> bool) -> bool {
        let world = self.world();
        let had = world.tasks.iter().filter(|(_, task)| task.holder.is_some() && such(task));
        had.into_iter().any(|(subject, _)| world.stands(subject, self.now) == Phase::Ready)
    }

    pub(super) fn pause(&mut self) {
        let paused = PROJECTS.into_iter().find(|project| self.world().is_paused(project));
        // Usually resume a paused project before pausing another.
        let project = paused.filter(|_| self.dice.below(4) > 0).unwrap_or(self.pick(&PROJECTS));
        if self.world().is_paused(project) {
            self.tell(&format!("hf-resume --project {project}"), Expect::Works);
        } else if self.world().tasks.values().any(|task| task.project == project)
            && !(self.careful && self.has_let_go(|task| task.project == project))
        {
            self.tell(&format!("hf-pause look --project {project}"), Expect::Works);
        }
    }
}
