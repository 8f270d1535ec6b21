//! `trapline.v1.Frontier` as a client in any language sees it: bare URLs, streams, claims that wait, words that make no sense.

use std::sync::Arc;
use std::time::Duration;

use tonic::Code;
use tonic::transport::Channel;
use trapline_core::{IdentityKey, Preparer, Request, Timestamp};
use trapline_frontier::{CrawlChange, MemoryStore, NewCrawl, Settings, Steer, Store};
use trapline_server::proto::v1;
use v1::frontier_client::FrontierClient;

use crate::service::{Service, runtime};

async fn client(service: &Service) -> FrontierClient<Channel> {
    let endpoint = Channel::from_shared(format!("http://{}", service.address)).expect("it is an address");
    FrontierClient::new(endpoint.connect().await.expect("it listens"))
}

/// Runs a test against a service with one crawl, `c`, that knows nothing yet.
fn with_crawl<F: Future<Output = ()>>(
    settings: &[(&str, &str)],
    test: impl FnOnce(FrontierClient<Channel>) -> F,
) {
    let service = Service::start(Arc::new(MemoryStore::new()));
    let settings = settings.iter().map(|(name, value)| setting(name, value)).collect();
    runtime().block_on(async {
        let mut client = client(&service).await;
        let new = v1::NewCrawl { settings: Some(v1::Settings { settings }), ..Default::default() };
        change(&mut client, v1::crawl_change::Change::Create(new)).await.expect("it is made");
        test(client).await;
    });
}

fn setting(name: &str, value: &str) -> v1::Setting {
    v1::Setting { name: name.to_owned(), value: value.to_owned() }
}

async fn change(
    client: &mut FrontierClient<Channel>,
    change: v1::crawl_change::Change,
) -> Result<v1::SteerResponse, tonic::Status> {
    let target = v1::steer_request::Target::Change(v1::CrawlChange { change: Some(change) });
    steer(client, target).await
}

async fn steer(
    client: &mut FrontierClient<Channel>,
    target: v1::steer_request::Target,
) -> Result<v1::SteerResponse, tonic::Status> {
    let request = v1::SteerRequest { crawl: "c".to_owned(), target: Some(target), now_ms: None };
    client.steer(request).await.map(tonic::Response::into_inner)
}

fn bare(url: &str) -> v1::Candidate {
    let request = v1::Request { url: url.to_owned(), ..Default::default() };
    v1::Candidate { request: Some(request), ..Default::default() }
}

fn admit(urls: &[&str]) -> v1::AdmitRequest {
    v1::AdmitRequest {
        crawl: "c".to_owned(),
        candidates: urls.iter().map(|url| bare(url)).collect(),
        now_ms: None,
    }
}

fn claim(urls: u64) -> v1::ClaimRequest {
    v1::ClaimRequest { crawl: Some("c".to_owned()), urls, ..Default::default() }
}

fn done(lease: u64, links: &[&str]) -> v1::SettleRequest {
    let settlement = v1::Settlement {
        lease,
        outcome: Some(v1::settlement::Outcome::Done(v1::Done::default())),
        links: links.iter().map(|url| bare(url)).collect(),
        ..Default::default()
    };
    v1::SettleRequest { crawl: "c".to_owned(), settlements: vec![settlement], now_ms: None }
}

const ADDED: i32 = v1::Admission::Added as i32;
const KNOWN: i32 = v1::Admission::Known as i32;
const MALFORMED: i32 = v1::Admission::RefusedMalformed as i32;

