//! Connections that are lost at the end of a transaction: what was done is not done again, what was not is, and callers get the
//! answer that is true. And what a store tries again by itself, without running over its server.

use std::time::Duration;

use trapline_core::Request;
use trapline_frontier::{
    Admission, Answer, CrawlChange, Frontier, Lease, NoteWrite, Outcome, Settlement, Stats, UrlState,
};
use trapline_stores::PostgresStore;
use trapline_testing::{PostgresServer, Stop};

use super::crawls::{add, at_ms, claim, crawl, no_waits, queue, state, store};
use super::proxy::{Fault, Proxy};
use super::{fresh_database, pool};

/// Some things are only sometimes so, such as whether a sequence writes to the log. So often each is tried.
const ROUNDS: usize = 8;

/// A crawl, as seen through a bad network and directly.
struct Both {
    proxy: Proxy,
    through: Frontier,
    store_through: PostgresStore,
    direct: Frontier,
}

fn both() -> Both {
    let url = fresh_database();
    let proxy = Proxy::before(PostgresServer::shared().port());
    let store_through = store(&proxy.url(&url));
    let direct = crawl(&store(&url), "c", no_waits());
    let through = crawl(&store_through, "c", no_waits());
    // What is prepared is there from now on, and what was found is known.
    add(&through, at_ms(0), &["http://warm.example/"]);
    end(&through, &claim(&through, at_ms(0), 1)[0]);
    Both { proxy, through, store_through, direct }
}

fn end(frontier: &Frontier, lease: &Lease) {
    let settlement = Settlement::new(lease.id, Outcome::done());
    let settled = pollster::block_on(frontier.settle(at_ms(1), vec![settlement])).expect("it is settled");
    assert_eq!(settled[0].answer, Answer::Done);
}

fn stats(frontier: &Frontier) -> Stats {
    pollster::block_on(frontier.stats(at_ms(1))).expect("it is answered")
}

/// Each fault several times, each time on a host of its own.
fn under_faults(both: &Both, mut check: impl FnMut(Fault, &str)) {
    for round in 0..ROUNDS {
        for fault in [Fault::Unheard, Fault::Unanswered] {
            let host = format!("{fault:?}{round}.example").to_lowercase();
            check(fault, &host);
            assert!(both.proxy.has_struck(), "no COMMIT was seen");
        }
    }
}

#[test]
fn a_settlement_whose_answer_was_lost_is_applied_once_and_answered_as_done() {
    let both = both();
    let mut fetched = 1;
    under_faults(&both, |fault, host| {
        let (page, link) = (format!("http://{host}/"), format!("http://{host}/link"));
        add(&both.direct, at_ms(1), &[&page]);
        let lease = claim(&both.direct, at_ms(1), 1).remove(0);
        let mut settlement = Settlement::new(lease.id, Outcome::done());
        settlement.links = vec![both.through.prepare(Request::get(link.clone())).expect("a good URL")];
        settlement.notes =
            vec![NoteWrite { key: host.to_owned(), value: Some(b"seen".to_vec()), expires: None }];
        settlement.delay = Some(Duration::from_hours(1));
        both.proxy.arm(fault);
        let settled = pollster::block_on(both.through.settle(at_ms(1), vec![settlement]));
        let settled = settled.expect("it is settled").remove(0);
        assert_eq!((settled.answer, settled.links), (Answer::Done, vec![Admission::Added]), "{fault:?}");
        fetched += 1;
        let report = queue(&both.direct, at_ms(1), host);
        assert_eq!((report.done, report.leased, report.pending, report.spent), (1, 0, 1, 1), "{fault:?}");
        assert_eq!(state(&both.direct, at_ms(1), &page), UrlState::Done);
        assert_eq!(state(&both.direct, at_ms(1), &link), UrlState::Pending);
        assert_eq!(stats(&both.direct).fetched, fetched, "{fault:?}");
    });
}

/// Without links and notes there is less in the transaction to know it by.
#[test]
fn a_plain_settlement_is_known_again_as_well() {
    let both = both();
    under_faults(&both, |fault, host| {
        add(&both.direct, at_ms(1), &[format!("http://{host}/")]);
        let lease = claim(&both.direct, at_ms(1), 1).remove(0);
        both.proxy.arm(fault);
        end(&both.through, &lease);
    });
    assert_eq!(stats(&both.direct).fetched as usize, 2 * ROUNDS + 1);
}

