//! Operator keys and signatures: what is accepted, what it proves, and that ssh-keygen agrees.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use hiveforge::base::signature::{KeyRefusal, KeyType, OperatorKey, Signature, SignatureRefusal, Strength};
use hiveforge::policy::statement::{NAMESPACE, Statement};
use ssh_key::HashAlg;
use ssh_key::public::{Ed25519PublicKey, KeyData};

use crate::support::operator_keys::{
    How, SoftKey, armor, dearmor, make_key, public_line, put, ssh_keygen, ssh_keygen_accepts,
};
use crate::support::test_vault::{Reply, TestVault};

const STATEMENT: &str = "\
HiveForge operator statement 1
vault: 8350d9da27a1cfc4548df170bd3e519d
authority: 01KGC3EG00WQCEHJ7YC617HV4X:sha256:e704a10693851f4178f0be0cf017f524b967e1a64696ed2e193884106bb80011
head seen: 01KGC3EG00WQCEHJ7YG542ZJ10:sha256:14fdaea278f2bd1520b79372d43a87009041f2b96a7019df561cf4a3b66bdbde

act 1 of 2: approve a decision
subject: decision:01KGC3EG00WQCEHJ7YJRXM2S8V
answers: 01KGC3EG00WQCEHJ7YJRXM2S8W:sha256:14fdaea278f2bd1520b79372d43a87009041f2b96a7019df561cf4a3b66bdbde
binds argument: rm
binds argument: -rf
binds argument: 成果物 1
comment: go ahead,\\nbut only once

act 2 of 2: resume a project
subject: project:main
answers: 01KGC3EG00WQCEHJ7YJRXM2S8W:sha256:14fdaea278f2bd1520b79372d43a87009041f2b96a7019df561cf4a3b66bdbde
";

fn verify(armored: &str, message: &[u8]) -> Result<(OperatorKey, Strength), SignatureRefusal> {
    let proof = Signature::parse(armored)?.verify(message, NAMESPACE)?;
    Ok((proof.key, proof.strength))
}

/// A key of each type.
fn soft_keys() -> Vec<SoftKey> {
    KeyType::ALL.iter().map(|key_type| SoftKey::new(*key_type, 0)).collect()
}

#[test]
fn a8_every_form_verifies_here_and_with_ssh_keygen() {
    let hive = TestVault::empty();
    for key in soft_keys() {
        let line = key.line();
        let operator_key = OperatorKey::parse(&line).unwrap();
        let listed = ssh_keygen(&["-l", "-f", "-"], line.as_bytes());
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert_eq!(listed.split(' ').nth(1), Some(operator_key.fingerprint().to_string().as_str()), "{listed}");
        for hash in [HashAlg::Sha256, HashAlg::Sha512] {
            for (flags, fido) in
                [(0x00, Strength::Key), (0x01, Strength::Touch), (0x04, Strength::Key), (0x05, Strength::TouchAndPin)]
            {
                let signature = key.sign(STATEMENT.as_bytes(), &How { hash, flags, ..How::default() });
                let (signer, strength) = verify(&signature, STATEMENT.as_bytes()).unwrap();
                assert!(signer.is_same_key(&operator_key));
                assert_eq!(strength, if key.key_type.is_fido() { fido } else { Strength::Key });
                assert!(strength <= operator_key.max_strength());
                assert!(ssh_keygen_accepts(hive.dir(), &signature, STATEMENT.as_bytes()), "{}", key.key_type);
                assert_eq!(Signature::parse(&signature).unwrap().to_string(), signature);
            }
        }
    }
}

