//! Plays a timeline with real files and the real watchdog, and compares every tick with the judge.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::clock::time;
use crate::dice::Dice;
use crate::judge::compare::{self, Said, Wrong};
use crate::judge::expected::Expected;
use crate::place::Place;
use crate::timeline::{SCHEDULES, Schedule, Timeline};
use crate::tree::{Deed, Tree};

/// A timeline that was told wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    pub schedule: Option<Schedule>,
    pub at: i64,
    pub wrong: Wrong,
}

/// Plays every schedule, and compares the schedules with each other. Returns the number of ticks.
pub fn play(binary: &Path, timeline: &Timeline) -> Result<usize, Failure> {
    let mut runs = Vec::new();
    for schedule in SCHEDULES {
        runs.push(run(binary, timeline, schedule)?);
    }
    // What was noticed too late to matter depends on when it was looked for.
    let is_free = timeline.depends_on_ticks();
    for (one, other) in [(0, 1), (0, 2), (2, 1), (1, 0), (1, 2), (2, 0)].into_iter().filter(|_| !is_free) {
        alike(timeline, &runs[one], &runs[other]).map_err(|(at, wrong)| {
            let what = format!("{} and {}: {}", SCHEDULES[one].name(), SCHEDULES[other].name(), wrong.sort);
            Failure { schedule: None, at, wrong: Wrong::new(what, wrong.text) }
        })?;
    }
    Ok(runs.iter().map(Vec::len).sum())
}

/// The errors that each tick of a schedule reported.
type Run = Vec<(i64, BTreeSet<String>)>;

/// Plays one schedule.
pub fn run(binary: &Path, timeline: &Timeline, schedule: Schedule) -> Result<Run, Failure> {
    let mut place = Place::new(binary, timeline);
    let (mut judge, mut tree, mut next) = (timeline.judge(None), Tree::new(), 0);
    let mut dice = Dice::new(timeline.seed);
    let (mut run, mut before) = (Run::new(), BTreeMap::new());
    let quiet = quiet_ticks(timeline, schedule);
    for now in timeline.ticks(schedule) {
        if quiet.contains(&now) && !dice.one_in(3) {
            continue;
        }
        let first = next;
        for (_, deed) in timeline.deeds[next..].iter().take_while(|(at, _)| *at <= now) {
            next += 1;
            deed.apply(&mut tree);
            place.perform(deed);
            if *deed == Deed::Forget {
                judge.forget();
            }
        }
        let expected = judge.look(&mut tree, now);
        // A look that changes nothing costs as much as a tick, so quiet ticks seldom have one before them.
        let check = expected.codes != before || dice.one_in(if first == next { 25 } else { 3 });
        let told = tick(&mut place, now, &expected, check);
        let said = told.map_err(|wrong| Failure { schedule: Some(schedule), at: now, wrong })?;
        before.clone_from(&expected.codes);
        let errors = said.codes.into_iter().filter(|(_, level)| level == "error").map(|(code, _)| code);
        run.push((now, errors.collect()));
    }
    Ok(run)
}

/// Ticks of the dense schedules in which nothing happens, nor in the one after. Two of three are left out, others with
/// every seed.
fn quiet_ticks(timeline: &Timeline, schedule: Schedule) -> BTreeSet<i64> {
    if schedule == Schedule::EveryFiveMinutes {
        return BTreeSet::new();
    }
    let verdicts = timeline.verdicts(schedule, None);
    let is_quiet = |three: &&[(i64, Expected)]| {
        let (before, now, after) = (&three[0], &three[1], &three[2]);
        let is_same = before.1.codes == now.1.codes && now.1.codes == after.1.codes;
        let has_deed = timeline.deeds.iter().any(|(at, _)| before.0 < *at && *at <= now.0);
        is_same && !has_deed && now.1.counted.is_empty() && now.1.present.is_empty() && !timeline.is_forced(now.0)
    };
    verdicts.windows(3).filter(is_quiet).map(|three| three[1].0).collect()
}

