//! What is derived from the log, and every other file beside it, cannot make an act count that nobody signed: the gates
//! ask the log. And the judge of the tamperings is shown to disagree with a verdict that is too weak.

use std::fs;

use serde_json::{Map, Value, json};

use super::super::audit::change_index;
use super::forge::{Log, answer, attackers_key, event, publish, reference, signed_by, text};
use super::life::{Life, decisions};
use super::oracle::Oracle;
use crate::support::operator_keys::make_key;
use crate::support::steps::{id, ok, sh, state};
use crate::support::test_vault::{TestVault, write_private};

/// A keyed vault with T-0005, whose requirement REQ-0006 nobody approved, and the destructive T-0004, which nobody approved
/// either. The key of its operator is out of reach, and its index is in use.
fn waiting() -> (Life, TestVault) {
    let life = decisions();
    ok(&life.hive, "hf-task propose Csv --requirement REQ-0006 --actor agent:b");
    let copy = life.hive.copy();
    let proposal = |n: usize| json!({"event_type": "RequirementProposed", "payload": {"title": format!("wish {n}")}});
    for _ in 0..2 {
        copy.batch(&(0..100).map(proposal).collect::<Vec<_>>());
    }
    (life, copy)
}

/// Asserts that neither task can be taken, and that nobody took one.
fn is_refused(hive: &TestVault, case: &str) {
    for task in ["T-0004", "T-0005"] {
        let reply = sh(hive, &format!("hf-task claim {task} --actor agent:b"));
        assert!(reply.code != Some(0), "{case}: {reply:#?}");
    }
    let ids = ["T-0004", "T-0005"].map(|task| format!("task:{}", id(hive, "task", task)));
    let taken =
        |event: &Value| event["event_type"] == "TaskAssigned" && ids.iter().any(|id| event["subject"] == id.as_str());
    assert!(!hive.events().iter().any(taken), "{case}");
}

#[test]
fn a8_no_file_beside_the_log_makes_an_approval() {
    let (life, hive) = waiting();
    let whole = hive.contents();
    let keys = life.key_file();
    let first = fs::read(life.hive.head()).expect("a head record");
    type Spoil<'a> = (&'a str, Box<dyn Fn() + 'a>);
    let subject = |kind: &str, reference: &str| format!("{kind}:{}", id(&hive, kind_of(kind), reference));
    let (task, requirement) = (subject("task", "T-0004"), subject("requirement", "REQ-0006"));
    let answered = |text: &str| text.replace("\"Analyzed\"", "\"Approved\"").replace("\"Requested\"", "\"Approved\"");
    let spoils: [Spoil<'_>; 10] = [
        (
            "the index says Approved",
            Box::new(|| {
                change_index(&hive, &requirement, "\"state\":\"Analyzed\"", "\"state\":\"Approved\"");
            }),
        ),
        (
            "the index says Ready",
            Box::new(|| {
                change_index(&hive, &task, "\"state\":\"Proposed\"", "\"state\":\"Ready\"   ");
            }),
        ),
        ("no index", Box::new(|| fs::remove_dir_all(hive.akashic("index")).expect("an index"))),
        ("an older head", Box::new(|| write_private(&hive.head(), &first))),
        ("no head", Box::new(|| fs::remove_file(hive.head()).expect("a head"))),
        ("another head", Box::new(|| write_private(&hive.head(), b"{}"))),
        (
            "projections",
            Box::new(|| {
                for (path, bytes) in
                    hive.contents().iter().filter(|file| file.0.starts_with(hive.akashic("projections")))
                {
                    write_private(
                        path,
                        answered(&String::from_utf8_lossy(bytes)).replace("\"Proposed\"", "\"Ready\"").as_bytes(),
                    );
                }
            }),
        ),
        (
            "settings",
            Box::new(|| {
                hive.configure("governance:\n  approval_timeout_policy: reject\n  destructive_commands: []\n");
            }),
        ),
        (
            "the list of trusted vaults",
            Box::new(|| {
                let trust = hive.trusts().file.expect("a file");
                fs::create_dir_all(trust.parent().expect("a folder")).expect("a folder");
                write_private(&trust, hive.vault().to_str().expect("UTF-8").as_bytes());
            }),
        ),
        ("the stop flag", Box::new(|| write_private(&hive.akashic("control"), &[b' '; 4096]))),
    ];
    for (case, spoil) in spoils {
        spoil();
        is_refused(&hive, case);
        let done = hive.run("verify", &["--operator-keys", &keys]);
        // The log itself is as it was, but for what its reader had to note.
        assert_eq!(done.get("SIGNATURES"), "OK", "{case}: {done:#?}");
        hive.restore(&whole);
    }
}

/// The command that shows something of a type.
fn kind_of(entity: &str) -> &str {
    if entity == "task" { "task" } else { "require" }
}