#[test]
fn a8_without_a_touch_a_signature_proves_no_touch() {
    let hive = TestVault::empty();
    for key_type in [KeyType::SkEd25519, KeyType::SkEcdsaP256] {
        let key = SoftKey::new(key_type, 1);
        let untouched = key.sign(STATEMENT.as_bytes(), &How { flags: 0, ..How::default() });
        // ssh-keygen does not look at the flags, so we have to.
        assert!(ssh_keygen_accepts(hive.dir(), &untouched, STATEMENT.as_bytes()));
        let (_, strength) = verify(&untouched, STATEMENT.as_bytes()).unwrap();
        assert!(strength < Strength::Touch);
        // The flags are signed: setting them afterwards breaks the signature.
        let mut bytes = dearmor(&untouched);
        let flags = bytes.len() - 5;
        bytes[flags] = 0x05;
        assert_eq!(verify(&armor(&bytes), STATEMENT.as_bytes()), Err(SignatureRefusal::Wrong));
        assert!(!ssh_keygen_accepts(hive.dir(), &armor(&bytes), STATEMENT.as_bytes()));
        for flags in [0x02, 0x08, 0x11, 0x41, 0x81, 0xff] {
            let odd = key.sign(STATEMENT.as_bytes(), &How { flags, ..How::default() });
            assert_eq!(verify(&odd, STATEMENT.as_bytes()), Err(SignatureRefusal::Flags(flags)));
        }
    }
}

#[test]
fn a8_a_signature_of_another_version_purpose_or_text_is_refused() {
    let other = STATEMENT.replace("go ahead", "go ahead!");
    assert!(Statement::parse(other.as_bytes()).is_ok());
    for key in soft_keys() {
        let message = STATEMENT.as_bytes();
        for (how, why) in [
            (How { version: 0, ..How::default() }, SignatureRefusal::Version(0)),
            (How { version: 2, ..How::default() }, SignatureRefusal::Version(2)),
            (How { version: u32::MAX, ..How::default() }, SignatureRefusal::Version(u32::MAX)),
            (How { namespace: "git", ..How::default() }, SignatureRefusal::Namespace("git".to_owned())),
            (
                How { namespace: "hiveforge-operator-v2", ..How::default() },
                SignatureRefusal::Namespace("hiveforge-operator-v2".to_owned()),
            ),
            (How { namespace: "", ..How::default() }, SignatureRefusal::Malformed),
            (How { reserved: b"x", ..How::default() }, SignatureRefusal::Reserved),
            (How { trailing: b"\0", ..How::default() }, SignatureRefusal::Malformed),
        ] {
            assert_eq!(verify(&key.sign(message, &how), message), Err(why), "{} {how:?}", key.key_type);
        }
        let good = key.sign(message, &How::default());
        for text in [other.as_bytes(), STATEMENT.trim_end().as_bytes(), b"", STATEMENT.replace('\n', "\r\n").as_bytes()]
        {
            assert_eq!(verify(&good, text), Err(SignatureRefusal::Wrong));
        }
        // Another key of the same type in the place of the one that signed.
        let stranger = SoftKey::new(key.key_type, 9);
        let bytes = dearmor(&good);
        let blob = &bytes[bytes.len() - blob_length(&bytes)..];
        assert_eq!(key.envelope(blob, &How::default()), good);
        assert_eq!(verify(&stranger.envelope(blob, &How::default()), message), Err(SignatureRefusal::Wrong));
        // A signature of one type under a key of another.
        for stranger in soft_keys().iter().filter(|stranger| stranger.key_type != key.key_type) {
            let why = verify(&stranger.envelope(blob, &How::default()), message).unwrap_err();
            assert_eq!(why, SignatureRefusal::Algorithm, "{} {}", key.key_type, stranger.key_type);
        }
    }
}

/// The length of the last string of an SSHSIG.
fn blob_length(bytes: &[u8]) -> usize {
    // After the magic and the version: key, namespace, reserved, hash, signature.
    let mut at = 10;
    for _ in 0..4 {
        at += 4 + u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    }
    bytes.len() - at - 4
}

#[test]
fn a8_a_weak_key_signs_nothing() {
    let mut identity = [0; 32];
    identity[0] = 1;
    let key = SoftKey::new(KeyType::Ed25519, 0).claiming(KeyData::Ed25519(Ed25519PublicKey(identity)));
    assert_eq!(OperatorKey::parse(&key.line()), Err(KeyRefusal::WeakPoint));
    // With this key, the identity and a zero are a signature of everything.
    let mut blob = Vec::new();
    put(&mut blob, b"ssh-ed25519");
    put(&mut blob, &[identity, [0; 32]].concat());
    let signature = key.envelope(&blob, &How::default());
    let why = SignatureRefusal::Key(KeyRefusal::WeakPoint);
    assert_eq!(verify(&signature, STATEMENT.as_bytes()), Err(why));
}

