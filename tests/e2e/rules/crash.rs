//! What a crash can leave: the next append repairs it, or refuses and changes nothing.
//!
//! Most cases run in this process, through the same function as hf-append, because there are many.

use std::fs;
use std::path::PathBuf;

use hiveforge::base::ErrorKind;
use hiveforge::op;
use serde_json::{Value, json};

use crate::support::steps::kinds;
use crate::support::test_vault::{TestVault, proposal, write_private};

/// A vault whose last unit can be torn.
struct Scene {
    hive: TestVault,
    /// All files, with the record as it was before the last unit.
    behind: Vec<(PathBuf, Vec<u8>)>,
    /// The log, and where its last unit begins.
    log: Vec<u8>,
    start: usize,
}

impl Scene {
    /// Records something, then the last unit by `last`.
    fn new(last: impl FnOnce(&TestVault)) -> Self {
        let hive = TestVault::new();
        hive.propose_here("before").unwrap();
        let record = fs::read(hive.head()).unwrap();
        let start = fs::read(hive.segment()).unwrap().len();
        last(&hive);
        let log = fs::read(hive.segment()).unwrap();
        write_private(&hive.head(), &record);
        Scene { behind: hive.contents(), log, start, hive }
    }

    /// The vault as a crash left it: this log, and a record that is older or missing.
    fn leave(&self, log: &[u8], with_record: bool) {
        self.hive.restore(&self.behind);
        write_private(&self.hive.segment(), log);
        if !with_record {
            fs::remove_file(self.hive.head()).unwrap();
        }
    }

    /// The next append must succeed, with everything from the last unit on in quarantine.
    #[track_caller]
    fn mends(&self, log: &[u8], with_record: bool, case: &str) {
        self.leave(log, with_record);
        let done = self.hive.propose_here("after").unwrap_or_else(|e| panic!("{case}: {e}"));
        assert!(!done.warnings.is_empty(), "{case}: nobody was told");
        let kept: Vec<Vec<u8>> = self.hive.quarantine().into_iter().map(|(_, bytes)| bytes).collect();
        assert!(kept == [&log[self.start..]], "{case}: quarantine does not hold what was cut off");
        let now = fs::read(self.hive.segment()).unwrap();
        assert!(now[..self.start] == self.log[..self.start], "{case}: something before the tail changed");
        let added: Vec<Value> =
            now[self.start..].split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let types: Vec<&Value> = added.iter().map(|event| &event["event_type"]).collect();
        assert_eq!(types, ["TailQuarantined", "RequirementProposed"], "{case}");
        assert_eq!(added[0]["payload"]["bytes"], log.len() - self.start, "{case}");
        assert_eq!(added[0]["payload"]["offset"], self.start, "{case}");
        assert_eq!(added[1]["event_id"], done.asked.id.to_string(), "{case}");
        let verified = self.hive.verify_here();
        assert!(verified.passed() && verified.count == 4, "{case}: {verified:?}");
    }
}

fn propose(title: &str) -> impl FnOnce(&TestVault) {
    move |hive| drop(hive.propose_here(title).unwrap())
}

fn batch(titles: &[String]) -> impl FnOnce(&TestVault) {
    let events = titles.iter().map(|title| proposal(title)).collect();
    let request = op::AppendBatchRequest { events, key: None, mode: op::Mode::Write };
    move |hive| drop(op::append_batch(&hive.context(), request).unwrap())
}

#[test]
fn the_last_record_cut_at_every_byte_is_quarantined() {
    let scene = Scene::new(propose("torn"));
    for with_record in [true, false] {
        for cut in scene.start + 1..scene.log.len() {
            scene.mends(&scene.log[..cut], with_record, &format!("cut at {cut}, record {with_record}"));
        }
    }
}

