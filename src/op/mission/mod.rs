//! hf-state: the current mission and its state file.
//!
//! | module | contents |
//! |---|---|
//! | `file` | `M1.md`, rewritten whenever it differs from the log |
//! | `go` | doing the work: run, wait, fix, run again |
//! | `plan` | the tasks that a mission consists of |

mod file;
mod go;
mod plan;

use serde_json::{Map, Value, json};

use super::{Context, Recorded, require};
use crate::base::{EntityType, Error, Reason, Result, Subject};
use crate::event::{Kind, parse_ulid};
use crate::machine::Phase;
use crate::op::kernel::{Transaction, is_stopped, with_view};
use crate::policy::mission::{self, LINES, MissionFile, MissionStanding, NONE, Rounds, WrittenLines};
use crate::policy::{self, Request, rules};
use crate::state::{Entity, State};
use crate::vault::Vault;

pub(super) use file::{refresh_file, settle_file};
pub use go::{GoOutcome, GoRequest, GoStanding, ReportedFailureRequest, go, note_failure_was_reported};
pub use plan::{FirePlannedRequest, PlanOutcome, PlanRequest, fire_planned, plan};

/// The current state of a mission.
#[derive(Debug)]
pub struct MissionView {
    pub mission: Entity,
    pub m1: MissionFile,
    pub standing: MissionStanding,
    /// What somebody wrote down in the file since the last thing that happened.
    pub written: WrittenLines,
    /// The task that its file names, if it is in progress or a job that has not ended.
    pub busy: Option<Entity>,
    pub warnings: Vec<String>,
}

/// A recorded change of a mission, and its state.
#[derive(Debug)]
pub struct MissionOutcome {
    pub recorded: Recorded,
    pub view: MissionView,
}

/// Returns the newest mission; rewrites its file if it differs from the log.
pub fn show(ctx: &Context) -> Result<MissionView> {
    let vault = ctx.open()?;
    let mut warnings = Vec::new();
    // A read-only vault can still be shown.
    if let Err(error) = file::settle(ctx, &vault, &mut warnings) {
        warnings.push(format!("cannot check M1.md: {error}"));
    }
    let view = with_view(&vault, |_, state| view(state))?;
    Ok(MissionView { warnings, ..view })
}

fn view(state: &State) -> Result<MissionView> {
    mission::newest(state).ok_or_else(no_mission).map(|mission| view_of(state, mission))
}

fn view_of(state: &State, mission: Entity) -> MissionView {
    let is_running = mission.phase == Phase::Running;
    let busy = mission::current(state, &mission).filter(|task| is_running && mission::is_in_progress(task));
    let standing = MissionStanding::of_mission(state, &mission);
    MissionView {
        m1: MissionFile::of_mission(state, &mission),
        written: WrittenLines::of_mission(&mission, &standing),
        standing,
        mission,
        busy,
        warnings: Vec::new(),
    }
}

/// What `set` can change.
const SETTABLE: &str = "GOAL, TASK_ID, LOGREF, OPEN_K, LAST_ACTION, NEXT_ACTION, REQUIREMENT";

fn no_mission() -> Error {
    Error::not_found("no mission yet; hf-state start begins one")
}

