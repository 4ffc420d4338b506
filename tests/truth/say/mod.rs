//! What the commands must say about a world: hf-status, hf-task explain, and the STATUS and NEXT of every reply.

pub mod explain;
pub mod poll;
pub mod reply;
pub mod status;

/// The length of a title in a sentence.
pub const TITLE_MAX: usize = 80;

/// The length of a quoted reason or question.
pub const QUOTE_MAX: usize = 80;

/// A text cut after a number of characters; one more says that it was cut.
pub fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max).collect();
    format!("{kept}…")
}

/// How many of something.
pub fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}
