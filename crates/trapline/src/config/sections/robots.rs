//! `[robots]` and `[sitemaps]`: what hosts say about themselves.

use std::time::Duration;

use trapline_crawl::RobotsPolicy;

use crate::config::options::options;
use crate::config::texts::Size;

options! {
    /// robots.txt. A host without the file allows everything; one whose file cannot be had allows nothing for a while.
    Robots {
        /// How much is given on what hosts and pages say to robots: `obey` (robots.txt, and pages and links that ask not to follow
        /// them), `robots_txt` (that file alone), `most_favored` (as `obey`, but what any of `agents` may do is done) or `ignore`
        /// (nothing, which is impolite, and in places unlawful). Defaults to obey.
        policy: RobotsPolicy = RobotsPolicy::Obey;
        /// By which names the crawler goes in robots.txt, the most specific one first. Defaults to none: the product in
        /// `fetch.user_agent`.
        agents: Vec<String> = Vec::new();
        /// How long a file is believed, at most 1d. Defaults to 1d.
        lifetime: Duration = Duration::from_secs(86_400);
        /// How long nothing is fetched from a host after the file could not be had; twice as long after each further time. Defaults
        /// to 1m.
        failure_wait: Duration = Duration::from_secs(60);
        /// The longest such wait. Defaults to 4h.
        failure_wait_max: Duration = Duration::from_secs(4 * 3600);
        /// How long fetching the file may take, redirects included. Defaults to 1m.
        timeout: Duration = Duration::from_secs(60);
        /// How many redirects are followed to the file. Defaults to 5.
        redirects_max: u32 = 5;
        /// How much of a file is read. Defaults to 500KiB.
        bytes_max: Size = Size::kib(500);
        /// How many hosts' files are kept in memory; the rest are in the store. Defaults to 20000.
        hosts_max: usize = 20_000;
        /// How much memory they may take altogether. Defaults to 64MiB.
        memory_bytes_max: Size = Size::mib(64);
    }
}

options! {
    /// Sitemaps: lists of pages that hosts publish.
    Sitemaps {
        /// Whether the sitemaps that robots.txt names are fetched, and what they list. Defaults to true.
        follow: bool = true;
        /// Whether `/sitemap.xml` is tried where robots.txt names none. Defaults to true.
        guess: bool = true;
        /// How many sitemaps of one robots.txt are read. Defaults to 1000.
        per_robots_max: usize = 1000;
        /// How many of them may be elsewhere: neither in scope nor of the same registrable domain as the robots.txt. A host may keep
        /// its sitemaps with somebody else, but not make us a burden to anybody. Defaults to 10.
        elsewhere_max: usize = 10;
    }
}
