//! Random lives, one for each seed, lived by several threads, each judged.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the command line asks for.
pub struct Wanted {
    pub lives: u64,
    pub seed: u64,
    pub jobs: u64,
    /// Continues after a life that went wrong.
    pub all: bool,
}

impl Wanted {
    /// Reads the command line: `--NOUN N --seed S --jobs N --all --short`.
    pub fn parse(script: &str, noun: &str, lives: u64, short: u64) -> Result<Wanted, ExitCode> {
        parse(noun, lives, short).map_err(|why| {
            eprintln!("{why}\nusage: scripts/{script} [--{noun} N] [--seed S] [--jobs N] [--all] [--short]");
            ExitCode::from(2)
        })
    }
}

fn parse(noun: &str, lives: u64, short: u64) -> Result<Wanted, String> {
    let mut wanted = Wanted { lives, seed: 1, jobs: 2, all: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || {
            let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
            value.parse::<u64>().map_err(|_| format!("{arg} needs a number"))
        };
        match arg.as_str() {
            "--seed" => wanted.seed = number()?,
            "--jobs" => wanted.jobs = number()?.max(1),
            "--short" => wanted.lives = short,
            "--all" => wanted.all = true,
            _ if arg.strip_prefix("--") == Some(noun) => wanted.lives = number()?,
            other => return Err(format!("unknown argument '{other}'")),
        }
    }
    Ok(wanted)
}

/// A life that went wrong.
pub struct Wrong {
    /// What, in a line each.
    pub what: Vec<String>,
    /// What happened until then.
    pub story: Vec<String>,
}

/// Lives all lives and prints those that went wrong. Returns how many did.
pub fn live_all(wanted: &Wanted, live: &(dyn Fn(u64) -> Option<Wrong> + Sync)) -> u64 {
    let (next, found) = (AtomicU64::new(0), Mutex::new(0));
    let work = || {
        loop {
            let no = next.fetch_add(1, Ordering::Relaxed);
            let is_over = || !wanted.all && *found.lock().expect("no panic") > 0;
            if no >= wanted.lives || is_over() {
                return;
            }
            let seed = wanted.seed + no;
            if let Some(wrong) = live(seed) {
                *found.lock().expect("no panic") += 1;
                let lines = wrong.what.iter().map(|what| format!("  {what}"));
                let story = wrong.story.iter().map(|line| format!("    {line}"));
                let lines: Vec<String> = [format!("seed {seed}:")].into_iter().chain(lines).chain(story).collect();
                println!("{}", lines.join("\n"));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..wanted.jobs {
            scope.spawn(work);
        }
    });
    found.into_inner().expect("no panic")
}
