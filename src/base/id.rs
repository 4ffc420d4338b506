//! Entity types, ids, subjects (`task:01J…`) and short references (`T-0001@a13c`).

use std::fmt;

use unicode_normalization::UnicodeNormalization;

use super::{Error, Result, limits, names};

names! {
    /// The types of entities that events are about.
    pub enum EntityType {
        System = "system",
        Requirement = "requirement",
        Decision = "decision",
        Task = "task",
        Run = "run",
        Artifact = "artifact",
        Constraint = "constraint",
        Agent = "agent",
        DeepWork = "deepwork",
        Mission = "mission",
        Debate = "debate",
        Review = "review",
        Document = "document",
        Project = "project",
        Session = "session",
        Branch = "branch",
        Thread = "thread",
        Message = "message",
        Escalation = "escalation",
        Knowledge = "knowledge",
    }
}

/// How entities of a type are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// There is only one, without an id.
    Single,
    /// By a name that its author chooses.
    ByName,
    /// By a number after this prefix.
    ByNumber(&'static str),
}

/// The properties of a type.
#[derive(Debug)]
struct EntityTypeRow {
    entity: EntityType,
    plural: &'static str,
    naming: Naming,
    /// Default: `a`.
    article: &'static str,
    /// Default: no.
    incidental: bool,
}

const fn row(entity: EntityType, plural: &'static str, naming: Naming) -> EntityTypeRow {
    EntityTypeRow { entity, plural, naming, article: "a", incidental: false }
}

impl EntityTypeRow {
    const fn an(self) -> EntityTypeRow {
        EntityTypeRow { article: "an", ..self }
    }

    const fn incidental(self) -> EntityTypeRow {
        EntityTypeRow { incidental: true, ..self }
    }
}

/// The types, in the order of `EntityType`.
const TABLE: &[EntityTypeRow] = &[
    row(EntityType::System, "system", Naming::Single),
    row(EntityType::Requirement, "requirements", Naming::ByNumber("REQ")),
    row(EntityType::Decision, "decisions", Naming::ByNumber("DEC")),
    row(EntityType::Task, "tasks", Naming::ByNumber("T")),
    row(EntityType::Run, "runs", Naming::ByNumber("RUN")),
    row(EntityType::Artifact, "artifacts", Naming::ByNumber("ART")).an(),
    row(EntityType::Constraint, "constraints", Naming::ByNumber("CON")),
    row(EntityType::Agent, "agents", Naming::ByName).an().incidental(),
    row(EntityType::DeepWork, "deepworks", Naming::ByNumber("DW")),
    row(EntityType::Mission, "missions", Naming::ByNumber("M")),
    row(EntityType::Debate, "debates", Naming::ByNumber("DB")),
    row(EntityType::Review, "reviews", Naming::ByName),
    row(EntityType::Document, "documents", Naming::ByName),
    row(EntityType::Project, "projects", Naming::ByName),
    row(EntityType::Session, "sessions", Naming::ByNumber("S")),
    row(EntityType::Branch, "branches", Naming::ByNumber("BR")).incidental(),
    row(EntityType::Thread, "threads", Naming::ByNumber("TH")).incidental(),
    row(EntityType::Message, "messages", Naming::ByNumber("MSG")),
    row(EntityType::Escalation, "escalations", Naming::ByNumber("ESC")).an(),
    row(EntityType::Knowledge, "knowledge", Naming::ByNumber("K")),
];

// A type is the index of its row.
const _: () = {
    assert!(TABLE.len() == EntityType::ALL.len());
    let mut n = 0;
    while n < TABLE.len() {
        assert!(TABLE[n].entity as usize == n);
        n += 1;
    }
};

impl EntityType {
    const fn row(self) -> &'static EntityTypeRow {
        &TABLE[self as usize]
    }

    /// `a task`, `an artifact`.
    pub fn with_article(self) -> String {
        format!("{} {self}", self.row().article)
    }

    /// The prefix of its short references; `None` for types that are referred to by name.
    pub const fn ref_prefix(self) -> Option<&'static str> {
        match self.row().naming {
            Naming::ByNumber(prefix) => Some(prefix),
            Naming::Single | Naming::ByName => None,
        }
    }

    /// The plural, which is also the name of its projection.
    pub const fn plural(self) -> &'static str {
        self.row().plural
    }

    /// Whether entities of this type are created along with almost everything, so that replies leave them out.
    pub const fn is_incidental(self) -> bool {
        self.row().incidental
    }

    /// The types that have a projection: all except the system.
    pub fn projected() -> impl Iterator<Item = EntityType> {
        EntityType::ALL.iter().copied().filter(|entity| entity.has_id())
    }

    /// Whether people choose the names of entities of this type, in any script.
    pub const fn is_named_by_people(self) -> bool {
        matches!(self, EntityType::Agent | EntityType::Project | EntityType::Branch)
    }

    /// Whether entities of this type have ids; only the system has none.
    pub const fn has_id(self) -> bool {
        !matches!(self.row().naming, Naming::Single)
    }
}

