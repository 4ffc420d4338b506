//! hf-config, and settings on the record: what is in force is what the log says, and every change is an event.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::steps::{count, keeps_the_rules, ok, sh};
use crate::support::test_vault::TestVault;

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
    hive.configure("governance:\n  lease_seconds: 60\nagents:\n  a:\n    inactive_warn_seconds: 5\n");
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
        hive.configure("governance:\n  lease_seconds: 60\n");
        ok(&hive, "hf-task propose x");
        hive.configure(text);
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
    let file = hive.config();
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
    hive.configure("governance:\n  max_retries: 7\nreviewers:\n  gpt:\n    command: ask\n");
    let all = ok(&hive, "hf-config show");
    let of = |name: &str| all.all("SETTING").into_iter().find(|row| row.starts_with(&format!("{name} "))).unwrap();
    assert_eq!(of("governance.max_retries"), "governance.max_retries file 7");
    assert_eq!(of("governance.auto_assign"), "governance.auto_assign default false");
    assert_eq!(of("reviewers.gpt.command"), "reviewers.gpt.command file ask");
    assert_eq!(of("jobs.on_finish"), r#"jobs.on_finish default """#);
    let commented = fs::read_to_string(TestVault::new().config()).unwrap();
    let named = commented.lines().filter(|line| line.contains("  # ") && line.contains(": ")).count();
    assert!(all.all("SETTING").len() >= named, "every setting of the commented file is shown");
    assert_eq!(ok(&hive, "hf-config show session").all("SETTING"), ["session.ttl_seconds default 3600"]);
    assert_eq!(sh(&hive, "hf-config show governance.max_retires").expect_exit(6).get("STATUS"), "NOT_FOUND");
}

#[test]
fn each_event_is_judged_by_the_settings_of_its_time() {
    let mut hive = TestVault::new();
    hive.configure("governance:\n  max_retries: 1\n  approval_timeout_hours: 1\n");
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
    hive.configure("governance:\n  max_retries: 9\n  approval_timeout_hours: 99\n");
    ok(&hive, "hf-task propose more");
    let verified = ok(&hive, "hf-verify --policy");
    assert_eq!((verified.get("POLICY"), verified.get("SETTINGS")), ("OK", "RECORDED"));
}

#[test]
fn a_settings_file_writable_by_others_is_ignored() {
    use std::os::unix::fs::PermissionsExt;
    let hive = TestVault::new();
    hive.configure("governance:\n  lease_seconds: 60\n");
    ok(&hive, "hf-task propose x");
    hive.configure("governance:\n  lease_seconds: 5\n");
    let file = hive.config();
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
        hive.configure(text);
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
    hive.configure("governance:\n  max_retries: 7\n");
    drop(holder);
    assert!(waits.wait().unwrap().success());
    assert_eq!(recorded(&hive)["governance.max_retries"], 7);
    assert_eq!(count(&hive, "SettingsChanged"), 1);
}

#[test]
fn set_changes_one_line_of_the_file_and_records_it() {
    let hive = TestVault::new();
    let text = "# mine\ngovernance:\n  max_retries: 2  # few\n\nhive:\n  name: x\n";
    hive.configure(text);
    let set = ok(&hive, "hf-config set governance.max_retries 7");
    assert_eq!(
        set.masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:1 setting changed\nEVENT_ID:<ulid>\nSETTINGS:RECORDED\n\
         SETTING_DIFFERS:governance.max_retries recorded=2 file=7\n"
    );
    assert_eq!(fs::read_to_string(hive.config()).unwrap(), text.replace("2  # few", "7  # few"));
    assert_eq!(recorded(&hive)["governance.max_retries"], 7);
    // Once for the file as it was, once for the change.
    assert_eq!(count(&hive, "SettingsChanged"), 2);
    assert_eq!(ok(&hive, "hf-config set governance.max_retries 7").get("STATUS"), "DUPLICATE");
    let shown = ok(&hive, "hf-config show governance.max_retries");
    assert_eq!((shown.all("SETTING"), shown.get("SETTINGS")), (vec!["governance.max_retries recorded 7"], "RECORDED"));
    assert_eq!(count(&hive, "SettingsAdopted"), 0, "a solo user goes on editing the file");
    keeps_the_rules(&hive);
}

