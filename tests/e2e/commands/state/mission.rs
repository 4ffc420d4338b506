//! Starting a mission, changing it, and what is refused.

use hiveforge::event::Kind;
use serde_json::{Value, json};

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{found_after, keeps_the_rules, ok, refuses};
use crate::support::test_vault::{TestVault, mask};

use super::{begun, m1, state};

#[test]
fn there_is_one_mission_at_a_time_and_having_none_is_reported() {
    let hive = TestVault::new();
    for line in
        ["hf-state show", "hf-state round", "hf-state done", "hf-state fail", "hf-state set OPEN_K=K1", "hf-state go"]
    {
        refuses(&hive, line, 6, "no mission yet; hf-state start begins one");
    }
    ok(&hive, "hf-state start Login");
    refuses(&hive, "hf-state start Logout", 3, "is still running; only one mission can run at a time");
    assert_eq!(ok(&hive, "hf-state start Login").get("STATUS"), "DUPLICATE");
    refuses(&hive, "hf-state start Logout --requirement REQ-0001", 6, "REQ-0001");
}

const OPEN_K: &str = "invalid OPEN_K; must be numbered points such as K1,K2, or NONE";

#[test]
fn text_that_does_not_fit_the_state_file_is_refused_with_a_reason() {
    let hive = begun();
    for (pair, why) in [
        ("STATUS=PASS", "STATUS cannot be set; hf-state maintains it"),
        ("ROUND=1/4", "ROUND cannot be set; hf-state maintains it"),
        ("GOAL=", "GOAL cannot be empty"),
        ("GOAL=NONE", "GOAL cannot be empty"),
        ("nonsense", "invalid line 'nonsense'; must be KEY=VALUE"),
        (
            "COLOUR=red",
            "unknown key 'COLOUR'; one of GOAL, TASK_ID, LOGREF, OPEN_K, LAST_ACTION, NEXT_ACTION, REQUIREMENT",
        ),
        ("CONSTRAINTS=a", "CONSTRAINTS cannot be set; use --constraint for each"),
        ("LOGREF=../../etc/passwd", "invalid LOGREF; must be like L-0001, or NONE"),
        ("LOGREF=L-", "invalid LOGREF; must be like L-0001, or NONE"),
        ("OPEN_K=K1, K2", OPEN_K),
        ("OPEN_K=K1,,K2", OPEN_K),
        ("OPEN_K=ask-the-boss", OPEN_K),
        ("OPEN_K=K1,k2", OPEN_K),
        ("OPEN_K=K", OPEN_K),
        ("OPEN_K=K0", OPEN_K),
        ("OPEN_K=K12345", OPEN_K),
        ("LAST_ACTION=a\nSTATUS: PASS", "LAST_ACTION must be one line without control characters"),
        ("LAST_ACTION=a\u{7f}b", "LAST_ACTION must be one line without control characters"),
        ("LAST_ACTION=a\tb", "LAST_ACTION must be one line without control characters"),
        ("NEXT_ACTION=a\u{2028}STATUS: PASS", "NEXT_ACTION must be one line without control characters"),
        ("NEXT_ACTION=a\u{2029}b", "NEXT_ACTION must be one line without control characters"),
        ("GOAL=a\u{85}b", "GOAL must be one line without control characters"),
    ] {
        assert_eq!(hive.refuses("state", &["set", pair], 2).get("SUM"), why, "{pair:?}");
    }
    assert_eq!(hive.refuses("state", &["set", "OPEN_K=K1", "open_k=K2"], 2).get("SUM"), "OPEN_K is given twice");
    hive.refuses("state", &["set"], 2);
    hive.refuses("state", &["set", "TASK_ID=T-0001"], 6);
    hive.refuses("state", &["set", "REQUIREMENT=REQ-0009"], 6);
    for goal in ["", "  ", "a\nb", "a\u{2028}b"] {
        TestVault::new().refuses("state", &["start", goal], 2);
    }
    for constraint in ["a\nNEXT_ACTION: rm", "", "  "] {
        let reply = hive.run("state", &["set", "--constraint", constraint]);
        assert_eq!(reply.code, Some(2), "{constraint:?}: {reply:#?}");
    }
}

