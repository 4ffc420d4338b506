//! One row of the list of kinds: the columns, what their values mean, and their defaults.
//!
//! A column is data: which rule reads it, and what follows, is decided further out. `row` gives every
//! column its default, and a row in the list names only what differs. Code that asks for a value of
//! several matches on all of them, so that a new value cannot be overlooked.

use super::kind::{Kind, PayloadField, SubjectType};
use crate::base::EntityType;

/// One row of the list.
#[derive(Debug)]
pub struct KindRow {
    pub kind: Kind,
    pub about: SubjectType,
    /// Written by the toolkit alone. Default: no.
    pub reserved: bool,
    pub fields: &'static [PayloadField],
    pub meaning: &'static str,
    /// Who may record it. Default: anybody.
    pub by: RecordedBy,
    /// Which agent it speaks for. Default: none.
    pub speaks_for: SpeaksFor,
    /// What it has to do with the claim on a task. Default: nothing.
    pub claim: Claim,
    /// What starts with it, and must not start in a stop or a pause. Default: nothing.
    pub starts: Starts,
    /// Whether it is an end, which is recorded even if its project is over. Default: no end.
    pub ending: Ending,
    /// Until when an agent that has to leave may record it. Default: not once it has to leave.
    pub leaving: WhenLeaving,
    /// The project that it opens if nothing has named that project before. Default: none.
    pub opens: Opens,
    /// The second entity that it moves. Default: none.
    pub moves: Option<LinkedEntity>,
    /// Where it comes from if its author names no parents. Default: the history of its subject.
    pub cause: Cause,
    /// What the fold keeps beside the entities that it moves. Default: nothing.
    pub side_effect: SideEffect,
    /// Types of entities that it changes beside those that it is about and moves. Default: none.
    pub also_changes: &'static [EntityType],
    /// Whether it comes so often that no projection file is rewritten for it. Default: no.
    pub is_frequent: bool,
    /// Whether a job that waits may be able to start after it. Default: no.
    pub wakes_jobs: bool,
    /// Whether it says itself that its agent is there or gone, so that nothing has to announce the
    /// agent first. Default: no.
    pub tells_presence: bool,
    /// Whether it follows by itself under some settings only, so that its absence from a log proves
    /// nothing. Default: no.
    pub depends_on_settings: bool,
}

/// Who may record an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedBy {
    Anyone,
    /// The toolkit, which finds it, or a person; no agent.
    NotAgents,
    /// A person.
    Operator,
}

/// The agent that an event speaks for. No other agent can record it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeaksFor {
    Nobody,
    /// The agent that it is about.
    Subject,
    /// The agent that it moves along with its subject.
    Linked,
    /// The agent that its subject belongs to: this fact, or this member of the payload that makes it.
    Owner(&'static str),
}

/// What an event has to do with the claim on a task: the task that it is about, that it moves, or that
/// its run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Unneeded,
    /// It makes the claim.
    Makes,
    /// The holder alone records it.
    Needs,
    /// Of all agents, the holder alone records it. Others may end anything.
    NeedsIfAgent,
}

/// What starts with an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    Nothing,
    /// An agent's stay, which a pause ends.
    Session,
    /// A task's turn. In a pause a person may still give a task to somebody.
    Claim,
    /// One attempt at a task.
    Run,
    /// Another attempt, at a task that was allowed to start before.
    Retry,
}

/// Whether an event is recorded even if its project is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    NoEnd,
    /// The end of something in progress, or a sign of it.
    End,
    /// What the toolkit itself records because something ended or ran out of time.
    Consequence,
}

/// Until when an agent that has to leave may record an event. Each value includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhenLeaving {
    /// Not once it has to leave.
    Refused,
    /// While its project is paused: it tidies up, and shows that it is there.
    Paused,
    /// Also when its session is void.
    Void,
    /// Also when its project is archived.
    Archived,
}

/// The project that an event opens if nothing has named that project before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    Nothing,
    /// The one that this member of the payload names.
    Named(&'static str),
    /// `main`, if the event is about it.
    Main,
}

/// The second entity that an event moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedEntity {
    pub entity: EntityType,
    /// The member of the payload that has its id.
    pub member: &'static str,
    pub rule: LinkRule,
}

