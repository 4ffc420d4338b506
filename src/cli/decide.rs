//! hf-decide: decisions, and approval by an operator.

use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::{ArgMatches, Parser, Subcommand};
use unicode_width::UnicodeWidthChar;

use super::args::{GlobalArgs, PageArgs, WriteArgs};
use super::main::{has_subcommand, write_all};
use super::{Command, Output, StdoutWriter};
use crate::base::{EntityType, Error, Reason, Result, text};
use crate::machine::Phase;
use crate::op::decide::{self, AcknowledgeRequest, ApproveRequest, DecisionRequest, RejectDecisionRequest};
use crate::op::sign::{self, Prompts, SignFileRequest};
use crate::op::{self, Context, ShowRequest, project};
use crate::policy::approval::{OPEN, Question};
use crate::policy::statement::Statement;

/// Request decisions from an operator, and make them
#[derive(Parser, Debug)]
#[command(
    name = Self::NAME,
    version,
    after_help = "Examples:
  hf-decide list --open
  hf-decide show DEC-0001
  hf-decide approve DEC-0001 --comment 'Go ahead'
  hf-decide reject DEC-0002 --reason 'Too expensive'
  hf-decide list --escalations --open
  hf-decide acknowledge ESC-0001 --reason 'The server is gone; nothing to do'
  hf-decide sign statement.txt --operator-key ~/.ssh/id_ed25519_sk

An approval covers exactly what was requested; after a change, it has to be requested again. Only operators can \
approve or reject: agents, and commands in their shells, are refused. That is a convention, not a boundary, because a \
program that runs as the same user can leave such a shell. Only questions that the toolkit itself asks open a gate; \
the answer to any other question is recorded and changes nothing else.

