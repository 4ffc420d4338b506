//! Fixtures, and no tests.
//!
//! - `test_vault`: a temporary vault, the commands to run on it, and their replies. `tests/torture`, `tests/fuzz` and
//!   `tests/system` include it too.
//! - `steps`: short ways to run a line, to reach a common starting point, and to check the log afterwards.
//! - `job_fixture`: a vault whose jobs can be held at gates and watched from outside.
//! - `watchdog_fixture`: a clock in seconds, watchdog ticks, and what a tick reports.
//! - `session_fixture`: logging in, acting within a session, being asked to leave.
//! - `operator_keys`: keys of operators, and every form of their signatures.
//! - `random_life`: random histories of agents and an operator, with an independent model that says what is late.

pub mod job_fixture;
pub mod keyed_vault;
pub mod operator_keys;
pub mod random_life;
pub mod session_fixture;
pub mod steps;
pub mod test_vault;
pub mod watchdog_fixture;
pub mod works_fixture;
