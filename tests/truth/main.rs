//! Random lives, judged: every line of hf-status and `hf-task explain`, every STATUS and NEXT, and every consequence in
//! the log is compared with a computation from the log alone.
//!
//! Promise: nothing of the toolkit is used here but its commands, so a mistake in it cannot be repeated in the judge.

mod call;
mod clock;
mod deeds;
mod dice;
mod jobs;
mod judge;
mod life;
mod log;
mod model;
mod place;
mod say;
mod shrink;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dice::Dice;
use life::{Life, Wrong};
use place::Commands;

/// How many steps a life has.
const STEPS: u64 = 30;

const USAGE: &str = "usage: scripts/truth [--lives N] [--seed S] [--jobs N] [--all] [--whole] [--short] [--mutants]";

struct Wanted {
    lives: u64,
    seed: u64,
    jobs: u64,
    /// Goes on after a contradiction and counts the sorts.
    all: bool,
    /// Shows a contradicting life as it was, without looking for a shorter one.
    whole: bool,
}

fn wanted() -> Result<Wanted, String> {
    let mut wanted = Wanted { lives: 10_000, seed: 1, jobs: 2, all: false, whole: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || {
            let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
            value.parse::<u64>().map_err(|_| format!("{arg} needs a number"))
        };
        match arg.as_str() {
            "--lives" => wanted.lives = number()?,
            "--seed" => wanted.seed = number()?,
            "--jobs" => wanted.jobs = number()?.max(1),
            "--short" => wanted.lives = 300,
            "--all" => wanted.all = true,
            "--whole" => wanted.whole = true,
            other => return Err(format!("unknown argument '{other}'")),
        }
    }
    Ok(wanted)
}

/// The binary whose commands are judged.
#[expect(clippy::disallowed_methods, reason = "the only variable of these tests, set by scripts/truth --mutants")]
fn binary() -> PathBuf {
    std::env::var_os("HF_TRUTH_BINARY").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_hf")), PathBuf::from)
}

/// A life that was judged to its end.
struct Lived {
    steps: usize,
    lines: usize,
    kinds: BTreeMap<String, usize>,
}

/// A life that contradicts itself.
struct Failure {
    seed: u64,
    wrong: Wrong,
    script: String,
}

/// Lives one life.
fn live(commands: &Commands, seed: u64, shorten: bool) -> Result<Lived, Failure> {
    let mut dice = Dice::new(seed);
    let settings = deeds::settings(&mut dice);
    let mut life = Life::new(commands, &settings);
    let (steps, diligent) = (STEPS / 2 + dice.below(STEPS), dice.one_in(2));
    let lived = (0..steps).try_for_each(|_| {
        let step = deeds::next(&mut dice, &life, diligent);
        life.perform(step)
    });
    match lived.and_then(|()| life.look(true)) {
        Ok(()) => Ok(Lived { steps: life.steps.len(), lines: life.compared, kinds: life.kinds }),
        Err(wrong) => {
            let (wrong, steps) = match shorten {
                true => shrink::shrink(commands, &settings, life.steps, wrong),
                false => (wrong, life.steps),
            };
            let script = life::script(&settings, &steps);
            Err(Failure { seed, wrong, script })
        }
    }
}

fn main() -> ExitCode {
    let wanted = match wanted() {
        Ok(wanted) => wanted,
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let commands = Commands::new(&binary());
    let (next, steps, lines) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let failures: Mutex<Vec<Failure>> = Mutex::new(Vec::new());
    let kinds: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..wanted.jobs {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let failed = || !failures.lock().expect("no panic").is_empty();
                    if n >= wanted.lives || (!wanted.all && failed()) {
                        break;
                    }
                    match live(&commands, wanted.seed + n, !wanted.all && !wanted.whole) {
                        Ok(lived) => {
                            steps.fetch_add(lived.steps, Ordering::Relaxed);
                            lines.fetch_add(lived.lines, Ordering::Relaxed);
                            let mut kinds = kinds.lock().expect("no panic");
                            lived.kinds.into_iter().for_each(|(kind, n)| *kinds.entry(kind).or_default() += n);
                        }
                        Err(failure) => failures.lock().expect("no panic").push(failure),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    let lived = next.load(Ordering::Relaxed).min(wanted.lives);
    let (steps, lines) = (steps.load(Ordering::Relaxed), lines.load(Ordering::Relaxed));
    if wanted.all {
        let kinds = kinds.into_inner().expect("no panic");
        println!("{}", kinds.iter().map(|(kind, n)| format!("{kind} {n}")).collect::<Vec<_>>().join(", "));
        summarize(&failures);
    } else if let Some(failure) = failures.iter().min_by_key(|failure| failure.seed) {
        println!("seed {}: {}\n{}\n\n{}", failure.seed, failure.wrong.sort, failure.wrong.text, failure.script);
    }
    println!(
        "{lived} lives from seed {}, {steps} steps, {lines} lines compared: {}",
        wanted.seed,
        say::count(failures.len(), "contradiction")
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every sort of contradiction, how often it occurred, and one seed.
fn summarize(failures: &[Failure]) {
    let mut sorts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for failure in failures {
        sorts.entry(&failure.wrong.sort).or_default().push(failure.seed);
    }
    let mut sorts: Vec<_> = sorts.into_iter().collect();
    sorts.sort_by_key(|(_, seeds)| std::cmp::Reverse(seeds.len()));
    for (sort, seeds) in sorts {
        println!("{:5} {sort} (seed {})", seeds.len(), seeds.iter().min().expect("one"));
    }
}
