//! hf-activity: its arguments are in `cli::activity`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::activity::Args>()
}
