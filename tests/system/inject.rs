//! Every file-system system call of a command fails once, from every starting vault: with EIO,
//! ENOSPC and EINTR, by a kill in its place, and with everything that writes failing from there on.
//!
//! Promise: nothing acknowledged is lost, nothing refused is recorded, a batch is all or none,
//! an uncertain reply repeated with its key leaves one copy, and the vault always goes on.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::hive::{Hive, Reply, START, binary};
use crate::machine::{Need, can, sized};
use crate::vaults::{self, Start, batch, check_goes_on, copy, count, log, payload, starts};

/// The calls that can fail because of a file system.
const CALLS: &str = "open,openat,mkdir,mkdirat,flock,read,pread64,write,pwrite64,lseek,fstat,newfstatat,statx,\
                     getdents64,ftruncate,fdatasync,fsync,rename,renameat,renameat2,unlink,unlinkat,close";
/// Those of them that change something; `write` is also how a reply is given, so it is not here.
const CHANGES: &[&str] = &["mkdir", "mkdirat", "pwrite64", "ftruncate", "fdatasync", "fsync", "renameat", "unlinkat"];
const BATCH: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    One,
    Batch,
    Init,
}

impl Act {
    /// How many events it records.
    fn size(self) -> usize {
        if self == Act::Batch { BATCH } else { 1 }
    }

    /// What stands in the log once for each of them.
    fn mark(self) -> &'static str {
        if self == Act::Init { "\"event_type\":\"VaultInitialized\"" } else { "\"title\":\"probe" }
    }

    fn command(self) -> (&'static str, Vec<String>, String) {
        match self {
            Act::One => {
                ("append", vec!["RequirementProposed".into(), "--payload".into(), payload("probe")], String::new())
            }
            Act::Batch => ("append", vec!["--batch".into()], batch("probe", BATCH)),
            Act::Init => ("init", Vec::new(), String::new()),
        }
    }

    /// Runs it as a person would, after an uncertain reply with its key.
    fn plain(self, hive: &Hive, key: Option<&str>) -> Reply {
        let (name, mut args, input) = self.command();
        args.extend(key.filter(|_| self != Act::Init).map(|key| format!("--key={key}")));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        hive.pipe(name, &args, input)
    }

    /// Runs it under strace. The trace goes to a file beside the vault.
    fn traced(self, hive: &Hive, now: &str, options: &[String]) -> (Reply, String) {
        let (name, args, input) = self.command();
        let (trace, stdin) = (hive.dir().join("trace"), hive.dir().join("stdin"));
        fs::write(&stdin, input).expect("a file for standard input");
        let output = Command::new("strace")
            .args(["-f", "-qq", "-o"])
            .arg(&trace)
            .args(["-e", &format!("trace={CALLS}"), "-e", "signal=none"])
            .args(options.iter().flat_map(|option| ["-e", option]))
            .arg(binary(name))
            .args(args)
            .current_dir(hive.dir())
            .env_clear()
            .envs([("USER", "jo"), ("HF_NOW", now)])
            .stdin(Stdio::from(fs::File::open(&stdin).expect("a file for standard input")))
            .output()
            .expect("strace runs");
        (Reply::of(output), fs::read_to_string(&trace).unwrap_or_default())
    }
}

/// The nth call of its name, and how many of each changing call went before.
#[derive(Clone, Debug)]
struct Point {
    call: String,
    nth: usize,
    before: BTreeMap<&'static str, usize>,
}

