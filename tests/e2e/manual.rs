//! The manual is made from the code: man pages, completions and tables are what they should be.
//!
//! `HF_UPDATE=1 cargo test --test e2e manual` writes them anew.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::Shell;
use hiveforge::base::{EntityType, limits};
use hiveforge::event::kind::{About, TABLE};
use hiveforge::machine;
use hiveforge::ui::commands::COMMANDS;
use hiveforge::ui::{Key, Status};
use hiveforge::vault::config::Setting;

use crate::hive::{Hive, Reply, binary};

/// Each command's source, for its arguments alone.
macro_rules! commands {
    ($($file:literal => $module:ident),* $(,)?) => {
        $(#[allow(dead_code)]
        #[path = $file]
        mod $module;)*

        /// Every command with its arguments.
        fn all() -> Vec<clap::Command> {
            vec![$($module::Args::command()),*]
        }
    };
}

commands! {
    "../../src/bin/hf.rs" => hf,
    "../../src/bin/hf-activity.rs" => activity,
    "../../src/bin/hf-append.rs" => append,
    "../../src/bin/hf-artifact.rs" => artifact,
    "../../src/bin/hf-backup.rs" => backup,
    "../../src/bin/hf-checkpoint.rs" => checkpoint,
    "../../src/bin/hf-constraint.rs" => constraint,
    "../../src/bin/hf-decide.rs" => decide,
    "../../src/bin/hf-deepwork.rs" => deepwork,
    "../../src/bin/hf-init.rs" => init,
    "../../src/bin/hf-job.rs" => job,
    "../../src/bin/hf-lineage.rs" => lineage,
    "../../src/bin/hf-log.rs" => log,
    "../../src/bin/hf-poll.rs" => poll,
    "../../src/bin/hf-project.rs" => project,
    "../../src/bin/hf-require.rs" => require,
    "../../src/bin/hf-resume.rs" => resume,
    "../../src/bin/hf-status.rs" => status,
    "../../src/bin/hf-stop.rs" => stop,
    "../../src/bin/hf-task.rs" => task,
    "../../src/bin/hf-verify.rs" => verify,
    "../../src/bin/hf-watchdog.rs" => watchdog,
}

fn man() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("man")
}

/// Compares a file with what the code gives, or writes it if told to.
#[expect(clippy::disallowed_methods, reason = "the test is told to write instead of compare")]
fn is_current(file: &Path, text: &str) {
    if std::env::var_os("HF_UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let found = fs::read_to_string(file).unwrap_or_default();
    assert!(found == text, "{} is not current: HF_UPDATE=1 cargo test --test e2e manual", file.display());
}

#[test]
fn every_command_has_its_man_page_and_completions() {
    let mut commands = all();
    let names: Vec<String> = commands.iter().map(|c| c.get_name().to_owned()).collect();
    let expected = std::iter::once("hf".to_owned()).chain(COMMANDS.iter().map(|(name, _)| format!("hf-{name}")));
    assert_eq!(names, expected.collect::<Vec<_>>(), "the list above is not that of the commands");
    for command in &mut commands {
        let name = command.get_name().to_owned();
        let mut page = Vec::new();
        let see = ".SH \"SEE ALSO\"\n.BR hf (1),\n.BR hf\\-format (5),\n.BR hf\\-output (7),\n.BR hf\\-states (7)\n";
        let manual = clap_mangen::Man::new(command.clone()).date("").manual("HiveForge");
        manual.render_title(&mut page).unwrap();
        manual.render_name_section(&mut page).unwrap();
        manual.render_synopsis_section(&mut page).unwrap();
        manual.render_description_section(&mut page).unwrap();
        manual.render_options_section(&mut page).unwrap();
        page.extend(subcommands(command).into_bytes());
        manual.render_extra_section(&mut page).unwrap();
        is_current(&man().join(format!("{name}.1")), &(String::from_utf8(page).unwrap() + see));
        for (shell, file) in
            [(Shell::Bash, name.clone()), (Shell::Zsh, format!("_{name}")), (Shell::Fish, format!("{name}.fish"))]
        {
            let mut text = Vec::new();
            clap_complete::generate(shell, command, &name, &mut text);
            is_current(
                &man().join("completions").join(shell.to_string()).join(file),
                &String::from_utf8(text).unwrap(),
            );
        }
    }
}

/// Each subcommand with its own arguments; those that every one of them has are above.
fn subcommands(command: &mut clap::Command) -> String {
    let mut out = String::new();
    command.build();
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let heading = if out.is_empty() { ".SH SUBCOMMANDS\n" } else { "" };
        let own = |arg: &&clap::Arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help";
        let (positional, options): (Vec<_>, Vec<_>) = sub.get_arguments().filter(own).partition(|a| a.is_positional());
        let name = |arg: &clap::Arg| match arg.is_required_set() {
            true => format!("<{}>", arg.get_id().as_str().to_uppercase()),
            false => format!("[{}]", arg.get_id().as_str().to_uppercase()),
        };
        let line: Vec<String> =
            std::iter::once(sub.get_name().to_owned()).chain(positional.iter().map(|a| name(a))).collect();
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(out, "{heading}.SS \"{}\"\n{}", roff(&line.join(" ")), roff(&about)).unwrap();
        for arg in positional.iter().chain(&options) {
            let tag = match arg.get_long() {
                None => arg.get_id().as_str().to_uppercase(),
                Some(long) => match arg.get_value_names().filter(|_| arg.get_action().takes_values()) {
                    Some(values) => format!("--{long} {}", values[0]),
                    None => format!("--{long}"),
                },
            };
            item(&mut out, &tag, &arg.get_help().map(ToString::to_string).unwrap_or_default());
        }
    }
    out
}

