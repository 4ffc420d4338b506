//! hf-project: the state as numbers, lists, maps, files and snapshots, and whether they are true.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;

use hiveforge::base::{Digest, text};
use hiveforge::event::{Event, EventType, Kind};
use serde_json::{Value, json};

use crate::support::test_vault::{Reply, TestVault, forged, mask, write_private};

/// The files of the projections.
const FILES: [&str; 8] = ["requirements", "decisions", "tasks", "runs", "artifacts", "constraints", "agents", "meta"];

/// A requirement, two decisions on it, of which one opens the gate, a task that was tried twice, an
/// artifact, a constraint with its decision, and an agent. 26 events, over 18 minutes.
fn story() -> TestVault {
    let mut hive = TestVault::new();
    let mut minute = 0;
    let mut step = |kind: &str, subject: &str, payload: Value| {
        minute += 1;
        hive.at(&format!("2026-01-31T12:{minute:02}:00Z")).append(kind, subject, payload)
    };
    step("RequirementProposed", "requirement:login", json!({"title": "Login"}));
    step("RequirementAnalyzed", "requirement:login", json!({}));
    let asks = json!({"kind": "requirement_approval", "target": "requirement:login", "summary": "Build it?", "options": ["all", "some"]});
    step("DecisionRequested", "decision:d", asks);
    step("DecisionApproved", "decision:d", json!({"chosen_option": "all", "rationale": "wanted"}));
    // Only the toolkit's own question opens a gate.
    step("DecisionApproved", "DEC-0001", json!({}));
    step("TaskProposed", "task:api", json!({"title": "API", "requirement_id": "login"}));
    step("TaskAssigned", "task:api", json!({"holder": "user:jo", "lease_seconds": 900}));
    step("ClaimRenewed", "task:api", json!({}));
    step("RunStarted", "run:one", json!({"task_id": "api"}));
    step("Heartbeat", "run:one", json!({}));
    // The task failed with it, and is with its holder again.
    step("RunCrashed", "run:one", json!({"reason": "no power"}));
    step("RunStarted", "run:two", json!({"task_id": "api"}));
    step("ArtifactDeclared", "artifact:a", json!({"kind": "code", "task_id": "api"}));
    step(
        "ArtifactMaterialized",
        "artifact:a",
        json!({"sha256": "abc", "size_bytes": 4096, "path": "Artifacts/a/content.py"}),
    );
    step("ArtifactValidated", "artifact:a", json!({}));
    let asks = json!({"kind": "constraint_change", "target": "constraint:c", "summary": "Apply the constraint: no GPL",
        "change": {"do": "apply", "text": "no GPL"}});
    step("DecisionRequested", "decision:e", asks);
    step("DecisionApproved", "decision:e", json!({}));
    step("AgentStarted", "agent:main", json!({}));
    hive
}

/// A whole map, with its document checked to be alone on standard output.
#[track_caller]
fn map(hive: &TestVault, projection: &str) -> Value {
    let reply = hive.run("project", &[projection, "--map"]);
    assert!(reply.code == Some(0) && reply.stderr.starts_with("EXIT:0\nSTATUS:OK\n"), "{reply:#?}");
    serde_json::from_str(&reply.stdout).expect("a JSON map")
}

/// The id of the nth event of the log.
fn id(hive: &TestVault, n: usize) -> Value {
    hive.events()[n]["event_id"].clone()
}

