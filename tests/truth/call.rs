//! One call of a command: its words, and who calls.

use std::collections::BTreeMap;

/// Options without a value.
const FLAGS: &[&str] = &["--destructive", "--flexible", "--system", "--yes", "--check", "--mine"];

/// A command line and the variables of the caller's shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub line: String,
    pub variables: Vec<(&'static str, String)>,
}

impl Call {
    pub fn new(line: impl Into<String>) -> Call {
        Call { line: line.into(), variables: Vec::new() }
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Call {
        self.variables.push((name, value.to_owned()));
        self
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub fn words(&self) -> Words {
        let mut words = self.line.split(' ').map(str::to_owned);
        let program = words.next().unwrap_or_default();
        let (mut plain, mut options) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            match word.strip_prefix("--") {
                Some(name) => {
                    let value = if FLAGS.contains(&word.as_str()) { None } else { words.next() };
                    options.entry(name.to_owned()).or_default().extend(value);
                }
                None => plain.push(word),
            }
        }
        Words { program, plain, options }
    }

    /// The call as a line of a shell script.
    pub fn shown(&self) -> String {
        let set: String = self.variables.iter().map(|(name, value)| format!("{name}={value} ")).collect();
        format!("{set}{}", self.line)
    }
}

/// The parts of a command line.
#[derive(Clone, Debug)]
pub struct Words {
    pub program: String,
    /// Arguments that are not options, the subcommand first.
    pub plain: Vec<String>,
    options: BTreeMap<String, Vec<String>>,
}

impl Words {
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.get(name)?.first().map(String::as_str)
    }

    pub fn all(&self, name: &str) -> &[String] {
        self.options.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn flag(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    pub fn verb(&self) -> &str {
        self.plain.first().map_or("", String::as_str)
    }

    /// The argument after the subcommand.
    pub fn object(&self) -> Option<&str> {
        self.plain.get(1).map(String::as_str)
    }
}