/// What groff takes for more than a letter.
fn roff(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .lines()
        .map(|l| if l.starts_with(['.', '\'']) { format!("\\&{l}") } else { l.to_owned() })
        .collect::<Vec<_>>()
        .join("\n")
}

fn page(name: &str, section: u8, about: &str) -> String {
    format!(
        ".TH {} {section} \"\" \"HiveForge\" \"HiveForge\"\n.SH NAME\n{} \\- {}\n",
        roff(name),
        roff(name),
        roff(about)
    )
}

/// A tagged paragraph.
fn item(out: &mut String, tag: &str, text: &str) {
    writeln!(out, ".TP\n.B {}\n{}", roff(tag), roff(text)).unwrap();
}

#[test]
fn the_page_of_replies_is_current() {
    let mut out = page("hf-output", 7, "replies, statuses and exit codes of the HiveForge commands");
    out += ".SH DESCRIPTION\nEvery command replies with lines of the form KEY:VALUE, without a space behind the colon.\n\
            The first four are always EXIT, STATUS, NEXT and SUM; the command\\(aqs own follow in a fixed order, and lists repeat\n\
            their key. Keys are only ever added: readers skip those that they do not know.\n.PP\n\
            A value is one line. A backslash is doubled; line ends, tabs and every other control, invisible or\n\
            direction\\-changing character is written as \\en, \\er, \\et or \\eu{hex}.\n.PP\n\
            With \\-\\-json the same reply is one JSON object with \"schema\":1; keys that may repeat are always lists there.\n\
            A command whose product is a document writes only that to standard output, and its reply to standard error.\n.PP\n\
            With HF_EXIT_ZERO=1 in the environment the process always exits 0, and EXIT alone tells.\n";
    out += ".SH KEYS\n";
    for key in Key::ALL {
        let list = if key.is_list() { " (may repeat)" } else { "" };
        item(&mut out, key.as_str(), &format!("{}{list}", key.meaning()));
    }
    out += ".SH \"STATUSES AND EXIT CODES\"\n";
    for status in Status::ALL {
        item(&mut out, status.as_str(), &format!("exit {}", status.exit()));
    }
    is_current(&man().join("hf-output.7"), &out);
}

#[test]
fn the_page_of_states_is_current() {
    let mut out = page("hf-states", 7, "state machines of the HiveForge entities");
    out += ".SH DESCRIPTION\nEvery legal step. What is not listed is refused; \\- stands for an entity that does not exist yet.\n";
    for entity in EntityType::ALL {
        writeln!(out, ".SH {}\n.TS\nl l l.\nSTATE\tEVENT\tSTATE", entity.as_str().to_uppercase()).unwrap();
        for (from, on, to) in machine::table(*entity) {
            writeln!(out, "{}\t{on}\t{to}", roff(from.as_str())).unwrap();
        }
        out += ".TE\n";
    }
    is_current(&man().join("hf-states.7"), &format!("'\\\" t\n{out}"));
}

