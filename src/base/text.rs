//! Text for replies: no value may add, hide or reorder a line of a reply.

use std::fmt::Write as _;

/// Whether a character can end a line, is invisible, or changes the direction of the following text.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
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
