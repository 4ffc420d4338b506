//! hf-watchdog over agents: every rule at its limit, edges, hooks, recovery, gaps.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use hiveforge::base::Subject;
use hiveforge::event::{Event, Kind};
use hiveforge::policy::Settings;
use hiveforge::policy::due::{MachineFacts, Moment};
use hiveforge::state::State;
use hiveforge::state::Timer;
use hiveforge::vault::Vault;
use rustix::process::Signal;
use serde_json::json;

use crate::support::job_fixture::{TestJobVault, kill};
use crate::support::steps::{count, held, kinds, ok, refuses, sh};
use crate::support::test_vault::{Random, TestVault, forged, jsonl};
use crate::support::watchdog_fixture::{all_is_well, at, beat, configure, configured, file, moment, tick, told};

/// The settings of hooks that keep what they get: one file for each.
fn hooks(more: &str) -> String {
    let hook = |name: &str| {
        let env = "$HF_HEARTBEAT_ID $HF_STATUS $HF_ANOMALY_AGENT $HF_CODE";
        format!("    on_{name}: '(cat; echo \"{env}\") >> ../{name}.txt'\n")
    };
    let all: String = ["beat", "warning", "anomaly", "cleared"].map(hook).concat();
    format!("watchdog:\n{more}  hooks:\n{all}")
}

