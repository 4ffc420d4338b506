//! hf-poll: its arguments are in `cli::poll`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::poll::Args>()
}