#[test]
fn a8_a_signature_has_one_spelling() {
    // The order of the group of ed25519, least significant byte first.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    for key_type in [KeyType::Ed25519, KeyType::SkEd25519] {
        let key = SoftKey::new(key_type, 2);
        let mut bytes = dearmor(&key.sign(STATEMENT.as_bytes(), &How::default()));
        let end = bytes.len() - if key_type.is_fido() { 5 } else { 0 };
        let mut carry = 0;
        for (byte, add) in bytes[end - 32..end].iter_mut().zip(ORDER) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            (*byte, carry) = (sum as u8, sum >> 8);
        }
        assert_eq!(verify(&armor(&bytes), STATEMENT.as_bytes()), Err(SignatureRefusal::Wrong));
    }
}

#[test]
fn a8_no_changed_bit_of_a_signature_verifies() {
    for key in soft_keys() {
        let good = key.sign(STATEMENT.as_bytes(), &How::default());
        let (mut refused, mut verified) = (0, 0);
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut changed = good.clone().into_bytes();
                changed[at] ^= 1 << bit;
                let Ok(changed) = String::from_utf8(changed) else { continue };
                match Signature::parse(&changed).map(|parsed| parsed.verify(STATEMENT.as_bytes(), NAMESPACE)) {
                    Err(_) => refused += 1,
                    Ok(Err(why)) => {
                        assert!(matches!(why, SignatureRefusal::Wrong | SignatureRefusal::Namespace(_)), "{why:?}");
                        verified += 1;
                    }
                    Ok(Ok(proof)) => panic!("bit {bit} of byte {at}: {proof:?}\n{changed}"),
                }
            }
        }
        assert!(refused > 500 && verified > 200, "{} {refused} {verified}", key.key_type);
    }
}

#[test]
fn a8_keys_that_ssh_keygen_makes_are_read_as_it_reads_them() {
    let hive = TestVault::empty();
    for (name, key_type, accepted) in
        [("ed", "ed25519", Some(KeyType::Ed25519)), ("ec", "ecdsa", Some(KeyType::EcdsaP256)), ("rsa", "rsa", None)]
    {
        let file = make_key(hive.dir(), name, key_type);
        let line = public_line(&file);
        match accepted {
            Some(key_type) => {
                let key = OperatorKey::parse(&line).unwrap();
                assert_eq!((key.key_type(), key.comment()), (key_type, "jo@example"));
                assert_eq!(format!("{key}\n"), line);
            }
            None => assert_eq!(OperatorKey::parse(&line), Err(KeyRefusal::Type("ssh-rsa".to_owned()))),
        }
        let private = fs::read_to_string(&file).unwrap();
        assert_eq!(OperatorKey::parse(&private), Err(KeyRefusal::PrivateKey));
    }
    // A certificate is signed by somebody else; it is not the key.
    let [ca, key] = ["ed", "ec"].map(|name| hive.dir().join(name).to_str().unwrap().to_owned());
    assert!(ssh_keygen(&["-q", "-s", &ca, "-I", "x", "-n", "jo", &format!("{key}.pub")], b"").status.success());
    let certificate = fs::read_to_string(format!("{key}-cert.pub")).unwrap();
    assert_eq!(OperatorKey::parse(&certificate[..certificate.len().min(200)]), Err(KeyRefusal::Certificate));
}

/// Runs `hf-decide sign` on a statement, in a directory without a vault.
fn sign(hive: &TestVault, args: &[&str], variables: &[(&str, &str)]) -> Reply {
    let mut process = hive.process("decide");
    process.arg("sign").args(args).env("TMPDIR", hive.dir()).envs(variables.iter().copied());
    Reply::of(process.output().expect("the command runs"))
}

/// The names in a directory.
fn names(dir: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(dir).unwrap().map(name).collect();
    names.sort();
    names
}

