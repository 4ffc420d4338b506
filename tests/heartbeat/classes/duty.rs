//! The introspection after deep work.

use crate::script::{Script, Sort};

/// Deep work of either sort; returns the second in which it can be closed.
fn deep_work(s: &mut Script) -> i64 {
    let at = s.prelude() + 60;
    s.length = 3300;
    if s.dice.one_in(2) {
        s.flexible(at)
    } else {
        s.strict(at, 20)
    }
    at + s.between(60, 590)
}

/// Logs of these sorts from a second on, each some time after the one before. Checkpoints keep the agent alive.
fn logs(s: &mut Script, from: i64, sorts: &[Sort]) -> i64 {
    let mut at = from;
    let gap = s.dice.pick(&[20, 150, 400]);
    for sort in sorts {
        s.log(at, *sort);
        at += s.between(gap / 2, gap);
    }
    s.checkpoints(from + 100, 2900, 290);
    at
}

pub fn met_by_closing_log(s: &mut Script) {
    let at = deep_work(s);
    logs(s, at, &[Sort::Look, Sort::Plain, Sort::Plain]);
}

pub fn met_by_next_log(s: &mut Script) {
    let at = deep_work(s);
    logs(s, at, &[Sort::Plain, Sort::Look, Sort::Plain]);
}

pub fn broken(s: &mut Script) {
    let at = deep_work(s);
    let sorts = s.dice.pick(&[[Sort::Plain, Sort::Plain, Sort::Plain], [Sort::Urgent, Sort::Plain, Sort::Urgent]]);
    logs(s, at, &sorts);
}

pub fn broken_then_met(s: &mut Script) {
    let at = deep_work(s);
    let end = logs(s, at, &[Sort::Plain, Sort::Plain]);
    let look = end + s.between(200, 900);
    s.look(look);
    s.log(look + 100, Sort::Plain);
}

pub fn emergency_once(s: &mut Script) {
    let at = deep_work(s);
    let last = s.dice.pick(&[Sort::Look, Sort::Plain]);
    logs(s, at, &[Sort::Plain, Sort::Urgent, last]);
}

pub fn emergency_twice(s: &mut Script) {
    let at = deep_work(s);
    logs(s, at, &[Sort::Plain, Sort::Urgent, Sort::Urgent]);
    if s.dice.one_in(2) {
        s.look(2500);
    }
}

pub fn emergency_header(s: &mut Script) {
    let at = deep_work(s);
    let line = s.dice.pick(&[9, 10, 11, 12]);
    logs(s, at, &[Sort::Plain, Sort::UrgentLate(line)]);
}

pub fn two_duties(s: &mut Script) {
    let at = deep_work(s);
    let sorts = [Sort::Plain, Sort::Look, Sort::Urgent];
    s.log(at, Sort::Plain);
    // Declared before the duty of the first is met.
    s.flexible(at + 50);
    let picked = [s.dice.pick(&sorts), s.dice.pick(&sorts), s.dice.pick(&sorts)];
    logs(s, at + 200, &picked);
}

pub fn suspended_by_strict(s: &mut Script) {
    let at = deep_work(s);
    let end = logs(s, at, &[Sort::Plain, Sort::Plain]);
    let (declared, minutes) = (end + s.between(60, 300), s.between(5, 12));
    s.strict(declared, minutes);
    if s.dice.one_in(2) {
        s.look(declared + 200);
    }
}

pub fn duty_after_expiry(s: &mut Script) {
    let at = s.prelude() + 60;
    s.length = 3300;
    s.strict(at, 8);
    let back = at + 480 + s.between(1, 500);
    let second = s.dice.pick(&[Sort::Plain, Sort::Look, Sort::Urgent]);
    logs(s, back, &[Sort::Plain, second]);
}

pub fn closing_logs_in_one_look(s: &mut Script) {
    let at = deep_work(s);
    let sorts = [Sort::Plain, Sort::Look, Sort::Urgent];
    let count = s.between(2, 4) as usize;
    for rest in ["", "_01", "_2", "_10"].iter().take(count) {
        let sort = s.dice.pick(&sorts);
        s.log_as(at, at, rest, sort);
    }
    s.checkpoints(at + 100, 2900, 290);
}
