//! What a thread does to work in one round: tasks, requirements, decisions, constraints, missions, reviews, branches,
//! documents and artifacts.

use std::fs;
use std::path::PathBuf;

use hiveforge::machine::Phase;
use hiveforge::op::artifact::{
    self, DeclareRequest, GetRequest, InvalidateRequest, PutRequest, RepairRequest, ValidateRequest,
};
use hiveforge::op::branch::{
    self, BranchesRequest, CompleteBranchRequest, CreateRequest, InboxRequest, Interruptible, KnowRequest,
    KnownRequest, LeavingNote, NoteRequest, ReadRequest, RecallRequest, ResumeBranchRequest, SuspendRequest,
    TellRequest,
};
use hiveforge::op::constraint::{self, ApplyRequest, RemoveRequest};
use hiveforge::op::decide::{self, AcknowledgeRequest, DecisionRequest, RejectDecisionRequest};
use hiveforge::op::document::{self, AddRequest, ResolveRequest};
use hiveforge::op::mission::{
    self, EndMissionRequest, FirePlannedRequest, MoreRoundsRequest, PlanRequest, ReportedFailureRequest, RoundRequest,
    SetRequest, StartMissionRequest,
};
use hiveforge::op::require::{
    self, AnalyzeRequest, ProposeRequirementRequest, RejectRequirementRequest, SupersedeRequest,
    VerifyRequirementRequest,
};
use hiveforge::op::review::{
    self, FailsRequest, PromptRequest, RecordReviewRequest, RunReviewOutcome, RunReviewRequest,
};
use hiveforge::op::task::{
    self, AbortRequest, ArchiveTaskRequest, AssignRequest, EditTaskRequest, EndTaskRequest, ExplainRequest,
    FailRequest, HeartbeatRequest, MarkStepRequest, ModelCall, NoteTaskRequest, ProposeTaskRequest, ReadyRequest,
    StartTaskRequest, SucceedRequest, TaskEnd,
};
use hiveforge::op::{self, AppendRequest, Mode, NewEvent};
use hiveforge::policy::approval::Question;
use serde_json::json;

use super::{Hand, approved, contended, decision};

pub(super) fn tasks(hand: &Hand, round: usize) {
    let (title, key) = (Some(hand.text("task", round)), hand.key("task", round));
    let request = ProposeTaskRequest { title, key, ..Default::default() };
    let first = task::propose(&hand.person, request.clone()).unwrap();
    let reference = hand.told(&first);
    let again = task::propose(&hand.person, request).unwrap();
    assert!(again.duplicate && again.asked.id == first.asked.id);
    let ready = ReadyRequest { reference: reference.clone(), key: None };
    assert!(task::ready(&hand.person, ready).unwrap().duplicate);
    hand.claimed(&reference);
    let start = StartTaskRequest { reference: reference.clone(), ..Default::default() };
    hand.told(&task::start(&hand.agent, start).unwrap().recorded);
    for _ in 0..2 {
        let beat = HeartbeatRequest { reference: reference.clone(), key: None };
        hand.told(&task::heartbeat(&hand.agent, beat).unwrap());
    }
    let done = SucceedRequest { reference: reference.clone(), summary: Some("done".to_owned()), ..Default::default() };
    hand.told(&task::succeed(&hand.agent, done).unwrap());
    assert_eq!(task::explain(&hand.agent, ExplainRequest { reference }).unwrap().task.phase, Phase::Succeeded);
    // Given to somebody, and failed.
    let reference = hand.task("given");
    let agent = hand.agent.caller.actor.agent().unwrap().to_string();
    let assign = AssignRequest { reference: reference.clone(), agent, ..Default::default() };
    hand.told(&task::assign(&hand.person, assign).unwrap());
    let (title, reason) = (Some(hand.text("better", round)), "direction".to_owned());
    let steps = Some(vec!["one".to_owned(), "two".to_owned()]);
    let edit = EditTaskRequest { reference: reference.clone(), title, steps, reason, ..Default::default() };
    hand.told(&task::edit(&hand.person, edit).unwrap());
    let note = NoteTaskRequest { reference: reference.clone(), text: "begun".to_owned(), key: None };
    hand.told(&task::note(&hand.agent, note).unwrap());
    let start = StartTaskRequest { reference: reference.clone(), timeout_seconds: Some(60), key: None };
    hand.told(&task::start(&hand.agent, start).unwrap().recorded);
    let mark = MarkStepRequest { reference: reference.clone(), step: 1, mark: "done".to_owned(), ..Default::default() };
    hand.told(&task::mark_step(&hand.agent, mark).unwrap().recorded);
    let (class, reason) = ("permanent".to_owned(), "no power".to_owned());
    hand.told(&task::fail(&hand.agent, FailRequest { reference, class, reason, ..Default::default() }).unwrap());
    // Ended without having been begun.
    let reference = hand.task("ended");
    hand.claimed(&reference);
    let end = TaskEnd::Succeeded { summary: None, skip: None };
    hand.told(
        &task::end(
            &hand.agent,
            EndTaskRequest { reference, end, start_first: true, model: ModelCall::default(), key: None },
        )
        .unwrap(),
    );
    let reference = hand.task("given up");
    let aborted =
        hand.told(&task::abort(&hand.person, AbortRequest { reference, ..Default::default() }).unwrap().recorded);
    let archive = ArchiveTaskRequest { reference: aborted, key: None };
    hand.told(&task::archive(&hand.person, archive).unwrap());
}

