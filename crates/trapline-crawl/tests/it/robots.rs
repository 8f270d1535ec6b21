//! What robots.txt changes.

use std::time::Duration;

use trapline_crawl::CrawlEnd;

use crate::sites::{RobotsTxt, Sites, page};

#[test]
fn what_robots_txt_forbids_is_disregarded_with_its_line() {
    let sites = Sites::of(&[("http://a.test/", &["/private/x", "/open"])])
        .robots("a.test", RobotsTxt { disallow: vec!["/private"], ..RobotsTxt::default() });
    assert_eq!(sites.crawl(&["http://a.test/"]), CrawlEnd::Exhausted);
    assert_eq!(sites.asked(), ["http://a.test/robots.txt", "http://a.test/", "http://a.test/open"]);
    let words = ("http://a.test/private/x", "robots", "Disallow: /private");
    let words = (words.0.to_owned(), words.1.to_owned(), words.2.to_owned());
    assert_eq!(sites.skipped(), [words]);
}

#[test]
fn a_redirect_asks_robots_txt_of_its_own_host() {
    let sites = Sites::new()
        .put("http://a.test/", [crate::sites::redirect("http://b.test/")])
        .put("http://b.test/", [page(&[])])
        .robots("b.test", RobotsTxt { disallow: vec!["/"], ..RobotsTxt::default() });
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked(), ["http://a.test/", "http://b.test/robots.txt"]);
}

#[test]
fn a_host_whose_robots_txt_cannot_be_had_is_retried_then_dead_and_the_crawl_ends() {
    let unreachable = Some(Duration::from_secs(60));
    let sites = Sites::of(&[("http://a.test/", &[])])
        .robots("a.test", RobotsTxt { unreachable, ..RobotsTxt::default() });
    assert_eq!(sites.crawl(&["http://a.test/"]), CrawlEnd::Exhausted);
    assert_eq!(sites.asked(), ["http://a.test/robots.txt"; 4]);
    assert_eq!(sites.gaps(), [60_000; 3]);
    let words = ("http://a.test/".into(), "robots.txt cannot be had".into(), "after 4 tries".into());
    assert_eq!(sites.skipped(), [words]);
}

#[test]
fn a_host_that_comes_back_is_crawled() {
    let unreachable = Some(Duration::from_secs(60));
    let sites = Sites::of(&[("http://a.test/", &[])])
        .robots("a.test", RobotsTxt { unreachable, ..RobotsTxt::default() });
    let back = sites.clone();
    let end = sites.crawl_while(&["http://a.test/"], |_, _| async move {
        back.sleep(Duration::from_secs(30)).await;
        drop(back.robots("a.test", RobotsTxt::default()));
    });
    assert_eq!(end, CrawlEnd::Exhausted);
    assert_eq!(sites.asked(), ["http://a.test/robots.txt", "http://a.test/robots.txt", "http://a.test/"]);
}

#[test]
fn the_delay_is_kept_after_robots_txt_too() {
    let sites = Sites::of(&[("http://a.test/", &["/1", "/2"])]).robots("a.test", RobotsTxt::default());
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked().len(), 4);
    assert_eq!(sites.gaps(), [1_000; 3]);
}

#[test]
fn without_a_delay_nobody_waits_after_robots_txt() {
    let sites = Sites::of(&[("http://a.test/", &["/1"])])
        .robots("a.test", RobotsTxt::default())
        .with(|options| options.pace.delay = Duration::ZERO);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.gaps(), [0, 0]);
}
