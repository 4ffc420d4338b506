//! The length of a text for a model, in words.
//!
//! In scripts without spaces every character counts as a word, and a very long word counts as several, so that no
//! text seems short only because it has no spaces.

use crate::base::{Error, ErrorKind, Result};

/// The default budget of a context.
pub const WORDS_DEFAULT: usize = 800;
/// The smallest budget; less leaves no room for what every context contains.
pub const WORDS_MIN: usize = 60;
/// The largest budget.
const WORDS_MAX: usize = 1_000_000;
/// The longest run of characters that counts as one word.
const WORD_MAX_CHARS: usize = 20;

pub(super) fn check(words: usize) -> Result<()> {
    match (WORDS_MIN..=WORDS_MAX).contains(&words) {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::LimitExceeded,
            format!("invalid number of words {words}; must be {WORDS_MIN} to {WORDS_MAX}"),
        )),
    }
}

/// Whether the character belongs to a script that is written without spaces.
fn is_word_by_itself(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{9fff}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{1f000}'..='\u{1faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Where each word of a text ends.
fn ends(text: &str) -> impl Iterator<Item = usize> {
    let mut run = 0;
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        loop {
            let (at, c) = chars.next()?;
            let end = at + c.len_utf8();
            if c.is_whitespace() {
                run = 0;
                continue;
            }
            run += 1;
            let next = chars.peek().map(|(_, next)| *next);
            let ends_here = next.is_none_or(|next| next.is_whitespace() || is_word_by_itself(next));
            if ends_here || is_word_by_itself(c) || run == WORD_MAX_CHARS {
                run = 0;
                return Some(end);
            }
        }
    })
}

/// The number of words in a text.
pub fn count(text: &str) -> usize {
    ends(text).count()
}

/// The first words of a text, with `…` where something was cut.
pub(super) fn cut(text: &str, max: usize) -> String {
    if ends(text).nth(max).is_none() {
        return text.to_owned();
    }
    // The `…` counts as a word after a character that is a word by itself, and after a word of maximal length.
    let first = |words: usize| {
        let end = words.checked_sub(1).and_then(|last| ends(text).nth(last)).unwrap_or(0);
        format!("{}…", &text[..end])
    };
    let all = first(max);
    if count(&all) <= max { all } else { first(max.saturating_sub(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_every_script() {
        for (text, words) in [
            ("", 0),
            ("  \n ", 0),
            ("one", 1),
            ("one two\nthree", 3),
            ("第3章を書く", 6),
            ("chapter 第三章", 4),
            (&"x".repeat(20), 1),
            (&"x".repeat(41), 3),
        ] {
            assert_eq!(count(text), words, "{text:?}");
            // Counting by spaces never gives more.
            assert!(text.split_whitespace().count() <= words, "{text:?}");
        }
    }

    #[test]
    fn a_text_is_cut_after_a_word() {
        assert_eq!(cut("one two three", 3), "one two three");
        assert_eq!(cut("one two three", 2), "one two…");
        assert_eq!(cut("第三章", 2), "第…");
        assert_eq!(cut("one", 0), "…");
        for max in 0..9 {
            assert!(count(&cut("a bb 内省 cccc ddddd eeeeee", max)) <= max.max(1));
        }
    }
}