#[test]
fn the_page_of_the_format_is_current() {
    let mut out = page("hf-format", 5, "the log of a HiveForge vault, and its settings");
    out += ".SH FILES\n";
    for (file, text) in [
        (
            "Akashic/events/YYYY-MM/YYYY-MM-DD.jsonl",
            "the log: one event a line; _001, _002 and so on follow when a file is full",
        ),
        (
            "Akashic/chain.json",
            "the published head: latest_event_id, head_hash, event_count, segment, offset, and a check over them; padded and rewritten in place",
        ),
        ("Akashic/.lock", "locked with flock by whoever appends; never removed"),
        ("Akashic/index/", "derived, may be deleted at any time"),
        ("Akashic/projections/", "derived: one JSON map per type; meta.json names the event that each is through"),
        ("Akashic/snapshots/", "the whole state at a head, written by hf-project --snapshot"),
        ("Akashic/quarantine/", "unfinished and damaged bytes that were cut off"),
        ("Akashic/schemas/event.v1.schema.json", "the JSON Schema of an event"),
        ("hiveforge.config.yaml", "settings; every one is optional"),
    ] {
        item(&mut out, file, text);
    }
    out += ".SH EVENTS\nA line is the RFC 8785 canonical form of one JSON object, ended by LF. Its hash is sha256: and, in hex,\n\
            SHA\\-256 over the canonical form without the hash member and without LF; prev_hash is the hash of the line before,\n\
            or sha256: and 64 zeros in the first. The other members are in the schema. event_id is a ULID and always\n\
            greater than the one before. The events of a batch carry batch.no and batch.of and were written together.\n\
            An event type that a reader does not know is kept and verified, and left out of the state.\n";
    out += ".SH LIMITS\n";
    for (name, value) in [
        ("bytes of an event", limits::EVENT_MAX_BYTES),
        ("bytes of a payload before a warning", limits::PAYLOAD_WARN_BYTES),
        ("levels of nesting", limits::EVENT_MAX_DEPTH),
        ("parents of an event", limits::PARENTS_MAX_COUNT),
        ("bytes of a key", limits::KEY_MAX_BYTES),
        ("events of a batch", limits::BATCH_MAX_EVENTS),
        ("bytes of a batch", limits::BATCH_MAX_BYTES),
    ] {
        item(&mut out, name, &value.to_string());
    }
    out += ".SH \"EVENT TYPES\"\n";
    for row in TABLE {
        let about = match row.about {
            About::One(entity) => entity.as_str(),
            About::Any => "anything",
        };
        let mut text = format!("{}: {}", about, row.meaning);
        for field in row.fields {
            let must = if field.required { "" } else { ", optional" };
            write!(text, "; {} ({}{must})", field.name, field.is.wants()).unwrap();
        }
        item(&mut out, row.kind.as_str(), &text);
    }
    out += ".SH SETTINGS\n";
    for setting in Setting::ALL {
        let default = match setting.fallback().value() {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        item(&mut out, setting.as_str(), &format!("{} (default {default})", setting.meaning()));
    }
    is_current(&man().join("hf-format.5"), &out);
}

/// The diagram of a machine, for the README.
fn diagram(entity: EntityType) -> String {
    let mut out = String::from("```mermaid\nstateDiagram-v2\n");
    for (from, on, to) in machine::table(entity) {
        let from = if *from == machine::State::Absent { "[*]" } else { from.as_str() };
        writeln!(out, "  {from} --> {to}: {on}").unwrap();
    }
    out + "```\n"
}

#[test]
fn the_diagrams_of_the_readme_are_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&file).unwrap();
    let mut current = readme.clone();
    for entity in [EntityType::Requirement, EntityType::Task] {
        let (begin, end) = (format!("<!-- states: {entity} -->\n"), "<!-- end -->");
        let at = current.find(&begin).unwrap_or_else(|| panic!("{begin} is missing")) + begin.len();
        let length = current[at..].find(end).unwrap();
        current.replace_range(at..at + length, &diagram(entity));
    }
    is_current(&file, &current);
}

/// A vault in which every example finds what it names.
fn furnished() -> Hive {
    let hive = Hive::new();
    for title in ["Login", "Logout"] {
        hive.propose(title);
    }
    hive.run("append", &["TaskProposed", "--payload", r#"{"title":"Form"}"#]).expect_exit(0);
    let batch = r#"{"event_type":"RequirementProposed","payload":{"title":"From a file"}}"#;
    fs::write(hive.dir().join("events.jsonl"), format!("{batch}\n")).unwrap();
    fs::write(hive.dir().join("story.md"), "Once upon a time\n").unwrap();
    fs::write(hive.dir().join("form.py"), "print('form')\n").unwrap();
    hive.run("require", &["analyze", "REQ-0001"]).expect_exit(0);
    hive.run("require", &["analyze", "REQ-0002"]).expect_exit(0);
    hive.run("constraint", &["apply", "Tests first"]).expect_exit(0);
    hive.run("decide", &["approve", "DEC-0003"]).expect_exit(0);
    hive.pipe("artifact", &["put", "-"], "first").expect_exit(0);
    let anchor = Reply::of(hive.process("verify").arg("--anchor").output().unwrap()).stdout;
    fs::write(hive.dir().join("anchor.txt"), anchor).unwrap();
    hive
}

#[test]
fn every_example_of_every_help_runs() {
    let path = format!("{}:/usr/bin:/bin", binary("").parent().unwrap().display());
    let mut ran = 0;
    for command in all() {
        let hive = furnished();
        match command.get_name() {
            "hf-resume" => drop(hive.run("stop", &["fire"]).expect_exit(0)),
            "hf-poll" => drop(hive.run("job", &["fire", "--task", "T-0001", "--", "true"]).expect_exit(0)),
            _ => {}
        }
        let help =
            command.get_after_help().unwrap_or_else(|| panic!("{} has no examples", command.get_name())).to_string();
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| !line.is_empty());
        for line in examples {
            // A comment stands behind three spaces or more.
            let example = line.trim().split("   ").next().unwrap();
            let skip =
                ["--follow", "--every", "| jq", "| dot", "/srv/", "/backup/"].iter().any(|part| example.contains(part));
            if skip {
                continue;
            }
            let output = std::process::Command::new("bash")
                .args(["-c", &format!("set -o pipefail; {example}")])
                .current_dir(hive.dir())
                .env_clear()
                .envs([("PATH", path.as_str()), ("USER", "jo"), ("HF_NOW", crate::hive::START)])
                .output()
                .unwrap();
            assert!(output.status.success(), "{example}: {output:?}");
            ran += 1;
        }
    }
    assert!(ran > 40, "only {ran} examples");
}
