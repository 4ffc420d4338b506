//! hf-deepwork: little will be shown for a while, and that was said beforehand.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::steps::{count, kinds_since, ok, refuses, running, sh};
use crate::support::test_vault::TestVault;
use crate::support::watchdog_fixture::{all_is_well, at, beat, configured, file, moment, tick};

#[test]
fn strict_deep_work_is_declared_extended_and_completed() {
    let mut hive = configured("");
    tick(&mut hive, 0);
    ok(&hive, "hf-checkpoint Here");
    let head = "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:DW-0001 is Open: Rendering\nEVENT_ID:<ulid>\nSUBJECT:deepwork:<ulid>\n\
                REF:DW-0001@<tag>\nSTATE:Open\n";
    let started = ok(&hive, "hf-deepwork start --strict 45 Rendering");
    assert_eq!(
        started.masked(&hive),
        format!("{head}HEARTBEAT_ID:20260131120000\nMODE:strict\nUNTIL:2026-01-31T12:45:00Z\n")
    );
    let declared = file(&hive, "deep_work/20260131120000.txt");
    assert_eq!(fs::read_to_string(&declared).unwrap(), "type: strict\nactivity: Rendering\nminutes: 45\n");
    let status = at(&mut hive, 1260, "hf-deepwork status").expect_exit(0);
    assert_eq!(
        status.stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:DW-0001 is Open: Rendering\nMODE:strict\nDEEP_WORK:DW-0001 Open strict 45 21 Rendering\n"
    );
    let extended = ok(&hive, "hf-deepwork extend 15");
    assert_eq!(extended.masked(&hive), format!("{head}MODE:strict\nUNTIL:2026-01-31T13:00:00Z\n"));
    assert_eq!(fs::read_to_string(&declared).unwrap(), "type: strict\nactivity: Rendering\nminutes: 60\n");
    let done = at(&mut hive, 3000, "hf-deepwork complete").expect_exit(0);
    assert_eq!(
        done.masked(&hive),
        head.replace("Open", "Completed").replace("NEXT:NONE", "NEXT:ACTION hf-activity --kind introspection")
            + "MODE:strict\nUNTIL:2026-01-31T13:00:00Z\n"
    );
    assert!(!declared.exists() && file(&hive, "deep_work/20260131120000.completed.txt").exists());
    assert_eq!(ok(&hive, "hf-deepwork status").get("SUM"), "no deep work in progress");
    all_is_well(&hive);
}

#[test]
fn the_list_compares_declared_and_actual_time_for_each_agent() {
    let mut hive = configured("");
    ok(&hive, "hf-deepwork start --strict 45 One");
    at(&mut hive, 600, "hf-deepwork start --flexible Two").expect_exit(0);
    at(&mut hive, 1320, "hf-activity --kind creating").expect_exit(0);
    ok(&hive, "hf-deepwork start --flexible Other --agent b");
    let list = at(&mut hive, 9000, "hf-deepwork list").expect_exit(0);
    assert_eq!(
        list.stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:2 periods of deep work\nCOUNT:2\nHAS_MORE:no\n\
         DEEP_WORK:DW-0001 Completed strict 45 10 One\nDEEP_WORK:DW-0002 Completed flexible - 12 Two\n"
    );
    let other = ok(&hive, "hf-deepwork list --agent b");
    assert_eq!(other.get("DEEP_WORK"), "DW-0003 Open flexible - 128 Other");
    assert_eq!(
        ok(&hive, "hf-project").all("PROJECTION").into_iter().find(|line| line.starts_with("deepworks ")),
        Some("deepworks 3 Open=1 Completed=2")
    );
    all_is_well(&hive);
}

#[test]
fn deepwork_refuses_invalid_declarations() {
    let hive = TestVault::new();
    for (line, why) in [
        ("hf-deepwork start Long", "required"),
        ("hf-deepwork start --flexible --strict 5 Long", "cannot be used with"),
        ("hf-deepwork start --strict 0 Long", "0"),
        (
            "hf-deepwork start --strict 241 Long",
            "241 minutes is too long; strict deep work can last at most 240 minutes",
        ),
        ("hf-deepwork start --strict 5", "ACTIVITY"),
        ("hf-deepwork start --flexible Long --agent a/b", "an agent name"),
    ] {
        refuses(&hive, line, 2, why);
    }
    hive.refuses("deepwork", &["start", "--flexible", ""], 2);
    hive.refuses("deepwork", &["start", "--flexible", "a\nb"], 2);
    for line in ["hf-deepwork complete", "hf-deepwork extend 5"] {
        refuses(&hive, line, 6, "agent:main has no open deep work");
    }
    assert_eq!(sh(&TestVault::empty(), "hf-deepwork status").expect_exit(7).get("STATUS"), "NO_VAULT");
}

