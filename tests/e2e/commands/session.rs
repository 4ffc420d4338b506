//! hf-session: an agent comes, asks what to do, does it, and leaves.

use hiveforge::event::Kind;
use serde_json::json;

use crate::support::steps::{count, id, keeps_the_rules, kinds, kinds_since, ok, sh, state};
use crate::support::test_vault::{Reply, TestVault};
use crate::support::watchdog_fixture::{all_is_well, at, configured, moment, tick};

use crate::support::session_fixture::{asks_to_leave, logged_in, within};

/// What `hf-session next` says: action, and why.
#[track_caller]
fn said_next(reply: Reply) -> (String, String) {
    let reply = reply.expect_exit(0);
    (reply.get("ACTION").to_owned(), reply.all("REASON").first().copied().unwrap_or_default().to_owned())
}

#[test]
fn every_session_reply_is_complete() {
    let hive = TestVault::new();
    assert_eq!(
        ok(&hive, "hf-session next --agent a").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:a: wait; no task is ready\nREASON:no_task\nACTION:hold\nPROJECT:main\n"
    );
    ok(&hive, "hf-task propose Form");
    let next = ok(&hive, "hf-session next --agent a");
    assert_eq!(
        next.masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:ACTION hf-session login --agent a\nSUM:a: start with T-0001\nACTION:start\nPROJECT:main\n\
         TASK_ID:T-0001\n"
    );
    let login = hive.run_next(&next).expect_exit(0);
    assert_eq!(
        login.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ACTION hf-session task --session <ulid>\nSUM:S-0001 is Active\n\
         EVENT_ID:<ulid>\nEVENT_ID:<ulid>\nSUBJECT:session:<ulid>\nREF:S-0001@<tag>\nSTATE:Active\n\
         SESSION_ID:<ulid>\nEXPIRES_AT:2026-01-31T13:00:00Z\n"
    );
    let session = login.get("SESSION_ID").to_owned();
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    let task = hive.run_next(&login).expect_exit(0);
    assert_eq!(
        task.masked(&hive),
        "EXIT:0\nSTATUS:CLAIMED\nNEXT:ACTION hf-task start T-0001 --actor agent:a\nSUM:T-0001 is Assigned: Form\n\
         TASK_ID:T-0001\nSTATE:Assigned\n\
         EVENT:<ulid> 2026-01-31T12:00:00Z TaskProposed task:<ulid> user:jo Form\n\
         EVENT:<ulid> 2026-01-31T12:00:00Z TaskReady task:<ulid> core:reactor\n\
         EVENT:<ulid> 2026-01-31T12:00:00Z TaskAssigned task:<ulid> agent:a\n"
    );
    // In the agent's own shell nothing needs to be named.
    assert_eq!(within(&hive, &shell, "hf-session task").get("NEXT"), "ACTION hf-task start T-0001");
    hive.run_next(&task).expect_exit(0);
    within(&hive, &shell, "hf-checkpoint half").expect_exit(0);
    std::fs::write(hive.dir().join("form.html"), "<form>").unwrap();
    within(&hive, &shell, "hf-artifact put form.html --for T-0001").expect_exit(0);
    let again = within(&hive, &shell, "hf-session task").expect_exit(0);
    assert_eq!(
        again.masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:T-0001 is Running: Form\nTASK_ID:T-0001\nSTATE:Running\nPREVIOUS:half\n\
         EVENT:<ulid> 2026-01-31T12:00:00Z TaskProposed task:<ulid> user:jo Form\n\
         EVENT:<ulid> 2026-01-31T12:00:00Z TaskReady task:<ulid> core:reactor\n\
         EVENT:<ulid> 2026-01-31T12:00:00Z TaskAssigned task:<ulid> agent:a\n\
         EVENT:<ulid> 2026-01-31T12:00:00Z RunStarted run:<ulid> agent:a\n\
         ENTITY:artifact:<ulid> ART-0001@<tag> Materialized code\n"
    );
    assert_eq!(
        within(&hive, &shell, "hf-session renew --ttl 2h").expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:S-0001 is Active\nEVENT_ID:<ulid>\nSUBJECT:session:<ulid>\n\
         REF:S-0001@<tag>\nSTATE:Active\nSESSION_ID:<ulid>\nEXPIRES_AT:2026-01-31T14:00:00Z\n"
    );
    assert_eq!(
        ok(&hive, "hf-session list").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:1 session\nCOUNT:1\nHAS_MORE:no\nENTITY:session:<ulid> S-0001@<tag> Active a \
         in main until 2026-01-31T14:00:00Z\n"
    );
    assert_eq!(
        within(&hive, &shell, "hf-session report --summary done").expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ACTION hf-session next\nSUM:T-0001 is Succeeded: Form\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\nSUBJECT:task:<ulid>\nREF:T-0001@<tag>\nSTATE:Succeeded\n"
    );
    assert_eq!(
        within(&hive, &shell, "hf-session next").expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:ACTION hf-session logout\nSUM:a: log out; no task is ready\nREASON:no_task\nACTION:exit\nPROJECT:main\n"
    );
    assert_eq!(
        within(&hive, &shell, "hf-session task").expect_exit(1).masked(&hive),
        "EXIT:1\nSTATUS:NO_TASK\nNEXT:NONE\nSUM:no task is ready\n"
    );
    assert_eq!(
        within(&hive, &shell, "hf-session logout").expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:S-0001 is Ended\nEVENT_ID:<ulid>\nSUBJECT:session:<ulid>\n\
         REF:S-0001@<tag>\nSTATE:Ended\nSESSION_ID:<ulid>\nEXPIRES_AT:2026-01-31T14:00:00Z\n"
    );
    let before = hive.contents();
    assert_eq!(
        within(&hive, &shell, "hf-session logout").expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:DUPLICATE\nNEXT:NONE\nSUM:S-0001 is Ended\nEVENT_ID:<ulid>\nSUBJECT:session:<ulid>\n\
         REF:S-0001@<tag>\nSTATE:Ended\nSESSION_ID:<ulid>\nEXPIRES_AT:2026-01-31T14:00:00Z\n"
    );
    assert_eq!(
        ok(&hive, "hf-session logout --agent a").stdout,
        "EXIT:0\nSTATUS:DUPLICATE\nNEXT:NONE\nSUM:no session is open\n"
    );
    assert!(hive.contents() == before);
    assert_eq!(ok(&hive, "hf-session list").get("COUNT"), "0");
    assert_eq!(ok(&hive, "hf-session list --all").get("COUNT"), "1");
    all_is_well(&hive);
}

