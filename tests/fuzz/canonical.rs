//! Canonical JSON is byte for byte what two other implementations write: one in Python, one in JavaScript.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use hiveforge::event::intake;

use crate::sized;
use crate::test_vault::Random;

const DEPTH_MAX: u64 = 6;

/// Writes random documents as other programs might: different escapes, different number formats, any order of keys.
struct Writer {
    random: Random,
    text: String,
}

impl Writer {
    fn value(&mut self, depth: u64) {
        match self.random.below(if depth < DEPTH_MAX { 10 } else { 6 }) {
            0 => self.text += ["null", "true", "false"][self.random.below(3) as usize],
            1..=3 => self.number(),
            4 | 5 => self.string(),
            6 | 7 => self.list(depth),
            _ => self.object(depth),
        }
    }

    fn number(&mut self) {
        let bits = self.random.next();
        self.text += &match self.random.below(7) {
            // Any finite double; the others are not JSON.
            0 | 1 => Some(f64::from_bits(bits)).filter(|n| n.is_finite()).map_or("0".into(), |n| format!("{n:e}")),
            2 => format!("{}", (bits >> 11) as i64 * if bits & 1 == 0 { 1 } else { -1 }),
            3 => format!("{}.{:03}", bits % 1000, (bits >> 20) % 1000),
            4 => format!("-{}.{}e{}", bits % 10, (bits >> 8) % 100_000, (bits >> 32) % 40),
            5 => format!("{}E-{}", bits % 10_000, (bits >> 32) % 40),
            _ => {
                ["0", "-0", "-0.0", "1e21", "1e-7", "5e-324", "1.7976931348623157e308", "9007199254740991", "0.000001"]
                    [(bits % 9) as usize]
                    .to_owned()
            }
        };
    }

    fn character(&mut self) -> char {
        let (low, high) = [(1, 0x20), (0x20, 0x7f), (0x7f, 0x800), (0x800, 0x1_0000), (0x1_0000, 0x11_0000)]
            [self.random.below(5) as usize];
        // Surrogates are not characters.
        char::from_u32(low + self.random.below(u64::from(high - low)) as u32).unwrap_or('\u{fffd}')
    }

    fn string(&mut self) {
        self.text.push('"');
        for _ in 0..self.random.below(8) {
            let c = self.character();
            match self.random.below(3) {
                0 => {
                    let units =
                        c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect::<String>();
                    self.text += &units;
                }
                _ if (c as u32) < 0x20 || c == '"' || c == '\\' => self.text += &format!("\\u{:04x}", c as u32),
                _ => self.text.push(c),
            }
        }
        self.text.push('"');
    }

    fn blank(&mut self) {
        self.text += ["", "", " ", "\t", " \r"][self.random.below(5) as usize];
    }

    fn list(&mut self, depth: u64) {
        self.text.push('[');
        for n in 0..self.random.below(5) {
            if n > 0 {
                self.text.push(',');
            }
            self.blank();
            self.value(depth + 1);
            self.blank();
        }
        self.text.push(']');
    }

    fn object(&mut self, depth: u64) {
        self.text.push('{');
        for n in 0..self.random.below(6) {
            if n > 0 {
                self.text.push(',');
            }
            self.blank();
            match self.random.below(6) {
                0 => self.text += ["\"__proto__\"", "\"10\"", "\"9\"", "\"\"", "\"a\""][self.random.below(5) as usize],
                _ => self.string(),
            }
            self.blank();
            self.text.push(':');
            self.value(depth + 1);
        }
        self.text.push('}');
    }
}

/// The canonical texts made by another program. None if it is not installed.
fn others(program: &str, script: &str, documents: &Path) -> Option<Vec<u8>> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join(script);
    let input = File::open(documents).expect("the documents");
    match Command::new(program).arg(script).stdin(input).output() {
        Err(e) => {
            println!("CANNOT compare canonical JSON with {program} here: {e}");
            None
        }
        Ok(output) => {
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            Some(output.stdout)
        }
    }
}

#[test]
fn two_other_implementations_write_the_same_canonical_text() {
    let wanted = sized(2_000, 100_000);
    let mut writer = Writer { random: Random::new(8785), text: String::new() };
    let (mut documents, mut canonical, mut refused) = (String::new(), Vec::new(), 0);
    while canonical.len() < wanted {
        writer.text.clear();
        writer.object(0);
        // Input that readers interpret differently is refused: duplicate keys, inexact integers.
        match intake::parse(writer.text.as_bytes(), 0) {
            Err(_) => refused += 1,
            Ok(value) => {
                documents += &writer.text;
                documents.push('\n');
                canonical.push(serde_jcs::to_string(&value).expect("it has a canonical form"));
            }
        }
    }
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("documents");
    std::fs::write(&path, &documents).expect("a file");
    for (program, script) in [("python3", "canonical.py"), ("node", "canonical.mjs")] {
        let Some(theirs) = others(program, script, &path) else { continue };
        let theirs = String::from_utf8(theirs).expect("UTF-8");
        let mut different = 0;
        let mut lines = theirs.split_terminator('\n');
        for (document, ours) in documents.split_terminator('\n').zip(&canonical) {
            if lines.next() != Some(ours) {
                different += 1;
                assert!(different < 5, "{program} differs on {document:?}: ours is {ours:?}");
            }
        }
        println!("CANONICAL_JSON:{program}\nDOCUMENTS:{wanted}\nREFUSED_BEFORE:{refused}\nDIFFERENT:{different}\n");
        assert_eq!((different, lines.next()), (0, None), "{program}");
    }
}
