//! Operations can be called many times, from several threads of one process.
//!
//! Everything runs in a process of its own, so that whatever an operation leaves behind in it is seen: children,
//! threads, descriptors, signal handlers, variables, the working directory.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

use hiveforge::base::{Actor, EntityId, EntityType, ErrorKind, Now, Reason, Result, Ulid};
use hiveforge::event::Kind;
use hiveforge::job::Need;
use hiveforge::machine::Phase;
use hiveforge::op::agent::{self, ActivityRequest, CheckpointRequest, ExtendRequest, StartDeepWorkRequest};
use hiveforge::op::artifact::{self, GetRequest, InvalidateRequest, PutRequest, ValidateRequest};
use hiveforge::op::branch::{
    self, BranchesRequest, CompleteBranchRequest, CreateRequest, InboxRequest, Leaving, NoteRequest, Outcome,
    ReadRequest, RecallRequest, ResumeBranchRequest, SuspendRequest, TellRequest,
};
use hiveforge::op::config::{self, ShowConfigRequest};
use hiveforge::op::constraint::{self, ApplyRequest, RemoveRequest};
use hiveforge::op::decide::{self, ApproveRequest, DecisionRequest, RejectDecisionRequest};
use hiveforge::op::document::{self, AddRequest, ResolveRequest};
use hiveforge::op::job::{
    self, CancelRequest, CheckJobRequest, FireRequest, JobLogRequest, JobStanding, ListJobsRequest, PollOutcome,
    PollRequest, SuperviseRequest, WaitRequest,
};
use hiveforge::op::mission::{
    self, EndMissionRequest, GoRequest, GoStanding, RoundRequest, SetRequest, StartMissionRequest,
};
use hiveforge::op::pause::{
    self, ArchiveRequest, PauseRequest, RestRequest, ResumeProjectRequest, WaitUntilDrainedRequest,
};
use hiveforge::op::project::{self, ListRequest, MapRequest, Projection, SnapshotRequest};
use hiveforge::op::require::{
    self, AnalyzeRequest, ProposeRequirementRequest, RejectRequirementRequest, SupersedeRequest,
    VerifyRequirementRequest,
};
use hiveforge::op::review::{self, FailsRequest, PromptRequest, RecordReviewRequest, RunReviewRequest};
use hiveforge::op::session::{self, LoginRequest, RenewRequest, ReportRequest};
use hiveforge::op::task::{
    self, AbortRequest, AssignRequest, ClaimOutcome, ClaimRequest, End, EndTaskRequest, ExplainRequest, FailRequest,
    HeartbeatRequest, ProposeTaskRequest, ReadyRequest, StartTaskRequest, SucceedRequest,
};
use hiveforge::op::{
    self, AppendBatchRequest, AppendRequest, AppendStreamRequest, BackupRequest, Caller, Context, Filter, Followed,
    Host, LineageRequest, LogRequest, Mode, Recorded, RecoverRequest, ResumeSystemRequest, Shell, ShowRequest, Start,
    StopRequest, SupervisorProgram, VerifyRequest, WatchdogRequest,
};
use hiveforge::policy::approval::Question;
use hiveforge::state::Entity;
use hiveforge::vault::Method;
use rustix::event::{Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::hive::{Hive, binary, proposal, write_private};
use crate::layers;

const THREADS: usize = 3;
const ROUNDS: usize = 2;
/// Longer than anything here takes, on whatever machine.
const LONG: Duration = Duration::from_secs(60);

/// Settings under which nothing is refused for there being too much of it, and which have somebody to ask.
const SETTINGS: &str = "governance:
  max_concurrent_tasks: 200
jobs:
  max_parallel: 200
  kill_grace: 1
reviewers:
  gpt:
    command: \"cat >/dev/null; echo 'PASS: all of it'\"
  gem:
    command: \"cat >/dev/null; echo 'PASS: all of it'\"
runner:
  command: \"echo done\"
";

/// What is given to several threads can be.
const _: () = {
    const fn can_be_shared<T: Send + Sync>() {}
    can_be_shared::<Context>();
};

/// A noun, and what a thread does to it in one round.
type Noun = (&'static str, fn(&Hand, usize));

/// Every noun, in groups of those that are at it together. What reads the whole log comes while that is short.
const NOUNS: &[&[Noun]] = &[
    &[("project", projects), ("append", appends), ("verify", verdicts), ("agent", agents)],
    &[("backup", backups), ("document", documents), ("pause", pauses), ("config", configs)],
    &[("log", logs), ("task", tasks), ("watchdog", watchdogs), ("mission", missions)],
    &[("job", jobs), ("constraint", constraints), ("session", sessions), ("artifact", artifacts)],
    &[("branch", branches), ("require", requirements), ("review", reviews), ("decide", decisions)],
];

/// What was acknowledged to any thread.
#[derive(Default)]
struct Acknowledged {
    /// Every id that somebody was told of as recorded just now.
    ids: Mutex<Vec<Ulid>>,
    /// Where an outcome names no event: how many of a kind there must be at least.
    counts: Mutex<BTreeMap<Kind, usize>>,
}

/// One thread's view of the vault.
struct Hand<'a> {
    number: usize,
    dir: PathBuf,
    person: Context,
    agent: Context,
    acknowledged: &'a Acknowledged,
}

impl Hand<'_> {
    /// Keeps what was acknowledged. Gives the subject of it.
    #[track_caller]
    fn told(&self, recorded: &Recorded) -> String {
        if !recorded.duplicate {
            assert!(recorded.ids.contains(&recorded.asked.id), "{recorded:?}");
            self.acknowledged.ids.lock().unwrap().extend(&recorded.ids);
        }
        recorded.asked.subject.clone()
    }

    fn counted(&self, kind: Kind) {
        *self.acknowledged.counts.lock().unwrap().entry(kind).or_default() += 1;
    }

    /// A text that nobody else says.
    fn text(&self, what: &str, round: usize) -> String {
        format!("{what} {} of thread {}", round, self.number)
    }

    /// A key that nobody else has.
    fn key(&self, what: &str, round: usize) -> Option<String> {
        Some(format!("{what}:{}:{round}", self.number))
    }

    /// The same in a project.
    fn within(&self, project: &str) -> Context {
        Context { project: Some(EntityId::parse(project).unwrap()), ..self.person.clone() }
    }

    /// A task that can be claimed.
    fn task(&self, title: &str) -> String {
        let request = ProposeTaskRequest { title: title.to_owned(), ..Default::default() };
        self.told(&task::propose(&self.person, request).unwrap())
    }

    fn claimed(&self, reference: &str) {
        let request = ClaimRequest { reference: Some(reference.to_owned()), ..Default::default() };
        match task::claim(&self.agent, request).unwrap() {
            ClaimOutcome::Claimed(done) => drop(self.told(&done)),
            ClaimOutcome::NoTask { .. } => panic!("{reference} cannot be claimed"),
        }
    }
}

