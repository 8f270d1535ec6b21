//! `trapline.v1.Crawler` without a crawl that runs: who listens to results is never waited for, and hears of what he asked for.
#![allow(clippy::unwrap_used, reason = "helpers are parts of the tests")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Streaming};
use trapline_core::{Request, Timestamp};
use trapline_crawl::ports::{Results, SettledVisit};
use trapline_crawl::{PageLine, Response, ResponseTimes};
use trapline_frontier::{MemoryStore, Outcome, StoreError};
use trapline_server::proto::v1::crawler_client::CrawlerClient;
use trapline_server::proto::v1::{
    CrawlerState, ForceRecrawlRequest, GetStatusRequest, SetCrawlerStateRequest, StreamResultsRequest,
    StreamResultsResponse, SubmitUrlsRequest, UpsertDomainPolicyRequest,
};
use trapline_server::{Clock, Crawler, Options, Server};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

struct Running {
    client: CrawlerClient<Channel>,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), StoreError>>,
}

async fn start(crawler: Option<Arc<Crawler>>) -> Running {
    let any = "127.0.0.1:0".parse().unwrap();
    let options = Options { grpc: any, http: any, crawler, ..Options::default() };
    let clock = Clock::new(|| Timestamp::from_millis(1_000_000));
    let server = Server::bind(options, Arc::new(MemoryStore::new()), clock).await.unwrap();
    let endpoint = Endpoint::from_shared(format!("http://{}", server.grpc_address())).unwrap();
    let client = CrawlerClient::new(endpoint.connect_lazy());
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    Running { client, stop, ended }
}

fn page(url: &str, status: Option<u16>) -> PageLine {
    PageLine {
        url: url.into(),
        at: Timestamp::from_millis(1),
        lease: 1,
        outcome: if status.is_some() { "done" } else { "retry" },
        status,
        error: status.is_none().then(|| "timeout".to_owned()),
        retries: 0,
        times: ResponseTimes::default(),
        encoded_bytes: 10,
        decoded_bytes: 10,
        address: None,
        protocol: None,
        truncated: None,
        not_modified: false,
        visited_before: false,
        changed: false,
        redirect: None,
        canonical: None,
        mime: None,
        charset: None,
        digest: None,
        simhash: None,
        title: Some("t".repeat(200)),
        links_found: 0,
        links_kept: 0,
        via: None,
        depth: 0,
        hops: String::new(),
        seed: None,
        archived: Vec::new(),
        response: Arc::new(Response::default()),
    }
}

/// The crawl settles a visit.
fn settle(crawler: &Crawler, url: &str, status: Option<u16>) {
    let results = Results { page: Some(page(url, status)), skipped: Vec::new() };
    let (request, outcome) = (Request::get(url), Outcome::done());
    crawler.settled(&[SettledVisit {
        request: &request,
        key: "a.test",
        outcome: &outcome,
        results: &results,
    }]);
}

async fn next(stream: &mut Streaming<StreamResultsResponse>) -> Option<StreamResultsResponse> {
    tokio::time::timeout(LONG, stream.message()).await.expect("something comes").unwrap()
}

/// Listens, and knows that it is heard.
async fn listen(
    client: &mut CrawlerClient<Channel>,
    hosts: &[&str],
    statuses: &[&str],
) -> Streaming<StreamResultsResponse> {
    let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
    let request = StreamResultsRequest { hosts: texts(hosts), statuses: texts(statuses) };
    let mut stream = client.stream_results(request).await.unwrap().into_inner();
    assert_eq!(next(&mut stream).await, Some(StreamResultsResponse::default()));
    stream
}

#[tokio::test]
async fn a_slow_listener_slows_nobody_and_is_told_what_it_missed() {
    const VISITS: u64 = 50_000;
    let crawler = Arc::new(Crawler::default());
    let mut running = start(Some(Arc::clone(&crawler))).await;
    let mut slow = listen(&mut running.client, &[], &[]).await;
    let begun = Instant::now();
    for number in 0..VISITS {
        settle(&crawler, &format!("http://a.test/{number}"), Some(200));
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "nobody was waited for: {:?}", begun.elapsed());
    settle(&crawler, "http://last.test/", Some(200));
    let (mut heard, mut missed, mut before) = (0, 0, None);
    loop {
        let told = next(&mut slow).await.expect("the last one comes");
        missed += told.missed;
        let Some(result) = told.result else { continue };
        heard += 1;
        if result.url == "http://last.test/" {
            break;
        }
        let number: u64 = result.url["http://a.test/".len()..].parse().unwrap();
        assert!(before < Some(number), "in their order");
        before = Some(number);
    }
    assert_eq!(heard + missed, VISITS + 1);
    assert!(missed > VISITS / 2, "what is kept is bounded: {missed} of {VISITS} missed");
}

