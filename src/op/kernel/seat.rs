//! Whose shell a request comes from, as far as sessions and projects go.

use super::context::{Context, Shell};
use crate::base::actor::ActorKind;
use crate::base::{EntityType, Result, text};
use crate::machine;
use crate::policy::project::{self, Seat};
use crate::state::State;

/// Whose shell a command was started in, as far as sessions and projects go.
pub(super) fn seat(ctx: &Context, state: &State) -> Result<Seat> {
    if ctx.caller.shell == Shell::Supervisors {
        return Ok(Seat::Free);
    }
    let Some(name) = &ctx.session else {
        return Ok(match ctx.caller.actor.kind == ActorKind::Agent || ctx.caller.is_in_agent_shell() {
            true => Seat::Agent(ctx.project()),
            false => Seat::Free,
        });
    };
    let session = state.find(name, EntityType::Session).ok().and_then(|subject| state.entity(&subject));
    let Some(session) = session else {
        let why = format!("there is no session '{}'", text::cut(name, 40));
        return Ok(Seat::Void(why));
    };
    if let (Shell::Agents(me), Some(agent)) = (&ctx.caller.shell, session.as_session().agent())
        && me != agent
    {
        return Ok(Seat::Foreign(format!("{} is a session of agent {agent}", session.name())));
    }
    // What is over has been settled before.
    let over = session.phase != machine::Phase::Active;
    Ok(match project::of(&session) {
        Some(project) if !over => Seat::Session(project),
        _ => Seat::Void(format!("session {} is over: log out, and log in anew", session.name())),
    })
}
