//! The parsers of pages. Each function panics if what it promises does not hold.

use encoding_rs::Encoding;
use trapline_core::parse_url;
use url::Url;

use crate::{Charset, Head, Limits, Page, PageReader, css_links, header_links, sniff};

fn document() -> Url {
    parse_url("https://fuzz.example/a/b.html?c", None).expect("it is a URL")
}

/// Caps that small pages reach too.
fn limits() -> Limits {
    Limits {
        links_max: 20,
        links_bytes_max: 1_000,
        reference_bytes_max: 100,
        tag_bytes_max: 150,
        attributes_max: 8,
        text_bytes_max: 500,
        style_bytes_max: 200,
        fact_bytes_max: 30,
        facts_max: 3,
        json_ld_bytes_max: 50,
    }
}

/// A page: the same in one piece and in two or many, within its limits, with links that are URLs.
pub fn html(bytes: &[u8]) {
    page(bytes, &Head { content_type: Some("text/html"), ..Head::default() }, &limits());
    page(bytes, &Head::default(), &Limits::default());
}

fn page(bytes: &[u8], head: &Head<'_>, limits: &Limits) {
    let url = document();
    let whole = Page::read(&url, head, limits, bytes);
    let sum = bytes.iter().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let mut two = PageReader::new(&url, head, limits);
    let (first, second) = bytes.split_at(sum % (bytes.len() + 1));
    two.feed(first);
    two.feed(second);
    assert_eq!(two.finish(), whole, "in two pieces");
    let mut many = PageReader::new(&url, head, limits);
    bytes.chunks(sum % 7 + 1).for_each(|piece| many.feed(piece));
    assert_eq!(many.finish(), whole, "in many pieces");
    assert!(whole.links.len() <= limits.links_max);
    assert!(whole.links.iter().map(|link| link.url.len()).sum::<usize>() <= limits.links_bytes_max);
    for link in &whole.links {
        let parsed = parse_url(&link.url, None).map(String::from);
        assert!(link.url.starts_with("file:") || parsed.as_ref() == Ok(&link.url), "{link:?} is no URL");
        assert!(link.rel.as_deref() != Some(""), "{link:?}");
    }
    assert!(whole.title.is_none_or(|title| title.len() <= limits.fact_bytes_max && !title.is_empty()));
    assert!(whole.json_ld.len() <= limits.facts_max && whole.open_graph.len() <= limits.facts_max);
    assert!(whole.text_bytes <= limits.text_bytes_max);
    assert_eq!(whole.digest, *blake3::hash(bytes).as_bytes());
}

/// A style sheet: references are neither empty nor longer than the sheet.
pub fn css(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    css_links(&text, |_, reference| {
        assert!(!reference.is_empty() && reference.len() <= 3 * text.len());
        assert!(!reference.starts_with('#'));
    });
    page(bytes, &Head { content_type: Some("text/css"), ..Head::default() }, &limits());
}

/// A `Link` header: what it holds is a part of it.
pub fn link_header(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for link in header_links(&text) {
        assert!(text.contains(&link.reference));
        assert_eq!(link.rel, link.rel.to_ascii_lowercase());
    }
    let head = Head { link: vec![&text], x_robots_tag: vec![&text], refresh: Some(&text), ..Head::default() };
    page(b"", &head, &limits());
}

/// Encodings: there is always one, and the page can be decoded.
pub fn charset(bytes: &[u8]) {
    let label = String::from_utf8_lossy(&bytes[..bytes.len().min(12)]).into_owned();
    for label in [None, Some(&label[..])] {
        let charset = Charset::of_html(label, bytes);
        assert!(Encoding::for_label(charset.name.as_bytes()).is_some(), "{charset:?}");
        assert_ne!(charset.name, "UTF-7");
    }
}

/// Media types: there is always one, and it is one.
pub fn mime(bytes: &[u8]) {
    let declared = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
    for declared in [None, Some(&declared[..]), Some("text/html"), Some("text/plain"), Some("image/png")] {
        let found = sniff(declared, bytes);
        assert!(found.contains('/') && *found == found.to_ascii_lowercase(), "{found}");
    }
}