#[test]
fn the_last_record_filled_with_zeros_page_by_page_is_quarantined() {
    const PAGE: usize = 4096;
    let scene = Scene::new(propose(&"x".repeat(20_000)));
    let pages = scene.start / PAGE..scene.log.len().div_ceil(PAGE);
    assert!(pages.len() >= 5);
    for with_record in [true, false] {
        for first in pages.clone() {
            for last in [first + 1, pages.end] {
                let mut log = scene.log.clone();
                let end = (last * PAGE).min(log.len());
                log[(first * PAGE).max(scene.start)..end].fill(0);
                scene.mends(&log, with_record, &format!("zeros in pages {first}..{last}, record {with_record}"));
            }
        }
    }
}

#[test]
fn half_a_batch_is_quarantined_as_a_whole() {
    let scene = Scene::new(batch(&["a", "b", "c"].map(str::to_owned)));
    let ends: Vec<usize> =
        (scene.start..scene.log.len()).filter(|&at| scene.log[at] == b'\n').map(|at| at + 1).collect();
    assert_eq!(ends.len(), 3);
    for with_record in [true, false] {
        // Cut at, before and after the end of each line, and within it.
        for cut in ends.iter().flat_map(|end| [end - 200, end - 1, *end, end + 1, end + 100]) {
            if cut < scene.log.len() {
                scene.mends(&scene.log[..cut], with_record, &format!("cut at {cut}, record {with_record}"));
            }
        }
        // A later line can be on the disk while an earlier one is not.
        for (line, end) in ends.iter().enumerate() {
            let mut log = scene.log.clone();
            log[end - 200..end - 100].fill(0);
            scene.mends(&log, with_record, &format!("a hole in line {}, record {with_record}", line + 1));
        }
    }
}

#[test]
fn a_batch_with_a_hole_in_every_line_is_quarantined() {
    const PAGE: usize = 4096;
    let scene = Scene::new(batch(&["a", "b", "c"].map(|title| title.repeat(9_000))));
    let mut log = scene.log.clone();
    let mut start = scene.start;
    for line in scene.log[scene.start..].split_inclusive(|b| *b == b'\n') {
        let page = start.next_multiple_of(PAGE);
        log[page..page + PAGE].fill(0);
        start += line.len();
        assert!(page + PAGE < start, "the page lies within the line");
    }
    scene.mends(&log, true, "a page of zeros in every line");
}

#[test]
fn zeros_and_garbage_after_the_head_are_quarantined() {
    let hive = TestVault::new();
    hive.propose_here("before").unwrap();
    let (files, log) = (hive.contents(), fs::read(hive.segment()).unwrap());
    for tail in [&[0; 1][..], &[0; 9000], b"\n", b"a\nb\nc\n", b"{}\n", b"\xff\xfe"] {
        hive.restore(&files);
        write_private(&hive.segment(), &[&log, tail].concat());
        hive.propose_here("after").unwrap();
        assert!(fs::read(hive.segment()).unwrap().starts_with(&log));
        assert!(hive.quarantine().into_iter().map(|(_, bytes)| bytes).eq([tail.to_vec()]));
        assert!(hive.verify_here().passed());
    }
}

#[test]
fn a_torn_first_write_of_a_new_segment_is_quarantined() {
    let mut hive = TestVault::new();
    hive.propose_here("before").unwrap();
    let record = fs::read(hive.head()).unwrap();
    hive.at("2026-02-01T12:00:00Z").propose_here("torn").unwrap();
    let path = hive.vault().join("Akashic/events/2026-02/2026-02-01.jsonl");
    let whole = fs::read(&path).unwrap();
    write_private(&hive.head(), &record);
    let files = hive.contents();
    for with_record in [true, false] {
        for cut in [0, 1, 100, whole.len() - 1] {
            hive.restore(&files);
            write_private(&path, &whole[..cut]);
            if !with_record {
                fs::remove_file(hive.head()).unwrap();
            }
            hive.propose_here("after").unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
            let kept: Vec<u8> = hive.quarantine().into_iter().flat_map(|(_, bytes)| bytes).collect();
            assert!(kept == whole[..cut], "cut at {cut}");
            assert!(hive.verify_here().passed(), "cut at {cut}");
            assert_eq!(hive.events().last().unwrap()["payload"]["title"], "after");
        }
    }
}

