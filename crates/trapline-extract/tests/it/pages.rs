//! Whole pages: each kind of link and each fact, from bytes and headers to what a crawler is told.

use trapline_core::parse_url;
use trapline_extract::{CharsetSource, Content, FaultKind, Head, Limits, Page, SimHash};

const URL: &str = "https://a.example/b/c.html?d#e";

fn read_with(head: &Head<'_>, limits: &Limits, bytes: impl AsRef<[u8]>) -> Page {
    Page::read(&parse_url(URL, None).expect("it is a URL"), head, limits, bytes.as_ref())
}

fn read(html: impl AsRef<[u8]>) -> Page {
    read_with(&Head { content_type: Some("text/html"), ..Head::default() }, &Limits::default(), html)
}

/// Links as lines: tag, attribute, kind, URL, rel, hreflang.
fn lines(page: &Page) -> Vec<String> {
    let line = |link: &trapline_extract::Link| {
        let mut line = format!("{} {} {} {}", link.tag, link.attribute, link.kind.name(), link.url);
        for more in [&link.rel, &link.hreflang].into_iter().flatten() {
            line.push_str(" | ");
            line.push_str(more);
        }
        line
    };
    page.links.iter().map(line).collect()
}

#[track_caller]
fn check(html: &str, expected: &[&str]) {
    assert_eq!(lines(&read(html)), expected, "{html}");
}

fn fault(page: &Page, kind: FaultKind) -> u64 {
    page.faults.iter().find(|fault| fault.kind == kind).map_or(0, |fault| fault.count)
}

#[test]
fn anchors_and_areas_are_navigation() {
    check(
        "<a href=x REL='NoFollow  noopener'>x</a><map><area href=\"/y?1&amp;2\"></map><a name=z>",
        &[
            "a href navigation https://a.example/b/x | nofollow noopener",
            "area href navigation https://a.example/y?1&2",
        ],
    );
    assert!(read("<a rel='ugc' href=x>").links[0].is_nofollow());
    assert!(!read("<a rel='nofollowed' href=x>").links[0].is_nofollow());
    check(
        "<svg><a xlink:href=x></a><a href=y xlink:href=z></a></svg>",
        &["a xlink:href navigation https://a.example/b/x", "a href navigation https://a.example/b/y"],
    );
}

#[test]
fn link_elements_are_what_their_rel_says() {
    let page = read(
        "<link rel=stylesheet href=s.css><link rel=CANONICAL href=/c><link rel='next' href='?2'>
         <link rel=alternate hreflang=de href=/de><link rel=alternate hreflang=x-default href=/>
         <link rel=preconnect href=//cdn.example><link href=odd><link rel=icon href=''><link rel='alternate' type=rss href=feed>",
    );
    assert_eq!(
        lines(&page),
        [
            "link href embed https://a.example/b/s.css | stylesheet",
            "link href navigation https://a.example/c | canonical",
            "link href navigation https://a.example/b/c.html?2 | next",
            "link href navigation https://a.example/de | alternate | de",
            "link href navigation https://a.example/ | alternate | x-default",
            "link href navigation https://a.example/b/odd",
            "link href navigation https://a.example/b/feed | alternate",
        ]
    );
    assert_eq!(page.canonical.as_deref(), Some("https://a.example/c"));
    let alternates = page.alternates.iter().map(|its| (&its.hreflang[..], &its.url[..])).collect::<Vec<_>>();
    assert_eq!(alternates, [("de", "https://a.example/de"), ("x-default", "https://a.example/")]);
}

#[test]
fn what_is_part_of_a_page_is_embedded() {
    check(
        "<img src=1 srcset='2 1x, 3 2x'><image src=4><source src=5 srcset=6><script src=7></script><iframe src=8></iframe>
         <frame src=9><video src=10 poster=11></video><audio src=12></audio><track src=13><embed src=14><object data=15>
         <input type=IMAGE src=16><input type=text src=no><img src=''><img src=' '><body background=17>
         <svg><image href=18 /><use xlink:href=19#i /><use href='#no' /></svg>",
        &[
            "img src embed https://a.example/b/1",
            "img srcset embed https://a.example/b/2",
            "img srcset embed https://a.example/b/3",
            "img src embed https://a.example/b/4",
            "source src embed https://a.example/b/5",
            "source srcset embed https://a.example/b/6",
            "script src embed https://a.example/b/7",
            "iframe src embed https://a.example/b/8",
            "frame src embed https://a.example/b/9",
            "video src embed https://a.example/b/10",
            "video poster embed https://a.example/b/11",
            "audio src embed https://a.example/b/12",
            "track src embed https://a.example/b/13",
            "embed src embed https://a.example/b/14",
            "object data embed https://a.example/b/15",
            "input src embed https://a.example/b/16",
            "body background embed https://a.example/b/17",
            "image href embed https://a.example/b/18",
            "use xlink:href embed https://a.example/b/19#i",
        ],
    );
}

