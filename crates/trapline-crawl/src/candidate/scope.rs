//! The scope: which URLs belong to the crawl at all.
//!
//! A list of rules. Each may accept, reject or have no opinion; the last that has one decides.

use std::sync::{Arc, PoisonError, RwLock};

use regex::Regex;
use trapline_core::{SplitUrl, parse_url, registrable_domain};

use super::limits::sitemaps_in_a_row;
use super::{Origin, Prospect};
use crate::chain::{Flow, Rule};
use crate::print_set::PrintSet;
use crate::text_set::TextSet;

/// How far around its seeds a crawl goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScopeKind {
    /// Only hosts that have a seed.
    #[default]
    Host,
    /// All hosts of their registrable domains.
    Domain,
    /// Only what is below a seed's folder.
    Prefix,
    /// Everywhere.
    Any,
}

impl std::str::FromStr for ScopeKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "host" => Self::Host,
            "domain" => Self::Domain,
            "prefix" => Self::Prefix,
            "any" => Self::Any,
            _ => return Err(format!("`{text}` is no scope: write host, domain, prefix or any")),
        })
    }
}

/// One rule of a scope.
#[derive(Clone, Debug)]
pub struct ScopeRule {
    /// Whether what it matches is accepted; otherwise it is rejected.
    pub accepts: bool,
    /// What it matches.
    pub matches: ScopeMatch,
    /// As it is called in logs: how it was written.
    pub name: Arc<str>,
}

/// What a rule of a scope matches.
#[derive(Clone, Debug)]
pub enum ScopeMatch {
    /// Everything.
    All,
    /// What is near a seed, as the scope's kind says.
    Seeds,
    /// A host.
    Host(String),
    /// A host and all hosts below it.
    Domain(String),
    /// URLs that begin so.
    Prefix(String),
    /// URLs in which this is found.
    Regex(Regex),
}

impl ScopeRule {
    /// Reads `host:NAME`, `domain:NAME`, `prefix:URL`, `regex:EXPRESSION` or `all`.
    pub fn parse(accepts: bool, text: &str) -> Result<Self, ScopeError> {
        let wrong = |why: &str| ScopeError { rule: text.to_owned(), why: why.to_owned() };
        let matches = match text.split_once(':') {
            _ if text == "all" => ScopeMatch::All,
            Some(("host", host)) => ScopeMatch::Host(host.to_ascii_lowercase()),
            Some(("domain", domain)) => ScopeMatch::Domain(domain.to_ascii_lowercase()),
            Some(("prefix", url)) => {
                let url =
                    parse_url(url, None).map_err(|_| wrong("what follows `prefix:` is no whole URL"))?;
                ScopeMatch::Prefix(url.into())
            }
            Some(("regex", expression)) => {
                ScopeMatch::Regex(Regex::new(expression).map_err(|error| wrong(&error.to_string()))?)
            }
            _ => return Err(wrong("write host:NAME, domain:NAME, prefix:URL, regex:EXPRESSION or all")),
        };
        let verb = if accepts { "accept" } else { "reject" };
        Ok(Self { accepts, matches, name: format!("{verb} {text}").into() })
    }
}

/// A rule that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{rule}` is no rule of a scope: {why}")]
pub struct ScopeError {
    rule: String,
    why: String,
}

/// Where seeds are. It grows while the crawl goes on, and there may be millions: only what this kind of scope asks for is kept.
#[derive(Debug)]
pub struct SeedPlaces {
    kind: ScopeKind,
    places: RwLock<Places>,
}

#[derive(Debug, Default)]
struct Places {
    hosts: TextSet,
    domains: TextSet,
    /// URLs up to the last slash of their path.
    folders: TextSet,
    /// Of all folders, where they are not kept themselves.
    seen: PrintSet,
}

impl SeedPlaces {
    fn new(kind: ScopeKind) -> Self {
        Self { kind, places: RwLock::default() }
    }

    /// Counts a URL among the seeds. Answers with its place if that is new: the URL up to the last slash of its path.
    pub fn add(&self, url: &SplitUrl) -> Option<String> {
        let host = url.host_str()?;
        let folder = folder(url);
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = match self.kind {
            ScopeKind::Prefix => places.folders.insert(folder),
            _ => places.seen.insert(folder),
        };
        if !is_new {
            return None;
        }
        match self.kind {
            ScopeKind::Host => drop(places.hosts.insert(host)),
            ScopeKind::Domain => drop(places.domains.insert(registrable_domain(host).unwrap_or(host))),
            ScopeKind::Prefix | ScopeKind::Any => {}
        }
        Some(folder.to_owned())
    }

