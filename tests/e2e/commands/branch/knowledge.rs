//! Lasting knowledge, recall by page, and names in any script.

use crate::support::steps::{keeps_the_rules, ok};
use crate::support::test_vault::{Reply, TestVault};

use super::{by, does, written};

#[test]
fn m10_knowledge_is_written_revised_and_found() {
    let mut hive = written();
    let first = does(&hive, "ann", &["know", "Lyra", "She is left-handed"]);
    assert_eq!(first.get("SUM"), "K-0001 is Recorded: Lyra");
    assert_eq!(does(&hive, "ann", &["know", "Lyra", "She is left-handed"]).get("STATUS"), "DUPLICATE");
    hive.at("2026-01-31T13:00:00Z");
    hive.pipe("branch", &["know", "ＬＹＲＡ", "-", "--agent", "ann"], "She draws with both hands\n").expect_exit(0);
    for title in ["lyra", "K-0001"] {
        let page = does(&hive, "ann", &["know", title]).stdout;
        assert_eq!(
            page, "# K-0001 ＬＹＲＡ\n## 2026-01-31T13:00:00Z agent:ann\n  She draws with both hands\n",
            "{title}"
        );
    }
    let all = does(&hive, "ann", &["know", "Lyra", "--history"]).stdout;
    assert!(all.ends_with("## 2026-01-31T12:10:00Z agent:ann\n  She is left-handed\n"), "{all}");
    let found = does(&hive, "ann", &["recall", "--all", "--grep", "both hands"]).stdout;
    assert_eq!(found, "# K-0001 ＬＹＲＡ, 2026-01-31T13:00:00Z\n  She draws with both hands\n");
    // Nobody else's.
    assert_eq!(by(&hive, "ben", &["know", "Lyra"]).code, Some(6));
    assert_eq!(by(&hive, "ben", &["know", "K-0001"]).code, Some(6));
    for (args, code) in [(&["know", " ", "x"][..], 2), (&["know", "a\nb", "x"], 2), (&["know", "Tower", " "], 2)] {
        hive.refuses("branch", &[args, &["--agent", "ann"]].concat(), code);
    }
    keeps_the_rules(&hive);
}

#[test]
fn m10_a_context_offers_the_pages_whose_titles_occur_in_it() {
    let hive = TestVault::new();
    for (title, text) in [("The Tower", "It is round"), ("リラ", "左利き"), ("Tow", "A rope"), ("whale", "Big")] {
        does(&hive, "ann", &["know", title, text]);
    }
    for n in 0..8 {
        does(&hive, "ann", &["know", &format!("page {n}"), "x"]);
    }
    does(&hive, "ann", &["create", "Song", "--type", "free"]);
    does(&hive, "ann", &["note", "主人公ﾘﾗは THE  TOWER に着いた"]);
    let told = does(&hive, "ann", &["resume", "BR-0002"]).stdout;
    assert!(told.contains("# What you know\n  K-0002 リラ: 左利き\n  K-0001 The Tower: It is round\n# Now"), "{told}");
    assert!(told.contains("  Read what you know: hf-branch know K-0002\n"), "{told}");
    does(&hive, "ann", &["note", "page 0 page 1 page 2 page 3 page 4 page 5 page 6"]);
    let told = does(&hive, "ann", &["resume", "BR-0002"]).stdout;
    assert_eq!(told.lines().filter(|line| line.starts_with("  K-")).count(), 5, "{told}");
}

#[test]
fn m10_recall_comes_in_pages() {
    let hive = TestVault::new();
    does(&hive, "ann", &["create", "Long", "--type", "free"]);
    for n in 0..7 {
        does(&hive, "ann", &["note", &format!("word {n}")]);
    }
    does(&hive, "ann", &["suspend", "--summary", "Seven words"]);
    for n in 2..5 {
        does(&hive, "ann", &["resume", "BR-0002"]);
        does(&hive, "ann", &["suspend", "--summary", &format!("thread {n}")]);
    }
    // Every entry once, whatever the size of the page.
    for (args, word, total) in [
        (&["recall", "BR-0002"][..], "## Thread", 4),
        (&["recall", "--all"], "## Thread", 5),
        (&["recall", "BR-0002", "--thread", "1"], "word ", 7),
        (&["recall", "--all", "--grep", "WORD "], "word ", 7),
    ] {
        let (mut seen, mut cursor, mut pages) = (String::new(), None::<String>, 0);
        loop {
            let next = cursor.iter().flat_map(|cursor| ["--cursor", cursor]).collect::<Vec<_>>();
            let reply = does(&hive, "ann", &[args, &["--limit", "2"], &next].concat());
            seen += &reply.stdout;
            pages += 1;
            let report = reply.report_of_document();
            if report.get("HAS_MORE") == "no" {
                break;
            }
            cursor = Some(report.get("NEXT_CURSOR").to_owned());
        }
        assert_eq!(seen.lines().filter(|line| line.contains(word)).count(), total, "{args:?}\n{seen}");
        assert!(pages >= total / 2, "{args:?}: {pages}");
    }
    for args in [["recall", "--all", "--cursor", "x"], ["recall", "--all", "--limit", "0"]] {
        assert_eq!(by(&hive, "ann", &args).code, Some(2));
    }
}

