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
    /// What the participants wrote about their own steps, in order: `run 1`, `passed 1`, `failed 1`, `fix 1`, `hand 1`; of
    /// planned tasks `task a`, `done a`, `broke a`; of an agent's own job `side 1`, after its failure in that round; and
    /// `disturbed` where something was killed, stopped or paused.
    pub steps: Vec<String>,
    /// The tasks of the plan, each after those before it.
    pub plan: Vec<String>,
    /// The rounds whose fixer fails.
    pub bad_fixes: Vec<u64>,
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

/// A task of the plan. Whether its first, second, third attempt succeeds was decided before; later ones do.
fn planned(id: &str) -> String {
    format!(
        "echo $$ >pids/run; printf 'task {id}\\n' >>steps; sleep $(cat lasts); n=$(grep -c '^task {id}$' steps); \
         code=$(cat task.{id}.$n 2>/dev/null || echo 0); \
         test $code = 0 && printf 'done {id}\\n' >>steps; test $code = 0 || printf 'broke {id}\\n' >>steps; exit $code"
    )
}

/// The task of the plan that has no command.
const BY_HAND: &str = "c";

struct World {
    dir: TempDir,
    /// Who does the work: an operator, or an agent in its own shell.
    agent: Option<&'static str>,
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
        let mut world = World { dir, agent: None, dice: Dice::new(seed), story: Vec::new(), kills: 0 };
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

