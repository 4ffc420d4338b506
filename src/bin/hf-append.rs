//! hf-append: its arguments are in `cli::append`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::append::Args>()
}
