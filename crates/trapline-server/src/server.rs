//! The service as a whole: its two ports, and how it begins and ends.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio_rustls::TlsAcceptor;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use trapline_frontier::{Store, StoreError};

use crate::clock::Clock;
use crate::crawler::Crawler;
use crate::crawler_service::CrawlerService;
use crate::gate::Gate;
use crate::http_port::HttpPort;
use crate::limits::Limits;
use crate::listen::{Network, Protection, is_loopback};
use crate::metered_store::MeteredStore;
use crate::metrics::{Metrics, PortName};
use crate::phase::{Phase, PhaseWatch};
use crate::port::Port;
use crate::routes::routes;
use crate::tls::{self, TlsFiles};
use crate::tokens::Tokens;

/// What is asked about when somebody asks how they are: all, and one by one.
const SERVICES: [&str; 4] = ["", "trapline.v1.Frontier", "trapline.v1.Crawler", "urlfrontier.URLFrontier"];

/// What can be chosen.
#[derive(Clone)]
pub struct Options {
    /// Where gRPC is spoken. Defaults to 127.0.0.1:7071.
    pub grpc: SocketAddr,
    /// Where health and metrics are. Defaults to 127.0.0.1:8080.
    pub http: SocketAddr,
    /// Who may call. Defaults to none: everybody who can connect.
    pub tokens: Tokens,
    /// The certificate. Defaults to none: no TLS.
    pub tls: Option<TlsFiles>,
    /// Where callers need neither TLS nor a token. Defaults to none.
    pub allow_plaintext: Vec<Network>,
    /// How much callers may take.
    pub limits: Limits,
    /// Who crawls in this process. Defaults to nobody.
    pub crawler: Option<Arc<Crawler>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            grpc: SocketAddr::from((Ipv4Addr::LOCALHOST, 7071)),
            http: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            tokens: Tokens::default(),
            tls: None,
            allow_plaintext: Vec::new(),
            limits: Limits::default(),
            crawler: None,
        }
    }
}

/// A service that listens, and serves once it runs.
pub struct Server {
    grpc: (TcpListener, Arc<Port>),
    http: (TcpListener, Arc<Port>),
    phase: watch::Sender<Phase>,
    health: HealthReporter,
    store: Arc<dyn Store>,
    metered: Arc<dyn Store>,
    warnings: Vec<String>,
    limits: Limits,
}

impl Server {
    /// Listens for callers of a store.
    ///
    /// # Errors
    /// If an address may not be listened at, or cannot; if there is something wrong with the certificates.
    pub async fn bind(options: Options, store: Arc<dyn Store>, clock: Clock) -> Result<Self, String> {
        let protection = Arc::new(Protection {
            has_tokens: !options.tokens.is_empty(),
            has_tls: options.tls.is_some(),
            has_client_ca: options.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some()),
            plaintext: options.allow_plaintext.clone(),
        });
        protection.check("--grpc-listen", options.grpc)?;
        protection.check("--http-listen", options.http)?;
        let acceptor = |alpn: &[u8]| {
            options.tls.as_ref().map(|files| tls::config(files, alpn).map(TlsAcceptor::from)).transpose()
        };
        let (grpc_tls, http_tls) = (acceptor(b"h2")?, acceptor(b"http/1.1")?);

        let metrics = Arc::new(Metrics::default());
        let (phase, watch) = PhaseWatch::new();
        let health = HealthReporter::new();
        for name in SERVICES {
            health.set_service_status(name, ServingStatus::Serving).await;
        }
        let metered: Arc<dyn Store> = Arc::new(MeteredStore::new(Arc::clone(&store), Arc::clone(&metrics)));
        let grpc = listen("--grpc-listen", options.grpc).await?;
        let http = listen("--http-listen", options.http).await?;
        let node = grpc.local_addr().map_or_else(|_| String::new(), |address| address.to_string());
        let crawler = CrawlerService { crawler: options.crawler.clone(), clock: clock.clone() };
        let grpc_router =
            routes(&metered, &clock, &node, &health, &options.limits, crawler)?.prepare().into_axum_router();
        let http_router = HttpPort {
            store: Arc::clone(&store),
            clock,
            metrics: Arc::clone(&metrics),
            phase: watch.clone(),
            crawler: options.crawler.clone(),
            census: Mutex::new(None),
        }
        .router();

        let port = |listener: &TcpListener, port, router, tls| {
            let listening = listener.local_addr().map_err(|error| format!("cannot listen: {error}"))?;
            let (tokens, metrics, phase) = (options.tokens.clone(), Arc::clone(&metrics), watch.clone());
            let gate = Arc::new(Gate { port, listening, tokens, router, metrics, phase });
            let (protection, limits) = (Arc::clone(&protection), options.limits);
            Ok::<_, String>(Arc::new(Port { gate, protection, tls, limits, phase: watch.clone() }))
        };
        let grpc_port = port(&grpc, PortName::Grpc, grpc_router, grpc_tls)?;
        let http_port = port(&http, PortName::Http, http_router, http_tls)?;
        Ok(Self {
            grpc: (grpc, grpc_port),
            http: (http, http_port),
            phase,
            health,
            store,
            metered,
            warnings: warnings(&options),
            limits: options.limits,
        })
    }

    /// Where gRPC is spoken.
    pub fn grpc_address(&self) -> SocketAddr {
        self.grpc.1.gate.listening
    }

    /// Where health and metrics are.
    pub fn http_address(&self) -> SocketAddr {
        self.http.1.gate.listening
    }

    /// The store, counted: for who uses it beside those who call.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.metered)
    }

    /// What whoever runs it should be told loudly.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Serves until `shutdown` is there, then ends in good order: no new connections, calls may end by themselves for a while and are
    /// told then, what was answered is made durable. Leases stay valid.
    ///
    /// # Errors
    /// If the store cannot make durable what was answered.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), StoreError> {
        let grpc = tokio::spawn(self.grpc.1.run(self.grpc.0));
        let http = tokio::spawn(self.http.1.run(self.http.0));
        shutdown.await;
        for name in SERVICES {
            self.health.set_service_status(name, ServingStatus::NotServing).await;
        }
        self.phase.send_replace(Phase::Draining);
        let both = async { tokio::join!(grpc, http) };
        tokio::pin!(both);
        if tokio::time::timeout(self.limits.grace, &mut both).await.is_err() {
            self.phase.send_replace(Phase::Over);
            // A connection is carried only so much longer.
            let _ = both.await;
        }
        self.store.flush().await
    }
}

async fn listen(option: &str, address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| {
        format!("cannot listen at {address}: {error}; choose another address with {option} ADDRESS:PORT")
    })
}

fn warnings(options: &Options) -> Vec<String> {
    let mut warnings = Vec::new();
    let is_far = !(is_loopback(options.grpc.ip()) && is_loopback(options.http.ip()));
    if !options.allow_plaintext.is_empty() {
        let networks: Vec<_> = options.allow_plaintext.iter().map(ToString::to_string).collect();
        warnings.push(format!(
            "everybody in {} may read and change the frontier without a token, and what they say is not encrypted \
             (--allow-plaintext)",
            networks.join(", ")
        ));
    }
    if is_far && options.tls.is_some() && options.tokens.is_empty() && options.allow_plaintext.is_empty() {
        warnings.push(
            "whoever has a certificate of --tls-client-ca has full access: there are no tokens".to_owned(),
        );
    }
    warnings
}
