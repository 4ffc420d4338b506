//! Hooks: commands from the settings that are run when something happens. They run without any lock, within a time
//! limit, and only if the settings file belongs to the user.

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

/// How much of a hook's error message is recorded.
const MESSAGE_MAX_CHARS: usize = 200;

/// Runs the hook of a setting, if it is set, with these environment variables. A failure is recorded about `subject`
/// and has no other effect.
pub(super) fn run(ctx: &Context, vault: &Vault, hook: Setting, subject: &str, input: &str, env: &[(&str, String)]) {
    let failed = match try_run(vault, hook, input, env) {
        Ok(()) => return,
        Err(error) => text::cut(&error.message, MESSAGE_MAX_CHARS),
    };
    // Best effort, like the hook itself.
    let _ = record_one(ctx, Kind::HookFailed, Some(subject), json!({"hook": hook.as_str(), "reason": failed}), None);
}

fn try_run(vault: &Vault, hook: Setting, input: &str, env: &[(&str, String)]) -> Result<()> {
    let config = vault.config();
    let Some(line) = config.command(hook)? else { return Ok(()) };
    let max = Duration::from_secs(config.count(Setting::HooksTimeoutSeconds));
    shell("the hook", &line, vault.path(), env, input, max).map(drop)
}

/// Runs a command line from the settings and returns what it printed. A failure is an error with the last line of its
/// standard error.
pub(super) fn shell(
    who: &str,
    line: &str,
    dir: &Path,
    env: &[(&str, String)],
    input: &str,
    max: Duration,
) -> Result<Vec<u8>> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).current_dir(dir).envs(env.iter().map(|(name, value)| (name, value)));
    let answer = job::ask(command, input.as_bytes(), max).map_err(|error| error.at(who))?;
    match answer.code {
        Some(0) => Ok(answer.stdout),
        code => {
            let how = code.map_or("was killed".to_owned(), |code| format!("exited with {code}"));
            let stderr = String::from_utf8_lossy(&answer.stderr);
            let message = text::cut(stderr.lines().last().unwrap_or_default(), MESSAGE_MAX_CHARS);
            Err(Error::system(format!("{who} {how}"), message))
        }
    }
}
