//! hf-branch: its arguments are in `cli::branch`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::branch::Args>()
}
