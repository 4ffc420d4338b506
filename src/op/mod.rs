//! The operations behind the commands, one public function each. All writes and reads go through `kernel`; every other
//! module is named after what it is about.
//!
//! Invariant: an operation is `verb(ctx, VerbRequest) -> Result<VerbOutcome>`, without a request if it has no
//! parameters, and with one more argument if it streams (`every_operation_takes_a_request`).
//! Invariant: no operation prints, parses arguments, reads the environment or the clock, installs a signal handler or
//! executes its own binary; the front end passes everything it needs in a `Context`
//! (`no_operation_reads_its_environment_directly`).

pub mod agent;
mod append;
pub mod artifact;
mod authorize;
mod backup;
mod bound;
pub mod branch;
pub mod config;
pub mod constraint;
pub mod decide;
pub mod document;
mod event;
pub mod hook;
mod init;
pub mod job;
mod kernel;
pub mod key;
mod lineage;
mod log;
pub mod mission;
mod notify;
pub mod pause;
pub mod project;
pub mod require;
pub mod review;
pub mod session;
mod show;
pub mod sign;
mod status;
mod stop;
pub mod task;
mod verify;
mod watchdog;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::base::{Error, Now, Result, Subject, Ulid, limits};
use crate::job::Cancel;
use crate::state::State;
use crate::vault::{Notices, Trust};
use kernel::FindFollowUp;

pub use crate::policy::belief::{Displacement, DisplacementCause};
pub use crate::policy::standing::{Obstacle, Standing};
pub use append::{
    AppendBatchRequest, AppendRequest, AppendStreamRequest, NewEvent, StreamOutcome, append, append_batch,
    append_stream, parse_line,
};
pub use authorize::{ActRequest, StatementOutcome, statement};
pub use backup::{BackupOutcome, BackupRequest, backup};
pub use bound::{BoundLine, BoundState};
pub use event::{ShowEventOutcome, ShowEventRequest, show_event};
pub use init::{InitOutcome, InitRequest, init};
pub use kernel::{
    Caller, CallersSituation, Context, Departure, GivenSignature, Host, Mode, Prompts, Recorded, SeenStanding, Shell,
    Signing, SupervisorProgram, check_actor,
};
pub use lineage::{Edge, LineageOutcome, LineageRequest, Node, lineage};
pub use log::{EventFilter, FollowStep, LogOutcome, LogRequest, LogSource, PageStart, follow, log};
pub use notify::{NotifyRequest, notify};
pub use project::{ListEntry, ListFilter, ListOutcome, ListRequest, Projection};
pub use show::{ShowOutcome, ShowRequest, show};
pub use status::{
    AgentView, Metric, MetricsOutcome, Problem, StatusOutcome, StatusRequest, SystemState, WATCHDOG_INSTALL,
    WATCHDOG_LOOP, metrics, status,
};
pub use stop::{ResumeOutcome, ResumeSystemRequest, StopOutcome, StopRequest, resume_system, stop};
pub use verify::{RecoverOutcome, RecoverRequest, VerifyOutcome, VerifyRequest, recover, verify};
pub use watchdog::{
    DueWarningsRequest, Health, InstallTimerRequest, InstalledTimer, TimerCheck, TimerOutcome, TimerState,
    UninstallTimerRequest, WatchdogOutcome, WatchdogProgram, WatchdogRequest, check_timer, install_timer,
    uninstall_timer, warnings_to_print, watchdog,
};

impl Host {
    /// A host with only a clock. Everything else has its default, and no job can be fired.
    pub fn new(clock: fn() -> Now) -> Host {
        Host {
            clock,
            clocks: || None,
            supervisor: None,
            trust: Trust::default(),
            check_cmd: None,
            poll_as: None,
            search_path: None,
            kept_env: Vec::new(),
            variable: |_| None,
            clock_env: Vec::new(),
            works: None,
            operator_key: None,
            ssh_dir: None,
            temp_dir: PathBuf::from("/tmp"),
            local_offset: |_| 0,
            find_follow_ups: FIND_FOLLOW_UPS,
        }
    }
}

impl Context {
    /// A call on a vault by a caller, with defaults for everything else.
    pub fn new(vault: PathBuf, caller: Caller, host: Host) -> Context {
        Context {
            vault,
            store: None,
            lock_timeout: Duration::from_secs(limits::LOCK_TIMEOUT_DEFAULT_SECONDS),
            caller,
            project: None,
            creates_project: false,
            session: None,
            now: (host.clock)(),
            cancel: Cancel::never(),
            host: Arc::new(host),
            signing: kernel::Signing::default(),
            notices: Notices::default(),
            standing: kernel::SeenStanding::default(),
        }
    }
}

/// What every reply tells the caller about its situation. An operation that opened the vault has found out already.
pub fn callers_situation(ctx: &Context) -> Result<CallersSituation> {
    if let Some(situation) = ctx.standing.get() {
        return Ok(situation);
    }
    let vault = ctx.open()?;
    // A long log without an index is not read for this alone.
    if !vault.has_index() && vault.snapshot()?.count > STANDING_READ_MAX_EVENTS {
        return Ok(CallersSituation::default());
    }
    kernel::Transaction::read_only(ctx, &vault)?;
    Ok(ctx.standing.get().unwrap_or_default())
}

/// How many events are folded only to find out what stands in the way.
const STANDING_READ_MAX_EVENTS: u64 = 10_000;

/// The functions that find follow-ups of a commit.
const FIND_FOLLOW_UPS: &[FindFollowUp] = &[job::wake, notify::start, mission::refresh_file];

/// Short references by subject.
pub type References = BTreeMap<String, String>;

/// The short references of the subjects that have one.
fn references<'a>(state: &State, subjects: impl Iterator<Item = &'a str>) -> References {
    let subjects: BTreeSet<&str> = subjects.collect();
    let name = |subject: &str| {
        let parsed = Subject::parse(subject).ok()?;
        let entity = state.entity(&parsed)?;
        entity.reference().map(|_| (subject.to_owned(), entity.name()))
    };
    subjects.into_iter().filter_map(name).collect()
}

/// A ULID for something that needs an id before it is recorded.
fn random_ulid(now: Now) -> Result<Ulid> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|e| Error::system("cannot get random numbers from the kernel", e))?;
    Ok(Ulid::from_parts(now.millis, u128::from_le_bytes(random) >> 48))
}

/// A random id for something that is not in the log.
fn random_id() -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|e| Error::system("cannot get random numbers from the kernel", e))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
