//! Rules that are the same in every command.

use serde_json::{Value, json};

use crate::support::steps::{keeps_the_rules, ok, running, sh, state};
use crate::support::test_vault::{Reply, TestVault, jsonl};

/// Runs a command in the shell of an agent, with this variable set.
fn in_shell(hive: &TestVault, variable: &str, name: &str, args: &[&str], input: &str) -> Reply {
    let mut command = hive.command(name);
    Reply::of(command.env(variable, "b").args(args).write_stdin(input).output().unwrap())
}

#[test]
fn only_an_agent_can_act_in_an_agents_shell() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    for actor in ["core:reactor", "user:jo", "external:ci"] {
        let before = hive.contents();
        let args = ["TaskSucceeded", "--subject", "T-0001", "--actor", actor];
        let line = json!({"event_type": "TaskSucceeded", "subject": "T-0001", "actor": actor}).to_string();
        for variable in ["HF_AGENT", "HF_SESSION"] {
            let reply = in_shell(&hive, variable, "append", &args, "").expect_exit(3);
            assert_eq!(reply.get("REASON"), "operator_only");
            let reply = in_shell(&hive, variable, "append", &["--batch"], &line).expect_exit(3);
            assert_eq!(reply.get("REASON"), "operator_only");
        }
        assert!(hive.contents() == before);
    }
    assert_eq!(state(&hive, "T-0001"), "Running");
}

#[test]
fn an_agent_cannot_record_findings_of_the_toolkit() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose x");
    ok(&hive, "hf-require analyze REQ-0001");
    ok(&hive, "hf-task propose done");
    ok(&hive, "hf-task abort T-0001");
    // A time-out is nobody's to say before its time.
    let early = |actor: &str| sh(&hive, &format!("hf-append ApprovalTimedOut --subject DEC-0001 --actor {actor}"));
    assert_eq!(early("agent:a").expect_exit(3).get("REASON"), "operator_only");
    assert_eq!(early("user:jo").expect_exit(3).get("REASON"), "not_due");
    for line in [
        "DecisionSuperseded --subject DEC-0001",
        "TaskArchived --subject T-0001",
        "AnomalyCleared --subject T-0001 --payload {\"code\":\"INACTIVE\"}",
    ] {
        let reply = sh(&hive, &format!("hf-append {line} --actor agent:a"));
        assert_eq!(reply.expect_exit(3).get("REASON"), "operator_only", "{line}");
        ok(&hive, &format!("hf-append {line} -n"));
    }
}

#[test]
fn an_agent_cannot_hide_a_failure_from_people() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    let failed = r#"{"error_class":"permanent","reason":"broken","escalate":false}"#;
    ok(&hive, &format!("hf-append TaskFailed --subject T-0001 --payload {failed} --actor agent:a"));
    assert_eq!(crate::support::steps::count(&hive, "EscalationRequired"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn dependents_of_a_reworked_task_wait_for_the_rework() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Waiting --after T-0001");
    std::fs::write(hive.dir().join("x.txt"), "x").unwrap();
    ok(&hive, "hf-artifact put x.txt --for T-0001");
    ok(&hive, "hf-artifact invalidate ART-0001 --reason wrong");
    assert_eq!(["T-0001", "T-0002", "T-0003"].map(|t| state(&hive, t)), ["Aborted", "Proposed", "Ready"]);
    for step in ["claim T-0003", "start T-0003", "succeed T-0003"] {
        ok(&hive, &format!("hf-task {step} --actor agent:a"));
    }
    assert_eq!(state(&hive, "T-0002"), "Ready");
    keeps_the_rules(&hive);
}

#[test]
fn open_questions_close_when_their_subject_ends() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Purge --destructive");
    ok(&hive, "hf-task abort T-0001");
    ok(&hive, "hf-require propose x");
    ok(&hive, "hf-require analyze REQ-0001");
    ok(&hive, "hf-require reject REQ-0001 --reason no");
    let closed = ok(&hive, "hf-decide list");
    assert_eq!(closed.all("ENTITY").iter().filter(|line| line.contains(" Superseded ")).count(), 2, "{closed:#?}");
    assert_eq!(ok(&hive, "hf-decide list --open").get("COUNT"), "0");
    // Nothing can be asked about it any more, either.
    let asked = "hf-decide request --kind requirement_approval --target REQ-0001 --summary again";
    assert_eq!(sh(&hive, asked).expect_exit(3).get("REASON"), "not_ready");
    keeps_the_rules(&hive);
}

