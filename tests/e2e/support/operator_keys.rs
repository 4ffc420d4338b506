//! Keys of operators, and every form of their signatures: made by ssh-keygen, or composed here from a plain key, since
//! no test machine has a FIDO authenticator. ssh-keygen says which of them are valid.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ed25519_dalek::Signer;
use hiveforge::base::signature::KeyType;
use hiveforge::policy::statement::NAMESPACE;
use ssh_key::encoding::base64::{Base64, Encoding};
use ssh_key::public::{EcdsaPublicKey, Ed25519PublicKey, KeyData, SkEcdsaSha2NistP256, SkEd25519};
use ssh_key::{HashAlg, PublicKey};

/// What a FIDO key was made for.
const APPLICATION: &str = "ssh:";

/// Runs ssh-keygen with this standard input.
pub fn ssh_keygen(args: &[&str], input: &[u8]) -> Output {
    use std::io::Write;
    let mut child = Command::new("ssh-keygen")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("ssh-keygen is installed (package openssh-client)");
    // It need not read all of it.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("ssh-keygen ends")
}

/// Makes a key without a passphrase; returns the file of its private half, beside which is the `.pub` file.
pub fn make_key(dir: &Path, name: &str, key_type: &str) -> PathBuf {
    let file = dir.join(name);
    let path = file.to_str().expect("UTF-8");
    let made = ssh_keygen(&["-q", "-t", key_type, "-N", "", "-C", "jo@example", "-f", path], b"");
    assert!(made.status.success(), "{made:?}");
    file
}

/// The line in the `.pub` file of a key.
pub fn public_line(key: &Path) -> String {
    fs::read_to_string(key.with_extension("pub")).expect("a public key")
}

/// Whether ssh-keygen finds that a signature fits a message in the namespace of operators.
pub fn ssh_keygen_accepts(dir: &Path, armored: &str, message: &[u8]) -> bool {
    let file = dir.join("checked.sig");
    fs::write(&file, armored).expect("a file");
    let path = file.to_str().expect("UTF-8");
    ssh_keygen(&["-Y", "check-novalidate", "-n", NAMESPACE, "-s", path], message).status.success()
}

/// The private half of a key.
#[derive(Clone)]
enum Secret {
    Ed25519(Box<ed25519_dalek::SigningKey>),
    P256(Box<p256::ecdsa::SigningKey>),
}

/// A key of any type whose private half the test has.
#[derive(Clone)]
pub struct SoftKey {
    pub key_type: KeyType,
    pub public: KeyData,
    secret: Secret,
}

/// How to sign, and what to get wrong.
#[derive(Clone, Debug)]
pub struct How<'a> {
    pub version: u32,
    pub namespace: &'a str,
    pub reserved: &'a [u8],
    pub hash: HashAlg,
    /// The flags of a FIDO signature.
    pub flags: u8,
    pub counter: u32,
    /// Bytes at the end of the signature.
    pub trailing: &'a [u8],
}

impl Default for How<'_> {
    fn default() -> Self {
        How {
            version: 1,
            namespace: NAMESPACE,
            reserved: b"",
            hash: HashAlg::Sha512,
            flags: 0x01,
            counter: 7,
            trailing: b"",
        }
    }
}

impl SoftKey {
    /// The nth key of a type.
    pub fn new(key_type: KeyType, n: u8) -> Self {
        let seed = [n.wrapping_add(1); 32];
        let ed25519 = ed25519_dalek::SigningKey::from_bytes(&seed);
        let p256 = p256::ecdsa::SigningKey::from_slice(&seed).expect("a scalar");
        let ed_public = Ed25519PublicKey::from(ed25519.verifying_key());
        let EcdsaPublicKey::NistP256(point) = EcdsaPublicKey::from(p256.verifying_key()) else { unreachable!() };
        let public = match key_type {
            KeyType::Ed25519 => KeyData::Ed25519(ed_public),
            KeyType::EcdsaP256 => KeyData::Ecdsa(EcdsaPublicKey::NistP256(point)),
            KeyType::SkEd25519 => KeyData::SkEd25519(SkEd25519::new(ed_public, APPLICATION)),
            KeyType::SkEcdsaP256 => KeyData::SkEcdsaSha2NistP256(SkEcdsaSha2NistP256::new(point, APPLICATION)),
        };
        let secret = match key_type {
            KeyType::Ed25519 | KeyType::SkEd25519 => Secret::Ed25519(Box::new(ed25519)),
            KeyType::EcdsaP256 | KeyType::SkEcdsaP256 => Secret::P256(Box::new(p256)),
        };
        SoftKey { key_type, public, secret }
    }

