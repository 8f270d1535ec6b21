//! What the tests of the door share: servers on loopback, and options that open it.

pub(crate) mod name_server;
pub(crate) mod proxy_server;
pub(crate) mod tls_server;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use trapline_core::parse_url;
use trapline_fetch::{Destination, DialError, DialOptions, Dialed, Dialer};

/// Options that let loopback through, with time limits for tests.
pub(crate) fn open_options() -> DialOptions {
    let mut options = closed_options();
    options.guard.allow_networks = vec!["127.0.0.0/8".parse().unwrap()];
    options
}

/// Options that let only the world through.
pub(crate) fn closed_options() -> DialOptions {
    let mut options = DialOptions {
        connect_timeout: Duration::from_secs(2),
        timeout: Duration::from_secs(8),
        ..DialOptions::default()
    };
    options.dns.attempt_timeout = Duration::from_millis(400);
    options.dns.timeout = Duration::from_millis(1500);
    options
}

pub(crate) fn destination(url: &str) -> Destination {
    Destination::of_url(&parse_url(url, None).unwrap()).unwrap()
}

pub(crate) async fn dial(options: DialOptions, url: &str) -> Result<Dialed, DialError> {
    Dialer::new(options).unwrap().dial(&destination(url)).await
}

/// The kind of the error that dialling gives.
pub(crate) async fn trouble(options: DialOptions, url: &str) -> DialError {
    match dial(options, url).await {
        Ok(dialed) => panic!("{url} was dialled: {dialed:?}"),
        Err(error) => error,
    }
}

/// A server that gives each connection to a task, counts them all, and ends with the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    accepted: watch::Receiver<Vec<SocketAddr>>,
    /// How many of the visitors were our own.
    called: AtomicUsize,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start_at("127.0.0.1:0", serve).await
    }

    pub(crate) async fn start_at<F>(address: &str, serve: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepting, accepted) = watch::channel(Vec::new());
        let task = tokio::spawn(async move {
            while let Ok((stream, visitor)) = listener.accept().await {
                accepting.send_modify(|visitors| visitors.push(visitor));
                tokio::spawn(serve(stream));
            }
        });
        Self { address, accepted, called: AtomicUsize::new(0), task }
    }

    /// A server that accepts and says nothing, until the other side hangs up.
    pub(crate) async fn silent() -> Self {
        Self::start(hold).await
    }

    /// How many have connected up to now. Connections are accepted in the order in which they came, so a visitor
    /// of our own tells that all before it were counted.
    pub(crate) async fn visitors(&self) -> usize {
        let last = TcpStream::connect(self.address).await.unwrap();
        let me = last.local_addr().unwrap();
        let mut accepted = self.accepted.clone();
        let visitors = accepted.wait_for(|visitors| visitors.contains(&me)).await.unwrap().clone();
        visitors.iter().position(|visitor| *visitor == me).unwrap()
            - self.called.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads and forgets until the other side hangs up.
pub(crate) async fn hold(mut stream: TcpStream) {
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
}
