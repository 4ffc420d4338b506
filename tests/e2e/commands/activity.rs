//! hf-activity: what was done, and the duty to look inward after deep work.

use std::fs;

use crate::support::steps::{count, kinds_since, ok, refuses, sh};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::{all_is_well, at, beat, configured, file, moment, tick};

/// Logs something that is no introspection; gives whether one is due now.
fn log(hive: &TestVault) -> String {
    ok(hive, "hf-activity --kind thinking").get("INTROSPECTION_DUE").to_owned()
}

#[test]
fn a_log_is_filed_under_the_current_id_and_never_overwrites_another() {
    let mut hive = TestVault::new();
    tick(&mut hive, 0);
    let first =
        hive.pipe("activity", &["--kind", "creating", "--title", "三人目", "-"], "Story.\nMore.\n\n").expect_exit(0);
    assert_eq!(
        first.stdout,
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:activity logged\nHEARTBEAT_ID:20260131120000\n\
         FILE:20260131120000.md\nINTROSPECTION_DUE:no\n"
    );
    assert_eq!(
        fs::read_to_string(file(&hive, "activity/20260131120000.md")).unwrap(),
        "---\nkind: creating\nheartbeat_id: 20260131120000\nagent: main\ncreated_at: 2026-01-31T12:00:00Z\n\
         title: 三人目\n---\n\nStory.\nMore.\n"
    );
    fs::write(hive.dir().join("log.md"), "From a file").unwrap();
    assert_eq!(ok(&hive, "hf-activity --kind thinking --file log.md").get("FILE"), "20260131120000_2.md");
    assert_eq!(ok(&hive, "hf-activity --kind thinking").get("FILE"), "20260131120000_3.md");
    assert!(fs::read_to_string(file(&hive, "activity/20260131120000_2.md")).unwrap().ends_with("---\n\nFrom a file\n"));
    all_is_well(&hive);
}

#[test]
fn activity_refuses_input_that_is_not_a_log() {
    let hive = TestVault::new();
    for (line, why) in [
        ("hf-activity", "--kind"),
        ("hf-activity --kind a/b", "invalid kind; it must be one word"),
        ("hf-activity --kind thinking --file nowhere.md", "nowhere.md"),
        ("hf-activity --kind thinking --file a -", "cannot be used with"),
        ("hf-activity --kind thinking --agent a/b", "an agent name"),
    ] {
        refuses(&hive, line, 2, why);
    }
    hive.refuses("activity", &["--kind", "thinking", "--title", "a\nb"], 2);
    hive.refuses("activity", &["--kind", "thinking", "--emergency", ""], 2);
    hive.refuses_input("activity", &["--kind", "thinking", "-"], "x".repeat(1024 * 1024 + 1), 2);
    assert_eq!(sh(&TestVault::empty(), "hf-activity --kind thinking").expect_exit(7).get("STATUS"), "NO_VAULT");
}

#[test]
fn a_log_completes_open_deep_work_and_the_next_log_must_introspect() {
    let hive = TestVault::new();
    ok(&hive, "hf-deepwork start --flexible Long");
    let closing = ok(&hive, "hf-activity --kind creating");
    assert_eq!(
        closing.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ACTION hf-activity --kind introspection\nSUM:activity logged\n\
         HEARTBEAT_ID:20260131120000\nFILE:20260131120000.md\nCOMPLETED:DW-0001\nINTROSPECTION_DUE:yes\n"
    );
    assert!(file(&hive, "deep_work/20260131120000.completed.txt").exists());
    assert!(!file(&hive, "deep_work/20260131120000.txt").exists());
    assert_eq!(hive.run_next(&closing).expect_exit(0).get("INTROSPECTION_DUE"), "no");
    assert_eq!(log(&hive), "no");
    all_is_well(&hive);
}

