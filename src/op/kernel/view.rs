//! Reading the log and its state without writing.

use std::collections::BTreeMap;

use super::context::Context;
use super::transaction::Transaction;
use crate::base::{Result, Subject, Timestamp};
use crate::policy::due::{Due, Moment};
use crate::policy::{Settings, Standing};
use crate::state::{Entity, State};
use crate::vault::config::Config;
use crate::vault::{Log, Vault};

/// The log as the next transaction would see it: with what is due applied, but nothing written.
#[derive(Debug)]
pub struct View<'v> {
    tx: Transaction<'v>,
    /// The state without what is due.
    recorded: State,
    /// What is due and not recorded yet.
    pub due: Vec<Due>,
    /// What it changes, by subject: its position in `due`.
    changed: BTreeMap<Subject, usize>,
}

impl<'v> View<'v> {
    pub fn open(ctx: &Context, vault: &'v Vault) -> Result<View<'v>> {
        let (recorded, mut tx) = Transaction::read_only(ctx, vault)?;
        let (due, changed) = tx.settle_all()?;
        match tx.state().fault() {
            Some(fault) => Err(fault),
            None => Ok(View { tx, recorded, due, changed }),
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

    /// The recorded state, without what is due.
    pub fn recorded(&self) -> &State {
        &self.recorded
    }

    /// The recorded settings; none if the log has none.
    pub fn recorded_settings(&self) -> Option<Settings> {
        Settings::recorded(&self.recorded)
    }

    /// An entity of this view with its last recorded event in place of one that is only due, and with the time at which
    /// that was due in place of the time of reading.
    pub fn shown(&self, mut entity: Entity) -> Entity {
        let Some(recorded) = self.recorded.entity(&entity.subject) else { return entity };
        entity.last_event = recorded.last_event;
        if let Some(due) = self.changed_by(&entity.subject) {
            entity.backdate(&recorded, self.tx.now.timestamp(), due.at);
        }
        entity
    }

    /// Whether an entity is recorded, and not only a consequence of what is due. One that is not has no reference yet.
    pub fn is_recorded(&self, entity: &Entity) -> bool {
        self.due.is_empty() || self.recorded.entity(&entity.subject).is_some()
    }

    /// Why these entities differ from the log: what is due, by subject.
    pub fn due_among<'a>(&self, entities: impl Iterator<Item = &'a Entity>) -> BTreeMap<String, String> {
        if self.due.is_empty() {
            return BTreeMap::new();
        }
        let why = |entity: &Entity| Some((entity.subject.to_string(), self.changed_by(&entity.subject)?.why()));
        entities.filter_map(why).collect()
    }

    /// When a stop was raised that is not recorded yet, if one was.
    pub fn unrecorded_stop(&self) -> Option<Timestamp> {
        let stopped = |state: &State| Standing::of_system(state).is_some();
        Standing::of_system(self.state()).filter(|_| !stopped(&self.recorded))?.since
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.tx.config
    }

    /// What is due about a subject itself.
    pub fn due_of(&self, subject: &Subject) -> Option<&Due> {
        self.due.iter().find(|due| due.subject == *subject)
    }

    /// What is due and changes a subject when it is recorded, directly or as a consequence.
    pub fn changed_by(&self, subject: &Subject) -> Option<&Due> {
        self.changed.get(subject).map(|position| &self.due[*position])
    }
}

/// Computes an answer from the recorded state. An error if part of the state could not be read.
pub fn with_view<T>(vault: &Vault, answer: impl FnOnce(&dyn Log, &State) -> Result<T>) -> Result<T> {
    let (log, state) = vault.view()?;
    let answer = answer(&*log, &state)?;
    match state.fault() {
        Some(fault) => Err(fault),
        None => Ok(answer),
    }
}
