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
/// Whether a life leaves texts with tasks, too, and recall has to find them.
const LEAVES_TEXTS_WITH_TASKS: bool = true;
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
    /// The branch it must be in, if it is said which.
    branch: Option<String>,
    /// The step in which it was given.
    line: String,
}

/// What a persona can know.
#[derive(Default)]
struct Mind {
    /// Its root.
    root: String,
    /// The branch that the last reply named as the one it is on; none after a reply from which it cannot know.
    at: Option<String>,
    /// Its branches besides its root, by name.
    branches: Vec<String>,
    /// Whether somebody spoke to it while it was elsewhere, and it has neither read nor answered that.
    is_spoken_to: bool,
    session: Option<String>,
}

impl Mind {
    /// The branch that it would be leaving now, if it knows that it is on one.
    fn leaving(&self) -> Option<String> {
        self.at.clone().filter(|at| *at != self.root)
    }
}

struct World {
    dir: TempDir,
    dice: Dice,
    now: i64,
    minds: BTreeMap<&'static str, Mind>,
    given: Vec<Given>,
    tasks: u64,
    is_paused: bool,
    is_stopped: bool,
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
            is_stopped: false,
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
        // What it says to the user is its answer.
        let is_note = args.starts_with(&["branch", "note"]) && reply.is_ok();
        mind.is_spoken_to &= !(is_note && reply.short("BRANCH") == mind.root);
        // An error is an error first.
        let is_told = reply.is_ok() || reply.get("STATUS") == "INTERRUPTED";
        if mind.is_spoken_to && is_told && !reply.text.contains("MSG-") {
            self.wrong.push(format!("nothing says that somebody spoke: {} {}", args.join(" "), reply.text));
        }
        // A list says where it is, unless the same reply says that others took it away from elsewhere.
        let is_own = |line: &&str| line.split(' ').nth(1).and_then(|by| by.strip_prefix("agent:")) == who;
        let active = Some(reply.short("ACTIVE")).filter(|active| !active.is_empty());
        if let Some(active) = active.filter(|_| reply.all("INTERRUPTED").iter().all(is_own)) {
            mind.at = Some(active);
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
        match self.dice.below(36) {
            0..=2 => self.create(who),
            3..=9 => self.note(who),
            10..=12 => self.suspend(who),
            13..=15 => self.resume(who),
            16..=19 => self.tell(who),
            20 => self.answer(who),
            21 => self.know(who),
            22..=25 => self.work(who),
            26..=27 => self.look(who),
            28 => self.pause(),
            29 => self.stop(),
            30 => self.mend(),
            31..=32 => self.reassign(),
            33 => self.abort(),
            34 => self.meet(who),
            35 if LEAVES_TEXTS_WITH_TASKS && self.dice.one_in(2) => self.leave_with_task(who),
            _ => self.visit(who),
        }
    }

    /// A file with a text in it, for a tail.
    fn tail(&mut self) -> (String, String) {
        let text = self.say();
        let file = format!("tail-{text}.txt");
        fs::write(self.dir.path().join(&file), format!("before\n{text}\n")).expect("a file");
        (file, text)
    }

    /// How to leave a branch: the arguments, and the texts in them.
    fn leaving(&mut self) -> (Vec<String>, Vec<String>) {
        let (mut args, mut texts) = (Vec::new(), Vec::new());
        match self.dice.below(3) {
            0 => args.push("--abort".to_owned()),
            _ => {
                let summary = self.say();
                args.extend(["--summary".to_owned(), summary.clone()]);
                texts.push(summary);
            }
        }
        if self.dice.one_in(3) {
            let (file, text) = self.tail();
            args.extend(["--tail".to_owned(), file]);
            texts.push(text);
        }
        (args, texts)
    }

    /// Notes that the texts of a leaving were acknowledged: they are about the branch that it believed to leave.
    fn keep_all(&mut self, who: &'static str, texts: &[String], left: &Option<String>) {
        for text in texts {
            self.keep(who, text, left.clone());
        }
    }

    fn create(&mut self, who: &'static str) {
        let label = self.say();
        let (leaving, texts) = self.leaving();
        let mut args = vec!["branch", "create", &label, "--type", "free"];
        args.extend(leaving.iter().map(String::as_str));
        let left = self.minds[who].leaving();
        let reply = self.run(Some(who), &args);
        let mind = self.minds.get_mut(who).expect("known");
        match reply.get("STATUS") {
            "RECORDED" => {
                let branch = reply.short("REF");
                mind.branches.push(branch.clone());
                mind.at = Some(branch);
                self.keep_all(who, &texts, &left);
            }
            // It says that the root is active now.
            "INTERRUPTED" => {
                mind.at = Some(mind.root.clone());
                self.keep_all(who, &texts, &left);
            }
            _ => {}
        }
    }

