//! A look at an agent's files: what is new in them, and what cannot be read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::{Intake, Patience};
use crate::base::{EntityId, EntityType, HeartbeatId, Result, Subject, Timestamp, Zone, text};
use crate::machine::Phase;
use crate::op::agent::{self, Declaration, KnownFiles};
use crate::op::kernel::Mode;
use crate::policy::code::Code;
use crate::policy::liveness::{DeepWorkMode, Finding, Level};
use crate::policy::settings::{Setting, Settings};
use crate::state::{Entity, State};
use crate::vault::{AgentDir, AgentFile, DeclarationEnd, Dir, FileSort, FilesLook, Looked};

/// The longest text of a checkpoint or a declaration.
const TEXT_MAX_CHARS: usize = 400;
/// How many new files of one agent are taken in at one tick.
const TAKE_MAX: usize = 5000;
/// How far back the first look at an agent's files goes, unless the newest introspection is older.
const FIRST_LOOK_SECONDS: i64 = 60 * 60;
/// How many files of each sort the first look takes in.
const FIRST_LOOK_MAX: usize = 200;
/// How many lines of a log can be its header.
const HEADER_LINES: usize = 10;
/// A file that is incomplete and was changed less than this ago is read again after a pause: somebody may be writing it.
const BEING_WRITTEN_SECONDS: i64 = 2;
const BEING_WRITTEN_PAUSE: Duration = Duration::from_millis(200);
/// How often a tick pauses for that at most.
pub(super) const PAUSES_MAX: u32 = 5;

/// The word by which a log in a works tree is an introspection.
const INTROSPECTION_WORD: &str = "内省";
const INTROSPECTION: &str = "introspection";
/// The headers of a log that is written in an emergency.
const EMERGENCY_HEADERS: [&str; 2] = ["emergency", "緊急対応"];

/// What was found in an agent's directory or tree.
#[derive(Debug)]
pub(in crate::op) struct AgentFiles {
    pub name: EntityId,
    pub zone: Zone,
    pub is_works: bool,
    /// The files that are new, in order.
    pub signs: Vec<SignFile>,
    /// Up to which time files do not count, if these are the first ones that do.
    pub since: Option<Timestamp>,
    /// What is wrong with files.
    pub findings: Vec<Finding>,
    /// The open deep work whose file is gone.
    pub gone: Option<GoneWork>,
    /// Files to rename: declarations that are malformed, or ended already.
    pub renames: Vec<(String, DeclarationEnd)>,
    pub look: FilesLook,
}

/// An open deep work whose file was renamed or deleted.
#[derive(Clone, Debug)]
pub(in crate::op) struct GoneWork {
    pub work: Subject,
    /// When, if that is known.
    pub at: Option<Timestamp>,
    /// Whether its agent renamed it as expired.
    pub is_expired: bool,
}

/// A file that is a sign of life.
#[derive(Clone, Debug)]
pub(in crate::op) struct SignFile {
    pub at: Timestamp,
    pub path: String,
    pub id: HeartbeatId,
    number: u64,
    /// When the file was last changed, which nobody can set.
    pub changed_at: Option<Timestamp>,
    pub sign: FileSign,
}

/// What a file says.
#[derive(Clone, Debug)]
pub(in crate::op) enum FileSign {
    Log { kind: String, title: Option<String>, emergency: Option<String> },
    Checkpoint { text: String },
    Declaration { declared: Declaration, end: Option<DeclarationEnd>, is_edit: bool },
}

impl SignFile {
    pub fn sort(&self) -> FileSort {
        match self.sign {
            FileSign::Log { .. } => FileSort::Log,
            FileSign::Checkpoint { .. } => FileSort::Checkpoint,
            FileSign::Declaration { .. } => FileSort::Declaration,
        }
    }

    /// A log at the time of a declaration is older than it.
    fn order(&self) -> (Timestamp, FileSort, u64, &str) {
        (self.at, self.sort(), self.number, &self.path)
    }

    fn is_introspection(&self) -> bool {
        matches!(&self.sign, FileSign::Log { kind, .. } if kind == INTROSPECTION)
    }
}

