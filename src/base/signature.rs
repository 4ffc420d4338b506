//! Operators' SSH keys, and the signatures that `ssh-keygen -Y sign` makes with them (SSHSIG).
//!
//! ssh-key does the cryptography. Checked here is what neither it nor ssh-keygen checks: that a key is not weak, that
//! a signature has the one form that ssh-keygen writes, and whether a FIDO key was touched and a PIN entered.
//!
//! Invariant: what is accepted here is accepted by ssh-keygen, too (`a8_every_form_verifies_here_and_with_ssh_keygen`).
//! Invariant: one signature has one text, and no bit of it can be changed
//! (`a8_no_changed_bit_of_a_signature_verifies`).

use std::fmt;

use ed25519_dalek::VerifyingKey;
use ssh_key::public::{EcdsaPublicKey, KeyData};
use ssh_key::{HashAlg, LineEnding, PublicKey, SshSig};

use super::{Error, Reason, names, text};

/// A line with a public key.
pub const KEY_MAX_BYTES: usize = 1024;
/// The comment of a key.
pub const KEY_COMMENT_MAX_CHARS: usize = 100;
/// An armored signature.
pub const SIGNATURE_MAX_BYTES: usize = 4096;

names! {
    /// The types of keys that an operator can have, as OpenSSH names them.
    pub enum KeyType {
        Ed25519 = "ssh-ed25519",
        EcdsaP256 = "ecdsa-sha2-nistp256",
        SkEd25519 = "sk-ssh-ed25519@openssh.com",
        SkEcdsaP256 = "sk-ecdsa-sha2-nistp256@openssh.com",
    }
}

impl KeyType {
    /// Whether the private half is in a FIDO authenticator, which says in every signature what it asked for.
    pub const fn is_fido(self) -> bool {
        matches!(self, KeyType::SkEd25519 | KeyType::SkEcdsaP256)
    }

    /// The most that a signature by such a key can prove.
    pub const fn max_strength(self) -> Strength {
        if self.is_fido() { Strength::TouchAndPin } else { Strength::Key }
    }
}

names! {
    /// What a signature proves about its making, weakest first.
    pub enum Strength {
        /// Somebody could use the key.
        Key = "key",
        /// Somebody touched the authenticator.
        Touch = "touch",
        /// Somebody touched the authenticator and entered its PIN, or was recognized by it.
        TouchAndPin = "touch_and_pin",
    }
}

/// What ends the name of a certificate's type.
const CERTIFICATE_SUFFIX: &str = "-cert-v01@openssh.com";

/// A key's fingerprint, as `ssh-keygen -l` prints it: `SHA256:` and 43 characters of base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(ssh_key::Fingerprint);

impl Fingerprint {
    /// Parses the exact form that is written.
    pub fn parse(text: &str) -> Option<Self> {
        let parsed: ssh_key::Fingerprint = text.parse().ok()?;
        (parsed.algorithm() == HashAlg::Sha256 && parsed.to_string() == text).then_some(Fingerprint(parsed))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An operator's public key. Its text is the line of an OpenSSH `.pub` file, with single spaces and no line end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorKey {
    key_type: KeyType,
    data: KeyData,
    comment: String,
}

impl OperatorKey {
    /// Parses a line of a `.pub` file, with or without its line end.
    pub fn parse(line: &str) -> Result<Self, KeyRefusal> {
        if line.trim_start().starts_with("-----BEGIN") {
            return Err(KeyRefusal::PrivateKey);
        }
        if line.len() > KEY_MAX_BYTES {
            return Err(KeyRefusal::TooLong);
        }
        let line = line.trim_matches([' ', '\t', '\r', '\n']);
        if line.contains(['\n', '\r']) {
            return Err(KeyRefusal::SeveralLines);
        }
        let (name, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let rest = rest.trim_start_matches([' ', '\t']);
        let (encoded, comment) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let comment = comment.trim_start_matches([' ', '\t']);
        match KeyType::parse(name) {
            _ if line.is_empty() => return Err(KeyRefusal::Empty),
            None if name.ends_with(CERTIFICATE_SUFFIX) => return Err(KeyRefusal::Certificate),
            None => return Err(KeyRefusal::Type(name.to_owned())),
            Some(_) => {}
        }
        // Keys are read back from old logs, so this rule must not grow with the list of unsafe characters.
        if comment.chars().count() > KEY_COMMENT_MAX_CHARS || comment.contains(char::is_control) {
            return Err(KeyRefusal::Comment);
        }
        let public = PublicKey::from_openssh(&format!("{name} {encoded}")).map_err(|_| KeyRefusal::Malformed)?;
        let key = OperatorKey::checked(public.key_data().clone(), comment)?;
        // Base64 has several spellings of the same bytes; only one of them is a key's text.
        match key.to_string().strip_suffix(comment).map(str::trim_end) == Some(&format!("{name} {encoded}")) {
            true => Ok(key),
            false => Err(KeyRefusal::Malformed),
        }
    }

    /// Parses a file with a key on each line. Empty lines and lines that start with `#` are skipped. An error names
    /// the line, counted from 1.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, (usize, KeyRefusal)> {
        let is_key = |line: &str| !matches!(line.trim_start().bytes().next(), None | Some(b'#'));
        let lines = text.lines().enumerate().filter(|(_, line)| is_key(line));
        lines.map(|(n, line)| OperatorKey::parse(line).map_err(|why| (n + 1, why))).collect()
    }