#[test]
fn a_renewal_whose_answer_was_lost_is_no_stale_lease() {
    let both = both();
    under_faults(&both, |fault, host| {
        add(&both.direct, at_ms(1), &[format!("http://{host}/")]);
        let lease = claim(&both.direct, at_ms(1), 1).remove(0);
        both.proxy.arm(fault);
        let renewal = Settlement::new(lease.id, Outcome::Renew { lease: Duration::from_hours(1) });
        let settled =
            pollster::block_on(both.through.settle(at_ms(1), vec![renewal])).expect("it is settled");
        assert_eq!(settled[0].answer, Answer::Renewed, "{fault:?}");
        end(&both.direct, &lease);
    });
}

#[test]
fn an_admission_whose_answer_was_lost_is_answered_as_added() {
    let both = both();
    under_faults(&both, |fault, host| {
        let urls = [1, 2, 3].map(|page| format!("http://{host}/{page}"));
        both.proxy.arm(fault);
        add(&both.through, at_ms(1), &urls);
        assert_eq!(queue(&both.direct, at_ms(1), host).pending, 3, "{fault:?}");
    });
}

#[test]
fn leases_whose_answer_was_lost_are_not_lost() {
    let both = both();
    under_faults(&both, |fault, host| {
        let urls = [1, 2, 3].map(|page| format!("http://{page}.{host}/"));
        add(&both.direct, at_ms(1), &urls);
        both.proxy.arm(fault);
        let leases = claim(&both.through, at_ms(1), 9);
        assert_eq!(leases.len(), 3, "{fault:?}");
        for lease in &leases {
            end(&both.direct, lease);
        }
    });
    assert_eq!(stats(&both.direct).granted as usize, ROUNDS * 6 + 1, "none was granted twice");
}

#[test]
fn leases_of_any_crawl_are_not_lost_either() {
    let both = both();
    crawl(&both.store_through, "another", no_waits());
    under_faults(&both, |fault, host| {
        add(&both.direct, at_ms(1), &[format!("http://{host}/")]);
        // Two transactions let time pass in the two crawls; the third claims.
        both.proxy.arm_after(2, fault);
        let claimed = pollster::block_on(both.through.claim_any(at_ms(1), 9)).expect("it is claimed");
        assert_eq!(claimed.leases.len(), 1, "{fault:?}");
        end(&both.direct, &claimed.leases[0]);
    });
}

#[test]
fn what_an_operator_does_is_done_once() {
    let both = both();
    under_faults(&both, |fault, host| {
        both.proxy.arm(fault);
        let note = NoteWrite { key: host.to_owned(), value: Some(b"x".to_vec()), expires: None };
        pollster::block_on(both.through.steer_crawl(at_ms(1), CrawlChange::Note(note)))
            .expect("it is written");
    });
    for fault in [Fault::Unheard, Fault::Unanswered] {
        both.proxy.arm(fault);
        let made = crawl(&both.store_through, &format!("{fault:?}"), no_waits());
        assert!(both.proxy.has_struck());
        add(&made, at_ms(1), &["http://a.example/"]);
    }
}

