//! Genuine histories, made with the commands: what an attacker finds when it gets hold of the log.

use std::fs;

use hiveforge::base::Timestamp;
use hiveforge::base::signature::KeyType;
use serde_json::Value;

use crate::support::keyed_vault::{key_of, keyed_with, own_key};
use crate::support::operator_keys::{How, SoftKey};
use crate::support::steps::sh;
use crate::support::test_vault::{Reply, START, TestVault, write_private};

/// The seconds between two commands. They leave room for other ids between those of the log.
const STEP_SECONDS: i64 = 10;

/// A key of the operators whose private half the test has: with it, a forgery must pass, or it proves nothing that the
/// same forgery with an attacker's key does not.
pub fn third_key() -> SoftKey {
    SoftKey::new(KeyType::Ed25519, 3)
}

/// A key that operators list, since it signed something, and that an attacker has got hold of. Where it was ever in force
/// it was removed.
pub fn stolen_key() -> SoftKey {
    SoftKey::new(KeyType::EcdsaP256, 2)
}

/// A vault, what is recorded in it, and what its operators keep elsewhere.
pub struct Life {
    pub hive: TestVault,
    /// Everything that was recorded.
    pub events: Vec<Value>,
    /// The lines of the operators' public keys.
    pub keys: String,
    steps: i64,
}

impl Life {
    fn of(hive: TestVault) -> Life {
        for (name, key) in [("second.pub", stolen_key()), ("third.pub", third_key())] {
            fs::write(hive.dir().join(name), format!("{}\n", key.line())).expect("a file");
        }
        let files = [key_of(&hive), hive.dir().join("second"), hive.dir().join("third")];
        let line = |file: std::path::PathBuf| fs::read_to_string(file.with_extension("pub")).expect("a public key");
        let keys = files.map(line).concat();
        Life { hive, events: Vec::new(), keys, steps: 0 }
    }

    /// Runs a line, some seconds after the one before.
    #[track_caller]
    fn ok(&mut self, line: &str) -> Reply {
        self.steps += 1;
        let start = Timestamp::parse(START).expect("an exact time").0;
        self.hive.at(&Timestamp(start + self.steps * STEP_SECONDS).to_string());
        sh(&self.hive, line).expect_exit(0)
    }

    #[track_caller]
    fn all(&mut self, lines: &[&str]) {
        for line in lines {
            self.ok(line);
        }
    }

    /// Proposes and analyses a requirement, so that its question is open.
    #[track_caller]
    fn ask(&mut self, title: &str, reference: &str) {
        self.ok(&format!("hf-require propose {title}"));
        self.ok(&format!("hf-require analyze {reference} Easy."));
    }

    fn ended(mut self) -> Life {
        self.events = self.hive.events();
        self
    }

    /// The file with the operators' public keys, outside the vault.
    pub fn key_file(&self) -> String {
        let file = self.hive.dir().join("operators.pub");
        fs::write(&file, &self.keys).expect("a file");
        file.to_str().expect("UTF-8").to_owned()
    }
}

