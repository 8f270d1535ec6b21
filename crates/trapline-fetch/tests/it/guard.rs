//! The guard: every special range at its edges, in every way to write an address.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use trapline_core::parse_url;
use trapline_fetch::{
    DialErrorKind, Dialer, Guard, GuardOptions, Network, RefusalReason, SPECIAL_V4, SPECIAL_V6, carried,
    dangerous_ports,
};
use url::Host;

use crate::door::{Server, closed_options, destination, open_options, trouble};

/// IANA's special-purpose registries once more, by first and last address: the tables of the crate are held to these.
const V4: &[(&str, &str)] = &[
    ("0.0.0.0", "0.255.255.255"),
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.31.196.0", "192.31.196.255"),
    ("192.52.193.0", "192.52.193.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("192.175.48.0", "192.175.48.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "239.255.255.255"),
    ("240.0.0.0", "255.255.255.254"),
    ("255.255.255.255", "255.255.255.255"),
];

/// The same for IPv6; what lies outside 2000::/3 is refused as a whole.
const V6: &[(&str, &str)] = &[
    ("::", "::"),
    ("::1", "::1"),
    ("::2", "::ffff:ffff"),
    ("::ffff:0.0.0.0", "::ffff:255.255.255.255"),
    ("::ffff:0:0.0.0.0", "::ffff:0:255.255.255.255"),
    ("64:ff9b::", "64:ff9b::ffff:ffff"),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
    ("100::", "100::ffff:ffff:ffff:ffff"),
    ("100:0:0:1::", "100::1:ffff:ffff:ffff:ffff"),
    ("200::", "3ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001::", "2001::ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"),
    ("2001:3::", "2001:3:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:4:112::", "2001:4:112:ffff:ffff:ffff:ffff:ffff"),
    ("2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:20::", "2001:2f:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:30::", "2001:3f:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"),
    ("3ffe::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
];

fn v4_ranges() -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> {
    V4.iter().map(|(first, last)| (first.parse().unwrap(), last.parse().unwrap()))
}

fn v6_ranges() -> impl Iterator<Item = (Ipv6Addr, Ipv6Addr)> {
    V6.iter().map(|(first, last)| (first.parse().unwrap(), last.parse().unwrap()))
}

/// The verdict of the lists above, read naively.
fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => v4_ranges().any(|(first, last)| first <= address && address <= last),
        IpAddr::V6(address) => v6_ranges().any(|(first, last)| first <= address && address <= last),
    }
}

/// The verdict on everything that an address is or carries, read naively.
fn is_refused(address: IpAddr) -> bool {
    let inside = match address {
        IpAddr::V6(address) => carried(address, &[]),
        IpAddr::V4(_) => Vec::new(),
    };
    is_special(address) || inside.iter().any(|inside| is_special(inside.address.into()))
}

/// First and last address of each range, and the two just outside that are not in another one.
fn edges_v4() -> (BTreeSet<Ipv4Addr>, BTreeSet<Ipv4Addr>) {
    let inside: BTreeSet<Ipv4Addr> = v4_ranges().flat_map(|(first, last)| [first, last]).collect();
    let outside = v4_ranges().flat_map(|(first, last)| {
        [first.to_bits().checked_sub(1), last.to_bits().checked_add(1)].into_iter().flatten()
    });
    let outside = outside.map(Ipv4Addr::from_bits).filter(|address| !is_special((*address).into())).collect();
    (inside, outside)
}

fn edges_v6() -> (BTreeSet<Ipv6Addr>, BTreeSet<Ipv6Addr>) {
    let inside: BTreeSet<Ipv6Addr> = v6_ranges().flat_map(|(first, last)| [first, last]).collect();
    let outside = v6_ranges().flat_map(|(first, last)| {
        [first.to_bits().checked_sub(1), last.to_bits().checked_add(1)].into_iter().flatten()
    });
    let outside = outside.map(Ipv6Addr::from_bits).filter(|address| !is_special((*address).into())).collect();
    (inside, outside)
}

