//! HTTP/2 servers that do harm, written frame by frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use trapline_fetch::Fetcher;

use crate::door::Server;
use crate::hostile::{assert_unharmed, neighbour, outcome};
use crate::web::{Certificate, encrypted, healthy, leading_to, options, request};

/// A well-behaved server of HTTP/2.
pub(crate) async fn h2_server(
    certificate: &Certificate,
    answer: impl Fn(&http::Request<h2::RecvStream>) -> (http::response::Builder, String) + Send + Sync + 'static,
) -> Server {
    let answer = Arc::new(answer);
    encrypted(certificate, &[b"h2"], move |stream| {
        let answer = Arc::clone(&answer);
        async move {
            let Ok(mut connection) = h2::server::handshake(stream).await else { return };
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                let (head, body) = answer(&request);
                if let Ok(mut stream) = respond.send_response(head.body(()).unwrap(), false) {
                    let _ = stream.send_data(body.into(), true);
                }
            }
        }
    })
    .await
}

/// No flood gets that far.
const PATIENCE: Duration = Duration::from_secs(30);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200` and `:status: 100` for the header compression.
const STATUS_200: &[u8] = &[0x88];
const STATUS_100: &[u8] = &[0x08, 0x03, b'1', b'0', b'0'];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend_from_slice(&[kind, flags]);
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// A header that no table knows, as long as this.
fn header(name: &str, bytes: usize) -> Vec<u8> {
    let mut block = vec![0, u8::try_from(name.len()).unwrap()];
    block.extend_from_slice(name.as_bytes());
    // A length in seven bits, and what is left over in groups of seven.
    let mut rest = bytes.checked_sub(127).unwrap();
    block.push(127);
    while rest >= 128 {
        block.push(u8::try_from(rest % 128).unwrap() | 128);
        rest /= 128;
    }
    block.push(u8::try_from(rest).unwrap());
    block.extend(std::iter::repeat_n(b'x', bytes));
    block
}

/// What a server does once it has seen a request.
pub(crate) struct Flood {
    pub(crate) name: &'static str,
    once: Vec<u8>,
    again_and_again: Vec<u8>,
    /// One of these is what comes of it.
    expected: &'static [&'static str],
}

pub(crate) fn floods() -> Vec<Flood> {
    let flood = |name, once: Vec<u8>, again_and_again: Vec<u8>, expected| Flood {
        name,
        once,
        again_and_again,
        expected,
    };
    let head = frame(HEADERS, END_HEADERS, 1, STATUS_200);
    let nothing = Vec::new;
    vec![
        flood("silence", nothing(), nothing(), &["first_byte_timeout"]),
        flood("silence after the head", head.clone(), nothing(), &["200 truncated=idle_time"]),
        flood("pings", nothing(), frame(PING, 0, 0, &[0; 8]), &["h2_flood"]),
        flood("settings", nothing(), frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9]), &["h2_flood"]),
        flood("empty data", head.clone(), frame(DATA, 0, 1, b""), &["200 truncated=stream"]),
        flood(
            "data that is all padding",
            head.clone(),
            frame(DATA, 8, 1, &[255; 256]),
            &["200 truncated=stream"],
        ),
        flood(
            "a body without end",
            head.clone(),
            frame(DATA, 0, 1, &[b'x'; 16_000]),
            &["200 truncated=encoded_bytes", "200 truncated=stream"],
        ),
        flood(
            "continuations",
            frame(HEADERS, 0, 1, STATUS_200),
            frame(CONTINUATION, 0, 1, &header("x-a", 1000)),
            &["h2_protocol"],
        ),
        flood(
            "empty continuations",
            frame(HEADERS, 0, 1, STATUS_200),
            frame(CONTINUATION, 0, 1, b""),
            &["h2_protocol"],
        ),
        flood(
            "a head that is too long",
            [
                frame(HEADERS, 0, 1, STATUS_200),
                frame(CONTINUATION, 0, 1, &header("x-a", 15_000)).repeat(5),
                frame(CONTINUATION, END_HEADERS, 1, b""),
            ]
            .concat(),
            nothing(),
            &["h2_protocol"],
        ),
        flood(
            "trailers without end",
            head.clone(),
            frame(HEADERS, END_HEADERS, 1, &header("x-a", 1000)),
            &["200 truncated=stream"],
        ),
        flood("informational heads", nothing(), frame(HEADERS, END_HEADERS, 1, STATUS_100), &["h2_flood"]),
        flood("a reset", frame(RST_STREAM, 0, 1, &[0, 0, 0, 2]), nothing(), &["h2_protocol"]),
        flood("a refusal", frame(RST_STREAM, 0, 1, &[0, 0, 0, 7]), nothing(), &["h2_refused"]),
        flood("resets", nothing(), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]), &["h2_protocol"]),
        flood(
            "a reset within the body",
            [head.clone(), frame(DATA, 0, 1, b"abc"), frame(RST_STREAM, 0, 1, &[0, 0, 0, 2])].concat(),
            nothing(),
            &["200 truncated=stream"],
        ),
        flood("window updates", nothing(), frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]), &["h2_flood"]),
        flood(
            "a window beyond all",
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            nothing(),
            &["h2_protocol"],
        ),
        flood(
            "a promise",
            frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x88]),
            nothing(),
            &["h2_protocol"],
        ),
        flood("goodbye", frame(GOAWAY, 0, 0, &[0; 8]), nothing(), &["closed"]),
        flood("no frames", b"HTTP/1.1 400 Bad Request\r\n\r\n".repeat(99), nothing(), &["h2_protocol"]),
        flood(
            "a head without status",
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[]),
            nothing(),
            &["h2_protocol"],
        ),
    ]
}

async fn play(mut stream: TlsStream<TcpStream>, flood: &Flood) -> std::io::Result<()> {
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    // Preface, settings, window, request: whatever has come once there was some time.
    let mut seen = [0; 4096];
    let mut all = 0;
    while all < 80 {
        all += stream.read(&mut seen).await?;
    }
    stream.write_all(&flood.once).await?;
    stream.flush().await?;
    if flood.again_and_again.is_empty() {
        return tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.map(|_| ());
    }
    let many = flood.again_and_again.repeat((16_000 / flood.again_and_again.len()).max(1));
    let (mut read, mut write) = tokio::io::split(stream);
    let reader = async move { tokio::io::copy(&mut read, &mut tokio::io::sink()).await.map(|_| ()) };
    let writer = async move {
        loop {
            write.write_all(&many).await?;
        }
    };
    futures_util::future::try_join(reader, writer).await.map(|_: ((), ())| ())
}

impl Flood {
    /// Whether it goes on for as long as anybody listens.
    pub(crate) fn is_endless(&self) -> bool {
        !self.again_and_again.is_empty()
    }

    /// A server that does this.
    pub(crate) async fn server(self, certificate: &Certificate) -> Server {
        let flood = Arc::new(self);
        encrypted(certificate, &[b"h2"], move |stream| {
            let flood = Arc::clone(&flood);
            async move {
                let _ = play(stream, &flood).await;
            }
        })
        .await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_flood_of_frames_gets_far_or_harms_anybody_else() {
    let certificate = Arc::new(Certificate::new(&["a.example"]));
    let plain = Fetcher::new(options()).unwrap();
    let healthy = Arc::new(healthy("fine").await);
    let stop = Arc::new(AtomicBool::new(false));
    let neighbour = tokio::spawn(neighbour(plain, Arc::clone(&healthy), Arc::clone(&stop)));
    // Threads of their own: what it costs to make a flood is not what it costs to bear it.
    let servers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let all = floods().into_iter().map(|flood| {
        let certificate = Arc::clone(&certificate);
        let servers = servers.handle().clone();
        tokio::spawn(async move {
            let (name, expected, is_endless) = (flood.name, flood.expected, flood.is_endless());
            let believed = certificate.believed();
            let server = servers.spawn(async move { flood.server(&certificate).await }).await.unwrap();
            let mut options = leading_to(options(), &server);
            options.dial.roots = believed;
            if is_endless {
                // Long enough for the caps on bytes to be what ends it, also on a busy machine.
                options.limits.first_byte_timeout = PATIENCE;
                options.limits.idle_timeout = PATIENCE;
                options.limits.total_timeout = PATIENCE;
            }
            let fetcher = Fetcher::new(options).unwrap();
            let started = Instant::now();
            let fetched = fetcher.fetch(&request("https://a.example/")).await;
            (name, expected, outcome(&fetched), started.elapsed(), fetched)
        })
    });
    let mut wrong = Vec::new();
    for ended in futures_util::future::join_all(all).await {
        let (name, expected, outcome, took, fetched) = ended.unwrap();
        if !expected.contains(&outcome.as_str()) {
            wrong.push(format!("{name}: {outcome}, not {expected:?} ({:?})", fetched.error));
        }
        assert!(took < PATIENCE, "{name} took {took:?}");
    }
    stop.store(true, Ordering::SeqCst);
    let times = neighbour.await.unwrap();
    servers.shutdown_background();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_unharmed(times);
}