#[test]
fn m10_names_are_in_any_script() {
    let hive = TestVault::new();
    let eris = |name: &str, args: &[&str]| {
        let reply = Reply::of(hive.command(name).args(args).env("HF_AGENT", "エリス").output().unwrap());
        assert_eq!(reply.code, Some(0), "{reply:?}");
        reply
    };
    eris("branch", &["create", "星の歌", "--type", "free"]);
    eris("checkpoint", &["第三章"]);
    hive.run("branch", &["tell", "エリス", "おかえり"]).expect_exit(0);
    let decided = hive.run("branch", &["decide", "--agent", "エリス"]).expect_exit(0);
    assert_eq!(decided.get("NEXT"), "ACTION hf-branch inbox --unread --agent エリス");
    // NEXT works in a shell as it is printed.
    assert!(hive.run_next(&decided).expect_exit(0).get("MESSAGE").ends_with("おかえり"));
    eris("branch", &["suspend", "--summary", "塔に着いた"]);
    assert!(eris("branch", &["resume", "BR-0002"]).stdout.contains("You are agent:エリス; it is "));
    ok(&hive, "hf-task propose Form --project 詩 --create");
    ok(&hive, "hf-task claim T-0001 --actor agent:エリス --project 詩");
    assert!(hive.vault().join("Agents/エリス").is_dir());
    // The branch is named on its task.
    assert!(ok(&hive, "hf-task show T-0001").stdout.contains("ENTITY:branch:"));
    hive.run("project", &["--check"]).expect_exit(0);
    for bad in ["エリス/..", "a\u{202e}b", "e\u{301}", "a b", "エ\u{200b}リス", "a\u{2215}b", "..", "$(id)"] {
        let reply = hive.run("branch", &["list", "--agent", bad]);
        assert_eq!(reply.code, Some(2), "{bad}: {reply:?}");
    }
    keeps_the_rules(&hive);
}

#[test]
fn m10_every_revision_of_a_page_is_found_again() {
    let hive = TestVault::new();
    ok(&hive, "hf-branch know Parser slow --agent sai");
    ok(&hive, "hf-branch know Parser fast --agent sai");
    for word in ["slow", "fast"] {
        let found = hive.run("branch", &["recall", "--all", "--grep", word, "--agent", "sai"]);
        assert!(found.stdout.ends_with(&format!("\n  {word}\n")), "{found:?}");
        assert!(found.stderr.contains("\nSUM:0 threads, 0 messages, 1 page\nCOUNT:1\n"), "{found:?}");
    }
}

#[test]
fn m7_the_summary_of_a_task_is_recalled_by_who_gave_it() {
    let hive = TestVault::new();
    ok(&hive, "hf-task propose Form");
    for line in ["claim T-0001", "start T-0001", "succeed T-0001 --summary twelve-fields"] {
        ok(&hive, &format!("hf-task {line} --actor agent:sai"));
    }
    let recall = |who: &str| hive.run("branch", &["recall", "--all", "--grep", "twelve", "--agent", who]);
    assert!(recall("sai").stdout.ends_with("\n  Summary: twelve-fields\n"), "{:?}", recall("sai"));
    assert!(recall("sai").stderr.contains("\nSUM:0 threads, 0 messages, 1 result\nCOUNT:1\n"), "{:?}", recall("sai"));
    ok(&hive, "hf-checkpoint here --agent ben");
    assert_eq!(recall("ben").stdout, "");
}

#[test]
fn m10_a_page_is_offered_once_however_its_title_is_written() {
    let hive = TestVault::new();
    for title in ["Lyra", "The Tower", "リラ", "Café", "Straße", "ＡＢＣ", "sword"] {
        does(&hive, "ann", &["know", title, "x"]);
    }
    does(&hive, "ann", &["create", "Song", "--type", "free"]);
    does(&hive, "ann", &["note", "Lyra and LYRA at the tower, リラ, a Cafe\u{301} in the Straße"]);
    let told = does(&hive, "ann", &["resume", "BR-0002"]).stdout;
    let offered: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("  ")?.get(..6)).collect();
    let offered: Vec<&str> = offered.into_iter().filter(|line| line.starts_with("K-")).collect();
    assert_eq!(offered, ["K-0001", "K-0002", "K-0003", "K-0004", "K-0005"], "{told}");
}

#[test]
fn m10_recall_finds_a_text_in_every_unicode_form() {
    let hive = TestVault::new();
    does(&hive, "ann", &["note", "Tea at the Café ＡＢＣ"]);
    for word in ["Cafe\u{301}", "CAFÉ", "abc"] {
        let found = does(&hive, "ann", &["recall", "--all", "--grep", word]).stdout;
        assert!(found.contains("Tea at the Café"), "{word}: {found}");
    }
    // A name has one form only, and the refusal says which.
    let refused = by(&hive, "e\u{301}ris", &["list"]);
    assert!(refused.code == Some(2) && refused.stdout.contains("in NFC"), "{refused:?}");
}
