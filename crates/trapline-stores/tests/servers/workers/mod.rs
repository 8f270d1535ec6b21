//! Eight worker processes on one store, each killed with `kill -9` now and then, and the server stopped in the middle of its work
//! and started again: whatever they were told, and told us, holds.
//!
//! The workers are this test binary itself, running [`worker::worker`] alone. Some of them have clocks that are wrong by an hour.
//! Times are those of the server, in the leases themselves and as workers follow them.
//!
//! `TRAPLINE_WORKERS_SECS=600 cargo test --release -p trapline-stores --test servers workers -- --nocapture` goes on for longer.

mod told;
mod worker;
mod wrong_clock;

use std::io::{BufRead, BufReader, PipeWriter};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use trapline_core::Timestamp;
use trapline_frontier::{Admission, Frontier, Outcome, QueueState, Settlement, UrlState};
use trapline_sim::Random;
use trapline_stores::PostgresStore;
use trapline_stores::postgres::{Pool, migrate};
use trapline_testing::{PostgresServer, Stop};

use told::{ALL_OVER, Told, states};
use worker::{BUDGET, LIFE, STEADY, URL, open, steady};
use wrong_clock::WrongClock;

const SECS: u64 = 20;
const SECS_VARIABLE: &str = "TRAPLINE_WORKERS_SECS";
const WORKERS: usize = 8;
/// How many rows of pages a steady queue has.
const CHAINS: u64 = 4;
const HOUR_SECS: i64 = 3600;
/// No steady queue is passed over for longer, whatever happens to server and workers.
const LONGEST_GAP: Duration = Duration::from_secs(12);

/// A worker that does not outlive the test, whatever happens to that.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What starts workers.
struct Nursery {
    url: String,
    clock: WrongClock,
    pipe: PipeWriter,
    lives: u64,
}

impl Nursery {
    fn start(&mut self, place: usize) -> Killed {
        let mut command = Command::new(std::env::current_exe().expect("this binary has a name"));
        command
            .args(["--exact", "workers::worker::worker", "--nocapture", "--test-threads", "1"])
            .env(URL, &self.url)
            .env(LIFE, self.lives.to_string())
            .stdout(self.pipe.try_clone().expect("a pipe has as many ends as it takes"))
            .stderr(Stdio::inherit());
        self.clock.set(&mut command, (place as i64 % 3 - 1) * HOUR_SECS);
        self.lives += 1;
        Killed(command.spawn().expect("this binary runs"))
    }
}

/// The server, and how long it was away.
struct Site {
    server: PostgresServer,
    stops: u64,
    away: Duration,
}

impl Site {
    fn stop_and_start(&mut self) {
        let began = Instant::now();
        self.server.stop(Stop::Immediate).expect("it stops");
        self.server.start_again().expect("it starts");
        self.stops += 1;
        self.away += began.elapsed();
    }
}

fn now(store: &PostgresStore) -> Timestamp {
    // Asked anew each time: the server is not the one it was.
    pollster::block_on(store.pool().clock().now()).expect("the server is there")
}

#[test]
fn killed_workers_and_a_stopped_server_break_no_promise() {
    let secs = std::env::var(SECS_VARIABLE).map_or(SECS, |secs| secs.parse().expect("a number of seconds"));
    check(secs, "SELECT 1");
}

/// Faults of the store, planted in the database with triggers: each must be found.
#[test]
#[ignore = "shows that the other one would notice: a minute, and a page of panics"]
fn planted_faults_are_found() {
    let on = |when: &str, rule: &str| {
        format!(
            "SET search_path TO trapline; CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {rule} END $$; \
             CREATE TRIGGER fault BEFORE {when} FOR EACH ROW EXECUTE FUNCTION fault()"
        )
    };
    let turns = |rule: &str| on("UPDATE ON turns", &format!("{rule}; RETURN new;"));
    for (what, plant) in [
        (
            "a delay 60 ms short",
            turns(
                "IF new.tier >= 0 AND new.serve_at = new.next_at THEN new.serve_at := new.serve_at - 60; END IF",
            ),
        ),
        (
            "one grant in five not charged",
            turns("IF new.grants > old.grants AND random() < 0.2 THEN new.spent := old.spent; END IF"),
        ),
        (
            "one queue in ten served beyond its concurrency",
            turns(
                "IF new.leased > 0 AND new.ready > 0 AND random() < 0.1 THEN new.tier := 0; new.serve_at := 0; END IF",
            ),
        ),
        (
            "one link in ten lost",
            on(
                "INSERT ON urls",
                "IF position('/link'::bytea IN new.url) > 0 AND random() < 0.1 THEN RETURN NULL; END IF; RETURN new;",
            ),
        ),
        (
            "one lease in fifty not ended by its settlement",
            on("DELETE ON leases", "IF random() < 0.02 THEN RETURN NULL; END IF; RETURN old;"),
        ),
        (
            "one URL in a hundred not pending again",
            on("INSERT ON pending", "IF random() < 0.01 THEN RETURN NULL; END IF; RETURN new;"),
        ),
    ] {
        let found = std::panic::catch_unwind(|| check(8, &plant));
        let found = found.expect_err(what);
        let found = found.downcast_ref::<String>().map_or("a panic without words", String::as_str);
        println!("{what}: {found}");
    }
}