#[test]
fn without_a_type_the_state_is_shown_as_counts() {
    let hive = story();
    let reply = hive.run("project", &[]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:10 entities from 26 events\n\
         PROJECTION:requirements 1 Approved=1\nPROJECTION:decisions 3 Approved=3\nPROJECTION:tasks 1 Running=1\n\
         PROJECTION:runs 2 Running=1 Crashed=1\nPROJECTION:artifacts 1 Validated=1\nPROJECTION:constraints 1 Active=1\n\
         PROJECTION:agents 1 Active=1\nPROJECTION:deepworks 0\nPROJECTION:missions 0\nPROJECTION:debates 0\n\
         PROJECTION:reviews 0\nPROJECTION:documents 0\nPROJECTION:projects 0\nPROJECTION:sessions 0\n\
         PROJECTION:branches 0\nPROJECTION:threads 0\nPROJECTION:messages 0\nPROJECTION:escalations 0\n\
         PROJECTION:knowledge 0\nEVENTS:26\nHEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\n"
    );
    assert_eq!(reply.get("HEAD_ID"), id(&hive, 25));
    let young = TestVault::new().run("project", &[]).expect_exit(0);
    assert_eq!(young.get("SUM"), "0 entities from 1 event");
    assert_eq!(young.all("PROJECTION")[0], "requirements 0");
}

#[test]
fn the_maps_match_the_appendix() {
    let hive = story();
    let reference = |name: &str, subject: &str| {
        let list = hive.run("project", &[name]).expect_exit(0);
        let line = list.all("ENTITY").into_iter().find_map(|line| line.strip_prefix(&format!("{subject} ")));
        line.unwrap().split(' ').next().unwrap().to_owned()
    };
    // What an approval is bound to: a digest of everything that was said so far.
    let said = |before: &str, payload: Value| Digest::of_bytes(format!("{before}{payload}").as_bytes()).to_string();
    let wish = said(&said("", json!({"title": "Login"})), json!({}));
    let at = |minute| format!("2026-01-31T12:{minute:02}:00Z");
    assert_eq!(
        map(&hive, "requirements"),
        json!({"login": {"id": "login", "title": "Login", "status": "Approved", "created_at": at(1),
            "last_event_id": id(&hive, 7), "ref": reference("requirements", "requirement:login"), "content": wish,
            "tasks_open": 1, "tasks_succeeded": 0, "tasks_unmet": 0, "returns": 0}})
    );
    let decisions = map(&hive, "decisions");
    assert_eq!(
        decisions["d"],
        json!({"id": "d", "kind": "requirement_approval", "target": "requirement:login", "summary": "Build it?",
            "status": "Approved", "requested_at": at(3), "last_event_id": id(&hive, 5), "created_at": at(3),
            "options": ["all", "some"], "chosen_option": "all", "rationale": "wanted", "decided_at": at(4),
            "decided_by": "user:jo", "ref": reference("decisions", "decision:d"), "target_hash": wish})
    );
    let asked = hive.events()[3]["subject"].as_str().unwrap().to_owned();
    let asked_id = &asked["decision:".len()..];
    assert_eq!(
        decisions[asked_id],
        json!({"id": asked_id, "kind": "requirement_approval", "target": "requirement:login",
            "summary": "Build REQ-0001, Login?", "status": "Approved", "requested_at": at(2), "created_at": at(2),
            "decided_at": at(5), "decided_by": "user:jo", "last_event_id": id(&hive, 6), "ref": reference("decisions", &asked), "target_hash": wish})
    );
    let change = json!({"do": "apply", "text": "no GPL"});
    assert_eq!(
        (&decisions["e"]["change"], &decisions["e"]["target_hash"], &decisions["e"]["status"]),
        (&change, &json!(said("", change.clone())), &json!("Approved"))
    );
    assert_eq!(
        map(&hive, "tasks"),
        json!({"api": {"id": "api", "requirement_id": "login", "title": "API", "status": "Running", "retry_count": 1,
            "last_run_id": "two", "created_at": at(6), "last_event_id": id(&hive, 18), "ref": reference("tasks", "task:api"),
            "content": said("", json!({"requirement_id": "login", "title": "API"})), "holder": "user:jo",
            "lease_seconds": 900, "claimed_at": at(11), "generation": 2,
            "error_class": "transient", "failure": "no power"}})
    );
    let runs = map(&hive, "runs");
    assert_eq!(
        runs["one"],
        json!({"id": "one", "task_id": "api", "status": "Crashed", "started_at": at(9), "last_heartbeat_at": at(10),
            "finished_at": at(11), "reason": "no power", "created_at": at(9), "last_event_id": id(&hive, 14),
            "ref": reference("runs", "run:one")})
    );
    assert_eq!((&runs["two"]["status"], &runs["two"]["finished_at"]), (&json!("Running"), &Value::Null));
    assert_eq!(
        map(&hive, "artifacts"),
        json!({"a": {"id": "a", "kind": "code", "task_id": "api", "status": "Validated", "sha256": "abc", "size_bytes": 4096,
            "path": "Artifacts/a/content.py", "created_at": at(13), "last_event_id": id(&hive, 21),
            "ref": reference("artifacts", "artifact:a")}})
    );
    assert_eq!(
        map(&hive, "constraints"),
        json!({"c": {"id": "c", "text": "no GPL", "status": "Active", "applied_at": at(17), "created_at": at(17),
            "last_event_id": id(&hive, 24), "ref": reference("constraints", "constraint:c")}})
    );
    // The files hold the same bytes as the documents.
    for name in FILES.iter().filter(|name| **name != "meta") {
        let document = hive.run("project", &[name, "--map"]).stdout;
        assert_eq!(fs::read_to_string(hive.akashic(&format!("projections/{name}.json"))).unwrap(), document, "{name}");
    }
}

