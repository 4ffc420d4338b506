//! hf-state: a mission in one short file, and its work done without a hand.

use std::fs;
use std::os::unix::fs::chown;
use std::process::{Child, Stdio};
use std::thread;

use hiveforge::event::Kind;
use rustix::event::Timespec;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::{Value, json};

use crate::support::job_fixture::{Story, comes, kill, waiting};
use crate::support::steps::{approved, count, found_behind, keeps_the_rules, kinds_since, ok, refuses};
use crate::support::test_vault::{Hive, Reply, mask, write_private};

/// The state file.
#[track_caller]
fn m1(hive: &Hive) -> String {
    fs::read_to_string(hive.vault().join("Autonomous/state/M1.md")).expect("a state file")
}

/// What stands in a folder of `Autonomous/state` beside the file itself.
fn beside_m1(hive: &Hive) -> Vec<String> {
    let names = fs::read_dir(hive.vault().join("Autonomous/state")).expect("a folder");
    let mut names: Vec<String> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "M1.md");
    names.sort();
    names
}

#[track_caller]
fn state(hive: &Hive, args: &[&str]) -> Reply {
    hive.run("state", args).expect_exit(0)
}

/// A vault with a mission.
fn begun() -> Hive {
    let hive = Hive::new();
    state(&hive, &["start", "Login"]);
    hive
}

#[test]
fn the_state_file_is_the_seeds_to_the_letter_and_rewritten_with_every_change() {
    let hive = Hive::new();
    let reply = state(
        &hive,
        &["start", " Login with two factors ", "--constraint", "no new dependency", "--constraint", "日本語も"],
    );
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:M-0001 is Running, round 0/4\nM1_STATUS:RUNNING\n\
         GOAL:Login with two factors\nCONSTRAINT:no new dependency\nCONSTRAINT:日本語も\nTASK_ID:NONE\nLOGREF:NONE\n\
         OPEN_K:NONE\nROUND:0/4\nLAST_ACTION:NONE\nNEXT_ACTION:NONE\nEVENT_ID:<ulid>\n"
    );
    assert_eq!(
        m1(&hive),
        "STATUS: RUNNING\nGOAL: Login with two factors\nCONSTRAINTS:\n- no new dependency\n- 日本語も\nCURRENT:\n  \
         TASK_ID: NONE\n  LOGREF: NONE\nOPEN_K: NONE\nROUND: 0/4\nLAST_ACTION: NONE\nNEXT_ACTION: NONE\n"
    );
    ok(&hive, "hf-task propose Form");
    let set = [
        "set",
        "TASK_ID=t-0001",
        "logref=logs/L-0007.txt",
        "OPEN_K=K1,K2",
        "LAST_ACTION=design written",
        "NEXT_ACTION=hf-review status",
        "--constraint",
        "only one",
    ];
    let reply = state(&hive, &set);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ACTION hf-review status\nSUM:M-0001 is Running, round 0/4\n\
         M1_STATUS:RUNNING\nGOAL:Login with two factors\nCONSTRAINT:only one\nTASK_ID:T-0001\nLOGREF:L-0007\n\
         OPEN_K:K1,K2\nROUND:0/4\nLAST_ACTION:design written\nNEXT_ACTION:hf-review status\nEVENT_ID:<ulid>\n"
    );
    assert_eq!(
        mask(&m1(&hive)),
        "STATUS: RUNNING\nGOAL: Login with two factors\nCONSTRAINTS:\n- only one\nCURRENT:\n  TASK_ID: T-0001\n  \
         LOGREF: L-0007\nOPEN_K: K1,K2\nROUND: 0/4\nLAST_ACTION: design written\nNEXT_ACTION: hf-review status\n"
    );
    assert_eq!(state(&hive, &set).get("STATUS"), "DUPLICATE", "what is so already is not recorded again");
    assert_eq!(state(&hive, &["round"]).get("ROUND"), "1/4");
    // NONE takes a line away.
    state(&hive, &["set", "TASK_ID=NONE", "OPEN_K=", "NEXT_ACTION=NONE", "CONSTRAINTS=NONE"]);
    let reply = state(&hive, &["done", "all tests pass"]);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:M-0001 is Passed, round 1/4\nM1_STATUS:PASS\n\
         GOAL:Login with two factors\nTASK_ID:NONE\nLOGREF:NONE\nOPEN_K:NONE\nROUND:1/4\n\
         LAST_ACTION:all tests pass\nNEXT_ACTION:NONE\nEVENT_ID:<ulid>\n"
    );
    let last = "STATUS: PASS\nGOAL: Login with two factors\nCONSTRAINTS:\nCURRENT:\n  TASK_ID: NONE\n  LOGREF: NONE\n\
                OPEN_K: NONE\nROUND: 1/4\nLAST_ACTION: all tests pass\nNEXT_ACTION: NONE\n";
    assert_eq!(m1(&hive), last);
    assert_eq!(
        kinds_since(&hive, 1),
        [
            "MissionStarted",
            "TaskProposed",
            "TaskReady",
            "MissionChanged",
            "MissionRoundBegun",
            "MissionChanged",
            "MissionPassed"
        ]
    );
    // It is over, and another may begin.
    refuses(&hive, "hf-state fail", 3, "is Passed; MissionFailed is not legal there, only nothing");
    refuses(&hive, "hf-state set OPEN_K=K1", 3, "is Passed; MissionChanged is not legal there");
    refuses(&hive, "hf-state round", 3, "is Passed; MissionRoundBegun is not legal there");
    assert_eq!(ok(&hive, "hf-state done").get("STATUS"), "DUPLICATE");
    ok(&hive, "hf-state start Another");
    assert_eq!(ok(&hive, "hf-state fail").get("M1_STATUS"), "FAIL");
    assert!(m1(&hive).starts_with("STATUS: FAIL\nGOAL: Another\n"));
    assert_eq!(beside_m1(&hive), Vec::<String>::new());
    keeps_the_rules(&hive);
}

