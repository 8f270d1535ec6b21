//! `[scope]` and `[traps]`: which URLs are wanted.

use regex::Regex;
use trapline_core::parse_url;

use crate::config::options::{entry, options, write_entry};
use crate::config::reading::{Given, Reading};
use crate::config::texts::{Size, choice};
use crate::config::value::{Text, Value};

options! {
    /// Which URLs belong to the crawl. First `kind` decides, then each of `rules` in turn; the last that has something to say
    /// wins. What is left must also keep within the limits, and pass `include` and `exclude`.
    Scope {
        /// What of the seeds' sites belongs to the crawl: `host` (the seeds' hosts), `domain` (all hosts of their registrable
        /// domains), `prefix` (what lies below the seeds' folders) or `any` (everything). Defaults to host.
        kind: ScopeKind = ScopeKind::Host;
        /// Further rules, in order: `{ accept = "host:a.example" }`, `{ reject = "prefix:https://a.example/private/" }`. What they look for is
        /// written `host:NAME`, `domain:NAME` (all its hosts), `prefix:URL` or `regex:PATTERN`. A `name` stands for the rule in
        /// logs. Defaults to none.
        rules: Vec<ScopeRule> = Vec::new();
        /// How many links a page may be away from its seed; 0 for the seeds alone. Defaults to none.
        max_depth: Option<u32> = None;
        /// How many steps of any kind a URL may be away from its seed: links, redirects, embedded files. Defaults to 100.
        max_hops: Option<u32> = Some(100);
        /// How many redirects may follow one another. Defaults to 10.
        max_redirects: u32 = 10;
        /// How many segments a path may have; longer ones are mostly traps. Defaults to 30.
        max_path_segments: Option<u32> = Some(30);
        /// How long a URL may be. Defaults to 2083B.
        max_url_bytes: Size = Size(2083);
        /// Regular expressions; a URL must match one of them, if there are any. Seeds are fetched whatever they look like.
        /// Defaults to none.
        include: Vec<Regex> = Vec::new();
        /// Regular expressions; a URL that matches one of them is not fetched. Defaults to none.
        exclude: Vec<Regex> = Vec::new();
        /// Whether what pages are made of is fetched too: images, scripts, style sheets. Defaults to false.
        embeds: bool = false;
        /// Whether every decision is logged, with the rule that made it, at the level `debug`. Defaults to false.
        log_decisions: bool = false;
    }
}

choice! {
    /// What of the seeds' sites belongs to the crawl.
    ScopeKind: "host, domain, prefix or any, in quotes" {
        Host = "host",
        Domain = "domain",
        Prefix = "prefix",
        Any = "any",
    }
}

options! {
    /// A rule of the scope: what to look for, and whether to take it or leave it.
    ScopeRule {
        /// What logs call it. Defaults to none: the rule itself.
        name: Option<String> = None;
        /// URLs that belong to the crawl. Defaults to none.
        accept: Option<ScopePattern> = None;
        /// URLs that do not. Defaults to none.
        reject: Option<ScopePattern> = None;
    }
}

impl Value for ScopeRule {
    fn read(value: &Given<'_>, reading: &mut Reading<'_>) -> Option<Self> {
        entry(value, reading, &[], |rule: &Self| match (&rule.accept, &rule.reject) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => Err("a rule has either `accept` or `reject`"),
        })
    }

    fn write(&self) -> String {
        write_entry(self, &[])
    }
}

/// What a rule looks for.
#[derive(Clone, Debug)]
pub(crate) enum ScopePattern {
    /// One host, as URLs write it.
    Host(String),
    /// A domain and all hosts below it, as URLs write them.
    Domain(String),
    /// URLs that begin like this.
    Prefix(String),
    /// URLs that match.
    Regex(Regex),
}

impl Text for ScopePattern {
    const FORM: &'static str =
        "host:NAME, domain:NAME, prefix:URL or regex:PATTERN in quotes, such as \"domain:example.org\"";

    fn of(text: &str) -> Result<Self, String> {
        let host = |name: &str| match parse_url(&format!("http://{name}/"), None) {
            Ok(url) if url.path() == "/" && url.username().is_empty() && url.port().is_none() => {
                Ok(url.host_str().unwrap_or_default().to_owned())
            }
            _ => Err(format!("`{name}` is not a host: write its name alone, such as example.org")),
        };
        match text.split_once(':') {
            Some(("host", name)) => host(name).map(Self::Host),
            Some(("domain", name)) => host(name.trim_start_matches("*.")).map(Self::Domain),
            Some(("prefix", prefix)) => match parse_url(prefix, None) {
                Ok(url) if url.has_host() => Ok(Self::Prefix(url.into())),
                _ => Err(format!(
                    "`{prefix}` is not the beginning of a URL: write it with its scheme and host, such as https://a.example/docs/"
                )),
            },
            Some(("regex", pattern)) => Regex::of(pattern).map(Self::Regex),
            _ => Err(format!("`{text}` does not say what to look for: write {}", Self::FORM)),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Host(name) => format!("host:{name}"),
            Self::Domain(name) => format!("domain:{name}"),
            Self::Prefix(url) => format!("prefix:{url}"),
            Self::Regex(pattern) => format!("regex:{pattern}"),
        }
    }
}

options! {
    /// What keeps a crawl out of places without end.
    Traps {
        /// How often one segment, or a run of segments, may follow itself in a path, as in `/a/b/a/b/a/b`; 0 for any number.
        /// Defaults to 3.
        repeated_segments: u32 = 3;
        /// Whether pages of calendars are left out that are far from the years in which there was a web. Defaults to true.
        calendar: bool = true;
        /// Whether URLs are left out that carry a session in their path, as in `;jsessionid=`. Defaults to true.
        session_ids: bool = true;
    }
}
