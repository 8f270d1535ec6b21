//! The public URLFrontier API by its own clock: order, pace, limits, blocks, what is removed, and restarts in between.
//! `servers::serving` of the binary does the same with a client that we did not write.
#![allow(clippy::unwrap_used, reason = "helpers are parts of the tests")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tonic::Code;
use tonic::transport::Channel;
use trapline_frontier::{CrawlChange, MemoryStore, Steer, Store};
use trapline_server::proto::urlfrontier as pb;
use trapline_stores::{DiskOptions, DiskStore};

use crate::folder::TestFolder;
use crate::service::{Service, runtime};
use pb::ack_message::Status::{Ok as Taken, Skipped};
use pb::url_frontier_client::UrlFrontierClient;

/// A client that waits for each answer.
struct Client(UrlFrontierClient<Channel>);

const NOW: u64 = 1_000_000;

impl Client {
    fn of(service: &Service) -> Self {
        let endpoint = Channel::from_shared(format!("http://{}", service.address)).unwrap();
        Self(UrlFrontierClient::new(runtime().block_on(endpoint.connect()).unwrap()))
    }

    fn put(&mut self, items: Vec<pb::UrlItem>) -> Vec<(String, i32)> {
        runtime().block_on(async {
            let mut answers = self.0.put_ur_ls(tokio_stream::iter(items)).await.unwrap().into_inner();
            let mut acks = Vec::new();
            while let Some(ack) = answers.message().await.unwrap() {
                acks.push((ack.id, ack.status));
            }
            acks
        })
    }

    fn statuses(&mut self, items: Vec<pb::UrlItem>) -> Vec<i32> {
        self.put(items).into_iter().map(|(_, status)| status).collect()
    }

    fn infos(&mut self, params: pb::GetParams) -> Vec<pb::UrlInfo> {
        runtime().block_on(async {
            let mut answers = self.0.get_ur_ls(params).await.unwrap().into_inner();
            let mut infos = Vec::new();
            while let Some(info) = answers.message().await.unwrap() {
                infos.push(info);
            }
            infos
        })
    }

    fn get(&mut self, crawl: &str, per_queue: u32, queues: u32) -> Vec<String> {
        let params = pb::GetParams {
            max_urls_per_queue: per_queue,
            max_queues: queues,
            item: Some(pb::get_params::Item::CrawlId(crawl.to_owned())),
            ..Default::default()
        };
        self.infos(params).into_iter().map(|info| info.url).collect()
    }

    fn stats(&mut self, key: &str, crawl: &str) -> (u64, u32, u64, u64) {
        let stats = runtime().block_on(self.0.get_stats(queue(key, crawl))).unwrap().into_inner();
        (
            stats.size,
            stats.in_process,
            stats.counts.get("completed").copied().unwrap_or_default(),
            stats.number_of_queues,
        )
    }

    fn delay(&mut self, key: &str, crawl: &str, seconds: u32) {
        let params = pb::QueueDelayParams {
            key: key.to_owned(),
            crawl_id: crawl.to_owned(),
            delay_requestable: seconds,
            local: false,
        };
        runtime().block_on(self.0.set_delay(params)).unwrap();
    }

    fn block(&mut self, key: &str, crawl: &str, time: u64) {
        let params =
            pb::BlockQueueParams { key: key.to_owned(), crawl_id: crawl.to_owned(), time, local: false };
        runtime().block_on(self.0.block_queue_until(params)).unwrap();
    }

    fn limit(&mut self, key: &str, crawl: &str, limit: u32) {
        let params =
            pb::CrawlLimitParams { key: key.to_owned(), crawl_id: crawl.to_owned(), limit, local: false };
        runtime().block_on(self.0.set_crawl_limit(params)).unwrap();
    }

    fn active(&mut self, state: bool) {
        runtime().block_on(self.0.set_active(pb::Active { state, local: false })).unwrap();
    }

