//! A8: an attacker who runs as the same user, with the commands and with raw lines that are hashed as a writer would,
//! against a vault as `hf-init` makes it, one with adopted settings, and one with operator keys. What an unkeyed vault
//! cannot prevent is printed as such, never as OK.

use std::fs;

use serde_json::{Map, Value, json};

use super::tampered::forge::{Log, answer, attackers_key, event, reference, signed_by, text};
use crate::support::keyed_vault::keyed_with;
use crate::support::operator_keys::make_key;
use crate::support::steps::{count, ok, sh, state};
use crate::support::test_vault::{Reply, TestVault, write_private};

/// How far the operators of a vault have come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Regime {
    Recorded,
    Adopted,
    Keyed,
}

/// What an attack comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// It is refused, or achieves nothing, and the log is as good as before.
    Prevented,
    /// It achieves what it wants, as SECURITY.md says, and hf-verify does not pretend that somebody signed it.
    Possible,
    /// The attacker's own key is the operators' from now on: only a list from outside can tell.
    Usurped,
    /// It is in the log, hf-verify finds it, and no writer goes on after it.
    Noticed,
    /// It changes nothing, and operators are told about it.
    Named,
}

use Outcome::{Named, Noticed, Possible, Prevented, Usurped};

/// An attack, what it comes to in each of the three vaults, how it is made, and whether it achieved what it wants.
struct Attack {
    name: &'static str,
    outcomes: [Outcome; 3],
    run: fn(&TestVault) -> Option<Reply>,
    achieved: fn(&TestVault) -> bool,
}

const SETTINGS: &str = "governance:\n  destructive_commands: [\"rm *\"]\n";
const EMPTIED: &str = "governance:\n  destructive_commands: []\n";

/// A vault with the question DEC-0001 about REQ-0001, and DEC-0002 about the destructive T-0001, both open. The key of
/// its operator, if there is one, is out of reach.
fn vault(regime: Regime) -> TestVault {
    let hive = match regime {
        Regime::Recorded => {
            let hive = TestVault::new();
            hive.configure(SETTINGS);
            hive
        }
        Regime::Adopted => {
            let hive = TestVault::new();
            hive.configure_strictly(SETTINGS);
            hive
        }
        Regime::Keyed => keyed_with(SETTINGS),
    };
    ok(&hive, "hf-require propose Login");
    ok(&hive, "hf-require analyze REQ-0001 Easy.");
    ok(&hive, "hf-task propose Wipe --destructive --actor agent:a");
    hive
}

/// Runs a line in an agent's shell.
fn as_agent(hive: &TestVault, name: &str, args: &[&str]) -> Reply {
    Reply::of(hive.command(name).args(args).env("HF_AGENT", "a").output().expect("the command runs"))
}

/// Runs a line in a shell without the variables of an agent, as `env -u HF_AGENT` does.
fn escaped(hive: &TestVault, line: &str) -> Option<Reply> {
    Some(sh(hive, line))
}

/// Writes raw events after the log, each group as a batch, linked and hashed as a writer would.
fn write_raw(hive: &TestVault, batches: Vec<Vec<Value>>) -> Option<Reply> {
    let mut log = Log(hive.events());
    for batch in batches {
        log.insert(log.0.len(), batch);
    }
    write_private(&hive.segment(), &log.chain());
    None
}

/// The newest event of a kind.
fn newest(hive: &TestVault, kind: &str) -> Value {
    hive.events().into_iter().rfind(|event| event["event_type"] == kind).expect("an event")
}

/// The first question, about the requirement.
fn question(hive: &TestVault) -> Value {
    hive.events().into_iter().find(|event| event["event_type"] == "DecisionRequested").expect("a question")
}

/// An approval of the requirement with what follows from it, as the commands would record it.
fn raw_approval(hive: &TestVault, actor: &str, payload: Map<String, Value>) -> Option<Reply> {
    let mut events = answer(actor, &question(hive), payload);
    let analyzed = newest(hive, "RequirementAnalyzed")["event_id"].clone();
    let approved = events[1]["parents"][0].clone();
    events[1]["parents"] = json!([analyzed, approved]);
    write_raw(hive, vec![events])
}

