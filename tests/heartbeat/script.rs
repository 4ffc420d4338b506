//! Writes timelines: an agent's deeds in seconds since the beginning.

use std::collections::BTreeSet;

use crate::clock::second;
use crate::dice::Dice;
use crate::judge::machine::Machine;
use crate::timeline::Timeline;
use crate::tree::Deed;
use crate::zone::Zone;

/// What is in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Plain,
    /// An introspection.
    Look,
    /// An emergency.
    Urgent,
    /// An emergency in the last line that is looked at, or in the first that is not.
    UrgentLate(usize),
}

pub struct Script {
    pub dice: Dice,
    pub zone: Zone,
    pub begin: i64,
    pub length: i64,
    pub deeds: Vec<(i64, Deed)>,
    pub probes: Vec<i64>,
    pub outages: Vec<(i64, i64)>,
    pub sleeps: Vec<(i64, i64)>,
    pub boots: Vec<i64>,
    pub strict_max: i64,
    /// The folder of the next logs.
    pub theme: String,
    taken: BTreeSet<String>,
}

impl Script {
    pub fn new(seed: u64) -> Script {
        let mut dice = Dice::new(seed);
        let begin = second("2026-01-31T12:00:00Z") + dice.below(20) as i64 * 3600;
        Script {
            dice,
            zone: Zone::Utc,
            begin,
            length: 3000,
            deeds: Vec::new(),
            probes: Vec::new(),
            outages: Vec::new(),
            sleeps: Vec::new(),
            boots: Vec::new(),
            strict_max: 240,
            theme: "artifacts/brand".to_owned(),
            taken: BTreeSet::new(),
        }
    }

    /// A number of seconds from `from` up to and including `to`.
    pub fn between(&mut self, from: i64, to: i64) -> i64 {
        from + self.dice.below((to - from + 1) as u64) as i64
    }

    pub fn id(&self, at: i64) -> String {
        self.zone.id(self.begin + at)
    }

    pub fn deed(&mut self, at: i64, deed: Deed) {
        self.deeds.push((self.begin + at, deed));
    }

    pub fn write(&mut self, at: i64, path: impl Into<String>, text: impl Into<String>) {
        self.deed(at, Deed::Write { path: path.into(), text: text.into() });
    }

    /// Whether a path is free; it is taken from now on.
    fn take(&mut self, path: &str) -> bool {
        self.taken.insert(path.to_owned())
    }

    pub fn text(&mut self, sort: Sort) -> String {
        let padding = if self.dice.one_in(6) { "長い観測の記録。\n".repeat(200) } else { String::new() };
        match sort {
            Sort::Plain => {
                self.dice
                    .pick(&["# 創造\n新しい絵を描いた。\n", "kind: creating\n\nA form.\n", "観測した\n"])
                    .to_owned()
                    + &padding
            }
            Sort::Look if self.dice.one_in(2) => format!("kind: introspection\n\nLooking back.\n{padding}"),
            Sort::Look => format!("# 活動\n{padding}今回の内省: うまくいった。\n"),
            Sort::Urgent if self.dice.one_in(2) => format!("# 活動\n緊急対応: ディスクが一杯\n{padding}"),
            Sort::Urgent => format!("emergency: the disk is full\n\nFixing that first.\n{padding}"),
            Sort::UrgentLate(line) => "活動の行\n".repeat(line - 1) + "emergency: the disk is full\n",
        }
    }

    /// A log under its own second.
    pub fn log(&mut self, at: i64, sort: Sort) {
        self.log_as(at, at, "", sort);
    }

    /// A log that is written in one second with the id of another, and with this after the id. A name that is taken gets
    /// the next number, as the old tools do it.
    pub fn log_as(&mut self, at: i64, id: i64, rest: &str, sort: Sort) {
        let text = self.text(sort);
        let path = |rest: &str| format!("{}/histories/{}{rest}.md", self.theme, self.id(id));
        let mut path = path(rest);
        let mut no = 2;
        while !self.take(&path) {
            path = format!("{}/histories/{}_{no}.md", self.theme, self.id(id));
            no += 1;
        }
        self.write(at, path, text);
    }

    pub fn look(&mut self, at: i64) {
        self.log(at, Sort::Look);
    }

