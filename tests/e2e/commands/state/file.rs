//! The state file: its text, its length, and what happens when it is lost or edited.

use std::fs;
use std::os::unix::fs::chown;

use serde_json::json;

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{keeps_the_rules, kinds_since, ok, refuses};
use crate::support::test_vault::{TestVault, mask, write_private};

use super::{begun, beside_m1, m1, state};

#[test]
fn the_state_file_matches_the_specification_and_is_rewritten_with_every_change() {
    let hive = TestVault::new();
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
    refuses(&hive, "hf-state fail", 3, "is Passed, which is final");
    refuses(&hive, "hf-state set OPEN_K=K1", 3, "is Passed, which is final");
    refuses(&hive, "hf-state round", 3, "is Passed, which is final");
    assert_eq!(ok(&hive, "hf-state done").get("STATUS"), "DUPLICATE");
    ok(&hive, "hf-state start Another");
    assert_eq!(ok(&hive, "hf-state fail").get("M1_STATUS"), "FAIL");
    assert!(m1(&hive).starts_with("STATUS: FAIL\nGOAL: Another\n"));
    assert_eq!(beside_m1(&hive), Vec::<String>::new());
    keeps_the_rules(&hive);
}

#[test]
fn no_change_makes_the_state_file_too_long() {
    let hive = begun();
    let used = m1(&hive).split_whitespace().count() - 1;
    let words = |n: usize| vec!["w"; n - used].join(" ");
    let reply = hive.refuses("state", &["set", &format!("LAST_ACTION={}", words(201))], 2);
    assert_eq!(reply.get("SUM"), "the state file has 201 words; at most 200");
    state(&hive, &["set", &format!("LAST_ACTION={}", words(200))]);
    assert_eq!(m1(&hive).split_whitespace().count(), 200);
    // Rounds and the end do not make it longer, and a longer last word is refused.
    for _ in 0..4 {
        state(&hive, &["round"]);
    }
    let longer = hive.refuses("state", &["done", &words(201)], 2);
    assert_eq!(longer.get("SUM"), "the state file has 201 words; at most 200");
    state(&hive, &["done", &words(200)]);
    // The same for a language without spaces, in bytes.
    let hive = begun();
    let room = 2000 - (m1(&hive).len() - "NONE".len());
    let long = format!("{}{}", "あ".repeat(room / 3), "x".repeat(room % 3));
    let reply = hive.refuses("state", &["set", &format!("NEXT_ACTION={long}x")], 2);
    assert_eq!(reply.get("SUM"), "the state file has 2001 bytes; at most 2000");
    state(&hive, &["set", &format!("NEXT_ACTION={long}")]);
    assert_eq!(m1(&hive).len(), 2000);
    state(&hive, &["round"]);
    state(&hive, &["fail"]);
    // A goal is measured from the first event on.
    let fresh = TestVault::new();
    let reply = fresh.refuses("state", &["start", &"あ".repeat(1000)], 2);
    assert!(reply.get("SUM").starts_with("the state file has 3"), "{reply:#?}");
    assert_eq!(
        fresh.refuses("state", &["start", &"x".repeat(1001)], 2).get("SUM"),
        "GOAL has 1001 characters; at most 1000"
    );
    keeps_the_rules(&hive);
}

#[test]
fn the_context_needed_to_continue_is_at_most_200_words() {
    let story = TestJobVault::new("");
    let vault = story.vault().display().to_string();
    story.fire("true");
    state(&story, &["start", "Login"]);
    state(&story, &["set", "NEXT_ACTION=hf-task heartbeat T-0001@0000", "TASK_ID=T-0001", "LAST_ACTION=w"]);
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
fn a_state_file_left_stale_by_a_killed_command_is_silently_rebuilt() {
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
fn a_hand_edited_state_file_is_set_aside_reported_and_rebuilt() {
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
        let said = reply.stderr.strip_prefix("warning: M1.md did not match the events; kept it as Autonomous/state/");
        let name = said.and_then(|said| said.strip_suffix(" and rewrote it\n")).unwrap_or_else(|| panic!("{reply:#?}"));
        assert_eq!(fs::read(hive.vault().join("Autonomous/state").join(name)).unwrap(), *bytes, "{n}");
        assert_eq!(state(&hive, &["show"]).stderr, "", "told once");
    }
    assert!(beside_m1(&hive).iter().all(|name| name.starts_with("M1.aside-20260131T120000Z")));
    // A command that changes something says the same.
    write_private(&file, b"mine");
    assert!(state(&hive, &["round"]).stderr.contains("kept it as"));
    assert!(m1(&hive).contains("\nROUND: 1/4\n"));
    // A file from before there was a mission is not lost either, and not taken away unsaid.
    let fresh = TestVault::new();
    fs::create_dir_all(fresh.vault().join("Autonomous/state")).unwrap();
    let file = fresh.vault().join("Autonomous/state/M1.md");
    write_private(&file, b"my plan");
    refuses(&fresh, "hf-state show", 6, "no mission yet; hf-state start begins one");
    assert!(state(&fresh, &["start", "Login"]).stderr.contains("kept it as"));
    assert_eq!(beside_m1(&fresh).len(), 1);
    keeps_the_rules(&hive);
}

#[test]
fn a_mission_can_be_read_in_another_users_vault() {
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
    assert!(reply.stderr.contains("cannot check M1.md"), "{reply:#?}");
    assert!(hive.contents() == before);
    assert_eq!(hive.refuses("state", &["round"], 3).get("REASON"), "not_owner");
}
