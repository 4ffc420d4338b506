//! Jobs of another system, queried with a command from the settings or the environment: `CMD {}`.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::base::{Error, Result, text};
use crate::job::{self, Program, Signals};
use crate::policy::settings::Setting;

/// How long one query may take, however long the wait is.
const ASK_MAX: Duration = Duration::from_secs(60);
/// How long one query may take, however short the wait is.
const ASK_MIN: Duration = Duration::from_secs(1);
const LAST5_MAX_COUNT: usize = 5;
/// The longest id of a foreign job.
const ID_MAX_CHARS: usize = 128;

/// The answer of the other system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignStatus {
    Done(Option<String>),
    Failed {
        summary: Option<String>,
        last5: Vec<String>,
        logref: Option<String>,
    },
    Running,
    NotFound,
    /// It gave none in time.
    Unknown,
}

/// Whether a text can be the id of a foreign job: safe in a command line and in a reply.
pub fn is_id(text: &str) -> bool {
    (1..=ID_MAX_CHARS).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b))
}

/// Queries once, for about as long as there is time; a signal ends the query. The command is split at white space; no
/// shell is involved.
pub fn ask(command: &str, id: &str, left: Duration, signals: &Signals) -> Result<ForeignStatus> {
    let mut words: Vec<String> = command.split_whitespace().map(|word| word.replace("{}", id)).collect();
    if !command.contains("{}") {
        words.push(id.to_owned());
    }
    let program = Program::new(&words[0], Setting::JobsCheckCmd.as_str()).args(&words[1..]).leaving_nothing();
    let answer = job::ask_for(program, b"", left.clamp(ASK_MIN, ASK_MAX), signals).map_err(|e| e.at(&words[0]))?;
    let Some(answer) = answer else { return Ok(ForeignStatus::Unknown) };
    let (stdout, stderr) = (String::from_utf8_lossy(&answer.stdout), String::from_utf8_lossy(&answer.stderr));
    match read(&stdout, &stderr) {
        Some(status) => Ok(status),
        None => Err(Error::system(
            "the job system did not report a status",
            text::cut(stdout.lines().chain(stderr.lines()).last().unwrap_or("no output"), 200),
        )),
    }
}

/// What an answer says, in whichever form.
#[derive(Default)]
struct ForeignAnswer {
    word: Option<StatusWord>,
    summary: Option<String>,
    logref: Option<String>,
    /// The lines of a failure that it names as such.
    last5: Vec<String>,
    /// The lines that are none of these.
    other: Vec<String>,
}

/// Finds the status: in a JSON object, in `KEY:VALUE` lines such as the blocks of hf-poll, or as a line by itself. The
/// lines of a failure are those that the answer names as such, else standard error, else the rest of the answer.
fn read(stdout: &str, stderr: &str) -> Option<ForeignStatus> {
    let answer = match serde_json::from_str(stdout) {
        Ok(Value::Object(object)) => ForeignAnswer::of_json(&object),
        _ => ForeignAnswer::of_text(stdout),
    };
    let ForeignAnswer { word, summary, logref, last5, other } = answer;
    Some(match word? {
        StatusWord::Done => ForeignStatus::Done(summary),
        word @ (StatusWord::Failed | StatusWord::Cancelled) => {
            let printed: Vec<String> = stderr.lines().map(str::to_owned).collect();
            let found = [last5, printed, other].into_iter().map(last_lines).find(|lines| !lines.is_empty());
            let cancelled = || (word == StatusWord::Cancelled).then(|| "Job was cancelled".to_owned());
            let summary = summary.or_else(cancelled);
            ForeignStatus::Failed { summary, last5: found.unwrap_or_default(), logref }
        }
        StatusWord::Running => ForeignStatus::Running,
        StatusWord::NotFound => ForeignStatus::NotFound,
    })
}

/// The last lines that are not empty.
fn last_lines(mut lines: Vec<String>) -> Vec<String> {
    lines.retain(|line| !line.trim().is_empty());
    lines.split_off(lines.len().saturating_sub(LAST5_MAX_COUNT))
}

impl ForeignAnswer {
    fn of_json(object: &Map<String, Value>) -> ForeignAnswer {
        let mut answer = ForeignAnswer::default();
        for (key, value) in object {
            match (value, key.to_ascii_lowercase().as_str()) {
                (Value::String(value), LAST5) => answer.last5 = value.lines().map(str::to_owned).collect(),
                (Value::String(value), key) => drop(answer.take(key, value)),
                (Value::Array(lines), LAST5) => {
                    answer.last5 = lines.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                }
                _ => {}
            }
        }
        answer
    }

