//! The cache of robots.txt files: what each answer of a server means, how long it holds, and who is asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use trapline_core::{Timestamp, parse_url};
use trapline_fetch::{
    FetchErrorKind, Fetcher, RobotsCache, RobotsNotes, RobotsOptions, RobotsSource, RobotsStanding,
};
use trapline_frontier::{Frontier, MemoryStore};
use url::Url;

use crate::door::Server;
use crate::hostile::{BROTLI_BOMB, gzip};
use crate::web::{Step, answering, fetcher, leading_to, ok, options, read_head, response, scripted, send};

const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);

fn after(duration: Duration) -> Timestamp {
    NOW + duration
}

fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3600)
}

fn url(server: &Server, path: &str) -> Url {
    parse_url(&format!("http://{}{path}", server.address), None).unwrap()
}

fn cache(notes: Option<Arc<dyn RobotsNotes>>) -> RobotsCache {
    RobotsCache::new(fetcher(), notes, RobotsOptions::default())
}

async fn frontier() -> Arc<Frontier> {
    Arc::new(Frontier::builder("robots").open(MemoryStore::new(), NOW).await.unwrap())
}

/// A server with a robots.txt, and how often it was asked for it.
async fn counted(answer: Vec<u8>) -> (Server, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let server = answering({
        let asked = Arc::clone(&asked);
        move |head| {
            assert!(head.starts_with("GET /robots.txt HTTP/1.1\r\n"), "{head}");
            asked.fetch_add(1, Ordering::SeqCst);
            answer.clone()
        }
    })
    .await;
    (server, asked)
}

