//! Settings: who can change the rules, and whose commands are run.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use hiveforge::base::Actor;
use hiveforge::event::Kind;
use serde_json::{Value, json};

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, keeps_the_rules, ok, sh};
use crate::support::test_vault::{Reply, TestVault, forged, write_private};

/// A user who is neither root nor the owner of the test's files.
const SOMEBODY_ELSE: u32 = 65534;

/// Runs a command as another user. Returns false, and says why, if the test is not allowed to.
fn as_somebody_else(words: &[&str], dir: &Path) -> bool {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can act as another user");
        return false;
    }
    let mut command = Command::new(words[0]);
    let done = command.args(&words[1..]).current_dir(dir).uid(SOMEBODY_ELSE).gid(SOMEBODY_ELSE).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    true
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// The one line in which a command tells that it does not run another.
fn not_run(reply: &Reply) -> Vec<String> {
    let all = format!("{}{}", reply.stdout, reply.stderr);
    all.lines().filter(|line| line.contains("not run: ")).map(str::to_owned).collect()
}

/// Somebody who can write the folder puts a file of the victim's own in the place of the settings: its owner and mode
/// are in order, but nobody decided that these are the settings of this vault.
#[test]
fn a5_whoever_can_write_the_folder_next_to_the_vault_gets_no_command_executed() {
    let hive = TestVault::new();
    fs::remove_file(hive.config()).unwrap();
    write_private(&hive.dir().join("other.yaml"), b"jobs:\n  check_cmd: touch ran\n");
    for open in [0o777, 0o775] {
        mode(hive.dir(), open);
        let group = rustix::fs::Gid::from_raw(SOMEBODY_ELSE);
        if rustix::process::geteuid().is_root() {
            rustix::fs::chown(hive.dir(), None, Some(group)).unwrap();
        }
        if !as_somebody_else(&["mv", "other.yaml", "hiveforge.config.yaml"], hive.dir()) {
            return;
        }
        let polled = sh(&hive, "hf-poll job-7");
        assert!(!hive.dir().join("ran").exists(), "{polled:#?}");
        assert!(polled.stderr.contains(" is writable by others"), "{polled:#?}");
        assert_eq!(sh(&hive, "hf-config show").expect_exit(3).get("REASON"), "not_private");
        assert!(as_somebody_else(&["mv", "hiveforge.config.yaml", "other.yaml"], hive.dir()));
    }
    // A folder like /tmp keeps others from each other's files, so a file of one's own can be used there.
    fs::rename(hive.dir().join("other.yaml"), hive.dir().join("hiveforge.config.yaml")).unwrap();
    mode(hive.dir(), 0o1777);
    sh(&hive, "hf-poll job-7");
    assert!(hive.dir().join("ran").exists());
}

#[test]
fn a5_a_file_that_is_not_plainly_ones_own_counts_as_unreadable() {
    let is_root = rustix::process::geteuid().is_root();
    for beside in [false, true] {
        let hive = TestVault::new();
        let file = if beside { hive.dir().join("hiveforge.config.yaml") } else { hive.config() };
        fs::remove_file(hive.config()).unwrap();
        let text = "governance:\n  lease_seconds: 60\njobs:\n  check_cmd: touch ran\n";
        write_private(&file, text.as_bytes());
        ok(&hive, "hf-task propose x");
        let elsewhere = hive.dir().join("elsewhere");
        type Spoil<'a> = (&'a str, Box<dyn Fn() + 'a>);
        let spoils: [Spoil<'_>; 4] = [
            ("not_private", Box::new(|| mode(&file, 0o620))),
            (
                "symlink",
                Box::new(|| {
                    fs::rename(&file, &elsewhere).unwrap();
                    symlink(&elsewhere, &file).unwrap();
                }),
            ),
            ("", Box::new(|| write_private(&file, format!("{text}# {}\n", "x".repeat(2 << 20)).as_bytes()))),
            (
                "not_owner",
                Box::new(|| {
                    let owner = rustix::fs::Uid::from_raw(SOMEBODY_ELSE);
                    rustix::fs::chown(&file, Some(owner), None).unwrap();
                }),
            ),
        ];
        for (reason, spoil) in spoils.into_iter().filter(|(reason, _)| *reason != "not_owner" || is_root) {
            spoil();
            let shown = sh(&hive, "hf-config show");
            assert_eq!(shown.all("REASON").concat(), reason, "{shown:#?}");
            shown.expect_exit(if reason.is_empty() { 2 } else { 3 });
            // Everything else goes on with what was recorded last, and says so.
            let claimed = ok(&hive, "hf-task claim --actor agent:a");
            assert_eq!(claimed.get("LEASE_UNTIL"), "2026-01-31T12:01:00Z", "{reason}");
            assert!(claimed.stderr.contains("the settings recorded last remain in force"), "{claimed:#?}");
            ok(&hive, "hf-task propose x");
            let _ = fs::remove_file(&file);
            write_private(&file, text.as_bytes());
        }
        assert_eq!(count(&hive, "SettingsChanged"), 1);
        keeps_the_rules(&hive);
    }
}

