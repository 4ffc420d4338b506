//! hf-decide: decisions, and approval by an operator.

use std::path::PathBuf;

use clap::{ArgMatches, Parser, Subcommand};

use super::args::{GlobalArgs, PageArgs, ProjectArgs, SignArgs, WriteArgs, prompts};
use super::confirm::ask_to_sign;
use super::key::KeyName;
use super::main::{has_out_file, has_subcommand};
use super::{Command, Output, StdoutWriter};
use crate::base::{EntityType, Error, text};
use crate::machine::Phase;
use crate::op::decide::{self, AcknowledgeRequest, ApproveRequest, DecisionRequest, RejectDecisionRequest};
use crate::op::key::{AddKeyRequest, RemoveKeyRequest};
use crate::op::pause::{ArchiveRequest, ResumeProjectRequest};
use crate::op::require::{RejectRequirementRequest, SupersedeRequest, VerifyRequirementRequest};
use crate::op::sign::{self, SignFileRequest};
use crate::op::{self, ActRequest, Context, ResumeSystemRequest, ShowRequest, project};
use crate::policy::approval::{OPEN, Question};
use crate::policy::statement::Statement;
use crate::reply::Replies;

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
  hf-decide statement approve DEC-0003 --out statement.txt
  hf-decide sign statement.txt --operator-key ~/.ssh/id_ed25519_sk
  hf-decide approve DEC-0003 --signature statement.txt.sig

An approval covers exactly what was requested; after a change, it has to be requested again. Only operators can \
approve or reject: agents, and commands in their shells, are refused. Without operator keys that is a convention, not a \
boundary, because a program that runs as the same user can leave such a shell. With operator keys the signature decides, \
not the shell; hf-key(1) says what it proves. On a terminal, approve shows what is approved and asks first. Only questions that the toolkit itself asks open a gate; the answer to \
any other question is recorded and changes nothing else.

The approval of a command binds its words, the real path of its directory, its whole environment, and the files that \
it names: the program, the interpreters of scripts, and every argument that is a file, by SHA-256. show and approve print \
all of it as COVERS, with SAME or CHANGED as of now. When the command is about to start, its supervisor compares again; \
if something differs, the command does not start, and approval is requested again. NOT_COVERED says what is never bound.

