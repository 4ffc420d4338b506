//! hf-project: its arguments are in `cli::project`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::project::Args>()
}
