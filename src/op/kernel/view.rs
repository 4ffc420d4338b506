//! Reading: an answer from the log and what it folds to.

use super::context::Context;
use super::transaction::{Mode, Transaction};
use crate::base::{Result, Subject};
use crate::policy::Settings;
use crate::policy::due::{Due, Moment};
use crate::state::State;
use crate::vault::config::Config;
use crate::vault::{Snapshot, Vault};

/// What is due that a reader takes into account in one look.
const DUE_MAX: usize = 1000;

/// The log as the next writer would find it: with what is due applied, and nothing written.
#[derive(Debug)]
pub struct View<'v> {
    tx: Transaction<'v>,
    recorded: Option<Settings>,
    /// What is due and not recorded.
    pub due: Vec<Due>,
}

impl<'v> View<'v> {
    pub fn open(ctx: &Context, vault: &'v Vault) -> Result<View<'v>> {
        let recorded = Settings::recorded(&vault.view()?.1);
        let mut tx = Transaction::open(ctx, vault, Mode::DryRun)?;
        let due = tx.settle_all(DUE_MAX)?;
        match tx.state().fault() {
            Some(fault) => Err(fault),
            None => Ok(View { tx, recorded, due }),
        }
    }

    /// The state with what is due applied.
    pub fn state(&self) -> &State {
        self.tx.state()
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.tx.snapshot
    }

    pub fn moment(&self) -> Moment<'_> {
        self.tx.moment()
    }

    /// The settings that the log says, as it is; nothing if it does not.
    pub fn recorded_settings(&self) -> Option<Settings> {
        self.recorded.clone()
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.tx.config
    }

    /// Why something is not as the log says, if its time is over: about itself, or about its run.
    pub fn due_of(&self, subject: &Subject) -> Option<&Due> {
        let of_run = |due: &&Due| {
            let run = self.state().entity(&due.subject);
            run.and_then(|run| run.named("task_id", crate::base::EntityType::Task)).as_ref() == Some(subject)
        };
        self.due.iter().find(|due| due.subject == *subject).or_else(|| self.due.iter().find(of_run))
    }
}

/// An answer from the state as the log has it. If the state could not give all of it, an error.
pub fn with_view<T>(vault: &Vault, answer: impl FnOnce(&Snapshot, &State) -> Result<T>) -> Result<T> {
    let (snapshot, state) = vault.view()?;
    let answer = answer(&snapshot, &state)?;
    match state.fault() {
        Some(fault) => Err(fault),
        None => Ok(answer),
    }
}
