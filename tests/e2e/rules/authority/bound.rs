//! A3, A21: what was approved is what runs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::job_fixture::TestJobVault;
use crate::support::keyed_vault::{keyed_with, verify};
use crate::support::steps::{count, id, ok, sh, state};
use crate::support::test_vault::{Reply, TestVault};

const GUARDED: &str = "governance:\n  destructive_commands: [\"* deploy*\"]\n";

/// A script in the folder of the vault.
fn script(hive: &TestVault, name: &str, text: &str) {
    let path = hive.dir().join(name);
    fs::write(&path, text).expect("our own folder");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own file");
}

/// What an approval covers, without the environment of the tests: kind, state and name.
fn covered(reply: &Reply) -> Vec<String> {
    let of_tests = |line: &&str| !line.starts_with("variable ");
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        format!("{} {} {}", words[0], words[1], words[words.len() - 1])
    };
    reply.all("COVERS").into_iter().filter(of_tests).map(line).collect()
}

#[test]
fn a3_a_script_that_changed_after_its_approval_does_not_run() {
    let story = TestJobVault::new(GUARDED);
    script(&story, "deploy.sh", "echo approved >>ran\n");
    story.run("job", &["fire", "--", "sh", "deploy.sh"]).expect_exit(3);
    script(&story, "deploy.sh", "echo evil >>ran\n");
    let shown = ok(&story, "hf-decide show DEC-0001");
    assert!(covered(&shown).contains(&"argument CHANGED deploy.sh".to_owned()), "{shown:#?}");
    // An approval is of what was asked about, so the changed script is asked about.
    ok(&story, "hf-decide approve DEC-0001");
    let asked = until_asked(&story, 2);
    assert!(asked.contains("Changed since it was approved. Allow destructive task T-0001"), "{asked}");
    assert!(!story.dir().join("ran").exists());
    assert_eq!((state(&story, "T-0001").as_str(), state(&story, "DEC-0001").as_str()), ("Proposed", "Approved"));
    let explained = ok(&story, "hf-task explain T-0001");
    let why = "changed since it was approved: deploy.sh has changed";
    assert!(explained.all("BECAUSE").iter().any(|line| line.contains(why)), "{explained:#?}");
    let changed = &story.of_kind("CommandChanged")[0];
    assert_eq!(changed["payload"]["reason"], why);
    // What was shown now is what runs.
    ok(&story, "hf-decide approve DEC-0002");
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert_eq!(fs::read_to_string(story.dir().join("ran")).unwrap(), "evil\n");
    story.over();
}

/// Waits until T-0001 was about to start and approval is requested again, and returns that question.
#[track_caller]
fn until_asked(hive: &TestVault, n: usize) -> String {
    loop {
        let mut asked = hive.events().into_iter().filter(|event| event["event_type"] == "DecisionRequested");
        if let Some(question) = asked.nth(n - 1) {
            return question["payload"]["summary"].as_str().expect("a question").to_owned();
        }
        let reply = sh(hive, "hf-job wait T-0001 --max 1s");
        assert_eq!(reply.get("STATUS"), "RUNNING", "{reply:#?}");
    }
}

#[test]
fn a3_a_name_that_stood_for_nothing_is_bound_too() {
    let story = TestJobVault::new(GUARDED);
    story.run("job", &["fire", "--", "sh", "deploy.sh"]).expect_exit(3);
    script(&story, "deploy.sh", "touch ran\n");
    ok(&story, "hf-decide approve DEC-0001");
    until_asked(&story, 2);
    assert!(!story.dir().join("ran").exists());
    assert_eq!(
        story.of_kind("CommandChanged")[0]["payload"]["reason"],
        "changed since it was approved: deploy.sh is file, and was absent"
    );
    ok(&story, "hf-decide reject DEC-0002 --reason No");
    story.over();
}