/// An id: `^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`, or for what is named by people the same with letters, digits and marks of
/// any script, in NFC. Safe in a path, a shell word and a reply: every other character of ASCII is excluded, and beyond
/// it everything that is no letter, digit or mark, or that cannot be seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityId(String);

impl EntityId {
    /// Whether a text is an id. Allocates nothing.
    pub fn is_valid(text: &str) -> bool {
        let begins = |c: char| c.is_alphanumeric() && !super::text::is_unsafe(c);
        let goes_on = |c: char| begins(c) || c == '_' || c == '-' || (is_mark(c) && !super::text::is_unsafe(c));
        text.chars().next().is_some_and(begins)
            && text.chars().all(goes_on)
            && text.len() <= limits::ID_MAX_BYTES
            && text.chars().count() <= limits::ID_MAX_CHARS
            && (text.is_ascii() || unicode_normalization::is_nfc(text))
    }

    pub fn parse(text: &str) -> Result<Self> {
        if Self::is_valid(text) {
            Ok(EntityId(text.to_owned()))
        } else {
            let shown = super::text::cut(text, limits::ID_MAX_CHARS);
            let composed: String = text.chars().take(limits::ID_MAX_CHARS).nfc().collect();
            Err(Error::usage(match Self::is_valid(&composed) && text.chars().count() <= limits::ID_MAX_CHARS {
                true => format!("invalid id '{shown}'; it must be in NFC, with composed characters: '{composed}'"),
                false => format!(
                    "invalid id '{shown}'; must be 1 to {} letters, digits, '_' or '-', starting with a letter or digit",
                    limits::ID_MAX_CHARS
                ),
            }))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a character changes the letter before it.
fn is_mark(c: char) -> bool {
    !c.is_ascii() && unicode_normalization::char::is_combining_mark(c)
}

/// The letters of references to files: designs, plans, patches, reports and logs.
const FILE_LETTERS: &[&str] = &["D", "P", "X", "E", "L"];

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `<type>:<id>`, or `system`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    pub entity: EntityType,
    id: Option<EntityId>,
}

impl Subject {
    pub const SYSTEM: Subject = Subject { entity: EntityType::System, id: None };

    /// Panics for `System`, which has no id: callers always know the type.
    pub fn new(entity: EntityType, id: EntityId) -> Self {
        assert!(entity.has_id(), "the system has no id");
        Subject { entity, id: Some(id) }
    }

    pub fn parse(text: &str) -> Result<Self> {
        if text == EntityType::System.as_str() {
            return Ok(Subject::SYSTEM);
        }
        let (entity, id) = text.split_once(':').ok_or_else(|| {
            Error::usage(format!("invalid subject '{}'; must be TYPE:ID", super::text::cut(text, 80)))
        })?;
        match EntityType::parse(entity) {
            // Only names are in any script: those of agents, which are also those of their roots, and of projects.
            Some(entity) if entity.has_id() && (id.is_ascii() || entity.is_named_by_people()) => {
                Ok(Subject::new(entity, EntityId::parse(id)?))
            }
            Some(entity) if entity.has_id() => Err(Error::usage(format!(
                "invalid id '{}' of {}; must be ASCII",
                super::text::cut(id, 80),
                entity.with_article()
            ))),
            _ => Err(Error::usage(format!(
                "unknown type '{}' in subject '{}'",
                super::text::cut(entity, 40),
                super::text::cut(text, 80)
            ))),
        }
    }

    /// Whether its id could be taken for a short reference: a known prefix, `-` and four or more digits, or the letter of
    /// a file and four or more digits, in either case. A document's id is its reference.
    pub fn misleads(&self) -> bool {
        let is_number = |digits: &str| digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_digit());
        let is_prefix = |text: &str| {
            let mut prefixes = EntityType::ALL.iter().filter_map(|entity| entity.ref_prefix());
            prefixes.any(|prefix| prefix.eq_ignore_ascii_case(text))
        };
        let id = self.id();
        let is_file = FILE_LETTERS
            .iter()
            .any(|letter| id.get(..1).is_some_and(|first| first.eq_ignore_ascii_case(letter)) && is_number(&id[1..]));
        let is_entity = id.split_once('-').is_some_and(|(prefix, digits)| is_prefix(prefix) && is_number(digits));
        is_entity || (is_file && self.entity != EntityType::Document)
    }

    /// The id, or `system`.
    pub fn id(&self) -> &str {
        self.id.as_ref().map_or(self.entity.as_str(), EntityId::as_str)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => write!(f, "{}:{id}", self.entity),
            None => f.write_str(self.entity.as_str()),
        }
    }
}

/// `T-0001` or `T-0001@a13c`: the nth entity of its type, and four digits of its first event's hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortRef {
    pub entity: EntityType,
    pub ordinal: u64,
    pub tag: Option<String>,
}

