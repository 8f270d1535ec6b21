//! Servers that do harm: each case ends with the result it should, in bounded time, and the healthy host beside it notices
//! nothing. What they cost in memory is measured in `memory`.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use trapline_fetch::{Fetched, Fetcher};

use crate::door::Server;
use crate::web::{Step, answering, healthy, ok, options, page, response, scripted, send};

/// 64 MiB of zeros in Brotli.
pub(crate) const BROTLI_BOMB: &[u8] = &[
    0xcf, 0xff, 0xff, 0x7f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x9f, 0xff, 0xff, 0xff,
    0xf0, 0x4f, 0x00, 0xc4, 0x61, 0x01, 0x80, 0xee, 0xfd, 0x3f, 0xff, 0xff, 0xff, 0xe1, 0x9f, 0x00, 0x88,
    0xc3, 0x22, 0x00, 0xdd, 0xfb, 0xff, 0xfc, 0xff, 0xff, 0xc7, 0x3f, 0x01, 0x10, 0x87, 0x05, 0x00, 0xba,
    0xf7, 0xff,
];

pub(crate) fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(9));
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// A gigabyte of zeros: a frame with a window of 1 MiB, and blocks of 128 KiB in four bytes each.
pub(crate) fn zstd_bomb() -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50];
    for _ in 0..8192 {
        frame.extend_from_slice(&((128_u32 << 10) << 3 | 1 << 1).to_le_bytes()[..3]);
        frame.push(0);
    }
    frame
}

/// What came of a fetch, in a few words.
pub(crate) fn outcome(fetched: &Fetched) -> String {
    let mut words = match (&fetched.error, fetched.status) {
        (Some(error), _) => vec![error.kind().as_str().to_owned()],
        (None, Some(status)) => vec![status.to_string()],
        (None, None) => vec!["nothing".to_owned()],
    };
    words.extend(fetched.truncated.map(|why| format!("truncated={why}")));
    words.extend(fetched.decode_fault.map(|fault| format!("fault={fault}")));
    words.join(" ")
}

type Case = (&'static str, Vec<Step>, &'static str);

fn head(rest: &str) -> Step {
    send(format!("HTTP/1.1 200 OK\r\n{rest}\r\n"))
}