    fn of_text(text: &str) -> ForeignAnswer {
        let mut answer = ForeignAnswer::default();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            match line.split_once([':', '=']).map(|(key, value)| (key.trim().to_ascii_lowercase(), value)) {
                // Until the end of the block, whatever they look like.
                Some((key, _)) if key == LAST5 => {
                    let block: Vec<&str> = lines.by_ref().collect();
                    let end = block.iter().rposition(|line| line.starts_with(LOGREF_LINE)).unwrap_or(block.len());
                    answer.last5 = block[..end].iter().map(|line| (*line).to_owned()).collect();
                    answer.logref = block.get(end).map(|line| line[LOGREF_LINE.len()..].trim().to_owned());
                }
                Some((key, value)) if answer.take(&key, value) => {}
                _ => answer.other.push(line.to_owned()),
            }
        }
        if answer.word.is_none() {
            answer.find_word();
        }
        answer
    }

    /// Takes the value of a key. Returns whether it is one that is known here. The first value counts.
    fn take(&mut self, key: &str, value: &str) -> bool {
        let text = Some(value.trim()).filter(|value| !value.is_empty()).map(str::to_owned);
        match key {
            "status" | "state" => self.word = self.word.or_else(|| StatusWord::read(value)),
            "sum" | "summary" | "result" | "message" => self.summary = self.summary.take().or(text),
            "logref" => self.logref = self.logref.take().or(text),
            "exit" | "next" => {}
            _ => return false,
        }
        true
    }

    /// Finds the status in a line by itself; a failure may be followed by its reason, as in `failed: no route`.
    fn find_word(&mut self) {
        let alone = |line: &String| StatusWord::read(line);
        if let Some(at) = self.other.iter().rposition(|line| alone(line).is_some()) {
            self.word = alone(&self.other.remove(at));
            return;
        }
        let with_reason = |line: &String| {
            let (word, reason) = line.split_once(':')?;
            let word = StatusWord::read(word).filter(|word| word.may_have_reason())?;
            Some((word, reason.trim().to_owned()))
        };
        if let Some((at, (word, reason))) =
            self.other.iter().enumerate().rev().find_map(|(at, line)| Some((at, with_reason(line)?)))
        {
            self.other.remove(at);
            (self.word, self.summary) = (Some(word), self.summary.take().or(Some(reason)));
        }
    }
}

const LAST5: &str = "last5";
const LOGREF_LINE: &str = "LOGREF:";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatusWord {
    Done,
    Failed,
    Cancelled,
    Running,
    NotFound,
}

impl StatusWord {
    fn read(word: &str) -> Option<StatusWord> {
        match word.trim().to_ascii_lowercase().replace(['_', '-'], " ").as_str() {
            "done" | "completed" | "succeeded" | "success" => Some(StatusWord::Done),
            "failed" | "fail" | "error" | "timed out" | "timeout" | "lost" => Some(StatusWord::Failed),
            "cancelled" | "canceled" | "aborted" | "killed" => Some(StatusWord::Cancelled),
            "processing" | "pending" | "running" | "queued" => Some(StatusWord::Running),
            "not found" | "notfound" => Some(StatusWord::NotFound),
            _ => None,
        }
    }

    /// Whether a line may give a reason after the word.
    fn may_have_reason(self) -> bool {
        matches!(self, StatusWord::Failed | StatusWord::Cancelled)
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
        let failed = |summary: Option<&str>, last5: &[&str], logref: Option<&str>| {
            let (summary, logref) = (summary.map(str::to_owned), logref.map(str::to_owned));
            Some(ForeignStatus::Failed { summary, last5: last5.iter().map(|&line| line.to_owned()).collect(), logref })
        };
        assert_eq!(read("failed", "a\nb\n\nc\nd\ne\nf\n"), failed(None, &["b", "c", "d", "e", "f"], None));
        assert_eq!(read("failed\nno route\n", ""), failed(None, &["no route"], None));
        assert_eq!(read("out\nfailed\n", "err\n"), failed(None, &["err"], None));
        assert_eq!(read("failed: no route\n", ""), failed(Some("no route"), &[], None));
        assert_eq!(read("status: failed\nmessage: broke\nline: 3\n", ""), failed(Some("broke"), &["line: 3"], None));
        let block =
            "EXIT:1\nSTATUS:FAIL\nNEXT:PATCH\nSUM:2 tests failed\nLAST5:\na\nSTATUS:done\nb\nLOGREF:logs/L-7.txt\n";
        let expected = failed(Some("2 tests failed"), &["a", "STATUS:done", "b"], Some("logs/L-7.txt"));
        assert_eq!(read(block, ""), expected);
        assert_eq!(read(block, "noise"), expected);
        let json = r#"{"exit":1,"status":"FAIL","sum":"x","last5":["a","b"],"logref":"logs/1"}"#;
        assert_eq!(read(json, ""), failed(Some("x"), &["a", "b"], Some("logs/1")));
        assert_eq!(read("cancelled", ""), failed(Some("Job was cancelled"), &[], None));
        assert_eq!(read("CANCELED: by jo", ""), failed(Some("by jo"), &[], None));
        assert_eq!(read("connection: refused", ""), None);
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
