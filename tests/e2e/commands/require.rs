//! hf-require: what is wanted.

use serde_json::json;

use crate::support::steps::{approved, count, keeps_the_rules, kinds, ok, refuses, state};
use crate::support::test_vault::TestVault;

#[test]
fn a_requirement_lives_from_its_proposal_to_its_verification() {
    let hive = TestVault::new();
    let propose = ["propose", "Users can log in", "--description", "By mail."];
    let reply = hive.run("require", &propose).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:REQ-0001 is Proposed: Users can log in\nEVENT_ID:<ulid>\n\
         SUBJECT:requirement:<ulid>\nREF:REQ-0001@<tag>\nSTATE:Proposed\n\
         ADVICE:hf-require analyze REQ-0001 TEXT\n"
    );
    let analyzed = ok(&hive, "hf-require analyze REQ-0001 Easy.");
    assert_eq!(
        analyzed.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ASK operator\nSUM:REQ-0001 is Analyzed: Users can log in\n\
         EVENT_ID:<ulid>\nEVENT_ID:<ulid>\nSUBJECT:requirement:<ulid>\nREF:REQ-0001@<tag>\nSTATE:Analyzed\n\
         ENTITY:decision:<ulid> DEC-0001@<tag> Requested Build REQ-0001, Users can log in?\n"
    );
    assert_eq!(
        ok(&hive, "hf-require show REQ-0001").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:REQ-0001 is Analyzed: Users can log in\n\
         SUBJECT:requirement:<ulid>\nREF:REQ-0001@<tag>\nSTATE:Analyzed\nFACT:content sha256:<digest>\n\
         FACT:created_at 2026-01-31T12:00:00Z\nFACT:last_event_id <ulid>\nFACT:title Users can log in\n\
         FACT:description By mail.\nFACT:analysis Easy.\n\
         ENTITY:decision:<ulid> DEC-0001@<tag> Requested Build REQ-0001, Users can log in?\n"
    );
    ok(&hive, "hf-decide approve DEC-0001");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task claim T-0001");
    ok(&hive, "hf-task start T-0001");
    ok(&hive, "hf-task succeed T-0001");
    assert_eq!(
        ok(&hive, "hf-require list --status Implemented").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:1 requirement\nCOUNT:1\nHAS_MORE:no\n\
         ENTITY:requirement:<ulid> REQ-0001@<tag> Implemented Users can log in\n"
    );
    assert_eq!(
        ok(&hive, "hf-require verify REQ-0001").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:REQ-0001 is Verified: Users can log in\nEVENT_ID:<ulid>\n\
         SUBJECT:requirement:<ulid>\nREF:REQ-0001@<tag>\nSTATE:Verified\n"
    );
    assert_eq!(ok(&hive, "hf-require verify REQ-0001").get("STATUS"), "DUPLICATE");
    keeps_the_rules(&hive);
}

#[test]
fn a_text_may_come_from_a_file_or_from_standard_input() {
    let hive = TestVault::new();
    hive.pipe("require", &["propose", "Login", "--description", "-"], "By mail.\nAnd by phone.\n").expect_exit(0);
    std::fs::write(hive.dir().join("analysis.md"), "Two tasks.").unwrap();
    ok(&hive, "hf-require analyze REQ-0001 --file analysis.md");
    let events = hive.events();
    assert_eq!(events[1]["payload"]["description"], json!("By mail.\nAnd by phone."));
    assert_eq!(events[2]["payload"]["analysis"], json!("Two tasks."));
    refuses(&hive, "hf-require analyze REQ-0001 --file nowhere.md", 2, "nowhere.md");
    refuses(&hive, "hf-require analyze REQ-0001 x --file analysis.md", 2, "cannot be used with");
}

#[test]
fn an_approved_requirement_can_be_superseded() {
    let hive = TestVault::new();
    approved(&hive);
    ok(&hive, "hf-require propose Passkeys");
    refuses(&hive, "hf-require supersede REQ-0001 --by REQ-0009", 6, "'REQ-0009' not found");
    assert_eq!(
        ok(&hive, "hf-require supersede REQ-0001 --by REQ-0002").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:REQ-0001 is Superseded: Login\nEVENT_ID:<ulid>\n\
         SUBJECT:requirement:<ulid>\nREF:REQ-0001@<tag>\nSTATE:Superseded\n"
    );
    refuses(
        &hive,
        "hf-require supersede REQ-0002",
        3,
        "REQ-0002 is Proposed, which does not allow RequirementSuperseded; allowed: RequirementAnalyzed, \
         RequirementRejected",
    );
    keeps_the_rules(&hive);
}

#[test]
fn only_a_person_can_reject_a_requirement_early() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    let reply = refuses(&hive, "hf-require reject REQ-0001 --reason no --actor agent:a", 3, "requires an operator");
    assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("operator_only", "ASK operator"));
    assert_eq!(
        ok(&hive, "hf-require reject REQ-0001 --reason no").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:REQ-0001 is Rejected: Login\nEVENT_ID:<ulid>\n\
         SUBJECT:requirement:<ulid>\nREF:REQ-0001@<tag>\nSTATE:Rejected\n"
    );
    refuses(&hive, "hf-require analyze REQ-0001", 3, "is Rejected, which is final");
}

