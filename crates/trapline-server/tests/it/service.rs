//! A service of its own for a test, on a port that was free, gone with the test.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use trapline_core::Timestamp;
use trapline_frontier::Store;
use trapline_server::proto::v1::frontier_server::FrontierServer;
use trapline_server::{Clock, FrontierService, GrpcAddress, GrpcStore};

/// The runtime of all services of this process.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("threads can be started"))
}

pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Service {
    /// Serves a store, in test mode: callers say what time it is.
    pub(crate) fn start(store: Arc<dyn Store>) -> Self {
        runtime().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
            let address = listener.local_addr().expect("it has an address");
            let clock = Clock::new(|| Timestamp::from_millis(1_000_000)).hearing_callers();
            let service = FrontierServer::new(FrontierService::new(store, clock));
            let serving = Server::builder().add_service(service);
            let task = tokio::spawn(async move {
                let _ = serving.serve_with_incoming(TcpListenerStream::new(listener)).await;
            });
            Self { address, task }
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