/// A line about the system or a project, after the newest event of a kind.
fn raw_after(hive: &TestVault, cause: &str, actor: &str, kind: &str, payload: Value) -> Option<Reply> {
    let cause = newest(hive, cause);
    let raw = event(actor, kind, text(&cause, "subject"), &[text(&cause, "event_id")], payload);
    write_raw(hive, vec![vec![raw]])
}

fn is_approved(hive: &TestVault) -> bool {
    state(hive, "REQ-0001") == "Approved"
}

fn is_open(hive: &TestVault) -> bool {
    state(hive, "T-0001") != "Proposed"
}

fn is_running(hive: &TestVault) -> bool {
    !sh(hive, "hf-task propose Probe").stdout.contains("STANDING:stopped")
}

/// Whether a command that the operators want to be asked about runs without a question.
fn is_unguarded(hive: &TestVault) -> bool {
    let shown = ok(hive, "hf-config show governance.destructive_commands");
    !shown.get("SETTING").contains("rm *")
}

/// The recorded settings without the guard.
fn unguarded(hive: &TestVault) -> Value {
    let recorded = hive.events().into_iter().rev().find_map(|event| event["payload"].get("settings").cloned());
    let mut settings = recorded.expect("settings");
    settings["governance.destructive_commands"] = json!([]);
    settings
}

