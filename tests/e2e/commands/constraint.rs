//! hf-constraint: limits that apply to all work.

use std::fs;

use serde_json::{Value, json};

use crate::support::steps::{count, keeps_the_rules, ok, refuses, state};
use crate::support::test_vault::TestVault;

/// The active constraints, as agents read them.
fn active(hive: &TestVault) -> Vec<Value> {
    let text = fs::read(hive.vault().join("Context/active_constraints.json")).unwrap();
    let all: Value = serde_json::from_slice(&text).unwrap();
    all.as_object().unwrap().values().map(|one| one["text"].clone()).collect()
}

#[test]
fn a_constraint_is_active_from_its_approval_until_its_removal_is_approved() {
    let hive = TestVault::new();
    let apply = hive.run("constraint", &["apply", "No new dependency"]).expect_exit(0);
    assert_eq!(
        apply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ASK operator\nSUM:DEC-0001 is Requested: Apply the constraint: No new dependency\n\
         EVENT_ID:<ulid>\nSUBJECT:decision:<ulid>\nREF:DEC-0001@<tag>\nSTATE:Requested\n"
    );
    assert_eq!(ok(&hive, "hf-constraint list").get("COUNT"), "0");
    let approved = ok(&hive, "hf-decide approve DEC-0001");
    assert!(approved.masked(&hive).ends_with("ENTITY:constraint:<ulid> CON-0001@<tag> Active No new dependency\n"));
    assert_eq!(active(&hive), [json!("No new dependency")]);
    assert_eq!(
        ok(&hive, "hf-constraint list").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:1 constraint\nCOUNT:1\nHAS_MORE:no\n\
         ENTITY:constraint:<ulid> CON-0001@<tag> Active No new dependency\n"
    );
    assert_eq!(
        ok(&hive, "hf-constraint remove CON-0001").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ASK operator\nSUM:DEC-0002 is Requested: Lift the constraint: No new dependency\n\
         EVENT_ID:<ulid>\nSUBJECT:decision:<ulid>\nREF:DEC-0002@<tag>\nSTATE:Requested\n"
    );
    assert_eq!(active(&hive).len(), 1);
    ok(&hive, "hf-decide approve DEC-0002");
    assert_eq!(active(&hive).len(), 0);
    assert_eq!(ok(&hive, "hf-constraint list").get("COUNT"), "0");
    assert!(ok(&hive, "hf-constraint list --all").get("ENTITY").ends_with(" Removed No new dependency"));
    keeps_the_rules(&hive);
}

#[test]
fn a_rejected_constraint_never_becomes_active() {
    let hive = TestVault::new();
    ok(&hive, "hf-constraint apply Hurry");
    ok(&hive, "hf-decide reject DEC-0001 --reason no");
    assert_eq!(
        (count(&hive, "ConstraintApplied"), ok(&hive, "hf-constraint list --all").get("COUNT").to_owned()),
        (0, "0".to_owned())
    );
    keeps_the_rules(&hive);
}

#[test]
fn an_agent_may_propose_a_constraint_but_nobody_applies_it_without_a_decision() {
    let hive = TestVault::new();
    ok(&hive, "hf-constraint apply Hurry --actor agent:a");
    refuses(&hive, "hf-decide approve DEC-0001 --actor agent:a", 3, "requires an operator");
    let payload = json!({"text": "Hurry"}).to_string();
    for actor in ["user:jo", "agent:a"] {
        let args = ["ConstraintApplied", "--subject", "constraint:c", "--payload", &payload, "--actor", actor];
        assert_eq!(hive.refuses("append", &args, 3).get("STATUS"), "APPROVAL_REQUIRED");
    }
    ok(&hive, "hf-decide approve DEC-0001");
    let reply = hive.refuses("append", &["ConstraintRemoved", "--subject", "CON-0001"], 3);
    assert_eq!(reply.get("STATUS"), "APPROVAL_REQUIRED");
    // What was approved is approved to the letter.
    let other = json!({"text": "Hurry more"}).to_string();
    hive.refuses("append", &["ConstraintApplied", "--subject", "constraint:d", "--payload", &other], 3);
}

#[test]
fn constraint_refuses_unknown_and_malformed_targets() {
    let hive = TestVault::new();
    ok(&hive, "hf-constraint apply Hurry");
    ok(&hive, "hf-decide approve DEC-0001");
    refuses(&hive, "hf-constraint apply x --priority T-0001", 6, "'T-0001' not found");
    refuses(&hive, "hf-constraint apply x --priority DEC-0001", 2, "must be a task or a requirement");
    refuses(&hive, "hf-constraint remove CON-0009", 6, "'CON-0009' not found");
    hive.refuses("constraint", &["apply", ""], 2);
    for change in [json!({"do": "apply", "text": ""}), json!({"do": "apply", "priority": 1}), json!({"do": "pray"})] {
        let target = json!({"kind": "constraint_change", "target": "constraint:c", "summary": "?", "change": change});
        hive.refuses("append", &["DecisionRequested", "--payload", &target.to_string()], 2);
    }
    let long = "x".repeat(5000);
    hive.refuses("constraint", &["apply", &long], 2);
}

#[test]
fn a_second_removal_request_changes_nothing() {
    let hive = TestVault::new();
    ok(&hive, "hf-constraint apply Hurry");
    ok(&hive, "hf-decide approve DEC-0001");
    ok(&hive, "hf-constraint remove CON-0001");
    ok(&hive, "hf-constraint remove CON-0001");
    ok(&hive, "hf-decide approve DEC-0002");
    assert_eq!(count(&hive, "ConstraintRemoved"), 1);
    let late = crate::support::steps::sh(&hive, "hf-decide approve DEC-0003");
    assert_eq!(count(&hive, "ConstraintRemoved"), 1, "{late:#?}");
    assert_eq!(state(&hive, "DEC-0002"), "Approved");
    keeps_the_rules(&hive);
}

#[test]
fn a_key_makes_repeating_a_constraint_request_safe() {
    let hive = TestVault::new();
    for line in ["hf-constraint apply Quietly --key a", "hf-constraint remove CON-0001 --key r"] {
        let first = ok(&hive, line);
        let recorded = hive.contents();
        let again = ok(&hive, line);
        assert_eq!((again.get("STATUS"), again.get("REF")), ("DUPLICATE", first.get("REF")), "{line}");
        assert!(hive.contents() == recorded, "{line}");
        ok(&hive, &format!("hf-decide approve {}", first.get("REF")));
        assert_eq!(ok(&hive, line).get("STATUS"), "DUPLICATE", "{line}");
    }
    refuses(&hive, "hf-constraint apply Loudly --key a", 3, "for a different request");
}
