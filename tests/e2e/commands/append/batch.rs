//! hf-append with many events: --batch is all or none, --stream commits as it goes.

use serde_json::{Value, json};

use crate::support::test_vault::{TestVault, jsonl};

/// A requirement, a task that waits for it, and the task given up. Nothing follows from them by itself.
fn story() -> [Value; 3] {
    [
        json!({"event_type": "RequirementProposed", "subject": "requirement:r", "payload": {"title": "x"}}),
        json!({"event_type": "TaskProposed", "subject": "task:t", "payload": {"title": "y", "requirement_id": "r"}}),
        json!({"event_type": "TaskAborted", "subject": "task:t"}),
    ]
}

/// A task that is ready at once, because it waits for nothing, and a requirement that an operator is asked about.
fn story_with_consequences() -> [Value; 3] {
    [
        json!({"event_type": "TaskProposed", "subject": "task:t", "payload": {"title": "y"}}),
        json!({"event_type": "RequirementProposed", "subject": "requirement:r", "payload": {"title": "x"}}),
        json!({"event_type": "RequirementAnalyzed", "subject": "requirement:r"}),
    ]
}

/// Requirements of the given numbers, each with a key of its own.
fn keyed(numbers: std::ops::Range<usize>) -> Vec<Value> {
    let line = |n: usize| json!({"event_type": "RequirementProposed", "payload": {"title": n.to_string()}, "idempotency_key": format!("k{n}")});
    numbers.map(line).collect()
}

#[test]
fn a_batch_is_recorded_atomically_and_reports_every_id() {
    let hive = TestVault::new();
    let reply = hive.pipe("append", &["--batch"], jsonl(&story())).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:APPENDED\nNEXT:NONE\nSUM:3 events, last: TaskAborted task:t\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nSUBJECT:task:t\nREF:T-0001@<tag>\nHASH:sha256:<digest>\nPREV_HASH:sha256:<digest>\n"
    );
    let events = hive.events();
    let ids: Vec<&str> = events[1..].iter().map(|event| event["event_id"].as_str().unwrap()).collect();
    assert_eq!(reply.all("EVENT_ID"), ids);
    for (no, event) in events.iter().enumerate().skip(1) {
        assert_eq!(event["batch"], json!({"no": no, "of": 3}));
        assert_eq!(event["prev_hash"], events[no - 1]["hash"]);
    }
    assert_eq!(events[2]["parents"], json!([ids[0]]));
    assert_eq!(events[3]["parents"], json!([ids[1]]));
    assert_eq!(reply.get("HASH"), events[3]["hash"]);
    assert_eq!(reply.get("PREV_HASH"), events[0]["hash"]);
    assert_eq!(reply.get("REF")[7..], events[2]["hash"].as_str().unwrap()[7..11]);
    hive.run("verify", &[]).expect_exit(0);
}

#[test]
fn a_batch_of_one_is_a_single_event() {
    let hive = TestVault::new();
    hive.pipe("append", &["--batch"], jsonl(&story()[..1])).expect_exit(0);
    assert_eq!(hive.events()[1].get("batch"), None);
}

#[test]
fn the_last_line_of_a_batch_needs_no_newline() {
    let hive = TestVault::new();
    hive.pipe("append", &["--batch"], jsonl(&story()).trim_end().to_owned()).expect_exit(0);
    assert_eq!(hive.events().len(), 4);
}

