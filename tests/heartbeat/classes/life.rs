//! Lives without deep work: logs and checkpoints, however they are named and whenever they come.

use crate::script::{Script, Sort};
use crate::tree::Deed;

pub fn ordinary_life(s: &mut Script) {
    let from = s.between(0, 200);
    s.length = s.between(2400, 4800);
    s.life(from, s.length - 100);
}

pub fn silence(s: &mut Script) {
    let at = s.prelude();
    s.length = 3600;
    let back = at + s.between(400, 2500);
    match s.dice.below(3) {
        0 => s.checkpoint(back),
        1 => s.log(back, Sort::Plain),
        _ => s.look(back),
    }
}

pub fn a_log_every_beat(s: &mut Script) {
    let (lag, every) = (s.between(0, 20), s.dice.pick(&[60, 60, 300]));
    s.length = 2700;
    let looks = s.between(4, 12);
    for beat in 0..s.length / every {
        let sort = if beat % looks == 0 { Sort::Look } else { Sort::Plain };
        // The id of the last beat, in the time until the next.
        s.log_as(beat * every + lag, beat * every, "", sort);
    }
}

pub fn two_logs_between_looks(s: &mut Script) {
    let mut at = s.prelude();
    s.length = 2700;
    while at < 2400 {
        at += s.between(60, 400);
        let second = at + s.between(1, 50);
        let (first, last) =
            s.dice.pick(&[(Sort::Look, Sort::Plain), (Sort::Plain, Sort::Look), (Sort::Plain, Sort::Plain)]);
        s.log(at, first);
        s.log(second, last);
    }
}

pub fn numbered_logs(s: &mut Script) {
    let at = s.prelude() + 30;
    s.length = 3000;
    s.flexible(at);
    let id = at + s.between(20, 200);
    // As numbers, 10 comes after 2; as text it does not. An emergency counts only after the closing log.
    let rests = s.dice.pick(&[["", "_2", "_10"], ["_01", "_02", "_3"], ["_2", "_10", "_11"], ["_9", "_10", "_11"]]);
    let sorts = s.dice.pick(&[
        [Sort::Urgent, Sort::Plain, Sort::Plain],
        [Sort::Urgent, Sort::Plain, Sort::Look],
        [Sort::Plain, Sort::Urgent, Sort::Plain],
        [Sort::Plain, Sort::Look, Sort::Plain],
    ]);
    let count = s.dice.pick(&[2, 2, 3]);
    let logs = if s.dice.one_in(2) {
        vec![("_2", Sort::Urgent), ("_10", Sort::Plain)]
    } else {
        rests.into_iter().zip(sorts).take(count).collect()
    };
    for (rest, sort) in logs {
        s.log_as(id + 5, id, rest, sort);
    }
    if s.dice.one_in(2) {
        s.look(id + 900);
    }
    s.checkpoints(id + 200, 2400, 250);
}

pub fn titled_logs(s: &mut Script) {
    let mut at = s.between(5, 60);
    s.length = 2400;
    s.log_as(at, at, "_the_beginning", Sort::Look);
    let titles = ["_title", "_ログイン画面", "_a-b", "_01", "_x_2"];
    while at < 2000 {
        at += s.between(100, 450);
        let (title, sort) = (s.dice.pick(&titles), s.dice.pick(&[Sort::Plain, Sort::Plain, Sort::Look]));
        s.log_as(at, at, title, sort);
    }
}

pub fn late_log(s: &mut Script) {
    let at = s.prelude();
    s.length = 3000;
    if s.dice.one_in(2) {
        s.flexible(at + 20);
    }
    let id = at + s.between(10, 300);
    let newer = id + s.between(5, 300);
    let sorts = [Sort::Plain, Sort::Look];
    let (first, second) = (s.dice.pick(&sorts), s.dice.pick(&sorts));
    s.log(newer, first);
    let written = newer + s.between(1, 900);
    s.log_as(written, id, "", second);
    if s.dice.one_in(2) {
        s.log(written + 200, Sort::Plain);
    }
    s.checkpoints(newer + 100, 2500, 280);
}

pub fn late_checkpoint(s: &mut Script) {
    let at = s.prelude();
    s.length = 2400;
    let id = at + s.between(50, 600);
    let written = id + s.between(60, 900);
    s.checkpoint_as(written, id);
    if s.dice.one_in(2) {
        s.checkpoint(id + 30);
    }
}

pub fn late_declaration(s: &mut Script) {
    let at = s.prelude();
    s.length = 3000;
    let id = at + s.between(10, 200);
    if s.dice.one_in(2) {
        let log = id + s.between(1, 100);
        s.log(log, Sort::Plain);
    }
    let written = id + s.between(30, 500);
    if s.dice.one_in(2) {
        s.flexible_as(written, id);
    } else {
        s.strict_as(written, id, 20);
    }
    let (one, two) = (written + s.between(50, 400), written + s.between(450, 700));
    s.log(one, Sort::Plain);
    let sort = s.dice.pick(&[Sort::Plain, Sort::Look]);
    s.log(two, sort);
}

