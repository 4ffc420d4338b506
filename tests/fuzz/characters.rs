//! Sends every Unicode scalar value through every output: the number of lines never changes.

use hiveforge::base::text::is_unsafe;
use hiveforge::reply::key::TABLE;
use hiveforge::reply::{Cell, Key, Reply, Row, Shape, Status};
use serde_json::{Value, json};

use crate::sized;
use crate::test_vault::{TestVault, jsonl};

/// How many characters fit into a title without being cut.
const TITLE_CHARS: usize = 50;
const PAGE: usize = 500;

#[test]
fn every_character_in_every_field_stays_on_its_line() {
    let all: String = ('\0'..=char::MAX).collect();
    let mut fields = 0;
    for key in
        TABLE.iter().map(|entry| entry.key).filter(|key| ![Key::Exit, Key::Status, Key::Next, Key::Sum].contains(key))
    {
        let reply = Reply::new(Status::Ok, "sum");
        let reply = match key.shape() {
            Shape::Text | Shape::Time | Shape::Texts => reply.with(key, all.clone()),
            Shape::Row(_) => reply.with_row(key, Row::new(vec![Cell::Text(all.clone())])),
            Shape::Rows(columns) => reply.with_rows(key, [Row::new(vec![Cell::Text(all.clone()); columns.len()])]),
            Shape::Objects(columns, _) => {
                let row = Row::new(vec![Cell::Text(all.clone()); columns.len()]).whole(json!({}));
                reply.with_rows(key, [row])
            }
            Shape::Counts => reply.with_counts(key, [(all.clone(), 1)]),
            Shape::Number | Shape::Flag | Shape::TrueOnly | Shape::NumberOf | Shape::Lines | Shape::Map => continue,
        };
        let lines = reply.text();
        assert_eq!(lines.split_terminator('\n').count(), 5, "{key}");
        assert!(!lines.replace('\n', "").chars().any(is_unsafe), "{key}");
        fields += 1;
    }
    let sum = Reply::new(Status::Ok, all.clone()).text();
    assert_eq!(sum.split_terminator('\n').count(), 4);
    // A line of a block is cut off, so the characters are split into pieces.
    let pieces: Vec<String> = all.chars().collect::<Vec<_>>().chunks(300).map(|piece| piece.iter().collect()).collect();
    let block = Reply::new(Status::Ok, "sum").with_lines(Key::Last5, pieces.clone()).text();
    assert_eq!(block.split_terminator('\n').count(), 5 + pieces.len());
    println!("CHARACTERS:{}\nFIELDS:{}\nLINES_MORE:0\n", all.chars().count(), fields + 2);
}

/// Requirements whose titles contain these characters.
fn titles(characters: &[char]) -> Vec<Value> {
    let titles = characters.chunks(TITLE_CHARS).map(|piece| piece.iter().collect::<String>());
    titles
        .map(|title| json!({"event_type": "RequirementProposed", "payload": {"title": format!("x{title}x")}}))
        .collect()
}

#[test]
fn every_character_stays_on_its_line_in_the_replies_of_real_commands() {
    // NUL is refused at intake. A short run has all escaped characters and their neighbours.
    let step = sized(97, 1);
    let near = |c: char| (-2..=2).any(|d| char::from_u32((c as u32).wrapping_add_signed(d)).is_some_and(is_unsafe));
    let characters: Vec<char> = ('\u{1}'..=char::MAX)
        .filter(|c| step == 1 || near(*c) && (*c as u32) < 0xe_0100 || (*c as usize).is_multiple_of(step))
        .collect();
    let hive = TestVault::new();
    let wishes = titles(&characters);
    for batch in wishes.chunks(5_000) {
        hive.pipe("append", &["--batch"], jsonl(batch)).expect_exit(0);
    }
    let (mut shown, mut replies, mut cursor) = (0, 0, None::<String>);
    loop {
        let limit = PAGE.to_string();
        let mut args = vec!["list", "--limit", &limit];
        args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor.as_str()]));
        let page = hive.run("require", &args).expect_exit(0);
        let listed = page.all("ENTITY").len();
        let more = page.get("HAS_MORE") == "yes";
        // EXIT, STATUS, NEXT, SUM, COUNT, HAS_MORE, and NEXT_CURSOR if there is more.
        assert_eq!(page.stdout.split('\n').count(), 1 + 6 + usize::from(more) + listed, "{cursor:?}");
        assert!(!page.stdout.replace('\n', "").chars().any(is_unsafe), "{cursor:?}");
        let json = hive.run("require", &[&args[..], &["--json"]].concat());
        assert_eq!(json.stdout.split('\n').count(), 2);
        let value: Value = serde_json::from_str(&json.stdout).expect("one JSON object");
        assert_eq!(value["entities"].as_array().map(Vec::len), Some(listed));
        shown += listed;
        replies += 2;
        match more {
            true => cursor = Some(page.get("NEXT_CURSOR").to_owned()),
            false => break,
        }
    }
    assert_eq!(shown, wishes.len());
    // Other fields and other commands, with a sample.
    for n in (1..=wishes.len()).step_by(wishes.len() / sized(8, 200) + 1) {
        let reference = format!("REQ-{n:04}");
        for (command, args) in [
            ("require", &["show", reference.as_str()][..]),
            ("lineage", &[&reference]),
            ("log", &["--subject", &reference]),
        ] {
            let reply = hive.run(command, args).expect_exit(0);
            let plain = reply.stdout.lines().count();
            assert_eq!(reply.stdout.split('\n').count(), plain + 1, "hf-{command} {reference}");
            assert!(!reply.stdout.replace('\n', "").chars().any(is_unsafe), "hf-{command} {reference}");
            let keys = reply.stdout.lines().filter_map(|line| Key::parse(line.split_once(':')?.0)).count();
            assert_eq!(keys, plain, "hf-{command} {reference}: {}", reply.stdout);
            replies += 1;
        }
    }
    println!("CHARACTERS:{}\nTITLES:{shown}\nREPLIES:{replies}\nLINES_MORE:0\n", characters.len());
}
