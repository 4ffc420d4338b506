//! The transaction: where everything that changes something is decided and recorded.
//!
//! Lock, look, ask for any number of things, commit all of them together with what follows from
//! them. Nothing that was asked for is written before `commit`, and a request that is refused leaves nothing behind.

use serde_json::{Value, json};

use super::context::{Context, Shell};
use crate::base::actor::ActorKind;
use crate::base::{Actor, EntityType, Error, ErrorKind, Now, Reason, Result, Subject, Ulid, text};
use crate::event::{Draft, Event, Kind, SCHEMA_VERSION, parse_ulid};
use crate::machine;
use crate::policy::project::{self, Seat};
use crate::policy::settings::Setting;
use crate::policy::{self, Request, Settings, Verdict};
use crate::state::State;
use crate::vault::config::Config;
use crate::vault::{Snapshot, Stop, Unit, Vault, Writer};

/// What may have to be done after a commit: looked for in the state that it leads to, done when the lock is free.
pub type AfterCommit = fn(&After<'_>) -> Option<Errand>;

/// Something to do when the lock is free. It must not fail the command: what is recorded is recorded.
pub type Errand = Box<dyn FnOnce(&Vault)>;

/// What is about to be committed.
#[derive(Debug)]
pub struct After<'a> {
    /// The state with it.
    pub state: &'a State,
    pub settings: &'a Settings,
    pub events: &'a [Event],
}

/// The log to decide against: with the right to append, or only for a dry run.
#[derive(Debug)]
pub struct Transaction<'v> {
    vault: &'v Vault,
    writer: Option<Writer<'v>>,
    after_commit: &'static [AfterCommit],
    pub snapshot: Snapshot,
    unit: Unit,
    /// Whose shell this is, as far as sessions and projects go.
    pub seat: Seat,
    pub now: Now,
    pub config: Config,
    pub warnings: Vec<String>,
}

