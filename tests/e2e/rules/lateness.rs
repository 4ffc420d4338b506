//! What is late, asked of everybody who can be asked, at random moments of random lives.
//!
//! Agents claim, start, beat, dive, log in and are late; an operator pauses, answers, and changes settings. A
//! model of its own (`support::random_life::model`) says from the log alone what is late in each second. hf-status, the
//! watchdog, the next claim, the late holder and the agent whose session is over must all say the same,
//! whether or not a watchdog ever came by; and every log must keep the rules.
//!
//! `HF_LIVES=200 cargo test --test e2e lateness` lives longer; `HF_LIFE=SEED` lives one life again.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::support::random_life::Life;
use crate::support::random_life::model::{second, time};
use crate::support::random_life::place::Expect;
use crate::support::steps::{count, governed, keeps_the_rules, ok, sh};
use crate::support::test_vault::{START, TestVault, write_private};

/// Lives of each sort, if `HF_LIVES` does not say otherwise.
const LIVES: u64 = 4;
/// What happens in a life.
const STEPS: usize = 45;
/// More is not told of a life that went wrong.
const WRONG_MAX: usize = 25;

/// What must have been asked about in the lives of a test, or it shows nothing.
const ASKED: [&str; 10] = [
    "APPROVAL_OVERDUE DEC",
    "LEASE_EXPIRED RUN",
    "LEASE_EXPIRED T",
    "RUN_OVERTIME RUN",
    "SESSION_EXPIRED S",
    "holder Leave",
    "holder Lost",
    "holder Works",
    "session Leave",
    "session Works",
];

/// Lives a life to its end.
fn live(seed: u64, ticked: bool, careful: bool) -> Life {
    // Told with whatever makes the test fail.
    eprintln!("HF_LIFE={seed}, watchdog: {ticked}");
    let mut life = Life::new(seed, ticked, careful);
    for _ in 0..STEPS {
        life.step();
        if life.wrong.len() > WRONG_MAX {
            break;
        }
    }
    life.end();
    life
}

/// A number that may be given when the test is run.
#[expect(clippy::disallowed_methods, reason = "how long a test takes is for whoever runs it to say")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Lives many lives, each with and without a watchdog. Fails with the seeds of those that went wrong.
fn live_all(first: u64, careful: bool) {
    let seeds: Vec<u64> = match number("HF_LIFE") {
        Some(seed) => vec![seed],
        None => (first..first + number("HF_LIVES").unwrap_or(LIVES)).collect(),
    };
    let (mut failed, mut asked) = (String::new(), BTreeSet::new());
    for seed in &seeds {
        let both = [true, false].map(|ticked| (ticked, live(*seed, ticked, careful)));
        for (ticked, life) in &both {
            asked.extend(life.asked.iter().cloned());
            if !life.wrong.is_empty() {
                let _ = write!(failed, "\nHF_LIFE={seed}, watchdog: {ticked}\n{}\n", life.wrong.join("\n"));
            }
        }
        let [with, without] = both.map(|(_, life)| life.story);
        if let Some((a, b)) = with.iter().zip(&without).find(|(a, b)| a != b).filter(|_| careful) {
            let _ = write!(failed, "\nHF_LIFE={seed}: with a watchdog {a}\nand without {b}\n");
        }
    }
    assert!(failed.is_empty(), "{failed}");
    let unasked: Vec<&str> = ASKED.into_iter().filter(|what| !asked.contains(*what)).collect();
    assert!(seeds.len() == 1 || unasked.is_empty(), "nobody was asked about {unasked:?}");
}

#[test]
fn everyone_agrees_on_what_is_late_with_or_without_a_watchdog() {
    live_all(1, true);
}

#[test]
fn everyone_agrees_on_what_is_late_when_pauses_stop_the_clock() {
    live_all(1001, false);
}

/// Commands with their seconds; what they leave on the clock, and its last second in time.
type Story = (&'static [(i64, &'static str)], &'static str, &'static str, i64);

