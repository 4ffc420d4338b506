//! What the name and the content of a file tell about it: its kind, its media type, its language.

use std::path::Path;

use serde_json::{Map, Value};

/// What a file extension implies: extension, kind, media type, language.
const EXTENSIONS: &[(&str, &str, &str, Option<&str>)] = &[
    ("c", "code", "text/x-c", Some("c")),
    ("css", "code", "text/css", Some("css")),
    ("csv", "text", "text/csv", None),
    ("go", "code", "text/x-go", Some("go")),
    ("html", "code", "text/html", Some("html")),
    ("java", "code", "text/x-java", Some("java")),
    ("js", "code", "text/javascript", Some("javascript")),
    ("json", "text", "application/json", None),
    ("md", "text", "text/markdown", None),
    ("pdf", "binary", "application/pdf", None),
    ("png", "binary", "image/png", None),
    ("py", "code", "text/x-python", Some("python")),
    ("rb", "code", "text/x-ruby", Some("ruby")),
    ("rs", "code", "text/x-rust", Some("rust")),
    ("sh", "code", "text/x-shellscript", Some("shell")),
    ("sql", "code", "text/x-sql", Some("sql")),
    ("svg", "text", "image/svg+xml", None),
    ("ts", "code", "text/x-typescript", Some("typescript")),
    ("txt", "text", "text/plain", None),
    ("yaml", "text", "application/yaml", None),
    ("zip", "binary", "application/zip", None),
];

/// The longest file extension that is kept.
const EXTENSION_MAX_CHARS: usize = 16;

/// The extension of a file name, if it is plain enough to be kept.
pub fn extension(name: &Path) -> Option<&str> {
    let is_plain = |extension: &&str| {
        (1..=EXTENSION_MAX_CHARS).contains(&extension.len()) && extension.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    name.extension().and_then(|extension| extension.to_str()).filter(is_plain)
}

fn known(extension: Option<&str>) -> Option<&'static (&'static str, &'static str, &'static str, Option<&'static str>)> {
    let extension = extension?;
    EXTENSIONS.iter().find(|row| row.0.eq_ignore_ascii_case(extension))
}

/// The kind that an extension implies.
pub fn kind(extension: Option<&str>) -> Option<&'static str> {
    known(extension).map(|row| row.1)
}

/// What is recorded about a content besides its hash and size. `lines` is none if it is not text.
pub fn traits(extension: Option<&str>, lines: Option<u64>) -> Map<String, Value> {
    let plain = if lines.is_some() { "text/plain" } else { "application/octet-stream" };
    let known = known(extension);
    let mut traits = Map::from_iter([("mime_type".to_owned(), known.map_or(plain, |row| row.2).into())]);
    traits.extend(known.and_then(|row| row.3).map(|language| ("language".to_owned(), language.into())));
    traits.extend(lines.map(|lines| ("line_count".to_owned(), lines.into())));
    traits
}
