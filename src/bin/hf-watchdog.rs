//! hf-watchdog: its arguments are in `cli::watchdog`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::watchdog::Args>()
}