#[tokio::test]
async fn the_file_decides_and_is_asked_for_once_a_day() {
    let (server, asked) = counted(ok("", "User-agent: trapline\nDisallow: /no\nCrawl-delay: 2")).await;
    let cache = cache(None);
    assert!(cache.allows(NOW, &url(&server, "/yes")).await);
    assert!(!cache.allows(NOW, &url(&server, "/no/more?x#y")).await);
    let (file, source) = cache.of(after(hours(24) - Duration::from_millis(1)), &url(&server, "/")).await;
    assert_eq!(
        (source, file.standing, file.rules.crawl_delay()),
        (RobotsSource::Memory, RobotsStanding::Found, Some(Duration::from_secs(2)))
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(cache.of(after(hours(24)), &url(&server, "/")).await.1, RobotsSource::Network);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn no_file_allows_everything_and_a_broken_server_nothing() {
    for (status, standing) in [
        ("404 Not Found", RobotsStanding::Missing),
        ("403 Forbidden", RobotsStanding::Missing),
        ("410 Gone", RobotsStanding::Missing),
        ("500 Oops", RobotsStanding::Unreachable),
        ("503 Later", RobotsStanding::Unreachable),
        ("304 Not Modified", RobotsStanding::Unreachable),
        ("204 Empty", RobotsStanding::Found),
    ] {
        let server = answering(move |_| response(status, "", "")).await;
        let (file, _) = cache(None).of(NOW, &url(&server, "/x")).await;
        assert_eq!(file.standing, standing, "{status}");
        assert_eq!(
            file.rules.check(&url(&server, "/x")).allowed,
            standing != RobotsStanding::Unreachable,
            "{status}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_had_or_read_allows_nothing() {
    let silent = scripted(vec![Step::Read, Step::Hold]).await;
    let rude = scripted(vec![Step::Read, Step::Reset]).await;
    let short = scripted(vec![
        Step::Read,
        send("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-agent: *\nAllow: /"),
    ])
    .await;
    let broken = answering(|_| ok("Content-Encoding: gzip\r\n", &gzip(b"User-agent: *")[..15])).await;
    let unknown = answering(|_| ok("Content-Encoding: rot13\r\n", "Hfre-ntrag: *")).await;
    for server in [&silent, &rude, &short, &broken, &unknown] {
        let (file, _) = cache(None).of(NOW, &url(server, "/")).await;
        assert_eq!(file.standing, RobotsStanding::Unreachable);
    }
    let refused = Fetcher::new(trapline_fetch::FetchOptions::default()).unwrap();
    let cache = RobotsCache::new(refused, None, RobotsOptions::default());
    assert!(!cache.allows(NOW, &url(&silent, "/")).await, "an address that is not dialled");
    assert!(!cache.allows(NOW, &parse_url("ftp://a.example/", None).unwrap()).await);
}

#[tokio::test]
async fn a_server_that_fails_is_asked_again_after_a_while_that_doubles() {
    let (server, asked) = counted(response("503 Later", "", "")).await;
    let cache = cache(None);
    let (mut at, mut expected) = (NOW, Duration::from_secs(60));
    for failures in 1..=12 {
        let (file, source) = cache.of(at, &url(&server, "/")).await;
        assert_eq!((file.failures, source), (failures, RobotsSource::Network));
        assert_eq!(file.until.since(at), expected);
        let (_, source) = cache.of(at + (expected - Duration::from_millis(1)), &url(&server, "/")).await;
        assert_eq!(source, RobotsSource::Memory);
        at = at + expected;
        expected = (expected * 2).min(hours(4));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 12);
}

#[tokio::test]
async fn a_few_redirects_are_followed_and_no_more() {
    let hops = |most: u32| {
        answering(move |head| {
            let number: u32 = head.split(' ').nth(1).unwrap().trim_start_matches("/hop").parse().unwrap_or(0);
            if number < most {
                response("301 Moved", &format!("Location: /hop{}\r\n", number + 1), "")
            } else {
                ok("", "User-agent: *\nDisallow: /no")
            }
        })
    };
    let five = hops(5).await;
    let fetched = fetcher().fetch_robots(&url(&five, "/a"), &RobotsOptions::default()).await;
    assert_eq!((fetched.hops, fetched.status, fetched.url.path()), (5, Some(200), "/hop5"));
    assert!(!cache(None).allows(NOW, &url(&five, "/no")).await);
    assert!(cache(None).allows(NOW, &url(&five, "/yes")).await);
    let six = hops(6).await;
    let fetched = fetcher().fetch_robots(&url(&six, "/a"), &RobotsOptions::default()).await;
    assert_eq!(fetched.error_kind().unwrap().as_str(), "redirects");
    assert!(!cache(None).allows(NOW, &url(&six, "/yes")).await);
    let circle = answering(|_| response("302 Found", "Location: /robots.txt\r\n", "")).await;
    assert!(!cache(None).allows(NOW, &url(&circle, "/")).await);
}

#[tokio::test]
async fn redirects_to_private_addresses_and_other_schemes_end_at_the_door() {
    for (target, kind) in [
        ("http://169.254.169.254/latest/meta-data/", "address_refused"),
        ("http://10.0.0.1/robots.txt", "address_refused"),
        ("http://[::ffff:a9fe:a9fe]/", "address_refused"),
        ("http://2852039166/", "address_refused"),
        ("http://127.0.0.1:6379/", "port_refused"),
        ("file:///etc/passwd", "redirect_refused"),
        ("ftp://a.example/robots.txt", "redirect_refused"),
        ("data:text/plain,Allow", "redirect_refused"),
        ("http://[", "redirect_refused"),
    ] {
        let server = answering(move |_| response("302 Found", &format!("Location: {target}\r\n"), "")).await;
        let fetcher = fetcher();
        let fetched = fetcher.fetch_robots(&url(&server, "/"), &RobotsOptions::default()).await;
        assert_eq!(fetched.error_kind().map(FetchErrorKind::as_str), Some(kind), "{target}");
        assert_eq!(fetcher.dialer().counts().connects, 1, "{target}");
        assert!(!cache(None).allows(NOW, &url(&server, "/")).await, "{target}");
    }
}

#[tokio::test]
async fn of_a_huge_file_the_beginning_counts() {
    let long =
        format!("User-agent: *\nDisallow: /first\n{}\nDisallow: /last\n", "# nothing\n".repeat(60_000));
    for server in [
        answering({
            let long = long.clone();
            move |_| ok("", &long)
        })
        .await,
        answering(move |_| ok("Content-Encoding: gzip\r\n", gzip(long.as_bytes()))).await,
    ] {
        let cache = cache(None);
        let (file, _) = cache.of(NOW, &url(&server, "/")).await;
        assert_eq!(file.standing, RobotsStanding::Found);
        assert!(!cache.allows(NOW, &url(&server, "/first")).await);
        assert!(cache.allows(NOW, &url(&server, "/last")).await);
    }
    let bomb = answering(|_| ok("Content-Encoding: br\r\n", BROTLI_BOMB)).await;
    let fetched = fetcher().fetch_robots(&url(&bomb, "/"), &RobotsOptions::default()).await;
    assert!(fetched.body.len() <= 500 << 10 && fetched.truncated.is_some());
}

#[tokio::test]
async fn notes_are_remembered_by_whoever_comes_next_and_for_a_day() {
    let (server, asked) = counted(ok("", "User-agent: *\nDisallow: /no")).await;
    let frontier = frontier().await;
    assert_eq!(cache(Some(frontier.clone())).of(NOW, &url(&server, "/")).await.1, RobotsSource::Network);
    let next = cache(Some(frontier.clone()));
    let later = after(hours(23));
    let (file, source) = next.of(later, &url(&server, "/")).await;
    assert_eq!((source, file.standing, file.fetched), (RobotsSource::Notes, RobotsStanding::Found, NOW));
    assert!(!next.allows(later, &url(&server, "/no")).await);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(cache(Some(frontier)).of(after(hours(24)), &url(&server, "/")).await.1, RobotsSource::Network);
}

#[tokio::test]
async fn failures_are_remembered_beyond_the_process() {
    let (server, _) = counted(response("500 Oops", "", "")).await;
    let frontier = frontier().await;
    let first = cache(Some(frontier.clone())).of(NOW, &url(&server, "/")).await.0;
    assert_eq!((first.failures, first.until), (1, after(Duration::from_secs(60))));
    let second = cache(Some(frontier)).of(first.until, &url(&server, "/")).await.0;
    assert_eq!((second.failures, second.until), (2, first.until + Duration::from_secs(120)));
}

#[tokio::test]
async fn notes_that_cannot_be_read_are_as_good_as_none() {
    let (server, asked) = counted(ok("", "")).await;
    let frontier = frontier().await;
    let authority = format!("http://{}", server.address);
    RobotsNotes::put(&*frontier, NOW, &authority, vec![9; 40], after(hours(1))).await.unwrap();
    assert_eq!(cache(Some(frontier.clone())).of(NOW, &url(&server, "/")).await.1, RobotsSource::Network);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    // No authority is the beginning of another.
    RobotsNotes::put(&*frontier, NOW, "http://a.example:8080", vec![1], after(hours(1))).await.unwrap();
    assert_eq!(RobotsNotes::get(&*frontier, NOW, "http://a.example:80").await.unwrap(), None);
    assert_eq!(RobotsNotes::get(&*frontier, NOW, "http://a.example:8080").await.unwrap(), Some(vec![1]));
}

#[tokio::test]
async fn many_who_ask_at_once_are_one_question() {
    let asked = Arc::new(AtomicUsize::new(0));
    let server = Server::start({
        let asked = Arc::clone(&asked);
        move |mut stream| {
            let asked = Arc::clone(&asked);
            async move {
                let _ = read_head(&mut stream).await;
                asked.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(100)).await;
                let _ = stream.write_all(&ok("", "User-agent: *\nDisallow: /")).await;
            }
        }
    })
    .await;
    let cache = cache(None);
    let all = (0..50).map(|number| {
        let (cache, url) = (cache.clone(), url(&server, &format!("/{number}")));
        tokio::spawn(async move { cache.allows(NOW, &url).await })
    });
    for allowed in futures_util::future::join_all(all).await {
        assert!(!allowed.unwrap());
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn who_gives_up_waiting_leaves_the_question_to_the_next() {
    let (server, asked) = counted(ok("", "")).await;
    let cache = cache(None);
    let url = url(&server, "/");
    // Gives up before the first step is done.
    let given_up = tokio::time::timeout(Duration::ZERO, cache.of(NOW, &url)).await;
    assert!(given_up.is_err() || asked.load(Ordering::SeqCst) == 1);
    assert!(cache.allows(NOW, &url).await);
}

#[tokio::test]
async fn the_memory_of_the_cache_has_a_bound() {
    let body = format!(
        "User-agent: *\n{}",
        (0..500).map(|number| format!("Disallow: /{number}\n")).collect::<String>()
    );
    let server = answering(move |_| ok("", &body)).await;
    let fetcher = Fetcher::new(leading_to(options(), &server)).unwrap();
    let robots = RobotsOptions { hosts_max: 20, memory_bytes_max: 200_000, ..RobotsOptions::default() };
    let cache = RobotsCache::new(fetcher, None, robots);
    for number in 0..60 {
        cache.allows(NOW, &parse_url(&format!("http://h{number}.example/"), None).unwrap()).await;
        let (hosts, bytes) = cache.size();
        assert!(hosts <= 20 && bytes <= 200_000, "{hosts} hosts, {bytes} bytes");
    }
    assert!(cache.size().0 > 1);
}

#[tokio::test]
async fn who_gives_up_leaves_no_more_in_memory_than_who_waits() {
    let silent = scripted(vec![Step::Read, Step::Hold]).await;
    let fetcher = Fetcher::new(leading_to(options(), &silent)).unwrap();
    let few = RobotsOptions { hosts_max: 3, ..RobotsOptions::default() };
    let cache = RobotsCache::new(fetcher, None, few);
    for number in 0..10 {
        let url = parse_url(&format!("http://h{number}.example/"), None).unwrap();
        assert!(tokio::time::timeout(Duration::ZERO, cache.of(NOW, &url)).await.is_err());
    }
    assert_eq!(cache.size().0, 3);
}

#[tokio::test]
async fn what_is_known_is_told_without_asking_anybody() {
    let (server, asked) = counted(ok("", "User-agent: *\nCrawl-delay: 7")).await;
    let notes = frontier().await;
    let page = url(&server, "/x");
    let first = cache(Some(notes.clone()));
    assert!(first.known(NOW, &page).await.is_none());
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    first.of(NOW, &page).await;
    // By this process, and by one that comes after it.
    for cache in [first, cache(Some(notes))] {
        let file = cache.known(after(hours(1)), &page).await.expect("it is known");
        assert_eq!(file.rules.crawl_delay(), Some(Duration::from_secs(7)));
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn sitemaps_count_in_what_is_remembered() {
    let body: String = (0..1000).map(|number| format!("Sitemap: /{number}\n")).collect();
    let (server, _) = counted(ok("", &body)).await;
    let cache = cache(None);
    let (file, _) = cache.of(NOW, &url(&server, "/")).await;
    assert_eq!(file.sitemaps(&url(&server, "/")).len(), 1000);
    assert!(cache.size().1 > 200_000, "{:?}", cache.size());
}

#[tokio::test]
async fn the_most_favoured_of_several_names_may_do_what_any_of_them_may() {
    use trapline_crawl::ports::Robots as _;
    let file = "User-agent: alpha\nDisallow: /\nCrawl-delay: 9\n\nUser-agent: beta\nDisallow: /b\nCrawl-delay: 2\n\n\
                User-agent: gamma\nDisallow: /\nAllow: /b/open";
    let (server, asked) = counted(ok("", file)).await;
    let agents = ["alpha", "beta", "gamma"].map(str::to_owned).to_vec();
    let cache = RobotsCache::new(fetcher(), None, RobotsOptions { agents, ..RobotsOptions::default() });
    for (path, one, favored, delay) in
        [("/", false, true, Some(2)), ("/b", false, false, Some(9)), ("/b/open", false, true, None)]
    {
        let url = url(&server, path);
        assert_eq!(cache.ask(NOW, &url).await.allowed, one, "{path}");
        let word = cache.ask_most_favored(NOW, &url).await;
        assert_eq!((word.allowed, word.crawl_delay.map(|delay| delay.as_secs())), (favored, delay), "{path}");
    }
    let word = cache.ask_most_favored(NOW, &url(&server, "/b")).await;
    assert_eq!(word.line.as_deref(), Some("line 2: Disallow: /"));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}
