//! The arguments that mean the same everywhere, as the parser found them; and NEXT with those of them
//! that its command needs, so that it works as printed.

use std::path::PathBuf;

use clap::ArgMatches;

use super::Command;
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
            voice: match (A::is_agents(matches), text("teller")) {
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
        let (taken, mut next) = (Taken::by(argv), reply.next.clone());
        let says = |flags: &[&str], next: &Next| next.argv().iter().any(|word| flags.contains(&word.as_str()));
        if !says(&["--session", "--agent", "--actor"], &next) {
            next = self.repeat_who(next, &taken, reply.acting.as_ref());
        }
        // A session is of one project, and a line that names one knows better.
        let project = self.project.as_deref().and_then(|name| EntityId::parse(name).ok());
        if let (Some(project), true, false) = (project, taken.project, says(&["--project", "--session"], &next)) {
            next = next.arg("--project", &project);
        }
        for (option, path) in
            [("--works", self.works.as_ref().filter(|_| taken.works)), ("--vault", self.vault.as_ref())]
        {
            if let Some(path) = path {
                // Repeated in NEXT from any folder, so it is made absolute; it was opened as given.
                let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                next = next.path(option, &absolute.to_string_lossy());
            }
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
    works: bool,
}

/// Who and where, for the commands that take it; what is not here takes none of them. It stands here in full,
/// since whoever asks the parsers carries all of them, and a single command should not.
const TAKEN: &[(&str, &[&str], &str)] = &[
    ("hf-activity", &[], "agent works"),
    ("hf-append", &[], "actor"),
    ("hf-artifact", &["put", "validate", "invalidate"], "actor"),
    ("hf-branch", &[], "agent"),
    ("hf-checkpoint", &[], "agent works"),
    ("hf-constraint", &["apply", "remove"], "actor"),
    ("hf-decide", &["request", "approve", "reject"], "actor"),
    ("hf-deepwork", &[], "agent works"),
    ("hf-init", &[], "actor"),
    ("hf-job", &["fire"], "actor project"),
    ("hf-job", &["cancel"], "actor"),
    ("hf-pause", &[], "actor project"),
    ("hf-ref", &["add"], "actor"),
    ("hf-require", &["propose", "analyze", "supersede", "verify", "reject"], "actor project"),
    ("hf-resume", &[], "actor project"),
    ("hf-review", &["record", "run", "open"], "actor"),
    ("hf-session", &["login", "renew", "next", "task", "report", "logout"], "agent session project"),
    ("hf-state", &["start", "set", "round", "done", "fail", "go"], "actor"),
    ("hf-stop", &[], "actor"),
    ("hf-watchdog", &[], "works"),
    (
        "hf-task",
        &["propose", "ready", "claim", "assign", "start", "heartbeat", "succeed", "fail", "abort"],
        "actor project",
    ),
];

impl Taken {
    fn by(argv: &[String]) -> Self {
        let fits = |name: &str, subs: &[&str]| {
            argv.first().is_some_and(|word| word == name)
                && (subs.is_empty() || argv.get(1).is_some_and(|word| subs.contains(&word.as_str())))
        };
        let words = TAKEN.iter().find(|(name, subs, _)| fits(name, subs)).map_or("", |row| row.2);
        let has = |word: &str| words.split(' ').any(|taken| taken == word);
        Taken {
            actor: has("actor"),
            agent: has("agent"),
            session: has("session"),
            project: has("project"),
            works: has("works"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::COMMANDS;

    #[test]
    fn the_table_says_what_the_commands_take() {
        for entry in COMMANDS {
            let mut command = (entry.command)();
            command.build();
            let subs = command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set());
            let lines: Vec<(Vec<String>, &clap::Command)> = match command.has_subcommands() {
                true => subs.map(|sub| (vec![entry.name.to_owned(), sub.get_name().to_owned()], sub)).collect(),
                false => vec![(vec![entry.name.to_owned()], &command)],
            };
            for (argv, at) in lines {
                let long = |name: &str| at.get_arguments().any(|arg| arg.get_long() == Some(name));
                // A filter of events, and who recovers: neither is who acts in any other case.
                let acts = !["hf-log", "hf-verify"].contains(&entry.name);
                let taken = Taken::by(&argv);
                assert_eq!(
                    [taken.actor, taken.agent, taken.session, taken.project, taken.works],
                    [long("actor") && acts, long("agent"), long("session"), long("project"), long("works")],
                    "{argv:?}"
                );
            }
        }
    }
}
