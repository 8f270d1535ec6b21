//! The sites that crawls are held against, and wget, which they are held against.

use trapline_testing::{Follow, Nginx, Visits, documentation, wget};

#[test]
fn wget_finds_the_pages_of_a_site_and_their_parts_if_told_to() {
    let policy = documentation().unwrap().into_iter().filter(|site| site.name() == "policy.example");
    let policy = policy.map(|site| site.robots("User-agent: *\nDisallow: /ch-source.html\n"));
    let server = Nginx::start(policy.collect()).unwrap();
    let crawl = |follow| {
        wget(&server.url(0), follow, &server.folder().join("wget")).unwrap();
        Visits::of(&server.take_visits().unwrap(), "policy.example")
    };
    let everything = crawl(Follow::Everything);
    let pages = crawl(Follow::Pages);
    assert_eq!((&everything.repeated(), &pages.repeated()), (&[].into(), &[].into()));
    assert!(everything.paths().is_superset(&pages.paths()));
    assert_eq!((everything.below("/ch-source").len(), pages.below("/ch-source").len()), (0, 0));
    for page in ["/", "/ch-scope.html", "/genindex.html"] {
        assert!(pages.paths().contains(page), "{page} of {:?}", pages.paths());
    }
    let ends_with = |visits: &Visits, end: &str| visits.paths().iter().any(|path| path.ends_with(end));
    assert!(ends_with(&everything, ".css") && !ends_with(&pages, ".css"));
    // One after the other, on one connection.
    assert_eq!(everything.most_at_once(), 1);
    assert!(everything.shortest_gap_ms().is_some_and(|(gap, _)| gap >= 0));
}

#[test]
fn all_sites_are_there() {
    let names: Vec<_> = documentation().unwrap().iter().map(|site| site.name().to_owned()).collect();
    let expected =
        ["apache.example", "policy.example", "postgresql.example", "python.example", "sqlite.example"];
    assert_eq!(names, expected);
}