/// What only one of several callers can get, who all ask for it: the others are refused, and nothing else.
#[track_caller]
fn contended<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(error) => {
            assert!(matches!(error.kind, ErrorKind::Refused(_) | ErrorKind::NotFound), "{error:?}");
            None
        }
    }
}

/// The decision that was asked for along the way.
#[track_caller]
fn decision(recorded: &Recorded) -> String {
    let is_one = |entity: &&Entity| entity.subject.entity == EntityType::Decision;
    recorded.entity.iter().chain(&recorded.followed).find(is_one).expect("a decision").subject.to_string()
}

fn approved(hand: &Hand, decision: String) -> Recorded {
    let done = decide::approve(&hand.person, ApproveRequest { reference: decision, ..Default::default() }).unwrap();
    hand.told(&done);
    done
}

fn tasks(hand: &Hand, round: usize) {
    let (title, key) = (hand.text("task", round), hand.key("task", round));
    let request = ProposeTaskRequest { title, key, ..Default::default() };
    let first = task::propose(&hand.person, request.clone()).unwrap();
    let reference = hand.told(&first);
    let again = task::propose(&hand.person, request).unwrap();
    assert!(again.duplicate && again.asked.id == first.asked.id);
    let ready = ReadyRequest { reference: reference.clone(), key: None };
    assert!(task::ready(&hand.person, ready).unwrap().duplicate);
    hand.claimed(&reference);
    let start = StartTaskRequest { reference: reference.clone(), ..Default::default() };
    hand.told(&task::start(&hand.agent, start).unwrap());
    for _ in 0..2 {
        let beat = HeartbeatRequest { reference: reference.clone(), key: None };
        hand.told(&task::heartbeat(&hand.agent, beat).unwrap());
    }
    let done = SucceedRequest { reference: reference.clone(), summary: Some("done".to_owned()), key: None };
    hand.told(&task::succeed(&hand.agent, done).unwrap());
    assert_eq!(task::explain(&hand.agent, ExplainRequest { reference }).unwrap().task.phase, Phase::Succeeded);
    // Given to somebody, and failed.
    let reference = hand.task("given");
    let agent = hand.agent.caller.actor.agent().unwrap().to_string();
    let assign = AssignRequest { reference: reference.clone(), agent, key: None };
    hand.told(&task::assign(&hand.person, assign).unwrap());
    let start = StartTaskRequest { reference: reference.clone(), timeout_seconds: Some(60), key: None };
    hand.told(&task::start(&hand.agent, start).unwrap());
    let (class, reason) = ("permanent".to_owned(), "no power".to_owned());
    hand.told(&task::fail(&hand.agent, FailRequest { reference, class, reason, key: None }).unwrap());
    // Ended without having been begun.
    let reference = hand.task("ended");
    hand.claimed(&reference);
    let end = End::Succeeded { summary: None };
    hand.told(&task::end(&hand.agent, EndTaskRequest { reference, end, begins: true, key: None }).unwrap());
    let reference = hand.task("given up");
    hand.told(&task::abort(&hand.person, AbortRequest { reference, ..Default::default() }).unwrap());
}

