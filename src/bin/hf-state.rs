//! hf-state: its arguments are in `cli::state`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::state::Args>()
}
