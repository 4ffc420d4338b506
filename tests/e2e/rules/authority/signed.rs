//! A8: in a vault with operator keys, every act of an operator is signed, and nothing else counts as one.

use std::fs;

use hiveforge::base::signature::KeyType;

use crate::support::keyed_vault::{key_of, keyed, keyed_with, own_key, verify};
use crate::support::operator_keys::{How, SoftKey, make_key};
use crate::support::steps::{count, ok, sh, state};
use crate::support::test_vault::{Reply, TestVault, write_private};

/// REQ-0001 with its question DEC-0001, which nobody has answered.
fn ask(hive: &TestVault) {
    ok(hive, "hf-require propose Login");
    ok(hive, "hf-require analyze REQ-0001 Easy.");
}

/// The statement of an act, in a file of this name.
#[track_caller]
fn statement(hive: &TestVault, name: &str, act: &[&str]) -> String {
    let file = hive.dir().join(name);
    let _ = fs::remove_file(&file);
    hive.run("decide", &[&["statement"], act, &["--out", name]].concat()).expect_exit(0);
    fs::read_to_string(file).expect("a statement")
}

/// The same, signed by the operator elsewhere.
#[track_caller]
fn signed(hive: &TestVault, name: &str, act: &[&str]) {
    statement(hive, name, act);
    let _ = fs::remove_file(hive.dir().join(format!("{name}.sig")));
    let key = key_of(hive);
    hive.run("decide", &["sign", name, "--operator-key", key.to_str().expect("UTF-8"), "--yes"]).expect_exit(0);
}

/// The verdicts on the rules and on signatures.
fn verdicts(reply: &Reply) -> [String; 3] {
    ["STATUS", "POLICY", "SIGNATURES"].map(|key| reply.get(key).to_owned())
}

fn as_agent(hive: &TestVault, name: &str, args: &[&str]) -> Reply {
    Reply::of(hive.command(name).args(args).env("HF_AGENT", "a").output().expect("the command runs"))
}

#[test]
fn a8_every_act_of_an_operator_is_signed_and_hf_verify_says_by_whom() {
    let hive = keyed();
    ask(&hive);
    let approved = ok(&hive, "hf-decide approve DEC-0001 --yes");
    assert_eq!((approved.get("STATE"), state(&hive, "REQ-0001").as_str()), ("Approved", "Approved"));
    ok(&hive, "hf-stop fire");
    ok(&hive, "hf-resume --system --yes");
    ok(&hive, "hf-pause later");
    ok(&hive, "hf-resume --yes");
    ok(&hive, "hf-config set governance.lease_seconds 600 --yes");
    ok(&hive, "hf-require supersede REQ-0001 --yes");
    let second = make_key(hive.dir(), "second", "ecdsa");
    ok(&hive, "hf-key add second.pub --yes");
    ok(&hive, &format!("hf-key remove second.pub --yes --operator-key {}", second.display()));
    ok(&hive, "hf-require propose Other");
    ok(&hive, "hf-require reject REQ-0002 --reason no --yes");
    ok(&hive, "hf-pause --archive main done --yes");
    let reply = verify(&hive, None).expect_exit(1);
    // The second key is not listed, and it has signed its own removal.
    assert_eq!(verdicts(&reply), ["FAILED", "OK", "BAD"]);
    assert_eq!(reply.all("FINDING").len(), 1, "{reply:?}");
    let both = [key_of(&hive).with_extension("pub"), second.with_extension("pub")];
    let both = both.map(|file| fs::read_to_string(file).unwrap()).concat();
    fs::write(hive.dir().join("both.pub"), format!("# Operators\n\n{both}")).unwrap();
    let reply = ok(&hive, "hf-verify --policy --operator-keys both.pub");
    assert_eq!(verdicts(&reply), ["VERIFIED", "OK", "OK"]);
    assert_eq!(verdicts(&ok(&hive, "hf-verify --policy")), ["VERIFIED", "OK", "UNPINNED"]);
    assert_eq!(ok(&hive, "hf-verify").get("SIGNATURES"), "NOT_CHECKED");
    // Every act carries its statement; a stop and a pause, the safe direction, do not.
    let acts = [
        "VaultInitialized",
        "DecisionApproved",
        "SystemResumed",
        "ProjectResumed",
        "SettingsAdopted",
        "RequirementSuperseded",
        "OperatorKeyAdded",
        "OperatorKeyRemoved",
        "RequirementRejected",
        "ProjectArchived",
    ];
    for event in hive.events() {
        let is_act = acts.contains(&event["event_type"].as_str().unwrap());
        assert_eq!(event["payload"]["signature"].is_string(), is_act, "{event}");
    }
    assert_eq!(acts.map(|act| count(&hive, act)), [1; 10]);
}

