//! hf-watchdog: one look at everything that time can ask for.

use super::Env;
use super::desk::Desk;
use crate::base::Result;
use crate::policy::overdue::{self, Overdue};
use crate::vault::Tick;

#[derive(Debug)]
pub struct WatchdogOutcome {
    pub findings: Vec<Overdue>,
    /// What was recorded: event type and subject.
    pub did: Vec<String>,
    pub warnings: Vec<String>,
}

/// Evaluates every rule of time and records what it asks for; with `check`, only says it.
pub fn watchdog(env: &Env, check: bool) -> Result<WatchdogOutcome> {
    let vault = env.open()?;
    let mut desk = Desk::open(env, &vault, check)?;
    let now = env.now.timestamp();
    let findings = overdue::overdue(desk.state(), &desk.governance, now);
    for finding in &findings {
        // What an earlier finding led to may have settled a later one.
        if crate::machine::step(finding.subject.entity, desk.state().of(&finding.subject), finding.kind()).is_some() {
            desk.add(finding.draft())?;
        }
    }
    if !check {
        vault.put_tick(&Tick { at: now.0 })?;
    }
    let Some(first) = desk.unit().events().first().map(|event| event.id) else {
        return Ok(WatchdogOutcome { findings, did: Vec::new(), warnings: desk.warnings });
    };
    if check {
        return Ok(WatchdogOutcome { findings, did: Vec::new(), warnings: desk.warnings });
    }
    let done = desk.commit(&vault, first)?;
    let did = done.events.iter().map(|event| format!("{} {}", event.event_type.as_str(), event.subject)).collect();
    Ok(WatchdogOutcome { findings, did, warnings: done.warnings })
}
