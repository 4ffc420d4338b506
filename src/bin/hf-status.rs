//! hf-status: its arguments are in `cli::status`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::status::Args>()
}
