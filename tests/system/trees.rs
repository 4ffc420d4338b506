//! Random trees of processes, stopped, cancelled, aborted or timed out.
//!
//! Promise: when a reply says that nothing is left, nothing is. Every process of a tree writes a file every 10 ms; after
//! the reply no process of the tree is alive, and no file is written.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::machine::{Need, can, must, sized};
use crate::test_vault::{Reply, TestVault, write_private};

/// One interpreter makes the whole tree by forking. Each process may make a session, leave its parent, ignore TERM, HUP
/// and INT, close what it inherited, clear its environment, stop itself, or fork for as long as it lives.
const TREE: &str = r#"
import os, random, signal, sys, time
seed, folder, clears = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "yes"
rng = random.Random(seed)

def work(bomb):
    path = os.path.join(folder, str(os.getpid()))
    while True:
        with open(path, "w") as file:
            file.write("x")
        time.sleep(0.01)
        if bomb and len(os.listdir(folder)) < 200 and os.fork() == 0:
            path = os.path.join(folder, str(os.getpid()))

def reset(rng):
    if rng.random() < 0.4:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    if rng.random() < 0.4:
        os.setsid()
    if rng.random() < 0.3 and os.fork() > 0:
        os._exit(0)
    if rng.random() < 0.3:
        os.closerange(0, 64)

def node(seed, depth):
    rng = random.Random(seed)
    children = [rng.random() for _ in range(rng.randrange(0, 4))] if depth < 4 else []
    for child in children:
        if os.fork() == 0:
            reset(random.Random(child))
            node(child, depth + 1)
    if depth == 0:
        return
    bomb = rng.random() < 0.1
    if clears and rng.random() < 0.3:
        os.execve(sys.executable, [sys.executable, __file__, "0", folder, "work"], {})
    if rng.random() < 0.1:
        open(os.path.join(folder, str(os.getpid())), "w").close()
        os.kill(os.getpid(), signal.SIGSTOP)
    work(bomb)

if sys.argv[3] == "work":
    work(False)
node(seed, 0)
if rng.random() < 0.3:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(os.path.join(folder, "up"), "w").close()
if rng.random() < 0.2:
    os._exit(0)
work(False)
"#;

/// How a tree is ended.
#[derive(Clone, Copy, Debug)]
enum By {
    Cancel,
    Stop,
    TimeOut,
    Abort,
    /// The supervisor is killed first.
    CancelWithoutSupervisor,
    StopWithoutSupervisor,
    AbortWithoutSupervisor,
}

const WAYS: [By; 8] = [
    By::Cancel,
    By::Stop,
    By::Abort,
    By::TimeOut,
    By::Stop,
    By::CancelWithoutSupervisor,
    By::StopWithoutSupervisor,
    By::AbortWithoutSupervisor,
];

impl By {
    fn kills_supervisor(self) -> bool {
        matches!(self, By::CancelWithoutSupervisor | By::StopWithoutSupervisor | By::AbortWithoutSupervisor)
    }
}

