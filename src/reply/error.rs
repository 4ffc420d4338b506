//! The reply for an error. Status and next step follow from the error's kind, the command and the reference that the
//! error is about, never from its message: text from a log cannot influence them.

use super::{Key, Next, Reply, Status};
use crate::base::{EntityType, Error, ErrorKind, Reason};

/// The reply of `command` for an error of the library.
pub fn of_error(error: &Error, command: &'static str) -> Reply {
    let next = match &error.kind {
        // It exists, but is of another kind than the command is for.
        ErrorKind::Usage if error.about.as_ref().is_some_and(|about| about.entity == EntityType::Task) => {
            error.about.iter().fold(Next::run("hf-task").word("show"), |next, task| next.value(task))
        }
        ErrorKind::Usage | ErrorKind::InvalidCursor | ErrorKind::LimitExceeded => Next::run(command).word("--help"),
        ErrorKind::Refused(Reason::NotYourTurn) => Next::run("hf-review").word("status"),
        ErrorKind::Refused(
            Reason::IllegalTransition | Reason::KeyConflict | Reason::NotHolder | Reason::SummaryRequired,
        ) => Next::None,
        ErrorKind::Refused(Reason::ClaimLost) => claim_lost(error),
        ErrorKind::Refused(Reason::Repeated) => {
            error.about.iter().fold(Next::run("hf-state").word("fire"), |next, task| next.value(task))
        }
        ErrorKind::Refused(Reason::NotReady) if command == "hf-state" => Next::run(command).word("show"),
        ErrorKind::Refused(Reason::NotReady | Reason::TooManyTasks) => Next::run("hf-task").word("list"),
        ErrorKind::Refused(_) | ErrorKind::NoVault | ErrorKind::System => Next::OPERATOR,
        // `standing` knows whether the caller has a session there to log out of.
        ErrorKind::ExitRequested(_) => Next::None,
        ErrorKind::Corrupt if error.about.as_ref().is_some_and(|about| about.entity == EntityType::Artifact) => {
            Next::run("hf-verify").word("--artifacts")
        }
        ErrorKind::Corrupt => Next::run("hf-verify"),
        ErrorKind::NotFound => Next::run("hf-log").word("--last 20"),
        // The message has the names that may be meant; a command that names this project again would fail, too.
        ErrorKind::NoProject | ErrorKind::Busy | ErrorKind::Uncertain { .. } => Next::None,
    };
    let sum = match &error.kind {
        ErrorKind::Uncertain { .. } => {
            format!("may or may not be recorded; repeat with the same --key: {}", error.message)
        }
        _ => error.message.clone(),
    };
    let reply = Reply::new(Status::for_error(&error.kind), sum).next(next);
    let reply = match &error.kind {
        ErrorKind::Refused(_) => reply.exit(Status::Refused.exit()),
        _ => reply,
    };
    match &error.kind {
        ErrorKind::Refused(reason) | ErrorKind::ExitRequested(reason) => reply.with(Key::Reason, reason.as_str()),
        ErrorKind::Uncertain { key } => reply.with(Key::IdempotencyKey, key.as_str()),
        _ => reply,
    }
}

/// The next step of an agent that has lost a claim: to claim the task again, if that is possible, or another one.
pub fn claim_lost(error: &Error) -> Next {
    match &error.about {
        Some(task) => Next::run("hf-task").word("claim").value(task),
        None => Next::run("hf-task").word("claim"),
    }
}

/// The reply for any error; errors from outside the library are system errors.
pub fn of_failure(error: &anyhow::Error, command: &'static str) -> Reply {
    match error.downcast_ref::<Error>() {
        Some(error) => of_error(error, command),
        None => Reply::new(Status::SystemError, format!("{error:#}")).next(Next::OPERATOR),
    }
}
