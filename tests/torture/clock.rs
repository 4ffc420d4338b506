//! The clock jumps between commands: back by a second, by a day, to 2001, forward by ten years and back.
//! Ids keep increasing, the log stays in order, every command keeps working, the caches agree.

use crate::counts::{Budget, Counts, Wrong};
use crate::judge::{agrees, check_files};
use crate::machine::Dice;
use crate::test_vault::{START, TestVault};
use crate::vaults::{check_goes_on, keys, log, payload};

const JUMPS: &[&str] = &[
    START,
    "2026-01-31T11:59:59Z",
    "2026-01-30T12:00:00Z",
    "2001-01-01T00:00:00Z",
    "2036-01-31T12:00:00Z",
    "2026-01-31T12:00:01Z",
    "2026-03-01T00:00:00Z",
    "2026-02-28T23:59:59Z",
];

pub fn run(budget: Budget) -> Option<Counts> {
    let vaults = budget.sized(2, 40);
    let jumps = budget.sized(12, 40);
    let mut counts = Counts::planned(vaults * jumps);
    for vault in 0..vaults {
        // The first vault is always tested.
        if vault > 0 && budget.is_over() {
            break;
        }
        let mut hive = TestVault::new();
        let mut dice = Dice::new(vault as u64 + 1);
        let mut acknowledged = Vec::new();
        for n in 0..jumps {
            if budget.is_over() {
                break;
            }
            // The first vault sees the jumps in order, the others in random order.
            let to = if vault == 0 { n % JUMPS.len() } else { dice.below(JUMPS.len() as u64) as usize };
            hive.at(JUMPS[to]);
            let key = format!("jump-{n}");
            let name = format!("vault {vault}, jump {n} to {}", JUMPS[to]);
            let reply = hive.run("append", &["RequirementProposed", "--key", &key, "--payload", &payload(&key)]);
            counts.tried += 1;
            match reply.all("STATUS").as_slice() {
                ["APPENDED"] => acknowledged.push(key),
                _ => counts.note(&name, Wrong::ChainBreak(format!("{reply:?}"))),
            }
            for (command, args) in [("checkpoint", &["at work"][..]), ("watchdog", &[]), ("status", &[])] {
                let reply = hive.run(command, args);
                if !matches!(reply.code, Some(0 | 1)) {
                    counts.note(&name, Wrong::ChainBreak(format!("hf-{command}: {reply:?}")));
                }
            }
            counts.check(&name, check_goes_on(&hive).map_err(Wrong::ChainBreak));
        }
        let found = keys(&log(&hive.vault()));
        for key in &acknowledged {
            match found.get(key) {
                None => counts.note(key, Wrong::Lost("acknowledged".into())),
                Some(1) => {}
                Some(n) => counts.note(key, Wrong::Duplicated(format!("{n} copies"))),
            }
        }
        counts.acknowledged += acknowledged.len();
        let name = format!("vault {vault}");
        let policy = hive.run("verify", &["--policy", "--projections"]);
        if policy.code != Some(0) {
            counts.note(&name, Wrong::ChainBreak(format!("{policy:?}")));
        }
        counts.check(&name, agrees(&hive));
        counts.check(&name, check_files(&hive));
    }
    Some(counts)
}
