//! The duty to introspect after deep work.

use crate::judge::Log;
use crate::judge::lies::Lie;
use crate::judge::works::{End, Work};

/// Whether the log after a closing log is not an introspection, and none has come since.
///
/// The closing log is the first one newer than the declaration. Declarations without a log in between have the same
/// closing log, so together they have one duty.
pub fn is_broken(logs: &[Log], works: &[Work], lie: Option<Lie>) -> bool {
    let has_duty = |work: &&Work| {
        let is_expired = matches!(work.end, Some(End::Expired(_)));
        lie != Some(Lie::NoDuty) && !(is_expired && lie == Some(Lie::OnlyEndingCloses))
    };
    works.iter().filter(has_duty).any(|work| {
        let newer = |log: &&Log| log.at > work.at || (lie == Some(Lie::EqualEnds) && log.at == work.at);
        let mut after = logs.iter().filter(newer);
        let Some(closing) = after.next() else { return false };
        if closing.introspection && lie != Some(Lie::ClosingNeverMeets) {
            return false;
        }
        let (mut is_put_off, mut is_broken) = (false, lie == Some(Lie::ClosingMustMeet));
        for log in after {
            let is_excused = log.emergency && (!is_put_off || lie == Some(Lie::EmergencyTwice));
            let is_met = log.introspection && !(is_broken && lie == Some(Lie::DutyStays));
            if is_met || (log.emergency && lie == Some(Lie::EmergencyMeets)) {
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
