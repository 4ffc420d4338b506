//! An operator's recovery from damage: the log is cut before its first fault and starts again with an event that says what
//! is missing.
//!
//! 1. Everything from the fault on is copied to quarantine: intact lines to files that hf-log reads, damaged bytes to
//!    others.
//! 2. VaultRecovered is written over the damage and published.
//! 3. The rest is cut off, and the caches are rebuilt.
//!
//! Invariant: whatever ends it in between, no byte is lost, the log never looks intact without that event, and a
//! repetition finishes the recovery and records it once
//! (`a_recovery_killed_anywhere_loses_no_byte_and_is_finished_by_the_next`).

use std::cell::OnceCell;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::tail_audit::RefusedTail;
use super::{clear_later, note, stem};
use crate::base::text::count_noun;
use crate::base::{Actor, Digest, Error, Result, Subject, Ulid};
use crate::chain::salvage::{self, Piece};
use crate::chain::strict::ChainLink;
use crate::chain::tail::TailClass;
use crate::chain::{Head, HeadRecord, LogOffset, SegmentName, scan};
use crate::event::{Draft, Event, Kind, SCHEMA_VERSION};
use crate::policy::authority;
use crate::policy::rules::Step;
use crate::state::State;
use crate::vault::lock::LockMode;
use crate::vault::log::HeadLine;
use crate::vault::quarantine::{LINES, Quarantine};
use crate::vault::snapshot::{Position, Snapshot};
use crate::vault::write::{Writer, newer};
use crate::vault::{Log, Vault, WriteOptions, head, layout, projections};

/// How many damaged places are listed one by one.
const FAULTS_MAX: usize = 20;
/// How many files in quarantine the event names; there are two for a day at most.
const FILES_MAX: usize = 2000;
/// How many lines of damage are looked up in quarantine, to find out whether a recovery was interrupted.
const LOOKED_UP_MAX: usize = 1000;

/// A recovery, before or after it was made.
#[derive(Debug, Default)]
pub struct Recovery {
    /// What is missing from the log; none if the log is intact, or if the next append repairs it.
    pub loss: Option<Loss>,
    /// The events that record it; none before it was made.
    pub events: Vec<Event>,
    /// The last event before the damage.
    pub found: Option<Head>,
    /// How many events there are up to it.
    pub count: u64,
    /// Where it ends.
    end: Option<LogOffset>,
    /// Every damaged place.
    pub faults: Vec<String>,
    pub warnings: Vec<String>,
}

/// What is missing from a log: the payload of VaultRecovered. Members that cannot be known are absent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Loss {
    pub reason: String,
    /// How many bytes were cut off.
    pub bytes: u64,
    /// The files in quarantine, separated by spaces.
    #[serde(default)]
    pub file: String,
    /// Where the log was cut; none if nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The published head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_head: Option<String>,
    /// The last event before the damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_head: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_missing: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_missing: Option<String>,
    /// How many events are missing from the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// How many of them are intact, in quarantine.
    #[serde(default)]
    pub kept: u64,
}

impl Loss {
    /// The loss that a VaultRecovered records.
    fn recorded_by(event: &Event) -> Option<Loss> {
        serde_json::from_value(Value::Object(event.payload.clone())).ok()
    }

    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.file.split(' ').filter(|name| !name.is_empty())
    }

    pub fn payload(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(payload)) => payload,
            _ => unreachable!("a plain struct is an object"),
        }
    }
}

impl Vault {
    /// What a recovery would do. Changes nothing.
    pub fn preview_recovery(&self) -> Result<Recovery> {
        let _guard = self.lock_if_possible(LockMode::Shared)?;
        let record = self.published_record()?;
        let good = self.good_part_within_rules(record.as_ref())?;
        let mut recovery = Recovery { found: good.head, count: good.count, end: good.end, ..Recovery::default() };
        if !self.repairs_itself(record.as_ref(), &good)? {
            let quarantine = Quarantine::dry_run(self)?;
            let survey = self.survey(record.as_ref(), &good, &quarantine)?;
            (recovery.loss, recovery.faults) = (Some(survey.loss), survey.faults);
        }
        Ok(recovery)
    }

