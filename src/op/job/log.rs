//! The output of a job: whole, its last lines, or as it is printed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::time::Duration;

use super::log_path;
use super::view::{JobView, job_of};
use crate::base::{Error, Result};
use crate::op::Context;

/// How many bytes are read at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// How often the log of a running job is read.
const CHECK_EVERY: Duration = Duration::from_millis(200);

/// Which part of a job's log to read.
#[derive(Clone, Debug, Default)]
pub struct JobLogRequest {
    /// The job: its task.
    pub reference: String,
    /// Only this many lines from the end.
    pub tail: Option<usize>,
    /// Continue until the job ends.
    pub follow: bool,
}

/// Takes a piece of the log; returns whether to continue.
pub type LogSink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<ControlFlow<()>>;

/// The state of the job after its log was read.
#[derive(Debug)]
pub struct JobLogOutcome {
    pub view: JobView,
}

/// Reads a job's log, piece by piece.
pub fn log(ctx: &Context, request: JobLogRequest, sink: LogSink<'_>) -> Result<JobLogOutcome> {
    let vault = ctx.open()?;
    let signals = ctx.cancel.signals()?;
    let mut file = None;
    loop {
        // Viewed before reading: if the job has ended by then, all of its output is read below.
        let view = job_of(ctx, &vault, &request.reference)?;
        let path = log_path(&view.logref);
        let failed = |e: io::Error| Error::system(format!("cannot read {}", path.display()), e);
        if file.is_none() {
            // A queued job has no log yet.
            file = vault.open_file(&path)?;
            if let (Some(file), Some(lines)) = (&mut file, request.tail) {
                let at = tail_of(file, lines).map_err(failed)?;
                file.seek(SeekFrom::Start(at)).map_err(failed)?;
            }
        }
        let wanted = match &mut file {
            Some(file) => pass_on(file, sink, &failed)?,
            None => ControlFlow::Continue(()),
        };
        if wanted.is_break() || !request.follow || view.is_over() || signals.asked().is_some() {
            return Ok(JobLogOutcome { view });
        }
        signals.pause(CHECK_EVERY)?;
    }
}

/// Passes on everything from the current position to the end of the file.
fn pass_on(file: &mut File, sink: LogSink<'_>, failed: &dyn Fn(io::Error) -> Error) -> Result<ControlFlow<()>> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = file.read(&mut piece).map_err(failed)?;
        if read == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        if sink(&piece[..read])?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
}

/// The position at which the last lines of a file start.
fn tail_of(file: &mut File, lines: usize) -> io::Result<u64> {
    let end = file.seek(SeekFrom::End(0))?;
    if lines == 0 {
        return Ok(end);
    }
    let (mut at, mut found) = (end, 0);
    while at > 0 {
        let length = at.min(PIECE_BYTES as u64);
        at -= length;
        let mut piece = vec![0; length as usize];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut piece)?;
        for n in memchr::memrchr_iter(b'\n', &piece) {
            let line_start = at + n as u64 + 1;
            // The newline at the end of the file does not start another line.
            found += usize::from(line_start != end);
            if found == lines {
                return Ok(line_start);
            }
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn the_last_lines_begin_where_they_should_wherever_the_pieces_end() {
        let long = "x".repeat(PIECE_BYTES);
        for (text, lines, expected) in [
            ("a\nb\nc\n", 0, ""),
            ("a\nb\nc\n", 1, "c\n"),
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 1, "c"),
            ("a\nb\nc", 9, "a\nb\nc"),
            ("", 3, ""),
            ("\n", 1, "\n"),
            (&format!("a\n{long}\nc\n"), 2, &format!("{long}\nc\n")),
        ] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let at = tail_of(&mut file, lines).unwrap() as usize;
            assert!(text[at..] == *expected, "{lines} of {} bytes", text.len());
        }
    }
}