#[test]
fn a3_a_pattern_gates_the_words_that_were_typed() {
    for (pattern, words) in [("./deploy*", ["./deploy.sh", "x"]), ("sh deploy.sh", ["sh", "deploy.sh"])] {
        let story = TestJobVault::new(&format!("governance:\n  destructive_commands: [\"{pattern}\"]\n"));
        script(&story, "deploy.sh", "#!/bin/sh\ntouch ran\n");
        let fired = story.run("job", &[&["fire", "--"], &words[..]].concat()).expect_exit(3);
        assert_eq!(fired.get("STATUS"), "APPROVAL_REQUIRED");
        assert!(!story.dir().join("ran").exists());
        ok(&story, "hf-decide approve DEC-0001");
        assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
        assert!(story.dir().join("ran").exists());
        story.over();
    }
}

#[test]
fn a3_a_folder_that_is_a_link_is_bound_by_where_it_leads() {
    let story = TestJobVault::new("");
    for name in ["one", "two"] {
        fs::create_dir(story.dir().join(name)).unwrap();
    }
    symlink("one", story.dir().join("current")).unwrap();
    story.fires(&["--destructive", "--cwd", "current"], "touch ran").expect_exit(3);
    let shown = ok(&story, "hf-decide show DEC-0001");
    let one = fs::canonicalize(story.dir().join("one")).unwrap();
    assert_eq!(covered(&shown)[0], format!("directory SAME {}", one.display()));
    fs::remove_file(story.dir().join("current")).unwrap();
    symlink("two", story.dir().join("current")).unwrap();
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    assert!(one.join("ran").exists() && !story.dir().join("two/ran").exists());
    story.over();
}

#[test]
fn a21_another_folder_under_the_same_path_runs_only_if_its_files_are_the_same() {
    // A folder that was removed and made again often has the same inode. Its path and the content of its files count.
    for (text, states) in [("echo ok\n", ("DONE", 1)), ("echo evil\n", ("RUNNING", 2))] {
        let story = TestJobVault::new(GUARDED);
        let folder = story.dir().join("work");
        let make = |text: &str| {
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("deploy.sh"), text).unwrap();
        };
        make("echo ok\n");
        story.run("job", &["fire", "--cwd", "work", "--", "sh", "deploy.sh"]).expect_exit(3);
        fs::remove_dir_all(&folder).unwrap();
        make(text);
        ok(&story, "hf-decide approve DEC-0001");
        if states.1 == 2 {
            until_asked(&story, 2);
        }
        assert_eq!(story.run("poll", &["T-0001", "1", "1"]).get("STATUS"), states.0);
        assert_eq!(count(&story, "DecisionRequested"), states.1);
        if states.1 == 2 {
            ok(&story, "hf-job cancel T-0001");
        }
        story.over();
    }
}

#[test]
fn a3_a_folder_that_became_a_link_runs_nothing() {
    let story = TestJobVault::new("");
    for name in ["work", "other"] {
        fs::create_dir(story.dir().join(name)).unwrap();
    }
    story.fires(&["--destructive", "--cwd", "work"], "touch ran").expect_exit(3);
    fs::remove_dir(story.dir().join("work")).unwrap();
    symlink("other", story.dir().join("work")).unwrap();
    ok(&story, "hf-decide approve DEC-0001");
    let reply = story.poll("T-0001");
    assert_eq!(reply.get("STATUS"), "FAIL");
    assert!(reply.get("SUM").contains("its working directory"), "{reply:#?}");
    assert!(!story.dir().join("other/ran").exists());
    story.over();
}

