//! Every limit of the toolkit, each with its unit last.

/// An event's line, `hash` and line end included. Past it, intake refuses.
pub const EVENT_MAX_BYTES: usize = 1024 * 1024;
/// A payload past this size is taken with a warning that names hf-artifact.
pub const PAYLOAD_WARN_BYTES: usize = 64 * 1024;
/// Nested containers in an event; the envelope is the first level.
pub const EVENT_MAX_DEPTH: usize = 32;
/// Integers beyond this are not exact in every JSON reader.
pub const INTEGER_MAX: i64 = (1 << 53) - 1;
/// What all settings together may take up in an event.
pub const SETTINGS_MAX_BYTES: usize = 64 * 1024;
/// What follows from one request is recorded in one batch up to here, and in further ones beyond.
pub const CASCADE_MAX_EVENTS: usize = 1000;
/// Events in one batch.
pub const BATCH_MAX_EVENTS: usize = 10_000;
/// Bytes of a batch's lines, read or written.
pub const BATCH_MAX_BYTES: usize = 16 * 1024 * 1024;
/// Events of a stream that are committed together.
pub const STREAM_COMMIT_EVENTS: usize = 1_000;
/// Parents of one event.
pub const PARENTS_MAX_COUNT: usize = 100;
/// An idempotency key.
pub const KEY_MAX_BYTES: usize = 256;
/// The id part of a subject.
pub const ID_MAX_CHARS: usize = 64;
/// Events on one page of hf-log.
pub const LOG_PAGE_MAX_EVENTS: usize = 500;
/// Events on one page of hf-log if nothing is said.
pub const LOG_PAGE_DEFAULT_EVENTS: usize = 100;
/// How long a command waits for the vault's lock if nothing is said.
pub const LOCK_TIMEOUT_DEFAULT_SECONDS: u64 = 10;
/// The longest time that can be asked for: ten years.
pub const DURATION_MAX_SECONDS: u64 = 10 * 365 * 24 * 60 * 60;
/// The head record, padded to this size and written in place.
pub const HEAD_RECORD_BYTES: usize = 512;
/// The stop flag's record, of a fixed size and written in place.
pub const CONTROL_RECORD_BYTES: usize = 2048;
/// Tasks that may be under way at once, whatever the settings say: a stop ends them in one batch, each
/// with its run and its branch.
pub const TASKS_AT_ONCE_MAX_COUNT: u64 = 2000;
/// The short text behind an event in a listing.
pub const SUMMARY_MAX_CHARS: usize = 80;
/// A projection file up to this size is rewritten with every event that touches it.
pub const PROJECTION_SMALL_BYTES: usize = 64 * 1024;
/// A line of a block from elsewhere.
pub const BLOCK_LINE_MAX_CHARS: usize = 400;
/// What an agent has to read at a glance: a state file, a reply of a reviewer.
pub const SHORT_MAX_WORDS: usize = 200;
/// The same for languages without spaces.
pub const SHORT_MAX_BYTES: usize = 2000;
/// Rounds of a mission, and of a debate.
pub const ROUNDS_MAX_COUNT: u64 = 4;
/// Constraints of a mission.
pub const CONSTRAINTS_MAX_COUNT: usize = 3;
/// Former holders that a task remembers.
pub const PAST_HOLDERS_MAX_COUNT: usize = 8;
/// A text of a payload as an entity remembers it; longer ones are cut there, not in the event.
pub const FACT_MAX_CHARS: usize = 1000;
/// The last messages of a thread that it remembers by their events.
pub const TAIL_MAX_COUNT: usize = 20;
/// The last threads of other branches that the root remembers.
pub const ANCHORS_MAX_COUNT: usize = 10;
/// Personas that get to know each other by themselves; the others when one first tells another something.
pub const PERSONAS_MAX_COUNT: usize = 32;
/// How a branch stands, in one line.
pub const BRIEF_MAX_CHARS: usize = 120;
/// A text of a thread that stays in its event; a longer one is an artifact.
pub const INLINE_MAX_CHARS: usize = 2000;