/// Lets them work for so long, on tables to which this SQL was done.
fn check(secs: u64, plant: &str) {
    let server = PostgresServer::builder().start().expect("a server");
    let mut site = Site { server, stops: 0, away: Duration::ZERO };
    let url = site.server.url(&site.server.create_database().expect("a database"));
    pollster::block_on(migrate(&Pool::open(&url).expect("the URL is good"))).expect("the tables are made");
    let database = url.rsplit('/').next().expect("a database");
    site.server.sql(database, plant).expect("it is done");
    let store = PostgresStore::open(&(url.clone() + "?pool=2&connect_timeout=30s")).expect("the URL is good");
    let frontier = open(&store, now(&store)).expect("it opens");
    let chains = (0..STEADY).flat_map(|host| (0..CHAINS).map(move |chain| (host, chain)));
    let seeds: Vec<_> = chains.map(|(host, chain)| steady(&frontier, host, chain)).collect();
    let answers = pollster::block_on(frontier.admit_candidates(now(&store), &seeds)).expect("it is admitted");
    assert!(answers.iter().all(|answer| *answer == Admission::Added));

    let (told, kills) = run(&store, &mut site, &url, Duration::from_secs(secs));
    let later = now(&store) + ALL_OVER;
    told.check(&frontier, later);
    let drained = drain(&frontier, later);
    let (leases, settled, batches) = told.counts();
    println!(
        "{secs} s: {kills} workers killed, {} opened, the server stopped {} times (away for {:.1} s); {batches} batches admitted, \
         {leases} leases, {settled} settled, {} stale, {drained} more drained; a steady queue not served for {} ms at most",
        told.opened,
        site.stops,
        site.away.as_secs_f64(),
        told.stale,
        told.longest_gap,
    );
    assert!(told.clocks_were_off_by(HOUR_SECS / 60), "the clocks were to be wrong");
    assert!(Duration::from_millis(told.longest_gap) <= LONGEST_GAP, "{} ms", told.longest_gap);
    assert!(kills >= secs && site.stops >= secs / 7 && settled as u64 >= 20 * secs, "too little happened");
}

/// Lets them work, and kills and stops, for so long. All are dead afterwards, and the server is there.
fn run(store: &PostgresStore, site: &mut Site, url: &str, lasts: Duration) -> (Told, u64) {
    let (reader, pipe) = std::io::pipe().expect("a pipe can be made");
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(reader).lines() {
            let Ok(line) = line else { break };
            // The test harness says which test it begins, and ends no line with it.
            if let Some((_, line)) = line.split_once("@ ")
                && sender.send(line.to_owned()).is_err()
            {
                break;
            }
        }
    });
    let url = url.to_owned() + "?pool=2&connect_timeout=30s&application_name=worker";
    let mut nursery = Nursery { url, clock: WrongClock::new(), pipe, lives: 0 };
    let mut workers: Vec<_> = (0..WORKERS).map(|place| nursery.start(place)).collect();
    let mut random = Random::of(&[2026]);
    let mut told = Told::default();
    let clock = store.pool().clock();
    // The clock is not asked while the server is away: time goes on from the last look.
    let time = || pollster::block_on(clock.now()).expect("it was looked at before");
    time();
    let began = Instant::now();
    let mut kills = 0;
    let (mut next_kill, mut next_stop) = (Duration::from_millis(1500), Duration::from_secs(4));
    while began.elapsed() < lasts {
        match lines.recv_timeout(Duration::from_millis(10)) {
            Ok(line) => told.hear(&line, time()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => panic!("all workers are gone"),
        }
        if began.elapsed() >= next_kill {
            let place = random.range(0..WORKERS as u64) as usize;
            workers[place] = {
                let worker = nursery.start(place);
                kills += 1;
                worker
            };
            next_kill = began.elapsed() + Duration::from_millis(random.range(100..600));
        }
        if began.elapsed() >= next_stop {
            site.stop_and_start();
            next_stop = began.elapsed() + Duration::from_millis(random.range(2500..5500));
        }
    }
    workers.clear();
    drop(nursery);
    for line in lines {
        told.hear(&line, time());
    }
    (told, kills)
}

/// Serves all there is, a second at a time, without links: what is left then is what no budget allows. Answers how much it was.
fn drain(frontier: &Frontier, mut now: Timestamp) -> usize {
    let mut drained = 0;
    loop {
        let claimed = pollster::block_on(frontier.claim(now, 5000)).expect("it is claimed");
        if claimed.leases.is_empty() && claimed.exhausted {
            break;
        }
        drained += claimed.leases.len();
        let done = claimed.leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
        pollster::block_on(frontier.settle(now, done)).expect("it is settled");
        now = now + Duration::from_secs(1);
    }
    let mut left: Vec<String> = Vec::new();
    for (url, state) in states(frontier, now) {
        match state {
            UrlState::Done => {}
            UrlState::Pending => left.push(url),
            other => panic!("{url} is {other:?} after all is served"),
        }
    }
    left.sort();
    left.dedup_by_key(|url| url.split('/').nth(2).expect("a host").to_owned());
    for url in &left {
        let key = url.split('/').nth(2).expect("a host");
        let report =
            pollster::block_on(frontier.queue(now, key)).expect("it is answered").expect("it is known");
        assert_eq!((report.state, report.spent), (QueueState::Retired, BUDGET), "{key} was passed over");
    }
    assert!(!left.is_empty(), "some queue has spent its budget");
    drained
}
