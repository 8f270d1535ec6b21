//! Batches that one message has no room for, through a store behind the network.

use std::sync::Arc;
use std::time::Duration;

use trapline_core::{Candidate, IdentityKey, Preparer, Request, Timestamp};
use trapline_frontier::{
    Admission, Answer, CrawlChange, LeaseId, MemoryStore, NewCrawl, Outcome, Settings, Settlement, Steer,
    Store, UrlState, Want,
};

use crate::service::Service;

const NOW: Timestamp = Timestamp::ZERO;

/// Twelve megabytes of links.
const LINKS: usize = 12_000;

fn candidates(name: &str, count: usize) -> Vec<Candidate> {
    let preparer = Preparer::new(IdentityKey::from_seed(1));
    let url = |number| format!("http://{name}.example/{number:06}/{}", "x".repeat(1000));
    (0..count).map(|number| preparer.prepare(Request::get(url(number))).expect("a URL")).collect()
}

fn crawl(store: &dyn Store) {
    let new = NewCrawl { settings: Settings::default(), partitions: 1, key: IdentityKey::from_seed(1) };
    let made = store.steer("c", NOW, Steer::Crawl(CrawlChange::Create(new)));
    pollster::block_on(made).expect("it is made");
}

#[test]
fn a_page_with_very_many_links_is_settled_with_all_of_them_or_none() {
    let here = Arc::new(MemoryStore::new());
    let service = Service::start(Arc::clone(&here) as Arc<dyn Store>);
    let store = service.connect();
    crawl(&store);
    pollster::block_on(async {
        store.admit("c", NOW, &candidates("page", 3)).await.expect("the service answers");
        let mut want = Want::urls(2);
        want.lease = Some(Duration::from_secs(10));
        let first = store
            .claim(Some("c"), NOW, &want)
            .await
            .expect("the service answers")
            .leases
            .pop()
            .expect("one was granted");
        let links = candidates("link", LINKS);
        let mut before = Settlement::new(LeaseId(first.id.0 + 1000), Outcome::done());
        before.links = candidates("small", 2);
        let settle = |lease| Settlement { links: links.clone(), ..Settlement::new(lease, Outcome::done()) };
        let batch = vec![before.clone(), settle(first.id), before];
        let settled = store.settle("c", NOW, batch).await.expect("the service answers");
        let answers: Vec<_> = settled.iter().map(|settled| settled.answer).collect();
        assert_eq!(answers, [Answer::Stale, Answer::Done, Answer::Stale]);
        assert_eq!(settled[1].links, vec![Admission::Added; LINKS]);

        // A lease that has ended brings nothing.
        let later = NOW + Duration::from_secs(20);
        let second = store
            .claim(Some("c"), later, &want)
            .await
            .expect("the service answers")
            .leases
            .pop()
            .expect("one was granted");
        let much_later = later + Duration::from_secs(20);
        let mut late = settle(second.id);
        late.links = candidates("late", LINKS);
        let settled = store.settle("c", much_later, vec![late]).await.expect("the service answers");
        assert_eq!((settled[0].answer, settled[0].links.len()), (Answer::Stale, 0));
        let stats = store.stats("c", much_later).await.expect("the service answers");
        assert_eq!(stats.urls.iter().sum::<u64>(), 3 + LINKS as u64);
        assert_eq!(stats.urls_in(UrlState::Done), 1);
    });
}

#[test]
fn very_many_candidates_go_in_parts() {
    let service = Service::start(Arc::new(MemoryStore::new()));
    let store = service.connect();
    crawl(&store);
    let mut batch = candidates("many", LINKS);
    batch.push(batch[7].clone());
    let admitted = pollster::block_on(store.admit("c", NOW, &batch)).expect("it admits");
    assert_eq!(admitted.len(), LINKS + 1);
    assert!(admitted[..LINKS].iter().all(|admission| *admission == Admission::Added));
    assert_eq!(admitted[LINKS], Admission::Known);
}
