//! hf-task: work, from its proposal to its end.

use std::collections::BTreeMap;
use std::thread;

use hiveforge::event::Kind;
use serde_json::json;

use crate::support::session_fixture::logged_in;
use crate::support::steps::{
    approved, found_after, found_in, governed, held, id, keeps_the_rules, kinds, kinds_since, ok, refuses, running, sh,
    state,
};
use crate::support::test_vault::{Reply, TestVault, forged};

#[test]
fn every_reply_from_a_tasks_proposal_to_its_success_is_complete() {
    let hive = TestVault::new();
    approved(&hive);
    let proposed = ok(&hive, "hf-task propose Form --requirement REQ-0001");
    assert_eq!(
        proposed.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ACTION hf-task claim T-0001\nSUM:T-0001 is Ready: Form\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nSUBJECT:task:<ulid>\nREF:T-0001@<tag>\nSTATE:Ready\n"
    );
    let claimed = hive.run_next(&proposed).expect_exit(0);
    assert_eq!(
        claimed.masked(&hive),
        "EXIT:0\nSTATUS:CLAIMED\nNEXT:ACTION hf-task start T-0001\nSUM:T-0001 is Assigned: Form\nEVENT_ID:<ulid>\n\
         SUBJECT:task:<ulid>\nREF:T-0001@<tag>\nSTATE:Assigned\nHOLDER:user:jo\nLEASE_UNTIL:2026-01-31T12:15:00Z\n\
         GENERATION:1\n"
    );
    let started = hive.run_next(&claimed).expect_exit(0);
    assert_eq!(
        started.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:RUN-0001 is Running\nEVENT_ID:<ulid>\nSUBJECT:run:<ulid>\n\
         REF:RUN-0001@<tag>\nSTATE:Running\n"
    );
    assert_eq!(
        ok(&hive, "hf-task heartbeat T-0001").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:RUN-0001 is Running\nEVENT_ID:<ulid>\nSUBJECT:run:<ulid>\n\
         REF:RUN-0001@<tag>\nSTATE:Running\n"
    );
    let before = kinds(&hive).len();
    assert_eq!(
        ok(&hive, "hf-task succeed T-0001 --summary Done.").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ASK operator\nSUM:T-0001 is Succeeded: Form\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nSUBJECT:task:<ulid>\nREF:T-0001@<tag>\nSTATE:Succeeded\n"
    );
    assert_eq!(kinds_since(&hive, before), ["RunFinished", "TaskSucceeded", "RequirementImplemented"]);
    assert_eq!(
        ok(&hive, "hf-task show T-0001").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:T-0001 is Succeeded: Form\nSUBJECT:task:<ulid>\nREF:T-0001@<tag>\n\
         STATE:Succeeded\nFACT:claimed_at 2026-01-31T12:00:00Z\nFACT:content sha256:<digest>\n\
         FACT:created_at 2026-01-31T12:00:00Z\nFACT:generation 1\nFACT:holder user:jo\nFACT:last_event_id <ulid>\n\
         FACT:last_run_id <ulid>\nFACT:lease_seconds 900\nFACT:requirement_id <ulid>\nFACT:retry_count 0\n\
         FACT:succeeded_at 2026-01-31T12:00:00Z\nFACT:title Form\n\
         ENTITY:run:<ulid> RUN-0001@<tag> Finished\n"
    );
    assert_eq!(
        ok(&hive, "hf-task list --status Succeeded").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:1 task\nCOUNT:1\nHAS_MORE:no\n\
         ENTITY:task:<ulid> T-0001@<tag> Succeeded Form\n"
    );
    keeps_the_rules(&hive);
}

