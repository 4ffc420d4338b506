//! The two ways of verifying agree: on good logs, damaged logs, and logs that are not canonical.
//!
//! `HF_CASES=1000000 cargo test --release --test e2e verification_methods` runs the long form.

use std::fs;
use std::num::NonZero;

use hiveforge::base::{Actor, Digest, Subject, Timestamp, Ulid};
use hiveforge::chain::strict::{self, ChainLink};
use hiveforge::chain::{Head, check_line};
use hiveforge::event::{BatchPosition, Draft, Event, Kind};
use hiveforge::vault::{Method, Scope, Vault};
use serde_json::{Value, json};

use crate::support::test_vault::{Random, TestVault, write_private};

/// How many lines are tried.
#[expect(clippy::disallowed_methods, reason = "a test may be told how long to run")]
fn cases() -> u64 {
    std::env::var("HF_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(8_000)
}

const TEXTS: &[&str] = &[
    "",
    "a",
    "hash",
    "payload",
    "é",
    "内省",
    "\u{1f600}",
    "\u{e000}",
    "\u{fb33}",
    "\u{ffff}",
    "\u{d7ff}",
    "\n",
    "\u{8}",
    "\u{b}",
    "\u{1f}",
    "\u{7f}",
    "\"",
    "\\",
    "/",
    "\u{2028}",
    "a\u{1f600}b",
    "x\"y\\z",
    "$",
    "~",
    "0",
];

/// A random JSON value, odd ones included.
fn value(random: &mut Random, depth: u64) -> Value {
    let text = |random: &mut Random| TEXTS[random.below(TEXTS.len() as u64) as usize].to_owned();
    match random.below(if depth > 3 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(random.below(2) == 1),
        2 => json!(random.below(1 << 53) as i64 - (1 << 52)),
        3 => {
            let float = f64::from_bits(random.next());
            if float.is_finite() { json!(float) } else { json!(0.5) }
        }
        4 => json!([0.1, 1e21, 5e-324, -1.5, 1e-7, 123456789012345680.0][random.below(6) as usize]),
        5 => json!(text(random)),
        6 => (0..random.below(4)).map(|_| value(random, depth + 1)).collect(),
        _ => Value::Object((0..random.below(5)).map(|_| (text(random), value(random, depth + 1))).collect()),
    }
}

fn event(random: &mut Random, n: u64) -> Event {
    let payload = match value(random, 0) {
        Value::Object(map) => map,
        other => json!({"hash": other}).as_object().unwrap().clone(),
    };
    let draft = Draft {
        kind: Kind::ALL[random.below(Kind::ALL.len() as u64) as usize],
        subject: Subject::SYSTEM,
        actor: Actor::parse("user:jo").unwrap(),
        parents: (0..random.below(3)).map(|p| Ulid::from_parts(1, p.into())).collect(),
        key: (random.below(2) == 1).then(|| format!("k{}", TEXTS[random.below(TEXTS.len() as u64) as usize])),
        payload,
    };
    Event::from_draft(draft, Ulid::from_parts(1000 + n, random.next().into()), Timestamp(random.below(1 << 32) as i64))
}

/// Changes a line in one of the ways that a program or a disk might.
fn damage(random: &mut Random, line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    let at = random.below(line.len() as u64) as usize;
    let text = String::from_utf8_lossy(&line).into_owned();
    match random.below(9) {
        0 => line[at] ^= 1 << random.below(8),
        1 => line.insert(at, random.next() as u8),
        2 => drop(line.remove(at)),
        3 => line.truncate(at),
        4 => line = text.replacen(':', ": ", 1).into_bytes(),
        5 => line = text.replacen("\"hash\"", "\"hash\":\"sha256:0\",\"hash\"", 1).into_bytes(),
        6 => line = text.replacen("\"payload\":{", "\"payload\":{\"\":0,", 1).into_bytes(),
        7 => line = text.replacen("\"version\":1", "\"version\":1.0", 1).into_bytes(),
        _ => line = resealed(random, &text),
    }
    line
}

/// Not canonical, but with a hash that fits its own bytes: only a check of the form can see it.
fn resealed(random: &mut Random, text: &str) -> Vec<u8> {
    let changed = match random.below(6) {
        0 => text.replacen("\"parents\":[", "\"parents\":[ ", 1),
        1 => text.replacen("\"actor\":\"user:jo\"", "\"actor\":\"user:j\\u006f\"", 1),
        2 => text.replacen("\"subject\":\"system\"", "\"subject\":\"system\",\"subject\":\"system\"", 1),
        3 => text.replacen("\"version\":1", "\"version\":1e0", 1),
        4 => text.replacen("\"payload\":{", "\"payload\":{\"zz\":1,\"a\":2,", 1),
        _ => text.replacen("\"payload\":{", "\"payload\":{\"\":-0,", 1),
    };
    let Some(begin) = changed.find("\"hash\":\"sha256:") else { return changed.into_bytes() };
    let end = begin + "\"hash\":\"sha256:".len() + 64 + 2;
    let Some(after) = changed.get(end..) else { return changed.into_bytes() };
    let hash = Digest::of_parts(&[&changed.as_bytes()[..begin], after.as_bytes()]);
    format!("{}\"hash\":\"{hash}\",{after}", &changed[..begin]).into_bytes()
}

#[test]
fn strict_and_reference_agree() {
    let mut random = Random::new(0x5eed);
    let (mut fast, mut good) = (0, 0);
    for n in 0..cases() {
        let mut event = event(&mut random, n);
        let batch = (random.below(4) == 0).then_some(BatchPosition { no: 1, of: 2 });
        let sealed = event.seal(Digest::of_bytes(&n.to_le_bytes()), batch);
        let line = if random.below(2) == 0 { sealed } else { damage(&mut random, &sealed) };
        let reference = check_line(&line).ok().map(|event| ChainLink::from_event(&event));
        if let Some(strict) = strict::check(&line) {
            fast += 1;
            assert_eq!(Some(strict), reference, "case {n}: {}", String::from_utf8_lossy(&line));
        }
        good += u64::from(reference.is_some());
    }
    // Both ways are taken often enough for the comparison to mean something.
    assert!(fast * 20 > cases() && good > fast, "{fast} fast and {good} good of {}", cases());
}

/// A log of several units, sealed by the library. Some are wrong in what only a look at the line
/// before can see, with every hash and link right: an id that goes back, a batch out of step.
fn log(random: &mut Random) -> Vec<Vec<u8>> {
    let (mut lines, mut prev, mut n) = (Vec::new(), Digest::ZERO, 0);
    for _ in 0..1 + random.below(12) {
        let of = 1 + random.below(3);
        for no in 1..=of {
            let goes_back = random.below(40) == 0;
            let mut event = event(random, if goes_back { 0 } else { n + 1 });
            let batch = match random.below(40) {
                0 => None,
                1 => Some(BatchPosition { no: 1 + random.below(of), of }),
                _ => (of > 1).then_some(BatchPosition { no, of }),
            };
            lines.push(event.seal(prev, batch));
            (prev, n) = (event.hash, n + 1);
        }
    }
    lines
}

#[test]
fn fast_and_reference_verification_agree_on_whole_logs() {
    let hive = TestVault::new();
    fs::remove_file(hive.head()).unwrap();
    let mut random = Random::new(0xa9ee);
    let mut broken = 0;
    for n in 0..cases() / 20 {
        let mut lines = log(&mut random);
        let at = random.below(lines.len() as u64) as usize;
        match random.below(6) {
            0 => lines[at] = damage(&mut random, &lines[at]),
            1 => drop(lines.remove(at)),
            2 => lines.insert(at, lines[at].clone()),
            3 => lines.swap(0, at),
            _ => {}
        }
        let mut bytes = lines.join(&b'\n');
        bytes.extend((random.below(8) > 0).then_some(b'\n'));
        write_private(&hive.segment(), &bytes);
        let anchors: Vec<Head> =
            lines.iter().filter_map(|line| check_line(line).ok()).map(|event| Head::at(&event)).take(2).collect();
        let with = |method| {
            let vault = Vault::open(&hive.vault()).unwrap();
            let verified = vault.verify(Scope { method, anchors: &anchors, since: None }, &mut |_, _| {}).unwrap();
            format!("{verified:?}")
        };
        let reference = with(Method::Reference);
        broken += u64::from(reference.contains("Broken"));
        for jobs in [1, 3] {
            assert_eq!(with(Method::Fast { jobs: NonZero::new(jobs) }), reference, "case {n}");
        }
    }
    assert!(broken > 0 && broken < cases() / 20);
}

#[test]
fn pieces_are_linked_across_their_edges() {
    // More than one piece of two megabytes, so that edges fall between threads.
    let hive = TestVault::new();
    let title = "x".repeat(60_000);
    let lines: String = (0..100)
        .map(|n| {
            format!("{}\n", json!({"event_type": "RequirementProposed", "payload": {"title": format!("{n}{title}")}}))
        })
        .collect();
    hive.pipe("append", &["--stream"], lines).expect_exit(0);
    let verify = |jobs: &str| hive.run("verify", &["--jobs", jobs]);
    assert_eq!(verify("4").expect_exit(0).get("EVENTS"), "101");
    let good = fs::read(hive.segment()).unwrap();
    assert!(good.len() > 5_000_000);
    // Leave a line out in the middle: every line is good by itself, only the links are not.
    let mut lines: Vec<&[u8]> = good.split_inclusive(|&b| b == b'\n').collect();
    for missing in [30, 35, 50, 70, 99] {
        let kept = lines.remove(missing);
        write_private(&hive.segment(), &lines.concat());
        assert_eq!(verify("4").expect_exit(1).get("CHAIN"), "BROKEN", "line {missing}");
        lines.insert(missing, kept);
    }
}