    /// The log before the damage, and its state.
    pub fn intact_log(&self, recovery: &Recovery) -> Result<(Snapshot, State)> {
        self.intact_until(recovery.found, recovery.end, recovery.count)
    }

    fn intact_until(&self, head: Option<Head>, end: Option<LogOffset>, count: u64) -> Result<(Snapshot, State)> {
        let log = Snapshot { events: self.events()?, end, segments: OnceCell::new(), head, count };
        let mut state = State::default();
        log.events(Position::START, &mut |_, event, _| {
            state.apply(&event);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((log, state))
    }

    /// Refuses a recovery that has to be signed and is not.
    fn check_recovery(&self, good: &GoodPart, actor: &Actor, payload: &Map<String, Value>) -> Result<()> {
        let (log, state) = self.intact_until(good.head, good.end, good.count)?;
        let step = Step { kind: Kind::VaultRecovered, subject: &Subject::SYSTEM, actor, payload };
        authority::check(&state, &step, &|id| Log::find(&log, id)).map(drop)
    }

    /// Cuts the log before its first fault and records what is missing. Everything that is cut off is kept in quarantine.
    /// `signed` is what an operator's signature adds to the event.
    pub fn recover(
        &self,
        actor: Actor,
        vault_id: &str,
        signed: &Map<String, Value>,
        options: WriteOptions,
    ) -> Result<Recovery> {
        let mut writer = Writer::lock(self, options)?;
        let record = self.published_record()?;
        let good = self.good_part_within_rules(record.as_ref())?;
        if self.repairs_itself(record.as_ref(), &good)? {
            drop(writer);
            let mut writer = Writer::open_empty(self, options)?;
            // The recovery before this one may not have been able to do that.
            if good.recovered.is_some() {
                let aside = Quarantine::make(self).and_then(|quarantine| self.set_snapshot_aside(&writer, &quarantine));
                writer.warnings.extend(aside.err().map(|error| not_set_aside(&error)));
            }
            let (found, count) = (writer.head(), writer.count());
            return Ok(Recovery { found, count, warnings: writer.warnings, ..Recovery::default() });
        }
        let quarantine = Quarantine::make(self)?;
        let mut survey = self.survey(record.as_ref(), &good, &quarantine)?;
        writer.set_end(good.head, good.count, good.end);
        let from = good.fault.as_ref().map(|fault| fault.from);
        let events = match survey.recorded.take() {
            Some(event) => {
                // Everything that follows it is in quarantine already.
                if let Some(from) = from {
                    let file = writer.open_to_write(from.segment)?;
                    let cut = file.set_len(from.offset).and_then(|()| file.sync_data());
                    cut.map_err(|e| Error::system("cannot cut off the damaged part", e))?;
                }
                vec![event]
            }
            None => {
                let with_signature = |loss: &Loss| loss.payload().into_iter().chain(signed.clone()).collect();
                self.check_recovery(&good, &actor, &with_signature(&survey.loss))?;
                self.set_caches_aside(&mut writer, &quarantine, &mut survey.loss);
                let mut batch = writer.begin(Default::default());
                if let Some(newest) = survey.newest_until(options.now.millis) {
                    batch.mint_after(newest);
                }
                if good.head.is_none() {
                    let settings = self.config_file().unwrap_or_default();
                    let first = layout::FirstEvent { vault_id: vault_id.to_owned(), ..Default::default() };
                    batch.push(first.draft(actor.clone(), &settings))?;
                }
                let said = note(Kind::VaultRecovered, good.head, with_signature(&survey.loss));
                let asked = batch.push(Draft { actor, ..said })?;
                writer.commit_at(batch, asked, from)?
            }
        };
        if let Some(from) = from {
            clear_later(&mut writer, from)?;
        }
        writer.publish();
        if let Err(error) = writer.rebuild() {
            writer.warnings.push(format!("the caches could not be rebuilt; run hf-project --rebuild: {error}"));
        }
        Ok(Recovery {
            loss: Some(survey.loss),
            events,
            found: good.head,
            count: good.count,
            end: good.end,
            faults: survey.faults,
            warnings: writer.warnings,
        })
    }

    fn published_record(&self) -> Result<Option<HeadRecord>> {
        match head::read(&self.akashic)? {
            head::Published::Valid(record) => Ok(Some(record)),
            head::Published::Newer => Err(newer("chain.json")),
            head::Published::Missing | head::Published::Invalid => Ok(None),
        }
    }

    /// The log from its beginning up to the first fault, or up to an unpublished end that breaks the rules.
    fn good_part_within_rules(&self, record: Option<&HeadRecord>) -> Result<GoodPart> {
        let good = self.good_part(record)?;
        let is_unpublished = |fault: &FirstFault| record.is_none_or(|record| fault.from >= record.end());
        let is_intact = record.map_or(Ok(true), |record| Ok(matches!(self.head_line(record)?, HeadLine::Good(_))))?;
        if !is_intact || !good.fault.as_ref().is_none_or(is_unpublished) {
            return Ok(good);
        }
        let Some(refused) = self.refused_tail(record, &self.tail(record)?)? else { return Ok(good) };
        let RefusedTail { why, from, last, count } = refused;
        let fault = FirstFault { from, line: from, why, breaks_rules: true };
        let published = good.published;
        Ok(GoodPart { head: Some(last), count, end: Some(from), fault: Some(fault), published, recovered: None })
    }

    /// Whether opening the vault repairs everything: its published head is there, and only an unfinished write comes
    /// after it.
    fn repairs_itself(&self, record: Option<&HeadRecord>, good: &GoodPart) -> Result<bool> {
        if let Some(record) = record
            && (!matches!(self.head_line(record)?, HeadLine::Good(_))
                || good.published.is_some_and(|count| count != record.count))
        {
            return Ok(false);
        }
        let Some(fault) = &good.fault else { return Ok(true) };
        let is_unpublished = record.is_none_or(|record| fault.from >= record.end());
        Ok(!fault.breaks_rules && is_unpublished && matches!(self.tail(record)?.class, TailClass::Torn { .. }))
    }

    /// The log from its beginning up to the first fault.
    fn good_part(&self, record: Option<&HeadRecord>) -> Result<GoodPart> {
        let mut good = GoodPart::default();
        let mut newest_version = 0;
        for segment in self.segments()? {
            let bytes = self.segment_bytes(segment)?;
            let mut count = good.count;
            let scan = scan(&bytes, 0, good.head, &mut |_, event| {
                count += 1;
                newest_version = event.version.max(newest_version);
                if record.is_some_and(|record| record.head == Head::at(event)) {
                    good.published = Some(count);
                }
                good.recovered = (event.event_type.known() == Some(Kind::VaultRecovered)).then(|| event.clone());
            });
            (good.head, good.count) = (scan.head, count);
            if scan.count > 0 {
                good.end = Some(LogOffset { segment, offset: scan.end as u64 });
            }
            if let Some(fault) = scan.fault {
                let place = |offset: usize| LogOffset { segment, offset: offset as u64 };
                let why = format!("{segment} at byte {}: {}", fault.line_offset, fault.message);
                good.fault = Some(FirstFault {
                    from: place(fault.offset),
                    line: place(fault.line_offset),
                    why,
                    breaks_rules: false,
                });
                break;
            }
        }
        match newest_version > SCHEMA_VERSION {
            true => Err(newer("an event")),
            false => Ok(good),
        }
    }

    /// Copies everything after the good part to quarantine, and finds out what is missing.
    fn survey<'a>(
        &self,
        record: Option<&'a HeadRecord>,
        good: &'a GoodPart,
        quarantine: &'a Quarantine,
    ) -> Result<Survey<'a>> {
        let mut survey = Survey::new(record, good, quarantine);
        if let Some(from) = good.fault.as_ref().map(|fault| fault.from) {
            for segment in self.segments()?.into_iter().filter(|segment| *segment >= from.segment) {
                let offset = if segment == from.segment { from.offset } else { 0 };
                let bytes = self.segment_bytes(segment)?;
                survey.add(LogOffset { segment, offset }, bytes.get(offset as usize..).unwrap_or_default())?;
            }
        }
        survey.end();
        Ok(survey)
    }

