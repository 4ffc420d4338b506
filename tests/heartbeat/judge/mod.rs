//! What the watchdog must report at a tick, computed from the sentences of the source document and the decided rules.
//!
//! Files are taken in once, each under the time in its id. Every verdict is then computed again from all that was taken
//! in, so nothing here depends on the order in which files were noticed. Only the ends of deep work are kept: they
//! happened, and a file was renamed.

pub mod compare;
mod duty;
pub mod expected;
pub mod lies;
pub mod machine;
mod sight;
mod works;

use std::collections::BTreeSet;

use crate::tree::Tree;
use crate::zone::Zone;
use expected::{Counted, Expected, Level};
use lies::Lie;
use machine::Machine;
use sight::{Kind, Seen, Sight};
use works::Work;

const INACTIVE: &[(i64, Level)] = &[(600, Level::Error), (300, Level::Warn)];
const INTROSPECTION: &[(i64, Level)] = &[(1800, Level::Error), (1200, Level::Warn), (900, Level::Notice)];
const UNCHECKED: &[(i64, Level)] = &[(600, Level::Error)];
/// Ids further ahead of the clock than this are from the future.
const SKEW: i64 = 120;
/// How many logs of an old tree are taken in.
const ADOPTED_MAX: usize = 200;
/// The files of this time before the first look count in any case.
const HOUR: i64 = 3600;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    pub at: i64,
    pub no: u32,
    pub introspection: bool,
    pub emergency: bool,
}

/// What is known about an agent, and what was reported last.
pub struct Judge<'a> {
    zone: Zone,
    machine: &'a Machine,
    strict_max: i64,
    lie: Option<Lie>,
    has_looked: bool,
    last: i64,
    start: Option<i64>,
    /// Files that were taken in, or that are too old to be. Declarations by id, since they are renamed.
    known: BTreeSet<String>,
    logs: Vec<Log>,
    checkpoints: Vec<i64>,
    works: Vec<Work>,
    reported_unreadable: bool,
    errors: BTreeSet<&'static str>,
}

