//! A7 and T7: whatever another process holds or has left in the vault, a stop can be raised, is seen by everybody, and is
//! lifted by an operator alone.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use fs2::FileExt;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::support::job_fixture::{TestJobVault, lives};
use crate::support::steps::{count, keeps_the_rules, kinds_since, ok, sh};
use crate::support::test_vault::{Reply, TestVault, write_private};

/// Holds the lock of a file for as long as it lives.
fn hold(path: &Path) -> File {
    let file = File::open(path).expect("a file");
    file.lock_exclusive().expect("a lock");
    file
}

fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// What an attacker, or an accident, has done to the vault before somebody raises a stop.
type Mishap = fn(&Path) -> Option<File>;

fn replaced(akashic: &Path, put: impl FnOnce(&Path)) -> Option<File> {
    let control = akashic.join("control");
    fs::remove_file(&control).unwrap();
    put(&control);
    None
}

const MISHAPS: &[(&str, Mishap)] = &[
    ("a held lock", |akashic| Some(hold(&akashic.join("control")))),
    ("a missing record", |akashic| replaced(akashic, |_| {})),
    ("a damaged record", |akashic| replaced(akashic, |control| fs::write(control, "x").unwrap())),
    ("a directory", |akashic| replaced(akashic, |control| fs::create_dir(control).unwrap())),
    ("a directory with a file", |akashic| {
        replaced(akashic, |control| {
            fs::create_dir(control).unwrap();
            fs::write(control.join("x"), "").unwrap();
        })
    }),
    ("a symbolic link", |akashic| replaced(akashic, |control| symlink("/dev/null", control).unwrap())),
    ("a link to itself", |akashic| replaced(akashic, |control| symlink("control", control).unwrap())),
    ("a named pipe", |akashic| replaced(akashic, make_fifo)),
    ("an open mode", |akashic| {
        fs::set_permissions(akashic.join("control"), fs::Permissions::from_mode(0o666)).unwrap();
        None
    }),
];

#[test]
fn a7_nothing_in_place_of_the_flag_keeps_a_stop_from_being_raised_or_lifted() {
    for (name, mishap) in MISHAPS {
        let story = TestJobVault::new("");
        let mut gate = story.gate("at");
        story.fire("echo $$ >at; exec sleep 1000");
        let pid: i32 = gate.line().trim().parse().unwrap();
        let held = mishap(&story.akashic(""));
        let reply = sh(&story, "hf-stop fire");
        assert_eq!((reply.code, reply.get("STATUS")), (Some(0), "STOPPED"), "{name}: {reply:#?}");
        assert_eq!((reply.get("SUM"), reply.get("DRAINED")), ("everything is stopped: fire", "yes"), "{name}");
        assert!(!lives(pid), "{name}: the job goes on");
        assert_eq!(sh(&story, "hf-status").get("SYSTEM_STATE"), "stopped", "{name}");
        assert_eq!(story.fires(&[], "true").get("REASON"), "system_stopped", "{name}");
        assert_eq!(ok(&story, "hf-stop again").get("STATUS"), "DUPLICATE", "{name}");
        assert_eq!(ok(&story, "hf-resume --system").get("STATUS"), "RESUMED", "{name}");
        drop(held);
        assert!(!exists(&story.akashic("stop")), "{name}: the entry is left");
        ok(&story, "hf-task propose Form");
        assert_eq!(sh(&story, "hf-status").get("SYSTEM_STATE"), "running", "{name}");
        story.fire("true");
        assert_eq!((count(&story, "EmergencyStopIssued"), count(&story, "SystemResumed")), (1, 1), "{name}");
        keeps_the_rules(&story);
        story.gone();
    }
}

#[test]
fn a7_a_resume_takes_effect_while_the_lock_of_the_flag_is_held() {
    let hive = TestVault::new();
    ok(&hive, "hf-stop fire");
    let _held = hold(&hive.akashic("control"));
    ok(&hive, "hf-resume --system");
    assert_eq!(ok(&hive, "hf-task propose Form").get("NEXT"), "ACTION hf-task claim T-0001");
    // The file that is locked is no longer the one that everybody reads.
    assert_eq!(ok(&hive, "hf-stop flood").get("STATUS"), "STOPPED");
    ok(&hive, "hf-resume --system");
    keeps_the_rules(&hive);
}

/// Writes a file that nobody sees before it is complete.
fn put(path: &Path, bytes: &[u8]) {
    let beside = path.with_extension("new");
    write_private(&beside, bytes);
    fs::rename(beside, path).unwrap();
}

