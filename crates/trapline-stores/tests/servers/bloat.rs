//! What claims and settlements leave behind in the tables stays bounded, and claims stay quick, also while somebody looks at an
//! old state of the database and so keeps the server from clearing up.
//!
//! `TRAPLINE_CYCLES=1000000 cargo test --release -p trapline-stores --test servers bloat -- --nocapture` goes on for longer.

use std::time::{Duration, Instant};

use trapline_core::{Candidate, Request, Terms, Timestamp};
use trapline_frontier::{Frontier, Lease, Outcome, Settlement};
use trapline_stores::PostgresStore;
use trapline_stores::postgres::{Pool, migrate};
use trapline_testing::PostgresServer;

use super::crawls::{add, at_ms, crawl, no_waits, store};

const CYCLES: usize = 20_000;
const CYCLES_VARIABLE: &str = "TRAPLINE_CYCLES";

/// How often each queue is served in a phase. What a row was before it is looked at with it, while it cannot be cleared away: more
/// of that would not be what a polite crawl does.
const TIMES_EACH: usize = 10;
const BATCH: usize = 100;

/// An old snapshot is held until so much time has passed, or all cycles are done.
const HELD_FOR: Duration = Duration::from_secs(60);

const TABLES: [&str; 6] = ["turns", "pending", "leases", "waiting", "pages", "tallies"];

/// What was seen in a tenth of the cycles.
struct Tenth {
    /// In KiB, as [`TABLES`] has them, with their indexes.
    sizes: [u64; TABLES.len()],
    /// The median and the longest.
    claim: [Duration; 2],
    settle: [Duration; 2],
    /// How long what another process brought had to wait, although it was to be served before all others.
    better: Duration,
}

struct Run {
    pool: Pool,
    frontier: Frontier,
    /// Another process, which brings what is better than all that is there.
    other: Frontier,
    better: usize,
    now: Timestamp,
}

fn median(mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort();
    [times[times.len() / 2], times[times.len() - 1]]
}

impl Run {
    fn new(server: &PostgresServer, queues: usize) -> Self {
        let url = server.url(&server.create_database().expect("a database"));
        let pool = Pool::open(&url).expect("the URL is good");
        pollster::block_on(migrate(&pool)).expect("the tables are made");
        let store: PostgresStore = store(&url);
        let frontier = crawl(&store, "c", no_waits());
        let other = crawl(&super::crawls::store(&url), "c", no_waits());
        let urls: Vec<_> = (0..queues).map(|host| format!("http://h{host}.example/")).collect();
        for urls in urls.chunks(2000) {
            add(&frontier, at_ms(0), urls);
        }
        Self { pool, frontier, other, better: 0, now: at_ms(0) }
    }

    /// Brings a queue that is to be served before all others.
    fn bring_better(&mut self) -> Instant {
        self.better += 1;
        let request = Request::get(format!("http://better{}.example/", self.better));
        let candidate = self.other.prepare(request).expect("a good URL");
        let terms = Terms { precedence: Some(1), ..Terms::default() };
        let batch = [Candidate { terms, ..candidate }];
        pollster::block_on(self.other.admit_candidates(self.now, &batch)).expect("it is admitted");
        Instant::now()
    }

    fn cycles(&mut self, cycles: usize) -> Tenth {
        let (mut claims, mut settlements) = (Vec::new(), Vec::new());
        let brought = self.bring_better();
        let mut better = None;
        for _ in 0..cycles.div_ceil(BATCH) {
            self.now = self.now + Duration::from_millis(10);
            let began = Instant::now();
            let leases = super::crawls::claim(&self.frontier, self.now, BATCH);
            claims.push(began.elapsed());
            assert_eq!(leases.len(), BATCH, "there is always more");
            if leases.iter().any(|lease| lease.key.starts_with("better")) {
                better = Some(brought.elapsed());
            }
            let outcome = |lease: &Lease| match lease.id.0 % 4 {
                _ if lease.key.starts_with("better") => Outcome::done(),
                // At once, and soon; and the same with another table in between.
                0 => Outcome::Retry { at: self.now },
                1 => Outcome::Retry { at: self.now + Duration::from_millis(1) },
                2 => Outcome::Done { visit: Default::default(), next: Some(self.now) },
                _ => Outcome::Done {
                    visit: Default::default(),
                    next: Some(self.now + Duration::from_millis(1)),
                },
            };
            let batch = leases.iter().map(|lease| Settlement::new(lease.id, outcome(lease))).collect();
            let began = Instant::now();
            pollster::block_on(self.frontier.settle(self.now, batch)).expect("it is settled");
            settlements.push(began.elapsed());
        }
        let better = better.expect("what is better is not passed over for long");
        Tenth { sizes: self.sizes(), claim: median(claims), settle: median(settlements), better }
    }

