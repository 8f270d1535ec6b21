//! Connections: which addresses are tried, in which order, and how long.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use trapline_core::parse_url;
use trapline_fetch::{Destination, DialCounts, DialErrorKind, Dialer, Protocol, Stream};

use crate::door::name_server::NameServer;
use crate::door::{Server, closed_options, destination, dial, hold, open_options, trouble};

#[tokio::test]
async fn an_override_leads_to_its_address_and_port_and_bytes_go_both_ways() {
    let server = Server::start(|mut stream| async move {
        let mut question = [0; 4];
        stream.read_exact(&mut question).await.unwrap();
        stream.write_all(b"pong").await.unwrap();
    })
    .await;
    let mut options = open_options();
    options.dns.overrides = vec![format!("*={}", server.address).parse().unwrap()];
    let mut dialed = dial(options, "http://a.example/").await.unwrap();
    assert_eq!((dialed.address, dialed.target), (server.address, server.address));
    assert_eq!(dialed.protocol, Protocol::H1);
    assert!(dialed.tls.is_none() && dialed.through_proxy.is_none());
    let Stream::Tcp(stream) = &dialed.stream else { panic!("no TLS was asked for") };
    assert!(stream.nodelay().unwrap());
    dialed.stream.write_all(b"ping").await.unwrap();
    let mut answer = String::new();
    dialed.stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "pong");
}

#[tokio::test]
async fn an_override_does_not_pass_by_the_guard() {
    let server = Server::silent().await;
    let mut options = closed_options();
    options.dns.overrides = vec![format!("*={}", server.address).parse().unwrap()];
    let error = trouble(options, "http://a.example/").await;
    assert_eq!(error.kind(), DialErrorKind::AddressRefused);
    assert_eq!(error.detail(), "127.0.0.1 is not dialled: 127.0.0.0/8 (loopback); allow_networks opens it");
    assert_eq!(server.visitors().await, 0);
}

#[tokio::test]
async fn no_override_turns_an_address_in_a_url_into_another() {
    let server = Server::silent().await;
    let mut options = open_options();
    options.dns.overrides = vec![format!("*={}", server.address).parse().unwrap()];
    for url in ["http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://0xA9FEA9FE/"] {
        assert_eq!(trouble(options.clone(), url).await.kind(), DialErrorKind::AddressRefused, "{url}");
    }
    assert_eq!(server.visitors().await, 0);
}

#[tokio::test]
async fn the_most_exact_override_counts() {
    let (all, below, one) = (Server::silent().await, Server::silent().await, Server::silent().await);
    let mut options = open_options();
    options.dns.overrides = vec![
        format!("*={}", all.address).parse().unwrap(),
        format!("*.example={}", below.address).parse().unwrap(),
        format!("a.example:81={}", one.address).parse().unwrap(),
    ];
    let dialer = Dialer::new(options).unwrap();
    let cases = [
        ("http://other/", all.address),
        ("http://a.example/", below.address),
        ("http://a.example.:81/", one.address),
    ];
    for (url, expected) in cases {
        assert_eq!(dialer.dial(&destination(url)).await.unwrap().address, expected, "{url}");
    }
}

#[tokio::test]
async fn of_several_addresses_only_those_allowed_are_dialled() {
    let server = Server::silent().await;
    let names = NameServer::everything_is(&["10.0.0.1", "192.168.0.1", "127.0.0.1", "169.254.169.254"]).await;
    let dialer = Dialer::new(names.asked_by(open_options())).unwrap();
    let url = format!("http://mixed.example:{}/", server.port());
    let dialed = dialer.dial(&destination(&url)).await.unwrap();
    assert_eq!(dialed.address, server.address);
    assert_eq!(dialer.counts().connects, 1);
    assert!(dialer.counts().refusals <= 3);
}

#[tokio::test]
async fn a_name_with_refused_addresses_only_is_refused_and_nobody_is_called() {
    let server = Server::silent().await;
    let names = NameServer::everything_is(&["127.0.0.1", "10.0.0.1", "::1", "::ffff:127.0.0.1"]).await;
    let dialer = Dialer::new(names.asked_by(closed_options())).unwrap();
    let url = format!("http://inside.example:{}/", server.port());
    let error = dialer.dial(&destination(&url)).await.unwrap_err();
    assert_eq!(error.kind(), DialErrorKind::AddressRefused);
    assert_eq!(dialer.counts(), DialCounts { connects: 0, refusals: 4 });
    assert_eq!(server.visitors().await, 0);
}

#[tokio::test]
async fn a_dead_address_is_followed_by_the_next_at_once() {
    let server = Server::silent().await;
    // Nobody listens at this port of the other loopback addresses.
    let names = NameServer::everything_is(&["127.0.0.2", "127.0.0.3", "127.0.0.1"]).await;
    let mut options = names.asked_by(open_options());
    options.connect_attempt_delay = Duration::from_secs(60);
    let url = format!("http://three.example:{}/", server.port());
    let dialed = dial(options, &url).await.unwrap();
    assert_eq!(dialed.address, server.address);
}

/// A listener whose queue is full: further connections are neither accepted nor refused.
async fn deaf(address: &str) -> (TcpListener, Vec<tokio::net::TcpStream>) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(address.parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut callers = Vec::new();
    while let Ok(Ok(caller)) =
        tokio::time::timeout(Duration::from_millis(300), tokio::net::TcpStream::connect(address)).await
    {
        callers.push(caller);
    }
    (listener, callers)
}