#[test]
fn a5_a_file_that_others_can_write_names_no_vault() {
    let hive = TestVault::empty();
    ok(&hive, "hf-init --vault elsewhere");
    let file = hive.dir().join("hiveforge.config.yaml");
    write_private(&file, b"hive:\n  vault_path: elsewhere\n");
    ok(&hive, "hf-task propose x");
    mode(&file, 0o666);
    let refused = sh(&hive, "hf-task propose x").expect_exit(3);
    assert_eq!(refused.get("REASON"), "not_private", "{refused:#?}");
    write_private(&file, b"hive:\n  vault_path: elsewhere\n");
    mode(hive.dir(), 0o777);
    assert_eq!(sh(&hive, "hf-task propose x").expect_exit(3).get("REASON"), "not_private");
    ok(&hive, "hf-task propose x --vault elsewhere");
}

const GUARDED: &str = "governance:\n  destructive_commands: [\"rm *\"]\n";

/// The agent of the findings: it empties the list of commands that require approval, and fires one.
fn empties_the_list(hive: &TestVault) -> Reply {
    hive.configure("governance:\n  destructive_commands: []\n");
    let mut fire = hive.command("job");
    Reply::of(fire.env("HF_AGENT", "a").args(["fire", "--", "rm", "gone"]).output().unwrap())
}

