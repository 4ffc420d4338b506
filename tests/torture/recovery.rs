//! Makes every system call of an operator's recovery fail once, or kills it there; the next recovery finishes it.
//!
//! Every line that was in the log is in the log or in quarantine, exactly one event records the recovery, and the log
//! and everything derived from it verify.

use std::fs;

use crate::commands::{Act, Again, Judged};
use crate::counts::{Budget, Counts, Wrong};
use crate::inject::{CALLS, FAULTS, Fault, Point, points, traced};
use crate::machine::{Dice, Need, can};
use crate::test_vault::{TestVault, write_private};
use crate::vaults::{check_goes_on, copy, files, log};

const RECOVER: Act = Act {
    line: "verify --recover --yes",
    before: &[],
    beside: None,
    input: "",
    again: Again::Same,
    judged: Judged::None,
};
const LAST_DAY: &str = "2026-02-02T12:00:00Z";

/// A vault with three segments and a snapshot, whose nth line is damaged.
fn damaged(line: usize, with_head: bool) -> TestVault {
    let mut hive = TestVault::new();
    hive.propose("one");
    hive.at("2026-02-01T12:00:00Z");
    let lines: Vec<String> =
        (0..3).map(|n| format!(r#"{{"event_type":"TaskProposed","payload":{{"title":"{n}"}}}}"#)).collect();
    hive.pipe("append", &["--batch"], lines.join("\n")).expect_exit(0);
    hive.at(LAST_DAY);
    hive.propose("two");
    hive.run("project", &["--snapshot"]).expect_exit(0);
    let mut before = 0;
    for path in ["2026-01/2026-01-31.jsonl", "2026-02/2026-02-01.jsonl"].map(|name| hive.akashic("events").join(name)) {
        let bytes = fs::read(&path).expect("a segment");
        let starts: Vec<usize> = (0..bytes.len()).filter(|at| *at == 0 || bytes[at - 1] == b'\n').collect();
        if let Some(start) = line.checked_sub(before).and_then(|n| starts.get(n)) {
            let mut changed = bytes;
            changed[start + 300] ^= 1;
            write_private(&path, &changed);
        }
        before += starts.len();
    }
    if !with_head {
        fs::remove_file(hive.head()).expect("a head record");
    }
    hive
}

pub fn run(budget: Budget) -> Option<Counts> {
    if !can("failing system calls of a recovery", &[Need::Tool("strace"), Need::Tool("cp")]) {
        return None;
    }
    let hives = [(1, true), (1, false), (3, true), (3, false), (0, true)].map(|(line, head)| damaged(line, head));
    let mut cases: Vec<(&TestVault, Point, Fault)> = Vec::new();
    for hive in &hives {
        let (reply, trace) = traced(&RECOVER, &copy(hive, LAST_DAY), &[CALLS.to_owned()]);
        assert_eq!(reply.all("STATUS"), ["RECOVERED"], "{reply:?}");
        for point in points(&trace) {
            cases.extend(FAULTS.iter().filter(|fault| fault.fits(&point)).map(|fault| (hive, point.clone(), *fault)));
        }
    }
    let mut counts = Counts::planned(cases.len());
    Dice::new(cases.len() as u64).shuffle(&mut cases);
    cases.truncate(budget.sized(100, usize::MAX));
    for (start, point, fault) in cases {
        if budget.is_over() {
            break;
        }
        let hive = copy(start, LAST_DAY);
        let (reply, _) = traced(&RECOVER, &hive, &[vec![CALLS.to_owned()], fault.options(&point)].concat());
        counts.tried += 1;
        counts.acknowledged += usize::from(reply.all("STATUS") == ["RECOVERED"]);
        let name = format!("{fault:?} at {} {}", point.call, point.nth);
        counts.check(&name, check(&hive, &log(&start.vault())).map_err(|wrong| wrong.because(&format!("{reply:?}"))));
    }
    Some(counts)
}

fn check(hive: &TestVault, before: &[u8]) -> Result<(), Wrong> {
    let again = hive.run("verify", &["--recover", "--yes"]);
    if again.code != Some(0) {
        return Err(Wrong::ChainBreak(format!("it cannot be repeated: {again:?}")));
    }
    let now = log(&hive.vault());
    let kept: Vec<Vec<u8>> = files(&hive.akashic("quarantine")).iter().filter_map(|path| fs::read(path).ok()).collect();
    let is_kept = |line: &&[u8]| contains(&now, line) || kept.iter().any(|bytes| contains(bytes, line));
    if let Some(lost) = before.split_inclusive(|b| *b == b'\n').find(|line| !is_kept(line)) {
        return Err(Wrong::Lost(String::from_utf8_lossy(lost).into_owned()));
    }
    match now.split(|b| *b == b'\n').filter(|line| contains(line, b"\"event_type\":\"VaultRecovered\"")).count() {
        1 => {}
        0 => return Err(Wrong::Lost("no event records the recovery".to_owned())),
        n => return Err(Wrong::Duplicated(format!("{n} events record the recovery"))),
    }
    let verified = hive.run("verify", &["--projections", "--policy"]);
    if verified.code != Some(0) {
        return Err(Wrong::ChainBreak(format!("{verified:?}")));
    }
    if let Some(left) =
        files(&hive.akashic("quarantine")).iter().find(|path| path.extension().is_some_and(|e| e == "tmp"))
    {
        return Err(Wrong::LeftOver(left.display().to_string()));
    }
    check_goes_on(hive).map_err(Wrong::ChainBreak)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(bytes, part).is_some()
}
