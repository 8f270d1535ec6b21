//! Strategies: in which order they crawl, what they leave out, what they remember, and how they are exchanged.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Request, Timestamp};
use trapline_crawl::candidate::HostTerms;
use trapline_crawl::strategies::{
    After, ArgumentError, Arguments, BUILT_IN, FoundLink, Memory, Seen, Strategy, StrategyShelf, Wish,
};
use trapline_crawl::{CrawlEnd, Reload, StrategyChoice};
use trapline_frontier::{Order, Query, Rows, Scan};

use crate::sites::{RobotsTxt, Sites, html, page, redirect, silence, status};

fn choice(name: &str, arguments: &[(&str, &str)]) -> StrategyChoice {
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    StrategyChoice { name: name.to_owned(), arguments: arguments.collect() }
}

fn with_strategy(sites: Sites, name: &str, arguments: &[(&str, &str)]) -> Sites {
    sites.with(|options| options.strategy = choice(name, arguments))
}

/// The paths that were asked for, in order; one that failed stands there as often as it was tried.
fn paths(sites: &Sites) -> String {
    let asked = sites.asked();
    let paths = asked.iter().map(|url| url.strip_prefix("http://a.test").unwrap_or(url));
    paths.collect::<Vec<_>>().join(" ")
}

/// Two levels below the home page, a page that fails once, and one that does not exist:
///
/// ```text
/// / ─▶ /a ─▶ /a1 ─▶ /a11
///   │     └▶ /a2
///   └▶ /b ─▶ /b1 (fails once) ─▶ /b11
///   │     └▶ /a1
///   └▶ /none
/// ```
fn graph() -> Sites {
    Sites::of(&[
        ("http://a.test/", &["/a", "/b", "/none"]),
        ("http://a.test/a", &["/a1", "/a2"]),
        ("http://a.test/b", &["/b1", "/a1"]),
        ("http://a.test/a1", &["/a11"]),
        ("http://a.test/a2", &["/"]),
        ("http://a.test/a11", &[]),
        ("http://a.test/b11", &[]),
        ("http://a.test/seed", &["/s1"]),
        ("http://a.test/s1", &[]),
    ])
    .put("http://a.test/b1", [status(500), page(&["/b11"])])
}

/// In which order a strategy crawls the graph, with so many fetches at once.
fn sequence(name: &str, at_once: u32) -> String {
    let mut sites = with_strategy(graph(), name, &[]);
    sites.settings.concurrency = at_once;
    sites.settings.order = if name == "lifo" { Order::Lifo } else { Order::Fifo };
    let end = sites.crawl(&["http://a.test/", "http://a.test/seed"]);
    assert_eq!(end, CrawlEnd::Exhausted);
    paths(&sites)
}

#[test]
fn each_strategy_has_its_order() {
    for (name, expected) in [
        ("basic", "/ /seed /a /b /none /s1 /a1 /a2 /b1 /a11 /b1 /b11"),
        ("fifo", "/ /seed /a /b /none /s1 /a1 /a2 /b1 /a11 /b1 /b11"),
        ("lifo", "/seed /s1 / /none /b /a1 /a11 /b1 /a /a2 /b1 /b11"),
        ("breadth_first", "/ /seed /a /b /none /s1 /a1 /a2 /b1 /a11 /b1 /b11"),
        ("depth_first", "/ /a /a1 /a11 /a2 /b /b1 /none /seed /s1 /b1 /b11"),
    ] {
        assert_eq!(sequence(name, 1), expected, "{name}");
    }
}

/// The same with three URLs a claim.
#[test]
fn several_at_once_keep_the_order_of_what_is_there() {
    for (name, expected) in [
        ("fifo", "/ /seed /a /b /none /s1 /a1 /a2 /b1 /a11 /b1 /b11"),
        ("lifo", "/seed / /none /b /a /a2 /a1 /b1 /a11 /s1 /b1 /b11"),
        ("breadth_first", "/ /seed /a /b /none /s1 /a1 /a2 /b1 /a11 /b1 /b11"),
        ("depth_first", "/ /seed /a /b /none /a1 /a2 /b1 /a11 /s1 /b1 /b11"),
    ] {
        assert_eq!(sequence(name, 3), expected, "{name}");
    }
}