#[test]
fn set_adopts_where_settings_were_adopted() {
    use std::os::unix::fs::PermissionsExt;
    let hive = TestVault::new();
    fs::remove_file(hive.config()).unwrap();
    // The file may be next to the vault, and others may read it.
    let file = hive.dir().join("hiveforge.config.yaml");
    fs::write(&file, "governance:\n  max_retries: 2\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let adopted = ok(&hive, "hf-config adopt");
    assert_eq!((adopted.get("STATUS"), adopted.get("SETTINGS")), ("RECORDED", "ADOPTED"));
    assert_eq!(ok(&hive, "hf-config adopt").get("STATUS"), "DUPLICATE");
    let set = ok(&hive, "hf-config set watchdog.interval_seconds 30");
    assert_eq!((set.get("STATUS"), set.get("SETTINGS")), ("RECORDED", "ADOPTED"));
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text, "governance:\n  max_retries: 2\nwatchdog:\n  interval_seconds: 30\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(recorded(&hive)["watchdog.interval_seconds"], 30);
    assert_eq!((count(&hive, "SettingsAdopted"), hive.config().exists()), (2, false));
    let shown = ok(&hive, "hf-config show watchdog");
    assert!(shown.all("SETTING").contains(&"watchdog.interval_seconds adopted 30"), "{shown:#?}");
    assert!(shown.all("SETTING").contains(&"watchdog.remind_every default 3600"), "{shown:#?}");
    keeps_the_rules(&hive);
}

#[test]
fn set_refuses_what_it_cannot_change_safely_and_changes_nothing() {
    for strict in [false, true] {
        let hive = TestVault::new();
        hive.configure("governance: {max_retries: 2}\nhive:\n  name: x\n");
        ok(&hive, if strict { "hf-config adopt" } else { "hf-task propose x" });
        let cases = [
            ("governance.max_retries", "3", 2, "governance.max_retries cannot be changed in this layout; edit"),
            ("hive.name: y\n  z", "3", 6, "unknown setting"),
            ("governance.max_retires", "3", 6, "did you mean governance.max_retries?"),
            ("session.ttl_seconds", "-1", 2, "session.ttl_seconds must be a whole number, 1 or more"),
            ("liveness.timezone", "mars", 2, "liveness.timezone must be one of utc, local"),
        ];
        for (name, value, exit, why) in cases {
            let refused = hive.refuses("config", &["set", name, value], exit);
            assert!(refused.get("SUM").contains(why), "{refused:#?}");
        }
    }
}

#[test]
fn set_that_cannot_be_recorded_leaves_the_file_as_it_was() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose x");
    let holder = fs::File::options().write(true).open(hive.akashic(".lock")).unwrap();
    fs2::FileExt::lock_exclusive(&holder).unwrap();
    let before = hive.contents();
    assert_eq!(sh(&hive, "hf-config set hive.name y --lock-timeout 0").expect_exit(5).get("STATUS"), "BUSY");
    assert!(hive.contents() == before);
}

#[test]
fn a_strict_vault_goes_on_with_a_file_that_is_broken_or_gone() {
    let hive = TestVault::new();
    hive.configure_strictly("governance:\n  lease_seconds: 60\n");
    ok(&hive, "hf-task propose x");
    hive.configure("a: [\n");
    let claimed = ok(&hive, "hf-task claim --actor agent:a");
    assert_eq!(claimed.get("LEASE_UNTIL"), "2026-01-31T12:01:00Z");
    assert!(claimed.stderr.contains("the adopted settings remain in force"), "{claimed:#?}");
    for line in ["hf-config show", "hf-config diff", "hf-config adopt", "hf-config set hive.name y"] {
        sh(&hive, line).expect_exit(2);
    }
    fs::remove_file(hive.config()).unwrap();
    let said = ok(&hive, "hf-task list").stderr;
    assert!(said.ends_with("not in force: governance.lease_seconds; see hf-config diff\n"), "{said}");
    assert_eq!(count(&hive, "SettingsChanged"), 1);
    keeps_the_rules(&hive);
}