fn requirement(hand: &Hand, title: String) -> String {
    let request = ProposeRequirementRequest { title, ..Default::default() };
    hand.told(&require::propose(&hand.person, request).unwrap())
}

/// A requirement that an operator approved.
fn approved_requirement(hand: &Hand, title: String) -> String {
    let reference = requirement(hand, title);
    let request = AnalyzeRequest { reference: reference.clone(), ..Default::default() };
    let analyzed = require::analyze(&hand.agent, request).unwrap();
    hand.told(&analyzed);
    approved(hand, decision(&analyzed));
    reference
}

fn requirements(hand: &Hand, round: usize) {
    let reference = approved_requirement(hand, hand.text("requirement", round));
    let work = ProposeTaskRequest { title: "work".into(), requirement: Some(reference.clone()), ..Default::default() };
    let work = hand.told(&task::propose(&hand.person, work).unwrap());
    hand.claimed(&work);
    let end = End::Succeeded { summary: None };
    hand.told(&task::end(&hand.agent, EndTaskRequest { reference: work, end, begins: true, key: None }).unwrap());
    let verify = VerifyRequirementRequest { reference: reference.clone(), key: None };
    hand.told(&require::verify(&hand.agent, verify).unwrap());
    let older = approved_requirement(hand, "older".to_owned());
    let request = SupersedeRequest { reference: older, by: Some(reference), key: None };
    hand.told(&require::supersede(&hand.person, request).unwrap());
    let reference = requirement(hand, "unwanted".to_owned());
    let request = RejectRequirementRequest { reference, reason: "no".to_owned(), key: None };
    hand.told(&require::reject(&hand.person, request).unwrap());
}

fn decisions(hand: &Hand, round: usize) {
    let request = ProposeTaskRequest { title: hand.text("deletion", round), destructive: true, ..Default::default() };
    let asked = task::propose(&hand.person, request).unwrap();
    let target = hand.told(&asked);
    let rejects = RejectDecisionRequest { reference: decision(&asked), reason: "not yet".to_owned(), key: None };
    hand.told(&decide::reject(&hand.person, rejects).unwrap());
    let request = ProposeTaskRequest { title: "another".to_owned(), destructive: true, ..Default::default() };
    let asked = task::propose(&hand.person, request).unwrap();
    let other = hand.told(&asked);
    approved(hand, decision(&asked));
    // What was said no to is over, what was said yes to is not asked again.
    for target in [target, other] {
        let (question, summary) = (Question::Destructive, hand.text("may it", round));
        let request = DecisionRequest { question, target, summary, options: Vec::new(), key: None };
        if let Some(done) = contended(decide::request(&hand.agent, request)) {
            hand.told(&done);
        }
    }
}

fn constraints(hand: &Hand, round: usize) {
    let (text, key) = (hand.text("constraint", round), hand.key("constraint", round));
    let request = ApplyRequest { text, priority: None, key };
    let asked = constraint::apply(&hand.agent, request.clone()).unwrap();
    hand.told(&asked);
    assert!(constraint::apply(&hand.agent, request).unwrap().duplicate);
    approved(hand, decision(&asked));
    let reference = asked.asked.payload["target"].as_str().unwrap().to_owned();
    let asked = constraint::remove(&hand.agent, RemoveRequest { reference, key: None }).unwrap();
    hand.told(&asked);
    approved(hand, decision(&asked));
}

fn sessions(hand: &Hand, round: usize) {
    let name = format!("seat-{}", hand.number);
    let project = format!("seats-{}", hand.number);
    let person = hand.within(&project);
    let request = ProposeTaskRequest { title: hand.text("seat", round), ..Default::default() };
    let task = hand.told(&task::propose(&person, request).unwrap());
    let actor = Actor::parse(&format!("agent:{name}")).unwrap();
    let seat = Context { caller: Caller { actor, shell: Shell::Agents(name) }, ..person };
    let begun = session::login(&seat, LoginRequest::default()).unwrap().recorded;
    let session = hand.told(&begun);
    let seat = Context { session: Some(session.trim_start_matches("session:").to_owned()), ..seat };
    assert_eq!(session::next(&seat).unwrap().action, session::Action::Start);
    let mine = session::my_task(&seat).unwrap();
    assert_eq!((mine.task.unwrap().subject.to_string(), mine.claimed), (task.clone(), true));
    hand.told(&session::renew(&seat, RenewRequest { ttl_seconds: Some(600) }).unwrap().recorded);
    let (reference, end) = (None, End::Succeeded { summary: Some("done".to_owned()) });
    let report = ReportRequest { reference, end, key: hand.key("report", round) };
    assert_eq!(hand.told(&session::report(&seat, report).unwrap().recorded), task);
    hand.told(&session::logout(&seat).unwrap().recorded.unwrap());
}