/// A server that loses a transaction in a crash gives its number to another one. That this one is done proves nothing about the
/// lost one.
#[test]
fn a_transaction_lost_in_a_crash_is_not_taken_for_the_one_that_got_its_number() {
    // Nothing is written to the log before somebody commits, as on a server between two of its flushes.
    let server = PostgresServer::builder().setting("wal_writer_delay = 10s").start().expect("a server");
    let database = server.create_database().expect("a database");
    let url = server.url(&database) + "?connect_timeout=30s";
    pollster::block_on(trapline_stores::postgres::migrate(&pool(&url))).expect("the tables are made");
    let proxy = Proxy::before(server.port());
    let through = crawl(&store(&proxy.url(&url)), "c", no_waits());
    add(&through, at_ms(0), &["http://a.example/1", "http://b.example/1"]);
    let lease = claim(&through, at_ms(0), 1).remove(0);

    // What is lost, and how it is to be answered all the same.
    let lose = |numbers: usize, what: &(dyn Fn() + Sync)| {
        proxy.arm(Fault::Held);
        std::thread::scope(|scope| {
            let doing = scope.spawn(what);
            proxy.wait_until_held();
            server.stop(Stop::Immediate).expect("it stops");
            server.start_again().expect("it starts");
            for _ in 0..numbers {
                server.sql(&database, "SELECT pg_current_xact_id()").expect("a number is taken");
            }
            proxy.cut();
            doing.join().expect("it was right");
        });
    };
    lose(30, &|| end(&through, &lease));
    assert_eq!(state(&through, at_ms(1), &lease.request.url), UrlState::Done, "it was answered so");
    // Of a number that nobody has yet the server says that it lies in the future.
    for numbers in [30, 0] {
        let url = format!("http://c{numbers}.example/");
        lose(numbers, &|| add(&through, at_ms(1), &[&url]));
        assert_eq!(state(&through, at_ms(1), &url), UrlState::Pending, "it was answered so");
    }
    lose(30, &|| {
        let leases = claim(&through, at_ms(1), 9);
        assert_eq!(leases.len(), 3);
        for lease in &leases {
            end(&through, lease);
        }
    });
}

