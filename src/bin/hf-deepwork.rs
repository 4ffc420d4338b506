//! hf-deepwork: its arguments are in `cli::deepwork`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::deepwork::Args>()
}