#[test]
fn repeating_a_completed_step_is_a_duplicate() {
    let hive = TestVault::new();
    held(&hive, "agent:a");
    let again = ok(&hive, "hf-task claim T-0001 --actor agent:a");
    assert_eq!(
        again.masked(&hive),
        "EXIT:0\nSTATUS:DUPLICATE\nNEXT:ACTION hf-task start T-0001 --actor agent:a\nSUM:T-0001 is Assigned: Form\nEVENT_ID:<ulid>\n\
         SUBJECT:task:<ulid>\nREF:T-0001@<tag>\nSTATE:Assigned\nHOLDER:agent:a\nLEASE_UNTIL:2026-01-31T12:15:00Z\n\
         GENERATION:1\n"
    );
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    let recorded = hive.contents();
    assert_eq!(ok(&hive, "hf-task start T-0001 --actor agent:a").get("STATUS"), "DUPLICATE");
    assert!(hive.contents() == recorded);
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    let recorded = hive.contents();
    assert_eq!(ok(&hive, "hf-task succeed T-0001 --actor agent:a").get("STATUS"), "DUPLICATE");
    assert!(hive.contents() == recorded);
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-task abort T-0002 --reason no");
    assert_eq!(ok(&hive, "hf-task abort T-0002").get("STATUS"), "DUPLICATE");
}

#[test]
fn a_key_makes_repeating_a_step_safe() {
    let hive = TestVault::new();
    for line in [
        "hf-task propose Form --key p",
        "hf-task claim T-0001 --key c",
        "hf-task heartbeat T-0001 --key r",
        "hf-task start T-0001 --key s",
        "hf-task heartbeat T-0001 --key h",
        "hf-task succeed T-0001 --key d",
    ] {
        let first = ok(&hive, line);
        let recorded = hive.contents();
        let again = ok(&hive, line);
        assert_eq!((again.get("STATUS"), again.all("EVENT_ID")[0]), ("DUPLICATE", first.all("EVENT_ID")[0]), "{line}");
        assert!(hive.contents() == recorded, "{line}");
    }
    // A claim without a reference repeats the first claim and takes nothing more.
    ok(&hive, "hf-task propose Next");
    ok(&hive, "hf-task propose Another");
    let first = ok(&hive, "hf-task claim --key next");
    let again = ok(&hive, "hf-task claim --key next");
    assert_eq!((again.get("STATUS"), again.get("REF")), ("DUPLICATE", first.get("REF")));
    assert_eq!(state(&hive, "T-0003"), "Ready");
    let reply = refuses(&hive, "hf-task propose Formular --key p", 3, "for a different request");
    assert_eq!(reply.get("REASON"), "key_conflict");
}

#[test]
fn a_transient_failure_is_retried_and_a_permanent_one_is_not() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    let before = kinds(&hive).len();
    let failed = ok(&hive, "hf-task fail T-0001 --class transient --reason net --actor agent:a");
    assert_eq!(
        failed.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ACTION hf-task start T-0001 --actor agent:a\nSUM:T-0001 is Assigned: Form\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\nSUBJECT:task:<ulid>\nREF:T-0001@<tag>\nSTATE:Assigned\n"
    );
    assert_eq!(kinds_since(&hive, before), ["TaskFailed", "RunFinished", "TaskRetrying", "TaskAssigned"]);
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    let before = kinds(&hive).len();
    let failed = ok(&hive, "hf-task fail T-0001 --class permanent --reason no-such-api --actor agent:a");
    assert_eq!(failed.get("NEXT"), "NONE");
    assert_eq!(
        kinds_since(&hive, before),
        ["TaskFailed", "RunFinished", "TaskAborted", "EscalationRequired", "ThreadAborted", "BranchCompleted"]
    );
    assert_eq!(
        ok(&hive, "hf-task explain T-0001").all("BECAUSE"),
        ["T-0001 was aborted at 2026-01-31T12:00:00Z: no-such-api", "it failed (permanent): no-such-api; retried once"]
    );
    keeps_the_rules(&hive);
}

#[test]
fn a_task_out_of_retries_is_aborted_and_escalated() {
    // The setting, unless the task has a limit of its own.
    for (settings, propose, tries) in
        [("max_retries: 2", "hf-task propose Form", 2), ("max_retries: 2", "hf-task propose Form --retries 1", 1)]
    {
        let hive = governed(settings);
        ok(&hive, propose);
        ok(&hive, "hf-task claim T-0001");
        for _ in 0..=tries {
            assert_eq!(state(&hive, "T-0001"), "Assigned");
            ok(&hive, "hf-task start T-0001");
            ok(&hive, "hf-task fail T-0001 --class transient --reason net");
        }
        assert_eq!(kinds(&hive).last().unwrap(), "EscalationRequired");
        let reason = format!("net; gave up after {}", if tries == 1 { "1 retry" } else { "2 retries" });
        assert_eq!(hive.events().last().unwrap()["payload"]["reason"], json!(reason));
        assert_eq!(state(&hive, "T-0001"), "Aborted");
        keeps_the_rules(&hive);
    }
}

