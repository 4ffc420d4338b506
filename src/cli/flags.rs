//! The options that mean the same for every command; and how they are repeated in NEXT, so that its command works as
//! printed.

use std::path::PathBuf;

use clap::ArgMatches;

use super::Command;
use crate::base::{Actor, EntityId, ShortRef, limits};
use crate::reply::{Next, Reply};

/// As whom the command acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActingAs {
    /// As the caller, or the actor given with `--actor`.
    Caller { actor: Option<String> },
    /// As an agent, even if none is named.
    Agent { name: Option<String> },
}

/// Options that mean the same for every command that has them.
#[derive(Clone, Debug)]
pub struct Flags {
    pub json: bool,
    pub format: Option<String>,
    pub vault: Option<PathBuf>,
    /// The vault to use if none is named, for a command that does not need an existing one.
    pub default_vault: Option<PathBuf>,
    /// Whether the command uses a vault at all.
    pub needs_vault: bool,
    pub lock_timeout: u64,
    pub acting_as: ActingAs,
    pub session: Option<String>,
    pub project: Option<String>,
    /// Whether the project may be created.
    pub creates_project: bool,
    pub works: Option<PathBuf>,
    /// Whether standard output is reserved for a document.
    pub document: bool,
}

/// The arguments of the innermost subcommand; they include the global ones.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| innermost(inner))
}

/// The value of an argument, if the command has such an argument and it was given.
fn given<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Option<T> {
    matches.try_get_one::<T>(id).ok().flatten().cloned()
}

impl Flags {
    /// The options that the parser found.
    pub fn from_matches<A: Command>(matches: &ArgMatches) -> Self {
        let inner = innermost(matches);
        let text = |id: &str| given::<String>(inner, id);
        let path = |id: &str| given::<PathBuf>(inner, id);
        Flags {
            json: given(inner, "json").unwrap_or(false),
            format: text("format"),
            vault: A::vault_argument(inner).or_else(|| path("vault")).filter(|path| !path.as_os_str().is_empty()),
            default_vault: A::DEFAULT_VAULT.map(PathBuf::from),
            needs_vault: A::needs_vault(matches),
            lock_timeout: given(inner, "lock_timeout").unwrap_or(limits::LOCK_TIMEOUT_DEFAULT_SECONDS),
            acting_as: match (A::acts_as_agent(matches), text("teller")) {
                (true, _) => ActingAs::Agent { name: text("agent") },
                (false, Some(name)) => ActingAs::Agent { name: Some(name) },
                (false, None) => ActingAs::Caller { actor: text("actor") },
            },
            session: text("session"),
            project: text("archive").or_else(|| text("project")),
            creates_project: given(inner, "create").unwrap_or(false),
            works: path("works"),
            document: A::writes_document(matches),
        }
    }

    /// Adds the options that name the vault, agent, session and project to NEXT, if they were given here and the next
    /// command accepts them.
    pub fn add_to_next(&self, reply: &mut Reply) {
        let Next::Action(argv) = &reply.next else { return };
        if argv.iter().any(|word| word == "--help") {
            return;
        }
        let (accepted, mut next) = (AcceptedOptions::of_command(argv), reply.next.clone());
        let has_any = |flags: &[&str], next: &Next| next.argv().iter().any(|word| flags.contains(&word.as_str()));
        if !has_any(&["--session", "--agent", "--actor"], &next) {
            next = self.add_actor(next, &accepted, reply.acting.as_ref());
        }
        // A session belongs to one project, so a command that names a session needs no project.
        let project = self.project.as_deref().and_then(|name| EntityId::parse(name).ok());
        if let (Some(project), true, false) = (project, accepted.project, has_any(&["--project", "--session"], &next)) {
            next = next.arg("--project", &project);
        }
        for (option, path) in
            [("--works", self.works.as_ref().filter(|_| accepted.works)), ("--vault", self.vault.as_ref())]
        {
            if let Some(path) = path {
                // NEXT may be run in another directory, so the path must be absolute there.
                let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                next = next.path(option, &absolute.to_string_lossy());
            }
        }
        reply.next = next;
    }

    /// Adds who acts to NEXT, with the option that the next command has for it.
    fn add_actor(&self, next: Next, accepted: &AcceptedOptions, acting: Option<&Actor>) -> Next {
        if let Some(session) = &self.session {
            return match (accepted.session, ShortRef::parse(session), EntityId::parse(session), acting) {
                (true, Some(reference), ..) => next.arg("--session", &reference),
                (true, None, Ok(id), _) => next.arg("--session", &id),
                (true, None, Err(_), _) => Next::OPERATOR,
                // The caller's shell need not belong to the agent whose session it is, so the agent is named.
                (false, _, _, Some(actor)) if accepted.actor => next.arg("--actor", actor),
                (false, ..) => next,
            };
        }
        let actor = match &self.acting_as {
            ActingAs::Agent { name: Some(name) } => Actor::parse(&format!("agent:{name}")).ok(),
            ActingAs::Caller { actor: Some(actor) } => Actor::parse(actor).ok(),
            _ => None,
        };
        let Some(actor) = actor else { return next };
        match (actor.agent(), accepted) {
            (Some(agent), AcceptedOptions { agent: true, .. }) => next.arg("--agent", &agent),
            (_, AcceptedOptions { actor: true, .. }) => next.arg("--actor", &actor),
            _ => next,
        }
    }
}