#[test]
fn bad_requests_are_refused() {
    let hive = TestVault::new();
    for (line, code) in [
        ("hf-session", 2),
        ("hf-session renew", 2),
        ("hf-session task", 2),
        ("hf-session report", 2),
        ("hf-session login --agent ../x", 2),
        ("hf-session login --project ../x", 2),
        ("hf-session login --ttl 0", 2),
        ("hf-session renew --session S-0001", 6),
        ("hf-session logout --session nobody", 6),
        ("hf-session next --session nobody", 6),
    ] {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        hive.refuses("session", &words, code);
    }
    logged_in(&hive, "a", "main");
    let words = ["report", "--session", "S-0001"];
    assert_eq!(hive.refuses("session", &words, 6).get("SUM"), "you do not hold a task");
}

#[test]
fn launchers_are_told_to_start_or_hold_and_agents_to_continue_or_leave() {
    let mut hive = TestVault::new();
    let asks = |hive: &TestVault, line: &str| said_next(sh(hive, &format!("hf-session next --agent a {line}")));
    let words = |action: &str, reason: &str| (action.to_owned(), reason.to_owned());
    let (free, seated) = ("--project main", "--session S-0001");
    assert_eq!(asks(&hive, free), words("hold", "no_task"));
    ok(&hive, "hf-task propose One");
    assert_eq!(asks(&hive, free), words("start", ""));
    logged_in(&hive, "a", "main");
    assert_eq!(asks(&hive, free), words("hold", "already_running"));
    assert_eq!(asks(&hive, seated), words("start", ""));
    // Another agent, and another project, are not held up by it.
    assert_eq!(said_next(ok(&hive, "hf-session next --agent b")), words("start", ""));
    ok(&hive, "hf-task propose Two --project b --create");
    assert_eq!(asks(&hive, "--project b"), words("start", ""));
    ok(&hive, "hf-pause look");
    assert_eq!(asks(&hive, free), words("hold", "project_paused"));
    assert_eq!(asks(&hive, seated), words("exit", "project_paused"));
    assert_eq!(asks(&hive, "--project b"), words("start", ""));
    ok(&hive, "hf-stop fire");
    assert_eq!(asks(&hive, free), words("hold", "system_stopped"));
    assert_eq!(asks(&hive, seated), words("hold", "system_stopped"));
    ok(&hive, "hf-resume --system");
    ok(&hive, "hf-resume");
    assert_eq!(asks(&hive, seated), words("start", ""));
    // A session whose time is over is nobody's.
    hive.at(&moment(301).to_string());
    assert_eq!(asks(&hive, free), words("start", ""));
    assert_eq!(asks(&hive, seated), words("exit", "session_void"));
    logged_in(&hive, "a", "b");
    ok(&hive, "hf-pause --archive b --yes");
    assert_eq!(asks(&hive, "--project b"), words("hold", "project_archived"));
    keeps_the_rules(&hive);
}

