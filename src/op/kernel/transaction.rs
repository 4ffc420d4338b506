//! The transaction: where everything that changes something is decided and recorded.
//!
//! Lock, look, ask for any number of things, commit all of them together with what follows from
//! them. Nothing that was asked for is written before `commit`, and a request that is refused leaves nothing behind.

use std::fmt;

use serde_json::Value;

use super::context::Context;
use super::membership::membership;
use crate::base::actor::ActorKind;
use crate::base::{Clocks, Error, ErrorKind, Now, Reason, Result, Ulid, limits};
use crate::chain::Head;
use crate::event::{Draft, Event, Kind, SCHEMA_VERSION};
use crate::policy::code::Code;
use crate::policy::due::{MachineFacts, Moment};
use crate::policy::project::{self, Membership};
use crate::policy::settings::Setting;
use crate::policy::{self, Request, Ruling, Settings};
use crate::state::State;
use crate::vault::config::{self, Config};
use crate::vault::{Append, Batch, Log, LogView, Snapshot, StopFlag, Vault};

/// What may have to be done after a commit: looked for in the state that it leads to, done when the lock is free.
pub type AfterCommit = fn(&Committing<'_>) -> Option<FollowUp>;

/// Something to do when the lock is free. It must not fail the command: what is recorded is recorded.
pub type FollowUp = Box<dyn FnOnce(&Vault)>;

/// What is about to be committed.
#[derive(Debug)]
pub struct Committing<'a> {
    /// The state with it.
    pub state: &'a State,
    pub settings: &'a Settings,
    pub events: &'a [Event],
}

/// The log to decide against: with the right to append, or only for a dry run.
pub struct Transaction<'v> {
    vault: &'v Vault,
    writer: Option<Box<dyn Append + 'v>>,
    after_commit: &'static [AfterCommit],
    errands: Vec<FollowUp>,
    /// The log before what is asked for.
    pub log: Box<dyn Log>,
    unit: Batch,
    /// Events of a cascade whose consequences did not fit into the batch.
    backlog: Vec<Event>,
    /// Whose shell this is, as far as sessions and projects go.
    pub membership: Membership,
    pub now: Now,
    /// What the machine knows that the log does not say yet.
    pub machine: MachineFacts,
    /// The machine's clocks, to be remembered with what is recorded.
    pub(super) clocks: Option<Clocks>,
    /// The settings in force.
    pub config: Config,
    pub warnings: Vec<String>,
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction")
            .field("unit", &self.unit)
            .field("membership", &self.membership)
            .finish_non_exhaustive()
    }
}

/// Whether what is asked for is to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Write,
    DryRun,
}

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The event that was asked for, or that made it so before.
    pub id: Ulid,
    /// Whether it was so before, and nothing was added.
    pub already: bool,
}

impl<'v> Transaction<'v> {
    /// Takes the lock. What is asked for will be recorded.
    pub fn begin(ctx: &Context, vault: &'v Vault) -> Result<Self> {
        Self::open(ctx, vault, Mode::Write)
    }

    /// Only says whether something could be recorded.
    pub fn dry_run(ctx: &Context, vault: &'v Vault) -> Result<Self> {
        Self::open(ctx, vault, Mode::DryRun)
    }

    pub fn open(ctx: &Context, vault: &'v Vault, mode: Mode) -> Result<Self> {
        let mut file = vault.config_file();
        let (writer, view) = match mode {
            Mode::DryRun => (None, vault.view()?),
            Mode::Write => {
                let options = ctx.write_options(file.as_ref().map_or(&Settings::default(), |(config, _)| config));
                let mut writer = vault.append(options)?;
                let view = writer.view()?;
                // Whoever held the lock may have waited for it with an older file in hand.
                file = vault.config_file();
                (Some(writer), view)
            }
        };
        if view.1.tally().newest_version > SCHEMA_VERSION {
            return Err(Error::refused(
                Reason::NewerVersion,
                "this vault holds events of a newer version than this program writes",
            ));
        }
        Self::enter(ctx, vault, writer, view, file)
    }

