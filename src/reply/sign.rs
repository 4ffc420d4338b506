//! Replies about signatures of operators.

use super::{Key, Replies, Reply, Row, Status, project, row};
use crate::base::OperatorKey;
use crate::base::text::count_noun;
use crate::event::Kind;
use crate::op::StatementOutcome;
use crate::op::key::{KeyOutcome, KeysOutcome};
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

impl Replies for StatementOutcome {
    fn reply(&self) -> Reply {
        let acts = self.statement.acts();
        let sum =
            format!("{} to sign with hf-decide sign, and to hand in with --signature", count_noun(acts.len(), "act"));
        Reply::new(Status::Ok, sum)
            .with(Key::Statement, self.statement.digest())
            .with(Key::VaultId, self.statement.vault())
            .with_rows(Key::Act, acts.iter().map(|stated| row![stated.act.as_str(), &stated.subject]))
    }
}

fn key_row(key: &OperatorKey) -> Row {
    row![key.fingerprint().to_string(), key.key_type().as_str(), key.comment()]
}

impl Replies for KeyOutcome {
    fn reply(&self) -> Reply {
        let name = self.key.fingerprint();
        let sum = match (self.kind, self.is_first) {
            (Kind::OperatorKeyAdded, true) => format!("{name} added; from here on, what operators decide is signed"),
            (Kind::OperatorKeyAdded, false) => format!("{name} added"),
            _ => format!("{name} removed; what it signed before stays valid"),
        };
        let advice =
            "keep the .pub files and the output of hf-verify --anchor outside the vault, for hf-verify --operator-keys";
        let acts = self.acts.iter();
        let acts =
            acts.map(|signed| row![signed.event, signed.act.map_or("-", |act| act.as_str()), signed.subject.as_str()]);
        let reply = Reply::new(Status::Recorded, sum)
            .with(Key::EventId, self.event)
            .with_rows(Key::OperatorKey, self.keys.iter().map(key_row))
            .with_rows(Key::SignedAct, acts)
            .with_texts(Key::Advice, self.is_first.then_some(advice));
        match self.anchor {
            Some(head) => project::with_head(reply, Some(head)),
            None => reply,
        }
        .warn(self.warnings.clone())
    }
}

impl Replies for KeysOutcome {
    fn reply(&self) -> Reply {
        let sum = match self.keys.len() {
            0 => "no operator keys: what operators decide is not signed".to_owned(),
            n => count_noun(n, "operator key"),
        };
        Reply::new(Status::Ok, sum)
            .with_rows(Key::OperatorKey, self.keys.iter().map(key_row))
            .with_some(Key::Strength, (!self.keys.is_empty()).then_some(self.strength.as_str()))
    }
}