const ATTACKS: &[Attack] = &[
    Attack {
        name: "an agent approves",
        outcomes: [Prevented, Prevented, Prevented],
        run: |hive| Some(as_agent(hive, "decide", &["approve", "DEC-0001", "--yes"])),
        achieved: is_approved,
    },
    Attack {
        name: "an agent approves as a person",
        outcomes: [Prevented, Prevented, Prevented],
        run: |hive| Some(as_agent(hive, "decide", &["approve", "DEC-0001", "--yes", "--actor", "user:jo"])),
        achieved: is_approved,
    },
    Attack {
        name: "a program that the toolkit started approves",
        outcomes: [Prevented, Prevented, Prevented],
        run: |hive| {
            let mut process = hive.command("decide");
            process.args(["approve", "DEC-0001", "--yes"]).env("HF_RUN_ID", "x").env("HF_TASK_ID", "y");
            Some(Reply::of(process.output().expect("the command runs")))
        },
        achieved: is_approved,
    },
    Attack {
        name: "env -u HF_AGENT hf-decide approve",
        outcomes: [Possible, Possible, Prevented],
        run: |hive| escaped(hive, "hf-decide approve DEC-0001 --yes"),
        achieved: is_approved,
    },
    Attack {
        name: "env -u HF_AGENT hf-require reject",
        outcomes: [Possible, Possible, Prevented],
        run: |hive| escaped(hive, "hf-require reject REQ-0001 --reason no --yes"),
        achieved: |hive| state(hive, "REQ-0001") == "Rejected",
    },
    Attack {
        name: "env -u HF_AGENT hf-append DecisionApproved",
        outcomes: [Possible, Possible, Prevented],
        run: |hive| Some(hive.run("append", &["DecisionApproved", "--subject", "DEC-0001", "--payload", "{}"])),
        achieved: is_approved,
    },
    Attack {
        name: "HF_AGENT= hf-resume --system",
        outcomes: [Possible, Possible, Prevented],
        run: |hive| {
            ok(hive, "hf-stop fire");
            let mut process = hive.command("resume");
            process.args(["--system", "--yes"]).env("HF_AGENT", "");
            Some(Reply::of(process.output().expect("the command runs")))
        },
        achieved: is_running,
    },
    Attack {
        name: "env -u HF_AGENT hf-resume of a paused project",
        outcomes: [Possible, Possible, Prevented],
        run: |hive| {
            ok(hive, "hf-pause later");
            escaped(hive, "hf-resume --yes")
        },
        achieved: |hive| count(hive, "ProjectResumed") > 0,
    },
    Attack {
        name: "env -u HF_AGENT hf-config set",
        outcomes: [Possible, Possible, Prevented],
        run: |hive| escaped(hive, "hf-config set governance.destructive_commands [] --yes"),
        achieved: is_unguarded,
    },
    Attack {
        name: "the settings file is edited",
        outcomes: [Possible, Named, Named],
        run: |hive| {
            hive.configure(EMPTIED);
            ok(hive, "hf-checkpoint Here --agent a");
            None
        },
        achieved: is_unguarded,
    },
    Attack {
        name: "the settings file is edited, and a raw line says so",
        outcomes: [Possible, Noticed, Noticed],
        run: |hive| {
            hive.configure(EMPTIED);
            let payload = json!({ "settings": unguarded(hive) });
            raw_after(hive, "VaultInitialized", "core:kernel", "SettingsChanged", payload)
        },
        achieved: is_unguarded,
    },
    Attack {
        name: "a raw line adopts settings",
        outcomes: [Possible, Possible, Noticed],
        run: |hive| {
            let payload = json!({ "settings": unguarded(hive) });
            raw_after(hive, "VaultInitialized", "user:jo", "SettingsAdopted", payload)
        },
        achieved: is_unguarded,
    },
    Attack {
        name: "a raw approval by a person",
        outcomes: [Possible, Possible, Noticed],
        run: |hive| raw_approval(hive, "user:jo", Map::new()),
        achieved: is_approved,
    },
    Attack {
        name: "a raw approval that is signed by somebody",
        outcomes: [Possible, Possible, Noticed],
        run: |hive| {
            let log = Log(hive.events());
            let statement = log.approval(log.0.len(), &question(hive));
            raw_approval(hive, "user:jo", signed_by(&attackers_key(), &statement))
        },
        achieved: is_approved,
    },
    Attack {
        name: "a raw approval by an agent",
        outcomes: [Noticed, Noticed, Noticed],
        run: |hive| raw_approval(hive, "agent:a", Map::new()),
        achieved: is_approved,
    },
    Attack {
        name: "a raw approval by the reactor",
        outcomes: [Noticed, Noticed, Noticed],
        run: |hive| raw_approval(hive, "core:reactor", Map::new()),
        achieved: is_approved,
    },
    Attack {
        name: "a raw consequence without a cause",
        outcomes: [Noticed, Noticed, Noticed],
        run: |hive| raw_after(hive, "RequirementAnalyzed", "core:reactor", "RequirementApproved", json!({})),
        achieved: is_approved,
    },
    Attack {
        name: "a raw start of a task that requires approval",
        outcomes: [Noticed, Noticed, Noticed],
        run: |hive| {
            let proposed = newest(hive, "TaskProposed");
            let (task, id) = (text(&proposed, "subject"), text(&proposed, "event_id"));
            let ready = event("core:reactor", "TaskReady", task, &[id], json!({}));
            let taken = event("agent:a", "TaskAssigned", task, &[id], json!({"holder": "agent:a"}));
            write_raw(hive, vec![vec![ready], vec![taken]])
        },
        achieved: is_open,
    },
    Attack {
        name: "a raw line lifts a stop",
        outcomes: [Possible, Possible, Noticed],
        run: |hive| {
            ok(hive, "hf-stop fire");
            // The flag is cleared, too, as the command does.
            let running = fs::read(hive.dir().join("running")).expect("a flag");
            write_private(&hive.akashic("control"), &running);
            raw_after(hive, "EmergencyStopIssued", "user:jo", "SystemResumed", json!({}))
        },
        achieved: is_running,
    },
    Attack {
        name: "the stop flag is cleared",
        outcomes: [Prevented, Prevented, Prevented],
        run: |hive| {
            ok(hive, "hf-stop fire");
            let running = fs::read(hive.dir().join("running")).expect("a flag");
            write_private(&hive.akashic("control"), &running);
            None
        },
        achieved: is_running,
    },
    Attack {
        name: "the attacker adds a key",
        outcomes: [Usurped, Usurped, Prevented],
        run: |hive| escaped(hive, "hf-key add mallory.pub --operator-key mallory --yes"),
        achieved: |hive| count(hive, "OperatorKeyAdded") > 0,
    },
    Attack {
        name: "a raw line adds a key",
        outcomes: [Noticed, Noticed, Noticed],
        run: |hive| {
            let payload = json!({"key": attackers_key().line()});
            raw_after(hive, "VaultInitialized", "user:jo", "OperatorKeyAdded", payload)
        },
        achieved: |hive| ok(hive, "hf-key list").stdout.contains(&attackers_key().line()),
    },
    Attack {
        name: "a raw line adds a key that signs itself",
        outcomes: [Noticed, Noticed, Noticed],
        run: |hive| {
            let log = Log(hive.events());
            let (at, line) = (log.0.len(), attackers_key().line());
            let more = [("binds key", line.clone())];
            let answers = reference(log.authority(at));
            let mut payload =
                signed_by(&attackers_key(), &log.statement(at, "add an operator key", "system", &answers, &more));
            payload.insert("key".to_owned(), line.into());
            raw_after(hive, "VaultInitialized", "user:jo", "OperatorKeyAdded", payload.into())
        },
        achieved: |hive| ok(hive, "hf-key list").stdout.contains(&attackers_key().line()),
    },
    Attack {
        name: "an id that reads like the next reference",
        outcomes: [Prevented, Prevented, Prevented],
        run: |hive| {
            let asked = newest(hive, "DecisionRequested")["payload"].to_string();
            Some(as_agent(
                hive,
                "append",
                &["DecisionRequested", "--subject", "decision:DEC-0003", "--payload", &asked],
            ))
        },
        achieved: |hive| count(hive, "DecisionRequested") > 2,
    },
    Attack {
        name: "an agent speaks as the reactor",
        outcomes: [Prevented, Prevented, Prevented],
        run: |hive| Some(as_agent(hive, "append", &["TaskReady", "--subject", "T-0001", "--actor", "core:reactor"])),
        achieved: is_open,
    },
    Attack {
        name: "hf-init over it",
        outcomes: [Prevented, Prevented, Prevented],
        run: |hive| {
            let reply = sh(hive, "hf-init --operator-key mallory.pub --yes");
            // It says that there is a vault already, and changes nothing.
            assert_eq!(count(hive, "VaultInitialized"), 1, "{reply:#?}");
            None
        },
        achieved: |hive| ok(hive, "hf-key list").stdout.contains("mallory"),
    },
    Attack {
        name: "an older head record hides the newest events",
        outcomes: [Prevented, Prevented, Prevented],
        run: |hive| {
            let older = fs::read(hive.head()).expect("a head record");
            as_agent(hive, "task", &["propose", "Other"]).expect_exit(0);
            write_private(&hive.head(), &older);
            None
        },
        achieved: |hive| !ok(hive, "hf-verify").stdout.contains(&format!("EVENTS:{}\n", hive.events().len())),
    },
    Attack {
        name: "a damaged end is cut off",
        outcomes: [Possible, Possible, Prevented],
        run: |hive| {
            let mut bytes = fs::read(hive.segment()).expect("a log");
            let at = bytes.len() - 30;
            bytes[at] ^= 1;
            write_private(&hive.segment(), &bytes);
            let reply = escaped(hive, "hf-verify --recover --yes");
            bytes[at] ^= 1;
            // Where it was refused the log is still there.
            if reply.as_ref().is_some_and(|reply| reply.code != Some(0)) {
                write_private(&hive.segment(), &bytes);
            }
            reply
        },
        achieved: |hive| count(hive, "VaultRecovered") > 0,
    },
];

