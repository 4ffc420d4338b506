//! hf-append with one event: what is recorded, with which cause, and what comes back.

use std::fs;
use std::thread;

use serde_json::{Value, json};

use crate::support::test_vault::TestVault;

const PROPOSED: &str = "EXIT:0\nSTATUS:APPENDED\nNEXT:NONE\nSUM:RequirementProposed requirement:<ulid>\n\
     EVENT_ID:<ulid>\nSUBJECT:requirement:<ulid>\nREF:REQ-0001@<tag>\nHASH:sha256:<digest>\nPREV_HASH:sha256:<digest>\n";

/// Appends and gives the event as it was recorded.
#[track_caller]
fn append(hive: &TestVault, args: &[&str]) -> Value {
    let reply = hive.run("append", args).expect_exit(0);
    let id = reply.all("EVENT_ID")[0];
    hive.events().into_iter().find(|event| event["event_id"] == id).expect("what was acknowledged is recorded")
}

#[test]
fn append_mints_an_id_and_reports_what_it_recorded() {
    let hive = TestVault::new();
    let reply = hive.propose("Login");
    assert_eq!(reply.masked(&hive), PROPOSED);
    assert_eq!(reply.stderr, "");
    let [first, event] = hive.events().try_into().unwrap();
    assert_eq!(event["event_id"], reply.get("EVENT_ID"));
    assert_eq!(event["subject"], reply.get("SUBJECT"));
    assert_eq!(event["hash"], reply.get("HASH"));
    assert_eq!(event["prev_hash"], first["hash"]);
    assert_eq!(first["hash"], reply.get("PREV_HASH"));
    assert_eq!(event["payload"], json!({"title": "Login"}));
    assert_eq!(event["actor"], "user:jo");
    assert_eq!(event["parents"], json!([]));
    assert_eq!(event["timestamp"], "2026-01-31T12:00:00Z");
    assert_eq!(event.get("batch"), None);
    assert_eq!(event.get("idempotency_key"), None);
    assert_eq!(reply.get("REF")[9..], event["hash"].as_str().unwrap()[7..11]);
}