#[test]
fn a8_the_first_key_signs_itself_and_the_settings_in_force() {
    let hive = TestVault::new();
    ask(&hive);
    ok(&hive, "hf-decide approve DEC-0001");
    assert_eq!(ok(&hive, "hf-key list").get("SUM"), "no operator keys: what operators decide is not signed");
    let key = own_key(&hive);
    // Somebody else's key cannot sign for it.
    make_key(hive.dir(), "other", "ed25519");
    let wrong = hive.run("key", &["add", &format!("{key}.pub"), "--yes", "--operator-key", "other"]).expect_exit(3);
    assert_eq!(wrong.get("REASON"), "bad_signature");
    let seen = hive.recorded().last().unwrap().id.to_string();
    let added = hive.run("key", &["add", &format!("{key}.pub"), "--yes"]).expect_exit(0);
    assert!(added.get("SUM").ends_with("added; from here on, what operators decide is signed"), "{added:?}");
    assert_eq!(ok(&hive, "hf-config show governance.max_retries").get("SETTINGS"), "ADOPTED");
    // What was done before is vouched for by its owner, who saw it.
    let reply = verify(&hive, None).expect_exit(0);
    assert_eq!(verdicts(&reply), ["VERIFIED", "OK", "OK"]);
    assert_eq!(reply.get("SIGNED_THROUGH").split(':').next(), Some(seen.as_str()));
    // The file alone changes nothing any more, and the last key stays.
    hive.configure("governance:\n  max_retries: 9\n");
    ok(&hive, "hf-require propose Other");
    assert_eq!((count(&hive, "SettingsChanged"), count(&hive, "SettingsAdopted")), (0, 0));
    let last = hive.run("key", &["remove", &format!("{key}.pub"), "--yes"]).expect_exit(3);
    assert_eq!(last.get("SUM"), "the last operator key cannot be removed; add another one first");
    let again = hive.run("key", &["add", &format!("{key}.pub"), "--yes"]).expect_exit(3);
    assert_eq!(again.get("SUM"), "this is in effect already; there is nothing to sign");
}

#[test]
fn a8_nobody_acts_without_a_signature() {
    let hive = keyed();
    ask(&hive);
    ok(&hive, "hf-stop fire");
    make_key(hive.dir(), "other", "ed25519");
    let before = hive.events().len();
    for (name, args) in [
        ("decide", &["approve", "DEC-0001"][..]),
        ("decide", &["reject", "DEC-0001", "--reason", "no"]),
        ("resume", &["--system"]),
        ("require", &["reject", "REQ-0001", "--reason", "no"]),
        ("config", &["set", "governance.max_retries", "9"]),
        ("key", &["add", "other.pub"]),
    ] {
        // Without a terminal nobody can be asked.
        assert_eq!(hive.run(name, args).expect_exit(3).get("REASON"), "not_confirmed", "{name} {args:?}");
        // A key that is not the vault's.
        let forged = hive.run(name, &[args, &["--yes", "--operator-key", "other"]].concat()).expect_exit(3);
        assert_eq!(forged.get("REASON"), "bad_signature", "{name} {args:?}");
        // An agent, even with the operator's key at hand.
        let agent = as_agent(&hive, name, &[args, &["--yes"]].concat()).expect_exit(3);
        assert_eq!(agent.get("REASON"), "operator_only", "{name} {args:?}");
    }
    for (kind, subject) in [("DecisionApproved", "DEC-0001"), ("SystemResumed", "system")] {
        let raw = hive.run("append", &[kind, "--subject", subject, "--payload", "{}"]).expect_exit(3);
        assert_eq!(raw.get("REASON"), "not_signed", "{kind}");
    }
    assert_eq!(hive.events().len(), before);
}

