//! What is refused, and what the audit finds in a forged log.

use std::fs;

use hiveforge::event::Kind;
use serde_json::{Value, json};

use crate::support::steps::{found_after, keeps_the_rules, ok, sh};
use crate::support::test_vault::{Reply, TestVault};

use super::{active, does, written};

#[test]
fn a_repeated_command_with_a_key_records_nothing() {
    let hive = written();
    let create = ["create", "Tea", "--type", "free", "--key", "k1"];
    let first = does(&hive, "ann", &create);
    does(&hive, "ann", &["note", "hot", "--key", "k2"]);
    hive.run("branch", &["tell", "ann", "Hm", "--key", "k3"]).expect_exit(0);
    does(&hive, "ann", &["suspend"]);
    does(&hive, "ann", &["read"]);
    let before = hive.contents();
    let again = does(&hive, "ann", &create);
    assert_eq!((again.get("STATUS"), again.get("SUBJECT")), ("DUPLICATE", first.get("SUBJECT")));
    assert_eq!(does(&hive, "ann", &["note", "hot", "--key", "k2"]).get("STATUS"), "DUPLICATE");
    assert_eq!(hive.run("branch", &["tell", "ann", "Hm", "--key", "k3"]).expect_exit(0).get("STATUS"), "DUPLICATE");
    assert!(hive.contents() == before);
    hive.refuses("branch", &["note", "cold", "--key", "k2", "--agent", "ann"], 3);
}

#[test]
fn bad_input_is_refused_in_one_line_and_changes_nothing() {
    let hive = written();
    does(&hive, "ben", &["note", "I am ben"]);
    ok(&hive, "hf-task propose Form");
    let long = "x".repeat(81);
    let huge = "x".repeat(1024 * 1024 + 1);
    fs::write(hive.dir().join("huge.txt"), huge).unwrap();
    fs::write(hive.dir().join("bytes.txt"), b"\xff\xfe").unwrap();
    fs::write(hive.dir().join("empty.txt"), "\n").unwrap();
    for (args, code, sum) in [
        (&["create", " ", "--type", "free"][..], 2, "the label is empty; it must be one line"),
        (&["create", "a\nb", "--type", "free"], 2, "the label has 2 lines; it must be one line"),
        (&["create", &long, "--type", "free"], 2, "the label has 81 characters; at most 80"),
        (&["create", "x"], 2, "--type <TYPE>"),
        (&["create", "x", "--type", "user"], 2, "invalid value 'user'"),
        (&["create", "x", "--type", "task"], 2, "a task branch requires --task and does not allow --partner"),
        (
            &["create", "x", "--type", "free", "--task", "T-0001"],
            2,
            "a free branch allows neither --task nor --partner",
        ),
        (&["create", "x", "--type", "social", "--partner", "ann"], 2, "agent:ann cannot be its own partner"),
        (&["create", "x", "--type", "social", "--partner", "nobody"], 6, "unknown agent 'nobody'"),
        (&["create", "x", "--type", "social", "--partner", "no body"], 2, "invalid id"),
        (&["create", "x", "--type", "task", "--task", "T-0009"], 6, "T-0009"),
        (&["create", "x", "--type", "task", "--task", "BR-0001"], 2, "BR-0001 is a branch, not a task"),
        (&["create", "x", "--type", "free", "--summary", "y"], 2, "no active branch to leave"),
        (&["resume", "BR-0009"], 6, "BR-0009"),
        (&["resume", "T-0001"], 2, "T-0001 is a task, not a branch"),
        (&["resume", "ben"], 3, "BR-0003 is not a branch of agent:ann"),
        (&["resume", "BR-0002", "--summary", "x", "--abort"], 2, "cannot be used with"),
        (&["resume", "ann", "--summary", "x"], 2, "the branch is already active"),
        (&["resume", "BR-0002", "--words", "many"], 2, "invalid value 'many'"),
        (&["suspend", "--summary", "x"], 2, "no active branch to leave"),
        (&["suspend", "--tail", "nowhere.txt"], 2, "cannot read nowhere.txt"),
        (&["suspend", "--tail", "huge.txt"], 2, "the text is too long"),
        (&["suspend", "--tail", "bytes.txt"], 2, "the text is not UTF-8"),
        (&["complete"], 6, "agent:ann has no active branch besides its root"),
        (&["complete", "ben"], 3, "BR-0003 is not a branch of agent:ann"),
        (&["complete", "BR-0002", "--summary", "x"], 2, "the branch is not active"),
        (&["recall"], 2, "<REFERENCE>"),
        (&["recall", "BR-0002", "--all"], 2, "cannot be used with"),
        (&["recall", "ben"], 3, "BR-0003 is not a branch of agent:ann"),
        (&["note", "  "], 2, "the note is empty"),
        (&["note", ""], 2, "the note is empty"),
        (&["tell", "nobody", "x"], 6, "unknown agent 'nobody'"),
        (&["tell", "ann", "x"], 2, "agent:ann cannot send a message to itself; record a note instead"),
        (&["tell", "ben", " "], 2, "the message is empty"),
        (&["inbox", "--limit", "0"], 2, "invalid limit 0; must be 1 to 500"),
        (&["read", "MSG-0001"], 6, "MSG-0001"),
        (&["list", "--limit", "501"], 2, "invalid limit 501; must be 1 to 500"),
        (&["list", "--cursor", "x"], 2, "unknown cursor; it must be the id of a branch of this persona"),
        (&["list", "--status", "Lost"], 2, "unknown status 'Lost'"),
        (&["list", "--working", "--status", "Active"], 2, "cannot be used with"),
        (&["show", "BR-0009"], 6, "BR-0009"),
    ] {
        let reply = hive.refuses("branch", &[args, &["--agent", "ann"]].concat(), code);
        assert!(reply.get("SUM").contains(sum), "{args:?}: {}", reply.get("SUM"));
    }
    let reply = hive.refuses("branch", &["note", "x", "--agent", "no body"], 2);
    assert!(reply.get("SUM").starts_with("an agent name must be"));
    hive.refuses_input("branch", &["suspend", "--summary", "-", "--agent", "ann"], "", 2);
    // With a branch to leave, what is said of it has to be something.
    does(&hive, "ann", &["resume", "BR-0002"]);
    hive.refuses("branch", &["suspend", "--summary", " ", "--agent", "ann"], 2);
    hive.refuses("branch", &["suspend", "--tail", "empty.txt", "--agent", "ann"], 2);
    hive.refuses_input("branch", &["suspend", "--summary", "-", "--agent", "ann"], "", 2);
    // In the shell of one agent no other acts.
    let output = hive.command("branch").args(["note", "x", "--agent", "ben"]).env("HF_AGENT", "ann").output().unwrap();
    assert_eq!(Reply::of(output).expect_exit(3).get("REASON"), "operator_only");
}

