//! hf-log: its arguments are in `cli::log`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::log::Args>()
}
