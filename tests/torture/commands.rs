//! Every command that writes, one line each. Add a line for a new command.

use std::fs;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::test_vault::{Reply, TestVault, binary};

/// What repeating the command means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// No effect: its key is in the line, or its goal is already reached.
    Same,
    /// No effect if the key of the uncertain reply is passed.
    WithPrintedKey,
    /// Records another event of the same kind.
    Another,
}

/// Which of its events are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    All,
    /// Only those of this type: another process records what follows.
    Only(&'static str),
    /// None: another process records them at any time.
    None,
}

/// A command that writes.
#[derive(Clone, Copy, Debug)]
pub struct Act {
    /// `VARIABLE=VALUE… NAME ARGUMENTS`, separated by single spaces.
    pub line: &'static str,
    /// Lines to run before it, once for all copies of a vault.
    pub before: &'static [&'static str],
    /// A line to run before it, in every copy.
    pub beside: Option<&'static str>,
    pub input: &'static str,
    pub again: Again,
    pub judged: Judged,
}

const fn act(line: &'static str, before: &'static [&'static str]) -> Act {
    Act { line, before, beside: None, input: "", again: Again::Same, judged: Judged::All }
}

const REQUIREMENT: &[&str] = &["require propose one"];
const ANALYZED: &[&str] = &["require propose one", "require analyze REQ-0001 plan"];
const APPROVED: &[&str] = &["require propose one", "require analyze REQ-0001 plan", "decide approve DEC-0001"];
const READY: &[&str] = &["task propose one"];
const CLAIMED: &[&str] = &["task propose one", "HF_AGENT=bee task claim T-0001"];
const STARTED: &[&str] = &["task propose one", "HF_AGENT=bee task claim T-0001", "HF_AGENT=bee task start T-0001"];
const STORED: &[&str] = &["artifact put stored"];
const CONSTRAINED: &[&str] = &["constraint apply one", "decide approve DEC-0001"];
const MISSION: &[&str] = &["state start one"];
/// Words are separated by spaces, so there is none in the command.
const REVIEWED: &[&str] = &["config set reviewers.order [gpt]", "config set reviewers.gpt.command printf\tPASS:probe"];
const DRIVEN: &[&str] = &[
    "require propose one",
    "require analyze REQ-0001 plan",
    "decide approve DEC-0001",
    "config set runner.command true",
    "state start one --requirement REQ-0001",
];
const PLANNED: &[&str] = &["state start one", "state plan plan"];
const LOGGED_IN: &[&str] = &["session login --agent bee"];
const BRANCH: &[&str] = &["branch create one --type free"];
const DEEP: &[&str] = &["deepwork start --strict 45 one"];

pub const APPEND: Act =
    Act { again: Again::WithPrintedKey, ..act(r#"append RequirementProposed --payload {"title":"probe"}"#, &[]) };
pub const BATCH: Act = Act { again: Again::WithPrintedKey, input: LINES, ..act("append --batch", &[]) };
pub const INIT: Act = act("init", &[]);

/// All of them except hf-init, which starts without a vault.
pub const ACTS: &[Act] = &[
    APPEND,
    BATCH,
    Act { input: KEYED, ..act("append --stream", &[]) },
    act("project --rebuild", REQUIREMENT),
    act("project --snapshot probe", REQUIREMENT),
    act("require propose probe --key probe", &[]),
    act("require analyze REQ-0001 probe --key probe", REQUIREMENT),
    act("require reject REQ-0001 --reason probe --key probe", REQUIREMENT),
    act("decide request --kind requirement_approval --target REQ-0001 --summary probe --key probe", REQUIREMENT),
    act("decide approve DEC-0001 --key probe", ANALYZED),
    act("decide reject DEC-0001 --reason probe --key probe", ANALYZED),
    act("task propose probe --requirement REQ-0001 --key probe", APPROVED),
    act("HF_AGENT=bee task claim T-0001 --key probe", READY),
    act("HF_AGENT=bee task start T-0001 --key probe", CLAIMED),
    act("HF_AGENT=bee task heartbeat T-0001 --key probe", STARTED),
    act("HF_AGENT=bee task succeed T-0001 --key probe", STARTED),
    act("HF_AGENT=bee task fail T-0001 --class transient --reason probe --key probe", STARTED),
    act("task abort T-0001 --key probe", READY),
    act("artifact put probe --key probe", STORED),
    act("artifact validate ART-0001 --key probe", STORED),
    act("artifact invalidate ART-0001 --reason probe --key probe", STORED),
    act("constraint apply probe --key probe", &[]),
    act("constraint remove CON-0001 --key probe", CONSTRAINED),
    act("stop probe", STARTED),
    act("resume --system", &["stop one"]),
    Act { judged: Judged::Only("TaskProposed"), ..act("job fire --key probe -- true", &[]) },
    Act {
        beside: Some("job fire -- sleep 1"),
        judged: Judged::None,
        again: Again::Another,
        ..act("job cancel T-0001", &[])
    },
    Act {
        beside: Some("job fire -- sleep 1"),
        judged: Judged::None,
        again: Again::Another,
        ..act("task abort T-0001", &[])
    },
    Act { again: Again::Another, ..act("checkpoint probe", &[]) },
    Act { again: Again::Another, ..act("checkpoint --state probe", &["checkpoint one"]) },
    Act { again: Again::Another, ..act("activity --kind thinking --title probe", &["checkpoint one"]) },
    Act { again: Again::Another, ..act("deepwork start --strict 45 probe", &[]) },
    Act { again: Again::Another, ..act("deepwork complete", DEEP) },
    Act { again: Again::Another, ..act("deepwork extend 15", DEEP) },
    act("task assign T-0001 bee --key probe", READY),
    act("state start probe --key probe", &[]),
    act("state set OPEN_K=K1 --key probe", MISSION),
    Act { input: PLAN, ..act("state plan - --key probe", MISSION) },
    // Each of these records what belongs together step by step, and some of it from another process.
    Act {
        beside: Some("config trust"),
        judged: Judged::None,
        again: Again::Another,
        ..act("state go --max 10s", DRIVEN)
    },
    Act { judged: Judged::None, again: Again::Another, ..act("state fire T-0001", PLANNED) },
    Act {
        beside: Some("job fire -- sleep 0.05"),
        judged: Judged::None,
        again: Again::Another,
        ..act("HF_AGENT=bee poll T-0002 1 1", STARTED)
    },
    Act {
        beside: Some("job fire -- sleep 0.05"),
        judged: Judged::None,
        again: Again::Another,
        ..act("HF_AGENT=bee job wait T-0002 --max 1", STARTED)
    },
    act("state more-rounds 1 --key probe", MISSION),
    act("state round --key probe", MISSION),
    act("state done --key probe", MISSION),
    act("state fail --key probe", MISSION),
    Act { input: "PASS: probe\n", ..act("review record --reviewer gpt --key probe", MISSION) },
    act("review open", &[]),
    Act { beside: Some("config trust"), ..act("review run probe", REVIEWED) },
    act("ref add probe", &[]),
    act("pause probe", STARTED),
    act("pause --archive side --yes", &["task propose one --project side --create"]),
    act("resume --project main", &["pause one"]),
    Act { again: Again::Another, ..act("session login --agent bee", &[]) },
    Act { again: Again::Another, ..act("session renew --session S-0001", LOGGED_IN) },
    act("session logout --session S-0001", LOGGED_IN),
    act("branch create probe --type free --key probe", &["branch create one --type free", "branch suspend"]),
    act("branch note probe --key probe", BRANCH),
    Act { again: Again::Another, ..act("branch suspend --summary probe", BRANCH) },
    Act { again: Again::Another, ..act("branch resume BR-0002", &["branch create one --type free", "branch suspend"]) },
    act("branch tell main probe --key probe", BRANCH),
    Act { again: Again::Another, ..act("branch read", &["branch create one --type free", "branch tell main one"]) },
    act("watchdog", STARTED),
    act("backup copy", STORED),
];

/// Commands that only read or wait.
const READERS: &[&str] = &["lineage", "log", "status", "verify"];

const PLAN: &str = r#"{"tasks":[{"id":"a","title":"one"},{"id":"b","title":"two","depends_on":["a"]}]}"#;
const WORK: &str = r#"{"tasks":[{"id":"a","title":"one","command":"true"}]}"#;
const LINES: &str = r#"{"event_type":"RequirementProposed","payload":{"title":"probe 1"}}
{"event_type":"RequirementProposed","payload":{"title":"probe 2"}}
{"event_type":"RequirementProposed","payload":{"title":"probe 3"}}
{"event_type":"RequirementProposed","payload":{"title":"probe 4"}}
{"event_type":"RequirementProposed","payload":{"title":"probe 5"}}
"#;
const KEYED: &str = r#"{"event_type":"RequirementProposed","payload":{"title":"probe 1"},"idempotency_key":"p1"}
{"event_type":"RequirementProposed","payload":{"title":"probe 2"},"idempotency_key":"p2"}
{"event_type":"RequirementProposed","payload":{"title":"probe 3"},"idempotency_key":"p3"}
"#;

/// Commands of the toolkit that no line runs.
pub fn not_covered() -> Vec<&'static str> {
    let known = |name: &str| name == "init" || READERS.contains(&name) || ACTS.iter().any(|act| act.name() == name);
    hiveforge::cli::COMMANDS.iter().map(|entry| entry.short()).filter(|name| !known(name)).collect()
}

/// Splits a line into variables, the name of the command, and its arguments.
fn parts(line: &'static str) -> (Vec<(&'static str, &'static str)>, &'static str, Vec<&'static str>) {
    let mut words = line.split(' ').peekable();
    let mut variables = Vec::new();
    while let Some(pair) = words.peek().and_then(|word| word.split_once('=')) {
        variables.push(pair);
        words.next();
    }
    (variables, words.next().expect("a command"), words.collect())
}

/// A command in a hive, under another program if one is given.
fn process(hive: &TestVault, program: &[&str], line: &'static str, key: Option<&str>) -> Command {
    let (variables, name, args) = parts(line);
    let plain = hive.process(name);
    let mut command = match program {
        [] => Command::new(plain.get_program()),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(binary(name));
            command
        }
    };
    command.current_dir(hive.dir()).env_clear().env("PATH", "/usr/bin:/bin");
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).envs(variables).args(args);
    command.args(key.map(|key| format!("--key={key}")));
    command
}

