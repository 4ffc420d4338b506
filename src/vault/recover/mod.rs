//! Recovery: adopting events that a dead writer left, moving unfinished or damaged bytes to quarantine.
//!
//! Invariant: bytes are removed from the log only after a synced copy of them is in quarantine.

use std::os::unix::fs::FileExt;

use serde_json::{Value, json};

use super::log::{HeadLine, size};
use super::write::{Writer, newer};
use super::{Vault, WriteOptions, head, layout};
use crate::base::{Actor, Digest, Error, Result, Subject};
use crate::chain::tail::{Tail, TailClass};
use crate::chain::{Head, HeadRecord, LogOffset, SegmentName, scan};
use crate::event::{Draft, Event, Kind};

/// Makes valid events durable that were written but not published. Writes the same bytes again, because an earlier sync
/// may have failed and left pages that are marked clean but are not on disk.
pub(super) fn adopt(writer: &mut Writer<'_>, tail: &Tail) -> Result<()> {
    let (Some(from), Some(to)) = (tail.unsynced, tail.end) else { return Ok(()) };
    for segment in writer.vault().segments()?.into_iter().filter(|s| (from.segment..=to.segment).contains(s)) {
        let start = if segment == from.segment { from.offset } else { 0 };
        let file = writer.open_to_write(segment)?;
        let end = if segment == to.segment { to.offset } else { size(&file)? };
        let mut bytes = vec![0; end.saturating_sub(start) as usize];
        let again = file
            .read_exact_at(&mut bytes, start)
            .and_then(|()| file.write_all_at(&bytes, start))
            .and_then(|()| file.sync_data());
        again.map_err(|e| Error::system("cannot make the events of an earlier command durable", e))?;
    }
    sync_names(writer.vault(), to.segment)?;
    writer.publish();
    Ok(())
}

/// Moves an unfinished write to quarantine and records it.
pub(super) fn quarantine_tail(writer: &mut Writer<'_>, tail: &Tail, from: LogOffset, why: &str) -> Result<()> {
    adopt(writer, tail)?;
    let moved = copy_to_quarantine(writer.vault(), "tail", from)?;
    clear_later(writer, from)?;
    let note = match tail.head {
        Some(head) => note(Kind::TailQuarantined, Some(head), moved.describe(why)),
        // An unfinished first event: there is no log yet in which this could be recorded.
        None => {
            let file = writer.open_to_write(from.segment)?;
            return file.set_len(from.offset).map_err(|e| Error::system("cannot cut off the unfinished write", e));
        }
    };
    // Written over the unfinished bytes, so that they are never missing without a record.
    writer.append_at(from, note)?;
    writer.warnings.push(format!("an unfinished write of {} bytes was moved to quarantine", moved.bytes));
    Ok(())
}

/// The result of a recovery by an operator.
#[derive(Debug)]
pub struct Recovered {
    /// The events that record it; empty if there was nothing to recover.
    pub events: Vec<Event>,
    pub expected: Option<Head>,
    pub found: Option<Head>,
    pub bytes: u64,
    pub files: Vec<String>,
    pub warnings: Vec<String>,
}

impl Vault {
    /// Cuts off the log before its first invalid line and records it. The cut bytes are kept in quarantine.
    pub fn recover(&self, actor: Actor, vault_id: &str, options: WriteOptions) -> Result<Recovered> {
        let mut writer = Writer::lock(self, options)?;
        let record = match head::read(&self.akashic)? {
            head::Published::Valid(record) => Some(record),
            head::Published::Newer => return Err(newer("chain.json")),
            _ => None,
        };
        let good = self.good_part()?;
        if self.repairs_itself(record.as_ref(), &good)? {
            drop(writer);
            let writer = Writer::open_empty(self, options)?;
            let (found, warnings) = (writer.head(), writer.warnings);
            return Ok(Recovered {
                events: Vec::new(),
                expected: record.map(|r| r.head),
                found,
                bytes: 0,
                files: Vec::new(),
                warnings,
            });
        }
        let moved = match good.fault {
            Some((from, _)) => cut_off(&mut writer, from)?,
            None => Quarantined::default(),
        };
        writer.set_end(good.head, good.count, good.end);
        let why = good.fault.map_or_else(|| "the log ended before its published head".to_owned(), |(_, why)| why);
        let mut payload = moved.describe(&why);
        for (name, head) in [("expected_head", record.map(|r| r.head)), ("found_head", good.head)] {
            if let Some(head) = head {
                payload[name] = head.to_string().into();
            }
        }
        let mut batch = writer.begin(Default::default());
        if good.head.is_none() {
            let settings = self.config_file().map(|(config, _)| config.settings).unwrap_or_default();
            batch.push(layout::first_event(actor.clone(), vault_id, &settings))?;
        }
        let asked = batch.push(Draft { actor, ..note(Kind::VaultRecovered, good.head, payload) })?;
        let events = writer.commit(batch, asked)?;
        Ok(Recovered {
            events,
            expected: record.map(|r| r.head),
            found: good.head,
            bytes: moved.bytes,
            files: moved.files,
            warnings: writer.warnings,
        })
    }

