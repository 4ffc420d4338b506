//! One life: two personas and the people around them, what each says, and what is found again.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::dice::Dice;

/// How many steps a life has.
const STEPS: u64 = 100;
const PERSONAS: [&str; 2] = ["ann", "エリス"];
/// Every text has this in it, and a number.
const MARK: &str = "zq";
/// The first second of every life.
const START: i64 = 1_767_225_600;

/// What a life was.
pub struct Life {
    pub steps: u64,
    /// How many texts were given and acknowledged.
    pub texts: u64,
    pub wrong: Vec<String>,
    pub story: Vec<String>,
}

/// A text that was acknowledged.
struct Given {
    text: String,
    /// The persona that must find it again.
    whose: &'static str,
    /// The branch it must be in, if it is a note.
    branch: Option<String>,
    /// The step in which it was given.
    line: String,
}

/// What a persona can know.
#[derive(Default)]
struct Mind {
    /// The branch that the last reply named as the one it is on.
    at: Option<String>,
    /// Its branches, by name.
    branches: Vec<String>,
    /// Whether somebody spoke to it since its last reply.
    is_spoken_to: bool,
    session: Option<String>,
}

struct World {
    dir: TempDir,
    dice: Dice,
    now: i64,
    minds: BTreeMap<&'static str, Mind>,
    given: Vec<Given>,
    tasks: u64,
    is_paused: bool,
    said: u64,
    wrong: Vec<String>,
    story: Vec<String>,
}

struct Reply {
    text: String,
    document: String,
    code: Option<i32>,
}

impl Reply {
    /// The lines of the reply; of a document they are on standard error.
    fn of(output: &Output) -> Reply {
        let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let is_document = !out.starts_with("EXIT:");
        let (text, document) = if is_document { (errors, out) } else { (out, errors) };
        Reply { text: text.into_owned(), document: document.into_owned(), code: output.status.code() }
    }

    fn all(&self, key: &str) -> Vec<&str> {
        self.text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(':')).collect()
    }

    fn get(&self, key: &str) -> &str {
        self.all(key).first().copied().unwrap_or_default()
    }

    /// `BR-0002` of `BR-0002@1a2b`.
    fn short(&self, key: &str) -> String {
        let first = self.get(key).split(' ').next().unwrap_or_default();
        first.split('@').next().unwrap_or_default().to_owned()
    }

    fn is_ok(&self) -> bool {
        self.code == Some(0)
    }
}

fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if tempfile::tempfile_in(&memory).is_ok() { memory } else { std::env::temp_dir() }
}

