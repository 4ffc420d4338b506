//! hf-decide: its arguments are in `cli::decide`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::decide::Args>()
}
