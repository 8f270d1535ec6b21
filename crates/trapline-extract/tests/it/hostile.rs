//! Pages that are made to cost: sizes and depths, in one piece and in many. Time grows with the page and no faster, and what is
//! held in memory stays below what the limits say.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use trapline_core::parse_url;
use trapline_extract::{FaultKind, Head, Limits, Page, PageReader};

#[expect(clippy::disallowed_methods, reason = "tests may look at the clock to see what a page costs")]
fn now() -> Instant {
    Instant::now()
}

fn reader(limits: &Limits) -> PageReader {
    let url = parse_url("https://a.example/b/", None).expect("it is a URL");
    PageReader::new(&url, &Head { content_type: Some("text/html; charset=utf-8"), ..Head::default() }, limits)
}

/// Reads a page in pieces of so many bytes, watching what is held.
#[track_caller]
fn read_in(pieces_bytes: usize, page: &[u8], held_bytes_max: usize) -> Page {
    let limits = Limits { links_max: 1000, ..Limits::default() };
    let mut reader = reader(&limits);
    let start = now();
    for piece in page.chunks(pieces_bytes) {
        reader.feed(piece);
        assert!(reader.held_bytes() <= held_bytes_max, "{} bytes are held", reader.held_bytes());
    }
    let page_read = reader.finish();
    // A second a megabyte, on a slow and busy machine without optimizer; some milliseconds in truth.
    let allowed = Duration::from_secs(2) + Duration::from_secs(1) * (page.len() >> 20) as u32;
    assert!(start.elapsed() < allowed, "{:?} for {} bytes", start.elapsed(), page.len());
    page_read
}

#[track_caller]
fn check(page: &[u8], held_bytes_max: usize) -> Page {
    let whole = read_in(usize::MAX, page, held_bytes_max);
    assert_eq!(read_in(1 << 10, page, held_bytes_max), whole);
    whole
}

fn fault(page: &Page, kind: FaultKind) -> u64 {
    page.faults.iter().find(|fault| fault.kind == kind).map_or(0, |fault| fault.count)
}

#[test]
fn a_million_nested_elements_cost_their_bytes() {
    let page = check(&b"<div>".repeat(1_000_000), 1 << 18);
    assert!(page.faults.is_empty(), "{:?}", page.faults);
    for nested in
        ["<svg>", "<svg><desc>", "<math><mi>", "<template>", "<a href=x>", "<script><!--", "<table><td>"]
    {
        check(&nested.as_bytes().repeat(200_000), 1 << 19);
    }
}

#[test]
fn a_million_links_are_cut_at_the_cap() {
    let page = check(&b"<a href=x/y/z?1>".repeat(1_000_000), 1 << 19);
    assert_eq!(page.links.len(), 1000);
    assert_eq!(fault(&page, FaultKind::LinksLeftOut), 999_000);
}

/// 700 KB of page would be three gigabytes of URLs.
#[test]
fn a_long_base_makes_no_more_of_short_links_than_the_cap() {
    let page = |base_bytes: usize| {
        let base = format!("<base href='/{}/'><base href=/short/>", "x".repeat(base_bytes));
        let page = [base.as_bytes(), &b"<a href=y>".repeat(50_000)[..]].concat();
        let mut reader = reader(&Limits::default());
        reader.feed(&page);
        reader.finish()
    };
    let long = page(60 << 10);
    let bytes: usize = long.links.iter().map(|link| link.url.len()).sum();
    assert!((16 << 20..=32 << 20).contains(&bytes), "{bytes} bytes");
    assert_eq!(fault(&long, FaultKind::LinksLeftOut), 50_000 - long.links.len() as u64);
    // One that is longer than any reference may be does not count, and neither does a later one.
    let too_long = page(70 << 10);
    assert_eq!((too_long.links.len(), fault(&too_long, FaultKind::LongReferences)), (50_000, 1));
    assert_eq!(too_long.links[0].url, "https://a.example/b/y");
}

#[test]
fn a_huge_attribute_is_cut_at_the_cap() {
    let page = [b"<a title='", &b"x".repeat(10 << 20)[..], b"' href=no><a href=yes>"].concat();
    let page = check(&page, 5 << 20);
    assert_eq!(page.links.len(), 1);
    assert_eq!(fault(&page, FaultKind::TagsCut), 1);
    let page = [b"<a href='", &b"x".repeat(10 << 20)[..], b"'><a href=yes>"].concat();
    assert_eq!(check(&page, 5 << 20).links.len(), 1);
    let page = [b"<a ", &b"x ".repeat(500_000)[..], b"href=no><a href=yes>"].concat();
    let page = check(&page, 5 << 20);
    assert_eq!((page.links.len(), fault(&page, FaultKind::AttributesLeftOut)), (1, 499_489));
}

