//! Drives every target with randomly mutated seeds; the random numbers are the same in every run.

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;

use crate::sized;
use crate::targets::TARGETS;
use crate::test_vault::Random;

/// Pieces that are special to one of the parsers.
const WORDS: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00",
    b":",
    b",",
    b"\n",
    b"\r\n",
    b"\0",
    b"-0",
    b"1e999",
    b"1e-7",
    b"9007199254740992",
    b"0.1",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"&a",
    b"*a",
    b"!!int ",
    b"- ",
    b"? ",
    b"| ",
    b"~",
    b"null",
    b"true",
    b"hash",
    b"\xe2\x80\xa8",
    b"\xf0\x9f\x98\x80",
    b"@",
    b"0001",
    b"sha256:",
    b"\"payload\":{",
    b"type:",
    b"minutes: ",
    b"\xef\xbc\x9a",
];
const INPUT_MAX_BYTES: usize = 4096;

fn mutate(input: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(input.len() as u64 + 1) as usize;
    let length = |random: &mut Random| random.below(16) as usize;
    match random.below(6) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.below(256) as u8,
        2 => {
            let end = input.len().min(at + length(random));
            input.drain(at..end);
        }
        3 => {
            let end = input.len().min(at + length(random));
            let piece = input[at..end].to_vec();
            let to = random.below(input.len() as u64 + 1) as usize;
            input.splice(to..to, piece);
        }
        _ => {
            let word = WORDS[random.below(WORDS.len() as u64) as usize];
            input.splice(at..at, word.iter().copied());
        }
    }
    input.truncate(INPUT_MAX_BYTES);
}

#[test]
fn no_target_fails_on_anything() {
    let rounds = sized(4_000, 400_000);
    for (number, (name, run)) in TARGETS.iter().enumerate() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        let seeds: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).expect("a seed")).collect();
        let mut random = Random::new(number as u64 + 1);
        for round in 0..rounds {
            let mut input = match round % 8 {
                // Sometimes start with nothing.
                7 => Vec::new(),
                _ => seeds[random.below(seeds.len() as u64) as usize].clone(),
            };
            if round >= seeds.len() {
                (0..=random.below(12)).for_each(|_| mutate(&mut input, &mut random));
            }
            if panic::catch_unwind(AssertUnwindSafe(|| run(&input))).is_err() {
                panic!("{name} fails on {:?}", String::from_utf8_lossy(&input));
            }
        }
        println!("TARGET:{name}\nINPUTS:{rounds}\nFAILED:0\n");
    }
}