/// Every way to write an IPv4 address as the host of a URL, such that it is read as this address.
fn spellings_v4(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let number = address.to_bits();
    let (last_three, last_two) = (number & 0xff_ffff, number & 0xffff);
    let full_width = |text: &str| -> String {
        text.chars()
            .map(|c| match c {
                '0'..='9' => char::from_u32(u32::from(c) + 0xfee0).unwrap(),
                '.' => '\u{3002}',
                c => c,
            })
            .collect()
    };
    let percent = |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02x}")).collect() };
    let dotted = address.to_string();
    vec![
        dotted.clone(),
        format!("{dotted}."),
        format!("{number}"),
        format!("{number}."),
        format!("0x{number:x}"),
        format!("0X{number:08X}"),
        format!("0x00000000{number:x}"),
        format!("0{number:o}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("{a}.{last_three}"),
        format!("{a}.{b}.{last_two}"),
        format!("0{a:o}.0x{b:x}.{last_two}"),
        format!("0000{a:o}.{b}.0x{c:x}.{d}"),
        full_width(&dotted),
        full_width(&number.to_string()),
        format!("\u{ff10}\u{ff58}{number:x}"),
        percent(&dotted),
        percent(&format!("0x{number:x}")),
        percent(&full_width(&dotted)),
        format!("{a}\u{ad}.{b}.{c}.{d}"),
    ]
}

/// The hosts of URLs that carry an IPv4 address inside an IPv6 address.
fn carriers(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    vec![
        format!("[::ffff:{address}]"),
        format!("[::FFFF:{high:x}:{low:x}]"),
        format!("[0:0:0:0:0:ffff:{high:x}:{low:x}]"),
        format!("[::ffff:0:{address}]"),
        format!("[64:ff9b::{address}]"),
        format!("[64:ff9b:1::{address}]"),
        format!("[2002:{high:x}:{low:x}::1]"),
        format!("[2001:0:{high:x}:{low:x}:0:0:f7f7:f7f7]"),
        format!("[2001:0:808:808:0:0:{:x}:{:x}]", !high, !low),
        format!("[2a00:1450::5efe:{address}]"),
        format!("[2a00:1450::200:5efe:{address}]"),
    ]
}

/// Hosts that are not to be dialled: first and last address of every special range, in every way to write it.
pub(crate) fn special_hosts() -> Vec<String> {
    let (v4, _) = edges_v4();
    let (v6, _) = edges_v6();
    let mut hosts: Vec<String> = v4.iter().flat_map(|address| spellings_v4(*address)).collect();
    hosts.extend(v4.iter().flat_map(|address| carriers(*address)));
    hosts.extend(v4.iter().filter(|address| address.to_bits() > 1).map(|address| format!("[::{address}]")));
    hosts.extend(v6.iter().map(|address| format!("[{address}]")));
    hosts.extend(["127.0.0.1", "127.1", "0x7f.1", "[::ffff:127.0.0.1]", "[::]", "0"].map(str::to_owned));
    hosts
}

/// The host of a URL as an address; none if it is a name.
fn address_of(host: &str) -> Option<IpAddr> {
    match parse_url(&format!("http://{host}/"), None).unwrap().host().unwrap() {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

fn lets_through(guard: &Guard, address: IpAddr) -> bool {
    guard.check(SocketAddr::new(address, 80)).is_ok()
}

#[test]
fn every_spelling_is_read_as_the_address_it_stands_for() {
    let (inside, outside) = edges_v4();
    assert!(inside.len() >= 37 && outside.len() >= 30, "{} {}", inside.len(), outside.len());
    for address in inside.into_iter().chain(outside) {
        for host in spellings_v4(address) {
            assert_eq!(address_of(&host), Some(address.into()), "{host}");
        }
    }
}

/// The proof that nothing leaves: the function that connects is never reached, and servers that listen where some of these
/// addresses lead see nobody.
#[tokio::test]
async fn special_addresses_are_refused_in_every_spelling_before_a_packet_leaves() {
    let server = Server::silent().await;
    let port = server.port();
    let dialer = Dialer::new(closed_options()).unwrap();
    let hosts = special_hosts();
    let cases = hosts.len();
    for host in hosts {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{port}/");
            let error = dialer.dial(&destination(&url)).await.unwrap_err();
            assert_eq!(error.kind(), DialErrorKind::AddressRefused, "{url}: {error:?}");
            assert_eq!(error.to_string(), "the host has no address that may be dialled");
        }
    }
    assert!(cases > 1200, "{cases}");
    assert_eq!(dialer.counts().connects, 0);
    assert_eq!(server.visitors().await, 0);
}

/// What the test above would see if the guard slept: the same URL reaches the server once loopback is open.
#[tokio::test]
async fn the_listener_that_saw_nobody_does_see_whom_the_guard_lets_through() {
    let server = Server::silent().await;
    let dialer = Dialer::new(open_options()).unwrap();
    for host in ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "%31%32%37.0.0.1", "１２７.０.０.１"] {
        let url = format!("http://{host}:{}/", server.port());
        assert_eq!(dialer.dial(&destination(&url)).await.unwrap().address, server.address, "{host}");
    }
    assert_eq!(dialer.counts().connects, 6);
}

