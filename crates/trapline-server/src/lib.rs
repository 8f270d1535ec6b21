//! A frontier as a service for any language: gRPC of its own, the public URLFrontier API on the same port, HTTP for health
//! and metrics; and [`GrpcStore`], the other end, a store behind the network.
//!
//! Here alone protobuf's messages of these services are known. Which stores exist, and what the command line says, is the
//! binary's business.

mod bulk;
mod census;
mod clock;
mod codec;
mod crawl_metrics;
mod crawl_name;
mod crawl_results;
mod crawler;
mod crawler_service;
mod exposition;
mod frontier_service;
mod gate;
mod grpc_parts;
mod grpc_store;
mod histogram;
mod http_port;
mod limits;
mod line;
mod listen;
mod metered_store;
mod methods;
mod metrics;
mod phase;
mod port;
mod routes;
mod server;
mod tls;
mod tokens;
mod urlfrontier;
mod wire;

pub use clock::Clock;
pub use crawler::{Crawler, CrawlerProgram, NoPolicy, RunningCrawl};
pub use frontier_service::FrontierService;
pub use grpc_store::{GrpcAddress, GrpcStore};
pub use limits::Limits;
pub use listen::{Network, listen_address};
pub use server::{Options, Server};
pub use tls::TlsFiles;
pub use tokens::{Access, Tokens};
pub use urlfrontier::UrlFrontierService;

/// What the `.proto` files say, as Rust.
#[allow(
    missing_docs,
    unreachable_pub,
    rust_2018_idioms,
    clippy::all,
    clippy::pedantic,
    clippy::disallowed_types,
    reason = "written by a program"
)]
pub mod proto {
    /// Trapline's own services.
    pub mod v1 {
        tonic::include_proto!("trapline.v1");
    }
    /// The public URLFrontier API.
    pub mod urlfrontier {
        tonic::include_proto!("urlfrontier");
    }
    /// All of it, for the reflection service and for who reads messages: a `FileDescriptorSet`.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
}
