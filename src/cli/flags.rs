//! The arguments that mean the same everywhere, as the parser found them; and NEXT with those of them
//! that its command needs, so that it works as printed.

use std::path::PathBuf;

use clap::ArgMatches;

use super::{Command, Entry};
use crate::base::{Actor, EntityId, ShortRef, limits};
use crate::reply::{Next, Reply};

/// Who is meant to act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Voice {
    /// Whoever runs the command, or who is named.
    Anybody { actor: Option<String> },
    /// An agent, also where nobody is named.
    Agent { name: Option<String> },
}

/// Arguments that mean the same for every command that has them.
#[derive(Clone, Debug)]
pub struct Flags {
    pub json: bool,
    pub format: Option<String>,
    pub vault: Option<PathBuf>,
    /// The vault if nothing names one, for a command that need not find it.
    pub default_vault: Option<PathBuf>,
    pub lock_timeout: u64,
    pub voice: Voice,
    pub session: Option<String>,
    pub project: Option<String>,
    pub works: Option<PathBuf>,
    /// Whether standard output is kept for a document.
    pub document: bool,
}

/// The arguments of the sub-command that was called; they include those that every one has.
fn leaf(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| leaf(inner))
}

/// The value of an argument, if the command has such an argument and it was given.
fn given<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Option<T> {
    matches.try_get_one::<T>(id).ok().flatten().cloned()
}

impl Flags {
    pub fn of<A: Command>(matches: &ArgMatches) -> Self {
        let leaf = leaf(matches);
        let text = |id: &str| given::<String>(leaf, id);
        let path = |id: &str| given::<PathBuf>(leaf, id);
        Flags {
            json: given(leaf, "json").unwrap_or(false),
            format: text("format"),
            vault: A::vault(leaf).or_else(|| path("vault")).filter(|path| !path.as_os_str().is_empty()),
            default_vault: A::DEFAULT_VAULT.map(PathBuf::from),
            lock_timeout: given(leaf, "lock_timeout").unwrap_or(limits::LOCK_TIMEOUT_DEFAULT_SECONDS),
            voice: match (leaf.try_contains_id("agent").is_ok(), text("teller")) {
                (true, _) => Voice::Agent { name: text("agent") },
                (false, Some(name)) => Voice::Agent { name: Some(name) },
                (false, None) => Voice::Anybody { actor: text("actor") },
            },
            session: text("session"),
            project: text("project"),
            works: path("works"),
            document: A::is_document(matches),
        }
    }

    /// The reply with the caller's vault, agent, session and project named again in NEXT, as far as they came
    /// by flag and its command takes them.
    pub fn repeat_in(&self, reply: &mut Reply) {
        let Next::Action(argv) = &reply.next else { return };
        if argv.iter().any(|word| word == "--help") {
            return;
        }
        let taken = Entry::of_argv(argv).map(|entry| Taken::by(entry, argv));
        let mut next = reply.next.clone();
        if let Some(taken) = taken {
            let named = ["--session", "--agent", "--actor"].iter().any(|flag| argv.iter().any(|word| word == flag));
            if !named {
                next = self.repeat_who(next, &taken, reply.acting.as_ref());
            }
            let project = self.project.as_deref().and_then(|name| EntityId::parse(name).ok());
            // A session is of one project, and a line that names one knows better.
            let settled = next.argv().iter().any(|word| word == "--project" || word == "--session");
            if let (Some(project), true, false) = (project, taken.project, settled) {
                next = next.arg("--project", &project);
            }
        }
        if let Some(path) = &self.vault {
            // Repeated in NEXT from any folder, so it is made absolute; it was opened as given.
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            next = next.in_vault(&absolute.to_string_lossy());
        }
        reply.next = next;
    }

    /// Whoever was named by a flag is named again, in the way that the next command knows.
    fn repeat_who(&self, next: Next, taken: &Taken, acting: Option<&Actor>) -> Next {
        if let Some(session) = &self.session {
            return match (taken.session, ShortRef::parse(session), EntityId::parse(session), acting) {
                (true, Some(reference), ..) => next.arg("--session", &reference),
                (true, None, Ok(id), _) => next.arg("--session", &id),
                (true, None, Err(_), _) => Next::OPERATOR,
                // The shell does not say whose session it is.
                (false, _, _, Some(actor)) if taken.actor => next.arg("--actor", actor),
                (false, ..) => next,
            };
        }
        let actor = match &self.voice {
            Voice::Agent { name: Some(name) } => Actor::parse(&format!("agent:{name}")).ok(),
            Voice::Anybody { actor: Some(actor) } => Actor::parse(actor).ok(),
            _ => None,
        };
        let Some(actor) = actor else { return next };
        match (actor.agent(), taken) {
            (Some(agent), Taken { agent: true, .. }) => next.arg("--agent", &agent),
            (_, Taken { actor: true, .. }) => next.arg("--actor", &actor),
            _ => next,
        }
    }
}

/// Which of these arguments a command takes.
#[derive(Debug, Default)]
struct Taken {
    actor: bool,
    agent: bool,
    session: bool,
    project: bool,
}

impl Taken {
    fn by(entry: &Entry, argv: &[String]) -> Self {
        let command = (entry.command)();
        let mut taken = Taken::default();
        let (mut at, mut words) = (Some(&command), argv.iter().skip(1));
        while let Some(command) = at {
            for arg in command.get_arguments() {
                match (arg.get_id().as_str(), arg.get_long()) {
                    ("actor", _) => taken.actor = true,
                    ("agent" | "teller", _) => taken.agent = true,
                    ("session", _) => taken.session = true,
                    ("project", Some(_)) => taken.project = true,
                    _ => {}
                }
            }
            at = words.next().and_then(|word| command.find_subcommand(word));
        }
        taken
    }
}
