//! hf-log: pages, filters, stored lines, and following.

use std::fs;

use hiveforge::event::{Event, EventType, Kind};
use serde_json::json;

use crate::support::test_vault::{Reply, TestVault, forged, jsonl, write_private};

/// A vault with a few events by several actors, over three days.
fn busy() -> TestVault {
    let mut hive = TestVault::new();
    let requirement = hive.propose("first").get("SUBJECT")["requirement:".len()..].to_owned();
    hive.at("2026-02-01T12:00:00Z");
    // It waits for its requirement, so nothing follows by itself.
    let payload = json!({"title": "work", "requirement_id": requirement}).to_string();
    let args = ["TaskProposed", "--subject", "task:t", "--payload", &payload, "--actor", "agent:worker"];
    hive.run("append", &args).expect_exit(0);
    hive.at("2026-02-02T12:00:00Z");
    hive.run("append", &["TaskAborted", "--subject", "T-0001"]).expect_exit(0);
    hive
}

/// The types of the events that a reply lists.
fn types(reply: &Reply) -> Vec<&str> {
    reply.all("EVENT").iter().map(|line| line.split(' ').nth(2).unwrap()).collect()
}

const ALL: [&str; 5] = ["VaultInitialized", "RequirementProposed", "AgentStarted", "TaskProposed", "TaskAborted"];

#[test]
fn log_lists_events_newest_last() {
    let hive = busy();
    let reply = hive.run("log", &[]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:5 events\nCOUNT:5\nHAS_MORE:no\n\
         EVENT:<ulid> 2026-01-31T12:00:00Z VaultInitialized system user:jo\n\
         EVENT:<ulid> 2026-01-31T12:00:00Z RequirementProposed requirement:<ulid> user:jo first\n\
         EVENT:<ulid> 2026-02-01T12:00:00Z AgentStarted agent:worker agent:worker\n\
         EVENT:<ulid> 2026-02-01T12:00:00Z TaskProposed task:t agent:worker work\n\
         EVENT:<ulid> 2026-02-02T12:00:00Z TaskAborted task:t user:jo\n"
    );
    let ids: Vec<_> = reply.all("EVENT").iter().map(|line| line[..26].to_owned()).collect();
    assert_eq!(json!(ids), json!(hive.events().iter().map(|e| e["event_id"].clone()).collect::<Vec<_>>()));
}

#[test]
fn following_next_pages_through_everything() {
    let hive = busy();
    let mut reply = hive.run("log", &["--limit", "2"]).expect_exit(0);
    let mut seen = types(&reply).iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut pages = 1;
    while reply.get("HAS_MORE") == "yes" {
        let cursor = reply.get("NEXT_CURSOR");
        assert_eq!(reply.get("NEXT"), format!("ACTION hf-log --cursor {cursor} --limit 2"));
        reply = hive.run_next(&reply).expect_exit(0);
        seen.extend(types(&reply).iter().map(ToString::to_string));
        pages += 1;
    }
    assert_eq!((seen, pages), (ALL.map(str::to_owned).to_vec(), 3));
    assert_eq!(reply.all("NEXT_CURSOR").len(), 0);
    assert_eq!(reply.get("NEXT"), "NONE");
}

#[test]
fn a_page_that_ends_at_the_last_event_has_no_next() {
    let hive = busy();
    let reply = hive.run("log", &["--limit", "5"]).expect_exit(0);
    assert_eq!((reply.get("HAS_MORE"), reply.get("NEXT")), ("no", "NONE"));
}

