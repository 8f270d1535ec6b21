//! Made-up sites in virtual time, and a crawl of them: what the tests of this crate stand on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use trapline_core::{HostPattern, IdentityKey, Timestamp, parse_url};
use trapline_crawl::candidate::Prospect;
use trapline_crawl::ports::{Fetch, Output, OutputError, Results, Robots, RobotsWord, World};
use trapline_crawl::{
    Crawl, CrawlBuilder, CrawlEnd, CrawlHandle, CrawlOptions, ErrorClass, PageLine, RedirectTo, Response,
    ResponseError, ResponseTimes, SkippedLine, WebRequest,
};
use trapline_frontier::{Frontier, MemoryStore, NoteWrite, Settings, Store};
use trapline_sim::VirtualWorld;
use url::Url;

/// How long an answer takes unless it says otherwise.
pub(crate) const TOOK: Duration = Duration::from_millis(10);

/// No more comes of a body than this, unless more is asked for.
const BODY_BYTES_MAX: usize = 16 << 10;

/// When the tests begin, after the origin of time.
pub(crate) const BEGIN: Timestamp = Timestamp::from_millis(1_000_000);

/// Which hosts some terms are for.
pub(crate) fn hosts(pattern: &str) -> HostPattern {
    pattern.parse().expect("a pattern")
}

/// What comes back for a URL.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: Option<u16>,
    headers: Vec<(&'static str, String)>,
    body: String,
    took: Duration,
}

/// A page that links there.
pub(crate) fn page(links: &[&str]) -> Reply {
    let links: String = links.iter().map(|link| format!("<a href='{link}'>x</a>")).collect();
    html(&format!("<title>A page</title>{links}"))
}

pub(crate) fn html(body: &str) -> Reply {
    Reply { body: body.to_owned(), ..status(200) }.with("content-type", "text/html")
}

pub(crate) fn status(status: u16) -> Reply {
    Reply { status: Some(status), headers: Vec::new(), body: String::new(), took: TOOK }
}

pub(crate) fn redirect(to: &str) -> Reply {
    status(301).with("location", to)
}

/// Nobody answers.
pub(crate) fn silence() -> Reply {
    Reply { status: None, ..status(0) }
}

impl Reply {
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn taking(self, took: Duration) -> Self {
        Self { took, ..self }
    }

    fn response(self, url: &Url) -> Response {
        let location = self.headers.iter().find(|(name, _)| *name == "location");
        let redirect = location.map(|(_, to)| match parse_url(to, Some(url)) {
            Ok(to) => RedirectTo::Url(to),
            Err(_) => RedirectTo::Nowhere(format!("`{to}` is no URL")),
        });
        let error = self.status.is_none().then(|| ResponseError {
            kind: "timeout",
            message: "nobody answered".to_owned(),
            class: ErrorClass::Passing,
        });
        Response {
            status: self.status,
            headers: self.headers.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect(),
            encoded_bytes: self.body.len() as u64,
            body: self.body.into(),
            redirect,
            times: ResponseTimes { total: self.took, ..ResponseTimes::default() },
            error,
            ..Response::default()
        }
    }
}

/// What robots.txt of a host says.
#[derive(Clone, Debug, Default)]
pub(crate) struct RobotsTxt {
    pub(crate) disallow: Vec<&'static str>,
    /// What of that another of the crawl's names may see.
    pub(crate) favors: Vec<&'static str>,
    pub(crate) crawl_delay: Option<Duration>,
    pub(crate) sitemaps: Vec<&'static str>,
    /// It cannot be had; asked again after so long.
    pub(crate) unreachable: Option<Duration>,
}

/// robots.txt of a host, and what is known of it.
type RobotsOf = (RobotsTxt, Option<RobotsWord>);

/// One request as the server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) url: String,
    pub(crate) began: Timestamp,
    /// None if it was given up.
    pub(crate) ended: Option<Timestamp>,
}

/// Sites, and a crawl of them.
#[derive(Clone)]
pub(crate) struct Sites {
    pub(crate) world: VirtualWorld,
    pub(crate) options: CrawlOptions,
    pub(crate) store: Arc<dyn Store>,
    /// What the frontier is told when the crawl is made, beside the delay.
    pub(crate) settings: Settings,
    replies: Arc<Mutex<BTreeMap<String, VecDeque<Reply>>>>,
    robots: Arc<Mutex<BTreeMap<String, RobotsOf>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    told: Arc<Mutex<(Vec<PageLine>, Vec<SkippedLine>)>>,
}

