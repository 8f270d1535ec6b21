//! Rows that make no sense, written past the store: what cannot be read is a dead letter or set aside, is told of, and is in
//! nobody's way.

use trapline_core::{Request, Terms};
use trapline_frontier::{
    Answer, CrawlChange, CrawlState, DeadLetter, ErrorKind, Frontier, Lease, Outcome, Query, QueueChange,
    QueueState, Rows, Scan, Settlement, Steer, UrlState, Visit, crawls,
};
use trapline_stores::PostgresStore;
use trapline_stores::postgres::Pool;

use super::crawls::{add, at_ms, claim, crawl, no_waits, queue, state, store};
use super::{fresh_database, pool};

/// No message of ours begins so.
const GARBAGE: &str = "'\\xffffffffffffffffffffff'::bytea";

fn sql(pool: &Pool, sql: &str) -> u64 {
    let client = pollster::block_on(pool.client()).expect("the server is there");
    pollster::block_on(client.execute(sql, &[])).expect("it is done")
}

fn scan(frontier: &Frontier, query: Query) -> Rows {
    pollster::block_on(frontier.scan(at_ms(1), &Scan::new(query))).expect("it is answered").rows
}

fn dead(frontier: &Frontier) -> Vec<DeadLetter> {
    let Rows::Dead(dead) = scan(frontier, Query::Dead) else { panic!("dead letters were asked for") };
    dead
}

fn end(frontier: &Frontier, lease: &Lease, outcome: Outcome) -> Answer {
    let batch = vec![Settlement::new(lease.id, outcome)];
    pollster::block_on(frontier.settle(at_ms(1), batch)).expect("it is settled")[0].answer
}

fn opened() -> (Pool, PostgresStore, Frontier) {
    let url = fresh_database();
    let store = store(&url);
    let frontier = crawl(&store, "c", no_waits());
    (pool(&url), store, frontier)
}

fn urls(leases: &[Lease]) -> Vec<&str> {
    leases.iter().map(|lease| &*lease.request.url).collect()
}

#[test]
fn a_request_that_cannot_be_read_becomes_a_dead_letter() {
    let (pool, _, frontier) = opened();
    add(
        &frontier,
        at_ms(0),
        &["http://a.example/1", "http://a.example/2", "http://b.example/1", "http://c.example/1"],
    );
    assert_eq!(sql(&pool, &format!("UPDATE urls SET rest = {GARBAGE} WHERE url = 'http://a.example/1'")), 1);
    // Not even text.
    assert_eq!(sql(&pool, "UPDATE urls SET url = '\\xff00fe' WHERE url = 'http://c.example/1'"), 1);
    let leases = claim(&frontier, at_ms(0), 9);
    assert_eq!(urls(&leases), ["http://a.example/2", "http://b.example/1"]);
    let letters = dead(&frontier);
    assert_eq!(letters.len(), 2);
    for letter in &letters {
        assert!(letter.reason.starts_with("its request cannot be read: "), "{}", letter.reason);
    }
    assert_eq!(letters[0].request.url, "http://a.example/1");
    let report = queue(&frontier, at_ms(0), "c.example");
    assert_eq!((report.dead, report.pending, report.errors, report.spent), (1, 0, 1, 0));
    assert_eq!(state(&frontier, at_ms(0), "http://a.example/1"), UrlState::Dead);
    for query in [Query::Urls { key: None, pattern: None, state: None }, Query::Records, Query::Leases] {
        scan(&frontier, query);
    }
    // Tried again, it dies again; forgotten, it can be admitted as it should be.
    let of_it = |change| Steer::Dead(trapline_frontier::DeadLetters::Url(letters[0].identity), change);
    let steer = |change| pollster::block_on(frontier.steer(at_ms(1), of_it(change))).expect("it is done");
    steer(trapline_frontier::DeadChange::Replay);
    assert_eq!(end(&frontier, &leases[0], Outcome::done()), Answer::Done);
    assert_eq!(claim(&frontier, at_ms(1), 9), []);
    assert_eq!(dead(&frontier).len(), 2);
    steer(trapline_frontier::DeadChange::Purge);
    add(&frontier, at_ms(1), &["http://a.example/1"]);
    assert_eq!(urls(&claim(&frontier, at_ms(1), 9)), ["http://a.example/1"]);
}

