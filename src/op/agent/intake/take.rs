//! Records what an agent's files say, each in its place among the others and among the ends of deep work.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::look::{AgentFiles, FileSign, GoneWork, SignFile};
use super::{Intake, record};
use crate::base::{EntityId, EntityType, HeartbeatId, Result, Subject, Timestamp};
use crate::event::Kind;
use crate::machine::Phase;
use crate::op::agent::{Declaration, KnownFiles, open_work};
use crate::op::kernel::Transaction;
use crate::policy::code::Code;
use crate::policy::liveness::{Finding, Level};
use crate::state::Entity;
use crate::vault::{DeclarationEnd, FileSort};

impl Intake<'_> {
    /// Records what the files of an agent say.
    pub fn take(&mut self, tx: &mut Transaction<'_>, files: &mut AgentFiles) -> Result<()> {
        let agent = Subject::new(EntityType::Agent, files.name.clone());
        Taker { intake: self, agent, files, pending: VecDeque::new(), is_first: true }.take(tx)
    }

    /// Records that the open strict deep work of an agent is past its time: before this time, or now.
    pub fn expire(&mut self, tx: &mut Transaction<'_>, agent: &Subject, before: Option<Timestamp>) -> Result<()> {
        let Some(work) = open_work(tx, agent) else { return Ok(()) };
        let Some(due) = tx.moment().due_of(&work) else { return Ok(()) };
        if before.is_some_and(|before| before <= due.at) {
            return Ok(());
        }
        let seconds = self.now.0.saturating_sub(due.at.0).max(0) as u64;
        let finding = Finding::new(Code::DeepworkExpired, agent.clone(), Level::Error, seconds);
        let in_files = self.in_works.contains(agent.id());
        self.expired.push(Finding { due_at: Some(due.at), in_files, ..finding });
        tx.add(due.draft())?;
        self.rename(agent, &work, DeclarationEnd::Expired);
        Ok(())
    }
}

struct Taker<'a, 'b> {
    intake: &'a mut Intake<'b>,
    agent: Subject,
    files: &'a mut AgentFiles,
    /// The files that are not recorded yet, in order.
    pending: VecDeque<SignFile>,
    /// Whether the next event is the first one, which says up to which time files do not count.
    is_first: bool,
}

impl Taker<'_, '_> {
    fn take(&mut self, tx: &mut Transaction<'_>) -> Result<()> {
        let mut signs = std::mem::take(&mut self.files.signs);
        let entity = tx.state().entity(&self.agent).map(|agent| agent.into_owned());
        // Some may have been recorded since the look.
        let known = KnownFiles::of_agent(entity.as_ref(), self.files.zone, self.intake.now);
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
            record(tx, Kind::AgentStarted, &self.agent, payload)?;
        }
        self.pending = signs.into();
        while let Some(sign) = self.pending.pop_front() {
            if open_work(tx, &self.agent).is_some_and(|work| !self.is_gone(&work.subject)) {
                self.intake.expire(tx, &self.agent, Some(sign.at))?;
            }
            self.record(tx, sign)?;
        }
        self.end_gone(tx)
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

    fn record(&mut self, tx: &mut Transaction<'_>, sign: SignFile) -> Result<()> {
        match sign.sign.clone() {
            FileSign::Checkpoint { text } => {
                let payload = self.payload(&sign, json!({"text": text}));
                record(tx, Kind::CheckpointRecorded, &self.agent, payload)
            }
            FileSign::Log { kind, title, emergency } => {
                let payload = json!({"kind": kind, "title": title, "emergency": emergency});
                let payload = self.payload(&sign, payload);
                let open = open_work(tx, &self.agent);
                record(tx, Kind::ActivityLogged, &self.agent, payload)?;
                match open.filter(|work| work.as_deep_work().started_at() < Some(sign.at)) {
                    Some(work) => self.complete(tx, &work, "log", sign.at),
                    None => Ok(()),
                }
            }
            FileSign::Declaration { declared, end, is_edit } => self.declare(tx, &sign, (declared, end, is_edit)),
        }
    }

    fn complete(&mut self, tx: &mut Transaction<'_>, work: &Entity, by: &str, at: Timestamp) -> Result<()> {
        let payload = json!({"agent_id": self.agent.id(), "by": by, "at": at.to_string()});
        record(tx, Kind::DeepWorkCompleted, &work.subject, payload)?;
        self.intake.rename(&self.agent, work, DeclarationEnd::Completed);
        Ok(())
    }

