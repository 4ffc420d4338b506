//! Agents that write files instead of running commands.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use crate::support::steps::{count, ok, sh};
use crate::support::watchdog_fixture::{all_is_well, beat, moment};
use crate::support::works_fixture::{Works, codes};

const NOTHING: [&str; 0] = [];

/// H1: a served tree was not watched until somebody appended AgentStarted by hand.
#[test]
fn h1_an_agent_is_watched_from_its_first_file() {
    let mut works = Works::new();
    assert_eq!(works.tick(0), NOTHING);
    works.log(-3600, "x\n");
    assert_eq!(codes(&works.tick(1)), ["INACTIVE error", "INTROSPECTION_OVERDUE error"]);
    let started = &works.events("AgentStarted")[0];
    assert_eq!(
        (&started["subject"], &started["actor"], &started["payload"]),
        (&json!("agent:main"), &json!("core:watchdog"), &json!({"announced": true, "at": moment(-3600).to_string()}))
    );
    all_is_well(&works.hive);
    // The same in the vault's own directory of an agent that nobody announced.
    let dir = works.hive.vault().join("Agents/quiet/checkpoints");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(format!("{}.txt", beat(-700))), "here\n").unwrap();
    assert!(works.tick(2).contains(&"INACTIVE agent:quiet error 702".to_owned()));
    let id = works.hive.vault().join("Agents/quiet/current_heartbeat_id.txt");
    assert_eq!(fs::read_to_string(id).unwrap(), format!("{}\n", beat(2)));
    all_is_well(&works.hive);
}

/// H2: every second log was lost, because one that was taken in got the time of the tick, which is the next one's id.
#[test]
fn h2_a_log_in_every_beat_counts_every_time() {
    let mut works = Works::new();
    let mut expected = Vec::new();
    for minute in 0..61 {
        works.log(60 * minute, if minute % 10 == 0 { "内省\n" } else { "log\n" });
        expected.push(beat(60 * minute));
        assert_eq!(works.tick(60 * minute + 60), NOTHING, "{minute}");
    }
    assert_eq!(works.ids("ActivityLogged"), expected);
    all_is_well(&works.hive);
}

#[test]
fn h2_several_logs_between_two_looks_count_each_in_order() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(0);
    for name in ["_2", "_10", "_01", "", "_note"] {
        works.write(&format!("artifacts/t/histories/{}{name}.md", beat(60)), "log\n");
    }
    works.log(30, "late\n");
    assert_eq!(works.tick(120), NOTHING);
    let files: Vec<String> = works.events("ActivityLogged")[1..]
        .iter()
        .map(|event| event["payload"]["file"].as_str().unwrap().rsplit('/').next().unwrap().to_owned())
        .collect();
    let named = |name: &str| format!("{}{name}.md", beat(60));
    let expected = [format!("{}.md", beat(30)), named(""), named("_note"), named("_01"), named("_2"), named("_10")];
    assert_eq!(files, expected);
    // Whatever is forgotten, nothing counts twice.
    fs::remove_file(works.hive.akashic("looks.json")).unwrap();
    works.tick(121);
    assert_eq!(works.ids("ActivityLogged").len(), 7);
    all_is_well(&works.hive);
}

/// H3: a log in the same beat closed a fresh declaration.
#[test]
fn h3_only_a_newer_log_ends_a_declaration() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(0);
    works.log(60, "log\n");
    works.strict(60, 30);
    assert_eq!(works.tick(120), NOTHING);
    assert_eq!(count(&works.hive, "DeepWorkCompleted"), 0);
    assert_eq!(works.tick(60 + 1800), NOTHING);
    assert_eq!(
        codes(&works.tick(60 + 1801)),
        ["INACTIVE error", "INTROSPECTION_OVERDUE error", "DEEPWORK_EXPIRED error"]
    );
    assert!(works.declared(60, ".expired").exists());
    assert!(!codes(&works.tick(60 + 1802)).contains(&"DEEPWORK_EXPIRED error".to_owned()), "it is said once");
    all_is_well(&works.hive);
}