#[test]
fn a8_anybody_may_carry_a_signature_in() {
    let hive = keyed();
    ask(&hive);
    signed(&hive, "s.txt", &["approve", "DEC-0001", "--comment", "go ahead"]);
    // With another comment it is not what was signed.
    let other = as_agent(&hive, "decide", &["approve", "DEC-0001", "--signature", "s.txt.sig"]).expect_exit(3);
    assert_eq!(other.get("SUM"), "the statement has another option or comment");
    let args = ["approve", "DEC-0001", "--comment", "go ahead", "--signature", "s.txt.sig"];
    let reply = as_agent(&hive, "decide", &args).expect_exit(0);
    assert_eq!(reply.get("STATE"), "Approved");
    let approval = hive.events().into_iter().find(|event| event["event_type"] == "DecisionApproved").unwrap();
    assert_eq!(approval["actor"], "agent:a");
    assert!(approval["payload"]["signed_by"].as_str().unwrap().starts_with("SHA256:"));
    // Handed in again, it changes nothing.
    assert_eq!(as_agent(&hive, "decide", &args).expect_exit(0).get("STATUS"), "DUPLICATE");
    ok(&hive, "hf-task propose Form --requirement REQ-0001");
    ok(&hive, "hf-task claim T-0001 --actor agent:a");
    assert_eq!(verdicts(&verify(&hive, None)), ["VERIFIED", "OK", "OK"]);
}

#[test]
fn a8_several_decisions_are_approved_with_one_signature() {
    let hive = keyed();
    ask(&hive);
    ok(&hive, "hf-require propose Logout");
    ok(&hive, "hf-require analyze REQ-0002 Easy.");
    let text = statement(&hive, "s.txt", &["approve", "DEC-0001", "DEC-0002"]);
    assert!(text.contains("act 1 of 2: approve a decision\n") && text.contains("act 2 of 2: "), "{text}");
    signed(&hive, "s.txt", &["approve", "DEC-0001", "DEC-0002"]);
    // One of them alone is not what was signed.
    for part in ["DEC-0001", "DEC-0002", "DEC-0002 DEC-0001"] {
        let reply = sh(&hive, &format!("hf-decide approve {part} --signature s.txt.sig")).expect_exit(3);
        assert_eq!(reply.get("REASON"), "bad_signature", "{part}");
    }
    ok(&hive, "hf-decide approve DEC-0001 DEC-0002 --signature s.txt.sig");
    assert_eq!((state(&hive, "REQ-0001"), state(&hive, "REQ-0002")), ("Approved".to_owned(), "Approved".to_owned()));
    assert_eq!(verdicts(&verify(&hive, None)), ["VERIFIED", "OK", "OK"]);
}

#[test]
fn a8_a_statement_that_differs_from_the_event_is_refused() {
    let hive = keyed();
    ask(&hive);
    ok(&hive, "hf-require propose Logout");
    ok(&hive, "hf-require analyze REQ-0002 Easy.");
    let text = statement(&hive, "s.txt", &["approve", "DEC-0001"]);
    let other = statement(&hive, "o.txt", &["approve", "DEC-0002"]);
    let key = key_of(&hive);
    let line_of =
        |text: &str, label: &str| text.lines().find(|line| line.starts_with(label)).expect("a line").to_owned();
    let (line, of_other) = (|label: &str| line_of(&text, label), |label: &str| line_of(&other, label));
    for (from, to) in [
        (line("vault: "), format!("vault: {}", "0".repeat(32))),
        (line("authority: "), line("head seen: ").replace("head seen", "authority")),
        (line("head seen: "), format!("head seen: 01KG9YS8F8A8WJ64483A5D3PX2:sha256:{}", "0".repeat(64))),
        (line("head seen: "), "head seen: none".to_owned()),
        (line("act 1 of 1: "), "act 1 of 1: reject a decision".to_owned()),
        (line("subject: "), of_other("subject: ")),
        (line("answers: "), of_other("answers: ")),
        (line("binds summary: "), of_other("binds summary: ")),
        (line("binds content: "), of_other("binds content: ")),
        (format!("{}\n", line("binds title: ")), String::new()),
        (line("binds content: "), format!("{}\nbinds more: yes", line("binds content: "))),
        (line("binds content: "), format!("{}\ncomment: no", line("binds content: "))),
    ] {
        assert!(text.contains(&from), "{from}");
        fs::write(hive.dir().join("f.txt"), text.replace(&from, &to)).unwrap();
        let _ = fs::remove_file(hive.dir().join("f.txt.sig"));
        hive.run("decide", &["sign", "f.txt", "--yes", "--key", key.to_str().unwrap()]).expect_exit(0);
        let reply = hive.refuses("decide", &["approve", "DEC-0001", "--signature", "f.txt.sig"], 3);
        assert_eq!(reply.get("REASON"), "bad_signature", "{from} -> {to}");
    }
    signed(&hive, "s.txt", &["approve", "DEC-0001"]);
    ok(&hive, "hf-decide approve DEC-0001 --signature s.txt.sig");
}