/// A mission to start.
#[derive(Clone, Debug, Default)]
pub struct StartMissionRequest {
    /// The goal, in one line.
    pub goal: String,
    /// The constraints, in one line each.
    pub constraints: Vec<String>,
    /// The requirement that the mission is for.
    pub requirement: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Starts a mission.
pub fn start(ctx: &Context, request: StartMissionRequest) -> Result<MissionOutcome> {
    let StartMissionRequest { goal, constraints, requirement, key } = request;
    let requirement = requirement.map(|r| require::find(ctx, &r, EntityType::Requirement)).transpose()?;
    let payload = json!({
        "goal": goal.trim(),
        "constraints": list(&constraints),
        "requirement_id": requirement,
    });
    let asked = Request { key, ..ctx.request(Kind::MissionStarted, None, payload) };
    let vault = ctx.open()?;
    let tx = Transaction::begin(ctx, &vault)?;
    // The rules know actors, and not whose shell it is.
    let is_repeated = || tx.repeated(&asked).is_ok_and(|first| first.is_some());
    if !ctx.caller.is_operator() && mission::running(tx.state()).is_none() && !is_repeated() {
        mission::check_agent_may_start(tx.state(), &asked.payload)?;
    }
    record_in(ctx, &vault, tx, asked)
}

fn list(constraints: &[String]) -> Value {
    let trimmed: Vec<&str> = constraints.iter().map(|constraint| constraint.trim()).collect();
    if trimmed.is_empty() { Value::Null } else { json!(trimmed) }
}

/// Changes to the state file of a mission.
#[derive(Clone, Debug, Default)]
pub struct SetRequest {
    /// Lines as `KEY=VALUE`.
    pub pairs: Vec<String>,
    /// The new constraints, which replace all old ones; if empty, those stay.
    pub constraints: Vec<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Changes the state file.
pub fn set(ctx: &Context, request: SetRequest) -> Result<MissionOutcome> {
    let SetRequest { pairs, constraints, key } = request;
    on_mission(ctx, |tx, mission| {
        // The event has the whole content: a repeated request has to start from the content of the first time.
        let first = first_with(tx, key.as_deref(), Kind::MissionChanged)?;
        let is_repeated = first.is_some();
        let mut members = first.unwrap_or_else(|| members(mission));
        let mut given = Vec::new();
        for pair in &pairs {
            let (name, value) = pair.split_once('=').ok_or_else(|| not_a_pair(pair))?;
            let name = name.trim().to_ascii_uppercase();
            if given.contains(&name) {
                return Err(Error::usage(format!("{name} is given twice")));
            }
            let value = Some(value.trim()).filter(|value| !value.is_empty() && *value != NONE);
            set_one(tx.state(), &name, value, &mut members)?;
            if name == "REQUIREMENT" && !ctx.caller.is_operator() {
                mission::check_requirement(tx.state(), mission, members.get("requirement_id").and_then(Value::as_str))?;
            }
            given.push(name);
        }
        if !constraints.is_empty() {
            members.insert("constraints".to_owned(), list(&constraints));
        }
        // The log of a job is that of its newest run.
        if given.contains(&"TASK_ID".to_owned()) && !given.contains(&"LOGREF".to_owned()) && !is_repeated {
            members.remove("logref");
        }
        if !is_repeated {
            check_current(tx.state(), mission, &given, &members)?;
            // What is not written down goes on following the jobs of the mission.
            let kept = KEEPS.iter().filter(|(line, _)| !given.iter().any(|name| name == line));
            members.extend(kept.map(|(_, member)| ((*member).to_owned(), true.into())));
        }
        let subject = mission.subject.to_string();
        Ok(Request { key, ..ctx.request(Kind::MissionChanged, Some(&subject), Value::Object(members)) })
    })
}

/// The lines that follow the jobs of a mission, and the members of a change that does not write them down.
const KEEPS: &[(&str, &str)] = &[("LAST_ACTION", "keeps_last_action"), ("NEXT_ACTION", "keeps_next_action")];

/// Refuses another current task than the job that the mission waits for or that has failed: nothing would say any more
/// what to do about it.
fn check_current(state: &State, mission: &Entity, given: &[String], members: &Map<String, Value>) -> Result<()> {
    let standing = MissionStanding::of_mission(state, mission);
    let Some(job) = standing.job().filter(|_| given.iter().any(|name| name == "TASK_ID")) else { return Ok(()) };
    match members.get("task_id").and_then(Value::as_str) == Some(job.subject.id()) {
        true => Ok(()),
        false => {
            let why = format!("TASK_ID is {}, which is {}; the next job replaces it", job.name(), job.phase);
            Err(Error::refused(Reason::NotReady, why))
        }
    }
}

/// The payload of the event with this key, if it is of this kind.
fn first_with(tx: &Transaction<'_>, key: Option<&str>, kind: Kind) -> Result<Option<Map<String, Value>>> {
    let Some(id) = key.and_then(|key| tx.state().keyed(key).or_else(|| parse_ulid(key))) else { return Ok(None) };
    let first = tx.log.find(id)?;
    Ok(first.filter(|event| event.event_type.known() == Some(kind)).map(|event| event.payload))
}

fn not_a_pair(pair: &str) -> Error {
    Error::usage(format!("invalid line '{}'; must be KEY=VALUE", crate::base::text::cut(pair, 40)))
}

/// The members that a change keeps.
fn members(mission: &Entity) -> Map<String, Value> {
    let names = LINES.iter().map(|(_, member)| *member).chain(["constraints", "requirement_id", "task_id"]);
    names.filter_map(|member| Some((member.to_owned(), mission.facts().get(member)?.clone()))).collect()
}

fn set_one(state: &State, name: &str, value: Option<&str>, members: &mut Map<String, Value>) -> Result<()> {
    let (member, value) = match (name, value) {
        ("STATUS" | "ROUND", _) => return Err(Error::usage(format!("{name} cannot be set; hf-state maintains it"))),
        ("GOAL", None) => return Err(Error::usage("GOAL cannot be empty")),
        ("TASK_ID", task) => {
            ("task_id", task.map(|task| state.find(task, EntityType::Task)).transpose()?.map(|t| t.id().to_owned()))
        }
        ("REQUIREMENT", requirement) => {
            let found = requirement.map(|r| state.find(r, EntityType::Requirement)).transpose()?;
            ("requirement_id", found.map(|requirement| requirement.id().to_owned()))
        }
        ("CONSTRAINTS", None) => ("constraints", None),
        ("CONSTRAINTS", Some(_)) => return Err(Error::usage("CONSTRAINTS cannot be set; use --constraint for each")),
        ("LOGREF", log) => ("logref", log.map(log_name).transpose()?),
        ("OPEN_K", open) => ("open_k", open.map(open_points).transpose()?),
        (name, value) => {
            let line = LINES.iter().find(|(known, _)| *known == name);
            let (_, member) = line.ok_or_else(|| Error::usage(format!("unknown key '{name}'; one of {SETTABLE}")))?;
            (*member, value.map(str::to_owned))
        }
    };
    match value {
        Some(value) => drop(members.insert(member.to_owned(), value.into())),
        None => drop(members.remove(member)),
    }
    Ok(())
}

/// Parses `L-0001`, or the full reference of a log.
fn log_name(text: &str) -> Result<String> {
    let name = text.strip_prefix("logs/").unwrap_or(text);
    let name = name.strip_suffix(".txt").unwrap_or(name);
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    match name.strip_prefix("L-").is_some_and(|rest| rest.split('-').all(digits)) {
        true => Ok(name.to_owned()),
        false => Err(Error::usage("invalid LOGREF; must be like L-0001, or NONE")),
    }
}

/// `K1,K2`.
fn open_points(text: &str) -> Result<String> {
    mission::check_open_points(text).map(|()| text.to_owned())
}

/// A round to start.
#[derive(Clone, Debug, Default)]
pub struct RoundRequest {
    /// Idempotency key.
    pub key: Option<String>,
}

/// Starts the next round.
pub fn round(ctx: &Context, request: RoundRequest) -> Result<MissionOutcome> {
    let RoundRequest { key } = request;
    on_mission(ctx, |tx, mission| {
        let mut asked = next_round(ctx, tx.state(), mission);
        // A repeated request is about the same round.
        match first_with(tx, key.as_deref(), Kind::MissionRoundBegun)? {
            Some(first) => asked.payload = first,
            None if is_stopped(tx.state()) => return Err(rules::stopped(tx.state())),
            None => {
                // Otherwise two runs of one mission would work in parallel.
                if let Some(task) = view_of(tx.state(), mission.clone()).busy {
                    let why = format!("{} is {}: the previous round has not ended", task.name(), task.phase);
                    return Err(Error::refused(Reason::NotReady, why));
                }
            }
        }
        Ok(Request { key, ..asked })
    })
}

fn next_round(ctx: &Context, state: &State, mission: &Entity) -> Request {
    let payload = json!({"round": Rounds::of_mission(state, mission).begun + 1});
    ctx.request(Kind::MissionRoundBegun, Some(&mission.subject.to_string()), payload)
}

/// Begins the round that a job needs which is about to be fired: the first one of its mission, or another attempt after
/// a failure. `hf-state go` counts the rounds of its own steps.
pub(super) fn begin_round_for(ctx: &Context, tx: &mut Transaction<'_>, asked: &Request) -> Result<()> {
    let subject = asked.subject.as_deref().and_then(|subject| Subject::parse(subject).ok());
    let Some(subject) = subject.filter(|_| !asked.payload.contains_key("mission_step")) else { return Ok(()) };
    let mission = policy::mission_of_job(tx.state(), asked.kind, &subject, &asked.actor, &asked.payload);
    match mission.filter(|mission| mission::needs_round(tx.state(), mission)) {
        Some(mission) => tx.ask(next_round(ctx, tx.state(), &mission)).map(drop),
        None => Ok(()),
    }
}

/// More rounds for the mission.
#[derive(Clone, Debug, Default)]
pub struct MoreRoundsRequest {
    pub rounds: u64,
    /// Why, in one line.
    pub reason: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Allows more rounds, which only an operator can. A mission that failed because it had none left continues.
pub fn more_rounds(ctx: &Context, request: MoreRoundsRequest) -> Result<MissionOutcome> {
    let MoreRoundsRequest { rounds, reason, key } = request;
    ctx.check_operator("allowing more rounds")?;
    on_mission(ctx, |_, mission| {
        let payload = json!({"rounds": rounds, "reason": reason});
        let subject = mission.subject.to_string();
        Ok(Request { key, ..ctx.request(Kind::MissionRoundsAdded, Some(&subject), payload) })
    })
}

/// A mission to end.
#[derive(Clone, Debug, Default)]
pub struct EndMissionRequest {
    /// Whether it passed; else it failed.
    pub passed: bool,
    /// What was done last, or why it failed, in one line.
    pub text: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// Ends the mission.
pub fn end(ctx: &Context, request: EndMissionRequest) -> Result<MissionOutcome> {
    let EndMissionRequest { passed, text, key } = request;
    let end = if passed { MissionEnd::Passed } else { MissionEnd::Failed };
    on_mission(ctx, |tx, mission| {
        let is_repeated = || key.as_deref().is_some_and(|key| tx.state().keyed(key).is_some());
        if passed && !ctx.caller.is_operator() && !is_repeated() {
            mission::check_may_pass(tx.state(), mission)?;
        }
        // Without a text, the file goes on saying what happened last.
        let happened = || {
            let last = MissionFile::of_mission(tx.state(), mission).last_action;
            let payload = Map::from_iter([("last_action".to_owned(), Value::from(last.as_str()))]);
            let fits = mission::check(tx.state(), end.kind(), &mission.subject, &ctx.caller.actor, &payload).is_ok();
            Some(last).filter(|last| last != NONE && fits)
        };
        Ok(Request { key, ..ending(ctx, mission, end, text.or_else(happened)) })
    })
}

/// How a mission ends.
#[derive(Clone, Copy)]
enum MissionEnd {
    Passed,
    Failed,
}

impl MissionEnd {
    const fn kind(self) -> Kind {
        match self {
            MissionEnd::Passed => Kind::MissionPassed,
            MissionEnd::Failed => Kind::MissionFailed,
        }
    }
}

fn ending(ctx: &Context, mission: &Entity, end: MissionEnd, text: Option<String>) -> Request {
    ctx.request(end.kind(), Some(&mission.subject.to_string()), json!({"last_action": text}))
}

/// Records the request that `ask` makes about the newest mission.
fn on_mission(ctx: &Context, ask: impl FnOnce(&Transaction<'_>, &Entity) -> Result<Request>) -> Result<MissionOutcome> {
    let vault = ctx.open()?;
    let tx = Transaction::begin(ctx, &vault)?;
    let mission = mission::newest(tx.state()).ok_or_else(no_mission)?;
    let asked = ask(&tx, &mission)?;
    record_in(ctx, &vault, tx, asked)
}

fn record(ctx: &Context, asked: Request) -> Result<MissionOutcome> {
    let vault = ctx.open()?;
    let tx = Transaction::begin(ctx, &vault)?;
    record_in(ctx, &vault, tx, asked)
}

fn record_in(ctx: &Context, vault: &Vault, mut tx: Transaction<'_>, asked: Request) -> Result<MissionOutcome> {
    // Requests do not name the mission, so a repeated one is found by its key, whichever mission it was about.
    let (mut recorded, view) = match tx.repeated(&Request { subject: None, ..asked.clone() })? {
        Some(first) => {
            let view = view(tx.state())?;
            // `file::settle` below takes the lock itself.
            drop(tx);
            (first, view)
        }
        None => {
            let before = file::wanted(tx.state());
            let asked = match unchanged(&tx, &asked) {
                Some(unchanged) => unchanged,
                None => tx.ask(asked)?,
            };
            // Not earlier: a refused request must not change the file.
            file::settle_in(&mut tx, vault, ctx, before)?;
            // Viewed before the commit: an error after it would refuse what is recorded.
            let view = view(tx.state())?;
            (tx.finish(&[asked])?, view)
        }
    };
    if let Err(error) = file::settle(ctx, vault, &mut recorded.warnings) {
        recorded.warnings.push(format!("the change is recorded, but M1.md could not be written: {error}"));
    }
    Ok(MissionOutcome { recorded, view })
}

/// The event to answer with if the request would change nothing.
fn unchanged(tx: &Transaction<'_>, asked: &Request) -> Option<crate::op::kernel::Added> {
    let mission = mission::newest(tx.state()).filter(|mission| mission.phase == Phase::Running)?;
    let same = match asked.kind {
        // A text that was written down before something happened does not count any more, until it is written again.
        Kind::MissionChanged => {
            let written = WrittenLines::of_mission(&mission, &MissionStanding::of_mission(tx.state(), &mission));
            let mut payload = asked.payload.clone();
            let [keeps_last, keeps_next] = [0, 1].map(|n| payload.remove(KEEPS[n].1).is_some());
            let counts = (written.last_action || keeps_last) && (written.next_action || keeps_next);
            counts && members(&mission) == payload
        }
        Kind::MissionStarted => {
            let is_same = |member: &str| asked.payload.get(member) == mission.facts().get(member);
            ["goal", "constraints", "requirement_id"].into_iter().all(is_same)
        }
        _ => false,
    };
    same.then_some(crate::op::kernel::Added { id: mission.last_event, already: true })
}
