//! The blocks of hf-poll.

use crate::call::Words;
use crate::model::Phase::Proposed;
use crate::model::{Phase, World};

/// A block: its lines but SUM, and what SUM begins with.
#[derive(Debug)]
pub struct Block {
    pub lines: Vec<String>,
    pub sum: String,
}

/// What to do next about a job; `limits` are the caller's interval and maximum, and the option that says who calls.
pub fn next(world: &World, name: &str, limits: &str) -> String {
    let task = &world.tasks[name];
    let is_over = !task.is_open();
    let unapproved = task.requirement.as_ref().is_some_and(|name| world.requirements[name].phase != Phase::Approved);
    let needs_approval = task.phase == Proposed && (unapproved || task.destructive && !task.approved);
    let next = match task.phase {
        _ if task.succeeded() => "NONE",
        _ if is_over && task.by_person => "ASK operator",
        _ if is_over => "PATCH",
        _ if needs_approval || world.stop.is_some() => "ASK operator",
        _ => return format!("ACTION hf-poll {name}{limits}"),
    };
    next.to_owned()
}

/// What hf-poll must say about a job after it has waited.
pub fn block(world: &World, words: &Words) -> Option<Block> {
    let (name, limits) = words.plain.split_first()?;
    let limits: String = limits.iter().map(|number| format!(" {number}")).collect();
    let limits = words.option("actor").map_or(limits.clone(), |actor| format!("{limits} --actor {actor}"));
    let Some(task) = world.tasks.get(name) else {
        return Some(of("99", "NOT_FOUND", "NONE", Vec::new(), String::new()));
    };
    if !task.job {
        return Some(of("64", "USAGE", &format!("ACTION hf-task show {name}"), Vec::new(), String::new()));
    }
    let next = next(world, name, &limits);
    let log = match world.runs_of(name) {
        0 => "LOGREF:NONE".to_owned(),
        1 => format!("LOGREF:logs/L-{}.txt", &name[2..]),
        n => format!("LOGREF:logs/L-{}-{n}.txt", &name[2..]),
    };
    Some(match task.phase {
        _ if task.succeeded() => {
            let said = if task.command[0].ends_with("ok") { "All tests passed" } else { "" };
            of("0", "DONE", &next, Vec::new(), said.to_owned())
        }
        Phase::Aborted | Phase::Archived => {
            let mut more = vec!["LAST5:".to_owned()];
            // An earlier attempt that failed is not how it ended.
            let failure = task.failure.as_ref().filter(|_| task.failed_for_good);
            let ended = failure.map(|(_, reason)| reason.replace("exit code", "exit"));
            more.extend(task.command[0].ends_with("fail").then(|| "oops".to_owned()).filter(|_| ended.is_some()));
            more.push(log);
            let sum = ended.filter(|how| how.starts_with("exit") || how.starts_with("signal"));
            of("1", "FAIL", &next, more, sum.unwrap_or_default())
        }
        _ => of("2", "RUNNING", &next, Vec::new(), String::new()),
    })
}

fn of(exit: &str, status: &str, next: &str, more: Vec<String>, sum: String) -> Block {
    let mut lines = vec![format!("EXIT:{exit}"), format!("STATUS:{status}"), format!("NEXT:{next}")];
    lines.push("SUM:".to_owned());
    lines.extend(more);
    Block { lines, sum }
}