#[test]
fn a8_nothing_that_was_signed_can_be_used_again() {
    let hive = keyed();
    // A resume, for the next stop.
    ok(&hive, "hf-stop one");
    signed(&hive, "s.txt", &["lift-stop"]);
    ok(&hive, "hf-resume --system --signature s.txt.sig");
    ok(&hive, "hf-stop two");
    let reply = hive.refuses("resume", &["--system", "--signature", "s.txt.sig"], 3);
    assert_eq!(reply.get("SUM"), "the statement answers the stop as it was earlier; sign it again");
    ok(&hive, "hf-resume --system --yes");
    // A resume of a project, for its next pause.
    ok(&hive, "hf-pause one");
    signed(&hive, "s.txt", &["resume-project"]);
    ok(&hive, "hf-resume --signature s.txt.sig");
    ok(&hive, "hf-pause one");
    assert_eq!(hive.refuses("resume", &["--signature", "s.txt.sig"], 3).get("REASON"), "bad_signature");
    ok(&hive, "hf-resume --yes");
    // An adoption, after another one.
    let (one, two) = ("governance:\n  max_retries: 1\n", "governance:\n  max_retries: 2\n");
    hive.configure(one);
    signed(&hive, "s.txt", &["adopt-settings"]);
    ok(&hive, "hf-config adopt --signature s.txt.sig");
    hive.configure(two);
    ok(&hive, "hf-config adopt --yes");
    hive.configure(one);
    assert_eq!(hive.refuses("config", &["adopt", "--signature", "s.txt.sig"], 3).get("REASON"), "bad_signature");
    ok(&hive, "hf-config adopt --yes");
    // A key, after its removal.
    make_key(hive.dir(), "second", "ed25519");
    signed(&hive, "s.txt", &["add-key", "second.pub"]);
    ok(&hive, "hf-key add second.pub --signature s.txt.sig");
    ok(&hive, "hf-key remove second.pub --yes");
    let again = hive.refuses("key", &["add", "second.pub", "--signature", "s.txt.sig"], 3);
    assert_eq!(again.get("REASON"), "bad_signature");
    // An approval that was signed before the settings changed.
    ask(&hive);
    signed(&hive, "s.txt", &["approve", "DEC-0001"]);
    ok(&hive, "hf-config set governance.max_retries 3 --yes");
    let reply = hive.refuses("decide", &["approve", "DEC-0001", "--signature", "s.txt.sig"], 3);
    assert_eq!(reply.get("SUM"), "the keys or the settings have changed since it was signed; sign it again");
    assert_eq!(verdicts(&verify(&hive, None)), ["VERIFIED", "OK", "OK"]);
}

#[test]
fn a8_a_compromised_key_is_removed_with_the_list_of_what_it_signed() {
    let hive = keyed();
    ask(&hive);
    let second = make_key(hive.dir(), "second", "ed25519");
    ok(&hive, "hf-key add second.pub --yes");
    ok(&hive, &format!("hf-decide approve DEC-0001 --yes --operator-key {}", second.display()));
    let reply = ok(&hive, "hf-key remove second.pub --compromised --yes");
    let acts: Vec<&str> = reply.all("SIGNED_ACT").iter().map(|row| row.split(' ').nth(1).unwrap()).collect();
    assert_eq!(acts, ["approve"]);
    assert!(!reply.get("HEAD_HASH").is_empty());
    // From here on it signs nothing.
    ok(&hive, "hf-stop fire");
    let late = sh(&hive, &format!("hf-resume --system --yes --operator-key {}", second.display())).expect_exit(3);
    assert!(late.get("SUM").ends_with("is not an operator key of this vault"), "{late:?}");
}