#[test]
fn a8_a_statement_is_signed_without_a_vault() {
    let hive = TestVault::empty();
    fs::write(hive.dir().join("statement"), STATEMENT).unwrap();
    for (name, key_type) in [("ed", "ed25519"), ("ec", "ecdsa")] {
        let file = make_key(hive.dir(), name, key_type);
        let key = OperatorKey::parse(&public_line(&file)).unwrap();
        let out = format!("{name}.sig");
        let before = names(hive.dir());
        let reply = sign(&hive, &["statement", "--operator-key", name, "--out", &out, "--yes"], &[]).expect_exit(0);
        let digest = Statement::parse(STATEMENT.as_bytes()).unwrap().digest();
        assert_eq!(
            reply.stdout,
            format!(
                "EXIT:0
STATUS:SIGNED
NEXT:NONE
SUM:2 acts signed; not recorded until the signature is handed in
FILE:{out}
STATEMENT:{digest}
VAULT_ID:8350d9da27a1cfc4548df170bd3e519d
ACT:approve decision:01KGC3EG00WQCEHJ7YJRXM2S8V
ACT:resume_project project:main
SIGNED_BY:{}
STRENGTH:key
",
                key.fingerprint()
            )
        );
        let signature = fs::read_to_string(hive.dir().join(&out)).unwrap();
        assert!(verify(&signature, STATEMENT.as_bytes()).unwrap().0.is_same_key(&key));
        assert!(ssh_keygen_accepts(hive.dir(), &signature, STATEMENT.as_bytes()));
        // Nothing is left of the folder where it was signed.
        let after: Vec<String> =
            names(hive.dir()).into_iter().filter(|name| name != "checked.sig" && *name != out).collect();
        assert_eq!(after, before.into_iter().filter(|name| name != "checked.sig").collect::<Vec<_>>());
    }
    // The variable names the key, and the default for the file is beside the statement.
    assert_eq!(
        sign(&hive, &["statement", "--yes"], &[("HF_OPERATOR_KEY", "ed")]).expect_exit(0).get("FILE"),
        "statement.sig"
    );
    // A relative path stays what it is for the caller, whatever it looks like.
    assert_eq!(sign(&hive, &["statement", "--yes", "--key", "ed", "--out=-x"], &[]).expect_exit(0).get("FILE"), "-x");
}

#[test]
fn a8_a_key_in_ssh_agent_signs_by_its_public_half() {
    let hive = TestVault::empty();
    fs::write(hive.dir().join("statement"), STATEMENT).unwrap();
    let key = make_key(hive.dir(), "ed", "ed25519");
    let socket = hive.dir().join("agent");
    // In the foreground, so that it ends with the test. It says where its socket is once it listens.
    let mut agent = Command::new("ssh-agent");
    agent.arg("-D").arg("-a").arg(&socket).current_dir(hive.dir()).stdout(Stdio::piped());
    let mut agent = agent.spawn().expect("ssh-agent is installed (package openssh-client)");
    let mut said = String::new();
    let mut lines = BufReader::new(agent.stdout.take().unwrap());
    lines.read_line(&mut said).unwrap();
    let variables = [("SSH_AUTH_SOCK", socket.to_str().unwrap())];
    let added = Command::new("ssh-add").arg("-q").arg(&key).envs(variables).output().unwrap();
    assert!(added.status.success(), "{said} {added:?}");
    fs::remove_file(&key).unwrap();
    sign(&hive, &["statement", "--operator-key", "ed.pub", "--yes"], &variables).expect_exit(0);
    let signature = fs::read_to_string(hive.dir().join("statement.sig")).unwrap();
    assert!(ssh_keygen_accepts(hive.dir(), &signature, STATEMENT.as_bytes()));
    agent.kill().unwrap();
    agent.wait().unwrap();
    let refused =
        sign(&hive, &["statement", "--operator-key", "ed.pub", "--out", "x", "--yes"], &variables).expect_exit(3);
    assert_eq!(refused.get("SUM"), "ssh-keygen did not sign: No private key found for public key \"ed.pub\"");
}

