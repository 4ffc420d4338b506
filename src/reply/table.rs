//! The reply for a person at a terminal: a sentence, then pairs and tables, in as many columns as there are.
//!
//! Nothing is said here that the other renderings do not say; ids that only programs need are left out, and
//! times are told from now.

use unicode_width::UnicodeWidthStr;

use super::value::{Column, Kind, Said};
use super::{Audience, Cell, Field, Key, Next, Reply, Row, Shape, Value, text};
use crate::base::{Timestamp, text as plain};
use crate::event::parse_ulid;

/// Columns of a terminal that does not say how many it has.
const DEFAULT_COLUMNS: usize = 80;
/// No column of a table is cut to less than this.
const NARROWEST: usize = 8;
/// Between two columns.
const GAP: usize = 2;

/// What a person looks at.
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

/// The whole reply, with its line ends.
pub fn render(reply: &Reply, screen: &Screen) -> String {
    let status = screen.paint(colour_of_exit(reply.exit), reply.status.as_str());
    let mut out = format!("{status}  {}\n", plain::escape(&reply.sum));
    let shown: Vec<&Field> = reply.fields.iter().filter(|field| is_shown(reply, field)).collect();
    let pairs: Vec<(&str, String)> = shown.iter().filter_map(|field| pair(field, screen)).collect();
    let widest = pairs.iter().map(|(label, _)| label.width()).max().unwrap_or(0);
    for (label, value) in &pairs {
        let label = format!("{label:<widest$}").replace('_', " ");
        out += &format!("  {}  {value}\n", screen.paint(DIM, &label));
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

/// Whether a person needs a field.
fn is_shown(reply: &Reply, field: &Field) -> bool {
    let named = reply.field(Key::Ref).is_some() || reply.field(Key::State).is_some();
    field.audience != Audience::Json
        && field.key.entry().for_people
        && (field.key != Key::Subject || !named)
        // The sentence says it already.
        && !(matches!(field.key, Key::State | Key::Ref) && reply.sum.contains(" is "))
}

/// The next step in a person's words.
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

/// A field that fits beside its name.
fn pair<'a>(field: &'a Field, screen: &Screen) -> Option<(&'a str, String)> {
    let label = field.key.entry().json;
    let value = match &field.value {
        Value::One(cell) => said(cell, kind_of(field.key), screen),
        Value::Counts(counts) if counts.is_empty() => return None,
        Value::Counts(counts) => {
            let words: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
            words.join(", ")
        }
        Value::Rows(rows) if matches!(field.key.shape(), Shape::Row(_)) => {
            let columns = field.key.shape().columns();
            let cells = rows.first().into_iter().flat_map(|row| columns.iter().zip(&row.cells));
            let words: Vec<String> = cells
                // A time is told from now already.
                .filter(|(column, cell)| cell.is_some() && column.name != "age_seconds")
                .map(|(column, cell)| said(cell, column.kind, screen))
                .collect();
            words.join("  ")
        }
        _ => return None,
    };
    Some((label, value))
}

fn kind_of(key: Key) -> Kind {
    match key {
        Key::UptimeSeconds | Key::ElapsedS => Kind::Seconds,
        _ => Kind::Text,
    }
}

/// A field that takes lines of its own.
fn block(field: &Field, screen: &Screen) -> String {
    let heading = |count: usize| {
        let label = field.key.entry().json.replace('_', " ");
        if count == 0 { String::new() } else { format!("{}\n", screen.paint(DIM, &label)) }
    };
    match &field.value {
        Value::Texts(texts) => {
            let lines = texts.iter().map(|text| format!("  - {}\n", plain::escape(text)));
            heading(texts.len()) + &lines.collect::<String>()
        }
        Value::Lines(lines) => {
            let lines: String = lines.iter().map(|line| format!("  | {}\n", text::foreign(line))).collect();
            heading(lines.len()) + &lines
        }
        Value::Rows(rows) if matches!(field.key.shape(), Shape::Rows(_)) => {
            table(field.key.shape().columns(), rows, screen)
        }
        _ => String::new(),
    }
}

/// Columns that only programs need.
const FOR_PROGRAMS: &[&str] = &["event_id", "run_id", "logref"];

/// The columns that a person wants, in the order of a table: the short ones first, the text that is read
/// last at the end. What has a reference is named by that, so subject and reference are one column.
fn wanted(columns: &'static [Column], rows: &[Row]) -> Vec<usize> {
    let both = columns.iter().any(|column| column.name == "subject");
    let is_wanted = |n: &usize| {
        let name = columns[*n].name;
        let is_said_as_subject = name == "ref" && both;
        !FOR_PROGRAMS.contains(&name) && !is_said_as_subject && rows.iter().any(|row| cell(columns, row, *n).is_some())
    };
    let last = columns.iter().rposition(|column| column.said == Said::Plain).unwrap_or(0);
    (0..columns.len()).filter(|n| *n != last).chain([last]).filter(is_wanted).collect()
}

/// A cell of a row; for its subject the reference, where it has one.
fn cell<'a>(columns: &[Column], row: &'a Row, n: usize) -> &'a Cell {
    let at = |name: &str| columns.iter().position(|column| column.name == name).and_then(|n| row.cells.get(n));
    let reference = at("ref").filter(|cell| cell.is_some() && columns[n].name == "subject");
    reference.or(row.cells.get(n)).unwrap_or(&Cell::None)
}