fn tick(place: &mut Place<'_>, now: i64, expected: &Expected, check: bool) -> Result<Said, Wrong> {
    if check {
        let before = place.snapshot();
        let said = place.tick(now, true, &[])?;
        compare::codes("check", expected, &said.codes)?;
        let after = place.snapshot();
        let changed: Vec<_> = before.iter().filter(|(path, bytes)| after.get(*path) != Some(bytes)).collect();
        if before != after {
            let new: Vec<_> = after.keys().filter(|path| !before.contains_key(*path)).collect();
            let changed: Vec<_> = changed.iter().map(|(path, _)| path).collect();
            return Err(Wrong::new("check writes", format!("--check changed {changed:?} and made {new:?}")));
        }
    }
    let paths: Vec<&String> = expected.present.iter().chain(&expected.absent).collect();
    let said = place.tick(now, false, &paths)?;
    compare::tick(expected, &said)?;
    Ok(said)
}

/// Reported once, in the tick that notices it.
const ONCE: &str = "DEEPWORK_EXPIRED";

/// An error that begins in one schedule and lasts longer than two ticks of the other is reported there, too, unless the
/// agent did something meanwhile: at the next tick or, where it depends on when something was noticed, at the one after
/// that, or as much later as the longest time between two ticks.
fn alike(timeline: &Timeline, one: &Run, other: &Run) -> Result<(), (i64, Wrong)> {
    let gap = |run: &Run| run.windows(2).map(|two| two[1].0 - two[0].0).max().unwrap_or(0);
    let slack = gap(one).max(gap(other));
    for (no, (at, errors)) in one.iter().enumerate() {
        let before = no.checked_sub(1).map(|no| &one[no].1);
        for code in errors.iter().filter(|code| before.is_none_or(|before| !before.contains(*code)) && *code != ONCE) {
            let mut no_of_tick = 0;
            let seen: Vec<_> = other
                .iter()
                .filter(|(then, _)| then >= at)
                .take_while(|(then, _)| {
                    no_of_tick += 1;
                    no_of_tick <= 2 || *then <= at + slack
                })
                .collect();
            let Some((last, _)) = seen.last().filter(|_| seen.len() > 1) else { continue };
            if timeline.deeds.iter().any(|(then, _)| at < then && then <= last) {
                continue;
            }
            let until = one.iter().position(|(then, _)| then >= last).unwrap_or(one.len());
            let lasts = one.get(until).is_some() && one[no..=until].iter().all(|(_, errors)| errors.contains(code));
            if lasts && !seen.iter().any(|(_, errors)| errors.contains(code)) {
                let text = format!("{code} begins at {} and is not reported until {}", time(*at), time(*last));
                return Err((*last, Wrong::new(format!("{code} in one of them only"), text)));
            }
        }
    }
    // What one schedule notices after the last tick of the other says nothing.
    let last = |run: &Run| run.last().map_or(i64::MIN, |(at, _)| *at);
    let end = last(one).min(last(other));
    let expiries = |run: &Run| run.iter().filter(|(at, errors)| *at <= end && errors.contains(ONCE)).count();
    let (first, second) = (expiries(one), expiries(other));
    let is_late = |run: &Run| run.iter().rev().take(2).any(|(_, errors)| errors.contains(ONCE));
    if (first == 0) != (second == 0) && !is_late(one) && !is_late(other) {
        let text = format!("{first} and {second} ticks report {ONCE}");
        return Err((one.last().map_or(0, |(at, _)| *at), Wrong::new(format!("{ONCE} in one of them only"), text)));
    }
    Ok(())
}

/// Drops every deed without which the same sort of disagreement remains.
pub fn shrink(binary: &Path, timeline: &Timeline, failure: Failure) -> (Timeline, Failure) {
    let (mut timeline, mut failure) = (timeline.clone(), failure);
    timeline.deeds.retain(|(at, _)| *at <= failure.at);
    let mut size = timeline.deeds.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < timeline.deeds.len() {
            let mut fewer = timeline.clone();
            fewer.deeds.drain(from..(from + size).min(timeline.deeds.len()));
            let again = match failure.schedule {
                _ if fewer.unsure().is_some() => None,
                Some(schedule) => run(binary, &fewer, schedule).err(),
                None => play(binary, &fewer).err(),
            };
            match again {
                Some(same) if same.wrong.sort == failure.wrong.sort => (timeline, failure) = (fewer, same),
                _ => from += size,
            }
        }
        size /= 2;
    }
    (timeline, failure)
}
