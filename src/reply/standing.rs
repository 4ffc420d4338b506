//! What stands in the way of all work, in every reply: an agent is told to leave or to ask, an operator sees since when
//! and why.

use super::{Key, Next, Reply, Status, row};
use crate::base::Subject;
use crate::base::actor::ActorKind;
use crate::op::{Context, Obstacle, Standing};

impl Reply {
    /// Tells the caller what stands in the way, unless the reply takes it into account already.
    pub fn with_standing(mut self, ctx: &Context, standing: &Standing) -> Reply {
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
            let Standing { obstacle, project, since, by, why } = standing;
            let project = project.as_ref().map(Subject::id);
            return self.with_row(
                Key::Standing,
                row![
                    obstacle.as_str(),
                    *since,
                    project,
                    by.as_deref(),
                    Some(why.as_str()).filter(|why| !why.is_empty())
                ],
            );
        }
        self.next = match standing.obstacle {
            Obstacle::Stopped => Next::OPERATOR,
            Obstacle::Paused | Obstacle::Archived | Obstacle::SessionOver if is_agent => {
                Next::run("hf-session").word("logout")
            }
            _ => Next::OPERATOR,
        };
        self
    }

    /// Marks a reply that already says what a stop, a pause or the end of a session means for the caller.
    pub fn tells_standing(mut self) -> Reply {
        self.tells_standing = true;
        self
    }
}