#[test]
fn a_session_only_gets_tasks_of_its_own_project() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Theirs --project b --create");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    assert_eq!(said_next(within(&hive, &shell, "hf-session next")).1, "no_task");
    assert_eq!(within(&hive, &shell, "hf-session task").expect_exit(1).get("STATUS"), "NO_TASK");
    assert_eq!(state(&hive, "T-0001"), "Ready");
    // The same without hf-session: in a session its project is meant, if no other is named.
    assert_eq!(within(&hive, &shell, "hf-task claim").expect_exit(1).get("STATUS"), "NO_TASK");
    ok(&hive, "hf-task propose Mine");
    assert_eq!(within(&hive, &shell, "hf-session task").expect_exit(0).get("TASK_ID"), "T-0002");
    let session = logged_in(&hive, "b", "b");
    let shell = [("HF_AGENT", "b"), ("HF_SESSION", session.as_str())];
    ok(&hive, "hf-task propose More");
    assert_eq!(within(&hive, &shell, "hf-session task").expect_exit(0).get("TASK_ID"), "T-0001");
    within(&hive, &shell, "hf-session report").expect_exit(0);
    assert_eq!(within(&hive, &shell, "hf-session task").expect_exit(1).get("STATUS"), "NO_TASK");
    assert_eq!(state(&hive, "T-0003"), "Ready");
    // What an agent proposes in a session belongs to its project.
    within(&hive, &shell, "hf-task propose Next").expect_exit(0);
    assert_eq!(within(&hive, &shell, "hf-session task").expect_exit(0).get("TASK_ID"), "T-0004");
    keeps_the_rules(&hive);
}

