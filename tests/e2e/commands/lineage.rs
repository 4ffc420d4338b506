//! hf-lineage: causes and consequences, as lines and as pictures.

use std::fs;

use hiveforge::event::{Event, EventType, Kind};
use serde_json::{Value, json};

use crate::support::test_vault::{TestVault, forged, mask};

/// A requirement, a decision on it that came too early and one that counts, and a task whose run failed.
fn story() -> TestVault {
    let hive = TestVault::new();
    hive.append("RequirementProposed", "requirement:login", json!({"title": "Login"}));
    let asks = json!({"kind": "requirement_approval", "target": "requirement:login", "summary": "Build it?"});
    hive.append("DecisionRequested", "decision:d", asks);
    let decision = hive.analyzed("requirement:login");
    hive.append("DecisionApproved", &decision, json!({"rationale": "wanted"}));
    hive.append("TaskProposed", "task:api", json!({"title": "API", "requirement_id": "login"}));
    hive.started("task:api", "run:one");
    hive.append("RunFinished", "run:one", json!({"success": false, "summary": "no power"}));
    hive.append("TaskFailed", "task:api", json!({"error_class": "transient", "reason": "no power"}));
    hive
}

/// The ids of the story's events, in the order of the log.
fn ids(hive: &TestVault) -> Vec<String> {
    hive.events().iter().map(|event| event["event_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn one_command_says_why_a_task_exists() {
    let hive = story();
    let reply = hive.run("lineage", &["T-0001", "--up"]).expect_exit(0);
    assert_eq!(
        reply.masked(&hive),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:12 events, 12 links\nROOT:<ulid>\nCOUNT:12\nTRUNCATED:no\n\
         NODE:-9 <ulid> 2026-01-31T12:00:00Z RequirementProposed requirement:login user:jo Login\n\
         NODE:-8 <ulid> 2026-01-31T12:00:00Z RequirementAnalyzed requirement:login user:jo\n\
         NODE:-9 <ulid> 2026-01-31T12:00:00Z DecisionRequested decision:<ulid> core:reactor Build REQ-0001, Login?\n\
         NODE:-8 <ulid> 2026-01-31T12:00:00Z DecisionApproved decision:<ulid> user:jo wanted\n\
         NODE:-7 <ulid> 2026-01-31T12:00:00Z RequirementApproved requirement:login core:reactor\n\
         NODE:-6 <ulid> 2026-01-31T12:00:00Z TaskProposed task:api user:jo API\n\
         NODE:-5 <ulid> 2026-01-31T12:00:00Z TaskReady task:api core:reactor\n\
         NODE:-4 <ulid> 2026-01-31T12:00:00Z TaskAssigned task:api user:jo\n\
         NODE:-3 <ulid> 2026-01-31T12:00:00Z RunStarted run:one user:jo\n\
         NODE:-2 <ulid> 2026-01-31T12:00:00Z TaskFailed task:api user:jo transient: no power\n\
         NODE:-1 <ulid> 2026-01-31T12:00:00Z TaskRetrying task:api core:reactor attempt 1 of 3\n\
         NODE:0 <ulid> 2026-01-31T12:00:00Z TaskAssigned task:api core:reactor\n"
            .to_owned()
            + &"EDGE:<ulid> <ulid>\n".repeat(12)
    );
    let ids = ids(&hive);
    assert_eq!(reply.get("ROOT"), ids[15]);
    // The approval of the requirement continues its analysis, and follows from the decision.
    let links =
        [(1, 3), (3, 5), (5, 6), (3, 7), (6, 7), (7, 8), (8, 9), (9, 10), (10, 11), (11, 13), (13, 14), (14, 15)];
    let edges: Vec<String> = links.iter().map(|(cause, event)| format!("{} {}", ids[*cause], ids[*event])).collect();
    assert_eq!(reply.all("EDGE"), edges);
    assert_eq!(reply.stderr, "");
}

#[test]
fn consequences_of_a_requirement_begin_at_its_first_event() {
    let hive = story();
    let reply = hive.run("lineage", &["REQ-0001", "--down"]).expect_exit(0);
    let steps: Vec<&str> = reply.all("NODE").iter().map(|node| node.split(' ').next().unwrap()).collect();
    assert_eq!(steps, ["0", "1", "1", "2", "2", "3", "2", "3", "4", "5", "6", "7", "7", "8", "9"]);
    assert_eq!((reply.get("ROOT"), reply.get("TRUNCATED")), (ids(&hive)[1].as_str(), "no"));
    // Without a direction it is both.
    let both = hive.run("lineage", &["task:api"]).expect_exit(0);
    let steps: Vec<&str> = both.all("NODE").iter().map(|node| node.split(' ').next().unwrap()).collect();
    assert_eq!(steps, ["-3", "-2", "-3", "-2", "-1", "0", "1", "2", "3", "4", "4", "5", "6"]);
    assert_eq!(both.all("EDGE").len(), 13);
}

#[test]
fn events_and_entities_are_found_by_every_kind_of_reference() {
    let hive = story();
    let ids = ids(&hive);
    let tagged = hive.run("project", &["tasks"]).expect_exit(0).get("ENTITY").split(' ').nth(1).unwrap().to_owned();
    // Events of one batch differ in their last characters only; the run was begun by itself.
    let unique = (4..26).find(|&n| ids.iter().filter(|id| id.starts_with(&ids[11][..n])).count() == 1).unwrap();
    for (reference, root) in [
        (ids[8].as_str(), &ids[8]),
        ("T-0001", &ids[8]),
        ("t-0001", &ids[8]),
        (&tagged, &ids[8]),
        ("task:api", &ids[8]),
        ("api", &ids[8]),
        (&ids[11][..unique], &ids[11]),
    ] {
        let reply = hive.run("lineage", &[reference, "--down"]).expect_exit(0);
        assert_eq!(reply.get("ROOT"), root, "{reference}");
    }
    assert_eq!(hive.run("lineage", &["system", "--up"]).expect_exit(0).get("ROOT"), ids[0]);
    for unknown in ["T-0002", "T-0001@0000", "task:x", "nothing", "01ZZZZZZZZZZZZZZZZZZZZZZZZ", "01", ""] {
        let reply = hive.refuses("lineage", &[unknown], 6);
        assert_eq!(reply.get("STATUS"), "NOT_FOUND", "{unknown}");
    }
    hive.refuses("lineage", &["planet:mars"], 2);
    hive.refuses("lineage", &["T-0001", "--up", "--down"], 2);
    hive.refuses("lineage", &["T-0001", "--dot", "--mermaid"], 2);
}

#[test]
fn a_truncated_graph_says_so() {
    let hive = story();
    for (depth, count, truncated) in
        [("0", "1", "yes"), ("1", "3", "yes"), ("4", "9", "yes"), ("8", "14", "yes"), ("9", "15", "no")]
    {
        let reply = hive.run("lineage", &["REQ-0001", "--down", "--depth", depth]).expect_exit(0);
        assert_eq!((reply.get("COUNT"), reply.get("TRUNCATED")), (count, truncated), "{depth}");
    }
    let reply = hive.run("lineage", &["T-0001", "--up", "--depth", "2"]).expect_exit(0);
    assert_eq!((reply.get("COUNT"), reply.get("TRUNCATED")), ("3", "yes"));
    let tree = hive.run("lineage", &["T-0001", "--up", "--depth", "2", "--tree"]);
    assert!(tree.stdout.ends_with("… more events left out; use a greater --depth\n"), "{tree:#?}");
}

#[test]
fn graphs_are_truncated_at_a_thousand_events() {
    let hive = TestVault::new();
    let line = |n| json!({"event_type": "TaskProposed", "subject": format!("task:t{n}"), "payload": {"title": "x"}});
    hive.batch(&(0..1100).map(line).collect::<Vec<Value>>());
    let reply = hive.run("lineage", &["system", "--down"]).expect_exit(0);
    assert_eq!((reply.get("COUNT"), reply.get("TRUNCATED")), ("1000", "yes"));
    assert_eq!(reply.all("EDGE").len(), 999);
}

const TREE: &str = "TaskProposed task:api  API  (user:jo, 2026-01-31T12:00:00Z)\n\
└─ because of RequirementApproved requirement:login  (core:reactor, 2026-01-31T12:00:00Z)\n   \
   ├─ because of RequirementAnalyzed requirement:login  (user:jo, 2026-01-31T12:00:00Z)\n   \
   │  └─ because of RequirementProposed requirement:login  Login  (user:jo, 2026-01-31T12:00:00Z)\n   \
   └─ because of DecisionApproved decision:<ulid>  wanted  (user:jo, 2026-01-31T12:00:00Z)\n      \
      └─ because of DecisionRequested decision:<ulid>  Build REQ-0001, Login?  (core:reactor, 2026-01-31T12:00:00Z)\n         \
         └─ because of RequirementAnalyzed requirement:login  (user:jo, 2026-01-31T12:00:00Z)  (see above)\n\
└─ led to TaskReady task:api  (core:reactor, 2026-01-31T12:00:00Z)\n   \
   └─ led to TaskAssigned task:api  (user:jo, 2026-01-31T12:00:00Z)\n      \
      └─ led to RunStarted run:one  (user:jo, 2026-01-31T12:00:00Z)\n         \
         ├─ led to RunFinished run:one  no power  (user:jo, 2026-01-31T12:00:00Z)\n         \
         └─ led to TaskFailed task:api  transient: no power  (user:jo, 2026-01-31T12:00:00Z)\n            \
            └─ led to TaskRetrying task:api  attempt 1 of 3  (core:reactor, 2026-01-31T12:00:00Z)\n               \
               └─ led to TaskAssigned task:api  (core:reactor, 2026-01-31T12:00:00Z)\n";

#[test]
fn a_tree_is_a_document_and_the_report_goes_to_standard_error() {
    let hive = story();
    let reply = hive.run("lineage", &["T-0001", "--tree"]);
    assert_eq!((reply.code, mask(&reply.stdout).as_str()), (Some(0), TREE));
    assert_eq!(
        mask(&reply.stderr),
        "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:13 events, 13 links\nROOT:<ulid>\nCOUNT:13\nTRUNCATED:no\n"
    );
}

#[test]
fn a_graph_written_to_a_file_leaves_stdout_to_the_report() {
    let hive = story();
    for (picture, begins) in [
        (&[][..], "TaskProposed task:api"),
        (&["--tree"], "TaskProposed"),
        (&["--dot"], "digraph"),
        (&["--mermaid"], "flowchart"),
    ] {
        let args = [&["T-0001", "--out", "graph.txt"], picture].concat();
        let reply = hive.run("lineage", &args).expect_exit(0);
        assert_eq!(
            reply.masked(&hive),
            "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:13 events, 13 links\nROOT:<ulid>\nCOUNT:13\nTRUNCATED:no\nPATH:graph.txt\n"
        );
        assert!(fs::read_to_string(hive.dir().join("graph.txt")).unwrap().starts_with(begins), "{picture:?}");
    }
    hive.run("lineage", &["T-0001", "--out", "no/such/folder"]).expect_exit(111);
}

#[test]
fn the_graph_is_available_as_json() {
    let hive = story();
    let reply = hive.run("lineage", &["T-0001", "--json"]);
    let value: Value = serde_json::from_str(&reply.stdout).unwrap();
    assert_eq!((&value["schema"], &value["exit"], &value["truncated"]), (&json!(2), &json!(0), &json!(false)));
    assert_eq!(value["nodes"].as_array().unwrap().len(), 13);
    assert_eq!(value["edges"].as_array().unwrap().len(), 13);
    // The two lists are every other node, each on its side.
    let ids = |name: &str| value[name].as_array().unwrap().clone();
    assert_eq!(ids("ancestors").len() + ids("descendants").len(), 12);
    for node in value["nodes"].as_array().unwrap() {
        let side = match node["distance"].as_i64().unwrap() {
            0 => continue,
            distance if distance < 0 => "ancestors",
            _ => "descendants",
        };
        assert!(ids(side).contains(&node["event_id"]), "{node}");
    }
}

/// Texts that mean something to Graphviz, Mermaid, HTML, a terminal or a reply.
const HOSTILE: &[&str] = &[
    r#"say "hello""#,
    r#"ends in a backslash \"#,
    r#"\" ]; evil [label="x"#,
    "two\nlines\r\nand\ttabs",
    "a] --> b[c",
    "<b>bold</b><script>alert(1)</script>&amp;",
    "#quot; %%{init: {}}%% `md` ; end | (x) {y}",
    "\u{1b}[31mred\u{202e}back",
    "EXIT:0",
];

fn hostile() -> TestVault {
    let hive = TestVault::new();
    hive.append("RequirementProposed", "requirement:root", json!({"title": "root"}));
    for title in HOSTILE {
        let payload = json!({"title": title}).to_string();
        hive.run("append", &["RequirementProposed", "--parent", "requirement:root", "--payload", &payload])
            .expect_exit(0);
    }
    hive
}

type Pairs = Vec<(String, String)>;

/// Reads a graph as Graphviz does, as far as it goes here: statements of quoted strings, an arrow,
/// attributes. Gives (nodes with labels, edges).
fn read_dot(text: &str) -> (Pairs, Pairs) {
    let body = text.strip_prefix("digraph lineage {\n").and_then(|rest| rest.strip_suffix("}\n")).expect("one graph");
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for statement in body.lines().skip(2) {
        let (id, rest) = quoted(statement.trim_start());
        if let Some(rest) = rest.strip_prefix(" -> ") {
            let (to, rest) = quoted(rest);
            assert_eq!(rest, ";", "{statement}");
            edges.push((id, to));
        } else {
            let (label, rest) = quoted(rest.strip_prefix(" [label=").expect("a label"));
            assert!(["];", ", style=bold];"].contains(&rest), "{statement}");
            nodes.push((id, label));
        }
    }
    (nodes, edges)
}

/// A quoted string at the beginning, and what follows it. Graphviz leaves backslashes to the label.
fn quoted(text: &str) -> (String, &str) {
    let inner = text.strip_prefix('"').unwrap_or_else(|| panic!("no quote: {text}"));
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return (inner[..at].replace("\\\"", "\""), &inner[at + 1..]),
            _ => {}
        }
    }
    panic!("a string without end: {text}")
}