#[test]
fn a_list_has_one_line_per_entity() {
    let hive = story();
    let reply = hive.run("project", &["runs"]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:2 runs\nCOUNT:2\nHAS_MORE:no\nHEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\n\
         ENTITY:run:one RUN-0001@<tag> Crashed\nENTITY:run:two RUN-0002@<tag> Running\n"
    );
    let running = hive.run("project", &["runs", "--status", "Running"]).expect_exit(0);
    assert_eq!(mask(running.get("ENTITY")), "run:two RUN-0002@<tag> Running");
    assert_eq!(hive.run("project", &["runs", "--status", "Finished"]).expect_exit(0).get("COUNT"), "0");
    assert_eq!(mask(hive.run("project", &["agents"]).expect_exit(0).get("ENTITY")), "agent:main - Active");
    for args in [
        &["planets"][..],
        &["runs", "--status", "Flying"],
        &["runs", "--status", "-"],
        &["--status", "Running"],
        &["--map"],
        &["runs", "--rebuild"],
        &["runs", "--check"],
        &["runs", "--map", "--status", "Running"],
    ] {
        assert_eq!(hive.refuses("project", args, 2).get("STATUS"), "USAGE", "{args:?}");
    }
}

/// Requirements r000 … with keys, in one batch.
fn requirements(hive: &TestVault, numbers: std::ops::Range<usize>) {
    let line = |n| {
        json!({"event_type": "RequirementProposed", "subject": format!("requirement:r{n:03}"),
            "payload": {"title": format!("wish {n}")}, "idempotency_key": format!("key/{n:03}")})
    };
    hive.batch(&numbers.map(line).collect::<Vec<Value>>());
}

#[test]
fn a_long_list_is_paged_by_following_next() {
    let hive = TestVault::new();
    // The first hundred come from the index, the others from the log after it.
    requirements(&hive, 0..100);
    requirements(&hive, 100..130);
    let mut reply = hive.run("project", &["requirements", "--limit", "40"]).expect_exit(0);
    let mut seen: Vec<String> = Vec::new();
    loop {
        seen.extend(reply.all("ENTITY").iter().map(|line| line.split(' ').next().unwrap().to_owned()));
        if reply.get("HAS_MORE") == "no" {
            break;
        }
        assert_eq!(
            (reply.get("COUNT"), format!("requirement:{}", reply.get("NEXT_CURSOR"))),
            ("40", seen[seen.len() - 1].clone())
        );
        reply = hive.run_next(&reply).expect_exit(0);
    }
    assert_eq!(seen, (0..130).map(|n| format!("requirement:r{n:03}")).collect::<Vec<_>>());
    assert_eq!((reply.get("NEXT"), reply.get("COUNT")), ("NONE", "10"));
    assert_eq!(reply.all("NEXT_CURSOR"), [""; 0]);
}

