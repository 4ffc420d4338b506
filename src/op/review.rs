//! hf-review: reviewers reply in turn until they agree.
//!
//! Invariant: no reviewer is run while everything is stopped or the project is paused, and a stop ends the one that runs
//! (`j2_no_reviewer_is_run_under_a_stop_or_in_a_paused_project`).

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Context, Recorded, hook, random_ulid};
use crate::base::{EntityType, Error, Result, Subject, text};
use crate::event::Kind;
use crate::job::{ControlWatch, Interruption, Program};
use crate::machine::Phase;
use crate::op::kernel::{Transaction, is_stopped, with_view};
use crate::op::mission::settle_file;
use crate::policy::review::{OpenFail, OpenReason};
use crate::policy::settings::Setting;
use crate::policy::{Request, mission, project, review, rules};
use crate::state::{Entity, State};
use crate::vault::config::Config;
use crate::vault::{Log, Vault, review_path};

/// The current state of the debate.
#[derive(Debug)]
pub struct DebateView {
    /// The newest debate of the running mission, or outside of missions; none if it is closed.
    pub debate: Option<Entity>,
    /// The reviewer whose turn it is; none if the debate has ended.
    pub turn: Option<String>,
    pub newest: Option<Entity>,
    /// The FAILs that are open, oldest first.
    pub open_fails: Vec<OpenFail>,
    /// The status of the newest mission, if there is one.
    pub m1_status: Option<&'static str>,
}

impl DebateView {
    pub fn round(&self) -> u64 {
        self.debate.as_ref().map_or(0, |debate| debate.as_debate().round())
    }

    pub fn is(&self, phase: Phase) -> bool {
        self.debate.as_ref().is_some_and(|debate| debate.phase == phase)
    }

    /// The open FAILs of the newest review.
    pub fn fails(&self) -> impl Iterator<Item = &OpenFail> {
        self.open_fails.iter().filter(|fail| fail.why == OpenReason::Raised)
    }

    /// The FAILs of earlier reviews that are still open.
    pub fn still_open(&self) -> impl Iterator<Item = &OpenFail> {
        self.open_fails.iter().filter(|fail| fail.why != OpenReason::Raised)
    }

    /// Whether the newest review is about this document.
    fn is_about(&self, document: &str) -> bool {
        self.newest.as_ref().and_then(|review| review.as_review().document_sha256()) == Some(document)
    }

    /// Whether the reviewers agree on this document.
    fn has_converged_on(&self, document: &str) -> bool {
        self.is(Phase::Converged) && self.is_about(document)
    }

    /// Whether something in this document has to be fixed before anybody is asked about it again.
    fn must_fix(&self, document: &str) -> bool {
        self.is(Phase::Open) && !self.open_fails.is_empty() && self.is_about(document)
    }
}

fn fails_of(review: &Entity) -> Vec<String> {
    review.as_review().fails().map(str::to_owned).collect()
}

pub fn status(ctx: &Context) -> Result<DebateView> {
    let vault = ctx.open()?;
    let config = vault.config();
    with_view(&vault, |snapshot, state| {
        let view = debate_view(state, &config);
        view.newest.iter().for_each(|review| restore_file(&vault, snapshot, review));
        Ok(view)
    })
}

/// Writes the file of a review if it is missing, as after a crash. Best effort: its content is in the log.
fn restore_file(vault: &Vault, snapshot: &dyn Log, review: &Entity) {
    let id = review.subject.id();
    if vault.has_review(id).unwrap_or(true) {
        return;
    }
    if let Ok(Some(event)) = snapshot.find(review.first_event)
        && let Some(text) = event.payload.get("text").and_then(Value::as_str)
    {
        let _ = vault.put_review(id, &format!("{}\n", text.trim()));
    }
}

