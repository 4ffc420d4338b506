//! Where an agent believes to be, and where it is: however often it is taken away, nothing it says goes astray.

use crate::support::steps::{keeps_the_rules, ok};
use crate::support::test_vault::{Reply, TestVault};

use super::{active, by, does, threads};

/// A vault in which ann writes a novel, BR-0002, and somebody has proposed T-0001.
fn writing() -> TestVault {
    let hive = TestVault::new();
    does(&hive, "ann", &["create", "Novel", "--type", "free"]);
    ok(&hive, "hf-task propose Form");
    hive
}

/// A vault in which ann works on T-0001, on BR-0002.
fn working() -> TestVault {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    ok(&hive, "hf-task start T-0001 --actor agent:ann");
    hive
}

fn checkpoint(hive: &TestVault) -> Reply {
    hive.run("checkpoint", &["--agent", "ann", "here"]).expect_exit(0)
}

/// Nothing is recorded, and the reply names the branch that the agent believes to be on.
#[track_caller]
fn refuses_a_note(hive: &TestVault, left: &str) {
    let before = hive.contents();
    let reply = by(hive, "ann", &["note", "Lyra draws"]);
    assert_eq!((reply.code, reply.get("STATUS")), (Some(1), "INTERRUPTED"), "{reply:#?}");
    assert!(reply.get("SUM").contains(left), "{reply:#?}");
    assert!(hive.contents() == before, "nothing was recorded");
}

#[track_caller]
fn has_summary(hive: &TestVault, branch: &str, summary: &str) {
    let told = does(hive, "ann", &["recall", branch]).stdout;
    assert!(told.contains(&format!("  Summary: {summary}")), "{told}");
}

#[test]
fn m1_a_note_goes_nowhere_else_after_two_interruptions() {
    let hive = writing();
    ok(&hive, "hf-task assign T-0001 ann");
    ok(&hive, "hf-branch tell ann hello");
    refuses_a_note(&hive, "BR-0002");
    // Both are announced, with the branch that was left.
    let told = checkpoint(&hive);
    assert_eq!(told.all("INTERRUPTED"), ["MSG-0001 user:jo BR-0002 Novel", "T-0001 user:jo BR-0002 Novel"]);
    assert_eq!(told.get("NEXT"), "ACTION hf-branch inbox --unread --agent ann");
    refuses_a_note(&hive, "BR-0002");
    does(&hive, "ann", &["suspend", "--summary", "Lyra armed"]);
    has_summary(&hive, "BR-0002", "Lyra armed");
    assert_eq!(threads(&hive, "BR-0003"), ["Aborted"]);
    keeps_the_rules(&hive);
}

#[test]
fn m1_a_summary_goes_to_the_branch_that_was_left_however_often_the_agent_is_moved() {
    let hive = writing();
    for step in ["tell ann hello", "checkpoint", "assign", "tell ann again", "checkpoint"] {
        match step {
            "checkpoint" => drop(checkpoint(&hive)),
            "assign" => drop(ok(&hive, "hf-task assign T-0001 ann")),
            tell => drop(ok(&hive, &format!("hf-branch {tell}"))),
        }
        if step != "tell ann hello" {
            refuses_a_note(&hive, "BR-0002");
        }
    }
    does(&hive, "ann", &["suspend", "--summary", "Lyra armed"]);
    has_summary(&hive, "BR-0002", "Lyra armed");
    keeps_the_rules(&hive);
}

#[test]
fn m1_an_abort_moves_nobody_silently() {
    for end in ["hf-task abort T-0001 --reason x", "hf-stop x"] {
        let hive = working();
        ok(&hive, end);
        refuses_a_note(&hive, "BR-0002");
        let told = does(&hive, "ann", &["list"]);
        assert!(told.get("INTERRUPTED").starts_with("T-0001 "), "{told:?}");
        assert!(told.get("INTERRUPTED").ends_with(" BR-0002 Form"), "{told:?}");
        let how = ["hf-branch suspend BR-0002 --summary TEXT", "hf-branch note --branch BR-0001 TEXT"];
        assert_eq!(told.all("ADVICE"), how);
        if end.starts_with("hf-stop") {
            hive.run("resume", &["--system", "--yes"]).expect_exit(0);
        }
        does(&hive, "ann", &["suspend", "--summary", "Two fields"]);
        has_summary(&hive, "BR-0002", "Two fields");
        let note = does(&hive, "ann", &["note", "--branch", "ann", "field two"]);
        assert!(note.get("BRANCH").starts_with("BR-0001 "), "{note:?}");
        does(&hive, "ann", &["note", "field three"]);
        keeps_the_rules(&hive);
    }
}

#[test]
fn m1_an_agent_knows_where_its_own_acts_lead() {
    let hive = working();
    does(&hive, "ann", &["note", "field one"]);
    ok(&hive, "hf-task succeed T-0001 --actor agent:ann");
    let note = does(&hive, "ann", &["note", "What next?"]);
    assert!(note.get("BRANCH").starts_with("BR-0001 "), "{note:?}");
    // What it gives up itself, too.
    for (task, end) in [("T-0002", "fail T-0002 --class permanent --reason no"), ("T-0003", "abort T-0003 --reason no")]
    {
        ok(&hive, "hf-task propose Page");
        ok(&hive, &format!("hf-task claim {task} --actor agent:ann"));
        ok(&hive, &format!("hf-task start {task} --actor agent:ann"));
        ok(&hive, &format!("hf-task {end} --actor agent:ann"));
        let note = does(&hive, "ann", &["note", "Well"]);
        assert!(note.get("BRANCH").starts_with("BR-0001 "), "{task}: {note:?}");
    }
    // A task that somebody else gives it on its root is no place that it went to.
    ok(&hive, "hf-task propose Foot");
    ok(&hive, "hf-task assign T-0004 ann");
    refuses_a_note(&hive, "BR-0001");
    // Starting it is.
    ok(&hive, "hf-task start T-0004 --actor agent:ann");
    assert_eq!(does(&hive, "ann", &["note", "field one"]).get("BRANCH").split(' ').next(), Some("BR-0005"));
    keeps_the_rules(&hive);
}

