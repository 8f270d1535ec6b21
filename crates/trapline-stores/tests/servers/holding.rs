//! Transactions that are held open hold up nobody who can do something else.

use std::time::{Duration, Instant};

use trapline_frontier::{Answer, CrawlChange, Frontier, Lease, Outcome, Settlement};
use trapline_stores::postgres::migrate;
use trapline_testing::PostgresServer;

use super::crawls::{add, at_ms, claim, crawl, no_waits, store};
use super::proxy::{Fault, Proxy};
use super::{fresh_database, pool};

/// What a worker that is not concerned may take. A machine has other things to do at times: one try in three must make it,
/// and none may take longer than what nobody would call waiting.
const SOON: Duration = Duration::from_millis(50);
const NOT_WAITING: Duration = Duration::from_secs(2);

fn check_pace(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let (third, last) = (times[times.len() / 3], times[times.len() - 1]);
    println!(
        "{what}: {} tries, the quickest {:?}, a third within {third:?}, all within {last:?}",
        times.len(),
        times[0]
    );
    assert!(third <= SOON && last <= NOT_WAITING, "{what}: {times:?}");
}

fn timed<T>(times: &mut Vec<Duration>, what: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = what();
    times.push(began.elapsed());
    done
}

fn end(frontier: &Frontier, leases: &[Lease], outcome: &Outcome) {
    let batch = leases.iter().map(|lease| Settlement::new(lease.id, outcome.clone())).collect();
    let settled = pollster::block_on(frontier.settle(at_ms(1), batch)).expect("it is settled");
    assert!(settled.iter().all(|settled| settled.answer != Answer::Stale));
}

fn hosts(count: usize) -> Vec<String> {
    (0..count).map(|host| format!("http://h{host}.example/")).collect()
}

#[test]
fn queues_that_somebody_has_locked_are_passed_over() {
    let url = fresh_database();
    let frontier = crawl(&store(&url), "c", no_waits());
    add(&frontier, at_ms(0), &hosts(100));
    let pool = pool(&url);
    let holder = pollster::block_on(pool.client()).expect("the server is there");
    let lock = "BEGIN; SELECT 1 FROM turns WHERE tier >= 0 ORDER BY precedence, tier, serve_at, serve_rank LIMIT 50 FOR UPDATE";
    pollster::block_on(holder.batch_execute(lock)).expect("they are locked");
    let mut times = Vec::new();
    for _ in 0..30 {
        let leases = timed(&mut times, || claim(&frontier, at_ms(1), 10));
        assert_eq!(leases.len(), 10, "there are others");
        end(&frontier, &leases, &Outcome::Release);
    }
    check_pace("claims beside 50 locked queues", times);
    let all = pollster::block_on(frontier.claim(at_ms(1), 100)).expect("it is claimed");
    assert_eq!(all.leases.len(), 50);
    assert!(all.next.is_some_and(|next| next > at_ms(1)), "what is locked may be free soon");
    pollster::block_on(holder.batch_execute("COMMIT")).expect("they are free again");
    assert_eq!(claim(&frontier, at_ms(1), 100).len(), 50);
}

/// A process that hangs, or whose network does, in the very end of its claim: all is written, and all that it wrote is locked.
#[test]
fn a_claim_that_does_not_come_to_its_end_holds_up_nobody() {
    let url = fresh_database();
    let proxy = Proxy::before(PostgresServer::shared().port());
    let hung = crawl(&store(&proxy.url(&url)), "c", no_waits());
    let frontier = crawl(&store(&url), "c", no_waits());
    add(&frontier, at_ms(0), &hosts(100));
    claim(&hung, at_ms(0), 0);
    proxy.arm(Fault::Held);
    std::thread::scope(|scope| {
        let claiming = scope.spawn(|| claim(&hung, at_ms(1), 50));
        proxy.wait_until_held();
        let (mut claims, mut settlements, mut admissions) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..100 {
            let leases = timed(&mut claims, || claim(&frontier, at_ms(1), 10));
            assert_eq!(leases.len(), 10, "there are others");
            timed(&mut settlements, || end(&frontier, &leases, &Outcome::Release));
            timed(&mut admissions, || add(&frontier, at_ms(1), &[format!("http://new{round}.example/")]));
        }
        let others = claim(&frontier, at_ms(1), 500);
        proxy.let_go();
        let of_hung = claiming.join().expect("it is claimed");
        check_pace("claims beside one that hangs", claims);
        check_pace("settlements beside it", settlements);
        check_pace("admissions beside it", admissions);
        assert_eq!((of_hung.len(), others.len()), (50, 150));
        assert!(of_hung.iter().all(|lease| others.iter().all(|other| other.key != lease.key)));
        end(&frontier, &of_hung, &Outcome::done());
    });
}

/// Two frontiers in one database, each with a crawl of the same number: one is changed as a whole, the other is not concerned.
#[test]
fn a_frontier_in_another_schema_holds_up_nobody() {
    let url = fresh_database();
    let second = format!("{url}?schema=second");
    pollster::block_on(migrate(&pool(&second))).expect("the tables are made");
    let proxy = Proxy::before(PostgresServer::shared().port());
    let hung = crawl(&store(&proxy.url(&second)), "c", no_waits());
    let frontier = crawl(&store(&format!("{url}?lock_timeout=100ms")), "c", no_waits());
    add(&frontier, at_ms(0), &hosts(1));
    claim(&hung, at_ms(0), 0);
    proxy.arm(Fault::Held);
    std::thread::scope(|scope| {
        let pausing =
            scope.spawn(|| pollster::block_on(hung.steer_crawl(at_ms(1), CrawlChange::Pause)).is_ok());
        proxy.wait_until_held();
        let began = Instant::now();
        let claimed = pollster::block_on(frontier.claim(at_ms(1), 1));
        let took = began.elapsed();
        proxy.let_go();
        assert!(pausing.join().expect("it is paused"));
        assert_eq!(claimed.expect("it is claimed").leases.len(), 1);
        assert!(took < NOT_WAITING, "{took:?}");
    });
}