fn debate_view(state: &State, config: &Config) -> DebateView {
    let newest_mission = mission::newest(state);
    let running = newest_mission.as_ref().filter(|mission| mission.phase == Phase::Running).map(|m| m.subject.clone());
    let current = |debate: &Entity| debate.as_debate().mission() == running;
    let debate = state.newest(EntityType::Debate).filter(|debate| debate.phase != Phase::Closed && current(debate));
    let first = || config.texts(Setting::ReviewersOrder).into_iter().next();
    let turn = match &debate {
        Some(debate) if debate.phase == Phase::Open => review::turn(debate).map(str::to_owned),
        Some(_) => None,
        None => first(),
    };
    let newest = debate.as_ref().and_then(|debate| review::newest(state, debate));
    let open_fails = debate.as_ref().map(|debate| review::open_fails(state, debate)).unwrap_or_default();
    let m1_status = newest_mission.map(|mission| mission::MissionFile::of_mission(state, &mission).status);
    DebateView { debate, turn, newest, open_fails, m1_status }
}

/// A spec to review.
#[derive(Clone, Debug, Default)]
pub struct PromptRequest {
    /// The text of the spec.
    pub spec: String,
    /// The reviewer; default: whose turn it is.
    pub reviewer: Option<String>,
}

/// The prompt for a reviewer.
#[derive(Debug)]
pub struct PromptOutcome {
    pub prompt: String,
    /// The SHA-256 of the spec.
    pub document_sha256: String,
}

/// Returns the prompt for a reviewer: the spec, and the FAIL lines that are open.
pub fn prompt(ctx: &Context, request: PromptRequest) -> Result<PromptOutcome> {
    prompt_for(ctx, &request.spec, request.reviewer.as_deref())
}

fn prompt_for(ctx: &Context, spec: &str, reviewer: Option<&str>) -> Result<PromptOutcome> {
    let vault = ctx.open()?;
    let config = vault.config();
    with_view(&vault, |_, state| {
        if let Some(reviewer) = reviewer {
            check_known(state, &config, reviewer)?;
        }
        let view = debate_view(state, &config);
        if view.is(Phase::Exhausted) {
            return Err(review::out_of_rounds());
        }
        let fails = view.open_fails.iter().filter(|_| view.is(Phase::Open)).map(|fail| fail.line.as_str());
        Ok(PromptOutcome { prompt: review::prompt(spec, fails), document_sha256: review::document_hash(spec) })
    })
}

/// Checks that this is a reviewer: of the open debate, or else by the settings.
fn check_known(state: &State, config: &Config, reviewer: &str) -> Result<()> {
    let open = review::open(state);
    let known = match &open {
        Some(debate) => debate.as_debate().reviewers().map(str::to_owned).collect(),
        None => config.texts(Setting::ReviewersOrder),
    };
    match known.iter().any(|name| name == reviewer) {
        true => Ok(()),
        false => {
            let shown = text::cut(reviewer, 40);
            Err(Error::usage(format!("unknown reviewer '{shown}'; one of {}", known.join(", "))))
        }
    }
}

/// A review to record.
#[derive(Clone, Debug, Default)]
pub struct RecordReviewRequest {
    /// The reviewer.
    pub reviewer: String,
    /// The reply: PASS: and FAIL: lines.
    pub reply: String,
    /// The SHA-256 of the document that it is about. Without it, the document counts as unchanged, and no FAIL is closed.
    pub document_sha256: Option<String>,
    /// The path of the document, or its reference. Kept if it can be part of a command as it is.
    pub document: Option<String>,
    /// Idempotency key.
    pub key: Option<String>,
}

/// A recorded review, and the state of the debate.
#[derive(Debug)]
pub struct ReviewOutcome {
    pub recorded: Recorded,
    /// The id of the review.
    pub review: String,
    /// Its file, relative to `Autonomous/`.
    pub file: String,
    pub passes: usize,
    pub fails: Vec<String>,
    pub view: DebateView,
    /// Whether it ended an `hf-review run`.
    pub ran: bool,
}

/// Records a review.
pub fn record(ctx: &Context, request: RecordReviewRequest) -> Result<ReviewOutcome> {
    review::parse(request.reply.trim())?;
    let vault = ctx.open()?;
    record_in(ctx, &vault, Transaction::begin(ctx, &vault)?, request)
}