#[test]
fn h3_a_log_with_the_id_of_a_declaration_that_is_known_does_not_end_it() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.strict(60, 30);
    works.tick(61);
    works.log(60, "the same beat\n");
    assert_eq!(works.tick(120), NOTHING);
    assert_eq!((works.ids("ActivityLogged").len(), count(&works.hive, "DeepWorkCompleted")), (2, 0));
}

#[test]
fn a_log_at_the_deadline_is_in_time_however_late_the_look() {
    for (log, ends) in [(600, ("DeepWorkCompleted", ".completed")), (601, ("DeepWorkExpired", ".expired"))] {
        let mut works = Works::new();
        works.log(-60, "内省\n");
        works.strict(0, 10);
        works.tick(60);
        works.log(log, "done\n");
        works.tick(900);
        assert_eq!(count(&works.hive, ends.0), 1, "{log}");
        assert!(works.declared(0, ends.1).exists(), "{log}");
        all_is_well(&works.hive);
    }
}

/// H4: a declaration that the agent renamed or deleted stayed open.
#[test]
fn h4_a_declaration_that_was_renamed_or_deleted_is_over() {
    for end in [".completed", ".expired", ""] {
        let mut works = Works::new();
        works.log(0, "内省\n");
        works.strict(60, 120);
        works.tick(120);
        match end {
            "" => fs::remove_file(works.declared(60, "")).unwrap(),
            end => fs::rename(works.declared(60, ""), works.declared(60, end)).unwrap(),
        }
        assert_eq!(codes(&works.tick(660)), ["INACTIVE error"], "{end}");
        let ended = works.events("DeepWorkCompleted");
        let by = if end == ".expired" { "expired_file" } else { "file" };
        assert_eq!(ended[0]["payload"]["by"], by, "{end}");
        // After it an introspection is due, as after any other.
        works.log(660, "closing\n");
        assert_eq!(works.tick(661), NOTHING);
        works.log(720, "another\n");
        assert_eq!(codes(&works.tick(721)), ["INTROSPECTION_DUTY error"], "{end}");
        all_is_well(&works.hive);
    }
}

#[test]
fn what_was_declared_and_completed_between_two_looks_counts_all_the_same() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(0);
    works.strict(60, 30);
    fs::rename(works.declared(60, ""), works.declared(60, ".completed")).unwrap();
    works.log(120, "closing\n");
    assert_eq!(works.tick(300), NOTHING);
    assert_eq!((count(&works.hive, "DeepWorkStarted"), count(&works.hive, "DeepWorkCompleted")), (1, 1));
    works.log(360, "no introspection\n");
    assert_eq!(codes(&works.tick(600)), ["INTROSPECTION_DUTY error"]);
    // And only once.
    works.tick(601);
    assert_eq!(count(&works.hive, "DeepWorkStarted"), 1);
    all_is_well(&works.hive);
}

/// H5: ticks more than 180 s apart switched every silence rule off.
#[test]
fn h5_ticks_every_five_minutes_find_what_ticks_every_minute_find() {
    let found = |every: i64| {
        let mut works = Works::configured("watchdog:\n  interval_seconds: 60\n");
        works.log(0, "内省\n");
        let mut began = Vec::new();
        for second in (every..=2400).step_by(every as usize) {
            began.push((second, codes(&works.tick(second))));
        }
        all_is_well(&works.hive);
        let first = |code: &str| began.iter().find(|(_, found)| found.iter().any(|f| f == code)).map(|(at, _)| *at);
        ["INACTIVE error", "INTROSPECTION_OVERDUE error"].map(first)
    };
    assert_eq!(found(60), [Some(660), Some(1860)]);
    assert_eq!(found(300), [Some(900), Some(2100)]);
}