#[test]
fn the_loop_of_a_crawler_needs_nothing_but_urls() {
    with_crawl(&[("delay", "0")], |mut client| async move {
        let urls = ["https://a.example/", "https://A.example", "no url", "https://b.example/x"];
        let admitted = client.admit(admit(&urls)).await.unwrap().into_inner();
        assert_eq!(admitted.admissions, [ADDED, KNOWN, MALFORMED, ADDED]);

        let claimed = client.claim(claim(10)).await.unwrap().into_inner();
        let lease = |url: &str| {
            let found = claimed.leases.iter().find(|lease| lease.request.as_ref().unwrap().url == url);
            found.unwrap_or_else(|| panic!("{url} in {claimed:?}")).clone()
        };
        assert_eq!(claimed.leases.len(), 2);
        let first = lease("https://a.example/");
        assert_eq!((&*first.crawl, &*first.key, first.delivery), ("c", "a.example", 1));

        let links = ["https://a.example/1", "::", "https://b.example/x"];
        let settled = client.settle(done(first.id, &links)).await.unwrap().into_inner().settled;
        assert_eq!(settled[0].answer, v1::SettledAnswer::SettledDone as i32);
        assert_eq!(settled[0].links, [ADDED, MALFORMED, KNOWN]);
        // Once more, as after a lost answer.
        let settled = client.settle(done(first.id, &links)).await.unwrap().into_inner().settled;
        assert_eq!(settled[0].answer, v1::SettledAnswer::SettledStale as i32);
        assert!(settled[0].links.is_empty());

        let list = v1::UrlListQuery { urls: vec!["https://a.example".to_owned()], identities: Vec::new() };
        let scan = v1::ScanRequest {
            crawl: "c".to_owned(),
            query: Some(v1::scan_request::Query::UrlList(list)),
            ..Default::default()
        };
        let Some(v1::scan_response::Rows::Urls(rows)) = client.scan(scan).await.unwrap().into_inner().rows
        else {
            panic!("URLs were asked for");
        };
        assert_eq!(rows.rows[0].state, v1::UrlState::Done as i32);
        let stats = v1::StatsRequest { crawl: "c".to_owned(), now_ms: None };
        let urls = client.stats(stats).await.unwrap().into_inner().urls.unwrap();
        assert_eq!((urls.done, urls.leased, urls.pending), (1, 1, 1));
    });
}

#[test]
fn streams_answer_every_batch_in_its_order() {
    with_crawl(&[], |mut client| async move {
        let batches: Vec<_> = (0..50)
            .map(|n| admit(&[&*format!("https://a.example/{n}"), &*format!("https://a.example/{}", n + 1)]))
            .collect();
        let mut answers = client.admit_stream(tokio_stream::iter(batches)).await.unwrap().into_inner();
        for n in 0..50 {
            let answer = answers.message().await.unwrap().expect("one for each");
            assert_eq!(answer.admissions, if n == 0 { [ADDED, ADDED] } else { [KNOWN, ADDED] }, "{n}");
        }
        assert!(answers.message().await.unwrap().is_none());
    });
}

#[test]
fn settlements_in_a_stream_are_answered_in_their_order_and_a_stale_one_stops_none() {
    with_crawl(&[("delay", "0"), ("concurrency", "0")], |mut client| async move {
        let urls: Vec<_> = (0..50).map(|n| format!("https://a.example/{n}")).collect();
        let urls: Vec<_> = urls.iter().map(String::as_str).collect();
        client.admit(admit(&urls)).await.unwrap();
        let leases = client.claim(claim(50)).await.unwrap().into_inner().leases;
        assert_eq!(leases.len(), 50);
        // Every tenth is settled twice, as after a lost answer.
        let (mut batches, mut expected) = (Vec::new(), Vec::new());
        for (n, lease) in leases.iter().enumerate() {
            // One link more for each, so that no two answers are alike.
            let links: Vec<_> = (0..=n).map(|link| format!("https://b.example/{n}/{link}")).collect();
            let links: Vec<_> = links.iter().map(String::as_str).collect();
            batches.push(done(lease.id, &links));
            expected.push((v1::SettledAnswer::SettledDone as i32, vec![ADDED; n + 1]));
            if n % 10 == 0 {
                batches.push(done(lease.id, &links));
                expected.push((v1::SettledAnswer::SettledStale as i32, Vec::new()));
            }
        }
        let mut answers = client.settle_stream(tokio_stream::iter(batches)).await.unwrap().into_inner();
        for (n, expected) in expected.into_iter().enumerate() {
            let mut settled = answers.message().await.unwrap().expect("one for each").settled;
            assert_eq!(settled.len(), 1, "{n}");
            let settled = settled.remove(0);
            assert_eq!((settled.answer, settled.links), expected, "{n}");
        }
        assert!(answers.message().await.unwrap().is_none());
    });
}

#[test]
fn a_claim_waits_until_something_comes() {
    with_crawl(&[("delay", "0")], |mut client| async move {
        let mut other = client.clone();
        let waiting = tokio::spawn(async move {
            other.claim(v1::ClaimRequest { wait_ms: 600_000, ..claim(1) }).await.unwrap().into_inner()
        });
        client.admit(admit(&["https://a.example/"])).await.unwrap();
        let claimed = tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("it came").unwrap();
        assert_eq!(claimed.leases.len(), 1);
        // And no longer than it was told to.
        let claimed = client.claim(v1::ClaimRequest { wait_ms: 10, ..claim(1) }).await.unwrap().into_inner();
        assert!(claimed.leases.is_empty());
        // Nor for what can never come.
        change(&mut client, v1::crawl_change::Change::Finish("enough".to_owned())).await.unwrap();
        let hopeless = client.claim(v1::ClaimRequest { wait_ms: 600_000, ..claim(1) });
        let claimed =
            tokio::time::timeout(Duration::from_secs(30), hopeless).await.expect("it does not wait");
        assert!(claimed.unwrap().into_inner().leases.is_empty());
    });
}