#[test]
fn logging_in_again_ends_the_old_session_in_that_project() {
    let hive = TestVault::new();
    let (first, elsewhere) = (logged_in(&hive, "a", "main"), logged_in(&hive, "a", "b"));
    let second = logged_in(&hive, "a", "main");
    let open: Vec<String> = ok(&hive, "hf-session list").all("ENTITY").into_iter().map(str::to_owned).collect();
    assert_eq!(open.len(), 2);
    assert!(open.iter().all(|line| !line.contains(&first)), "{open:#?}");
    let ended = hive.events().into_iter().find(|event| event["event_type"] == "SessionEnded").unwrap();
    assert_eq!((&ended["payload"]["reason"], &ended["actor"]), (&json!("replaced"), &json!("agent:a")));
    asks_to_leave(&hive, &[("HF_AGENT", "a"), ("HF_SESSION", &first)], "hf-session renew", "session_void");
    for session in [&second, &elsewhere] {
        within(&hive, &[("HF_AGENT", "a"), ("HF_SESSION", session)], "hf-session renew").expect_exit(0);
    }
    // Without naming one, all of them are left.
    let left = ok(&hive, "hf-session logout --agent a");
    assert_eq!(left.all("EVENT_ID").len(), 2, "{left:#?}");
    keeps_the_rules(&hive);
}

#[test]
fn an_expired_session_can_only_log_out() {
    let mut hive = TestVault::new();
    std::fs::write(hive.dir().join("x"), "x").unwrap();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Other");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    within(&hive, &shell, "hf-session task").expect_exit(0);
    within(&hive, &shell, "hf-task start T-0001").expect_exit(0);
    for second in [900, 1800, 2700, 3600] {
        hive.at(&moment(second).to_string());
        within(&hive, &shell, "hf-task heartbeat T-0001").expect_exit(0);
    }
    // Over by its time; then by a record of that; then because there never was such a session.
    hive.at(&moment(3601).to_string());
    let session_was_over = |hive: &TestVault, session: &str| {
        let shell = [("HF_AGENT", "a"), ("HF_SESSION", session)];
        for line in [
            "hf-task claim",
            "hf-task claim T-0002",
            "hf-task heartbeat T-0001",
            "hf-task succeed T-0001",
            "hf-task fail T-0001 --class transient --reason x",
            "hf-task abort T-0001",
            "hf-task propose Third",
            "hf-require propose Third",
            "hf-checkpoint here",
            "hf-activity --kind thinking",
            "hf-deepwork start --flexible x",
            "hf-artifact put x --for T-0001",
            "hf-job fire -- true",
            "hf-append Heartbeat --subject RUN-0001",
            "hf-append EscalationRequired --subject T-0001 --payload {\"reason\":\"x\"}",
        ] {
            asks_to_leave(hive, &shell, line, "session_void");
        }
        for line in ["hf-task list", "hf-task show T-0001", "hf-status", "hf-log", "hf-task explain T-0001"] {
            let reply = within(hive, &shell, line);
            assert_eq!(reply.get("NEXT"), "ACTION hf-session logout", "{line}");
        }
    };
    session_was_over(&hive, &session);
    for line in ["hf-session renew", "hf-session task", "hf-session report"] {
        asks_to_leave(&hive, &shell, line, "session_void");
    }
    assert_eq!(said_next(within(&hive, &shell, "hf-session next")), ("exit".to_owned(), "session_void".to_owned()));
    ok(&hive, "hf-watchdog");
    assert_eq!(count(&hive, "SessionExpired"), 1);
    session_was_over(&hive, &session);
    session_was_over(&hive, "S-0099");
    assert_eq!(within(&hive, &shell, "hf-session logout").expect_exit(0).get("STATUS"), "DUPLICATE");
    // Its task waits for its lease like any other, and its agent can come again.
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    assert_eq!(within(&hive, &shell, "hf-session task").expect_exit(0).get("TASK_ID"), "T-0001");
    keeps_the_rules(&hive);
}

