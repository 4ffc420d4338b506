//! hf-ref: names for files that stop matching once the content has changed.

use std::fs;
use std::os::unix::fs::symlink;

use hiveforge::base::Digest;

use crate::support::steps::{count, keeps_the_rules, ok, refuses, sh};
use crate::support::test_vault::TestVault;

/// The reference of a content.
fn named(number: &str, content: &str) -> String {
    format!("{number}@{}", &Digest::of_bytes(content.as_bytes()).hex()[..4])
}

#[test]
fn a_reference_has_a_number_and_four_digits_of_the_content_hash() {
    let hive = TestVault::new();
    fs::write(hive.dir().join("spec.md"), "one").unwrap();
    let (first, second) = (named("D0001", "one"), named("D0001", "two"));
    let reply = ok(&hive, "hf-ref add spec.md");
    assert_eq!(
        reply.masked(&hive).replace(&first, "REF"),
        "EXIT:0\nSTATUS:RECORDED\nNEXT:NONE\nSUM:D0001@<tag> is <dir>/spec.md\nREF:D0001@<tag>\nPATH:<dir>/spec.md\n\
         SHA256:<digest>\nEVENT_ID:<ulid>\n"
    );
    assert_eq!((reply.get("REF"), reply.get("SHA256")), (first.as_str(), Digest::of_bytes(b"one").hex().as_str()));
    assert_eq!(ok(&hive, "hf-ref add spec.md").get("STATUS"), "DUPLICATE");
    assert_eq!(ok(&hive, "hf-ref add ./spec.md").get("STATUS"), "DUPLICATE", "one path, however it is written");
    for text in [first.clone(), first.to_uppercase(), "D0001".to_owned(), "d0001".to_owned()] {
        let reply = ok(&hive, &format!("hf-ref resolve {text}"));
        assert_eq!((reply.get("STATUS"), reply.get("REF")), ("OK", first.as_str()), "{text}");
    }
    // Changed since: refused by name, until it is added again.
    fs::write(hive.dir().join("spec.md"), "two").unwrap();
    for text in [first.as_str(), "D0001"] {
        let reply = refuses(&hive, &format!("hf-ref resolve {text}"), 3, "has changed: ");
        assert!(reply.get("SUM").contains(&first), "{reply:#?}");
        assert_eq!(reply.get("REASON"), "changed");
    }
    let reply = ok(&hive, "hf-ref add spec.md");
    assert_eq!((reply.get("STATUS"), reply.get("REF")), ("RECORDED", second.as_str()));
    let reply = refuses(&hive, &format!("hf-ref resolve {first}"), 3, "is out of date; the current reference is");
    assert!(reply.get("SUM").contains(&second), "{reply:#?}");
    ok(&hive, &format!("hf-ref resolve {second}"));
    // And back again.
    fs::write(hive.dir().join("spec.md"), "one").unwrap();
    assert_eq!(ok(&hive, "hf-ref add spec.md").get("REF"), first);
    assert_eq!((count(&hive, "DocumentAdded"), count(&hive, "DocumentChanged")), (1, 2));
    fs::remove_file(hive.dir().join("spec.md")).unwrap();
    refuses(&hive, &format!("hf-ref resolve {first}"), 6, "is missing");
    keeps_the_rules(&hive);
}

#[test]
fn each_kind_has_its_own_letter_and_numbering() {
    let hive = TestVault::new();
    let folders = ["designs", "taskplans", "patches", "reports"];
    for folder in folders {
        fs::create_dir(hive.dir().join(folder)).unwrap();
        fs::write(hive.dir().join(folder).join("a"), folder).unwrap();
        fs::write(hive.dir().join(folder).join("b"), folder).unwrap();
    }
    for (folder, letter) in folders.into_iter().zip(["D", "P", "X", "E"]) {
        for (name, number) in [("a", 1), ("b", 2)] {
            let reply = ok(&hive, &format!("hf-ref add {folder}/{name}"));
            assert_eq!(reply.get("REF"), named(&format!("{letter}{number:04}"), folder));
        }
    }
    fs::write(hive.dir().join("x.diff"), "d").unwrap();
    assert_eq!(ok(&hive, "hf-ref add x.diff").get("REF"), named("X0003", "d"));
    fs::write(hive.dir().join("y.diff"), "d").unwrap();
    assert_eq!(ok(&hive, "hf-ref add y.diff --kind report").get("REF"), named("E0003", "d"));
    let reply = refuses(&hive, "hf-ref add x.diff --kind plan", 3, "X0003 is already a patch");
    assert_eq!(reply.get("REASON"), "key_conflict");
    hive.refuses("ref", &["add", "x.diff", "--kind", "poem"], 2);
    keeps_the_rules(&hive);
}