/// H6: introspection was never overdue while there was no activity log.
#[test]
fn h6_checkpoints_alone_do_not_replace_introspections() {
    let mut works = Works::new();
    for minute in (0..=30).step_by(5) {
        works.checkpoint(60 * minute);
        works.tick(60 * minute + 1);
    }
    assert_eq!(codes(&works.tick(1801)), ["INTROSPECTION_OVERDUE error"]);
    // With commands, too.
    let mut works = Works::new();
    for minute in (0..=30).step_by(5) {
        works.reply(60 * minute, "hf-checkpoint Here").expect_exit(0);
    }
    assert_eq!(codes(&works.tick(1801)), ["INTROSPECTION_OVERDUE error"]);
}

/// H7: one file with an id in the future hid all later, correct ones.
#[test]
fn h7_an_id_from_the_future_hides_no_other_file() {
    let mut works = Works::new();
    works.log(100_000, "from tomorrow\n");
    works.log(0, "内省\n");
    let name = format!("artifacts/t/histories/{}.md", beat(100_000));
    assert_eq!(works.tick(60), [format!("CLOCK_SKEW agent:main error 99940 {name}: the id is in the future")]);
    works.log(600, "log\n");
    assert_eq!(codes(&works.tick(700)), ["CLOCK_SKEW error"]);
    assert_eq!(works.ids("ActivityLogged"), [beat(0), beat(600)]);
    assert_eq!(count(&works.hive, "AnomalyDetected"), 1);
    all_is_well(&works.hive);
}

/// H8: the old tool's own layout of subthemes was not read.
#[test]
fn h8_the_histories_of_subthemes_are_read() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(0);
    works.write(&format!("artifacts/t/subthemes/s/histories/{}.md", beat(600)), "log\n");
    assert_eq!(works.tick(700), NOTHING);
    // In a directory that is known, too.
    works.write(&format!("artifacts/t/subthemes/s/histories/{}.md", beat(1200)), "内省\n");
    assert_eq!(works.tick(1300), NOTHING);
    assert_eq!(works.ids("ActivityLogged").len(), 3);
}

/// H9: a symbolic link made the watchdog ignore all files of the agent and say HEALTHY.
#[test]
fn h9_what_cannot_be_read_is_named_and_hides_nothing_else() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    symlink("t", works.path("artifacts/link")).unwrap();
    symlink("/etc/passwd", works.path(&format!("artifacts/t/histories/{}.md", beat(30)))).unwrap();
    fs::create_dir(works.path(&format!("stats/checkpoints/{}.txt", beat(30)))).unwrap();
    works.write("stats/deep_work/20261399000000.txt", "type: flexible\n");
    for second in [60, 61] {
        let found = works.tick(second);
        let details = [
            "artifacts/link: it is a symbolic link, which is not followed",
            ".md: it is a symbolic link",
            ".txt: it is a directory, not a file",
            "20261399000000.txt: 20261399000000 is not a time",
        ];
        for detail in details {
            let named =
                |line: &&String| line.starts_with("FILE_UNREADABLE agent:main warn 0 ") && line.contains(detail);
            assert_eq!(found.iter().filter(named).count(), 1, "{detail}: {found:#?}");
        }
        assert_eq!(found.len(), 4);
    }
    assert_eq!(works.ids("ActivityLogged"), [beat(0)]);
    assert_eq!(works.reply(62, "hf-watchdog").get("STATUS"), "WARNING");
    fs::remove_file(works.path("artifacts/link")).unwrap();
    assert_eq!(works.tick(63).len(), 3);
}

/// H12: a check ignored new declarations and logs.
#[test]
fn h12_a_check_gives_the_verdict_of_the_tick() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(0);
    works.strict(540, 60);
    // `tick` compares the two, and that the check changes nothing.
    assert_eq!(works.tick(700), NOTHING);
    works.log(720, "closing\n");
    works.log(780, "no introspection\n");
    assert_eq!(codes(&works.tick(800)), ["INTROSPECTION_DUTY error"]);
}

