//! hf-resume: its arguments are in `cli::resume`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::resume::Args>()
}
