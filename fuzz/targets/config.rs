//! The settings file: parsed or refused in one line, and every setting has a value of its type.

use hiveforge::policy::settings::{Fallback, Setting};
use hiveforge::vault::config::parse;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match parse(text) {
        Err(error) => assert_eq!(error.message.lines().count(), 1, "{:?}", error.message),
        Ok((config, _)) => {
            for config in [config.for_agent("a"), config] {
                for setting in Setting::ALL {
                    match setting.fallback() {
                        Fallback::Count(_) => assert!(config.count(*setting) > 0, "{setting}"),
                        Fallback::CountOrZero(_) | Fallback::PartOf(..) => drop(config.count(*setting)),
                        Fallback::NoLimit => assert_ne!(config.limit(*setting), Some(0), "{setting}"),
                        Fallback::Flag(_) => drop(config.flag(*setting)),
                        Fallback::Text(_) => drop(config.text(*setting)),
                        Fallback::Choice(names) => assert!(names.contains(&config.text(*setting).as_str())),
                        Fallback::Texts(_) => drop(config.texts(*setting)),
                        Fallback::SomeOf(names) => {
                            assert!(config.texts(*setting).iter().all(|name| names.contains(&name.as_str())));
                        }
                        Fallback::Counts(_) => drop(config.counts(*setting)),
                    }
                }
            }
        }
    }
}
