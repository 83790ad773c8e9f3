//! libFuzzer on [`nntrace_fuzz::accounting`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nntrace_fuzz::accounting::check(data));
