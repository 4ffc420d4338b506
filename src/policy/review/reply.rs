//! A reviewer's reply: `PASS: ITEM` and `FAIL: ITEM -> FIX: FIX` lines, and what reviewers make of that format.
//!
//! Ignored are list marks, numbers, Markdown marks, headings, code fences, quotes, case, and one line of prose before
//! the items and one after them. A dash may stand for a colon, and a fix on the next line belongs to its FAIL.
//!
//! Invariant: a reply with a FAIL line is never read as one without, and nothing invisible, and no letter that resembles
//! another one, hides a line from this parser that a person would see (`no_fail_line_is_ever_lost`, and the fuzz target
//! `review_reply`). What could be meant in two ways is refused.

use crate::base::{Error, Result, limits, text};
use crate::policy::mission::check_short;

/// A reviewer's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewReply {
    /// The items that pass.
    pub passes: Vec<String>,
    /// The items that do not, each with its fix: `ITEM -> FIX: …`.
    pub fails: Vec<String>,
}

/// What separates an item from its fix in a recorded FAIL line.
const FIX: &str = " -> FIX: ";
const ARROWS: &[&str] = &["->", "→", "=>", "⇒"];
const EMPHASIS: &[char] = &['*', '_', '`', '~'];
/// The mark of what was struck through, and so is perhaps not meant.
const STRUCK: &str = "~~";
/// A closing bracket after a label, as in `[PASS] ITEM`.
const BRACKETS: &[char] = &[']', ')'];

/// Signs that some reviewers put before PASS.
const CHECKS: &[char] = &['✅', '✓', '✔', '☑', '🟢'];

/// The format, for a reviewer whose reply could not be read.
pub const REMINDER: &str = "Your last reply could not be read. Reply with lines of this form only, one for each item:\n\
    PASS: <item>\nFAIL: <item> -> FIX: <fix in 1 line>\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Label {
    Pass,
    Fail,
    Fix,
}

/// Parses a reply.
pub fn parse(reply: &str) -> Result<ReviewReply> {
    // The byte order mark of a file.
    let reply = reply.strip_prefix('\u{feff}').unwrap_or(reply);
    check_short("the reply", reply)?;
    let mut reader = ReplyReader::default();
    let is_rule = |line: &str| !line.contains(|c: char| c.is_alphanumeric() || !is_plain(c));
    for line in reply.lines().map(str::trim).filter(|line| !is_rule(line) && !line.starts_with("```")) {
        // Some readers treat U+2028 and U+2029 as the end of a line, and what is invisible can hide a word.
        if line.contains(|c: char| c != '\t' && text::is_unsafe(c)) {
            return Err(Error::usage("a line of the reply contains control or invisible characters"));
        }
        reader.read(line)?;
    }
    reader.finish()
}

/// Collects the items of a reply.
#[derive(Default)]
struct ReplyReader<'a> {
    passes: Vec<String>,
    fails: Vec<String>,
    /// A FAIL line whose fix may follow, with its item.
    without_fix: Option<(&'a str, String)>,
    prose_before: Option<&'a str>,
    prose_after: Option<&'a str>,
}

impl<'a> ReplyReader<'a> {
    fn read(&mut self, line: &'a str) -> Result<()> {
        let label = labelled(line);
        if label.is_some() && line.contains(STRUCK) {
            return Err(refused("a line is struck through", line));
        }
        match label {
            Some((Label::Fix, fix)) if self.without_fix.is_some() => {
                let (fail, item) = self.without_fix.take().expect("it was just checked");
                self.fail(fail, &item, fix)?;
            }
            Some((Label::Pass, item)) => {
                self.next_item()?;
                check_single(line, item)?;
                if key(item).is_empty() {
                    return Err(refused("a PASS line names no item", line));
                }
                self.passes.push(item.to_owned());
            }
            Some((Label::Fail, item)) => {
                self.next_item()?;
                match split_fix(item) {
                    Some((what, fix)) => self.fail(line, what, fix)?,
                    None => self.without_fix = Some((line, item.to_owned())),
                }
            }
            Some((Label::Fix, _)) => return Err(refused("a fix without a FAIL line", line)),
            None => return self.prose(line),
        }
        Ok(())
    }

