//! Notifications: hooks that are run for decisions, escalations and ends, once for each event. The hook of a finished
//! job is run by its supervisor, and is notified here of jobs that had none when their end was recorded.
//!
//! ```text
//! commit ── an event of interest? ── a detached process ─┐
//! tick ──── something left to send? ─────────────────────┴─ lock ── log after the cursor ── hook ── cursor
//! ```
//!
//! A command that commits does not wait for a hook and needs no watchdog; a tick sends what was left over because a
//! process was killed or a hook failed. Each hook has its own lock and cursor in the vault, so one that hangs delays no
//! other.
//!
//! Invariant: a hook is notified at least once of every event of interest since it was configured, in the order of the
//! log, unless it fails for one too often (`a_notifier_killed_at_any_point_is_made_good_by_a_tick`). The cursor moves
//! after the hook was successful. A process that finds the lock taken ends at once, because the one that holds it looks
//! at the log again after it has released it
//! (`a_commit_at_any_moment_is_told_by_its_own_notifier_or_by_the_one_that_is_busy`).

use std::ffi::OsString;
use std::ops::ControlFlow;

use super::hook::{self, HookInput, HookRun};
use super::job::JobReport;
use super::{Caller, Context, Shell};
use crate::base::{Actor, EntityId, EntityType, Error, Result, Subject, Timestamp, Ulid, limits, text};
use crate::event::kind::SideEffect;
use crate::event::{Event, Kind};
use crate::job::{SupervisorProgram, start_detached};
use crate::op::kernel::{Committing, FollowUp};
use crate::policy::Settings;
use crate::policy::component;
use crate::policy::due::WATCHDOG;
use crate::policy::settings::Setting;
use crate::state::{Entity, State};
use crate::vault::{Cursor, Log, Outbox, Vault};

/// What a call of `on_giving_up` is, in the terms of the watchdog's other hooks.
const GIVING_UP: &str = "giving_up";

/// A tick lets a cursor move on that is further behind than this, so that it need not read so much every time.
const BEHIND_MAX: usize = 1000;

/// An event of interest to a hook.
struct Interest {
    hook: Setting,
    kind: Kind,
    /// What happened to the subject, as in `T-0001 was aborted`.
    predicate: &'static str,
}

const fn interest(hook: Setting, kind: Kind, predicate: &'static str) -> Interest {
    Interest { hook, kind, predicate }
}

/// Which hook is notified of which event.
const TABLE: &[Interest] = &[
    interest(Setting::OnDecision, Kind::DecisionRequested, "needs an answer"),
    interest(Setting::OnEscalation, Kind::EscalationRequired, "needs an operator"),
    interest(Setting::OnEscalation, Kind::ApprovalTimedOut, "was not answered in time"),
    interest(Setting::OnGivingUp, Kind::EscalationRequired, "cannot be woken"),
    interest(Setting::OnDone, Kind::TaskSucceeded, "succeeded"),
    interest(Setting::OnDone, Kind::TaskAborted, "was aborted"),
    interest(Setting::OnDone, Kind::RequirementImplemented, "was implemented"),
    interest(Setting::OnDone, Kind::RequirementVerified, "was verified"),
    interest(Setting::OnDone, Kind::RequirementRejected, "was rejected"),
    interest(Setting::OnDone, Kind::RequirementSuperseded, "was superseded"),
    interest(Setting::JobsOnFinish, Kind::TaskSucceeded, "succeeded"),
    interest(Setting::JobsOnFinish, Kind::TaskAborted, "was aborted"),
];

/// The hooks in the table.
const HOOKS: &[Setting] =
    &[Setting::OnDecision, Setting::OnEscalation, Setting::OnGivingUp, Setting::OnDone, Setting::JobsOnFinish];

/// The components that record the end of a job without a supervisor.
const RECORD_LOST_JOBS: &[&str] = &[component::JOBS, WATCHDOG];

