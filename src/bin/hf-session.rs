//! hf-session: its arguments are in `cli::session`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::session::Args>()
}