/// Where an agent's files are.
#[derive(Debug)]
pub(in crate::op) struct Place<'a> {
    pub agents: Option<&'a Dir>,
    pub works: Option<PathBuf>,
    /// Whether the agent's directory is created if it is missing. Nobody waits for an agent that only recorded
    /// something once.
    pub creates: bool,
}

/// Looks at the files of one agent.
#[derive(Debug)]
pub(in crate::op) struct Looker<'a, 'b> {
    pub intake: &'a Intake<'b>,
    pub state: &'a State,
    pub config: Settings,
    pub agent: Option<&'a Entity>,
}

impl Looker<'_, '_> {
    /// What is new. None if the agent has no directory.
    pub fn look(
        &self,
        name: &EntityId,
        place: &Place<'_>,
        before: Option<&Looked>,
    ) -> Result<Option<(AgentDir, AgentFiles)>> {
        let existing = match (&place.works, place.agents) {
            (Some(works), _) => Some(agent::in_works(works, &self.config, name)?),
            (None, Some(agents)) => AgentDir::existing_in(agents, name)?,
            (None, None) => None,
        };
        let dir = match existing {
            Some(dir) => dir,
            None if place.creates && self.intake.mode == Mode::Write => self.intake.vault.agent_dir(name)?,
            None => return Ok(None),
        };
        let zone = agent::zone_of(self.intake.ctx, &self.config);
        let known = KnownFiles::of_agent(self.agent, zone, self.intake.now);
        let latest = self.latest();
        let is_new = |sort: FileSort, path: &str, name: &crate::vault::FileName| {
            name.end != Some(DeclarationEnd::Malformed) && !known.has(sort, path, name.id.time(zone, latest))
        };
        let look = dir.look(before, &is_new)?;
        let mut files = AgentFiles {
            name: name.clone(),
            zone,
            is_works: dir.is_works(),
            signs: Vec::new(),
            since: None,
            findings: Vec::new(),
            gone: None,
            renames: Vec::new(),
            look,
        };
        self.report_faults(&mut files);
        self.report_misnamed(&dir, &mut files);
        let found = std::mem::take(&mut files.look.files);
        let found = self.leave_out_the_future(&mut files, found);
        let found = leave_out_renamed(&dir, &known, found);
        match known.since {
            Some(_) => self.take(&dir, &mut files, found),
            None => self.take_first(&dir, &mut files, found),
        }
        self.look_at_declared(&dir, &mut files, &known, before);
        files.signs.sort_by(|a, b| a.order().cmp(&b.order()));
        if let Some(too_many) = files.signs.len().checked_sub(TAKE_MAX).filter(|too_many| *too_many > 0) {
            // The newest ones say how the agent is now.
            files.signs.drain(..too_many);
            let detail = format!("{too_many} files are left out: more than {TAKE_MAX} are new at once");
            self.report(&mut files, Code::FileUnreadable, Level::Warn, 0, detail);
        }
        Ok(Some((dir, files)))
    }

    /// An id up to this time is not in the future.
    fn latest(&self) -> Timestamp {
        Timestamp(self.intake.now.0.saturating_add_unsigned(self.config.count(Setting::ClockSkewSeconds)))
    }

    fn subject(&self, files: &AgentFiles) -> Subject {
        Subject::new(EntityType::Agent, files.name.clone())
    }

    fn report(&self, files: &mut AgentFiles, code: Code, level: Level, seconds: u64, detail: String) {
        let finding = Finding::new(code, self.subject(files), level, seconds);
        files.findings.push(Finding { detail: Some(detail), in_files: files.is_works, ..finding });
    }

    fn report_faults(&self, files: &mut AgentFiles) {
        for fault in std::mem::take(&mut files.look.faults) {
            let detail = format!("{}: {}", fault.path, fault.reason);
            self.report(files, Code::FileUnreadable, Level::Warn, 0, detail);
        }
    }

    /// A declaration whose name has no id counts for nothing. Other files without an id are somebody else's.
    fn report_misnamed(&self, dir: &AgentDir, files: &mut AgentFiles) {
        for path in std::mem::take(&mut files.look.misnamed) {
            let text = dir.read_file(&path).ok().flatten();
            if text.is_some_and(|text| Declaration::read(&text).is_ok()) {
                self.set_aside(files, path, "its name has no heartbeat id");
            }
        }
    }

