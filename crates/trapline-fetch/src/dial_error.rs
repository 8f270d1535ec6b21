//! Why a connection did not come about.
//!
//! Two readers, two texts. What `Display` says may be shown to anybody who may ask for a URL to be fetched; it names
//! no address and nothing that a service behind the firewall said. [`DialError::detail`] is for the operator's log.

use std::fmt;
use std::io;

use crate::guard::Refusal;

/// What went wrong, for code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DialErrorKind {
    /// The URL's scheme is neither `http` nor `https`, or it has no host.
    SchemeRefused,
    /// All addresses of the host are refused by the guard.
    AddressRefused,
    /// The port is refused by the guard.
    PortRefused,
    /// The name does not exist.
    DnsNoSuchName,
    /// The name exists, and has no address.
    DnsNoAddress,
    /// The name leads over too many other names, or in a circle.
    DnsChain,
    /// Name servers failed to answer, or answered with a failure.
    DnsFailed,
    /// Name servers did not answer in time.
    DnsTimeout,
    /// The server refused the connection.
    ConnectRefused,
    /// No route to the server.
    ConnectUnreachable,
    /// The server did not answer in time.
    ConnectTimeout,
    /// The connection failed in another way.
    ConnectFailed,
    /// The certificate is expired.
    TlsExpired,
    /// The certificate is not valid yet.
    TlsNotYetValid,
    /// The certificate is for another host.
    TlsWrongHost,
    /// The certificate is self-signed, or of an authority nobody knows.
    TlsUntrusted,
    /// The certificate was revoked.
    TlsRevoked,
    /// The server did not finish the handshake in time.
    TlsTimeout,
    /// The handshake failed in another way.
    TlsFailed,
    /// The proxy does not want to reach this server, or cannot.
    ProxyRefused,
    /// The proxy wants other credentials.
    ProxyAuthentication,
    /// The proxy did not answer in time.
    ProxyTimeout,
    /// The proxy said something else than proxies say, or hung up.
    ProxyFailed,
    /// All steps together took too long.
    DialTimeout,
}

impl DialErrorKind {
    /// All kinds, in order.
    pub const ALL: [Self; 24] = [
        Self::SchemeRefused,
        Self::AddressRefused,
        Self::PortRefused,
        Self::DnsNoSuchName,
        Self::DnsNoAddress,
        Self::DnsChain,
        Self::DnsFailed,
        Self::DnsTimeout,
        Self::ConnectRefused,
        Self::ConnectUnreachable,
        Self::ConnectTimeout,
        Self::ConnectFailed,
        Self::TlsExpired,
        Self::TlsNotYetValid,
        Self::TlsWrongHost,
        Self::TlsUntrusted,
        Self::TlsRevoked,
        Self::TlsTimeout,
        Self::TlsFailed,
        Self::ProxyRefused,
        Self::ProxyAuthentication,
        Self::ProxyTimeout,
        Self::ProxyFailed,
        Self::DialTimeout,
    ];

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
            Self::SchemeRefused => ("scheme_refused", "only http and https URLs with a host are fetched"),
            Self::AddressRefused => ("address_refused", "the host has no address that may be dialled"),
            Self::PortRefused => ("port_refused", "the port may not be dialled"),
            Self::DnsNoSuchName => ("dns_no_such_name", "the host name does not exist"),
            Self::DnsNoAddress => ("dns_no_address", "the host name has no address"),
            Self::DnsChain => ("dns_chain", "the host name leads over too many other names"),
            Self::DnsFailed => ("dns_failed", "the host name could not be looked up"),
            Self::DnsTimeout => ("dns_timeout", "the host name was not looked up in time"),
            Self::ConnectRefused => ("connect_refused", "the server refused the connection"),
            Self::ConnectUnreachable => ("connect_unreachable", "the server cannot be reached"),
            Self::ConnectTimeout => ("connect_timeout", "the server did not answer in time"),
            Self::ConnectFailed => ("connect_failed", "the connection failed"),
            Self::TlsExpired => ("tls_expired", "the server's certificate is expired"),
            Self::TlsNotYetValid => ("tls_not_yet_valid", "the server's certificate is not valid yet"),
            Self::TlsWrongHost => ("tls_wrong_host", "the server's certificate is for another host"),
            Self::TlsUntrusted => ("tls_untrusted", "the server's certificate is of no known authority"),
            Self::TlsRevoked => ("tls_revoked", "the server's certificate was revoked"),
            Self::TlsTimeout => ("tls_timeout", "the TLS handshake was not finished in time"),
            Self::TlsFailed => ("tls_failed", "the TLS handshake failed"),
            Self::ProxyRefused => ("proxy_refused", "the proxy did not connect to the server"),
            Self::ProxyAuthentication => ("proxy_authentication", "the proxy did not accept the credentials"),
            Self::ProxyTimeout => ("proxy_timeout", "the proxy did not answer in time"),
            Self::ProxyFailed => ("proxy_failed", "the proxy failed"),
            Self::DialTimeout => ("dial_timeout", "the connection was not made in time"),
        }
    }
}

/// A connection that did not come about.
///
/// `Display` is for anybody, [`detail`](Self::detail) for operators. `Debug` shows both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DialError {
    kind: DialErrorKind,
    detail: String,
}

impl DialError {
    pub(crate) fn new(kind: DialErrorKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }

    /// A failed `connect`.
    pub(crate) fn connecting(to: impl fmt::Display, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => DialErrorKind::ConnectRefused,
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::AddrNotAvailable => DialErrorKind::ConnectUnreachable,
            io::ErrorKind::TimedOut => DialErrorKind::ConnectTimeout,
            _ => DialErrorKind::ConnectFailed,
        };
        Self::new(kind, format!("cannot connect to {to}: {error}"))
    }

    /// What went wrong, for code.
    pub fn kind(&self) -> DialErrorKind {
        self.kind
    }

    /// What went wrong on what, for the operator: it may name addresses.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Whether the guard refused, so that no packet was sent to the server.
    pub fn is_refusal(&self) -> bool {
        use DialErrorKind::{AddressRefused, PortRefused, SchemeRefused};
        matches!(self.kind, SchemeRefused | AddressRefused | PortRefused)
    }

    pub(crate) fn with_note(mut self, note: &str) -> Self {
        self.detail.push_str(note);
        self
    }
}

impl From<Refusal> for DialError {
    fn from(refusal: Refusal) -> Self {
        let kind =
            if refusal.reason.is_port() { DialErrorKind::PortRefused } else { DialErrorKind::AddressRefused };
        Self::new(kind, refusal.to_string())
    }
}

impl fmt::Display for DialErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.message())
    }
}

impl std::error::Error for DialError {}
