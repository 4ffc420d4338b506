//! Reading the past: recall, long texts, and the projection.

use std::fs;

use serde_json::{Value, json};

use crate::support::steps::{count, keeps_the_rules, ok, refuses};
use crate::support::test_vault::TestVault;

use super::{does, written};

#[test]
fn recall_works_for_everything_by_thread_and_by_word() {
    let mut hive = written();
    does(&hive, "ann", &["resume", "BR-0002"]);
    does(&hive, "ann", &["note", "The TOWER falls"]);
    hive.at("2026-01-31T12:20:00Z");
    does(&hive, "ann", &["suspend"]);
    let ends = does(&hive, "ann", &["recall", "BR-0002"]).stdout;
    assert_eq!(
        ends,
        "# BR-0002 free Suspended: The song of the stars\n\
         ## Thread 1 Completed, 2026-01-31T12:00:00Z to 2026-01-31T12:10:00Z, 2 messages\n  Summary: Chapter 1 is done\n\
         ## Thread 2 Aborted, 2026-01-31T12:10:00Z to 2026-01-31T12:20:00Z, 1 message\n"
    );
    let one = does(&hive, "ann", &["recall", "BR-0002", "--thread", "1"]).stdout;
    assert_eq!(
        one,
        "# BR-0002 free Suspended: The song of the stars\n\
         ## Thread 1 Completed, 2026-01-31T12:00:00Z to 2026-01-31T12:10:00Z, 2 messages\n  Summary: Chapter 1 is done\n\
         \x20 2026-01-31T12:00:00Z agent:ann: The hero leaves home\n  2026-01-31T12:10:00Z agent:ann: The hero is at the tower\n"
    );
    let found = does(&hive, "ann", &["recall", "--all", "--grep", "tower"]);
    assert!(found.stderr.contains("SUM:2 threads, 2 messages\n"), "{found:?}");
    assert!(found.stdout.contains("The hero is at the tower\n") && found.stdout.contains("The TOWER falls\n"));
    assert!(!found.stdout.contains("leaves home") && !found.stdout.contains("Summary"), "{found:?}");
    let all = does(&hive, "ann", &["recall", "--all", "--json"]);
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(all["branches"][1]["threads"][0]["summary"], "Chapter 1 is done");
    let none = does(&hive, "ann", &["recall", "--all", "--grep", "whale"]);
    assert_eq!(none.stdout, "");
    refuses(&hive, "hf-branch recall BR-0002 --thread 9 --agent ann", 6, "BR-0002 has no thread 9; it has 2 threads");
}

#[test]
fn long_texts_are_stored_as_artifacts() {
    let hive = TestVault::new();
    does(&hive, "ann", &["create", "Long", "--type", "free"]);
    let long = |word: &str| format!("{word} {}the end of {word}", "blah ".repeat(600));
    let [note, summary, tail, message] = ["note", "summary", "tail", "message"].map(long);
    hive.pipe("branch", &["note", "-", "--agent", "ann"], note.as_str()).expect_exit(0);
    fs::write(hive.dir().join("tail.txt"), &tail).unwrap();
    hive.pipe("branch", &["suspend", "--summary", "-", "--tail", "tail.txt", "--agent", "ann"], summary.as_str())
        .expect_exit(0);
    hive.pipe("branch", &["tell", "ann", "-"], message.as_str()).expect_exit(0);
    assert_eq!(count(&hive, "ArtifactMaterialized"), 4);
    assert!(hive.events().iter().all(|event| event.to_string().len() < 5000), "no event holds a long text");
    let told = does(&hive, "ann", &["resume", "BR-0002", "--words", "5000"]).stdout;
    for text in [&note, &summary, &tail, &message] {
        assert!(told.contains(text.as_str()), "{}", &text[..10]);
    }
    let recalled = does(&hive, "ann", &["recall", "BR-0002", "--grep", "the end of note"]).stdout;
    assert!(recalled.contains(&note));
    let read = does(&hive, "ann", &["read"]);
    assert!(read.get("MESSAGE").ends_with("the end of message"));
    // What is left of a content that is damaged is told, and the damage is recorded.
    let artifact = hive.events().iter().find(|e| e["event_type"] == "NoteRecorded").unwrap()["payload"]["artifact_id"]
        .as_str()
        .unwrap()
        .to_owned();
    fs::write(hive.vault().join("Artifacts").join(&artifact).join("content"), "forged").unwrap();
    let told = does(&hive, "ann", &["recall", "BR-0002", "--thread", "1"]).stdout;
    assert!(!told.contains("forged") && told.contains("note blah") && !told.contains("the end of note"), "{told}");
    assert_eq!(count(&hive, "ArtifactCorrupted"), 1);
    keeps_the_rules(&hive);
}

#[test]
fn the_projection_has_the_columns_of_the_table() {
    let hive = written();
    does(&hive, "ben", &["note", "I am ben"]);
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-task claim T-0001 --actor agent:ann");
    let branches = hive.json("projections/branches.json");
    let of = |label: &str| branches.as_object().unwrap().values().find(|b| b["label"] == label).unwrap().clone();
    let names = |branch: &Value| branch.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        names(&of("The song of the stars")),
        "branch_type brief_state created_at id label last_activity last_event_id last_thread_id persona_id ref status suspended_at threads"
    );
    let (task, social) = (of("Form"), of("with ben"));
    assert_eq!(
        (&task["persona_id"], &task["branch_type"], &task["status"]),
        (&json!("ann"), &json!("task"), &json!("Active"))
    );
    assert_eq!(task["current_thread_id"], task["last_thread_id"]);
    assert!(task["task_id"].is_string() && task.get("suspended_at").is_none());
    assert_eq!((&social["partner_persona_id"], &social["threads"]), (&json!("ben"), &json!(0)));
    // The index says the same, and so does a rebuild from the events alone.
    hive.run("project", &["--check"]).expect_exit(0);
    hive.run("project", &["--rebuild"]).expect_exit(0);
    assert_eq!(hive.json("projections/branches.json"), branches);
    let pages = does(&hive, "ann", &["list", "--limit", "2"]);
    assert_eq!(pages.get("HAS_MORE"), "yes");
    let next = hive.run_next(&pages).expect_exit(0);
    assert_eq!((next.get("COUNT"), next.get("HAS_MORE")), ("2", "no"));
    keeps_the_rules(&hive);
}
