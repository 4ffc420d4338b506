//! Agents that write files and run commands, in one vault and even in one beat.

use std::fs;

use crate::support::steps::{count, ok};
use crate::support::watchdog_fixture::{all_is_well, beat};
use crate::support::works_fixture::Works;

const NOTHING: [&str; 0] = [];

/// A tree belongs to one agent: others in the same vault have files of their own.
/// A command knew only what the last tick had read: it asked for an introspection that was written already.
#[test]
fn a_file_and_a_command_in_one_beat_count_once_each_and_in_order() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.flexible(10);
    works.tick(60);
    works.log(60, "the closing log\n");
    works.log(61, "内省\n");
    let reply = works.reply(70, "hf-activity --kind creating").expect_exit(0);
    assert_eq!((reply.get("INTROSPECTION_DUE"), reply.get("NEXT")), ("no", "NONE"));
    assert_eq!(works.tick(120), NOTHING);
    assert_eq!(works.ids("ActivityLogged"), [beat(0), beat(60), beat(61), beat(60)]);
    assert_eq!((count(&works.hive, "DeepWorkStarted"), count(&works.hive, "DeepWorkCompleted")), (1, 1));
    assert!(works.declared(10, ".completed").exists());
    all_is_well(&works.hive);
}

#[test]
fn a_command_knows_the_declaration_that_was_just_written() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(1);
    works.strict(2, 30);
    let before = (works.hive.contents(), works.names());
    assert_eq!(works.reply(10, "hf-deepwork status").expect_exit(0).get("MODE"), "strict");
    assert!((works.hive.contents(), works.names()) == before, "status changed something");
    works.reply(20, "hf-deepwork extend 10").expect_exit(0);
    assert!(fs::read_to_string(works.declared(2, "")).unwrap().contains("40分"));
    works.reply(30, "hf-deepwork complete").expect_exit(0);
    assert!(works.declared(2, ".completed").exists());
    works.tick(60);
    assert_eq!((count(&works.hive, "DeepWorkStarted"), count(&works.hive, "DeepWorkCompleted")), (1, 1));
    // One that its agent ended by hand is over for commands, too.
    works.strict(60, 30);
    works.tick(61);
    fs::remove_file(works.declared(60, "")).unwrap();
    works.reply(70, "hf-deepwork complete").expect_exit(6);
    all_is_well(&works.hive);
}

#[test]
fn a_command_after_the_deadline_knows_the_log_that_was_in_time() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.strict(0, 10);
    works.tick(1);
    works.log(600, "内省\n");
    works.reply(700, "hf-activity --kind creating").expect_exit(0);
    assert_eq!((count(&works.hive, "DeepWorkExpired"), count(&works.hive, "DeepWorkCompleted")), (0, 1));
    all_is_well(&works.hive);
}

/// Commands hold the lock, and do not wait for a file that is being written; the tick does.
#[test]
fn a_command_leaves_an_incomplete_file_to_the_tick() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(1);
    works.log(2, "");
    works.reply(3, "hf-activity --kind creating").expect_exit(0);
    assert_eq!(works.ids("ActivityLogged"), [beat(0), beat(1)]);
    works.log(2, "complete\n");
    works.tick(4);
    assert_eq!(works.ids("ActivityLogged"), [beat(0), beat(1), beat(2)]);
}

/// Checkpoints pay for this only if their agent also writes files.
#[test]
fn a_checkpoint_knows_the_log_that_was_just_written() {
    let mut works = Works::new();
    works.log(-900, "内省\n");
    works.tick(0);
    works.log(100, "log\n");
    let reply = works.reply(110, "hf-checkpoint Here").expect_exit(0);
    assert_eq!(reply.get("ELAPSED_S"), "10");
    assert!(!reply.stdout.contains("ADVICE"), "{}", reply.stdout);
}

#[test]
fn files_and_commands_of_one_agent_count_once_each() {
    let mut works = Works::new();
    works.tick(0);
    works.checkpoint(0);
    works.log(0, "by hand\n");
    works.reply(10, "hf-checkpoint Here").expect_exit(0);
    works.reply(20, "hf-activity --kind introspection").expect_exit(0);
    works.reply(30, "hf-deepwork start --flexible Reading").expect_exit(0);
    assert_eq!(works.tick(60), NOTHING);
    fs::remove_file(works.hive.akashic("looks.json")).unwrap();
    assert_eq!(works.tick(61), NOTHING);
    let counts = ["CheckpointRecorded", "ActivityLogged", "DeepWorkStarted"].map(|kind| count(&works.hive, kind));
    assert_eq!(counts, [2, 2, 1]);
    let by_hand = works.path(&format!("stats/checkpoints/{}.txt", beat(0)));
    assert_eq!(fs::read_to_string(by_hand).unwrap(), "at work\n", "a command replaces no file of the agent");
    // The log by hand is older than the declaration, so it does not end it; the next one does.
    assert_eq!(count(&works.hive, "DeepWorkCompleted"), 0);
    works.log(60, "closing\n");
    works.tick(120);
    assert_eq!(count(&works.hive, "DeepWorkCompleted"), 1);
    all_is_well(&works.hive);
}

#[test]
fn agents_with_files_and_agents_with_commands_are_watched_side_by_side() {
    let mut works = Works::configured("agents:\n  painter:\n    works_dir: ../paint\n");
    let paint = works.hive.dir().join("paint/artifacts/p/histories");
    fs::create_dir_all(&paint).unwrap();
    fs::write(paint.join(format!("{}.md", beat(0))), "内省\n").unwrap();
    works.log(0, "内省\n");
    ok(&works.hive, "hf-activity --kind introspection --agent builder");
    assert_eq!(works.tick(0), NOTHING);
    works.log(600, "log\n");
    let found = works.tick(601);
    assert_eq!(found, ["INACTIVE agent:builder error 601", "INACTIVE agent:painter error 601"]);
    fs::write(paint.join(format!("{}.md", beat(660))), "log\n").unwrap();
    assert_eq!(works.tick(661), ["INACTIVE agent:builder error 661"]);
    assert!(!works.hive.vault().join("Agents/main").exists(), "its files are in the tree");
    all_is_well(&works.hive);
}