/// Runs a line that must succeed.
fn run_line(hive: &TestVault, line: &'static str) {
    let reply = Reply::of(process(hive, &[], line, None).stdin(Stdio::null()).output().expect("the command runs"));
    assert_eq!(reply.code, Some(0), "{line}: {reply:?}");
}

impl Act {
    pub fn name(&self) -> &'static str {
        parts(self.line).1
    }

    /// Whether the line runs this command, given as `job` or `job fire`.
    pub fn is_of(&self, command: &str) -> bool {
        let (_, name, args) = parts(self.line);
        let mut wanted = command.split(' ');
        wanted.next() == Some(name) && args.iter().zip(wanted).all(|(arg, wanted)| *arg == wanted)
    }

    /// Brings a vault to a state in which this command can run.
    pub fn prepare(&self, hive: &TestVault) {
        files(hive.dir());
        self.before.iter().for_each(|line| run_line(hive, line));
    }

    /// Runs it, under another program if one is given.
    pub fn run(&self, hive: &TestVault, program: &[&str], key: Option<&str>) -> Reply {
        files(hive.dir());
        // On another disk: that of the hive may be full.
        let mut stdin = tempfile::tempfile().expect("a file for standard input");
        stdin.write_all(self.input.as_bytes()).and_then(|()| stdin.rewind()).expect("a file for standard input");
        let mut command = process(hive, program, self.line, key);
        command.stdin(Stdio::from(stdin));
        Reply::of(command.output().expect("the command runs"))
    }

    /// Runs the line that this command needs in every copy.
    pub fn run_beside(&self, hive: &TestVault) {
        self.beside.iter().for_each(|line| run_line(hive, line));
    }
}

/// Creates the files that the lines name.
fn files(dir: &Path) {
    for (name, text) in [("stored", "stored"), ("probe", "probe"), ("plan", WORK)] {
        if !dir.join(name).exists() {
            fs::write(dir.join(name), text).expect("a file");
        }
    }
}
