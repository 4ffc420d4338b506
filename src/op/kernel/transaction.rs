//! The transaction: every change is decided and recorded in one.
//!
//! It takes the lock, reads the log, records what is due, decides on any number of requests, and commits all of them in
//! one batch with their consequences; a long cascade continues in further batches. No request is written before
//! `commit`.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::context::{CallersSituation, Context, Departure, Host, SeenStanding};
use super::membership::{check_project, membership};
use super::recorded::is_stopped;
use crate::base::actor::ActorKind;
use crate::base::{Actor, Clocks, EntityId, Error, ErrorKind, Now, Reason, Result, Subject, Ulid, limits};
use crate::chain::Head;
use crate::event::kind::Claim;
use crate::event::{Draft, Event, Kind, SCHEMA_VERSION, parse_ulid};
use crate::policy::authority::Acts;
use crate::policy::belief::displacement;
use crate::policy::code::Code;
use crate::policy::due::{Due, MachineFacts, Moment};
use crate::policy::project::{self, Membership};
use crate::policy::settings::Setting;
use crate::policy::statement::{EventRef, StatedAct, Statement};
use crate::policy::{self, Request, Ruling, Settings, Standing, authority, rules};
use crate::state::{Entity, State};
use crate::vault::config::Config;
use crate::vault::{Append, Batch, CONFIG_FILE, Log, LogView, Snapshot, StopFlag, Vault, still_stopped};

/// Called before each commit. Returns what has to be done after it, once the lock is released.
pub type FindFollowUp = fn(&Committing<'_>) -> Option<FollowUp>;

/// An action after a commit, once the lock is released. It cannot fail: the events are recorded already.
pub type FollowUp = Box<dyn FnOnce(&Vault)>;

/// A batch that is about to be committed.
#[derive(Debug)]
pub struct Committing<'a> {
    /// The state after it.
    pub state: &'a State,
    pub config: &'a Config,
    pub events: &'a [Event],
    pub host: &'a Host,
}

/// An open transaction, with the lock, or without it for a dry run.
pub struct Transaction<'v> {
    vault: &'v Vault,
    writer: Option<Box<dyn Append + 'v>>,
    host: Arc<Host>,
    follow_ups: Vec<FollowUp>,
    /// The log before this batch.
    pub log: Box<dyn Log>,
    batch: Batch,
    /// The statement whose acts are in the batch.
    acts: Acts,
    /// Events whose consequences did not fit into the batch.
    backlog: Vec<Event>,
    /// Which session and project the caller's shell belongs to.
    pub membership: Membership,
    pub now: Now,
    /// Facts about jobs' processes that are not in the log yet.
    pub machine: MachineFacts,
    /// The stop flags that were raised when it was opened.
    pub(super) stops: Vec<StopFlag>,
    /// The machine's clocks, to be saved after the next write.
    pub(super) clocks: Option<Clocks>,
    /// The settings in force.
    pub config: Config,
    pub warnings: Vec<String>,
    /// Who calls, and the project of the call.
    pub(super) caller: Actor,
    project: Subject,
    /// The end of the caller's session, if it is due and nothing is written.
    pub(super) session_due: Option<Due>,
    /// The project of what is requested, if that is known.
    pub(super) about: Option<Subject>,
    standing: SeenStanding,
    /// What the caller had not reacted to before.
    changes_before: Vec<Ulid>,
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("batch", &self.batch)
            .field("membership", &self.membership)
            .finish_non_exhaustive()
    }
}

/// Whether requests are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Write,
    DryRun,
}

/// The result of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The requested event, or the earlier one that already had its effect.
    pub id: Ulid,
    /// Whether the event is an earlier one, so that nothing was added.
    pub already: bool,
}

impl<'v> Transaction<'v> {
    /// Takes the lock and opens a transaction that records.
    pub fn begin(ctx: &Context, vault: &'v Vault) -> Result<Self> {
        Self::open(ctx, vault, Mode::Write)
    }

    /// Opens a transaction that records nothing.
    pub fn dry_run(ctx: &Context, vault: &'v Vault) -> Result<Self> {
        Self::open(ctx, vault, Mode::DryRun)
    }

