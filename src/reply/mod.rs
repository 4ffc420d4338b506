//! Replies: an outcome becomes a `Reply`, and a `Reply` becomes text, JSON or a table.
//!
//! | module | contents |
//! |---|---|
//! | `key`, `status` | the tables of keys and statuses; the manual and the schema are generated from them |
//! | `value`, `next` | values, rows with named columns, and the next step |
//! | `text`, `json`, `table` | renderings: for scripts and agents, for programs, for a terminal |
//! | `schema` | the JSON Schema of every reply |
//! | `error` | the reply for an error, with its next step |
//! | `standing` | what every reply says during a stop or a pause |
//! | the others | the replies of each noun's outcomes |
//!
//! Invariant: a reply is a value. Nothing here prints, so a test can get a reply without starting a process.

mod agent;
mod append;
mod artifact;
pub mod branch;
mod config;
mod entity;
mod error;
mod event;
pub mod graph;
mod job;
mod json;
pub mod key;
mod list;
mod mission;
mod next;
mod project;
mod reference;
mod review;
pub mod schema;
mod session;
mod sign;
mod standing;
mod status;
mod stop;
mod system;
pub mod table;
mod text;
pub mod value;
mod verify;
mod watchdog;

use crate::base::Actor;

pub use append::{Appended, Streamed};
pub use entity::sentence;
pub use error::{of_error, of_failure};
pub use event::row as event_row;
pub use key::Key;
pub use list::Page;
pub use next::{Next, SafeWord};
pub use status::Status;
pub use text::list_line;
pub(crate) use value::row;
pub use value::{Audience, Cell, Field, Row, Shape, Value};

/// An outcome with a reply.
pub trait Replies {
    fn reply(&self) -> Reply;
}

/// One reply: the four lines that every reply has, then its own fields in order.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The exit code: that of the status, unless the reply sets another.
    pub exit: u8,
    pub status: Status,
    pub next: Next,
    pub sum: String,
    pub fields: Vec<Field>,
    /// Warnings for standard error; not part of the reply itself.
    pub warnings: Vec<String>,
    /// The actor of the next step, if it is not the one that the caller's flags name.
    pub acting: Option<Actor>,
    /// Whether it takes a stop, a pause or the end of a session into account already.
    tells_standing: bool,
}

impl Reply {
    pub fn new(status: Status, sum: impl Into<String>) -> Self {
        Reply {
            exit: status.exit(),
            status,
            next: Next::None,
            sum: sum.into(),
            fields: Vec::new(),
            warnings: Vec::new(),
            acting: None,
            tells_standing: false,
        }
    }

    /// Replaces the status, and the exit code that belongs to it.
    pub fn status(self, status: Status) -> Self {
        Reply { exit: status.exit(), status, ..self }
    }

    pub fn next(mut self, next: Next) -> Self {
        self.next = next;
        self
    }

    /// Sets an exit code that differs from that of the status.
    pub fn exit(mut self, exit: u8) -> Self {
        self.exit = exit;
        self
    }

    /// Adds a key with one value.
    pub fn with(self, key: Key, value: impl Into<Cell>) -> Self {
        let value = value.into();
        match key.shape() {
            Shape::Texts => self.put(key, Value::Texts(vec![value.plain()]), Audience::Everyone),
            _ => self.put(key, Value::One(value), Audience::Everyone),
        }
    }

