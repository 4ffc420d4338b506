//! Makes every system call of every writing command fail once, from every starting vault: with EIO, ENOSPC, EDQUOT and
//! EINTR, by a kill at that call, and with every write failing from there on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::commands::{ACTS, APPEND, Act, BATCH, INIT};
use crate::counts::{Budget, Counts, Wrong};
use crate::judge::{Said, appended, judge};
use crate::machine::{Dice, Need, can};
use crate::test_vault::{Reply, TestVault};
use crate::vaults::{self, Start};

/// The calls that can fail because of the file system or a lack of resources.
pub const CALLS: &str = "trace=%file,%desc,getrandom,clone,clone3,vfork,wait4,setsid";
/// The calls that change something; not `write`, which also prints the reply.
const CHANGES: &[&str] = &["mkdir", "mkdirat", "pwrite64", "ftruncate", "fdatasync", "fsync", "renameat", "unlinkat"];
/// How long a command may take after a fault: longer than it waits for any lock.
const PATIENCE: &[&str] = &["timeout", "--signal=KILL", "30"];

/// The nth call of this name in one process, and how many of each changing call came before it.
#[derive(Clone, Debug)]
pub struct Point {
    pub call: String,
    pub nth: usize,
    before: BTreeMap<&'static str, usize>,
}

/// The calls of a trace, process by process, starting with the first that touches the vault.
pub fn points(trace: &str) -> Vec<Point> {
    let mut seen = BTreeMap::<(&str, &str), usize>::new();
    let (mut touched, mut known, mut points) = (false, BTreeSet::new(), Vec::new());
    for line in trace.lines() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let Some((call, rest)) = rest.trim_start().split_once('(') else { continue };
        if !call.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            continue;
        }
        let before = CHANGES.iter().map(|name| (*name, seen.get(&(pid, *name)).copied().unwrap_or_default())).collect();
        let nth = seen.entry((pid, call)).or_default();
        *nth += 1;
        touched |= rest.contains("/Vault");
        // Builds with debug assertions look at every descriptor before they close it; nobody has to survive that.
        let is_assertion = call == "fcntl" && rest.contains("F_GETFD");
        // A fault hits every process at the same count, so one that is made at the start would hit the start.
        if known.insert((call, *nth)) && touched && !is_assertion {
            points.push(Point { call: call.to_owned(), nth: *nth, before });
        }
    }
    points
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Error(&'static str),
    Kill,
    /// From here on, every write fails.
    DeadDisk,
}

pub const FAULTS: &[Fault] = &[
    Fault::Error("EIO"),
    Fault::Error("ENOSPC"),
    Fault::Error("EDQUOT"),
    Fault::Error("EINTR"),
    Fault::Kill,
    Fault::DeadDisk,
];

impl Fault {
    pub fn options(self, point: &Point) -> Vec<String> {
        let Point { call, nth, before } = point;
        match self {
            Fault::Error(error) => vec![format!("inject={call}:error={error}:when={nth}")],
            Fault::Kill => vec![format!("inject={call}:signal=SIGKILL:when={nth}")],
            Fault::DeadDisk => {
                before.iter().map(|(call, n)| format!("inject={call}:error=EIO:when={}+", n + 1)).collect()
            }
        }
    }

    pub fn fits(self, point: &Point) -> bool {
        match self {
            // Linux releases the descriptor whatever close returns; with a fault of strace it would stay open.
            Fault::Error(_) => point.call != "close",
            Fault::DeadDisk => CHANGES.contains(&point.call.as_str()),
            Fault::Kill => true,
        }
    }
}

/// Runs a command under strace. The trace goes to a file next to the vault.
pub fn traced(act: &Act, hive: &TestVault, options: &[String]) -> (Reply, String) {
    let trace = hive.dir().join("trace");
    let path = trace.to_string_lossy().into_owned();
    let mut program: Vec<&str> = PATIENCE.to_vec();
    program.extend(["strace", "-f", "-qq", "-o", &path, "-e", "signal=none"]);
    program.extend(options.iter().flat_map(|option| ["-e", option.as_str()]));
    let reply = act.run(hive, &program, None);
    (reply, fs::read_to_string(&trace).unwrap_or_default())
}