pub(super) fn requirement(hand: &Hand, title: String) -> String {
    let request = ProposeRequirementRequest { title, ..Default::default() };
    hand.told(&require::propose(&hand.person, request).unwrap())
}

/// A requirement that an operator approved.
pub(super) fn approved_requirement(hand: &Hand, title: String) -> String {
    let reference = requirement(hand, title);
    let request = AnalyzeRequest { reference: reference.clone(), ..Default::default() };
    let analyzed = require::analyze(&hand.agent, request).unwrap();
    hand.told(&analyzed);
    approved(hand, decision(&analyzed));
    reference
}

pub(super) fn requirements(hand: &Hand, round: usize) {
    let reference = approved_requirement(hand, hand.text("requirement", round));
    let work =
        ProposeTaskRequest { title: Some("work".into()), requirement: Some(reference.clone()), ..Default::default() };
    let work = hand.told(&task::propose(&hand.person, work).unwrap());
    hand.claimed(&work);
    let end = TaskEnd::Succeeded { summary: None, skip: None };
    hand.told(
        &task::end(
            &hand.agent,
            EndTaskRequest { reference: work, end, start_first: true, model: ModelCall::default(), key: None },
        )
        .unwrap(),
    );
    let verify = VerifyRequirementRequest { reference: reference.clone(), key: None };
    hand.told(&require::verify(&hand.person, verify).unwrap());
    let older = approved_requirement(hand, "older".to_owned());
    let request = SupersedeRequest { reference: older, by: Some(reference), key: None };
    hand.told(&require::supersede(&hand.person, request).unwrap());
    let reference = requirement(hand, "unwanted".to_owned());
    let request = RejectRequirementRequest { reference, reason: "no".to_owned(), key: None };
    hand.told(&require::reject(&hand.person, request).unwrap());
}

