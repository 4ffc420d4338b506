//! A progress bar on standard error, if that is a terminal.

use std::io::{self, IsTerminal, Write};

/// Width of the bar in characters.
const WIDTH: u64 = 40;

#[derive(Debug)]
pub struct ProgressBar {
    label: &'static str,
    enabled: bool,
    /// How many cells were drawn last, so that the same bar is not drawn twice.
    cells: Option<u64>,
}

impl ProgressBar {
    pub fn new(label: &'static str) -> Self {
        ProgressBar { label, enabled: io::stderr().is_terminal(), cells: None }
    }

    pub fn show(&mut self, done: u64, total: u64) {
        let cells = (u128::from(done) * u128::from(WIDTH) / u128::from(total.max(1))) as u64;
        if self.enabled && self.cells != Some(cells) {
            self.cells = Some(cells);
            let full = "#".repeat(cells as usize);
            // If the terminal is gone, nobody needs the bar.
            let _ = write!(io::stderr(), "\r{} [{full:<1$}]", self.label, WIDTH as usize);
        }
    }

    /// Removes the bar, before the reply is written.
    pub fn clear(&mut self) {
        if self.cells.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
