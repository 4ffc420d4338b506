//! A17 and A18: what comes from outside has an end: files, lines, agents and waiting jobs. And what goes out to a terminal
//! does not control it.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Command, Stdio};

use hiveforge::base::limits;
use hiveforge::event::Kind;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, ok, sh};
use crate::support::test_vault::{Reply, TestVault, binary, forged, jsonl, write_private};

/// Runs a command that may use only so much memory.
fn with_little_memory(hive: &TestVault, name: &str, args: &[&str], input: Stdio) -> Reply {
    let mut command = Command::new("sh");
    // The index is mapped, not read: its size is that of the address space, which is not limited here.
    command.args(["-c", "ulimit -d 65536; exec \"$0\" \"$@\""]).arg(binary(name)).args(args);
    let like = hive.process(name);
    command.current_dir(hive.dir()).env_clear().envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Reply::of(command.stdin(input).output().unwrap())
}

#[test]
fn a18_devices_pipes_and_endless_files_are_no_artifacts() {
    let hive = TestVault::new();
    let pipe = hive.dir().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    for file in ["/dev/zero", "/dev/urandom", "pipe"] {
        let reply = hive.refuses("artifact", &["put", file], 2);
        assert!(
            reply.get("SUM").contains("is not a regular file; to store the output of a program, pipe it"),
            "{reply:#?}"
        );
    }
    let huge = File::create(hive.dir().join("huge")).unwrap();
    huge.set_len(limits::ARTIFACT_MAX_BYTES + 1).unwrap();
    let reply = hive.refuses("artifact", &["put", "huge"], 2);
    assert_eq!(
        (reply.get("STATUS"), reply.get("SUM")),
        ("LIMIT_EXCEEDED", "the content is too large; at most 16 GiB are stored")
    );
    assert_eq!(hive.pipe("artifact", &["put", "-"], "from a program").expect_exit(0).get("STATUS"), "STORED");
}

#[test]
fn one_endless_line_costs_no_memory() {
    let hive = TestVault::new();
    for args in [
        &["--batch"][..],
        &["--stream"],
        &["RequirementProposed", "-"],
        &["RequirementProposed", "--payload-file", "/dev/zero"],
    ] {
        let reply = with_little_memory(&hive, "append", args, Stdio::from(File::open("/dev/zero").unwrap()));
        assert_eq!(reply.code, Some(2), "{args:?}: {reply:#?}");
    }
    for (name, args) in
        [("activity", &["--file", "/dev/zero"][..]), ("activity", &["-"]), ("review", &["record", "--reviewer", "gpt"])]
    {
        let reply = with_little_memory(&hive, name, args, Stdio::from(File::open("/dev/zero").unwrap()));
        assert_eq!(reply.code, Some(2), "{name} {args:?}: {reply:#?}");
    }
}

#[test]
fn a18_an_endless_settings_file_costs_no_memory_and_keeps_nobody_from_working() {
    let hive = TestVault::new();
    let config = hive.vault().join("hiveforge.config.yaml");
    File::options().write(true).open(&config).unwrap().set_len(1 << 40).unwrap();
    let reply = with_little_memory(&hive, "checkpoint", &["hi"], Stdio::null());
    assert_eq!(reply.get("STATUS"), "RECORDED", "{reply:#?}");
    assert!(
        reply.stderr.contains("hiveforge.config.yaml is too large; at most 1048576 bytes are allowed"),
        "{reply:#?}"
    );
    // The same for files of agents.
    let id = hive.vault().join("Agents/main/current_heartbeat_id.txt");
    write_private(&id, b"");
    File::options().write(true).open(&id).unwrap().set_len(1 << 40).unwrap();
    let declared = hive.vault().join("Agents/main/deep_work");
    fs::create_dir_all(&declared).unwrap();
    File::create(declared.join("20260131115900.txt")).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(with_little_memory(&hive, "watchdog", &[], Stdio::null()).code, Some(0));
    for device in ["/dev/zero", "/dev/stdin"] {
        fs::remove_file(&config).unwrap();
        std::os::unix::fs::symlink(device, &config).unwrap();
        let reply = with_little_memory(&hive, "checkpoint", &["hi"], Stdio::null());
        assert_eq!(reply.get("STATUS"), "RECORDED", "{device}: {reply:#?}");
    }
}

#[test]
fn a17_a_batch_of_agents_costs_neither_time_nor_folders() {
    let hive = TestVault::new();
    let started = |n: u64| json!({"event_type": "AgentStarted", "subject": format!("agent:a{n}"), "actor": format!("agent:a{n}")});
    let many: Vec<_> = (0..limits::AGENTS_MAX_COUNT + 1).map(started).collect();
    let reply = hive.refuses_input("append", &["--batch"], jsonl(&many), 3);
    assert_eq!(
        (reply.get("REASON"), reply.get("SUM")),
        ("limit_reached", "line 1001: agent limit reached: 1000 active")
    );
    // Who only records something is announced, and nobody waits for it: any number, without a folder.
    let proposed = |n: u64| json!({"event_type": "RequirementProposed", "payload": {"title": "x"}, "actor": format!("agent:a{n}")});
    let many: Vec<_> = (0..3000).map(proposed).collect();
    hive.pipe("append", &["--batch"], jsonl(&many)).expect_exit(0);
    assert_eq!(count(&hive, "AgentStarted"), 3000);
    assert_eq!(ok(&hive, "hf-watchdog").get("STATUS"), "HEALTHY");
    let folders = fs::read_dir(hive.vault().join("Agents")).unwrap().count();
    assert!(folders <= 1, "{folders} folders");
    // One that a sign of life is expected of has its id.
    ok(&hive, "hf-session login --agent a7");
    ok(&hive, "hf-watchdog");
    assert!(hive.vault().join("Agents/a7/current_heartbeat_id.txt").exists());
}