    fn fail(&mut self, line: &str, item: &str, fix: &str) -> Result<()> {
        if !fix.contains(char::is_alphanumeric) {
            return Err(refused("a FAIL line has an empty FIX", line));
        }
        if key(item).is_empty() {
            return Err(refused("a FAIL line names no item", line));
        }
        self.fails.push(format!("{}{FIX}{}", item.trim(), fix.trim()));
        Ok(())
    }

    /// Checks that another item may begin.
    fn next_item(&self) -> Result<()> {
        match (&self.without_fix, self.prose_after) {
            (Some((line, _)), _) => Err(refused("a FAIL line has no '-> FIX:'", line)),
            (None, Some(prose)) => Err(refused("a line between the items is neither PASS nor FAIL", prose)),
            (None, None) => Ok(()),
        }
    }

    /// Ignores a line that is no item, if nobody could take it for one.
    fn prose(&mut self, line: &'a str) -> Result<()> {
        if let Some((fail, _)) = &self.without_fix {
            return Err(refused("a FAIL line has no '-> FIX:'", fail));
        }
        let is_heading = line.trim_start_matches('>').trim_start().starts_with('#');
        let has_items = !self.passes.is_empty() || !self.fails.is_empty();
        let place = if has_items { &mut self.prose_after } else { &mut self.prose_before };
        if may_be_a_verdict(line) || may_refuse_to_pass(line) || !is_heading && place.replace(line).is_some() {
            return Err(refused("a line starts with neither 'PASS:' nor 'FAIL:'", line));
        }
        Ok(())
    }

    fn finish(self) -> Result<ReviewReply> {
        if let Some((fail, _)) = self.without_fix {
            return Err(refused("a FAIL line has no '-> FIX:'", fail));
        }
        let ReplyReader { passes, fails, prose_before, .. } = self;
        if passes.is_empty() && fails.is_empty() {
            return Err(match prose_before {
                Some(prose) => refused("a line starts with neither 'PASS:' nor 'FAIL:'", prose),
                None => Error::usage("the reply has neither a PASS nor a FAIL line"),
            });
        }
        let failed: Vec<String> = fails.iter().map(|fail| item_key(fail)).collect();
        match passes.iter().find(|pass| failed.contains(&key(pass))) {
            Some(both) => Err(refused("an item both passes and fails", both)),
            None => Ok(ReviewReply { passes, fails }),
        }
    }
}

fn refused(why: &str, line: &str) -> Error {
    Error::usage(format!("{why}: {}", text::cut(line, limits::SUMMARY_MAX_CHARS)))
}

/// The label of a line, and what follows it: `**1. Pass** - ITEM` is a PASS of ITEM.
fn labelled(line: &str) -> Option<(Label, &str)> {
    let (marks, body) = split_marks(line);
    let emphasis = open_emphasis(marks);
    let word = &body[..body.find(|c: char| !c.is_alphanumeric()).unwrap_or(body.len())];
    let label = match word.to_ascii_uppercase().as_str() {
        "PASS" => Label::Pass,
        "FAIL" => Label::Fail,
        "FIX" => Label::Fix,
        _ => return None,
    };
    let mut is_closed = emphasis.is_empty();
    let mut close = |text: &'_ str| -> usize {
        let closes = !is_closed && text.starts_with(emphasis);
        is_closed |= closes;
        if closes { emphasis.len() } else { 0 }
    };
    let mut rest = &body[word.len()..];
    rest = &rest[close(rest)..];
    let bracketed = rest.strip_prefix(BRACKETS);
    rest = bracketed.unwrap_or(rest);
    rest = &rest[close(rest)..];
    rest = match after_separator(rest) {
        Some(after) => after,
        None => bracketed.map(|_| rest)?,
    };
    rest = rest[close(rest)..].trim();
    // The emphasis may be on the whole line, or on all of it before the fix.
    Some((label, if is_closed { rest } else { rest.strip_suffix(emphasis).unwrap_or(rest).trim_end() }))
}