    pub fn checkpoint(&mut self, at: i64) {
        self.checkpoint_as(at, at);
    }

    pub fn checkpoint_as(&mut self, at: i64, id: i64) {
        let path = format!("stats/checkpoints/{}.txt", self.id(id));
        if self.take(&path) {
            let text =
                self.dice.pick(&["replaceツールのエラー原因の調査中\n", "キャラクター画像作成活動中", "reading\n"]);
            self.write(at, path, text);
        }
    }

    /// Checkpoints from one second to another.
    pub fn checkpoints(&mut self, from: i64, to: i64, every: i64) {
        let mut at = from;
        while at <= to {
            self.checkpoint(at);
            at += every;
        }
    }

    pub fn flexible(&mut self, at: i64) {
        self.flexible_as(at, at);
    }

    pub fn flexible_as(&mut self, at: i64, id: i64) {
        let text = if self.dice.one_in(2) {
            "制限タイプ: flexible\n活動予定内容: 大きな改修\n"
        } else {
            "活動予定内容: 絵を描く\n制限タイプ: flexible\n"
        };
        self.declare(at, id, text);
    }

    pub fn strict(&mut self, at: i64, minutes: i64) {
        self.strict_as(at, at, minutes);
    }

    pub fn strict_as(&mut self, at: i64, id: i64, minutes: i64) {
        self.declare(at, id, format!("制限タイプ: strict\n活動予定内容: 画像の生成\n予定時間: {minutes}分\n"));
    }

    pub fn declare(&mut self, at: i64, id: i64, text: impl Into<String>) {
        let path = format!("stats/deep_work/{}.txt", self.id(id));
        if self.take(&path) {
            self.write(at, path, text);
        }
    }

    /// The agent renames a declaration.
    pub fn rename(&mut self, at: i64, id: i64, rest: &str) {
        let path = |rest: &str| format!("stats/deep_work/{}{rest}.txt", self.id(id));
        let (from, to) = (path(""), path(rest));
        self.deed(at, Deed::Rename { from, to });
    }

    /// The agent deletes a declaration.
    pub fn delete(&mut self, at: i64, id: i64) {
        let path = format!("stats/deep_work/{}.txt", self.id(id));
        self.deed(at, Deed::Remove(path));
    }

    /// An agent that keeps all rules, from one second to another; ends with an introspection in the last.
    pub fn life(&mut self, from: i64, to: i64) {
        self.look(from);
        let (mut at, mut looked) = (from, from);
        loop {
            at += self.between(20, 280);
            if at >= to {
                break;
            }
            match self.dice.below(3) {
                0 => self.checkpoint(at),
                _ if at - looked > 500 => {
                    self.look(at);
                    looked = at;
                }
                _ => self.log(at, Sort::Plain),
            }
        }
        if to > from {
            self.look(to);
        }
    }

    /// Something before what the timeline is about. Returns the second of its last introspection.
    pub fn prelude(&mut self) -> i64 {
        let at = self.between(1, 100);
        match self.dice.below(3) {
            0 => self.look(at),
            1 => {
                let to = at + self.between(100, 500);
                self.life(at, to);
                return to;
            }
            _ => {
                self.log(at, Sort::Plain);
                let looked = at + self.between(1, 200);
                self.look(looked);
                return looked;
            }
        }
        at
    }

    /// Ticks right before, at, and right after a limit.
    pub fn probe(&mut self, at: i64) {
        self.probes.extend([at - 1, at, at + 1].map(|at| self.begin + at));
    }

    pub fn finish(mut self, class: &'static str, seed: u64) -> Timeline {
        self.deeds.sort_by_key(|(at, _)| *at);
        let of = |spans: &[(i64, i64)]| spans.iter().map(|(from, to)| (self.begin + from, self.begin + to)).collect();
        Timeline {
            class,
            seed,
            zone: self.zone,
            start: self.begin,
            end: self.begin + self.length,
            probes: self.probes.clone(),
            outages: of(&self.outages),
            machine: Machine { sleeps: of(&self.sleeps), boots: self.boots.iter().map(|at| self.begin + at).collect() },
            strict_max: self.strict_max,
            deeds: self.deeds,
        }
    }
}
