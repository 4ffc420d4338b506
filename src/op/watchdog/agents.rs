//! The agents' part of a tick: records what their files say, and judges their signs of life.

use serde_json::{Value, json};

use super::TickRun;
use super::files::{AgentFiles, FileSign, GoneWork, SignFile};
use crate::base::{EntityId, EntityType, HeartbeatId, Result, Subject, Timestamp};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::agent::{self, Declaration, KnownFiles};
use crate::op::kernel::Transaction;
use crate::policy::code::Code;
use crate::policy::liveness::{self, AudibleTime, Finding, Level, SignsOfLife};
use crate::policy::project::ProjectActivity;
use crate::policy::settings::Setting;
use crate::state::Entity;
use crate::vault::{DeclarationEnd, FileSort};

/// An agent that the watchdog checks.
#[derive(Debug)]
pub struct WatchedAgent {
    pub subject: Subject,
    /// The codes of its recorded anomalies.
    pub anomalies: Vec<String>,
}

/// The tasks that are held and the sessions that are open, once what is due is settled.
type Busy<'a> = (&'a [Entity], &'a [Entity]);

/// Judges every active agent.
pub fn judge_all(tick: &mut TickRun<'_>, tx: &mut Transaction<'_>, busy: Busy<'_>) -> Result<Vec<WatchedAgent>> {
    let agents = tx.state().in_phase(EntityType::Agent, Phase::Active, usize::MAX);
    let activity = ProjectActivity::read(tx.state());
    let mut watched = Vec::new();
    for agent in &agents {
        judge(tick, tx, agent, busy, &activity)?;
        let known = agent.as_agent().anomalies().into_iter().flatten();
        watched.push(WatchedAgent {
            subject: agent.subject.clone(),
            anomalies: known.map(|(code, _)| code.clone()).collect(),
        });
    }
    Ok(watched)
}

fn judge(
    tick: &mut TickRun<'_>,
    tx: &mut Transaction<'_>,
    agent: &Entity,
    (held, seated): Busy<'_>,
    activity: &ProjectActivity,
) -> Result<()> {
    let config = tx.config.for_agent(agent.subject.id());
    // While all of its projects are paused nothing is expected of the agent; its time counts again from the resume.
    let from = activity.active_since(tx.state(), &agent.subject, held).filter(|_| !tick.stopped);
    if from.is_some() {
        expire(tick, tx, &agent.subject, None)?;
    }
    let now_agent = tx.state().entity(&agent.subject).map(|agent| agent.into_owned());
    let agent = now_agent.as_ref().unwrap_or(agent);
    let mut signs = SignsOfLife::of_agent(tx.state(), agent, held, seated);
    // Whatever was declared, deep work is never longer than the settings allow.
    let max = config.count(Setting::StrictMaxMinutes).saturating_mul(60);
    if let Some(work) = &mut signs.deep_work {
        work.until = work.until.map(|until| until.min(Timestamp(work.started_at.0.saturating_add_unsigned(max))));
    }
    let mut found = match from {
        Some(from) => {
            let audible = AudibleTime::since(tx.state(), from);
            liveness::findings(&signs, &agent::thresholds(&config), tick.now, &audible)
        }
        None => Vec::new(),
    };
    let in_files = tick.in_works.contains(agent.subject.id());
    found.iter_mut().for_each(|finding| finding.in_files = in_files);
    let expired = tick.expired.iter().filter(|finding| finding.subject == agent.subject && from.is_some()).cloned();
    let of_files = tick.files_findings.iter().filter(|finding| finding.subject == agent.subject).cloned();
    found.extend(expired.chain(of_files));
    tick.findings.extend(found);
    tick.agents.push(signs);
    Ok(())
}

/// Records that the open strict deep work of an agent is past its time: before this time, or now.
fn expire(tick: &mut TickRun<'_>, tx: &mut Transaction<'_>, agent: &Subject, before: Option<Timestamp>) -> Result<()> {
    let Some(work) = open_work(tx, agent) else { return Ok(()) };
    let Some(due) = tx.moment().due_of(&work) else { return Ok(()) };
    if before.is_some_and(|before| before <= due.at) {
        return Ok(());
    }
    let finding = Finding::new(
        Code::DeepworkExpired,
        agent.clone(),
        Level::Error,
        tick.now.0.saturating_sub(due.at.0).max(0) as u64,
    );
    let in_files = tick.in_works.contains(agent.id());
    tick.expired.push(Finding { due_at: Some(due.at), in_files, ..finding });
    tx.add(due.draft())?;
    tick.rename(agent, &work, DeclarationEnd::Expired);
    Ok(())
}

