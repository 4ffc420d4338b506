//! Shows that the judge can disagree: liars play the part of the watchdog, and must be caught.

use std::collections::{BTreeMap, BTreeSet};

use crate::classes::{CLASSES, Class, timeline};
use crate::judge::compare::{self, Said};
use crate::judge::expected::Expected;
use crate::judge::lies::{LIES, Lie};
use crate::timeline::{SCHEDULES, Timeline};

/// How many timelines of each class a liar may get through.
const TIMELINES: u64 = 8;

/// What a watchdog that believes in these rules would report.
fn said(expected: &Expected) -> Said {
    let details = expected.files.iter().fold(BTreeMap::<String, String>::new(), |mut all, (code, name)| {
        *all.entry((*code).to_owned()).or_default() += name;
        all
    });
    let owned = |codes: &BTreeSet<&str>| codes.iter().map(|code| (*code).to_owned()).collect();
    Said {
        exit: i32::from(!expected.errors().is_empty()),
        status: if expected.codes.is_empty() { "HEALTHY" } else { "ANOMALIES" }.to_owned(),
        codes: expected.codes.iter().map(|(code, level)| ((*code).to_owned(), level.name().to_owned())).collect(),
        seconds: expected.seconds.iter().map(|(code, seconds)| ((*code).to_owned(), *seconds)).collect(),
        details,
        counted: expected.counted.iter().map(|one| (one.event.to_owned(), one.id.clone())).collect(),
        begun: owned(&expected.begun),
        ended: owned(&expected.ended),
        there: expected.present.iter().cloned().collect(),
        heartbeat_id: String::new(),
    }
}

/// Everything that the judge says about a timeline, schedule by schedule.
type Truth = Vec<Vec<(i64, Expected)>>;

/// Whether a watchdog that believes in a lie is caught somewhere in a timeline.
fn is_caught(timeline: &Timeline, truth: &Truth, lie: Option<Lie>) -> bool {
    SCHEDULES.iter().zip(truth).any(|(schedule, truth)| {
        let told = timeline.verdicts(*schedule, lie);
        truth.iter().zip(&told).any(|((_, expected), (_, told))| compare::tick(expected, &said(told)).is_err())
    })
}

/// Returns what went wrong: liars that no class catches, classes that catch nobody, and honest ones that are caught.
pub fn check(classes: &[&Class], seed: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut caught: BTreeMap<Lie, BTreeSet<&str>> = BTreeMap::new();
    for class in classes {
        let timelines: Vec<_> = (seed..seed + TIMELINES).map(|seed| timeline(class, seed)).collect();
        let truths: Vec<Truth> = timelines
            .iter()
            .map(|one| SCHEDULES.iter().map(|schedule| one.verdicts(*schedule, None)).collect())
            .collect();
        let catches =
            |lie: Option<Lie>| timelines.iter().zip(&truths).any(|(timeline, truth)| is_caught(timeline, truth, lie));
        if catches(None) {
            wrong.push(format!("{}: the judge disagrees with itself", class.name));
        }
        let liars: Vec<Lie> = LIES.iter().copied().filter(|lie| catches(Some(*lie))).collect();
        if liars.iter().all(|lie| *lie == Lie::NobodyWatched) {
            wrong.push(format!("{}: catches no liar", class.name));
        }
        println!("{:32} catches {:2} of {} liars", class.name, liars.len(), LIES.len());
        for lie in liars {
            caught.entry(lie).or_default().insert(class.name);
        }
    }
    for lie in LIES.iter().filter(|_| classes.len() == CLASSES.len()) {
        match caught.get(lie) {
            None => wrong.push(format!("{lie:?}: no class catches it")),
            Some(classes) => println!("{lie:?} is caught by {}", classes.len()),
        }
    }
    wrong
}