#[test]
fn an_unfinished_write_over_two_segments_is_quarantined_from_both() {
    let mut hive = TestVault::new();
    hive.propose_here("before").unwrap();
    let record = fs::read(hive.head()).unwrap();
    let log = fs::read(hive.segment()).unwrap();
    hive.at("2026-02-01T12:00:00Z").propose_here("torn").unwrap();
    let later = hive.vault().join("Akashic/events/2026-02/2026-02-01.jsonl");
    write_private(&hive.head(), &record);
    write_private(&hive.segment(), &[&log[..], b"{\"one"].concat());
    write_private(&later, b"{\"two");
    hive.propose_here("after").unwrap();
    let kept: Vec<Vec<u8>> = hive.quarantine().into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(kept, [b"{\"one", b"{\"two"]);
    assert!(fs::read(hive.segment()).unwrap().starts_with(&log));
    let verified = hive.verify_here();
    assert!(verified.passed() && verified.count == 4, "{verified:?}");
}

#[test]
fn unpublished_events_are_adopted() {
    for (last, count) in [
        (Box::new(propose("unpublished")) as Box<dyn FnOnce(&TestVault)>, 4),
        (Box::new(batch(&["a", "b", "c"].map(str::to_owned))), 6),
    ] {
        let scene = Scene::new(last);
        for with_record in [true, false] {
            scene.leave(&scene.log, with_record);
            scene.hive.propose_here("after").unwrap();
            assert!(fs::read(scene.hive.segment()).unwrap().starts_with(&scene.log));
            assert_eq!(scene.hive.quarantine(), []);
            let verified = scene.hive.verify_here();
            // Without a record nobody knows what was published.
            let count = if with_record { count + 1 } else { count };
            assert!(verified.passed() && verified.count == count, "{verified:?}");
            assert_eq!(kinds(&scene.hive).contains(&"TailAdopted".to_owned()), with_record);
        }
    }
}

