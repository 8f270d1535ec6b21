//! RFC 9309, and what large crawlers do where it is silent, case by case.

use std::time::Duration;

use trapline_extract::{Because, Robots, RobotsFaultKind};

/// Checks decisions for one agent: `+` before a path that is allowed, `-` before one that is not.
#[track_caller]
fn check(file: impl AsRef<[u8]>, agent: &str, paths: &str) {
    let rules = Robots::parse(file.as_ref()).for_agent(agent);
    for word in paths.split(' ') {
        let (expected, path) = word.split_at(1);
        let decision = rules.check_path(path);
        assert_eq!(decision.allowed, expected == "+", "{path} for {agent}: {decision:?}");
        assert!(matches!(expected, "+" | "-"), "{word}");
        let url = trapline_core::parse_url(&format!("https://a.example{path}"), None).unwrap();
        assert_eq!(rules.check(&url), decision, "{path} as a URL");
    }
}

/// The same with these rules for everybody.
#[track_caller]
fn rules(rules: &str, paths: &str) {
    check(format!("User-agent: *\n{rules}"), "trapline", paths);
}

#[test]
fn a_rule_matches_what_begins_with_it() {
    rules("Disallow: /fish", "-/fish -/fish.html -/fish/salmon.html -/fishheads -/fish?id=1 +/Fish +/catfish +/");
    rules("Disallow: /fish/", "-/fish/ -/fish/x +/fish +/fish.html +/animals/fish/");
    rules("Disallow: /", "-/ -/a -/?q");
    rules("Disallow:", "+/ +/a");
    rules("Disallow: /a\nDisallow:", "-/a +/b");
    rules("Allow: /a", "+/a +/b");
    rules("Disallow: /a?", "+/a -/a?b");
}

#[test]
fn the_longest_rule_wins_and_allow_where_two_are_equal() {
    rules("Allow: /p\nDisallow: /", "+/page -/x");
    rules("Disallow: /\nAllow: /p", "+/page -/x");
    rules("Allow: /folder\nDisallow: /folder", "+/folder/page");
    rules("Disallow: /folder\nAllow: /folder", "+/folder/page");
    rules("Allow: /page\nDisallow: /*.htm", "-/page.htm +/page.html2 -/x.htm".replace("+/page.html2", "-/page.html2").as_str());
    rules("Allow: /page\nDisallow: /*.ph", "+/page.php5 -/x.ph");
    rules("Allow: /$\nDisallow: /", "+/ -/page.htm -/?a");
    rules("Allow: /example/page/\nDisallow: /example/page/disallowed.gif", "-/example/page/disallowed.gif +/example/page/x");
    rules("Disallow: /a\nAllow: /a/b\nDisallow: /a/b/c\nAllow: /a/b/c/d", "-/a +/a/b -/a/b/c +/a/b/c/d -/a/c");
    rules("Disallow: /a*\nAllow: /a", "-/a -/ab");
    rules("Disallow: /a****\nAllow: /abc", "-/abc");
    rules("Disallow: /a$\nAllow: /a", "-/a +/ab");
}

#[test]
fn a_star_is_anything_and_a_dollar_the_end() {
    rules("Disallow: /fish*", "-/fish -/fish.html +/catfish");
    rules("Disallow: *", "-/ -/x");
    rules("Disallow: *x", "+/ -/x -/a/b?c=x");
    rules("Disallow: /*.php", "-/index.php -/filename.php -/folder/any.php.file.html -/f.php/ +/ +/windows.PHP");
    rules("Disallow: /*.php$", "-/filename.php -/folder/filename.php +/filename.php?p +/filename.php/ +/filename.php5");
    rules("Disallow: /fish*.php", "-/fish.php -/fishheads/catfish.php?p +/Fish.PHP +/fish.ph");
    rules("Disallow: /a*b*c$", "-/abc -/axbxc -/abcbc +/abcd +/acb");
    rules("Disallow: /a*aa$", "+/aa -/aaa -/aaaa +/aab");
    rules("Disallow: /*aab", "-/aaab -/aaaab +/aaa");
    rules("Disallow: /$", "-/ +/a");
    rules("Disallow: /*$", "-/ -/a");
    rules("Disallow: /***a***$", "-/a -/b/a/c +/b");
    rules("Disallow: /a$b", "+/a -/a$b -/a%24b +/ab");
    rules("Disallow: /a$$", "-/a$ +/a +/a$$");
    rules("Disallow: /*/*/x", "-/a/b/x -///x +/a/x");
    rules("Disallow: /*?*sort=", "-/l?sort=1 -/l?a=b&sort=1 +/l +/sort=");
}

