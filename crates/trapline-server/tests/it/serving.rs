//! The frame of the service: who is let in, how much they may take, what is told of it, and how it ends.
#![allow(clippy::unwrap_used, reason = "helpers are parts of the tests")]

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use trapline_core::{Request as UrlRequest, Timestamp};
use trapline_frontier::{Frontier, MemoryStore, Store, StoreError};
use trapline_server::proto::urlfrontier;
use trapline_server::proto::urlfrontier::url_frontier_client::UrlFrontierClient;
use trapline_server::proto::v1::frontier_client::FrontierClient;
use trapline_server::proto::v1::{AdmitRequest, StatsRequest};
use trapline_server::{Clock, GrpcAddress, GrpcStore, Limits, Options, Server, TlsFiles, Tokens};

const FULL: &str = "full-0123456789abcdef";
const READ: &str = "read-0123456789abcdef";

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap())
}

/// A service that runs until its test is over.
pub(crate) struct Running {
    pub(crate) grpc: SocketAddr,
    http: SocketAddr,
    store: Arc<dyn Store>,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<(), StoreError>>,
}

impl Running {
    pub(crate) async fn start(options: Options) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let server = Server::bind(options, Arc::clone(&store), Clock::new(now)).await.unwrap();
        let (grpc, http) = (server.grpc_address(), server.http_address());
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(server.run(async {
            let _ = stopped.await;
        }));
        Self { grpc, http, store, stop: Some(stop), ended }
    }

    pub(crate) async fn channel(&self) -> Channel {
        Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap().connect().await.unwrap()
    }

    /// What the HTTP port answers, whole.
    pub(crate) async fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn stop(mut self) -> Result<(), StoreError> {
        self.stop.take().unwrap().send(()).unwrap();
        tokio::time::timeout(LONG, self.ended).await.expect("it ends").unwrap()
    }
}

/// On any ports.
pub(crate) fn options() -> Options {
    let any = "127.0.0.1:0".parse().unwrap();
    Options { grpc: any, http: any, ..Options::default() }
}

fn tokens() -> Tokens {
    Tokens::parse("tokens", &format!("full {FULL}\nread {READ}\n")).unwrap()
}

fn with_token<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    let value: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

async fn healthy(channel: Channel) -> Result<i32, Status> {
    let checked = HealthClient::new(channel).check(HealthCheckRequest::default()).await?;
    Ok(checked.into_inner().status)
}

/// Certificates in a folder that is gone with its test.
struct Certificates {
    folder: PathBuf,
    authority: String,
    client: (String, String),
}

impl Certificates {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("trapline-serving-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let leaf = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            (params.signed_by(&key, &authority).unwrap().pem(), key.serialize_pem())
        };
        let (cert, key) = leaf("localhost");
        fs::write(folder.join("cert.pem"), cert).unwrap();
        fs::write(folder.join("key.pem"), key).unwrap();
        fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        Self { authority: authority.pem(), client: leaf("client"), folder }
    }

    fn files(&self, wants_clients: bool) -> TlsFiles {
        TlsFiles {
            cert: self.folder.join("cert.pem"),
            key: self.folder.join("key.pem"),
            client_ca: wants_clients.then(|| self.folder.join("ca.pem")),
        }
    }

    async fn channel(&self, address: SocketAddr, with_own: bool) -> Result<Channel, tonic::transport::Error> {
        let mut tls = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&self.authority))
            .domain_name("localhost");
        if with_own {
            tls = tls.identity(Identity::from_pem(&self.client.0, &self.client.1));
        }
        Endpoint::from_shared(format!("https://{address}")).unwrap().tls_config(tls).unwrap().connect().await
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn only_loopback_is_listened_at_without_protection() {
    let options = Options { http: "0.0.0.0:0".parse().unwrap(), ..options() };
    let bound = Server::bind(options, Arc::new(MemoryStore::new()), Clock::new(now)).await;
    let told = bound.err().expect("it is refused");
    assert!(told.starts_with("will not listen at 0.0.0.0:0 (--http-listen): "), "{told}");
}