fn pauses(hand: &Hand, round: usize) {
    let ctx = &hand.within(&format!("rests-{}-{round}", hand.number));
    let request = ProposeTaskRequest { title: hand.text("rest", round), ..Default::default() };
    hand.told(&task::propose(ctx, request).unwrap());
    let why = || "to look".to_owned();
    hand.told(&pause::pause(ctx, PauseRequest { reason: why() }).unwrap().recorded.unwrap());
    let rest = RestRequest { reason: Some(why()), archive: false, wait: Some(LONG) };
    assert!(pause::rest(ctx, rest).unwrap().project.left.is_empty());
    let rested = pause::wait_until_drained(ctx, WaitUntilDrainedRequest { max: LONG }).unwrap();
    assert_eq!((rested.state, rested.left), (Phase::Paused, Vec::new()));
    let resumed = pause::resume_project(ctx, ResumeProjectRequest { comment: Some(why()) }).unwrap();
    hand.told(&resumed.recorded.unwrap());
    hand.told(&pause::archive(ctx, ArchiveRequest { reason: Some(why()) }).unwrap().recorded.unwrap());
}

fn agents(hand: &Hand, round: usize) {
    let ctx = &hand.agent;
    let activity = hand.text("checkpoint", round);
    agent::checkpoint(ctx, CheckpointRequest { activity, state: round == 0 }).unwrap();
    hand.counted(Kind::CheckpointRecorded);
    let request = StartDeepWorkRequest { activity: hand.text("deep work", round), strict_minutes: Some(30) };
    hand.told(&agent::start(ctx, request).unwrap().recorded);
    hand.told(&agent::extend(ctx, ExtendRequest { minutes: 5 }).unwrap().recorded);
    assert!(agent::status(ctx).unwrap().work.is_some());
    hand.told(&agent::complete(ctx).unwrap().recorded);
    let (kind, text) = ("introspection".to_owned(), Some(hand.text("log", round)));
    agent::activity(ctx, ActivityRequest { kind, text, ..Default::default() }).unwrap();
    hand.counted(Kind::ActivityLogged);
    assert!(agent::migrate(ctx).unwrap().renamed.is_empty());
}

/// There is one mission at a time, so that all threads want the same one.
fn missions(hand: &Hand, round: usize) {
    let ctx = &hand.person;
    let request = StartMissionRequest { goal: hand.text("mission", round), ..Default::default() };
    let begun = contended(mission::start(ctx, request));
    let pairs = vec![format!("LAST_ACTION={}", hand.text("step", round))];
    let set = contended(mission::set(ctx, SetRequest { pairs, ..Default::default() }));
    let next = contended(mission::round(ctx, RoundRequest { key: hand.key("round", round) }));
    contended(mission::show(ctx));
    let ended = contended(mission::end(ctx, EndMissionRequest { passed: true, ..Default::default() }));
    for done in [begun, set, next, ended].into_iter().flatten() {
        hand.told(&done.recorded);
    }
}

/// There is one debate at a time, and one reviewer whose turn it is.
fn reviews(hand: &Hand, round: usize) {
    let (ctx, spec) = (&hand.person, hand.text("spec", round));
    if let Some(opened) = contended(review::reopen(ctx)) {
        hand.told(&opened);
    }
    contended(review::prompt(ctx, PromptRequest { spec: spec.clone(), reviewer: None }));
    for reviewer in ["gpt", "gem"] {
        let (reviewer, reply) = (reviewer.to_owned(), "FAIL: no timeout -> FIX: add one".to_owned());
        if let Some(done) = contended(review::record(ctx, RecordReviewRequest { reviewer, reply, key: None })) {
            hand.told(&done.recorded);
        }
    }
    contended(review::fails(ctx, FailsRequest::default()));
    review::status(ctx).unwrap();
    let mut asked = Vec::new();
    if let Some(done) = contended(review::run(ctx, RunReviewRequest { spec }, &mut |who| asked.push(who.to_owned()))) {
        assert!(!asked.is_empty() && done.ran);
        hand.told(&done.recorded);
    }
}

