//! Sitemaps: found, read, and no trap.

use std::time::Duration;

use crate::sites::{Reply, RobotsTxt, Sites, html, page, redirect};

fn sitemap(urls: &[&str]) -> Reply {
    let urls: String = urls.iter().map(|url| format!("<url><loc>{url}</loc></url>")).collect();
    html(&format!("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{urls}</urlset>"))
}

fn index(urls: &[&str]) -> Reply {
    let urls: String = urls.iter().map(|url| format!("<sitemap><loc>{url}</loc></sitemap>")).collect();
    html(&format!("<sitemapindex xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{urls}</sitemapindex>"))
}

fn site(sitemaps: &[&'static str]) -> Sites {
    Sites::of(&[("http://a.test/", &[])])
        .robots("a.test", RobotsTxt { sitemaps: sitemaps.to_vec(), ..RobotsTxt::default() })
        .with(|options| options.sitemaps = true)
}

#[test]
fn sitemaps_that_robots_txt_names_are_read() {
    let sites = site(&["http://cdn.test/map.xml", "http://a.test/index.xml"])
        .put("http://cdn.test/map.xml", [sitemap(&["http://a.test/1", "http://b.test/2"])])
        .put("http://a.test/index.xml", [index(&["http://a.test/more.xml"])])
        .put("http://a.test/more.xml", [sitemap(&["http://a.test/3"])]);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(
        sites.asked_sorted(),
        [
            "http://a.test/",
            "http://a.test/1",
            "http://a.test/3",
            "http://a.test/index.xml",
            "http://a.test/more.xml",
            "http://a.test/robots.txt",
            "http://cdn.test/map.xml",
        ]
    );
    let listed = sites.pages().into_iter().find(|page| page.url.ends_with("/3")).unwrap();
    assert_eq!((listed.depth, &*listed.hops), (1, "PPM"));
    assert_eq!(sites.skipped(), [("http://b.test/2".into(), "scope".into(), "reject the rest".into())]);
}

#[test]
fn a_sitemap_that_has_moved_is_read_where_it_is() {
    let sites = site(&[])
        .put("http://a.test/sitemap.xml", [redirect("/index.xml")])
        .put("http://a.test/index.xml", [sitemap(&["http://a.test/1"])]);
    sites.crawl(&["http://a.test/"]);
    assert!(sites.asked_sorted().contains(&"http://a.test/1".to_owned()));
}

/// Otherwise any site could send us wherever it likes.
#[test]
fn sitemaps_that_a_sitemap_lists_are_in_scope_or_where_that_one_is() {
    let listed = ["http://cdn.test/more.xml", "http://victim.test/x", "http://a.test/map.xml"];
    let sites = site(&["http://cdn.test/index.xml"])
        .put("http://cdn.test/index.xml", [index(&listed)])
        .put("http://cdn.test/more.xml", [sitemap(&["http://a.test/1"])])
        .put("http://a.test/map.xml", [sitemap(&["http://a.test/2"])]);
    sites.crawl(&["http://a.test/"]);
    let asked = sites.asked_sorted();
    assert!(["http://a.test/1", "http://a.test/2"].iter().all(|url| asked.iter().any(|there| there == url)));
    assert!(!asked.iter().any(|url| url.contains("victim")), "{asked:?}");
    assert_eq!(sites.skipped()[0].1, "scope");
}

/// Otherwise one robots.txt could keep us busy for ever, or make us a burden to somebody else.
#[test]
fn a_robots_txt_may_name_so_many_sitemaps_and_fewer_elsewhere() {
    let own: Vec<String> = (0..20).map(|n| format!("http://www.a.test/{n}.xml")).collect();
    let victim: Vec<String> = (0..20).map(|n| format!("http://victim.test/{n}.xml")).collect();
    let leak = |urls: &[String]| urls.iter().map(|url| &*url.clone().leak()).collect::<Vec<&'static str>>();
    let named = [leak(&victim), leak(&own)].concat();
    let asked = |max: usize, elsewhere_max: usize| {
        let sites = site(&named).with(|options| {
            options.sitemaps_max = max;
            options.sitemaps_elsewhere_max = elsewhere_max;
        });
        sites.crawl(&["http://a.test/"]);
        let count = |host: &str| {
            sites.asked().iter().filter(|url| url.starts_with(host) && url.ends_with(".xml")).count()
        };
        let why: Vec<_> =
            sites.skipped().into_iter().map(|(url, reason, why)| (url, reason + ": " + &why)).collect();
        (count("http://www.a.test/"), count("http://victim.test/"), why)
    };
    let told = |url: &str, why: &str| {
        (url.to_owned(), format!("sitemaps: robots.txt names {why} that are read of one"))
    };
    let (of_own, of_victim, why) = asked(1000, 10);
    assert_eq!((of_own, of_victim), (20, 10));
    assert_eq!(why, [told("http://victim.test/10.xml", "10 more than the 10 sitemaps elsewhere")]);
    let (of_own, of_victim, why) = asked(15, 3);
    assert_eq!((of_own, of_victim), (12, 3));
    assert_eq!(
        why,
        [
            told("http://www.a.test/12.xml", "8 more than the 15 sitemaps"),
            told("http://victim.test/3.xml", "17 more than the 3 sitemaps elsewhere"),
        ]
    );
    assert_eq!(asked(1000, 0).1, 0);
    // A host that is crawled anyway is not elsewhere.
    let sites = site(&named).with(|options| options.sitemaps_elsewhere_max = 0);
    sites.crawl(&["http://a.test/", "http://victim.test/"]);
    assert_eq!(
        sites
            .asked()
            .iter()
            .filter(|url| url.starts_with("http://victim.test/") && url.ends_with(".xml"))
            .count(),
        20
    );
}

/// Whoever saw the robots.txt come may have died before it could tell anybody.
#[test]
fn sitemaps_are_read_although_the_crawl_was_stopped_after_robots_txt() {
    let sites = site(&["http://a.test/map.xml"])
        .put("http://a.test/", [page(&[]).taking(Duration::from_secs(5))])
        .put("http://a.test/map.xml", [sitemap(&["http://a.test/1"])])
        .with(|options| options.pace.delay = Duration::ZERO);
    let watch = sites.clone();
    sites.crawl_while(&["http://a.test/"], |handle, _| async move {
        watch.sleep(Duration::from_secs(2)).await;
        handle.abort().await;
    });
    assert_eq!(sites.asked(), ["http://a.test/robots.txt", "http://a.test/"]);
    sites.crawl(&[]);
    assert!(sites.asked().contains(&"http://a.test/1".to_owned()), "{:?}", sites.asked());
    assert_eq!(sites.asked().iter().filter(|url| url.ends_with("/map.xml")).count(), 1);
}

/// Sitemaps may be longer than pages.
#[test]
fn a_long_sitemap_is_read_to_its_end() {
    let urls: Vec<_> = (0..1000).map(|number| format!("http://a.test/{number}")).collect();
    let long = sitemap(&urls.iter().map(String::as_str).collect::<Vec<_>>());
    let sites = site(&["http://a.test/map.xml"]).put("http://a.test/map.xml", [long]);
    sites.crawl(&["http://a.test/"]);
    assert!(urls.iter().all(|url| sites.asked_sorted().contains(url)));
}

#[test]
fn where_robots_txt_names_none_one_is_guessed() {
    let sites = site(&[]).put("http://a.test/sitemap.xml", [sitemap(&["http://a.test/1"])]);
    sites.crawl(&["http://a.test/"]);
    assert!(sites.asked().contains(&"http://a.test/1".to_owned()), "{:?}", sites.asked());

    let sites = site(&[]).with(|options| options.sitemap_guess = false);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked(), ["http://a.test/robots.txt", "http://a.test/"]);
}

#[test]
fn a_guess_that_finds_nothing_costs_one_request() {
    let sites = site(&[]);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(
        sites.asked_sorted(),
        ["http://a.test/", "http://a.test/robots.txt", "http://a.test/sitemap.xml"]
    );
}

#[test]
fn indexes_that_name_indexes_come_to_an_end() {
    let chain = |sites: Sites, n: usize| {
        sites.put(&format!("http://a.test/{n}.xml"), [index(&[&format!("http://a.test/{}.xml", n + 1)])])
    };
    let sites = (0..20).fold(site(&["http://a.test/0.xml"]), chain);
    sites.crawl(&["http://a.test/"]);
    let maps = sites.asked().into_iter().filter(|url| url.ends_with(".xml")).count();
    assert_eq!(maps, 3);
    assert_eq!(sites.skipped()[0].1, "limits");
}

#[test]
fn without_sitemaps_nobody_looks_for_them() {
    let sites = site(&["http://a.test/map.xml"]).with(|options| options.sitemaps = false);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked(), ["http://a.test/robots.txt", "http://a.test/"]);
}
