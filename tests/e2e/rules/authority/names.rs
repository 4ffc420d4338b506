//! Names cannot lie: ids and references, the toolkit's own actors, and the words of a question.

use hiveforge::event::{Event, Kind};
use serde_json::{Value, json};

use crate::support::steps::{
    approved, asked, count, found_after, found_in, id, keeps_the_rules, ok, refuses, sh, state,
};
use crate::support::test_vault::{Reply, TestVault, forged};

/// Runs hf-append with a payload, which may contain spaces.
fn append(hive: &TestVault, kind: &str, subject: &str, payload: &Value, more: &[&str]) -> Reply {
    let payload = payload.to_string();
    let mut args = vec![kind, "--payload", &payload];
    if !subject.is_empty() {
        args.extend(["--subject", subject]);
    }
    args.extend(more);
    hive.run("append", &args)
}

#[test]
fn a1_an_id_that_reads_like_a_reference_is_refused() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    for (kind, subject, payload) in [
        ("RequirementProposed", "requirement:REQ-0002", json!({"title": "x"})),
        ("RequirementProposed", "requirement:dec-0001", json!({"title": "x"})),
        ("TaskProposed", "task:RUN-00001", json!({"title": "x"})),
        ("TaskProposed", "task:d0001", json!({"title": "x"})),
        ("AgentStarted", "agent:T-0001", json!({})),
        ("DocumentAdded", "document:T-0001", json!({"kind": "plan", "path": "x", "sha256": "0"})),
        ("RequirementProposed", "requirement:plain", json!({"title": "x", "project_id": "ESC-0001"})),
        (
            "DecisionRequested",
            "",
            json!({"kind": "constraint_change", "target": "constraint:CON-0002", "summary": "Apply the constraint: x", "change": {"do": "apply", "text": "x"}}),
        ),
    ] {
        let before = hive.contents();
        let reply = append(&hive, kind, subject, &payload, &[]).expect_exit(3);
        assert_eq!(reply.get("REASON"), "misleading_id", "{subject}");
        assert!(reply.get("SUM").ends_with("reads like a short reference; choose another one"), "{reply:#?}");
        assert!(hive.contents() == before, "{subject}");
    }
    // Neither an agent nor a project can take such a name by acting.
    for line in ["hf-task propose x --actor agent:DEC-0001", "hf-require propose x --project T-0001 --create"] {
        assert_eq!(refuses(&hive, line, 3, "reads like a short reference").get("REASON"), "misleading_id");
    }
    // What only resembles one is an id.
    append(&hive, "RequirementProposed", "requirement:dec-001", &json!({"title": "x"}), &[]).expect_exit(0);
    keeps_the_rules(&hive);
}

#[test]
fn a1_the_question_that_an_operator_reads_is_the_one_that_is_answered() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Wipe --destructive --actor agent:a");
    let wipe = json!({"kind": "destructive_operation", "target": format!("task:{}", id(&hive, "task", "T-0001")), "summary": "x"});
    append(&hive, "DecisionRequested", "decision:DEC-0002", &wipe, &["--actor", "agent:a"]).expect_exit(3);
    ok(&hive, "hf-require propose typo");
    ok(&hive, "hf-require analyze REQ-0001 a --actor agent:a");
    ok(&hive, "hf-decide approve DEC-0002");
    assert_eq!(state(&hive, "REQ-0001"), "Approved");
    assert_eq!(state(&hive, "T-0001"), "Proposed");
}

#[test]
fn a1_the_audit_finds_an_id_that_reads_like_a_reference() {
    let hive = asked();
    let found = found_after(&hive, vec![("user:jo", Kind::TaskProposed, "task:DEC-0002", json!({"title": "x"}))]);
    assert!(
        found.contains(&"the id of task:DEC-0002 reads like a short reference; choose another one".to_owned()),
        "{found:#?}"
    );
}

