//! libFuzzer on [`nntrace_fuzz::perfetto`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| nntrace_fuzz::perfetto::check(data));