fn open_work(tx: &Transaction<'_>, agent: &Subject) -> Option<Entity> {
    let work = tx.state().entity(agent)?.as_agent().deep_work()?;
    tx.state().entity(&work).filter(|work| work.phase == Phase::Open).map(|work| work.into_owned())
}

/// Records what the files of an agent say.
pub fn take_in(tick: &mut TickRun<'_>, tx: &mut Transaction<'_>, files: &mut AgentFiles) -> Result<()> {
    let agent = Subject::new(EntityType::Agent, files.name.clone());
    let mut taker = Taker { agent, files, is_first: true };
    taker.take(tick, tx)
}

struct Taker<'a> {
    agent: Subject,
    files: &'a mut AgentFiles,
    /// Whether the next event is the first one, which says up to which time files do not count.
    is_first: bool,
}

impl Taker<'_> {
    fn take(&mut self, tick: &mut TickRun<'_>, tx: &mut Transaction<'_>) -> Result<()> {
        let mut signs = std::mem::take(&mut self.files.signs);
        let entity = tx.state().entity(&self.agent).map(|agent| agent.into_owned());
        // Some may have been recorded since the look.
        let known = KnownFiles::of_agent(entity.as_ref(), self.files.zone, tick.now);
        signs.retain(|sign| is_edit(sign) || !known.has(sign.sort(), &sign.path, sign.at));
        if known.since.is_some() {
            self.files.since = None;
        }
        // A command was about to write it.
        self.files
            .renames
            .retain(|(path, end)| *end != DeclarationEnd::Malformed || !known.has_path(FileSort::Declaration, path));
        let phase = entity.as_ref().map_or(Phase::Absent, |agent| agent.phase);
        if phase != Phase::Active {
            let stopped_at = entity.as_ref().and_then(|agent| agent.as_agent().stopped_at());
            // What an agent wrote before it stopped waits until it is started again.
            // Its first file after that may still have an older id.
            let is_newer = |sign: &SignFile| Some(sign.at) > stopped_at || sign.changed_at > stopped_at;
            let (newer, older): (Vec<_>, Vec<_>) = signs.into_iter().partition(is_newer);
            older.iter().for_each(|sign| self.files.look.forget_dir_of(&sign.path));
            signs = newer;
            let Some(first) = signs.first() else { return Ok(()) };
            let payload = json!({"announced": true, "at": first.at.to_string()});
            tick.record(tx, Kind::AgentStarted, &self.agent, payload)?;
        }
        for sign in signs {
            if open_work(tx, &self.agent).is_some_and(|work| !self.is_gone(&work.subject)) {
                expire(tick, tx, &self.agent, Some(sign.at))?;
            }
            self.record(tick, tx, sign)?;
        }
        self.end_gone(tick, tx)
    }

    /// The members that every event of a file has.
    fn payload(&mut self, sign: &SignFile, mut payload: Value) -> Value {
        payload["heartbeat_id"] = sign.id.as_str().into();
        payload["file"] = sign.path.as_str().into();
        payload["at"] = sign.at.to_string().into();
        if let Some(since) = self.files.since.filter(|_| std::mem::replace(&mut self.is_first, false)) {
            payload["since"] = since.to_string().into();
        }
        payload
    }

    fn record(&mut self, tick: &mut TickRun<'_>, tx: &mut Transaction<'_>, sign: SignFile) -> Result<()> {
        match sign.sign.clone() {
            FileSign::Checkpoint { text } => {
                let payload = self.payload(&sign, json!({"text": text}));
                tick.record(tx, Kind::CheckpointRecorded, &self.agent, payload)
            }
            FileSign::Log { kind, title, emergency } => {
                let payload = json!({"kind": kind, "title": title, "emergency": emergency});
                let payload = self.payload(&sign, payload);
                let open = open_work(tx, &self.agent);
                tick.record(tx, Kind::ActivityLogged, &self.agent, payload)?;
                match open.filter(|work| work.as_deep_work().started_at() < Some(sign.at)) {
                    Some(work) => self.complete(tick, tx, &work, "log", sign.at),
                    None => Ok(()),
                }
            }
            FileSign::Declaration { declared, end, is_edit } => self.declare(tick, tx, &sign, (declared, end, is_edit)),
        }
    }

    fn complete(
        &self,
        tick: &mut TickRun<'_>,
        tx: &mut Transaction<'_>,
        work: &Entity,
        by: &str,
        at: Timestamp,
    ) -> Result<()> {
        let payload = json!({"agent_id": self.agent.id(), "by": by, "at": at.to_string()});
        tick.record(tx, Kind::DeepWorkCompleted, &work.subject, payload)?;
        tick.rename(&self.agent, work, DeclarationEnd::Completed);
        Ok(())
    }

    fn declare(
        &mut self,
        tick: &mut TickRun<'_>,
        tx: &mut Transaction<'_>,
        sign: &SignFile,
        (declared, end, is_edit): (Declaration, Option<DeclarationEnd>, bool),
    ) -> Result<()> {
        let open = open_work(tx, &self.agent);
        if let Some(open) = &open {
            let open_file = open.as_deep_work().file().map(str::to_owned);
            match is_edit {
                // It ended since the look.
                true if open_file.as_deref() != Some(&sign.path) => return Ok(()),
                true => {
                    let by = json!({"agent_id": self.agent.id(), "by": "declaration", "at": tick.now.to_string()});
                    tick.record(tx, Kind::DeepWorkCompleted, &open.subject, by)?;
                }
                // A newer declaration is in force already. One by a command in the same second is newer than a file.
                false
                    if open.as_deep_work().started_at() > Some(sign.at)
                        || open.as_deep_work().found_at().is_none()
                            && open.as_deep_work().heartbeat_id() == Some(sign.id.as_str()) =>
                {
                    self.files.renames.extend(end.is_none().then(|| (sign.path.clone(), DeclarationEnd::Completed)));
                    return Ok(());
                }
                false => self.complete(tick, tx, open, "declaration", sign.at)?,
            }
        } else if is_edit {
            return Ok(());
        }
        let payload = json!({
            "agent_id": self.agent.id(), "mode": declared.mode.as_str(), "activity": declared.activity,
            "minutes": declared.minutes,
        });
        let payload = self.payload(sign, payload);
        let subject = self.new_work(tick, tx, &sign.id)?;
        tick.record(tx, Kind::DeepWorkStarted, &subject, payload)?;
        let Some(work) = tx.state().entity(&subject).map(|work| work.into_owned()) else { return Ok(()) };
        if let Some(log) = self.newest_log(tick, tx).filter(|log| *log > sign.at) {
            return self.complete(tick, tx, &work, "earlier_log", log);
        }
        if let Some(end) = end {
            // It was declared and ended between two looks.
            let is_expired = end == DeclarationEnd::Expired;
            self.files.gone = Some(GoneWork { work: subject, at: None, is_expired });
        }
        Ok(())
    }

    /// The time in the id of the newest log that is recorded.
    fn newest_log(&self, tick: &TickRun<'_>, tx: &Transaction<'_>) -> Option<Timestamp> {
        let agent = tx.state().entity(&self.agent)?;
        let id = HeartbeatId::parse(agent.as_agent().last_activity_id()?)?;
        Some(id.time(self.files.zone, tick.now))
    }

    /// The id names the file, unless it is too long or taken.
    fn new_work(&self, tick: &TickRun<'_>, tx: &Transaction<'_>, id: &HeartbeatId) -> Result<Subject> {
        let named = EntityId::parse(&format!("{}-{id}", self.agent.id())).ok();
        let named = named.map(|id| Subject::new(EntityType::DeepWork, id));
        match named.filter(|named| tx.state().phase_of(named) == Phase::Absent) {
            Some(named) => Ok(named),
            None => {
                let id = crate::op::random_ulid(tick.ctx.now)?.to_string();
                Ok(Subject::new(EntityType::DeepWork, EntityId::parse(&id)?))
            }
        }
    }

    /// Whether the agent renamed or deleted the file of the open deep work.
    fn is_gone(&self, work: &Subject) -> bool {
        self.files.gone.as_ref().is_some_and(|gone| gone.work == *work)
    }

    /// Ends the open deep work if the agent renamed or deleted its file. That was in time, unless it is known that it was
    /// not.
    fn end_gone(&self, tick: &mut TickRun<'_>, tx: &mut Transaction<'_>) -> Result<()> {
        let Some(gone) = self.files.gone.clone() else { return Ok(()) };
        let Some(work) = open_work(tx, &self.agent).filter(|work| work.subject == gone.work) else { return Ok(()) };
        let until = tx.moment().due_of(&work).map(|due| due.at);
        if until.is_some() && (gone.is_expired || gone.at > until) {
            return expire(tick, tx, &self.agent, None);
        }
        let at = gone.at.or(until).unwrap_or(tick.now);
        let by = if gone.is_expired { "expired_file" } else { "file" };
        let payload = json!({"agent_id": self.agent.id(), "by": by, "at": at.to_string()});
        tick.record(tx, Kind::DeepWorkCompleted, &work.subject, payload)
    }
}

fn is_edit(sign: &SignFile) -> bool {
    matches!(sign.sign, FileSign::Declaration { is_edit: true, .. })
}