    fn status(&mut self, url: &str, crawl: &str) -> Result<u64, Code> {
        let request =
            pb::UrlStatusRequest { url: url.to_owned(), key: String::new(), crawl_id: crawl.to_owned() };
        let item = runtime().block_on(self.0.get_url_status(request)).map_err(|status| status.code())?;
        match item.into_inner().item {
            Some(pb::url_item::Item::Known(known)) => Ok(known.refetchable_from_date),
            _ => panic!("it is always known"),
        }
    }
}

fn queue(key: &str, crawl: &str) -> pb::QueueWithinCrawlParams {
    pb::QueueWithinCrawlParams { key: key.to_owned(), crawl_id: crawl.to_owned(), local: false }
}

fn info(url: &str, crawl: &str) -> pb::UrlInfo {
    pb::UrlInfo { url: url.to_owned(), crawl_id: crawl.to_owned(), ..Default::default() }
}

fn discovered(url: &str, crawl: &str) -> pb::UrlItem {
    let item = pb::DiscoveredUrlItem { info: Some(info(url, crawl)) };
    pb::UrlItem { item: Some(pb::url_item::Item::Discovered(item)), ..Default::default() }
}

fn known(url: &str, crawl: &str, date: u64) -> pb::UrlItem {
    let item = pb::KnownUrlItem { info: Some(info(url, crawl)), refetchable_from_date: date };
    pb::UrlItem { item: Some(pb::url_item::Item::Known(item)), ..Default::default() }
}

fn in_memory() -> (Service, Client) {
    let service = Service::start(Arc::new(MemoryStore::new()));
    let client = Client::of(&service);
    (service, client)
}

fn at(service: &Service, seconds: u64) {
    service.seconds.store(NOW + seconds, Ordering::SeqCst);
}

#[test]
fn urls_go_out_by_date_and_then_by_text() {
    let (service, mut client) = in_memory();
    let url = |name: &str| format!("http://a.example/{name}");
    client.put(vec![
        known(&url("late"), "", NOW - 1),
        known(&url("3"), "", NOW - 9),
        known(&url("2"), "", NOW - 9),
        known(&url("future"), "", NOW + 50),
        known(&url("far"), "", 99_999_999_999),
    ]);
    assert_eq!(client.get("", 10, 10), [url("2"), url("3"), url("late")]);
    assert_eq!(client.get("", 10, 10), [""; 0], "they are leased");
    // Leases of 30 s, and a second to wait. Those whose lease ended come first; what came together is in the order of its text.
    at(&service, 31);
    assert_eq!(client.get("DEFAULT", 1, 0), [url("2")]);
    at(&service, 60);
    assert_eq!(client.get(" ", 10, 0), [url("3"), url("late"), url("future")]);
    assert_eq!(client.status(&url("far"), ""), Ok(99_999_999_999));
    assert_eq!(client.status(&url("nowhere"), ""), Err(Code::NotFound));
    assert_eq!(client.status("", ""), Err(Code::InvalidArgument));
}

#[test]
fn a_queue_waits_from_its_batch_on() {
    let (service, mut client) = in_memory();
    let urls: Vec<_> = (0..9).map(|n| format!("http://a.example/{n}")).collect();
    client.put(urls.iter().map(|url| discovered(url, "c")).collect());
    assert_eq!(client.get("c", 2, 0), urls[0..2]);
    assert!(client.get("c", 2, 0).is_empty());
    // What becomes of them does not matter.
    client.put(vec![known(&urls[0], "c", 0)]);
    assert!(client.get("c", 2, 0).is_empty());
    at(&service, 1);
    assert_eq!(client.get("c", 2, 0), urls[2..4]);
    // Also of the wait that goes on: it ends so long after the last batch.
    client.delay("a.example", "c", 5);
    at(&service, 5);
    assert!(client.get("c", 1, 0).is_empty());
    at(&service, 6);
    assert_eq!(client.get("c", 1, 0), urls[4..5]);
    at(&service, 10);
    assert!(client.get("c", 1, 0).is_empty());
    at(&service, 11);
    assert_eq!(client.get("c", 1, 0), urls[5..6]);
    // For all crawls, those to come among them; but what was said of a queue counts more.
    client.delay("", "", 100);
    client.put(vec![discovered("http://b.example/1", "later"), discovered("http://b.example/2", "later")]);
    at(&service, 16);
    assert_eq!((client.get("c", 1, 0).len(), client.get("later", 1, 0).len()), (1, 1));
    at(&service, 115);
    assert!(client.get("later", 1, 0).is_empty());
    at(&service, 116);
    assert_eq!(client.get("later", 1, 0).len(), 1);
}

