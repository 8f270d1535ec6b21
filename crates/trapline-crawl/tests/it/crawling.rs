//! What a crawl does when all goes well.

use std::collections::BTreeSet;
use std::time::Duration;

use trapline_core::Request;
use trapline_crawl::CrawlEnd;
use trapline_crawl::candidate::ScopeKind;

use crate::sites::{Sites, html, page, redirect, status};

#[test]
fn a_small_site_is_crawled_each_page_once() {
    let sites = Sites::of(&[
        ("http://a.test/", &["/1", "2", "http://a.test/1#part", "http://elsewhere.test/"]),
        ("http://a.test/1", &["/", "/2", "/3"]),
        ("http://a.test/2", &["/1"]),
        ("http://a.test/3", &["/gone"]),
    ]);
    assert_eq!(sites.crawl(&["http://a.test/"]), CrawlEnd::Exhausted);
    let expected = ["", "1", "2", "3", "gone"].map(|path| format!("http://a.test/{path}"));
    assert_eq!(sites.asked(), expected);
    let told: Vec<_> = sites.pages().iter().map(|page| page.url.to_string()).collect();
    assert_eq!(told, expected);
    let last = sites.pages().pop().unwrap();
    assert_eq!((last.status, last.outcome, last.depth, &*last.hops), (Some(404), "done", 3, "LLL"));
    assert_eq!(
        (last.via.as_deref(), last.seed.as_deref()),
        (Some("http://a.test/3"), Some("http://a.test/"))
    );
    let outside = ("http://elsewhere.test/".to_owned(), "scope".to_owned(), "reject the rest".to_owned());
    assert_eq!(sites.skipped(), [outside]);
}

#[test]
fn a_page_is_told_with_what_was_found_in_it() {
    let sites = Sites::new().put(
        "http://a.test/",
        [html("<title>Otters</title><a href='/1'>1</a><a href='http://b.test/'>b</a>").with("etag", "v1")],
    );
    sites.crawl(&["http://a.test/"]);
    let first = &sites.pages()[0];
    assert_eq!(first.title.as_deref(), Some("Otters"));
    assert_eq!((first.links_found, first.links_kept), (2, 1));
    assert_eq!((first.mime.as_deref(), first.error.as_deref()), (Some("text/html"), None));
    assert!(first.digest.is_some() && first.times.total == Duration::from_millis(10));
}

#[test]
fn a_redirect_becomes_a_candidate_with_its_chain() {
    let sites = Sites::of(&[("http://a.test/", &["/old"]), ("http://a.test/new", &[])])
        .put("http://a.test/old", [redirect("/older")])
        .put("http://a.test/older", [redirect("/new")]);
    sites.crawl(&["http://a.test/"]);
    let last = sites.pages().pop().unwrap();
    assert_eq!((&*last.url, last.depth, &*last.hops), ("http://a.test/new", 1, "LRR"));
    assert_eq!(last.via.as_deref(), Some("http://a.test/older"));
    let old = &sites.pages()[1];
    assert_eq!((old.status, old.redirect.as_deref()), (Some(301), Some("http://a.test/older")));
}

#[test]
fn no_result_has_a_fragment_wherever_its_url_came_from() {
    let sites = Sites::of(&[("http://a.test/", &["/old#part"]), ("http://a.test/outside", &["/3"])])
        .put("http://a.test/old", [redirect("/new#there")])
        .with(|options| options.scope = ScopeKind::Any);
    let frontier = sites.world.run(sites.frontier());
    // Not through the candidate chain.
    let outside = Request::get("http://a.test/outside#top");
    sites.world.run(async { frontier.admit(sites.world.now(), [outside]).await.unwrap() });
    sites.crawl(&["http://a.test/#top"]);
    let expected = ["", "3", "new", "old", "outside"].map(|path| format!("http://a.test/{path}"));
    assert_eq!(sites.asked_sorted(), expected);
    for page in sites.pages() {
        let told = [Some(&*page.url), page.via.as_deref(), page.seed.as_deref(), page.redirect.as_deref()];
        assert!(told.iter().flatten().all(|url| !url.contains('#')), "{told:?}");
    }
}

