//! A snapshot: the log up to a known end, read forwards, backwards, and by binary search.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use super::files::Dir;
use super::log::{open_segment, segments_since, size};
use crate::base::{Error, Result, Ulid};
use crate::chain::{Head, LogOffset, SegmentName};
use crate::event::{BatchPosition, Event};
use crate::state::State;

/// A position in a snapshot: the index of a segment, and the offset in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub(super) index: usize,
    pub(super) offset: u64,
}

impl Position {
    pub const START: Position = Position { index: 0, offset: 0 };
}

/// What a visitor returns: continue or stop.
pub type Visited = Result<ControlFlow<()>>;

/// The log up to its published head. Never changes: later events are not part of it.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) events: Option<Dir>,
    /// The end of the snapshot; `None` if it is empty.
    pub(super) end: Option<LogOffset>,
    /// Oldest first; listed when first needed, because there is a file per day.
    pub(super) segments: OnceCell<Vec<SegmentName>>,
    pub head: Option<Head>,
    pub count: u64,
}

impl Snapshot {
    /// A log without events.
    pub fn empty() -> Snapshot {
        Snapshot { events: None, end: None, segments: OnceCell::new(), head: None, count: 0 }
    }

    fn segments(&self) -> Result<&[SegmentName]> {
        if let Some(segments) = self.segments.get() {
            return Ok(segments);
        }
        let mut segments = match (&self.events, self.end) {
            (Some(events), Some(_)) => segments_since(events, "")?,
            _ => Vec::new(),
        };
        segments.retain(|name| self.end.is_some_and(|end| *name <= end.segment));
        Ok(self.segments.get_or_init(|| segments))
    }

    /// Opens a segment. Returns it with the offset where the snapshot ends in it.
    fn open(&self, name: SegmentName) -> Result<(File, u64)> {
        let events = self.events.as_ref().ok_or_else(|| Error::corrupt("the events directory is missing"))?;
        let file = open_segment(events, name)?;
        let end = match self.end {
            Some(end) if end.segment == name => end.offset,
            _ => size(&file)?,
        };
        Ok((file, end))
    }

    /// Converts a position to an offset in the log.
    pub(super) fn place(&self, position: Position) -> Result<LogOffset> {
        Ok(LogOffset { segment: self.segments()?[position.index], offset: position.offset })
    }

    /// Visits every line from `from` on, with its position and without its line end.
    pub fn lines(&self, from: Position, visit: &mut dyn FnMut(Position, &[u8]) -> Visited) -> Result<()> {
        for (index, name) in self.segments()?.iter().copied().enumerate().skip(from.index) {
            let mut offset = if index == from.index { from.offset } else { 0 };
            let (mut file, end) = self.open(name)?;
            file.seek(SeekFrom::Start(offset)).map_err(|e| Error::system(format!("cannot read {name}"), e))?;
            let mut reader = BufReader::with_capacity(64 * 1024, file.take(end.saturating_sub(offset)));
            let mut line = Vec::new();
            loop {
                line.clear();
                let read =
                    reader.read_until(b'\n', &mut line).map_err(|e| Error::system(format!("cannot read {name}"), e))?;
                if read == 0 {
                    break;
                }
                if line.pop() != Some(b'\n') {
                    return Err(Error::corrupt(format!(
                        "{name} ends in the middle of a line, before its published end"
                    )));
                }
                if visit(Position { index, offset }, &line)?.is_break() {
                    return Ok(());
                }
                offset += read as u64;
            }
        }
        Ok(())
    }

    /// The same for events. A line that is not an event is damage.
    pub fn events(&self, from: Position, visit: &mut dyn FnMut(Position, Event, &[u8]) -> Visited) -> Result<()> {
        self.lines(from, &mut |place, line| {
            let event = Event::read(line)
                .map_err(|e| Error::corrupt(format!("{} at byte {}: {e}", self.name(place), place.offset)))?;
            visit(place, event, line)
        })
    }

    /// The end of the snapshot.
    pub(super) fn end(&self) -> Option<LogOffset> {
        self.end
    }

    /// Visits the events, newest first, each with its line.
    pub fn events_back(&self, visit: &mut dyn FnMut(Event, &[u8]) -> Visited) -> Result<()> {
        for name in self.segments()?.iter().rev() {
            let (file, mut end) = self.open(*name)?;
            while end > 0 {
                let begin = previous_line(&file, end)?;
                let mut line = vec![0; (end - begin) as usize];
                file.read_exact_at(&mut line, begin).map_err(|e| Error::system(format!("cannot read {name}"), e))?;
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                let event = Event::read(line).map_err(|e| Error::corrupt(format!("{name} at byte {begin}: {e}")))?;
                if visit(event, line)?.is_break() {
                    return Ok(());
                }
                end = begin;
            }
        }
        Ok(())
    }

    fn name(&self, place: Position) -> String {
        self.place(place).map_or_else(|e| e.message, |place| place.segment.to_string())
    }