#[test]
fn a_list_by_status_is_paged_by_its_cursor() {
    let hive = TestVault::new();
    requirements(&hive, 0..30);
    for n in [3, 7, 20, 21, 29] {
        hive.append("RequirementAnalyzed", &format!("requirement:r{n:03}"), json!({}));
    }
    let mut seen = Vec::new();
    let mut reply = hive.run("project", &["requirements", "--status", "Analyzed", "--limit", "2"]).expect_exit(0);
    loop {
        seen.extend(reply.all("ENTITY").iter().map(|line| line[12..16].to_owned()));
        if reply.get("HAS_MORE") == "no" {
            break;
        }
        reply = hive.run_next(&reply).expect_exit(0);
    }
    assert_eq!(hive.refuses("project", &["requirements", "--cursor", "zz"], 2).get("STATUS"), "INVALID_CURSOR");
    assert_eq!(seen, ["r003", "r007", "r020", "r021", "r029"]);
}

#[test]
fn the_keys_are_a_projection_too() {
    let hive = TestVault::new();
    requirements(&hive, 0..70);
    requirements(&hive, 70..75);
    let reply = hive.run("project", &["idempotency", "--limit", "2"]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:2 idempotency keys\nCOUNT:2\nHAS_MORE:yes\nNEXT_CURSOR:key/001\nHEAD_ID:<ulid>\n\
         HEAD_HASH:sha256:<digest>\nENTITY:<ulid> key/000\nENTITY:<ulid> key/001\n"
    );
    let rest = hive.run("project", &["idempotency", "--limit", "500", "--cursor", "key/001"]).expect_exit(0);
    assert_eq!((rest.get("COUNT"), rest.get("HAS_MORE")), ("73", "no"));
    let map = map(&hive, "idempotency");
    assert_eq!(map.as_object().unwrap().len(), 75);
    for event in &hive.events()[1..] {
        assert_eq!(map[event["idempotency_key"].as_str().unwrap()], event["event_id"]);
    }
}

#[test]
fn page_limits_and_cursors_are_validated() {
    let hive = story();
    for limit in ["0", "501"] {
        let reply = hive.refuses("project", &["tasks", "--limit", limit], 2);
        assert_eq!(reply.get("STATUS"), "LIMIT_EXCEEDED", "{limit}");
    }
    for cursor in ["../x", "", "-", "a b"] {
        let reply = hive.refuses("project", &["tasks", "--cursor", cursor], 2);
        assert_eq!(reply.get("STATUS"), "INVALID_CURSOR", "{cursor}");
    }
}

/// Which projection files have been replaced since, by their inode.
fn inodes(hive: &TestVault) -> Vec<u64> {
    FILES
        .map(|name| fs::metadata(hive.akashic(&format!("projections/{name}.json"))).map_or(0, |meta| meta.ino()))
        .to_vec()
}

#[test]
fn an_append_rewrites_only_the_files_it_affects() {
    let hive = story();
    hive.run("project", &[]).expect_exit(0);
    // Held open, so that an inode is not given out a second time.
    let _held: Vec<fs::File> =
        FILES.iter().map(|name| fs::File::open(hive.akashic(&format!("projections/{name}.json"))).unwrap()).collect();
    let before = inodes(&hive);
    hive.append("Heartbeat", "run:two", json!({}));
    assert_eq!(inodes(&hive), before, "a heartbeat rewrites nothing");
    hive.append("RunFinished", "run:two", json!({}));
    let changed: Vec<&str> = FILES
        .into_iter()
        .zip(before.iter().zip(inodes(&hive)))
        .filter(|(_, (a, b))| **a != *b)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(changed, ["runs", "meta"]);
    assert_eq!(hive.json("projections/runs.json")["two"]["status"], "Finished");
    let meta = hive.json("projections/meta.json");
    assert_eq!((&meta["runs"]["through"], &meta["tasks"]["through"]), (&id(&hive, 27), &id(&hive, 25)));
    hive.run("project", &["--check"]).expect_exit(0);
}