/// What robots.txt asks for is known when its host was served already.
#[test]
fn a_delay_that_is_told_later_counts_from_the_last_batch() {
    let folder = TestFolder::new();
    let open = || Arc::new(DiskStore::open(folder.path(), &DiskOptions::default()).unwrap());
    let store = open();
    let mut service = Service::start(Arc::clone(&store) as _);
    let mut client = Client::of(&service);
    let hosts = ["early", "late", "settled", "restarted", "other", "blocked"];
    let url = |host: &str, n: u32| format!("http://{host}.example/{n}");
    client.put(hosts.iter().flat_map(|host| (0..3).map(move |n| discovered(&url(host, n), "c"))).collect());
    client.block("blocked.example", "c", NOW + 5000);
    assert_eq!(client.get("c", 1, 0).len(), 5);
    // While its wait goes on; after it has ended; and when nothing of the batch is out any more.
    client.delay("early.example", "c", 100);
    at(&service, 5);
    client.delay("late.example", "c", 100);
    client.put(vec![known(&url("settled", 0), "c", 0)]);
    client.delay("settled.example", "c", 100);
    // What is blocked for longer stays so.
    client.delay("blocked.example", "c", 100);
    service.stop();
    store.abandon();
    drop(store);
    let service = Service::start(open() as _);
    let mut client = Client::of(&service);
    at(&service, 6);
    client.delay("restarted.example", "c", 100);
    at(&service, 29);
    assert_eq!(client.get("c", 1, 0), [url("other", 1)], "nobody told it anything");
    client.delay("", "", 70);
    at(&service, 98);
    assert!(client.get("c", 1, 0).is_empty());
    at(&service, 99);
    assert_eq!(client.get("c", 1, 0), [url("other", 0)], "its lease of 30 s has ended");
    at(&service, 100);
    let mut served = client.get("c", 1, 0);
    served.sort();
    assert_eq!(served, [url("early", 0), url("late", 0), url("restarted", 0), url("settled", 1)]);
    // A wait is never made shorter.
    client.delay("early.example", "c", 0);
    at(&service, 168);
    assert!(client.get("c", 1, 0).is_empty());
}

#[test]
fn queues_take_turns_within_the_bounds_of_a_call() {
    let (service, mut client) = in_memory();
    let urls = |host: u32| (0..4).map(move |n| discovered(&format!("http://h{host}.example/{n}"), "c"));
    client.put((0..5).flat_map(urls).collect());
    client.delay("", "", 0);
    let hosts = |urls: Vec<String>| {
        let mut hosts: Vec<_> = urls.iter().map(|url| url[8..9].parse::<u32>().unwrap()).collect();
        hosts.sort_unstable();
        hosts
    };
    assert_eq!(hosts(client.get("c", 1, 2)).len(), 2);
    let mut served = hosts(client.get("c", 1, 3));
    served.extend(hosts(client.get("c", 1, 5)));
    served.sort_unstable();
    assert_eq!(served.len(), 8);
    at(&service, 1);
    assert_eq!(client.get("c", 0, 0).len(), 10, "no bound is none");
}

