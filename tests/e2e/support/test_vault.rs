//! A separate vault for every test, and the commands to run on it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command as Process, Output, Stdio};
use std::sync::{Mutex, OnceLock};

use assert_cmd::Command;
use hiveforge::base::{Actor, Digest, Now, Timestamp, Ulid};
use hiveforge::cli::COMMANDS;
use hiveforge::event::{Draft, Event, Kind};
use hiveforge::op::{self, AppendRequest, Caller, Context, Host, NewEvent};
use hiveforge::vault::{Scope, Trust, Vault, Verified};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};
use tempfile::{NamedTempFile, TempDir};

/// The time at which tests start.
pub const START: &str = "2026-01-31T12:00:00Z";

/// The step that the commands skip; only scripts/torture sets it.
pub static SABOTAGE: Mutex<Option<&'static str>> = Mutex::new(None);

/// A variable that marks the processes started by a test, whatever their working directory.
const HIVE: &str = "HIVE";
/// How long the kernel may take to end a killed process.
const KILLED_WAIT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// A temporary directory, with or without a vault in it.
pub struct TestVault {
    home: Home,
    /// The home directory of the user, which lists the vaults that the user trusts.
    user_home: TempDir,
    now: String,
    /// Where the commands write their replies as JSON, to be validated against the schema.
    replies: Option<NamedTempFile>,
}

impl TestVault {
    /// A directory without a vault.
    pub fn empty() -> Self {
        TestVault::empty_in(&std::env::temp_dir())
    }

    /// The same inside another directory.
    pub fn empty_in(folder: &Path) -> Self {
        // Only in the e2e tests: others count or fail every system call.
        let replies = (env!("CARGO_CRATE_NAME") == "e2e").then(|| NamedTempFile::new().expect("a temporary file"));
        let home = Home { dir: tempfile::tempdir_in(folder).expect("a temporary directory") };
        let user_home = tempfile::tempdir().expect("a temporary directory");
        TestVault { home, user_home, now: START.to_owned(), replies }
    }

    /// A directory with a new vault.
    pub fn new() -> Self {
        let hive = TestVault::empty();
        hive.run("init", &[]).expect_exit(0);
        hive
    }

    /// The time on the clock.
    pub fn now(&self) -> &str {
        &self.now
    }

    /// Sets the clock for the commands that follow.
    pub fn at(&mut self, now: &str) -> &Self {
        self.now = now.to_owned();
        self
    }

    pub fn dir(&self) -> &Path {
        self.home.dir.path()
    }

    pub fn vault(&self) -> PathBuf {
        self.dir().join("Vault")
    }

    /// The home directory of the user.
    pub fn user_home(&self) -> &Path {
        self.user_home.path()
    }

    /// The list of vaults that the user trusts.
    pub fn trusts(&self) -> Trust {
        Trust { file: Some(self.user_home().join(".config/hiveforge/trust")), vault_id: None }
    }

    /// The settings file in the vault.
    pub fn config(&self) -> PathBuf {
        self.vault().join("hiveforge.config.yaml")
    }

    /// Gives the vault these settings, as a user would: in its file. They take effect with the next command, and their
    /// commands run because the user created the vault.
    pub fn configure(&self, settings: &str) {
        write_private(&self.config(), settings.as_bytes());
    }

    /// The same in a vault with adopted settings, where the file alone has no effect.
    #[track_caller]
    pub fn configure_strictly(&self, settings: &str) {
        self.configure(settings);
        self.run("config", &["adopt"]).expect_exit(0);
    }

    /// Lets the commands in the settings be run, as an operator does who has looked at them.
    #[track_caller]
    pub fn trust(&self) {
        self.run("config", &["trust"]).expect_exit(0);
    }

    /// A command with a clean environment, in this directory.
    pub fn process(&self, name: &str) -> Process {
        let mut process = Process::new(binary(name));
        process.current_dir(self.dir()).env_clear().env("USER", "jo").env("HF_NOW", &self.now);
        process.envs(self.replies.iter().map(|file| ("HF_REPLIES", file.path())));
        process.env(HIVE, self.dir()).env("HOME", self.user_home());
        process.envs(SABOTAGE.lock().expect("no panic").map(|name| ("HF_SABOTAGE", name)));
        process
    }

