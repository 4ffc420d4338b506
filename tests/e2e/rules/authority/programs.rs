//! A6: programs that the toolkit starts are agents. None of them can do what only an operator may.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::job_fixture::TestJobVault;
use crate::support::steps::{count, keeps_the_rules, ok, sh};
use crate::support::test_vault::{Reply, binary};

/// Makes DEC-0001, which only an operator may answer, and a script that tries to.
fn story(settings: &str) -> TestJobVault {
    let story = TestJobVault::new("");
    ok(&story, "hf-require propose Login");
    ok(&story, "hf-require analyze REQ-0001 Easy.");
    let vault = story.vault();
    let lines = [
        format!("{} approve DEC-0001 --vault {}", binary("decide").display(), vault.display()),
        format!("{} --system --vault {}", binary("resume").display(), vault.display()),
        format!("{} approve DEC-0001 --actor user:jo --vault {}", binary("decide").display(), vault.display()),
    ];
    let tries: String = lines.iter().map(|line| format!("{line} >>{}/tried\n", story.dir().display())).collect();
    let env = format!("env | grep ^HF_ | sort >{}/env\n", story.dir().display());
    fs::write(story.dir().join("try"), format!("{env}{tries}exit 0\n")).unwrap();
    let command = format!("sh {}/try", story.dir().display());
    story.settle(&settings.replace("TRY", &command));
    story
}

#[track_caller]
fn was_refused(story: &TestJobVault) {
    let tried = fs::read_to_string(story.dir().join("tried")).expect("the program was run");
    let refused = tried.lines().filter(|line| *line == "REASON:operator_only").count();
    assert_eq!((refused, tried.matches("EXIT:").count()), (3, 3), "{tried}");
    assert_eq!(count(story, "DecisionApproved"), 0);
    let agents = story.of_kind("AgentStarted");
    assert!(agents.iter().all(|event| event["subject"] == "agent:a"), "nobody waits for a program: {agents:#?}");
    keeps_the_rules(story);
    story.gone();
}

/// What the program was told about its shell.
fn variables(story: &TestJobVault) -> Vec<String> {
    let env = fs::read_to_string(story.dir().join("env")).unwrap();
    let is_owner =
        |line: &&str| ["HF_AGENT=", "HF_SESSION=", "HF_RUN_ID=", "HF_TASK_ID="].iter().any(|v| line.starts_with(v));
    env.lines().filter(is_owner).map(str::to_owned).collect()
}

#[test]
fn a6_no_program_that_the_toolkit_starts_is_an_operator() {
    type Act = fn(&TestJobVault);
    let programs: &[(&str, Act)] = &[
        (
            "reviewers:\n  order: [gpt, own]\n  gpt:\n    command: 'TRY; echo PASS: ok'\n  own:\n    command: 'echo PASS: ok'\n",
            |story| {
                fs::write(story.dir().join("spec.md"), "Login").unwrap();
                ok(story, "hf-review run spec.md");
                assert_eq!(variables(story), ["HF_AGENT=gpt", "HF_RUN_ID=reviewers.gpt"]);
            },
        ),
        ("hooks:\n  on_done: TRY\n", |story| {
            story.fire("true");
            story.poll("T-0001");
            story.gone();
            assert_eq!(variables(story), ["HF_RUN_ID=hooks.on_done"]);
        }),
        ("watchdog:\n  hooks:\n    on_beat: TRY\n", |story| {
            ok(story, "hf-checkpoint Here --agent a");
            ok(story, "hf-watchdog");
            assert_eq!(variables(story), ["HF_RUN_ID=watchdog.hooks.on_beat"]);
        }),
        ("jobs:\n  on_finish: TRY\n", |story| {
            story.fire("true");
            story.poll("T-0001");
            story.gone();
            assert_eq!(variables(story), ["HF_RUN_ID=jobs.on_finish", "HF_TASK_ID=T-0001"]);
        }),
        ("jobs:\n  check_cmd: TRY\n", |story| {
            sh(story, "hf-poll job-7 1");
            assert_eq!(variables(story), ["HF_RUN_ID=jobs.check_cmd"]);
        }),
        ("", |story| {
            story.fire(&format!("sh {}/try", story.dir().display()));
            story.poll("T-0001");
            assert_eq!(variables(story).len(), 2);
        }),
    ];
    for (settings, act) in programs {
        let story = story(settings);
        act(&story);
        was_refused(&story);
    }
}

#[test]
fn a6_a_program_has_its_own_shell_and_not_that_of_the_agent_that_caused_it() {
    let story = story("hooks:\n  on_done: TRY\n");
    let session = ok(&story, "hf-session login --agent a").get("SESSION_ID").to_owned();
    let mut command = story.command("job");
    command.envs([("HF_AGENT", "a"), ("HF_SESSION", &session)]).args(["fire", "--", "true"]);
    Reply::of(command.output().unwrap()).expect_exit(0);
    story.poll("T-0001");
    story.gone();
    assert_eq!(variables(&story), ["HF_RUN_ID=hooks.on_done"]);
}

#[test]
fn a6_every_variable_of_a_program_makes_a_shell_that_is_no_operators() {
    let story = story("");
    for variable in ["HF_AGENT", "HF_SESSION", "HF_RUN_ID", "HF_TASK_ID"] {
        let mut command = story.command("decide");
        command.env(variable, "x").args(["approve", "DEC-0001"]);
        let reply = Reply::of(command.output().unwrap()).expect_exit(3);
        assert_eq!(reply.get("REASON"), "operator_only", "{variable}");
    }
    // An empty one says nothing.
    let mut command = story.command("decide");
    command.env("HF_RUN_ID", "").args(["approve", "DEC-0001"]);
    Reply::of(command.output().unwrap()).expect_exit(0);
}

/// Only these files start processes: a job, a program of the settings, the toolkit itself.
#[test]
fn a6_there_is_one_place_for_each_kind_of_process() {
    let mut found = Vec::new();
    let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(dir) = dirs.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => dirs.push(path),
                false if fs::read_to_string(&path).is_ok_and(|text| text.contains("Command::new(")) => found.push(path),
                false => {}
            }
        }
    }
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut names: Vec<String> = found.iter().map(name).filter(|name| name != "tests.rs").collect();
    names.sort();
    assert_eq!(names, ["ask.rs", "detach.rs", "run.rs"]);
}
