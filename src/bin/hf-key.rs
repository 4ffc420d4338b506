//! hf-key: its arguments are in `cli::key`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::key::Args>()
}
