//! Sitemaps in all their forms, whole, broken and hostile.

use std::io::Write;
use std::time::Duration;

use encoding_rs::WINDOWS_1252;
use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::time::{ClockId, clock_gettime};
use trapline_core::parse_url;
use trapline_extract::{ChangeFrequency, Sitemap, SitemapFaultKind, SitemapKind, SitemapLimits};

fn read_from(url: &str, bytes: impl AsRef<[u8]>, limits: &SitemapLimits) -> Sitemap {
    Sitemap::read(&parse_url(url, None).expect("a good URL"), bytes.as_ref(), limits)
}

fn read(bytes: impl AsRef<[u8]>) -> Sitemap {
    read_from("https://a.example/dir/sitemap.xml", bytes, &SitemapLimits::default())
}

fn urls(sitemap: &Sitemap) -> Vec<&str> {
    sitemap.entries.iter().map(|entry| entry.url.as_str()).collect()
}

/// Checks kind, addresses and faults.
#[track_caller]
fn check(
    bytes: impl AsRef<[u8]>,
    kind: SitemapKind,
    expected: &[&str],
    faults: &[SitemapFaultKind],
) -> Sitemap {
    let sitemap = read(bytes);
    assert_eq!(sitemap.kind, kind);
    assert_eq!(urls(&sitemap), expected);
    let found: Vec<_> = sitemap.faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(found, faults);
    sitemap
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

const ONE: &str = "<urlset><url><loc>https://a.example/1</loc></url></urlset>";

#[test]
fn a_url_set_lists_pages_with_what_it_says_of_them() {
    let text = r#"<?xml version="1.0" encoding="UTF-8"?>
        <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
          <!-- a comment with <loc>https://a.example/no</loc> -->
          <url>
            <loc> https://a.example/a?b&amp;c=&#x64;&#101; </loc>
            <lastmod>2026-05-01T12:00:00+02:00</lastmod><changefreq>Daily</changefreq><priority>0.8</priority>
          </url>
          <url><loc><![CDATA[https://a.example/b?c&d]]></loc><priority>0,5</priority></url>
          <url><priority>1.0</priority><loc>c d</loc></url>
        </urlset>"#;
    let sitemap = check(
        text,
        SitemapKind::UrlSet,
        &["https://a.example/a?b&c=de", "https://a.example/b?c&d", "https://a.example/dir/c%20d"],
        &[],
    );
    let entry = &sitemap.entries[0];
    assert_eq!(entry.lastmod.unwrap().as_millis(), 1_777_593_600_000 + 10 * 3_600_000);
    assert_eq!((entry.changefreq, entry.priority), (Some(ChangeFrequency::Daily), Some(0.8)));
    assert_eq!((sitemap.entries[1].priority, sitemap.entries[2].priority), (Some(0.5), Some(1.0)));
    assert!(!sitemap.truncated);
}

#[test]
fn an_index_lists_sitemaps() {
    let text = "<sitemapindex><sitemap><loc>/1.xml.gz</loc><lastmod>2026-05</lastmod></sitemap>\
                <sitemap><loc>https://a.example/2.xml</loc></sitemap></sitemapindex>";
    check(text, SitemapKind::Index, &["https://a.example/1.xml.gz", "https://a.example/2.xml"], &[]);
}

#[test]
fn feeds_list_their_items() {
    let rss = r#"<rss version="2.0"><channel><title>T</title><link>https://a.example/</link>
        <item><title>x &amp; y</title><link>https://a.example/1</link><pubDate>Fri, 01 May 2026 12:00:00 GMT</pubDate></item>
        <item><atom:link href="https://a.example/self" rel="self"/><guid>https://a.example/2</guid></item>
        <item><guid isPermaLink="false">17</guid><link>/3</link></item>
        <item><guid isPermaLink="false">18</guid></item>
        <item><description>&lt;a href="/4"&gt;</description><link></link><guid>tag:5</guid></item></channel></rss>"#;
    let sitemap = check(
        rss,
        SitemapKind::Rss,
        &["https://a.example/1", "https://a.example/2", "https://a.example/3"],
        &[SitemapFaultKind::NoUrl, SitemapFaultKind::OtherScheme],
    );
    assert!(sitemap.entries[0].lastmod.is_some());
    let rdf = "<rdf:RDF><channel><link>/no</link></channel><item rdf:about='x'><link>/1</link><dc:date>2026-05-01</dc:date></item></rdf:RDF>";
    let sitemap = check(rdf, SitemapKind::Rss, &["https://a.example/1"], &[]);
    assert!(sitemap.entries[0].lastmod.is_some());
    let atom = r#"<feed xmlns="http://www.w3.org/2005/Atom"><link href="/no"/><entry><link rel="edit" href="/edit"/>
        <link href='/1?a&amp;b'/><link rel="alternate" href="/second"/><published>2020-01-01</published><updated>2026-05-01</updated></entry>
        <entry><link rel="alternate" href="/2"></link><published>2026-05-01</published></entry>
        <entry><content><div><link href="/no"/></div></content></entry></feed>"#;
    let sitemap = check(
        atom,
        SitemapKind::Atom,
        &["https://a.example/1?a&b", "https://a.example/2"],
        &[SitemapFaultKind::NoUrl],
    );
    assert_eq!(sitemap.entries[0].lastmod, sitemap.entries[1].lastmod);
}

#[test]
fn plain_text_lists_an_address_a_line() {
    let text = "\u{feff}https://a.example/1\r\n\r\n  http://a.example/2  \rhttps://b.example/3\nnot found\n/4\nftp://a.example/\nhttps://a.example/ä";
    let sitemap = check(
        text,
        SitemapKind::Text,
        &["https://a.example/1", "http://a.example/2", "https://b.example/3", "https://a.example/%C3%A4"],
        &[SitemapFaultKind::BadUrl, SitemapFaultKind::BadUrl, SitemapFaultKind::OtherScheme],
    );
    let foreign: Vec<_> = sitemap.entries.iter().map(|entry| entry.foreign).collect();
    assert_eq!(foreign, [false, false, true, false]);
}

#[test]
fn other_hosts_are_marked_and_other_schemes_passed_over() {
    let text = "<urlset><url><loc>https://A.example:8080/1</loc></url><url><loc>//www.a.example/2</loc></url>\
                <url><loc>javascript:alert(1)</loc></url><url><loc>http://169.254.169.254/</loc></url>\
                <url><loc>http://[</loc></url><url><loc>file:///etc/passwd</loc></url></urlset>";
    let sitemap = check(
        text,
        SitemapKind::UrlSet,
        &["https://a.example:8080/1", "https://www.a.example/2", "http://169.254.169.254/"],
        &[SitemapFaultKind::OtherScheme, SitemapFaultKind::BadUrl, SitemapFaultKind::OtherScheme],
    );
    let foreign: Vec<_> = sitemap.entries.iter().map(|entry| entry.foreign).collect();
    assert_eq!(foreign, [false, true, true]);
}

#[test]
fn prefixes_are_tolerated_and_pictures_are_no_pages() {
    let text = "<sm:urlset xmlns:sm='x' xmlns:image='y'><sm:url><image:image><image:loc>/picture</image:loc></image:image>\
                <sm:loc>/1</sm:loc><video:video><video:content_loc>/video</video:content_loc><loc>/no</loc></video:video>\
                <xhtml:link rel='alternate' href='/de'/><sm:priority>0.1</sm:priority></sm:url></sm:urlset>";
    let sitemap = check(text, SitemapKind::UrlSet, &["https://a.example/1"], &[]);
    assert_eq!(sitemap.entries[0].priority, Some(0.1));
}

#[test]
fn every_encoding_is_read() {
    let text = "<?xml version='1.0'?><urlset><url><loc>https://a.example/ä</loc></url></urlset>";
    let expected = ["https://a.example/%C3%A4"];
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [
        [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        [b"\xff\xfe", &little[..]].concat(),
        [b"\xfe\xff", &big[..]].concat(),
        little,
        big,
        [b" \n", text.as_bytes()].concat(),
        text.replace("'1.0'", "'1.0' encoding='utf-16'").into_bytes(),
        WINDOWS_1252.encode(&text.replace("'1.0'", "\"1.0\" encoding = \"ISO-8859-1\"")).0.into_owned(),
    ] {
        check(&bytes, SitemapKind::UrlSet, &expected, &[]);
        check(gzip(&bytes), SitemapKind::UrlSet, &expected, &[]);
    }
    let latin = WINDOWS_1252.encode(text).0.into_owned();
    check(latin, SitemapKind::UrlSet, &["https://a.example/%EF%BF%BD"], &[SitemapFaultKind::NotText]);
}

#[test]
fn gzip_is_known_by_its_first_bytes_and_may_have_several_members() {
    let (first, second) = ONE.split_at(20);
    check(
        [gzip(first.as_bytes()), gzip(second.as_bytes())].concat(),
        SitemapKind::UrlSet,
        &["https://a.example/1"],
        &[],
    );
    let whole = gzip(ONE.as_bytes());
    check(
        [&whole[..], b"\0\0\0junk"].concat(),
        SitemapKind::UrlSet,
        &["https://a.example/1"],
        &[SitemapFaultKind::Gzip],
    );
    check(&whole[..1], SitemapKind::Text, &[], &[SitemapFaultKind::BadUrl]);
    let many: String = (0..5_000).map(|number| format!("https://a.example/{number}\n")).collect();
    let packed = gzip(many.as_bytes());
    let sitemap = read(&packed[..packed.len() / 2]);
    assert!(sitemap.entries.len() > 1_000, "{}", sitemap.entries.len());
    assert!(sitemap.faults.iter().any(|fault| fault.kind == SitemapFaultKind::Gzip));
}

#[test]
fn broken_xml_gives_what_there_is() {
    use SitemapFaultKind::{BrokenXml, DocType, Entity, NoUrl, UnknownRoot};
    let one = ["https://a.example/1"];
    let two = ["https://a.example/1", "https://a.example/2"];
    check("<urlset><url><loc>/1</loc></url><url><loc>/2</lo", SitemapKind::UrlSet, &two, &[BrokenXml]);
    check("<urlset><url><loc>/1</loc></url><url><loc", SitemapKind::UrlSet, &one, &[BrokenXml, NoUrl]);
    check("<urlset><url><loc>/1<url><loc>/2</urlset>", SitemapKind::UrlSet, &two, &[]);
    check(
        "<urlset><url><loc>/1</loc></urlset></urlset></x><url><loc>/2</loc></url>",
        SitemapKind::UrlSet,
        &two,
        &[],
    );
    check(
        "<urlset><url><loc>/1</loc></url><!bad><url><loc>/2</loc></url></urlset>",
        SitemapKind::UrlSet,
        &two,
        &[BrokenXml],
    );
    check("<urlset><url><loc>/1</loc><foo></url><url><loc>/2</loc></url>", SitemapKind::UrlSet, &two, &[]);
    check("<url><loc>/1</loc></url><url><loc>/2</loc></url>", SitemapKind::UrlSet, &two, &[]);
    check(
        "<urlset><url/><url></url><url><loc/></url></urlset>",
        SitemapKind::UrlSet,
        &[],
        &[NoUrl, NoUrl, NoUrl],
    );
    check(
        "<urlset><url><loc>/1?a&b;c&amp;d&</loc></url></urlset>",
        SitemapKind::UrlSet,
        &["https://a.example/1?a&b;c&d&"],
        &[Entity],
    );
    check("<html><body><a href='/1'>x</a></body></html>", SitemapKind::Unknown, &[], &[UnknownRoot]);
    let bomb = "<!DOCTYPE urlset [<!ENTITY a 'https://a.example/'><!ENTITY b '&a;&a;&a;'><!ENTITY x SYSTEM 'file:///etc/passwd'>]>\
                <urlset><url><loc>/&b;&x;</loc></url></urlset>";
    check(bomb, SitemapKind::UrlSet, &["https://a.example/&b;&x;"], &[DocType, Entity, Entity]);
    check("", SitemapKind::Unknown, &[], &[SitemapFaultKind::Empty]);
    check(
        " \n\u{feff}".repeat(9).trim_end_matches('\u{feff}'),
        SitemapKind::Text,
        &[],
        &[SitemapFaultKind::BadUrl; 8],
    );
}

#[test]
fn wrong_values_cost_only_themselves() {
    use SitemapFaultKind::{BadDate, BadFrequency, BadPriority};
    let text = "<urlset><url><loc>/1</loc><lastmod>yesterday</lastmod><changefreq>often</changefreq><priority>1.5</priority></url>\
                <url><loc>/2</loc><lastmod/><priority>NaN</priority></url></urlset>";
    check(
        text,
        SitemapKind::UrlSet,
        &["https://a.example/1", "https://a.example/2"],
        &[BadDate, BadFrequency, BadPriority, BadPriority],
    );
}

#[test]
fn limits_cut_and_say_so() {
    let limits = SitemapLimits { entries_max: 3, ..SitemapLimits::default() };
    let entries = |count: usize| format!("<urlset>{}</urlset>", "<url><loc>/1</loc></url>".repeat(count));
    for (count, truncated) in [(2, false), (3, false), (4, true), (9, true)] {
        let sitemap = read_from("https://a.example/", entries(count), &limits);
        assert_eq!((sitemap.entries.len(), sitemap.truncated), (count.min(3), truncated));
        let text = "https://a.example/1\n".repeat(count);
        let sitemap = read_from("https://a.example/", text, &limits);
        assert_eq!((sitemap.entries.len(), sitemap.truncated), (count.min(3), truncated));
    }
    let text = entries(2);
    for bytes in 0..=text.len() as u64 {
        let limits = SitemapLimits { decoded_bytes_max: bytes, ..SitemapLimits::default() };
        let whole = bytes == text.len() as u64;
        assert_eq!(read_from("https://a.example/", &text, &limits).truncated, !whole, "{bytes}");
        assert_eq!(
            read_from("https://a.example/", gzip(text.as_bytes()), &limits).truncated,
            !whole,
            "{bytes}"
        );
    }
    let limits = SitemapLimits { url_bytes_max: 20, ..SitemapLimits::default() };
    for (length, taken) in [(20, 1), (21, 0), (60_000, 0)] {
        let url = format!("{:a<length$}", "https://a.example/");
        assert_eq!(read_from("https://a.example/", &url, &limits).entries.len(), taken, "{length}");
        let xml = format!("<urlset><url><loc>{url}</loc></url>");
        assert_eq!(read_from("https://a.example/", xml, &limits).entries.len(), taken, "{length}");
        let atom = format!("<feed><entry><link href='{url}'/></entry>");
        assert_eq!(read_from("https://a.example/", atom, &limits).entries.len(), taken, "{length}");
    }
}

/// A megabyte of entries would be a gigabyte of addresses.
#[test]
fn a_long_address_of_a_sitemap_makes_no_more_of_short_ones_than_the_cap() {
    let url = format!("https://a.example/{}/", "x".repeat(20_000));
    let text = format!("<urlset>{}</urlset>", "<url><loc>y</loc></url>".repeat(50_000));
    let sitemap = read_from(&url, text, &SitemapLimits::default());
    let bytes: usize = sitemap.entries.iter().map(|entry| entry.url.as_str().len()).sum();
    assert!((40 << 20..=50 << 20).contains(&bytes), "{bytes} bytes");
    assert!(sitemap.truncated);
    let faults: Vec<_> = sitemap.faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(faults, [SitemapFaultKind::TooLong]);
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// A hostile sitemap takes bounded time. The bound is for hardly optimized builds on slow machines.
#[track_caller]
fn bounded(what: &str, bytes: &[u8]) -> Sitemap {
    let before = cpu();
    let sitemap = read(bytes);
    let took = cpu().saturating_sub(before);
    assert!(took < Duration::from_secs(20), "{what} took {took:?}");
    assert!(sitemap.faults.len() <= 100 && sitemap.entries.len() <= 50_000);
    sitemap
}

#[test]
fn bombs_end_at_the_limit() {
    let pieces: [(&str, &[u8], &[u8]); 6] = [
        ("nothing", b"", &[0; 1024]),
        ("text", b"<urlset><url><loc>", &[b'a'; 1024]),
        ("open tags", b"<urlset>", b"<a><b><c>"),
        ("an open attribute", b"<urlset><url a='", b">>>>>>>>"),
        ("an open comment", b"<urlset><!--", b"-<loc>- "),
        ("an open section", b"<urlset><![CDATA[", b"]]x]>>"),
    ];
    for (what, start, piece) in pieces {
        let member = gzip(&piece.repeat((1 << 20) / piece.len()));
        let bomb = [gzip(start), member.repeat(60)].concat();
        assert!(bomb.len() < 1 << 20, "{what}: {}", bomb.len());
        let sitemap = bounded(what, &bomb);
        assert!(sitemap.truncated, "{what}");
    }
}

#[test]
fn millions_of_entries_are_cut() {
    let sitemap = bounded("entries", &b"<url><loc>/1</loc></url>".repeat(200_000));
    assert_eq!((sitemap.entries.len(), sitemap.truncated), (50_000, true));
    let sitemap = bounded("bad entries", &b"<url><loc>x:</loc></url>".repeat(200_000));
    assert_eq!((sitemap.entries.len(), sitemap.faults_left_off, sitemap.truncated), (0, 49_901, true));
    let sitemap = bounded("broken markup", &b"<!".repeat(1_000_000));
    assert!(sitemap.truncated);
    bounded("attributes", format!("<urlset><url {}/>", "a='b' ".repeat(1_000_000)).as_bytes());
}