/// What comes later and is nearer goes first, where that is the strategy; else it waits.
#[test]
fn a_seed_that_comes_later_has_its_place() {
    for (name, place) in [("breadth_first", 3), ("depth_first", 8), ("fifo", 7), ("lifo", 3)] {
        let mut sites = with_strategy(graph(), name, &[]);
        sites.settings.order = if name == "lifo" { Order::Lifo } else { Order::Fifo };
        let world = sites.clone();
        sites.crawl_while(&["http://a.test/"], async move |handle, _| {
            // After three pages.
            world.sleep(Duration::from_millis(2500)).await;
            handle
                .seed(vec![trapline_crawl::candidate::Prospect::seed("http://a.test/seed").expect("a URL")])
                .await;
        });
        let asked = paths(&sites);
        assert_eq!(asked.split(' ').position(|path| path == "/seed"), Some(place), "{name}: {asked}");
    }
}

#[test]
fn an_order_is_fixed_when_a_crawl_begins() {
    let sites = with_strategy(graph(), "lifo", &[]);
    let refused = sites.crawl_that_cannot(&["http://a.test/"]);
    assert!(
        refused.contains("needs the order `lifo`") && refused.contains("begin another crawl"),
        "{refused}"
    );
    assert_eq!(sites.asked(), Vec::<String>::new());
}

#[test]
fn scores_come_of_rules() {
    let sites = Sites::of(&[
        ("http://a.test/", &["/old", "/news/1", "/shop?page=2", "/shop", "/news/old", "/secret"]),
        ("http://a.test/news/1", &["/old"]),
    ]);
    let rules = [
        ("start", "0.4"),
        ("rule", "0.9 /news/"),
        ("rule", "-0.3 [?]page="),
        ("rule", "-0.2 old"),
        ("rule", "0 secret"),
        ("floor", "0.05"),
    ];
    let sites = with_strategy(sites, "score", &rules);
    sites.crawl(&["http://a.test/"]);
    assert_eq!(paths(&sites), "/ /news/1 /news/old /shop /old /shop?page=2");
    let skipped = sites.skipped();
    assert_eq!(
        skipped.iter().map(|(url, why, detail)| (&**url, &**why, &**detail)).collect::<Vec<_>>(),
        [("http://a.test/secret", "strategy", "its score is 0.00, and less than 0.05")]
    );
}

/// What waits already is moved where a better link to it is found: here by depth, which differs by way.
#[test]
fn a_better_score_moves_what_waits() {
    let sites = Sites::of(&[
        ("http://a.test/", &["/x1", "/y", "/far/1"]),
        ("http://a.test/x1", &["/far/2"]),
        ("http://a.test/y", &["/z"]),
        ("http://a.test/far/1", &["/z"]),
    ])
    .put("http://a.test/far/2", [redirect("http://a.test/z")]);
    // `/z` is not worth much, until somebody says otherwise.
    let sites = sites.with(|options| options.strategy = choice("turning", &[]));
    sites.crawl_made(&["http://a.test/"], |builder| builder.strategy("turning", turning), async |_, _| ());
    let asked = paths(&sites);
    let place = |path: &str| asked.split(' ').position(|other| other == path);
    assert_eq!(asked, "/ /x1 /y /z /far/1 /far/2");
    assert!(place("/z") < place("/far/1"));
}

/// Thinks little of `/z`, and much of it once `/y` was seen.
#[derive(Debug)]
struct Turning;

fn turning(_: &mut Arguments) -> Result<Arc<dyn Strategy>, ArgumentError> {
    Ok(Arc::new(Turning))
}

impl Strategy for Turning {
    fn name(&self) -> &'static str {
        "turning"
    }

    fn links(&self, _: &Seen<'_>, links: &[FoundLink<'_>], _: &mut Memory) -> Vec<Wish> {
        let score = |link: &FoundLink<'_>| if link.request.url.ends_with("/z") { 0.1 } else { 0.5 };
        links.iter().map(|link| Wish::score(score(link))).collect()
    }

    fn page(&self, seen: &Seen<'_>, _: &mut Memory) -> After {
        let mut after = After::default();
        if seen.url.path() == "/y" {
            // No link, and only a score: it waits already.
            after.requests.push((Request::get("http://a.test/z"), Wish::better(0.9)));
        }
        after
    }
}

