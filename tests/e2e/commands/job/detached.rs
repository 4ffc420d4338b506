//! Jobs outlive their caller.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, ok};
use crate::support::test_vault::Reply;

/// Runs a script of a shell in which our commands are found; its output is read to the end.
pub(super) fn shell(story: &TestJobVault, script: &str) -> Reply {
    let commands = crate::support::test_vault::binary("job");
    let path = format!("{}:/usr/bin:/bin", commands.parent().unwrap().display());
    let mut bash = Command::new("bash");
    bash.args(["-c", script]).current_dir(story.dir()).env_clear().env("PATH", path).env("USER", "jo");
    bash.env("HF_NOW", crate::support::test_vault::START).stdin(Stdio::null());
    Reply::of(bash.output().unwrap())
}

#[test]
fn firing_returns_immediately_whatever_descriptors_the_caller_left_open() {
    let story = TestJobVault::new("");
    // If one of them stayed open in the job, reading this to its end would take a thousand seconds.
    let mut at = story.gate("at");
    let script = "exec 9>&1 8>&2 7>leak; x=$(hf-job fire -- sh -c 'echo up >at; exec sleep 1000'); echo \"$x\"";
    let reply = shell(&story, script);
    assert_eq!((reply.code, reply.get("STATUS")), (Some(0), "FIRED"));
    at.line();
    let holds = |pid: i32, name: &str| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok()).any(|path| path.ends_with(name))
    };
    let [supervisor, command] = story.pids("T-0001");
    assert!([supervisor, command].iter().all(|pid| !holds(*pid, "leak")));
    assert!(!holds(command, "Akashic/.lock") && !holds(command, "lock"), "a job holds no lock but its own");
    assert!(holds(command, "alive"));
    ok(&story, "hf-job cancel T-0001");
    story.over();
}

#[test]
fn a_job_survives_when_its_callers_process_group_is_killed() {
    let story = TestJobVault::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    let commands = crate::support::test_vault::binary("job").parent().unwrap().display().to_string();
    // `setsid` makes the shell a group of its own, as a terminal does.
    let script = "hf-job fire -- sh -c 'echo up >at; read x <go; echo survived' >fired; echo fired >at; sleep 1000";
    let mut caller = Command::new("setsid");
    caller
        .args(["bash", "-c", script])
        .current_dir(story.dir())
        .env_clear()
        .env("PATH", format!("{commands}:/usr/bin:/bin"));
    let mut caller = caller.env("USER", "jo").env("HF_NOW", crate::support::test_vault::START).spawn().unwrap();
    let mut lines = [at.line(), at.line()];
    lines.sort();
    assert_eq!(lines, ["fired", "up"]);
    let group = Pid::from_raw(caller.id() as i32).unwrap();
    for signal in [Signal::HUP, Signal::TERM, Signal::INT, Signal::KILL] {
        let _ = kill_process_group(group, signal);
    }
    caller.wait().unwrap();
    go.open();
    assert_eq!(story.poll("T-0001").get("SUM"), "survived");
    story.over();
}

#[test]
fn a_hundred_jobs_fired_in_a_loop_all_finish_and_leave_nothing() {
    let story = TestJobVault::new("");
    let reply =
        shell(&story, "for n in $(seq 100); do hf-job fire --lock-timeout 60 -- sh -c \"echo job $n\" & done; wait");
    assert_eq!(reply.all("STATUS"), ["FIRED"; 100]);
    let names: Vec<String> = (1..=100).map(|n| format!("T-{n:04}")).collect();
    let words: Vec<&str> = ["wait"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let reply = story.run("job", &words).expect_exit(0);
    assert_eq!(reply.get("SUM"), "100 of 100 jobs ended, 0 failed");
    story.gone();
    let mut printed: Vec<String> =
        (1..=100).map(|n| String::from_utf8(story.log(&format!("logs/L-{n:04}.txt"))).unwrap()).collect();
    printed.sort();
    printed.dedup();
    assert_eq!(printed.len(), 100, "each has a log of its own");
    assert_eq!(["RunStarted", "RunFinished", "TaskSucceeded"].map(|kind| count(&story, kind)), [100; 3]);
    for folder in fs::read_dir(story.vault().join("Jobs")).unwrap() {
        let files = fs::read_dir(folder.unwrap().path()).unwrap();
        let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names.retain(|name| !name.starts_with("exit-"));
        assert_eq!(names, ["alive", "control", "identity.json", "lock", "spec.json", "taken"]);
    }
    assert!(File::open(story.akashic(".lock")).unwrap().try_lock().is_ok(), "nobody holds the vault");
    story.over();
}
