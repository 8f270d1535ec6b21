//! The services there are on the gRPC port.

use std::sync::Arc;

use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use trapline_frontier::Store;

use crate::clock::Clock;
use crate::crawler_service::CrawlerService;
use crate::frontier_service::FrontierService;
use crate::limits::Limits;
use crate::proto::DESCRIPTORS;
use crate::proto::urlfrontier::url_frontier_server::UrlFrontierServer;
use crate::proto::v1::crawler_server::CrawlerServer;
use crate::proto::v1::frontier_server::FrontierServer;
use crate::urlfrontier::UrlFrontierService;

/// All of them. `health` is told elsewhere how the service is.
pub(crate) fn routes(
    store: &Arc<dyn Store>,
    clock: &Clock,
    node: &str,
    health: &HealthReporter,
    limits: &Limits,
    crawler: CrawlerService,
) -> Result<Routes, String> {
    let own = FrontierServer::new(FrontierService::new(Arc::clone(store), clock.clone()))
        .max_decoding_message_size(limits.message_bytes);
    let public = UrlFrontierServer::new(UrlFrontierService::new(Arc::clone(store), clock.clone(), node))
        .max_decoding_message_size(limits.message_bytes);
    let crawler = CrawlerServer::new(crawler).max_decoding_message_size(limits.message_bytes);
    let health = HealthServer::new(HealthService::from_health_reporter(health.clone()))
        .max_decoding_message_size(limits.message_bytes)
        .max_encoding_message_size(limits.message_bytes);
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let cannot = |error: tonic_reflection::server::Error| format!("cannot describe the services: {error}");
    Ok(Routes::new(health)
        .add_service(own)
        .add_service(public)
        .add_service(crawler)
        .add_service(reflection().build_v1().map_err(cannot)?)
        // What clients asked for before there was a first version of it.
        .add_service(reflection().build_v1alpha().map_err(cannot)?))
}
