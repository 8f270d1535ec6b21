//! Callers that do what none should, over real sockets: whatever they send or leave out, they are answered with a status that says what was
//! wrong, or are hung up on, and another client's calls go on meanwhile.
#![allow(clippy::unwrap_used, reason = "helpers are parts of the tests")]

mod bystander;
mod caller;
mod frames;
mod messages;

use std::time::Duration;

use http::{Method, Request, StatusCode};
use hyper::body::Bytes;
use prost::Message;
use prost::encoding::encode_varint;
use prost_types::field_descriptor_proto::Type;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;
use trapline_server::proto::urlfrontier as pb;
use trapline_server::proto::urlfrontier::url_frontier_client::UrlFrontierClient;
use trapline_server::proto::v1;
use trapline_server::proto::v1::frontier_client::FrontierClient;
use trapline_server::{Limits, Options};

use crate::serving::{Running, options};
use bystander::{Bystander, create};
use caller::{Answer, Caller, framed, request};
use frames::{Stopped, flood, frame, headers};
use messages::Protos;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

const MILLION: usize = 1_000_000;

/// Peers that are gone are found out soon.
fn watchful() -> Options {
    let limits = Limits {
        keepalive: Duration::from_millis(300),
        keepalive_timeout: Duration::from_millis(1500),
        ..Limits::default()
    };
    Options { limits, ..options() }
}

/// The value of a metric.
async fn metric(running: &Running, name: &str) -> u64 {
    let metrics = running.get("/metrics", "").await;
    let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name} is not in {metrics}")).parse().unwrap()
}

async fn connections(running: &Running) -> u64 {
    metric(running, "trapline_connections{port=\"grpc\"}").await
}