    /// Removes the caches that may be of events that are cut off. Done before the cut: a cache that is missing is never
    /// wrong, whatever happens next.
    fn set_caches_aside(&self, writer: &mut Writer<'_>, quarantine: &Quarantine, loss: &mut Loss) {
        // Best effort: what cannot be removed is found by the next check.
        let _ = projections::clear(self);
        match self.set_snapshot_aside(writer, quarantine) {
            Ok(None) => {}
            Ok(Some(name)) => loss.file = [loss.file.as_str(), &name].join(" ").trim_start().to_owned(),
            Err(error) => writer.warnings.push(not_set_aside(&error)),
        }
    }

    /// Moves the latest snapshot to quarantine if its head is not in the log. Returns its name there.
    fn set_snapshot_aside(&self, writer: &Writer<'_>, quarantine: &Quarantine) -> Result<Option<String>> {
        let stays = |head: Head| Some(writer.snapshot().ok()?.find(head.id).ok()??.1).map(|event| Head::at(&event));
        let was_cut_off = |head: Option<Head>| head.is_none_or(|head| stays(head) != Some(head));
        projections::set_snapshot_aside(self, quarantine, was_cut_off)
    }

    pub(in crate::vault) fn segment_bytes(&self, segment: SegmentName) -> Result<Vec<u8>> {
        use std::io::Read;
        let mut bytes = Vec::new();
        self.open_segment(segment)?
            .read_to_end(&mut bytes)
            .map_err(|e| Error::system(format!("cannot read {segment}"), e))?;
        Ok(bytes)
    }
}

