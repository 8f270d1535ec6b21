//! URLs go out through the public API.

use std::path::Path;
use std::time::{Duration, Instant};

use pb::url_frontier_client::UrlFrontierClient;
use tokio_stream::iter;
use trapline_bench::stream::url;
use trapline_server::proto::urlfrontier as pb;

use crate::Trouble;
use crate::put::BATCH;
use crate::report::Sample;
use crate::service::Service;

/// Of so many queues in one call.
const QUEUES: usize = 100;

/// Calls in a round. A queue waits for a second after each batch, so that 10,000 queues are all asked once a round.
const CALLS: usize = 100;

/// Between two rounds: the waits of all that was handed out are over.
const REST: Duration = Duration::from_millis(1100);

/// `GetURLs` for 100 queues with one URL each, in rounds. Each queue has something left at the end.
pub fn get(program: &Path, queues: usize, rounds: usize) -> Result<Sample, Trouble> {
    let service = Service::start(program)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build()?;
    runtime.block_on(async {
        let mut client = UrlFrontierClient::new(service.connect().await?);
        let in_turn = CALLS * QUEUES * rounds;
        let urls_each = in_turn.div_ceil(queues) + 1;
        let urls = queues * urls_each;
        let batches = (0..urls.div_ceil(BATCH)).map(move |batch| {
            let numbers = batch * BATCH..urls.min((batch + 1) * BATCH);
            let info = |number: usize| url((number % queues) as u64, number as u64);
            let info = |number| pb::UrlInfo { url: info(number), ..Default::default() };
            pb::DiscoveredBatch { id: String::new(), items: numbers.map(info).collect() }
        });
        let mut acks = client.put_discovered(iter(batches)).await?.into_inner();
        while acks.message().await?.is_some() {}

        let params = pb::GetParams {
            max_urls_per_queue: 1,
            max_queues: QUEUES as u32,
            delay_requestable: 3600,
            ..Default::default()
        };
        let watch = service.watch()?;
        let mut got = 0;
        let mut asking = Duration::ZERO;
        for _ in 0..rounds {
            let begun = Instant::now();
            for _ in 0..CALLS {
                let mut urls = client.get_ur_ls(params.clone()).await?.into_inner();
                while urls.message().await?.is_some() {
                    got += 1;
                }
            }
            asking += begun.elapsed();
            tokio::time::sleep(REST).await;
        }
        let sample = watch.over(got)?;
        if got != in_turn {
            return Err(format!("{got} URLs came instead of {in_turn}").into());
        }
        // Rounds are waited for; what counts is how long the calls took.
        Ok(Sample { wall: asking, ..sample })
    })
}
