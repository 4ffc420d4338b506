//! The duty to introspect after deep work.

use crate::judge::Log;
use crate::judge::lies::Lie;
use crate::judge::works::{End, Work};

/// Whether the log after a closing log is not an introspection, and none has come since.
///
/// The closing log is the first one newer than the declaration. Declarations without a log in between have the same
/// closing log, so together they have one duty.
pub fn is_broken(logs: &[Log], works: &[Work], lie: Option<Lie>) -> bool {
    let is_due = |work: &&Work| match (lie, &work.end) {
        (Some(Lie::NoDuty), _) => false,
        (Some(Lie::OnlyEndingCloses), Some(End::Expired(_))) => false,
        _ => true,
    };
    works.iter().filter(is_due).any(|work| {
        let newer = |log: &&Log| log.at > work.at || (lie == Some(Lie::EqualEnds) && log.at == work.at);
        let mut after = logs.iter().filter(newer);
        let Some(closing) = after.next() else { return false };
        if closing.introspection && lie != Some(Lie::ClosingNeverMeets) {
            return false;
        }
        let (mut is_put_off, mut is_broken) = (false, lie == Some(Lie::ClosingMustMeet));
        for log in after {
            let is_excused = log.emergency && (!is_put_off || lie == Some(Lie::EmergencyTwice));
            if log.introspection && !(is_broken && lie == Some(Lie::DutyStays)) {
                return false;
            } else if log.emergency && lie == Some(Lie::EmergencyMeets) {
                return false;
            } else if is_excused && !is_broken {
                is_put_off = true;
            } else {
                is_broken = true;
            }
        }
        is_broken
    })
}