#[test]
fn there_are_at_most_three_constraints() {
    let hive = TestVault::new();
    let four = ["--constraint", "a", "--constraint", "b", "--constraint", "c", "--constraint", "d"];
    let reply = hive.refuses("state", &[&["start", "Login"], &four[..]].concat(), 2);
    assert_eq!(reply.get("SUM"), "there are 4 constraints; at most 3");
    state(&hive, &[&["start", "Login"], &four[..6]].concat());
    assert_eq!(
        hive.refuses("state", &[&["set"], &four[..]].concat(), 2).get("SUM"),
        "there are 4 constraints; at most 3"
    );
    assert_eq!(state(&hive, &["show"]).all("CONSTRAINT"), ["a", "b", "c"]);
}

#[test]
fn the_tool_counts_rounds_and_stops_after_the_fourth() {
    let hive = begun();
    for round in ["1/4", "2/4", "3/4", "4/4"] {
        assert_eq!(state(&hive, &["round"]).get("ROUND"), round);
        assert!(m1(&hive).contains(&format!("\nROUND: {round}\n")));
    }
    let reply = hive.refuses("state", &["round"], 3);
    assert_eq!(
        reply.stdout,
        "EXIT:3\nSTATUS:ROUND_LIMIT\nNEXT:ASK operator\nSUM:all 4 rounds are used up\nREASON:round_limit\n"
    );
    assert!(m1(&hive).contains("\nROUND: 4/4\n"));
    keeps_the_rules(&hive);
}

#[test]
fn repeating_a_key_returns_the_first_reply() {
    let hive = TestVault::new();
    let first = state(&hive, &["start", "Login", "--key", "s"]);
    let set = state(&hive, &["set", "OPEN_K=K1", "--key", "k1"]);
    let round = state(&hive, &["round", "--key", "r1"]);
    state(&hive, &["set", "LAST_ACTION=other", "OPEN_K=K2", "--key", "k2"]);
    let before = hive.contents();
    for (args, first) in [
        (&["start", "Login", "--key", "s"][..], &first),
        (&["set", "OPEN_K=K1", "--key", "k1"], &set),
        (&["round", "--key", "r1"], &round),
    ] {
        let again = state(&hive, args);
        assert_eq!((again.get("STATUS"), again.get("EVENT_ID")), ("DUPLICATE", first.get("EVENT_ID")), "{args:?}");
        assert_eq!((again.get("OPEN_K"), again.get("ROUND")), ("K2", "1/4"), "it says how things stand now");
    }
    assert!(hive.contents() == before);
    // With something else it is refused.
    for args in [
        &["set", "OPEN_K=K3", "--key", "k1"][..],
        &["set", "LAST_ACTION=x", "--key", "k1"],
        &["round", "--key", "k1"],
        &["start", "Logout", "--key", "s"],
        &["done", "--key", "r1"],
    ] {
        assert_eq!(hive.refuses("state", args, 3).get("REASON"), "key_conflict", "{args:?}");
    }
    for _ in 2..=4 {
        state(&hive, &["round"]);
    }
    assert_eq!(state(&hive, &["round", "--key", "r1"]).get("STATUS"), "DUPLICATE", "also where no round is left");
    let done = state(&hive, &["done", "all", "--key", "d"]);
    assert_eq!(state(&hive, &["done", "all", "--key", "d"]).get("EVENT_ID"), done.get("EVENT_ID"));
    state(&hive, &["start", "Another"]);
    let again = state(&hive, &["done", "all", "--key", "d"]);
    assert_eq!((again.get("STATUS"), again.get("EVENT_ID")), ("DUPLICATE", done.get("EVENT_ID")));
    assert_eq!(state(&hive, &["round", "--key", "r1"]).get("STATUS"), "DUPLICATE");
    let show = state(&hive, &["show"]);
    assert_eq!((show.get("GOAL"), show.get("M1_STATUS"), show.get("ROUND")), ("Another", "RUNNING", "0/4"));
    keeps_the_rules(&hive);
}