    /// A key, if it is one of the accepted types and its point is a good one.
    fn checked(data: KeyData, comment: &str) -> Result<Self, KeyRefusal> {
        let key_type = match &data {
            KeyData::Ed25519(key) => check_ed25519(&key.0).map(|()| KeyType::Ed25519),
            KeyData::SkEd25519(key) => {
                check_application(key.application())?;
                check_ed25519(&key.public_key().0).map(|()| KeyType::SkEd25519)
            }
            KeyData::Ecdsa(EcdsaPublicKey::NistP256(point)) => {
                check_p256(point.as_bytes()).map(|()| KeyType::EcdsaP256)
            }
            KeyData::SkEcdsaSha2NistP256(key) => {
                check_application(key.application())?;
                check_p256(key.ec_point().as_bytes()).map(|()| KeyType::SkEcdsaP256)
            }
            KeyData::Certificate(_) => Err(KeyRefusal::Certificate),
            other => Err(KeyRefusal::Type(other.algorithm().as_str().to_owned())),
        }?;
        Ok(OperatorKey { key_type, data, comment: comment.to_owned() })
    }

    pub fn key_type(&self) -> KeyType {
        self.key_type
    }

    /// The comment in the `.pub` file; empty for a key that was taken from a signature.
    pub fn comment(&self) -> &str {
        &self.comment
    }

    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(self.data.fingerprint(HashAlg::Sha256))
    }

    /// Whether both are the same key, whatever their comments.
    pub fn is_same_key(&self, other: &OperatorKey) -> bool {
        self.data == other.data
    }

    /// The most that a signature by this key can prove.
    pub fn max_strength(&self) -> Strength {
        self.key_type.max_strength()
    }
}

impl fmt::Display for OperatorKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let public = PublicKey::new(self.data.clone(), self.comment.as_str());
        f.write_str(&public.to_openssh().map_err(|_| fmt::Error)?)
    }
}

/// Refuses a point of small order, for which anybody can sign, and a second spelling of a point.
fn check_ed25519(bytes: &[u8; 32]) -> Result<(), KeyRefusal> {
    let key = VerifyingKey::from_bytes(bytes).map_err(|_| KeyRefusal::OffCurve)?;
    match key.is_weak() || key.to_edwards().compress().as_bytes() != bytes {
        true => Err(KeyRefusal::WeakPoint),
        false => Ok(()),
    }
}

/// The first byte of a point that is written with both coordinates.
const UNCOMPRESSED: u8 = 4;

/// Refuses a point that is not on the curve, and the compressed spelling, which OpenSSH does not know.
fn check_p256(bytes: &[u8]) -> Result<(), KeyRefusal> {
    match bytes.first() == Some(&UNCOMPRESSED) && p256::PublicKey::from_sec1_bytes(bytes).is_ok() {
        true => Ok(()),
        false => Err(KeyRefusal::OffCurve),
    }
}

/// The name of the application that a FIDO key was made for, usually `ssh:`. OpenSSH reads it up to a NUL.
fn check_application(name: &str) -> Result<(), KeyRefusal> {
    if name.contains(char::is_control) { Err(KeyRefusal::Malformed) } else { Ok(()) }
}