    /// The same, as an assert_cmd command.
    pub fn command(&self, name: &str) -> Command {
        Command::from_std(self.process(name))
    }

    /// Runs `hf-NAME ARGS`.
    pub fn run(&self, name: &str, args: &[&str]) -> Reply {
        Reply::of(self.command(name).args(args).output().expect("the command runs"))
    }

    /// The same with standard input.
    pub fn pipe(&self, name: &str, args: &[&str], input: impl Into<Vec<u8>>) -> Reply {
        Reply::of(self.command(name).args(args).write_stdin(input).output().expect("the command runs"))
    }

    /// Asserts that a command is refused with this exit code and a reason in one line, and changes nothing.
    #[track_caller]
    pub fn refuses(&self, name: &str, args: &[&str], code: i32) -> Reply {
        self.refuses_input(name, args, "", code)
    }

    /// The same with standard input.
    #[track_caller]
    pub fn refuses_input(&self, name: &str, args: &[&str], input: impl Into<Vec<u8>>, code: i32) -> Reply {
        let before = self.contents();
        let reply = self.pipe(name, args, input).report().expect_exit(code);
        assert!(self.contents() == before, "the vault was changed: {reply:#?}");
        assert_ne!(reply.get("SUM"), "");
        // EXIT, STATUS, NEXT, SUM, and the REASON of a rule; for an operator, what stands in the way of all work.
        let own = reply.stdout.lines().filter(|line| !line.starts_with("STANDING:")).count();
        assert_eq!(own, if code == 3 { 5 } else { 4 }, "{reply:#?}");
        assert_eq!(reply.all("REASON").len(), usize::from(code == 3), "{reply:#?}");
        reply
    }

    /// Runs the next command of a reply, exactly as printed.
    #[track_caller]
    pub fn run_next(&self, reply: &Reply) -> Reply {
        let line = reply.get("NEXT").strip_prefix("ACTION hf-").expect("NEXT is a command");
        let words: Vec<&str> = line.split(' ').collect();
        self.run(words[0], &words[1..])
    }