#[test]
fn an_unpublished_event_is_published_before_its_duplicate_is_reported() {
    let hive = TestVault::new();
    hive.propose("before");
    let record = fs::read(hive.head()).unwrap();
    let args = ["RequirementProposed", "--payload", r#"{"title":"x"}"#, "--key", "k"];
    let first = hive.run("append", &args).expect_exit(0);
    write_private(&hive.head(), &record);
    assert_eq!(hive.run("log", &[]).expect_exit(0).all("EVENT").len(), 2);
    let again = hive.run("append", &args).expect_exit(0);
    assert_eq!(again.stdout, first.stdout.replace("APPENDED", "DUPLICATE"));
    assert_eq!(kinds(&hive)[2..], ["RequirementProposed", "TailAdopted"]);
}

#[test]
fn a_missing_or_garbage_head_record_is_rebuilt() {
    let hive = TestVault::new();
    hive.propose_here("before").unwrap();
    let good = fs::read(hive.head()).unwrap();
    let files = hive.contents();
    for record in [None, Some(vec![]), Some(vec![0; 512]), Some(b"garbage".to_vec()), Some(good[..300].to_vec())] {
        hive.restore(&files);
        match &record {
            None => fs::remove_file(hive.head()).unwrap(),
            Some(bytes) => write_private(&hive.head(), bytes),
        }
        assert_eq!(hive.run("log", &[]).expect_exit(0).all("EVENT").len(), 2);
        hive.propose_here("after").unwrap();
        assert_eq!(hive.run("verify", &[]).expect_exit(0).get("HEAD"), "OK", "{record:?}");
        assert_eq!(hive.quarantine(), []);
    }
}

#[test]
fn a_good_event_after_a_bad_one_is_damage_and_changes_nothing() {
    let scene = Scene::new(|hive| {
        hive.propose_here("bad").unwrap();
        hive.propose_here("good").unwrap();
    });
    let mut log = scene.log.clone();
    log[scene.start + 30] ^= 1;
    for with_record in [true, false] {
        scene.leave(&log, with_record);
        let before = scene.hive.contents();
        let error = scene.hive.propose_here("after").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Corrupt);
        assert!(scene.hive.contents() == before);
        let reply = scene.hive.refuses("append", &["RequirementProposed", "--payload", r#"{"title":"x"}"#], 4);
        assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("CORRUPT", "ACTION hf-verify"));
        assert!(reply.get("SUM").starts_with(&format!("2026-01/2026-01-31.jsonl at byte {}: ", scene.start)));
        scene.hive.run("verify", &[]).expect_exit(1);
    }
}

#[test]
fn a_bad_byte_at_the_published_head_is_damage_and_changes_nothing() {
    let hive = TestVault::new();
    hive.propose("x");
    let log = fs::read(hive.segment()).unwrap();
    let start = log[..log.len() - 1].iter().rposition(|b| *b == b'\n').unwrap() + 1;
    for at in [start, start + 100, log.len() - 1] {
        let mut bad = log.clone();
        bad[at] ^= 1;
        write_private(&hive.segment(), &bad);
        hive.refuses("append", &["RequirementProposed", "--payload", r#"{"title":"x"}"#], 4);
    }
}

#[test]
fn repairs_are_reported_and_do_not_affect_readers() {
    let scene = Scene::new(propose("torn"));
    scene.leave(&scene.log[..scene.log.len() - 1], true);
    let hive = &scene.hive;
    // Readers do not mend.
    let before = hive.contents();
    assert_eq!(hive.run("log", &[]).expect_exit(0).all("EVENT").len(), 2);
    let verified = hive.run("verify", &[]).expect_exit(1);
    assert_eq!((verified.get("TAIL"), verified.get("CHAIN")), ("TORN", "OK"));
    let rehearsal = ["RequirementProposed", "--payload", r#"{"title":"x"}"#, "-n"];
    hive.run("append", &rehearsal).expect_exit(0);
    assert!(hive.contents() == before);
    let reply = hive.propose("after");
    let bytes = scene.log.len() - 1 - scene.start;
    assert_eq!(reply.stderr, format!("warning: an unfinished write of {bytes} bytes was moved to quarantine\n"));
    let note = &hive.events()[2];
    assert_eq!((&note["event_type"], &note["actor"]), (&json!("TailQuarantined"), &json!("core:vault")));
    let file = note["payload"]["file"].as_str().unwrap();
    assert_eq!(hive.quarantine()[0].0.file_name().unwrap(), file);
    hive.run("verify", &[]).expect_exit(0);
}

#[test]
fn a_crash_during_repair_is_repaired_again() {
    let scene = Scene::new(propose("torn"));
    let torn = &scene.log[..scene.log.len() - 1];
    // It died with the copy made and nothing else.
    scene.mends(torn, true, "first");
    let copies = scene.hive.quarantine();
    scene.leave(torn, true);
    for (path, bytes) in &copies {
        write_private(path, bytes);
    }
    scene.hive.propose_here("after").unwrap();
    assert_eq!(scene.hive.quarantine(), copies);
    // It died with the note written over the torn bytes and the rest not cut off yet.
    let note_end = {
        let now = fs::read(scene.hive.segment()).unwrap();
        scene.start + now[scene.start..].iter().position(|b| *b == b'\n').unwrap() + 1
    };
    let mut half = fs::read(scene.hive.segment()).unwrap()[..note_end].to_vec();
    half.extend(b"...the rest of a longer torn write\n");
    scene.leave(&half, true);
    scene.hive.propose_here("after").unwrap();
    assert!(scene.hive.verify_here().passed());
    assert!(scene.hive.quarantine().iter().any(|(_, bytes)| bytes.ends_with(b"...the rest of a longer torn write\n")));
}
