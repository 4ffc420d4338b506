//! Compares what a tick reported and did with what the judge expects.

use std::collections::{BTreeMap, BTreeSet};

use crate::judge::expected::Expected;

/// What a tick reported and did.
#[derive(Clone, Debug, Default)]
pub struct Said {
    pub exit: i32,
    pub status: String,
    /// Codes with their levels; the highest level of each.
    pub codes: BTreeMap<String, String>,
    pub seconds: BTreeMap<String, i64>,
    /// The details of each code.
    pub details: BTreeMap<String, String>,
    /// Events about files, with the 14 digits of their ids, in order.
    pub counted: Vec<(String, String)>,
    pub begun: BTreeSet<String>,
    pub ended: BTreeSet<String>,
    /// Which of the paths that the judge asked for are there.
    pub there: BTreeSet<String>,
    pub heartbeat_id: String,
}

/// A difference.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// What differs, without times: two differences of the same sort probably have the same cause.
    pub sort: String,
    pub text: String,
}

impl Wrong {
    pub fn new(sort: impl Into<String>, text: impl Into<String>) -> Wrong {
        Wrong { sort: sort.into(), text: text.into() }
    }
}

/// Levels of the codes, as `CODE:level`.
fn levels(codes: &BTreeMap<String, String>) -> BTreeSet<String> {
    codes.iter().map(|(code, level)| format!("{code}:{level}")).collect()
}

/// The codes that were reported, where the judge accepts either of two names.
fn reported(expected: &Expected, codes: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let rename = |code: &String| match code.as_str() {
        "NEVER_SEEN" if expected.unseen => "INACTIVE".to_owned(),
        other => other.to_owned(),
    };
    codes.iter().map(|(code, level)| (rename(code), level.clone())).collect()
}

/// Compares the codes and their levels.
pub fn codes(what: &str, expected: &Expected, said: &BTreeMap<String, String>) -> Result<(), Wrong> {
    let said = levels(&reported(expected, said));
    let wanted: BTreeMap<String, String> =
        expected.codes.iter().map(|(code, level)| ((*code).to_owned(), level.name().to_owned())).collect();
    let wanted = levels(&wanted);
    let is_optional = |line: &&String| expected.optional.iter().any(|code| line.starts_with(code));
    let missing: Vec<&String> = wanted.difference(&said).filter(|line| !is_optional(line)).collect();
    let more: Vec<&String> = said.difference(&wanted).collect();
    if missing.is_empty() && more.is_empty() {
        return Ok(());
    }
    let listed = |lines: &[&String]| lines.iter().map(|line| line.as_str()).collect::<Vec<_>>().join(" ");
    Err(Wrong::new(
        format!("{what}: missing [{}] unexpected [{}]", listed(&missing), listed(&more)),
        format!("expected {wanted:?}\ngot      {said:?}"),
    ))
}

/// Compares everything but the report of `--check`.
pub fn tick(expected: &Expected, said: &Said) -> Result<(), Wrong> {
    codes("tick", expected, &said.codes)?;
    counted(expected, said)?;
    // The same silence, under another name from the first sign of life on.
    let (mut begun, mut ended) = (said.begun.clone(), said.ended.clone());
    if begun.contains("INACTIVE") && ended.contains("NEVER_SEEN") && !expected.begun.contains("INACTIVE") {
        begun.remove("INACTIVE");
        ended.remove("NEVER_SEEN");
    }
    edges("AnomalyDetected", expected, &expected.begun, &begun)?;
    edges("AnomalyCleared", expected, &expected.ended, &ended)?;
    details(expected, said)?;
    for (code, seconds) in &expected.seconds {
        let said = said.seconds.get(*code).or_else(|| said.seconds.get("NEVER_SEEN"));
        if said != Some(seconds) {
            return Err(Wrong::new(format!("seconds of {code}"), format!("expected {seconds}, got {said:?}")));
        }
    }
    let there = |path: &&String| said.there.contains(*path);
    if let Some(path) = expected.present.iter().find(|path| !there(path)) {
        return Err(Wrong::new("renaming", format!("{path} is not there")));
    }
    if let Some(path) = expected.absent.iter().find(there) {
        return Err(Wrong::new("renaming", format!("{path} is still there")));
    }
    let has_errors = said.codes.values().any(|level| level == "error");
    if said.exit != i32::from(has_errors) {
        return Err(Wrong::new("exit code", format!("exit code {} with {:?}", said.exit, said.codes)));
    }
    if (said.status == "HEALTHY") != said.codes.is_empty() {
        return Err(Wrong::new("status", format!("status {} with {:?}", said.status, said.codes)));
    }
    Ok(())
}