#[test]
fn a8_signing_is_an_operators_act_and_refuses_what_is_wrong() {
    let hive = TestVault::empty();
    fs::write(hive.dir().join("statement"), STATEMENT).unwrap();
    fs::write(hive.dir().join("crlf"), STATEMENT.replace('\n', "\r\n")).unwrap();
    fs::write(hive.dir().join("long"), STATEMENT.replace("go ahead", &"x".repeat(70_000))).unwrap();
    fs::write(hive.dir().join("other"), "rm -rf /\n").unwrap();
    fs::write(hive.dir().join("taken"), "keep me").unwrap();
    make_key(hive.dir(), "ed", "ed25519");
    make_key(hive.dir(), "rsa", "rsa");
    rustix::fs::mknodat(rustix::fs::CWD, hive.dir().join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let locked = hive.dir().join("locked");
    assert!(ssh_keygen(&["-q", "-t", "ed25519", "-N", "secret", "-f", locked.to_str().unwrap()], b"").status.success());
    let before = names(hive.dir());
    let all = "one of ssh-ed25519, ecdsa-sha2-nistp256, sk-ssh-ed25519@openssh.com, sk-ecdsa-sha2-nistp256@openssh.com";
    let rsa = format!("the key of the signature is not accepted: unsupported type of key 'ssh-rsa'; {all}");
    let agents = "signing requires an operator; agent:a is not one";
    let agent: &[(&str, &str)] = &[("HF_AGENT", "a")];
    let ed: &[(&str, &str)] = &[("HF_OPERATOR_KEY", "ed")];
    for (args, variables, code, sum) in [
        (
            &["statement", "--yes"][..],
            &[][..],
            2,
            "no operator key given; name its file with --operator-key, or set HF_OPERATOR_KEY",
        ),
        (&["statement", "--key", "ed", "--yes"], agent, 3, agents),
        (&["nothing", "--yes"], agent, 3, agents),
        (&["statement"], ed, 3, "nobody can be asked without a terminal; to sign without being asked, add --yes"),
        (
            &["statement", "--yes", "--out", "taken"],
            ed,
            2,
            "taken already exists; remove it, or name another file with --out",
        ),
        (&["nothing", "--yes"], ed, 2, "cannot read nothing: No such file or directory (os error 2)"),
        (&["pipe", "--yes"], ed, 2, "pipe is not a regular file"),
        (&["/dev/zero", "--yes"], ed, 2, "/dev/zero is not a regular file"),
        (&["other", "--yes"], ed, 2, "not a statement; its first line must be 'HiveForge operator statement 1'"),
        (&["crlf", "--yes"], ed, 2, "unknown version '1\\\\r' of the statement; must be 1"),
        (&["long", "--yes"], ed, 2, "the statement in long is too long; at most 65536 bytes"),
        (
            &["statement", "--yes", "--key", "none"],
            ed,
            3,
            "ssh-keygen did not sign: Couldn't load public key none: No such file or directory",
        ),
        (&["statement", "--yes", "--key", "rsa"], &[], 3, &rsa),
        (
            &["statement", "--yes", "--out", "no/such/folder"],
            ed,
            111,
            "cannot write no/such/folder: No such file or directory (os error 2)",
        ),
    ] {
        let reply = sign(&hive, args, variables).expect_exit(code);
        assert_eq!(reply.get("SUM"), sum, "{args:?}");
        assert_eq!(names(hive.dir()), before, "{args:?}");
    }
    // Without a terminal nobody can enter the passphrase, and ssh-keygen does not wait for it.
    let process = |args: &[&str]| {
        let mut process = Command::new("setsid");
        process.arg("-w").arg(crate::support::test_vault::binary("decide")).args(args).current_dir(hive.dir());
        Reply::of(process.env("TMPDIR", hive.dir()).output().expect("setsid runs"))
    };
    let reply = process(&["sign", "statement", "--yes", "--key", "locked"]).expect_exit(3);
    assert!(reply.get("SUM").starts_with("ssh-keygen did not sign: "), "{reply:?}");
    assert_eq!(reply.get("REASON"), "not_signed");
    assert_eq!(names(hive.dir()), before);
    assert_eq!(fs::read_to_string(hive.dir().join("taken")).unwrap(), "keep me");
}