#[test]
fn strict_deep_work_is_extended_at_most_twice_and_never_beyond_the_limit() {
    let hive = TestVault::new();
    ok(&hive, "hf-deepwork start --strict 200 Long");
    refuses(&hive, "hf-deepwork extend 41", 2, "the total would exceed 240 minutes");
    ok(&hive, "hf-deepwork extend 1");
    ok(&hive, "hf-deepwork extend 39");
    let reply = refuses(&hive, "hf-deepwork extend 1", 3, "DW-0001 cannot be extended again; at most 2 extensions");
    assert_eq!(reply.get("STATUS"), "REFUSED");
    ok(&hive, "hf-deepwork start --flexible Other");
    refuses(&hive, "hf-deepwork extend 1", 2, "flexible deep work has no time limit to extend");
    all_is_well(&hive);
}

#[test]
fn flexible_deep_work_suspends_logs_and_introspections_but_needs_checkpoints() {
    let mut hive = configured("");
    ok(&hive, "hf-activity --kind introspection");
    ok(&hive, "hf-deepwork start --flexible Long");
    assert_eq!(tick(&mut hive, 600), [""; 0]);
    assert_eq!(tick(&mut hive, 601), ["DEEPWORK_UNCHECKED agent:main error 601"]);
    for second in (602..=9000).step_by(599) {
        at(&mut hive, second, "hf-checkpoint Here").expect_exit(0);
        assert_eq!(tick(&mut hive, second + 598), [""; 0], "{second}");
    }
    assert_eq!((count(&hive, "AnomalyDetected"), count(&hive, "AnomalyCleared")), (1, 1));
    // It has no time of its own: only a log ends it, and the checks are back.
    at(&mut hive, 9700, "hf-activity --kind introspection").expect_exit(0);
    assert_eq!(ok(&hive, "hf-deepwork status").get("SUM"), "no deep work in progress");
    assert_eq!(tick(&mut hive, 10_000), [""; 0]);
    assert_eq!(tick(&mut hive, 10_001), ["INACTIVE agent:main warn 301"]);
    all_is_well(&hive);
}

#[test]
fn strict_deep_work_suspends_all_checks_until_its_time_is_up() {
    let mut hive = configured("");
    ok(&hive, "hf-activity --kind introspection");
    ok(&hive, "hf-deepwork start --strict 60 Long");
    for second in [601, 1801, 3599, 3600] {
        assert_eq!(tick(&mut hive, second), [""; 0], "{second}");
    }
    let expired = at(&mut hive, 3601, "hf-watchdog").expect_exit(1);
    assert_eq!(
        expired.all("ANOMALY"),
        [
            "INACTIVE agent:main error 3601",
            "INTROSPECTION_OVERDUE agent:main error 3601",
            "DEEPWORK_EXPIRED agent:main error 1"
        ]
    );
    assert_eq!(
        expired.all("DID").iter().map(|line| line.split(' ').next().unwrap()).collect::<Vec<_>>(),
        ["DeepWorkExpired", "AnomalyDetected", "AnomalyDetected"]
    );
    assert!(file(&hive, &format!("deep_work/{}.expired.txt", beat(0))).exists());
    assert_eq!(tick(&mut hive, 3602).len(), 2, "it expires once");
    assert_eq!(ok(&hive, "hf-deepwork list").get("DEEP_WORK"), "DW-0001 Expired strict 60 60 Long");
    all_is_well(&hive);
}

#[test]
fn a_log_in_time_completes_strict_deep_work_silently() {
    let mut hive = configured("");
    ok(&hive, "hf-activity --kind introspection");
    ok(&hive, "hf-deepwork start --strict 25 Long");
    at(&mut hive, 1500, "hf-activity --kind creating").expect_exit(0);
    at(&mut hive, 1510, "hf-activity --kind introspection").expect_exit(0);
    assert_eq!(tick(&mut hive, 1560), [""; 0]);
    assert_eq!((count(&hive, "DeepWorkCompleted"), count(&hive, "AnomalyDetected")), (1, 0));
    all_is_well(&hive);
}

