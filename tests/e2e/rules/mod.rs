//! What must be true whatever the command: who may do what, what follows from what, time, storage, damage,
//! crashes and concurrency. Random models check the rules where examples are not enough.

mod across_commands;
mod agent_files;
mod agent_files_attacked;
mod agent_files_mixed;
mod authority;
mod branch_model;
mod caches;
mod cascade;
mod concurrency;
mod crash;
mod event_model;
mod hostile_input;
mod index;
mod lateness;
mod log_in_memory;
mod machine_clock;
mod notifications;
mod older_vault;
mod policy_audit;
mod recovery;
mod refusals;
mod settings;
mod timeouts;
mod truth;
mod verification_methods;
