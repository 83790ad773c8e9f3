//! libFuzzer on [`nntrace_fuzz::replay`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nntrace_fuzz::replay::check(data));
