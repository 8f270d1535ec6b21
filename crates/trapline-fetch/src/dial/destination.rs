//! Where a connection should lead.
//!
//! A host comes from a parsed URL, in which every spelling of an address has become an address.

use std::fmt;

use url::{Host, Url};

use crate::dial_error::{DialError, DialErrorKind};
use crate::proxy::Proxy;
use crate::tls::Offer;

/// Where a connection should lead, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Whether to speak TLS.
    pub tls: bool,
    /// The host, as it stands in a parsed URL.
    pub host: Host<String>,
    /// The port.
    pub port: u16,
    /// Accepts a wrong certificate, and tells what is wrong with it. Also set by the dialer's `lenient_tls_hosts`.
    pub lenient_tls: bool,
    /// Which versions of HTTP are offered in TLS.
    pub offer: Offer,
    /// Through which proxy.
    pub route: Route,
}

/// Through which proxy a connection goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Route {
    /// The dialer's, if it has one.
    #[default]
    Usual,
    /// None.
    Direct,
    /// This one.
    Through(Proxy),
}

impl Destination {
    /// The destination of an `http:` or `https:` URL; other schemes are refused.
    ///
    /// The URL should come from `trapline_core::parse_url`.
    pub fn of_url(url: &Url) -> Result<Self, DialError> {
        let refuse = |what: &str| Err(DialError::new(DialErrorKind::SchemeRefused, what));
        let (tls, usual_port) = match url.scheme() {
            "http" => (false, 80),
            "https" => (true, 443),
            other => return refuse(&format!("URLs with the scheme {other:?} are not fetched")),
        };
        let Some(host) = url.host() else { return refuse("the URL has no host") };
        let port = url.port().unwrap_or(usual_port);
        Ok(Self {
            tls,
            host: host.to_owned(),
            port,
            lenient_tls: false,
            offer: Offer::default(),
            route: Route::default(),
        })
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
