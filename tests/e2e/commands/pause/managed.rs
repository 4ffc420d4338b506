//! Who is where and until when, what an agent learns when it comes back, and what does not happen by accident.

use crate::support::session_fixture::{logged_in, within};
use crate::support::steps::{count, keeps_the_rules, ok, refuses, sh};
use crate::support::test_vault::{Reply, TestVault};
use crate::support::watchdog_fixture::at;

/// Two projects: `main` with T-0001, held by a in S-0001, and `brand` with T-0002, held by b in S-0002.
fn two_projects() -> TestVault {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Logo --project brand --create");
    for (agent, project) in [("a", "main"), ("b", "brand")] {
        let session = logged_in(&hive, agent, project);
        let shell = [("HF_AGENT", agent), ("HF_SESSION", session.as_str())];
        within(&hive, &shell, "hf-session task").expect_exit(0);
    }
    hive
}

#[test]
fn m13_lists_are_filtered_by_project_and_agent() {
    let hive = two_projects();
    for (line, found) in [
        ("hf-task list", 2),
        ("hf-task list --project brand", 1),
        ("hf-task list --agent a", 1),
        ("hf-task list --agent a --project brand", 0),
        ("hf-task list --mine", 0),
        ("hf-session list", 2),
        ("hf-session list --project brand", 1),
        ("hf-session list --agent b", 1),
        ("hf-session list --agent b --project main", 0),
        ("hf-job list --project brand", 0),
    ] {
        assert_eq!(ok(&hive, line).get("COUNT"), found.to_string(), "{line}");
    }
    let sessions = ok(&hive, "hf-session list --agent b");
    assert!(sessions.get("ENTITY").ends_with(" Active b in brand until 2026-01-31T13:00:00Z"), "{sessions:#?}");
    let mine = within(&hive, &[("HF_AGENT", "a")], "hf-session list --mine").expect_exit(0);
    assert!(mine.get("ENTITY").contains(" a in main until "), "{mine:#?}");
    let status = sh(&hive, "hf-status --project brand");
    assert_eq!((status.all("PROJECT").len(), status.all("AGENT").len()), (1, 1));
    assert!(status.get("AGENT").starts_with("b ") && status.get("AGENT").ends_with(" in=brand"), "{status:#?}");
    assert_eq!(sh(&hive, "hf-status --agent a").all("AGENT").len(), 1);
}

#[test]
fn m13_problems_projects_and_counts_are_filtered_too() {
    let mut hive = two_projects();
    ok(&hive, "hf-task propose Wipe --destructive --project brand");
    hive.at("2026-01-31T13:10:00Z");
    let problems = |line: &str| -> Vec<String> {
        let status = sh(&hive, line).expect_exit(1);
        let words = |problem: &&str| problem.split(' ').nth(3).unwrap_or_default().to_owned();
        let mut about: Vec<String> = status.all("PROBLEM").iter().map(words).collect();
        about.sort();
        about.dedup();
        about
    };
    assert_eq!(
        problems("hf-status"),
        ["DEC-0001", "S-0001", "S-0002", "T-0001", "T-0002", "agent:a", "agent:b", "watchdog"]
    );
    // What concerns everybody stays.
    assert_eq!(problems("hf-status --agent a"), ["S-0001", "T-0001", "agent:a", "watchdog"]);
    assert_eq!(problems("hf-status --project brand"), ["DEC-0001", "S-0002", "T-0002", "agent:b", "watchdog"]);
    let status = sh(&hive, "hf-status --agent a");
    let names: Vec<&str> = status.all("PROJECT").iter().map(|row| row.split(' ').next().unwrap()).collect();
    assert_eq!((names, status.get("PENDING_APPROVALS")), (vec!["main"], "0"));
    assert!(status.get("SUM").contains(" problems for agent:a; most urgent: "), "{status:#?}");
    let status = sh(&hive, "hf-status --project brand");
    assert!(status.all("TASKS").contains(&"Proposed 1") && status.get("PENDING_APPROVALS") == "1", "{status:#?}");
    assert!(status.get("SUM").contains(" problems in project brand; most urgent: "), "{status:#?}");
}

