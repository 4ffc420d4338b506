//! A reviewer's reply: refused in one line, or parsed; and a parsed reply round-trips.

use hiveforge::policy::review;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match review::parse(text) {
        Err(error) => assert_eq!(error.message.lines().count(), 1, "{error}"),
        Ok(reply) => {
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
