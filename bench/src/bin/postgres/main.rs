//! The PostgreSQL store against the schema that comes to mind first, on a server with its default settings: every commit is
//! synced. The server is started here, in a temporary folder, and gone afterwards.
//!
//! `--quick` takes a tenth of everything; `--only NAMES` some of the parts.

mod naive;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pollster::block_on;
use trapline_bench::stream::{Offers, url};
use trapline_core::{IdentityKey, Request, Timestamp};
use trapline_frontier::{Admission, Frontier, Outcome, Settlement, Want};
use trapline_stores::PostgresStore;
use trapline_stores::postgres::{Pool, migrate};
use trapline_testing::PostgresServer;

use naive::Naive;

const BATCH: usize = 1000;
const CLAIM: usize = 500;

const PARTS: [&str; 3] = ["offers", "cycles", "workers"];

fn main() -> ExitCode {
    let mut part = 1;
    let mut only = PARTS.join(",");
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match (arg.as_str(), args.len()) {
            ("--quick", _) => part = 10,
            ("--only", 1..) => only = args.next().unwrap_or_default(),
            _ => return usage(),
        }
    }
    let wanted = |name: &str| only.split(',').any(|one| one == name);
    if only.split(',').any(|one| !PARTS.contains(&one)) {
        return usage();
    }

    let server = PostgresServer::builder().start().unwrap_or_else(|problem| panic!("{problem}"));
    let url = server.url(&server.create_database().expect("a database is made"));
    let pool = Pool::open(&url).expect("the URL is good");
    block_on(migrate(&pool)).expect("the tables are made");
    drop(pool);

    if wanted("offers") {
        offers(&url, 400_000 / part);
    }
    if wanted("cycles") {
        println!("\nclaim + settle, one URL a queue, batches of {CLAIM}, one worker:");
        let naive = Naive::new(&format!("{url}?pool=1"));
        let urls = 100_000 / part as usize;
        let batches: Vec<Vec<(Vec<u8>, String)>> = (0..urls)
            .map(|number| (number as u64 + 1, self::url(number as u64, number as u64)))
            .map(|(number, url)| (number.to_be_bytes().repeat(2), url))
            .collect::<Vec<_>>()
            .chunks(BATCH)
            .map(<[_]>::to_vec)
            .collect();
        naive.clear();
        for batch in &batches {
            naive.offer(batch);
        }
        let begun = Instant::now();
        let mut cycles = 0;
        while cycles < 40_000 / part as usize {
            cycles += naive.cycle(CLAIM as i64);
        }
        say("naive, no hosts", cycles, begun.elapsed());
        for queues in [10_000, 100_000, 1_000_000] {
            let queues = queues / part as usize;
            let crawl = open(&url, &format!("cycles {queues}"));
            fill(&crawl, queues);
            analyze(&url);
            let (cycles, took) = cycle(&crawl, (queues * 8 / 10).min(40_000 / part as usize));
            say(&format!("ours, {queues} queues"), cycles, took);
        }
    }
    if wanted("workers") {
        println!("\nclaim + settle, workers on one crawl of {} queues:", 400_000 / part);
        let crawl = open(&url, "workers");
        fill(&crawl, 400_000 / part as usize);
        analyze(&url);
        for workers in [1, 4] {
            let begun = Instant::now();
            let each = 40_000 / part as usize / workers;
            let cycles: usize = std::thread::scope(|scope| {
                let run = |_| {
                    let url = &url;
                    scope.spawn(move || cycle(&open(url, "workers"), each).0)
                };
                let threads: Vec<_> = (0..workers).map(run).collect();
                threads.into_iter().map(|thread| thread.join().expect("it works")).sum()
            });
            say(&format!("{workers} at once"), cycles, begun.elapsed());
        }
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("postgres [--quick] [--only NAMES], of {}", PARTS.join(","));
    ExitCode::FAILURE
}

fn say(what: &str, count: usize, took: Duration) {
    println!(
        "  {what:28} {:>9.0}/s  ({count} in {:.1} s)",
        count as f64 / took.as_secs_f64(),
        took.as_secs_f64()
    );
}

/// A handle of its own on a crawl.
fn open(url: &str, crawl: &str) -> Frontier {
    let store = Arc::new(PostgresStore::open(url).expect("it opens"));
    let builder = Frontier::builder(crawl).key(IdentityKey::from_seed(1));
    block_on(builder.open_shared(store, Timestamp::ZERO)).expect("the crawl opens")
}

/// One URL for each of so many queues.
fn fill(crawl: &Frontier, queues: usize) {
    for from in (0..queues).step_by(5000) {
        let batch =
            (from..queues.min(from + 5000)).map(|number| Request::get(url(number as u64, number as u64)));
        block_on(crawl.admit(Timestamp::ZERO, batch)).expect("they are admitted");
    }
}

/// Statistics, as autovacuum would take them within a minute.
fn analyze(url: &str) {
    let pool = Pool::open(url).expect("the URL is good");
    block_on(pool.run(async {
        pool.client().await.expect("a connection").batch_execute("VACUUM ANALYZE").await.expect("it is done");
    }));
}

/// Claims and settles so many; answers how many, and how long it took.
fn cycle(crawl: &Frontier, most: usize) -> (usize, Duration) {
    let now = Timestamp::from_millis(1);
    let begun = Instant::now();
    let mut cycles = 0;
    while cycles < most {
        let want = Want { per_queue: Some(1), ..Want::urls(CLAIM) };
        let leases = block_on(crawl.claim(now, want)).expect("they are granted").leases;
        assert!(!leases.is_empty(), "nothing is left after {cycles}");
        let done = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
        cycles += block_on(crawl.settle(now, done)).expect("they are settled").len();
    }
    (cycles, begun.elapsed())
}

fn offers(url: &str, offers: u64) {
    println!("\noffers, half of them known, over 100,000 hosts, batches of {BATCH}, one worker:");
    let naive = Naive::new(&format!("{url}?pool=1"));
    let key = IdentityKey::from_seed(1);
    let mut stream = Offers::new(7, offers, 100_000);
    let mut took = Duration::ZERO;
    let mut added = 0;
    loop {
        let urls = stream.batch(BATCH);
        if urls.is_empty() {
            break;
        }
        let identified = |url: String| (key.identify("GET", &url, b"").0.to_be_bytes().to_vec(), url);
        let batch: Vec<_> = urls.into_iter().map(identified).collect();
        let begun = Instant::now();
        added += naive.offer(&batch);
        took += begun.elapsed();
    }
    say(&format!("naive ({added} new)"), offers as usize, took);
    let crawl = open(url, "offers");
    let mut stream = Offers::new(7, offers, 100_000);
    let mut took = Duration::ZERO;
    let mut added = 0;
    loop {
        let urls = stream.batch(BATCH);
        if urls.is_empty() {
            break;
        }
        let begun = Instant::now();
        let answers = block_on(crawl.admit(Timestamp::ZERO, urls.into_iter().map(Request::get)));
        took += begun.elapsed();
        let answers = answers.expect("they are admitted");
        added += answers.iter().filter(|answer| **answer == Admission::Added).count();
    }
    say(&format!("ours ({added} new)"), offers as usize, took);
}