fn branches(hand: &Hand, round: usize) {
    let (ctx, name) = (&hand.agent, hand.agent.caller.actor.agent().unwrap().to_string());
    let left = |summary: String| Leaving { summary: Some(summary), ..Default::default() };
    let (label, key) = (hand.text("walk", round), hand.key("walk", round));
    let request = CreateRequest { label, branch_type: "free".to_owned(), key, ..Default::default() };
    let Outcome::Done(made) = branch::create(ctx, request).unwrap() else { panic!("nobody called {name}") };
    let reference = hand.told(&made);
    let note = NoteRequest { text: "x".repeat(5000), key: hand.key("note", round) };
    hand.told(&branch::note(ctx, note).unwrap().recorded);
    hand.told(&branch::suspend(ctx, SuspendRequest { leaving: left(hand.text("half way", round)) }).unwrap());
    let listed = branch::branches(ctx, BranchesRequest::default()).unwrap();
    assert!(listed.page.entities().any(|found| found.subject.to_string() == reference));
    assert!(branch::working(ctx).unwrap().count > 0);
    let (leaving, words) = (Leaving::default(), 100);
    let request = ResumeBranchRequest { reference: reference.clone(), words, leaving };
    let Outcome::Done(resumed) = branch::resume(ctx, request).unwrap() else { panic!("nobody called {name}") };
    hand.told(&resumed.recorded);
    let leaving = left("round it".to_owned());
    hand.told(&branch::complete(ctx, CompleteBranchRequest { reference: None, leaving }).unwrap());
    let recalled = RecallRequest { reference: Some(reference), thread: Some(1), grep: None };
    assert_eq!(branch::recall(ctx, recalled).unwrap().messages, 1);
    let tell = TellRequest { to: name, text: hand.text("where are you", round), key: None };
    hand.told(&branch::tell(&hand.person, tell).unwrap());
    assert_eq!(branch::decide(ctx).unwrap().unread.len(), 1);
    assert_eq!(branch::inbox(ctx, InboxRequest { only_unread: true, ..Default::default() }).unwrap().unread, 1);
    hand.told(&branch::read(ctx, ReadRequest::default()).unwrap().unwrap().recorded);
    assert!(branch::read(ctx, ReadRequest::default()).unwrap().is_none());
}

fn documents(hand: &Hand, round: usize) {
    let path = hand.dir.join(format!("spec-{}.md", hand.number));
    fs::write(&path, hand.text("spec", round)).unwrap();
    let added = document::add(&hand.person, AddRequest { path, kind: None }).unwrap();
    hand.told(&added.recorded);
    let reference = added.view.reference;
    let found = document::resolve(&hand.person, ResolveRequest { reference: reference.clone() }).unwrap();
    assert_eq!(found.reference, reference);
    let all = document::check(&hand.person).unwrap().documents;
    assert_eq!(all.iter().filter(|document| document.reference == reference).count(), 1);
}

fn artifacts(hand: &Hand, round: usize) {
    let (ctx, content) = (&hand.agent, hand.text("content", round));
    let put = |request| artifact::put(ctx, request, &mut content.as_bytes()).unwrap().recorded;
    let name = Some(PathBuf::from("content.txt"));
    let first = put(PutRequest { name: name.clone(), ..Default::default() });
    let reference = hand.told(&first);
    assert!(put(PutRequest { name, ..Default::default() }).duplicate);
    let mut read: Vec<u8> = Vec::new();
    let mut found = artifact::get(ctx, GetRequest { reference: reference.clone() }).unwrap();
    found
        .write(&mut |piece| {
            read.extend(piece);
            Ok(())
        })
        .unwrap();
    assert_eq!(read, content.as_bytes());
    hand.told(&artifact::validate(ctx, ValidateRequest { reference, key: None }).unwrap());
    // Everybody stores this one, and only one of them is first.
    let shared = format!("shared {round}");
    let done = artifact::put(ctx, PutRequest::default(), &mut shared.as_bytes()).unwrap().recorded;
    hand.told(&done);
    let task = hand.task("made");
    let bad = hand.text("bad", round);
    let request = PutRequest { task: Some(task), ..Default::default() };
    let reference = hand.told(&artifact::put(ctx, request, &mut bad.as_bytes()).unwrap().recorded);
    let invalid = InvalidateRequest { reference, reason: "the tests fail".to_owned(), key: None };
    hand.told(&artifact::invalidate(ctx, invalid).unwrap());
}

fn projects(hand: &Hand, round: usize) {
    let ctx = &hand.person;
    assert!(project::summary(ctx).unwrap().events > 0);
    let projection = Projection::Of(EntityType::Requirement);
    let mut listed = project::list(ctx, ListRequest { limit: 3, ..ListRequest::of(projection) }).unwrap();
    while let Some(cursor) = listed.next_cursor.take() {
        let request = ListRequest { limit: 3, cursor: Some(cursor.to_string()), ..ListRequest::of(projection) };
        listed = project::list(ctx, request).unwrap();
    }
    project::map(ctx, MapRequest { projection: Projection::Idempotency }).unwrap();
    let name = Some(format!("of-{}-{round}", hand.number));
    project::snapshot(ctx, SnapshotRequest { name }).unwrap();
    project::rebuild(ctx).unwrap();
    let found = project::check(ctx).unwrap();
    assert!(found.differences.is_empty(), "{:?}", found.differences);
    op::status(ctx).unwrap();
    assert!(!op::metrics(ctx).unwrap().metrics.is_empty());
}