fn not_set_aside(error: &Error) -> String {
    format!("the latest snapshot could not be set aside: {error}")
}

#[derive(Default)]
struct GoodPart {
    head: Option<Head>,
    count: u64,
    end: Option<LogOffset>,
    fault: Option<FirstFault>,
    /// How many events there are up to the published head; none if it is not among them.
    published: Option<u64>,
    /// The last event, if it records a recovery.
    recovered: Option<Event>,
}

struct FirstFault {
    /// Where the last valid batch ends.
    from: LogOffset,
    /// The first invalid line.
    line: LogOffset,
    why: String,
    /// Whether its line is valid, but not its event.
    breaks_rules: bool,
}

/// What comes after the good part, found out segment by segment.
struct Survey<'a> {
    record: Option<&'a HeadRecord>,
    good: &'a GoodPart,
    quarantine: &'a Quarantine,
    loss: Loss,
    faults: Vec<String>,
    /// The files in quarantine.
    files: Vec<String>,
    /// The ids of the intact lines.
    ids: Vec<Ulid>,
    /// Whether something is missing that the published head does not count.
    is_uncounted: bool,
    first: FirstLine,
    /// The last line so far, if it is intact.
    last: Option<ChainLink>,
    /// The recovery that recorded all this and was interrupted before it cut off the rest.
    recorded: Option<Event>,
}

/// The line after the good part.
enum FirstLine {
    Unseen,
    /// It is damaged, and the line after it has not been seen yet.
    Damaged(Vec<u8>),
    /// The id of its event, if that can be known.
    Seen(Option<Ulid>),
}

