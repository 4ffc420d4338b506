//! Hooks that type into a pane, on a separate tmux server.

use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

use crate::machine::{Need, can};
use crate::test_vault::{Reply, TestVault};

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
        hook.env_remove("TMUX").env("TMUX_TMPDIR", self.sockets.path()).envs([
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

fn script(name: &str) -> String {
    format!("{}/scripts/{name}", env!("CARGO_MANIFEST_DIR"))
}

const KICK: &str = "You have gone silent (INACTIVE). Run hf-status, report what you are doing with hf-checkpoint, then continue with the NEXT of your last reply.";

#[test]
fn the_heartbeat_and_the_kick_reach_a_pane_through_the_hooks() {
    if !can("typing into a pane", &[Need::Tool("tmux")]) {
        return;
    }
    let mut hive = TestVault::new();
    let hook = |name: &str| format!("HF_TMUX_SOCKET=hf HF_TMUX_TARGET=work:0.0 HF_TMUX_PAUSE=0 '{}'", script(name));
    let settings = format!(
        "watchdog:\n  interval_seconds: 600\n  hooks:\n    on_beat: \"{}\"\n    on_anomaly: \"{}\"\n",
        hook("deliver-tmux"),
        hook("kick-tmux")
    );
    hive.configure(&settings);
    hive.run("checkpoint", &["At work"]).expect_exit(0);
    let server = Server::start();
    server.tick(&hive).expect_exit(0);
    server.shows("HEARTBEAT 20260131120000 HEALTHY", 2);

    hive.at("2026-01-31T12:11:00Z");
    server.tick(&hive).expect_exit(1);
    server.shows(KICK, 2);
    server.shows(
        "HEARTBEAT 20260131121100 ANOMALY: INACTIVE 660 s, write an activity log, or a checkpoint if you are in the middle of something",
        2,
    );
    assert!(!hive.events().iter().any(|event| event["event_type"] == "HookFailed"), "{:#?}", hive.events());

    // The pane is gone: the watchdog still works, and the failure of the hook is recorded.
    server.must(&["kill-session", "-t", "=work"]);
    hive.at("2026-01-31T12:12:00Z");
    server.tick(&hive).expect_exit(1);
    let failed = hive.events().pop().expect("an event");
    assert_eq!(failed["event_type"], "HookFailed", "{failed:#}");
    assert!(failed["payload"]["reason"].as_str().is_some_and(|why| why.contains("no pane work:0.0")), "{failed:#}");
}

#[test]
fn what_is_typed_is_text_and_goes_to_the_named_pane_only() {
    if !can("what is typed into a pane", &[Need::Tool("tmux")]) {
        return;
    }
    let server = Server::start();
    for text in ["Enter", "C-c", "-X cancel;", "a; kill-server ;", "$(id) `id` \"'\\ #{pane_id}", "起きてください;"]
    {
        let kicked = server.hook("kick-tmux", &[("HF_CODE", "NEVER_SEEN"), ("HF_KICK_TEXT", text)]);
        assert_eq!((kicked.code, kicked.stderr.as_str()), (Some(0), ""), "{text}");
        server.shows(text, 2);
    }
    let lines =
        server.hook("kick-tmux", &[("HF_CODE", "DEEPWORK_UNCHECKED"), ("HF_KICK_TEXT", "one\ntwo\u{3}\u{1b}[A")]);
    assert_eq!(lines.code, Some(0));
    server.shows("one two[A", 2);
    // The pane is in copy mode.
    server.must(&["copy-mode", "-t", "=work:"]);
    assert_eq!(server.hook("kick-tmux", &[("HF_CODE", "INACTIVE")]).code, Some(0));
    server.shows(KICK, 2);
    // Not silence: nothing is typed.
    let before = server.lines();
    for code in ["RUN_SILENT", "INTROSPECTION_OVERDUE", "CLOCK_SKEW", ""] {
        assert_eq!(server.hook("kick-tmux", &[("HF_CODE", code)]).code, Some(0), "{code}");
    }
    // A reminder: nothing is typed either.
    assert_eq!(server.hook("kick-tmux", &[("HF_CODE", "INACTIVE"), ("HF_TRY", "")]).code, Some(0));
    // `wor` is a prefix of an existing session; the others do not exist at all.
    for target in ["", "wor", "work:7", "work:0.5", "%77", "elsewhere:0.0"] {
        let told = [("HF_CODE", "INACTIVE"), ("HF_TMUX_TARGET", target)];
        let refused = server.hook("kick-tmux", &told);
        assert_eq!((refused.code, refused.stderr.lines().count()), (Some(1), 1), "{target}: {refused:#?}");
    }
    assert_eq!(server.hook("deliver-tmux", &[]).code, Some(1), "nothing on standard input");
    assert_eq!(server.lines(), before);
}
