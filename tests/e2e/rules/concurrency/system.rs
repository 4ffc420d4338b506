//! What a thread does to everything else in one round: sessions, pauses, agents, projections, the log, settings,
//! the watchdog, jobs, appends, backups, signatures and verification.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use hiveforge::base::{Actor, EntityType, Subject};
use hiveforge::event::Kind;
use hiveforge::job::Need;
use hiveforge::machine::Phase;
use hiveforge::op::agent::{self, ActivityRequest, CheckpointRequest, ExtendRequest, StartDeepWorkRequest};
use hiveforge::op::config::{self, SetConfigRequest, ShowConfigRequest};
use hiveforge::op::job::{
    self, CancelRequest, CheckJobRequest, FireRequest, JobLogRequest, JobStanding, ListJobsRequest, PollOutcome,
    PollRequest, SuperviseRequest, WaitRequest,
};
use hiveforge::op::key::{self, AddKeyRequest, RemoveKeyRequest};
use hiveforge::op::pause::{
    self, ArchiveRequest, PauseRequest, RestRequest, ResumeProjectRequest, WaitUntilDrainedRequest,
};
use hiveforge::op::project::{self, ListRequest, MapRequest, Projection, SnapshotRequest};
use hiveforge::op::session::{self, LoginRequest, LogoutRequest, RenewRequest, ReportRequest};
use hiveforge::op::sign::{self, SignFileRequest, SignRequest};
use hiveforge::op::task::{self, ProposeTaskRequest, TaskEnd};
use hiveforge::op::{
    self, ActRequest, AppendBatchRequest, AppendRequest, AppendStreamRequest, BackupRequest, Caller, Context,
    DueWarningsRequest, EventFilter, FollowStep, Host, InitRequest, InstallTimerRequest, LineageRequest, LogRequest,
    LogSource, Mode, NotifyRequest, PageStart, Prompts, RecoverRequest, Shell, ShowEventRequest, ShowRequest, Signing,
    TimerState, UninstallTimerRequest, VerifyRequest, WatchdogProgram, WatchdogRequest,
};
use hiveforge::policy::scheduler::Scheduler;
use hiveforge::policy::statement::{Act, Bound, StatedAct, Statement};
use hiveforge::vault::Method;

use crate::support::operator_keys::{make_key, public_line};
use crate::support::test_vault::proposal;

use super::work::requirement;
use super::{Hand, LONG};

pub(super) fn sessions(hand: &Hand, round: usize) {
    let name = format!("seat-{}", hand.number);
    let project = format!("seats-{}", hand.number);
    let person = hand.within(&project);
    let request = ProposeTaskRequest { title: Some(hand.text("seat", round)), ..Default::default() };
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
    let (reference, end) = (None, TaskEnd::Succeeded { summary: Some("done".to_owned()), skip: None });
    let report = ReportRequest { reference, end, key: hand.key("report", round) };
    assert_eq!(hand.told(&session::report(&seat, report).unwrap().recorded), task);
    hand.told(&session::logout(&seat, LogoutRequest::default()).unwrap().recorded.unwrap());
}

pub(super) fn pauses(hand: &Hand, round: usize) {
    let ctx = &hand.within(&format!("rests-{}-{round}", hand.number));
    let request = ProposeTaskRequest { title: Some(hand.text("rest", round)), ..Default::default() };
    hand.told(&task::propose(ctx, request).unwrap());
    let why = || "to look".to_owned();
    hand.told(&pause::pause(ctx, PauseRequest { reason: why() }).unwrap().recorded.unwrap());
    let rest = RestRequest { reason: Some(why()), archive: false, wait: Some(LONG) };
    assert!(pause::rest(ctx, rest).unwrap().project.left.is_empty());
    let rested = pause::wait_until_drained(ctx, WaitUntilDrainedRequest { max: LONG }).unwrap();
    assert_eq!((rested.phase, rested.left), (Phase::Paused, Vec::new()));
    let resumed = pause::resume_project(ctx, ResumeProjectRequest { comment: Some(why()) }).unwrap();
    hand.told(&resumed.recorded.unwrap());
    pause::check_exists(ctx).unwrap();
    hand.told(&pause::archive(ctx, ArchiveRequest { reason: Some(why()) }).unwrap().recorded.unwrap());
}