/// Why a text is not an operator's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyRefusal {
    Empty,
    TooLong,
    SeveralLines,
    PrivateKey,
    /// A type that is not accepted.
    Type(String),
    Certificate,
    Malformed,
    /// A point of small order, or a second spelling of a point.
    WeakPoint,
    OffCurve,
    Comment,
}

impl fmt::Display for KeyRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyRefusal::Empty => f.write_str("no key; expected the line of an OpenSSH .pub file"),
            KeyRefusal::TooLong => write!(f, "too long for a public key; at most {KEY_MAX_BYTES} bytes"),
            KeyRefusal::SeveralLines => f.write_str("several lines; a public key is one line"),
            KeyRefusal::PrivateKey => f.write_str("a private key; use its .pub file, and keep this one to yourself"),
            KeyRefusal::Type(name) => {
                let known: Vec<&str> = KeyType::ALL.iter().map(|known| known.as_str()).collect();
                let name = text::escape(&text::cut(name, 40));
                write!(f, "unsupported type of key '{name}'; one of {}", known.join(", "))
            }
            KeyRefusal::Certificate => f.write_str("a certificate; use the .pub file of the key that it certifies"),
            KeyRefusal::Malformed => f.write_str("not a valid public key; copy the line of the .pub file again"),
            KeyRefusal::WeakPoint => f.write_str("a weak key, for which anybody can make signatures"),
            KeyRefusal::OffCurve => f.write_str("not a valid public key: its point is not on the curve"),
            KeyRefusal::Comment => {
                write!(f, "invalid comment; at most {KEY_COMMENT_MAX_CHARS} characters, without control characters")
            }
        }
    }
}

impl KeyRefusal {
    /// The error of a command that was given such a key.
    pub fn into_error(self) -> Error {
        Error::usage(self.to_string())
    }
}

const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
/// Where ssh-keygen breaks the lines of a signature.
const ARMOR_LINE_CHARS: usize = 70;

/// The bits of the FIDO flags that are expected: the authenticator was touched, and it verified its user.
const USER_PRESENT: u8 = 0x01;
const USER_VERIFIED: u8 = 0x04;
/// The flags of a FIDO signature are the first of the five bytes at its end; a counter follows.
const FIDO_TRAILER_BYTES: usize = 5;

/// A signature, with the key that it claims to be made by. It proves nothing until it is verified. Its text is what
/// ssh-keygen writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    sshsig: SshSig,
    key: OperatorKey,
}

/// What a verified signature proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The key that made it, without a comment.
    pub key: OperatorKey,
    /// What is known about its making.
    pub strength: Strength,
}

impl Signature {
    /// Parses an armored signature. Line breaks may differ from those of ssh-keygen, since they change on the way
    /// through mail and web pages; everything else must be as ssh-keygen writes it.
    pub fn parse(armored: &str) -> Result<Self, SignatureRefusal> {
        if armored.len() > SIGNATURE_MAX_BYTES {
            return Err(SignatureRefusal::TooLong);
        }
        let body = armored.trim_ascii().strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let body = body.filter(|body| body.starts_with(['\n', '\r']) && body.ends_with('\n'));
        let body = body.ok_or(SignatureRefusal::NotArmored)?;
        let encoded: Vec<u8> = body.bytes().filter(|byte| !b" \t\r\n".contains(byte)).collect();
        let lines: Vec<_> = encoded.chunks(ARMOR_LINE_CHARS).map(String::from_utf8_lossy).collect();
        let canonical = format!("{BEGIN}\n{}\n{END}\n", lines.join("\n"));
        let sshsig = SshSig::from_pem(&canonical).map_err(|error| match error {
            ssh_key::Error::Version { number } => SignatureRefusal::Version(number),
            ssh_key::Error::Encoding(ssh_key::encoding::Error::Label(_)) => SignatureRefusal::Algorithm,
            _ => SignatureRefusal::Malformed,
        })?;
        if sshsig.version() != SshSig::VERSION {
            return Err(SignatureRefusal::Version(sshsig.version()));
        }
        if !sshsig.reserved().is_empty() {
            return Err(SignatureRefusal::Reserved);
        }
        let key = OperatorKey::checked(sshsig.public_key().clone(), "").map_err(SignatureRefusal::Key)?;
        if sshsig.algorithm().as_str() != key.key_type().as_str() {
            return Err(SignatureRefusal::Algorithm);
        }
        // The parser is lenient in places; what is written back is not.
        match sshsig.to_pem(LineEnding::LF) {
            Ok(again) if again == canonical => Ok(Signature { sshsig, key }),
            _ => Err(SignatureRefusal::Malformed),
        }
    }