#[test]
fn forms_are_followed_if_they_only_ask() {
    check(
        "<form action=1><form method=GET action=2><form method=post action=3><form method=dialog action=4>
         <form method=odd action=5><form><form action=''>",
        &[
            "form action navigation https://a.example/b/1",
            "form action navigation https://a.example/b/2",
            "form action navigation https://a.example/b/5",
        ],
    );
}

#[test]
fn refreshes_are_redirects() {
    check("<meta http-equiv=Refresh content='0; URL=x'>", &["meta content redirect https://a.example/b/x"]);
    check("<meta http-equiv=refresh content=5>", &[]);
    let head = Head { refresh: Some("1;url=/y"), ..Head::default() };
    let page = read_with(&head, &Limits::default(), "<p>");
    assert_eq!(lines(&page), ["header refresh redirect https://a.example/y"]);
}

#[test]
fn the_first_base_counts_for_everything_and_is_itself_resolved() {
    let html = "<a href=x><base target=t><base href=../d/><base href=/e/><a href=y>";
    let page = read(html);
    assert_eq!(page.base.as_str(), "https://a.example/d/");
    let links = ["a href navigation https://a.example/d/x", "a href navigation https://a.example/d/y"];
    assert_eq!(lines(&page), links);
    check("<base href='javascript:x'><a href=x>", &["a href navigation https://a.example/b/x"]);
}

#[test]
fn inline_styles_hold_links_too() {
    check(
        "<style>@import 'a.css'; b{background:url(c.png)}</style><p style=\"background: url(&quot;d.png&quot;)\"><x-y style='x:url(e)'>",
        &[
            "style text embed https://a.example/b/a.css",
            "style text embed https://a.example/b/c.png",
            "p style embed https://a.example/b/d.png",
            "* style embed https://a.example/b/e",
        ],
    );
}

#[test]
fn style_sheets_are_read_as_such() {
    let head = Head { content_type: Some("text/css"), ..Head::default() };
    let css = b"@charset \"latin1\"; @import url(a.css); b{c:url(\xe9)} <a href=x>";
    let page = read_with(&head, &Limits::default(), css);
    assert_eq!((page.content, page.charset.source), (Content::Css, CharsetSource::Document));
    assert_eq!(
        lines(&page),
        ["css import embed https://a.example/b/a.css", "css url embed https://a.example/b/%C3%A9"]
    );
}

#[test]
fn headers_say_things_too() {
    let head = Head {
        content_type: Some("text/html; charset=utf-8"),
        content_language: Some("de"),
        link: vec!["</c>; rel=canonical, <f>; rel=alternate; hreflang=fr", "<no>; rel=next; anchor=\"#x\""],
        x_robots_tag: vec!["noindex", "otherbot: nofollow"],
        ..Head::default()
    };
    let page = read_with(
        &head,
        &Limits::default(),
        "<base href=/z/><meta name=robots content=noarchive><meta name=Trapline content=nofollow>",
    );
    assert_eq!(
        lines(&page),
        [
            "header link navigation https://a.example/c | canonical",
            "header link navigation https://a.example/b/f | alternate | fr"
        ]
    );
    assert_eq!(page.canonical.as_deref(), Some("https://a.example/c"));
    assert_eq!(page.language.as_deref(), Some("de"));
    let ours = page.robots.of("trapline/1.0");
    assert!(ours.noindex && ours.noarchive && ours.nofollow);
    assert!(!page.robots.of("third").nofollow && page.robots.of("OtherBot").nofollow);
}

/// A page that asks not to be indexed does so however much else it says in the same breath.
#[test]
fn directives_count_as_far_as_they_are_read() {
    let long = format!("<meta name=robots content='noindex, {}'>", "max-snippet:9, ".repeat(1000));
    let page = read(&long);
    assert!(page.robots.everyone.noindex);
    assert_eq!(fault(&page, FaultKind::FactsCut), 1);
    let prose = format!("<meta name=keywords content='{}'>", "noindex ".repeat(2000));
    assert!(read(&prose).faults.is_empty());
}

