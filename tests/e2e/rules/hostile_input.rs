//! What somebody tries who means no good, or whose files are broken.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::steps::{count, keeps_the_rules, ok};
use crate::support::test_vault::{TestVault, write_private};

fn declare(hive: &TestVault, agent: &str, text: &str) {
    let folder = hive.vault().join("Agents").join(agent).join("deep_work");
    fs::create_dir_all(&folder).unwrap();
    write_private(&folder.join("20260131120000.txt"), text.as_bytes());
}

#[test]
fn a_task_cannot_be_bound_to_a_command_by_hand() {
    let hive = TestVault::new();
    let forged = r#"{"title":"List","command":["ls"],"command_hash":"sha256:00","job":true,"destructive":true}"#;
    hive.refuses("append", &["TaskProposed", "--payload", forged], 3);
    ok(&hive, "hf-task propose Form");
    hive.refuses("append", &["TaskAssigned", "--subject", "T-0001", "--payload", r#"{"job":true}"#], 3);
}

#[test]
fn an_operator_is_shown_the_command_rather_than_its_title() {
    let hive = TestVault::new();
    let words = ["fire", "--destructive", "--title", "Harmless", "--", "/bin/rm", "-rf", "/nonexistent/x"];
    hive.run("job", &words).expect_exit(3);
    let asked = hive.run("decide", &["list", "--open"]).expect_exit(0);
    assert!(asked.get("ENTITY").contains("/bin/rm -rf /nonexistent/x"), "{asked:#?}");
    let shown = hive.run("decide", &["show", "DEC-0001"]).expect_exit(0);
    assert!(shown.all("FACT").contains(&r#"command ["/bin/rm","-rf","/nonexistent/x"]"#), "{shown:#?}");
    hive.run("job", &["cancel", "T-0001"]).expect_exit(0);
}

#[test]
fn extra_bytes_in_the_stop_flag_do_not_disable_a_stop() {
    let hive = TestVault::new();
    let control = hive.vault().join("Akashic/control");
    let mut bytes = fs::read(&control).unwrap();
    bytes.push(b'x');
    write_private(&control, &bytes);
    assert_eq!(hive.run("stop", &["why"]).expect_exit(0).get("STATUS"), "STOPPED");
    assert_eq!(hive.run("status", &[]).get("SYSTEM_STATE"), "stopped");
}

#[test]
fn an_agents_job_runs_in_an_agents_shell() {
    let hive = TestVault::new();
    for (n, more) in [("1", &["--actor", "agent:x"][..]), ("2", &["--actor", "agent:x", "--env", "HF_AGENT="][..])] {
        let words = [&["fire"], more, &["--", "/bin/sh", "-c", "echo agent=$HF_AGENT"]].concat();
        hive.run("job", &words).expect_exit(0);
        assert_eq!(hive.run("poll", &[&format!("T-000{n}")]).get("SUM"), "agent=x");
    }
}

#[test]
fn a_declaration_file_cannot_do_more_than_the_command() {
    for minutes in ["241", "18446744073709551615"] {
        let mut hive = TestVault::new();
        ok(&hive, "hf-checkpoint --agent a hi");
        declare(&hive, "a", &format!("type: strict\nactivity: x\nminutes: {minutes}\n"));
        let reply = hive.at("2026-01-31T12:01:00Z").run("watchdog", &[]).expect_exit(0);
        let found =
            format!("DEEPWORK_MALFORMED agent:a warn 0 deep_work/20260131120000.txt: strict deep work of {minutes}");
        assert!(reply.get("ANOMALY").starts_with(&found), "{reply:?}");
        assert_eq!(count(&hive, "DeepWorkStarted"), 0);
        keeps_the_rules(&hive);
    }
    let hive = TestVault::new();
    let payload = r#"{"agent_id":"a","heartbeat_id":"20260131120000","mode":"strict","activity":"x","minutes":241}"#;
    hive.refuses("append", &["DeepWorkStarted", "--actor", "agent:a", "--payload", payload], 2);
}

#[test]
fn one_agents_files_cannot_blind_the_watchdog() {
    let long = "n".repeat(60);
    type Breaks<'a> = (&'a str, fn(&TestVault));
    let breaks: [Breaks<'_>; 3] = [
        ("b", |hive| {
            fs::remove_dir_all(hive.vault().join("Agents/b")).unwrap();
            symlink("/etc", hive.vault().join("Agents/b")).unwrap();
        }),
        ("b", |hive| {
            fs::remove_dir_all(hive.vault().join("Agents/b")).unwrap();
            write_private(&hive.vault().join("Agents/b"), b"");
        }),
        (&long, |hive| declare(hive, &"n".repeat(60), "type: flexible\nactivity: x\n")),
    ];
    for (agent, broken) in breaks {
        let mut hive = TestVault::new();
        ok(&hive, "hf-checkpoint --agent a hi");
        ok(&hive, &format!("hf-checkpoint --agent {agent} hi"));
        broken(&hive);
        let reply = hive.at("2026-01-31T12:10:01Z").run("watchdog", &[]).expect_exit(1);
        assert!(reply.all("ANOMALY").contains(&"INACTIVE agent:a error 601"), "{reply:#?}");
        keeps_the_rules(&hive);
    }
}

#[test]
fn a_clock_that_ran_ahead_does_not_silence_the_watchdog() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-checkpoint --agent a hi");
    hive.run("watchdog", &[]).expect_exit(0);
    hive.at("2027-01-31T12:00:00Z").run("watchdog", &[]);
    for minute in 1..12 {
        hive.at(&format!("2026-01-31T12:{minute:02}:30Z")).run("watchdog", &[]);
    }
    let reply = hive.at("2026-01-31T12:12:30Z").run("watchdog", &[]).expect_exit(1);
    // The log is ahead of the clock, and that is said, too.
    let found = |code: &str| reply.all("ANOMALY").iter().any(|line| line.starts_with(code));
    assert!(found("INACTIVE agent:a error") && found("CLOCK_SKEW system error"), "{reply:#?}");
}

#[test]
fn one_jobs_folder_cannot_blind_the_watchdog_or_hide_a_stop() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-checkpoint --agent a hi");
    hive.run("job", &["fire", "--", "/bin/sleep", "30"]).expect_exit(0);
    let jobs = hive.vault().join("Jobs");
    let job = fs::read_dir(&jobs).unwrap().next().unwrap().unwrap().path();
    fs::rename(&job, hive.dir().join("away")).unwrap();
    symlink("/etc", &job).unwrap();
    let reply = hive.at("2026-01-31T12:10:01Z").run("watchdog", &[]).expect_exit(1);
    assert!(reply.all("ANOMALY").contains(&"INACTIVE agent:a error 601"), "{reply:#?}");
    let reply = hive.run("stop", &["why"]).expect_exit(0);
    assert_eq!(reply.get("STATUS"), "STOPPED");
}

#[test]
fn an_oversized_block_records_nothing() {
    let hive = TestVault::new();
    hive.refuses("checkpoint", &["--agent", "a", "--state", &["a"; 199].join(" ")], 2);
    assert_eq!(count(&hive, "CheckpointRecorded"), 0);
}

#[test]
fn a_number_that_cannot_be_stored_exactly_is_refused() {
    let hive = TestVault::new();
    hive.run("job", &["fire", "--retries", "18446744073709551615", "--", "/bin/true"]).expect_exit(2);
    keeps_the_rules(&hive);
    write_private(
        &hive.config(),
        b"watchdog:\n  interval_seconds: 9223372036854775807\njobs:\n  kill_grace: 18446744073709551615\n",
    );
    ok(&hive, "hf-watchdog");
    ok(&hive, "hf-watchdog");
    ok(&hive, "hf-stop why");
}

#[test]
fn a_shell_with_an_invalid_agent_name_is_still_an_agents_shell() {
    use std::os::unix::ffi::OsStrExt;
    let hive = TestVault::new();
    ok(&hive, "hf-stop why");
    for variable in ["HF_AGENT", "HF_SESSION"] {
        let name = std::ffi::OsStr::from_bytes(b"\xff");
        let reply = hive.command("resume").arg("--system").env(variable, name).output().unwrap();
        assert_ne!(reply.status.code(), Some(0), "{variable}");
    }
}

#[test]
fn a_pipe_in_place_of_the_settings_file_blocks_nobody() {
    let hive = TestVault::empty();
    let made = std::process::Command::new("mkfifo").arg(hive.dir().join("hiveforge.config.yaml")).status().unwrap();
    assert!(made.success());
    let wait = std::time::Duration::from_secs(5);
    let reply = hive.command("status").timeout(wait).output().unwrap();
    assert_eq!(reply.status.code(), Some(7));
    hive.command("init").timeout(wait).assert().success();
    hive.command("watchdog").timeout(wait).assert().success();
}

#[test]
fn next_keeps_the_agent_named_by_a_flag() {
    let hive = TestVault::new();
    ok(&hive, "hf-deepwork start --agent a --flexible x");
    let reply = ok(&hive, "hf-activity --agent a --kind thinking");
    assert_eq!(reply.get("NEXT"), "ACTION hf-activity --kind introspection --agent a");
    assert_eq!(hive.run_next(&reply).expect_exit(0).get("INTROSPECTION_DUE"), "no");
    ok(&hive, "hf-deepwork start --agent a --flexible x");
    let reply = ok(&hive, "hf-deepwork complete --agent a");
    assert_eq!(reply.get("NEXT"), "ACTION hf-activity --kind introspection --agent a");
}
