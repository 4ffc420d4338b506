//! A progress bar on standard error, where a person is looking at it; nothing anywhere else.

use std::io::{self, IsTerminal, Write};

/// Cells of the bar.
const WIDTH: u64 = 40;

#[derive(Debug)]
pub struct ProgressBar {
    what: &'static str,
    shown: bool,
    /// The last state that was drawn, so that nothing is drawn twice.
    cells: Option<u64>,
}

impl ProgressBar {
    pub fn new(what: &'static str) -> Self {
        ProgressBar { what, shown: io::stderr().is_terminal(), cells: None }
    }

    pub fn show(&mut self, done: u64, total: u64) {
        let cells = (u128::from(done) * u128::from(WIDTH) / u128::from(total.max(1))) as u64;
        if self.shown && self.cells != Some(cells) {
            self.cells = Some(cells);
            let full = "#".repeat(cells as usize);
            // Drawing is a courtesy: a terminal that is gone does not matter.
            let _ = write!(io::stderr(), "\r{} [{full:<1$}]", self.what, WIDTH as usize);
        }
    }

    /// Takes the bar away before the reply is written.
    pub fn clear(&mut self) {
        if self.cells.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
