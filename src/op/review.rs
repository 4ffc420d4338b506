//! hf-review: reviewers reply in turn until they agree.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Context, Recorded, hook, random_ulid};
use crate::base::{EntityType, Error, ErrorKind, Result, Subject, text};
use crate::event::Kind;
use crate::job::Program;
use crate::machine::Phase;
use crate::op::kernel::Transaction;
use crate::op::kernel::with_view;
use crate::policy::settings::Setting;
use crate::policy::{Request, mission, review};
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

    /// The FAIL lines of the newest review.
    pub fn fails(&self) -> Vec<String> {
        self.newest.as_ref().map(fails_of).unwrap_or_default()
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
    let m1_status = newest_mission.map(|mission| mission::MissionFile::of_mission(state, &mission).status);
    DebateView { debate, turn, newest, m1_status }
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
}

/// Returns the prompt for a reviewer: the spec, and the FAIL lines of the previous review.
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
        let fails = if view.is(Phase::Open) { view.fails() } else { Vec::new() };
        Ok(PromptOutcome { prompt: review::prompt(spec, &fails) })
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
    let RecordReviewRequest { reviewer, reply, key } = request;
    let (reviewer, reply) = (reviewer.as_str(), reply.trim());
    let parsed = review::parse(reply)?;
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    check_known(tx.state(), &tx.config, reviewer)?;
    let mut asked =
        Request { key, ..ctx.request(Kind::ReviewRecorded, None, review_payload(reviewer, reply, &parsed.fails)) };
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
    Ok(ReviewOutcome { recorded, review: id, file, passes: parsed.passes.len(), fails: parsed.fails, view, ran: false })
}

fn review_payload(reviewer: &str, reply: &str, fails: &[String]) -> Value {
    json!({"reviewer": reviewer, "text": reply, "fails": fails})
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

/// Opens a new debate, as an operator may after one that used up its rounds.
pub fn reopen(ctx: &Context) -> Result<Recorded> {
    let vault = ctx.open()?;
    let mut tx = Transaction::begin(ctx, &vault)?;
    if let Some(open) = review::open(tx.state()) {
        let unchanged = crate::op::kernel::Added { id: open.last_event, already: true };
        return tx.finish(&[unchanged]);
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
}

/// Asks the reviewers in turn until one of them reports a FAIL, they agree, or all rounds are used up. Calls
/// `on_reviewer` with the name of each reviewer.
pub fn run(ctx: &Context, request: RunReviewRequest, on_reviewer: &mut dyn FnMut(&str)) -> Result<ReviewOutcome> {
    let vault = ctx.open()?;
    loop {
        let config = vault.config();
        let view = with_view(&vault, |_, state| Ok(debate_view(state, &config)))?;
        let reviewer = match view.turn {
            Some(reviewer) => reviewer,
            None if view.is(Phase::Exhausted) => return Err(review::out_of_rounds()),
            // The reviewers agreed, but the spec may have changed since.
            None => config.texts(Setting::ReviewersOrder).into_iter().next().unwrap_or_default(),
        };
        let prompt = prompt_for(ctx, &request.spec, Some(&reviewer))?.prompt;
        on_reviewer(&reviewer);
        let reply = ask(&vault, &config, &reviewer, &prompt)?;
        let ctx = ctx.at_this_moment();
        let request = RecordReviewRequest { reviewer: reviewer.clone(), reply, key: None };
        let done = record(&ctx, request).map_err(|error| match error.kind {
            ErrorKind::Usage => Error::system(format!("invalid review by {reviewer}"), error.message),
            _ => error,
        })?;
        if !done.fails.is_empty() || !done.view.is(Phase::Open) {
            return Ok(ReviewOutcome { ran: true, ..done });
        }
    }
}

/// Returns a reviewer's reply to a prompt, within the time limit.
fn ask(vault: &Vault, config: &Config, reviewer: &str, prompt: &str) -> Result<String> {
    let command = vault.reviewer_command(config, reviewer)?;
    let line = command.ok_or_else(|| Error::usage(format!("reviewers.{reviewer}.command is not set")))?;
    let dir =
        std::path::absolute(vault.path()).map_err(|e| Error::system("cannot resolve the path of the vault", e))?;
    let dir = dir.parent().unwrap_or(&dir);
    let max = Duration::from_secs(config.count(Setting::ReviewersTimeoutSeconds));
    let who = format!("reviewer {reviewer}");
    // A reviewer is an agent; what it records, it records under its name.
    let program = Program::shell(&line, &format!("reviewers.{reviewer}")).acting_as(reviewer).current_dir(dir);
    let printed = hook::run_program(&who, program, prompt, max)?;
    String::from_utf8(printed).map_err(|_| Error::system(format!("invalid review by {reviewer}"), "not UTF-8"))
}
