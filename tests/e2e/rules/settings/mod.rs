//! Every setting works: for each there is a check that sets it, does something, and sees what it changes.
//!
//! To add a setting, write its check in the file of its section and add its row to the table below. Without a row this
//! does not compile; and nothing reads a setting whose check cannot be made to pass, so it should not exist. A check is
//! a function of its setting, nearly always one `Trial`: the same steps without and with the setting, and what they give.
//! For a setting that an agent can have for itself, the trial also sets it for agent main alone.
//!
//! `file` is about the settings file itself: what is accepted, what is warned about, and what if it cannot be used.

mod file;
mod governance;
mod jobs;
mod liveness;
mod trial;
mod watchdog;
mod work;

use hiveforge::policy::settings::Setting;

/// Makes a test of each row, and a match that does not compile if a setting has no row.
macro_rules! checks {
    ($($(#[$attribute:meta])* $setting:ident => $file:ident::$check:ident,)*) => {
        const fn _every_setting_has_a_check(setting: Setting) -> fn(Setting) {
            match setting {
                $(Setting::$setting => $file::$check,)*
            }
        }
        $(
            #[test]
            $(#[$attribute])*
            fn $check() {
                $file::$check(Setting::$setting);
            }
        )*
    };
}

checks! {
    HiveName => work::the_name_of_the_hive_is_shown,
    HiveVaultPath => work::a_file_next_to_the_vault_says_where_it_is,
    MaxRetries => governance::without_retries_the_first_failure_is_final,
    MaxOscillations => governance::without_returns_the_first_one_blocks_the_requirement,
    MaxConcurrentTasks => governance::no_more_tasks_are_claimed_than_may_be_in_progress,
    TaskTimeoutSeconds => governance::t16_a_run_that_was_started_times_out,
    HeartbeatIntervalSeconds => governance::a_run_without_a_lease_is_silent_after_three_intervals,
    ApprovalTimeoutHours => governance::an_open_decision_times_out,
    ArchiveAfterDays => governance::a_finished_task_is_archived,
    LeaseSeconds => governance::a_claim_lasts_as_long_as_its_lease,
    AutoAssign => governance::a_ready_task_is_assigned_to_the_agent_of_a_session,
    ApprovalTimeoutPolicy => governance::a_decision_that_timed_out_is_rejected,
    ApprovalStrength => governance::a_signature_must_prove_enough,
    DestructiveCommands => governance::a_destructive_command_requires_approval,
    JobsMaxParallel => jobs::no_more_jobs_run_than_may,
    JobsLogMaxBytes => jobs::a_long_log_is_cut,
    JobsKillGrace => jobs::a_job_that_is_slow_to_end_is_killed,
    JobsControlGroups => jobs::a_job_gets_no_control_group,
    JobsPollMaxSeconds => jobs::a_poll_waits_as_long_as_it_may,
    JobsPassEnv => jobs::a_variable_is_passed_to_a_gated_job,
    JobsTransientExitCodes => jobs::an_exit_code_can_mean_another_try,
    JobsTransientSignals => jobs::a_signal_can_mean_another_try,
    JobsOnFinish => jobs::the_end_of_a_job_is_reported,
    JobsCheckCmd => jobs::a_foreign_job_is_looked_up,
    HooksTimeoutSeconds => jobs::a_hook_that_takes_too_long_is_killed,
    OnDecision => watchdog::a_requested_decision_is_reported,
    OnEscalation => watchdog::an_escalation_is_reported,
    OnDone => watchdog::the_end_of_a_task_is_reported,
    NeverSeenWarnSeconds => liveness::an_agent_that_was_never_seen_causes_a_warning,
    NeverSeenSeconds => liveness::an_agent_that_was_never_seen_is_an_anomaly,
    InactiveWarnSeconds => liveness::an_inactive_agent_causes_a_warning,
    InactiveErrorSeconds => liveness::an_inactive_agent_is_an_anomaly,
    IntrospectionNoticeSeconds => liveness::a_missing_introspection_causes_a_notice,
    IntrospectionWarnSeconds => liveness::a_missing_introspection_causes_a_warning,
    IntrospectionErrorSeconds => liveness::a_missing_introspection_is_an_anomaly_with_a_notice_and_a_warning_before,
    DeepworkCheckpointSeconds => liveness::flexible_deep_work_needs_checkpoints,
    ClockSkewSeconds => liveness::an_id_from_the_future_is_an_anomaly,
    StrictMaxMinutes => liveness::strict_deep_work_can_be_forbidden,
    DeepworkExtendMax => liveness::strict_deep_work_is_extended_only_so_often,
    SuggestDeepworkSeconds => liveness::a_checkpoint_suggests_deep_work,
    RunawayEvents => liveness::too_many_events_of_one_actor_cause_a_warning,
    RunawaySeconds => liveness::older_events_are_not_counted,
    LivenessTimezone => liveness::heartbeat_ids_are_in_local_time,
    LivenessWorksDir => liveness::the_files_of_agents_are_in_another_tree,
    LivenessLogDirs => liveness::activity_logs_are_read_in_these_directories,
    WatchdogIntervalSeconds => watchdog::the_watchdog_is_late_after_three_intervals,
    RemindEvery => watchdog::an_anomaly_is_reminded_of,
    MaxRecoveryAttempts => watchdog::without_attempts_to_wake_an_agent_an_operator_is_asked_at_once,
    RecoveryWaitCycles => watchdog::the_next_attempt_to_wake_an_agent_waits,
    RecoverFrom => watchdog::the_anomalies_to_recover_from_can_be_chosen,
    OnBeat => watchdog::every_tick_is_reported,
    OnWarning => watchdog::a_warning_is_reported,
    OnAnomaly => watchdog::an_anomaly_is_reported,
    OnCleared => watchdog::the_end_of_an_anomaly_is_reported,
    OnGivingUp => watchdog::giving_up_is_reported,
    PauseGraceSeconds => work::a_pause_lets_agents_finish_or_not,
    SessionTtlSeconds => work::a_session_expires,
    ReviewersOrder => work::the_first_reviewer_has_the_first_turn,
    ReviewersTimeoutSeconds => work::a_reviewer_that_takes_too_long_is_killed,
    RunnerCommand => work::a_runner_does_the_work_of_a_mission,
    FixerCommand => work::a_fixer_gets_what_failed,
    EventsMaxFileSizeMb => work::a_large_segment_is_followed_by_another,
}