/// A vault of the rules of version 0.1, which let an agent take the id DEC-0001 before there was any decision.
fn with_misleading_id(entity: &str) -> TestVault {
    let hive = TestVault::new();
    let mut events = hive.recorded();
    events[0].payload.remove("settings");
    events.push(forged(1, Kind::RequirementProposed, "requirement:r", json!({"title": "Login"})));
    events.push(forged(2, Kind::RequirementProposed, &format!("requirement:{entity}"), json!({"title": "Trap"})));
    hive.forge(&mut events);
    hive
}

#[test]
fn a1_a_word_that_names_two_things_is_refused() {
    let hive = with_misleading_id("REQ-0001");
    for line in ["hf-require show REQ-0001", "hf-require analyze req-0001 Easy.", "hf-log --subject REQ-0001"] {
        // In lower case it is no id, but it could be a slip.
        let expected = if line.contains("req-") { 0 } else { 6 };
        let reply = sh(&hive, line).expect_exit(expected);
        if expected == 6 {
            let both = "'REQ-0001' is ambiguous; it matches requirement:REQ-0001, requirement:r";
            assert_eq!(reply.get("SUM"), both);
        }
    }
    // A whole subject, or a reference with its hash, names one thing.
    ok(&hive, "hf-require show requirement:REQ-0001");
    let tagged = ok(&hive, "hf-require show requirement:r").get("REF").to_owned();
    assert_eq!(ok(&hive, &format!("hf-require show {tagged}")).get("SUBJECT"), "requirement:r");
}

#[test]
fn a1_an_id_that_is_the_start_of_another_is_refused() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    let ulid = id(&hive, "require", "REQ-0001");
    let start = &ulid[..10];
    append(&hive, "RequirementProposed", &format!("requirement:{start}"), &json!({"title": "Trap"}), &[])
        .expect_exit(0);
    let sum = format!("'{start}' is ambiguous; it matches requirement:{start}, requirement:{ulid}");
    assert_eq!(sh(&hive, &format!("hf-require show {start}")).expect_exit(6).get("SUM"), sum);
    ok(&hive, &format!("hf-require show {ulid}"));
    ok(&hive, &format!("hf-require show {}", &ulid[..20]));
}

#[test]
fn a2_only_the_toolkits_own_question_opens_a_gate() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Wipe --destructive --actor agent:a");
    let request = "hf-decide request --kind destructive_operation --target T-0001 --summary Read-the-docs? --actor";
    ok(&hive, &format!("{request} agent:a"));
    ok(&hive, &format!("{request} user:jo"));
    let listed = ok(&hive, "hf-decide list --open");
    let titles: Vec<&str> =
        listed.all("ENTITY").iter().filter_map(|row| row.split_once("Requested ")).map(|row| row.1).collect();
    assert_eq!(
        titles,
        ["Allow destructive task T-0001, Wipe?", "agent:a asks: Read-the-docs?", "user:jo asks: Read-the-docs?"]
    );
    for question in ["DEC-0002", "DEC-0003"] {
        let shown = ok(&hive, &format!("hf-decide show {question}"));
        assert!(shown.all("FACT").contains(&"opens_gate false"), "{shown:#?}");
        let reply = ok(&hive, &format!("hf-decide approve {question}"));
        assert!(reply.stderr.contains("opens no gate"), "{reply:#?}");
        assert_eq!((state(&hive, "T-0001"), state(&hive, "DEC-0001")), ("Proposed".into(), "Requested".into()));
        refuses(&hive, "hf-task claim T-0001 --actor agent:a", 3, "requires approval by an operator");
    }
    assert!(ok(&hive, "hf-decide show DEC-0001").all("FACT").contains(&"opens_gate true"));
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(state(&hive, "T-0001"), "Ready");
    keeps_the_rules(&hive);
}

