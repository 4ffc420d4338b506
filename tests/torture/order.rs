//! Traces every writing command: when it replies that something is recorded, are the log and the directory entries
//! that lead to it synced? A power cut reveals a missing sync only sometimes; this reveals it always.

use std::collections::BTreeSet;

use crate::counts::{Budget, Counts, Wrong};
use crate::inject::{Ground, traced};
use crate::judge::{Said, said};
use crate::machine::{Need, can};

const CALLS: &str = "trace=write,pwrite64,ftruncate,fdatasync,fsync,openat,mkdirat,renameat,linkat";
/// Paths that must be durable when a command acknowledges.
const DURABLE: &[&str] = &["/Vault/Akashic/events", "/Vault/Artifacts"];

/// The path that strace prints for a descriptor: `pwrite64(5</a/path>, …`.
fn path(args: &str) -> Option<&str> {
    let (_, rest) = args.split_once('<')?;
    rest.split_once('>').map(|(path, _)| path)
}

fn is_durable(path: &str) -> bool {
    // Content that is still incoming may be lost; its destination may not.
    let coming = path.split_once("/.incoming").is_some_and(|(_, rest)| !rest.contains("/new"));
    DURABLE.iter().any(|folder| path.contains(folder)) && !coming
}

/// The paths that were not synced when the first process replied.
fn unsynced(trace: &str) -> BTreeSet<String> {
    let first = trace.split_once(' ').map_or("", |(pid, _)| pid);
    let mut dirty = BTreeSet::new();
    for line in trace.lines().filter(|line| line.starts_with(first)) {
        let Some((call, args)) = line[first.len()..].trim_start().split_once('(') else { continue };
        let Some((_, result)) = args.rsplit_once(" = ") else { continue };
        let (path, failed) = (path(args), result.starts_with('-'));
        match (call, path) {
            ("write", _) if args.starts_with("1<") && args.contains("EXIT:") => return dirty,
            (_, None) => {}
            (_, _) if failed => {}
            ("write" | "pwrite64" | "ftruncate", Some(path)) if is_durable(path) => {
                dirty.insert(path.to_owned());
            }
            // A directory entry was created.
            ("mkdirat" | "linkat" | "renameat", Some(path)) if is_durable(path) => {
                dirty.insert(path.to_owned());
            }
            ("openat", Some(path)) if is_durable(path) && args.contains("O_EXCL") => {
                dirty.insert(path.to_owned());
            }
            ("fsync" | "fdatasync", Some(path)) => {
                dirty.remove(path);
            }
            _ => {}
        }
    }
    dirty
}

pub fn run(budget: Budget, grounds: &[Ground]) -> Option<Counts> {
    if !can("the order of writes and syncs", &[Need::Tool("strace")]) {
        return None;
    }
    let mut counts = Counts::planned(grounds.len());
    for ground in grounds {
        if budget.is_over() {
            break;
        }
        let hive = ground.start.copy();
        ground.act.run_beside(&hive);
        let (reply, trace) = traced(&ground.act, &hive, &[CALLS.to_owned(), "decode-fds=path".to_owned()]);
        counts.tried += 1;
        if said(&reply) != Ok(Said::Recorded) {
            continue;
        }
        counts.acknowledged += 1;
        if let Some(path) = unsynced(&trace).first() {
            let inside = path.split_once("/Vault/").map_or(path.as_str(), |(_, inside)| inside);
            counts.note(&ground.name(), Wrong::Lost(format!("acknowledged before {inside} was synced")));
        }
    }
    Some(counts)
}
