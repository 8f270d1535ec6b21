//! Connections: what sessions are like, who is refused and with which words, and servers that go and come back.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use trapline_frontier::{ErrorKind, StoreError};
use trapline_stores::postgres::{Pool, Retry, is_retryable};
use trapline_testing::{PostgresServer, Stop};

use super::{ask, empty_database, pool};

fn refusal(url: &str) -> StoreError {
    let pool = pool(url);
    pollster::block_on(pool.client()).map(drop).expect_err("it is to be refused")
}

/// No executor is needed, and none is in the way.
#[test]
fn sessions_are_ours_from_any_executor() {
    let url = empty_database() + "?schema=mine&statement_timeout=7s&lock_timeout=3s";
    let look = || async {
        let pool = pool(&url);
        let shown = "SELECT concat_ws(' ', current_setting('search_path'), current_setting('statement_timeout'), \
                     current_setting('lock_timeout'), current_setting('application_name'), current_setting('jit'))";
        // Dropped here, inside whichever executor this is.
        ask(&pool, shown).await
    };
    let expected = "mine 7s 3s trapline off";
    assert_eq!(pollster::block_on(look()), expected);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(look()), expected);
}

#[test]
fn a_server_can_be_reached_by_its_socket() {
    let server = PostgresServer::shared();
    let (folder, port) = (server.folder().display(), server.port());
    let by_option = format!("postgres://trapline@:{port}/postgres?host={folder}:{port}");
    assert!(Pool::open(&by_option).is_err(), "the host is there twice");
    let folder = folder.to_string();
    for url in [
        format!("postgres://trapline@/postgres?host={folder}:{port}"),
        format!("postgres://trapline@{}:{port}/postgres", folder.replace('/', "%2F")),
    ] {
        assert_eq!(pollster::block_on(ask(&pool(&url), "SELECT 'here'")), "here");
    }
}

#[test]
fn work_on_the_runtime_goes_on_by_itself() {
    let pool = pool(&empty_database());
    let (sender, receiver) = mpsc::channel();
    drop(pool.spawn(async move { sender.send(7) }));
    assert_eq!(receiver.recv_timeout(Duration::from_secs(10)), Ok(7));
}

#[test]
fn whoever_is_refused_is_told_why_and_what_to_do() {
    let server = PostgresServer::shared();
    let port = server.port();
    let check = |url: &str, message: &str| {
        let error = refusal(url);
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert_eq!(error.to_string(), format!("postgres store: cannot reach {message}"));
    };
    check(
        &format!("postgres://trapline:wrong-one@127.0.0.1:{port}/postgres"),
        &format!(
            "postgres://trapline@127.0.0.1:{port}/postgres: password authentication failed for user \"trapline\" [SQLSTATE \
             28P01]; check the user's name and password in the URL (or PGPASSWORD), and the server's pg_hba.conf"
        ),
    );
    check(
        &server.url("nowhere"),
        &format!(
            "postgres://trapline@127.0.0.1:{port}/nowhere: database \"nowhere\" does not exist [SQLSTATE 3D000]; create the \
             database first: `createdb NAME`"
        ),
    );
    check(
        &(server.url("postgres") + "?sslmode=require"),
        &format!(
            "postgres://trapline@127.0.0.1:{port}/postgres: error performing TLS handshake: server does not support TLS; check \
             the URL: the host, `sslmode` and `sslrootcert`, the user and the password"
        ),
    );
}

#[test]
fn nobody_there_is_said_after_a_while_and_without_a_storm() {
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let pool = pool(&format!("postgres://u:hush@127.0.0.1:{port}/d?connect_timeout=2s&pool=4"));
    let began = Instant::now();
    let errors: Vec<_> = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| pollster::block_on(pool.client()).map(drop).unwrap_err()))
            .collect();
        asking.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    for error in &errors {
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(!error.to_string().contains("hush"), "{error}");
    }
    let refused =
        format!("postgres store: cannot reach postgres://u@127.0.0.1:{port}/d: error connecting to server: ");
    let told = errors.iter().map(ToString::to_string).find(|error| error.starts_with(&refused));
    let told = told.unwrap_or_else(|| panic!("{errors:?}"));
    assert!(
        told.contains("; tried for 2s (connect_timeout), and nothing was done: see that the server runs"),
        "{told}"
    );
    // Four set out at once; then one at a time after 25 ms at least, 50, 100, 200, 400, 800 and 1600.
    assert!((5..=12).contains(&pool.attempts()), "{} attempts", pool.attempts());
}

