//! The vault is deleted or moved while a job runs in it.

use std::fs::{self};

use crate::support::job_fixture::{TestJobVault, ends};
use crate::support::steps::state;

#[test]
fn a_job_whose_vault_is_deleted_ends_with_everything_it_started() {
    let lose: [fn(&TestJobVault); 3] = [
        |story| fs::remove_dir_all(story.vault()).unwrap(),
        |story| fs::remove_dir_all(story.vault().join("Jobs")).unwrap(),
        |story| fs::rename(story.job("T-0001"), story.dir().join("away")).unwrap(),
    ];
    for lose in lose {
        let story = TestJobVault::new("");
        let mut at = story.gate("at");
        story.fire("sleep 1000 & echo up >at; wait");
        at.line();
        let all = story.processes();
        assert_eq!(all.len(), 3, "its supervisor, its shell and what that started");
        lose(&story);
        for (pid, process) in all {
            ends(pid, &process);
        }
    }
}

#[test]
fn a_queued_job_in_a_half_deleted_vault_stops_waiting() {
    let lose: [fn(&TestJobVault); 3] = [
        // As a deletion leaves it that met a file which came in between.
        |story| {
            fs::remove_dir_all(story.vault().join("Jobs")).unwrap();
            fs::remove_dir_all(story.akashic("events")).unwrap();
            fs::remove_file(story.head()).unwrap();
        },
        |story| {
            fs::remove_dir_all(story.akashic("events")).unwrap();
            fs::remove_file(story.head()).unwrap();
            // So that it looks at once.
            fs::write(story.akashic("new"), "").unwrap();
        },
        |story| fs::rename(story.vault().join("Akashic"), story.dir().join("away")).unwrap(),
    ];
    for lose in lose {
        let story = TestJobVault::new("");
        story.fires(&["--destructive"], "touch ran").expect_exit(3);
        let [(pid, supervisor)] = story.processes().try_into().expect("one supervisor");
        lose(&story);
        ends(pid, &supervisor);
    }
}

#[test]
fn the_outcome_of_a_job_whose_folder_is_deleted_is_recorded() {
    let story = TestJobVault::new("");
    let mut at = story.gate("at");
    story.fire("echo up >at; sleep 1000");
    story.fire_with(&["--after", "T-0001"], "touch ran");
    at.line();
    fs::remove_dir_all(story.vault().join("Jobs")).unwrap();
    story.gone();
    let lost = "its folder in the vault is gone";
    assert_eq!(story.of_kind("RunCrashed")[0]["payload"]["reason"], lost);
    assert_eq!([1, 2].map(|n| state(&story, &format!("T-000{n}"))), ["Aborted"; 2]);
    assert!(!story.dir().join("ran").exists());
    story.over();
}

#[test]
fn a_job_keeps_running_when_its_vault_is_moved() {
    let story = TestJobVault::new("");
    let (mut at, mut go) = (story.gate("at"), story.gate("go"));
    story.fire("echo up >at; read x <go; echo done");
    at.line();
    let all = story.processes();
    let job = story.job("T-0001");
    let moved = story.dir().join("Moved");
    fs::rename(story.vault(), &moved).unwrap();
    // So that it looks at once.
    fs::write(moved.join(job.strip_prefix(story.vault()).unwrap()).join("word"), "").unwrap();
    go.open();
    for (pid, process) in all {
        ends(pid, &process);
    }
    let reply = story.run("job", &["check", "T-0001", "--vault", moved.to_str().unwrap()]).expect_exit(0);
    assert_eq!((reply.get("STATUS"), reply.get("SUM")), ("DONE", "done"));
}
