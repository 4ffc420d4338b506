//! hf-verify: check the chain and what it proves.

use std::num::NonZero;
use std::process::ExitCode;

use clap::Parser;
use hiveforge::base::Error;
use hiveforge::chain::Head;
use hiveforge::event::parse_ulid;
use hiveforge::op::{self, Env, VerifyOutcome, VerifyRequest};
use hiveforge::ui::{self, Acting, Common, Key, Next, Output, Report, Status};
use hiveforge::vault::{Checked, HeadVerdict, Method};

/// Check every line, link and id of the log, its tail, its head, and heads that were kept elsewhere
#[derive(Parser, Debug)]
#[command(
    name = "hf-verify",
    version,
    after_help = "Examples:
  hf-verify
  hf-verify --anchor > anchor.txt                keep this somewhere else
  hf-verify --policy --projections --artifacts   the rules, the caches, the contents
  hf-verify --expect-head \"$(cat anchor.txt)\"    the log still begins with what it was then

An unkeyed chain shows accidents and edits; a log that was cut off or rewritten as a whole is seen
only against an anchor that was kept elsewhere."
)]
pub struct Args {
    /// A head that the log must contain, as --anchor printed it (repeatable)
    #[arg(long = "expect-head", value_name = "ID:HASH")]
    expect_heads: Vec<String>,
    /// Take this event for granted and check what follows it
    #[arg(long, value_name = "ID")]
    since: Option<String>,
    /// Print the head as ID:HASH if everything is right; the reply goes to standard error
    #[arg(long)]
    anchor: bool,
    /// Also compare index, projection files and newest snapshot with the events
    #[arg(long)]
    projections: bool,
    /// Also replay the log against the rules: transitions, approvals, claims, stops, what must follow
    #[arg(long)]
    policy: bool,
    /// Also read every stored content and compare it with its hash
    #[arg(long)]
    artifacts: bool,
    /// The plain check, one event after the other: parse, canonicalise, hash, compare
    #[arg(long, conflicts_with = "jobs")]
    reference: bool,
    /// How many threads to use; as many as the machine has if not given
    #[arg(long, value_name = "N")]
    jobs: Option<NonZero<usize>>,
    /// Move everything from the first bad line on to quarantine, and record that (operators only)
    #[arg(long, conflicts_with_all = ["expect_heads", "since", "anchor"])]
    recover: bool,
    /// Confirms --recover
    #[arg(long, requires = "recover")]
    yes: bool,
    #[command(flatten)]
    acting: Acting,
    #[command(flatten)]
    common: Common,
}

hiveforge::cli!(Args, with acting, documents &["--anchor"]);

fn main() -> ExitCode {
    ui::run::<Args>(|args, env, _| {
        if args.recover {
            return recover(env, args.yes);
        }
        let head =
            |text: &String| Head::parse(text.trim()).ok_or_else(|| Error::usage("an expected head is ID:sha256:HEX"));
        let since = |text: &String| parse_ulid(text).ok_or_else(|| Error::usage("--since is an event id"));
        let request = VerifyRequest {
            method: if args.reference { Method::Reference } else { Method::Fast { jobs: args.jobs } },
            expected_heads: args.expect_heads.iter().map(head).collect::<Result<_, _>>()?,
            since: args.since.as_ref().map(since).transpose()?,
            projections: args.projections,
            policy: args.policy,
            artifacts: args.artifacts,
        };
        let mut bar = ui::ProgressBar::new("verifying");
        let done = op::verify(env, &request, &mut |done, total| bar.show(done, total))?;
        bar.clear();
        let anchor = done.verified.head.filter(|_| args.anchor && done.passed());
        let report = report(done);
        Ok(match (args.anchor, anchor) {
            (false, _) => report.into(),
            (true, Some(head)) => Output::Document(format!("{head}\n").into_bytes(), report),
            (true, None) => Output::Document(Vec::new(), report),
        })
    })
}

fn report(done: VerifyOutcome) -> Report {
    let passed = done.passed();
    let VerifyOutcome { verified, differences, violations, damaged, warnings } = done;
    let mut findings = Vec::new();
    if let Checked::Broken { why, .. } = &verified.chain {
        findings.push(why.clone());
    }
    match verified.head_verdict {
        HeadVerdict::Ahead => findings.push("the log ends before the head that chain.json names".to_owned()),
        HeadVerdict::Mismatch => findings.push("the head that chain.json names is not what stands there".to_owned()),
        _ => {}
    }
    findings.extend(verified.tail_why.iter().map(|why| format!("behind the published head: {why}")));
    findings.extend(verified.anchors.iter().filter(|a| !a.1).map(|(head, _)| format!("the log has no event {head}")));
    let verdict = |found: &Option<Vec<String>>, bad: &'static str| match found {
        None => "NOT_CHECKED",
        Some(found) if found.is_empty() => "OK",
        Some(_) => bad,
    };
    let (projections, policy) = (verdict(&differences, "DIFFERENT"), verdict(&violations, "VIOLATED"));
    let artifacts = verdict(&damaged, "CORRUPT");
    findings.extend(differences.into_iter().chain(damaged).chain(violations).flatten());
    let anchor = match verified.anchors.as_slice() {
        [] => "NONE",
        anchors if anchors.iter().all(|(_, found)| *found) => "OK",
        _ => "FAILED",
    };
    let (status, sum) = match passed {
        true => (Status::Verified, format!("{} events, all good", verified.count)),
        false => (Status::Failed, format!("{} events were checked, and something is wrong", verified.count)),
    };
    Report::new(status, sum)
        .next(if passed { Next::None } else { Next::OPERATOR })
        .with(Key::Chain, if verified.chain == Checked::Ok { "OK" } else { "BROKEN" })
        .with(Key::Tail, verified.tail.as_str())
        .with(Key::Head, verified.head_verdict.as_str())
        .with(Key::Anchor, anchor)
        .with(Key::Projections, projections)
        .with(Key::Artifacts, artifacts)
        .with(Key::Policy, policy)
        .with(Key::Events, verified.count)
        .with_some(Key::HeadId, verified.head.map(|head| head.id.to_string()))
        .with_some(Key::HeadHash, verified.head.map(|head| head.hash.to_string()))
        .with_each(Key::Finding, findings)
        .warn(warnings)
}

fn recover(env: &Env, confirmed: bool) -> anyhow::Result<Output> {
    let done = op::recover(env, confirmed)?;
    let report = match done.events.is_empty() {
        true => Report::new(Status::Intact, "the log is whole; there is nothing to recover"),
        false => Report::new(Status::Recovered, format!("{} bytes were moved to quarantine", done.bytes)),
    };
    Ok(report
        .with_each(Key::EventId, done.events.iter().map(|e| e.id.to_string()))
        .with_some(Key::HeadId, done.found.map(|head| head.id.to_string()))
        .with_some(Key::HeadHash, done.found.map(|head| head.hash.to_string()))
        .with(Key::Bytes, done.bytes)
        .with_each(Key::Quarantined, done.files)
        .warn(done.warnings)
        .into())
}