    pub fn open(ctx: &Context, vault: &'v Vault, mode: Mode) -> Result<Self> {
        let (writer, view) = match mode {
            Mode::DryRun => (None, vault.view()?),
            Mode::Write => {
                // The settings are in the log, so the size of a segment is known only later.
                let mut writer = vault.append(ctx.write_options(&Settings::default()))?;
                let view = writer.view()?;
                (Some(writer), view)
            }
        };
        if view.1.tally().newest_version > SCHEMA_VERSION {
            return Err(Error::refused(
                Reason::NewerVersion,
                "the vault has events of a newer version than this program can write; upgrade the program",
            ));
        }
        Self::start(ctx, vault, writer, view)
    }

    /// Opens a dry run on a log of any version. Also returns the state without what is due.
    pub fn read_only(ctx: &Context, vault: &'v Vault) -> Result<(State, Self)> {
        let (log, state) = vault.view()?;
        let recorded = state.clone();
        Ok((recorded, Self::start(ctx, vault, None, (log, state))?))
    }

    /// Builds the transaction and settles what is independent of a request.
    fn start(
        ctx: &Context,
        vault: &'v Vault,
        writer: Option<Box<dyn Append + 'v>>,
        (log, state): LogView,
    ) -> Result<Self> {
        check_project(ctx, &state)?;
        // Read now: the file may have changed while this command waited for the lock.
        let config = vault.config_with(&state);
        vault.notices().add(clock_skew_warning(log.head(), ctx.now, &config));
        let deviation = config.deviation().filter(|_| ctx.caller.is_operator());
        vault.notices().add(deviation.map(|what| format!("{CONFIG_FILE} {what}; see hf-config diff")));
        // A command that had to wait for the lock acts at the time it got it.
        let now = if writer.is_some() { ctx.now.max((ctx.host.clock)()) } else { ctx.now };
        let batch = Batch::new(state, log.head(), now);
        let mut tx = Transaction {
            vault,
            writer,
            host: ctx.host.clone(),
            follow_ups: Vec::new(),
            log,
            batch,
            acts: Acts::default(),
            backlog: Vec::new(),
            membership: Membership::Unrestricted,
            now,
            machine: MachineFacts::default(),
            stops: Vec::new(),
            clocks: None,
            config,
            warnings: Vec::new(),
            caller: ctx.caller.actor.clone(),
            project: ctx.project(),
            session_due: None,
            about: None,
            standing: ctx.standing.share(),
            changes_before: Vec::new(),
        };
        if let Some(writer) = &mut tx.writer {
            writer.limit_segments(ctx.write_options(&tx.config).segment_max_bytes);
            tx.warnings.append(&mut writer.take_warnings());
        }
        // First: another event in between would hide that the cascade is incomplete.
        tx.settle_cascade()?;
        tx.settle_stop()?;
        tx.settle_world(ctx)?;
        tx.settle_session(ctx)?;
        tx.membership = membership(ctx, tx.state())?;
        tx.notice(None);
        tx.changes_before = tx.unanswered_changes();
        Ok(tx)
    }

    /// Notes what stands in the way of the caller's work, or of work on something that belongs to this project, and what
    /// took the caller away from its branch.
    pub(super) fn notice(&self, about: Option<&Subject>) {
        let displacement = self.caller.agent().and_then(|agent| displacement(self.state(), &agent));
        let standing = self.obstacle(about);
        let departure = standing.as_ref().map(|standing| self.departure(standing)).unwrap_or_default();
        self.standing.set(CallersSituation { standing, departure, displacement, ..CallersSituation::default() });
    }

    /// The same error; if it asks the caller to leave this project, that is what stands in the way.
    pub fn noticed(&self, error: Error, project: Option<&Subject>) -> Error {
        if matches!(error.kind, ErrorKind::ExitRequested(_)) {
            self.notice(project);
        }
        error
    }