/// Whether what is asked for is to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Write,
    DryRun,
}

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The event that was asked for, or that made it so before.
    pub id: Ulid,
    /// Whether it was so before.
    pub held: bool,
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
        let (config, mut warnings) = vault.config()?;
        let options = ctx.write_options(&config);
        let (writer, (snapshot, state)) = if mode == Mode::DryRun {
            (None, vault.view()?)
        } else {
            let mut writer = vault.write(options)?;
            warnings.append(&mut writer.warnings);
            let view = writer.view()?;
            (Some(writer), view)
        };
        if state.tally().newest_version > SCHEMA_VERSION {
            return Err(Error::refused(
                Reason::NewerVersion,
                "this vault holds events of a newer version than this program writes",
            ));
        }
        let seat = seat(ctx, &state)?;
        let unit = Unit::new(state, snapshot.head, ctx.now);
        let after_commit = ctx.host.after_commit;
        let mut tx = Transaction { vault, writer, after_commit, snapshot, unit, seat, now: ctx.now, config, warnings };
        tx.settle_stop()?;
        Ok(tx)
    }

    /// The state with everything that was asked for so far.
    pub fn state(&self) -> &State {
        self.unit.state()
    }

    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// Decides on a request; what is to be recorded is, with what announces it and what follows.
    pub fn ask(&mut self, mut request: Request) -> Result<Asked> {
        if let Some(key) = request.key.as_ref().filter(|key| self.state().keyed(key).is_some()) {
            return Err(Error::refused(Reason::KeyConflict, format!("the key '{key}' stands twice in this batch")));
        }
        request.autonomous |= request.actor.is_autonomous();
        self.check_declared(&request)?;
        // What the toolkit finds is recorded whoever looks; what is a person's is refused as that.
        let persons = request.autonomous && policy::rules::is_operators(request.kind);
        if request.actor.kind != ActorKind::Core && !persons {
            let own = project::of_request(self.state(), &request);
            self.seat.check(self.state(), request.kind, own.as_ref())?;
        }
        let fresh = self.unit.mint()?;
        // Only for something that will be recorded may anybody be announced; only with the announcement
        // is its natural cause known.
        if let Some(announcement) = policy::announce(self.state(), &request)
            && policy::holds(self.state(), &request).is_none()
        {
            self.unit.push(announcement)?;
        }
        if let Some(opening) = project::open(self.state(), &request)
            && policy::holds(self.state(), &request).is_none()
        {
            self.unit.push(opening)?;
        }
        match self.decide(request, fresh)? {
            Verdict::Holds(id) => Ok(Asked { id, held: true }),
            Verdict::Record(draft) => {
                let asked = self.unit.push(draft)?;
                self.follow(asked)?;
                Ok(Asked { id: self.unit.events()[asked].id, held: false })
            }
        }
    }

    /// No declaration of deep work is longer than the settings allow, whoever records it.
    fn check_declared(&self, request: &Request) -> Result<()> {
        let said = |member: &str| request.payload.get(member);
        let (Some(agent), Some(minutes)) =
            (said("agent_id").and_then(Value::as_str), said("minutes").and_then(Value::as_u64))
        else {
            return Ok(());
        };
        let work = || self.state().entity(&self.state().resolve(request.subject.as_deref()?, None).ok()?);
        let (before, extensions) = match request.kind {
            Kind::DeepWorkStarted => (0, None),
            Kind::DeepWorkExtended => work().map_or((0, None), |w| (w.count("minutes"), Some(w.count("extensions")))),
            _ => return Ok(()),
        };
        let config = self.config.for_agent(agent);
        let (most, times) = (config.count(Setting::StrictMaxMinutes), config.count(Setting::DeepworkExtendMax));
        if extensions.is_some_and(|extensions| extensions >= times) {
            return Err(Error::refused(
                Reason::LimitReached,
                format!("it was extended {times} times, which is the most"),
            ));
        }
        match before.saturating_add(minutes) > most {
            true => Err(Error::usage(format!("a strict deep work has at most {most} minutes"))),
            false => Ok(()),
        }
    }

    fn decide(&self, request: Request, fresh: Ulid) -> Result<Verdict> {
        policy::decide(self.unit.state(), &self.config, request, &mut || fresh)
    }

    /// Adds something that time asks for, with what follows.
    pub fn add(&mut self, draft: Draft) -> Result<()> {
        let at = self.unit.push(draft)?;
        self.follow(at)
    }

    /// Everything that follows from the event at this place of the unit, and from that in turn.
    fn follow(&mut self, mut at: usize) -> Result<()> {
        while at < self.unit.events().len() {
            let mut ids = Vec::new();
            // Ids that are not used cost nothing.
            for _ in 0..policy::makes_at_most(&self.unit.events()[at]) {
                ids.push(self.unit.mint()?);
            }
            ids.reverse();
            let mut mint = || ids.pop().expect("a reaction makes no more");
            let cause = &self.unit.events()[at];
            let drafts = policy::react(self.unit.state(), &self.config, cause, &mut mint);
            for draft in drafts {
                self.unit.push(draft)?;
            }
            at += 1;
        }
        Ok(())
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
        let after = After { state: self.unit.state(), settings: &self.config, events: self.unit.events() };
        let errands: Vec<Errand> = self.after_commit.iter().filter_map(|look| look(&after)).collect();
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
        let Transaction { writer, snapshot, warnings, .. } = self;
        if writer.is_some() {
            // Whoever is told finds the lock free.
            drop(writer);
            errands.into_iter().for_each(|errand| errand(vault));
        }
        Ok(Committed { events, snapshot, warnings })
    }

    fn write(&mut self, asked: Ulid) -> Result<Vec<Event>> {
        let unit = std::mem::replace(&mut self.unit, Unit::new(State::default(), None, self.now));
        if unit.events().is_empty() {
            return Ok(Vec::new());
        }
        // What was asked for may hold already, while something else is due all the same.
        let place = unit.events().iter().position(|event| event.id == asked).unwrap_or(0);
        match &mut self.writer {
            None => unit.seal(self.snapshot.head).map(|(events, ..)| events),
            Some(writer) => {
                let events = writer.commit(unit, place)?;
                self.warnings.append(&mut writer.warnings);
                Ok(events)
            }
        }
    }

    /// Records a stop whose flag is up and whose event is missing; lowers a flag that outlived its stop.
    fn settle_stop(&mut self) -> Result<()> {
        let vault = self.vault;
        let Some(stop) = vault.stop_flag()? else { return Ok(()) };
        let stopped = self.state().of(&Subject::SYSTEM) == machine::State::Stopped;
        let as_event = parse_ulid(&stop.id).map(|id| self.snapshot.find(id)).transpose()?.flatten();
        let recorded = self.state().keyed(&stop.key()).is_some() || as_event.is_some();
        match (stopped, recorded) {
            (true, _) => Ok(()),
            (false, true) => match &self.writer {
                Some(_) => vault.lower_stop(&stop),
                None => Ok(()),
            },
            (false, false) => self.record_stop(&stop),
        }
    }

    fn record_stop(&mut self, stop: &Stop) -> Result<()> {
        let payload = json!({"reason": stop.reason});
        let draft = Draft {
            kind: Kind::EmergencyStopIssued,
            subject: Subject::SYSTEM,
            actor: Actor::parse(&stop.by)?,
            parents: Vec::new(),
            key: Some(stop.key()),
            payload: payload.as_object().expect("an object").clone(),
        };
        self.add(draft)?;
        if self.writer.is_none() {
            return Ok(());
        }
        let first = self.unit.events()[0].id;
        self.write(first)?;
        let writer = self.writer.as_mut().expect("looked at above");
        let (snapshot, state) = writer.view()?;
        self.unit = writer.begin(state);
        self.snapshot = snapshot;
        Ok(())
    }
}

