//! libFuzzer on [`nntrace_fuzz::lines`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nntrace_fuzz::lines::check(data));
