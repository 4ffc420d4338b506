//! hf-checkpoint: one short line that keeps the alarm away.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::steps::{count, kinds, ok, refuses, running, sh};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::{all_is_well, at, beat, configured, file, tick};

#[test]
fn the_first_checkpoint_takes_a_fresh_id_and_later_ones_report_the_previous_one() {
    let mut hive = TestVault::new();
    let first = hive.run("checkpoint", &["replaceツールのエラー原因の調査中"]).expect_exit(0);
    let head = "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:checkpoint recorded\n";
    assert_eq!(first.stdout, format!("{head}HEARTBEAT_ID:20260131120000\n"));
    assert_eq!(
        first.stderr,
        "warning: this agent has no heartbeat id yet; using a new one until hf-watchdog writes it\n"
    );
    assert_eq!(
        fs::read_to_string(file(&hive, "checkpoints/20260131120000.txt")).unwrap(),
        "replaceツールのエラー原因の調査中\n"
    );
    assert_eq!(tick(&mut hive, 60), [""; 0]);
    ok(&hive, "hf-activity --kind thinking");
    let second = at(&mut hive, 100, "hf-checkpoint Drawing").expect_exit(0);
    assert_eq!(
        second.stdout,
        format!("{head}HEARTBEAT_ID:20260131120100\nELAPSED_S:40\nPREVIOUS:replaceツールのエラー原因の調査中\n")
    );
    assert_eq!(second.stderr, "");
    all_is_well(&hive);
}

#[test]
fn a_checkpoint_prevents_the_alarm() {
    for (checkpoint, found) in [(true, vec![]), (false, vec!["INACTIVE agent:main error 601".to_owned()])] {
        let mut hive = configured("");
        ok(&hive, "hf-activity --kind introspection");
        if checkpoint {
            at(&mut hive, 400, "hf-checkpoint Still").expect_exit(0);
        }
        assert_eq!(tick(&mut hive, 601), found, "{checkpoint}");
        all_is_well(&hive);
    }
}

#[test]
fn a_long_time_without_a_log_suggests_deep_work_unless_declared() {
    for (second, suggested) in [(479, 0), (480, 0), (481, 1)] {
        let mut hive = TestVault::new();
        ok(&hive, "hf-activity --kind thinking");
        assert_eq!(at(&mut hive, second, "hf-checkpoint Still").expect_exit(0).all("ADVICE").len(), suggested);
    }
    let mut hive = TestVault::new();
    ok(&hive, "hf-activity --kind thinking");
    ok(&hive, "hf-deepwork start --flexible Long");
    assert_eq!(at(&mut hive, 4000, "hf-checkpoint Still").expect_exit(0).all("ADVICE"), [""; 0]);
}

#[test]
fn deep_work_is_also_suggested_to_an_agent_that_never_logged() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-checkpoint One");
    let reply = at(&mut hive, 481, "hf-checkpoint Two").expect_exit(0);
    assert_eq!(
        reply.get("ADVICE"),
        "long time without an activity log: declare deep work with hf-deepwork start --flexible, or log what you have done"
    );
    assert_eq!(reply.all("ELAPSED_S"), [""; 0]);
}

