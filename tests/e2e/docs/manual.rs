//! The manual is made from the code: man pages, completions and tables are what they should be.
//!
//! `HF_UPDATE=1 cargo test --test e2e manual` rewrites them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use hiveforge::base::{EntityType, limits};
use hiveforge::cli::{self, COMMANDS};
use hiveforge::event::kind::{SubjectType, TABLE};
use hiveforge::machine;
use hiveforge::policy::settings::{Fallback, Setting};
use hiveforge::reply::value::{Column, Said, Shape};
use hiveforge::reply::{Key, Status, key, schema};

use crate::support::test_vault::{Reply, TestVault, binary};

/// Every command with its arguments, `hf` first.
fn all() -> Vec<clap::Command> {
    std::iter::once(cli::parser::<cli::hf::Args>(cli::Face::Porcelain))
        .chain(COMMANDS.iter().map(|entry| (entry.command)()))
        .collect()
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
fn every_command_has_its_man_page() {
    for command in &mut all() {
        let name = command.get_name().to_owned();
        assert!(name == "hf" || COMMANDS.iter().any(|entry| entry.name == name), "{name} is not in the list");
        let mut page = Vec::new();
        let see = ".SH \"SEE ALSO\"\n.BR hf (1),\n.BR hf\\-format (5),\n.BR hf\\-agent (7),\n.BR hf\\-output (7),\n.BR hf\\-states (7)\n";
        let manual = clap_mangen::Man::new(command.clone()).date("").manual("HiveForge");
        manual.render_title(&mut page).unwrap();
        manual.render_name_section(&mut page).unwrap();
        manual.render_synopsis_section(&mut page).unwrap();
        manual.render_description_section(&mut page).unwrap();
        manual.render_options_section(&mut page).unwrap();
        page.extend(subcommands(command).into_bytes());
        manual.render_extra_section(&mut page).unwrap();
        is_current(&man().join(format!("{name}.1")), &(String::from_utf8(page).unwrap() + see));
    }
}

/// A completion script, with the commands that it is for.
fn completion(template: &str) -> String {
    let names: Vec<&str> = std::iter::once("hf").chain(COMMANDS.iter().map(|entry| entry.name)).collect();
    template.replace("COMMANDS", &names.join(" "))
}

#[test]
fn every_shell_completes_every_command() {
    let folder = man().join("completions");
    for file in ["bash/hf", "zsh/_hf", "fish/hf.fish"] {
        let template = match file {
            "bash/hf" => BASH,
            "zsh/_hf" => ZSH,
            _ => FISH,
        };
        is_current(&folder.join(file), &completion(template));
    }
}

/// The words are in COMP_WORDS; what the commands offer is taken as it is.
const BASH: &str = r#"# bash completion of the hf commands: they say themselves what fits.
_hf() {
    local word line cut= words=()
    # bash splits --option=value into three words; the commands want one.
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if ((${#words[@]} > 1)) && [[ $word == = || ${words[-1]} == --*= ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done
    [[ ${words[-1]} == --*=* ]] && cut=${words[-1]%%=*}=
    COMPREPLY=()
    while IFS=$'\t' read -r line _; do
        COMPREPLY+=("${line#"$cut"}")
    done < <(hf --complete "$((${#words[@]} - 1))" "${words[@]}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace
}
complete -o nosort -o bashdefault -o default -F _hf COMMANDS
"#;

const ZSH: &str = r#"#compdef COMMANDS
# zsh completion of the hf commands: they say themselves what fits.
_hf() {
    local line
    local -a found
    while IFS= read -r line; do
        found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done < <(hf --complete $((CURRENT - 1)) "${(@)words}" 2>/dev/null)
    (( ${#found} )) && _describe -V 'hf' found || _files
}
if [ "$funcstack[1]" = "_hf" ]; then
    _hf "$@"
else
    compdef _hf COMMANDS
fi
"#;

const FISH: &str = r#"# fish completion of the hf commands: they say themselves what fits.
function __hf_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    hf --complete (count $words) $words "$current" 2>/dev/null
end
for command in COMMANDS
    complete -c $command -f -a '(__hf_complete)'
end
"#;

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
            direction\\-changing character is written as \\en, \\er, \\et or \\eu{hex}. A row is its columns, joined by\n\
            spaces: \\- stands for a column without a value, and those at the end of the line are left out.\n.PP\n\
            With \\-\\-json the same reply is one JSON object with \"schema\":2 and the names below: numbers are numbers,\n\
            yes and no are booleans, rows are objects, next has its command as argv. Events, entities, the lists of\n\
            hf\\-lineage and hf\\-status have the names that the log and its projections use. hf\\-reply.schema.json is its\n\
            JSON Schema.\n.PP\n\
            A command whose product is a document writes only that to standard output, and its reply to standard error.\n.PP\n\
            hf, in a person\\(aqs shell at a terminal, shows the same reply as tables; see\n.BR hf (1).\n.PP\n\
            With HF_EXIT_ZERO=1 in the environment every command but hf\\-verify exits 0, and EXIT alone tells.\n";
    out += ".SH KEYS\n";
    for entry in key::TABLE {
        let repeats = if entry.shape.repeats() { " (may repeat)" } else { "" };
        let said = match entry.key {
            Key::Next => ", an object with kind (none, action, patch or ask), and argv or who".to_owned(),
            _ => said_as(entry.shape),
        };
        item(&mut out, entry.name, &format!("{}{repeats}. JSON: {}{said}", entry.meaning, entry.json));
    }
    out += ".SH \"STATUSES AND EXIT CODES\"\n";
    for entry in Status::TABLE {
        item(&mut out, entry.name, &format!("exit {}: {}", entry.exit, entry.meaning));
    }
    is_current(&man().join("hf-output.7"), &out);
}

/// How a key's value looks in JSON, with the columns of a row.
fn said_as(shape: Shape) -> String {
    let names = |columns: &[Column]| {
        let name = |column: &Column| match column.said {
            Said::Quiet => format!("{} (JSON only)", column.name),
            _ => column.name.to_owned(),
        };
        columns.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    match shape {
        Shape::Text => ", a text".to_owned(),
        Shape::Number => ", a number".to_owned(),
        Shape::Time => ", a time".to_owned(),
        Shape::Flag | Shape::Only => ", a boolean".to_owned(),
        Shape::Of => ", an object with number and of".to_owned(),
        Shape::Row(columns) => format!(", an object with {}", names(columns)),
        Shape::Rows(columns) => format!(", objects with {}", names(columns)),
        Shape::Objects(_, "event") => ", the events as the log has them".to_owned(),
        Shape::Objects(_, "entity") => ", the entities as their projections have them, with their subject".to_owned(),
        Shape::Objects(_, _) => ", objects with name and value; the value is what the log has".to_owned(),
        Shape::Texts | Shape::Lines => ", texts".to_owned(),
        Shape::Counts => ", an object of numbers".to_owned(),
        Shape::Map => ", an object of objects".to_owned(),
    }
}

#[test]
fn the_schema_of_replies_is_current() {
    let text = serde_json::to_string_pretty(&schema::document()).unwrap() + "\n";
    is_current(&man().join("hf-reply.schema.json"), &text);
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
            SubjectType::One(entity) => entity.as_str(),
            SubjectType::Any => "anything",
        };
        let mut text = format!("{}: {}", about, row.meaning);
        for field in row.fields {
            let must = if field.required { "" } else { ", optional" };
            write!(text, "; {} ({}{must})", field.name, field.field_type.description()).unwrap();
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

/// A part of the page for agents.
enum Part {
    Heading(&'static str),
    Say(String),
    /// A command that works as printed, and when to run it.
    Run(&'static str, String),
    /// A line of a reply, and what to do about it.
    Reply(&'static str, &'static str),
}

/// A default, as a length of time.
fn time(setting: Setting) -> String {
    let Fallback::Count(seconds) = setting.fallback() else { panic!("{setting} is not a number") };
    if seconds % 60 == 0 { format!("{} minutes", seconds / 60) } else { format!("{seconds} seconds") }
}

/// What an agent has to know, with the current numbers.
fn for_agents() -> Vec<Part> {
    use Part::{Heading, Reply, Run, Say};
    let [shown, inward, checked, lease] = [
        Setting::InactiveErrorSeconds,
        Setting::IntrospectionErrorSeconds,
        Setting::DeepworkCheckpointSeconds,
        Setting::LeaseSeconds,
    ]
    .map(time);
    let [strict, extend, look] =
        [Setting::StrictMaxMinutes, Setting::DeepworkExtendMax, Setting::WatchdogIntervalSeconds]
            .map(|setting| setting.fallback().value());
    vec![
        Say("You work through a shell, and hf- commands record what you do. Your name is in HF_AGENT; leave it set.".into()),
        Heading("HEALTHY"),
        Say(format!(
            "A watchdog looks every {look} seconds. You are healthy while it sees an activity log or a checkpoint within \
             {shown} and an introspection within {inward}, or deep work that you declared before you went quiet. \
             Otherwise it takes you for stuck, and somebody wakes you. Do not count minutes: say something whenever you come to a stop anyway."
        )),
        Heading("WHAT TO SAY, AND WHEN"),
        Run("hf-checkpoint 'Looking for the cause of the replace error'", "In the middle of something: one short line, no more thought than that.".into()),
        Run("hf-activity --kind creating --title 'The login form'", "Something is over: thinking, observing, creating.".into()),
        Run("hf-activity --kind introspection --title 'What this hour taught me'", format!("Look inward: what went well, what did not, what comes next. At least every {inward}.")),
        Run("hf-checkpoint --state 'Tests are green, review comes next'", "Before you may lose your context; it is kept in Autonomous/state/CHECKPOINTS.md.".into()),
        Heading("DEEP WORK"),
        Say("Declare it when you know that you will not be able to log for a while. A new declaration takes the place of the old one.".into()),
        Run("hf-deepwork start --flexible 'A long refactoring'", format!("You can still make checkpoints, at least every {checked}. Logs and introspections can wait. It ends with your next activity log.")),
        Run("hf-deepwork start --strict 45 'Rendering all characters'", format!("You can say nothing at all for 45 minutes. Take more than you need; {strict} is the most.")),
        Run("hf-deepwork extend 15", format!("A strict one takes longer: {extend} times at most, and before its time is over.")),
        Run("hf-deepwork complete", "It is over; an activity log says so too.".into()),
        Say("Afterwards you have a duty: log what you did, and let the log after that be an introspection. Only an emergency puts it off, by one log:".into()),
        Run("hf-activity --kind thinking --emergency 'The disk is full, that comes first'", "The duty stays.".into()),
        Heading("REPLIES"),
        Say("Read EXIT, STATUS, NEXT and SUM, and ADVICE if it is there. EXIT:0 means done and on the disk. Do what NEXT says:".into()),
        Reply("NEXT:NONE", "Go on as planned."),
        Reply("NEXT:ACTION <command>", "Run the command exactly as printed."),
        Reply("NEXT:PATCH", "It failed: read LAST5, the file in LOGREF only if you must; mend it and try again."),
        Reply("NEXT:ASK operator", "A person has to decide. Ask, and do not look for a way around."),
        Reply("STATUS:REFUSED", "A rule forbids it; REASON names the rule. The same command will not work again as things stand."),
        Reply("STATUS:BUSY", "Run the same command again."),
        Reply("STATUS:UNCERTAIN", "It may be recorded or not. Repeat it with the key that is printed; that is safe."),
        Reply("STATUS:CLAIM_LOST", "Another agent has your task now. Stop working on it."),
        Reply("STATUS:STOPPED", "Everything is stopped. End what you are doing and ask the operator."),
        Heading("TASKS"),
        Run("hf-task claim", format!("Take the next task. It is yours for {lease}; every heartbeat and every checkpoint renews that.")),
        Run("hf-task start T-0001", "Before you begin.".into()),
        Run("hf-task heartbeat T-0001", "The work goes on.".into()),
        Run("hf-artifact put form.py --for T-0001", "Store what it brought forth.".into()),
        Run("hf-task succeed T-0001", "It is done.".into()),
        Run("hf-task fail T-0001 --class transient --reason 'The network was away'", "It failed and may be tried again; with --class permanent it is given up.".into()),
        Heading("JOBS"),
        Run("hf-job fire --title 'Unit tests' -- sh -c 'echo tested'", "Whatever takes long. It runs to its end, also if you do not.".into()),
        Run("hf-poll T-0002", "Wait for it. EXIT:2 means that it still runs: run NEXT as printed, never a loop of your own.".into()),
        Run("hf-job check T-0002", "How it stands, at once; also from a later session.".into()),
        Heading("A MISSION"),
        Run("hf-state start 'Login with two factors' --constraint 'no new dependency'", "Say what you are about, once.".into()),
        Run("hf-state set LAST_ACTION='design written' NEXT_ACTION='hf-review status'", "After every step, in one line each; 200 words is all there is.".into()),
        Run("hf-state show", "After you lost your session: this is all you need to go on.".into()),
        Run("hf-review record --reviewer gpt <reply.txt", "What the reviewer replied. FAIL lines are what you fix before the next round.".into()),
        Heading("SESSIONS"),
        Say("Where somebody starts you for a project, you log in, and set HF_SESSION to the SESSION_ID that you get.".into()),
        Run("hf-session login", "Come to work.".into()),
        Run("hf-session task --session S-0001", "Get your task, with what is known of it.".into()),
        Reply("RESUMED_FROM_PAUSE:true", "Work was paused. Check where things stood before you go on: files and dependencies may have changed."),
        Reply("STATUS:EXIT_REQUESTED", "Your project is paused, or your session is over. Tidy up what is half done, then run NEXT. Nothing else is taken from you."),
        Run("hf-session logout --session S-0001", "Leave. Your task waits for you.".into()),
        Heading("MANY ACTIVITIES"),
        Run("hf-branch decide", "Messages first, then what you left behind. What you do is up to you.".into()),
        Run("hf-branch create 'A walk round the lake' --type free --abort", "Begin something of your own; you are at one branch at a time.".into()),
        Run("hf-branch suspend --summary 'Half way round'", "Leave it, and say where it stands: hf-branch resume gives that back to you.".into()),
        Heading("WHAT YOU CANNOT DO"),
        Say("Approve or reject a decision, lift a stop, pause, resume, archive, act as a person. Such a command is refused. Ask the operator, and do something else that is yours meanwhile.".into()),
        Run("hf-status", "How everything stands, and what waits for a person.".into()),
        Run(
            "hf-stop 'It writes to the wrong place'",
            "You may stop everything when harm is being done. Only a person lifts that.".into(),
        ),
    ]
}

/// A paragraph, no line longer than a narrow terminal.
fn wrapped(text: &str, indent: usize) -> String {
    const WIDTH: usize = 80;
    let (mut out, mut width) = (" ".repeat(indent), indent);
    for word in text.split_whitespace() {
        if width > indent && width + 1 + word.chars().count() > WIDTH {
            write!(out, "\n{}", " ".repeat(indent)).unwrap();
            width = indent;
        }
        let gap = usize::from(width > indent);
        write!(out, "{}{word}", " ".repeat(gap)).unwrap();
        width += gap + word.chars().count();
    }
    out + "\n"
}

const FOR_AGENTS: &str = "how an agent works with HiveForge";

#[test]
fn the_page_for_agents_is_current() {
    // A quote that is typed has to stay one.
    let typed = |text: &str| roff(text).replace('\'', "\\(aq");
    let mut out = page("hf-agent", 7, FOR_AGENTS) + ".SH DESCRIPTION";
    for part in for_agents() {
        match part {
            Part::Heading(text) => write!(out, "\n.SH \"{}\"", typed(text)),
            Part::Say(text) => write!(out, "\n.PP\n{}", typed(&text)),
            Part::Run(tag, text) => write!(out, "\n.TP\n.B {}\n{}", typed(tag), typed(&text)),
            Part::Reply(tag, text) => write!(out, "\n.TP\n.B {}\n{}", typed(tag), typed(text)),
        }
        .unwrap();
    }
    out += "\n.SH \"SEE ALSO\"\n.BR hf (1),\n.BR hf\\-output (7),\n.BR hf\\-watchdog (1)\n";
    is_current(&man().join("hf-agent.7"), &out);

    let mut out = format!("# HiveForge: {FOR_AGENTS}\n");
    let mut close = false;
    for part in for_agents() {
        // Items of one list are kept together.
        let listed = matches!(part, Part::Run(..) | Part::Reply(..));
        out += if listed && close { "" } else { "\n" };
        close = listed;
        out += &match part {
            Part::Heading(text) => format!("## {text}\n"),
            Part::Say(text) => wrapped(&text, 0),
            Part::Run(tag, text) => format!("  {tag}\n{}", wrapped(&text, 6)),
            Part::Reply(tag, text) => format!("  {tag}\n{}", wrapped(text, 6)),
        };
    }
    assert!(out.lines().count() < 170, "one page, not a book");
    is_current(&man().join("hf-agent.txt"), &out);
}

#[test]
fn the_readme_says_what_healthy_means() {
    let readme = include_str!("../../../README.md").replace('\n', " ");
    for healthy in [
        format!("checkpoint within {} ", time(Setting::InactiveErrorSeconds)),
        format!("introspection within {}", time(Setting::IntrospectionErrorSeconds).trim_end_matches(" minutes")),
    ] {
        assert!(readme.contains(&healthy), "the README does not say: {healthy}");
    }
}

#[test]
fn every_command_of_the_page_for_agents_works_as_printed() {
    let path = format!("{}:/usr/bin:/bin", binary("").parent().unwrap().display());
    let hive = furnished();
    let mut before = Vec::new();
    for part in for_agents() {
        match part {
            Part::Reply(line, _) => {
                let (key, value) = line.split_once(':').unwrap();
                assert!(Key::parse(key).is_some(), "{line}");
                assert!(key != "STATUS" || Status::TABLE.iter().any(|entry| entry.name == value), "{line}");
            }
            Part::Run(line, _) => {
                match line {
                    "hf-task succeed T-0001" => before = hive.contents(),
                    // Both ends of a task are shown, and it has one only.
                    _ if line.starts_with("hf-task fail") => hive.restore(&before),
                    _ => {}
                }
                let output = std::process::Command::new("bash")
                    .args(["-c", line])
                    .current_dir(hive.dir())
                    .env_clear()
                    .envs([
                        ("PATH", path.as_str()),
                        ("HF_AGENT", "builder"),
                        ("HF_NOW", crate::support::test_vault::START),
                    ])
                    .output()
                    .unwrap();
                Reply::of(output).expect_exit(0);
            }
            Part::Heading(_) | Part::Say(_) => {}
        }
    }
}

/// The diagram of a machine, for the README.
fn diagram(entity: EntityType) -> String {
    let mut out = String::from("```mermaid\nstateDiagram-v2\n");
    for (from, on, to) in machine::table(entity) {
        let from = if *from == machine::Phase::Absent { "[*]" } else { from.as_str() };
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
fn furnished() -> TestVault {
    let hive = TestVault::new();
    for title in ["Login", "Logout"] {
        hive.propose(title);
    }
    hive.run("append", &["TaskProposed", "--payload", r#"{"title":"Form"}"#]).expect_exit(0);
    let batch = r#"{"event_type":"RequirementProposed","payload":{"title":"From a file"}}"#;
    fs::write(hive.dir().join("events.jsonl"), format!("{batch}\n")).unwrap();
    fs::write(hive.dir().join("story.md"), "Once upon a time\n").unwrap();
    fs::write(hive.dir().join("spec.md"), "One form.\n").unwrap();
    fs::write(hive.dir().join("reply.txt"), "PASS: scope\nFAIL: no test -> FIX: write one\n").unwrap();
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
            "hf-session" => drop(hive.run("task", &["propose", "Seat"]).expect_exit(0)),
            "hf-poll" => drop(hive.run("job", &["fire", "--task", "T-0001", "--", "true"]).expect_exit(0)),
            _ => {}
        }
        let help =
            command.get_after_help().unwrap_or_else(|| panic!("{} has no examples", command.get_name())).to_string();
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| !line.is_empty());
        for line in examples {
            // A comment comes after three spaces or more.
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
                .envs([("PATH", path.as_str()), ("USER", "jo"), ("HF_NOW", crate::support::test_vault::START)])
                .output()
                .unwrap();
            assert!(output.status.success(), "{example}: {output:?}");
            ran += 1;
        }
    }
    assert!(ran > 40, "only {ran} examples");
}
