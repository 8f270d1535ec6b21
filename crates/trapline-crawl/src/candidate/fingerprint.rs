//! Fingerprints of URLs, as metadata of their requests, for those who keep pages elsewhere by them. Not among the usual rules: name it in
//! `chains.candidate` to have it.
//!
//! They are names for others. What makes two URLs one page is the frontier's identity, whose key nobody else knows.

use md5::{Digest, Md5};
use sha1::Sha1;
use trapline_core::{SplitUrl, plain_name};
use trapline_frontier::Frontier;

use super::Prospect;
use crate::chain::{Flow, Rule};

/// How a fingerprint is made of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FingerprintFunction {
    /// SHA-1, in hexadecimal digits.
    #[default]
    Sha1,
    /// MD5, likewise.
    Md5,
    /// CRC-32 of the host and then MD5 of all but scheme, user and port, so that pages of a host lie side by side where keys are in order.
    HostnameLocal,
}

impl FingerprintFunction {
    /// Every function, with the name it has in the configuration.
    pub const NAMES: [(&'static str, Self); 3] =
        [("sha1", Self::Sha1), ("md5", Self::Md5), ("hostname_local", Self::HostnameLocal)];

    /// The fingerprint of a URL, or of another text.
    pub fn of(self, text: &str) -> String {
        match self {
            Self::Sha1 => hex(&Sha1::digest(text)),
            Self::Md5 => hex(&Md5::digest(text)),
            Self::HostnameLocal => hostname_local(text),
        }
    }
}

/// Who has no host is of the host `-`.
fn hostname_local(text: &str) -> String {
    let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
    let url = SplitUrl::parse(before).ok();
    let host = url.as_ref().and_then(SplitUrl::host_str).map_or("-", plain_name);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let (path, query) = match &url {
        Some(url) => (url.path(), url.query().unwrap_or_default()),
        None => before.split_once('?').unwrap_or((before, "")),
    };
    // A semicolon parts the path from the parameters of its last segment, also where there are none.
    let last = path.rsplit('/').next().unwrap_or_default();
    let semicolon = if last.contains(';') { "" } else { ";" };
    let rest = Md5::digest(format!("{host}{path}{semicolon}{query}{fragment}"));
    format!("{:08x}{}", crc32(host.as_bytes()), hex(&rest))
}

/// The CRC of Ethernet, gzip and PNG. Hosts are short: bit by bit is fast enough.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !bytes.iter().fold(u32::MAX, byte)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to memory cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Adds `fingerprint`, that of the canonical form, to the metadata; and `domain.fingerprint` where the rule `domain` was before it.
pub(super) struct Fingerprint {
    pub(super) function: FingerprintFunction,
    pub(super) frontier: Frontier,
}

impl Rule<Prospect> for Fingerprint {
    fn name(&self) -> &'static str {
        "fingerprint"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        // What has no canonical form is not prepared either: the chain will tell.
        let Ok(canonical) = self.frontier.canonical_form(prospect.url.as_str()) else { return Flow::Next };
        let metadata = &mut prospect.request.metadata;
        metadata.insert("fingerprint".to_owned(), vec![self.function.of(&canonical)]);
        if let Some(name) = metadata.get("domain.name").and_then(|names| names.first()) {
            let fingerprint = self.function.of(name);
            metadata.insert("domain.fingerprint".to_owned(), vec![fingerprint]);
        }
        Flow::Next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `hashlib` and `zlib` of Python.
    #[test]
    fn fingerprints_are_those_that_others_compute() {
        for (function, text, expected) in [
            (
                FingerprintFunction::Sha1,
                "http://thehackernews.com",
                "dd72fbc0af65a2adac3e0b41d17ba8ab4d44a013",
            ),
            (
                FingerprintFunction::Sha1,
                "https://www.example.com/some-page/;v=1?a=b#c",
                "e9352134e0f79d2df23854c5cea455039b4313a3",
            ),
            (FingerprintFunction::Sha1, "http://a.example/ä", "fa8bfc31c72fbef1a2bc012f8490cfe9936c858c"),
            (
                FingerprintFunction::Md5,
                "https://www.example.com/some-page/;v=1?a=b#c",
                "8884931e77dc34e5ece5d4999cc0e805",
            ),
            (
                FingerprintFunction::HostnameLocal,
                "http://thehackernews.com/",
                "235b59d20d13f5592be7cbc73c340bd2880ed14b",
            ),
            (
                FingerprintFunction::HostnameLocal,
                "https://www.example.com/some-page/;v=1?a=b#c",
                "2ed642bb8bc6c918ee4233a7144049a9617020be",
            ),
            (
                FingerprintFunction::HostnameLocal,
                "http://[::1]:8080/a",
                "a2ca6717596ee4c50f53d4581845bbb284d3c5ba",
            ),
            (FingerprintFunction::HostnameLocal, "/no/host?x=1", "97ddb3f805b8a2b8d8c56aed17ffa92f65b4e33b"),
        ] {
            assert_eq!(function.of(text), expected, "{function:?} {text}");
        }
    }

    #[test]
    fn pages_of_a_host_begin_alike_and_its_port_does_not_matter() {
        let of = |url: &str| FingerprintFunction::HostnameLocal.of(url);
        let [one, two, other] =
            ["http://a.example/1", "https://a.example:8443/2", "http://b.example/1"].map(of);
        assert!(one[..8] == two[..8] && one != two && one[..8] != other[..8], "{one} {two} {other}");
        assert_eq!(of("http://a.example/1"), of("https://u@a.example:81/1"));
        assert_ne!(of("http://a.example/1?x"), of("http://a.example/1"));
    }
}
