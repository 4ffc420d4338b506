//! An operator mends work: edits tasks, gives them to others; and steps say how far a task is.

use crate::support::session_fixture::{asks_to_leave, logged_in, within};
use crate::support::steps::{count, held, keeps_the_rules, kinds, kinds_since, ok, refuses, running, state};
use crate::support::test_vault::{Reply, TestVault};

/// The time of everything here.
const NOW: &str = "2026-01-31T12:00:00Z";

/// Runs `hf-task` with words that may contain spaces.
#[track_caller]
fn task(hive: &TestVault, words: &[&str]) -> Reply {
    hive.run("task", words)
}

fn fact(hive: &TestVault, reference: &str, name: &str) -> String {
    let shown = ok(hive, &format!("hf-task show {reference}"));
    let facts = shown.all("FACT").into_iter();
    facts.filter_map(|fact| fact.strip_prefix(name)?.strip_prefix(' ')).next().unwrap_or_default().to_owned()
}

#[test]
fn m12_an_operator_edits_a_task_with_a_reason() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    let edited = task(
        &hive,
        &[
            "edit",
            "T-0001",
            "--title",
            "Login page",
            "--description",
            "Not only the form.",
            "--priority",
            "high",
            "--reason",
            "a form is not enough",
        ],
    );
    assert_eq!(
        edited.expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:T-0001 is Running: Login page\nEVENT_ID:<ulid>\nSUBJECT:task:<ulid>\n\
         REF:T-0001@<tag>\nSTATE:Running\n"
    );
    let facts = ["title", "description", "priority", "edited_because"].map(|name| fact(&hive, "T-0001", name));
    assert_eq!(facts, ["Login page", "Not only the form.", "high", "a form is not enough"]);
    let event = hive.events().into_iter().rfind(|event| event["event_type"] == "TaskEdited").unwrap();
    assert_eq!((&event["payload"]["reason"], &event["actor"]), (&"a form is not enough".into(), &"user:jo".into()));
    // The work goes on, and what is so already is not recorded again.
    let again = task(&hive, &["edit", "T-0001", "--title", "Login page", "--reason", "twice"]).expect_exit(0);
    assert_eq!((again.get("STATUS"), count(&hive, "TaskEdited")), ("DUPLICATE", 1));
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    keeps_the_rules(&hive);
}

#[test]
fn m12_only_an_operator_edits_and_only_what_has_not_ended() {
    let hive = TestVault::new();
    held(&hive, "agent:a");
    refuses(
        &hive,
        "hf-task edit T-0001 --title x --reason y --actor agent:a",
        3,
        "editing T-0001 requires an operator; an agent can edit only what it proposed, until it is assigned",
    );
    refuses(
        &hive,
        "hf-append TaskEdited --subject T-0001 --actor agent:a --payload {\"title\":\"x\",\"reason\":\"y\"}",
        3,
        "requires an operator",
    );
    refuses(&hive, "hf-task edit T-0001 --reason y", 2, "nothing to edit; one of title");
    refuses(&hive, "hf-task edit T-0001 --title x", 2, "--reason");
    refuses(&hive, "hf-task edit T-0001 --priority huge --reason y", 2, "huge");
    ok(&hive, "hf-task abort T-0001 --reason enough");
    refuses(&hive, "hf-task edit T-0001 --title x --reason y", 3, "T-0001 is Aborted, which does not allow TaskEdited");
    keeps_the_rules(&hive);
}

#[test]
fn m12_an_agent_edits_what_it_proposed_until_it_is_assigned() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form --actor agent:a");
    let edited = ok(&hive, "hf-task edit T-0001 --title Page --step Draw --reason wider --actor agent:a");
    assert_eq!((edited.get("STATUS"), fact(&hive, "T-0001", "title").as_str()), ("RECORDED", "Page"));
    let other = "editing T-0001 requires an operator; an agent can edit only what it proposed, until it is assigned";
    let by_other = refuses(&hive, "hf-task edit T-0001 --title Mine --reason x --actor agent:b", 3, other);
    assert_eq!((by_other.get("REASON"), by_other.get("NEXT")), ("operator_only", "ASK operator"));
    // A name counts for nothing in an agent's shell.
    within(&hive, &[("HF_AGENT", "b")], "hf-task edit T-0001 --title x --reason y --actor agent:a").expect_exit(3);
    ok(&hive, "hf-task claim T-0001 --actor agent:b");
    refuses(&hive, "hf-task edit T-0001 --title Late --reason x --actor agent:a", 3, other);
    // What others have seen as theirs stays as it is, even if nobody holds it now.
    ok(&hive, "hf-task start T-0001 --actor agent:b");
    ok(&hive, "hf-task fail T-0001 --class transient --reason x --actor agent:b");
    refuses(&hive, "hf-task edit T-0001 --title Late --reason x --actor agent:a", 3, other);
    let line = "hf-append TaskEdited --subject T-0001 --actor agent:a --payload {\"title\":\"x\",\"reason\":\"y\"}";
    refuses(&hive, line, 3, other);
    ok(&hive, "hf-task edit T-0001 --title Late --reason x");
    keeps_the_rules(&hive);
}

