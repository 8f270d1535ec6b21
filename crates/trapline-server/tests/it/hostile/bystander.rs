//! A client that does nothing wrong beside those that do.

use std::time::{Duration, Instant};

use tonic::transport::Channel;
use tonic::{Response, Status};
use trapline_server::proto::v1;
use v1::frontier_client::FrontierClient;

use crate::serving::Running;

/// So long may one of its calls take, on a busy machine too.
const BOUND: Duration = Duration::from_secs(5);

const CRAWL: &str = "bystander";

pub(super) struct Bystander {
    client: FrontierClient<Channel>,
    turns: u64,
    slowest: Duration,
}

impl Bystander {
    pub(super) async fn of(running: &Running) -> Self {
        let mut client = FrontierClient::new(running.channel().await);
        create(&mut client, CRAWL).await;
        Self { client, turns: 0, slowest: Duration::ZERO }
    }

    /// Admits, claims and settles so many times, each call in good time.
    pub(super) async fn goes_on(&mut self, turns: u64) {
        let mut client = self.client.clone();
        for _ in 0..turns {
            self.turns += 1;
            let url = format!("http://{}.test/", self.turns);
            self.in_time(client.admit(admit(&url))).await;
            let claim = v1::ClaimRequest { crawl: Some(CRAWL.to_owned()), urls: 1, ..Default::default() };
            let claimed = self.in_time(client.claim(claim)).await;
            let [lease] = &claimed.leases[..] else { panic!("{claimed:?}") };
            assert_eq!(lease.request.as_ref().unwrap().url, url);
            self.in_time(client.settle(done(lease.id))).await;
        }
    }

    async fn in_time<T>(&mut self, call: impl Future<Output = Result<Response<T>, Status>>) -> T {
        let begun = Instant::now();
        let answer = tokio::time::timeout(BOUND, call).await.expect("others are served meanwhile");
        self.slowest = self.slowest.max(begun.elapsed());
        answer.unwrap().into_inner()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        println!("{} turns beside it, the slowest call took {:?}", self.turns, self.slowest);
    }
}

/// Makes a crawl in which nothing waits for its turn.
pub(super) async fn create(client: &mut FrontierClient<Channel>, crawl: &str) {
    let setting = v1::Setting { name: "delay".to_owned(), value: "0".to_owned() };
    let new = v1::NewCrawl { settings: Some(v1::Settings { settings: vec![setting] }), ..Default::default() };
    let change = v1::CrawlChange { change: Some(v1::crawl_change::Change::Create(new)) };
    let target = Some(v1::steer_request::Target::Change(change));
    client.steer(v1::SteerRequest { crawl: crawl.to_owned(), target, now_ms: None }).await.unwrap();
}

fn admit(url: &str) -> v1::AdmitRequest {
    let request = v1::Request { url: url.to_owned(), ..Default::default() };
    let candidate = v1::Candidate { request: Some(request), ..Default::default() };
    v1::AdmitRequest { crawl: CRAWL.to_owned(), candidates: vec![candidate], now_ms: None }
}

fn done(lease: u64) -> v1::SettleRequest {
    let outcome = Some(v1::settlement::Outcome::Done(v1::Done::default()));
    let settlement = v1::Settlement { lease, outcome, ..Default::default() };
    v1::SettleRequest { crawl: CRAWL.to_owned(), settlements: vec![settlement], now_ms: None }
}