#[test]
fn strict_deep_work_protects_only_its_own_agents_runs() {
    let mut hive = configured("");
    running(&hive, "agent:a");
    ok(&hive, "hf-deepwork start --strict 30 Long --agent a");
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-task claim T-0002 --actor user:bo");
    let found = tick(&mut hive, 901);
    assert!(found.len() == 1 && found[0].starts_with("LEASE_EXPIRED task:"), "{found:?}");
    assert_eq!((count(&hive, "ClaimExpired"), count(&hive, "RunTimedOut")), (1, 0));
    assert_eq!(tick(&mut hive, 1800), [""; 0]);
    // From there on it has a whole lease.
    let about_run = |found: &[String]| found.iter().any(|line| line.starts_with("LEASE_EXPIRED run:"));
    assert!(!about_run(&tick(&mut hive, 1800 + 900)));
    assert!(about_run(&tick(&mut hive, 1800 + 901)));
    all_is_well(&hive);
}

#[test]
fn a_new_declaration_supersedes_the_old_one() {
    let mut hive = configured("");
    ok(&hive, "hf-deepwork start --strict 10 One");
    tick(&mut hive, 60);
    let before = hive.events().len();
    at(&mut hive, 61, "hf-deepwork start --flexible Two").expect_exit(0);
    assert_eq!(kinds_since(&hive, before), ["DeepWorkCompleted", "DeepWorkStarted"]);
    assert!(file(&hive, &format!("deep_work/{}.completed.txt", beat(0))).exists());
    assert!(file(&hive, &format!("deep_work/{}.txt", beat(60))).exists());
    // The first one's time means nothing any more.
    assert_eq!(tick(&mut hive, 660), [""; 0]);
    assert_eq!(tick(&mut hive, 662), ["DEEPWORK_UNCHECKED agent:main error 601"]);
    all_is_well(&hive);
}

#[test]
fn limits_can_be_set_per_agent() {
    let settings =
        "agents:\n  a:\n    inactive_error_seconds: 1000\n    inactive_warn_seconds: 900\n    strict_max_minutes: 5\n";
    let mut hive = configured(settings);
    ok(&hive, "hf-checkpoint Here --agent a");
    ok(&hive, "hf-checkpoint Here --agent b");
    assert_eq!(tick(&mut hive, 900), ["INACTIVE agent:b error 900"]);
    let mut found = tick(&mut hive, 1001);
    found.retain(|line| line.starts_with("INACTIVE"));
    assert_eq!(found, ["INACTIVE agent:a error 1001", "INACTIVE agent:b error 1001"]);
    refuses(&hive, "hf-deepwork start --strict 6 Long --agent a", 2, "at most 5");
    ok(&hive, "hf-deepwork start --strict 6 Long --agent b");
    all_is_well(&hive);
}

#[test]
fn a_declaration_file_is_honored_and_a_malformed_one_is_set_aside() {
    let mut hive = configured("");
    ok(&hive, "hf-activity --kind introspection");
    let folder = file(&hive, "deep_work");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(format!("{}.txt", beat(30))), "type: strict\nactivity: By hand\nminutes: 30\n").unwrap();
    assert_eq!(tick(&mut hive, 60), [""; 0]);
    assert_eq!(ok(&hive, "hf-deepwork status").get("DEEP_WORK"), "DW-0001 Open strict 30 0 By hand");
    // Its time counts from its id.
    assert_eq!(tick(&mut hive, 1830), [""; 0]);
    assert!(tick(&mut hive, 1831).contains(&"DEEPWORK_EXPIRED agent:main error 1".to_owned()));
    assert!(folder.join(format!("{}.expired.txt", beat(30))).exists());
    for (name, text, reason) in [
        (beat(1870), "type: soft\nactivity: x\n", "unknown type; one of flexible, strict"),
        (beat(1871), "\u{0}", "missing type"),
        ("tomorrow".to_owned(), "type: flexible\nactivity: x\n", "its name has no heartbeat id"),
    ] {
        fs::write(folder.join(format!("{name}.txt")), text).unwrap();
        let found = tick(&mut hive, 1900);
        let expected = format!("DEEPWORK_MALFORMED agent:main warn 0 deep_work/{name}.txt: {reason}");
        assert!(found.contains(&expected), "{name}: {found:?}");
        assert_eq!(fs::read_to_string(folder.join(format!("{name}.malformed.txt"))).unwrap(), text);
        assert!(!tick(&mut hive, 1901).iter().any(|line| line.starts_with("DEEPWORK_MALFORMED")), "it is told once");
    }
    all_is_well(&hive);
}

