//! Statements: whatever parses is written back byte for byte, one fact per line, and nothing in it is invisible.

use hiveforge::base::text::is_unsafe;
use hiveforge::policy::statement::Statement;

pub fn run(data: &[u8]) {
    match Statement::parse(data) {
        Ok(statement) => {
            let text = statement.to_string();
            assert_eq!(text.as_bytes(), data);
            assert!(!text.chars().any(|c| c != '\n' && is_unsafe(c)), "{text:?}");
            let acts = statement.acts();
            let more = acts.iter().map(|act| act.binds.len() + act.option.iter().count() + act.comment.iter().count());
            assert_eq!(text.lines().count(), 4 + 4 * acts.len() + more.sum::<usize>(), "{text}");
            let (vault, acts) = (statement.vault(), acts.to_vec());
            assert_eq!(Statement::new(vault, statement.authority(), statement.head_seen(), acts), Ok(statement));
        }
        Err(why) => assert!(!why.to_string().contains('\n')),
    }
}
