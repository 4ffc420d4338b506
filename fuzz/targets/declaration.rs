//! A declaration of deep work, in any state: parsed or refused in one line, and a parsed one round-trips in both
//! formats.

use hiveforge::op::agent::{Declaration, Wording};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Declaration::read(text) {
        Err(why) => assert_eq!(why.lines().count(), 1),
        Ok(declared) => {
            for wording in [Wording::Own, Wording::Works] {
                assert_eq!(Declaration::read(&declared.write(wording)).as_ref(), Ok(&declared));
            }
        }
    }
}
