//! Breaks commands in the middle in every possible way and counts the damage. Run by `scripts/torture`.
//!
//! Promise: nothing acknowledged is lost, nothing is duplicated, the chain is intact, nothing is left over.
//! `--sabotage NAME` makes the commands break that promise, and must turn the verdict red.

#[allow(dead_code, reason = "shared with the system tests, which use the rest")]
#[path = "../system/machine.rs"]
mod machine;
#[allow(dead_code, reason = "shared with the e2e tests, which use all of it")]
#[path = "../e2e/support/test_vault.rs"]
mod test_vault;
#[allow(dead_code, reason = "shared with the system tests, which use the rest")]
#[path = "../system/vaults.rs"]
mod vaults;

mod clock;
mod commands;
mod copies;
mod counts;
mod crowd;
mod disk;
mod index;
mod inject;
mod judge;
mod order;
mod power;
mod recovery;
mod storm;

use std::cell::OnceCell;
use std::process::ExitCode;
use std::time::Duration;

use counts::{Budget, Counts, Watch};
use inject::Ground;

/// The starting vaults that several parts share, created on first use.
#[derive(Default)]
struct Shared {
    /// The commands to torture; all if none is named.
    commands: Vec<String>,
    /// In how many starting vaults each; all if not given.
    vaults: Option<usize>,
    grounds: OnceCell<Vec<Ground>>,
}

impl Shared {
    fn grounds(&self, budget: Budget) -> &[Ground] {
        self.grounds
            .get_or_init(|| inject::grounds(budget.sized(4, 1), &self.commands, self.vaults.unwrap_or(usize::MAX)))
    }
}

struct Part {
    name: &'static str,
    /// Its share of the time.
    weight: u32,
    /// Whether it uses the shared starting vaults.
    on_grounds: bool,
    run: fn(Budget, &Shared) -> Option<Counts>,
}

const fn part(name: &'static str, weight: u32, run: fn(Budget, &Shared) -> Option<Counts>) -> Part {
    Part { name, weight, on_grounds: false, run }
}

const fn on_grounds(part: Part) -> Part {
    Part { on_grounds: true, ..part }
}

const PARTS: &[Part] = &[
    on_grounds(part("sync-order", 2, |budget, shared| order::run(budget, shared.grounds(budget)))),
    on_grounds(part("short-writes", 4, |budget, shared| disk::short_writes(budget, shared.grounds(budget)))),
    part("full-disk", 2, |budget, _| disk::full(budget)),
    part("power-cuts", 5, |budget, _| power::run(budget)),
    part("clock-jumps", 2, |budget, _| clock::run(budget)),
    part("copies-in-use", 3, |budget, _| copies::run(budget)),
    part("damaged-index", 2, |budget, _| index::run(budget)),
    part("recovery", 4, |budget, _| recovery::run(budget)),
    part("crowd", 6, |budget, _| crowd::run(budget)),
    part("kill-storm", 8, |budget, _| storm::run(budget)),
    on_grounds(part("failing-calls", 20, |budget, shared| inject::run(budget, shared.grounds(budget)))),
];

/// The steps that can be skipped on purpose, and the parts that must detect it.
const SABOTAGES: &[(&str, &[&str])] = &[
    ("log-sync", &["sync-order", "power-cuts"]),
    ("directory-sync", &["sync-order"]),
    ("rollback", &["short-writes"]),
];

const USAGE: &str = "usage: scripts/torture [--minutes N] [--short] [--part NAME]… [--command NAME]… \
                     [--vaults N] [--sabotage NAME | --self-test]";

struct Wanted {
    minutes: Option<u64>,
    short: bool,
    parts: Vec<String>,
    commands: Vec<String>,
    vaults: Option<usize>,
    sabotage: Option<&'static str>,
    self_test: bool,
}

