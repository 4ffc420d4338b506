//! scripts/heartbeat.sh: what it takes over from the old file, and that exactly one runs. What it types into a real pane
//! is in the system tests.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fs2::FileExt;
use hiveforge::policy::settings::Setting;
use hiveforge::vault::config;
use rustix::process::{Pid, Signal, test_kill_process};

use super::scripts::{Beside, script, source, until};
use crate::support::test_vault::{Reply, TestVault, binary};

/// A directory with a tree, and with an old file unless it is empty.
fn folder(hive: TestVault, old: &str) -> TestVault {
    fs::create_dir(hive.dir().join("ai-works")).unwrap();
    if !old.is_empty() {
        fs::write(hive.dir().join("heartbeat.conf"), old).unwrap();
    }
    hive
}

/// The script, with a tmux server that does not exist.
fn heartbeat(hive: &TestVault, args: &[&str]) -> Command {
    let mut command = script(hive, "heartbeat.sh", args);
    command.env("TMUX_TMPDIR", hive.dir()).stdin(Stdio::null());
    command
}

fn run(hive: &TestVault, args: &[&str]) -> Reply {
    Reply::of(heartbeat(hive, args).output().expect("the script runs"))
}

fn lock(hive: &TestVault) -> PathBuf {
    hive.dir().join("ai-works/stats/heartbeat.lock")
}

/// The newest log.
fn log(hive: &TestVault) -> String {
    let names = fs::read_dir(hive.dir().join("ai-works/logs")).unwrap().map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| path.to_string_lossy().contains("/heartbeat_20");
    names.filter(is_ours).max().map(|newest| fs::read_to_string(newest).unwrap()).unwrap_or_default()
}

/// Runs it in the foreground until the first heartbeat, and ends it with this signal. Returns what it printed.
#[track_caller]
fn once(hive: &TestVault, signal: Signal) -> String {
    // A process in the background may have INT ignored from the start, which a script cannot undo.
    let script = heartbeat(hive, &[]);
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(script.get_program()).args(script.get_args());
    command
        .current_dir(hive.dir())
        .env_clear()
        .envs(script.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null());
    let mut beside = Beside::start(command);
    let mut said = String::new();
    while !said.contains("] [HEARTBEAT] ") {
        said += &beside.next("");
        said.push('\n');
    }
    beside.signal(signal);
    let (rest, status) = beside.end();
    assert_eq!(status.code(), Some(0), "{said}{rest}");
    said + &rest
}

fn of_kind(hive: &TestVault, kind: &str) -> usize {
    hive.events().iter().filter(|event| event["event_type"] == kind).count()
}

/// The old file with everything that somebody may have put there.
const OLD: &str = "#!/bin/bash\n\
    # the old settings\n\
    INTERVAL_SECONDS=1 # a second\n\
    export INACTIVITY_WARNING_THRESHOLD=\"240\"\t# seconds\n\
    INACTIVITY_STOP_THRESHOLD='0540'\r\n\
    INTROSPECTION_THRESHOLD=$((20*60))\n\
    INTROSPECTION_THRESHOLD=\"$(( INTERVAL_SECONDS * (40 + 20) * 30 ))\"\n\
    MONITORED_DIRS=(\n\
    \x20 \"artifacts\"  # the first (1)\n\
    \x20 ai-works/projects/ 'a \"b\"'\n\
    )\n\
    MAX_RECOVERY_ATTEMPTS=$(touch pwned)\n\
    MAX_RECOVERY_WAIT_CYCLES=7; touch pwned\n\
    WEB_SEARCH_RESTRICTION_TIME=600\n\
    TOKEN=s3cret\n\
    touch pwned\n\
    MAX_LOG_DAYS=14\n\
    MAX_RECOVERY_WAIT_CYCLES=${INTERVAL_SECONDS}";

