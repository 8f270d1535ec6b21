//! Everything that can be chosen about fetching, in one place, each with its default.

use std::time::Duration;

use http::{HeaderMap, HeaderName, header};
use trapline_core::HostPattern;
use url::Url;

use crate::address_pace::AddressPaceOptions;
use crate::cookies::CookieOptions;
use crate::credentials::Credentials;
use crate::dial::{DialOptions, DialerError, Route};
use crate::pool::PoolOptions;

/// How a fetcher fetches.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// How connections are made: addresses that may be dialled, names, TLS, proxies, time to connect. Defaults to
    /// [`DialOptions::default`].
    pub dial: DialOptions,
    /// How the fetcher introduces itself, as `product/version`. Robots rules are those of the product. Defaults to
    /// `trapline/` and the version.
    pub user_agent: String,
    /// Whom an annoyed operator of a server can turn to: a URL or a mail address, sent behind the user agent as
    /// `(+contact)`. Without it a crawl of other people's servers is impolite, and [`FetchOptions::warnings`] says so.
    /// Defaults to none.
    pub contact: Option<String>,
    /// Headers of every request, in place of the usual ones of the same name. No credentials: they would go to every
    /// server. Defaults to none but the usual `Accept` and `Accept-Encoding`.
    pub headers: HeaderMap,
    /// What is different for some hosts. Of several that match, the most exact one counts. Defaults to none.
    pub hosts: Vec<HostRule>,
    /// Credentials for origins. Defaults to none.
    pub credentials: Vec<OriginCredentials>,
    /// Keeps cookies, within these bounds, as long as the fetcher lives. Defaults to none: no cookies.
    pub cookies: Option<CookieOptions>,
    /// Caps on time and size. Defaults to [`Limits::default`].
    pub limits: Limits,
    /// How connections are used again. Defaults to [`PoolOptions::default`].
    pub pool: PoolOptions,
    /// How many bytes a second all fetches together may take, measured on bodies. A fetch that waits for it goes on
    /// having its total time. Defaults to none: as fast as it goes.
    pub bandwidth_bytes_per_s: Option<u64>,
    /// How one address is asked, whatever the hosts. Defaults to no limits.
    pub address_pace: AddressPaceOptions,
    /// Keeps the bytes of responses as they came, for archives. Costs their size in memory. Defaults to false.
    pub keep_raw: bool,
    /// Speaks HTTP/1.1 only. Defaults to false: HTTP/2 where a server offers it in TLS.
    pub http1_only: bool,
}

impl Default for FetchOptions {
    fn default() -> Self {
        Self {
            dial: DialOptions::default(),
            user_agent: concat!("trapline/", env!("CARGO_PKG_VERSION")).to_owned(),
            contact: None,
            headers: HeaderMap::new(),
            hosts: Vec::new(),
            credentials: Vec::new(),
            cookies: None,
            limits: Limits::default(),
            pool: PoolOptions::default(),
            bandwidth_bytes_per_s: None,
            address_pace: AddressPaceOptions::default(),
            keep_raw: false,
            http1_only: false,
        }
    }
}

impl FetchOptions {
    /// What an operator should be told before a crawl begins.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.contact.is_none() && !self.user_agent.contains(['@', '+']) {
            warnings.push(
                "the user agent names nobody to turn to: set a contact, a URL or a mail address, before you fetch \
                 from other people's servers"
                    .to_owned(),
            );
        }
        warnings
    }

    /// What is sent as `User-Agent`.
    pub fn user_agent_header(&self) -> String {
        match &self.contact {
            None => self.user_agent.clone(),
            Some(contact) => format!("{} (+{contact})", self.user_agent),
        }
    }
}

/// What is different for some hosts.
#[derive(Clone, Debug)]
pub struct HostRule {
    /// Which hosts.
    pub hosts: HostPattern,
    /// Another user agent, whole, without contact. Defaults to that of the fetcher.
    pub user_agent: Option<String>,
    /// More headers, in place of those of the same name. No credentials. Defaults to none.
    pub headers: HeaderMap,
    /// Another time to the end of the response head. Defaults to that of the fetcher.
    pub first_byte_timeout: Option<Duration>,
    /// Another time without a byte of the body. Defaults to that of the fetcher.
    pub idle_timeout: Option<Duration>,
    /// Another time for everything. Defaults to that of the fetcher.
    pub total_timeout: Option<Duration>,
    /// Accepts a wrong certificate. Results tell what is wrong with it, and no credentials or cookies are sent. Defaults
    /// to false.
    pub lenient_tls: bool,
    /// Through which proxy. Defaults to that of the dialer.
    pub route: Route,
    /// Speaks HTTP/1.1 only. Defaults to false.
    pub http1_only: bool,
}

