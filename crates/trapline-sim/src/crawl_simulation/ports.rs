//! A generated web as a crawl sees it: pages, robots.txt, and a place for results. It also watches, as hosts would, whether
//! the crawl is polite.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::{Timestamp, parse_url};
use trapline_crawl::ports::{Fetch, Output, OutputError, Results, Robots, RobotsWord, World};
use trapline_crawl::{RedirectTo, Response as WebResponse, ResponseTimes, WebRequest};
use trapline_frontier::NoteWrite;
use url::Url;

use crate::ending::{Ending, Endings};
use crate::host::Host;
use crate::politeness::PolitenessMeter;
use crate::random::Random;
use crate::virtual_world::VirtualWorld;
use crate::web::{Response, Web};

/// How long robots.txt that could not be had is left alone.
const ROBOTS_AGAIN: Duration = Duration::from_secs(30);

/// A web with its ports. Clones share it.
#[derive(Clone)]
pub(super) struct WebPorts {
    pub(super) web: Arc<Web>,
    world: VirtualWorld,
    /// How long a host is to be left alone at least.
    delay: Duration,
    /// Whoever is cut off now has died, and cannot see to it that anybody is left alone.
    pub(super) dying: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
}

/// What hosts and readers saw.
pub(super) struct Seen {
    random: Random,
    pub(super) meter: PolitenessMeter,
    robots: BTreeMap<u32, RobotsWord>,
    pub(super) requests: u64,
    pub(super) begun_while_paused: u64,
    /// How pages ended, as was told, and how often.
    pub(super) told: BTreeMap<String, u64>,
    pub(super) endings: Endings,
}

impl WebPorts {
    pub(super) fn new(web: Web, world: VirtualWorld, delay: Duration, seed: u64) -> Self {
        let seen = Seen {
            random: Random::of(&[seed, 21]),
            meter: PolitenessMeter::new(web.hosts().len()),
            robots: BTreeMap::new(),
            requests: 0,
            begun_while_paused: 0,
            told: BTreeMap::new(),
            endings: Endings::default(),
        };
        Self { web: Arc::new(web), world, delay, dying: Arc::default(), seen: Arc::new(Mutex::new(seen)) }
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request of a host takes its time. Given up, it has ended all the same.
    async fn ask(&self, host: u32, took: Duration, wait: Duration) {
        let now = self.world.now();
        let mut asking = Asking::begin(self, host, now);
        self.world.sleep_until(now + took).await;
        asking.wait = wait.max(self.delay);
    }

    fn host(&self, url: &Url) -> Option<(u32, &Host)> {
        let index = Host::index_of(url.host_str()?)?;
        self.web.hosts().get(index as usize).map(|host| (index, host))
    }
}

/// A request under way.
struct Asking<'a> {
    ports: &'a WebPorts,
    host: u32,
    wait: Duration,
}

impl<'a> Asking<'a> {
    fn begin(ports: &'a WebPorts, host: u32, now: Timestamp) -> Self {
        let mut seen = ports.seen();
        seen.requests += 1;
        seen.meter.begin(host, now);
        Self { ports, host, wait: ports.delay }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let wait = if self.ports.dying.load(Ordering::Relaxed) { Duration::ZERO } else { self.wait };
        self.ports.seen().meter.end(self.host, self.ports.world.now(), wait);
    }
}

#[async_trait]
impl Fetch for WebPorts {
    async fn fetch(&self, request: &WebRequest) -> WebResponse {
        let fetched = self.web.fetch(request.url.as_str(), self.world.now(), &mut self.seen().random);
        let (status, wait) = match &fetched.response {
            Response::Page { .. } => (200, Duration::ZERO),
            Response::Redirect { .. } => (301, Duration::ZERO),
            Response::Broken => (500, Duration::ZERO),
            Response::Unavailable { retry_after } => (503, *retry_after),
            // What robots.txt forbids is not asked for: whoever does is told that it is not there, and found out in the end.
            Response::NotFound | Response::Disallowed => (404, Duration::ZERO),
        };
        if let Some((host, _)) = self.host(&request.url) {
            self.ask(host, fetched.took, wait).await;
        }
        let mut response = WebResponse {
            status: Some(status),
            times: ResponseTimes { total: fetched.took, ..ResponseTimes::default() },
            ..WebResponse::default()
        };
        match fetched.response {
            Response::Page { links, .. } => {
                let links: String = links.iter().map(|link| format!("<a href='{link}'>x</a>")).collect();
                response.encoded_bytes = links.len() as u64;
                response.body = links.into();
                response.headers.push(("content-type".to_owned(), "text/html".into()));
            }
            Response::Redirect { to } => response.redirect = parse_url(&to, None).ok().map(RedirectTo::Url),
            Response::Unavailable { retry_after } => {
                let seconds = retry_after.as_secs().to_string();
                response.headers.push(("retry-after".to_owned(), seconds.into()));
            }
            _ => {}
        }
        response
    }
}

#[async_trait]
impl Robots for WebPorts {
    async fn ask(&self, now: Timestamp, url: &Url) -> RobotsWord {
        let Some((index, host)) = self.host(url) else {
            return RobotsWord { allowed: true, ..RobotsWord::default() };
        };
        let known = self.seen().robots.get(&index).cloned();
        let known = known.filter(|word| word.unreachable_until.is_none_or(|until| until > now));
        let mut word = match known {
            Some(word) => word,
            None => {
                let down = host.is_down(now);
                let took = host.latency(&mut self.seen().random);
                self.ask(index, took, Duration::ZERO).await;
                let fetched = self.world.now();
                let unreachable_until = down.then(|| fetched + ROBOTS_AGAIN);
                let word = RobotsWord { fetched, unreachable_until, ..RobotsWord::default() };
                self.seen().robots.insert(index, word.clone());
                word
            }
        };
        let page = self.web.find(url.as_str());
        let forbidden = page.is_some_and(|page| self.web.look(page, now) == Response::Disallowed);
        word.allowed = !forbidden;
        word.line = forbidden.then(|| format!("Disallow: {}", url.path()));
        word
    }
}

#[async_trait]
impl Output for WebPorts {
    async fn write(&self, batch: &[Results]) -> Result<Vec<NoteWrite>, OutputError> {
        let mut seen = self.seen();
        for results in batch {
            let fetched = results.page.as_ref().and_then(|page| {
                let ending = match (page.outcome, page.status) {
                    ("done", Some(200)) => Ending::Fetched,
                    ("done", Some(301)) => Ending::Redirected,
                    ("done", Some(404)) => Ending::NotFound,
                    ("dead", _) => Ending::Broken,
                    _ => return None,
                };
                Some((page.url.to_string(), ending))
            });
            let forbidden = results.skipped.iter().filter(|line| line.reason == "robots");
            let forbidden = forbidden.map(|line| (line.url.clone(), Ending::Disallowed));
            for (url, ending) in fetched.into_iter().chain(forbidden) {
                // A sitemap that is looked for by guess is no page.
                if self.web.find(&url).is_some() {
                    seen.endings.count(ending);
                    *seen.told.entry(url).or_default() += 1;
                }
            }
        }
        Ok(Vec::new())
    }
}
