//! SHA-256 digests in the form `sha256:<64 hex digits>`.

use std::fmt;

use sha2::{Digest as _, Sha256};

const PREFIX: &str = "sha256:";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The `prev_hash` of the first event.
    pub const ZERO: Digest = Digest([0; 32]);

    /// The digest of these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }

    /// The digest of several pieces, as if concatenated.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Digest(hasher.finalize().into())
    }

    /// Parses the exact form that is written: the prefix, then lower-case hex.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix(PREFIX)?.as_bytes();
        if hex.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        let mut wrong = 0;
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            let (high, low) = (NIBBLES[usize::from(pair[0])], NIBBLES[usize::from(pair[1])]);
            wrong |= high | low;
            *byte = high << 4 | (low & 15);
        }
        (wrong < NO_NIBBLE).then_some(Digest(bytes))
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }

    /// The 64 hex digits without the prefix.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// The first four hex digits, as short references contain them.
    pub fn tag(&self) -> String {
        hex(&self.0[..2])
    }
}

/// Marks a byte that is not a hex digit; larger than any nibble.
const NO_NIBBLE: u8 = 16;

/// The value of each byte as a lower-case hex digit.
const NIBBLES: [u8; 256] = {
    let mut table = [NO_NIBBLE; 256];
    let mut n = 0;
    while n < 16 {
        table[b"0123456789abcdef"[n] as usize] = n as u8;
        n += 1;
    }
    table
};

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_reads_back_as_written() {
        let digest = Digest::of_bytes(b"abc");
        let known = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), known);
        assert_eq!(Digest::parse(known), Some(digest));
        assert_eq!(Digest::of_parts(&[b"a", b"", b"bc"]), digest);
        assert_eq!(digest.tag(), "ba78");
    }

    #[test]
    fn only_the_exact_form_is_a_digest() {
        let hex = Digest::ZERO.hex();
        for wrong in
            [hex.clone(), format!("SHA256:{hex}"), format!("sha256:{}", &hex[1..]), format!("sha256:A{}", &hex[1..])]
        {
            assert_eq!(Digest::parse(&wrong), None, "{wrong}");
        }
    }
}