    /// Whether opening the vault repairs everything: its published head is there, and only an unfinished write comes
    /// after it.
    fn repairs_itself(&self, record: Option<&HeadRecord>, good: &GoodPart) -> Result<bool> {
        if let Some(record) = record
            && !matches!(self.head_line(record)?, HeadLine::Good(_))
        {
            return Ok(false);
        }
        let Some((at, _)) = &good.fault else { return Ok(true) };
        let behind = record.is_none_or(|record| *at >= record.end());
        Ok(behind && matches!(self.tail(record)?.class, TailClass::Torn { .. }))
    }

    /// The log from its beginning up to the first fault.
    fn good_part(&self) -> Result<GoodPart> {
        let mut good = GoodPart { head: None, count: 0, end: None, fault: None };
        for segment in self.segments()? {
            let bytes = self.segment_bytes(segment)?;
            let scan = scan(&bytes, 0, good.head, &mut |_, _| {});
            good.head = scan.head;
            good.count += scan.count;
            if scan.count > 0 {
                good.end = Some(LogOffset { segment, offset: scan.end as u64 });
            }
            if let Some(fault) = scan.fault {
                let why = format!("{segment} at byte {}: {}", fault.line_offset, fault.message);
                good.fault = Some((LogOffset { segment, offset: fault.offset as u64 }, why));
                break;
            }
        }
        Ok(good)
    }

    pub(super) fn segment_bytes(&self, segment: SegmentName) -> Result<Vec<u8>> {
        use std::io::Read;
        let mut bytes = Vec::new();
        self.open_segment(segment)?
            .read_to_end(&mut bytes)
            .map_err(|e| Error::system(format!("cannot read {segment}"), e))?;
        Ok(bytes)
    }
}

struct GoodPart {
    head: Option<Head>,
    count: u64,
    end: Option<LogOffset>,
    fault: Option<(LogOffset, String)>,
}

/// What was copied to quarantine.
#[derive(Debug, Default)]
struct Quarantined {
    from: Option<LogOffset>,
    bytes: u64,
    files: Vec<String>,
}

impl Quarantined {
    fn describe(&self, why: &str) -> Value {
        let mut payload = json!({"reason": why, "bytes": self.bytes, "file": self.files.join(" ")});
        if let Some(from) = self.from {
            payload["segment"] = from.segment.to_string().into();
            payload["offset"] = from.offset.into();
        }
        payload
    }
}

/// Copies everything from `from` to the end of the log to quarantine. The names are derived from the content, so that
/// repeating this after a crash makes no second copy.
fn copy_to_quarantine(vault: &Vault, what: &str, from: LogOffset) -> Result<Quarantined> {
    let (quarantine, made) = vault.akashic.make_dir(layout::QUARANTINE)?;
    if made {
        vault.akashic.sync()?;
    }
    let mut moved = Quarantined { from: Some(from), bytes: 0, files: Vec::new() };
    for segment in vault.segments()?.into_iter().filter(|s| *s >= from.segment) {
        let start = if segment == from.segment { from.offset } else { 0 };
        let bytes = vault.segment_bytes(segment)?;
        let part = bytes.get(start as usize..).unwrap_or_default();
        if part.is_empty() {
            continue;
        }
        let stem = segment.file().replace(".jsonl", "");
        let name = format!("{what}-{stem}-{start}-{}", &Digest::of_bytes(part).hex()[..8]);
        quarantine.put(&name, part)?;
        moved.bytes += part.len() as u64;
        moved.files.push(name);
    }
    Ok(moved)
}

/// Moves everything from an offset on to quarantine.
fn cut_off(writer: &mut Writer<'_>, from: LogOffset) -> Result<Quarantined> {
    let moved = copy_to_quarantine(writer.vault(), "damage", from)?;
    clear_later(writer, from)?;
    let file = writer.open_to_write(from.segment)?;
    let cut = file.set_len(from.offset).and_then(|()| file.sync_data());
    cut.map_err(|e| Error::system("cannot cut off the damaged part", e))?;
    Ok(moved)
}

/// Empties the segments after that of `from`; their bytes are in quarantine.
fn clear_later(writer: &mut Writer<'_>, from: LogOffset) -> Result<()> {
    for segment in writer.vault().segments()?.into_iter().filter(|s| *s > from.segment) {
        let file = writer.open_to_write(segment)?;
        if size(&file)? > 0 {
            file.set_len(0)
                .and_then(|()| file.sync_data())
                .map_err(|e| Error::system(format!("cannot empty {segment}"), e))?;
        }
    }
    Ok(())
}

fn note(kind: Kind, parent: Option<Head>, payload: Value) -> Draft {
    Draft {
        kind,
        subject: Subject::SYSTEM,
        actor: Actor::core("vault"),
        parents: parent.map(|head| head.id).into_iter().collect(),
        key: None,
        payload: payload.as_object().expect("an object").clone(),
    }
}

fn sync_names(vault: &Vault, segment: SegmentName) -> Result<()> {
    if let Some(events) = vault.events()? {
        if let Some(month_dir) = events.dir(&segment.month())? {
            month_dir.sync()?;
        }
        events.sync()?;
    }
    Ok(())
}