#[test]
fn a_checkpoint_without_a_usable_id_is_not_lost() {
    for (text, complaint) in [
        ("yesterday", "'yesterday' is not a heartbeat id; using a new one until hf-watchdog writes the next"),
        ("", "'' is not a heartbeat id; using a new one until hf-watchdog writes the next"),
        ("20260230000000", "'20260230000000' is not a heartbeat id; using a new one"),
        ("20260131120501", "the current heartbeat id 20260131120501 is in the future; using a new one"),
    ] {
        let mut hive = TestVault::new();
        tick(&mut hive, 0);
        fs::write(file(&hive, "current_heartbeat_id.txt"), text).unwrap();
        let reply = at(&mut hive, 180, "hf-checkpoint Here").expect_exit(0);
        assert!(reply.stderr.starts_with(&format!("warning: {complaint}")), "{text}: {reply:#?}");
        assert_eq!(reply.get("HEARTBEAT_ID"), beat(180), "{text}");
        assert_eq!(count(&hive, "CheckpointRecorded"), 1);
        assert!(file(&hive, &format!("checkpoints/{}.txt", beat(180))).exists());
        // The way out: the watchdog's next tick.
        tick(&mut hive, 181);
        assert_eq!(fs::read_to_string(file(&hive, "current_heartbeat_id.txt")).unwrap(), format!("{}\n", beat(181)));
        all_is_well(&hive);
    }
    // Two minutes ahead is what two clocks may differ by.
    let mut hive = TestVault::new();
    tick(&mut hive, 0);
    fs::write(file(&hive, "current_heartbeat_id.txt"), beat(120)).unwrap();
    assert_eq!(at(&mut hive, 0, "hf-checkpoint Here").expect_exit(0).get("HEARTBEAT_ID"), beat(120));
}

#[test]
fn a_checkpoint_is_one_short_line() {
    let hive = TestVault::new();
    for (text, why) in [
        ("", "the checkpoint is empty; it must be one line"),
        (" \n ", "the checkpoint is empty; it must be one line"),
        (&"line\n".repeat(10), "the checkpoint has 10 lines; it must be one line"),
        (&"x".repeat(401), "the checkpoint has 401 characters; at most 400"),
        // The longest that an argument can be.
        (&"x".repeat(128 * 1024 - 1), "the checkpoint has 131071 characters; at most 400"),
    ] {
        assert_eq!(hive.refuses("checkpoint", &[text], 2).get("SUM"), why);
    }
    hive.run("checkpoint", &[&"語".repeat(400)]).expect_exit(0);
    refuses(&hive, "hf-checkpoint", 2, "ACTIVITY");
    assert_eq!(sh(&TestVault::empty(), "hf-checkpoint Here").expect_exit(7).get("STATUS"), "NO_VAULT");
}

#[test]
fn the_agent_comes_from_the_flag_the_environment_or_defaults_to_main() {
    let hive = TestVault::new();
    for (args, shell, who) in [
        (&["Here"][..], None, "agent:main"),
        (&["Here"], Some("painter"), "agent:painter"),
        (&["Here", "--agent", "writer"], None, "agent:writer"),
    ] {
        let mut command = hive.command("checkpoint");
        command.args(args).envs(shell.map(|name| ("HF_AGENT", name)));
        assert!(command.output().unwrap().status.success());
        let event = hive.events().pop().unwrap();
        assert_eq!((&event["subject"], &event["actor"]), (&who.into(), &who.into()));
        assert!(hive.vault().join("Agents").join(&who["agent:".len()..]).is_dir());
    }
    for name in ["a/b", "../x", "", ".", "a b", "-a"] {
        let named = format!("--agent={name}");
        hive.refuses("checkpoint", &["Here", &named], 2);
        if !name.is_empty() {
            let output = hive.command("checkpoint").arg("Here").env("HF_AGENT", name).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{name}");
        }
    }
    all_is_well(&hive);
}

#[test]
fn a_checkpoint_is_a_heartbeat_only_for_what_the_agent_holds() {
    let mut hive = configured("");
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-task claim T-0002 --actor agent:a");
    ok(&hive, "hf-task propose Third");
    ok(&hive, "hf-task claim T-0003 --actor agent:b");
    at(&mut hive, 600, "hf-checkpoint Here --agent a").expect_exit(0);
    assert_eq!(kinds(&hive)[kinds(&hive).len() - 3..], ["CheckpointRecorded", "Heartbeat", "ClaimRenewed"]);
    at(&mut hive, 601, "hf-checkpoint Here --agent b").expect_exit(0);
    at(&mut hive, 1400, "hf-checkpoint Here --agent b").expect_exit(0);
    // At 900 the leases from the begin would have been over; at 1500 those from the checkpoint are not.
    let mut found = tick(&mut hive, 1500);
    found.retain(|line| !line.starts_with("INTROSPECTION"));
    assert_eq!(found, ["INACTIVE agent:a error 900"]);
    let mut found = tick(&mut hive, 1501);
    found.retain(|line| line.starts_with("LEASE"));
    assert_eq!(found.len(), 2, "{found:?}");
    all_is_well(&hive);
}