#[test]
fn a8_a_gated_job_starts_by_the_log_and_not_by_its_files() {
    let (_, hive) = waiting();
    let fired = hive.run("job", &["fire", "--destructive", "--", "touch", "made"]).expect_exit(3);
    assert_eq!(fired.get("STATUS"), "APPROVAL_REQUIRED", "{fired:#?}");
    let jobs: Vec<_> =
        hive.contents().into_iter().filter(|(path, _)| path.starts_with(hive.vault().join("Jobs"))).collect();
    assert!(!jobs.is_empty());
    for (path, bytes) in jobs {
        let said = String::from_utf8_lossy(&bytes).into_owned();
        let forged = said.replace("\"destructive\":true", "\"destructive\":false").replace("touch", "true ");
        for bytes in [forged.into_bytes(), Vec::new()] {
            write_private(&path, &bytes);
            sh(&hive, "hf-job check T-0006");
            sh(&hive, "hf-watchdog");
        }
        write_private(&path, &bytes);
    }
    assert!(["Proposed", "Aborted"].contains(&state(&hive, "T-0006").as_str()));
    assert!(!hive.dir().join("made").exists());
    assert!(
        !hive
            .events()
            .iter()
            .any(|event| event["event_type"] == "RunStarted" && event["payload"]["command"].is_array())
    );
}

/// Raw approvals with a head record that publishes them: the gate reads the approval itself, and who signed it.
#[test]
fn a8_a_published_approval_opens_no_gate_unless_an_operator_signed_it() {
    let (_, hive) = waiting();
    let whole = hive.contents();
    let genuine = Log(hive.events());
    let borrowed: Map<String, Value> = genuine.0[*genuine.signed().last().expect("an act")]["payload"]
        .as_object()
        .expect("an object")
        .iter()
        .filter(|member| ["signed_by", "statement", "signature"].contains(&member.0.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    for (case, with_own_key) in [("nothing", false), ("borrowed", false), ("own", false), ("own key added", true)] {
        let mut log = genuine.clone();
        if with_own_key {
            let (at, line) = (log.0.len(), attackers_key().line());
            let more = [("binds key", line.clone())];
            let statement = log.statement(at, "add an operator key", "system", &reference(log.authority(at)), &more);
            let mut payload = signed_by(&attackers_key(), &statement);
            payload.insert("key".to_owned(), line.into());
            let last = text(&log.0[at - 1], "event_id").to_owned();
            log.insert(at, vec![event("user:jo", "OperatorKeyAdded", "system", &[&last], payload.into())]);
            log.chain();
        }
        for question in genuine.open_questions(genuine.0.len()) {
            let at = log.0.len();
            let payload = match case {
                "nothing" => Map::new(),
                "borrowed" => borrowed.clone(),
                _ => signed_by(&attackers_key(), &log.approval(at, &question)),
            };
            let mut events = answer("user:jo", &question, payload);
            // What waited for the requirement is ready, too.
            let target = text(&question["payload"], "target").strip_prefix("requirement:").map(str::to_owned);
            let waits =
                |event: &&Value| target.is_some() && event["payload"]["requirement_id"].as_str() == target.as_deref();
            if let Some(task) = genuine.0.iter().find(waits) {
                let cause = text(&events[1], "event_id").to_owned();
                events.push(event("core:reactor", "TaskReady", text(task, "subject"), &[&cause], json!({})));
            }
            log.insert(at, events);
            log.chain();
        }
        write_private(&hive.segment(), &log.chain());
        publish(&hive, &log);
        assert_eq!((state(&hive, "T-0004"), state(&hive, "T-0005")), ("Ready".into(), "Ready".into()), "{case}");
        is_refused(&hive, case);
        let done = sh(&hive, "hf-verify --policy").expect_exit(1);
        assert!(["MISSING", "BAD"].contains(&done.get("SIGNATURES")), "{case}: {done:#?}");
        hive.restore(&whole);
    }
}

/// The judge must be able to say no: a whole log that the attacker made with its own key is VERIFIED by a check that was
/// not told whose keys count, and the judge disagrees.
#[test]
fn a8_the_judge_of_tamperings_disagrees_with_a_check_that_was_given_no_keys() {
    let life = decisions();
    let oracle = Oracle::new(&life);
    let rewritten = TestVault::empty();
    let ssh = rewritten.user_home().join(".ssh");
    fs::create_dir(&ssh).expect("a folder");
    let key = make_key(&ssh, "id_ed25519", "ed25519");
    ok(&rewritten, &format!("hf-init --operator-key {}.pub --yes", key.display()));
    ok(&rewritten, "hf-require propose Login");
    ok(&rewritten, "hf-require analyze REQ-0001 Easy.");
    ok(&rewritten, "hf-decide approve DEC-0001 --yes");
    let weak = ok(&rewritten, "hf-verify --policy");
    assert_eq!((weak.get("STATUS"), weak.get("SIGNATURES")), ("VERIFIED", "UNPINNED"));
    let log = rewritten.events();
    let own = reference(&log[0]);
    assert!(oracle.forged(&log, &own).is_some(), "the first event is another one");
    // The same for an act alone, after a beginning that is genuine.
    let mut log = Log(life.events.clone());
    let at = log.0.len();
    let question = log.open_questions(at).remove(0);
    let statement = log.approval(at, &question);
    log.insert(at, answer("user:jo", &question, signed_by(&attackers_key(), &statement)));
    log.chain();
    let said = oracle.forged(&log.0, &reference(&life.events[0])).expect("something is forged");
    assert!(said.ends_with("no listed key signed it"), "{said}");
    // Given the keys and an anchor, hf-verify agrees with it.
    let keys = life.key_file();
    let anchor = reference(&life.events[0]);
    let strong = rewritten.run("verify", &["--operator-keys", &keys, "--expect-head", &anchor]).expect_exit(1);
    assert_eq!((strong.get("STATUS"), strong.get("SIGNATURES"), strong.get("ANCHOR")), ("FAILED", "BAD", "FAILED"));
}