    /// How the caller leaves what stands still.
    fn departure(&self, standing: &Standing) -> Departure {
        let of_session = match &self.membership {
            Membership::Session { agent, .. } => agent.as_deref().and_then(|agent| EntityId::parse(agent).ok()),
            _ => None,
        };
        let Some(agent) = of_session.or_else(|| self.caller.agent()) else { return Departure::default() };
        let seats = standing.project.as_ref().map(|project| project::sessions(self.state(), project));
        let mut seats = seats.unwrap_or_default();
        // One that is past its time is over, recorded or not.
        let is_open = |session: &Entity| self.moment().due_of(session).is_none();
        seats.retain(|session| session.as_session().agent() == Some(agent.as_str()) && is_open(session));
        let is_void = matches!(self.membership, Membership::InvalidSession { has_left: false, .. });
        let root = self.state().root(&agent);
        Departure {
            can_log_out: is_void || !seats.is_empty(),
            by: seats.iter().filter_map(|session| session.as_session().expires_at()).max(),
            has_message: root.is_some_and(|root| root.as_branch().unread() > 0),
        }
    }

    /// The events that the caller, a persona, has not reacted to.
    fn unanswered_changes(&self) -> Vec<Ulid> {
        let root = self.caller.agent().and_then(|agent| self.state().root(&agent));
        root.map(|root| root.as_branch().changes().filter_map(parse_ulid).collect()).unwrap_or_default()
    }

    /// What stands in the way.
    fn obstacle(&self, about: Option<&Subject>) -> Option<Standing> {
        let project = match &self.membership {
            Membership::InvalidSession { why, .. } => {
                return Standing::of_system(self.state()).or_else(|| Some(Standing::session_over(why)));
            }
            Membership::Session { project, .. } => project,
            Membership::Agent(project) => about.unwrap_or(project),
            // Nobody can leave a session that belongs to somebody else.
            Membership::OtherAgentsSession(_) => return Standing::of_system(self.state()),
            Membership::Unrestricted => about.unwrap_or(&self.project),
        };
        let limit = || self.moment().is_full().then(Standing::task_limit);
        Standing::of_project(self.state(), project).or_else(limit)
    }

    /// The state after all requests so far.
    pub fn state(&self) -> &State {
        self.batch.state()
    }

