//! The fast check of one segment: its bytes in chunks over the threads, one strict pass each.
//!
//! Chunks are cut at line ends. Within a chunk each line is checked and linked to the one before;
//! the edges are checked when the neighbours are known. A line that the strict pass leaves open goes
//! to the reference check; a line that fails makes the whole segment go there, for a precise message.
//! Chunks are read, not mapped: memory stays flat, and a file that shrinks meanwhile is an error.

use std::fs::File;
use std::num::NonZero;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use crate::base::limits;
use crate::chain::strict::{self, ChainLink};
use crate::chain::{Head, check_line};

/// What one thread takes at a time.
const CHUNK_BYTES: u64 = 2 * 1024 * 1024;

/// A segment that was found good.
#[derive(Debug)]
pub struct GoodSegment {
    pub last: Option<ChainLink>,
    pub count: u64,
    /// Which of the anchors are in it.
    pub anchors: Vec<bool>,
}

/// One chunk that was found good.
struct GoodChunk {
    first: ChainLink,
    last: ChainLink,
    count: u64,
    anchors: Vec<bool>,
}

/// Checks a segment's bytes from `start` to `end` behind `prev`. `None` if something is wrong with
/// them, or may be. `progress` is told how many bytes are done.
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
                        // One bad chunk is enough: the others need not look any further.
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
    // A batch does not go on in the next segment.
    good.last.is_none_or(|last| last.ends_batch()).then_some(good)
}

/// Cuts the range into chunks that end where lines end.
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
        let by_the_book = || check_line(line.as_bytes()).ok().map(|event| ChainLink::from_event(&event));
        let link = strict::check_text(line).or_else(by_the_book)?;
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

/// As many threads as the machine runs at once.
pub fn default_jobs() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