const TAKEN: &str = "# heartbeat.conf\n\
    # line 3: INTERVAL_SECONDS=1 => watchdog.interval_seconds: 1\n\
    # line 4: INACTIVITY_WARNING_THRESHOLD=240 => liveness.inactive_warn_seconds: 240, liveness.never_seen_warn_seconds: 240\n\
    # line 5: INACTIVITY_STOP_THRESHOLD=540 => liveness.inactive_error_seconds: 540, liveness.never_seen_seconds: 540\n\
    # line 6: INTROSPECTION_THRESHOLD=1200, replaced in line 7\n\
    # line 7: INTROSPECTION_THRESHOLD=1800 => liveness.introspection_error_seconds: 1800\n\
    # line 8: MONITORED_DIRS=[\"artifacts\",\"projects\",\"a \\\"b\\\"\"] => liveness.log_dirs: [\"artifacts\",\"projects\",\"a \\\"b\\\"\"]\n\
    # line 12: not taken over: MAX_RECOVERY_ATTEMPTS: neither a number nor plain arithmetic\n\
    # line 13: not taken over: MAX_RECOVERY_WAIT_CYCLES: neither a number nor plain arithmetic\n\
    # line 14: not taken over: WEB_SEARCH_RESTRICTION_TIME is unknown\n\
    # line 15: not taken over: TOKEN is unknown\n\
    # line 16: not taken over: not an assignment\n\
    # line 17: MAX_LOG_DAYS=14 => heartbeat.sh deletes its logs after that many days\n\
    # line 18: MAX_RECOVERY_WAIT_CYCLES=1 => watchdog.recovery_wait_cycles: 1\n\
    liveness:\n\
    \x20 inactive_warn_seconds: 240\n\
    \x20 never_seen_warn_seconds: 240\n\
    \x20 inactive_error_seconds: 540\n\
    \x20 never_seen_seconds: 540\n\
    \x20 introspection_error_seconds: 1800\n\
    \x20 log_dirs: [\"artifacts\",\"projects\",\"a \\\"b\\\"\"]\n\
    \x20 works_dir: \"HERE/ai-works\"\n\
    \x20 timezone: \"local\"\n\
    watchdog:\n\
    \x20 interval_seconds: 1\n\
    \x20 recovery_wait_cycles: 1\n\
    \x20 hooks:\n\
    \x20   on_beat: \"HF_TMUX_AGENT=main HF_TMUX_TARGET=\\\"${HF_TMUX_TARGET:-agent}\\\" 'SCRIPTS/deliver-tmux'\"\n\
    \x20   on_anomaly: \"HF_TMUX_AGENT=main HF_TMUX_TARGET=\\\"${HF_TMUX_TARGET:-agent}\\\" 'SCRIPTS/kick-tmux'\"\n\
    \x20   on_giving_up: \"HF_TMUX_AGENT=main HF_TMUX_TARGET=\\\"${HF_TMUX_TARGET:-agent}\\\" 'SCRIPTS/kick-tmux'\"\n";

/// What --print-config prints for the old file above.
fn taken(hive: &TestVault) -> String {
    let here = fs::canonicalize(hive.dir()).unwrap();
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts");
    TAKEN.replace("HERE", here.to_str().unwrap()).replace("SCRIPTS", scripts)
}

