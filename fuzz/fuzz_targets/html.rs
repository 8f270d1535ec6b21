//! See `trapline_extract::fuzz::html`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trapline_extract::fuzz::html(bytes));