#[test]
fn a17_the_number_of_waiting_supervisors_is_limited() {
    let mut hive = TestVault::new();
    // As if so many jobs had been fired.
    let mut events = hive.recorded();
    let job = |n: u64| forged(n, Kind::TaskProposed, &format!("task:j{n}"), json!({"title": "x", "job": true}));
    events.extend((1..=limits::JOBS_WAITING_MAX_COUNT).map(job));
    // The end of a log without a head record is judged by the rules.
    let last = limits::JOBS_WAITING_MAX_COUNT + 1;
    events.push(forged(last, Kind::RequirementProposed, "requirement:r", json!({"title": "x"})));
    hive.forge(&mut events);
    hive.at("2026-01-31T13:00:00Z");
    let reply = sh(&hive, "hf-job fire -- true").expect_exit(3);
    assert_eq!(
        (reply.get("REASON"), reply.get("SUM")),
        ("limit_reached", "job limit reached: 1000 are waiting for their turn")
    );
    assert_eq!(fs::read_dir(hive.vault().join("Jobs")).unwrap().count(), 0);
}

/// What a document writes to a terminal, and to a pipe.
#[test]
fn a18_a_document_is_escaped_on_a_terminal_and_untouched_in_a_pipe() {
    let story = TestJobVault::new("");
    let evil = b"a\x1b]0;owned\x07\x1b[2J\r\xe2\x80\xaeb\n";
    fs::write(story.dir().join("evil"), evil).unwrap();
    story.fire("cat evil");
    story.poll("T-0001");
    ok(&story, "hf-artifact put evil");
    for (name, args) in [("job", "log T-0001"), ("artifact", "get ART-0001")] {
        let words: Vec<&str> = args.split(' ').collect();
        let piped = story.process(name).args(&words).output().unwrap().stdout;
        assert_eq!(piped, evil, "{name}");
        let mut terminal = Command::new("script");
        terminal.args(["-qec", &format!("{} {args}", binary(name).display()), "/dev/null"]);
        terminal
            .current_dir(story.dir())
            .env_clear()
            .envs(story.process(name).get_envs().filter_map(|(k, v)| Some((k, v?))));
        terminal.env("PATH", "/usr/bin:/bin").env("TERM", "xterm").stdin(Stdio::null());
        let shown = String::from_utf8(terminal.output().expect("script, of util-linux").stdout).unwrap();
        assert!(shown.contains("a\\u{1b}]0;owned\\u{7}\\u{1b}[2J\\u{d}\\u{202e}b"), "{name}: {shown:?}");
        assert!(!shown.contains('\x1b'), "{name}: {shown:?}");
    }
    story.gone();
}

#[test]
fn a18_invisible_characters_are_escaped_in_every_value() {
    let hive = TestVault::new();
    let unseen = "\u{3164}\u{115f}\u{1160}\u{ffa0}\u{34f}\u{2800}\u{180b}\u{180f}\u{fe00}\u{fe0f}\u{e0100}\u{e01ef}\u{1d173}\u{1d17a}\u{17b4}\u{1bca0}";
    hive.run("task", &["propose", &format!("a{unseen}b")]).expect_exit(0);
    for args in [&["list"][..], &["list", "--json"], &["show", "T-0001"]] {
        let shown = hive.run("task", args);
        assert_eq!(shown.code, Some(0), "{args:?}: {shown:#?}");
        assert!(!shown.stdout.contains(|c| unseen.contains(c)), "{args:?}: {shown:#?}");
    }
    assert!(ok(&hive, "hf-task list").stdout.contains("a\\u{3164}\\u{115f}\\u{1160}\\u{ffa0}"));
}

#[test]
fn a18_another_users_vault_is_named_as_somebody_elses() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    assert!(!sh(&hive, "hf-task list").stderr.contains("somebody else's"));
    let other = rustix::process::geteuid().as_raw() + 1;
    if chown(hive.vault(), Some(other), None).is_err() {
        return; // Only root can give a directory away.
    }
    for line in ["hf-task list", "hf-log", "hf-verify"] {
        let reply = sh(&hive, line);
        let said = format!(
            "is somebody else's vault: it belongs to user {other}, is only read, and none of its commands is run"
        );
        assert_eq!(reply.stderr.matches(&said).count(), 1, "{line}: {reply:#?}");
    }
    assert_eq!(hive.refuses("stop", &["fire"], 3).get("REASON"), "not_owner");
    assert!(!Path::new(&hive.akashic("stop")).exists());
}