    /// The key that it claims to be made by.
    pub fn claimed_key(&self) -> &OperatorKey {
        &self.key
    }

    /// Verifies that it was made over exactly these bytes, for this namespace, by the key that it names.
    pub fn verify(&self, message: &[u8], namespace: &str) -> Result<Proof, SignatureRefusal> {
        if self.sshsig.namespace() != namespace {
            return Err(SignatureRefusal::Namespace(self.sshsig.namespace().to_owned()));
        }
        let public = PublicKey::from(self.key.data.clone());
        public.verify(namespace, message, &self.sshsig).map_err(|_| SignatureRefusal::Wrong)?;
        let bytes = self.sshsig.signature_bytes();
        if matches!(self.key.key_type, KeyType::Ed25519 | KeyType::SkEd25519) {
            let point = bytes.first_chunk().ok_or(SignatureRefusal::Malformed)?;
            check_ed25519(point).map_err(|_| SignatureRefusal::WeakPoint)?;
        }
        let strength = match self.key.key_type.is_fido() {
            false => Strength::Key,
            true => {
                let trailer = bytes.last_chunk::<FIDO_TRAILER_BYTES>().ok_or(SignatureRefusal::Malformed)?;
                strength_of(trailer[0])?
            }
        };
        Ok(Proof { key: self.key.clone(), strength })
    }
}

/// What the flags of a FIDO signature prove.
fn strength_of(flags: u8) -> Result<Strength, SignatureRefusal> {
    if flags & !(USER_PRESENT | USER_VERIFIED) != 0 {
        return Err(SignatureRefusal::Flags(flags));
    }
    Ok(match (flags & USER_PRESENT != 0, flags & USER_VERIFIED != 0) {
        (true, true) => Strength::TouchAndPin,
        (true, false) => Strength::Touch,
        // A PIN without a touch may have been entered long before.
        (false, _) => Strength::Key,
    })
}

/// The armored text, as ssh-keygen writes it, with the line end of its last line.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sshsig.to_pem(LineEnding::LF).map_err(|_| fmt::Error)?)
    }
}

/// Why a signature is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureRefusal {
    TooLong,
    NotArmored,
    Malformed,
    /// A version of the format other than 1.
    Version(u32),
    /// The field that the format reserves is not empty.
    Reserved,
    /// A hash other than SHA-256 and SHA-512, or a signature of another type than its key.
    Algorithm,
    /// The key in it is not accepted.
    Key(KeyRefusal),
    /// It was made for another purpose.
    Namespace(String),
    /// FIDO flags with an unknown meaning.
    Flags(u8),
    /// A point of small order.
    WeakPoint,
    /// It was made over another text, or by another key.
    Wrong,
}

impl fmt::Display for SignatureRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignatureRefusal::TooLong => {
                write!(f, "too long for an SSH signature; at most {SIGNATURE_MAX_BYTES} bytes")
            }
            SignatureRefusal::NotArmored => write!(f, "not an SSH signature; expected a text that starts with {BEGIN}"),
            SignatureRefusal::Malformed => f.write_str("the signature is damaged, or not one that ssh-keygen makes"),
            SignatureRefusal::Version(number) => write!(f, "version {number} of the SSH signature format; must be 1"),
            SignatureRefusal::Reserved => f.write_str("the reserved field of the signature is not empty"),
            SignatureRefusal::Algorithm => f.write_str(
                "unknown algorithm in the signature; the hash must be sha512 or sha256, and its type that of its key",
            ),
            SignatureRefusal::Key(why) => write!(f, "the key of the signature is not accepted: {why}"),
            SignatureRefusal::Namespace(name) => {
                write!(f, "the signature was made for the namespace '{}'", text::escape(&text::cut(name, 40)))
            }
            SignatureRefusal::Flags(flags) => write!(f, "unknown FIDO flags 0x{flags:02x} in the signature"),
            SignatureRefusal::WeakPoint => f.write_str("the signature contains a weak point"),
            SignatureRefusal::Wrong => f.write_str("the signature does not fit this text and its key"),
        }
    }
}

impl SignatureRefusal {
    /// The error of a command that was given such a signature.
    pub fn into_error(self) -> Error {
        Error::refused(Reason::BadSignature, self.to_string())
    }
}

#[cfg(test)]
mod tests;
