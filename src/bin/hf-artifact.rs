//! hf-artifact: its arguments are in `cli::artifact`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::artifact::Args>()
}