/// Fires a tree, ends it, and returns what is wrong.
fn tried(seed: u64) -> Result<(), String> {
    let by = WAYS[(seed % 8) as usize];
    let by_group = (seed / 8).is_multiple_of(2);
    let hive = TestVault::new();
    hive.configure(&format!("jobs:\n  kill_grace: 0\n  control_groups: {by_group}\n"));
    let (folder, script) = (hive.dir().join("files"), hive.dir().join("tree.py"));
    fs::create_dir(&folder).expect("a directory");
    write_private(&script, TREE.as_bytes());
    // Without supervisor and control group, only its environment and its parents show where a process belongs.
    let clears = by_group || !by.kills_supervisor();
    let (seed_word, clears) = (seed.to_string(), if clears { "yes" } else { "no" });
    let command =
        ["python3", &script.to_string_lossy(), &seed_word, &folder.to_string_lossy(), clears].map(str::to_owned);
    let timeout: &[&str] = if matches!(by, By::TimeOut) { &["--timeout", "1s"] } else { &[] };
    let words: Vec<&str> =
        [&["fire"], timeout, &["--"]].concat().into_iter().chain(command.iter().map(String::as_str)).collect();
    hive.run("job", &words).expect_exit(0);
    while !folder.join("up").exists() {
        thread::sleep(Duration::from_millis(2));
    }
    thread::sleep(Duration::from_millis(seed % 40));
    if by.kills_supervisor() {
        kill_supervisor(&hive);
    }
    let reply = match by {
        By::Stop | By::StopWithoutSupervisor => hive.run("stop", &["enough"]),
        By::TimeOut => hive.run("poll", &["T-0001"]),
        By::Cancel | By::CancelWithoutSupervisor => hive.run("job", &["cancel", "T-0001"]),
        By::Abort | By::AbortWithoutSupervisor => hive.run("task", &["abort", "T-0001", "--reason", "enough"]),
    };
    let is_said = match by {
        By::Stop | By::StopWithoutSupervisor => reply.get("DRAINED") == "yes",
        // A task that has succeeded cannot be aborted, and what its job left behind may go on.
        By::Abort | By::AbortWithoutSupervisor if reply.get("STATUS") == "REFUSED" => {
            hive.run("stop", &["enough"]).get("DRAINED") == "yes"
        }
        By::Abort | By::AbortWithoutSupervisor => reply.get("STATE") == "Aborted",
        // One whose main process had ended was over before.
        By::TimeOut => return ended_by_itself(&hive, &folder, &reply),
        By::Cancel | By::CancelWithoutSupervisor => ["CANCELLED", "DUPLICATE"].contains(&reply.get("STATUS")),
    };
    // The time of files, by the clock that the kernel has for them.
    let replied = hive.dir().join("replied");
    fs::write(&replied, "").expect("a file");
    let at = fs::metadata(&replied).and_then(|found| found.modified()).expect("a time");
    let living = living(&folder);
    thread::sleep(Duration::from_millis(30));
    let written = written_after(&folder, at);
    match is_said && living.is_empty() && written.is_empty() {
        true => Ok(()),
        false => {
            living.iter().for_each(|pid| drop(Command::new("kill").args(["-9", pid]).status()));
            Err(format!("{by:?}, group {by_group}: alive {living:?}, written {written:?}, {reply:?}"))
        }
    }
}

/// After a time-out nothing is left, unless the main process had ended by itself before; then a stop ends the rest.
fn ended_by_itself(hive: &TestVault, folder: &Path, reply: &Reply) -> Result<(), String> {
    let is_done = reply.get("STATUS") == "DONE";
    if is_done {
        hive.run("stop", &["enough"]).expect_exit(0);
    }
    match living(folder) {
        living if living.is_empty() => Ok(()),
        living => {
            living.iter().for_each(|pid| drop(Command::new("kill").args(["-9", pid]).status()));
            Err(format!("timed out, done {is_done}: alive {living:?}, {reply:?}"))
        }
    }
}

fn kill_supervisor(hive: &TestVault) {
    let job = fs::read_dir(hive.vault().join("Jobs")).expect("jobs").next().expect("a job").expect("an entry").path();
    let identity: serde_json::Value =
        hiveforge::base::seal::open(&fs::read(job.join("identity.json")).expect("an identity")).expect("a record");
    let pid = identity["supervisor"].as_i64().expect("a pid").to_string();
    // A supervisor whose job has ended may be gone.
    let _ = Command::new("kill").args(["-9", &pid]).output();
    while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// The live processes of a tree.
fn living(folder: &Path) -> Vec<String> {
    pids_with(folder.to_string_lossy().as_bytes(), b"tree.py")
}

/// The live processes of a program whose arguments contain this.
fn pids_with(wanted: &[u8], program: &[u8]) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let is_of_tree = |pid: &String| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_dead = fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "));
        let has = |part: &[u8]| words.windows(part.len()).any(|window| window == part);
        !is_dead && has(program) && has(wanted) && !words.starts_with(b"sh\0")
    };
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|name| name.bytes().all(|b| b.is_ascii_digit())).filter(is_of_tree).collect()
}