#[test]
fn m1_a_message_is_announced_until_it_is_read_or_answered() {
    let announced = |hive: &TestVault| {
        let told = checkpoint(hive);
        let is_named = told.all("INTERRUPTED").iter().any(|line| line.starts_with("MSG-0001 user:jo"));
        assert_eq!(is_named, told.get("NEXT") == "ACTION hf-branch inbox --unread --agent ann", "{told:#?}");
        is_named
    };
    for close in [
        "hf-task succeed T-0001 --summary done --actor agent:ann",
        "hf-task abort T-0001 --reason x",
        "hf-task assign T-0002 ann",
        "hf-branch suspend --summary x --agent ann",
        "hf-task claim T-0002 --actor agent:ann",
    ] {
        for answer in [&["read"][..], &["note", "--branch", "ann", "Welcome"]] {
            let hive = working();
            ok(&hive, "hf-task propose Page");
            ok(&hive, "hf-branch tell ann hi");
            let told = ok(&hive, close);
            if close.contains("agent:ann") || close.contains("--agent") {
                assert!(told.all("INTERRUPTED")[0].starts_with("MSG-0001 user:jo"), "{close}: {told:#?}");
            }
            assert!(announced(&hive) && announced(&hive), "{close}");
            does(&hive, "ann", answer);
            assert!(!announced(&hive), "{close}, {answer:?}");
            keeps_the_rules(&hive);
        }
    }
    // Reading one of two is not reading both.
    let hive = working();
    ok(&hive, "hf-branch tell ann hi");
    ok(&hive, "hf-branch tell ann there");
    does(&hive, "ann", &["read", "MSG-0002"]);
    assert!(announced(&hive));
    does(&hive, "ann", &["read", "MSG-0001"]);
    assert!(!announced(&hive));
}

#[test]
fn m1_a_late_summary_goes_to_the_branch_that_the_agent_was_on_last() {
    let hive = TestVault::new();
    does(&hive, "ann", &["note", "I am ann"]);
    does(&hive, "ben", &["note", "I am ben"]);
    let social = does(&hive, "ann", &["list"]).all("BRANCH")[1][..7].to_owned();
    does(&hive, "ann", &["resume", &social]);
    does(&hive, "ann", &["suspend"]);
    let novel = does(&hive, "ann", &["create", "Novel", "--type", "free"]).get("REF")[..7].to_owned();
    ok(&hive, "hf-branch tell ann hi");
    checkpoint(&hive);
    does(&hive, "ann", &["note", "--branch", "ann", "ok"]);
    does(&hive, "ben", &["tell", "ann", "Tea?"]);
    does(&hive, "ann", &["suspend", "--summary", "Lyra"]);
    has_summary(&hive, &novel, "Lyra");
    assert!(!does(&hive, "ann", &["recall", &social]).stdout.contains("Lyra"));
    assert_eq!(active(&hive, "ann"), "BR-0001");
    keeps_the_rules(&hive);
}

#[test]
fn m1_a_summary_that_could_be_about_two_branches_is_refused() {
    let hive = writing();
    does(&hive, "ann", &["suspend"]);
    ok(&hive, "hf-task assign T-0001 ann");
    let before = hive.contents();
    let refused = by(&hive, "ann", &["suspend", "--summary", "Lyra armed"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.get("SUM").contains("hf-branch suspend BRANCH --summary TEXT"), "{refused:?}");
    assert!(hive.contents() == before);
    does(&hive, "ann", &["suspend", "BR-0002", "--summary", "Lyra armed"]);
    does(&hive, "ann", &["suspend", "BR-0003", "--summary", "One field"]);
    has_summary(&hive, "BR-0002", "Lyra armed");
    has_summary(&hive, "BR-0003", "One field");
    // From its root to one task, and on to the next.
    for task in ["T-0002", "T-0003"] {
        ok(&hive, "hf-task propose Page");
        ok(&hive, &format!("hf-task assign {task} ann"));
    }
    assert_eq!(by(&hive, "ann", &["suspend", "--summary", "Two fields"]).code, Some(2));
    keeps_the_rules(&hive);
}

#[test]
fn m1_a_note_is_refused_after_a_task_that_came_and_went() {
    let hive = writing();
    does(&hive, "ann", &["suspend", "--summary", "Lyra armed"]);
    ok(&hive, "hf-task assign T-0001 ann");
    // It learns where it is, but not that it is back.
    assert!(does(&hive, "ann", &["decide"]).get("ACTIVE").starts_with("BR-0003 "));
    ok(&hive, "hf-task abort T-0001 --reason x");
    refuses_a_note(&hive, "BR-0001");
    let told = by(&hive, "ann", &["note", "field one"]);
    assert_eq!(told.get("ADVICE"), "hf-branch note --branch BR-0001 TEXT");
    does(&hive, "ann", &["note", "--branch", "BR-0001", "Well"]);
    does(&hive, "ann", &["note", "What next?"]);
    keeps_the_rules(&hive);
}
