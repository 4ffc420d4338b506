//! One mission: its participants, what happens to them, and what was seen.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tempfile::TempDir;

use crate::dice::Dice;

/// How a mission ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Passed,
    /// All rounds are used up, and an operator is asked.
    Asked,
    /// It did not end in as many calls as any mission needs.
    Never,
}

pub struct Life {
    /// What happened, line by line.
    pub story: Vec<String>,
    /// What the participants wrote about their own steps, in order: `run 1`, `passed 1`, `failed 1`, `fix 1`, `hand 1`; and
    /// `disturbed` where something was killed, stopped or paused.
    pub steps: Vec<String>,
    pub end: End,
    /// How many processes were killed.
    pub kills: u64,
    /// What M1.md says at the end.
    pub m1: String,
    /// What `hf verify --policy` says at the end.
    pub verified: String,
    /// The processes of the vault that are left.
    pub left: Vec<String>,
}

/// More calls than any mission needs.
const CALLS_MAX: usize = 120;

/// The work of a round. What becomes of it was decided before: the file `run.N` has its exit code.
const RUNNER: &str = "echo $$ >pids/run; printf 'run %s\\n' $HF_ROUND >>steps; sleep $(cat lasts); \
                      code=$(cat run.$HF_ROUND); test $code = 0 && printf 'passed %s\\n' $HF_ROUND >>steps; \
                      test $code = 0 || printf 'failed %s\\n' $HF_ROUND >>steps; echo it says $code >&2; exit $code";
const FIXER: &str = "echo $$ >pids/fix; printf 'fix %s\\n' $HF_ROUND >>steps; sleep $(cat lasts); \
                     exit $(cat fix.$HF_ROUND)";
const REVIEWER: &str = "echo $$ >pids/review; cat >/dev/null; sleep $(cat lasts); cat opinion";

struct World {
    dir: TempDir,
    dice: Dice,
    story: Vec<String>,
    kills: u64,
}

fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if tempfile::tempfile_in(&memory).is_ok() { memory } else { std::env::temp_dir() }
}

/// The value of a line of a reply.
fn value<'a>(reply: &'a str, key: &str) -> &'a str {
    reply.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':')).unwrap_or_default()
}

impl World {
    fn new(seed: u64) -> World {
        let dir = tempfile::tempdir_in(folder()).expect("a directory");
        let mut world = World { dir, dice: Dice::new(seed), story: Vec::new(), kills: 0 };
        for name in ["home", "pids"] {
            fs::create_dir(world.path(name)).expect("a directory");
        }
        world.put("steps", "");
        let lasts = 1 + world.dice.below(25);
        world.put("lasts", &format!("0.{lasts:02}"));
        let chance = 1 + world.dice.below(4);
        for round in 1..=4 {
            let fails = world.dice.below(4) < chance;
            world.put(&format!("run.{round}"), if fails { "1" } else { "0" });
            let fails = world.dice.one_in(4);
            world.put(&format!("fix.{round}"), if fails { "3" } else { "0" });
        }
        world.put("design.md", "One form, one endpoint.\n");
        world.call(&["init"]);
        let fixer = world.dice.below(3) > 0;
        let mut settings = format!("runner:\n  command: {}\n", quoted(RUNNER));
        settings += &format!(
            "reviewers:\n  order: [gpt, gem]\n  gpt:\n    command: {0}\n  gem:\n    command: {0}\n",
            quoted(REVIEWER)
        );
        if fixer {
            settings += &format!("fixer:\n  command: {}\n", quoted(FIXER));
        }
        world.put("Vault/hiveforge.config.yaml", &settings);
        fs::set_permissions(world.path("Vault/hiveforge.config.yaml"), fs::Permissions::from_mode(0o600))
            .expect("ours");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hf"));
        command.args(args).current_dir(self.dir.path()).env_clear().stdin(Stdio::null());
        command.envs([("PATH", "/usr/bin:/bin"), ("USER", "jo")]).env("HOME", self.path("home"));
        command
    }

    /// A call of an operator, which nobody kills.
    fn call(&mut self, args: &[&str]) -> String {
        let output = self.command(args).output().expect("the command runs");
        let reply = String::from_utf8_lossy(&output.stdout).into_owned();
        self.story.push(format!("{}: {} {}", args.join(" "), value(&reply, "STATUS"), value(&reply, "SUM")));
        reply
    }

    /// A call during which something may happen to it or to others. None if it was killed: who sees that calls again,
    /// whatever was printed.
    fn watched(&mut self, args: &[&str]) -> Option<String> {
        let mut child =
            self.command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command runs");
        for _ in 0..self.dice.below(5) {
            let millis = self.dice.below(200) as i64;
            if ends_within(&child, millis) {
                break;
            }
            self.disturb(&mut child);
        }
        let output = child.wait_with_output().expect("it was ours");
        let reply = String::from_utf8_lossy(&output.stdout).into_owned();
        self.story.push(format!(
            "{}: {} {} {}",
            args.join(" "),
            value(&reply, "STATUS"),
            value(&reply, "NEXT"),
            value(&reply, "SUM")
        ));
        output.status.code().map(|_| reply)
    }

    /// Notes among the steps that something happened that is no step.
    fn mark(&self) {
        append(&self.path("steps"), "disturbed\n");
    }