    /// Folds the whole snapshot to a state.
    pub fn fold(&self) -> Result<State> {
        let mut state = State::default();
        self.events(Position::START, &mut |_, event, _| {
            state.apply(&event);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(state)
    }

    /// One event by its id.
    pub fn find(&self, id: Ulid) -> Result<Option<(Position, Event)>> {
        let mut found = None;
        self.events(self.seek(id)?, &mut |place, event, _| {
            if event.id == id {
                found = Some((place, event));
            }
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// Up to two ids that start with this prefix: enough to know whether there is exactly one.
    pub fn ids_with_prefix(&self, prefix: &str) -> Result<Vec<Ulid>> {
        let prefix = prefix.to_ascii_uppercase();
        let Ok(lowest) = Ulid::from_string(&format!("{prefix:0<26}")) else { return Ok(Vec::new()) };
        let mut ids = Vec::new();
        self.events(self.seek(lowest)?, &mut |_, event, _| {
            let more = event.id.to_string().starts_with(&prefix) && ids.len() < 2;
            if more {
                ids.push(event.id);
            }
            Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(ids)
    }

    /// The batch that contains this event, and the event's index in it.
    pub fn batch_of(&self, id: Ulid) -> Result<Option<(Vec<Event>, usize)>> {
        let Some((_, event)) = self.find(id)? else { return Ok(None) };
        let Some(BatchPosition { no, of }) = event.batch else { return Ok(Some((vec![event], 0))) };
        // The first event of the batch is `no − 1` lines before this one; a batch has at most 16 MiB.
        let mut batch: Vec<Event> = Vec::new();
        self.events(self.before(id, no - 1)?, &mut |_, event, _| {
            batch.push(event);
            Ok(if batch.len() as u64 == of { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(Some((batch, (no - 1) as usize)))
    }

    /// The position `lines` lines before an event, in the same segment.
    fn before(&self, id: Ulid, lines: u64) -> Result<Position> {
        let at = self.seek(id)?;
        let (file, _) = self.open(self.segments()?[at.index])?;
        let mut offset = at.offset;
        for _ in 0..lines {
            offset = previous_line(&file, offset)?;
        }
        Ok(Position { offset, ..at })
    }

    /// The position of the first event whose id is `id` or greater, by binary search.
    pub fn seek(&self, id: Ulid) -> Result<Position> {
        let segments = self.segments()?;
        let past_end = Position { index: segments.len(), offset: 0 };
        // Find the last segment that begins at or before the id; for an empty one, the first id after it counts.
        let (mut low, mut high) = (0, segments.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.first_id_from(middle)? {
                Some(first) if first <= id => low = middle + 1,
                _ => high = middle,
            }
        }
        let Some(index) = low.checked_sub(1) else { return Ok(Position::START) };
        let (file, end) = self.open(segments[index])?;
        // Invariant: lines that begin before `start` have smaller ids, lines from `limit` on do not.
        let (mut start, mut limit) = (0, end);
        while start < limit {
            let middle = start + (limit - start) / 2;
            let line_start = if middle == start { start } else { next_line(&file, middle - 1, end)? };
            if line_start >= limit {
                // No line begins between the middle and the limit.
                limit = middle;
                continue;
            }
            let line_end = next_line(&file, line_start, end)?;
            if id_at(&file, segments[index], line_start, line_end)? < id {
                start = line_end;
            } else {
                limit = line_start;
            }
        }
        let place = Position { index, offset: start };
        Ok(if start < end {
            place
        } else if index + 1 < segments.len() {
            Position { index: index + 1, offset: 0 }
        } else {
            past_end
        })
    }

    /// The first id in this segment or a later one.
    fn first_id_from(&self, index: usize) -> Result<Option<Ulid>> {
        let mut first = None;
        self.events(Position { index, offset: 0 }, &mut |_, event, _| {
            first = Some(event.id);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }
}

/// The id of the event in this range of the file.
fn id_at(file: &File, name: SegmentName, start: u64, end: u64) -> Result<Ulid> {
    let mut line = vec![0; (end - start) as usize];
    file.read_exact_at(&mut line, start).map_err(|e| Error::system("cannot read the log", e))?;
    Event::read(line.strip_suffix(b"\n").unwrap_or(&line))
        .map(|event| event.id)
        .map_err(|e| Error::corrupt(format!("{name} at byte {start}: {e}")))
}

/// The offset after the next line end at or after `from`, at most `end`.
fn next_line(file: &File, from: u64, end: u64) -> Result<u64> {
    let mut at = from;
    let mut buffer = [0; 4096];
    while at < end {
        let want = buffer.len().min((end - at) as usize);
        file.read_exact_at(&mut buffer[..want], at).map_err(|e| Error::system("cannot read the log", e))?;
        if let Some(newline) = buffer[..want].iter().position(|&b| b == b'\n') {
            return Ok(at + newline as u64 + 1);
        }
        at += want as u64;
    }
    Ok(end)
}

/// The start of the line that ends at `end`.
fn previous_line(file: &File, end: u64) -> Result<u64> {
    let mut high = end.saturating_sub(1);
    let mut buffer = [0; 4096];
    while high > 0 {
        let low = high.saturating_sub(buffer.len() as u64);
        let part = &mut buffer[..(high - low) as usize];
        file.read_exact_at(part, low).map_err(|e| Error::system("cannot read the log", e))?;
        if let Some(newline) = part.iter().rposition(|&b| b == b'\n') {
            return Ok(low + newline as u64 + 1);
        }
        high = low;
    }
    Ok(0)
}
