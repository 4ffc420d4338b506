//! `hf-watchdog --quiet`: which warnings of a tick are printed. A standing one is printed when it begins, and again
//! after `watchdog.remind_every` seconds.

use crate::base::{Result, Timestamp};
use crate::op::Context;
use crate::policy::settings::Setting;
use crate::vault::PrintedWarnings;

/// The warnings of a tick.
#[derive(Clone, Debug)]
pub struct DueWarningsRequest {
    pub warnings: Vec<String>,
}

/// The warnings to print now. Remembers them.
pub fn warnings_to_print(ctx: &Context, request: DueWarningsRequest) -> Result<Vec<String>> {
    let vault = ctx.open()?;
    let printed = vault.printed_warnings()?;
    let remind_every = vault.config().count(Setting::RemindEvery);
    let (due, now_printed) = due_warnings(&request.warnings, &printed, ctx.now.timestamp(), remind_every);
    if now_printed != printed {
        vault.put_printed_warnings(&now_printed)?;
    }
    Ok(due)
}

/// Which warnings to print now: those that are new, and those that were printed `remind_every` seconds ago or more.
/// Returns them, and what is printed from then on.
fn due_warnings(
    warnings: &[String],
    printed: &PrintedWarnings,
    now: Timestamp,
    remind_every: u64,
) -> (Vec<String>, PrintedWarnings) {
    let is_recent = |at: &i64| (0..remind_every as i64).contains(&now.0.saturating_sub(*at));
    let said_at = |warning: &String| printed.get(warning).copied().filter(is_recent);
    let due = warnings.iter().filter(|warning| said_at(warning).is_none()).cloned().collect();
    (due, warnings.iter().map(|warning| (warning.clone(), said_at(warning).unwrap_or(now.0))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_printed_when_it_begins_and_then_in_intervals() {
        let mut printed = PrintedWarnings::new();
        let mut tick = |now: i64, warnings: &[&str]| {
            let warnings: Vec<String> = warnings.iter().map(|text| (*text).to_owned()).collect();
            let (due, next) = due_warnings(&warnings, &printed, Timestamp(now), 3600);
            printed = next;
            due
        };
        assert_eq!(tick(0, &["a"]), ["a"]);
        assert_eq!(tick(60, &["a", "b"]), ["b"]);
        assert!(tick(3599, &["a", "b"]).is_empty());
        assert_eq!(tick(3600, &["a", "b"]), ["a"]);
        // It ended and began again.
        assert!(tick(3660, &["a"]).is_empty());
        assert_eq!(tick(3720, &["a", "b"]), ["b"]);
        // A clock that was set back must not keep it quiet.
        assert_eq!(tick(10, &["a", "b"]), ["a", "b"]);
    }
}
