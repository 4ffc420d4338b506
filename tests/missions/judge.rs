//! The judge: what must be true of a mission, from its description.
//!
//! - There are at most four rounds. Each has one run; what fails is repaired once, and then run again in the next round.
//! - Nothing is done twice, and nothing is left out: no repair without a failure, no next run after a failure without one.
//! - The mission is done with the first run that passes, and with that one only. If none of four does, a person is asked.
//! - A run that was killed or stopped has failed in its own way: it may be followed by the next round without a repair.
//! - A plan is done first: each task after those that it depends on, once, and again only after it failed and was repaired.
//!   The run comes after the plan, and the mission passes with both.
//! - A failure is repaired by the fixer, or by whoever is told to, but not by both. If the fixer fails, it is the latter.
//! - A job of an agent's own that fails uses up its round.

use crate::life::{End, Life};

const ROUNDS: u64 = 4;

/// What is wrong with a mission, in a line each.
pub fn wrong(life: &Life) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut seen: Vec<(&str, u64)> = Vec::new();
    // Where something was disturbed: before which step.
    let mut disturbed: Vec<usize> = Vec::new();
    // The tasks of the plan: after how many steps and disturbances, what, and which.
    let mut tasks: Vec<(usize, usize, &str, &str)> = Vec::new();
    for line in &life.steps {
        if line == "disturbed" {
            disturbed.push(seen.len());
            continue;
        }
        let is_task = |what: &str| ["task", "done", "broke"].contains(&what);
        match line.split_once(' ') {
            Some((what, task)) if is_task(what) => tasks.push((seen.len(), disturbed.len(), what, task)),
            Some((what, round)) if round.parse::<u64>().is_ok() => seen.push((what, round.parse().expect("a number"))),
            _ => wrong.push(format!("the line '{line}' was cut")),
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
        // Its own job or a planned task may have failed in it.
        let is_used = at("side", round).is_some() || tasks.iter().any(|task| task.2 == "broke");
        if next.is_some_and(|next| run.is_none() && !is_used && is_quiet(before, next)) {
            wrong.push(format!("round {round} was left out"));
        }
        if let (Some(run), Some(next)) = (run, next)
            && next < run
        {
            wrong.push(format!("round {} came before round {round}", round + 1));
        }
        if let Some(repair) = repair {
            // A run can be killed before its first line is written.
            if run.map_or_else(|| !is_used && is_quiet(before, repair), |run| repair < run) {
                wrong.push(format!("round {round} was repaired before it ran"));
            }
            if at("passed", round).is_some() && is_quiet(run.unwrap_or(0), repair) {
                wrong.push(format!("round {round} was repaired, but it had passed"));
            }
            if next.is_some_and(|next| next < repair) {
                wrong.push(format!("round {} ran before round {round} was repaired", round + 1));
            }
        }
        if let (Some(hand), Some(fix)) = (at("hand", round), at("fix", round)) {
            if hand < fix {
                wrong.push(format!("round {round} was repaired by hand, and then by the fixer, too"));
            } else if !life.bad_fixes.contains(&round) && is_quiet(fix, hand) {
                wrong.push(format!("round {round} was repaired by the fixer, and then by hand, too"));
            }
        }
        let is_next_quiet = next.is_some_and(|next| is_quiet(run.unwrap_or(0) + 1, next));
        if at("failed", round).is_some() && is_next_quiet && repair.is_none() {
            wrong.push(format!("round {round} failed, and nobody repaired it"));
        }
    }
    wrong.extend(wrong_plan(life, &tasks));
    let plan_done = tasks.iter().filter(|task| task.2 == "done").map(|task| task.0).max();
    let first_run = seen.iter().position(|(what, _)| *what == "run");
    if first_run.is_some_and(|run| plan_done.is_some_and(|done| done > run)) {
        wrong.push("the final check came before the end of the plan".to_owned());
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
            let is_other = seen.iter().any(|(what, _)| *what == "side") || tasks.iter().any(|task| task.2 == "broke");
            if is_last_quiet && !is_other && (last != ROUNDS || at("passed", last).is_some()) {
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

/// What is wrong with how the plan was followed. Of a task: after how many steps and disturbances, what, and which.
fn wrong_plan(life: &Life, tasks: &[(usize, usize, &str, &str)]) -> Vec<String> {
    let mut wrong = Vec::new();
    let first = |what: &str, id: &str| tasks.iter().position(|task| (task.2, task.3) == (what, id));
    for (n, id) in life.plan.iter().enumerate() {
        let begun = first("task", id).or(first("done", id));
        let before = n.checked_sub(1).map(|before| &life.plan[before]);
        if begun.is_some_and(|begun| before.is_some_and(|before| first("done", before).is_none_or(|done| done > begun)))
        {
            wrong.push(format!("task {id} came before the one that it depends on"));
        }
        let attempts = tasks.iter().filter(|task| (task.2, task.3.to_owned()) == ("task", id.clone()));
        for pair in attempts.collect::<Vec<_>>().windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let has_broken =
                tasks.iter().any(|task| task.2 == "broke" && task.3 == id && task.0 >= from.0 && task.0 <= to.0);
            // Without a disturbance, it is tried again only after it failed and was repaired.
            if from.1 == to.1 && (!has_broken || from.0 == to.0) {
                wrong.push(format!("task {id} was tried again without a failure and a repair"));
            }
        }
        if life.end == End::Passed && first("done", id).is_none() {
            wrong.push(format!("it is done, but task {id} of the plan is not"));
        }
    }
    wrong
}