#[test]
fn revisiting_never_ends_and_keeps_its_interval() {
    let sites = Sites::of(&[("http://a.test/", &["/gone"])])
        .put("http://a.test/gone", [silence()])
        .with(|options| options.retry.max = 0);
    let sites = with_strategy(sites, "revisit", &[("interval", "1h")])
        .with(|options| options.max_time = Some(Duration::from_secs(3 * 3600 + 60)));
    assert_eq!(sites.crawl(&["http://a.test/"]), CrawlEnd::MaxTime);
    let began = |path: &str| -> Vec<Timestamp> {
        let of_it = sites.seen().into_iter().filter(|seen| seen.url == format!("http://a.test{path}"));
        of_it.map(|seen| seen.began).collect()
    };
    for path in ["/", "/gone"] {
        let began = began(path);
        assert_eq!(began.len(), 4, "{path}: {began:?}");
        for pair in began.windows(2) {
            let between = pair[1].since(pair[0]).as_secs();
            assert!((3600..3605).contains(&between), "{path}: {between} s");
        }
    }
}

/// A site with a robots.txt that names a sitemap, and a hundred pages.
fn site() -> Sites {
    let links: Vec<String> =
        (0..20).map(|n| format!("/p{n}")).chain(["/team".to_owned(), "http://b.test/".to_owned()]).collect();
    let links: Vec<&str> = links.iter().map(String::as_str).collect();
    let listed = "<urlset><url><loc>http://a.test/listed</loc></url></urlset>";
    Sites::of(&[("http://a.test/", &links), ("http://a.test/deep/page", &["/p1"])])
        .put("http://a.test/map.xml", [html(listed).with("content-type", "application/xml")])
        .robots("a.test", RobotsTxt { sitemaps: vec!["http://a.test/map.xml"], ..RobotsTxt::default() })
        .with(|options| options.sitemaps = true)
}

#[test]
fn discovery_takes_the_best_of_a_site_and_not_too_much() {
    let sites = with_strategy(site(), "discovery", &[("pages", "6"), ("interest", "/team")])
        .with(|options| options.scope = trapline_crawl::candidate::ScopeKind::Any);
    assert_eq!(sites.crawl(&["http://a.test/deep/page"]), CrawlEnd::Exhausted);
    // The home page comes of itself, sitemaps before all else, what interests before the rest; six pages beside those.
    let asked = paths(&sites);
    assert!(asked.starts_with("/robots.txt /map.xml / /team "), "{asked}");
    let place = |path: &str| asked.split(' ').position(|other| other == path).unwrap_or(usize::MAX);
    assert!(place("/team") < place("/p2"), "{asked}");
    let pages =
        asked.split(' ').filter(|path| !matches!(*path, "/robots.txt" | "/" | "/map.xml" | "/deep/page"));
    assert_eq!(pages.count(), 6, "{asked}");
    let left_out: Vec<_> = sites.skipped().into_iter().filter(|(_, why, _)| why == "strategy").collect();
    assert!(
        left_out.iter().any(|(url, _, why)| url == "http://b.test/" && why == "another site"),
        "{left_out:?}"
    );
    assert!(left_out.iter().any(|(_, _, why)| why == "6 pages of this site are enough"), "{left_out:?}");
}

/// How many pages there were is kept in the store: a crawl that goes on counts on.
#[test]
fn what_is_remembered_survives_a_restart() {
    let sites = with_strategy(site(), "discovery", &[("pages", "6")]);
    let first = sites.clone().with(|options| options.max_pages = Some(3));
    assert_eq!(first.crawl(&["http://a.test/"]), CrawlEnd::MaxPages);
    let note = sites.world.run(async {
        let frontier = sites.frontier().await;
        let scan = Scan::new(Query::Notes { prefix: "strategy/".to_owned() });
        match frontier.scan(sites.world.now(), &scan).await.unwrap().rows {
            Rows::Notes(notes) => notes,
            rows => panic!("{rows:?}"),
        }
    });
    assert_eq!(note.len(), 1);
    assert_eq!(note[0].key, "strategy/discovery/a.test/");
    assert_eq!(String::from_utf8_lossy(&note[0].value), "came=3\npages=6\nsitemaps=1\n");
    assert_eq!(sites.crawl(&[]), CrawlEnd::Exhausted);
    let pages = sites.asked().iter().filter(|url| url.contains("/p") || url.ends_with("listed")).count();
    assert_eq!(pages, 6, "{:?}", sites.asked());
}

