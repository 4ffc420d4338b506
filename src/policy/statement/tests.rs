//! Tests of statements: examples, generated statements, and attacks on the text.

use super::*;
use crate::base::EntityId;

/// A small pseudorandom generator: the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

fn event(n: u64) -> EventRef {
    EventRef { id: Ulid::from_parts(1_769_860_800_000 + n, 7), hash: Digest::of_bytes(&n.to_be_bytes()) }
}

fn subject(act: Act) -> Subject {
    match act.row().subject {
        EntityType::System => Subject::SYSTEM,
        entity => Subject::new(entity, EntityId::parse("brand").unwrap()),
    }
}

/// Pieces of values that look like lines, escapes, ends, or nothing.
const PIECES: &[&str] = &[
    "a",
    "yes",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\\",
    "\\n",
    "\\u{20}",
    "none",
    ":",
    ": ",
    "\ncomment: no",
    "\n\nact 2 of 2: lift a stop",
    "option: yes",
    "é",
    "e\u{301}",
    "作業",
    "\u{3000}",
    "\u{202e}",
    "\u{200b}",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "\0",
    "\u{7f}",
    "\u{3164}",
    "🙂",
    "\u{10ffff}",
    "}",
    "{",
    "HiveForge operator statement 1",
];

fn value(random: &mut Random) -> String {
    let count = random.below(6);
    (0..count).map(|_| *random.of(PIECES)).collect()
}

fn act(random: &mut Random) -> StatedAct {
    let act = *random.of(Act::ALL);
    let row = act.row();
    let answers = (!row.may_be_first || random.below(2) == 0).then(|| event(random.next() % 1000));
    let mut stated = StatedAct::new(act, subject(act), answers);
    for name in row.must_bind.iter().copied().chain(["argument", "option", "key", "x_1"]) {
        for _ in 0..(1 + random.below(2)) {
            let value = value(random);
            stated.binds.push(Bound::new(name, value));
        }
    }
    let text = |random: &mut Random| Some(value(random)).filter(|value| !value.is_empty());
    stated.option = text(random).filter(|_| row.has_option);
    stated.comment = text(random);
    stated
}

fn statement(random: &mut Random) -> Statement {
    let count = 1 + random.below(3);
    let acts = (0..count).map(|_| act(random)).collect();
    let some = |random: &mut Random| (random.below(4) > 0).then(|| event(random.next() % 1000));
    let (authority, head_seen) = (some(random), some(random));
    Statement::new("8350d9da27a1cfc4548df170bd3e519d", authority, head_seen, acts).unwrap()
}

fn approval() -> Statement {
    let mut approve = StatedAct::new(Act::Approve, subject(Act::Approve), Some(event(3)));
    approve.binds = vec![
        Bound::new("argument", "rm"),
        Bound::new("argument", "-rf build"),
        Bound::new("argument", ""),
        Bound::new("directory", "/srv/ハイブ"),
    ];
    approve.option = Some("yes".to_owned());
    approve.comment = Some("go ahead,\nbut only once ".to_owned());
    let resume = StatedAct::new(Act::ResumeProject, subject(Act::ResumeProject), Some(event(4)));
    Statement::new("8350d9da27a1cfc4548df170bd3e519d", Some(event(1)), Some(event(2)), vec![approve, resume]).unwrap()
}

#[test]
fn a_statement_reads_like_this() {
    let text = "\
HiveForge operator statement 1
vault: 8350d9da27a1cfc4548df170bd3e519d
authority: E1
head seen: E2

act 1 of 2: approve a decision
subject: decision:brand
answers: E3
binds argument: rm
binds argument: -rf build
binds argument:
binds directory: /srv/ハイブ
option: yes
comment: go ahead,\\nbut only once\\u{20}

act 2 of 2: resume a project
subject: project:brand
answers: E4
";
    let named = (1..=4).fold(text.to_owned(), |text, n| text.replace(&format!("E{n}"), &event(n).to_string()));
    assert_eq!(approval().to_string(), named);
    assert_eq!(Statement::parse(named.as_bytes()), Ok(approval()));
    assert_eq!(approval().digest(), Digest::of_bytes(named.as_bytes()));
}

