//! A request to a server and what came of it, as far as the crawl cares.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use url::Url;

/// What to get.
#[derive(Clone, Debug)]
pub struct WebRequest {
    /// From where.
    pub url: Url,
    /// How.
    pub method: String,
    /// More headers, in place of the usual ones of the same name.
    pub headers: Vec<(String, Vec<u8>)>,
    /// What to send.
    pub body: Vec<u8>,
    /// What the last visit called its version: the page is wanted only if it is another by now.
    pub etag: Option<String>,
    /// When that version was made, as the server wrote it.
    pub last_modified: Option<String>,
    /// Another cap on the decoded body than usual.
    pub decoded_bytes_max: Option<usize>,
}

/// What came.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The status; None if there was no response.
    pub status: Option<u16>,
    /// The headers, in order.
    pub headers: Vec<(String, Bytes)>,
    /// The body, decoded.
    pub body: Bytes,
    /// Where a redirect leads.
    pub redirect: Option<RedirectTo>,
    /// The page is as it was at the last visit.
    pub not_modified: bool,
    /// Why the body is not all there, in a word.
    pub truncated: Option<&'static str>,
    /// Who answered, as address and port.
    pub address: Option<String>,
    /// What was spoken: `HTTP/1.1`, `HTTP/2`.
    pub protocol: Option<&'static str>,
    /// How long everything took.
    pub times: ResponseTimes,
    /// The body before decoding, in bytes.
    pub encoded_bytes: u64,
    /// Request and response as they went over the wire, if whoever fetches keeps them.
    pub raw: Option<RawExchange>,
    /// Why there is no response.
    pub error: Option<ResponseError>,
}

/// A request and its response as they went over the wire, for archives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawExchange {
    /// The request, without what tells who we are: credentials and cookies.
    pub request: Bytes,
    /// The head of the response, with the empty line that ends it.
    pub head: Bytes,
    /// Its body as it came: in chunks, and with its content coding.
    pub body: Bytes,
    /// All that came is here: it was not more than is kept.
    pub complete: bool,
    /// These are the very bytes of the connection. Heads of HTTP/2 are no text, and are written anew.
    pub exact: bool,
    /// The server's own address, also where a proxy is between.
    pub server: Option<IpAddr>,
}

impl Response {
    /// The first header of this name, which is in lower case, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let first = self.headers.iter().find(|(its, _)| its.eq_ignore_ascii_case(name));
        first.and_then(|(_, value)| std::str::from_utf8(value).ok())
    }

    /// All headers of this name, which is in lower case, that are text.
    pub fn all_headers<'r>(&'r self, name: &'r str) -> impl Iterator<Item = &'r str> {
        self.headers
            .iter()
            .filter(move |(its, _)| its.eq_ignore_ascii_case(name))
            .filter_map(|(_, value)| std::str::from_utf8(value).ok())
    }
}

/// Where a redirect leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedirectTo {
    /// To a URL that could be fetched.
    Url(Url),
    /// To what cannot be, with the reason.
    Nowhere(String),
}

/// How long everything took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseTimes {
    /// Looking up the name.
    pub dns: Duration,
    /// Connecting.
    pub connect: Duration,
    /// The TLS handshake.
    pub tls: Duration,
    /// From sending the request to the first byte.
    pub first_byte: Option<Duration>,
    /// Everything.
    pub total: Duration,
}

/// Why there is no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseError {
    /// In a word, which stays as it is.
    pub kind: &'static str,
    /// For people.
    pub message: String,
    /// What to do about it.
    pub class: ErrorClass,
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// It may go better another time.
    Passing,
    /// It was refused on this side, and always will be.
    Refused,
}
