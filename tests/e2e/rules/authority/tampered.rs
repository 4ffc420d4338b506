//! A8: with the operators' keys and an anchor from outside the vault, no tampering passes over an act that no listed key
//! signed, or over something that rests on one. A thousand tamperings are tried. Almost all are hashed again, so that
//! only the rules, the signatures and the anchor can notice them.

mod attacks;
mod derived;
mod edits;
pub(super) mod forge;
mod life;
mod oracle;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::num::NonZero;

use hiveforge::base::OperatorKey;
use hiveforge::chain::Head;
use hiveforge::op::{self, VerifyRequest};
use hiveforge::vault::Method;
use serde_json::{Map, Value, json};

use self::attacks::{ATTACKS, Attacker};
use self::forge::{Genuine, Log, attackers_key, publish, reference, text};
use self::life::{Life, decisions, recovered, stolen_key, system, third_key};
use self::oracle::Oracle;
use crate::support::test_vault::{Random, write_private};

/// Whether to take more time than an ordinary test may.
const IS_THOROUGH: bool = cfg!(feature = "system-test");
/// How many tamperings are tried with each of the three histories.
const TAMPERINGS: u64 = if IS_THOROUGH { 3000 } else { 320 };
/// After how many of them the command itself is asked.
const ASKED_EVERY: u64 = 50;

/// A vault whose log is replaced again and again.
struct Target {
    life: Life,
    genuine: Genuine,
    keys: Vec<OperatorKey>,
    key_file: String,
    oracle: Oracle,
}

impl Target {
    fn new(life: Life) -> Target {
        let keys = life.keys.lines().map(|line| OperatorKey::parse(line).expect("a key")).collect();
        let (genuine, oracle) = (Genuine::new(&life.events), Oracle::new(&life));
        Target { genuine, keys, key_file: life.key_file(), oracle, life }
    }

    /// Whether hf-verify says VERIFIED about these bytes, with the listed keys and this anchor.
    fn is_verified(&self, bytes: &[u8], anchor: &str) -> bool {
        write_private(&self.life.hive.segment(), bytes);
        let request = VerifyRequest {
            method: Method::Fast { jobs: NonZero::new(1) },
            expected_heads: vec![Head::parse(anchor).expect("an anchor")],
            since: None,
            projections: false,
            policy: true,
            artifacts: false,
            operator_keys: Some(self.keys.clone()),
        };
        op::verify(&self.life.hive.context(), request, &mut |_, _| {}).is_ok_and(|done| done.passed())
    }

    /// The same by the command, about the log as it is.
    fn says_verified(&self, anchor: &str) -> bool {
        let args = ["--policy", "--operator-keys", &self.key_file, "--expect-head", anchor];
        let reply = self.life.hive.run("verify", &args);
        let is_verified = reply.get("STATUS") == "VERIFIED";
        assert_eq!(is_verified, reply.code == Some(0), "{reply:#?}");
        assert!(!is_verified || reply.get("SIGNATURES") == "OK", "{reply:#?}");
        is_verified
    }
}

/// What became of one tampering.
struct Tried {
    attacks: Vec<&'static str>,
    /// What is forged, according to the oracle.
    forged: Option<String>,
    verified: bool,
}