Signing runs ssh-keygen, so the key can be in a file, in ssh-agent or in a FIDO authenticator. It needs no vault: you \
can sign as another user, or on another machine."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Request a decision from an operator
    Request {
        /// The kind of decision: requirement_approval or destructive_operation
        #[arg(long, value_name = "KIND")]
        kind: String,
        /// The requirement or task to decide about
        #[arg(long, value_name = "REF")]
        target: String,
        /// The question, in one line
        #[arg(long, value_name = "TEXT")]
        summary: String,
        /// An option to choose from (repeatable)
        #[arg(long = "option", value_name = "TEXT")]
        options: Vec<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Approve a request (operators only)
    Approve {
        /// The decision, such as DEC-0001
        reference: String,
        /// The chosen option
        #[arg(long, value_name = "TEXT")]
        option: Option<String>,
        /// A comment for the record
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Reject a request (operators only)
    Reject {
        /// The decision, such as DEC-0001
        reference: String,
        /// Why it is rejected
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Take note of an escalation, so that it is no longer a problem (operators only)
    Acknowledge {
        /// The escalation, such as ESC-0001
        reference: String,
        /// What you make of it, for the record
        #[arg(long, value_name = "TEXT")]
        reason: String,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Sign a statement with an operator key; needs no vault (operators only)
    Sign {
        /// The file with the statement
        file: PathBuf,
        /// The key: the file of a private key, or of a public key if ssh-agent has the private one [default: $HF_OPERATOR_KEY]
        #[arg(long, visible_alias = "key", value_name = "FILE")]
        operator_key: Option<PathBuf>,
        /// Write the signature to this file [default: the file of the statement, with .sig added]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Sign without showing the statement and asking
        #[arg(long)]
        yes: bool,
    },
    /// List decisions, or escalations
    List {
        /// Only open ones
        #[arg(long)]
        open: bool,
        /// List escalations instead of decisions
        #[arg(long)]
        escalations: bool,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a decision with everything it would approve, or an escalation
    Show {
        /// The decision or escalation, such as DEC-0001 or ESC-0001
        reference: String,
    },
}

impl Command for Args {
    const NAME: &str = "hf-decide";

    fn needs_vault(matches: &ArgMatches) -> bool {
        !has_subcommand(matches, &["sign"])
    }

    fn run(self, ctx: &Context, _: StdoutWriter) -> anyhow::Result<Output> {
        Ok(match self.verb {
            Verb::Request { kind, target, summary, options, write } => {
                let unknown =
                    || Error::usage(format!("unknown kind '{}'; one of requirement_approval, destructive_operation", text::cut(&kind, 40)));
                let question = Question::parse(&kind).filter(|q| *q != Question::Constraint).ok_or_else(unknown)?;
                let request = DecisionRequest { question, target, summary, options, key: write.key };
                decide::request(ctx, request)?.into()
            }
            Verb::Approve { reference, option, comment, write } => {
                decide::approve(ctx, ApproveRequest { reference, option, comment, key: write.key })?.into()
            }
            Verb::Reject { reference, reason, write } => {
                decide::reject(ctx, RejectDecisionRequest { reference, reason, key: write.key })?.into()
            }
            Verb::Acknowledge { reference, reason, write } => {
                decide::acknowledge(ctx, AcknowledgeRequest { reference, reason, key: write.key })?.into()
            }
            Verb::Sign { file, operator_key, out, yes } => {
                let on_terminal = io::stderr().is_terminal();
                let prompts = if on_terminal { Prompts::OnTerminal } else { Prompts::Nobody };
                let mut confirm = |statement: &Statement| if yes { Ok(()) } else { ask_to_sign(statement) };
                sign::sign_file(ctx, SignFileRequest { file, out, key: operator_key, prompts }, &mut confirm)?.into()
            }
            Verb::List { open, escalations, page } => {
                let (entity, open_phases) = match escalations {
                    true => (EntityType::Escalation, vec![Phase::Open]),
                    false => (EntityType::Decision, OPEN.to_vec()),
                };
                let phases = if open { open_phases } else { Vec::new() };
                project::list(ctx, page.list_request(entity, phases))?.into()
            }
            Verb::Show { reference } => {
                let wanted = &[EntityType::Decision, EntityType::Escalation];
                op::show(ctx, ShowRequest { reference, wanted })?.into()
            }
        })
    }
}

/// Shows a statement on the terminal, and asks whether to sign it.
fn ask_to_sign(statement: &Statement) -> Result<()> {
    let not_confirmed = |why: &str| Error::refused(Reason::NotConfirmed, why);
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(not_confirmed("nobody can be asked without a terminal; to sign without being asked, add --yes"));
    }
    let size = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    let columns = if size < COLUMNS_MIN { COLUMNS_DEFAULT } else { size };
    write_all(io::stderr(), format!("{}\nSign this statement? [y/N] ", folded(&statement.to_string(), columns)).as_bytes());
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(|e| Error::system("cannot read the answer", e))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(not_confirmed("not confirmed; nothing was signed")),
    }
}

/// The width of a terminal that does not tell, or tells nonsense.
const COLUMNS_DEFAULT: usize = 80;
const COLUMNS_MIN: usize = 20;
/// What a line starts with if it continues the one above it. No line of a statement starts with a space.
const CONTINUED: &str = "    ";

/// The text with long lines folded. If the terminal folded them, a value could be made to look like further lines.
fn folded(text: &str, columns: usize) -> String {
    let mut folded = String::new();
    for line in text.lines() {
        let mut used = 0;
        for c in line.chars() {
            let width = c.width().unwrap_or(0);
            if used + width > columns {
                folded.push('\n');
                folded.push_str(CONTINUED);
                used = CONTINUED.len();
            }
            folded.push(c);
            used += width;
        }
        folded.push('\n');
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_value_does_not_look_like_a_line_of_its_own() {
        let text = format!("comment: {}option: yes\nsubject: system\n", "x".repeat(11));
        assert_eq!(folded(&text, 20), "comment: xxxxxxxxxxx\n    option: yes\nsubject: system\n");
        assert_eq!(folded("comment: 作業作業作業作業\n", 20), "comment: 作業作業作\n    業作業\n");
        assert_eq!(folded("a\n\nb\n", 20), "a\n\nb\n");
    }
}
