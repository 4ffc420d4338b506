//! The codes of the watchdog: one row for each rule that can fail.

use crate::base::names;

names! {
    /// Every rule of the watchdog.
    pub enum Code {
        NeverSeen = "NEVER_SEEN",
        Inactive = "INACTIVE",
        IntrospectionOverdue = "INTROSPECTION_OVERDUE",
        IntrospectionDuty = "INTROSPECTION_DUTY",
        DeepworkUnchecked = "DEEPWORK_UNCHECKED",
        DeepworkExpired = "DEEPWORK_EXPIRED",
        DeepworkMalformed = "DEEPWORK_MALFORMED",
        ClockSkew = "CLOCK_SKEW",
        RunSilent = "RUN_SILENT",
        RunOvertime = "RUN_OVERTIME",
        JobLost = "JOB_LOST",
        LeaseExpired = "LEASE_EXPIRED",
        ApprovalOverdue = "APPROVAL_OVERDUE",
        SessionExpired = "SESSION_EXPIRED",
        Runaway = "RUNAWAY",
        ArchiveDue = "ARCHIVE_DUE",
    }
}

/// What is known about a code.
#[derive(Debug)]
struct CodeRow {
    #[cfg_attr(not(test), expect(dead_code, reason = "says which row it is; a test holds the order"))]
    code: Code,
    sort: FindingSort,
    /// What the agent, or whoever looks after it, should do.
    advice: &'static str,
}

/// What sort of finding it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FindingSort {
    /// An agent is silent: waking it may help.
    Silence,
    /// It begins, and is over when the rule holds again.
    Lasting,
    /// It is over with the event that says so.
    Moment,
    /// Housekeeping, for nobody to look at.
    Housekeeping,
}

#[rustfmt::skip]
const TABLE: &[CodeRow] = &[
    CodeRow { code: Code::NeverSeen, sort: FindingSort::Silence, advice: "show what you are doing with hf-checkpoint" },
    CodeRow { code: Code::Inactive, sort: FindingSort::Silence, advice: "write an activity log, or a checkpoint if you are in the middle of something" },
    CodeRow { code: Code::IntrospectionOverdue, sort: FindingSort::Lasting, advice: "look inward and log it with hf-activity --kind introspection" },
    CodeRow { code: Code::IntrospectionDuty, sort: FindingSort::Lasting, advice: "after deep work comes an introspection: hf-activity --kind introspection" },
    CodeRow { code: Code::DeepworkUnchecked, sort: FindingSort::Silence, advice: "flexible deep work needs checkpoints: hf-checkpoint" },
    CodeRow { code: Code::DeepworkExpired, sort: FindingSort::Moment, advice: "the declared time is over: log what was done with hf-activity" },
    CodeRow { code: Code::DeepworkMalformed, sort: FindingSort::Moment, advice: "a declaration could not be read and was set aside: declare again with hf-deepwork" },
    CodeRow { code: Code::ClockSkew, sort: FindingSort::Lasting, advice: "an id lies in the future: check the clock and liveness.timezone" },
    CodeRow { code: Code::RunSilent, sort: FindingSort::Lasting, advice: "a run fell silent; its task is tried again or given up" },
    CodeRow { code: Code::RunOvertime, sort: FindingSort::Lasting, advice: "a run took longer than it may; its task is tried again or given up" },
    CodeRow { code: Code::JobLost, sort: FindingSort::Lasting, advice: "a job is gone without a word; look at its log" },
    CodeRow { code: Code::LeaseExpired, sort: FindingSort::Lasting, advice: "a claim was not renewed; claim the task again if you are still at it" },
    CodeRow { code: Code::ApprovalOverdue, sort: FindingSort::Lasting, advice: "an operator should decide: hf-decide list --open" },
    CodeRow { code: Code::SessionExpired, sort: FindingSort::Lasting, advice: "an agent did not log out in time; its session is void" },
    CodeRow { code: Code::Runaway, sort: FindingSort::Moment, advice: "one actor records very much; is it in a loop?" },
    CodeRow { code: Code::ArchiveDue, sort: FindingSort::Housekeeping, advice: "nothing to do" },
];

impl Code {
    fn row(self) -> &'static CodeRow {
        &TABLE[self as usize]
    }

    /// Whether a person should look; the rest is housekeeping.
    pub fn is_anomaly(self) -> bool {
        self.row().sort != FindingSort::Housekeeping
    }

    /// Whether waking the agent may help.
    pub fn is_silence(self) -> bool {
        self.row().sort == FindingSort::Silence
    }

    /// Whether it has a begin and an end; the others are over with the event that says so.
    pub fn has_edges(self) -> bool {
        self.row().sort != FindingSort::Moment
    }

    pub fn advice(self) -> &'static str {
        self.row().advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_one_row_per_code_in_order() {
        assert_eq!(TABLE.len(), Code::ALL.len());
        assert!(TABLE.iter().zip(Code::ALL).all(|(row, code)| row.code == *code));
    }
}
