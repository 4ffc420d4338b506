//! Text for replies: no value may add, hide or reorder a line of a reply.

use std::fmt::Write as _;

use unicode_normalization::UnicodeNormalization as _;

/// Characters that can end a line, change the direction of the following text, or are not to be seen, in ascending order:
/// all with the property Default_Ignorable_Code_Point, other format characters, and those that look like nothing but are
/// no spaces. Control characters are not listed.
const UNSEEN: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),       // soft hyphen
    ('\u{34f}', '\u{34f}'),     // combining grapheme joiner
    ('\u{61c}', '\u{61c}'),     // Arabic letter mark
    ('\u{115f}', '\u{1160}'),   // Hangul fillers
    ('\u{17b4}', '\u{17b5}'),   // Khmer inherent vowels
    ('\u{180b}', '\u{180f}'),   // Mongolian variation selectors
    ('\u{200b}', '\u{200f}'),   // zero-width characters and marks of direction
    ('\u{2028}', '\u{202e}'),   // line and paragraph separators, embeddings, overrides
    ('\u{2060}', '\u{206f}'),   // word joiner, invisible operators, isolates
    ('\u{2800}', '\u{2800}'),   // Braille blank
    ('\u{3164}', '\u{3164}'),   // Hangul filler
    ('\u{fe00}', '\u{fe0f}'),   // variation selectors
    ('\u{feff}', '\u{feff}'),   // byte order mark
    ('\u{ffa0}', '\u{ffa0}'),   // halfwidth Hangul filler
    ('\u{fff0}', '\u{fffb}'),   // reserved, and interlinear annotations
    ('\u{13430}', '\u{1343f}'), // joiners of hieroglyphs
    ('\u{13441}', '\u{13442}'), // blank hieroglyphs
    ('\u{1bca0}', '\u{1bca3}'), // shorthand format controls
    ('\u{1d159}', '\u{1d159}'), // null notehead
    ('\u{1d173}', '\u{1d17a}'), // musical format controls
    ('\u{e0000}', '\u{e0fff}'), // tags, variation selectors and reserved
];

/// Whether a character can end a line, is invisible, or changes the direction of the following text.
pub fn is_unsafe(c: char) -> bool {
    let is_listed = || {
        let after = UNSEEN.partition_point(|(first, _)| *first <= c);
        after > 0 && c <= UNSEEN[after - 1].1
    };
    // Most text is plain.
    c.is_control() || (c > '~' && is_listed())
}

/// A document for a terminal: what could control the terminal, or hide, is escaped; lines and tabs stay.
pub fn for_terminal(document: &[u8]) -> String {
    let mut shown = String::with_capacity(document.len());
    for c in String::from_utf8_lossy(document).chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if is_unsafe(c) => write!(shown, "\\u{{{:x}}}", c as u32).expect("writing to a string cannot fail"),
            c => shown.push(c),
        }
    }
    shown
}

/// Escapes a value so that it fits on one line. Reversible: a backslash is doubled, other unsafe characters become
/// `\n`, `\t`, `\r` or `\u{hex}`.
pub fn escape(value: &str) -> String {
    let mut line = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            c if is_unsafe(c) => write!(line, "\\u{{{:x}}}", c as u32).expect("writing to a string cannot fail"),
            c => line.push(c),
        }
    }
    line
}

/// The first `max` characters, followed by `…` if the text is longer.
pub fn cut(value: &str, max: usize) -> String {
    match value.char_indices().nth(max) {
        None => value.to_owned(),
        Some((end, _)) => format!("{}…", &value[..end]),
    }
}

/// The similarity from which on a word is taken for another one, misspelled.
const MIN_SIMILARITY: f64 = 0.8;
/// How many words are suggested for a misspelled one, and how much less similar than the best they may be.
const SUGGESTED_MAX: usize = 3;
const SUGGESTED_WITHIN: f64 = 0.05;

/// The words that a misspelled one may stand for, most similar first.
pub fn similar<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = word.to_lowercase();
    let rated = words.map(|known| (strsim::jaro_winkler(&lower, &known.to_lowercase()), known));
    let mut near: Vec<(f64, &str)> = rated.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best = near.first().map_or(0.0, |(similarity, _)| *similarity);
    near.retain(|(similarity, _)| best - similarity <= SUGGESTED_WITHIN);
    near.into_iter().take(SUGGESTED_MAX).map(|(_, known)| known).collect()
}

