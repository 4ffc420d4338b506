//! hf-watchdog --quiet, --install, --uninstall and --installed. Stand-ins for crontab and systemctl keep the user's own
//! crontab out of it; `tests/system` does the same with the real programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::test_vault::{Reply, TestVault, binary, write_private};
use crate::support::watchdog_fixture::{at, configured, moment};

/// Keeps a crontab in the file beside it, as crontab(1) does.
const CRONTAB: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
file=${0%/*}/table
case $1 in
-l) if [ -f "$file" ]; then cat "$file"; else echo "no crontab for jo" >&2; exit 1; fi ;;
-r) rm "$file" ;;
-) cat >"$file" ;;
*) exit 2 ;;
esac
"#;

/// Knows whether a timer is active, and keeps what it was asked.
const SYSTEMCTL: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
here=${0%/*}
echo "$*" >>"$here/asked"
case $2 in
is-active) if [ -f "$here/active" ]; then echo active; else echo inactive; exit 3; fi ;;
start | restart) touch "$here/active" ;;
disable) rm -f "$here/active" ;;
esac
"#;

/// A directory with stand-ins, the only one that the commands search.
struct Tools {
    dir: tempfile::TempDir,
}

impl Tools {
    fn new(programs: &[(&str, &str)]) -> Tools {
        let tools = Tools { dir: tempfile::tempdir().unwrap() };
        for (name, text) in programs {
            let file = tools.dir.path().join(name);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        tools
    }

    fn cron() -> Tools {
        Tools::new(&[("crontab", CRONTAB)])
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn table(&self) -> String {
        fs::read_to_string(self.file("table")).unwrap_or_default()
    }

    fn set_table(&self, text: &str) {
        fs::write(self.file("table"), text).unwrap();
    }

    fn watchdog(&self, hive: &TestVault, args: &[&str]) -> Reply {
        self.run(hive, &binary("watchdog"), args)
    }

    /// Runs a copy of the program.
    fn run(&self, hive: &TestVault, program: &Path, args: &[&str]) -> Reply {
        let mut process = Command::new(program);
        process.args(args).current_dir(hive.dir()).env_clear();
        process.envs(hive.process("watchdog").get_envs().filter_map(|(name, value)| Some((name, value?))));
        Reply::of(process.env("PATH", self.dir.path()).output().unwrap())
    }
}

/// The reply of an installation in the crontab: only the missing daemon may be wrong with it.
#[track_caller]
fn expect_installed(reply: Reply) -> Reply {
    let no_daemon = reply.all("CHECK").iter().any(|check| check.starts_with("service failed"));
    assert_eq!(reply.get("STATUS"), if no_daemon { "INCOMPLETE" } else { "INSTALLED" }, "{reply:#?}");
    for check in reply.all("CHECK") {
        assert!(!check.contains(" failed ") || check.starts_with("service failed no cron daemon runs"), "{check}");
    }
    reply.expect_exit(i32::from(no_daemon))
}

fn name(path: &Path) -> String {
    fs::canonicalize(path).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_quiet_tick_prints_nothing_whatever_it_finds() {
    let mut hive = configured("");
    let quiet = |reply: Reply, code: i32| {
        assert_eq!((reply.code, reply.stdout.as_str(), reply.stderr.as_str()), (Some(code), "", ""));
    };
    quiet(at(&mut hive, 0, "hf-watchdog --quiet"), 0);
    hive.run("checkpoint", &["Here"]).expect_exit(0);
    quiet(at(&mut hive, 301, "hf-watchdog --quiet"), 0);
    for second in [601, 661, 721] {
        quiet(at(&mut hive, second, "hf-watchdog --quiet"), 1);
    }
    quiet(at(&mut hive, 722, "hf-watchdog --quiet --check --json"), 1);
    assert_eq!(hive.run("watchdog", &[]).get("STATUS"), "ANOMALY", "the quiet ticks did their work");
    hive.run("stop", &["harm"]).expect_exit(0);
    quiet(at(&mut hive, 723, "hf-watchdog --quiet"), 0);
}

#[test]
fn errors_of_a_quiet_watchdog_go_to_standard_error() {
    let hive = TestVault::new();
    let gone = hive.dir().join("gone");
    for (args, code, status) in [
        (vec!["--quiet", "--vault", gone.to_str().unwrap()], 7, "NO_VAULT"),
        (vec!["--quiet", "--no-such-option"], 2, "USAGE"),
    ] {
        let reply = hive.run("watchdog", &args);
        assert_eq!((reply.code, reply.stdout.as_str()), (Some(code), ""), "{reply:#?}");
        assert!(reply.stderr.starts_with(&format!("EXIT:{code}\nSTATUS:{status}\nNEXT:")), "{reply:#?}");
        // Without the option the same reply is on standard output.
        let loud = hive.run("watchdog", &args[1..]);
        assert_eq!((loud.stdout.as_str(), loud.stderr.as_str()), (reply.stderr.as_str(), ""));
    }
    let mut log = fs::read(hive.segment()).unwrap();
    log[10] ^= 1;
    write_private(&hive.segment(), &log);
    let reply = hive.run("watchdog", &["--quiet"]);
    assert_eq!((reply.code, reply.stdout.as_str()), (Some(4), ""), "{reply:#?}");
    assert!(reply.stderr.starts_with("EXIT:4\nSTATUS:CORRUPT\n"), "{reply:#?}");
    let json = hive.run("watchdog", &["--quiet", "--json"]);
    assert!(json.stdout.is_empty() && json.stderr.starts_with('{'), "{json:#?}");
}

#[test]
fn a_quiet_watchdog_prints_a_standing_warning_when_it_begins_and_as_a_reminder() {
    let mut hive = TestVault::new();
    let good = fs::read_to_string(hive.config()).unwrap();
    let mut tick = |second: i64, settings: &str| {
        hive.configure(settings);
        let reply = at(&mut hive, second, "hf-watchdog --quiet");
        assert_eq!((reply.code, reply.stdout.as_str()), (Some(0), ""), "{reply:#?}");
        reply.stderr
    };
    assert_eq!(tick(0, &good), "");
    let broken = "watchdog: [";
    let warned = tick(60, broken);
    assert!(warned.starts_with("warning: ") && warned.contains("hiveforge.config.yaml"), "{warned}");
    assert_eq!(tick(120, broken), "");
    assert_eq!(tick(60 + 3599, broken), "");
    assert_eq!(tick(60 + 3600, broken), warned, "a reminder after watchdog.remind_every seconds");
    assert_eq!(tick(60 + 3660, broken), "");
    assert_eq!(tick(60 + 3720, &good), "");
    assert_eq!(tick(60 + 3780, broken), warned, "it ended and begins again");
    // A check changes nothing, so it does not remember what it printed.
    let before = hive.contents();
    for _ in 0..2 {
        let checked = hive.run("watchdog", &["--quiet", "--check"]);
        assert_eq!((checked.stdout.as_str(), checked.stderr.as_str()), ("", warned.as_str()));
    }
    assert_eq!(hive.contents(), before);
}

#[test]
fn a_quiet_watchdog_tells_once_that_hooks_are_refused() {
    let original = configured("watchdog:\n  hooks:\n    on_beat: 'true'\n");
    let mut copy = original.copy();
    copy.run("checkpoint", &["Here"]).expect_exit(0);
    let first = at(&mut copy, 60, "hf-watchdog --quiet");
    assert!(first.stderr.contains("hf-config trust") && first.stdout.is_empty(), "{first:#?}");
    let second = at(&mut copy, 120, "hf-watchdog --quiet");
    assert_eq!((second.stdout.as_str(), second.stderr.as_str()), ("", ""));
}

#[test]
fn a_quiet_loop_prints_errors_only() {
    let hive = TestVault::new();
    let mut quiet = hive.process("watchdog");
    quiet.args(["--quiet", "--every", "1"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = quiet.spawn().unwrap();
    let mut errors = std::io::BufReader::new(child.stderr.take().unwrap());
    // Its first tick has begun when this one gets the lock, or begins later.
    hive.run("watchdog", &[]).expect_exit(0);
    fs::rename(hive.vault(), hive.dir().join("elsewhere")).unwrap();
    // A tick during the move may fail in another way.
    let mut lines = std::io::BufRead::lines(&mut errors).map(Result::unwrap);
    let until_gone: Vec<String> = lines.by_ref().take_while(|line| line != "STATUS:NO_VAULT").collect();
    let is_error = |line: &String| !["EXIT:0", "EXIT:1"].contains(&line.as_str());
    assert!(until_gone.iter().all(is_error), "{until_gone:?}");
    crate::support::job_fixture::kill(child.id() as i32, rustix::process::Signal::TERM);
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stdout), (Some(0), Vec::new()));
}

#[test]
fn an_entry_is_installed_once_and_removed_without_a_trace() {
    let (hive, tools) = (TestVault::new(), Tools::cron());
    let before = "# mine\nMAILTO=jo\n\n5 4 * * * backup \\% x\n";
    tools.set_table(before);
    let none = tools.watchdog(&hive, &["--installed"]).expect_exit(1);
    assert_eq!(
        none.stdout,
        format!(
            "EXIT:1\nSTATUS:NOT_INSTALLED\nNEXT:ASK operator\nSUM:no timer runs the watchdog of {}\n\
             CHECK:entry failed neither cron nor systemd has one do=hf-watchdog --install cron\nWATCHDOG:never\n",
            name(&hive.vault())
        )
    );
    let installed = expect_installed(tools.watchdog(&hive, &["--install", "cron"]));
    let table = tools.table();
    let entry = table.strip_prefix(before).expect("the other lines stay").trim_end();
    assert!(entry.starts_with(&format!(
        "* * * * * HOME={} PATH={}",
        hive.user_home().display(),
        tools.dir.path().display()
    )));
    assert!(entry.ends_with(&format!(" --quiet --vault {}", name(&hive.vault()))), "{entry}");
    assert_eq!(installed.all("TIMER"), [format!("cron at=crontab:5 entry={entry}")]);
    let entry_check = "entry ok crontab:5 alone";
    let checks = installed.all("CHECK");
    assert_eq!((checks[0], checks[4]), (entry_check, "last_tick unknown none yet; the timer runs every minute"));

    // Twice is the same as once.
    let again = expect_installed(tools.watchdog(&hive, &["--install", "cron"]));
    assert_eq!((tools.table(), again.all("TIMER")), (table.clone(), installed.all("TIMER")));
    // What the entry runs makes a tick, without a word.
    let command = entry.strip_prefix("* * * * * ").unwrap();
    let ran =
        Command::new("/bin/sh").args(["-c", command]).current_dir("/").env_clear().env("HF_NOW", hive.now()).output();
    let ran = Reply::of(ran.unwrap());
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(0), "", ""));
    let checked = expect_installed(tools.watchdog(&hive, &["--installed"]));
    assert_eq!(checked.all("CHECK")[4], "last_tick ok 0 seconds ago");
    assert_eq!(checked.get("WATCHDOG"), "2026-01-31T12:00:00Z age_seconds=0");

    let removed = tools.watchdog(&hive, &["--uninstall", "cron"]).expect_exit(0);
    assert_eq!((removed.get("STATUS"), tools.table().as_str()), ("UNINSTALLED", before));
    let again = tools.watchdog(&hive, &["--uninstall", "cron"]).expect_exit(0);
    assert!(again.get("SUM").ends_with("nothing was changed"), "{again:#?}");
    assert_eq!(tools.table(), before);
}

#[test]
fn a_crontab_with_nothing_else_is_removed_with_its_entry() {
    let (hive, tools) = (TestVault::new(), Tools::cron());
    expect_installed(tools.watchdog(&hive, &["--install", "cron"]));
    assert_eq!(tools.table().lines().count(), 1);
    tools.watchdog(&hive, &["--uninstall", "cron"]).expect_exit(0);
    assert!(!tools.file("table").exists());
}

#[test]
fn an_older_entry_is_replaced_and_that_of_another_vault_stays() {
    let (hive, other, tools) = (TestVault::new(), TestVault::new(), Tools::cron());
    expect_installed(tools.watchdog(&other, &["--install", "cron"]));
    let others = tools.table();
    let by_hand = |path: &Path| format!("* * * * * HF_VAULT=\"{}\" /old/hf-watchdog >/dev/null\n", path.display());
    tools.set_table(&format!("{}{others}{}# end\n", by_hand(&hive.vault()), by_hand(&hive.vault())));
    let twice = tools.watchdog(&hive, &["--installed"]).expect_exit(1);
    assert_eq!(
        twice.all("CHECK")[0],
        "entry failed several timers: crontab:1, crontab:3 do=hf-watchdog --install cron"
    );
    assert_eq!(twice.all("CHECK")[1], "program failed /old/hf-watchdog is not a program do=hf-watchdog --install cron");
    assert_eq!(twice.all("NOTICE").len(), 2, "both hide errors: {twice:#?}");
    expect_installed(tools.watchdog(&hive, &["--install", "cron", "--works", "works"]));
    let table = tools.table();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!((lines.len(), lines[1], lines[2]), (3, others.trim_end(), "# end"), "{table}");
    let works = fs::canonicalize(hive.dir()).unwrap().join("works");
    assert!(lines[0].ends_with(&format!(" --vault {} --works {}", name(&hive.vault()), works.display())), "{table}");
    // Another interval.
    hive.configure("watchdog:\n  interval_seconds: 250\n");
    expect_installed(tools.watchdog(&hive, &["--install", "cron"]));
    assert!(tools.table().starts_with("*/5 * * * * "), "{}", tools.table());
    assert_eq!(tools.table().lines().count(), 3);
    hive.configure("watchdog:\n  interval_seconds: 5\n");
    let rare = expect_installed(tools.watchdog(&hive, &["--install", "cron"]));
    assert_eq!(rare.get("NOTICE"), "watchdog.interval_seconds is 5, but the timer runs every minute");
}