const STORIES: &[Story] = &[
    (&[(0, "claim T-0001 --lease 10m")], "LEASE_EXPIRED", "T-0001", 600),
    (&[(0, "claim T-0001 --lease 10m"), (600, "heartbeat T-0001")], "LEASE_EXPIRED", "T-0001", 1200),
    (&[(0, "claim T-0001 --lease 10m"), (600, "hf-checkpoint Here")], "LEASE_EXPIRED", "T-0001", 1200),
    (&[(0, "claim T-0001"), (60, "lease_seconds 3600")], "LEASE_EXPIRED", "T-0001", 900),
    (&[(0, "claim T-0001 --lease 10m"), (600, "start T-0001")], "LEASE_EXPIRED", "RUN-0001", 1200),
    (
        &[(0, "claim T-0001 --lease 10m"), (0, "start T-0001"), (5, "heartbeat T-0001")],
        "LEASE_EXPIRED",
        "RUN-0001",
        605,
    ),
    (
        &[(0, "claim T-0001 --lease 10m"), (0, "start T-0001"), (9, "hf-activity --kind introspection")],
        "LEASE_EXPIRED",
        "RUN-0001",
        609,
    ),
    (
        &[(0, "claim T-0001 --lease 10m"), (60, "start T-0001 --timeout 5m"), (300, "heartbeat T-0001")],
        "RUN_OVERTIME",
        "RUN-0001",
        360,
    ),
    // Strict deep work: a whole limit after its declared end, or after its completion.
    (&[(0, "claim T-0001 --lease 10m"), (60, "hf-deepwork start --strict 60 x")], "LEASE_EXPIRED", "T-0001", 4260),
    (
        &[(0, "claim T-0001 --lease 10m"), (60, "hf-deepwork start --strict 60 x"), (3660, "hf-deepwork extend 30")],
        "LEASE_EXPIRED",
        "T-0001",
        6060,
    ),
    (
        &[(0, "claim T-0001 --lease 10m"), (60, "hf-deepwork start --strict 60 x"), (1200, "hf-deepwork complete")],
        "LEASE_EXPIRED",
        "T-0001",
        1800,
    ),
    (&[(0, "hf-deepwork start --strict 60 x"), (60, "claim T-0001 --lease 10m")], "LEASE_EXPIRED", "T-0001", 4200),
    (
        &[(0, "claim T-0001 --lease 10m"), (60, "start T-0001"), (99, "hf-deepwork start --strict 1 x")],
        "LEASE_EXPIRED",
        "RUN-0001",
        759,
    ),
    (
        &[(0, "claim T-0001"), (60, "start T-0001 --timeout 5m"), (360, "hf-deepwork start --strict 60 x")],
        "RUN_OVERTIME",
        "RUN-0001",
        4260,
    ),
    // A flexible one keeps nothing.
    (&[(0, "claim T-0001 --lease 10m"), (60, "hf-deepwork start --flexible x")], "LEASE_EXPIRED", "T-0001", 600),
    // A pause: a whole limit after the resume. Questions and sessions go on.
    (
        &[(0, "claim T-0001 --lease 10m"), (600, "hf-pause x"), (5000, "hf-resume --project main")],
        "LEASE_EXPIRED",
        "T-0001",
        5600,
    ),
    (
        &[
            (0, "claim T-0001"),
            (0, "start T-0001 --timeout 5m"),
            (300, "hf-pause x"),
            (5000, "hf-resume --project main"),
        ],
        "RUN_OVERTIME",
        "RUN-0001",
        5300,
    ),
    (
        &[(0, "propose Drop --destructive"), (60, "hf-pause x"), (5000, "hf-resume --project main")],
        "APPROVAL_OVERDUE",
        "DEC-0001",
        86_400,
    ),
    (&[(0, "propose Drop --destructive"), (60, "hf-pause x")], "APPROVAL_OVERDUE", "DEC-0001", 86_400),
    (&[(0, "propose Drop --destructive"), (60, "approval_timeout_hours 1")], "APPROVAL_OVERDUE", "DEC-0001", 3600),
    (&[(60, "hf-session login --ttl 10m")], "SESSION_EXPIRED", "S-0001", 660),
    (
        &[(0, "hf-session login --ttl 10m"), (600, "hf-session renew --session S-0001 --ttl 5m")],
        "SESSION_EXPIRED",
        "S-0001",
        900,
    ),
    (&[(0, "hf-session login --ttl 1h"), (60, "hf-pause x")], "SESSION_EXPIRED", "S-0001", 360),
    (
        &[(0, "hf-session login --ttl 1h"), (60, "hf-pause x"), (90, "hf-resume --project main")],
        "SESSION_EXPIRED",
        "S-0001",
        360,
    ),
];

