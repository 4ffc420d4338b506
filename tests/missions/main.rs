//! Missions without anybody watching: `hf state go` until it is done or asks for a person, with a plan or without, by an
//! operator or an agent who also polls jobs and fires its own, while everything that takes part in it fails or is killed
//! at random.
//!
//! Promise: nothing of the toolkit is used here but its commands and the files that its users read. The judge knows the
//! rules of a mission from their description alone: four rounds, the plan first and then a run, one repair after each
//! failure, the end with the first run that passes.

#[path = "../truth/dice.rs"]
mod dice;
mod judge;
mod life;
#[path = "../shared/lives.rs"]
mod lives;

use std::process::ExitCode;
use std::sync::Mutex;

use life::{End, Life};
use lives::{Wanted, Wrong, live_all};

/// How the missions ended.
#[derive(Default)]
struct Count {
    passed: u64,
    asked: u64,
    kills: u64,
}

fn main() -> ExitCode {
    let wanted = match Wanted::parse("missions", "missions", 300, 12) {
        Ok(wanted) => wanted,
        Err(code) => return code,
    };
    let count = Mutex::new(Count::default());
    let wrong = live_all(&wanted, &|seed| {
        let life = Life::live(seed);
        let what = judge::wrong(&life);
        let mut count = count.lock().expect("no panic");
        count.kills += life.kills;
        match life.end {
            End::Passed => count.passed += 1,
            End::Asked => count.asked += 1,
            End::Never => {}
        }
        (!what.is_empty()).then_some(Wrong { what, story: life.story })
    });
    let Count { passed, asked, kills } = count.into_inner().expect("no panic");
    let missions = wanted.lives;
    println!("{missions} missions, {kills} kills: {passed} passed, {asked} asked for a person, {wrong} went wrong");
    if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
