//! Jobs with real processes, signals and files. No test sleeps to wait for something: it blocks on a pipe, a lock or an
//! exit.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{FdFlags, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, pidfd_send_signal, waitpid};
use tempfile::TempDir;

use super::identity::Stat;
use super::*;
use crate::base::{EntityId, Now, Timestamp};
use crate::vault::lock::{LockMode, acquire, try_acquire};

const LOG: &str = "Autonomous/logs/L-0001.txt";
const LONG: Duration = Duration::from_secs(600);

/// A command and how to run it.
struct Planned {
    spec: Spec,
    command: RunCommand,
}

impl Planned {
    fn set(&mut self, name: &str, value: OsString) {
        let RunEnvironment::Inherited(variables) = &mut self.command.environment else { unreachable!() };
        variables.push((name.into(), value));
    }
}

/// A vault with one job in it.
pub struct Fixture {
    dir: TempDir,
    pub job: JobDir,
}

/// The first run in a vault.
fn run_in(vault: &Path) -> EntityId {
    let name = vault.file_name().unwrap().to_str().unwrap();
    id(&format!("r1-{}", name.trim_start_matches('.')))
}

impl Fixture {
    pub fn new() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("Akashic")).unwrap();
        let job = JobDir::create(dir.path(), &id("t1")).unwrap();
        Fixture { dir, job }
    }

    pub fn vault(&self) -> &Path {
        self.dir.path()
    }

    /// The first run. No other fixture has it: the processes of a run are found by its id.
    pub fn run_id(&self) -> EntityId {
        run_in(self.vault())
    }

    /// A shell script that runs in the vault.
    fn script(&self, text: &str) -> Planned {
        self.command(&["bash", "-c", text])
    }

    fn command(&self, argv: &[&str]) -> Planned {
        let spec = Spec {
            env: Vec::new(),
            secrets: Vec::new(),
            timeout: None,
            kill_grace: LONG,
            log_max_bytes: 1 << 20,
            heartbeat: None,
            beat: Beat::Timer,
            extra: Default::default(),
            kept_env: Vec::new(),
            control_group: false,
            lock_inode: None,
        };
        let command = RunCommand {
            argv: argv.iter().map(OsString::from).collect(),
            cwd: self.vault().into(),
            environment: RunEnvironment::Inherited(Vec::new()),
            agent: None,
        };
        Planned { spec, command }
    }

    /// Runs it in this process as run `r1`.
    fn run(&self, planned: &Planned, watch: &mut Watcher) -> ExitRecord {
        self.run_as(self.run_id().as_str(), LOG, planned, watch)
    }

    fn run_as(&self, run_id: &str, log: &str, planned: &Planned, watch: &mut Watcher) -> ExitRecord {
        let signals = Signals::none().unwrap();
        let run_id = &id(run_id);
        let control = ControlWatch::of_job(&self.job);
        let run = JobRun {
            job: &self.job,
            spec: &planned.spec,
            command: &planned.command,
            run_id,
            log: Path::new(log),
            signals: &signals,
            control: &control,
            now: &noon,
        };
        let outcome = run.run(watch);
        outcome.written.unwrap();
        assert_eq!(self.job.exit_record(run_id).unwrap(), Some(outcome.record.clone()));
        outcome.record
    }

    fn log(&self) -> Vec<u8> {
        fs::read(self.vault().join(LOG)).unwrap()
    }

    /// A named pipe in the vault, open at both ends so that opening it never blocks.
    fn fifo(&self, name: &str) -> File {
        let path = self.vault().join(name);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        File::options().read(true).write(true).open(path).unwrap()
    }

    /// Starts a supervisor for it in a separate process, as run `r1`.
    fn fire(&self, planned: &Planned) -> Pid {
        let words: Vec<_> = planned.command.argv.iter().map(|word| word.to_str().unwrap()).collect();
        let mut spec = planned.spec.clone();
        spec.extra.insert("argv".to_owned(), words.into());
        self.job.put_spec(&spec).unwrap();
        let lock = self.job.take_lock(Duration::ZERO).unwrap();
        let words: [OsString; 4] =
            ["job::tests::as_supervisor".into(), "--exact".into(), "--ignored".into(), self.vault().into()];
        let supervisor = SupervisorProgram { program: "/proc/self/exe".into() };
        Pid::from_child(&start_supervisor(&supervisor, lock, &words, StartWith::CallersVariables).unwrap())
    }

    /// Waits until it is no longer supervised.
    fn wait(&self) {
        let waited = wait_for_end(&[&self.job], Need::All, LONG, &Signals::none().unwrap()).unwrap();
        assert_eq!(waited, Waited::Ended);
    }

    fn probe(&self) -> JobLiveness {
        probe(&self.job, Some(&self.run_id())).unwrap()
    }
}

