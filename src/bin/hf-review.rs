//! hf-review: its arguments are in `cli::review`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::review::Args>()
}
