//! robots.txt of many hosts, asked for once and remembered for a while.
//!
//! Three layers: memory, notes in the store, the network. Who asks while somebody else already fetches waits for that. The
//! file is read by `trapline_extract`; here is what a status code means, and how long an answer holds.
//!
//! A host without the file (4xx) allows everything. One whose file cannot be had (5xx, no answer, a redirect to nowhere or in
//! a circle, a body that cannot be read) allows nothing, and is asked again after a while that doubles each time.

mod remembered;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use trapline_core::{Timestamp, parse_url};
use trapline_extract::{ROBOTS_BYTES_MAX, Robots, Rules};
use url::Url;

pub use remembered::RobotsStanding;
use remembered::{read_note, write_note};

use crate::deadline::FAR;
use crate::decode::DecodeFault;
use crate::fetch_error::{FetchError, FetchErrorKind};
use crate::fetched::{Fetched, Redirect, Truncated};
use crate::fetcher::Fetcher;
use crate::outgoing::Origin;
use crate::request::FetchRequest;
use crate::robots_notes::RobotsNotes;

/// How robots.txt files are fetched and remembered.
#[derive(Clone, Debug)]
pub struct RobotsOptions {
    /// By which names the crawler goes, the most specific one first. Defaults to none: the fetcher's user agent.
    pub agents: Vec<String>,
    /// How long a file is believed, at most 24 h. Defaults to 24 h.
    pub lifetime: Duration,
    /// How long nothing is allowed after the first failure to get the file; twice as long after each further one. Defaults
    /// to 1 min.
    pub failure_wait: Duration,
    /// The longest such wait. Defaults to 4 h.
    pub failure_wait_max: Duration,
    /// How long it may take altogether, redirects included. Defaults to 60 s.
    pub timeout: Duration,
    /// How many redirects are followed. Defaults to 5.
    pub redirects_max: u32,
    /// How many bytes of a file are read. Defaults to 500 KiB.
    pub bytes_max: usize,
    /// How many hosts are remembered in memory. The one that was not asked about for longest makes room. Defaults to
    /// 20,000.
    pub hosts_max: usize,
    /// How many bytes they may take altogether, estimated. Defaults to 64 MiB.
    pub memory_bytes_max: usize,
}

/// No file is believed for longer.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 3600);

impl Default for RobotsOptions {
    fn default() -> Self {
        Self {
            agents: Vec::new(),
            lifetime: LIFETIME_MAX,
            failure_wait: Duration::from_secs(60),
            failure_wait_max: Duration::from_secs(4 * 3600),
            timeout: Duration::from_secs(60),
            redirects_max: 5,
            bytes_max: ROBOTS_BYTES_MAX,
            hosts_max: 20_000,
            memory_bytes_max: 64 << 20,
        }
    }
}

/// What is known of an authority's robots.txt.
#[derive(Debug)]
pub struct RobotsFile {
    /// The file, as it was read.
    pub robots: Robots,
    /// What it says to our agent.
    pub rules: Rules,
    /// What came of asking for it.
    pub standing: RobotsStanding,
    /// When it was asked for.
    pub fetched: Timestamp,
    /// Until when this holds.
    pub until: Timestamp,
    /// How often in a row it could not be had.
    pub failures: u32,
    /// Why it could not be had, if this process has asked.
    pub trouble: Option<RobotsTrouble>,
    /// Addresses of sitemaps, once somebody has asked.
    sitemaps: OnceLock<Arc<[Url]>>,
    /// What it says to each of our names by itself, likewise.
    each: OnceLock<Vec<Rules>>,
}

/// Why a robots.txt could not be had.
#[derive(Clone, Debug)]
pub struct RobotsTrouble {
    /// What happened, for people.
    pub message: String,
    /// The same in a word, if there was no response.
    pub error: Option<&'static str>,
    /// We refused to ask; that will not change.
    pub refused: bool,
}

impl RobotsFile {
    fn new(names: &[String], robots: Robots, known: Known) -> Self {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let Known { standing, fetched, until, failures } = known;
        Self {
            rules: robots.for_agents(&names),
            robots,
            standing,
            fetched,
            until,
            failures,
            trouble: None,
            sitemaps: OnceLock::new(),
            each: OnceLock::new(),
        }
    }