#[test]
fn a_session_variable_alone_makes_an_agents_shell() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_SESSION", session.as_str())];
    let task = within(&hive, &shell, "hf-session task").expect_exit(0);
    let next = format!("hf-{}", task.get("NEXT").strip_prefix("ACTION hf-").unwrap());
    assert_eq!(next, "hf-task start T-0001");
    within(&hive, &shell, &next).expect_exit(0);
    within(&hive, &shell, "hf-checkpoint here").expect_exit(0);
    within(&hive, &shell, "hf-task heartbeat T-0001").expect_exit(0);
    within(&hive, &shell, "hf-task succeed T-0001").expect_exit(0);
    let actors: Vec<_> = hive.events().into_iter().map(|event| event["actor"].as_str().unwrap().to_owned()).collect();
    let persons = actors.iter().filter(|actor| *actor == "user:jo").count();
    // The person only made the vault and proposed the task.
    let last = actors.iter().rfind(|actor| *actor != "core:reactor").unwrap();
    assert_eq!((persons, last.as_str()), (2, "agent:a"));
    let speaks = within(&hive, &shell, "hf-task propose x --actor agent:b").expect_exit(3);
    assert_eq!(speaks.get("REASON"), "operator_only");
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-pause look");
    asks_to_leave(&hive, &shell, "hf-task claim T-0002", "project_paused");
    asks_to_leave(&hive, &shell, "hf-task propose x", "project_paused");
    keeps_the_rules(&hive);
}

#[test]
fn another_agents_session_cannot_be_used() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Other");
    let theirs = logged_in(&hive, "a", "main");
    ok(&hive, &format!("hf-session task --session {theirs}"));
    let shell = [("HF_AGENT", "b"), ("HF_SESSION", theirs.as_str())];
    for what in ["renew", "next", "task", "report", "logout"] {
        let before = hive.contents();
        let reply = within(&hive, &shell, &format!("hf-session {what}")).expect_exit(3);
        assert_eq!((reply.get("STATUS"), reply.get("REASON")), ("REFUSED", "not_holder"), "{what}");
        assert!(hive.contents() == before, "{what}");
    }
    for line in ["hf-task claim T-0002", "hf-task propose x", "hf-checkpoint here", "hf-deepwork start --flexible x"] {
        let before = hive.contents();
        let reply = within(&hive, &shell, line).expect_exit(3);
        assert!(reply.get("SUM").contains("S-0001 belongs to agent a"), "{line}: {reply:#?}");
        assert!(hive.contents() == before, "{line}");
    }
    // A person may look after anybody's.
    ok(&hive, "hf-session renew --session S-0001");
    ok(&hive, "hf-session logout --session S-0001");
    keeps_the_rules(&hive);
}

#[test]
fn a_report_may_name_its_task_and_be_repeated() {
    let hive = TestVault::new();
    for title in ["One", "Two", "Three"] {
        ok(&hive, &format!("hf-task propose {title}"));
    }
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    within(&hive, &shell, "hf-task claim T-0001").expect_exit(0);
    within(&hive, &shell, "hf-task claim T-0002").expect_exit(0);
    // Claimed and never begun: begun and done in one go, by whatever name.
    within(&hive, &shell, "hf-session report --task T-0002 --key two").expect_exit(0);
    assert_eq!(["T-0001", "T-0002"].map(|t| state(&hive, t)), ["Assigned", "Succeeded"]);
    let before = hive.contents();
    let again = within(&hive, &shell, "hf-session report --task T-0002 --key two").expect_exit(0);
    assert_eq!(again.get("STATUS"), "DUPLICATE");
    within(&hive, &shell, "hf-session report --task T-0001 --key two").expect_exit(3);
    assert!(hive.contents() == before);
    // Without a name the key says which one was meant, although another is held by now.
    within(&hive, &shell, "hf-session report --key one").expect_exit(0);
    within(&hive, &shell, "hf-task claim T-0003").expect_exit(0);
    let before = hive.contents();
    assert_eq!(within(&hive, &shell, "hf-session report --key one").expect_exit(0).get("STATUS"), "DUPLICATE");
    assert!(hive.contents() == before);
    let before = kinds(&hive).len();
    within(&hive, &shell, "hf-session report --failed broken --class transient --key three").expect_exit(0);
    assert_eq!(kinds_since(&hive, before), ["RunStarted", "TaskFailed", "RunFinished", "TaskRetrying", "TaskAssigned"]);
    keeps_the_rules(&hive);
}

