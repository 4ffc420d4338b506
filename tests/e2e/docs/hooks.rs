//! The page about hooks, which is generated from their table, and what hooks really get.

use std::collections::BTreeSet;
use std::fs;

use hiveforge::base::limits;
use hiveforge::op::hook;
use hiveforge::policy::settings::Setting;

use super::manual::{is_current, item, man, page, roff};
use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{ok, running};
use crate::support::watchdog_fixture::at;

/// D11
#[test]
fn d11_the_page_of_hooks_is_current() {
    let mut out = page("hf-hooks", 7, "commands that HiveForge runs when something happens");
    out += ".SH DESCRIPTION\nA hook is a command line in hiveforge.config.yaml. sh runs it in the directory of the vault, without a lock and\n\
            for at most hooks.timeout_seconds, and only if the vault and the settings file belong to the user, nobody\n\
            else can write to them, and the user trusts the vault on this machine, which\n.BR hf\\-config (1)\nexplains. Besides the environment of the command or watchdog that starts it, it gets the variables\n\
            below, and a report on standard input: lines of the form KEY:VALUE, escaped as in\n.BR hf\\-output (7).\n.PP\n\
            A hook has a shell of its own: HF_AGENT and HF_SESSION of the caller are not passed on, and HF_RUN_ID says\n\
            that it belongs to a program. So a hook can propose and stop, but not approve or resume, and nobody expects\n\
            signs of life of it. The same holds for jobs.check_cmd. A program that a hook leaves running, such as a new\n\
            tmux server, keeps HF_RUN_ID.\n.PP\n\
            A hook that fails changes nothing else. HookFailed is recorded when it begins to fail, and HookRecovered when\n\
            it works again. scripts/notify is a hook that sends one line with a command of your choice; scripts/deliver\\-tmux\n\
            and scripts/kick\\-tmux type into the tmux pane of an agent.\n.SH HOOKS\n";
    for row in hook::TABLE {
        for setting in row.hooks {
            let prefixes = ["command that is notified on standard input ", "command that receives ", "the same, "];
            let text = prefixes.iter().find_map(|prefix| setting.meaning().strip_prefix(prefix));
            item(&mut out, setting.as_str(), text.unwrap_or(setting.meaning()));
        }
        let (keys, variables) = (row.keys.join(", "), row.variables.join(", "));
        let text = format!("Run {}. The report begins with {keys}. The variables are {variables}.", row.when);
        out += &format!(".PP\n{}\n", roff(&text));
    }
    out += ".SH DELIVERY\n";
    out += &roff(&format!(
        "A hook that is notified of events is run by a process that the command which recorded them starts and does not wait \
         for. Akashic/notify/ has the last event that was sent to each hook. What is left because a process was killed or \
         a hook failed is sent at the next event or by the next tick of hf-watchdog, so a hook is notified at least once and \
         may be notified twice. An event for which it fails {} times, at least {} seconds apart, is skipped. A hook is not \
         notified of what happened while it was not set. Hooks do not wait for each other.",
        limits::HOOK_ATTEMPTS_MAX_COUNT,
        limits::HOOK_RETRY_SECONDS
    ));
    out += "\n.SH KEYS\n";
    hook::KEYS.iter().for_each(|(key, meaning)| item(&mut out, key, meaning));
    out += ".SH VARIABLES\n";
    for (name, meaning) in hook::VARIABLES {
        let every = if hook::EVERY_HOOK.contains(name) { "; every hook has it" } else { "" };
        item(&mut out, name, &format!("{meaning}{every}"));
    }
    out += ".SH \"SEE ALSO\"\n.BR hf\\-watchdog (1),\n.BR hf\\-format (5),\n.BR hf\\-output (7)\n";
    is_current(&man().join("hf-hooks.7"), &out);
}

#[test]
fn the_tables_of_hooks_name_every_hook_key_and_variable() {
    let hooks: Vec<Setting> = hook::TABLE.iter().flat_map(|row| row.hooks).copied().collect();
    let is_hook = |name: &str| name.contains("hooks.on_") || name == "jobs.on_finish";
    for setting in Setting::ALL {
        let times = hooks.iter().filter(|hook| *hook == setting).count();
        assert_eq!(times, usize::from(is_hook(setting.as_str())), "{setting}");
    }
    let explained = |table: &[(&str, &str)], name: &str| table.iter().filter(|(known, _)| *known == name).count() == 1;
    for row in hook::TABLE {
        assert!(row.keys.iter().all(|key| explained(hook::KEYS, key)), "{row:?}");
        assert!(row.variables.iter().all(|name| explained(hook::VARIABLES, name)), "{row:?}");
    }
}

