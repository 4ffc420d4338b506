//! Replies of hf-verify: what was checked and what was found.

use super::{Key, Next, Replies, Reply, Status, project};
use crate::base::Reason;
use crate::base::text::count_noun;
use crate::op::artifact::ArtifactFindings;
use crate::op::{RecoverOutcome, VerifyOutcome};
use crate::policy::settings::Regime;
use crate::vault::{ChainVerdict, HeadVerdict, Loss, TailVerdict};

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
        // The audit says everything about events that break the rules.
        let is_audited = verified.tail == TailVerdict::Refused && self.violations.is_some();
        let tail = verified.tail_why.iter().filter(|_| !is_audited);
        findings.extend(tail.map(|why| format!("after the published head: {why}")));
        let missing = verified.anchors.iter().filter(|anchor| !anchor.1);
        findings.extend(missing.map(|(head, _)| format!("the log has no event {head}")));
        findings.extend(self.caches.iter().flat_map(|caches| caches.differences.clone()));
        let artifacts = self.artifacts.iter().flat_map(|found| [&found.contents, &found.manifests]);
        findings.extend(artifacts.flatten().cloned());
        findings.extend(self.violations.iter().flatten().cloned());
        findings.extend(self.signatures.iter().flat_map(|found| found.findings.clone()));
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
            .with_some(Key::Behind, Some(verified.unpublished).filter(|behind| *behind > 0))
            .with(Key::Anchor, anchor)
            .with(Key::Projections, self.caches.as_ref().map_or("NOT_CHECKED", |caches| caches.verdict.as_str()))
            .with(Key::Artifacts, artifacts(self.artifacts.as_ref()))
            .with(Key::Policy, verdict(&self.violations, "VIOLATED"))
            .with(Key::Signatures, self.signatures.as_ref().map_or("NOT_CHECKED", |found| found.verdict.as_str()))
            .with_some(
                Key::SignedThrough,
                self.signatures.as_ref().and_then(|found| found.through.map(|seen| seen.to_string())),
            )
            .with_some(Key::Settings, self.settings.map(|regime| regime.of_settings().as_str()))
            .with_some(Key::Regime, self.settings.map(Regime::meaning))
            .with_some(Key::Due, self.due)
            .with(Key::Events, verified.count);
        let stale: Vec<String> = self.caches.iter().flat_map(|caches| caches.stale.clone()).collect();
        project::with_head(reply, verified.head)
            .with_texts(Key::Stale, &stale)
            .with_texts(Key::Finding, self.findings())
            .warn(self.warnings.clone())
    }
}

impl Replies for RecoverOutcome {
    /// What is missing and where the rest is kept: the same before and after.
    fn reply(&self) -> Reply {
        let RecoverOutcome { recovery, confirmed } = self;
        let Some(loss) = &recovery.loss else {
            let reply = Reply::new(Status::Intact, "the log is intact; nothing to recover");
            return project::with_head(reply, recovery.found).with(Key::Bytes, 0u64).warn(recovery.warnings.clone());
        };
        let cut_at = loss.segment.as_ref().zip(loss.offset).map(|(segment, offset)| format!("{segment} {offset}"));
        let reply = match confirmed {
            true => Reply::new(Status::Recovered, done(loss)).next(match loss.kept {
                0 => Next::None,
                _ => Next::run("hf-log").word("--quarantined"),
            }),
            false => Reply::new(Status::Refused, format!("not recovered yet: {}; confirm with --yes", planned(loss)))
                .next(Next::OPERATOR)
                .with(Key::Reason, Reason::NotConfirmed.as_str()),
        };
        let reply = reply
            .with_texts(Key::EventId, recovery.events.iter().map(|event| event.id))
            .with_some(Key::ExpectedHead, loss.expected_head.as_deref())
            .with(Key::Events, recovery.count);
        project::with_head(reply, recovery.found)
            .with_some(Key::CutAt, cut_at)
            .with(Key::Bytes, loss.bytes)
            .with(Key::Kept, loss.kept)
            .with_some(Key::Missing, loss.missing)
            .with_some(Key::FirstMissing, loss.first_missing.as_deref())
            .with_some(Key::LastMissing, loss.last_missing.as_deref())
            .with_texts(Key::Quarantined, loss.files())
            .with_texts(Key::Finding, &recovery.faults)
            .warn(recovery.warnings.clone())
    }
}

/// What a recovery would do.
fn planned(loss: &Loss) -> String {
    match &loss.segment {
        Some(_) => {
            format!("it would cut off {} and keep {} in quarantine", count_noun(loss.bytes, "byte"), events(loss))
        }
        None => format!("it would cut off nothing and record that {}", lost(loss)),
    }
}

/// What a recovery did.
fn done(loss: &Loss) -> String {
    match &loss.segment {
        Some(_) => {
            let cut_off = count_noun(loss.bytes, "byte");
            format!("cut off {cut_off}; {} in quarantine; {}", events(loss), lost(loss))
        }
        None => lost(loss),
    }
}

fn events(loss: &Loss) -> String {
    count_noun(loss.kept, "intact event")
}

/// What is neither in the log nor in quarantine.
fn lost(loss: &Loss) -> String {
    match loss.missing {
        Some(0) => "no event is missing".to_owned(),
        Some(missing) => format!("{} lost", count_noun(missing.saturating_sub(loss.kept), "event")),
        None => "how many events are lost is unknown".to_owned(),
    }
}
