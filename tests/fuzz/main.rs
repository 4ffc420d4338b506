//! Malformed and unusual input: the cargo-fuzz targets driven by our own generator, canonical JSON compared with two
//! other implementations, every character through every output. Run by `scripts/fuzz`.

#[allow(dead_code, reason = "shared with the e2e tests, which use all of it")]
#[path = "../e2e/support/test_vault.rs"]
mod test_vault;

#[path = "../../fuzz/targets/mod.rs"]
mod targets;

mod canonical;
mod characters;
mod drive;

/// Selects the number for a short or a full run.
#[expect(clippy::disallowed_methods, reason = "the only switch of these tests, set by scripts/fuzz")]
pub fn sized(in_short: usize, in_full: usize) -> usize {
    if std::env::var_os("HF_FUZZ_FULL").is_some() { in_full } else { in_short }
}