#[test]
fn every_limit_lasts_to_its_last_second_and_no_longer() {
    for (n, (lines, rule, name, last)) in STORIES.iter().enumerate() {
        let mut life = Life::bare(n as u64);
        life.tell("hf-task propose Form", Expect::Works);
        for (at, line) in *lines {
            life.go_to(second(START) + at);
            let task = |line: &str| format!("hf-task {line} --actor agent:a");
            match line.split_once(' ').expect("two words") {
                ("approval_timeout_hours", hours) => life.set(hours.parse().expect("a number"), 900),
                ("lease_seconds", seconds) => life.set(24, seconds.parse().expect("a number")),
                ("hf-session", login) if login.starts_with("login") => life.login(0, "main", &login[12..]),
                ("hf-pause" | "hf-resume", _) => drop(life.tell(line, Expect::Works)),
                (command, _) if command.starts_with("hf-") => {
                    drop(life.tell(&format!("{line} --agent a"), Expect::Works));
                }
                ("propose", _) => drop(life.tell(&format!("hf-task {line}"), Expect::Works)),
                _ => drop(life.tell(&task(line), Expect::Works)),
            }
        }
        for (at, is_late) in [(last - 1, false), (*last, false), (last + 1, true)] {
            life.go_to(second(START) + at);
            life.ask_everybody("main");
            let late = life.world().late(second(START) + at);
            let named =
                late.iter().any(|late| late.name == *name && late.rules.get(rule) == Some(&(second(START) + last)));
            assert_eq!(named, is_late, "the model itself, {lines:?} at {at}: {late:?}");
        }
        life.end();
        assert!(life.wrong.is_empty(), "{lines:?}\n{}", life.wrong.join("\n"));
    }
}

// --- What the audit finds in a log that no command would have written ------------------------------

/// An event to forge: its second, who says it, its type, what about, and its payload.
type Forged<'a> = (i64, &'a str, &'a str, &'a str, Value);

/// An id of this second; the first of it.
fn id_at(second: i64) -> String {
    let alphabet = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let bits = (second as u128 * 1000) << 80;
    (0..26).rev().map(|n| char::from(alphabet[(bits >> (5 * n)) as usize & 31])).collect()
}

/// Seals an event that comes after another one: canonical JSON, whose digest is taken without its own member.
fn sealed(prev_hash: &str, (second, actor, kind, subject, payload): &Forged<'_>) -> Value {
    let mut event = json!({
        "$schema": "event.v1.schema.json", "actor": actor, "event_id": id_at(*second), "event_type": kind,
        "parents": [], "payload": payload, "prev_hash": prev_hash, "subject": subject, "timestamp": time(*second),
        "version": 1,
    });
    let digest = Sha256::digest(event.to_string());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    event["hash"] = json!(format!("sha256:{hex}"));
    event
}

/// What `hf-verify --policy` finds wrong with an event that comes after what was recorded.
#[track_caller]
fn found_wrong_with(hive: &TestVault, forged: &Forged<'_>) -> Vec<String> {
    let copy = hive.copy();
    let lines = copy.lines();
    let last: Value = serde_json::from_str(lines.last().expect("a line")).expect("JSON");
    let event = sealed(last["hash"].as_str().expect("a hash"), forged);
    write_private(&copy.segment(), format!("{}\n{event}\n", lines.join("\n")).as_bytes());
    fs::remove_file(copy.head()).expect("a head record");
    let reply = copy.run("verify", &["--policy"]);
    assert_eq!(reply.get("CHAIN"), "OK", "{reply:#?}");
    let about = format!("event {}: ", id_at(forged.0));
    let found = reply.all("FINDING").into_iter().filter_map(|finding| finding.strip_prefix(&about));
    found.map(str::to_owned).collect()
}

/// Fails unless the audit takes offence at an event in this second, and in the other one does not.
#[track_caller]
fn is_wrong_at(hive: &TestVault, wrong: i64, right: i64, (actor, kind, subject, payload): (&str, &str, &str, Value)) {
    let [in_time, late] =
        [right, wrong].map(|at| found_wrong_with(hive, &(second(START) + at, actor, kind, subject, payload.clone())));
    // What should follow from it is missing in both.
    assert!(late.len() > in_time.len(), "{kind} at {wrong}: {late:#?}\nat {right}: {in_time:#?}");
}

