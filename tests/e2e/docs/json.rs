//! Replies as JSON: typed values under the names of the key table, and the shapes of the source documents
//! for the status, events, lineage and projections.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::steps::{ok, sh};
use crate::support::test_vault::{TestVault, reply_schema};

/// The reply of a line of shell, as JSON.
fn asked(hive: &TestVault, line: &str) -> Value {
    let reply = sh(hive, &format!("{line} --json"));
    assert_eq!(reply.stdout.lines().count(), 1, "{reply:#?}");
    serde_json::from_str(&reply.stdout).unwrap_or_else(|e| panic!("{e}: {reply:#?}"))
}

/// A requirement, its decision, three tasks in three states, a run and an artifact.
fn story() -> TestVault {
    let hive = TestVault::new();
    for line in [
        "hf-require propose Login",
        "hf-require analyze REQ-0001 one-form",
        "hf-decide approve DEC-0001",
        "hf-task propose Form --requirement REQ-0001",
        "hf-task propose Page",
        "hf-task propose Later --after T-0002",
        "hf-task claim T-0001 --actor agent:a",
        "hf-task start T-0001 --actor agent:a",
        "hf-artifact put Vault/Akashic/chain.json --for T-0001 --actor agent:a",
    ] {
        ok(&hive, line);
    }
    hive
}

#[test]
fn the_status_has_the_names_and_types_of_get_status() {
    let hive = story();
    let status = asked(&hive, "hf-status");
    let last = hive.events().pop().unwrap();
    assert_eq!(status["system_state"], "running");
    assert_eq!(
        status["tasks"],
        json!({"running": 1, "ready": 1, "proposed": 1, "succeeded": 0, "failed": 0, "aborted": 0})
    );
    assert_eq!(status["pending_approvals"], 0);
    assert_eq!(status["last_event_id"], last["event_id"]);
    assert_eq!(status["last_event_at"], last["timestamp"]);
    assert_eq!(status["uptime_seconds"], 0);
    assert_eq!(status["watchdog"], json!({"last_tick": null, "age_seconds": null}));
}

#[test]
fn events_are_the_lines_of_the_log() {
    let hive = story();
    let page = asked(&hive, "hf-log --limit 3");
    assert_eq!(page["events"], json!(hive.events()[..3]));
    assert_eq!((&page["has_more"], &page["next_cursor"]), (&json!(true), &hive.events()[2]["event_id"]));
    let all = asked(&hive, "hf-log");
    assert_eq!(all["events"], json!(hive.events()));
    assert_eq!((&all["has_more"], all.get("next_cursor")), (&json!(false), None));
}

#[test]
fn a_projection_is_the_same_map_as_its_file() {
    let hive = story();
    for projection in ["requirements", "decisions", "tasks", "runs", "artifacts"] {
        let reply = asked(&hive, &format!("hf-project {projection}"));
        assert_eq!(reply["type"], projection);
        assert_eq!(reply["items"], hive.json(&format!("projections/{projection}.json")), "{projection}");
    }
}

#[test]
fn a_list_contains_the_objects_of_the_projection() {
    let hive = story();
    let tasks = hive.json("projections/tasks.json");
    for row in asked(&hive, "hf-task list")["entities"].as_array().unwrap() {
        let mut expected = tasks[row["id"].as_str().unwrap()].clone();
        expected["subject"] = json!(format!("task:{}", row["id"].as_str().unwrap()));
        // A list adds how the task stands now.
        let mut row = row.clone();
        row.as_object_mut().unwrap().retain(|name, _| name != "lease_until" && name != "waits_for");
        assert_eq!(row, expected);
        assert!(row["retry_count"].is_u64() && row["created_at"].is_string(), "{row}");
    }
}

#[test]
fn the_lineage_of_an_event_names_both_sides() {
    let hive = story();
    let root = hive.events().iter().find(|event| event["event_type"] == "TaskProposed").unwrap().clone();
    let graph = asked(&hive, &format!("hf-lineage {}", root["event_id"].as_str().unwrap()));
    assert_eq!((&graph["event_id"], &graph["truncated"]), (&root["event_id"], &json!(false)));
    // Walked over the log itself.
    let (events, mut up, mut down) = (hive.events(), BTreeSet::new(), BTreeSet::new());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut todo: Vec<String> = root["parents"].as_array().unwrap().iter().map(text).collect();
    while let Some(id) = todo.pop() {
        let event = events.iter().find(|event| event["event_id"] == id.as_str()).unwrap();
        todo.extend(event["parents"].as_array().unwrap().iter().map(text));
        up.insert(id);
    }
    for event in &events {
        let parents: Vec<String> = event["parents"].as_array().unwrap().iter().map(text).collect();
        if parents.iter().any(|parent| root["event_id"] == parent.as_str() || down.contains(parent)) {
            down.insert(text(&event["event_id"]));
        }
    }
    let listed = |name: &str| graph[name].as_array().unwrap().iter().map(text).collect::<BTreeSet<_>>();
    assert_eq!((listed("ancestors"), listed("descendants")), (up, down));
}

