//! The manual is generated from the code: man pages, completions, tables and diagrams must be up to date.
//!
//! `HF_UPDATE=1 cargo test --test e2e -- manual::` rewrites them again.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use hiveforge::base::{EntityType, limits};
use hiveforge::cli::{self, COMMANDS};
use hiveforge::event::kind::{SubjectType, TABLE};
use hiveforge::machine;
use hiveforge::policy::settings::{Fallback, Setting};
use hiveforge::reply::value::{Column, InText, Shape};
use hiveforge::reply::{Key, Status, key, schema};
use hiveforge::vault::config::UNUSED_SECTIONS;
use serde_json::Value;

use super::examples::is_an_answer;
use crate::support::test_vault::{Reply, TestVault, binary};

/// Every command with its arguments, `hf` first.
pub(super) fn all() -> Vec<clap::Command> {
    std::iter::once(cli::parser::<cli::hf::Args>(cli::Invocation::Porcelain))
        .chain(COMMANDS.iter().map(|entry| (entry.command)()))
        .collect()
}

pub(super) fn man() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("man")
}

/// Compares a file with the generated text, or writes it if HF_UPDATE is set.
#[expect(clippy::disallowed_methods, reason = "HF_UPDATE makes the test write instead of compare")]
pub(super) fn is_current(file: &Path, text: &str) {
    if std::env::var_os("HF_UPDATE").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let found = fs::read_to_string(file).unwrap_or_default();
    assert!(found == text, "{} is out of date; run HF_UPDATE=1 cargo test --test e2e -- manual::", file.display());
}

