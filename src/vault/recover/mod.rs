//! Recovery: adopting events that a dead writer left, and moving unfinished writes to quarantine. `operator` recovers
//! from damage that no crash can leave.
//!
//! Invariant: bytes are removed from the log only after a synced copy of them is in quarantine.

mod operator;
mod tail_audit;

use std::os::unix::fs::FileExt;

use serde_json::{Map, Value, json};

use super::Vault;
use super::log::size;
use super::quarantine::Quarantine;
use super::write::Writer;
use crate::base::{Actor, Digest, Error, Result, Subject};
use crate::chain::tail::Tail;
use crate::chain::{Head, HeadRecord, LogOffset, SegmentName};
use crate::event::{Draft, Kind};
use crate::policy::component;

pub use operator::{Loss, Recovery};

/// Adopts valid events that were written but not published, if they keep the rules, and records it. Without a record
/// nobody knows what was published, and there is nothing to record.
pub(super) fn adopt(writer: &mut Writer<'_>, record: Option<&HeadRecord>, tail: &Tail) -> Result<()> {
    make_durable(writer, record, tail)?;
    match (record, tail.head) {
        (Some(record), Some(head)) => {
            let payload = json!({"after": record.head.id.to_string(), "events": tail.count});
            let payload = payload.as_object().expect("an object").clone();
            writer.append_one(note(Kind::TailAdopted, Some(head), payload)).map(drop)
        }
        _ => Ok(()),
    }
}

/// Makes valid events durable that were written but not published, if they keep the rules. Writes the same bytes again,
/// because an earlier sync may have failed and left pages that are marked clean but are not on disk.
fn make_durable(writer: &mut Writer<'_>, record: Option<&HeadRecord>, tail: &Tail) -> Result<()> {
    if let Some(refused) = writer.vault().refused_tail(record, tail)? {
        return Err(Error::corrupt(refused.why));
    }
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
pub(super) fn quarantine_tail(
    writer: &mut Writer<'_>,
    record: Option<&HeadRecord>,
    tail: &Tail,
    from: LogOffset,
    why: &str,
) -> Result<()> {
    make_durable(writer, record, tail)?;
    let moved = copy_to_quarantine(writer.vault(), from)?;
    clear_later(writer, from)?;
    let note = match tail.head {
        Some(head) => {
            let mut payload = moved.describe(why);
            let adopted = record.map(|_| tail.count).filter(|adopted| *adopted > 0);
            payload.extend(adopted.map(|adopted| ("adopted".to_owned(), adopted.into())));
            note(Kind::TailQuarantined, Some(head), payload)
        }
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

/// What was copied to quarantine.
struct Quarantined {
    from: LogOffset,
    bytes: u64,
    files: Vec<String>,
}

impl Quarantined {
    fn describe(&self, why: &str) -> Map<String, Value> {
        let Quarantined { from, bytes, files } = self;
        let (segment, offset, file) = (from.segment.to_string(), from.offset, files.join(" "));
        let payload = json!({"reason": why, "bytes": bytes, "file": file, "segment": segment, "offset": offset});
        payload.as_object().expect("an object").clone()
    }
}

/// Copies everything from `from` to the end of the log to quarantine.
fn copy_to_quarantine(vault: &Vault, from: LogOffset) -> Result<Quarantined> {
    let quarantine = Quarantine::make(vault)?;
    let mut moved = Quarantined { from, bytes: 0, files: Vec::new() };
    for segment in vault.segments()?.into_iter().filter(|s| *s >= from.segment) {
        let start = if segment == from.segment { from.offset } else { 0 };
        let bytes = vault.segment_bytes(segment)?;
        let part = bytes.get(start as usize..).unwrap_or_default();
        if part.is_empty() {
            continue;
        }
        moved.bytes += part.len() as u64;
        moved.files.push(quarantine.keep(&stem("tail", segment, start, part), "", part)?);
    }
    Ok(moved)
}

/// The name of a file in quarantine for these bytes of a segment.
fn stem(what: &str, segment: SegmentName, start: u64, bytes: &[u8]) -> String {
    let day = segment.file().replace(".jsonl", "");
    format!("{what}-{day}-{start}-{}", &Digest::of_bytes(bytes).hex()[..8])
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

fn note(kind: Kind, parent: Option<Head>, payload: Map<String, Value>) -> Draft {
    Draft {
        kind,
        subject: Subject::SYSTEM,
        actor: Actor::core(component::VAULT),
        parents: parent.map(|head| head.id).into_iter().collect(),
        key: None,
        payload,
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
