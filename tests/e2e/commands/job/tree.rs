//! Stopping and cancelling end every process of a job, whatever sessions and groups it made.

use std::fs;

use rustix::process::Signal;

use crate::support::job_fixture::{Gate, TestJobVault, kill, lives};
use crate::support::steps::ok;
use crate::support::test_vault::binary;

/// Processes are found by their parents alone.
const BY_PARENTS: &str = "jobs:\n  control_groups: false\n  kill_grace: 1\n";
/// A control group knows them, where one can be made.
const BY_GROUP: &str = "jobs:\n  kill_grace: 1\n";

/// A process that made a session of its own, whose parent is gone, and that ignores TERM and has closed what it inherited.
const ESCAPES: &str = "(setsid sh -c 'trap \"\" TERM; exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; echo $$ >up; \
                       exec >&- 2>&-; while :; do sleep 1000; done' &); read x <never";

/// Fires a job with such a process; it runs as long as the gate is kept.
fn escaped(story: &TestJobVault) -> (i32, Gate) {
    let (mut up, never) = (story.gate("up"), story.gate("never"));
    story.fire(ESCAPES);
    (up.line().trim().parse().expect("a pid"), never)
}

/// J1: stop and cancel said DRAINED:yes and CANCELLED while a child with a session of its own went on.
#[test]
fn j1_a_child_in_a_session_of_its_own_is_ended_by_cancel() {
    for settings in [BY_PARENTS, BY_GROUP] {
        let story = TestJobVault::new(settings);
        let (child, _never) = escaped(&story);
        let reply = ok(&story, "hf-job cancel T-0001");
        assert!(!lives(child), "{settings}");
        assert_eq!(reply.get("STATUS"), "CANCELLED");
        story.over();
    }
}

#[test]
fn j1_a_child_in_a_session_of_its_own_is_ended_by_a_stop() {
    for settings in [BY_PARENTS, BY_GROUP] {
        let story = TestJobVault::new(settings);
        let (child, _never) = escaped(&story);
        let reply = ok(&story, "hf-stop enough");
        assert!(!lives(child), "{settings}");
        assert_eq!((reply.get("DRAINED"), reply.all("LEFT").len()), ("yes", 0));
        story.over();
    }
}

#[test]
fn j1_a_child_in_a_session_of_its_own_is_ended_by_a_time_out() {
    for settings in [BY_PARENTS, BY_GROUP] {
        let story = TestJobVault::new(settings);
        let (mut up, _never) = (story.gate("up"), story.gate("never"));
        story.fire_with(&["--timeout", "1s"], ESCAPES);
        let child: i32 = up.line().trim().parse().expect("a pid");
        assert_eq!(story.poll("T-0001").get("STATUS"), "FAIL");
        assert!(!lives(child), "{settings}");
        story.over();
    }
}

/// What a job leaves behind when it ends may go on, but not beyond a stop.
#[test]
fn j1_a_stop_ends_what_a_finished_job_left_behind() {
    for settings in [BY_PARENTS, BY_GROUP] {
        let story = TestJobVault::new(settings);
        let mut up = story.gate("up");
        story.fire("setsid nohup sh -c 'echo $$ >up; exec env -i sleep 1000' >/dev/null 2>&1 & exit 0");
        let child: i32 = up.line().trim().parse().expect("a pid");
        assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
        assert!(lives(child), "it may go on");
        // A tick does not forget it.
        ok(&story, "hf-watchdog");
        let reply = ok(&story, "hf-stop enough");
        assert!(!lives(child), "{settings}");
        assert_eq!(reply.get("DRAINED"), "yes");
        story.over();
    }
}

#[test]
fn cancelling_a_finished_job_ends_what_it_left_behind() {
    let story = TestJobVault::new(BY_PARENTS);
    let mut up = story.gate("up");
    story.fire("setsid sh -c 'echo $$ >up; exec sleep 1000' & exit 0");
    let child: i32 = up.line().trim().parse().expect("a pid");
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert_eq!(ok(&story, "hf-job cancel T-0001").get("STATUS"), "DUPLICATE");
    assert!(!lives(child));
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    story.over();
}

/// J15: a lost job with a grandchild of its own session was CANCELLED and still running.
#[test]
fn j15_cancelling_a_lost_job_ends_a_grandchild_in_a_session_of_its_own() {
    for settings in [BY_PARENTS, BY_GROUP] {
        let story = TestJobVault::new(settings);
        let (mut up, _never) = (story.gate("up"), story.gate("never"));
        story.fire(
            "trap '' TERM; (setsid sh -c 'trap \"\" TERM; echo $$ >up; while :; do sleep 1000; done' &); read x <never",
        );
        let child: i32 = up.line().trim().parse().expect("a pid");
        let [supervisor, _] = story.pids("T-0001");
        kill(supervisor, Signal::KILL);
        let reply = ok(&story, "hf-job cancel T-0001");
        assert!(!lives(child), "{settings}");
        assert_eq!(reply.get("STATUS"), "CANCELLED");
        story.over();
    }
}

