//! hf-pause: its arguments are in `cli::pause`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::pause::Args>()
}