#[test]
fn the_neighbours_of_special_ranges_are_let_through() {
    let guard = Guard::default();
    let (_, v4) = edges_v4();
    for address in v4 {
        assert!(lets_through(&guard, address.into()), "{address}");
    }
    let (_, v6) = edges_v6();
    assert!(v6.len() >= 10);
    for address in v6 {
        assert!(lets_through(&guard, address.into()), "{address}");
    }
    for address in ["1.1.1.1", "8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2001:200::1"] {
        assert!(lets_through(&guard, address.parse().unwrap()), "{address}");
    }
}

#[test]
fn what_is_carried_is_judged_even_if_the_outside_is_open() {
    let options = GuardOptions { allow_networks: vec!["::/0".parse().unwrap()], ..GuardOptions::default() };
    let guard = Guard::new(options).unwrap();
    let (inside, outside) = edges_v4();
    for address in inside {
        for host in carriers(address) {
            // In the local NAT64 prefix, an address that begins with zero is not taken for one.
            let verdict = guard.check(SocketAddr::new(address_of(&host).unwrap(), 80));
            let reason = verdict.unwrap_err().reason;
            assert!(matches!(reason, RefusalReason::Carries(..)), "{host}: {reason:?}");
        }
    }
    for address in outside {
        for host in carriers(address) {
            assert!(lets_through(&guard, address_of(&host).unwrap()), "{host}");
        }
    }
    // Addresses of their own, that carry nothing.
    assert!(lets_through(&guard, "::1".parse().unwrap()) && lets_through(&guard, "::".parse().unwrap()));
}

#[test]
fn carried_addresses_are_refused_unless_both_sides_are_open() {
    let check = |allow: &[&str], address: &str| {
        let allow_networks = allow.iter().map(|network| network.parse().unwrap()).collect();
        let guard = Guard::new(GuardOptions { allow_networks, ..GuardOptions::default() }).unwrap();
        lets_through(&guard, address.parse().unwrap())
    };
    assert!(!check(&[], "::ffff:8.8.8.8"));
    assert!(!check(&["127.0.0.0/8"], "::ffff:127.0.0.1"));
    assert!(!check(&["::ffff:0:0/96"], "::ffff:127.0.0.1"));
    assert!(check(&["::ffff:0:0/96", "127.0.0.0/8"], "::ffff:127.0.0.1"));
    assert!(check(&["::ffff:0:0/96"], "::ffff:8.8.8.8"));
    assert!(!check(&[], "64:ff9b::8.8.8.8"));
    assert!(!check(&["64:ff9b::/96"], "64:ff9b::10.0.0.1"));
}

