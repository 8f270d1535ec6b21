//! The connections of a store, and the runtime that carries them: a store can be used from any executor, or from none.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use deadpool_postgres::{Manager, ManagerConfig, Object, RecyclingMethod, Runtime as Timers, Timeouts};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use trapline_frontier::{ErrorKind, StoreError};

use super::address::Address;
use super::clock::Clock;
use super::connector::Connector;
use super::trouble;
use super::wakeup::Wakeups;

/// Connections move bytes and little else; waiting is done by callers.
const THREADS: usize = 2;

/// Where a password may be kept that is not to be seen in a list of processes.
const PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// Connections to one database. Clones share them; when the last is dropped they are closed.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

struct Inner {
    address: Address,
    connector: Connector,
    connections: deadpool_postgres::Pool,
    /// None only while it is dropped.
    runtime: Option<Runtime>,
}

impl Pool {
    /// Reads the URL and gets everything ready. Connects to nobody yet: the first [`client`](Self::client) does.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let password = std::env::var_os(PASSWORD_VARIABLE);
        let password = password.as_ref().map(|password| password.as_encoded_bytes());
        Self::at(Address::parse(url)?.or_password(password))
    }

    /// Gets everything ready for an address.
    pub fn at(address: Address) -> Result<Self, StoreError> {
        let wrong = |problem: String| {
            StoreError::new(ErrorKind::Invalid, format!("postgres store: cannot open {address}: {problem}"))
        };
        let connector = Connector::new(&address).map_err(wrong)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("trapline-postgres")
            .enable_all()
            .build()
            .map_err(|error| wrong(format!("its threads cannot be started: {error}")))?;
        let usual = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(address.config.clone(), connector.clone(), usual);
        let timeout = Some(address.connect_timeout);
        let connections = deadpool_postgres::Pool::builder(manager)
            .max_size(address.connections_max)
            .timeouts(Timeouts { wait: timeout, create: timeout, recycle: timeout })
            .runtime(Timers::Tokio1)
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Self { inner: Arc::new(Inner { address, connector, connections, runtime: Some(runtime) }) })
    }

    /// What the URL said.
    pub fn address(&self) -> &Address {
        &self.inner.address
    }

    /// A connection of this caller's own until it is dropped. Waits for one to be free, or made, for as long as
    /// `connect_timeout` says.
    pub async fn client(&self) -> Result<Object, StoreError> {
        let got = self.run(self.inner.connections.get()).await;
        got.map_err(|error| trouble::unreachable(self.address(), self.inner.connector.gate(), &error))
    }

    /// Does what needs the runtime around it (timers, sockets) on the caller's own thread, whatever executor drives that.
    ///
    /// What is dropped before its end stops where it is; a transaction in it is rolled back.
    pub async fn run<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        std::future::poll_fn(|context| -> Poll<F::Output> {
            let _inside = self.handle().enter();
            future.as_mut().poll(context)
        })
        .await
    }

    /// Does something on the runtime's own threads, which goes on when nobody waits for it. What has no end of its own must
    /// hold no clone of this pool: it ends with the last one.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.handle().spawn(future)
    }

    /// What callers are told of an error in the middle of work.
    pub fn trouble(&self, attempted: &str, error: &tokio_postgres::Error) -> StoreError {
        trouble::told(attempted, self.address(), error)
    }

    /// How often it was tried to connect, for tests that count.
    pub fn attempts(&self) -> u64 {
        self.inner.connector.gate().attempts()
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.inner.connector
    }

    /// The server's clock, followed from here. One for each store handle is enough.
    pub fn clock(&self) -> Clock {
        Clock::new(self)
    }

    /// Wakes those who wait for something to claim. One for each store handle is enough: it has a connection of its own.
    pub fn wakeups(&self) -> Wakeups {
        Wakeups::new(self)
    }

    fn handle(&self) -> &Handle {
        self.inner.runtime.as_ref().expect("the runtime is there until the pool is dropped").handle()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A runtime that waited for its threads would panic inside another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pool").field(&self.inner.address).finish()
    }
}