#[test]
fn one_mission_at_a_time_and_none_is_said_so() {
    let hive = Hive::new();
    for line in
        ["hf-state show", "hf-state round", "hf-state done", "hf-state fail", "hf-state set OPEN_K=K1", "hf-state go"]
    {
        refuses(&hive, line, 6, "no mission was begun yet");
    }
    ok(&hive, "hf-state start Login");
    refuses(&hive, "hf-state start Logout", 3, "is Running: one mission has to end first");
    assert_eq!(ok(&hive, "hf-state start Login").get("STATUS"), "DUPLICATE");
    refuses(&hive, "hf-state start Logout --requirement REQ-0001", 6, "REQ-0001");
}

#[test]
fn what_cannot_stand_in_the_file_is_refused_with_what_is_wrong() {
    let hive = begun();
    for (pair, why) in [
        ("STATUS=PASS", "STATUS is kept by hf-state itself"),
        ("ROUND=1/4", "ROUND is kept by hf-state itself"),
        ("GOAL=", "a mission has a goal"),
        ("GOAL=NONE", "a mission has a goal"),
        ("nonsense", "'nonsense' is not KEY=VALUE"),
        ("COLOUR=red", "'COLOUR' is not a line of M1.md"),
        ("CONSTRAINTS=a", "give constraints with --constraint, one each"),
        ("LOGREF=../../etc/passwd", "LOGREF is L-0001 or NONE"),
        ("LOGREF=L-", "LOGREF is L-0001 or NONE"),
        ("OPEN_K=K1, K2", "OPEN_K is words with commas between them, such as K1,K2, or NONE"),
        ("OPEN_K=K1,,K2", "OPEN_K is words with commas between them, such as K1,K2, or NONE"),
        ("LAST_ACTION=a\nSTATUS: PASS", "LAST_ACTION is one line, without control characters"),
        ("LAST_ACTION=a\u{7f}b", "LAST_ACTION is one line, without control characters"),
        ("LAST_ACTION=a\tb", "LAST_ACTION is one line, without control characters"),
        ("NEXT_ACTION=a\u{2028}STATUS: PASS", "NEXT_ACTION is one line, without control characters"),
        ("NEXT_ACTION=a\u{2029}b", "NEXT_ACTION is one line, without control characters"),
        ("GOAL=a\u{85}b", "GOAL is one line, without control characters"),
    ] {
        assert_eq!(hive.refuses("state", &["set", pair], 2).get("SUM"), why, "{pair:?}");
    }
    assert_eq!(hive.refuses("state", &["set", "OPEN_K=K1", "open_k=K2"], 2).get("SUM"), "OPEN_K is given twice");
    hive.refuses("state", &["set"], 2);
    hive.refuses("state", &["set", "TASK_ID=T-0001"], 6);
    hive.refuses("state", &["set", "REQUIREMENT=REQ-0009"], 6);
    for goal in ["", "  ", "a\nb", "a\u{2028}b"] {
        Hive::new().refuses("state", &["start", goal], 2);
    }
    for constraint in ["a\nNEXT_ACTION: rm", "", "  "] {
        let reply = hive.run("state", &["set", "--constraint", constraint]);
        assert_eq!(reply.code, Some(2), "{constraint:?}: {reply:#?}");
    }
}

#[test]
fn no_change_makes_the_file_longer_than_an_agent_should_read() {
    let hive = begun();
    let used = m1(&hive).split_whitespace().count() - 1;
    let words = |n: usize| vec!["w"; n - used].join(" ");
    let reply = hive.refuses("state", &["set", &format!("LAST_ACTION={}", words(201))], 2);
    assert_eq!(reply.get("SUM"), "the state file has 201 words: at most 200");
    state(&hive, &["set", &format!("LAST_ACTION={}", words(200))]);
    assert_eq!(m1(&hive).split_whitespace().count(), 200);
    // Rounds and the end do not make it longer, and a longer last word is refused.
    for _ in 0..4 {
        state(&hive, &["round"]);
    }
    let longer = hive.refuses("state", &["done", &words(201)], 2);
    assert_eq!(longer.get("SUM"), "the state file has 201 words: at most 200");
    state(&hive, &["done", &words(200)]);
    // The same for a language without spaces, in bytes.
    let hive = begun();
    let room = 2000 - (m1(&hive).len() - "NONE".len());
    let long = format!("{}{}", "あ".repeat(room / 3), "x".repeat(room % 3));
    let reply = hive.refuses("state", &["set", &format!("NEXT_ACTION={long}x")], 2);
    assert_eq!(reply.get("SUM"), "the state file has 2001 bytes: at most 2000");
    state(&hive, &["set", &format!("NEXT_ACTION={long}")]);
    assert_eq!(m1(&hive).len(), 2000);
    state(&hive, &["round"]);
    state(&hive, &["fail"]);
    // A goal is measured from the first event on.
    let fresh = Hive::new();
    let reply = fresh.refuses("state", &["start", &"あ".repeat(1000)], 2);
    assert!(reply.get("SUM").starts_with("the state file has 3"), "{reply:#?}");
    assert_eq!(
        fresh.refuses("state", &["start", &"x".repeat(1001)], 2).get("SUM"),
        "GOAL has 1001 characters: at most 1000"
    );
    keeps_the_rules(&hive);
}