#[test]
fn m12_an_agents_edit_of_what_is_to_be_approved_asks_again() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Wipe --destructive --actor agent:a");
    ok(&hive, "hf-task edit T-0001 --title Erase --reason clearer --actor agent:a");
    refuses(&hive, "hf-decide approve DEC-0001", 3, "DEC-0001");
    ok(&hive, "hf-decide approve DEC-0002");
    assert_eq!(state(&hive, "T-0001"), "Ready");
    ok(&hive, "hf-task edit T-0001 --title Everything --reason more --actor agent:a");
    assert_eq!(state(&hive, "T-0001"), "Proposed");
    assert!(ok(&hive, "hf-decide show DEC-0003").stdout.contains("FACT:title Everything\n"));
    keeps_the_rules(&hive);
}

#[test]
fn m11_an_agent_edits_nothing_while_it_is_paused() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form --actor agent:a");
    ok(&hive, "hf-pause look");
    asks_to_leave(&hive, &[("HF_AGENT", "a")], "hf-task edit T-0001 --title Page --reason wider", "project_paused");
}

#[test]
fn m12_edited_dependencies_block_and_release_a_task() {
    let hive = TestVault::new();
    for title in ["One", "Two", "Three"] {
        ok(&hive, &format!("hf-task propose {title}"));
    }
    let before = kinds(&hive).len();
    let blocked = ok(&hive, "hf-task edit T-0002 --depends-on T-0001 --reason order");
    assert_eq!(
        (blocked.get("STATE"), kinds_since(&hive, before)),
        ("Proposed", vec!["TaskEdited".into(), "TaskBlocked".into()])
    );
    refuses(&hive, "hf-task claim T-0002", 3, "T-0002 cannot start: it waits for T-0001, which is Ready");
    ok(&hive, "hf-task edit T-0003 --depends-on T-0002 --reason order");
    // No task waits for itself, however far around.
    for line in ["T-0001 --depends-on T-0003", "T-0001 --depends-on T-0002"] {
        refuses(
            &hive,
            &format!("hf-task edit {line} --reason circle"),
            3,
            "waits for T-0001; a task cannot wait for itself",
        );
    }
    refuses(&hive, "hf-task edit T-0001 --depends-on T-0001 --reason circle", 2, "cannot refer to itself");
    // What it no longer waits for does not hold it up, and what it waits for now releases it.
    let before = kinds(&hive).len();
    let released = ok(&hive, "hf-task edit T-0002 --no-dependencies --reason free");
    assert_eq!(
        (released.get("STATE"), kinds_since(&hive, before)),
        ("Ready", vec!["TaskEdited".into(), "TaskReady".into()])
    );
    for verb in ["claim", "start", "succeed"] {
        ok(&hive, &format!("hf-task {verb} T-0002"));
    }
    assert_eq!(state(&hive, "T-0003"), "Ready");
    keeps_the_rules(&hive);
}

#[test]
fn m12_a_circle_through_a_rework_is_refused() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose One");
    ok(&hive, "hf-task propose Two --after T-0001");
    for verb in ["claim", "start"] {
        ok(&hive, &format!("hf-task {verb} T-0001"));
    }
    ok(&hive, "hf-task succeed T-0001");
    ok(&hive, "hf-task propose --rework-of T-0001");
    // T-0003 is another attempt at what T-0002 waited for.
    refuses(&hive, "hf-task edit T-0003 --depends-on T-0002 --reason circle", 3, "a task cannot wait for itself");
    keeps_the_rules(&hive);
}