#[test]
fn a_task_waits_for_its_dependencies_and_its_requirement() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-task propose First --requirement REQ-0001");
    ok(&hive, "hf-task propose Second --after T-0001");
    let waiting = ok(&hive, "hf-task propose Third --after T-0001 --after T-0002 --requirement REQ-0001");
    assert_eq!(waiting.get("NEXT"), "ACTION hf-task explain T-0003");
    assert_eq!(ok(&hive, "hf-task list --ready").get("COUNT"), "0");
    ok(&hive, "hf-require analyze REQ-0001");
    assert_eq!(
        hive.run_next(&waiting).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:T-0003 is Proposed: Third\n\
         BECAUSE:T-0003 has been Proposed since 2026-01-31T12:00:00Z\n\
         BECAUSE:requirement REQ-0001 is Analyzed, not Approved\n\
         BECAUSE:DEC-0001 has been open since 2026-01-31T12:00:00Z: Build REQ-0001, Login?\n\
         BECAUSE:it waits for T-0001, which is Proposed\n\
         BECAUSE:T-0001 has been Proposed since 2026-01-31T12:00:00Z\n\
         BECAUSE:requirement REQ-0001 is Analyzed, not Approved\n\
         BECAUSE:DEC-0001 has been open since 2026-01-31T12:00:00Z: Build REQ-0001, Login?\n\
         BECAUSE:it waits for T-0002, which is Proposed\n\
         BECAUSE:T-0002 has been Proposed since 2026-01-31T12:00:00Z\n\
         BECAUSE:it waits for T-0001, which is Proposed\n"
    );
    let early =
        refuses(&hive, "hf-task claim T-0002", 3, "T-0002 cannot start: it waits for T-0001, which is Proposed");
    assert_eq!((early.get("REASON"), early.get("NEXT")), ("not_ready", "ACTION hf-task list"));
    hive.run_next(&early).expect_exit(0);
    refuses(&hive, "hf-task ready T-0001", 3, "T-0001 cannot start: requirement REQ-0001 is Analyzed, not Approved");
    refuses(
        &hive,
        "hf-append TaskReady --subject T-0001",
        3,
        "T-0001 cannot start: requirement REQ-0001 is Analyzed, not Approved",
    );
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(["T-0001", "T-0002", "T-0003"].map(|t| state(&hive, t)), ["Ready", "Proposed", "Proposed"]);
    for (task, next) in [("T-0001", "T-0002"), ("T-0002", "T-0003")] {
        ok(&hive, &format!("hf-task claim {task}"));
        ok(&hive, &format!("hf-task start {task}"));
        ok(&hive, &format!("hf-task succeed {task}"));
        assert_eq!(state(&hive, next), "Ready");
    }
    keeps_the_rules(&hive);
}

#[test]
fn a_task_cannot_wait_for_itself() {
    let hive = TestVault::new();
    let payload = json!({"title": "x", "after": ["me"]}).to_string();
    let reply = hive.refuses("append", &["TaskProposed", "--subject", "task:me", "--payload", &payload], 2);
    assert_eq!(reply.get("SUM"), "task:me cannot refer to itself");
    // What it waits for must be there before it, so there is no longer circle either.
    let lines = format!(
        "{}\n{}\n",
        json!({"event_type": "TaskProposed", "subject": "task:a", "payload": {"title": "a", "after": ["b"]}}),
        json!({"event_type": "TaskProposed", "subject": "task:b", "payload": {"title": "b", "after": ["a"]}})
    );
    let reply = hive.refuses_input("append", &["--batch"], lines, 6);
    assert_eq!(reply.get("SUM"), "line 1: the payload names task:b, which does not exist");
    refuses(&hive, "hf-task propose x --after T-0001", 6, "'T-0001' not found");
}