#[test]
fn there_are_three_constraints_at_most() {
    let hive = Hive::new();
    let four = ["--constraint", "a", "--constraint", "b", "--constraint", "c", "--constraint", "d"];
    let reply = hive.refuses("state", &[&["start", "Login"], &four[..]].concat(), 2);
    assert_eq!(reply.get("SUM"), "there are 4 constraints: at most 3");
    state(&hive, &[&["start", "Login"], &four[..6]].concat());
    assert_eq!(
        hive.refuses("state", &[&["set"], &four[..]].concat(), 2).get("SUM"),
        "there are 4 constraints: at most 3"
    );
    assert_eq!(state(&hive, &["show"]).all("CONSTRAINT"), ["a", "b", "c"]);
}

#[test]
fn rounds_are_counted_by_the_tool_and_end_at_the_fourth() {
    let hive = begun();
    for round in ["1/4", "2/4", "3/4", "4/4"] {
        assert_eq!(state(&hive, &["round"]).get("ROUND"), round);
        assert!(m1(&hive).contains(&format!("\nROUND: {round}\n")));
    }
    let reply = hive.refuses("state", &["round"], 3);
    assert_eq!(
        reply.stdout,
        "EXIT:3\nSTATUS:ROUND_LIMIT\nNEXT:ASK operator\nSUM:all 4 rounds are used\nREASON:round_limit\n"
    );
    assert!(m1(&hive).contains("\nROUND: 4/4\n"));
    keeps_the_rules(&hive);
}

#[test]
fn a_key_that_comes_again_gets_the_first_reply_whatever_happened_since() {
    let hive = Hive::new();
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
fn a_lost_session_is_told_what_to_run_if_that_is_known_to_be_safe() {
    let story = Story::new("");
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
         TASK_ID:T-0001\nLOGREF:L-0001\nOPEN_K:NONE\nROUND:0/4\nLAST_ACTION:NONE\nNEXT_ACTION:hf-state go\n"
    );
    go.open();
    assert_eq!(story.run_next(&reply).get("SUM"), "fine");
    assert_eq!(state(&story, &["show"]).get("NEXT"), "ACTION hf-state go", "and then what was written down");
    state(&story, &["done"]);
    assert_eq!(state(&story, &["show"]).get("NEXT"), "NONE");
    story.over();
}

#[test]
fn everything_that_must_be_read_to_go_on_has_200_words_at_most() {
    let story = Story::new("");
    let vault = story.vault().display().to_string();
    story.fire("true");
    state(&story, &["start", "Login"]);
    state(&story, &["set", "NEXT_ACTION=hf-task heartbeat T-0001@0000", "TASK_ID=T-0001"]);
    let free = 201 - m1(&story).split_whitespace().count();
    let words = vec!["w"; free].join(" ");
    state(&story, &["set", &format!("LAST_ACTION={words}")]);
    assert_eq!(m1(&story).split_whitespace().count(), 200);
    for args in [&["show"][..], &["show", "--vault", &vault]] {
        let reply = state(&story, args);
        assert!(reply.get("NEXT").starts_with("ACTION "));
        let words = reply.stdout.split_whitespace().count();
        assert!(words <= 200, "{words}: {}", reply.stdout);
    }
    story.poll("T-0001");
    story.over();
}

#[test]
fn a_file_that_a_killed_command_left_behind_is_made_again_without_a_word() {
    let hive = begun();
    let old = (m1(&hive), fs::read(hive.akashic("m1.json")).unwrap());
    let file = hive.vault().join("Autonomous/state/M1.md");
    state(&hive, &["set", "OPEN_K=K1"]);
    let (new, seal) = (m1(&hive), fs::read(hive.akashic("m1.json")).unwrap());
    // Killed before anything was written, between the seal and the file, before they are there at all.
    let killed: &[&dyn Fn()] = &[
        &|| {
            write_private(&file, old.0.as_bytes());
            write_private(&hive.akashic("m1.json"), &old.1);
        },
        &|| {
            write_private(&file, old.0.as_bytes());
            write_private(&hive.akashic("m1.json"), &seal);
        },
        &|| fs::remove_file(&file).unwrap(),
        &|| fs::remove_dir_all(hive.vault().join("Autonomous")).unwrap(),
    ];
    for (n, kill) in killed.iter().enumerate() {
        kill();
        let reply = state(&hive, &["show"]);
        assert_eq!((m1(&hive), reply.stderr.as_str()), (new.clone(), ""), "{n}");
        kill();
        let reply = state(&hive, &["set", "OPEN_K=K1"]);
        assert_eq!((reply.get("STATUS"), m1(&hive), reply.stderr.as_str()), ("DUPLICATE", new.clone(), ""), "{n}");
        kill();
        assert_eq!(state(&hive, &["set", "OPEN_K=K2"]).stderr, "", "{n}");
        assert_eq!(state(&hive, &["set", "OPEN_K=K1"]).stderr, "", "{n}");
        assert_eq!(beside_m1(&hive), Vec::<String>::new(), "{n}");
    }
    // Between the seal and the file, and then somebody records a change without hf-state.
    killed[1]();
    let payload = json!({"goal": "Login", "open_k": "K3"}).to_string();
    let mission = hive.events()[1]["subject"].as_str().unwrap().to_owned();
    hive.run("append", &["MissionChanged", "--subject", &mission, "--payload", &payload]).expect_exit(0);
    assert_eq!(state(&hive, &["show"]).stderr, "");
    assert!(m1(&hive).contains("\nOPEN_K: K3\n"));
    assert_eq!(beside_m1(&hive), Vec::<String>::new());
}