#[test]
fn with_state_a_checkpoint_leaves_a_block_for_a_session_that_loses_its_context() {
    let hive = TestVault::new();
    running(&hive, "agent:main");
    hive.run("checkpoint", &["--state", "Tests are green, review comes next"]).expect_exit(0);
    let blocks = fs::read_to_string(hive.vault().join("Autonomous/state/CHECKPOINTS.md")).unwrap();
    assert!(
        blocks.ends_with(
            "CHECKPOINT:\nNo mission.\nROUND: 0/4\nTASK: T-0001\nNEXT: Tests are green, review comes next\n\n"
        ),
        "{blocks}"
    );
    // 200 words at most, and a checkpoint that is refused leaves nothing behind.
    let words = "w ".repeat(195);
    hive.refuses("checkpoint", &["--state", words.trim()], 2);
    all_is_well(&hive);
}

#[test]
fn checkpoint_never_writes_through_a_symlink() {
    let hive = TestVault::new();
    ok(&hive, "hf-checkpoint One");
    let outside = hive.dir().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::remove_dir_all(file(&hive, "checkpoints")).unwrap();
    symlink(&outside, file(&hive, "checkpoints")).unwrap();
    let reply = ok(&hive, "hf-checkpoint Two");
    assert!(reply.stderr.contains("the checkpoint is recorded, but its file could not be written"), "{reply:#?}");
    assert_eq!((count(&hive, "CheckpointRecorded"), fs::read_dir(&outside).unwrap().count()), (2, 0));
}

#[test]
fn an_agent_can_only_checkpoint_for_itself() {
    let hive = TestVault::new();
    ok(&hive, "hf-checkpoint Here --agent a");
    ok(&hive, "hf-deepwork start --flexible Long --agent a");
    let work = hive.events().pop().unwrap()["subject"].as_str().unwrap().to_owned();
    for (kind, subject, payload) in [
        ("CheckpointRecorded", "agent:a", r#"{"heartbeat_id":"20260131120000","text":"x"}"#),
        ("ActivityLogged", "agent:a", r#"{"heartbeat_id":"20260131120000","kind":"thinking"}"#),
        ("AgentStopped", "agent:a", "{}"),
        (
            "DeepWorkStarted",
            "deepwork:x",
            r#"{"agent_id":"a","heartbeat_id":"20260131120000","mode":"flexible","activity":"x"}"#,
        ),
        ("DeepWorkCompleted", &work, r#"{"agent_id":"a"}"#),
    ] {
        let args = [kind, "--subject", subject, "--payload", payload, "--actor", "agent:b"];
        let reply = hive.refuses("append", &args, 3);
        assert_eq!(reply.get("SUM"), "agent:b cannot act for agent:a", "{kind}");
    }
    for (kind, subject, payload) in [
        ("AnomalyDetected", "agent:a", r#"{"code":"INACTIVE"}"#),
        ("AnomalyCleared", "agent:a", r#"{"code":"INACTIVE"}"#),
        ("DeepWorkExpired", &work, r#"{"agent_id":"a"}"#),
        ("RecoveryAttempted", "agent:a", r#"{"code":"INACTIVE","attempt":1}"#),
    ] {
        let args = [kind, "--subject", subject, "--payload", payload, "--actor", "agent:a"];
        assert_eq!(hive.refuses("append", &args, 3).get("STATUS"), "REFUSED", "{kind}");
    }
    all_is_well(&hive);
}