#[test]
fn a3_a_gated_command_has_only_the_environment_that_is_shown() {
    let story = TestJobVault::new("jobs:\n  pass_env: [SSH_AUTH_SOCK, NOT_SET]\n");
    let evil = story.dir().join("evil.sh");
    fs::write(&evil, "touch ran\n").unwrap();
    let mut fire = story.command("job");
    fire.env("PATH", "/usr/bin:/bin")
        .env("BASH_ENV", &evil)
        .env("LD_BIND_NOW", "1")
        .env("SSH_AUTH_SOCK", "/s")
        .env("TOKEN", "hunter2");
    let args = ["fire", "--destructive", "--env", "LEVEL=9", "--secret-env", "TOKEN", "--", "bash", "-c", "env"];
    let fired = Reply::of(fire.args(args).output().unwrap()).expect_exit(3);
    assert!(fired.get("ENTITY").contains("bash -c env with LEVEL, TOKEN?"), "{fired:#?}");
    let shown = ok(&story, "hf-decide show DEC-0001");
    let variables: Vec<&str> =
        shown.all("COVERS").into_iter().filter_map(|line| line.strip_prefix("variable SAME - ")).collect();
    let named = |name: &str| variables.iter().find(|variable| variable.starts_with(name)).copied();
    assert_eq!((named("LEVEL"), named("SSH_AUTH_SOCK")), (Some("LEVEL=9"), Some("SSH_AUTH_SOCK=/s")));
    assert!(
        named("TOKEN").is_some_and(|token| token.contains("secret") && !token.contains("hunter2")),
        "{variables:?}"
    );
    assert!(named("BASH_ENV").is_none() && named("LD_BIND_NOW").is_none() && named("PATH=").is_some());
    ok(&story, "hf-decide approve DEC-0001");
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    let log = String::from_utf8(story.log("logs/L-0001.txt")).unwrap();
    let has = |line: &str| log.lines().any(|other| other == line);
    assert!(has("LEVEL=9") && has("TOKEN=hunter2") && has("SSH_AUTH_SOCK=/s"), "{log}");
    assert!(!log.contains("BASH_ENV") && !log.contains("LD_BIND_NOW") && !story.dir().join("ran").exists(), "{log}");
    assert!(has(&format!("HF_TASK_ID={}", id(&story, "task", "T-0001"))), "{log}");
    assert_eq!(log.lines().filter(|line| line.starts_with("HF_VAULT=")).count(), 1, "{log}");
    // The secret is in none of the vault's files, except for what the command itself printed.
    for (path, bytes) in story.contents() {
        let holds = bytes.windows(7).any(|part| part == b"hunter2");
        assert!(!holds || path.ends_with("Autonomous/logs/L-0001.txt"), "{}", path.display());
    }
    story.over();
}

#[test]
fn a3_what_loads_code_is_no_secret_and_the_toolkits_variables_are_its_own() {
    let story = TestJobVault::new("");
    for (args, why) in [
        (["--secret-env", "LD_PRELOAD"], "LD_PRELOAD can make a program run other code"),
        (["--secret-env", "PYTHONSTARTUP"], "PYTHONSTARTUP can make a program run other code"),
        (["--secret-env", "MAKEFLAGS"], "MAKEFLAGS can make a program run other code"),
        (["--secret-env", "HOME"], "HOME can make a program run other code"),
        (["--secret-env", "LC_ALL"], "LC_ALL can make a program run other code"),
        (["--secret-env", "HF_TOKEN"], "HF_TOKEN is a variable of the toolkit"),
        (["--secret-env", "BASH_ENV="], "'BASH_ENV=' is not the name of a variable"),
        (["--env", "A B=x"], "'A B' is not the name of a variable"),
        (["--secret-env", "NO_SUCH_VARIABLE"], "the variable NO_SUCH_VARIABLE is not set"),
        (["--env", "HF_AGENT=x"], "HF_AGENT is a variable of the toolkit"),
    ] {
        let reply = story.fires(&[&["--destructive"], &args[..]].concat(), "true").expect_exit(2);
        assert!(reply.get("SUM").contains(why), "{reply:#?}");
    }
    assert_eq!(count(&story, "TaskProposed"), 0);
    let long = "x".repeat(40_000);
    let reply = story.fires(&["--destructive"], &long).expect_exit(2);
    assert!(reply.get("SUM").contains("too long to be approved"), "{reply:#?}");
}

