//! hf-decide: the approval gate.

use hiveforge::event::Kind;
use serde_json::json;

use crate::support::steps::{asked, count, found_after, id, keeps_the_rules, kinds, kinds_since, ok, refuses, state};
use crate::support::test_vault::{Reply, TestVault};

#[test]
fn approval_releases_everything_that_waited_for_it() {
    let hive = asked();
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    assert_eq!(
        ok(&hive, "hf-decide list --open").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:1 decision\nCOUNT:1\nHAS_MORE:no\n\
         ENTITY:decision:<ulid> DEC-0001@<tag> Requested Build REQ-0001, Login?\n"
    );
    let before = kinds(&hive).len();
    assert_eq!(
        hive.run("decide", &["approve", "DEC-0001", "--comment", "Go ahead"]).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ACTION hf-task claim T-0001\nSUM:DEC-0001 is Approved: Build REQ-0001, Login?\n\
         EVENT_ID:<ulid>\nEVENT_ID:<ulid>\nEVENT_ID:<ulid>\nSUBJECT:decision:<ulid>\nREF:DEC-0001@<tag>\nSTATE:Approved\n"
    );
    assert_eq!(kinds_since(&hive, before), ["DecisionApproved", "RequirementApproved", "TaskReady"]);
    let batch: Vec<_> = hive.events()[before..].iter().map(|event| event["batch"]["of"].clone()).collect();
    assert_eq!(batch, [json!(3), json!(3), json!(3)], "all of it is one write");
    assert_eq!(
        ok(&hive, "hf-decide show DEC-0001").masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:DEC-0001 is Approved: Build REQ-0001, Login?\nSUBJECT:decision:<ulid>\n\
         REF:DEC-0001@<tag>\nSTATE:Approved\nFACT:created_at 2026-01-31T12:00:00Z\n\
         FACT:decided_at 2026-01-31T12:00:00Z\nFACT:decided_by user:jo\nFACT:kind requirement_approval\n\
         FACT:last_event_id <ulid>\nFACT:rationale Go ahead\nFACT:requested_at 2026-01-31T12:00:00Z\n\
         FACT:summary Build REQ-0001, Login?\nFACT:target requirement:<ulid>\nFACT:target_hash sha256:<digest>\n\
         FACT:requested_by core:reactor\nFACT:opens_gate true\nFACT:title Login\nFACT:analysis Easy.\n"
    );
    assert_eq!(ok(&hive, "hf-decide list --open").get("COUNT"), "0");
    assert_eq!(ok(&hive, "hf-decide list").get("COUNT"), "1");
    keeps_the_rules(&hive);
}

#[test]
fn approving_twice_is_a_duplicate_even_with_another_comment() {
    let hive = asked();
    let first = ok(&hive, "hf-decide approve DEC-0001 --comment yes");
    let recorded = hive.contents();
    let again = ok(&hive, "hf-decide approve DEC-0001 --comment of-course");
    assert_eq!(
        again.masked(&hive),
        "EXIT:0\nSTATUS:DUPLICATE\nNEXT:NONE\nSUM:DEC-0001 is Approved: Build REQ-0001, Login?\nEVENT_ID:<ulid>\n\
         SUBJECT:decision:<ulid>\nREF:DEC-0001@<tag>\nSTATE:Approved\n\
         ADVICE:hf-task propose TITLE --requirement REQ-0001\n"
    );
    assert_eq!(again.get("EVENT_ID"), first.all("EVENT_ID")[0]);
    assert!(hive.contents() == recorded);
    refuses(
        &hive,
        "hf-decide reject DEC-0001 --reason no",
        3,
        "DEC-0001 is Approved, which does not allow DecisionRejected; allowed: DecisionSuperseded",
    );
}

#[test]
fn rejection_ends_what_the_decision_was_about() {
    let hive = asked();
    let before = kinds(&hive).len();
    assert_eq!(
        ok(&hive, "hf-decide reject DEC-0001 --reason expensive").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:DEC-0001 is Rejected: Build REQ-0001, Login?\nEVENT_ID:<ulid>\n\
         EVENT_ID:<ulid>\nSUBJECT:decision:<ulid>\nREF:DEC-0001@<tag>\nSTATE:Rejected\n"
    );
    assert_eq!(kinds_since(&hive, before), ["DecisionRejected", "RequirementRejected"]);
    assert_eq!(hive.events().last().unwrap()["payload"]["reason"], "expensive");
    assert_eq!(ok(&hive, "hf-decide reject DEC-0001 --reason again").get("STATUS"), "DUPLICATE");
    refuses(&hive, "hf-decide approve DEC-0001", 3, "is Rejected, which is final");
    keeps_the_rules(&hive);
}