/// A site that never answers is given up, with all that waits there; one that once did is not.
#[test]
fn discovery_gives_dead_sites_up() {
    let pages: Vec<String> = (0..10).map(|n| format!("http://dead.test/{n}")).collect();
    let seeds: Vec<&str> = pages.iter().map(String::as_str).chain(["http://slow.test/"]).collect();
    let sites = pages.iter().fold(Sites::new(), |sites, url| sites.put(url, [silence()]));
    let sites = sites
        .put("http://dead.test/", [silence()])
        .put("http://slow.test/", [page(&["/1", "/2", "/3"])])
        .put("http://slow.test/1", [silence()])
        .put("http://slow.test/2", [silence()])
        .put("http://slow.test/3", [silence()]);
    let sites = with_strategy(sites, "discovery", &[("errors", "3")]).with(|options| options.retry.max = 1);
    assert_eq!(sites.crawl(&seeds), CrawlEnd::Exhausted);
    let asked = |host: &str| sites.asked().iter().filter(|url| url.contains(host)).count();
    assert_eq!(asked("dead.test"), 3);
    assert_eq!(asked("slow.test"), 1 + 3 * 2);
    let given_up = sites.skipped().into_iter().filter(|(_, why, _)| why == "strategy");
    assert_eq!(given_up.filter(|(_, _, detail)| detail.contains("timeout")).count(), 11);
}

#[test]
fn a_goal_ends_the_crawl_and_is_told() {
    let sites = with_strategy(graph(), "basic", &[("pages", "3")]);
    let told = Arc::new(std::sync::Mutex::new(None));
    let tell = Arc::clone(&told);
    let end = sites.crawl_while(&["http://a.test/"], async move |handle, _| {
        *tell.lock().unwrap() = Some(handle);
    });
    assert_eq!(end, CrawlEnd::Goal);
    let handle = told.lock().unwrap().take().expect("the crawl has begun");
    assert_eq!(handle.tally().goal.as_deref(), Some("3 pages are done"));
    assert_eq!(sites.asked().len(), 3);
}

/// From breadth first to depth first in the middle of a crawl: what is found from then on goes by the new one.
#[test]
fn a_strategy_is_exchanged_while_the_crawl_runs() {
    let sites = with_strategy(graph(), "breadth_first", &[]);
    let world = sites.clone();
    let answers = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&answers);
    sites.crawl_while(&["http://a.test/"], async move |handle, _| {
        world.sleep(Duration::from_millis(500)).await;
        for name in ["depth_first", "nonsense", "lifo"] {
            let mut options = world.options.clone();
            options.strategy = choice(name, &[]);
            let answer = handle.reload(Reload::options(options)).await.expect("it runs");
            heard.lock().unwrap().push(answer);
        }
    });
    // `/a` and its like were found by breadth: class 1. What they link to has class 253, and deeper goes first among it.
    assert_eq!(paths(&sites), "/ /a /b /none /a1 /a11 /a2 /b1 /b1 /b11");
    let answers = answers.lock().unwrap();
    assert_eq!(answers[0], Ok(()));
    assert!(answers[1].as_ref().unwrap_err().contains("there is no strategy `nonsense`; there are basic,"));
    assert!(answers[2].as_ref().unwrap_err().contains("needs the order `lifo`"));
}

