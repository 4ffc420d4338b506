//! What cannot be read is a finding, and hides nothing.

use crate::script::{Script, Sort};
use crate::tree::Deed;

/// An agent with something in its tree that cannot be read, for some time or to the end.
fn with(s: &mut Script, path: &str, make: impl Fn(String) -> Deed) {
    let at = s.prelude();
    s.length = 2700;
    let from = s.between(0, 900);
    let path = path.replace("ID", &s.id(from));
    s.deed(from, make(path.clone()));
    if s.dice.one_in(2) {
        let until = from + s.between(100, 1000);
        s.deed(until, Deed::Remove(path));
    }
    match s.dice.below(3) {
        0 => s.life(at + 50, 2500),
        1 => s.strict(at + 100, 15),
        _ => s.checkpoints(at + 50, 1500, 280),
    }
}

/// A link to a file or folder with a fresh introspection in it, or to nothing.
fn link(s: &mut Script, target: &'static str) -> impl Fn(String) -> Deed + use<> {
    for no in 1..6 {
        let (when, id) = (0, s.id(no * 250));
        s.write(when, format!("../elsewhere/theme/histories/{id}.md"), "内省\n");
    }
    s.write(0, "../elsewhere/file", "制限タイプ: strict\n活動予定内容: 内省\n予定時間: 60分\n");
    let target = if s.dice.one_in(4) { "nothing" } else { target };
    move |path| Deed::Link { path, target: target.to_owned() }
}

pub fn linked_theme(s: &mut Script) {
    let path = s.dice.pick(&["artifacts/other", "artifacts/brand/subthemes/other"]);
    let make = link(s, "theme");
    with(s, path, make);
}

pub fn linked_log(s: &mut Script) {
    let (path, target) = s.dice.pick(&[
        ("artifacts/brand/histories/ID_7.md", "file"),
        ("artifacts/other/histories", "theme/histories"),
        ("artifacts/other/subthemes", "."),
    ]);
    let make = link(s, target);
    with(s, path, make);
}

pub fn linked_checkpoint(s: &mut Script) {
    let make = link(s, "file");
    with(s, "stats/checkpoints/ID.txt", make);
}

pub fn linked_declaration(s: &mut Script) {
    let make = link(s, "file");
    with(s, "stats/deep_work/ID.txt", make);
}

pub fn folder_for_a_file(s: &mut Script) {
    let path = s.dice.pick(&[
        "artifacts/brand/histories/ID_7.md",
        "stats/checkpoints/ID.txt",
        "stats/deep_work/ID.txt",
        "artifacts/brand/subthemes/x/histories/ID.md",
    ]);
    with(s, path, Deed::Folder);
}

pub fn impossible_id(s: &mut Script) {
    let id = s.dice.pick(&[
        "20261301120000",
        "20260230120000",
        "20260131240000",
        "20260131126000",
        "20260131120060",
        "99999999999999",
    ]);
    let path = s.dice.pick(&["artifacts/brand/histories/X.md", "stats/checkpoints/X.txt", "stats/deep_work/X.txt"]);
    let text = s.text(Sort::Look) + "制限タイプ: flexible\n活動予定内容: x\n";
    with(s, &path.replace('X', id), |path| Deed::Write { path, text: text.clone() });
}
