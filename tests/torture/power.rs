//! Power cuts while commands append: the file system is shut down without flushing its journal, which discards
//! everything that was not synced.
//!
//! What was acknowledged is there after the next mount, the next append works, the log verifies.
//!
//! Only replies that arrived before the cut count as acknowledged. A sync that is in progress during ext4's shutdown
//! can return 0 and be lost: a bare loop of write and fdatasync loses its last round in the same way (4 of 120
//! writers, Linux 6.18). Those events must be complete or absent.

use std::fs;
use std::sync::mpsc;
use std::thread;

use crate::counts::{Budget, Counts, Wrong};
use crate::judge::{agrees, check_files};
use crate::machine::{Dice, Disk, Need, can, must};
use crate::test_vault::TestVault;
use crate::vaults::{batch, check_goes_on, count, log, payload};

const NEEDS: &[Need] = &[Need::Root, Need::Mount, Need::Loop, Need::Tool("xfs_io")];
const WORKERS: usize = 3;
const BATCH: usize = 60;

/// Shuts the file system down, as a power cut does.
fn cut(hive: &TestVault) {
    must("xfs_io", &["-x", "-c", "shutdown", &hive.dir().to_string_lossy()]);
}

/// Each cycle is another day, so that new segments and months are created as well.
fn day(cycle: usize) -> String {
    format!("2026-{:02}-{:02}T12:00:00Z", 2 + cycle / 25, 1 + cycle % 25)
}

/// A text to find in the log, and how often it must occur.
type Told = (String, usize);

/// Appends until that fails, and reports what was acknowledged.
fn append_until_cut(hive: &TestVault, name: &str, told: &mpsc::Sender<Told>) {
    for n in 0.. {
        let title = format!("{name}.{n}.");
        let as_title = format!("\"title\":\"{title}");
        let (reply, mark) = match n % 5 {
            3 => (hive.pipe("append", &["--batch"], batch(&title, BATCH)), (as_title, BATCH)),
            4 => {
                // Its content must be there, too: `check_all` reads it.
                let reply = hive.pipe("artifact", &["put", "-", "--key", &title], title.repeat(1000));
                (reply, (format!("\"idempotency_key\":\"{title}\""), 1))
            }
            _ => (hive.run("append", &["RequirementProposed", "--payload", &payload(&title)]), (as_title, 1)),
        };
        if reply.code != Some(0) || told.send(mark).is_err() {
            return;
        }
    }
}

fn cycles(kind: &str, number: usize, budget: Budget, counts: &mut Counts) {
    let disk = Disk::new(kind, if kind == "xfs" { 320 } else { 64 });
    let mut hive = TestVault::empty();
    let mut dice = Dice::new(number as u64);
    let (mut acknowledged, mut during) = (Vec::new(), Vec::new());
    {
        let _mount = disk.mount(hive.dir());
        hive.at(&day(0));
        hive.run("init", &[]).expect_exit(0);
        cut(&hive);
    }
    let mut done = 0;
    while done < number && !budget.is_over() {
        let _mount = disk.mount(hive.dir());
        hive.at(&day(done));
        if !hive.vault().join("Akashic/events").exists() {
            counts.note(kind, Wrong::Lost("the vault itself".into()));
            return;
        }
        check_all(&hive, &acknowledged, &format!("{kind}, cycle {done}"), counts);
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            for worker in 0..WORKERS {
                let (hive, tell) = (&hive, tell.clone());
                scope.spawn(move || append_until_cut(hive, &format!("c{done}w{worker}"), &tell));
            }
            drop(tell);
            for _ in 0..=dice.below(12) {
                acknowledged.extend(told.recv());
            }
            acknowledged.extend(told.try_iter());
            cut(&hive);
            during.extend(told);
        });
        counts.tried += 1;
        done += 1;
    }
    let _mount = disk.mount(hive.dir());
    hive.at(&day(done));
    check_all(&hive, &acknowledged, kind, counts);
    counts.acknowledged += acknowledged.len();
    let log = log(&hive.vault());
    for (mark, size) in &during {
        match count(&log, mark) {
            0 => {}
            found if found == *size => {}
            found if found < *size => counts.note(kind, Wrong::Lost(format!("{mark} is incomplete: {found}"))),
            found => counts.note(kind, Wrong::Duplicated(format!("{mark}: {found} copies"))),
        }
    }
}

fn check_all(hive: &TestVault, acknowledged: &[Told], name: &str, counts: &mut Counts) {
    counts.check(name, check_goes_on(hive).map_err(Wrong::ChainBreak));
    // Content that was incoming at the power cut is removed by the next command that stores some.
    hive.pipe("artifact", &["put", "-"], name);
    let log = log(&hive.vault());
    for (mark, size) in acknowledged {
        match count(&log, mark) {
            found if found == *size => {}
            found if found < *size => counts.note(name, Wrong::Lost(format!("{mark}: {found} of {size}"))),
            found => counts.note(name, Wrong::Duplicated(format!("{mark}: {found} copies"))),
        }
    }
    let contents = hive.run("verify", &["--artifacts"]);
    if contents.code != Some(0) {
        counts.note(name, Wrong::Lost(format!("an artifact: {contents:?}")));
    }
    // Derived files are not synced: after a cut they may be outdated, and are rebuilt.
    if hive.run("project", &["--check"]).code != Some(0) {
        hive.run("project", &["--rebuild"]);
    }
    counts.check(name, agrees(hive));
    // ext4 creates this directory.
    let _ = fs::remove_dir(hive.dir().join("lost+found"));
    counts.check(name, check_files(hive));
}

pub fn run(budget: Budget) -> Option<Counts> {
    if !can("power cuts", NEEDS) {
        return None;
    }
    let kinds = ["ext4", "xfs"].into_iter().zip(["mkfs.ext4", "mkfs.xfs"]);
    let kinds: Vec<_> =
        kinds.filter(|(kind, tool)| can(&format!("power cuts on {kind}"), &[Need::Tool(tool)])).collect();
    let number = budget.sized(4, 100);
    let mut counts = Counts::planned(number * kinds.len());
    for (n, (kind, _)) in kinds.iter().enumerate() {
        cycles(kind, number, budget.share(1, (kinds.len() - n) as u32), &mut counts);
    }
    Some(counts)
}