/// J1: an abort was recorded while the processes of the job went on.
#[test]
fn j1_an_abort_waits_until_every_process_of_a_job_has_ended() {
    for settings in [BY_PARENTS, BY_GROUP] {
        for is_orphaned in [false, true] {
            let story = TestJobVault::new(settings);
            let (mut up, _never) = (story.gate("up"), story.gate("never"));
            story.fire("(setsid sh -c 'trap \"\" TERM; echo $$ >up; while :; do sleep 1000; done' &); read x <never");
            let child: i32 = up.line().trim().parse().expect("a pid");
            if is_orphaned {
                kill(story.pids("T-0001")[0], Signal::KILL);
            }
            let reply = ok(&story, "hf-task abort T-0001 --reason wrong");
            assert!(!lives(child), "{settings} {is_orphaned}");
            assert_eq!((reply.get("STATE"), reply.all("LEFT").len()), ("Aborted", 0));
            story.over();
        }
    }
}

/// What the first run left behind may still do the work of the job.
#[test]
fn j1_a_retry_does_not_run_beside_what_the_first_run_left_behind() {
    for settings in [BY_PARENTS, BY_GROUP] {
        for is_lost in [false, true] {
            let story = TestJobVault::new(settings);
            let (mut up, mut again, _never) = (story.gate("up"), story.gate("again"), story.gate("never"));
            let mut held = story.gate("held");
            let first = "touch ran; setsid sh -c 'trap \"\" TERM; echo $$ >up; while :; do sleep 1000; done' & \
                         read x <held; kill -9 $$";
            story.fire_with(
                &["--retries", "2"],
                &format!("test -e ran || {{ {first}; }}; echo up >again; read x <never"),
            );
            let child: i32 = up.line().trim().parse().expect("a pid");
            if is_lost {
                kill(story.pids("T-0001")[0], Signal::KILL);
                kill(story.pids("T-0001")[1], Signal::KILL);
            } else {
                held.open();
            }
            if is_lost {
                // Whatever looks at it next must not start it beside the child either.
                assert_eq!(ok(&story, "hf-job cancel T-0001").get("STATUS"), "CANCELLED");
            } else {
                again.line();
            }
            assert!(!lives(child), "{settings} {is_lost}");
            ok(&story, "hf-stop enough");
            story.over();
        }
    }
}

/// A process that holds a file with the name of a job's lock does not count as the supervisor of another job.
#[test]
fn j1_a_process_cannot_pass_for_a_supervisor_by_a_lock_alone() {
    let story = TestJobVault::new(BY_PARENTS);
    let (mut up, _never) = (story.gate("up"), story.gate("never"));
    let lock = "x/Jobs/01ARZ3NDEKTSV4RRFFQ69G5FAV";
    story.fire(&format!(
        "mkdir -p {lock}; exec 9>{lock}/lock; flock -x 9; setsid sh -c 'echo $$ >up; exec sleep 1000' & read x <never"
    ));
    let child: i32 = up.line().trim().parse().expect("a pid");
    assert_eq!(ok(&story, "hf-stop enough").get("DRAINED"), "yes");
    assert!(!lives(child));
    story.over();
}

/// A job outlives the job that fired it, so it is not part of its tree.
#[test]
fn a_job_that_was_fired_by_a_job_goes_on_when_that_one_is_cancelled() {
    for settings in [BY_PARENTS, BY_GROUP] {
        let story = TestJobVault::new(settings);
        let (mut up, mut go, _never) = (story.gate("up"), story.gate("go"), story.gate("never"));
        let (hf, vault) = (binary("job"), story.vault());
        let inner =
            format!("{} fire --vault {} -- sh -c 'echo up >up; read x <go; echo done'", hf.display(), vault.display());
        story.fire(&format!("{inner} >/dev/null; read x <never"));
        up.line();
        // A poll inside a job has the other job's lock open, but does not hold it.
        assert_eq!(ok(&story, "hf-job cancel T-0001").get("STATUS"), "CANCELLED");
        go.open();
        let reply = story.poll("T-0002");
        assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DONE", "done"), "{settings}");
        story.over();
    }
}

#[test]
fn a_poll_inside_a_job_is_ended_with_it() {
    let story = TestJobVault::new(BY_PARENTS);
    let (mut up, _never) = (story.gate("up"), story.gate("never"));
    story.fire("read x <never");
    let (hf, vault) = (binary("poll"), story.vault());
    story.fire(&format!("{} T-0001 --vault {} & echo $! >up; wait", hf.display(), vault.display()));
    let poll: i32 = up.line().trim().parse().expect("a pid");
    assert_eq!(ok(&story, "hf-job cancel T-0002").get("STATUS"), "CANCELLED");
    assert!(!lives(poll));
    ok(&story, "hf-job cancel T-0001");
    story.over();
}

/// The group of a run is removed with it, and one that was left populated by the next run.
#[test]
fn no_control_group_is_left() {
    let story = TestJobVault::new(BY_GROUP);
    let mut up = story.gate("up");
    story.fire("echo up >up; exit 0");
    up.line();
    story.poll("T-0001");
    story.gone();
    let group = story.record("T-0001", "identity.json")["control_group"].as_str().map(str::to_owned);
    if let Some(group) = group {
        assert!(fs::metadata(&group).is_err(), "{group}");
    }
    story.over();
}
