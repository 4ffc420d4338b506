//! Limits to the second, clocks, time zones, and machines that are not always there.

use crate::clock::second;
use crate::script::{Script, Sort};
use crate::zone::Zone;

pub fn inactive_limits(s: &mut Script) {
    let at = s.prelude() + s.between(10, 250);
    s.length = at + 800;
    if s.dice.one_in(2) {
        s.log(at, Sort::Plain)
    } else {
        s.checkpoint(at)
    }
    s.probe(at + 300);
    s.probe(at + 600);
}

pub fn introspection_limits(s: &mut Script) {
    // From an introspection, or from the start if there was none.
    let at = if s.dice.one_in(2) { s.prelude() } else { s.between(1, 100) };
    s.length = at + 2000;
    s.checkpoint(at);
    let every = s.between(150, 290);
    s.checkpoints(at + every, s.length, every);
    for limit in [900, 1200, 1800] {
        s.probe(at + limit);
    }
}

pub fn introspection_after_work_limits(s: &mut Script) {
    let at = s.prelude() + 100;
    let end = at + s.between(100, 900);
    s.length = end + 2000;
    match s.dice.below(3) {
        0 => {
            s.flexible(at);
            s.checkpoints(at + 200, end - 1, 300);
            s.log(end, Sort::Plain);
        }
        1 => {
            s.strict(at, 20);
            s.log(end, Sort::Plain);
        }
        // Deep work that ran out puts nothing off.
        _ => s.strict(at, (end - at) / 60),
    }
    s.checkpoints(end + 30, s.length, 270);
    for limit in [900, 1200, 1800] {
        s.probe(end + limit);
    }
}

pub fn unchecked_limits(s: &mut Script) {
    let at = s.prelude() + 50;
    s.flexible(at);
    let mut last = at;
    for _ in 0..s.between(0, 2) {
        last += s.between(50, 500);
        s.checkpoint(last);
    }
    s.length = last + 1100;
    s.probe(last + 600);
    if s.dice.one_in(2) {
        s.checkpoint(last + 700);
    }
}

pub fn deadline_limits(s: &mut Script) {
    let (at, minutes) = (s.prelude() + 50, s.between(5, 20));
    let deadline = at + minutes * 60;
    s.strict(at, minutes);
    s.length = deadline + 700;
    s.probe(deadline);
    if !s.dice.one_in(3) {
        let log = deadline + s.between(-1, 1);
        let sort = s.dice.pick(&[Sort::Plain, Sort::Look]);
        s.log(log, sort);
    }
}

pub fn skew_limits(s: &mut Script) {
    let at = s.prelude() + s.between(50, 400);
    s.length = at + 1500;
    let ahead = at + s.between(119, 122);
    match s.dice.below(3) {
        0 => s.checkpoint_as(at, ahead),
        1 => s.log_as(at, ahead, "", Sort::Plain),
        _ => s.flexible_as(at, ahead),
    }
    s.probe(at);
    s.probe(ahead - 120);
    s.probe(ahead);
    s.probe(ahead + 600);
}

pub fn slightly_ahead(s: &mut Script) {
    let mut at = s.prelude();
    s.length = 2700;
    while at < 2200 {
        at += s.between(60, 600);
        let ahead = at + s.between(1, 119);
        match s.dice.below(3) {
            0 => s.checkpoint_as(at, ahead),
            1 => s.log_as(at, ahead, "", Sort::Look),
            _ => s.log_as(at, ahead, "", Sort::Plain),
        }
    }
}

/// Ids that stay in the future, and hide nothing.
pub fn far_ahead(s: &mut Script) {
    let at = s.prelude();
    s.length = 3000;
    let from = at + s.between(50, 500);
    let ahead = 20_000 + s.between(0, 90_000);
    match s.dice.below(3) {
        0 => s.checkpoint_as(from, ahead),
        1 => s.log_as(from, ahead, "", Sort::Look),
        _ => s.strict_as(from, ahead, 30),
    }
    match s.dice.below(3) {
        0 => s.life(from + 10, 2500),
        1 => s.checkpoints(from + 10, 1500, 280),
        _ => {}
    }
    if s.dice.one_in(2) {
        let (path, when) = (s.deeds.iter().find_map(|(_, deed)| written_with(deed, &s.id(ahead))), from + 900);
        s.deed(when, crate::tree::Deed::Remove(path.expect("written above")));
    }
}