    /// The events that are to be recorded.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// The state and the time, to find out what is due.
    pub fn moment(&self) -> Moment<'_> {
        Moment { state: self.batch.state(), settings: &self.config, now: self.now.timestamp(), machine: &self.machine }
    }

    /// Decides on a request. Adds its event to the batch, with announcements before it and consequences after it.
    pub fn ask(&mut self, request: Request) -> Result<Added> {
        match self.rule(request)? {
            Ruling::Already(id) => Ok(Added { id, already: true }),
            Ruling::Record(draft) => {
                self.check_evidence(&draft)?;
                self.check_signature(&draft)?;
                let asked = self.batch.push(draft)?;
                self.follow(asked)?;
                Ok(Added { id: self.batch.events()[asked].id, already: false })
            }
        }
    }

    /// Decides on a request that an operator has to sign, without recording it: the act to sign, or none if it is in
    /// effect already. Later requests are decided as if it were recorded.
    pub fn plan(&mut self, request: Request) -> Result<Option<StatedAct>> {
        match self.rule(request)? {
            Ruling::Already(_) => Ok(None),
            Ruling::Record(draft) => self.plan_draft(draft).map(Some),
        }
    }

    /// The same for an event that the toolkit itself requests.
    pub fn plan_draft(&mut self, draft: Draft) -> Result<StatedAct> {
        let Draft { kind, subject, actor, payload, .. } = &draft;
        let step = rules::Step { kind: *kind, subject, actor, payload };
        let stated = authority::stated(self.state(), &step, &|id| self.intact(id))?;
        let index = self.batch.push(draft)?;
        self.follow(index)?;
        Ok(stated)
    }

    /// The statement of acts that were planned in this transaction, of which `state` is the state before them.
    pub fn statement(&self, state: &State, acts: Vec<StatedAct>) -> Result<Statement> {
        let head = self.log.head().ok_or_else(|| Error::corrupt("the log is empty"))?;
        let seen = EventRef { id: head.id, hash: head.hash };
        authority::statement(state, acts, seen, &|id| self.intact(id))
    }

    /// Checks the signature of an event that needs one.
    fn check_signature(&mut self, draft: &Draft) -> Result<()> {
        let Draft { kind, subject, actor, payload, .. } = draft;
        let step = rules::Step { kind: *kind, subject, actor, payload };
        match authority::check(self.state(), &step, &|id| self.intact(id))? {
            Some(signed) => self.acts.see(&signed).map(drop),
            None => Ok(()),
        }
    }

    /// An event of the log, if its hash is right.
    pub(super) fn intact(&self, id: Ulid) -> Result<Option<Event>> {
        Ok(self.log.find(id)?.filter(Event::is_intact))
    }

    /// Decides on a request, with announcements before it.
    fn rule(&mut self, mut request: Request) -> Result<Ruling> {
        if let Some(key) = request.key.as_ref().filter(|key| self.state().keyed(key).is_some()) {
            return Err(Error::refused(Reason::KeyConflict, format!("duplicate key '{key}' in this batch")));
        }
        request.autonomous |= request.actor.is_autonomous();
        self.settle_for(&request)?;
        // What the toolkit itself finds is recorded from any shell. An agent that requests what only an operator may
        // do is refused for that reason, in `decide`.
        let refused_later = request.autonomous && policy::rules::requires_operator(request.kind);
        if request.actor.kind != ActorKind::Core && !refused_later {
            let own = project::of_request(self.state(), &request);
            let checked = self.membership.check(self.state(), request.kind, own.as_ref());
            checked.map_err(|error| self.noticed(error, own.as_ref()))?;
        }
        let fresh = self.batch.mint()?;
        // An agent or a project is announced only for an event that will be recorded. The announcement comes first
        // because it is the event's natural cause.
        if let Some(announcement) = policy::announce(self.state(), &request)
            && policy::in_effect_since(self.state(), &request).is_none()
        {
            self.introduce(announcement)?;
        }
        if let Some(opening) = project::open(self.state(), &request)
            && policy::in_effect_since(self.state(), &request).is_none()
        {
            self.introduce(opening)?;
        }
        let project = project::of_request(self.state(), &request);
        let is_agent = request.actor.kind == ActorKind::Agent;
        let is_agents_work = is_agent && request.kind.row().claim != Claim::Unneeded;
        policy::decide(&self.moment(), request, &mut || fresh).map_err(|error| {
            // What was settled first may have changed what stands in the way.
            self.notice(None);
            let error = self.noticed(error, project.as_ref());
            // A stop aborted the task, or its project is over: that is the reason, not that the step is illegal.
            let is_refused = matches!(error.kind, ErrorKind::Refused(reason) if reason != Reason::OperatorOnly);
            match is_refused {
                true if is_agents_work && is_stopped(self.state()) => rules::stopped(self.state()),
                true if is_agent => project.and_then(|project| project::over(self.state(), &project)).unwrap_or(error),
                _ => error,
            }
        })
    }

    /// Adds the event that introduces an agent or a project, if the rules allow it.
    fn introduce(&mut self, draft: Draft) -> Result<()> {
        let Draft { kind, subject, actor, payload, .. } = &draft;
        rules::check(self.state(), &rules::Step { kind: *kind, subject, actor, payload })?;
        self.batch.push(draft).map(drop)
    }

    /// Adds an event that the toolkit itself requests, with its consequences.
    pub fn add(&mut self, draft: Draft) -> Result<()> {
        self.check_signature(&draft)?;
        let index = self.batch.push(draft)?;
        self.follow(index)
    }

    /// Adds all consequences of the events from this index on, and their consequences in turn. What does not fit is
    /// left to further batches.
    fn follow(&mut self, mut index: usize) -> Result<()> {
        while index < self.batch.events().len() {
            if !self.react(&self.batch.events()[index].clone())? {
                self.backlog.extend_from_slice(&self.batch.events()[index..]);
                return Ok(());
            }
            index += 1;
        }
        Ok(())
    }

    /// Adds the missing consequences of an event. Returns whether all of them fit.
    fn react(&mut self, cause: &Event) -> Result<bool> {
        let mut ids = Vec::new();
        // Unused ids cost nothing.
        for _ in 0..policy::makes_at_most(cause) {
            ids.push(self.batch.mint()?);
        }
        ids.reverse();
        let mut mint = || ids.pop().expect("at most makes_at_most ids");
        for draft in policy::react(self.batch.state(), &self.config, cause, &mut mint) {
            if self.batch.events().len() >= limits::CASCADE_MAX_EVENTS {
                return Ok(false);
            }
            self.batch.push(draft)?;
        }
        Ok(true)
    }

    /// Refuses an event that is too large. Checked per request, so that the error can name its line.
    pub fn check_size(&self, id: Ulid) -> Result<()> {
        match self.batch.events().iter().position(|event| event.id == id) {
            Some(index) => self.batch.check_size(index),
            None => Ok(()),
        }
    }

    /// Records the batch and releases the lock. `asked` is the event that an uncertain write is reported with.
    pub fn commit(mut self, asked: Ulid) -> Result<Committed> {
        self.acts.end()?;
        let vault = self.vault;
        let project = self.about.clone();
        self.notice(project.as_ref());
        let unanswered = self.unanswered_changes();
        self.standing.add_reacted_to(self.changes_before.iter().copied().filter(|id| !unanswered.contains(id)));
        if self.writer.is_some() && has_resume(self.batch.events()) {
            self.lower_stops()?;
        }
        let flag = stop_among(self.batch.events()).filter(|_| self.writer.is_some() && is_stopped(self.state()));
        if let Some(flag) = &flag {
            vault.raise_stop(flag)?;
        }
        let written = self.write(asked);
        if let (Some(flag), Err(error)) = (&flag, &written)
            && !matches!(error.kind, ErrorKind::Uncertain { .. })
        {
            // Nothing was recorded, so nothing is stopped.
            vault.lower_stop(flag)?;
        }
        let events = written?;
        // The request is recorded; if the cascade cannot be continued now, the next command continues it.
        if let Err(error) = self.continue_cascade() {
            self.warnings.push(format!("some consequences are not recorded yet; the next command continues: {error}"));
        }
        let log = std::mem::replace(&mut self.log, Box::new(Snapshot::empty()));
        Ok(Committed { events, log, warnings: std::mem::take(&mut self.warnings) })
    }

    /// Lowers every flag of the stop that is about to be lifted. Before that is recorded: until then the stop is in the
    /// log, and a flag that cannot be lowered would stop everything again. A flag that was raised since stays raised.
    fn lower_stops(&self) -> Result<()> {
        self.stops.iter().try_for_each(|stop| self.vault.lower_stop(stop)).map_err(|error| still_stopped(&error))
    }

    fn write(&mut self, asked: Ulid) -> Result<Vec<Event>> {
        let batch = std::mem::replace(&mut self.batch, Batch::new(State::default(), None, self.now));
        if batch.events().is_empty() {
            self.batch = batch;
            return Ok(Vec::new());
        }
        let (state, events, host) = (batch.state(), batch.events(), &*self.host);
        let committing = Committing { state, config: &self.config, events, host };
        let follow_ups: Vec<FollowUp> = host.find_follow_ups.iter().filter_map(|find| find(&committing)).collect();
        // The requested event may be an earlier one, while something else is due.
        let index = batch.events().iter().position(|event| event.id == asked).unwrap_or(0);
        match &mut self.writer {
            None => batch.seal(self.log.head()).map(|(events, ..)| events),
            Some(writer) => {
                let events = writer.append(self.log.head(), batch, index)?;
                self.follow_ups.extend(follow_ups);
                if let Some(Err(error)) = self.clocks.map(|clocks| self.vault.remember_clock(&clocks)) {
                    self.warnings.push(format!("cannot save the machine's clocks: {error}"));
                }
                self.warnings.append(&mut writer.take_warnings());
                Ok(events)
            }
        }
    }

    /// Records the batch so far and starts a new one. A dry run only keeps the state.
    pub fn write_now(&mut self) -> Result<()> {
        let Some(first) = self.batch.events().first().map(|event| event.id) else { return Ok(()) };
        if self.writer.is_none() {
            let batch = std::mem::replace(&mut self.batch, Batch::new(State::default(), None, self.now));
            self.batch = Batch::new(batch.into_state(), self.log.head(), self.now);
            return Ok(());
        }
        self.write(first)?;
        self.reload()?;
        self.continue_cascade()
    }

    /// Reads the log again after a batch was written.
    fn reload(&mut self) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            let (log, state) = writer.view()?;
            self.batch = Batch::new(state, log.head(), self.now);
            self.log = log;
        }
        Ok(())
    }

    /// Whether requests are recorded; false in a dry run.
    pub fn writes(&self) -> bool {
        self.writer.is_some()
    }

    pub(super) fn vault(&self) -> &'v Vault {
        self.vault
    }

    /// Adds the missing consequences of these events.
    pub(super) fn resume_cascade(&mut self, causes: Vec<Event>) -> Result<()> {
        self.backlog = causes;
        self.continue_cascade()
    }

    /// Continues a cascade batch by batch until no consequence is missing.
    fn continue_cascade(&mut self) -> Result<()> {
        if self.backlog.is_empty() {
            return Ok(());
        }
        while !self.backlog.is_empty() && self.writer.is_some() {
            let mut causes = std::mem::take(&mut self.backlog);
            self.reload()?;
            let mut done = 0;
            for cause in &causes {
                let index = self.batch.events().len();
                if !self.react(cause)? {
                    break;
                }
                done += 1;
                self.follow(index)?;
                if !self.backlog.is_empty() {
                    break;
                }
            }
            causes.drain(..done);
            self.backlog.append(&mut causes);
            match self.batch.events().first().map(|event| event.id) {
                Some(first) => drop(self.write(first)?),
                // The remaining events have no further consequences.
                None => self.backlog.clear(),
            }
        }
        self.reload()
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Follow-ups wake processes that need the lock, and may take it: the state, which has the index open, goes first.
        drop(self.writer.take());
        self.batch = Batch::new(State::default(), None, self.now);
        self.log = Box::new(Snapshot::empty());
        for follow_up in self.follow_ups.drain(..) {
            follow_up(self.vault);
        }
    }
}

