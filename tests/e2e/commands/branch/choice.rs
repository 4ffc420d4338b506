//! What a persona can choose from: messages, changes, branches, something new, or nothing.

use serde_json::Value;

use crate::support::steps::{keeps_the_rules, ok};
use crate::support::test_vault::{Reply, TestVault};

use super::{by, does, written};

fn choices(hive: &TestVault) -> Vec<String> {
    does(hive, "ann", &["decide"]).all("CHOICE").into_iter().map(str::to_owned).collect()
}

#[test]
fn m5_every_choice_is_offered_with_its_reason() {
    let hive = written();
    // A social branch that nobody has used is no activity.
    does(&hive, "ben", &["note", "I am ben"]);
    let reply = does(&hive, "ann", &["decide"]);
    assert_eq!(
        reply.all("BECAUSE"),
        ["RESUME: 1 branch suspended", "CREATE: something new", "WAIT: nothing has to be done now"]
    );
    assert_eq!(reply.all("CANDIDATE"), ["BR-0002 free 0 The song of the stars state=Chapter 1 is done"]);
    // With a message in it, it is one.
    does(&hive, "ben", &["tell", "ann", "Tea?"]);
    let reply = does(&hive, "ann", &["decide"]);
    assert_eq!(reply.all("CHOICE"), ["REACT", "RESUME", "CREATE"]);
    assert!(reply.all("CANDIDATE")[1].ends_with("with ben state=Tea?"), "{reply:?}");
    assert_eq!(reply.get("ADVICE"), "hf-branch tell ben TEXT");
}

#[test]
fn m5_tasks_of_paused_projects_are_no_candidates() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    does(&hive, "ann", &["suspend", "--summary", "Half a form"]);
    assert_eq!(choices(&hive), ["RESUME", "CREATE", "WAIT"]);
    ok(&hive, "hf-pause Word");
    assert_eq!(choices(&hive), ["CREATE", "WAIT"]);
    ok(&hive, "hf-resume");
    assert_eq!(choices(&hive), ["RESUME", "CREATE", "WAIT"]);
}