/// What does not fit into one answer is as if never claimed: nobody has heard of it.
#[test]
fn leases_that_no_answer_has_room_for_are_given_back() {
    with_crawl(&[("delay", "0"), ("concurrency", "0")], |mut client| async move {
        for n in 0..8 {
            let mut candidate = bare(&format!("https://a.example/{n}"));
            candidate.request.as_mut().unwrap().opaque = vec![7; 1 << 20];
            let request =
                v1::AdmitRequest { crawl: "c".to_owned(), candidates: vec![candidate], now_ms: None };
            client.admit(request).await.unwrap();
        }
        let mut urls = Vec::new();
        while urls.len() < 8 {
            let claimed = client.claim(claim(100)).await.unwrap().into_inner();
            assert!((1..=2).contains(&claimed.leases.len()), "{}", claimed.leases.len());
            urls.extend(claimed.leases.into_iter().map(|lease| lease.request.unwrap().url));
        }
        let expected: Vec<_> = (0..8).map(|n| format!("https://a.example/{n}")).collect();
        assert_eq!(urls, expected);
    });
}

#[test]
fn words_that_make_no_sense_are_told_so() {
    with_crawl(&[], |mut client| async move {
        let told = |status: tonic::Status, code: Code, words: &str| {
            assert_eq!(status.code(), code, "{status:?}");
            assert!(status.message().contains(words), "{status:?}");
        };
        let of_other = |request: v1::AdmitRequest| v1::AdmitRequest { crawl: "other".to_owned(), ..request };
        let status = client.admit(of_other(admit(&["https://a.example/"]))).await.unwrap_err();
        told(status, Code::NotFound, "there is no crawl `other`");

        let status = client.admit(v1::AdmitRequest {
            candidates: vec![v1::Candidate { class: Some(256), ..bare("https://a.example/") }],
            ..admit(&[])
        });
        told(status.await.unwrap_err(), Code::InvalidArgument, "`class` is 256; it must be from 0 to 255");

        let short = v1::Candidate { identity: vec![1, 2, 3], ..bare("https://a.example/") };
        let status =
            client.admit(v1::AdmitRequest { candidates: vec![short], ..admit(&[]) }).await.unwrap_err();
        told(status, Code::InvalidArgument, "`identity` is 3 bytes long; it must be 16 bytes long");

        let status =
            client.admit(v1::AdmitRequest { candidates: vec![v1::Candidate::default()], ..admit(&[]) }).await;
        told(status.unwrap_err(), Code::InvalidArgument, "lacks a `request`");

        let many = vec![v1::Candidate::default(); 100_001];
        let status = client.admit(v1::AdmitRequest { candidates: many, ..admit(&[]) }).await.unwrap_err();
        told(status, Code::InvalidArgument, "send it in parts");

        let nothing = v1::Settlement { lease: 1, ..Default::default() };
        let request = v1::SettleRequest { crawl: "c".to_owned(), settlements: vec![nothing], now_ms: None };
        told(client.settle(request).await.unwrap_err(), Code::InvalidArgument, "lacks an outcome");

        let request = v1::SteerRequest { crawl: "c".to_owned(), ..Default::default() };
        told(client.steer(request).await.unwrap_err(), Code::InvalidArgument, "lacks what to steer");
        let settings = v1::Settings { settings: vec![setting("dely", "1s")] };
        let status = change(&mut client, v1::crawl_change::Change::Set(settings)).await.unwrap_err();
        told(status, Code::InvalidArgument, "delay");

        let request = v1::ScanRequest { crawl: "c".to_owned(), ..Default::default() };
        told(client.scan(request).await.unwrap_err(), Code::InvalidArgument, "lacks a `query`");
        let query = v1::UrlsQuery { state: Some(99), ..Default::default() };
        let request = v1::ScanRequest {
            crawl: "c".to_owned(),
            query: Some(v1::scan_request::Query::Urls(query)),
            ..Default::default()
        };
        told(client.scan(request).await.unwrap_err(), Code::InvalidArgument, "`state` is 99");
        // Which of many it is.
        let wrong = v1::Candidate { class: Some(256), ..bare("https://a.example/2") };
        let candidates = vec![bare("https://a.example/"), wrong];
        let status = client.admit(v1::AdmitRequest { candidates, ..admit(&[]) }).await.unwrap_err();
        told(status, Code::InvalidArgument, "candidate 1, counted from 0: `class` is 256");
        // And none of it changed anything.
        let stats = v1::StatsRequest { crawl: "c".to_owned(), now_ms: None };
        assert_eq!(client.stats(stats).await.unwrap().into_inner().urls.unwrap(), v1::UrlCounts::default());
    });
}