/// A thousand of them before the first good one, in a claim of one.
#[test]
fn many_in_a_row_are_passed_over_at_once() {
    let (pool, _, frontier) = opened();
    let bad: Vec<_> = (0..1000).map(|page| format!("http://a.example/{page}")).collect();
    add(&frontier, at_ms(0), &bad);
    sql(&pool, &format!("UPDATE urls SET rest = {GARBAGE}"));
    add(&frontier, at_ms(0), &["http://a.example/good"]);
    assert_eq!(urls(&claim(&frontier, at_ms(0), 1)), ["http://a.example/good"]);
    assert_eq!(queue(&frontier, at_ms(0), "a.example").dead, 1000);
}

/// A claim takes only so many upon itself, lest the leases it has granted run out before they are told of.
#[test]
fn more_than_a_claim_can_pass_over_are_left_to_the_next() {
    let (pool, _, frontier) = opened();
    let bad: Vec<_> = (0..2500).map(|page| format!("http://b.example/{page}")).collect();
    add(&frontier, at_ms(0), &["http://a.example/good"]);
    add(&frontier, at_ms(0), &bad);
    sql(&pool, &format!("UPDATE urls SET rest = {GARBAGE} WHERE url <> 'http://a.example/good'"));
    add(&frontier, at_ms(0), &["http://b.example/good"]);
    let mut given = Vec::new();
    for dead in [1000, 2000, 2500] {
        let claimed = pollster::block_on(frontier.claim(at_ms(0), 5)).expect("it is claimed");
        given.push(claimed.leases.iter().map(|lease| lease.request.url.clone()).collect::<Vec<_>>());
        assert_eq!(queue(&frontier, at_ms(0), "b.example").dead, dead);
        assert!(!claimed.exhausted);
        if dead < 2500 {
            assert_eq!(claimed.next, Some(at_ms(1)), "there is more at once");
        }
    }
    assert_eq!(given, [vec!["http://a.example/good"], vec![], vec!["http://b.example/good"]]);
}

/// A worker has the request: what became of the row since is nothing to it.
#[test]
fn a_lease_outlives_its_request() {
    let (pool, _, frontier) = opened();
    add(&frontier, at_ms(0), &["http://a.example/1", "http://a.example/2"]);
    let lease = claim(&frontier, at_ms(0), 1).remove(0);
    sql(&pool, &format!("UPDATE urls SET rest = {GARBAGE} WHERE url = 'http://a.example/1'"));
    assert_eq!(end(&frontier, &lease, Outcome::Retry { at: at_ms(1) }), Answer::Retry);
    assert_eq!(urls(&claim(&frontier, at_ms(1), 1)), ["http://a.example/2"]);
    assert_eq!(dead(&frontier).len(), 1);
}

#[test]
fn a_page_record_that_cannot_be_read_is_none() {
    let (pool, _, frontier) = opened();
    add(&frontier, at_ms(0), &["http://a.example/"]);
    let visit = || Outcome::Done { visit: Visit { status: 200, ..Visit::default() }, next: Some(at_ms(1)) };
    let lease = claim(&frontier, at_ms(0), 1).remove(0);
    assert_eq!(end(&frontier, &lease, visit()), Answer::Done);
    assert_eq!(sql(&pool, &format!("UPDATE pages SET page = {GARBAGE}")), 1);
    scan(&frontier, Query::Urls { key: None, pattern: None, state: None });
    let lease = claim(&frontier, at_ms(2), 1).remove(0);
    assert_eq!(lease.page, None);
    assert_eq!(end(&frontier, &lease, visit()), Answer::Done);
    let page = pollster::block_on(frontier.url(at_ms(2), "http://a.example/")).expect("it is answered").page;
    assert_eq!(page.expect("it was written anew").visits, 2, "the count has a column of its own");
}