/// The calls of a trace from the first on that touches the vault.
fn points(trace: &str) -> Vec<Point> {
    let (mut seen, mut touched, mut points) = (BTreeMap::<&str, usize>::new(), false, Vec::new());
    for line in trace.lines() {
        let Some((call, rest)) = line.split_once(' ').and_then(|(_, call)| call.trim_start().split_once('(')) else {
            continue;
        };
        let before = CHANGES.iter().map(|name| (*name, seen.get(name).copied().unwrap_or_default())).collect();
        let nth = seen.entry(call).or_default();
        *nth += 1;
        touched |= rest.contains("/Vault");
        if touched {
            points.push(Point { call: call.to_owned(), nth: *nth, before });
        }
    }
    points
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Error(&'static str),
    Kill,
    /// From here on, nothing can be written any more.
    DeadDisk,
}

const FAULTS: &[Fault] =
    &[Fault::Error("EIO"), Fault::Error("ENOSPC"), Fault::Error("EINTR"), Fault::Kill, Fault::DeadDisk];

impl Fault {
    fn options(self, point: &Point) -> Vec<String> {
        let Point { call, nth, before } = point;
        match self {
            Fault::Error(error) => vec![format!("inject={call}:error={error}:when={nth}")],
            Fault::Kill => vec![format!("inject={call}:signal=SIGKILL:when={nth}")],
            Fault::DeadDisk => {
                before.iter().map(|(call, n)| format!("inject={call}:error=EIO:when={}+", n + 1)).collect()
            }
        }
    }

    fn fits(self, point: &Point) -> bool {
        self != Fault::DeadDisk || CHANGES.contains(&point.call.as_str())
    }
}

/// What the command said of itself.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Recorded,
    Refused,
    Uncertain(String),
    /// Nothing: it was killed, or its reply could not be written.
    Nothing,
}

fn said(reply: &Reply) -> Result<Said, String> {
    Ok(match reply.all("STATUS").as_slice() {
        [] if reply.stdout.is_empty() => Said::Nothing,
        ["APPENDED" | "INITIALIZED" | "EXISTS"] => Said::Recorded,
        ["UNCERTAIN"] => Said::Uncertain(reply.get("KEY").to_owned()),
        ["SYSTEM_ERROR"] => Said::Refused,
        _ => return Err(format!("no reply that fits a fault of the system: {reply:?}")),
    })
}

/// Everything that must hold after a command met a fault.
fn check(start: &Start, act: Act, hive: &Hive, reply: &Reply) -> Result<Said, String> {
    let said = said(reply)?;
    start.check_kept(&hive.vault())?;
    if let Said::Uncertain(key) = &said {
        // Repeated at once, and repeated after somebody else came first.
        let other = copy(hive, start.now);
        check_repeated(start, act, &other, key, false).map_err(|e| format!("after another command: {e}"))?;
        check_repeated(start, act, hive, key, true)?;
        return Ok(said);
    }
    if act == Act::Init {
        let again = act.plain(hive, None);
        let first = said == Said::Nothing || (said == Said::Recorded) == (again.all("STATUS") == ["EXISTS"]);
        if again.code != Some(0) || !first {
            return Err(format!("REFUSED to go on: {again:?}"));
        }
    }
    check_goes_on(hive)?;
    start.check_mended(&hive.vault())?;
    let copies = count(&log(&hive.vault()), act.mark());
    match (act, &said, copies) {
        (Act::Init, _, 1) | (_, Said::Refused | Said::Nothing, 0) => Ok(said),
        (_, Said::Recorded | Said::Nothing, n) if n == act.size() => Ok(said),
        (_, Said::Recorded, n) if n < act.size() => Err(format!("LOST: {n} events of {}", act.size())),
        (_, _, n) if n > act.size() => Err(format!("DUPLICATED: {n} events instead of {}", act.size())),
        (_, said, n) => Err(format!("{said:?}, but {n} events of {} are in the log", act.size())),
    }
}

fn check_repeated(start: &Start, act: Act, hive: &Hive, key: &str, at_once: bool) -> Result<(), String> {
    if !at_once && act != Act::Init {
        check_goes_on(hive)?;
    }
    let again = act.plain(hive, Some(key));
    if again.code != Some(0) {
        return Err(format!("an uncertain reply cannot be repeated with its key: {again:?}"));
    }
    check_goes_on(hive)?;
    start.check_mended(&hive.vault())?;
    match count(&log(&hive.vault()), act.mark()) {
        n if n == act.size() => Ok(()),
        n if n < act.size() => Err(format!("LOST: {n} events after a repetition")),
        n => Err(format!("DUPLICATED: {n} events after a repetition")),
    }
}

struct Case<'a> {
    start: &'a Start,
    act: Act,
    point: Point,
    fault: Fault,
}

