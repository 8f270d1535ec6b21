//! Addresses by the operator's word instead of the name servers'.
//!
//! They replace a look-up, nothing more: what they say is judged by the guard as any other address.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use trapline_core::HostPattern;

/// One line of the operator's: `host=address`, `host=address:port`, `host:port=address:port`, with any pattern for names
/// as host, such as `*` or `*.example.com`.
///
/// It is for names only. A URL whose host is an address goes to that address or nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Override {
    hosts: HostPattern,
    port: Option<u16>,
    address: IpAddr,
    address_port: Option<u16>,
}

/// Why a text is no override.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no override: {reason}; expected host=address or host=address:port, such as *=127.0.0.1:8080"
)]
pub struct OverrideError {
    text: String,
    reason: String,
}

impl Override {
    /// Where a host and port lead, if this override is for them.
    pub(crate) fn answer(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let meant = self.hosts.matches(host) && self.port.is_none_or(|only| only == port);
        meant.then(|| SocketAddr::new(self.address, self.address_port.unwrap_or(port)))
    }

    /// Among several that are for a host, the most exact one counts.
    pub(crate) fn exactness(&self) -> ((usize, usize), bool) {
        (self.hosts.exactness(), self.port.is_some())
    }
}

impl FromStr for Override {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<Self, OverrideError> {
        let trouble = |reason: String| OverrideError { text: text.to_owned(), reason };
        let (host, address) =
            text.split_once('=').ok_or_else(|| trouble("it has no equals sign".to_owned()))?;
        // A pattern may have a colon too.
        let (host, port) = match host.rsplit_once(':') {
            Some(("domain", _)) | None => (host, None),
            Some((host, port)) => {
                (host, Some(port.parse().map_err(|_| trouble(format!("{port:?} is no port")))?))
            }
        };
        let hosts = host.parse().ok().filter(|hosts: &HostPattern| !hosts.is_address());
        let hosts = hosts.ok_or_else(|| trouble(format!("{host:?} is no host name")))?;
        let (address, address_port) = address_and_port(address.trim())
            .ok_or_else(|| trouble(format!("{:?} is no address", address.trim())))?;
        Ok(Self { hosts, port, address, address_port })
    }
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`.
fn address_and_port(text: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Some((address.ip(), Some(address.port())));
    }
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    match bare {
        Some(bare) => bare.parse().ok().map(|address| (IpAddr::V6(address), None)),
        None => text.parse().ok().map(|address| (address, None)),
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.hosts)?;
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        match self.address_port {
            Some(port) => write!(f, "={}", SocketAddr::new(self.address, port)),
            None => write!(f, "={}", self.address),
        }
    }
}

impl fmt::Debug for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, host: &str, port: u16, expected: Option<&str>) {
        let answer = text.parse::<Override>().unwrap().answer(host, port).map(|address| address.to_string());
        assert_eq!(answer.as_deref(), expected, "{text} for {host}:{port}");
    }

    #[test]
    fn overrides_say_where_names_lead() {
        check("*=127.0.0.1:8080", "a.example", 443, Some("127.0.0.1:8080"));
        check("a.example=192.0.2.1", "A.example.", 443, Some("192.0.2.1:443"));
        check("a.example=192.0.2.1", "b.example", 443, None);
        check("a.example:443=192.0.2.1:8443", "a.example", 443, Some("192.0.2.1:8443"));
        check("a.example:443=192.0.2.1:8443", "a.example", 80, None);
        check("domain:example=192.0.2.1", "example", 80, Some("192.0.2.1:80"));
        check("domain:example:80=192.0.2.1", "a.example", 80, Some("192.0.2.1:80"));
        check("shop-?.example=192.0.2.1", "shop-1.example", 80, Some("192.0.2.1:80"));
        check("*.example=2001:db8::1", "a.example", 80, Some("[2001:db8::1]:80"));
        check("*.example=[2001:db8::1]:81", "a.example", 80, Some("[2001:db8::1]:81"));
        check("*.example=[2001:db8::1]", "a.example", 80, Some("[2001:db8::1]:80"));
    }

    #[test]
    fn a_broken_override_says_what_is_wrong() {
        let cases = [
            ("a.example", "it has no equals sign"),
            ("a.example=b.example", "\"b.example\" is no address"),
            ("a.example:http=192.0.2.1", "\"http\" is no port"),
            ("10.0.0.1=192.0.2.1", "\"10.0.0.1\" is no host name"),
            ("=192.0.2.1", "\"\" is no host name"),
            ("*=", "\"\" is no address"),
            ("*=127.0.0.1:99999", "\"127.0.0.1:99999\" is no address"),
        ];
        for (text, reason) in cases {
            assert_eq!(
                text.parse::<Override>().unwrap_err().to_string(),
                format!(
                    "{text:?} is no override: {reason}; expected host=address or host=address:port, such as \
                     *=127.0.0.1:8080"
                )
            );
        }
    }
}
