//! The parts of a reply: values of a few shapes, and rows with named columns.

use serde_json::{Map, Value as Json, json};

use super::Key;
use crate::base::{Actor, Digest, ShortRef, Subject, Timestamp, Ulid};

/// The form of a key's value in text and in JSON. Readers may rely on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    Text,
    Number,
    Time,
    /// `yes` or `no`; a boolean in JSON.
    Flag,
    /// `true`, or the key is absent.
    TrueOnly,
    /// `2/4`: a number and the total.
    NumberOf,
    /// One record, its columns joined by spaces; an object in JSON.
    Row(&'static [Column]),
    /// Repeats, one text each; an array of strings in JSON.
    Texts,
    /// Repeats, one row each; an array of objects in JSON.
    Rows(&'static [Column]),
    /// Repeats, one row each; in JSON an array of objects of the named definition in the schema.
    Objects(&'static [Column], &'static str),
    /// Repeats, a name and a number each; one object in JSON.
    Counts,
    /// A line with the key alone, then lines of foreign output; an array of strings in JSON.
    Lines,
    /// A map of objects by id, in JSON only.
    Map,
}

impl Shape {
    /// Whether the key may occur several times.
    pub const fn repeats(self) -> bool {
        matches!(self, Shape::Texts | Shape::Rows(_) | Shape::Objects(..) | Shape::Counts)
    }

    /// The columns of a row; empty for the other shapes.
    pub const fn columns(self) -> &'static [Column] {
        match self {
            Shape::Row(columns) | Shape::Rows(columns) | Shape::Objects(columns, _) => columns,
            _ => &[],
        }
    }
}

/// A column of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    pub name: &'static str,
    pub kind: CellKind,
    pub in_text: InText,
}

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// Free text, or a word.
    Text,
    /// A reference, a subject or an id; tables shorten it.
    Name,
    Number,
    Percent,
    Seconds,
    Time,
    Counts,
}

/// How a line of text shows a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InText {
    /// The value alone.
    Value,
    /// `name=value`.
    Named,
    /// The same; left out if there is no value.
    Optional,
    /// Not at all: the column is for JSON and tables; with `Shape::Objects`, for tables only.
    Hidden,
}

/// A column that a line shows as its value.
pub const fn plain(name: &'static str, kind: CellKind) -> Column {
    Column { name, kind, in_text: InText::Value }
}

/// A column that a line shows as `name=value`.
pub const fn named(name: &'static str, kind: CellKind) -> Column {
    Column { name, kind, in_text: InText::Named }
}

/// A column that a line shows as `name=value` if it has a value, and leaves out otherwise.
pub const fn optional(name: &'static str, kind: CellKind) -> Column {
    Column { name, kind, in_text: InText::Optional }
}

/// A column that a line leaves out.
pub const fn hidden(name: &'static str, kind: CellKind) -> Column {
    Column { name, kind, in_text: InText::Hidden }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value: `-` in a line, null in JSON.
    None,
    /// It never happened: `never` in a line, null in JSON.
    Never,
    Text(String),
    Number(i64),
    Percent(f64),
    Time(Timestamp),
    Flag(bool),
    /// A number and the total.
    NumberOf(u64, u64),
    Counts(Vec<(String, u64)>),
}

impl Cell {
    /// The value as a line shows it, not escaped yet.
    pub fn plain(&self) -> String {
        match self {
            Cell::None => "-".to_owned(),
            Cell::Never => "never".to_owned(),
            Cell::Text(text) => text.clone(),
            Cell::Number(number) => number.to_string(),
            Cell::Percent(percent) => format!("{percent:.1}%"),
            Cell::Time(time) => time.to_string(),
            Cell::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            Cell::NumberOf(number, of) => format!("{number}/{of}"),
            Cell::Counts(counts) => {
                let pairs: Vec<String> = counts.iter().map(|(name, count)| format!("{name}={count}")).collect();
                pairs.join(" ")
            }
        }
    }

    /// The value as JSON.
    pub fn json(&self) -> Json {
        match self {
            Cell::None | Cell::Never => Json::Null,
            Cell::Text(text) => json!(text),
            Cell::Number(number) => json!(number),
            Cell::Percent(percent) => json!(percent),
            Cell::Time(time) => json!(time.to_string()),
            Cell::Flag(flag) => json!(flag),
            Cell::NumberOf(number, of) => json!({"number": number, "of": of}),
            Cell::Counts(counts) => counts.iter().map(|(name, count)| (name.clone(), json!(count))).collect(),
        }
    }

    /// Whether there is something to show.
    pub fn is_some(&self) -> bool {
        !matches!(self, Cell::None) && !matches!(self, Cell::Counts(counts) if counts.is_empty())
    }

    /// A time, if the text is one; else the text as it is.
    pub fn time(text: &str) -> Cell {
        Timestamp::parse(text).map_or_else(|| Cell::Text(text.to_owned()), Cell::Time)
    }
}

