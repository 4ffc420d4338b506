//! hf-decide sign: signs a statement with an operator's key. ssh-keygen does the signing, with the key, the agent or
//! the authenticator that the operator uses anyway: the toolkit never reads a private key.
//!
//! Needs no vault, so that an operator can sign as another user or on another machine.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Context, GivenSignature, Prompts, random_id};
use crate::base::signature::{KEY_MAX_BYTES, KeyRefusal, SIGNATURE_MAX_BYTES, SignatureRefusal};
use crate::base::{Error, OperatorKey, Proof, Reason, Result, Signature, Strength, text};
use crate::job::{self, Program};
use crate::policy::statement::{NAMESPACE, STATEMENT_MAX_BYTES, Statement, StatementRefusal};

/// The program that signs.
const SSH_KEYGEN: &str = "ssh-keygen";
/// What it is started for, as it and its helpers are told.
const PURPOSE: &str = "sign";
/// How long it may take if nobody can answer its questions: an agent may ask elsewhere, or wait for a touch.
const UNATTENDED_MAX: Duration = Duration::from_secs(60);
/// The name of the statement in the folder where it is signed; ssh-keygen adds an ending for the signature.
const STATEMENT_FILE: &str = "statement";
/// The ending that a signature's file has.
const SIGNATURE_ENDING: &str = "sig";

/// A statement to sign.
#[derive(Clone, Debug)]
pub struct SignRequest {
    /// What to sign; the caller has shown it.
    pub statement: Statement,
    /// The file of the private key, or of the public key if the private one is in ssh-agent; default: the host's.
    pub key: Option<PathBuf>,
    pub prompts: Prompts,
}

/// A signed statement.
#[derive(Clone, Debug)]
pub struct SignOutcome {
    pub statement: Statement,
    pub signature: Signature,
    /// The key that signed, and what the signature proves about its use.
    pub proof: Proof,
}

/// Signs a statement with ssh-keygen, and verifies the result. For an operator.
pub fn sign(ctx: &Context, request: SignRequest) -> Result<SignOutcome> {
    ctx.check_operator("signing")?;
    let SignRequest { statement, key, prompts } = request;
    let key = key.or_else(|| ctx.host.operator_key.clone()).ok_or_else(|| {
        Error::usage("no operator key given; name its file with --operator-key, or set HF_OPERATOR_KEY")
    })?;
    let bytes = statement.to_string();
    // A fresh folder that nobody else can write to: if the signature's file existed, ssh-keygen would ask about it.
    let folder = PrivateFolder::create(&ctx.host.temp_dir)?;
    let file = folder.0.join(STATEMENT_FILE);
    fs::write(&file, &bytes).map_err(|e| Error::system(format!("cannot write {}", file.display()), e))?;
    run_ssh_keygen(&key, &file, prompts)?;
    let armored = read_limited(&file.with_extension(SIGNATURE_ENDING), SIGNATURE_MAX_BYTES, "the signature")?;
    let armored = String::from_utf8(armored).map_err(|_| SignatureRefusal::Malformed.into_error())?;
    let signature = Signature::parse(&armored).map_err(SignatureRefusal::into_error)?;
    let proof = signature.verify(bytes.as_bytes(), NAMESPACE).map_err(SignatureRefusal::into_error)?;
    Ok(SignOutcome { statement, signature, proof })
}

/// A file with a statement to sign.
#[derive(Clone, Debug)]
pub struct SignFileRequest {
    /// The file.
    pub file: PathBuf,
    /// Where to write the signature; default: the same name with `.sig` added.
    pub out: Option<PathBuf>,
    /// The file of the private key, or of the public key if the private one is in ssh-agent; default: the host's.
    pub key: Option<PathBuf>,
    pub prompts: Prompts,
}

/// A signed file.
#[derive(Clone, Debug)]
pub struct SignFileOutcome {
    pub signed: SignOutcome,
    /// The file with the signature.
    pub out: PathBuf,
}