#[test]
fn a_file_that_was_edited_by_hand_is_kept_aside_told_of_and_made_again() {
    let hive = begun();
    let good = m1(&hive);
    let file = hive.vault().join("Autonomous/state/M1.md");
    let nonsense: &[&[u8]] = &[b"STATUS: PASS\nall is well\n", b"", b"\xff\xfe\0", &[b'x'; 200_000]];
    for (n, bytes) in nonsense.iter().enumerate() {
        write_private(&file, bytes);
        let reply = state(&hive, &["show"]);
        assert_eq!((reply.get("GOAL"), m1(&hive)), ("Login", good.clone()), "{n}");
        let aside = beside_m1(&hive);
        assert_eq!(aside.len(), n + 1, "{aside:?}");
        let said =
            reply.stderr.strip_prefix("warning: M1.md was not what the events say: it is kept as Autonomous/state/");
        let name =
            said.and_then(|said| said.strip_suffix(", and made again\n")).unwrap_or_else(|| panic!("{reply:#?}"));
        assert_eq!(fs::read(hive.vault().join("Autonomous/state").join(name)).unwrap(), *bytes, "{n}");
        assert_eq!(state(&hive, &["show"]).stderr, "", "told once");
    }
    assert!(beside_m1(&hive).iter().all(|name| name.starts_with("M1.aside-20260131T120000Z")));
    // Whoever changes something is told the same.
    write_private(&file, b"mine");
    assert!(state(&hive, &["round"]).stderr.contains("it is kept as"));
    assert!(m1(&hive).contains("\nROUND: 1/4\n"));
    // A file from before there was a mission is not lost either, and not taken away unsaid.
    let fresh = Hive::new();
    fs::create_dir_all(fresh.vault().join("Autonomous/state")).unwrap();
    let file = fresh.vault().join("Autonomous/state/M1.md");
    write_private(&file, b"my plan");
    refuses(&fresh, "hf-state show", 6, "no mission was begun yet");
    assert!(state(&fresh, &["start", "Login"]).stderr.contains("it is kept as"));
    assert_eq!(beside_m1(&fresh).len(), 1);
    keeps_the_rules(&hive);
}

#[test]
fn another_users_vault_shows_its_mission() {
    let hive = begun();
    state(&hive, &["set", "OPEN_K=K1"]);
    fs::remove_file(hive.vault().join("Autonomous/state/M1.md")).unwrap();
    if chown(hive.vault(), Some(rustix::process::geteuid().as_raw() + 1), None).is_err() {
        eprintln!("not root: another user's vault cannot be made here, so only root's run shows this");
        return;
    }
    let before = hive.contents();
    let reply = state(&hive, &["show"]);
    assert_eq!((reply.get("GOAL"), reply.get("OPEN_K")), ("Login", "K1"));
    assert!(reply.stderr.contains("M1.md could not be looked after"), "{reply:#?}");
    assert!(hive.contents() == before);
    assert_eq!(hive.refuses("state", &["round"], 3).get("REASON"), "not_owner");
}

