//! Typed views: what is known about an entity of each type, by name.
//!
//! The fold keeps facts by their names in the projections, so that adding one is adding a row to `facts`. Outside this
//! layer, code calls `task.as_task().lease_seconds()`, so that a typo does not compile. The exception is code that
//! copies facts into a payload, or compares them with one: it uses their names, through `Entity::facts`. Invariant:
//! every fact that a view reads is one that the fold writes (`every_field_of_a_view_is_a_fact_that_the_fold_writes`).

use std::borrow::Cow;
use std::ops::Deref;

use serde_json::{Map, Value};

use super::facts::STEPS;
use super::{Entity, LEASE};
use crate::base::{EntityId, EntityType, Subject, Timestamp, Ulid};
use crate::event::parse_ulid;

/// Declares the views: `field: shape = "fact"`. A shape is `text`, `texts`, `count`, `number`, `time`, `flag`, `id`,
/// `event`, `value`, `object` or the type of entity that the fact names.
macro_rules! views {
    ($($(#[$doc:meta])* $View:ident of $Type:ident by $as_view:ident { $($(#[$field_doc:meta])* $field:ident: $shape:tt = $fact:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub struct $View<'a>(&'a Entity);

            impl<'a> $View<'a> {
                $(views!(@field $(#[$field_doc])* $field $shape $fact);)*
            }

            impl Deref for $View<'_> {
                type Target = Entity;

                fn deref(&self) -> &Entity {
                    self.0
                }
            }

            impl Entity {
                $(#[$doc])*
                pub fn $as_view(&self) -> $View<'_> {
                    debug_assert_eq!(self.subject.entity, EntityType::$Type, "{}", self.subject);
                    $View(self)
                }
            }
        )*

        /// Which facts the views read, by type.
        #[cfg(test)]
        pub(super) const READ: &[(EntityType, &[&str])] = &[$((EntityType::$Type, &[$($fact),*])),*];
    };
    (@field $(#[$doc:meta])* $field:ident text $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> Option<&'a str> {
            self.0.text($fact)
        }
    };
    (@field $(#[$doc:meta])* $field:ident texts $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> impl Iterator<Item = &'a str> + use<'a> {
            self.0.texts($fact)
        }
    };
    (@field $(#[$doc:meta])* $field:ident count $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> u64 {
            self.0.count($fact)
        }
    };
    (@field $(#[$doc:meta])* $field:ident number $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> Option<u64> {
            self.0.facts.get($fact)?.as_u64()
        }
    };
    (@field $(#[$doc:meta])* $field:ident time $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> Option<Timestamp> {
            self.0.time($fact)
        }
    };
    (@field $(#[$doc:meta])* $field:ident flag $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> bool {
            self.0.facts.get($fact) == Some(&Value::Bool(true))
        }
    };
    (@field $(#[$doc:meta])* $field:ident id $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> Option<EntityId> {
            EntityId::parse(self.0.text($fact)?).ok()
        }
    };
    (@field $(#[$doc:meta])* $field:ident value $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> Option<&'a Value> {
            self.0.facts.get($fact)
        }
    };
    (@field $(#[$doc:meta])* $field:ident object $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> Option<&'a Map<String, Value>> {
            self.0.facts.get($fact)?.as_object()
        }
    };
    (@field $(#[$doc:meta])* $field:ident event $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> Option<Ulid> {
            parse_ulid(self.0.text($fact)?)
        }
    };
    (@field $(#[$doc:meta])* $field:ident subject $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> Option<Subject> {
            Subject::parse(self.0.text($fact)?).ok()
        }
    };
    (@field $(#[$doc:meta])* $field:ident $Named:ident $fact:literal) => {
        $(#[$doc])*
        pub fn $field(self) -> Option<Subject> {
            self.0.named($fact, EntityType::$Named)
        }
    };
}

views! {
    /// The whole vault, which is running or stopped.
    System of System by as_system {
        running_since: time = "running_since",
        stopped_at: time = "stopped_at",
        stopped_by: text = "stopped_by",
        stop_reason: text = "stop_reason",
        /// The hooks that fail, by their setting: since when (`at`) and why (`reason`).
        failed_hooks: object = "failed_hooks",
    }

    /// Something that is wanted.
    Requirement of Requirement by as_requirement {
        title: text = "title",
        project_id: text = "project_id",
        /// The digest of everything that was proposed and analyzed: what an approval is for.
        content: text = "content",
        /// How many of its tasks are neither done nor aborted.
        open_tasks: count = "tasks_open",
        succeeded_tasks: count = "tasks_succeeded",
        /// How many of its tasks were aborted since it was approved, and are not repeated by a rework.
        unmet_tasks: count = "tasks_unmet",
        /// The event that approved it last.
        approved_by: event = "_approved_by",
        /// The event with its latest analysis.
        analyzed_by: event = "_analyzed_by",
        /// How many rounds its missions have had, and how many an operator added to those that every requirement has.
        rounds: count = "_rounds",
        rounds_added: count = "_rounds_added",
        reason: text = "reason",
        blocked_at: time = "blocked_at",
        /// How often verification sent work back since it was approved.
        returns: count = "returns",
    }

    /// A question and its answer.
    Decision of Decision by as_decision {
        /// The name of a `policy::approval::Question`.
        kind: text = "kind",
        target: subject = "target",
        /// The digest of the target when the decision was requested.
        target_hash: text = "target_hash",
        summary: text = "summary",
        options: texts = "options",
        /// The change that an approval makes, for a question about a constraint.
        change: value = "change",
        requested_at: time = "requested_at",
        requested_by: text = "_requested_by",
        timed_out_at: time = "timed_out_at",
        rationale: text = "rationale",
    }

    /// A piece of work.
    Task of Task by as_task {
        title: text = "title",
        project_id: text = "project_id",
        /// The digest of what was proposed: what an approval is for.
        content: text = "content",
        requirement: Requirement = "requirement_id",
        proposed_by: text = "_proposed_by",
        /// What it is about, in full sentences; a long one is cut, and the event has it all.
        description: text = "description",
        /// The edit that has the whole description, if one changed it.
        described_by: event = "_described_by",
        /// The latest mark of a step.
        marked_by: event = "_marked_by",
        /// One of `event::kind::TASK_PRIORITIES`, if it was given.
        priority: text = "priority",
        edited_at: time = "edited_at",
        /// The latest edit, and its reason.
        edited_by: event = "_edited_by",
        edited_because: text = "edited_because",
        /// What somebody who worked on it left for the next, and the event with the whole text.
        note: text = "note",
        noted_by: event = "_noted_by",
        /// The ids of the events with the latest notes and handoffs, and how many there are.
        notes: texts = "_notes",
        note_count: count = "_note_count",
        /// The event with the operator's note for its holder.
        handoff_by: event = "_handoff_by",
        /// The ids of the tasks that must succeed first.
        after: texts = "after",
        is_destructive: flag = "destructive",
        /// How often it may be retried, if its proposal sets a limit.
        max_retries: number = "max_retries",
        retry_count: count = "retry_count",
        /// The task that this one repeats.
        rework_of: Task = "rework_of",
        /// Why it repeats that task: what was wrong with the artifact.
        rework_reason: text = "rework_reason",
        /// The holder of the last assignment. It is removed when the task becomes ready again, but not when the task
        /// ends; see `Entity::holder` for the holder of a task in progress.
        recorded_holder: text = "holder",
        past_holders: texts = "past_holders",
        /// From whom an operator took it for its current holder, and why.
        taken_from: text = "_taken_from",
        assigned_because: text = "assigned_because",
        /// The operator's note for its current holder.
        handoff: text = "handoff",
        lease_seconds: count = "lease_seconds",
        claimed_at: time = "claimed_at",
        /// How often it was assigned: claimed, or assigned again for a retry.
        generation: count = "generation",
        /// Who assigned it last: its holder, by a claim, or somebody else.
        assigned_by: text = "_assigned_by",
        last_run: Run = "last_run_id",
        last_run_id: text = "last_run_id",
        succeeded_at: time = "succeeded_at",
        error_class: text = "error_class",
        failure: text = "failure",
        /// The event of a failure that was not retried.
        failed_by: event = "_failed_by",
        /// Who reported a failure that was not retried.
        failed_actor: text = "_failed_actor",
        aborted_at: time = "aborted_at",
        aborted_by: text = "aborted_by",
        succeeded_by: text = "_succeeded_by",
        abort_reason: text = "abort_reason",
        /// The event that aborted it.
        aborted_by_event: event = "_abort_id",
        /// The task that repeats this one.
        rework: Task = "reworked_by",
        /// The attempt before this one: the task that it repeats, or the newest rework of that.
        continues: Task = "_continues",
        /// The constraint that put it first when it was last claimed.
        constraint: Constraint = "constraint_id",
        /// The mission that it is work of.
        mission: Mission = "of_mission",
        /// The step of a round that `hf-state go` fired it for.
        mission_step: text = "_mission_step",
        /// Its part of a plan: its id there, and its command.
        planned: object = "_planned",
    }

    /// A task that is a command, started by a supervisor.
    Job of Task by as_job {
        command_hash: text = "command_hash",
        /// The event that says what runs.
        command_by: event = "_command_by",
        /// The digest of everything that an approval of it binds.
        bound_digest: text = "_bound_digest",
        /// Why approval was requested again.
        changed_because: text = "changed_because",
    }

    /// One attempt at a task.
    Run of Run by as_run {
        task: Task = "task_id",
        /// Why it crashed or timed out.
        reason: text = "reason",
        /// What it brought, in words of the agent.
        summary: text = "_summary",
        started_at: time = "started_at",
        last_heartbeat_at: time = "last_heartbeat_at",
    }

    /// A file that a task made.
    Artifact of Artifact by as_artifact {
        task_id: text = "task_id",
        task: Task = "task_id",
        kind: text = "kind",
        filename: text = "filename",
        /// The digest of its content; missing until the content is stored.
        sha256: text = "sha256",
        size_bytes: count = "size_bytes",
        path: text = "path",
        /// Why it was found invalid.
        invalid_reason: text = "invalid_reason",
        corrupted_at: time = "corrupted_at",
    }

    /// A rule for all work, or a priority.
    Constraint of Constraint by as_constraint {
        text: text = "text",
        /// The requirement or task to work on first.
        priority: subject = "priority",
    }

    /// A program that acts on its own.
    Agent of Agent by as_agent {
        /// Whether it acted without having been started explicitly.
        is_announced: flag = "announced",
        started_at: time = "started_at",
        last_activity_at: time = "last_activity_at",
        last_activity_id: text = "last_activity_id",
        last_introspection_at: time = "last_introspection_at",
        last_checkpoint_at: time = "last_checkpoint_at",
        last_checkpoint_id: text = "last_checkpoint_id",
        last_checkpoint: text = "last_checkpoint",
        /// Its current deep work.
        deep_work: DeepWork = "deepwork_id",
        last_deep_work_end: time = "last_deepwork_end",
        /// The state of the introspection that is owed after deep work; see `state::duty`.
        duty: text = "duty",
        /// Since when that introspection is not only owed, but missed.
        duty_broken_at: time = "_duty_broken_at",
        /// Start and end of its last strict deep work, and the end of the one before.
        quiet_since: time = "_quiet_since",
        quiet_until: time = "_quiet_until",
        quiet_before: time = "_quiet_before",
        /// When each uncleared anomaly was detected, by its code.
        anomalies: object = "anomalies",
        /// How often, and when last, the watchdog tried to wake it.
        recovery_attempts: count = "_tries",
        last_recovery_at: time = "_tried_at",
        /// When it last started a run or sent a heartbeat of one.
        last_progress_at: time = "_progress_at",
        /// When it last waited for a job.
        last_waited_at: time = "_waited_at",
        /// When it last did anything about a task.
        last_seen_at: time = "_seen_at",
        /// The ids of the tasks that it lost without an act of its own, since its last checkpoint or activity log.
        lost_tasks: texts = "_lost_tasks",
        /// When it last gave up a task, or lost it.
        released_at: time = "_released_at",
        /// Whether it ever lost a task because it fell silent.
        has_lost_claim: flag = "_lost_claim",
        /// The anomaly for which recovery was given up.
        gave_up_on: text = "_gave_up",
        stopped_at: time = "_stopped_at",
        /// Its latest files of each sort, as `TIME NAME`. Files whose time is not after the floor are older than these,
        /// and files that are not after `files_since` never counted.
        files_since: time = "_files_since",
        logs: texts = "_logs",
        logs_floor: time = "_logs_floor",
        checkpoints: texts = "_checkpoints",
        checkpoints_floor: time = "_checkpoints_floor",
        declarations: texts = "_declarations",
        declarations_floor: time = "_declarations_floor",
        /// When it last declared deep work.
        declared_at: time = "_declared_at",
    }

    /// A declared time of quiet work.
    DeepWork of DeepWork by as_deep_work {
        agent: text = "agent_id",
        heartbeat_id: text = "heartbeat_id",
        mode: text = "mode",
        activity: text = "activity",
        minutes: count = "minutes",
        extensions: count = "extensions",
        started_at: time = "started_at",
        ended_at: time = "ended_at",
        /// The name of its file.
        file: text = "_file",
        /// The time in that name, if the declaration was found in a file, not made by a command.
        found_at: time = "_found_at",
    }

    /// A goal that is worked on in rounds.
    Mission of Mission by as_mission {
        goal: text = "goal",
        requirement: Requirement = "requirement_id",
        requirement_id: text = "requirement_id",
        task: Task = "task_id",
        /// Its own rounds; those of its requirement may be more.
        round: count = "round",
        rounds_added: count = "rounds_added",
        /// The tasks that it consists of, in order.
        plan: texts = "plan",
        plan_digest: text = "_plan_digest",
        /// The event with the plan.
        planned_by: event = "_planned_by",
        /// Who started it.
        started_by: text = "_started_by",
        /// Who called it failed.
        ended_by: text = "_ended_by",
        /// The events in which somebody wrote down what was done last, and what is next.
        last_action_by: event = "_last_action_by",
        next_action_by: event = "_next_action_by",
        /// The event that began its round.
        round_by: event = "_round_by",
        /// Whether a job was fired in this round.
        was_tried: flag = "_tried",
        /// The job whose failure in this round was reported.
        reported: Task = "_reported",
    }

    /// Reviews of one thing, until the reviewers agree.
    Debate of Debate by as_debate {
        reviewers: texts = "reviewers",
        mission: Mission = "mission_id",
        round: count = "round",
        newest_review: Review = "newest",
    }

    /// What one reviewer found.
    Review of Review by as_review {
        fails: texts = "fails",
        /// The SHA-256 of the document that it is about.
        document_sha256: text = "document_sha256",
        /// Its path, or its reference from hf-ref.
        document: text = "document",
    }

    /// A file that agents should read.
    Document of Document by as_document {
        kind: text = "kind",
        path: text = "path",
        sha256: text = "sha256",
    }

    /// What work belongs to.
    Project of Project by as_project {
        paused_at: time = "paused_at",
        paused_by: text = "paused_by",
        pause_reason: text = "pause_reason",
        /// When nothing was in progress anymore.
        drained_at: time = "drained_at",
        archived_at: time = "archived_at",
        archived_by: text = "archived_by",
        archive_reason: text = "archive_reason",
        resumed_at: time = "resumed_at",
        resume_comment: text = "resume_comment",
        /// When it was resumed the time before the last.
        resumed_before: time = "_resumed_before",
    }

    /// The time between an agent's login and logout.
    Session of Session by as_session {
        agent: text = "agent_id",
        project_id: text = "project_id",
        expires_at: time = "expires_at",
        ended_at: time = "ended_at",
        end_reason: text = "end_reason",
        /// The event that renewed it last.
        renewed_by: event = "_renewed_by",
    }

    /// One line of a persona's activity.
    Branch of Branch by as_branch {
        persona: id = "persona_id",
        persona_id: text = "persona_id",
        partner: id = "partner_persona_id",
        partner_id: text = "partner_persona_id",
        branch_type: text = "branch_type",
        label: text = "label",
        task: Task = "task_id",
        task_id: text = "task_id",
        /// How many threads it has had.
        threads: count = "threads",
        current_thread: Thread = "current_thread_id",
        last_thread_id: text = "last_thread_id",
        suspended_at: time = "suspended_at",
        last_activity: text = "last_activity",
        /// The first line of the latest note, summary or message.
        brief_state: text = "brief_state",
        /// How many messages a persona has not read; only its root has this.
        unread: count = "unread",
        /// The message that interrupts the persona; only its root has this.
        interrupt: Message = "interrupt_id",
        /// The ids of the latest closed threads of the persona's other branches; only its root has this.
        anchors: texts = "anchors",
        /// The ids of the branches of which something was heard last, newest last; only its root has this.
        recent: texts = "_recent",
        /// How many branches something was heard of; only the root has this.
        heard_count: count = "_heard_count",
        /// Whether something was heard of it.
        is_heard_of: flag = "_heard_of",
        /// The branch that the persona believes to be on, the one before it, and the first one that others took it to
        /// since it last knew where it was; only its root has these.
        believed: Branch = "_believed",
        was_at: Branch = "_was_at",
        taken_to: Branch = "_taken_to",
        /// The branch that the persona left, without a word, by claiming a task; only its root has this.
        claimed_from: Branch = "_claimed_from",
        /// The ids of the user's messages that the persona has neither read nor answered, of those that came while it was
        /// elsewhere; only its root has this.
        unheard: texts = "_unheard",
        /// The ids of the latest events that matter to the persona and that it has not reacted to; only its root has this.
        changes: texts = "_changes",
        /// How many characters the titles of the persona's knowledge have; only its root has this.
        title_lengths: value = "_title_lengths",
        /// The ids of its threads that have a summary of the persona's own, the latest only.
        summaries: texts = "_summaries",
        /// How many threads have one.
        summary_count: count = "_summary_count",
        /// How many notes and messages it has.
        messages: count = "_messages",
        /// The ids of the latest messages that came while it had no open thread, and how many there are.
        waiting: texts = "_waiting",
        waiting_count: count = "_waiting_count",
    }

    /// One stretch of a branch.
    Thread of Thread by as_thread {
        branch: Branch = "branch_id",
        branch_id: text = "branch_id",
        /// The thread that it continues.
        anchor: Thread = "anchor_id",
        anchor_id: text = "anchor_id",
        /// Its position among the threads of its branch, from 1.
        number: count = "number",
        messages: count = "messages",
        opened_at: text = "opened_at",
        closed_at: text = "closed_at",
        summary: text = "summary",
        reason: text = "reason",
        /// The ids of the events of its last notes and messages.
        tail: texts = "tail",
        /// The event that closed it.
        closed_by: event = "_closed_by",
        /// The message that ended it.
        interrupted_by: Message = "_interrupted_by",
        /// How many notes and messages its branch had before it.
        messages_before: count = "_before",
    }

    /// A note to a persona.
    Message of Message by as_message {
        to: text = "to",
        from: text = "from",
        text: text = "text",
        sent_at: text = "sent_at",
    }

    /// Something that a persona wrote down to know it later.
    Knowledge of Knowledge by as_knowledge {
        persona: id = "persona_id",
        title: text = "title",
        /// The first line of its text.
        text: text = "text",
        recorded_at: text = "recorded_at",
        /// How often it was written, and the events of the latest times.
        revisions: count = "revisions",
        revision_ids: texts = "_revisions",
    }

    /// Something that needs an operator.
    Escalation of Escalation by as_escalation {
        /// What it is about.
        about: subject = "about",
        reason: text = "reason",
        /// The rule of the watchdog that raised it, if one did.
        code: text = "code",
        raised_at: time = "raised_at",
        raised_by: text = "raised_by",
    }
}

impl Entity {
    /// The text that describes it to people, if its type has one.
    pub fn title(&self) -> Option<&str> {
        match self.subject.entity {
            EntityType::Requirement => self.as_requirement().title(),
            EntityType::Task => self.as_task().title(),
            EntityType::Decision => self.as_decision().summary(),
            EntityType::Constraint => self.as_constraint().text(),
            EntityType::Message => self.as_message().text(),
            EntityType::Branch => self.as_branch().label(),
            EntityType::Thread => self.as_thread().summary(),
            EntityType::Escalation => self.as_escalation().reason(),
            EntityType::Knowledge => self.as_knowledge().title(),
            _ => None,
        }
    }

    /// Who worded the question, if it is a decision that somebody asked for in words of their own.
    pub fn questioner(&self) -> Option<&str> {
        let decision = (self.subject.entity == EntityType::Decision).then(|| self.as_decision())?;
        decision.requested_by().filter(|by| !by.starts_with("core:") && decision.change().is_none())
    }

    /// The title as it is shown to people. A question in somebody's own words names them, so that nobody takes it for
    /// the toolkit's.
    pub fn heading(&self) -> Option<Cow<'_, str>> {
        let title = self.title()?;
        Some(match self.questioner() {
            Some(by) => Cow::Owned(format!("{by} asks: {title}")),
            None => Cow::Borrowed(title),
        })
    }

    /// The path of its file, if its type has one.
    pub fn path(&self) -> Option<&str> {
        match self.subject.entity {
            EntityType::Artifact => self.as_artifact().path(),
            EntityType::Document => self.as_document().path(),
            _ => None,
        }
    }

    /// The project that it names explicitly, if any; `Entity::project` is the project that it belongs to.
    pub fn declared_project(&self) -> Option<&str> {
        match self.subject.entity {
            EntityType::Requirement => self.as_requirement().project_id(),
            EntityType::Task => self.as_task().project_id(),
            EntityType::Session => self.as_session().project_id(),
            _ => None,
        }
    }

    /// The agent that it belongs to, by its id, if its type names one.
    pub fn agent_id(&self) -> Option<&str> {
        match self.subject.entity {
            EntityType::DeepWork => self.as_deep_work().agent(),
            EntityType::Session => self.as_session().agent(),
            _ => None,
        }
    }
}

/// A step of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStep {
    /// Its number, from 1.
    pub number: usize,
    pub text: String,
    /// One of `event::kind::STEP_MARKS`.
    pub mark: String,
}

impl TaskStep {
    pub fn is_open(&self) -> bool {
        self.mark == "open"
    }
}

impl Task<'_> {
    /// Its steps, in order.
    pub fn steps(self) -> Vec<TaskStep> {
        let steps = self.0.facts.get(STEPS).and_then(Value::as_array).into_iter().flatten();
        let member = |step: &Value, name: &str| step.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let step = |(n, step): (usize, &Value)| TaskStep {
            number: n + 1,
            text: member(step, "text"),
            mark: member(step, "mark"),
        };
        steps.enumerate().map(step).collect()
    }

    /// The step to work on: the first that is open.
    pub fn active_step(self) -> Option<TaskStep> {
        self.steps().into_iter().find(TaskStep::is_open)
    }

    /// Whether its claim can expire.
    pub fn has_lease(self) -> bool {
        self.0.facts.contains_key(LEASE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts;
    use super::*;

    /// Facts that the fold writes without a row in `facts`.
    const OTHER_FACTS: &[(EntityType, &[&str])] = &[
        (EntityType::System, &["failed_hooks"]),
        (EntityType::Requirement, &["tasks_open", "tasks_succeeded", "_rounds", "_rounds_added"]),
        (EntityType::Task, &["reworked_by", "_continues"]),
        (EntityType::Mission, &["_tried"]),
        (
            EntityType::Agent,
            &["anomalies", "_gave_up", "_progress_at", "_seen_at", "_lost_tasks", "_released_at", "_lost_claim"],
        ),
        (
            EntityType::Branch,
            &[
                "interrupt_id",
                "anchors",
                "_recent",
                "_heard_count",
                "_heard_of",
                "_summary_count",
                "_believed",
                "_was_at",
                "_taken_to",
                "_claimed_from",
                "_unheard",
                "_summaries",
                "_waiting",
                "_waiting_count",
                "_changes",
                "_title_lengths",
            ],
        ),
        (EntityType::Thread, &["number", "_before"]),
    ];

    #[test]
    fn every_field_of_a_view_is_a_fact_that_the_fold_writes() {
        for (entity, read) in READ {
            for fact in *read {
                let folded = OTHER_FACTS.iter().any(|(of, facts)| of == entity && facts.contains(fact));
                assert!(folded || facts::is_written(*entity, fact), "nothing writes {fact} of {entity}");
            }
        }
    }

    #[test]
    fn every_type_has_a_view() {
        for entity in EntityType::ALL {
            assert!(READ.iter().any(|(of, _)| of == entity), "{entity}");
        }
    }
}
