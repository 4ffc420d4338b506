//! The four questions of an audit (seed 004, §12.1), each answered by one command for every task of a vault in which
//! work waited, was retried, reworked, rejected, superseded, stopped and lost.
//!
//! | question | command | in the reply |
//! |---|---|---|
//! | why was this task made? | `hf-lineage T --up` | above its TaskProposed, the requirement and the decisions |
//! | why was it given priority? | `hf-lineage T --up` | above its TaskAssigned, ConstraintApplied and its approval |
//! | what failed where? | `hf-log --type TaskFailed` | error_class and reason; a parent is the run |
//! | why was it retried or aborted? | `hf-log --subject T` | TaskRetrying after its failure, TaskAborted |
//!
//! `hf-task explain T` answers the second and the last question in words; of several failures it names the last.
//! `hf-log show` gives each of these events in full.
//!
//! The oracle is [`oracle::Log`]: it reads the files of the log as JSON and uses nothing of the library. It finds causes in two
//! ways: by `parents`, as the commands do, and by what the events say (`requirement_id`, `after`, `rework_of`,
//! `target`), which shows a parent that is missing or wrong.

mod life;
mod oracle;

use std::collections::BTreeSet;

use serde_json::Value;

use self::life::{Life, rich_life};
use self::oracle::{Answer, Log, PUT_FIRST, counted, is_kind, row, said, text};
use crate::support::session_fixture::logged_in;
use crate::support::steps::{governed, ok};

/// Asks a question about every task of the log. Returns what the answers lack and what they have too much.
#[track_caller]
fn ask(life: &Life, log: &Log, ask: impl Fn(&Value, &str) -> Vec<String>) -> Vec<String> {
    let mut differences = Vec::new();
    for proposed in log.tasks() {
        let name = log.name(text(proposed, "subject"));
        let title = life.title(name);
        differences.extend(ask(proposed, name).into_iter().map(|what| format!("{title}: {what}")));
    }
    differences
}

/// What `hf-task explain` says and should not, and the other way round.
fn compared(lines: &[&str], expected: &[String]) -> Vec<String> {
    let missing =
        expected.iter().filter(|line| !lines.contains(&line.as_str())).map(|line| format!("not said: {line}"));
    let extra = lines.iter().filter(|line| !expected.iter().any(|e| e == *line)).map(|line| format!("said: {line}"));
    let found: Vec<String> = missing.chain(extra).collect();
    assert!(!found.is_empty() || lines == expected, "another order, or a line twice: {lines:#?}");
    found
}

/// Asserts that `hf-log` with these options gives exactly these events, in text and in JSON.
#[track_caller]
fn gives(life: &Life, options: &[&str], expected: &[&Value]) {
    let options = [options, &["--limit", "500"]].concat();
    let reply = life.story.run("log", &options).expect_exit(0);
    let lines: String = expected.iter().map(|event| format!("EVENT:{}\n", row(event))).collect();
    let (count, sum) = (expected.len(), counted(expected.len(), "event", "events"));
    let whole = format!("EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:{sum}\nCOUNT:{count}\nHAS_MORE:no\n{lines}");
    assert_eq!(reply.stdout, whole, "{options:?}");
    let reply = life.story.run("log", &[&options[..], &["--json"]].concat());
    let reply: Value = serde_json::from_str(&reply.stdout).unwrap_or_else(|e| panic!("{e}: {reply:#?}"));
    let events: Vec<&Value> = reply["events"].as_array().expect("a list").iter().collect();
    assert_eq!(events, expected, "{options:?}");
}

/// Asserts that `hf-log show` gives every member of an event, and nothing else.
#[track_caller]
fn shows(life: &Life, event: &Value) {
    let reply = ok(&life.story, &format!("hf-log show {}", text(event, "event_id")));
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut members: BTreeSet<String> =
        ["event_id", "event_type", "version", "timestamp", "actor", "subject", "prev_hash", "hash"]
            .map(|member| format!("{member} {}", plain(&event[member])))
            .into();
    members.extend(event["idempotency_key"].as_str().map(|key| format!("idempotency_key {key}")));
    members.extend(event["batch"].as_object().map(|batch| format!("batch {} of {}", batch["no"], batch["of"])));
    members.extend(event["parents"].as_array().expect("a list").iter().map(|id| format!("parent {}", plain(id))));
    let payload = event["payload"].as_object().expect("an object").iter();
    members.extend(payload.map(|(name, value)| format!("payload.{name} {}", plain(value))));
    let shown: BTreeSet<String> = reply.all("FACT").into_iter().map(str::to_owned).collect();
    assert_eq!(shown, members);
}

