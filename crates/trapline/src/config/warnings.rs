//! What may be meant, and had better be told all the same: a crawl that is less polite, or goes further, than one expects.

use trapline_crawl::RobotsPolicy;

use super::file_config::FileConfig;
use super::sections::{HostOverride, ScopeKind};

impl FileConfig {
    /// What is told at the start of a crawl, and by `config --check`.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let lacks = |chain: &Option<Vec<String>>, part: &str| {
            chain.as_ref().is_some_and(|names| !names.iter().any(|name| name == part))
        };
        let (chains, mut warnings) = (&self.chains, Vec::new());
        let mut warn = |holds: bool, what: &str| warnings.extend(holds.then(|| what.to_owned()));
        let ignores = self.robots.policy == RobotsPolicy::Ignore;
        warn(ignores, "robots.txt is IGNORED: do this on servers of your own only");
        for host in self.lists.host.iter().filter(|host| host.robots == Some(RobotsPolicy::Ignore)) {
            let warning =
                format!("robots.txt of {} is IGNORED: do this on servers of your own only", host.hosts);
            warn(!ignores, &warning);
        }
        warn(
            !ignores && lacks(&chains.fetch, "robots"),
            "robots.txt is IGNORED, because chains.fetch has no `robots`: do this on servers of your own only",
        );
        let bounded = !matches!(self.scope.kind, ScopeKind::Any) || !self.scope.rules.is_empty();
        let [taken, fetched] =
            [&chains.candidate, &chains.fetch].map(|chain| bounded && lacks(chain, "scope"));
        warn(
            taken && fetched,
            "the scope is IGNORED, because neither chains.candidate nor chains.fetch has `scope`: whatever is linked to is fetched",
        );
        warn(
            taken && !fetched,
            "chains.candidate has no `scope`: all links wait to be fetched, and those out of scope are dropped only when their turn \
             has come",
        );
        warn(
            lacks(&chains.disposition, "pace"),
            "Crawl-delay, Retry-After and 429 are IGNORED, because chains.disposition has no `pace`: hosts are left alone for their \
             delay, and no longer",
        );
        let has_terms = self.lists.host.iter().any(|host| {
            host.delay.is_some()
                || host.per_host.is_some()
                || host.budget.is_some()
                || host.balance.is_some()
                || host.precedence.is_some()
        });
        warn(
            (has_terms || self.pace.by_domain) && lacks(&chains.candidate, "queue"),
            "delays, budgets and the like of [[host]], and pace.by_domain, are IGNORED, because chains.candidate has no `queue`",
        );
        let mut own = |part: &str, what: &str, has: fn(&HostOverride) -> bool| {
            if lacks(&chains.candidate, part) && self.lists.host.iter().any(has) {
                let warning =
                    format!("{what} of [[host]] are IGNORED, because chains.candidate has no `{part}`");
                warnings.push(warning);
            }
        };
        own("limits", "depths", |host| host.max_depth.is_some());
        own("patterns", "include and exclude", |host| host.include.is_some() || host.exclude.is_some());
        warnings
    }
}