    /// Makes a social branch, which nobody leaves another one for.
    fn meet(&mut self, who: &'static str) {
        let other = PERSONAS.into_iter().find(|other| *other != who).expect("there are two");
        let (label, summary) = (self.say(), self.say());
        let mut args = vec!["branch", "create", &label, "--type", "social", "--partner", other];
        let with_summary = self.dice.one_in(2);
        args.extend(with_summary.then_some(["--summary", &summary]).into_iter().flatten());
        let left = self.minds[who].leaving();
        let reply = self.run(Some(who), &args);
        if with_summary && reply.get("STATUS") == "INTERRUPTED" {
            self.keep(who, &summary, left);
        } else if with_summary && reply.is_ok() {
            self.keep(who, &summary, None);
        }
        let mind = self.minds.get_mut(who).expect("known");
        if reply.get("STATUS") == "INTERRUPTED" {
            mind.at = Some(mind.root.clone());
        } else if reply.is_ok() && !mind.branches.contains(&reply.short("REF")) {
            mind.branches.push(reply.short("REF"));
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
        let believed = named.or_else(|| self.minds[who].at.clone());
        if let Some(believed) = believed.filter(|believed| *believed != branch) {
            self.wrong.push(format!("a note of {who}, who believes to be on {believed}, went to {branch}"));
        }
        self.keep(who, &text, Some(branch.clone()));
        self.said_on(who, &reply);
    }

    /// What a note says about where its author is: on that branch, if it is active.
    fn said_on(&mut self, who: &'static str, reply: &Reply) {
        let branch = reply.short("BRANCH");
        let mind = self.minds.get_mut(who).expect("known");
        if reply.get("BRANCH").split(' ').nth(2) == Some("Active") {
            mind.at = Some(branch);
        }
    }

    fn suspend(&mut self, who: &'static str) {
        let named = self.dice.pick_of(&self.minds[who].branches).filter(|_| self.dice.one_in(2));
        let (summary, (file, tail)) = (self.say(), self.tail());
        let mut args = vec!["branch", "suspend"];
        args.extend(named.as_deref());
        let (with_summary, with_tail) = (named.is_some() || self.dice.below(4) > 0, self.dice.one_in(3));
        args.extend(with_summary.then_some(["--summary", &summary]).into_iter().flatten());
        args.extend(with_tail.then_some(["--tail", &file]).into_iter().flatten());
        let left = named.clone().or_else(|| self.minds[who].leaving());
        if self.run(Some(who), &args).get("STATUS") != "RECORDED" {
            return;
        }
        let texts = [(with_summary, summary), (with_tail, tail)].into_iter().filter(|(given, _)| *given);
        let texts: Vec<String> = texts.map(|(_, text)| text).collect();
        self.keep_all(who, &texts, &left);
        // It left where it believed to be; a word about another branch takes it nowhere.
        let mind = self.minds.get_mut(who).expect("known");
        if named.is_none() || named == mind.at {
            mind.at = Some(mind.root.clone());
        }
    }

    fn resume(&mut self, who: &'static str) {
        let Some(branch) = self.dice.pick_of(&self.minds[who].branches) else { return };
        let (leaving, texts) = self.leaving();
        let mut args = vec!["branch", "resume", &branch];
        args.extend(leaving.iter().map(String::as_str));
        let left = self.minds[who].leaving();
        let reply = self.run(Some(who), &args);
        let mind = self.minds.get_mut(who).expect("known");
        match reply.get("STATUS") {
            "RESUMED" | "DUPLICATE" => {
                mind.at = Some(branch);
                self.keep_all(who, &texts, &left);
            }
            "INTERRUPTED" => {
                mind.at = Some(mind.root.clone());
                self.keep_all(who, &texts, &left);
            }
            _ => {}
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
            let mind = self.minds.get_mut(name).expect("known");
            mind.is_spoken_to |= from.is_none() && mind.leaving().is_some();
        }
    }

    fn answer(&mut self, who: &'static str) {
        if self.run(Some(who), &["branch", "read"]).is_ok() {
            self.minds.get_mut(who).expect("known").is_spoken_to = false;
        }
        let text = self.say();
        let reply = self.run(Some(who), &["branch", "note", "--branch", who, &text]);
        if reply.get("STATUS") == "RECORDED" {
            self.keep(who, &text, Some(reply.short("BRANCH")));
            self.said_on(who, &reply);
        }
    }

    fn know(&mut self, who: &'static str) {
        let title = format!("page {}", self.dice.below(3));
        let text = self.say();
        if self.run(Some(who), &["branch", "know", &title, &text]).get("STATUS") == "RECORDED" {
            self.keep(who, &text, None);
        }
    }

    /// Takes a task up, or ends one, and looks where that led.
    fn work(&mut self, who: &'static str) {
        if self.dice.one_in(2) || self.tasks == 0 {
            let title = self.say();
            if self.run(None, &["task", "propose", &title]).is_ok() {
                self.tasks += 1;
            }
        }
        let (task, text) = (self.task(), self.say());
        let ways: [&[&str]; 5] = [
            &["task", "claim", &task],
            &["task", "claim", &task],
            &["task", "start", &task],
            &["task", "fail", &task, "--class", "permanent", "--reason", "no"],
            &["task", "succeed", &task, "--summary", &text],
        ];
        let args = self.dice.pick(&ways);
        let reply = self.run(Some(who), args);
        if reply.is_ok() && reply.get("STATUS") != "DUPLICATE" {
            if args.contains(&"--summary") {
                self.keep(who, &text, None);
            }
            // It went somewhere; the list says where.
            self.minds.get_mut(who).expect("known").at = None;
        }
        self.see_branches(who);
    }

    /// The name of some task.
    fn task(&mut self) -> String {
        format!("T-{:04}", 1 + self.dice.below(self.tasks.max(1)))
    }

    /// Learns which branches there are, and which one it is on.
    fn see_branches(&mut self, who: &'static str) {
        let reply = self.run(Some(who), &["branch", "list", "--limit", "500"]);
        let named = |line: &&str| line.split(' ').next().map(str::to_owned);
        let mind = self.minds.get_mut(who).expect("known");
        let branches: Vec<String> = reply.all("BRANCH").iter().filter_map(named).collect();
        mind.branches.extend(branches.into_iter().filter(|known| *known != mind.root));
        mind.branches.sort_unstable();
        mind.branches.dedup();
    }

    fn look(&mut self, who: &'static str) {
        let ways: [&[&str]; 5] = [
            &["branch", "decide"],
            &["branch", "inbox", "--unread"],
            &["checkpoint", "here"],
            &["branch", "list"],
            &["task", "list"],
        ];
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

    /// Stops everything, which aborts all work, or lets it go on.
    fn stop(&mut self) {
        let args: &[&str] = if self.is_stopped { &["resume", "--system", "--yes"] } else { &["stop", "a fright"] };
        if self.run(None, args).is_ok() {
            self.is_stopped = !self.is_stopped;
        }
    }

    fn mend(&mut self) {
        if self.tasks > 0 {
            let (task, text) = (self.task(), self.say());
            self.run(None, &["task", "edit", &task, "--description", &text, "--reason", "a test"]);
        }
    }

    /// Gives a task to somebody, whoever has it.
    fn reassign(&mut self) {
        if self.tasks > 0 {
            let (task, to) = (self.task(), self.dice.pick(&PERSONAS));
            self.run(None, &["task", "assign", &task, to, "--reason", "a test"]);
        }
    }

    fn abort(&mut self) {
        if self.tasks > 0 {
            let task = self.task();
            self.run(None, &["task", "abort", &task, "--reason", "a test"]);
        }
    }

    /// Leaves a text with a task: a note, a handoff, the reason for a skipped step, or a summary at logout.
    fn leave_with_task(&mut self, who: &'static str) {
        if self.tasks == 0 {
            return;
        }
        let (task, text) = (self.task(), self.say());
        let by = self.dice.pick(&[None, Some(who)]);
        let args: Vec<&str> = match (by, self.dice.below(3)) {
            (None, _) => vec!["task", "assign", &task, who, "--reason", "a test", "--note", &text],
            (_, 0) => vec!["task", "note", &task, &text],
            (_, 1) => vec!["task", "succeed", &task, "--skip", &text],
            _ => vec!["session", "logout", "--summary", &text],
        };
        let is_logout = args.contains(&"logout");
        if is_logout && self.minds[who].session.is_none() {
            return;
        }
        let reply = self.run(by, &args);
        if reply.is_ok() && reply.get("STATUS") != "DUPLICATE" {
            self.keep(who, &text, None);
        }
        if is_logout {
            self.minds.get_mut(who).expect("known").session = None;
        } else if args.contains(&"succeed") {
            self.minds.get_mut(who).expect("known").at = None;
            self.see_branches(who);
        }
    }

    /// Logs in, or out.
    fn visit(&mut self, who: &'static str) {
        match self.minds[who].session.clone() {
            None => {
                let reply = self.run(Some(who), &["session", "login", "--agent", who]);
                if reply.is_ok() {
                    let session = reply.get("SESSION_ID").to_owned();
                    if session.is_empty() {
                        self.wrong.push(format!("a login without a session: {}", reply.text));
                    }
                    self.minds.get_mut(who).expect("known").session = Some(session);
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
            let reply = world.run(Some(who), &["branch", "note", "--branch", who, "awake"]);
            let mind = world.minds.get_mut(who).expect("known");
            (mind.root, mind.at) = (reply.short("BRANCH"), Some(reply.short("BRANCH")));
        }
        let mut steps = 0;
        while steps < STEPS && world.wrong.is_empty() {
            world.step();
            steps += 1;
        }
        if world.is_stopped {
            world.stop();
        }
        if world.is_paused {
            world.pause();
        }
        world.judge();
        let World { wrong, story, given, .. } = world;
        Life { steps, texts: given.len() as u64, wrong, story }
    }
}
