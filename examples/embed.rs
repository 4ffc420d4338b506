//! Uses the library without starting a process: proposes, claims, starts and finishes a task, and prints the
//! replies that a shell would get.
//!
//!     cargo run --example embed -- VAULT

use std::path::PathBuf;

use hiveforge::base::{Actor, Error, Now, Result};
use hiveforge::op::task::{self, ClaimRequest, ProposeTaskRequest, StartTaskRequest, SucceedRequest};
use hiveforge::op::{self, Caller, Context, Host, InitRequest, Shell};
use hiveforge::reply::{self, Replies, Reply};

fn main() {
    let vault = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("Vault"), PathBuf::from);
    for reply in replies(vault) {
        print!("{}", reply.text());
    }
}

/// Returns the reply of each step; if a step fails, the last reply is the error.
fn replies(vault: PathBuf) -> Vec<Reply> {
    let mut said = Vec::new();
    if let Err(error) = steps(vault, &mut said) {
        said.push(reply::of_error(&error, "embed"));
    }
    said
}

fn steps(vault: PathBuf, said: &mut Vec<Reply>) -> Result<()> {
    let person = Caller { actor: Actor::parse("user:jo")?, shell: Shell::Persons };
    let agent = Caller { actor: Actor::parse("agent:builder")?, shell: Shell::Agents("builder".to_owned()) };
    let operator = Context::new(vault, person, Host::new(now));
    let builder = Context { caller: agent, ..operator.clone() };
    said.push(op::init(&operator, InitRequest::default())?.reply());
    let (title, key) = (Some("Login form".to_owned()), Some("form".to_owned()));
    said.push(task::propose(&operator, ProposeTaskRequest { title, key, ..Default::default() })?.reply());
    let claimed = task::claim(&builder, ClaimRequest::default())?.reply();
    // The next step is a value: its last argument is the task.
    let reference = claimed.next.argv().last().cloned().ok_or_else(|| Error::not_found("no task was claimed"))?;
    said.push(claimed);
    let begin = StartTaskRequest { reference: reference.clone(), ..Default::default() };
    said.push(task::start(&builder, begin)?.reply());
    let summary = Some("it works".to_owned());
    said.push(task::succeed(&builder, SucceedRequest { reference, summary, ..Default::default() })?.reply());
    Ok(())
}

/// The library does not read the clock; the program passes the time.
#[expect(clippy::disallowed_methods, reason = "this program provides the clock")]
fn now() -> Now {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Now { millis: since.map_or(0, |since| since.as_millis() as u64) }
}
