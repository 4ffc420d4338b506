//! The words of a shell command, as far as they can be told without a shell.

/// The simple commands of a line, each as its words. A word is `None` if only a shell could tell what it becomes, as
/// with `$(date)` or `*`. Redirections and empty commands are left out.
pub fn simple_commands(line: &str, variable: &dyn Fn(&str) -> Option<String>) -> Vec<Vec<Option<String>>> {
    let mut splitter = Splitter { variable, commands: vec![Vec::new()], word: None, is_target: false };
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        if c == '#' && splitter.word.is_none() {
            break;
        }
        rest = splitter.take(c, rest);
    }
    splitter.end_word();
    splitter.commands.retain(|command| !command.is_empty());
    splitter.commands
}

/// A word that is being read.
#[derive(Default)]
struct ShellWord {
    text: String,
    /// Whether only a shell could tell what it becomes.
    is_unknown: bool,
    is_quoted: bool,
}

struct Splitter<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    commands: Vec<Vec<Option<String>>>,
    word: Option<ShellWord>,
    /// Whether the next word is the target of a redirection.
    is_target: bool,
}

impl<'a> Splitter<'_> {
    /// Takes one character outside of quotes. Returns what is left.
    fn take(&mut self, c: char, mut rest: std::str::Chars<'a>) -> std::str::Chars<'a> {
        match c {
            ' ' | '\t' => self.end_word(),
            ';' | '&' | '|' | '(' | ')' | '\n' => {
                self.end_word();
                self.commands.push(Vec::new());
            }
            '<' | '>' => {
                // The number in `2>` is part of the redirection.
                let is_number = |word: &ShellWord| !word.is_quoted && word.text.bytes().all(|b| b.is_ascii_digit());
                self.word = self.word.take().filter(|word| !is_number(word));
                self.end_word();
                let more = rest.as_str().len() - rest.as_str().trim_start_matches(['<', '>', '&', '|']).len();
                rest = rest.as_str()[more..].chars();
                self.is_target = true;
            }
            '\'' => {
                let (inside, after) = rest.as_str().split_once('\'').unwrap_or((rest.as_str(), ""));
                let word = self.quoted();
                word.text.push_str(inside);
                word.is_unknown |= inside.len() == rest.as_str().len();
                rest = after.chars();
            }
            '"' => rest = self.double_quoted(rest),
            '\\' => match rest.next() {
                Some(c) => self.quoted().text.push(c),
                None => self.open().is_unknown = true,
            },
            '$' => rest = self.expand(rest),
            '`' | '*' | '?' | '[' => self.open().is_unknown = true,
            '~' if self.is_at_path() => match (self.variable)("HOME").filter(|_| is_end_of_user(rest.as_str())) {
                Some(home) => self.open().text.push_str(&home),
                None => self.open().is_unknown = true,
            },
            c => self.open().text.push(c),
        }
        rest
    }

    fn double_quoted(&mut self, mut rest: std::str::Chars<'a>) -> std::str::Chars<'a> {
        self.quoted();
        loop {
            match rest.next() {
                Some('"') => return rest,
                Some('\\') => match rest.next() {
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.open().text.push(c),
                    Some(c) => self.open().text.extend(['\\', c]),
                    None => self.open().is_unknown = true,
                },
                Some('$') => rest = self.expand(rest),
                Some('`') => self.open().is_unknown = true,
                Some(c) => self.open().text.push(c),
                None => {
                    self.open().is_unknown = true;
                    return rest;
                }
            }
        }
    }

    /// Takes the name after a dollar sign.
    fn expand(&mut self, rest: std::str::Chars<'a>) -> std::str::Chars<'a> {
        let text = rest.as_str();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, after) = match text.strip_prefix('{').and_then(|inside| inside.split_once('}')) {
            Some(braced) => braced,
            None => text.split_at(text.find(|c| !is_name(c)).unwrap_or(text.len())),
        };
        match (self.variable)(name).filter(|_| name.chars().all(is_name)) {
            Some(value) => {
                self.open().text.push_str(&value);
                after.chars()
            }
            None => {
                self.open().is_unknown = true;
                rest
            }
        }
    }

    /// Whether a tilde here is a home directory: at the beginning of a word, or of a value.
    fn is_at_path(&self) -> bool {
        self.word.as_ref().is_none_or(|word| !word.is_quoted && word.text.ends_with('='))
    }

    fn open(&mut self) -> &mut ShellWord {
        self.word.get_or_insert_default()
    }

    fn quoted(&mut self) -> &mut ShellWord {
        let word = self.open();
        word.is_quoted = true;
        word
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if !std::mem::take(&mut self.is_target)
            && let Some(command) = self.commands.last_mut()
        {
            command.push((!word.is_unknown).then_some(word.text));
        }
    }
}

/// Whether a tilde before this is the caller's own home directory.
fn is_end_of_user(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['/', ' ', '\t', ';', '&', '|'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<Vec<String>> {
        let variable = |name: &str| (name == "HOME").then(|| "/home/jo".to_owned());
        let shown = |word: Option<String>| word.unwrap_or_else(|| "?".to_owned());
        simple_commands(line, &variable).into_iter().map(|words| words.into_iter().map(shown).collect()).collect()
    }

    #[test]
    fn a_line_is_split_as_a_shell_does() {
        for (line, words) in [
            ("a b\tc", &["a", "b", "c"][..]),
            ("  'a b' \"c d\"e f\\ g ''", &["a b", "c de", "f g", ""]),
            (
                "\"$HOME/x\" ${HOME} $HOME/y '$HOME' \\$HOME",
                &["/home/jo/x", "/home/jo", "/home/jo/y", "$HOME", "$HOME"],
            ),
            ("~/x V=~/y ~ a~ '~'", &["/home/jo/x", "V=/home/jo/y", "/home/jo", "a~", "~"]),
            ("a >/dev/null 2>&1 b <c >>d e", &["a", "b", "e"]),
            ("a # b", &["a"]),
            ("a#b '#'", &["a#b", "#"]),
            ("a $(b", &["a", "?"]),
            ("a `b` $OTHER \"$OTHER\" *.x ~root 'open", &["a", "?", "?", "?", "?", "?", "?"]),
            ("'it'\"'\"'s'", &["it's"]),
            ("a2>x", &["a2"]),
        ] {
            assert_eq!(split(line)[0], words, "{line}");
        }
        assert_eq!(split("a && b; c | d &"), [["a"], ["b"], ["c"], ["d"]]);
        assert!(split("  # nothing").is_empty());
    }
}
