//! Personas that live several activities, interrupted at random: by people, by tasks, by pauses. Whatever happens, no text
//! is lost, and no note is kept where its author did not believe to be.
//!
//! Promise: nothing of the toolkit is used here but its commands. The judge remembers what was said, to whom, and which
//! branch the last reply named; it knows no rule of the toolkit.

#[path = "../truth/dice.rs"]
mod dice;
mod life;
#[path = "../shared/lives.rs"]
mod lives;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use life::Life;
use lives::{Wanted, Wrong, live_all};

fn main() -> ExitCode {
    // A hundred steps each.
    let wanted = match Wanted::parse("minds", "lives", 1000, 25) {
        Ok(wanted) => wanted,
        Err(code) => return code,
    };
    let (steps, texts) = (AtomicU64::new(0), AtomicU64::new(0));
    let wrong = live_all(&wanted, &|seed| {
        let life = Life::live(seed);
        steps.fetch_add(life.steps, Ordering::Relaxed);
        texts.fetch_add(life.texts, Ordering::Relaxed);
        (!life.wrong.is_empty()).then_some(Wrong { what: life.wrong, story: life.story })
    });
    let (lives, steps, texts) = (wanted.lives, steps.into_inner(), texts.into_inner());
    println!("{lives} lives, {steps} steps, {texts} texts: {wrong} went wrong");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
