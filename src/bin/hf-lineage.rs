//! hf-lineage: its arguments are in `cli::lineage`.

fn main() -> std::process::ExitCode {
    hiveforge::cli::main::<hiveforge::cli::lineage::Args>()
}