#[test]
fn the_same_rules_hold_for_whoever_appends_by_hand_and_a_log_that_broke_them_is_found() {
    let hive = begun();
    let mission = hive.events()[1]["subject"].as_str().unwrap().to_owned();
    let append = |kind: &str, payload: Value, code: i32| {
        let reply = hive.refuses("append", &[kind, "--subject", &mission, "--payload", &payload.to_string()], code);
        reply.get("SUM").to_owned()
    };
    let long = vec!["w"; 200].join(" ");
    for (kind, payload, code, why) in [
        ("MissionChanged", json!({"goal": "a\nb"}), 2, "GOAL is one line, without control characters"),
        ("MissionChanged", json!({"goal": long}), 2, "the state file has 217 words: at most 200"),
        ("MissionChanged", json!({"open_k": "K1"}), 2, "MissionChanged needs payload.goal: a text that is not empty"),
        (
            "MissionChanged",
            json!({"goal": "a", "constraints": ["a", "b", "c", "d"]}),
            2,
            "there are 4 constraints: at most 3",
        ),
        (
            "MissionChanged",
            json!({"goal": "a", "constraints": ["a\u{2028}b"]}),
            2,
            "a constraint is one line, without control characters",
        ),
        ("MissionChanged", json!({"goal": "a", "constraints": [""]}), 2, "a constraint is empty"),
        ("MissionRoundBegun", json!({"round": 2}), 2, "the next round is 1"),
        ("MissionPassed", json!({"last_action": "a\nb"}), 2, "LAST_ACTION is one line, without control characters"),
    ] {
        assert_eq!(append(kind, payload, code), why);
    }
    let reply = hive.refuses("append", &["MissionStarted", "--payload", r#"{"goal":"b"}"#], 3);
    assert!(reply.get("SUM").ends_with("is Running: one mission has to end first"));
    let found = found_behind(
        &hive,
        vec![
            ("user:jo", Kind::MissionChanged, &mission, json!({"goal": "a\nb"})),
            ("user:jo", Kind::MissionChanged, &mission, json!({"goal": "a", "constraints": ["a", "b", "c", "d"]})),
            ("user:jo", Kind::MissionRoundBegun, &mission, json!({"round": 4})),
            ("user:jo", Kind::MissionStarted, "mission:other", json!({"goal": "b"})),
        ],
    );
    assert_eq!(found.len(), 4, "{found:#?}");
    for (found, why) in
        found.iter().zip(["GOAL is one line", "there are 4 constraints", "the next round is 1", "is Running"])
    {
        assert!(found.contains(why), "{found} / {why}");
    }
}

// ---------------------------------------------------------------------------------------------
// hf-state go

/// Settings with a runner and a fixer; either can be left out.
fn commands(runner: &str, fixer: &str) -> String {
    let section = |name: &str, command: &str| match command {
        "" => String::new(),
        command => format!("{name}:\n  command: {}\n", json!(command)),
    };
    section("runner", runner) + &section("fixer", fixer)
}

/// A mission whose requirement is approved.
fn mission(runner: &str, fixer: &str) -> Story {
    let story = Story::new(&commands(runner, fixer));
    approved(&story);
    state(&story, &["start", "Login"]);
    story
}

/// Lines that commands left in a file beside the vault.
fn lines(story: &Story, name: &str) -> Vec<String> {
    let text = fs::read_to_string(story.dir().join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Fails, and says so, before the given round.
fn until(round: u32) -> String {
    format!(
        "echo $HF_ROUND >>ran; test $HF_ROUND -ge {round} && echo All tests passed && exit; echo broken $HF_ROUND >&2; exit 1"
    )
}

const FIX: &str = "read line; echo \"$HF_ROUND $line\" >>fixed";

#[test]
fn a_mission_goes_to_its_end_without_a_hand() {
    let story = mission("echo \"$HF_MISSION|$HF_ROUND|$HF_GOAL|$PWD\" >>ran; echo All tests passed", "");
    let reply = story.run("state", &["go"]).expect_exit(0);
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:round 1: All tests passed\nM1_STATUS:PASS\nTASK_ID:T-0001\nROUND:1/4\n"
    );
    assert_eq!(
        mask(&m1(&story)),
        "STATUS: PASS\nGOAL: Login\nCONSTRAINTS:\nCURRENT:\n  TASK_ID: T-0001\n  LOGREF: L-0001\nOPEN_K: NONE\n\
         ROUND: 1/4\nLAST_ACTION: round 1: All tests passed\nNEXT_ACTION: NONE\n"
    );
    let ran = lines(&story, "ran");
    assert_eq!(
        ran.iter().map(|line| mask(line)).collect::<Vec<_>>(),
        [format!("M-0001|1|Login|{}", story.dir().display())]
    );
    let before = story.contents();
    let again = story.run("state", &["go"]).expect_exit(0);
    assert_eq!(again.stdout, reply.stdout, "and says so again");
    assert!(story.contents() == before);
    assert_eq!(lines(&story, "ran").len(), 1);
    story.over();
}

#[test]
fn a_failure_goes_to_the_fixer_and_the_work_is_done_again() {
    let story = mission(&until(3), FIX);
    let reply = story.run("state", &["go"]).expect_exit(0);
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:DONE\nNEXT:NONE\nSUM:round 3: All tests passed\nM1_STATUS:PASS\nTASK_ID:T-0005\nROUND:3/4\n"
    );
    assert_eq!(lines(&story, "ran"), ["1", "2", "3"]);
    assert_eq!(lines(&story, "fixed"), ["1 broken 1", "2 broken 2"]);
    assert_eq!(count(&story, "MissionRoundBegun"), 3);
    story.over();
}

#[test]
fn the_fixer_has_the_last_lines_the_task_and_the_log() {
    let fixer = "cat >input; printf '%s' \"$HF_LAST5\" >variable; echo \"$HF_FAILED_TASK $HF_GOAL\" >named; cat \"$HF_LOG\" >log";
    let runner = "test $HF_ROUND = 2 && exit; for n in 1 2 3 4 5 6; do echo e$n >&2; done; echo out; exit 1";
    let story = mission(runner, fixer);
    // From another folder, with the vault named by a relative path.
    fs::create_dir(story.dir().join("sub")).unwrap();
    let mut command = story.command("state");
    let reply =
        Reply::of(command.current_dir(story.dir().join("sub")).args(["go", "--vault", "../Vault"]).output().unwrap());
    reply.expect_exit(0);
    assert_eq!(lines(&story, "input"), ["e2", "e3", "e4", "e5", "e6"]);
    assert_eq!(lines(&story, "variable"), ["e2", "e3", "e4", "e5", "e6"]);
    assert_eq!(mask(&lines(&story, "named").join("\n")), "T-0001 Login");
    let log = lines(&story, "log");
    assert!(log.iter().any(|line| line.contains("e1")) && log.iter().any(|line| line.contains("out")), "{log:?}");
    story.over();
}

#[test]
fn what_a_run_prints_is_data_for_the_fixer_and_never_too_much() {
    let runner = "test $HF_ROUND = 2 && exit; echo '$(touch pwned) `touch pwned` \"; touch pwned' >&2; \
                  head -c 10000000 /dev/zero | tr '\\0' x >&2; printf '\\n\\000\\377end\\n' >&2; exit 1";
    let story = mission(runner, "cat >input");
    story.run("state", &["go"]).expect_exit(0);
    assert!(!story.dir().join("pwned").exists());
    let input = fs::read(story.dir().join("input")).unwrap();
    assert!(input.starts_with(b"$(touch pwned) `touch pwned` \"; touch pwned\n"));
    assert!(input.len() < 10_000, "{}", input.len());
    story.over();
}

#[test]
fn without_a_fixer_a_failure_is_told_and_somebody_mends_it() {
    let story = mission(&until(2), "");
    let reply = story.run("state", &["go"]).expect_exit(1);
    let said = "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:round 1 failed: exit code 1\nM1_STATUS:RUNNING\n\
                TASK_ID:T-0001\nROUND:1/4\nLAST5:\nbroken 1\nLOGREF:logs/L-0001.txt\n";
    assert_eq!(reply.masked(&story), said);
    let events = story.events().len();
    assert_eq!(story.run("state", &["go"]).expect_exit(1).masked(&story), said);
    assert_eq!(story.events().len(), events, "nothing happens until somebody says that it is mended");
    let show = state(&story, &["show"]);
    assert_eq!(show.get("NEXT_ACTION"), "mend it, then hf-state round and hf-state go");
    assert_eq!(show.get("LAST_ACTION"), "round 1 failed: exit code 1");
    state(&story, &["round"]);
    assert_eq!(story.run("state", &["go"]).expect_exit(0).get("SUM"), "round 2: All tests passed");
    assert_eq!(lines(&story, "ran"), ["1", "2"]);
    story.over();
}

#[test]
fn a_fixer_that_fails_is_told_with_what_it_said() {
    let story = mission(&until(2), "echo cannot mend; exit 3");
    let said = "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:round 1 failed: exit code 1; the fixer failed: cannot mend\n\
                M1_STATUS:RUNNING\nTASK_ID:T-0002\nROUND:1/4\nLAST5:\nbroken 1\nLOGREF:logs/L-0001.txt\n";
    assert_eq!(story.run("state", &["go"]).expect_exit(1).masked(&story), said);
    let (events, file) = (story.events().len(), m1(&story));
    assert_eq!(story.run("state", &["go"]).expect_exit(1).masked(&story), said);
    assert_eq!((story.events().len(), m1(&story)), (events, file), "nothing is done again");
    state(&story, &["round"]);
    story.run("state", &["go"]).expect_exit(0);
    assert_eq!(lines(&story, "ran"), ["1", "2"]);
    story.over();
}

#[test]
fn after_four_rounds_an_operator_is_asked_and_the_reply_can_be_had_again() {
    let story = mission(&until(9), FIX);
    let reply = story.run("state", &["go"]).expect_exit(3);
    assert_eq!(
        reply.masked(&story),
        "EXIT:3\nSTATUS:ROUND_LIMIT\nNEXT:ASK operator\nSUM:round 4 failed: exit code 1\nM1_STATUS:FAIL\n\
         TASK_ID:T-0007\nROUND:4/4\nLAST5:\nbroken 4\nLOGREF:logs/L-0007.txt\n"
    );
    assert_eq!(lines(&story, "ran"), ["1", "2", "3", "4"]);
    assert_eq!(lines(&story, "fixed"), ["1 broken 1", "2 broken 2", "3 broken 3"]);
    let events = story.events().len();
    // Whoever was killed before he could read it asks again.
    assert_eq!(story.run("state", &["go"]).expect_exit(3).stdout, reply.stdout);
    assert_eq!(story.events().len(), events);
    story.over();
}

#[test]
fn a_mission_that_somebody_gave_up_is_not_out_of_rounds() {
    let story = mission("true", "");
    state(&story, &["fail", "not wanted any more"]);
    let reply = story.run("state", &["go"]).expect_exit(1);
    assert_eq!(
        reply.masked(&story),
        "EXIT:1\nSTATUS:FAIL\nNEXT:ASK operator\nSUM:not wanted any more\nM1_STATUS:FAIL\nTASK_ID:NONE\nROUND:0/4\n"
    );
    story.over();
}

#[test]
fn what_is_missing_is_said_before_anything_is_recorded() {
    let story = Story::new(&commands("true", ""));
    state(&story, &["start", "Login"]);
    let reply = story.refuses("state", &["go"], 3);
    assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("APPROVAL_REQUIRED", "ASK operator"));
    assert!(reply.get("SUM").ends_with("names no requirement that an operator approved"), "{reply:#?}");
    ok(&story, "hf-require propose Login");
    ok(&story, "hf-state set REQUIREMENT=REQ-0001");
    ok(&story, "hf-require analyze REQ-0001 Easy.");
    let reply = story.refuses("state", &["go"], 3);
    assert!(reply.get("SUM").ends_with("needs an operator's approval (requirement_approval) first"), "{reply:#?}");
    ok(&story, "hf-decide reject DEC-0001 --reason no");
    assert_eq!(story.refuses("state", &["go"], 3).get("STATUS"), "APPROVAL_REQUIRED");
    story.over();
    // Two that are approved: somebody has to say which.
    let story = Story::new(&commands("true", ""));
    story.approved("requirement:a", "A");
    story.approved("requirement:b", "B");
    state(&story, &["start", "Login"]);
    story.refuses("state", &["go"], 3);
    state(&story, &["set", "REQUIREMENT=REQ-0002"]);
    story.run("state", &["go"]).expect_exit(0);
    story.over();
    // No runner.
    let story = mission("", "");
    let reply = story.refuses("state", &["go"], 2);
    assert_eq!(reply.get("SUM"), "runner.command is not set");
    story.over();
}

#[test]
fn a_run_that_takes_longer_than_a_call_may_is_waited_for_by_the_next() {
    let story = mission("echo $HF_ROUND >>ran; read x <go; echo over", "");
    let mut gate = story.gate("go");
    let reply = story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    assert_eq!(
        reply.masked(&story),
        "EXIT:0\nSTATUS:RUNNING\nNEXT:ACTION hf-state go\nSUM:T-0001: Still running\nM1_STATUS:RUNNING\n\
         TASK_ID:T-0001\nROUND:1/4\n"
    );
    let show = state(&story, &["show"]);
    assert_eq!((show.get("NEXT"), show.get("NEXT_ACTION")), ("ACTION hf-poll T-0001", "hf-state go"));
    // Told to end, it says the same and the run goes on.
    let child = waiting(&story, "state", &["go"]);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(Reply::of(child.wait_with_output().unwrap()).masked(&story), reply.masked(&story));
    let events = story.events().len();
    let child = waiting(&story, "state", &["go"]);
    gate.open();
    let done = Reply::of(child.wait_with_output().unwrap()).expect_exit(0);
    assert_eq!(done.get("SUM"), "round 1: over");
    assert_eq!(lines(&story, "ran"), ["1"]);
    assert!(story.events().len() > events);
    story.over();
}

#[test]
fn two_at_once_do_everything_once() {
    let story = mission(&until(3), FIX);
    let replies = thread::scope(|scope| {
        let go = || scope.spawn(|| story.run("state", &["go"]));
        [go(), go(), go()].map(|go| go.join().unwrap())
    });
    for reply in replies {
        assert_eq!(reply.expect_exit(0).get("SUM"), "round 3: All tests passed");
    }
    assert_eq!(lines(&story, "ran"), ["1", "2", "3"]);
    assert_eq!(lines(&story, "fixed"), ["1 broken 1", "2 broken 2"]);
    assert_eq!((count(&story, "MissionRoundBegun"), count(&story, "MissionPassed")), (3, 1));
    story.over();
}

/// Starts `hf-state go`, kills it after so many milliseconds if it has not ended by then, and says
/// whether it had.
fn go_for(story: &Story, millis: i64) -> Option<Reply> {
    let go: Child = story.process("state").arg("go").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_child(&go);
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let time = Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 };
    if !comes(&process, &time) {
        kill_process(pid, Signal::KILL).unwrap();
    }
    let output = go.wait_with_output().unwrap();
    output.status.code().map(|_| Reply::of(output))
}

