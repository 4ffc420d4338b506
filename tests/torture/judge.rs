//! What must be true after a fault in a command.
//!
//! Acknowledged: it is in the log. Refused: no part of it is in the log. Uncertain or silent: all of it or nothing.
//! In every case the next append works and repairs a torn tail, the log verifies, the caches agree with it, repeating
//! the command leaves one copy, and no file is left over.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::commands::{Act, Again, Judged};
use crate::counts::Wrong;
use crate::test_vault::{Reply, TestVault};
use crate::vaults::{Start, check_goes_on, files, log};

/// What the command replied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Recorded,
    Refused,
    Uncertain(Option<String>),
    /// Nothing: it was killed, or its reply could not be written.
    Nothing,
}

pub fn said(reply: &Reply) -> Result<Said, Wrong> {
    let key = reply.all("KEY").first().map(|key| (*key).to_owned());
    match (reply.code, reply.all("STATUS").as_slice()) {
        (_, []) if reply.stdout.is_empty() => Ok(Said::Nothing),
        (_, ["UNCERTAIN" | "STOPPED_UNRECORDED"]) => Ok(Said::Uncertain(key)),
        // The exit code of hf-watchdog means that it found and recorded an anomaly.
        // hf-state go says of its work that it failed, which can be due to the same fault.
        (Some(0), _) | (Some(1), ["ANOMALY" | "FAIL"]) => Ok(Said::Recorded),
        (Some(111), ["SYSTEM_ERROR"]) => Ok(Said::Refused),
        // A command reports an unreadable input file as a usage error.
        (Some(2), ["USAGE"]) if reply.get("SUM").starts_with("cannot read ") => Ok(Said::Refused),
        // A program of the settings is not run if it cannot be read whether that is allowed.
        (Some(3), ["REFUSED"]) if ["not_owner", "not_trusted"].contains(&reply.get("REASON")) => Ok(Said::Refused),
        _ => Err(Wrong::ChainBreak(format!("not a reply to a system failure: {reply:?}"))),
    }
}

/// Events that report a fault and are not part of the request.
const FAULT_REPORTS: [&str; 3] = ["TailQuarantined", "TailAdopted", "HookFailed"];

/// The types of the new events, in order, without those recorded by the repair of a tail and by `check_goes_on`.
pub fn appended(start: &Start, vault: &Path, judged: Judged) -> Vec<String> {
    let log = log(vault);
    let new = log.get(start.kept.len()..).unwrap_or_default();
    let events = new.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let tells = |event: &Value| FAULT_REPORTS.iter().any(|kind| event["event_type"] == *kind);
    let ours = |event: &Value| event["payload"]["title"] != "after" && !tells(event);
    let judged = |name: &String| match judged {
        Judged::All => true,
        Judged::Only(only) => name.trim_start_matches(SETTLED) == only,
        Judged::None => false,
    };
    let mut settled = BTreeSet::new();
    events
        .filter(ours)
        .map(|event| {
            let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let mut parents = event["parents"].as_array().into_iter().flatten();
            // What was due, and its consequences.
            let follows = event["actor"] == "core:reactor" && parents.any(|parent| settled.contains(&id(parent)));
            let is_settled = event["payload"]["due_at"].is_string() || follows;
            if is_settled {
                settled.insert(id(&event["event_id"]));
            }
            let mark = if is_settled { SETTLED } else { "" };
            format!("{mark}{}", event["event_type"].as_str().unwrap_or_default())
        })
        .filter(judged)
        .collect()
}

/// Marks events that were due before the command; they may be recorded even if the command is refused.
const SETTLED: &str = "~";

/// Whether no part of the request is recorded.
fn nothing_of_it(there: &[String]) -> bool {
    there.iter().all(|name| name.starts_with(SETTLED))
}

fn goes_on(hive: &TestVault) -> Result<(), Wrong> {
    check_goes_on(hive).map_err(Wrong::ChainBreak)
}

/// Checks that the caches agree with the events.
pub fn agrees(hive: &TestVault) -> Result<(), Wrong> {
    let reply = hive.run("project", &["--check"]);
    match reply.code {
        Some(0) => Ok(()),
        _ => Err(Wrong::ChainBreak(format!("the caches differ: {reply:?}"))),
    }
}

/// Checks everything. `whole` is the list of events that the command records without a fault.
pub fn judge(start: &Start, act: &Act, hive: &TestVault, reply: &Reply, whole: &[String]) -> Result<Said, Wrong> {
    let said = said(reply)?;
    start.check_kept(&hive.vault()).map_err(Wrong::Lost)?;
    check_rolled_back(start, hive, &said)?;
    if act.name() != "init" {
        goes_on(hive)?;
        let there = appended(start, &hive.vault(), act.judged);
        match &said {
            Said::Recorded => expect(&there, whole, "acknowledged")?,
            Said::Refused if !nothing_of_it(&there) => {
                return Err(Wrong::Duplicated(format!("refused, but {there:?} is recorded")));
            }
            Said::Refused => {}
            Said::Nothing | Said::Uncertain(_) if nothing_of_it(&there) || there == whole => {}
            Said::Nothing | Said::Uncertain(_) => {
                return Err(Wrong::Lost(format!("only {there:?} of {whole:?} is recorded")));
            }
        }
    }
    check_repeated(start, act, hive, &said, whole)?;
    goes_on(hive)?;
    agrees(hive)?;
    check_files(hive)?;
    start.check_repaired(&hive.vault()).map_err(Wrong::Lost)?;
    Ok(said)
}

