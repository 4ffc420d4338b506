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
        FileUnreadable = "FILE_UNREADABLE",
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
    /// The same for an agent that writes files; empty if it is no different.
    advice_in_files: &'static str,
    /// The command with which an operator deals with it; `{}` stands for the agent.
    remedy: &'static str,
}

/// How a finding begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FindingClass {
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
    CodeRow { code: Code::NeverSeen, class: FindingClass::Lasting, advice: "show what you are doing with hf-checkpoint", advice_in_files: "write what you are doing to stats/checkpoints/ID.txt, where ID is the current heartbeat id", remedy: STOPPED },
    CodeRow { code: Code::Inactive, class: FindingClass::Lasting, advice: "write an activity log, or a checkpoint if you are in the middle of something", advice_in_files: "write an activity log, or stats/checkpoints/ID.txt if you are in the middle of something; ID is the current heartbeat id", remedy: STOPPED },
    CodeRow { code: Code::IntrospectionOverdue, class: FindingClass::Lasting, advice: "write an introspection with hf-activity --kind introspection", advice_in_files: "write an introspection as an activity log, or declare deep work in stats/deep_work/ID.txt", remedy: TELL },
    CodeRow { code: Code::IntrospectionDuty, class: FindingClass::Lasting, advice: "deep work must be followed by an introspection: hf-activity --kind introspection", advice_in_files: "deep work must be followed by an introspection: write one as your next activity log", remedy: TELL },
    CodeRow { code: Code::DeepworkUnchecked, class: FindingClass::Lasting, advice: "flexible deep work requires checkpoints: hf-checkpoint", advice_in_files: "flexible deep work requires checkpoints: write stats/checkpoints/ID.txt", remedy: STOPPED },
    CodeRow { code: Code::DeepworkExpired, class: FindingClass::Once, advice: "the declared time has expired; log what was done with hf-activity", advice_in_files: "the declared time has expired; write an activity log about what was done", remedy: TELL },
    CodeRow { code: Code::DeepworkMalformed, class: FindingClass::Once, advice: "an invalid declaration was set aside; declare deep work again with hf-deepwork", advice_in_files: "an invalid declaration was set aside; write a new one to stats/deep_work/ID.txt", remedy: TELL },
    CodeRow { code: Code::FileUnreadable, class: FindingClass::Once, advice: "a file of an agent does not count because it cannot be read; the finding says which and why", advice_in_files: "", remedy: "hf-watchdog --check" },
    CodeRow { code: Code::ClockSkew, class: FindingClass::Lasting, advice: "an id is in the future; check the clock and liveness.timezone", advice_in_files: "", remedy: "hf-log --last 20" },
    CodeRow { code: Code::RunSilent, class: FindingClass::Lasting, advice: "a run fell silent; its task is retried or aborted", advice_in_files: "", remedy: "hf-watchdog" },
    CodeRow { code: Code::RunOvertime, class: FindingClass::Lasting, advice: "a run exceeded its time limit; its task is retried or aborted", advice_in_files: "", remedy: "hf-watchdog" },
    CodeRow { code: Code::JobLost, class: FindingClass::Lasting, advice: "a job disappeared without a result; check its log", advice_in_files: "", remedy: "hf-job list" },
    CodeRow { code: Code::JobOrphaned, class: FindingClass::Lasting, advice: "a job runs without its supervisor; wait for its end, or end it with hf-job cancel", advice_in_files: "", remedy: "hf-job list --running" },
    CodeRow { code: Code::LeaseExpired, class: FindingClass::Lasting, advice: "a lease expired; claim the task again if you are still working on it", advice_in_files: "", remedy: "hf-watchdog" },
    CodeRow { code: Code::ApprovalOverdue, class: FindingClass::Lasting, advice: "nobody answered in time; see hf-decide list", advice_in_files: "", remedy: "hf-decide list --open" },
    CodeRow { code: Code::SessionExpired, class: FindingClass::Lasting, advice: "an agent did not log out in time; its session has expired", advice_in_files: "", remedy: "hf-watchdog" },
    CodeRow { code: Code::Runaway, class: FindingClass::Once, advice: "one actor is recording many events; check whether it is in a loop", advice_in_files: "", remedy: TELL },
    CodeRow { code: Code::HookFailed, class: FindingClass::Once, advice: "a hook fails; hf-status says which and why", advice_in_files: "", remedy: "hf-config show" },
    CodeRow { code: Code::SettingsDiffer, class: FindingClass::Once, advice: "the settings file differs from the adopted settings and is not in force; see hf-config diff", advice_in_files: "", remedy: "hf-config diff" },
    CodeRow { code: Code::NotTrusted, class: FindingClass::Once, advice: "the commands in the settings are not run; hf-status says why", advice_in_files: "", remedy: "hf-config trust" },
    CodeRow { code: Code::ArchiveDue, class: FindingClass::Housekeeping, advice: "nothing to do", advice_in_files: "", remedy: "hf-watchdog" },
];

impl Code {
    fn row(self) -> &'static CodeRow {
        &TABLE[self as usize]
    }

    /// Whether it needs attention; the rest is housekeeping.
    pub fn is_anomaly(self) -> bool {
        self.row().class != FindingClass::Housekeeping
    }

    /// The anomalies of an agent from which it can be recovered: it is silent, or does not do what it owes.
    pub const RECOVERABLE: &'static [&'static str] = &[
        Code::NeverSeen.as_str(),
        Code::Inactive.as_str(),
        Code::DeepworkUnchecked.as_str(),
        Code::IntrospectionOverdue.as_str(),
        Code::IntrospectionDuty.as_str(),
    ];

    /// Whether it lasts until the rule is satisfied again, so that its start and end are recorded for an agent.
    /// Housekeeping never concerns an agent.
    pub fn has_duration(self) -> bool {
        self.row().class != FindingClass::Once
    }

    pub fn advice(self) -> &'static str {
        self.row().advice
    }

    /// The advice for an agent that writes files.
    pub fn advice_in_files(self) -> &'static str {
        let row = self.row();
        if row.advice_in_files.is_empty() { row.advice } else { row.advice_in_files }
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
