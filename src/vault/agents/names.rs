//! The names of agents' files: a heartbeat id, and what the tools that write them add to it.

use super::DeclarationEnd;
use crate::base::HeartbeatId;

/// The three sorts of files in which agents show signs of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileSort {
    Log,
    Checkpoint,
    Declaration,
}

impl FileSort {
    pub(super) const fn suffix(self) -> &'static str {
        match self {
            FileSort::Log => ".md",
            FileSort::Checkpoint | FileSort::Declaration => ".txt",
        }
    }
}

/// What the name of a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName {
    pub id: HeartbeatId,
    /// The number after the id, for several files under one id: `_01`, `_2`.
    pub number: u64,
    /// How a declaration ended; none while it is open.
    pub end: Option<DeclarationEnd>,
}

/// Parses the name of a file. The inner error is the text in place of an id; none if it is not one of these files.
pub fn parse(sort: FileSort, name: &str) -> Option<Result<FileName, &str>> {
    let stem = name.strip_suffix(sort.suffix())?;
    let (id, rest) = match HeartbeatId::parse_start(stem)? {
        Ok(found) => found,
        Err(digits) => return Some(Err(digits)),
    };
    let (rest, end) = match DeclarationEnd::ALL.iter().find(|end| rest.ends_with(end.word())) {
        Some(end) if sort == FileSort::Declaration => (&rest[..rest.len() - end.word().len()], Some(*end)),
        _ => (rest, None),
    };
    // Only the names of logs may have further words.
    let is_plain = rest.is_empty() || rest.starts_with('_') && !rest.contains('.');
    let number = rest.strip_prefix('_').and_then(|number| number.parse().ok()).unwrap_or(0);
    (is_plain || sort == FileSort::Log).then_some(Ok(FileName { id, number, end }))
}

/// The path that a declaration had while it was open.
pub fn open_path(path: &str) -> String {
    let suffix = FileSort::Declaration.suffix();
    let stem = path.strip_suffix(suffix).unwrap_or(path);
    match DeclarationEnd::ALL.iter().find_map(|end| stem.strip_suffix(end.word())) {
        Some(stem) => format!("{stem}{suffix}"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_the_tools_write_them_are_parsed_and_others_are_not() {
        let check = |sort, name: &str, expected: Option<(u64, Option<DeclarationEnd>)>| {
            let found = parse(sort, name).map(|found| found.expect("a time"));
            assert_eq!(found.map(|found| (found.number, found.end)), expected, "{name}");
        };
        let (log, checkpoint, declaration) = (FileSort::Log, FileSort::Checkpoint, FileSort::Declaration);
        check(log, "20260131120000.md", Some((0, None)));
        check(log, "20260131120000_01.md", Some((1, None)));
        check(log, "20260131120000_2.md", Some((2, None)));
        check(log, "20260131120000_a title.md", Some((0, None)));
        check(log, "20260131120000.txt", None);
        check(log, "README.md", None);
        check(checkpoint, "20260131120000.txt", Some((0, None)));
        check(checkpoint, "20260131120000_2.txt", Some((2, None)));
        check(checkpoint, ".20260131120000.txt.tmp", None);
        check(declaration, "20260131120000.txt", Some((0, None)));
        check(declaration, "20260131120000.completed.txt", Some((0, Some(DeclarationEnd::Completed))));
        check(declaration, "20260131120000_2.expired.txt", Some((2, Some(DeclarationEnd::Expired))));
        check(declaration, "20260131120000.malformed.txt", Some((0, Some(DeclarationEnd::Malformed))));
        check(declaration, "20260131120000.conf.txt", None);
        assert_eq!(parse(log, "20261331120000.md"), Some(Err("20261331120000")));
    }

    #[test]
    fn an_ended_declaration_keeps_the_path_that_it_had() {
        for (path, open) in
            [("a/1.txt", "a/1.txt"), ("a/1.completed.txt", "a/1.txt"), ("a/1_2.expired.txt", "a/1_2.txt")]
        {
            assert_eq!(open_path(path), open);
        }
    }
}