    /// Starts a command whose output is read line by line; it ends when the value is dropped.
    pub fn start(&self, name: &str, args: &[&str]) -> Running {
        let mut child = self.process(name).args(args).stdout(Stdio::piped()).spawn().expect("the command starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        Running { child, lines }
    }

    /// Proposes a requirement with this title.
    #[track_caller]
    pub fn propose(&self, title: &str) -> Reply {
        let payload = json!({"title": title}).to_string();
        self.run("append", &["RequirementProposed", "--payload", &payload]).expect_exit(0)
    }

    /// The context of a command in this directory, for direct calls of the library.
    pub fn context(&self) -> Context {
        let now = Timestamp::parse(&self.now).expect("an exact time");
        let caller = Caller { actor: Actor::parse("user:jo").expect("an actor"), shell: op::Shell::Persons };
        let host = Host { trust: self.trusts(), ..Host::new(|| Now { millis: 0 }) };
        Context { now: Now { millis: now.0 as u64 * 1000 }, ..Context::new(self.vault(), caller, host) }
    }

    /// Proposes a requirement without starting a process.
    pub fn propose_here(&self, title: &str) -> hiveforge::base::Result<op::Recorded> {
        op::append(&self.context(), AppendRequest { event: proposal(title), mode: op::Mode::Write })
    }

    /// Verifies without starting a process.
    pub fn verify_here(&self) -> Verified {
        Vault::open(&self.vault()).expect("a vault").verify(Scope::ALL, &mut |_, _| {}).expect("a verdict")
    }

    /// Restores every file of the vault, and removes new ones.
    pub fn restore(&self, contents: &[(PathBuf, Vec<u8>)]) {
        let now = self.contents();
        for (path, _) in now.iter().filter(|(path, _)| !contents.iter().any(|(p, _)| p == path)) {
            fs::remove_file(path).expect("a file");
        }
        for file in contents.iter().filter(|file| !now.contains(file)) {
            write_private(&file.0, &file.1);
        }
    }

    /// The head record.
    pub fn head(&self) -> PathBuf {
        self.vault().join("Akashic/chain.json")
    }

    /// A file or directory in `Akashic/`.
    pub fn akashic(&self, name: &str) -> PathBuf {
        self.vault().join("Akashic").join(name)
    }

    /// A JSON file in `Akashic/`.
    #[track_caller]
    pub fn json(&self, name: &str) -> Value {
        let text = fs::read(self.akashic(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// Appends one event and returns the reply.
    #[track_caller]
    pub fn append(&self, event_type: &str, subject: &str, payload: Value) -> Reply {
        let payload = payload.to_string();
        self.run("append", &[event_type, "--subject", subject, "--payload", &payload]).expect_exit(0)
    }

    /// Proposes, analyses and approves a requirement. Returns the subject of the decision.
    #[track_caller]
    pub fn approved(&self, requirement: &str, title: &str) -> String {
        self.append("RequirementProposed", requirement, json!({"title": title}));
        let decision = self.analyzed(requirement);
        self.append("DecisionApproved", &decision, json!({}));
        decision
    }

    /// Records the analysis of a requirement. Returns the subject of the decision that it requests.
    #[track_caller]
    pub fn analyzed(&self, requirement: &str) -> String {
        self.append("RequirementAnalyzed", requirement, json!({}));
        let asked = self.events().pop().expect("an event");
        assert_eq!(asked["event_type"], "DecisionRequested", "{asked:#}");
        asked["subject"].as_str().expect("a subject").to_owned()
    }

    /// Claims a ready task and starts a run of it.
    #[track_caller]
    pub fn started(&self, task: &str, run: &str) {
        self.append("TaskAssigned", task, json!({}));
        self.append("RunStarted", run, json!({"task_id": task.strip_prefix("task:").expect("a task")}));
    }

    /// Appends lines as one batch.
    #[track_caller]
    pub fn batch(&self, lines: &[Value]) -> Reply {
        self.pipe("append", &["--batch"], jsonl(lines)).expect_exit(0)
    }

    /// A copy of the vault in another directory, as made by `cp -r`.
    pub fn copy(&self) -> TestVault {
        let mut copy = TestVault::empty();
        copy.now.clone_from(&self.now);
        let done = Process::new("cp").arg("-r").arg(self.vault()).arg(copy.vault()).output().expect("cp runs");
        // Temporary files may be renamed during the copy; they are not part of the vault.
        let complaints = String::from_utf8_lossy(&done.stderr).into_owned();
        // A file that is replaced while it is copied is left out. Only caches are replaced, and they can be missing.
        let is_usual = |line: &str| line.contains(".tmp'") || line.ends_with("as it was replaced while being copied");
        assert!(complaints.lines().all(is_usual), "{done:?}");
        copy
    }

    /// Replaces the log by these events, sealed as a valid chain whatever they contain. Removes the head record.
    pub fn forge(&self, events: &mut [Event]) {
        let (mut prev, mut bytes) = (Digest::ZERO, Vec::new());
        for event in events {
            bytes.extend(event.seal(prev, None));
            bytes.push(b'\n');
            prev = event.hash;
        }
        write_private(&self.segment(), &bytes);
        fs::remove_file(self.head()).expect("a head record");
    }

    /// The events of the only segment, as a base for forged ones.
    pub fn recorded(&self) -> Vec<Event> {
        self.lines().iter().map(|line| Event::read(line.as_bytes()).expect("an event")).collect()
    }

    /// Names and contents of the files in quarantine.
    pub fn quarantine(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let dir = self.vault().join("Akashic/quarantine");
        self.contents().into_iter().filter(|(path, _)| path.starts_with(&dir)).collect()
    }

    /// Every event of every segment, in the order of the log.
    pub fn events(&self) -> Vec<Value> {
        let dir = self.vault().join("Akashic/events");
        let segments = self.contents().into_iter().filter(|(path, _)| path.starts_with(&dir));
        let text: String = segments.map(|(_, bytes)| String::from_utf8(bytes).expect("UTF-8")).collect();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Every file of the vault with its content, to show that nothing changed.
    pub fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        collect(&self.vault(), &mut all);
        all.sort();
        all
    }

    /// The only segment of a new vault.
    pub fn segment(&self) -> PathBuf {
        self.vault().join("Akashic/events/2026-01/2026-01-31.jsonl")
    }

    pub fn lines(&self) -> Vec<String> {
        fs::read_to_string(self.segment()).expect("a segment").lines().map(str::to_owned).collect()
    }
}

/// The schema of replies, from its file.
pub fn reply_schema() -> &'static jsonschema::Validator {
    static SCHEMA: OnceLock<jsonschema::Validator> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/hf-reply.schema.json");
        let schema = serde_json::from_slice(&fs::read(file).expect("a file")).expect("JSON");
        jsonschema::validator_for(&schema).expect("a schema")
    })
}

impl Drop for TestVault {
    /// Checks every reply that a test saw against the schema, even if the test saw it as text.
    fn drop(&mut self) {
        let Some(file) = self.replies.take().filter(|_| !std::thread::panicking()) else { return };
        let text = fs::read_to_string(file.path()).unwrap_or_default();
        // A command that was killed may have left half a line.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let reply: Value = serde_json::from_str(line).expect("a reply is JSON");
            let wrong: Vec<String> =
                reply_schema().iter_errors(&reply).map(|e| format!("{}: {e}", e.instance_path())).collect();
            assert!(wrong.is_empty(), "{wrong:#?}\n{reply:#}");
        }
    }
}

