//! hf-task archive: a task that has ended leaves the lists, and is still found.

use serde_json::json;

use crate::support::session_fixture::within;
use crate::support::steps::{approved, count, held, keeps_the_rules, ok, refuses, running, state};
use crate::support::test_vault::TestVault;

/// T20: archiving has a command; it is an operator's, and for tasks that have ended.
#[test]
fn t20_an_operator_archives_a_task_that_has_ended() {
    let hive = TestVault::new();
    running(&hive, "agent:a");
    let allowed = "T-0001 is Running (held by agent:a), which does not allow TaskArchived; allowed: ";
    refuses(&hive, "hf-task archive T-0001", 3, allowed);
    ok(&hive, "hf-task succeed T-0001 --actor agent:a");
    for (variables, line) in [
        (&[][..], "hf-task archive T-0001 --actor agent:a"),
        (&[("HF_AGENT", "a")], "hf-task archive T-0001"),
        (&[("HF_TASK_ID", "x")], "hf-task archive T-0001 --actor agent:a"),
    ] {
        let reply = within(&hive, variables, line).expect_exit(3);
        assert_eq!((reply.get("REASON"), reply.get("NEXT")), ("operator_only", "ASK operator"), "{line}");
    }
    assert_eq!(count(&hive, "TaskArchived"), 0);
    assert_eq!(
        ok(&hive, "hf-task archive T-0001").masked(&hive),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:T-0001 is Archived: Form\nEVENT_ID:<ulid>\nSUBJECT:task:<ulid>\n\
         REF:T-0001@<tag>\nSTATE:Archived\n"
    );
    assert_eq!(ok(&hive, "hf-task archive T-0001").get("STATUS"), "DUPLICATE");
    // It is out of the lists, and still shown, with its run.
    assert_eq!(ok(&hive, "hf-task list").get("COUNT"), "0");
    let shown = ok(&hive, "hf-task show T-0001");
    assert_eq!((shown.get("STATE"), shown.get("SUM")), ("Archived", "T-0001 is Archived: Form"));
    assert!(shown.all("ENTITY").iter().any(|entity| entity.starts_with("run:")), "{shown:#?}");
    // An aborted one, too.
    ok(&hive, "hf-task propose Other");
    ok(&hive, "hf-task abort T-0002 --reason No");
    ok(&hive, "hf-task archive T-0002");
    assert_eq!(state(&hive, "T-0002"), "Archived");
    refuses(&hive, "hf-task archive T-0009", 6, "not found");
    keeps_the_rules(&hive);
}

/// T20: archived tasks can be listed, page by page, from the index as from the log alone.
#[test]
fn t20_archived_tasks_are_listed_oldest_first() {
    let hive = TestVault::new();
    assert_eq!(ok(&hive, "hf-task list --status Archived").get("COUNT"), "0");
    // Ids that sort in another order than the tasks were made.
    for (n, name) in ["z", "m", "a", "k", "b"].into_iter().enumerate() {
        hive.append("TaskProposed", &format!("task:{name}"), json!({"title": name}));
        if n != 3 {
            hive.append("TaskAborted", &format!("task:{name}"), json!({}));
            ok(&hive, &format!("hf-task archive {name}"));
        }
    }
    for rebuilt in [false, true] {
        if rebuilt {
            ok(&hive, "hf-project --rebuild");
        }
        let titles = |reply: &crate::support::test_vault::Reply| -> Vec<String> {
            reply.all("ENTITY").iter().map(|entity| entity.split(' ').nth(3).unwrap().to_owned()).collect()
        };
        let first = ok(&hive, "hf-task list --status Archived --limit 3");
        assert_eq!((titles(&first), first.get("HAS_MORE")), (["z", "m", "a"].map(str::to_owned).to_vec(), "yes"));
        assert_eq!(first.get("NEXT"), "ACTION hf-task list --limit 3 --status Archived --cursor a");
        let second = hive.run_next(&first).expect_exit(0);
        assert_eq!((titles(&second), second.get("HAS_MORE")), (vec!["b".to_owned()], "no"));
        assert_eq!(titles(&ok(&hive, "hf-task list")), ["k"]);
    }
    refuses(&hive, "hf-task list --status Archived --cursor nobody", 2, "unknown cursor");
    keeps_the_rules(&hive);
}

#[test]
fn archived_tasks_of_one_requirement_are_listed() {
    let hive = TestVault::new();
    approved(&hive);
    held(&hive, "agent:a");
    for title in ["One", "Two"] {
        ok(&hive, &format!("hf-task propose {title} --requirement REQ-0001"));
    }
    for task in ["T-0001", "T-0002"] {
        ok(&hive, &format!("hf-task abort {task} --reason No"));
        ok(&hive, &format!("hf-task archive {task}"));
    }
    let reply = ok(&hive, "hf-task list --status Archived --requirement REQ-0001");
    assert_eq!((reply.get("COUNT"), reply.get("ENTITY").rsplit(' ').next()), ("1", Some("One")));
    assert_eq!(ok(&hive, "hf-task list --requirement REQ-0001").get("COUNT"), "1");
    keeps_the_rules(&hive);
}
