//! A reviewer's reply: refused in one line, or parsed; a parsed reply round-trips, and has every FAIL line of the text.

use hiveforge::policy::review;

/// How many lines begin with FAIL, whatever marks and numbers precede it.
fn fail_lines(text: &str) -> usize {
    let begins = |line: &&str| {
        let letters = line.trim_start_matches(|c: char| !c.is_alphabetic());
        letters.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("fail"))
    };
    text.lines().filter(begins).count()
}

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match review::parse(text) {
        Err(error) => assert_eq!(error.message.lines().count(), 1, "{error}"),
        Ok(reply) => {
            assert!(reply.fails.len() >= fail_lines(text), "a FAIL line is lost: {text:?}");
            let items = reply.passes.iter().chain(&reply.fails);
            assert!(items.clone().all(|item| item.lines().count() == 1), "an item makes a line: {text:?}");
            let passes = reply.passes.iter().map(|item| format!("PASS: {item}"));
            let fails = reply.fails.iter().map(|item| format!("FAIL: {item}"));
            let rewritten: Vec<String> = passes.chain(fails).collect();
            // The rewritten text can be longer, because of the arrow and blanks, and exceed a limit.
            match review::parse(&rewritten.join("\n")) {
                Ok(again) => assert_eq!(again, reply),
                Err(error) => assert!(error.message.contains("words") || error.message.contains("bytes"), "{error}"),
            }
        }
    }
}