    /// Reports a declaration that is none, and has it renamed.
    fn set_aside(&self, files: &mut AgentFiles, path: String, reason: &str) {
        files.look.forget_dir_of(&path);
        self.report(files, Code::DeepworkMalformed, Level::Warn, 0, format!("{path}: {reason}"));
        files.renames.push((path, DeclarationEnd::Malformed));
    }

    /// Files with ids in the future count for nothing until their time has come. They are one finding.
    fn leave_out_the_future(&self, files: &mut AgentFiles, found: Vec<AgentFile>) -> Vec<AgentFile> {
        let latest = self.latest();
        let time = |file: &AgentFile| file.name.id.time(files.zone, latest);
        let (ahead, found): (Vec<AgentFile>, Vec<AgentFile>) = found.into_iter().partition(|file| time(file) > latest);
        if let Some(furthest) = ahead.iter().max_by_key(|file| time(file)) {
            let seconds = time(furthest).0.saturating_sub(self.intake.now.0).max(0) as u64;
            let others = match ahead.len() {
                1 => String::new(),
                n => format!(", and {} more", n - 1),
            };
            let detail = format!("{}{others}: the id is in the future", furthest.path);
            self.report(files, Code::ClockSkew, Level::Error, seconds, detail);
        }
        ahead.iter().for_each(|file| files.look.forget_dir_of(&file.path));
        found
    }

    fn take(&self, dir: &AgentDir, files: &mut AgentFiles, found: Vec<AgentFile>) {
        for file in found {
            let sign = self.read(dir, files, file);
            files.signs.extend(sign);
        }
    }

    /// Of the files that are there at the first look, the newest introspection and what is newer, everything of the last
    /// hour, and declarations that no log has ended are taken in. Older files say nothing about now.
    fn take_first(&self, dir: &AgentDir, files: &mut AgentFiles, mut found: Vec<AgentFile>) {
        let (latest, zone) = (self.latest(), files.zone);
        let time = |file: &AgentFile| file.name.id.time(zone, latest);
        found.sort_by_key(|file| std::cmp::Reverse((time(file), file.name.number)));
        let (logs, mut others): (Vec<_>, Vec<_>) = found.into_iter().partition(|file| file.sort == FileSort::Log);
        let mut logs = logs.into_iter();
        let mut signs: Vec<SignFile> = Vec::new();
        let mut cut = Timestamp(i64::MIN);
        for log in logs.by_ref().take(FIRST_LOOK_MAX) {
            signs.extend(self.read(dir, files, log));
            if let Some(introspection) = signs.last().filter(|sign| sign.is_introspection()) {
                cut = introspection.at.min(Timestamp(self.intake.now.0.saturating_sub(FIRST_LOOK_SECONDS)));
                break;
            }
        }
        // A declaration that no log has ended is in force, however old it is.
        let newest_log = signs.first().map(|sign| sign.at);
        let is_in_force = |file: &AgentFile| file.sort == FileSort::Declaration && Some(time(file)) >= newest_log;
        let left = FIRST_LOOK_MAX.saturating_sub(signs.len());
        let mut rest: Vec<AgentFile> = logs.collect();
        rest.append(&mut others);
        let mut counts = [left, FIRST_LOOK_MAX, FIRST_LOOK_MAX];
        let (taken, left_out): (Vec<AgentFile>, Vec<AgentFile>) = rest.into_iter().partition(|file| {
            let count = &mut counts[file.sort as usize];
            let is_taken = *count > 0 && (time(file) >= cut || is_in_force(file));
            *count -= usize::from(is_taken);
            is_taken
        });
        // What is left out now does not count later either.
        files.since = Some(left_out.iter().map(time).max().unwrap_or(Timestamp(0)));
        for file in taken {
            signs.extend(self.read(dir, files, file));
        }
        files.signs.extend(signs);
    }