#[test]
fn killed_anywhere_and_started_again_it_does_nothing_twice() {
    for first in [1, 4] {
        let story = mission(&until(3), FIX);
        let mut millis = first;
        let reply = loop {
            match go_for(&story, millis) {
                Some(reply) => break reply,
                None => millis += 3,
            }
        };
        assert_eq!(reply.expect_exit(0).get("SUM"), "round 3: All tests passed");
        assert_eq!(lines(&story, "ran"), ["1", "2", "3"]);
        assert_eq!(lines(&story, "fixed"), ["1 broken 1", "2 broken 2"]);
        assert_eq!((count(&story, "MissionRoundBegun"), count(&story, "MissionPassed")), (3, 1));
        assert_eq!(state(&story, &["show"]).get("M1_STATUS"), "PASS");
        assert_eq!(beside_m1(&story), Vec::<String>::new());
        // What a killed writer wrote beside its place may lie about; nothing else may.
        story.gone();
        keeps_the_rules(&story);
    }
}

#[test]
fn started_again_while_the_fixer_works_it_records_nothing_anew() {
    let story = mission(&until(2), "echo $HF_ROUND >>fixed; echo here >told; read x <go");
    let (mut told, mut gate) = (story.gate("told"), story.gate("go"));
    story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    assert_eq!(told.line(), "here");
    story.run("state", &["go", "--max", "1s"]).expect_exit(0);
    let before = (m1(&story), count(&story, "MissionChanged"));
    assert!(before.0.contains("TASK_ID: T-0002\n"), "{}", before.0);
    for _ in 0..2 {
        story.run("state", &["go", "--max", "1s"]).expect_exit(0);
        assert_eq!((m1(&story), count(&story, "MissionChanged")), before);
    }
    gate.open();
    story.run("state", &["go"]).expect_exit(0);
    assert_eq!(
        (lines(&story, "ran"), lines(&story, "fixed")),
        (vec!["1".to_owned(), "2".to_owned()], vec!["1".to_owned()])
    );
    story.over();
}

