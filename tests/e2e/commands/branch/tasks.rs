//! Branches of tasks, and how branches end.

use crate::support::steps::{count, keeps_the_rules, kinds, kinds_since, ok, refuses};
use crate::support::test_vault::TestVault;

use super::{active, by, does, threads, written};

#[test]
fn a_task_assigned_to_an_agent_gets_a_branch_and_a_first_thread() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let before = kinds(&hive).len();
    ok(&hive, "hf-task claim --actor agent:ann");
    assert_eq!(
        kinds_since(&hive, before),
        ["AgentStarted", "TaskAssigned", "BranchCreated", "BranchCreated", "ThreadOpened", "ThreadOpened"]
    );
    assert_eq!(
        does(&hive, "ann", &["list"]).all("BRANCH"),
        ["BR-0001 user Suspended 2026-01-31T12:00:00Z the user", "BR-0002 task Active 2026-01-31T12:00:00Z Form"]
    );
    // It is over when the task is, and not before.
    refuses(&hive, "hf-branch complete --agent ann", 3, "BR-0002 cannot be completed before T-0001, which is Assigned");
    ok(&hive, "hf-task start T-0001 --actor agent:ann");
    does(&hive, "ann", &["note", "Two fields"]);
    let before = kinds(&hive).len();
    ok(&hive, "hf-task succeed T-0001 --actor agent:ann");
    assert_eq!(kinds_since(&hive, before), ["RunFinished", "TaskSucceeded", "ThreadCompleted", "BranchCompleted"]);
    assert_eq!(
        does(&hive, "ann", &["list"]).all("BRANCH"),
        ["BR-0001 user Active 2026-01-31T12:00:00Z the user", "BR-0002 task Completed 2026-01-31T12:00:00Z Form"]
    );
    let told = does(&hive, "ann", &["recall", "BR-0002", "--thread", "1"]).stdout;
    assert!(told.contains("  Summary: T-0001 is Succeeded\n  2026-01-31T12:00:00Z agent:ann: Two fields\n"), "{told}");
    keeps_the_rules(&hive);
}

#[test]
fn a_task_branch_is_created_once_and_ends_with_its_task() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --lease 1m --actor agent:ann");
    // Lost and taken again: it is the same branch.
    hive.at("2026-01-31T12:01:01Z");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    assert_eq!(count(&hive, "BranchCreated"), 2);
    let again = does(&hive, "ann", &["create", "Form", "--type", "task", "--task", "T-0001"]);
    assert_eq!((again.get("STATUS"), again.get("REF").split('@').next()), ("DUPLICATE", Some("BR-0002")));
    does(&hive, "ann", &["suspend", "--summary", "Later"]);
    ok(&hive, "hf-task abort T-0001");
    assert_eq!(does(&hive, "ann", &["list", "--status", "Completed"]).all("BRANCH").len(), 1);
    // No branch for what is over, nor for a job, which nobody lives through.
    let late = by(&hive, "ben", &["create", "Form", "--type", "task", "--task", "T-0001"]);
    assert_eq!((late.code, late.get("REASON")), (Some(3), "not_ready"));
    let before = count(&hive, "BranchCreated");
    hive.command("job").args(["fire", "--", "true"]).env("HF_AGENT", "ann").output().unwrap();
    ok(&hive, "hf-job wait T-0002");
    assert_eq!(count(&hive, "BranchCreated"), before);
    keeps_the_rules(&hive);
}

#[test]
fn taking_a_second_task_leaves_the_first() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task propose Page");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    ok(&hive, "hf-task claim T-0002 --actor agent:ann");
    assert_eq!(active(&hive, "ann"), "BR-0003");
    assert_eq!(threads(&hive, "BR-0002"), ["Aborted"]);
    keeps_the_rules(&hive);
}

