//! Settings about agents' signs of life. All of them are about agent main.

use std::fs;

use hiveforge::policy::settings::Setting;

use super::trial::{Trial, found};
use crate::support::job_fixture::TestJobVault;
use crate::support::session_fixture::within;
use crate::support::steps::{ok, sh};
use crate::support::test_vault::write_private;
use crate::support::watchdog_fixture::{at, beat, file, tick};

/// What a tick finds a minute and a second after some commands.
fn minute_after(story: &mut TestJobVault, lines: &[&str]) -> Vec<String> {
    for line in lines {
        ok(story, line);
    }
    found(&tick(story, 61))
}

fn only(found: &str) -> Vec<String> {
    vec![found.to_owned()]
}

pub fn an_agent_that_was_never_seen_is_an_anomaly(setting: Setting) {
    let steps = |story: &mut TestJobVault| minute_after(story, &["hf-append AgentStarted --actor agent:main"]);
    Trial::of(setting, 60).changes(steps, vec![], only("NEVER_SEEN error"));
}

pub fn an_agent_that_was_never_seen_causes_a_warning(setting: Setting) {
    let steps = |story: &mut TestJobVault| minute_after(story, &["hf-append AgentStarted --actor agent:main"]);
    Trial::of(setting, 60).changes(steps, vec![], only("NEVER_SEEN warn"));
}

pub fn an_inactive_agent_causes_a_warning(setting: Setting) {
    let steps = |story: &mut TestJobVault| minute_after(story, &["hf-checkpoint hi"]);
    Trial::of(setting, 60).changes(steps, vec![], only("INACTIVE warn"));
}

pub fn an_inactive_agent_is_an_anomaly(setting: Setting) {
    let steps = |story: &mut TestJobVault| minute_after(story, &["hf-checkpoint hi"]);
    Trial::of(setting, 60).changes(steps, vec![], only("INACTIVE error"));
}

/// What ticks find after an activity that was no introspection.
fn without_introspection(story: &mut TestJobVault, seconds: &[i64]) -> Vec<Vec<String>> {
    ok(story, "hf-activity --kind creating");
    seconds.iter().map(|seconds| found(&tick(story, *seconds))).collect()
}

pub fn a_missing_introspection_causes_a_notice(setting: Setting) {
    let steps = |story: &mut TestJobVault| without_introspection(story, &[61]);
    Trial::of(setting, 60).changes(steps, vec![vec![]], vec![only("INTROSPECTION_OVERDUE notice")]);
}

pub fn a_missing_introspection_causes_a_warning(setting: Setting) {
    let steps = |story: &mut TestJobVault| without_introspection(story, &[61]);
    Trial::of(setting, 60).changes(steps, vec![vec![]], vec![only("INTROSPECTION_OVERDUE warn")]);
}

/// Unless they are set, the notice comes at half of the time and the warning at two thirds.
pub fn a_missing_introspection_is_an_anomaly_with_a_notice_and_a_warning_before(setting: Setting) {
    let steps = |story: &mut TestJobVault| without_introspection(story, &[45, 46, 60, 61, 90, 91]);
    let levels = ["", "notice", "notice", "warn", "warn", "error"];
    let levels =
        levels.map(|level| if level.is_empty() { vec![] } else { only(&format!("INTROSPECTION_OVERDUE {level}")) });
    Trial::of(setting, 90).changes(steps, vec![vec![]; 6], levels.to_vec());
}

pub fn flexible_deep_work_needs_checkpoints(setting: Setting) {
    let steps = |story: &mut TestJobVault| minute_after(story, &["hf-deepwork start --flexible reading"]);
    Trial::of(setting, 60).changes(steps, vec![], only("DEEPWORK_UNCHECKED error"));
}

pub fn an_id_from_the_future_is_an_anomaly(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        ok(story, "hf-checkpoint hi");
        write_private(&file(story, &format!("checkpoints/{}.txt", beat(100))), b"soon\n");
        found(&tick(story, 0))
    };
    Trial::of(setting, 60).changes(steps, vec![], only("CLOCK_SKEW error"));
}

pub fn strict_deep_work_can_be_forbidden(setting: Setting) {
    let steps = |story: &mut TestJobVault| sh(story, "hf-deepwork start --strict 1 reading").get("STATUS").to_owned();
    Trial::of(setting, 0).changes(steps, "RECORDED".to_owned(), "USAGE".to_owned());
}

pub fn strict_deep_work_is_extended_only_so_often(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        ok(story, "hf-deepwork start --strict 1 reading");
        sh(story, "hf-deepwork extend 1").get("STATUS").to_owned()
    };
    Trial::of(setting, 0).changes(steps, "RECORDED".to_owned(), "REFUSED".to_owned());
}

pub fn a_checkpoint_suggests_deep_work(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        ok(story, "hf-activity --kind creating");
        at(story, 61, "hf-checkpoint hi").all("ADVICE").len()
    };
    Trial::of(setting, 60).changes(steps, 0, 1);
}

/// What a tick half a minute after five checkpoints finds.
fn after_five(story: &mut TestJobVault) -> Vec<String> {
    for _ in 0..5 {
        ok(story, "hf-checkpoint hi");
    }
    found(&tick(story, 30))
}

pub fn too_many_events_of_one_actor_cause_a_warning(setting: Setting) {
    Trial::of(setting, 3).changes(after_five, vec![], only("RUNAWAY warn"));
}

pub fn older_events_are_not_counted(setting: Setting) {
    Trial::of(setting, 10).given(Setting::RunawayEvents, 3).changes(after_five, only("RUNAWAY warn"), vec![]);
}

pub fn heartbeat_ids_are_in_local_time(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        let east = [("TZ", "EAST-9")];
        let checkpoint = within(story, &east, "hf-checkpoint hi").get("HEARTBEAT_ID").to_owned();
        // The id that a tick leaves is in the same time, and so none is in the future.
        let healthy = within(story, &east, "hf-watchdog").get("STATUS").to_owned();
        let current = fs::read_to_string(file(story, "current_heartbeat_id.txt")).expect("an id");
        (checkpoint, healthy, current.trim_end().to_owned())
    };
    let healthy = || "HEALTHY".to_owned();
    Trial::of(setting, "local").changes(
        steps,
        (beat(0), healthy(), beat(0)),
        (beat(9 * 3600), healthy(), beat(9 * 3600)),
    );
}

pub fn the_files_of_agents_are_in_another_tree(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        let works = story.dir().join("ai-works");
        fs::create_dir(&works).expect("a new directory");
        ok(story, "hf-checkpoint hi");
        works.join("stats/checkpoints").exists()
    };
    Trial::of(setting, "../ai-works").changes(steps, false, true);
}

pub fn activity_logs_are_read_in_these_directories(setting: Setting) {
    let steps = |story: &mut TestJobVault| {
        let histories = story.dir().join("ai-works/projects/p/histories");
        fs::create_dir_all(&histories).expect("new directories");
        fs::write(histories.join(format!("{}.md", beat(0))), "built it\n").expect("a log");
        ok(story, "hf-watchdog --works ai-works").all("DID").iter().any(|did| did.starts_with("ActivityLogged"))
    };
    Trial::of(setting, vec!["artifacts", "projects"]).changes(steps, false, true);
}
