//! One strict pass over the bytes of a line: proves that it is canonical, finds its members, and hashes it.
//!
//! Much cheaper than parsing, because nothing is built. It accepts only what is certainly valid: every member in its
//! place, canonical to the byte, every value well-formed, the hash correct. Anything unusual (a key beyond the basic
//! plane, a number with an exponent, an unknown member) is left to `check_line`, which also says what is wrong.
//!
//! Invariant: a line that passes here passes `check_line` with the same result
//! (`strict_and_reference_agree`).

use super::Head;
use crate::base::{Digest, Timestamp, Ulid};
use crate::event::{BatchPosition, Event, parse_ulid};

/// What is needed of a line to check the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainLink {
    pub head: Head,
    pub prev_hash: Digest,
    pub batch: Option<BatchPosition>,
}

impl ChainLink {
    pub fn from_event(event: &Event) -> Self {
        ChainLink { head: Head::at(event), prev_hash: event.prev_hash, batch: event.batch }
    }

    pub fn ends_batch(&self) -> bool {
        self.batch.is_none_or(|batch| batch.no == batch.of)
    }

    /// Whether this line may follow `prev`.
    pub fn follows(&self, prev: Option<&ChainLink>) -> bool {
        let linked = match prev {
            None => self.prev_hash == Digest::ZERO,
            Some(prev) => self.prev_hash == prev.head.hash && self.head.id > prev.head.id,
        };
        let open = prev.and_then(|prev| prev.batch).filter(|batch| batch.no < batch.of);
        linked
            && match (open, self.batch) {
                (None, None) => true,
                (None, Some(batch)) => batch.no == 1,
                (Some(open), Some(batch)) => batch.of == open.of && batch.no == open.no + 1,
                (Some(_), None) => false,
            }
    }
}

/// Deeper nesting is left to `check_line`.
const DEPTH_MAX: usize = 100;
/// Numbers with this many digits are always exact.
const EXACT_DIGITS: usize = 15;

/// Checks a line without its line end. `None` if it is not certainly valid.
pub fn check(line: &[u8]) -> Option<ChainLink> {
    check_text(std::str::from_utf8(line).ok()?)
}