#[test]
fn one_bad_line_rejects_the_whole_batch_and_is_named() {
    let hive = TestVault::new();
    let [requirement, task, given_up] = story();
    let ready = json!({"event_type": "TaskReady", "subject": "task:t"});
    let missing = json!({"event_type": "TaskReady", "subject": "task:nobody"});
    for (lines, code, sum) in [
        (vec![&requirement, &missing], 6, "line 2: 'task:nobody' not found"),
        (vec![&task], 6, "line 1: the payload names requirement:r, which does not exist"),
        (
            vec![&requirement, &task, &given_up, &ready],
            3,
            "line 4: T-0001 is Aborted, which does not allow TaskReady; allowed: TaskArchived",
        ),
    ] {
        let lines: Vec<Value> = lines.into_iter().cloned().collect();
        let reply = hive.refuses_input("append", &["--batch"], jsonl(&lines), code);
        assert_eq!(reply.get("SUM"), sum);
    }
    let reply = hive.refuses_input("append", &["--batch"], jsonl(&story()) + "{\n", 2);
    assert!(reply.get("SUM").starts_with("line 4: invalid JSON"), "{reply:#?}");
}

#[test]
fn repeating_a_batch_is_a_duplicate_with_every_id_of_the_first() {
    let hive = TestVault::new();
    let args = ["--batch", "--key", "import-7"];
    let first = hive.pipe("append", &args, jsonl(&story())).expect_exit(0);
    assert_eq!(first.all("EVENT_ID").len(), 3);
    assert_eq!(hive.events()[1]["idempotency_key"], "import-7");
    hive.propose("another");
    let before = hive.contents();
    let again = hive.pipe("append", &args, jsonl(&story())).expect_exit(0);
    assert_eq!(again.stdout, first.stdout.replace("APPENDED", "DUPLICATE"));
    assert!(hive.contents() == before);
    // Less, more or something else under the same key is not the same batch.
    let [requirement, task, given_up] = story();
    let retitled =
        json!({"event_type": "TaskProposed", "subject": "task:t", "payload": {"title": "z", "requirement_id": "r"}});
    for lines in [vec![requirement.clone(), task], vec![requirement, retitled, given_up]] {
        let reply = hive.refuses_input("append", &args, jsonl(&lines), 3);
        assert_eq!(reply.get("REASON"), "key_conflict");
    }
}