/// Warns if the log is ahead of the clock: the clock was wrong when it was written, or is wrong now.
fn clock_skew_warning(head: Option<Head>, now: Now, settings: &Settings) -> Option<String> {
    let ahead = head?.id.timestamp_ms().saturating_sub(now.millis) / 1000;
    (ahead > settings.count(Setting::ClockSkewSeconds))
        .then(|| format!("{}: the log is {ahead} seconds ahead of the clock", Code::ClockSkew))
}

fn has_resume(events: &[Event]) -> bool {
    events.iter().any(|event| event.event_type.known() == Some(Kind::SystemResumed))
}

/// The flag of the last stop that is in the batch.
fn stop_among(events: &[Event]) -> Option<StopFlag> {
    let event = events.iter().rfind(|event| event.event_type.known() == Some(Kind::EmergencyStopIssued))?;
    let reason = event.payload.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    // A stop whose flag exists already has the flag's id in its key.
    let id = event.key.as_ref().and_then(|key| key.strip_prefix("stop:")).map(str::to_owned);
    Some(StopFlag { id: id.unwrap_or_else(|| event.id.to_string()), reason, by: event.actor.clone() })
}

/// The recorded events.
#[derive(Debug)]
pub struct Committed {
    pub events: Vec<Event>,
    /// The log before them.
    pub log: Box<dyn Log>,
    pub warnings: Vec<String>,
}

impl Committed {
    /// An event, recorded now or earlier.
    pub fn event(&self, id: Ulid) -> Result<Event> {
        if let Some(event) = self.events.iter().find(|event| event.id == id) {
            return Ok(event.clone());
        }
        let missing = || Error::corrupt(format!("event {id} is missing from the log"));
        self.log.find(id)?.ok_or_else(missing)
    }
}
