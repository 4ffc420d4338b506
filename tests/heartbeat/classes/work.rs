//! Deep work: how it is declared, how it ends, and what is wrong with it.

use crate::script::{Script, Sort};

/// Declares either sort.
fn declare(s: &mut Script, at: i64) {
    if s.dice.one_in(2) { s.flexible(at) } else { s.strict(at, 30) }
}

fn plain_or_look(s: &mut Script, at: i64) {
    let sort = s.dice.pick(&[Sort::Plain, Sort::Look]);
    s.log(at, sort);
}

pub fn log_and_declaration_in_one_beat(s: &mut Script) {
    let at = s.prelude() + s.between(10, 200);
    s.length = 3300;
    let seconds = (at + s.between(0, 20), at + s.between(0, 20));
    s.log_as(seconds.0, at, "", Sort::Plain);
    if s.dice.one_in(2) {
        s.flexible_as(seconds.1, at)
    } else {
        s.strict_as(seconds.1, at, 25)
    }
    s.checkpoints(at + 300, at + 1400, 500);
    let log = at + s.between(900, 1900);
    s.log(log, Sort::Plain);
    plain_or_look(s, log + 200);
}

/// The log has the id of the declaration, and comes when that is long known: it is not newer.
pub fn log_with_the_id_of_a_known_declaration(s: &mut Script) {
    let at = s.prelude() + s.between(10, 200);
    s.length = 3300;
    declare(s, at);
    let written = at + s.between(310, 600);
    s.log_as(written, at, "", Sort::Plain);
    s.checkpoints(at + 280, at + 1400, 280);
    let log = at + s.between(1300, 1900);
    s.log(log, Sort::Plain);
    plain_or_look(s, log + 200);
}

pub fn declaration_without_log(s: &mut Script) {
    let at = s.between(1, 200);
    s.length = 3000;
    match s.dice.below(3) {
        0 => s.flexible(at),
        1 => {
            s.flexible(at);
            s.checkpoints(at + 400, 2500, 500);
        }
        _ => s.strict(at, 20),
    }
}

pub fn flexible_with_checkpoints(s: &mut Script) {
    let at = s.prelude() + 60;
    s.length = 4200;
    s.flexible(at);
    let (every, end) = (s.between(250, 590), at + s.between(1500, 2800));
    s.checkpoints(at + every, end, every);
    s.log(end + 10, Sort::Plain);
    plain_or_look(s, end + 300);
}

pub fn flexible_without_checkpoints(s: &mut Script) {
    let at = s.prelude() + 60;
    s.length = 3000;
    s.flexible(at);
    let log = at + s.between(500, 1500);
    match s.dice.below(3) {
        0 => plain_or_look(s, log),
        1 => s.checkpoint(log),
        _ => {}
    }
}

pub fn strict_in_time(s: &mut Script) {
    let (at, minutes) = (s.prelude() + 60, s.between(10, 40));
    s.length = 3600;
    s.strict(at, minutes);
    let log = at + s.between(1, minutes * 60);
    plain_or_look(s, log);
    if s.dice.one_in(2) {
        s.look(log + 250);
    }
}

pub fn strict_over_time(s: &mut Script) {
    let (at, minutes) = (s.prelude() + 60, s.between(5, 30));
    s.length = 3600;
    s.strict(at, minutes);
    if s.dice.one_in(2) {
        s.checkpoints(at + 200, at + minutes * 60, 280);
    }
    let back = at + minutes * 60 + s.between(400, 1000);
    s.log(back, Sort::Plain);
    plain_or_look(s, back + 200);
}

pub fn strict_log_at_deadline(s: &mut Script) {
    let (at, minutes) = (s.prelude() + 60, s.between(5, 30));
    s.length = 3300;
    s.strict(at, minutes);
    let deadline = at + minutes * 60;
    // Written later than its id says, it is still in time.
    let written = deadline + s.between(0, 40);
    if s.dice.one_in(2) {
        s.log(deadline, Sort::Plain)
    } else {
        s.log_as(written, deadline, "", Sort::Plain)
    }
    plain_or_look(s, deadline + 250);
}

pub fn strict_log_after_deadline(s: &mut Script) {
    let (at, minutes) = (s.prelude() + 60, s.between(5, 30));
    s.length = 3300;
    s.strict(at, minutes);
    let log = at + minutes * 60 + s.between(1, 50);
    plain_or_look(s, log);
    if s.dice.one_in(2) {
        plain_or_look(s, log + 200);
    }
}

/// The agent says that deep work is over, with or without a log.
fn said_to_be_over(s: &mut Script, over: impl Fn(&mut Script, i64, i64)) {
    let at = s.prelude() + 60;
    s.length = 3300;
    declare(s, at);
    let end = at + s.between(200, 1000);
    s.checkpoints(at + 150, end, 280);
    if s.dice.one_in(2) {
        s.log(end, Sort::Plain);
    }
    over(s, end, at);
    if s.dice.one_in(2) {
        let log = end + s.between(500, 900);
        s.log(log, Sort::Plain);
        plain_or_look(s, log + 200);
    }
}

