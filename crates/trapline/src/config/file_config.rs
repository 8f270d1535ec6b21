//! All options together, as the program reads them: `config.pace.delay`.

use std::time::Duration;

use trapline_crawl::strategies::StrategyShelf;
use trapline_frontier::{Order, Settings};

use super::options::{Options, keys};
use super::sections::{
    Chains, Connect, Cookies, Crawl, Dns, Fetch, Limits, Lists, Log, Output, Pace, Queue, Retry, Robots,
    Scope, Sitemaps, Strategy, Traps,
};

/// The sections, in the order in which people are told of them.
macro_rules! sections {
    ($($name:ident: $kind:ty,)+) => {
        /// What people typed, and the defaults for the rest.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct FileConfig {
            $(pub(crate) $name: $kind,)+
            /// `[[host]]` and `[[credentials]]`.
            pub(crate) lists: Lists,
        }

        impl FileConfig {
            /// The names of all sections.
            pub(crate) const SECTIONS: &'static [&'static str] = &[$(stringify!($name)),+];

            /// A section by its name; the empty name is that of what stands in none.
            pub(crate) fn section(&self, name: &str) -> Option<&dyn Options> {
                $(if name == stringify!($name) {
                    return Some(&self.$name);
                })+
                name.is_empty().then_some(&self.lists as &dyn Options)
            }

            pub(crate) fn section_mut(&mut self, name: &str) -> Option<&mut dyn Options> {
                $(if name == stringify!($name) {
                    return Some(&mut self.$name);
                })+
                if name.is_empty() { Some(&mut self.lists) } else { None }
            }
        }
    };
}

sections! {
    crawl: Crawl,
    scope: Scope,
    traps: Traps,
    strategy: Strategy,
    pace: Pace,
    retry: Retry,
    queue: Queue,
    robots: Robots,
    sitemaps: Sitemaps,
    fetch: Fetch,
    limits: Limits,
    connect: Connect,
    dns: Dns,
    cookies: Cookies,
    chains: Chains,
    output: Output,
    log: Log,
}

impl FileConfig {
    /// The sections that have an option of this name.
    pub(crate) fn sections_with(&self, key: &str) -> Vec<&'static str> {
        let has = |name: &&&str| self.section(name).is_some_and(|section| keys(section).contains(&key));
        Self::SECTIONS.iter().filter(has).copied().collect()
    }

    /// In which order URLs of one class are served: as the strategy wants it, if that matters to it.
    pub(crate) fn order(&self) -> Order {
        let strategy = StrategyShelf::default().make(&self.strategy.choice()).ok();
        strategy.and_then(|strategy| strategy.order()).unwrap_or(self.queue.order)
    }

    /// What the frontier is told of the crawl.
    pub(crate) fn settings(&self) -> Settings {
        let (crawl, pace, queue) = (&self.crawl, &self.pace, &self.queue);
        Settings {
            lease: crawl.lease,
            delay: pace.delay,
            concurrency: pace.per_host,
            order: self.order(),
            pace: pace.counted_from,
            hold_queues: queue.hold,
            balance_replenish: queue.balance,
            queue_budget: queue.budget,
            queue_budget_period: queue.budget_period.filter(|period| *period > Duration::ZERO),
            cost: queue.cost,
            class: queue.class,
            error_penalty: queue.error_penalty,
            max_deliveries: crawl.max_deliveries,
            pause_at_finish: crawl.pause_at_finish,
            max_urls: crawl.max_pages,
            max_bytes: crawl.max_bytes.map(|size| size.0),
            max_time: crawl.max_time,
            // The crawl itself sees to what is different for some hosts; nothing is deeper than the deepest of them.
            max_depth: self.scope.max_depth.map(|usual| {
                let of_hosts = self.lists.host.iter().filter_map(|host| host.max_depth);
                of_hosts.fold(usual, u32::max)
            }),
            max_queue_length: queue.max_length,
            ..Settings::default()
        }
    }
}