/// The emphasis that begins in the marks before a word and does not end there: `**`, or `**2. `.
fn open_emphasis(marks: &str) -> &str {
    let at_end = &marks[marks.trim_end_matches(EMPHASIS).len()..];
    let start = marks.find(EMPHASIS).unwrap_or(marks.len());
    let run = &marks[start..];
    let (run, rest) = run.split_at(run.find(|c| !EMPHASIS.contains(&c)).unwrap_or(run.len()));
    // A list mark is followed by a space.
    let is_open = !run.is_empty() && !rest.starts_with(char::is_whitespace) && !rest.contains(run);
    if at_end.is_empty() && is_open { run } else { at_end }
}

/// What follows a colon, or a dash that stands for one.
fn after_separator(text: &str) -> Option<&str> {
    let text = text.trim_start();
    text.strip_prefix([':', '：']).or_else(|| {
        let after = text.strip_prefix(['-', '–', '—'])?;
        after.starts_with(char::is_whitespace).then_some(after)
    })
}

/// The list marks, quotes, emphasis and numbers before the first word, and the rest.
fn split_marks(line: &str) -> (&str, &str) {
    let mut end = 0;
    loop {
        let rest = &line[end..];
        let marks = rest.find(char::is_alphanumeric).unwrap_or(rest.len());
        let word = &rest[marks..];
        let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
        // A ticked box.
        let is_tick = rest[..marks].ends_with('[') && (word.starts_with("x]") || word.starts_with("X]"));
        end += marks;
        match word[digits..].chars().next() {
            Some('.' | ')' | ']' | ':' | '：') if digits > 0 => end += digits,
            _ if is_tick => end += 1,
            _ => return line.split_at(end),
        }
    }
}

/// Splits `ITEM -> FIX: FIX`; the word FIX may be missing. The item may contain arrows if the word is there.
fn split_fix(item: &str) -> Option<(&str, &str)> {
    let arrows = item.char_indices().filter_map(|(at, _)| {
        let arrow = ARROWS.iter().find(|arrow| item[at..].starts_with(**arrow))?;
        Some((&item[..at], item[at + arrow.len()..].trim()))
    });
    let mut first = None;
    for (what, fix) in arrows {
        let what = without_open_emphasis(what.trim());
        match labelled(fix) {
            Some((Label::Fix, fix)) => return Some((what, fix)),
            _ => {
                first.get_or_insert((what, fix));
            }
        }
    }
    first
}

/// An item without an emphasis that ends and does not begin in it, as in `**FAIL: ITEM** -> FIX: …`.
fn without_open_emphasis(item: &str) -> &str {
    let bare = item.trim_end_matches(EMPHASIS);
    let marks = &item[bare.len()..];
    match marks.chars().next() {
        Some(mark) if !bare.contains(mark) => bare.trim_end(),
        _ => item,
    }
}

/// Checks that a PASS line contains no second item, which would get lost: neither before its label nor after it.
fn check_single(line: &str, item: &str) -> Result<()> {
    let (marks, _) = split_marks(line);
    if marks.contains(|c: char| !is_plain(c) && !CHECKS.contains(&c)) {
        return Err(refused("a PASS line starts with something else", line));
    }
    let mut rest = item;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let after = rest[end..].trim_start_matches(EMPHASIS).trim_start();
        let word = &rest[..end];
        if after.starts_with([':', '：']) && (is_like_verdict(word) || !word.chars().all(is_plain)) {
            return Err(refused("a PASS line contains another item", line));
        }
        rest = &rest[end..];
    }
    Ok(())
}