/// Asserts that an attack comes to what is expected.
fn comes_to(hive: &TestVault, regime: Regime, attack: &Attack, expected: Outcome) {
    let case = format!("{} in a vault that is {regime:?}", attack.name);
    let genuine = hive.lines();
    let reply = (attack.run)(hive);
    let said = |done: &Reply| format!("{case}: {reply:#?}\n{done:#?}");
    if expected == Noticed {
        let done = sh(hive, "hf-verify --policy");
        assert_eq!((done.code, done.get("STATUS")), (Some(1), "FAILED"), "{}", said(&done));
        assert!(!done.all("FINDING").is_empty(), "{}", said(&done));
        assert_ne!(done.get("SIGNATURES"), "OK");
        // No writer goes on after it.
        let next = sh(hive, "hf-require propose Later");
        assert_eq!(next.get("STATUS"), "CORRUPT", "{}", said(&next));
        // What it wanted is not in force: without the raw lines, everything is as before.
        assert!(!(attack.achieved)(hive), "{case}");
        return;
    }
    // A writer takes up what is in the log.
    let next = sh(hive, "hf-require propose Later");
    assert_eq!(next.code, Some(0), "{}", said(&next));
    let done = sh(hive, "hf-verify --policy");
    assert_eq!((done.code, done.get("STATUS")), (Some(0), "VERIFIED"), "{}", said(&done));
    assert_ne!(done.get("SIGNATURES"), "OK", "{}", said(&done));
    assert_eq!((attack.achieved)(hive), matches!(expected, Possible | Usurped), "{}", said(&done));
    let refused = reply.as_ref().is_none_or(|reply| reply.code != Some(0));
    match expected {
        Prevented => assert!(refused, "{}", said(&done)),
        Possible => {
            assert_ne!(regime, Regime::Keyed, "{case}: what operators decide is signed there");
            assert_eq!(done.get("SIGNATURES"), "NONE", "{}", said(&done));
            let told = done.get("REGIME");
            let limits = [
                "anyone who can write the settings file can change the rules",
                "any program of this user can act as one",
            ];
            assert!(limits.iter().any(|limit| told.contains(limit)), "{}", said(&done));
            // It is on the record.
            assert_ne!(hive.lines(), genuine, "{case}");
        }
        Usurped => {
            assert_eq!(done.get("SIGNATURES"), "UNPINNED", "{}", said(&done));
            fs::write(hive.dir().join("listed.pub"), fs::read(hive.dir().join("jo.pub")).expect("a key"))
                .expect("a file");
            let pinned = sh(hive, "hf-verify --operator-keys listed.pub").expect_exit(1);
            assert_eq!(pinned.get("SIGNATURES"), "BAD", "{}", said(&pinned));
        }
        Named => {
            let status = sh(hive, "hf-status");
            assert!(status.all("PROBLEM").iter().any(|row| row.contains("settings")), "{}", said(&status));
        }
        Noticed => unreachable!(),
    }
}

/// Makes every attack on a vault, each on its own copy.
fn attack(regime: Regime, column: usize) {
    let hive = vault(regime);
    assert!(ATTACKS.len() >= 15);
    for attack in ATTACKS {
        let copy = hive.copy();
        make_key(copy.dir(), "mallory", "ed25519");
        make_key(copy.dir(), "jo", "ed25519");
        fs::copy(copy.akashic("control"), copy.dir().join("running")).expect("a flag");
        comes_to(&copy, regime, attack, attack.outcomes[column]);
    }
}

#[test]
fn a8_what_an_attacker_can_do_in_a_vault_without_keys_is_printed_as_such() {
    attack(Regime::Recorded, 0);
}

#[test]
fn a8_adopted_settings_stop_a_changed_file_and_nothing_more() {
    attack(Regime::Adopted, 1);
}

#[test]
fn a8_in_a_vault_with_keys_an_attacker_without_one_achieves_nothing() {
    attack(Regime::Keyed, 2);
}