#[test]
fn a_statement_has_one_text_and_a_text_has_one_statement() {
    let mut random = Random(1);
    let mut seen = std::collections::HashMap::new();
    for _ in 0..1000 {
        let made = statement(&mut random);
        let text = made.to_string();
        assert_eq!(Statement::parse(text.as_bytes()).as_ref(), Ok(&made), "{text}");
        assert!(text.lines().all(|line| !line.starts_with(' ') && !line.ends_with(' ')), "{text:?}");
        assert!(!text.chars().any(|c| c != '\n' && text::is_unsafe(c)), "{text:?}");
        // A line for each fact, whatever the values contain.
        let facts: usize = made.acts().iter().map(|act| act.binds.len()).sum();
        let more: usize = made.acts().iter().map(|a| a.option.iter().count() + a.comment.iter().count()).sum();
        assert_eq!(text.lines().count(), 4 + 4 * made.acts().len() + facts + more, "{text}");
        if let Some(other) = seen.insert(text, made.clone()) {
            assert_eq!(other, made);
        }
    }
}

#[test]
fn no_changed_byte_leaves_the_statement_as_it_was() {
    let mut random = Random(2);
    let (mut parsed, mut refused) = (0, 0);
    for round in 0..12 {
        let made = if round == 0 { approval() } else { statement(&mut random) };
        let text = made.to_string().into_bytes();
        for at in 0..text.len() {
            let mut edits = vec![text.clone(); 3];
            edits[0][at] = (random.next() as u8).wrapping_add(text[at] ^ 1);
            edits[1].remove(at);
            edits[2].insert(at, *random.of(b"\n\r \\:ax0"));
            for edited in edits.iter().filter(|edited| **edited != text) {
                match Statement::parse(edited) {
                    Ok(other) => {
                        assert_ne!(other, made);
                        assert_eq!(other.to_string().as_bytes(), edited);
                        parsed += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(parsed > 500 && refused > 500, "{parsed} {refused}");
}

#[test]
fn lines_that_are_moved_dropped_or_repeated_change_the_statement_or_are_refused() {
    let text = approval().to_string();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_other = |edited: Vec<&str>| {
        let edited = edited.concat();
        edited == text
            || Statement::parse(edited.as_bytes()).is_ok_and(|other| other != approval())
            || Statement::parse(edited.as_bytes()).is_err()
    };
    for a in 0..lines.len() {
        let mut dropped = lines.clone();
        dropped.remove(a);
        assert!(is_other(dropped), "{}", lines[a]);
        for b in 0..lines.len() {
            let (mut repeated, mut moved) = (lines.clone(), lines.clone());
            repeated.insert(b, lines[a]);
            let line = moved.remove(a);
            moved.insert(b, line);
            assert!(is_other(repeated) && is_other(moved), "{} {b}", lines[a]);
        }
    }
}

#[test]
fn other_texts_are_refused_with_the_place() {
    let good = approval().to_string();
    let sentence = |text: &str| Statement::parse(text.as_bytes()).unwrap_err().to_string();
    for (text, why) in [
        (String::new(), "not a statement; its first line must be 'HiveForge operator statement 1'"),
        (format!("\u{feff}{good}"), "not a statement; its first line must be 'HiveForge operator statement 1'"),
        (format!("\n{good}"), "not a statement; its first line must be 'HiveForge operator statement 1'"),
        (good.replacen("statement 1", "statement 2", 1), "unknown version '2' of the statement; must be 1"),
        (good.replace('\n', "\r\n"), "unknown version '1\\r' of the statement; must be 1"),
        (good.trim_end().to_owned(), "the last line of the statement does not end with a line feed"),
        (good.clone() + "\n", "line 20 of the statement: expected 'act N of N: ' and a known act"),
        (good.replacen("vault: ", "vault:  ", 1), "line 2 of the statement: invalid escape sequence"),
        (good.replacen("vault: ", "Vault: ", 1), "line 2 of the statement: expected 'vault: '"),
        (good.replacen("rm\n", "rm\r\n", 1), "line 9 of the statement: invalid escape sequence"),
        (
            good.replacen("binds argument: rm", "binds Argument: rm", 1),
            "cannot state 'approve a decision': invalid name 'Argument'; must be lower-case letters, digits and '_'",
        ),
        (good.replacen("build", "\\u{62}uild", 1), "line 10 of the statement: invalid escape sequence"),
        (good.replacen("once\\u{20}", "once\\u{020}", 1), "line 14 of the statement: invalid escape sequence"),
        (good.replacen("once\\u{20}", "once ", 1), "line 14 of the statement: invalid escape sequence"),
        (
            good.replacen("act 1 of 2", "act 1 of 3", 1),
            "line 6 of the statement: not written as hf-decide statement writes it",
        ),
        (
            good.replacen("act 2 of 2", "act 3 of 2", 1),
            "line 16 of the statement: not written as hf-decide statement writes it",
        ),
        (
            good.replacen("approve a decision", "bless a decision", 1),
            "line 6 of the statement: expected 'act N of N: ' and a known act",
        ),
        (
            good.replacen("option: yes\n", "option:\n", 1),
            "cannot state 'approve a decision': its option and its comment must be absent or not empty",
        ),
        (
            good.replacen("decision:brand", "task:brand", 1),
            "cannot state 'approve a decision': its subject must be a decision",
        ),
        (
            good.replacen("option: yes\n", "option: yes\noption: no\n", 1),
            "line 14 of the statement: unexpected; an act ends with an empty line or the end of the statement",
        ),
        (good[..good.find("\nact 1").unwrap()].to_owned(), "a statement has 1 to 100 acts"),
    ] {
        assert_eq!(sentence(&text), why, "{text}");
    }
    assert_eq!(Statement::parse(b"HiveForge operator statement 1\n\xff").unwrap_err(), StatementRefusal::NotUtf8);
}

#[test]
fn acts_follow_their_table() {
    for row in ACTS {
        assert_eq!(Act::from_words(row.words), Some(row.act));
        let state = |change: &dyn Fn(&mut StatedAct)| {
            let mut stated = StatedAct::new(row.act, subject(row.act), Some(event(1)));
            stated.binds = row.must_bind.iter().map(|name| Bound::new(name, "x")).collect();
            change(&mut stated);
            Statement::new("v", None, None, vec![stated])
        };
        assert!(state(&|_| ()).is_ok());
        assert_eq!(state(&|act| act.answers = None).is_ok(), row.may_be_first, "{}", row.act);
        assert_eq!(state(&|act| act.option = Some("yes".to_owned())).is_ok(), row.has_option, "{}", row.act);
        assert_eq!(state(&|act| act.binds.clear()).is_ok(), row.must_bind.is_empty(), "{}", row.act);
        let task = Subject::new(EntityType::Task, EntityId::parse("t").unwrap());
        assert!(state(&|act| act.subject = task.clone()).is_err(), "{}", row.act);
        assert!(state(&|act| act.comment = Some(String::new())).is_err(), "{}", row.act);
    }
    let words: std::collections::BTreeSet<&str> = ACTS.iter().map(|row| row.words).collect();
    assert_eq!(words.len(), ACTS.len());
}

#[test]
fn a_statement_has_a_limited_size() {
    let with = |comment: usize, count: usize| {
        let mut stated = StatedAct::new(Act::LiftStop, Subject::SYSTEM, Some(event(1)));
        stated.comment = Some("x".repeat(comment));
        Statement::new("v", None, None, vec![stated; count])
    };
    assert_eq!(with(STATEMENT_MAX_BYTES, 1), Err(StatementRefusal::TooLong));
    let fixed = with(1, 1).unwrap().to_string().len() - 1;
    let longest = with(STATEMENT_MAX_BYTES - fixed, 1).unwrap().to_string();
    assert_eq!(longest.len(), STATEMENT_MAX_BYTES);
    assert!(Statement::parse(longest.as_bytes()).is_ok());
    assert_eq!(Statement::parse(format!("{longest}\n").as_bytes()), Err(StatementRefusal::TooLong));
    assert_eq!(with(1, 0), Err(StatementRefusal::Count));
    assert!(with(1, ACTS_MAX_COUNT).is_ok());
    assert_eq!(with(1, ACTS_MAX_COUNT + 1), Err(StatementRefusal::Count));
    for vault in ["", "a b", "a\n", "é", &"v".repeat(65)] {
        assert_eq!(
            with(1, 1).and_then(|made| Statement::new(vault, None, None, made.acts)),
            Err(StatementRefusal::Vault)
        );
    }
}

#[test]
fn every_character_survives_and_none_is_invisible() {
    for c in '\0'..=char::MAX {
        let line = escape(&format!("a{c}b"));
        assert_eq!(unescape(&line).unwrap(), format!("a{c}b"));
        // If this fails because base::text escapes more now, statements need a version 2.
        assert!(!line.chars().any(text::is_unsafe), "{:x}", c as u32);
    }
    for (value, line) in [
        (" a ", "\\u{20}a\\u{20}"),
        ("a  b", "a \\u{20}b"),
        ("a \u{3000}b", "a \\u{3000}b"),
        ("\u{3000}", "\\u{3000}"),
        ("要件\u{3000}承認", "要件\u{3000}承認"),
        ("a\u{fe0f}", "a\\u{fe0f}"),
    ] {
        assert_eq!(escape(value), line);
        assert_eq!(unescape(line).unwrap(), value);
    }
    for wrong in
        ["\\", "\\x", "\\u20", "\\u{}", "\\u{110000}", "\\u{d800}", "\\u{+20}", "\\u{41}", "\\U{20}", "\\u{A0}"]
    {
        assert_eq!(unescape(wrong), None, "{wrong}");
    }
}