    fn hold(&self, url: &SplitUrl) -> bool {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let host = url.host_str().unwrap_or_default();
        match self.kind {
            ScopeKind::Any => true,
            ScopeKind::Host => places.hosts.contains(host),
            ScopeKind::Domain => places.domains.contains(registrable_domain(host).unwrap_or(host)),
            ScopeKind::Prefix => {
                let text = url.as_str();
                let path_start = url.before_path().len();
                text.match_indices('/')
                    .filter(|(at, _)| *at >= path_start)
                    .any(|(at, _)| places.folders.contains(&text[..=at]))
            }
        }
    }
}

/// A URL up to the last slash of its path.
fn folder(url: &SplitUrl) -> &str {
    let text = url.before_query();
    &text[..text.rfind('/').map_or(text.len(), |at| at + 1)]
}

/// Which URLs belong to the crawl.
pub struct Scope {
    rules: Vec<ScopeRule>,
    /// Where its seeds are.
    pub seeds: Arc<SeedPlaces>,
}

/// What a scope says to a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeDecision {
    /// Whether it belongs to the crawl.
    pub accepted: bool,
    /// The rule that decided.
    pub rule: Arc<str>,
}

/// What one rule of a scope says to a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeVote {
    /// The rule, as it is called in logs.
    pub rule: Arc<str>,
    /// Whether it accepts the URL or rejects it; None if it has no opinion.
    pub accepts: Option<bool>,
}

impl Scope {
    /// What is near the seeds, and then what further rules say.
    pub fn new(kind: ScopeKind, further: Vec<ScopeRule>) -> Self {
        let name = match kind {
            ScopeKind::Host => "accept the seeds' hosts",
            ScopeKind::Domain => "accept the seeds' domains",
            ScopeKind::Prefix => "accept the seeds' folders",
            ScopeKind::Any => "accept all",
        };
        let near = ScopeRule { accepts: true, matches: ScopeMatch::Seeds, name: name.into() };
        let rest = ScopeRule { accepts: false, matches: ScopeMatch::All, name: "reject the rest".into() };
        let mut rules = vec![rest, near];
        rules.extend(further);
        Self { rules, seeds: Arc::new(SeedPlaces::new(kind)) }
    }

    /// The same with the seeds of another scope, as they grow, if both are of one kind.
    #[must_use]
    pub(crate) fn with_seeds_of(self, other: &Self) -> Self {
        if self.seeds.kind == other.seeds.kind {
            return Self { seeds: Arc::clone(&other.seeds), ..self };
        }
        self
    }

    /// What each rule says to a URL, in their order; the last that has an opinion decides.
    pub fn votes(&self, url: &SplitUrl) -> Vec<ScopeVote> {
        let votes = self.rules.iter().map(|rule| ScopeVote {
            rule: Arc::clone(&rule.name),
            accepts: self.fits(&rule.matches, url).then_some(rule.accepts),
        });
        votes.collect()
    }

    /// Whether a URL belongs to the crawl.
    pub fn decide(&self, url: &SplitUrl) -> ScopeDecision {
        let last = self.rules.iter().rev().find(|rule| self.fits(&rule.matches, url));
        last.map_or(ScopeDecision { accepted: false, rule: "no rule".into() }, |rule| ScopeDecision {
            accepted: rule.accepts,
            rule: Arc::clone(&rule.name),
        })
    }

    fn fits(&self, matches: &ScopeMatch, url: &SplitUrl) -> bool {
        let host = url.host_str().unwrap_or_default();
        match matches {
            ScopeMatch::All => true,
            ScopeMatch::Seeds => self.seeds.hold(url),
            ScopeMatch::Host(name) => host == name,
            ScopeMatch::Domain(name) => {
                host == name || host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            ScopeMatch::Prefix(prefix) => url.as_str().starts_with(prefix.as_str()),
            ScopeMatch::Regex(regex) => regex.is_match(url.as_str()),
        }
    }
}

/// Drops what does not belong to the crawl. Seeds make the scope; sitemaps are where robots.txt says, and those that another one lists
/// in the crawl or where that one is.
pub(super) struct InScope(pub(super) Arc<Scope>);

impl Rule<Prospect> for InScope {
    fn name(&self) -> &'static str {
        "scope"
    }

    fn apply(&self, prospect: &mut Prospect) -> Flow {
        if prospect.origin == Origin::Seed || is_named_sitemap(prospect) {
            return Flow::Next;
        }
        let decision = self.0.decide(&prospect.url);
        prospect.scope_rule = Some(Arc::clone(&decision.rule));
        if decision.accepted { Flow::Next } else { prospect.drop("scope", &*decision.rule) }
    }
}

