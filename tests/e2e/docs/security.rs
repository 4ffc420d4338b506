//! The two-user set-up in SECURITY.md works as printed.

use std::fs;
use std::process::Command;

use crate::support::test_vault::{Reply, TestVault, binary};

/// The blocks of the set-up, in order.
fn steps() -> Vec<&'static str> {
    let page = include_str!("../../../SECURITY.md");
    let section = page.split("## Two users, step by step").nth(1).and_then(|rest| rest.split("\n## ").next());
    let blocks = section.expect("the section").split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().expect("a block")).collect()
}

#[test]
fn the_operator_signs_as_another_user_as_security_md_says() {
    // Two homes stand for two users: neither finds the key of the other.
    let (you, hive) = (TestVault::empty(), TestVault::empty());
    fs::create_dir(you.user_home().join(".ssh")).unwrap();
    let path = format!("{}:/usr/bin:/bin", binary("").parent().unwrap().display());
    let post = tempfile::tempdir().unwrap();
    let run = |who: &TestVault, block: &str| {
        // Nobody can be asked here.
        let block = block.replace("/tmp/", &format!("{}/", post.path().display()));
        let block =
            block.replace("-t ed25519 ", "-t ed25519 -q -N '' ").replace("hf-decide sign ", "hf-decide sign --yes ");
        let mut bash = Command::new("bash");
        bash.args(["-ec", &block]).current_dir(who.dir()).env_clear().env("PATH", &path).env("USER", "jo");
        bash.env("HOME", who.user_home()).env("HF_VAULT", hive.vault());
        let reply = Reply::of(bash.output().unwrap());
        assert_eq!(reply.code, Some(0), "{block}\n{reply:?}");
        reply
    };
    let [make_key, make_vault, sign, hand_in, verify] = steps().try_into().expect("five blocks");
    run(&you, make_key);
    run(&hive, make_vault);
    run(&you, sign);
    run(&hive, hand_in);
    // An approval takes the same three steps.
    run(&hive, "hf-require propose Login; hf-require analyze REQ-0001 Easy");
    run(&hive, "rm /tmp/statement /tmp/statement.sig; hf-decide statement approve DEC-0001 --out /tmp/statement");
    run(&you, sign);
    run(&hive, "hf-decide approve DEC-0001 --signature /tmp/statement.sig");
    let anchor = run(&hive, "hf-verify --anchor").stdout;
    fs::write(you.dir().join("anchor.txt"), anchor).unwrap();
    let reply = run(&you, verify);
    assert_eq!(["POLICY", "SIGNATURES", "ANCHOR"].map(|key| reply.get(key)), ["OK"; 3]);
}