#[test]
fn an_event_about_two_entities_rewrites_both_files() {
    let hive = TestVault::new();
    hive.append("TaskProposed", "task:t", json!({"title": "x"}));
    hive.append("TaskReady", "task:t", json!({}));
    hive.append("TaskAssigned", "task:t", json!({}));
    hive.append("RunStarted", "run:x", json!({"task_id": "t"}));
    assert_eq!(hive.json("projections/tasks.json")["t"]["status"], "Running");
    assert_eq!(hive.json("projections/runs.json")["x"]["status"], "Running");
    hive.append("TaskAborted", "task:t", json!({}));
    hive.append("TaskArchived", "task:t", json!({}));
    assert_eq!(hive.json("projections/tasks.json"), json!({}));
    hive.run("project", &[]).expect_exit(0);
    assert_eq!(hive.json("projections/runs.json"), json!({}));
}

#[test]
fn refreshing_a_large_projection_is_left_to_the_next_hf_project() {
    for (count, length) in [(257, 4), (90, 1000)] {
        let hive = TestVault::new();
        requirements(&hive, 0..1);
        let line = |n| json!({"event_type": "RequirementProposed", "subject": format!("requirement:x{n}"), "payload": {"title": "x".repeat(length)}});
        hive.batch(&(1..count).map(line).collect::<Vec<Value>>());
        let stale = hive.json("projections/requirements.json");
        assert_eq!(stale.as_object().unwrap().len(), 1, "{count}");
        assert_eq!(hive.json("projections/meta.json")["requirements"]["through"], id(&hive, 1));
        // Old, but true for the event that it names.
        assert_eq!(hive.run("project", &["--check"]).expect_exit(0).get("STATUS"), "STALE");
        assert_eq!(map(&hive, "requirements").as_object().unwrap().len(), count);
        let reply = hive.run("project", &[]).expect_exit(0);
        assert_eq!(reply.all("STALE"), [""; 0]);
        assert_eq!(hive.json("projections/requirements.json").as_object().unwrap().len(), count);
        assert_eq!(hive.json("projections/meta.json")["requirements"]["through"], id(&hive, count));
    }
}

#[test]
fn files_that_cannot_be_refreshed_are_reported_as_stale() {
    let hive = story();
    let expected = hive.run("project", &[]).expect_exit(0).stdout;
    fs::remove_dir_all(hive.akashic("projections")).unwrap();
    write_private(&hive.akashic("projections"), b"not a folder");
    let reply = hive.run("project", &[]);
    assert_eq!(reply.code, Some(0), "{reply:#?}");
    let stale = "STALE:requirements\nSTALE:decisions\nSTALE:tasks\nSTALE:runs\nSTALE:artifacts\nSTALE:constraints\nSTALE:agents\n";
    assert_eq!(reply.stdout, expected + stale);
    hive.propose("appending goes on");
}