fn record_in(
    ctx: &Context,
    vault: &Vault,
    mut tx: Transaction<'_>,
    request: RecordReviewRequest,
) -> Result<ReviewOutcome> {
    let RecordReviewRequest { reviewer, reply, document_sha256, document, key } = request;
    let (reviewer, reply) = (reviewer.as_str(), reply.trim());
    let parsed = review::parse(reply)?;
    check_known(tx.state(), &tx.config, reviewer)?;
    let payload = json!({
        "reviewer": reviewer,
        "text": reply,
        "fails": parsed.fails,
        review::DOCUMENT: document_sha256,
        review::DOCUMENT_NAME: document.and_then(|document| known_name(vault, &document)),
    });
    let mut asked = Request { key, ..ctx.request(Kind::ReviewRecorded, None, payload) };
    let (mut recorded, view) = match first_recording(&tx, &mut asked)? {
        Some(first) => (first, debate_view(tx.state(), &tx.config)),
        None => {
            asked.payload.insert("debate_id".to_owned(), open_debate(ctx, &mut tx)?.id().into());
            let number = tx.state().free_number(EntityType::Review, |n| review::id(reviewer, n));
            asked.subject = Some(format!("{}:{}", EntityType::Review, review::id(reviewer, number)));
            let asked = tx.ask(asked)?;
            // Viewed before the commit: an error after it would refuse what is recorded.
            let view = debate_view(tx.state(), &tx.config);
            (tx.finish(&[asked])?, view)
        }
    };
    let id = Subject::parse(&recorded.asked.subject)?.id().to_owned();
    let file = vault.put_review(&id, &format!("{reply}\n")).unwrap_or_else(|error| {
        recorded.warnings.push(format!("the review is recorded, but its file could not be written: {error}"));
        review_path(&id)
    });
    if document_sha256.is_none() && !view.open_fails.is_empty() {
        recorded.warnings.push("without --spec the document counts as unchanged, so no FAIL is closed".to_owned());
    }
    let (passes, fails) = (parsed.passes.len(), parsed.fails);
    Ok(ReviewOutcome { recorded, review: id, file, passes, fails, view, ran: false })
}

/// The name of a document for a session that knows nothing else: relative to the folder of the vault if it is in there.
fn known_name(vault: &Vault, document: &str) -> Option<String> {
    let folder = std::path::absolute(vault.path()).ok()?;
    let within = Path::new(document).strip_prefix(folder.parent()?);
    let name = within.map_or(document, |within| within.to_str().unwrap_or(document));
    review::is_document_name(name).then(|| name.to_owned())
}

/// The first recording, if the key is recorded already, in whichever debate.
fn first_recording(tx: &Transaction<'_>, asked: &mut Request) -> Result<Option<Recorded>> {
    let Some(first) = asked.key.as_ref().and_then(|key| tx.state().keyed(key)) else { return Ok(None) };
    let debate = tx.log.find(first)?.and_then(|event| event.payload.get("debate_id").cloned());
    let mut same = asked.clone();
    same.payload.extend(debate.map(|debate| ("debate_id".to_owned(), debate)));
    tx.repeated(&same)
}

/// The open debate; opens one if there is none.
fn open_debate(ctx: &Context, tx: &mut Transaction<'_>) -> Result<Subject> {
    if let Some(debate) = review::open(tx.state()) {
        return Ok(debate.subject);
    }
    // After an exhausted debate a new one has to be opened explicitly, also by an operator.
    if review::exhausted(tx.state()).is_some() {
        return Err(review::out_of_rounds());
    }
    open_new_debate(ctx, tx).map(|(subject, _)| subject)
}

fn open_new_debate(ctx: &Context, tx: &mut Transaction<'_>) -> Result<(Subject, crate::op::kernel::Added)> {
    let mission = mission::running(tx.state()).map(|mission| mission.subject.id().to_owned());
    let payload = json!({"reviewers": tx.config.texts(Setting::ReviewersOrder), "mission_id": mission});
    let subject = format!("{}:{}", EntityType::Debate, random_ulid(ctx.now)?);
    let asked = tx.ask(ctx.request(Kind::DebateOpened, Some(&subject), payload))?;
    Ok((Subject::parse(&subject)?, asked))
}

/// Opens a new debate, as an operator may after one that used up its rounds, or instead of an open one that has replies.
pub fn reopen(ctx: &Context) -> Result<Recorded> {
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    if let Some(open) = review::open(tx.state()) {
        if ctx.caller.actor.is_autonomous() || open.as_debate().round() == 0 {
            let unchanged = crate::op::kernel::Added { id: open.last_event, already: true };
            return tx.finish(&[unchanged]);
        }
        tx.ask(ctx.request(Kind::DebateClosed, Some(&open.subject.to_string()), json!({})))?;
    }
    let (_, asked) = open_new_debate(ctx, &mut tx)?;
    tx.finish(&[asked])
}

