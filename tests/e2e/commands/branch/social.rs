//! Social branches and conversations between personas.

use serde_json::{Value, json};

use crate::support::steps::{keeps_the_rules, refuses};
use crate::support::test_vault::TestVault;

use super::does;

#[test]
fn social_branches_appear_once_both_personas_are_known() {
    let hive = TestVault::new();
    does(&hive, "ann", &["note", "I am ann"]);
    assert_eq!(does(&hive, "ann", &["list"]).all("BRANCH").len(), 1);
    does(&hive, "ben", &["note", "I am ben"]);
    for (me, other) in [("ann", "ben"), ("ben", "ann")] {
        let list = does(&hive, me, &["list"]);
        let social: Vec<&str> = list.all("BRANCH").into_iter().filter(|line| line.contains(" social ")).collect();
        assert_eq!(social.len(), 1, "{list:?}");
        assert!(social[0].ends_with(&format!(" social Suspended 2026-01-31T12:00:00Z with {other}")), "{social:?}");
    }
    does(&hive, "cem", &["note", "I am cem"]);
    assert_eq!(does(&hive, "ann", &["list"]).all("BRANCH").len(), 3);
    // One for every persona and partner: to ask for it is to be told which.
    let again = does(&hive, "ann", &["create", "Tea", "--type", "social", "--partner", "ben"]);
    assert_eq!((again.get("STATUS"), again.get("NEXT")), ("DUPLICATE", "ACTION hf-branch resume BR-0004 --agent ann"));
    assert_eq!(again.get("SUM"), "BR-0004 is Suspended: with ben");
    // It is never over.
    does(&hive, "ann", &["resume", "BR-0004"]);
    refuses(&hive, "hf-branch complete --agent ann", 3, "BR-0004 is a social branch, which cannot be completed");
    refuses(&hive, "hf-branch complete BR-0001 --agent ann", 3, "BR-0001 is a root, which cannot be completed");
    keeps_the_rules(&hive);
}

#[test]
fn a_conversation_is_in_the_branches_of_its_participants() {
    let mut hive = TestVault::new();
    does(&hive, "ann", &["note", "I am ann"]);
    does(&hive, "ben", &["note", "I am ben"]);
    // BR-0003 is ben's with ann, BR-0004 ann's with ben; whichever.
    let of = |me: &str| {
        let list = does(&hive, me, &["list"]);
        list.all("BRANCH").into_iter().find(|line| line.contains(" social ")).unwrap()[..7].to_owned()
    };
    let (anns, bens) = (of("ann"), of("ben"));
    does(&hive, "ann", &["resume", &anns]);
    does(&hive, "ann", &["tell", "ben", "Which book is next?"]);
    does(&hive, "ben", &["resume", &bens]);
    does(&hive, "ben", &["tell", "ann", "The one on whales"]);
    does(&hive, "ann", &["suspend", "--summary", "Books"]);
    hive.at("2026-02-01T12:00:00Z");
    let told = does(&hive, "ann", &["resume", &anns]).stdout;
    assert!(
        told.contains(
            "  Summary: Books\n  2026-01-31T12:00:00Z you: Which book is next?\n  2026-01-31T12:00:00Z agent:ben: The one on whales\n"
        ),
        "{told}"
    );
    // The question waited for ben.
    let bens = does(&hive, "ben", &["recall", &bens, "--thread", "1"]).stdout;
    assert!(bens.contains("The one on whales") && bens.contains("Which book"), "{bens}");
    let anns = does(&hive, "ann", &["recall", &anns, "--thread", "1"]).stdout;
    assert!(anns.contains("The one on whales") && anns.contains("Which book"), "{anns}");
    keeps_the_rules(&hive);
}

#[test]
fn a_hundred_personas_know_each_other_when_they_first_talk() {
    let hive = TestVault::new();
    let batch: Vec<Value> = (0..40)
        .map(|n| {
            json!({"event_type": "BranchCreated", "subject": format!("branch:p{n}"),
            "payload": {"persona_id": format!("p{n}"), "branch_type": "user", "label": "the user"}})
        })
        .collect();
    hive.batch(&batch);
    // 32 by themselves, each with every other.
    assert_eq!(does(&hive, "p0", &["list"]).get("SUM"), "32 branches");
    assert_eq!(does(&hive, "p39", &["list"]).get("SUM"), "1 branch");
    does(&hive, "p39", &["tell", "p0", "Good day"]);
    assert_eq!(does(&hive, "p39", &["list"]).get("SUM"), "2 branches");
    assert_eq!(does(&hive, "p0", &["list"]).get("SUM"), "33 branches");
    keeps_the_rules(&hive);
}