#[test]
fn one_of_the_options_must_be_chosen_and_the_choice_is_final() {
    let hive = asked();
    let request = ["request", "--kind", "requirement_approval", "--target", "REQ-0001", "--summary", "Which?"];
    let options = ["--option", "small", "--option", "large"];
    assert_eq!(
        hive.run("decide", &[&request[..], &options].concat()).expect_exit(0).masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ASK operator\nSUM:DEC-0002 is Requested: user:jo asks: Which?\nEVENT_ID:<ulid>\n\
         SUBJECT:decision:<ulid>\nREF:DEC-0002@<tag>\nSTATE:Requested\n"
    );
    refuses(&hive, "hf-decide approve DEC-0002", 2, "DEC-0002 requires an option: one of small, large");
    refuses(&hive, "hf-decide approve DEC-0002 --option huge", 2, "unknown option 'huge'; one of small, large");
    refuses(&hive, "hf-decide approve DEC-0001 --option small", 2, "unknown option 'small'; DEC-0001 has no options");
    ok(&hive, "hf-decide approve DEC-0002 --option small");
    assert_eq!(ok(&hive, "hf-decide approve DEC-0002 --option small").get("STATUS"), "DUPLICATE");
    let other = refuses(
        &hive,
        "hf-decide approve DEC-0002 --option large",
        3,
        "is Approved, which does not allow DecisionApproved",
    );
    assert_eq!(other.get("REASON"), "illegal_transition");
    keeps_the_rules(&hive);
}

/// Who must not decide: the words after the command, and what is in the environment.
const AGENTS: &[(&[&str], Option<&str>)] = &[
    (&["--actor", "agent:a"], None),
    (&[], Some("HF_AGENT")),
    (&[], Some("HF_SESSION")),
    (&["--actor", "user:jo"], Some("HF_AGENT")),
    (&["--actor", "user:jo"], Some("HF_SESSION")),
];

fn as_agent(hive: &TestVault, name: &str, args: &[&str], who: &(&[&str], Option<&str>)) -> Reply {
    let mut command = hive.command(name);
    command.args(args).args(who.0);
    if let Some(variable) = who.1 {
        command.env(variable, "a");
    }
    Reply::of(command.output().unwrap()).expect_exit(3)
}

#[test]
fn an_agent_cannot_decide_under_any_name_or_command() {
    let hive = asked();
    let before = hive.contents();
    let decision = id(&hive, "decide", "DEC-0001");
    for who in AGENTS {
        for (name, args) in [
            ("decide", &["approve", "DEC-0001"][..]),
            ("decide", &["reject", "DEC-0001", "--reason", "no"]),
            ("append", &["DecisionApproved", "--subject", &decision]),
            ("append", &["DecisionRejected", "--subject", &decision]),
            ("append", &["RequirementRejected", "--subject", "REQ-0001"]),
        ] {
            let reply = as_agent(&hive, name, args, who);
            assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("operator_only", "ASK operator"), "{who:?} {args:?}");
            assert!(hive.contents() == before, "{who:?} {args:?}");
        }
    }
    // Nobody can put the consequence in without the decision, an operator neither.
    for actor in ["user:jo", "agent:a"] {
        let reply = hive.refuses("append", &["RequirementApproved", "--subject", "REQ-0001", "--actor", actor], 3);
        assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("APPROVAL_REQUIRED", "ASK operator"));
    }
}

#[test]
fn an_approval_does_not_cover_later_changes() {
    let hive = asked();
    // A question that was asked by hand is one about the old analysis, too.
    ok(&hive, "hf-decide request --kind requirement_approval --target REQ-0001 --summary Really?");
    ok(&hive, "hf-require analyze REQ-0001 Not-so-easy.");
    let open: Vec<String> =
        ok(&hive, "hf-decide list --open").all("ENTITY").iter().map(|line| line[36..44].trim().to_owned()).collect();
    assert_eq!(open, ["DEC-0003"], "what is asked about the old analysis is closed");
    for old in ["DEC-0001", "DEC-0002"] {
        refuses(&hive, &format!("hf-decide approve {old}"), 3, "is Superseded, which is final");
    }
    assert_eq!(state(&hive, "REQ-0001"), "Analyzed");
}

#[test]
fn an_approval_bound_to_something_else_is_refused() {
    let hive = asked();
    let target = format!("requirement:{}", id(&hive, "require", "REQ-0001"));
    let payload = json!({"kind": "requirement_approval", "target": target, "summary": "?", "target_hash": "sha256:0"});
    hive.append("DecisionRequested", "decision:odd", payload);
    let reply = refuses(&hive, "hf-decide approve odd", 3, "has changed since the decision was requested");
    assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("changed", "ASK operator"));
}