#[test]
fn an_archived_task_leaves_with_its_runs_and_is_still_found() {
    let hive = story();
    hive.append("RunFinished", "run:two", json!({}));
    hive.append("TaskSucceeded", "task:api", json!({}));
    hive.append("TaskArchived", "T-0001", json!({}));
    assert_eq!((map(&hive, "tasks"), map(&hive, "runs")), (json!({}), json!({})));
    assert_eq!(hive.run("project", &["tasks"]).expect_exit(0).get("COUNT"), "0");
    assert_eq!(hive.run("project", &["tasks", "--status", "Archived"]).expect_exit(0).get("COUNT"), "0");
    for (reference, count) in [("T-0001", "9"), ("RUN-0001", "3"), ("api", "9")] {
        assert_eq!(
            hive.run("log", &["--subject", reference]).expect_exit(0).all("EVENT").len().to_string(),
            count,
            "{reference}"
        );
        hive.run("lineage", &[reference]).expect_exit(0);
    }
    // Its number is not given out again.
    let next = hive.append("TaskProposed", "task:next", json!({"title": "next"}));
    assert!(next.get("REF").starts_with("T-0002@"));
    // The same once the index holds it.
    hive.run("project", &["--rebuild"]).expect_exit(0);
    assert_eq!(map(&hive, "tasks").as_object().unwrap().keys().collect::<Vec<_>>(), ["next"]);
    assert_eq!(hive.run("lineage", &["T-0001", "--down"]).expect_exit(0).get("ROOT"), id(&hive, 8));
    hive.run("project", &["--check"]).expect_exit(0);
}

#[test]
fn archived_entities_are_not_counted_in_projections() {
    let hive = story();
    hive.append("RunFinished", "run:two", json!({}));
    hive.append("TaskSucceeded", "task:api", json!({}));
    hive.append("TaskArchived", "task:api", json!({}));
    let reply = hive.run("project", &[]).expect_exit(0);
    assert_eq!(reply.all("PROJECTION")[2..4], ["tasks 0", "runs 0"]);
}

#[test]
fn a_snapshot_is_the_whole_state_with_its_head() {
    let hive = story();
    let reply = hive.run("project", &["--snapshot"]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:SNAPSHOT\nNEXT:NONE\nSUM:snapshot of the state at the current head\n\
         PATH:snapshots/20260131T121800Z.json\nEVENTS:26\nHEAD_ID:<ulid>\nHEAD_HASH:sha256:<digest>\n"
    );
    let snapshot = hive.json("snapshots/20260131T121800Z.json");
    assert_eq!(hive.json("snapshots/latest.json"), snapshot);
    assert_eq!(snapshot["head"], format!("{}:{}", reply.get("HEAD_ID"), reply.get("HEAD_HASH")));
    assert_eq!((&snapshot["events"], &snapshot["schema"]), (&json!(26), &json!(1)));
    for name in FILES.iter().filter(|name| **name != "meta") {
        assert_eq!(snapshot["projections"][name], map(&hive, name), "{name}");
    }
    let named = hive.run("project", &["--snapshot", "before-release"]).expect_exit(0);
    assert_eq!(named.get("PATH"), "snapshots/before-release.json");
    hive.propose("more");
    // It stays true for its head.
    hive.run("project", &["--check"]).expect_exit(0);
    for name in ["latest", "../x", "a/b", "-x", ".hidden", "a.b", &"x".repeat(65)] {
        let argument = format!("--snapshot={name}");
        assert_eq!(hive.refuses("project", &[&argument], 2).get("STATUS"), "USAGE", "{name}");
    }
}

/// Changes a JSON file of `Akashic/`.
fn edit(hive: &TestVault, name: &str, change: impl FnOnce(&mut Value)) {
    let mut value = hive.json(name);
    change(&mut value);
    write_private(&hive.akashic(name), value.to_string().as_bytes());
}

