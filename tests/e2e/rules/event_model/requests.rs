//! Random requests, most of them legal or nearly so.

use hiveforge::op::NewEvent;
use serde_json::{Value, json};

use super::legal_steps::{MOVED_ALONG, Rules};
use super::{Asked, Model, id_of};

/// What is asked for less often, or nothing would ever be built.
const ENDS: &[&str] = &[
    "RequirementRejected",
    "RequirementSuperseded",
    "RequirementImplemented",
    "RequirementVerified",
    "OscillationDetected",
    "DecisionRejected",
    "DecisionSuperseded",
    "TaskAborted",
    "ClaimExpired",
    "TaskFailed",
    "RunCrashed",
    "RunTimedOut",
    "ArtifactCorrupted",
    "EscalationClosed",
];

/// What the dice name, and how often: work takes more steps than wishes.
const OFTEN: [&str; 20] = [
    "requirement",
    "requirement",
    "decision",
    "decision",
    "decision",
    "decision",
    "task",
    "task",
    "task",
    "task",
    "task",
    "task",
    "run",
    "run",
    "run",
    "run",
    "artifact",
    "artifact",
    "constraint",
    "escalation",
];

/// xorshift: the same steps for the same seed, everywhere.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % sides
    }

    pub(super) fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

/// How many of each type the dice name, besides what is made along.
fn pool(entity: &str) -> usize {
    match entity {
        "requirement" => 100,
        "constraint" => 60,
        "run" => 3000,
        _ => 400,
    }
}

/// A payload that fits a kind; what it names need not exist.
pub(super) fn payload(dice: &mut Dice, kind: &str, agent: Option<&str>) -> Value {
    let task = format!("t{}", dice.roll(pool("task")));
    let requirement = format!("r{}", dice.roll(pool("requirement")));
    match kind {
        "RequirementProposed" => json!({"title": format!("wish {}", dice.roll(5))}),
        "RequirementAnalyzed" => json!({"analysis": format!("thought {}", dice.roll(3))}),
        "TaskProposed" if dice.one_in(3) => json!({"title": "job"}),
        "TaskProposed" => json!({"title": "job", "requirement_id": requirement}),
        "TaskAssigned" if dice.one_in(3) => {
            let stranger = dice.one_in(2).then(|| format!("agent:z{}", dice.roll(6)));
            json!({"holder": stranger.as_deref().or(agent).unwrap_or("user:jo"), "lease_seconds": 10_000_000})
        }
        "DecisionRequested" if dice.one_in(2) => {
            json!({"kind": "requirement_approval", "target": format!("requirement:{requirement}"), "summary": "?"})
        }
        "DecisionRequested" => {
            let (summary, change) = match dice.one_in(3) {
                true => ("Lift the constraint: so", json!({"do": "remove"})),
                false => ("Apply the constraint: so", json!({"do": "apply", "text": "so"})),
            };
            let target = format!("constraint:c{}", dice.roll(pool("constraint")));
            json!({"kind": "constraint_change", "target": target, "summary": summary, "change": change})
        }
        "ConstraintApplied" => json!({"text": "so"}),
        "TaskFailed" if dice.one_in(3) => {
            json!({"error_class": "permanent", "reason": "x", "escalate": dice.one_in(2)})
        }
        "TaskFailed" => json!({"error_class": "transient", "reason": "x"}),
        "RunStarted" => json!({"task_id": task}),
        "RunFinished" if dice.one_in(2) => json!({"success": dice.one_in(2)}),
        "ArtifactDeclared" if !dice.one_in(4) => json!({"kind": "text", "task_id": task}),
        "ArtifactDeclared" => json!({"kind": "code"}),
        "EscalationAcknowledged" | "EscalationClosed" => json!({"reason": "seen"}),
        "ArtifactMaterialized" => json!({"sha256": "x", "size_bytes": dice.roll(9)}),
        _ => json!({}),
    }
}

