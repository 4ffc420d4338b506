//! The settings that policy follows: how often, how long, how many.

/// Every setting as a plain value; where it comes from is no concern of policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Governance {
    pub max_retries: u64,
    pub max_oscillations: u64,
    pub max_concurrent_tasks: u64,
    /// Whether ready tasks are assigned without being claimed.
    pub auto_assign: bool,
    pub heartbeat_interval_seconds: u64,
    pub approval_timeout_seconds: u64,
    /// Whether a decision that nobody made in time is a no; else it stays open, escalated.
    pub reject_on_timeout: bool,
    pub archive_after_seconds: u64,
}

impl Default for Governance {
    fn default() -> Self {
        Governance {
            max_retries: 3,
            max_oscillations: 5,
            max_concurrent_tasks: 10,
            auto_assign: false,
            heartbeat_interval_seconds: 30,
            approval_timeout_seconds: 24 * 60 * 60,
            reject_on_timeout: false,
            archive_after_seconds: 7 * 24 * 60 * 60,
        }
    }
}
