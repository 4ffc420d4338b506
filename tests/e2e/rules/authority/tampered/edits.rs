//! Tamperings that change what is recorded, in its place.

use serde_json::{Value, json};

use super::attacks::Attacker;
use super::forge::{attackers_key, signed_by, text};

pub fn swap_members(a: &mut Attacker<'_>) {
    let (one, other) = (a.act(), a.act());
    let all = [&["signature"][..], &["statement"], &["signature", "statement", "signed_by"]];
    for member in a.pick(&all).expect("members") {
        let (first, second) = (a.payload(one)[*member].clone(), a.payload(other)[*member].clone());
        a.payload(one).insert((*member).to_owned(), second);
        a.payload(other).insert((*member).to_owned(), first);
    }
}

pub fn change_member(a: &mut Attacker<'_>) {
    let at = a.act();
    let ours = ["statement", "signature", "signed_by", "act"];
    let mut names: Vec<String> = a.payload(at).keys().filter(|name| !ours.contains(&name.as_str())).cloned().collect();
    names.extend(
        ["rationale", "comment", "reason", "chosen_option", "by", "compromised", "settings", "more"].map(str::to_owned),
    );
    let name = a.pick(&names).expect("a member");
    let values =
        [json!("forged"), json!(""), json!(7), json!(true), json!(false), json!(null), json!(["x"]), json!({"x": 1})];
    match a.random.below(4) {
        0 => drop(a.payload(at).remove(&name)),
        1 if a.payload(at).get(&name).is_some_and(Value::is_object) => {
            // A single member of the settings.
            let inner = a.payload(at).get_mut(&name).and_then(Value::as_object_mut).expect("an object");
            let first = inner.keys().next_back().cloned().unwrap_or_default();
            inner.insert(first, json!(9));
        }
        _ => {
            let value = a.pick(&values).expect("a value");
            a.payload(at).insert(name, value);
        }
    }
}

pub fn strip(a: &mut Attacker<'_>) {
    let at = a.act();
    let sets = [
        &["signature"][..],
        &["statement"],
        &["signed_by"],
        &["signature", "statement"],
        &["signature", "statement", "signed_by", "act"],
    ];
    for member in a.pick(&sets).expect("members") {
        a.payload(at).remove(*member);
    }
}

pub fn name_signer(a: &mut Attacker<'_>) {
    let at = a.act();
    let own = signed_by(&attackers_key(), "")["signed_by"].clone();
    let signers: Vec<Value> = a.genuine.log.0.iter().map(|event| event["payload"]["signed_by"].clone()).collect();
    let signer = if a.chance(2) { Some(own) } else { a.pick(&signers) };
    a.payload(at).insert("signed_by".to_owned(), signer.expect("a signer"));
}

pub fn turn_subject(a: &mut Attacker<'_>) {
    let at = a.act();
    let entity = text(&a.log.0[at], "subject").split(':').next().unwrap_or_default().to_owned();
    let same = |event: &&Value| text(event, "subject").split(':').next() == Some(&entity);
    let subjects: Vec<Value> = a.log.0.iter().filter(same).map(|event| event["subject"].clone()).collect();
    a.log.0[at]["subject"] = a.pick(&subjects).expect("itself");
}

pub fn turn_kind(a: &mut Attacker<'_>) {
    let at = a.act();
    let kinds = [
        "DecisionApproved",
        "DecisionRejected",
        "DecisionSuperseded",
        "RequirementApproved",
        "RequirementVerified",
        "RequirementSuperseded",
        "RequirementRejected",
        "SystemResumed",
        "ProjectResumed",
        "SettingsAdopted",
        "SettingsChanged",
        "OperatorKeyAdded",
        "OperatorKeyRemoved",
    ];
    a.log.0[at]["event_type"] = a.pick(&kinds).expect("a kind").into();
}

pub fn turn_actor(a: &mut Attacker<'_>) {
    let at = a.act();
    a.log.0[at]["actor"] = a.actor().into();
    if a.chance(2) {
        for member in ["signature", "statement", "signed_by", "act"] {
            a.payload(at).remove(member);
        }
    }
}