/// The review whose FAIL lines to list.
#[derive(Clone, Debug, Default)]
pub struct FailsRequest {
    /// The review; default: the newest.
    pub reference: Option<String>,
}

/// The FAIL lines of a review.
#[derive(Debug)]
pub struct FailsOutcome {
    /// The id of the review.
    pub review: String,
    pub fails: Vec<String>,
}

/// Returns the FAIL lines of a review.
pub fn fails(ctx: &Context, request: FailsRequest) -> Result<FailsOutcome> {
    let vault = ctx.open()?;
    let config = vault.config();
    with_view(&vault, |snapshot, state| {
        let review = match &request.reference {
            Some(reference) => {
                let subject = state.find(reference, EntityType::Review)?;
                state.entity(&subject).map(|review| review.into_owned())
            }
            None => debate_view(state, &config).newest,
        };
        let review = review.ok_or_else(|| Error::not_found("no review yet"))?;
        restore_file(&vault, snapshot, &review);
        Ok(FailsOutcome { review: review.subject.id().to_owned(), fails: fails_of(&review) })
    })
}

/// A spec for all reviewers.
#[derive(Clone, Debug, Default)]
pub struct RunReviewRequest {
    /// The text of the spec.
    pub spec: String,
    /// Its path, or its reference.
    pub document: Option<String>,
}

/// What became of a run.
#[derive(Debug)]
pub enum RunReviewOutcome {
    /// The last review of the run.
    Reviewed(Box<ReviewOutcome>),
    /// The reviewers have agreed on this document before; nobody was asked.
    Converged(Box<DebateView>),
    /// The document is the one in which the FAILs were found; nobody was asked.
    Unchanged(Box<DebateView>),
}

/// Asks the reviewers in turn until a FAIL is open, they agree, or all rounds are used up. Calls `on_reviewer` with the
/// name of each reviewer. Nobody is asked about a document with an open FAIL, so a call after one that was killed uses up
/// no round.
pub fn run(ctx: &Context, request: RunReviewRequest, on_reviewer: &mut dyn FnMut(&str)) -> Result<RunReviewOutcome> {
    let vault = ctx.open()?;
    let document = review::document_hash(&request.spec);
    settle_file(ctx, &vault);
    loop {
        check_may_ask(ctx, &vault)?;
        let config = vault.config();
        let view = with_view(&vault, |_, state| Ok(debate_view(state, &config)))?;
        if view.has_converged_on(&document) {
            return Ok(RunReviewOutcome::Converged(Box::new(view)));
        }
        if view.must_fix(&document) {
            return Ok(RunReviewOutcome::Unchanged(Box::new(view)));
        }
        if let Some(debate) = view.debate.as_ref().filter(|debate| debate.phase == Phase::Open) {
            let name = request.document.as_deref().and_then(|name| known_name(&vault, name));
            with_view(&vault, |_, state| review::check_document(state, debate, Some(&document), name.as_deref()))?;
        }
        let reviewer = match view.turn.clone() {
            Some(reviewer) => reviewer,
            None if view.is(Phase::Exhausted) => return Err(review::out_of_rounds()),
            // The reviewers agreed on another document.
            None => config.texts(Setting::ReviewersOrder).into_iter().next().unwrap_or_default(),
        };
        check_commands(&vault, &config, &view)?;
        let prompt = prompt_for(ctx, &request.spec, Some(&reviewer))?.prompt;
        on_reviewer(&reviewer);
        let reply = readable_reply(ctx, &vault, &reviewer, &prompt)?;
        check_not_stopped(&vault)?;
        let ctx = ctx.at_this_moment();
        let document_sha256 = Some(document.clone());
        let named = request.document.clone();
        let tx = Transaction::begin(&ctx, &vault)?;
        // Another call may have brought the agreement meanwhile, or before it was killed, so that no reader saw it.
        let now = debate_view(tx.state(), &tx.config);
        if now.has_converged_on(&document) {
            return Ok(RunReviewOutcome::Converged(Box::new(now)));
        }
        let request = RecordReviewRequest { reviewer, reply, document_sha256, document: named, key: None };
        let done = record_in(&ctx, &vault, tx, request)?;
        if !done.view.open_fails.is_empty() || !done.view.is(Phase::Open) {
            return Ok(RunReviewOutcome::Reviewed(Box::new(ReviewOutcome { ran: true, ..done })));
        }
    }
}