/// Does something for every hook. One attempt to wake an agent is made, a minute before giving up.
fn live_through_every_hook(story: &mut TestJobVault) {
    ok(story, "hf-require propose Login");
    ok(story, "hf-require analyze REQ-0001 Easy.");
    running(story, "agent:a");
    ok(story, "hf-task fail T-0001 --class permanent --reason auth --actor agent:a");
    story.fire("exit 3");
    story.poll("T-0002");
    ok(story, "hf-checkpoint Here");
    for second in [301, 601, 662] {
        at(story, second, "hf-watchdog");
    }
    ok(story, "hf-checkpoint Back");
    at(story, 723, "hf-watchdog");
    story.gone();
}

#[test]
fn every_hook_gets_the_documented_report_and_variables() {
    let keep = "'cat >\"../$HF_HOOK.report\"; env >\"../$HF_HOOK.env\"'";
    let set = |names: &[&str], indent: &str| -> String {
        names.iter().map(|name| format!("{indent}{name}: {keep}\n")).collect()
    };
    let settings = format!(
        "hooks:\n{}jobs:\n{}watchdog:\n  max_recovery_attempts: 1\n  recovery_wait_cycles: 1\n  hooks:\n{}",
        set(&["on_decision", "on_escalation", "on_done"], "  "),
        set(&["on_finish"], "  "),
        set(&["on_beat", "on_warning", "on_anomaly", "on_cleared", "on_giving_up"], "    ")
    );
    let mut story = TestJobVault::new(&settings);
    live_through_every_hook(&mut story);
    for row in hook::TABLE {
        for setting in row.hooks {
            let file = |ending: &str| fs::read_to_string(story.dir().join(format!("{setting}.{ending}")));
            let report = file("report").unwrap_or_else(|e| panic!("{setting} was not run: {e}"));
            let keys: Vec<&str> = report.lines().map(|line| line.split_once(':').expect("KEY:VALUE").0).collect();
            assert_eq!(keys[..row.keys.len()], *row.keys, "{setting}");
            for key in keys {
                assert!(hook::KEYS.iter().any(|(known, _)| *known == key), "{setting}: {key} is not explained");
            }
            let env = file("env").unwrap();
            let ours = |line: &str| line.split_once('=').map(|(name, _)| name.to_owned());
            let names: BTreeSet<String> = env.lines().filter_map(ours).filter(|name| name.starts_with("HF_")).collect();
            let of_tests = ["HF_NOW", "HF_REPLIES"];
            let expected = hook::EVERY_HOOK.iter().chain(row.variables).chain(&of_tests);
            assert_eq!(names, expected.map(|name| (*name).to_owned()).collect(), "{setting}");
            assert!(env.contains(&format!("\nHF_VAULT={}\n", story.vault().display())), "{setting}: {env}");
        }
    }
}

/// T2
#[test]
fn t2_the_notify_script_sends_one_line_for_every_hook() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/notify");
    let keep = format!("\"HF_NOTIFY='cat >>../$HF_HOOK #' {script}\"");
    let set = |names: &[&str], indent: &str| -> String {
        names.iter().map(|name| format!("{indent}{name}: {keep}\n")).collect()
    };
    let settings = format!(
        "hive:\n  name: Bees\nhooks:\n{}jobs:\n{}watchdog:\n  max_recovery_attempts: 1\n  recovery_wait_cycles: 1\n  hooks:\n{}",
        set(&["on_decision", "on_escalation", "on_done"], "  "),
        set(&["on_finish"], "  "),
        set(&["on_warning", "on_anomaly", "on_cleared", "on_giving_up"], "    ")
    );
    let mut story = TestJobVault::new(&settings);
    live_through_every_hook(&mut story);
    for (hook, lines) in [
        ("hooks.on_decision", "Bees: DEC-0001 needs an answer: Build REQ-0001, Login?; hf-decide show DEC-0001\n"),
        (
            "hooks.on_escalation",
            "Bees: T-0001 needs an operator: Form (auth); hf-decide show ESC-0001\n\
             Bees: agent main needs an operator (INACTIVE for 662 s; recovery attempts failed: 1); hf-decide show ESC-0002\n",
        ),
        (
            "hooks.on_done",
            "Bees: T-0001 was aborted: Form (auth); hf-task explain T-0001\n\
             Bees: T-0002 was aborted: sh -c exit 3 (exit code 3); hf-task explain T-0002\n",
        ),
        (
            "watchdog.hooks.on_giving_up",
            "Bees: giving up: agent main cannot be woken (INACTIVE for 662 s; recovery attempts failed: 1); hf-decide show ESC-0002\n",
        ),
        ("watchdog.hooks.on_warning", "main WARNING: INACTIVE for 301 s\n"),
        ("watchdog.hooks.on_anomaly", "try 1 of 1: main ANOMALY: INACTIVE for 601 s\n"),
        ("watchdog.hooks.on_cleared", "main HEALTHY: INACTIVE is over\n"),
        ("jobs.on_finish", "T-0002 FAIL: exit 3\n"),
    ] {
        assert_eq!(fs::read_to_string(story.dir().join(hook)).unwrap_or_default(), lines, "{hook}");
    }
    assert_eq!(story.of_kind("HookFailed").len(), 0);
}