#[test]
fn m12_work_in_progress_waits_for_nothing_new() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    ok(&hive, "hf-task propose Other");
    refuses(
        &hive,
        "hf-task edit T-0001 --depends-on T-0002 --reason late",
        3,
        "T-0001 is Running; it is too late to wait for T-0002",
    );
    for verb in ["claim", "start", "succeed"] {
        ok(&hive, &format!("hf-task {verb} T-0002"));
    }
    ok(&hive, "hf-task edit T-0001 --depends-on T-0002 --reason done");
    keeps_the_rules(&hive);
}

#[test]
fn m12_an_edit_of_what_was_approved_asks_again() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Wipe --destructive");
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(state(&hive, "T-0001"), "Ready");
    // Not by its priority.
    ok(&hive, "hf-task edit T-0001 --priority low --reason later");
    assert_eq!(state(&hive, "T-0001"), "Ready");
    ok(&hive, "hf-task edit T-0001 --title Erase --description Everything. --reason clearer");
    assert_eq!(state(&hive, "T-0001"), "Proposed");
    let asked = ok(&hive, "hf-decide show DEC-0002");
    assert!(
        asked.stdout.contains("FACT:title Erase\n") && asked.stdout.contains("FACT:description Everything.\n"),
        "{asked:#?}"
    );
    ok(&hive, "hf-decide approve DEC-0002");
    for verb in ["claim", "start"] {
        ok(&hive, &format!("hf-task {verb} T-0001"));
    }
    refuses(&hive, "hf-task edit T-0001 --title Other --reason x", 3, "T-0001 is Running as it was approved");
    keeps_the_rules(&hive);
}

#[test]
fn m12_a_held_task_goes_to_another_agent_with_a_note() {
    for start in [false, true] {
        let hive = TestVault::new();
        held(&hive, "agent:ana");
        if start {
            ok(&hive, "hf-task start T-0001 --actor agent:ana");
        }
        ok(&hive, "hf-task note T-0001 half-done --actor agent:ana");
        refuses(&hive, "hf-task assign T-0001 bob", 3, "T-0001 is held by agent:ana; say why with --reason");
        refuses(&hive, "hf-task assign T-0001 bob --reason mine --actor agent:bob", 3, "does not allow TaskAssigned");
        refuses(&hive, "hf-task claim T-0001", 3, "which does not allow TaskAssigned");
        let words = ["assign", "T-0001", "bob", "--reason", "ana is away", "--note", "see the branch login"];
        let assigned = task(&hive, &words).expect_exit(0);
        assert_eq!((assigned.get("STATE"), count(&hive, "RunCrashed")), ("Assigned", usize::from(start)));
        let lost = "T-0001 was taken from you: ana is away; agent:bob holds the task now";
        for verb in ["heartbeat", "succeed", "start"] {
            let reply = refuses(&hive, &format!("hf-task {verb} T-0001 --actor agent:ana"), 3, lost);
            assert_eq!((reply.get("STATUS"), reply.get("REASON")), ("CLAIM_LOST", "claim_lost"), "{verb}");
        }
        // The next holder gets both notes.
        let claimed = ok(&hive, "hf-task claim T-0001 --actor agent:bob");
        let told = ["STATUS", "HANDOFF", "NOTE"].map(|key| claimed.get(key));
        let [handoff, note] =
            ["user:jo see the branch login", "agent:ana half-done"].map(|text| format!("{NOW} {text}"));
        assert_eq!(told, ["DUPLICATE", &handoff, &note]);
        assert_eq!(ok(&hive, "hf-task start T-0001 --actor agent:bob").get("HANDOFF"), handoff);
        for verb in ["start", "succeed"] {
            ok(&hive, &format!("hf-task {verb} T-0001 --actor agent:bob"));
        }
        keeps_the_rules(&hive);
    }
}