impl<'a> Survey<'a> {
    fn new(record: Option<&'a HeadRecord>, good: &'a GoodPart, quarantine: &'a Quarantine) -> Self {
        let is_of_this_log = |event: &Event| {
            let expected = Loss::recorded_by(event).and_then(|loss| loss.expected_head);
            record.is_none_or(|r| r.head == Head::at(event) || expected == Some(r.head.to_string()))
        };
        Survey {
            record,
            good,
            quarantine,
            loss: Loss::default(),
            faults: Vec::new(),
            files: Vec::new(),
            ids: Vec::new(),
            is_uncounted: false,
            first: FirstLine::Unseen,
            last: None,
            recorded: good.recovered.clone().filter(is_of_this_log),
        }
    }

    /// Takes the rest of a segment, which begins at `place`.
    fn add(&mut self, place: LogOffset, bytes: &[u8]) -> Result<()> {
        let pieces = salvage::pieces(bytes);
        let (mut kept, mut damaged) = (Vec::new(), Vec::new());
        for piece in &pieces {
            match piece {
                Piece::Intact(range, _) => kept.extend(&bytes[range.clone()]),
                Piece::Damaged(range) => damaged.extend(&bytes[range.clone()]),
            }
        }
        if self.is_in_quarantine(&kept, &damaged)? {
            return Ok(());
        }
        self.recorded = None;
        let (mut first_kept, mut first_damaged) = (None, None);
        for piece in &pieces {
            let at = |offset: usize| LogOffset { offset: place.offset + offset as u64, ..place };
            match piece {
                Piece::Intact(range, link) => {
                    if Event::read(&bytes[range.start..range.end - 1]).is_ok_and(|e| e.version > SCHEMA_VERSION) {
                        return Err(newer("an event after the damage"));
                    }
                    self.see_intact(at(range.start), *link);
                    first_kept.get_or_insert(link.head.id);
                }
                Piece::Damaged(range) => {
                    self.see_damaged(at(range.start), &bytes[range.clone()]);
                    first_damaged.get_or_insert(at(range.start).offset);
                }
            }
        }
        self.loss.bytes += bytes.len() as u64;
        if let Some(start) = first_damaged {
            let stem = stem("damage", place.segment, start, &damaged);
            self.files.push(self.quarantine.keep(&stem, "", &damaged)?);
        }
        if let Some(id) = first_kept {
            self.files.push(self.quarantine.keep(&id.to_string(), LINES, &kept)?);
        }
        Ok(())
    }

