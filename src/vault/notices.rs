//! What a command has to say besides its reply, such as what is wrong with the settings file.
//!
//! A command may read the same thing several times, in several transactions or in none. What is worth saying is added
//! here where it is found, and the front end takes it: each sentence once.

use std::sync::{Arc, Mutex, PoisonError};

/// The notices of one command. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    found: Arc<Mutex<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    all: Vec<String>,
    /// How many of them were taken.
    taken: usize,
}

impl Notices {
    /// Adds what was not added before.
    pub fn add(&self, notices: impl IntoIterator<Item = String>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for notice in notices {
            if !found.all.contains(&notice) {
                found.all.push(notice);
            }
        }
    }

    /// Takes what was added since the last time.
    pub fn take(&self) -> Vec<String> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let new = found.all[found.taken..].to_vec();
        found.taken = found.all.len();
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_notice_is_taken_once() {
        let notices = Notices::default();
        let add = |text: &str| notices.clone().add([text.to_owned()]);
        add("a");
        add("b");
        add("a");
        assert_eq!(notices.take(), ["a", "b"]);
        add("a");
        add("c");
        assert_eq!(notices.take(), ["c"]);
    }
}