    /// Reads a file that is new. None if it is gone, or cannot be used.
    fn read(&self, dir: &AgentDir, files: &mut AgentFiles, file: AgentFile) -> Option<SignFile> {
        let sort = file.sort;
        let is_complete = |text: &str| match sort {
            FileSort::Declaration => Declaration::read(text).is_ok(),
            FileSort::Log | FileSort::Checkpoint => !text.trim().is_empty(),
        };
        let text = match self.read_text(dir, &file.path, &is_complete) {
            Ok(text) => text?,
            Err(error) => {
                files.look.forget_dir_of(&file.path);
                let detail = format!("{}: {}", file.path, error.message);
                self.report(files, Code::FileUnreadable, Level::Warn, 0, detail);
                return None;
            }
        };
        let sign = match sort {
            FileSort::Log => read_log(&text, files.is_works),
            FileSort::Checkpoint => FileSign::Checkpoint { text: one_line(&text) },
            FileSort::Declaration => {
                let declared = Declaration::read(&text).and_then(|declared| self.check_limits(declared));
                match (declared, file.name.end) {
                    (Ok(declared), end) => FileSign::Declaration { declared, end, is_edit: false },
                    // It ended before anybody looked.
                    (Err(_), Some(_)) => return None,
                    (Err(reason), None) => {
                        self.set_aside(files, file.path, &reason);
                        return None;
                    }
                }
            }
        };
        let at = file.name.id.time(files.zone, self.latest());
        let changed_at = dir.changed_at(&file.path).map(Timestamp);
        Some(SignFile { at, path: file.path, id: file.name.id, number: file.name.number, changed_at, sign })
    }

    /// Reads a file, and once more if somebody seems to be writing it. None if it is gone, or nobody can wait for it.
    fn read_text(&self, dir: &AgentDir, path: &str, is_complete: &dyn Fn(&str) -> bool) -> Result<Option<String>> {
        let text = dir.read_file(path)?;
        let is_incomplete = text.as_deref().is_some_and(|text| !is_complete(text));
        if !is_incomplete || !dir.changed_within(path, BEING_WRITTEN_SECONDS) {
            return Ok(text);
        }
        match (self.intake.pauses.get(), self.intake.patience) {
            (0, Patience::Command) => Ok(None),
            (0, Patience::Tick) => Ok(text),
            (left, _) => {
                self.intake.pauses.set(left - 1);
                std::thread::sleep(BEING_WRITTEN_PAUSE);
                dir.read_file(path)
            }
        }
    }

    /// The limits of a file are those of the command.
    fn check_limits(&self, declared: Declaration) -> Result<Declaration, String> {
        let max = self.config.count(Setting::StrictMaxMinutes);
        let chars = declared.activity.chars().count();
        match declared.minutes {
            Some(minutes) if minutes > max => Err(format!(
                "strict deep work of {} is too long; at most {}",
                text::count_noun(minutes, "minute"),
                text::count_noun(max, "minute")
            )),
            _ if chars > TEXT_MAX_CHARS => {
                Err(format!("the activity has {chars} characters; at most {TEXT_MAX_CHARS}"))
            }
            _ => Ok(declared),
        }
    }

    /// Finds out whether the open deep work's file was edited or is gone, and which files of ended ones still have the
    /// name of open ones.
    fn look_at_declared(&self, dir: &AgentDir, files: &mut AgentFiles, known: &KnownFiles, before: Option<&Looked>) {
        let Some(agent) = self.agent.filter(|_| files.look.is_declared_listed) else { return };
        let work = agent.as_agent().deep_work().and_then(|work| self.state.entity(&work));
        let work = work.filter(|work| work.phase == Phase::Open);
        let path = work.as_deref().and_then(|work| agent::declared_path(dir, work));
        let declared: Vec<String> = files.look.looked.declared.keys().cloned().collect();
        for other in declared.iter().filter(|other| Some(*other) != path.as_ref()) {
            let is_new = files.signs.iter().any(|sign| sign.path == *other);
            if !is_new && known.has_path(FileSort::Declaration, other) {
                files.renames.push((other.clone(), self.end_of(agent, other)));
            }
        }
        let (Some(work), Some(path)) = (work, path) else { return };
        if declared.contains(&path) {
            let edit = self.edit(dir, files, &work, path);
            files.signs.extend(edit);
            return;
        }
        let was_seen = before.is_some_and(|before| before.declared.contains_key(&path));
        if was_seen || work.as_deep_work().found_at().is_some() {
            // The directory was changed when the file was renamed or deleted, unless something else changed it since.
            let changed = files.look.declared_changed_at.map(Timestamp);
            let last_look = Timestamp(self.intake.last_at.unwrap_or(i64::MAX));
            let at = changed.filter(|changed| (last_look..=self.intake.now).contains(changed));
            let is_expired = dir.has_ended_as(&path, DeclarationEnd::Expired);
            files.gone = Some(GoneWork { work: work.subject.clone(), at, is_expired });
        }
    }

