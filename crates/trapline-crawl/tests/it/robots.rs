//! What robots.txt changes.

use std::time::Duration;

use trapline_crawl::candidate::HostTerms;
use trapline_crawl::{CrawlEnd, RobotsPolicy};

use crate::sites::{RobotsTxt, Sites, hosts, html, page};

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

/// A page with a link of every kind, and a page that asks not to follow its links.
fn asking() -> Sites {
    let home = "<a href=/open>1</a><a href=/private>2</a><a href=/shared>3</a><a rel=nofollow href=/link>4</a>\
                <a href=/page>5</a><a href=/tagged>6</a><a href=/other>7</a>";
    Sites::new()
        .put("http://a.test/", [html(home)])
        .put("http://a.test/page", [html("<meta name=robots content=nofollow><a href=/of-page>1</a>")])
        .put(
            "http://a.test/tagged",
            [html("<a href=/of-tagged>1</a>").with("x-robots-tag", "trapline: nofollow")],
        )
        .put(
            "http://a.test/other",
            [html("<a href=/of-other>1</a>").with("x-robots-tag", "elsebot: nofollow")],
        )
        .robots(
            "a.test",
            RobotsTxt {
                disallow: vec!["/private", "/shared"],
                favors: vec!["/shared"],
                ..RobotsTxt::default()
            },
        )
}

/// What is asked for beside what everybody may see.
fn asked_under(policy: RobotsPolicy, change: impl FnOnce(&mut trapline_crawl::CrawlOptions)) -> Vec<String> {
    let sites = asking().with(|options| {
        options.robots = policy;
        change(options);
    });
    assert_eq!(sites.crawl(&["http://a.test/"]), CrawlEnd::Exhausted);
    let usual = ["/", "/open", "/page", "/tagged", "/other", "/of-other"];
    let asked = sites.asked_sorted().into_iter().map(|url| url["http://a.test".len()..].to_owned());
    asked.filter(|path| !usual.contains(&path.as_str())).collect()
}

#[test]
fn policies_say_how_much_is_given_on_what_robots_are_told() {
    for (policy, asked) in [
        (RobotsPolicy::Obey, &["/robots.txt"][..]),
        (RobotsPolicy::RobotsTxt, &["/link", "/of-page", "/of-tagged", "/robots.txt"]),
        (RobotsPolicy::MostFavored, &["/robots.txt", "/shared"]),
        (RobotsPolicy::Ignore, &["/link", "/of-page", "/of-tagged", "/private", "/shared"]),
    ] {
        assert_eq!(asked_under(policy, |_| ()), asked, "{policy:?}");
    }
}

#[test]
fn a_page_is_followed_if_one_of_the_names_may_where_the_most_favoured_counts() {
    let names = |options: &mut trapline_crawl::CrawlOptions| {
        options.agents = vec!["trapline".to_owned(), "elsebot".to_owned()];
    };
    assert_eq!(asked_under(RobotsPolicy::MostFavored, names), ["/of-tagged", "/robots.txt", "/shared"]);
    // Otherwise it is the first that counts.
    assert_eq!(asked_under(RobotsPolicy::Obey, names), ["/robots.txt"]);
}

#[test]
fn a_host_has_its_own_policy() {
    let own = |pattern: &str, robots| HostTerms {
        hosts: hosts(pattern),
        robots: Some(robots),
        ..HostTerms::default()
    };
    let ignored = asked_under(RobotsPolicy::Obey, |options| {
        options.queue.hosts =
            vec![own("a.test", RobotsPolicy::Ignore), own("*", RobotsPolicy::RobotsTxt)].into();
    });
    assert_eq!(ignored, ["/link", "/of-page", "/of-tagged", "/private", "/shared"]);
    let obeyed = asked_under(RobotsPolicy::Ignore, |options| {
        options.queue.hosts =
            vec![own("domain:a.test", RobotsPolicy::Obey), own("*.test", RobotsPolicy::Ignore)].into();
    });
    assert_eq!(obeyed, ["/robots.txt"]);
}
