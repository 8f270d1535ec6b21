//! See `trapline_extract::fuzz::mime`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trapline_extract::fuzz::mime(bytes));
