//! libFuzzer on [`nntrace_fuzz::recording`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nntrace_fuzz::recording::check(data));