Signing runs ssh-keygen, so the key can be in a file, in ssh-agent or in a FIDO authenticator. It needs no vault: to \
sign as another user or on another machine, take the output of statement there, and hand in the signature with \
--signature."
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
    /// Approve requests, all of them or none (operators only)
    Approve {
        /// The decisions, such as DEC-0001
        #[arg(value_name = "REFERENCE", required = true)]
        references: Vec<String>,
        /// The chosen option
        #[arg(long, value_name = "TEXT")]
        option: Option<String>,
        /// A comment for the record
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
        #[command(flatten)]
        write: WriteArgs,
        #[command(flatten)]
        sign: SignArgs,
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
        #[command(flatten)]
        sign: SignArgs,
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
    /// Print the statement that an operator signs for an act, to be signed as another user or on another machine
    Statement {
        #[command(subcommand)]
        act: ActArgs,
        /// Write the statement to this file
        #[arg(long, value_name = "FILE", global = true)]
        out: Option<PathBuf>,
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

/// An act that operators sign.
#[derive(Subcommand, Debug)]
enum ActArgs {
    /// Approve decisions
    Approve {
        /// The decisions, such as DEC-0001
        #[arg(value_name = "REFERENCE", required = true)]
        references: Vec<String>,
        /// The chosen option
        #[arg(long, value_name = "TEXT")]
        option: Option<String>,
        /// A comment for the record
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
    },
    /// Reject a decision
    Reject {
        /// The decision, such as DEC-0001
        reference: String,
        /// Why it is rejected
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Verify a requirement
    Verify {
        /// The requirement, such as REQ-0001
        reference: String,
    },
    /// Supersede a requirement
    Supersede {
        /// The superseded requirement, such as REQ-0001
        reference: String,
        /// The requirement that supersedes it
        #[arg(long, value_name = "REF")]
        by: Option<String>,
    },
    /// Reject a requirement
    RejectRequirement {
        /// The requirement, such as REQ-0001
        reference: String,
        /// Why it is rejected
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Lift a stop
    LiftStop {
        /// A comment for the record
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
    },
    /// Resume a project
    ResumeProject {
        /// A comment for the record
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
        #[command(flatten)]
        project: ProjectArgs,
    },
    /// Archive a project
    ArchiveProject {
        /// The reason
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        project: ProjectArgs,
    },
    /// Adopt the settings in the file
    AdoptSettings,
    /// Add an operator key
    AddKey {
        /// The .pub file of the key
        file: PathBuf,
    },
    /// Remove an operator key
    RemoveKey {
        /// The key: its fingerprint, or its .pub file
        key: KeyName,
        /// Somebody else may have it
        #[arg(long)]
        compromised: bool,
    },
    /// Recover the log from damage
    Recover,
}

impl ActArgs {
    fn request(self) -> crate::base::Result<ActRequest> {
        let key = None;
        Ok(match self {
            ActArgs::Approve { references, option, comment } => {
                ActRequest::Approve(ApproveRequest { references, option, comment, key })
            }
            ActArgs::Reject { reference, reason } => {
                ActRequest::Reject(RejectDecisionRequest { reference, reason, key })
            }
            ActArgs::Verify { reference } => ActRequest::Verify(VerifyRequirementRequest { reference, key }),
            ActArgs::Supersede { reference, by } => ActRequest::Supersede(SupersedeRequest { reference, by, key }),
            ActArgs::RejectRequirement { reference, reason } => {
                ActRequest::RejectRequirement(RejectRequirementRequest { reference, reason, key })
            }
            ActArgs::LiftStop { comment } => ActRequest::LiftStop(ResumeSystemRequest { comment }),
            ActArgs::ResumeProject { comment, .. } => ActRequest::ResumeProject(ResumeProjectRequest { comment }),
            ActArgs::ArchiveProject { reason, .. } => ActRequest::ArchiveProject(ArchiveRequest { reason }),
            ActArgs::AdoptSettings => ActRequest::AdoptSettings,
            ActArgs::AddKey { file } => ActRequest::AddKey(AddKeyRequest { key: sign::read_key(&file)?, file }),
            ActArgs::RemoveKey { key, compromised } => {
                ActRequest::RemoveKey(RemoveKeyRequest { key: key.fingerprint()?, compromised })
            }
            ActArgs::Recover => ActRequest::Recover,
        })
    }
}

impl Command for Args {
    const NAME: &str = "hf-decide";

    fn writes_document(matches: &ArgMatches) -> bool {
        has_subcommand(matches, &["statement"]) && !has_out_file(matches)
    }

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
            Verb::Approve { references, option, comment, write, sign } => {
                let request = ApproveRequest { references, option, comment, key: write.key };
                decide::approve(&sign.context(ctx)?, request)?.into()
            }
            Verb::Reject { reference, reason, write, sign } => {
                let request = RejectDecisionRequest { reference, reason, key: write.key };
                decide::reject(&sign.context(ctx)?, request)?.into()
            }
            Verb::Statement { act, out } => {
                let planned = op::statement(ctx, act.request()?)?;
                match out {
                    None => Output::document(planned.statement.to_string(), planned.reply()),
                    Some(file) => {
                        sign::write_statement(&planned.statement, &file)?;
                        planned.into()
                    }
                }
            }
            Verb::Acknowledge { reference, reason, write } => {
                decide::acknowledge(ctx, AcknowledgeRequest { reference, reason, key: write.key })?.into()
            }
            Verb::Sign { file, operator_key, out, yes } => {
                let prompts = prompts();
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
