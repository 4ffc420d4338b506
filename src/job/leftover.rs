//! What a run left behind when it ended by itself. The run is over and its result is recorded; its processes may go on.
//! Its supervisor stays with them as their parent until the last one has ended, or until everything is stopped.

use std::thread;
use std::time::{Duration, Instant};

use super::clock;
use super::descendants::Process;
use super::signals::Signals;
use super::tree::{RunTree, end_all, reap, unique};
use super::wait::ControlWatch;
use crate::base::Result;

/// How often the flags are checked anyway, because notifications can get lost.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// How often all processes are listed while nothing happens.
const LIST_EVERY: Duration = Duration::from_secs(5);

/// The processes that the runs of a job left behind.
#[derive(Debug, Default)]
pub struct Leftover {
    trees: Vec<RunTree>,
}

impl Leftover {
    /// Remembers the processes of a run that has ended.
    pub fn add(&mut self, tree: Option<RunTree>) {
        self.trees.extend(tree);
    }

    /// The live processes.
    pub fn living(&self) -> Vec<Process> {
        reap();
        unique(self.trees.iter().flat_map(RunTree::living).collect())
    }

    /// Ends them. Those that cannot be ended stay known.
    pub fn end(&self, grace: Duration) {
        end_all(grace, &|| self.living(), &|_| self.kill());
    }

    fn kill(&self) {
        self.trees.iter().for_each(RunTree::kill);
    }

    /// Stays with them until all have ended. They are ended themselves as soon as `halts` says so, or a signal asks this
    /// process to end; one that cannot be ended, such as a process of another user, is not left alone for that.
    pub fn look_after(
        &self,
        grace: Duration,
        signals: &Signals,
        control: &ControlWatch,
        halts: &dyn Fn() -> bool,
    ) -> Result<()> {
        let (mut list_at, mut was_ended) = (None::<Instant>, false);
        loop {
            let now = clock::now();
            // Without children there is nobody below them either.
            let is_alone = reap();
            if is_alone || list_at.is_none_or(|at| now >= at) {
                if self.living().is_empty() {
                    break;
                }
                list_at = clock::after(now, LIST_EVERY).filter(|_| !was_ended);
            }
            match was_ended {
                true => {
                    self.kill();
                    thread::sleep(CHECK_EVERY);
                }
                false if halts() || signals.asked().is_some() => {
                    self.end(grace);
                    (was_ended, list_at) = (true, None);
                }
                false => control.wait(CHECK_EVERY, signals)?,
            }
        }
        self.trees.iter().for_each(RunTree::close);
        Ok(())
    }
}