#[test]
fn any_crawl_serves_those_of_this_api_only() {
    let (service, mut client) = in_memory();
    let native = service.connect();
    let now = trapline_core::Timestamp::from_millis(NOW * 1000);
    runtime().block_on(async {
        let frontier = trapline_frontier::Frontier::builder("native").open(native, now).await.unwrap();
        frontier.admit(now, [trapline_core::Request::get("http://n.example/")]).await.unwrap();
    });
    client.put(vec![discovered("http://a.example/", "one"), discovered("http://a.example/", "t_w_o")]);
    let any = pb::GetParams {
        item: Some(pb::get_params::Item::AnyCrawlId(pb::AnyCrawlId {})),
        ..Default::default()
    };
    let mut served: Vec<_> = client.infos(any).into_iter().map(|info| (info.crawl_id, info.key)).collect();
    served.sort();
    let a = || "a.example".to_owned();
    assert_eq!(served, [("one".to_owned(), a()), ("t_w_o".to_owned(), a())]);
    // FAIL would ask to send it again.
    assert_eq!(client.statuses(vec![discovered("http://a.example/", "native")]), [Skipped as i32]);
    let crawls = runtime().block_on(client.0.list_crawls(pb::Local::default())).unwrap().into_inner().values;
    assert_eq!(crawls, ["one", "t_w_o"]);
}

#[test]
fn a_limit_is_about_what_is_completed() {
    let (service, mut client) = in_memory();
    let urls: Vec<_> = (0..4).map(|n| format!("http://a.example/{n}")).collect();
    client.limit("a.example", "c", 2);
    client.put(urls.iter().map(|url| discovered(url, "c")).collect());
    assert_eq!(client.get("c", 1, 0).len(), 1);
    client.put(vec![known(&urls[0], "c", 0), known(&urls[0], "c", 0)]);
    assert_eq!(client.stats("a.example", "c"), (3, 0, 1, 1), "once");
    at(&service, 1);
    assert_eq!(client.get("c", 1, 0).len(), 1);
    client.put(vec![known(&urls[1], "c", 0)]);
    at(&service, 10);
    assert!(client.get("c", 1, 0).is_empty());
    // One of them is to be visited again: it is not completed any more.
    client.put(vec![known(&urls[1], "c", NOW + 5)]);
    assert_eq!(client.get("c", 1, 0).len(), 1);
    client.put(vec![known(&urls[1], "c", 0)]);
    at(&service, 20);
    assert!(client.get("c", 1, 0).is_empty());
    client.limit("a.example", "c", 0);
    assert_eq!(client.get("c", 1, 0).len(), 1);
    // What was purged is not completed any more, either.
    client.limit("a.example", "c", 1);
    let purge = pb::PurgeUrlParams { key: String::new(), crawl_id: "c".to_owned(), days: 0 };
    assert_eq!(runtime().block_on(client.0.purge_ur_ls(purge)).unwrap().into_inner().value, 4);
    client.put(vec![discovered("http://a.example/new", "c")]);
    at(&service, 30);
    assert_eq!(client.get("c", 1, 0), ["http://a.example/new"]);
}

/// By our own API, at the command line, by another service on the same store.
#[test]
fn a_crawl_that_is_deleted_by_another_way_is_gone() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let service = Service::start(Arc::clone(&store));
    let mut client = Client::of(&service);
    let delete = || {
        let now = trapline_core::Timestamp::from_millis(NOW * 1000);
        let delete = Steer::Crawl(CrawlChange::Delete);
        runtime().block_on(store.steer("c", now, delete)).unwrap();
    };
    let url = "http://a.example/";
    let puts: [fn(&str, &str) -> pb::UrlItem; 2] = [discovered, |url, crawl| known(url, crawl, NOW)];
    for put in puts {
        assert_eq!(client.statuses(vec![put(url, "c")]), [Taken as i32]);
        delete();
        assert_eq!(client.statuses(vec![put(url, "c")]), [Taken as i32], "it is made anew");
        delete();
        assert_eq!(client.stats("", "c"), (0, 0, 0, 0));
        assert_eq!(client.stats("a.example", "c"), (0, 0, 0, 0));
        assert_eq!(client.status(url, "c"), Err(Code::NotFound));
        runtime().block_on(async {
            let page = pb::Pagination { crawl_id: "c".to_owned(), ..Default::default() };
            assert_eq!(client.0.list_queues(page).await.unwrap().into_inner().size, 0);
            let deleted = client.0.delete_queue(queue("a.example", "c")).await.unwrap().into_inner();
            assert_eq!(deleted.value, 0);
            let count = pb::CountUrlParams { crawl_id: "c".to_owned(), ..Default::default() };
            assert_eq!(client.0.count_ur_ls(count).await.unwrap().into_inner().value, 0);
        });
        assert!(client.get("c", 1, 0).is_empty());
    }
    client.put(vec![discovered(url, "c"), discovered(url, "d")]);
    delete();
    client.delay("", "", 3);
    assert_eq!(client.get("d", 1, 0), [url]);
}