/// `1 task`, `2 tasks`, `0 branches`.
pub fn count_noun(count: impl std::fmt::Display, noun: &str) -> String {
    match count.to_string().as_str() {
        "1" => format!("1 {noun}"),
        count => format!("{count} {}", plural(noun)),
    }
}

/// The plural of a regular noun.
fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if noun.ends_with("ch") || noun.ends_with("sh") || noun.ends_with(['s', 'x']) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// A text in the form in which titles are compared: NFKC, without case, and with single spaces.
pub fn caseless(text: &str) -> String {
    let lower: String = text.nfkc().flat_map(char::to_lowercase).nfkc().collect();
    lower.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reverses `escape`, to show that nothing is lost.
    fn unescape(line: &str) -> String {
        let mut value = String::new();
        let mut rest = line.chars();
        while let Some(c) = rest.next() {
            if c != '\\' {
                value.push(c);
                continue;
            }
            match rest.next().unwrap() {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                'u' => {
                    let hex: String = rest.by_ref().skip(1).take_while(|&c| c != '}').collect();
                    value.push(char::from_u32(u32::from_str_radix(&hex, 16).unwrap()).unwrap());
                }
                other => value.push(other),
            }
        }
        value
    }

    #[test]
    fn every_character_stays_on_its_line_and_can_be_read_back() {
        for c in ('\0'..=char::MAX).chain(['\\']) {
            let line = escape(&c.to_string());
            assert!(!line.chars().any(is_unsafe), "{:x}", c as u32);
            assert_eq!(line.lines().count(), 1);
            assert_eq!(unescape(&line), c.to_string(), "{:x}", c as u32);
        }
    }

    #[test]
    fn plain_text_of_any_language_is_left_alone() {
        let text = "作業中: build & test (3/4) é";
        assert_eq!(escape(text), text);
    }

    #[test]
    fn a18_no_character_that_unicode_calls_ignorable_is_left_as_it_is() {
        let ignorable = regex::Regex::new(r"^[\p{Default_Ignorable_Code_Point}\p{Zl}\p{Zp}\p{Bidi_Control}]$").unwrap();
        // Format characters that are signs of their own: they stand before or around numbers.
        let is_sign = regex::Regex::new(r"^\p{Prepended_Concatenation_Mark}$").unwrap();
        let format = regex::Regex::new(r"^\p{Cf}$").unwrap();
        for c in '\0'..=char::MAX {
            let text = c.to_string();
            let is_unseen = ignorable.is_match(&text) || format.is_match(&text) && !is_sign.is_match(&text);
            assert!(!is_unseen || is_unsafe(c), "{:x}", c as u32);
        }
        let blank = ['\u{2800}', '\u{3164}', '\u{ffa0}', '\u{1d159}', '\u{13441}'];
        assert!(blank.into_iter().all(is_unsafe));
        assert!(UNSEEN.is_sorted() && UNSEEN.iter().all(|(first, last)| first <= last));
    }

    #[test]
    fn a_document_cannot_control_a_terminal() {
        assert_eq!(
            for_terminal(b"\x1b]0;title\x07\tred\r\n\xffend\\n"),
            "\\u{1b}]0;title\\u{7}\tred\\u{d}\n\u{fffd}end\\n"
        );
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(cut("内省する", 2), "内省…");
        assert_eq!(cut("内省", 2), "内省");
    }

    #[test]
    fn misspelled_words_are_recognized() {
        let words = || ["TaskFailed", "TaskReady", "RunFinished"].into_iter();
        assert_eq!(similar("TaskFaild", words())[0], "TaskFailed");
        assert_eq!(similar("taskready", words())[0], "TaskReady");
        for word in ["", "nonsense", "../x"] {
            assert_eq!(similar(word, words()), [""; 0], "{word}");
        }
    }

    #[test]
    fn nouns_agree_with_their_number() {
        for (count, noun, text) in [
            (0, "task", "0 tasks"),
            (1, "task", "1 task"),
            (2, "branch", "2 branches"),
            (1, "entity", "1 entity"),
            (3, "entity", "3 entities"),
            (2, "key", "2 keys"),
        ] {
            assert_eq!(count_noun(count, noun), text);
        }
    }
}