#[test]
fn one_command_says_why_a_task_was_made() {
    let life = rich_life();
    let log = life.log();
    let differences = ask(&life, &log, |proposed, name| {
        let task = text(proposed, "subject");
        let reply = ok(&life.story, &format!("hf-lineage {name} --up"));
        assert_eq!(reply.stdout, log.lineage(task), "{name}");
        let answer = Answer::of(&reply);
        let own = said(proposed, "requirement_id").map(|id| format!("requirement:{id}"));
        assert_eq!(answer.requirement(task), own.as_deref(), "{name}: {}", reply.stdout);
        let reasons = log.reasons(proposed).into_iter();
        let missing = reasons.filter(|reason| !answer.nodes.contains_key(text(reason, "event_id")));
        let missing: BTreeSet<String> = missing.map(|reason| format!("{} is missing", log.spoken(reason))).collect();
        let relatives = log.relatives(task);
        let is_foreign = |subject: &&String| log.names.contains_key(*subject) && !relatives.contains(*subject);
        let foreign = answer.nodes.values().map(|[_, subject, _]| subject).filter(is_foreign);
        let foreign: BTreeSet<String> =
            foreign.map(|subject| format!("{} has nothing to do with it", log.name(subject))).collect();
        missing.into_iter().chain(foreign).collect()
    });
    assert_eq!(differences, [""; 0]);
    life.story.over();
}

#[test]
fn one_command_says_why_a_task_was_given_priority() {
    let life = rich_life();
    let log = life.log();
    let differences = ask(&life, &log, |proposed, name| {
        let task = text(proposed, "subject");
        let answer = Answer::of(&ok(&life.story, &format!("hf-lineage {name} --up")));
        // The constraints, and who approved them.
        let mut found = Vec::new();
        for [cause, event] in &answer.edges {
            let ([kind, constraint, _], [_, subject, _]) = (&answer.nodes[cause], &answer.nodes[event]);
            if kind == "ConstraintApplied" && subject == task {
                let approvals: Vec<String> = answer.above(cause).map(|id| answer.nodes[id].join(" ")).collect();
                found.push((constraint.clone(), approvals));
            }
        }
        let approved = |constraint: String| {
            let applied = log.about("ConstraintApplied", &constraint).next().expect("it was applied");
            let approval = log.approval(&constraint, log.place(text(applied, "event_id"))).expect("it was approved");
            let words = ["event_type", "subject", "actor"].map(|member| text(approval, member));
            (constraint, vec![words.join(" ")])
        };
        assert_eq!(found, log.put_first(task).into_iter().map(approved).collect::<Vec<_>>(), "{name}");
        // In words.
        let reply = ok(&life.story, &format!("hf-task explain {name}"));
        let lines: Vec<&str> = reply.all("BECAUSE").into_iter().filter(|line| line.contains(PUT_FIRST)).collect();
        compared(&lines, &log.preferred(task))
    });
    let put_first = ask(&life, &log, |proposed, _| log.preferred(text(proposed, "subject")));
    assert_eq!(
        put_first,
        [
            "Second: CON-0001 put it first: Second things first",
            "Third: CON-0002 put it first: Third before the rest",
            "Tool again: CON-0003 put it first: Small things first",
        ]
    );
    assert_eq!(differences, [""; 0]);
    life.story.over();
}

#[test]
fn one_command_says_what_failed_where() {
    let life = rich_life();
    let log = life.log();
    let failures: Vec<&Value> = log.of_kind("TaskFailed").collect();
    gives(&life, &["--type", "TaskFailed"], &failures);
    let mut told = Vec::new();
    for failure in &failures {
        let task = text(failure, "subject");
        let [class, reason] = ["error_class", "reason"].map(|member| said(failure, member).expect("a text"));
        told.push(format!("{}: {class}: {reason}", life.title(log.name(task))));
        // Where: in the run that was going on, which is a cause of the failure.
        let before = &log.events[..log.place(text(failure, "event_id"))];
        let is_run =
            |event: &&Value| is_kind(event, "RunStarted") && said(event, "task_id") == task.strip_prefix("task:");
        let run = text(before.iter().rfind(is_run).expect("a run"), "subject");
        assert!(log.parents(failure).iter().any(|cause| cause["subject"] == run), "{failure:#}");
        shows(&life, failure);
    }
    assert_eq!(
        told,
        [
            "Form: transient: network",
            "Form: transient: over quota",
            "Flaky: transient: no name server",
            "Flaky: transient: no route",
            "Flaky: transient: still no route",
            "Auth: permanent: wrong password",
            "Search: transient: timeout",
            "Draft: permanent: rework: no tests",
            "Crawl: transient: connection reset",
            "Second: transient: disk full",
            "job that fails: permanent: exit code 3",
            "job that is killed: transient: signal 9",
            "job that is killed: transient: signal 9",
            "job that is lost: transient: lost",
        ]
    );
    for proposed in log.tasks() {
        let task = text(proposed, "subject");
        let own: Vec<&Value> = log.about("TaskFailed", task).collect();
        gives(&life, &["--type", "TaskFailed", "--subject", log.name(task)], &own);
    }
    life.story.over();
}