/// How the second entity comes along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRule {
    /// It takes the step if the step is legal for it.
    IfLegal,
    /// The step must be legal for it, too.
    MustBeLegal,
    /// It must be active.
    MustBeActive,
}

/// Where an event comes from if its author names no parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The last change of its subject; of a new one, its target, or the start of its agent.
    History,
    /// The same; of a new subject, first the entity of this type that this member of the payload names.
    Named(EntityType, &'static str),
    /// From outside the log.
    Outside,
}

/// What the fold keeps beside the entities that an event moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffect {
    Nothing,
    /// The settings that it carries are in force.
    Settles,
    /// The run is kept alive by the claim of its task.
    TakesLease,
    /// A root makes its agent one of the personas.
    CountsPersona,
    /// The thread before is archived, and the root is suspended.
    OpensThread,
    /// The root is active again, and remembers the thread.
    ClosesThread,
    /// The last thread of the branch is archived.
    ArchivesThread,
    /// The message joins the threads of those who talk.
    DeliversMessage,
    /// The message is archived, and its reader has one fewer to read.
    ArchivesMessage,
}

/// A row with the default in every column.
pub(super) const fn row(
    kind: Kind,
    about: SubjectType,
    fields: &'static [PayloadField],
    meaning: &'static str,
) -> KindRow {
    KindRow {
        kind,
        about,
        reserved: false,
        fields,
        meaning,
        by: RecordedBy::Anyone,
        speaks_for: SpeaksFor::Nobody,
        claim: Claim::Unneeded,
        starts: Starts::Nothing,
        ending: Ending::NoEnd,
        leaving: WhenLeaving::Refused,
        opens: Opens::Nothing,
        moves: None,
        cause: Cause::History,
        side_effect: SideEffect::Nothing,
        also_changes: &[],
        is_frequent: false,
        wakes_jobs: false,
        tells_presence: false,
        depends_on_settings: false,
    }
}

/// A row of what the vault itself writes.
pub(super) const fn reserved(kind: Kind, fields: &'static [PayloadField], meaning: &'static str) -> KindRow {
    KindRow { reserved: true, ..row(kind, SubjectType::One(EntityType::System), fields, meaning) }
}

/// The columns, for a row that differs from the default.
impl KindRow {
    pub(super) const fn by(self, by: RecordedBy) -> KindRow {
        KindRow { by, ..self }
    }

    pub(super) const fn speaks_for(self, speaks_for: SpeaksFor) -> KindRow {
        KindRow { speaks_for, ..self }
    }

    pub(super) const fn claim(self, claim: Claim) -> KindRow {
        KindRow { claim, ..self }
    }

    pub(super) const fn starts(self, starts: Starts) -> KindRow {
        KindRow { starts, ..self }
    }

    pub(super) const fn ending(self, ending: Ending) -> KindRow {
        KindRow { ending, ..self }
    }

    pub(super) const fn leaving(self, leaving: WhenLeaving) -> KindRow {
        KindRow { leaving, ..self }
    }

    pub(super) const fn opens(self, opens: Opens) -> KindRow {
        KindRow { opens, ..self }
    }

    pub(super) const fn moves(self, entity: EntityType, member: &'static str, rule: LinkRule) -> KindRow {
        KindRow { moves: Some(LinkedEntity { entity, member, rule }), ..self }
    }

    pub(super) const fn cause(self, cause: Cause) -> KindRow {
        KindRow { cause, ..self }
    }

    pub(super) const fn side_effect(self, side_effect: SideEffect) -> KindRow {
        KindRow { side_effect, ..self }
    }

    pub(super) const fn also_changes(self, also_changes: &'static [EntityType]) -> KindRow {
        KindRow { also_changes, ..self }
    }

    pub(super) const fn frequent(self) -> KindRow {
        KindRow { is_frequent: true, ..self }
    }

    pub(super) const fn wakes_jobs(self) -> KindRow {
        KindRow { wakes_jobs: true, ..self }
    }

    pub(super) const fn tells_presence(self) -> KindRow {
        KindRow { tells_presence: true, ..self }
    }

    pub(super) const fn depends_on_settings(self) -> KindRow {
        KindRow { depends_on_settings: true, ..self }
    }
}