fn logs(hand: &Hand, round: usize) {
    let ctx = &hand.person;
    let page = |start: Start| LogRequest { filter: Filter::default(), start, limit: 7, with_references: true };
    let found = op::log(ctx, page(Start::Newest)).unwrap();
    let (event, _) = found.entries.last().unwrap();
    let cursor = op::log(ctx, page(Start::Oldest)).unwrap().next_cursor.map(|cursor| cursor.to_string());
    if let Some(cursor) = cursor {
        op::log(ctx, page(Start::After(cursor))).unwrap();
    }
    let request = LineageRequest { reference: event.id.to_string(), up: true, down: true, depth: 5 };
    assert_eq!(op::lineage(ctx, request).unwrap().root, event.id);
    let reference = requirement(hand, hand.text("shown", round));
    let request = ShowRequest { reference: reference.clone(), wanted: EntityType::Requirement };
    assert_eq!(op::show(ctx, request).unwrap().entity.subject.to_string(), reference);
    let mut seen = Vec::new();
    op::follow(ctx, page(Start::Oldest), &mut |followed| {
        if let Followed::Entry((event, _)) = followed {
            seen.push(event.id);
        }
        Ok(if seen.len() < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })
    .unwrap();
    assert!(seen.is_sorted() && seen.len() == 5);
}

fn configs(hand: &Hand, _: usize) {
    assert!(!config::show(&hand.person, ShowConfigRequest::default()).unwrap().settings.is_empty());
    assert!(config::diff(&hand.person).unwrap().differences.is_empty());
}

fn watchdogs(hand: &Hand, _: usize) {
    let ctx = &hand.person.at_this_moment();
    let looked = op::watchdog(ctx, WatchdogRequest { mode: Mode::DryRun }).unwrap();
    assert!(looked.did.is_empty());
    op::watchdog(ctx, WatchdogRequest { mode: Mode::Write }).unwrap();
}

fn jobs(hand: &Hand, round: usize) {
    let ctx = &hand.person.at_this_moment();
    let command = |script: &str| {
        let argv = ["sh", "-c", script].map(OsString::from).to_vec();
        FireRequest::new(argv, hand.dir.clone())
    };
    let request = FireRequest { key: hand.key("job", round), ..command("echo heard") };
    let fired = job::fire(ctx, request.clone()).unwrap();
    let reference = fired.task.subject.to_string();
    hand.told(&fired.recorded);
    let again = job::fire(ctx, request).unwrap();
    assert!(again.recorded.duplicate && again.task.subject == fired.task.subject);
    let slow = job::fire(ctx, command("sleep 600")).unwrap();
    hand.told(&slow.recorded);
    let slow = slow.task.subject.to_string();
    let request = PollRequest { id: reference.clone(), interval: LONG, max: LONG };
    assert!(matches!(job::poll(ctx, request).unwrap(), PollOutcome::Done { .. }));
    let references = vec![reference.clone(), slow.clone()];
    assert!(job::wait(ctx, WaitRequest { references, need: Need::Any, max: LONG }).unwrap().over);
    let view = job::check(ctx, CheckJobRequest { reference: reference.clone() }).unwrap();
    assert_eq!(view.standing, JobStanding::Done);
    assert!(job::list(ctx, ListJobsRequest::default()).unwrap().jobs.len() >= 2);
    let mut printed = Vec::new();
    let request = JobLogRequest { reference: reference.clone(), ..Default::default() };
    job::log(ctx, request, &mut |piece| {
        printed.extend(piece);
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    assert!(String::from_utf8(printed).unwrap().contains("heard"));
    let cancelled = job::cancel(ctx, CancelRequest { reference: slow }).unwrap();
    assert_eq!((cancelled.view.standing, cancelled.over), (JobStanding::Fail, false));
    // A supervisor is a process of its own; nobody becomes one by a call.
    let task = reference.trim_start_matches("task:").to_owned();
    let error = job::supervise(ctx, SuperviseRequest { task }).unwrap_err();
    assert!(error.message.starts_with("standard input is not the lock"), "{error:?}");
}

fn appends(hand: &Hand, round: usize) {
    let ctx = &hand.person;
    for mode in [Mode::DryRun, Mode::Write] {
        let done = op::append(ctx, AppendRequest { event: proposal(&hand.text("one", round)), mode }).unwrap();
        let events: Vec<_> = (0..2).map(|_| proposal(&hand.text("batch", round))).collect();
        let key = hand.key("batch", round);
        let batch = op::append_batch(ctx, AppendBatchRequest { events: events.clone(), key, mode }).unwrap();
        let mut lines = events.into_iter();
        let stream = op::append_stream(ctx, AppendStreamRequest { mode }, &mut || lines.next().map(Ok));
        assert!(stream.error.is_none() && stream.recorded == 2, "{stream:?}");
        if mode == Mode::Write {
            hand.told(&done);
            hand.told(&batch);
            hand.acknowledged.ids.lock().unwrap().extend(stream.last.map(|event| event.id));
        }
    }
    // All threads say this one; it is recorded once.
    let event = op::NewEvent { key: Some(format!("shared:{round}")), ..proposal(&format!("shared {round}")) };
    hand.told(&op::append(ctx, AppendRequest { event, mode: Mode::Write }).unwrap());
}

fn backups(hand: &Hand, round: usize) {
    let target = hand.dir.join(format!("copy-{}-{round}", hand.number));
    let copied = op::backup(&hand.person, BackupRequest { target: target.clone() }).unwrap();
    assert_eq!(copied.path, target);
    // Whoever copies a vault verifies the copy.
    assert!(op::init(&Context { vault: target, ..hand.person.clone() }).unwrap().created.is_none());
}

fn verdict(ctx: &Context) -> op::VerifyOutcome {
    let request = VerifyRequest {
        method: Method::Fast { jobs: None },
        expected_heads: Vec::new(),
        since: None,
        projections: true,
        policy: true,
        artifacts: true,
    };
    op::verify(ctx, request, &mut |_, _| {}).unwrap()
}

fn verdicts(hand: &Hand, _: usize) {
    let ctx = &hand.person;
    assert!(verdict(ctx).passed());
    let refused = op::recover(ctx, RecoverRequest { confirmed: false }).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Refused(Reason::NotConfirmed));
    // There is nothing to cut off.
    assert!(op::recover(ctx, RecoverRequest { confirmed: true }).unwrap().events.is_empty());
    assert!(op::init(ctx).unwrap().created.is_none());
}

/// Has every thread do the same at the same time.
fn at_once(hands: &[Hand], act: impl Fn(&Hand) + Sync) {
    let barrier = Barrier::new(hands.len());
    thread::scope(|scope| {
        for hand in hands {
            let (barrier, act) = (&barrier, &act);
            scope.spawn(move || {
                barrier.wait();
                act(hand);
            });
        }
    });
}

/// The time of day.
fn clock() -> Now {
    let time = clock_gettime(ClockId::Realtime);
    Now { millis: time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000 }
}

fn hand<'a>(hive: &Hive, number: usize, acknowledged: &'a Acknowledged) -> Hand<'a> {
    let caller = |actor: &str, shell| Caller { actor: Actor::parse(actor).unwrap(), shell };
    let supervisor = Some(SupervisorProgram { program: binary("job") });
    let host = Host { supervisor, search_path: Some("/usr/bin:/bin".into()), ..Host::new(clock) };
    let person = caller(&format!("user:jo-{number}"), Shell::Persons);
    let person = Context { lock_timeout: LONG, ..Context::new(hive.vault(), person, host) };
    let name = format!("worker-{number}");
    let agent = Context { caller: caller(&format!("agent:{name}"), Shell::Agents(name)), ..person.clone() };
    Hand { number, dir: hive.dir().to_owned(), person, agent, acknowledged }
}

