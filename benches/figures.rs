//! Benchmarks: the toolkit compared with other programs and with itself.
//!
//! Run by `scripts/bench`. Most rows are ratios within one run, because absolute times depend on the machine. A
//! missed target is marked and fails nothing. The argument `save` also writes the table and a chart of it to
//! `benches/`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often a command is timed: enough to include more than one merge of the index.
const RUNS: usize = 257;

fn main() {
    // cargo bench adds flags; every other argument selects a section.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let sections: &[(&str, Section)] = &[
        ("append", append),
        ("writers", writers),
        ("batch", batch),
        ("verify", verify),
        ("start", start),
        ("history", history),
        ("live", live),
        ("rebuild", rebuild),
        ("poll", poll),
        ("tick", tick),
        ("jobs", jobs),
        ("claims", claims),
        ("memory", memory),
        ("commands", commands),
    ];
    let mut table = Table::default();
    for (name, section) in sections {
        if wanted.iter().all(|w| w == SAVE) || wanted.iter().any(|w| w == name) {
            section(&mut table);
        }
    }
    println!("{}", table.text());
    if wanted.iter().any(|w| w == SAVE) {
        save(&table);
    }
}

/// The argument that saves the table.
const SAVE: &str = "save";

/// Measures something and adds its rows.
type Section = fn(&mut Table);

/// Rows of the report, printed as they are measured and again together at the end.
#[derive(Default)]
struct Table {
    rows: Vec<Row>,
}

struct Row {
    name: String,
    value: f64,
    unit: String,
    aim: String,
    holds: bool,
}

impl Table {
    /// Adds a figure, its target, and whether it meets the target.
    fn row(&mut self, name: &str, value: f64, unit: &str, aim: &str, holds: bool) {
        let row = Row { name: name.to_owned(), value, unit: unit.to_owned(), aim: aim.to_owned(), holds };
        eprintln!("{}", row.line());
        self.rows.push(row);
    }

    fn text(&self) -> String {
        self.rows.iter().map(|row| row.line() + "\n").collect()
    }
}

impl Row {
    fn line(&self) -> String {
        let Row { name, value, unit, aim, holds } = self;
        let mark = if *holds { "" } else { "  <-- misses its target" };
        format!("{name:<58} {value:>12.2} {unit:<10} target {aim}{mark}")
    }

    /// The value relative to its target: 1 is exactly on target, less is better. None without a target.
    fn standing(&self) -> Option<f64> {
        let (sign, aim) = self.aim.split_once(' ')?;
        let aim: f64 = aim.parse().ok()?;
        Some(if sign.starts_with('>') { aim / self.value } else { self.value / aim })
    }
}