pub fn renamed_completed(s: &mut Script) {
    said_to_be_over(s, |s, end, at| s.rename(end, at, ".completed"));
}

pub fn renamed_expired(s: &mut Script) {
    said_to_be_over(s, |s, end, at| s.rename(end, at, ".expired"));
}

pub fn deleted(s: &mut Script) {
    said_to_be_over(s, |s, end, at| {
        // A file that nobody saw cannot be missed.
        s.probes.push(s.begin + at);
        s.delete(end, at);
    });
}

pub fn flexible_then_strict(s: &mut Script) {
    let at = s.prelude() + 60;
    s.length = 3600;
    s.flexible(at);
    let (second, minutes) = (at + s.between(20, 900), s.between(5, 20));
    s.strict(second, minutes);
    match s.dice.below(3) {
        0 => {}
        1 => plain_or_look(s, second + 200),
        _ => {
            let log = second + minutes * 60 + s.between(100, 800);
            s.log(log, Sort::Plain);
            plain_or_look(s, log + 100);
        }
    }
}

pub fn strict_then_flexible(s: &mut Script) {
    let (at, minutes) = (s.prelude() + 60, s.between(5, 20));
    s.length = 3600;
    s.strict(at, minutes);
    let second = at + s.between(20, minutes * 60 + 300);
    s.flexible(second);
    if s.dice.one_in(2) {
        s.checkpoints(second + 300, 2800, 550);
    }
    if s.dice.one_in(2) {
        plain_or_look(s, second + 1000);
    }
}

pub fn declared_again_and_again(s: &mut Script) {
    let mut at = s.prelude();
    s.length = 3900;
    for _ in 0..s.between(3, 6) {
        at += s.between(30, 500);
        let minutes = s.between(3, 15);
        if s.dice.one_in(2) {
            s.flexible(at)
        } else {
            s.strict(at, minutes)
        }
        if s.dice.one_in(4) {
            let log = at + s.between(0, 200);
            s.log(log, Sort::Plain);
        }
    }
    if s.dice.one_in(2) {
        s.log(at + 300, Sort::Plain);
        plain_or_look(s, at + 400);
    }
}

pub fn completed_between_looks(s: &mut Script) {
    let at = s.prelude() + 70 - s.between(0, 40);
    s.length = 2700;
    declare(s, at);
    let end = at + s.between(5, 50);
    if s.dice.one_in(2) {
        s.log(end, Sort::Plain);
    }
    s.rename(end + 1, at, ".completed");
    let log = end + s.between(60, 500);
    s.log(log, Sort::Plain);
    plain_or_look(s, log + 100);
}

pub fn several_in_one_look(s: &mut Script) {
    let mut at = s.prelude();
    s.length = 3000;
    for _ in 0..s.between(2, 4) {
        at += s.between(2, 12);
        let minutes = s.between(10, 20);
        if s.dice.one_in(2) { s.flexible(at) } else { s.strict(at, minutes) }
    }
    if s.dice.one_in(2) {
        s.log(at + 5, Sort::Plain);
        at += 10;
        declare(s, at);
    }
    let log = at + s.between(300, 700);
    s.log(log, Sort::Plain);
    plain_or_look(s, log + 200);
}

pub fn strict_over_the_limit(s: &mut Script) {
    let at = s.prelude() + 60;
    s.strict_max = s.dice.pick(&[240, 240, 20]);
    s.length = 2400;
    let minutes = s.strict_max + s.between(-1, 2);
    s.strict(at, minutes);
}

pub fn malformed(s: &mut Script) {
    let at = s.prelude() + 60;
    s.length = 2400;
    let long = |count: usize| format!("制限タイプ: flexible\n活動予定内容: {}\n", "長".repeat(count));
    let texts = [
        String::new(),
        "活動予定内容: 絵\n".to_owned(),
        "制限タイプ: loose\n活動予定内容: 絵\n".to_owned(),
        "制限タイプ:\n活動予定内容: 絵\n".to_owned(),
        "制限タイプ: strict\n活動予定内容: 絵\n".to_owned(),
        "制限タイプ: strict\n活動予定内容: 絵\n予定時間: しばらく\n".to_owned(),
        "制限タイプ: strict\n活動予定内容: 絵\n予定時間: 241分\n".to_owned(),
        long(401),
        long(400),
    ];
    for no in 0..s.between(1, 3) {
        let text = s.dice.pick(&texts);
        s.declare(at + no * 200, at + no * 200, text);
    }
    if s.dice.one_in(2) {
        s.checkpoints(at + 100, 2000, 290);
    }
}
