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

/// What the participants of a mission wrote down, in order.
#[derive(Default)]
struct Seen<'a> {
    /// The steps of rounds: what, and of which round.
    steps: Vec<(&'a str, u64)>,
    /// Where something was disturbed: before which step.
    disturbed: Vec<usize>,
    /// What became of the tasks of the plan.
    tasks: Vec<TaskStep<'a>>,
    wrong: Vec<String>,
}

/// A step of a planned task.
#[derive(Clone, Copy)]
struct TaskStep<'a> {
    /// How many steps of rounds and how many disturbances came before it.
    after: (usize, usize),
    what: &'a str,
    id: &'a str,
}

/// What is wrong with a mission, in a line each.
pub fn wrong(life: &Life) -> Vec<String> {
    let mut seen = Seen::read(life);
    seen.judge_steps();
    (1..=ROUNDS).for_each(|round| seen.judge_round(life, round));
    life.plan.iter().enumerate().for_each(|(n, id)| seen.judge_task(life, n.checked_sub(1), id));
    seen.judge_end(life);
    seen.judge_rest(life);
    seen.wrong
}

impl<'a> Seen<'a> {
    fn read(life: &'a Life) -> Seen<'a> {
        let mut seen = Seen::default();
        let is_task = |what: &str| ["task", "done", "broke"].contains(&what);
        for line in &life.steps {
            let after = (seen.steps.len(), seen.disturbed.len());
            match line.split_once(' ').map(|(what, of)| (what, of, of.parse())) {
                None if line == "disturbed" => seen.disturbed.push(seen.steps.len()),
                Some((what, id, _)) if is_task(what) => seen.tasks.push(TaskStep { after, what, id }),
                Some((what, _, Ok(round))) => seen.steps.push((what, round)),
                _ => seen.wrong.push(format!("the line '{line}' was cut")),
            }
        }
        seen
    }

    fn at(&self, what: &str, round: u64) -> Option<usize> {
        self.steps.iter().position(|step| *step == (what, round))
    }

    fn is_quiet(&self, from: usize, to: usize) -> bool {
        !self.disturbed.iter().any(|at| (from..=to).contains(at))
    }

    fn has_broken(&self) -> bool {
        self.tasks.iter().any(|task| task.what == "broke")
    }

    fn judge_steps(&mut self) {
        for (n, step) in self.steps.iter().enumerate() {
            if self.steps[..n].contains(step) {
                self.wrong.push(format!("{} of round {} happened twice", step.0, step.1));
            }
        }
        if self.steps.iter().any(|(_, round)| *round < 1 || *round > ROUNDS) {
            self.wrong.push("there was a round that there cannot be".to_owned());
        }
        let plan_done = self.tasks.iter().filter(|task| task.what == "done").map(|task| task.after.0).max();
        let first_run = self.steps.iter().position(|(what, _)| *what == "run");
        if first_run.is_some_and(|run| plan_done.is_some_and(|done| done > run)) {
            self.wrong.push("the final check came before the end of the plan".to_owned());
        }
    }

    fn judge_round(&mut self, life: &Life, round: u64) {
        let (run, next) = (self.at("run", round), self.at("run", round + 1));
        let (fix, hand) = (self.at("fix", round), self.at("hand", round));
        let repair = fix.max(hand);
        let before = (1..round).filter_map(|round| self.at("run", round)).max().unwrap_or(0);
        // A job of the agent's own or a planned task may have failed in it.
        let is_used = self.at("side", round).is_some() || self.has_broken();
        let is_fix_good = !life.bad_fixes.contains(&round);
        let is_next_quiet = next.is_some_and(|next| self.is_quiet(run.unwrap_or(0) + 1, next));
        // A run can be killed before its first line is written.
        let is_early = |repair| run.map_or_else(|| !is_used && self.is_quiet(before, repair), |run| repair < run);
        let has_passed = self.at("passed", round).is_some();
        let both = fix.zip(hand);
        let found = [
            (next.is_some_and(|next| run.is_none() && !is_used && self.is_quiet(before, next)), "was left out"),
            (run.zip(next).is_some_and(|(run, next)| next < run), "came after the next one"),
            (repair.is_some_and(is_early), "was repaired before it ran"),
            (
                repair.is_some_and(|repair| has_passed && self.is_quiet(run.unwrap_or(0), repair)),
                "was repaired, but it had passed",
            ),
            (next.zip(repair).is_some_and(|(next, repair)| next < repair), "was repaired after the next one ran"),
            (both.is_some_and(|(fix, hand)| hand < fix), "was repaired by hand, and then by the fixer, too"),
            (
                both.is_some_and(|(fix, hand)| is_fix_good && fix < hand && self.is_quiet(fix, hand)),
                "was repaired by the fixer, and then by hand, too",
            ),
            (self.at("failed", round).is_some() && is_next_quiet && repair.is_none(), "failed, and nobody repaired it"),
        ];
        let found = found.iter().filter(|(is_so, _)| *is_so).map(|(_, what)| format!("round {round} {what}"));
        self.wrong.extend(found);
    }

    /// A task of the plan, which depends on the one before it.
    fn judge_task(&mut self, life: &Life, before: Option<usize>, id: &str) {
        let first = |what: &str, id: &str| self.tasks.iter().position(|task| (task.what, task.id) == (what, id));
        let mut found = Vec::new();
        let begun = first("task", id).or(first("done", id));
        let is_after = |done: Option<usize>| begun.is_none_or(|begun| done.is_some_and(|done| done < begun));
        if before.is_some_and(|before| !is_after(first("done", &life.plan[before]))) {
            found.push(format!("task {id} came before the one that it depends on"));
        }
        let tries: Vec<_> = self.tasks.iter().filter(|task| (task.what, task.id) == ("task", id)).collect();
        for pair in tries.windows(2) {
            let (from, to) = (pair[0].after, pair[1].after);
            let is_between = |task: &&TaskStep<'_>| task.after >= from && task.after <= to;
            let mut between = self.tasks.iter().filter(is_between);
            let has_broken = between.any(|task| (task.what, task.id) == ("broke", id));
            // Without a disturbance, it is tried again only after it failed and a repair.
            if from.1 == to.1 && (!has_broken || from.0 == to.0) {
                found.push(format!("task {id} was tried again without a failure and a repair"));
            }
        }
        if life.end == End::Passed && first("done", id).is_none() {
            found.push(format!("it is done, but task {id} of the plan is not"));
        }
        self.wrong.extend(found);
    }

    fn judge_end(&mut self, life: &Life) {
        let last = self.steps.iter().filter(|(what, _)| *what == "run").map(|(_, round)| *round).max().unwrap_or(0);
        let status = life.m1.lines().next().unwrap_or_default();
        let asks = life.m1.lines().any(|line| line.starts_with("NEXT_ACTION: ASK operator"));
        let has_passed = self.at("passed", last).is_some();
        match life.end {
            End::Never => self.wrong.push("it did not end".to_owned()),
            End::Passed => {
                if !has_passed {
                    self.wrong.push(format!("it is done, but round {last} did not pass"));
                }
                if status != "STATUS: PASS" {
                    self.wrong.push(format!("it is done, but M1.md says {status}"));
                }
            }
            End::Asked => {
                let is_last_quiet = self.is_quiet(self.at("run", last).unwrap_or(0), self.steps.len());
                let is_other = self.steps.iter().any(|(what, _)| *what == "side") || self.has_broken();
                if is_last_quiet && !is_other && (last != ROUNDS || has_passed) {
                    self.wrong.push(format!("a person is asked after round {last}"));
                }
                if status != "STATUS: FAIL" || !asks || !life.m1.contains("\nROUND: 4/4\n") {
                    self.wrong.push(format!("a person is asked, but M1.md says {}", life.m1.replace('\n', ", ")));
                }
            }
        }
    }

    fn judge_rest(&mut self, life: &Life) {
        if life.m1.split_whitespace().count() > 200 {
            self.wrong.push("M1.md has more than 200 words".to_owned());
        }
        if !life.verified.lines().any(|line| line == "POLICY:OK") {
            self.wrong.push(format!("the audit says: {}", life.verified.replace('\n', ", ")));
        }
        if !life.left.is_empty() {
            self.wrong.push(format!("processes are left: {}", life.left.join(" ")));
        }
    }
}
