//! hf-require: its arguments are in `cli::require`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::require::Args>()
}