#[test]
fn m12_work_is_mended_while_it_is_paused() {
    let hive = TestVault::new();
    running(&hive, "agent:ana");
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-pause look");
    ok(&hive, "hf-task edit T-0001 --title Better --step Plan --reason direction");
    ok(&hive, "hf-task edit T-0002 --depends-on T-0001 --reason order");
    assert_eq!(state(&hive, "T-0002"), "Proposed");
    ok(&hive, "hf-task edit T-0002 --no-dependencies --reason order");
    assert_eq!(state(&hive, "T-0002"), "Ready");
    ok(&hive, "hf-task assign T-0001 bob --reason away --note go");
    ok(&hive, "hf-task assign T-0002 ana");
    let refused = refuses(&hive, "hf-task start T-0001 --actor agent:bob", 3, "project main has been paused");
    assert_eq!(refused.get("STATUS"), "EXIT_REQUESTED");
    ok(&hive, "hf-resume");
    ok(&hive, "hf-task start T-0001 --actor agent:bob");
    keeps_the_rules(&hive);
}

#[test]
fn m12_urgent_work_comes_first() {
    let hive = TestVault::new();
    for (title, priority) in [("Old", ""), ("Low", " --priority low"), ("High", " --priority high"), ("New", "")] {
        ok(&hive, &format!("hf-task propose {title}{priority}"));
    }
    ok(&hive, "hf-task edit T-0004 --priority urgent --reason now");
    let claimed: Vec<String> =
        (0..4).map(|_| ok(&hive, "hf-task claim").get("REF").split('@').next().unwrap().to_owned()).collect();
    assert_eq!(claimed, ["T-0004", "T-0003", "T-0001", "T-0002"]);
    keeps_the_rules(&hive);
}

#[test]
fn m12_a_task_is_taken_up_at_its_active_step() {
    let hive = TestVault::new();
    let words = [
        "propose",
        "Login",
        "--description",
        "A page.",
        "--step",
        "Draw it",
        "--step",
        "Build it",
        "--step",
        "Test it",
    ];
    task(&hive, &words).expect_exit(0);
    let claimed = ok(&hive, "hf-task claim --actor agent:a");
    assert_eq!(["DESCRIPTION", "STEP"].map(|key| claimed.get(key)), ["A page.", "1 of=3 Draw it"]);
    refuses(
        &hive,
        "hf-task step T-0001 1 done --actor agent:a",
        3,
        "T-0001 is Assigned (held by agent:a), which does not allow StepMarked",
    );
    assert_eq!(ok(&hive, "hf-task start T-0001 --actor agent:a").get("STEP"), "1 of=3 Draw it");
    assert_eq!(ok(&hive, "hf-task step T-0001 1 done --actor agent:a").get("STEP"), "2 of=3 Build it");
    assert_eq!(ok(&hive, "hf-task step T-0001 1 done --actor agent:a").get("STATUS"), "DUPLICATE");
    refuses(&hive, "hf-task step T-0001 2 done --actor agent:b", 3, "T-0001 is held by agent:a");
    refuses(&hive, "hf-task step T-0001 4 done --actor agent:a", 6, "T-0001 has no step 4; it has 3 steps");
    refuses(&hive, "hf-task step T-0001 2 skip --actor agent:a", 2, "--reason");
    let open = "steps 2, 3 of T-0001 still open; mark what is done, or skip the rest with --skip REASON";
    refuses(&hive, "hf-task succeed T-0001 --actor agent:a", 3, open);
    // The next holder goes on at the same step.
    ok(&hive, "hf-task assign T-0001 bob --reason away");
    assert_eq!(ok(&hive, "hf-task claim T-0001 --actor agent:bob").get("STEP"), "2 of=3 Build it");
    assert_eq!(ok(&hive, "hf-task show T-0001").get("STEP"), "2 of=3 Build it");
    ok(&hive, "hf-task start T-0001 --actor agent:bob");
    let words = ["edit", "T-0001", "--step", "Draw it", "--step", "Build it well", "--reason", "quality"];
    task(&hive, &words).expect_exit(0);
    assert_eq!(ok(&hive, "hf-task show T-0001").get("STEP"), "2 of=2 Build it well");
    ok(&hive, "hf-task step T-0001 2 skip --reason enough --actor agent:bob");
    ok(&hive, "hf-task succeed T-0001 --actor agent:bob");
    keeps_the_rules(&hive);
}