    /// A command of whoever does the work.
    fn own_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command.envs(self.agent.map(|agent| ("HF_AGENT", agent)));
        command
    }

    /// A call of whoever does the work, which nobody kills.
    fn own_call(&mut self, args: &[&str]) -> String {
        let output = self.own_command(args).output().expect("the command runs");
        self.tell(args, &String::from_utf8_lossy(&output.stdout))
    }

    fn tell(&mut self, args: &[&str], reply: &str) -> String {
        let [status, next, sum] = ["STATUS", "NEXT", "SUM"].map(|key| value(reply, key));
        self.story.push(format!("{}: {status} {next} {sum}", args.join(" ")));
        reply.to_owned()
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
            self.own_command(args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command runs");
        for _ in 0..self.dice.below(5) {
            let millis = self.dice.below(200) as i64;
            if ends_within(&child, millis) {
                break;
            }
            self.disturb(&mut child);
        }
        let output = child.wait_with_output().expect("it was ours");
        let reply = self.tell(args, &String::from_utf8_lossy(&output.stdout));
        output.status.code().map(|_| reply)
    }

    /// Notes among the steps that something happened that is no step.
    fn mark(&self) {
        append(&self.path("steps"), "disturbed\n");
    }

    /// Something bad happens.
    fn disturb(&mut self, child: &mut Child) {
        match self.dice.below(8) {
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
            5 => self.kill_attendant(),
            6 => {
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
        if let Some(pid) = self.noted(who) {
            self.kill(who, pid);
        }
    }

    fn noted(&self, who: &str) -> Option<Pid> {
        let pid = self.read(&format!("pids/{who}")).trim().parse().ok().and_then(Pid::from_raw);
        pid.filter(|pid| self.is_here(*pid))
    }

    /// Whether a process works in the directory of this mission.
    fn is_here(&self, pid: Pid) -> bool {
        fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero())).is_ok_and(|cwd| cwd == self.dir.path())
    }

    /// Kills the process between `hf review run` and its reviewer.
    fn kill_attendant(&mut self) {
        let parent = |pid: Pid| {
            let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()?;
            Pid::from_raw(parent)
        };
        let attendant = self.noted("review").and_then(parent).filter(|pid| self.is_here(*pid));
        if let Some(pid) = attendant {
            self.kill("the attendant of a reviewer", pid);
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

    /// The processes of the mission: supervisors, and whatever works in its directory.
    fn own_processes(&self) -> Vec<Pid> {
        let pids = fs::read_dir("/proc").expect("a directory").flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
        let mut found: Vec<Pid> = pids.filter(|pid| self.is_here(*pid)).collect();
        found.extend(self.processes("supervise"));
        found
    }

    /// Waits for every process of the mission. Returns those that do not end.
    fn wait_for_all(&self) -> Vec<String> {
        for _ in 0..50 {
            let Some(pid) = self.own_processes().pop() else { return Vec::new() };
            if let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) {
                comes(&process, 200);
            }
        }
        self.own_processes().iter().map(|pid| pid.as_raw_nonzero().to_string()).collect()
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
        world.agent = world.dice.pick(&[None, Some("bee")]);
        let plan = world.plan();
        let end = (0..CALLS_MAX).find_map(|_| world.turn()).unwrap_or(End::Never);
        let left = world.wait_for_all();
        world.call(&["watchdog"]);
        let m1 = world.read("Vault/Autonomous/state/M1.md");
        let verified = world.call(&["verify", "--policy"]);
        world.story.push(world.read("steps").replace('\n', ", "));
        let steps = world.read("steps").lines().map(str::to_owned).collect();
        let bad_fixes = (1..=4).filter(|round| world.read(&format!("fix.{round}")) != "0").collect();
        let World { story, kills, .. } = world;
        Life { story, steps, plan, bad_fixes, end, kills, m1, verified, left }
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
                self.repair(value(&reply, "ROUND"));
                None
            }
            ("RUNNING", next) => {
                let task = next.strip_prefix("ACTION hf-task claim ").or(next.strip_prefix("ACTION hf-task show "));
                if let Some(task) = task {
                    self.do_by_hand(task);
                }
                None
            }
            // Stopped, paused: the next call goes on.
            _ => None,
        }
    }

    /// One thing that whoever does the work may do. Returns the end, if it is the end.
    fn turn(&mut self) -> Option<End> {
        match self.dice.below(4) {
            0 => self.poll(),
            1 if self.dice.one_in(3) => self.fire_by_hand(),
            _ => return self.go(),
        }
        None
    }

    /// Repairs a failure, as a reply or the state file asks for.
    fn repair(&mut self, round: &str) {
        let round = round.split('/').next().unwrap_or_default();
        append(&self.path("steps"), &format!("hand {round}\n"));
    }

    /// A line of the state file.
    fn m1(&self, name: &str) -> String {
        let text = self.read("Vault/Autonomous/state/M1.md");
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_default().to_owned()
    }

    /// A session that was lost polls the job that the state file names, and repairs what it is told to.
    fn poll(&mut self) {
        let [status, task, next] = ["STATUS", "TASK_ID", "NEXT_ACTION"].map(|name| self.m1(name));
        // What was repaired already, and what is not a job of this agent's to wait for.
        if status != "RUNNING" || !task.starts_with("T-") || next.starts_with("fix it") || next.starts_with("hf-task") {
            return;
        }
        let Some(reply) = self.watched(&["poll", &task, "1", "2"]) else { return };
        if (value(&reply, "STATUS"), value(&reply, "NEXT")) == ("FAIL", "PATCH") {
            self.repair(&self.m1("ROUND"));
        }
    }

    /// Fires a job of its own in the mission, waits for it, and repairs it if it failed.
    fn fire_by_hand(&mut self) {
        let next = self.m1("NEXT_ACTION");
        if self.m1("STATUS") != "RUNNING" || next.starts_with("fix it") || next.starts_with("ASK") {
            return;
        }
        let code = if self.dice.one_in(2) { "1" } else { "0" };
        let fired = self.own_call(&["job", "fire", "--", "sh", "-c", &format!("exit {code}")]);
        if value(&fired, "STATUS") != "FIRED" {
            return;
        }
        let reply = self.own_call(&["poll", value(&fired, "TASK_ID"), "1", "20"]);
        if value(&reply, "STATUS") == "FAIL" && self.m1("TASK_ID") == value(&fired, "TASK_ID") {
            let round = self.m1("ROUND").split('/').next().unwrap_or_default().to_owned();
            append(&self.path("steps"), &format!("side {round}\n"));
        }
    }

    /// Does a task of the plan that has no command.
    fn do_by_hand(&mut self, task: &str) {
        self.own_call(&["task", "claim", task]);
        self.own_call(&["task", "start", task]);
        let reply = self.own_call(&["task", "succeed", task]);
        if value(&reply, "EXIT") == "0" {
            append(&self.path("steps"), &format!("done {BY_HAND}\n"));
        }
    }

    /// Gives half of the missions a plan of up to three tasks, each after the one before it.
    fn plan(&mut self) -> Vec<String> {
        let count = if self.dice.one_in(2) { 0 } else { 1 + self.dice.below(3) as usize };
        let ids: Vec<String> = ["a", "b", BY_HAND][..count].iter().map(|id| (*id).to_owned()).collect();
        let mut tasks = Vec::new();
        for (n, id) in ids.iter().enumerate() {
            let mut task = serde_json::json!({"id": id, "title": id, "depends_on": ids[..n]});
            if id != BY_HAND {
                task["command"] = planned(id).into();
            }
            tasks.push(task);
            for attempt in 1..=3 {
                let code = if self.dice.one_in(3) { "1" } else { "0" };
                self.put(&format!("task.{id}.{attempt}"), code);
            }
        }
        if count > 0 {
            self.put("plan.json", &serde_json::json!({"tasks": tasks}).to_string());
            self.own_call(&["state", "plan", "plan.json"]);
        }
        ids
    }
}

fn append(path: &Path, line: &str) {
    use std::io::Write;
    let file = fs::File::options().append(true).open(path);
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("our own file");
}
