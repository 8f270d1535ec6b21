//! Trapline's own API: a stream of batches as any language would send it, and the store that Rust programs have.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pollster::block_on;
use tokio_stream::iter;
use trapline_bench::stream::url;
use trapline_core::{Request, Timestamp};
use trapline_frontier::{Frontier, Outcome, Settings, Settlement, Want};
use trapline_server::proto::v1;
use trapline_server::{GrpcAddress, GrpcStore};
use v1::frontier_client::FrontierClient;

use crate::Trouble;
use crate::put::{BATCH, info};
use crate::report::Sample;
use crate::service::Service;

const CRAWL: &str = "bench";
const CLAIM: usize = 100;
const CYCLED_HOSTS: usize = 10_000;

/// A handle over the network on a crawl without delays. The service's clock rules: what time is said here is nothing to it.
fn open(service: &Service) -> Result<Frontier, Trouble> {
    let address = GrpcAddress::parse(&format!("grpc://{}", service.address))?;
    let store = Arc::new(GrpcStore::connect(&address)?);
    let settings = Settings { delay: Duration::ZERO, ..Settings::default() };
    Ok(block_on(Frontier::builder(CRAWL).settings(settings).open_shared(store, Timestamp::ZERO))?)
}

/// `AdmitStream`: URLs that the service prepares.
pub fn admit_bare(program: &Path, urls: usize) -> Result<Sample, Trouble> {
    let service = Service::start(program)?;
    drop(open(&service)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?;
    runtime.block_on(async {
        let mut client = FrontierClient::new(service.connect().await?);
        client.now(v1::NowRequest {}).await?;
        let candidate = |number: usize| {
            let request = v1::Request { url: info(number as u64).url, ..Default::default() };
            v1::Candidate { request: Some(request), ..Default::default() }
        };
        let batch = |batch: usize| {
            let candidates = (batch * BATCH..(batch + 1) * BATCH).map(candidate).collect();
            v1::AdmitRequest { crawl: CRAWL.to_owned(), candidates, now_ms: None }
        };
        let batches: Vec<_> = (0..urls / BATCH).map(batch).collect();
        let watch = service.watch()?;
        let mut answers = client.admit_stream(iter(batches)).await?.into_inner();
        let mut added = 0;
        while let Some(answer) = answers.message().await? {
            let is_added = |admission: &&i32| **admission == i32::from(v1::Admission::Added);
            added += answer.admissions.iter().filter(is_added).count();
        }
        let sample = watch.over(added)?;
        if added != urls / BATCH * BATCH {
            return Err(format!("of {urls} new URLs {added} were taken").into());
        }
        Ok(sample)
    })
}

/// The store over the network: the client prepares, a call a batch.
pub fn admit_prepared(program: &Path, urls: usize) -> Result<Sample, Trouble> {
    let service = Service::start(program)?;
    let crawl = open(&service)?;
    let requests: Vec<Request> = (0..urls).map(|number| Request::get(info(number as u64).url)).collect();
    let mut requests = requests.into_iter();
    let watch = service.watch()?;
    let mut admitted = 0;
    while admitted < urls {
        admitted += block_on(crawl.admit(Timestamp::ZERO, requests.by_ref().take(BATCH)))?.len();
    }
    watch.over(admitted)
}

/// The store over the network: claim, settle as done.
pub fn cycles(program: &Path, urls: usize) -> Result<Sample, Trouble> {
    let service = Service::start(program)?;
    let crawl = open(&service)?;
    for from in (0..urls).step_by(5000) {
        let request = |number: usize| Request::get(url((number % CYCLED_HOSTS) as u64, number as u64));
        block_on(crawl.admit(Timestamp::ZERO, (from..urls.min(from + 5000)).map(request)))?;
    }
    let watch = service.watch()?;
    let mut cycles = 0;
    while cycles < urls {
        let leases = block_on(crawl.claim(Timestamp::ZERO, Want::urls(CLAIM)))?.leases;
        if leases.is_empty() {
            return Err(format!("nothing is left after {cycles} URLs").into());
        }
        let done = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
        cycles += block_on(crawl.settle(Timestamp::ZERO, done))?.len();
    }
    watch.over(cycles)
}