/// Another one of its name has another key, and knows each URL by another identity.
#[test]
fn a_crawl_that_was_made_anew_hands_out_each_url_once() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let services = [Service::start(Arc::clone(&store)), Service::start(Arc::clone(&store))];
    let [mut first, mut second] = [Client::of(&services[0]), Client::of(&services[1])];
    let url = "http://a.example/";
    first.put(vec![discovered(url, "c")]);
    let now = trapline_core::Timestamp::from_millis(NOW * 1000);
    runtime().block_on(store.steer("c", now, Steer::Crawl(CrawlChange::Delete))).unwrap();
    assert_eq!(second.statuses(vec![discovered(url, "c")]), [Taken as i32]);
    services.iter().for_each(|service| at(service, 1));
    assert_eq!(first.statuses(vec![discovered(url, "c")]), [Skipped as i32]);
    assert_eq!(second.get("c", 9, 0), [url]);
}

/// Who asks for all there is gets what one answer may take of memory. The rest stays where it was.
#[test]
fn a_call_hands_out_no_more_than_so_many_bytes() {
    let (service, mut client) = in_memory();
    let url = |n: usize| format!("http://a.example/{n:03}/{}", "x".repeat(60_000));
    for first in (0..600).step_by(50) {
        client.put((first..first + 50).map(|n| discovered(&url(n), "c")).collect());
    }
    let served = client.get("c", 0, 0);
    assert!((500..600).contains(&served.len()), "{}", served.len());
    at(&service, 1);
    assert_eq!(client.get("c", 0, 0).len(), 600 - served.len());
}

#[test]
fn what_is_removed_is_unknown_again() {
    let (_service, mut client) = in_memory();
    let put = |client: &mut Client, crawl: &str| {
        let urls = ["http://a.example/1", "http://a.example/2", "http://b.example/"];
        client.statuses(urls.iter().map(|url| discovered(url, crawl)).collect())
    };
    assert_eq!(put(&mut client, "crawl"), [Taken as i32; 3]);
    // Its name is the beginning of another's.
    assert_eq!(put(&mut client, "crawl2"), [Taken as i32; 3]);
    let removed =
        runtime().block_on(client.0.delete_queue(queue("a.example", "crawl"))).unwrap().into_inner();
    assert_eq!(removed.value, 2);
    let listed = runtime().block_on(
        client.0.list_queues(pb::Pagination { crawl_id: "crawl".to_owned(), ..Default::default() }),
    );
    assert_eq!(listed.unwrap().into_inner().values, ["b.example"]);
    let delete = |client: &mut Client| {
        let request = pb::DeleteCrawlMessage { value: "crawl".to_owned(), local: false };
        runtime().block_on(client.0.delete_crawl(request)).unwrap().into_inner().value
    };
    assert_eq!((delete(&mut client), delete(&mut client)), (1, 0));
    assert_eq!(put(&mut client, "crawl"), [Taken as i32; 3]);
    assert_eq!(put(&mut client, "crawl2"), [Skipped as i32; 3]);
    assert_eq!(client.stats("", "crawl2"), (3, 0, 0, 2));
    assert_eq!(client.stats("", "nowhere"), (0, 0, 0, 0));
}

