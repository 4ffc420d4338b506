//! What every reply tells its caller. What stands in the way of all work: an agent is told to leave or to ask, and in a
//! paused project why and by when; an operator sees since when and why. And what took a persona away from its branch: how
//! to close that activity with a summary, and where to go on; and what it had not reacted to before it did something.

use super::{Key, Next, Reply, Row, Status, branch, row};
use crate::base::actor::ActorKind;
use crate::base::{EntityType, Subject, Timestamp, text};
use crate::machine::Phase;
use crate::op::branch::ChangeSeen;
use crate::op::{CallersSituation, Context, Departure, Displacement, DisplacementCause, Obstacle, Standing};
use crate::state::Entity;

/// How much of a label is shown.
const LABEL_MAX_CHARS: usize = 40;

impl Reply {
    /// Tells the caller about its situation.
    pub fn with_situation(self, ctx: &Context, situation: &CallersSituation, changes: &[ChangeSeen]) -> Reply {
        // Nothing can be said in what is archived.
        let is_over = situation.standing.as_ref().is_some_and(|standing| standing.obstacle == Obstacle::Archived);
        let reply = match &situation.displacement {
            Some(displacement) if !is_over => self.with_displacement(displacement),
            _ => self,
        };
        let reply = match changes {
            [] => reply,
            some => reply.with_rows(Key::Change, some.iter().map(branch::change)),
        };
        match &situation.standing {
            Some(standing) => reply.with_standing(ctx, standing, situation.departure),
            None => reply,
        }
    }

    /// Tells a persona what took it away from its branch, how to summarize what it did there, how to answer, and how to
    /// note something where it is now.
    fn with_displacement(mut self, displacement: &Displacement) -> Reply {
        let Displacement { left, at, root, causes, needs_summary } = displacement;
        let is_message = |cause: &&DisplacementCause| cause.entity.subject.entity == EntityType::Message;
        let message = causes.iter().find(is_message);
        // On its root it left nothing behind: it is told where it is when it speaks.
        let is_at_rest = left.as_ref().is_some_and(Entity::is_root) && message.is_none();
        if is_at_rest && self.status != Status::Interrupted {
            return self;
        }
        let is_unread = message.is_some_and(|cause| cause.entity.phase == Phase::Unread);
        let leads_elsewhere = self.next.argv().first().is_none_or(|command| command != "hf-branch");
        if is_unread && leads_elsewhere && self.exit == 0 {
            self.next = branch::read_inbox();
        }
        let summarize = left.as_ref().filter(|_| *needs_summary);
        let mut places: Vec<&Entity> = message.map(|_| root).into_iter().collect();
        let is_leaving = |left: &Entity| left.subject == at.subject && !left.is_root();
        let has_left = left.as_ref().is_some_and(|left| !is_leaving(left));
        if has_left && places.iter().all(|place| place.subject != at.subject) {
            places.push(at);
        }
        let advice = summarize
            .map(|left| format!("hf-branch suspend {} --summary TEXT", left.name()))
            .into_iter()
            .chain(places.iter().map(|place| format!("hf-branch note --branch {} TEXT", place.name())));
        let advice: Vec<String> = advice.collect();
        let name = left.as_ref().map(Entity::name);
        let label = left.as_ref().and_then(|left| left.as_branch().label());
        let label = label.map(|label| text::cut(label, LABEL_MAX_CHARS));
        let rows = causes
            .iter()
            .map(|cause| row![cause.entity.name(), cause.by.as_deref(), name.as_deref(), label.as_deref()]);
        self.with_rows(Key::Interrupted, rows).and_texts(Key::Advice, advice)
    }

    /// Tells the caller what stands in the way, unless the reply takes it into account already.
    fn with_standing(mut self, ctx: &Context, standing: &Standing, departure: Departure) -> Reply {
        if self.tells_standing {
            return self;
        }
        // Nobody can leave a session that does not exist.
        if standing.obstacle == Obstacle::SessionOver && self.status == Status::NotFound {
            self.next = Next::None;
            return self;
        }
        if standing.obstacle == Obstacle::TaskLimit {
            self.next = self.next.unless_claim();
            return self;
        }
        let is_agent = ctx.caller.actor.kind == ActorKind::Agent;
        if !is_agent && !ctx.caller.is_in_agent_shell() {
            return self.with_row(Key::Standing, standing_row(standing, None));
        }
        self.next = match standing.obstacle {
            Obstacle::Stopped => Next::OPERATOR,
            Obstacle::Paused if is_agent && departure.has_message => read_first(self.next),
            Obstacle::Paused | Obstacle::Archived | Obstacle::SessionOver if is_agent => match departure.can_log_out {
                true => Next::run("hf-session").word("logout"),
                false => Next::None,
            },
            _ => Next::OPERATOR,
        };
        // A refusal for this reason says the same in its sentence.
        match standing.obstacle == Obstacle::Paused && is_agent && self.status != Status::ExitRequested {
            true => self.with_row(Key::Standing, standing_row(standing, departure.by)),
            false => self,
        }
    }

    /// Marks a reply that already says what a stop, a pause or the end of a session means for the caller.
    pub fn tells_standing(mut self) -> Reply {
        self.tells_standing = true;
        self
    }
}

/// The same step if it is about messages already, else to read what is unread.
fn read_first(next: Next) -> Next {
    match next.argv() {
        [command, verb, ..] if command == "hf-branch" && (verb == "read" || verb == "inbox") => next,
        _ => branch::read_inbox(),
    }
}

/// What stands still, since when, by whom and why, and by when an agent has to leave.
fn standing_row(standing: &Standing, leave_by: Option<Timestamp>) -> Row {
    let Standing { obstacle, project, since, by, why } = standing;
    let project = project.as_ref().map(Subject::id);
    let why = Some(why.as_str()).filter(|why| !why.is_empty());
    row![obstacle.as_str(), *since, project, by.as_deref(), why, leave_by]
}