#[test]
fn a_batch_is_recorded_with_its_consequences_and_lists_them_last() {
    let hive = TestVault::new();
    let args = ["--batch", "--key", "k"];
    let first = hive.pipe("append", &args, jsonl(&story_with_consequences())).expect_exit(0);
    assert_eq!(first.get("SUM"), "3 events, last: RequirementAnalyzed requirement:r");
    let events = hive.events();
    let kinds: Vec<&str> = events[1..].iter().map(|event| event["event_type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["TaskProposed", "TaskReady", "RequirementProposed", "RequirementAnalyzed", "DecisionRequested"]);
    let places: Vec<Value> = events[1..].iter().map(|event| event["batch"].clone()).collect();
    assert_eq!(places, (1..=5).map(|no| json!({"no": no, "of": 5})).collect::<Vec<_>>());
    let ids: Vec<&str> = [1, 3, 4, 2, 5].iter().map(|&n: &usize| events[n]["event_id"].as_str().unwrap()).collect();
    assert_eq!(first.all("EVENT_ID"), ids);
    assert_eq!(
        (first.get("HASH"), first.get("PREV_HASH")),
        (events[4]["hash"].as_str().unwrap(), events[0]["hash"].as_str().unwrap())
    );
    let again = hive.pipe("append", &args, jsonl(&story_with_consequences())).expect_exit(0);
    assert_eq!(again.stdout, first.stdout.replace("APPENDED", "DUPLICATE"));
    assert_eq!(hive.run("verify", &["--policy"]).expect_exit(0).get("EVENTS"), "6");
}

#[test]
fn repeating_an_agents_batch_returns_its_announcement_too() {
    let hive = TestVault::new();
    let args = ["--batch", "--key", "k", "--actor", "agent:worker"];
    let first = hive.pipe("append", &args, jsonl(&story())).expect_exit(0);
    assert_eq!(first.all("EVENT_ID").len(), 4);
    assert_eq!(hive.events()[1]["event_type"], "AgentStarted");
    let again = hive.pipe("append", &args, jsonl(&story())).expect_exit(0);
    assert_eq!(again.stdout, first.stdout.replace("APPENDED", "DUPLICATE"));
}

#[test]
fn a_batch_has_one_key_for_its_first_line() {
    let hive = TestVault::new();
    let reply = hive.refuses_input("append", &["--batch", "--key", "k"], jsonl(&keyed(0..2)), 2);
    assert_eq!(reply.get("SUM"), "--key conflicts with idempotency_key of the first line; use only one");
}

#[test]
fn a_repeated_key_within_a_batch_is_a_conflict() {
    let hive = TestVault::new();
    let [line] = keyed(0..1).try_into().unwrap();
    let reply = hive.refuses_input("append", &["--batch"], jsonl(&[line.clone(), line]), 3);
    assert_eq!(reply.get("REASON"), "key_conflict");
    assert_eq!(reply.get("SUM"), "line 2: duplicate key 'k0' in this batch");
}

#[test]
fn a_partly_recorded_batch_is_a_conflict() {
    let hive = TestVault::new();
    hive.pipe("append", &["--batch"], jsonl(&keyed(0..2))).expect_exit(0);
    for numbers in [0..3, 1..3] {
        let reply = hive.refuses_input("append", &["--batch"], jsonl(&keyed(numbers)), 3);
        assert_eq!(reply.get("REASON"), "key_conflict");
        assert!(reply.get("SUM").ends_with("but the batch differs from the recorded one"), "{reply:#?}");
    }
}

#[test]
fn a_dry_run_of_a_batch_or_a_stream_changes_nothing() {
    let hive = TestVault::new();
    let before = hive.contents();
    let reply = hive.pipe("append", &["--batch", "-n"], jsonl(&story())).expect_exit(0);
    assert_eq!(
        reply.stdout,
        "EXIT:0\nSTATUS:VALID\nNEXT:NONE\nSUM:3 events, last: TaskAborted task:t\nSUBJECT:task:t\n"
    );
    assert_eq!(hive.pipe("append", &["--stream", "-n"], jsonl(&story())).expect_exit(0).get("STATUS"), "VALID");
    assert!(hive.contents() == before);
}

#[test]
fn a_stream_takes_more_than_a_batch_and_commits_every_thousand() {
    let hive = TestVault::new();
    let reply = hive.pipe("append", &["--stream"], jsonl(&keyed(0..2500))).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:APPENDED\nNEXT:NONE\nSUM:2500 events recorded, 0 already recorded\nEVENT_ID:<ulid>\n\
         HASH:sha256:<digest>\nRECORDED:2500\nDUPLICATES:0\n"
    );
    let events = hive.events();
    assert_eq!(events.len(), 2501);
    for (n, of) in [(1, 1000), (1000, 1000), (1001, 1000), (2001, 500), (2500, 500)] {
        assert_eq!(events[n]["batch"]["of"], of, "{n}");
    }
    assert_eq!(reply.get("EVENT_ID"), events[2500]["event_id"]);
    assert_eq!(hive.verify_here().count, 2501);
}

#[test]
fn an_interrupted_stream_reports_its_progress_and_can_be_repeated() {
    let hive = TestVault::new();
    let good = keyed(0..1800);
    let mut bad = good.clone();
    bad[1699]["subject"] = "task:wrong".into();
    let reply = hive.pipe("append", &["--stream"], jsonl(&bad)).expect_exit(2);
    assert_eq!(
        reply.get("SUM"),
        "1000 events recorded, 0 already recorded: line 1700: the subject of RequirementProposed must be a requirement, not task:wrong"
    );
    assert_eq!(hive.events().len(), 1001);
    let reply = hive.pipe("append", &["--stream"], jsonl(&good)).expect_exit(0);
    assert_eq!((reply.get("RECORDED"), reply.get("DUPLICATES")), ("800", "1000"));
    assert_eq!(hive.events().len(), 1801);
    assert!(hive.verify_here().passed());
}

#[test]
fn a_stream_keeps_everything_before_an_unreadable_line() {
    let hive = TestVault::new();
    let reply = hive.pipe("append", &["--stream"], jsonl(&keyed(0..3)) + "{\n").expect_exit(2);
    assert!(reply.get("SUM").starts_with("3 events recorded, 0 already recorded: line 4: invalid JSON"), "{reply:#?}");
    assert_eq!(hive.events().len(), 4);
}

#[test]
fn reusing_a_stream_key_for_something_else_is_a_conflict() {
    let hive = TestVault::new();
    hive.pipe("append", &["--stream"], jsonl(&keyed(0..2))).expect_exit(0);
    let mut lines = keyed(0..2);
    lines[1]["payload"]["title"] = "other".into();
    let reply = hive.pipe("append", &["--stream"], jsonl(&lines)).expect_exit(3);
    assert_eq!((reply.get("REASON"), reply.get("RECORDED")), ("key_conflict", "0"));
    assert!(reply.get("SUM").starts_with("0 events recorded, 0 already recorded: line 2: the key 'k1'"), "{reply:#?}");
}

#[test]
fn batch_and_single_arguments_exclude_each_other() {
    let hive = TestVault::new();
    for args in [
        &["--batch", "--stream"][..],
        &["--batch", "--subject", "task:t"],
        &["--batch", "RequirementProposed"],
        &["--stream", "--key", "k"],
        &["RequirementProposed", "-", "--payload", "{}"],
        &["RequirementProposed", "--payload", "{}", "--payload-file", "f"],
        &[],
    ] {
        assert_eq!(hive.refuses("append", args, 2).get("STATUS"), "USAGE");
    }
}

#[test]
fn a_line_may_refer_to_what_an_earlier_line_created() {
    let hive = TestVault::new();
    let title = json!({"title": "x"});
    for (parent, subject) in [("requirement:a", "a"), ("REQ-0003", "b"), ("c", "c")] {
        let lines = [
            json!({"event_type": "RequirementProposed", "subject": format!("requirement:{subject}"), "payload": title}),
            json!({"event_type": "RequirementProposed", "payload": title, "parents": [parent]}),
        ];
        let reply = hive.pipe("append", &["--batch"], jsonl(&lines)).expect_exit(0);
        assert_eq!(hive.events().last().unwrap()["parents"], json!([reply.all("EVENT_ID")[0]]), "{parent}");
    }
}

#[test]
fn a_stream_of_large_events_is_committed_in_smaller_parts() {
    let hive = TestVault::new();
    let mut lines = keyed(0..20);
    for line in &mut lines {
        line["payload"]["description"] = "x".repeat(900_000).into();
    }
    let reply = hive.pipe("append", &["--stream"], jsonl(&lines)).expect_exit(0);
    assert_eq!(reply.get("RECORDED"), "20");
    assert_eq!(hive.events().len(), 21);
    assert!(hive.verify_here().passed());
}

#[test]
fn an_event_that_grows_too_large_is_named_by_its_line() {
    let hive = TestVault::new();
    let line = |title: String| json!({"event_type": "RequirementProposed", "payload": {"title": title}});
    // The line itself fits; the event, with its envelope, does not.
    let input = jsonl(&[line("x".to_owned()), line("x".repeat(1024 * 1024 - 100))]);
    let reply = hive.refuses_input("append", &["--batch"], input, 2);
    assert!(reply.get("SUM").starts_with("line 2: an event of "), "{reply:#?}");
}

#[test]
fn a_stream_whose_numbers_grow_when_written_is_split_into_batches_that_fit() {
    let hive = TestVault::new();
    let numbers = vec!["1e-6"; 2600].join(",");
    let line =
        format!("{{\"event_type\":\"RequirementProposed\",\"payload\":{{\"title\":\"x\",\"n\":[{numbers}]}}}}\n");
    let reply = hive.pipe("append", &["--stream"], line.repeat(1000)).expect_exit(0);
    assert_eq!(reply.get("RECORDED"), "1000");
}
