//! Frames of HTTP/2 by hand, for what no library would send.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_HEADERS: u8 = 4;

/// Who does not read for so long has stopped reading.
const STALLED: Duration = Duration::from_millis(500);

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The headers of a call, each as a literal that nobody remembers.
pub(super) fn headers(path: &str) -> Vec<u8> {
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", "localhost"),
        (":path", path),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    fields.iter().flat_map(|(name, value)| literal(name, value)).collect()
}

pub(super) fn literal(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
    assert!(value.len() < 127, "its length is one byte");
    [vec![0], text(name), text(value)].concat()
}

/// How a flood was stopped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The other side took all of it.
    Not,
    /// The other side has hung up.
    Closed,
    /// The other side reads no more.
    Stalled,
}

/// Sends so many floods of frames on one connection, and never reads. The connection is open as long as what is returned.
pub(super) async fn flood(
    address: SocketAddr,
    count: u32,
    frames: impl Fn(u32) -> Vec<u8>,
) -> (Stopped, TcpStream) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    begin.extend(frame(SETTINGS, 0, 0, &[]));
    stream.write_all(&begin).await.unwrap();
    for chunk in 0..count.div_ceil(100) {
        let bytes: Vec<u8> = (chunk * 100..((chunk + 1) * 100).min(count)).flat_map(&frames).collect();
        match tokio::time::timeout(STALLED, stream.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return (Stopped::Closed, stream),
            Err(_) => return (Stopped::Stalled, stream),
        }
    }
    (Stopped::Not, stream)
}