/// The name of a case, what makes the entry, and how the reason begins.
type ByHand = (&'static str, fn(&Path), &'static str);

/// A stop by hand: an operator without this program, or a script.
const BY_HAND: &[ByHand] = &[
    ("touch", |stop| write_private(stop, b""), "Akashic/stop exists: a file that belongs to uid "),
    ("words", |stop| put(stop, b"it deletes the wrong files\nSTATUS:OK\n"), "it deletes the wrong files"),
    ("noise", |stop| put(stop, b"\xff\xfe\x00"), "Akashic/stop exists: a file "),
    ("long", |stop| put(stop, &[b'x'; 1 << 20]), "x"),
    ("mkdir", |stop| fs::create_dir(stop).unwrap(), "Akashic/stop exists: a directory "),
    ("link", |stop| symlink("/nonexistent", stop).unwrap(), "Akashic/stop exists: a symbolic link "),
    ("pipe", make_fifo, "Akashic/stop exists: a named pipe "),
    (
        "unreadable",
        |stop| {
            write_private(stop, b"");
            fs::set_permissions(stop, fs::Permissions::from_mode(0o000)).unwrap();
        },
        "Akashic/stop exists: a file ",
    ),
];

#[test]
fn a7_an_entry_made_by_hand_is_a_stop_for_everybody() {
    for (name, make, reason) in BY_HAND {
        let story = TestJobVault::new("");
        let mut gate = story.gate("at");
        story.fire("echo $$ >at; exec sleep 1000");
        gate.line();
        make(&story.akashic("stop"));
        // The job ends by itself.
        assert!(story.poll("T-0001").get("SUM").contains("emergency_stop: "), "{name}");
        let status = sh(&story, "hf-status");
        assert_eq!(status.get("SYSTEM_STATE"), "stopped", "{name}");
        assert!(status.all("PROBLEM")[0].contains(reason), "{name}: {status:#?}");
        assert_eq!(ok(&story, "hf-watchdog").get("STATUS"), "STOPPED", "{name}");
        assert_eq!(story.fires(&[], "true").get("REASON"), "system_stopped", "{name}");
        let stops = story.of_kind("EmergencyStopIssued");
        assert_eq!((stops.len(), stops[0]["actor"].as_str()), (1, Some("external:stop-entry")), "{name}");
        assert!(stops[0]["payload"]["reason"].as_str().unwrap().starts_with(reason), "{name}: {stops:#?}");
        assert_eq!(sh(&story, "hf-resume --system --actor agent:a").code, Some(3), "{name}");
        ok(&story, "hf-resume --system");
        assert!(!exists(&story.akashic("stop")), "{name}");
        story.fire("true");
        assert_eq!(story.poll("T-0002").get("STATUS"), "DONE", "{name}");
        assert_eq!(count(&story, "EmergencyStopIssued"), 1, "{name}");
        keeps_the_rules(&story);
        story.gone();
    }
}

#[test]
fn a7_a_reader_sees_an_entry_that_nobody_has_recorded_yet() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    fs::create_dir(hive.akashic("stop")).unwrap();
    assert_eq!(ok(&hive, "hf-session next --agent a").get("REASON"), "system_stopped");
    assert_eq!(sh(&hive, "hf-watchdog --check").get("STATUS"), "STOPPED");
    assert_eq!(sh(&hive, "hf-status").get("SYSTEM_STATE"), "stopped");
    assert_eq!(count(&hive, "EmergencyStopIssued"), 0);
    assert_eq!(sh(&hive, "hf-task claim").expect_exit(3).get("REASON"), "system_stopped");
    assert_eq!(count(&hive, "EmergencyStopIssued"), 1);
}

#[test]
fn a7_an_entry_that_cannot_be_removed_keeps_everything_stopped_and_the_reply_says_why() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    let stop = hive.akashic("stop");
    fs::create_dir(&stop).unwrap();
    fs::write(stop.join("x"), "").unwrap();
    ok(&hive, "hf-task propose Other");
    let refused = hive.refuses("resume", &["--system"], 3);
    assert_eq!(refused.get("REASON"), "system_stopped");
    let why = refused.get("SUM");
    assert!(why.starts_with("everything stays stopped: cannot remove ") && why.contains("/Akashic/stop: "), "{why}");
    assert_eq!(hive.refuses("append", &["SystemResumed"], 3).get("REASON"), "system_stopped");
    assert_eq!(sh(&hive, "hf-task claim").expect_exit(3).get("REASON"), "system_stopped");
    fs::remove_file(stop.join("x")).unwrap();
    ok(&hive, "hf-resume --system");
    assert!(!exists(&stop));
    ok(&hive, "hf-task claim");
    assert_eq!((count(&hive, "EmergencyStopIssued"), count(&hive, "SystemResumed")), (1, 1));
    keeps_the_rules(&hive);
}