/// Counts by name, in lower case as in seed 004's get_status.
pub fn counts_json(counts: &[(String, u64)]) -> Json {
    Json::Object(counts.iter().map(|(name, count)| (name.to_lowercase(), json!(count))).collect())
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Cell::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Self {
        Cell::from(number as u64)
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Cell::Number(number)
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Cell::Flag(flag)
    }
}

impl From<Timestamp> for Cell {
    fn from(time: Timestamp) -> Self {
        Cell::Time(time)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::None, Into::into)
    }
}

macro_rules! shown_as_text {
    ($($Type:ty),*) => {
        $(impl From<$Type> for Cell {
            fn from(value: $Type) -> Self {
                Cell::Text(value.to_string())
            }
        })*
    };
}

shown_as_text!(Ulid, Digest, ShortRef, Subject, Actor, &Actor, &Subject);

/// One record, its cells in the order of the key's columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub cells: Vec<Cell>,
    /// The JSON to use instead of the columns, if there is a richer form of the same thing.
    pub whole: Option<Json>,
}

/// A row of cells: `row![entity.name(), entity.state.as_str(), title]`.
macro_rules! row {
    ($($cell:expr),* $(,)?) => {
        $crate::reply::Row::new(vec![$($crate::reply::Cell::from($cell)),*])
    };
}
pub(crate) use row;

impl Row {
    pub fn new(cells: Vec<Cell>) -> Self {
        Row { cells, whole: None }
    }

    /// The row, with this JSON instead of its columns.
    pub fn whole(mut self, whole: Json) -> Self {
        self.whole = Some(whole);
        self
    }

    /// The row as a line: its columns joined by spaces, without trailing ones that have no value.
    pub fn plain(&self, columns: &[Column]) -> String {
        let mut words: Vec<Option<String>> = (columns.iter().zip(&self.cells))
            .filter(|(column, cell)| match column.in_text {
                InText::Value | InText::Named => true,
                InText::Optional => cell.is_some(),
                InText::Hidden => false,
            })
            .map(|(column, cell)| match column.in_text {
                InText::Named | InText::Optional if cell.is_some() => Some(format!("{}={}", column.name, cell.plain())),
                _ if cell.is_some() => Some(cell.plain()),
                _ => None,
            })
            .collect();
        while words.last().is_some_and(Option::is_none) {
            words.pop();
        }
        let words: Vec<String> = words.into_iter().map(|word| word.unwrap_or_else(|| Cell::None.plain())).collect();
        words.join(" ")
    }

    /// The row as an object.
    pub fn json(&self, columns: &[Column]) -> Json {
        match &self.whole {
            Some(whole) => whole.clone(),
            None => {
                let none = &Cell::None;
                let cell = |n: usize| self.cells.get(n).unwrap_or(none);
                let named = columns.iter().enumerate().map(|(n, column)| (column.name.to_owned(), cell(n).json()));
                Json::Object(named.collect::<Map<_, _>>())
            }
        }
    }
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    One(Cell),
    /// One record, or many.
    Rows(Vec<Row>),
    Texts(Vec<String>),
    Counts(Vec<(String, u64)>),
    Lines(Vec<String>),
    Map(Map<String, Json>),
}

/// Which renderings include a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    Everyone,
    /// Text and tables; JSON has it in another form.
    Text,
    /// JSON only.
    Json,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub key: Key,
    pub value: Value,
    pub audience: Audience,
}

impl Field {
    /// The value as JSON.
    pub fn json(&self) -> Json {
        match &self.value {
            Value::One(cell) => cell.json(),
            Value::Rows(rows) => {
                let columns = self.key.shape().columns();
                let mut objects = rows.iter().map(|row| row.json(columns));
                match self.key.shape() {
                    Shape::Row(_) => objects.next().unwrap_or(Json::Null),
                    _ => objects.collect(),
                }
            }
            Value::Texts(texts) => json!(texts),
            Value::Counts(counts) => counts_json(counts),
            Value::Lines(lines) => json!(lines),
            Value::Map(map) => Json::Object(map.clone()),
        }
    }

    /// The values to print, one for each line of the key; not escaped yet.
    pub fn plain(&self) -> Vec<String> {
        let columns = self.key.shape().columns();
        match &self.value {
            Value::One(cell) if self.key.shape() == Shape::TrueOnly => vec![(cell == &Cell::Flag(true)).to_string()],
            Value::One(cell) => vec![cell.plain()],
            Value::Rows(rows) => rows.iter().map(|row| row.plain(columns)).collect(),
            Value::Texts(texts) => texts.clone(),
            Value::Counts(counts) => {
                let some = counts.iter().filter(|(_, count)| *count > 0);
                some.map(|(name, count)| format!("{name} {count}")).collect()
            }
            Value::Lines(_) | Value::Map(_) => Vec::new(),
        }
    }
}