#[test]
fn m13_a_list_of_tasks_says_who_has_them_until_when_and_what_they_wait_for() {
    let mut hive = two_projects();
    ok(&hive, "hf-task propose Page --after T-0001");
    ok(&hive, "hf-task propose Wipe --destructive --after T-0001");
    at(&mut hive, 60, "hf-task propose Other --project brand").expect_exit(0);
    let rows = |line: &str| -> Vec<String> {
        let listed = sh(&hive, line).expect_exit(0);
        let row = |row: &&str| row.split('@').nth(1).unwrap()[5..].to_owned();
        listed.all("ENTITY").iter().map(row).collect()
    };
    assert_eq!(
        rows("hf-task list"),
        [
            "Assigned Form holder=agent:a until=2026-01-31T12:15:00Z",
            "Assigned Logo holder=agent:b until=2026-01-31T12:15:00Z",
            "Proposed Page since=2026-01-31T12:00:00Z waits_for=T-0001",
            "Proposed Wipe since=2026-01-31T12:00:00Z waits_for=T-0001, an operator's approval",
            "Ready Other since=2026-01-31T12:01:00Z",
        ]
    );
    ok(&hive, "hf-pause look --project brand");
    assert_eq!(
        rows("hf-task list --project brand"),
        [
            "Assigned Logo holder=agent:b waits_for=the resume of project brand",
            "Ready Other since=2026-01-31T12:01:00Z waits_for=the resume of project brand",
        ]
    );
    let json: serde_json::Value = serde_json::from_str(&sh(&hive, "hf-task list --agent a --json").stdout).unwrap();
    assert_eq!(json["entities"][0]["lease_until"], "2026-01-31T12:15:00Z");
}

#[test]
fn m13_a_bare_claim_takes_from_the_callers_project() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Logo --project brand --create");
    assert_eq!(sh(&hive, "hf-task claim").expect_exit(1).get("STATUS"), "NO_TASK");
    assert_eq!(ok(&hive, "hf-task claim --project brand").get("STATUS"), "CLAIMED");
    ok(&hive, "hf-task propose Page --project brand");
    let claimed = within(&hive, &[("HF_AGENT", "a"), ("HF_PROJECT", "brand")], "hf-task claim").expect_exit(0);
    assert!(claimed.get("REF").starts_with("T-0002@"), "{claimed:#?}");
}

#[test]
fn m14_archiving_names_the_project_and_is_confirmed() {
    let hive = two_projects();
    let before = hive.contents();
    refuses(&hive, "hf-pause --archive oops --yes", 6, "project 'oops' not found");
    refuses(&hive, "hf-pause --archive bran --yes", 6, "project 'bran' not found; did you mean brand?");
    // That it is final is said of what exists.
    refuses(&hive, "hf-pause --archive oops", 6, "project 'oops' not found");
    refuses(&hive, "hf-pause --archive bran", 6, "project 'bran' not found; did you mean brand?");
    refuses(&hive, "hf-pause --archive", 2, "--archive");
    let asked = refuses(&hive, "hf-pause --archive brand", 3, "archiving project brand is final; to do so, add --yes");
    assert_eq!(asked.get("REASON"), "not_confirmed");
    assert!(hive.contents() == before);
    assert_eq!(ok(&hive, "hf-pause --archive brand --yes").get("STATUS"), "ARCHIVED");
    let projects = sh(&hive, "hf-status");
    let projects = projects.all("PROJECT");
    assert_eq!(projects[0], "main Active sessions=1 running=1 open=1");
    assert_eq!(projects[1], "brand Archived sessions=0 running=0 open=0 since=2026-01-31T12:00:00Z by=user:jo");
    keeps_the_rules(&hive);
}

#[test]
fn m14_an_unknown_project_is_an_error_and_only_operators_create_one() {
    let hive = two_projects();
    let before = hive.contents();
    for line in [
        "hf-session login --agent a --project brnd",
        "hf-session next --agent a --project brnd",
        "hf-task propose More --project brnd",
        "hf-task list --project brnd",
        "hf-task claim --project brnd",
        "hf-session list --project brnd",
        "hf-job list --project brnd",
        "hf-job fire --project brnd -- true",
        "hf-require propose More --project brnd",
        "hf-status --project brnd",
        "hf-pause why --project brnd",
        "hf-resume --project brnd",
    ] {
        let reply = refuses(&hive, line, 6, "project 'brnd' not found; did you mean brand?");
        assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("NOT_FOUND", "NONE"), "{line}");
    }
    refuses(
        &hive,
        "hf-task propose More --project zoo",
        6,
        "project 'zoo' not found; an operator creates one with --create",
    );
    let agent = within(&hive, &[("HF_AGENT", "a")], "hf-task propose More --project zoo --create").expect_exit(3);
    assert_eq!(agent.get("REASON"), "operator_only");
    let shell = within(&hive, &[("HF_AGENT", "a"), ("HF_PROJECT", "brnd")], "hf-checkpoint here").expect_exit(6);
    assert!(shell.get("SUM").contains("did you mean brand?"), "{shell:#?}");
    assert!(hive.contents() == before);
    ok(&hive, "hf-task propose More --project zoo --create");
    assert_eq!(count(&hive, "ProjectOpened"), 2);
}

