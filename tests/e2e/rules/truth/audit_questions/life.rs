//! A vault in which work waited, was retried, reworked, rejected, superseded, stopped and lost.

use std::collections::BTreeMap;

use rustix::process::{Pid, Signal, kill_process_group};

use super::oracle::{Log, text};
use crate::support::job_fixture::{TestJobVault, kill};
use crate::support::steps::ok;
use crate::support::test_vault::{Reply, write_private};
use crate::support::watchdog_fixture::{TASKS_ALONE, moment};

/// Longer than a lease.
const LONG_SILENCE_SECONDS: i64 = 1000;

/// A vault and what happens in it, one command a second.
pub struct Life {
    pub story: TestJobVault,
    seconds: i64,
    /// The references of the tasks, by title.
    tasks: BTreeMap<&'static str, String>,
}

impl Life {
    fn new() -> Life {
        let settings = format!("governance:\n  max_retries: 2\n  max_oscillations: 9\n{TASKS_ALONE}");
        Life { story: TestJobVault::new(&settings), seconds: 0, tasks: BTreeMap::new() }
    }

    /// Moves the clock and runs a command that must succeed. `@Some_title` is the reference of a task.
    #[track_caller]
    fn run(&mut self, words: &[&str]) -> Reply {
        self.seconds += 1;
        self.story.at(&moment(self.seconds).to_string());
        let named = |word: &&str| match word.strip_prefix('@') {
            Some(title) => self.task(&title.replace('_', " ")),
            None => (*word).to_owned(),
        };
        let words: Vec<String> = words.iter().map(named).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.story.run(words[0], &words[1..]).expect_exit(0)
    }

    /// Runs several command lines without spaces in their arguments.
    #[track_caller]
    fn all(&mut self, lines: &[&str]) {
        for line in lines {
            self.run(&line.split(' ').collect::<Vec<_>>());
        }
    }

    #[track_caller]
    fn task(&self, title: &str) -> String {
        self.tasks.get(title).unwrap_or_else(|| panic!("{title} was not proposed")).clone()
    }

    /// Remembers the task that a reply is about.
    #[track_caller]
    fn remember(&mut self, title: &'static str, reply: &Reply) {
        let reference = reply.get("SUM").split(' ').next().expect("a reference").to_owned();
        assert!(reference.starts_with("T-") && self.tasks.insert(title, reference).is_none(), "{title}: {reply:#?}");
    }

    /// Proposes a task with these options.
    #[track_caller]
    fn propose(&mut self, title: &'static str, options: &str) {
        let words: Vec<&str> = ["task", "propose", title].into_iter().chain(options.split_whitespace()).collect();
        let reply = self.run(&words);
        self.remember(title, &reply);
    }

    /// Claims and starts a task by name.
    #[track_caller]
    fn start(&mut self, title: &str) {
        for verb in ["claim", "start"] {
            self.run(&["task", verb, &format!("@{title}")]);
        }
    }

    #[track_caller]
    fn succeed(&mut self, title: &str) {
        self.run(&["task", "succeed", &format!("@{title}")]);
    }

    #[track_caller]
    fn fail(&mut self, title: &str, class: &str, reason: &str) {
        self.run(&["task", "fail", &format!("@{title}"), "--class", class, "--reason", reason]);
    }

    /// Fails a running task for a reason that passes, and starts it again.
    #[track_caller]
    fn retry(&mut self, title: &str, reason: &str) {
        self.fail(title, "transient", reason);
        self.run(&["task", "start", &format!("@{title}")]);
    }

    /// Finds the result of a task invalid, which proposes the task again under the second title.
    #[track_caller]
    fn rework(&mut self, title: &'static str, again: &'static str, reason: &str) {
        let artifact = self.put(title);
        self.run(&["artifact", "invalidate", &artifact, "--reason", reason]);
        self.repeated(title, again);
    }

    /// Stores a result of a task. Returns the reference of the artifact.
    #[track_caller]
    fn put(&mut self, title: &str) -> String {
        let file = format!("{title}.py");
        write_private(&self.story.dir().join(&file), title.as_bytes());
        let reply = self.run(&["artifact", "put", &file, "--for", &format!("@{title}")]);
        reply.get("SUM").split(' ').next().expect("a reference").to_owned()
    }