#[test]
fn a_translation_prefix_is_open_for_what_may_be_dialled_inside() {
    let nat64 = |prefix: &str| {
        let nat64_prefixes = vec![prefix.parse().unwrap()];
        Guard::new(GuardOptions { nat64_prefixes, ..GuardOptions::default() })
    };
    let guard = nat64("64:ff9b::/96").unwrap();
    assert!(lets_through(&guard, "64:ff9b::8.8.8.8".parse().unwrap()));
    assert!(!lets_through(&guard, "64:ff9b::169.254.169.254".parse().unwrap()));
    assert!(!lets_through(&guard, "64:ff9b:1::8.8.8.8".parse().unwrap()));
    // A prefix of one's own looks like any address of the world until it is named.
    let inside = "2001:67c:27e4:64::a9fe:a9fe".parse().unwrap();
    assert!(lets_through(&Guard::default(), inside));
    assert!(!lets_through(&nat64("2001:67c:27e4:64::/96").unwrap(), inside));
    assert!(!lets_through(&nat64("2001:67c::/32").unwrap(), "2001:67c:a9fe:a9fe::".parse().unwrap()));
    let error = nat64("2001:67c:27e4:64::/72").unwrap_err();
    assert_eq!(
        error.to_string(),
        "2001:67c:27e4:64::/72 is no NAT64 prefix: expected an IPv6 network with 32, 40, 48, 56, 64 or 96 bits"
    );
    assert!(nat64("10.0.0.0/32").is_err());
}

#[test]
fn listed_networks_are_open_and_nothing_beside_them() {
    let networks = ["10.1.0.0/16", "127.0.0.1", "fd12:3456::/32"];
    let allow_networks: Vec<Network> = networks.iter().map(|network| network.parse().unwrap()).collect();
    let guard =
        Guard::new(GuardOptions { allow_networks: allow_networks.clone(), ..GuardOptions::default() })
            .unwrap();
    for network in allow_networks {
        assert!(lets_through(&guard, network.first()) && lets_through(&guard, network.last()), "{network}");
    }
    for address in ["10.0.255.255", "10.2.0.0", "127.0.0.2", "127.0.0.0", "fd12:3457::", "::1", "0.0.0.0"] {
        assert!(!lets_through(&guard, address.parse().unwrap()), "{address}");
    }
}

#[test]
fn a_refusal_says_what_is_wrong_and_what_opens_it() {
    let check = |address: &str, expected: &str| {
        let refusal = Guard::default().check(address.parse().unwrap()).unwrap_err();
        assert_eq!(refusal.to_string(), expected);
    };
    check(
        "169.254.169.254:80",
        "169.254.169.254 is not dialled: 169.254.0.0/16 (link-local, cloud metadata); allow_networks opens it",
    );
    check("[::1]:80", "::1 is not dialled: ::1/128 (loopback); allow_networks opens it");
    check("[1234::]:80", "1234:: is not dialled: ::/0 (not global unicast); allow_networks opens it");
    check(
        "[2a00::5efe:10.0.0.1]:80",
        "2a00::5efe:a00:1 is not dialled: it carries 10.0.0.1 (ISATAP), which is in 10.0.0.0/8 (private use); \
         allow_networks opens it",
    );
    check(
        "8.8.8.8:6379",
        "8.8.8.8:6379 is not dialled: at port 6379 Redis is expected; allow_ports opens it",
    );
    check(
        "8.8.8.8:25",
        "8.8.8.8:25 is not dialled: at port 25 no web server is expected; allow_ports opens it",
    );
}

#[tokio::test]
async fn dangerous_ports_are_refused_before_a_packet_leaves_unless_the_operator_opens_them() {
    let dialer = Dialer::new(open_options()).unwrap();
    let ports = dangerous_ports();
    assert!(ports.len() > 100);
    for port in ports {
        let error = dialer.dial(&destination(&format!("http://127.0.0.1:{port}/"))).await.unwrap_err();
        assert_eq!(error.kind(), DialErrorKind::PortRefused, "{port}");
        assert_eq!(error.to_string(), "the port may not be dialled");
    }
    assert_eq!(dialer.counts().connects, 0);

    let mut options = open_options();
    options.guard.allow_ports = BTreeSet::from([1]);
    // Nobody listens there, but this time it was tried.
    let url = "http://127.0.0.1:1/";
    assert_eq!(trouble(options, url).await.kind(), DialErrorKind::ConnectRefused);
}