    /// For who only looks, also at a log of a newer version: nothing can be committed. The state is the log's own.
    pub fn look(ctx: &Context, vault: &'v Vault) -> Result<(State, Self)> {
        let (log, state) = vault.view()?;
        let recorded = state.clone();
        Ok((recorded, Self::enter(ctx, vault, None, (log, state), vault.config_file())?))
    }

    fn enter(
        ctx: &Context,
        vault: &'v Vault,
        writer: Option<Box<dyn Append + 'v>>,
        (log, state): LogView,
        file: Result<(Config, Vec<String>)>,
    ) -> Result<Self> {
        let (config, mut warnings) = file.unwrap_or_else(|error| config::instead_of(&error, &state));
        warnings.extend(ahead_of_the_clock(log.head(), ctx.now, &config));
        // Whoever waited for the lock acts when it has it.
        let now = if writer.is_some() { ctx.now.max((ctx.host.clock)()) } else { ctx.now };
        let unit = Batch::new(state, log.head(), now);
        let mut tx = Transaction {
            vault,
            writer,
            after_commit: ctx.host.after_commit,
            errands: Vec::new(),
            log,
            unit,
            backlog: Vec::new(),
            membership: Membership::Unrestricted,
            now,
            machine: MachineFacts::default(),
            clocks: None,
            config,
            warnings,
        };
        if let Some(writer) = &mut tx.writer {
            tx.warnings.append(&mut writer.take_warnings());
        }
        // First of all: whatever came between would hide that something is missing.
        tx.settle_cascade()?;
        tx.settle_stop()?;
        tx.settle_world(ctx)?;
        tx.settle_session(ctx)?;
        tx.membership = membership(ctx, tx.state())?;
        Ok(tx)
    }

    /// The state with everything that was asked for so far.
    pub fn state(&self) -> &State {
        self.unit.state()
    }

    pub fn unit(&self) -> &Batch {
        &self.unit
    }