    fn sizes(&self) -> [u64; TABLES.len()] {
        TABLES.map(|table| {
            let size = format!("SELECT (pg_total_relation_size('{table}') / 1024)::text");
            pollster::block_on(super::ask(&self.pool, &size)).parse().expect("a number")
        })
    }
}

fn print(what: &str, tenths: &[Tenth]) {
    println!(
        "\n{what}\n tenth  {}  claim ms (longest)  settle ms (longest)  better after ms",
        TABLES.map(|table| format!("{table:>8}")).join(" ")
    );
    for (at, Tenth { sizes, claim, settle, better }) in tenths.iter().enumerate() {
        let sizes = sizes.map(|size| format!("{size:>8}")).join(" ");
        let ms = |time: [Duration; 2]| {
            format!("{:>8.1} ({:>6.1})", time[0].as_secs_f64() * 1e3, time[1].as_secs_f64() * 1e3)
        };
        println!("{:>6}  {sizes}    {}    {}  {:>12}", at + 1, ms(*claim), ms(*settle), better.as_millis());
    }
}

#[test]
fn what_is_left_behind_stays_bounded_and_claims_stay_quick() {
    let cycles = std::env::var(CYCLES_VARIABLE).map_or(CYCLES, |cycles| cycles.parse().expect("a number"));
    let queues = cycles / TIMES_EACH;
    // A server looks around once a minute, which is longer than the short run takes.
    let server =
        PostgresServer::builder().careless().setting("autovacuum_naptime = 1s").start().expect("a server");
    let mut run = Run::new(&server, queues);
    let free: Vec<_> = (0..10).map(|_| run.cycles(cycles / 10)).collect();
    print(&format!("{cycles} cycles over {queues} queues: sizes in KiB"), &free);

    let holder = pollster::block_on(run.pool.client()).expect("the server is there");
    let hold = "SET idle_in_transaction_session_timeout TO 0; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM turns";
    pollster::block_on(holder.batch_execute(hold)).expect("it looks");
    let began = Instant::now();
    let mut held = Vec::new();
    while held.len() < 10 && began.elapsed() < HELD_FOR {
        held.push(run.cycles(cycles / 10));
    }
    let (tenths, took) = (held.len(), began.elapsed().as_secs_f64());
    print(&format!("{} more, while an old snapshot is held for {took:.1} s", cycles / 10 * tenths), &held);
    pollster::block_on(holder.batch_execute("COMMIT")).expect("it looks no more");
    let after: Vec<_> = (0..10).map(|_| run.cycles(cycles / 10)).collect();
    print(&format!("{cycles} more after that"), &after);

    let total = |tenth: &Tenth| tenth.sizes.iter().sum::<u64>();
    assert!(total(&free[9]) <= total(&free[4]) * 3 / 2 + 2048, "it grows and grows");
    assert!(total(&after[9]) <= total(&after[4]) * 3 / 2 + 2048, "it grows and grows, after an old snapshot");
    let usual = free[4..].iter().map(|tenth| tenth.claim[0]).max().expect("there are some");
    let slowest = held.iter().map(|tenth| tenth.claim[0]).max().expect("there are some");
    let passed_over = held.iter().map(|tenth| tenth.better).max().expect("there are some");
    assert!(passed_over <= Duration::from_secs(5), "what is better waited for {passed_over:?}");
    // Each queue has ten former rows by then, which nobody can spare a claim.
    assert!(slowest <= usual * 4 + Duration::from_millis(20), "claims take {slowest:?} and not {usual:?}");
}