    /// What it says to each of our names by itself.
    pub(crate) fn rules_of_each(&self, names: &[String]) -> &[Rules] {
        self.each.get_or_init(|| names.iter().map(|name| self.robots.for_agent(name)).collect())
    }

    /// The addresses of sitemaps that the file names, as URLs. It is the file of this one.
    pub fn sitemaps(&self, of: &Url) -> Arc<[Url]> {
        let urls = || self.robots.sitemaps().filter_map(|(_, text)| parse_url(text, Some(of)).ok()).collect();
        Arc::clone(self.sitemaps.get_or_init(urls))
    }
}

/// What is known beside the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    standing: RobotsStanding,
    fetched: Timestamp,
    until: Timestamp,
    failures: u32,
}

/// Where an answer came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobotsSource {
    /// This process knew.
    Memory,
    /// The store knew.
    Notes,
    /// The server was asked.
    Network,
}

/// A cache of robots.txt files. Clones share it.
#[derive(Clone)]
pub struct RobotsCache(Arc<Inner>);

struct Inner {
    fetcher: Fetcher,
    notes: Option<Arc<dyn RobotsNotes>>,
    options: RobotsOptions,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    hosts: HashMap<Arc<str>, Slot>,
    /// By when they were last asked about.
    order: BTreeMap<u64, Arc<str>>,
    next: u64,
    bytes: usize,
}

struct Slot {
    place: u64,
    bytes: usize,
    host: Arc<HostEntry>,
}

#[derive(Default)]
struct HostEntry {
    file: Mutex<Option<Arc<RobotsFile>>>,
    /// Held by the one who asks the store and the server. Should it give up, the next one does.
    asking: tokio::sync::Mutex<()>,
}

impl HostEntry {
    fn at(&self, now: Timestamp) -> Option<Arc<RobotsFile>> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.as_ref().filter(|file| file.until > now).cloned()
    }

    fn failures(&self) -> u32 {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.as_ref().map_or(0, |file| file.failures)
    }
}

impl RobotsCache {
    /// A cache that asks through a fetcher, and remembers in notes too if there are any.
    pub fn new(fetcher: Fetcher, notes: Option<Arc<dyn RobotsNotes>>, mut options: RobotsOptions) -> Self {
        if options.agents.is_empty() {
            options.agents = vec![fetcher.options().user_agent.clone()];
        }
        options.lifetime = options.lifetime.min(LIFETIME_MAX);
        options.failure_wait_max = options.failure_wait_max.min(LIFETIME_MAX);
        Self(Arc::new(Inner { fetcher, notes, options, memory: Mutex::default() }))
    }

