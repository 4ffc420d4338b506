//! A plan: the tasks of a mission, with what they depend on and what they run.
//!
//! Invariant: a plan is accepted as a whole or refused with one line; its tasks come in an order in which each one comes
//! after those that it depends on (`a_plan_is_sorted_by_what_its_tasks_depend_on`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::base::{Digest, Error, Result, limits, text};
use crate::event::{Kind, intake};

/// The tasks of a plan, dependencies first, else in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub tasks: Vec<PlannedTask>,
    /// Members besides the tasks.
    pub members: Map<String, Value>,
    /// The digest of the whole plan.
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTask {
    /// Its id in the plan.
    pub id: String,
    /// The ids of the tasks that it depends on.
    pub depends_on: Vec<String>,
    /// What it runs, if it has a command.
    pub command: Option<Vec<String>>,
    /// All other members: title, description, and what the toolkit does not know.
    pub members: Map<String, Value>,
}

/// How long a word of a command can be: a little less than what Linux can start.
const COMMAND_WORD_MAX_BYTES: usize = 120 * 1024;

/// The members that a plan has names of its own for.
const OWN: &[&str] = &["id", "depends_on", "command"];
/// The members of a proposed task that a plan may set.
const SETTABLE: &[&str] = &["title", "description", "steps", "priority", "destructive", "max_retries"];
/// The members of `MissionPlanned` that follow from the plan.
const FOLLOWS: &[&str] = &["tasks", "digest"];

impl Plan {
    /// Parses `{"tasks":[{"id","title","description"?,"depends_on"?,"command"?}]}`.
    pub fn parse(json: &str) -> Result<Plan> {
        let Value::Object(mut plan) = intake::parse(json.as_bytes(), 0)? else {
            return Err(Error::usage("a plan must be a JSON object with a member 'tasks'"));
        };
        let digest =
            Digest::of_bytes(serde_jcs::to_string(&plan).expect("parsed JSON has a canonical form").as_bytes());
        let Some(Value::Array(listed)) = plan.remove("tasks") else {
            return Err(Error::usage("a plan must have a member 'tasks', which is a list"));
        };
        if let Some(name) = FOLLOWS.iter().find(|name| plan.contains_key(**name)) {
            return Err(Error::usage(format!("a plan cannot have a member '{name}'")));
        }
        match (listed.len(), limits::PLAN_TASKS_MAX_COUNT) {
            (0, _) => return Err(Error::usage("the plan has no tasks")),
            (count, max) if count > max => {
                return Err(Error::usage(format!("the plan has {count} tasks; at most {max}")));
            }
            _ => {}
        }
        let tasks =
            listed.into_iter().enumerate().map(|(n, task)| read_task(n + 1, task)).collect::<Result<Vec<_>>>()?;
        Ok(Plan { tasks: sorted(tasks)?, members: plan, digest })
    }
}

