//! Which queue a URL waits in: the policies that name a queue for a URL.
//!
//! Not the pace of queues, and not where they are stored; [`partition_of`](crate::partition_of) says that.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;

use url::Url;

use crate::registrable_domain;
use crate::site::{ascii_lowercase, public_hash, without_root_dot};

/// How a crawl groups URLs into queues. A caller's own key, the slot, wins over it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKeyPolicy {
    /// The host, with `:port` if that is not the scheme's own: `example.com`, `example.com:8080`. So `http` and
    /// `https` of a host share a queue.
    #[default]
    Host,
    /// The registrable domain, without port: one queue for all machines of a site. A host that has none (an
    /// address, a public suffix, `localhost`) is its own queue, as with [`Host`](Self::Host).
    Domain,
    /// One of a fixed number of queues, by the public hash of the host alone: `bucket-017`.
    Buckets(NonZeroU32),
}

impl QueueKeyPolicy {
    /// The queue of a URL, or None if it has no host to name one by.
    ///
    /// Hosts are lower-cased and lose the trailing dot of a fully qualified name, so that a second spelling
    /// of a host does not buy it a second pace.
    pub fn key(self, url: &Url) -> Option<Arc<str>> {
        let host = ascii_lowercase(without_root_dot(url.host_str()?));
        if host.is_empty() {
            return None;
        }
        let host_and_port = match url.port() {
            Some(port) => Cow::Owned(format!("{host}:{port}")),
            None => Cow::Borrowed(&*host),
        };
        Some(self.name(&host, &host_and_port).into())
    }

    /// The queue of a host that is in lower case and has no dot at the end; `host_and_port` is the same with `:port` if
    /// that is not the scheme's own.
    pub(crate) fn name<'h>(self, host: &'h str, host_and_port: &'h str) -> Cow<'h, str> {
        match self {
            Self::Host => Cow::Borrowed(host_and_port),
            Self::Domain => Cow::Borrowed(registrable_domain(host).unwrap_or(host_and_port)),
            Self::Buckets(count) => Cow::Owned(bucket_name(host, count)),
        }
    }
}

/// Numbers are padded to one width, so that buckets list in order.
fn bucket_name(host: &str, count: NonZeroU32) -> String {
    let count = u64::from(count.get());
    let width = (count - 1).checked_ilog10().map_or(1, |digits| digits as usize + 1).max(3);
    format!("bucket-{:0width$}", public_hash(host) % count)
}

impl fmt::Display for QueueKeyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Domain => f.write_str("domain"),
            Self::Buckets(count) => write!(f, "buckets:{count}"),
        }
    }
}

impl FromStr for QueueKeyPolicy {
    type Err = QueueKeyPolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "host" => Ok(Self::Host),
            "domain" => Ok(Self::Domain),
            _ => text
                .strip_prefix("buckets:")
                .and_then(|count| count.parse().ok())
                .map(Self::Buckets)
                .ok_or_else(|| QueueKeyPolicyError(text.to_owned())),
        }
    }
}

/// A queue key policy that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a queue key policy: write host, domain, or buckets:N with a number of buckets from 1 to \
     4294967295"
)]
pub struct QueueKeyPolicyError(String);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_url;

    #[test]
    fn policies_name_queues() {
        let check = |policy: &str, url: &str, key: Option<&str>| {
            let policy: QueueKeyPolicy = policy.parse().unwrap();
            assert_eq!(policy.key(&parse_url(url, None).unwrap()).as_deref(), key, "{policy} of {url}");
        };
        check("host", "http://WWW.Example.COM/a", Some("www.example.com"));
        check("host", "http://example.com:80/", Some("example.com"));
        check("host", "https://example.com:80/", Some("example.com:80"));
        check("host", "https://example.com:443/", Some("example.com"));
        check("host", "https://user:secret@example.com./", Some("example.com"));
        check("host", "http://[::1]:8080/", Some("[::1]:8080"));
        check("host", "http://0x7f.1/", Some("127.0.0.1"));
        check("host", "custom://Some.Host:9/x", Some("some.host:9"));
        check("host", "mailto:someone@example.com", None);
        check("host", "file:///etc/passwd", None);
        check("host", "data:,x", None);
        check("host", "http://./", None);
        check("domain", "https://a.b.example.co.uk:8443/", Some("example.co.uk"));
        check("domain", "https://co.uk:8443/", Some("co.uk:8443"));
        check("domain", "http://localhost:3000/", Some("localhost:3000"));
        check("domain", "http://10.0.0.1/", Some("10.0.0.1"));
        check("domain", "http://someone.github.io/", Some("someone.github.io"));
        check("buckets:1", "http://example.com/", Some("bucket-000"));
        check("buckets:1000", "http://example.com/", Some("bucket-740"));
        check("buckets:1000", "https://EXAMPLE.com:8080/x", Some("bucket-740"));
        check("buckets:1001", "http://example.com/", Some("bucket-0578"));
        check("buckets:4294967295", "http://example.com/", Some("bucket-1845768980"));
    }

    #[test]
    fn policies_are_read_and_written_alike() {
        for text in ["host", "domain", "buckets:1", "buckets:256", "buckets:4294967295"] {
            assert_eq!(text.parse::<QueueKeyPolicy>().unwrap().to_string(), text);
        }
        for bad in ["", "Host", "buckets", "buckets:", "buckets:0", "buckets:-1", "buckets:4294967296", "ip"]
        {
            let error = bad.parse::<QueueKeyPolicy>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{bad}` is not a queue key policy: write host, domain")),
                "{error}"
            );
        }
    }
}
