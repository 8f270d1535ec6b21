//! A network: an address and how many of its first bits count.
//!
//! Only arithmetic. Which networks are special is in [`super::ranges`], which are open is the operator's word.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network in CIDR notation, such as `10.0.0.0/8` or `fd00::/8`.
///
/// IPv4 and IPv6 are two worlds here: `::/0` has no IPv4 address in it, in whatever spelling.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The part before the slash is no address.
    #[error("{0:?} is no network: expected something like 10.0.0.0/8, fd00::/8 or a single address")]
    NoAddress(String),
    /// The part behind the slash is no number of bits.
    #[error("{text:?} is no network: the number behind the slash must be between 0 and {bits}")]
    NoPrefix {
        /// What was given.
        text: String,
        /// How many bits an address of this kind has.
        bits: u8,
    },
    /// The address has bits behind the prefix: more likely a typing error than a wish.
    #[error("{text:?} is no network: it has bits behind the first {}; was {meant} meant?", .meant.prefix())]
    BitsBehindPrefix {
        /// What was given.
        text: String,
        /// The network that the address lies in.
        meant: Network,
    },
}

impl Network {
    /// An IPv4 network of the tables; bits behind the prefix are ignored.
    pub(crate) const fn v4(octets: [u8; 4], prefix: u8) -> Self {
        let [a, b, c, d] = octets;
        let first = u32::from_be_bytes([a, b, c, d]) & mask_v4(prefix);
        Self { first: IpAddr::V4(Ipv4Addr::from_bits(first)), prefix }
    }

    /// An IPv6 network of the tables, by its first four groups; bits behind the prefix are ignored.
    pub(crate) const fn v6(groups: [u16; 4], prefix: u8) -> Self {
        let [a, b, c, d] = groups;
        let bits = Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).to_bits() & mask_v6(prefix);
        Self { first: IpAddr::V6(Ipv6Addr::from_bits(bits)), prefix }
    }

    /// An IPv6 network of the tables, by all of its groups.
    pub(crate) const fn v6_long(groups: [u16; 8], prefix: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = groups;
        let bits = Ipv6Addr::new(a, b, c, d, e, f, g, h).to_bits() & mask_v6(prefix);
        Self { first: IpAddr::V6(Ipv6Addr::from_bits(bits)), prefix }
    }

    /// Whether the address lies in this network.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                first.to_bits() == address.to_bits() & mask_v4(self.prefix)
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                first.to_bits() == address.to_bits() & mask_v6(self.prefix)
            }
            _ => false,
        }
    }

    /// Its first address.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// Its last address.
    pub fn last(&self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => Ipv4Addr::from_bits(first.to_bits() | !mask_v4(self.prefix)).into(),
            IpAddr::V6(first) => Ipv6Addr::from_bits(first.to_bits() | !mask_v6(self.prefix)).into(),
        }
    }

    /// How many bits all its addresses have in common.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }
}

/// The bits that count, for a prefix up to 32; shifting by all of them is not defined, so it is asked for.
const fn mask_v4(prefix: u8) -> u32 {
    match 32u32.checked_sub(prefix as u32) {
        Some(rest) if rest < 32 => u32::MAX << rest,
        Some(_) => 0,
        None => u32::MAX,
    }
}

const fn mask_v6(prefix: u8) -> u128 {
    match 128u32.checked_sub(prefix as u32) {
        Some(rest) if rest < 128 => u128::MAX << rest,
        Some(_) => 0,
        None => u128::MAX,
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let trimmed = text.trim();
        let (address, prefix) = match trimmed.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (trimmed, None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError::NoAddress(trimmed.to_owned()))?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => bits,
            // `u8::from_str` takes a plus sign, which no one means.
            Some(digits) => match digits.parse::<u8>() {
                Ok(prefix) if prefix <= bits && digits.bytes().all(|byte| byte.is_ascii_digit()) => prefix,
                _ => return Err(NetworkError::NoPrefix { text: trimmed.to_owned(), bits }),
            },
        };
        let first = match address {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & mask_v4(prefix)).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & mask_v6(prefix)).into(),
        };
        let network = Self { first, prefix };
        if first != address {
            return Err(NetworkError::BitsBehindPrefix { text: trimmed.to_owned(), meant: network });
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.prefix)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let answer = match text.parse::<Network>() {
            Ok(network) => format!("{network} {} {}", network.first(), network.last()),
            Err(error) => error.to_string(),
        };
        assert_eq!(answer, expected, "{text}");
    }

    #[test]
    fn networks_are_read_exactly_or_refused_with_advice() {
        check("10.0.0.0/8", "10.0.0.0/8 10.0.0.0 10.255.255.255");
        check(" 127.0.0.1 ", "127.0.0.1/32 127.0.0.1 127.0.0.1");
        check("0.0.0.0/0", "0.0.0.0/0 0.0.0.0 255.255.255.255");
        check("::/0", "::/0 :: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
        check("fd00::/8", "fd00::/8 fd00:: fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
        check("::1", "::1/128 ::1 ::1");
        check(
            "10.1.0.0/8",
            "\"10.1.0.0/8\" is no network: it has bits behind the first 8; was 10.0.0.0/8 meant?",
        );
        check(
            "10.0.0.0/33",
            "\"10.0.0.0/33\" is no network: the number behind the slash must be between 0 and 32",
        );
        check("::/+8", "\"::/+8\" is no network: the number behind the slash must be between 0 and 128");
        for text in ["", "/", "intranet", "10.0.0/8", "0x7f.0.0.1/8", "010.0.0.0/8"] {
            check(
                text,
                &format!(
                    "{text:?} is no network: expected something like 10.0.0.0/8, fd00::/8 or a single address"
                ),
            );
        }
    }

    #[test]
    fn the_worlds_of_ipv4_and_ipv6_are_apart() {
        let everything: Network = "::/0".parse().unwrap();
        assert!(!everything.contains("10.0.0.1".parse().unwrap()));
        let everything: Network = "0.0.0.0/0".parse().unwrap();
        assert!(!everything.contains("::ffff:10.0.0.1".parse().unwrap()));
    }
}