#[test]
fn a_second_analysis_replaces_the_first_question() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 First.");
    let again = ok(&hive, "hf-require analyze REQ-0001 Second.");
    assert_eq!(
        again.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ASK operator\nSUM:REQ-0001 is Analyzed: Login\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nEVENT_ID:<ulid>\nSUBJECT:requirement:<ulid>\nREF:REQ-0001@<tag>\nSTATE:Analyzed\n\
         ENTITY:decision:<ulid> DEC-0002@<tag> Requested Build REQ-0001, Login?\n"
    );
    assert_eq!(["DEC-0001", "DEC-0002"].map(|d| state(&hive, d)), ["Superseded", "Requested"]);
    refuses(&hive, "hf-decide approve DEC-0001", 3, "is Superseded, which is final");
    assert_eq!(state(&hive, "REQ-0001"), "Analyzed");
    ok(&hive, "hf-decide approve DEC-0002");
    assert_eq!(state(&hive, "REQ-0001"), "Approved");
    keeps_the_rules(&hive);
}

#[test]
fn a_key_makes_a_repetition_safe() {
    let hive = TestVault::new();
    let first = ok(&hive, "hf-require propose Login --key login");
    let again = ok(&hive, "hf-require propose Login --key login");
    assert_eq!((again.get("STATUS"), again.get("EVENT_ID")), ("DUPLICATE", first.get("EVENT_ID")));
    // The safe next step is the same as the first time.
    assert_eq!(again.get("NEXT"), first.get("NEXT"));
    let other = refuses(&hive, "hf-require propose Logout --key login", 3, "for a different request");
    assert_eq!(other.get("REASON"), "key_conflict");
    ok(&hive, "hf-require analyze REQ-0001 Easy. --key a");
    assert_eq!(ok(&hive, "hf-require analyze REQ-0001 Easy. --key a").get("STATUS"), "DUPLICATE");
    assert_eq!(count(&hive, "DecisionRequested"), 1);
}

#[test]
fn missing_and_ambiguous_references_are_not_found() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose One");
    ok(&hive, "hf-require propose Two");
    for line in ["show", "analyze", "verify", "supersede"] {
        let reply = refuses(&hive, &format!("hf-require {line} REQ-0003"), 6, "'REQ-0003' not found");
        assert_eq!(reply.get("STATUS"), "NOT_FOUND");
        let ambiguous = refuses(&hive, &format!("hf-require {line} 01KG"), 6, "'01KG' is ambiguous; it matches ");
        assert_eq!(ambiguous.get("SUM").matches("requirement:01KG").count(), 2);
    }
    let tagged = refuses(&hive, "hf-require show REQ-0001@zzzz", 6, "REQ-0001@zzzz");
    assert_eq!(tagged.get("STATUS"), "NOT_FOUND");
}

#[test]
fn a_reference_to_another_type_is_refused_by_its_type() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-task propose Form");
    refuses(&hive, "hf-require show T-0001", 2, "T-0001 is a task, not a requirement");
    refuses(&hive, "hf-require supersede REQ-0001 --by T-0001", 2, "T-0001 is a task, not a requirement");
    refuses(&hive, "hf-task show REQ-0001", 2, "REQ-0001 is a requirement, not a task");
    refuses(&hive, "hf-task explain REQ-0001", 2, "REQ-0001 is a requirement, not a task");
    refuses(&hive, "hf-task start REQ-0001", 2, "REQ-0001 is a requirement, not a task");
    refuses(&hive, "hf-task propose Form --requirement T-0001", 2, "T-0001 is a task, not a requirement");
    refuses(&hive, "hf-task propose Form --after REQ-0001", 2, "REQ-0001 is a requirement, not a task");
    refuses(&hive, "hf-task list --requirement T-0001", 2, "T-0001 is a task, not a requirement");
    refuses(&hive, "hf-decide show REQ-0001", 2, "REQ-0001 is a requirement, not a decision");
    refuses(&hive, "hf-artifact get REQ-0001", 2, "REQ-0001 is a requirement, not an artifact");
    refuses(&hive, "hf-constraint remove T-0001", 2, "T-0001 is a task, not a constraint");
}

#[test]
fn an_empty_title_and_an_unknown_state_are_usage_errors() {
    let hive = TestVault::new();
    for args in
        [&["propose", ""][..], &["propose"], &["list", "--status", "Lost"], &["reject", "x"], &["list", "--limit", "0"]]
    {
        hive.refuses("require", args, 2);
    }
    assert_eq!(kinds(&hive).len(), 1);
}

#[test]
fn a_long_list_is_read_page_by_page() {
    let hive = TestVault::new();
    for title in ["One", "Two", "Three"] {
        ok(&hive, &format!("hf-require propose {title}"));
    }
    let first = ok(&hive, "hf-require list --limit 2 --status Proposed");
    assert_eq!((first.get("COUNT"), first.get("HAS_MORE")), ("2", "yes"));
    let second = hive.run_next(&first).expect_exit(0);
    assert_eq!((second.get("COUNT"), second.get("HAS_MORE"), second.get("NEXT")), ("1", "no", "NONE"));
    assert!(second.get("ENTITY").ends_with("Proposed Three"));
}