/// Whether it is a sitemap that robots.txt names, or on the same host as the one that lists it.
fn is_named_sitemap(prospect: &Prospect) -> bool {
    let request = &prospect.request;
    prospect.origin == Origin::Sitemap
        && (sitemaps_in_a_row(&request.hop_path) == 1
            || request
                .via
                .as_deref()
                .and_then(|via| SplitUrl::parse(via).ok())
                .is_some_and(|via| via.host_and_port() == prospect.url.host_and_port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> SplitUrl {
        SplitUrl::parse(text).unwrap()
    }

    #[test]
    fn kinds_reach_so_far_around_a_seed() {
        let check = |kind: ScopeKind, accepted: &[&str], rejected: &[&str]| {
            let scope = Scope::new(kind, Vec::new());
            scope.seeds.add(&url("https://www.a.example.org/docs/index.html?q"));
            for (urls, expected) in [(accepted, true), (rejected, false)] {
                for text in urls {
                    assert_eq!(scope.decide(&url(text)).accepted, expected, "{kind:?} {text}");
                }
            }
        };
        check(
            ScopeKind::Host,
            &["https://www.a.example.org/x", "http://www.a.example.org:8080/"],
            &["https://a.example.org/", "https://www.a.example.org.evil.test/"],
        );
        check(
            ScopeKind::Domain,
            &["https://example.org/", "http://b.example.org/"],
            &["https://example.com/", "https://notexample.org/"],
        );
        check(
            ScopeKind::Prefix,
            &["https://www.a.example.org/docs/", "https://www.a.example.org/docs/a/b?c"],
            &[
                "https://www.a.example.org/",
                "https://www.a.example.org/docs2/",
                "http://www.a.example.org/docs/",
            ],
        );
        check(ScopeKind::Any, &["https://elsewhere.test/"], &[]);
    }

    #[test]
    fn a_place_is_new_once_whatever_the_kind() {
        for kind in [ScopeKind::Host, ScopeKind::Domain, ScopeKind::Prefix, ScopeKind::Any] {
            let seeds = Scope::new(kind, Vec::new()).seeds;
            let added = [
                "http://a.test/",
                "http://a.test/x",
                "http://a.test/x/y",
                "http://a.test/x/",
                "http://b.test/",
            ]
            .map(|text| seeds.add(&url(text)));
            let new = |text: &str| Some(text.to_owned());
            let expected =
                [new("http://a.test/"), None, new("http://a.test/x/"), None, new("http://b.test/")];
            assert_eq!(added, expected, "{kind:?}");
        }
    }

    #[test]
    fn millions_of_seeds_take_a_hundred_bytes_each_at_most() {
        for kind in [ScopeKind::Host, ScopeKind::Domain, ScopeKind::Prefix, ScopeKind::Any] {
            let seeds = Scope::new(kind, Vec::new()).seeds;
            for number in 0..100_000 {
                seeds.add(&url(&format!("https://www.site-{number}.org/welcome/index.html")));
            }
            let places = seeds.places.read().unwrap();
            let bytes =
                places.hosts.bytes() + places.domains.bytes() + places.folders.bytes() + places.seen.bytes();
            assert!(bytes <= 100 * 100_000, "{kind:?}: {bytes}");
        }
    }

    #[test]
    fn the_last_rule_that_decides_wins() {
        let rules = [
            (true, "domain:cdn.test"),
            (false, "prefix:https://a.test/private/"),
            (true, r"regex:/private/open\b"),
            (false, "host:bad.cdn.test"),
        ];
        let rules = rules.map(|(accepts, text)| ScopeRule::parse(accepts, text).unwrap());
        let scope = Scope::new(ScopeKind::Host, rules.to_vec());
        scope.seeds.add(&url("https://a.test/"));
        for (text, accepted, rule) in [
            ("https://a.test/x", true, "accept the seeds' hosts"),
            ("https://b.test/x", false, "reject the rest"),
            ("https://x.cdn.test/", true, "accept domain:cdn.test"),
            ("https://bad.cdn.test/", false, "reject host:bad.cdn.test"),
            ("https://a.test/private/x", false, "reject prefix:https://a.test/private/"),
            ("https://a.test/private/open", true, r"accept regex:/private/open\b"),
        ] {
            assert_eq!(scope.decide(&url(text)), ScopeDecision { accepted, rule: rule.into() }, "{text}");
            let votes = scope.votes(&url(text));
            let last = votes.iter().rfind(|vote| vote.accepts.is_some()).unwrap();
            assert_eq!((&*last.rule, last.accepts, votes.len()), (rule, Some(accepted), 6), "{text}");
        }
    }

    #[test]
    fn a_bad_rule_is_refused_with_what_would_fit() {
        let message = |text: &str| ScopeRule::parse(true, text).unwrap_err().to_string();
        assert_eq!(
            message("hsot:a"),
            "`hsot:a` is no rule of a scope: write host:NAME, domain:NAME, prefix:URL, regex:EXPRESSION or all"
        );
        assert!(message("regex:(").starts_with("`regex:(` is no rule of a scope: "));
        assert!(message("prefix:/x").contains("no whole URL"));
    }
}