#[test]
fn m15_an_agent_that_comes_back_learns_why_and_what_was_changed() {
    let mut hive = two_projects();
    for title in ["Two", "Three"] {
        ok(&hive, &format!("hf-task propose {title}"));
        ok(&hive, "hf-task claim --actor agent:a");
    }
    hive.run("pause", &["The direction is wrong"]).expect_exit(0);
    let status = sh(&hive, "hf-status");
    let paused =
        "main Paused sessions=1 running=3 open=3 since=2026-01-31T12:00:00Z by=user:jo why=The direction is wrong";
    assert_eq!(status.all("PROJECT")[0], paused);
    at(&mut hive, 60, "hf-task edit T-0001 --title Page --reason wider").expect_exit(0);
    at(&mut hive, 60, "hf-task assign T-0003 b --reason faster").expect_exit(0);
    at(&mut hive, 60, "hf-task abort T-0004 --reason needless").expect_exit(0);
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", "S-0001")];
    let next = within(&hive, &shell, "hf-session next").expect_exit(0);
    assert_eq!(next.get("EXPIRES_AT"), "2026-01-31T12:05:00Z");
    let told = within(&hive, &shell, "hf-session task").expect_exit(3);
    assert!(told.get("SUM").ends_with("; finish up and leave by 2026-01-31T12:05:00Z"), "{told:#?}");
    within(&hive, &shell, "hf-session logout").expect_exit(0);
    at(&mut hive, 90, "hf-resume --comment go").expect_exit(0);
    let session = logged_in(&hive, "a", "main");
    let back = within(&hive, &[("HF_AGENT", "a"), ("HF_SESSION", session.as_str())], "hf-session task");
    let pause = "2026-01-31T12:00:00Z until=2026-01-31T12:01:30Z by=user:jo The direction is wrong";
    assert_eq!(["TASK_ID", "PAUSED", "COMMENT"].map(|key| back.get(key)), ["T-0001", pause, "go"]);
    let changed = [
        "T-0001 TaskEdited by user:jo: wider",
        "T-0003 TaskAssigned by user:jo: faster",
        "T-0004 TaskAborted by user:jo: needless",
    ];
    assert_eq!(back.all("CHANGED"), changed);
    keeps_the_rules(&hive);
}

#[test]
fn m15_what_happened_is_told_however_late_the_agent_comes_back() {
    let mut hive = two_projects();
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", "S-0001")];
    hive.run("pause", &["The direction is wrong"]).expect_exit(0);
    within(&hive, &shell, "hf-session logout").expect_exit(0);
    at(&mut hive, 60, "hf-task edit T-0001 --title Page --reason wider").expect_exit(0);
    at(&mut hive, 90, "hf-resume --comment go").expect_exit(0);
    at(&mut hive, 100, "hf-task edit T-0001 --priority high --reason soon").expect_exit(0);
    hive.at("2026-02-14T12:00:00Z");
    let pause = "2026-01-31T12:00:00Z until=2026-01-31T12:01:30Z by=user:jo The direction is wrong";
    let changed = ["T-0001 TaskEdited by user:jo: wider", "T-0001 TaskEdited by user:jo: soon"];
    let tells = |reply: &Reply| {
        assert_eq!(["RESUMED_FROM_PAUSE", "PAUSED", "COMMENT"].map(|key| reply.get(key)), ["true", pause, "go"]);
        assert_eq!(reply.all("CHANGED"), changed, "{reply:#?}");
    };
    let login = ok(&hive, "hf-session login --agent a");
    tells(&login);
    // As often as it asks, until the session is renewed.
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", login.get("SESSION_ID"))];
    for line in ["hf-session next", "hf-session task", "hf-session task", "hf-session renew"] {
        tells(&within(&hive, &shell, line).expect_exit(0));
    }
    let told = |reply: &Reply| ["RESUMED_FROM_PAUSE", "PAUSED", "CHANGED"].map(|key| reply.all(key).len());
    assert_eq!(told(&within(&hive, &shell, "hf-session task")), [0, 0, 0]);
    within(&hive, &shell, "hf-session logout").expect_exit(0);
    assert_eq!(told(&ok(&hive, "hf-session login --agent a")), [0, 0, 0]);
    keeps_the_rules(&hive);
}