/// Whoever writes out defaults, or means "not", does not delete a crawl.
#[test]
fn a_choice_that_says_no_is_refused() {
    use v1::steer_request::Target;
    with_crawl(&[], |mut client| async move {
        client.admit(admit(&["https://a.example/"])).await.expect("it is admitted");
        let queue =
            |change| Target::Queue(v1::QueueChange { key: "a.example".to_owned(), change: Some(change) });
        let crawl = |change| Target::Change(v1::CrawlChange { change: Some(change) });
        let urls = |change| Target::Urls(v1::UrlsChange { change: Some(change), ..Default::default() });
        for (target, name) in [
            (crawl(v1::crawl_change::Change::Delete(false)), "delete"),
            (crawl(v1::crawl_change::Change::Pause(false)), "pause"),
            (queue(v1::queue_change::Change::Delete(false)), "delete"),
            (queue(v1::queue_change::Change::PurgeAll(false)), "purge_all"),
            (queue(v1::queue_change::Change::Retire(false)), "retire"),
            (urls(v1::urls_change::Change::Forget(false)), "forget"),
        ] {
            let status = steer(&mut client, target).await.expect_err(name);
            assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
            assert!(status.message().starts_with(&format!("`{name}` is false")), "{status:?}");
        }
        let lease = client.claim(claim(1)).await.expect("nothing was changed").into_inner().leases[0].id;
        let outcome = Some(v1::settlement::Outcome::Release(false));
        let settlements = vec![v1::Settlement { lease, outcome, ..Default::default() }];
        let request = v1::SettleRequest { crawl: "c".to_owned(), settlements, now_ms: None };
        let status = client.settle(request).await.expect_err("nothing was released");
        assert!(status.message().contains("settlement 0, counted from 0: `release` is false"), "{status:?}");
    });
}

#[test]
fn names_of_crawls_have_an_end() {
    with_crawl(&[], |mut client| async move {
        let mut create = async |crawl: &str| {
            let change = Some(v1::crawl_change::Change::Create(v1::NewCrawl::default()));
            let target = Some(v1::steer_request::Target::Change(v1::CrawlChange { change }));
            client.steer(v1::SteerRequest { crawl: crawl.to_owned(), target, now_ms: None }).await
        };
        for (name, words) in [(String::new(), "a crawl needs a name"), ("x".repeat(256), "at most 255 bytes")]
        {
            let status = create(&name).await.expect_err(words);
            assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
            assert!(status.message().contains(words), "{status:?}");
        }
        create(&"x".repeat(255)).await.expect("it is short enough");
    });
}

/// Another process may have deleted the crawl and made one of the same name, which has another key: a URL is the same to both then, too.
#[test]
fn a_crawl_that_was_made_anew_beside_the_service_is_not_taken_for_the_one_before() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let service = Service::start(Arc::clone(&store));
    let (now, url) = (Timestamp::ZERO, "http://a.example/1");
    runtime().block_on(async {
        let mut client = client(&service).await;
        let mut admitted = async || {
            let answer = client.admit(admit(&[url])).await.expect("it is taken");
            answer.into_inner().admissions().collect::<Vec<_>>()
        };
        for seed in [1, 2] {
            let key = IdentityKey::from_seed(seed);
            let new = NewCrawl { settings: Settings::default(), partitions: 1, key };
            for change in [CrawlChange::Delete, CrawlChange::Create(new)] {
                // There is none to delete at first.
                let _ = store.steer("c", now, Steer::Crawl(change)).await;
            }
            let candidate = Preparer::new(key).prepare(Request::get(url)).expect("a URL");
            store.admit("c", now, &[candidate]).await.expect("it is taken");
            assert_eq!(admitted().await, [v1::Admission::Known], "with key {seed}");
        }
    });
}