/// Writes the table, with the date, the commit and the machine, and a chart of the figures relative to their targets.
fn save(table: &Table) {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches");
    let said = |line: &str| {
        let output = Command::new("bash").args(["-c", line]).output().expect("it runs");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    let mut text = String::from(
        "# Benchmarks\n\nWritten by `scripts/bench save`. Ratios are within one run; figures that miss their target are marked.\n\n",
    );
    for (what, line) in [
        ("date", "date -u +%F"),
        ("commit", "git rev-parse --short HEAD"),
        (
            "machine",
            "echo \"$(nproc) x $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(free -g | awk '/^Mem/{print $2}') GiB, Linux $(uname -r | cut -d- -f1)\"",
        ),
        ("disk", "df --output=fstype ${TMPDIR:-/tmp} | tail -1"),
        ("load before", "cut -d' ' -f1-3 /proc/loadavg"),
    ] {
        writeln!(text, "- {what}: {}", said(line)).expect("a string takes all");
    }
    text.push_str("\n![The figures relative to their targets](results.svg)\n\n| figure | value | unit | target | |\n|---|---:|---|---|---|\n");
    for Row { name, value, unit, aim, holds } in &table.rows {
        let mark = if *holds { "" } else { "misses" };
        writeln!(text, "| {name} | {value:.2} | {unit} | {} | {mark} |", aim.replace('<', "&lt;").replace('>', "&gt;"))
            .expect("a string takes all");
    }
    text.push_str(LARGE);
    fs::write(benches.join("RESULTS.md"), text).expect("our own directory");
    fs::write(benches.join("results.svg"), picture(table)).expect("our own directory");
}

/// Explains the sizes; measured with `nm` in a build with symbols.
const LARGE: &str = "
## What is large, and why

Each command is one static binary, so that it starts as fast as `/bin/true` and runs wherever it is copied. Of
hf-append's 3.8 MiB, about 1.0 is the C library with its tables, 0.65 the Rust standard library, 0.65 the toolkit
itself, 0.43 the parser of YAML settings, 0.24 the argument parser, 0.17 JSON and its canonical form, 0.05 LMDB. The
largest, hf-state and hf-job, contain the job supervisor as well. Peak memory is mostly the program itself: no command
keeps the log in memory, and after a million events a command needs half a MiB more than in a new vault.

Missed targets: besides its one sync, a single append checks the rules against the state and rewrites the head record
and two projection files, where sqlite3 inserts a row. A batch and a rebuild now do work that did not exist when their
targets were set: a digest of everything that an approval is bound to, facts, and an index by state.
";

/// A bar chart of the figures that have a target; bars that extend past the line miss it.
fn picture(table: &Table) -> String {
    const LEFT: f64 = 430.0;
    const WIDTH: f64 = 300.0;
    const STEP: f64 = 22.0;
    let rows: Vec<(&Row, f64)> = table.rows.iter().filter_map(|row| Some((row, row.standing()?))).collect();
    let height = STEP * (rows.len() + 2) as f64;
    let total = LEFT + WIDTH + 70.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{total}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    // Bars are cut off at twice the target.
    let scale = |standing: f64| standing.min(2.0) / 2.0 * WIDTH;
    for (n, (row, standing)) in rows.iter().enumerate() {
        let y = STEP * (n + 1) as f64;
        let (colour, length) = (if row.holds { "#4a8" } else { "#c54" }, scale(*standing));
        let name = row.name.replace('&', "&amp;").replace('<', "&lt;");
        writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{LEFT}\" y=\"{}\" width=\"{length:.1}\" height=\"14\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{}\">{standing:.2}</text>",
            LEFT - 8.0,
            y + 11.0,
            y,
            LEFT + length + 5.0,
            y + 11.0,
        )
        .expect("a string takes all");
    }
    let line = LEFT + scale(1.0);
    writeln!(
        svg,
        "<line x1=\"{line}\" y1=\"8\" x2=\"{line}\" y2=\"{}\" stroke=\"#333\" stroke-dasharray=\"4 3\"/>\
         <text x=\"{line}\" y=\"{}\" text-anchor=\"middle\">target</text>\n</svg>",
        height - STEP,
        height - 6.0
    )
    .expect("a string takes all");
    svg
}

fn binary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_hf")).with_file_name(name)
}