#[test]
fn m15_a_pause_within_one_session_is_told_too() {
    let mut hive = two_projects();
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", "S-0001")];
    ok(&hive, "hf-pause look");
    at(&mut hive, 60, "hf-task edit T-0001 --title Page --reason wider").expect_exit(0);
    at(&mut hive, 90, "hf-resume --comment go").expect_exit(0);
    within(&hive, &shell, "hf-checkpoint on-it").expect_exit(0);
    for line in ["hf-session next", "hf-session task", "hf-session renew"] {
        let reply = within(&hive, &shell, line).expect_exit(0);
        let told = ["RESUMED_FROM_PAUSE", "PAUSED", "COMMENT", "CHANGED"].map(|key| reply.get(key));
        let pause = "2026-01-31T12:00:00Z until=2026-01-31T12:01:30Z by=user:jo look";
        assert_eq!(told, ["true", pause, "go", "T-0001 TaskEdited by user:jo: wider"], "{line}");
    }
    let told = |reply: &Reply| ["RESUMED_FROM_PAUSE", "PAUSED", "CHANGED"].map(|key| reply.all(key).len());
    assert_eq!(told(&within(&hive, &shell, "hf-session next")), [0, 0, 0]);
    // Another pause is told again.
    ok(&hive, "hf-pause again");
    ok(&hive, "hf-resume");
    assert_eq!(told(&within(&hive, &shell, "hf-session next")), [1, 1, 0]);
    keeps_the_rules(&hive);
}

#[test]
fn m15_changes_while_an_agent_was_away_are_told_without_a_pause() {
    let mut hive = two_projects();
    ok(&hive, "hf-session logout --agent a");
    at(&mut hive, 60, "hf-task edit T-0001 --title Page --reason wider").expect_exit(0);
    let login = at(&mut hive, 90, "hf-session login --agent a").expect_exit(0);
    assert_eq!(login.all("CHANGED"), ["T-0001 TaskEdited by user:jo: wider"]);
    assert!(login.all("RESUMED_FROM_PAUSE").is_empty(), "{login:#?}");
    keeps_the_rules(&hive);
}

#[test]
fn m16_every_reply_in_a_paused_project_says_why_and_by_when_to_leave() {
    let hive = two_projects();
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", "S-0001")];
    hive.run("pause", &["The direction is wrong"]).expect_exit(0);
    let standing =
        "paused 2026-01-31T12:00:00Z project=main by=user:jo The direction is wrong leave_by=2026-01-31T12:05:00Z";
    for line in
        ["hf-checkpoint tidied", "hf-session next", "hf-task show T-0001", "hf-task list", "hf-task note T-0001 x"]
    {
        let reply = within(&hive, &shell, line).expect_exit(0);
        assert_eq!([reply.get("STANDING"), reply.get("NEXT")], [standing, "ACTION hf-session logout"], "{line}");
    }
    let refused = within(&hive, &shell, "hf-task claim").expect_exit(3);
    assert!(refused.get("SUM").ends_with("leave by 2026-01-31T12:05:00Z") && refused.all("STANDING").is_empty());
    // An operator has nothing to leave.
    assert!(!ok(&hive, "hf-task list").get("STANDING").contains("leave_by"));
}

#[test]
fn m16_a_message_is_read_before_its_agent_leaves() {
    let hive = two_projects();
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", "S-0001")];
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-branch tell a why-this-way?");
    for (line, code) in [("hf-checkpoint tidied", 0), ("hf-session next", 0), ("hf-task claim", 3), ("hf-task list", 0)]
    {
        let reply = within(&hive, &shell, line).expect_exit(code);
        assert_eq!(reply.get("NEXT"), "ACTION hf-branch inbox --unread", "{line}");
    }
    let mut line = "hf-branch inbox --unread".to_owned();
    let mut steps = Vec::new();
    while line != "NONE" {
        let next = within(&hive, &shell, &line).expect_exit(0).get("NEXT").to_owned();
        steps.push(std::mem::replace(&mut line, next.trim_start_matches("ACTION ").to_owned()));
    }
    assert_eq!(steps, ["hf-branch inbox --unread", "hf-branch read", "hf-session logout"]);
}