#[test]
fn the_next_step_can_be_run_word_by_word() {
    let hive = story();
    let claimed = asked(&hive, "hf-task claim T-0002 --actor agent:b");
    assert_eq!(claimed["next"]["kind"], "action");
    let argv: Vec<&str> = claimed["next"]["argv"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(argv, ["hf-task", "start", "T-0002", "--actor", "agent:b"]);
    let started = hive.run("task", &argv[1..]).expect_exit(0);
    assert_eq!(started.get("STATUS"), "RECORDED");
    assert_eq!(asked(&hive, "hf-stop x")["next"], json!({"kind": "ask", "who": "operator"}));
}

#[test]
fn numbers_flags_times_and_rows_keep_their_types() {
    let hive = story();
    let claimed = asked(&hive, "hf-task claim T-0002 --actor agent:b");
    assert_eq!((&claimed["generation"], &claimed["lease_until"]), (&json!(1), &json!("2026-01-31T12:15:00Z")));
    let fired = hive.run("job", &["fire", "--", "sh", "-c", "exit 3"]).expect_exit(0);
    let waited = asked(&hive, &format!("hf-job wait {}", fired.get("TASK_ID")));
    let job = &waited["jobs"][0];
    assert_eq!((&job["status"], &job["exit_code"], &job["title"]), (&json!("FAIL"), &json!(3), &json!("sh -c exit 3")));
    assert!(job["seconds"].is_u64() && job["started_at"].is_string(), "{job}");
    let round = asked(&hive, "hf-state start Go");
    assert_eq!(round["round"], json!({"number": 0, "of": 4}));
    let stopped = asked(&hive, "hf-stop x");
    assert_eq!((&stopped["drained"], &stopped["left"]), (&json!(true), &json!([])));
}

#[test]
fn the_schema_tells_wrong_replies_from_right_ones() {
    let hive = story();
    let right = asked(&hive, "hf-task list");
    assert!(reply_schema().is_valid(&right));
    for (member, wrong) in [
        ("exit", json!("0")),
        ("status", json!("FINE")),
        ("next", json!("NONE")),
        ("next", json!({"kind": "action"})),
        ("has_more", json!("no")),
        ("count", json!("3")),
        ("entities", json!(["task:x T-0001 Ready"])),
        ("schema", json!(1)),
        ("COUNT", json!(3)),
    ] {
        let mut reply = right.clone();
        reply[member] = wrong.clone();
        assert!(!reply_schema().is_valid(&reply), "{member}: {wrong}");
    }
}

#[test]
fn only_an_option_selects_json_or_a_document() {
    let hive = TestVault::new();
    // Each of these words is used where it is neither an option nor a subcommand.
    let plain = |line: &str| {
        let reply = sh(&hive, line);
        assert!(reply.stdout.starts_with("EXIT:"), "{line}: {reply:#?}");
        reply
    };
    assert_eq!(plain("hf-job check log").get("STATUS"), "NOT_FOUND");
    assert_eq!(plain("hf-branch note resume").get("STATUS"), "RECORDED");
    assert_eq!(plain("hf-checkpoint -- --json").get("STATUS"), "RECORDED");
    for command in ["log x", "echo --json", "true resume recall get prompt --anchor --jsonl --map --dot"] {
        let fired = plain(&format!("hf-job fire -- {command}"));
        assert_eq!(fired.get("STATUS"), "FIRED", "{command}");
        sh(&hive, &format!("hf-job wait {}", fired.get("TASK_ID")));
    }
    assert_eq!(plain("hf-artifact show get").get("STATUS"), "NOT_FOUND");
    assert_eq!(plain("hf-review fails prompt").get("STATUS"), "NOT_FOUND");
    assert_eq!(plain("hf-task propose -- --json").get("STATUS"), "RECORDED");
    // And in a line that is wrong, too.
    assert_eq!(plain("hf-checkpoint a b -- --json").get("STATUS"), "USAGE");
    assert_eq!(plain("hf-job nonsense log").get("STATUS"), "USAGE");
    let json = sh(&hive, "hf-checkpoint --json a b");
    assert_eq!(serde_json::from_str::<Value>(&json.stdout).unwrap()["status"], "USAGE");
    let many = format!("hf-task propose {} --json", "word ".repeat(40).trim());
    assert_eq!(serde_json::from_str::<Value>(&sh(&hive, &many).stdout).unwrap()["status"], "USAGE");
    let document = sh(&hive, "hf-job log --nonsense T-0001");
    assert_eq!((document.stdout.as_str(), document.stderr.starts_with("EXIT:2\nSTATUS:USAGE\n")), ("", true));
}
