//! The addresses that are not for crawling: IANA's special-purpose registries as tables.
//!
//! Sources are the IANA IPv4 and IPv6 Special-Purpose Address Registries, the multicast and reserved blocks
//! of the address space registries, and what was special once (site-local, 6bone). Every entry is refused, also the few that the
//! registries call globally reachable (AS112, AMT, anycast relays): no web site lives there. What IPv6 space
//! is not listed at all is open only inside 2000::/3, the one block IANA assigns global unicast addresses from.

use std::net::IpAddr;

use super::network::Network;

/// A block of addresses with a purpose of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct SpecialRange {
    /// Which addresses.
    pub network: Network,
    /// What they are for, in two or three words.
    pub purpose: &'static str,
}

const fn v4(octets: [u8; 4], prefix: u8, purpose: &'static str) -> SpecialRange {
    SpecialRange { network: Network::v4(octets, prefix), purpose }
}

const fn v6(groups: [u16; 4], prefix: u8, purpose: &'static str) -> SpecialRange {
    SpecialRange { network: Network::v6(groups, prefix), purpose }
}

const fn v6_long(groups: [u16; 8], prefix: u8, purpose: &'static str) -> SpecialRange {
    SpecialRange { network: Network::v6_long(groups, prefix), purpose }
}

/// All special ranges of IPv4.
pub const SPECIAL_V4: &[SpecialRange] = &[
    v4([0, 0, 0, 0], 8, "this network"),
    v4([10, 0, 0, 0], 8, "private use"),
    v4([100, 64, 0, 0], 10, "shared by carriers"),
    v4([127, 0, 0, 0], 8, "loopback"),
    v4([169, 254, 0, 0], 16, "link-local, cloud metadata"),
    v4([172, 16, 0, 0], 12, "private use"),
    v4([192, 0, 0, 0], 24, "protocol assignments"),
    v4([192, 0, 2, 0], 24, "documentation"),
    v4([192, 31, 196, 0], 24, "AS112"),
    v4([192, 52, 193, 0], 24, "AMT relays"),
    v4([192, 88, 99, 0], 24, "6to4 relays"),
    v4([192, 168, 0, 0], 16, "private use"),
    v4([192, 175, 48, 0], 24, "AS112"),
    v4([198, 18, 0, 0], 15, "benchmarking"),
    v4([198, 51, 100, 0], 24, "documentation"),
    v4([203, 0, 113, 0], 24, "documentation"),
    v4([224, 0, 0, 0], 4, "multicast"),
    v4([240, 0, 0, 0], 4, "reserved"),
    v4([255, 255, 255, 255], 32, "broadcast"),
];

/// All special ranges of IPv6.
pub const SPECIAL_V6: &[SpecialRange] = &[
    v6_long([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified"),
    v6_long([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback"),
    v6([0, 0, 0, 0], 96, "IPv4-compatible"),
    v6_long([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, "IPv4-mapped"),
    v6_long([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, "IPv4-translated"),
    v6([0x64, 0xff9b, 0, 0], 96, "NAT64"),
    v6([0x64, 0xff9b, 1, 0], 48, "local NAT64"),
    v6([0x100, 0, 0, 0], 64, "discard-only"),
    v6([0x100, 0, 0, 1], 64, "dummy prefix"),
    v6([0x200, 0, 0, 0], 7, "reserved, once OSI"),
    v6([0x2001, 0, 0, 0], 23, "protocol assignments"),
    v6([0x2001, 0, 0, 0], 32, "Teredo"),
    v6([0x2001, 2, 0, 0], 48, "benchmarking"),
    v6([0x2001, 3, 0, 0], 32, "AMT relays"),
    v6([0x2001, 4, 0x112, 0], 48, "AS112"),
    v6([0x2001, 0x10, 0, 0], 28, "ORCHID"),
    v6([0x2001, 0x20, 0, 0], 28, "ORCHIDv2"),
    v6([0x2001, 0x30, 0, 0], 28, "drone identities"),
    v6([0x2001, 0xdb8, 0, 0], 32, "documentation"),
    v6([0x2002, 0, 0, 0], 16, "6to4"),
    v6([0x2620, 0x4f, 0x8000, 0], 48, "AS112"),
    v6([0x3ffe, 0, 0, 0], 16, "reserved, once 6bone"),
    v6([0x3fff, 0, 0, 0], 20, "documentation"),
    v6([0x5f00, 0, 0, 0], 16, "segment routing"),
    v6([0xfc00, 0, 0, 0], 7, "unique local"),
    v6([0xfe80, 0, 0, 0], 10, "link-local"),
    v6([0xfec0, 0, 0, 0], 10, "site-local"),
    v6([0xff00, 0, 0, 0], 8, "multicast"),
];

/// Where IANA assigns global unicast addresses from; all else is refused, listed or not.
pub const GLOBAL_UNICAST_V6: Network = Network::v6([0x2000, 0, 0, 0], 3);

/// What IPv6 space outside [`GLOBAL_UNICAST_V6`] is called when no entry names it.
static UNASSIGNED_V6: SpecialRange =
    SpecialRange { network: Network::v6([0, 0, 0, 0], 0), purpose: "not global unicast" };

/// The narrowest special range an address lies in; none means that it is globally routable.
pub fn special_range(address: IpAddr) -> Option<&'static SpecialRange> {
    let table = if address.is_ipv4() { SPECIAL_V4 } else { SPECIAL_V6 };
    let listed = table.iter().filter(|range| range.network.contains(address));
    let unassigned = address.is_ipv6() && !GLOBAL_UNICAST_V6.contains(address);
    listed.max_by_key(|range| range.network.prefix()).or_else(|| unassigned.then_some(&UNASSIGNED_V6))
}