#[test]
fn percent_encoding_makes_no_difference() {
    rules("Disallow: /foo/bar/ツ", "-/foo/bar/ツ -/foo/bar/%E3%83%84 -/foo/bar/%e3%83%84 +/foo/bar/x");
    rules("Disallow: /foo/bar/%e3%83%84", "-/foo/bar/ツ -/foo/bar/%E3%83%84");
    rules("Disallow: /foo/bar/%62%61%7A", "-/foo/bar/baz -/foo/bar/%62%61%7A -/foo/bar/b%61z");
    rules("Disallow: /foo/bar/baz", "-/foo/bar/%62%61%7a");
    rules("Disallow: /a%3cd.html", "-/a%3Cd.html -/a%3cd.html -/a<d.html");
    rules("Disallow: /a<d", "-/a%3cd");
    rules("Disallow: /a%2fb", "-/a%2Fb -/a%2fb +/a/b");
    rules("Disallow: /a/b", "+/a%2fb -/a/b");
    rules("Disallow: /%7Ejoe/", "-/~joe/ -/%7ejoe/");
    rules("Disallow: /~joe/", "-/%7Ejoe/");
    rules("Disallow: /a b", "-/a%20b");
    rules("Disallow: /path/file-with-a-%2A.html", "-/path/file-with-a-*.html -/path/file-with-a-%2a.html +/path/file-with-a-x.html");
    rules("Disallow: /path/foo-%24", "-/path/foo-$ -/path/foo-$x +/path/foo-");
    rules("Disallow: /100%", "-/100% -/100%/x +/100");
    rules("Disallow: /?q=a:b&c=d/e", "-/?q=a:b&c=d/e +/?q=a%3Ab");
    rules("Disallow: /a|b", "-/a|b -/a%7cb");
}

#[test]
fn octets_that_are_no_utf_8_are_octets() {
    check(b"User-agent: *\nDisallow: /\xe4", "a", "-/%E4 -/%e4x +/ä");
    check(b"User-agent: *\nDisallow: /a\0b", "a", "-/a%00b +/a");
}

#[test]
fn agents_are_found_by_their_product_token() {
    let file = "User-agent: FooBot\nDisallow: /foo\n\nUser-agent: BarBot/1.2\nDisallow: /bar\n\n\
                User-agent: *\nDisallow: /all\n";
    check(file, "foobot", "-/foo +/bar +/all");
    check(file, "FOOBOT/7.1 (+https://a.example)", "-/foo +/bar +/all");
    check(file, "barbot", "+/foo -/bar +/all");
    check(file, "foo", "+/foo +/bar -/all");
    check(file, "foobot-news", "+/foo -/all");
    check(file, "other", "+/foo -/all");
    check(file, "*", "+/foo -/all");
    check(file, "", "+/foo -/all");
    check("User-agent: foo bot\nDisallow: /\n", "foo", "-/");
    check("User-agent: foobot*\nDisallow: /\n", "foobot", "-/");
    check("User-agent: foobot\nDisallow: /\n", "bar", "+/");
    check("User-agent: * foo\nDisallow: /\n", "bar", "-/");
    check("User-agent:\nDisallow: /\n", "bar", "+/");
}

#[test]
fn the_most_specific_name_counts() {
    let robots = Robots::parse(b"User-agent: foo\nDisallow: /foo\nUser-agent: foo-news\nDisallow: /news\nUser-agent: *\nDisallow: /");
    let rules = robots.for_agents(&["foo-news/1.0", "foo"]);
    assert!(!rules.check_path("/news").allowed && rules.check_path("/foo").allowed);
    let rules = robots.for_agents(&["foo-images", "foo"]);
    assert!(rules.check_path("/news").allowed && !rules.check_path("/foo").allowed);
    assert!(!robots.for_agents(&[]).check_path("/x").allowed);
}