#[tokio::test]
async fn networks_that_are_named_are_served_in_plain_and_others_are_not() {
    let any = "0.0.0.0:0".parse().unwrap();
    for (network, is_served) in [("127.0.0.0/8", true), ("192.0.2.0/24", false)] {
        let options = Options {
            grpc: any,
            http: any,
            allow_plaintext: vec![network.parse().unwrap()],
            ..Options::default()
        };
        let server = Server::bind(options, Arc::new(MemoryStore::new()), Clock::new(now)).await.unwrap();
        assert!(server.warnings()[0].contains(network), "{:?}", server.warnings());
        let port = server.http_address().port();
        tokio::spawn(server.run(std::future::pending()));
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let asked = "GET /readyz HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(asked.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert_eq!(answer.starts_with(b"HTTP/1.1 200 "), is_served, "{network}");
    }
}

#[tokio::test]
async fn tokens_say_who_may_call_what() {
    let running = Running::start(Options { tokens: tokens(), ..options() }).await;
    let channel = running.channel().await;
    assert_eq!(healthy(channel.clone()).await.unwrap(), 1, "anybody may ask for health");
    let mut frontier = FrontierClient::new(channel);
    let refused = [Code::Unauthenticated, Code::PermissionDenied];
    let code = |answer: Result<(), Status>| answer.err().map_or(Code::Ok, |status| status.code());
    for (token, reads, writes) in [
        (None, Some(Code::Unauthenticated), Some(Code::Unauthenticated)),
        (Some("wrong-0123456789abcdef"), Some(Code::Unauthenticated), Some(Code::Unauthenticated)),
        (Some(READ), None, Some(Code::PermissionDenied)),
        (Some(FULL), None, None),
    ] {
        let request =
            |token: Option<&str>| token.map_or_else(|| Request::new(()), |token| with_token((), token));
        let read = code(frontier.stats(request(token).map(|()| StatsRequest::default())).await.map(drop));
        let wrote = code(frontier.admit(request(token).map(|()| AdmitRequest::default())).await.map(drop));
        for (told, expected) in [(read, reads), (wrote, writes)] {
            match expected {
                Some(expected) => assert_eq!(told, expected, "{token:?}"),
                None => assert!(!refused.contains(&told), "{token:?} {told:?}"),
            }
        }
    }
    let unknown = "wrong-0123456789abcdef";
    let told = frontier.stats(with_token(StatsRequest::default(), unknown)).await.unwrap_err();
    assert!(told.message().starts_with("the token that was sent is not known here"), "{told}");
    let told = frontier.stats(StatsRequest::default()).await.unwrap_err();
    assert!(told.message().starts_with("a token is needed"), "{told}");
    assert!(running.get("/healthz", "").await.starts_with("HTTP/1.1 200 "));
    let wrong = format!("Authorization: Bearer {unknown}\r\n");
    for (path, header, why) in [
        ("/readyz", "", "a token is needed"),
        ("/metrics", "", "a token is needed"),
        ("/other", "", "a token is needed"),
        ("/metrics", &*wrong, "the token that was sent is not known here"),
    ] {
        let answer = running.get(path, header).await;
        assert!(
            answer.starts_with("HTTP/1.1 401 ") && answer.contains("www-authenticate: Bearer"),
            "{answer}"
        );
        assert!(answer.contains(why) && !answer.contains(unknown), "{answer}");
    }
    let metrics = running.get("/metrics", &format!("Authorization: Bearer {READ}\r\n")).await;
    assert!(metrics.starts_with("HTTP/1.1 200 "), "{metrics}");
    assert!(!metrics.contains(READ) && !metrics.contains(FULL));
    let line = "trapline_grpc_calls_total{service=\"trapline.v1.Frontier\",method=\"Admit\",code=\"permission_denied\"} 1\n";
    assert!(metrics.contains(line), "{metrics}");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn with_a_certificate_nothing_is_plain() {
    let certificates = Certificates::new();
    let running = Running::start(Options { tls: Some(certificates.files(false)), ..options() }).await;
    let channel = certificates.channel(running.grpc, false).await.unwrap();
    assert_eq!(healthy(channel).await.unwrap(), 1);
    for address in [running.grpc, running.http] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn callers_without_a_certificate_are_turned_away_where_one_is_wanted() {
    let certificates = Certificates::new();
    let running = Running::start(Options { tls: Some(certificates.files(true)), ..options() }).await;
    let with = certificates.channel(running.grpc, true).await.unwrap();
    assert_eq!(healthy(with).await.unwrap(), 1);
    // Who is refused may only hear of it when it says something.
    if let Ok(without) = certificates.channel(running.grpc, false).await {
        assert!(healthy(without).await.is_err());
    }
    // The store that is such a service shows one, too; without it, the complaint says what may be missing.
    let mut address = GrpcAddress::parse(&format!("grpcs://localhost:{}", running.grpc.port())).unwrap();
    address.ca = Some(certificates.authority.clone().into_bytes());
    let without = GrpcStore::connect(&address).unwrap().now().await.unwrap_err().to_string();
    assert!(without.contains("does it want a certificate?"), "{without}");
    let (certificate, key) = certificates.client.clone();
    address.identity = Some((certificate.into_bytes(), key.into_bytes()));
    assert!(GrpcStore::connect(&address).unwrap().now().await.unwrap().is_some());
    running.stop().await.unwrap();
}

#[tokio::test]
async fn pages_of_the_web_cannot_ask_by_another_name() {
    let running = Running::start(options()).await;
    let ask = async |host: &str| {
        let mut stream = TcpStream::connect(running.http).await.unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(ask("evil.example").await.starts_with("HTTP/1.1 421 "));
    assert!(ask(&running.http.to_string()).await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn metrics_tell_of_the_store_and_do_not_grow_with_hosts() {
    let running = Running::start(options()).await;
    assert!(running.get("/readyz", "").await.ends_with("\r\n\r\nready\n"));
    let channel = running.channel().await;
    let before = running.get("/metrics", "").await;
    let frontier = Frontier::builder("a-crawl").open_shared(Arc::clone(&running.store), now()).await.unwrap();
    let urls: Vec<_> = (0..10_000)
        .map(|n| UrlRequest::get(format!("http://host-{n}.example/")))
        .map(|request| frontier.prepare(request).unwrap())
        .collect();
    frontier.admit_candidates(now(), &urls).await.unwrap();
    healthy(channel.clone()).await.unwrap();
    // A census is kept for a second.
    let after = loop {
        let after = running.get("/metrics", "").await;
        if after.contains("trapline_urls{state=\"pending\"} 10000\n") {
            break after;
        }
        tokio::task::yield_now().await;
    };
    assert!(after.contains("trapline_store_up 1\n") && after.contains("trapline_crawls 1\n"), "{after}");
    assert!(after.contains("trapline_queues{state=\"ready\"}"), "{after}");
    assert!(
        after.contains("{service=\"grpc.health.v1.Health\",method=\"Check\",code=\"ok\"} 1\n"),
        "{after}"
    );
    assert!(after.contains("trapline_connections{port=\"grpc\"} 1\n"), "{after}");
    assert!(after.contains("trapline_store_seconds_bucket{verb=\"claim\",le=\"+Inf\"} 0\n"), "{after}");
    assert!(!after.contains("example") && !after.contains("a-crawl"));
    // What the store tells only once there is a crawl: its memory.
    let extra = after.lines().count() - before.lines().count();
    assert!(extra <= 8, "{extra} lines more");
    drop(channel);
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused() {
    let limits = Limits { message_bytes: 1000, ..Limits::default() };
    let running = Running::start(Options { limits, ..options() }).await;
    let channel = running.channel().await;
    let long = HealthCheckRequest { service: "x".repeat(2000) };
    let status = HealthClient::new(channel.clone()).check(long).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    assert_eq!(healthy(channel).await.unwrap(), 1, "others are served");
}

#[tokio::test]
async fn headers_that_are_too_long_are_refused() {
    let running = Running::start(options()).await;
    let channel = running.channel().await;
    let mut request = Request::new(HealthCheckRequest::default());
    request.metadata_mut().insert("x-long", "x".repeat(100_000).parse().unwrap());
    assert!(HealthClient::new(channel.clone()).check(request).await.is_err());
    assert_eq!(healthy(running.channel().await).await.unwrap(), 1);
}

#[tokio::test]
async fn a_flood_of_connections_harms_nobody_who_is_connected() {
    let limits = Limits { connections: 4, handshake: LONG, ..Limits::default() };
    let running = Running::start(Options { limits, ..options() }).await;
    let channel = running.channel().await;
    assert_eq!(healthy(channel.clone()).await.unwrap(), 1);
    let mut flood = Vec::new();
    for _ in 0..100 {
        flood.push(TcpStream::connect(running.grpc).await.unwrap());
    }
    // Three had room; the last of all had not.
    let mut last = flood.pop().unwrap();
    let _ = last.read(&mut [0; 100]).await;
    assert_eq!(healthy(channel.clone()).await.unwrap(), 1);
    let metrics = running.get("/metrics", "").await;
    assert!(metrics.contains("turned_away_total{port=\"grpc\",reason=\"full\"} 97\n"), "{metrics}");
    assert!(metrics.contains("trapline_connections{port=\"grpc\"} 4\n"), "{metrics}");
    drop((channel, flood));
}

#[tokio::test]
async fn who_connects_and_says_nothing_is_disconnected() {
    let limits = Limits { handshake: Duration::from_millis(50), ..Limits::default() };
    let certificates = Certificates::new();
    for tls in [None, Some(certificates.files(false))] {
        let running = Running::start(Options { limits, tls, ..options() }).await;
        for address in [running.grpc, running.http] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let mut heard = Vec::new();
            let ended = tokio::time::timeout(LONG, stream.read_to_end(&mut heard)).await;
            assert!(ended.is_ok(), "{address} keeps it");
        }
    }
}

#[tokio::test]
async fn streams_are_told_when_the_service_ends() {
    let limits = Limits { grace: Duration::from_millis(100), ..Limits::default() };
    let running = Running::start(Options { limits, ..options() }).await;
    let channel = running.channel().await;
    let mut watch =
        HealthClient::new(channel).watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status, 1);
    let stopped = tokio::spawn(running.stop());
    assert_eq!(watch.message().await.unwrap().unwrap().status, 2, "not serving any more");
    let status = watch.message().await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    assert!(status.message().starts_with("the service is ending"), "{status}");
    stopped.await.unwrap().unwrap();
}

/// Also one that goes on sending: what was done of it is acknowledged, and then why there is no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_still_sending_hears_of_the_end_too() {
    for round in 0..20 {
        let limits = Limits { grace: Duration::from_millis(10), ..Limits::default() };
        let running = Running::start(Options { limits, ..options() }).await;
        let mut client = UrlFrontierClient::new(running.channel().await);
        let item = |number| {
            let url = format!("http://{}.example/{number}/{}", number % 100, "x".repeat(200));
            let info = urlfrontier::UrlInfo { url, ..urlfrontier::UrlInfo::default() };
            let item =
                urlfrontier::url_item::Item::Discovered(urlfrontier::DiscoveredUrlItem { info: Some(info) });
            urlfrontier::UrlItem { item: Some(item), ..urlfrontier::UrlItem::default() }
        };
        let mut answers =
            client.put_ur_ls(tokio_stream::iter((0_u32..).map(item))).await.unwrap().into_inner();
        for _ in 0..5000 {
            answers.message().await.unwrap().unwrap();
        }
        let stopped = tokio::spawn(running.stop());
        let status = loop {
            match answers.message().await {
                Ok(acknowledged) => assert!(acknowledged.is_some(), "it does not end as if all were done"),
                Err(status) => break status,
            }
        };
        assert!(status.message().starts_with("the service is ending"), "round {round}: {status}");
        stopped.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn connections_without_calls_do_not_delay_the_end() {
    let limits = Limits { grace: LONG * 10, ..Limits::default() };
    let running = Running::start(Options { limits, ..options() }).await;
    let channel = running.channel().await;
    assert_eq!(healthy(channel.clone()).await.unwrap(), 1);
    let _silent =
        [TcpStream::connect(running.grpc).await.unwrap(), TcpStream::connect(running.http).await.unwrap()];
    running.stop().await.unwrap();
    drop(channel);
}
