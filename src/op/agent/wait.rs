//! The signs of life of an agent that waits for a job.
//!
//! A wait never fails because of them: in a vault that cannot be written, or where the agent is asked to leave, nothing
//! is recorded and the wait goes on. A claim that expired before is recorded as expired first, and stays lost.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{subject, thresholds};
use crate::base::{Result, Subject};
use crate::event::Kind;
use crate::job::moment;
use crate::op::Context;
use crate::op::kernel::Transaction;
use crate::policy::due::{MachineFacts, Moment};
use crate::policy::waiting::WaitingSigns;
use crate::vault::Vault;

/// How long a sign waits for the lock: the answer to the caller is more important, and the next sign comes in time.
const LOCK_WAIT: Duration = Duration::from_millis(300);
/// After how long a sign that could not be recorded is retried.
const RETRY_WAIT: Duration = Duration::from_secs(5);

/// The caller of a wait; only an agent gives signs of life.
#[derive(Debug)]
pub struct WaitingAgent<'a> {
    ctx: &'a Context,
    vault: &'a Vault,
    agent: Option<Subject>,
    /// When the next sign is needed; none if no sign is.
    next: Option<Instant>,
}

impl<'a> WaitingAgent<'a> {
    pub fn new(ctx: &'a Context, vault: &'a Vault) -> WaitingAgent<'a> {
        let agent = ctx.caller.actor.agent().map(|name| subject(&name));
        WaitingAgent { ctx, vault, agent, next: None }
    }

    /// Records that the agent waits for these jobs, as far as a sign is needed now. Called at the start and at the end of
    /// a wait, and in between after `limit`.
    pub fn sign(&mut self, jobs: &[&Subject]) {
        let Some(agent) = self.agent.clone() else { return };
        let wait = match self.record(&agent, jobs) {
            Ok(next_seconds) => next_seconds.map(Duration::from_secs),
            Err(_) => Some(RETRY_WAIT),
        };
        self.next = wait.and_then(|wait| moment().checked_add(wait));
    }

    /// The time that may be waited before the next sign, and at most `max`.
    pub fn limit(&self, max: Duration) -> Duration {
        self.next.map_or(max, |next| max.min(next.saturating_duration_since(moment())))
    }

    /// Records what is needed. Returns after how many seconds the next sign is.
    fn record(&self, agent: &Subject, jobs: &[&Subject]) -> Result<Option<u64>> {
        let ctx = &Context { lock_timeout: LOCK_WAIT, now: (self.ctx.host.clock)(), ..self.ctx.clone() };
        // Usually nothing is needed, and that can be found out without the lock.
        let needed = self.needed_now(ctx, agent)?;
        if needed.is_empty() {
            return Ok(needed.next_seconds);
        }
        let mut tx = Transaction::begin(ctx, self.vault)?;
        // Leases that have expired are recorded first: this sign of life comes too late for them.
        tx.settle_agent(&ctx.caller.actor)?;
        let needed = WaitingSigns::needed(&tx.moment(), agent, &thresholds(&tx.config.for_agent(agent.id())));
        for (kind, about) in &needed.renewals {
            // What is refused for one task is no reason to lose another.
            let _ = tx.ask(ctx.request(*kind, Some(&about.to_string()), json!({})));
        }
        if needed.waited {
            let jobs: Vec<&str> = jobs.iter().map(|job| job.id()).collect();
            let payload = if jobs.is_empty() { json!({}) } else { json!({"jobs": jobs}) };
            let _ = tx.ask(ctx.request(Kind::AgentWaited, Some(&agent.to_string()), payload));
        }
        if let Some(first) = tx.batch().events().first().map(|event| event.id) {
            tx.commit(first)?;
        }
        Ok(needed.next_seconds)
    }

    /// What is needed according to the log, without the lock.
    fn needed_now(&self, ctx: &Context, agent: &Subject) -> Result<WaitingSigns> {
        let (_, state) = self.vault.view()?;
        let config = self.vault.config_with(&state);
        let now = ctx.now.timestamp();
        let moment = Moment { state: &state, settings: &config, now, machine: &MachineFacts::default() };
        let needed = WaitingSigns::needed(&moment, agent, &thresholds(&config.for_agent(agent.id())));
        match state.fault() {
            Some(fault) => Err(fault),
            None => Ok(needed),
        }
    }
}
