//! Limits that are visible from outside (in the log, in files, replies and options) or shared by several modules. A
//! limit that is a detail of one module is a constant there. Names end with their unit, if there is one.

/// An event's line, including `hash` and the line end. Larger ones are refused.
pub const EVENT_MAX_BYTES: usize = 1024 * 1024;
/// A larger payload is recorded with a warning that suggests hf-artifact.
pub const PAYLOAD_WARN_BYTES: usize = 64 * 1024;
/// Nesting depth of an event; the envelope is the first level.
pub const EVENT_MAX_DEPTH: usize = 32;
/// Larger integers are not exact in every JSON reader.
pub const INTEGER_MAX: i64 = (1 << 53) - 1;
/// All settings together, as they are recorded in an event.
pub const SETTINGS_MAX_BYTES: usize = 64 * 1024;
/// Settings file, comments included.
pub const SETTINGS_FILE_MAX_BYTES: u64 = 1024 * 1024;
/// A user's list of trusted vaults.
pub const TRUST_FILE_MAX_BYTES: u64 = 4 * 1024 * 1024;
/// Vaults in it; from here on those that no longer exist are left out.
pub const TRUSTED_MAX_COUNT: usize = 1000;
/// The consequences of a request are recorded in its batch until that has this many events; the rest goes into
/// further batches.
pub const CASCADE_MAX_EVENTS: usize = 1000;
/// Events in one batch.
pub const BATCH_MAX_EVENTS: usize = 10_000;
/// All lines of a batch, read or written.
pub const BATCH_MAX_BYTES: usize = 16 * 1024 * 1024;
/// The content of an artifact.
pub const ARTIFACT_MAX_BYTES: u64 = 16 * 1024 * 1024 * 1024;
/// Agents that are active at the same time: each has a directory, and every tick of the watchdog looks at all of them.
pub const AGENTS_MAX_COUNT: u64 = 1000;
/// Jobs that wait for their turn, an approval or a retry, each with a supervisor process.
pub const JOBS_WAITING_MAX_COUNT: u64 = 1000;
/// A file that a command names, if an approval is to bind its content.
pub const BOUND_FILE_MAX_BYTES: u64 = 64 * 1024 * 1024;
/// All such files of a command.
pub const BOUND_FILES_MAX_BYTES: u64 = 256 * 1024 * 1024;
/// What an operator is shown of a command that requires approval: its words, variables and files, and some more for each
/// file that may change.
pub const BOUND_MAX_BYTES: usize = 32 * 1024;
/// The same after they have changed: a statement must have room for it.
pub const BOUND_CHANGED_MAX_BYTES: usize = 56 * 1024;
/// A text that a statement has in full. Escaped it can be four times as long, and a statement has at most 64 KiB.
pub const STATED_TEXT_MAX_BYTES: usize = 4 * 1024;
/// Operators' keys of a vault.
pub const OPERATOR_KEYS_MAX_COUNT: usize = 16;
/// Events of a stream that are recorded together.
pub const STREAM_COMMIT_EVENTS: usize = 1_000;
/// Parents of one event.
pub const PARENTS_MAX_COUNT: usize = 100;
/// An idempotency key.
pub const KEY_MAX_BYTES: usize = 256;
/// The id part of a subject.
pub const ID_MAX_CHARS: usize = 64;
/// The same in bytes.
pub const ID_MAX_BYTES: usize = 128;
/// Events or entities on one page of a list.
pub const PAGE_MAX_COUNT: usize = 500;
/// The same by default.
pub const PAGE_DEFAULT_COUNT: usize = 100;
/// How long a command waits for the vault's lock by default.
pub const LOCK_TIMEOUT_DEFAULT_SECONDS: u64 = 10;
/// How often an event is sent to a hook that fails, before it is skipped.
pub const HOOK_ATTEMPTS_MAX_COUNT: u64 = 3;
/// The shortest time between two attempts, whichever process makes them.
pub const HOOK_RETRY_SECONDS: i64 = 30;
/// The longest duration that can be given: ten years.
pub const DURATION_MAX_SECONDS: u64 = 10 * 365 * 24 * 60 * 60;
/// The head record, padded to this size and rewritten in place.
pub const HEAD_RECORD_BYTES: usize = 512;
/// The record of the stop flag, padded to this size and rewritten in place.
pub const CONTROL_RECORD_BYTES: usize = 2048;
/// Tasks in progress at the same time, whatever the settings say: a stop ends them all in one batch, each with its
/// run and its branch.
pub const TASKS_AT_ONCE_MAX_COUNT: u64 = 2000;
/// The summary of an event in a listing.
pub const SUMMARY_MAX_CHARS: usize = 80;
/// Projection files up to this size are rewritten with every event that changes them.
pub const PROJECTION_SMALL_BYTES: usize = 64 * 1024;
/// A line of quoted text in a reply.
pub const BLOCK_LINE_MAX_CHARS: usize = 400;
/// Texts that an agent reads at a glance: a state file, a review.
pub const SHORT_MAX_WORDS: usize = 200;
/// The same limit for languages without spaces.
pub const SHORT_MAX_BYTES: usize = 2000;
/// Rounds of a mission, and of a debate.
pub const ROUNDS_MAX_COUNT: u64 = 4;
/// Rounds that an operator can add to those of a mission at a time.
pub const ROUNDS_ADDED_MAX_COUNT: u64 = 100;
/// Tasks of a mission's plan.
pub const PLAN_TASKS_MAX_COUNT: usize = 100;
/// Constraints of a mission.
pub const CONSTRAINTS_MAX_COUNT: usize = 3;
/// The steps of a task.
pub const STEPS_MAX_COUNT: usize = 50;
/// How many former holders a task keeps.
pub const PAST_HOLDERS_MAX_COUNT: usize = 8;
/// A text of a payload as an entity keeps it; longer ones are cut in the entity, not in the event.
pub const FACT_MAX_CHARS: usize = 1000;
/// How many of a thread's last events it keeps by id.
pub const TAIL_MAX_COUNT: usize = 20;
/// How many of the last threads of other branches the root keeps.
pub const ANCHORS_MAX_COUNT: usize = 10;
/// Personas that are introduced to each other automatically; any others, when one first writes to another.
pub const PERSONAS_MAX_COUNT: usize = 32;
/// Changes that a persona has not reacted to, by event.
pub const CHANGES_MAX_COUNT: usize = 10;
/// The title of a page of knowledge.
pub const TITLE_MAX_CHARS: usize = 80;
/// The summary of a branch in one line.
pub const BRIEF_MAX_CHARS: usize = 120;
/// A thread's text up to this length is stored in its event; a longer one becomes an artifact.
pub const INLINE_MAX_CHARS: usize = 2000;
/// The command in a line of a crontab: the least that any version of cron allows.
pub const CRON_COMMAND_MAX_BYTES: usize = 998;
/// How many of an agent's latest files of each sort are remembered by name; older ones are known by their time.
pub const FILES_KNOWN_MAX_COUNT: usize = 64;
/// How far the time in a heartbeat id may be ahead of the event that records it.
pub const ID_AHEAD_MAX_SECONDS: i64 = 120;