#[test]
fn m16_who_has_left_is_not_told_to_leave() {
    let hive = two_projects();
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", "S-0001")];
    ok(&hive, "hf-pause look");
    assert_eq!(within(&hive, &shell, "hf-session logout").expect_exit(0).get("NEXT"), "NONE");
    for (shell, line, code) in [
        (&shell[..], "hf-task list", 0),
        (&shell[..], "hf-checkpoint tidied", 3),
        (&shell[..], "hf-session next", 0),
        (&shell[..1], "hf-checkpoint tidied", 0),
        (&shell[..1], "hf-task claim", 3),
        // Nor who works elsewhere, and was never there.
        (&[("HF_AGENT", "c"), ("HF_PROJECT", "brand")][..], "hf-task claim T-0001", 3),
        (&[("HF_AGENT", "c"), ("HF_PROJECT", "brand")][..], "hf-task heartbeat T-0001", 3),
        (&[("HF_AGENT", "b"), ("HF_SESSION", "S-0002")][..], "hf-task propose More --project main", 3),
    ] {
        let reply = within(&hive, shell, line).expect_exit(code);
        assert_eq!(reply.get("NEXT"), "NONE", "{line}: {reply:#?}");
    }
}

#[test]
fn m15_a_checkpoint_stays_in_its_project() {
    let mut hive = two_projects();
    ok(&hive, "hf-task propose Other --project brand");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", "S-0001")];
    within(&hive, &shell, "hf-checkpoint form-half-done").expect_exit(0);
    assert_eq!(within(&hive, &shell, "hf-session task").get("PREVIOUS"), "form-half-done");
    at(&mut hive, 60, "hf-session logout --agent a").expect_exit(0);
    at(&mut hive, 120, "hf-checkpoint idle --agent x").expect_exit(0);
    let session = logged_in(&hive, "a", "brand");
    let there = within(&hive, &[("HF_AGENT", "a"), ("HF_SESSION", session.as_str())], "hf-session task");
    assert_eq!((there.get("TASK_ID"), there.all("PREVIOUS")), ("T-0003", vec![]));
}

#[test]
fn m16_an_agent_of_an_archived_project_is_told_to_leave_it() {
    let hive = two_projects();
    ok(&hive, "hf-pause --archive brand --yes");
    let shell = [("HF_AGENT", "b"), ("HF_SESSION", "S-0002")];
    let told = within(&hive, &shell, "hf-session task").expect_exit(3);
    assert_eq!(told.get("SUM"), "session S-0002 has ended: project brand is archived, which is final; leave it");
    let words: Vec<&str> = told.get("NEXT").split(' ').skip(1).collect();
    within(&hive, &shell, &words.join(" ")).expect_exit(0);
}

#[test]
fn m16_a_session_past_its_time_is_void_before_any_tick() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-session login --agent a --ttl 60s");
    let list = at(&mut hive, 61, "hf-session list").expect_exit(0);
    assert_eq!(list.get("COUNT"), "0");
    let all = ok(&hive, "hf-session list --all");
    assert!(all.get("ENTITY").contains(" Expired a in main until 2026-01-31T12:01:00Z"), "{all:#?}");
}

#[test]
fn m16_a_wait_that_runs_out_exits_with_1() {
    let hive = two_projects();
    ok(&hive, "hf-pause look");
    assert_eq!(sh(&hive, "hf-pause --wait --max 1s").expect_exit(1).get("DRAINED"), "no");
    ok(&hive, "hf-session logout --agent a");
    assert_eq!(ok(&hive, "hf-pause --wait --max 1s").get("DRAINED"), "yes");
}

#[test]
fn m14_a_name_that_is_not_in_nfc_is_refused_for_that() {
    let hive = TestVault::new();
    let decomposed = "caf\u{65}\u{301}";
    let reply = within(&hive, &[("HF_AGENT", decomposed)], "hf-checkpoint here").expect_exit(2);
    assert!(reply.get("SUM").contains("in NFC"), "{reply:#?}");
    let reply = hive.run("task", &["propose", "Form", "--project", decomposed]).expect_exit(2);
    assert!(reply.get("SUM").contains("in NFC"), "{reply:#?}");
    let reply = hive.run("append", &["ProjectOpened", "--subject", &format!("project:{decomposed}")]).expect_exit(2);
    assert!(reply.get("SUM").contains("it must be in NFC"), "{reply:#?}");
}
