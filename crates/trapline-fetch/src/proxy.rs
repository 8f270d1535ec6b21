//! Proxies: HTTP and SOCKS5, named by the operator.
//!
//! A proxy is reached through the same door as everything else, so its network has to be open. What it is asked to reach is looked up and judged
//! here first, and it gets the judged address wherever the protocol has room for one.

mod socks;
mod tunnel;

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use http::HeaderValue;
use percent_encoding::percent_decode_str;
use tokio::net::TcpStream;
use trapline_core::parse_url;
use url::Host;

use crate::credentials::Credentials;
use crate::dial_error::{DialError, DialErrorKind};

/// A proxy, as `http://user:password@host:port` or `socks5://user:password@host:port`.
///
/// `Debug` and `Display` show no credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    kind: ProxyKind,
    host: Host<String>,
    port: u16,
    credentials: Option<Credentials>,
    tunnel_http: bool,
}

/// The protocol that a proxy speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyKind {
    /// HTTP: `CONNECT` for `https:` URLs, whole URLs in requests for `http:` URLs.
    Http,
    /// SOCKS version 5.
    Socks5,
}

/// Why a text names no proxy. Never shows the text, because it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// It is no URL.
    #[error("the proxy is no URL: expected http://host:port or socks5://host:port")]
    NoUrl,
    /// Another scheme than `http` and `socks5`.
    #[error("proxies with the scheme {0:?} are not supported: expected http or socks5")]
    Scheme(String),
    /// `socks5h` and `socks4a` leave looking up names to the proxy.
    #[error("{0} leaves looking up names to the proxy, where no guard sees the address; use socks5")]
    RemoteNames(String),
    /// A URL with a path, a query or a fragment.
    #[error("the proxy's URL has something behind host and port")]
    Surplus,
    /// User name or password is not UTF-8, empty or longer than 255 bytes.
    #[error("the proxy's user name or password cannot be sent: it is not UTF-8, or longer than 255 bytes")]
    Credentials,
}

/// How a connection goes through a proxy.
#[derive(Debug, Clone)]
pub struct ThroughProxy {
    /// The proxy's protocol.
    pub kind: ProxyKind,
    /// Whether requests must carry the whole URL, because the proxy reads them itself. Otherwise it only
    /// passes bytes on, and the connection is like a direct one.
    pub absolute_form: bool,
    /// The `Proxy-Authorization` header that requests need then.
    pub authorization: Option<HeaderValue>,
}

impl Proxy {
    /// Asks the proxy to pass bytes on also for `http:` URLs (`CONNECT`), so that it cannot look up the name again. Many
    /// proxies allow that for port 443 only. Without effect on SOCKS, which does nothing else.
    #[must_use]
    pub fn tunnelling_http(mut self) -> Self {
        self.tunnel_http = true;
        self
    }

    /// The protocol it speaks.
    pub fn kind(&self) -> ProxyKind {
        self.kind
    }

    pub(crate) fn host(&self) -> &Host<String> {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Whether requests are written to the proxy itself, so that no bytes are passed on.
    pub(crate) fn reads_requests(&self, tls: bool) -> bool {
        self.kind == ProxyKind::Http && !tls && !self.tunnel_http
    }

    pub(crate) fn facts(&self, absolute_form: bool) -> ThroughProxy {
        let credentials = self.credentials.as_ref().filter(|_| absolute_form);
        ThroughProxy { kind: self.kind, absolute_form, authorization: credentials.map(Credentials::basic) }
    }

    /// Asks the proxy to pass bytes on to an address that the guard let through.
    pub(crate) async fn pass_on(&self, stream: &mut TcpStream, target: SocketAddr) -> Result<(), DialError> {
        match self.kind {
            ProxyKind::Http => tunnel::connect(stream, target, self.credentials.as_ref()).await,
            ProxyKind::Socks5 => socks::connect(stream, target, self.credentials.as_ref()).await,
        }
    }
}

impl FromStr for Proxy {
    type Err = ProxyError;

    fn from_str(text: &str) -> Result<Self, ProxyError> {
        let url = parse_url(text.trim(), None).ok().ok_or(ProxyError::NoUrl)?;
        let (kind, usual_port) = match url.scheme() {
            "http" => (ProxyKind::Http, 80),
            "socks5" => (ProxyKind::Socks5, 1080),
            other @ ("socks5h" | "socks4a") => return Err(ProxyError::RemoteNames(other.to_owned())),
            other => return Err(ProxyError::Scheme(other.to_owned())),
        };
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(ProxyError::Surplus);
        }
        // Hosts of schemes that the URL Standard does not call special stay as they were written; this
        // reads them as those of `http`, odd spellings of addresses included.
        let host = Host::parse(url.host_str().ok_or(ProxyError::NoUrl)?).map_err(|_| ProxyError::NoUrl)?;
        let decode = |part: &str| {
            let text = percent_decode_str(part).decode_utf8().map_err(|_| ProxyError::Credentials)?;
            if text.len() > 255 { Err(ProxyError::Credentials) } else { Ok(text.into_owned()) }
        };
        let credentials = match (url.username(), url.password()) {
            ("", None) => None,
            (user, password) => {
                let (user, password) = (decode(user)?, decode(password.unwrap_or_default())?);
                if user.is_empty() {
                    return Err(ProxyError::Credentials);
                }
                Some(Credentials::new(user, password))
            }
        };
        let port = url.port().unwrap_or(usual_port);
        Ok(Self { kind, host, port, credentials, tunnel_http: false })
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.kind {
            ProxyKind::Http => "http",
            ProxyKind::Socks5 => "socks5",
        };
        let user = if self.credentials.is_some() { "…@" } else { "" };
        write!(f, "{scheme}://{user}{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What a proxy's silence or nonsense is called. The texts are ours: a proxy's own words are not repeated.
fn failed(detail: impl Into<String>) -> DialError {
    DialError::new(DialErrorKind::ProxyFailed, detail)
}

fn broken(error: &std::io::Error) -> DialError {
    failed(format!("the connection to the proxy broke: {error}"))
}