#[test]
fn m12_open_steps_are_skipped_with_a_reason() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Login --step Draw --step Build");
    for verb in ["claim", "start"] {
        ok(&hive, &format!("hf-task {verb} T-0001"));
    }
    ok(&hive, "hf-task succeed T-0001 --skip drawn-already");
    let event = hive.events().into_iter().rfind(|event| event["event_type"] == "TaskSucceeded").unwrap();
    assert_eq!(event["payload"]["skipped"], "drawn-already");
    // It shows, with the reason, and no step is left to work on.
    let shown = ok(&hive, "hf-task show T-0001");
    let skipped = |text: &str| format!("{{\"mark\":\"skipped\",\"reason\":\"drawn-already\",\"text\":\"{text}\"}}");
    assert_eq!(fact(&hive, "T-0001", "steps"), format!("[{},{}]", skipped("Draw"), skipped("Build")));
    assert!(shown.all("STEP").is_empty(), "{shown:#?}");
    // A repetition has the same steps, all of them open.
    ok(&hive, "hf-task propose --rework-of T-0001");
    assert_eq!(ok(&hive, "hf-task claim T-0002").get("STEP"), "1 of=2 Draw");
    keeps_the_rules(&hive);
}

#[test]
fn m12_a_skipped_step_has_its_reason_until_it_is_open_again() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Login --step Draw --step Build");
    for verb in ["claim", "start"] {
        ok(&hive, &format!("hf-task {verb} T-0001"));
    }
    ok(&hive, "hf-task step T-0001 1 done");
    ok(&hive, "hf-task step T-0001 2 skip --reason needless");
    let steps = r#"[{"mark":"done","text":"Draw"},{"mark":"skipped","reason":"needless","text":"Build"}]"#;
    assert_eq!(fact(&hive, "T-0001", "steps"), steps);
    ok(&hive, "hf-task step T-0001 2 open");
    ok(&hive, "hf-task succeed T-0001 --skip enough");
    let steps = r#"[{"mark":"done","text":"Draw"},{"mark":"skipped","reason":"enough","text":"Build"}]"#;
    assert_eq!(fact(&hive, "T-0001", "steps"), steps);
    keeps_the_rules(&hive);
}

#[test]
fn m11_a_paused_agent_answers_leaves_word_and_starts_nothing() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form --step Draw --step Build");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    for line in ["hf-session task", "hf-task start T-0001"] {
        within(&hive, &shell, line).expect_exit(0);
    }
    ok(&hive, "hf-pause direction");
    ok(&hive, "hf-branch tell a why-this-way?");
    for line in [
        "hf-branch read",
        "hf-branch note --branch a as-asked",
        "hf-task note T-0001 half-done",
        "hf-task step T-0001 1 done",
    ] {
        within(&hive, &shell, line).expect_exit(0);
    }
    for line in [
        "hf-task heartbeat T-0001",
        "hf-task succeed T-0001",
        "hf-task propose More",
        "hf-task claim",
        "hf-branch create Walk --type free --abort",
    ] {
        asks_to_leave(&hive, &shell, line, "project_paused");
    }
    within(&hive, &shell, "hf-session logout --summary tests-are-missing").expect_exit(0);
    ok(&hive, "hf-resume");
    let session = logged_in(&hive, "a", "main");
    let task = within(&hive, &[("HF_AGENT", "a"), ("HF_SESSION", session.as_str())], "hf-session task");
    assert_eq!(task.get("STEP"), "2 of=2 Build");
    assert_eq!(task.all("NOTE"), ["half-done", "tests-are-missing"].map(|text| format!("{NOW} agent:a {text}")));
    assert_eq!(fact(&hive, "T-0001", "note"), "tests-are-missing");
    keeps_the_rules(&hive);
}

