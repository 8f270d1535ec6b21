//! See `trapline_extract::fuzz::robots_match`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trapline_extract::fuzz::robots_match(bytes));
