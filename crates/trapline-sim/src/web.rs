//! A generated web: hosts of very different sizes, pages that link within their host and to others, and the
//! troubles a crawler meets: pages gone, moved, broken or disallowed, hosts slow or down.
//!
//! Only the hosts are kept. A page is worked out from the seed and its number whenever it is asked for, so a web of
//! millions of pages costs no more than its hosts. Nothing here remembers what was fetched.

use std::time::Duration;

use trapline_core::Timestamp;

use crate::ending::Ending;
use crate::host::Host;
use crate::random::Random;
use crate::shape::Role;
use crate::trap;

// What is drawn for a page, each from a sequence of its own.
const ANSWER: u64 = 2;
const LINKS: u64 = 3;
const CONTENT: u64 = 4;

/// What a host that is down says about when to come back.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// How large a web is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSize {
    /// Hosts. Defaults to 100.
    pub hosts: u32,
    /// Pages on all hosts together, at least one each. Defaults to 10,000.
    pub pages: u32,
}

impl Default for WebSize {
    fn default() -> Self {
        Self { hosts: 100, pages: 10_000 }
    }
}

/// A web. The same seed and size make the same web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Web {
    seed: u64,
    size: WebSize,
    /// By falling size: host n has about 1/n of the pages of the first.
    hosts: Vec<Host>,
    /// Pages that change do so within minutes.
    is_restless: bool,
}

/// A page, by its number on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The host's index.
    pub host: u32,
    /// 0 is the home page.
    pub number: u32,
}

/// What a fetch came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// How long it took. Nothing for a disallowed page, of which nothing was requested.
    pub took: Duration,
    /// What came back.
    pub response: Response,
}

/// What comes back for a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The page.
    Page {
        /// Its size.
        bytes: u64,
        /// Its content, which changes with time on some pages.
        digest: u64,
        /// Where it leads, page by page and as written there: repeated, or with a fragment.
        links: Vec<String>,
    },
    /// It is elsewhere.
    Redirect {
        /// There.
        to: String,
    },
    /// There is no such page.
    NotFound,
    /// The page fails, whenever it is asked for.
    Broken,
    /// The host is down at present.
    Unavailable {
        /// When it wants to be asked again.
        retry_after: Duration,
    },
    /// Robots say no.
    Disallowed,
}

impl Response {
    /// How a page that answers so ends; None if that cannot be said yet.
    pub fn ending(&self) -> Option<Ending> {
        match self {
            Self::Page { .. } => Some(Ending::Fetched),
            Self::Redirect { .. } => Some(Ending::Redirected),
            Self::NotFound => Some(Ending::NotFound),
            Self::Broken => Some(Ending::Broken),
            Self::Disallowed => Some(Ending::Disallowed),
            Self::Unavailable { .. } => None,
        }
    }
}

impl Web {
    /// Makes a web.
    ///
    /// # Panics
    /// If there is no host, or there are fewer pages than hosts.
    pub fn generate(seed: u64, size: WebSize) -> Self {
        assert!(size.hosts > 0, "a web has at least one host");
        assert!(size.pages >= size.hosts, "every host has at least a home page");
        // Each host has its home page; what is left is dealt out in proportion to 1/rank, in whole numbers, which are the
        // same on every machine.
        let share = |rank: u32| (1u64 << 32) / u64::from(rank);
        let shares: u64 = (1..=size.hosts).map(share).sum();
        let dealt = u128::from(size.pages - size.hosts);
        let mut passed = 0;
        let mut first = 0;
        let hosts = (0..size.hosts).map(|index| {
            passed += share(index + 1);
            let below = dealt * u128::from(passed) / u128::from(shares);
            let end = index + 1 + u32::try_from(below).expect("no more than were to be dealt out");
            let host = Host::generate(seed, index, first, end - first);
            first = end;
            host
        });
        Self { seed, size, hosts: hosts.collect(), is_restless: false }
    }

    /// A web that is harder to crawl: some of its hosts die, some have a trap that never ends, and pages that change do so
    /// within minutes.
    ///
    /// # Panics
    /// As [`Web::generate`].
    pub fn wild(seed: u64, size: WebSize) -> Self {
        let web = Self::generate(seed, size);
        let hosts = web.hosts.into_iter().map(|host| host.wild(seed)).collect();
        Self { hosts, is_restless: true, ..web }
    }

    /// Its hosts, the largest first.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// How many pages it has.
    pub fn pages(&self) -> usize {
        self.size.pages as usize
    }