    /// The robots.txt that is for a URL, and who knew it. Of a URL that is not fetched, nothing is allowed.
    pub async fn of(&self, now: Timestamp, url: &Url) -> (Arc<RobotsFile>, RobotsSource) {
        let inner = &*self.0;
        let Some(origin) = Origin::of(url) else {
            let known =
                Known { standing: RobotsStanding::Unreachable, fetched: now, until: now, failures: 0 };
            let file = RobotsFile::new(&inner.options.agents, Robots::disallow_all(), known);
            return (Arc::new(file), RobotsSource::Memory);
        };
        let authority = Arc::clone(origin.name());
        let host = inner.lock().host(&authority, &inner.options);
        if let Some(file) = host.at(now) {
            return (file, RobotsSource::Memory);
        }
        let asking = host.asking.lock().await;
        if let Some(file) = host.at(now) {
            return (file, RobotsSource::Memory);
        }
        let noted = inner.noted(now, &authority).await;
        let fresh = noted.as_ref().is_some_and(|file| file.until > now);
        let (file, source) = match noted {
            Some(file) if fresh => (file, RobotsSource::Notes),
            stale => {
                let failures = stale.map_or(host.failures(), |file| file.failures);
                let file = inner.ask(now, url, failures).await;
                inner.note(now, &authority, &file).await;
                (file, RobotsSource::Network)
            }
        };
        let (file, bytes) = (Arc::new(file), weight(&authority));
        // Each name may have rules of its own.
        let bytes = bytes + weight_of(&file.robots) * inner.options.agents.len().max(1);
        *host.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&file));
        inner.lock().weigh(&authority, bytes, &inner.options);
        drop(asking);
        (file, source)
    }

    /// The robots.txt that is for a URL, if this process or the notes know it, be it fresh or not. The server is not asked.
    pub async fn known(&self, now: Timestamp, url: &Url) -> Option<Arc<RobotsFile>> {
        let inner = &*self.0;
        let origin = Origin::of(url)?;
        let host = inner.lock().hosts.get(origin.name()).map(|slot| Arc::clone(&slot.host));
        let file = host.and_then(|host| host.file.lock().unwrap_or_else(PoisonError::into_inner).clone());
        match file {
            Some(file) => Some(file),
            None => inner.noted(now, origin.name()).await.map(Arc::new),
        }
    }

    /// By which names the crawler goes.
    pub(crate) fn agents(&self) -> &[String] {
        &self.0.options.agents
    }

    /// Whether a URL may be fetched.
    pub async fn allows(&self, now: Timestamp, url: &Url) -> bool {
        self.of(now, url).await.0.rules.check(url).allowed
    }

    /// How many hosts are remembered in memory, and how many bytes that is, estimated.
    pub fn size(&self) -> (usize, usize) {
        let memory = self.0.lock();
        (memory.hosts.len(), memory.bytes)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the notes know, be it fresh or not. Notes that cannot be read are as good as none: the server knows better.
    async fn noted(&self, now: Timestamp, authority: &str) -> Option<RobotsFile> {
        let bytes = self.notes.as_ref()?.get(now, authority).await.ok()??;
        let (robots, known) = read_note(&bytes)?;
        // Whoever wrote it had another clock, or another idea of how long a file holds.
        let believable = known.until <= now + LIFETIME_MAX;
        believable.then(|| RobotsFile::new(&self.options.agents, robots, known))
    }

    /// A store that cannot write costs another question to the server, no more.
    async fn note(&self, now: Timestamp, authority: &str, file: &RobotsFile) {
        let Some(notes) = &self.notes else { return };
        // A little longer than it holds, so that the next failure knows of this one.
        let expires = file.until + self.options.failure_wait_max;
        let _ = notes.put(now, authority, write_note(file), expires).await;
    }

    /// Asks the server.
    async fn ask(&self, now: Timestamp, url: &Url, failures: u32) -> RobotsFile {
        let options = &self.options;
        let fetched = self.fetcher.fetch_robots(url, options).await;
        let (robots, standing) = understood(&fetched);
        let failed = standing == RobotsStanding::Unreachable;
        let failures = if failed { failures.saturating_add(1) } else { 0 };
        let holds = if failed {
            let doublings = failures.saturating_sub(1).min(20);
            options.failure_wait.saturating_mul(1 << doublings).min(options.failure_wait_max)
        } else {
            options.lifetime
        };
        let known = Known { standing, fetched: now, until: now + holds, failures };
        let trouble = failed.then(|| trouble_of(&fetched));
        RobotsFile { trouble, ..RobotsFile::new(&options.agents, robots, known) }
    }
}

/// Why a robots.txt could not be had.
fn trouble_of(fetched: &Fetched) -> RobotsTrouble {
    let (message, refused) = match (&fetched.error, fetched.status) {
        // Where a redirect leads says nothing about the host itself.
        (Some(error), _) => (error.to_string(), error.is_refusal() && fetched.hops == 0),
        (None, Some(status)) if fetched.truncated.is_none() && fetched.decode_fault.is_none() => {
            (format!("the server answers {status}"), false)
        }
        _ => ("it did not come whole".to_owned(), false),
    };
    RobotsTrouble { message, refused, error: fetched.error.as_ref().map(|error| error.kind().as_str()) }
}