#[tokio::test]
async fn a_silent_address_gets_company_and_the_first_to_answer_wins() {
    let (_deaf, _callers) = deaf("127.0.0.4:0").await;
    let port = _deaf.local_addr().unwrap().port();
    let server = Server::start_at(&format!("127.0.0.5:{port}"), hold).await;
    let names = NameServer::everything_is(&["127.0.0.4", "127.0.0.5"]).await;
    let mut options = names.asked_by(open_options());
    options.connect_timeout = Duration::from_secs(60);
    options.connect_attempt_delay = Duration::from_millis(20);
    let dialed = dial(options, &format!("http://two.example:{port}/")).await.unwrap();
    assert_eq!(dialed.address, server.address);
}

#[tokio::test]
async fn silence_ends_with_the_connect_timeout_and_with_the_one_for_all_addresses() {
    let (listener, _callers) = deaf("127.0.0.6:0").await;
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut options = open_options();
    options.connect_timeout = Duration::from_millis(100);
    let started = Instant::now();
    assert_eq!(trouble(options.clone(), &url).await.kind(), DialErrorKind::ConnectTimeout);
    options.connect_timeout = Duration::from_secs(60);
    options.connect_timeout_total = Duration::from_millis(100);
    assert_eq!(trouble(options.clone(), &url).await.kind(), DialErrorKind::ConnectTimeout);
    options.connect_timeout_total = Duration::from_secs(60);
    options.timeout = Duration::from_millis(100);
    assert_eq!(trouble(options, &url).await.kind(), DialErrorKind::DialTimeout);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_closed_port_refuses_the_connection() {
    let server = Server::silent().await;
    let url = format!("http://127.0.0.7:{}/", server.port());
    let error = trouble(open_options(), &url).await;
    assert_eq!(error.kind(), DialErrorKind::ConnectRefused);
    assert_eq!(error.to_string(), "the server refused the connection");
    assert!(error.detail().starts_with("cannot connect to 127.0.0.7:"), "{}", error.detail());
}

#[tokio::test]
async fn no_more_addresses_are_tried_than_allowed() {
    let server = Server::silent().await;
    let names =
        NameServer::everything_is(&["127.0.0.8", "127.0.0.9", "127.0.0.10", "127.0.0.11", "127.0.0.1"]).await;
    let mut options = names.asked_by(open_options());
    options.connect_attempts_max = 3;
    let dialer = Dialer::new(options).unwrap();
    let url = format!("http://many.example:{}/", server.port());
    assert_eq!(dialer.dial(&destination(&url)).await.unwrap_err().kind(), DialErrorKind::ConnectRefused);
    assert_eq!(dialer.counts().connects, 3);
    assert_eq!(server.visitors().await, 0);
}

#[tokio::test]
async fn limits_without_end_are_as_good_as_long_ones() {
    let server = Server::silent().await;
    let names = NameServer::everything_is(&["127.0.0.1", "127.0.0.2"]).await;
    let mut options = names.asked_by(open_options());
    options.connect_timeout = Duration::MAX;
    options.connect_timeout_total = Duration::MAX;
    options.connect_attempt_delay = Duration::MAX;
    options.timeout = Duration::MAX;
    options.dns.timeout = Duration::MAX;
    options.dns.ttl_min = Duration::MAX;
    options.dns.second_family_wait = Duration::MAX;
    let url = format!("http://a.example:{}/", server.port());
    assert_eq!(dial(options, &url).await.unwrap().address, server.address);
}

#[test]
fn only_http_and_https_urls_have_a_destination() {
    for url in ["ftp://a.example/", "file:///etc/passwd", "gopher://a.example/", "data:,x", "ws://a.example/"]
    {
        let error = Destination::of_url(&parse_url(url, None).unwrap()).unwrap_err();
        assert_eq!(error.kind(), DialErrorKind::SchemeRefused, "{url}");
    }
    let destination = Destination::of_url(&parse_url("https://a.example/", None).unwrap()).unwrap();
    assert_eq!((destination.tls, destination.port), (true, 443));
}

/// Whoever may ask for URLs learns no addresses from errors, and no kind changes its name unnoticed.
#[test]
fn messages_for_anybody_name_no_address_and_kinds_keep_their_names() {
    let names: Vec<&str> = DialErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(
        names,
        [
            "scheme_refused",
            "address_refused",
            "port_refused",
            "dns_no_such_name",
            "dns_no_address",
            "dns_chain",
            "dns_failed",
            "dns_timeout",
            "connect_refused",
            "connect_unreachable",
            "connect_timeout",
            "connect_failed",
            "tls_expired",
            "tls_not_yet_valid",
            "tls_wrong_host",
            "tls_untrusted",
            "tls_revoked",
            "tls_timeout",
            "tls_failed",
            "proxy_refused",
            "proxy_authentication",
            "proxy_timeout",
            "proxy_failed",
            "dial_timeout",
        ]
    );
    for kind in DialErrorKind::ALL {
        assert!(!kind.message().contains(|c: char| c.is_ascii_digit()), "{kind}");
    }
}