fn written_after(folder: &Path, at: SystemTime) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a directory").flatten();
    let is_later =
        |entry: &fs::DirEntry| entry.metadata().and_then(|found| found.modified()).is_ok_and(|time| time > at);
    entries.filter(is_later).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn j1_nothing_of_a_tree_is_left_when_a_reply_says_so() {
    if !can("trees of processes", &[Need::Tool("python3")]) {
        return;
    }
    let count = sized(30, 1000) as u64;
    let wrong: Vec<String> =
        (0..count).filter_map(|seed| tried(seed).err().map(|wrong| format!("seed {seed}: {wrong}"))).collect();
    println!("trees of processes: {count} tried, {} wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A process that its user cannot end: it ignores TERM, made a session, and is another user's by now.
const UNENDABLE: &str = "use POSIX; POSIX::setsid(); $SIG{TERM} = 'IGNORE'; $< = 0; print STDOUT \"up\\n\"; \
                         $ARGV[0] =~ /(.*)/; open(my $file, '>', $1); close($file); sleep 1000;";

#[test]
fn j1_a_process_that_cannot_be_ended_is_named() {
    if !can("processes of another user", &[Need::Root, Need::Tool("setpriv"), Need::Tool("perl")]) {
        return;
    }
    let hive = TestVault::new();
    hive.configure("jobs:\n  kill_grace: 0\n  control_groups: false\n");
    let dir = hive.dir().to_string_lossy().into_owned();
    let perl = hive.dir().join("perl");
    fs::copy("/usr/bin/perl", &perl).expect("a copy");
    must("chown", &["-R", "65534:65534", &dir]);
    must("chown", &["root:root", &perl.to_string_lossy()]);
    must("chmod", &["4755", &perl.to_string_lossy()]);
    let hf = hive.dir().join("hf");
    fs::copy(env!("CARGO_BIN_EXE_hf"), &hf).expect("a copy of the command");
    must("chmod", &["755", &hf.to_string_lossy()]);
    let ends: [&[&str]; 3] = [&["stop", "enough"], &["job", "cancel", "T-0002"], &["task", "abort", "T-0003"]];
    for (n, end) in ends.iter().take(sized(1, 3)).enumerate() {
        let up = format!("{dir}/up{n}");
        let script = format!("./perl -e \"$CODE\" {up} & wait");
        let nobody = |words: &[&str]| {
            let user = ["--reuid=65534", "--regid=65534", "--clear-groups"];
            let mut command = Command::new("setpriv");
            command.args(user).arg(&hf).args(words).current_dir(hive.dir()).env_clear();
            command.envs([("USER", "jo"), ("PATH", "/usr/bin:/bin"), ("HOME", &dir), ("CODE", UNENDABLE)]);
            Reply::of(command.output().expect("it runs"))
        };
        nobody(&["resume", "--system", "--yes"]);
        nobody(&["job", "fire", "--", "sh", "-c", &script]).expect_exit(0);
        let is_up = || Path::new(&up).exists();
        assert!((0..5000).any(|_| is_up() || (thread::sleep(Duration::from_millis(2)), false).1), "it does not start");
        let reply = nobody(end);
        let pids = pids_with(up.as_bytes(), b"perl");
        let left: Vec<&str> = reply.all("LEFT");
        let is_named = pids.iter().all(|pid| left.iter().any(|line| line.split(' ').any(|word| word == pid)));
        pids.iter().for_each(|pid| must("kill", &["-9", pid]));
        assert!(!pids.is_empty() && is_named, "{end:?}: {pids:?} {reply:?}");
        match end[0] {
            "stop" => assert_eq!(reply.get("DRAINED"), "no"),
            _ => assert_eq!((reply.get("STATUS"), reply.code), ("NOT_ENDED", Some(1)), "{reply:?}"),
        }
    }
}