#[test]
fn a2_a_question_of_an_agent_does_not_keep_the_toolkit_from_asking() {
    let hive = TestVault::new();
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-decide request --kind requirement_approval --target REQ-0001 --summary Tea? --actor agent:a");
    ok(&hive, "hf-require analyze REQ-0001 Easy. --actor agent:a");
    assert_eq!(state(&hive, "DEC-0002"), "Requested");
    // A rejection of the agent's question rejects nothing, either.
    append(&hive, "DecisionRequested", "", &json!({"kind": "requirement_approval", "target": format!("requirement:{}", id(&hive, "require", "REQ-0001")), "summary": "Coffee?"}), &["--actor", "agent:a"]).expect_exit(0);
    ok(&hive, "hf-decide reject DEC-0003 --reason no");
    assert_eq!((state(&hive, "REQ-0001"), state(&hive, "DEC-0002")), ("Analyzed".into(), "Requested".into()));
    ok(&hive, "hf-decide approve DEC-0002");
    assert_eq!(state(&hive, "REQ-0001"), "Approved");
    keeps_the_rules(&hive);
}

#[test]
fn a2_a_change_of_a_constraint_is_asked_in_its_own_words() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let change =
        json!({"do": "apply", "text": "No deploys", "priority": format!("task:{}", id(&hive, "task", "T-0001"))});
    let ask = |summary: &str| json!({"kind": "constraint_change", "target": "constraint:c", "summary": summary, "change": change});
    let words = "Apply the constraint: No deploys (priority: T-0001)";
    for wrong in ["Water the plants?", "Apply the constraint: No deploys", &format!("{words} ")] {
        let reply = append(&hive, "DecisionRequested", "", &ask(wrong), &["--actor", "agent:a"]).expect_exit(2);
        assert_eq!(reply.get("SUM"), format!("the summary of constraint_change must state the change: {words}"));
    }
    append(&hive, "DecisionRequested", "", &ask(words), &["--actor", "agent:a"]).expect_exit(0);
    ok(&hive, "hf-decide approve DEC-0001");
    let lift = |summary: &str| json!({"kind": "constraint_change", "target": "constraint:c", "summary": summary, "change": {"do": "remove"}});
    append(&hive, "DecisionRequested", "", &lift("Water the plants?"), &[]).expect_exit(2);
    ok(&hive, "hf-constraint remove CON-0001");
    ok(&hive, "hf-decide approve DEC-0002");
    keeps_the_rules(&hive);
}

#[test]
fn a12_an_option_cannot_mean_no() {
    let hive = asked();
    for no in ["no", "No", "NO!", "reject", "Deny", "don't", "No, thanks", "never", "却下"] {
        let args = [
            "request",
            "--kind",
            "requirement_approval",
            "--target",
            "REQ-0001",
            "--summary",
            "?",
            "--option",
            "yes",
            "--option",
            no,
        ];
        let reply = hive.refuses("decide", &args, 2);
        assert!(reply.get("SUM").contains("means no"), "{no}: {reply:#?}");
    }
    ok(
        &hive,
        "hf-decide request --kind requirement_approval --target REQ-0001 --summary ? --option now --option later",
    );
    let answered = ok(&hive, "hf-decide approve DEC-0002 --option later");
    assert_eq!(answered.get("STATE"), "Approved");
    // The toolkit's own questions have no options, so no option can change what they open.
    refuses(&hive, "hf-decide approve DEC-0001 --option later", 2, "has no options");
}

#[test]
fn a18_the_audit_compares_the_time_of_an_event_with_its_id() {
    let hive = asked();
    let mut events = hive.recorded();
    let mut late = forged(1, Kind::TaskProposed, "task:t", json!({"title": "x"}));
    let ten_years = 10 * 365 * 24 * 3600 * 1000;
    late.id = hiveforge::base::Ulid::from_parts(late.id.timestamp_ms() + ten_years, 1);
    events.push(late.clone());
    let found = found_in(&hive, events);
    assert!(found.contains(&format!("its time {} does not match the time in its id", late.timestamp)), "{found:#?}");
}

