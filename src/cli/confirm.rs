//! Asking a person at a terminal, before something is signed or approved.

use std::io::{self, IsTerminal};

use unicode_width::UnicodeWidthChar;

use super::main::write_all;
use crate::base::{Error, Reason, Result, text};
use crate::policy::statement::Statement;

/// Shows a statement on the terminal, and asks whether to sign it.
pub fn ask_to_sign(statement: &Statement) -> Result<()> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(not_confirmed("nobody can be asked without a terminal; to sign without being asked, add --yes"));
    }
    ask(statement, "Sign this statement?", "not confirmed; nothing was signed")
}

/// Shows what an approval covers, as a statement that nobody signs, and asks. Only for a terminal.
pub fn ask_to_approve(statement: &Statement) -> Result<()> {
    ask(statement, "Approve?", "not confirmed; nothing was approved")
}

/// Asks whether to archive a project, which is final.
pub fn ask_to_archive(project: &str) -> Result<()> {
    let project = text::cut(project, 64);
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(not_confirmed(&format!("archiving project {project} is final; to do so, add --yes")));
    }
    let shown = format!("Project {} can only be read from then on. Archive it? [y/N] ", text::escape(&project));
    answer(&shown, "not confirmed; nothing was archived")
}

fn not_confirmed(why: &str) -> Error {
    Error::refused(Reason::NotConfirmed, why)
}

fn ask(statement: &Statement, question: &str, no: &str) -> Result<()> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    let columns = if size < COLUMNS_MIN { COLUMNS_DEFAULT } else { size };
    let shown = format!("{}\n{question} [y/N] ", folded(&statement.to_string(), columns));
    answer(&shown, no)
}

/// Shows a question, and refuses with `no` unless the answer is yes.
fn answer(question: &str, no: &str) -> Result<()> {
    write_all(io::stderr(), question.as_bytes());
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|e| Error::system("cannot read the answer", e))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(not_confirmed(no)),
    }
}

/// The width of a terminal that does not tell, or tells nonsense.
const COLUMNS_DEFAULT: usize = 80;
const COLUMNS_MIN: usize = 20;
/// What a line starts with if it continues the one above it. No line of a statement starts with a space.
const CONTINUED: &str = "    ";

/// The text with long lines folded. If the terminal folded them, a value could be made to look like further lines.
fn folded(text: &str, columns: usize) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        let mut used = 0;
        for c in line.chars() {
            let width = c.width().unwrap_or(0);
            if used + width > columns {
                folded.push('\n');
                folded.push_str(CONTINUED);
                used = CONTINUED.len();
            }
            folded.push(c);
            used += width;
        }
        folded.push('\n');
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_value_does_not_look_like_a_line_of_its_own() {
        let text = format!("comment: {}option: yes\nsubject: system\n", "x".repeat(11));
        assert_eq!(folded(&text, 20), "comment: xxxxxxxxxxx\n    option: yes\nsubject: system\n");
        assert_eq!(folded("comment: 作業作業作業作業\n", 20), "comment: 作業作業作\n    業作業\n");
        assert_eq!(folded("a\n\nb\n", 20), "a\n\nb\n");
    }
}