    /// Where a crawl of it starts: the home pages of every tenth host.
    pub fn seeds(&self) -> impl Iterator<Item = String> + '_ {
        (0..self.size.hosts).step_by(10).map(|host| self.url(Page { host, number: 0 }))
    }

    /// The URL of a page.
    pub fn url(&self, page: Page) -> String {
        let host = &self.hosts[page.host as usize];
        let (name, number) = (host.name(), page.number);
        match host.shape().role(number) {
            Role::Home => format!("https://{name}/"),
            Role::Topic => format!("https://{name}/topic/{number}"),
            Role::Leaf => format!("https://{name}/page/{number}"),
            Role::Archive => format!("https://{name}/archive/{number}"),
        }
    }

    /// The page of a URL, if it has one.
    pub fn find(&self, url: &str) -> Option<Page> {
        let url = url.split('#').next().unwrap_or_default();
        let (name, path) = url.strip_prefix("https://")?.split_once('/')?;
        let host = Host::index_of(name)?;
        let number = if path.is_empty() { 0 } else { path.rsplit('/').next()?.parse().ok()? };
        let page = Page { host, number };
        (number < self.hosts.get(host as usize)?.pages() && self.url(page) == url).then_some(page)
    }

    /// The number of a page, counting through all hosts.
    pub(crate) fn ordinal(&self, page: Page) -> usize {
        self.hosts[page.host as usize].first as usize + page.number as usize
    }

    /// Fetches a URL at a time. A pure function: the same arguments bring the same page in the same time.
    pub fn fetch(&self, url: &str, at: Timestamp, random: &mut Random) -> Fetched {
        let Some(page) = self.find(url) else {
            if let Some((host, links)) = self.trapped(url) {
                let response = Response::Page { bytes: 1_000, digest: 0, links };
                return Fetched { took: host.latency(random), response };
            }
            return Fetched { took: Duration::from_millis(100), response: Response::NotFound };
        };
        let host = &self.hosts[page.host as usize];
        match self.look(page, at) {
            response @ Response::Disallowed => Fetched { took: Duration::ZERO, response },
            _ if host.is_down(at) => Fetched {
                took: host.latency(random),
                response: Response::Unavailable { retry_after: RETRY_AFTER },
            },
            response => Fetched { took: host.latency(random), response },
        }
    }

    /// Where a page of a host's trap leads.
    fn trapped(&self, url: &str) -> Option<(&Host, Vec<String>)> {
        let (name, path) = url.strip_prefix("https://")?.split_once('/')?;
        let host = self.hosts.get(Host::index_of(name)? as usize).filter(|host| host.has_trap())?;
        Some((host, trap::links(name, trap::day_of(path)?)))
    }

    /// What a page would answer if its host were never down.
    pub(crate) fn look(&self, page: Page, at: Timestamp) -> Response {
        // Home pages are always there, and so are archives: a chain would soon be cut.
        let steady =
            matches!(self.hosts[page.host as usize].shape().role(page.number), Role::Home | Role::Archive);
        let mut random = self.drawn_for(page, ANSWER);
        match random.range(0..100) {
            0..4 if !steady => Response::NotFound,
            4..8 if !steady => Response::Redirect { to: self.url(self.some_page(page, &mut random)) },
            8..11 if !steady => Response::Disallowed,
            11..12 if !steady => Response::Broken,
            _ => self.content(page, at),
        }
    }

    fn content(&self, page: Page, at: Timestamp) -> Response {
        let mut random = self.drawn_for(page, CONTENT);
        let bytes = random.range(2_000..60_000);
        // A third of the pages change, some every few minutes, some once a month; in a restless web from every second on.
        let unit = if self.is_restless { 250 } else { 60_000 };
        let every_ms = if random.chance(1, 3) { unit << random.range(2..16) } else { u64::MAX };
        let version = at.as_millis() / every_ms;
        let digest = Random::of(&[random.draw(), version]).draw();
        Response::Page { bytes, digest, links: self.links(page) }
    }

    fn links(&self, page: Page) -> Vec<String> {
        let host = &self.hosts[page.host as usize];
        let shape = host.shape();
        let mut random = self.drawn_for(page, LINKS);
        let mut to: Vec<Page> = Vec::new();
        let here = [0, shape.parent(page.number)].into_iter().chain(shape.children(page.number));
        to.extend(here.map(|number| Page { number, ..page }));
        for _ in 0..random.range(0..4) {
            to.push(self.page_of(page.host, &mut random));
        }
        // Home pages know more of the rest of the world than others do.
        let elsewhere = if page.number == 0 { random.range(4..8) } else { random.range(0..3) };
        for _ in 0..elsewhere {
            to.push(self.page_elsewhere(&mut random));
        }
        let mut url = |page: Page| {
            let url = self.url(page);
            if random.chance(1, 20) { url + "#more" } else { url }
        };
        let mut links: Vec<String> = to.into_iter().map(&mut url).collect();
        if page.number == 0 && host.has_trap() {
            links.push(trap::first_day(&host.name()));
        }
        links
    }

    /// A page to be redirected to: mostly of the same host.
    fn some_page(&self, from: Page, random: &mut Random) -> Page {
        if random.chance(4, 5) { self.page_of(from.host, random) } else { self.page_elsewhere(random) }
    }

    /// Any page of a host.
    fn page_of(&self, host: u32, random: &mut Random) -> Page {
        let pages = u64::from(self.hosts[host as usize].pages());
        Page { host, number: to_u32(random.range(0..pages)) }
    }

    /// Any page of the web, or more often its host's home page: large hosts are linked to as much as they are large.
    fn page_elsewhere(&self, random: &mut Random) -> Page {
        let ordinal = to_u32(random.range(0..u64::from(self.size.pages)));
        let host = self.hosts.partition_point(|host| host.first <= ordinal) - 1;
        let number = if random.chance(7, 10) { 0 } else { ordinal - self.hosts[host].first };
        Page { host: to_u32(host as u64), number }
    }

    fn drawn_for(&self, page: Page, what: u64) -> Random {
        Random::of(&[self.seed, what, u64::from(page.host), u64::from(page.number)])
    }
}

