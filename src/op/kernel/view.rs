//! Reading: an answer from the log and what it folds to.

use std::collections::BTreeMap;

use super::context::Context;
use super::transaction::Transaction;
use crate::base::{Result, Subject};
use crate::policy::Settings;
use crate::policy::due::{Due, Moment};
use crate::state::{Entity, State};
use crate::vault::config::Config;
use crate::vault::{Log, Vault};

/// The log as the next writer would find it: with what is due applied, and nothing written.
#[derive(Debug)]
pub struct View<'v> {
    tx: Transaction<'v>,
    /// As the log has it.
    recorded: State,
    /// What is due and not recorded.
    pub due: Vec<Due>,
}

impl<'v> View<'v> {
    pub fn open(ctx: &Context, vault: &'v Vault) -> Result<View<'v>> {
        let (recorded, mut tx) = Transaction::look(ctx, vault)?;
        let due = tx.settle_all()?;
        match tx.state().fault() {
            Some(fault) => Err(fault),
            None => Ok(View { tx, recorded, due }),
        }
    }

    /// The state with what is due applied.
    pub fn state(&self) -> &State {
        self.tx.state()
    }

    pub fn log(&self) -> &dyn Log {
        &*self.tx.log
    }

    pub fn moment(&self) -> Moment<'_> {
        self.tx.moment()
    }

    /// The state as the log has it, with nothing of what is due.
    pub fn recorded(&self) -> &State {
        &self.recorded
    }

    /// The settings that the log says, as it is; nothing if it does not.
    pub fn recorded_settings(&self) -> Option<Settings> {
        Settings::recorded(&self.recorded)
    }

    /// An entity of this view whose last event is one of the log, not one that is only due.
    pub fn shown(&self, mut entity: Entity) -> Entity {
        if let Some(recorded) = self.recorded.entity(&entity.subject) {
            entity.last_event = recorded.last_event;
        }
        entity
    }

    /// What is due of these, in words, by their subjects.
    pub fn due_among<'a>(&self, entities: impl Iterator<Item = &'a Entity>) -> BTreeMap<String, String> {
        if self.due.is_empty() {
            return BTreeMap::new();
        }
        let why = |entity: &Entity| Some((entity.subject.to_string(), self.due_of(&entity.subject)?.why()));
        entities.filter_map(why).collect()
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.tx.config
    }

    /// Why something is not as the log says, if its time is over: about itself, or about its run.
    pub fn due_of(&self, subject: &Subject) -> Option<&Due> {
        let of_run = |due: &&Due| {
            let run = self.state().entity(&due.subject);
            run.and_then(|run| run.as_run().task()).as_ref() == Some(subject)
        };
        self.due.iter().find(|due| due.subject == *subject).or_else(|| self.due.iter().find(of_run))
    }
}

/// An answer from the state as the log has it. If the state could not give all of it, an error.
pub fn with_view<T>(vault: &Vault, answer: impl FnOnce(&dyn Log, &State) -> Result<T>) -> Result<T> {
    let (log, state) = vault.view()?;
    let answer = answer(&*log, &state)?;
    match state.fault() {
        Some(fault) => Err(fault),
        None => Ok(answer),
    }
}