    /// How the deep work that was declared in a file ended.
    fn end_of(&self, agent: &Entity, path: &str) -> DeclarationEnd {
        let works = self.state.made_for(&agent.subject, EntityType::DeepWork);
        let work = works.into_iter().rev().find(|work| work.as_deep_work().file() == Some(path));
        match work.is_some_and(|work| work.phase == Phase::Expired) {
            true => DeclarationEnd::Expired,
            false => DeclarationEnd::Completed,
        }
    }

    /// A declaration that was edited is a new one under the same id.
    fn edit(&self, dir: &AgentDir, files: &mut AgentFiles, work: &Entity, path: String) -> Option<SignFile> {
        let text = self.read_text(dir, &path, &|text| Declaration::read(text).is_ok()).ok()??;
        let declared = match Declaration::read(&text).and_then(|declared| self.check_limits(declared)) {
            Ok(declared) => declared,
            Err(reason) => {
                files.look.forget_dir_of(&path);
                let detail = format!("{path}: {reason}; what was declared before remains in force");
                self.report(files, Code::DeepworkMalformed, Level::Warn, 0, detail);
                return None;
            }
        };
        let known = work.as_deep_work();
        let mode = known.mode().and_then(DeepWorkMode::parse);
        let minutes = declared.minutes.unwrap_or(0);
        let is_same = mode == Some(declared.mode)
            && known.minutes() == minutes
            && known.activity() == Some(&text::cut(&declared.activity, crate::base::limits::FACT_MAX_CHARS));
        let id = known.heartbeat_id().and_then(HeartbeatId::parse).filter(|_| !is_same)?;
        let at = known.started_at().unwrap_or(self.intake.now);
        Some(SignFile {
            at,
            path,
            id,
            number: 0,
            changed_at: None,
            sign: FileSign::Declaration { declared, end: None, is_edit: true },
        })
    }
}

/// A file under the id of one that counted and is gone was renamed or moved, and counts no second time.
fn leave_out_renamed(dir: &AgentDir, known: &KnownFiles, found: Vec<AgentFile>) -> Vec<AgentFile> {
    let mut gone: BTreeMap<(FileSort, HeartbeatId), usize> = BTreeMap::new();
    let is_renamed = |file: &AgentFile| {
        let count = || {
            let of_id = known.paths_of(file.sort, &file.name.id);
            of_id.filter(|path| dir.changed_at(path).is_none()).count()
        };
        let gone = gone.entry((file.sort, file.name.id.clone())).or_insert_with(count);
        let is_renamed = *gone > 0;
        *gone = gone.saturating_sub(1);
        is_renamed
    };
    let mut is_renamed = is_renamed;
    found.into_iter().filter(|file| file.sort == FileSort::Declaration || !is_renamed(file)).collect()
}

/// What a log says about itself in its header.
fn read_log(text: &str, is_works: bool) -> FileSign {
    let header = |name: &str| {
        text.lines().take(HEADER_LINES).find_map(|line| {
            let (found, value) = line.split_once([':', '：'])?;
            (found.trim() == name).then(|| one_line(value)).filter(|value| !value.is_empty())
        })
    };
    let kind = header("kind").filter(|kind| EntityId::parse(kind).is_ok());
    let is_introspection = kind.as_deref() == Some(INTROSPECTION) || is_works && text.contains(INTROSPECTION_WORD);
    let kind = if is_introspection { INTROSPECTION.to_owned() } else { kind.unwrap_or_else(|| "activity".to_owned()) };
    let emergency = EMERGENCY_HEADERS.iter().find_map(|name| header(name));
    FileSign::Log { kind, title: header("title"), emergency }
}

/// A text in one line.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text::cut(&words, TEXT_MAX_CHARS)
}