/// The subject that an event of this type is about.
fn subject_of(hive: &TestVault, kind: &str) -> String {
    let event = hive.events().into_iter().find(|event| event["event_type"] == kind).expect("such an event");
    event["subject"].as_str().expect("a text").to_owned()
}

/// A time so many seconds after the begin.
fn after(seconds: i64) -> String {
    time(second(START) + seconds)
}

/// T-0001, held by agent:a for 15 minutes.
fn claimed() -> (TestVault, String) {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --lease 15m --actor agent:a");
    let task = subject_of(&hive, "TaskProposed");
    (hive, task)
}

#[test]
fn the_audit_finds_a_timeout_recorded_too_early() {
    let watchdog = "core:watchdog";
    let (hive, task) = claimed();
    is_wrong_at(&hive, 900, 901, (watchdog, "ClaimExpired", &task, json!({"due_at": after(900)})));
    ok(&hive, "hf-task start T-0001 --timeout 5m --actor agent:a");
    let run = subject_of(&hive, "RunStarted");
    is_wrong_at(&hive, 300, 301, (watchdog, "RunTimedOut", &run, json!({"due_at": after(300), "reason": "overtime"})));
    let hive = TestVault::new();
    ok(&hive, "hf-session login --agent a --ttl 10m");
    let session = subject_of(&hive, "SessionStarted");
    is_wrong_at(&hive, 600, 601, (watchdog, "SessionExpired", &session, json!({"due_at": after(600)})));
    let hive = governed("approval_timeout_hours: 1");
    ok(&hive, "hf-task propose Drop --destructive");
    let decision = subject_of(&hive, "DecisionRequested");
    is_wrong_at(&hive, 3600, 3601, (watchdog, "ApprovalTimedOut", &decision, json!({"due_at": after(3600)})));
}

#[test]
fn the_audit_finds_a_timeout_with_the_wrong_due_time() {
    let (hive, task) = claimed();
    let is_found = |due: i64| {
        let payload = json!({"due_at": after(due)});
        !found_wrong_with(&hive, &(second(START) + 2000, "core:watchdog", "ClaimExpired", &task, payload)).is_empty()
    };
    assert_eq!([60, 899, 900, 1999].map(is_found), [true, true, false, true]);
}

#[test]
fn the_audit_finds_work_on_an_expired_claim() {
    let (hive, task) = claimed();
    let id = task.trim_start_matches("task:").to_owned();
    is_wrong_at(&hive, 901, 900, ("agent:a", "ClaimRenewed", &task, json!({})));
    is_wrong_at(&hive, 901, 900, ("agent:a", "RunStarted", "run:r", json!({"task_id": id})));
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    let run = subject_of(&hive, "RunStarted");
    is_wrong_at(&hive, 901, 900, ("agent:a", "Heartbeat", &run, json!({})));
    is_wrong_at(&hive, 901, 900, ("agent:a", "TaskSucceeded", &task, json!({})));
    let failed = json!({"error_class": "transient", "reason": "x"});
    is_wrong_at(&hive, 901, 900, ("agent:a", "TaskFailed", &task, failed));
}

#[test]
fn strict_deep_work_and_pauses_are_followed_by_a_full_lease() {
    let (mut hive, task) = claimed();
    ok(&hive, "hf-deepwork start --strict 60 Deep --agent a");
    // Its declared end, since nobody completed it.
    is_wrong_at(&hive, 4501, 4500, ("agent:a", "ClaimRenewed", &task, json!({})));
    hive.at(&after(1200));
    ok(&hive, "hf-deepwork complete --agent a");
    is_wrong_at(&hive, 2101, 2100, ("agent:a", "ClaimRenewed", &task, json!({})));
    is_wrong_at(&hive, 2100, 2101, ("core:watchdog", "ClaimExpired", &task, json!({"due_at": after(2100)})));
    ok(&hive, "hf-pause look");
    hive.at(&after(9000));
    ok(&hive, "hf-resume");
    is_wrong_at(&hive, 9901, 9900, ("agent:a", "ClaimRenewed", &task, json!({})));
    is_wrong_at(&hive, 9900, 9901, ("core:watchdog", "ClaimExpired", &task, json!({"due_at": after(9900)})));
    hive.at(&after(9900));
    ok(&hive, "hf-task heartbeat T-0001 --actor agent:a");
    keeps_the_rules(&hive);
}

