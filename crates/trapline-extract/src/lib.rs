//! From bytes to links and facts: HTML, CSS, `Link` headers, sitemaps, feeds, robots.txt, charsets.
//!
//! Nothing here can fail: whatever the bytes, the answer is what was found in them and what was wrong with them. The
//! supplier of these bytes is hostile, so every one of these functions takes time and memory that are bounded by its input,
//! and by caps where the input could promise more than it holds.
//!
//! What is absent: clocks, sockets, files, threads, recursion over input.

mod robots;
mod sitemap;


pub use robots::{
    Because, BytesError, CRAWL_DELAY_MAX, Decision, ROBOTS_BYTES_MAX, Robots, RobotsFault, RobotsFaultKind,
    RobotsGroup, RuleLine, Rules,
};
pub use sitemap::{
    ChangeFrequency, Sitemap, SitemapEntry, SitemapFault, SitemapFaultKind, SitemapKind, SitemapLimits,
};