pub(super) fn agents(hand: &Hand, round: usize) {
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

pub(super) fn projects(hand: &Hand, round: usize) {
    let ctx = &hand.person;
    assert!(project::summary(ctx).unwrap().events > 0);
    let projection = Projection::Of(EntityType::Requirement);
    let mut listed = project::list(ctx, ListRequest { limit: 3, ..ListRequest::first_page(projection) }).unwrap();
    while let Some(cursor) = listed.next_cursor.take() {
        let request = ListRequest { limit: 3, cursor: Some(cursor.to_string()), ..ListRequest::first_page(projection) };
        listed = project::list(ctx, request).unwrap();
    }
    project::map(ctx, MapRequest { projection: Projection::Idempotency }).unwrap();
    let name = Some(format!("of-{}-{round}", hand.number));
    project::snapshot(ctx, SnapshotRequest { name }).unwrap();
    project::rebuild(ctx).unwrap();
    let found = project::check(ctx).unwrap();
    assert!(found.differences.is_empty(), "{:?}", found.differences);
    op::status(ctx, op::StatusRequest::default()).unwrap();
    assert!(op::callers_situation(ctx).unwrap().standing.is_none());
    assert!(!op::metrics(ctx).unwrap().metrics.is_empty());
}

pub(super) fn logs(hand: &Hand, round: usize) {
    let ctx = &hand.person;
    let page = |start: PageStart| LogRequest {
        source: LogSource::Log,
        filter: EventFilter::default(),
        start,
        limit: 7,
        with_references: true,
    };
    let found = op::log(ctx, page(PageStart::Newest)).unwrap();
    let (event, _) = found.entries.last().unwrap();
    let cursor = op::log(ctx, page(PageStart::Oldest)).unwrap().next_cursor.map(|cursor| cursor.to_string());
    if let Some(cursor) = cursor {
        op::log(ctx, page(PageStart::After(cursor))).unwrap();
    }
    let request = ShowEventRequest { reference: event.id.to_string() };
    assert_eq!(op::show_event(ctx, request).unwrap().event, *event);
    let request = LineageRequest { reference: event.id.to_string(), up: true, down: true, depth: 5 };
    assert_eq!(op::lineage(ctx, request).unwrap().root, event.id);
    let reference = requirement(hand, hand.text("shown", round));
    let request = ShowRequest { reference: reference.clone(), wanted: &[EntityType::Requirement] };
    assert_eq!(op::show(ctx, request).unwrap().entity.subject.to_string(), reference);
    let mut seen = Vec::new();
    op::follow(ctx, page(PageStart::Oldest), &mut |followed| {
        if let FollowStep::Entry((event, _)) = followed {
            seen.push(event.id);
        }
        Ok(if seen.len() < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })
    .unwrap();
    assert!(seen.is_sorted() && seen.len() == 5);
}

pub(super) fn configs(hand: &Hand, _: usize) {
    assert!(!config::show(&hand.person, ShowConfigRequest::default()).unwrap().settings.is_empty());
    assert!(config::diff(&hand.person).unwrap().differences.is_empty());
    // The file changes, and what it says does not.
    let request = SetConfigRequest { name: "hive.name".to_owned(), value: "hive".to_owned() };
    assert!(config::set(&hand.person, request).unwrap().changes.is_empty());
    assert!(config::adopt(&hand.person).unwrap().warnings.is_empty());
    assert_eq!(config::trust(&hand.person).unwrap().commands.len(), 4);
}

pub(super) fn watchdogs(hand: &Hand, _: usize) {
    let ctx = &hand.person.at_this_moment();
    let looked = op::watchdog(ctx, WatchdogRequest { mode: Mode::DryRun }).unwrap();
    assert!(looked.did.is_empty());
    op::watchdog(ctx, WatchdogRequest { mode: Mode::Write }).unwrap();
    // One of several sends, and the others leave it at that.
    op::notify(ctx, NotifyRequest { hook: "hooks.on_done".to_owned() }).unwrap();
}

/// On a machine without cron and without a home directory, nothing can be installed, and nothing is.
pub(super) fn timers(hand: &Hand, _: usize) {
    let host = Host { search_path: Some(OsString::new()), ..Host::new(hand.person.host.clock) };
    let ctx = &Context { host: Arc::new(host), ..hand.person.clone() };
    for scheduler in [Scheduler::Cron, Scheduler::Systemd] {
        let program = WatchdogProgram { path: PathBuf::from("/bin/true"), subcommand: None };
        assert!(op::install_timer(ctx, InstallTimerRequest { scheduler, program }).is_err());
        let removed = op::uninstall_timer(ctx, UninstallTimerRequest { scheduler });
        assert!(removed.is_err() || removed.unwrap().state == TimerState::Uninstalled);
    }
    assert_ne!(op::check_timer(ctx).unwrap().state, TimerState::Installed);
    let request = DueWarningsRequest { warnings: vec![format!("by {:?}", std::thread::current().id())] };
    op::warnings_to_print(ctx, request).unwrap();
}

pub(super) fn jobs(hand: &Hand, round: usize) {
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
    let request = PollRequest { id: reference.clone(), interval: LONG, max: Some(LONG), limits: Vec::new() };
    assert!(matches!(job::poll(ctx, request).unwrap(), PollOutcome::Done { .. }));
    let references = vec![reference.clone(), slow.clone()];
    assert!(job::wait(ctx, WaitRequest { references, need: Need::Any, max: Some(LONG) }).unwrap().fulfilled);
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
    assert_eq!((cancelled.view.standing, cancelled.already_ended), (JobStanding::Fail, false));
    // A supervisor is a process of its own; nobody becomes one by a call.
    let task = reference.trim_start_matches("task:").to_owned();
    let error = job::supervise(ctx, SuperviseRequest { task }).unwrap_err();
    assert!(error.message.starts_with("standard input is not the lock"), "{error:?}");
}

pub(super) fn appends(hand: &Hand, round: usize) {
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

pub(super) fn backups(hand: &Hand, round: usize) {
    let target = hand.dir.join(format!("copy-{}-{round}", hand.number));
    let copied = op::backup(&hand.person, BackupRequest { target: target.clone() }).unwrap();
    assert_eq!(copied.path, target);
    // A copy of a vault is verified.
    assert!(
        op::init(&Context { vault: target, ..hand.person.clone() }, InitRequest::default()).unwrap().created.is_none()
    );
}

fn verdict(ctx: &Context) -> op::VerifyOutcome {
    let request = VerifyRequest {
        method: Method::Fast { jobs: None },
        expected_heads: Vec::new(),
        since: None,
        projections: true,
        policy: true,
        artifacts: true,
        operator_keys: None,
    };
    op::verify(ctx, request, &mut |_, _| {}).unwrap()
}

pub(super) fn verdicts(hand: &Hand, _: usize) {
    let ctx = &hand.person;
    assert!(verdict(ctx).passed());
    // There is nothing to cut off.
    for confirmed in [false, true] {
        let found = op::recover(ctx, RecoverRequest { confirmed }).unwrap().recovery;
        assert!(found.loss.is_none() && found.events.is_empty(), "{found:?}");
    }
    assert!(op::init(ctx, InitRequest::default()).unwrap().created.is_none());
}

pub(super) fn signatures(hand: &Hand, round: usize) {
    let ctx = &hand.person;
    let key = make_key(&hand.dir, &format!("key-{}-{round}", hand.number), "ed25519");
    let mut act = StatedAct::new(Act::AddKey, Subject::SYSTEM, None);
    act.binds.push(Bound::new("key", public_line(&key).trim_end()));
    let statement = Statement::new("v", None, None, vec![act]).unwrap();
    let file = hand.dir.join(format!("statement-{}-{round}", hand.number));
    std::fs::write(&file, statement.to_string()).unwrap();
    let (key, prompts) = (Some(key), Prompts::Nobody);
    let request = SignFileRequest { file, out: None, key: key.clone(), prompts };
    let in_file = sign::sign_file(ctx, request, &mut |_| Ok(())).unwrap();
    let signed = sign::sign(ctx, SignRequest { statement, key, prompts }).unwrap();
    assert_eq!(in_file.signed.proof, signed.proof);
    // Of the vault that all share, nobody changes the keys.
    assert!(key::list(ctx).unwrap().keys.is_empty());
    let other = &Context { vault: hand.dir.join(format!("keyed-{}-{round}", hand.number)), ..ctx.clone() };
    let other = &other.with_signing(Signing { confirm: |_| Ok(()), prompts, ..Signing::default() });
    op::init(other, InitRequest::default()).unwrap();
    let files =
        ["first", "second"].map(|name| make_key(&hand.dir, &format!("{name}-{}-{round}", hand.number), "ed25519"));
    let signing_with =
        |file: &PathBuf| other.with_signing(Signing { key: Some(file.clone()), ..other.signing.clone() });
    for file in &files {
        let line = file.with_extension("pub");
        let request = AddKeyRequest { key: sign::read_key(&line).unwrap(), file: line };
        let planned = op::statement(other, ActRequest::AddKey(request.clone())).unwrap();
        assert_eq!(planned.statement.acts().len(), 1);
        key::add(&signing_with(&files[0]), request).unwrap();
    }
    let first = sign::read_key(&files[0].with_extension("pub")).unwrap().fingerprint();
    let request = RemoveKeyRequest { key: first, compromised: true };
    let removed = key::remove(&signing_with(&files[1]), request).unwrap();
    assert_eq!((removed.keys.len(), removed.acts.len()), (1, 2));
}