/// Tampers with a log and has it verified.
fn tamper(target: &Target, seed: u64) -> Tried {
    let (mut random, genuine, hive) = (Random::new(seed), &target.genuine, &target.life.hive);
    // Every later signature vouches for what was before it, so half of the attackers cut off the end first.
    let borders: Vec<usize> = genuine.log.borders().into_iter().filter(|at| *at > genuine.log.signed()[1]).collect();
    let end = match random.below(2) {
        0 => borders[random.below(borders.len() as u64) as usize],
        _ => genuine.log.0.len(),
    };
    let whole = genuine.lines[..end].concat();
    let log = Log(genuine.log.0[..end].to_vec());
    let key = if random.below(3) == 0 { stolen_key() } else { attackers_key() };
    let mut attacker = Attacker { log, genuine, random: Random::new(random.next()), key };
    let is_hashed = random.below(15) != 0;
    let (mut attacks, mut bytes) = (Vec::new(), whole.clone());
    // An attack that finds nothing to work on changes nothing.
    while bytes == whole {
        for _ in 0..if random.below(4) == 0 { 2 } else { 1 } {
            // The one before may have left no act.
            if attacker.log.signed().is_empty() {
                break;
            }
            let (name, attack) = ATTACKS[random.below(ATTACKS.len() as u64) as usize];
            attacks.push(name);
            attack(&mut attacker);
        }
        bytes = if is_hashed { attacker.log.chain_after(genuine) } else { attacker.log.bytes() };
    }
    // The weakest anchor is the most work for the signatures.
    let anchor = reference(&genuine.log.0[[0, 0, end / 2, end - 1][random.below(4) as usize]]);
    match random.below(3) {
        0 => publish(hive, &attacker.log),
        1 => drop(fs::remove_file(hive.head())),
        _ => publish(hive, &Log(genuine.log.0[..1].to_vec())),
    }
    match random.below(4) {
        0 => hive.configure("governance:\n  destructive_commands: []\n  approval_strength: key\n"),
        _ => drop(fs::remove_file(hive.config())),
    }
    let verified = target.is_verified(&bytes, &anchor);
    if seed.is_multiple_of(ASKED_EVERY) {
        assert_eq!(target.says_verified(&anchor), verified, "seed {seed}, {attacks:?}");
    }
    let forged = match is_hashed || whole.starts_with(&bytes) {
        true => target.oracle.forged(&attacker.log.0, &anchor),
        false => Some("it is no chain".to_owned()),
    };
    Tried { attacks, forged, verified }
}

/// Tries many tamperings of one history.
fn tampered(life: Life) {
    let target = Target::new(life);
    let last = reference(target.genuine.log.0.last().expect("an event"));
    assert!(target.is_verified(&target.genuine.bytes(), &last), "the genuine log passes");
    assert!(target.says_verified(&last));
    assert_eq!(target.oracle.forged(&target.genuine.log.0, &last), None);
    let (mut holes, mut forged, mut by_attack) = (Vec::new(), 0, BTreeMap::<&str, usize>::new());
    for seed in 0..TAMPERINGS {
        let tried = tamper(&target, seed);
        let Some(why) = tried.forged else { continue };
        forged += 1;
        for attack in &tried.attacks {
            *by_attack.entry(attack).or_default() += 1;
        }
        if tried.verified {
            holes.push(format!("seed {seed}, {:?}: {why}", tried.attacks));
        }
    }
    assert!(holes.is_empty(), "hf-verify says VERIFIED over what nobody signed: {holes:#?}");
    // Otherwise this would show nothing.
    assert!(forged > TAMPERINGS as usize * 3 / 4, "only {forged} of {TAMPERINGS} forge something");
    assert_eq!(by_attack.len(), ATTACKS.len(), "{by_attack:#?}");
}

#[test]
fn a8_no_tampering_with_decisions_passes_over_an_act_that_nobody_signed() {
    tampered(decisions());
}

#[test]
fn a8_no_tampering_with_stops_settings_and_keys_passes_over_an_act_that_nobody_signed() {
    tampered(system());
}

#[test]
fn a8_no_tampering_with_a_recovered_log_passes_over_an_act_that_nobody_signed() {
    tampered(recovered());
}

/// A signature covers all of an act: no member that it has, or could have, can be changed, added or left out, except for
/// one that only repeats what the statement says. Every act is tried as the last one, since later ones vouch for it.
#[test]
fn a8_no_member_of_a_signed_act_can_be_changed_or_added() {
    let (mut holes, mut seen, mut tried) = (Vec::new(), HashSet::new(), 0);
    for life in [system(), recovered(), decisions()] {
        let target = Target::new(life);
        let (genuine, anchor) = (&target.genuine, reference(&target.genuine.log.0[0]));
        let _ = fs::remove_file(target.life.hive.head());
        for at in genuine.log.signed().into_iter().filter(|at| *at > 0) {
            let (act, end) = (&genuine.log.0[at], genuine.log.unit(at).end);
            // One act of a kind, with or without a comment, is enough every day.
            if !seen.insert((text(act, "event_type").to_owned(), act["payload"].as_object().map(Map::len)))
                && !IS_THOROUGH
            {
                continue;
            }
            for (name, value) in changes_of(&act["payload"]) {
                let mut log = Log(genuine.log.0[..end].to_vec());
                let payload = log.0[at]["payload"].as_object_mut().expect("an object");
                match value.clone() {
                    Some(value) => payload.insert(name.clone(), value),
                    None => payload.remove(&name),
                };
                let bytes = log.chain_after(genuine);
                tried += 1;
                if target.is_verified(&bytes, &anchor)
                    && let Some(why) = target.oracle.forged(&log.0, &anchor)
                {
                    holes.push(format!("{name} {value:?}: {why}"));
                }
            }
        }
    }
    assert!(holes.is_empty() && tried > 100, "{tried}: {holes:#?}");
}