#[test]
fn the_tables_have_the_ranges_of_the_registries() {
    let ranges = |table: &[trapline_fetch::SpecialRange]| -> BTreeSet<(IpAddr, IpAddr)> {
        table.iter().map(|range| (range.network.first(), range.network.last())).collect()
    };
    // The lists here are cut where ranges overlap, and the two blocks around 2000::/3 are a rule, not a range.
    let mut v4: BTreeSet<(IpAddr, IpAddr)> =
        v4_ranges().map(|(first, last)| (first.into(), last.into())).collect();
    let whole =
        |first: &str, last: &str| -> (IpAddr, IpAddr) { (first.parse().unwrap(), last.parse().unwrap()) };
    assert!(v4.remove(&whole("240.0.0.0", "255.255.255.254")));
    v4.insert(whole("240.0.0.0", "255.255.255.255"));
    assert_eq!(ranges(SPECIAL_V4), v4);

    let mut v6: BTreeSet<(IpAddr, IpAddr)> =
        v6_ranges().map(|(first, last)| (first.into(), last.into())).collect();
    assert!(v6.remove(&whole("::2", "::ffff:ffff")));
    v6.insert(whole("::", "::ffff:ffff"));
    assert!(v6.remove(&whole("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")));
    assert!(v6.remove(&whole("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")));
    assert_eq!(ranges(SPECIAL_V6), v6);
}

fn any_v4() -> impl Strategy<Value = Ipv4Addr> {
    let near = (0..V4.len(), any::<bool>(), -300i64..300).prop_map(|(place, upper, step)| {
        let (first, last) = v4_ranges().nth(place).unwrap();
        let edge = i64::from(if upper { last } else { first }.to_bits());
        Ipv4Addr::from_bits((edge + step).rem_euclid(1 << 32) as u32)
    });
    prop_oneof![any::<u32>().prop_map(Ipv4Addr::from_bits), near]
}

fn any_v6() -> impl Strategy<Value = Ipv6Addr> {
    let near = (0..V6.len(), any::<bool>(), -300i128..300).prop_map(|(place, upper, step)| {
        let (first, last) = v6_ranges().nth(place).unwrap();
        let edge = if upper { last } else { first }.to_bits();
        Ipv6Addr::from_bits(edge.wrapping_add_signed(step))
    });
    let within = (0..V6.len(), any::<u128>(), 0u32..128).prop_map(|(place, bits, keep)| {
        let (first, _) = v6_ranges().nth(place).unwrap();
        Ipv6Addr::from_bits(first.to_bits() ^ (bits >> keep))
    });
    let carrying = (any_v4(), 0..11usize).prop_map(|(address, form)| {
        let host = carriers(address).swap_remove(form);
        host.trim_matches(['[', ']']).parse::<Ipv6Addr>().unwrap()
    });
    prop_oneof![any::<u128>().prop_map(Ipv6Addr::from_bits), near, within, carrying]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(18),
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_verdict_equals_a_naive_reading_of_the_ranges_for_ipv4(address in any_v4()) {
        prop_assert_eq!(!lets_through(&Guard::default(), address.into()), is_refused(address.into()));
    }

    #[test]
    fn the_verdict_equals_a_naive_reading_of_the_ranges_for_ipv6(address in any_v6()) {
        prop_assert_eq!(!lets_through(&Guard::default(), address.into()), is_refused(address.into()));
    }

    /// A prefix of the operator's own never opens what is special inside, and no address makes the unwrapping fail.
    #[test]
    fn nothing_special_comes_through_a_translation_prefix(
        address in any_v4(), bits in any::<u128>(), length in prop_oneof![Just(32u8), Just(40), Just(48), Just(56), Just(64), Just(96)]
    ) {
        let mask = u128::MAX << (128 - u32::from(length));
        let first = Ipv6Addr::from_bits(bits & mask);
        let prefix: Network = format!("{first}/{length}").parse().unwrap();
        let guard = Guard::new(GuardOptions { nat64_prefixes: vec![prefix], ..GuardOptions::default() }).unwrap();
        let mut octets = first.octets();
        let places = (usize::from(length) / 8..16).filter(|place| *place != 8 || length == 96).take(4);
        for (place, octet) in places.zip(address.octets()) {
            octets[place] = octet;
        }
        let outside = Ipv6Addr::from(octets);
        let inside = carried(outside, &[prefix]);
        prop_assert!(inside.iter().any(|inside| inside.address == address), "{} in {}", address, outside);
        if is_special(address.into()) {
            prop_assert!(!lets_through(&guard, outside.into()));
        }
    }
}