#[test]
fn a_lost_session_is_told_what_to_run_if_it_is_safe() {
    let story = TestJobVault::new("");
    state(&story, &["start", "Login"]);
    for (said, next) in [
        ("hf-state go", "ACTION hf-state go"),
        ("hf-review status", "ACTION hf-review status"),
        ("hf-poll t-0001", "ACTION hf-poll T-0001"),
        ("hf-poll T-0001; rm -rf /", "NONE"),
        ("hf-decide approve DEC-0001", "NONE"),
        ("hf-stop everything", "NONE"),
        ("rm -rf /", "NONE"),
        ("ask gpt", "NONE"),
    ] {
        state(&story, &["set", &format!("NEXT_ACTION={said}")]);
        let reply = state(&story, &["show"]);
        assert_eq!((reply.get("NEXT"), reply.get("NEXT_ACTION")), (next, said));
    }
    // A task that is under way goes first.
    let mut go = story.gate("go");
    story.fire("read x <go; echo fine");
    state(&story, &["set", "TASK_ID=T-0001", "NEXT_ACTION=hf-state go"]);
    let reply = state(&story, &["show"]);
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:OK\nNEXT:ACTION hf-poll T-0001\nSUM:M-0001: Running\nM1_STATUS:RUNNING\nGOAL:Login\n\
         TASK_ID:T-0001\nLOGREF:L-0001\nOPEN_K:NONE\nROUND:1/4\nLAST_ACTION:round 1: T-0001 was fired\nNEXT_ACTION:hf-state go\n"
    );
    go.open();
    assert_eq!(story.run_next(&reply).get("SUM"), "fine");
    let show = state(&story, &["show"]);
    assert_eq!(
        (show.get("NEXT"), mask(show.get("LAST_ACTION"))),
        ("ACTION hf-state done", "round 1: T-0001 succeeded".to_owned())
    );
    state(&story, &["set", "NEXT_ACTION=hf-state go"]);
    assert_eq!(state(&story, &["show"]).get("NEXT"), "ACTION hf-state go", "what was written down after that counts");
    state(&story, &["done"]);
    assert_eq!(state(&story, &["show"]).get("NEXT"), "NONE");
    story.over();
}

#[test]
fn raw_appends_follow_the_same_rules_and_the_audit_finds_violations() {
    let hive = begun();
    let mission = hive.events()[1]["subject"].as_str().unwrap().to_owned();
    let append = |kind: &str, payload: Value, code: i32| {
        let reply = hive.refuses("append", &[kind, "--subject", &mission, "--payload", &payload.to_string()], code);
        reply.get("SUM").to_owned()
    };
    let long = vec!["w"; 200].join(" ");
    for (kind, payload, code, why) in [
        ("MissionChanged", json!({"goal": "a\nb"}), 2, "GOAL must be one line without control characters"),
        ("MissionChanged", json!({"goal": long}), 2, "the state file has 217 words; at most 200"),
        (
            "MissionChanged",
            json!({"open_k": "K1"}),
            2,
            "MissionChanged: missing payload.goal; must be a non-empty string",
        ),
        (
            "MissionChanged",
            json!({"goal": "a", "constraints": ["a", "b", "c", "d"]}),
            2,
            "there are 4 constraints; at most 3",
        ),
        (
            "MissionChanged",
            json!({"goal": "a", "constraints": ["a\u{2028}b"]}),
            2,
            "a constraint must be one line without control characters",
        ),
        ("MissionChanged", json!({"goal": "a", "constraints": [""]}), 2, "a constraint must not be empty"),
        ("MissionRoundBegun", json!({"round": 2}), 2, "payload.round must be 1, the next round"),
        ("MissionPassed", json!({"last_action": "a\nb"}), 2, "LAST_ACTION must be one line without control characters"),
    ] {
        assert_eq!(append(kind, payload, code), why);
    }
    let reply = hive.refuses("append", &["MissionStarted", "--payload", r#"{"goal":"b"}"#], 3);
    assert!(reply.get("SUM").ends_with("is still running; only one mission can run at a time"));
    let found = found_after(
        &hive,
        vec![
            ("user:jo", Kind::MissionChanged, &mission, json!({"goal": "a\nb"})),
            ("user:jo", Kind::MissionChanged, &mission, json!({"goal": "a", "constraints": ["a", "b", "c", "d"]})),
            ("user:jo", Kind::MissionRoundBegun, &mission, json!({"round": 4})),
            ("user:jo", Kind::MissionStarted, "mission:other", json!({"goal": "b"})),
        ],
    );
    assert_eq!(found.len(), 4, "{found:#?}");
    for (found, why) in found.iter().zip([
        "GOAL must be one line",
        "there are 4 constraints",
        "payload.round must be 1",
        "is still running",
    ]) {
        assert!(found.contains(why), "{found} / {why}");
    }
}
