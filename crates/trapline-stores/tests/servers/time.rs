//! The server's clock, followed from here.

use std::time::Duration;

use trapline_core::Timestamp;
use trapline_testing::{PostgresServer, Stop};

use super::{ask, empty_database, pool};

const SERVER: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text";

#[test]
fn the_servers_clock_is_followed() {
    let pool = pool(&empty_database());
    let clock = pool.clock();
    assert_eq!(clock.exact_to(), None);
    let told = pollster::block_on(async {
        clock.now().await.unwrap();
        let before: u64 = ask(&pool, SERVER).await.parse().unwrap();
        let told = clock.now().await.unwrap();
        let after: u64 = ask(&pool, SERVER).await.parse().unwrap();
        let off = clock.exact_to().unwrap() + Duration::from_millis(2);
        assert!(Timestamp::from_millis(before) <= told + off && told <= Timestamp::from_millis(after) + off);
        told
    });
    let mut latest = told;
    for _ in 0..1_000 {
        let now = pollster::block_on(clock.now()).unwrap();
        assert!(now >= latest);
        latest = now;
    }
}

#[test]
fn time_goes_on_while_the_server_is_away() {
    let server = PostgresServer::builder().careless().start().unwrap();
    let pool = pool(&(server.url("postgres") + "?connect_timeout=1s&pool=1"));
    let clock = pool.clock();
    let before = pollster::block_on(clock.now()).unwrap();
    server.stop(Stop::Immediate).unwrap();
    // Connections are tried for in between, after each of which another server might be there.
    // One that is in the pool may not have noticed yet.
    while pollster::block_on(pool.client()).map(drop).is_ok() {}
    assert!(pollster::block_on(clock.now()).unwrap() >= before + Duration::from_millis(900));
    let fresh = pool.clock();
    pollster::block_on(fresh.now()).unwrap_err();
}
