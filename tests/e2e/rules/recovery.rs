//! An operator's recovery: `hf-verify --recover` saves what can be saved, and says what is missing.

use std::fs;
use std::path::PathBuf;

use hiveforge::chain::{Head, HeadRecord, SegmentName};
use hiveforge::event::Event;
use hiveforge::op::{self, RecoverOutcome, RecoverRequest};
use serde_json::{Value, json};

use crate::support::test_vault::{Random, Reply, TestVault, mask, write_private};

/// A vault with the first event and four more.
fn five() -> TestVault {
    let hive = TestVault::new();
    for title in ["one", "two", "three", "four"] {
        hive.propose(title);
    }
    hive
}

/// A vault with three segments of three events each, and a batch in the middle one.
fn three_days() -> TestVault {
    let mut hive = TestVault::new();
    hive.propose("one");
    hive.propose("two");
    hive.at("2026-02-01T12:00:00Z");
    let line = |title: &str| json!({"event_type": "RequirementProposed", "payload": {"title": title}});
    hive.batch(&[line("three"), line("four"), line("five")]);
    hive.at("2026-02-02T12:00:00Z");
    for title in ["six", "seven", "eight"] {
        hive.propose(title);
    }
    hive
}

fn segments(hive: &TestVault) -> Vec<(PathBuf, Vec<u8>)> {
    let dir = hive.akashic("events");
    hive.contents().into_iter().filter(|(path, _)| path.starts_with(&dir)).collect()
}

fn log(hive: &TestVault) -> Vec<u8> {
    segments(hive).into_iter().flat_map(|(_, bytes)| bytes).collect()
}

/// The lines of some bytes, with their line ends.
fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
}

/// Changes one byte near the end of a line, counted over all segments.
fn damage(hive: &TestVault, line: usize) {
    let mut before = 0;
    for (path, bytes) in segments(hive) {
        let all = lines(&bytes);
        if line < before + all.len() {
            let start: usize = all[..line - before].iter().map(Vec::len).sum();
            let mut damaged = bytes.clone();
            damaged[start + all[line - before].len() - 20] ^= 1;
            return write_private(&path, &damaged);
        }
        before += all.len();
    }
    panic!("there is no line {line}");
}

fn id(line: &[u8]) -> String {
    serde_json::from_slice::<Value>(line).unwrap()["event_id"].as_str().unwrap().to_owned()
}

fn head(line: &[u8]) -> Value {
    let event: Value = serde_json::from_slice(line).unwrap();
    json!(format!("{}:{}", event["event_id"].as_str().unwrap(), event["hash"].as_str().unwrap()))
}

/// The lines in quarantine, in the order of their files.
fn quarantined(hive: &TestVault) -> Vec<Vec<u8>> {
    let files = hive.quarantine().into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "jsonl"));
    files.flat_map(|(_, bytes)| lines(&bytes)).collect()
}

/// The payload of the last VaultRecovered.
fn recovered(hive: &TestVault) -> Value {
    let said = hive.events().into_iter().rfind(|event| event["event_type"] == "VaultRecovered");
    said.expect("a recovery")["payload"].clone()
}

fn recover(hive: &TestVault) -> Reply {
    hive.run("verify", &["--recover", "--yes"]).expect_exit(0)
}

fn recover_here(hive: &TestVault) -> RecoverOutcome {
    op::recover(&hive.context(), RecoverRequest { confirmed: true }).unwrap_or_else(|e| panic!("{e}"))
}

/// What must be true after every recovery: the log and everything derived from it pass, and work goes on.
#[track_caller]
fn goes_on(hive: &TestVault) {
    let all = ["--projections", "--policy", "--artifacts"];
    let verified = hive.run("verify", &all).expect_exit(0);
    for (key, value) in [("CHAIN", "OK"), ("TAIL", "CLEAN"), ("HEAD", "OK"), ("PROJECTIONS", "OK"), ("POLICY", "OK")] {
        assert_eq!(verified.get(key), value, "{verified:#?}");
    }
    let before = hive.contents();
    assert_eq!(recover(hive).get("STATUS"), "INTACT");
    assert!(hive.contents() == before);
    hive.propose("after");
    hive.run("verify", &all).expect_exit(0);
}