/// Trouble that passes, made by a trigger: each time the next three steps fail so.
/// The connection that was lost leaves its place to the one that is needed to ask.
#[test]
fn one_connection_is_enough_to_learn_what_became_of_a_transaction() {
    let url = fresh_database();
    let proxy = Proxy::before(PostgresServer::shared().port());
    let frontier = crawl(&store(&(proxy.url(&url) + "&pool=1")), "c", no_waits());
    for fault in [Fault::Unheard, Fault::Unanswered] {
        proxy.arm(fault);
        let begun = std::time::Instant::now();
        add(&frontier, at_ms(0), &[format!("http://{fault:?}.example/")]);
        assert!(proxy.has_struck() && begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    }
}

/// As after a crash of a server that does not sync, and as on a replica that knew less.
#[test]
fn a_number_that_is_drawn_twice_is_no_lease_that_is_granted_twice() {
    let url = fresh_database();
    let frontier = crawl(&store(&url), "c", no_waits());
    add(&frontier, at_ms(0), &["http://a.example/", "http://b.example/"]);
    let before = claim(&frontier, at_ms(0), 1).remove(0);
    let release = Settlement::new(before.id, Outcome::Release);
    pollster::block_on(frontier.settle(at_ms(0), vec![release])).expect("it is settled");
    let database = url.rsplit('/').next().expect("it has a name");
    PostgresServer::shared()
        .sql(database, "ALTER SEQUENCE trapline.lease_numbers RESTART")
        .expect("it is done");
    let after = claim(&frontier, at_ms(0), 2);
    let late = Settlement::new(before.id, Outcome::done());
    let settled = pollster::block_on(frontier.settle(at_ms(0), vec![late])).expect("it is settled");
    assert_eq!(settled[0].answer, Answer::Stale, "{before:?} {after:?}");
}

#[test]
fn what_fails_because_of_others_is_tried_again() {
    let url = fresh_database();
    let frontier = crawl(&store(&url), "c", no_waits());
    let pool = pool(&url);
    let sql = |sql: &str| {
        let client = pollster::block_on(pool.client()).expect("the server is there");
        pollster::block_on(client.batch_execute(sql)).expect("it is done");
    };
    sql("CREATE SEQUENCE troubles; CREATE TABLE trouble (code text); INSERT INTO trouble VALUES ('40001'); \
         CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
           IF nextval('troubles') <= 3 THEN \
             RAISE EXCEPTION 'made for a test' USING ERRCODE = (SELECT code FROM trouble); \
           END IF; RETURN new; END $$; \
         CREATE TRIGGER fail BEFORE UPDATE ON tallies FOR EACH ROW EXECUTE FUNCTION fail()");
    for (round, code) in ["40001", "40P01", "55P03"].into_iter().enumerate() {
        let again = || sql(&format!("ALTER SEQUENCE troubles RESTART; UPDATE trouble SET code = '{code}'"));
        let url = format!("http://a.example/{round}");
        again();
        add(&frontier, at_ms(0), &[&url]);
        again();
        let lease = claim(&frontier, at_ms(0), 1).remove(0);
        again();
        end(&frontier, &lease);
        again();
        let note = NoteWrite { key: "k".to_owned(), value: Some(vec![1]), expires: None };
        pollster::block_on(frontier.steer_crawl(at_ms(1), CrawlChange::Note(note))).expect("it is written");
        add(&frontier, at_ms(1), &[format!("{url}/any")]);
        again();
        let claimed = pollster::block_on(frontier.claim_any(at_ms(1), 1)).expect("it is claimed");
        end(&frontier, &claimed.leases[0]);
    }
    assert_eq!(stats(&frontier).fetched, 6);
}

#[test]
fn somebody_elses_lock_is_waited_for_longer_than_one_timeout() {
    let url = fresh_database();
    let frontier = crawl(&store(&(url.clone() + "?lock_timeout=100ms")), "c", no_waits());
    add(&frontier, at_ms(0), &["http://a.example/"]);
    let lease = claim(&frontier, at_ms(0), 1).remove(0);
    let pool = pool(&url);
    let holder = pollster::block_on(pool.client()).expect("the server is there");
    pollster::block_on(holder.batch_execute("BEGIN; SELECT 1 FROM turns FOR UPDATE")).expect("it locks");
    std::thread::scope(|scope| {
        let settling = scope.spawn(|| end(&frontier, &lease));
        pollster::block_on(holder.batch_execute("SELECT pg_sleep(0.5); COMMIT")).expect("it lets go");
        settling.join().expect("it was settled");
    });
}

#[test]
fn of_two_who_wait_for_each_other_the_store_tries_again() {
    let url = fresh_database();
    let frontier = crawl(&store(&url), "c", no_waits());
    add(&frontier, at_ms(0), &["http://a.example/", "http://b.example/"]);
    let leases = claim(&frontier, at_ms(0), 2);
    let pool = pool(&url);
    let other = pollster::block_on(pool.client()).expect("the server is there");
    let lock_last =
        "SET deadlock_timeout TO '60s'; BEGIN; SELECT 1 FROM turns ORDER BY queue DESC LIMIT 1 FOR UPDATE";
    pollster::block_on(other.batch_execute(lock_last)).expect("it locks");
    std::thread::scope(|scope| {
        let settling = scope.spawn(|| {
            let done = leases.iter().map(|lease| Settlement::new(lease.id, Outcome::done())).collect();
            let settled = pollster::block_on(frontier.settle(at_ms(1), done)).expect("it is settled");
            assert!(settled.iter().all(|settled| settled.answer == Answer::Done));
        });
        // The store holds the first queue by now, or comes to wait for it: it is in the way in either case.
        let waits = "DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid') \
                     LOOP PERFORM pg_sleep(0.01); END LOOP; END $$";
        pollster::block_on(other.batch_execute(waits)).expect("it waits");
        let lock_first = "SELECT 1 FROM turns ORDER BY queue LIMIT 1 FOR UPDATE; COMMIT";
        pollster::block_on(other.batch_execute(lock_first)).expect("the store gives way");
        settling.join().expect("it was settled");
    });
}

#[test]
fn lost_connections_are_made_again_one_for_one() {
    let url = fresh_database();
    let store = store(&(url.clone() + "?pool=4"));
    let frontier = crawl(&store, "c", no_waits());
    let killer = pool(&url);
    const LOSSES: u64 = 10;
    let added = std::sync::atomic::AtomicU64::new(0);
    let order = std::sync::atomic::Ordering::Relaxed;
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (frontier, added) = (&frontier, &added);
            scope.spawn(move || {
                for page in 0..25 {
                    add(frontier, at_ms(0), &[format!("http://h{worker}.example/{page}")]);
                    added.fetch_add(1, order);
                }
            });
        }
        for loss in 0..LOSSES {
            // Each after some work, so that connections are there to be lost.
            while added.load(order) < loss * 18 {
                std::thread::yield_now();
            }
            let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
                        AND pid <> pg_backend_pid()";
            let client = pollster::block_on(killer.client()).expect("the server is there");
            pollster::block_on(client.batch_execute(kill)).expect("they are killed");
        }
    });
    assert_eq!(stats(&frontier).urls_in(UrlState::Pending), 200);
    let attempts = store.pool().attempts();
    assert!(attempts <= 4 + LOSSES * 4, "{attempts} attempts for {LOSSES} losses of 4 connections");
}
