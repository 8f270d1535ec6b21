//! Policies that some hosts have of their own.

use std::time::Duration;

use trapline_crawl::CrawlEnd;
use trapline_crawl::candidate::{HostTerms, Patterns};

use crate::sites::{Sites, hosts};

/// Two hosts of three levels each.
fn two_sites() -> Sites {
    Sites::of(&[
        ("http://a.test/", &["/1", "/x"]),
        ("http://a.test/1", &["/2"]),
        ("http://b.test/", &["/1", "/x"]),
        ("http://b.test/1", &["/2"]),
    ])
}

const SEEDS: [&str; 2] = ["http://a.test/", "http://b.test/"];

/// What is asked for where one host has terms of its own.
#[track_caller]
fn check(terms: HostTerms, expected: &[&str]) {
    let sites = two_sites().with(|options| options.queue.hosts = vec![terms].into());
    sites.crawl(&SEEDS);
    assert_eq!(sites.asked_sorted(), expected);
}

#[test]
fn a_host_has_its_own_depth() {
    let terms = HostTerms { hosts: hosts("a.test"), max_depth: Some(1), ..HostTerms::default() };
    let wide = ["http://b.test/", "http://b.test/1", "http://b.test/2", "http://b.test/x"];
    let narrow = ["http://a.test/", "http://a.test/1", "http://a.test/x"];
    check(terms.clone(), &[&narrow[..], &wide].concat());

    // It may also be more than usual.
    let sites = two_sites().with(|options| {
        options.limits.max_depth = Some(0);
        options.queue.hosts = vec![terms].into();
    });
    sites.crawl(&SEEDS);
    assert_eq!(sites.asked_sorted(), [&narrow[..], &wide[..1]].concat());
}

#[test]
fn a_host_has_its_own_patterns() {
    let only = Patterns::new(&["/x$".to_owned()], &[]).unwrap();
    let terms = HostTerms { hosts: hosts("a.test"), patterns: Some(only), ..HostTerms::default() };
    let wide = ["http://b.test/", "http://b.test/1", "http://b.test/2", "http://b.test/x"];
    check(terms, &[&["http://a.test/", "http://a.test/x"], &wide[..]].concat());

    let without = Patterns::new(&[], &["/1$".to_owned()]).unwrap();
    let terms = HostTerms { hosts: hosts("domain:b.test"), patterns: Some(without), ..HostTerms::default() };
    let wide = ["http://a.test/", "http://a.test/1", "http://a.test/2", "http://a.test/x"];
    check(terms, &[&wide[..], &["http://b.test/", "http://b.test/x"]].concat());
}

#[test]
fn own_patterns_stand_in_place_of_the_usual_ones() {
    let sites = two_sites().with(|options| {
        options.patterns = Patterns::new(&[], &["/x$".to_owned()]).unwrap();
        let terms =
            HostTerms { hosts: hosts("a.test"), patterns: Some(Patterns::default()), ..HostTerms::default() };
        options.queue.hosts = vec![terms].into();
    });
    sites.crawl(&SEEDS);
    let asked = sites.asked();
    let [of_a, of_b] =
        ["http://a.test/x", "http://b.test/x"].map(|url| asked.iter().any(|other| other == url));
    assert!(of_a && !of_b, "{asked:?}");
}

#[test]
fn a_host_is_visited_again_after_its_interval() {
    let revisit = Some(Duration::from_secs(3600));
    let sites = Sites::of(&[("http://a.test/", &[]), ("http://b.test/", &[])]).with(|options| {
        options.max_time = Some(Duration::from_secs(3 * 3600 - 60));
        let again = HostTerms { hosts: hosts("?.test"), revisit, ..HostTerms::default() };
        let once = HostTerms { hosts: hosts("b.test"), ..HostTerms::default() };
        options.queue.hosts = vec![again, once].into();
    });
    assert_eq!(sites.crawl(&SEEDS), CrawlEnd::MaxTime);
    assert_eq!(
        sites.asked_sorted(),
        ["http://a.test/", "http://a.test/", "http://a.test/", "http://b.test/"]
    );
    let of_a: Vec<_> = sites.seen().into_iter().filter(|seen| seen.url == "http://a.test/").collect();
    for pair in of_a.windows(2) {
        assert_eq!(pair[1].began.since(pair[0].ended.unwrap()), Duration::from_secs(3600));
    }
}

#[test]
fn a_host_with_a_balance_makes_room_for_others_when_it_is_spent() {
    let links: Vec<String> = (1..6).map(|number| format!("/{number}")).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let order = |balance: Option<u64>| {
        // Of one domain, which is in one partition: there the order is exact.
        let seeds = ["http://a.site.test/", "http://b.site.test/"];
        let sites = Sites::of(&seeds.map(|seed| (seed, &links[..]))).with(|options| {
            options.concurrency = 1;
            options.pace.delay = Duration::ZERO;
            options.queue.hosts =
                vec![HostTerms { hosts: hosts("*"), balance, ..HostTerms::default() }].into();
        });
        let end = sites.crawl(&seeds);
        let order: String =
            sites.asked().iter().map(|url| if url.contains("a.site") { 'a' } else { 'b' }).collect();
        (order, end)
    };
    assert_eq!(order(None), ("aaaaaabbbbbb".to_owned(), CrawlEnd::Exhausted));
    assert_eq!(order(Some(2)), ("aabbaabbaabb".to_owned(), CrawlEnd::Exhausted));
    assert_eq!(order(Some(0)), (String::new(), CrawlEnd::Retired));
}

#[test]
fn the_most_exact_terms_are_all_that_count() {
    // What is not said there is as for all, and not as for those who are less exact.
    let sites = two_sites().with(|options| {
        let wide = HostTerms {
            hosts: hosts("domain:test"),
            max_depth: Some(0),
            delay: Some(Duration::from_secs(9)),
            ..HostTerms::default()
        };
        let exact = HostTerms { hosts: hosts("b.test"), max_depth: Some(1), ..HostTerms::default() };
        options.queue.hosts = vec![exact, wide].into();
    });
    sites.crawl(&SEEDS);
    assert_eq!(
        sites.asked_sorted(),
        ["http://a.test/", "http://b.test/", "http://b.test/1", "http://b.test/x"]
    );
    let of_b: Vec<_> = sites.seen().into_iter().filter(|seen| seen.url.contains("b.test")).collect();
    assert_eq!(of_b[1].began.since(of_b[0].ended.unwrap()), Duration::from_secs(1));
}
