//! What was found in a response: its links, what it says of itself, and what was wrong with it.

use url::Url;

use crate::charset::Charset;
use crate::directives::PageRobots;
use crate::fault::Fault;
use crate::limits::Limits;
use crate::link::{Alternate, Link};
use crate::mime::Content;
use crate::page_reader::PageReader;
use crate::simhash::SimHash;

/// The headers of a response that say something about its content. All of them may be missing.
#[derive(Clone, Debug, Default)]
pub struct Head<'h> {
    /// `Content-Type`.
    pub content_type: Option<&'h str>,
    /// `Content-Language`.
    pub content_language: Option<&'h str>,
    /// `Refresh`.
    pub refresh: Option<&'h str>,
    /// Each `X-Robots-Tag`.
    pub x_robots_tag: Vec<&'h str>,
    /// Each `Link`.
    pub link: Vec<&'h str>,
}

/// A page that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// What its links were resolved against: its address, or its first `base`.
    pub base: Url,
    /// Its media type without parameters, as its bytes say if the header is missing or lies.
    pub mime: String,
    /// What it was read as.
    pub content: Content,
    /// The encoding of its text.
    pub charset: Charset,
    /// Its links in order, those of headers first. Each as often as it is there.
    pub links: Vec<Link>,
    /// The first title, space collapsed.
    pub title: Option<String>,
    /// The first description, space collapsed.
    pub description: Option<String>,
    /// The language it says it is in: of its root element, or of a `meta`, or of the header.
    pub language: Option<String>,
    /// Where it says that it really lives: the first `canonical`, of headers first.
    pub canonical: Option<String>,
    /// What it asks of robots.
    pub robots: PageRobots,
    /// OpenGraph properties and their values, in order.
    pub open_graph: Vec<(String, String)>,
    /// Blocks of JSON-LD as they stand there, unparsed.
    pub json_ld: Vec<String>,
    /// Its other languages.
    pub alternates: Vec<Alternate>,
    /// Of its visible text. None if it has none.
    pub simhash: Option<SimHash>,
    /// How many bytes of text went into the SimHash, as UTF-8.
    pub text_bytes: u64,
    /// BLAKE3 of its bytes.
    pub digest: [u8; 32],
    /// How many bytes it has.
    pub body_bytes: u64,
    /// What was wrong or left out, each kind once.
    pub faults: Vec<Fault>,
}

impl Page {
    /// Reads a whole page. It cannot fail.
    ///
    /// ```
    /// use trapline_core::parse_url;
    /// use trapline_extract::{Head, Limits, Page};
    ///
    /// let url = parse_url("https://example.com/a/", None)?;
    /// let page = Page::read(&url, &Head::default(), &Limits::default(), b"<title>Hi</title><a href=b>b</a>");
    /// assert_eq!(page.title.as_deref(), Some("Hi"));
    /// assert_eq!(page.links[0].url, "https://example.com/a/b");
    /// # Ok::<(), url::ParseError>(())
    /// ```
    pub fn read(url: &Url, head: &Head<'_>, limits: &Limits, bytes: &[u8]) -> Self {
        let mut reader = PageReader::new(url, head, limits);
        reader.feed(bytes);
        reader.finish()
    }
}