/// The details of a code name its files: all of them, or some and how many more there are.
fn details(expected: &Expected, said: &Said) -> Result<(), Wrong> {
    let mut files: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    expected.files.iter().for_each(|(code, name)| files.entry(code).or_default().push(name));
    for (code, names) in files {
        let detail = said.details.get(code).cloned().unwrap_or_default();
        let named = names.iter().filter(|name| detail.contains(name.as_str())).count();
        let rest = names.len() - named;
        if named == 0 || (rest > 0 && !detail.contains(&format!("{rest} more"))) {
            let text = format!("the detail of {code} is {detail:?}, and must name {names:?}");
            return Err(Wrong::new(format!("detail of {code}"), text));
        }
    }
    Ok(())
}

/// Every file once, in order of time; files of one second in any order.
fn counted(expected: &Expected, said: &Said) -> Result<(), Wrong> {
    let pair = |event: &str, id: &str| (event.to_owned(), id.to_owned());
    let mut rest = said.counted.clone();
    let surely =
        |wanted: &(String, String)| expected.counted.iter().filter(|one| pair(one.event, &one.id) == *wanted).count();
    for old in &expected.may_count {
        let old = pair(old.event, &old.id);
        let is_more = rest.iter().filter(|one| **one == old).count() > surely(&old);
        if let Some(at) = rest.iter().position(|one| is_more && *one == old) {
            rest.remove(at);
        }
    }
    let mut wanted: Vec<(String, String)> = Vec::new();
    let mut ordered: Vec<(String, String)> = Vec::new();
    for same in expected.counted.chunk_by(|one, other| one.at == other.at) {
        let mut here: Vec<_> = same.iter().map(|one| pair(one.event, &one.id)).collect();
        here.sort();
        let mut there: Vec<_> = rest.iter().skip(wanted.len()).take(here.len()).cloned().collect();
        there.sort();
        wanted.extend(here);
        ordered.extend(there);
    }
    ordered.extend(rest.iter().skip(wanted.len()).cloned());
    if wanted == ordered {
        return Ok(());
    }
    let text = format!("expected {wanted:?}\ngot      {ordered:?}");
    let sort = match (wanted.len(), ordered.len()) {
        (wanted, got) if wanted > got => "counted: too few",
        (wanted, got) if wanted < got => "counted: too many",
        _ => "counted: other files or another order",
    };
    Err(Wrong::new(sort, text))
}

/// Errors are recorded when they begin and when they end.
fn edges(
    what: &str,
    expected: &Expected,
    wanted: &BTreeSet<&'static str>,
    said: &BTreeSet<String>,
) -> Result<(), Wrong> {
    // Reported once, so that its end is of no interest. Files from the future may be counted one by one.
    let is_free = |code: &str| {
        expected.optional.contains(code)
            || code == "CLOCK_SKEW"
            || (what == "AnomalyCleared" && code == "DEEPWORK_EXPIRED")
    };
    // Who has just been seen was unseen until now.
    let may_be_unseen = expected.unseen || what == "AnomalyCleared";
    let rename =
        |code: &String| if may_be_unseen && code == "NEVER_SEEN" { "INACTIVE".to_owned() } else { code.clone() };
    let said: BTreeSet<String> = said.iter().map(rename).filter(|code| !is_free(code)).collect();
    let wanted: BTreeSet<String> = wanted.iter().filter(|code| !is_free(code)).map(|code| (*code).to_owned()).collect();
    if said == wanted {
        return Ok(());
    }
    Err(Wrong::new(
        format!("{what}: {said:?} instead of {wanted:?}"),
        format!("expected {wanted:?}\ngot      {said:?}"),
    ))
}
