//! Timelines of agents that write files, judged: what `hf watchdog --works ai-works` reports, records and renames at every
//! tick is compared with a computation from the sentences of the source document.
//!
//! Promise: nothing of the toolkit is used here but its commands, so a mistake in it cannot be repeated in the judge.

mod classes;
#[path = "../truth/clock.rs"]
mod clock;
#[path = "../truth/dice.rs"]
mod dice;
mod judge;
mod place;
mod play;
mod script;
mod selftest;
mod timeline;
mod tree;
mod zone;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use classes::{CLASSES, Class};
use clock::time;
use play::Failure;
use timeline::{Schedule, Timeline};

const USAGE: &str = "usage: scripts/heartbeat-timelines [--timelines N] [--seed S] [--class NAME] [--jobs N] [--all] [--whole] \
                     [--short] [--self-test] [--mutants]";

struct Wanted {
    timelines: u64,
    seed: u64,
    jobs: u64,
    /// Only this class.
    class: Option<String>,
    /// Continues after a disagreement and counts the sorts.
    all: bool,
    /// Shows a timeline as it was, without looking for a shorter one.
    whole: bool,
    self_test: bool,
}

fn wanted() -> Result<Wanted, String> {
    let mut wanted =
        Wanted { timelines: 3000, seed: 1, jobs: 2, class: None, all: false, whole: false, self_test: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        let number = |value: String| value.parse::<u64>().map_err(|_| format!("{arg} needs a number"));
        match arg.as_str() {
            "--timelines" => wanted.timelines = number(value()?)?,
            "--seed" => wanted.seed = number(value()?)?,
            "--jobs" => wanted.jobs = number(value()?)?.max(1),
            "--class" => wanted.class = Some(value()?),
            "--short" => wanted.timelines = 200,
            "--all" => wanted.all = true,
            "--whole" => wanted.whole = true,
            "--self-test" => wanted.self_test = true,
            other => return Err(format!("unknown argument '{other}'")),
        }
    }
    Ok(wanted)
}

/// The binary whose watchdog is judged.
#[expect(
    clippy::disallowed_methods,
    reason = "the only variable of these tests, set by scripts/heartbeat-timelines --mutants"
)]
fn binary() -> PathBuf {
    std::env::var_os("HF_HEARTBEAT_BINARY").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_hf")), PathBuf::from)
}

/// A disagreement, with the timeline in which it occurs.
struct Disagreement {
    /// The place of the timeline among all of them.
    no: u64,
    timeline: Timeline,
    failure: Failure,
}

/// The class and the seed of a timeline: the classes take turns.
fn drawn(classes: &[&Class], seed: u64, no: u64) -> Timeline {
    let count = classes.len() as u64;
    classes::timeline(classes[(no % count) as usize], seed + no / count)
}

fn main() -> ExitCode {
    let wanted = match wanted() {
        Ok(wanted) => wanted,
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let is_wanted = |class: &&Class| wanted.class.as_deref().is_none_or(|name| name == class.name);
    let classes: Vec<&Class> = CLASSES.iter().filter(is_wanted).collect();
    if classes.is_empty() {
        let names: Vec<&str> = CLASSES.iter().map(|class| class.name).collect();
        eprintln!("unknown class; one of {}", names.join(", "));
        return ExitCode::from(2);
    }
    if wanted.self_test {
        let wrong = selftest::check(&classes, wanted.seed);
        wrong.iter().for_each(|line| println!("{line}"));
        println!("self-test of the judge: {}", count(wrong.len(), "failure"));
        return if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let (ticks, found) = judge_all(&wanted, &classes, &binary());
    if wanted.all {
        summarize(&found);
    } else if let Some(first) = found.iter().min_by_key(|one| one.no) {
        show(first);
    }
    println!(
        "{} timelines, {} classes, {ticks} ticks: {}",
        wanted.timelines,
        classes.len(),
        count(found.len(), "disagreement")
    );
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Plays all timelines. Returns the number of ticks that were judged, and the disagreements.
fn judge_all(wanted: &Wanted, classes: &[&Class], binary: &Path) -> (usize, Vec<Disagreement>) {
    let (next, ticks) = (AtomicU64::new(0), AtomicUsize::new(0));
    let found: Mutex<Vec<Disagreement>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let no = next.fetch_add(1, Ordering::Relaxed);
            let is_over = || !wanted.all && !found.lock().expect("no panic").is_empty();
            if no >= wanted.timelines || is_over() {
                break;
            }
            let timeline = drawn(classes, wanted.seed, no);
            match play::play(binary, &timeline) {
                Ok(count) => drop(ticks.fetch_add(count, Ordering::Relaxed)),
                Err(failure) => {
                    let (timeline, failure) = match wanted.all || wanted.whole {
                        true => (timeline, failure),
                        false => play::shrink(binary, &timeline, failure),
                    };
                    found.lock().expect("no panic").push(Disagreement { no, timeline, failure });
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..wanted.jobs {
            scope.spawn(work);
        }
    });
    (ticks.into_inner(), found.into_inner().expect("no panic"))
}

fn show(found: &Disagreement) {
    let (timeline, failure) = (&found.timeline, &found.failure);
    println!("class {}, seed {}: {}", timeline.class, timeline.seed, failure.wrong.sort);
    println!("{}", timeline.story(failure.at));
    println!("tick at {}, {}", time(failure.at), failure.schedule.map_or("all schedules", Schedule::name));
    println!("{}\n", failure.wrong.text);
}

/// Every sort of disagreement, how often it occurred, and where.
fn summarize(found: &[Disagreement]) {
    let mut sorts: BTreeMap<&str, Vec<&Disagreement>> = BTreeMap::new();
    for one in found {
        sorts.entry(&one.failure.wrong.sort).or_default().push(one);
    }
    let mut sorts: Vec<_> = sorts.into_iter().collect();
    sorts.sort_by_key(|(_, found)| std::cmp::Reverse(found.len()));
    for (sort, found) in sorts {
        let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
        for one in found.iter().rev() {
            classes.insert(one.timeline.class, one.timeline.seed);
        }
        let places: Vec<String> = classes.iter().map(|(class, seed)| format!("{class} {seed}")).collect();
        println!("{:5} {sort} ({})", found.len(), places.join(", "));
    }
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