pub fn change_question(a: &mut Attacker<'_>) {
    let asked: Vec<usize> = (0..a.log.0.len()).filter(|n| a.log.0[*n]["event_type"] == "DecisionRequested").collect();
    let Some(at) = a.pick(&asked) else { return };
    let others: Vec<Value> = asked.iter().map(|other| a.log.0[*other]["payload"].clone()).collect();
    let other = a.pick(&others).expect("itself");
    match a.random.below(4) {
        0 => a.log.0[at]["payload"] = other,
        1 => a.log.0[at]["actor"] = a.actor().into(),
        _ => {
            let member = a.pick(&["summary", "target", "kind", "target_hash"]).expect("a member");
            a.log.0[at]["payload"][member] = other[member].clone();
        }
    }
}

pub fn change_target(a: &mut Attacker<'_>) {
    let kinds = ["RequirementProposed", "RequirementAnalyzed", "TaskProposed"];
    let places: Vec<usize> = (0..a.log.0.len()).filter(|n| kinds.contains(&text(&a.log.0[*n], "event_type"))).collect();
    let Some(at) = a.pick(&places) else { return };
    let member = a.pick(&["title", "analysis", "destructive", "requirement_id"]).expect("a member");
    match a.chance(2) {
        true => drop(a.payload(at).remove(member)),
        false => drop(a.payload(at).insert(member.to_owned(), json!("Something else"))),
    }
}

pub fn change_statement(a: &mut Attacker<'_>) {
    let at = a.act();
    let statement = text(&a.log.0[at]["payload"], "statement").to_owned();
    let lines: Vec<&str> = statement.lines().collect();
    let n = a.random.below(lines.len() as u64) as usize;
    let without: String =
        lines.iter().enumerate().filter(|(m, _)| *m != n).map(|(_, line)| format!("{line}\n")).collect();
    let all = [
        without,
        statement.replace('\n', "\r\n"),
        format!("{statement}\n"),
        format!("{statement}comment: forged\n"),
        statement.trim_end().to_owned(),
        statement.replace(lines[n], &format!("{} ", lines[n])),
        statement.replace("approve", "reject"),
        statement.replace("act 1 of 1", "act 1 of 2"),
    ];
    let changed = a.pick(&all).expect("a statement");
    a.payload(at).insert("statement".to_owned(), changed.into());
}

pub fn respell(a: &mut Attacker<'_>) {
    let at = a.act();
    let signature = text(&a.log.0[at]["payload"], "signature").to_owned();
    let lines: Vec<&str> = signature.lines().collect();
    let body = lines[1..lines.len() - 1].concat();
    let all = [
        signature.trim_end().to_owned(),
        format!("{signature}\n"),
        format!("\n{signature}"),
        signature.replace('\n', "\r\n"),
        format!("{}\n{body}\n{}\n", lines[0], lines[lines.len() - 1]),
        signature.replace('=', ""),
        format!("{signature}{signature}"),
        signature.replacen('U', "V", 1),
    ];
    let changed = a.pick(&all).expect("a signature");
    a.payload(at).insert("signature".to_owned(), changed.into());
}

pub fn renumber_act(a: &mut Attacker<'_>) {
    let at = a.act();
    let numbers = [json!(0), json!(1), json!(2), json!(3), json!("1"), json!(-1), json!(null)];
    let number = a.pick(&numbers).expect("a number");
    a.payload(at).insert("act".to_owned(), number);
}

pub fn split_unit(a: &mut Attacker<'_>) {
    let at = a.act();
    let unit = a.log.unit(at);
    if unit.len() > 1 {
        let middle = unit.start + 1 + a.random.below(unit.len() as u64 - 1) as usize;
        a.log.renumber(unit.start..middle);
        a.log.renumber(middle..unit.end);
    }
}

pub fn change_time(a: &mut Attacker<'_>) {
    let at = a.act();
    let times = ["2026-01-31T12:00:00Z", "2026-02-01T12:00:00Z", "1999-01-01T00:00:00Z", "2026-01-31T12:01:00Z"];
    a.log.0[at]["timestamp"] = a.pick(&times).expect("a time").into();
}
