//! Proxies: what they are asked for, what they may not be asked for, and what hostile ones achieve.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use trapline_fetch::{Destination, DialErrorKind, DialOptions, Dialer, Proxy, ProxyKind, Route};

use crate::door::name_server::{NameServer, Reply, leads_to};
use crate::door::proxy_server::{endless, http_proxy, saying, socks_proxy};
use crate::door::tls_server::{Authority, unchanged};
use crate::door::{Server, closed_options, destination, dial, open_options, trouble};

/// A server that answers `ping` with `pong`.
async fn pong() -> Server {
    Server::start(|mut stream| async move {
        let mut question = [0; 4];
        if stream.read_exact(&mut question).await.is_ok() {
            let _ = stream.write_all(b"pong").await;
        }
    })
    .await
}

fn through(proxy: &str, options: DialOptions) -> DialOptions {
    DialOptions { proxy: Some(proxy.parse().unwrap()), ..options }
}

async fn ping(options: DialOptions, url: &str) -> trapline_fetch::Dialed {
    let mut dialed = dial(options, url).await.unwrap();
    dialed.stream.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    dialed.stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"pong");
    dialed
}

#[tokio::test]
async fn socks_proxies_get_the_address_that_was_judged_and_never_a_name() {
    let server = pong().await;
    let names = NameServer::everything_is(&["127.0.0.1"]).await;
    let (proxy, asked) = socks_proxy(None).await;
    let options = through(&format!("socks5://{}", proxy.address), names.asked_by(open_options()));
    let dialed = ping(options, &format!("http://a.example:{}/", server.port())).await;
    assert_eq!((dialed.address, dialed.target), (proxy.address, server.address));
    let facts = dialed.through_proxy.unwrap();
    assert_eq!((facts.kind, facts.absolute_form), (ProxyKind::Socks5, false));
    assert_eq!(*asked.lock().unwrap(), [server.address.to_string()]);
}

#[tokio::test]
async fn socks_proxies_get_user_and_password() {
    let server = pong().await;
    let (proxy, _) = socks_proxy(Some(("us:er", "pass word"))).await;
    let url = format!("http://{}/", server.address);
    let good = format!("socks5://us%3Aer:pass%20word@{}", proxy.address);
    ping(through(&good, open_options()), &url).await;
    for wrong in ["socks5://us%3Aer:wrong@", "socks5://us%3Aer@", "socks5://"] {
        let proxy: Proxy = format!("{wrong}{}", proxy.address).parse().unwrap();
        let error = trouble(DialOptions { proxy: Some(proxy), ..open_options() }, &url).await;
        assert_eq!(error.kind(), DialErrorKind::ProxyAuthentication, "{wrong}");
    }
}

#[tokio::test]
async fn http_proxies_pass_on_to_the_address_that_was_judged_and_tls_is_with_the_server() {
    let authority = Authority::new();
    let server = authority.sign(&["good.example"], unchanged).serve(&["h2"]).await;
    let (proxy, asked) = http_proxy().await;
    let url = format!("http://aladdin:open%20sesame@{}", proxy.address);
    let dialed = dial(through(&url, authority.believed_by(&server)), "https://good.example/").await.unwrap();
    assert!(dialed.tls.as_ref().unwrap().verified);
    assert_eq!((dialed.address, dialed.target), (proxy.address, server.address));
    assert!(!dialed.through_proxy.unwrap().absolute_form);
    let asked = asked.lock().unwrap().join("|");
    assert_eq!(
        asked,
        format!(
            "CONNECT {0} HTTP/1.1\r\nHost: {0}\r\nProxy-Authorization: Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n",
            server.address
        )
    );
}

