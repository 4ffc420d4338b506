//! Finds a shorter life with the same contradiction, by dropping steps.

use crate::life::{Life, Step, Wrong};
use crate::model::Settings;
use crate::place::Commands;

/// Lives again with these steps. Returns the contradiction, and the steps up to it.
pub fn replay(commands: &Commands, settings: &Settings, steps: &[Step]) -> Option<(Wrong, Vec<Step>)> {
    let mut life = Life::new(commands, settings);
    for step in steps {
        if let Err(wrong) = life.perform(step.clone()) {
            return Some((wrong, life.steps));
        }
    }
    life.look(true).err().map(|wrong| (wrong, life.steps))
}

/// Drops every step without which the same sort of contradiction remains. Its time passes with the next step.
pub fn shrink(commands: &Commands, settings: &Settings, steps: Vec<Step>, wrong: Wrong) -> (Wrong, Vec<Step>) {
    let (mut steps, mut wrong) = (steps, wrong);
    let mut size = steps.len() / 2;
    while size > 0 {
        let mut from = 0;
        while from < steps.len() {
            let to = (from + size).min(steps.len());
            let mut fewer = steps.clone();
            let waited: i64 = fewer.drain(from..to).map(|step| step.wait).sum();
            if let Some(next) = fewer.get_mut(from) {
                // What obeyed the dropped step obeys nothing any more.
                (next.wait, next.obeys) = (next.wait + waited, false);
            }
            match replay(commands, settings, &fewer) {
                Some((same, shorter)) if same.sort == wrong.sort => (steps, wrong) = (shorter, same),
                _ => from = to,
            }
        }
        size /= 2;
    }
    (wrong, steps)
}
