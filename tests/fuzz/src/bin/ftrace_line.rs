//! libFuzzer on [`nntrace_fuzz::ftrace_line`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nntrace_fuzz::ftrace_line::check(data));
