//! A row of the table of kinds: its columns, their values and their defaults.
//!
//! Columns are data; the layers above decide what follows from them. `row` gives every column its default, and a row
//! of the table names only what differs.

use super::kind::{Kind, PayloadField, SubjectType};
use crate::base::EntityType;

/// One row of the table.
#[derive(Debug)]
pub struct KindRow {
    pub kind: Kind,
    pub about: SubjectType,
    /// Whether only the toolkit records it. Default: no.
    pub reserved: bool,
    pub fields: &'static [PayloadField],
    pub meaning: &'static str,
    /// Who may record it. Default: anyone.
    pub by: RecordedBy,
    /// The agent it speaks for. Default: none.
    pub speaks_for: SpeaksFor,
    /// Its relation to the claim on a task. Default: none.
    pub claim: Claim,
    /// What it starts, which is refused during a stop or pause. Default: nothing.
    pub starts: Starts,
    /// Whether it ends something and is therefore recorded even in an archived project. Default: no.
    pub ending: Ending,
    /// Whether an agent that was asked to leave may still record it. Default: no.
    pub leaving: WhenLeaving,
    /// The project that it opens if that project does not exist yet. Default: none.
    pub opens: Opens,
    /// The second entity whose phase it changes. Default: none.
    pub moves: Option<LinkedEntity>,
    /// Its cause if its author names no parents. Default: the history of its subject.
    pub cause: Cause,
    /// What the fold changes besides the entities that it moves. Default: nothing.
    pub side_effect: SideEffect,
    /// Types of entities that it changes besides its subject and its second entity. Default: none.
    pub also_changes: &'static [EntityType],
    /// Whether it is so frequent that projection files are not rewritten for it. Default: no.
    pub is_frequent: bool,
    /// Whether a waiting job may be able to start after it. Default: no.
    pub wakes_jobs: bool,
    /// Whether it says by itself that its agent is present or gone, so that the agent need not be announced first.
    /// Default: no.
    pub tells_presence: bool,
    /// Whether it is a consequence only under some settings, so that its absence from a log proves nothing. Default:
    /// no.
    pub depends_on_settings: bool,
}

/// Who may record an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedBy {
    Anyone,
    /// The toolkit or an operator, but no agent.
    NotAgents,
    /// An operator.
    Operator,
    /// An operator, or the agent that proposed the task, until it is assigned.
    OperatorOrProposer,
    /// The toolkit itself, as the consequence of another event.
    Reactor,
}

/// The agent that an event speaks for. No other agent may record it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeaksFor {
    Nobody,
    /// The agent that is its subject.
    Subject,
    /// The agent that is its second entity.
    Linked,
    /// The agent that owns its subject: this fact of the subject, or this member of the payload that creates it.
    Owner(&'static str),
}

/// The relation of an event to the claim on a task: the task that is its subject or second entity, or that its run
/// belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    Unneeded,
    /// It makes the claim.
    Makes,
    /// Only the holder may record it.
    Needs,
    /// Of all agents, only the holder may record it. Operators and the toolkit may, too.
    NeedsIfAgent,
}

/// What an event starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    Nothing,
    /// An agent's session, which a pause ends.
    Session,
    /// A claim on a task. During a pause, an operator may still assign a task.
    Claim,
    /// An attempt at a task.
    Run,
    /// Another attempt at a task that was allowed to start before.
    Retry,
}

/// Whether an event ends something and is recorded even in an archived project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    NoEnd,
    /// The end of something in progress, or a sign of it: an escalation, an anomaly, a failed hook.
    End,
    /// Recorded by the toolkit because something ended or timed out.
    Consequence,
}

/// When an agent that was asked to leave may still record an event. Each value includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhenLeaving {
    /// Never.
    Refused,
    /// While its project is paused, to finish up and show signs of life.
    Paused,
    /// Also after its session has ended.
    Void,
    /// Also after its project was archived.
    Archived,
}

/// The project that an event opens if it does not exist yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    Nothing,
    /// The project named by this member of the payload.
    Named(&'static str),
    /// `main`, if it is the subject.
    Main,
}

/// The second entity that an event moves to another phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkedEntity {
    pub entity: EntityType,
    /// The member of the payload that contains its id.
    pub member: &'static str,
    pub rule: LinkRule,
}

/// What must be true of the second entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRule {
    /// Nothing: it moves if its table allows the event.
    IfLegal,
    /// Its table must allow the event.
    MustBeLegal,
    /// It must be active.
    MustBeActive,
}

/// The cause of an event if its author names no parents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The last change of its subject; for a new subject, its target or the start of its agent.
    History,
    /// The same, but for a new subject first the entity of this type that this member of the payload names.
    Named(EntityType, &'static str),
    /// None: it comes from outside the log.
    Outside,
}

/// What the fold changes besides the entities that an event moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffect {
    Nothing,
    /// Puts the settings in its payload in force. A hook whose command changed does not count as failed.
    AdoptsSettings,
    /// Keeps the run alive with the lease of its task, and counts as progress of its agent.
    TakesLease,
    /// Counts as progress of the agent that works on the run.
    NotesProgress,
    /// Adds the agent of a new root to the personas.
    CountsPersona,
    /// Archives the previous thread and suspends the root.
    OpensThread,
    /// Activates the root again and adds the thread to it.
    ClosesThread,
    /// An aborted thread has its summary after all.
    SummarizesThread,
    /// Notes how long its title is.
    RecordsKnowledge,
    /// Its persona knows on which branch it is.
    NotesWhereabouts,
    /// Archives the last thread of the branch.
    ArchivesThread,
    /// Adds the message to the threads of sender and recipient.
    DeliversMessage,
    /// Archives the message and counts it as read.
    ArchivesMessage,
    /// Opens an escalation, whose id is that of the event.
    OpensEscalation,
    /// Links the new task with the one that it repeats.
    Reworks,
    /// Changes which hooks fail, a fact of the system.
    MarksHook,
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

/// A row of a kind that the vault itself records.
pub(super) const fn reserved(kind: Kind, fields: &'static [PayloadField], meaning: &'static str) -> KindRow {
    KindRow { reserved: true, ..row(kind, SubjectType::One(EntityType::System), fields, meaning) }
}

/// Setters for columns that differ from their default.
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
