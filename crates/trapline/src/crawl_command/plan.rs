//! From the configuration to the options of the crawl.

use regex::Regex;
use trapline_core::{CanonicalRules, ProfileError};
use trapline_crawl::CrawlOptions;
use trapline_crawl::candidate::{
    HostTerms, LimitOptions, Patterns, QueueOptions, ScopeKind, ScopeRule, TrapOptions,
};
use trapline_crawl::disposition::{PaceOptions, RetryOptions};
use trapline_crawl::strategies::{self, StrategyShelf};
use trapline_frontier::{Frontier, FrontierBuilder, Order};

use super::resume;
use crate::config::sections::strategy::StrategyArgument;
use crate::config::{self, FileConfig};

/// The options of the crawl.
pub(crate) fn crawl_options(config: &FileConfig) -> Result<CrawlOptions, String> {
    let FileConfig { crawl, scope, traps, pace, retry, sitemaps, .. } = config;
    let patterns = patterns(&scope.include, &scope.exclude)?;
    let no_limit = |limit: Option<u32>| limit.map_or(usize::MAX, |limit| limit as usize);
    let agent = config.fetch.user_agent.as_deref().unwrap_or("trapline");
    let named = &config.robots.agents;
    let agents = if named.is_empty() { &[agent.to_owned()][..] } else { named };
    let product = |name: &String| name.split('/').next().unwrap_or(name).to_owned();
    Ok(CrawlOptions {
        scope: match scope.kind {
            config::ScopeKind::Host => ScopeKind::Host,
            config::ScopeKind::Domain => ScopeKind::Domain,
            config::ScopeKind::Prefix => ScopeKind::Prefix,
            config::ScopeKind::Any => ScopeKind::Any,
        },
        scope_rules: scope_rules(config)?,
        embeds: scope.embeds,
        limits: LimitOptions {
            max_depth: scope.max_depth,
            max_hops: no_limit(scope.max_hops),
            max_path_segments: no_limit(scope.max_path_segments),
            max_url_bytes: scope.max_url_bytes.in_memory(),
            max_redirects: scope.max_redirects as usize,
        },
        traps: TrapOptions {
            repeated_segments: traps.repeated_segments as usize,
            calendars: traps.calendar,
            session_ids: traps.session_ids,
        },
        patterns,
        queue: queue_options(config)?,
        pace: PaceOptions {
            delay: pace.delay,
            factor: pace.factor,
            min: pace.min,
            max: pace.max,
            crawl_delay: pace.crawl_delay,
            crawl_delay_max: pace.crawl_delay_max,
            retry_after_max: pace.retry_after_max,
            back_off: pace.backoff,
            back_off_max: pace.backoff_max,
            adaptive: pace.adaptive,
            jitter: pace.jitter,
            burst: pace.burst,
        },
        retry: RetryOptions { max: retry.max, wait: retry.wait, wait_max: retry.wait_max },
        robots: config.robots.policy,
        agents: agents.iter().map(product).collect(),
        sitemaps: sitemaps.follow,
        sitemap_guess: sitemaps.guess,
        sitemaps_max: sitemaps.per_robots_max,
        sitemaps_elsewhere_max: sitemaps.elsewhere_max,
        redirected_seeds: crawl.redirected_seeds,
        log_decisions: scope.log_decisions,
        fingerprint: config.chains.fingerprint,
        solver: config.output.canonical,
        strategy: config.strategy.choice(),
        chains: config.chain_names(),
        concurrency: crawl.concurrency as usize,
        lease: crawl.lease,
        max_pages: crawl.max_pages,
        max_bytes: crawl.max_bytes.map(|size| size.0),
        max_time: crawl.max_time,
        end_when_exhausted: !crawl.pause_at_finish,
        ..CrawlOptions::default()
    })
}

fn scope_rules(config: &FileConfig) -> Result<Vec<ScopeRule>, String> {
    let mut rules = Vec::new();
    for rule in &config.scope.rules {
        let pattern = rule.accept.as_ref().or(rule.reject.as_ref());
        let Some(pattern) = pattern else { continue };
        let mut parsed = ScopeRule::parse(rule.accept.is_some(), &config::Text::text(pattern))
            .map_err(|error| error.to_string())?;
        if let Some(name) = &rule.name {
            parsed.name = name.as_str().into();
        }
        rules.push(parsed);
    }
    Ok(rules)
}

/// Terms of queues.
pub(super) fn queue_options(config: &FileConfig) -> Result<QueueOptions, String> {
    let precedence = Some(config.queue.precedence).filter(|precedence| *precedence != 3);
    Ok(QueueOptions { hosts: host_terms(config)?.into(), by_domain: config.pace.by_domain, precedence })
}

fn patterns(include: &[Regex], exclude: &[Regex]) -> Result<Patterns, String> {
    let texts = |patterns: &[Regex]| -> Vec<String> {
        patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect()
    };
    Patterns::new(&texts(include), &texts(exclude)).map_err(|error| error.to_string())
}

fn host_terms(config: &FileConfig) -> Result<Vec<HostTerms>, String> {
    let scope = &config.scope;
    let terms = config.lists.host.iter().map(|host| {
        let own = host.include.is_some() || host.exclude.is_some();
        let include = host.include.as_ref().unwrap_or(&scope.include);
        let exclude = host.exclude.as_ref().unwrap_or(&scope.exclude);
        Ok(HostTerms {
            hosts: host.hosts.clone(),
            delay: host.delay,
            concurrency: host.per_host,
            budget: host.budget,
            balance: host.balance,
            precedence: host.precedence,
            max_depth: host.max_depth,
            patterns: own.then(|| patterns(include, exclude)).transpose()?,
            robots: host.robots,
            revisit: host.revisit,
            strategy: host.strategy.iter().map(StrategyArgument::pair).collect(),
        })
    });
    terms.collect()
}

/// By which rules two URLs are one page.
pub(crate) fn canonical(config: &FileConfig) -> Result<CanonicalRules, String> {
    config::Text::text(&config.crawl.canonical).parse().map_err(|error: ProfileError| error.to_string())
}

/// Whether the strategy can do with the order of a crawl, which is fixed.
pub(crate) fn check_order(config: &FileConfig, has: Order) -> Result<(), String> {
    let made = StrategyShelf::default().make(&config.strategy.choice()).map_err(|error| error.to_string())?;
    strategies::check_order(&*made, has).map_err(|error| error.to_string())
}

/// The frontier of the crawl, not opened yet.
pub(crate) fn frontier(config: &FileConfig) -> Result<FrontierBuilder, String> {
    Ok(Frontier::builder(&config.crawl.name)
        .settings(resume::settings(config))
        .canonical(canonical(config)?)
        .queue_key(config.queue.key)
        .partitions(config.queue.partitions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_the_configuration_are_those_of_the_crawl() {
        let options = crawl_options(&FileConfig::default()).unwrap();
        assert_eq!(format!("{options:#?}"), format!("{:#?}", CrawlOptions::default()));
    }
}
