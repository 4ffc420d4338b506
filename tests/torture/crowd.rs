//! Many processes append concurrently, and none is killed: every event is recorded exactly once.

use std::sync::Mutex;
use std::thread;

use crate::counts::{Budget, Counts, Wrong};
use crate::judge::{agrees, check_files};
use crate::test_vault::TestVault;
use crate::vaults::{check_verifies, keys, log, payload};

const WORKERS: usize = 32;

pub fn run(budget: Budget) -> Option<Counts> {
    let each = budget.sized(8, 1000);
    let hive = TestVault::new();
    let counts = Mutex::new(Counts::planned(WORKERS * each));
    let acknowledged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (hive, counts, acknowledged) = (&hive, &counts, &acknowledged);
            scope.spawn(move || {
                for n in 0..each {
                    if budget.is_over() {
                        return;
                    }
                    let key = format!("w{worker}-{n}");
                    // On a slow disk the queue for the lock is long.
                    let patient = ["--key", &key, "--payload", &payload(&key), "--lock-timeout", "120"];
                    let reply = hive.run("append", &[&["RequirementProposed"], &patient[..]].concat());
                    counts.lock().expect("no panic").tried += 1;
                    match reply.all("STATUS").as_slice() {
                        ["APPENDED"] => acknowledged.lock().expect("no panic").push(key),
                        _ => counts.lock().expect("no panic").note(&key, Wrong::ChainBreak(format!("{reply:?}"))),
                    }
                }
            });
        }
    });
    let mut counts = counts.into_inner().expect("no panic");
    let acknowledged = acknowledged.into_inner().expect("no panic");
    counts.acknowledged = acknowledged.len();
    let found = keys(&log(&hive.vault()));
    for key in &acknowledged {
        match found.get(key) {
            None => counts.note(key, Wrong::Lost("acknowledged".into())),
            Some(1) => {}
            Some(n) => counts.note(key, Wrong::Duplicated(format!("{n} copies"))),
        }
    }
    counts.check("a crowd", check_verifies(&hive).map_err(Wrong::ChainBreak));
    counts.check("a crowd", agrees(&hive));
    counts.check("a crowd", check_files(&hive));
    Some(counts)
}
