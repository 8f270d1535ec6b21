//! `trapline serve --crawl` from outside: a crawl that is told what to fetch, listened to and steered over gRPC.
#![allow(clippy::unwrap_used, reason = "helpers are parts of the tests")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Streaming};
use trapline_server::proto::v1::crawler_client::CrawlerClient;
use trapline_server::proto::v1::{
    CrawlerState, ForceRecrawlRequest, GetStatusRequest, GetStatusResponse, Recrawl, SetCrawlerStateRequest,
    StreamResultsRequest, StreamResultsResponse, SubmissionAnswer, SubmitUrlsRequest,
    UpsertDomainPolicyRequest, VisitResult,
};

use crate::crawl::{lines, site, trapline};
use crate::fetch::{ok, serve as serve_pages};
use crate::folder::Folder;
use crate::service::Service;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

struct CrawlingService {
    service: Service,
    client: CrawlerClient<Channel>,
}

/// A service that crawls into a folder, on ports that were free.
async fn serve(folder: &Folder, more: &[&str]) -> CrawlingService {
    reach(Service::start_crawling(folder, more)).await
}

async fn reach(service: Service) -> CrawlingService {
    let endpoint = Endpoint::from_shared(format!("http://{}", service.grpc)).unwrap();
    let client = CrawlerClient::new(endpoint.connect().await.unwrap());
    let mut service = CrawlingService { service, client };
    service.until(|status| status.state() != CrawlerState::Starting).await;
    service
}

