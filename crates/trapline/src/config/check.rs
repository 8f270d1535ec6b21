//! What options say together, and cannot mean.

use std::fmt::Display;
use std::time::Duration;

use trapline_crawl::candidate::{HostPolicies, HostTerms};
use trapline_crawl::strategies::{Strategies, StrategyShelf};
use trapline_crawl::{RobotsPolicy, StrategyError};

use super::layers::Loaded;
use super::reading::{Mistake, Source};
use super::sections::strategy::StrategyArgument;
use super::value::Value;
use crate::crawl_command::endpoint_url;

/// Mistakes that are none of a value alone. Options that have one already are left out.
pub(super) fn check(loaded: &Loaded, known: &[String]) -> Vec<Mistake> {
    let config = &loaded.config;
    let mut found = Found { loaded, known, mistakes: Vec::new() };
    found.order(("pace.min", config.pace.min), ("pace.max", config.pace.max));
    found.order(("pace.backoff", config.pace.backoff), ("pace.backoff_max", config.pace.backoff_max));
    found.order(("retry.wait", config.retry.wait), ("retry.wait_max", config.retry.wait_max));
    found.order(
        ("robots.failure_wait", config.robots.failure_wait),
        ("robots.failure_wait_max", config.robots.failure_wait_max),
    );
    found.order(("dns.ttl_min", config.dns.ttl_min), ("dns.ttl_max", config.dns.ttl_max));
    found.order(
        ("dns.negative_ttl_min", config.dns.negative_ttl_min),
        ("dns.negative_ttl_max", config.dns.negative_ttl_max),
    );
    found.some("crawl.concurrency", config.crawl.concurrency > 0, "fetch at least one page at a time");
    found.some("crawl.lease", !config.crawl.lease.is_zero(), "a lease takes some time");
    found.some("pace.burst", config.pace.burst > 0, "at least one fetch begins at a time");
    found.some(
        "queue.budget_period",
        config.queue.budget_period.is_none_or(|period| !period.is_zero()),
        "a period takes some time; write \"none\" for no period",
    );
    found.some("queue.balance", config.queue.balance > 0, "a queue that may spend nothing is never served");
    found.some("queue.partitions", config.queue.partitions > 0, "hosts stand in one line at least");
    let favors = |policy| policy == RobotsPolicy::MostFavored;
    let choosing = "name those to choose from in robots.agents";
    let has_names = !config.robots.agents.is_empty();
    found.some("robots.policy", has_names || !favors(config.robots.policy), choosing);
    let of_hosts = config.lists.host.iter().any(|host| host.robots.is_some_and(favors));
    found.some("host", has_names || !of_hosts, choosing);
    found.some(
        "log.otlp_sample",
        (0.0..=1.0).contains(&config.log.otlp_sample),
        "a part of all is between 0 and 1; 0.01 is one in a hundred",
    );
    if let Some(Err(wrong)) = config.log.otlp.as_deref().map(endpoint_url) {
        found.wrong("log.otlp", wrong);
    }
    found.some("crawl.name", !config.crawl.name.is_empty(), "a crawl needs a name");
    for error in config.chain_names().mistakes() {
        found.wrong(&format!("chains.{}", error.chain()), error);
    }
    found.strategy();
    if found.mistakes.is_empty() && known.is_empty() {
        found.fetching();
    }
    found.mistakes
}

struct Found<'l> {
    loaded: &'l Loaded,
    known: &'l [String],
    mistakes: Vec<Mistake>,
}

impl Found<'_> {
    fn order(&mut self, least: (&str, Duration), most: (&str, Duration)) {
        if least.1 <= most.1 {
            return;
        }
        // Who chose only one of them is told of that one.
        let (blamed, message) = match self.loaded.source(most.0) {
            Source::Default => (least.0, format!("it is above {} = {}", most.0, most.1.write())),
            _ => (most.0, format!("it is below {} = {}", least.0, least.1.write())),
        };
        self.wrong(blamed, message);
    }

    fn some(&mut self, option: &str, holds: bool, otherwise: &str) {
        if !holds {
            self.wrong(option, otherwise);
        }
    }

    /// Whether the strategy does, and the order for it.
    fn strategy(&mut self) {
        let config = &self.loaded.config;
        let told = config.lists.host.iter().map(|host| HostTerms {
            hosts: host.hosts.clone(),
            strategy: host.strategy.iter().map(StrategyArgument::pair).collect(),
            ..HostTerms::default()
        });
        let told = HostPolicies::from(told.collect::<Vec<_>>());
        match Strategies::new(&StrategyShelf::default(), &config.strategy.choice(), &told) {
            Err(error @ StrategyError::Argument { .. }) => self.wrong("strategy.args", error),
            Err(error @ StrategyError::Host { .. }) => self.wrong("host", error),
            Err(error) => self.wrong("strategy.name", error),
            Ok(strategies) => {
                let strategy = strategies.usual();
                let chosen = *self.loaded.source("queue.order") != Source::Default;
                let wanted = strategy.order().filter(|order| chosen && *order != config.queue.order);
                if let Some(wanted) = wanted {
                    let message = format!("the strategy `{}` needs {}", strategy.name(), wanted.write());
                    self.wrong("queue.order", message);
                }
            }
        }
    }

    /// Whether a fetcher can be made of it.
    fn fetching(&mut self) {
        use trapline_fetch::FetcherError;
        let options = match self.loaded.config.fetch_options() {
            Ok(options) => options,
            Err((option, message)) => return self.wrong(option, message),
        };
        let Err(error) = trapline_fetch::Fetcher::new(options) else { return };
        let option = match &error {
            FetcherError::Dialer(trapline_fetch::DialerError::Guard(_)) => "fetch.nat64_prefixes",
            FetcherError::Dialer(_) => "fetch.roots",
            FetcherError::UserAgent(_) => "fetch.user_agent",
            FetcherError::HeaderForAll(_) | FetcherError::OwnHeader(_) => {
                if self.loaded.config.lists.host.iter().any(|host| !host.headers.is_empty()) {
                    "host"
                } else {
                    "fetch.headers"
                }
            }
            FetcherError::Origin(_) => "credentials",
        };
        self.wrong(option, error);
    }

    fn wrong(&mut self, option: &str, message: impl Display) {
        if !self.known.iter().any(|known| known == option) {
            let source = self.loaded.source(option).clone();
            self.mistakes.push(Mistake { source, option: option.to_owned(), message: message.to_string() });
        }
    }
}