/// Whether somebody could take a line for an item, or for a part of one: it has a word like FAIL or FIX, an arrow, or
/// something that may resemble a letter.
fn may_be_a_verdict(line: &str) -> bool {
    let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    // `F A I L` is one word.
    let (mut spelled, mut found) = (String::new(), false);
    for word in words {
        match word.chars().count() {
            1 => spelled.push_str(word),
            _ => {
                found |= is_like_verdict(&std::mem::take(&mut spelled));
            }
        }
        found |= is_like_verdict(word);
    }
    found || is_like_verdict(&spelled) || ARROWS.iter().any(|arrow| line.contains(arrow)) || !line.chars().all(is_plain)
}

/// Whether prose may say that something does not pass: `I would not PASS this`, or `would it PASS: no`.
fn may_refuse_to_pass(line: &str) -> bool {
    let line = line.to_lowercase().replace('’', "'");
    let word = |word: &str| line.split(|c: char| !c.is_alphanumeric() && c != '\'').any(|found| found == word);
    let speaks_of_it = line.contains("pass");
    let is_label = line
        .split("pass")
        .skip(1)
        .any(|after| after.trim_start_matches(EMPHASIS).trim_start().starts_with([':', '：']));
    let denies =
        ["not", "no", "none", "nothing", "never", "cannot", "hardly"].into_iter().any(word) || line.contains("n't");
    speaks_of_it && (is_label || denies)
}

/// Whether a word begins like FAIL or FIX, also with a digit or another letter in the place of an I or an L.
fn is_like_verdict(word: &str) -> bool {
    let shape: String = word
        .chars()
        .map(|c| match c.to_ascii_lowercase() {
            'l' | '1' => 'i',
            '4' => 'a',
            c => c,
        })
        .collect();
    shape.starts_with("faii") || shape.starts_with("fix")
}