#[test]
fn a_check_reports_every_file() {
    let hive = TestVault::new();
    assert_eq!(ok(&hive, "hf-ref check").stdout, "EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:0 of 0 documents unchanged\n");
    for name in ["a", "b", "c"] {
        fs::write(hive.dir().join(name), name).unwrap();
        ok(&hive, &format!("hf-ref add {name}"));
    }
    let line =
        |number: &str, content: &str, how: &str| format!("DOCUMENT:{} {how} <dir>/{content}\n", named(number, content));
    let expected = |b: &str, c: &str| {
        let all = line("D0001", "a", "OK") + &line("D0002", "b", b) + &line("D0003", "c", c);
        crate::support::test_vault::mask(&all)
    };
    let reply = ok(&hive, "hf-ref check");
    assert_eq!(
        reply.masked(&hive),
        format!("EXIT:0\nSTATUS:OK\nNEXT:NONE\nSUM:3 of 3 documents unchanged\n{}", expected("OK", "OK"))
    );
    fs::write(hive.dir().join("b"), "other").unwrap();
    fs::remove_file(hive.dir().join("c")).unwrap();
    let before = hive.contents();
    let reply = sh(&hive, "hf-ref check").expect_exit(1);
    assert_eq!(
        reply.masked(&hive),
        format!("EXIT:1\nSTATUS:FAILED\nNEXT:NONE\nSUM:1 of 3 documents unchanged\n{}", expected("CHANGED", "MISSING"))
    );
    assert!(hive.contents() == before);
    fs::create_dir(hive.dir().join("c")).unwrap();
    assert!(sh(&hive, "hf-ref check").stdout.contains("UNREADABLE"));
    refuses(&hive, "hf-ref resolve D0003", 111, "cannot read the file of D0003");
}

#[test]
fn invalid_references_and_files_are_refused() {
    let hive = TestVault::new();
    for text in
        ["", "D1", "Q0001", "D0001@", "D0001@a1", "D0001@zzzz", "D0001@a13c5", "0001", "D-0001", "T-0001", "é0001"]
    {
        hive.refuses("ref", &["resolve", text], 2);
    }
    refuses(&hive, "hf-ref resolve D0001@a13c", 6, "document 'D0001@<tag>' not found");
    refuses(&hive, "hf-ref add none.md", 2, "cannot read none.md: No such file");
    refuses(&hive, "hf-ref add .", 2, "is not a regular file");
    fs::write(hive.dir().join("a\u{202e}b"), "x").unwrap();
    let reply = hive.refuses("ref", &["add", "a\u{202e}b"], 2);
    assert_eq!(reply.get("SUM"), "the path contains control or invisible characters");
    fs::write(hive.dir().join("a\nSTATUS:OK"), "x").unwrap();
    assert_eq!(hive.refuses("ref", &["add", "a\nSTATUS:OK"], 2).all("STATUS"), ["USAGE"]);
    // A link is the file that it leads to.
    fs::write(hive.dir().join("real"), "x").unwrap();
    symlink("real", hive.dir().join("link")).unwrap();
    ok(&hive, "hf-ref add link");
    assert_eq!(ok(&hive, "hf-ref add real").get("STATUS"), "DUPLICATE");
    // An empty file is a file.
    fs::write(hive.dir().join("empty"), "").unwrap();
    assert_eq!(ok(&hive, "hf-ref add empty").get("REF"), named("D0002", ""));
}

#[test]
fn a_moved_vault_still_finds_its_own_files() {
    let hive = TestVault::new();
    let inside = hive.vault().join("Autonomous/designs");
    fs::create_dir_all(&inside).unwrap();
    fs::write(inside.join("a.md"), "x").unwrap();
    let reference = ok(&hive, "hf-ref add Vault/Autonomous/designs/a.md").get("REF").to_owned();
    let moved = hive.copy();
    let reply = ok(&moved, &format!("hf-ref resolve {reference}"));
    assert!(
        fs::canonicalize(moved.dir().join(reply.get("PATH")))
            .unwrap()
            .starts_with(fs::canonicalize(moved.dir()).unwrap())
    );
    drop(hive);
    ok(&moved, &format!("hf-ref resolve {reference}"));
}