impl Case<'_> {
    /// Whether the call was reached, and what came of it.
    fn run(&self) -> (bool, Result<Said, String>) {
        let hive = self.start.copy();
        let (reply, trace) = self.act.traced(&hive, self.start.now, &self.fault.options(&self.point));
        let reached = trace.contains("(INJECTED)") || (self.fault == Fault::Kill && reply.code.is_none());
        let result = check(self.start, self.act, &hive, &reply);
        (reached, result.map_err(|e| format!("{e}\n    the reply was {:?} {:?}", reply.stdout, reply.stderr)))
    }

    fn name(&self) -> String {
        format!("{:?} from {}: {:?} at {} {}", self.act, self.start.name, self.fault, self.point.call, self.point.nth)
    }
}

fn cases<'a>(start: &'a Start, act: Act, all: &mut Vec<Case<'a>>) {
    let hive = start.copy();
    let (reply, trace) = act.traced(&hive, start.now, &[]);
    assert_eq!(check(start, act, &hive, &reply), Ok(Said::Recorded), "{act:?} from {} without a fault", start.name);
    for point in points(&trace) {
        for &fault in FAULTS.iter().filter(|fault| fault.fits(&point)) {
            all.push(Case { start, act, point: point.clone(), fault });
        }
    }
}

#[test]
fn whatever_system_call_fails_nothing_is_lost_or_doubled_and_the_vault_goes_on() {
    if !can("failing system calls", &[Need::Tool("strace"), Need::Tool("cp")]) {
        return;
    }
    let (starts, nothing) = (starts(), vaults::nothing());
    let mut all = Vec::new();
    for start in &starts {
        cases(start, Act::One, &mut all);
        cases(start, Act::Batch, &mut all);
    }
    cases(&nothing, Act::Init, &mut all);
    // A step that has no factor in common with the number of faults meets every fault and call.
    let step = sized(13, 1);
    let possible = all.len();
    let chosen: Vec<Case<'_>> = all.into_iter().step_by(step).collect();
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = case.run();
                    done.lock().expect("no panic").push((case.name(), outcome));
                }
            });
        }
    });
    let done = done.into_inner().expect("no panic");
    let number = |test: &dyn Fn(&Result<Said, String>) -> bool| done.iter().filter(|(_, (_, r))| test(r)).count();
    let failed = |word: &str| number(&|r| r.as_ref().is_err_and(|e| e.contains(word)));
    println!(
        "injected faults: {} tried of {possible}, {} reached; {} acknowledged, {} refused, {} uncertain, {} silent; \
         {} lost, {} duplicated, {} refused to go on, {} wrong in all",
        done.len(),
        done.iter().filter(|(_, (reached, _))| *reached).count(),
        number(&|r| r == &Ok(Said::Recorded)),
        number(&|r| r == &Ok(Said::Refused)),
        number(&|r| matches!(r, Ok(Said::Uncertain(_)))),
        number(&|r| r == &Ok(Said::Nothing)),
        failed("LOST"),
        failed("DUPLICATED"),
        failed("REFUSED to go on"),
        number(&|r| r.is_err()),
    );
    let wrong: Vec<String> =
        done.iter().filter_map(|(name, (_, r))| Some(format!("{name}: {}", r.as_ref().err()?))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let missed: Vec<&String> = done.iter().filter(|(_, (reached, _))| !reached).map(|(name, _)| name).collect();
    assert!(missed.is_empty(), "never reached: {missed:?}");
}

#[test]
fn a_vault_that_cannot_be_looked_at_is_not_passed_over_for_one_above() {
    if !can("failing system calls", &[Need::Tool("strace")]) {
        return;
    }
    let outer = vaults::clean();
    let inner = outer.dir().join("inner");
    fs::create_dir(&inner).expect("a folder");
    let before = outer.contents();
    let run = |inject: &[&str]| {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null"]).args(inject).arg(binary("append"));
        command.args(["RequirementProposed", "--payload", &payload("probe")]).current_dir(&inner);
        Reply::of(command.env_clear().envs([("USER", "jo"), ("HF_NOW", START)]).output().expect("strace runs"))
    };
    let made = Command::new(binary("init")).current_dir(&inner).env_clear().output().expect("the command runs");
    assert!(made.status.success());
    let nearest = inner.join("Vault/Akashic");
    let path = nearest.to_str().expect("UTF-8");
    run(&["-P", path, "-e", "inject=statx:error=EIO"]).expect_exit(111);
    assert_eq!(outer.contents(), before);
    run(&[]).expect_exit(0);
    assert_eq!(outer.contents(), before);
}
