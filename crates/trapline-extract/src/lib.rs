//! From bytes to links and facts: HTML, CSS, `Link` headers, sitemaps, feeds, robots.txt, charsets.
//!
//! Nothing here can fail: whatever the bytes, the answer is what was found in them and what was wrong with them. The
//! supplier of these bytes is hostile, so every one of these functions takes time and memory that are bounded by its input,
//! and by caps where the input could promise more than it holds.
//!
//! What is absent: clocks, sockets, files, threads, recursion over input.

mod charset;
mod css;
mod directives;
mod fault;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod html;
mod limits;
mod link;
mod link_header;
mod mime;
mod page;
mod page_reader;
mod references;
mod resolve;
mod robots;
mod simhash;
mod sitemap;

pub use charset::{Charset, CharsetSource, PRESCAN_BYTES};
pub use css::{CssLink, css_links};
pub use directives::{Directives, PageRobots};
pub use fault::{Fault, FaultKind};
pub use limits::Limits;
pub use link::{Alternate, Link, LinkKind};
pub use link_header::{HeaderLink, header_links};
pub use mime::{Content, MimeType, SNIFF_BYTES, sniff};
pub use page::{Head, Page};
pub use page_reader::PageReader;
pub use robots::{
    Because, BytesError, CRAWL_DELAY_MAX, Decision, ROBOTS_BYTES_MAX, Robots, RobotsFault, RobotsFaultKind,
    RobotsGroup, RuleLine, Rules,
};
pub use simhash::SimHash;
pub use sitemap::{
    ChangeFrequency, Sitemap, SitemapEntry, SitemapFault, SitemapFaultKind, SitemapKind, SitemapLimits,
};

/// The examples of the manual, tried like those of the documentation.
#[cfg(doctest)]
mod manual {
    #[doc = include_str!("../../../docs/manual/extract.md")]
    mod extract {}
    #[doc = include_str!("../../../docs/manual/robots-and-sitemaps.md")]
    mod robots_and_sitemaps {}
}