/// A request out of nothing: mostly one that is legal, or nearly.
pub(super) fn invent(dice: &mut Dice, rules: &Rules, model: &Model, serial: &mut u64) -> Asked {
    if !model.keys.is_empty() && dice.one_in(12) {
        let known: Vec<&Asked> = model.keys.values().collect();
        let mut again = (*dice.pick(&known)).clone();
        if dice.one_in(4) {
            again.payload.insert("other".to_owned(), json!(true));
        }
        return again;
    }
    let entity = *dice.pick(&OFTEN);
    // A letter like `d` and four digits would read like a reference.
    let letter = match entity {
        "run" => "run",
        "decision" => "dec",
        "escalation" => "esc",
        entity => &entity[..1],
    };
    let mut subject = format!("{entity}:{letter}{}", dice.roll(pool(entity)));
    if let Some(known) = model.made.get(entity).filter(|_| dice.one_in(2)) {
        // What is made along has an id that is known only once it is recorded.
        subject = Some(dice.pick(known)).filter(|s| !s.contains('?')).cloned().unwrap_or(subject);
    }
    let from = model.state(&subject);
    let legal: Vec<&str> = rules
        .keys()
        .filter(|rule| rule.0 == entity && !MOVED_ALONG.contains(&(rule.0, rule.2)))
        .filter(|rule| (rule.1 == from && (!ENDS.contains(&rule.2) || dice.one_in(8))) || dice.one_in(40))
        .map(|rule| rule.2)
        .collect();
    let kind = match legal.as_slice() {
        _ if from != "-" && dice.one_in(25) => "EscalationRequired",
        [] => rules.keys().filter(|rule| rule.0 == entity).map(|rule| rule.2).next().unwrap(),
        legal => dice.pick(legal),
    };
    let holder = model.held_by(entity, &subject);
    let agent = match dice.one_in(30) {
        true => Some(format!("agent:z{}", dice.roll(20))),
        // Mostly, the holder of a task works on it.
        false => holder.filter(|holder| holder.starts_with("agent:") && !dice.one_in(4)),
    };
    let mut payload = payload(dice, kind, agent.as_deref());
    // Mostly, what a payload names is where it should be.
    let (member, entity, states) = match kind {
        "RunStarted" => ("task_id", "task", &["Assigned"][..]),
        "TaskProposed" if payload.get("requirement_id").is_some() => {
            ("requirement_id", "requirement", &["Analyzed", "Approved", "Implemented"][..])
        }
        "ArtifactDeclared" if payload.get("task_id").is_some() => ("task_id", "task", &["Running", "Succeeded"][..]),
        _ => ("", "", &[][..]),
    };
    let fitting = model.made.get(entity).into_iter().flatten();
    let fitting: Vec<&String> = fitting
        .filter(|s| states.contains(&model.state(s)) && !s.contains('?') && model.count(s, "tasks_open") < 2)
        .collect();
    if !fitting.is_empty() && !dice.one_in(5) {
        payload[member] = json!(id_of(fitting[dice.roll(fitting.len())]));
    }
    // Some work is repeated, for the same requirement.
    if kind == "TaskProposed" && dice.one_in(5) {
        let known =
            model.made.get("task").into_iter().flatten().filter(|task| !task.contains('?') && **task != subject);
        let ended: Vec<&String> = known.filter(|task| model.has_ended(task) || dice.one_in(50)).collect();
        if !ended.is_empty() {
            let again = *dice.pick(&ended);
            payload["rework_of"] = json!(id_of(again));
            if let Some(requirement) = model.text(again, "requirement_id") {
                payload["requirement_id"] = json!(requirement);
            }
        }
    }
    // Mostly, the holder of a task starts it.
    let begins = payload.get("task_id").filter(|_| kind == "RunStarted").and_then(Value::as_str);
    let begins = begins.and_then(|task| model.held_by("task", &format!("task:{task}")));
    let agent = begins.filter(|holder| holder.starts_with("agent:") && !dice.one_in(8)).or(agent);
    *serial += 1;
    Asked {
        kind,
        subject,
        payload: payload.as_object().unwrap().clone(),
        key: dice.one_in(3).then(|| format!("key-{serial}")),
        agent,
    }
}

/// The request, with its subject named in one of the ways that lead to it.
pub(super) fn request(dice: &mut Dice, model: &Model, asked: &Asked) -> NewEvent {
    let id = asked.subject.split(':').nth(1).unwrap().to_owned();
    let subject = match (dice.roll(4), model.reference(&asked.subject)) {
        (0, Some(reference)) => reference,
        (1, Some(reference)) => reference.to_lowercase(),
        (2, Some(_)) => id,
        _ => asked.subject.clone(),
    };
    NewEvent {
        event_type: asked.kind.to_owned(),
        subject: Some(subject),
        payload: asked.payload.clone(),
        parents: Vec::new(),
        key: asked.key.clone(),
        actor: asked.agent.clone(),
    }
}