/// T25.
#[test]
fn t25_one_damaged_line_does_not_discard_the_lines_after_it() {
    for with_head in [true, false] {
        let hive = five();
        hive.run("project", &["--snapshot", "s"]).expect_exit(0);
        let good = lines(&log(&hive));
        damage(&hive, 2);
        if !with_head {
            fs::remove_file(hive.head()).unwrap();
        }
        let damaged = lines(&log(&hive));
        let cut = good[0].len() + good[1].len();
        let reply = recover(&hive);
        assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("RECOVERED", "ACTION hf-log --quarantined"));
        assert_eq!(quarantined(&hive), good[3..]);
        let rest: Vec<Vec<u8>> = hive
            .quarantine()
            .into_iter()
            .filter(|(path, _)| path.file_name().unwrap().to_str().unwrap().starts_with("damage-2026-01-31-"))
            .map(|(_, bytes)| bytes)
            .collect();
        assert_eq!(rest, [damaged[2].clone()]);
        assert!(hive.akashic(&format!("quarantine/{}.jsonl", id(&good[3]))).exists());
        // The log says what is missing.
        let said = recovered(&hive);
        assert_eq!((&said["found_head"], &said["offset"]), (&head(&good[1]), &json!(cut)));
        assert_eq!(said.get("expected_head"), with_head.then(|| head(&good[4])).as_ref());
        assert_eq!((&said["first_missing"], &said["last_missing"]), (&json!(id(&good[2])), &json!(id(&good[4]))));
        assert_eq!((said.get("missing"), &said["kept"]), (with_head.then(|| json!(3)).as_ref(), &json!(2)));
        assert_eq!(said["bytes"], damaged[2..].concat().len());
        // So does the reply, and the lines can be listed.
        for (key, member) in [("FIRST_MISSING", "first_missing"), ("LAST_MISSING", "last_missing")] {
            assert_eq!(reply.get(key), said[member]);
        }
        assert_eq!(reply.get("CUT_AT"), format!("2026-01/2026-01-31.jsonl {cut}"));
        assert_eq!((reply.get("KEPT"), reply.get("EVENTS")), ("2", "2"));
        assert_eq!(reply.all("MISSING"), if with_head { vec!["3"] } else { vec![] });
        let listed = hive.run("log", &["--quarantined", "--jsonl"]);
        assert_eq!(listed.stdout.into_bytes(), good[3..].concat());
        goes_on(&hive);
    }
}

#[test]
fn a_recovery_is_shown_before_it_is_made() {
    let hive = five();
    let good = lines(&log(&hive));
    damage(&hive, 2);
    let before = hive.contents();
    let preview = hive.run("verify", &["--recover"]).expect_exit(3);
    assert!(hive.contents() == before, "a preview changed the vault");
    let cut = good[0].len() + good[1].len();
    let bytes = good[2..].concat().len();
    assert_eq!(
        preview.masked(&hive).replace(&cut.to_string(), "<cut>").replace(&bytes.to_string(), "<bytes>"),
        "EXIT:3\nSTATUS:REFUSED\nNEXT:ASK operator\n\
         SUM:not recovered yet: it would cut off <bytes> bytes and keep 2 intact events in quarantine; confirm with --yes\n\
         REASON:not_confirmed\nEXPECTED_HEAD:<ulid>:sha256:<digest>\nEVENTS:2\nHEAD_ID:<ulid>\n\
         HEAD_HASH:sha256:<digest>\nCUT_AT:2026-01/2026-01-31.jsonl <cut>\nBYTES:<bytes>\nKEPT:2\nMISSING:3\n\
         FIRST_MISSING:<ulid>\nLAST_MISSING:<ulid>\n"
            .to_owned()
            + &tail(&preview).replace(&cut.to_string(), "<cut>")
    );
    let made = recover(&hive);
    let same = |reply: &Reply| -> Vec<String> {
        let own = ["EXIT", "STATUS", "NEXT", "SUM", "REASON", "EVENT_ID"];
        let lines = reply.stdout.lines().filter(|line| !own.contains(&line.split(':').next().unwrap()));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(same(&made), same(&preview));
    assert_eq!(made.get("SUM"), format!("cut off {bytes} bytes; 2 intact events in quarantine; 1 event lost"));
    goes_on(&hive);
}

/// The lines of a reply about files and faults, masked; their numbers follow from ids and texts.
fn tail(reply: &Reply) -> String {
    let at = reply.stdout.find("QUARANTINED:").unwrap();
    assert_eq!((reply.all("QUARANTINED").len(), reply.all("FINDING").len()), (2, 1));
    assert!(reply.get("FINDING").starts_with("2026-01/2026-01-31.jsonl at byte "), "{reply:#?}");
    mask(&reply.stdout[at..])
}

#[test]
fn recovery_needs_an_operators_confirmation() {
    let hive = five();
    damage(&hive, 1);
    for actor in ["agent:worker", "external:ci"] {
        let reply = hive.refuses("verify", &["--recover", "--yes", "--actor", actor], 3);
        assert_eq!(reply.get("REASON"), "operator_only", "{actor}");
    }
    for variable in ["HF_AGENT", "HF_SESSION"] {
        for yes in [true, false] {
            // An agent cannot get around it by naming a user.
            let mut command = hive.command("verify");
            command.env(variable, "worker").args(["--recover", "--actor", "user:jo"]).args(yes.then_some("--yes"));
            let before = hive.contents();
            let reply = Reply::of(command.output().unwrap()).expect_exit(3);
            assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("operator_only", "ASK operator"));
            assert!(hive.contents() == before);
        }
    }
}

