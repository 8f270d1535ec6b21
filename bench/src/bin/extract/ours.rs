//! Our reader of pages, whole: type, encoding, links with their URLs resolved, facts, the SimHash of the text, the digest.

use std::sync::LazyLock;

use trapline_core::parse_url;
use trapline_extract::{Head, Limits, Page, PageReader};
use url::Url;

static BASE: LazyLock<Url> =
    LazyLock::new(|| parse_url("https://docs.example.org/manual/part/page.html", None).expect("it is a URL"));

const HEAD: Head<'_> = Head {
    content_type: Some("text/html"),
    content_language: None,
    refresh: None,
    x_robots_tag: Vec::new(),
    link: Vec::new(),
};

pub(crate) fn page(bytes: &[u8]) -> usize {
    found(&Page::read(&BASE, &HEAD, &Limits::default(), bytes))
}

/// In pieces as large as a socket gives.
pub(crate) fn pieces(bytes: &[u8]) -> usize {
    let mut reader = PageReader::new(&BASE, &HEAD, &Limits::default());
    bytes.chunks(16 << 10).for_each(|piece| reader.feed(piece));
    found(&reader.finish())
}

fn found(page: &Page) -> usize {
    std::hint::black_box((page.simhash, page.digest, &page.title));
    page.links.len()
}