#[test]
fn a3_a_secret_that_nobody_has_any_more_is_said() {
    let story = TestJobVault::new("");
    let _gate = story.gate("go");
    let mut fire = story.command("job");
    let args = ["fire", "--retries", "1", "--secret-env", "TOKEN", "--", "sh", "-c", "echo $TOKEN; read x <go"];
    Reply::of(fire.env("TOKEN", "t").args(args).output().unwrap()).expect_exit(0);
    crate::support::job_fixture::until_recorded(&story, "RunStarted");
    while story.run("job", &["log", "T-0001"]).stdout != "t\n" {}
    story.lose("T-0001");
    let reply = story.poll("T-0001");
    assert_eq!(reply.get("STATUS"), "FAIL");
    assert!(reply.get("SUM").contains("the variable TOKEN is not set"), "{reply:#?}");
    story.over();
}

#[test]
fn a3_approving_prints_what_is_covered_and_the_statement_binds_it() {
    let hive = keyed_with(GUARDED);
    script(&hive, "deploy.sh", "true\n");
    hive.run("job", &["fire", "--env", "LEVEL=9", "--", "sh", "deploy.sh"]).expect_exit(3);
    ok(&hive, "hf-decide statement approve DEC-0001 --out s.txt");
    let statement = fs::read_to_string(hive.dir().join("s.txt")).unwrap();
    let folder = fs::canonicalize(hive.dir()).unwrap();
    for line in
        ["binds argument: deploy.sh", &format!("binds directory: {}", folder.display()), "binds variable: LEVEL=9"]
    {
        assert!(statement.lines().any(|other| other == line), "{line} in {statement}");
    }
    let is_file = |line: &&str| line.starts_with("binds file: argument sha256:") && line.ends_with(" deploy.sh");
    assert_eq!(statement.lines().filter(is_file).count(), 1, "{statement}");
    let approved = ok(&hive, "hf-decide approve DEC-0001 --yes");
    let covers = covered(&approved);
    assert!(covers.contains(&"argument SAME deploy.sh".to_owned()), "{approved:#?}");
    assert!(approved.get("NOT_COVERED").contains("libraries"), "{approved:#?}");
    assert_eq!(ok(&hive, "hf-job wait T-0001").get("STATUS"), "DONE");
    assert_eq!(verify(&hive, None).expect_exit(0).get("SIGNATURES"), "OK");
}

#[test]
fn a3_a_program_that_is_not_there_cannot_be_approved() {
    let story = TestJobVault::new("");
    script(&story, "tool", "#!/bin/sh\necho here\n");
    let refused = story.run("job", &["fire", "--destructive", "--", "tool"]).expect_exit(2);
    assert_eq!(refused.get("SUM"), "command not found: tool");
    // An empty PATH is the working directory, where the program is bound.
    story.run("job", &["fire", "--destructive", "--env", "PATH=", "--", "tool"]).expect_exit(3);
    script(&story, "tool", "#!/bin/sh\necho evil\n");
    let shown = ok(&story, "hf-decide show DEC-0001");
    assert!(covered(&shown)[1].starts_with("program CHANGED "), "{shown:#?}");
    ok(&story, "hf-decide approve DEC-0001");
    until_asked(&story, 2);
    ok(&story, "hf-job cancel T-0001");
    story.over();
}

#[test]
fn a3_a_script_whose_interpreter_is_unclear_cannot_be_approved() {
    let story = TestJobVault::new("");
    for first in ["#!/bin/sh\r", "#!/usr/bin/env -S A=1 sh", "#!/usr/bin/env -S \"sh\""] {
        script(&story, "run", &format!("{first}\necho hi\n"));
        let refused = story.run("job", &["fire", "--destructive", "--", "./run"]).expect_exit(2);
        assert!(refused.get("SUM").contains("cannot be approved"), "{refused:#?}");
    }
    assert_eq!(count(&story, "TaskProposed"), 0);
    // Without approval, the kernel decides what it means.
    script(&story, "run", "#!/usr/bin/env -S A=1 sh\necho $A\n");
    story.run("job", &["fire", "--", "./run"]).expect_exit(0);
    assert_eq!(story.poll("T-0001").get("STATUS"), "DONE");
    story.over();
}

