//! Signatures and public keys: whatever parses is written back as it was read, and only the seeds verify.

use hiveforge::base::signature::{OperatorKey, Signature};
use hiveforge::policy::statement::NAMESPACE;

/// What the seeds are signatures of.
const MESSAGE: &[u8] = b"hello\n";
/// The key that made them.
const KEY: &str = "SHA256:HxJkKXIc9eeJzKIlub6el//d9KQdmSVZzI1+ehbBxqg";

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Signature::parse(text) {
        Ok(signature) => {
            let written = signature.to_string();
            assert_eq!(Signature::parse(&written).as_ref(), Ok(&signature));
            // Only the line breaks may differ.
            let without_breaks = |text: &str| text.split_ascii_whitespace().collect::<String>();
            assert_eq!(without_breaks(&written), without_breaks(text));
            if let Ok(proof) = signature.verify(MESSAGE, NAMESPACE) {
                assert_eq!(proof.key.fingerprint().to_string(), KEY);
            }
        }
        Err(why) => assert!(!why.to_string().contains('\n')),
    }
    match OperatorKey::parse(text) {
        Ok(key) => assert_eq!(OperatorKey::parse(&key.to_string()), Ok(key)),
        Err(why) => assert!(!why.to_string().contains('\n')),
    }
}
