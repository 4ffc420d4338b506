//! A declaration of deep work as a file, with our own headers or those of an `ai-works/` tree.

use crate::policy::liveness::DeepWorkMode;
use crate::vault::AgentDir;

/// The content of a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    pub mode: DeepWorkMode,
    pub activity: String,
    pub minutes: Option<u64>,
}

/// The wording of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wording {
    /// Our own.
    Own,
    /// That of the tools of a works tree.
    Works,
}

impl Wording {
    /// The wording of the files in a directory.
    pub fn of_dir(dir: &AgentDir) -> Wording {
        if dir.is_works() { Wording::Works } else { Wording::Own }
    }
}

/// The headers, by `Wording`.
const MODE: [&str; 2] = ["type", "制限タイプ"];
const ACTIVITY: [&str; 2] = ["activity", "活動予定内容"];
const MINUTES: [&str; 2] = ["minutes", "予定時間"];
/// The activity of a declaration that does not state it.
const UNSTATED: &str = "not stated";

impl Declaration {
    /// The text of the file.
    pub fn write(&self, wording: Wording) -> String {
        let name = |names: [&'static str; 2]| names[wording as usize];
        let mut text = format!("{}: {}\n{}: {}\n", name(MODE), self.mode, name(ACTIVITY), self.activity);
        if let Some(minutes) = self.minutes {
            let unit = if wording == Wording::Works { "分" } else { "" };
            text += &format!("{}: {minutes}{unit}\n", name(MINUTES));
        }
        text
    }

    /// Parses either form.
    pub fn read(text: &str) -> Result<Declaration, String> {
        // As some editors write it.
        let text = text.trim_start_matches('\u{feff}');
        let lines = || text.lines().map(|line| line.trim().trim_start_matches(['-', '*', '#', ' ']));
        let find = |names: [&str; 2]| {
            lines().find_map(|line| {
                let (name, value) = line.split_once([':', '：'])?;
                names.contains(&name.trim()).then(|| value.trim().to_owned()).filter(|value| !value.is_empty())
            })
        };
        let is_header = |line: &str| [MODE, ACTIVITY, MINUTES].concat().iter().any(|name| line.starts_with(name));
        let first_words = || lines().find(|line| !line.is_empty() && !is_header(line)).map(str::to_owned);
        let mode = find(MODE).ok_or("missing type")?;
        let mode = DeepWorkMode::parse(&mode.to_ascii_lowercase()).ok_or("unknown type; one of flexible, strict")?;
        let activity = find(ACTIVITY).or_else(first_words).unwrap_or_else(|| UNSTATED.to_owned());
        let minutes = match find(MINUTES) {
            None => None,
            Some(text) => {
                let text: String = text.chars().map(narrow_digit).collect();
                let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
                let unit = text[digits.len()..].trim();
                let number = digits.parse::<u64>().ok().filter(|n| *n > 0);
                let minutes = match unit {
                    "" | "分" | "分間" | "min" | "minutes" => number,
                    "時間" | "h" | "hours" => number.and_then(|hours| hours.checked_mul(60)),
                    _ => None,
                };
                Some(minutes.ok_or("invalid minutes; must be a number of minutes or hours")?)
            }
        };
        match (mode, minutes) {
            (DeepWorkMode::Strict, None) => Err("missing minutes; required for strict".to_owned()),
            (DeepWorkMode::Flexible, _) => Ok(Declaration { mode, activity, minutes: None }),
            (DeepWorkMode::Strict, minutes) => Ok(Declaration { mode, activity, minutes }),
        }
    }
}

/// A digit that is typed in full width, as a plain one.
fn narrow_digit(c: char) -> char {
    let value = u32::from(c).checked_sub(u32::from('０')).filter(|value| *value < 10);
    value.and_then(|value| char::from_digit(value, 10)).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_reads_back_in_either_form() {
        for mode in [DeepWorkMode::Flexible, DeepWorkMode::Strict] {
            let minutes = (mode == DeepWorkMode::Strict).then_some(45);
            let declared = Declaration { mode, activity: "大規模な修正: part 2".to_owned(), minutes };
            for wording in [Wording::Own, Wording::Works] {
                assert_eq!(Declaration::read(&declared.write(wording)), Ok(declared.clone()));
            }
        }
    }

    #[test]
    fn what_people_write_is_read_and_nonsense_is_not() {
        let read = Declaration::read("# 深い作業\n- 制限タイプ： strict\n- 活動予定内容： 調査\n- 予定時間： 2時間\n")
            .unwrap();
        assert_eq!((read.mode, read.minutes), (DeepWorkMode::Strict, Some(120)));
        for bad in ["", "type: soft\nactivity: x\n", "type: strict\nactivity: x\n", "\0\0\0"] {
            assert!(Declaration::read(bad).is_err(), "{bad:?}");
        }
        let activity = |text: &str| Declaration::read(text).expect("a declaration").activity;
        assert_eq!(activity("type: flexible\n"), UNSTATED);
        let typed = Declaration::read("\u{feff}制限タイプ：strict\r\n活動予定内容：調査\r\n予定時間：２時間\r\n");
        assert_eq!(typed.map(|declared| declared.minutes), Ok(Some(120)));
        assert_eq!(activity("制限タイプ: flexible\n原因の調査\n"), "原因の調査");
        assert!(Declaration::read("type: strict\nactivity: x\nminutes: soon\n").is_err());
    }
}
