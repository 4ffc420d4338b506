//! hf-verify: its arguments are in `cli::verify`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::verify::Args>()
}