/// Why an event is of interest to a hook, as far as the event alone decides that; none if it is not.
fn interest_in(hook: Setting, event: &Event) -> Option<&'static Interest> {
    let kind = event.event_type.known()?;
    let row = TABLE.iter().find(|row| row.hook == hook && row.kind == kind)?;
    // The watchdog gives up on agents; other escalations are not its own.
    let by_watchdog = || event.actor == Actor::core(WATCHDOG).to_string() && event.payload.contains_key("code");
    (hook != Setting::OnGivingUp || by_watchdog()).then_some(row)
}

/// Whether an event is of interest to a hook, given its batch.
fn is_of_interest(hook: Setting, event: &Event, batch: &[Event]) -> bool {
    interest_in(hook, event).is_some()
        && match hook {
            Setting::JobsOnFinish => is_end_without_supervisor(event, batch),
            _ => !is_answered_at_once(event, batch),
        }
}

/// Whether an event ends a task because a component of the toolkit found that the run of its job is over. The
/// supervisor, which runs the hook otherwise, records ends under the name of the actor that fired the job.
fn is_end_without_supervisor(event: &Event, batch: &[Event]) -> bool {
    let is_found = |event: &Event| RECORD_LOST_JOBS.iter().any(|name| event.actor == Actor::core(name).to_string());
    // The task itself and its run; another task that ends in the same batch only depends on this one.
    let is_same = |other: &Event| {
        let is_run = Subject::parse(&other.subject).is_ok_and(|subject| subject.entity == EntityType::Run);
        other.subject == event.subject || is_run
    };
    let mut at = event;
    while !is_found(at) {
        let cause = batch.iter().rfind(|other| other.id < at.id && at.parents.contains(&other.id));
        match cause.filter(|cause| is_same(cause)) {
            Some(cause) => at = cause,
            None => return false,
        }
    }
    true
}

fn is_set(settings: &Settings, hook: Setting) -> bool {
    !settings.text(hook).trim().is_empty()
}

/// Notifies hooks of the events of a commit, in processes of their own. Without a program for that, a tick does it.
pub(super) fn start(committing: &Committing<'_>) -> Option<FollowUp> {
    let Committing { config, events, host, .. } = *committing;
    let is_concerned = |hook: &Setting| events.iter().any(|event| is_of_interest(*hook, event, events));
    let hooks: Vec<Setting> =
        HOOKS.iter().copied().filter(|hook| is_concerned(hook) && is_set(config, *hook)).collect();
    if hooks.is_empty() {
        return None;
    }
    let (program, config) = (host.supervisor.clone()?, config.clone());
    Some(Box::new(move |vault| {
        // A notifier could not tell anybody that it must not run a hook.
        let hooks = hooks.into_iter().filter(|hook| !hook::is_untrusted(vault, &config, *hook));
        hooks.for_each(|hook| start_notifier(&program, vault, hook));
    }))
}

/// Starts a process that sends to a hook. If it cannot be started, a tick does its work.
fn start_notifier(program: &SupervisorProgram, vault: &Vault, hook: Setting) {
    let Ok(path) = std::path::absolute(vault.path()) else { return };
    let arguments: [OsString; 4] = ["notify".into(), hook.as_str().into(), "--vault".into(), path.into_os_string()];
    let _ = start_detached(program, &arguments).map(super::job::reap_when_ended);
}

/// Sends what was not sent yet: the part of a tick.
pub(super) fn send_rest(ctx: &Context, vault: &Vault) -> Result<()> {
    let config = vault.config();
    for hook in HOOKS.iter().copied().filter(|hook| is_set(&config, *hook)) {
        if !is_anything_left(ctx, vault, hook)? || hook::is_untrusted(vault, &config, hook) {
            continue;
        }
        match &ctx.host.supervisor {
            Some(program) => start_notifier(program, vault, hook),
            None => notify(ctx, NotifyRequest { hook: hook.as_str().to_owned() })?,
        }
    }
    Ok(())
}