/// The directory of a hive. Its processes are killed before it is removed: a supervisor would write into a vault that
/// is being removed, and the processes of a failed test would run for minutes.
struct Home {
    dir: TempDir,
}

impl Home {
    /// Every process that runs in this directory, or whose arguments or environment contain its path.
    fn processes(&self) -> Vec<OwnedFd> {
        let dir = self.dir.path();
        let names_dir = |text: Vec<u8>| memchr::memmem::find(&text, dir.as_os_str().as_bytes()).is_some();
        let is_ours = |pid: i32| {
            let file = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
            fs::read_link(file("cwd")).is_ok_and(|cwd| cwd.starts_with(dir))
                || ["environ", "cmdline"].iter().any(|name| fs::read(file(name)).is_ok_and(names_dir))
        };
        let all = fs::read_dir("/proc").into_iter().flatten();
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let held = pids.filter(|pid| is_ours(*pid)).filter_map(|pid| {
            let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
            // Check again, now that the pid cannot be reused.
            is_ours(pid).then_some(process)
        });
        held.collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // New processes may start while old ones end.
        for _ in 0..10 {
            let left = self.processes();
            for process in &left {
                let _ = pidfd_send_signal(process, Signal::KILL);
            }
            for process in &left {
                let _ = retry_on_intr(|| poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&KILLED_WAIT)));
            }
            if left.is_empty() {
                break;
            }
        }
    }
}

fn collect(dir: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let kind = fs::symlink_metadata(&path).expect("it is there").file_type();
        match kind.is_dir() {
            true => collect(&path, all),
            // Reading a pipe would block.
            false if kind.is_fifo() => all.push((path, Vec::new())),
            false => all.push((path.clone(), fs::read(&path).unwrap_or_default())),
        }
    }
}

/// Writes a file that only its owner can read and write, whatever the umask.
pub fn write_private(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("our own file");
}

/// A request to propose a requirement.
pub fn proposal(title: &str) -> NewEvent {
    let payload = json!({"title": title}).as_object().expect("an object").clone();
    NewEvent { event_type: "RequirementProposed".to_owned(), payload, ..Default::default() }
}

