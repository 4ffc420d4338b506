//! Workers append and are killed at random moments.
//!
//! Every acknowledged key is in the log exactly once, every other key at most once, and exactly once after the request
//! is repeated; a batch is recorded as a whole or not at all.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::counts::{Budget, Counts, Wrong};
use crate::judge::{agrees, check_files};
use crate::machine::Dice;
use crate::test_vault::TestVault;
use crate::vaults::{check_goes_on, check_verifies, keys, log, payload};

const WORKERS: usize = 16;
/// Kills per vault, before a new one is created.
const KILLS: usize = 500;
const BATCH: usize = 5;

/// A running command. It is reaped only under this lock, so a kill never hits another process.
type Slot = Mutex<Option<Child>>;

/// One command: a single event, or a batch. Both have keys.
struct Wish {
    keys: Vec<String>,
    acknowledged: bool,
}

impl Wish {
    fn new(worker: usize, n: usize) -> Wish {
        let size = if n % 4 == 3 { BATCH } else { 1 };
        Wish { keys: (0..size).map(|no| format!("k-{worker}-{n}-{no}")).collect(), acknowledged: false }
    }

    fn args(&self) -> Vec<String> {
        let one = |key: &str| {
            vec!["RequirementProposed".into(), "--key".into(), key.to_owned(), "--payload".into(), payload(key)]
        };
        if self.keys.len() > 1 { vec!["--batch".into()] } else { one(&self.keys[0]) }
    }

    fn input(&self) -> String {
        let line = |key: &String| {
            let payload = payload(key);
            format!("{{\"event_type\":\"RequirementProposed\",\"payload\":{payload},\"idempotency_key\":\"{key}\"}}\n")
        };
        self.keys.iter().map(line).collect()
    }

    fn copies(&self, found: &HashMap<String, usize>) -> Vec<usize> {
        self.keys.iter().map(|key| found.get(key).copied().unwrap_or_default()).collect()
    }

    /// Starts it and reads its reply until the process exits.
    fn run(&self, hive: &TestVault, slot: &Slot, started: &mpsc::Sender<usize>, worker: usize) -> (String, ExitStatus) {
        let mut command = hive.process("append");
        command.args(self.args()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the command starts");
        // It may be killed before it reads; the input is short, so this never blocks.
        let _ = child.stdin.take().expect("a pipe").write_all(self.input().as_bytes());
        let mut stdout = child.stdout.take().expect("a pipe");
        *slot.lock().expect("no panic") = Some(child);
        let _ = started.send(worker);
        let mut reply = String::new();
        stdout.read_to_string(&mut reply).expect("a reply in UTF-8");
        let status = slot.lock().expect("no panic").take().expect("it was started").wait().expect("it ends");
        (reply, status)
    }
}

pub fn run(budget: Budget) -> Option<Counts> {
    let wanted = budget.sized(150, 10_000);
    let mut counts = Counts::planned(wanted);
    for round in 0.. {
        let left = wanted.saturating_sub(counts.tried);
        if left == 0 || budget.is_over() {
            break;
        }
        storm(round, left.min(KILLS), budget, &mut counts);
    }
    Some(counts)
}

fn storm(seed: u64, wanted: usize, budget: Budget, counts: &mut Counts) {
    let hive = TestVault::new();
    let slots: Vec<Slot> = (0..WORKERS).map(|_| Mutex::new(None)).collect();
    let kills = AtomicUsize::new(0);
    let (started, starts) = mpsc::channel();
    let odd = Mutex::new(Vec::new());
    let wishes: Vec<Wish> = thread::scope(|scope| {
        let (hive, slots, kills, odd) = (&hive, &slots, &kills, &odd);
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let started = started.clone();
                scope.spawn(move || {
                    let mut wishes = Vec::new();
                    while kills.load(Ordering::Relaxed) < wanted && !budget.is_over() {
                        let mut wish = Wish::new(worker, wishes.len());
                        let (reply, status) = wish.run(hive, &slots[worker], &started, worker);
                        wish.acknowledged = reply.contains("\nSTATUS:APPENDED\n");
                        kills.fetch_add(usize::from(status.code().is_none()), Ordering::Relaxed);
                        if !wish.acknowledged && status.code().is_some() {
                            odd.lock().expect("no panic").push(reply);
                        }
                        wishes.push(wish);
                    }
                    wishes
                })
            })
            .collect();
        drop(started);
        scope.spawn(move || {
            let mut dice = Dice::new(seed + 1);
            for worker in starts {
                // This does not wait for anything: it makes the moment of the kill random.
                thread::sleep(Duration::from_micros(dice.below(12_000)));
                if let Some(child) = slots[worker].lock().expect("no panic").as_mut() {
                    child.kill().expect("our own child");
                }
            }
        });
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    counts.tried += kills.into_inner();
    for reply in odd.into_inner().expect("no panic") {
        counts.note("kill storm", Wrong::ChainBreak(format!("not killed, but replied: {reply}")));
    }
    counts.check("kill storm", check_goes_on(&hive).map_err(Wrong::ChainBreak));
    let found = keys(&log(&hive.vault()));
    for wish in &wishes {
        counts.acknowledged += usize::from(wish.acknowledged);
        counts.check("kill storm", check(wish, &wish.copies(&found), wish.acknowledged));
    }
    let unsaid: Vec<&Wish> = wishes.iter().filter(|wish| !wish.acknowledged).collect();
    let again = unsaid.iter().step_by(budget.sized(10, 5));
    for wish in again.clone() {
        let args = wish.args();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let reply = hive.pipe("append", &args, wish.input());
        if reply.code != Some(0) {
            counts.note("kill storm", Wrong::ChainBreak(format!("it cannot be repeated: {reply:?}")));
        }
    }
    let found = keys(&log(&hive.vault()));
    for wish in again {
        counts.check("kill storm, repeated", check(wish, &wish.copies(&found), true));
    }
    counts.check("kill storm", check_verifies(&hive).map_err(Wrong::ChainBreak));
    counts.check("kill storm", agrees(&hive));
    counts.check("kill storm", check_files(&hive));
}

fn check(wish: &Wish, copies: &[usize], must: bool) -> Result<(), Wrong> {
    match copies {
        _ if copies.iter().any(|n| *n > 1) => Err(Wrong::Duplicated(format!("{:?}: {copies:?} copies", wish.keys))),
        _ if copies.iter().all(|n| *n == 1) => Ok(()),
        _ if !must && copies.iter().all(|n| *n == 0) => Ok(()),
        _ => Err(Wrong::Lost(format!("{:?}: {copies:?} copies", wish.keys))),
    }
}