#[test]
fn a19_nobody_acts_as_a_part_of_the_toolkit() {
    let hive = asked();
    let target = format!("requirement:{}", id(&hive, "require", "REQ-0001"));
    let question = json!({"kind": "requirement_approval", "target": target, "summary": "Water the plants?"});
    for actor in ["core:reactor", "core:watchdog", "core:kernel", "core:x"] {
        let before = hive.contents();
        let reply = append(&hive, "DecisionRequested", "", &question, &["--actor", actor]).expect_exit(3);
        assert_eq!(reply.get("REASON"), "reserved_actor");
        let sum = format!("{actor} is reserved; only the toolkit itself acts under this name");
        assert_eq!(reply.get("SUM"), sum);
        for line in ["hf-task propose x", "hf-stop x", "hf-decide approve DEC-0001"] {
            assert_eq!(refuses(&hive, &format!("{line} --actor {actor}"), 3, &sum).get("REASON"), "reserved_actor");
        }
        assert!(hive.contents() == before);
    }
}

/// A forged event of an actor, with these parents.
fn by(actor: &str, parents: &[&Event], event: Event) -> Event {
    Event { actor: actor.to_owned(), parents: parents.iter().map(|parent| parent.id).collect(), ..event }
}

#[test]
fn a19_the_audit_finds_an_event_of_the_reactor_that_nothing_led_to() {
    let reactor = "core:reactor";
    let found = |hive: &TestVault, more: Vec<Event>| {
        let mut events = hive.recorded();
        events.extend(more);
        found_in(hive, events)
    };
    let alien = |kind: &str, subject: &str| format!("{kind} of {subject} is not a consequence of any of its parents");

    // A question that the reactor did not ask, about something that it has asked about.
    let hive = asked();
    let (analyzed, target) = {
        let events = hive.recorded();
        let analyzed = events.iter().find(|e| e.event_type.known() == Some(Kind::RequirementAnalyzed)).unwrap().clone();
        let target = analyzed.subject.clone();
        (analyzed, target)
    };
    let asked_before = hive.recorded().last().unwrap().clone();
    let ulid = "01KG0000000000000000000000";
    let mut payload = asked_before.payload.clone();
    payload.insert("summary".to_owned(), "Water the plants?".into());
    let subject = format!("decision:{ulid}");
    let question =
        by(reactor, &[&analyzed], forged(1, Kind::DecisionRequested, &subject, Value::Object(payload.clone())));
    assert!(found(&hive, vec![question]).contains(&alien("DecisionRequested", &subject)));

    // The right question in other words, in place of the right one.
    let hive = asked();
    let mut events = hive.recorded();
    let last = events.len() - 1;
    events[last].payload = payload;
    let subject = events[last].subject.clone();
    assert!(found_in(&hive, events).contains(&alien("DecisionRequested", &subject)));

    // A consequence of something in an earlier batch.
    let hive = asked();
    let approval = by(reactor, &[&analyzed], forged(1, Kind::RequirementApproved, &target, json!({})));
    assert!(found(&hive, vec![approval]).contains(&alien("RequirementApproved", &target)));

    // The log of the commands themselves has only real ones.
    let hive = TestVault::new();
    approved(&hive);
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task propose Wipe --requirement REQ-0001 --destructive");
    ok(&hive, "hf-decide reject DEC-0002 --reason no");
    ok(&hive, "hf-stop Enough");
    ok(&hive, "hf-resume --system");
    assert!(count(&hive, "TaskReady") > 0);
    keeps_the_rules(&hive);
}

#[test]
fn a19_the_audit_finds_a_component_that_records_what_is_not_its_own() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --actor agent:a");
    ok(&hive, "hf-task start T-0001 --actor agent:a");
    let task = format!("task:{}", id(&hive, "task", "T-0001"));
    for (actor, kind, payload) in [
        ("core:jobs", Kind::TaskSucceeded, json!({})),
        ("core:watchdog", Kind::TaskSucceeded, json!({})),
        ("core:hooks", Kind::TaskAborted, json!({})),
        ("core:x", Kind::TaskAborted, json!({})),
    ] {
        let found = found_after(&hive.copy(), vec![(actor, kind, &task, payload)]);
        assert!(found.contains(&format!("{actor} does not record {kind} of {task}")), "{found:#?}");
    }
}