#[test]
fn queues_without_urls_do_not_count() {
    let (_service, mut client) = in_memory();
    let crawls = |client: &mut Client| {
        runtime().block_on(client.0.list_crawls(pb::Local::default())).unwrap().into_inner().values
    };
    let delete = |client: &mut Client, key: &str| {
        runtime().block_on(client.0.delete_queue(queue(key, "c"))).unwrap().into_inner().value
    };
    client.delay("told.example", "c", 9);
    client.block("told.example", "c", NOW + 100);
    client.limit("told.example", "c", 3);
    assert_eq!(client.stats("", "c"), (0, 0, 0, 0));
    assert_eq!(crawls(&mut client), [""; 0]);
    client.put(vec![
        discovered("http://a.example/1", "c"),
        discovered("http://b.example/1", "c"),
        known("http://b.example/2", "c", 0),
    ]);
    assert_eq!(client.stats("", "c"), (2, 0, 1, 2));
    assert_eq!((delete(&mut client, "a.example"), client.stats("", "c").3), (1, 1));
    let purge = pb::PurgeUrlParams { key: String::new(), crawl_id: "c".to_owned(), days: 0 };
    assert_eq!(runtime().block_on(client.0.purge_ur_ls(purge)).unwrap().into_inner().value, 2);
    assert_eq!((client.stats("", "c"), crawls(&mut client)), ((0, 0, 0, 0), vec![]));
    client.put(vec![discovered("http://a.example/1", "c"), discovered("http://told.example/1", "c")]);
    assert_eq!((client.stats("", "c"), crawls(&mut client)), ((2, 0, 0, 2), vec!["c".to_owned()]));
}

#[test]
fn what_cannot_be_fetched_now_is_active_all_the_same() {
    let (_service, mut client) = in_memory();
    let active = |client: &mut Client, key: &str, crawl: &str| {
        let stats = runtime().block_on(client.0.get_stats(queue(key, crawl))).unwrap().into_inner();
        stats.counts["active_queues"]
    };
    client.put(vec![
        discovered("http://a.example/1", "c"),
        discovered("http://b.example/1", "c"),
        known("http://b.example/2", "c", 0),
        known("http://done.example/", "c", 0),
    ]);
    client.block("a.example", "c", NOW + 100);
    client.limit("b.example", "c", 1);
    assert_eq!(active(&mut client, "", "c"), 2);
    assert_eq!(
        ["a.example", "b.example", "done.example"].map(|key| active(&mut client, key, "c")),
        [1, 1, 0]
    );
    assert_eq!((active(&mut client, "x", "c"), active(&mut client, "", "nowhere")), (0, 0));
}

#[test]
fn a_date_that_has_passed_is_told_as_it_was_stated() {
    let (service, mut client) = in_memory();
    let url = "http://a.example/due";
    client.put(vec![known(url, "c", NOW - 500), discovered("http://a.example/new", "c")]);
    assert_eq!(client.status(url, "c"), Ok(NOW - 500));
    assert_eq!(client.status("http://a.example/new", "c"), Ok(NOW));
    assert_eq!(client.get("c", 1, 1), [url]);
    assert_eq!(client.status(url, "c"), Ok(NOW - 500), "while it is leased, too");
    client.put(vec![known(url, "c", NOW + 60)]);
    at(&service, 100);
    assert_eq!(client.status(url, "c"), Ok(NOW + 60), "and once it is due");
    client.put(vec![known(url, "c", 0)]);
    assert_eq!(client.status(url, "c"), Ok(0));
}