/// The differences that a check names; hf-verify finds the same.
#[track_caller]
fn differences(hive: &TestVault) -> Vec<String> {
    let before = hive.contents();
    let reply = hive.run("project", &["--check"]).expect_exit(1);
    let named: Vec<String> = reply.all("DIFFERENCE").into_iter().map(str::to_owned).collect();
    // A rebuild leaves a snapshot as it is.
    let mends = if named.iter().all(|d| d.starts_with("snapshots/")) { "--snapshot" } else { "--rebuild" };
    assert_eq!((reply.get("STATUS"), reply.get("NEXT")), ("FAILED", format!("ACTION hf-project {mends}").as_str()));
    assert_eq!(reply.get("SUM"), text::count_noun(named.len(), "difference"));
    let verdict = if named.iter().any(|d| d.ends_with("cannot be read")) { "BROKEN" } else { "DIFFERENT" };
    assert_eq!(reply.get("PROJECTIONS"), verdict);
    let verify = hive.run("verify", &["--projections"]).expect_exit(1);
    assert_eq!((verify.get("CHAIN"), verify.get("PROJECTIONS")), ("OK", verdict));
    assert_eq!(verify.all("FINDING"), named);
    assert!(hive.contents() == before, "a check changes nothing");
    named
}

#[test]
fn a_check_names_every_edited_entry() {
    let hive = story();
    hive.run("project", &["--check"]).expect_exit(0);
    edit(&hive, "projections/tasks.json", |tasks| {
        tasks["api"]["status"] = json!("Succeeded");
        tasks["mine"] = json!({"id": "mine"});
    });
    edit(&hive, "projections/runs.json", |runs| drop(runs.as_object_mut().unwrap().remove("one")));
    let expected = [
        "projections/tasks.json: api differs",
        "projections/tasks.json: mine is not in the events",
        "projections/runs.json: one is missing",
    ];
    assert_eq!(differences(&hive), expected);
    write_private(&hive.akashic("projections/tasks.json"), b"{\"api\":");
    assert_eq!(differences(&hive), ["projections/tasks.json cannot be read", expected[2]]);
    edit(&hive, "projections/meta.json", |meta| meta["agents"]["through"] = json!("01ZZZZZZZZZZZZZZZZZZZZZZZZ"));
    assert_eq!(differences(&hive)[2], "projections/agents.json is of an event that is not in the log");
    let check = hive.run("project", &["--check"]);
    assert_eq!(hive.run_next(&check).expect_exit(0).get("STATUS"), "REBUILT");
    assert_eq!(hive.run("project", &["--check"]).expect_exit(0).get("STATUS"), "CONSISTENT");
}

#[test]
fn a_writer_killed_between_a_file_and_its_age_leaves_no_difference() {
    for first in [true, false] {
        let hive = TestVault::new();
        hive.append("TaskProposed", "task:a", json!({"title": "x"}));
        let meta = fs::read(hive.akashic("projections/meta.json")).unwrap();
        hive.append("TaskReady", "task:a", json!({}));
        // The file is written, its age is not: as it was before, or none at all.
        write_private(&hive.akashic("projections/meta.json"), if first { b"{}\n" } else { &meta });
        hive.run("project", &["--check"]).expect_exit(0);
        hive.propose("something else happens");
        hive.run("project", &["--check"]).expect_exit(0);
        // An edit is still seen.
        edit(&hive, "projections/tasks.json", |tasks| tasks["a"]["status"] = json!("Succeeded"));
        assert_eq!(differences(&hive).len(), 1);
    }
}

#[test]
fn a_check_names_what_is_wrong_with_the_newest_snapshot() {
    let hive = story();
    hive.run("project", &["--snapshot", "s"]).expect_exit(0);
    let good = fs::read(hive.akashic("snapshots/latest.json")).unwrap();
    edit(&hive, "snapshots/latest.json", |snapshot| snapshot["projections"]["artifacts"]["a"]["sha256"] = json!("abd"));
    assert_eq!(differences(&hive), ["snapshots/latest.json artifacts: a differs"]);
    edit(&hive, "snapshots/latest.json", |snapshot| snapshot["projections"] = json!({}));
    assert_eq!(differences(&hive).len(), 10);
    for bytes in [&b"garbage"[..], b"{}", b""] {
        write_private(&hive.akashic("snapshots/latest.json"), bytes);
        assert_eq!(differences(&hive), ["snapshots/latest.json is of an event that is not in the log"]);
    }
    write_private(&hive.akashic("snapshots/latest.json"), &good);
    hive.run("project", &["--check"]).expect_exit(0);
}