/// Checks that every reviewer of the debate has a command, before the first one is run: a round would be used up for
/// nothing.
fn check_commands(vault: &Vault, config: &Config, view: &DebateView) -> Result<()> {
    let open = view.debate.as_ref().filter(|debate| debate.phase == Phase::Open);
    let reviewers = match open {
        Some(debate) => debate.as_debate().reviewers().map(str::to_owned).collect(),
        None => config.texts(Setting::ReviewersOrder),
    };
    reviewers.iter().try_for_each(|reviewer| command_of(vault, config, reviewer).map(drop))
}

fn command_of(vault: &Vault, config: &Config, reviewer: &str) -> Result<String> {
    let command = vault.reviewer_command(config, reviewer)?;
    command.ok_or_else(|| Error::usage(format!("reviewers.{reviewer}.command is not set")))
}

/// Refuses to run a reviewer while everything is stopped, or in a project that is paused or archived.
fn check_may_ask(ctx: &Context, vault: &Vault) -> Result<()> {
    check_not_stopped(vault)?;
    with_view(vault, |_, state| {
        let requirement = mission::running(state).and_then(|mission| mission.as_mission().requirement());
        let requirement = requirement.and_then(|requirement| state.entity(&requirement));
        let project = requirement.and_then(|requirement| project::project_of(&requirement));
        project::check_may_start(state, &project.unwrap_or_else(|| ctx.project()), &ctx.caller.actor)
    })
}

fn check_not_stopped(vault: &Vault) -> Result<()> {
    // The flag is raised before the stop is recorded.
    match vault.stop_flag() {
        Some(stop) => Err(rules::stopped_because(&stop.reason)),
        None => with_view(vault, |_, state| match is_stopped(state) {
            true => Err(rules::stopped(state)),
            false => Ok(()),
        }),
    }
}

/// Returns a reviewer's reply to a prompt. If it cannot be read, the reviewer is asked once more.
fn readable_reply(ctx: &Context, vault: &Vault, reviewer: &str, prompt: &str) -> Result<String> {
    let asked = |prompt: &str| {
        let printed = ask(vault, reviewer, prompt)?;
        let reply = String::from_utf8(printed).map_err(|_| Error::usage("the reply is not UTF-8"));
        Ok(reply.and_then(|reply| review::parse(reply.trim()).map(|_| reply)))
    };
    match asked(prompt)? {
        Ok(reply) => Ok(reply),
        Err(problem) => {
            check_may_ask(ctx, vault)?;
            asked(&review::prompt_again(prompt, &problem))?
                .map_err(|problem| Error::system(format!("invalid review by {reviewer}"), problem.message))
        }
    }
}

/// Runs a reviewer within the time limit and returns what it printed. A stop ends it.
fn ask(vault: &Vault, reviewer: &str, prompt: &str) -> Result<Vec<u8>> {
    let config = vault.config();
    let line = command_of(vault, &config, reviewer)?;
    let dir =
        std::path::absolute(vault.path()).map_err(|e| Error::system("cannot resolve the path of the vault", e))?;
    let dir = dir.parent().unwrap_or(&dir);
    let max = Duration::from_secs(config.count(Setting::ReviewersTimeoutSeconds));
    // A reviewer is an agent; what it records, it records under its name.
    let program = Program::shell(&line, &format!("reviewers.{reviewer}")).acting_as(reviewer).current_dir(dir);
    let program = program.leaving_nothing();
    let control = ControlWatch::of_paths(vault.stop_paths());
    let check = || match vault.stop_flag() {
        Some(stop) => Err(rules::stopped_because(&stop.reason)),
        None => Ok(()),
    };
    let stopped = Interruption { control: &control, check: &check };
    hook::run_program(&format!("reviewer {reviewer}"), program, prompt, max, Some(&stopped))
}
