//! See `trapline_extract::fuzz::robots_kept`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trapline_extract::fuzz::robots_kept(bytes));