struct Case<'a> {
    start: &'a Start,
    act: Act,
    point: Point,
    fault: Fault,
    whole: &'a [String],
}

impl Case<'_> {
    fn run(&self) -> Result<Said, Wrong> {
        let hive = self.start.copy();
        self.act.run_beside(&hive);
        let options = [vec![CALLS.to_owned()], self.fault.options(&self.point)].concat();
        let (reply, _) = traced(&self.act, &hive, &options);
        // After its time, timeout kills itself with the rest.
        let is_killed = [Some(137), None].contains(&reply.code) && self.fault != Fault::Kill;
        if is_killed || reply.code == Some(124) {
            return Err(Wrong::ChainBreak("it hung".to_owned()));
        }
        judge(self.start, &self.act, &hive, &reply, self.whole)
            .map_err(|wrong| wrong.because(&format!("the reply was {:?} {:?}", reply.stdout, reply.stderr)))
    }

    fn name(&self) -> String {
        format!(
            "{} from {}: {:?} at {} {}",
            self.act.line, self.start.name, self.fault, self.point.call, self.point.nth
        )
    }
}

/// A command in a starting vault, and what it does there without a fault.
pub struct Ground {
    pub act: Act,
    pub start: Start,
    pub whole: Vec<String>,
    trace: String,
}

impl Ground {
    fn new(act: Act, start: Start) -> Option<Ground> {
        let hive = start.copy();
        act.run_beside(&hive);
        let (reply, trace) = traced(&act, &hive, &[CALLS.to_owned()]);
        let whole = appended(&start, &hive.vault(), act.judged);
        match crate::judge::said(&reply) {
            Ok(Said::Recorded) => Some(Ground { act, start, whole, trace }),
            // The command is refused here, for example because a claim expired after a day: nothing to interrupt.
            _ if start.now == vaults::NEXT_DAY => None,
            other => panic!("{} from {} without a fault: {other:?} {reply:?}", act.line, start.name),
        }
    }

    pub fn name(&self) -> String {
        format!("{} from {}", self.act.line, self.start.name)
    }
}

/// Every command in every vault where it can run; `some` keeps one in this many. Only these commands, if any are named,
/// each in at most this many vaults.
pub fn grounds(some: usize, commands: &[String], vaults: usize) -> Vec<Ground> {
    let mut all = Vec::new();
    let is_wanted = |act: &Act| commands.is_empty() || commands.iter().any(|command| act.is_of(command));
    for (n, act) in ACTS.iter().enumerate().filter(|(_, act)| is_wanted(act)) {
        // In a sample, each command gets a different vault.
        let wanted = (0..vaults::STARTS).filter(|at| (n + at) % some == 0);
        let starts = wanted.map(|at| vaults::start(at, &|hive| act.prepare(hive)));
        all.extend(starts.filter_map(|start| Ground::new(*act, start)).take(vaults));
    }
    for act in [APPEND, BATCH].into_iter().filter(is_wanted) {
        all.extend(vaults::more_starts().into_iter().filter_map(|start| Ground::new(act, start)));
    }
    all.extend(Some(INIT).filter(is_wanted).and_then(|init| Ground::new(init, vaults::nothing())));
    all
}

pub fn run(budget: Budget, grounds: &[Ground]) -> Option<Counts> {
    if !can("failing system calls", &[Need::Tool("strace"), Need::Tool("cp")]) {
        return None;
    }
    let mut cases = Vec::new();
    for Ground { act, start, whole, trace } in grounds {
        for point in points(trace) {
            for &fault in FAULTS.iter().filter(|fault| fault.fits(&point)) {
                cases.push(Case { start, act: *act, point: point.clone(), fault, whole });
            }
        }
    }
    Dice::new(cases.len() as u64).shuffle(&mut cases);
    let counts = Mutex::new(Counts::planned(cases.len()));
    cases.truncate(budget.sized(150, usize::MAX));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !budget.is_over()) {
                    let outcome = case.run();
                    let mut counts = counts.lock().expect("no panic");
                    counts.tried += 1;
                    counts.acknowledged += usize::from(outcome == Ok(Said::Recorded));
                    counts.check(&case.name(), outcome.map(drop));
                }
            });
        }
    });
    Some(counts.into_inner().expect("no panic"))
}
