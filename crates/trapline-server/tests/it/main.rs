//! The service from outside: over real sockets, with real stores behind it.

mod crawler;
mod folder;
mod frontier;
mod grpc_store;
mod hostile;
#[allow(clippy::unwrap_used, reason = "tests")]
mod large;
mod service;
mod serving;
mod urlfrontier;
