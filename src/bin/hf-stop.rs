//! hf-stop: its arguments are in `cli::stop`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::stop::Args>()
}