#[test]
fn a3_a_link_that_leads_elsewhere_asks_again() {
    let story = TestJobVault::new("");
    for name in ["one", "two"] {
        fs::create_dir(story.dir().join(name)).unwrap();
        fs::write(story.dir().join(name).join("precious"), "").unwrap();
    }
    let link = story.dir().join("link");
    symlink("one", &link).unwrap();
    let find = ["fire", "--destructive", "--", "find", "link/", "-type", "f", "-delete"];
    story.run("job", &find).expect_exit(3);
    fs::remove_file(&link).unwrap();
    symlink("two", &link).unwrap();
    ok(&story, "hf-decide approve DEC-0001");
    until_asked(&story, 2);
    let changed = &story.of_kind("CommandChanged")[0]["payload"]["reason"];
    assert_eq!(changed, "changed since it was approved: link/ leads elsewhere");
    assert!(story.dir().join("two/precious").exists());
    ok(&story, "hf-decide reject DEC-0002 --reason No");
    story.over();
}

#[test]
fn a3_what_is_new_or_gone_has_a_line_of_its_own() {
    let story = TestJobVault::new("");
    fs::create_dir(story.dir().join("bin")).unwrap();
    script(&story, "run", "#!/usr/bin/env mytool\n");
    let path = format!("PATH={}:/usr/bin:/bin", story.dir().join("bin").display());
    story.run("job", &["fire", "--destructive", "--env", &path, "--", "./run", "x"]).expect_exit(3);
    script(&story, "bin/mytool", "#!/bin/sh\necho hi\n");
    let shown = ok(&story, "hf-decide show DEC-0001");
    let covers = covered(&shown);
    for line in ["argument SAME x", "interpreter SAME /usr/bin/env", "interpreter CHANGED mytool"] {
        assert!(covers.contains(&line.to_owned()), "{line} in {covers:?}");
    }
    assert!(
        covers.iter().any(|line| line.starts_with("interpreter CHANGED ") && line.ends_with("bin/mytool")),
        "{covers:?}"
    );
    ok(&story, "hf-job cancel T-0001");
    story.over();
}

#[test]
fn a3_a_command_that_fills_a_statement_can_still_be_answered() {
    let hive = keyed_with("");
    // Each of these is longer in a statement than it is here.
    let refused = hive.run("job", &["fire", "--destructive", "--", "true", &"\u{202e}".repeat(5000)]).expect_exit(2);
    assert!(refused.get("SUM").contains("too long to be approved"), "{refused:#?}");
    let names: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    let words: Vec<&str> =
        ["fire", "--destructive", "--", "true"].into_iter().chain(names.iter().map(String::as_str)).collect();
    hive.run("job", &words).expect_exit(3);
    for name in &names {
        fs::write(hive.dir().join(name), name).unwrap();
    }
    ok(&hive, "hf-decide approve DEC-0001 --yes");
    until_asked(&hive, 2);
    ok(&hive, "hf-decide approve DEC-0002 --yes");
    assert_eq!(ok(&hive, "hf-job wait T-0001").get("STATUS"), "DONE");
    assert_eq!(verify(&hive, None).expect_exit(0).get("SIGNATURES"), "OK");
}

#[test]
fn a3_a_repeated_request_has_the_same_variables() {
    let story = TestJobVault::new("");
    let fire = |variable: &str| story.fires(&["--destructive", "--key", "k", "--env", variable], "true");
    fire("LEVEL=9").expect_exit(3);
    assert_eq!(fire("LEVEL=9").expect_exit(0).get("STATUS"), "DUPLICATE");
    assert_eq!(fire("LEVEL=8").expect_exit(3).get("REASON"), "key_conflict");
    assert_eq!(fire("OTHER=9").expect_exit(3).get("REASON"), "key_conflict");
    let refused = story.run("job", &["fire", "--task", "T-0001", "--", "true"]).expect_exit(3);
    assert_eq!(refused.get("SUM"), "T-0001 keeps the command that it was fired with; its supervisor starts it");
    ok(&story, "hf-job cancel T-0001");
    story.over();
}