/// The flag of a stop that is asked for as an event.
fn stop_among(events: &[Event]) -> Option<Stop> {
    let event = events.iter().find(|event| event.event_type.known() == Some(Kind::EmergencyStopIssued))?;
    let reason = event.payload.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned();
    // A stop that came with its flag has it in its key.
    let id = event.key.as_ref().and_then(|key| key.strip_prefix("stop:")).map(str::to_owned);
    Some(Stop { id: id.unwrap_or_else(|| event.id.to_string()), reason, by: event.actor.clone() })
}

/// What was recorded, and the log before.
#[derive(Debug)]
pub struct Committed {
    pub events: Vec<Event>,
    pub snapshot: Snapshot,
    pub warnings: Vec<String>,
}

impl Committed {
    /// An event, recorded now or before.
    pub fn event(&self, id: Ulid) -> Result<Event> {
        if let Some(event) = self.events.iter().find(|event| event.id == id) {
            return Ok(event.clone());
        }
        let gone = || Error::corrupt(format!("event {id} is gone"));
        self.snapshot.find(id)?.map(|(_, event)| event).ok_or_else(gone)
    }
}

/// Whose shell a command was started in, as far as sessions and projects go.
fn seat(ctx: &Context, state: &State) -> Result<Seat> {
    if ctx.caller.shell == Shell::Supervisors {
        return Ok(Seat::Free);
    }
    let Some(name) = &ctx.session else {
        return Ok(match ctx.caller.actor.kind == ActorKind::Agent || ctx.caller.is_in_agent_shell() {
            true => Seat::Agent(ctx.project()),
            false => Seat::Free,
        });
    };
    let session = state.find(name, EntityType::Session).ok().and_then(|subject| state.entity(&subject));
    let Some(session) = session else {
        let why = format!("there is no session '{}'", text::cut(name, 40));
        return Ok(Seat::Void(why));
    };
    if let (Shell::Agents(me), Some(agent)) = (&ctx.caller.shell, session.text("agent_id"))
        && me != agent
    {
        return Ok(Seat::Foreign(format!("{} is a session of agent {agent}", session.name())));
    }
    let over = session.state != machine::State::Active || project::has_expired(&session, ctx.now.timestamp());
    Ok(match project::of(state, &session) {
        Some(project) if !over => Seat::Session(project),
        _ => Seat::Void(format!("session {} is over: log out, and log in anew", session.name())),
    })
}
