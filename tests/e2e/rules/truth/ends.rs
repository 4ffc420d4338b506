//! Requirements and tasks end properly: nothing is called implemented that is not, and nothing waits for ever.

use serde_json::json;

use super::{because, problems};
use crate::support::steps::{approved, count, keeps_the_rules, kinds, ok, refuses, running, sh, state};
use crate::support::test_vault::{TestVault, write_private};

/// Runs a task of REQ-0001 to its end.
fn run(hive: &TestVault, task: &str, end: &str) {
    ok(hive, &format!("hf-task claim {task}"));
    ok(hive, &format!("hf-task start {task}"));
    ok(hive, &format!("hf-task {end}"));
}

#[test]
fn t13_a_requirement_is_not_implemented_while_a_task_of_it_failed_for_good() {
    let hive = TestVault::new();
    ok(&hive, "hf-watchdog");
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task propose Page --requirement REQ-0001");
    run(&hive, "T-0001", "fail T-0001 --class permanent --reason auth");
    run(&hive, "T-0002", "succeed T-0002");
    assert_eq!(state(&hive, "REQ-0001"), "Approved");
    assert_eq!(
        problems(&hive),
        [
            "escalation ESC-0001 T-0001: auth do=hf-decide acknowledge ESC-0001 --reason TEXT",
            "escalation ESC-0002 REQ-0001: not implemented: no task is open, and 1 task was aborted \
             do=hf-decide acknowledge ESC-0002 --reason TEXT"
        ]
    );
    // The way back: the rework succeeds, the requirement is implemented, and nothing needs anybody.
    ok(&hive, "hf-task propose --rework-of T-0001");
    run(&hive, "T-0003", "succeed T-0003");
    assert_eq!(state(&hive, "REQ-0001"), "Implemented");
    assert_eq!(problems(&hive), [""; 0]);
    keeps_the_rules(&hive);
}

#[test]
fn t13_aborts_before_the_approval_do_not_count_and_those_after_it_do() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-task propose Early --requirement REQ-0001");
    ok(&hive, "hf-task abort T-0001 --reason unwanted");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    ok(&hive, "hf-decide approve DEC-0001");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task propose Page --requirement REQ-0001");
    ok(&hive, "hf-task abort T-0002 --reason unwanted");
    // Repeating the early one makes up for nothing that counts.
    ok(&hive, "hf-task propose --rework-of T-0001");
    run(&hive, "T-0003", "succeed T-0003");
    run(&hive, "T-0004", "succeed T-0004");
    assert_eq!(state(&hive, "REQ-0001"), "Approved");
    ok(&hive, "hf-task propose --rework-of T-0002");
    run(&hive, "T-0005", "succeed T-0005");
    assert_eq!(state(&hive, "REQ-0001"), "Implemented");
    keeps_the_rules(&hive);
}

#[test]
fn t14_implementing_is_the_reactors_verifying_and_superseding_an_operators() {
    let hive = TestVault::new();
    approved(&hive);
    for actor in ["user:jo", "agent:a", "external:ci"] {
        let line = format!("hf-append RequirementImplemented --subject REQ-0001 --actor {actor}");
        refuses(&hive, &line, 3, "recorded only as the consequence of another event");
    }
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    run(&hive, "T-0001", "succeed T-0001");
    for actor in ["agent:a", "external:ci"] {
        refuses(&hive, &format!("hf-require verify REQ-0001 --actor {actor}"), 3, "requires an operator");
    }
    ok(&hive, "hf-require verify REQ-0001");
    let hive = TestVault::new();
    approved(&hive);
    refuses(&hive, "hf-require supersede REQ-0001 --actor agent:a", 3, "requires an operator");
    keeps_the_rules(&hive);
}

#[test]
fn t15_a_task_under_a_requirement_that_is_over_is_refused_with_its_state() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require reject REQ-0001 --reason late");
    let line = "hf-task propose Form --requirement REQ-0001";
    refuses(&hive, line, 3, "REQ-0001 is Rejected, which is final; propose a new requirement");
    let hive = TestVault::new();
    approved(&hive);
    ok(&hive, line);
    run(&hive, "T-0001", "succeed T-0001");
    ok(&hive, "hf-require verify REQ-0001");
    refuses(&hive, line, 3, "REQ-0001 is Verified");
}