    /// The same private half under another public one.
    pub fn claiming(self, public: KeyData) -> Self {
        SoftKey { public, ..self }
    }

    /// The line of its `.pub` file.
    pub fn line(&self) -> String {
        PublicKey::from(self.public.clone()).to_openssh().expect("a line")
    }

    /// Signs as ssh-keygen does.
    pub fn sign(&self, message: &[u8], how: &How<'_>) -> String {
        let mut signed = b"SSHSIG".to_vec();
        put(&mut signed, how.namespace.as_bytes());
        put(&mut signed, how.reserved);
        put(&mut signed, how.hash.as_str().as_bytes());
        put(&mut signed, &how.hash.digest(message));
        let trailer = [&[how.flags], &how.counter.to_be_bytes()[..]].concat();
        if self.key_type.is_fido() {
            let (application, hashed) =
                (HashAlg::Sha256.digest(APPLICATION.as_bytes()), HashAlg::Sha256.digest(&signed));
            signed = [&application, &trailer[..], &hashed].concat();
        }
        let mut blob = Vec::new();
        put(&mut blob, self.key_type.as_str().as_bytes());
        put(&mut blob, &self.raw(&signed));
        if self.key_type.is_fido() {
            blob.extend(trailer);
        }
        self.envelope(&blob, how)
    }

    /// The armored text around a signature.
    pub fn envelope(&self, blob: &[u8], how: &How<'_>) -> String {
        let mut all = b"SSHSIG".to_vec();
        all.extend(how.version.to_be_bytes());
        put(&mut all, &PublicKey::from(self.public.clone()).to_bytes().expect("bytes"));
        put(&mut all, how.namespace.as_bytes());
        put(&mut all, how.reserved);
        put(&mut all, how.hash.as_str().as_bytes());
        put(&mut all, blob);
        all.extend(how.trailing);
        armor(&all)
    }

    /// The bytes of a signature as SSH encodes them.
    fn raw(&self, signed: &[u8]) -> Vec<u8> {
        match &self.secret {
            Secret::Ed25519(key) => key.sign(signed).to_bytes().to_vec(),
            Secret::P256(key) => {
                let signature: p256::ecdsa::Signature = key.sign(signed);
                let mut raw = Vec::new();
                for number in [signature.split_bytes().0, signature.split_bytes().1] {
                    put(&mut raw, &positive(&number));
                }
                raw
            }
        }
    }
}

/// A positive number as SSH encodes it: without leading zeros, except one if the first bit is set.
fn positive(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let bytes = &bytes[zeros..];
    match bytes.first() {
        Some(first) if first & 0x80 != 0 => [&[0], bytes].concat(),
        _ => bytes.to_vec(),
    }
}

/// Adds a string with its length.
pub fn put(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend((bytes.len() as u32).to_be_bytes());
    to.extend(bytes);
}

/// The text of a signature, as ssh-keygen writes it.
pub fn armor(bytes: &[u8]) -> String {
    let encoded = Base64::encode_string(bytes).into_bytes();
    let lines: Vec<_> = encoded.chunks(70).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"))
}

/// The bytes of a signature.
pub fn dearmor(text: &str) -> Vec<u8> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('-')).collect();
    Base64::decode_vec(&lines.concat()).expect("base64")
}
