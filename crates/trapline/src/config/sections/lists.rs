//! `[[host]]` and `[[credentials]]`: what is different for some hosts, and what only some may know.

use std::time::Duration;

use http::HeaderMap;
use regex::Regex;
use trapline_core::parse_url;
use trapline_crawl::RobotsPolicy;
use trapline_fetch::{HostPattern, Proxy, Route};
use url::Url;

use crate::config::options::{Options, entry, options, write_entry};
use crate::config::reading::{Given, Reading};
use crate::config::sections::strategy::StrategyArgument;
use crate::config::value::{Text, Value};

options! {
    /// What there can be several of.
    Lists {
        /// What is different for some hosts. Of several that match, the most exact one counts. Defaults to none.
        host: Vec<HostOverride> = Vec::new();
        /// User names and passwords, each with the only origin it is sent to. Defaults to none.
        credentials: Vec<OriginLogin> = Vec::new();
    }
}

options! {
    /// What is different for some hosts. Of several that match, the most exact one counts.
    HostOverride {
        /// Which hosts: a name, an address such as `192.0.2.1` or `2001:db8::1`, `domain:example.org` for that name and all below it,
        /// `*.example.org` for those below it, another name with `*` for any letters and `?` for one, or `*` for every name. A name
        /// or an address is more exact than all others; of the others the one with more letters is, and then the later one. It has
        /// to be given.
        hosts as "match": HostPattern = "*.example.org".parse().expect("it is a pattern");
        /// How long the host is left alone after a fetch. Defaults to none: `pace.delay`.
        delay: Option<Duration> = None;
        /// How many fetches may be under way at once; 0 for any number. Defaults to none: `pace.per_host`.
        per_host: Option<u32> = None;
        /// What may be spent on the host. Defaults to none: `queue.budget`.
        budget: Option<u64> = None;
        /// How much of that before other hosts have their turn; with 0 the host is set aside. Defaults to none: `queue.balance`.
        balance: Option<u64> = None;
        /// Which hosts are served first: lower ones. Defaults to none: `queue.precedence`.
        precedence: Option<u8> = None;
        /// How many links its pages may be away from their seed. Defaults to none: `scope.max_depth`.
        max_depth: Option<u32> = None;
        /// Regular expressions; one of them must match, if there are any. Defaults to none: `scope.include`.
        include: Option<Vec<Regex>> = None;
        /// Regular expressions; what matches one of them is not fetched. Defaults to none: `scope.exclude`.
        exclude: Option<Vec<Regex>> = None;
        /// After how long a page is visited again; the crawl then ends by a limit or by hand. Defaults to none: never.
        revisit: Option<Duration> = None;
        /// What the strategy is told of the host, each as "name=value", in place of what `strategy.args` has of the same name. Defaults to none.
        strategy: Vec<StrategyArgument> = Vec::new();
        /// How much is given on what it says to robots: `obey`, `robots_txt`, `most_favored` or `ignore`. Defaults to none:
        /// `robots.policy`.
        robots: Option<RobotsPolicy> = None;
        /// Another user agent, whole. Defaults to none: `fetch.user_agent` with `fetch.contact`.
        user_agent: Option<String> = None;
        /// More headers, in place of those of the same name. No credentials. Defaults to none.
        headers: HeaderMap = HeaderMap::new();
        /// Through which proxy: its URL, or `direct` for none. Defaults to none: `fetch.proxy`.
        proxy: Option<HostProxy> = None;
        /// Accepts a wrong certificate. What is wrong is told, and neither credentials nor cookies are sent. Defaults to false.
        lenient_tls: bool = false;
        /// Speaks HTTP/1.1 only. Defaults to false.
        http1_only: bool = false;
        /// Another time to the end of the response's head. Defaults to none: `limits.first_byte_timeout`.
        first_byte_timeout: Option<Duration> = None;
        /// Another time without a byte of the body. Defaults to none: `limits.idle_timeout`.
        idle_timeout: Option<Duration> = None;
        /// Another time for everything. Defaults to none: `limits.total_timeout`.
        total_timeout: Option<Duration> = None;
    }
}

options! {
    /// A user name and a password, and the only origin they are sent to.
    OriginLogin {
        /// A URL of the origin: its scheme, host and port count, all three. It has to be given.
        origin: Origin = Origin(parse_url("https://example.org/", None).expect("it is a URL"));
        /// The user name. It has to be given.
        user: String = String::new();
        /// The password, which nothing shows. It has to be given.
        password: Secret = Secret(String::new());
    }
}

const HOST_REQUIRED: [&str; 1] = ["match"];
const LOGIN_REQUIRED: [&str; 3] = ["origin", "user", "password"];

impl Value for HostOverride {
    fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        entry(value, reading, &HOST_REQUIRED, |_| Ok(()))
    }

    fn write(&self) -> String {
        write_entry(self, &HOST_REQUIRED)
    }
}

impl Value for OriginLogin {
    fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        entry(value, reading, &LOGIN_REQUIRED, |_| Ok(()))
    }

    fn write(&self) -> String {
        write_entry(self, &LOGIN_REQUIRED)
    }
}

/// The options of an entry of a list, for who tells about them.
pub(crate) fn entry_of(list: &str) -> Option<Box<dyn Options>> {
    match list {
        "host" => Some(Box::new(HostOverride::default())),
        "credentials" => Some(Box::new(OriginLogin::default())),
        _ => None,
    }
}

/// Which proxy a host has.
#[derive(Clone, Debug)]
pub(crate) struct HostProxy(pub(crate) Route);

impl Text for HostProxy {
    const FORM: &'static str = "the URL of a proxy, or direct, in quotes";

    fn of(text: &str) -> Result<Self, String> {
        match text {
            "direct" => Ok(Self(Route::Direct)),
            text => Proxy::of(text).map(|proxy| Self(Route::Through(proxy))),
        }
    }

    fn text(&self) -> String {
        match &self.0 {
            Route::Through(proxy) => proxy.to_string(),
            Route::Direct | Route::Usual => "direct".to_owned(),
        }
    }
}

/// A URL of which scheme, host and port count.
#[derive(Clone, Debug)]
pub(crate) struct Origin(pub(crate) Url);

impl Text for Origin {
    const FORM: &'static str = "a URL in quotes, such as \"https://example.org/\"";

    fn of(text: &str) -> Result<Self, String> {
        match parse_url(text, None) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Self(url)),
            _ => Err(format!(
                "`{text}` is no origin: write an http or https URL, such as https://example.org/"
            )),
        }
    }

    fn text(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

/// A text that nothing shows.
#[derive(Clone)]
pub(crate) struct Secret(pub(crate) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl Text for Secret {
    const FORM: &'static str = "a text in quotes";

    fn of(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    fn text(&self) -> String {
        if self.0.is_empty() { String::new() } else { "…".to_owned() }
    }
}
