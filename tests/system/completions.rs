//! TAB in real shells: bash, zsh and fish, each in its own pane.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;

use crate::machine::{Need, can};
use crate::test_vault::{TestVault, binary};

/// A shell in a pane of a tmux server that ends when this value is dropped.
struct Shell {
    sockets: TempDir,
}

fn completions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("man/completions")
}

impl Shell {
    /// Starts a shell without user settings in the directory of a hive, and loads its completions.
    fn start(hive: &TestVault, command: &str, load: &str) -> Self {
        let shell = Shell { sockets: tempfile::tempdir().expect("a temporary directory") };
        let path = format!("PATH={}:/usr/bin:/bin", binary("").parent().expect("a directory").display());
        let home = format!("HOME={}", hive.dir().display());
        let dir = hive.dir().display().to_string();
        let pane = ["-f", "/dev/null", "new-session", "-d", "-s", "tab", "-x", "150", "-y", "50", "-c", &dir];
        let started = shell.tmux(
            &[&pane[..], &["env", "-i", &path, &home, "TERM=xterm", "LANG=C.UTF-8", "sh", "-c", command]].concat(),
        );
        assert!(started.status.success(), "{started:?}");
        shell.enter(load);
        shell.enter("echo rea''dy");
        shell.until(|screen| screen.lines().any(|line| line == "ready"));
        shell
    }

    fn tmux(&self, args: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.args(["-u", "-L", "tab"]).args(args).env_remove("TMUX").env("TMUX_TMPDIR", self.sockets.path());
        tmux.output().expect("tmux runs")
    }

    fn enter(&self, line: &str) {
        self.tmux(&["send-keys", "-t", "tab", "-l", line]);
        self.tmux(&["send-keys", "-t", "tab", "Enter"]);
    }

    /// Types the beginning of a line and presses TAB.
    fn tab(&self, line: &str, times: usize) {
        self.tmux(&["send-keys", "-t", "tab", "C-u"]);
        self.tmux(&["send-keys", "-t", "tab", "-l", line]);
        for _ in 0..times {
            self.tmux(&["send-keys", "-t", "tab", "Tab"]);
        }
    }

    fn screen(&self) -> String {
        let shown = self.tmux(&["capture-pane", "-p", "-J", "-t", "tab"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    }

    /// Waits until the pane shows the expected text, for at most ten seconds.
    #[track_caller]
    fn until(&self, wanted: impl Fn(&str) -> bool) {
        const LOOKS: u32 = 500;
        for _ in 0..LOOKS {
            if wanted(&self.screen()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the pane shows:\n{}", self.screen());
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn with_tasks() -> TestVault {
    let hive = TestVault::new();
    hive.run("task", &["propose", "Login form"]).expect_exit(0);
    hive.run("task", &["propose", "Login page"]).expect_exit(0);
    hive.run("require", &["propose", "Users log in"]).expect_exit(0);
    hive
}

/// Checks that hold for every shell.
fn completes(shell: &Shell) {
    let ends = |line: &'static str| move |screen: &str| screen.lines().any(|shown| shown.trim_end().ends_with(line));
    // A command, a subcommand, an option after it, a value from a fixed list.
    shell.tab("hf ver", 1);
    shell.until(ends("hf verify"));
    shell.tab("hf task cl", 1);
    shell.until(ends("hf task claim"));
    shell.tab("hf-task claim --le", 1);
    shell.until(ends("hf-task claim --lease"));
    shell.tab("hf task fail T-0001 --class tr", 1);
    shell.until(ends("hf task fail T-0001 --class transient"));
    // References of this vault.
    shell.tab("hf-require show R", 1);
    shell.until(ends("hf-require show REQ-0001"));
    // The first TAB completes the common prefix.
    shell.tab("hf task show ", 3);
    shell.until(|screen| screen.contains("T-0001") && screen.contains("T-0002"));
}

#[test]
fn bash_completes_behind_every_sub_command() {
    if !can("completion in bash", &[Need::Tool("tmux"), Need::Tool("bash")]) {
        return;
    }
    let hive = with_tasks();
    let load = format!("source {}", completions().join("bash/hf").display());
    completes(&Shell::start(&hive, "exec bash --noprofile --norc -i", &load));
}

#[test]
fn zsh_completes_behind_every_sub_command() {
    if !can("completion in zsh", &[Need::Tool("tmux"), Need::Tool("zsh")]) {
        return;
    }
    let hive = with_tasks();
    let load = format!("fpath=({} $fpath); autoload -Uz compinit; compinit -u", completions().join("zsh").display());
    completes(&Shell::start(&hive, "exec zsh -f -i", &load));
}

#[test]
fn fish_completes_behind_every_sub_command() {
    if !can("completion in fish", &[Need::Tool("tmux"), Need::Tool("fish")]) {
        return;
    }
    let hive = with_tasks();
    let load = format!("source {}", completions().join("fish/hf.fish").display());
    completes(&Shell::start(&hive, "exec fish --no-config -i", &load));
}