/// A temporary directory with a new vault.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { dir: tempfile::tempdir().expect("a temporary directory") };
        place.ok("hf-init", &[]);
        place
    }

    fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = Command::new(binary(name));
        command.args(args).current_dir(self.dir.path()).env_remove("HF_VAULT").env_remove("HF_AGENT");
        command.env("XDG_CONFIG_HOME", self.dir.path().join("config"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn ok(&self, name: &str, args: &[&str]) {
        assert!(self.command(name, args).status().expect("it runs").success(), "{name} {args:?}");
    }

    /// Feeds lines to `hf-append --stream`.
    fn stream(&self, lines: &mut dyn Iterator<Item = String>) {
        let mut child = self.command("hf-append", &["--stream"]).stdin(Stdio::piped()).spawn().expect("it runs");
        let mut input = std::io::BufWriter::new(child.stdin.take().expect("a pipe"));
        for line in lines {
            writeln!(input, "{line}").expect("it reads");
        }
        drop(input);
        assert!(child.wait().expect("it ends").success());
    }

    /// The durations of `RUNS` appends, one process each.
    fn appends(&self) -> Vec<Duration> {
        let once = || time(&mut self.command("hf-append", &["Heartbeat", "--subject", "run:last"]));
        (0..RUNS).map(|_| once()).collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn time(command: &mut Command) -> Duration {
    let begin = Instant::now();
    assert!(command.status().expect("it runs").success(), "{command:?}");
    begin.elapsed()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

fn mean(times: &[Duration]) -> f64 {
    times.iter().sum::<Duration>().as_secs_f64() / times.len() as f64
}

/// The life of one task in a hundred events: proposed, run with heartbeats, done, archived.
fn life(n: usize) -> Vec<String> {
    let event = |kind: &str, subject: String, payload: String| {
        format!(r#"{{"event_type":"{kind}","subject":"{subject}","payload":{payload}}}"#)
    };
    let (task, run) = (format!("task:t{n}"), format!("run:r{n}"));
    let mut events = vec![
        event("TaskProposed", task.clone(), format!(r#"{{"title":"Task number {n}, with a title as they have"}}"#)),
        // It becomes ready automatically, which is an event too.
        event("TaskAssigned", task.clone(), r#"{"lease_seconds":900}"#.into()),
        event("RunStarted", run.clone(), format!(r#"{{"task_id":"t{n}","timeout_seconds":300}}"#)),
    ];
    events.extend(
        (0..93).map(|i| event("Heartbeat", run.clone(), format!(r#"{{"note":"step {i} of the work is done"}}"#))),
    );
    events.push(event("RunFinished", run, r#"{"success":true,"summary":"done"}"#.into()));
    events.push(event("TaskSucceeded", task.clone(), "{}".into()));
    events.push(event("TaskArchived", task, "{}".into()));
    events
}

/// A run in progress, as the subject of appends.
fn last_run() -> Vec<String> {
    [
        r#"{"event_type":"TaskProposed","subject":"task:last","payload":{"title":"the last one"}}"#,
        r#"{"event_type":"TaskAssigned","subject":"task:last"}"#,
        r#"{"event_type":"RunStarted","subject":"run:last","payload":{"task_id":"last"}}"#,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// A vault with this many events of finished work.
fn with_history(events: usize) -> Place {
    let place = Place::new();
    place.stream(&mut (0..events / 100).flat_map(life).chain(last_run()));
    place
}

/// Compares two places in alternation, so that both see the same load on the machine.
fn compare(table: &mut Table, name: &str, small: &Place, large: &Place, aim: f64) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    small.appends();
    large.appends();
    for _ in 0..3 {
        a.extend(small.appends());
        b.extend(large.appends());
    }
    let ratio = mean(&b) / mean(&a);
    table.row(&format!("{name}: mean, merges included"), ratio, "times", &format!("<= {aim}"), ratio <= aim);
    let ratio = median(&mut b) / median(&mut a);
    table.row(&format!("{name}: median"), ratio, "times", &format!("<= {aim}"), ratio <= aim);
}

/// Another program that writes one durable record per process, in its own directory.
struct Peer {
    name: &'static str,
    aim: f64,
    setup: &'static str,
    step: &'static [&'static str],
}

/// How each of them writes one record to disk.
const PEERS: &[Peer] = &[
    Peer {
        name: "sqlite3, one insert",
        aim: 0.6,
        setup: "sqlite3 log.db 'CREATE TABLE log(id INTEGER PRIMARY KEY, at TEXT, line TEXT)'",
        step: &[
            "sqlite3",
            "log.db",
            "PRAGMA synchronous=FULL; INSERT INTO log(at, line) VALUES (datetime(), '{\"title\":\"x\"}')",
        ],
    },
    Peer {
        name: "git commit --allow-empty",
        aim: 0.35,
        setup: "git init -q . && git config user.name x && git config user.email x@localhost && git config core.fsync all",
        step: &["git", "commit", "-q", "--allow-empty", "-m", "x"],
    },
    Peer {
        name: "bash with flock, date, jq and echo",
        aim: 0.05,
        setup: "true",
        step: &[
            "bash",
            "-c",
            "exec 9>lock; flock 9; line=$(jq -cn --arg at \"$(date -u +%FT%TZ)\" '{at: $at, title: \"x\"}'); echo \"$line\" >> log; sync -d log",
        ],
    },
];

fn append(table: &mut Table) {
    let place = with_history(1_000);
    place.ok("hf-append", &["TaskProposed", "--subject", "task:other", "--payload", r#"{"title":"x"}"#]);
    for peer in PEERS {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let there = Command::new("bash").args(["-c", peer.setup]).current_dir(folder.path()).status();
        if !there.is_ok_and(|status| status.success()) {
            eprintln!("{}: not found, row left out", peer.name);
            continue;
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for n in 0..130 {
            // Back and forth, so that the state stays as small as that of the other program.
            let kind = if n % 2 == 0 { "TaskAssigned" } else { "ClaimExpired" };
            ours.push(time(&mut place.command("hf-append", &[kind, "--subject", "task:other"])));
            let mut step = Command::new(peer.step[0]);
            theirs.push(time(step.args(&peer.step[1..]).current_dir(folder.path()).stdout(Stdio::null())));
        }
        let ratio = median(&mut ours) / median(&mut theirs);
        let name = format!("one durable append vs. {}", peer.name);
        table.row(&name, ratio, "times", &format!("<= {}", peer.aim), ratio <= peer.aim);
    }
}

/// Eight concurrent appenders, compared with eight concurrent inserters.
fn writers(table: &mut Table) {
    const WRITERS: usize = 8;
    const EACH: usize = 50;
    let place = with_history(1_000);
    for n in 0..WRITERS {
        let task = format!("task:w{n}");
        place.ok("hf-append", &["TaskProposed", "--subject", &task, "--payload", r#"{"title":"x"}"#]);
    }
    let peer = &PEERS[0];
    let folder = tempfile::tempdir().expect("a temporary directory");
    let there = Command::new("bash").args(["-c", peer.setup]).current_dir(folder.path()).status();
    if !there.is_ok_and(|status| status.success()) {
        return eprintln!("{}: not found, row left out", peer.name);
    }
    let together = |one: &(dyn Fn(usize, usize) + Sync)| {
        elapsed(|| {
            std::thread::scope(|scope| {
                for writer in 0..WRITERS {
                    scope.spawn(move || (0..EACH).for_each(|n| one(writer, n)));
                }
            });
        })
    };
    let ours = |writer: usize, n: usize| {
        let kind = if n.is_multiple_of(2) { "TaskAssigned" } else { "ClaimExpired" };
        place.ok("hf-append", &[kind, "--subject", &format!("task:w{writer}")]);
    };
    let theirs = |_: usize, _: usize| {
        // sqlite3 waits for other writers only if it has a timeout.
        let insert = peer.step[2].replace("PRAGMA sync", "PRAGMA busy_timeout=60000; PRAGMA sync");
        let mut step = Command::new("sqlite3");
        step.args(["log.db", &insert]).current_dir(folder.path()).stdout(Stdio::null());
        assert!(step.status().expect("it runs").success());
    };
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        a.push(together(&ours));
        b.push(together(&theirs));
    }
    let (ours, theirs) = (median(&mut a), median(&mut b));
    table.row("eight concurrent writers vs. eight of sqlite3", ours / theirs, "times", "<= 1", ours <= theirs);
    table.row("the same, appends per second", (WRITERS * EACH) as f64 / ours, "events/s", "-", true);
}

/// How long it takes to fire a job, compared with other programs that run jobs in the background.
fn jobs(table: &mut Table) {
    const JOBS: usize = 60;
    let place = Place::new();
    let folder = tempfile::tempdir().expect("a temporary directory");
    for (name, words) in [("nq", &["nq", "true"][..]), ("task-spooler", &["tsp", "true"][..])] {
        let peer = || {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
            command.env("TMPDIR", folder.path()).env("TS_SOCKET", folder.path().join("socket"));
            command
        };
        if peer().status().is_err() {
            eprintln!("{name}: not found, row left out");
            continue;
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..JOBS {
            ours.push(time(&mut place.command("hf-job", &["fire", "--", "true"])));
            theirs.push(elapsed(|| drop(peer().status())));
        }
        let ratio = median(&mut ours) / median(&mut theirs);
        table.row(&format!("firing a job, durably, vs. {name}, which keeps no record"), ratio, "times", "-", true);
    }
    let _ = Command::new("tsp").arg("-K").env("TS_SOCKET", folder.path().join("socket")).status();
    place.ok("hf-job", &["fire", "--", "true"]);
    let last = format!("T-{:04}", 2 * JOBS + 1);
    let mut poll = place.command("hf-poll", &[&last]);
    let _ = poll.status();
}

/// Sixteen processes that claim tasks until none are left.
fn claims(table: &mut Table) {
    const CLAIMERS: usize = 16;
    const TASKS: usize = 400;
    let place = Place::new();
    let settings = "governance:\n  max_concurrent_tasks: 1000\n";
    fs::write(place.dir.path().join("Vault/hiveforge.config.yaml"), settings).expect("our own vault");
    place.stream(
        &mut (0..TASKS).map(|n| format!(r#"{{"event_type":"TaskProposed","payload":{{"title":"Task {n}"}}}}"#)),
    );
    let taken = std::sync::atomic::AtomicUsize::new(0);
    let took = elapsed(|| {
        std::thread::scope(|scope| {
            for n in 0..CLAIMERS {
                let (place, taken) = (&place, &taken);
                scope.spawn(move || {
                    let name = format!("agent:c{n}");
                    let claim = || place.command("hf-task", &["claim", "--actor", &name]).status().expect("it runs");
                    while claim().success() {
                        taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
    });
    assert_eq!(taken.into_inner(), TASKS, "every task has one winner");
    table.row(
        "claims of sixteen processes that compete for 400 tasks",
        TASKS as f64 / took.as_secs_f64(),
        "claims/s",
        "-",
        true,
    );
}

/// How long a persona with a long life needs to remember: a thousand branches, a hundred thousand messages, ten thousand
/// pages of knowledge, and twenty thousand messages that somebody else has not read.
fn memory(table: &mut Table) {
    use hiveforge::base::EntityId;
    use hiveforge::policy::knowledge::page_of;
    const BRANCHES: usize = 1_000;
    const MESSAGES: usize = 100_000;
    const PAGES: usize = 10_000;
    const UNREAD: usize = 20_000;
    const TIMES: usize = 31;
    let place = Place::new();
    place.ok("hf-branch", &["create", "The song of the stars", "--type", "free"]);
    place.ok("hf-branch", &["note", "page 17 and page 4711: the hero is at the tower"]);
    place.ok("hf-branch", &["suspend", "--summary", "Chapter 1, see page 99"]);
    let (main, made) =
        (EntityId::parse("main").expect("a name"), r#"{"event_type":"BranchCreated","actor":"agent:main""#);
    place.stream(
        &mut (0..BRANCHES)
            .map(|n| format!(r#"{made},"payload":{{"persona_id":"main","branch_type":"free","label":"walk {n}"}}}}"#)),
    );
    place.ok("hf-branch", &["suspend", "--summary", "Enough"]);
    place.stream(&mut (0..MESSAGES).map(|n| {
        format!(
            r#"{{"event_type":"MessageSent","subject":"message:m{n}","payload":{{"to":"main","text":"word {n}"}}}}"#
        )
    }));
    place.stream(&mut (0..MESSAGES).map(|n| {
        format!(
            r#"{{"event_type":"MessageRead","subject":"message:m{n}","actor":"agent:main","payload":{{"to":"main"}}}}"#
        )
    }));
    // Somebody else who never reads.
    place.ok("hf-branch", &["note", "x", "--agent", "other"]);
    place.stream(&mut (0..UNREAD).map(|n| {
        format!(
            r#"{{"event_type":"MessageSent","subject":"message:o{n}","payload":{{"to":"other","text":"word {n}"}}}}"#
        )
    }));
    place.ok("hf-branch", &["tell", "main", "Is it ready?"]);
    place.stream(&mut (0..PAGES).map(|n| {
        let (title, recorded) = (format!("page {n}"), r#"{"event_type":"KnowledgeRecorded","actor":"agent:main""#);
        let page = page_of(&main, &title);
        format!(r#"{recorded},"subject":"{page}","payload":{{"persona_id":"main","title":"{title}","text":"x"}}}}"#)
    }));
    let timed = |args: &[&str]| {
        let mut times: Vec<Duration> = (0..TIMES).map(|_| time(&mut place.command("hf-branch", args))).collect();
        median(&mut times) * 1000.0
    };
    let note = timed(&["note", "x"]);
    for (what, args) in [
        ("decide", &["decide"][..]),
        ("recall of a page of threads", &["recall", "--all"]),
        ("recall of a page of a search", &["recall", "--all", "--grep", "word"]),
        ("recall of a search that finds nothing", &["recall", "--all", "--grep", "whale"]),
        ("reading what it knows", &["know", "page 5000"]),
        ("list --working", &["list", "--working"]),
    ] {
        let more = timed(args) - note;
        table.row(&format!("{what}, with a long memory, beyond a note"), more, "ms", "<= 20", more <= 20.0);
    }
    let mut times = Vec::new();
    for _ in 0..TIMES {
        times.push(time(&mut place.command("hf-branch", &["resume", "BR-0002"])));
        place.ok("hf-branch", &["suspend", "--summary", "On page 4711"]);
    }
    let more = median(&mut times) * 1000.0 - note;
    table.row("resume, with a long memory, beyond a note", more, "ms", "<= 20", more <= 20.0);
}

/// Size and peak memory of every command, each in a typical use.
fn commands(table: &mut Table) {
    let place = with_history(1_000);
    place.ok("hf-job", &["fire", "--", "true"]);
    for entry in hiveforge::cli::COMMANDS {
        let name = entry.name;
        let args: &[&str] = match name {
            "hf-activity" => &["--kind", "thinking", "--title", "x"],
            "hf-append" => &["Heartbeat", "--subject", "run:last"],
            "hf-backup" => &["copy"],
            "hf-checkpoint" => &["x"],
            "hf-init" => &["other"],
            "hf-lineage" => &["run:last"],
            "hf-pause" => &["x"],
            "hf-poll" => &["T-0012"],
            "hf-ref" => &["check"],
            "hf-resume" => &["--project", "main"],
            "hf-review" => &["status"],
            "hf-state" => &["start", "x"],
            "hf-stop" => &["x"],
            "hf-log" | "hf-project" | "hf-status" | "hf-verify" | "hf-watchdog" => &[],
            "hf-deepwork" => &["start", "--flexible", "x"],
            _ => &["list"],
        };
        let size = fs::metadata(binary(name)).map_or(f64::NAN, |meta| meta.len() as f64 / 1048576.0);
        table.row(&format!("size of {name}"), size, "MiB", "-", true);
        let peak = peak_kib(&place, name, args) / 1024.0;
        table.row(&format!("peak memory of {name} {}", args.first().unwrap_or(&"")), peak, "MiB", "-", true);
    }
}

fn batch(table: &mut Table) {
    const EVENTS: usize = 10_000;
    let line = |n| {
        format!("{{\"event_type\":\"RequirementProposed\",\"payload\":{{\"title\":\"Requirement number {n}\"}}}}\n")
    };
    let input: String = (0..EVENTS).map(line).collect();
    let mut times: Vec<Duration> = (0..7)
        .map(|_| {
            let place = Place::new();
            let file = place.dir.path().join("batch.jsonl");
            fs::write(&file, &input).expect("a file");
            time(place.command("hf-append", &["--batch"]).stdin(fs::File::open(file).expect("a file")))
        })
        .collect();
    let rate = EVENTS as f64 / median(&mut times);
    table.row("batch append", rate, "events/s", ">= 80000", rate >= 80_000.0);
}

fn verify(table: &mut Table) {
    let place = with_history(1_000_000);
    let segments = "openssl dgst -sha256 Vault/Akashic/events/*/*.jsonl";
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        ours.push(time(&mut place.command("hf-verify", &["--jobs", "2"])));
        let mut peer = Command::new("bash");
        theirs.push(time(peer.args(["-c", segments]).current_dir(place.dir.path()).stdout(Stdio::null())));
    }
    let fast = median(&mut ours);
    let ratio = fast / median(&mut theirs);
    table.row("verify a million events vs. openssl dgst -sha256", ratio, "times", "<= 1.5", ratio <= 1.5);
    table.row("verify, events per second on two threads", 1_000_005.0 / fast, "events/s", "-", true);
    let reference = time(&mut place.command("hf-verify", &["--reference"])).as_secs_f64();
    table.row("verify vs. its own reference implementation", fast / reference, "times", "-", true);
    let peak = peak_kib(&place, "hf-verify", &["--jobs", "2"]);
    table.row("peak memory of verify", peak / 1024.0, "MiB", "< 100", peak < 100.0 * 1024.0);
}

fn start(table: &mut Table) {
    let place = Place::new();
    let mut names: Vec<String> = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin"))
        .expect("the commands")
        .map(|entry| entry.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    for name in names {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..101 {
            ours.push(time(&mut place.command(&name, &["--version"])));
            theirs.push(time(&mut Command::new("/bin/true")));
        }
        let ratio = median(&mut ours) / median(&mut theirs);
        table.row(&format!("start of {name} vs. /bin/true"), ratio, "times", "-", true);
    }
    let size = fs::metadata(binary("hf")).map_or(f64::NAN, |meta| meta.len() as f64 / 1048576.0);
    table.row("all commands as scripts/install installs them: hf", size, "MiB", "<= 12", size <= 12.0);
    let dearest = hiveforge::cli::COMMANDS.iter().filter_map(|entry| {
        let alone = instructions(&mut place.command(entry.name, &["--version"]))?;
        Some(instructions(&mut place.command("hf", &[entry.short(), "--version"]))? / alone)
    });
    if let Some(ratio) = dearest.max_by(f64::total_cmp) {
        let what = "instructions of hf X --version vs. hf-X --version, at most";
        table.row(what, ratio, "times", "<= 1.1", ratio <= 1.1);
    }
}

/// The number of instructions a command executes. None if valgrind is missing.
fn instructions(command: &mut Command) -> Option<f64> {
    let mut counted = Command::new("valgrind");
    counted.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(command.get_program());
    let said = counted.args(command.get_args()).output().ok()?;
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

fn history(table: &mut Table) {
    let (small, large) = (with_history(1_000), with_history(1_000_000));
    compare(table, "append, a million events vs. a thousand", &small, &large, 1.15);
    let peak = peak_kib(&large, "hf-append", &["Heartbeat", "--subject", "run:last"]);
    table.row("peak memory of append after a million events", peak / 1024.0, "MiB", "< 20", peak < 20.0 * 1024.0);
}

fn live(table: &mut Table) {
    let with = |count: usize| {
        let place = Place::new();
        let task = |n| format!(r#"{{"event_type":"TaskProposed","payload":{{"title":"Live task number {n}"}}}}"#);
        place.stream(&mut (0..count).map(task).chain(last_run()));
        place
    };
    let (small, large) = (with(10), with(10_000));
    compare(table, "append, ten thousand live entities vs. ten", &small, &large, 1.3);
}

fn rebuild(table: &mut Table) {
    let place = with_history(1_000_000);
    let mut times: Vec<Duration> = (0..3).map(|_| time(&mut place.command("hf-project", &["--rebuild"]))).collect();
    let rate = 1_000_004.0 / median(&mut times);
    table.row("rebuild of index and projections", rate, "events/s", ">= 300000", rate >= 300_000.0);
}

/// One run of the watchdog over ten thousand live tasks, 1,900 of them running, after a million events.
fn tick(table: &mut Table) {
    let place = Place::new();
    let settings = "governance:\n  max_concurrent_tasks: 2000\n  heartbeat_interval_seconds: 100000\n";
    fs::write(place.dir.path().join("Vault/hiveforge.config.yaml"), settings).expect("our own vault");
    let task = |n| format!(r#"{{"event_type":"TaskProposed","subject":"task:l{n}","payload":{{"title":"Live {n}"}}}}"#);
    let run = |n| {
        let assigned =
            format!(r#"{{"event_type":"TaskAssigned","subject":"task:l{n}","payload":{{"lease_seconds":900000}}}}"#);
        let started = format!(r#"{{"event_type":"RunStarted","subject":"run:l{n}","payload":{{"task_id":"l{n}"}}}}"#);
        [assigned, started]
    };
    let live = (0..10_000).map(task).chain((0..1_900).flat_map(run));
    place.stream(&mut (0..10_000).flat_map(life).chain(live));
    // The first run may have to merge the index.
    let mut times: Vec<Duration> = (0..20).map(|_| time(&mut place.command("hf-watchdog", &[]))).skip(1).collect();
    let took = median(&mut times) * 1000.0;
    table.row("one run of the watchdog over 10,000 live tasks", took, "ms", "< 100", took < 100.0);
}

/// How soon pollers return after a job ends, and what they cost while they wait.
fn poll(table: &mut Table) {
    const POLLERS: usize = 500;
    const WATCHED: Duration = Duration::from_secs(10);
    let place = Place::new();
    let gate = place.dir.path().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().expect("it runs").success());
    // Open at both ends, so that opening it never blocks.
    let mut gate = fs::File::options().read(true).write(true).open(gate).expect("a pipe");
    let mut jobs = 0;
    let mut fire = || {
        place.ok("hf-job", &["fire", "--", "sh", "-c", "read x <gate"]);
        jobs += 1;
        format!("T-{jobs:04}")
    };
    let wait = |job: &str| {
        let poller = place.command("hf-poll", &[job]).spawn().expect("it runs");
        while cpu_ms(poller.id()).is_none() || !catches_term(poller.id()) {
            std::thread::yield_now();
        }
        poller
    };
    let mut times = Vec::new();
    for _ in 0..50 {
        let mut poller = wait(&fire());
        // It has installed its signal handlers; shortly after that it waits.
        std::thread::sleep(Duration::from_millis(20));
        times.push(elapsed(|| {
            gate.write_all(b"\n").expect("an open pipe");
            assert!(poller.wait().expect("it ends").success());
        }));
    }
    let median = median(&mut times) * 1000.0;
    table.row("from a job's end to hf-poll's return", median, "ms", "< 50", median < 50.0);
    table.row("the same, the slowest of 50", times[times.len() - 1].as_secs_f64() * 1000.0, "ms", "-", true);
    let job = fire();
    let mut pollers: Vec<_> = (0..POLLERS).map(|_| wait(&job)).collect();
    std::thread::sleep(Duration::from_secs(1));
    let cpu = || pollers.iter().filter_map(|poller| cpu_ms(poller.id())).sum::<f64>();
    let before = cpu();
    std::thread::sleep(WATCHED);
    let spent = cpu() - before;
    table.row("total CPU time of 500 waiting pollers in ten seconds", spent, "ms", "0", spent == 0.0);
    let memory = pollers.iter().filter_map(|poller| own_kib(poller.id())).sum::<f64>() / POLLERS as f64;
    table.row("memory of a waiting poller", memory / 1024.0, "MiB", "-", true);
    let all = elapsed(|| {
        gate.write_all(b"\n").expect("an open pipe");
        for poller in &mut pollers {
            assert!(poller.wait().expect("it ends").success());
        }
    });
    table.row("from a job's end to the return of the last of 500", all.as_secs_f64() * 1000.0, "ms", "-", true);
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn elapsed(what: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    what();
    begin.elapsed()
}

/// Whether a process catches SIGTERM: a poller does so before it waits for anything else.
fn catches_term(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default().trim();
    u64::from_str_radix(caught, 16).is_ok_and(|caught| caught & (1 << (15 - 1)) != 0)
}

/// The CPU time of a process so far, as counted by the scheduler.
fn cpu_ms(pid: u32) -> Option<f64> {
    let mut spent = 0.0;
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()? {
        let counts = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        spent += counts.split(' ').next()?.parse::<f64>().ok()? / 1e6;
    }
    Some(spent)
}

/// The proportional set size of a process: shared memory counts in part.
fn own_kib(pid: u32) -> Option<f64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

/// The peak resident set size of a command, as counted by the kernel.
fn peak_kib(place: &Place, name: &str, args: &[&str]) -> f64 {
    let out = place.dir.path().join("peak");
    let status = Command::new("/usr/bin/time")
        .args(["-f", "%M", "-o"])
        .arg(&out)
        .arg(binary(name))
        .args(args)
        .current_dir(place.dir.path())
        .stdout(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => {
            fs::read_to_string(out).unwrap_or_default().trim().parse().unwrap_or(f64::NAN)
        }
        _ => f64::NAN,
    }
}