impl Memory {
    fn host(&mut self, authority: &Arc<str>, options: &RobotsOptions) -> Arc<HostEntry> {
        let place = self.next;
        self.next += 1;
        self.order.insert(place, Arc::clone(authority));
        match self.hosts.get_mut(authority) {
            Some(slot) => {
                self.order.remove(&slot.place);
                slot.place = place;
                Arc::clone(&slot.host)
            }
            None => {
                let (host, bytes) = (Arc::new(HostEntry::default()), weight(authority));
                self.bytes += bytes;
                let slot = Slot { place, bytes, host: Arc::clone(&host) };
                self.hosts.insert(Arc::clone(authority), slot);
                // Here too, because whoever asks may give up before there is anything to weigh.
                self.make_room(options);
                host
            }
        }
    }

    /// Notes how much a host takes.
    fn weigh(&mut self, authority: &str, bytes: usize, options: &RobotsOptions) {
        if let Some(slot) = self.hosts.get_mut(authority) {
            self.bytes = self.bytes - slot.bytes + bytes;
            slot.bytes = bytes;
        }
        self.make_room(options);
    }

    fn make_room(&mut self, options: &RobotsOptions) {
        while self.hosts.len() > options.hosts_max.max(1) || self.bytes > options.memory_bytes_max {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some(slot) = self.hosts.remove(&oldest) {
                self.bytes -= slot.bytes;
            }
        }
    }
}

/// What an empty slot takes, about.
fn weight(authority: &str) -> usize {
    400 + 2 * authority.len()
}

/// What a file takes, about: its text, and once more with the rules that are made of it; and sitemaps as URLs.
fn weight_of(robots: &Robots) -> usize {
    robots.to_bytes().len() * 4 + robots.sitemaps().count() * 200
}

/// What a robots.txt means, by what came of asking for it.
fn understood(fetched: &Fetched) -> (Robots, RobotsStanding) {
    let unreachable = (Robots::disallow_all(), RobotsStanding::Unreachable);
    match fetched.status {
        Some(200..=299) => {
            let cut = !matches!(
                fetched.truncated,
                None | Some(Truncated::DecodedBytes | Truncated::EncodedBytes | Truncated::Ratio)
            );
            let unreadable =
                !matches!(fetched.decode_fault, None | Some(DecodeFault::NotEncoded | DecodeFault::Surplus));
            // Rules that were not read might have been the ones that forbid.
            if cut || unreadable {
                return unreachable;
            }
            (Robots::parse(&fetched.body), RobotsStanding::Found)
        }
        Some(400..=499) => (Robots::allow_all(), RobotsStanding::Missing),
        _ => unreachable,
    }
}

impl Fetcher {
    /// Fetches the robots.txt that is for a URL, following a few redirects. Each hop goes through the door like any other
    /// request.
    pub async fn fetch_robots(&self, url: &Url, options: &RobotsOptions) -> Fetched {
        let mut next = url.clone();
        next.set_path("/robots.txt");
        next.set_query(None);
        next.set_fragment(None);
        let asked = next.clone();
        let time = options.timeout.min(FAR);
        tokio::time::timeout(time, self.follow_robots(next, options)).await.unwrap_or_else(|_| {
            let mut fetched = Fetched::new(asked);
            let detail = format!("no robots.txt within {time:?}");
            fetched.error = Some(FetchError::new(FetchErrorKind::TotalTimeout, detail));
            fetched
        })
    }

    async fn follow_robots(&self, mut next: Url, options: &RobotsOptions) -> Fetched {
        let mut hops = 0;
        loop {
            let mut request = FetchRequest::get(next);
            request.decoded_bytes_max = Some(options.bytes_max);
            let mut fetched = self.fetch(&request).await;
            fetched.hops = hops;
            let trouble = match fetched.redirect.take() {
                None => return fetched,
                Some(Redirect::To(target)) if hops < options.redirects_max => {
                    next = target;
                    hops += 1;
                    continue;
                }
                Some(Redirect::To(_)) => FetchError::new(
                    FetchErrorKind::Redirects,
                    format!("more than {} redirects", options.redirects_max),
                ),
                Some(Redirect::Refused(scheme)) => FetchError::new(
                    FetchErrorKind::RedirectRefused,
                    format!("a redirect to a `{scheme}:` URL"),
                ),
                Some(Redirect::Nowhere) => {
                    FetchError::new(FetchErrorKind::RedirectRefused, "a redirect without a URL")
                }
            };
            fetched.error = Some(trouble);
            return fetched;
        }
    }
}