#[test]
fn the_audit_finds_a_session_renewed_after_its_end() {
    let hive = TestVault::new();
    ok(&hive, "hf-session login --agent a --ttl 10m");
    let session = subject_of(&hive, "SessionStarted");
    is_wrong_at(&hive, 601, 600, ("agent:a", "SessionRenewed", &session, json!({"ttl_seconds": 60})));
}

#[test]
fn nobody_can_append_a_timeout_by_hand() {
    let (mut hive, _) = claimed();
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    hive.at(&after(5));
    for actor in ["core:watchdog", "agent:b", "user:jo"] {
        hive.refuses("append", &["RunTimedOut", "--subject", "RUN-0001", "--actor", actor], 3);
    }
}

#[test]
fn later_deep_work_does_not_revive_an_expired_lease() {
    let declared = r#"{"agent_id":"a","heartbeat_id":"20260131120000","mode":"strict","activity":"x","minutes":60}"#;
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --lease 1m --actor agent:a");
    hive.at("2026-01-31T12:01:01Z");
    hive.run("append", &["DeepWorkStarted", "--actor", "agent:a", "--payload", declared]).expect_exit(0);
    assert_eq!(count(&hive, "ClaimExpired"), 1);
    // The same with a declaration that is there as a file.
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --lease 1m --actor agent:a");
    std::fs::create_dir_all(hive.vault().join("Agents/a/deep_work")).unwrap();
    let file = hive.vault().join("Agents/a/deep_work/20260131120101.txt");
    write_private(&file, b"type: strict\nactivity: x\nminutes: 60\n");
    hive.at("2026-01-31T12:01:01Z");
    let check = sh(&hive, "hf-watchdog --check").all("ANOMALY").len();
    assert_eq!(sh(&hive, "hf-watchdog").all("ANOMALY").len(), check);
    assert_eq!(count(&hive, "ClaimExpired"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn what_was_late_before_a_pause_stays_late_even_in_an_unnamed_project() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --lease 1m --actor agent:a");
    hive.at("2026-01-31T12:01:01Z");
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-resume");
    assert_eq!(sh(&hive, "hf-task start T-0001 --actor agent:a").get("STATUS"), "CLAIM_LOST");
    keeps_the_rules(&hive);
}

#[test]
fn the_earliest_of_two_deadlines_counts() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --lease 15m --actor agent:a");
    ok(&hive, "hf-task start T-0001 --timeout 60s --actor agent:a");
    hive.at("2026-01-31T12:15:01Z");
    assert_eq!(ok(&hive, "hf-verify --policy").get("DUE"), "1");
    sh(&hive, "hf-watchdog");
    let events = hive.events();
    let over = events.iter().find(|event| event["event_type"] == "RunTimedOut").unwrap();
    assert_eq!(over["payload"], json!({"reason": "overtime", "due_at": "2026-01-31T12:01:00Z"}));
    keeps_the_rules(&hive);
}

#[test]
fn deep_work_shortened_by_settings_is_due_for_everyone() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-deepwork start --strict 120 Long --agent a");
    let settings = b"agents:\n  a:\n    strict_max_minutes: 30\n";
    write_private(&hive.config(), settings);
    hive.at("2026-01-31T12:30:01Z");
    ok(&hive, "hf-require propose x");
    assert_eq!(ok(&hive, "hf-verify").get("DUE"), "1");
    assert_eq!(ok(&hive, "hf-deepwork status --agent a").get("SUM"), "no deep work in progress");
    assert!(ok(&hive, "hf-deepwork list --agent a").get("DEEP_WORK").contains("Expired"));
    keeps_the_rules(&hive);
}

#[test]
fn seconds_and_timestamps_convert_both_ways() {
    for (text, at) in [("1970-01-01T00:00:00Z", 0), ("2026-01-31T12:00:00Z", 1_769_860_800)] {
        assert_eq!((second(text), time(at).as_str()), (at, text));
    }
    for at in (1_700_000_000..1_900_000_000).step_by(86_399 * 7) {
        assert_eq!(second(&time(at)), at);
    }
}
