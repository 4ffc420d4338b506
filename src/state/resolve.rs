//! References: what a person or a model may write instead of a whole subject.

use super::State;
use crate::base::{EntityType, Error, Result, ShortRef, Subject};

/// Fewer characters than this are never taken for the beginning of a ULID.
const PREFIX_MIN_CHARS: usize = 4;
/// How many matches an ambiguous reference lists.
const MATCHES_SHOWN: usize = 5;

impl State {
    /// Finds an entity by exact id, subject, short reference or unique ULID prefix, in this order.
    /// `wanted` narrows ids and prefixes to one type.
    pub fn resolve(&self, text: &str, wanted: Option<EntityType>) -> Result<Subject> {
        let of_wanted = |subject: &&Subject| wanted.is_none_or(|entity| subject.entity == entity);
        if !text.contains(':') {
            let exact: Vec<_> = self.entities.keys().filter(of_wanted).filter(|s| s.id() == text).collect();
            if let Some(found) = only(text, &exact)? {
                return Ok(found);
            }
        } else if let Some(entity) = self.entities.get(&Subject::parse(text)?) {
            return Ok(entity.subject.clone());
        }
        if let Some(reference) = ShortRef::parse(text) {
            return self.by_reference(&reference);
        }
        if text.len() >= PREFIX_MIN_CHARS && text.bytes().all(|b| b.is_ascii_alphanumeric()) {
            let prefix = text.to_ascii_uppercase();
            let begin: Vec<_> =
                self.entities.keys().filter(of_wanted).filter(|s| s.id().starts_with(&prefix)).collect();
            if let Some(found) = only(text, &begin)? {
                return Ok(found);
            }
        }
        Err(unknown(text))
    }

    fn by_reference(&self, reference: &ShortRef) -> Result<Subject> {
        let subject = self
            .made
            .get(&reference.entity)
            .and_then(|made| made.get(reference.ordinal as usize - 1))
            .ok_or_else(|| unknown(&reference.to_string()))?;
        let entity = &self.entities[subject];
        match &reference.tag {
            Some(tag) if *tag != entity.tag => Err(Error::not_found(format!(
                "{reference} does not exist; {}-{:04} is {}",
                reference.entity.ref_prefix().unwrap_or_default(),
                reference.ordinal,
                entity.reference().expect("it was found by one"),
            ))),
            _ => Ok(subject.clone()),
        }
    }
}

fn unknown(text: &str) -> Error {
    Error::not_found(format!("nothing here is called '{}'", crate::base::text::cut(text, 80)))
}

fn only(text: &str, found: &[&Subject]) -> Result<Option<Subject>> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some((*one).clone())),
        many => {
            let shown: Vec<String> = many.iter().take(MATCHES_SHOWN).map(ToString::to_string).collect();
            let more = if many.len() > shown.len() { ", …" } else { "" };
            Err(Error::not_found(format!("'{text}' matches {}: {}{more}", many.len(), shown.join(", "))))
        }
    }
}