/// The same for a line that is known to be UTF-8.
pub fn check_text(line: &str) -> Option<ChainLink> {
    let line = line.as_bytes();
    let mut at = Reader { bytes: line, at: 0 };
    at.word(br#"{"$schema":"event.v1.schema.json","actor":"#)?;
    at.string()?;
    let batch = match at.word(br#","batch":{"no":"#) {
        None => None,
        Some(()) => {
            let no = at.count()?;
            at.word(br#","of":"#)?;
            let of = at.count()?;
            at.word(b"}")?;
            ((1..=of).contains(&no)).then_some(Some(BatchPosition { no, of }))?
        }
    };
    at.word(br#","event_id":"#)?;
    let id = at.ulid()?;
    at.word(br#","event_type":"#)?;
    at.string()?;
    at.word(b",")?;
    let hash_begin = at.at;
    at.word(br#""hash":"#)?;
    let hash = at.digest()?;
    at.word(b",")?;
    let hash_end = at.at;
    if at.word(br#""idempotency_key":"#).is_some() {
        at.string()?;
        at.word(b",")?;
    }
    at.word(br#""parents":["#)?;
    if at.word(b"]").is_none() {
        at.ulid()?;
        while at.word(b",").is_some() {
            at.ulid()?;
        }
        at.word(b"]")?;
    }
    at.word(br#","payload":"#)?;
    (at.peek()? == b'{').then_some(())?;
    at.value(1)?;
    at.word(br#","prev_hash":"#)?;
    let prev_hash = at.digest()?;
    at.word(br#","subject":"#)?;
    at.string()?;
    at.word(br#","timestamp":""#)?;
    Timestamp::parse(at.take(20)?)?;
    at.word(br#"","version":"#)?;
    at.count()?;
    at.word(b"}")?;
    let whole = at.at == line.len() && Digest::of_parts(&[&line[..hash_begin], &line[hash_end..]]) == hash;
    whole.then_some(ChainLink { head: Head { id, hash }, prev_hash, batch })
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// Consumes exactly these bytes, or nothing if they are not next.
    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes[self.at..].starts_with(word).then(|| self.at += word.len())
    }

    fn take(&mut self, length: usize) -> Option<&'a str> {
        let part = self.bytes.get(self.at..self.at + length)?;
        self.at += length;
        std::str::from_utf8(part).ok()
    }

    fn ulid(&mut self) -> Option<Ulid> {
        self.word(b"\"")?;
        let id = parse_ulid(self.take(26)?)?;
        self.word(b"\"")?;
        Some(id)
    }

    fn digest(&mut self) -> Option<Digest> {
        self.word(b"\"")?;
        let digest = Digest::parse(self.take(71)?)?;
        self.word(b"\"")?;
        Some(digest)
    }

    /// A non-negative integer that is exact in every JSON reader.
    fn count(&mut self) -> Option<u64> {
        let begin = self.at;
        while self.peek()?.is_ascii_digit() {
            self.at += 1;
        }
        let digits = &self.bytes[begin..self.at];
        let plain = (1..=EXACT_DIGITS).contains(&digits.len()) && (digits[0] != b'0' || digits.len() == 1);
        plain.then(|| digits.iter().fold(0, |n, digit| n * 10 + u64::from(digit - b'0')))
    }

    /// A string in canonical form. The bytes are known to be UTF-8.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.word(b"\"")?;
        let begin = self.at;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.escape()?,
                0..=0x1f => return None,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(&self.bytes[begin..self.at - 1])
    }

    /// An escape sequence, only where one is required and in its shortest form.
    fn escape(&mut self) -> Option<()> {
        match self.bytes.get(self.at + 1)? {
            b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let code = self.bytes.get(self.at + 2..self.at + 6)?;
                let control = match code {
                    [b'0', b'0', b'0', b'8' | b'9' | b'a' | b'c' | b'd'] => false,
                    [b'0', b'0', b'0' | b'1', b'0'..=b'9' | b'a'..=b'f'] => true,
                    _ => false,
                };
                control.then_some(())?;
                self.at += 6;
            }
            _ => return None,
        }
        Some(())
    }

    /// Any value in canonical form.
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.word(b"{")?;
        if self.word(b"}").is_some() {
            return Some(());
        }
        let mut last: Option<&[u8]> = None;
        loop {
            let key = self.string()?;
            // Below U+E000, byte order equals UTF-16 order; an escape hides a character.
            let plain = key.iter().all(|&b| b < 0xee && b != b'\\');
            (plain && last.is_none_or(|last| last < key)).then_some(())?;
            last = Some(key);
            self.word(b":")?;
            self.value(depth + 1)?;
            if self.word(b",").is_none() {
                return self.word(b"}");
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.word(b"[")?;
        if self.word(b"]").is_some() {
            return Some(());
        }
        loop {
            self.value(depth + 1)?;
            if self.word(b",").is_none() {
                return self.word(b"]");
            }
        }
    }

    /// An integer; fractions and exponents are left to `check_line`.
    fn number(&mut self) -> Option<()> {
        let negative = self.word(b"-").is_some();
        let count = self.count()?;
        let integer = !matches!(self.peek()?, b'.' | b'e' | b'E');
        (integer && !(negative && count == 0)).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_line;
    use super::super::fixture::{log, sealed};
    use super::*;

    /// The result of the reference check.
    fn reference(line: &[u8]) -> Option<ChainLink> {
        check_line(line).ok().map(|event| ChainLink::from_event(&event))
    }

    #[test]
    fn ordinary_lines_take_the_fast_way() {
        let (bytes, ..) = log(&[1, 3, 1]);
        for line in bytes.split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
            assert!(check(line).is_some());
            assert_eq!(check(line), reference(line));
        }
        for payload in [
            r#"{"a":[],"b":{},"c":[1,-1,0,true,false,null],"d":{"x":[{"y":"z"}]}}"#,
            r#"{"hash":"sha256:0","payload":{"hash":"x"},"é":"内省\n\"\\\u0001","ü":123456789012345}"#,
        ] {
            let line = sealed(payload);
            assert!(check(&line).is_some(), "{payload}");
            assert_eq!(check(&line), reference(&line));
        }
    }

    #[test]
    fn what_is_unusual_is_left_to_the_reference() {
        for payload in
            [r#"{"n":1.5}"#, r#"{"n":1e21}"#, r#"{"n":1234567890123456}"#, "{\"\u{1f600}\":1}", r#"{"a\"b":1}"#]
        {
            let line = sealed(payload);
            assert_eq!(check(&line), None, "{payload}");
            assert!(reference(&line).is_some(), "{payload}");
        }
    }

    #[test]
    fn a_changed_byte_never_passes() {
        let line = sealed(r#"{"a":["x",1],"b":"\n"}"#);
        for at in 0..line.len() {
            for bit in 0..8 {
                let mut changed = line.clone();
                changed[at] ^= 1 << bit;
                assert_eq!(check(&changed), None, "byte {at} bit {bit}");
            }
        }
    }
}
