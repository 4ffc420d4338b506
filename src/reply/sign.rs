//! Replies about signatures of operators.

use super::{Key, Replies, Reply, Status, row};
use crate::base::text::count_noun;
use crate::op::sign::SignFileOutcome;

impl Replies for SignFileOutcome {
    fn reply(&self) -> Reply {
        let (statement, proof) = (&self.signed.statement, &self.signed.proof);
        let acts = statement.acts();
        let sum = format!("{} signed; not recorded until the signature is handed in", count_noun(acts.len(), "act"));
        Reply::new(Status::Signed, sum)
            .with(Key::File, self.out.display().to_string())
            .with(Key::Statement, statement.digest())
            .with(Key::VaultId, statement.vault())
            .with_rows(Key::Act, acts.iter().map(|stated| row![stated.act.as_str(), &stated.subject]))
            .with(Key::SignedBy, proof.key.fingerprint().to_string())
            .with(Key::Strength, proof.strength.as_str())
    }
}