#[test]
fn groups_of_an_agent_are_one() {
    let file = "User-agent: a\nUser-agent: b\nDisallow: /1\nUser-agent: b\nDisallow: /2\nuser-agent: A\nDisallow: /3\n";
    check(file, "a", "-/1 +/2 -/3");
    check(file, "b", "-/1 -/2 +/3");
    check("User-agent: *\nDisallow: /1\nUser-agent: *\nDisallow: /2", "a", "-/1 -/2");
    check("User-agent: a\nDisallow: /1\nUser-agent: *\nDisallow: /2", "a", "-/1 +/2");
    check("User-agent: a\nUser-agent: *\nDisallow: /1\nUser-agent: b\nDisallow:", "b", "+/1");
    check("User-agent: a\n\nUser-agent: b\n\nDisallow: /", "a", "-/");
}

#[test]
fn other_lines_do_not_split_a_group() {
    check("User-agent: a\nSitemap: /s\nUser-agent: b\nDisallow: /", "a", "-/");
    check("User-agent: a\nUnknown: x\nnonsense\n# more\nUser-agent: b\nDisallow: /", "a", "-/");
    check("User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /", "a", "-/");
    check("User-agent: a\nDisallow: /1\nSitemap: /s\nHost: x\nDisallow: /2", "a", "-/1 -/2");
    check("User-agent: a\nDisallow:\nUser-agent: b\nDisallow: /", "a", "+/");
    check("User-agent: a\nAllow\nUser-agent: b\nDisallow: /", "a", "-/");
}

#[test]
fn odd_lines_are_understood() {
    check("\u{feff}User-agent: *\r\nDisallow: /a\r\n\r\nDisallow: /b", "x", "-/a -/b");
    check("User-agent: *\rDisallow: /a\rDisallow: /b\r", "x", "-/a -/b");
    check("User-agent: *\n\rDisallow: /a\n\n\rDisallow: /b", "x", "-/a -/b");
    check("  uSeR-aGeNt \t:\t*  # all\n\tDISALLOW :/a#b", "x", "-/a -/a#b +/b");
    check("User-agent: *\nDisallow /a\ndissallow: /b\nDisalow: /c\ndisallow /d e", "x", "-/a -/b -/c +/d");
    check("useragent: *\nDisallow: /a", "x", "-/a");
    check("user agent: *\nDisallow: /a", "x", "-/a");
    check("Disallow: /a\nUser-agent: *\nDisallow: /b", "x", "+/a -/b");
    check("User-agent: *\nDisallow: a\nDisallow: https://a.example/b", "x", "+/a +/b");
    check("<html><body>Not found</body></html>", "x", "+/");
    check("", "x", "+/");
    check(b"\xff\xfeU\0s\0e\0r\0-\0a\0g\0e\0n\0t\0:\0*\0\n\0D\0i\0s\0a\0l\0l\0o\0w\0:\0/\0a\0", "x", "-/a +/b");
}

#[test]
fn robots_txt_itself_is_always_allowed() {
    rules("Disallow: /", "+/robots.txt -/robots.txt?a -/robots.txt/ -/a/robots.txt");
    let decision = Robots::disallow_all();
    let rules = decision.for_agent("a");
    assert_eq!(rules.check_path("/robots.txt").because, Because::RobotsTxt);
    assert_eq!(rules.check_path("/%72obots.txt").because, Because::Unreachable);
}

#[test]
fn the_line_that_decided_is_named() {
    let robots = Robots::parse(b"# us\nUser-agent: *\n\nDisallow: /a\nDisallow: /a\nAllow: /%7ejoe*x$\n");
    let rules = robots.for_agent("x");
    let line = |path| rules.check_path(path).line.map(|line| (line.number, line.to_string()));
    assert_eq!(line("/ab"), Some((4, "Disallow: /a".to_owned())));
    assert_eq!(line("/~joe/x"), Some((6, "Allow: /~joe*x$".to_owned())));
    assert_eq!(line("/b"), None);
    assert_eq!(rules.check_path("/b").because, Because::NoRule);
    let none = Robots::parse(b"User-agent: a\nDisallow: /").for_agent("b");
    assert_eq!(none.check_path("/b").because, Because::NoGroup);
}