#[test]
fn one_command_says_why_a_task_was_retried_or_aborted() {
    let life = rich_life();
    let log = life.log();
    let differences = ask(&life, &log, |proposed, name| {
        let task = text(proposed, "subject");
        let own: Vec<&Value> = log.events.iter().filter(|event| event["subject"] == task).collect();
        gives(&life, &["--subject", name], &own);
        for (n, retry) in log.about("TaskRetrying", task).enumerate() {
            assert_eq!(retry["payload"]["attempt"], n + 1, "{retry:#}");
            // Its only cause is a failure in the same answer.
            let [failure] = log.parents(retry).try_into().expect("one cause");
            assert!(own.contains(&failure) && is_kind(failure, "TaskFailed"), "{retry:#}");
            assert_eq!(said(failure, "error_class"), Some("transient"));
            shows(&life, retry);
        }
        let mut differences = Vec::new();
        for aborted in log.about("TaskAborted", task) {
            shows(&life, aborted);
            let (reason, grounds) = (said(aborted, "reason").expect("a reason"), log.grounds(aborted));
            if reason != grounds {
                differences.push(format!("recorded: {reason}"));
            }
        }
        // In words.
        let reply = ok(&life.story, &format!("hf-task explain {name}"));
        let state = log.state(task);
        assert_eq!(reply.get("SUM"), format!("{name} is {state}: {}", said(proposed, "title").expect("a title")));
        let matters = |line: &&str| {
            let words = [" was aborted at ", " failed (", " repeats "];
            let is_ended = matches!(state, "Succeeded" | "Aborted") && !line.contains(PUT_FIRST);
            is_ended || words.iter().any(|words| line.contains(words))
        };
        let lines: Vec<&str> = reply.all("BECAUSE").into_iter().filter(matters).collect();
        differences.extend(compared(&lines, &log.explained(task)));
        differences
    });
    let aborted = ask(&life, &log, |proposed, _| {
        log.about("TaskAborted", text(proposed, "subject")).map(|aborted| log.grounds(aborted)).collect()
    });
    assert_eq!(
        aborted,
        [
            "Cart: REQ-0003 was rejected: no money",
            "Checkout: T-0003, which it depends on, was aborted: REQ-0003 was rejected: no money",
            "Legacy: REQ-0004 was superseded by REQ-0001",
            "Import: REQ-0004 was superseded by REQ-0001",
            "Flaky: still no route; gave up after 2 retries",
            "Auth: wrong password",
            "Draft: rework: no tests",
            "Crawl: emergency_stop: it hurts others",
            "Feed: emergency_stop: it hurts others",
            "Reader: T-0019, the rework of T-0016, which it depends on, was aborted: nobody subscribes",
            "Feed again: nobody subscribes",
            "Wipe: DEC-0009 was rejected by user:jo: too dangerous",
            "Banner: nobody reads banners",
            "Slogan: T-0026, which it depends on, was aborted: nobody reads banners",
            "Print: T-0027, which it depends on, was aborted: T-0026, which it depends on, was aborted: nobody reads \
             banners",
            "job that fails: exit code 3",
            "job that is killed: signal 9; gave up after 1 retry",
            "job that is lost: lost",
            "job that is cancelled: cancelled",
        ]
    );
    assert_eq!(differences, [""; 0]);
    life.story.over();
}

/// The same question where tasks are assigned automatically.
#[test]
fn a_task_that_was_assigned_because_of_its_priority_says_so() {
    let hive = governed("auto_assign: true");
    ok(&hive, "hf-task propose First");
    ok(&hive, "hf-task propose Second");
    hive.run("constraint", &["apply", "Second things first", "--priority", "T-0002"]).expect_exit(0);
    ok(&hive, "hf-decide approve DEC-0001");
    logged_in(&hive, "a", "main");
    logged_in(&hive, "b", "main");
    let log = Log::read(&hive.vault());
    for (name, expected) in [("T-0001", vec![]), ("T-0002", vec!["CON-0001 put it first: Second things first"])] {
        let reply = ok(&hive, &format!("hf-lineage {name} --up"));
        let task = log.names.iter().find(|(_, known)| *known == name).expect("a task").0;
        assert_eq!(reply.stdout, log.lineage(task));
        let constraints = reply.all("NODE").into_iter().filter(|node| node.contains(" ConstraintApplied ")).count();
        assert_eq!(
            (log.preferred(task), constraints),
            (expected.iter().map(ToString::to_string).collect(), expected.len())
        );
        let reply = ok(&hive, &format!("hf-task explain {name}"));
        let lines: Vec<&str> = reply.all("BECAUSE").into_iter().filter(|line| line.contains(PUT_FIRST)).collect();
        assert_eq!(lines, expected);
    }
}
