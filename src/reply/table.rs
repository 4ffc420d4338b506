//! The reply for a person at a terminal: a sentence, then pairs and tables, within the width of the screen.
//!
//! Shows nothing that the other renderings do not have. Ids that only programs need are left out, and times are
//! relative.

use unicode_width::UnicodeWidthStr;

use super::value::{CellKind, Column, InText};
use super::{Cell, Field, Key, Next, Reply, Row, Shape, Value, text};
use crate::base::{Timestamp, text as plain};
use crate::event::parse_ulid;

/// The width of a terminal that does not report one.
const DEFAULT_COLUMNS: usize = 80;
/// The width below which a column is cut only if the screen is too narrow otherwise.
const NARROWEST: usize = 8;
/// Spaces between two columns.
const GAP: usize = 2;

/// The terminal to render for.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    pub columns: Option<usize>,
    pub colours: bool,
    pub now: Timestamp,
}

const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

impl Screen {
    pub fn width(&self) -> usize {
        self.columns.unwrap_or(DEFAULT_COLUMNS)
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        match self.colours && !colour.is_empty() && !text.is_empty() {
            true => format!("\x1b[{colour}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// Renders the whole reply, with newlines.
pub fn render(reply: &Reply, screen: &Screen) -> String {
    let status = screen.paint(colour_of_exit(reply.exit), reply.status.as_str());
    let mut out = format!("{status}  {}\n", plain::escape(&reply.sum));
    let shown: Vec<&Field> = reply.fields.iter().filter(|field| is_shown(reply, field)).collect();
    // Problems come first.
    let (problems, others): (Vec<&Field>, Vec<&Field>) = shown.iter().partition(|field| field.key == Key::Problem);
    let pairs: Vec<(String, String)> = problems.iter().chain(&others).filter_map(|field| pair(field, screen)).collect();
    let widest = pairs.iter().map(|(label, _)| label.width()).max().unwrap_or(0);
    for (label, value) in &pairs {
        out += &format!("  {}  {value}\n", screen.paint(DIM, &format!("{label:<widest$}")));
    }
    for field in shown {
        out += &block(field, screen);
    }
    if let Some(next) = next(&reply.next) {
        out += &format!("{} {next}\n", screen.paint(BOLD, "next:"));
    }
    out
}

fn colour_of_exit(exit: u8) -> &'static str {
    match exit {
        0 => GREEN,
        1 | 3 | 5 | 6 => YELLOW,
        _ => RED,
    }
}

/// Whether a table shows a field.
fn is_shown(reply: &Reply, field: &Field) -> bool {
    let named = reply.field(Key::Ref).is_some() || reply.field(Key::State).is_some();
    field.key.row().for_people
        && (field.key != Key::Subject || !named)
        && !(matches!(field.key, Key::State | Key::Ref) && is_in_sum(reply, field))
}

/// Whether SUM already says it, as `T-0001 is Ready` says both the reference, without its tag, and the state.
fn is_in_sum(reply: &Reply, field: &Field) -> bool {
    let Value::One(cell) = &field.value else { return false };
    let value = cell.plain();
    let short = value.split('@').next().unwrap_or_default();
    reply.sum.split([' ', ':', ',', ';']).any(|word| word == short)
}

/// The next step in words.
fn next(next: &Next) -> Option<String> {
    match next {
        Next::None => None,
        Next::Patch => Some("fix it, then run it again".to_owned()),
        Next::Ask(who) => Some(format!("ask an {who}")),
        Next::Action(argv) => {
            let mut words = argv.clone();
            if let Some(command) = words.first_mut().filter(|word| word.starts_with("hf-")) {
                *command = command.replacen('-', " ", 1);
            }
            Some(words.join(" "))
        }
    }
}

/// A field as a label and a value, if it fits on one line.
fn pair(field: &Field, screen: &Screen) -> Option<(String, String)> {
    let value = match &field.value {
        Value::One(cell) => cell_text(cell, cell_kind(field.key), screen),
        Value::Counts(counts) if counts.is_empty() => return None,
        Value::Counts(counts) => {
            let words: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
            words.join(", ")
        }
        Value::Rows(rows) if matches!(field.key.shape(), Shape::Row(_)) => {
            let columns = field.key.shape().columns();
            let cells = rows.first().into_iter().flat_map(|row| columns.iter().zip(&row.cells));
            let words: Vec<String> = cells
                // The time next to it is relative already.
                .filter(|(column, cell)| cell.is_some() && column.name != "age_seconds")
                .map(|(column, cell)| cell_text(cell, column.kind, screen))
                .collect();
            words.join("  ")
        }
        _ => return None,
    };
    let colour = if field.key == Key::Problem { RED } else { colour_of_state(&value) };
    Some((label(field.key.row().json), screen.paint(colour, &value)))
}

fn cell_kind(key: Key) -> CellKind {
    match key {
        Key::UptimeSeconds | Key::ElapsedS => CellKind::Seconds,
        _ => CellKind::Text,
    }
}

/// A field that takes several lines; empty for other fields.
fn block(field: &Field, screen: &Screen) -> String {
    let heading = |count: usize| {
        let label = field.key.row().json.replace('_', " ");
        if count == 0 { String::new() } else { format!("{}\n", screen.paint(DIM, &label)) }
    };
    match &field.value {
        Value::Texts(texts) => {
            let wide = screen.width().saturating_sub("  - ".len()).max(NARROWEST);
            let item = |text: &String| wrap(&plain::escape(text), wide).join("\n    ");
            let lines = texts.iter().map(|text| format!("  - {}\n", item(text)));
            heading(texts.len()) + &lines.collect::<String>()
        }
        Value::Lines(lines) => {
            let lines: String = lines.iter().map(|line| format!("  | {}\n", text::foreign(line))).collect();
            heading(lines.len()) + &lines
        }
        Value::Rows(rows) if matches!(field.key.shape(), Shape::Rows(_) | Shape::Objects(..)) => {
            table(field.key.shape().columns(), rows, screen)
        }
        _ => String::new(),
    }
}

/// Columns that tables do not show.
const FOR_PROGRAMS: &[&str] = &["event_id", "run_id", "logref"];
/// Columns whose value has a line of its own below the row: a command is of no use if it is cut.
const BELOW: &[&str] = &["do"];
/// Facts that tables do not show.
const FACTS_FOR_PROGRAMS: &[&str] = &["last_event_id", "content", "target_hash"];

/// Whether a row is a fact that tables do not show.
fn is_for_programs(columns: &[Column], row: &Row) -> bool {
    let named = |name: &Cell| matches!(name, Cell::Text(name) if FACTS_FOR_PROGRAMS.contains(&name.as_str()));
    columns[0].name == "name" && row.cells.first().is_some_and(named)
}

/// The columns to show, in order: the short ones first, the free text last. Subject and reference share a column,
/// which shows the reference if there is one; of a time and its age, only the age is shown, and of the times of an entity
/// that nobody holds, only that of its creation.
fn shown_columns(columns: &'static [Column], rows: &[&Row]) -> Vec<usize> {
    let has = |name: &str| columns.iter().any(|column| column.name == name);
    let is_shown = |n: &usize| {
        let name = columns[*n].name;
        let is_merged = (name == "ref" && has("subject"))
            || (name == "is" && has("value"))
            || (name == "since" && has("created_at"))
            || (columns[*n].kind == CellKind::Time && has("age"));
        let is_apart = FOR_PROGRAMS.contains(&name) || BELOW.contains(&name);
        !is_apart && !is_merged && rows.iter().any(|row| cell(columns, row, *n).is_some())
    };
    let last = columns.iter().rposition(|column| column.in_text == InText::Value).unwrap_or(0);
    (0..columns.len()).filter(|n| *n != last).chain([last]).filter(is_shown).collect()
}

/// A cell of a row; the reference instead of the subject, and for a fact the entity that it names, if there is one.
fn cell<'a>(columns: &[Column], row: &'a Row, n: usize) -> &'a Cell {
    let at = |name: &str| columns.iter().position(|column| column.name == name).and_then(|n| row.cells.get(n));
    let better = match columns[n].name {
        "subject" => at("ref"),
        "value" => at("is"),
        _ => None,
    };
    better.filter(|cell| cell.is_some()).or(row.cells.get(n)).unwrap_or(&Cell::None)
}

fn table(columns: &'static [Column], rows: &[Row], screen: &Screen) -> String {
    let rows: Vec<&Row> = rows.iter().filter(|row| !is_for_programs(columns, row)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let order = shown_columns(columns, &rows);
    let line = |row: &&Row| -> Vec<String> {
        let cells = order.iter().map(|n| (columns[*n].kind, cell(columns, row, *n)));
        cells.map(|(kind, cell)| if cell.is_some() { cell_text(cell, kind, screen) } else { String::new() }).collect()
    };
    let heads: Vec<String> = order.iter().map(|n| head(columns[*n].name)).collect();
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    let mut widths: Vec<usize> =
        (0..order.len()).map(|n| lines.iter().chain([&heads]).map(|line| line[n].width()).max().unwrap_or(0)).collect();
    fit(&mut widths, screen.width());
    let paint_head = |_: usize, text: &str| screen.paint(DIM, text);
    let mut out = row_line(&heads, &widths, &paint_head);
    for (row, line) in rows.iter().zip(&lines) {
        let paint = |n: usize, text: &str| match columns[order[n]].name {
            "status" | "level" => screen.paint(colour_of_state(&line[n]), text),
            "ref" | "subject" | "task" => screen.paint(BOLD, text),
            _ => text.to_owned(),
        };
        out += &row_line(line, &widths, &paint);
        let below = (0..columns.len()).filter(|n| BELOW.contains(&columns[*n].name)).map(|n| cell(columns, row, n));
        for cell in below.filter(|cell| cell.is_some()) {
            out += &format!("  {}\n", screen.paint(DIM, &format!("→ {}", plain::escape(&cell.plain()))));
        }
    }
    out
}

/// A name without its unit, which the value has: `created_at` becomes `created`.
fn label(name: &str) -> String {
    let unit = ["_at", "_seconds", "_s"].iter().find_map(|unit| name.strip_suffix(unit));
    unit.unwrap_or(name).replace('_', " ")
}

/// The heading of a column.
fn head(name: &str) -> String {
    let name = match name {
        "seconds" => "time",
        "subject" => "ref",
        "timestamp" => "when",
        "event_type" => "event",
        name => name,
    };
    label(name).to_uppercase()
}

/// Narrows the widest columns until the line fits: down to `NARROWEST`, or to two characters if that is still too
/// wide.
fn fit(widths: &mut [usize], columns: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    for narrowest in [NARROWEST, 2] {
        while let Some(over) = (widths.iter().sum::<usize>() + gaps).checked_sub(columns).filter(|over| *over > 0) {
            let Some(widest) = widths.iter_mut().max_by_key(|width| **width).filter(|width| **width > narrowest) else {
                break;
            };
            *widest -= over.min(*widest - narrowest).min((*widest / 4).max(1));
        }
    }
}

fn row_line(cells: &[String], widths: &[usize], paint: &dyn Fn(usize, &str) -> String) -> String {
    let mut line = String::new();
    for (n, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let text = cut(cell, *width);
        let room = width.saturating_sub(text.width());
        line += &paint(n, &text);
        if n + 1 < cells.len() {
            line += &" ".repeat(room + GAP);
        }
    }
    format!("{}\n", line.trim_end())
}

/// The start of a text that fits into `width` columns. A character may change the width of the one before it, so
/// the width of the whole text is measured.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = text.to_owned();
    while short.width() + 1 > width && short.pop().is_some() {}
    short + "…"
}

/// A text on lines of at most `width` columns, broken at spaces.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is at least one line");
        match line.is_empty() || line.width() + 1 + word.width() <= width {
            true if line.is_empty() => line.push_str(word),
            true => line.extend([" ", word]),
            false => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Green for work in progress or successful, red for failures, yellow for what waits or needs attention.
fn colour_of_state(state: &str) -> &'static str {
    match state {
        "Running" | "RUNNING" | "Active" | "Succeeded" | "DONE" | "Approved" | "Implemented" | "Verified"
        | "Validated" | "OK" | "Finished" => GREEN,
        "Failed" | "FAIL" | "LOST" | "Aborted" | "Rejected" | "Crashed" | "TimedOut" | "Invalidated" | "Corrupted"
        | "error" | "CHANGED" | "MISSING" | "Blocked" | "stopped" | "BROKEN" | "FAILED" | "CORRUPT" | "VIOLATED"
        | "DIFFERENT" | "DAMAGED" => RED,
        "Requested" | "Escalated" | "Retrying" | "QUEUED" | "ORPHANED" | "Paused" | "paused" | "warning" | "warn"
        | "Unread" => YELLOW,
        _ => "",
    }
}

/// One value as a table shows it.
fn cell_text(cell: &Cell, kind: CellKind, screen: &Screen) -> String {
    match (cell, kind) {
        (Cell::Time(time), _) => relative(*time, screen.now),
        (Cell::Number(seconds), CellKind::Seconds) => duration((*seconds).max(0) as u64),
        (Cell::Text(text), CellKind::Name) => plain::escape(&short(text)),
        (cell, _) => plain::escape(&cell.plain()),
    }
}

/// Shortens a reference (without its hash), an id (its end) or a digest (its start).
pub fn short(text: &str) -> String {
    let is_tag = |tag: &str| tag.len() == 4 && tag.bytes().all(|b| b.is_ascii_hexdigit());
    if let Some((reference, tag)) = text.split_once('@')
        && is_tag(tag)
    {
        return reference.to_owned();
    }
    let is_digest = |hex: &str| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    match text.split_once(':') {
        Some((kind, id)) if parse_ulid(id).is_some() => format!("{kind}:…{}", &id[id.len() - 6..]),
        Some((kind, hex)) if is_digest(hex) => format!("{kind}:{}…", &hex[..12]),
        None if parse_ulid(text).is_some() => format!("…{}", &text[text.len() - 6..]),
        _ => text.to_owned(),
    }
}

/// `5m ago`, `in 2h`, or the date if it is more than a month away.
pub fn relative(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.0.saturating_sub(time.0);
    match seconds {
        0..=1 => "now".to_owned(),
        2..=2_592_000 => format!("{} ago", duration(seconds as u64)),
        -2_592_000..=-1 => format!("in {}", duration(seconds.unsigned_abs())),
        _ => time.to_string().chars().take("2026-01-31".len()).collect(),
    }
}

/// `42s`, `5m`, `1h 3m`, `2d 4h`.
fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m"),
        (0, hours, 0) => format!("{hours}h"),
        (0, hours, minutes) => format!("{hours}h {minutes}m"),
        (days, 0, _) => format!("{days}d"),
        (days, hours, _) => format!("{days}d {hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::reply::{Status, row};

    fn screen(columns: usize) -> Screen {
        let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        Screen { columns: Some(columns), colours: false, now }
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn a_list_is_a_table_with_short_references_and_times_from_now() {
        let (later, earlier) = (at("2026-01-31T11:55:00Z"), at("2026-01-29T08:00:00Z"));
        let rows = [
            row![
                "task:01KG9YS7G0WRTVCH7P9FWWHB94",
                "T-0001@a13c",
                "Running",
                "Login form",
                "agent:b",
                None::<String>,
                None::<String>,
                later,
                None::<Timestamp>,
                at("2026-01-31T12:15:00Z")
            ],
            row![
                "task:01KG9YS7G0WRTVCH7P9FWWHB95",
                "T-0002@b24d",
                "Ready",
                "ログイン画面を作る",
                None::<String>,
                None::<String>,
                None::<String>,
                earlier
            ],
        ];
        let rows = rows.map(|row| row.whole(json!({})));
        let reply = Reply::new(Status::Ok, "2 tasks").with_rows(Key::Entity, rows);
        assert_eq!(
            render(&reply, &screen(80)),
            "OK  2 tasks\n\
             REF     STATUS   HOLDER   CREATED    UNTIL   TITLE\n\
             T-0001  Running  agent:b  5m ago     in 15m  Login form\n\
             T-0002  Ready             2d 4h ago          ログイン画面を作る\n"
        );
    }

    #[test]
    fn no_line_of_a_table_is_wider_than_the_screen() {
        let long = "作業 of a very long title ".repeat(20);
        let rows =
            (0..3).map(|_| row!["task:x", None::<String>, "Ready", long.as_str(), long.as_str()].whole(json!({})));
        let reply = Reply::new(Status::Ok, "3").with_rows(Key::Entity, rows);
        for columns in [30, 40, 80, 120] {
            for line in render(&reply, &screen(columns)).lines() {
                assert!(line.width() <= columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn times_are_relative_and_durations_are_short() {
        let now = at("2026-01-31T12:00:00Z");
        for (time, shown) in [
            ("2026-01-31T12:00:00Z", "now"),
            ("2026-01-31T11:59:18Z", "42s ago"),
            ("2026-01-31T10:57:00Z", "1h 3m ago"),
            ("2026-01-31T14:00:00Z", "in 2h"),
            ("2025-06-01T12:00:00Z", "2025-06-01"),
        ] {
            assert_eq!(relative(at(time), now), shown);
        }
        assert_eq!(duration(0), "0s");
        assert_eq!(duration(2 * 86_400), "2d");
    }

    #[test]
    fn no_value_steers_the_terminal() {
        let evil = "x\n\u{1b}[2J\u{2028}y";
        let reply = Reply::new(Status::Ok, evil)
            .with(Key::Goal, evil)
            .with_texts(Key::Advice, [evil])
            .with_lines(Key::Last5, vec![evil.to_owned()])
            .with_rows(Key::Fact, [row![evil, evil].whole(json!({}))]);
        let shown = render(&reply, &screen(200));
        assert!(!shown.chars().any(|c| c != '\n' && plain::is_unsafe(c)), "{shown:?}");
        assert_eq!(shown.lines().count(), 8);
    }

    #[test]
    fn the_next_step_is_a_command_of_hf() {
        let reply = Reply::new(Status::Ok, "x").next(Next::run("hf-task").word("claim"));
        assert!(render(&reply, &screen(80)).ends_with("next: hf task claim\n"));
        let reply = Reply::new(Status::Ok, "x").next(Next::OPERATOR);
        assert!(render(&reply, &screen(80)).ends_with("next: ask an operator\n"));
    }

    #[test]
    fn colours_are_used_only_if_the_screen_has_them() {
        let reply = Reply::new(Status::Ok, "x");
        assert_eq!(render(&reply, &screen(80)), "OK  x\n");
        assert_eq!(render(&reply, &Screen { colours: true, ..screen(80) }), "\x1b[32mOK\x1b[0m  x\n");
    }

    #[test]
    fn free_text_is_shown_unchanged() {
        for text in
            ["mail bob@cafe", "2026-01-31T12:00:00Z", "01KG9YS7G0WRTVCH7P9FWWHB94", "task:01KG9YS7G0WRTVCH7P9FWWHB94"]
        {
            let task = row!["task:x", "T-0001@a13c", "Ready", text].whole(json!({}));
            let fact = row!["title", text].whole(json!({}));
            let reply = Reply::new(Status::Ok, "x").with_rows(Key::Entity, [task]).with_rows(Key::Fact, [fact]);
            let shown = render(&reply, &screen(80));
            assert_eq!(shown.matches(text).count(), 2, "{shown}");
            assert!(!shown.contains("@a13c"), "{shown}");
        }
    }

    #[test]
    fn a_fact_shows_references_and_relative_times() {
        let facts = [
            row!["target", "task:01KG9YS7G0WRTVCH7P9FWWHB94", "T-0001"],
            row!["requested_at", at("2026-01-31T11:55:00Z")],
            row!["last_event_id", "01KG9YS7G0WRTVCH7P9FWWHB94"],
        ];
        let reply = Reply::new(Status::Ok, "x").with_rows(Key::Fact, facts.map(|fact| fact.whole(json!({}))));
        assert_eq!(
            render(&reply, &screen(80)),
            "OK  x\nNAME          VALUE\ntarget        T-0001\nrequested_at  5m ago\n"
        );
    }

    #[test]
    fn characters_that_change_the_width_of_others_are_cut_as_a_whole() {
        for text in ["☺\u{fe0f}".repeat(30), "👩\u{200d}🚀".repeat(20), "e\u{301}".repeat(50), "作業".repeat(30)]
        {
            for width in 1..60 {
                assert!(cut(&text, width).width() <= width.max(1), "{width}: {text}");
            }
        }
    }

    #[test]
    fn a_long_sentence_is_broken_at_its_spaces() {
        let reply = Reply::new(Status::Ok, "x").with_texts(Key::Because, ["one two three four five six seven"]);
        assert_eq!(render(&reply, &screen(20)), "OK  x\nbecause\n  - one two three\n    four five six\n    seven\n");
    }
}
