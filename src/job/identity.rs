//! Who the main process of a run is: boot, pid and start time together, which no other process
//! ever has. Its session and group tell what belongs to it.

use std::fs;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::base::{Error, Result};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// One process, in one boot of one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub run_id: String,
    pub boot_id: String,
    pub pid: i32,
    /// Clock ticks since the boot.
    pub start_ticks: u64,
    pub group: i32,
    pub session: i32,
    /// The process that supervises it.
    pub supervisor: i32,
}

impl Identity {
    /// The identity of a process that is there.
    pub fn of_process(pid: Pid, run_id: &str) -> Result<Identity> {
        let pid = pid.as_raw_nonzero().get();
        let stat = Stat::read(pid).ok_or_else(|| Error::system("cannot look at a new process", "it is gone"))?;
        Ok(Identity {
            run_id: run_id.to_owned(),
            boot_id: boot_id()?,
            pid,
            start_ticks: stat.start_ticks,
            group: stat.group,
            session: stat.session,
            supervisor: rustix::process::getpid().as_raw_nonzero().get(),
        })
    }

    /// Whether it was of this boot.
    pub fn is_of_this_boot(&self) -> Result<bool> {
        Ok(self.boot_id == boot_id()?)
    }

    /// Whether this very process still runs. One that only waits to be reaped does not.
    pub fn lives(&self) -> Result<bool> {
        let runs = Stat::read(self.pid).is_some_and(|stat| stat.start_ticks == self.start_ticks && !stat.is_dead());
        Ok(runs && self.is_of_this_boot()?)
    }
}

/// Changes with every start of the machine.
pub fn boot_id() -> Result<String> {
    let text = fs::read_to_string(BOOT_ID).map_err(|e| Error::system(format!("cannot read {BOOT_ID}"), e))?;
    Ok(text.trim().to_owned())
}

/// What the kernel says of a process.
#[derive(Clone, Copy, Debug)]
pub struct Stat {
    state: char,
    pub group: i32,
    pub session: i32,
    pub start_ticks: u64,
}

impl Stat {
    /// `None` if there is no such process.
    pub fn read(pid: i32) -> Option<Stat> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The second field is the program's name in brackets, whatever it holds: count from behind it.
    fn parse(line: &str) -> Option<Stat> {
        let fields: Vec<&str> = line[line.rfind(')')? + 1..].split_ascii_whitespace().collect();
        Some(Stat {
            state: fields.first()?.chars().next()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }

    /// Dead, waiting to be reaped.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let line = "77 (a) R 1 2) S 1 70 60 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.group, stat.session, stat.start_ticks, stat.is_dead()), (70, 60, 12345, false));
        assert!(Stat::parse("").is_none());
    }

    #[test]
    fn an_identity_is_of_one_process_in_one_boot() {
        let me = Identity::of_process(rustix::process::getpid(), "r1").unwrap();
        assert!(me.lives().unwrap());
        assert!(!Identity { start_ticks: me.start_ticks + 1, ..me.clone() }.lives().unwrap());
        assert!(!Identity { boot_id: "another".to_owned(), ..me }.lives().unwrap());
    }
}