#[test]
fn t15_a_requirement_takes_its_open_tasks_with_it() {
    let hive = TestVault::new();
    approved(&hive);
    ok(&hive, "hf-require propose Better");
    ok(&hive, "hf-task propose Ready --requirement REQ-0001");
    ok(&hive, "hf-task propose Going --requirement REQ-0001");
    ok(&hive, "hf-task propose Waiting --requirement REQ-0001 --after T-0001");
    ok(&hive, "hf-task claim T-0002 --actor agent:a");
    ok(&hive, "hf-task start T-0002 --actor agent:a");
    ok(&hive, "hf-require supersede REQ-0001 --by REQ-0002");
    for task in ["T-0001", "T-0002", "T-0003"] {
        assert!(because(&hive, task)[0].ends_with(": REQ-0001 was superseded by REQ-0002"), "{task}");
    }
    assert_eq!(ok(&hive, "hf-task list --ready").get("COUNT"), "0");
    // Whoever worked on it is told what became of it.
    let late = sh(&hive, "hf-task succeed T-0002 --actor agent:a").expect_exit(3);
    let told = ["STATUS", "SUM", "NEXT"].map(|key| late.get(key));
    assert_eq!(
        told,
        [
            "CLAIM_LOST",
            "T-0002 was aborted: REQ-0001 was superseded by REQ-0002",
            "ACTION hf-task claim --actor agent:a"
        ]
    );
    keeps_the_rules(&hive);
}

#[test]
fn t15_a_blocked_requirement_can_be_rejected_and_superseded() {
    for end in ["reject REQ-0001 --reason enough", "supersede REQ-0001"] {
        let hive = crate::support::steps::governed("max_oscillations: 1");
        approved(&hive);
        ok(&hive, "hf-task propose Form --requirement REQ-0001");
        for task in ["T-0001", "T-0002"] {
            run(&hive, task, &format!("succeed {task}"));
            let file = format!("{task}.py");
            write_private(&hive.dir().join(&file), task.as_bytes());
            ok(&hive, &format!("hf-artifact put {file} --for {task}"));
            let artifact = if task == "T-0001" { "ART-0001" } else { "ART-0002" };
            ok(&hive, &format!("hf-artifact invalidate {artifact} --reason wrong"));
        }
        assert_eq!(state(&hive, "REQ-0001"), "Blocked");
        ok(&hive, &format!("hf-require {end}"));
        assert_eq!(state(&hive, "DEC-0002"), "Superseded", "{end}");
        assert_eq!(state(&hive, "T-0003"), "Aborted", "{end}");
        keeps_the_rules(&hive);
    }
}

#[test]
fn t15_a_task_behind_an_aborted_one_is_aborted_and_a_new_one_refused() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Page --after T-0001");
    ok(&hive, "hf-task propose Docs --after T-0002");
    ok(&hive, "hf-task abort T-0001 --reason unwanted");
    assert_eq!([state(&hive, "T-0002"), state(&hive, "T-0003")], ["Aborted", "Aborted"]);
    refuses(
        &hive,
        "hf-task propose More --after T-0001",
        3,
        "T-0001 was aborted, so a task after it could never start",
    );
    // Once it is reworked, something can wait for it again.
    ok(&hive, "hf-task propose --rework-of T-0001");
    ok(&hive, "hf-task propose More --after T-0001");
    run(&hive, "T-0004", "succeed T-0004");
    assert_eq!(state(&hive, "T-0005"), "Ready");
    keeps_the_rules(&hive);
}

#[test]
fn t15_what_waits_for_a_rework_is_aborted_with_it() {
    let hive = TestVault::new();
    running(&hive, "user:jo");
    ok(&hive, "hf-stop harm");
    ok(&hive, "hf-resume --system");
    ok(&hive, "hf-task propose Page --after T-0001");
    ok(&hive, "hf-task propose --rework-of T-0001");
    assert_eq!(state(&hive, "T-0002"), "Proposed");
    ok(&hive, "hf-task abort T-0003 --reason unwanted");
    assert_eq!(state(&hive, "T-0002"), "Aborted");
    keeps_the_rules(&hive);
}

#[test]
fn a_task_behind_a_task_and_its_rework_is_aborted_once() {
    let hive = TestVault::new();
    running(&hive, "user:jo");
    ok(&hive, "hf-stop harm");
    ok(&hive, "hf-resume --system");
    ok(&hive, "hf-task propose --rework-of T-0001");
    ok(&hive, "hf-task propose Page --after T-0001 --after T-0002");
    ok(&hive, "hf-task abort T-0002 --reason unwanted");
    assert_eq!((state(&hive, "T-0003"), count(&hive, "TaskAborted")), ("Aborted".to_owned(), 3));
    keeps_the_rules(&hive);
}

#[test]
fn only_a_task_that_has_ended_is_reworked_and_only_once_at_a_time() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    refuses(
        &hive,
        "hf-task propose --rework-of T-0001",
        3,
        "T-0001 is Ready; only a task that has ended can be reworked",
    );
    ok(&hive, "hf-task abort T-0001 --reason unwanted");
    ok(&hive, "hf-task propose --rework-of T-0001");
    refuses(&hive, "hf-task propose --rework-of T-0001", 3, "T-0002 repeats the work of T-0001 already");
    refuses(&hive, "hf-task propose", 2, "TITLE");
    assert_eq!(ok(&hive, "hf-task show T-0002").get("SUM"), "T-0002 is Ready: Form");
}