#[test]
fn m11_every_note_is_kept_with_its_author_and_time() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form --step Draw --step Build");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    for line in ["hf-session task", "hf-task start T-0001", "hf-session logout --summary what-is-left-css"] {
        within(&hive, &shell, line).expect_exit(0);
    }
    within(&hive, &shell[..1], "hf-task note T-0001 another-note").expect_exit(0);
    task(&hive, &["assign", "T-0001", "b", "--reason", "a is away", "--note", "see the tests"]).expect_exit(0);
    ok(&hive, "hf-task note T-0001 from-the-operator");
    let notes =
        |reply: &Reply| reply.all("NOTE").iter().map(|note| note[NOW.len() + 1..].to_owned()).collect::<Vec<_>>();
    let all = ["agent:a what-is-left-css", "agent:a another-note", "user:jo from-the-operator"];
    let claimed = ok(&hive, "hf-task claim T-0001 --actor agent:b");
    assert_eq!(
        (notes(&claimed), claimed.get("HANDOFF")),
        (all.map(str::to_owned).to_vec(), "2026-01-31T12:00:00Z user:jo see the tests")
    );
    assert_eq!(notes(&ok(&hive, "hf-task show T-0001")), all);
    // What was said to one holder stays when another one comes.
    ok(&hive, "hf-task assign T-0001 a --reason back");
    let shown = ok(&hive, "hf-task show T-0001");
    let all =
        ["agent:a what-is-left-css", "agent:a another-note", "user:jo see the tests", "user:jo from-the-operator"];
    assert_eq!(
        (notes(&shown), shown.all("HANDOFF").len(), shown.all("NOTES").len()),
        (all.map(str::to_owned).to_vec(), 0, 0)
    );
    // A briefing has the latest, and says how many there are.
    let session = logged_in(&hive, "a", "main");
    let back = within(&hive, &[("HF_AGENT", "a"), ("HF_SESSION", session.as_str())], "hf-session task");
    assert_eq!((notes(&back), back.get("NOTES")), (all[1..].iter().map(|text| text.to_string()).collect(), "4"));
    for n in 0..30 {
        ok(&hive, &format!("hf-task note T-0001 more-{n}"));
    }
    let shown = ok(&hive, "hf-task show T-0001");
    assert_eq!((notes(&shown).len(), shown.get("NOTES")), (10, "34"));
    keeps_the_rules(&hive);
}

#[test]
fn m11_recall_finds_every_note_summary_handoff_and_skip_reason() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form --step Draw --step Build");
    ok(&hive, "hf-task note T-0001 needle-before-anybody");
    let session = logged_in(&hive, "a", "main");
    let shell = [("HF_AGENT", "a"), ("HF_SESSION", session.as_str())];
    for line in [
        "hf-session task",
        "hf-task start T-0001",
        "hf-task step T-0001 1 skip --reason needle-skipped",
        "hf-task note T-0001 needle-noted",
        "hf-session logout --summary needle-left",
    ] {
        within(&hive, &shell, line).expect_exit(0);
    }
    let me = &shell[..1];
    // What it works on is older than itself.
    let before = within(&hive, me, "hf-branch recall --all --grep before-anybody");
    assert!(before.stdout.ends_with("  Note by user:jo: needle-before-anybody\n"), "{before:#?}");
    task(&hive, &["assign", "T-0001", "b", "--reason", "away", "--note", "needle-handed"]).expect_exit(0);
    for line in ["claim T-0001", "start T-0001", "succeed T-0001 --skip needle-enough"] {
        ok(&hive, &format!("hf-task {line} --actor agent:b"));
    }
    let session = logged_in(&hive, "a", "main");
    within(&hive, &[("HF_AGENT", "a"), ("HF_SESSION", session.as_str())], "hf-session logout --summary needle-idle")
        .expect_exit(0);
    let found = within(&hive, me, "hf-branch recall --all --grep NEEDLE");
    let lines: Vec<&str> = found.stdout.lines().map(str::trim).filter(|line| line.contains(" by ")).collect();
    assert_eq!(
        lines,
        [
            "Skipped by agent:a: needle-skipped",
            "Note by agent:a: needle-noted",
            "Note by agent:a: needle-left",
            "Handoff by user:jo: needle-handed",
            "Skipped by agent:b: needle-enough",
            "Summary by agent:a: needle-idle",
        ],
        "{found:#?}"
    );
    assert!(found.stdout.contains("# T-0001 Form, 2026-01-31T12:00:00Z\n"), "{found:#?}");
    // Not what others said about work that is not theirs.
    let other = within(&hive, &[("HF_AGENT", "c")], "hf-branch recall --all --grep needle");
    assert!(!other.stdout.contains("needle"), "{other:#?}");
}

#[test]
fn m11_recall_does_not_depend_on_how_characters_are_composed() {
    let hive = TestVault::new();
    held(&hive, "agent:a");
    task(&hive, &["note", "T-0001", "Caf\u{e9} Ｗide", "--actor", "agent:a"]).expect_exit(0);
    for word in ["cafe\u{301}", "CAF\u{c9}", "wide"] {
        let found = hive.run("branch", &["recall", "--all", "--grep", word, "--agent", "a"]);
        assert!(found.stdout.contains("Note by agent:a: Caf"), "{word}: {found:#?}");
    }
}
