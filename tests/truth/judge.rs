//! Compares what was recorded and said with what the model says.

use crate::call::Call;
use crate::clock::time;
use crate::life::Wrong;
use crate::log::Event;
use crate::model::{Phase, World};
use crate::place::Reply;
use crate::say;
use crate::say::reply::Expected;
use crate::say::status::{Asker, Outside};

/// Events about lines of activity and machines, which no answer here depends on.
fn is_ignored(kind: &str) -> bool {
    ["Branch", "Thread", "Note", "Message", "Settings", "Tail"].iter().any(|prefix| kind.starts_with(prefix))
}

/// Judges the events that a command recorded, batch by batch, and applies them.
pub fn events(world: &mut World, fresh: &[Event], now: i64) -> Result<(), Wrong> {
    let mut rest = fresh;
    while let Some(first) = rest.first() {
        let size = rest.len().min(first.batch.1 as usize);
        let (batch, after) = rest.split_at(size);
        let mut imagined = world.clone();
        let mut follows: Vec<String> = Vec::new();
        for event in batch.iter().filter(|event| event.actor != "core:reactor" && !is_ignored(&event.kind)) {
            timely(&imagined, event, now)?;
            let said = imagined.unfold(event);
            follows.extend(said.iter().map(|event| told(&imagined, event)));
        }
        for event in batch {
            world.take(event);
        }
        let recorded = batch.iter().filter(|event| event.actor == "core:reactor" && !is_ignored(&event.kind));
        let mut recorded: Vec<String> = recorded.map(|event| told(world, event)).collect();
        recorded.sort();
        follows.sort();
        if recorded != follows {
            let causes: Vec<String> =
                batch.iter().filter(|e| e.actor != "core:reactor").map(|event| told(world, event)).collect();
            let (missing, more) = (without(&follows, &recorded), without(&recorded, &follows));
            let sort = |all: &[String]| all.iter().map(|line| kind_of(line)).collect::<Vec<_>>().join("+");
            return Err(Wrong::new(
                format!("consequences -{} +{}", sort(&missing), sort(&more)),
                format!("after {causes:#?}\nmissing: {missing:#?}\nrecorded, but does not follow: {more:#?}"),
            ));
        }
        rest = after;
    }
    Ok(())
}

/// How many events came before what supervisors recorded by themselves: the beginning and the end of a job's run.
pub fn own(world: &World, fresh: &[Event]) -> usize {
    let mut from = 0;
    while let Some(first) = fresh.get(from) {
        let batch = &fresh[from..fresh.len().min(from + first.batch.1 as usize)];
        let fires = batch.iter().any(|event| event.kind == "TaskProposed");
        let of_job = |event: &Event| match event.kind.as_str() {
            "RunStarted" => event.text("task_id").map(|id| world.name(&format!("task:{id}"))),
            "RunFinished" | "RunCrashed" => world.runs.get(&world.name(&event.subject)).map(|run| run.task.clone()),
            _ => None,
        };
        let by_supervisor = |event: &Event| {
            !event.actor.starts_with("core:")
                && of_job(event).is_some_and(|name| world.tasks.get(&name).is_none_or(|task| task.job))
        };
        if !fires && batch.iter().any(by_supervisor) {
            break;
        }
        from += batch.len();
    }
    from
}

fn kind_of(line: &str) -> String {
    line.split(' ').next().unwrap_or_default().to_owned()
}

fn without(all: &[String], some: &[String]) -> Vec<String> {
    let mut rest = some.to_vec();
    let mut left = Vec::new();
    for line in all {
        match rest.iter().position(|other| other == line) {
            Some(at) => drop(rest.remove(at)),
            None => left.push(line.clone()),
        }
    }
    left
}

/// A time-out may be recorded only when it is due, with the time at which it was.
fn timely(world: &World, event: &Event, now: i64) -> Result<(), Wrong> {
    if event.kind == "ClockStepped" {
        return Err(Wrong::new("ClockStepped", "no clock was set; a supervisor lives at another time"));
    }
    if !matches!(event.kind.as_str(), "ClaimExpired" | "RunTimedOut" | "SessionExpired" | "ApprovalTimedOut") {
        return Ok(());
    }
    let name = world.name(&event.subject);
    let late = world.late(now);
    let said = event.text("due_at").unwrap_or_default();
    match late.iter().find(|due| due.subject == name && due.kind == event.kind) {
        None => Err(Wrong::new(format!("{} too early", event.kind), format!("{} of {name}, due {said}", event.kind))),
        Some(due) if time(due.at) != said => {
            let text = format!("{} of {name} says due_at {said}, not {}", event.kind, time(due.at));
            Err(Wrong::new(format!("{} due_at", event.kind), text))
        }
        Some(_) => Ok(()),
    }
}