fn read_task(number: usize, task: Value) -> Result<PlannedTask> {
    let wrong = |what: String| Error::usage(format!("task {number} of the plan {what}"));
    let Value::Object(mut members) = task else { return Err(wrong("is not an object".to_owned())) };
    let id = match members.get("id") {
        Some(Value::String(id)) if is_id(id) => id.clone(),
        _ => return Err(wrong("has no valid id; must be 1 to 64 letters, digits, '.', '_' or '-'".to_owned())),
    };
    let wrong = |what: &str| Error::usage(format!("task '{id}' of the plan {what}"));
    let command = match members.get("command") {
        None | Some(Value::Null) => None,
        Some(Value::String(script)) if !script.trim().is_empty() => {
            Some(vec!["sh".to_owned(), "-c".to_owned(), script.clone()])
        }
        Some(Value::Array(words)) if !words.is_empty() && words.iter().all(Value::is_string) => {
            Some(words.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        Some(_) => return Err(wrong("has an invalid command; must be a list of words, or a script for sh")),
    };
    if command.iter().flatten().any(|word| word.len() > COMMAND_WORD_MAX_BYTES) {
        return Err(wrong("has a command that is too long; put it into a script"));
    }
    let depends_on = match members.get("depends_on") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(ids)) if ids.iter().all(Value::is_string) => {
            ids.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(_) => return Err(wrong("has an invalid depends_on; must be a list of ids")),
    };
    members.retain(|name, _| !OWN.contains(&name.as_str()));
    let fields = Kind::TaskProposed.row().fields;
    let is_reserved = |name: &str| !SETTABLE.contains(&name) && fields.iter().any(|field| field.name == name);
    if let Some(name) = members.keys().find(|name| is_reserved(name)) {
        return Err(wrong(&format!("cannot have a member '{}'", text::cut(name, 40))));
    }
    match members.get("title") {
        Some(Value::String(title)) if title.contains(text::is_unsafe) => {
            return Err(wrong("has an invalid title; must be one line without control characters"));
        }
        Some(Value::String(title)) if !title.trim().is_empty() => {}
        _ => return Err(wrong("has no title")),
    }
    if members.get("description") == Some(&Value::Null) {
        members.remove("description");
    }
    match members.get("description") {
        None | Some(Value::String(_)) => Ok(PlannedTask { id, depends_on, command, members }),
        Some(_) => Err(wrong("has an invalid description; must be a string")),
    }
}

fn is_id(id: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    (1..=64).contains(&id.chars().count()) && id.chars().all(is_plain)
}

/// Sorts tasks so that each one comes after those that it depends on. Refuses ids that are given twice or are unknown,
/// and cycles.
fn sorted(tasks: Vec<PlannedTask>) -> Result<Vec<PlannedTask>> {
    let mut positions = BTreeMap::new();
    for (position, task) in tasks.iter().enumerate() {
        if positions.insert(task.id.as_str(), position).is_some() {
            return Err(Error::usage(format!("the plan has two tasks with the id '{}'", task.id)));
        }
    }
    for task in &tasks {
        if let Some(unknown) = task.depends_on.iter().find(|id| !positions.contains_key(id.as_str())) {
            let unknown = text::cut(unknown, 64);
            return Err(Error::usage(format!(
                "task '{}' of the plan depends on '{unknown}', which it does not have",
                task.id
            )));
        }
    }
    let mut order: Vec<usize> = Vec::new();
    while order.len() < tasks.len() {
        let is_free = |position: &usize| {
            let depends_on = tasks[*position].depends_on.iter();
            !order.contains(position) && depends_on.clone().all(|id| order.contains(&positions[id.as_str()]))
        };
        match (0..tasks.len()).find(is_free) {
            Some(next) => order.push(next),
            None => {
                let stuck = (0..tasks.len()).find(|position| !order.contains(position)).expect("one is left");
                let id = &tasks[stuck].id;
                return Err(Error::usage(format!(
                    "task '{id}' of the plan depends on itself, through others or directly"
                )));
            }
        }
    }
    Ok(order.into_iter().map(|position| tasks[position].clone()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_is_sorted_by_what_its_tasks_depend_on() {
        let plan = Plan::parse(
            &json!({"note": "x", "tasks": [
                {"id": "test", "title": "Test", "depends_on": ["build"], "command": ["make", "test"], "owner": "jo"},
                {"id": "docs", "title": "Docs", "command": null, "depends_on": null, "description": null},
                {"id": "build", "title": "Build", "command": "make"},
            ]})
            .to_string(),
        )
        .unwrap();
        let ids: Vec<&str> = plan.tasks.iter().map(|task| task.id.as_str()).collect();
        assert_eq!(ids, ["docs", "build", "test"]);
        assert_eq!(plan.tasks[1].command, Some(["sh", "-c", "make"].map(str::to_owned).to_vec()));
        assert_eq!(plan.tasks[2].members, json!({"title": "Test", "owner": "jo"}).as_object().unwrap().clone());
        assert_eq!(plan.members["note"], "x");
    }

    #[test]
    fn a_plan_that_cannot_be_followed_is_refused_with_one_line() {
        let task = |id: &str, after: &[&str]| json!({"id": id, "title": "x", "depends_on": after});
        for (plan, why) in [
            (json!([]), "a plan must be a JSON object with a member 'tasks'"),
            (json!({}), "a plan must have a member 'tasks', which is a list"),
            (json!({"tasks": []}), "the plan has no tasks"),
            (json!({"tasks": ["a"]}), "task 1 of the plan is not an object"),
            (
                json!({"tasks": [{"title": "x"}]}),
                "task 1 of the plan has no valid id; must be 1 to 64 letters, digits, '.', '_' or '-'",
            ),
            (json!({"tasks": [{"id": "a"}]}), "task 'a' of the plan has no title"),
            (
                json!({"tasks": [{"id": "a", "title": "x\nNEXT:NONE"}]}),
                "task 'a' of the plan has an invalid title; must be one line without control characters",
            ),
            (
                json!({"tasks": [{"id": "a", "title": "x", "job": true}]}),
                "task 'a' of the plan cannot have a member 'job'",
            ),
            (
                json!({"tasks": [{"id": "a", "title": "x", "command": []}]}),
                "task 'a' of the plan has an invalid command; must be a list of words, or a script for sh",
            ),
            (json!({"tasks": [task("a", &[]), task("a", &[])]}), "the plan has two tasks with the id 'a'"),
            (json!({"tasks": [task("a", &["b"])]}), "task 'a' of the plan depends on 'b', which it does not have"),
            (
                json!({"tasks": [task("c", &[]), task("a", &["b"]), task("b", &["a"])]}),
                "task 'a' of the plan depends on itself, through others or directly",
            ),
            (
                json!({"tasks": (0..101).map(|n| task(&n.to_string(), &[])).collect::<Vec<_>>()}),
                "the plan has 101 tasks; at most 100",
            ),
        ] {
            assert_eq!(Plan::parse(&plan.to_string()).unwrap_err().message, why);
        }
        let deep = format!("{{\"tasks\":{}{}}}", "[".repeat(40), "]".repeat(40));
        assert_eq!(Plan::parse(&deep).unwrap_err().message, "nested too deeply: an event has at most 32 levels");
    }
}