fn time(now: i64) -> String {
    chrono::DateTime::from_timestamp(now, 0).expect("a time").format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl World {
    fn new(seed: u64) -> World {
        let dir = tempfile::tempdir_in(folder()).expect("a directory");
        let minds = PERSONAS.map(|name| (name, Mind::default())).into_iter().collect();
        let world = World {
            dir,
            dice: Dice::new(seed),
            now: START,
            minds,
            given: Vec::new(),
            tasks: 0,
            is_paused: false,
            said: 0,
            wrong: Vec::new(),
            story: Vec::new(),
        };
        fs::create_dir(world.dir.path().join("home")).expect("a directory");
        world
    }

    /// Runs a command as a persona, or as the user.
    fn run(&mut self, who: Option<&'static str>, args: &[&str]) -> Reply {
        self.now += 1 + self.dice.below(20) as i64;
        let mut command = Command::new(env!("CARGO_BIN_EXE_hf"));
        command.args(args).current_dir(self.dir.path()).env_clear().stdin(Stdio::null());
        command.envs([("PATH", "/usr/bin:/bin"), ("USER", "jo"), ("HF_NOW", &time(self.now))]);
        command.env("HOME", self.dir.path().join("home"));
        if let Some(name) = who {
            command.env("HF_AGENT", name);
            if let Some(session) = &self.minds[name].session {
                command.env("HF_SESSION", session);
            }
        }
        let reply = Reply::of(&command.output().expect("the command runs"));
        let sum = format!("{} {} {}", reply.get("STATUS"), reply.get("NEXT"), reply.get("SUM"));
        self.story.push(format!("{}: {}: {sum}", who.unwrap_or("jo"), args.join(" ")));
        if ["SYSTEM_ERROR", "CORRUPT", "BUSY", ""].contains(&reply.get("STATUS")) {
            self.wrong.push(format!("a reply to nothing that was done: {} {}", reply.text, reply.document));
        }
        self.heard(who, args, &reply);
        reply
    }

    /// What a reply tells its caller besides what was asked.
    fn heard(&mut self, who: Option<&'static str>, args: &[&str], reply: &Reply) {
        let Some(mind) = who.and_then(|name| self.minds.get_mut(name)) else { return };
        // An error is an error first.
        let is_told = reply.get("STATUS") == "INTERRUPTED";
        if mind.is_spoken_to && (reply.is_ok() || is_told) {
            let says =
                is_told || ["INTERRUPTED", "UNREAD", "MESSAGE", "ANSWER"].iter().any(|key| !reply.all(key).is_empty());
            let leads = reply.get("NEXT").contains("hf-branch");
            // While it talks with the user, another word of the user takes it nowhere else.
            let is_busy = mind.at.as_ref().is_some_and(|at| mind.branches.contains(at));
            if !says && !leads && is_busy {
                self.wrong.push(format!("nothing says that somebody spoke: {} {}", args.join(" "), reply.text));
            }
            mind.is_spoken_to = false;
            // It knows that it is somewhere else now; the next reply that names a branch says where.
            mind.at = None;
        }
    }

    /// A new text.
    fn say(&mut self) -> String {
        self.said += 1;
        format!("{MARK}{:05}", self.said)
    }

    /// Notes that a text was acknowledged.
    fn keep(&mut self, whose: &'static str, text: &str, branch: Option<String>) {
        let line = self.story.last().cloned().unwrap_or_default();
        self.given.push(Given { text: text.to_owned(), whose, branch, line });
    }

    fn step(&mut self) {
        let who = self.dice.pick(&PERSONAS);
        match self.dice.below(30) {
            0..=2 => self.create(who),
            3..=9 => self.note(who),
            10..=11 => self.suspend(who),
            12..=14 => self.resume(who),
            15..=18 => self.tell(who),
            19 => self.answer(who),
            20 => self.know(who),
            21..=24 => self.work(who),
            25..=26 => self.look(who),
            27 => self.pause(),
            28 => self.mend(),
            _ => self.visit(who),
        }
    }

    fn create(&mut self, who: &'static str) {
        let (label, summary) = (self.say(), self.say());
        let mut args = vec!["branch", "create", &label, "--type", "free"];
        let with_summary = self.dice.below(3) > 0;
        args.extend(if with_summary { vec!["--summary", &summary] } else { vec!["--abort"] });
        let left = self.minds[who].at.is_some();
        let reply = self.run(Some(who), &args);
        if reply.get("STATUS") == "RECORDED" {
            let branch = reply.short("REF");
            if with_summary && left {
                self.keep(who, &summary, None);
            }
            let mind = self.minds.get_mut(who).expect("known");
            mind.branches.push(branch.clone());
            mind.at = Some(branch);
        }
    }

    fn note(&mut self, who: &'static str) {
        let text = self.say();
        let named = self.dice.pick_of(&self.minds[who].branches).filter(|_| self.dice.one_in(6));
        let mut args = vec!["branch", "note"];
        args.extend(named.iter().flat_map(|branch| ["--branch", branch.as_str()]));
        args.push(&text);
        let reply = self.run(Some(who), &args);
        if reply.get("STATUS") != "RECORDED" {
            return;
        }
        let branch = reply.short("BRANCH");
        let is_aside = named.is_some();
        let believed = named.or_else(|| self.minds[who].at.clone());
        if believed.as_ref().is_some_and(|believed| *believed != branch) {
            let believed = believed.unwrap_or_default();
            self.wrong.push(format!("a note of {who}, who believes to be on {believed}, went to {branch}"));
        }
        self.keep(who, &text, Some(branch.clone()));
        // What is said elsewhere takes it nowhere.
        if !is_aside && reply.all("INTERRUPTED").is_empty() {
            self.minds.get_mut(who).expect("known").at = Some(branch);
        }
    }

    fn suspend(&mut self, who: &'static str) {
        let summary = self.say();
        let late = self.dice.pick_of(&self.minds[who].branches).filter(|_| self.dice.one_in(2));
        let mut args = vec!["branch", "suspend"];
        args.extend(late.as_deref());
        let with_summary = late.is_some() || self.dice.below(4) > 0;
        args.extend(with_summary.then_some(["--summary", &summary]).into_iter().flatten());
        let reply = self.run(Some(who), &args);
        if reply.get("STATUS") == "RECORDED" {
            if with_summary {
                self.keep(who, &summary, None);
            }
            // It says no branch; the next reply that does counts.
            self.minds.get_mut(who).expect("known").at = None;
        }
    }

    fn resume(&mut self, who: &'static str) {
        let Some(branch) = self.dice.pick_of(&self.minds[who].branches) else { return };
        let summary = self.say();
        let with_summary = self.dice.below(3) > 0;
        let mut args = vec!["branch", "resume", &branch];
        args.extend(if with_summary { vec!["--summary", &summary] } else { vec!["--abort"] });
        let left = self.minds[who].at.is_some();
        let reply = self.run(Some(who), &args);
        if reply.get("STATUS") == "RESUMED" {
            if with_summary && left {
                self.keep(who, &summary, None);
            }
            self.minds.get_mut(who).expect("known").at = Some(branch);
        }
    }

    fn tell(&mut self, to: &'static str) {
        let text = self.say();
        let from = self.dice.pick(&[None, None, Some(PERSONAS[0]), Some(PERSONAS[1])]).filter(|from| *from != to);
        let both = from.is_none() && self.dice.one_in(4);
        let args: Vec<&str> = match both {
            true => vec!["branch", "tell", "--to", PERSONAS[0], "--to", PERSONAS[1], &text],
            false => vec!["branch", "tell", to, &text],
        };
        if self.run(from, &args).get("STATUS") != "RECORDED" {
            return;
        }
        for name in PERSONAS.into_iter().filter(|name| both || *name == to) {
            self.keep(name, &text, None);
            if from.is_none() {
                self.minds.get_mut(name).expect("known").is_spoken_to = true;
            }
        }
    }

    fn answer(&mut self, who: &'static str) {
        self.run(Some(who), &["branch", "read"]);
        let text = self.say();
        let reply = self.run(Some(who), &["branch", "note", "--branch", who, &text]);
        if reply.get("STATUS") == "RECORDED" {
            self.keep(who, &text, Some(reply.short("BRANCH")));
        }
    }

    fn know(&mut self, who: &'static str) {
        let title = format!("page {}", self.dice.below(3));
        let text = self.say();
        if self.run(Some(who), &["branch", "know", &title, &text]).get("STATUS") == "RECORDED" {
            self.keep(who, &text, None);
        }
    }

    /// Takes a task up, or ends one.
    fn work(&mut self, who: &'static str) {
        if self.dice.one_in(2) || self.tasks == 0 {
            let title = self.say();
            if self.run(None, &["task", "propose", &title]).is_ok() {
                self.tasks += 1;
            }
        }
        let task = format!("T-{:04}", 1 + self.dice.below(self.tasks.max(1)));
        let text = self.say();
        match self.dice.below(3) {
            0 => drop(self.run(Some(who), &["task", "claim", &task])),
            1 => drop(self.run(Some(who), &["task", "start", &task])),
            _ => {
                let reply = self.run(Some(who), &["task", "succeed", &task, "--summary", &text]);
                if reply.get("STATUS") == "RECORDED" {
                    self.keep(who, &text, None);
                }
            }
        }
        // A claim takes it to the branch of the task, if there is one; what comes next says where.
        self.minds.get_mut(who).expect("known").at = None;
    }

    fn look(&mut self, who: &'static str) {
        let ways: [&[&str]; 4] =
            [&["branch", "decide"], &["branch", "inbox", "--unread"], &["checkpoint", "here"], &["branch", "list"]];
        let args = self.dice.pick(&ways);
        self.run(Some(who), args);
    }

    fn pause(&mut self) {
        let args: &[&str] =
            if self.is_paused { &["resume", "--project", "main", "--yes"] } else { &["pause", "a question"] };
        if self.run(None, args).is_ok() {
            self.is_paused = !self.is_paused;
        }
    }

    fn mend(&mut self) {
        if self.tasks == 0 {
            return;
        }
        let task = format!("T-{:04}", 1 + self.dice.below(self.tasks));
        let text = self.say();
        match self.dice.one_in(2) {
            true => drop(self.run(None, &["task", "edit", &task, "--description", &text, "--reason", "a test"])),
            false => {
                let to = self.dice.pick(&PERSONAS);
                self.run(None, &["task", "assign", &task, to, "--note", &text]);
            }
        }
    }

    /// Logs in, or out with a summary.
    fn visit(&mut self, who: &'static str) {
        match self.minds[who].session.clone() {
            None => {
                let reply = self.run(Some(who), &["session", "login", "--agent", who]);
                if reply.is_ok() {
                    self.minds.get_mut(who).expect("known").session = Some(reply.short("SESSION"));
                }
            }
            Some(_) => {
                self.run(Some(who), &["session", "logout"]);
                self.minds.get_mut(who).expect("known").session = None;
            }
        }
    }

    /// Everything that a persona can recall, with its branch.
    fn recalled(&mut self, who: &'static str, branch: Option<&str>) -> String {
        let (mut found, mut cursor) = (String::new(), None::<String>);
        loop {
            let mut args = vec!["branch", "recall"];
            args.extend(match branch {
                Some(branch) => vec![branch],
                None => vec!["--all"],
            });
            args.extend(["--grep", MARK, "--limit", "50"]);
            args.extend(cursor.iter().flat_map(|cursor| ["--cursor", cursor.as_str()]));
            let reply = self.run(Some(who), &args);
            self.story.pop();
            found += &reply.document;
            match reply.get("HAS_MORE") {
                "yes" if cursor.as_deref() != Some(reply.get("NEXT_CURSOR")) => {
                    cursor = Some(reply.get("NEXT_CURSOR").to_owned());
                }
                "no" => return found,
                _ => {
                    self.wrong.push(format!("recall does not end: {}", reply.text));
                    return found;
                }
            }
        }
    }

    /// Looks for every text.
    fn judge(&mut self) {
        for who in PERSONAS {
            let found = self.recalled(who, None);
            let given = std::mem::take(&mut self.given);
            for text in given.iter().filter(|text| text.whose == who && !found.contains(&text.text)) {
                self.wrong.push(format!("{who} does not find {} again: {}", text.text, text.line));
            }
            let branches: std::collections::BTreeSet<String> =
                given.iter().filter(|text| text.whose == who).filter_map(|text| text.branch.clone()).collect();
            for branch in branches {
                let found = self.recalled(who, Some(&branch));
                let here = |text: &&Given| text.whose == who && text.branch.as_ref() == Some(&branch);
                for text in given.iter().filter(here).filter(|text| !found.contains(&text.text)) {
                    self.wrong.push(format!("{} is not in {branch}: {}", text.text, text.line));
                }
            }
            self.given = given;
        }
        let verified = self.run(None, &["verify", "--policy", "--projections"]);
        if verified.get("POLICY") != "OK" || !["OK", "STALE"].contains(&verified.get("PROJECTIONS")) {
            self.wrong.push(format!("the audit says: {}", verified.text.replace('\n', ", ")));
        }
    }
}

impl Life {
    pub fn live(seed: u64) -> Life {
        let mut world = World::new(seed);
        world.run(None, &["init"]);
        for who in PERSONAS {
            world.run(Some(who), &["checkpoint", "awake"]);
        }
        let mut steps = 0;
        while steps < STEPS && world.wrong.is_empty() {
            world.step();
            steps += 1;
        }
        if world.is_paused {
            world.pause();
        }
        world.judge();
        let World { wrong, story, given, .. } = world;
        Life { steps, texts: given.len() as u64, wrong, story }
    }
}