/// H13: ids in local time were nine hours off in Tokyo.
#[test]
fn h13_ids_in_local_time_are_read_in_local_time_across_a_change_of_the_clock() {
    let mut works = Works::configured("liveness:\n  timezone: local\n");
    let tick = |works: &mut Works, zone: &str, now: &str| {
        works.hive.at(now);
        let mut command = works.hive.command("watchdog");
        let output = command.args(["--works", "ai-works"]).env("TZ", zone).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("ANOMALY:")).map(str::to_owned).collect::<Vec<_>>()
    };
    works.write("artifacts/t/histories/20260131210000.md", "内省\n");
    assert_eq!(tick(&mut works, "Asia/Tokyo", "2026-01-31T12:01:00Z"), NOTHING);
    let id = fs::read_to_string(works.path("stats/current_heartbeat_id.txt")).unwrap();
    assert_eq!(id, "20260131210100\n");
    // Berlin, when summer time begins and ends: one log before and one after the change, two minutes apart.
    for (before, after, now) in [
        ("20260329015900", "20260329030100", "2026-03-29T01:02:00Z"),
        ("20261025025900", "20261025020100", "2026-10-25T01:02:00Z"),
    ] {
        let mut works = Works::configured("liveness:\n  timezone: local\n");
        works.write(&format!("artifacts/t/histories/{before}.md"), "内省\n");
        let early = now.replace("01:02:00", "01:00:00");
        assert_eq!(tick(&mut works, "Europe/Berlin", &early), NOTHING);
        works.write(&format!("artifacts/t/histories/{after}.md"), "log\n");
        assert_eq!(tick(&mut works, "Europe/Berlin", now), NOTHING);
        assert_eq!(works.ids("ActivityLogged"), [before, after]);
        let at: Vec<_> = works.events("ActivityLogged").iter().map(|event| event["payload"]["at"].clone()).collect();
        assert_eq!(at, [now.replace("01:02", "00:59"), now.replace("01:02", "01:01")]);
    }
}

/// H15: a declaration that is too long was set aside without saying which file and why.
#[test]
fn h15_a_declaration_that_cannot_be_used_is_set_aside_with_its_reason() {
    let long = "あ".repeat(401);
    for (text, reason) in [
        (
            "制限タイプ: strict\n活動予定内容: x\n予定時間: 241分\n".to_owned(),
            "strict deep work of 241 minutes is too long; at most 240 minutes",
        ),
        (format!("type: flexible\nactivity: {long}\n"), "the activity has 401 characters; at most 400"),
        (String::new(), "missing type"),
        ("type: strict\nactivity: x\n".to_owned(), "missing minutes; required for strict"),
    ] {
        let mut works = Works::new();
        works.log(0, "内省\n");
        works.tick(0);
        let name = format!("stats/deep_work/{}.txt", beat(60));
        works.write(&name, &text);
        assert_eq!(works.tick(60), [format!("DEEPWORK_MALFORMED agent:main warn 0 {name}: {reason}")]);
        assert_eq!(fs::read_to_string(works.declared(60, ".malformed")).unwrap(), text);
        assert_eq!(works.tick(61), NOTHING);
        assert_eq!(count(&works.hive, "DeepWorkStarted"), 0);
    }
}

/// H16: the heartbeat id was private in a tree that belongs to others, too.
#[test]
fn h16_the_heartbeat_id_in_a_tree_can_be_read_by_others() {
    let mut works = Works::new();
    works.tick(0);
    let mode = fs::metadata(works.path("stats/current_heartbeat_id.txt")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o644, "{mode:o}");
}

/// H16: file agents had no way to use the emergency exception.
#[test]
fn h16_an_emergency_in_a_file_puts_the_introspection_off_once() {
    for header in ["emergency: the disk is full", "緊急対応: ディスクが一杯"] {
        let mut works = Works::new();
        works.log(0, "内省\n");
        works.flexible(60);
        works.tick(61);
        works.log(120, "closing\n");
        works.log(180, &format!("{header}\n\nDeleted old builds.\n"));
        assert_eq!(works.tick(200), NOTHING, "{header}");
        works.log(240, &format!("{header}\n\nAgain.\n"));
        assert_eq!(codes(&works.tick(300)), ["INTROSPECTION_DUTY error"], "{header}");
        works.log(360, "内省\n");
        assert_eq!(works.tick(400), NOTHING, "{header}");
        all_is_well(&works.hive);
    }
}

