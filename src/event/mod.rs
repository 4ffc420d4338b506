//! Events: the closed list of kinds, the envelope and its hash, and strict parsing of JSON input.

mod envelope;
pub mod intake;
pub mod kind;
mod lift;
mod row;
pub mod schema;

pub use envelope::{BatchPosition, Draft, Event, EventType, SCHEMA_VERSION, check_callers_key, check_key, parse_ulid};
pub use kind::Kind;
pub use lift::lift;
