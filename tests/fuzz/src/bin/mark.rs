//! libFuzzer on [`nntrace_fuzz::mark`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nntrace_fuzz::mark::check(data));