    /// This moment, for the question what is due.
    pub fn moment(&self) -> Moment<'_> {
        Moment { state: self.unit.state(), settings: &self.config, now: self.now.timestamp(), machine: &self.machine }
    }

    /// Decides on a request; what is to be recorded is, with what announces it and what follows.
    pub fn ask(&mut self, mut request: Request) -> Result<Added> {
        if let Some(key) = request.key.as_ref().filter(|key| self.state().keyed(key).is_some()) {
            return Err(Error::refused(Reason::KeyConflict, format!("the key '{key}' stands twice in this batch")));
        }
        request.autonomous |= request.actor.is_autonomous();
        self.settle_for(&request)?;
        // What the toolkit finds is recorded whoever looks; what is a person's is refused as that.
        let persons = request.autonomous && policy::rules::requires_operator(request.kind);
        if request.actor.kind != ActorKind::Core && !persons {
            let own = project::of_request(self.state(), &request);
            self.membership.check(self.state(), request.kind, own.as_ref())?;
        }
        let fresh = self.unit.mint()?;
        // Only for something that will be recorded may anybody be announced; only with the announcement
        // is its natural cause known.
        if let Some(announcement) = policy::announce(self.state(), &request)
            && policy::in_effect_since(self.state(), &request).is_none()
        {
            self.unit.push(announcement)?;
        }
        if let Some(opening) = project::open(self.state(), &request)
            && policy::in_effect_since(self.state(), &request).is_none()
        {
            self.unit.push(opening)?;
        }
        match policy::decide(&self.moment(), request, &mut || fresh)? {
            Ruling::Already(id) => Ok(Added { id, already: true }),
            Ruling::Record(draft) => {
                let asked = self.unit.push(draft)?;
                self.follow(asked)?;
                Ok(Added { id: self.unit.events()[asked].id, already: false })
            }
        }
    }

    /// Adds something that the toolkit itself found, with what follows.
    pub fn add(&mut self, draft: Draft) -> Result<()> {
        let at = self.unit.push(draft)?;
        self.follow(at)
    }

    /// Everything that follows from the event at this place of the unit, and from that in turn. What does not fit goes
    /// on in further batches.
    fn follow(&mut self, mut at: usize) -> Result<()> {
        while at < self.unit.events().len() {
            if !self.react(&self.unit.events()[at].clone())? {
                self.backlog.extend_from_slice(&self.unit.events()[at..]);
                return Ok(());
            }
            at += 1;
        }
        Ok(())
    }

    /// Adds what follows from an event and is still missing. Gives whether all of it fits.
    fn react(&mut self, cause: &Event) -> Result<bool> {
        let mut ids = Vec::new();
        // Ids that are not used cost nothing.
        for _ in 0..policy::makes_at_most(cause) {
            ids.push(self.unit.mint()?);
        }
        ids.reverse();
        let mut mint = || ids.pop().expect("a reaction makes no more");
        for draft in policy::react(self.unit.state(), &self.config, cause, &mut mint) {
            if self.unit.events().len() >= limits::CASCADE_MAX_EVENTS {
                return Ok(false);
            }
            self.unit.push(draft)?;
        }
        Ok(true)
    }

    /// Refuses an event that will be too large, while its author can still be told which one it is.
    pub fn check_size(&self, id: Ulid) -> Result<()> {
        match self.unit.events().iter().position(|event| event.id == id) {
            Some(at) => self.unit.check_size(at),
            None => Ok(()),
        }
    }

    /// Records everything that was asked for. `asked` is what the caller wants to hear of.
    pub fn commit(mut self, asked: Ulid) -> Result<Committed> {
        let vault = self.vault;
        let flag = stop_among(self.unit.events()).filter(|_| self.writer.is_some());
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
        let resumed = |event: &Event| event.event_type.known() == Some(Kind::SystemResumed);
        if self.writer.is_some() && events.iter().any(resumed) {
            let lowered = vault.stop_flag().and_then(|flag| flag.map_or(Ok(()), |flag| vault.lower_stop(&flag)));
            // It is recorded, so it is no refusal any more.
            if let Err(error) = lowered {
                self.warnings.push(format!("the stop's flag is still up, the next command lowers it: {error}"));
            }
        }
        // What was asked for is recorded; a cascade that cannot go on now goes on with the next command.
        if let Err(error) = self.go_on() {
            self.warnings.push(format!("some consequences are not recorded yet; the next command continues: {error}"));
        }
        let log = std::mem::replace(&mut self.log, Box::new(Snapshot::empty()));
        Ok(Committed { events, log, warnings: std::mem::take(&mut self.warnings) })
    }

    fn write(&mut self, asked: Ulid) -> Result<Vec<Event>> {
        let unit = std::mem::replace(&mut self.unit, Batch::new(State::default(), None, self.now));
        if unit.events().is_empty() {
            self.unit = unit;
            return Ok(Vec::new());
        }
        let after = Committing { state: unit.state(), settings: &self.config, events: unit.events() };
        let errands: Vec<FollowUp> = self.after_commit.iter().filter_map(|look| look(&after)).collect();
        // What was asked for may hold already, while something else is due all the same.
        let place = unit.events().iter().position(|event| event.id == asked).unwrap_or(0);
        match &mut self.writer {
            None => unit.seal(self.log.head()).map(|(events, ..)| events),
            Some(writer) => {
                let events = writer.append(self.log.head(), unit, place)?;
                self.errands.extend(errands);
                if let Some(Err(error)) = self.clocks.map(|clocks| self.vault.remember_clock(&clocks)) {
                    self.warnings.push(format!("cannot save the machine's clocks: {error}"));
                }
                self.warnings.append(&mut writer.take_warnings());
                Ok(events)
            }
        }
    }

    /// Records what is in the unit as a batch of its own, and goes on from there. A dry run only takes it as given.
    pub(super) fn write_now(&mut self) -> Result<()> {
        let Some(first) = self.unit.events().first().map(|event| event.id) else { return Ok(()) };
        if self.writer.is_none() {
            let unit = std::mem::replace(&mut self.unit, Batch::new(State::default(), None, self.now));
            self.unit = Batch::new(unit.into_state(), self.log.head(), self.now);
            return Ok(());
        }
        self.write(first)?;
        self.look_again()?;
        self.go_on()
    }

    /// The log as it is after a batch.
    fn look_again(&mut self) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            let (log, state) = writer.view()?;
            self.unit = Batch::new(state, log.head(), self.now);
            self.log = log;
        }
        Ok(())
    }

    /// Whether what is asked for will be recorded.
    pub(super) fn writes(&self) -> bool {
        self.writer.is_some()
    }

    pub(super) fn vault(&self) -> &'v Vault {
        self.vault
    }

    /// Goes on with what is missing of a cascade that these began.
    pub(super) fn resume_cascade(&mut self, causes: Vec<Event>) -> Result<()> {
        self.backlog = causes;
        self.go_on()
    }

    /// Goes on with a cascade, a batch at a time, until nothing is missing.
    fn go_on(&mut self) -> Result<()> {
        if self.backlog.is_empty() {
            return Ok(());
        }
        while !self.backlog.is_empty() && self.writer.is_some() {
            let mut causes = std::mem::take(&mut self.backlog);
            self.look_again()?;
            let mut done = 0;
            for cause in &causes {
                let at = self.unit.events().len();
                if !self.react(cause)? {
                    break;
                }
                done += 1;
                self.follow(at)?;
                if !self.backlog.is_empty() {
                    break;
                }
            }
            causes.drain(..done);
            self.backlog.append(&mut causes);
            match self.unit.events().first().map(|event| event.id) {
                Some(first) => drop(self.write(first)?),
                // Nothing more follows from what is left.
                None => self.backlog.clear(),
            }
        }
        self.look_again()
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Whoever is told finds the lock free.
        drop(self.writer.take());
        for errand in self.errands.drain(..) {
            errand(self.vault);
        }
    }
}

