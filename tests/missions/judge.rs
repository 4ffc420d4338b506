//! The judge: what must be true of a mission, from its description.
//!
//! - There are at most four rounds. Each has one run; what fails is repaired once, and then run again in the next round.
//! - Nothing is done twice, and nothing is left out: no repair without a failure, no next run after a failure without one.
//! - The mission is done with the first run that passes, and with that one only. If none of four does, a person is asked.
//! - A run that was killed or stopped has failed in its own way: it may be followed by the next round without a repair.

use crate::life::{End, Life};

const ROUNDS: u64 = 4;

/// What is wrong with a mission, in a line each.
pub fn wrong(life: &Life) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen: Vec<(&str, u64)> = Vec::new();
    // Where something was disturbed: before which step.
    let mut disturbed: Vec<usize> = Vec::new();
    for line in &life.steps {
        if line == "disturbed" {
            disturbed.push(seen.len());
            continue;
        }
        match line.split_once(' ').and_then(|(what, round)| Some((what, round.parse().ok()?))) {
            Some(step) => seen.push(step),
            None => wrong.push(format!("the line '{line}' was cut")),
        }
    }
    for (n, step) in seen.iter().enumerate() {
        if seen[..n].contains(step) {
            wrong.push(format!("{} of round {} happened twice", step.0, step.1));
        }
    }
    if seen.iter().any(|(_, round)| *round < 1 || *round > ROUNDS) {
        wrong.push("there was a round that there cannot be".to_owned());
    }
    let at = |what: &str, round: u64| seen.iter().position(|step| *step == (what, round));
    let is_quiet = |from: usize, to: usize| !disturbed.iter().any(|at| (from..=to).contains(at));
    for round in 1..=ROUNDS {
        let (run, next) = (at("run", round), at("run", round + 1));
        let repair = at("fix", round).into_iter().chain(at("hand", round)).max();
        let before = (1..round).filter_map(|round| at("run", round)).max().unwrap_or(0);
        if next.is_some_and(|next| run.is_none() && is_quiet(before, next)) {
            wrong.push(format!("round {round} was left out"));
        }
        if let (Some(run), Some(next)) = (run, next)
            && next < run
        {
            wrong.push(format!("round {} came before round {round}", round + 1));
        }
        if let Some(repair) = repair {
            // A run can be killed before its first line is written.
            if run.map_or_else(|| is_quiet(before, repair), |run| repair < run) {
                wrong.push(format!("round {round} was repaired before it ran"));
            }
            if at("passed", round).is_some() && is_quiet(run.unwrap_or(0), repair) {
                wrong.push(format!("round {round} was repaired, but it had passed"));
            }
            if next.is_some_and(|next| next < repair) {
                wrong.push(format!("round {} ran before round {round} was repaired", round + 1));
            }
        }
        let is_next_quiet = next.is_some_and(|next| is_quiet(run.unwrap_or(0) + 1, next));
        if at("failed", round).is_some() && is_next_quiet && repair.is_none() {
            wrong.push(format!("round {round} failed, and nobody repaired it"));
        }
    }
    let last = seen.iter().filter(|(what, _)| *what == "run").map(|(_, round)| *round).max().unwrap_or(0);
    let status = life.m1.lines().next().unwrap_or_default();
    let asks = life.m1.lines().any(|line| line.starts_with("NEXT_ACTION: ASK operator"));
    match life.end {
        End::Never => wrong.push("it did not end".to_owned()),
        End::Passed => {
            if at("passed", last).is_none() {
                wrong.push(format!("it is done, but round {last} did not pass"));
            }
            if status != "STATUS: PASS" {
                wrong.push(format!("it is done, but M1.md says {status}"));
            }
        }
        End::Asked => {
            let is_last_quiet = is_quiet(at("run", last).unwrap_or(0), seen.len());
            if is_last_quiet && (last != ROUNDS || at("passed", last).is_some()) {
                wrong.push(format!("a person is asked after round {last}"));
            }
            if status != "STATUS: FAIL" || !asks || !life.m1.contains("\nROUND: 4/4\n") {
                wrong.push(format!("a person is asked, but M1.md says {}", life.m1.replace('\n', ", ")));
            }
        }
    }
    if life.m1.split_whitespace().count() > 200 {
        wrong.push("M1.md has more than 200 words".to_owned());
    }
    if !life.verified.lines().any(|line| line == "POLICY:OK") {
        wrong.push(format!("the audit says: {}", life.verified.replace('\n', ", ")));
    }
    if !life.left.is_empty() {
        wrong.push(format!("processes are left: {}", life.left.join(" ")));
    }
    wrong
}