#[test]
fn a7_an_entry_made_while_everything_is_stopped_is_lifted_with_the_stop() {
    let hive = TestVault::new();
    ok(&hive, "hf-stop fire");
    fs::create_dir(hive.akashic("stop")).unwrap();
    ok(&hive, "hf-task propose Form");
    ok(&hive, "hf-resume --system");
    ok(&hive, "hf-task claim");
    assert_eq!((count(&hive, "EmergencyStopIssued"), count(&hive, "SystemResumed")), (1, 1));
    // A batch that stops after it resumed leaves everything stopped.
    ok(&hive, "hf-stop again");
    hive.batch(&[
        json!({"event_type": "SystemResumed"}),
        json!({"event_type": "EmergencyStopIssued", "payload": {"reason": "no"}}),
    ])
    .expect_exit(0);
    assert!(fs::read_to_string(hive.akashic("control")).unwrap().contains("\"reason\":\"no\""));
    assert_eq!(sh(&hive, "hf-status").get("SYSTEM_STATE"), "stopped");
}

/// Everything at once: the flag and the log are locked, the log is damaged, the settings cannot be read.
#[test]
fn a7_t7_a_stop_that_cannot_be_recorded_is_in_force_and_is_recorded_by_the_next_command() {
    let story = TestJobVault::new("");
    let mut gate = story.gate("at");
    story.fire("echo $$ >at; exec sleep 1000");
    let pid: i32 = gate.line().trim().parse().unwrap();
    let before = story.events().len();
    story.settle("a: [");
    let good = story.damage();
    let held = [hold(&story.akashic("control")), hold(&story.akashic(".lock"))];
    let reply = sh(&story, "hf-stop fire --lock-timeout 0");
    assert_eq!((reply.code, reply.get("STATUS")), (Some(0), "STOPPED_UNRECORDED"), "{reply:#?}");
    assert!(!lives(pid), "{reply:#?}");
    drop(held);
    story.mend(&good);
    story.settle("");
    assert_eq!(sh(&story, "hf-status").get("SYSTEM_STATE"), "stopped");
    ok(&story, "hf-task propose Form");
    assert!(kinds_since(&story, before).contains(&"EmergencyStopIssued".to_owned()));
    let stop = &story.of_kind("EmergencyStopIssued")[0];
    assert_eq!((stop["actor"].as_str(), stop["payload"]["reason"].as_str()), (Some("user:jo"), Some("fire")));
    ok(&story, "hf-resume --system");
    assert!(!exists(&story.akashic("stop")));
    keeps_the_rules(&story);
    story.gone();
}

#[test]
fn a_lock_that_cannot_be_used_keeps_no_stop_from_being_raised() {
    for put in
        [|path: &Path| fs::create_dir(path).unwrap(), |path: &Path| symlink("/dev/null", path).unwrap(), make_fifo]
    {
        let hive = TestVault::new();
        fs::remove_file(hive.akashic(".lock")).unwrap();
        put(&hive.akashic(".lock"));
        assert_eq!(ok(&hive, "hf-stop fire").get("STATUS"), "STOPPED_UNRECORDED");
        assert_eq!(sh(&hive, "hf-status").get("SYSTEM_STATE"), "stopped");
    }
}

/// No byte can be written, as on a full disk.
#[test]
fn a7_a_stop_needs_no_space() {
    let hive = TestVault::new();
    let limited = |line: &str| {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -f 0; exec \"$0\" {line}"))
            .arg(crate::support::test_vault::binary("stop"));
        let like = hive.process("stop");
        command.current_dir(hive.dir()).env_clear().envs(like.get_envs().filter_map(|(name, value)| {
            // The copy of the reply is a file, too.
            (name != "HF_REPLIES").then_some((name, value?))
        }));
        Reply::of(command.stdin(Stdio::null()).output().unwrap())
    };
    let reply = limited("fire");
    assert_eq!((reply.code, reply.get("STATUS")), (Some(0), "STOPPED_UNRECORDED"), "{reply:#?}");
    assert_eq!(sh(&hive, "hf-status").get("SYSTEM_STATE"), "stopped");
    ok(&hive, "hf-resume --system");
    assert!(!exists(&hive.akashic("stop")));
}