    /// Adds a key if there is a value.
    pub fn with_some(self, key: Key, value: Option<impl Into<Cell>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Adds a time that is stored as text.
    pub fn with_time(self, key: Key, value: Option<&str>) -> Self {
        self.with_some(key, value.map(Cell::time))
    }

    /// Adds a repeating key, with one text each time.
    pub fn with_texts(self, key: Key, texts: impl IntoIterator<Item = impl ToString>) -> Self {
        let texts = texts.into_iter().map(|text| text.to_string()).collect();
        self.put(key, Value::Texts(texts), Audience::Everyone)
    }

    /// The same; if the reply has texts of this key already, those that are new follow them.
    pub fn and_texts(mut self, key: Key, texts: impl IntoIterator<Item = impl ToString>) -> Self {
        let more = texts.into_iter().map(|text| text.to_string());
        match self.fields.iter_mut().find(|field| field.key == key) {
            Some(Field { value: Value::Texts(known), .. }) => {
                for text in more {
                    if !known.contains(&text) {
                        known.push(text);
                    }
                }
                self
            }
            _ => self.with_texts(key, more),
        }
    }

    /// Adds a repeating key, with one row each time.
    pub fn with_rows(self, key: Key, rows: impl IntoIterator<Item = Row>) -> Self {
        self.put(key, Value::Rows(rows.into_iter().collect()), Audience::Everyone)
    }

    /// Adds rows for text only; JSON has the same in another form.
    pub fn with_text_rows(self, key: Key, rows: impl IntoIterator<Item = Row>) -> Self {
        self.put(key, Value::Rows(rows.into_iter().collect()), Audience::Text)
    }

    /// Adds a key with one row.
    pub fn with_row(self, key: Key, row: Row) -> Self {
        self.put(key, Value::Rows(vec![row]), Audience::Everyone)
    }

    /// Adds a key with one row, if there is one.
    pub fn with_some_row(self, key: Key, row: Option<Row>) -> Self {
        match row {
            Some(row) => self.with_row(key, row),
            None => self,
        }
    }

    /// Adds counts by name.
    pub fn with_counts(self, key: Key, counts: impl IntoIterator<Item = (impl ToString, u64)>) -> Self {
        let counts = counts.into_iter().map(|(name, count)| (name.to_string(), count)).collect();
        self.put(key, Value::Counts(counts), Audience::Everyone)
    }

    /// Adds a block of lines of foreign output.
    pub fn with_lines(self, key: Key, lines: Vec<String>) -> Self {
        self.put(key, Value::Lines(lines), Audience::Everyone)
    }

    /// Adds a value for JSON only.
    pub fn with_json(self, key: Key, value: Value) -> Self {
        self.put(key, value, Audience::Json)
    }

    fn put(mut self, key: Key, value: Value, audience: Audience) -> Self {
        debug_assert!(self.field(key).is_none(), "{key} is set twice");
        debug_assert!(fits(key.shape(), &value), "{key} cannot have the value {value:?}");
        self.fields.push(Field { key, value, audience });
        self
    }

    /// The field with this key.
    pub fn field(&self, key: Key) -> Option<&Field> {
        self.fields.iter().find(|field| field.key == key)
    }

    pub fn warn(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// Sets the actor of the next step.
    pub fn acting(mut self, actor: Actor) -> Self {
        self.acting = Some(actor);
        self
    }
}

/// Whether a value has the shape that the table promises for its key.
fn fits(shape: Shape, value: &Value) -> bool {
    match (shape, value) {
        (Shape::Text, Value::One(Cell::Text(_)))
        | (Shape::Number, Value::One(Cell::Number(_)))
        | (Shape::Time, Value::One(Cell::Time(_) | Cell::Text(_)))
        | (Shape::Flag | Shape::TrueOnly, Value::One(Cell::Flag(_)))
        | (Shape::NumberOf, Value::One(Cell::NumberOf(..)))
        | (Shape::Texts, Value::Texts(_))
        | (Shape::Counts, Value::Counts(_))
        | (Shape::Lines, Value::Lines(_))
        | (Shape::Map, Value::Map(_)) => true,
        (Shape::Row(columns), Value::Rows(rows)) => rows.len() == 1 && rows[0].cells.len() <= columns.len(),
        (Shape::Rows(columns), Value::Rows(rows)) => rows.iter().all(|row| row.cells.len() <= columns.len()),
        (Shape::Objects(columns, _), Value::Rows(rows)) => {
            rows.iter().all(|row| row.cells.len() <= columns.len() && row.whole.is_some())
        }
        _ => false,
    }
}