#[test]
fn facts_are_found() {
    let page = read(
        "<!doctype html><html lang=en-GB><head><title> Bees &amp;\n wasps </title><title>No</title>
         <meta name=Description content=' How  they live '><meta name=description content=No>
         <meta property='og:Title' content='Bees!'><meta name=og:image content=i.png><meta property=article:tag content=no>
         <meta http-equiv=content-language content=fr>
         <script type='application/LD+json; x'> {\"@id\": \"</b>\"} </script><script>no</script></head>
         <body><svg><title>No</title></svg>",
    );
    assert_eq!(page.title.as_deref(), Some("Bees & wasps"));
    assert_eq!(page.description.as_deref(), Some("How they live"));
    assert_eq!(page.language.as_deref(), Some("en-GB"));
    let graph = page.open_graph.iter().map(|(name, value)| (&name[..], &value[..])).collect::<Vec<_>>();
    assert_eq!(graph, [("og:title", "Bees!"), ("og:image", "i.png")]);
    assert_eq!(page.json_ld, ["{\"@id\": \"</b>\"}"]);
    assert_eq!(read("<p>").title, None);
    assert_eq!(read("<title>unfinished").title.as_deref(), Some("unfinished"));
}

#[test]
fn visible_text_makes_the_simhash_and_nothing_else_does() {
    let page = read(
        "<title>No</title><style>no</style><script>no</script><!-- no --><p>One <b>tw</b>o</p>thr&#101;e<template>no</template>
         <textarea>four</textarea><noscript>five</noscript><svg><style>no</style></svg><iframe>no</iframe><xmp>six</xmp>seven<br>eight<li>nine",
    );
    assert_eq!(page.simhash, SimHash::of_text("one two three four five six seven eight nine"));
    assert_eq!(read("<p></p>").simhash, None);
}

#[test]
fn digest_and_size_are_of_the_bytes() {
    let page = read("caf\u{e9}");
    assert_eq!(page.digest, *blake3::hash("caf\u{e9}".as_bytes()).as_bytes());
    assert_eq!(page.body_bytes, 5);
}

#[test]
fn encodings_are_told_and_decoded() {
    let check = |bytes: &[u8], name: &str, source, title: &str| {
        let page = read(bytes);
        assert_eq!((page.charset.name, page.charset.source), (name, source));
        assert_eq!(page.title.as_deref(), Some(title));
    };
    let padding = " ".repeat(3000);
    let utf16 =
        "\u{feff}<title>é</title><a href=ü>".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    check(&utf16, "UTF-16LE", CharsetSource::Bom, "é");
    assert_eq!(read(&utf16).links[0].url, "https://a.example/b/%C3%BC");
    check(b"<meta charset=koi8-r><title>\xc1</title>", "KOI8-R", CharsetSource::Document, "а");
    let guessed = [padding.as_bytes(), b"<title>Sch\xf6ne Gr\xfc\xdfe</title>"].concat();
    check(&guessed, "windows-1252", CharsetSource::Guess, "Schöne Grüße");
    check("<title>Schöne Grüße</title>".as_bytes(), "UTF-8", CharsetSource::Guess, "Schöne Grüße");
    check(b"<title>plain</title>", "UTF-8", CharsetSource::Default, "plain");
    let page = read(b"\xef\xbb\xbf<title>\xff</title>");
    assert_eq!((page.title.as_deref(), fault(&page, FaultKind::Undecodable)), (Some("\u{fffd}"), 1));
}

#[test]
fn utf_7_is_no_encoding() {
    let head = Head { content_type: Some("text/html; charset=utf-7"), ..Head::default() };
    let page = read_with(&head, &Limits::default(), "+ADw-a href=x+AD4-<a href=y>");
    assert_eq!(page.links.len(), 1);
    assert_eq!(fault(&page, FaultKind::UnknownCharset), 1);
}

#[test]
fn headers_that_lie_are_found_out() {
    let page = read(b"%PDF-1.4 <a href=x>");
    assert_eq!((&page.mime[..], page.content, page.links.len()), ("application/pdf", Content::Other, 0));
    assert_eq!(fault(&page, FaultKind::WrongType), 1);
    let page = read_with(&Head::default(), &Limits::default(), "<html><a href=x>");
    assert_eq!((&page.mime[..], page.links.len(), page.faults.len()), ("text/html", 1, 0));
}

#[test]
fn what_cannot_be_resolved_is_counted() {
    let page = read("<a href='http://['><a href='https://x:y'><a href=z>");
    assert_eq!(page.links.len(), 1);
    assert_eq!(fault(&page, FaultKind::Unresolvable), 2);
    assert_eq!(page.faults[0].to_string(), "unresolvable (2)");
}

#[test]
fn caps_cut_and_say_so() {
    let limits = Limits {
        links_bytes_max: 1 << 20,
        links_max: 2,
        reference_bytes_max: 5,
        tag_bytes_max: 60,
        attributes_max: 3,
        text_bytes_max: 4,
        style_bytes_max: 8,
        fact_bytes_max: 4,
        facts_max: 1,
        json_ld_bytes_max: 4,
    };
    let html = format!(
        "<title>abcdefg</title><a href=1><a href=123456><a b c d href=no><a href=2 x='{}' rel=no><a href=3>
         <style>a{{b:url(4)}}</style><script type=application/ld+json>12345</script><meta name=og:a content=1><meta name=og:b content=2>
         too much text",
        "y".repeat(100)
    );
    let page = read_with(&Head { content_type: Some("text/html"), ..Head::default() }, &limits, html);
    assert_eq!(
        lines(&page),
        ["a href navigation https://a.example/b/1", "a href navigation https://a.example/b/2"]
    );
    assert_eq!(page.title.as_deref(), Some("abcd"));
    let kinds = page.faults.iter().map(|fault| (fault.kind.name(), fault.count)).collect::<Vec<_>>();
    assert_eq!(
        kinds,
        [
            ("long_references", 1),
            ("links_left_out", 1),
            ("tags_cut", 1),
            ("attributes_left_out", 1),
            ("text_cut", 1),
            ("styles_cut", 1),
            ("facts_cut", 3),
        ]
    );
}