/// A log whose ids are ahead of the clock was written while that was wrong, or it is wrong now.
fn ahead_of_the_clock(head: Option<Head>, now: Now, settings: &Settings) -> Option<String> {
    let ahead = head?.id.timestamp_ms().saturating_sub(now.millis) / 1000;
    (ahead > settings.count(Setting::ClockSkewSeconds))
        .then(|| format!("{}: the log is {ahead} seconds ahead of the clock", Code::ClockSkew))
}

/// The flag of a stop that is asked for as an event.
fn stop_among(events: &[Event]) -> Option<StopFlag> {
    let event = events.iter().find(|event| event.event_type.known() == Some(Kind::EmergencyStopIssued))?;
    let reason = event.payload.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    // A stop that came with its flag has it in its key.
    let id = event.key.as_ref().and_then(|key| key.strip_prefix("stop:")).map(str::to_owned);
    Some(StopFlag { id: id.unwrap_or_else(|| event.id.to_string()), reason, by: event.actor.clone() })
}

/// What was recorded, and the log before.
#[derive(Debug)]
pub struct Committed {
    pub events: Vec<Event>,
    /// The log before what is asked for.
    pub log: Box<dyn Log>,
    pub warnings: Vec<String>,
}

impl Committed {
    /// An event, recorded now or before.
    pub fn event(&self, id: Ulid) -> Result<Event> {
        if let Some(event) = self.events.iter().find(|event| event.id == id) {
            return Ok(event.clone());
        }
        let gone = || Error::corrupt(format!("event {id} is gone"));
        self.log.find(id)?.ok_or_else(gone)
    }
}