/// Requirements and what is decided about them, a destructive task, a constraint. DEC-0008, about REQ-0006, and DEC-0009,
/// about the destructive T-0004, are open.
pub fn decisions() -> Life {
    let mut life = Life::of(keyed_with("governance:\n  max_retries: 1\n"));
    life.ok("hf-key add third.pub --yes");
    life.ask("Login", "REQ-0001");
    life.ok("hf-decide approve DEC-0001 --comment go --yes");
    life.all(&[
        "hf-task propose Form --requirement REQ-0001 --actor agent:a",
        "hf-task claim T-0001 --actor agent:a",
        "hf-task start T-0001 --actor agent:a",
        "hf-task succeed T-0001 --actor agent:a",
        "hf-require verify REQ-0001 --yes",
    ]);
    life.ask("Logout", "REQ-0002");
    life.ask("Search", "REQ-0003");
    life.ok("hf-decide approve DEC-0002 DEC-0003 --yes");
    life.ask("Ads", "REQ-0004");
    life.all(&[
        "hf-decide reject DEC-0004 --reason no --yes",
        "hf-require propose Spam",
        "hf-require reject REQ-0005 --reason never --yes",
        "hf-require supersede REQ-0002 --yes",
        "hf-task propose Wipe --destructive --actor agent:a",
        "hf-decide approve DEC-0005 --yes",
        "hf-task claim T-0002 --actor agent:a",
        "hf-task start T-0002 --actor agent:a",
        "hf-constraint apply Careful --actor agent:a",
        "hf-decide approve DEC-0006 --yes",
        "hf-decide request --kind requirement_approval --target REQ-0003 --summary How --option fast --option well",
        "hf-decide approve DEC-0007 --option well --comment slowly --yes",
        "hf-task propose Index --requirement REQ-0003 --actor agent:b",
    ]);
    life.ask("Export", "REQ-0006");
    life.ok("hf-task propose Drop --destructive --actor agent:b");
    life.ended()
}

/// Stops, pauses, settings and keys. The system is stopped and the project side is paused at the end, and DEC-0002 is open.
pub fn system() -> Life {
    let mut life = Life::of(keyed_with("governance:\n  destructive_commands: [rm *]\n"));
    life.ask("Login", "REQ-0001");
    life.all(&[
        "hf-stop fire",
        "hf-resume --system --comment out --yes",
        "hf-stop smoke",
        "hf-resume --system --yes",
        "hf-pause later",
        "hf-resume --yes",
        "hf-task propose Form --project side --create --actor agent:a",
        "hf-config set governance.max_retries 5 --yes",
        "hf-config set governance.lease_seconds 600 --yes",
        "hf-key add second.pub --yes",
    ]);
    life.ok("hf-decide statement approve DEC-0001 --out s.txt");
    let statement = fs::read(life.hive.dir().join("s.txt")).expect("a statement");
    fs::write(life.hive.dir().join("s.txt.sig"), stolen_key().sign(&statement, &How::default())).expect("a file");
    life.ok("hf-decide approve DEC-0001 --signature s.txt.sig");
    life.all(&["hf-key add third.pub --yes", "hf-key remove second.pub --compromised --yes"]);
    life.ask("Logout", "REQ-0002");
    life.all(&["hf-pause lunch", "hf-resume --comment eaten --yes", "hf-pause --project side over", "hf-stop flood"]);
    life.ended()
}

/// A vault that got its key later, after acts that nobody signed, was damaged, and was recovered.
pub fn recovered() -> Life {
    let hive = TestVault::new();
    own_key(&hive);
    let mut life = Life::of(hive);
    let key = key_of(&life.hive).display().to_string();
    life.ask("Login", "REQ-0001");
    life.all(&["hf-decide approve DEC-0001 --comment early", "hf-stop fire", "hf-resume --system"]);
    life.ok(&format!("hf-key add {key}.pub --yes"));
    life.ok("hf-key add third.pub --yes");
    life.ask("Logout", "REQ-0002");
    life.all(&["hf-decide approve DEC-0002 --yes", "hf-require propose Lost"]);
    let mut bytes = fs::read(life.hive.segment()).expect("a log");
    let at = bytes.len() - 30;
    bytes[at] ^= 1;
    write_private(&life.hive.segment(), &bytes);
    life.ok("hf-verify --recover --yes");
    life.ask("Search", "REQ-0003");
    life.all(&[
        "hf-decide approve DEC-0003 --comment again --yes",
        "hf-task propose Index --requirement REQ-0003 --actor agent:a",
        "hf-task claim T-0001 --actor agent:a",
        "hf-task propose Drop --destructive --project side --create --actor agent:b",
        "hf-pause --archive side done --yes",
    ]);
    life.ended()
}
