//! Workers that append while somebody kills them at random moments.
//!
//! Promise: every key that was acknowledged is in the log exactly once, every other one at most
//! once, and exactly once after it is repeated.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::hive::{Hive, START, binary};
use crate::machine::{Dice, sized};
use crate::vaults::{check_goes_on, check_verifies, count, log, payload};

const WORKERS: usize = 8;

/// A running command. It is waited for only under this lock, so a kill never meets another process.
type Slot = Mutex<Option<Child>>;

/// Starts one append and reads its reply to the end, which is also the process's end.
fn append(hive: &Hive, slot: &Slot, key: &str, started: &mpsc::Sender<usize>, worker: usize) -> (String, ExitStatus) {
    let mut child = Command::new(binary("append"))
        .args(["RequirementProposed", "--key", key, "--payload", &payload(key)])
        .current_dir(hive.dir())
        .env_clear()
        .envs([("USER", "jo"), ("HF_NOW", START)])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    *slot.lock().expect("no panic") = Some(child);
    let _ = started.send(worker);
    let mut reply = String::new();
    stdout.read_to_string(&mut reply).expect("a reply in UTF-8");
    let status = slot.lock().expect("no panic").take().expect("it was started").wait().expect("it ends");
    (reply, status)
}

#[test]
fn killed_at_random_moments_no_worker_loses_or_doubles_an_event() {
    let wanted = sized(300, 2000);
    let (mut killed, mut acknowledged, mut round) = (0, 0, 0);
    while killed < wanted {
        // Vaults of a few hundred kills each: every append reads the whole log.
        let (kills, acks) = storm(round, (wanted - killed).min(300));
        killed += kills;
        acknowledged += acks;
        round += 1;
    }
    println!("kill storm: {killed} kills, {acknowledged} acknowledged, 0 lost, 0 duplicated");
}

fn storm(seed: u64, wanted: usize) -> (usize, usize) {
    let hive = Hive::new();
    let slots: Vec<Slot> = (0..WORKERS).map(|_| Mutex::new(None)).collect();
    let kills = AtomicUsize::new(0);
    let (started, starts) = mpsc::channel();
    let keys: Vec<(String, bool)> = thread::scope(|scope| {
        let (hive, slots, kills) = (&hive, &slots, &kills);
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let started = started.clone();
                scope.spawn(move || {
                    let mut keys = Vec::new();
                    while kills.load(Ordering::Relaxed) < wanted {
                        let key = format!("k-{worker}-{}.", keys.len());
                        let (reply, status) = append(hive, &slots[worker], &key, &started, worker);
                        let acknowledged = reply.contains("\nSTATUS:APPENDED\n");
                        assert!(acknowledged || status.code().is_none(), "not killed, but said: {reply}");
                        kills.fetch_add(usize::from(status.code().is_none()), Ordering::Relaxed);
                        keys.push((key, acknowledged));
                    }
                    keys
                })
            })
            .collect();
        drop(started);
        scope.spawn(move || {
            let mut dice = Dice::new(seed + 1);
            for worker in starts {
                // Not to wait for something: the moment of the kill is what is random.
                thread::sleep(Duration::from_micros(dice.below(12_000)));
                if let Some(child) = slots[worker].lock().expect("no panic").as_mut() {
                    child.kill().expect("our own child");
                }
            }
        });
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker")).collect()
    });
    check_goes_on(&hive).unwrap_or_else(|e| panic!("{e}"));
    let found = log(&hive.vault());
    let copies = |log: &[u8], key: &str| count(log, &format!("\"idempotency_key\":\"{key}\""));
    for (key, acknowledged) in &keys {
        let n = copies(&found, key);
        assert!(n == 1 || (n == 0 && !acknowledged), "{key}: {n} copies, acknowledged: {acknowledged}");
    }
    let unsaid: Vec<&String> = keys.iter().filter(|(_, acknowledged)| !acknowledged).map(|(key, _)| key).collect();
    for key in unsaid.iter().step_by(sized(10, 3)) {
        hive.run("append", &["RequirementProposed", "--key", key, "--payload", &payload(key)]).expect_exit(0);
        assert_eq!(copies(&log(&hive.vault()), key), 1, "{key} after a repetition");
    }
    check_verifies(&hive).unwrap_or_else(|e| panic!("{e}"));
    (kills.into_inner(), keys.len() - unsaid.len())
}