impl ShortRef {
    /// Parses either case; `None` if the text is not a short reference.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, tag) = match text.split_once('@') {
            Some((name, tag)) => (name, Some(tag.to_ascii_lowercase())),
            None => (text, None),
        };
        let (prefix, digits) = name.split_once('-')?;
        let entity =
            EntityType::ALL.iter().copied().find(|e| e.ref_prefix().is_some_and(|p| p.eq_ignore_ascii_case(prefix)))?;
        let plain = digits.len() >= 4 && digits.len() <= 18 && digits.bytes().all(|b| b.is_ascii_digit());
        let hex = tag.as_ref().is_none_or(|t| t.len() == 4 && t.bytes().all(|b| b.is_ascii_hexdigit()));
        let ordinal = if plain && hex { digits.parse().ok()? } else { return None };
        let reference = ShortRef { entity, ordinal, tag };
        // T-00001 is not an alternative spelling of T-0001.
        (ordinal > 0 && reference.name() == name.to_ascii_uppercase()).then_some(reference)
    }

    fn name(&self) -> String {
        format!("{}-{:04}", self.entity.ref_prefix().unwrap_or_default(), self.ordinal)
    }
}

impl fmt::Display for ShortRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        match &self.tag {
            Some(tag) => write!(f, "@{tag}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_words_of_at_most_64_characters() {
        let longest = "a".repeat(64);
        for good in ["a", "0", "req-001", "A_b-9", &longest, "é", "エリス", "Ирина-2", "दीप्ति"] {
            assert_eq!(EntityId::parse(good).unwrap().as_str(), good);
        }
        let too_long = "a".repeat(65);
        let too_many_bytes = "エ".repeat(43);
        for bad in [
            "",
            "-a",
            "_a",
            "../x",
            "a/b",
            "a b",
            "a\0",
            "a.b",
            &too_long,
            &too_many_bytes,
            // Not in NFC; a mark without a letter; slashes, dots and quotes of other blocks.
            "e\u{301}",
            "\u{301}a",
            "a\u{2215}b",
            "a\u{ff0f}b",
            "a\u{2044}b",
            "a\u{2024}b",
            "a\u{ff07}b",
            // Changes of direction, zero-width characters, fillers, variation selectors.
            "a\u{202e}b",
            "a\u{200b}b",
            "a\u{200d}b",
            "a\u{3164}b",
            "a\u{fe0f}b",
            "a\u{2028}b",
            "a\u{a0}b",
            "a\u{1f600}",
        ] {
            assert!(EntityId::parse(bad).is_err(), "{bad:?}");
        }
        // Only names of agents and projects, and of the roots of agents, are in any script.
        assert!(Subject::parse("agent:エリス").is_ok() && Subject::parse("project:詩").is_ok());
        assert!(Subject::parse("task:エリス").is_err() && Subject::parse("artifact:é").is_err());
    }

    #[test]
    fn ids_that_read_like_references_are_told_from_others() {
        for misleading in ["DEC-0003", "dec-0003", "T-12345", "REQ-0000", "esc-000001", "D0001", "x1234", "L00001"] {
            assert!(Subject::parse(&format!("decision:{misleading}")).unwrap().misleads(), "{misleading}");
        }
        for plain in ["dec-001", "DEC-0003a", "DEC_0003", "Q-0001", "D001", "A0001", "0001", "DEC-", "DEC0003"] {
            assert!(!Subject::parse(&format!("decision:{plain}")).unwrap().misleads(), "{plain}");
        }
        assert!(!Subject::parse("document:D0001").unwrap().misleads());
        assert!(Subject::parse("document:T-0001").unwrap().misleads());
        assert!(!Subject::SYSTEM.misleads());
    }

    #[test]
    fn subjects_read_back_as_written() {
        for text in ["system", "task:t1", "requirement:01J0000000000000000000000A", "agent:main"] {
            assert_eq!(Subject::parse(text).unwrap().to_string(), text);
        }
        for bad in ["", "task", "task:", "system:x", "tasks:x", "task:a:b", "Task:x"] {
            assert!(Subject::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn short_references_are_read_in_either_case() {
        let reference = ShortRef::parse("req-0012@A13C").unwrap();
        assert_eq!(reference.to_string(), "REQ-0012@a13c");
        assert_eq!(ShortRef::parse("T-12345").unwrap().to_string(), "T-12345");
        for bad in ["T-1", "T-00001", "T-0000", "X-0001", "T0001", "T-0001@12", "T-0001@zzzz", "T-0001@"] {
            assert_eq!(ShortRef::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_system_alone_has_no_id() {
        for entity in EntityType::ALL {
            assert_eq!(entity.has_id(), *entity != EntityType::System);
        }
    }

    #[test]
    fn the_article_fits_the_name() {
        for entity in EntityType::ALL {
            let vowel = entity.as_str().starts_with(['a', 'e', 'i', 'o', 'u']);
            assert_eq!(entity.row().article, if vowel { "an" } else { "a" }, "{entity}");
        }
    }

    #[test]
    fn no_two_types_share_a_reference_prefix() {
        let mut seen: Vec<_> = EntityType::ALL.iter().filter_map(|e| e.ref_prefix()).collect();
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
