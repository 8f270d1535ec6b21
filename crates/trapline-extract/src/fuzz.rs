//! What must hold for any bytes at all: one function a target, which panics where it does not.
//!
//! For `fuzz/` with libFuzzer, for hours, and for the tests, for seconds. Nothing else should turn this feature on.

mod robots_and_sitemaps;

pub use robots_and_sitemaps::{robots, robots_kept, robots_match, sitemap};

/// A target and its name, which is also that of its folder of examples.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] =
    &[("robots", robots), ("robots_kept", robots_kept), ("robots_match", robots_match), ("sitemap", sitemap)];