fn written_with(deed: &crate::tree::Deed, id: &str) -> Option<String> {
    match deed {
        crate::tree::Deed::Write { path, .. } if path.contains(id) => Some(path.clone()),
        _ => None,
    }
}

pub fn future_becomes_present(s: &mut Script) {
    let at = s.prelude();
    s.length = 3300;
    let from = at + s.between(50, 300);
    let ahead = from + s.between(121, 1500);
    match s.dice.below(4) {
        0 => s.checkpoint_as(from, ahead),
        1 => s.log_as(from, ahead, "", Sort::Look),
        2 => s.log_as(from, ahead, "", Sort::Plain),
        _ => s.flexible_as(from, ahead),
    }
    if s.dice.one_in(2) {
        s.flexible(from + 30);
        s.log(from + 100, Sort::Plain);
    }
    s.checkpoints(from + 200, 2200, 290);
}

pub fn tokyo(s: &mut Script) {
    s.zone = Zone::Tokyo;
    let at = s.prelude();
    s.length = 3000;
    match s.dice.below(3) {
        0 => s.life(at + 60, 2500),
        1 => {
            s.strict(at + 60, 15);
            s.log(at + 700, Sort::Plain);
            s.log(at + 800, Sort::Plain);
        }
        _ => s.checkpoints(at + 60, 2000, 250),
    }
}

pub fn summer_time_begins(s: &mut Script) {
    s.zone = Zone::Berlin;
    s.begin = second("2026-03-29T01:00:00Z") - s.between(300, 2400);
    around_a_change(s);
}

pub fn summer_time_ends(s: &mut Script) {
    s.zone = Zone::Berlin;
    // The second reading of the repeated hour begins at 01:00, and the first an hour earlier.
    s.begin = second("2026-10-25T00:00:00Z") - s.between(300, 1200) + s.dice.pick(&[0, 3600, 7200]);
    around_a_change(s);
    s.length = 4500;
}

fn around_a_change(s: &mut Script) {
    let at = s.prelude();
    s.length = 3600;
    match s.dice.below(4) {
        0 => s.life(at + 60, 3300),
        1 => s.strict(at + 60, 40),
        2 => {
            s.flexible(at + 60);
            s.checkpoints(at + 200, 2200, 500);
            s.log(2300, Sort::Plain);
        }
        _ => s.checkpoints(at + 60, 3300, 280),
    }
}

pub fn missing_ticks(s: &mut Script) {
    let at = s.prelude();
    s.length = 4500;
    for _ in 0..s.between(1, 2) {
        let from = s.between(at, 2500);
        let gap = s.between(400, 1800);
        s.outages.push((from, from + gap));
    }
    match s.dice.below(4) {
        0 => s.life(at + 30, 4000),
        1 => s.strict(at + 60, 25),
        2 => s.flexible(at + 60),
        _ => s.checkpoints(at + 60, 3000, 280),
    }
    if s.dice.one_in(2) {
        let log = s.between(2500, 4000);
        s.log(log, Sort::Plain);
    }
}

pub fn suspended_machine(s: &mut Script) {
    let at = s.prelude();
    s.length = 4200;
    let from = at + s.between(100, 700);
    let to = from + s.between(60, 1700);
    s.sleeps.push((from, to));
    s.checkpoints(at + 50, from, 200);
    match s.dice.below(3) {
        0 => s.checkpoints(to + 100, 4000, 290),
        1 => s.log(to + 500, Sort::Look),
        _ => {}
    }
}

pub fn suspended_in_deep_work(s: &mut Script) {
    let at = s.prelude();
    s.length = 4200;
    let from = at + s.between(200, 700);
    let to = from + s.between(300, 1500);
    s.sleeps.push((from, to));
    // A deadline is a time of day: it does not wait for a machine that sleeps.
    if s.dice.one_in(2) {
        s.flexible(at + 60);
    } else {
        let minutes = s.between(15, 40);
        s.strict(at + 60, minutes);
    }
    if s.dice.one_in(2) {
        s.log(to + 300, Sort::Plain);
    }
}

pub fn reboot(s: &mut Script) {
    let at = s.prelude();
    s.length = 3600;
    let from = at + s.between(100, 500);
    let to = from + s.between(100, 900);
    s.outages.push((from, to));
    s.boots.push(to);
    s.checkpoints(at + 50, from, 200);
    if s.dice.one_in(2) {
        s.checkpoints(to + 250, 3400, 290);
    }
}