/// Signs the statement in a file. `confirm` is shown the statement first; if it returns an error, nothing is signed.
/// For an operator.
pub fn sign_file(
    ctx: &Context,
    request: SignFileRequest,
    confirm: &mut dyn FnMut(&Statement) -> Result<()>,
) -> Result<SignFileOutcome> {
    ctx.check_operator("signing")?;
    let SignFileRequest { file, out, key, prompts } = request;
    let bytes = read_limited(&file, STATEMENT_MAX_BYTES, "the statement")?;
    let statement = Statement::parse(&bytes).map_err(StatementRefusal::into_error)?;
    let out = out.unwrap_or_else(|| {
        let mut name = file.into_os_string();
        name.push(format!(".{SIGNATURE_ENDING}"));
        PathBuf::from(name)
    });
    // Found out before somebody enters a PIN in vain.
    if fs::symlink_metadata(&out).is_ok() {
        return Err(exists(&out));
    }
    confirm(&statement)?;
    let signed = sign(ctx, SignRequest { statement, key, prompts })?;
    write_new(&out, signed.signature.to_string().as_bytes())?;
    Ok(SignFileOutcome { signed, out })
}

/// The file of a key that can sign for one of these: the private key, or the public one if only ssh-agent has the
/// private one. `pub_file` is a `.pub` file.
pub(super) fn signing_file(pub_file: &Path) -> PathBuf {
    let private = pub_file.with_extension("");
    let is_pub = pub_file.extension().is_some_and(|ending| ending == "pub");
    if is_pub && private.is_file() { private } else { pub_file.to_owned() }
}

/// The caller's own key among these, if a `.pub` file in this directory has it; if possible one that proves enough.
pub(super) fn own_key(directory: &Path, keys: &[OperatorKey], needed: Strength) -> Option<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(directory).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "pub"));
    files.sort();
    let key = |file: &PathBuf| read_key(file).ok().filter(|key| keys.iter().any(|known| known.is_same_key(key)));
    let own: Vec<_> = files.into_iter().filter_map(|file| Some((key(&file)?.max_strength(), file))).collect();
    let strong = own.iter().find(|(strength, _)| *strength >= needed);
    strong.or(own.first()).map(|(_, file)| signing_file(file))
}

/// Reads the key in a `.pub` file.
pub fn read_key(file: &Path) -> Result<OperatorKey> {
    let bytes = read_limited(file, KEY_MAX_BYTES, "the key")?;
    let line = String::from_utf8(bytes).map_err(|_| KeyRefusal::Malformed.into_error())?;
    OperatorKey::parse(&line).map_err(|why| why.into_error().at(file.display()))
}

/// Reads the keys in a file, one on each line.
pub fn read_keys(file: &Path) -> Result<Vec<OperatorKey>> {
    let bytes = read_limited(file, KEYS_MAX_BYTES, "the list of keys")?;
    let text = String::from_utf8(bytes).map_err(|_| Error::usage(format!("{} is not UTF-8", file.display())))?;
    let named = |(line, why): (usize, KeyRefusal)| why.into_error().at(format!("{}, line {line}", file.display()));
    OperatorKey::parse_list(&text).map_err(named)
}

/// Writes a statement to a new file, for somebody else to sign.
pub fn write_statement(statement: &Statement, file: &Path) -> Result<()> {
    write_new(file, statement.to_string().as_bytes())
}

