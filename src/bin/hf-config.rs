//! hf-config: its arguments are in `cli::config`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::config::Args>()
}