    /// Whether an interrupted recovery has already copied this. It may have overwritten the beginning.
    fn is_in_quarantine(&self, kept: &[u8], damaged: &[u8]) -> Result<bool> {
        let Some(loss) = self.recorded.as_ref().and_then(Loss::recorded_by) else { return Ok(false) };
        let has = |part: &[u8]| self.quarantine.has(loss.files(), part);
        if !kept.is_empty() && !has(kept)? {
            return Ok(false);
        }
        for (n, line) in damaged.split_inclusive(|&b| b == b'\n').enumerate() {
            if n == LOOKED_UP_MAX || !has(line)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn see_intact(&mut self, at: LogOffset, link: ChainLink) {
        let found = self.good.head;
        match std::mem::replace(&mut self.first, FirstLine::Unseen) {
            FirstLine::Unseen => {
                let follows = link.prev_hash == found.map_or(Digest::ZERO, |head| head.hash);
                self.first = FirstLine::Seen(Some(link.head.id).filter(|_| follows));
            }
            FirstLine::Damaged(line) => {
                self.first = FirstLine::Seen(salvage::id_between(&line, found, Some(link)));
            }
            seen => self.first = seen,
        }
        if let Some(last) = self.last.filter(|last| !link.follows(Some(last))) {
            self.is_uncounted |= self.record.is_none_or(|record| at >= record.end());
            self.fault(at, format!("event {} does not follow event {}", link.head.id, last.head.id));
        }
        self.last = Some(link);
        self.ids.push(link.head.id);
    }

    fn see_damaged(&mut self, at: LogOffset, bytes: &[u8]) {
        if let FirstLine::Unseen = self.first {
            let line = bytes.split(|&b| b == b'\n').next().unwrap_or_default();
            self.first = FirstLine::Damaged(line.to_vec());
        }
        self.last = None;
        let end = LogOffset { offset: at.offset + bytes.len() as u64, ..at };
        self.is_uncounted |= self.record.is_none_or(|record| end > record.end());
        self.fault(at, format!("{} damaged", count_noun(bytes.len(), "byte")));
    }

    /// Lists a damaged place, unless it is the first, which the scan describes better.
    fn fault(&mut self, at: LogOffset, what: String) {
        if self.good.fault.as_ref().is_none_or(|first| first.line != at) {
            self.faults.push(format!("{} at byte {}: {what}", at.segment, at.offset));
        }
    }

    /// Finds out what is missing, once everything was seen.
    fn end(&mut self) {
        if let Some(loss) = self.recorded.as_ref().and_then(Loss::recorded_by) {
            self.faults.push(loss.reason.clone());
            self.loss = loss;
            return;
        }
        let (good, record) = (self.good, self.record);
        self.ids.sort();
        self.ids.dedup();
        let after =
            |head: Option<Head>| self.ids.len() - self.ids.partition_point(|id| head.is_some_and(|h| *id <= h.id));
        // Of the published events, those that are not in the good part; and everything intact after them.
        let published = record.and_then(|record| match good.published {
            Some(_) => Some(0),
            None => record.count.checked_sub(good.count).filter(|count| *count > 0),
        });
        let unpublished = after(record.map(|record| record.head)) as u64;
        let kept = after(good.head) as u64;
        let missing = published.filter(|_| !self.is_uncounted).map(|count| count.saturating_add(unpublished).max(kept));
        let mut first = match std::mem::replace(&mut self.first, FirstLine::Unseen) {
            FirstLine::Unseen => None,
            FirstLine::Damaged(line) => salvage::id_between(&line, good.head, None),
            FirstLine::Seen(id) => id,
        };
        let newest = self.ids.last().copied();
        let mut last = match record.filter(|_| good.published.is_none()) {
            Some(record) => newest.max(Some(record.head.id)),
            None => newest.filter(|_| self.last.is_some()),
        };
        if missing == Some(1) {
            (first, last) = (first.or(last), last.or(first));
        }
        let is_missing = |id: &Ulid| good.head.is_none_or(|head| *id > head.id);
        let reason = match (&good.fault, record) {
            (Some(fault), _) => fault.why.clone(),
            (None, Some(record)) => match good.published {
                Some(count) => format!("chain.json counts {} events up to its head, not {count}", record.count),
                None if good.end.is_none_or(|end| end < record.end()) => {
                    "the log ended before its published head".to_owned()
                }
                None => "the published head is not in the log".to_owned(),
            },
            (None, None) => "nothing is missing".to_owned(),
        };
        self.faults.insert(0, reason.clone());
        if let Some(more) = self.faults.len().checked_sub(FAULTS_MAX).filter(|more| *more > 0) {
            self.faults.truncate(FAULTS_MAX);
            self.faults.push(format!("and {}", count_noun(more, "more place")));
        }
        self.files.truncate(FILES_MAX);
        self.loss = Loss {
            reason,
            bytes: self.loss.bytes,
            file: self.files.join(" "),
            segment: good.fault.as_ref().map(|fault| fault.from.segment.to_string()),
            offset: good.fault.as_ref().map(|fault| fault.from.offset),
            expected_head: record.map(|record| record.head.to_string()),
            found_head: good.head.map(|head| head.to_string()),
            first_missing: first.filter(is_missing).map(|id| id.to_string()),
            last_missing: last.filter(is_missing).map(|id| id.to_string()),
            missing,
            kept,
        };
    }

    /// The newest id that was cut off and is not in the future: the log continues after it.
    fn newest_until(&self, millis: u64) -> Option<Ulid> {
        let published = self.record.map(|record| record.head.id);
        self.ids.iter().copied().chain(published).filter(|id| id.timestamp_ms() <= millis).max()
    }
}
