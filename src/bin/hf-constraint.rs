//! hf-constraint: its arguments are in `cli::constraint`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::constraint::Args>()
}