#[test]
fn t15_an_answer_closes_every_other_question_about_the_same_thing() {
    for answer in ["approve DEC-0001", "reject DEC-0001 --reason no"] {
        let hive = TestVault::new();
        ok(&hive, "hf-require propose Login");
        ok(&hive, "hf-require analyze REQ-0001 Easy.");
        ok(&hive, "hf-decide request --kind requirement_approval --target REQ-0001 --summary Sure?");
        ok(&hive, &format!("hf-decide {answer}"));
        assert_eq!(ok(&hive, "hf-decide list --open").get("COUNT"), "0", "{answer}");
        assert_eq!(count(&hive, "DecisionSuperseded"), 1);
        keeps_the_rules(&hive);
    }
}

#[test]
fn t19_a_service_is_not_an_operator() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    for line in ["approve DEC-0001", "reject DEC-0001 --reason no"] {
        refuses(&hive, &format!("hf-decide {line} --actor external:ci"), 3, "external:ci is not one");
    }
    ok(&hive, "hf-stop harm");
    let lift = sh(&hive, "hf-resume --system --actor external:ci").expect_exit(3);
    assert_eq!(lift.get("REASON"), "operator_only");
}

#[test]
fn t22_next_leads_down_the_path_and_never_asks_for_words_it_does_not_have() {
    let hive = TestVault::new();
    let proposed = ok(&hive, "hf-require propose Login");
    assert_eq!((proposed.get("NEXT"), proposed.get("ADVICE")), ("NONE", "hf-require analyze REQ-0001 TEXT"));
    assert_eq!(ok(&hive, "hf-require analyze REQ-0001 Easy.").get("NEXT"), "ASK operator");
    let approved = ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(
        (approved.get("NEXT"), approved.get("ADVICE")),
        ("NONE", "hf-task propose TITLE --requirement REQ-0001")
    );
    let mut reply = ok(&hive, "hf-task propose Form --requirement REQ-0001");
    for said in ["ACTION hf-task claim T-0001", "ACTION hf-task start T-0001"] {
        assert_eq!(reply.get("NEXT"), said);
        reply = hive.run_next(&reply).expect_exit(0);
    }
    ok(&hive, "hf-task propose Other");
    assert_eq!(ok(&hive, "hf-task succeed T-0001").get("NEXT"), "ASK operator", "it is to be verified");
    ok(&hive, "hf-task claim T-0002");
    ok(&hive, "hf-task propose Third");
    ok(&hive, "hf-task start T-0002");
    assert_eq!(ok(&hive, "hf-task succeed T-0002").get("NEXT"), "ACTION hf-task claim T-0003");
    // After an approval, the task that it makes ready.
    ok(&hive, "hf-task propose Wipe --destructive");
    assert_eq!(ok(&hive, "hf-decide approve DEC-0002").get("NEXT"), "ACTION hf-task claim T-0004");
}

#[test]
fn a_log_of_the_first_version_keeps_its_consequences() {
    // Without recorded settings, the rules of that version hold: nothing new must follow.
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Page --after T-0001");
    let mut events = hive.recorded();
    events[0].payload.remove("settings");
    let abort =
        crate::support::test_vault::forged(1, hiveforge::event::Kind::TaskAborted, &events[1].subject, json!({}));
    events.push(hiveforge::event::Event { actor: "user:jo".to_owned(), ..abort });
    assert_eq!(crate::support::steps::found_in(&hive, events), [""; 0]);
    assert_eq!(kinds(&hive).last().unwrap(), "TaskAborted");
}

#[test]
fn the_audit_finds_what_the_commands_would_have_refused() {
    use hiveforge::event::Kind;
    let hive = TestVault::new();
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    let id = crate::support::steps::id(&hive, "require", "REQ-0001");
    let requirement = format!("requirement:{id}");
    let found = crate::support::steps::found_after(
        &hive,
        vec![
            ("agent:a", Kind::RequirementImplemented, &requirement, json!({})),
            ("agent:a", Kind::RequirementVerified, &requirement, json!({})),
            ("user:jo", Kind::TaskProposed, "task:late", json!({"title": "x", "requirement_id": id})),
        ],
    );
    let expected = [
        "RequirementImplemented is recorded only as the consequence of another event",
        "RequirementVerified requires an operator; agent:a is not one",
        "TaskAborted of task:",
        "REQ-0001 is Verified, which is final; propose a new requirement",
    ];
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}");
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn the_audit_misses_consequences_that_are_left_out() {
    use hiveforge::event::Kind;
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Page --after T-0001");
    let task = ok(&hive, "hf-task show T-0001").get("SUBJECT").to_owned();
    let found = crate::support::steps::found_after(&hive, vec![("user:jo", Kind::TaskAborted, &task, json!({}))]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("TaskAborted of task:") && found[0].ends_with("must follow, but is missing"));
}
