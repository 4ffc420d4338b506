//! hf-job: its arguments are in `cli::job`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::job::Args>()
}
