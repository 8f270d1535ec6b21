//! What the benchmarks share: the URLs they are made of, and the clocks they are read from.

pub mod measure;
pub mod stream;

/// What every measured process finds in its environment. Huge pages are left out: on virtual machines the first touch of
/// one can take milliseconds, which then show up in whoever is measured.
pub const ENVIRONMENT: [(&str, &str); 1] = [("MIMALLOC_ALLOW_THP", "0")];