#[test]
fn a_vault_with_an_odd_name_gets_an_entry_that_works() {
    let (mut hive, tools) = (TestVault::empty(), Tools::cron());
    hive.at(&moment(0).to_string());
    let odd = hive.dir().join("a 50% $HOME `id` \"it's\" *");
    fs::create_dir(&odd).unwrap();
    let vault = odd.join("Vault");
    hive.run("init", &[vault.to_str().unwrap()]).expect_exit(0);
    let named = ["--vault", vault.to_str().unwrap()];
    expect_installed(tools.watchdog(&hive, &[&["--install", "cron"][..], &named].concat()));
    let table = tools.table();
    // cron itself replaces these two characters.
    let command = table.trim_end().strip_prefix("* * * * * ").unwrap().replace("\\%", "%");
    let ran = Command::new("/bin/sh").args(["-c", &command]).env_clear().env("HF_NOW", hive.now()).output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
    let checked = expect_installed(tools.watchdog(&hive, &[&["--installed"][..], &named].concat()));
    assert!(checked.all("CHECK").contains(&"last_tick ok 0 seconds ago"), "{checked:#?}");
    tools.watchdog(&hive, &[&["--uninstall", "cron"][..], &named].concat()).expect_exit(0);
    assert_eq!(tools.table(), "");

    let line_end = hive.dir().join("a\nb");
    hive.run("init", &[line_end.to_str().unwrap()]).expect_exit(0);
    let refused = tools.watchdog(&hive, &["--install", "cron", "--vault", line_end.to_str().unwrap()]).expect_exit(2);
    assert!(refused.get("SUM").starts_with("cron cannot run this command: \\\\n in /"), "{refused:#?}");
    assert_eq!(tools.table(), "");
}

