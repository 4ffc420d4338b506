//! The settings file itself: what is accepted, what is warned about, and what happens if it cannot be used.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use hiveforge::policy::settings::Setting;
use serde_json::Value;

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, held, keeps_the_rules, ok, running, sh, state};
use crate::support::test_vault::{Reply, TestVault, write_private};

/// The file of seed 004, appendix C, as it stands.
const APPENDIX_C: &str = r#"# hiveforge.config.yaml
hive:
  name: "poc-project"
  vault_path: "./Vault"

governance:
  max_retries: 3
  max_oscillations: 5
  max_concurrent_tasks: 10
  task_timeout_seconds: 300
  heartbeat_interval_seconds: 30
  approval_timeout_hours: 24
  archive_after_days: 7           # Succeeded/Abortedタスクのアーカイブ日数

llm:
  provider: "openai"
  model: "gpt-4o"
  api_key_env: "OPENAI_API_KEY"   # .envから読み込み
  max_tokens: 4096
  temperature: 0.2

auth:
  enabled: false                  # trueで API Key認証を有効化
  api_key_env: "HIVEFORGE_API_KEY"

server:
  host: "0.0.0.0"
  port: 8000

logging:
  events_max_file_size_mb: 100    # 単一JSONLファイルの上限
"#;

/// What a command warns about the file.
fn warnings(reply: &Reply) -> Vec<&str> {
    let about = reply.stderr.lines().filter_map(|line| line.strip_prefix("warning: "));
    about.map(|line| line.strip_prefix("hiveforge.config.yaml: ").unwrap_or(line)).collect()
}

/// Sections of which this version reads nothing.
const UNUSED: [&str; 3] = ["auth", "llm", "server"];

fn unused() -> Vec<String> {
    UNUSED.map(|section| format!("{section} is not used by this version")).to_vec()
}

#[test]
fn t16_the_file_of_appendix_c_is_accepted_and_what_is_not_used_is_named() {
    let beside = TestVault::new();
    fs::remove_file(beside.config()).unwrap();
    write_private(&beside.dir().join("hiveforge.config.yaml"), APPENDIX_C.as_bytes());
    let inside = TestVault::new();
    inside.configure(APPENDIX_C);
    for hive in [beside, inside] {
        for line in ["hf-status", "hf-task propose x", "hf-task list", "hf-watchdog", "hf-config show", "hf-stop fire"]
        {
            let reply = ok(&hive, line);
            assert_eq!(warnings(&reply), unused(), "{line}");
        }
        let shown = ok(&hive, "hf-config show governance.task_timeout_seconds");
        assert_eq!(shown.all("SETTING"), ["governance.task_timeout_seconds recorded 300"]);
    }
}

#[test]
fn every_key_of_appendix_c_is_a_setting_or_belongs_to_a_section_that_is_named_as_unused() {
    let Value::Object(sections) = serde_saphyr::from_str(APPENDIX_C).unwrap() else { panic!("a map of sections") };
    for (section, members) in sections {
        for key in members.as_object().unwrap().keys() {
            let setting = Setting::parse(&format!("{section}.{key}"));
            assert_eq!(setting.is_none(), UNUSED.contains(&section.as_str()), "{section}.{key}");
        }
    }
}

#[test]
fn t16_an_unused_section_is_named_whatever_it_says() {
    let hive = TestVault::new();
    for text in ["auth:\n  enabled: true\n", "auth:\n", "auth: true\n", "auth: []\n"] {
        hive.configure(text);
        assert_eq!(warnings(&ok(&hive, "hf-status")), ["auth is not used by this version"], "{text}");
    }
}

#[test]
fn t26_a_warning_about_the_file_appears_once_in_every_command() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    hive.configure("governance:\n  max_retires: 7\n");
    let why = "unknown setting governance.max_retires; did you mean governance.max_retries?";
    let lines = [
        "hf-status",
        "hf-status --metrics",
        "hf-watchdog --check",
        // Some of these open several transactions.
        "hf-watchdog",
        "hf-task claim --actor agent:a",
        "hf-session login --agent b",
        "hf-session task",
        "hf-pause fire",
        "hf-resume",
        "hf-config show",
        "hf-config diff",
        "hf-stop fire",
        "hf-resume --system",
    ];
    for line in lines {
        assert_eq!(warnings(&sh(&hive, line)), [why], "{line}");
    }
    assert_eq!(warnings(&TestVault::run(&hive, "init", &[])), [why]);
}