/// Which of the options in `Flags` a command accepts.
#[derive(Debug, Default)]
struct AcceptedOptions {
    actor: bool,
    agent: bool,
    session: bool,
    project: bool,
    works: bool,
}

/// The options that each command accepts; a command that is not listed accepts none of them. This repeats what the
/// parsers know (a test compares them), because asking the parsers would link all of them into every single command.
const ACCEPTED: &[(&str, &[&str], &str)] = &[
    ("hf-activity", &[], "agent works"),
    ("hf-append", &[], "actor"),
    ("hf-artifact", &["put", "declare", "validate", "invalidate"], "actor"),
    ("hf-branch", &[], "agent"),
    ("hf-checkpoint", &[], "agent works"),
    ("hf-config", &["set", "adopt"], "actor"),
    ("hf-constraint", &["apply", "remove"], "actor"),
    ("hf-decide", &["request", "approve", "reject", "acknowledge"], "actor"),
    ("hf-deepwork", &[], "agent works"),
    ("hf-init", &[], "actor"),
    ("hf-job", &["fire"], "actor project"),
    ("hf-job", &["cancel", "wait"], "actor"),
    ("hf-key", &["add", "remove"], "actor"),
    ("hf-pause", &[], "actor project"),
    ("hf-poll", &[], "actor"),
    ("hf-ref", &["add"], "actor"),
    ("hf-require", &["propose", "analyze", "supersede", "verify", "reject"], "actor project"),
    ("hf-resume", &[], "actor project"),
    ("hf-review", &["record", "run", "open"], "actor"),
    ("hf-session", &["login", "renew", "next", "task", "report", "logout"], "agent session project"),
    ("hf-state", &["start", "set", "round", "done", "fail", "go", "plan", "fire", "more-rounds"], "actor"),
    ("hf-stop", &[], "actor"),
    ("hf-watchdog", &[], "works"),
    (
        "hf-task",
        &[
            "propose",
            "ready",
            "claim",
            "assign",
            "edit",
            "step",
            "note",
            "start",
            "heartbeat",
            "succeed",
            "fail",
            "abort",
            "archive",
        ],
        "actor project",
    ),
];

impl AcceptedOptions {
    fn of_command(argv: &[String]) -> Self {
        // Only hf-poll has other names: NEXT repeats the one that it was called by.
        let is_command = |word: &str| word == "hf" || word.starts_with("hf-");
        let command = argv.first().map(|word| if is_command(word) { word.as_str() } else { "hf-poll" });
        let fits = |name: &str, subs: &[&str]| {
            command == Some(name) && (subs.is_empty() || argv.get(1).is_some_and(|word| subs.contains(&word.as_str())))
        };
        let words = ACCEPTED.iter().find(|(name, subs, _)| fits(name, subs)).map_or("", |row| row.2);
        let has = |word: &str| words.split(' ').any(|option| option == word);
        AcceptedOptions {
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
    fn the_table_of_accepted_options_matches_the_parsers() {
        for entry in COMMANDS {
            let mut command = (entry.command)();
            command.build();
            let subs = command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set());
            let cases: Vec<(Vec<String>, &clap::Command)> = match command.has_subcommands() {
                true => subs.map(|sub| (vec![entry.name.to_owned(), sub.get_name().to_owned()], sub)).collect(),
                false => vec![(vec![entry.name.to_owned()], &command)],
            };
            for (argv, at) in cases {
                let long = |name: &str| at.get_arguments().any(|arg| arg.get_long() == Some(name));
                // hf-log filters by actor, and hf-verify takes one only with --recover.
                let acts = !["hf-log", "hf-verify"].contains(&entry.name);
                // A list filters by agent and project.
                let is_list = argv.last().is_some_and(|word| word == "list") || entry.name == "hf-status";
                let accepted = AcceptedOptions::of_command(&argv);
                assert_eq!(
                    [accepted.actor, accepted.agent, accepted.session, accepted.project, accepted.works],
                    [
                        long("actor") && acts,
                        long("agent") && (!is_list || entry.name == "hf-branch" || entry.name == "hf-deepwork"),
                        long("session"),
                        long("project") && !is_list,
                        long("works"),
                    ],
                    "{argv:?}"
                );
            }
        }
    }
}
