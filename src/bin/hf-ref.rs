//! hf-ref: its arguments are in `cli::reference`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::reference::Args>()
}