/// Reads a statement that was signed elsewhere, and its signature.
pub fn read_signature(request: ReadSignatureRequest) -> Result<GivenSignature> {
    let ReadSignatureRequest { signature: file, statement } = request;
    let named = statement.or_else(|| {
        let is_sig = file.extension().is_some_and(|ending| ending == SIGNATURE_ENDING);
        is_sig.then(|| file.with_extension(""))
    });
    let statement = named.ok_or_else(|| {
        Error::usage(format!(
            "{} does not end in .{SIGNATURE_ENDING}; name its statement with --statement",
            file.display()
        ))
    })?;
    let bytes = read_limited(&statement, STATEMENT_MAX_BYTES, "the statement")?;
    let statement = Statement::parse(&bytes).map_err(StatementRefusal::into_error)?;
    let armored = read_limited(&file, SIGNATURE_MAX_BYTES, "the signature")?;
    let armored = String::from_utf8(armored).map_err(|_| SignatureRefusal::Malformed.into_error())?;
    let signature = Signature::parse(&armored).map_err(SignatureRefusal::into_error)?;
    signature.verify(&bytes, NAMESPACE).map_err(SignatureRefusal::into_error)?;
    Ok(GivenSignature { statement, signature })
}

/// A signature that was made elsewhere.
#[derive(Clone, Debug)]
pub struct ReadSignatureRequest {
    /// Its file.
    pub signature: PathBuf,
    /// The file of the statement; default: the file of the signature, without its ending.
    pub statement: Option<PathBuf>,
}

/// Runs ssh-keygen, which writes the signature of the file beside it.
fn run_ssh_keygen(key: &Path, file: &Path, prompts: Prompts) -> Result<()> {
    let options = ["-q", "-Y", "sign", "-n", NAMESPACE, "-f"].map(OsStr::new);
    let program = Program::new(SSH_KEYGEN, PURPOSE).args(options).args([key, file]);
    let (code, said) = match prompts {
        Prompts::OnTerminal => {
            let code = job::ask_on_terminal(program).map_err(|error| error.at(SSH_KEYGEN))?;
            (code, "see its message above".to_owned())
        }
        Prompts::Nobody => {
            let answer = job::ask(program, b"", UNATTENDED_MAX).map_err(|error| error.at(SSH_KEYGEN))?;
            let said = String::from_utf8_lossy(&answer.stderr).into_owned();
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
            (answer.code, text::cut(last.trim(), MESSAGE_MAX_CHARS))
        }
    };
    match code {
        Some(0) => Ok(()),
        _ => Err(Error::refused(Reason::NotSigned, format!("ssh-keygen did not sign: {said}"))),
    }
}

/// A file with a list of keys.
const KEYS_MAX_BYTES: usize = 64 * 1024;
/// How much of ssh-keygen's message is repeated.
const MESSAGE_MAX_CHARS: usize = 200;

/// Reads a regular file that must not be longer than this.
fn read_limited(path: &Path, max: usize, what: &str) -> Result<Vec<u8>> {
    let failed = |e: std::io::Error| Error::usage(format!("cannot read {}: {e}", path.display()));
    // Reading a named pipe or a device might never end.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(Error::usage(format!("{} is not a regular file", path.display())));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(max as u64 + 1).read_to_end(&mut bytes)).map_err(failed)?;
    match bytes.len() > max {
        true => Err(Error::usage(format!("{what} in {} is too long; at most {max} bytes", path.display()))),
        false => Ok(bytes),
    }
}

/// Writes a file that must not exist yet.
fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create_new(path).map_err(|e| match e.kind() {
        IoErrorKind::AlreadyExists => exists(path),
        _ => Error::system(format!("cannot write {}", path.display()), e),
    })?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|e| {
        let _ = fs::remove_file(path);
        Error::system(format!("cannot write {}", path.display()), e)
    })
}

fn exists(path: &Path) -> Error {
    Error::usage(format!("{} already exists; remove it, or name another file with --out", path.display()))
}

/// A new directory that only its owner can use; removed with everything in it.
#[derive(Debug)]
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn create(parent: &Path) -> Result<Self> {
        let path = parent.join(format!("hf-sign-{}", random_id()?));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| Error::system(format!("cannot create {}", path.display()), e))?;
        Ok(PrivateFolder(path))
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // Best effort: it holds nothing secret.
        let _ = fs::remove_dir_all(&self.0);
    }
}