/// A command that goes on for ever says it once, not with every reply.
#[test]
fn t26_a_repeated_tick_warns_once() {
    let hive = TestVault::new();
    hive.configure("governance:\n  max_retires: 7\n");
    let said = hive.dir().join("said");
    let mut command = hive.process("watchdog");
    command.args(["--every", "1"]).stdout(Stdio::piped()).stderr(fs::File::create(&said).unwrap());
    let mut watches = command.spawn().unwrap();
    let lines = BufReader::new(watches.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.filter(|line| line.starts_with("EXIT:")).take(2).count(), 2);
    watches.kill().unwrap();
    watches.wait().unwrap();
    assert_eq!(fs::read_to_string(said).unwrap().lines().count(), 1);
}

#[test]
fn an_unknown_key_is_named_with_the_one_that_was_probably_meant() {
    let hive = TestVault::new();
    let cases = [
        ("max_retries: 3\n", "unknown setting max_retries; did you mean governance.max_retries?"),
        (
            "goverance:\n  max_retries: 3\n",
            "unknown setting goverance.max_retries; did you mean governance.max_retries?",
        ),
        ("governance:\n  timezone: utc\n", "unknown setting governance.timezone; did you mean liveness.timezone?"),
        (
            "watchdog:\n  hook:\n    on_beat: x\n",
            "unknown setting watchdog.hook.on_beat; did you mean watchdog.hooks.on_beat?",
        ),
        (
            "reviewers:\n  gpt:\n    comand: x\n",
            "unknown setting reviewers.gpt.comand; did you mean reviewers.gpt.command?",
        ),
        (
            "agents:\n  a:\n    inactive_eror_seconds: 5\n",
            "unknown setting agents.a.inactive_eror_seconds; did you mean agents.a.inactive_error_seconds?",
        ),
        (
            "agents:\n  a:\n    runaway_events: 5\n",
            "unknown setting agents.a.runaway_events; did you mean liveness.runaway_events, which applies to all agents?",
        ),
        ("colour: {}\n", "unknown setting colour"),
        ("governance:\n  colour: {}\n", "unknown setting governance.colour"),
        ("hive:\n  vault_path: ../elsewhere\n", "hive.vault_path is used only in a file next to the vault"),
    ];
    for (text, why) in cases {
        hive.configure(text);
        assert_eq!(warnings(&ok(&hive, "hf-status")), [why], "{text}");
    }
    let sum = sh(&hive, "hf-config show governance.max_retires").expect_exit(6);
    assert_eq!(sum.get("SUM"), "unknown setting 'governance.max_retires'; did you mean governance.max_retries?");
}

/// Makes the file unusable in several ways.
const BROKEN: [&str; 3] = ["a: [\n", "governance:\n  max_retries: -1\n", "governance: 3\n"];

#[test]
fn t7_a_stop_with_an_unreadable_file_is_in_force_and_says_so() {
    for text in BROKEN {
        let mut story = TestJobVault::new("jobs:\n  kill_grace: 1\n");
        running(&story, "agent:a");
        let mut at = story.gate("at");
        story.fire("trap '' TERM; echo up >at; while :; do sleep 1000; done");
        at.line();
        story.configure(text);
        let stopped = ok(&story, "hf-stop fire");
        assert_eq!((stopped.get("STATUS"), stopped.get("DRAINED")), ("STOPPED", "yes"), "{text}");
        assert_eq!(warnings(&stopped).len(), 1, "{stopped:#?}");
        assert!(stopped.stderr.contains("the settings recorded last remain in force"), "{stopped:#?}");
        story.gone();
        assert_eq!(count(&story, "EmergencyStopIssued"), 1);
        assert_eq!(state(&story, "T-0001"), "Aborted");
        story.at("2026-01-31T12:01:00Z");
        keeps_the_rules(&story);
    }
}