/// A log that was found late counts in its place: here it is the closing log, and the emergency comes after it.
#[test]
fn a_log_that_is_found_late_counts_in_its_place_after_deep_work() {
    let mut works = Works::new();
    works.log(-60, "内省\n");
    works.flexible(0);
    works.checkpoint(400);
    works.tick(500);
    works.log(510, "emergency: the disk is full\n");
    assert_eq!(works.tick(540), NOTHING);
    works.log(130, "log\n");
    assert_eq!(works.tick(600), NOTHING);
    works.log(610, "log\n");
    assert_eq!(codes(&works.tick(660)), ["INTROSPECTION_DUTY error"]);
    all_is_well(&works.hive);
}

/// Of two logs that are newer than a declaration, the first one ends it, also if the other one was recorded before.
#[test]
fn the_first_newer_log_ends_a_declaration_whichever_was_recorded_first() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.log(160, "its id is ahead\n");
    works.tick(60);
    works.flexible(70);
    works.log(140, "log\n");
    // The other one is the log after it, and no introspection.
    assert_eq!(codes(&works.tick(150)), ["INTROSPECTION_DUTY error"]);
    let ended = &works.events("DeepWorkCompleted")[0]["payload"];
    assert_eq!((&ended["at"], &ended["by"]), (&json!(moment(140).to_string()), &json!("log")));
    all_is_well(&works.hive);
}

/// A declaration that is found after a log which was too late for it has expired.
#[test]
fn a_strict_declaration_that_is_found_late_expires_before_a_later_log() {
    let mut works = Works::new();
    works.log(-60, "内省\n");
    works.tick(0);
    works.log(700, "内省\n");
    works.tick(710);
    works.strict(10, 10);
    assert_eq!(codes(&works.tick(720)), ["DEEPWORK_EXPIRED error"]);
    assert!(works.declared(10, ".expired").exists());
    all_is_well(&works.hive);
}

#[test]
fn an_edited_declaration_is_a_new_one() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.strict(60, 10);
    works.tick(120);
    works.strict(60, 30);
    assert_eq!(works.tick(180), NOTHING);
    assert_eq!(works.tick(60 + 1800), NOTHING);
    assert!(codes(&works.tick(60 + 1801)).contains(&"DEEPWORK_EXPIRED error".to_owned()));
    all_is_well(&works.hive);
}

#[test]
fn a_newer_declaration_supersedes_the_older_one() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.strict(60, 10);
    works.tick(120);
    works.flexible(180);
    works.tick(240);
    assert!(works.declared(60, ".completed").exists());
    // The first one's time means nothing any more.
    assert_eq!(works.tick(780), NOTHING);
    assert_eq!(works.tick(781), ["DEEPWORK_UNCHECKED agent:main error 601"]);
    works.log(840, "closing\n");
    assert_eq!(works.tick(841), NOTHING);
    assert!(works.declared(180, ".completed").exists());
    all_is_well(&works.hive);
}

/// One agent may use files and commands in one beat; nothing is lost and nothing counts twice.
/// It was dropped, and so counted or did not count depending on when somebody looked.
#[test]
fn a_declaration_that_is_older_than_the_one_in_force_counts_as_superseded() {
    let mut works = Works::new();
    works.log(-60, "内省\n");
    works.strict(7, 10);
    works.tick(30);
    works.flexible(0);
    assert_eq!(works.tick(60), NOTHING);
    assert_eq!(works.ids("DeepWorkStarted"), [beat(7), beat(0)]);
    let ended = works.events("DeepWorkCompleted");
    assert_eq!((ended.len(), &ended[0]["payload"]["by"]), (1, &json!("declaration")));
    assert!(works.declared(0, ".completed").exists() && works.declared(7, "").exists());
    // The newer one is still in force, and ends at its time.
    assert_eq!(works.tick(7 + 600), NOTHING);
    assert!(codes(&works.tick(7 + 601)).contains(&"DEEPWORK_EXPIRED error".to_owned()));
    all_is_well(&works.hive);
}