#[test]
fn an_unrenewed_session_expires_and_is_reported_once() {
    let mut hive = configured("");
    logged_in(&hive, "a", "main");
    // The agent itself would be missed, too.
    assert!(!tick(&mut hive, 3600).iter().any(|found| found.starts_with("SESSION_EXPIRED")));
    let found = tick(&mut hive, 3601);
    let expired: Vec<_> = found.iter().filter(|found| found.starts_with("SESSION_EXPIRED")).collect();
    assert_eq!(expired.len(), 1, "{found:#?}");
    assert!(expired[0].ends_with(" error 1"), "{expired:?}");
    assert!(!tick(&mut hive, 3602).iter().any(|found| found.starts_with("SESSION_EXPIRED")));
    assert_eq!(count(&hive, "SessionExpired"), 1);
    all_is_well(&hive);
}

#[test]
fn a_session_is_told_about_a_resume_if_its_agent_was_there_or_comes_within_five_minutes() {
    let mut hive = configured("");
    ok(&hive, "hf-task propose Form --project b --create");
    ok(&hive, "hf-task propose Form");
    let old = logged_in(&hive, "old", "main");
    ok(&hive, "hf-pause look");
    at(&mut hive, 100, "hf-resume").expect_exit(0);
    let told = |hive: &TestVault, session: &str| {
        let reply = sh(hive, &format!("hf-session task --session {session}"));
        let (flag, said) = (reply.all("RESUMED_FROM_PAUSE").len(), reply.all("INSTRUCTION").len());
        assert_eq!(flag, said);
        reply.all("RESUMED_FROM_PAUSE").first().copied() == Some("true")
    };
    let at_once = logged_in(&hive, "a", "main");
    assert!(told(&hive, &old), "it was there before the pause");
    let reply = sh(&hive, &format!("hf-session task --session {at_once}"));
    assert_eq!(
        reply.get("INSTRUCTION"),
        "work was paused and has been resumed: check the current state and clean up what is half done; the repository and its \
         dependencies may have changed"
    );
    hive.at(&moment(399).to_string());
    let late = logged_in(&hive, "b", "main");
    let elsewhere = logged_in(&hive, "b", "b");
    hive.at(&moment(400).to_string());
    let too_late = logged_in(&hive, "c", "main");
    let sessions = [&late, &too_late, &elsewhere];
    assert_eq!(sessions.map(|session| told(&hive, session)), [true, false, false]);
    // It is the session's begin that counts, not when it asks.
    hive.at(&moment(1000).to_string());
    assert!(told(&hive, &late));
    keeps_the_rules(&hive);
}

#[test]
fn events_within_one_second_are_ordered_by_the_log() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let before = logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-resume");
    let after = logged_in(&hive, "b", "main");
    let told = |session: &str| sh(&hive, &format!("hf-session task --session {session}")).all("INSTRUCTION").len();
    assert_eq!([told(&before), told(&after)], [1, 1]);
}

#[test]
fn no_session_is_so_long_that_a_pause_cannot_end_it() {
    let mut hive = TestVault::new();
    let payload = json!({"agent_id": "a", "ttl_seconds": (1_u64 << 53) - 1});
    hive.append("AgentStarted", "agent:a", json!({}));
    hive.append("SessionStarted", "session:s", payload);
    ok(&hive, "hf-pause look");
    assert_eq!(count(&hive, "SessionCut"), 1);
    hive.at(&moment(301).to_string());
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", "s")];
    asks_to_leave(&hive, &shell, "hf-checkpoint x", "session_void");
    let reply = sh(&hive, "hf-pause --wait --max 1s").expect_exit(0);
    assert_eq!(reply.get("DRAINED"), "yes");
    keeps_the_rules(&hive);
}