#[test]
fn a9_in_a_vault_that_is_not_strict_whoever_empties_the_list_is_on_the_record() {
    let story = TestJobVault::new(GUARDED);
    ok(&story, "hf-task propose x");
    empties_the_list(&story).expect_exit(0);
    story.gone();
    let changed = story.of_kind("SettingsChanged").pop().unwrap();
    assert_eq!(changed["payload"]["noticed_by"], "agent:a");
    let what = json!({"governance.destructive_commands": {"from": ["rm *"], "to": []}});
    assert_eq!(changed["payload"]["changed"], what);
    let logged = ok(&story, "hf-log --type SettingsChanged").all("EVENT").pop().unwrap().to_owned();
    assert!(logged.ends_with(r#" core:kernel governance.destructive_commands: ["rm *"] -> []"#), "{logged}");
    // What such a vault cannot prevent is printed as such.
    let regime = "settings are recorded, not adopted: anyone who can write the settings file can change the rules";
    let verified = ok(&story, "hf-verify --policy");
    assert_eq!([verified.get("SETTINGS"), verified.get("REGIME")], ["RECORDED", regime]);
    assert_eq!(sh(&story, "hf-status").get("REGIME"), regime);
    keeps_the_rules(&story);
}

#[test]
fn a9_in_a_strict_vault_an_agent_that_empties_the_list_achieves_nothing() {
    let story = TestJobVault::new("");
    story.configure_strictly(GUARDED);
    let refused = empties_the_list(&story).expect_exit(3);
    assert_eq!(refused.get("STATUS"), "APPROVAL_REQUIRED", "{refused:#?}");
    assert_eq!(refused.stderr, "", "it is not the agent's concern");
    assert_eq!(count(&story, "SettingsChanged"), 1, "only the one before the adoption");
    // The operator is told everywhere, and nothing else is adopted along with what the operator sets.
    let differs = "hiveforge.config.yaml differs from the adopted settings, which remain in force; \
                   not in force: governance.destructive_commands";
    for line in ["hf-task propose x", "hf-task list", "hf-log", "hf-config show", "hf-verify"] {
        let told = ok(&story, line);
        assert_eq!(told.stderr, format!("warning: {differs}; see hf-config diff\n"), "{line}");
    }
    let problems = sh(&story, "hf-status").expect_exit(1);
    let problem = format!("- - settings {differs} do=hf-config diff");
    assert!(problems.all("PROBLEM").contains(&problem.as_str()), "{problems:#?}");
    assert!(sh(&story, "hf-watchdog").all("ANOMALY").contains(&"SETTINGS_DIFFER system warn 0"));
    let before = story.contents();
    let refused = sh(&story, "hf-config set governance.max_retries 1").expect_exit(3);
    assert_eq!(refused.get("REASON"), "changed", "{refused:#?}");
    assert!(story.contents() == before);
    assert_eq!(sh(&story, "hf-config diff").expect_exit(1).all("SETTING_DIFFERS").len(), 1);
    let shown = ok(&story, "hf-config show governance.destructive_commands");
    assert_eq!(shown.all("SETTING"), [r#"governance.destructive_commands adopted ["rm *"]"#]);
    story.configure(GUARDED);
    assert_eq!(ok(&story, "hf-config diff").get("SUM"), "the adopted settings match the file");
    assert_eq!(ok(&story, "hf-task list").stderr, "");
    let verified = ok(&story, "hf-verify --policy");
    let regime = "settings are adopted: a changed file has no effect until an operator adopts it; any program of this user can act as one";
    assert_eq!([verified.get("SETTINGS"), verified.get("REGIME")], ["ADOPTED", regime]);
    keeps_the_rules(&story);
}

#[test]
fn a9_only_an_operator_adopts_sets_and_trusts() {
    let hive = TestVault::new();
    hive.configure(GUARDED);
    ok(&hive, "hf-task propose x");
    let before = (hive.contents(), fs::read(hive.user_home().join(".config/hiveforge/trust")).unwrap());
    for words in [&["adopt"][..], &["set", "governance.max_retries", "1"], &["trust"]] {
        for variable in ["HF_AGENT", "HF_SESSION", "HF_RUN_ID", "HF_TASK_ID"] {
            let reply = Reply::of(hive.command("config").env(variable, "a").args(words).output().unwrap());
            assert_eq!(reply.expect_exit(3).get("REASON"), "operator_only", "{words:?} {variable}");
        }
        if words != ["trust"] {
            let as_agent = [words, &["--actor", "agent:a"]].concat();
            assert_eq!(hive.run("config", &as_agent).expect_exit(3).get("REASON"), "operator_only");
        }
    }
    // There is no other way to record it.
    let payload = json!({"settings": {}}).to_string();
    let appended = hive.run("append", &["SettingsAdopted", "--payload", &payload]).expect_exit(3);
    assert_eq!(appended.get("REASON"), "reserved_kind");
    let after = (hive.contents(), fs::read(hive.user_home().join(".config/hiveforge/trust")).unwrap());
    assert!(before == after, "something was changed");
}

/// Raw lines with right hashes: the audit says what the commands would have refused.
#[test]
fn a9_the_audit_refuses_settings_that_no_operator_adopted() {
    let settings = |hive: &TestVault| hive.events().pop().unwrap()["payload"]["settings"].clone();
    let event = |n: u64, kind: Kind, actor: &str, payload: Value| {
        let mut event = forged(n, kind, "system", payload);
        event.actor = actor.to_owned();
        event
    };
    let kernel = Actor::core("kernel").to_string();
    type Forge<'a> = (&'a str, Kind, Box<dyn Fn(Value) -> Value>, Option<&'a str>);
    let plain = || -> Box<dyn Fn(Value) -> Value> { Box::new(|settings| json!({"settings": settings})) };
    let lying = |name: &'static str| -> Box<dyn Fn(Value) -> Value> {
        Box::new(move |settings| json!({"settings": settings, "changed": {name: {"from": 3, "to": 4}}}))
    };
    let cases: [Forge<'_>; 6] = [
        (&kernel, Kind::SettingsChanged, plain(), Some("changing adopted settings requires an operator")),
        ("user:jo", Kind::SettingsChanged, plain(), Some("must be recorded by core:kernel")),
        ("agent:a", Kind::SettingsAdopted, plain(), Some("SettingsAdopted requires an operator")),
        (&kernel, Kind::SettingsAdopted, plain(), Some("SettingsAdopted")),
        (
            "user:jo",
            Kind::SettingsAdopted,
            lying("governance.max_retries"),
            Some("what became of governance.max_retries"),
        ),
        ("user:jo", Kind::SettingsAdopted, lying("governance.of_a_later_version"), None),
    ];
    for (actor, kind, payload, found) in cases {
        let hive = TestVault::new();
        hive.configure_strictly(GUARDED);
        let mut events = hive.recorded();
        events.push(event(1, kind, actor, payload(settings(&hive))));
        hive.forge(&mut events);
        let verified = hive.run("verify", &["--policy"]);
        let verdict = if found.is_some() { "VIOLATED" } else { "OK" };
        assert_eq!(verified.get("POLICY"), verdict, "{actor} {kind}: {verified:#?}");
        let finding = verified.all("FINDING").concat();
        assert!(found.is_none_or(|found| finding.contains(found)), "{actor} {kind}: {finding}");
    }
}

/// Every command that settings can name, each leaving a trace.
const COMMANDS: &str = "jobs:
  check_cmd: touch ran-check_cmd
  on_finish: touch ran-on_finish
hooks:
  on_decision: touch ran-on_decision
  on_escalation: touch ran-on_escalation
  on_done: touch ran-on_done
watchdog:
  max_recovery_attempts: 0
  hooks:
    on_beat: touch ran-on_beat
    on_warning: touch ran-on_warning
    on_anomaly: touch ran-on_anomaly
    on_cleared: touch ran-on_cleared
    on_giving_up: touch ran-on_giving_up
reviewers:
  order: [gpt]
  gpt:
    command: touch ran-gpt; echo PASS
runner:
  command: touch ran-runner
fixer:
  command: touch ran-fixer
";

/// What ran, in the vault or next to it.
fn ran(hive: &TestVault) -> Vec<String> {
    let names = [hive.dir().to_owned(), hive.vault()].map(|dir| fs::read_dir(dir).unwrap());
    let names = names.into_iter().flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut ran: Vec<String> = names.filter_map(|name| name.strip_prefix("ran-").map(str::to_owned)).collect();
    ran.sort();
    ran
}

/// Does whatever would run the commands. Returns what each command replied.
fn live(story: &mut TestJobVault) -> Vec<(&'static str, Reply)> {
    fs::write(story.dir().join("spec.md"), "# Login\n").unwrap();
    let mut replies = Vec::new();
    let mut say = |story: &TestJobVault, line: &'static str| {
        let reply = sh(story, line);
        assert!(!reply.get("NEXT").contains("hf-config"), "{line}: {reply:#?}");
        replies.push((line, reply));
        story.gone();
    };
    for line in [
        "hf-poll job-7",
        "hf-require propose Login",
        "hf-require analyze REQ-0001 Easy.",
        "hf-decide approve DEC-0001",
        "hf-review run spec.md",
        "hf-state start Login",
        "hf-state go",
        "hf-job fire -- true",
        "hf-task propose x",
        "hf-task abort T-0002",
        "hf-checkpoint hi",
    ] {
        say(story, line);
    }
    story.at("2026-01-31T12:06:00Z");
    say(story, "hf-watchdog");
    story.at("2026-01-31T12:11:00Z");
    say(story, "hf-watchdog");
    say(story, "hf-checkpoint back");
    say(story, "hf-watchdog");
    replies
}

#[test]
fn a11_a_copied_vault_runs_nothing_and_says_so() {
    let story = TestJobVault::new(COMMANDS);
    ok(&story, "hf-task list");
    let mut copy = TestJobVault::new("");
    fs::remove_dir_all(copy.vault()).unwrap();
    let done = Command::new("cp").arg("-r").arg(story.vault()).arg(copy.vault()).status().unwrap();
    assert!(done.success());
    let replies = live(&mut copy);
    assert_eq!(ran(&copy), Vec::<String>::new());
    // Whoever would have run a command says so in one line, with what an operator can do about it.
    let remedy = "this vault is not trusted on this machine; an operator can trust it with hf-config trust";
    let told: Vec<(&str, usize)> = replies.iter().map(|(line, reply)| (*line, not_run(reply).len())).collect();
    for (line, reply) in &replies {
        assert!(not_run(reply).iter().all(|told| told.ends_with(remedy)), "{line}: {reply:#?}");
    }
    for line in ["hf-poll job-7", "hf-require analyze REQ-0001 Easy.", "hf-review run spec.md", "hf-state go"] {
        assert!(told.contains(&(line, 1)), "{line}: {told:?}");
    }
    assert!(told.iter().any(|(line, told)| *line == "hf-watchdog" && *told > 0), "{told:?}");
    let ticked = sh(&copy, "hf-watchdog").expect_exit(1);
    assert!(ticked.all("ANOMALY").contains(&"NOT_TRUSTED system error 0"), "{ticked:#?}");
    let problem = format!("- - settings commands are not run: {remedy} do=hf-config trust");
    let status = sh(&copy, "hf-status").expect_exit(1);
    assert!(status.all("PROBLEM").contains(&problem.as_str()), "{status:#?}");
    // That this user does not trust it is no fact about the vault.
    assert_eq!(count(&copy, "HookFailed"), 0);
    keeps_the_rules(&copy);
    let trusted = ok(&copy, "hf-config trust");
    assert_eq!(trusted.all("SETTING").len(), 13, "the operator sees what is trusted: {trusted:#?}");
    sh(&copy, "hf-poll job-7");
    assert_eq!(ran(&copy), ["check_cmd"]);
}

/// The same steps in the vault that the user made: everything runs.
#[test]
fn a11_a_vault_runs_the_commands_of_the_user_who_made_it() {
    let mut story = TestJobVault::new(COMMANDS);
    let replies = live(&mut story);
    let all = COMMANDS.lines().filter_map(|line| line.split_once("ran-")).map(|(_, rest)| rest);
    let mut all: Vec<&str> = all.map(|rest| rest.split(';').next().unwrap()).collect();
    all.retain(|name| *name != "fixer");
    all.sort_unstable();
    assert_eq!(ran(&story), all);
    for (line, reply) in replies {
        assert!(not_run(&reply).is_empty(), "{line}: {reply:#?}");
    }
}

#[test]
fn a11_a_copy_in_another_place_of_the_same_home_is_told_from_the_vault() {
    let hive = TestVault::new();
    hive.configure(COMMANDS);
    ok(&hive, "hf-task propose x");
    let done = Command::new("cp").arg("-r").arg(hive.vault()).arg(hive.dir().join("copy")).status().unwrap();
    assert!(done.success());
    let polled = sh(&hive, "hf-poll job-7 --vault copy");
    assert!(polled.get("SUM").contains("not run: this vault is a copy, or was moved"), "{polled:#?}");
    assert_eq!(ran(&hive), Vec::<String>::new());
    // A link to the vault is the vault.
    symlink(hive.vault(), hive.dir().join("link")).unwrap();
    sh(&hive, "hf-poll job-7 --vault link");
    assert_eq!(ran(&hive), ["check_cmd"]);
}

#[test]
fn a11_ci_trusts_one_vault_by_its_id() {
    let hive = TestVault::empty();
    let id = ok(&hive, "hf-init").get("VAULT_ID").to_owned();
    hive.configure(COMMANDS);
    let ci = tempfile::tempdir().unwrap();
    let poll = |variables: &[(&str, &str)]| {
        let mut command = hive.command("poll");
        command.env("HOME", ci.path()).envs(variables.iter().copied()).arg("job-7");
        Reply::of(command.output().unwrap())
    };
    for wrong in ["", "*", "1", &format!("{id} "), &format!("{id},")] {
        poll(&[("HF_TRUST", wrong)]);
        assert_eq!(ran(&hive), Vec::<String>::new(), "'{wrong}'");
    }
    poll(&[("HF_TRUST", &id)]);
    assert_eq!(ran(&hive), ["check_cmd"]);
    assert!(fs::read_dir(ci.path()).unwrap().next().is_none(), "nothing is left behind");
}

#[test]
fn a11_a_list_that_others_can_write_is_not_believed() {
    let hive = TestVault::new();
    hive.configure(COMMANDS);
    let folder = hive.user_home().join(".config/hiveforge");
    let list = folder.join("trust");
    let modes = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((modes(&folder), modes(&list)), (0o700, 0o600));
    let good = fs::read(&list).unwrap();
    let spoil: [(&str, &dyn Fn()); 4] = [
        ("is writable by others", &|| mode(&list, 0o602)),
        ("is writable by others", &|| mode(&folder, 0o770)),
        ("expected", &|| write_private(&list, b"trust me\n")),
        ("is a symbolic link", &|| {
            fs::rename(&list, folder.join("other")).unwrap();
            symlink(folder.join("other"), &list).unwrap();
        }),
    ];
    for (why, spoil) in spoil {
        spoil();
        let polled = sh(&hive, "hf-poll job-7");
        assert!(polled.get("SUM").contains("the list of trusted vaults cannot be used"), "{polled:#?}");
        assert!(polled.get("SUM").contains(why), "{polled:#?}");
        assert_eq!(ran(&hive), Vec::<String>::new());
        let _ = fs::remove_file(&list);
        mode(&folder, 0o700);
        write_private(&list, &good);
    }
    sh(&hive, "hf-poll job-7");
    assert_eq!(ran(&hive), ["check_cmd"]);
}

#[test]
fn a11_in_a_strict_vault_only_the_settings_that_were_adopted_here_are_trusted() {
    let hive = TestVault::new();
    hive.configure_strictly(COMMANDS);
    let other = tempfile::tempdir().unwrap();
    hive.configure("jobs:\n  check_cmd: touch ran-other\n");
    let adopted = hive.command("config").env("HOME", other.path()).arg("adopt").output().unwrap();
    Reply::of(adopted).expect_exit(0);
    let polled = sh(&hive, "hf-poll job-7");
    let why = "not run: its adopted settings are not those that were trusted; an operator";
    assert!(polled.get("SUM").contains(why), "{polled:#?}");
    assert_eq!(ran(&hive), Vec::<String>::new());
    hive.trust();
    sh(&hive, "hf-poll job-7");
    assert_eq!(ran(&hive), ["other"]);
}

#[test]
fn a11_a_vault_is_made_without_a_home_directory_too() {
    let nowhere = tempfile::NamedTempFile::new().unwrap();
    let homes: [Option<&Path>; 3] = [None, Some(Path::new("")), Some(nowhere.path())];
    for home in homes {
        let hive = TestVault::empty();
        let run = |name: &str, args: &[&str]| {
            let mut command = hive.command(name);
            match home {
                Some(home) => command.env("HOME", home),
                None => command.env_remove("HOME"),
            };
            Reply::of(command.args(args).output().unwrap())
        };
        let made = run("init", &[]).expect_exit(0);
        assert_eq!((made.get("STATUS"), made.stderr.lines().count()), ("INITIALIZED", 1), "{made:#?}");
        assert!(made.stderr.contains("commands in its settings are not run until hf-config trust"), "{made:#?}");
        hive.configure(COMMANDS);
        run("poll", &["job-7"]);
        assert_eq!(ran(&hive), Vec::<String>::new());
        assert_ne!(run("config", &["trust"]).code, Some(0));
        // XDG_CONFIG_HOME is as good as a home.
        let config = tempfile::tempdir().unwrap();
        let xdg = |name: &str, arg: &str| {
            let mut command = hive.command(name);
            Reply::of(command.env_remove("HOME").env("XDG_CONFIG_HOME", config.path()).arg(arg).output().unwrap())
        };
        xdg("config", "trust").expect_exit(0);
        xdg("poll", "job-7");
        assert_eq!(ran(&hive), ["check_cmd"]);
        assert!(config.path().join("hiveforge/trust").exists());
    }
}

#[test]
fn a11_vaults_that_are_made_at_the_same_time_are_all_trusted() {
    let home = tempfile::tempdir().unwrap();
    let hives: Vec<TestVault> = (0..8).map(|_| TestVault::empty()).collect();
    let start = |hive: &TestVault| hive.process("init").env("HOME", home.path()).spawn().unwrap();
    let children: Vec<_> = hives.iter().map(start).collect();
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let list = fs::read_to_string(home.path().join(".config/hiveforge/trust")).unwrap();
    assert_eq!(list.lines().count(), 8, "{list}");
    // A new vault in the same place takes the place of the old one.
    fs::remove_dir_all(hives[0].vault()).unwrap();
    start(&hives[0]).wait().unwrap();
    let list = fs::read_to_string(home.path().join(".config/hiveforge/trust")).unwrap();
    assert_eq!(list.lines().count(), 8, "{list}");
}

/// hf-init of a folder in which somebody left settings: the user is told what will be run.
#[test]
fn a11_a_new_vault_over_settings_that_name_commands_says_which() {
    let hive = TestVault::empty();
    fs::create_dir(hive.vault()).unwrap();
    mode(&hive.vault(), 0o700);
    hive.configure("jobs:\n  check_cmd: touch ran-x\nfixer:\n  command: fix\n");
    let said = "warning: the settings file names commands, which will be run: fixer.command, jobs.check_cmd\n";
    assert_eq!(ok(&hive, "hf-init").stderr, said);
    assert_eq!(ok(&hive, "hf-init").stderr, "", "an existing vault is not trusted again");
}

#[test]
fn a_solo_user_who_edits_the_file_and_goes_on_notices_nothing_but_an_event() {
    let story = TestJobVault::new("");
    fs::remove_dir_all(story.vault()).unwrap();
    let lines =
        ["hf-init", "hf-require propose Login", "hf-require analyze REQ-0001 Easy.", "hf-decide approve DEC-0001"];
    for line in lines {
        assert_eq!(ok(&story, line).stderr, "", "{line}");
        if line == "hf-init" {
            story.configure("hooks:\n  on_decision: touch ran-on_decision\ngovernance:\n  max_retries: 1\n");
        }
    }
    story.gone();
    assert_eq!(ran(&story), ["on_decision"]);
    assert_eq!(count(&story, "SettingsChanged"), 1);
    keeps_the_rules(&story);
}

#[test]
fn somebody_elses_vault_is_named_as_such_and_runs_nothing() {
    let hive = TestVault::new();
    hive.configure(COMMANDS);
    ok(&hive, "hf-task propose x");
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make a vault of another user");
        return;
    }
    let owner = format!("{SOMEBODY_ELSE}");
    assert!(Command::new("chown").args(["-R", &owner]).arg(hive.vault()).status().unwrap().success());
    let listed = ok(&hive, "hf-task list");
    let named =
        format!("is somebody else's vault: it belongs to user {SOMEBODY_ELSE}, is only read, and none of its commands");
    assert!(listed.stderr.contains(&named), "{listed:#?}");
    sh(&hive, "hf-poll job-7");
    let id = hive.events()[0]["payload"]["vault_id"].as_str().unwrap().to_owned();
    hive.command("poll").env("HF_TRUST", id).arg("job-7").output().unwrap();
    assert_eq!(ran(&hive), Vec::<String>::new());
    assert_eq!(sh(&hive, "hf-config trust").expect_exit(3).get("REASON"), "not_owner");
}
