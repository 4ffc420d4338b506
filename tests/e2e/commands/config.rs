//! hf-config, and settings on the record: what is in force is what the log says, and every change is an event.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::steps::{count, keeps_the_rules, ok, sh};
use crate::support::test_vault::{TestVault, write_private};

fn configure(hive: &TestVault, text: &str) {
    write_private(&hive.vault().join("hiveforge.config.yaml"), text.as_bytes());
}

/// The settings that the newest event about them carries.
fn recorded(hive: &TestVault) -> serde_json::Value {
    let mut events = hive.events();
    events.retain(|event| !event["payload"]["settings"].is_null());
    events.pop().expect("the first event has some")["payload"]["settings"].clone()
}

#[test]
fn a_new_vault_has_its_settings_in_its_first_event() {
    let hive = TestVault::new();
    assert_eq!(hive.events()[0]["payload"]["settings"]["governance.lease_seconds"], 900);
    let diff = ok(&hive, "hf-config diff");
    assert_eq!(
        diff.masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:the recorded settings match the file\nSETTINGS:RECORDED\n"
    );
    ok(&hive, "hf-task propose x");
    assert_eq!(count(&hive, "SettingsChanged"), 0, "nothing changed");
}

#[test]
fn a_changed_settings_file_is_recorded_before_it_takes_effect() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose x");
    configure(&hive, "governance:\n  lease_seconds: 60\nagents:\n  a:\n    inactive_warn_seconds: 5\n");
    let diff = sh(&hive, "hf-config diff").expect_exit(1);
    assert_eq!(
        diff.all("SETTING_DIFFERS"),
        ["agents.a.inactive_warn_seconds recorded=- file=5", "governance.lease_seconds recorded=900 file=60"]
    );
    // A reader judges by what the next writer would record.
    assert_eq!(
        ok(&hive, "hf-config show governance.lease_seconds").all("SETTING"),
        ["governance.lease_seconds file 60"]
    );
    assert_eq!(count(&hive, "SettingsChanged"), 0, "who looks records nothing");
    let claimed = ok(&hive, "hf-task claim --actor agent:b");
    assert_eq!(claimed.get("LEASE_UNTIL"), "2026-01-31T12:01:00Z");
    let kinds: Vec<String> = hive.events().iter().map(|e| e["event_type"].as_str().unwrap().to_owned()).collect();
    let at = |kind: &str| kinds.iter().position(|k| k == kind).unwrap();
    assert!(at("SettingsChanged") < at("TaskAssigned"), "{kinds:?}");
    assert_eq!(recorded(&hive)["governance.lease_seconds"], 60);
    assert_eq!(recorded(&hive)["agents"]["a"]["liveness.inactive_warn_seconds"], 5);
    ok(&hive, "hf-config diff");
    ok(&hive, "hf-task propose y");
    assert_eq!(count(&hive, "SettingsChanged"), 1, "once for each change");
    keeps_the_rules(&hive);
}

#[test]
fn an_unreadable_settings_file_fails_only_hf_config() {
    let broken: [(&str, i32, &str); 3] = [
        ("governance:\n  max_retries: soon\n", 2, "governance.max_retries must be a whole number"),
        ("a: [\n", 2, "hiveforge.config.yaml"),
        ("agents:\n  a: 5\n", 2, "agents.a must be a section"),
    ];
    for (text, exit, why) in broken {
        let hive = TestVault::new();
        configure(&hive, "governance:\n  lease_seconds: 60\n");
        ok(&hive, "hf-task propose x");
        configure(&hive, text);
        for line in ["hf-config show", "hf-config diff"] {
            assert!(sh(&hive, line).expect_exit(exit).get("SUM").contains(why), "{line}: {text}");
        }
        // Everything else goes on with what was recorded last, and says so.
        let claimed = sh(&hive, "hf-task claim --actor agent:a").expect_exit(0);
        assert_eq!(claimed.get("LEASE_UNTIL"), "2026-01-31T12:01:00Z", "{text}");
        assert!(claimed.stderr.contains("the settings recorded last remain in force"), "{claimed:#?}");
        let problem = sh(&hive, "hf-status").expect_exit(1).all("PROBLEM")[0].to_owned();
        let said = "- - settings hiveforge.config.yaml cannot be used; the settings recorded last remain in force: ";
        assert!(problem.starts_with(said) && problem.contains(why), "{problem}");
        assert!(problem.ends_with(" do=hf-config diff"), "{problem}");
        for line in ["hf-watchdog", "hf-stop fire", "hf-resume --system"] {
            sh(&hive, line).expect_exit(0);
        }
        assert_eq!(count(&hive, "SettingsChanged"), 1, "{text}");
        keeps_the_rules(&hive);
    }
}

#[test]
fn a_symlinked_settings_file_is_not_followed() {
    let hive = TestVault::new();
    let file = hive.vault().join("hiveforge.config.yaml");
    let elsewhere = hive.dir().join("elsewhere");
    fs::write(&elsewhere, "governance:\n  lease_seconds: 1\n").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert_eq!(sh(&hive, "hf-config show").expect_exit(3).get("REASON"), "symlink");
    ok(&hive, "hf-task propose x");
    assert_eq!(sh(&hive, "hf-task claim --actor agent:a").get("LEASE_UNTIL"), "2026-01-31T12:15:00Z");
}