impl Sites {
    /// Without pages. What nobody put there is not found.
    pub(crate) fn new() -> Self {
        Self {
            world: VirtualWorld::new(BEGIN, 1),
            options: CrawlOptions { sitemaps: false, ..CrawlOptions::default() },
            store: Arc::new(MemoryStore::new()),
            settings: Settings::default(),
            replies: Arc::default(),
            robots: Arc::default(),
            seen: Arc::default(),
            told: Arc::default(),
        }
    }

    /// With pages that link to others.
    pub(crate) fn of(pages: &[(&str, &[&str])]) -> Self {
        pages.iter().fold(Self::new(), |sites, (url, links)| sites.put(url, [page(links)]))
    }

    /// A URL answers so, one after the other; the last for ever.
    pub(crate) fn put(self, url: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.replies.lock().unwrap().insert(url.to_owned(), replies.into_iter().collect());
        self
    }

    /// A host has a robots.txt.
    pub(crate) fn robots(self, host: &str, robots: RobotsTxt) -> Self {
        self.robots.lock().unwrap().insert(host.to_owned(), (robots, None));
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut CrawlOptions)) -> Self {
        change(&mut self.options);
        self
    }

    pub(crate) async fn frontier(&self) -> Frontier {
        let settings = Settings { delay: self.options.pace.delay, ..self.settings.clone() };
        let builder = Frontier::builder("test").key(IdentityKey::from_seed(1)).settings(settings);
        builder.open_shared(Arc::clone(&self.store), self.world.now()).await.unwrap()
    }

    pub(crate) async fn builder(&self) -> CrawlBuilder {
        let builder = Crawl::builder(self.frontier().await, Arc::new(self.world.clone()))
            .options(self.options.clone())
            .output(Arc::new(self.clone()));
        if self.robots.lock().unwrap().is_empty() { builder } else { builder.robots(Arc::new(self.clone())) }
    }

    /// Crawls from some seeds, to the end.
    pub(crate) fn crawl(&self, seeds: &[&str]) -> CrawlEnd {
        self.crawl_while(seeds, async |_, _| ())
    }

    /// Begins a crawl that cannot be, and answers why.
    pub(crate) fn crawl_that_cannot(&self, seeds: &[&str]) -> String {
        let seeds: Vec<_> = seeds.iter().map(|seed| Prospect::seed(seed).expect("a URL")).collect();
        self.world.run(async {
            let crawl = self.builder().await.build(Arc::new(self.clone())).expect("chains that exist");
            let handle = crawl.handle();
            self.world.spawn(Box::pin(async move {
                handle.seed(seeds).await;
            }));
            crawl.run().await.expect_err("a crawl that cannot be").to_string()
        })
    }

    /// Crawls from some seeds, while somebody does something.
    pub(crate) fn crawl_while<F>(
        &self,
        seeds: &[&str],
        drive: impl FnOnce(CrawlHandle, Frontier) -> F,
    ) -> CrawlEnd
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.crawl_made(seeds, |builder| builder, drive)
    }

    /// The same, with a crawl that is made otherwise.
    pub(crate) fn crawl_made<F>(
        &self,
        seeds: &[&str],
        make: impl FnOnce(CrawlBuilder) -> CrawlBuilder,
        drive: impl FnOnce(CrawlHandle, Frontier) -> F,
    ) -> CrawlEnd
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let seeds: Vec<_> = seeds.iter().map(|seed| Prospect::seed(seed).expect("a URL")).collect();
        self.world.run(async {
            let crawl = make(self.builder().await).build(Arc::new(self.clone())).expect("chains that exist");
            let handle = crawl.handle();
            let driver = drive(handle.clone(), self.frontier().await);
            self.world.spawn(Box::pin(async move {
                handle.seed(seeds).await;
                handle.end_seeding().await;
                driver.await;
            }));
            crawl.run().await.expect("a crawl without trouble of its own")
        })
    }

    /// Sleeps for so long.
    pub(crate) fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + 'static {
        self.world.sleep_until(self.world.now() + time)
    }

    /// All requests, robots.txt among them, in the order of their beginnings.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// What was asked for, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.url).collect()
    }

    /// The same, sorted: where the order is not the point.
    pub(crate) fn asked_sorted(&self) -> Vec<String> {
        let mut asked = self.asked();
        asked.sort();
        asked
    }

    /// How long it took from the end of each request to the beginning of the next, in milliseconds.
    pub(crate) fn gaps(&self) -> Vec<u64> {
        let seen = self.seen();
        let gap = |pair: &[Seen]| {
            let ended = pair[0].ended.expect("a request that was not given up");
            u64::try_from(pair[1].began.since(ended).as_millis()).unwrap()
        };
        seen.windows(2).map(gap).collect()
    }

    pub(crate) fn pages(&self) -> Vec<PageLine> {
        self.told.lock().unwrap().0.clone()
    }

    /// What was skipped: the URL, why, and more about it.
    pub(crate) fn skipped(&self) -> Vec<(String, String, String)> {
        let told = self.told.lock().unwrap();
        let words = |line: &SkippedLine| {
            (line.url.clone(), line.reason.clone(), line.detail.clone().unwrap_or_default())
        };
        told.1.iter().map(words).collect()
    }

    fn begin(&self, url: &str) -> usize {
        let mut seen = self.seen.lock().unwrap();
        seen.push(Seen { url: url.to_owned(), began: self.world.now(), ended: None });
        seen.len() - 1
    }

    fn end(&self, number: usize) {
        self.seen.lock().unwrap()[number].ended = Some(self.world.now());
    }
}

