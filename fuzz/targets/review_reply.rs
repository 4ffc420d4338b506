//! A reviewer's reply: refused in one line, or read; and what was read says the same when it is written anew.

use hiveforge::policy::review;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match review::parse(text) {
        Err(error) => assert_eq!(error.message.lines().count(), 1, "{error}"),
        Ok(reply) => {
            let passes = reply.passes.iter().map(|item| format!("PASS: {item}"));
            let fails = reply.fails.iter().map(|item| format!("FAIL: {item}"));
            let anew: Vec<String> = passes.chain(fails).collect();
            // Written anew it can be longer: an arrow, and the blanks.
            match review::parse(&anew.join("\n")) {
                Ok(again) => assert_eq!(again, reply),
                Err(error) => assert!(error.message.contains("words") || error.message.contains("bytes"), "{error}"),
            }
        }
    }
}