/// Whether there is something to do for a hook now.
fn is_anything_left(ctx: &Context, vault: &Vault, hook: Setting) -> Result<bool> {
    let cursor = vault.cursor(hook)?;
    let (log, _) = vault.view()?;
    let Some(start) = start_of(&*log, hook, cursor)? else { return Ok(false) };
    let found = find_next(&*log, hook, start.through)?;
    let is_due = found.event.is_some() && !is_waiting(&start, (ctx.host.clock)().timestamp());
    Ok(is_due || cursor.is_none() || found.read > BEHIND_MAX)
}

/// A hook to send to.
#[derive(Clone, Debug, Default)]
pub struct NotifyRequest {
    /// Its setting, such as `hooks.on_done`.
    pub hook: String,
}

/// Sends to a hook what was not sent yet; the main function of a notifier process. Does nothing if another process
/// sends to it: that one looks at the log again before it ends.
pub fn notify(ctx: &Context, request: NotifyRequest) -> Result<()> {
    let hook = Setting::parse(&request.hook).filter(|hook| HOOKS.contains(hook));
    let hook =
        hook.ok_or_else(|| Error::usage(format!("{} is not a hook that is notified of events", request.hook)))?;
    // The events are already recorded, whatever has become of the session of their author.
    let caller = Caller { actor: Actor::core(component::HOOKS), shell: Shell::Supervisors };
    let ctx = &Context { caller, session: None, project: None, ..ctx.clone() };
    let vault = ctx.open()?;
    while let Some(outbox) = vault.outbox(hook)? {
        let sent = send(ctx, &vault, hook, &outbox)?;
        drop(outbox);
        // A notifier of a commit while the lock was held has found it taken and left.
        match sent {
            Sent::All(end) if vault.view()?.0.head().map(|head| head.id) != Some(end) => continue,
            Sent::All(_) | Sent::NotAll => break,
        }
    }
    Ok(())
}

/// How far sending got.
enum Sent {
    /// Everything; this event was the last one in the log.
    All(Ulid),
    /// The hook failed, or is not to be run.
    NotAll,
}

/// Sends event after event until a hook fails or nothing is left.
fn send(ctx: &Context, vault: &Vault, hook: Setting, outbox: &Outbox) -> Result<Sent> {
    loop {
        // The state is dropped before the hook runs: it has the index open, and others may wait for the index.
        let (notification, id, mut cursor) = {
            let (log, state) = vault.view()?;
            let before = outbox.cursor()?;
            let Some(head) = log.head() else { return Ok(Sent::NotAll) };
            let Some(start) = start_of(&*log, hook, before)? else { return Ok(Sent::NotAll) };
            let found = find_next(&*log, hook, start.through)?;
            let Some(event) = found.event else {
                let all = Cursor::at(found.through);
                if before != Some(all) {
                    outbox.put(&all)?;
                }
                return Ok(Sent::All(head.id));
            };
            let hive = vault.config_with(&state).text(Setting::HiveName);
            let notification = match hook {
                Setting::JobsOnFinish => Notification::of_job(vault, &state, &event),
                _ => Some(Notification::new(&state, hook, &event, &hive)),
            };
            (notification, event.id, start)
        };
        if is_waiting(&cursor, (ctx.host.clock)().timestamp()) {
            return Ok(Sent::NotAll);
        }
        let ran = notification.map_or(HookRun::Worked, |notification| hook::run(ctx, vault, notification.input(hook)));
        match ran {
            HookRun::Worked => outbox.put(&Cursor::at(id))?,
            HookRun::NotRun => return Ok(Sent::NotAll),
            HookRun::Failed if cursor.attempts + 1 >= limits::HOOK_ATTEMPTS_MAX_COUNT => outbox.put(&Cursor::at(id))?,
            HookRun::Failed => {
                cursor.attempts += 1;
                cursor.tried_at = (ctx.host.clock)().timestamp();
                outbox.put(&cursor)?;
                return Ok(Sent::NotAll);
            }
        }
    }
}