pub fn only_checkpoints(s: &mut Script) {
    let (from, every) = (s.between(1, 200), s.between(100, 500));
    s.length = 3000;
    s.checkpoints(from, 2600, every);
}

pub fn late_agent(s: &mut Script) {
    let at = s.between(700, 1500);
    s.length = 3600;
    match s.dice.below(4) {
        0 => s.log(at, Sort::Plain),
        1 => s.checkpoint(at),
        2 => s.flexible(at),
        _ => {
            s.log(at - 20, Sort::Plain);
            s.look(at);
        }
    }
    if s.dice.one_in(2) {
        s.checkpoints(at + 100, 3400, 300);
    }
}

/// Files that were there before the first look.
pub fn adopted_tree(s: &mut Script) {
    s.length = 2700;
    let looked = s.between(100, 3000);
    for _ in 0..s.between(3, 25) {
        let old = looked + s.between(1, 9000);
        match s.dice.below(5) {
            0 => s.checkpoint_as(0, -old),
            1 => {
                s.flexible_as(0, -old);
                s.rename(0, -old, ".completed");
            }
            2 => s.log_as(0, -old, "", Sort::Look),
            _ => s.log_as(0, -old, "", Sort::Plain),
        }
    }
    if !s.dice.one_in(4) {
        s.log_as(0, -looked, "", Sort::Look);
    }
    for _ in 0..s.between(0, 3) {
        let newer = s.between(1, looked - 1);
        s.log_as(0, -newer, "", Sort::Plain);
    }
    match s.dice.below(3) {
        0 => s.strict_as(0, -30, 15),
        1 => s.checkpoint_as(0, -30),
        _ => {}
    }
    if s.dice.one_in(2) {
        s.life(400, 2400);
    }
    if s.dice.one_in(2) {
        s.deed(300, Deed::Forget);
    }
}

pub fn adopted_long_history(s: &mut Script) {
    s.length = 1500;
    let count = s.dice.pick(&[199, 200, 201, 260]);
    for no in 0..count {
        s.log_as(0, -10 - no * 60, "", Sort::Plain);
    }
    if s.dice.one_in(2) {
        s.log_as(0, -10 - 60 * (count + 5), "", Sort::Look);
    }
    let at = s.between(100, 400);
    s.look(at);
    if s.dice.one_in(2) {
        s.deed(at + 200, Deed::Forget);
    }
}

pub fn subthemes(s: &mut Script) {
    let mut at = s.prelude();
    s.length = 3000;
    while at < 2400 {
        at += s.between(60, 500);
        s.theme = s
            .dice
            .pick(&["artifacts/brand", "artifacts/brand/subthemes/logo", "artifacts/音楽/subthemes/曲"])
            .to_owned();
        match s.dice.below(4) {
            0 => s.look(at),
            1 => s.flexible(at),
            _ => s.log(at, Sort::Plain),
        }
    }
}

/// Files that are none of the watchdog's business.
pub fn foreign_files(s: &mut Script) {
    let at = s.prelude();
    s.length = 2400;
    let mut when = at;
    while when < 2200 {
        when += s.between(30, 300);
        let id = s.id(when);
        let path = s.dice.pick(&[
            "artifacts/theme_histories/ID.md",
            "artifacts/README.md",
            "artifacts/brand/notes.md",
            "artifacts/brand/histories/readme.md",
            "artifacts/brand/histories/.ID.md.swp",
            "artifacts/brand/images/ID.md",
            "stats/checkpoints/notes.txt",
            "stats/deep_work/README.txt",
            "stats/other/ID.txt",
            "logs/heartbeat_ID.log",
        ]);
        let text = if s.dice.one_in(2) { "内省\n" } else { "制限タイプ: flexible\n活動予定内容: x\n" };
        // A declaration without an id in its name may be named as a mistake.
        let text = if path.starts_with("stats/deep_work/") { "how to write a declaration\n" } else { text };
        s.write(when, path.replace("ID", &id), text);
    }
    if s.dice.one_in(2) {
        let back = s.between(1000, 2000);
        s.look(back);
    }
}

pub fn caches_deleted(s: &mut Script) {
    let at = s.prelude();
    s.length = 3000;
    match s.dice.below(4) {
        0 => s.life(at + 50, 2000),
        1 => s.strict(at + 50, 15),
        2 => {
            s.flexible(at + 50);
            s.log(at + 200, Sort::Plain);
            s.log(at + 400, Sort::Plain);
        }
        _ => s.checkpoints(at + 60, 1500, 250),
    }
    for _ in 0..4 {
        let when = s.between(at, 2900);
        s.deed(when, Deed::Forget);
    }
}