#[test]
fn every_setting_is_shown_with_where_it_comes_from() {
    let hive = TestVault::new();
    configure(&hive, "governance:\n  max_retries: 7\nreviewers:\n  gpt:\n    command: ask\n");
    let all = ok(&hive, "hf-config show");
    let of = |name: &str| all.all("SETTING").into_iter().find(|row| row.starts_with(&format!("{name} "))).unwrap();
    assert_eq!(of("governance.max_retries"), "governance.max_retries file 7");
    assert_eq!(of("governance.auto_assign"), "governance.auto_assign default false");
    assert_eq!(of("reviewers.gpt.command"), "reviewers.gpt.command file ask");
    assert_eq!(of("jobs.on_finish"), r#"jobs.on_finish default """#);
    let commented = fs::read_to_string(TestVault::new().vault().join("hiveforge.config.yaml")).unwrap();
    let named = commented.lines().filter(|line| line.contains("  # ") && line.contains(": ")).count();
    assert!(all.all("SETTING").len() >= named, "every setting of the commented file is shown");
    assert_eq!(ok(&hive, "hf-config show session").all("SETTING"), ["session.ttl_seconds default 3600"]);
    assert_eq!(sh(&hive, "hf-config show governance.max_retires").expect_exit(6).get("STATUS"), "NOT_FOUND");
}

#[test]
fn each_event_is_judged_by_the_settings_of_its_time() {
    let mut hive = TestVault::new();
    configure(&hive, "governance:\n  max_retries: 1\n  approval_timeout_hours: 1\n");
    ok(&hive, "hf-require propose x");
    ok(&hive, "hf-require analyze REQ-0001 y");
    ok(&hive, "hf-task propose z");
    ok(&hive, "hf-task claim T-0001 --actor agent:a");
    for _ in 0..2 {
        ok(&hive, "hf-task start T-0001 --actor agent:a");
        ok(&hive, "hf-task fail T-0001 --class transient --reason x --actor agent:a");
    }
    // Given up after one retry; the decision timed out after an hour.
    assert_eq!(count(&hive, "TaskAborted"), 1);
    hive.at("2026-01-31T13:00:01Z");
    sh(&hive, "hf-watchdog");
    assert_eq!(count(&hive, "ApprovalTimedOut"), 1);
    // Under these settings neither would have been right.
    configure(&hive, "governance:\n  max_retries: 9\n  approval_timeout_hours: 99\n");
    ok(&hive, "hf-task propose more");
    let verified = ok(&hive, "hf-verify --policy");
    assert_eq!((verified.get("POLICY"), verified.get("SETTINGS")), ("OK", "RECORDED"));
}

#[test]
fn a_settings_file_writable_by_others_is_ignored() {
    use std::os::unix::fs::PermissionsExt;
    let hive = TestVault::new();
    configure(&hive, "governance:\n  lease_seconds: 60\n");
    ok(&hive, "hf-task propose x");
    configure(&hive, "governance:\n  lease_seconds: 5\n");
    let file = hive.vault().join("hiveforge.config.yaml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(sh(&hive, "hf-config show").expect_exit(3).get("REASON"), "not_private");
    assert_eq!(sh(&hive, "hf-task claim --actor agent:a").get("LEASE_UNTIL"), "2026-01-31T12:01:00Z");
    assert_eq!(recorded(&hive)["governance.lease_seconds"], 60);
}

#[test]
fn settings_that_cannot_be_recorded_do_not_apply() {
    let hive = TestVault::new();
    let long = format!("jobs:\n  on_finish: '{}'\n", "x".repeat(100_000));
    for text in ["governance:\n  max_retries: 9007199254740993\n", &long] {
        configure(&hive, text);
        sh(&hive, "hf-config show").expect_exit(2);
        ok(&hive, "hf-require propose x");
        ok(&hive, "hf-require propose y");
        assert_eq!(count(&hive, "SettingsChanged"), 0);
    }
    keeps_the_rules(&hive);
}

#[test]
fn waiting_writers_do_not_restore_an_older_settings_file() {
    let hive = TestVault::new();
    let holder = fs::File::options().write(true).open(hive.vault().join("Akashic/.lock")).unwrap();
    fs2::FileExt::lock_exclusive(&holder).unwrap();
    let mut waits = hive.process("append");
    waits.args(["RequirementProposed", "--payload", r#"{"title":"x"}"#]).stdout(std::process::Stdio::null());
    let mut waits = waits.spawn().unwrap();
    // It waits in flock by the time that the kernel says so, and has read the file before.
    let blocked = || {
        fs::read_to_string("/proc/locks")
            .unwrap_or_default()
            .contains(&format!("-> FLOCK  ADVISORY  WRITE {}", waits.id()))
    };
    while !blocked() {
        std::thread::yield_now();
    }
    configure(&hive, "governance:\n  max_retries: 7\n");
    drop(holder);
    assert!(waits.wait().unwrap().success());
    assert_eq!(recorded(&hive)["governance.max_retries"], 7);
    assert_eq!(count(&hive, "SettingsChanged"), 1);
}