/// Waits until so many connections are left.
async fn until_connections(running: &Running, expected: u64) {
    let waiting = async {
        while connections(running).await != expected {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.expect("connections end");
}

/// Whether a sentence names a field, which Rust may write otherwise than the protos do.
fn names(sentence: &str, field: &str) -> bool {
    let plain = |text: &str| text.to_lowercase().replace('_', "");
    plain(sentence).contains(&plain(field))
}

/// A message of a million parts: `before` is what stands in front of them.
fn million(before: &[u8], part: &[u8]) -> Vec<u8> {
    framed(&[before, &part.repeat(MILLION)].concat())
}

/// A field of a message.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut begin = vec![number << 3 | 2];
    encode_varint(value.len() as u64, &mut begin);
    [&begin, value].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_things_at_once_are_refused_with_how_many_are_taken() {
    let limits = Limits { message_bytes: 64 << 20, ..Limits::default() };
    let running = Running::start(Options { limits, ..options() }).await;
    let mut bystander = Bystander::of(&running).await;
    let mut caller = Caller::connect(running.grpc).await;
    let bare = v1::Candidate {
        request: Some(v1::Request { url: "http://a.test/".to_owned(), ..Default::default() }),
        ..Default::default()
    };
    let info = pb::UrlInfo { url: "http://a.test/".to_owned(), ..Default::default() };
    let crawl = field(1, b"bystander");
    let links = [&crawl[..], &field(2, &field(9, &[]).repeat(MILLION))].concat();
    let records = field(6, &field(10, &field(1, &[]).repeat(MILLION)));
    for (path, body, what) in [
        ("/trapline.v1.Frontier/Admit", million(&crawl, &field(2, &bare.encode_to_vec())), "candidates"),
        ("/trapline.v1.Frontier/Admit", million(&crawl, &field(2, &[])), "candidates"),
        ("/trapline.v1.Frontier/AdmitStream", million(&crawl, &field(2, &[])), "candidates"),
        ("/trapline.v1.Frontier/Settle", million(&crawl, &field(2, &[])), "settlements"),
        ("/trapline.v1.Frontier/Settle", framed(&links), "links"),
        ("/trapline.v1.Frontier/Steer", framed(&[crawl.clone(), records].concat()), "rows"),
        (
            "/urlfrontier.URLFrontier/PutDiscovered",
            million(&field(1, b"batch"), &field(2, &info.encode_to_vec())),
            "items",
        ),
        ("/trapline.v1.Crawler/SubmitUrls", million(&[], &field(1, b"http://a.test/")), "URLs"),
        ("/trapline.v1.Crawler/ForceRecrawl", million(&[], &field(2, b"a.test")), "hosts"),
    ] {
        let (answer, ()) = tokio::join!(caller.call(path, body), bystander.goes_on(20));
        assert_eq!(answer.code, Some(Code::InvalidArgument), "{path}: {answer:?}");
        assert!(answer.message.contains(what), "{path}: {answer:?}");
        assert!(answer.message.contains("nothing was done: send"), "{path}: {answer:?}");
    }
    // Those of a stream are taken one after another, however many.
    let mut putting = UrlFrontierClient::new(running.channel().await);
    let items = (0..20_000).map(|_| pb::UrlItem::default());
    let mut acks = putting.put_ur_ls(tokio_stream::iter(items)).await.unwrap().into_inner();
    let mut count = 0;
    while acks.message().await.unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 20_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_no_text_is_refused_in_every_field_of_every_call() {
    let running = Running::start(options()).await;
    let mut bystander = Bystander::of(&running).await;
    let mut caller = Caller::connect(running.grpc).await;
    let wrong = Protos::read().with_each(Type::String, &[2, 0xff, 0xfe]);
    assert!(wrong.len() > 100, "{}", wrong.len());
    for one in wrong {
        let (path, place) = (&one.path, &one.place);
        let answer = caller.call(path, framed(&one.message)).await;
        assert_eq!(answer.code, Some(Code::InvalidArgument), "{path} {place:?}: {answer:?}");
        assert!(answer.message.contains("not UTF-8"), "{path} {place:?}: {answer:?}");
        let is_named = names(&answer.message, place.last().unwrap());
        assert!(is_named, "it says where: {path} {place:?}: {answer:?}");
    }
    bystander.goes_on(20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_stand_for_nothing_are_refused_in_every_call_that_has_an_enum() {
    let running = Running::start(Options { crawler: Some(Default::default()), ..options() }).await;
    let mut bystander = Bystander::of(&running).await;
    let mut caller = Caller::connect(running.grpc).await;
    // As it is written, a negative number has ten bytes.
    let minus_one = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    for value in [&[77][..], &minus_one] {
        let wrong = Protos::read().with_each(Type::Enum, value);
        assert!(wrong.len() >= 4, "{}", wrong.len());
        for one in wrong {
            let (path, place) = (&one.path, &one.place);
            let answer = caller.call(path, framed(&one.message)).await;
            assert_eq!(answer.code, Some(Code::InvalidArgument), "{path} {place:?}: {answer:?}");
            let is_named = names(&answer.message, place.last().unwrap());
            assert!(is_named, "it says where: {path} {place:?}: {answer:?}");
        }
    }
    bystander.goes_on(20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_refused_by_every_method() {
    let running = Running::start(options()).await;
    let mut bystander = Bystander::of(&running).await;
    let mut caller = Caller::connect(running.grpc).await;
    let garbage = framed(&[0xff; 40]);
    // Field 1, of which forty bytes are announced.
    let truncated = framed(&[0x0a, 40, 1, 2, 3]);
    let unfinished = framed(&[0x0a, 0])[..6].to_vec();
    let too_long = [&[0][..], &u32::MAX.to_be_bytes()].concat();
    let compressed = [&[1][..], &framed(&[])[1..]].concat();
    let odd = [&[7][..], &framed(&[])[1..]].concat();
    for method in &Protos::read().methods {
        let path = &method.path;
        for (body, expected, words) in [
            (&garbage, Code::InvalidArgument, "cannot be read"),
            (&truncated, Code::InvalidArgument, "cannot be read"),
            (&too_long, Code::OutOfRange, "the limit is"),
            (&compressed, Code::Internal, "compress"),
            (&odd, Code::Internal, "compress"),
            (&unfinished, Code::Internal, "EOF"),
        ] {
            let answer = caller.call(path, body.clone()).await;
            assert_eq!(answer.code, Some(expected), "{path} {body:?}: {answer:?}");
            assert!(answer.message.contains(words), "{path} {body:?}: {answer:?}");
        }
        let silent = caller.call(path, Vec::new()).await;
        let expected = if method.hears_streams { Code::Ok } else { Code::Internal };
        assert_eq!(silent.code, Some(expected), "{path}: {silent:?}");
    }
    bystander.goes_on(20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_another_kind_and_to_nowhere_are_told_so() {
    let running = Running::start(options()).await;
    let mut bystander = Bystander::of(&running).await;
    let mut caller = Caller::connect(running.grpc).await;
    let stats = "/trapline.v1.Frontier/Now";
    for kind in [None, Some("text/html"), Some("application/json"), Some("application/grpc-web")] {
        let mut request: Request<()> = request(stats);
        match kind {
            None => drop(request.headers_mut().remove("content-type")),
            Some(kind) => drop(request.headers_mut().insert("content-type", kind.parse().unwrap())),
        }
        let answer = caller.call_with(request, framed(&[])).await;
        let refused = Answer { http: StatusCode::UNSUPPORTED_MEDIA_TYPE, code: None, message: String::new() };
        assert_eq!(answer, refused, "{kind:?}");
    }
    for path in [
        "/",
        "/trapline.v1.Frontier/Nothing",
        "/trapline.v1.Frontier",
        "/no.Service/Now",
        "/healthz",
        "/x?y#z",
    ] {
        let answer = caller.call(path, framed(&[])).await;
        assert_eq!((answer.http, answer.code), (StatusCode::OK, Some(Code::Unimplemented)), "{path}");
    }
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let mut request = request(stats);
        *request.method_mut() = method.clone();
        let answer = caller.call_with(request, framed(&[])).await;
        assert_eq!(answer.http, StatusCode::METHOD_NOT_ALLOWED, "{method}: {answer:?}");
    }
    assert_eq!(caller.call(stats, framed(&[])).await.code, Some(Code::Ok));
    bystander.goes_on(20).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_http2_is_hung_up_on() {
    let limits = Limits { handshake: Duration::from_millis(300), ..Limits::default() };
    let running = Running::start(Options { limits, ..options() }).await;
    let mut bystander = Bystander::of(&running).await;
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for said in [
        &b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3],
        &[0; 1000],
        &[0xff; 100_000],
        &preface[..10],
        preface,
        &[&preface[..], &[0xff; 1000]].concat(),
        // A frame of as many bytes as can be written down.
        &[&preface[..], &frame(frames::SETTINGS, 0, 0, &[]), &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]].concat(),
    ] {
        let mut stream = TcpStream::connect(running.grpc).await.unwrap();
        // It may have heard enough before all is said.
        let _ = stream.write_all(said).await;
        let ended = tokio::time::timeout(LONG, stream.read_to_end(&mut Vec::new())).await;
        assert!(ended.is_ok(), "{said:?}");
        bystander.goes_on(5).await;
    }
    assert_eq!(connections(&running).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_say_nothing_cost_nobody_anything_and_end_when_their_callers_vanish() {
    const CALLERS: usize = 4;
    let running = Running::start(watchful()).await;
    let mut bystander = Bystander::of(&running).await;
    let mut frontier = FrontierClient::new(running.channel().await);
    create(&mut frontier, "waiting").await;
    let wait = v1::ClaimRequest {
        crawl: Some("waiting".to_owned()),
        urls: 1,
        wait_ms: 600_000,
        ..Default::default()
    };
    let wait = Bytes::from(framed(&wait.encode_to_vec()));
    let mut callers = Vec::new();
    let mut calls = Vec::new();
    for _ in 0..CALLERS {
        let mut caller = Caller::connect(running.grpc).await;
        for _ in 0..40 {
            for path in [
                "/urlfrontier.URLFrontier/PutURLs",
                "/urlfrontier.URLFrontier/PutDiscovered",
                "/trapline.v1.Frontier/AdmitStream",
                "/trapline.v1.Frontier/SettleStream",
                // Of a message of four megabytes only the length.
                "/trapline.v1.Frontier/Admit",
            ] {
                let (answer, mut sending) = caller.open(path).await;
                if path.ends_with("Admit") {
                    sending.send_data(Bytes::from_static(&[0, 0, 63, 255, 255]), false).unwrap();
                }
                calls.push((answer, sending));
            }
            let (answer, mut sending) = caller.open("/trapline.v1.Frontier/Claim").await;
            sending.send_data(wait.clone(), true).unwrap();
            calls.push((answer, sending));
        }
        callers.push(caller);
    }
    bystander.goes_on(50).await;
    assert_eq!(connections(&running).await, CALLERS as u64 + 2);
    let mut sockets = Vec::new();
    for caller in callers {
        sockets.push(caller.vanish().await);
    }
    drop(calls);
    let (mut going, waiting) = (bystander, until_connections(&running, 2));
    tokio::join!(going.goes_on(50), waiting);
    // Nobody who is gone gets what comes now.
    let admit = v1::AdmitRequest {
        crawl: "waiting".to_owned(),
        candidates: vec![v1::Candidate {
            request: Some(v1::Request { url: "http://a.test/".to_owned(), ..Default::default() }),
            ..Default::default()
        }],
        now_ms: None,
    };
    frontier.admit(admit).await.unwrap();
    let claim = v1::ClaimRequest { crawl: Some("waiting".to_owned()), urls: 1, ..Default::default() };
    assert_eq!(frontier.claim(claim).await.unwrap().into_inner().leases.len(), 1);
    drop(sockets);
}

/// After so long without room for more, nobody reads at the other side.
const STALLED: Duration = Duration::from_millis(400);

/// Sends a message again and again until the other side has had no room for more for so long, and tells how many bytes it took.
async fn pour(
    sending: &mut h2::SendStream<Bytes>,
    message: &Bytes,
    most: usize,
    patience: Duration,
) -> usize {
    let mut poured = 0;
    while poured < most {
        sending.reserve_capacity(message.len());
        while sending.capacity() < message.len() {
            let room = std::future::poll_fn(|cx| sending.poll_capacity(cx));
            match tokio::time::timeout(patience, room).await {
                Ok(Some(Ok(_))) => {}
                Ok(ended) => panic!("{ended:?}"),
                Err(_) => return poured,
            }
        }
        sending.send_data(message.clone(), false).unwrap();
        poured += message.len();
    }
    poured
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_read_what_he_is_answered_is_not_heard_any_further() {
    const MOST: usize = 64 << 20;
    let running = Running::start(options()).await;
    let mut bystander = Bystander::of(&running).await;
    // Items whose acknowledgement is as long as they are.
    let item = pb::UrlItem { id: "x".repeat(8000), ..Default::default() };
    let batch = pb::DiscoveredBatch { id: "x".repeat(8000), items: Vec::new() };
    for (path, message) in [
        ("/urlfrontier.URLFrontier/PutURLs", item.encode_to_vec()),
        ("/urlfrontier.URLFrontier/PutDiscovered", batch.encode_to_vec()),
    ] {
        let message = Bytes::from(framed(&message));
        let mut caller = Caller::with_window(running.grpc, 65_535).await;
        let (answers, mut sending) = caller.open(path).await;
        let (poured, ()) = tokio::join!(pour(&mut sending, &message, MOST, STALLED), bystander.goes_on(50));
        println!("{path}: {poured} bytes were taken");
        assert!(poured < MOST / 4, "{path}: {poured} bytes were taken, and none of the answers read");
        bystander.goes_on(20).await;
        // Who reads again is heard again.
        let mut answers = answers.await.unwrap().into_body();
        let read = async {
            while let Some(data) = answers.data().await {
                let length = data.unwrap().len();
                answers.flow_control().release_capacity(length).unwrap();
            }
        };
        let more = async {
            let more = pour(&mut sending, &message, MOST / 4, LONG).await;
            sending.send_data(Bytes::new(), true).unwrap();
            more
        };
        let (more, ()) = tokio::join!(more, read);
        assert!(more >= MOST / 4, "{path}: {more}");
    }
}

/// Clients in Java send each small message as a frame of its own, and ten thousand ahead of their acknowledgements. Nobody takes that for
/// an attack, however long the messages have to wait.
#[tokio::test(flavor = "multi_thread")]
async fn many_small_messages_that_wait_end_no_connection() {
    const URLS: usize = 100_000;
    // As long as what is said of a short URL.
    const ID: &str = "http://h1.example/p1";
    let running = Running::start(options()).await;
    let mut caller = Caller::with_window(running.grpc, 65_535).await;
    let (answers, mut sending) = caller.open("/urlfrontier.URLFrontier/PutURLs").await;
    let item = pb::UrlItem { id: ID.to_owned(), ..Default::default() };
    let item = Bytes::from(framed(&item.encode_to_vec()));
    // Nothing is read of the answers yet, so what is sent waits as soon as these have no room any more.
    let sent = pour(&mut sending, &item, URLS * item.len(), STALLED).await / item.len();
    assert!(sent < URLS, "all was taken");
    let mut answers = answers.await.unwrap().into_body();
    let mut read = 0;
    let reading = async {
        while let Some(data) = answers.data().await {
            let length = data.unwrap().len();
            read += length;
            answers.flow_control().release_capacity(length).unwrap();
        }
    };
    let sending = async {
        let more = pour(&mut sending, &item, (URLS - sent) * item.len(), LONG).await / item.len();
        sending.send_data(Bytes::new(), true).unwrap();
        more
    };
    let (more, ()) = tokio::join!(sending, reading);
    assert_eq!(sent + more, URLS);
    let ack = pb::AckMessage { id: ID.to_owned(), status: 1 };
    assert_eq!(read, URLS * framed(&ack.encode_to_vec()).len());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_nobody_reads_are_not_made() {
    const LISTS: usize = 100;
    const URLS: usize = 50_000;
    let running = Running::start(options()).await;
    let mut bystander = Bystander::of(&running).await;
    let mut putting = UrlFrontierClient::new(running.channel().await);
    let items = |part: usize| {
        let url = |n| format!("http://{}.test/{n}", n % 100);
        let info = |n| pb::UrlInfo { url: url(n), crawl_id: "c".to_owned(), ..Default::default() };
        (part * 5000..(part + 1) * 5000).map(info).collect()
    };
    let batches =
        (0..URLS / 5000).map(move |part| pb::DiscoveredBatch { id: String::new(), items: items(part) });
    let mut acks = putting.put_discovered(tokio_stream::iter(batches)).await.unwrap().into_inner();
    while acks.message().await.unwrap().is_some() {}

    let scans = "trapline_store_calls_total{verb=\"scan\",result=\"ok\"}";
    let before = metric(&running, scans).await;
    let mut caller = Caller::with_window(running.grpc, 65_535).await;
    let list = pb::ListUrlParams { crawl_id: "c".to_owned(), size: u32::MAX, ..Default::default() };
    let list = Bytes::from(framed(&list.encode_to_vec()));
    let mut lists = Vec::new();
    for _ in 0..LISTS {
        let (answer, mut sending) = caller.open("/urlfrontier.URLFrontier/ListURLs").await;
        sending.send_data(list.clone(), true).unwrap();
        lists.push(answer);
    }
    let mut bodies = Vec::new();
    for list in lists {
        bodies.push(list.await.unwrap().into_body());
    }
    // All that is made of them without being read.
    let (mut made, mut quiet) = (0, 0);
    while made == 0 || quiet < 50 {
        let now = metric(&running, scans).await - before;
        quiet = if now == made { quiet + 1 } else { 0 };
        made = now;
    }
    bystander.goes_on(20).await;
    let whole = (LISTS * URLS / 1000) as u64;
    println!("{made} of {whole} pages were made");
    assert!(made < whole / 4, "{made} of {whole} pages were made, and none was read");
    drop(bodies);
}

#[tokio::test(flavor = "multi_thread")]
async fn floods_of_frames_harm_nobody_and_end() {
    const COUNT: u32 = 50_000;
    let running = Running::start(watchful()).await;
    let mut bystander = Bystander::of(&running).await;
    let call = headers("/trapline.v1.Frontier/Claim");
    // Streams of clients have odd numbers.
    let stream = |n: u32| 2 * n + 1;
    let begin = |n| frame(frames::HEADERS, frames::END_HEADERS, stream(n), &call);
    type Flood<'f> = (&'f str, Box<dyn Fn(u32) -> Vec<u8> + 'f>);
    let floods: [Flood<'_>; 8] = [
        ("calls, more than there may be", Box::new(begin)),
        (
            "calls that are taken back at once",
            Box::new(|n| [begin(n), frame(frames::RST_STREAM, 0, stream(n), &[0, 0, 0, 8])].concat()),
        ),
        (
            "calls that the other side has to reset",
            Box::new(|n| [begin(n), frame(frames::WINDOW_UPDATE, 0, stream(n), &[0; 4])].concat()),
        ),
        ("pings", Box::new(|n| frame(frames::PING, 0, 0, &u64::from(n).to_be_bytes()))),
        ("settings", Box::new(|_| frame(frames::SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]))),
        (
            "headers without an end",
            Box::new(|n| match n {
                0 => frame(frames::HEADERS, 0, 1, &call),
                _ => frame(frames::CONTINUATION, 0, 1, &frames::literal("x-more", "and more")),
            }),
        ),
        (
            "data of nothing",
            Box::new(|n| match n {
                0 => begin(0),
                _ => frame(frames::DATA, 0, 1, &[]),
            }),
        ),
        ("room for one byte more", Box::new(|_| frame(frames::WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]))),
    ];
    for (what, frames) in &floods {
        let ((stopped, stream), ()) = tokio::join!(flood(running.grpc, COUNT, frames), bystander.goes_on(30));
        println!("{what}: {stopped:?}");
        bystander.goes_on(10).await;
        if stopped != Stopped::Closed {
            // It is still there, and answers nothing it is asked.
            until_connections(&running, 1).await;
        }
        drop(stream);
    }
    until_connections(&running, 1).await;
}
