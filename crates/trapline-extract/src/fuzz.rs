//! What must hold for any bytes at all: one function a target, which panics where it does not.
//!
//! For `fuzz/` with libFuzzer, for hours, and for the tests, for seconds. Nothing else should turn this feature on.

mod pages;
mod robots_and_sitemaps;

pub use pages::{charset, css, html, link_header, mime};
pub use robots_and_sitemaps::{robots, robots_kept, robots_match, sitemap};

/// A target and its name, which is also that of its folder of examples.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: &[Target] = &[
    ("charset", charset),
    ("css", css),
    ("html", html),
    ("link_header", link_header),
    ("mime", mime),
    ("robots", robots),
    ("robots_kept", robots_kept),
    ("robots_match", robots_match),
    ("sitemap", sitemap),
];