/// What an operation must leave as it was: handlers and masks of signals, variables, the working directory.
fn surroundings() -> (Vec<String>, Vec<(OsString, OsString)>, PathBuf) {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let kept = |line: &&str| ["SigCgt", "SigIgn", "SigBlk", "Umask"].iter().any(|name| line.starts_with(name));
    let lines = status.lines().filter(kept).map(str::to_owned).collect();
    (lines, std::env::vars_os().collect(), std::env::current_dir().unwrap())
}

/// What lives in this process, or was started by it and not waited for.
#[derive(Debug, PartialEq)]
struct Lives {
    children: Vec<String>,
    threads: usize,
    descriptors: usize,
}

fn lives() -> Lives {
    let count = |folder: &str| fs::read_dir(folder).unwrap().count();
    let all = fs::read_dir("/proc").unwrap();
    let pids = all.filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let stats = pids.filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).ok());
    let me = std::process::id().to_string();
    // pid (name) state parent
    let is_child = |stat: &String| stat.rsplit_once(')').is_some_and(|(_, rest)| rest.split(' ').nth(2) == Some(&me));
    let children = stats.filter(is_child).collect();
    Lives { children, threads: count("/proc/self/task"), descriptors: count("/proc/self/fd") }
}

#[test]
#[ignore = "what it looks at is a whole process: the test below gives it one"]
fn in_a_process_of_its_own() {
    let hive = Hive::empty();
    let acknowledged = Acknowledged::default();
    let hands: Vec<Hand> = (0..THREADS).map(|number| hand(&hive, number, &acknowledged)).collect();
    let (before, alone) = (surroundings(), lives());
    // One of them makes the vault.
    let made = Mutex::new(0);
    at_once(&hands, |hand| {
        if op::init(&hand.person).unwrap().created.is_some() {
            *made.lock().unwrap() += 1;
        }
    });
    assert_eq!(made.into_inner().unwrap(), 1);
    write_private(&hive.vault().join("hiveforge.config.yaml"), SETTINGS.as_bytes());
    // A task that nobody holds up, an agent that is known: what some operations look for.
    for hand in &hands {
        requirement(hand, "first".to_owned());
    }
    for group in NOUNS {
        at_once(&hands, |hand| {
            for turn in 0..ROUNDS * group.len() {
                // Each begins with another noun, so that any two of them meet.
                let (round, turn) = (turn / group.len(), turn + hand.number * group.len() / THREADS);
                let (name, act) = group[turn % group.len()];
                let began = clock().millis;
                act(hand, round);
                let took = clock().millis - began;
                println!("thread {} round {round}: {name} in {took} ms", hand.number);
                // Two that wait for each other do so until one of them gives up.
                assert!(Duration::from_millis(took) < LONG / 2, "{name} took {took} ms");
            }
        });
        // While somebody always reads, the index falls behind, and everything takes longer.
        project::rebuild(&hands[0].person).unwrap();
    }
    // All of them drive one mission to its end.
    let requirement = Some(approved_requirement(&hands[0], "to go".to_owned()));
    let goal = "go".to_owned();
    let begun = mission::start(&hands[0].person, StartMissionRequest { goal, requirement, ..Default::default() });
    hands[0].told(&begun.unwrap().recorded);
    at_once(&hands, |hand| {
        let done = mission::go(&hand.person.at_this_moment(), GoRequest { max: LONG }).unwrap();
        assert_eq!(done.standing, GoStanding::Passed, "{done:?}");
    });
    // Stops and resumes cross each other; whoever comes last lets everything go on.
    for _ in 0..ROUNDS {
        at_once(&hands, |hand| {
            let done = op::stop(&hand.person, StopRequest { reason: "enough".to_owned() }).unwrap();
            assert!(done.left.is_empty(), "{done:?}");
            let resumed = contended(op::resume_system(&hand.person, ResumeSystemRequest::default()));
            if let Some(done) = resumed {
                hand.told(&done.recorded);
            }
        });
    }
    if let Some(done) = contended(op::resume_system(&hands[0].person, ResumeSystemRequest::default())) {
        hands[0].told(&done.recorded);
    }
    hands[0].task("after all");

    assert_eq!(surroundings(), before);
    // A job is over a moment before the last that looked after it.
    let pause = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
    let mut left = lives();
    for _ in 0..1000 {
        if left == alone {
            break;
        }
        poll(&mut [], Some(&pause)).unwrap();
        left = lives();
    }
    assert_eq!(left, alone);

    let events = hive.events();
    let ids: Vec<&str> = events.iter().map(|event| event["event_id"].as_str().unwrap()).collect();
    let in_log: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(in_log.len(), ids.len(), "an event is there twice");
    let told: Vec<String> = acknowledged.ids.lock().unwrap().iter().map(Ulid::to_string).collect();
    let once: BTreeSet<&str> = told.iter().map(String::as_str).collect();
    assert_eq!(once.len(), told.len(), "an event was acknowledged twice as new");
    let lost: Vec<&&str> = once.difference(&in_log).collect();
    assert!(lost.is_empty(), "{lost:?} was acknowledged and is not there");
    for (kind, count) in acknowledged.counts.lock().unwrap().clone() {
        assert_eq!(events.iter().filter(|event| event["event_type"] == kind.as_str()).count(), count, "{kind}");
    }
    let said = |title: &str| events.iter().filter(|event| event["payload"]["title"] == title).count();
    for round in 0..ROUNDS {
        assert_eq!(said(&format!("shared {round}")), 1);
        for hand in &hands {
            assert_eq!((said(&hand.text("one", round)), said(&hand.text("batch", round))), (1, 4));
        }
    }
    println!("{} events, {} acknowledged", ids.len(), told.len());
    let verified =
        hive.process("verify").env_remove("HF_NOW").args(["--policy", "--projections", "--artifacts"]).output();
    let verified = String::from_utf8(verified.unwrap().stdout).unwrap();
    assert!(verified.starts_with("EXIT:0\n") && verified.contains("\nPOLICY:OK\n"), "{verified}");
}

#[test]
fn every_operation_can_be_called_from_several_threads_at_once() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["threads::in_a_process_of_its_own", "--exact", "--ignored", "--nocapture"]);
    let path = ("PATH", "/usr/local/bin:/usr/bin:/bin");
    let done = command.env_clear().envs([path, ("RUST_BACKTRACE", "1")]).output().unwrap();
    let (said, complained) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && said.contains("1 passed"), "{said}\n{complained}");
}

#[test]
fn no_operation_is_left_out_here() {
    let here = include_str!("threads.rs");
    let missing: Vec<String> =
        layers::operations().into_iter().filter(|name| !here.contains(&format!("{name}("))).collect();
    assert!(missing.is_empty(), "{missing:?} is called by no thread");
}
