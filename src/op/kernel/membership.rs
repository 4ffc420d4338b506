//! Which session and project the shell of a request belongs to.

use super::context::{Context, Shell};
use crate::base::actor::ActorKind;
use crate::base::{EntityType, Result, text};
use crate::machine;
use crate::policy::project::{self, LOGOUT, Membership};
use crate::policy::rules;
use crate::state::State;

/// Refuses a project that does not exist: its name is more likely misspelled than new. An operator may create it.
pub(in crate::op) fn check_project(ctx: &Context, state: &State) -> Result<()> {
    let Some(name) = &ctx.project else { return Ok(()) };
    let subject = project::subject(name);
    if subject == project::main() || state.entity(&subject).is_some() {
        return Ok(());
    }
    if ctx.creates_project {
        // An agent that a person logs in acts in the person's shell.
        return match ctx.caller.is_in_agent_shell() {
            true => Err(rules::operator_only("creating a project", &ctx.caller.actor)),
            false => Ok(()),
        };
    }
    Err(project::unknown(state, &subject))
}

/// Returns which session and project the caller's shell belongs to.
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
        let why = format!("session '{}' not found", text::cut(name, 40));
        return Ok(Membership::InvalidSession { why, has_left: false });
    };
    if let (Shell::Agents(me), Some(agent)) = (&ctx.caller.shell, session.as_session().agent())
        && me != agent
    {
        return Ok(Membership::OtherAgentsSession(format!("{} belongs to agent {agent}", session.name())));
    }
    // A session past its limit was ended when the transaction was opened.
    let ended = session.phase != machine::Phase::Active;
    let has_left = session.as_session().end_reason() == Some(LOGOUT);
    Ok(match project::project_of(&session) {
        Some(project) if !ended => {
            Membership::Session { project, agent: session.as_session().agent().map(str::to_owned) }
        }
        // Nobody can log in to an archived project.
        Some(project) if project::phase(state, &project) == machine::Phase::Archived => {
            let why = format!("session {} has ended: project {} is archived", session.name(), project.id());
            Membership::InvalidSession { why: format!("{why}, which is final; leave it"), has_left }
        }
        _ => {
            let why = format!("session {} has ended; log in again", session.name());
            Membership::InvalidSession { why, has_left }
        }
    })
}