#[test]
fn a_destructive_task_waits_for_approval() {
    let hive = TestVault::new();
    let reply = ok(&hive, "hf-task propose Drop-tables --destructive");
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:ACTION hf-task explain T-0001\nSUM:T-0001 is Proposed: Drop-tables\n\
         EVENT_ID:<ulid>\nEVENT_ID:<ulid>\nSUBJECT:task:<ulid>\nREF:T-0001@<tag>\nSTATE:Proposed\n\
         ENTITY:decision:<ulid> DEC-0001@<tag> Requested Allow destructive task T-0001, Drop-tables?\n"
    );
    assert_eq!(
        hive.run_next(&reply).expect_exit(0).all("BECAUSE"),
        [
            "T-0001 has been Proposed since 2026-01-31T12:00:00Z",
            "it is destructive and requires approval by an operator",
            "DEC-0001 has been open since 2026-01-31T12:00:00Z: Allow destructive task T-0001, Drop-tables?"
        ]
    );
    for line in ["claim", "start", "ready"] {
        let reply = refuses(&hive, &format!("hf-task {line} T-0001"), 3, "T-0001 requires approval by an operator");
        assert_eq!(
            ["STATUS", "NEXT", "REASON"].map(|key| reply.get(key)),
            ["APPROVAL_REQUIRED", "ASK operator", "approval_required"]
        );
    }
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(state(&hive, "T-0001"), "Ready");
    ok(&hive, "hf-task claim T-0001");
    ok(&hive, "hf-task propose Drop-more --destructive");
    ok(&hive, "hf-decide reject DEC-0002 --reason no");
    assert_eq!(state(&hive, "T-0002"), "Aborted");
    keeps_the_rules(&hive);
}

#[test]
fn a_malformed_decision_request_is_refused() {
    let hive = asked();
    ok(&hive, "hf-task propose Form");
    let ask = |kind: &str, target: &str| format!("hf-decide request --kind {kind} --target {target} --summary ?");
    refuses(&hive, &ask("constraint_change", "REQ-0001"), 2, "one of requirement_approval, destructive_operation");
    refuses(
        &hive,
        &ask("everything", "REQ-0001"),
        2,
        "unknown kind 'everything'; one of requirement_approval, destructive_operation",
    );
    refuses(&hive, &ask("requirement_approval", "T-0001"), 2, "T-0001 is a task, not a requirement");
    refuses(&hive, &ask("requirement_approval", "REQ-0009"), 6, "'REQ-0009' not found");
    refuses(&hive, "hf-decide approve DEC-0009", 6, "'DEC-0009' not found");
    refuses(&hive, "hf-decide approve REQ-0001", 2, "the subject of DecisionApproved must be a decision, not REQ-0001");
    refuses(&hive, "hf-decide reject DEC-0001", 2, "--reason");
    ok(&hive, "hf-require propose Logout");
    ok(&hive, "hf-require analyze REQ-0002");
    refuses(&hive, "hf-decide approve 01KG", 6, "'01KG' is ambiguous; it matches decision:<ulid>, decision:<ulid>");
}

#[test]
fn a_key_makes_repeating_an_answer_safe() {
    let hive = asked();
    ok(&hive, "hf-decide approve DEC-0001 --key yes");
    assert_eq!(ok(&hive, "hf-decide approve DEC-0001 --key yes").get("STATUS"), "DUPLICATE");
    let reply = refuses(&hive, "hf-decide reject DEC-0001 --reason no --key yes", 3, "for a different request");
    assert_eq!(reply.get("REASON"), "key_conflict");
    assert_eq!(count(&hive, "DecisionApproved"), 1);
}

#[test]
fn the_audit_finds_an_approval_by_an_agent_in_a_forged_log() {
    for actor in ["agent:a", "core:reactor"] {
        let hive = asked();
        let decision = format!("decision:{}", id(&hive, "decide", "DEC-0001"));
        let found = found_after(&hive, vec![(actor, Kind::DecisionApproved, &decision, json!({}))]);
        assert!(found.contains(&format!("DecisionApproved requires an operator; {actor} is not one")), "{found:#?}");
    }
}

#[test]
fn the_audit_finds_a_stale_approval_in_a_forged_log() {
    let hive = asked();
    let [requirement, decision] = [
        format!("requirement:{}", id(&hive, "require", "REQ-0001")),
        format!("decision:{}", id(&hive, "decide", "DEC-0001")),
    ];
    let found = found_after(
        &hive,
        vec![
            ("user:jo", Kind::RequirementAnalyzed, &requirement, json!({"analysis": "Delete everything first."})),
            ("user:jo", Kind::DecisionApproved, &decision, json!({})),
            ("core:reactor", Kind::RequirementApproved, &requirement, json!({})),
        ],
    );
    let changed =
        "the target of DEC-0001 has changed since the decision was requested; request a new decision".to_owned();
    assert!(found.contains(&changed), "{found:#?}");
    assert!(
        found.contains(&"REQ-0001 requires approval by an operator (requirement_approval)".to_owned()),
        "{found:#?}"
    );
}

#[test]
fn the_audit_finds_a_gated_event_without_approval_in_a_forged_log() {
    let hive = asked();
    let requirement = format!("requirement:{}", id(&hive, "require", "REQ-0001"));
    let found = found_after(&hive, vec![("user:jo", Kind::RequirementApproved, &requirement, json!({}))]);
    assert_eq!(found, ["REQ-0001 requires approval by an operator (requirement_approval)"]);
    let hive = TestVault::new();
    let found = found_after(&hive, vec![("user:jo", Kind::ConstraintApplied, "constraint:c", json!({"text": "x"}))]);
    assert_eq!(found, ["constraint:c requires approval by an operator (constraint_change)"]);
}