/// Every kind of damage, with what the event must say: events that stay, events kept, events missing, and whether the
/// first and the last missing id are known.
#[test]
fn every_kind_of_damage_is_recovered_from_and_described() {
    type Case = (&'static str, fn(&TestVault), u64, u64, Option<u64>, [bool; 2]);
    let cases: &[Case] = &[
        ("the first event", |hive| damage(hive, 0), 0, 8, Some(9), [true, true]),
        ("the last event", |hive| damage(hive, 8), 8, 0, Some(1), [true, true]),
        ("the middle of a batch", |hive| damage(hive, 4), 3, 5, Some(6), [true, true]),
        ("the start of a batch", |hive| damage(hive, 3), 3, 5, Some(6), [true, true]),
        (
            "two places",
            |hive| {
                damage(hive, 1);
                damage(hive, 6);
            },
            1,
            6,
            Some(8),
            [true, true],
        ),
        (
            "a place and no head",
            |hive| {
                damage(hive, 4);
                fs::remove_file(hive.head()).unwrap();
            },
            3,
            5,
            None,
            [true, true],
        ),
        (
            "a place, and a head that is garbage",
            |hive| {
                damage(hive, 1);
                write_private(&hive.head(), b"garbage");
            },
            1,
            7,
            None,
            [true, true],
        ),
        (
            "a place after the published head",
            |hive| {
                let mut record = HeadRecord::decode(&fs::read(hive.head()).unwrap()).unwrap();
                let line = String::from_utf8(lines(&segments(hive)[0].1)[1].clone()).unwrap();
                record.head = Head::at(&Event::read(line.trim_end().as_bytes()).unwrap());
                record.segment = SegmentName::parse("2026-01/2026-01-31.jsonl").unwrap();
                record.offset = lines(&segments(hive)[0].1)[..2].concat().len() as u64;
                record.count = 2;
                write_private(&hive.head(), &record.encode());
                damage(hive, 6);
            },
            6,
            2,
            None,
            [true, true],
        ),
        ("the first segment is gone", |hive| remove(hive, 0), 0, 6, Some(9), [false, true]),
        ("the middle segment is gone", |hive| remove(hive, 1), 3, 3, Some(6), [false, true]),
        ("the last segment is gone", |hive| remove(hive, 2), 6, 0, Some(3), [false, true]),
        ("no segment is left", |hive| (0..3).for_each(|_| remove(hive, 0)), 0, 0, Some(9), [false, true]),
        ("a line is gone", |hive| edit(hive, 2, |lines| drop(lines.remove(0))), 6, 2, Some(3), [false, true]),
        (
            "a line is there twice",
            |hive| edit(hive, 0, |lines| lines.insert(1, lines[1].clone())),
            2,
            7,
            Some(7),
            [false, true],
        ),
        ("two lines are swapped", |hive| edit(hive, 2, |lines| lines.swap(0, 1)), 6, 3, Some(3), [false, true]),
        ("a batch ends early", |hive| edit(hive, 1, |lines| lines.truncate(2)), 3, 5, Some(6), [true, true]),
        (
            "a segment of zeros",
            |hive| edit(hive, 1, |lines| *lines = vec![vec![0; 5000]]),
            3,
            3,
            Some(6),
            [false, true],
        ),
        (
            "a line end is gone",
            |hive| edit(hive, 2, |lines| assert!(lines[0].pop().is_some())),
            6,
            1,
            Some(3),
            [true, true],
        ),
    ];
    for (name, damage, stay, kept, missing, known) in cases {
        let hive = three_days();
        let good = lines(&log(&hive));
        damage(&hive);
        let (before, quarantine) = (segments(&hive), hive.quarantine());
        let preview = hive.run("verify", &["--recover"]).expect_exit(3);
        assert_eq!((segments(&hive), hive.quarantine()), (before.clone(), quarantine), "{name}");
        let reply = recover(&hive);
        let said = recovered(&hive);
        for reply in [&preview, &reply] {
            let number = |key: &str| reply.all(key).first().map(|n| n.parse::<u64>().unwrap());
            assert_eq!(
                (number("EVENTS"), number("KEPT"), number("MISSING")),
                (Some(*stay), Some(*kept), *missing),
                "{name}"
            );
        }
        assert_eq!((said["kept"].as_u64(), said["missing"].as_u64()), (Some(*kept), *missing), "{name}");
        let ids = ["first_missing", "last_missing"].map(|member| said.get(member).cloned());
        let expected = [(known[0], &good[*stay as usize]), (known[1], &good[8])];
        assert_eq!(ids, expected.map(|(known, line)| known.then(|| json!(id(line)))), "{name}");
        nothing_is_lost(&hive, &before, name);
        goes_on(&hive);
    }
}

fn remove(hive: &TestVault, segment: usize) {
    fs::remove_file(&segments(hive)[segment].0).unwrap();
}

/// Changes the lines of a segment.
fn edit(hive: &TestVault, segment: usize, change: impl FnOnce(&mut Vec<Vec<u8>>)) {
    let (path, bytes) = segments(hive).swap_remove(segment);
    let mut all = lines(&bytes);
    change(&mut all);
    write_private(&path, &all.concat());
}

/// Every line that was in the log before is in the log or in quarantine; a damaged one as part of the damaged bytes.
#[track_caller]
fn nothing_is_lost(hive: &TestVault, before: &[(PathBuf, Vec<u8>)], name: &str) {
    let now = log(hive);
    let kept: Vec<Vec<u8>> = hive.quarantine().into_iter().map(|(_, bytes)| bytes).collect();
    for line in before.iter().flat_map(|(_, bytes)| lines(bytes)) {
        let is_in = |bytes: &[u8]| memchr::memmem::find(bytes, &line).is_some();
        assert!(is_in(&now) || kept.iter().any(|bytes| is_in(bytes)), "{name}: {}", String::from_utf8_lossy(&line));
    }
}

/// The states in which a recovery can leave the vault if it is killed: with and without a head record, with the event
/// written in part or whole, with everything after it still there or cut off in part.
#[test]
fn a_recovery_killed_anywhere_loses_no_byte_and_is_finished_by_the_next() {
    for (with_head, line) in [(true, 1), (false, 1), (true, 4), (false, 4), (true, 0)] {
        let hive = three_days();
        damage(&hive, line);
        if !with_head {
            fs::remove_file(hive.head()).unwrap();
        }
        let before = hive.contents();
        let damaged = segments(&hive);
        recover_here(&hive);
        let after = hive.contents();
        let (n, (_, done)) =
            segments(&hive).into_iter().enumerate().rfind(|(_, (_, bytes))| !bytes.is_empty()).unwrap();
        let (path, was) = &damaged[n];
        let common = was.iter().zip(&done).take_while(|(a, b)| a == b).count();
        let written = |end: usize| [&done[..end], was.get(end..).unwrap_or_default()].concat();
        let states: Vec<(String, Vec<u8>, bool)> = [common, common + 1, common + 200, done.len() - 1, done.len()]
            .into_iter()
            .map(|end| (format!("written up to {end}"), written(end), false))
            .chain([("cut".to_owned(), done.clone(), false), ("emptied".to_owned(), done.clone(), true)])
            .collect();
        for (state, bytes, is_emptied) in states {
            for (quarantine, record) in [(true, true), (true, false), (false, false)] {
                let is_written = state == "cut" || is_emptied || bytes.starts_with(&done);
                // Nothing is written before the copies are made.
                if !quarantine && bytes != *was {
                    continue;
                }
                let name = format!("line {line}, head {with_head}, {state}, quarantine {quarantine}, record {record}");
                hive.restore(&before);
                if quarantine {
                    for (path, bytes) in after.iter().filter(|(path, _)| path.starts_with(hive.akashic("quarantine"))) {
                        write_private(path, bytes);
                    }
                }
                write_private(path, &bytes);
                if bytes != *was {
                    // The caches are gone by then.
                    let caches =
                        hive.contents().into_iter().filter(|(p, _)| p.starts_with(hive.akashic("projections")));
                    caches.for_each(|(path, _)| fs::remove_file(path).unwrap());
                }
                for (later, _) in damaged[n + 1..].iter().filter(|_| is_emptied) {
                    write_private(later, b"");
                }
                if record && is_written {
                    let (path, bytes) = after.iter().find(|(path, _)| *path == hive.head()).unwrap();
                    write_private(path, bytes);
                }
                let left = segments(&hive);
                recover_here(&hive);
                nothing_is_lost(&hive, &damaged[..n + 1], &name);
                nothing_is_lost(&hive, &left, &name);
                let recoveries = hive.events().iter().filter(|e| e["event_type"] == "VaultRecovered").count();
                assert_eq!(recoveries, 1, "{name}");
                let verified = hive.verify_here();
                assert!(verified.passed(), "{name}: {verified:?}");
                let listed: Vec<Vec<u8>> = lines(hive.run("log", &["--quarantined", "--jsonl"]).stdout.as_bytes());
                let first: Vec<Vec<u8>> = listed_after(&after, &hive);
                // The first half of a torn new beginning is an intact line, too.
                assert!(listed.starts_with(&first) && listed.len() <= first.len() + usize::from(line == 0), "{name}");
                hive.run("verify", &["--projections", "--policy"]).expect_exit(0);
            }
        }
    }
}

/// The lines in quarantine of these files.
fn listed_after(files: &[(PathBuf, Vec<u8>)], hive: &TestVault) -> Vec<Vec<u8>> {
    let dir = hive.akashic("quarantine");
    let kept =
        files.iter().filter(|(path, _)| path.starts_with(&dir) && path.extension().is_some_and(|e| e == "jsonl"));
    kept.flat_map(|(_, bytes)| lines(bytes)).collect()
}

#[test]
fn random_damage_is_always_recovered_from() {
    let hive = three_days();
    let files = hive.contents();
    let mut dice = Random::new(25);
    for round in 0..150 {
        hive.restore(&files);
        if dice.below(4) == 0 {
            fs::remove_file(hive.head()).unwrap();
        }
        for _ in 0..1 + dice.below(3) {
            let all = segments(&hive);
            let (path, mut bytes) = all[dice.below(all.len() as u64) as usize].clone();
            if bytes.is_empty() {
                continue;
            }
            let at = dice.below(bytes.len() as u64) as usize;
            match dice.below(4) {
                0 => bytes[at] ^= 1 << dice.below(8),
                1 => bytes.truncate(at),
                2 => bytes.insert(at, b'\n'),
                _ => {
                    let end = bytes.len().min(at + 300);
                    bytes[at..end].fill(0);
                }
            }
            write_private(&path, &bytes);
        }
        let before = segments(&hive);
        let preview = op::recover(&hive.context(), RecoverRequest { confirmed: false }).unwrap();
        assert!(segments(&hive) == before);
        let done = recover_here(&hive);
        let name = format!("round {round}");
        match (&preview.recovery.loss, &done.recovery.loss) {
            (None, None) => {}
            (Some(planned), Some(made)) => {
                let numbers = |loss: &hiveforge::vault::Loss| (loss.kept, loss.missing, loss.bytes, loss.offset);
                assert_eq!(numbers(planned), numbers(made), "{name}");
                assert_eq!(recovered(&hive)["kept"], made.kept, "{name}");
            }
            other => panic!("{name}: {other:?}"),
        }
        nothing_is_lost(&hive, &before, &name);
        let verified = hive.verify_here();
        assert!(verified.passed(), "{name}: {verified:?}");
        assert!(recover_here(&hive).recovery.loss.is_none(), "{name}");
        hive.propose_here("after").unwrap();
    }
}

#[test]
fn an_intact_log_is_not_recovered() {
    let hive = five();
    let before = hive.contents();
    for args in [&["--recover"][..], &["--recover", "--yes"]] {
        let reply = hive.run("verify", args).expect_exit(0);
        assert_eq!(
            reply.masked(&hive),
            "EXIT:0\nSTATUS:INTACT\nNEXT:NONE\nSUM:the log is intact; nothing to recover\nHEAD_ID:<ulid>\n\
             HEAD_HASH:sha256:<digest>\nBYTES:0\n"
        );
        assert!(hive.contents() == before);
    }
}

#[test]
fn recovery_leaves_a_torn_tail_to_the_next_append_and_says_so() {
    let hive = five();
    let good = log(&hive);
    write_private(&hive.segment(), &[&good[..], b"{\"torn"].concat());
    let reply = recover(&hive);
    assert_eq!(reply.get("STATUS"), "INTACT");
    assert_eq!(reply.stderr, "warning: an unfinished write of 6 bytes was moved to quarantine\n");
    assert!(log(&hive).starts_with(&good));
    assert_eq!(hive.events()[5]["event_type"], "TailQuarantined");
    goes_on(&hive);
}

#[test]
fn recovery_does_not_fail_on_a_broken_configuration() {
    let hive = five();
    damage(&hive, 2);
    hive.configure("a: [");
    assert_eq!(recover(&hive).get("STATUS"), "RECOVERED");
}

#[test]
fn a_head_that_counts_wrongly_is_recovered_without_a_loss() {
    let hive = five();
    let mut wrong = HeadRecord::decode(&fs::read(hive.head()).unwrap()).unwrap();
    wrong.count += 2;
    write_private(&hive.head(), &wrong.encode());
    assert_eq!(hive.run("verify", &[]).expect_exit(1).get("HEAD"), "MISMATCH");
    let reply = recover(&hive);
    assert_eq!((reply.get("MISSING"), reply.get("SUM")), ("0", "no event is missing"));
    goes_on(&hive);
}

#[test]
fn a_second_recovery_keeps_what_the_first_one_kept() {
    let hive = five();
    damage(&hive, 2);
    recover(&hive);
    let first = hive.quarantine();
    for title in ["a", "b", "c"] {
        hive.propose(title);
    }
    damage(&hive, 3);
    recover(&hive);
    assert!(first.iter().all(|file| hive.quarantine().contains(file)));
    assert_eq!(hive.run("log", &["--quarantined"]).expect_exit(0).get("COUNT"), "4");
    assert_eq!(recovered(&hive)["kept"], 2);
    goes_on(&hive);
}

/// A recovery that was interrupted before anything was recorded, and another piece of damage before the next one.
#[test]
fn a_file_in_quarantine_is_never_replaced_by_another() {
    let hive = five();
    damage(&hive, 2);
    let name = format!("quarantine/{}.jsonl", id(&lines(&log(&hive))[3]));
    fs::create_dir_all(hive.akashic("quarantine")).unwrap();
    write_private(&hive.akashic(&name), b"something else\n");
    let reply = recover(&hive);
    assert_eq!(fs::read(hive.akashic(&name)).unwrap(), b"something else\n");
    assert!(!reply.all("QUARANTINED").iter().any(|file| name.ends_with(file)), "{reply:#?}");
    let listed = hive.run("log", &["--quarantined"]).expect_exit(0);
    assert_eq!(listed.get("COUNT"), "2");
    assert!(listed.stderr.contains("1 line of quarantine/"), "{listed:#?}");
}

#[test]
fn a_recovery_after_the_clock_went_back_breaks_no_rule() {
    let mut hive = five();
    damage(&hive, 3);
    hive.at("2026-01-31T09:00:00Z");
    recover(&hive);
    hive.run("verify", &["--policy", "--projections"]).expect_exit(0);
}

#[test]
fn a_vault_that_cannot_be_written_is_looked_at_and_not_changed() {
    use std::os::unix::fs::PermissionsExt;
    let hive = five();
    damage(&hive, 2);
    fs::set_permissions(hive.akashic(""), fs::Permissions::from_mode(0o770)).unwrap();
    assert_eq!(hive.run("verify", &["--recover"]).expect_exit(3).get("REASON"), "not_confirmed");
    assert_eq!(hive.refuses("verify", &["--recover", "--yes"], 3).get("REASON"), "not_private");
}

#[test]
fn a_recovery_leaves_the_index_usable() {
    let hive = TestVault::new();
    let line = |n: usize| json!({"event_type": "RequirementProposed", "payload": {"title": n.to_string()}});
    for first in [0, 100, 200] {
        hive.batch(&(first..first + 100).map(line).collect::<Vec<_>>());
    }
    hive.run("project", &["--check"]).expect_exit(0);
    // The index is ahead of the cut.
    damage(&hive, 150);
    assert_eq!(recover(&hive).get("EVENTS"), "101");
    assert_eq!(hive.run("project", &["requirements", "--limit", "500"]).expect_exit(0).get("COUNT"), "100");
    goes_on(&hive);
}
