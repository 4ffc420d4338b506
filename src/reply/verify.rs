//! Replies of hf-verify: what was checked and what was found.

use super::{Key, Next, Replies, Reply, Status, project};
use crate::base::text::count_noun;
use crate::op::artifact::ArtifactFindings;
use crate::op::{RecoverOutcome, VerifyOutcome};
use crate::vault::{ChainVerdict, HeadVerdict};

impl VerifyOutcome {
    /// Every problem, one sentence each.
    fn findings(&self) -> Vec<String> {
        let verified = &self.verified;
        let mut findings = Vec::new();
        if let ChainVerdict::Broken { why, .. } = &verified.chain {
            findings.push(why.clone());
        }
        match verified.head_verdict {
            HeadVerdict::Ahead => findings.push("the log ends before the head in chain.json".to_owned()),
            HeadVerdict::Mismatch => {
                findings.push("the head in chain.json does not match the event at its position".to_owned());
            }
            _ => {}
        }
        findings.extend(verified.tail_why.iter().map(|why| format!("after the published head: {why}")));
        let missing = verified.anchors.iter().filter(|anchor| !anchor.1);
        findings.extend(missing.map(|(head, _)| format!("the log has no event {head}")));
        findings.extend(self.differences.iter().flatten().cloned());
        let artifacts = self.artifacts.iter().flat_map(|found| [&found.contents, &found.manifests]);
        findings.extend(artifacts.flatten().cloned());
        findings.extend(self.violations.iter().flatten().cloned());
        findings
    }
}

/// The verdict of an optional check.
fn verdict(found: &Option<Vec<String>>, bad: &'static str) -> &'static str {
    match found {
        None => "NOT_CHECKED",
        Some(found) if found.is_empty() => "OK",
        Some(_) => bad,
    }
}

/// The verdict on artifacts. A damaged content is worse than a manifest, which can be restored.
fn artifacts(found: Option<&ArtifactFindings>) -> &'static str {
    match found {
        None => "NOT_CHECKED",
        Some(found) if !found.contents.is_empty() => "CORRUPT",
        Some(found) if !found.manifests.is_empty() => "MANIFEST",
        Some(_) => "OK",
    }
}

impl Replies for VerifyOutcome {
    fn reply(&self) -> Reply {
        let verified = &self.verified;
        let anchor = match verified.anchors.as_slice() {
            [] => "NONE",
            anchors if anchors.iter().all(|(_, found)| *found) => "OK",
            _ => "FAILED",
        };
        let (status, next, sum) = match self.passed() {
            true => (Status::Verified, Next::None, format!("{} verified", count_noun(verified.count, "event"))),
            false => {
                let sum = format!("{} checked; verification failed", count_noun(verified.count, "event"));
                (Status::Failed, Next::OPERATOR, sum)
            }
        };
        let reply = Reply::new(status, sum)
            .next(next)
            .with(Key::Chain, if verified.chain == ChainVerdict::Ok { "OK" } else { "BROKEN" })
            .with(Key::Tail, verified.tail.as_str())
            .with(Key::Head, verified.head_verdict.as_str())
            .with(Key::Anchor, anchor)
            .with(Key::Projections, verdict(&self.differences, "DIFFERENT"))
            .with(Key::Artifacts, artifacts(self.artifacts.as_ref()))
            .with(Key::Policy, verdict(&self.violations, "VIOLATED"))
            .with_some(Key::Settings, self.settings.map(|recorded| if recorded { "RECORDED" } else { "UNRECORDED" }))
            .with_some(Key::Due, self.due)
            .with(Key::Events, verified.count);
        project::with_head(reply, verified.head).with_texts(Key::Finding, self.findings()).warn(self.warnings.clone())
    }
}

impl Replies for RecoverOutcome {
    fn reply(&self) -> Reply {
        let reply = match self.events.is_empty() {
            true => Reply::new(Status::Intact, "the log is intact; nothing to recover"),
            false => Reply::new(Status::Recovered, format!("moved {} to quarantine", count_noun(self.bytes, "byte"))),
        };
        let reply = reply.with_texts(Key::EventId, self.events.iter().map(|event| event.id));
        project::with_head(reply, self.found)
            .with(Key::Bytes, self.bytes)
            .with_texts(Key::Quarantined, &self.files)
            .warn(self.warnings.clone())
    }
}