impl CrawlingService {
    async fn until(&mut self, is_so: impl Fn(&GetStatusResponse) -> bool) -> GetStatusResponse {
        let asking = async {
            loop {
                let status = self.client.get_status(GetStatusRequest {}).await.unwrap().into_inner();
                if is_so(&status) {
                    return status;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LONG, asking).await.expect("it comes to be so")
    }

    async fn submit(&mut self, urls: &[&str], depth_limit: Option<u32>) -> Vec<(SubmissionAnswer, String)> {
        let urls = urls.iter().map(|url| (*url).to_owned()).collect();
        let request = SubmitUrlsRequest { urls, depth_limit, priority: Some(5) };
        let told = self.client.submit_urls(request).await.unwrap().into_inner().submissions;
        told.into_iter().map(|told| (told.answer(), told.reason)).collect()
    }

    async fn listen(&mut self) -> Streaming<StreamResultsResponse> {
        let mut results =
            self.client.stream_results(StreamResultsRequest::default()).await.unwrap().into_inner();
        assert_eq!(results.message().await.unwrap(), Some(StreamResultsResponse::default()));
        results
    }

    async fn tell(&mut self, state: CrawlerState) -> Result<CrawlerState, tonic::Status> {
        let told = self.client.set_crawler_state(SetCrawlerStateRequest { state: state.into() }).await?;
        Ok(told.into_inner().state())
    }

    fn get(&self, path: &str) -> String {
        self.service.get(path)
    }

    /// Ends as an operator ends it, and says how.
    fn end(mut self) -> Option<i32> {
        self.service.end().code()
    }
}

async fn next(results: &mut Streaming<StreamResultsResponse>) -> VisitResult {
    let told =
        tokio::time::timeout(LONG, results.message()).await.expect("something comes").unwrap().unwrap();
    assert_eq!(told.missed, 0);
    told.result.unwrap()
}

fn url(address: SocketAddr, path: &str) -> String {
    format!("http://{address}{path}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_crawls_what_it_is_told_and_tells_of_it() {
    let folder = Folder::new("serve-crawl");
    let (address, asked) = site(5, "");
    let mut service = serve(&folder, &[]).await;
    let mut results = service.listen().await;

    // Only what is a link away, of a chain of five.
    let first = url(address, "/p0");
    let answers = service.submit(&[&first, &first, "no url:", "mailto:a@b.test", ""], Some(1)).await;
    let kinds: Vec<_> = answers.iter().map(|(answer, _)| *answer).collect();
    let refused = SubmissionAnswer::SubmissionRefused;
    let added = SubmissionAnswer::SubmissionAdded;
    assert_eq!(kinds, [added, SubmissionAnswer::SubmissionKnown, refused, refused, refused]);
    assert!(answers[2..].iter().all(|(_, reason)| !reason.is_empty()), "{answers:?}");
    let mut heard = BTreeSet::new();
    for _ in 0..4 {
        let result = next(&mut results).await;
        let (status, title) = if result.url.contains('?') { (404, "") } else { (200, "Page ") };
        assert_eq!((result.outcome.as_str(), result.status), ("done", Some(status)));
        assert!(!result.is_revisit);
        assert!(result.title.starts_with(title), "{result:?}");
        heard.insert(result.url);
    }
    let expected: BTreeSet<_> =
        ["/p0", "/p1", "/p2", "/p1?sort=up"].iter().map(|path| url(address, path)).collect();
    assert_eq!(heard, expected);
    let status = service.until(|status| status.in_flight == 0 && status.pending == 0).await;
    assert_eq!((status.state(), status.done, status.pages), (CrawlerState::Running, 4, 4));

    // Paused, it takes URLs and asks for none of them.
    assert_eq!(service.tell(CrawlerState::Paused).await.unwrap(), CrawlerState::Paused);
    assert_eq!(service.tell(CrawlerState::Ended).await.unwrap_err().code(), Code::InvalidArgument);
    let before = asked.lock().unwrap().len();
    let known = service.submit(&[&url(address, "/p4")], None).await;
    assert_eq!(known[0].0, added);
    assert_eq!(service.until(|status| status.pending == 1).await.state(), CrawlerState::Paused);
    assert_eq!(asked.lock().unwrap().len(), before);
    assert_eq!(service.tell(CrawlerState::Running).await.unwrap(), CrawlerState::Running);
    assert_eq!(next(&mut results).await.url, url(address, "/p4"));

    let metrics = service.get("/metrics");
    for line in [
        "trapline_pages_fetched_total{status=\"2xx\"} 4",
        "trapline_fetch_seconds_count ",
        "trapline_page_bytes_sum ",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    for gauge in ["trapline_active_workers ", "trapline_workers_max 200", "trapline_dns_cache_names 0"] {
        assert!(metrics.contains(&format!("\n{gauge}")), "{gauge} is not in {metrics}");
    }
    assert!(
        metrics.contains("trapline_store_calls_total{verb=\"settle\",result=\"ok\"}"),
        "the crawl's verbs count"
    );

    assert_eq!(service.end(), Some(0));
    let ended = loop {
        match results.message().await {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::Unavailable);
    assert_eq!(
        lines(&folder.path, "pages.jsonl").len(),
        asked.lock().unwrap().len() - 1,
        "but for robots.txt"
    );
    assert!(trapline(&["status"], &folder.path).status.success());

    // It knows what it was told before.
    let mut service = serve(&folder, &[]).await;
    assert_eq!(service.submit(&[&first], None).await[0].0, SubmissionAnswer::SubmissionKnown);
    assert_eq!(service.end(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_fetched_again_on_demand_and_hosts_get_policies() {
    let folder = Folder::new("serve-recrawl");
    let visits = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&visits);
    let address = serve_pages(move |path, _| match path {
        "/robots.txt" => ok("", ""),
        "/changing" => {
            let visit = count.fetch_add(1, Ordering::SeqCst);
            ok("Content-Type: text/html\r\n", &format!("<title>{visit}</title>"))
        }
        _ => ok("Content-Type: text/html\r\n", "<title>same</title>"),
    });
    let mut service = serve(&folder, &[]).await;
    let mut results = service.listen().await;
    let (same, changing) = (url(address, "/same"), url(address, "/changing"));
    service.submit(&[&same, &changing], None).await;
    let mut first = [next(&mut results).await.url, next(&mut results).await.url];
    first.sort();
    assert_eq!(first, [changing.clone(), same.clone()]);

    let urls = vec![same.clone(), changing.clone(), url(address, "/unknown"), "http://".to_owned()];
    let told = service.client.force_recrawl(ForceRecrawlRequest { urls, hosts: Vec::new() }).await.unwrap();
    let told: Vec<_> = told.into_inner().urls().collect();
    assert_eq!(told, [Recrawl::Queued, Recrawl::Queued, Recrawl::Unknown, Recrawl::Malformed]);
    for _ in 0..2 {
        let again = next(&mut results).await;
        assert!(again.is_revisit, "{again:?}");
        assert_eq!(again.changed, again.url == changing, "{again:?}");
    }
    service.until(|status| status.in_flight == 0 && status.pending == 0).await;
    // And all of a host.
    let request = ForceRecrawlRequest { urls: Vec::new(), hosts: vec![address.to_string()] };
    service.client.force_recrawl(request).await.unwrap();
    let mut again = [next(&mut results).await.url, next(&mut results).await.url];
    again.sort();
    assert_eq!(again, [changing, same.clone()]);
    let metrics = service.get("/metrics");
    for line in ["{outcome=\"changed\"} 2\n", "{outcome=\"unchanged\"} 2\n", "{outcome=\"error\"} 0\n"] {
        assert!(metrics.contains(&format!("trapline_recrawls_total{line}")), "{line} is not in {metrics}");
    }

    let policy = |hosts: &str, options: &[(&str, &str)], max_depth| UpsertDomainPolicyRequest {
        hosts: hosts.to_owned(),
        max_depth,
        options: options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..Default::default()
    };
    for (wrong, word) in [
        (policy("", &[], Some(1)), "hosts"),
        (policy("127.0.0.1", &[], None), "delay_ms"),
        (policy("127.0.0.1", &[("dely", "1s")], None), "did you mean `delay`?"),
        (policy("127.0.0.1", &[("delay", "soon")], None), "is not a duration"),
        (policy("a b", &[], Some(1)), "a b"),
        (policy("127.0.0.1", &[("delay", "1s\nbudget\t1")], None), "one line"),
    ] {
        let refused = service.client.upsert_domain_policy(wrong).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(word), "{refused} has no {word}");
    }
    for (wrong, word) in [
        (UpsertDomainPolicyRequest { delay_ms: Some(u64::MAX), ..policy("127.0.0.1", &[], None) }, "30 days"),
        (UpsertDomainPolicyRequest { revisit_ms: Some(0), ..policy("127.0.0.1", &[], None) }, "revisit_ms"),
        (
            UpsertDomainPolicyRequest { delay_ms: Some(1), ..policy("127.0.0.1", &[("delay", "2s")], None) },
            "twice",
        ),
    ] {
        let refused = service.client.upsert_domain_policy(wrong).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains(word), "{refused} has no {word}");
    }
    let exclude = [("exclude", "[\"/never\"]")];
    service.client.upsert_domain_policy(policy("127.0.0.1", &exclude, Some(3))).await.unwrap();
    let told = service.submit(&[&url(address, "/never"), &url(address, "/other")], None).await;
    assert_eq!(told[0].0, SubmissionAnswer::SubmissionRefused, "{told:?}");
    assert_eq!(told[1].0, SubmissionAnswer::SubmissionAdded, "{told:?}");
    assert_eq!(next(&mut results).await.url, url(address, "/other"));
    assert_eq!(service.end(), Some(0));

    // Also after a restart.
    let mut service = serve(&folder, &[]).await;
    let told = service.submit(&[&url(address, "/never/2")], None).await;
    assert_eq!(told[0].0, SubmissionAnswer::SubmissionRefused, "{told:?}");
    assert_eq!(service.end(), Some(0));
}

/// Nobody is kept waiting for a store that is away, or told where it is.
#[tokio::test(flavor = "multi_thread")]
async fn callers_hear_that_the_store_is_away_and_not_where_it_is() {
    let folder = Folder::new("serve-store-away");
    let mut behind = Service::start(&format!("disk:{}/store", folder.path.display()), &[]);
    let crawling = Service::start_crawling_on(&format!("grpc://{}", behind.grpc), &folder, &[]);
    let address = behind.grpc.clone();
    let mut service = reach(crawling).await;
    behind.kill();
    let policy = UpsertDomainPolicyRequest {
        hosts: "a.example".to_owned(),
        delay_ms: Some(1000),
        ..Default::default()
    };
    let urls = vec!["https://a.example/".to_owned()];
    let (mut submitting, mut pausing) = (service.client.clone(), service.client.clone());
    let told = tokio::time::timeout(LONG, async {
        let submit = SubmitUrlsRequest { urls, ..Default::default() };
        let pause = SetCrawlerStateRequest { state: CrawlerState::Paused.into() };
        let (submitted, paused) =
            tokio::join!(submitting.submit_urls(submit), pausing.set_crawler_state(pause));
        [
            submitted.map(drop).unwrap_err(),
            paused.map(drop).unwrap_err(),
            service.client.upsert_domain_policy(policy).await.map(drop).unwrap_err(),
        ]
    });
    for status in told.await.expect("all of them are answered") {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(!status.message().contains(&address) && !status.message().is_empty(), "{status:?}");
    }
}

/// The frontier is served on, and who wants the crawl is told how it ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_that_ends_by_a_limit_leaves_the_service() {
    let folder = Folder::new("serve-limit");
    let (address, _) = site(50, "");
    let mut service = serve(&folder, &["--set", "crawl.max_pages=3"]).await;
    service.submit(&[&url(address, "/")], None).await;
    let status = service.until(|status| status.state() == CrawlerState::Ended).await;
    assert!(status.reason.contains("`crawl.max_pages`"), "{status:?}");
    assert!(status.pages >= 3, "{status:?}");
    let refused = service.tell(CrawlerState::Paused).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(service.get("/readyz").starts_with("HTTP/1.1 200 "));
    assert_eq!(service.end(), Some(0));
}

#[test]
fn mistakes_are_told_before_anything_is_served() {
    let folder = Folder::new("serve-mistakes");
    let check = |arguments: &[&str], words: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_trapline"))
            .args(["serve", "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--out"])
            .arg(&folder.path)
            .args(arguments)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(words), "{told} has no {words}");
        assert_eq!(output.status.code(), Some(2));
    };
    check(&[], "--crawl");
    check(&["--crawl", "--set", "strategy.name=nonsense"], "there is no strategy `nonsense`");
    check(&["--crawl", "--set", "crawl.seeds=/etc"], "this is a path and no URL");
    assert!(!folder.path.join("store").exists(), "nothing was made");
}
