//! Replies of hf-require and hf-decide.

use super::{ASK, Expected, NONE, Question, refused};
use crate::model::Phase::{
    Acknowledged, Active, Analyzed, Approved, Assigned, Blocked, Closed, Implemented, Open, Proposed, Ready, Rejected,
    Superseded, Verified,
};
use crate::model::{Phase, World};

impl Question<'_> {
    pub(super) fn requirement(&self) -> Option<Expected> {
        let verb = self.words.verb();
        if verb == "propose" {
            return self.kept_out().or_else(|| Some(Expected::new("RECORDED", NONE)));
        }
        if verb != "analyze"
            && let Some(kept) = self.for_operators()
        {
            return Some(kept);
        }
        let Some(found) = self.words.object().and_then(|name| self.view.requirements.get(name)) else {
            return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
        };
        let kept = self.kept_out();
        if let Some(kept) = kept.clone().filter(|_| self.is_agent) {
            let answer = if matches!(found.phase, Proposed | Analyzed) { None } else { refused(NONE) };
            return Some(self.kept_or(kept, answer));
        }
        let (allowed, goal, next): (&[Phase], Option<Phase>, &str) = match verb {
            "analyze" => (&[Proposed, Analyzed], None, ASK),
            "reject" => (&[Proposed, Analyzed, Blocked], Some(Rejected), NONE),
            "supersede" => (&[Approved, Blocked], Some(Superseded), NONE),
            "verify" => (&[Implemented], Some(Verified), NONE),
            _ => return None,
        };
        if goal == Some(found.phase) {
            return Some(Expected::new("DUPLICATE", NONE));
        }
        match allowed.contains(&found.phase) {
            true if kept.is_some() => kept,
            true => Some(Expected::new("RECORDED", next)),
            false => refused(NONE),
        }
    }

    pub(super) fn decision(&self) -> Option<Expected> {
        let verb = self.words.verb();
        if let Some(kept) = self.for_operators() {
            return Some(kept);
        }
        let name = self.words.object()?;
        if verb == "acknowledge" {
            return match self.view.escalations.get(name).map(|escalation| escalation.phase) {
                Some(Open) => Some(Expected::new("RECORDED", NONE)),
                Some(Acknowledged) => Some(Expected::new("DUPLICATE", NONE)),
                Some(Closed) => refused(NONE),
                _ => Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20")),
            };
        }
        let Some(decision) = self.view.decisions.get(name) else {
            return Some(Expected::new("NOT_FOUND", "ACTION hf-log --last 20"));
        };
        let goal = if verb == "approve" { Approved } else { Rejected };
        let project = self.view.project_of(&decision.target);
        if decision.is_open() && project.is_some_and(|project| self.view.is_archived(project)) {
            return refused(ASK);
        }
        let status = match decision.is_open() {
            true => "RECORDED",
            false if decision.phase == goal => "DUPLICATE",
            false => return refused(NONE),
        };
        if verb == "reject" {
            return Some(Expected::new(status, NONE));
        }
        let next = |world: &World| self.after_approval(world, &decision.kind, &decision.target);
        Some(Expected { or_next: vec![next(self.recorded)], ..Expected::new(status, next(self.after)) })
    }

    fn after_approval(&self, world: &World, kind: &str, target: &str) -> String {
        match kind {
            // It is to be verified, or decided about once more.
            "requirement_approval" if matches!(world.requirements[target].phase, Implemented | Blocked) => {
                ASK.to_owned()
            }
            "requirement_approval" => {
                let first = world.tasks_of(target).find(|(_, task)| task.phase == Ready && !task.job);
                first.map_or(NONE.to_owned(), |(name, _)| self.claim_of(world, name))
            }
            "destructive_operation" => match world.tasks[target].phase {
                _ if world.tasks[target].job && world.tasks[target].is_open() => {
                    self.action(&format!("hf-poll {target}"))
                }
                _ if world.tasks[target].job => NONE.to_owned(),
                Ready => self.claim_of(world, target),
                Proposed => format!("ACTION hf-task explain {target}"),
                Assigned if world.tasks[target].holder.as_ref() == Some(&self.actor) => {
                    // Nothing starts in a paused project.
                    if world.stop.is_some() || world.project_phase(&world.tasks[target].project) != Active {
                        return ASK.to_owned();
                    }
                    self.action(&format!("hf-task start {target}"))
                }
                _ => NONE.to_owned(),
            },
            _ => NONE.to_owned(),
        }
    }
}