/// An event in one line, with what matters about it.
fn told(world: &World, event: &Event) -> String {
    let name = world.name(&event.subject);
    let member = |member: &str| event.text(member).map(|text| format!(" {member}={text}")).unwrap_or_default();
    let what = match event.kind.as_str() {
        "DecisionRequested" => {
            let target = world.name(&event.text("target").unwrap_or_default());
            return format!("DecisionRequested {target} {}", event.text("summary").unwrap_or_default());
        }
        "TaskAborted" | "EscalationRequired" | "RequirementRejected" | "RunCrashed" | "SessionEnded" => {
            member("reason")
        }
        "TaskFailed" => format!("{}{}", member("error_class"), member("reason")),
        "TaskAssigned" => member("holder"),
        "RunFinished" => format!(" {}", event.flag("success")),
        "SessionCut" => format!(" {:?}", event.number("seconds")),
        "DecisionRejected" => member("rationale"),
        _ => String::new(),
    };
    format!("{} {name}{what}", event.kind)
}

/// Commands that choose among tasks, and the watchdog, settle what is late.
pub fn settled(world: &World, call: &Call, now: i64) -> Result<(), Wrong> {
    if call.line != "hf-watchdog" {
        return Ok(());
    }
    match world.late(now).first() {
        None => Ok(()),
        Some(left) => Err(Wrong::new("left late", format!("hf-watchdog left {left:?}"))),
    }
}

/// The verdict of hf-watchdog: no, if an agent breaks a rule after everything late was settled; yes, if nothing was
/// late, lost or broken.
pub fn verdict(before: &World, after: &World, now: i64, call: &Call, reply: &Reply) -> Result<(), Wrong> {
    let broken = |world: &World| {
        let active = world.agents.iter().filter(|(_, agent)| agent.phase == Phase::Active);
        active.filter(|(name, _)| !world.anomalies(name, now).is_empty()).count()
    };
    let (was, is) = (broken(before), broken(after));
    let unsettled = before.late(now).len() + before.lost.len();
    let is_true = match reply.exit {
        // Jobs that the tick started again may have changed something since.
        0 => was == 0 || is == 0,
        _ => was + is + unsettled > 0,
    };
    if is_true {
        return Ok(());
    }
    let text = format!(
        "{}\n{was} agents broke a rule, {is} still do, {unsettled} things were late or lost\n{}",
        call.shown(),
        reply.text
    );
    Err(Wrong::new(format!("verdict {} of hf-watchdog", reply.get("STATUS")), text))
}

/// A log that only commands have written keeps every rule.
pub fn audit(reply: &Reply) -> Result<(), Wrong> {
    match (reply.exit, reply.get("POLICY")) {
        (0, "OK") => Ok(()),
        _ => {
            let finding = reply.get("FINDING").split_once(": ").map_or("", |(_, finding)| finding);
            Err(Wrong::new(format!("audit: {}", sort_of(finding)), reply.text.clone()))
        }
    }
}

/// Compares EXIT, STATUS and NEXT.
pub fn reply(call: &Call, reply: &Reply, expected: &Expected) -> Result<(), Wrong> {
    let said = Said { exit: reply.exit, status: reply.get("STATUS"), next: reply.get("NEXT") };
    let next = said.next == expected.next || expected.or_next.iter().any(|other| other == said.next);
    if expected.fits(said.exit, said.status) && next {
        return Ok(());
    }
    let words = call.words();
    let kind = |next: &str| next.split(' ').take(3).collect::<Vec<_>>().join(" ");
    let sort = format!(
        "reply {} {}: {} {} instead of {} {}",
        words.program,
        words.verb(),
        said.status,
        kind(said.next),
        expected.status,
        kind(&expected.next)
    );
    Err(Wrong::new(sort, format!("{}\nexpected {expected:?}\nbut the reply is\n{}", call.shown(), reply.text)))
}

/// Compares every line of a block of hf-poll; of SUM only how it must begin.
pub fn poll(recorded: &World, now: i64, call: &Call, reply: &Reply) -> Result<(), Wrong> {
    let world = &recorded.applied(now);
    let Some(block) = say::poll::block(world, &call.words()) else { return Ok(()) };
    let is_sum = |line: &&str| line.starts_with("SUM:");
    let lines: Vec<&str> = reply.text.lines().map(|line| if is_sum(&line) { "SUM:" } else { line }).collect();
    let expected: Vec<&str> = block.lines.iter().map(String::as_str).collect();
    same(&call.line.replacen("hf-", "", 1), &expected, &lines, 0)?;
    if !reply.get("SUM").starts_with(&block.sum) || reply.get("SUM").is_empty() {
        let text = format!("{}\nSUM must begin with '{}'\n{}", call.shown(), block.sum, reply.text);
        return Err(Wrong::new("poll SUM", text));
    }
    Ok(())
}