#[test]
fn a_snapshot_whose_head_hash_differs_belongs_to_another_log() {
    let hive = story();
    hive.run("project", &["--snapshot", "s"]).expect_exit(0);
    let head = hive.json("snapshots/latest.json")["head"].as_str().unwrap().to_owned();
    let other = format!("{}:sha256:{}", &head[..26], "0".repeat(64));
    edit(&hive, "snapshots/latest.json", |snapshot| snapshot["head"] = json!(other));
    assert_eq!(differences(&hive), ["snapshots/latest.json is of an event that is not in the log"]);
}

#[test]
fn projection_files_are_always_readable_while_four_processes_append() {
    let hive = TestVault::new();
    hive.append("TaskProposed", "task:t", json!({"title": "x"}));
    let lines = |w: usize| -> String {
        (0..25)
            .map(|n| format!("hf TaskProposed --subject task:w{w}n{n} --payload '{{\"title\":\"x\"}}' && "))
            .collect()
    };
    let mut writers: Vec<_> = (0..4)
        .map(|w| {
            let script = format!("hf() {{ \"$HF\" \"$@\"; }}; {}true", lines(w));
            let mut shell = std::process::Command::new("sh");
            shell
                .arg("-c")
                .arg(script)
                .current_dir(hive.dir())
                .env("USER", "jo")
                .env("HF", crate::support::test_vault::binary("append"));
            shell.stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    let (mut reads, mut last) = (0, 0);
    while writers.iter_mut().any(|writer| writer.try_wait().unwrap().is_none()) {
        for _ in 0..20 {
            let tasks = hive.json("projections/tasks.json").as_object().unwrap().len();
            assert!(tasks >= last, "{tasks} after {last}");
            hive.json("projections/meta.json");
            (last, reads) = (tasks, reads + 1);
        }
        hive.run("project", &["--check"]).expect_exit(0);
    }
    for writer in &mut writers {
        assert!(writer.wait().unwrap().success());
    }
    assert!(reads > 0);
    assert_eq!(hive.json("projections/tasks.json").as_object().unwrap().len(), 101);
    hive.run("verify", &["--projections", "--policy"]).expect_exit(0);
}

#[test]
fn an_event_of_an_unknown_type_survives_a_rebuild_and_stays_out_of_projections() {
    let hive = TestVault::new();
    let mut events = hive.recorded();
    events.push(forged(1, Kind::TaskProposed, "task:t", json!({"title": "x"})));
    let strange = forged(2, Kind::TaskAborted, "task:t", json!({"to": "mars", "n": 1.5, "é": ["\u{2028}", null]}));
    events.push(Event {
        event_type: EventType::Unknown("TaskTeleported".to_owned()),
        key: Some("beam".to_owned()),
        ..strange.clone()
    });
    events.push(Event {
        event_type: EventType::Unknown("X".to_owned()),
        subject: "planet:mars".to_owned(),
        payload: strange.payload,
        ..forged(3, Kind::TaskReady, "task:t", json!({}))
    });
    hive.forge(&mut events);
    let before = fs::read(hive.segment()).unwrap();
    let reply: Reply = hive.run("project", &["--rebuild"]).expect_exit(0);
    assert_eq!(reply.get("EVENTS"), "4");
    assert!(fs::read(hive.segment()).unwrap() == before);
    assert_eq!(map(&hive, "tasks")["t"]["status"], "Proposed");
    assert_eq!(map(&hive, "idempotency"), json!({"beam": events[2].id.to_string()}));
    hive.append("TaskReady", "task:t", json!({}));
    assert!(fs::read(hive.segment()).unwrap().starts_with(&before));
    hive.run("verify", &["--projections"]).expect_exit(0);
}
