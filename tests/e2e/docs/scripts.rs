//! The scripts for users: they call what exists, and do what their heads say, with real processes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use hiveforge::cli::COMMANDS;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::test_vault::{Reply, TestVault, binary, write_private};

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")
}

pub(super) fn source(name: &str) -> String {
    fs::read_to_string(scripts().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Every script that bash runs.
fn bash_scripts() -> Vec<(String, String)> {
    let names = fs::read_dir(scripts()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let all = names.map(|name| (source(&name), name)).map(|(text, name)| (name, text));
    all.filter(|(_, text)| text.starts_with("#!/usr/bin/env bash\n")).collect()
}

/// A script in the folder of a hive, with a clean environment and the commands on its path.
pub(super) fn script(hive: &TestVault, name: &str, args: &[&str]) -> Command {
    let path = format!("{}:/usr/bin:/bin", binary("").parent().unwrap().display());
    let mut command = Command::new(scripts().join(name));
    command.args(args).current_dir(hive.dir()).env_clear().env("PATH", path);
    command.envs(hive.process("").get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

fn run(hive: &TestVault, name: &str, args: &[&str]) -> Reply {
    Reply::of(script(hive, name, args).output().expect("the script runs"))
}

/// The same with standard input and a variable.
fn tell(hive: &TestVault, name: &str, variable: (&str, &str), input: &str) -> Reply {
    let mut command = script(hive, name, &[]);
    command.env(variable.0, variable.1).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the script runs");
    // It may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    Reply::of(child.wait_with_output().unwrap())
}

/// Runs a tool that need not be there.
fn tool(name: &str, args: &[&str]) -> Option<Reply> {
    Command::new(name).args(args).output().ok().map(Reply::of)
}

/// Looks again and again, for ten seconds at most, until something is so.
#[track_caller]
pub(super) fn until(what: &str, mut so: impl FnMut() -> bool) {
    const LOOKS: u32 = 1000;
    for _ in 0..LOOKS {
        if so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} did not come");
}

/// A script that runs beside the test, and is gone with it.
pub(super) struct Beside {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Beside {
    pub(super) fn start(mut command: Command) -> Beside {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the script starts");
        let lines = BufReader::new(child.stdout.take().unwrap());
        Beside { child, lines }
    }

    /// The next line that begins so, without that.
    #[track_caller]
    pub(super) fn next(&mut self, begin: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "it ended before {begin}");
            if let Some(rest) = line.trim_end().strip_prefix(begin) {
                return rest.to_owned();
            }
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it lives");
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it still prints, and how it ends.
    pub(super) fn end(&mut self) -> (String, ExitStatus) {
        let rest = std::io::read_to_string(&mut self.lines).unwrap();
        (rest, self.child.wait().unwrap())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn every_script_is_valid_and_describes_itself() {
    let all = bash_scripts();
    assert!(all.len() >= 11, "{}", all.len());
    for (name, text) in &all {
        let path = scripts().join(name);
        assert!(fs::metadata(&path).unwrap().permissions().mode() & 0o111 == 0o111, "{name} cannot be run");
        assert!(text.lines().nth(1).is_some_and(|line| line.starts_with("# ")), "{name} has no head");
        let file = path.to_str().unwrap();
        let parsed = tool("bash", &["-n", file]).expect("bash");
        assert_eq!((parsed.code, parsed.stderr.as_str()), (Some(0), ""), "{name}");
        if let Some(checked) = tool("shellcheck", &["--severity=warning", file]) {
            assert_eq!(checked.code, Some(0), "{}", checked.stdout);
        }
    }
}

/// The commands of ours that a line calls: the name, a subcommand if one follows, and the options.
fn calls(line: &str) -> Vec<(String, Vec<String>)> {
    let clean = |word: &str| word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-').to_owned();
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut found = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let file = word.rsplit(['/', '(']).next().unwrap();
        let Some(name) = clean(file).strip_prefix("hf-").map(str::to_owned) else { continue };
        if !COMMANDS.iter().any(|known| known.short() == name) {
            panic!("{line}: hf-{name} is not a command");
        }
        let rest = words[i + 1..].iter().take_while(|word| !["|", "||", "&&", ";", "--"].contains(word));
        found.push((name, rest.map(|word| clean(word)).filter(|word| !word.is_empty()).collect()));
    }
    found
}

/// Lines of a script or a unit that do something.
fn active(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.starts_with('#') && !line.is_empty())
}

#[test]
fn scripts_and_units_call_what_exists() {
    let hive = TestVault::empty();
    let texts = ["exec.sh", "poll_job.sh", "heartbeat.sh", "crontab.example", "hf-watchdog.service"].map(source);
    let mut called = Vec::new();
    for line in texts.iter().flat_map(|text| active(text)).filter(|line| !line.starts_with("Documentation=")) {
        for (command, words) in calls(line) {
            let sub: Vec<&str> = words.iter().take(usize::from(command == "job")).map(String::as_str).collect();
            let help = hive.run(&command, &[&sub[..], &["--help"]].concat());
            assert_eq!(help.code, Some(0), "{line}");
            for option in words.iter().filter(|word| word.starts_with("--")) {
                assert!(help.stdout.contains(option.as_str()), "{line}: hf-{command} has no {option}");
            }
            called.push(command);
        }
    }
    called.sort();
    called.dedup();
    assert_eq!(called, ["append", "config", "init", "job", "poll", "status", "watchdog"]);
}

#[test]
fn cron_and_systemd_each_run_the_watchdog_once() {
    let unit = source("hf-watchdog.service");
    let value = |key: &str| active(&unit).find_map(|line| line.strip_prefix(key)).unwrap().replace("%h", "$HOME");
    let crontab = source("crontab.example");
    let lines = [
        active(&crontab).next().unwrap().strip_prefix("* * * * * ").unwrap().to_owned(),
        format!("{} {}", value("Environment="), value("ExecStart=")),
    ];
    for line in lines {
        let hive = TestVault::empty();
        let home = hive.dir().join("a home");
        fs::create_dir_all(home.join(".local/bin")).unwrap();
        std::os::unix::fs::symlink(binary("watchdog"), home.join(".local/bin/hf-watchdog")).unwrap();
        let vault = home.join("hive/Vault");
        fs::create_dir(home.join("hive")).unwrap();
        hive.run("init", &[vault.to_str().unwrap()]).expect_exit(0);
        // A unit has no shell, and so no words to split.
        let line = if line.contains('"') { line } else { line.replace("$HOME", "\"$HOME\"") };
        let ran = Command::new("sh")
            .args(["-c", &line])
            .current_dir("/")
            .env_clear()
            .envs([("HOME", home.as_path()), ("HF_NOW", Path::new(crate::support::test_vault::START))])
            .output()
            .unwrap();
        assert!(ran.status.success() && ran.stdout.is_empty() && ran.stderr.is_empty(), "{line}: {ran:?}");
        let status = hive.run("status", &["--vault", vault.to_str().unwrap()]).expect_exit(0);
        assert_ne!(status.get("WATCHDOG"), "never", "{line}");
    }
}

#[test]
fn units_are_well_formed() {
    let hive = TestVault::empty();
    let [service, timer] = ["hf-watchdog.service", "hf-watchdog.timer"].map(|name| {
        let text = source(name).replace("%h/.local/bin/hf-watchdog", binary("watchdog").to_str().unwrap());
        let file = hive.dir().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    });
    if let Some(checked) = tool("systemd-analyze", &["--man=no", "verify", &service, &timer]) {
        assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""));
    }
}

#[test]
fn exec_sh_fires_and_checks_with_the_old_wording() {
    let hive = TestVault::new();
    let fired = run(&hive, "exec.sh", &["--fire", "echo one; echo two >&2; exit 3"]).expect_exit(0);
    let id = fired.get("TASK_ID").to_owned();
    hive.run("job", &["wait", &id]);
    let checked = run(&hive, "exec.sh", &["--check", &id]);
    assert_eq!((checked.stdout.as_str(), checked.stderr.as_str()), ("failed\n", "two\n"));

    let fired = run(&hive, "exec.sh", &["--fire", "echo", "a b"]).expect_exit(0);
    hive.run("job", &["wait", fired.get("TASK_ID")]).expect_exit(0);
    assert_eq!(run(&hive, "exec.sh", &["--check", fired.get("TASK_ID")]).stdout, "done\n");
    let log = hive.command("job").args(["log", fired.get("TASK_ID")]).output().unwrap();
    assert!(String::from_utf8(log.stdout).unwrap().contains("a b"));

    let fired = run(&hive, "exec.sh", &["--fire", "--retries", "2", "--", "true"]).expect_exit(0);
    hive.run("job", &["wait", fired.get("TASK_ID")]).expect_exit(0);
    assert_eq!(run(&hive, "exec.sh", &["--check", "T-0099"]).stdout, "not found\n");
    for wrong in [&["--fire"][..], &["--check"], &["--check", "a", "b"], &[], &["--help"]] {
        let reply = run(&hive, "exec.sh", wrong);
        assert!(reply.code == Some(64) && reply.stdout.starts_with("EXIT:64\nSTATUS:USAGE\n"), "{wrong:?}");
    }
}

#[test]
fn poll_job_sh_names_itself_and_answers_a_signal() {
    let hive = TestVault::new();
    let done = Command::new("mkfifo").arg(hive.dir().join("gate")).status().unwrap();
    assert!(done.success());
    let id = run(&hive, "exec.sh", &["--fire", "read line < gate"]).expect_exit(0).get("TASK_ID").to_owned();
    until("the job", || run(&hive, "exec.sh", &["--check", &id]).stdout == "processing\n");
    let called = scripts().join("poll_job.sh").display().to_string();
    let running = |again: &str| format!("EXIT:2\nSTATUS:RUNNING\nNEXT:ACTION {called} {again}\nSUM:Still running\n");
    let poll = |args: &[&str]| run(&hive, "poll_job.sh", args);
    let reply = poll(&[&id, "1", "1"]);
    assert_eq!((reply.stdout, reply.code), (running(&format!("{id} 1 1")), Some(0)));

    let mut waiting = Beside::start(script(&hive, "poll_job.sh", &[&id]));
    // It is hf-poll by now, and would hear the signal.
    let process = PathBuf::from(format!("/proc/{}", waiting.child.id()));
    until("hf-poll", || {
        let status = fs::read_to_string(process.join("status")).unwrap();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        let caught = u64::from_str_radix(&field("SigCgt:"), 16).unwrap();
        field("Name:") == "hf-poll" && caught & (1 << (Signal::TERM.as_raw() - 1)) != 0
    });
    waiting.signal(Signal::TERM);
    let (said, status) = waiting.end();
    assert_eq!((said, status.code()), (running(&id), Some(0)));

    fs::write(hive.dir().join("gate"), "go\n").unwrap();
    let over = poll(&[&id]);
    assert!(over.code == Some(0) && over.stdout.starts_with("EXIT:0\nSTATUS:DONE\nNEXT:NONE\n"), "{over:#?}");
    assert_eq!(poll(&["T-0099"]).stdout, "EXIT:99\nSTATUS:NOT_FOUND\nNEXT:NONE\nSUM:Job does not exist\n");
    assert!(poll(&[]).stdout.starts_with("EXIT:64\n"));
}

/// J10
#[test]
fn j10_poll_job_sh_prints_a_command_that_works_in_the_callers_folder() {
    let hive = TestVault::new();
    let sub = hive.dir().join("sub");
    fs::create_dir(&sub).unwrap();
    assert!(Command::new("mkfifo").arg(hive.dir().join("gate")).status().unwrap().success());
    let id = run(&hive, "exec.sh", &["--fire", "read line < gate"]).expect_exit(0).get("TASK_ID").to_owned();
    fs::copy(scripts().join("poll_job.sh"), hive.dir().join("poll_job.sh")).unwrap();
    let shell = |line: &str, folder: &Path| {
        let mut command = Command::new("bash");
        let environment = script(&hive, "poll_job.sh", &[]);
        command.args(["-c", line]).current_dir(folder).env_clear();
        command.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Reply::of(command.output().expect("bash runs"))
    };
    let installed = scripts().join("poll_job.sh").display().to_string();
    for (folder, called, printed) in [
        (hive.dir(), "./poll_job.sh", "./poll_job.sh"),
        (&sub, "../poll_job.sh", "../poll_job.sh"),
        (&sub, &installed, &installed),
        (hive.dir(), "bash poll_job.sh", "./poll_job.sh"),
    ] {
        let reply = shell(&format!("{called} {id} 1 1 --actor agent:ann"), folder);
        assert_eq!(reply.get("NEXT"), format!("ACTION {printed} {id} 1 1 --actor agent:ann"), "{called}");
        let again = shell(reply.get("NEXT").strip_prefix("ACTION ").unwrap(), folder);
        assert_eq!((again.get("STATUS"), again.get("NEXT")), ("RUNNING", reply.get("NEXT")), "{called}");
    }
    fs::write(hive.dir().join("gate"), "go\n").unwrap();
    assert_eq!(run(&hive, "poll_job.sh", &[&id]).get("STATUS"), "DONE");
}

#[test]
fn notify_sends_one_line_and_executes_none_of_it() {
    let hive = TestVault::new();
    let report = "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:$(touch pwned) `touch pwned` \"; touch pwned\nTASK_ID:T-0007\n";
    let sent = tell(&hive, "notify", ("HF_NOTIFY", "printf '<%s>'"), report);
    assert_eq!(sent.stdout, "<T-0007 FAIL: $(touch pwned) `touch pwned` \"; touch pwned>");
    assert_eq!(tell(&hive, "notify", ("HF_NOTIFY", "cat #"), report).stdout.lines().count(), 1);
    let report = "EVENT:TaskAborted\nHIVE:Bees\nSUM:$(touch pwned) `touch pwned` \"; touch pwned\nDO:hf-status\n";
    let sent = tell(&hive, "notify", ("HF_NOTIFY", "printf '<%s>'"), report);
    assert_eq!(sent.stdout, "<Bees: $(touch pwned) `touch pwned` \"; touch pwned; hf-status>");
    assert!(!hive.dir().join("pwned").exists());
    let silent = tell(&hive, "notify", ("HF_OTHER", ""), report);
    assert_eq!((silent.code, silent.stderr.lines().count()), (Some(1), 1));

    // As a hook, with what a job tells it.
    let told = hive.dir().join("told");
    let hook = format!("HF_NOTIFY='cat > {} #' {}", told.display(), scripts().join("notify").display());
    write_private(&hive.config(), format!("jobs:\n  on_finish: {}\n", serde_json::Value::from(hook)).as_bytes());
    let mut fire = script(&hive, "exec.sh", &["--fire", "exit 3"]);
    let id = Reply::of(fire.output().unwrap()).expect_exit(0).get("TASK_ID").to_owned();
    until("the message", || fs::read_to_string(&told).is_ok_and(|text| text.ends_with('\n')));
    let text = fs::read_to_string(&told).unwrap();
    assert!(text.starts_with(&format!("{id} FAIL: ")) && text.lines().count() == 1, "{text:?}");
}