#[test]
fn a_free_branch_ends_when_its_persona_says_so() {
    let hive = written();
    let reply = does(&hive, "ann", &["complete", "BR-0002"]);
    assert_eq!(reply.get("SUM"), "BR-0002 is Completed: The song of the stars");
    assert_eq!(does(&hive, "ann", &["complete", "BR-0002"]).get("STATUS"), "DUPLICATE");
    refuses(&hive, "hf-branch resume BR-0002 --agent ann", 3, "is Completed, which is final");
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    let done = does(&hive, "ann", &["complete", "--summary", "Round the lake"]);
    assert_eq!(done.get("REF").split('@').next(), Some("BR-0003"));
    assert_eq!((active(&hive, "ann").as_str(), threads(&hive, "BR-0003")), ("BR-0001", vec!["Completed".to_owned()]));
    // Nobody else says so.
    does(&hive, "ann", &["create", "Tea", "--type", "free"]);
    does(&hive, "ann", &["suspend"]);
    refuses(&hive, "hf-branch complete BR-0004 --agent ben", 3, "BR-0004 is not a branch of agent:ben");
    refuses(&hive, "hf-append BranchCompleted --subject BR-0004", 3, "only agent:ann can complete BR-0004");
    keeps_the_rules(&hive);
}

#[test]
fn a_branch_leaves_the_projections_together_with_its_task() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    ok(&hive, "hf-task abort T-0001");
    ok(&hive, "hf-append TaskArchived --subject T-0001");
    assert_eq!(hive.json("projections/branches.json").as_object().unwrap().len(), 1);
    assert_eq!(does(&hive, "ann", &["list"]).all("BRANCH").len(), 1);
    // Memory is not.
    assert!(does(&hive, "ann", &["recall", "BR-0002"]).stdout.contains("## Thread 1 Aborted"));
    hive.run("verify", &["--policy", "--projections"]).expect_exit(0);
}

#[test]
fn m9_the_context_of_a_task_says_what_is_to_be_done() {
    let hive = TestVault::new();
    let steps = ["--step", "fields", "--step", "validate", "--step", "test"];
    let propose = [&["propose", "Form", "--description", "Two fields, no cookies"], &steps[..]].concat();
    hive.run("task", &propose).expect_exit(0);
    does(&hive, "ann", &["note", "I am ann"]);
    does(&hive, "ben", &["note", "I am ben"]);
    hive.run("task", &["assign", "T-0001", "ann", "--note", "Begin with the fields"]).expect_exit(0);
    ok(&hive, "hf-task start T-0001 --actor agent:ann");
    ok(&hive, "hf-task step T-0001 1 done --actor agent:ann");
    hive.run("task", &["note", "T-0001", "CSS is left", "--actor", "agent:ann"]).expect_exit(0);
    let branch = active(&hive, "ann");
    let told = does(&hive, "ann", &["resume", &branch]).stdout;
    let task = "# The task\n  T-0001 Running: Form\n  Description: Two fields, no cookies\n  Step 2 of 3: validate\n  \
                Handoff: Begin with the fields (user:jo, 2026-01-31T12:00:00Z)\n  \
                Note: CSS is left (agent:ann, 2026-01-31T12:00:00Z)\n  Steps so far: 1 fields (done)\n";
    assert!(told.contains(task), "{told}");
    // Somebody else has it now: the context says so, and the pulse does not offer it.
    does(&hive, "ann", &["suspend", "--summary", "Fields done"]);
    assert_eq!(does(&hive, "ann", &["decide"]).all("CANDIDATE").len(), 1);
    hive.run("task", &["assign", "T-0001", "ben", "--reason", "ann is away"]).expect_exit(0);
    assert!(does(&hive, "ann", &["decide"]).all("CANDIDATE").is_empty());
    let told = does(&hive, "ann", &["resume", &branch]).stdout;
    assert!(told.contains("# The task\n  T-0001 Assigned: Form\n  Held by: agent:ben, not you\n"), "{told}");
    // Within the smallest budget, it is cut and counted.
    let reply = does(&hive, "ann", &["resume", &branch, "--words", "60"]);
    assert!(reply.stdout.split_whitespace().count() <= 60, "{}", reply.stdout);
    keeps_the_rules(&hive);
}