#[test]
fn a_stopped_agent_is_watched_again_from_its_next_file() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(0);
    works.hive.at(&moment(100).to_string());
    ok(&works.hive, "hf-append AgentStopped --subject agent:main");
    assert_eq!(works.tick(5000), NOTHING);
    works.log(5000, "back\n");
    assert_eq!(works.tick(5060), NOTHING);
    assert_eq!(works.ids("ActivityLogged"), [beat(0), beat(5000)]);
    assert!(codes(&works.tick(5601)).contains(&"INACTIVE error".to_owned()));
    all_is_well(&works.hive);
    // An agent that is back before the next tick has only an id from before the stop.
    ok(&works.hive, "hf-append AgentStopped --subject agent:main");
    works.log(5590, "back already\n");
    assert_eq!(works.tick(5660), NOTHING);
    assert_eq!(works.ids("ActivityLogged").last(), Some(&beat(5590)));
}

/// An agent that is started again has the whole time again, whatever its old files say.
#[test]
fn silence_counts_from_an_explicit_start() {
    let mut works = Works::new();
    works.log(-7200, "内省\n");
    works.hive.at(&moment(0).to_string());
    ok(&works.hive, "hf-append AgentStarted --subject agent:main");
    assert_eq!(works.tick(300), NOTHING);
    assert_eq!(codes(&works.tick(601)), ["INACTIVE error"]);
}

#[test]
fn of_an_old_tree_the_last_hour_and_the_newest_introspection_are_taken_in() {
    let mut works = Works::new();
    for hour in 1..400 {
        works.log(-3600 * hour, if hour == 7 { "内省\n" } else { "log\n" });
        works.checkpoint(-3600 * hour);
    }
    works.log(-1800, "log\n");
    works.tick(0);
    let expected: Vec<String> = (1..=7).rev().map(|hour| beat(-3600 * hour)).chain([beat(-1800)]).collect();
    assert_eq!(works.ids("ActivityLogged"), expected);
    assert_eq!(works.ids("CheckpointRecorded").len(), 7);
    // What is older never counts.
    works.log(-3600 * 30 + 7, "late\n");
    works.tick(60);
    assert_eq!(works.ids("ActivityLogged").len(), 8);
    all_is_well(&works.hive);
}

#[test]
fn a_declaration_that_no_log_has_ended_is_in_force_however_old_it_is() {
    let mut works = Works::new();
    works.strict(-7200, 180);
    assert_eq!(works.tick(0), NOTHING);
    assert_eq!(works.tick(3600), NOTHING);
    assert!(codes(&works.tick(3601)).contains(&"DEEPWORK_EXPIRED error".to_owned()));
    all_is_well(&works.hive);
}

/// A log that is restored from a backup has not counted what was written since, whatever the watchdog remembers.
#[test]
fn an_older_log_counts_files_again_that_it_does_not_know() {
    let mut works = Works::new();
    works.log(0, "内省\n");
    works.tick(0);
    let before = works.hive.contents();
    works.log(60, "log\n");
    works.tick(60);
    let looks = fs::read(works.hive.akashic("looks.json")).unwrap();
    works.hive.restore(&before);
    fs::write(works.hive.akashic("looks.json"), looks).unwrap();
    works.tick(120);
    assert_eq!(works.ids("ActivityLogged"), [beat(0), beat(60)]);
    all_is_well(&works.hive);
}

#[test]
fn a_tree_that_is_not_there_is_refused() {
    let works = Works::new();
    let refused = sh(&works.hive, "hf-watchdog --works nowhere").expect_exit(2);
    assert!(refused.get("SUM").contains("nowhere is not a directory"), "{refused:?}");
}
