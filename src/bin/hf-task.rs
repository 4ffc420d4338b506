//! hf-task: its arguments are in `cli::task`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::task::Args>()
}
