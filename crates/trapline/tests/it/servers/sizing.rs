//! What a frontier takes in a database: the figures of the manual's "From one machine to many".
//!
//! `cargo test --release -p trapline --test it sizing -- --ignored --nocapture`

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trapline_core::{Candidate, Request, Statement};
use trapline_frontier::{CrawlChange, Frontier, Outcome, Settings, Settlement, Store, Visit, Want};
use trapline_stores::PostgresStore;
use trapline_testing::PostgresServer;

use crate::copying::{now, trapline};

const URLS: usize = 200_000;
const QUEUES: usize = 50_000;

/// A server with its usual settings, a database on it, and the store in that.
struct Sized {
    server: PostgresServer,
    database: String,
    frontier: Frontier,
}

impl Sized {
    fn new() -> Self {
        let server = PostgresServer::builder().start().expect("a server");
        let database = server.create_database().expect("a database");
        let url = server.url(&database);
        assert_eq!(trapline(&["store", "migrate", &url]).2, Some(0));
        let store: Arc<dyn Store> = Arc::new(PostgresStore::open(&url).expect("it opens"));
        let settings = Settings { delay: Duration::ZERO, ..Settings::default() };
        let builder = Frontier::builder("default").settings(settings);
        let frontier = pollster::block_on(builder.open_shared(store, now())).expect("it is done");
        Self { server, database, frontier }
    }

    /// Bytes of tables with their indexes, parts of one table together.
    fn bytes(&self) -> BTreeMap<String, i64> {
        let sql = "SELECT regexp_replace(relname, '_[0-9]+$', ''), sum(pg_total_relation_size(c.oid)) FROM pg_class c \
                   JOIN pg_namespace n ON n.oid = c.relnamespace WHERE nspname = 'trapline' AND relkind = 'r' GROUP BY 1";
        self.server
            .sql(&self.database, sql)
            .expect("it is done")
            .lines()
            .filter_map(|line| line.split_once('|'))
            .map(|(name, bytes)| (name.to_owned(), bytes.parse().expect("it is done")))
            .collect()
    }

    fn admit(&self, urls: std::ops::Range<usize>, hosts: usize, statement: Option<Statement>) {
        for batch in urls.collect::<Vec<_>>().chunks(5_000) {
            let batch: Vec<_> = batch
                .iter()
                .map(|n| {
                    // 64 characters, as in the figures of the other stores.
                    let url =
                        format!("http://host-{:06}.example/a/path/of/usual/length/{n:09}.html", n % hosts);
                    Candidate { statement, ..self.frontier.prepare(Request::get(url)).expect("it is done") }
                })
                .collect();
            pollster::block_on(self.frontier.admit_candidates(now(), &batch)).expect("it is done");
        }
    }

    /// Claims and settles everything once; answers how long that took.
    fn cycle(&self, urls: usize) -> Duration {
        let begun = Instant::now();
        let mut done = 0;
        while done < urls {
            let leases =
                pollster::block_on(self.frontier.claim(now(), Want::urls(500))).expect("it is done").leases;
            assert!(!leases.is_empty(), "{done} of {urls}");
            done += leases.len();
            let visit = Visit {
                status: 200,
                bytes: 20_000,
                etag: Some("\"33a64df551425fcc55e4d42a148795d9\"".to_owned()),
                digest: Some(vec![7; 32]),
                ..Visit::default()
            };
            let settle = |lease: trapline_frontier::Lease| {
                Settlement::new(lease.id, Outcome::Done { visit: visit.clone(), next: None })
            };
            let settled = self.frontier.settle(now(), leases.into_iter().map(settle).collect());
            pollster::block_on(settled).expect("it is done");
        }
        begun.elapsed()
    }

    fn dead(&self) {
        let sql = "SELECT relname, n_live_tup, n_dead_tup, autovacuum_count FROM pg_stat_user_tables \
                   WHERE relname IN ('turns', 'leases', 'pending', 'tallies') ORDER BY 1";
        println!("name|live|dead|autovacuums\n{}", self.server.sql(&self.database, sql).expect("it is done"));
    }

    fn tell(&self, what: &str, count: usize, tables: &[&str]) {
        let bytes = self.bytes();
        for table in tables {
            let of = bytes.get(*table).copied().unwrap_or_default();
            println!("{what}: {table} {:.0} bytes each, {} MiB", of as f64 / count as f64, of >> 20);
        }
    }
}

#[test]
#[ignore = "it takes some minutes; the manual has its figures"]
fn what_a_frontier_takes_in_a_database() {
    let known = Sized::new();
    known.admit(0..URLS, 1_000, Some(Statement::Done));
    known.tell("known URLs", URLS, &["seen", "urls"]);

    let pending = Sized::new();
    pending.admit(0..URLS, 1_000, None);
    pending.tell("pending URLs", URLS, &["seen", "urls", "pending"]);
    pollster::block_on(
        pending.frontier.steer_crawl(now(), CrawlChange::Set(vec![("concurrency".into(), "0".into())])),
    )
    .expect("it is done");
    let took = pending.cycle(URLS);
    println!("claimed and settled once in {:.0} s", took.as_secs_f64());
    pending.tell("after that", URLS, &["urls", "pending", "leases", "pages", "turns", "tallies"]);

    let queues = Sized::new();
    queues.admit(0..QUEUES, QUEUES, None);
    queues.tell("queues", QUEUES, &["queues", "turns"]);
    for round in 1..=4 {
        queues.cycle(QUEUES);
        queues.tell(&format!("served {round} times"), QUEUES, &["queues", "turns", "leases", "pending"]);
        queues.dead();
        // What the server does by itself once a minute.
        queues.server.sql(&queues.database, "VACUUM").expect("it is done");
        queues.admit(QUEUES * round..QUEUES * (round + 1), QUEUES, None);
    }
}