#[test]
fn old_urls_are_purged_by_when_they_came() {
    let (service, mut client) = in_memory();
    client.put(vec![discovered("http://a.example/old", "c"), discovered("http://b.example/old", "c")]);
    at(&service, 3 * 86_400);
    // Stated anew, it is as old as before.
    client.put(vec![known("http://a.example/old", "c", 0), discovered("http://a.example/new", "c")]);
    let mut purge = |key: &str, days| {
        let params = pb::PurgeUrlParams { key: key.to_owned(), crawl_id: "c".to_owned(), days };
        runtime().block_on(client.0.purge_ur_ls(params)).unwrap().into_inner().value
    };
    assert_eq!((purge("a.example", 3), purge("a.example", 2), purge("", 2), purge("", 2)), (0, 1, 1, 0));
    assert_eq!(client.status("http://a.example/old", "c"), Err(Code::NotFound));
    assert_eq!(client.stats("", "c").0, 1);
}

#[test]
fn what_is_no_url_is_skipped_and_the_rest_is_taken() {
    let (_service, mut client) = in_memory();
    let long_key = pb::UrlInfo { key: "k".repeat(256), ..info("http://a.example/", "c") };
    let items = vec![
        discovered("", "c"),
        pb::UrlItem { id: "neither".to_owned(), ..Default::default() },
        pb::UrlItem {
            item: Some(pb::url_item::Item::Discovered(pb::DiscoveredUrlItem { info: Some(long_key) })),
            ..Default::default()
        },
        discovered(&format!("http://a.example/{}", "x".repeat(1 << 20)), "c"),
        discovered("http:///", "c"),
        discovered("not even ☃ a url", "c"),
        discovered("http://a.example/", ".urlfrontier"),
        discovered("http://a.example/", &"c".repeat(256)),
    ];
    let expected = [Skipped, Skipped, Skipped, Skipped, Skipped, Taken, Skipped, Skipped];
    assert_eq!(client.statuses(items), expected.map(i32::from));
    assert_eq!(client.get("c", 1, 0), ["not even ☃ a url"]);
    let level = pb::LogLevelParams { level: 77, ..Default::default() };
    let refused = runtime().block_on(client.0.set_log_level(level)).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let refused = runtime().block_on(client.0.delete_queue(queue("", "c"))).unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
}

#[test]
fn lists_and_counts_go_by_what_is_asked_for() {
    let (_service, mut client) = in_memory();
    client.put((0..2500).map(|n| discovered(&format!("http://h{}.example/P{n}", n % 3), "c")).collect());
    let mut count = |filter: Option<&str>, ignore_case, key: &str| {
        let params = pb::CountUrlParams {
            crawl_id: "c".to_owned(),
            key: key.to_owned(),
            filter: filter.map(str::to_owned),
            ignore_case: Some(ignore_case),
            local: None,
        };
        runtime().block_on(client.0.count_ur_ls(params)).unwrap().into_inner().value
    };
    assert_eq!(count(None, false, ""), 2500);
    assert_eq!(count(None, false, "h0.example"), 834);
    assert_eq!((count(Some("/p24"), false, ""), count(Some("/p24"), true, "")), (0, 111));
    assert_eq!(count(Some("*"), false, ""), 0, "it is text");
    let mut list = |start, size| {
        let params = pb::ListUrlParams { crawl_id: "c".to_owned(), start, size, ..Default::default() };
        runtime().block_on(async {
            let mut answers = client.0.list_ur_ls(params).await.unwrap().into_inner();
            let mut listed = 0;
            while answers.message().await.unwrap().is_some() {
                listed += 1;
            }
            listed
        })
    };
    assert_eq!((list(0, 0), list(2450, 100), list(0, i32::MAX as u32), list(9999, 1)), (100, 50, 2500, 0));
    let mut queues = |start, size| {
        let page = pb::Pagination { start, size, crawl_id: "c".to_owned(), ..Default::default() };
        let listed = runtime().block_on(client.0.list_queues(page)).unwrap().into_inner();
        assert_eq!(listed.size as usize, listed.values.len());
        listed.size
    };
    assert_eq!((queues(0, 0), queues(2, 5), queues(3, 1)), (3, 1, 0));
}

