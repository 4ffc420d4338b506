//! Hooks that type into a pane, on a separate tmux server.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::machine::{Need, can};
use crate::test_vault::{Reply, TestVault, binary};

/// A server that ends when this value is dropped. The panes of its sessions run `cat`: typed text appears twice, as typed
/// and again after Enter.
struct Server {
    sockets: TempDir,
}

impl Server {
    /// Starts it with a session `work`, and another whose name starts the same.
    fn start() -> Self {
        let server = Server { sockets: tempfile::tempdir().expect("a temporary directory") };
        for session in ["work", "workshop"] {
            server.must(&["-f", "/dev/null", "new-session", "-d", "-s", session, "-x", "400", "-y", "50", "cat"]);
        }
        server
    }

    fn tmux(&self, args: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.args(["-u", "-L", "hf"]).args(args).env_remove("TMUX").env("TMUX_TMPDIR", self.sockets.path());
        tmux.output().expect("tmux runs")
    }

    #[track_caller]
    fn must(&self, args: &[&str]) {
        let done = self.tmux(args);
        assert!(done.status.success(), "{args:?}: {done:?}");
    }

    fn lines(&self) -> Vec<String> {
        let shown = self.tmux(&["capture-pane", "-p", "-J", "-t", "=work:"]);
        String::from_utf8_lossy(&shown.stdout).lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until the pane shows a line this many times, for at most ten seconds.
    #[track_caller]
    fn shows(&self, line: &str, times: usize) {
        const LOOKS: u32 = 500;
        for _ in 0..LOOKS {
            if self.lines().iter().filter(|shown| *shown == line).count() == times {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{line:?} does not occur {times} times in {:#?}", self.lines());
    }

    /// Runs a hook directly.
    fn hook(&self, name: &str, told: &[(&str, &str)]) -> Reply {
        let mut hook = Command::new(script(name));
        hook.stdin(Stdio::null()).env_remove("TMUX").env("TMUX_TMPDIR", self.sockets.path()).envs([
            ("HF_TMUX_SOCKET", "hf"),
            ("HF_TMUX_TARGET", "work"),
            ("HF_TMUX_PAUSE", "0"),
        ]);
        Reply::of(hook.envs(told.iter().copied()).output().expect("the hook runs"))
    }

    /// Runs the watchdog once.
    fn tick(&self, hive: &TestVault) -> Reply {
        let mut tick = hive.process("watchdog");
        tick.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("TMUX_TMPDIR", self.sockets.path());
        Reply::of(tick.output().expect("the watchdog runs"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Looks again and again, for at most a minute. Returns whether it is so in the end.
fn comes(so: impl Fn() -> bool) -> bool {
    const LOOKS: u32 = 3000;
    for _ in 0..LOOKS {
        if so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[track_caller]
fn until(what: &str, so: impl Fn() -> bool) {
    assert!(comes(so), "{what} did not come");
}

fn script(name: &str) -> String {
    format!("{}/scripts/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A pattern of the id that a message begins with and of the findings that follow it.
const ID: &str = r"\d{14}";
const ADVICE: &str = r"write an activity log, or [^\n\r]+ if you are in the middle of something[^\n\r]*";

/// The pattern of what a try types: what saves the chat, if anything, and the reminder.
fn attempt(number: u64, seconds: &str, saves: bool) -> String {
    let (typed, told) = match saves {
        true => (
            format!(r"/chat save HEARTBEAT_{ID}\r"),
            format!("\nBefore this, \"/chat save HEARTBEAT_{ID}\" was typed to save the chat\\."),
        ),
        false => Default::default(),
    };
    format!(
        "\\x1b\\x1b{typed}Heartbeat: {ID}\n\nYou were interrupted: INACTIVE for {seconds} s \\(try {number} of 3\\)\\.\n\
         Advice: {ADVICE}\\.{told}\nTo get back to work:\n1\\. Read your instructions again\\.\n2\\. Look at your \
         latest logs, to see what you were doing\\.\n3\\. Write an introspection as an activity log with the id {ID}\\.\n\
         4\\. Wait for the next heartbeat, then continue\\.\\r"
    )
}

/// Asserts that this pattern describes all of a text.
#[track_caller]
fn matches(pattern: &str, text: &str) {
    let pattern = regex::Regex::new(&format!("^(?:{pattern})$")).expect("a pattern");
    assert!(pattern.is_match(text), "{pattern}\n{text:?}");
}

#[test]
fn the_heartbeat_and_the_kick_reach_a_pane_through_the_hooks() {
    if !can("typing into a pane", &[Need::Tool("tmux")]) {
        return;
    }
    let mut hive = TestVault::new();
    let hook = |name: &str| {
        let variables = "HF_TMUX_SOCKET=hf HF_TMUX_TARGET=raw:0.0 HF_TMUX_PAUSE=0 HF_KICK_SAVE= HF_KICK_PAUSE=0";
        format!("{variables} '{}'", script(name))
    };
    let settings = format!(
        "watchdog:\n  interval_seconds: 600\n  hooks:\n    on_beat: \"{}\"\n    on_anomaly: \"{}\"\n",
        hook("deliver-tmux"),
        hook("kick-tmux")
    );
    hive.configure(&settings);
    hive.run("checkpoint", &["At work"]).expect_exit(0);
    let server = Server::start();
    // A pane that keeps every byte.
    let (ready, typed) = (hive.dir().join("ready"), hive.dir().join("typed"));
    let dir = hive.dir().to_str().expect("UTF-8");
    let keep = "stty raw -echo; : >ready; exec cat >typed";
    server.must(&["new-session", "-d", "-s", "raw", "-c", dir, keep]);
    until("the pane", || ready.exists());
    // Waits for the end of a message.
    let typed = |messages: usize| {
        let text = || fs::read_to_string(&typed).unwrap_or_default();
        until("a message", || text().matches('\r').count() >= messages);
        text()
    };
    server.tick(&hive).expect_exit(0);
    let beat = "Heartbeat: 20260131120000\r";
    assert_eq!(typed(1), beat);

    hive.at("2026-01-31T12:06:00Z");
    server.tick(&hive).expect_exit(0);
    let warned = format!("Heartbeat: 20260131120600\n\nINACTIVE \\(warn, 360 s\\): {ADVICE}\\r");
    matches(&format!("{beat}{warned}"), &typed(2));

    // An attempt, and no heartbeat.
    hive.at("2026-01-31T12:11:00Z");
    server.tick(&hive).expect_exit(1);
    let before = typed(3);
    matches(&format!("{beat}{warned}{}", attempt(1, "660", false)), &before);
    assert!(!hive.events().iter().any(|event| event["event_type"] == "HookFailed"), "{:#?}", hive.events());

    // The pane is gone: the watchdog still works, and the failure of the hook is recorded.
    server.must(&["kill-session", "-t", "=raw"]);
    hive.run("checkpoint", &["Back"]).expect_exit(0);
    server.tick(&hive);
    let failed = hive.events().pop().expect("an event");
    assert_eq!(failed["event_type"], "HookFailed", "{failed:#}");
    assert!(failed["payload"]["reason"].as_str().is_some_and(|why| why.contains("no pane raw:0.0")), "{failed:#}");
}

/// A hook that makes a try at once, without interrupting or saving.
fn kick<'a>(told: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut all = vec![("HF_CALL", "try"), ("HF_CODE", "INACTIVE"), ("HF_KICK_INTERRUPT", ""), ("HF_KICK_SAVE", "")];
    all.extend(told);
    all
}

#[test]
fn what_is_typed_is_text_and_goes_to_the_named_pane_only() {
    if !can("what is typed into a pane", &[Need::Tool("tmux")]) {
        return;
    }
    let server = Server::start();
    for text in ["Enter", "C-c", "-X cancel;", "a; kill-server ;", "$(id) `id` \"'\\ #{pane_id}", "起きてください;"]
    {
        let kicked = server.hook("kick-tmux", &kick(&[("HF_KICK_TEXT", text)]));
        assert_eq!((kicked.code, kicked.stderr.as_str()), (Some(0), ""), "{text}");
        server.shows(text, 2);
    }
    let told = [("HF_KICK_TEXT", "one\n\ntwo\u{3}\u{1b}[A"), ("HF_TMUX_ONE_LINE", "1")];
    assert_eq!(server.hook("kick-tmux", &kick(&told)).code, Some(0));
    server.shows("one | two[A", 2);
    // The pane is in copy mode.
    server.must(&["copy-mode", "-t", "=work:"]);
    assert_eq!(server.hook("kick-tmux", &kick(&[("HF_KICK_TEXT", "Wake up")])).code, Some(0));
    server.shows("Wake up", 2);
    // Not a try, or another agent: nothing is typed.
    let before = server.lines();
    for call in ["beat", "warning", "anomaly", "reminder", "cleared", ""] {
        assert_eq!(server.hook("kick-tmux", &kick(&[("HF_CALL", call)])).code, Some(0), "{call}");
    }
    let told = [("HF_TMUX_AGENT", "main"), ("HF_ANOMALY_AGENT", "builder")];
    for name in ["kick-tmux", "deliver-tmux"] {
        assert_eq!(server.hook(name, &kick(&told)).code, Some(0), "{name}");
    }
    // `wor` is a prefix of an existing session; the others do not exist at all.
    for target in ["", "wor", "work:7", "work:0.5", "%77", "elsewhere:0.0"] {
        // A call for which nothing would be typed fails, too: the hook does not work.
        for call in ["try", "giving_up", "anomaly", "reminder"] {
            let refused = server.hook("kick-tmux", &[("HF_CALL", call), ("HF_TMUX_TARGET", target)]);
            assert_eq!((refused.code, refused.stderr.lines().count()), (Some(1), 1), "{target}: {refused:#?}");
            assert!(refused.stderr.contains(target), "{refused:#?}");
        }
    }
    assert_eq!(server.hook("deliver-tmux", &[]).code, Some(1), "nothing on standard input");
    assert_eq!(server.lines(), before);
}

/// Records every byte that is typed, and answers heartbeats with activity logs unless a file tells it to be silent.
const AGENT: &str = r#"
stty raw -echo
: >ready
tee -a typed | while IFS= read -r -d $'\r' message; do
  first=${message%%$'\n'*}
  case $first in
    'Heartbeat: '*)
      [ -e asleep ] || { echo work >new.md && mv new.md "ai-works/artifacts/theme/histories/${first#Heartbeat: }.md"; }
      ;;
  esac
done
"#;

const CONF: &str = "INTERVAL_SECONDS=1\nINACTIVITY_WARNING_THRESHOLD=$((INTERVAL_SECONDS * 4))\n\
                    INACTIVITY_STOP_THRESHOLD=8\nINTROSPECTION_THRESHOLD=600\nMONITORED_DIRS=(\"artifacts\")\n\
                    MAX_LOG_DAYS=30\nMAX_RECOVERY_ATTEMPTS=3\nMAX_RECOVERY_WAIT_CYCLES=2\n";

/// A directory with a tree, an agent in the session `agent`, and a heartbeat with the real clock, nine hours east.
struct Live {
    hive: TestVault,
    server: Server,
}

impl Live {
    fn start() -> Live {
        let live = Live { hive: TestVault::empty(), server: Server::start() };
        let histories = live.path("ai-works/artifacts/theme/histories");
        fs::create_dir_all(&histories).expect("a directory");
        fs::write(live.path("agent.sh"), AGENT).expect("a file");
        fs::write(live.path("heartbeat.conf"), CONF).expect("a file");
        let dir = live.hive.dir().to_str().expect("UTF-8");
        live.server.must(&["new-session", "-d", "-s", "agent", "-c", dir, "bash agent.sh"]);
        live.until("the agent", || live.path("ready").exists());
        live
    }

    fn path(&self, name: &str) -> PathBuf {
        self.hive.dir().join(name)
    }

    /// A command in this directory, with the real clock.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let bin = binary("").parent().expect("a directory").display().to_string();
        command.current_dir(self.hive.dir()).env_clear().envs([
            ("PATH", format!("{bin}:/usr/local/bin:/usr/bin:/bin").as_str()),
            ("HOME", self.hive.user_home().to_str().expect("UTF-8")),
            ("USER", "jo"),
            ("TZ", "JST-9"),
            ("TMUX_TMPDIR", self.server.sockets.path().to_str().expect("UTF-8")),
            ("HF_TMUX_SOCKET", "hf"),
            ("HF_TMUX_PAUSE", "0.05"),
            ("HF_KICK_PAUSE", "0.1"),
            ("HF_KICK_SAVE_WAIT", "0.1"),
        ]);
        command.stdin(Stdio::null());
        command
    }

    /// `heartbeat.sh ACTION`.
    #[track_caller]
    fn heartbeat(&self, action: &str) -> Reply {
        let reply = Reply::of(self.command(&script("heartbeat.sh")).arg(action).output().expect("the script runs"));
        assert_eq!(reply.code, Some(0), "{reply:#?}");
        reply
    }

    fn status(&self) -> Reply {
        Reply::of(self.command(binary("status").to_str().expect("UTF-8")).output().expect("the command runs"))
    }

    fn typed(&self) -> String {
        String::from_utf8(fs::read(self.path("typed")).unwrap_or_default()).expect("UTF-8")
    }

    fn log(&self) -> String {
        let all = fs::read_dir(self.path("ai-works/logs")).into_iter().flatten();
        all.map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a log")).collect()
    }

    fn count(&self, kind: &str) -> usize {
        self.hive.events().iter().filter(|event| event["event_type"] == kind).count()
    }

    /// Waits for something, and shows what happened until then if it does not come.
    #[track_caller]
    fn until(&self, what: &str, so: impl Fn() -> bool) {
        assert!(comes(so), "{what} did not come\n{}\n{:?}", self.log(), self.typed());
    }

    /// Waits until this many more ticks are in the log.
    #[track_caller]
    fn ticks(&self, more: usize) {
        let ticks = || self.log().matches("] [HEARTBEAT] ").count();
        let wanted = ticks() + more;
        self.until("a tick", || ticks() >= wanted);
    }
}

/// H13, H14: the whole life of a heartbeat with an agent that knows only files and a pane.
#[test]
fn heartbeat_sh_beats_recovers_gives_up_and_beats_again() {
    if !can("a heartbeat in a pane", &[Need::Tool("tmux"), Need::Tool("flock")]) {
        return;
    }
    let live = Live::start();
    live.heartbeat("start");
    assert!(live.typed().starts_with("Heartbeat: 20"), "the first heartbeat comes at once: {:?}", live.typed());
    // The agent answers.
    live.until("three activity logs", || live.count("ActivityLogged") >= 3);
    assert!(live.heartbeat("status").stdout.starts_with("running since "));

    // Silence, three tries, giving up.
    fs::write(live.path("asleep"), "").expect("a file");
    live.until("giving up", || live.count("EscalationRequired") == 1);
    assert_eq!((live.count("RecoveryAttempted"), live.count("AnomalyDetected")), (3, 1));
    let interrupts = || live.typed().matches('\u{1b}').count();
    live.until("the last interrupt", || interrupts() == 8);
    let typed = live.typed();
    live.ticks(3);
    assert_eq!(live.typed(), typed, "nothing is typed after giving up");
    assert_eq!(live.count("EscalationRequired"), 1);
    let escalations = || live.status().all("PROBLEM").iter().filter(|line| line.contains(" escalation ESC-")).count();
    assert_eq!(escalations(), 1, "{:#?}", live.status());

    // A person comes back: a file appears.
    fs::remove_file(live.path("asleep")).expect("our file");
    let id = fs::read_to_string(live.path("ai-works/stats/current_heartbeat_id.txt")).expect("an id");
    fs::write(live.path(&format!("ai-works/artifacts/theme/histories/{}.md", id.trim())), "back\n").expect("a log");
    live.until("the end of the anomaly", || live.count("AnomalyCleared") == 1);
    assert_eq!(escalations(), 0, "{:#?}", live.status());
    let answered = live.count("ActivityLogged");
    live.until("answers to new heartbeats", || live.count("ActivityLogged") >= answered + 2);
    let stopped = live.heartbeat("stop");
    assert!(stopped.stdout.starts_with("stopped (pid "), "{stopped:#?}");
    assert_eq!(live.hive.events().pop().expect("an event")["event_type"], "AgentStopped");
    assert_eq!(live.count("HookFailed"), 0);

    // Every byte that reached the pane.
    let beat = format!(r"Heartbeat: {ID}\r");
    let warned = format!("Heartbeat: {ID}\n\nINACTIVE \\(warn, [4-8] s\\): {ADVICE}\\r");
    let tries = [1, 2, 3].map(|number| attempt(number, r"\d+", true)).concat();
    matches(&format!(r"(?:{beat}){{3,}}(?:{warned})+{tries}\x1b\x1b(?:{beat}){{2,}}"), &live.typed());
    // The log tells the same story, in this order.
    let log = live.log();
    let mut rest = log.as_str();
    for line in [
        "[NOTICE] created the vault ",
        "[HEARTBEAT] Heartbeat: ",
        "[WARNING] INACTIVE agent:main for ",
        "[ERROR] INACTIVE agent:main for ",
        "[WARNING] recovery of agent:main, try 1 of 3",
        "[WARNING] recovery of agent:main, try 2 of 3",
        "[WARNING] recovery of agent:main, try 3 of 3",
        "[ERROR] gave up on agent:main",
        "[NOTICE] INACTIVE agent:main is over",
        "[HEARTBEAT] Heartbeat: ",
        "[NOTICE] heartbeat stopped",
    ] {
        rest = rest.split_once(line).unwrap_or_else(|| panic!("{line} is missing in {rest}")).1;
    }
}
