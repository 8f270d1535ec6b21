//! What fuzz targets call: each takes any bytes and asserts what must hold for all of them.

pub mod pages;