fn cases() -> Vec<Case> {
    use Step::{Drip, Endless, Hold, Read, Reset};
    let slow = Duration::from_millis(90);
    let endless = |text: &str| Endless(text.repeat(100).into_bytes());
    let encoded =
        |coding: &str, body: &[u8]| vec![Read, send(ok(&format!("Content-Encoding: {coding}\r\n"), body))];
    let zeros = vec![0; 32 << 20];
    vec![
        // Silence and resets at every stage.
        ("reset before the request", vec![Reset], "reset|closed|connect_failed"),
        ("close before the request", vec![], "closed|reset"),
        ("silence after the request", vec![Read, Hold], "first_byte_timeout"),
        ("reset after the request", vec![Read, Reset], "reset"),
        ("close after the request", vec![Read], "closed"),
        ("silence within the status line", vec![Read, send("HTTP/1.1 20"), Hold], "first_byte_timeout"),
        ("close within the status line", vec![Read, send("HTTP/1.1 20")], "closed"),
        (
            "silence within the head",
            vec![Read, send("HTTP/1.1 200 OK\r\nA: b\r\n"), Hold],
            "first_byte_timeout",
        ),
        ("reset within the head", vec![Read, send("HTTP/1.1 200 OK\r\nA: b\r\n"), Reset], "reset"),
        ("close within the head", vec![Read, send("HTTP/1.1 200 OK\r\nA: b\r\n")], "closed"),
        (
            "silence after the head",
            vec![Read, head("Content-Length: 5\r\n"), Hold],
            "200 truncated=idle_time",
        ),
        (
            "silence within the body",
            vec![Read, head("Content-Length: 5\r\n"), send("abc"), Hold],
            "200 truncated=idle_time",
        ),
        (
            "reset within the body",
            vec![Read, head("Content-Length: 5\r\n"), send("abc"), Reset],
            "200 truncated=length",
        ),
        (
            "close within the body",
            vec![Read, head("Content-Length: 5\r\n"), send("abc")],
            "200 truncated=length",
        ),
        (
            "silence within chunks",
            vec![Read, head("Transfer-Encoding: chunked\r\n"), send("3\r\nabc\r\n"), Hold],
            "200 truncated=idle_time",
        ),
        (
            "close within chunks",
            vec![Read, head("Transfer-Encoding: chunked\r\n"), send("3\r\nabc\r\n")],
            "200 truncated=length",
        ),
        // Slow.
        (
            "a head byte by byte",
            vec![Read, Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".repeat(9), slow)],
            "first_byte_timeout",
        ),
        (
            "a body byte by byte",
            vec![Read, head("Content-Length: 999\r\n"), Drip(vec![b'x'; 999], slow)],
            "200 truncated=rate",
        ),
        (
            "chunks byte by byte",
            vec![Read, head("Transfer-Encoding: chunked\r\n"), Drip(b"1\r\nx\r\n".repeat(99), slow / 3)],
            "200 truncated=rate",
        ),
        (
            "chunks without end and without bytes",
            vec![Read, head("Transfer-Encoding: chunked\r\n"), send("1;"), Endless(b"extension".to_vec())],
            "200 truncated=chunks|200 truncated=idle_time",
        ),
        // Endless.
        ("a status line without end", vec![Read, send("HTTP/1.1 200 "), endless("OK")], "header_bytes"),
        (
            "headers without end",
            vec![Read, send("HTTP/1.1 200 OK\r\n"), endless("X-Name: value of it\r\n")],
            "header_count",
        ),
        ("one header without end", vec![Read, send("HTTP/1.1 200 OK\r\nA: "), endless("b")], "header_bytes"),
        (
            "too many headers",
            vec![Read, send(format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(101)))],
            "header_count",
        ),
        (
            "a folded header without end",
            vec![Read, send("HTTP/1.1 200 OK\r\nA: b\r\n"), endless(" c\r\n")],
            "header_bytes",
        ),
        ("empty lines without end", vec![Read, endless("\r\n")], "header_bytes"),
        ("a body without end", vec![Read, head(""), endless("x")], "200 truncated=encoded_bytes"),
        (
            "chunks without end",
            vec![Read, head("Transfer-Encoding: chunked\r\n"), endless("5\r\nhello\r\n")],
            "200 truncated=encoded_bytes",
        ),
        (
            "trailers without end",
            vec![
                Read,
                head("Transfer-Encoding: chunked\r\n"),
                send("1\r\nx\r\n0\r\n"),
                endless("X-Name: value of it\r\n"),
            ],
            "200 truncated=chunks",
        ),
        (
            "a body longer than the cap",
            vec![Read, send(ok("", vec![b'x'; (1 << 20) + 1]))],
            "200 truncated=encoded_bytes",
        ),
        ("a storm of 100", vec![Read, endless("HTTP/1.1 100 Continue\r\n\r\n")], "informational_flood"),
        (
            "a storm of 103",
            vec![Read, endless("HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n")],
            "informational_flood",
        ),
        (
            "eleven times 102",
            vec![Read, send("HTTP/1.1 102 Processing\r\n\r\n".repeat(11)), send(ok("", "x"))],
            "informational_flood",
        ),
        (
            "slowly more 102",
            vec![Read, Drip(b"HTTP/1.1 102 Processing\r\n\r\n".repeat(50), Duration::from_millis(3))],
            "first_byte_timeout",
        ),
        // Wrong.
        ("a length that is too short", vec![Read, head("Content-Length: 3\r\n"), send("abcdef")], "200"),
        (
            "lengths that differ",
            vec![Read, head("Content-Length: 3\r\nContent-Length: 5\r\n"), send("abc")],
            "bad_response",
        ),
        ("a list of lengths", vec![Read, head("Content-Length: 3, 5\r\n"), send("abc")], "bad_response"),
        ("a negative length", vec![Read, head("Content-Length: -1\r\n"), send("abc")], "bad_response"),
        (
            "a length beyond all",
            vec![Read, head("Content-Length: 99999999999999999999999\r\n"), send("abc")],
            "bad_response",
        ),
        (
            "the largest length",
            vec![Read, head("Content-Length: 18446744073709551615\r\n"), send("abc")],
            "bad_response",
        ),
        (
            "a large length",
            vec![Read, head("Content-Length: 9223372036854775807\r\n"), send("abc")],
            "200 truncated=length",
        ),
        (
            "chunks and a length",
            vec![
                Read,
                head("Content-Length: 30\r\nTransfer-Encoding: chunked\r\n"),
                send("1\r\nx\r\n0\r\n\r\n"),
            ],
            "200",
        ),
        (
            "chunks that are none",
            vec![Read, head("Transfer-Encoding: chunked\r\n"), send("hello")],
            "200 truncated=chunks",
        ),
        (
            "a chunk larger than all",
            vec![Read, head("Transfer-Encoding: chunked\r\n"), send("fffffffffffffffff\r\nx")],
            "200 truncated=chunks",
        ),
        (
            "a chunk that does not end",
            vec![Read, head("Transfer-Encoding: chunked\r\n"), send("1\r\nxx\r\n0\r\n\r\n")],
            "200 truncated=chunks",
        ),
        ("chunks inside of something", vec![Read, head("Transfer-Encoding: gzip\r\n"), send("abc")], "200"),
        ("no HTTP", vec![Read, send("220 smtp.example ESMTP\r\n")], "bad_response"),
        ("SSH", vec![send("SSH-2.0-OpenSSH_9.9\r\n"), Read], "bad_response"),
        ("TLS", vec![Read, send([0x15, 3, 1, 0, 2, 2, 80])], "bad_response"),
        ("zeros", vec![Read, send([0; 4096])], "bad_response"),
        ("HTTP/0.9", vec![Read, send("<html>hello</html>")], "bad_response"),
        (
            "HTTP/2 out of nowhere",
            vec![Read, send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")],
            "bad_response",
        ),
        ("a status of four digits", vec![Read, send("HTTP/1.1 2000 OK\r\n\r\n")], "bad_response"),
        ("status 999", vec![Read, send(response("999 Go away", "", "x"))], "999"),
        (
            "status 101",
            vec![
                Read,
                send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
                Hold,
            ],
            "upgrade",
        ),
        (
            "broken headers",
            vec![Read, send("HTTP/1.1 200 OK\r\nno colon\r\nA B: c\r\nContent-Length: 1\r\n\r\nx")],
            "200",
        ),
        ("a zero in a header", vec![Read, send("HTTP/1.1 200 OK\r\nA\0B: c\r\n\r\n")], "bad_response"),
        // Bombs.
        ("a gzip bomb", encoded("gzip", &gzip(&zeros)), "200 truncated=ratio"),
        ("a gzip bomb in gzip", encoded("gzip, gzip", &gzip(&gzip(&zeros))), "200 truncated=ratio"),
        ("a brotli bomb", encoded("br", BROTLI_BOMB), "200 truncated=ratio"),
        ("a zstd bomb", encoded("zstd", &zstd_bomb()), "200 truncated=ratio"),
        (
            "a window of 2 GiB",
            encoded("zstd", &[0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 1, 0, 0]),
            "200 fault=window",
        ),
        ("too many codings", encoded("gzip, gzip, gzip", b"x"), "200 fault=layers"),
        ("gzip that is none", encoded("gzip", b"<html>"), "200 fault=not_encoded"),
        ("gzip that ends early", encoded("gzip", &gzip(b"hello")[..12]), "200 fault=unfinished"),
        ("an unknown coding", encoded("rot13", b"uryyb"), "200 fault=unknown"),
    ]
}

/// Fetches from a healthy host again and again until it is told to stop. Answers how long each took.
pub(crate) async fn neighbour(fetcher: Fetcher, server: Arc<Server>, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let mut times = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let fetched = fetcher.fetch(&page(&server, "/")).await;
        assert_eq!(outcome(&fetched), "200", "the healthy host: {:?}", fetched.error);
        times.push(fetched.times.total);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    times
}

/// The healthy host was fetched from all the time, and soon. A machine that is busy with something else may stall a few fetches.
#[track_caller]
pub(crate) fn assert_unharmed(mut times: Vec<Duration>) {
    times.sort();
    let (median, longest) = (times[times.len() / 2], times[times.len() - 1]);
    let most = times[times.len() * 9 / 10];
    let told = format!("{} rounds: {median:?}, nine in ten {most:?}, all {longest:?}", times.len());
    assert!(times.len() > 10 && longest < Duration::from_secs(2), "{told}");
    assert!(median < Duration::from_millis(50) && most < Duration::from_millis(300), "{told}");
}

#[tokio::test]
async fn limits_without_end_do_not_panic() {
    let server = healthy("fine").await;
    let mut options = options();
    options.limits.first_byte_timeout = Duration::MAX;
    options.limits.idle_timeout = Duration::MAX;
    options.limits.total_timeout = Duration::MAX;
    options.limits.rate_window = Duration::MAX;
    options.pool.idle_timeout = Duration::MAX;
    options.pool.lifetime = Duration::MAX;
    options.address_pace.concurrency_max = 1;
    options.address_pace.wait_max = Duration::MAX;
    let fetcher = Fetcher::new(options).unwrap();
    for _ in 0..2 {
        assert_eq!(outcome(&fetcher.fetch(&page(&server, "/")).await), "200");
    }
}

/// All cases at once, which is also what a crawl is like.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hostile_server_gets_the_result_it_should_and_harms_nobody_else() {
    let fetcher = Fetcher::new(options()).unwrap();
    // Bombs take a while to make, which is nobody's harm.
    let cases = cases();
    let healthy = Arc::new(healthy("fine").await);
    let stop = Arc::new(AtomicBool::new(false));
    let neighbour = tokio::spawn(neighbour(fetcher.clone(), Arc::clone(&healthy), Arc::clone(&stop)));
    let limits = fetcher.options().limits;
    let all = cases.into_iter().map(|(name, steps, expected)| {
        let fetcher = fetcher.clone();
        tokio::spawn(async move {
            let server = scripted(steps).await;
            let started = Instant::now();
            let fetched = fetcher.fetch(&page(&server, "/")).await;
            (name, expected, outcome(&fetched), started.elapsed(), fetched)
        })
    });
    let mut wrong = Vec::new();
    for ended in futures_util::future::join_all(all).await {
        let (name, expected, outcome, took, fetched) = ended.unwrap();
        if expected.split('|').all(|expected| outcome != expected) {
            wrong.push(format!("{name}: {outcome}, not {expected} ({:?})", fetched.error));
        }
        assert!(took < limits.total_timeout + Duration::from_secs(2), "{name} took {took:?}");
        assert!(fetched.body.len() <= limits.decoded_bytes_max, "{name} has {} bytes", fetched.body.len());
    }
    stop.store(true, Ordering::SeqCst);
    let times = neighbour.await.unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_unharmed(times);
    assert_eq!(fetcher.idle_connections(), 1, "only the healthy connection is kept");
}