#[test]
fn a_graph_for_graphviz_can_be_read_whatever_the_titles_say() {
    let hive = hostile();
    let reply = hive.run("lineage", &["REQ-0001", "--down", "--dot"]);
    let (nodes, edges) = read_dot(&reply.stdout);
    assert_eq!((nodes.len(), edges.len()), (HOSTILE.len() + 1, HOSTILE.len()));
    assert!(edges.iter().all(|(cause, _)| *cause == nodes[0].0));
    assert!(nodes[0].1.ends_with("\\nroot"));
    assert!(nodes[1].1.ends_with(r#"\nsay "hello""#), "{nodes:#?}");
    assert!(nodes[4].1.ends_with(r"\ntwo\\nlines\\r\\nand\\ttabs"), "{nodes:#?}");
    // One line more for each node and edge, five around them, and no control character.
    assert_eq!(reply.stdout.lines().count(), 4 + 2 * HOSTILE.len() + 1);
    assert!(!reply.stdout.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')));
    if let Ok(mut dot) = std::process::Command::new("dot")
        .arg("-Tsvg")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
    {
        std::io::Write::write_all(&mut dot.stdin.take().unwrap(), reply.stdout.as_bytes()).unwrap();
        assert!(dot.wait().unwrap().success());
    }
}

/// Fails unless this is a Mermaid graph of one line for each node and each link.
#[track_caller]
fn check_mermaid(text: &str, count: usize) {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("flowchart TD"));
    for line in lines.by_ref().take(count) {
        let (id, label) = line.split_once("[\"").expect("a node");
        let label = label.strip_suffix("\"]").expect("the end of a node");
        assert_eq!(mask(id), "  <ulid>");
        let text = label.replacen("<br/>", "", 1);
        assert!(!text.contains(['"', '<', '>', '[', ']', '{', '}', '(', ')', '`', '\\', '|']), "{line}");
        // Every # begins a code, every & and ; is one.
        for part in text.split('#').skip(1) {
            let (code, _) = part.split_once(';').expect("a whole code");
            assert!(code.parse::<u32>().is_ok(), "{line}");
        }
    }
    for line in lines.by_ref().take(count - 1) {
        assert_eq!(mask(line), "  <ulid> --> <ulid>");
    }
    assert_eq!(lines.map(mask).collect::<Vec<_>>(), ["  style <ulid> stroke-width:3px"]);
}

#[test]
fn a_graph_for_mermaid_has_one_line_for_each_node_whatever_the_titles_say() {
    let hive = hostile();
    let reply = hive.run("lineage", &["REQ-0001", "--down", "--mermaid"]);
    check_mermaid(&reply.stdout, HOSTILE.len() + 1);
    assert!(reply.stdout.contains("say #34;hello#34;\"]"), "{}", reply.stdout);
}

#[test]
fn a_tree_has_one_line_for_each_event_whatever_the_titles_say() {
    let hive = hostile();
    let reply = hive.run("lineage", &["REQ-0001", "--down", "--tree"]);
    assert_eq!(reply.stdout.lines().count(), HOSTILE.len() + 1);
    assert!(!reply.stdout.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}')));
}

#[test]
fn graphs_of_a_forged_log_keep_their_lines_intact() {
    let hive = TestVault::new();
    let mut events = hive.recorded();
    let strange = Event {
        event_type: EventType::Unknown("Evil\"]\n  x --> y\u{1b}[31m".to_owned()),
        subject: "planet:\"mars\"\n\u{202e}".to_owned(),
        actor: "user:jo\nEXIT:0".to_owned(),
        parents: vec![events[0].id],
        ..forged(1, Kind::RequirementProposed, "requirement:r", json!({"title": "x"}))
    };
    events.push(strange);
    hive.forge(&mut events);
    let plain = |text: &str| !text.contains(|c: char| c != '\n' && (c.is_control() || c == '\u{202e}'));
    let tree = hive.run("lineage", &["system", "--tree"]).stdout;
    assert!(tree.lines().count() == 2 && plain(&tree), "{tree}");
    let dot = hive.run("lineage", &["system", "--dot"]).stdout;
    assert!(plain(&dot), "{dot}");
    assert_eq!(read_dot(&dot).0.len(), 2);
    let mermaid = hive.run("lineage", &["system", "--mermaid"]).stdout;
    assert!(plain(&mermaid), "{mermaid}");
    check_mermaid(&mermaid, 2);
    let lines = hive.run("lineage", &["system"]).expect_exit(0);
    assert!(lines.all("NODE").len() == 2 && plain(&lines.stdout), "{lines:#?}");
}

#[test]
fn an_event_with_two_causes_is_printed_once_and_referred_to_later() {
    let hive = TestVault::new();
    let propose = |id: &str, parents: &[&str]| {
        let subject = format!("requirement:{id}");
        let args = ["RequirementProposed", "--subject", &subject, "--payload", r#"{"title":"x"}"#];
        hive.run("append", &[&args, parents].concat()).expect_exit(0);
    };
    propose("a", &[]);
    propose("b", &["--parent", "requirement:a"]);
    propose("c", &["--parent", "requirement:a"]);
    propose("d", &["--parent", "requirement:b", "--parent", "requirement:c"]);
    let reply = hive.run("lineage", &["requirement:a", "--down"]).expect_exit(0);
    assert_eq!((reply.all("NODE").len(), reply.all("EDGE").len()), (4, 4));
    let tree = hive.run("lineage", &["requirement:a", "--down", "--tree"]).stdout;
    assert_eq!((tree.lines().count(), tree.matches("(see above)").count()), (5, 1), "{tree}");
}
