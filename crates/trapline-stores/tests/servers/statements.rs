//! A verb takes as many statements for a large batch as for a small one. The server's log is what counts them.

use trapline_core::Timestamp;
use trapline_frontier::{Claimed, Frontier};
use trapline_stores::PostgresStore;
use trapline_stores::postgres::migrate;
use trapline_testing::PostgresServer;

use super::crawls::{add, at_ms, crawl, no_waits, store};
use super::pool;

/// A server that writes down every statement, and a store in it.
fn watched() -> (PostgresServer, PostgresStore) {
    let server = PostgresServer::builder().careless().setting("log_statement = 'all'").start();
    let server = server.expect("it starts");
    let url = server.url("postgres");
    pollster::block_on(migrate(&pool(&url))).expect("the tables are made");
    let store = store(&url);
    (server, store)
}

/// What a claim answers, and how many statements it took.
fn counted(
    server: &PostgresServer,
    claim: impl Future<Output = Result<Claimed, trapline_frontier::StoreError>>,
) -> (Claimed, usize) {
    let statements = || {
        let log = server.log();
        log.lines()
            .filter(|line| line.contains("LOG:  execute ") || line.contains("LOG:  statement: "))
            .count()
    };
    let before = statements();
    let claimed = pollster::block_on(claim).expect("it is claimed");
    (claimed, statements() - before)
}

/// One URL in each of many queues.
fn fill(frontier: &Frontier, queues: usize) {
    let urls: Vec<_> = (0..queues).map(|queue| format!("http://{queue}.example/")).collect();
    add(frontier, at_ms(0), &urls);
}

fn now() -> Timestamp {
    at_ms(0)
}

#[test]
fn a_large_claim_takes_no_more_statements_than_a_small_one() {
    let (server, store) = watched();
    let [one, two] = ["one", "two"].map(|name| crawl(&store, name, no_waits()));
    for frontier in [&one, &two] {
        fill(frontier, 1200);
    }
    check("claim", |urls| counted(&server, one.claim(now(), urls)));
    check("claim_any", |urls| counted(&server, one.claim_any(now(), urls)));
}

fn check(name: &str, claim: impl Fn(usize) -> (Claimed, usize)) {
    // What is asked for once, and what is kept from then on.
    claim(5);
    let [few, many] = [50, 500].map(|urls| {
        let (claimed, statements) = claim(urls);
        assert_eq!(claimed.leases.len(), urls, "{name}");
        statements
    });
    println!("{name}: {few} statements for 50 URLs, {many} for 500");
    assert!(many <= few + 8, "{name}: {few} statements for 50 URLs, {many} for 500");
}

/// One crawl has little, so the other gives more than was expected of it.
#[test]
fn crawls_of_different_size_give_all_that_is_wanted() {
    let (server, store) = watched();
    let [large, small] = ["large", "small"].map(|name| crawl(&store, name, no_waits()));
    fill(&large, 600);
    fill(&small, 20);
    counted(&server, large.claim_any(now(), 2));
    let (claimed, statements) = counted(&server, large.claim_any(now(), 400));
    let of_small = claimed.leases.iter().filter(|lease| &*lease.crawl == "small").count();
    assert_eq!((claimed.leases.len(), of_small), (400, 19));
    // They take turns for as long as both have something.
    let turns: Vec<&str> = claimed.leases[..38].iter().map(|lease| &*lease.crawl).collect();
    assert!(turns.windows(2).all(|pair| pair[0] != pair[1]), "{turns:?}");
    println!("{statements} statements");
    assert!(statements < 100, "{statements}");
}

/// Bad requests before a good one are brought in batches, each from where the last ended.
#[test]
fn a_thousand_requests_that_cannot_be_read_take_few_statements() {
    let (server, store) = watched();
    let frontier = crawl(&store, "c", no_waits());
    let bad: Vec<_> = (0..1000).map(|page| format!("http://a.example/{page}")).collect();
    add(&frontier, at_ms(0), &bad);
    server.sql("postgres", "UPDATE trapline.urls SET rest = '\\xff00ff00ff'").unwrap();
    add(&frontier, at_ms(0), &["http://a.example/good"]);
    let (claimed, statements) = counted(&server, frontier.claim(now(), 1));
    assert_eq!(claimed.leases[0].request.url, "http://a.example/good");
    println!("{statements} statements");
    assert!(statements < 100, "{statements}");
}
