//! hf: every command in one binary; it is in `cli::hf`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::hf::main()
}
