//! Hooks that are told of events: which ones, what they are told, and that nothing is missed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hiveforge::base::{Now, Result};
use hiveforge::op::task::{self, AbortRequest};
use hiveforge::op::{self, Context, Host, Mode, NotifyRequest, WatchdogRequest};
use hiveforge::vault::{Append, LogStore, LogView, LogWatch, Vault, WriteOptions};
use rustix::process::Signal;

use crate::support::job_fixture::{TestJobVault, ends, kill};
use crate::support::steps::{approved, count, ok, running, sh};
use crate::support::test_vault::{Reply, TestVault, mask};
use crate::support::watchdog_fixture::{all_is_well, at, moment};

/// The settings of hooks that keep what they are told, one file for each.
fn hooks(names: &[&str]) -> String {
    let all: String = names.iter().map(|name| format!("  {name}: 'cat >>../{name}.txt'\n")).collect();
    format!("hive:\n  name: Bees\nhooks:\n{all}")
}

/// A hook that keeps the ids of the events it is told of.
const KEEP_IDS: &str = "echo $HF_EVENT_ID >>../told";

fn on_done(script: &str) -> String {
    format!("hooks:\n  on_done: '{script}'\n")
}

/// What a hook was told so far; it is forgotten with the reading.
fn heard(story: &TestJobVault, hook: &str) -> String {
    story.gone();
    let path = story.dir().join(format!("{hook}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(path);
    mask(&text)
}

/// The ids that `KEEP_IDS` kept, in order.
fn told(story: &TestJobVault) -> Vec<String> {
    story.gone();
    fs::read_to_string(story.dir().join("told")).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The ids of the recorded events of some kinds, in order.
fn recorded(story: &TestJobVault, kinds: &[&str]) -> Vec<String> {
    let all = story.events().into_iter().filter(|event| kinds.iter().any(|kind| event["event_type"] == *kind));
    all.map(|event| event["event_id"].as_str().unwrap().to_owned()).collect()
}

/// Proposes tasks, so that they can be aborted.
fn propose(story: &TestJobVault, tasks: usize) {
    (0..tasks).for_each(|_| drop(ok(story, "hf-task propose Form")));
}

/// A program that embeds the library: it names no program to start.
fn embedded(story: &TestJobVault) -> Context {
    let host = Host { trust: story.trusts(), ..Host::new(|| Now { millis: moment(1).0 as u64 * 1000 }) };
    Context::new(story.vault(), story.context().caller, host)
}

/// Aborts the nth task in this process, which starts no notifier.
fn abort(ctx: &Context, n: usize) {
    task::abort(ctx, AbortRequest { reference: format!("T-{n:04}"), ..Default::default() }).unwrap();
}

fn done() -> NotifyRequest {
    NotifyRequest { hook: "hooks.on_done".to_owned() }
}

/// Runs the command that a report names.
#[track_caller]
fn run_the_command_in(story: &TestJobVault, report: &str) {
    for line in report.lines().filter_map(|line| line.strip_prefix("DO:")) {
        ok(story, line);
    }
}

/// T2
#[test]
fn t2_a_hook_is_told_of_a_decision_that_is_requested() {
    let story = TestJobVault::new(&hooks(&["on_decision", "on_done"]));
    ok(&story, "hf-require propose Login");
    assert_eq!((heard(&story, "on_decision"), heard(&story, "on_done")), (String::new(), String::new()));
    ok(&story, "hf-require analyze REQ-0001 Easy.");
    let report = heard(&story, "on_decision");
    assert_eq!(
        report,
        "EVENT:DecisionRequested\nHIVE:Bees\nSUBJECT:decision:<ulid>\nREF:DEC-0001\nSTATUS:Requested\n\
         SUM:DEC-0001 needs an answer: Build REQ-0001, Login?\nWHEN:2026-01-31T12:00:00Z\nDO:hf-decide show DEC-0001\n"
    );
    run_the_command_in(&story, &report);
    story.over();
}

/// T2
#[test]
fn t2_a_hook_is_told_of_every_escalation() {
    let mut story = TestJobVault::new(&hooks(&["on_escalation"]));
    running(&story, "agent:a");
    ok(&story, "hf-task fail T-0001 --class permanent --reason auth --actor agent:a");
    ok(&story, "hf-require propose Login");
    ok(&story, "hf-require analyze REQ-0001 Easy.");
    let report = heard(&story, "on_escalation");
    assert_eq!(
        report,
        "EVENT:EscalationRequired\nHIVE:Bees\nSUBJECT:task:<ulid>\nREF:T-0001\nSTATUS:Aborted\n\
         SUM:T-0001 needs an operator: Form (auth)\nWHEN:2026-01-31T12:00:00Z\nDO:hf-decide show ESC-0001\n"
    );
    run_the_command_in(&story, &report);
    // A decision that nobody answers stays open.
    at(&mut story, 86_401, "hf-watchdog").expect_exit(1);
    let report = heard(&story, "on_escalation");
    assert_eq!(
        report,
        "EVENT:ApprovalTimedOut\nHIVE:Bees\nSUBJECT:decision:<ulid>\nREF:DEC-0001\nSTATUS:Escalated\n\
         SUM:DEC-0001 was not answered in time: Build REQ-0001, Login?\nWHEN:2026-02-01T12:00:01Z\n\
         DO:hf-decide show DEC-0001\n"
    );
    run_the_command_in(&story, &report);
    story.over();
}

#[test]
fn a_decision_that_is_rejected_for_lack_of_an_answer_is_an_end_and_no_escalation() {
    let policy = "governance:\n  approval_timeout_policy: reject\n";
    let mut story = TestJobVault::new(&format!("{}{policy}", hooks(&["on_escalation", "on_done"])));
    ok(&story, "hf-require propose Login");
    ok(&story, "hf-require analyze REQ-0001 Easy.");
    at(&mut story, 86_401, "hf-watchdog").expect_exit(1);
    assert_eq!(heard(&story, "on_escalation"), "");
    let report = heard(&story, "on_done");
    assert!(report.starts_with("EVENT:RequirementRejected\n"), "{report}");
    assert!(report.contains("\nSUM:REQ-0001 was rejected: Login (no answer in time)\n"), "{report}");
    story.over();
}

/// T2
#[test]
fn t2_a_hook_is_told_when_tasks_jobs_and_requirements_end() {
    let story = TestJobVault::new(&hooks(&["on_done"]));
    let sums = || {
        let report = heard(&story, "on_done");
        run_the_command_in(&story, &report);
        report.lines().filter_map(|line| line.strip_prefix("SUM:")).map(str::to_owned).collect::<Vec<_>>()
    };
    approved(&story);
    ok(&story, "hf-task propose Form --requirement REQ-0001");
    ok(&story, "hf-task claim T-0001 --actor agent:a");
    ok(&story, "hf-task start T-0001 --actor agent:a");
    assert_eq!(sums(), [""; 0]);
    ok(&story, "hf-task succeed T-0001 --actor agent:a");
    assert_eq!(sums(), ["T-0001 succeeded: Form", "REQ-0001 was implemented: Login"]);
    ok(&story, "hf-require verify REQ-0001");
    ok(&story, "hf-task propose Other");
    ok(&story, "hf-task abort T-0002 --reason unneeded");
    assert_eq!(sums(), ["REQ-0001 was verified: Login", "T-0002 was aborted: Other (unneeded)"]);
    ok(&story, "hf-require propose Logout");
    ok(&story, "hf-require reject REQ-0002 --reason late");
    story.fire("exit 3");
    story.poll("T-0003");
    assert_eq!(sums(), ["REQ-0002 was rejected: Logout (late)", "T-0003 was aborted: sh -c exit 3 (exit code 3)"]);
    story.over();
}

/// D4: giving up is a hook of its own, and neither another attempt nor a reminder.
#[test]
fn d4_giving_up_on_an_agent_is_told_once_and_is_not_another_attempt() {
    let kept = "cat; echo \"$HF_HOOK $HF_ANOMALY_AGENT $HF_CODE $HF_TRY/$HF_TRY_LIMIT\"";
    let settings = "watchdog:\n  max_recovery_attempts: 2\n  recovery_wait_cycles: 3\n  remind_every: 240\n  hooks:\n";
    let hook = |name: &str| format!("    {name}: '({kept}) >>../{name}.txt'\n");
    let mut story = TestJobVault::new(&format!("{settings}{}{}", hook("on_anomaly"), hook("on_giving_up")));
    ok(&story, "hf-checkpoint Here");
    let (mut tries, mut given_up) = (Vec::new(), String::new());
    for n in 0..14 {
        at(&mut story, 601 + 60 * n, "hf-watchdog").expect_exit(1);
        let anomalies = heard(&story, "on_anomaly");
        tries.extend(anomalies.lines().filter(|line| line.starts_with("watchdog")).map(|line| (n, line.to_owned())));
        given_up += &heard(&story, "on_giving_up");
    }
    let call = |attempt: &str| format!("watchdog.hooks.on_anomaly main INACTIVE {attempt}");
    // The second attempt coincides with a reminder. A reminder after giving up is no attempt.
    assert_eq!(tries, [(0, call("1/2")), (4, call("2/2")), (8, call("/")), (12, call("/"))]);
    assert_eq!(
        given_up,
        "EVENT:EscalationRequired\nHIVE:hive\nSUBJECT:agent:main\nREF:agent:main\nSTATUS:Active\n\
         SUM:agent main cannot be woken (INACTIVE for 1081 s; recovery attempts failed: 2)\n\
         WHEN:2026-01-31T12:18:01Z\nDO:hf-decide show ESC-0001\nAGENT:main\nCODE:INACTIVE\nCALL:giving_up\n\
         watchdog.hooks.on_giving_up main INACTIVE /\n"
    );
    assert_eq!((count(&story, "EscalationRequired"), count(&story, "HookFailed")), (1, 0));
    all_is_well(&story);
}

#[test]
fn no_process_is_started_and_no_file_made_for_a_hook_that_is_not_set() {
    let story = TestJobVault::new("hooks:\n  on_decision: 'true'\n");
    propose(&story, 1);
    ok(&story, "hf-task abort T-0001");
    assert!(story.processes().is_empty() && !story.akashic("notify").exists());
    story.over();
}

#[test]
fn a_hook_is_told_only_of_what_happens_while_it_is_set() {
    let story = TestJobVault::new("");
    propose(&story, 4);
    ok(&story, "hf-task abort T-0001");
    for (settings, task) in [(on_done(KEEP_IDS), "T-0002"), (String::new(), "T-0003"), (on_done(KEEP_IDS), "T-0004")] {
        story.settle(&settings);
        ok(&story, &format!("hf-task abort {task}"));
        story.gone();
    }
    let ends = recorded(&story, &["TaskAborted"]);
    assert_eq!(told(&story), [ends[1].as_str(), &ends[3]]);
    story.over();
}

#[test]
fn without_a_program_to_start_a_tick_sends_everything() {
    let story = TestJobVault::new(&on_done(KEEP_IDS));
    propose(&story, 3);
    let ctx = embedded(&story);
    for n in 1..=3 {
        abort(&ctx, n);
    }
    assert_eq!(told(&story), [""; 0]);
    op::watchdog(&ctx, WatchdogRequest { mode: Mode::DryRun }).unwrap();
    assert_eq!(told(&story), [""; 0]);
    op::watchdog(&ctx, WatchdogRequest { mode: Mode::Write }).unwrap();
    assert_eq!(told(&story), recorded(&story, &["TaskAborted"]));
    all_is_well(&story);
}

#[test]
fn nobody_waits_for_a_hook_and_no_hook_waits_for_another() {
    let story = TestJobVault::new(
        "hooks:\n  on_done: 'echo in >../came; read x <../gate'\n  on_decision: 'echo in >../other'\n",
    );
    let (mut came, mut gate, mut other) = (story.gate("came"), story.gate("gate"), story.gate("other"));
    propose(&story, 3);
    // The commands end, and so do their output pipes, while the hook stands at the gate.
    ok(&story, "hf-task abort T-0001");
    assert_eq!(came.line(), "in");
    ok(&story, "hf-task abort T-0002");
    ok(&story, "hf-require propose Login");
    ok(&story, "hf-require analyze REQ-0001 Easy.");
    assert_eq!(other.line(), "in");
    // Whoever finds the hook busy leaves it to the process that tells it: one after the other.
    gate.open();
    assert_eq!(came.line(), "in");
    gate.open();
    story.gone();
    ok(&story, "hf-task abort T-0003");
    assert_eq!(came.line(), "in");
    gate.open();
    story.over();
}

#[test]
fn commits_at_the_same_time_are_told_once_each_in_the_order_of_the_log() {
    let story = TestJobVault::new(&on_done(KEEP_IDS));
    propose(&story, 12);
    let start = |n: usize| {
        let reference = format!("T-{n:04}");
        story.process("task").args(["abort", &reference]).stdout(Stdio::null()).spawn().unwrap()
    };
    let all: Vec<_> = (1..=12).map(start).collect();
    all.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    assert_eq!(told(&story), recorded(&story, &["TaskAborted"]));
    assert_eq!(told(&story).len(), 12);
    story.over();
}

/// The log of a vault in which somebody else commits just after it was read for the nth time.
#[derive(Debug)]
struct Intruded {
    vault: Vault,
    intruder: Context,
    reads: AtomicUsize,
    at: usize,
}

impl LogStore for Intruded {
    fn view(&self) -> Result<LogView> {
        let view = LogStore::view(&self.vault)?;
        if self.reads.fetch_add(1, Ordering::Relaxed) == self.at {
            abort(&self.intruder, 2);
            op::notify(&self.intruder, done())?;
        }
        Ok(view)
    }

    fn append(&self, options: WriteOptions) -> Result<Box<dyn Append + '_>> {
        LogStore::append(&self.vault, options)
    }

    fn watch(&self) -> Box<dyn LogWatch + '_> {
        LogStore::watch(&self.vault)
    }
}

#[test]
fn a_commit_at_any_moment_is_told_by_its_own_notifier_or_by_the_one_that_is_busy() {
    let mut reads = 1;
    for at in 0.. {
        let story = TestJobVault::new(&on_done(KEEP_IDS));
        propose(&story, 2);
        let ctx = embedded(&story);
        abort(&ctx, 1);
        let (vault, intruder) = (Vault::open(&story.vault()).unwrap(), ctx.clone());
        let log = Arc::new(Intruded { vault, intruder, reads: AtomicUsize::new(0), at });
        op::notify(&Context { store: Some(log.clone()), ..ctx }, done()).unwrap();
        if at >= log.reads.load(Ordering::Relaxed) {
            break;
        }
        assert_eq!(told(&story), recorded(&story, &["TaskAborted"]), "read {at}");
        reads += 1;
    }
    assert!(reads > 4, "{reads}");
}

/// A notifier in the foreground, so that it can be killed.
fn notifier(story: &TestJobVault) -> Child {
    let vault = story.vault().display().to_string();
    let mut command = story.process("job");
    command.args(["notify", "hooks.on_done", "--vault", &vault]).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

#[test]
fn a_notifier_killed_at_any_point_is_made_good_by_a_tick() {
    const KILLS: usize = 40;
    let story = TestJobVault::new(&on_done(KEEP_IDS));
    propose(&story, KILLS + 1);
    let ctx = embedded(&story);
    // Returns after this many looks, or when the process has ended, and how many looks it took.
    let look = |child: &mut Child, max: usize| {
        (0..max).take_while(|_| matches!(child.try_wait(), Ok(None))).inspect(|_| std::thread::yield_now()).count()
    };
    let mut whole = usize::MAX;
    for n in 0..=KILLS {
        abort(&ctx, n + 1);
        let mut child = notifier(&story);
        match n {
            0 => whole = look(&mut child, usize::MAX),
            n => drop(look(&mut child, whole * n / KILLS)),
        }
        // It may have ended.
        let _ = child.kill();
        child.wait().unwrap();
    }
    ok(&story, "hf-watchdog");
    let mut told = told(&story);
    // A hook that was running when its notifier was killed may come late.
    told.sort();
    told.dedup();
    assert_eq!(told, recorded(&story, &["TaskAborted"]));
    story.over();
}

#[test]
fn a_notifier_killed_while_its_hook_runs_sends_again() {
    for script in ["echo in >../came; read x <../gate; K", "K; echo in >../came; read x <../gate"] {
        let story = TestJobVault::new(&on_done(&script.replace('K', KEEP_IDS)));
        let (mut came, mut gate) = (story.gate("came"), story.gate("gate"));
        propose(&story, 1);
        ok(&story, "hf-task abort T-0001");
        came.line();
        // The notifier, and the process that attends its hook. The hook is not found by its arguments.
        let mut found = story.processes();
        found.sort_by_key(|(pid, _)| *pid);
        assert_eq!(found.len(), 2);
        kill(found[0].0, Signal::KILL);
        // It has ended the hook, which reads nothing from the gate anymore.
        ends(found[1].0, &found[1].1);
        ok(&story, "hf-watchdog");
        came.line();
        gate.open();
        let mut told = told(&story);
        told.dedup();
        assert_eq!(told, recorded(&story, &["TaskAborted"]), "{script}");
        assert_eq!(count(&story, "HookFailed"), 0);
    }
}

#[test]
fn a_cursor_that_cannot_be_written_sends_again_later() {
    let story = TestJobVault::new(&on_done(KEEP_IDS));
    propose(&story, 2);
    ok(&story, "hf-task abort T-0001");
    story.gone();
    let folder = story.akashic("notify/hooks.on_done");
    let cursor = fs::read(folder.join("cursor.json")).unwrap();
    fs::remove_file(folder.join("cursor.json")).unwrap();
    fs::create_dir(folder.join("cursor.json")).unwrap();
    ok(&story, "hf-task abort T-0002");
    story.gone();
    fs::remove_dir(folder.join("cursor.json")).unwrap();
    fs::write(folder.join("cursor.json"), cursor).unwrap();
    ok(&story, "hf-watchdog");
    let mut told = told(&story);
    told.dedup();
    assert_eq!(told, recorded(&story, &["TaskAborted"]));
    // One that is lost or damaged means that everything since the hook was set is sent again, and nothing is missed.
    fs::write(folder.join("cursor.json"), "{").unwrap();
    ok(&story, "hf-watchdog");
    assert!(self::told(&story).ends_with(&recorded(&story, &["TaskAborted"])));
    story.over();
}

#[test]
fn a_hook_that_fails_is_tried_again_later_and_then_skipped() {
    let mut story = TestJobVault::new(&on_done("test -e ../works && K").replace('K', KEEP_IDS));
    propose(&story, 3);
    let [first, second] = ["hf-task abort T-0001", "hf-task abort T-0002"];
    let attempts = |story: &TestJobVault| {
        story.gone();
        story.json("notify/hooks.on_done/cursor.json")["attempts"].as_u64().unwrap()
    };
    ok(&story, first);
    assert_eq!(attempts(&story), 1);
    // Neither a commit nor a tick in the same half minute tries again.
    at(&mut story, 10, second).expect_exit(0);
    at(&mut story, 20, "hf-watchdog").expect_exit(1);
    assert_eq!(attempts(&story), 1);
    at(&mut story, 40, "hf-watchdog").expect_exit(1);
    assert_eq!(attempts(&story), 2);
    // The third attempt is the last one; the next event gets its first one.
    at(&mut story, 80, "hf-task abort T-0003").expect_exit(0);
    assert_eq!(attempts(&story), 1);
    fs::write(story.dir().join("works"), "").unwrap();
    at(&mut story, 120, "hf-watchdog").expect_exit(1);
    assert_eq!(told(&story), recorded(&story, &["TaskAborted"])[1..]);
    assert_eq!((count(&story, "HookFailed"), count(&story, "HookRecovered")), (1, 1));
    story.over();
}

#[test]
fn a_hook_that_hangs_is_killed_and_tried_again() {
    let script = format!("{KEEP_IDS}; test -e ../works || exec sleep 1000");
    let mut story = TestJobVault::new(&format!("{}  timeout_seconds: 1\n", on_done(&script)));
    propose(&story, 1);
    ok(&story, "hf-task abort T-0001");
    assert_eq!(told(&story).len(), 1);
    assert_eq!(
        story.of_kind("HookFailed")[0]["payload"]["reason"],
        "the hook: the command timed out: killed after 1 second"
    );
    fs::write(story.dir().join("works"), "").unwrap();
    at(&mut story, 60, "hf-watchdog").expect_exit(1);
    assert_eq!(told(&story).len(), 2);
    assert_eq!(count(&story, "HookRecovered"), 1);
    story.over();
}

#[test]
fn a_restored_backup_does_not_send_its_history_again() {
    let story = TestJobVault::new(&on_done("echo $HF_VAULT $HF_REF >>${HF_VAULT%/*}/told"));
    propose(&story, 2);
    ok(&story, "hf-task abort T-0001");
    story.gone();
    let copy = TestVault::empty();
    story.run("backup", &[&copy.vault().display().to_string()]).expect_exit(0);
    copy.trust();
    ok(&copy, "hf-watchdog");
    ok(&copy, "hf-task abort T-0002");
    ok(&story, "hf-task abort T-0002");
    let copy_of = |vault: &str| format!("{vault} T-0002");
    // Each vault tells of its own.
    let copied = loop {
        let text = fs::read_to_string(copy.dir().join("told")).unwrap_or_default();
        if text.ends_with('\n') {
            break text;
        }
        std::thread::yield_now();
    };
    assert_eq!(copied.trim_end(), copy_of(&copy.vault().display().to_string()));
    assert_eq!(told(&story).len(), 2);
}

#[test]
fn the_hooks_of_somebody_elses_vault_are_never_run() {
    let story = TestJobVault::new(&on_done(KEEP_IDS));
    propose(&story, 1);
    let ctx = embedded(&story);
    abort(&ctx, 1);
    if chown(story.vault(), Some(rustix::process::geteuid().as_raw() + 1), None).is_err() {
        eprintln!("not root: another user's vault cannot be made here, so only root's run shows this");
        return;
    }
    let before = story.contents();
    let refused = |reply: Reply| assert_eq!(reply.expect_exit(3).get("REASON"), "not_owner");
    refused(sh(&story, "hf-job notify hooks.on_done"));
    refused(sh(&story, "hf-watchdog"));
    assert!(story.contents() == before && told(&story).is_empty());
    chown(story.vault(), Some(rustix::process::geteuid().as_raw()), None).unwrap();
    ok(&story, "hf-watchdog");
    assert_eq!(told(&story).len(), 1);
}

#[test]
fn a_hook_from_a_file_that_others_can_write_waits_until_the_file_can_be_trusted() {
    let story = TestJobVault::new(&on_done(KEEP_IDS));
    propose(&story, 1);
    let file = story.config();
    let set_mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o666);
    ok(&story, "hf-task abort T-0001");
    (0..5).for_each(|_| drop(sh(&story, "hf-watchdog").expect_exit(1)));
    assert_eq!((told(&story).len(), count(&story, "HookFailed")), (0, 1));
    set_mode(0o600);
    sh(&story, "hf-watchdog").expect_exit(1);
    assert_eq!((told(&story).len(), count(&story, "HookRecovered")), (1, 1));
    story.over();
}

#[test]
fn only_hooks_that_are_told_of_events_can_be_notified() {
    let story = TestJobVault::new("");
    for hook in ["watchdog.hooks.on_beat", "hive.name", "nothing"] {
        let reply = sh(&story, &format!("hf-job notify {hook}")).expect_exit(2);
        assert_eq!(reply.get("SUM"), format!("{hook} is not a hook that is notified of events"));
    }
}