impl<'a> Judge<'a> {
    pub fn new(zone: Zone, machine: &'a Machine, strict_max: i64, lie: Option<Lie>) -> Judge<'a> {
        Judge {
            zone,
            machine,
            strict_max,
            lie,
            has_looked: false,
            last: 0,
            start: None,
            known: BTreeSet::new(),
            logs: Vec::new(),
            checkpoints: Vec::new(),
            works: Vec::new(),
            reported_unreadable: false,
            errors: BTreeSet::new(),
        }
    }

    fn lies(&self, lie: Lie) -> bool {
        self.lie == Some(lie)
    }

    /// The caches of the vault were deleted, which changes nothing.
    pub fn forget(&mut self) {
        if self.lies(Lie::CachesMatter) {
            self.known.clear();
            self.has_looked = false;
        }
    }

    /// One tick: takes in what is new, renames what is over, and gives the verdict.
    pub fn look(&mut self, tree: &mut Tree, now: i64) -> Expected {
        let mut expected = Expected::default();
        let sight = sight::look(tree, &self.known, self.zone, now, self.strict_max, self.lie);
        self.take_in(&sight, now, &mut expected);
        self.files(&sight, tree, now, &mut expected);
        self.end_works(&sight, tree, now, &mut expected);
        if self.start.is_some() && !self.lies(Lie::NobodyWatched) {
            self.rules(now, &mut expected);
        }
        if self.has_ties() {
            expected.unsure = Some("two logs of different sorts have the same place");
        }
        let errors = expected.errors();
        let once = |code: &&str| !self.errors.contains(*code) || *code == "DEEPWORK_EXPIRED";
        expected.begun = errors.iter().copied().filter(once).collect();
        expected.ended = self.errors.difference(&errors).copied().collect();
        self.errors = errors;
        (self.has_looked, self.last) = (true, now);
        expected
    }

    /// Rules 1, 2, 7 and 10: every file counts once, under its own id; at the first look nothing older than the newest
    /// introspection does.
    fn take_in(&mut self, sight: &Sight, now: i64, expected: &mut Expected) {
        let ahead = if self.lies(Lie::AheadWaits) { 0 } else { SKEW };
        let counts = |seen: &&Seen| seen.at <= now + ahead || self.lies(Lie::FutureCounts);
        let newest = sight.files.iter().filter(counts).map(|seen| seen.at).max().unwrap_or(i64::MIN);
        let future = sight.files.iter().filter(|seen| !counts(seen)).count() > 0;
        let mut fresh: Vec<Seen> = sight.files.iter().filter(counts).cloned().collect();
        fresh.retain(|seen| !self.known.contains(&key(seen)));
        fresh.sort_by_key(|seen| (seen.at, matches!(seen.kind, Kind::Declaration { .. }), number(seen)));
        if future && self.lies(Lie::FutureHides) {
            fresh.clear();
        }
        match self.lie {
            Some(Lie::TickTime) => fresh.iter_mut().for_each(|seen| seen.at = now),
            Some(Lie::NewestOnly) => {
                let last = fresh.iter().rfind(|seen| matches!(seen.kind, Kind::Log { .. })).cloned();
                fresh.retain(|seen| !matches!(seen.kind, Kind::Log { .. }));
                fresh.extend(last);
            }
            Some(Lie::LateDropped) => {
                let known = self.logs.iter().map(|log| log.at).chain(self.checkpoints.iter().copied()).max();
                fresh.retain(|seen| known.is_none_or(|known| seen.at >= known));
            }
            Some(Lie::RenamedUnseen) => {
                fresh.retain(|seen| !matches!(seen.kind, Kind::Declaration { name, .. } if name != sight::Name::Open))
            }
            _ => {}
        }
        if self.start.is_none() && !fresh.is_empty() && !self.lies(Lie::OldCounts) {
            self.adopt(&mut fresh, now, expected);
        }
        debug_assert!(newest <= now + SKEW || self.lie.is_some());
        for seen in fresh {
            self.known.insert(key(&seen));
            expected.counted.push(counted(&seen));
            self.start.get_or_insert(seen.at);
            expected.depends_on_ticks |= self.works.iter().any(|work| work.is_too_late(seen.at));
            match seen.kind {
                Kind::Log { no, introspection, emergency } => {
                    self.logs.push(Log { at: seen.at, no, introspection, emergency });
                }
                Kind::Checkpoint => self.checkpoints.push(seen.at),
                Kind::Declaration { minutes, .. } => self.works.push(Work::new(&seen, minutes)),
            }
        }
        let reversed = self.lies(Lie::NumbersReversed);
        self.logs.sort_by_key(|log| (log.at, if reversed { u32::MAX - log.no } else { log.no }));
        self.works.sort_by_key(|work| work.at);
    }

    /// Leaves out what is older than an hour and than the newest introspection, and all but the newest logs.
    fn adopt(&mut self, fresh: &mut Vec<Seen>, now: i64, expected: &mut Expected) {
        let is_introspection = |seen: &Seen| matches!(seen.kind, Kind::Log { introspection: true, .. });
        let from = fresh.iter().filter(|seen| is_introspection(seen)).map(|seen| (seen.at, number(seen))).next_back();
        let logs: Vec<_> = fresh.iter().filter(|seen| matches!(seen.kind, Kind::Log { .. })).collect();
        let oldest = logs.len().checked_sub(ADOPTED_MAX).map(|cut| (logs[cut].at, number(logs[cut])));
        let from = from.map(|from| from.min((now - HOUR, 0))).max(oldest);
        let is_old = |seen: &Seen| match seen.kind {
            Kind::Log { .. } => from.is_some_and(|from| (seen.at, number(seen)) < from),
            // In the same beat it may have come after the log, so it is not older.
            _ => from.is_some_and(|(at, _)| seen.at < at),
        };
        let old = fresh.iter().filter(|seen| is_old(seen));
        self.known.extend(old.clone().map(key));
        // A tree in which an earlier tick found nothing has no history; its first files may all be taken in.
        let may = self.has_looked;
        expected.may_count = old.filter(|_| may).map(counted).collect();
        fresh.retain(|seen| !is_old(seen));
    }

    /// Rules 7 and 8: ids from the future, malformed declarations, and what cannot be read.
    fn files(&mut self, sight: &Sight, tree: &mut Tree, now: i64, expected: &mut Expected) {
        let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        if !self.lies(Lie::FutureSilent) {
            for seen in sight.files.iter().filter(|seen| seen.at > now + SKEW) {
                expected.report("CLOCK_SKEW", Level::Error);
                expected.files.push(("CLOCK_SKEW", name(&seen.path)));
            }
        }
        for path in &sight.malformed {
            let aside = path.replace(".txt", ".malformed.txt");
            crate::tree::rename(tree, path, &aside);
            expected.present.push(aside);
            expected.absent.push(path.clone());
            if !self.lies(Lie::MalformedSilent) {
                expected.report("DEEPWORK_MALFORMED", Level::Warn);
                expected.files.push(("DEEPWORK_MALFORMED", name(path)));
            }
        }
        let is_old = self.lies(Lie::UnreadableOnce) && self.reported_unreadable;
        let is_silent = self.lies(Lie::UnreadableSilent) || is_old;
        for path in sight.unreadable.iter().filter(|_| !is_silent) {
            self.reported_unreadable = true;
            expected.report("FILE_UNREADABLE", Level::Warn);
            expected.files.push(("FILE_UNREADABLE", name(path)));
        }
    }

    /// Rules 3, 4, 6 and 9: what is expected of the agent.
    fn rules(&mut self, now: i64, expected: &mut Expected) {
        let open = self.works.iter().rev().find(|work| work.end.is_none());
        let strict = open.is_some_and(|work| work.minutes.is_some());
        let duty = duty::is_broken(&self.logs, &self.works, self.lie);
        if duty && (!strict || self.lies(Lie::StrictDuty)) {
            expected.report("INTROSPECTION_DUTY", Level::Error);
        }
        let checkpoint = self.checkpoints.iter().copied().max().unwrap_or(i64::MIN);
        if let Some(work) = open.filter(|work| work.minutes.is_none())
            && !self.lies(Lie::FlexibleUnchecked)
        {
            self.limit("DEEPWORK_UNCHECKED", UNCHECKED, work.at.max(checkpoint), now, expected);
        }
        let start = self.start.expect("an agent");
        let has_expired = self.works.last().is_some_and(|work| matches!(work.end, Some(works::End::Expired(_))));
        let all_off = self.lies(Lie::ExpiredSuspends) && has_expired;
        if (open.is_none() && !all_off) || (strict && self.lies(Lie::StrictSilence)) {
            let checkpoint = if self.lies(Lie::CheckpointsIgnored) { i64::MIN } else { checkpoint };
            let newest = self.logs.last().map_or(i64::MIN, |log| log.at).max(checkpoint);
            expected.unseen = newest == i64::MIN;
            let from = if expected.unseen { start } else { newest };
            self.limit("INACTIVE", INACTIVE, from, now, expected);
        }
        let flexible = open.is_some() && !strict;
        if (open.is_none() && !all_off) || (flexible && self.lies(Lie::FlexibleIntrospects)) {
            let introspection = self.logs.iter().filter(|log| log.introspection).map(|log| log.at).max();
            let ends = self.works.iter().filter_map(|work| work.put_off(self.lie)).max();
            let from = introspection.unwrap_or(start).max(ends.unwrap_or(i64::MIN));
            if !(self.lies(Lie::CheckpointsAlone) && self.logs.is_empty()) {
                self.limit("INTROSPECTION_OVERDUE", INTROSPECTION, from, now, expected);
            }
        }
    }

    /// At its limit something is still in time.
    fn limit(&self, code: &'static str, limits: &[(i64, Level)], from: i64, now: i64, expected: &mut Expected) {
        let slack = match self.lie {
            Some(Lie::LimitsEarly) => -1,
            Some(Lie::LimitsLate) => 1,
            Some(Lie::GapIsSleep) if now - self.last > 180 => now - self.last,
            _ => 0,
        };
        let elapsed = self.machine.elapsed(from, now, self.lie);
        if let Some((_, level)) = limits.iter().find(|(limit, _)| elapsed > limit + slack) {
            expected.report(code, *level);
            expected.seconds.insert(code, elapsed);
        }
    }

    /// Whether the order of two logs of different sorts is not defined.
    fn has_ties(&self) -> bool {
        let sort = |log: &Log| (log.introspection, log.emergency);
        self.logs
            .windows(2)
            .any(|two| (two[0].at, two[0].no) == (two[1].at, two[1].no) && sort(&two[0]) != sort(&two[1]))
    }
}

/// What identifies a file.
fn key(seen: &Seen) -> String {
    match seen.kind {
        Kind::Declaration { .. } => format!("declaration {}", seen.id),
        _ => seen.path.clone(),
    }
}

fn number(seen: &Seen) -> u32 {
    if let Kind::Log { no, .. } = seen.kind { no } else { 0 }
}

fn counted(seen: &Seen) -> Counted {
    let event = match seen.kind {
        Kind::Log { .. } => "ActivityLogged",
        Kind::Checkpoint => "CheckpointRecorded",
        Kind::Declaration { .. } => "DeepWorkStarted",
    };
    Counted { at: seen.at, event, id: seen.id.clone() }
}