#[tokio::test]
async fn listeners_hear_of_hosts_and_statuses_they_asked_for() {
    let crawler = Arc::new(Crawler::default());
    let mut running = start(Some(Arc::clone(&crawler))).await;
    let mut check = async |hosts: &[&str], statuses: &[&str], expected: &[&str]| {
        let mut stream = listen(&mut running.client, hosts, statuses).await;
        settle(&crawler, "http://a.test/", Some(200));
        settle(&crawler, "http://b.a.test/", Some(404));
        settle(&crawler, "http://c.test/", Some(503));
        settle(&crawler, "http://d.test/", None);
        for expected in expected {
            assert_eq!(next(&mut stream).await.unwrap().result.unwrap().url, *expected);
        }
    };
    check(&[], &[], &["http://a.test/", "http://b.a.test/", "http://c.test/", "http://d.test/"]).await;
    check(&["domain:a.test"], &[], &["http://a.test/", "http://b.a.test/"]).await;
    check(&["*.a.test", "c.test"], &["4xx", "503"], &["http://b.a.test/", "http://c.test/"]).await;
    check(&[], &["error", "200"], &["http://a.test/", "http://d.test/"]).await;
    for (hosts, statuses, told) in
        [("", "6xx", "statuses"), ("", "20", "statuses"), ("", "x\n", "statuses"), ("a b", "200", "hosts")]
    {
        let hosts = Some(hosts).filter(|hosts| !hosts.is_empty());
        let request = StreamResultsRequest {
            hosts: hosts.into_iter().map(str::to_owned).collect(),
            statuses: vec![statuses.to_owned()],
        };
        let refused = running.client.stream_results(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().starts_with(told), "{refused}");
    }
}

#[tokio::test]
async fn streams_end_with_a_status_that_says_why() {
    for (stops, code) in [(true, Code::Unavailable), (false, Code::FailedPrecondition)] {
        let crawler = Arc::new(Crawler::default());
        let mut running = start(Some(Arc::clone(&crawler))).await;
        let mut stream = listen(&mut running.client, &[], &[]).await;
        settle(&crawler, "http://a.test/", Some(200));
        if stops {
            crawler.stops();
        }
        crawler.ended("so many pages are done as were wanted".to_owned());
        assert!(next(&mut stream).await.unwrap().result.is_some(), "what was kept comes first");
        assert_eq!(stream.message().await.unwrap_err().code(), code);
        let again = running.client.stream_results(StreamResultsRequest::default()).await;
        assert_eq!(again.unwrap_err().code(), code);
        let status = running.client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
        assert_eq!(status.state(), CrawlerState::Ended);
        assert_eq!(status.reason, "so many pages are done as were wanted");
        running.stop.send(()).unwrap();
        tokio::time::timeout(LONG, running.ended).await.expect("it ends").unwrap().unwrap();
    }
}

#[tokio::test]
async fn who_asks_a_service_that_does_not_crawl_is_told_how_it_would() {
    let mut running = start(None).await;
    let client = &mut running.client;
    let refusals = [
        client.submit_urls(SubmitUrlsRequest::default()).await.unwrap_err(),
        client.stream_results(StreamResultsRequest::default()).await.unwrap_err(),
        client.get_status(GetStatusRequest {}).await.unwrap_err(),
        client
            .set_crawler_state(SetCrawlerStateRequest { state: CrawlerState::Paused.into() })
            .await
            .unwrap_err(),
        client
            .upsert_domain_policy(UpsertDomainPolicyRequest {
                hosts: "a.test".to_owned(),
                delay_ms: Some(1),
                ..Default::default()
            })
            .await
            .unwrap_err(),
        client.force_recrawl(ForceRecrawlRequest::default()).await.unwrap_err(),
    ];
    for refused in refusals {
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert!(refused.message().contains("trapline serve --crawl"), "{refused}");
    }
}

#[tokio::test]
async fn a_crawl_that_is_about_to_begin_says_so() {
    let mut running = start(Some(Arc::default())).await;
    let client = &mut running.client;
    let status = client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.state(), CrawlerState::Starting);
    let urls = vec!["http://a.test/".to_owned()];
    let refused = client.submit_urls(SubmitUrlsRequest { urls, ..Default::default() }).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
}
