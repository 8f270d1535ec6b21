//! What came of a fetch: all that is known of it, whether or not there was a response.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use url::Url;

use crate::decode::DecodeFault;
use crate::dial::Protocol;
use crate::fetch_error::{FetchError, FetchErrorKind};
use crate::head::Headers;
use crate::tls::TlsFacts;

/// What came of a fetch.
///
/// There is a response if `status` is set; otherwise `error` says why not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fetched {
    /// The URL that was asked for last: the one of the request, but for `robots.txt`, where redirects are followed.
    pub url: Url,
    /// The address of the connection, a proxy's if there is one between. None if there was no connection.
    pub address: Option<SocketAddr>,
    /// What was spoken.
    pub protocol: Option<Protocol>,
    /// The status of the response.
    pub status: Option<u16>,
    /// The headers of the response. Of HTTP/1.1 as they came; of HTTP/2 in order, but lines of one name together.
    pub headers: Headers,
    /// The body, decoded as far as it came and could be.
    pub body: Bytes,
    /// The character set that the `Content-Type` header names, as it is written there. Nobody has looked into the body.
    pub charset: Option<String>,
    /// Where a redirect leads.
    pub redirect: Option<Redirect>,
    /// The page is as it was at the last visit (status 304 to a conditional request).
    pub not_modified: bool,
    /// How long everything took.
    pub times: FetchTimes,
    /// How long everything is.
    pub sizes: FetchSizes,
    /// Why the body is not all of it, if it is not.
    pub truncated: Option<Truncated>,
    /// What was wrong with the body's content coding.
    pub decode_fault: Option<DecodeFault>,
    /// What else was odd. A connection that saw anything odd is not used again.
    pub oddities: Vec<Oddity>,
    /// What is known of TLS; none for plain connections.
    pub tls: Option<TlsFacts>,
    /// The connection had carried another request before.
    pub reused: bool,
    /// A connection from the pool, or one that waited for its address's turn, was dead, so that the request was sent again on a new one.
    pub retried: bool,
    /// How many redirects were followed. Only for `robots.txt`.
    pub hops: u32,
    /// The response as it came, if it was to be kept.
    pub raw: Option<RawResponse>,
    /// Why there is no response.
    pub error: Option<FetchError>,
}

impl Fetched {
    pub(crate) fn new(url: Url) -> Self {
        Self {
            url,
            address: None,
            protocol: None,
            status: None,
            headers: Headers::default(),
            body: Bytes::new(),
            charset: None,
            redirect: None,
            not_modified: false,
            times: FetchTimes::default(),
            sizes: FetchSizes::default(),
            truncated: None,
            decode_fault: None,
            oddities: Vec::new(),
            tls: None,
            reused: false,
            retried: false,
            hops: 0,
            raw: None,
            error: None,
        }
    }

    /// Why there is no response, for code.
    pub fn error_kind(&self) -> Option<FetchErrorKind> {
        self.error.as_ref().map(FetchError::kind)
    }

    /// Whether the certificate was wrong and accepted all the same.
    pub fn lenient_tls(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.verified)
    }
}

/// Where a redirect leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// To a URL that could be fetched. Whether it should be is for the caller to say: scope, robots and budget are those of
    /// the target.
    To(Url),
    /// To a URL of another scheme (`file:`, `ftp:`, `data:`, …).
    Refused(String),
    /// To nothing: the `Location` header is missing or no URL.
    Nowhere,
}

/// How long everything took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchTimes {
    /// Looking up the name. Zero on a connection that was there.
    pub dns: Duration,
    /// Connecting. Zero on a connection that was there.
    pub connect: Duration,
    /// The TLS handshake. Zero on a connection that was there.
    pub tls: Duration,
    /// Waiting because of the pace that its address is kept at.
    pub waited: Duration,
    /// From sending the request to the first byte of the response.
    pub first_byte: Option<Duration>,
    /// Everything, from the call to its end.
    pub total: Duration,
}

/// How long everything is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FetchSizes {
    /// The response head, informational ones included. For HTTP/2 what it would have been in HTTP/1.1.
    pub header_bytes: u64,
    /// The body before its content coding was undone.
    pub encoded_bytes: u64,
    /// The body after that.
    pub decoded_bytes: u64,
}

/// Why a body is not all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Truncated {
    /// It has more bytes than are taken, before decoding.
    EncodedBytes,
    /// It has more bytes than are taken, after decoding.
    DecodedBytes,
    /// It becomes too much larger by decoding.
    Ratio,
    /// The whole fetch took too long.
    TotalTime,
    /// Nothing came for too long.
    IdleTime,
    /// Too little came for too long.
    Rate,
    /// The connection ended before the body did.
    Length,
    /// The body's chunks are broken, or their trailers too long.
    Chunks,
    /// The server reset the stream, or broke the rules of HTTP/2.
    Stream,
}

impl Truncated {
    /// Its name in results, logs and metrics. Stays as it is.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EncodedBytes => "encoded_bytes",
            Self::DecodedBytes => "decoded_bytes",
            Self::Ratio => "ratio",
            Self::TotalTime => "total_time",
            Self::IdleTime => "idle_time",
            Self::Rate => "rate",
            Self::Length => "length",
            Self::Chunks => "chunks",
            Self::Stream => "stream",
        }
    }
}

impl std::fmt::Display for Truncated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something that servers should not do, and that does not keep a response from being understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Oddity {
    /// Both a `Content-Length` and a `Transfer-Encoding`. The latter counts.
    LengthAndChunks,
    /// Several `Content-Length` headers that agree.
    RepeatedLength,
    /// Bytes came after the end of the response.
    StrayBytes,
    /// Informational responses came first.
    Informational,
}

impl Oddity {
    /// Its name in results. Stays as it is.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LengthAndChunks => "length_and_chunks",
            Self::RepeatedLength => "repeated_length",
            Self::StrayBytes => "stray_bytes",
            Self::Informational => "informational",
        }
    }
}

/// A response as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawResponse {
    /// The request that it answers, as one of HTTP/1.1 and without what tells who we are: credentials and cookies.
    pub request: Bytes,
    /// The server's own address, also where a proxy is between.
    pub server: Option<IpAddr>,
    /// The head, without informational ones before it.
    pub head: Bytes,
    /// The body with its content coding and, for HTTP/1.1, with its chunks and trailers.
    pub body: Bytes,
    /// All that came is here: it was not more than is kept.
    pub complete: bool,
    /// These are the very bytes of the connection. For HTTP/2, whose heads are no text, the head is written anew, and the
    /// body is what was in the frames.
    pub exact: bool,
}