#[test]
fn a_batch_with_a_redundant_line_can_be_repeated() {
    let hive = TestVault::new();
    hive.append("TaskProposed", "task:t", json!({"title": "x"}));
    let lines: [Value; 2] = [
        json!({"event_type": "RequirementProposed", "subject": "requirement:r", "payload": {"title": "y"}}),
        json!({"event_type": "TaskReady", "subject": "task:t"}),
    ];
    let first = hive.pipe("append", &["--batch", "--key", "k"], jsonl(&lines)).expect_exit(0);
    assert_eq!(first.get("STATUS"), "APPENDED");
    assert_ne!(first.get("HASH"), first.get("PREV_HASH"));
    assert_eq!(first.get("SUBJECT"), "requirement:r");
    let before = hive.contents();
    let again = hive.pipe("append", &["--batch", "--key", "k"], jsonl(&lines)).expect_exit(0);
    assert_eq!((again.get("STATUS"), again.all("EVENT_ID")), ("DUPLICATE", first.all("EVENT_ID")));
    assert!(hive.contents() == before);
}

#[test]
fn claim_reports_a_stop_even_if_nothing_is_ready() {
    let hive = TestVault::new();
    ok(&hive, "hf-stop fire");
    let reply = sh(&hive, "hf-task claim").expect_exit(3);
    assert_eq!((reply.get("REASON"), reply.get("SUM")), ("system_stopped", "everything is stopped: fire"));
}

#[test]
fn an_agent_cannot_act_as_another_agent() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    for (name, args) in [
        ("checkpoint", &["--agent", "a", "fine"][..]),
        ("activity", &["--agent", "a", "--kind", "thinking"]),
        ("task", &["succeed", "T-0001", "--actor", "agent:a"]),
        ("append", &["Heartbeat", "--subject", "RUN-0001", "--actor", "agent:a"]),
    ] {
        let before = hive.contents();
        let reply = in_shell(&hive, "HF_AGENT", name, args, "").expect_exit(3);
        assert_eq!(reply.get("REASON"), "operator_only", "{name}");
        assert!(hive.contents() == before);
    }
    // Its own name may be given, too.
    in_shell(&hive, "HF_AGENT", "checkpoint", &["--agent", "b", "fine"], "").expect_exit(0);
}

#[test]
fn an_emergency_postpones_introspection_only_once() {
    let hive = TestVault::new();
    ok(&hive, "hf-deepwork start --flexible x");
    ok(&hive, "hf-activity --kind creating");
    ok(&hive, "hf-activity --kind creating --emergency fire");
    ok(&hive, "hf-watchdog");
    ok(&hive, "hf-activity --kind creating --emergency flood");
    let reply = sh(&hive, "hf-watchdog").expect_exit(1);
    assert!(reply.get("ANOMALY").starts_with("INTROSPECTION_DUTY agent:main error"), "{reply:#?}");
    keeps_the_rules(&hive);
}

#[test]
fn an_approval_covers_the_resolved_program_and_shows_the_environment() {
    let hive = TestVault::new();
    let tools = |name: &str, says: &str| {
        use std::os::unix::fs::PermissionsExt;
        let dir = hive.dir().join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("purge"), format!("#!/bin/sh\necho {says}\n")).unwrap();
        std::fs::set_permissions(dir.join("purge"), std::fs::Permissions::from_mode(0o755)).unwrap();
        dir.display().to_string()
    };
    let (good, evil) = (tools("good", "good"), tools("evil", "evil"));
    let fire = |path: &str| {
        let mut command = hive.command("job");
        let args = ["fire", "--destructive", "--env", "LEVEL=9", "--key", "k", "--", "purge"];
        Reply::of(command.env("PATH", path).args(args).output().unwrap())
    };
    let asked = fire(&format!("{good}:/usr/bin:/bin")).expect_exit(3);
    let question = format!("{good}/purge with LEVEL");
    assert!(asked.get("ENTITY").contains(&question), "{asked:#?}");
    // The same words lead somewhere else now, which is another command.
    assert_eq!(fire(&format!("{evil}:/usr/bin:/bin")).expect_exit(3).get("REASON"), "key_conflict");
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(ok(&hive, "hf-poll T-0001").get("SUM"), "good");
    keeps_the_rules(&hive);
}

#[test]
fn a_missing_subcommand_is_named_with_its_choices() {
    let hive = TestVault::new();
    for (command, first) in [("task", "propose, ready, claim"), ("decide", "request"), ("job", "fire"), ("session", "")]
    {
        let reply = hive.run(command, &[]).expect_exit(2);
        let sum = reply.get("SUM");
        assert!(sum.starts_with("missing subcommand; one of ") && sum.contains(first), "{command}: {sum}");
        assert_eq!(reply.get("NEXT"), format!("ACTION hf-{command} --help"));
    }
}
