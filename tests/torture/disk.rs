//! Full disks, and writes that are cut short by a file-size limit.

use std::path::Path;

use crate::commands::{APPEND, Act, BATCH};
use crate::counts::{Budget, Counts, Wrong};
use crate::inject::Ground;
use crate::judge::{Said, agrees, check_files, judge, said};
use crate::machine::{Dice, Disk, Mount, Need, can, fill};
use crate::test_vault::{START, TestVault};
use crate::vaults::{NEXT_DAY, check_goes_on, log};

/// Cuts the write to the log short at regular offsets.
pub fn short_writes(budget: Budget, grounds: &[Ground]) -> Option<Counts> {
    if !can("short writes", &[Need::Tool("prlimit")]) {
        return None;
    }
    let mut counts = Counts::default();
    let mut cases = Vec::new();
    for ground in grounds.iter().filter(|ground| !ground.start.kept.is_empty() && !ground.whole.is_empty()) {
        let whole = ground.start.copy();
        ground.act.run(&whole, &[], None);
        // The limit applies to every file. It is relative to the end of the log, the longest file except for the index.
        let (from, to) = (ground.start.kept.len(), log(&whole.vault()).len());
        let step = budget.sized(97, 7);
        cases.extend((from..to).step_by(step).chain([to - 1]).map(|limit| (ground, limit)));
    }
    counts.planned = cases.len();
    Dice::new(cases.len() as u64).shuffle(&mut cases);
    for (ground, limit) in cases.into_iter().take(budget.sized(60, usize::MAX)) {
        if budget.is_over() {
            break;
        }
        let hive = ground.start.copy();
        ground.act.run_beside(&hive);
        let limit = format!("--fsize={limit}");
        let reply = ground.act.run(&hive, &["prlimit", &limit], None);
        counts.tried += 1;
        let name = format!("{} with {limit}", ground.name());
        let outcome = judge(&ground.start, &ground.act, &hive, &reply, &ground.whole);
        counts.acknowledged += usize::from(outcome == Ok(Said::Recorded));
        counts.check(&name, outcome.map(drop).map_err(|wrong| wrong.because(&format!("{:?}", reply.stdout))));
    }
    Some(counts)
}

/// Runs commands until the disk is full, then frees space.
fn check_full(hive: &mut TestVault, name: &str, counts: &mut Counts) {
    const PUT: Act = Act { line: "artifact put probe", input: "", ..APPEND };
    const TALK: Act = Act { line: "checkpoint probe", ..APPEND };
    hive.run("checkpoint", &["begins"]);
    APPEND.run(hive, &[], None);
    let filler = fill(hive.dir());
    let mut acknowledged = 0;
    for day in [START, NEXT_DAY] {
        hive.at(day);
        for act in [APPEND, BATCH, TALK, PUT].iter().cycle().take(40) {
            let before = log(&hive.vault());
            let reply = act.run(hive, &[], None);
            counts.tried += 1;
            let after = log(&hive.vault());
            match said(&reply) {
                Ok(Said::Recorded) => acknowledged += 1,
                Ok(Said::Refused) if before == after => {}
                Ok(Said::Refused) => {
                    counts.note(name, Wrong::LeftOver(format!("refused, but the log grew: {reply:?}")))
                }
                Ok(other) => counts.note(name, Wrong::ChainBreak(format!("{other:?}: {reply:?}"))),
                Err(wrong) => counts.note(name, wrong),
            }
            if !after.starts_with(&before) {
                counts.note(name, Wrong::Lost("the log no longer begins as it did".into()));
            }
        }
    }
    counts.acknowledged += acknowledged;
    std::fs::remove_file(filler).expect("the filler");
    // Repeat what was interrupted, now that there is space.
    for act in [PUT, TALK, APPEND] {
        act.run(hive, &[], None);
    }
    counts.check(name, check_goes_on(hive).map_err(Wrong::ChainBreak));
    hive.run("project", &[]);
    counts.check(name, agrees(hive));
    let _ = std::fs::remove_dir(hive.dir().join("lost+found"));
    counts.check(name, check_files(hive));
}

pub fn full(budget: Budget) -> Option<Counts> {
    if !can("full disks", &[Need::Root, Need::Mount]) {
        return None;
    }
    let rounds = budget.sized(1, 20);
    let disks = can("a full ext4", &[Need::Loop, Need::Tool("mkfs.ext4")]);
    let mut counts = Counts::planned(rounds * 80 * (1 + usize::from(disks)));
    for round in 0..rounds {
        if budget.is_over() {
            break;
        }
        let mut hive = TestVault::empty();
        let mount = |at: &Path| Mount::new(at, &["-t", "tmpfs", "-o", "size=1m,mode=700", "none"]).expect("a tmpfs");
        let _mount = mount(hive.dir());
        hive.run("init", &[]).expect_exit(0);
        check_full(&mut hive, &format!("tmpfs, round {round}"), &mut counts);
        if disks {
            let (disk, mut hive) = (Disk::new("ext4", 4), TestVault::empty());
            let _mount = disk.mount(hive.dir());
            hive.run("init", &[]).expect_exit(0);
            check_full(&mut hive, &format!("ext4, round {round}"), &mut counts);
        }
    }
    Some(counts)
}
