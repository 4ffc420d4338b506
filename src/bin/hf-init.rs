//! hf-init: its arguments are in `cli::init`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::init::Args>()
}
