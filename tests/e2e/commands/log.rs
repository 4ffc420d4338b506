//! hf-log: pages, filters, stored lines, and following.

use std::fs;

use serde_json::json;

use crate::support::test_vault::{Reply, TestVault, jsonl};

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
        (&["--type", "Unheard"], &[]),
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