pub(super) fn decisions(hand: &Hand, round: usize) {
    let request =
        ProposeTaskRequest { title: Some(hand.text("deletion", round)), destructive: true, ..Default::default() };
    let asked = task::propose(&hand.person, request).unwrap();
    let target = hand.told(&asked);
    let rejects = RejectDecisionRequest { reference: decision(&asked), reason: "not yet".to_owned(), key: None };
    hand.told(&decide::reject(&hand.person, rejects).unwrap());
    let request = ProposeTaskRequest { title: Some("another".to_owned()), destructive: true, ..Default::default() };
    let asked = task::propose(&hand.person, request).unwrap();
    let other = hand.told(&asked);
    approved(hand, decision(&asked));
    let payload = json!({"reason": "which one?"}).as_object().unwrap().clone();
    let (event_type, subject) = ("EscalationRequired".to_owned(), Some(other.clone()));
    let event = NewEvent { event_type, subject, payload, ..Default::default() };
    let raised = op::append(&hand.agent, AppendRequest { event, mode: Mode::Write }).unwrap();
    hand.told(&raised);
    let (reference, reason) = (format!("escalation:{}", raised.asked.id), "this one".to_owned());
    hand.told(&decide::acknowledge(&hand.person, AcknowledgeRequest { reference, reason, key: None }).unwrap());
    // What was said no to is over, what was said yes to is not asked again.
    for target in [target, other] {
        let (question, summary) = (Question::Destructive, hand.text("may it", round));
        let request = DecisionRequest { question, target, summary, options: Vec::new(), key: None };
        if let Some(done) = contended(decide::request(&hand.agent, request)) {
            hand.told(&done);
        }
    }
}