#[test]
fn append_accepts_an_id_chosen_by_the_caller() {
    let hive = TestVault::new();
    let longest = format!("requirement:{}", "a".repeat(64));
    for subject in ["requirement:login", &longest] {
        let event = append(&hive, &["RequirementProposed", "--subject", subject, "--payload", r#"{"title":"x"}"#]);
        assert_eq!(event["subject"], subject);
    }
}

#[test]
fn append_reads_the_payload_from_a_file_or_from_standard_input() {
    let hive = TestVault::new();
    let payload = "{\"title\": \"Login\",\n \"n\": 1.0}\n";
    fs::write(hive.dir().join("payload.json"), payload).unwrap();
    let reply = hive.run("append", &["RequirementProposed", "--payload-file", "payload.json"]).expect_exit(0);
    assert_eq!(reply.masked(&hive), PROPOSED);
    let reply = hive.pipe("append", &["RequirementProposed", "-"], payload).expect_exit(0);
    assert_eq!(reply.masked(&hive), PROPOSED.replace("REQ-0001", "REQ-0002"));
    for event in &hive.events()[1..] {
        assert_eq!(event["payload"], json!({"title": "Login", "n": 1}));
    }
}

#[test]
fn append_finds_its_subject_by_id_reference_and_prefix() {
    let mut hive = TestVault::new();
    for (n, day) in ["2026-02-01", "2026-02-02", "2026-02-03", "2026-02-04", "2026-02-05"].iter().enumerate() {
        let made = hive.at(&format!("{day}T12:00:00Z")).propose("x");
        let subject = made.get("SUBJECT");
        let id = subject.strip_prefix("requirement:").unwrap();
        // The first ten characters are the time, which only this one has.
        let words = [subject, id, &made.get("REF").to_lowercase(), &id[..10], &id[..10].to_lowercase()];
        let event = append(&hive, &["RequirementAnalyzed", "--subject", words[n]]);
        assert_eq!(event["subject"], subject);
        assert_eq!(event["parents"], json!([made.get("EVENT_ID")]));
    }
}

#[test]
fn append_refuses_an_ambiguous_prefix() {
    let hive = TestVault::new();
    let id = hive.propose("x").get("SUBJECT")["requirement:".len()..].to_owned();
    hive.propose("y");
    let reply = hive.refuses("append", &["RequirementAnalyzed", "--subject", &id[..10]], 6);
    assert!(
        reply.get("SUM").starts_with(&format!("'{}' is ambiguous; it matches requirement:{id}, ", &id[..10])),
        "{reply:#?}"
    );
    let parent = ["RequirementProposed", "--payload", r#"{"title":"z"}"#, "--parent", &id[..4]];
    assert_eq!(
        hive.refuses("append", &parent, 6).get("SUM"),
        format!("ambiguous parent '{}': several event ids start with it", &id[..4])
    );
}

#[test]
fn append_accepts_parents_by_id_prefix_and_reference() {
    let mut hive = TestVault::new();
    // Another day, so that the first ten characters, the time, tell the events apart.
    let made = hive.at("2026-02-01T12:00:00Z").propose("x");
    let id = made.get("EVENT_ID");
    let tagged = made.get("REF");
    for parent in [id, &id[..10], &id[..10].to_lowercase(), "REQ-0001", "req-0001", tagged, made.get("SUBJECT")] {
        hive.at("2026-02-02T12:00:00Z");
        let event = append(&hive, &["RequirementProposed", "--payload", r#"{"title":"y"}"#, "--parent", parent]);
        assert_eq!(event["parents"], json!([id]), "{parent}");
    }
    let first = hive.events()[0]["event_id"].as_str().unwrap().to_owned();
    let both = ["RequirementProposed", "--payload", r#"{"title":"z"}"#, "--parent", &first, "--parent", id];
    assert_eq!(append(&hive, &both)["parents"], json!([first, id]));
}

#[test]
fn append_links_an_event_to_its_natural_cause() {
    let hive = TestVault::new();
    let step =
        |kind: &str, subject: &str, payload: &str| append(&hive, &[kind, "--subject", subject, "--payload", payload]);
    let first = hive.events()[0]["event_id"].clone();
    let requirement = step("RequirementProposed", "requirement:r", r#"{"title":"x"}"#);
    assert_eq!(requirement["parents"], json!([]));
    let task = step("TaskProposed", "task:t", r#"{"title":"x","requirement_id":"r"}"#);
    assert_eq!(task["parents"], json!([requirement["event_id"]]));
    let asks = r#"{"kind":"requirement_approval","target":"requirement:r","summary":"?"}"#;
    let decision = step("DecisionRequested", "decision:d", asks);
    assert_eq!(decision["parents"], json!([requirement["event_id"]]));
    let analyzed = step("RequirementAnalyzed", "requirement:r", "{}");
    assert_eq!(analyzed["parents"], json!([requirement["event_id"]]));
    let [.., superseded, asked] = <[Value; 7]>::try_from(hive.events()).unwrap();
    let approved = step("DecisionApproved", asked["subject"].as_str().unwrap(), "{}");
    assert_eq!(approved["parents"], json!([asked["event_id"]]));
    // What follows by itself has what it follows from as its cause, after the last change of what it is about.
    let [.., allowed, ready] = <[Value; 10]>::try_from(hive.events()).unwrap();
    for (event, kind, causes) in [
        (&superseded, "DecisionSuperseded", &[&decision, &analyzed][..]),
        (&asked, "DecisionRequested", &[&analyzed]),
        (&allowed, "RequirementApproved", &[&analyzed, &approved]),
        (&ready, "TaskReady", &[&task, &allowed]),
    ] {
        assert_eq!((&event["event_type"], &event["actor"]), (&json!(kind), &json!("core:reactor")));
        let causes: Vec<&Value> = causes.iter().map(|cause| &cause["event_id"]).collect();
        assert_eq!(event["parents"], json!(causes), "{kind}");
    }
    let assigned = step("TaskAssigned", "task:t", "{}");
    assert_eq!(assigned["parents"], json!([ready["event_id"]]));
    let run = step("RunStarted", "run:u", r#"{"task_id":"t"}"#);
    assert_eq!(run["parents"], json!([assigned["event_id"]]));
    let done = step("TaskSucceeded", "task:t", "{}");
    assert_eq!(done["parents"], json!([run["event_id"]]));
    let alone = step("TaskProposed", "task:alone", r#"{"title":"x"}"#);
    assert_eq!(alone["parents"], json!([first]));
}

#[test]
fn append_announces_an_agent_before_its_first_event() {
    let hive = TestVault::new();
    let mut command = hive.command("append");
    command.env("HF_AGENT", "worker").args(["TaskProposed", "--payload", r#"{"title":"x"}"#]);
    let reply = crate::support::test_vault::Reply::of(command.output().unwrap()).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:APPENDED\nNEXT:NONE\nSUM:TaskProposed task:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nSUBJECT:task:<ulid>\nREF:T-0001@<tag>\nHASH:sha256:<digest>\nPREV_HASH:sha256:<digest>\n"
    );
    let [first, started, task, ready] = hive.events().try_into().unwrap();
    // What was asked for comes first, then what belongs to it.
    assert_eq!(json!(reply.all("EVENT_ID")), json!([task["event_id"], started["event_id"], ready["event_id"]]));
    assert_eq!((&started["event_type"], &started["subject"]), (&json!("AgentStarted"), &json!("agent:worker")));
    assert_eq!(started["parents"], json!([first["event_id"]]));
    assert_eq!(task["parents"], json!([started["event_id"]]));
    assert_eq!(task["actor"], "agent:worker");
    assert_eq!((&ready["event_type"], &ready["parents"]), (&json!("TaskReady"), &json!([task["event_id"]])));
    let again = crate::support::test_vault::Reply::of(command.output().unwrap()).expect_exit(0);
    let kinds: Vec<Value> = hive.events()[4..].iter().map(|event| event["event_type"].clone()).collect();
    assert_eq!((again.all("EVENT_ID").len(), json!(kinds)), (2, json!(["TaskProposed", "TaskReady"])));
}

#[test]
fn append_records_the_named_actor() {
    let hive = TestVault::new();
    for actor in ["external:github", "user:jo.doe@example"] {
        let event = append(&hive, &["RequirementProposed", "--payload", r#"{"title":"x"}"#, "--actor", actor]);
        assert_eq!(event["actor"], actor);
    }
    let reply = hive.refuses("append", &["RequirementProposed", "--payload", r#"{"title":"x"}"#, "--actor", "jo"], 2);
    assert!(reply.get("SUM").starts_with("invalid actor 'jo'"));
}

#[test]
fn repeating_a_key_is_a_duplicate_with_the_first_reply() {
    let hive = TestVault::new();
    let args = ["RequirementProposed", "--payload", r#"{"title":"x"}"#, "--key", "k:1"];
    let first = hive.run("append", &args).expect_exit(0);
    assert_eq!(first.masked(&hive), format!("{PROPOSED}KEY:k:1\n"));
    hive.propose("another");
    let before = hive.contents();
    let again = hive.run("append", &args).expect_exit(0);
    assert_eq!(again.stdout, first.stdout.replace("APPENDED", "DUPLICATE"));
    assert!(hive.contents() == before);
}

#[test]
fn reusing_a_key_for_something_else_is_a_conflict() {
    let hive = TestVault::new();
    let first = hive.run("append", &["RequirementProposed", "--payload", r#"{"title":"x"}"#, "--key", "k"]);
    for args in [
        ["RequirementProposed", "--payload", r#"{"title":"y"}"#, "--key", "k"],
        ["TaskProposed", "--payload", r#"{"title":"x"}"#, "--key", "k"],
    ] {
        let reply = hive.refuses("append", &args, 3);
        assert_eq!(
            reply.stdout,
            format!(
                "EXIT:3\nSTATUS:REFUSED\nNEXT:NONE\nSUM:the key 'k' was already used by event {}, for a different request\n\
                 REASON:key_conflict\n",
                first.get("EVENT_ID")
            )
        );
    }
}

#[test]
fn an_events_own_id_is_its_key() {
    let hive = TestVault::new();
    let first = hive.propose("x");
    hive.propose("y");
    let before = hive.contents();
    let args = ["RequirementProposed", "--payload", r#"{"title":"x"}"#, "--key", first.get("EVENT_ID")];
    let again = hive.run("append", &args).expect_exit(0);
    assert_eq!(again.stdout, first.stdout.replace("APPENDED", "DUPLICATE"));
    assert!(hive.contents() == before);
    let other = ["RequirementProposed", "--payload", r#"{"title":"y"}"#, "--key", first.get("EVENT_ID")];
    assert_eq!(hive.refuses("append", &other, 3).get("REASON"), "key_conflict");
}

#[test]
fn a_dry_run_changes_nothing() {
    let hive = TestVault::new();
    let before = hive.contents();
    let reply =
        hive.run("append", &["RequirementProposed", "--payload", r#"{"title":"x"}"#, "--dry-run"]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:VALID\nNEXT:NONE\nSUM:RequirementProposed requirement:<ulid>\nSUBJECT:requirement:<ulid>\n"
    );
    assert!(hive.contents() == before);
    hive.refuses("append", &["RequirementProposed", "-n"], 2);
    hive.refuses("append", &["RequirementAnalyzed", "-n", "--subject", "REQ-0001"], 6);
}

#[test]
fn sixteen_concurrent_appenders_lose_and_repeat_nothing() {
    let hive = TestVault::new();
    let acknowledged: Vec<String> = thread::scope(|scope| {
        let workers: Vec<_> = (0..16)
            .map(|worker| {
                let hive = &hive;
                scope.spawn(move || {
                    (0..4)
                        .map(|n| hive.propose(&format!("{worker}-{n}")).get("EVENT_ID").to_owned())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let events = hive.events();
    assert_eq!(events.len(), 1 + 16 * 4);
    for id in &acknowledged {
        assert_eq!(events.iter().filter(|event| event["event_id"] == *id).count(), 1);
    }
    let mut titles: Vec<_> = events[1..].iter().map(|event| event["payload"]["title"].to_string()).collect();
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), 16 * 4);
    assert_eq!(hive.run("verify", &[]).expect_exit(0).get("EVENTS"), "65");
}

#[test]
fn ids_and_segments_keep_increasing_when_the_clock_goes_back_a_day() {
    let mut hive = TestVault::new();
    hive.propose("x");
    hive.at("2026-01-30T12:00:00Z").propose("y");
    let events = hive.events();
    let kinds: Vec<_> = events.iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["VaultInitialized", "RequirementProposed", "ClockStepped", "RequirementProposed"]);
    assert_eq!(hive.lines().len(), 4);
    assert!(events.is_sorted_by_key(|event| event["event_id"].as_str().unwrap().to_owned()));
    assert_eq!(events[3]["timestamp"], "2026-01-30T12:00:00Z");
    hive.run("verify", &[]).expect_exit(0);
}

#[test]
fn a_new_day_starts_a_segment_in_its_months_folder() {
    let mut hive = TestVault::new();
    hive.at("2026-02-01T00:00:00Z").propose("x");
    let path = hive.vault().join("Akashic/events/2026-02/2026-02-01.jsonl");
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1);
    assert_eq!(hive.lines().len(), 1);
    // The clock goes back; the log does not.
    hive.at("2026-01-31T23:59:59Z").propose("y");
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    assert_eq!(hive.run("verify", &[]).expect_exit(0).get("EVENTS"), "3");
    assert_eq!(hive.run("log", &[]).expect_exit(0).all("EVENT").len(), 3);
}

#[test]
fn a_full_segment_is_followed_by_another() {
    let hive = TestVault::new();
    hive.configure("logging:\n  events_max_file_size_mb: 1\n");
    let payload = json!({"title": "x".repeat(400_000)}).to_string();
    for _ in 0..5 {
        hive.pipe("append", &["RequirementProposed", "-"], payload.as_str()).expect_exit(0);
    }
    let folder = hive.vault().join("Akashic/events/2026-01");
    let lines = |name: &str| fs::read_to_string(folder.join(name)).unwrap().lines().count();
    assert_eq!(["2026-01-31.jsonl", "2026-01-31_001.jsonl", "2026-01-31_002.jsonl"].map(lines), [4, 2, 1]);
    // The settings are on the record, too.
    assert_eq!(hive.run("verify", &[]).expect_exit(0).get("EVENTS"), "7");
    assert_eq!(hive.run("log", &[]).expect_exit(0).all("EVENT").len(), 7);
}

#[test]
fn a_large_payload_is_recorded_with_a_warning() {
    let hive = TestVault::new();
    let payload = json!({"title": "x".repeat(65 * 1024)}).to_string();
    let reply = hive.pipe("append", &["RequirementProposed", "-"], payload).expect_exit(0);
    assert_eq!(reply.masked(&hive), PROPOSED);
    assert_eq!(
        reply.stderr,
        "warning: large payload: 66572 bytes; store the content with hf-artifact and refer to it\n"
    );
}

#[test]
fn an_unknown_setting_is_a_warning() {
    let hive = TestVault::new();
    hive.configure("governance:\n  max_retires: 8\n");
    let reply = hive.propose("x");
    assert_eq!(
        reply.stderr,
        "warning: hiveforge.config.yaml: unknown setting governance.max_retires; did you mean governance.max_retries?\n"
    );
}

#[test]
fn an_agent_that_starts_another_is_announced_too() {
    let hive = TestVault::new();
    hive.run("append", &["AgentStarted", "--subject", "agent:y", "--actor", "agent:x"]).expect_exit(0);
    let subjects: Vec<_> = hive.events().iter().map(|e| e["subject"].as_str().unwrap().to_owned()).collect();
    assert_eq!(subjects, ["system", "agent:x", "agent:y"]);
    hive.run("append", &["AgentStarted", "--actor", "agent:z"]).expect_exit(0);
    assert_eq!(hive.events().len(), 4);
}
