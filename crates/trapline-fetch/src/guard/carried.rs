//! IPv4 addresses that travel inside IPv6 addresses.
//!
//! Tunnels and translators take such an address apart and send packets to what is inside, so that the
//! inside has to be judged as well. Whether the outside is open is not asked here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::network::Network;

/// An IPv4 address found inside an IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// In which form it was carried: `IPv4-mapped`, `6to4`, `Teredo server` …
    pub form: &'static str,
    /// The address itself.
    pub address: Ipv4Addr,
}

/// Every IPv4 address that some machine on the way may read out of an IPv6 address.
///
/// `nat64` are the operator's own translation prefixes, read as RFC 6052 lays them out for their length.
pub fn carried(address: Ipv6Addr, nat64: &[Network]) -> Vec<Carried> {
    let octets = address.octets();
    let groups = address.segments();
    let last = four(&octets, [12, 13, 14, 15]);
    let mut found = Vec::new();
    match groups {
        // `::` and `::1` are addresses of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => {}
        [0, 0, 0, 0, 0, 0, _, _] => found.push(Carried { form: "IPv4-compatible", address: last }),
        [0, 0, 0, 0, 0, 0xffff, _, _] => found.push(Carried { form: "IPv4-mapped", address: last }),
        [0, 0, 0, 0, 0xffff, 0, _, _] => found.push(Carried { form: "IPv4-translated", address: last }),
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => found.push(Carried { form: "NAT64", address: last }),
        [0x64, 0xff9b, 1, ..] if !nat64.iter().any(|prefix| prefix.contains(address.into())) => {
            local_nat64(&octets, &mut found);
        }
        [0x2001, 0, ..] => {
            found.push(Carried { form: "Teredo server", address: four(&octets, [4, 5, 6, 7]) });
            let client = Ipv4Addr::from_bits(!last.to_bits());
            found.push(Carried { form: "Teredo client", address: client });
        }
        [0x2002, ..] => found.push(Carried { form: "6to4", address: four(&octets, [2, 3, 4, 5]) }),
        _ => {}
    }
    if let [0 | 2, 0, 0x5e, 0xfe] = octets[8..12] {
        found.push(Carried { form: "ISATAP", address: last });
    }
    for prefix in nat64.iter().filter(|prefix| prefix.contains(IpAddr::V6(address))) {
        if let Some(address) = by_rfc_6052(&octets, prefix.prefix()) {
            found.push(Carried { form: "NAT64", address });
        }
    }
    found
}

/// The prefix lengths that RFC 6052 knows.
pub(super) const NAT64_PREFIXES: [u8; 6] = [32, 40, 48, 56, 64, 96];

/// The address behind a translation prefix; the ninth octet is always left out.
fn by_rfc_6052(octets: &[u8; 16], prefix: u8) -> Option<Ipv4Addr> {
    let places = match prefix {
        32 => [4, 5, 6, 7],
        40 => [5, 6, 7, 9],
        48 => [6, 7, 9, 10],
        56 => [7, 9, 10, 11],
        64 => [9, 10, 11, 12],
        96 => [12, 13, 14, 15],
        _ => return None,
    };
    Some(four(octets, places))
}

/// In `64:ff9b:1::/48` nobody but the operator knows how long the prefix is, so every reading counts. One that
/// begins with zero tells that the prefix is longer or shorter; if all do, the address leads nowhere.
fn local_nat64(octets: &[u8; 16], found: &mut Vec<Carried>) {
    let readings = NAT64_PREFIXES[2..].iter().filter_map(|prefix| by_rfc_6052(octets, *prefix));
    found.extend(
        readings
            .filter(|address| address.octets()[0] != 0)
            .map(|address| Carried { form: "local NAT64", address }),
    );
    if found.is_empty() {
        found.push(Carried { form: "local NAT64", address: Ipv4Addr::UNSPECIFIED });
    }
}

fn four(octets: &[u8; 16], places: [usize; 4]) -> Ipv4Addr {
    Ipv4Addr::from(places.map(|place| octets[place]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, expected: &[&str]) {
        let nat64 = ["2001:67c:27e4:64::/96", "2a00:1:2::/48"].map(|prefix| prefix.parse().unwrap());
        let found = carried(address.parse().unwrap(), &nat64);
        let found: Vec<String> =
            found.iter().map(|carried| format!("{} {}", carried.form, carried.address)).collect();
        assert_eq!(found, expected, "{address}");
    }

    #[test]
    fn every_form_of_ipv4_in_ipv6_is_taken_apart() {
        check("::", &[]);
        check("::1", &[]);
        check("::2", &["IPv4-compatible 0.0.0.2"]);
        check("::10.1.2.3", &["IPv4-compatible 10.1.2.3"]);
        check("::ffff:10.1.2.3", &["IPv4-mapped 10.1.2.3"]);
        check("::ffff:0:10.1.2.3", &["IPv4-translated 10.1.2.3"]);
        check("64:ff9b::10.1.2.3", &["NAT64 10.1.2.3"]);
        check("2002:a01:203::", &["6to4 10.1.2.3"]);
        check("2001:0:a01:203:0:0:f5fe:fdfc", &["Teredo server 10.1.2.3", "Teredo client 10.1.2.3"]);
        check("fe80::5efe:10.1.2.3", &["ISATAP 10.1.2.3"]);
        check("2a01:db8::200:5efe:10.1.2.3", &["ISATAP 10.1.2.3"]);
        check("2001:67c:27e4:64::a01:203", &["NAT64 10.1.2.3"]);
        check("2a00:1:2:a01:2:300::", &["NAT64 10.1.2.3"]);
        check("64:ff9b:1::10.1.2.3", &["local NAT64 10.1.2.3"]);
        check(
            "64:ff9b:1:a01:2:300::",
            &["local NAT64 10.1.2.3", "local NAT64 1.2.3.0", "local NAT64 2.3.0.0"],
        );
        check("64:ff9b:1::", &["local NAT64 0.0.0.0"]);
        check("2606:4700::1111", &[]);
    }
}
