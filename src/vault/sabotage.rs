//! Ways to break the guarantees of the log on purpose, so that `scripts/torture` can show that it would notice. Release
//! builds have none of them.

/// What is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The sync of an appended event.
    LogSync,
    /// The sync of a directory after a name in it changed.
    DirectorySync,
    /// Undoing a write that failed.
    Rollback,
}

#[cfg(debug_assertions)]
static CHOSEN: std::sync::OnceLock<Sabotage> = std::sync::OnceLock::new();

/// Skips something from now on, in this process. Panics for an unknown name, which is a bug in the test.
#[cfg(debug_assertions)]
pub fn sabotage(name: &str) {
    let what = match name {
        "log-sync" => Sabotage::LogSync,
        "directory-sync" => Sabotage::DirectorySync,
        "rollback" => Sabotage::Rollback,
        other => panic!("unknown sabotage '{other}'"),
    };
    CHOSEN.get_or_init(|| what);
}

/// Whether to skip this.
pub(super) fn leaves_out(what: Sabotage) -> bool {
    #[cfg(debug_assertions)]
    return CHOSEN.get() == Some(&what);
    #[cfg(not(debug_assertions))]
    {
        let _ = what;
        false
    }
}