#[test]
fn a7_a_directory_without_permissions_keeps_its_owner_from_no_stop() {
    let hive = TestVault::new();
    // The mode of a directory means nothing to root, so the vault gets another owner.
    let is_root = rustix::process::geteuid().is_root();
    let owner = if is_root { 65534 } else { rustix::process::geteuid().as_raw() };
    if is_root {
        let mut all = vec![hive.vault(), hive.dir().to_owned()];
        while let Some(path) = all.pop() {
            chown(&path, Some(owner), None).unwrap();
            if path.is_dir() && path != hive.dir() {
                all.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
    }
    let run = |name: &str, args: &[&str]| {
        let mut process = hive.process(name);
        if is_root {
            process.uid(owner).env_remove("HF_REPLIES");
        }
        Reply::of(process.args(args).output().unwrap())
    };
    let set = |mode| fs::set_permissions(hive.akashic(""), fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0, 0o500, 0o400, 0o777] {
        // With a held lock, because the record itself could be rewritten.
        let held = hold(&hive.akashic("control"));
        set(mode);
        let reply = run("stop", &["fire", "--lock-timeout", "0"]);
        assert!(reply.get("STATUS").starts_with("STOPPED"), "{mode:o}: {reply:#?}");
        assert_eq!(run("status", &[]).get("SYSTEM_STATE"), "stopped", "{mode:o}");
        set(0o700);
        drop(held);
        assert_eq!(run("resume", &["--system"]).get("STATUS"), "RESUMED", "{mode:o}");
        assert!(!exists(&hive.akashic("stop")), "{mode:o}");
    }
}

#[test]
fn a7_a_backup_of_a_stopped_vault_is_stopped_however_the_stop_was_raised() {
    let make: [fn(&Path); 4] = [
        |stop| fs::create_dir(stop).unwrap(),
        |stop| symlink("/nonexistent", stop).unwrap(),
        make_fifo,
        |stop| write_private(stop, b"it deletes the wrong files"),
    ];
    for make in make {
        let hive = TestVault::new();
        make(&hive.akashic("stop"));
        ok(&hive, "hf-backup copy");
        let copy = hive.dir().join("copy").to_string_lossy().into_owned();
        assert!(!exists(&Path::new(&copy).join("Akashic/stop")));
        assert_eq!(hive.run("status", &["--vault", &copy]).get("SYSTEM_STATE"), "stopped");
        hive.run("resume", &["--system", "--vault", &copy]).expect_exit(0);
        assert_eq!(hive.run("status", &["--vault", &copy]).get("SYSTEM_STATE"), "running");
        // One that was lifted is not in force in a later copy.
        ok(&hive, "hf-resume --system");
        ok(&hive, "hf-backup later");
        let later = hive.dir().join("later").to_string_lossy().into_owned();
        assert_eq!(hive.run("status", &["--vault", &later]).get("SYSTEM_STATE"), "running");
        ok(&hive, "hf-verify --policy");
    }
}

/// The supervisor does not look by itself, because somebody has suspended it.
#[test]
fn a7_a_suspended_supervisor_is_woken_by_a_stop() {
    let story = TestJobVault::new("");
    let mut gate = story.gate("at");
    story.fire("echo $$ >at; exec sleep 1000");
    gate.line();
    let [supervisor, pid] = story.pids("T-0001");
    let supervisor = rustix::process::Pid::from_raw(supervisor).unwrap();
    rustix::process::kill_process(supervisor, rustix::process::Signal::STOP).unwrap();
    let reply = ok(&story, "hf-stop fire");
    assert_eq!((reply.get("STATUS"), reply.get("DRAINED")), ("STOPPED", "yes"), "{reply:#?}");
    assert!(!lives(pid));
    assert_eq!(story.poll("T-0001").get("SUM"), "emergency_stop: fire");
    story.gone();
}

/// The directory that the supervisor opened is no longer the one that commands use.
#[test]
fn a_log_that_was_replaced_hides_no_stop_from_a_supervisor() {
    let story = TestJobVault::new("");
    let mut gate = story.gate("at");
    story.fire("echo $$ >at; exec sleep 1000");
    let pid: i32 = gate.line().trim().parse().unwrap();
    let (akashic, moved) = (story.akashic(""), story.vault().join("moved"));
    fs::rename(&akashic, &moved).unwrap();
    assert!(Command::new("cp").arg("-a").arg(&moved).arg(&akashic).status().unwrap().success());
    let reply = ok(&story, "hf-stop fire");
    assert_eq!(reply.get("DRAINED"), "yes", "{reply:#?}");
    assert!(!lives(pid));
    story.gone();
}