/// An agent that waits is heard; one that has nothing to wait for records nothing of the kind, and nor does anybody else.
pub fn waited(
    before: &World,
    after: &World,
    fresh: &[Event],
    now: i64,
    call: &Call,
    reply: &Reply,
) -> Result<(), Wrong> {
    let words = call.words();
    let actor = words.option("actor").map(str::to_owned);
    let caller = actor.or_else(|| call.variable("HF_AGENT").map(|name| format!("agent:{name}")));
    let agent = caller.as_deref().and_then(|caller| caller.strip_prefix("agent:")).unwrap_or_default();
    let is_sign = |event: &&Event| matches!(event.kind.as_str(), "AgentWaited" | "ClaimRenewed" | "Heartbeat");
    let is_own = |event: &Event| caller.as_ref() == Some(&event.actor);
    let of_job =
        |event: &Event| after.runs.get(&after.name(&event.subject)).is_some_and(|run| after.tasks[&run.task].job);
    let mut signs = fresh.iter().filter(is_sign).filter(|event| !of_job(event));
    let has_waited = reply.get("STATUS") == "RUNNING";
    let was_over = words.plain.first().and_then(|name| before.tasks.get(name)).is_none_or(|task| !task.is_open());
    if let Some(event) = signs.find(|event| !is_own(event) || was_over) {
        return Err(Wrong::new(format!("poll records {}", event.kind), format!("{}\n{event:?}", call.shown())));
    }
    // Who was asked to leave, or whose session is over, is not heard.
    let is_heard = call.variable("HF_SESSION").is_none() && after.agents.contains_key(agent);
    let missing = if has_waited && is_heard { after.unheard(agent, now) } else { Vec::new() };
    match missing.is_empty() {
        true => Ok(()),
        false => {
            let text = format!("{} at {}\nmissing: {missing:?}\n{}", call.shown(), time(now), reply.text);
            Err(Wrong::new("poll is not heard", text))
        }
    }
}

struct Said<'a> {
    exit: i32,
    status: &'a str,
    next: &'a str,
}

/// Compares every line of hf-status in the shell of the caller.
pub fn status_for(world: &World, now: i64, outside: &Outside, call: &Call, reply: &Reply) -> Result<(), Wrong> {
    let asker = if call.variables.is_empty() { Asker::Operator } else { Asker::Agent };
    let mut expected = say::status::status(world, now, outside, asker);
    if let Some(next) = say::reply::told_to(world, now, call) {
        expected.lines[2] = format!("NEXT:{next}");
    }
    expected.lines.extend(say::reply::leaves_by(world, now, call));
    compare(&expected, now, reply)
}

/// Compares every line of hf-status.
pub fn status(world: &World, now: i64, outside: &Outside, reply: &Reply) -> Result<(), Wrong> {
    compare(&say::status::status(world, now, outside, Asker::Operator), now, reply)
}

fn compare(expected: &say::status::Status, now: i64, reply: &Reply) -> Result<(), Wrong> {
    // What took an agent away from its branch is told in every reply; `scripts/minds` judges that.
    let is_aside = |line: &&str| line.starts_with("INTERRUPTED:") || line.starts_with("ADVICE:hf-branch ");
    let lines = reply.text.lines().filter(|line| !is_aside(line));
    let (mut tasks, mut lines): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with("TASKS:"));
    let mut expected_tasks: Vec<&str> = expected.tasks.iter().map(String::as_str).collect();
    tasks.sort_unstable();
    expected_tasks.sort_unstable();
    let mut expected_lines: Vec<&str> = expected.lines.iter().map(String::as_str).collect();
    expected_lines.append(&mut expected_tasks);
    lines.append(&mut tasks);
    same("status", &expected_lines, &lines, now)
}

/// What `hf-task explain` must say about a task.
pub fn explanation(world: &World, now: i64, name: &str) -> Vec<String> {
    let mut lines: Vec<String> = ["EXIT:0", "STATUS:OK", "NEXT:NONE"].map(str::to_owned).to_vec();
    lines.extend(say::explain::explain(world, now, name));
    lines.extend(say::status::standing(world));
    lines
}

/// Compares every line of `hf-task explain`.
pub fn explain(name: &str, expected: &[String], reply: &Reply) -> Result<(), Wrong> {
    let lines: Vec<&str> = reply.text.lines().collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    same(&format!("explain {name}"), &expected, &lines, 0)
}

fn same(what: &str, expected: &[&str], said: &[&str], now: i64) -> Result<(), Wrong> {
    if expected == said {
        return Ok(());
    }
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<String>>();
    let (missing, more) = (without(&owned(expected), &owned(said)), without(&owned(said), &owned(expected)));
    let words = |lines: &[String]| lines.iter().map(|line| sort_of(line)).collect::<Vec<_>>().join("; ");
    let what_sort = what.split(' ').next().unwrap_or_default();
    let sort = format!("{what_sort} -[{}] +[{}]", words(&missing), words(&more));
    let at = if now > 0 { format!(" at {}", time(now)) } else { String::new() };
    Err(Wrong::new(
        sort,
        format!("hf-{what}{at}\nmissing: {missing:#?}\nsaid, but not true: {more:#?}\nall: {said:#?}"),
    ))
}

/// A line without numbers, names and times.
fn sort_of(line: &str) -> String {
    let plain = |word: &str| !word.chars().any(|c| c.is_ascii_digit());
    line.split([' ', ':']).filter(|word| plain(word)).take(8).collect::<Vec<_>>().join(" ")
}