#[test]
fn eight_streams_at_once_hand_out_each_url_once() {
    let (service, mut client) = in_memory();
    client.delay("", "", 0);
    let streams: Vec<_> = (0..8)
        .map(|stream| {
            let mut client = Client::of(&service);
            std::thread::spawn(move || {
                // Half of them are the same for all.
                let url =
                    |n| format!("http://h{}.example/{}-{n}", n % 50, if n % 2 == 0 { 0 } else { stream });
                client.statuses((0..500).map(|n| discovered(&url(n), "c")).collect())
            })
        })
        .collect();
    let taken: usize = streams
        .into_iter()
        .map(|stream| stream.join().unwrap().iter().filter(|status| **status == 0).count())
        .sum();
    assert_eq!(taken, 250 + 8 * 250);
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let mut client = Client::of(&service);
            std::thread::spawn(move || {
                let mut urls = Vec::new();
                loop {
                    let got = client.get("c", 2, 10);
                    if got.is_empty() {
                        return urls;
                    }
                    urls.extend(got);
                }
            })
        })
        .collect();
    let mut urls: Vec<_> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
    urls.sort();
    urls.dedup();
    assert_eq!(urls.len(), taken);
}

/// What the reference server forgets: leases, delays, blocks, limits, whether it is active.
#[test]
fn a_restart_forgets_nothing() {
    let folder = TestFolder::new();
    let open = || Arc::new(DiskStore::open(folder.path(), &DiskOptions::default()).unwrap());
    let store = open();
    let mut service = Service::start(Arc::clone(&store) as _);
    let mut client = Client::of(&service);
    let url = |host: &str, n: u32| format!("http://{host}.example/{n}");
    let hosts = ["leased", "slow", "blocked", "limited"];
    client.put(hosts.iter().flat_map(|host| (0..3).map(move |n| discovered(&url(host, n), "c_1"))).collect());
    client.delay("slow.example", "c_1", 500);
    client.limit("limited.example", "c_1", 1);
    client.block("blocked.example", "c_1", NOW + 700);
    // Queues and crawls that are not there yet.
    client.block("later.example", "c_1", NOW + 700);
    client.delay("", "", 7);
    let params = pb::GetParams {
        max_urls_per_queue: 1,
        delay_requestable: 1000,
        item: Some(pb::get_params::Item::CrawlId("c_1".to_owned())),
        ..Default::default()
    };
    assert_eq!(client.infos(params).len(), 3);
    client.put(vec![known(&url("limited", 0), "c_1", 0)]);
    client.active(false);
    assert!(client.get("c_1", 1, 0).is_empty());

    service.stop();
    store.abandon();
    drop(store);
    let service = Service::start(open() as _);
    let mut client = Client::of(&service);
    at(&service, 100);
    let active = runtime().block_on(client.0.get_active(pb::Local::default())).unwrap().into_inner().state;
    assert!(!active && client.get("c_1", 1, 0).is_empty());
    client.active(true);
    client.put(vec![
        discovered(&url("later", 0), "c_1"),
        discovered(&url("new", 0), "c2"),
        discovered(&url("new", 1), "c2"),
    ]);
    assert_eq!(client.get("c_1", 9, 0), [url("leased", 1), url("leased", 2)]);
    assert_eq!(client.get("c2", 1, 0).len(), 1);
    at(&service, 106);
    assert!(client.get("c2", 1, 0).is_empty());
    at(&service, 107);
    assert_eq!(client.get("c2", 1, 0).len(), 1);
    at(&service, 499);
    assert_eq!(client.get("c_1", 9, 0), [url("leased", 1), url("leased", 2)], "their leases of 30 s ended");
    at(&service, 500);
    assert_eq!(client.get("c_1", 9, 0), [url("slow", 1), url("slow", 2)]);
    at(&service, 700);
    let mut served = client.get("c_1", 1, 0);
    served.sort();
    assert_eq!(served, [url("blocked", 0), url("later", 0), url("leased", 1)]);
    assert_eq!(client.stats("limited.example", "c_1"), (2, 0, 1, 1));
}