/// A number that was drawn below, or found among, what `u32` counts.
fn to_u32(number: u64) -> u32 {
    u32::try_from(number).expect("hosts and pages are counted by u32")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::walk;

    const SMALL: WebSize = WebSize { hosts: 20, pages: 1_000 };

    #[test]
    fn a_seed_makes_one_web() {
        assert_eq!(Web::generate(1, SMALL), Web::generate(1, SMALL));
        assert_ne!(Web::generate(1, SMALL), Web::generate(2, SMALL));
        assert_ne!(walk(&Web::generate(1, SMALL)), walk(&Web::generate(2, SMALL)));
    }

    #[test]
    fn pages_are_dealt_out_by_a_power_law() {
        for (hosts, pages) in [(1, 1), (1, 50), (7, 7), (3, 4), (100, 10_000), (1_000, 1_500)] {
            let web = Web::generate(1, WebSize { hosts, pages });
            let sizes: Vec<u32> = web.hosts().iter().map(Host::pages).collect();
            assert_eq!(sizes.iter().sum::<u32>(), pages, "{hosts} hosts");
            assert!(sizes.iter().all(|size| *size >= 1), "{sizes:?}");
        }
        let sizes: Vec<u32> = Web::generate(1, WebSize::default()).hosts().iter().map(Host::pages).collect();
        assert_eq!((sizes[0], sizes[1], sizes[9], sizes[99]), (1_909, 955, 191, 21));
    }

    #[test]
    fn every_page_is_found_by_its_url() {
        let web = Web::generate(1, SMALL);
        for (host, of) in (0..).zip(web.hosts()) {
            for number in 0..of.pages() {
                let page = Page { host, number };
                let url = web.url(page);
                assert_eq!(web.find(&url), Some(page), "{url}");
                assert_eq!(web.find(&(url + "#more")), Some(page));
            }
        }
        for stranger in [
            "",
            "https://otter0.example",
            "https://otter0.example/page/1",
            "https://otter0.example/page/100000",
            "https://otter20.example/",
            "https://marten0.example/",
            "http://otter0.example/",
        ] {
            assert_eq!(web.find(stranger), None, "{stranger}");
            let fetched = web.fetch(stranger, Timestamp::ZERO, &mut Random::new(1));
            assert_eq!(fetched.response, Response::NotFound);
        }
    }

    #[test]
    fn the_walk_reaches_nearly_everything_and_meets_every_trouble() {
        let reach = walk(&Web::generate(1, WebSize::default()));
        assert_eq!(reach.hosts, 100);
        assert!((9_500..=10_000).contains(&reach.endings.total()), "{reach:?}");
        for ending in Ending::ALL {
            assert!(reach.endings.of(ending) > 50, "{ending}: {reach:?}");
        }
    }

    #[test]
    fn a_fetch_depends_on_its_arguments_only() {
        let web = Web::generate(1, SMALL);
        let at = Timestamp::from_millis(5_000_000);
        for url in web.seeds() {
            let (mut one, mut other) = (Random::new(4), Random::new(4));
            assert_eq!(web.fetch(&url, at, &mut one), web.fetch(&url, at, &mut other));
            assert_eq!(one, other);
        }
    }

    #[test]
    fn some_pages_change_and_some_do_not() {
        let web = Web::generate(1, SMALL);
        let digest = |number, day: u64| match web
            .look(Page { host: 0, number }, Timestamp::from_millis(day * 86_400_000))
        {
            Response::Page { digest, .. } => Some(digest),
            _ => None,
        };
        let changed =
            (0..web.hosts()[0].pages()).filter(|number| digest(*number, 0) != digest(*number, 30)).count();
        assert!((40..160).contains(&changed), "{changed} of {}", web.hosts()[0].pages());
        assert_eq!(digest(0, 1), digest(0, 1));
    }
}