#[test]
fn one_endless_line_is_text() {
    let page = check(&b"word ".repeat(2 << 20), 1 << 18);
    assert_eq!(fault(&page, FaultKind::TextCut), 1);
    check(&b"w".repeat(10 << 20), 1 << 18);
    check(&b"&".repeat(5 << 20), 1 << 18);
    check(&b"&amp".repeat(1 << 20), 1 << 18);
    check(&[b"&#", &b"0".repeat(5 << 20)[..]].concat(), 1 << 18);
    check("é".repeat(2 << 20).as_bytes(), 1 << 18);
}

#[test]
fn what_is_never_closed_ends_with_the_page() {
    for opening in [
        "<a href='",
        "<a href=",
        "<a ",
        "<a",
        "</a ",
        "<!--",
        "<!",
        "<!doctype ",
        "<?",
        "<title>",
        "<textarea>",
        "<script>",
        "<script><!--",
        "<script><!--<script>",
        "<style>",
        "<xmp>",
        "<plaintext>",
        "<svg><![CDATA[",
        "<script type=application/ld+json>",
        "<style>a{b:url(",
        "<style>/*",
        "<p style='x:url(",
    ] {
        for filler in ["x", "-", "<", "&", "</", "<!--", "<script", "]]", "--!", "'", "\\", "url(", "é"] {
            let page =
                [opening.as_bytes(), &filler.as_bytes().repeat((300 << 10) / filler.len())[..]].concat();
            let limits = Limits::default();
            let mut whole = reader(&limits);
            whole.feed(&page);
            let mut pieces = reader(&limits);
            page.chunks(997).for_each(|piece| pieces.feed(piece));
            assert_eq!(pieces.finish(), whole.finish(), "{opening} {filler}");
        }
    }
}

#[test]
fn single_bytes_cost_no_more_than_bytes() {
    let page = [b"<a title='", &b"x".repeat(2 << 20)[..], b"' href=no><a href=yes>"].concat();
    let start = now();
    let mut reader = reader(&Limits::default());
    page.iter().for_each(|byte| reader.feed(std::slice::from_ref(byte)));
    assert_eq!(reader.finish().links.len(), 1);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Bits of pages, of several encodings and of none.
fn page() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"<", b">", b"<a href=", b"<a href='x'>", b"</a>", b"'", b"\"", b"&amp;", b"&#xe9;", b"&ea", b"\r\n", b"\0", b"<meta charset=",
        b"utf-8>", b"shift_jis>", b"utf-16>", b"\xff\xfe", b"\xef\xbb\xbf", b"\xe9", b"\xc3\xa9", b"\x82\xa0", b"\x1b$B", b"<title>",
        b"</title>", b"<script type='application/ld+json'>", b"</script>", b"<style>", b"url(x)", b"@import 'y';", b"</style>", b"<!--", b"-->",
        b"<svg>", b"</svg>", b"<base href='../z/'>", b"<p style='a:url(b)'>", b"words and ", b"m\xc3\xb6re words ", b"<img srcset='a 1x, b'>",
        b"<meta name=robots content=none>", b"<meta http-equiv=refresh content='0;url=r'>", b"%PDF-", b"GIF89a", b"<html lang=de>",
        b"                                                                                                                                ",
    ];
    let piece = prop_oneof![
        20 => prop::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => Just(b"padding ".repeat(200)),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1500,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0), // the same cases each time; another number looks further
        ..ProptestConfig::default()
    })]

    #[test]
    fn where_a_page_is_cut_makes_no_difference(
        bytes in page(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        content_type in prop::sample::select(vec![None, Some("text/html"), Some("text/html;charset=gbk"), Some("text/css"), Some("text/plain")]),
    ) {
        let url = parse_url("https://a.example/b/", None).unwrap();
        let head = Head { content_type, ..Head::default() };
        let limits = Limits { tag_bytes_max: 200, links_max: 10, text_bytes_max: 3000, ..Limits::default() };
        let whole = Page::read(&url, &head, &limits, &bytes);
        let mut cuts = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect::<Vec<_>>();
        cuts.sort_unstable();
        let mut reader = PageReader::new(&url, &head, &limits);
        let mut start = 0;
        for cut in cuts.into_iter().chain([bytes.len()]) {
            reader.feed(&bytes[start..cut]);
            start = cut;
        }
        prop_assert_eq!(reader.finish(), whole);
    }
}
