//! Hooks: commands from the settings that are told what happened. They run outside of every lock,
//! within a time limit, and only if the settings are the user's own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::Context;
use crate::base::{Error, Result, text};
use crate::event::Kind;
use crate::job;
use crate::op::kernel::record_one;
use crate::policy::settings::Setting;
use crate::vault::Vault;

/// What of a hook's complaint is recorded.
const COMPLAINT_MAX_CHARS: usize = 200;

/// Runs the hook of a setting, if there is one. A hook that fails is recorded about `subject`, and
/// changes nothing else.
pub(super) fn run(ctx: &Context, vault: &Vault, hook: Setting, subject: &str, input: &str, told: &[(&str, String)]) {
    let failed = match try_run(vault, hook, input, told) {
        Ok(()) => return,
        Err(error) => text::cut(&error.message, COMPLAINT_MAX_CHARS),
    };
    // What cannot be recorded either is lost: a hook is a courtesy.
    let _ = record_one(ctx, Kind::HookFailed, Some(subject), json!({"hook": hook.as_str(), "reason": failed}), None);
}

fn try_run(vault: &Vault, hook: Setting, input: &str, told: &[(&str, String)]) -> Result<()> {
    let (config, _) = vault.config()?;
    let Some(line) = config.command(hook)? else { return Ok(()) };
    let max = Duration::from_secs(config.count(Setting::HooksTimeoutSeconds));
    shell("the hook", &line, vault.path(), told, input, max).map(drop)
}

/// Runs a command line from the settings and gives what it printed. One that does not end well is an error
/// with the last line of its complaint.
pub(super) fn shell(
    who: &str,
    line: &str,
    folder: &Path,
    told: &[(&str, String)],
    input: &str,
    max: Duration,
) -> Result<Vec<u8>> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(folder).envs(told.iter().map(|(name, value)| (name, value)));
    let answer = job::ask(command, input.as_bytes(), max).map_err(|error| error.at(who))?;
    match answer.code {
        Some(0) => Ok(answer.stdout),
        code => {
            let how = code.map_or("was killed".to_owned(), |code| format!("exited with {code}"));
            let complaint = String::from_utf8_lossy(&answer.stderr);
            let complaint = text::cut(complaint.lines().last().unwrap_or_default(), COMPLAINT_MAX_CHARS);
            Err(Error::system(format!("{who} {how}"), complaint))
        }
    }
}
