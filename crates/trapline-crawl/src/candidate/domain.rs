//! What the host of a URL is made of, as metadata of its request. Not among the usual rules: name it in `chains.candidate` to have it.

use trapline_core::{plain_name, registrable_domain};

use super::Prospect;
use crate::chain::{Flow, Rule};

/// Adds `domain.netloc`, `domain.name`, `domain.scheme`, `domain.sld`, `domain.tld` and `domain.subdomain` to the metadata. What there is
/// none of is empty.
pub(super) struct Domain;

impl Rule<Prospect> for Domain {
    fn name(&self) -> &'static str {
        "domain"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        let host = plain_name(prospect.url.host_str().unwrap_or_default());
        let registered = registrable_domain(host);
        let name = registered.unwrap_or(host);
        let (sld, tld) = registered.and_then(|name| name.split_once('.')).unwrap_or_default();
        let subdomain = host.strip_suffix(name).unwrap_or_default().trim_end_matches('.');
        let facts = [
            ("domain.netloc", prospect.url.host_and_port()),
            ("domain.name", name),
            ("domain.scheme", prospect.url.scheme()),
            ("domain.sld", sld),
            ("domain.tld", tld),
            ("domain.subdomain", subdomain),
        ];
        let facts = facts.map(|(key, value)| (key.to_owned(), vec![value.to_owned()]));
        prospect.request.metadata.extend(facts);
        Flow::Next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_taken_apart_by_the_public_suffix_list() {
        for (url, expected) in [
            (
                "https://www.news.example.co.uk/a",
                ["www.news.example.co.uk", "example.co.uk", "https", "example", "co.uk", "www.news"],
            ),
            ("http://example.org:8080/", ["example.org:8080", "example.org", "http", "example", "org", ""]),
            (
                "http://www.example.org./",
                ["www.example.org.", "example.org", "http", "example", "org", "www"],
            ),
            ("http://192.0.2.1/", ["192.0.2.1", "192.0.2.1", "http", "", "", ""]),
            ("http://[::1]:81/", ["[::1]:81", "[::1]", "http", "", "", ""]),
            ("http://localhost/", ["localhost", "localhost", "http", "", "", ""]),
        ] {
            let mut prospect = Prospect::seed(url).unwrap();
            assert_eq!(Domain.apply(&mut prospect), Flow::Next);
            let keys = ["netloc", "name", "scheme", "sld", "tld", "subdomain"];
            let found = keys.map(|key| prospect.request.metadata[&format!("domain.{key}")].join("|"));
            assert_eq!(found, expected, "{url}");
        }
    }
}
