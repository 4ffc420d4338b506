//! The power goes while commands append: the file system is shut down without its journal being
//! flushed, which throws away everything that was not synced.
//!
//! Promise: what was acknowledged is there after the next mount, the next append works, the log
//! verifies. `the_cut_is_real` shows that a command without its syncs does not survive it.
//!
//! Only replies that arrived before the cut began count as acknowledged. A sync that is under way
//! during ext4's shutdown can return 0 and be lost: a bare loop of write and fdatasync loses its last
//! round in the same way (4 of 120 writers, Linux 6.18). Those events must be whole or absent.

use std::process::Command;
use std::sync::mpsc;
use std::thread;

use crate::hive::{Hive, Reply, START, binary};
use crate::machine::{Dice, Disk, Need, can, must, sized, tool};
use crate::vaults::{batch, check_goes_on, count, log, payload};

const NEEDS: &[Need] = &[Need::Root, Need::Mount, Need::Loop, Need::Tool("xfs_io")];
const WORKERS: usize = 3;
const BATCH: usize = 60;

/// Takes the file system away, as a power cut does.
fn cut(hive: &Hive) {
    must("xfs_io", &["-x", "-c", "shutdown", &hive.dir().to_string_lossy()]);
}

/// The days move on, so that new segments and months are made as well.
fn day(cycle: usize) -> String {
    format!("2026-{:02}-{:02}T12:00:00Z", 2 + cycle / 25, 1 + cycle % 25)
}

/// Appends until that fails, telling what was acknowledged: the title, and how many events it has.
fn append_until_cut(hive: &Hive, name: &str, told: &mpsc::Sender<(String, usize)>) {
    for n in 0.. {
        let title = format!("{name}.{n}.");
        let (reply, size) = match n % 4 {
            3 => (hive.pipe("append", &["--batch"], batch(&title, BATCH)), BATCH),
            _ => (hive.run("append", &["RequirementProposed", "--payload", &payload(&title)]), 1),
        };
        if reply.code != Some(0) || told.send((title, size)).is_err() {
            return;
        }
    }
}

/// Gives how many replies came before the cuts, how many during them, and how many of those are gone.
fn cycles(kind: &str, number: usize) -> (usize, usize, usize) {
    let disk = Disk::new(kind, if kind == "xfs" { 320 } else { 16 });
    let mut hive = Hive::empty();
    let mut dice = Dice::new(number as u64);
    let (mut acknowledged, mut during) = (Vec::new(), Vec::new());
    {
        let _mount = disk.mount(hive.dir());
        hive.at(&day(0));
        hive.run("init", &[]).expect_exit(0);
        cut(&hive);
    }
    for cycle in 0..number {
        let _mount = disk.mount(hive.dir());
        hive.at(&day(cycle));
        check_all(&hive, &acknowledged, kind, cycle);
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            for worker in 0..WORKERS {
                let (hive, tell) = (&hive, tell.clone());
                scope.spawn(move || append_until_cut(hive, &format!("c{cycle}w{worker}"), &tell));
            }
            drop(tell);
            for _ in 0..=dice.below(12) {
                acknowledged.push(told.recv().expect("the workers append"));
            }
            acknowledged.extend(told.try_iter());
            cut(&hive);
            during.extend(told);
        });
    }
    let _mount = disk.mount(hive.dir());
    check_all(&hive, &acknowledged, kind, number);
    let log = log(&hive.vault());
    let mut gone = 0;
    for (title, size) in &during {
        match count(&log, &format!("\"title\":\"{title}")) {
            0 => gone += 1,
            found => assert_eq!(found, *size, "{kind}: {title} is there in part"),
        }
    }
    (acknowledged.len(), during.len(), gone)
}

fn check_all(hive: &Hive, acknowledged: &[(String, usize)], kind: &str, cycle: usize) {
    check_goes_on(hive).unwrap_or_else(|e| panic!("{kind}, cycle {cycle}: {e}"));
    let log = log(&hive.vault());
    for (title, size) in acknowledged {
        let found = count(&log, &format!("\"title\":\"{title}"));
        assert_eq!(found, *size, "{kind}, cycle {cycle}: {title} was acknowledged");
    }
}

#[test]
fn what_was_acknowledged_before_a_power_cut_is_there_after_it() {
    if !can("power cuts", NEEDS) {
        return;
    }
    for kind in ["ext4", "xfs"] {
        let tool: &'static str = if kind == "xfs" { "mkfs.xfs" } else { "mkfs.ext4" };
        if can(&format!("power cuts on {kind}"), &[Need::Tool(tool)]) {
            let number = sized(4, 25);
            let (before, during, gone) = cycles(kind, number);
            println!(
                "power cuts: {kind}, {number} cycles, {before} replies acknowledged before a cut, 0 lost; \
                 {during} during a cut, {gone} of them gone"
            );
        }
    }
}

#[test]
fn the_cut_is_real() {
    let mut needs = NEEDS.to_vec();
    needs.extend([Need::Tool("strace"), Need::Tool("mkfs.ext4")]);
    if !can("that a power cut loses what is not synced", &needs) {
        return;
    }
    // The same append with its syncs, without the data's, and in a new segment without the folders'.
    for (without, now, survives) in [
        (None, START, true),
        (Some("fdatasync"), START, false),
        (Some("fsync,fdatasync"), "2026-02-01T12:00:00Z", false),
    ] {
        let disk = Disk::new("ext4", 16);
        let hive = Hive::empty();
        {
            let _mount = disk.mount(hive.dir());
            hive.run("init", &[]).expect_exit(0);
            let mut command = Command::new("strace");
            command.args(["-f", "-qq", "-o", "/dev/null"]);
            if let Some(calls) = without {
                command.args(["-e", &format!("inject={calls}:retval=0")]);
            }
            command.arg(binary("append")).args(["RequirementProposed", "--payload", &payload("probe")]);
            command.current_dir(hive.dir()).env_clear().envs([("USER", "jo"), ("HF_NOW", now)]);
            Reply::of(command.output().expect("strace runs")).expect_exit(0);
            cut(&hive);
            assert!(!tool("touch", &[&hive.dir().join("x").to_string_lossy()]).status.success(), "it is cut off");
        }
        let _mount = disk.mount(hive.dir());
        let found = count(&log(&hive.vault()), "\"title\":\"probe\"");
        assert_eq!(found == 1, survives, "without {without:?}: {found} copies");
    }
}