#[test]
fn what_cannot_be_understood_is_not_touched() {
    let (hive, tools) = (TestVault::new(), Tools::cron());
    let together = format!("* * * * * hf-watchdog --vault {} | logger\n", hive.vault().display());
    tools.set_table(&together);
    for option in ["--install", "--uninstall"] {
        let refused = tools.watchdog(&hive, &[option, "cron"]).expect_exit(2);
        assert!(
            refused.get("SUM").starts_with("line 1 of the crontab runs this watchdog together with"),
            "{refused:#?}"
        );
        assert_eq!(tools.table(), together);
    }
    let unknown = "* * * * * cd hive && hf-watchdog\n";
    tools.set_table(unknown);
    let reply = expect_installed(tools.watchdog(&hive, &["--install", "cron"]));
    assert_eq!(reply.get("NOTICE"), "crontab:1 runs a watchdog, but its vault cannot be told");
    assert!(tools.table().starts_with(unknown));
    // A crontab that cannot be read is never overwritten.
    let broken = Tools::new(&[(
        "crontab",
        "#!/bin/sh\n[ $1 = -l ] || echo written >\"$0.written\"\necho 'You (jo) may not' >&2\nexit 1\n",
    )]);
    let refused = broken.watchdog(&hive, &["--install", "cron"]).expect_exit(111);
    assert_eq!(refused.get("SUM"), "cannot read the crontab: You (jo) may not");
    assert!(!broken.file("crontab.written").exists());
    assert_eq!(broken.watchdog(&hive, &["--installed"]).expect_exit(1).get("STATUS"), "INCOMPLETE");
    let none = Tools::new(&[]).watchdog(&hive, &["--install", "cron"]).expect_exit(111);
    assert!(none.get("SUM").starts_with("crontab not found; install cron, or use --install systemd"), "{none:#?}");
}