fn table(columns: &'static [Column], rows: &[Row], screen: &Screen) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let order = wanted(columns, rows);
    let line = |row: &Row| -> Vec<String> {
        let cells = order.iter().map(|n| (columns[*n].kind, cell(columns, row, *n)));
        cells.map(|(kind, cell)| if cell.is_some() { said(cell, kind, screen) } else { String::new() }).collect()
    };
    let heads: Vec<String> = order.iter().map(|n| head(columns[*n].name)).collect();
    let lines: Vec<Vec<String>> = rows.iter().map(line).collect();
    let mut widths: Vec<usize> =
        (0..order.len()).map(|n| lines.iter().chain([&heads]).map(|line| line[n].width()).max().unwrap_or(0)).collect();
    fit(&mut widths, screen.width());
    let paint_head = |_: usize, text: &str| screen.paint(DIM, text);
    let mut out = row_line(&heads, &widths, &paint_head);
    for line in &lines {
        let paint = |n: usize, text: &str| match columns[order[n]].name {
            "status" | "level" => screen.paint(colour_of_state(&line[n]), text),
            "ref" | "subject" | "task" => screen.paint(BOLD, text),
            _ => text.to_owned(),
        };
        out += &row_line(line, &widths, &paint);
    }
    out
}

/// `created_at` is a person's `created`.
fn head(name: &str) -> String {
    let name = name.strip_suffix("_at").or(name.strip_suffix("_seconds")).unwrap_or(name);
    let name = match name {
        "seconds" => "time",
        "subject" => "ref",
        "timestamp" => "when",
        "event_type" => "event",
        name => name,
    };
    name.replace('_', " ").to_uppercase()
}

/// Takes from the widest column until the line fits.
fn fit(widths: &mut [usize], columns: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    loop {
        let total: usize = widths.iter().sum::<usize>() + gaps;
        let Some(over) = total.checked_sub(columns).filter(|over| *over > 0) else { return };
        let Some(widest) = widths.iter_mut().max_by_key(|width| **width).filter(|width| **width > NARROWEST) else {
            return;
        };
        *widest -= over.min(*widest - NARROWEST).min((*widest / 4).max(1));
    }
}

fn row_line(cells: &[String], widths: &[usize], paint: &dyn Fn(usize, &str) -> String) -> String {
    let mut line = String::new();
    for (n, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let text = cut(cell, *width);
        let room = width - text.width();
        line += &paint(n, &text);
        if n + 1 < cells.len() {
            line += &" ".repeat(room + GAP);
        }
    }
    format!("{}\n", line.trim_end())
}

/// The beginning of a text that fits so many columns.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if short.width() + c.to_string().width() + 1 > width {
            break;
        }
        short.push(c);
    }
    short + "…"
}