#[test]
fn a_path_needs_no_slash_and_its_fragment_does_not_count() {
    rules("Disallow: /a$", "-/a#b");
    let rules = Robots::parse(b"User-agent: *\nDisallow: /a\nDisallow: /$").for_agent("x");
    assert!(!rules.check_path("a").allowed && !rules.check_path("").allowed && rules.check_path("?a").allowed);
    let url = trapline_core::parse_url("https://u:p@a.example:8080?x#/a", None).unwrap();
    assert!(rules.check(&url).allowed);
}

#[test]
fn missing_files_allow_and_unreachable_ones_do_not() {
    assert!(Robots::allow_all().for_agent("a").check_path("/x").allowed);
    assert_eq!(Robots::allow_all().for_agent("a").check_path("/x").because, Because::NoFile);
    assert!(!Robots::disallow_all().for_agent("a").check_path("/x").allowed);
}

#[test]
fn delays_are_clamped_and_belong_to_those_before_them() {
    let delay = |file: &str, agent: &str| Robots::parse(file.as_bytes()).for_agent(agent).crawl_delay();
    let star = |value: &str| delay(&format!("User-agent: *\nCrawl-delay: {value}\nDisallow: /a"), "x");
    assert_eq!(star("10"), Some(Duration::from_secs(10)));
    assert_eq!(star("0.5"), Some(Duration::from_millis(500)));
    assert_eq!(star("0.0001"), Some(Duration::from_millis(1)));
    assert_eq!(star("0"), Some(Duration::ZERO));
    assert_eq!(star("10 seconds"), Some(Duration::from_secs(10)));
    for long in ["1e308", "86401", "99999999999999999999999"] {
        assert_eq!(star(long), Some(Duration::from_hours(24)), "{long}");
    }
    for wrong in ["", "-1", "NaN", "inf", "-inf", "1e999", "ten", "1,5", "0x10"] {
        assert_eq!(star(wrong), None, "{wrong}");
    }
    let file = "User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /x\nUser-agent: a\nCrawl-delay: 3\nCrawl-delay: 4";
    assert_eq!(delay(file, "a"), Some(Duration::from_secs(5)));
    assert_eq!(delay(file, "b"), None);
    assert_eq!(delay("Crawl-delay: 5\nUser-agent: a\nAllow: /", "a"), None);
}

#[test]
fn sitemaps_belong_to_nobody() {
    let robots = Robots::parse(b"Sitemap: https://a.example/1\nUser-agent: a\nSITEMAP:\t/2 # x\nsite-map: https://b.example/3?a b\nSitemap:");
    let found: Vec<_> = robots.sitemaps().collect();
    assert_eq!(found, [(1, "https://a.example/1"), (3, "/2"), (4, "https://b.example/3?a b")]);
}

#[test]
fn faults_are_listed_with_their_lines() {
    use RobotsFaultKind::*;
    let file = "Disallow: /\nUser-agent:\nnonsense\ndissallow /a\nDisallow: a\nCrawl-delay: x\nCrawl-delay: 1e9\nSitemap:\nHost: x\n";
    let robots = Robots::parse(file.as_bytes());
    let faults: Vec<_> = robots.faults().iter().map(|fault| (fault.line, fault.kind)).collect();
    assert_eq!(
        faults,
        [
            (1, OutsideGroup),
            (2, NoAgent),
            (3, NotALine),
            (4, Misspelled),
            (4, MissingColon),
            (5, NoPath),
            (6, NoDelay),
            (7, LongDelay),
            (8, NoSitemap),
        ]
    );
    let many = Robots::parse("x\n".repeat(1_500).as_bytes());
    assert_eq!((many.faults().len(), many.faults_left_off()), (1_000, 500));
}
