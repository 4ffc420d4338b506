//! The watchdog's rules: one row for each code.

use crate::base::names;

names! {
    /// Every rule of the watchdog, by its code.
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
        JobOrphaned = "JOB_ORPHANED",
        LeaseExpired = "LEASE_EXPIRED",
        ApprovalOverdue = "APPROVAL_OVERDUE",
        SessionExpired = "SESSION_EXPIRED",
        Runaway = "RUNAWAY",
        HookFailed = "HOOK_FAILED",
        SettingsDiffer = "SETTINGS_DIFFER",
        NotTrusted = "NOT_TRUSTED",
        ArchiveDue = "ARCHIVE_DUE",
    }
}

/// What is known about a code.
#[derive(Debug)]
struct CodeRow {
    #[cfg_attr(not(test), expect(dead_code, reason = "names the row; a test checks the order"))]
    code: Code,
    class: FindingClass,
    /// What the agent or an operator should do.
    advice: &'static str,
    /// The command with which an operator deals with it; `{}` stands for the agent.
    remedy: &'static str,
}

/// How a finding begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FindingClass {
    /// Like `Lasting`, and the agent is silent: waking it may help.
    Silence,
    /// It lasts until the rule is satisfied again.
    Lasting,
    /// It is reported once and has no duration.
    Once,
    /// Housekeeping that needs no attention.
    Housekeeping,
}

/// For an agent that is gone: nothing is expected of it any more, and its next command announces it again.
const STOPPED: &str = "hf-append AgentStopped --subject agent:{}";
/// For an agent that is there, but does not do what it should.
const TELL: &str = "hf-branch tell {} TEXT";

#[rustfmt::skip]
const TABLE: &[CodeRow] = &[
    CodeRow { code: Code::NeverSeen, class: FindingClass::Silence, advice: "show what you are doing with hf-checkpoint", remedy: STOPPED },
    CodeRow { code: Code::Inactive, class: FindingClass::Silence, advice: "write an activity log, or a checkpoint if you are in the middle of something", remedy: STOPPED },
    CodeRow { code: Code::IntrospectionOverdue, class: FindingClass::Lasting, advice: "write an introspection with hf-activity --kind introspection", remedy: TELL },
    CodeRow { code: Code::IntrospectionDuty, class: FindingClass::Lasting, advice: "deep work must be followed by an introspection: hf-activity --kind introspection", remedy: TELL },
    CodeRow { code: Code::DeepworkUnchecked, class: FindingClass::Silence, advice: "flexible deep work requires checkpoints: hf-checkpoint", remedy: STOPPED },
    CodeRow { code: Code::DeepworkExpired, class: FindingClass::Once, advice: "the declared time has expired; log what was done with hf-activity", remedy: TELL },
    CodeRow { code: Code::DeepworkMalformed, class: FindingClass::Once, advice: "an invalid declaration was set aside; declare deep work again with hf-deepwork", remedy: TELL },
    CodeRow { code: Code::ClockSkew, class: FindingClass::Lasting, advice: "an id is in the future; check the clock and liveness.timezone", remedy: "hf-log --last 20" },
    CodeRow { code: Code::RunSilent, class: FindingClass::Lasting, advice: "a run fell silent; its task is retried or aborted", remedy: "hf-watchdog" },
    CodeRow { code: Code::RunOvertime, class: FindingClass::Lasting, advice: "a run exceeded its time limit; its task is retried or aborted", remedy: "hf-watchdog" },
    CodeRow { code: Code::JobLost, class: FindingClass::Lasting, advice: "a job disappeared without a result; check its log", remedy: "hf-job list" },
    CodeRow { code: Code::JobOrphaned, class: FindingClass::Lasting, advice: "a job runs without its supervisor; wait for its end, or end it with hf-job cancel", remedy: "hf-job list --running" },
    CodeRow { code: Code::LeaseExpired, class: FindingClass::Lasting, advice: "a lease expired; claim the task again if you are still working on it", remedy: "hf-watchdog" },
    CodeRow { code: Code::ApprovalOverdue, class: FindingClass::Lasting, advice: "nobody answered in time; see hf-decide list", remedy: "hf-decide list --open" },
    CodeRow { code: Code::SessionExpired, class: FindingClass::Lasting, advice: "an agent did not log out in time; its session has expired", remedy: "hf-watchdog" },
    CodeRow { code: Code::Runaway, class: FindingClass::Once, advice: "one actor is recording many events; check whether it is in a loop", remedy: TELL },
    CodeRow { code: Code::HookFailed, class: FindingClass::Once, advice: "a hook fails; hf-status says which and why", remedy: "hf-config show" },
    CodeRow { code: Code::SettingsDiffer, class: FindingClass::Once, advice: "the settings file differs from the adopted settings and is not in force; see hf-config diff", remedy: "hf-config diff" },
    CodeRow { code: Code::NotTrusted, class: FindingClass::Once, advice: "the commands in the settings are not run; hf-status says why", remedy: "hf-config trust" },
    CodeRow { code: Code::ArchiveDue, class: FindingClass::Housekeeping, advice: "nothing to do", remedy: "hf-watchdog" },
];

impl Code {
    fn row(self) -> &'static CodeRow {
        &TABLE[self as usize]
    }

    /// Whether it needs attention; the rest is housekeeping.
    pub fn is_anomaly(self) -> bool {
        self.row().class != FindingClass::Housekeeping
    }

    /// Whether waking the agent may help.
    pub fn is_silence(self) -> bool {
        self.row().class == FindingClass::Silence
    }

    /// Whether it lasts until the rule is satisfied again, so that its start and end are recorded for an agent.
    /// Housekeeping never concerns an agent.
    pub fn has_duration(self) -> bool {
        self.row().class != FindingClass::Once
    }

    pub fn advice(self) -> &'static str {
        self.row().advice
    }

    /// The command with which an operator deals with it; `{}` stands for the agent.
    pub fn remedy(self) -> &'static str {
        self.row().remedy
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