/// What a hook got so far; it is forgotten with the reading.
fn heard(hive: &TestVault, hook: &str) -> String {
    let path = hive.dir().join(format!("{hook}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(path);
    text
}

/// One look after the other: what is found in each second.
#[track_caller]
fn finds(hive: &mut TestVault, looks: &[(i64, &[&str])]) {
    for (second, found) in looks {
        assert_eq!(tick(hive, *second), *found, "at {second}");
    }
    all_is_well(hive);
}

#[test]
fn an_anomaly_is_reported_with_advice() {
    let mut hive = configured("");
    ok(&hive, "hf-checkpoint Here");
    let reply = at(&mut hive, 601, "hf-watchdog").expect_exit(1);
    assert_eq!(
        told(&hive, &reply),
        "EXIT:1\nSTATUS:ANOMALY\nNEXT:ACTION hf-status\nSUM:1 finding, 1 action\nHEARTBEAT_ID:20260131121001\n\
         ANOMALY:INACTIVE agent:main error 601\n\
         ADVICE:write an activity log, or a checkpoint if you are in the middle of something\n\
         DID:AnomalyDetected agent:main\nTICK_MS:<n>\n"
    );
    let status = hive.run_next(&reply).expect_exit(1);
    assert_eq!(
        status.all("PROBLEM"),
        ["2026-01-31T12:00:00Z age=601 anomaly agent:main INACTIVE do=hf-append AgentStopped --subject agent:main"]
    );
    all_is_well(&hive);
}

#[test]
fn an_agent_that_starts_and_shows_nothing_is_never_seen() {
    let mut hive = configured("");
    hive.append("AgentStarted", "agent:main", json!({}));
    let (warn, last) = ("NEVER_SEEN agent:main warn 301", "NEVER_SEEN agent:main warn 600");
    let over = "NEVER_SEEN agent:main error 601";
    finds(&mut hive, &[(299, &[]), (300, &[]), (301, &[warn]), (600, &[last]), (601, &[over])]);
    ok(&hive, "hf-checkpoint Here");
    finds(&mut hive, &[(602, &[])]);
    // Who was only announced by some command of its own is expected once it holds something.
    let mut hive = configured("");
    ok(&hive, "hf-task propose Form --actor agent:main");
    finds(&mut hive, &[(10_000, &[])]);
    ok(&hive, "hf-task claim T-0001 --actor agent:main --lease 10h");
    finds(&mut hive, &[(10_001, &["NEVER_SEEN agent:main error 10001"])]);
}

#[test]
fn an_agent_gets_a_warning_after_five_minutes_and_is_inactive_after_ten() {
    for sign in ["hf-checkpoint Here", "hf-activity --kind introspection"] {
        let mut hive = configured("");
        ok(&hive, sign);
        let (warn, late) = ("INACTIVE agent:main warn 301", "INACTIVE agent:main warn 599");
        let (last, over) = ("INACTIVE agent:main warn 600", "INACTIVE agent:main error 601");
        finds(&mut hive, &[(299, &[]), (300, &[]), (301, &[warn]), (599, &[late]), (600, &[last])]);
        assert_eq!(count(&hive, "AnomalyDetected"), 0, "what is below an error is never recorded");
        finds(&mut hive, &[(601, &[over])]);
    }
}

#[test]
fn introspections_become_due_in_three_steps() {
    let mut hive = configured("");
    ok(&hive, "hf-activity --kind introspection");
    for (limit, level) in [(900, "notice"), (1200, "warn"), (1800, "error")] {
        at(&mut hive, limit - 5, "hf-checkpoint Here").expect_exit(0);
        let before = tick(&mut hive, limit - 1);
        assert_eq!(tick(&mut hive, limit).len(), before.len(), "{level}");
        assert_eq!(tick(&mut hive, limit + 1), [format!("INTROSPECTION_OVERDUE agent:main {level} {}", limit + 1)]);
        assert_eq!(count(&hive, "AnomalyDetected"), usize::from(level == "error"));
    }
    ok(&hive, "hf-activity --kind introspection");
    finds(&mut hive, &[(1802, &[])]);
}

#[test]
fn an_id_from_the_future_is_reported_and_counts_when_its_time_has_come() {
    for (ahead, skewed) in [(119, false), (120, false), (121, true)] {
        let mut hive = configured("");
        ok(&hive, "hf-checkpoint Here");
        let name = format!("checkpoints/{}.txt", beat(601 + ahead));
        fs::write(file(&hive, &name), "Later\n").unwrap();
        let found = tick(&mut hive, 601);
        let skew = format!("CLOCK_SKEW agent:main error {ahead} {name}: the id is in the future");
        let inactive = "INACTIVE agent:main error 601".to_owned();
        assert_eq!(found, if skewed { vec![inactive, skew] } else { vec![] }, "{ahead}");
        assert_eq!(tick(&mut hive, 601 + ahead), [""; 0]);
        // It counts once, and from its own time on.
        let seconds = 601 + ahead + 301;
        assert_eq!(
            tick(&mut hive, seconds),
            ["INACTIVE agent:main warn 301", "INTROSPECTION_OVERDUE agent:main notice NNN"]
                .map(|line| line.replace("NNN", &seconds.to_string()))
        );
        assert_eq!(count(&hive, "CheckpointRecorded"), 2);
        all_is_well(&hive);
    }
}

#[test]
fn a_very_busy_agent_only_causes_a_warning() {
    let mut hive = configured("");
    let wishes = |n: usize| jsonl(&vec![json!({"event_type": "RequirementProposed", "payload": {"title": "x"}}); n]);
    hive.at(&moment(100).to_string());
    hive.pipe("append", &["--batch", "--actor", "agent:a"], wishes(49)).expect_exit(0);
    // With its announcement that makes fifty.
    finds(&mut hive, &[(100, &[])]);
    hive.pipe("append", &["--batch", "--actor", "agent:a"], wishes(1)).expect_exit(0);
    let reply = at(&mut hive, 159, "hf-watchdog").expect_exit(0);
    assert_eq!((reply.get("STATUS"), reply.get("ANOMALY")), ("WARNING", "RUNAWAY agent:a warn 51"));
    finds(&mut hive, &[(160, &[])]);
    assert_eq!(count(&hive, "AnomalyDetected"), 0);
}

#[test]
fn an_anomaly_is_recorded_only_when_it_begins_and_ends() {
    let mut hive = TestVault::new();
    ok(&hive, "hf-checkpoint Here");
    for second in (0..=1500).step_by(60) {
        tick(&mut hive, second);
    }
    let events = hive.events();
    let begun: Vec<_> = events.iter().filter(|event| event["event_type"] == "AnomalyDetected").collect();
    assert_eq!(begun.len(), 1);
    assert_eq!((&begun[0]["timestamp"], &begun[0]["actor"]), (&json!("2026-01-31T12:11:00Z"), &json!("core:watchdog")));
    let payload = json!({"code": "INACTIVE", "seconds": 660, "due_at": "2026-01-31T12:10:00Z"});
    assert_eq!(begun[0]["payload"], payload);
    ok(&hive, "hf-activity --kind introspection");
    let cleared = at(&mut hive, 1560, "hf-watchdog").expect_exit(0);
    assert_eq!((cleared.get("STATUS"), cleared.get("DID")), ("HEALTHY", "AnomalyCleared agent:main"));
    for second in (1620..=1800).step_by(60) {
        assert_eq!(tick(&mut hive, second), [""; 0]);
    }
    assert_eq!((count(&hive, "AnomalyDetected"), count(&hive, "AnomalyCleared")), (1, 1));
    all_is_well(&hive);
}

#[test]
fn a_check_changes_nothing_and_reports_the_same() {
    let mut hive = configured("");
    held(&hive, "agent:a");
    ok(&hive, "hf-activity --kind thinking --agent b");
    ok(&hive, "hf-deepwork start --strict 5 Long --agent c");
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001");
    hive.at(&moment(90_000).to_string());
    let before = hive.contents();
    let check = sh(&hive, "hf-watchdog --check").expect_exit(1);
    assert!(hive.contents() == before);
    assert_eq!(check.all("DID"), [""; 0]);
    let real = sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(check.all("ANOMALY"), real.all("ANOMALY"));
    refuses(&hive, "hf-watchdog --check --every 5", 2, "cannot be used with");
    refuses(&hive, "hf-watchdog --every 0", 2, "0");
    all_is_well(&hive);
}

#[test]
fn a_check_reads_agent_files_too() {
    let mut hive = configured("");
    ok(&hive, "hf-activity --kind introspection");
    fs::create_dir_all(file(&hive, "checkpoints")).unwrap();
    fs::write(file(&hive, &format!("checkpoints/{}.txt", beat(500))), "By hand\n").unwrap();
    let check = at(&mut hive, 601, "hf-watchdog --check");
    assert_eq!(check.all("ANOMALY"), [""; 0]);
    finds(&mut hive, &[(601, &[])]);
}

#[test]
fn hooks_are_told_about_beginnings_ends_and_every_heartbeat() {
    let mut hive = configured(&hooks("  remind_every: 100\n  recovery_wait_cycles: 1000\n"));
    ok(&hive, "hf-checkpoint Here");
    tick(&mut hive, 60);
    assert_eq!(
        heard(&hive, "beat"),
        "HEARTBEAT_ID:20260131120100\nSTATUS:HEALTHY\nAGENT:main\nCALL:beat\n20260131120100 HEALTHY main \n"
    );
    tick(&mut hive, 301);
    let advice = "ADVICE:write an activity log, or a checkpoint if you are in the middle of something\n";
    assert_eq!(
        heard(&hive, "warning"),
        format!(
            "HEARTBEAT_ID:20260131120501\nSTATUS:WARNING\nAGENT:main\nCALL:warning\nANOMALY:INACTIVE agent:main warn 301\n{advice}\
             20260131120501 WARNING main INACTIVE\n"
        )
    );
    tick(&mut hive, 302);
    assert_eq!((heard(&hive, "warning"), heard(&hive, "anomaly")), (String::new(), String::new()));
    tick(&mut hive, 601);
    let anomaly = heard(&hive, "anomaly");
    let said = format!(
        "HEARTBEAT_ID:20260131121001\nSTATUS:ANOMALY\nAGENT:main\nCALL:try\nANOMALY:INACTIVE agent:main error 601\n{advice}\
         20260131121001 ANOMALY main INACTIVE\n"
    );
    assert!(anomaly.starts_with(&said), "{anomaly}");
    // Reminded of at 701, 801, … and not between.
    for (second, reminded) in [(602, false), (700, false), (701, true), (702, false), (800, false), (802, true)] {
        tick(&mut hive, second);
        assert_eq!(!heard(&hive, "anomaly").is_empty(), reminded, "{second}");
    }
    ok(&hive, "hf-checkpoint Back");
    tick(&mut hive, 803);
    assert_eq!(
        heard(&hive, "cleared"),
        "HEARTBEAT_ID:20260131121323\nSTATUS:HEALTHY\nAGENT:main\nCALL:cleared\nCLEARED:INACTIVE agent:main\n\
         20260131121323 HEALTHY main INACTIVE\n"
    );
    assert_eq!(count(&hive, "AnomalyDetected"), 1, "a reminder is no event");
    all_is_well(&hive);
}

#[test]
fn a_hook_that_hangs_or_fails_is_recorded_and_the_tick_goes_on() {
    for (hook, reason) in [("exec sleep 60", "second"), ("echo no >&2; exit 3", "the hook exited with 3: no")] {
        let settings = format!(
            "hooks:\n  timeout_seconds: 1\nwatchdog:\n  recover_from: []\n  hooks:\n    on_anomaly: '{hook}'\n    on_beat: 'cat > ../beat.txt'\n"
        );
        let mut hive = configured(&settings);
        ok(&hive, "hf-checkpoint Here");
        let reply = at(&mut hive, 601, "hf-watchdog").expect_exit(1);
        assert_eq!(reply.get("ANOMALY"), "INACTIVE agent:main error 601");
        let events = hive.events();
        let failed = events.iter().find(|event| event["event_type"] == "HookFailed").expect("a complaint");
        assert_eq!(
            (&failed["subject"], &failed["payload"]["hook"]),
            (&json!("agent:main"), &json!("watchdog.hooks.on_anomaly"))
        );
        assert!(failed["payload"]["reason"].as_str().unwrap().contains(reason), "{failed:#}");
        assert!(heard(&hive, "beat").starts_with("HEARTBEAT_ID:"), "the other hooks are run");
        all_is_well(&hive);
    }
}

/// The hooks that fail: since when, and why.
fn failed_hooks(hive: &TestVault) -> serde_json::Value {
    let (_, state) = Vault::open(&hive.vault()).unwrap().view().unwrap();
    json!(state.entity(&Subject::SYSTEM).unwrap().as_system().failed_hooks())
}

/// H11: one event a tick. D4: the failure is mentioned nowhere but in the log.
#[test]
fn h11_a_hook_that_keeps_failing_is_recorded_when_it_begins_and_when_it_works_again() {
    let beat = |script: &str| format!("watchdog:\n  hooks:\n    on_beat: '{script}'\n");
    let edges = |hive: &TestVault| (count(hive, "HookFailed"), count(hive, "HookRecovered"));
    let mut hive = configured(&beat("test -e ../works || { echo no pane >&2; exit 4; }"));
    ok(&hive, "hf-checkpoint Here");
    for second in [60, 120, 180] {
        tick(&mut hive, second);
    }
    assert_eq!(edges(&hive), (1, 0));
    let since = json!({"at": "2026-01-31T12:01:00Z", "reason": "the hook exited with 4: no pane"});
    assert_eq!(failed_hooks(&hive), json!({"watchdog.hooks.on_beat": since}));
    let failed = hive.events().into_iter().find(|event| event["event_type"] == "HookFailed").unwrap();
    assert_eq!(failed["actor"], "core:hooks");
    fs::write(hive.dir().join("works"), "").unwrap();
    for second in [240, 300] {
        tick(&mut hive, second);
    }
    assert_eq!((edges(&hive), failed_hooks(&hive)), ((1, 1), json!(null)));
    let recovered = hive.events().into_iter().find(|event| event["event_type"] == "HookRecovered").unwrap();
    assert_eq!(
        (&recovered["subject"], &recovered["payload"]["hook"]),
        (&failed["subject"], &failed["payload"]["hook"])
    );
    // Another command has not failed yet, and one that is not set cannot fail.
    fs::remove_file(hive.dir().join("works")).unwrap();
    tick(&mut hive, 360);
    configure(&hive, &beat("exit 5"));
    tick(&mut hive, 420);
    assert_eq!(
        (edges(&hive), &failed_hooks(&hive)["watchdog.hooks.on_beat"]["at"]),
        ((3, 1), &json!("2026-01-31T12:07:00Z"))
    );
    configure(&hive, "");
    tick(&mut hive, 480);
    assert_eq!((edges(&hive), failed_hooks(&hive)), ((3, 1), json!(null)));
    all_is_well(&hive);
}

#[test]
fn a_silent_agent_is_woken_and_then_escalated_once() {
    let mut hive = configured(&hooks("  max_recovery_attempts: 2\n  recovery_wait_cycles: 3\n"));
    ok(&hive, "hf-checkpoint Here");
    let mut done = BTreeMap::new();
    // Before introspection is overdue as well.
    for n in 0..19 {
        let before = kinds(&hive).len();
        tick(&mut hive, 601 + 60 * n);
        for kind in kinds(&hive).split_off(before) {
            done.entry(kind).or_insert_with(Vec::new).push(n);
        }
        let told = heard(&hive, "anomaly").matches("HEARTBEAT_ID:").count();
        assert_eq!(told, usize::from([0, 4].contains(&n)), "at {n}");
    }
    // Three looks between two tries, and as many before somebody is asked.
    assert_eq!(done["RecoveryAttempted"], [0, 4]);
    assert_eq!((&done["EscalationRequired"], &done["AnomalyDetected"]), (&vec![8], &vec![0]));
    // An agent that comes back can be lost again.
    at(&mut hive, 2341, "hf-activity --kind introspection").expect_exit(0);
    tick(&mut hive, 2400);
    tick(&mut hive, 4000);
    assert_eq!(count(&hive, "RecoveryAttempted"), 3);
    all_is_well(&hive);
}

#[test]
fn two_concurrent_watchdogs_do_the_work_once() {
    for _ in 0..5 {
        let mut hive = configured(&hooks(""));
        ok(&hive, "hf-checkpoint Here");
        held(&hive, "agent:a");
        hive.at(&moment(1000).to_string());
        let all: Vec<_> =
            (0..4).map(|_| hive.process("watchdog").stdout(std::process::Stdio::null()).spawn().unwrap()).collect();
        all.into_iter().for_each(|mut child| assert!(child.wait().unwrap().code().is_some()));
        assert_eq!(count(&hive, "ClaimExpired"), 1);
        // INACTIVE for main, NEVER_SEEN for a.
        assert_eq!((count(&hive, "AnomalyDetected"), count(&hive, "RecoveryAttempted")), (2, 2));
        assert_eq!(heard(&hive, "anomaly").matches("ANOMALY:INACTIVE").count(), 1);
        all_is_well(&hive);
    }
}

#[test]
fn a_symlink_in_one_agents_folder_does_not_blind_the_watchdog() {
    let mut hive = configured("");
    ok(&hive, "hf-checkpoint Here --agent a");
    ok(&hive, "hf-checkpoint Here --agent b");
    symlink("/etc/passwd", hive.vault().join("Agents/a/checkpoints/20990101000000.txt")).unwrap();
    let reply = at(&mut hive, 601, "hf-watchdog").expect_exit(1);
    let link =
        "FILE_UNREADABLE agent:a warn 0 checkpoints/20990101000000.txt: it is a symbolic link, which is not followed";
    assert_eq!(reply.all("ANOMALY"), ["INACTIVE agent:a error 601", "INACTIVE agent:b error 601", link]);
    assert_eq!(count(&hive, "AnomalyDetected"), 2);
}

#[test]
fn the_watchdog_reports_a_stop_and_wakes_nobody() {
    let mut hive = configured(&hooks(""));
    ok(&hive, "hf-checkpoint Here");
    ok(&hive, "hf-stop fire");
    let reply = at(&mut hive, 601, "hf-watchdog").expect_exit(0);
    assert_eq!(reply.get("STATUS"), "STOPPED");
    assert_eq!(count(&hive, "RecoveryAttempted"), 0);
    all_is_well(&hive);
}

/// Kills the supervisor of the only job, and waits until it is gone.
fn kill_the_supervisor(hive: &TestVault) {
    let vault = hive.vault().display().to_string();
    let ours = |pid: i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<String> = line.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect();
        words.iter().any(|word| word == "supervise") && words.contains(&vault)
    };
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pids = all.filter_map(|name| name.parse().ok());
    kill(pids.find(|pid| ours(*pid)).expect("a supervisor"), Signal::KILL);
    // What it was about to start, or had started, ends with it, and is gone when nobody holds these any more.
    let job = fs::read_dir(hive.vault().join("Jobs")).unwrap().next().unwrap().unwrap().path();
    for name in ["lock", "alive"] {
        // The second one is not there yet if the command had not begun.
        if let Ok(held) = fs::File::open(job.join(name)) {
            fs2::FileExt::lock_shared(&held).unwrap();
        }
    }
}

#[test]
fn a_job_without_its_supervisor_is_lost_immediately_and_reported_once() {
    let hive = TestJobVault::new("");
    let mut here = hive.gate("here");
    // Before its command runs, a job is not lost: the next look starts it.
    hive.fire("echo x >here; exec sleep 5");
    here.line();
    kill_the_supervisor(&hive);
    let before = hive.contents();
    let check = sh(&hive, "hf-watchdog --check").expect_exit(1);
    assert!(hive.contents() == before);
    assert!(check.get("ANOMALY").starts_with("JOB_LOST task:"), "{check:#?}");
    let reply = sh(&hive, "hf-watchdog").expect_exit(1);
    assert_eq!(reply.all("ANOMALY"), check.all("ANOMALY"));
    assert_eq!(reply.get("ADVICE"), "a job disappeared without a result; check its log");
    assert_eq!(count(&hive, "RunCrashed"), 1);
    let again = sh(&hive, "hf-watchdog");
    assert_eq!((again.all("ANOMALY"), count(&hive, "RunCrashed")), (vec![], 1));
    all_is_well(&hive);
}

/// A thousand runs that beat at random and die at random; a look every so often.
#[test]
fn each_of_a_thousand_silent_runs_is_found_at_the_first_tick_after_its_deadline() {
    let (rules, mut random, mut state) = (Settings::default(), Random::new(7), State::default());
    let limit = 90;
    let mut runs = Vec::new();
    let mut n = 0;
    for run in 0..1000 {
        let began = random.below(600);
        let mut beats = vec![began];
        let dies = began + random.below(2400);
        loop {
            // Some are as late as they may be.
            let next = beats[beats.len() - 1] + if random.below(5) == 0 { limit } else { 1 + random.below(limit) };
            if next > dies {
                break;
            }
            beats.push(next);
        }
        runs.push((format!("run:r{run}"), beats));
    }
    let mut found: BTreeMap<String, i64> = BTreeMap::new();
    let interval = 37;
    let mut steps: BTreeMap<u64, Vec<(usize, Kind)>> = BTreeMap::new();
    for (index, (_, beats)) in runs.iter().enumerate() {
        steps.entry(beats[0]).or_default().push((index, Kind::RunStarted));
        beats[1..].iter().for_each(|at| steps.entry(*at).or_default().push((index, Kind::Heartbeat)));
    }
    for second in 0..3600u64 {
        for (index, kind) in steps.remove(&second).unwrap_or_default() {
            n += 1;
            let payload = if kind == Kind::RunStarted { json!({"task_id": format!("t{index}")}) } else { json!({}) };
            if kind == Kind::RunStarted {
                state.apply(&forged(second, Kind::TaskProposed, &format!("task:t{index}"), json!({"title": "x"})));
                state.apply(&forged(second, Kind::TaskReady, &format!("task:t{index}"), json!({})));
                state.apply(&forged(second, Kind::TaskAssigned, &format!("task:t{index}"), json!({})));
            }
            state.apply(&forged(second, kind, &runs[index].0, payload));
        }
        if second % interval != 0 {
            continue;
        }
        let now = moment(second as i64);
        let machine = MachineFacts::default();
        let due = Moment { state: &state, settings: &rules, now, machine: &machine }.due(Timer::ALL, None, usize::MAX);
        for late in due {
            assert_eq!(late.kind, Kind::RunTimedOut);
            let before = found.insert(late.subject.to_string(), second as i64);
            assert_eq!(before, None, "{} is found twice", late.subject);
            state.apply(&Event::from_draft(
                late.draft(),
                hiveforge::base::Ulid::from_parts(now.0 as u64 * 1000, n),
                now,
            ));
        }
    }
    for (run, beats) in &runs {
        let deadline = beats[beats.len() - 1] + limit;
        let first_look = (deadline / interval + 1) * interval;
        assert_eq!(found.get(run), Some(&(first_look as i64)), "{run} was last heard at {}", deadline - limit);
    }
}

#[test]
fn many_activity_logs_do_not_exhaust_descriptors() {
    let hive = TestVault::new();
    ok(&hive, "hf-activity --kind thinking");
    let folder = hive.vault().join("Agents/main/activity");
    for n in 0..200 {
        fs::write(folder.join(format!("202601300{:05}.md", 10_000 + n)), "old\n").unwrap();
    }
    // As many as a command needs for itself.
    let line = format!("ulimit -n 32; exec {}", crate::support::test_vault::binary("watchdog").display());
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &line]).current_dir(hive.dir()).env_clear().env("HF_NOW", crate::support::test_vault::START);
    let reply = crate::support::test_vault::Reply::of(shell.output().unwrap()).expect_exit(0);
    assert_eq!(reply.stderr, "", "no file is passed over");
}
