//! Queues that are forgotten, of more URLs than one statement takes, and crawls of more than its time allows.

use trapline_frontier::{CrawlChange, QueueChange, Steer, UrlState};

use super::crawls::{add, at_ms, claim, crawl, no_waits, state, store};
use super::{fresh_database, pool};

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

/// Long before it is gone, a statement of anything else would have run out of time.
#[test]
fn a_crawl_is_deleted_however_long_that_takes() {
    let url = fresh_database();
    let slow = "CREATE FUNCTION trapline.wait() RETURNS trigger LANGUAGE plpgsql AS \
                $$ BEGIN PERFORM pg_sleep(2.5); RETURN NULL; END $$; \
                CREATE TRIGGER slow BEFORE DELETE ON trapline.urls FOR EACH STATEMENT EXECUTE FUNCTION trapline.wait()";
    let pool = pool(&url);
    let client = pollster::block_on(pool.client()).expect("the server is there");
    pollster::block_on(client.batch_execute(slow)).expect("it is made");
    let frontier = crawl(&store(&format!("{url}?statement_timeout=2s")), "c", no_waits());
    add(&frontier, at_ms(0), &["http://a.example/"]);
    pollster::block_on(frontier.steer_crawl(at_ms(1), CrawlChange::Delete)).expect("it is deleted");
    let left = pollster::block_on(client.query("SELECT 1 FROM trapline.urls", &[])).expect("it is answered");
    assert_eq!(left.len(), 0);
}
