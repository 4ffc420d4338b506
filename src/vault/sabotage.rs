//! Ways to break the promise of the log on purpose, so that `scripts/torture` can show that it
//! would notice. A release build has none of them.

/// What is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The sync of an appended event.
    LogSync,
    /// The sync of a directory after a name in it changed.
    DirectorySync,
    /// Taking back a write that failed.
    Rollback,
}

#[cfg(debug_assertions)]
static CHOSEN: std::sync::OnceLock<Sabotage> = std::sync::OnceLock::new();

/// Leaves something out from now on, in this process. A name that is none is an error of the test.
#[cfg(debug_assertions)]
pub fn sabotage(name: &str) {
    let what = match name {
        "log-sync" => Sabotage::LogSync,
        "directory-sync" => Sabotage::DirectorySync,
        "rollback" => Sabotage::Rollback,
        other => panic!("there is no sabotage called {other}"),
    };
    CHOSEN.get_or_init(|| what);
}

/// Whether this is to be left out.
pub(super) fn leaves_out(what: Sabotage) -> bool {
    #[cfg(debug_assertions)]
    return CHOSEN.get() == Some(&what);
    #[cfg(not(debug_assertions))]
    {
        let _ = what;
        false
    }
}