#[test]
fn the_next_page_keeps_the_filter() {
    let hive = busy();
    for n in 0..3 {
        hive.run("append", &["TaskProposed", "--subject", &format!("task:more{n}"), "--payload", r#"{"title":"x"}"#])
            .expect_exit(0);
    }
    let filter = ["--limit", "1", "--type", "TaskProposed", "--actor", "user:jo", "--since", "2026-02-02"];
    let first = hive.run("log", &filter).expect_exit(0);
    let rest = "--type TaskProposed --actor user:jo --since 2026-02-02T00:00:00Z";
    assert_eq!(first.get("NEXT"), format!("ACTION hf-log --cursor {} --limit 1 {rest}", first.get("NEXT_CURSOR")));
    let second = hive.run_next(&first).expect_exit(0);
    assert!(second.get("EVENT").contains(" TaskProposed task:more1 user:jo x"), "{second:#?}");
    let third = hive.run_next(&second).expect_exit(0);
    assert!(third.get("EVENT").contains("task:more2"), "{third:#?}");
    assert_eq!(third.get("HAS_MORE"), "no");
}

#[test]
fn the_next_page_of_a_reference_names_its_subject() {
    let hive = busy();
    let first = hive.run("log", &["--subject", "T-0001", "--limit", "1"]).expect_exit(0);
    assert_eq!((types(&first), first.get("HAS_MORE")), (vec!["TaskProposed"], "yes"));
    assert!(first.get("NEXT").ends_with(" --limit 1 --subject task:t"), "{first:#?}");
    assert_eq!(types(&hive.run_next(&first).expect_exit(0)), ["TaskAborted"]);
}

#[test]
fn filters_choose_events() {
    let hive = busy();
    let requirement = hive.events()[1]["subject"].as_str().unwrap().to_owned();
    for (args, expected) in [
        (&["--type", "TaskAborted"][..], &ALL[4..]),
        (&["--subject", "task:t"], &ALL[3..]),
        (&["--subject", "T-0001"], &ALL[3..]),
        (&["--subject", "t-0001"], &ALL[3..]),
        (&["--subject", "t"], &ALL[3..]),
        (&["--subject", "system"], &ALL[..1]),
        (&["--subject", &requirement], &ALL[1..2]),
        (&["--subject", "REQ-0001"], &ALL[1..2]),
        (&["--actor", "agent:worker"], &ALL[2..4]),
        (&["--since", "2026-02-01"], &ALL[2..]),
        (&["--since", "2026-02-02T12:00:00Z"], &ALL[4..]),
        (&["--since", "2026-02-02T14:00:01+02:00"], &[]),
        (&["--until", "2026-01-31"], &ALL[..2]),
        (&["--until", "2026-02-01"], &ALL[..4]),
        (&["--until", "2026-02-01T12:00:00Z"], &ALL[..4]),
        (&["--since", "2026-02-01", "--until", "2026-02-01"], &ALL[2..4]),
        (&["--last", "2"], &ALL[3..]),
        (&["--last", "1", "--actor", "user:jo"], &ALL[4..]),
        (&["--last", "500"], &ALL),
    ] {
        let reply = hive.run("log", args).expect_exit(0);
        assert_eq!(types(&reply), expected, "{args:?}");
        assert_eq!(reply.get("COUNT"), expected.len().to_string());
    }
}

#[test]
fn log_refuses_invalid_cursors_limits_and_times() {
    let hive = busy();
    let foreign = hive.events()[4]["event_id"].as_str().unwrap().replace("01", "00");
    let cut = &hive.events()[4]["event_id"].as_str().unwrap()[..20].to_owned();
    for cursor in [foreign.as_str(), cut, "", "x", "../x"] {
        let reply = hive.refuses("log", &["--cursor", cursor], 2);
        assert_eq!(
            reply.stdout,
            "EXIT:2\nSTATUS:INVALID_CURSOR\nNEXT:ACTION hf-log --help\nSUM:unknown cursor; it must be the id of \
             an event in this log\n"
        );
    }
    for (option, value) in [("--limit", "0"), ("--limit", "501"), ("--last", "501"), ("--last", "0")] {
        let reply = hive.refuses("log", &[option, value], 2);
        assert_eq!(
            reply.stdout,
            format!(
                "EXIT:2\nSTATUS:LIMIT_EXCEEDED\nNEXT:ACTION hf-log --help\nSUM:invalid limit {value}; must be 1 to 500\n"
            )
        );
    }
    for args in [
        &["--since", "yesterday"][..],
        &["--until", "2026-02-30"],
        &["--limit", "many"],
        &["--last", "1", "--limit", "1"],
    ] {
        assert_eq!(hive.refuses("log", args, 2).get("STATUS"), "USAGE", "{args:?}");
    }
    assert_eq!(hive.refuses("log", &["--subject", "nobody"], 6).get("STATUS"), "NOT_FOUND");
    let reply = hive.run("log", &["--follow", "--json"]);
    assert!(reply.code == Some(2) && reply.stdout.contains("--follow cannot be combined with --json"));
}

#[test]
fn jsonl_is_exactly_what_is_stored() {
    let hive = busy();
    let reply = hive.run("log", &["--jsonl"]);
    assert_eq!(reply.code, Some(0));
    let folder = hive.vault().join("Akashic/events");
    let stored = ["2026-01/2026-01-31", "2026-02/2026-02-01", "2026-02/2026-02-02"]
        .map(|name| fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap())
        .concat();
    assert_eq!(reply.stdout, stored);
    assert_eq!(reply.stderr, "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:5 events\nCOUNT:5\nHAS_MORE:no\n");
    let page = hive.run("log", &["--jsonl", "--limit", "1", "--type", "TaskAborted"]);
    assert_eq!(page.stdout, stored.lines().last().unwrap().to_owned() + "\n");
}

#[test]
fn a_cursor_finds_its_place_among_many_events() {
    let hive = TestVault::new();
    let line = json!({"event_type": "RequirementProposed", "payload": {"title": "x"}});
    hive.pipe("append", &["--batch"], jsonl(&vec![line; 700])).expect_exit(0);
    let ids: Vec<String> = hive.events().iter().map(|e| e["event_id"].as_str().unwrap().to_owned()).collect();
    for n in [0, 1, 349, 350, 698, 699, 700] {
        let reply = hive.run("log", &["--cursor", &ids[n], "--limit", "1"]).expect_exit(0);
        assert_eq!(reply.all("EVENT").first().map(|line| &line[..26]), ids.get(n + 1).map(String::as_str), "{n}");
    }
    let (mut reply, mut count) = (hive.run("log", &["--limit", "500"]).expect_exit(0), 500);
    assert_eq!(reply.all("EVENT").len(), 500);
    while reply.get("HAS_MORE") == "yes" {
        reply = hive.run_next(&reply).expect_exit(0);
        count += reply.all("EVENT").len();
    }
    assert_eq!(count, 701);
}

#[test]
fn follow_shows_events_as_they_come() {
    let hive = busy();
    let mut follow = hive.start("log", &["--follow"]);
    for expected in ["EXIT:0\n", "STATUS:FOLLOWING\n", "NEXT:NONE\n", "SUM:showing new events as they are recorded\n"] {
        assert_eq!(follow.line(), expected);
    }
    for kind in ALL {
        assert!(follow.line().contains(&format!(" {kind} ")));
    }
    for title in ["one", "two"] {
        let made = hive.propose(title);
        let expected = format!(
            "EVENT:{} 2026-02-02T12:00:00Z RequirementProposed {} user:jo {title}\n",
            made.get("EVENT_ID"),
            made.get("SUBJECT")
        );
        assert_eq!(follow.line(), expected);
    }
}

#[test]
fn follow_prints_stored_lines_after_a_cursor_and_keeps_its_filter() {
    let mut hive = busy();
    let cursor = hive.events()[3]["event_id"].as_str().unwrap().to_owned();
    let mut follow = hive.start("log", &["--follow", "--jsonl", "--cursor", &cursor, "--actor", "user:jo"]);
    let stored = |name: &str| fs::read_to_string(hive.vault().join("Akashic/events/2026-02").join(name)).unwrap();
    assert_eq!(follow.line(), stored("2026-02-02.jsonl"));
    hive.run("append", &["RequirementProposed", "--payload", r#"{"title":"x"}"#, "--actor", "external:ci"]);
    // The next event is in another segment.
    hive.at("2026-02-03T12:00:00Z").propose("mine");
    let mut next = follow.line();
    assert!(next.ends_with('\n'));
    next.truncate(next.len() - 1);
    let event: serde_json::Value = serde_json::from_str(&next).unwrap();
    assert_eq!(&event, hive.events().last().unwrap());
}

#[test]
fn a_follow_that_cannot_start_prints_one_reply() {
    let hive = busy();
    let reply = hive.refuses("log", &["--follow", "--cursor", "x"], 2);
    assert_eq!(reply.get("STATUS"), "INVALID_CURSOR");
    assert_eq!(hive.refuses("log", &["--follow", "--subject", "nobody"], 6).get("STATUS"), "NOT_FOUND");
    let most = u64::MAX.to_string();
    assert_eq!(hive.refuses("log", &["--follow", "--last", &most], 2).get("STATUS"), "LIMIT_EXCEEDED");
}

#[test]
fn log_stops_at_damage() {
    let hive = busy();
    let text = fs::read_to_string(hive.segment()).unwrap();
    fs::write(hive.segment(), text.replacen("\"actor\"", "\"actor", 1)).unwrap();
    let reply = hive.refuses("log", &[], 4);
    assert!(reply.get("SUM").starts_with("2026-01/2026-01-31.jsonl at byte 0: not an event"), "{reply:#?}");
    assert_eq!(reply.get("NEXT"), "ACTION hf-verify");
}

#[test]
fn following_into_a_full_disk_is_an_error() {
    let hive = TestVault::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let status = hive.process("log").arg("--follow").stdout(full).status().unwrap();
    assert_eq!(status.code(), Some(111));
}

/// T12.
#[test]
fn t12_one_event_is_shown_whole_by_its_id() {
    let hive = TestVault::new();
    let long = "x".repeat(500);
    let payload = json!({"title": format!("{long}\nend"), "depth": {"of": [1, "two", null]}}).to_string();
    let made = hive.run("append", &["RequirementProposed", "--payload", &payload, "--key", "k1"]).expect_exit(0);
    let (id, subject) = (made.get("EVENT_ID"), made.get("SUBJECT"));
    let event = hive.events().pop().unwrap();
    let reply = hive.run("log", &["show", id]).expect_exit(0);
    assert_eq!(reply.get("SUM"), format!("RequirementProposed of {subject} by user:jo at 2026-01-31T12:00:00Z"));
    assert!(reply.get("EVENT").starts_with(id));
    assert_eq!(reply.get("REF"), made.get("REF"));
    let facts = [
        format!("event_id {id}"),
        "event_type RequirementProposed".to_owned(),
        "version 1".to_owned(),
        "timestamp 2026-01-31T12:00:00Z".to_owned(),
        "actor user:jo".to_owned(),
        format!("subject {subject}"),
        format!("hash {}", event["hash"].as_str().unwrap()),
        format!("prev_hash {}", event["prev_hash"].as_str().unwrap()),
        "idempotency_key k1".to_owned(),
        format!("payload.title {long}\\nend"),
        r#"payload.depth {"of":[1,"two",null]}"#.to_owned(),
    ];
    for fact in &facts {
        assert!(reply.all("FACT").contains(&fact.as_str()), "{fact}: {reply:#?}");
    }
    assert_eq!(reply.all("FACT").len(), facts.len());
    // JSON has the envelope itself.
    let shown: serde_json::Value = serde_json::from_str(&hive.run("log", &["show", id, "--json"]).stdout).unwrap();
    assert_eq!(shown["events"], json!([event]));
    // The start of an id is enough, in either case.
    assert_eq!(hive.run("log", &["show", &id[..25].to_lowercase()]).expect_exit(0).stdout, reply.stdout);
    let child = hive.run("append", &["RequirementRejected", "--subject", subject]).expect_exit(0);
    let shown = hive.run("log", &["show", child.get("EVENT_ID")]).expect_exit(0);
    assert!(shown.all("FACT").contains(&format!("parent {id}").as_str()), "{shown:#?}");
}

#[test]
fn an_event_that_is_not_there_is_answered_with_what_would_be_right() {
    let hive = busy();
    let newest = hive.events()[4]["event_id"].as_str().unwrap().to_owned();
    for (reference, sum) in [
        ("T-0001", "'T-0001' names task:t, not an event; list its events with hf-log --subject T-0001".to_owned()),
        ("01ZZ", format!("no event '01ZZ' in the log or in quarantine; the newest event is {newest}")),
        ("", format!("no event '' in the log or in quarantine; the newest event is {newest}")),
        ("../x", format!("no event '../x' in the log or in quarantine; the newest event is {newest}")),
    ] {
        let reply = hive.refuses("log", &["show", reference], 6);
        assert_eq!((reply.get("SUM"), reply.get("NEXT")), (sum.as_str(), "ACTION hf-log --last 20"), "{reference}");
    }
    let reply = hive.refuses("log", &["show", "0"], 6);
    let ids: Vec<String> = hive.events()[..2].iter().map(|e| e["event_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(reply.get("SUM"), format!("ambiguous '0': {}, {} and more start with it", ids[0], ids[1]));
    assert_eq!(hive.refuses("log", &["show"], 2).get("STATUS"), "USAGE");
}

/// T26.
#[test]
fn t26_a_type_that_nobody_knows_is_a_mistake_with_a_hint() {
    let hive = busy();
    for (args, sum) in [
        (&["--type", "TaskFaild"][..], "unknown event type 'TaskFaild'; did you mean TaskFailed?"),
        (&["--follow", "--type", "TaskFaild"], "unknown event type 'TaskFaild'; did you mean TaskFailed?"),
        (&["--type", "taskaborted"], "unknown event type 'taskaborted'; did you mean TaskAborted?"),
        (&["--type", "Unheard"], "unknown event type 'Unheard'; hf-format(5) lists them all"),
        (&["--quarantined", "--type", "Unheard"], "unknown event type 'Unheard'; hf-format(5) lists them all"),
    ] {
        let reply = hive.refuses("log", args, 2);
        assert!(reply.get("SUM").starts_with(sum), "{reply:#?}");
    }
    assert_eq!(hive.run("log", &["--type", "TaskFailed"]).expect_exit(0).get("COUNT"), "0");
    // One of a newer version is found if it occurs, whatever else is asked for.
    let mut events = TestVault::new().recorded();
    let strange = forged(1, Kind::TaskAborted, "task:t", json!({}));
    events.push(Event { event_type: EventType::Unknown("TaskTeleported".to_owned()), ..strange });
    let hive = TestVault::new();
    hive.forge(&mut events);
    assert_eq!(types(&hive.run("log", &["--type", "TaskTeleported"]).expect_exit(0)), ["TaskTeleported"]);
    let later = ["--type", "TaskTeleported", "--since", "2027-01-01"];
    assert_eq!(hive.run("log", &later).expect_exit(0).get("COUNT"), "0");
}

/// A vault in which all events but the first are in quarantine.
fn cut_off() -> TestVault {
    let hive = busy();
    let text = fs::read_to_string(hive.segment()).unwrap();
    write_private(&hive.segment(), text.replacen("\"first\"", "\"frist\"", 1).as_bytes());
    let reply = hive.run("verify", &["--recover", "--yes"]).expect_exit(0);
    assert_eq!((reply.get("KEPT"), reply.get("MISSING")), ("3", "4"));
    hive
}

#[test]
fn events_in_quarantine_are_listed_like_those_of_the_log() {
    let hive = cut_off();
    let reply = hive.run("log", &["--quarantined"]).expect_exit(0);
    assert_eq!((types(&reply), reply.get("SUM")), (ALL[2..].to_vec(), "3 events in quarantine, not part of the log"));
    assert_eq!(types(&hive.run("log", &[]).expect_exit(0)), ["VaultInitialized", "VaultRecovered"]);
    for (args, expected) in [
        (&["--type", "TaskAborted"][..], &ALL[4..]),
        (&["--subject", "task:t"], &ALL[3..]),
        (&["--subject", "t"], &ALL[3..]),
        (&["--actor", "agent:worker"], &ALL[2..4]),
        (&["--since", "2026-02-02"], &ALL[4..]),
        (&["--until", "2026-02-01"], &ALL[2..4]),
        (&["--last", "2"], &ALL[3..]),
        (&["--limit", "1"], &ALL[2..3]),
    ] {
        let args = [&["--quarantined"], args].concat();
        assert_eq!(types(&hive.run("log", &args).expect_exit(0)), expected, "{args:?}");
    }
    let json = hive.run("log", &["--quarantined", "--json", "--type", "TaskAborted"]).stdout;
    let shown: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&shown["count"], &shown["events"][0]["event_type"]), (&json!(1), &json!("TaskAborted")));
    // Pages, as NEXT says.
    let mut page = hive.run("log", &["--quarantined", "--limit", "1"]).expect_exit(0);
    let mut seen: Vec<String> = Vec::new();
    loop {
        seen.extend(types(&page).iter().map(ToString::to_string));
        if page.get("HAS_MORE") == "no" {
            break;
        }
        page = hive.run_next(&page).expect_exit(0);
    }
    assert_eq!(seen, ALL[2..]);
    let head = hive.events()[0]["event_id"].as_str().unwrap().to_owned();
    let cursor = hive.refuses("log", &["--quarantined", "--cursor", &head], 2);
    assert_eq!(cursor.get("STATUS"), "INVALID_CURSOR");
    assert_eq!(hive.refuses("log", &["--quarantined", "--follow"], 2).get("STATUS"), "USAGE");
    assert_eq!(TestVault::new().run("log", &["--quarantined"]).expect_exit(0).get("COUNT"), "0");
}

#[test]
fn an_event_in_quarantine_is_shown_with_its_place() {
    let hive = cut_off();
    let listed = hive.run("log", &["--quarantined", "--type", "TaskAborted"]).expect_exit(0);
    let id = &listed.get("EVENT")[..26];
    let reply = hive.run("log", &["show", id]).expect_exit(0);
    assert!(reply.get("SUM").ends_with("; in quarantine, not part of the log"), "{reply:#?}");
    let kept = fs::read_to_string(hive.akashic("quarantine").join(reply.get("QUARANTINED"))).unwrap();
    assert!(kept.contains(id));
}

#[test]
fn options_of_the_list_do_not_apply_to_one_event() {
    let hive = busy();
    let id = hive.events()[4]["event_id"].as_str().unwrap().to_owned();
    for option in [&["--last", "1"][..], &["--follow"], &["--quarantined"], &["--jsonl"]] {
        let args = [option, &["show", &id]].concat();
        let sum = format!("{} selects a list of events; it does not apply to show", option[0]);
        assert_eq!(hive.refuses("log", &args, 2).get("SUM"), sum);
    }
    hive.run("log", &["show", &id, "--vault", "Vault"]).expect_exit(0);
    hive.run("log", &["--vault", "Vault", "show", &id]).expect_exit(0);
}