/// The changes to try in the payload of an act: a member, and its new value if it is not left out.
fn changes_of(payload: &Value) -> Vec<(String, Option<Value>)> {
    let own = payload.as_object().expect("an object").keys().map(String::as_str);
    let added = ["rationale", "comment", "reason", "more", "chosen_option", "by", "compromised", "changed"];
    let values = [json!(""), json!(7), json!("forged"), json!(true), json!(false), json!(null), json!([]), json!({})];
    let (added, values) = if IS_THOROUGH { (&added[..], &values[..]) } else { (&added[..4], &values[..3]) };
    let names: BTreeSet<&str> = own.chain(added.iter().copied()).collect();
    let mut changes = Vec::new();
    for name in names {
        // What is no text is tried every day only where a text may be missing.
        let is_own = payload.get(name).is_some();
        let values = if is_own && !IS_THOROUGH { &values[2..] } else { values };
        let all = values.iter().cloned().map(Some).chain([None]);
        let differs = |value: &Option<Value>| payload.get(name) != value.as_ref();
        changes.extend(all.filter(differs).map(|value| (name.to_owned(), value)));
    }
    changes
}

/// A log keeps a signature as ssh-keygen writes it, however it came in.
#[test]
fn a8_a_signature_in_the_log_has_one_spelling() {
    let target = Target::new(recovered());
    let (genuine, anchor) = (&target.genuine, reference(&target.genuine.log.0[0]));
    let at = *genuine.log.signed().last().expect("an act");
    let signature = text(&genuine.log.0[at]["payload"], "signature").to_owned();
    for other in [
        signature.clone(),
        format!("{signature}\n"),
        format!("\n{signature}"),
        signature.replace('\n', "\r\n"),
        signature.trim_end().to_owned(),
    ] {
        let mut log = Log(genuine.log.0.clone());
        log.0[at]["payload"]["signature"] = other.clone().into();
        let bytes = log.chain_after(genuine);
        publish(&target.life.hive, &log);
        assert_eq!(target.is_verified(&bytes, &anchor), other == signature, "{other:?}");
    }
}

/// An act on something that it cannot be about is a finding, whatever else is wrong with it.
#[test]
fn a8_a_signed_act_on_something_of_another_type_is_a_finding() {
    let target = Target::new(recovered());
    let (genuine, anchor) = (&target.genuine, reference(&target.genuine.log.0[0]));
    let at = *genuine.log.signed().last().expect("an act");
    for kind in ["RequirementVerified", "DecisionApproved", "SystemResumed", "ProjectResumed", "SettingsAdopted"] {
        for subject in genuine.log.0.iter().map(|event| &event["subject"]).collect::<HashSet<_>>() {
            let mut log = Log(genuine.log.0[..=at].to_vec());
            log.0[at]["event_type"] = kind.into();
            log.0[at]["subject"] = subject.clone();
            let bytes = log.chain_after(genuine);
            publish(&target.life.hive, &log);
            assert!(!target.is_verified(&bytes, &anchor), "{kind} of {subject}");
        }
    }
}

/// A forgery that is refused because it is malformed would show nothing about signatures.
#[test]
fn a8_a_forged_answer_passes_only_with_a_key_of_the_operators() {
    let target = Target::new(decisions());
    let (genuine, anchor) = (&target.genuine, reference(&target.genuine.log.0[0]));
    let with = |key| {
        let log = Log(genuine.log.0.clone());
        let mut attacker = Attacker { log, genuine, random: Random::new(5), key };
        attacks::answer_with_own(&mut attacker);
        let bytes = attacker.log.chain();
        publish(&target.life.hive, &attacker.log);
        let forged = target.oracle.forged(&attacker.log.0, &anchor);
        (target.is_verified(&bytes, &anchor), forged.is_none())
    };
    assert_eq!(with(third_key()), (true, true));
    assert_eq!(with(attackers_key()), (false, false));
}
