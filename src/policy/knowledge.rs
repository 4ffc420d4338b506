//! Lasting knowledge: pages that a persona writes down, each found by its title.
//!
//! A page is revised in place: its id follows from its persona and its title, so that a title names one page whatever its
//! case and form (NFKC). The log has every revision.

use super::rules::Step;
use crate::base::{Digest, EntityId, EntityType, Error, Reason, Result, Subject, limits, text};

/// How many digits of a digest name a page.
const ID_CHARS: usize = 48;

/// The page with this title.
pub fn page_of(persona: &EntityId, title: &str) -> Subject {
    let digest = Digest::of_bytes(format!("{persona}\n{}", text::caseless(title)).as_bytes()).to_string();
    let id = digest.split_once(':').map_or(digest.as_str(), |(_, hex)| hex);
    let id = EntityId::parse(&id[..ID_CHARS]).expect("hexadecimal digits are an id");
    Subject::new(EntityType::Knowledge, id)
}

/// A page belongs to its persona, and has the id of its title.
pub(super) fn can_be_recorded(step: &Step<'_>) -> Result<()> {
    let (Some(persona), Some(title)) = (step.text("persona_id"), step.text("title")) else { return Ok(()) };
    let persona = EntityId::parse(persona)?;
    if step.actor.agent().is_some_and(|me| me != persona) {
        return Err(Error::refused(Reason::NotHolder, format!("{} cannot act for agent:{persona}", step.actor)));
    }
    let length = title.chars().count();
    if text::caseless(title).is_empty() || length > limits::TITLE_MAX_CHARS || title.lines().count() > 1 {
        let max = limits::TITLE_MAX_CHARS;
        return Err(Error::usage(format!("a title must be one line of 1 to {max} characters")));
    }
    let page = page_of(&persona, title);
    match *step.subject == page {
        true => Ok(()),
        false => Err(Error::usage(format!("the page with this title is {page}, not {}", step.subject))),
    }
}

/// Whether letters of this character's script are written without spaces between words.
fn needs_no_boundary(c: char) -> bool {
    matches!(c, '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{2e80}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7ff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether a title may begin or end between these characters of a text.
fn is_boundary(before: Option<char>, after: Option<char>) -> bool {
    match before.zip(after) {
        None => true,
        Some((a, b)) => !(a.is_alphanumeric() && b.is_alphanumeric()) || needs_no_boundary(a) || needs_no_boundary(b),
    }
}

/// The pieces of a text that can be a title of one of these lengths, in the order of the text. Lengths are in characters.
pub fn possible_titles(text: &str, lengths: &[usize]) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    let lengths = lengths.to_vec();
    let mut at = 0;
    let mut pieces = Vec::new().into_iter();
    std::iter::from_fn(move || {
        loop {
            if let Some(piece) = pieces.next() {
                return Some(piece);
            }
            if at == chars.len() {
                return None;
            }
            let before = at.checked_sub(1).map(|n| chars[n]);
            let begins = !chars[at].is_whitespace() && is_boundary(before, Some(chars[at]));
            let ends = |length: &usize| {
                let end = at + length;
                // A title neither begins nor ends with a space.
                let ends = *length > 0
                    && end <= chars.len()
                    && !chars[end - 1].is_whitespace()
                    && is_boundary(Some(chars[end - 1]), chars.get(end).copied());
                ends.then(|| chars[at..end].iter().collect::<String>())
            };
            pieces = if begins { lengths.iter().filter_map(ends).collect::<Vec<_>>() } else { Vec::new() }.into_iter();
            at += 1;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_names_one_page_in_every_form_and_case() {
        let ann = EntityId::parse("ann").unwrap();
        let page = page_of(&ann, "Lyra  the Brave");
        for same in ["lyra the brave", " LYRA THE BRAVE ", "Ｌｙｒａ ｔｈｅ Ｂｒａｖｅ"] {
            assert_eq!(page_of(&ann, same), page, "{same}");
        }
        assert_ne!(page_of(&ann, "Lyra"), page);
        assert_ne!(page_of(&EntityId::parse("ben").unwrap(), "Lyra the Brave"), page);
    }

    #[test]
    fn titles_are_whole_words_where_a_script_has_words() {
        let found = |text: &str, title: &str| {
            let length = title.chars().count();
            possible_titles(&text::caseless(text), &[length]).any(|piece| piece == text::caseless(title))
        };
        assert!(found("Then Lyra, drew", "lyra") && found("LYRA", "lyra") && found("a the tower b", "The Tower"));
        assert!(!found("Lyras sword", "lyra") && !found("collyra", "lyra"));
        assert!(found("主人公リラは塔に", "リラ") && found("ﾘﾗ", "リラ"));
        assert!(!found("", "lyra") && !found("lyr", "lyra"));
        let pieces: Vec<String> = possible_titles("lyra sleeps", &[4, 5]).collect();
        assert_eq!(pieces, ["lyra"]);
    }
}