fn wanted() -> Result<Wanted, String> {
    let mut wanted = Wanted {
        minutes: None,
        short: false,
        parts: Vec::new(),
        commands: Vec::new(),
        vaults: None,
        sabotage: None,
        self_test: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--short" => wanted.short = true,
            "--self-test" => (wanted.self_test, wanted.short) = (true, true),
            "--minutes" => wanted.minutes = Some(value()?.parse().map_err(|_| "--minutes needs a number")?),
            "--part" => {
                let name = value()?;
                if !PARTS.iter().any(|part| part.name == name) {
                    let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
                    return Err(format!("unknown part '{name}'; one of {}", names.join(", ")));
                }
                wanted.parts.push(name);
            }
            "--command" => {
                let name = value()?;
                if !commands::ACTS.iter().any(|act| act.is_of(&name)) {
                    return Err(format!("no line runs '{name}'; give a command as 'job' or 'job fire'"));
                }
                wanted.commands.push(name);
            }
            "--vaults" => wanted.vaults = Some(value()?.parse().map_err(|_| "--vaults needs a number")?),
            "--sabotage" => {
                let name = value()?;
                let names = || SABOTAGES.iter().map(|(name, _)| *name);
                let all: Vec<&str> = names().collect();
                let found = names().find(|known| *known == name);
                wanted.sabotage = Some(found.ok_or_else(|| format!("--sabotage must be one of {}", all.join(", ")))?);
            }
            other => return Err(format!("unknown argument '{other}'")),
        }
    }
    Ok(wanted)
}

/// Runs parts and prints their counts. Returns the total, and the names of the red parts.
fn torture(budget: Budget, shared: &Shared, wanted: &dyn Fn(&str) -> bool) -> (Counts, Vec<&'static str>) {
    let parts: Vec<&Part> = PARTS.iter().filter(|part| wanted(part.name)).collect();
    let mut left: u32 = parts.iter().map(|part| part.weight).sum();
    let (mut all, mut red) = (Counts::default(), Vec::new());
    // Create them now, so that the first part that needs them does not lose time.
    if parts.iter().any(|part| part.on_grounds) {
        shared.grounds(budget);
    }
    for part in parts {
        let watch = Watch::start();
        let counts = (part.run)(budget.share(part.weight, left), shared);
        left -= part.weight;
        println!("PART:{}", part.name);
        match counts {
            None => println!("VERDICT:CANNOT\n"),
            Some(counts) => {
                let verdict = match counts.is_green() {
                    true if counts.tried == 0 => "NOT_TRIED",
                    true => "GREEN",
                    false => "RED",
                };
                println!("{counts}\nSECONDS:{}\nVERDICT:{verdict}\n", watch.seconds());
                counts.details.iter().take(12).for_each(|detail| eprintln!("{}: {detail}", part.name));
                if !counts.is_green() {
                    red.push(part.name);
                }
                all.add(&counts);
            }
        }
    }
    (all, red)
}

fn sabotage(name: Option<&'static str>) {
    *test_vault::SABOTAGE.lock().expect("no panic") = name;
}

/// Checks that every sabotage is detected by the parts that must detect it.
fn self_test(budget: Budget) -> ExitCode {
    let (shared, mut good) = (Shared::default(), true);
    shared.grounds(budget);
    for (name, parts) in SABOTAGES {
        println!("SABOTAGE:{name}");
        sabotage(Some(name));
        let (counts, red) = torture(budget, &shared, &|part| parts.contains(&part));
        sabotage(None);
        // Enough: nothing could run here, all parts are red, or the first one is.
        let noticed = counts.tried == 0 || red.len() == parts.len() || (!red.is_empty() && red[0] == parts[0]);
        println!("NOTICED:{}\nNOTICED_BY:{}\n", if noticed { "YES" } else { "NO" }, red.join(" "));
        good &= noticed;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    let wanted = match wanted() {
        Ok(wanted) => wanted,
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let watch = Watch::start();
    let budget = Budget::new(wanted.short, wanted.minutes.filter(|n| *n > 0).map(|n| Duration::from_secs(n * 60)));
    if wanted.self_test {
        return self_test(budget);
    }
    for name in commands::not_covered() {
        println!("NOT_COVERED:hf-{name}");
    }
    let shared = Shared { commands: wanted.commands, vaults: wanted.vaults, ..Shared::default() };
    if wanted.sabotage.is_some() {
        // The shared starting vaults are created without sabotage.
        shared.grounds(budget);
        sabotage(wanted.sabotage);
    }
    let chosen = |part: &str| wanted.parts.is_empty() || wanted.parts.iter().any(|name| name == part);
    let (all, _) = torture(budget, &shared, &chosen);
    println!("PART:total\n{all}\nSECONDS:{}", watch.seconds());
    println!("VERDICT:{}", if all.is_green() { "GREEN" } else { "RED" });
    if all.is_green() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