#[test]
fn a_pool_outlives_its_server() {
    let server = PostgresServer::builder().start().unwrap();
    let pool = pool(&(server.url("postgres") + "?pool=4&connect_timeout=20s"));
    for how in [Stop::Immediate, Stop::Fast] {
        let idle: Vec<_> = (0..4).map(|_| pollster::block_on(pool.client()).unwrap()).collect();
        drop(idle);
        let busy = pollster::block_on(pool.client()).unwrap();
        server.stop(how).unwrap();
        let error = pollster::block_on(busy.query_one("SELECT 1", &[])).unwrap_err();
        assert_eq!(is_retryable(&error), Retry::Reconnect, "{error:?}");
        let told = pool.trouble("claim", &error);
        assert_eq!(told.kind(), ErrorKind::Unavailable, "{told}");
        drop(busy);

        let before = pool.attempts();
        std::thread::scope(|scope| {
            // Eight want something while nobody is there, and none has to ask twice.
            let asked: Vec<_> =
                (0..8).map(|_| scope.spawn(|| pollster::block_on(ask(&pool, "SELECT 'back'")))).collect();
            while pool.attempts() < before + 6 {
                std::thread::yield_now();
            }
            server.start_again().unwrap();
            for asked in asked {
                assert_eq!(asked.join().unwrap(), "back");
            }
        });
        let attempts = pool.attempts() - before;
        assert!(attempts <= 30, "{attempts} attempts");
    }
}

#[test]
fn a_pool_that_is_used_up_says_so() {
    let pool = pool(&(empty_database() + "?pool=1&connect_timeout=200ms"));
    let held = pollster::block_on(pool.client()).unwrap();
    let error = pollster::block_on(pool.client()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    let told =
        "all 1 connections were in use for 200ms; nothing was done: try again, or raise `pool` in the URL";
    assert!(error.to_string().ends_with(told), "{error}");
    drop(held);
    assert_eq!(pollster::block_on(ask(&pool, "SELECT 'free'")), "free");
}

#[test]
fn trouble_in_the_middle_of_work_is_told_apart() {
    let pool = pool(&(empty_database() + "?lock_timeout=100ms&statement_timeout=300ms"));
    let fail = |sql: &str| {
        let pool: &Pool = &pool;
        pollster::block_on(async {
            let error = pool.client().await.unwrap().batch_execute(sql).await.unwrap_err();
            (is_retryable(&error), pool.trouble("claim", &error))
        })
    };
    let (retry, error) = fail("SELECT * FROM queues");
    assert_eq!((retry, error.kind()), (Retry::Never, ErrorKind::Invalid));
    let told = "relation \"queues\" does not exist [SQLSTATE 42P01]; the tables in the schema `trapline` are missing or old: \
                run `trapline store migrate URL`, and see what `trapline store check URL` says";
    assert!(error.to_string().ends_with(told), "{error}");

    let (retry, error) = fail("SELECT pg_sleep(10)");
    assert_eq!((retry, error.kind()), (Retry::Never, ErrorKind::Unavailable));

    pollster::block_on(async {
        let holder = pool.client().await.unwrap();
        holder.batch_execute("CREATE TABLE public.t (a int)").await.unwrap();
        holder.batch_execute("BEGIN; LOCK TABLE public.t").await.unwrap();
        let (retry, error) = {
            let waiter = pool.client().await.unwrap();
            let error = waiter.batch_execute("SELECT * FROM public.t").await.unwrap_err();
            (is_retryable(&error), pool.trouble("claim", &error))
        };
        assert_eq!((retry, error.kind()), (Retry::Now, ErrorKind::Unavailable));
        holder.batch_execute("ROLLBACK").await.unwrap();
    });
}
