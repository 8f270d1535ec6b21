//! The ways by which an address gets into a crawl: as a seed, as a link of each kind, as a redirect, in a sitemap, in robots.txt. By none of
//! them does a special address become a connection.

use std::sync::Arc;

use trapline_core::parse_url;
use trapline_extract::{Head, Limits, Page, Robots, Sitemap, SitemapLimits};
use trapline_fetch::{DialErrorKind, FetchErrorKind, FetchOptions, FetchRequest, Fetcher, Redirect};
use url::Url;

use crate::door::{Server, closed_options};
use crate::guard::special_hosts;
use crate::web::{answering, fetcher, page, response};

/// URLs of special addresses, all of which would lead to a server that listens here, if they led anywhere.
struct Forbidden {
    server: Server,
    urls: Vec<String>,
    fetcher: Fetcher,
}

impl Forbidden {
    async fn new() -> Self {
        let server = Server::silent().await;
        let urls = special_hosts().iter().map(|host| format!("http://{host}:{}/x", server.port())).collect();
        let options = FetchOptions { dial: closed_options(), ..FetchOptions::default() };
        Self { server, urls, fetcher: Fetcher::new(options).unwrap() }
    }

    /// Fetches what was found in some way, which must be all of them.
    async fn check(self, found: Vec<Url>) {
        let expected: Vec<Url> = self.urls.iter().map(|url| parse_url(url, None).unwrap()).collect();
        assert!(found.len() > 1200);
        assert_eq!(found, expected);
        for url in found {
            let fetched = self.fetcher.fetch(&FetchRequest::get(url.clone())).await;
            let kind = fetched.error.map(|error| error.kind());
            assert_eq!(kind, Some(FetchErrorKind::Dial(DialErrorKind::AddressRefused)), "{url}");
        }
        assert_eq!(self.fetcher.dialer().counts().connects, 0);
        assert_eq!(self.server.visitors().await, 0);
    }
}

fn somewhere() -> Url {
    parse_url("http://example.com/", None).unwrap()
}

fn urls<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Url> {
    texts.into_iter().map(|text| parse_url(text, None).unwrap()).collect()
}

#[tokio::test]
async fn a_seed_does_not_reach_a_special_address() {
    let forbidden = Forbidden::new().await;
    let seeds = urls(forbidden.urls.iter().map(String::as_str));
    forbidden.check(seeds).await;
}

#[tokio::test]
async fn a_link_does_not_reach_a_special_address() {
    for (before, after) in [
        ("<a href='", "'>"),
        ("<img src='", "'>"),
        ("<link rel=canonical href='", "'>"),
        ("<meta http-equiv=refresh content='0;url=", "'>"),
        ("<style>a { background: url(\"", "\") }</style>"),
    ] {
        let forbidden = Forbidden::new().await;
        let html: String = forbidden.urls.iter().map(|url| format!("{before}{url}{after}\n")).collect();
        let head = Head { content_type: Some("text/html; charset=utf-8"), ..Head::default() };
        let page = Page::read(&somewhere(), &head, &Limits::default(), html.as_bytes());
        let found = urls(page.links.iter().map(|link| link.url.as_str()));
        forbidden.check(found).await;
    }
}

#[tokio::test]
async fn a_link_header_does_not_reach_a_special_address() {
    let forbidden = Forbidden::new().await;
    let values: Vec<String> = forbidden.urls.iter().map(|url| format!("<{url}>; rel=next")).collect();
    let head = Head { link: values.iter().map(String::as_str).collect(), ..Head::default() };
    let page = Page::read(&somewhere(), &head, &Limits::default(), b"");
    let found = urls(page.links.iter().map(|link| link.url.as_str()));
    forbidden.check(found).await;
}

#[tokio::test]
async fn a_redirect_does_not_reach_a_special_address() {
    let forbidden = Forbidden::new().await;
    let targets = Arc::new(forbidden.urls.clone());
    let server = answering({
        let targets = Arc::clone(&targets);
        move |head| {
            let number: usize = head.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
            response("302 Found", &format!("Location: {}\r\n", targets[number]), "")
        }
    })
    .await;
    let (fetcher, mut found) = (fetcher(), Vec::new());
    for number in 0..targets.len() {
        let fetched = fetcher.fetch(&page(&server, &format!("/{number}"))).await;
        let Some(Redirect::To(url)) = fetched.redirect else { panic!("{fetched:?}") };
        found.push(url);
    }
    forbidden.check(found).await;
}

#[tokio::test]
async fn an_entry_of_a_sitemap_does_not_reach_a_special_address() {
    let forbidden = Forbidden::new().await;
    let entries: String = forbidden.urls.iter().map(|url| format!("<url><loc>{url}</loc></url>")).collect();
    let xml = format!("<urlset>{entries}</urlset>");
    let sitemap = Sitemap::read(&somewhere(), xml.as_bytes(), &SitemapLimits::default());
    assert!(sitemap.entries.iter().all(|entry| entry.foreign));
    let found = sitemap.entries.into_iter().map(|entry| entry.url).collect();
    forbidden.check(found).await;
}

#[tokio::test]
async fn a_sitemap_that_robots_txt_names_is_not_fetched_from_a_special_address() {
    let forbidden = Forbidden::new().await;
    let lines: String = forbidden.urls.iter().map(|url| format!("Sitemap: {url}\n")).collect();
    let robots = Robots::parse(lines.as_bytes());
    let found = urls(robots.sitemaps().map(|(_, url)| url));
    forbidden.check(found).await;
}
