//! A program that uses the library and starts no process: it proposes, claims, starts and finishes a task, and
//! prints the replies that a shell would get.
//!
//!     cargo run --example embed -- VAULT

use std::path::PathBuf;

use hiveforge::base::{Actor, Error, Now, Result};
use hiveforge::op::task::{self, ProposeRequest};
use hiveforge::op::{self, Caller, Context, Host, InitRequest, Shell};
use hiveforge::reply::{self, Replies, Reply};

fn main() {
    let vault = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("Vault"), PathBuf::from);
    for reply in replies(vault) {
        print!("{}", reply.text());
    }
}

/// Each step's reply; the last one is why it could not go on, if it could not.
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
    said.push(op::init(&operator, InitRequest)?.reply());
    let form = ProposeRequest { title: "Login form".to_owned(), ..ProposeRequest::default() };
    said.push(task::propose(&operator, form, Some("form".to_owned()))?.reply());
    let claimed = task::claim(&builder, None, None, None)?.reply();
    // The next step is a value: the task is its last word.
    let task = claimed.next.argv().last().cloned().ok_or_else(|| Error::not_found("no task was claimed"))?;
    said.push(claimed);
    said.push(task::start(&builder, &task, None, None)?.reply());
    said.push(task::succeed(&builder, &task, Some("it works".to_owned()), None)?.reply());
    Ok(())
}

/// The time is the program's to give.
#[expect(clippy::disallowed_methods, reason = "this program has a clock of its own")]
fn now() -> Now {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Now { millis: since.map_or(0, |since| since.as_millis() as u64) }
}