#[test]
fn next_keeps_the_agent_given_by_a_flag() {
    let hive = TestVault::new();
    let session = logged_in(&hive, "a", "main");
    ok(&hive, "hf-pause look");
    for (line, next) in [
        ("hf-session task --session S-0001".to_owned(), "ACTION hf-session logout --session S-0001"),
        ("hf-session renew --session S-0001".to_owned(), "ACTION hf-session logout --session S-0001"),
        ("hf-session report --session s-0001".to_owned(), "ACTION hf-session logout --session S-0001"),
        ("hf-session login --agent b".to_owned(), "NONE"),
        ("hf-session next --session S-0001".to_owned(), "ACTION hf-session logout --session S-0001"),
        ("hf-session next --agent b".to_owned(), "NONE"),
        (format!("hf-session task --session {session}"), &format!("ACTION hf-session logout --session {session}")),
    ] {
        assert_eq!(sh(&hive, &line).get("NEXT"), next, "{line}");
    }
    // In the agent's own shell nothing needs to be named.
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    assert_eq!(within(&hive, &shell, "hf-session task").get("NEXT"), "ACTION hf-session logout");
    let left = hive.run_next(&sh(&hive, "hf-session task --session S-0001")).expect_exit(0);
    assert_eq!(left.get("SUM"), "S-0001 is Ended");
    assert_eq!(count(&hive, "PauseDrained"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn an_agent_can_only_use_its_own_sessions() {
    let hive = TestVault::new();
    logged_in(&hive, "a", "main");
    let started = json!({"agent_id": "a", "ttl_seconds": 9}).to_string();
    let (ended, renewed) = (json!({"reason": "logout"}).to_string(), json!({"ttl_seconds": 9}).to_string());
    for (kind, subject, payload) in [
        ("SessionStarted", "session:x", &started),
        ("SessionRenewed", "S-0001", &renewed),
        ("SessionEnded", "S-0001", &ended),
    ] {
        let reply =
            hive.refuses("append", &[kind, "--subject", subject, "--payload", payload, "--actor", "agent:b"], 3);
        assert_eq!(reply.get("REASON"), "not_holder", "{kind}");
    }
    for (kind, payload) in [("SessionExpired", "{}"), ("SessionCut", "{\"seconds\":1}")] {
        let line = format!("hf-append {kind} --subject S-0001 --payload {payload} --actor agent:a");
        assert_eq!(sh(&hive, &line).expect_exit(3).get("REASON"), "operator_only");
    }
    let session = format!("session:{}", id_of_session(&hive));
    let found = crate::support::steps::found_after(
        &hive,
        vec![
            ("agent:b", Kind::AgentStarted, "agent:b", json!({})),
            ("agent:b", Kind::SessionEnded, &session, json!({"reason": "logout"})),
        ],
    );
    assert_eq!(found, ["agent:b cannot act for agent:a"]);
}

/// The id of the only session.
fn id_of_session(hive: &TestVault) -> String {
    let list = ok(hive, "hf-session list --all");
    let line = list.get("ENTITY").split(' ').next().unwrap().to_owned();
    line.split_once(':').unwrap().1.to_owned()
}

#[test]
fn the_task_of_a_session_comes_with_the_newest_events_about_it() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form --retries 9");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    for _ in 0..3 {
        within(&hive, &shell, "hf-session task").expect_exit(0);
        within(&hive, &shell, "hf-session report --failed x --class transient").expect_exit(0);
    }
    let reply = within(&hive, &shell, "hf-session task").expect_exit(0);
    let events: Vec<&str> = reply.all("EVENT").iter().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(events, ["RunStarted", "TaskFailed", "RunFinished", "TaskRetrying", "TaskAssigned"]);
    assert_eq!(id(&hive, "task", "T-0001").len(), 26);
}
