//! hf-checkpoint: its arguments are in `cli::checkpoint`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::checkpoint::Args>()
}