#[test]
fn a_run_that_is_lost_is_begun_anew_in_the_next_round() {
    let story = mission("echo $HF_ROUND >>ran; test $HF_ROUND = 2 && exit; echo here >told; read x <go", FIX);
    let (mut told, _gate) = (story.gate("told"), story.gate("go"));
    let child = waiting(&story, "state", &["go"]);
    told.line();
    let [supervisor, _] = story.pids("T-0001");
    kill(supervisor, Signal::KILL);
    let reply = Reply::of(child.wait_with_output().unwrap());
    let reply = match reply.get("STATUS") {
        // The command may outlive its supervisor for a moment.
        "RUNNING" => story.run("state", &["go"]),
        _ => reply,
    };
    assert_eq!(reply.expect_exit(0).get("ROUND"), "2/4");
    assert_eq!(lines(&story, "ran"), ["1", "2"]);
    assert_eq!(lines(&story, "fixed"), Vec::<String>::new(), "there was nothing to mend");
    story.over();
}

#[test]
fn a_runner_that_may_destroy_something_waits_for_an_operator_and_says_so_at_once() {
    let settings = commands("echo deploy $HF_ROUND >>ran", "echo fixed >>fixed")
        + "governance:\n  destructive_commands: ['sh -c *deploy*']\n";
    for approve in [true, false] {
        let story = Story::new(&settings);
        approved(&story);
        state(&story, &["start", "Login"]);
        // Without a limit of its own it would wait for minutes.
        let reply = story.run("state", &["go"]).expect_exit(3);
        assert_eq!(
            reply.masked(&story),
            "EXIT:3\nSTATUS:APPROVAL_REQUIRED\nNEXT:ASK operator\nSUM:T-0001: Waiting for an operator's approval\n\
             M1_STATUS:RUNNING\nTASK_ID:T-0001\nROUND:1/4\n"
        );
        assert_eq!(lines(&story, "ran"), Vec::<String>::new());
        if approve {
            ok(&story, "hf-decide approve DEC-0002");
            story.run("state", &["go"]).expect_exit(0);
            assert_eq!(lines(&story, "ran"), ["deploy 1"]);
        } else {
            ok(&story, "hf-decide reject DEC-0002 --reason no");
            let reply = story.run("state", &["go"]).expect_exit(1);
            assert_eq!(reply.get("SUM"), "round 1 failed: an operator said no");
            assert_eq!((lines(&story, "ran").len(), lines(&story, "fixed").len()), (0, 0), "nobody mends a no");
        }
        story.over();
    }
}