#[test]
fn introspection_is_due_however_deep_work_ends() {
    for how in ["log", "complete", "expiry"] {
        let mut hive = configured("");
        ok(&hive, "hf-activity --kind introspection");
        ok(&hive, "hf-deepwork start --strict 5 Long");
        hive.at(&moment(301).to_string());
        match how {
            "complete" => drop(ok(&hive, "hf-deepwork complete")),
            "expiry" => assert_eq!(tick(&mut hive, 301)[0], "DEEPWORK_EXPIRED agent:main error 1"),
            _ => {}
        }
        // The closing log, whatever it is, breaks nothing.
        assert_eq!(log(&hive), "yes", "{how}");
        assert_eq!(tick(&mut hive, 302), [""; 0], "{how}");
        // The one after it is no introspection.
        assert_eq!(log(&hive), "yes", "{how}");
        assert_eq!(tick(&mut hive, 303), ["INTROSPECTION_DUTY agent:main error 1"], "{how}");
        // Nothing but an introspection mends it.
        ok(&hive, "hf-checkpoint Here");
        log(&hive);
        assert_eq!(tick(&mut hive, 304).len(), 1, "{how}");
        ok(&hive, "hf-activity --kind introspection");
        assert_eq!(tick(&mut hive, 305), [""; 0], "{how}");
        assert_eq!((count(&hive, "AnomalyDetected"), count(&hive, "AnomalyCleared")), (1, 1), "{how}");
        all_is_well(&hive);
    }
}

#[test]
fn an_emergency_postpones_introspection_by_one_log() {
    let mut hive = configured("");
    ok(&hive, "hf-deepwork start --flexible Long");
    log(&hive);
    let reply = ok(&hive, "hf-activity --kind thinking --emergency disk-full");
    assert_eq!((reply.get("INTROSPECTION_DUE"), reply.get("NEXT")), ("yes", "ACTION hf-activity --kind introspection"));
    assert_eq!(hive.events().pop().unwrap()["payload"]["emergency"], "disk-full");
    assert_eq!(tick(&mut hive, 1), [""; 0]);
    log(&hive);
    assert_eq!(tick(&mut hive, 2), ["INTROSPECTION_DUTY agent:main error 1"]);
    // Once it is broken no emergency undoes that.
    ok(&hive, "hf-activity --kind thinking --emergency still-full");
    assert_eq!(tick(&mut hive, 3), ["INTROSPECTION_DUTY agent:main error 2"]);
    ok(&hive, "hf-activity --kind introspection");
    assert_eq!(tick(&mut hive, 4), [""; 0]);
    all_is_well(&hive);
}

#[test]
fn back_to_back_declarations_count_as_one_deep_work() {
    let mut hive = configured("");
    ok(&hive, "hf-deepwork start --flexible One");
    at(&mut hive, 60, "hf-deepwork start --strict 30 Two").expect_exit(0);
    at(&mut hive, 120, "hf-activity --kind creating").expect_exit(0);
    at(&mut hive, 180, "hf-activity --kind introspection").expect_exit(0);
    assert_eq!(tick(&mut hive, 181), [""; 0]);
    all_is_well(&hive);
}

#[test]
fn a_log_is_a_sign_of_life_and_a_heartbeat_for_held_tasks() {
    let mut hive = configured("");
    crate::support::steps::held(&hive, "agent:main");
    let before = hive.events().len();
    at(&mut hive, 899, "hf-activity --kind introspection").expect_exit(0);
    assert_eq!(kinds_since(&hive, before), ["ActivityLogged", "ClaimRenewed"]);
    assert_eq!(tick(&mut hive, 1100), [""; 0]);
    all_is_well(&hive);
}

#[test]
fn a_log_without_a_usable_id_is_not_lost() {
    let mut hive = TestVault::new();
    tick(&mut hive, 0);
    fs::write(file(&hive, "current_heartbeat_id.txt"), "soon").unwrap();
    let reply = at(&mut hive, 60, "hf-activity --kind thinking").expect_exit(0);
    assert!(reply.stderr.starts_with("warning: 'soon' is not a heartbeat id"), "{reply:#?}");
    assert_eq!(reply.get("FILE"), format!("{}.md", beat(60)));
}