impl Drop for Fixture {
    /// A failing test kills what it started: processes that work in its vault or supervise there.
    fn drop(&mut self) {
        let is_ours = |pid: i32| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == self.vault().as_os_str().as_bytes())
                || fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(self.vault()))
        };
        // New processes may appear while old ones are killed.
        let mut left = thread::panicking();
        while left {
            let all = fs::read_dir("/proc").into_iter().flatten();
            let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
            let held = pids.filter_map(|pid| {
                let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
                (is_ours(pid) && pidfd_send_signal(&process, Signal::KILL).is_ok()).then_some(process)
            });
            let held: Vec<_> = held.collect();
            left = !held.is_empty();
            for process in held {
                let _ = retry_on_intr(|| poll(&mut [PollFd::new(&process, PollFlags::IN)], None));
            }
        }
    }
}

fn id(text: &str) -> EntityId {
    EntityId::parse(text).unwrap()
}

fn noon() -> Now {
    Now { millis: 1_700_000_000_000 }
}

fn exited(code: i32) -> Ended {
    Ended::Exited { code }
}

fn lives(pid: i32) -> bool {
    Stat::read(pid).is_some_and(|stat| !stat.is_dead())
}

/// Reads a line from a named pipe.
fn line(mut fifo: &File) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while fifo.read_exact(&mut byte).is_ok() && byte[0] != b'\n' {
        text.push(char::from(byte[0]));
    }
    text
}

/// An observer that counts its calls and halts the run when told to.
#[derive(Default)]
struct Watcher {
    started: Option<Identity>,
    beats: usize,
    looks: usize,
    /// A file to write to at this heartbeat.
    at_beat: Option<(usize, File)>,
    /// The run is halted once this exists.
    halt_if: Option<PathBuf>,
}

impl Observer for Watcher {
    fn at_gate(&mut self, identity: &Identity) -> Option<Halt> {
        assert!(identity.lives().unwrap());
        None
    }

    fn started(&mut self, identity: &Identity) {
        self.started = Some(identity.clone());
    }

    fn beat(&mut self) {
        self.beats += 1;
        if let Some((at, file)) = &mut self.at_beat
            && *at == self.beats
        {
            file.write_all(b"go\n").unwrap();
        }
    }

    fn halt(&mut self) -> Option<Halt> {
        self.looks += 1;
        let halted = self.halt_if.as_ref().is_some_and(|path| path.exists());
        halted.then(|| Halt { why: "the test says so".to_owned() })
    }
}

#[test]
fn a_run_is_recorded_with_its_code_its_lines_and_its_log() {
    let fixture = Fixture::new();
    let script =
        "for n in 1 2 3 4 5 6 7; do echo e$n >&2; done; echo $HF_TASK_ID; echo $HF_RUN_ID-$X; pwd > at; exit 7";
    let mut spec = fixture.script(script);
    spec.set("X", "x".into());
    let mut watch = Watcher::default();
    let record = fixture.run(&spec, &mut watch);
    let expected = ExitRecord {
        run_id: fixture.run_id().to_string(),
        ended: exited(7),
        started_at: Timestamp(1_700_000_000),
        finished_at: Timestamp(1_700_000_000),
        last_line: Some(format!("{}-x", fixture.run_id())),
        last5: ["e3", "e4", "e5", "e6", "e7"].map(str::to_owned).to_vec(),
        log: LogSize { bytes: 27 + fixture.run_id().as_str().len() as u64, cut: 0, problem: None },
        left: Vec::new(),
    };
    assert_eq!(record, expected);
    let mut lines: Vec<String> = String::from_utf8(fixture.log()).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["e1", "e2", "e3", "e4", "e5", "e6", "e7", &format!("{}-x", fixture.run_id()), "t1"]);
    assert_eq!(fs::read_to_string(fixture.vault().join("at")).unwrap().trim_end(), fixture.vault().to_str().unwrap());
    let identity = watch.started.unwrap();
    assert_eq!(fixture.job.identity().unwrap(), Some(identity.clone()));
    assert_eq!(identity.group, identity.pid);
    assert_eq!(fixture.probe(), JobLiveness::Ended(record));
}