#[test]
fn only_an_operator_installs_or_removes_a_timer() {
    let (hive, tools) = (TestVault::new(), Tools::cron());
    for args in [["--install", "cron"], ["--uninstall", "cron"], ["--install", "systemd"], ["--uninstall", "systemd"]] {
        let mut agent = hive.process("watchdog");
        let refused = Reply::of(agent.args(args).env("PATH", tools.dir.path()).env("HF_AGENT", "a").output().unwrap());
        assert_eq!(refused.expect_exit(3).get("REASON"), "operator_only");
    }
    assert_eq!(tools.table(), "");
    assert!(!hive.user_home().join(".config/systemd").exists());
    for args in
        [&["--install", "at"][..], &["--install"], &["--install", "cron", "--every", "60"], &["--installed", "--check"]]
    {
        tools.watchdog(&hive, args).expect_exit(2);
    }
}

#[test]
fn an_entry_can_be_removed_after_its_vault() {
    let (hive, tools) = (TestVault::new(), Tools::cron());
    expect_installed(tools.watchdog(&hive, &["--install", "cron"]));
    fs::remove_dir_all(hive.vault()).unwrap();
    let vault = hive.vault().to_str().unwrap().to_owned();
    let checked = tools.watchdog(&hive, &["--installed", "--vault", &vault]).expect_exit(1);
    assert!(checked.all("CHECK").iter().any(|check| check.starts_with("vault failed no vault at")), "{checked:#?}");
    tools.watchdog(&hive, &["--uninstall", "cron", "--vault", &vault]).expect_exit(0);
    assert_eq!(tools.table(), "");
}

