//! The reply of `hf-task explain`.

use std::collections::BTreeSet;

use super::status::unattended;
use super::{QUOTE_MAX, TITLE_MAX, cut};
use crate::clock::time;
use crate::model::Phase::{Aborted, Approved, Archived, Assigned, Invalidated, Proposed, Ready, Running, Succeeded};
use crate::model::{Task, World};

/// More lines than this are cut.
const LINES_MAX: usize = 20;

/// The lines of the reply after NEXT, as an operator sees them.
pub fn explain(recorded: &World, now: i64, name: &str) -> Vec<String> {
    let world = recorded.applied(now);
    let task = &world.tasks[name];
    let mut said = Vec::new();
    if task.is_open() {
        said.extend(standing(&world, &task.project));
    }
    because(&world, now, name, &mut BTreeSet::new(), &mut said);
    if said.len() > LINES_MAX {
        said.truncate(LINES_MAX);
        said.push("… (chain cut)".to_owned());
    }
    let sum = format!("SUM:{name} is {:?}: {}", task.phase, cut(&task.title, TITLE_MAX));
    std::iter::once(sum).chain(said.into_iter().map(|line| format!("BECAUSE:{line}"))).collect()
}

/// Why nothing goes on in a project.
fn standing(world: &World, project: &str) -> Option<String> {
    if let Some(stop) = &world.stop {
        let reason = stop.reason.clone().unwrap_or_default();
        return Some(format!("everything was stopped at {} by {}: {reason}", time(stop.at), stop.by));
    }
    let act = world.projects.get(project)?.act.as_ref()?;
    let (at, by, reason) = (time(act.at), &act.by, act.reason.clone().unwrap_or_default());
    if world.is_paused(project) {
        return Some(format!("project {project} was paused at {at} by {by}: {reason}"));
    }
    world.is_archived(project).then(|| format!("project {project} was archived at {at}"))
}

/// The lines about one task, and about those that it waits for.
fn because(world: &World, now: i64, name: &str, told: &mut BTreeSet<String>, said: &mut Vec<String>) {
    if !told.insert(name.to_owned()) {
        return;
    }
    let task = &world.tasks[name];
    match task.phase {
        Proposed | Ready => waiting(world, now, name, task, told, said),
        Assigned | Running => held(world, now, name, task, said),
        Succeeded | Aborted | Archived => ended(world, name, task, said),
        _ => said.extend(failure(task)),
    }
    if let Some(repeated) = &task.rework_of {
        let why = task.rework_reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        said.push(format!("{name} repeats {repeated}{why}"));
    }
    if task.is_open() && world.lost.contains(name) {
        said.push(format!("{name}: {}", unattended(world, name)));
    }
}

/// Since when a task is in its phase; with the reason if that is only due.
fn since(task: &Task) -> String {
    match &task.due {
        Some((at, why)) => format!("{} (due: {why})", time(*at)),
        None => time(task.since),
    }
}

fn waiting(world: &World, now: i64, name: &str, task: &Task, told: &mut BTreeSet<String>, said: &mut Vec<String>) {
    said.push(format!("{name} has been {:?} since {}", task.phase, since(task)));
    if task.phase == Ready && world.is_unblocked(task) {
        said.push(format!("{name} has not been claimed"));
    }
    said.extend(failure(task));
    if let Some(requirement) = task.requirement.as_ref().filter(|name| world.requirements[*name].phase != Approved) {
        said.push(format!("requirement {requirement} is {:?}, not Approved", world.requirements[requirement].phase));
        said.extend(questions(world, requirement));
    }
    for other in task.after.iter().filter(|other| !world.is_done(other)) {
        said.push(format!("it waits for {other}, which is {:?}", world.tasks[other].phase));
        because(world, now, other, told, said);
    }
    if task.destructive && !task.approved {
        said.push("it is destructive and requires approval by an operator".to_owned());
        said.extend(questions(world, name));
    }
}

/// The open questions about something.
fn questions(world: &World, about: &str) -> Vec<String> {
    let line = |name: &str, asked, summary: &str| {
        format!("{name} has been open since {}: {}", time(asked), cut(summary, QUOTE_MAX))
    };
    world.open_decisions(about).map(|(name, decision)| line(name, decision.asked, &decision.summary)).collect()
}

fn held(world: &World, now: i64, name: &str, task: &Task, said: &mut Vec<String>) {
    let holder = task.holder.clone().unwrap_or_default();
    let until = match world.lease_until(task, now) {
        Some(until) => format!(" until {}", time(until)),
        None if world.is_paused(&task.project) && task.lease.is_some() => {
            " (the lease starts again when the project is resumed)".to_owned()
        }
        None => String::new(),
    };
    let not_started = if task.phase == Assigned { ", but not started" } else { "" };
    said.push(format!("{name} is claimed by {holder}{until}{not_started}"));
    if let Some(constraint) = &task.put_first_by {
        said.push(format!("{constraint} put it first: {}", world.constraints[constraint].text));
    }
    said.extend(failure(task));
    if let (Running, Some(run)) = (task.phase, &task.run) {
        let (began, heard) = (time(world.runs[run].began), time(world.runs[run].heard));
        said.push(format!("{run} has been running since {began}, last heartbeat {heard}"));
    }
}

fn ended(world: &World, name: &str, task: &Task, said: &mut Vec<String>) {
    let end = task.end.as_ref().expect("it has ended");
    if task.phase == Archived {
        said.push(format!("{name} was archived at {}", time(task.since)));
    }
    let at = match &task.due {
        Some((at, why)) => format!("{} (due: {why})", time(*at)),
        None => time(end.at),
    };
    if task.succeeded() {
        said.push(format!("{name} succeeded at {at}"));
    } else {
        let by = if end.by.starts_with("core:") { String::new() } else { format!(" by {}", end.by) };
        let reason = end.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        said.push(format!("{name} was aborted at {at}{by}{reason}"));
    }
    if let Some(constraint) = &task.put_first_by {
        said.push(format!("{constraint} put it first: {}", world.constraints[constraint].text));
    }
    said.extend(failure(task));
    let results = world.artifacts.iter().filter(|(_, result)| result.task.as_deref() == Some(name));
    for (result, known) in results.filter(|(_, result)| !task.failed_for_good && result.phase == Invalidated) {
        let why = known.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        said.push(format!("its result {result} was rejected{why}"));
    }
    let rework = world.tasks.iter().rfind(|(_, other)| other.rework_of.as_deref() == Some(name));
    if let Some((rework, _)) = rework {
        said.push(format!("{rework} repeats the work and is {:?}", world.tasks[rework].phase));
    }
}

/// The newest failure of a task, and what was made of it.
fn failure(task: &Task) -> Option<String> {
    let (class, reason) = task.failure.as_ref()?;
    let which = if task.failed_for_good { "it" } else { "an earlier attempt" };
    let retried = match task.retries {
        0 => "not retried".to_owned(),
        1 => "retried once".to_owned(),
        n => format!("retried {n} times"),
    };
    Some(format!("{which} failed ({class}): {reason}; {retried}"))
}