/// What it says is there before the request went out, or after: that must not matter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_speaks_first_does_not_speak_http_however_early_it_is_heard() {
    let fetcher = Fetcher::new(options()).unwrap();
    for _ in 0..30 {
        let all = (0..20).map(|_| {
            let fetcher = fetcher.clone();
            tokio::spawn(async move {
                let server = scripted(vec![send("SSH-2.0-OpenSSH_9.9\r\n"), Step::Read]).await;
                fetcher.fetch(&page(&server, "/")).await
            })
        });
        for fetched in futures_util::future::join_all(all).await {
            let fetched = fetched.unwrap();
            assert_eq!(outcome(&fetched), "bad_response", "{:?}", fetched.error);
        }
    }
}

#[tokio::test]
async fn what_came_before_the_trouble_is_kept() {
    for (steps, expected) in [
        (vec![Step::Read, head("Content-Length: 9\r\n"), send("abc")], "abc"),
        (vec![Step::Read, head("Transfer-Encoding: chunked\r\n"), send("3\r\nabc\r\nzz")], "abc"),
        (vec![Step::Read, head("Content-Length: 9\r\n"), send("abc"), Step::Hold], "abc"),
    ] {
        let server = scripted(steps).await;
        let fetched = Fetcher::new(options()).unwrap().fetch(&page(&server, "/")).await;
        assert_eq!(fetched.body, expected);
        assert!(fetched.truncated.is_some());
    }
}

#[tokio::test]
async fn the_whole_fetch_has_an_end_even_if_every_step_is_in_time() {
    let mut options = options();
    options.limits.rate_min_bytes_per_s = 0;
    options.limits.total_timeout = Duration::from_millis(700);
    let drip = Step::Drip(vec![b'x'; 1000], Duration::from_millis(50));
    let server = scripted(vec![Step::Read, head("Content-Length: 1000\r\n"), drip]).await;
    let fetched = Fetcher::new(options).unwrap().fetch(&page(&server, "/")).await;
    assert_eq!(outcome(&fetched), "200 truncated=total_time");
    assert!(fetched.times.total < Duration::from_millis(2000), "{:?}", fetched.times.total);
}

#[tokio::test]
async fn a_fetch_that_is_given_up_leaves_nothing_behind() {
    let server = answering(|_| response("200 OK", "", "x")).await;
    let silent = scripted(vec![Step::Read, Step::Hold]).await;
    let fetcher = Fetcher::new(options()).unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(50), fetcher.fetch(&page(&silent, "/"))).await;
    assert!(given_up.is_err());
    assert_eq!(outcome(&fetcher.fetch(&page(&server, "/")).await), "200");
    assert_eq!(fetcher.idle_connections(), 1);
}
