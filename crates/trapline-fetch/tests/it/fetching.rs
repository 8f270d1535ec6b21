//! Fetching from servers that behave: what is sent, what is recorded, and when a connection is used again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use tokio::io::AsyncWriteExt;
use trapline_core::Timestamp;
use trapline_fetch::{
    AddressPaceOptions, CookieOptions, Credentials, FetchErrorKind, FetchRequest, Fetcher, FetcherError,
    HostRule, OriginCredentials, PoolOptions, Protocol, Redirect, Truncated, Validators,
};
use trapline_frontier::{PageRecord, Visit};

use crate::door::Server;
use crate::web::{
    Certificate, Step, answering, encrypted, fetcher, healthy, leading_to, ok, options, page, read_head,
    request, response, scripted, send, text,
};

#[tokio::test]
async fn a_page_is_fetched_and_all_about_it_recorded() {
    let server =
        answering(|_| ok("Content-Type: text/html; charset=UTF-8\r\nX-A: 1\r\nx-a:  2\r\n", "<p>hello"))
            .await;
    let fetched = fetcher().fetch(&page(&server, "/a?b#c")).await;
    assert_eq!(fetched.error, None);
    assert_eq!((fetched.status, text(&fetched)), (Some(200), "<p>hello"));
    assert_eq!(fetched.address, Some(server.address));
    assert_eq!(fetched.protocol, Some(Protocol::H1));
    assert_eq!(fetched.charset.as_deref(), Some("utf-8"));
    let names: Vec<_> = fetched.headers.iter().map(|header| (header.name.clone(), header.text())).collect();
    assert_eq!(names[2..], [("X-A".into(), "1".into()), ("x-a".into(), "2".into())]);
    assert_eq!((fetched.sizes.encoded_bytes, fetched.sizes.decoded_bytes), (8, 8));
    assert_eq!(fetched.sizes.header_bytes, 95);
    assert!(fetched.times.first_byte.unwrap() <= fetched.times.total);
    assert!(!fetched.reused && !fetched.retried && fetched.truncated.is_none() && fetched.raw.is_none());
}

#[tokio::test]
async fn a_request_can_have_a_cap_of_its_own() {
    let body = "x".repeat(3 << 20);
    let server = answering(move |_| ok("", &body)).await;
    for (own, bytes, truncated) in [
        (None, 1 << 20, Some(Truncated::EncodedBytes)),
        (Some(1000), 1000, Some(Truncated::DecodedBytes)),
        (Some(4 << 20), 3 << 20, None),
    ] {
        let request = FetchRequest { decoded_bytes_max: own, ..page(&server, "/") };
        let fetched = fetcher().fetch(&request).await;
        assert_eq!((fetched.body.len(), fetched.truncated), (bytes, truncated), "{own:?}");
    }
}

#[tokio::test]
async fn a_connection_carries_many_requests_one_after_the_other() {
    let server = healthy("page").await;
    let fetcher = fetcher();
    for round in 0..5 {
        let fetched = fetcher.fetch(&page(&server, "/")).await;
        assert_eq!((text(&fetched), fetched.reused), ("page", round > 0));
    }
    assert_eq!((server.visitors().await, fetcher.idle_connections()), (1, 1));
}

#[tokio::test]
async fn requests_at_the_same_time_have_a_connection_each_and_idle_ones_are_bounded() {
    let server = healthy("page").await;
    let mut options = options();
    options.pool = PoolOptions { idle_per_origin_max: 3, ..PoolOptions::default() };
    let fetcher = Fetcher::new(options).unwrap();
    let at_once = (0..8).map(|_| {
        let (fetcher, request) = (fetcher.clone(), page(&server, "/"));
        tokio::spawn(async move { fetcher.fetch(&request).await.status })
    });
    for fetched in futures_util::future::join_all(at_once).await {
        assert_eq!(fetched.unwrap(), Some(200));
    }
    assert!(fetcher.idle_connections() <= 3, "{}", fetcher.idle_connections());
}