pub(super) fn constraints(hand: &Hand, round: usize) {
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

/// There is one mission at a time, so that all threads want the same one.
pub(super) fn missions(hand: &Hand, round: usize) {
    let ctx = &hand.person;
    let request = StartMissionRequest { goal: hand.text("mission", round), ..Default::default() };
    let begun = contended(mission::start(ctx, request));
    let pairs = vec![format!("LAST_ACTION={}", hand.text("step", round))];
    let set = contended(mission::set(ctx, SetRequest { pairs, ..Default::default() }));
    let next = contended(mission::round(ctx, RoundRequest { key: hand.key("round", round) }));
    let more = contended(mission::more_rounds(ctx, MoreRoundsRequest { rounds: 1, ..Default::default() }));
    // The same plan for all of them, whose only task somebody fires.
    let plan = r#"{"tasks":[{"id":"a","title":"Planned","command":["true"]}]}"#.to_owned();
    let planned = contended(mission::plan(ctx, PlanRequest { plan, key: None })).map(|planned| planned.mission);
    if let Some(planned) = &planned {
        let reference = planned.view.m1.task.clone();
        let fired = contended(mission::fire_planned(ctx, FirePlannedRequest { reference }));
        let mission = planned.view.mission.subject.clone();
        if let Some(fired) = fired {
            hand.told(&fired.recorded);
            let request = ReportedFailureRequest { mission, job: fired.task.subject };
            contended(mission::note_failure_was_reported(ctx, request));
        }
    }
    contended(mission::show(ctx));
    let ended = contended(mission::end(ctx, EndMissionRequest { passed: true, ..Default::default() }));
    for done in [begun, set, next, more, planned, ended].into_iter().flatten() {
        hand.told(&done.recorded);
    }
}

/// There is one debate at a time, and one reviewer whose turn it is.
pub(super) fn reviews(hand: &Hand, round: usize) {
    let (ctx, spec) = (&hand.person, hand.text("spec", round));
    if let Some(opened) = contended(review::reopen(ctx)) {
        hand.told(&opened);
    }
    contended(review::prompt(ctx, PromptRequest { spec: spec.clone(), reviewer: None }));
    for reviewer in ["gpt", "gem"] {
        let (reviewer, reply) = (reviewer.to_owned(), "FAIL: no timeout -> FIX: add one".to_owned());
        let request = RecordReviewRequest { reviewer, reply, ..Default::default() };
        if let Some(done) = contended(review::record(ctx, request)) {
            hand.told(&done.recorded);
        }
    }
    contended(review::fails(ctx, FailsRequest::default()));
    review::status(ctx).unwrap();
    let mut asked = Vec::new();
    if let Some(done) =
        contended(review::run(ctx, RunReviewRequest { spec, document: None }, &mut |who| asked.push(who.to_owned())))
    {
        let RunReviewOutcome::Reviewed(done) = done else { panic!("every spec is new") };
        assert!(!asked.is_empty() && done.ran);
        hand.told(&done.recorded);
    }
}

pub(super) fn branches(hand: &Hand, round: usize) {
    let (ctx, name) = (&hand.agent, hand.agent.caller.actor.agent().unwrap().to_string());
    let left = |summary: String| LeavingNote { summary: Some(summary), ..Default::default() };
    let (label, key) = (hand.text("walk", round), hand.key("walk", round));
    let request = CreateRequest { label, branch_type: "free".to_owned(), key, ..Default::default() };
    let Interruptible::Done(made) = branch::create(ctx, request).unwrap() else { panic!("nobody called {name}") };
    let reference = hand.told(&made);
    let note = NoteRequest { text: "x".repeat(5000), key: hand.key("note", round), ..Default::default() };
    let Interruptible::Done(noted) = branch::note(ctx, note).unwrap() else { panic!("nobody called {name}") };
    hand.told(&noted.recorded);
    hand.told(
        &branch::suspend(ctx, SuspendRequest { leaving: left(hand.text("half way", round)), ..Default::default() })
            .unwrap(),
    );
    let listed = branch::branches(ctx, BranchesRequest::default()).unwrap();
    assert!(listed.page.entities().any(|found| found.subject.to_string() == reference));
    assert!(branch::working(ctx).unwrap().count > 0);
    branch::reacted_to(ctx).unwrap();
    let (leaving, words) = (LeavingNote::default(), 100);
    let request = ResumeBranchRequest { reference: reference.clone(), words, leaving };
    let Interruptible::Done(resumed) = branch::resume(ctx, request).unwrap() else { panic!("nobody called {name}") };
    hand.told(&resumed.recorded);
    let leaving = left("round it".to_owned());
    hand.told(&branch::complete(ctx, CompleteBranchRequest { reference: None, leaving }).unwrap());
    let recalled = RecallRequest { reference: Some(reference), thread: Some(1), ..Default::default() };
    assert_eq!(branch::recall(ctx, recalled).unwrap().messages, 1);
    let (title, text) = (hand.text("walks", round), "They are long".to_owned());
    hand.told(&branch::know(ctx, KnowRequest { title: title.clone(), text, key: hand.key("know", round) }).unwrap());
    assert_eq!(branch::known(ctx, KnownRequest { title, history: true }).unwrap().revisions.len(), 1);
    let tell = TellRequest { to: vec![name], text: hand.text("where are you", round), key: None };
    hand.told(&branch::tell(&hand.person, tell).unwrap());
    assert_eq!(branch::decide(ctx).unwrap().unread.len(), 1);
    assert_eq!(branch::inbox(ctx, InboxRequest { only_unread: true, ..Default::default() }).unwrap().unread, 1);
    hand.told(&branch::read(ctx, ReadRequest::default()).unwrap().unwrap().recorded);
    assert!(branch::read(ctx, ReadRequest::default()).unwrap().is_none());
}

pub(super) fn documents(hand: &Hand, round: usize) {
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

pub(super) fn artifacts(hand: &Hand, round: usize) {
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
    let declare = DeclareRequest { name: "notes.txt".to_owned(), ..Default::default() };
    let declared = hand.told(&artifact::declare(ctx, declare).unwrap());
    hand.told(&put(PutRequest { declared: Some(declared.clone()), ..Default::default() }));
    assert!(artifact::repair(ctx, RepairRequest { reference: declared }).unwrap().findings.is_empty());
    let task = hand.task("made");
    let bad = hand.text("bad", round);
    let request = PutRequest { task: Some(task), ..Default::default() };
    let reference = hand.told(&artifact::put(ctx, request, &mut bad.as_bytes()).unwrap().recorded);
    let invalid = InvalidateRequest { reference, reason: "the tests fail".to_owned(), key: None };
    hand.told(&artifact::invalidate(ctx, invalid).unwrap());
}
