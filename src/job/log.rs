//! The log of a run: its output in order, within a fixed size.
//!
//! Up to its size, the log is plain. Beyond it, the first half stays, a line says how much is missing, and the rest is a
//! ring of the newest bytes, which is put in order when the run ends. All this happens in place and needs no second file,
//! no memory and no disk space.
//!
//! ```text
//! plain     0 ─────────────── half ───────────────────────── size
//! capped    head              │ line │ ring: newest … oldest … │
//! ```
//!
//! Invariant: the file is never larger than its size (`a_log_past_its_size_keeps_both_ends`). If the log cannot be
//! written, bytes are lost, but the run continues.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::exit::LogSize;
use crate::base::text;

/// The minimum size: a smaller log has no room for the line.
const LOG_MIN_BYTES: u64 = 1024;
/// Bytes moved at a time when the ring is put in order.
const CHUNK_BYTES: u64 = 64 * 1024;
const PROBLEM_MAX_CHARS: usize = 200;

/// The line between the two ends; its length is the same for any number.
fn cut_line(bytes: u64) -> String {
    format!("\n[hiveforge: {bytes:020} bytes were cut here]\n")
}

/// An open log.
#[derive(Debug)]
pub struct JobLog {
    file: File,
    max: u64,
    /// Bytes received.
    total: u64,
    /// Bytes of output written, including those overwritten since.
    stored: u64,
    /// The offset of the next byte in the ring; `None` while the log is plain.
    next: Option<u64>,
    problem: Option<String>,
}

impl JobLog {
    /// A log in a new file, with at most `max_bytes`.
    pub fn new(file: File, max_bytes: u64) -> JobLog {
        JobLog { file, max: max_bytes.max(LOG_MIN_BYTES), total: 0, stored: 0, next: None, problem: None }
    }

    /// The end of the first half.
    fn half(&self) -> u64 {
        self.max / 2
    }

    /// The start of the ring.
    fn ring(&self) -> u64 {
        self.half() + cut_line(0).len() as u64
    }

    /// Adds output. After the first failure, nothing more is written, so that the bytes in the file stay in order.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.problem.is_none() {
            let written = self.write(bytes);
            self.note("write", written);
        }
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let at = match self.next {
                None if self.stored < self.max => self.stored,
                None => {
                    let line = cut_line(self.ring() - self.half());
                    self.file.write_all_at(line.as_bytes(), self.half())?;
                    *self.next.insert(self.ring())
                }
                Some(at) if at < self.max => at,
                Some(_) => self.ring(),
            };
            let room = (self.max - at).min(bytes.len() as u64);
            // Count what was really written: a disk that is almost full takes only a part.
            let written = match self.file.write_at(&bytes[..room as usize], at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                written => written?,
            };
            if self.next.is_some() {
                self.next = Some(at + written as u64);
            }
            self.stored += written as u64;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Puts the log in order and syncs it, as far as possible.
    pub fn finish(mut self) -> LogSize {
        let ordered = self.order();
        self.note("finish", ordered);
        let synced = self.file.sync_all();
        self.note("sync", synced);
        let kept = match self.next {
            None => self.stored,
            Some(_) => self.half() + (self.max - self.ring()),
        };
        LogSize { bytes: self.total, cut: self.total - kept, problem: self.problem }
    }

    /// Rotates the ring so that its oldest byte comes first, and writes how much was cut.
    fn order(&mut self) -> io::Result<()> {
        let Some(next) = self.next else { return Ok(()) };
        let (ring, end) = (self.ring(), self.max);
        if next < end {
            self.reverse(ring, next)?;
            self.reverse(next, end)?;
            self.reverse(ring, end)?;
        }
        let kept = self.half() + (end - ring);
        self.file.write_all_at(cut_line(self.total - kept).as_bytes(), self.half())
    }

    /// Reverses a part of the file, from both ends to the middle.
    fn reverse(&self, mut from: u64, mut to: u64) -> io::Result<()> {
        let mut front = vec![0; CHUNK_BYTES as usize];
        let mut back = front.clone();
        while from < to {
            let size = CHUNK_BYTES.min((to - from).div_ceil(2));
            let (front, back) = (&mut front[..size as usize], &mut back[..size as usize]);
            self.file.read_exact_at(front, from)?;
            self.file.read_exact_at(back, to - size)?;
            front.reverse();
            back.reverse();
            // If the chunks overlap in the middle, both reversals write the same bytes there.
            self.file.write_all_at(back, from)?;
            self.file.write_all_at(front, to - size)?;
            (from, to) = (from + size, to - size);
        }
        Ok(())
    }

    /// Keeps the first failure.
    fn note(&mut self, doing: &str, result: io::Result<()>) {
        if let Err(error) = result
            && self.problem.is_none()
        {
            self.problem = Some(text::cut(&format!("cannot {doing} the log: {error}"), PROBLEM_MAX_CHARS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(max: u64, pieces: &[&[u8]]) -> (Vec<u8>, LogSize) {
        let mut file = tempfile::tempfile().unwrap();
        let mut log = JobLog::new(file.try_clone().unwrap(), max);
        pieces.iter().for_each(|piece| log.push(piece));
        let size = log.finish();
        let mut bytes = Vec::new();
        io::Seek::rewind(&mut file).unwrap();
        io::Read::read_to_end(&mut file, &mut bytes).unwrap();
        (bytes, size)
    }

    #[test]
    fn a_log_up_to_its_size_is_plain() {
        let bytes: Vec<u8> = (0..1024).map(|n| n as u8).collect();
        let pieces: Vec<&[u8]> = bytes.chunks(7).collect();
        assert_eq!(logged(1024, &pieces), (bytes.clone(), LogSize { bytes: 1024, cut: 0, problem: None }));
        assert_eq!(logged(0, &[]).0, b"");
    }

    #[test]
    fn a_log_past_its_size_keeps_both_ends() {
        let line = cut_line(0).len();
        for total in [1025, 1026, 1500, 1536 - line, 1537, 2047, 2048, 5000, 200_001] {
            for piece in [1, 7, 1000, 70_000] {
                for max in [1024, 1025, 150_001] {
                    let bytes: Vec<u8> = (0..total).map(|n: usize| (n % 251) as u8).collect();
                    let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
                    let (log, size) = logged(max as u64, &pieces);
                    if total <= max {
                        assert_eq!(log, bytes);
                        continue;
                    }
                    let (half, tail) = (max / 2, max - max / 2 - line);
                    let cut = (total - half - tail) as u64;
                    let expected = [&bytes[..half], cut_line(cut).as_bytes(), &bytes[total - tail..]].concat();
                    assert!(log == expected, "{total} bytes by {piece} into {max}");
                    assert_eq!(size, LogSize { bytes: total as u64, cut, problem: None });
                }
            }
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_says_so_and_still_counts() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut log = JobLog::new(full, 4096);
        log.push(b"one");
        log.push(b"two");
        let size = log.finish();
        assert_eq!((size.bytes, size.cut), (6, 6));
        assert!(size.problem.unwrap().starts_with("cannot write the log: "));
    }
}
