//! robots.txt and sitemaps.

use trapline_core::parse_url;

use crate::robots::{Because, CRAWL_DELAY_MAX, ROBOTS_BYTES_MAX, Robots};
use crate::sitemap::{Sitemap, SitemapLimits};

/// Any file is read, keeps to its limits, can be kept, and says the same when it comes back.
pub fn robots(bytes: &[u8]) {
    let robots = Robots::parse(bytes);
    let lines = bytes.len().min(ROBOTS_BYTES_MAX) + 2;
    let rules: usize = robots.groups().map(|group| group.rules().count() + group.agents().count()).sum();
    assert!(rules <= lines && robots.sitemaps().count() <= lines && robots.faults().len() <= 1_000);
    for group in robots.groups() {
        for rule in group.rules() {
            assert!(rule.pattern.bytes().all(|byte| byte.is_ascii_graphic()), "{rule}");
        }
    }
    let kept = robots.to_bytes();
    let back = Robots::from_bytes(&kept).expect("what was written can be read");
    assert_eq!(back.to_bytes(), kept);
    let name = robots.groups().last().and_then(|group| group.agents().last()).map_or("x", |(_, name)| name);
    for agent in ["trapline", "*", name] {
        let (rules, same) = (robots.for_agent(agent), back.for_agent(agent));
        assert!(rules.crawl_delay().is_none_or(|delay| delay <= CRAWL_DELAY_MAX));
        assert!(rules.check_path("/robots.txt").allowed);
        let text = String::from_utf8_lossy(bytes);
        for path in text.lines().chain(["/", "/index.html"]).take(50) {
            assert_eq!(rules.check_path(path), same.check_path(path));
        }
    }
}

/// Any bytes that are taken for a kept file are what that file is kept as.
pub fn robots_kept(bytes: &[u8]) {
    if let Ok(robots) = Robots::from_bytes(bytes) {
        assert_eq!(robots.to_bytes(), bytes);
        robots.for_agent("trapline").check_path("/a/b?c");
    }
}

/// The decision is that of a matcher which is too simple to be wrong. The first line is a path, the others are patterns.
pub fn robots_match(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(2_000)];
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let path = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let mut file = b"user-agent:*\n".to_vec();
    for (number, line) in lines.enumerate() {
        file.extend_from_slice(if number % 3 == 0 { b"allow:" } else { b"disallow:" });
        file.extend_from_slice(line);
        file.push(b'\n');
    }
    let robots = Robots::parse(&file);
    let rules = robots.for_agent("x");
    let decision = rules.check_path(&path);
    if matches!(decision.because, Because::RobotsTxt | Because::TooCostly) {
        return;
    }
    let written = path.split('#').next().unwrap_or_default();
    let rooted = if written.starts_with('/') { written.to_owned() } else { format!("/{written}") };
    let spelled = crate::robots::spelled(&rooted);
    let matching = robots.groups().flat_map(|group| group.rules().collect::<Vec<_>>());
    let matching = matching.filter(|rule| matches(rule.pattern.as_bytes(), &spelled));
    let best = matching.map(|rule| (rule.pattern.len(), rule.allows)).max();
    let found = decision.line.map(|line| (line.pattern.len(), line.allows));
    assert_eq!(found, best, "{path:?} in {}", String::from_utf8_lossy(&file));
}

/// Column by column, everything tried.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, anchored) = match pattern {
        [pattern @ .., b'$'] => (pattern, true),
        pattern => (pattern, false),
    };
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for byte in pattern {
        let mut any = false;
        let mut before = false;
        for place in 0..=path.len() {
            let here = reached[place];
            any |= here;
            reached[place] = if *byte == b'*' { any } else { before && path[place - 1] == *byte };
            before = here;
        }
    }
    if anchored { reached[path.len()] } else { reached.contains(&true) }
}

/// Any bytes are read, within small limits too, and what is found is of the web.
pub fn sitemap(bytes: &[u8]) {
    let url = parse_url("https://a.example/dir/sitemap.xml", None).expect("a good URL");
    let tight = SitemapLimits { entries_max: 5, decoded_bytes_max: 1_000, url_bytes_max: 50, faults_max: 3 };
    for limits in [SitemapLimits { decoded_bytes_max: 1 << 20, ..SitemapLimits::default() }, tight] {
        let sitemap = Sitemap::read(&url, bytes, &limits);
        assert!(sitemap.entries.len() <= limits.entries_max && sitemap.faults.len() <= limits.faults_max);
        for entry in &sitemap.entries {
            assert!(matches!(entry.url.scheme(), "http" | "https"));
            assert!(entry.url.as_str().len() <= 3 * limits.url_bytes_max);
            assert_eq!(entry.foreign, entry.url.host_str() != Some("a.example"));
            assert!(entry.priority.is_none_or(|priority| (0.0..=1.0).contains(&priority)));
        }
        assert_eq!(Sitemap::read(&url, bytes, &limits), sitemap, "twice");
    }
}
