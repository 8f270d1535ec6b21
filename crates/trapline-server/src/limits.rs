//! How much the service lets its callers take.

use std::time::Duration;

/// Each with its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message, sent or received. Defaults to 4 MiB.
    pub message_bytes: usize,
    /// Connections at a time, of each port. What comes beyond is closed at once. Defaults to 1024.
    pub connections: usize,
    /// Calls at a time on one connection. Defaults to 256.
    pub streams: u32,
    /// Bytes of one call that may have come and wait to be read. Defaults to 64 KiB.
    pub stream_window: u32,
    /// The same of all calls on a connection. It also bounds how many small messages may wait: HTTP/2 counts each of less than 256 bytes
    /// as that many against half of this, and ends the connection beyond; so it has room for a dozen calls whose windows are full of
    /// them. Defaults to 16 MiB.
    pub connection_window: u32,
    /// Bytes of all headers of a call. Defaults to 16 KiB.
    pub header_bytes: u32,
    /// How long a peer may take from connecting to its first call, TLS included. Defaults to 10 s.
    pub handshake: Duration,
    /// How long a connection may be without a call. Defaults to 10 min.
    pub idle: Duration,
    /// How often a peer with calls is asked whether it is still there. Defaults to 30 s.
    pub keepalive: Duration,
    /// How long it may take to say so. Defaults to 20 s.
    pub keepalive_timeout: Duration,
    /// How long calls may go on when the service is told to end. Defaults to 5 s.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            connections: 1024,
            streams: 256,
            stream_window: 64 << 10,
            connection_window: 16 << 20,
            header_bytes: 16 << 10,
            handshake: Duration::from_secs(10),
            idle: Duration::from_secs(600),
            keepalive: Duration::from_secs(30),
            keepalive_timeout: Duration::from_secs(20),
            grace: Duration::from_secs(5),
        }
    }
}