#[test]
fn events_appended_by_hand_follow_the_same_rules() {
    let hive = written();
    does(&hive, "ben", &["note", "I am ben"]);
    let ulid = "branch:01KG9QXN48X6GJ8Z8WH27KY9VE";
    let thread = hive.json("projections/threads.json");
    let of = |branch: &str| {
        let found = thread.as_object().unwrap().values().find(|t| t["branch_id"] == branch);
        format!("thread:{}", found.unwrap()["id"].as_str().unwrap())
    };
    let novel = hive.run("branch", &["show", "BR-0002"]).get("SUBJECT")[7..].to_owned();
    for (kind, subject, actor, payload, code, sum) in [
        (
            "BranchCreated",
            "branch:x",
            "agent:ann",
            json!({"persona_id": "ann", "branch_type": "free", "label": "x"}),
            2,
            "must be a ULID",
        ),
        (
            "BranchCreated",
            ulid,
            "agent:ben",
            json!({"persona_id": "ann", "branch_type": "free", "label": "x"}),
            3,
            "agent:ben cannot act for agent:ann",
        ),
        (
            "BranchCreated",
            ulid,
            "agent:ann",
            json!({"persona_id": "ann", "branch_type": "user", "label": "x"}),
            2,
            "the root of agent:ann must be branch:ann",
        ),
        (
            "BranchCreated",
            ulid,
            "user:jo",
            json!({"persona_id": "nobody", "branch_type": "free", "label": "x"}),
            6,
            "agent:nobody has no branches yet",
        ),
        (
            "BranchCreated",
            ulid,
            "agent:ann",
            json!({"persona_id": "ann", "branch_type": "free", "label": "x", "partner_persona_id": "ben"}),
            2,
            "neither",
        ),
        (
            "BranchCreated",
            ulid,
            "agent:ann",
            json!({"persona_id": "ann", "branch_type": "social", "label": "x", "partner_persona_id": "ben"}),
            3,
            "this branch already exists: BR-0005",
        ),
        ("ThreadOpened", "thread:x", "agent:ben", json!({"branch_id": novel}), 3, "agent:ben cannot act for agent:ann"),
        (
            "ThreadOpened",
            "thread:x",
            "agent:ann",
            json!({"branch_id": "ann"}),
            3,
            "is Active, which does not allow ThreadOpened",
        ),
        (
            "ThreadOpened",
            "thread:x",
            "agent:ann",
            json!({"branch_id": novel, "anchor_id": of("ann")[7..]}),
            2,
            "the anchor of a new thread of BR-0002 must be thread:",
        ),
        ("ThreadAborted", &of("ann"), "agent:ann", json!({"branch_id": "ann"}), 3, "BR-0001 is a root"),
        (
            "NoteRecorded",
            &of("ann"),
            "agent:ann",
            json!({"branch_id": novel, "text": "x"}),
            2,
            "is not a thread of branch:",
        ),
        (
            "NoteRecorded",
            &of("ann"),
            "agent:ben",
            json!({"branch_id": "ann", "text": "x"}),
            3,
            "agent:ben cannot act for agent:ann",
        ),
        (
            "MessageSent",
            "message:x",
            "user:jo",
            json!({"to": "nobody", "text": "x"}),
            6,
            "agent:nobody has no branches yet",
        ),
    ] {
        let payload = payload.to_string();
        let reply =
            hive.refuses("append", &[kind, "--subject", subject, "--actor", actor, "--payload", &payload], code);
        assert!(reply.get("SUM").contains(sum), "{kind}: {}", reply.get("SUM"));
    }
    // One that is legal works, and what is left out is filled in.
    let opened = json!({"branch_id": novel}).to_string();
    hive.run("append", &["ThreadOpened", "--actor", "agent:ann", "--payload", &opened, "--key", "go"]).expect_exit(0);
    assert_eq!(
        hive.run("append", &["ThreadOpened", "--actor", "agent:ann", "--payload", &opened, "--key", "go"])
            .get("STATUS"),
        "DUPLICATE"
    );
    assert_eq!(active(&hive, "ann"), "BR-0002");
    keeps_the_rules(&hive);
}

