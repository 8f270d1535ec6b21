//! Why a fetch has no response.
//!
//! What ends a response early, once its head is there, is no error: see [`Truncated`](crate::Truncated).

use std::fmt;

use crate::dial_error::{DialError, DialErrorKind};

/// What went wrong, for code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// No connection came about.
    Dial(DialErrorKind),
    /// The request cannot be sent: a method, a header or a URL that HTTP has no form for.
    RequestRefused,
    /// The server's address is busy with other requests of ours for longer than a request may wait.
    AddressBusy,
    /// No complete response head came in time.
    FirstByteTimeout,
    /// The whole fetch took too long before there was a response head.
    TotalTimeout,
    /// The response head is too long.
    HeaderBytes,
    /// The response head has too many lines.
    HeaderCount,
    /// Too many informational responses came before the real one.
    InformationalFlood,
    /// What came is no HTTP response.
    BadResponse,
    /// The server closed the connection before there was a response head.
    Closed,
    /// The connection broke before there was a response head.
    Reset,
    /// The server broke the rules of HTTP/2.
    H2Protocol,
    /// The server refused this stream of an HTTP/2 connection.
    H2Refused,
    /// The server sent too much on an HTTP/2 connection that is part of no response.
    H2Flood,
    /// The server switched to another protocol, which nobody asked for.
    Upgrade,
    /// More redirects than are followed. Only for `robots.txt`; others are not followed at all.
    Redirects,
    /// A redirect leads to no `http` or `https` URL. Only for `robots.txt`.
    RedirectRefused,
}

impl FetchErrorKind {
    /// Its name in results, logs and metrics. Stays as it is.
    pub fn as_str(self) -> &'static str {
        self.texts().0
    }

    /// What anybody may read.
    pub fn message(self) -> &'static str {
        self.texts().1
    }

    fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::Dial(kind) => (kind.as_str(), kind.message()),
            Self::RequestRefused => ("request_refused", "the request has a part that HTTP has no form for"),
            Self::AddressBusy => ("address_busy", "too many requests wait for the server's address"),
            Self::FirstByteTimeout => ("first_byte_timeout", "the server did not respond in time"),
            Self::TotalTimeout => ("total_timeout", "the fetch took too long"),
            Self::HeaderBytes => ("header_bytes", "the head of the response is too long"),
            Self::HeaderCount => ("header_count", "the response has too many headers"),
            Self::InformationalFlood => ("informational_flood", "too many informational responses came"),
            Self::BadResponse => ("bad_response", "the server did not answer with HTTP"),
            Self::Closed => ("closed", "the server closed the connection without a response"),
            Self::Reset => ("reset", "the connection broke before there was a response"),
            Self::H2Protocol => ("h2_protocol", "the server broke the rules of HTTP/2"),
            Self::H2Refused => ("h2_refused", "the server refused the request before it looked at it"),
            Self::H2Flood => ("h2_flood", "the server sent too much that is part of no response"),
            Self::Upgrade => ("upgrade", "the server switched to a protocol that nobody asked for"),
            Self::Redirects => ("redirects", "there were too many redirects"),
            Self::RedirectRefused => ("redirect_refused", "a redirect leads to a URL that is not fetched"),
        }
    }
}

impl fmt::Display for FetchErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A fetch without a response.
///
/// `Display` is for anybody who may ask for a URL to be fetched, [`detail`](Self::detail) for the operator: it may name
/// addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", kind.message())]
pub struct FetchError {
    kind: FetchErrorKind,
    detail: String,
}

impl FetchError {
    pub(crate) fn new(kind: FetchErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// What went wrong, for code.
    pub fn kind(&self) -> FetchErrorKind {
        self.kind
    }

    /// What went wrong on what, for the operator.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether it was refused here, so that no packet was sent to the server.
    pub fn is_refusal(&self) -> bool {
        use DialErrorKind::{AddressRefused, PortRefused, SchemeRefused};
        matches!(
            self.kind,
            FetchErrorKind::Dial(SchemeRefused | AddressRefused | PortRefused)
                | FetchErrorKind::RequestRefused
        )
    }
}

impl From<DialError> for FetchError {
    fn from(error: DialError) -> Self {
        Self::new(FetchErrorKind::Dial(error.kind()), error.detail())
    }
}