#[test]
fn the_next_task_is_the_preferred_one_then_the_oldest() {
    let hive = TestVault::new();
    for title in ["One", "Two", "Three"] {
        ok(&hive, &format!("hf-task propose {title}"));
    }
    ok(&hive, "hf-constraint apply Three-first --priority T-0003");
    ok(&hive, "hf-decide approve DEC-0001");
    let order: Vec<String> = (0..3).map(|_| ok(&hive, "hf-task claim").get("REF")[..6].to_owned()).collect();
    assert_eq!(order, ["T-0003", "T-0001", "T-0002"]);
    let events = hive.events();
    let applied = events.iter().find(|event| event["event_type"] == "ConstraintApplied").unwrap();
    let first = events.iter().find(|event| event["event_type"] == "TaskAssigned").unwrap();
    assert!(first["parents"].as_array().unwrap().contains(&applied["event_id"]), "what preferred it is a cause");
    assert_eq!(
        sh(&hive, "hf-task claim").expect_exit(1).stdout,
        "EXIT:1\nSTATUS:NO_TASK\nNEXT:ACTION hf-task start T-0001\nSUM:no task is ready; you hold T-0001 (Assigned): One\n"
    );
    assert_eq!(
        sh(&hive, "hf-task claim --actor agent:a").expect_exit(1).stdout,
        "EXIT:1\nSTATUS:NO_TASK\nNEXT:NONE\nSUM:no task is ready; 0 tasks waiting\n"
    );
    keeps_the_rules(&hive);
}

#[test]
fn the_limit_on_concurrent_tasks_is_enforced() {
    let hive = governed("max_concurrent_tasks: 1");
    ok(&hive, "hf-task propose One");
    ok(&hive, "hf-task propose Two");
    ok(&hive, "hf-task claim");
    for line in ["hf-task claim", "hf-task claim T-0002", "hf-append TaskAssigned --subject T-0002"] {
        let reply = refuses(&hive, line, 3, "task limit reached: 1 in progress");
        assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("too_many_tasks", "ACTION hf-task list"));
    }
    ok(&hive, "hf-task abort T-0001");
    ok(&hive, "hf-task claim");
}

#[test]
fn ready_tasks_are_assigned_automatically_if_configured() {
    let hive = governed("auto_assign: true\n  max_concurrent_tasks: 1");
    logged_in(&hive, "a", "main");
    logged_in(&hive, "b", "main");
    ok(&hive, "hf-task propose One");
    ok(&hive, "hf-task propose Two");
    assert_eq!(["T-0001", "T-0002"].map(|t| state(&hive, t)), ["Assigned", "Ready"]);
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    assert_eq!(state(&hive, "T-0002"), "Assigned");
    keeps_the_rules(&hive);
}

#[test]
fn nobody_else_can_work_on_a_held_task() {
    let hive = TestVault::new();
    held(&hive, "agent:a");
    for line in ["heartbeat T-0001", "start T-0001", "succeed T-0001", "fail T-0001 --class permanent --reason x"] {
        let reply = refuses(&hive, &format!("hf-task {line} --actor agent:b"), 3, "T-0001 is held by agent:a");
        assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("not_holder", "NONE"), "{line}");
    }
    refuses(&hive, "hf-task abort T-0001 --actor agent:b", 3, "T-0001 is held by agent:a");
    refuses(
        &hive,
        "hf-task claim T-0001 --actor agent:b",
        3,
        "is Assigned (held by agent:a), which does not allow TaskAssigned",
    );
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    let run = format!("run:{}", ok(&hive, "hf-task show T-0001").all("ENTITY")[0].split([':', ' ']).nth(1).unwrap());
    for kind in ["Heartbeat", "RunFinished", "RunCrashed", "RunTimedOut"] {
        refuses(&hive, &format!("hf-append {kind} --subject {run} --actor agent:b"), 3, "T-0001 is held by agent:a");
    }
    refuses(&hive, "hf-append TaskSucceeded --subject T-0001 --actor agent:b", 3, "T-0001 is held by agent:a");
    // A person may end anything.
    ok(&hive, "hf-task abort T-0001 --reason enough");
    assert_eq!(kinds(&hive).iter().filter(|kind| *kind == "RunCrashed").count(), 1);
    keeps_the_rules(&hive);
}