#[test]
fn a_log_is_private_and_within_its_size() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let mut spec = fixture.script("head -c 10000000 /dev/zero; echo end >&2");
    spec.spec.log_max_bytes = 4096;
    let record = fixture.run(&spec, &mut Watcher::default());
    assert_eq!(record.ended, exited(0));
    assert_eq!(record.last_line, Some("\0".repeat(400) + "…"));
    assert_eq!(record.last5, ["end"]);
    assert_eq!(record.log.bytes, 10_000_004);
    assert_eq!(fixture.log().len(), 4096);
    let said = format!("{:020} bytes were cut here", record.log.cut);
    assert!(fixture.log().windows(said.len()).any(|part| part == said.as_bytes()));
    let mode = fs::metadata(fixture.vault().join(LOG)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_signal_that_is_not_ours_is_recorded() {
    let fixture = Fixture::new();
    let record = fixture.run(&fixture.script("kill -USR1 $$"), &mut Watcher::default());
    assert_eq!(record.ended, Ended::Signalled { signal: 10 });
}

#[test]
fn bytes_that_are_no_text_reach_the_command() {
    let fixture = Fixture::new();
    let odd = OsString::from_vec(vec![b'a', 0xff, b'b']);
    let mut spec = fixture.script("printf %s \"$1$X\"");
    spec.command.argv.extend(["bash".into(), odd.clone()]);
    spec.set("X", odd);
    fixture.run(&spec, &mut Watcher::default());
    assert_eq!(fixture.log(), b"a\xffba\xffb");
}

#[test]
fn a_run_that_times_out_is_ended() {
    let fixture = Fixture::new();
    let mut spec = fixture.script("sleep 600");
    spec.spec.timeout = Some(Duration::from_millis(20));
    let mut watch = Watcher::default();
    assert_eq!(fixture.run(&spec, &mut watch).ended, Ended::TimedOut);
    assert!(!watch.started.unwrap().lives().unwrap());
}

#[test]
fn a_stopped_command_is_ended_too() {
    let fixture = Fixture::new();
    let mut spec = fixture.script("kill -STOP $$");
    spec.spec.timeout = Some(Duration::from_millis(20));
    assert_eq!(fixture.run(&spec, &mut Watcher::default()).ended, Ended::TimedOut);
}

#[test]
fn a_halted_command_that_ignores_term_is_killed_with_all_of_its_group() {
    let fixture = Fixture::new();
    // It creates the control file itself, which is noticed.
    let script = "trap '' TERM; sleep 600 & echo $!; echo x > Akashic/control; wait; sleep 600";
    let mut spec = fixture.script(script);
    spec.spec.kill_grace = Duration::from_millis(20);
    let mut watch = Watcher { halt_if: Some(fixture.vault().join("Akashic/control")), ..Watcher::default() };
    let record = fixture.run(&spec, &mut watch);
    assert_eq!(record.ended, Ended::Halted { why: "the test says so".to_owned() });
    assert!(!watch.started.unwrap().lives().unwrap());
    assert!(!lives(record.last_line.unwrap().parse().unwrap()));
}

#[test]
fn what_is_left_of_a_halted_run_has_the_same_grace() {
    let fixture = Fixture::new();
    // TERM ends the main process immediately; another process of its group cleans up first.
    let script = "(trap 'echo tidy; exit' TERM; echo x > Akashic/control; while :; do sleep 0.01; done) & wait";
    let spec = fixture.script(script);
    let mut watch = Watcher { halt_if: Some(fixture.vault().join("Akashic/control")), ..Watcher::default() };
    let record = fixture.run(&spec, &mut watch);
    assert_eq!(record.ended, Ended::Halted { why: "the test says so".to_owned() });
    assert_eq!(record.last_line.as_deref(), Some("tidy"));
}

#[test]
fn what_is_left_of_a_halted_run_is_killed_after_it() {
    let fixture = Fixture::new();
    // It ignores TERM and has no pipe open: only its group shows that it is alive.
    let script =
        "(trap '' TERM; echo $BASHPID; exec > /dev/null 2>&1; echo x > Akashic/control; exec sleep 600) & wait";
    let mut spec = fixture.script(script);
    spec.spec.kill_grace = Duration::from_millis(200);
    let mut watch = Watcher { halt_if: Some(fixture.vault().join("Akashic/control")), ..Watcher::default() };
    let record = fixture.run(&spec, &mut watch);
    assert_eq!(record.ended, Ended::Halted { why: "the test says so".to_owned() });
    assert!(!lives(record.last_line.unwrap().parse().unwrap()));
}

#[test]
fn a_halt_before_the_start_starts_nothing() {
    let fixture = Fixture::new();
    let mut watch = Watcher { halt_if: Some(fixture.vault().to_owned()), ..Watcher::default() };
    let record = fixture.run(&fixture.script("touch ran"), &mut watch);
    assert_eq!(record.ended, Ended::Halted { why: "the test says so".to_owned() });
    assert_eq!((watch.started, watch.looks), (None, 1));
    assert!(!fixture.vault().join("ran").exists());
    assert_eq!(fixture.probe(), JobLiveness::Ended(record));
}

#[test]
fn what_cannot_start_says_why() {
    let fixture = Fixture::new();
    fs::write(fixture.vault().join("plain"), "x").unwrap();
    fs::write(fixture.vault().join("odd"), "#!/no/such/shell\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(fixture.vault().join("odd"), fs::Permissions::from_mode(0o700)).unwrap();
    let mut missing_dir = fixture.command(&["true"]);
    missing_dir.command.cwd = "/no/such/directory".into();
    let cases = [
        (fixture.command(&["no-such-command"]), LOG, "command not found: no-such-command"),
        (fixture.command(&["./plain"]), "l2", "permission denied: ./plain is not executable"),
        (fixture.command(&["./odd"]), "l3", "the interpreter of ./odd was not found"),
        (fixture.command(&[]), "l4", "missing command"),
        (missing_dir, "l5", "cannot use the working directory /no/such/directory"),
        (fixture.command(&["true"]), "plain/log", "cannot open"),
        (fixture.command(&["true"]), LOG, "already exists"),
    ];
    for (n, (spec, log, why)) in cases.iter().enumerate() {
        let mut watch = Watcher::default();
        let record = fixture.run_as(&format!("r{n}"), log, spec, &mut watch);
        let Ended::NotStarted { reason } = record.ended else { panic!("{:?}", record.ended) };
        assert!(reason.contains(why), "{reason}");
        assert_eq!(watch.started, None);
    }
}

#[test]
fn a_grandchild_that_keeps_a_pipe_open_holds_nothing_and_is_left_alone() {
    let fixture = Fixture::new();
    let record = fixture.run(&fixture.script("sleep 600 & echo $!"), &mut Watcher::default());
    assert_eq!(record.ended, exited(0));
    let left: i32 = record.last_line.as_ref().unwrap().parse().unwrap();
    assert!(lives(left));
    assert_eq!(fixture.probe(), JobLiveness::Ended(record));
    // It does not block another run of the same job either.
    let again = fixture.run_as("r2", "again", &fixture.script("exit 3"), &mut Watcher::default());
    assert_eq!(again.ended, exited(3));
    assert_eq!(probe(&fixture.job, Some(&id("r2"))).unwrap(), JobLiveness::Ended(again));
    assert!(lives(left));
    kill_process(Pid::from_raw(left).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn a_command_inherits_its_alive_file_and_nothing_else() {
    let fixture = Fixture::new();
    let leaked = File::create(fixture.vault().join("leaked")).unwrap();
    rustix::io::fcntl_setfd(&leaked, FdFlags::empty()).unwrap();
    let _held = fixture.job.take_lock(Duration::ZERO).unwrap();
    let record = fixture.run(&fixture.command(&["ls", "-l", "/proc/self/fd"]), &mut Watcher::default());
    assert_eq!(record.ended, exited(0));
    let text = String::from_utf8(fixture.log()).unwrap();
    let mut open: Vec<String> = text.lines().filter_map(|line| Some(line.split_once(" -> ")?.1.to_owned())).collect();
    // The directory that it lists is open in the meantime.
    open.retain(|target| !(target.starts_with("/proc/") && target.ends_with("/fd")));
    // Sorted by kind, whatever their numbers are.
    open.sort_by_key(|target| (target.ends_with("/alive"), target.starts_with("pipe:")));
    assert_eq!(open.len(), 4, "{text}");
    assert_eq!(open[0], "/dev/null");
    assert!(open[1].starts_with("pipe:") && open[2].starts_with("pipe:"), "{text}");
    assert!(open[3].ends_with("Jobs/t1/alive"), "{text}");
}

#[test]
fn a_timer_beats_while_the_process_lives() {
    let fixture = Fixture::new();
    let fifo = fixture.fifo("go");
    let mut spec = fixture.script("read line < go");
    spec.spec.heartbeat = Some(Duration::from_millis(5));
    let mut watch = Watcher { at_beat: Some((3, fifo)), ..Watcher::default() };
    assert_eq!(fixture.run(&spec, &mut watch).ended, exited(0));
    assert!(watch.beats >= 3);
}

#[test]
fn output_beats_once_an_interval_and_silence_never() {
    let fixture = Fixture::new();
    let fifo = fixture.fifo("go");
    let mut spec = fixture.script("for n in {1..1000}; do echo $n; done; read line < go");
    (spec.spec.beat, spec.spec.heartbeat) = (Beat::Output, Some(Duration::from_millis(100)));
    let mut watch = Watcher { at_beat: Some((1, fifo)), ..Watcher::default() };
    assert_eq!(fixture.run(&spec, &mut watch).ended, exited(0));
    assert!(watch.beats < 10, "one heartbeat per interval, not per line: {}", watch.beats);
    let mut silent = fixture.script("sleep 600");
    (silent.spec.beat, silent.spec.heartbeat) = (Beat::Output, Some(Duration::from_millis(1)));
    silent.spec.timeout = Some(Duration::from_millis(50));
    let mut watch = Watcher::default();
    assert_eq!(fixture.run_as("r2", "silent", &silent, &mut watch).ended, Ended::TimedOut);
    assert_eq!(watch.beats, 0);
}

#[test]
fn a_job_without_a_run_is_judged_by_its_lock_and_its_boot() {
    let fixture = Fixture::new();
    assert_eq!(probe(&fixture.job, None).unwrap(), JobLiveness::Lost);
    let held = fixture.job.take_lock(Duration::ZERO).unwrap();
    assert_eq!(fixture.probe(), JobLiveness::Supervised);
    let alive = fixture.job.new_alive().unwrap();
    let mut identity = Identity::of_process(rustix::process::getpid(), fixture.run_id().as_str(), None).unwrap();
    fixture.job.put_identity(&identity).unwrap();
    drop(held);
    fixture.wait();
    assert_eq!(fixture.probe(), JobLiveness::Orphaned(identity.clone()));
    // Nothing is known about another run.
    assert_eq!(probe(&fixture.job, Some(&id("r2"))).unwrap(), JobLiveness::Lost);
    // In another boot, the same pid is a different process, and so is the holder of the lock.
    identity.boot_id = "another".to_owned();
    fixture.job.put_identity(&identity).unwrap();
    assert_eq!(fixture.probe(), JobLiveness::Lost);
    drop(alive);
}

#[test]
fn a_supervisor_runs_a_job_whose_caller_is_gone() {
    let fixture = Fixture::new();
    let (up, go) = (fixture.fifo("up"), fixture.fifo("go"));
    // The supervisor must not keep descriptors open that the caller's shell left open.
    let (mut reader, writer) = io::pipe().unwrap();
    rustix::io::fcntl_setfd(&writer, FdFlags::empty()).unwrap();
    let supervisor = fixture.fire(&fixture.script("echo $$ $PPID > up; read line < go; echo $line; exit 4"));
    // From the start, it has its own session.
    let own = supervisor.as_raw_nonzero().get();
    assert_eq!(Stat::read(own).unwrap().session, own);
    drop(writer);
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    let pids = line(&up);
    let (main, parent) = pids.split_once(' ').unwrap();
    assert_eq!(fixture.probe(), JobLiveness::Supervised);
    assert_eq!(parent, supervisor.as_raw_nonzero().to_string());
    let identity = fixture.job.identity().unwrap().unwrap();
    assert_eq!(identity.pid.to_string(), main);
    // Own session and groups: no signal from the caller's terminal or group reaches them.
    assert_eq!(identity.session, supervisor.as_raw_nonzero().get());
    assert_eq!(Stat::read(identity.supervisor).unwrap().group, identity.session);
    assert_eq!(
        wait_for_end(&[&fixture.job], Need::Any, Duration::ZERO, &Signals::none().unwrap()).unwrap(),
        Waited::TimeUp
    );
    (&go).write_all(b"done\n").unwrap();
    fixture.wait();
    let JobLiveness::Ended(record) = fixture.probe() else { panic!("{:?}", fixture.probe()) };
    assert_eq!((record.ended, record.last_line.as_deref()), (exited(4), Some("done")));
    waitpid(Some(supervisor), WaitOptions::empty()).unwrap();
    let mut left: Vec<_> =
        fs::read_dir(fixture.vault().join("Jobs/t1")).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    let exit = format!("exit-{}.json", fixture.run_id());
    assert_eq!(left, ["alive", "control", &exit, "identity.json", "lock", "spec.json", "taken"]);
}

#[test]
fn a_supervisor_ends_its_job_when_it_is_cancelled_or_terminated() {
    for by_signal in [false, true] {
        let fixture = Fixture::new();
        let up = fixture.fifo("up");
        let supervisor = fixture.fire(&fixture.script("echo up > up; sleep 600"));
        line(&up);
        match by_signal {
            true => kill_process(supervisor, Signal::TERM).unwrap(),
            false => fixture.job.cancel(CancelReason::Cancelled, None).unwrap(),
        }
        fixture.wait();
        let JobLiveness::Ended(record) = fixture.probe() else { panic!("{:?}", fixture.probe()) };
        let why = if by_signal { "the supervisor was terminated (signal 15)" } else { "cancelled" };
        assert_eq!(record.ended, Ended::Halted { why: why.to_owned() });
        waitpid(Some(supervisor), WaitOptions::empty()).unwrap();
    }
}

#[test]
fn a_supervisor_killed_with_9_leaves_an_orphan_that_can_be_ended() {
    let fixture = Fixture::new();
    let (up, down, _never) = (fixture.fifo("up"), fixture.fifo("down"), fixture.fifo("never"));
    // It gets TERM when its supervisor dies, and continues.
    let script = "trap 'echo term > down' TERM; echo up > up; while :; do read line < never; done";
    let supervisor = fixture.fire(&fixture.script(script));
    line(&up);
    kill_process(supervisor, Signal::KILL).unwrap();
    waitpid(Some(supervisor), WaitOptions::empty()).unwrap();
    assert_eq!(line(&down), "term");
    fixture.wait();
    let identity = fixture.job.identity().unwrap().unwrap();
    assert_eq!(fixture.probe(), JobLiveness::Orphaned(identity.clone()));
    kill_orphan(&fixture.job, &id("r2"), LONG).unwrap();
    assert!(identity.lives().unwrap());
    assert_eq!(kill_orphan(&fixture.job, &fixture.run_id(), Duration::from_millis(20)).unwrap(), [""; 0]);
    assert!(!identity.lives().unwrap());
    assert_eq!(fixture.probe(), JobLiveness::Lost);
}

#[test]
fn a_supervisor_reaps_what_its_job_leaves_to_it() {
    let fixture = Fixture::new();
    let (up, go) = (fixture.fifo("up"), fixture.fifo("go"));
    // A process in its own session whose parent is gone: the supervisor adopts it.
    let script = "(setsid bash -c 'echo $$ > up; read line < go; echo $PPID > up' &) ; read line < go2";
    let go2 = fixture.fifo("go2");
    let supervisor = fixture.fire(&fixture.script(script));
    let orphan: i32 = line(&up).parse().unwrap();
    (&go).write_all(b"x\n").unwrap();
    assert_eq!(line(&up), supervisor.as_raw_nonzero().to_string());
    let held = pidfd_open(Pid::from_raw(orphan).unwrap(), PidfdFlags::empty());
    if let Ok(held) = held {
        let mut fds = [PollFd::new(&held, PollFlags::IN)];
        retry_on_intr(|| poll(&mut fds, None)).unwrap();
    }
    (&go2).write_all(b"x\n").unwrap();
    fixture.wait();
    assert!(Stat::read(orphan).is_none(), "it is still a zombie");
    waitpid(Some(supervisor), WaitOptions::empty()).unwrap();
}

#[test]
fn a_wait_is_interrupted_by_a_signal() {
    let fixture = Fixture::new();
    let _held = fixture.job.take_lock(Duration::ZERO).unwrap();
    let up = fixture.fifo("up");
    // In a separate process: signals that were caught once would no longer end this one.
    let mut waiter = Command::new("/proc/self/exe")
        .args(["job::tests::as_waiter", "--exact", "--ignored"])
        .arg(fixture.vault())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(line(&up), "up");
    kill_process(Pid::from_child(&waiter), Signal::TERM).unwrap();
    assert!(waiter.wait().unwrap().success());
}

/// Not a test: the process that the test above interrupts.
#[test]
#[ignore = "the process that another test interrupts"]
fn as_waiter() {
    let Some(vault) = std::env::args_os().nth(4).map(PathBuf::from) else { return };
    let job = JobDir::open(&vault, &id("t1")).unwrap().unwrap();
    let signals = Signals::of_waiter().unwrap();
    fs::write(vault.join("up"), "up\n").unwrap();
    assert_eq!(wait_for_end(&[&job], Need::All, LONG, &signals).unwrap(), Waited::Interrupted);
    assert_eq!(signals.asked(), Some(signal_hook::consts::SIGTERM));
}

#[test]
fn many_wait_for_one_and_one_for_many() {
    let (first, second) = (Fixture::new(), Fixture::new());
    let held = first.job.take_lock(Duration::ZERO).unwrap();
    let both = [&first.job, &second.job];
    let none = Signals::none().unwrap();
    assert_eq!(wait_for_end(&both, Need::Any, LONG, &none).unwrap(), Waited::Ended);
    assert_eq!(wait_for_end(&both, Need::All, Duration::ZERO, &none).unwrap(), Waited::TimeUp);
    thread::scope(|scope| {
        let waiting: Vec<_> =
            (0..50).map(|_| scope.spawn(|| wait_for_end(&both, Need::All, LONG, &none).unwrap())).collect();
        drop(held);
        waiting.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), Waited::Ended));
    });
}

#[test]
fn a_lock_that_is_not_held_is_not_taken_over() {
    let fixture = Fixture::new();
    // The standard input of a test is not a lock.
    assert!(take_over(&fixture.job).is_err());
}

#[test]
fn a_new_alive_file_is_locked_immediately() {
    let fixture = Fixture::new();
    let first = fixture.job.new_alive().unwrap();
    let second = fixture.job.new_alive().unwrap();
    let found = fixture.job.alive_file().unwrap().unwrap();
    assert!(!try_acquire(&found, LockMode::Shared).unwrap());
    drop((first, second));
    acquire(&found, LockMode::Shared).unwrap();
}

/// Not a test: the process that `Fixture::fire` starts.
#[test]
#[ignore = "the supervisor of the other tests"]
fn as_supervisor() {
    let Some(vault) = std::env::args_os().nth(4) else { return };
    struct Own<'a>(&'a JobDir);
    impl Observer for Own<'_> {
        fn at_gate(&mut self, _: &Identity) -> Option<Halt> {
            None
        }
        fn started(&mut self, _: &Identity) {}
        fn beat(&mut self) {}
        fn halt(&mut self) -> Option<Halt> {
            self.0.cancel_reason().unwrap().is_some().then(|| Halt { why: "cancelled".to_owned() })
        }
    }
    let job = JobDir::open(Path::new(&vault), &id("t1")).unwrap().unwrap();
    let _held = take_over(&job).unwrap();
    let signals = Signals::of_supervisor().unwrap();
    let (spec, run_id) = (job.spec().unwrap(), &run_in(Path::new(&vault)));
    let words = spec.extra["argv"].as_array().unwrap().iter();
    let command = RunCommand {
        argv: words.map(|word| word.as_str().unwrap().into()).collect(),
        cwd: vault.into(),
        environment: RunEnvironment::Inherited(Vec::new()),
        agent: None,
    };
    let control = ControlWatch::of_job(&job);
    let run = JobRun {
        job: &job,
        spec: &spec,
        command: &command,
        run_id,
        log: Path::new(LOG),
        signals: &signals,
        control: &control,
        now: &noon,
    };
    run.run(&mut Own(&job)).written.unwrap();
}