/// Checks that no incomplete bytes are in the log after a refusal. A write after bytes that were already incomplete is
/// not rolled back: that would remove them from the log without an event.
fn check_rolled_back(start: &Start, hive: &TestVault, said: &Said) -> Result<(), Wrong> {
    let log = log(&hive.vault());
    let new = log.get(start.kept.len()..).unwrap_or_default();
    match *said == Said::Refused && start.torn.is_empty() && new.last().is_some_and(|byte| *byte != b'\n') {
        true => Err(Wrong::LeftOver(format!("refused, but {} bytes of it are in the log", new.len()))),
        false => Ok(()),
    }
}

/// Repeats the command, as a caller would after silence, a refusal or an uncertain reply.
fn check_repeated(start: &Start, act: &Act, hive: &TestVault, said: &Said, whole: &[String]) -> Result<(), Wrong> {
    let printed = match (said, act.again) {
        (Said::Uncertain(key), Again::WithPrintedKey) => key.as_deref(),
        // Without a key, a repetition cannot be recognised.
        (_, Again::WithPrintedKey) => return Ok(()),
        _ => None,
    };
    let before = appended(start, &hive.vault(), act.judged);
    let again = act.run(hive, &[], printed);
    let refused = !matches!(self::said(&again), Ok(Said::Recorded));
    // Jobs must have finished before their files are checked. An aborted one has, but perhaps not its supervisor.
    if act.name() == "task" && act.beside.is_some() {
        hive.run("job", &["cancel", "T-0001"]);
    }
    if ["job", "poll", "state"].contains(&act.name()) {
        hive.run("job", &["wait", "T-0001"]);
    }
    if act.name() == "poll" || act.is_of("job wait") {
        hive.run("job", &["wait", "T-0002"]);
    }
    let there = appended(start, &hive.vault(), act.judged);
    match act.again {
        // The repetition may be refused, but only if the first attempt was recorded.
        Again::Another if refused && (before.is_empty() && !whole.is_empty()) => {
            Err(Wrong::ChainBreak(format!("it cannot be repeated: {again:?}")))
        }
        Again::Another => Ok(()),
        // An existing backup is never overwritten.
        _ if refused && act.name() == "backup" && *said != Said::Refused => Ok(()),
        _ if refused => Err(Wrong::ChainBreak(format!("it cannot be repeated: {again:?}"))),
        _ => expect(&there, whole, "repeated"),
    }
}

fn expect(there: &[String], whole: &[String], what: &str) -> Result<(), Wrong> {
    if there == whole {
        Ok(())
    } else if there.len() > whole.len() {
        Err(Wrong::Duplicated(format!("{what}, and {there:?} is recorded instead of {whole:?}")))
    } else {
        Err(Wrong::Lost(format!("{what}, but {there:?} is recorded instead of {whole:?}")))
    }
}

/// Checks that no files are left over, in the vault or next to it.
pub fn check_files(hive: &TestVault) -> Result<(), Wrong> {
    let left = |path: &Path| {
        let inside = path.strip_prefix(hive.dir()).expect("it is in there").to_string_lossy().into_owned();
        let parts: Vec<&str> = inside.split('/').collect();
        (!is_expected(&parts)).then_some(inside)
    };
    match files(hive.dir()).iter().find_map(|path| left(path)) {
        Some(left) => Err(Wrong::LeftOver(format!("{left} was left behind"))),
        None => {
            let known = |folder, pending| check_known(hive, folder, pending);
            known("Artifacts", ".incoming").and_then(|()| known("Jobs", "")).and_then(|()| known("Akashic/firing", ""))
        }
    }
}

/// Checks that the log names everything in a directory, and that nothing is `pending`.
fn check_known(hive: &TestVault, folder: &str, pending: &str) -> Result<(), Wrong> {
    let path = hive.vault().join(folder);
    let log = String::from_utf8_lossy(&log(&hive.vault())).into_owned();
    let entries = path.read_dir().into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_empty = |name: &str| path.join(name).read_dir().is_ok_and(|mut entries| entries.next().is_none());
    let is_known = |name: &String| log.contains(name.as_str()) || name == pending && is_empty(name);
    match names.find(|name| !is_known(name)) {
        Some(name) => Err(Wrong::LeftOver(format!("{folder}/{name} is in no event"))),
        None => Ok(()),
    }
}

/// Whether a file with this path may exist.
fn is_expected(parts: &[&str]) -> bool {
    let (name, hidden) = (parts[parts.len() - 1], |name: &str| name.starts_with('.') || name.ends_with(".tmp"));
    match parts {
        ["stored" | "probe" | "plan" | "trace"] => true,
        // A backup looks like the vault.
        ["copy", rest @ ..] => is_expected(&[&["Vault"], rest].concat()),
        ["Vault", "hiveforge.config.yaml"] => true,
        [
            "Vault",
            "Akashic",
            ".lock" | "control" | "chain.json" | "clock" | "watchdog.json" | "looks.json" | "printed.json" | "m1.json",
        ] => true,
        ["Vault", "Akashic", "index", ".lock" | "data.mdb" | "seal.json"] => true,
        ["Vault", "Akashic", "events", _, _] => name.ends_with(".jsonl") && !hidden(name),
        ["Vault", "Akashic", "projections" | "snapshots" | "schemas", _] => name.ends_with(".json") && !hidden(name),
        ["Vault", "Akashic", "quarantine", _] => !hidden(name),
        // The announcement of a recorded job that could not be withdrawn; the next fire does that.
        ["Vault", "Akashic", "firing", _] => !hidden(name),
        ["Vault", "Artifacts", id, "manifest.json"] => !hidden(id),
        ["Vault", "Artifacts", id, _] => name.starts_with("content") && !hidden(id),
        ["Vault", "Context", _] => name.ends_with(".json") && !hidden(name),
        ["Vault", "Agents" | "Jobs" | "Autonomous", ..] => !parts.iter().any(|part| hidden(part)),
        _ => false,
    }
}