#[test]
fn a8_a_recovery_is_signed_and_binds_what_is_lost() {
    let hive = keyed();
    ask(&hive);
    ok(&hive, "hf-decide approve DEC-0001 --yes");
    let mut bytes = fs::read(hive.segment()).unwrap();
    let at = bytes.len() - 30;
    bytes[at] ^= 1;
    write_private(&hive.segment(), &bytes);
    assert_eq!(sh(&hive, "hf-verify --recover").get("STATUS"), "REFUSED");
    make_key(hive.dir(), "other", "ed25519");
    let forged = sh(&hive, "hf-verify --recover --yes --operator-key other").expect_exit(3);
    assert_eq!(forged.get("REASON"), "bad_signature");
    signed(&hive, "s.txt", &["recover"]);
    let text = fs::read_to_string(hive.dir().join("s.txt")).unwrap();
    assert!(text.contains("act 1 of 1: recover the log\n") && text.contains("binds bytes: "), "{text}");
    ok(&hive, "hf-verify --recover --yes --signature s.txt.sig");
    assert_eq!(verdicts(&verify(&hive, None)), ["VERIFIED", "OK", "OK"]);
    assert_eq!(state(&hive, "DEC-0001"), "Requested");
}

#[test]
fn a8_keys_of_other_types_and_weak_ones_are_refused() {
    let hive = TestVault::empty();
    make_key(hive.dir(), "rsa", "rsa");
    let weak = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA nobody";
    fs::write(hive.dir().join("weak.pub"), weak).unwrap();
    for (file, why) in
        [("rsa.pub", "unsupported type of key 'ssh-rsa'"), ("weak.pub", "a weak key"), ("rsa", "too long")]
    {
        let reply = hive.run("init", &["--operator-key", file, "--yes"]).expect_exit(2);
        assert!(reply.get("SUM").contains(why), "{reply:?}");
        assert!(!hive.vault().exists());
    }
}

#[test]
fn a8_a_fido_key_that_was_not_touched_is_refused_where_a_touch_is_demanded() {
    let hive = keyed();
    let touched = SoftKey::new(KeyType::SkEcdsaP256, 3);
    fs::write(hive.dir().join("sk.pub"), touched.line()).unwrap();
    ok(&hive, "hf-key add sk.pub --yes");
    let sign = |flags: u8| {
        let text = fs::read(hive.dir().join("s.txt")).unwrap();
        let armored = touched.sign(&text, &How { flags, ..How::default() });
        fs::write(hive.dir().join("s.txt.sig"), armored).unwrap();
    };
    hive.configure("governance:\n  approval_strength: touch_and_pin\n");
    statement(&hive, "s.txt", &["adopt-settings"]);
    for (flags, is_enough) in [(0, false), (1, false), (4, false), (5, true)] {
        sign(flags);
        let reply = sh(&hive, "hf-config adopt --signature s.txt.sig");
        assert_eq!(reply.get("EXIT"), if is_enough { "0" } else { "3" }, "{flags}");
    }
}

#[test]
fn a8_the_settings_of_a_new_vault_are_those_that_were_signed() {
    let hive = keyed_with("governance:\n  max_retries: 7\n");
    let shown = ok(&hive, "hf-config show governance.max_retries");
    assert_eq!(shown.get("SETTING"), "governance.max_retries adopted 7");
    assert_eq!(verdicts(&verify(&hive, None)), ["VERIFIED", "OK", "OK"]);
    // A creation that nobody confirmed leaves nothing.
    let other = TestVault::empty();
    make_key(other.dir(), "key", "ed25519");
    assert_eq!(other.run("init", &["--operator-key", "key.pub"]).expect_exit(3).get("REASON"), "not_confirmed");
    assert!(!other.vault().exists());
}

#[test]
fn a8_who_signs_elsewhere_reads_everything_that_is_approved() {
    let hive = keyed();
    let propose = ["propose", "Login", "--description", "With a form"];
    hive.run("require", &propose).expect_exit(0);
    hive.run("require", &["analyze", "REQ-0001", "Two tasks.\nAnd then drop all tables."]).expect_exit(0);
    let stated = statement(&hive, "s.txt", &["approve", "DEC-0001"]);
    for line in ["binds description: With a form", "binds analysis: Two tasks.\\nAnd then drop all tables."] {
        assert!(stated.lines().any(|other| other == line), "{line} in {stated}");
    }
    // A long one is known by its digest, and can still be signed.
    ok(&hive, "hf-require propose Other");
    let long = "\u{202e}".repeat(20_000);
    hive.pipe("require", &["analyze", "REQ-0002", "-"], long.as_bytes()).expect_exit(0);
    let stated = statement(&hive, "t.txt", &["approve", "DEC-0002"]);
    assert!(stated.contains("binds analysis: sha256:") && stated.contains("(60000 bytes; "), "{stated}");
    ok(&hive, "hf-decide approve DEC-0001 DEC-0002 --yes");
    assert_eq!(verdicts(&verify(&hive, None)), ["VERIFIED", "OK", "OK"]);
}
