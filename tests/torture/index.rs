//! Damages the index at random, in ways that its seal detects and in ways that it cannot. No command fails because of
//! it, no key is forgotten, and a rebuild repairs it.

use std::fs;
use std::os::unix::fs::FileExt;

use crate::counts::{Budget, Counts, Wrong};
use crate::judge::{agrees, check_files};
use crate::machine::Dice;
use crate::test_vault::TestVault;
use crate::vaults::{check_goes_on, keys, log, payload};

const KEYS: usize = 200;

fn key(n: usize) -> String {
    format!("k{n}")
}

fn aged() -> TestVault {
    let hive = TestVault::new();
    let line = |n: usize| {
        let payload = payload(&key(n));
        format!("{{\"event_type\":\"RequirementProposed\",\"payload\":{payload},\"idempotency_key\":\"{}\"}}\n", key(n))
    };
    hive.pipe("append", &["--batch"], (0..KEYS).map(line).collect::<String>()).expect_exit(0);
    assert!(hive.akashic("index/data.mdb").exists(), "it has an index");
    hive
}

/// Damages one of its files.
fn damage(hive: &TestVault, dice: &mut Dice) -> String {
    let name = ["data.mdb", "data.mdb", "data.mdb", "seal.json", ".lock"][dice.below(5) as usize];
    let path = hive.akashic("index").join(name);
    let Ok(length) = fs::metadata(&path).map(|meta| meta.len().max(1)) else { return format!("no {name}") };
    let open = || fs::File::options().write(true).read(true).open(&path).expect("it is there");
    let at = dice.below(length);
    match dice.below(6) {
        0 => {
            fs::remove_file(&path).expect("it is there");
            format!("{name} removed")
        }
        1 => {
            open().set_len(at).expect("it is ours");
            format!("{name} cut at {at}")
        }
        2 => {
            open().set_len(length + 4096 * dice.below(9)).expect("it is ours");
            format!("{name} made longer")
        }
        3 => {
            let zeros = vec![0; (dice.below(8192) + 1) as usize];
            open().write_all_at(&zeros, at).expect("it is ours");
            format!("{name} zeroed at {at}")
        }
        _ => {
            let file = open();
            for _ in 0..=dice.below(64) {
                let at = dice.below(length);
                file.write_all_at(&[dice.below(256) as u8], at).expect("it is ours");
            }
            format!("{name} scattered")
        }
    }
}

pub fn run(budget: Budget) -> Option<Counts> {
    let wanted = budget.sized(20, 1000);
    let mut counts = Counts::planned(wanted);
    let mut dice = Dice::new(wanted as u64);
    let hive = aged();
    for n in 0..wanted {
        if budget.is_over() {
            break;
        }
        let name = damage(&hive, &mut dice);
        counts.tried += 1;
        // An old key must be known, a new one recorded.
        let old = key(dice.below(KEYS as u64) as usize);
        let new = format!("new-{n}");
        for (key, status) in [(&old, "DUPLICATE"), (&new, "APPENDED")] {
            let reply = hive.run("append", &["RequirementProposed", "--key", key, "--payload", &payload(key)]);
            match reply.all("STATUS").as_slice() {
                [said] if *said == status => counts.acknowledged += 1,
                ["APPENDED"] => counts.note(&name, Wrong::Duplicated(format!("{key}: {reply:?}"))),
                _ => counts.note(&name, Wrong::ChainBreak(format!("{key}: {reply:?}"))),
            }
        }
        counts.check(&name, damaged_check(&hive));
        if n % 10 == 9 {
            counts.check(&name, check_goes_on(&hive).map_err(Wrong::ChainBreak));
            hive.run("project", &["--rebuild"]);
            counts.check(&name, agrees(&hive));
            counts.check(&name, check_files(&hive));
        }
    }
    for (key, copies) in keys(&log(&hive.vault())) {
        if copies != 1 {
            counts.note("the log", Wrong::Duplicated(format!("{key}: {copies} copies")));
        }
    }
    Some(counts)
}

/// Checks that a check of the caches ends with a verdict, whatever it finds.
fn damaged_check(hive: &TestVault) -> Result<(), Wrong> {
    let reply = hive.run("project", &["--check"]);
    match reply.code {
        Some(0 | 1) => Ok(()),
        _ => Err(Wrong::ChainBreak(format!("{reply:?}"))),
    }
}