#[test]
fn m6_unused_social_branches_are_not_in_the_working_memory() {
    let mut hive = written();
    hive.at("2026-01-31T13:00:00Z");
    for n in 0..11 {
        does(&hive, &format!("p{n}"), &["note", "Hello"]);
    }
    let memory: Value = serde_json::from_str(&does(&hive, "ann", &["list", "--working"]).stdout).unwrap();
    let labels: Vec<&str> =
        memory["branches"].as_array().unwrap().iter().map(|b| b["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["The song of the stars", "the user"]);
    assert_eq!(memory["situation_snapshot"]["active_branch"], "BR-0001");
}

#[test]
fn m10_important_changes_are_something_to_react_to() {
    let mut hive = written();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task assign T-0001 ann");
    let reply = does(&hive, "ann", &["decide"]);
    assert_eq!(reply.all("CHANGE"), ["TaskAssigned T-0001 2026-01-31T12:10:00Z user:jo Form"]);
    assert_eq!(reply.all("BECAUSE")[0], "REACT: 1 change");
    // What it reacted to is no change any more.
    does(&hive, "ann", &["note", "--branch", "ann", "I see"]);
    assert!(does(&hive, "ann", &["decide"]).all("CHANGE").is_empty());
    // A job of its own ended; one of somebody else is not its business.
    for agent in ["ann", "ben"] {
        let fire = hive.command("job").args(["fire", "--", "true"]).env("HF_AGENT", agent).output().unwrap();
        Reply::of(fire).expect_exit(0);
    }
    ok(&hive, "hf-job wait T-0002 T-0003");
    let changes = does(&hive, "ann", &["decide"]);
    assert_eq!(changes.all("CHANGE").len(), 1, "{changes:?}");
    assert!(changes.get("CHANGE").starts_with("TaskSucceeded T-0002 "), "{changes:?}");
    does(&hive, "ann", &["note", "--branch", "ann", "Good"]);
    // An answer to its question.
    ok(&hive, "hf-require propose Blue --actor agent:ann");
    ok(&hive, "hf-require analyze REQ-0001 Sky --actor agent:ann");
    ok(&hive, "hf-decide approve DEC-0001 --yes");
    assert!(does(&hive, "ann", &["decide"]).get("CHANGE").starts_with("DecisionApproved DEC-0001 "));
    does(&hive, "ann", &["note", "--branch", "ann", "Blue"]);
    // An anomaly about it.
    hive.at("2026-01-31T14:00:00Z");
    hive.run("watchdog", &[]);
    let anomalies = does(&hive, "ann", &["decide"]);
    assert!(anomalies.all("CHANGE").iter().any(|change| change.starts_with("AnomalyDetected ")), "{anomalies:?}");
    keeps_the_rules(&hive);
}

#[test]
fn m16_all_unread_messages_are_counted() {
    let hive = TestVault::new();
    does(&hive, "ann", &["note", "I am ann"]);
    let message = |n: usize| {
        serde_json::json!({"event_type": "MessageSent", "subject": format!("message:m{n}"),
            "payload": {"to": "ann", "text": format!("word {n}")}})
    };
    hive.batch(&(0..300).map(message).collect::<Vec<_>>());
    let reply = does(&hive, "ann", &["decide"]);
    assert_eq!((reply.get("SUM"), reply.get("UNREAD")), ("300 unread messages", "300"));
    assert_eq!(reply.all("MESSAGE").len(), 20);
}

#[test]
fn m10_unread_messages_are_found_among_those_of_others() {
    let hive = TestVault::new();
    does(&hive, "ann", &["note", "I am ann"]);
    does(&hive, "ben", &["note", "I am ben"]);
    let message = |n: usize| {
        let to = if n % 100 == 7 { "ann" } else { "ben" };
        serde_json::json!({"event_type": "MessageSent", "subject": format!("message:m{n}"),
            "payload": {"to": to, "text": format!("word {n}")}})
    };
    hive.batch(&(0..1500).map(message).collect::<Vec<_>>());
    let own = |reply: &Reply| reply.all("MESSAGE").iter().map(|line| line[..8].to_owned()).collect::<Vec<_>>();
    let expected: Vec<String> = (0..15).map(|n| format!("MSG-{:04}", n * 100 + 8)).collect();
    assert_eq!(own(&does(&hive, "ann", &["decide"])), expected);
    // What was read is gone, whether or not the index has it yet.
    does(&hive, "ann", &["read", "MSG-0008", "MSG-1408"]);
    assert_eq!(own(&does(&hive, "ann", &["inbox", "--unread"])), expected[1..14]);
    hive.run("project", &[]).expect_exit(0);
    hive.run("branch", &["tell", "ann", "more"]).expect_exit(0);
    let listed = own(&does(&hive, "ann", &["inbox", "--unread"]));
    assert_eq!((listed.len(), listed[13].as_str()), (14, "MSG-1501"));
    assert_eq!(does(&hive, "ann", &["read"]).get("UNREAD"), "0");
    assert_eq!(does(&hive, "ben", &["decide"]).get("UNREAD"), "1485");
    keeps_the_rules(&hive);
}

#[test]
fn m10_a_message_can_go_to_several() {
    let hive = written();
    for agent in ["ben", "cem"] {
        does(&hive, agent, &["note", "Hello"]);
    }
    let told = does(&hive, "ann", &["tell", "--to", "ben", "--to", "cem", "Tea for all", "--key", "tea"]);
    assert_eq!(told.get("SUM"), "MSG-0002 is Unread: Tea for all");
    for agent in ["ben", "cem"] {
        assert!(does(&hive, agent, &["inbox"]).get("MESSAGE").ends_with("agent:ann Tea for all"));
    }
    let before = hive.contents();
    let again = does(&hive, "ann", &["tell", "--to", "ben", "--to", "cem", "Tea for all", "--key", "tea"]);
    assert!(again.get("STATUS") == "DUPLICATE" && hive.contents() == before);
    // All of them or none.
    assert_eq!(by(&hive, "ann", &["tell", "--to", "ben", "--to", "nobody", "Tea"]).code, Some(6));
    assert_eq!(by(&hive, "ann", &["tell", "ben"]).code, Some(2));
    assert_eq!(by(&hive, "ann", &["tell", "--to", "ben", "cem", "Tea"]).code, Some(2));
    assert!(hive.contents() == before);
    keeps_the_rules(&hive);
}

#[test]
fn m10_no_change_goes_by_unseen() {
    let hive = written();
    ok(&hive, "hf-require propose Blue --actor agent:ann");
    ok(&hive, "hf-require analyze REQ-0001 Sky --actor agent:ann");
    ok(&hive, "hf-decide approve DEC-0001 --yes");
    // The act that reacts to it, knowingly or not, says what it was.
    let note = does(&hive, "ann", &["note", "Clouds"]);
    assert!(note.get("CHANGE").starts_with("DecisionApproved DEC-0001 "), "{note:?}");
    assert!(does(&hive, "ann", &["note", "Rain"]).all("CHANGE").is_empty());
    assert!(does(&hive, "ann", &["decide"]).all("CHANGE").is_empty());
    keeps_the_rules(&hive);
}

#[test]
fn m10_the_first_task_of_a_new_agent_is_a_change() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    hive.run("task", &["assign", "T-0001", "ann", "--note", "Begin with the fields"]).expect_exit(0);
    let decide = does(&hive, "ann", &["decide"]);
    assert_eq!(decide.all("CHANGE"), ["TaskAssigned T-0001 2026-01-31T12:00:00Z user:jo Form"]);
    assert_eq!(decide.get("SUM"), "1 change");
    let start = ok(&hive, "hf-task start T-0001 --actor agent:ann");
    assert_eq!(start.get("HANDOFF"), "2026-01-31T12:00:00Z user:jo Begin with the fields");
    // Its own claim is no news.
    ok(&hive, "hf-task propose Page");
    ok(&hive, "hf-task claim T-0002 --actor agent:ben");
    assert!(does(&hive, "ben", &["decide"]).all("CHANGE").is_empty());
    keeps_the_rules(&hive);
}

#[test]
fn m10_a_task_that_is_taken_away_is_a_change() {
    let hive = written();
    for _ in 0..3 {
        ok(&hive, "hf-task propose Form");
    }
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    ok(&hive, "hf-task assign T-0001 ben --reason x");
    let decide = does(&hive, "ann", &["decide"]);
    assert_eq!(decide.all("CHANGE"), ["TaskAssigned T-0001 2026-01-31T12:10:00Z user:jo Form"]);
    does(&hive, "ann", &["note", "--branch", "BR-0003", "Well"]);
    ok(&hive, "hf-task claim T-0002 --actor agent:ann");
    ok(&hive, "hf-task abort T-0002 --reason x");
    assert!(does(&hive, "ann", &["decide"]).get("CHANGE").starts_with("TaskAborted T-0002 "));
    does(&hive, "ann", &["note", "--branch", "ann", "Well"]);
    // What it gave up itself is no news.
    ok(&hive, "hf-task claim T-0003 --actor agent:ann");
    ok(&hive, "hf-task start T-0003 --actor agent:ann");
    ok(&hive, "hf-task fail T-0003 --class permanent --reason no --actor agent:ann");
    assert!(does(&hive, "ann", &["decide"]).all("CHANGE").is_empty());
    keeps_the_rules(&hive);
}
