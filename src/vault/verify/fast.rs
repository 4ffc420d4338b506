//! The fast check of one segment: several threads, each with one strict pass over chunks of its bytes.
//!
//! Chunks are cut at line ends. Within a chunk, each line is checked and linked to the previous one; the links between
//! chunks are checked at the end. A line that the strict pass cannot decide goes to the reference check; if a line is
//! invalid, the whole segment goes there, for a precise message. Chunks are read, not mapped: memory use stays constant,
//! and a file that shrinks in the meantime is an error.

use std::fs::File;
use std::num::NonZero;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use crate::base::limits;
use crate::chain::strict::{self, ChainLink};
use crate::chain::{Head, check_line};

/// The size of a chunk.
const CHUNK_BYTES: u64 = 2 * 1024 * 1024;

/// A segment that is valid.
#[derive(Debug)]
pub struct GoodSegment {
    pub last: Option<ChainLink>,
    pub count: u64,
    /// Which of the head anchors are in it.
    pub anchors: Vec<bool>,
}

/// A chunk that is valid.
struct GoodChunk {
    first: ChainLink,
    last: ChainLink,
    count: u64,
    anchors: Vec<bool>,
}

/// Checks a segment's bytes from `start` to `end`, which follow `prev`. `None` if they are not certainly valid. Calls
/// `progress` with the number of bytes done.
pub fn check(
    file: &File,
    (start, end): (u64, u64),
    prev: Option<ChainLink>,
    anchors: &[Head],
    jobs: usize,
    progress: &mut dyn FnMut(u64),
) -> Option<GoodSegment> {
    let cuts = cut(file, start, end)?;
    let next = AtomicUsize::new(0);
    let chunks: Vec<Mutex<Option<GoodChunk>>> = cuts.iter().map(|_| Mutex::new(None)).collect();
    thread::scope(|scope| {
        let (done, finished) = mpsc::channel();
        for _ in 0..jobs.min(cuts.len()) {
            let (done, next, chunks, cuts) = (done.clone(), &next, &chunks, &cuts);
            scope.spawn(move || {
                let mut buffer = Vec::new();
                while let Some(&(from, to)) = cuts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let n = cuts.partition_point(|cut| cut.0 < from);
                    let chunk = read(file, from, to, &mut buffer).and_then(|()| check_chunk(&buffer, anchors));
                    let good = chunk.is_some();
                    *chunks[n].lock().expect("no thread panics") = chunk;
                    if done.send(to - from).is_err() || !good {
                        // One invalid chunk is enough: the other threads can stop.
                        next.store(usize::MAX / 2, Ordering::Relaxed);
                        return;
                    }
                }
            });
        }
        drop(done);
        finished.iter().for_each(&mut *progress);
    });
    let mut good = GoodSegment { last: prev, count: 0, anchors: vec![false; anchors.len()] };
    for chunk in chunks {
        let chunk = chunk.into_inner().expect("no thread panics")?;
        chunk.first.follows(good.last.as_ref()).then_some(())?;
        good.last = Some(chunk.last);
        good.count += chunk.count;
        good.anchors.iter_mut().zip(chunk.anchors).for_each(|(seen, here)| *seen |= here);
    }
    // A batch does not continue in the next segment.
    good.last.is_none_or(|last| last.ends_batch()).then_some(good)
}

/// Cuts the range into chunks that end at line ends.
fn cut(file: &File, start: u64, end: u64) -> Option<Vec<(u64, u64)>> {
    let (mut cuts, mut from) = (Vec::new(), start);
    while from < end {
        let mut to = (from + CHUNK_BYTES).min(end);
        while to < end {
            let mut buffer = [0; 4096];
            let want = buffer.len().min((end - to + 1) as usize);
            file.read_exact_at(&mut buffer[..want], to - 1).ok()?;
            match buffer[..want].iter().position(|&b| b == b'\n') {
                Some(newline) => {
                    to += newline as u64;
                    break;
                }
                None => to = (to + want as u64).min(end),
            }
            if to - from > CHUNK_BYTES + 2 * limits::EVENT_MAX_BYTES as u64 {
                return None;
            }
        }
        cuts.push((from, to));
        from = to;
    }
    Some(cuts)
}

fn read(file: &File, from: u64, to: u64, buffer: &mut Vec<u8>) -> Option<()> {
    buffer.resize((to - from) as usize, 0);
    file.read_exact_at(buffer, from).ok()
}

fn check_chunk(bytes: &[u8], anchors: &[Head]) -> Option<GoodChunk> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut begin = 0;
    let mut seen = vec![false; anchors.len()];
    let (mut first, mut last, mut count) = (None, None, 0);
    for end in memchr::memchr_iter(b'\n', bytes) {
        let line = &text[begin..end];
        begin = end + 1;
        let by_reference = || check_line(line.as_bytes()).ok().map(|event| ChainLink::from_event(&event));
        let link = strict::check_text(line).or_else(by_reference)?;
        if last.is_some() {
            link.follows(last.as_ref()).then_some(())?;
        }
        for (anchor, seen) in anchors.iter().zip(&mut seen) {
            *seen |= *anchor == link.head;
        }
        first.get_or_insert(link);
        last = Some(link);
        count += 1;
    }
    (begin == bytes.len()).then_some(())?;
    Some(GoodChunk { first: first?, last: last?, count, anchors: seen })
}

/// The number of threads that the machine runs at the same time.
pub fn default_jobs() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
