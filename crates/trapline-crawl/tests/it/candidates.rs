//! What the candidate chain lets through: each rule by what it drops of the links of one page.

use trapline_crawl::CrawlOptions;
use trapline_crawl::candidate::{Patterns, ScopeKind, ScopeRule};

use crate::sites::{Sites, html, redirect};

/// The home page of `http://www.a.test/docs/` has this body: what is asked for besides, and what is dropped by which rule.
fn check(body: &str, change: impl FnOnce(&mut CrawlOptions), asked: &[&str], dropped: &[(&str, &str)]) {
    let sites = Sites::new().put("http://www.a.test/docs/", [html(body)]).with(change);
    sites.crawl(&["http://www.a.test/docs/"]);
    let found = sites.asked_sorted();
    let found: Vec<_> =
        found.iter().map(String::as_str).filter(|url| *url != "http://www.a.test/docs/").collect();
    assert_eq!(found, asked, "{body}");
    let skipped = sites.skipped();
    let skipped: Vec<_> = skipped.iter().map(|(url, rule, _)| (url.as_str(), rule.as_str())).collect();
    assert_eq!(skipped, dropped, "{body}");
}

#[test]
fn nofollow_is_respected_on_links_and_on_pages() {
    let links = "<a href='/1' rel='nofollow ugc'>1</a><a href='/2'>2</a>";
    check(links, |_| (), &["http://www.a.test/2"], &[("http://www.a.test/1", "nofollow")]);
    let page = format!("<meta name='robots' content='nofollow'>{links}");
    check(&page, |_| (), &[], &[("http://www.a.test/1", "nofollow"), ("http://www.a.test/2", "nofollow")]);
    let another = format!("<meta name='otherbot' content='nofollow'>{links}");
    check(&another, |_| (), &["http://www.a.test/2"], &[("http://www.a.test/1", "nofollow")]);
}

/// Where pages repeat a link, the kindest occurrence counts.
#[test]
fn what_may_be_followed_once_may_be_followed() {
    let links = "<a href='/1' rel='nofollow'>1</a><img src='/2'><a href='/1#x'>1</a><a href='/2'>2</a><a href='/3' rel='ugc'>3</a>";
    check(
        links,
        |_| (),
        &["http://www.a.test/1", "http://www.a.test/2"],
        &[("http://www.a.test/3", "nofollow")],
    );
}

#[test]
fn scopes_reach_so_far() {
    let links =
        "<a href='1'>1</a><a href='/'>2</a><a href='http://b.a.test/'>3</a><a href='http://b.test/'>4</a>";
    let all = ["http://b.a.test/", "http://b.test/", "http://www.a.test/", "http://www.a.test/docs/1"];
    for (kind, reached) in [
        (ScopeKind::Prefix, &[3][..]),
        (ScopeKind::Host, &[2, 3]),
        (ScopeKind::Domain, &[0, 2, 3]),
        (ScopeKind::Any, &[0, 1, 2, 3]),
    ] {
        let asked: Vec<_> = reached.iter().map(|n| all[*n]).collect();
        let found = ["http://www.a.test/", "http://b.a.test/", "http://b.test/"];
        let dropped: Vec<_> =
            found.into_iter().filter(|url| !asked.contains(url)).map(|url| (url, "scope")).collect();
        check(links, |options| options.scope = kind, &asked, &dropped);
    }
}

#[test]
fn the_last_rule_of_the_scope_that_decides_wins() {
    let links = "<a href='/docs/private/1'>1</a><a href='/docs/2'>2</a><a href='http://b.test/'>3</a>";
    let rules = [(true, "host:b.test"), (false, "regex:/private/")];
    let rules = rules.map(|(accepts, text)| ScopeRule::parse(accepts, text).unwrap());
    check(
        links,
        |options| options.scope_rules = rules.to_vec(),
        &["http://b.test/", "http://www.a.test/docs/2"],
        &[("http://www.a.test/docs/private/1", "scope")],
    );
}

