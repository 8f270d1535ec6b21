//! URLs go in through the public API: one by one, and in batches.

use std::path::Path;

use pb::ack_message::Status as Ack;
use pb::url_frontier_client::UrlFrontierClient;
use tokio_stream::{StreamExt, iter};
use tonic::Status;
use trapline_bench::stream::url;
use trapline_server::proto::urlfrontier as pb;

use crate::Trouble;
use crate::report::Sample;
use crate::service::Service;

/// Over so many hosts, each of which is a queue.
const HOSTS: u64 = 100_000;

pub const BATCH: usize = 256;

/// How many streams at a time, and whether each has a connection of its own.
#[derive(Clone, Copy)]
pub struct Streams {
    count: usize,
    are_together: bool,
}

impl Streams {
    pub fn apart(count: usize) -> Self {
        Self { count, are_together: false }
    }

    pub fn together(count: usize) -> Self {
        Self { count, are_together: true }
    }

    async fn clients(
        self,
        service: &Service,
    ) -> Result<Vec<UrlFrontierClient<tonic::transport::Channel>>, Trouble> {
        let first = service.connect().await?;
        let mut clients = vec![UrlFrontierClient::new(first.clone())];
        while clients.len() < self.count {
            let channel = if self.are_together { first.clone() } else { service.connect().await? };
            clients.push(UrlFrontierClient::new(channel));
        }
        // The crawl is made with its first URL, and connections with their first call: not on the clock.
        for (number, client) in clients.iter_mut().enumerate() {
            let items = vec![info(u64::MAX - number as u64)];
            let batch = pb::DiscoveredBatch { id: String::new(), items };
            let mut acks = client.put_discovered(iter([batch])).await?.into_inner();
            while acks.message().await?.is_some() {}
        }
        Ok(clients)
    }
}

/// The URL of a number, all different, without a key: the service finds it.
pub fn info(number: u64) -> pb::UrlInfo {
    // The factor has no divisor in common with a power of ten, so this meets every host, in no order.
    pb::UrlInfo { url: url(number.wrapping_mul(61_403) % HOSTS, number), ..Default::default() }
}

/// `PutURLs`: a message a URL. Whoever sends does not wait for acknowledgements.
pub fn items(program: &Path, urls: usize, streams: Streams) -> Result<Sample, Trouble> {
    let item = |number: usize| {
        let discovered = pb::DiscoveredUrlItem { info: Some(info(number as u64)) };
        // Clients correlate by it.
        let id = number.to_string();
        pb::UrlItem { item: Some(pb::url_item::Item::Discovered(discovered)), id, creation_date: 0 }
    };
    run(program, urls, streams, 1, item, |mut client, items| async move {
        let mut acks = client.put_ur_ls(iter(items)).await?.into_inner();
        let mut good = 0;
        while let Some(ack) = acks.next().await {
            good += usize::from(ack?.status == i32::from(Ack::Ok));
        }
        Ok(good)
    })
}

/// `PutDiscovered`: a message for 256 URLs.
pub fn batches(program: &Path, urls: usize, streams: Streams) -> Result<Sample, Trouble> {
    let batch = |number: usize| {
        let first = number * BATCH;
        let items = (first..first + BATCH).map(|number| info(number as u64)).collect();
        pb::DiscoveredBatch { id: number.to_string(), items }
    };
    run(program, urls / BATCH, streams, BATCH, batch, |mut client, batches| async move {
        let mut acks = client.put_discovered(iter(batches)).await?.into_inner();
        let mut good = 0;
        while let Some(ack) = acks.next().await {
            good += ack?.statuses.iter().filter(|status| **status == i32::from(Ack::Ok)).count();
        }
        Ok(good)
    })
}

/// So many messages, spread over streams; they are made off the clock.
fn run<M, F>(
    program: &Path,
    messages: usize,
    streams: Streams,
    urls_each: usize,
    message: impl Fn(usize) -> M,
    send: impl Fn(UrlFrontierClient<tonic::transport::Channel>, Vec<M>) -> F,
) -> Result<Sample, Trouble>
where
    F: Future<Output = Result<usize, Status>> + Send + 'static,
{
    let service = Service::start(program)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?;
    runtime.block_on(async {
        let clients = streams.clients(&service).await?;
        let each = messages / streams.count;
        let parts: Vec<Vec<M>> = (0..streams.count)
            .map(|stream| (stream * each..(stream + 1) * each).map(&message).collect())
            .collect();
        let watch = service.watch()?;
        let sending: Vec<_> =
            clients.into_iter().zip(parts).map(|(client, part)| tokio::spawn(send(client, part))).collect();
        let mut good = 0;
        for sent in sending {
            good += sent.await??;
        }
        let sample = watch.over(good)?;
        let urls = each * streams.count * urls_each;
        if good != urls {
            return Err(format!("of {urls} new URLs {good} were taken").into());
        }
        Ok(sample)
    })
}
