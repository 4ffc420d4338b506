#![no_main]

#[path = "../targets/declaration.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
