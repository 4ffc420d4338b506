//! hf-backup: its arguments are in `cli::backup`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::backup::Args>()
}
