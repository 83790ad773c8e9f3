//! libFuzzer on [`nntrace_fuzz::lane`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nntrace_fuzz::lane::check(data));