#[test]
fn a_redirect_out_of_scope_is_not_followed() {
    let sites = Sites::of(&[("http://a.test/", &["/away"])])
        .put("http://a.test/away", [redirect("http://b.test/")])
        .put("http://b.test/", [page(&[])]);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked(), ["http://a.test/", "http://a.test/away"]);
    assert_eq!(sites.skipped()[0].1, "scope");
}

#[test]
fn a_redirect_that_leads_nowhere_is_told() {
    let sites = Sites::new().put("http://a.test/", [redirect("http://[")]);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.skipped()[0].1, "redirect");
    assert_eq!(sites.pages()[0].outcome, "done");
}

#[test]
fn a_redirected_seed_makes_its_target_a_seed_unless_that_is_not_wanted() {
    let moved = || {
        Sites::of(&[("https://www.a.test/", &["/1"]), ("https://www.a.test/1", &[])])
            .put("http://a.test/", [redirect("https://a.test/")])
            .put("https://a.test/", [redirect("https://www.a.test/")])
    };
    let sites = moved();
    sites.crawl(&["http://a.test/"]);
    let asked = ["http://a.test/", "https://a.test/", "https://www.a.test/", "https://www.a.test/1"];
    assert_eq!(sites.asked(), asked);

    let strict = moved().with(|options| options.redirected_seeds = false);
    strict.crawl(&["http://a.test/"]);
    assert_eq!(strict.asked(), asked[..2]);
}

#[test]
fn hosts_are_crawled_beside_each_other() {
    let hosts: Vec<_> = (0..20).map(|n| format!("http://h{n}.test/")).collect();
    let seeds: Vec<_> = hosts.iter().map(String::as_str).collect();
    let sites = hosts.iter().fold(Sites::new(), |sites, host| sites.put(host, [page(&["/1", "/2"])]));
    sites.crawl(&seeds);
    assert_eq!(sites.asked().len(), 60);
    assert_eq!(sites.asked().into_iter().collect::<BTreeSet<_>>().len(), 60);
    // Three pages of each, a second apart.
    assert!(sites.world.now().since(crate::sites::BEGIN) < Duration::from_millis(3_500));
}

#[test]
fn five_thousand_fetches_are_in_flight_at_once() {
    let hosts: Vec<_> = (0..5_000).map(|n| format!("http://h{n}.test/")).collect();
    let seeds: Vec<_> = hosts.iter().map(String::as_str).collect();
    let slow = |sites: Sites, host: &String| sites.put(host, [status(200).taking(Duration::from_secs(100))]);
    let sites = hosts.iter().fold(Sites::new(), slow).with(|options| options.concurrency = 5_000);
    sites.crawl(&seeds);
    let seen = sites.seen();
    assert_eq!(seen.len(), 5_000);
    let last_began = seen.iter().map(|seen| seen.began).max().unwrap();
    let first_ended = seen.iter().map(|seen| seen.ended.unwrap()).min().unwrap();
    assert!(last_began < first_ended, "{last_began} {first_ended}");
}

#[test]
fn the_whole_web_is_in_scope_if_that_is_wanted() {
    let sites =
        Sites::of(&[("http://a.test/", &["http://b.test/"]), ("http://b.test/", &["http://c.example/"])])
            .with(|options| options.scope = ScopeKind::Any);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked(), ["http://a.test/", "http://b.test/", "http://c.example/"]);
}

#[test]
fn a_seed_that_is_brought_twice_is_known() {
    let sites = Sites::of(&[("http://a.test/", &[])]);
    sites.crawl(&["http://a.test/", "http://a.test/#again"]);
    assert_eq!(sites.asked(), ["http://a.test/"]);
}

#[test]
fn results_are_told_once() {
    let sites = Sites::of(&[("http://a.test/", &["/1", "/2", "/3"])])
        .put("http://a.test/1", [status(500), page(&[])]);
    sites.crawl(&["http://a.test/"]);
    let pages = sites.pages();
    let leases: BTreeSet<_> = pages.iter().map(|page| page.lease).collect();
    assert_eq!((pages.len(), leases.len()), (5, 5));
    assert_eq!(pages.len(), sites.seen().len());
    let tries: Vec<_> =
        pages.iter().filter(|page| page.url.ends_with("/1")).map(|page| page.outcome).collect();
    assert_eq!(tries, ["retry", "done"]);
}