#[test]
fn a_declaration_file_cannot_exceed_the_limit() {
    for minutes in ["241", "100000", "18446744073709551615"] {
        let mut hive = configured("");
        ok(&hive, "hf-activity --kind introspection");
        fs::create_dir(file(&hive, "deep_work")).unwrap();
        let text = format!("type: strict\nactivity: By hand\nminutes: {minutes}\n");
        fs::write(file(&hive, &format!("deep_work/{}.txt", beat(1))), text).unwrap();
        tick(&mut hive, 60);
        let found = tick(&mut hive, 60 + 240 * 60 + 1);
        assert!(found.iter().any(|line| line.starts_with("INACTIVE agent:main error")), "{minutes}: {found:?}");
        all_is_well(&hive);
    }
}

#[test]
fn an_appended_declaration_cannot_exceed_the_limit() {
    let mut hive = configured("");
    running(&hive, "agent:main");
    ok(&hive, "hf-activity --kind introspection");
    for (minutes, exit) in [(241u64, 2), (u64::MAX, 2), (240, 0), (240, 3)] {
        let said = format!(
            r#"{{"agent_id":"main","heartbeat_id":"20260131120000","mode":"strict","activity":"x","minutes":{minutes}}}"#
        );
        hive.run("append", &["DeepWorkStarted", "--actor", "agent:main", "--payload", &said]).expect_exit(exit);
    }
    assert_eq!(tick(&mut hive, 240 * 60), [""; 0]);
    let found = tick(&mut hive, 240 * 60 + 1);
    for code in ["INACTIVE agent:main", "DEEPWORK_EXPIRED agent:main"] {
        assert!(found.iter().any(|line| line.starts_with(code)), "{code}: {found:?}");
    }
    let found = tick(&mut hive, 240 * 60 + 901);
    assert!(found.iter().any(|line| line.starts_with("LEASE_EXPIRED run:")), "{found:?}");
    all_is_well(&hive);
}