#[test]
fn a_stop_ends_the_work_and_nothing_begins_while_it_holds() {
    let story = mission("echo $HF_ROUND >>ran; test $HF_ROUND = 2 && exit; echo here >told; read x <go", FIX);
    let (mut told, _gate) = (story.gate("told"), story.gate("go"));
    let child = waiting(&story, "state", &["go"]);
    told.line();
    ok(&story, "hf-stop fire");
    let reply = Reply::of(child.wait_with_output().unwrap()).expect_exit(3);
    assert_eq!(
        reply.stdout,
        "EXIT:3\nSTATUS:REFUSED\nNEXT:ASK operator\nSUM:everything is stopped: fire\nREASON:system_stopped\n"
    );
    story.gone();
    story.refuses("state", &["go"], 3);
    assert_eq!((lines(&story, "ran").len(), lines(&story, "fixed").len()), (1, 0));
    assert_eq!(state(&story, &["show"]).get("ROUND"), "1/4");
    ok(&story, "hf-resume --system");
    assert_eq!(story.run("state", &["go"]).expect_exit(0).get("ROUND"), "2/4");
    assert_eq!((lines(&story, "ran"), lines(&story, "fixed").len()), (vec!["1".to_owned(), "2".to_owned()], 0));
    story.over();
}

#[test]
fn a_run_that_somebody_cancelled_is_nothing_to_mend() {
    let story = mission("echo $HF_ROUND >>ran; echo here >told; read x <go", FIX);
    let (mut told, _gate) = (story.gate("told"), story.gate("go"));
    let child = waiting(&story, "state", &["go"]);
    told.line();
    ok(&story, "hf-job cancel T-0001");
    let reply = Reply::of(child.wait_with_output().unwrap()).expect_exit(1);
    assert_eq!(
        (reply.get("STATUS"), reply.get("NEXT"), reply.get("SUM")),
        ("FAIL", "PATCH", "round 1 failed: cancelled")
    );
    assert_eq!(lines(&story, "fixed"), Vec::<String>::new());
    story.over();
}

#[test]
fn a_mission_that_ended_while_its_run_was_waited_for_is_not_mixed_up_with_the_next() {
    for script in ["echo here >told; read x <go", "echo here >told; read x <go; exit 1"] {
        let story = mission(script, "");
        let (mut told, mut gate) = (story.gate("told"), story.gate("go"));
        let child = waiting(&story, "state", &["go"]);
        told.line();
        state(&story, &["fail", "given up"]);
        state(&story, &["start", "Another"]);
        let other = m1(&story);
        gate.open();
        let reply = Reply::of(child.wait_with_output().unwrap()).expect_exit(1);
        assert_eq!((reply.get("M1_STATUS"), reply.get("SUM")), ("FAIL", "given up"), "{reply:#?}");
        assert_eq!(m1(&story), other, "the other one is as it was");
        story.over();
    }
}

#[test]
fn a_round_does_not_begin_beside_the_run_of_the_one_before() {
    let story = mission("read x <go", "");
    let mut go = story.gate("go");
    assert_eq!(story.run("state", &["go", "--max", "1s"]).expect_exit(0).get("STATUS"), "RUNNING");
    let refused = story.run("state", &["round"]).expect_exit(3);
    assert_eq!(
        (refused.get("REASON"), refused.get("SUM")),
        ("not_ready", "T-0001 is Running: a round begins when the one before is over",)
    );
    go.open();
    assert_eq!(story.run("state", &["go"]).expect_exit(0).get("STATUS"), "DONE");
    story.over();
}