#[async_trait]
impl Fetch for Sites {
    async fn fetch(&self, request: &WebRequest) -> Response {
        let number = self.begin(request.url.as_str());
        let reply = match self.replies.lock().unwrap().get_mut(request.url.as_str()) {
            None => status(404),
            Some(replies) if replies.len() > 1 => replies.pop_front().expect("more than one"),
            Some(replies) => replies.front().expect("a URL that was put there has an answer").clone(),
        };
        self.sleep(reply.took).await;
        self.end(number);
        let mut response = reply.response(&request.url);
        response.body.truncate(request.decoded_bytes_max.unwrap_or(BODY_BYTES_MAX));
        response
    }
}

#[async_trait]
impl Robots for Sites {
    async fn ask(&self, now: Timestamp, url: &Url) -> RobotsWord {
        let host = url.host_str().unwrap_or_default().to_owned();
        let Some((text, known)) = self.robots.lock().unwrap().get(&host).cloned() else {
            return RobotsWord { allowed: true, ..RobotsWord::default() };
        };
        let known = known.filter(|word| word.unreachable_until.is_none_or(|until| until > now));
        let mut word = match known {
            Some(word) => word,
            None => {
                let number = self.begin(&format!("{}://{host}/robots.txt", url.scheme()));
                self.sleep(TOOK).await;
                self.end(number);
                let sitemaps = text.sitemaps.iter().map(|url| parse_url(url, None).expect("a URL"));
                RobotsWord {
                    crawl_delay: text.crawl_delay,
                    unreachable_until: text.unreachable.map(|wait| self.world.now() + wait),
                    fetched: self.world.now(),
                    sitemaps: sitemaps.collect(),
                    ..RobotsWord::default()
                }
            }
        };
        if let Some((_, known)) = self.robots.lock().unwrap().get_mut(&host) {
            *known = Some(word.clone());
        }
        let line = text.disallow.iter().find(|path| url.path().starts_with(**path));
        word.allowed = line.is_none() && word.unreachable_until.is_none();
        word.line = line.map(|path| format!("Disallow: {path}"));
        word
    }

    async fn ask_most_favored(&self, now: Timestamp, url: &Url) -> RobotsWord {
        let word = self.ask(now, url).await;
        let robots = self.robots.lock().unwrap();
        let text = robots.get(url.host_str().unwrap_or_default()).map(|(text, _)| text);
        let favored = text.is_some_and(|text| text.favors.iter().any(|path| url.path().starts_with(path)));
        RobotsWord { allowed: word.allowed || favored && word.unreachable_until.is_none(), ..word }
    }

    async fn known(&self, _: Timestamp, url: &Url) -> Option<RobotsWord> {
        let host = url.host_str().unwrap_or_default();
        self.robots.lock().unwrap().get(host).and_then(|(_, known)| known.clone())
    }
}

#[async_trait]
impl Output for Sites {
    async fn write(&self, batch: &[Results]) -> Result<Vec<NoteWrite>, OutputError> {
        let mut told = self.told.lock().unwrap();
        for results in batch {
            told.0.extend(results.page.clone());
            told.1.extend(results.skipped.iter().cloned());
        }
        Ok(Vec::new())
    }
}
