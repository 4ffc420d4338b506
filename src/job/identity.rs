//! The identity of the main process of a run: boot, pid and start time together, which no other process ever shares. Its
//! session and group tell which processes belong to it.

use std::fs;
use std::path::PathBuf;

use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use super::cgroup::RunGroup;
use crate::base::{Error, Result};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// One process, in one boot of one machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub run_id: String,
    pub boot_id: String,
    pub pid: i32,
    /// Its start, in clock ticks since boot.
    pub start_ticks: u64,
    pub group: i32,
    pub session: i32,
    /// The pid of its supervisor.
    pub supervisor: i32,
    /// The control group of its run, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_group: Option<PathBuf>,
}

impl Identity {
    /// The identity of an existing process.
    pub fn of_process(pid: Pid, run_id: &str, group: Option<&RunGroup>) -> Result<Identity> {
        let pid = pid.as_raw_nonzero().get();
        let stat = Stat::read(pid).ok_or_else(|| Error::system("cannot identify a new process", "it is gone"))?;
        Ok(Identity {
            run_id: run_id.to_owned(),
            boot_id: boot_id()?,
            pid,
            start_ticks: stat.start_ticks,
            group: stat.group,
            session: stat.session,
            supervisor: rustix::process::getpid().as_raw_nonzero().get(),
            control_group: group.map(|group| group.path().to_owned()),
        })
    }

    /// Whether the process was started in this boot.
    pub fn is_of_this_boot(&self) -> Result<bool> {
        Ok(self.boot_id == boot_id()?)
    }

    /// The control groups of runs of its job, as far as they exist.
    pub fn run_groups(&self, run_ids: &[String]) -> Vec<RunGroup> {
        let own = self.control_group.iter();
        own.flat_map(|own| run_ids.iter().filter_map(|run_id| RunGroup::beside(own, run_id))).collect()
    }

    /// Whether this very process is still running. A zombie is not.
    pub fn lives(&self) -> Result<bool> {
        let runs = Stat::read(self.pid).is_some_and(|stat| stat.start_ticks == self.start_ticks && !stat.is_dead());
        Ok(runs && self.is_of_this_boot()?)
    }
}

/// The id of this boot of the machine.
pub fn boot_id() -> Result<String> {
    let text = fs::read_to_string(BOOT_ID).map_err(|e| Error::system(format!("cannot read {BOOT_ID}"), e))?;
    Ok(text.trim().to_owned())
}

/// What the kernel reports about a process.
#[derive(Clone, Debug)]
pub struct Stat {
    /// The name of its program, cut by the kernel.
    pub name: String,
    state: char,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    pub start_ticks: u64,
}

impl Stat {
    /// `None` if there is no such process.
    pub fn read(pid: i32) -> Option<Stat> {
        // The name may have any bytes.
        Self::parse(&String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat")).ok()?))
    }

    /// The second field is the program's name in parentheses, which may contain anything, so fields are counted after it.
    fn parse(line: &str) -> Option<Stat> {
        let end = line.rfind(')')?;
        let fields: Vec<&str> = line[end + 1..].split_ascii_whitespace().collect();
        Some(Stat {
            name: line.get(line.find('(')? + 1..end)?.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }

    /// Whether the process is dead, at most a zombie.
    pub fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = "77 (a) R 1 2) S 1 70 60 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.group, stat.session, stat.start_ticks, stat.is_dead()), (70, 60, 12345, false));
        assert_eq!((stat.name.as_str(), stat.parent), ("a) R 1 2", 1));
        assert!(Stat::parse("").is_none());
    }

    #[test]
    fn an_identity_is_of_one_process_in_one_boot() {
        let me = Identity::of_process(rustix::process::getpid(), "r1", None).unwrap();
        assert!(me.lives().unwrap());
        assert!(!Identity { start_ticks: me.start_ticks + 1, ..me.clone() }.lives().unwrap());
        assert!(!Identity { boot_id: "another".to_owned(), ..me }.lives().unwrap());
    }
}