#[test]
fn print_config_shows_line_by_line_what_is_taken_over_and_changes_nothing() {
    let hive = folder(TestVault::empty(), OLD);
    fs::write(hive.dir().join("other.conf"), "INTERVAL_SECONDS=5\n").unwrap();
    let printed = run(&hive, &["--print-config"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    assert_eq!(printed.stdout, taken(&hive));
    let (read, warnings) = config::parse(&printed.stdout).unwrap();
    assert_eq!((read.count(Setting::InactiveErrorSeconds), warnings), (540, vec![]));
    assert_eq!(read.count(Setting::IntrospectionWarnSeconds), 1200, "two thirds of the old threshold");
    for named in [["--print-config", "-c", "other.conf"], ["-c", "other.conf", "--print-config"]] {
        assert!(run(&hive, &named).stdout.contains("\nwatchdog:\n  interval_seconds: 5\n  hooks:\n"));
    }
    let names = fs::read_dir(hive.dir()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    assert_eq!(names, ["ai-works", "heartbeat.conf", "other.conf"]);
    assert_eq!(fs::read_dir(hive.dir().join("ai-works")).unwrap().count(), 0);
    assert!(!printed.stdout.contains("s3cret"));
}

#[test]
fn a_value_of_the_old_file_is_a_number_or_plain_arithmetic() {
    const CANNOT: &str = "neither a number nor plain arithmetic";
    let huge = format!("$(({}1{}))", "(".repeat(300), ")".repeat(300));
    let cases: &[(&str, Result<u64, &str>)] = &[
        ("7", Ok(7)),
        ("007", Ok(7)),
        ("\"7\" # seven", Ok(7)),
        ("'7'", Ok(7)),
        ("$((1+2*3))", Ok(7)),
        ("$(( (20 - 6) / 2 % 8 ))", Ok(7)),
        ("$((3+-2))", Ok(1)),
        ("\"$((SEVEN))\"", Ok(7)),
        ("$SEVEN", Ok(7)),
        ("${SEVEN}", Ok(7)),
        ("$(($SEVEN*${SEVEN}))", Ok(49)),
        ("999999999", Ok(999_999_999)),
        ("0", Ok(0)),
        ("", Err(CANNOT)),
        ("seven", Err(CANNOT)),
        ("7s", Err(CANNOT)),
        ("-7", Err(CANNOT)),
        ("7 8", Err(CANNOT)),
        ("7#8", Err(CANNOT)),
        ("7;touch pwned", Err(CANNOT)),
        ("7&&touch pwned", Err(CANNOT)),
        ("$(touch pwned)", Err(CANNOT)),
        ("`touch pwned`", Err(CANNOT)),
        ("\"$(touch pwned)\"", Err(CANNOT)),
        ("$(($(touch pwned)))", Err(CANNOT)),
        ("$((SEVEN[$(touch pwned)]))", Err(CANNOT)),
        ("$((SEVEN[0]))", Err(CANNOT)),
        ("$((SEVEN=8))", Err(CANNOT)),
        ("$((SEVEN++))", Err(CANNOT)),
        ("$((1/0))", Err(CANNOT)),
        ("$((1%(SEVEN-7)))", Err(CANNOT)),
        ("$((2**62))", Err(CANNOT)),
        ("$((1<<62))", Err(CANNOT)),
        ("$((010))", Err(CANNOT)),
        ("$((0x10))", Err(CANNOT)),
        ("$((7SEVEN))", Err(CANNOT)),
        ("$((1,2))", Err(CANNOT)),
        ("$((1 2))", Err(CANNOT)),
        ("$(())", Err(CANNOT)),
        ("$((+))", Err(CANNOT)),
        ("'$((7))'", Err(CANNOT)),
        ("$((7)", Err(CANNOT)),
        ("${SEVEN:-7}", Err(CANNOT)),
        (&huge, Err(CANNOT)),
        ("$((NINE))", Err("NINE is not a number of an earlier line")),
        ("$((PATH))", Err("PATH is not a number of an earlier line")),
        ("$PATH", Err("PATH is not a number of an earlier line")),
        ("$((WORD))", Err("WORD is not a number of an earlier line")),
        ("99999999999999999999999999", Err("the number is too large")),
        ("$((9999999999*9999999999))", Err("the numbers are too large")),
        ("1000000000", Err("must be from 0 to 999999999")),
        ("$((1-2))", Err("must be from 0 to 999999999")),
    ];
    let hive = folder(TestVault::empty(), "");
    let mut old = "SEVEN=7\nWORD=eight\n".to_owned();
    cases.iter().for_each(|(value, _)| old += &format!("MAX_RECOVERY_ATTEMPTS={value}\n"));
    // Of bytes that are no text, and of a last line without an end.
    let mut old = old.into_bytes();
    old.extend(b"\xff\xfe=1\nMAX_LOG_DAYS=\x80\x1b[2J\nMAX_LOG_DAYS=3");
    fs::write(hive.dir().join("heartbeat.conf"), old).unwrap();
    let printed = run(&hive, &["--print-config"]);
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = printed.stdout.lines().collect();
    for (at, (value, expected)) in cases.iter().enumerate() {
        let line = lines.iter().find(|line| line.starts_with(&format!("# line {}:", at + 3))).expect(value);
        match expected {
            Ok(number) => assert!(
                line.contains(&format!(" MAX_RECOVERY_ATTEMPTS={number}, replaced"))
                    || line.ends_with(&format!("watchdog.max_recovery_attempts: {number}")),
                "{value}: {line}"
            ),
            Err(why) => {
                assert!(line.ends_with(&format!("not taken over: MAX_RECOVERY_ATTEMPTS: {why}")), "{value}: {line}")
            }
        }
    }
    assert!(printed.stdout.contains("=> heartbeat.sh deletes") && !printed.stdout.contains('\u{1b}'));
    assert!(!printed.stdout.contains("eight") && !hive.dir().join("pwned").exists());
}

#[test]
fn monitored_directories_are_a_plain_list_inside_the_tree() {
    const PLAIN: &str = "not a plain list of directories";
    const INSIDE: &str = "a directory must be inside ai-works";
    let cases: &[(&str, Result<&str, &str>)] = &[
        ("(\"artifacts\")", Ok("[\"artifacts\"]")),
        ("(artifacts projects)", Ok("[\"artifacts\",\"projects\"]")),
        ("( './artifacts//' \"ai-works/x/y\" ) # (two)", Ok("[\"artifacts\",\"x/y\"]")),
        ("artifacts", Ok("[\"artifacts\"]")),
        ("\"日本\"", Ok("[\"日本\"]")),
        ("()", Err("no directory in the list")),
        ("(\"\")", Err(INSIDE)),
        ("(/etc)", Err(INSIDE)),
        ("(../up)", Err(INSIDE)),
        ("(a/../../up)", Err(INSIDE)),
        ("(.)", Err(INSIDE)),
        ("(ai-works)", Err(INSIDE)),
        ("($(touch pwned))", Err(PLAIN)),
        ("(\"$HOME\")", Err(PLAIN)),
        ("(a*)", Err(PLAIN)),
        ("(a \"b\"c)", Err(PLAIN)),
        ("(a); touch pwned", Err(PLAIN)),
        ("(a) b", Err(PLAIN)),
        ("(a", Err(PLAIN)),
    ];
    let hive = folder(TestVault::empty(), "");
    for (value, expected) in cases {
        fs::write(hive.dir().join("heartbeat.conf"), format!("MONITORED_DIRS={value}\n")).unwrap();
        let printed = run(&hive, &["--print-config"]).stdout;
        let line = printed.lines().nth(1).unwrap();
        match expected {
            Ok(list) => assert_eq!(line, format!("# line 1: MONITORED_DIRS={list} => liveness.log_dirs: {list}")),
            Err(why) => assert_eq!(line, format!("# line 1: not taken over: MONITORED_DIRS: {why}"), "{value}"),
        }
    }
    assert!(!hive.dir().join("pwned").exists());
}

#[test]
fn every_key_of_the_old_file_becomes_a_setting_that_exists() {
    let text = source("heartbeat.sh");
    let rows = text.split("table='\n").nth(1).and_then(|rest| rest.split("\n'").next()).unwrap();
    assert_eq!(rows.lines().count(), 8);
    for row in rows.lines() {
        for setting in row.split(' ').skip(2).filter(|name| *name != "-") {
            assert!(Setting::parse(setting).is_some(), "{row}");
        }
    }
}

#[test]
fn what_cannot_work_is_refused_in_one_line() {
    let hive = folder(TestVault::empty(), "");
    for wrong in [&["-c"][..], &["-c", ""], &["-c", "missing"], &["-c", "."], &["--every"], &[""], &["run", "start"]] {
        let reply = run(&hive, wrong);
        assert_eq!((reply.code, reply.stdout.as_str(), reply.stderr.lines().count()), (Some(2), "", 1), "{wrong:?}");
    }
    let reply = Reply::of(heartbeat(&hive, &[]).env("HF_VAULT", "elsewhere").output().unwrap());
    assert_eq!((reply.code, reply.stderr.lines().count()), (Some(7), 1), "{reply:#?}");
    assert!(!hive.vault().exists());
    let nowhere = TestVault::empty();
    for action in ["run", "start", "stop", "restart", "status"] {
        let reply = run(&nowhere, &[action]);
        assert_eq!((reply.code, reply.stdout.as_str()), (Some(6), ""), "{action}: {reply:#?}");
        assert!(reply.stderr.starts_with("heartbeat.sh: no ai-works here") && reply.stderr.lines().count() == 1);
    }
    assert_eq!(fs::read_dir(nowhere.dir()).unwrap().count(), 0);
}

#[test]
fn the_old_file_becomes_settings_of_a_new_vault_once() {
    let hive = folder(TestVault::empty(), OLD);
    let said = once(&hive, Signal::TERM);
    assert!(said.contains("created the vault") && !said.contains("s3cret"), "{said}");
    let shown = hive.run("config", &["show"]).expect_exit(0);
    let expected = taken(&hive);
    let (expected, _) = config::parse(&expected).unwrap();
    for (name, value) in expected.by_name() {
        let line = shown.all("SETTING").into_iter().find(|line| line.starts_with(&format!("{name} "))).unwrap();
        if expected.values.keys().any(|setting| setting.as_str() == name) {
            let shown = line.splitn(3, ' ').nth(2).unwrap();
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            assert_eq!(shown, value.replace('\\', "\\\\"), "{name}");
        }
    }
    let changed = of_kind(&hive, "SettingsChanged");
    let settings = fs::read(hive.config()).unwrap();
    let said = once(&hive, Signal::INT);
    assert_eq!(of_kind(&hive, "SettingsChanged"), changed, "{said}");
    assert!(fs::read(hive.config()).unwrap() == settings && !said.contains("stays"), "{said}");
    // Twice started and stopped, and never watched in between.
    assert_eq!((of_kind(&hive, "AgentStarted"), of_kind(&hive, "AgentStopped")), (2, 2));
    assert_eq!(hive.events().last().unwrap()["payload"]["reason"], "the heartbeat stopped");
    assert!(!hive.dir().join("pwned").exists());
}

#[test]
fn settings_of_the_vault_stay_and_what_differs_is_said() {
    let hive = folder(TestVault::new(), OLD);
    hive.configure(
        "liveness:\n  inactive_warn_seconds: 9\n  works_dir: ../ai-works\nwatchdog:\n  hooks:\n    on_beat: 'true'\n",
    );
    let said = once(&hive, Signal::TERM);
    let stays: Vec<&str> = said.lines().filter(|line| line.contains("stays")).collect();
    assert!(stays.len() == 1 && stays[0].ends_with("liveness.inactive_warn_seconds is 9 in the settings of the vault, and stays so (heartbeat.conf:4: INACTIVITY_WARNING_THRESHOLD=240)"), "{said}");
    let text = fs::read_to_string(hive.config()).unwrap();
    assert!(text.contains("inactive_warn_seconds: 9\n") && text.contains("on_beat: 'true'\n"), "{text}");
    assert!(text.contains("inactive_error_seconds: 540\n") && text.contains("works_dir: ../ai-works\n"), "{text}");

    // Settings that cannot be read, and those in a layout that cannot be changed, do not stop it either.
    for other in ["liveness: [\n", "{liveness: {inactive_warn_seconds: 9}}\n"] {
        hive.configure(other);
        assert!(once(&hive, Signal::TERM).contains("[WARNING]"), "{other}");
        assert_eq!(fs::read_to_string(hive.config()).unwrap(), other);
    }
}

#[test]
fn adopted_settings_are_not_changed() {
    let hive = folder(TestVault::new(), "INTERVAL_SECONDS=60\nINACTIVITY_STOP_THRESHOLD=700\n");
    hive.configure_strictly("watchdog:\n  max_recovery_attempts: 2\n");
    let recorded = || (of_kind(&hive, "SettingsChanged"), of_kind(&hive, "SettingsAdopted"));
    let (settings, before) = (fs::read(hive.config()).unwrap(), recorded());
    let said = once(&hive, Signal::TERM);
    for line in [
        "liveness.inactive_error_seconds is 600 in the settings of the vault, and stays so (heartbeat.conf:2: INACTIVITY_STOP_THRESHOLD=700)",
        "settings are adopted, and watchdog.hooks.on_beat is not set in them",
    ] {
        assert!(said.lines().any(|said| said.ends_with(line)), "{line}: {said}");
    }
    assert!(!said.contains("watchdog.interval_seconds is"), "{said}");
    assert!(fs::read(hive.config()).unwrap() == settings);
    assert_eq!(recorded(), before);
}

#[test]
fn one_heartbeat_runs_per_tree_and_stop_ends_it() {
    let hive = folder(TestVault::empty(), "INTERVAL_SECONDS=1\n");
    for (action, code) in [("status", 1), ("stop", 0)] {
        let reply = run(&hive, &[action]);
        assert_eq!((reply.code, reply.stdout.as_str()), (Some(code), "not running\n"), "{action}");
    }
    let started = run(&hive, &["start"]);
    assert!(started.code == Some(0) && started.stdout.contains("] [HEARTBEAT] Heartbeat: "), "{started:#?}");
    let running = run(&hive, &["status"]);
    let lines: Vec<&str> = running.stdout.lines().collect();
    assert!(running.code == Some(0) && lines[0].starts_with("running since 20"), "{running:#?}");
    assert_eq!(lines[1], format!("vault: {}", fs::canonicalize(hive.vault()).unwrap().display()));
    assert!(lines[3].starts_with("last heartbeat: 2026013112"), "{lines:?}");
    for action in ["run", "start"] {
        let second = run(&hive, &[action]);
        assert_eq!((second.code, second.stdout.as_str(), second.stderr.lines().count()), (Some(5), "", 1), "{action}");
        assert!(second.stderr.contains("running already (pid "), "{second:#?}");
    }
    let old = fs::read_to_string(lock(&hive)).unwrap();
    assert_eq!(run(&hive, &["restart"]).code, Some(0));
    let new = fs::read_to_string(lock(&hive)).unwrap();
    assert_ne!(old.lines().next(), new.lines().next());
    let pid: i32 = new.lines().next().and_then(|line| line.strip_prefix("PID:")).unwrap().parse().unwrap();
    let stopped = run(&hive, &["stop"]);
    assert_eq!((stopped.code, stopped.stdout), (Some(0), format!("stopped (pid {pid})\n")));
    // The kernel has released its lock, so it is ending; somebody may still have to reap it.
    until("the end of the process", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.is_empty() || stat.rsplit(") ").next().unwrap().starts_with('Z')
    });
    assert_eq!(run(&hive, &["status"]).code, Some(1));
    assert_eq!(of_kind(&hive, "AgentStarted"), of_kind(&hive, "AgentStopped"));
    let modes = ["stats", "stats/heartbeat.lock", "logs"]
        .map(|name| fs::metadata(hive.dir().join("ai-works").join(name)).unwrap().permissions().mode() & 0o777);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap().trim();
    let umask = u32::from_str_radix(umask, 8).unwrap();
    assert_eq!(modes, [0o777 & !umask, 0o666 & !umask, 0o777 & !umask]);
}

#[test]
fn of_two_that_start_at_once_one_runs() {
    let hive = folder(TestVault::empty(), "INTERVAL_SECONDS=600\n");
    let both = [(); 2].map(|()| {
        heartbeat(&hive, &["start"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the script starts")
    });
    let both = both.map(|child| Reply::of(child.wait_with_output().unwrap()));
    let mut codes = both.each_ref().map(|reply| reply.code);
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(5)], "{both:#?}");
    assert_eq!((of_kind(&hive, "VaultInitialized"), of_kind(&hive, "AgentStarted")), (1, 1));
    assert_eq!(run(&hive, &["stop"]).code, Some(0));
}

/// As scripts/install leaves it, with nothing of it in the PATH and a name that needs quotes.
#[test]
fn it_finds_the_commands_and_the_hooks_where_they_are_installed() {
    let hive = folder(TestVault::empty(), "INTERVAL_SECONDS=600\n");
    let prefix = hive.dir().join("Jo's place");
    let (bin, share) = (prefix.join("bin"), prefix.join("share/hiveforge"));
    for dir in [&bin, &share] {
        fs::create_dir_all(dir).unwrap();
    }
    for name in ["watchdog", "config", "append", "init"] {
        std::os::unix::fs::symlink(binary(name), bin.join(format!("hf-{name}"))).unwrap();
    }
    for name in ["heartbeat.sh", "deliver-tmux", "kick-tmux"] {
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(name), share.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(share.join("heartbeat.sh"), hive.dir().join("heartbeat.sh")).unwrap();
    let here = |action: &str| {
        let mut command = heartbeat(&hive, &[]);
        let mut linked = Command::new("./heartbeat.sh");
        linked.arg(action).current_dir(hive.dir()).env_clear().stdin(Stdio::null());
        linked.envs(command.env("PATH", "/usr/bin:/bin").get_envs().filter_map(|(name, value)| Some((name, value?))));
        Reply::of(linked.output().expect("the script runs"))
    };
    let started = here("start");
    assert_eq!(started.code, Some(0), "{started:#?}");
    assert_eq!(here("stop").code, Some(0));
    // The hook was found and run: it says that there is no pane.
    let failed = hive.events().into_iter().find(|event| event["event_type"] == "HookFailed").expect("a failure");
    assert!(failed["payload"]["reason"].as_str().unwrap().contains("deliver-tmux: no pane agent"), "{failed:#}");
}

/// A process that has nothing to do with it.
struct Bystander(Child);

impl Bystander {
    fn start() -> Bystander {
        Bystander(Command::new("sleep").arg("600").spawn().unwrap())
    }

    /// A lock file that names it, with the time at which it was really started.
    fn lock_file(&self) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let started = stat.rsplit(") ").next().unwrap().split(' ').nth(19).unwrap();
        format!("PID:{}\nSTARTED:{started}\nSINCE:2026-01-31 12:00:00\n", self.0.id())
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn stop_signals_only_the_process_that_holds_the_lock() {
    let hive = folder(TestVault::empty(), "");
    fs::create_dir(hive.dir().join("ai-works/stats")).unwrap();
    let mut other = Bystander::start();
    // A file that was left behind.
    fs::write(lock(&hive), other.lock_file()).unwrap();
    assert_eq!(run(&hive, &["stop"]).stdout, "not running\n");
    assert_eq!(run(&hive, &["status"]).code, Some(1));
    // A lock that is held, in a file that names somebody else.
    let held = File::open(lock(&hive)).unwrap();
    held.lock_exclusive().unwrap();
    for text in [other.lock_file(), "PID:1\nSTARTED:1\n".to_owned(), "PID:$(kill 1)\n".to_owned(), String::new()] {
        fs::write(lock(&hive), &text).unwrap();
        let stopped = run(&hive, &["stop"]);
        assert_eq!((stopped.code, stopped.stdout.as_str()), (Some(3), ""), "{text}: {stopped:#?}");
    }
    assert!(other.lives());
    // A link in place of the file is not followed.
    drop(held);
    fs::remove_file(lock(&hive)).unwrap();
    let precious = hive.dir().join("precious");
    fs::write(&precious, "keep").unwrap();
    std::os::unix::fs::symlink(&precious, lock(&hive)).unwrap();
    assert_eq!(run(&hive, &["run"]).code, Some(3));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "keep");
}

#[test]
fn a_killed_heartbeat_takes_its_watchdog_along_and_can_be_started_again() {
    let hive = folder(TestVault::empty(), "INTERVAL_SECONDS=600\n");
    let mut beside = Beside::start(heartbeat(&hive, &[]));
    while !beside.next("").contains("] [HEARTBEAT] ") {}
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", beside.id())).unwrap();
    let watchdog = Pid::from_raw(children.trim().parse().expect("one child")).unwrap();
    beside.signal(Signal::KILL);
    beside.end();
    let name = || fs::read_to_string(format!("/proc/{}/stat", watchdog.as_raw_pid())).unwrap_or_default();
    until("the end of the watchdog", || test_kill_process(watchdog).is_err() || name().contains(") Z "));
    assert_eq!(run(&hive, &["status"]).code, Some(1));
    once(&hive, Signal::TERM);
    // Its silence counts from the second start.
    let kinds = hive.events().into_iter().filter_map(|event| Some(event["event_type"].as_str()?.to_owned()));
    let kinds: Vec<String> = kinds.filter(|kind| kind.starts_with("Agent")).collect();
    assert_eq!(kinds, ["AgentStarted", "AgentStopped", "AgentStarted", "AgentStopped"]);
}

#[test]
fn it_logs_every_tick_and_continues_after_one_that_failed() {
    let hive = folder(TestVault::empty(), "INTERVAL_SECONDS=1\nMAX_LOG_DAYS=2\n");
    let logs = hive.dir().join("ai-works/logs");
    fs::create_dir(&logs).unwrap();
    for (name, days) in [("heartbeat_1.log", 3), ("heartbeat_2.log", 1), ("other_1.log", 3), ("heartbeat_3.txt", 3)] {
        let file = File::create(logs.join(name)).unwrap();
        let now = file.metadata().unwrap().modified().unwrap();
        file.set_modified(now - Duration::from_secs(days * 86_400 + 3600)).unwrap();
    }
    let mut beside = Beside::start(heartbeat(&hive, &[]));
    while !beside.next("").contains("] [HEARTBEAT] ") {}
    let (vault, aside) = (hive.vault(), hive.dir().join("aside"));
    fs::rename(&vault, &aside).unwrap();
    while !beside.next("").contains("] [ERROR] the watchdog could not check: ") {}
    fs::rename(&aside, &vault).unwrap();
    while !beside.next("").contains("] [HEARTBEAT] ") {}
    beside.signal(Signal::TERM);
    assert_eq!(beside.end().1.code(), Some(0));
    let pattern =
        regex::Regex::new(r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] \[(HEARTBEAT|NOTICE|WARNING|ERROR)\] \S").unwrap();
    let text = log(&hive);
    assert!(text.lines().count() > 5 && text.lines().all(|line| pattern.is_match(line)), "{text}");
    let mut left: Vec<String> =
        fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.retain(|name| !name.starts_with("heartbeat_20") || name.len() != "heartbeat_20260131120000.log".len());
    left.sort();
    assert_eq!(left, ["heartbeat_2.log", "heartbeat_3.txt", "other_1.log"]);
}

#[test]
fn an_emergency_stop_does_not_keep_it_from_starting() {
    let hive = folder(TestVault::new(), "");
    hive.run("stop", &["Fire"]).expect_exit(0);
    let said = once(&hive, Signal::TERM);
    assert!(said.lines().any(|line| line.contains("] [HEARTBEAT] ") && line.ends_with(" STOPPED")), "{said}");
}
