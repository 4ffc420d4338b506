//! The classes of timelines, by what they are about.

mod duty;
mod files;
mod life;
mod mixed;
mod time;
mod work;

use crate::script::Script;
use crate::timeline::Timeline;

pub struct Class {
    pub name: &'static str,
    write: fn(&mut Script),
}

macro_rules! classes {
    ($($file:ident: $($class:ident),* ;)*) => {
        /// All of them.
        pub const CLASSES: &[Class] = &[$($(Class { name: stringify!($class), write: $file::$class },)*)*];
    };
}

classes! {
    life: ordinary_life, silence, a_log_every_beat, two_logs_between_looks, numbered_logs, titled_logs, late_log,
        late_checkpoint, late_declaration, only_checkpoints, late_agent, adopted_tree, adopted_long_history,
        subthemes, foreign_files, caches_deleted;
    time: inactive_limits, introspection_limits, introspection_after_work_limits, unchecked_limits, deadline_limits,
        skew_limits, slightly_ahead, far_ahead, future_becomes_present, tokyo, summer_time_begins, summer_time_ends,
        missing_ticks, suspended_machine, suspended_in_deep_work, reboot;
    work: log_and_declaration_in_one_beat, log_with_the_id_of_a_known_declaration, declaration_without_log,
        flexible_with_checkpoints, flexible_without_checkpoints, strict_in_time, strict_over_time, strict_log_at_deadline,
        strict_log_after_deadline, renamed_completed, renamed_expired, deleted, flexible_then_strict,
        strict_then_flexible, declared_again_and_again, completed_between_looks, several_in_one_look,
        strict_over_the_limit, malformed;
    duty: met_by_closing_log, met_by_next_log, broken, broken_then_met, emergency_once, emergency_twice,
        emergency_header, two_duties, suspended_by_strict, duty_after_expiry, closing_logs_in_one_look;
    files: linked_theme, linked_log, linked_checkpoint, linked_declaration, folder_for_a_file, impossible_id;
    mixed: random_mix, random_mix_of_deep_work, random_mix_in_local_time, random_mix_of_files;
}

/// The timeline of a class for a seed: the first one that the rules decide completely.
pub fn timeline(class: &Class, seed: u64) -> Timeline {
    let draw = |round: u64| {
        let mut script = Script::new(seed.wrapping_mul(1_000_003).wrapping_add(round << 40));
        (class.write)(&mut script);
        script.finish(class.name, seed)
    };
    (0..50)
        .map(draw)
        .find(|timeline| timeline.unsure().is_none())
        .unwrap_or_else(|| panic!("{} is undecided", class.name))
}
