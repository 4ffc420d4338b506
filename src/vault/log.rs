//! The files of the log: its segments, its published end, and its tail.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

use super::files::Dir;
use super::head::{self, Published};
use super::lock::{self, LockGuard, LockMode};
use super::snapshot::{Position, Snapshot, Visited};
use super::{Vault, layout};
use crate::base::{Error, Result, limits};
use crate::chain::tail::{self, SegmentPart, Tail, TailClass, TailScope};
use crate::chain::{Head, HeadRecord, LogOffset, SegmentName, check_line, strict};
use crate::event::Event;

impl Vault {
    /// The published log. Takes no lock unless the head record cannot be read without it.
    pub fn snapshot(&self) -> Result<Snapshot> {
        if let Published::Valid(record) = head::read(&self.akashic)? {
            return self.published(&record);
        }
        // A writer may be rewriting the record: read it again while none is active.
        let _guard = self.lock_if_possible(LockMode::Shared)?;
        match head::read(&self.akashic)? {
            Published::Valid(record) => self.published(&record),
            _ => self.scanned(),
        }
    }

    /// Takes the lock; `None` if there is no lock file, as in a copy.
    pub(super) fn lock_if_possible(&self, mode: LockMode) -> Result<Option<LockGuard>> {
        match self.akashic.open_file(layout::LOCK_FILE)? {
            Some(file) => lock::take(file, mode, self.lock_timeout).map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn published(&self, record: &HeadRecord) -> Result<Snapshot> {
        let events = self.events()?;
        let segment = events.as_ref().and_then(|events| events.dir(&record.segment.month()).transpose());
        let there =
            match segment.transpose()?.and_then(|month_dir| month_dir.open_file(&record.segment.file()).transpose()) {
                Some(file) => size(&file?)? >= record.offset,
                None => false,
            };
        if !there {
            return Err(Error::corrupt(format!(
                "the log ends before its published head, event {} in {}",
                record.head.id, record.segment
            )));
        }
        let end = Some(record.end());
        Ok(Snapshot { events, end, segments: OnceCell::new(), head: Some(record.head), count: record.count })
    }

    /// The log without a record: everything up to the first invalid byte.
    pub(super) fn scanned(&self) -> Result<Snapshot> {
        let Tail { head, count, end, class, .. } = self.tail(None)?;
        match class {
            TailClass::Damage { why, .. } => Err(Error::corrupt(why)),
            _ => Ok(Snapshot { events: self.events()?, end, segments: OnceCell::new(), head, count }),
        }
    }

    pub(super) fn events(&self) -> Result<Option<Dir>> {
        self.akashic.dir(layout::EVENTS)
    }

    /// All segments, oldest first.
    pub(super) fn segments(&self) -> Result<Vec<SegmentName>> {
        self.segments_since("")
    }

    /// The segments of `month` and later, oldest first.
    pub(super) fn segments_since(&self, month: &str) -> Result<Vec<SegmentName>> {
        match self.events()? {
            Some(events) => segments_since(&events, month),
            None => Ok(Vec::new()),
        }
    }

    /// Visits the events between two offsets, each with the offset where its line ends. Lists no more directories than
    /// necessary.
    pub(super) fn events_between(
        &self,
        from: Option<LogOffset>,
        to: LogOffset,
        visit: &mut dyn FnMut(LogOffset, Event) -> Visited,
    ) -> Result<()> {
        let mut segments = self.segments_since(&from.map_or(String::new(), |from| from.segment.month()))?;
        segments.retain(|name| from.is_none_or(|from| *name >= from.segment) && *name <= to.segment);
        let offset = from.filter(|from| segments.first() == Some(&from.segment)).map_or(0, |from| from.offset);
        let names = segments.clone();
        let part = Snapshot {
            events: self.events()?,
            end: Some(to),
            segments: OnceCell::from(segments),
            head: None,
            count: 0,
        };
        part.events(Position { index: 0, offset }, &mut |position, event, line| {
            visit(LogOffset { segment: names[position.index], offset: position.offset + line.len() as u64 + 1 }, event)
        })
    }

    /// Opens a segment for reading.
    pub(super) fn open_segment(&self, name: SegmentName) -> Result<File> {
        let events = self.events()?.ok_or_else(|| Error::corrupt("the events directory is missing"))?;
        open_segment(&events, name)
    }

    /// Classifies what comes after the record's head, or the whole log if there is no record.
    pub(super) fn tail(&self, record: Option<&HeadRecord>) -> Result<Tail> {
        let month = record.map_or(String::new(), |r| r.segment.month());
        let mut segments = self.segments_since(&month)?;
        segments.retain(|name| record.is_none_or(|record| *name >= record.segment));
        // One segment at a time: without a record, this is the whole log.
        let parts = segments.into_iter().map(|segment| {
            let start = record.filter(|record| record.segment == segment).map_or(0, |record| record.offset);
            let mut bytes = Vec::new();
            let mut file = self.open_segment(segment)?;
            let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_to_end(&mut bytes));
            read.map_err(|e| Error::system(format!("cannot read {segment}"), e))?;
            Ok(SegmentPart { segment, start, bytes })
        });
        let (scope, head) = match record {
            Some(record) => (TailScope::AfterHead, Some(record.head)),
            None => (TailScope::WholeLog, None),
        };
        let end = record.map(|r| r.end());
        tail::classify(scope, head, end, parts)
    }

    /// The line that ends at the record's offset: is it the head that the record names?
    pub(super) fn head_line(&self, record: &HeadRecord) -> Result<HeadLine> {
        if !self.segments_since(&record.segment.month())?.contains(&record.segment) {
            return Ok(HeadLine::Missing);
        }
        let file = self.open_segment(record.segment)?;
        if size(&file)? < record.offset {
            return Ok(HeadLine::Missing);
        }
        let mut length = 4096u64;
        loop {
            let start = record.offset.saturating_sub(length);
            let mut bytes = vec![0; (record.offset - start) as usize];
            file.read_exact_at(&mut bytes, start).map_err(|e| Error::system("cannot read the log", e))?;
            let Some(body) = bytes.strip_suffix(b"\n") else { return Ok(HeadLine::Other) };
            let line = match body.iter().rposition(|&b| b == b'\n') {
                Some(newline) => &body[newline + 1..],
                None if start == 0 => body,
                None if length > limits::EVENT_MAX_BYTES as u64 => return Ok(HeadLine::Other),
                None => {
                    length *= 4;
                    continue;
                }
            };
            // The fast check, or else the reference check.
            let good = strict::check(line).is_some() || check_line(line).is_ok();
            return Ok(match Event::read(line) {
                Ok(event) if good && Head::at(&event) == record.head => HeadLine::Good(Box::new(event)),
                _ => HeadLine::Other,
            });
        }
    }
}

/// The segments of `month` and later, oldest first.
pub(super) fn segments_since(events: &Dir, month: &str) -> Result<Vec<SegmentName>> {
    let mut segments = Vec::new();
    for (name, is_dir) in events.list()? {
        if !is_dir || name.as_str() < month {
            continue;
        }
        let Some(month_dir) = events.dir(&name)? else { continue };
        let files = month_dir.list()?;
        segments
            .extend(files.iter().filter_map(|(file, _)| SegmentName::parse_file(file)).filter(|s| s.month() == name));
    }
    segments.sort();
    Ok(segments)
}

/// The current size of a segment.
pub(super) fn size(file: &File) -> Result<u64> {
    Ok(file.metadata().map_err(|e| Error::system("cannot read the size of the log", e))?.len())
}

/// What is in the log where a record says the head is.
#[derive(Debug)]
pub(super) enum HeadLine {
    /// The head.
    Good(Box<Event>),
    /// Something else.
    Other,
    /// The log ends before it.
    Missing,
}

pub(super) fn open_segment(events: &Dir, name: SegmentName) -> Result<File> {
    events
        .dir(&name.month())?
        .and_then(|month_dir| month_dir.open_file(&name.file()).transpose())
        .unwrap_or_else(|| Err(Error::corrupt(format!("segment {name} is missing"))))
}