#[test]
fn parts_of_pages_are_fetched_only_if_that_is_wanted() {
    let body = "<img src='/1.png'><a href='/2'>2</a>";
    check(body, |_| (), &["http://www.a.test/2"], &[("http://www.a.test/1.png", "kinds")]);
    check(body, |options| options.embeds = true, &["http://www.a.test/1.png", "http://www.a.test/2"], &[]);
}

#[test]
fn traps_are_not_walked_into() {
    let body = "<a href='/a/a/a/a'>1</a><a href='/calendar/2150/01'>2</a><a href='/x;jsessionid=1'>3</a><a href='/ok'>4</a>";
    let dropped = [
        "http://www.a.test/a/a/a/a",
        "http://www.a.test/calendar/2150/01",
        "http://www.a.test/x;jsessionid=1",
    ];
    check(body, |_| (), &["http://www.a.test/ok"], &dropped.map(|url| (url, "traps")));
    let all = [dropped[0], dropped[1], "http://www.a.test/ok", dropped[2]];
    let change = |options: &mut CrawlOptions| {
        options.traps.repeated_segments = 0;
        options.traps.calendars = false;
        options.traps.session_ids = false;
    };
    check(body, change, &all, &[]);
}

#[test]
fn patterns_say_what_is_wanted_and_what_is_not() {
    let body = "<a href='/1.html'>1</a><a href='/2.pdf'>2</a><a href='/3.html'>3</a>";
    let patterns = Patterns::new(&[r"\.html$".to_owned()], &["/3".to_owned()]).unwrap();
    check(
        body,
        |options| options.patterns = patterns,
        &["http://www.a.test/1.html"],
        &[("http://www.a.test/2.pdf", "patterns"), ("http://www.a.test/3.html", "patterns")],
    );
    let wrong = Patterns::new(&["(".to_owned()], &[]).unwrap_err().to_string();
    assert!(wrong.starts_with("`(` is no regular expression: "), "{wrong}");
}

#[test]
fn pages_with_parameters_are_dropped_where_the_chain_says_so() {
    let named = ["scope", "no_query", "queue"].map(str::to_owned).to_vec();
    check(
        "<a href='/1?a=b'>1</a><a href='/2'>2</a>",
        |options| options.chains.candidate = Some(named),
        &["http://www.a.test/2"],
        &[("http://www.a.test/1?a=b", "no_query")],
    );
}

#[test]
fn what_cannot_be_fetched_is_dropped() {
    check(
        "<a href='ftp://www.a.test/'>1</a><a href='mailto:a@a.test'>2</a>",
        |_| (),
        &[],
        &[("ftp://www.a.test/", "scheme"), ("mailto:a@a.test", "scheme")],
    );
}

#[test]
fn limits_are_kept() {
    let deep =
        Sites::of(&[("http://a.test/", &["/1"]), ("http://a.test/1", &["/2"]), ("http://a.test/2", &["/3"])])
            .with(|options| options.limits.max_depth = Some(1));
    deep.crawl(&["http://a.test/"]);
    assert_eq!(deep.asked(), ["http://a.test/", "http://a.test/1"]);
    assert_eq!(deep.skipped(), [("http://a.test/2".into(), "limits".into(), "depth 2".into())]);

    let change = |options: &mut CrawlOptions| {
        options.limits.max_path_segments = 3;
        options.limits.max_url_bytes = 40;
    };
    check(
        "<a href='/1/2/3'>1</a><a href='/1/2/3/4'>2</a><a href='/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'>3</a>",
        change,
        &["http://www.a.test/1/2/3"],
        &[
            ("http://www.a.test/1/2/3/4", "limits"),
            ("http://www.a.test/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "limits"),
        ],
    );
}

#[test]
fn a_loop_of_redirects_ends() {
    let sites = Sites::new().put("http://a.test/", [redirect("/")]);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(sites.asked().len(), 1);

    let chain =
        |sites: Sites, n: usize| sites.put(&format!("http://a.test/{n}"), [redirect(&format!("/{}", n + 1))]);
    let sites = (0..50).fold(Sites::new(), chain);
    sites.crawl(&["http://a.test/0"]);
    assert_eq!(sites.asked().len(), 11);
    assert_eq!(
        sites.skipped(),
        [("http://a.test/11".into(), "limits".into(), "11 redirects in a row".into())]
    );
}
