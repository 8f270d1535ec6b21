//! Queues that are forgotten, of more URLs than one statement takes.

use trapline_frontier::{QueueChange, Steer, UrlState};

use super::crawls::{add, at_ms, claim, crawl, no_waits, state, store};
use super::fresh_database;

const URLS: usize = 3_500;

#[test]
fn a_large_queue_is_forgotten_to_the_last_url_and_nothing_beside_it() {
    let frontier = crawl(&store(&fresh_database()), "c", no_waits());
    let steer = |change| {
        let steer = Steer::Queue("large.example".into(), change);
        pollster::block_on(frontier.steer(at_ms(1), steer)).expect("it is done").affected
    };
    let urls: Vec<_> = (0..URLS).map(|page| format!("http://large.example/{page}")).collect();
    add(&frontier, at_ms(0), &["http://beside.example/"]);
    add(&frontier, at_ms(0), &urls);
    assert_eq!(steer(QueueChange::Purge(None)), URLS as u64);
    // All of them are new again.
    add(&frontier, at_ms(1), &urls);
    let leased = claim(&frontier, at_ms(1), 100);
    let leased = leased.iter().filter(|lease| &*lease.key == "large.example").count() as u64;
    assert_eq!(steer(QueueChange::Purge(None)), URLS as u64 - leased);
    assert_eq!(steer(QueueChange::Delete), leased);
    add(&frontier, at_ms(1), &urls);
    assert_eq!(steer(QueueChange::Delete), URLS as u64);
    let stats = pollster::block_on(frontier.stats(at_ms(1))).expect("it is answered");
    assert_eq!(stats.urls.iter().sum::<u64>(), 1, "{stats:?}");
    assert_eq!(state(&frontier, at_ms(1), &urls[URLS - 1]), UrlState::Unknown);
    assert_ne!(state(&frontier, at_ms(1), "http://beside.example/"), UrlState::Unknown);
}
