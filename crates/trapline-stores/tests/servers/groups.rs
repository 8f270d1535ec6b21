//! Groups whose wait ends while somebody puts another member to it.

use std::time::Duration;

use trapline_core::{Candidate, Request, Terms};
use trapline_frontier::{Frontier, Lease, Outcome, QueueChange, Settings, Settlement, Steer};

use super::crawls::{at_ms, claim, crawl, no_waits, store};
use super::{fresh_database, pool};

fn candidate(frontier: &Frontier, host: &str) -> Candidate {
    let candidate = frontier.prepare(Request::get(format!("http://{host}.example/"))).expect("a good URL");
    Candidate { terms: Terms { group: Some("together".into()), ..Terms::default() }, ..candidate }
}

fn settle(frontier: &Frontier, millis: u64, lease: &Lease) {
    let done = vec![Settlement::new(lease.id, Outcome::done())];
    pollster::block_on(frontier.settle(at_ms(millis), done)).expect("it is settled");
}

/// One who is slow to join a group must not be forgotten by those who end its wait meanwhile.
#[test]
fn who_joins_a_group_that_is_being_woken_is_woken_too() {
    let url = fresh_database();
    let frontier = crawl(&store(&url), "c", Settings { delay: Duration::from_secs(6), ..no_waits() });
    let slow = crawl(&store(&(url.clone() + "?lock_timeout=60s")), "c", Settings::default());
    let admit = |millis, host| {
        let batch = [candidate(&frontier, host)];
        pollster::block_on(frontier.admit_candidates(at_ms(millis), &batch)).expect("it is admitted");
    };
    admit(0, "x");
    admit(0, "y");
    let together = QueueChange::Terms(Terms { group: Some("together".into()), ..Terms::default() });
    let steer = Steer::Queue("z.example".into(), together);
    pollster::block_on(frontier.steer(at_ms(0), steer)).expect("it is done");
    let first = claim(&frontier, at_ms(0), 1).remove(0);
    settle(&frontier, 0, &first);
    assert!(claim(&frontier, at_ms(1), 2).is_empty());
    // The other is set aside until the group's wait ends. A third comes, but is held up: somebody seems to bring the same URL.
    let third = candidate(&slow, "z");
    let identity = format!("{:032x}", third.identity.0);
    let pool = pool(&url);
    let holder = pollster::block_on(pool.client()).expect("the server is there");
    let hold = format!(
        "BEGIN; INSERT INTO seen (crawl, identity, nth, entry, queue) SELECT id, '{identity}'::uuid, 0, 0, 0 FROM crawls WHERE name = 'c'"
    );
    pollster::block_on(holder.batch_execute(&hold)).expect("it is held");
    std::thread::scope(|scope| {
        let joins = scope.spawn(|| {
            pollster::block_on(slow.admit_candidates(at_ms(1), &[third])).expect("it is admitted");
        });
        let waits = "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        while pollster::block_on(super::ask(&pool, waits)) == "0" {
            assert!(!joins.is_finished(), "it was not held up");
        }
        // The wait ends: the second is served, and nobody else is seen to wait.
        let second = claim(&frontier, at_ms(7_000), 2);
        assert_eq!(second.len(), 1, "{second:?}");
        assert!(claim(&frontier, at_ms(7_001), 2).is_empty());
        pollster::block_on(holder.batch_execute("ROLLBACK")).expect("it is let go");
        joins.join().expect("it joins");
        settle(&frontier, 7_002, &second[0]);
    });
    let third = claim(&frontier, at_ms(20_000), 2);
    assert_eq!(third.len(), 1, "the third was forgotten");
    assert_eq!(&*third[0].key, "z.example");
}