#[tokio::test]
async fn idle_connections_are_bounded_over_all_origins_and_end_with_time() {
    let mut servers = Vec::new();
    for _ in 0..6 {
        servers.push(healthy("page").await);
    }
    let mut options = options();
    options.pool =
        PoolOptions { idle_max: 4, idle_timeout: Duration::from_millis(150), ..PoolOptions::default() };
    let fetcher = Fetcher::new(options).unwrap();
    for server in &servers {
        fetcher.fetch(&page(server, "/")).await;
    }
    assert_eq!(fetcher.idle_connections(), 4);
    let latest = Instant::now() + Duration::from_secs(5);
    while fetcher.idle_connections() > 0 {
        assert!(Instant::now() < latest, "{} are left", fetcher.idle_connections());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_connection_that_died_in_the_pool_costs_one_retry_and_only_where_that_is_harmless() {
    // Answers once, and hangs up when asked again.
    let server = scripted(vec![Step::Read, send(ok("", "first")), Step::Read]).await;
    let fetcher = fetcher();
    assert_eq!(text(&fetcher.fetch(&page(&server, "/")).await), "first");
    let fetched = fetcher.fetch(&page(&server, "/")).await;
    assert_eq!((text(&fetched), fetched.retried, fetched.reused), ("first", true, false));
    assert_eq!(server.visitors().await, 2);
    let mut post = page(&server, "/");
    post.method = Method::POST;
    post.body = Bytes::from_static(b"once");
    let fetched = fetcher.fetch(&post).await;
    assert_eq!(fetched.error_kind(), Some(FetchErrorKind::Closed));
    assert!(!fetched.retried);
    assert_eq!(server.visitors().await, 2);
}

#[tokio::test]
async fn a_connection_closed_while_idle_is_not_even_tried() {
    let server = scripted(vec![Step::Read, send(ok("", "only"))]).await;
    let fetcher = fetcher();
    assert_eq!(text(&fetcher.fetch(&page(&server, "/")).await), "only");
    // The close is on its way: loopback needs a moment, and a request that comes too early is retried.
    tokio::time::sleep(Duration::from_millis(50)).await;
    let fetched = fetcher.fetch(&page(&server, "/")).await;
    assert_eq!((text(&fetched), fetched.reused, fetched.retried), ("only", false, false));
}

#[tokio::test]
async fn after_anything_odd_a_connection_is_not_used_again() {
    for (what, answer) in [
        ("close", ok("Connection: close\r\n", "x")),
        ("both", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n".to_vec()),
        ("twice", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx".to_vec()),
        ("stray", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n".to_vec()),
        ("stray chunks", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n".to_vec()),
        ("early hints", [b"HTTP/1.1 103 Early\r\n\r\n".to_vec(), ok("", "x")].concat()),
        ("1.0", b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx".to_vec()),
    ] {
        let server = answering(move |_| answer.clone()).await;
        let fetcher = fetcher();
        let fetched = fetcher.fetch(&page(&server, "/")).await;
        assert_eq!((text(&fetched), fetcher.idle_connections()), ("x", 0), "{what}");
        let named = !["close", "1.0"].contains(&what);
        assert_eq!(!fetched.oddities.is_empty(), named, "{what}: {:?}", fetched.oddities);
    }
}

#[tokio::test]
async fn raw_bytes_are_kept_as_they_came() {
    let head = "HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\nX-Odd:   spaced  \r\n\r\n";
    let body = "5;ext=1\r\nhello\r\n0\r\nTrailer: x\r\n\r\n";
    let server = answering(move |_| {
        format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{head}{body}").into_bytes()
    })
    .await;
    let mut options = options();
    options.keep_raw = true;
    let fetcher = Fetcher::new(options).unwrap();
    let fetched = fetcher.fetch(&page(&server, "/")).await;
    let raw = fetched.raw.as_ref().unwrap();
    assert_eq!((text(&fetched), raw.complete, raw.exact), ("hello", true, true));
    assert_eq!((raw.head.as_ref(), raw.body.as_ref()), (head.as_bytes(), body.as_bytes()));
}

#[tokio::test]
async fn raw_bytes_have_a_bound() {
    let server = answering(|_| ok("", "x".repeat(10_000))).await;
    let mut options = options();
    options.keep_raw = true;
    options.limits.raw_bytes_max = 1000;
    let fetched = Fetcher::new(options).unwrap().fetch(&page(&server, "/")).await;
    let raw = fetched.raw.as_ref().unwrap();
    assert_eq!((fetched.body.len(), raw.head.len() + raw.body.len(), raw.complete), (10_000, 1000, false));
}

/// What a request looks like to a server.
async fn echo() -> Server {
    answering(|head| ok("Set-Cookie: k=v; Path=/\r\n", head)).await
}

#[tokio::test]
async fn requests_carry_the_usual_headers_and_those_that_were_asked_for() {
    let server = echo().await;
    let mut options = leading_to(options(), &server);
    options.contact = Some("https://bots.example/about".to_owned());
    options.headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static("en"));
    let mut rule = HostRule::new("*.b.example".parse().unwrap());
    rule.user_agent = Some("other/2".to_owned());
    rule.headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static("de"));
    options.hosts = vec![HostRule::new("*".parse().unwrap()), rule];
    let fetcher = Fetcher::new(options).unwrap();
    let fetched = fetcher.fetch(&request("http://user:secret@a.example/x?y=1#z")).await;
    assert_eq!(
        text(&fetched),
        "GET /x?y=1 HTTP/1.1\r\nhost: a.example\r\n\
         user-agent: trapline/0.1.0 (+https://bots.example/about)\r\n\
         accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
         accept-encoding: gzip, deflate, br, zstd\r\naccept-language: en\r\n\r\n"
    );
    let mut other = request("http://www.b.example/");
    other.headers.insert(header::ACCEPT, HeaderValue::from_static("text/plain"));
    let fetched = fetcher.fetch(&other).await;
    let sent = text(&fetched);
    for line in [
        "host: www.b.example\r\n",
        "user-agent: other/2\r\n",
        "accept-language: de\r\n",
        "accept: text/plain\r\n",
    ] {
        assert!(sent.contains(line), "{line:?} is missing in {sent}");
    }
    assert!(!sent.contains("cookie") && !sent.contains("authorization"), "{sent}");
}

#[tokio::test]
async fn credentials_go_to_their_origin_and_nowhere_else() {
    let server = echo().await;
    let mut options = leading_to(options(), &server);
    let origin = trapline_core::parse_url("http://a.example/ignored", None).unwrap();
    options.credentials = vec![OriginCredentials { origin, credentials: Credentials::new("me", "secret") }];
    let fetcher = Fetcher::new(options).unwrap();
    let sent = async |url: &str| {
        text(&fetcher.fetch(&request(url)).await).contains("authorization: Basic bWU6c2VjcmV0")
    };
    assert!(sent("http://a.example/").await);
    for other in [
        "http://a.example:8080/",
        "http://www.a.example/",
        "http://b.example/",
        "http://a.example.b.example/",
    ] {
        assert!(!sent(other).await, "{other}");
    }
}

#[tokio::test]
async fn credentials_that_would_go_everywhere_are_refused() {
    for name in [header::AUTHORIZATION, header::COOKIE] {
        let mut options = options();
        options.headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static("x"))]);
        assert_eq!(Fetcher::new(options).err(), Some(FetcherError::HeaderForAll(name)));
    }
    let mut options = options();
    options.user_agent = "a\nb".to_owned();
    assert_eq!(
        Fetcher::new(options).err().unwrap().to_string(),
        "`a\nb` cannot be sent as a user agent: use visible ASCII"
    );
}

#[tokio::test]
async fn cookies_are_off_unless_asked_for_and_stay_with_their_host() {
    let server = echo().await;
    let without = Fetcher::new(leading_to(options(), &server)).unwrap();
    without.fetch(&request("http://a.example/")).await;
    assert!(!text(&without.fetch(&request("http://a.example/")).await).contains("cookie"));
    let mut options = leading_to(options(), &server);
    options.cookies = Some(CookieOptions::default());
    let with = Fetcher::new(options).unwrap();
    assert!(!text(&with.fetch(&request("http://a.example/")).await).contains("cookie"));
    assert!(text(&with.fetch(&request("http://a.example/x")).await).contains("cookie: k=v\r\n"));
    assert!(!text(&with.fetch(&request("http://b.example/")).await).contains("cookie"));
}

#[tokio::test]
async fn lenient_tls_is_recorded_and_tells_nobody_who_we_are() {
    let certificate = Certificate::new(&["other.example"]);
    let server = encrypted(&certificate, &[b"http/1.1"], |mut stream| async move {
        let head = read_head(&mut stream).await.unwrap_or_default();
        let _ = stream.write_all(&ok("", head)).await;
    })
    .await;
    let mut options = leading_to(options(), &server);
    let origin = trapline_core::parse_url("https://a.example/", None).unwrap();
    options.credentials = vec![OriginCredentials { origin, credentials: Credentials::new("me", "secret") }];
    let strict = Fetcher::new(options.clone()).unwrap().fetch(&request("https://a.example/")).await;
    assert_eq!(strict.error_kind().unwrap().as_str(), "tls_untrusted");
    let mut rule = HostRule::new("a.example".parse().unwrap());
    rule.lenient_tls = true;
    options.hosts = vec![rule];
    let mut with_secret = request("https://a.example/");
    with_secret.headers.insert(header::COOKIE, HeaderValue::from_static("session=1"));
    let fetched = Fetcher::new(options).unwrap().fetch(&with_secret).await;
    assert_eq!(fetched.status, Some(200), "{:?}", fetched.error);
    assert!(fetched.lenient_tls());
    assert!(
        !text(&fetched).contains("authorization") && !text(&fetched).contains("cookie"),
        "{}",
        text(&fetched)
    );
}

#[tokio::test]
async fn a_page_that_has_not_changed_is_a_result_of_its_own() {
    let server = answering(|head| {
        let known = head.contains("if-none-match: \"v1\"\r\n") && head.contains("if-modified-since: Mon\r\n");
        if known { response("304 Not Modified", "", "") } else { ok("ETag: \"v2\"\r\n", "new") }
    })
    .await;
    let visit =
        Visit { etag: Some("\"v1\"".to_owned()), last_modified: Some("Mon".to_owned()), ..Visit::default() };
    let record = PageRecord { visited: Timestamp::ZERO, visit, visits: 1, changes: 0, next: None };
    let fetcher = fetcher();
    let fetched = fetcher.fetch(&page(&server, "/").unless_as_in(&record)).await;
    assert_eq!((fetched.status, fetched.not_modified, fetched.body.len()), (Some(304), true, 0));
    let fetched = fetcher.fetch(&page(&server, "/")).await;
    assert_eq!((fetched.status, fetched.not_modified, text(&fetched)), (Some(200), false, "new"));
    let mut odd = page(&server, "/");
    odd.validators = Some(Validators { etag: Some("a\r\nX: y".to_owned()), last_modified: None });
    assert_eq!(fetcher.fetch(&odd).await.status, Some(200));
}

#[tokio::test]
async fn redirects_are_returned_and_not_followed() {
    let server =
        answering(|_| response("302 Found", "Location: http://169.254.169.254/latest/\r\n", "")).await;
    let fetcher = fetcher();
    let fetched = fetcher.fetch(&page(&server, "/")).await;
    let Some(Redirect::To(target)) = &fetched.redirect else { panic!("{:?}", fetched.redirect) };
    assert_eq!(target.as_str(), "http://169.254.169.254/latest/");
    assert_eq!((fetched.status, server.visitors().await), (Some(302), 1));
    let refused = fetcher.fetch(&request(target.as_str())).await;
    assert_eq!(refused.error_kind().unwrap().as_str(), "address_refused");
    assert!(refused.error.as_ref().unwrap().is_refusal());
    assert_eq!(refused.error.unwrap().to_string(), "the host has no address that may be dialled");
}

#[tokio::test]
async fn what_is_no_web_page_is_refused_before_anything_is_sent() {
    let fetcher = fetcher();
    for url in
        ["file:///etc/passwd", "ftp://a.example/", "data:text/html,x", "gopher://a.example/", "about:blank"]
    {
        let fetched = fetcher.fetch(&request(url)).await;
        assert_eq!(fetched.error_kind().unwrap().as_str(), "scheme_refused", "{url}");
    }
    let server = healthy("x").await;
    let mut own = page(&server, "/");
    own.headers.insert(header::HOST, HeaderValue::from_static("b.example"));
    let mut tunnel = page(&server, "/");
    tunnel.method = Method::CONNECT;
    let long = page(&server, &format!("/{}", "x".repeat(70_000)));
    for refused in [own, tunnel, long] {
        let error = fetcher.fetch(&refused).await.error.unwrap();
        assert_eq!(error.kind(), FetchErrorKind::RequestRefused);
        assert!(error.is_refusal());
    }
    assert_eq!(fetcher.dialer().counts().connects, 0);
}

#[tokio::test]
async fn requests_to_one_address_keep_their_distance() {
    let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let server = Server::start({
        let most = Arc::clone(&most);
        move |mut stream| {
            let (under_way, most) = (Arc::clone(&under_way), Arc::clone(&most));
            async move {
                while read_head(&mut stream).await.is_ok_and(|head| !head.is_empty()) {
                    most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    under_way.fetch_sub(1, Ordering::SeqCst);
                    let _ = stream.write_all(&ok("", "x")).await;
                }
            }
        }
    })
    .await;
    let mut options = leading_to(options(), &server);
    options.address_pace = AddressPaceOptions {
        concurrency_max: 2,
        gap_min: Duration::from_millis(30),
        ..AddressPaceOptions::default()
    };
    let fetcher = Fetcher::new(options.clone()).unwrap();
    let started = Instant::now();
    let all = (0..8).map(|number| {
        let fetcher = fetcher.clone();
        tokio::spawn(async move { fetcher.fetch(&request(&format!("http://h{number}.example/"))).await })
    });
    let mut waited = Duration::ZERO;
    for fetched in futures_util::future::join_all(all).await {
        let fetched = fetched.unwrap();
        assert_eq!(fetched.status, Some(200), "{:?}", fetched.error);
        waited = waited.max(fetched.times.waited);
    }
    assert!(started.elapsed() >= Duration::from_millis(7 * 30), "{:?}", started.elapsed());
    assert!(most.load(Ordering::SeqCst) <= 2 && waited >= Duration::from_millis(100), "{waited:?}");
    options.address_pace.wait_max = Duration::from_millis(40);
    let fetcher = Fetcher::new(options).unwrap();
    let all = (0..6).map(|_| {
        let fetcher = fetcher.clone();
        tokio::spawn(async move { fetcher.fetch(&request("http://a.example/")).await.error_kind() })
    });
    let busy = futures_util::future::join_all(all).await;
    assert!(busy.into_iter().any(|kind| kind.unwrap() == Some(FetchErrorKind::AddressBusy)));
}

/// Servers hang up on those who say nothing for a while, and who waits for its turn says nothing.
#[tokio::test]
async fn who_waited_for_its_turn_and_was_hung_up_on_asks_again() {
    let server = Server::start(|mut stream| async move {
        let patience = Duration::from_millis(300);
        if let Ok(Ok(_)) = tokio::time::timeout(patience, read_head(&mut stream)).await {
            let _ = stream.write_all(&ok("Connection: close\r\n", "x")).await;
        }
    })
    .await;
    let mut options = leading_to(options(), &server);
    options.address_pace.gap_min = Duration::from_millis(1100);
    let fetcher = Fetcher::new(options).unwrap();
    let requests = [request("http://a.example/"), request("http://b.example/")];
    let fetched = futures_util::future::join_all(requests.iter().map(|request| fetcher.fetch(request))).await;
    for fetched in &fetched {
        assert_eq!(fetched.status, Some(200), "{:?}", fetched.error);
    }
    assert!(fetched[1].retried && fetched[1].times.waited < Duration::from_secs(2), "{:?}", fetched[1].times);
}

#[tokio::test]
async fn all_fetches_together_keep_to_the_bandwidth() {
    let server = answering(|_| ok("", "x".repeat(100_000))).await;
    let mut options = options();
    options.bandwidth_bytes_per_s = Some(200_000);
    let fetcher = Fetcher::new(options).unwrap();
    let started = Instant::now();
    let all = (0..4).map(|_| {
        let (fetcher, request) = (fetcher.clone(), page(&server, "/"));
        tokio::spawn(async move { fetcher.fetch(&request).await })
    });
    for fetched in futures_util::future::join_all(all).await {
        let fetched = fetched.unwrap();
        assert_eq!((fetched.body.len(), fetched.truncated), (100_000, None::<Truncated>));
    }
    // 400,000 bytes, of which a second's worth is free.
    assert!(started.elapsed() >= Duration::from_millis(700), "{:?}", started.elapsed());
}

#[tokio::test]
async fn http_2_is_spoken_where_it_is_offered_and_one_connection_carries_many() {
    let certificate = Certificate::new(&["a.example", "b.example"]);
    let server = crate::floods::h2_server(&certificate, |head| {
        (
            http::Response::builder().header("x-a", "1").header("content-type", "text/plain"),
            format!("{} {}", head.method(), head.uri().path()),
        )
    })
    .await;
    let mut options = leading_to(options(), &server);
    options.dial.roots = certificate.believed();
    options.keep_raw = true;
    let fetcher = Fetcher::new(options.clone()).unwrap();
    let first = fetcher.fetch(&request("https://a.example/0")).await;
    assert_eq!(
        (first.status, first.protocol, text(&first)),
        (Some(200), Some(Protocol::H2), "GET /0"),
        "{:?}",
        first.error
    );
    assert!(first.tls.as_ref().unwrap().verified);
    let raw = first.raw.as_ref().unwrap();
    assert_eq!((raw.exact, raw.body.as_ref()), (false, b"GET /0".as_slice()));
    assert!(raw.head.starts_with(b"HTTP/2 200\r\nx-a: 1\r\ncontent-type: text/plain\r\n"), "{:?}", raw.head);
    let all = (1..10).map(|number| {
        let fetcher = fetcher.clone();
        tokio::spawn(async move { fetcher.fetch(&request(&format!("https://a.example/{number}"))).await })
    });
    for fetched in futures_util::future::join_all(all).await {
        let fetched = fetched.unwrap();
        assert_eq!((fetched.status, fetched.reused), (Some(200), true), "{:?}", fetched.error);
    }
    assert_eq!(server.visitors().await, 1);
    // The certificate is for both, and still each has a connection of its own.
    assert!(!fetcher.fetch(&request("https://b.example/")).await.reused);
    assert_eq!(server.visitors().await, 2);
    options.http1_only = true;
    let refused = Fetcher::new(options).unwrap().fetch(&request("https://a.example/")).await;
    assert!(refused.error.is_some(), "this server has no HTTP/1.1");
}
