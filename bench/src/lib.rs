//! What the benchmarks share: the URLs they are made of, and the clocks they are read from.

pub mod measure;
pub mod stream;