/// How long it is to wait between two fetches nobody knows any more: it is better not fetched from at all.
#[test]
fn a_queue_whose_terms_cannot_be_read_is_set_aside() {
    for column in ["suggested", "steered"] {
        let (pool, _, frontier) = opened();
        add(&frontier, at_ms(0), &["http://a.example/1", "http://b.example/1"]);
        let spoil = format!("UPDATE queues SET {column} = {GARBAGE} WHERE key = 'a.example'");
        assert_eq!(sql(&pool, &spoil), 1);
        assert_eq!(urls(&claim(&frontier, at_ms(0), 9)), ["http://b.example/1"]);
        let report = queue(&frontier, at_ms(0), "a.example");
        assert_eq!((report.state, report.pending), (QueueState::Retired, 1));
        let why = "retired: its terms cannot be read; set them anew or forget them, then `reinstate` serves it again";
        assert_eq!(report.why, why);

        // It goes on taking URLs, and what they say of it is not taken for what an operator said.
        let terms = Terms { precedence: Some(1), ..Terms::default() };
        let candidate = frontier.prepare(Request::get("http://a.example/2")).expect("a good URL");
        let candidate = trapline_core::Candidate { terms, ..candidate };
        pollster::block_on(frontier.admit_candidates(at_ms(0), &[candidate])).expect("it is admitted");
        assert_eq!(queue(&frontier, at_ms(0), "a.example").why, why);

        let steer = |change| {
            pollster::block_on(frontier.steer_queue(at_ms(1), "a.example", change)).expect("it is done")
        };
        steer(QueueChange::Reinstate);
        assert_eq!(claim(&frontier, at_ms(1), 9), [], "nobody has said how");
        steer(QueueChange::DefaultTerms);
        steer(QueueChange::Reinstate);
        assert_eq!(urls(&claim(&frontier, at_ms(1), 9)), ["http://a.example/1"]);
    }
}

/// Counts and places that lead nowhere are found out when somebody goes there.
#[test]
fn a_url_that_is_counted_and_not_there_is_passed_over() {
    let (pool, _, frontier) = opened();
    add(&frontier, at_ms(0), &["http://a.example/1", "http://b.example/1"]);
    sql(&pool, "DELETE FROM urls WHERE url = 'http://a.example/1'");
    assert_eq!(urls(&claim(&frontier, at_ms(0), 9)), ["http://b.example/1"]);
    add(&frontier, at_ms(0), &["http://a.example/2"]);
    assert_eq!(urls(&claim(&frontier, at_ms(0), 9)), ["http://a.example/2"]);
}

#[test]
fn a_crawl_that_cannot_be_read_harms_no_other() {
    for spoil in [&*format!("settings = {GARBAGE}"), "identity_key = '\\x00'"] {
        let (pool, store, good) = opened();
        let bad = crawl(&store, "bad", no_waits());
        for frontier in [&good, &bad] {
            add(frontier, at_ms(0), &["http://a.example/1", "http://b.example/1"]);
        }
        assert_eq!(sql(&pool, &format!("UPDATE crawls SET {spoil} WHERE name = 'bad'")), 1);
        let error = pollster::block_on(bad.claim(at_ms(0), 1)).expect_err("nobody knows its rules");
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("crawl bad"), "{error}");

        let any = pollster::block_on(good.claim_any(at_ms(0), 1)).expect("it is claimed").leases;
        assert_eq!((&*any[0].crawl, any.len()), ("c", 1));
        assert_eq!(claim(&good, at_ms(0), 9).len(), 1);
        let listed = pollster::block_on(crawls(&store, at_ms(0))).expect("they are listed");
        assert_eq!(listed.iter().map(|crawl| &*crawl.name).collect::<Vec<_>>(), ["bad", "c"]);
        let CrawlState::Finished(why) = &listed[0].state else { panic!("{:?}", listed[0]) };
        assert!(why.contains("crawl bad"), "{why}");
        assert_eq!(listed[1].state, CrawlState::Running);
        pollster::block_on(bad.steer_crawl(at_ms(0), CrawlChange::Delete)).expect("it is deleted");
        assert_eq!(pollster::block_on(crawls(&store, at_ms(0))).expect("they are listed").len(), 1);
    }
}
