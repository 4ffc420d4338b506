//! Jobs of another system, queried with a command from the settings or the environment: `CMD {}`.

use std::time::Duration;

use serde_json::Value;

use crate::base::{Error, Result, text};
use crate::job::{self, Program};
use crate::policy::settings::Setting;

/// How long one query may take.
const ASK_MAX: Duration = Duration::from_secs(60);
/// The longest id of a foreign job.
const ID_MAX_CHARS: usize = 128;

/// The answer of the other system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignStatus {
    Done(Option<String>),
    Failed { summary: Option<String>, last5: Vec<String> },
    Running,
    NotFound,
}

/// Whether a text can be the id of a foreign job: safe in a command line and in a reply.
pub fn is_id(text: &str) -> bool {
    (1..=ID_MAX_CHARS).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
}

/// Queries once. The command is split at white space; no shell is involved.
pub fn ask(command: &str, id: &str) -> Result<ForeignStatus> {
    let mut words: Vec<String> = command.split_whitespace().map(|word| word.replace("{}", id)).collect();
    if !command.contains("{}") {
        words.push(id.to_owned());
    }
    let program = Program::new(&words[0], Setting::JobsCheckCmd.as_str()).args(&words[1..]);
    let answer = job::ask(program, b"", ASK_MAX).map_err(|e| e.at(&words[0]))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&answer.stdout), String::from_utf8_lossy(&answer.stderr));
    match read(&stdout, &stderr) {
        Some(status) => Ok(status),
        None => Err(Error::system(
            "the job system did not report a status",
            text::cut(stdout.lines().chain(stderr.lines()).last().unwrap_or("no output"), 200),
        )),
    }
}

/// Finds the status: in a JSON object, in `KEY:VALUE` lines, or as a line by itself.
fn read(stdout: &str, stderr: &str) -> Option<ForeignStatus> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    if let Ok(Value::Object(object)) = serde_json::from_str(stdout) {
        pairs.extend(object.into_iter().filter_map(|(key, value)| Some((key, value.as_str()?.to_owned()))));
    } else {
        let split = |line: &str| line.split_once([':', '=']).map(|(key, value)| (key.to_owned(), value.to_owned()));
        pairs.extend(stdout.lines().filter_map(split));
    }
    let find = |wanted: &[&str]| {
        let found = pairs.iter().find(|(key, _)| wanted.contains(&key.trim().to_ascii_lowercase().as_str()));
        found.map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let summary = find(&["sum", "summary", "result", "message"]);
    let word = find(&["status", "state"]).as_deref().and_then(status);
    let word = word.or_else(|| stdout.lines().rev().find_map(|line| status(line.trim())))?;
    Some(match word {
        StatusWord::Done => ForeignStatus::Done(summary),
        StatusWord::Failed => {
            let lines: Vec<String> = stderr.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
            ForeignStatus::Failed { summary, last5: lines[lines.len().saturating_sub(5)..].to_vec() }
        }
        StatusWord::Running => ForeignStatus::Running,
        StatusWord::NotFound => ForeignStatus::NotFound,
    })
}

enum StatusWord {
    Done,
    Failed,
    Running,
    NotFound,
}

fn status(word: &str) -> Option<StatusWord> {
    match word.trim().to_ascii_lowercase().replace(['_', '-'], " ").as_str() {
        "done" | "completed" | "succeeded" | "success" => Some(StatusWord::Done),
        "failed" | "fail" | "error" => Some(StatusWord::Failed),
        "processing" | "pending" | "running" | "queued" => Some(StatusWord::Running),
        "not found" | "notfound" => Some(StatusWord::NotFound),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_answer_is_read() {
        let done = |summary: Option<&str>| Some(ForeignStatus::Done(summary.map(str::to_owned)));
        assert_eq!(read("done\n", ""), done(None));
        assert_eq!(read("checking…\nDONE\n", ""), done(None));
        assert_eq!(read("STATUS:done\nSUM:All tests passed\n", ""), done(Some("All tests passed")));
        assert_eq!(read(r#"{"status":"done","summary":"ok"}"#, ""), done(Some("ok")));
        for running in ["processing", "pending", "status: pending", r#"{"status":"processing"}"#] {
            assert_eq!(read(running, ""), Some(ForeignStatus::Running), "{running}");
        }
        assert_eq!(read("not found", ""), Some(ForeignStatus::NotFound));
        assert_eq!(read("NOT_FOUND", ""), Some(ForeignStatus::NotFound));
        let last5 = ["b", "c", "d", "e", "f"].map(str::to_owned).to_vec();
        assert_eq!(read("failed", "a\nb\n\nc\nd\ne\nf\n"), Some(ForeignStatus::Failed { summary: None, last5 }));
        assert_eq!(read("hello", ""), None);
        assert_eq!(read("", "done"), None);
    }

    #[test]
    fn an_id_is_a_plain_word() {
        for good in ["abc", "20260131-7", "a.b:c_d"] {
            assert!(is_id(good), "{good}");
        }
        for bad in ["", "-x", "a b", "a;b", "$(x)", "a\n", "é", &"x".repeat(129)] {
            assert!(!is_id(bad), "{bad}");
        }
    }
}