/// Whether a character is what it looks like: in ASCII, in a script of which no letter resembles a Latin one (Chinese,
/// Japanese, Korean), or common punctuation.
fn is_plain(c: char) -> bool {
    c.is_ascii()
        || matches!(c, '\u{2010}'..='\u{2026}' | '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
        || matches!(c, '！' | '（' | '）' | '，' | '．' | '：' | '；' | '？' | '～' | '·' | '‣' | '◦' | '’')
}

/// The item of a recorded FAIL line, in the form in which items are compared.
pub fn item_key(fail: &str) -> String {
    key(fail.split_once(FIX).map_or(fail, |(item, _)| item))
}

/// An item without case, Markdown marks, list marks and numbers, and the punctuation at its end.
fn key(item: &str) -> String {
    let (_, item) = split_marks(item);
    let bare: String = item.chars().filter(|c| !EMPHASIS.contains(c)).collect::<String>().to_lowercase();
    let words: Vec<&str> = bare.split_whitespace().collect();
    words.join(" ").trim_end_matches(['.', ',', ';', ':', '!', '?', '。']).to_owned()
}

/// Parses a reply as version 0.1 did, for the logs that it wrote.
pub fn parse_0_1(reply: &str) -> Result<ReviewReply> {
    check_short("the reply", reply)?;
    let (mut passes, mut fails) = (Vec::new(), Vec::new());
    for line in reply.lines().map(str::trim) {
        let line = ["- ", "* ", "• "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line).trim_start();
        if line.is_empty() || line.starts_with("```") {
            continue;
        }
        let fail = line.strip_prefix("FAIL:");
        let fail = fail.and_then(|item| item.split_once("-> FIX:").or_else(|| item.split_once("→ FIX:")));
        match (line.strip_prefix("PASS:"), fail) {
            (Some(item), _) => passes.push(item.trim().to_owned()),
            (None, Some((what, fix))) => fails.push(format!("{}{FIX}{}", what.trim(), fix.trim())),
            (None, None) => return Err(refused("a line is neither PASS: nor FAIL:", line)),
        }
    }
    Ok(ReviewReply { passes, fails })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(passes: &[&str], fails: &[&str]) -> ReviewReply {
        let owned = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect();
        ReviewReply { passes: owned(passes), fails: owned(fails) }
    }

    #[test]
    fn a_reply_is_pass_and_fail_lines() {
        let text = "PASS: naming\nFAIL: no timeout -> FIX: add one\n\nFAIL: x → FIX: y";
        let expected = reply(&["naming"], &["no timeout -> FIX: add one", "x -> FIX: y"]);
        assert_eq!(parse(text).unwrap(), expected);
        assert_eq!(parse_0_1(text).unwrap(), expected);
    }

    #[test]
    fn what_is_nearly_in_the_format_is_read() {
        let expected = reply(&["a"], &["b -> FIX: c"]);
        for text in [
            "```\n- PASS: a\n* FAIL: b -> FIX: c\n```\r\n",
            "```text\nPASS: a\nFAIL: b -> FIX: c\n```",
            "**PASS:** a\n**FAIL:** b -> **FIX:** c",
            "**PASS**: a\n__FAIL__: b -> __FIX__: c",
            "**PASS: a**\n**FAIL: b** -> FIX: c",
            "`PASS: a`\n`FAIL: b -> FIX: c`",
            "*Pass:* a\n_fail:_ b -> fix: c",
            "pass: a\nFail: b -> Fix: c",
            "1. PASS: a\n2. FAIL: b -> FIX: c",
            "1) PASS: a\n(2) FAIL: b -> FIX: c",
            "1. **PASS:** a\n2. **FAIL:** b => FIX: c",
            "**1. PASS:** a\n**2. FAIL:** b -> FIX: c",
            "**1.** PASS: a\n* 2. FAIL: b -> FIX: c",
            "\u{feff}PASS: a\nFAIL: b -> FIX: c",
            "• PASS: a\n• FAIL: b ⇒ FIX: c",
            "- [x] PASS: a\n- [ ] FAIL: b -> FIX: c",
            "[PASS] a\n[FAIL] b -> FIX: c",
            "> PASS: a\n> FAIL: b -> FIX: c",
            "### PASS: a\n### FAIL: b -> FIX: c",
            "# Review\n\nPASS: a\n\n## Problems\n\nFAIL: b -> FIX: c",
            "PASS - a\nFAIL — b -> FIX - c",
            "PASS：a\nFAIL：b → FIX：c",
            "PASS: a\nFAIL: b -> c",
            "PASS: a\nFAIL: b\n  -> FIX: c",
            "PASS: a\nFAIL: b\n  FIX: c",
            "Here is my review:\nPASS: a\nFAIL: b -> FIX: c\n---\nGood work otherwise.",
            "以下はレビューです。\nPASS: a\nFAIL: b -> FIX: c",
            "✅ PASS: a\n❌ FAIL: b -> FIX: c",
        ] {
            assert_eq!(parse(text).as_ref(), Ok(&expected), "{text}");
        }
        assert_eq!(parse("FAIL: a -> b is wrong -> FIX: c").unwrap().fails, ["a -> b is wrong -> FIX: c"]);
        assert_eq!(parse("PASS: use `x`\nPASS: **b** c").unwrap().passes, ["use `x`", "**b** c"]);
    }

    #[test]
    fn what_could_be_meant_in_two_ways_is_refused_with_the_reason() {
        let long = "PASS: a\n".repeat(101);
        let wide = format!("PASS: {}", "あ".repeat(700));
        for (text, why) in [
            ("", "the reply has neither a PASS nor a FAIL line"),
            ("```\n---\n```", "the reply has neither a PASS nor a FAIL line"),
            ("Looks good to me!", "a line starts with neither 'PASS:' nor 'FAIL:': Looks good to me!"),
            ("PASS", "a line starts with neither 'PASS:' nor 'FAIL:': PASS"),
            ("PASS: **", "a PASS line names no item: PASS: **"),
            (
                "I would not PASS: this is bad\nPASS: x",
                "a line starts with neither 'PASS:' nor 'FAIL:': I would not PASS: this is bad",
            ),
            (
                "PASS: x\nThe rest doesn’t pass.",
                "a line starts with neither 'PASS:' nor 'FAIL:': The rest doesn’t pass.",
            ),
            ("One.\nTwo.\nPASS: a", "a line starts with neither 'PASS:' nor 'FAIL:': Two."),
            ("PASS: a\nWell.\nPASS: b", "a line between the items is neither PASS nor FAIL: Well."),
            ("FAIL: no fix", "a FAIL line has no '-> FIX:': FAIL: no fix"),
            ("FAIL: none", "a FAIL line has no '-> FIX:': FAIL: none"),
            ("FAIL: a\nPASS: b", "a FAIL line has no '-> FIX:': FAIL: a"),
            ("FAIL: a -> FIX:", "a FAIL line has an empty FIX: FAIL: a -> FIX:"),
            ("FAIL: -> FIX: b", "a FAIL line names no item: FAIL: -> FIX: b"),
            ("~~PASS: a~~\nPASS: b", "a line is struck through: ~~PASS: a~~"),
            ("PASS: ~~a~~", "a line is struck through: PASS: ~~a~~"),
            ("- ~~FAIL: a -> FIX: b~~\nPASS: c", "a line is struck through: - ~~FAIL: a -> FIX: b~~"),
            ("PASS: a\nFIX: b", "a fix without a FAIL line: FIX: b"),
            ("PASS: A.\nFAIL: **a** -> FIX: b", "an item both passes and fails: A."),
            ("PASS: a, FAIL: b -> FIX: c", "a PASS line contains another item: PASS: a, FAIL: b -> FIX: c"),
            ("PASS: a\nNothing failed.", "a line starts with neither 'PASS:' nor 'FAIL:': Nothing failed."),
            (&long, "the reply has 202 words; at most 200"),
            (&wide, "the reply has 2106 bytes; at most 2000"),
        ] {
            assert_eq!(parse(text).unwrap_err().message, why);
        }
    }

    /// Lines that a person reads as FAIL, in every disguise.
    #[test]
    fn no_fail_line_is_ever_lost() {
        for fail in [
            "FAIL: b -> FIX: c",
            "FAIL b",
            "FAIL; b",
            "FAILED: b",
            "Overall: FAIL",
            "F A I L: b",
            "F-A-I-L",
            "FA1L: b",
            "FAlL b",
            "F4IL: b",
            "FA\u{200b}IL: b -> FIX: c",
            "\u{202e}LIAF: b",
            "FAIL\u{2028}: b",
            "ＦＡＩＬ： b",
            "F\u{410}IL: b",
            "\u{424}AIL: b",
            "𝐅𝐀𝐈𝐋: b",
            "🇫🇦🇮🇱",
            "🅵🅰🅸🅻",
            "ꜰᴀɪʟ: b",
            "FÂIL: b",
            "FA\u{300}IL: b",
            "b -> c",
            "FIX: c",
            "PASS: x FAIL: b -> FIX: c",
            "PASS: x ＦＡＩＬ： b",
            "🇫🇦🇮🇱 PASS: x",
            "❌ PASS: x",
        ] {
            for text in
                [format!("PASS: a\n{fail}"), format!("{fail}\nPASS: a"), format!("# {fail}\nPASS: a"), fail.to_owned()]
            {
                assert!(parse(&text).is_err() || !parse(&text).unwrap().fails.is_empty(), "{text}");
            }
        }
    }

    #[test]
    fn items_are_the_same_whatever_their_marks_case_and_numbers() {
        for item in
            ["no timeout", "No Timeout.", "**no timeout**", "1. no  timeout", "- `no` timeout:", "2) _no timeout_"]
        {
            assert_eq!(item_key(&format!("{item} -> FIX: {item}")), "no timeout", "{item}");
        }
        assert_ne!(item_key("timeout of 30 s -> FIX: a"), item_key("timeout of 60 s -> FIX: a"));
    }
}
