//! The site a host belongs to, by the public suffix list, and the partition its queues live in.
//!
//! Not a URL parser: it takes hosts and queue keys as text. The list is the one compiled into `psl`, so its
//! age is that of the build.

use std::borrow::Cow;
use std::net::Ipv4Addr;

/// The registrable domain of a lower-case host: the part somebody registered, one label more than its public
/// suffix (`www.example.co.uk` → `example.co.uk`).
///
/// None for what nobody registered: addresses, public suffixes themselves (`co.uk`), single labels
/// (`localhost`), and text that is no host name. A name below a suffix the list does not know counts as
/// registered below its last label. The trailing dot of a fully qualified name is not part of the answer.
pub fn registrable_domain(host: &str) -> Option<&str> {
    let host = without_root_dot(host);
    if !is_host_name(host) || is_ipv4(host) {
        return None;
    }
    psl::domain_str(host)
}

/// The partition of a queue key, in a crawl with this many partitions; no partitions count as one.
///
/// All queues of a registrable domain live in one partition, whatever their host, port or upper case. Every
/// other key goes by itself. The hash is public and fixed forever: workers elsewhere, and stores written
/// years ago, must agree on it.
pub fn partition_of(key: &str, partitions: u32) -> u32 {
    let partitions = u64::from(partitions.max(1));
    let host = ascii_lowercase(without_port(key));
    let hash = public_hash(registrable_domain(&host).unwrap_or(key));
    u32::try_from(hash % partitions).expect("a remainder is smaller than its u32 divisor")
}

/// The hash that spreads hosts over partitions and buckets: the first eight bytes of unkeyed BLAKE3, read as
/// little endian.
pub fn public_hash(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("a hash has 32 bytes"))
}

/// `example.com.` and `example.com` name the same machines.
pub(crate) fn without_root_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Lower-cased, and copied only if it has to be.
pub(crate) fn ascii_lowercase(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// A queue key without the `:port` it may end with.
fn without_port(key: &str) -> &str {
    match key.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => key,
    }
}

/// Labels of letters, digits, hyphens and underscores. Letters beyond ASCII pass, since the list knows
/// both spellings of international names.
fn is_host_name(host: &str) -> bool {
    let mut label_is_empty = true;
    for byte in host.bytes() {
        match byte {
            b'.' if label_is_empty => return false,
            b'.' => label_is_empty = true,
            b'-' | b'_' => label_is_empty = false,
            _ if byte.is_ascii_alphanumeric() || !byte.is_ascii() => label_is_empty = false,
            _ => return false,
        }
    }
    !label_is_empty
}

/// Whether a host name is an IPv4 address, or would be refused as a broken one, by the URL standard: its last
/// label is a number.
fn is_ipv4(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or(host);
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    last.bytes().all(|byte| byte.is_ascii_digit())
        || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || host.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_one_label_more_than_their_suffix() {
        let check = |host, site| assert_eq!(registrable_domain(host), site, "{host}");
        check("example.com", Some("example.com"));
        check("a.b.example.com", Some("example.com"));
        check("www.example.co.uk", Some("example.co.uk"));
        check("someone.github.io", Some("someone.github.io"));
        check("a.b.kobe.jp", Some("a.b.kobe.jp"));
        check("www.city.kobe.jp", Some("city.kobe.jp"));
        check("shop.a.example", Some("a.example"));
        check("www.xn--85x722f.xn--55qx5d.cn", Some("xn--85x722f.xn--55qx5d.cn"));
        check("www.食狮.公司.cn", Some("食狮.公司.cn"));
        check("a_b.example.com", Some("example.com"));
        check("www.example.com.", Some("example.com"));
    }

    #[test]
    fn what_nobody_registered_has_no_site() {
        for host in [
            "",
            ".",
            "..",
            "com",
            "co.uk",
            "github.io",
            "localhost",
            "c.kobe.jp",
            ".com",
            ".example.com",
            "a..com",
            "127.0.0.1",
            "1.2.3",
            "a.0x7f",
            "a.1.",
            "a.0x",
            "[::1]",
            "::1",
            "my slot.v1",
            "a/b.com",
            "example.com..",
        ] {
            assert_eq!(registrable_domain(host), None, "{host}");
        }
    }

    /// These numbers are stored in the field: if this test fails, the change is wrong, not the test.
    #[test]
    fn partitions_never_move() {
        let check = |key, partition| assert_eq!(partition_of(key, 256), partition, "{key}");
        assert_eq!(public_hash(""), 0xa6a1_f9f5_b949_13af);
        check("example.com", 116);
        check("localhost", 255);
        check("localhost:8080", 224);
        check("127.0.0.1", 222);
        check("[::1]:8080", 55);
        check("my slot.v1", 6);
        check("bucket-017", 125);
        check("", 175);
    }

    #[test]
    fn all_queues_of_a_site_share_a_partition() {
        let home = partition_of("example.com", 1_000_003);
        for key in
            ["www.example.com", "WWW.Example.COM", "a.b.example.com:8080", "example.com:1", "example.com."]
        {
            assert_eq!(partition_of(key, 1_000_003), home, "{key}");
        }
        assert_ne!(partition_of("one.github.io", 1_000_003), partition_of("two.github.io", 1_000_003));
        assert_eq!(partition_of("anything", 1), 0);
        assert_eq!(partition_of("anything", 0), 0);
    }

    #[test]
    fn partitions_fill_evenly() {
        let mut counts = [0u32; 16];
        for number in 0..16_000 {
            counts[partition_of(&format!("site{number}.example"), 16) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