/// Whether it is too early for another attempt.
fn is_waiting(cursor: &Cursor, now: Timestamp) -> bool {
    cursor.attempts > 0 && (0..limits::HOOK_RETRY_SECONDS).contains(&now.0.saturating_sub(cursor.tried_at.0))
}

/// Where to start: at the cursor, or else where the hook was configured. None if it is not, as far as the log knows.
fn start_of(log: &dyn Log, hook: Setting, cursor: Option<Cursor>) -> Result<Option<Cursor>> {
    if cursor.is_some() {
        return Ok(cursor);
    }
    let mut since = None;
    log.read_back(&mut |event| {
        Ok(match sets(hook, &event) {
            Some(false) => ControlFlow::Break(()),
            Some(true) => {
                since = Some(event.id);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Continue(()),
        })
    })?;
    Ok(since.map(Cursor::at))
}

/// Whether an event that records the settings sets a hook; none for all other events.
fn sets(hook: Setting, event: &Event) -> Option<bool> {
    let kind = event.event_type.known()?;
    (kind.row().side_effect == SideEffect::AdoptsSettings).then_some(())?;
    let settings = event.payload.get("settings").map(Settings::from_json).unwrap_or_default();
    Some(is_set(&settings, hook))
}

/// The next event of interest to a hook.
struct NextEvent {
    event: Option<Event>,
    /// The last event that was read.
    through: Ulid,
    /// How many were read.
    read: usize,
}

/// Finds the next event after this one that is of interest to a hook. What happened while it was not set is not.
fn find_next(log: &dyn Log, hook: Setting, after: Ulid) -> Result<NextEvent> {
    let (mut found, mut is_on) = (NextEvent { event: None, through: after, read: 0 }, true);
    log.read_from(after, &mut |event| {
        if event.id <= after {
            return Ok(ControlFlow::Continue(()));
        }
        is_on = sets(hook, &event).unwrap_or(is_on);
        (found.through, found.read) = (event.id, found.read + 1);
        if is_on && interest_in(hook, &event).is_some() {
            let batch = log.batch_of(event.id)?.map(|(batch, _)| batch).unwrap_or_default();
            if is_of_interest(hook, &event, &batch) {
                found.event = Some(event);
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Whether a decision that timed out was rejected for that, so that nobody has to answer it any more.
fn is_answered_at_once(event: &Event, batch: &[Event]) -> bool {
    let rejects =
        |other: &Event| other.event_type.known() == Some(Kind::DecisionRejected) && other.subject == event.subject;
    event.event_type.known() == Some(Kind::ApprovalTimedOut) && batch.iter().any(rejects)
}

/// What a hook gets for one event.
struct Notification {
    subject: String,
    report: String,
    variables: Vec<(&'static str, String)>,
}

impl Notification {
    fn new(state: &State, hook: Setting, event: &Event, hive: &str) -> Notification {
        let predicate = interest_in(hook, event).map_or("", |row| row.predicate);
        let subject = Subject::parse(&event.subject).ok();
        let entity = subject.as_ref().and_then(|subject| state.entity(subject));
        let entity = entity.as_deref();
        let reference = entity.map(Entity::name).unwrap_or_default();
        let status = entity.map(|entity| entity.phase.to_string()).unwrap_or_default();
        let escalation = escalation_of(state, event);
        let command = escalation.as_ref().or(entity).map_or_else(|| LOOK.to_owned(), command_about);
        let (kind, when) = (event.event_type.as_str(), event.timestamp.to_string());
        let sum = sentence(entity, predicate, event);
        let mut lines = vec![
            ("EVENT", kind),
            ("HIVE", hive),
            ("SUBJECT", &event.subject),
            ("REF", &reference),
            ("STATUS", &status),
            ("SUM", &sum),
            ("WHEN", &when),
            ("DO", &command),
        ];
        let mut variables = vec![
            ("HF_EVENT", kind.to_owned()),
            ("HF_EVENT_ID", event.id.to_string()),
            ("HF_HIVE", hive.to_owned()),
            ("HF_SUBJECT", event.subject.clone()),
            ("HF_REF", reference.clone()),
            ("HF_STATUS", status.clone()),
            ("HF_DO", command.clone()),
        ];
        // The same as the watchdog's other hooks have.
        if hook == Setting::OnGivingUp {
            let agent = subject.as_ref().map(Subject::id).unwrap_or_default();
            let code = event.payload.get("code").and_then(|code| code.as_str()).unwrap_or_default();
            lines.extend([("AGENT", agent), ("CODE", code), ("CALL", GIVING_UP)]);
            variables.extend([("HF_ANOMALY_AGENT", agent.to_owned()), ("HF_CODE", code.to_owned())]);
            variables.push(("HF_CALL", GIVING_UP.to_owned()));
        }
        let report = lines.iter().map(|(key, value)| format!("{key}:{}\n", text::escape(value))).collect();
        Notification { subject: event.subject.clone(), report, variables }
    }

    /// The same report that a supervisor makes of its job; none for a task that is no job.
    fn of_job(vault: &Vault, state: &State, event: &Event) -> Option<Notification> {
        let task = state.entity(&Subject::parse(&event.subject).ok()?).filter(|task| task.is_job())?;
        let JobReport { text, variables } = super::job::report_of_ended(vault, state, &task);
        Some(Notification { subject: event.subject.clone(), report: text, variables })
    }

    fn input(&self, hook: Setting) -> HookInput<'_> {
        HookInput { hook, subject: &self.subject, report: &self.report, variables: &self.variables }
    }
}

/// `T-0001 was aborted: Login form (the page was removed)`.
fn sentence(entity: Option<&Entity>, predicate: &str, event: &Event) -> String {
    let name = entity.map_or_else(|| event.subject.clone(), Entity::spoken_name);
    let cut = |value: &str| text::cut(value, limits::SUMMARY_MAX_CHARS);
    let title = entity.and_then(Entity::title).map(|title| format!(": {}", cut(title))).unwrap_or_default();
    let reason = event.payload.get("reason").and_then(|reason| reason.as_str());
    let reason = reason.map(|reason| format!(" ({})", cut(reason))).unwrap_or_default();
    format!("{name} {predicate}{title}{reason}")
}

/// The command that shows what needs attention.
const LOOK: &str = "hf-status";

/// The escalation that an event opened.
fn escalation_of(state: &State, event: &Event) -> Option<Entity> {
    let id = EntityId::parse(&event.id.to_string()).ok()?;
    state.entity(&Subject::new(EntityType::Escalation, id)).map(|escalation| escalation.into_owned())
}

/// The command that shows what to do about an entity.
fn command_about(entity: &Entity) -> String {
    let command = match entity.subject.entity {
        EntityType::Decision | EntityType::Escalation => "hf-decide show",
        EntityType::Requirement => "hf-require show",
        EntityType::Task => "hf-task explain",
        _ => return LOOK.to_owned(),
    };
    format!("{command} {}", entity.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_hooks_is_that_of_the_table() {
        assert!(TABLE.iter().all(|row| HOOKS.contains(&row.hook)));
        assert!(HOOKS.iter().all(|hook| TABLE.iter().any(|row| row.hook == *hook)));
    }

    #[test]
    fn another_attempt_waits_for_a_while_and_not_for_a_clock_that_was_set_back() {
        let cursor = Cursor { attempts: 1, tried_at: Timestamp(100), ..Cursor::at(Ulid::nil()) };
        let waits = [100, 129, 130, 99].map(|now| is_waiting(&cursor, Timestamp(now)));
        assert_eq!(waits, [true, true, false, false]);
        assert!(!is_waiting(&Cursor::at(Ulid::nil()), Timestamp(0)));
    }
}
