//! Which addresses the service may listen at, and which peers it serves there without encryption. Rules alone: no socket is
//! opened here.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

/// A range of addresses, as in `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether an address is in it. An IPv4 address is the same when it comes in the dress of IPv6.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                own.to_bits() & mask == other.to_bits() & mask
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                own.to_bits() & mask == other.to_bits() & mask
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a range of addresses: write 10.0.0.0/8, fd00::/8 or a single address such as 192.0.2.7"
            )
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => longest,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|prefix| *prefix <= longest).ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
        };
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// Reads `127.0.0.1:7071`, `[::1]:7071` or `localhost:7071`. Other names are not looked up: what is listened at should not depend on
/// what a name server says.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let read = match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        None => text.parse().ok(),
    };
    read.ok_or_else(|| {
        format!("`{text}` is not an address to listen at: write ADDRESS:PORT, such as 127.0.0.1:7071 or [::1]:7071")
    })
}

/// What a service has to protect itself with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Protection {
    /// Callers need a token.
    pub(crate) has_tokens: bool,
    /// There is a certificate.
    pub(crate) has_tls: bool,
    /// Callers need a certificate too.
    pub(crate) has_client_ca: bool,
    /// From here callers need none of that.
    pub(crate) plaintext: Vec<Network>,
}

impl Protection {
    /// Whether callers from anywhere are known to be who they should be, and nobody listens in.
    fn is_whole(&self) -> bool {
        self.has_tls && (self.has_tokens || self.has_client_ca)
    }

    /// Whether the service may listen at an address; else a sentence that says what is missing.
    pub(crate) fn check(&self, option: &str, address: SocketAddr) -> Result<(), String> {
        if is_loopback(address.ip()) || self.is_whole() || !self.plaintext.is_empty() {
            return Ok(());
        }
        let missing = match (self.has_tls, self.has_tokens) {
            (false, false) => "anybody there could read and change the frontier",
            (false, true) => "tokens would go over the network for everybody to read",
            (true, _) => "anybody there could read and change the frontier, encrypted or not",
        };
        Err(format!(
            "will not listen at {address} ({option}): it is not this machine's own loopback, and {missing}\n  \
             Give a certificate (--tls-cert FILE --tls-key FILE) and tokens (--tokens FILE) or the authority of your clients' \
             certificates (--tls-client-ca FILE); or listen at {}; or, for clients that can do neither, name the networks they \
             are in (--allow-plaintext CIDR).",
            SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())),
        ))
    }

    /// How a peer is treated on a socket that listens at `listening`.
    pub(crate) fn of_peer(&self, listening: IpAddr, peer: IpAddr) -> Treatment {
        let is_trusted = self.plaintext.iter().any(|network| network.contains(peer));
        Treatment {
            is_served: is_trusted || is_loopback(listening) || self.is_whole(),
            may_be_plain: is_trusted || (is_loopback(listening) && !self.has_tls),
            may_lack_token: is_trusted || !self.has_tokens,
        }
    }
}

/// How a peer is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// At all.
    pub(crate) is_served: bool,
    /// Without TLS too.
    pub(crate) may_be_plain: bool,
    /// Without a token too.
    pub(crate) may_lack_token: bool,
}

pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether a `Host` header names this machine's loopback or the address that is listened at. A page of the web whose name was made
/// to mean 127.0.0.1 sends its own name.
pub(crate) fn is_own_host(host: &str, listening: SocketAddr) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    bare.parse().is_ok_and(|address: IpAddr| is_loopback(address) || address == listening.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_ranges_of_addresses() {
        let check = |network: &str, address: &str, expected: bool| {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), expected, "{network} {address}");
        };
        check("10.0.0.0/8", "10.255.255.255", true);
        check("10.0.0.0/8", "11.0.0.0", false);
        check("10.1.2.3/8", "10.9.9.9", true);
        check("10.0.0.0/8", "::ffff:10.0.0.1", true);
        check("192.0.2.7", "192.0.2.7", true);
        check("192.0.2.7", "192.0.2.8", false);
        check("0.0.0.0/0", "203.0.113.9", true);
        check("0.0.0.0/0", "2001:db8::1", false);
        check("fd00::/8", "fdff::1", true);
        check("fd00::/8", "fe80::1", false);
        check("::/0", "2001:db8::1", true);
        for bad in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "fd00::/129", "example.org", "10.0.0/8"] {
            let error = bad.parse::<Network>().unwrap_err();
            assert!(error.starts_with(&format!("`{bad}` is not a range of addresses")), "{error}");
        }
    }

    #[test]
    fn addresses_to_listen_at_are_numbers() {
        for (text, expected) in [
            ("127.0.0.1:7071", "127.0.0.1:7071"),
            ("localhost:0", "127.0.0.1:0"),
            ("[::1]:7071", "[::1]:7071"),
        ] {
            assert_eq!(listen_address(text), Ok(expected.parse().unwrap()));
        }
        for bad in ["7071", ":7071", "127.0.0.1", "example.org:7071", "localhost:x", "127.0.0.1:70000"] {
            let error = listen_address(bad).unwrap_err();
            assert!(error.starts_with(&format!("`{bad}` is not an address to listen at")), "{error}");
        }
    }

    fn protection(what: &str) -> Protection {
        Protection {
            has_tokens: what.contains("tokens"),
            has_tls: what.contains("tls"),
            has_client_ca: what.contains("ca"),
            plaintext: if what.contains("plain") { vec!["10.0.0.0/8".parse().unwrap()] } else { vec![] },
        }
    }

    #[test]
    fn other_addresses_than_loopback_need_a_token_and_tls() {
        for (what, address, why_not) in [
            ("", "127.0.0.1:1", None),
            ("", "127.9.9.9:1", None),
            ("", "[::1]:1", None),
            ("", "0.0.0.0:1", Some("anybody there could read and change the frontier\n")),
            ("", "[::]:1", Some("anybody there could read and change the frontier\n")),
            ("", "192.168.1.2:1", Some("anybody there could read and change the frontier\n")),
            ("tokens", "0.0.0.0:1", Some("tokens would go over the network for everybody to read\n")),
            ("tls", "0.0.0.0:1", Some("encrypted or not\n")),
            ("tls tokens", "0.0.0.0:1", None),
            ("tls ca", "0.0.0.0:1", None),
            ("plain", "0.0.0.0:1", None),
        ] {
            let told = protection(what).check("--grpc-listen", address.parse().unwrap());
            match why_not {
                None => assert_eq!(told, Ok(()), "{what} {address}"),
                Some(why) => {
                    let told = told.unwrap_err();
                    assert!(
                        told.starts_with(&format!("will not listen at {address} (--grpc-listen): ")),
                        "{told}"
                    );
                    assert!(told.contains(why) && told.contains("--tls-cert FILE"), "{told}");
                }
            }
        }
    }

    #[test]
    fn peers_are_served_as_far_as_they_are_trusted() {
        let check = |what: &str, listening: &str, peer: &str, expected: [bool; 3]| {
            let told = protection(what).of_peer(listening.parse().unwrap(), peer.parse().unwrap());
            let [is_served, may_be_plain, may_lack_token] = expected;
            assert_eq!(
                told,
                Treatment { is_served, may_be_plain, may_lack_token },
                "{what} {listening} {peer}"
            );
        };
        check("", "127.0.0.1", "127.0.0.1", [true, true, true]);
        check("tokens", "127.0.0.1", "127.0.0.1", [true, true, false]);
        check("tls", "127.0.0.1", "127.0.0.1", [true, false, true]);
        check("tls tokens", "0.0.0.0", "203.0.113.9", [true, false, false]);
        check("tls ca", "0.0.0.0", "203.0.113.9", [true, false, true]);
        check("plain", "0.0.0.0", "10.1.1.1", [true, true, true]);
        check("plain", "::", "::ffff:10.1.1.1", [true, true, true]);
        check("plain", "0.0.0.0", "203.0.113.9", [false, false, true]);
        check("plain", "0.0.0.0", "127.0.0.1", [false, false, true]);
        check("plain tls", "0.0.0.0", "203.0.113.9", [false, false, true]);
        check("plain tokens", "0.0.0.0", "203.0.113.9", [false, false, false]);
        check("plain tokens tls", "0.0.0.0", "203.0.113.9", [true, false, false]);
        check("plain tokens tls", "0.0.0.0", "10.1.1.1", [true, true, true]);
    }

    #[test]
    fn hosts_of_rebound_names_are_strangers() {
        let check = |host: &str, expected: bool| {
            assert_eq!(is_own_host(host, "127.0.0.1:8080".parse().unwrap()), expected, "{host}");
        };
        for own in [
            "localhost",
            "LOCALHOST:8080",
            "localhost.",
            "127.0.0.1:8080",
            "127.0.0.1",
            "[::1]:8080",
            "[::1]",
            "::1",
        ] {
            check(own, true);
        }
        for strange in [
            "",
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "192.0.2.1:8080",
            "127.0.0.1.evil",
        ] {
            check(strange, false);
        }
        assert!(is_own_host("127.0.0.5", "127.0.0.5:1".parse().unwrap()));
    }
}
