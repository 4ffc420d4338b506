//! Random mixes of all deeds.

use crate::clock::second;
use crate::script::{Script, Sort};
use crate::tree::Deed;
use crate::zone::Zone;

pub fn random_mix(s: &mut Script) {
    mix(s, &[4, 4, 3, 1, 1, 1, 1, 1, 1]);
}

pub fn random_mix_of_deep_work(s: &mut Script) {
    mix(s, &[3, 2, 2, 3, 3, 2, 1, 0, 0]);
}

pub fn random_mix_of_files(s: &mut Script) {
    mix(s, &[3, 3, 3, 1, 1, 0, 3, 3, 2]);
}

pub fn random_mix_in_local_time(s: &mut Script) {
    s.zone = s.dice.pick(&[Zone::Tokyo, Zone::Berlin]);
    let days = [second("2026-03-29T00:30:00Z"), second("2026-10-25T02:10:00Z"), s.begin];
    s.begin = s.dice.pick(&days) + s.between(0, 900);
    mix(s, &[4, 4, 3, 2, 2, 1, 1, 0, 0]);
}

/// Deeds at random, with these weights: a plain log, a checkpoint, an introspection, flexible and strict deep work, the
/// end of one by the agent, a late file, a file from the future, deleted caches.
fn mix(s: &mut Script, weights: &[u64; 9]) {
    let mut at = s.between(0, 300);
    s.length = s.between(2400, 4200);
    let mut declared: Vec<i64> = Vec::new();
    while at < s.length - 100 {
        let no = weighted(s, weights);
        // What is written in a beat has the id of its beginning, or the second itself.
        let id = if s.dice.one_in(3) { at - at % 60 } else { at };
        s.theme = s.dice.pick(&["artifacts/brand", "artifacts/音楽", "artifacts/brand/subthemes/logo"]).to_owned();
        match no {
            0 => {
                let sort = s.dice.pick(&[Sort::Plain, Sort::Plain, Sort::Plain, Sort::Urgent]);
                s.log_as(at, id, "", sort);
            }
            1 => s.checkpoint_as(at, id),
            2 => s.log_as(at, id, "", Sort::Look),
            3 | 4 => {
                let minutes = s.between(1, 25);
                if no == 3 {
                    s.flexible_as(at, id)
                } else {
                    s.strict_as(at, id, minutes)
                }
                declared.push(id);
            }
            5 => {
                if let Some(id) = s.dice.pick_of(&declared) {
                    let rest = s.dice.pick(&[".completed", ".completed", ".expired"]);
                    s.rename(at, id, rest);
                }
            }
            6 => {
                let late = (at - s.between(60, 900)).max(0);
                match s.dice.below(3) {
                    0 => s.checkpoint_as(at, late),
                    1 => s.log_as(at, late, "", Sort::Plain),
                    _ => s.log_as(at, late, "", Sort::Look),
                }
            }
            7 => {
                let ahead = at + s.between(1, 900);
                if s.dice.one_in(2) { s.checkpoint_as(at, ahead) } else { s.log_as(at, ahead, "", Sort::Plain) }
            }
            _ => s.deed(at, Deed::Forget),
        }
        at += s.dice.pick(&[1, 20, 100, 200, 400]) + s.between(0, 150);
    }
}

fn weighted(s: &mut Script, weights: &[u64; 9]) -> usize {
    let mut left = s.dice.below(weights.iter().sum());
    let passes = |weight: &u64| match left.checked_sub(*weight) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    };
    weights.iter().position(passes).unwrap_or(0)
}
