//! `cp -r` of a vault that is being written to. The head record of such a copy may be ahead of its log; commands then
//! report that, and recovery by an operator makes the copy usable. Everything acknowledged before the copy started is
//! in it, and the original is not affected.

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::counts::{Budget, Counts, Wrong};
use crate::judge::{agrees, check_files};
use crate::machine::{Need, can};
use crate::test_vault::TestVault;
use crate::vaults::{check_goes_on, keys, log, payload};

const WORKERS: usize = 2;
/// Copies per vault, before a new one is created.
const COPIES: usize = 20;

pub fn run(budget: Budget) -> Option<Counts> {
    if !can("copies of a vault in use", &[Need::Tool("cp")]) {
        return None;
    }
    let wanted = budget.sized(6, 200);
    let mut counts = Counts::planned(wanted);
    while counts.tried < wanted && !budget.is_over() {
        let copies = COPIES.min(wanted - counts.tried);
        one_vault(budget, copies, &mut counts);
    }
    Some(counts)
}

fn one_vault(budget: Budget, copies: usize, counts: &mut Counts) {
    let hive = TestVault::new();
    // Enough events that the index is merged during a copy.
    let many = crate::vaults::batch("old", 200);
    hive.pipe("append", &["--batch"], many).expect_exit(0);
    let (acknowledged, over) = (Mutex::new(Vec::<String>::new()), AtomicBool::new(false));
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (hive, acknowledged, over) = (&hive, &acknowledged, &over);
            scope.spawn(move || {
                for n in 0.. {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    let key = format!("w{worker}-{n}");
                    let reply =
                        hive.run("append", &["RequirementProposed", "--key", &key, "--payload", &payload(&key)]);
                    if reply.all("STATUS") == ["APPENDED"] {
                        acknowledged.lock().expect("no panic").push(key);
                    }
                }
            });
        }
        for n in 0..copies {
            if budget.is_over() {
                break;
            }
            let before = acknowledged.lock().expect("no panic").clone();
            let copy = TestVault::empty();
            // Files renamed during the copy are missing from it; they are temporary, not part of the vault.
            Command::new("cp").arg("-r").arg(hive.vault()).arg(copy.vault()).output().expect("cp runs");
            counts.tried += 1;
            counts.acknowledged += before.len();
            check_copy(&copy, &before, &format!("copy {n}"), counts);
        }
        over.store(true, Ordering::Relaxed);
    });
    let found = keys(&log(&hive.vault()));
    for key in acknowledged.into_inner().expect("no panic") {
        if found.get(&key) != Some(&1) {
            counts.note("the original", Wrong::Lost(key));
        }
    }
    counts.check("the original", check_goes_on(&hive).map_err(Wrong::ChainBreak));
    counts.check("the original", agrees(&hive));
    counts.check("the original", check_files(&hive));
}

fn check_copy(copy: &TestVault, before: &[String], name: &str, counts: &mut Counts) {
    // The modes of the copy depend on the umask, so make it private first.
    Command::new("chmod").args(["-R", "go-w"]).arg(copy.vault()).output().expect("chmod runs");
    let first = copy.run("append", &["RequirementProposed", "--payload", &payload("first")]);
    if first.code == Some(4) {
        let recovered = copy.run("verify", &["--recover", "--yes"]);
        if recovered.code != Some(0) {
            counts.note(name, Wrong::ChainBreak(format!("{recovered:?}")));
        }
    } else if first.code != Some(0) {
        counts.note(name, Wrong::ChainBreak(format!("{first:?}")));
    }
    // Repeat some acknowledged requests: the copy knows their keys.
    for key in before.iter().step_by(before.len() / 3 + 1) {
        let again = copy.run("append", &["RequirementProposed", "--key", key, "--payload", &payload(key)]);
        if again.all("STATUS") != ["DUPLICATE"] {
            counts.note(name, Wrong::Duplicated(format!("{key}: {again:?}")));
        }
    }
    let found = keys(&log(&copy.vault()));
    for key in before {
        match found.get(key) {
            None => counts.note(name, Wrong::Lost(key.clone())),
            Some(1) => {}
            Some(n) => counts.note(name, Wrong::Duplicated(format!("{key}: {n} copies"))),
        }
    }
    counts.check(name, check_goes_on(copy).map_err(Wrong::ChainBreak));
    // A cache may have been copied halfway through a write; a rebuild repairs it.
    if copy.run("project", &["--check"]).code != Some(0) {
        copy.run("project", &["--rebuild"]);
    }
    counts.check(name, agrees(copy));
    counts.check(name, check_files(copy));
}