#[test]
fn a_forged_log_is_detected() {
    // What is forged comes a second after the beginning, so nothing before it may be later.
    let written = || {
        let hive = TestVault::new();
        does(&hive, "ann", &["create", "The song of the stars", "--type", "free"]);
        does(&hive, "ann", &["suspend", "--summary", "Chapter 1 is done"]);
        hive
    };
    let found = |more: Vec<(&str, Kind, &str, Value)>| found_after(&written(), more);
    let novel = |hive: &TestVault| hive.run("branch", &["show", "BR-0002"]).get("SUBJECT")[7..].to_owned();
    let hive = written();
    let id = novel(&hive);
    does(&hive, "ann", &["create", "A walk", "--type", "free"]);
    let last = hive
        .run("branch", &["show", "BR-0002"])
        .all("FACT")
        .iter()
        .find_map(|f| f.strip_prefix("last_thread_id ").map(str::to_owned))
        .unwrap();
    let two = json!({"branch_id": id, "anchor_id": last});
    assert_eq!(
        found_after(&hive, vec![("agent:ann", Kind::ThreadOpened, "thread:x", two)]),
        ["BR-0003 is active; leave it first"]
    );
    assert_eq!(
        found(vec![("agent:ann", Kind::BranchCompleted, "branch:ann", json!({}))]),
        [
            "BR-0001 is Active, which does not allow BranchCompleted; allowed: ThreadCompleted, ThreadAborted, ThreadSummarized, NoteRecorded, MessageSent, MessageRead"
        ]
    );
    let alone = json!({"persona_id": "ann", "branch_type": "free", "label": "x"});
    let findings = found(vec![("agent:ann", Kind::BranchCreated, "branch:01KG9QXN48X6GJ8Z8WH27KY9VE", alone)]);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(
        findings[0].starts_with("ThreadOpened of thread:") && findings[0].ends_with(" must follow, but is missing"),
        "{findings:?}"
    );
    // A user who was not heard.
    let hive = written();
    does(&hive, "ann", &["resume", "BR-0002"]);
    hive.run("branch", &["tell", "ann", "Come here"]).expect_exit(0);
    let note = json!({"heartbeat_id": "20260131120000", "text": "Writing"});
    let findings = found_after(&hive, vec![("agent:ann", Kind::CheckpointRecorded, "agent:ann", note)]);
    assert!(findings.len() == 1 && findings[0].starts_with("ThreadAborted of thread:"), "{findings:?}");
}

#[test]
fn a_log_from_before_branches_existed_keeps_the_rules() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let task = hive.events().iter().find(|e| e["event_type"] == "TaskProposed").unwrap()["subject"]
        .as_str()
        .unwrap()
        .to_owned();
    let holder = json!({"holder": "agent:ann"});
    assert_eq!(found_after(&hive, vec![("agent:ann", Kind::TaskAssigned, &task, holder)]), Vec::<String>::new());
}

#[test]
fn m11_in_a_paused_project_an_agent_speaks_and_begins_nothing() {
    let hive = TestVault::new();
    ok(&hive, "hf-branch create Song --type free --agent eris");
    ok(&hive, "hf-branch create Dance --type free --agent pan");
    ok(&hive, "hf-pause Word");
    for (line, exit) in [
        ("hf-branch tell pan Wait --agent eris", 0),
        ("hf-branch inbox --agent pan", 0),
        ("hf-branch read --agent pan", 0),
        ("hf-branch list --agent pan", 0),
        ("hf-branch decide --agent pan", 0),
        ("hf-branch note More --agent pan", 0),
        ("hf-branch create Walk --type free --abort --agent pan", 3),
        ("hf-branch suspend --summary Later --agent pan", 0),
    ] {
        let reply = sh(&hive, line).expect_exit(exit);
        assert!(exit == 0 || reply.get("STATUS") == "EXIT_REQUESTED", "{line}: {reply:?}");
    }
    // A person's word reaches an agent there as well.
    ok(&hive, "hf-branch tell pan Here");
    assert_eq!(ok(&hive, "hf-branch inbox --unread --agent pan").get("UNREAD"), "1");
    ok(&hive, "hf-resume");
    ok(&hive, "hf-branch note More --agent eris");
    assert_eq!(ok(&hive, "hf-verify --policy").get("POLICY"), "OK");
}