    fn declare(
        &mut self,
        tx: &mut Transaction<'_>,
        sign: &SignFile,
        (declared, end, is_edit): (Declaration, Option<DeclarationEnd>, bool),
    ) -> Result<()> {
        let open = open_work(tx, &self.agent);
        let mut superseded_at = None;
        if let Some(open) = &open {
            let open_file = open.as_deep_work().file().map(str::to_owned);
            match is_edit {
                // It ended since the look.
                true if open_file.as_deref() != Some(&sign.path) => return Ok(()),
                true => {
                    let by =
                        json!({"agent_id": self.agent.id(), "by": "declaration", "at": self.intake.now.to_string()});
                    record(tx, Kind::DeepWorkCompleted, &open.subject, by)?;
                }
                // A newer declaration is in force already. One by a command in the same second is newer than a file.
                false
                    if open.as_deep_work().started_at() > Some(sign.at)
                        || open.as_deep_work().found_at().is_none()
                            && open.as_deep_work().heartbeat_id() == Some(sign.id.as_str()) =>
                {
                    superseded_at = open.as_deep_work().started_at();
                }
                false => self.complete(tx, open, "declaration", sign.at)?,
            }
        } else if is_edit {
            return Ok(());
        }
        let payload = json!({
            "agent_id": self.agent.id(), "mode": declared.mode.as_str(), "activity": declared.activity,
            "minutes": declared.minutes,
        });
        let payload = self.payload(sign, payload);
        let subject = self.new_work(tx, &sign.id)?;
        record(tx, Kind::DeepWorkStarted, &subject, payload)?;
        let Some(work) = tx.state().entity(&subject).map(|work| work.into_owned()) else { return Ok(()) };
        if let Some(at) = superseded_at {
            return self.complete(tx, &work, "declaration", at);
        }
        if let Some(log) = self.earlier_log(tx, sign.at) {
            // It may have come too late to end it.
            self.intake.expire(tx, &self.agent, Some(log))?;
            return match open_work(tx, &self.agent) {
                Some(_) => self.complete(tx, &work, "earlier_log", log),
                None => Ok(()),
            };
        }
        if let Some(end) = end {
            // It was declared and ended between two looks.
            let is_expired = end == DeclarationEnd::Expired;
            self.files.gone = Some(GoneWork { work: subject, at: None, is_expired });
        }
        Ok(())
    }

    /// The time of the log that ends a declaration of this time, if that log is recorded already.
    fn earlier_log(&self, tx: &Transaction<'_>, declared_at: Timestamp) -> Option<Timestamp> {
        let recorded = tx.state().entity(&self.agent)?.first_file_log_after(declared_at)?;
        let is_log = |sign: &&SignFile| sign.sort() == FileSort::Log && sign.at > declared_at;
        // One that is not recorded yet ends it when it is, in its place.
        let pending = self.pending.iter().filter(is_log).map(|sign| sign.at).min();
        Some(recorded).filter(|recorded| pending.is_none_or(|pending| *recorded <= pending))
    }

    /// The id names the file, unless it is too long or taken.
    fn new_work(&self, tx: &Transaction<'_>, id: &HeartbeatId) -> Result<Subject> {
        let named = EntityId::parse(&format!("{}-{id}", self.agent.id())).ok();
        let named = named.map(|id| Subject::new(EntityType::DeepWork, id));
        match named.filter(|named| tx.state().phase_of(named) == Phase::Absent) {
            Some(named) => Ok(named),
            None => {
                let id = crate::op::random_ulid(self.intake.ctx.now)?.to_string();
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
    fn end_gone(&mut self, tx: &mut Transaction<'_>) -> Result<()> {
        let Some(gone) = self.files.gone.clone() else { return Ok(()) };
        let Some(work) = open_work(tx, &self.agent).filter(|work| work.subject == gone.work) else { return Ok(()) };
        let until = tx.moment().due_of(&work).map(|due| due.at);
        if until.is_some() && (gone.is_expired || gone.at > until) {
            return self.intake.expire(tx, &self.agent, None);
        }
        let at = gone.at.or(until).unwrap_or(self.intake.now);
        let by = if gone.is_expired { "expired_file" } else { "file" };
        let payload = json!({"agent_id": self.agent.id(), "by": by, "at": at.to_string()});
        record(tx, Kind::DeepWorkCompleted, &work.subject, payload)
    }
}

fn is_edit(sign: &SignFile) -> bool {
    matches!(sign.sign, FileSign::Declaration { is_edit: true, .. })
}