    /// Something bad happens.
    fn disturb(&mut self, child: &mut Child) {
        match self.dice.below(7) {
            0 => self.kill("the call", Pid::from_child(child)),
            1 => {
                let supervisors = self.processes("supervise");
                if let Some(pid) = self.dice.pick_of(&supervisors) {
                    self.kill("a supervisor", pid);
                }
            }
            2 => self.kill_noted("run"),
            3 => self.kill_noted("fix"),
            4 => self.kill_noted("review"),
            5 => {
                self.mark();
                self.call(&["stop", "a test"]);
                self.call(&["resume", "--system", "--yes"]);
                self.mark();
            }
            _ => {
                self.mark();
                self.call(&["pause", "a test"]);
                self.call(&["resume", "--project", "main", "--yes"]);
                self.mark();
            }
        }
    }

    /// Kills a process. Marked on both sides: others go on meanwhile.
    fn kill(&mut self, what: &str, pid: Pid) {
        self.mark();
        if kill_process(pid, Signal::KILL).is_ok() {
            self.kills += 1;
            self.mark();
            self.story.push(format!("killed {what}"));
        }
    }

    /// Kills a participant that noted its own id, if that is still one of ours.
    fn kill_noted(&mut self, who: &str) {
        let pid = self.read(&format!("pids/{who}")).trim().parse().ok().and_then(Pid::from_raw);
        let is_ours = |pid: &Pid| {
            fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero())).is_ok_and(|cwd| cwd == self.dir.path())
        };
        if let Some(pid) = pid.filter(is_ours) {
            self.kill(who, pid);
        }
    }

    /// The processes whose command line names this vault, and this word.
    fn processes(&self, word: &str) -> Vec<Pid> {
        let vault = self.path("Vault").into_os_string().into_encoded_bytes();
        let has = |line: &[u8], what: &[u8]| line.windows(what.len()).any(|part| part == what);
        let pids = fs::read_dir("/proc").expect("a directory").flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_ours = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            has(&line, &vault) && has(&line, word.as_bytes())
        };
        pids.filter(is_ours).filter_map(Pid::from_raw).collect()
    }

    /// Waits for every process of the vault. Returns those that do not end.
    fn wait_for_all(&self) -> Vec<String> {
        for _ in 0..50 {
            let Some(pid) = self.processes("supervise").pop() else { return Vec::new() };
            if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
                comes(&process, 200);
            }
        }
        self.processes("supervise").iter().map(|pid| pid.as_raw_nonzero().to_string()).collect()
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn comes(what: &impl std::os::fd::AsFd, millis: i64) -> bool {
    let time = Timespec { tv_sec: millis / 1000, tv_nsec: millis % 1000 * 1_000_000 };
    let mut fds = [PollFd::new(what, PollFlags::IN)];
    retry_on_intr(|| poll(&mut fds, Some(&time))).expect("a poll") == 1
}

fn ends_within(child: &Child, millis: i64) -> bool {
    pidfd_open(Pid::from_child(child), PidfdFlags::empty()).is_ok_and(|process| comes(&process, millis))
}

impl Life {
    /// Lives the mission of a seed.
    pub fn live(seed: u64) -> Life {
        let mut world = World::new(seed);
        world.call(&["require", "propose", "Login"]);
        world.call(&["require", "analyze", "REQ-0001", "Easy."]);
        world.call(&["state", "start", "Login", "--requirement", "REQ-0001"]);
        // The design comes first: reviewers, who may find something or break off.
        for _ in 0..world.dice.below(3) {
            let opinion = world.dice.pick(&["PASS: scope\n", "FAIL: scope -> FIX: less\n"]);
            world.put("opinion", opinion);
            world.watched(&["review", "run", "design.md"]);
        }
        world.call(&["decide", "approve", "DEC-0001", "--yes"]);
        let end = (0..CALLS_MAX).find_map(|_| world.go()).unwrap_or(End::Never);
        let left = world.wait_for_all();
        world.call(&["watchdog"]);
        let m1 = world.read("Vault/Autonomous/state/M1.md");
        let verified = world.call(&["verify", "--policy"]);
        world.story.push(world.read("steps").replace('\n', ", "));
        let steps = world.read("steps").lines().map(str::to_owned).collect();
        let World { story, kills, .. } = world;
        Life { story, steps, end, kills, m1, verified, left }
    }
}

impl World {
    /// One call, and what its caller does with the reply. Returns the end, if it is the end.
    fn go(&mut self) -> Option<End> {
        let reply = self.watched(&["state", "go", "--max", "20s"])?;
        match (value(&reply, "STATUS"), value(&reply, "NEXT")) {
            ("DONE", _) => Some(End::Passed),
            ("ROUND_LIMIT", "ASK operator") => Some(End::Asked),
            ("FAIL", "PATCH") => {
                let round = value(&reply, "ROUND").split('/').next().unwrap_or_default().to_owned();
                append(&self.path("steps"), &format!("hand {round}\n"));
                None
            }
            // Stopped, paused, still running: the next call goes on.
            _ => None,
        }
    }
}

fn append(path: &Path, line: &str) {
    use std::io::Write;
    let file = fs::File::options().append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("our own file");
}