impl HostRule {
    /// A rule that changes nothing yet.
    pub fn new(hosts: HostPattern) -> Self {
        Self {
            hosts,
            user_agent: None,
            headers: HeaderMap::new(),
            first_byte_timeout: None,
            idle_timeout: None,
            total_timeout: None,
            lenient_tls: false,
            route: Route::Usual,
            http1_only: false,
        }
    }
}

/// Credentials, and the only origin they are sent to.
#[derive(Clone, Debug)]
pub struct OriginCredentials {
    /// A URL of the origin: its scheme, host and port count, all three.
    pub origin: Url,
    /// User name and password.
    pub credentials: Credentials,
}

/// Caps on what a server may cost. What runs into one is a result, see [`Truncated`](crate::Truncated) and
/// [`FetchErrorKind`](crate::FetchErrorKind).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take from sending the request to the end of the response head. Defaults to 30 s.
    pub first_byte_timeout: Duration,
    /// How long a body may come without a byte. Defaults to 20 s.
    pub idle_timeout: Duration,
    /// How long a fetch may take, connecting included. Defaults to 5 min.
    pub total_timeout: Duration,
    /// How many bytes of a body must come in each `rate_window`, as bytes a second; 0 for any number. Defaults to 100.
    pub rate_min_bytes_per_s: u64,
    /// Over how long the rate is measured. Defaults to 20 s.
    pub rate_window: Duration,
    /// How many bytes the response head may have, informational ones before it included, and how many its trailers. Defaults
    /// to 64 KiB.
    pub header_bytes_max: usize,
    /// How many lines the response head may have, and how many its trailers. Defaults to 100.
    pub header_count_max: usize,
    /// How many informational responses (1xx) may come before the real one. Defaults to 10.
    pub informational_max: u32,
    /// How many bytes of a body are taken before its content coding is undone. Defaults to 16 MiB.
    pub encoded_bytes_max: u64,
    /// How many bytes of a body are taken after its content coding is undone. Defaults to 16 MiB.
    pub decoded_bytes_max: usize,
    /// How many times as long as before a body may become by decoding. Defaults to 200.
    pub ratio_max: u32,
    /// So many decoded bytes are fine whatever the ratio. Defaults to 1 MiB.
    pub ratio_free_bytes: usize,
    /// How many content codings one in another are undone. Defaults to 2.
    pub codings_max: usize,
    /// The largest window that Zstandard may ask for. Defaults to 8 MiB, what RFC 9659 lets servers use.
    pub zstd_window_bytes_max: u64,
    /// How many bytes of a response are kept as they came, with `keep_raw`. Defaults to 20 MiB.
    pub raw_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            first_byte_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(20),
            total_timeout: Duration::from_secs(300),
            rate_min_bytes_per_s: 100,
            rate_window: Duration::from_secs(20),
            header_bytes_max: 64 << 10,
            header_count_max: 100,
            informational_max: 10,
            encoded_bytes_max: 16 << 20,
            decoded_bytes_max: 16 << 20,
            ratio_max: 200,
            ratio_free_bytes: 1 << 20,
            codings_max: 2,
            zstd_window_bytes_max: 8 << 20,
            raw_bytes_max: 20 << 20,
        }
    }
}

/// Why there is no fetcher: options that cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetcherError {
    /// Of the dialer.
    #[error(transparent)]
    Dialer(#[from] DialerError),
    /// A user agent or contact with characters that no header can have.
    #[error("`{0}` cannot be sent as a user agent: use visible ASCII")]
    UserAgent(String),
    /// Credentials among headers that go to many servers.
    #[error("the header `{0}` would go to every server; give credentials with their origin instead")]
    HeaderForAll(HeaderName),
    /// A header that belongs to HTTP itself.
    #[error("the header `{0}` is set by the fetcher itself; leave it out")]
    OwnHeader(HeaderName),
    /// An origin that is none.
    #[error("`{0}` is no origin: give an http or https URL")]
    Origin(String),
}

/// Whether a header tells who somebody is.
pub(crate) fn is_secret(name: &HeaderName) -> bool {
    [header::AUTHORIZATION, header::COOKIE, header::PROXY_AUTHORIZATION].contains(name)
}

/// Whether a header is part of how messages are sent, and not of what they say.
pub(crate) fn is_own(name: &HeaderName) -> bool {
    [
        header::HOST,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::TE,
        header::TRAILER,
        header::UPGRADE,
        header::EXPECT,
        header::PROXY_AUTHORIZATION,
    ]
    .contains(name)
        || name == "keep-alive"
        || name == "proxy-connection"
        || name == "http2-settings"
}

/// Headers that may go to many servers.
pub(crate) fn check_shared_headers(headers: &HeaderMap) -> Result<(), FetcherError> {
    for name in headers.keys() {
        if is_secret(name) {
            return Err(FetcherError::HeaderForAll(name.clone()));
        }
        if is_own(name) {
            return Err(FetcherError::OwnHeader(name.clone()));
        }
    }
    Ok(())
}