#[test]
fn an_agent_claims_for_itself_only() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let payload = json!({"holder": "agent:b", "lease_seconds": 900}).to_string();
    let args = ["TaskAssigned", "--subject", "T-0001", "--actor", "agent:a", "--payload", &payload];
    let reply = hive.refuses("append", &args, 3);
    assert_eq!((reply.get("SUM"), reply.get("REASON")), ("agent:a cannot claim a task for agent:b", "not_holder"));
}

#[test]
fn an_illegal_step_names_the_state_the_event_and_the_legal_ones() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let on = |state: &str, kind: &str, legal: &str| {
        let held = if state == "Assigned" { " (held by user:jo)" } else { "" };
        format!("T-0001 is {state}{held}, which does not allow {kind}; allowed: {legal}")
    };
    refuses(&hive, "hf-task start T-0001", 3, &on("Ready", "RunStarted", "TaskAssigned, TaskAborted"));
    refuses(&hive, "hf-task succeed T-0001", 3, &on("Ready", "TaskSucceeded", "TaskAssigned, TaskAborted"));
    ok(&hive, "hf-task claim T-0001");
    let assigned = "RunStarted, ClaimRenewed, ClaimExpired, TaskAborted, TaskAssigned, TaskEdited, TaskNoted";
    refuses(&hive, "hf-task succeed T-0001", 3, &on("Assigned", "TaskSucceeded", assigned));
    refuses(&hive, "hf-task fail T-0001 --class permanent --reason x", 3, &on("Assigned", "TaskFailed", assigned));
    ok(&hive, "hf-task start T-0001");
    ok(&hive, "hf-task succeed T-0001");
    for line in ["abort T-0001", "heartbeat T-0001", "start T-0001", "claim T-0001"] {
        let reply = refuses(&hive, &format!("hf-task {line}"), 3, "is Succeeded, which does not allow ");
        assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("illegal_transition", "NONE"));
        assert!(reply.get("SUM").ends_with("; allowed: TaskArchived"), "{reply:#?}");
    }
}

#[test]
fn malformed_arguments_are_usage_errors() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Other");
    for line in [
        "hf-task fail T-0001 --class sometimes --reason x",
        "hf-task fail T-0001 --class transient",
        "hf-task claim --lease soon",
        "hf-task claim --lease 0",
        "hf-task list --ready --status Ready",
        "hf-task list --status Lost",
        "hf-task propose",
    ] {
        refuses(&hive, line, 2, "");
    }
    hive.refuses("task", &["propose", ""], 2);
    for line in ["show", "explain", "claim", "start", "heartbeat", "succeed", "abort", "ready"] {
        refuses(&hive, &format!("hf-task {line} T-0009"), 6, "'T-0009' not found");
        refuses(&hive, &format!("hf-task {line} 01KG"), 6, "'01KG' is ambiguous; it matches task:<ulid>, task:<ulid>");
    }
}

#[test]
fn the_audit_finds_work_on_someone_elses_task_in_a_forged_log() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    let task = format!("task:{}", id(&hive, "task", "T-0001"));
    let found = found_after(
        &hive,
        vec![
            ("agent:b", Kind::AgentStarted, "agent:b", json!({})),
            ("agent:b", Kind::TaskFailed, &task, json!({"error_class": "transient", "reason": "x"})),
        ],
    );
    assert!(found.contains(&"T-0001 is held by agent:a".to_owned()), "{found:#?}");
}

#[test]
fn the_audit_finds_an_unjustified_consequence_in_a_forged_log() {
    let hive = TestVault::new();
    let found = found_after(&hive, vec![("user:jo", Kind::TaskProposed, "task:t", json!({"title": "x"}))]);
    assert_eq!(found, ["TaskReady of task:t must follow, but is missing"]);
    let hive = TestVault::new();
    running(&hive, "agent:a");
    let (task, run) = (format!("task:{}", id(&hive, "task", "T-0001")), ok(&hive, "hf-task show T-0001"));
    let run = run.all("ENTITY")[0].split(' ').next().unwrap().to_owned();
    let lost = json!({"reason": "no power"});
    let found = found_after(&hive, vec![("agent:a", Kind::RunCrashed, &run, lost)]);
    assert_eq!(found, [format!("TaskFailed of {task} must follow, but is missing")]);
}