/// An event for a forged log, at the nth second of a test and without causes.
pub fn forged(n: u64, kind: Kind, subject: &str, payload: Value) -> Event {
    let draft = Draft {
        kind,
        subject: hiveforge::base::Subject::parse(subject).expect("a subject"),
        actor: Actor::parse("user:jo").expect("an actor"),
        parents: Vec::new(),
        key: None,
        payload: payload.as_object().expect("an object").clone(),
    };
    let second = Timestamp::parse(START).expect("an exact time").0 as u64 + n;
    Event::from_draft(draft, Ulid::from_parts(second * 1000, 7), Timestamp(second as i64))
}

/// Values as lines of JSON.
pub fn jsonl(values: &[Value]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// A command that runs in the background.
pub struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    /// Waits for the next line.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of a command: a link to the one binary.
pub fn binary(name: &str) -> PathBuf {
    static LINKS: OnceLock<PathBuf> = OnceLock::new();
    let file = if name.is_empty() { "hf".to_owned() } else { format!("hf-{name}") };
    LINKS.get_or_init(links).join(file)
}

/// A directory with a link to the binary for every command. Concurrent test processes create the same links.
/// HF_TEST_BINARIES names another directory of commands: a test that holds a finding must fail with those of the
/// version that it was found in.
#[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the tests, not for the commands")]
fn links() -> PathBuf {
    if let Some(folder) = std::env::var_os("HF_TEST_BINARIES") {
        return PathBuf::from(folder);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("commands");
    fs::create_dir_all(&folder).expect("a directory");
    let binary = assert_cmd::cargo::cargo_bin!("hf");
    for name in std::iter::once("hf").chain(COMMANDS.iter().map(|entry| entry.name)) {
        let link = folder.join(name);
        if fs::read_link(&link).is_ok_and(|target| target == binary) {
            continue;
        }
        let beside = folder.join(format!("{name}.{}", std::process::id()));
        std::os::unix::fs::symlink(binary, &beside).expect("a link");
        fs::rename(&beside, &link).expect("a link");
    }
    folder
}

/// The output of a command.
#[derive(Debug)]
pub struct Reply {
    pub stdout: String,
    pub stderr: String,
    pub code: Option<i32>,
}

impl Reply {
    pub fn of(output: Output) -> Self {
        Reply {
            stdout: String::from_utf8(output.stdout).expect("replies are UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("replies are UTF-8"),
            code: output.status.code(),
        }
    }

    /// Asserts the exit code, of the process and in the reply.
    #[track_caller]
    pub fn expect_exit(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(self.stdout.starts_with(&format!("EXIT:{code}\nSTATUS:")), "{self:#?}");
        self
    }

    /// The reply itself, which is on standard error if standard output is a document.
    pub fn report(self) -> Self {
        match self.stdout.is_empty() {
            true => Reply { stdout: self.stderr, stderr: String::new(), ..self },
            false => self,
        }
    }

    /// Every value of a key.
    pub fn all(&self, key: &str) -> Vec<&str> {
        self.stdout.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(':')).collect()
    }

    /// The only value of a key.
    #[track_caller]
    pub fn get(&self, key: &str) -> &str {
        match self.all(key).as_slice() {
            [one] => one,
            other => panic!("{key} occurs {} times: {self:#?}", other.len()),
        }
    }

    /// Standard output with everything masked that differs from run to run: ids, digests, the directory.
    pub fn masked(&self, hive: &TestVault) -> String {
        mask(&self.stdout.replace(&hive.dir().display().to_string(), "<dir>"))
    }
}

/// Replaces ULIDs, digests, reference tags and vault ids with placeholders.
pub fn mask(text: &str) -> String {
    let mut masked = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\0']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
            continue;
        }
        let hex = word.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        masked.push_str(match word.len() {
            26 if word.starts_with('0') => "<ulid>",
            64 if hex => "<digest>",
            32 if hex => "<random>",
            4 if hex && masked.ends_with('@') => "<tag>",
            _ => &word,
        });
        word.clear();
        masked.push(c);
    }
    masked.pop();
    masked
}

/// A small pseudorandom generator: the same numbers for the same seed.
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to, but not including, `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}
