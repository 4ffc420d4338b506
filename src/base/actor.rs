//! Actors, the full names of who acts: `user:NAME`, `agent:NAME`, `core:COMPONENT`, `external:SERVICE`.

use std::fmt;

use super::{EntityId, Error, Result, names, text};

names! {
    pub enum ActorKind {
        User = "user",
        Agent = "agent",
        Core = "core",
        External = "external",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor {
    pub kind: ActorKind,
    name: String,
}

impl Actor {
    /// A component of the toolkit itself, such as `core:vault`.
    pub fn core(component: &'static str) -> Self {
        Actor { kind: ActorKind::Core, name: component.to_owned() }
    }

    /// A source outside the toolkit that nobody can be named for, such as a file.
    pub fn external(name: &'static str) -> Self {
        Actor { kind: ActorKind::External, name: name.to_owned() }
    }

    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            Error::usage(format!(
                "invalid actor '{}'; must be user:NAME, agent:NAME, core:NAME or external:NAME",
                text::cut(text, 80)
            ))
        };
        let (kind, name) = text.split_once(':').ok_or_else(wrong)?;
        let kind = ActorKind::parse(kind).ok_or_else(wrong)?;
        // Agents are entities, so their names are ids; names of users and services may contain dots.
        let fits = match kind {
            ActorKind::Agent => EntityId::parse(name).is_ok(),
            _ => {
                (1..=64).contains(&name.len())
                    && name.as_bytes()[0].is_ascii_alphanumeric()
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._@-".contains(&b))
            }
        };
        match (fits, kind) {
            (true, _) => Ok(Actor { kind, name: name.to_owned() }),
            (false, ActorKind::Agent) => {
                let name = text::cut(name, 80);
                Err(Error::usage(format!("invalid agent name '{name}'; must be 1 to 64 letters, digits, '-' or '_'")))
            }
            (false, _) => {
                let name = text::cut(name, 80);
                Err(Error::usage(format!(
                    "invalid name '{name}'; must be 1 to 64 letters, digits, '.', '_', '@' or '-'"
                )))
            }
        }
    }

    /// The name, without the kind.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The id of the agent, if this actor is one.
    pub fn agent(&self) -> Option<EntityId> {
        (self.kind == ActorKind::Agent).then(|| EntityId::parse(&self.name).ok()).flatten()
    }

    /// Whether this is a program acting on its own, without an operator's authority.
    pub fn is_autonomous(&self) -> bool {
        self.kind != ActorKind::User
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_read_back_as_written() {
        for text in ["user:jo.doe@example", "agent:main", "core:reactor", "external:github"] {
            assert_eq!(Actor::parse(text).unwrap().to_string(), text);
        }
        for bad in ["", "main", "agent:", "agent:a.b", "robot:x", "user:a b", "user:a\nb", "user:-x"] {
            assert!(Actor::parse(bad).is_err(), "{bad:?}");
        }
    }
}