/// Some hosts are told other things.
#[test]
fn hosts_have_arguments_of_their_own() {
    let told = |pages: &str| {
        let strategy = vec![("pages".to_owned(), pages.to_owned())];
        let own = HostTerms { hosts: "b.test".parse().unwrap(), strategy, ..HostTerms::default() };
        // The most exact entry is all that counts, also if it tells a strategy nothing.
        let untold = HostTerms { hosts: "a.test".parse().unwrap(), ..HostTerms::default() };
        let wide = HostTerms { hosts: "*.test".parse().unwrap(), ..own.clone() };
        vec![own, untold, wide].into()
    };
    let home = |host: &str| (format!("http://{host}/"), ["/1", "/2", "/3", "/4"]);
    let homes = [home("a.test"), home("b.test")];
    let sites = homes.iter().fold(Sites::new(), |sites, (url, links)| sites.put(url, [page(links)]));
    let sites = with_strategy(sites, "discovery", &[("pages", "3"), ("errors", "2")]).with(|options| {
        options.queue.hosts = told("1");
    });
    sites.crawl(&["http://a.test/", "http://b.test/"]);
    let asked = |host: &str| sites.asked().iter().filter(|url| url.contains(host)).count();
    assert_eq!((asked("a.test"), asked("b.test")), (4, 2), "{:?}", sites.asked());

    let sites = sites.with(|options| options.queue.hosts = told("many"));
    let error = sites.world.run(async {
        sites.builder().await.build(Arc::new(sites.clone())).map(|_| ()).unwrap_err().to_string()
    });
    assert!(error.starts_with("for b.test: the strategy `discovery` cannot do with pages=many"), "{error}");
}

#[test]
fn mistakes_are_told_with_what_would_do() {
    let shelf = StrategyShelf::default();
    for (name, arguments, message) in [
        ("discovry", &[][..], "there is no strategy `discovry`; did you mean `discovery`?"),
        ("fifo", &[("x", "1")], "the strategy `fifo` has no argument `x`; it takes none"),
        (
            "revisit",
            &[("intervl", "1d")],
            "the strategy `revisit` has no argument `intervl`; did you mean `interval`?",
        ),
        ("revisit", &[("interval", "often")], "the strategy `revisit` cannot do with interval=often: "),
        ("revisit", &[("interval", "0")], "no page would ever be left alone"),
        (
            "revisit",
            &[("interval", "1d"), ("interval", "2d")],
            "the strategy `revisit` was given `interval` twice",
        ),
        ("discovery", &[("pages", "-1")], "cannot do with pages=-1: it is no number that fits"),
        ("discovery", &[("interest", "(")], "cannot do with interest=(: unclosed group"),
        ("score", &[("rule", "0.5")], "write a score, a space and a regular expression"),
        ("score", &[("rule", "much /x")], "`much` is no score"),
        ("score", &[("rule", "7 /x")], "a score lies between 0 and 1"),
        ("score", &[("rule", "0.5 [")], "unclosed character class"),
        ("score", &[("start", "NaN")], "it must lie between -1 and 1"),
    ] {
        let error = shelf.make(&choice(name, arguments)).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(message), "{error} has no {message}");
    }
    for (name, ..) in BUILT_IN {
        assert_eq!(shelf.make(&choice(name, &[])).expect("its usual arguments do").name(), name);
    }
}

/// A strategy that panics costs a dead letter, like every processor.
#[test]
fn a_strategy_that_panics_costs_a_page() {
    #[derive(Debug)]
    struct Panicking;
    impl Strategy for Panicking {
        fn name(&self) -> &'static str {
            "panicking"
        }
        fn page(&self, seen: &Seen<'_>, _: &mut Memory) -> After {
            assert!(seen.url.path() != "/a", "on purpose");
            After::default()
        }
    }
    let sites = graph().with(|options| options.strategy = choice("panicking", &[]));
    let make = |_: &mut Arguments| Ok(Arc::new(Panicking) as Arc<dyn Strategy>);
    sites.crawl_made(&["http://a.test/"], |builder| builder.strategy("panicking", make), async |_, _| ());
    assert!(sites.skipped().iter().any(|(url, why, detail)| {
        url == "http://a.test/a" && why == "panic" && detail.contains("`strategy`: on purpose")
    }));
    assert!(sites.asked().contains(&"http://a.test/b11".to_owned()));
}

#[test]
fn wishes_have_classes() {
    assert_eq!(Wish::score(1.0), Wish::Class(0));
    assert_eq!(Wish::better(0.0), Wish::Better(255));
    assert_eq!(Wish::score(f32::NAN), Wish::Class(255));
}