/// How many processes claim at once, and how many tasks there are.
const CLAIMERS: usize = 16;
const TASKS: usize = 100;

/// Every claimer takes tasks until none is left. Gives who won what.
fn race(hive: &TestVault) -> BTreeMap<String, Vec<String>> {
    let lines: Vec<_> =
        (0..TASKS).map(|n| json!({"event_type": "TaskProposed", "payload": {"title": format!("task {n}")}})).collect();
    hive.batch(&lines);
    let claim = |n: usize| {
        let (actor, mut won) = (format!("agent:a{n}"), Vec::new());
        loop {
            let reply: Reply = hive.run("task", &["claim", "--actor", &actor, "--lock-timeout", "60"]);
            match reply.get("STATUS") {
                "CLAIMED" => won.push((reply.get("SUBJECT").to_owned(), reply.get("HOLDER").to_owned())),
                "NO_TASK" => return won,
                _ => panic!("{reply:#?}"),
            }
        }
    };
    let mut winners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    thread::scope(|scope| {
        let claimers: Vec<_> = (0..CLAIMERS).map(|n| scope.spawn(move || claim(n))).collect();
        for (task, holder) in claimers.into_iter().flat_map(|claimer| claimer.join().expect("it ends")) {
            winners.entry(task).or_default().push(holder);
        }
    });
    winners
}

#[track_caller]
fn has_one_winner_each(hive: &TestVault) {
    let winners = race(hive);
    assert_eq!(winners.len(), TASKS);
    let twice: Vec<_> = winners.iter().filter(|(_, holders)| holders.len() != 1).collect();
    assert!(twice.is_empty(), "{twice:#?}");
    keeps_the_rules(hive);
}

#[test]
fn sixteen_claimers_of_a_hundred_tasks_get_one_winner_each() {
    has_one_winner_each(&governed("max_concurrent_tasks: 200"));
}

#[test]
#[ignore = "a hundred rounds take minutes"]
fn sixteen_claimers_of_a_hundred_tasks_get_one_winner_each_a_hundred_times() {
    for _ in 0..100 {
        has_one_winner_each(&governed("max_concurrent_tasks: 200"));
    }
}

/// A vault with a running task, and a prompt and a response that belong to it.
fn prompted() -> TestVault {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    for (kind, text) in [("prompt", "Write a form."), ("response", "<form>")] {
        hive.pipe("artifact", &["put", "-", "--kind", kind, "--for", "T-0001", "--actor", "agent:a"], text)
            .expect_exit(0);
    }
    hive
}

#[test]
fn the_end_of_a_run_names_prompt_response_and_usage() {
    let hive = prompted();
    let usage = "--prompt ART-0001 --response ART-0002 --usage 1500,2000 --actor agent:a";
    ok(&hive, &format!("hf-task succeed T-0001 --summary Done. {usage}"));
    let [prompt, response] = ["ART-0001", "ART-0002"].map(|reference| id(&hive, "artifact", reference));
    let tokens = json!({"prompt": 1500, "completion": 2000});
    let finished = hive.events().into_iter().find(|event| event["event_type"] == "RunFinished").unwrap();
    assert_eq!(
        finished["payload"],
        json!({
            "success": true, "summary": "Done.", "prompt_artifact_id": prompt, "response_artifact_id": response,
            "token_usage": tokens,
        })
    );
    let shown = ok(&hive, "hf-task show T-0001");
    for fact in [
        format!("prompt_artifact_id {prompt}"),
        format!("response_artifact_id {response}"),
        "token_usage {\"completion\":2000,\"prompt\":1500}".to_owned(),
    ] {
        assert!(shown.all("FACT").contains(&fact.as_str()), "{fact}: {shown:#?}");
    }
    let runs = hive.json("projections/runs.json");
    assert_eq!(runs.as_object().unwrap().values().next().unwrap()["token_usage"], tokens);
    // The response leads to the end of the run.
    let lineage = hive.run("lineage", &["ART-0002", "--down"]).stdout;
    assert!(lineage.contains("RunFinished"), "{lineage}");
    // The same again records nothing.
    assert_eq!(ok(&hive, &format!("hf-task succeed T-0001 {usage}")).get("STATUS"), "DUPLICATE");
    keeps_the_rules(&hive);
}

