//! The vocabulary of all other layers: closed lists of names, ids, digests, signatures, time, text, limits,
//! errors.

pub mod actor;
pub mod digest;
pub mod error;
pub mod heartbeat;
pub mod id;
pub mod limits;
mod names;
pub mod seal;
pub mod signature;
pub mod text;
pub mod time;
pub mod zone;

pub use actor::Actor;
pub use digest::Digest;
pub use error::{Error, ErrorKind, Reason, Result};
pub use heartbeat::HeartbeatId;
pub use id::{EntityId, EntityType, ShortRef, Subject};
pub(crate) use names::{names, serde_by_name};
pub use signature::{Fingerprint, OperatorKey, Proof, Signature, Strength};
pub use time::{Clocks, Now, Timestamp};
pub use ulid::Ulid;
pub use zone::Zone;