    /// Remembers the newest task, which repeats another.
    #[track_caller]
    fn repeated(&mut self, title: &str, again: &'static str) {
        let log = self.log();
        let newest = log.of_kind("TaskProposed").last().expect("a task");
        let before = newest["payload"]["rework_of"].as_str().expect("a rework");
        assert_eq!(log.names[&format!("task:{before}")], self.task(title));
        self.tasks.insert(again, log.names[text(newest, "subject")].clone());
    }

    /// Waits for a job that fails.
    #[track_caller]
    fn fails(&self, title: &str) {
        assert_eq!(self.story.poll(&self.task(title)).get("STATUS"), "FAIL", "{title}");
    }

    pub fn log(&self) -> Log {
        Log::read(&self.story.vault())
    }

    /// The title under which a task was remembered.
    pub fn title(&self, reference: &str) -> &'static str {
        self.tasks.iter().find(|(_, known)| *known == reference).expect("a task of this life").0
    }
}

/// A life in which everything happens that an audit may ask about.
#[track_caller]
pub fn rich_life() -> Life {
    let mut life = Life::new();
    // Login is approved, Docs later, Shop is rejected, Old is superseded, Small is implemented and comes back.
    life.all(&["require propose Login", "require analyze REQ-0001 Easy."]);
    life.run(&["decide", "approve", "DEC-0001", "--comment", "wanted by everybody"]);
    life.all(&["require propose Docs", "require propose Shop", "require propose Old", "require propose Small"]);
    life.all(&["require analyze REQ-0004 Easy.", "decide approve DEC-0002"]);
    life.propose("Form", "--requirement REQ-0001");
    life.propose("Page", "--requirement REQ-0002 --after @Form");
    life.propose("Cart", "--requirement REQ-0003");
    life.propose("Checkout", "--after @Cart");
    life.propose("Legacy", "--requirement REQ-0004");
    life.propose("Import", "--requirement REQ-0004");
    life.run(&["require", "analyze", "REQ-0002", "Some pages."]);
    life.run(&["decide", "approve", "DEC-0003", "--comment", "needed for the release"]);
    life.propose("Guide", "--requirement REQ-0002 --after @Form");
    life.run(&["require", "analyze", "REQ-0003", "Expensive."]);
    life.run(&["decide", "reject", "DEC-0004", "--reason", "no money"]);
    life.start("Import");
    life.all(&["require supersede REQ-0004 --by REQ-0001"]);

    // Retried and done; retried until it gave up; failed for good.
    life.propose("Flaky", "--requirement REQ-0001");
    life.propose("Auth", "--requirement REQ-0001");
    life.start("Form");
    life.retry("Form", "network");
    life.retry("Form", "over quota");
    life.succeed("Form");
    life.start("Flaky");
    life.retry("Flaky", "no name server");
    life.retry("Flaky", "no route");
    life.fail("Flaky", "transient", "still no route");
    life.start("Auth");
    life.fail("Auth", "permanent", "wrong password");

    // A run that fell silent; another agent finishes the work.
    life.propose("Search", "--requirement REQ-0002");
    life.all(&["task claim @Search --actor agent:slow", "task start @Search --actor agent:slow"]);
    life.seconds += LONG_SILENCE_SECONDS;
    let late = moment(life.seconds).to_string();
    life.story.at(&late);
    life.story.run("watchdog", &[]).expect_exit(1);
    life.all(&["task claim @Search --actor agent:quick", "task start @Search --actor agent:quick"]);
    life.all(&["task succeed @Search --actor agent:quick"]);

    // Reworked while it ran, and after it was done.
    life.propose("Draft", "--requirement REQ-0002");
    life.start("Draft");
    life.rework("Draft", "Draft again", "no tests");
    life.start("Draft again");
    life.succeed("Draft again");
    life.propose("Poster", "--requirement REQ-0002");
    life.start("Poster");
    let poster = life.put("Poster");
    life.succeed("Poster");
    life.run(&["artifact", "invalidate", &poster, "--reason", "wrong colours"]);
    life.repeated("Poster", "Poster again");

    // Stopped during its second attempt, and repeated afterwards.
    life.propose("Crawl", "--requirement REQ-0001");
    life.start("Crawl");
    life.retry("Crawl", "connection reset");
    life.propose("Feed", "--requirement REQ-0001");
    life.start("Feed");
    life.run(&["stop", "it hurts others"]);
    life.all(&["resume --system"]);
    let again = life.run(&["task", "propose", "--rework-of", "@Crawl"]);
    life.remember("Crawl again", &again);
    life.start("Crawl again");
    life.succeed("Crawl again");
    // What waits for a repeated task is aborted with the repetition.
    life.propose("Reader", "--after @Feed");
    let again = life.run(&["task", "propose", "--rework-of", "@Feed"]);
    life.remember("Feed again", &again);
    life.run(&["task", "abort", "@Feed_again", "--reason", "nobody subscribes"]);

    // Put first: one is done after a retry, one is still claimed. A constraint that was rejected puts nothing first.
    life.propose("Later", "--requirement REQ-0002");
    life.propose("Second", "--requirement REQ-0002");
    life.run(&["constraint", "apply", "Second things first", "--priority", "@Second"]);
    life.run(&["decide", "approve", "DEC-0005", "--comment", "the fair is on Monday"]);
    life.run(&["constraint", "apply", "Later comes first", "--priority", "@Later"]);
    life.run(&["decide", "reject", "DEC-0006", "--reason", "it can wait"]);
    assert_eq!(life.run(&["task", "claim"]).get("SUM"), format!("{} is Assigned: Second", life.task("Second")));
    life.all(&["task start @Second"]);
    life.retry("Second", "disk full");
    life.succeed("Second");
    life.all(&["constraint remove CON-0001", "decide approve DEC-0007"]);
    life.propose("Third", "--requirement REQ-0002");
    life.run(&["constraint", "apply", "Third before the rest", "--priority", "@Third"]);
    life.all(&["decide approve DEC-0008"]);
    assert_eq!(life.run(&["task", "claim"]).get("SUM"), format!("{} is Assigned: Third", life.task("Third")));

    // Destructive: rejected; and approved while it still waited for something else.
    life.propose("Wipe", "--destructive");
    life.run(&["decide", "reject", "DEC-0009", "--reason", "too dangerous"]);
    life.propose("Purge", "--destructive --after @Guide");
    life.run(&["decide", "approve", "DEC-0010", "--comment", "there is a backup"]);
    life.propose("Launch", "--after @Page --after @Guide");
    life.start("Page");
    life.succeed("Page");
    life.start("Guide");
    life.succeed("Guide");

    // Aborted by an operator, with everything behind it.
    life.propose("Banner", "");
    life.propose("Slogan", "--after @Banner");
    life.propose("Print", "--after @Slogan");
    life.run(&["task", "abort", "@Banner", "--reason", "nobody reads banners"]);

    // An implemented requirement comes back with a rework, and gets another task.
    life.all(&["require analyze REQ-0005 Easy.", "decide approve DEC-0011"]);
    life.propose("Tool", "--requirement REQ-0005");
    life.start("Tool");
    let tool = life.put("Tool");
    life.succeed("Tool");
    life.run(&["artifact", "invalidate", &tool, "--reason", "does nothing"]);
    life.repeated("Tool", "Tool again");
    life.propose("Manual", "--requirement REQ-0005");
    life.run(&["constraint", "apply", "Small things first", "--priority", "REQ-0005"]);
    life.all(&["decide approve DEC-0012"]);
    assert_eq!(life.run(&["task", "claim"]).get("SUM"), format!("{} is Assigned: Tool", life.task("Tool again")));
    life.all(&["task start @Tool_again"]);

    jobs(&mut life);
    life
}

/// A job that fails, one that is killed until it gives up, one that is lost, and one that is cancelled.
#[track_caller]
fn jobs(life: &mut Life) {
    let mut at = life.story.gate("at");
    let fired = life.story.fire("exit 3");
    life.remember("job that fails", &fired);
    life.fails("job that fails");
    let fired = life.story.fire_with(&["--retries", "1"], "kill -9 $$");
    life.remember("job that is killed", &fired);
    life.fails("job that is killed");
    let fired = life.story.fire("echo up >at; sleep 1000");
    life.remember("job that is lost", &fired);
    at.line();
    let [supervisor, command] = life.story.pids(&life.task("job that is lost"));
    // The supervisor is held while its command is killed, so that it sees no end.
    for (pid, signal) in [(supervisor, Signal::STOP), (command, Signal::KILL)] {
        kill_process_group(Pid::from_raw(pid).expect("a pid"), signal).expect("it lives");
    }
    kill(supervisor, Signal::KILL);
    life.fails("job that is lost");
    let fired = life.story.fire("echo up >at; sleep 1000");
    life.remember("job that is cancelled", &fired);
    at.line();
    ok(&life.story, &format!("hf-job cancel {}", life.task("job that is cancelled")));
    life.story.gone();
}