/// Green where work goes on or went well, red where it did not, yellow where somebody waits.
fn colour_of_state(state: &str) -> &'static str {
    match state {
        "Running" | "RUNNING" | "Active" | "Succeeded" | "DONE" | "Approved" | "Implemented" | "Verified"
        | "Validated" | "OK" | "Finished" => GREEN,
        "Failed" | "FAIL" | "LOST" | "Aborted" | "Rejected" | "Crashed" | "TimedOut" | "Invalidated" | "Corrupted"
        | "error" | "CHANGED" | "MISSING" | "Blocked" => RED,
        "Requested" | "Escalated" | "Retrying" | "QUEUED" | "ORPHANED" | "Paused" | "warning" | "warn" | "Unread" => {
            YELLOW
        }
        _ => "",
    }
}

/// One value in a person's words.
fn said(cell: &Cell, kind: Kind, screen: &Screen) -> String {
    match (cell, kind) {
        (Cell::Time(time), _) => relative(*time, screen.now),
        (Cell::Number(seconds), Kind::Seconds) => duration((*seconds).max(0) as u64),
        (Cell::Text(text), _) => match Timestamp::parse(text) {
            Some(time) => relative(time, screen.now),
            None => plain::escape(&short(text)),
        },
        (cell, _) => plain::escape(&cell.plain()),
    }
}

/// A reference without its hash, and an id that is only an id by its end.
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

/// `5m ago`, `in 2h`, or the day where that says more.
pub fn relative(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.0.saturating_sub(time.0);
    match seconds {
        0..=1 => "now".to_owned(),
        // After a month a date says more.
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
        let rows = [
            row![
                "task:01KG9YS7G0WRTVCH7P9FWWHB94",
                "T-0001@a13c",
                "Running",
                "Login form",
                "agent:b",
                at("2026-01-31T11:55:00Z"),
                at("2026-01-31T12:15:00Z")
            ],
            row![
                "task:01KG9YS7G0WRTVCH7P9FWWHB95",
                "T-0002@b24d",
                "Ready",
                "ログイン画面を作る",
                None::<String>,
                at("2026-01-29T08:00:00Z")
            ],
        ];
        let reply = Reply::new(Status::Ok, "2 tasks").with_rows(Key::Entity, rows);
        assert_eq!(
            render(&reply, &screen(80)),
            "OK  2 tasks\n\
             REF     STATUS   HOLDER   CREATED    LEASE UNTIL  TITLE\n\
             T-0001  Running  agent:b  5m ago     in 15m       Login form\n\
             T-0002  Ready             2d 4h ago               ログイン画面を作る\n"
        );
    }

    #[test]
    fn no_line_of_a_table_is_wider_than_the_screen() {
        let long = "作業 of a very long title ".repeat(20);
        let rows = (0..3).map(|_| row!["task:x", None::<String>, "Ready", long.as_str(), long.as_str()]);
        let reply = Reply::new(Status::Ok, "3").with_rows(Key::Entity, rows);
        for columns in [40, 80, 120] {
            for line in render(&reply, &screen(columns)).lines() {
                assert!(line.width() <= columns, "{columns}: {line}");
            }
        }
    }

    #[test]
    fn times_and_durations_are_told_in_a_persons_words() {
        let now = at("2026-01-31T12:00:00Z");
        for (time, said) in [
            ("2026-01-31T12:00:00Z", "now"),
            ("2026-01-31T11:59:18Z", "42s ago"),
            ("2026-01-31T10:57:00Z", "1h 3m ago"),
            ("2026-01-31T14:00:00Z", "in 2h"),
            ("2025-06-01T12:00:00Z", "2025-06-01"),
        ] {
            assert_eq!(relative(at(time), now), said);
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
            .with_rows(Key::Fact, [row![evil, evil]]);
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
    fn colours_are_given_only_where_they_are_wanted() {
        let reply = Reply::new(Status::Ok, "x");
        assert_eq!(render(&reply, &screen(80)), "OK  x\n");
        assert_eq!(render(&reply, &Screen { colours: true, ..screen(80) }), "\x1b[32mOK\x1b[0m  x\n");
    }
}
