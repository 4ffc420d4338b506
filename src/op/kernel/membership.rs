//! Whose shell a request comes from, as far as sessions and projects go.

use super::context::{Context, Shell};
use crate::base::actor::ActorKind;
use crate::base::{EntityType, Result, text};
use crate::machine;
use crate::policy::project::{self, Membership};
use crate::state::State;

/// Whose shell a command was started in, as far as sessions and projects go.
pub(super) fn membership(ctx: &Context, state: &State) -> Result<Membership> {
    if ctx.caller.shell == Shell::Supervisors {
        return Ok(Membership::Unrestricted);
    }
    let Some(name) = &ctx.session else {
        return Ok(match ctx.caller.actor.kind == ActorKind::Agent || ctx.caller.is_in_agent_shell() {
            true => Membership::Agent(ctx.project()),
            false => Membership::Unrestricted,
        });
    };
    let session = state.find(name, EntityType::Session).ok().and_then(|subject| state.entity(&subject));
    let Some(session) = session else {
        let why = format!("there is no session '{}'", text::cut(name, 40));
        return Ok(Membership::InvalidSession(why));
    };
    if let (Shell::Agents(me), Some(agent)) = (&ctx.caller.shell, session.as_session().agent())
        && me != agent
    {
        return Ok(Membership::OtherAgentsSession(format!("{} is a session of agent {agent}", session.name())));
    }
    // What is over has been settled before.
    let over = session.phase != machine::Phase::Active;
    Ok(match project::project_of(&session) {
        Some(project) if !over => Membership::Session(project),
        _ => Membership::InvalidSession(format!("session {} is over: log out, and log in anew", session.name())),
    })
}