#[test]
fn t7_every_command_but_hf_config_goes_on_with_what_was_recorded_and_says_so() {
    for text in BROKEN {
        let mut story = TestJobVault::new("governance:\n  lease_seconds: 60\npause:\n  grace_seconds: 7\n");
        let mut at = story.gate("at");
        story.fire("echo up >at; sleep 1000");
        at.line();
        story.configure(text);
        let lines = [
            "hf-status",
            "hf-task propose x",
            "hf-task claim T-0002 --actor agent:a",
            "hf-task start T-0002 --actor agent:a",
            "hf-checkpoint hi --agent a",
            "hf-deepwork start --flexible reading --agent a",
            "hf-activity --kind reading --agent a",
            "hf-job cancel T-0001",
            "hf-project --rebuild",
            "hf-project --snapshot",
            "hf-pause fire",
            "hf-resume",
            "hf-review open",
            "hf-watchdog --check",
            "hf-watchdog",
            "hf-stop fire",
            "hf-resume --system",
        ];
        for line in lines {
            let reply = sh(&story, line);
            let said =
                warnings(&reply).into_iter().filter(|line| line.starts_with("cannot use the settings file")).count();
            assert_eq!(said, 1, "{line}: {reply:#?}");
            assert!(!["USAGE", "SYSTEM_ERROR"].contains(&reply.get("STATUS")), "{line}: {reply:#?}");
        }
        let paused = story.of_kind("ProjectPaused").pop().unwrap();
        assert_eq!(paused["payload"]["grace_seconds"], 7);
        assert_eq!(story.of_kind("TaskAssigned").pop().unwrap()["payload"]["lease_seconds"], 60);
        story.gone();
        for line in ["hf-config show", "hf-config diff"] {
            assert_eq!(sh(&story, line).expect_exit(2).get("STATUS"), "USAGE");
        }
        story.at("2026-01-31T12:00:30Z");
        keeps_the_rules(&story);
    }
}

#[test]
fn t7_a_stop_is_in_force_even_if_neither_the_file_nor_the_log_can_be_read() {
    let story = TestJobVault::new("");
    held(&story, "agent:a");
    story.configure("a: [\n");
    let good = story.damage();
    let stopped = sh(&story, "hf-stop fire").expect_exit(0);
    assert_eq!(stopped.get("STATUS"), "STOPPED_UNRECORDED");
    story.mend(&good);
    assert_eq!(sh(&story, "hf-task claim --actor agent:a").expect_exit(3).get("REASON"), "system_stopped");
}

/// A mistake in the file must not silence the alarm: the hooks that were recorded still run.
#[test]
fn recorded_commands_still_run_if_the_text_of_the_file_is_wrong() {
    let mut hive = TestVault::new();
    let hook = "watchdog:\n  hooks:\n    on_anomaly: cat >>$HIVE/said\n";
    hive.configure(hook);
    ok(&hive, "hf-checkpoint hi --agent a");
    hive.configure(&format!("{hook}a: [\n"));
    hive.at("2026-01-31T12:11:00Z");
    sh(&hive, "hf-watchdog").expect_exit(1);
    assert!(fs::read_to_string(hive.dir().join("said")).unwrap().contains("INACTIVE agent:a"));
    assert_eq!(count(&hive, "HookFailed"), 0);
}

/// What others can write must not be run, whatever it was when it was recorded.
#[test]
fn recorded_commands_do_not_run_if_others_can_write_to_the_file() {
    let mut hive = TestVault::new();
    hive.configure("watchdog:\n  hooks:\n    on_anomaly: cat >>$HIVE/said\n");
    ok(&hive, "hf-checkpoint hi --agent a");
    let file = hive.config();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    hive.at("2026-01-31T12:11:00Z");
    let reply = sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(warnings(&reply).len(), 1, "{reply:#?}");
    assert!(!hive.dir().join("said").exists());
    assert_eq!(count(&hive, "HookFailed"), 1);
}

/// What stands in a log that others can write to is not run either, even if the file next to it is ours.
#[test]
fn recorded_commands_do_not_run_if_others_can_write_to_the_log() {
    let hive = TestVault::new();
    fs::remove_file(hive.config()).unwrap();
    let beside = hive.dir().join("hiveforge.config.yaml");
    write_private(&beside, b"jobs:\n  check_cmd: touch ran\n");
    ok(&hive, "hf-task propose x");
    write_private(&beside, b"a: [\n");
    let (ran, mode) = (hive.dir().join("ran"), |mode| fs::Permissions::from_mode(mode));
    fs::set_permissions(hive.segment(), mode(0o666)).unwrap();
    assert!(sh(&hive, "hf-poll job-7").get("SUM").contains("the command in jobs.check_cmd is not run"));
    assert!(!ran.exists());
    fs::set_permissions(hive.segment(), mode(0o600)).unwrap();
    sh(&hive, "hf-poll job-7");
    assert!(ran.exists());
}

#[test]
fn a_file_next_to_the_vault_that_cannot_be_read_is_not_taken_for_a_missing_one() {
    let hive = TestVault::new();
    fs::remove_file(hive.config()).unwrap();
    fs::write(hive.dir().join("hiveforge.config.yaml"), [0xff]).unwrap();
    assert!(sh(&hive, "hf-status").expect_exit(1).stderr.contains("not UTF-8"));
    assert!(sh(&hive, "hf-config show").expect_exit(2).get("SUM").contains("not UTF-8"));
}