#[test]
fn every_command_has_its_man_page() {
    for command in &mut all() {
        let name = command.get_name().to_owned();
        assert!(name == "hf" || COMMANDS.iter().any(|entry| entry.name == name), "{name} is not in the list");
        let mut page = Vec::new();
        let see = ".SH \"SEE ALSO\"\n.BR hf (1),\n.BR hf\\-format (5),\n.BR hf\\-agent (7),\n.BR hf\\-heartbeat (7),\n.BR hf\\-output (7),\n.BR hf\\-states (7)\n";
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

/// A completion script, with the names of all commands filled in.
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

/// The words are in COMP_WORDS; the candidates are used as they are.
const BASH: &str = r#"# bash completion for the hf commands; hf --complete prints the candidates.
_hf() {
    local word line cut= words=()
    # bash splits --option=value into three words; join them again.
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
# zsh completion for the hf commands; hf --complete prints the candidates.
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

const FISH: &str = r#"# fish completion for the hf commands; hf --complete prints the candidates.
function __hf_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    hf --complete (count $words) $words "$current" 2>/dev/null
end
for command in COMMANDS
    complete -c $command -f -a '(__hf_complete)'
end
"#;

/// The section of subcommands, each with its own arguments; the global ones are in the section of options.
fn subcommands(command: &mut clap::Command) -> String {
    let mut out = String::new();
    command.build();
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        let heading = if out.is_empty() { ".SH SUBCOMMANDS\n" } else { "" };
        let own = |arg: &&clap::Arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help";
        let (positional, options): (Vec<_>, Vec<_>) = sub.get_arguments().filter(own).partition(|a| a.is_positional());
        let value_name = |arg: &clap::Arg| match arg.get_value_names() {
            Some(names) => names[0].to_string(),
            None => arg.get_id().as_str().to_uppercase(),
        };
        let name = |arg: &clap::Arg| match arg.is_required_set() {
            true => format!("<{}>", value_name(arg)),
            false => format!("[{}]", value_name(arg)),
        };
        let line: Vec<String> =
            std::iter::once(sub.get_name().to_owned()).chain(positional.iter().map(|a| name(a))).collect();
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(out, "{heading}.SS \"{}\"\n{}", roff(&line.join(" ")), roff(&about)).unwrap();
        for arg in positional.iter().chain(&options) {
            let tag = match arg.get_long() {
                None => value_name(arg),
                Some(long) => match arg.get_value_names().filter(|_| arg.get_action().takes_values()) {
                    Some(values) => format!("--{long} {}", values[0]),
                    None => format!("--{long}"),
                },
            };
            item(&mut out, &tag, &help_of(arg));
        }
    }
    out
}

/// The help of an argument with its default and its possible values, as `--help` shows it.
fn help_of(arg: &clap::Arg) -> String {
    let mut help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    if arg.get_action().takes_values() {
        let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if !defaults.is_empty() {
            write!(help, " [default: {}]", defaults.join(" ")).unwrap();
        }
        let possible: Vec<_> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        if !possible.is_empty() {
            write!(help, " [possible values: {}]", possible.join(", ")).unwrap();
        }
    }
    help
}

/// Escapes what groff would interpret.
pub(super) fn roff(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .lines()
        .map(|l| if l.starts_with(['.', '\'']) { format!("\\&{l}") } else { l.to_owned() })
        .collect::<Vec<_>>()
        .join("\n")
}

pub(super) fn page(name: &str, section: u8, about: &str) -> String {
    format!(
        ".TH {} {section} \"\" \"HiveForge\" \"HiveForge\"\n.SH NAME\n{} \\- {}\n",
        roff(name),
        roff(name),
        roff(about)
    )
}

/// A tagged paragraph.
pub(super) fn item(out: &mut String, tag: &str, text: &str) {
    writeln!(out, ".TP\n.B {}\n{}", roff(tag), roff(text)).unwrap();
}

#[test]
fn the_page_of_replies_is_current() {
    let mut out = page("hf-output", 7, "replies, statuses and exit codes of the HiveForge commands");
    out += ".SH DESCRIPTION\nEvery command replies with lines of the form KEY:VALUE, without a space after the colon.\n\
            The first four are always EXIT, STATUS, NEXT and SUM. The other keys of the command follow in a fixed order; lists\n\
            repeat their key. New versions only add keys, so readers should skip keys that they do not know.\n.PP\n\
            A value is one line. A backslash is doubled; line ends, tabs and all other control characters, invisible\n\
            characters and characters that change the text direction are written as \\en, \\er, \\et or \\eu{hex}. A row\n\
            consists of columns separated by spaces: \\- means that a column has no value, and empty columns at the end are\n\
            omitted.\n.PP\n\
            With \\-\\-json the same reply is one JSON object with \"schema\":2 and the names below: numbers are numbers,\n\
            yes and no are booleans, rows are objects, and next has its command as argv. Events, entities and the lists of\n\
            hf\\-lineage and hf\\-status use the same names as the log and its projections. The JSON Schema is\n\
            hf\\-reply.schema.json.\n.PP\n\
            A command that produces a document writes only the document to standard output, and its reply to standard\n\
            error. On a terminal, characters of the document that could control the terminal or hide are escaped, too.\n.PP\n\
            On a terminal, unless the shell belongs to an agent, hf shows the same reply as tables; see\n.BR hf (1).\n.PP\n\
            If HF_EXIT_ZERO=1 is set in the environment, every command except hf\\-verify exits 0; read EXIT instead.\n";
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

/// The type of a key's value in JSON, with the columns of a row.
fn said_as(shape: Shape) -> String {
    let names = |columns: &[Column]| {
        let name = |column: &Column| match column.in_text {
            InText::Hidden => format!("{} (JSON only)", column.name),
            _ => column.name.to_owned(),
        };
        columns.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    match shape {
        Shape::Text => ", a text".to_owned(),
        Shape::Number => ", a number".to_owned(),
        Shape::Time => ", a time".to_owned(),
        Shape::Flag | Shape::TrueOnly => ", a boolean".to_owned(),
        Shape::NumberOf => ", an object with number and of".to_owned(),
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
    out += ".SH DESCRIPTION\nEvery allowed transition; all others are refused. \\- means that the entity does not exist yet.\n";
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
            "the log, one event per line; when a file is full, _001, _002 and so on follow",
        ),
        (
            "Akashic/chain.json",
            "the published head: latest_event_id, head_hash, event_count, segment and offset, with a checksum; padded, and overwritten in place",
        ),
        ("Akashic/.lock", "locked with flock while a command writes to the log; never removed"),
        (
            "Akashic/control",
            "the stop flag, with a checksum; padded, and overwritten in place, so that a stop needs neither the lock nor disk space",
        ),
        (
            "Akashic/stop",
            "an entry of any type is a stop, too: hf-stop creates it if the stop flag cannot be written, and an operator can with touch or mkdir; the first line of a file is the reason. hf-resume removes it",
        ),
        ("Akashic/index/", "derived; can be deleted at any time"),
        (
            "Akashic/projections/",
            "derived: one JSON object per type; meta.json names the last event that each of them includes",
        ),
        ("Akashic/snapshots/", "the whole state as of some event, written by hf-project --snapshot"),
        (
            "Akashic/quarantine/",
            "what was cut off the log: incomplete or damaged data, and EVENT_ID.jsonl with intact lines after the damage",
        ),
        (
            "Akashic/notify/HOOK/cursor.json",
            "the last event that a hook was notified of; without it, all since it was set are sent",
        ),
        ("Akashic/schemas/event.v1.schema.json", "the JSON Schema of an event"),
        (
            "hiveforge.config.yaml",
            "settings, all of them optional; if it is not here, the one next to the vault is used, where hive.vault_path can say where the vault is. A symbolic link is not followed, and a file that others can write, by itself or by its directory, counts as unreadable",
        ),
        (
            "~/.config/hiveforge/trust",
            "outside of every vault, for each user (or in $XDG_CONFIG_HOME): the vaults in which the commands in the settings may be run, one JSON object per line with vault_id, path and, if the settings were adopted, their SHA-256; hf-init, hf-config adopt and hf-config trust add a vault. trust.lock is locked while it is written",
        ),
    ] {
        item(&mut out, file, text);
    }
    out += ".SH EVENTS\nA line is the RFC 8785 canonical form of one JSON object, ended by LF. Its hash is sha256: followed by the\n\
            SHA\\-256, in hex, of the canonical form without the hash member and without LF. prev_hash is the hash of the previous\n\
            line, or sha256: and 64 zeros in the first line. The schema describes the other members. event_id is a ULID and\n\
            always greater than the previous one. The events of a batch have batch.no and batch.of and are written together.\n\
            Events of an unknown type are kept and verified, but do not change the state.\n";
    out += ".SH LIMITS\n";
    for (name, value) in [
        ("bytes per event", limits::EVENT_MAX_BYTES),
        ("bytes per payload without a warning", limits::PAYLOAD_WARN_BYTES),
        ("levels of nesting", limits::EVENT_MAX_DEPTH),
        ("parents per event", limits::PARENTS_MAX_COUNT),
        ("bytes per idempotency key", limits::KEY_MAX_BYTES),
        ("events per batch", limits::BATCH_MAX_EVENTS),
        ("bytes per batch", limits::BATCH_MAX_BYTES),
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
            Value::Null => "not set by default".to_owned(),
            Value::String(text) if text.is_empty() => "not set by default".to_owned(),
            Value::String(text) => format!("default {text}"),
            other => format!("default {other}"),
        };
        item(&mut out, setting.as_str(), &format!("{} ({default})", setting.meaning()));
    }
    let own: Vec<&str> = Setting::ALL.iter().filter(|s| s.row().per_agent).map(|s| s.name()).collect();
    item(&mut out, "agents.NAME", &format!("for this agent only, the liveness settings {}", own.join(", ")));
    let reviewer = "command of this reviewer: reads a prompt and prints a reply (not set by default)";
    item(&mut out, "reviewers.NAME.command", reviewer);
    item(&mut out, &UNUSED_SECTIONS.join(", "), "accepted with a warning, but not used by this version");
    is_current(&man().join("hf-format.5"), &out);
}

/// A part of the page for agents.
enum Part {
    Heading(&'static str),
    Say(String),
    /// A command that works as printed, and when to run it or what it does.
    Run(&'static str, String),
    /// A line of a reply, and what to do then.
    Reply(&'static str, &'static str),
}

/// The default of a setting as a duration.
fn time(setting: Setting) -> String {
    let Fallback::Count(seconds) = setting.fallback() else { panic!("{setting} is not a number") };
    if seconds % 60 == 0 { format!("{} minutes", seconds / 60) } else { format!("{seconds} seconds") }
}

/// The page for agents, with the default settings filled in.
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
        Say("You work in a shell and record what you do with hf- commands. Your name is in HF_AGENT; leave it set.".into()),
        Heading("STAYING HEALTHY"),
        Say(format!(
            "A watchdog checks on you every {look} seconds. You are healthy if you recorded a checkpoint or an activity in \
             the last {shown} and an introspection in the last {inward}, or if you declared deep work before you went \
             quiet. Otherwise it assumes that you are stuck and tries to wake you. Do not count minutes: record something \
             at every natural break."
        )),
        Heading("WHAT TO RECORD, AND WHEN"),
        Run("hf-checkpoint 'Looking for the cause of the login error'", "In the middle of something: one short line, without much thought.".into()),
        Run("hf-activity --kind creating --title 'The login form'", "After you finished something, such as thinking, observing or creating.".into()),
        Run("hf-activity --kind introspection --title 'What I learned in the last hour'", format!("Look back: what went well, what did not, what comes next. At least every {inward}.")),
        Run("hf-checkpoint --state 'Tests pass, next: review'", "When you may be about to lose your context. It is saved in Autonomous/state/CHECKPOINTS.md.".into()),
        Heading("DEEP WORK"),
        Say("Declare deep work when you know that you cannot log for a while. A new declaration replaces the old one.".into()),
        Run("hf-deepwork start --flexible 'A long refactoring'", format!("You can still record checkpoints, at least every {checked}. Activity logs and introspections can wait. It ends with your next activity log.")),
        Run("hf-deepwork start --strict 45 'Rendering all characters'", format!("You cannot record anything for 45 minutes. Ask for more time than you need, up to {strict} minutes.")),
        Run("hf-deepwork extend 15", format!("Add 15 minutes to strict deep work. You can do this up to {extend} times, before the time is up.")),
        Run("hf-deepwork complete", "You are finished. Logging an activity has the same effect.".into()),
        Say("After deep work, log what you did; the log after that must be an introspection. Only in an emergency can you defer it, by one log:".into()),
        Run("hf-activity --kind thinking --emergency 'The disk is full, fixing that first'", "The introspection is still due afterwards.".into()),
        Heading("REPLIES"),
        Say("Read EXIT, STATUS, NEXT and SUM, and ADVICE if present. EXIT:0 means that it is done and saved on disk. Do what NEXT says:".into()),
        Reply("NEXT:NONE", "Continue as planned."),
        Reply("NEXT:ACTION <command>", "Run the command exactly as printed."),
        Reply("NEXT:PATCH", "It failed. Read LAST5, and the file in LOGREF only if you have to; fix the problem and try again."),
        Reply("NEXT:ASK operator", "An operator has to decide. Ask, and do not try to work around it."),
        Reply("STATUS:REFUSED", "A rule forbids it; REASON names the rule. Do not repeat the command: it will be refused until something changes."),
        Reply("STATUS:BUSY", "Run the same command again."),
        Reply("STATUS:UNCERTAIN", "It may or may not have been recorded. Repeat the command with the printed key; that is safe."),
        Reply("STATUS:CLAIM_LOST", "Another agent has your task now. Stop working on it."),
        Reply("STATUS:STOPPED", "All work is stopped. End what you are doing and ask the operator."),
        Heading("TASKS"),
        Run("hf-task claim", format!("Claim the next task. It is yours for {lease}; every heartbeat and every checkpoint renews the claim, and so does waiting with hf-poll. The CONSTRAINT lines of the reply apply to everything you do.")),
        Run("hf-task start T-0001", "Before you start to work on it.".into()),
        Run("hf-task heartbeat T-0001", "While you work on it.".into()),
        Run("hf-artifact put form.py --for T-0001", "Store a file that you produced.".into()),
        Run("hf-task succeed T-0001", "When it is done.".into()),
        Run("hf-task fail T-0001 --class transient --reason 'The network is down'", "When it failed. With --class transient it may be retried, with --class permanent it is not.".into()),
        Heading("JOBS"),
        Run("hf-job fire --title 'Unit tests' -- sh run-tests.sh", "For everything that takes long. The command continues even if you are interrupted.".into()),
        Run("hf-poll T-0002", "Wait for it. EXIT:2 means that it is still running: run NEXT as printed. Do not write your own loop.".into()),
        Run("hf-job check T-0002", "Show its state without waiting; works in a later session, too.".into()),
        Heading("A MISSION"),
        Run("hf-state start 'Login with two factors' --constraint 'no new dependencies'", "Record your goal, once.".into()),
        Run("hf-state set LAST_ACTION='design written' NEXT_ACTION='hf-review status'", "After every step, one line each. The whole state is limited to 200 words. A job that you fire is part of it by itself.".into()),
        Run("hf-state plan plan.json", "Propose the tasks of a plan. Then do what NEXT says, task by task.".into()),
        Run("hf-state show", "In a new session: this is all you need to continue.".into()),
        Run("hf-review record --reviewer gpt --spec design.md <reply.txt", "Record the reply of a reviewer to your design. Fix what its FAIL lines say before the next round: they stay open until the file has changed.".into()),
        Heading("SESSIONS"),
        Say("If you were started to work on a project, log in first, and set HF_SESSION to the SESSION_ID in the reply.".into()),
        Run("hf-session login", "Start your session.".into()),
        Run("hf-session task --session S-0001", "Get your task, with what is known about it.".into()),
        Reply("RESUMED_FROM_PAUSE:true", "Work was paused. Check the current state before you continue: PAUSED says why, CHANGED what others changed meanwhile."),
        Reply("STATUS:EXIT_REQUESTED", "Your project is paused, or your session has ended. Clean up, answer messages, leave notes, then run NEXT. You keep your task."),
        Run("hf-session logout --session S-0001", "End your session. You keep your task.".into()),
        Heading("SEVERAL ACTIVITIES"),
        Run("hf-branch decide", "See what you can do: read messages first, then continue something you suspended. The choice is yours.".into()),
        Run("hf-branch create 'Try out the new parser' --type free --abort", "Start an activity of your own. You work on one branch at a time.".into()),
        Run("hf-branch suspend --summary 'Works, error messages are missing'", "Leave the branch with a summary; hf-branch resume gives it back to you.".into()),
        Reply("INTERRUPTED:MSG-0001 user:jo BR-0002 Parser", "A message or a task took you away from a branch. The first ADVICE line keeps what you did there, the second answers. Name the branch of your next note."),
        Run("hf-branch know 'Parser' 'The new one is twice as fast'", "Write down what you should know on every branch.".into()),
        Heading("WHAT YOU CANNOT DO"),
        Say("You cannot approve or reject decisions, pause, resume or archive projects, resume after a stop, or act as a user. Such commands are refused to you, and in a vault with operator keys to everybody without a signature. Ask the operator, and work on something else in the meantime.".into()),
        Run("hf-status", "Show the state of the system, and what is waiting for an operator.".into()),
        Run(
            "hf-stop 'A job is deleting production data'",
            "You may stop all work to prevent harm. An operator resumes it.".into(),
        ),
    ]
}

/// A paragraph wrapped at the width of a narrow terminal.
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
    // Quotes in commands must stay ASCII quotes.
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
        // No empty lines between the entries of a list.
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
    assert!(out.lines().count() < 170, "the page for agents must stay short");
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
                    // The page shows both ways for a task to end, but a task can end only once.
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
                assert!(is_an_answer(line, output.status.code()), "{line}: {output:?}");
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

/// A vault with everything that the examples name.
pub(super) fn furnished() -> TestVault {
    let hive = TestVault::new();
    for title in ["Login", "Logout"] {
        hive.propose(title);
    }
    hive.run("append", &["TaskProposed", "--payload", r#"{"title":"Form"}"#]).expect_exit(0);
    let batch = r#"{"event_type":"RequirementProposed","payload":{"title":"From a file"}}"#;
    fs::write(hive.dir().join("events.jsonl"), format!("{batch}\n")).unwrap();
    fs::write(hive.dir().join("story.md"), "Once upon a time\n").unwrap();
    fs::write(hive.dir().join("run-tests.sh"), "echo tested\n").unwrap();
    fs::write(hive.dir().join("spec.md"), "One form.\n").unwrap();
    fs::write(hive.dir().join("design.md"), "One form, one endpoint.\n").unwrap();
    fs::write(hive.dir().join("plan.json"), r#"{"tasks":[{"id":"form","title":"The form"}]}"#).unwrap();
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