#[tokio::test]
async fn http_urls_through_http_proxies_are_for_the_proxy_to_read() {
    let server = Server::silent().await;
    let (proxy, asked) = http_proxy().await;
    let url = format!("http://aladdin:open%20sesame@{}", proxy.address);
    let there = format!("http://{}/", server.address);
    let dialed = dial(through(&url, open_options()), &there).await.unwrap();
    let facts = dialed.through_proxy.unwrap();
    assert!(facts.absolute_form);
    assert_eq!(facts.authorization.as_ref().unwrap(), "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert!(!format!("{facts:?}").contains("YWxh"), "{facts:?}");
    assert_eq!(server.visitors().await, 0);
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn http_urls_go_through_a_tunnel_if_the_operator_says_so() {
    let server = pong().await;
    let (proxy, asked) = http_proxy().await;
    let proxy: Proxy = format!("http://{}", proxy.address).parse().unwrap();
    let options = DialOptions { proxy: Some(proxy.tunnelling_http()), ..open_options() };
    let dialed = ping(options, &format!("http://{}/", server.address)).await;
    assert!(!dialed.through_proxy.unwrap().absolute_form);
    assert!(asked.lock().unwrap()[0].starts_with(&format!("CONNECT {} ", server.address)));
}

#[tokio::test]
async fn a_destination_may_choose_its_own_way() {
    let server = pong().await;
    let (usual, usual_asked) = socks_proxy(None).await;
    let (other, other_asked) = socks_proxy(None).await;
    let dialer = Dialer::new(through(&format!("socks5://{}", usual.address), open_options())).unwrap();
    let there = destination(&format!("http://{}/", server.address));
    let by = |route: Route| Destination { route, ..there.clone() };
    assert_eq!(dialer.dial(&by(Route::Direct)).await.unwrap().address, server.address);
    assert_eq!(dialer.dial(&by(Route::Usual)).await.unwrap().address, usual.address);
    let route = Route::Through(format!("socks5://{}", other.address).parse().unwrap());
    assert_eq!(dialer.dial(&by(route)).await.unwrap().address, other.address);
    assert_eq!((usual_asked.lock().unwrap().len(), other_asked.lock().unwrap().len()), (1, 1));
}

/// The proxy would reach what we may not: it is not even asked.
#[tokio::test]
async fn what_may_not_be_dialled_may_not_be_asked_for() {
    let names = NameServer::everything_is(&["169.254.169.254", "10.0.0.1"]).await;
    let (socks, _) = socks_proxy(None).await;
    let (http, _) = http_proxy().await;
    for proxy in [format!("socks5://{}", socks.address), format!("http://{}", http.address)] {
        let dialer = Dialer::new(through(&proxy, names.asked_by(open_options()))).unwrap();
        let cases = [
            ("http://169.254.169.254/latest/meta-data/", DialErrorKind::AddressRefused),
            ("https://[fd00:ec2::254]/", DialErrorKind::AddressRefused),
            ("http://0xA9FEA9FE/", DialErrorKind::AddressRefused),
            ("http://[64:ff9b::a9fe:a9fe]/", DialErrorKind::AddressRefused),
            ("https://metadata.example/", DialErrorKind::AddressRefused),
            ("http://metadata.example/", DialErrorKind::AddressRefused),
            ("http://127.0.0.1:6379/", DialErrorKind::PortRefused),
        ];
        for (url, kind) in cases {
            assert_eq!(dialer.dial(&destination(url)).await.unwrap_err().kind(), kind, "{url} {proxy}");
        }
        assert_eq!(dialer.counts().connects, 0);
    }
    assert_eq!((socks.visitors().await, http.visitors().await), (0, 0));
}

#[tokio::test]
async fn a_proxy_of_ones_own_network_needs_its_network_opened() {
    let (proxy, _) = socks_proxy(None).await;
    for url in [format!("socks5://{}", proxy.address), format!("http://localhost:{}", proxy.port())] {
        let error = trouble(through(&url, closed_options()), "http://8.8.8.8/").await;
        assert_eq!(error.kind(), DialErrorKind::ProxyFailed, "{url}");
        assert!(error.detail().starts_with("cannot reach the proxy: "), "{}", error.detail());
        assert!(error.detail().ends_with("allow_networks opens it"), "{}", error.detail());
    }
    let error = trouble(through("socks5://127.0.0.1:6379", open_options()), "http://8.8.8.8/").await;
    assert!(error.detail().contains("at port 6379 Redis is expected"), "{}", error.detail());
    assert_eq!(proxy.visitors().await, 0);
}

#[tokio::test]
async fn of_several_addresses_the_proxy_is_asked_for_those_allowed_until_one_works() {
    let server = pong().await;
    let names = NameServer::start(|name, _, _| {
        Reply::Records(
            ["10.0.0.1", "127.0.0.2", "127.0.0.1"].map(|address| leads_to(name, 60, address)).to_vec(),
        )
    })
    .await;
    let there = format!("https://a.example:{}/", server.port());
    let (socks, socks_asked) = socks_proxy(None).await;
    let (http, http_asked) = http_proxy().await;
    for (proxy, asked) in [
        (format!("socks5://{}", socks.address), socks_asked),
        (format!("http://{}", http.address), http_asked),
    ] {
        let mut destination = destination(&there);
        destination.tls = proxy.starts_with("http");
        let dialer = Dialer::new(through(&proxy, names.asked_by(open_options()))).unwrap();
        let _ = dialer.dial(&destination).await;
        let asked = asked.lock().unwrap().clone();
        assert_eq!(asked.len(), 2, "{asked:?}");
        assert!(asked[0].contains("127.0.0.2") && asked[1].contains("127.0.0.1"), "{asked:?}");
    }
}

#[tokio::test]
async fn a_proxy_that_cannot_reach_the_server_refuses() {
    let nobody = "127.0.0.12:1234";
    let (socks, _) = socks_proxy(None).await;
    let (http, _) = http_proxy().await;
    for proxy in [format!("socks5://{}", socks.address), format!("http://{}", http.address)] {
        let error = trouble(through(&proxy, open_options()), &format!("https://{nobody}/")).await;
        assert_eq!(error.kind(), DialErrorKind::ProxyRefused, "{proxy}");
        assert_eq!(error.to_string(), "the proxy did not connect to the server");
    }
    let gone = socks.address;
    drop(socks);
    tokio::task::yield_now().await;
    let error = trouble(through(&format!("socks5://{gone}"), open_options()), "http://127.0.0.1:8080/").await;
    assert_eq!(error.kind(), DialErrorKind::ProxyFailed);
}

#[tokio::test]
async fn hostile_proxies_end_in_a_named_error_within_time_and_memory() {
    let quick = || DialOptions { proxy_timeout: Duration::from_millis(300), ..open_options() };
    let mut cases: Vec<(&str, &str, Server)> = vec![
        ("http", "garbage", saying(b"\0\xff\xfe garbage", false).await),
        ("http", "another protocol", saying(b"SSH-2.0-OpenSSH_9.9\r\n", false).await),
        ("http", "half an answer", saying(b"HTTP/1.1 200 OK\r\nVia: x", true).await),
        ("http", "nothing", saying(b"", true).await),
        ("http", "an old version", saying(b"HTTP/0.9 200 OK\r\n\r\n", false).await),
        ("http", "a strange status", saying(b"HTTP/1.1 2x0 OK\r\n\r\n", false).await),
        ("http", "more than the answer", saying(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK", false).await),
        ("http", "endless headers", endless(b"HTTP/1.1 200 OK\r\n", &[b'a'; 8192]).await),
        ("http", "endless lines", endless(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n").await),
        ("http", "endless nothing", endless(b"", &[0; 8192]).await),
        ("socks5", "another version", saying(b"\x04\x5a\0\0\0\0\0\0", false).await),
        ("socks5", "an answer of HTTP", saying(b"HTTP/1.1 400 Bad Request\r\n\r\n", false).await),
        ("socks5", "a way nobody offered", saying(b"\x05\x01", false).await),
        ("socks5", "nothing", saying(b"", true).await),
        ("socks5", "half an answer", saying(b"\x05\0\x05\0\0\x01\x7f", true).await),
        ("socks5", "a strange address", saying(b"\x05\0\x05\0\0\x09\0\0\0\0\0\0", false).await),
        ("socks5", "endless nothing", endless(b"", &[0; 8192]).await),
    ];
    for (scheme, what, server) in cases.drain(..) {
        let started = Instant::now();
        let proxy = format!("{scheme}://user:secret@{}", server.address);
        let error = trouble(through(&proxy, quick()), "https://127.0.0.1:8443/").await;
        assert_eq!(error.kind(), DialErrorKind::ProxyFailed, "{scheme}, {what}: {error:?}");
        assert!(!format!("{error:?} {error}").contains("secret"), "{error:?}");
        assert!(started.elapsed() < Duration::from_secs(5), "{scheme}, {what}");
    }
    for scheme in ["http", "socks5"] {
        for server in [Server::silent().await, saying(b"HTTP/1.1 ", false).await] {
            let proxy = format!("{scheme}://{}", server.address);
            let error = trouble(through(&proxy, quick()), "https://127.0.0.1:8443/").await;
            let expected = [DialErrorKind::ProxyTimeout, DialErrorKind::ProxyFailed];
            assert!(expected.contains(&error.kind()), "{scheme}: {error:?}");
        }
    }
    let wanting = saying(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", false).await;
    let proxy = format!("http://{}", wanting.address);
    let error = trouble(through(&proxy, quick()), "https://127.0.0.1:8443/").await;
    assert_eq!(error.kind(), DialErrorKind::ProxyAuthentication);
}

#[test]
fn proxies_are_named_by_urls_and_passwords_are_never_shown() {
    let check = |text: &str, expected: &str| match text.parse::<Proxy>() {
        Ok(proxy) => {
            assert_eq!(proxy.to_string(), expected, "{text}");
            assert_eq!(format!("{proxy:?}"), expected, "{text}");
        }
        Err(error) => {
            assert_eq!(error.to_string(), expected, "{text}");
            assert!(!format!("{error:?}").contains("secret"), "{text}");
        }
    };
    check("http://proxy.example:3128", "http://proxy.example:3128");
    check("http://user:secret@proxy.example/", "http://…@proxy.example:80");
    check("socks5://user:secret@127.0.0.1", "socks5://…@127.0.0.1:1080");
    check("socks5://[::1]:9050", "socks5://[::1]:9050");
    check("socks5://0x7f.1:9050", "socks5://127.0.0.1:9050");
    check(
        "proxy.example:3128",
        "proxies with the scheme \"proxy.example\" are not supported: expected http or socks5",
    );
    check(
        "https://user:secret@proxy.example",
        "proxies with the scheme \"https\" are not supported: expected http or socks5",
    );
    check(
        "socks5h://user:secret@proxy.example",
        "socks5h leaves looking up names to the proxy, where no guard sees the address; use socks5",
    );
    check("http://user:secret@proxy.example/path", "the proxy's URL has something behind host and port");
    check("", "the proxy is no URL: expected http://host:port or socks5://host:port");
    check("socks5:///", "the proxy is no URL: expected http://host:port or socks5://host:port");
    let credentials =
        "the proxy's user name or password cannot be sent: it is not UTF-8, or longer than 255 bytes";
    check("http://user:%ff@proxy.example", credentials);
    check("http://:secret@proxy.example", credentials);
    check(&format!("http://{}@proxy.example", "u".repeat(256)), credentials);
}
