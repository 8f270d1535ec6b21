//! See `trapline_extract::fuzz::link_header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trapline_extract::fuzz::link_header(bytes));