#[test]
fn units_are_written_enabled_and_removed() {
    let hive = TestVault::new();
    let tools = Tools::new(&[("systemctl", SYSTEMCTL)]);
    let dir = hive.user_home().join(".config/systemd/user");
    let units = || -> Vec<String> {
        let listed = fs::read_dir(&dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = listed.collect();
        names.sort();
        names
    };
    // Made by hand, for this vault and for another one.
    fs::create_dir_all(&dir).unwrap();
    let by_hand = |vault: &str| format!("[Service]\nEnvironment=HF_VAULT={vault}\nExecStart=/usr/bin/hf-watchdog\n");
    fs::write(dir.join("hf-watchdog.service"), by_hand(hive.vault().to_str().unwrap())).unwrap();
    fs::write(dir.join("hf-watchdog.timer"), "[Timer]\nOnCalendar=minutely\n").unwrap();
    fs::write(dir.join("hf-watchdog-other.service"), by_hand("/other")).unwrap();

    let installed = tools.watchdog(&hive, &["--install", "systemd"]).expect_exit(0);
    assert_eq!(installed.get("STATUS"), "INSTALLED", "{installed:#?}");
    let names = units();
    assert_eq!((names.len(), names[2].as_str()), (3, "hf-watchdog-other.service"), "{names:?}");
    let timer = names[1].as_str();
    assert!(timer.starts_with("hf-watchdog-") && timer.ends_with(".timer"), "{names:?}");
    let asked = fs::read_to_string(tools.file("asked")).unwrap();
    let expected = format!(
        "--user disable --now hf-watchdog.timer\n--user daemon-reload\n--user enable {timer}\n--user restart {timer}\n\
         --user is-active {timer}\n"
    );
    assert_eq!(asked, expected);
    let again = tools.watchdog(&hive, &["--install", "systemd"]).expect_exit(0);
    assert_eq!((units(), again.get("SUM")), (names.clone(), "systemd already has this entry; nothing was changed"));
    assert_eq!(tools.watchdog(&hive, &["--installed"]).expect_exit(0).get("STATUS"), "INSTALLED");
    fs::remove_file(tools.file("active")).unwrap();
    let idle = tools.watchdog(&hive, &["--installed"]).expect_exit(1);
    let remedy = format!("systemctl --user daemon-reload && systemctl --user enable --now {timer}");
    assert!(
        idle.all("CHECK").contains(&format!("service failed {timer} is inactive do={remedy}").as_str()),
        "{idle:#?}"
    );
    let removed = tools.watchdog(&hive, &["--uninstall", "systemd"]).expect_exit(0);
    assert_eq!((removed.get("STATUS"), units()), ("UNINSTALLED", vec!["hf-watchdog-other.service".to_owned()]));
}

#[test]
fn units_that_nothing_starts_are_not_called_installed() {
    let hive = TestVault::new();
    let no_bus = "#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\nexit 1\n";
    for (tools, why) in [
        (Tools::new(&[]), "systemctl not found"),
        (Tools::new(&[("systemctl", no_bus)]), "systemctl: Failed to connect to bus: No medium found"),
    ] {
        let reply = tools.watchdog(&hive, &["--install", "systemd"]).expect_exit(1);
        assert_eq!(reply.get("STATUS"), "INCOMPLETE");
        let timer = reply.get("TIMER").split("user/").nth(1).unwrap().split(' ').next().unwrap().to_owned();
        let left = format!(
            "service failed {timer} was not started: {why} do=systemctl --user daemon-reload && systemctl --user enable \
             --now {timer}"
        );
        assert!(reply.all("CHECK").contains(&left.as_str()), "{reply:#?}");
        assert!(hive.user_home().join(".config/systemd/user").join(&timer).is_file());
        tools.watchdog(&hive, &["--installed"]).expect_exit(1);
    }
}

#[test]
fn two_timers_are_one_too_many() {
    let hive = TestVault::new();
    let tools = Tools::new(&[("crontab", CRONTAB), ("systemctl", SYSTEMCTL)]);
    tools.watchdog(&hive, &["--install", "systemd"]).expect_exit(0);
    let both = tools.watchdog(&hive, &["--install", "cron"]).expect_exit(1);
    let entry = both.all("CHECK")[0];
    assert!(entry.starts_with("entry failed several timers: crontab:1, /"), "{entry}");
    assert!(entry.ends_with(" do=hf-watchdog --uninstall systemd"), "{entry}");
    tools.watchdog(&hive, &["--uninstall", "systemd"]).expect_exit(0);
    expect_installed(tools.watchdog(&hive, &["--installed"]));
}

#[test]
fn hooks_that_would_not_be_run_are_named() {
    let original = TestVault::new();
    original.configure("watchdog:\n  hooks:\n    on_beat: 'true'\n");
    let (copy, tools) = (original.copy(), Tools::cron());
    let reply = tools.watchdog(&copy, &["--install", "cron"]).expect_exit(1);
    let hooks = reply.all("CHECK").into_iter().find(|check| check.starts_with("hooks failed ")).unwrap();
    assert!(hooks.ends_with(" do=hf-config trust"), "{hooks}");
    copy.trust();
    let reply = expect_installed(tools.watchdog(&copy, &["--install", "cron"]));
    assert!(reply.all("CHECK").contains(&"hooks ok the commands in the settings are run"), "{reply:#?}");
}

#[test]
fn the_program_in_the_entry_is_the_one_that_runs_now() {
    let (hive, tools) = (TestVault::new(), Tools::cron());
    let bin = tempfile::tempdir().unwrap();
    let real = fs::canonicalize(binary("watchdog")).unwrap();
    fs::copy(&real, bin.path().join("hf")).unwrap();
    let run = |name: &str, args: &[&str]| tools.run(&hive, &bin.path().join(name), args);
    let bin_name = name(bin.path());
    // All commands in one program, first without a link for this one.
    expect_installed(run("hf", &["watchdog", "--install", "cron"]));
    assert!(tools.table().contains(&format!(" {bin_name}/hf watchdog --quiet --vault ")), "{}", tools.table());
    std::os::unix::fs::symlink("hf", bin.path().join("hf-watchdog")).unwrap();
    expect_installed(run("hf-watchdog", &["--install", "cron"]));
    assert!(tools.table().contains(&format!(" {bin_name}/hf-watchdog --quiet --vault ")), "{}", tools.table());
    assert_eq!(tools.table().lines().count(), 1);
}

#[test]
fn systemd_itself_reads_the_units_of_odd_paths() {
    let hive = TestVault::new();
    let odd = hive.dir().join("a 50% #x");
    fs::create_dir(&odd).unwrap();
    fs::copy(fs::canonicalize(binary("watchdog")).unwrap(), odd.join("hf-watchdog")).unwrap();
    let vault = odd.join("$HOME it's \"here\" \\x Vault");
    hive.run("init", &[vault.to_str().unwrap()]).expect_exit(0);
    let tools = Tools::new(&[("systemctl", SYSTEMCTL)]);
    let named = ["--install", "systemd", "--vault", vault.to_str().unwrap()];
    let reply = tools.run(&hive, &odd.join("hf-watchdog"), &named);
    assert_eq!(reply.expect_exit(0).get("STATUS"), "INSTALLED");
    let dir = hive.user_home().join(".config/systemd/user");
    let mut files: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    // It need not be there. It also checks that the program exists, so the path is what we meant.
    let Ok(verified) = Command::new("systemd-analyze").args(["--man=no", "verify"]).args(&files).output() else {
        return;
    };
    let verified = Reply::of(verified);
    assert_eq!((verified.code, verified.stderr.as_str()), (Some(0), ""), "{}", fs::read_to_string(&files[0]).unwrap());
}