/// An ai-works tree with a project in it.
fn works(hive: &TestVault) -> PathBuf {
    let works = hive.dir().join("ai-works");
    fs::create_dir_all(works.join("artifacts/novel/histories")).unwrap();
    works
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn an_existing_ai_works_tree_is_used_in_place() {
    let mut hive = configured("");
    let works = works(&hive);
    at(&mut hive, 0, "hf-watchdog --works ai-works").expect_exit(0);
    assert_eq!(read(&works.join("stats/current_heartbeat_id.txt")), format!("{}\n", beat(0)));
    ok(&hive, "hf-checkpoint Here --works ai-works");
    assert_eq!(read(&works.join(format!("stats/checkpoints/{}.txt", beat(0)))), "Here\n");
    ok(&hive, "hf-deepwork start --strict 45 調査 --works ai-works");
    let declared = works.join(format!("stats/deep_work/{}.txt", beat(0)));
    assert_eq!(read(&declared), "制限タイプ: strict\n活動予定内容: 調査\n予定時間: 45分\n");
    at(&mut hive, 60, "hf-activity --kind creating --works ai-works").expect_exit(0);
    assert!(works.join(format!("stats/deep_work/{}.completed.txt", beat(0))).exists());
    assert!(works.join(format!("artifacts/main/histories/{}.md", beat(0))).exists());
    assert!(!hive.vault().join("Agents/main").exists());
    refuses(&hive, "hf-checkpoint Here --works nowhere", 2, "nowhere is not a directory");
    all_is_well(&hive);
}

#[test]
fn files_written_by_other_tools_count_like_our_own() {
    let mut hive = configured("");
    let works = works(&hive);
    ok(&hive, "hf-activity --kind thinking --works ai-works");
    let tick = |hive: &mut TestVault, second: i64| {
        let reply = at(hive, second, "hf-watchdog --works ai-works");
        reply.all("ANOMALY").iter().map(|line| line.to_string()).collect::<Vec<String>>()
    };
    tick(&mut hive, 0);
    // A checkpoint by hand.
    fs::create_dir_all(works.join("stats/checkpoints")).unwrap();
    fs::write(works.join(format!("stats/checkpoints/{}.txt", beat(500))), "調査中\n").unwrap();
    assert_eq!(tick(&mut hive, 800), [""; 0]);
    // A declaration by hand, in the words of the original tool.
    fs::create_dir_all(works.join("stats/deep_work")).unwrap();
    let text = "制限タイプ: flexible\n活動予定内容: 大規模な修正\n";
    fs::write(works.join(format!("stats/deep_work/{}.txt", beat(800))), text).unwrap();
    assert_eq!(tick(&mut hive, 801), [""; 0]);
    assert_eq!(ok(&hive, "hf-deepwork status").get("DEEP_WORK"), "DW-0001 Open flexible - 0 大規模な修正");
    // A log by hand closes it.
    let log = |second: i64, text: &str| {
        fs::write(works.join(format!("artifacts/novel/histories/{}_log.md", beat(second))), text).unwrap();
    };
    log(1000, "# 創造\n書いた。\n");
    tick(&mut hive, 1001);
    assert_eq!(read(&works.join(format!("stats/deep_work/{}.completed.txt", beat(800)))), text);
    // The next one is known as an introspection by its word.
    log(1100, "# 内省\n学んだ。\n");
    assert_eq!(tick(&mut hive, 1101), [""; 0]);
    assert_eq!(tick(&mut hive, 1400), [""; 0]);
    assert_eq!(count(&hive, "AnomalyDetected"), 0);
    all_is_well(&hive);
}

#[test]
fn files_of_an_older_version_are_renamed_once_with_their_contents() {
    for tree in [false, true] {
        let hive = TestVault::new();
        let (stats, flag) = match tree {
            true => (works(&hive).join("stats"), " --works ai-works"),
            false => (file(&hive, ""), ""),
        };
        let old = stats.join("extended_processing");
        fs::create_dir_all(&old).unwrap();
        for name in ["processed.20250101000000.txt", "expired.20250102000000.txt", "20250103000000.txt", "notes.md"] {
            fs::write(old.join(name), name).unwrap();
        }
        let line = format!("hf-deepwork migrate{flag}");
        let first = ok(&hive, &line);
        assert_eq!(
            first.stdout,
            "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:3 files renamed\nDID:extended_processing deep_work\n\
             DID:expired.20250102000000.txt 20250102000000.expired.txt\n\
             DID:processed.20250101000000.txt 20250101000000.completed.txt\n"
        );
        let new = stats.join("deep_work");
        for (name, text) in [
            ("20250101000000.completed.txt", "processed.20250101000000.txt"),
            ("20250102000000.expired.txt", "expired.20250102000000.txt"),
            ("20250103000000.txt", "20250103000000.txt"),
            ("notes.md", "notes.md"),
        ] {
            assert_eq!(read(&new.join(name)), text);
        }
        let second = ok(&hive, &line);
        assert_eq!((second.get("STATUS"), second.get("SUM")), ("DUPLICATE", "0 files renamed"));
        assert!(!old.exists() && fs::read_dir(&new).unwrap().count() == 4);
    }
}

#[test]
fn deepwork_leaves_files_of_others_alone() {
    let mut hive = configured("");
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001");
    ok(&hive, "hf-deepwork start --strict 240 Long");
    ok(&hive, "hf-checkpoint Here --agent b");
    hive.at(&moment(0).to_string());
    assert_eq!(tick(&mut hive, 601), ["INACTIVE agent:b error 601"]);
    let found = tick(&mut hive, 86_401);
    assert!(found.iter().any(|line| line.starts_with("APPROVAL_OVERDUE decision:")), "{found:?}");
    all_is_well(&hive);
}

#[test]
fn an_unknown_agent_has_an_empty_list() {
    let hive = TestVault::new();
    assert_eq!(
        ok(&hive, "hf-deepwork list --agent nobody").stdout,
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:0 periods of deep work\nCOUNT:0\nHAS_MORE:no\n"
    );
}