#[test]
fn a_failed_run_names_them_too_and_is_retried_as_always() {
    let hive = prompted();
    let before = kinds(&hive).len();
    ok(&hive, "hf-task fail T-0001 --class transient --reason limit --prompt ART-0001 --usage 1500,0 --actor agent:a");
    assert_eq!(kinds_since(&hive, before), ["RunFinished", "TaskFailed", "TaskRetrying", "TaskAssigned"]);
    let finished = &hive.events()[before]["payload"];
    assert_eq!(
        *finished,
        json!({
            "success": false, "prompt_artifact_id": id(&hive, "artifact", "ART-0001"),
            "token_usage": {"prompt": 1500, "completion": 0},
        })
    );
    keeps_the_rules(&hive);
}

#[test]
fn prompt_response_and_usage_are_checked() {
    let hive = prompted();
    let succeed = |options: &str| format!("hf-task succeed T-0001 --actor agent:a {options}");
    refuses(&hive, &succeed("--prompt ART-0009"), 6, "ART-0009");
    refuses(&hive, &succeed("--response T-0001"), 2, "T-0001 is a task, not an artifact");
    for usage in ["1500", "1500,", "1500,-1", "many,few", "1500,2000,1", "9007199254740992,1"] {
        refuses(&hive, &succeed(&format!("--usage {usage}")), 2, "two whole numbers");
    }
    let run = ok(&hive, "hf-task show T-0001").all("ENTITY")[0].split(' ').next().unwrap().to_owned();
    for (payload, code, sum) in [
        (json!({"prompt_artifact_id": "nothing"}), 6, "does not exist"),
        (json!({"token_usage": {"prompt": "many"}}), 2, "an object of non-negative integers"),
    ] {
        let payload = payload.to_string();
        let refused = hive.refuses(
            "append",
            &["RunFinished", "--subject", &run, "--payload", &payload, "--actor", "agent:a"],
            code,
        );
        assert!(refused.get("SUM").contains(sum), "{refused:#?}");
    }
    // Nothing is dropped in silence.
    hive.run("append", &["RunFinished", "--subject", &run, "--actor", "agent:a"]).expect_exit(0);
    refuses(&hive, &succeed("--usage 1,2"), 3, "the run of T-0001 has ended; nothing can be added to it");
    ok(&hive, &succeed("--summary Done."));
    keeps_the_rules(&hive);
}

/// Members that version 0.1 did not know were kept as they were.
#[test]
fn an_older_log_may_name_artifacts_that_do_not_exist() {
    let found = |with_settings: bool| {
        let hive = TestVault::new();
        let mut events = hive.recorded();
        events.truncate(1);
        if !with_settings {
            events[0].payload.remove("settings");
        }
        let steps = [
            (Kind::TaskProposed, "task:t", json!({"title": "x"})),
            (Kind::TaskReady, "task:t", json!({})),
            (Kind::TaskAssigned, "task:t", json!({})),
            (Kind::RunStarted, "run:r", json!({"task_id": "t"})),
            (Kind::RunFinished, "run:r", json!({"prompt_artifact_id": "ART-0001"})),
        ];
        for (n, (kind, subject, payload)) in steps.into_iter().enumerate() {
            events.push(forged(n as u64 + 1, kind, subject, payload));
        }
        let about_artifacts = |found: &String| found.contains("artifact:");
        found_in(&hive, events).into_iter().filter(about_artifacts).collect::<Vec<_>>()
    };
    assert_eq!(found(false), [""; 0]);
    assert_eq!(found(true), ["the payload names artifact:ART-0001, which does not exist"]);
}
