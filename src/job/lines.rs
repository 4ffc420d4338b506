//! The last lines of a stream, in bounded memory.
//!
//! A line is what a terminal would show of it: a carriage return starts it over. Blank lines are skipped. Invariant:
//! memory does not grow with the stream (`ten_megabytes_without_a_line_end`).

use std::collections::VecDeque;

use crate::base::text;

/// Longer lines are cut.
pub const LINE_MAX_CHARS: usize = 400;
/// Enough bytes for more than that many characters of any kind.
const KEPT_MAX_BYTES: usize = 4 * (LINE_MAX_CHARS + 1);

/// Takes the bytes of a stream and keeps its last lines.
#[derive(Debug)]
pub struct LastLines {
    keep: usize,
    lines: VecDeque<String>,
    /// The beginning of the current line.
    open: Vec<u8>,
    /// Whether the last byte was a carriage return.
    returned: bool,
}

impl LastLines {
    pub fn new(keep: usize) -> LastLines {
        LastLines { keep, lines: VecDeque::new(), open: Vec::new(), returned: false }
    }

    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(at) = memchr::memchr2(b'\n', b'\r', bytes) {
            self.add(&bytes[..at]);
            match bytes[at] {
                b'\n' => self.end_line(),
                _ => self.returned = true,
            }
            bytes = &bytes[at + 1..];
        }
        self.add(bytes);
    }

    /// The lines, oldest first, including an unterminated last one.
    pub fn finish(mut self) -> Vec<String> {
        self.end_line();
        self.lines.into()
    }

    fn add(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if std::mem::take(&mut self.returned) {
            self.open.clear();
        }
        let room = KEPT_MAX_BYTES - self.open.len();
        self.open.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) {
        self.returned = false;
        // Most lines of a long output are not among the last, so as little as possible is done for each.
        if !self.open.iter().all(u8::is_ascii_whitespace) {
            if self.lines.len() == self.keep {
                self.lines.pop_front();
            }
            self.lines.push_back(text::cut(&String::from_utf8_lossy(&self.open), LINE_MAX_CHARS));
        }
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the result for the bytes at once and byte by byte.
    fn check(bytes: &[u8], expected: &[&str]) {
        let mut whole = LastLines::new(5);
        whole.push(bytes);
        let mut single = LastLines::new(5);
        bytes.chunks(1).for_each(|byte| single.push(byte));
        assert_eq!(whole.finish(), expected);
        assert_eq!(single.finish(), expected);
    }

    #[test]
    fn the_last_lines_are_kept_with_one_that_has_no_end() {
        check(b"", &[]);
        check(b"\n \n\t\n", &[]);
        check(b"1\n2\n3\n4\n5\n6\n\n7", &["3", "4", "5", "6", "7"]);
        check(b"one\r\ntwo\r\n", &["one", "two"]);
        check(b"10%\r20%\rdone\nnext\r", &["done", "next"]);
    }

    #[test]
    fn bytes_that_are_no_text_do_no_harm() {
        check(b"a\0b\xff\xfe\n\x1b[31mred\x1b[0m\n", &["a\0b\u{fffd}\u{fffd}", "\x1b[31mred\x1b[0m"]);
        let long = "作".repeat(401);
        check(long.as_bytes(), &[&("作".repeat(400) + "…")]);
        check(&[0xf0; 5000], &[&("\u{fffd}".repeat(400) + "…")]);
    }

    #[test]
    fn ten_megabytes_without_a_line_end() {
        let mut lines = LastLines::new(1);
        for _ in 0..160 {
            lines.push(&[b'x'; 65536]);
            assert!(lines.open.capacity() <= 2 * KEPT_MAX_BYTES);
        }
        assert_eq!(lines.finish(), ["x".repeat(400) + "…"]);
    }
}
