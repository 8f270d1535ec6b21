//! A service of its own for a test, on a port that was free, gone with the test.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use trapline_core::Timestamp;
use trapline_frontier::Store;
use trapline_server::proto::urlfrontier::url_frontier_server::UrlFrontierServer;
use trapline_server::proto::v1::frontier_server::FrontierServer;
use trapline_server::{Clock, FrontierService, GrpcAddress, GrpcStore, UrlFrontierService};

/// The runtime of all services of this process.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("threads can be started"))
}

/// A clock that stands still until it is told, in seconds.
fn told_clock() -> (Arc<AtomicU64>, Clock) {
    let seconds = Arc::new(AtomicU64::new(1_000_000));
    let told = Arc::clone(&seconds);
    (seconds, Clock::new(move || Timestamp::from_millis(told.load(Ordering::SeqCst) * 1000)))
}

pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    /// What the clock of the public API says.
    pub(crate) seconds: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Service {
    /// Serves a store, in test mode: callers say what time it is.
    pub(crate) fn start(store: Arc<dyn Store>) -> Self {
        runtime().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            let address = listener.local_addr().expect("it has an address");
            let clock = Clock::new(|| Timestamp::from_millis(1_000_000)).hearing_callers();
            let service = FrontierServer::new(FrontierService::new(Arc::clone(&store), clock));
            let (seconds, clock) = told_clock();
            let public = UrlFrontierServer::new(UrlFrontierService::new(store, clock, address.to_string()));
            let serving = Server::builder().add_service(service).add_service(public);
            let task = tokio::spawn(async move {
                let _ = serving.serve_with_incoming(TcpListenerStream::new(listener)).await;
            });
            Self { address, seconds, task }
        })
    }

    pub(crate) fn connect(&self) -> GrpcStore {
        let address = GrpcAddress::parse(&format!("grpc://{}", self.address)).expect("it is one");
        GrpcStore::connect(&address).expect("nothing is asked yet")
    }

    /// Ends it, and waits until it let go of its store.
    pub(crate) fn stop(&mut self) {
        self.task.abort();
        let _ = runtime().block_on(&mut self.task);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.task.abort();
    }
}
