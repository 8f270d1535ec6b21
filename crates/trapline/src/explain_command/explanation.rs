//! Gathers what is known of a URL: from the configuration, the rules of the crawl, and the frontier.

use std::sync::Arc;

use serde_json::{Value, json};
use trapline_core::{CanonicalRules, Request, SplitUrl, Timestamp, format_duration, parse_url, partition_of};
use trapline_crawl::candidate::Prospect;
use trapline_crawl::ports::Robots;
use trapline_crawl::{CrawlOptions, Foresight, RobotsPolicy};
use trapline_fetch::{Fetcher, RobotsCache};
use trapline_frontier::{
    CrawlReport, ErrorKind, Frontier, LeaseReport, MemoryStore, Query, QueueReport, Rows, Scan, StoreError,
    UrlReport, UrlState,
};

use super::judgement::{self, RobotsSay};
use super::next::{self, Prospects};
use crate::config::{FileConfig, Flags};
use crate::crawl_command::{
    Steered, canonical, crawl_options, frontier, has_store, robots, store_url as store_in,
};
use crate::frontier_command::address::Address;
use crate::frontier_command::{listing, urls};
use crate::output::Row;
use crate::{moment, store_url};

/// Explains URLs of one crawl.
pub(super) struct Explainer {
    options: CrawlOptions,
    canonical: CanonicalRules,
    frontier: Frontier,
    /// Whether there is a crawl; otherwise it is told what a new one would do.
    is_there: bool,
    foresight: Foresight,
    robots: Arc<dyn Robots>,
    /// Who asks servers, and tells no store of what they say.
    fetched: Option<RobotsCache>,
    via: Option<String>,
    depth: u32,
}

impl Explainer {
    /// Opens the crawl that a configuration means.
    pub(super) async fn open(
        mut config: FileConfig,
        load: &dyn Fn(&Flags) -> Result<FileConfig, String>,
        via: Option<String>,
        depth: u32,
        fetch_robots: bool,
    ) -> Result<Self, String> {
        let told = |error: StoreError| error.to_string();
        let builder = frontier(&config)?;
        let dir = &config.output.dir;
        let named = config.crawl.store.as_ref().map(|store| store.0.clone());
        let url = named.filter(|url| !store_url::is_memory(url));
        let url = url.or_else(|| has_store(dir).then(|| store_in(dir)));
        if let Some(path) = url.as_deref().and_then(store_url::empty_folder) {
            return Err(format!(
                "there is no store in `{path}`: name one with --store, or the crawl's folder with --out"
            ));
        }
        let (frontier, is_there) = match &url {
            Some(url) => {
                let store = store_url::share_and_follow(url)?;
                let attached = builder.attach(Arc::clone(&store), moment::now()).await;
                if attached.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
                    let at = Address { store: Some(url), crawl: &config.crawl.name, is_named: true };
                    return Err(at.no_crawl(&*store)?);
                }
                (attached.map_err(told)?, true)
            }
            None => (builder.open(MemoryStore::new(), moment::now()).await.map_err(told)?, false),
        };
        let steered = Steered::load(&frontier, moment::now()).await.map_err(told)?;
        if !steered.is_empty() {
            config = steered.apply(load)?;
        }
        let (options, canonical) = (crawl_options(&config)?, canonical(&config)?);
        let foresight =
            Foresight::new(&options, &frontier, moment::now()).await.map_err(|error| error.to_string())?;
        for seed in &config.crawl.seeds {
            if let Ok(url) = SplitUrl::parse(seed).or_else(|_| SplitUrl::parse(&format!("http://{seed}/"))) {
                foresight.add_seed(&url);
            }
        }
        let fetch_options =
            config.fetch_options().map_err(|(option, message)| format!("{option}: {message}"))?;
        let fetcher = Fetcher::new(fetch_options).map_err(|error| error.to_string())?;
        let robots = robots(&frontier, &fetcher, &config);
        let fetched = fetch_robots.then(|| RobotsCache::new(fetcher, None, config.robots_options()));
        Ok(Self { options, canonical, frontier, is_there, foresight, robots, fetched, via, depth })
    }

    /// Explains one URL: what is told of it, or why it is none.
    pub(super) async fn explain(&self, text: &str) -> Result<Result<Row, String>, String> {
        let told = |error: StoreError| error.to_string();
        let now = moment::now();
        let parsed = match parse_url(text, None) {
            Ok(url) => url,
            Err(reason) => {
                return Ok(Err(format!("this is no URL: {reason}; write it like https://example.org/")));
            }
        };
        let as_asked = Request {
            depth: self.depth,
            via: self.via.clone(),
            hop_path: "L".repeat(self.depth.min(100) as usize),
            ..Request::get(parsed.as_str())
        };
        let candidate = match self.frontier.prepare(as_asked.clone()) {
            Ok(candidate) => candidate,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let report = self.frontier.url(now, parsed.as_str()).await.map_err(told)?;
        let request = report.request.as_deref().cloned().unwrap_or(as_asked);
        let Some(prospect) = judgement::prospect(&request) else {
            return Ok(Err("this is no URL".to_owned()));
        };
        let foreseen = self.foresight.ask(now, &prospect).await.map_err(told)?;
        let crawl = self.frontier.report(now).await.map_err(told)?;
        let admitted = foreseen.verdict.as_ref().ok();
        let key = report.key.clone().or_else(|| admitted.map(|candidate| Arc::clone(&candidate.key)));
        let key = key.unwrap_or_else(|| Arc::clone(&candidate.key));
        let queue = self.frontier.queue(now, &key).await.map_err(told)?;
        let lease = match report.state {
            UrlState::Leased => self.lease(now, &report).await.map_err(told)?,
            _ => None,
        };
        let (class, cost) = match report.state {
            UrlState::Unknown => {
                let policies = &crawl.settings;
                let cost = admitted.and_then(|candidate| candidate.cost);
                let cost = cost.unwrap_or_else(|| policies.cost.cost(&request));
                let class = admitted.and_then(|candidate| candidate.class);
                (class.unwrap_or_else(|| policies.class.class(&request, cost)), cost)
            }
            _ => (report.class, report.cost),
        };
        let robots = self.robots_say(now, &parsed).await;
        let prospects = Prospects {
            now,
            crawl: self.is_there.then_some(&crawl),
            url: &report,
            queue: queue.as_ref(),
            lease: lease.as_ref(),
            foreseen: &foreseen,
            robots: &robots,
        };
        Ok(Ok(vec![
            ("url", json!(parsed.as_str())),
            ("canonical", json!(self.canonical.canonicalize_str(parsed.as_str()).ok())),
            // The key that it depends on is drawn when a crawl is made.
            (
                "identity",
                if self.is_there { json!(format!("{:032x}", candidate.identity.0)) } else { Value::Null },
            ),
            ("queue", json!(&*key)),
            ("partition", json!(partition_of(&key, crawl.partitions))),
            ("class", json!(class)),
            ("cost", json!(cost)),
            ("scope", judgement::scope(&foreseen, prospect.origin)),
            ("rules", judgement::rules(&foreseen)),
            ("robots", robots.json()),
            ("policy", self.policy(&prospect, queue.as_ref(), &crawl)),
            ("state", self.state(&report)),
            ("page", report.page.as_deref().map_or(Value::Null, urls::page)),
            ("budget", queue.as_ref().map_or(Value::Null, budget)),
            ("pace", queue.as_ref().map_or(Value::Null, pace)),
            ("lease", lease.as_ref().map_or(Value::Null, told_lease)),
            ("next", next::next(&prospects)),
        ]))
    }

    async fn lease(&self, now: Timestamp, url: &UrlReport) -> Result<Option<LeaseReport>, StoreError> {
        let mut scan = Scan::new(Query::Leases);
        loop {
            let page = self.frontier.scan(now, &scan).await?;
            let Rows::Leases(leases) = page.rows else { return Ok(None) };
            let text = url.request.as_ref().map(|request| &request.url);
            let is_its = |lease: &LeaseReport| {
                url.key.as_ref() == Some(&lease.key) && text == Some(&lease.request.url)
            };
            if let Some(lease) = leases.into_iter().find(is_its) {
                return Ok(Some(lease));
            }
            match page.cursor {
                None => return Ok(None),
                cursor => scan.cursor = cursor,
            }
        }
    }

    async fn robots_say(&self, now: Timestamp, url: &url::Url) -> RobotsSay {
        let host = url.host_str().unwrap_or_default();
        let (policy, known) = (self.options.robots_policy(host), self.robots.known(now, url).await);
        let favors = policy == RobotsPolicy::MostFavored;
        match (known, &self.fetched) {
            _ if policy == RobotsPolicy::Ignore => RobotsSay::Ignored,
            // Where it is known, nobody is asked for it.
            (Some(_), _) if favors => RobotsSay::Known(self.robots.ask_most_favored(now, url).await),
            (Some(word), _) => RobotsSay::Known(word),
            (None, Some(fetched)) if favors => RobotsSay::Known(fetched.ask_most_favored(now, url).await),
            (None, Some(fetched)) => RobotsSay::Known(Robots::ask(fetched, now, url).await),
            (None, None) => RobotsSay::Unknown,
        }
    }

    /// The terms that hold for its host, and where they come from.
    fn policy(&self, prospect: &Prospect, queue: Option<&QueueReport>, crawl: &CrawlReport) -> Value {
        let host = prospect.url.host_str().unwrap_or_default();
        let own = self.options.queue.of(host);
        let settings = &crawl.settings;
        let delay =
            queue.map(|queue| queue.delay).or(own.and_then(|own| own.delay)).unwrap_or(settings.delay);
        let concurrency = queue.map(|queue| queue.concurrency).or(own.and_then(|own| own.concurrency));
        let precedence = queue.map(|queue| queue.precedence).or(own.and_then(|own| own.precedence));
        json!({
            "from": match own {
                Some(own) => format!("[[host]] match = \"{}\"", own.hosts),
                None => "the crawl's own settings".to_owned(),
            },
            "delay": format_duration(delay),
            "concurrency": concurrency.unwrap_or(settings.concurrency),
            "precedence": precedence.or(self.options.queue.precedence).unwrap_or(3),
            "budget": queue.map_or(own.and_then(|own| own.budget).or(settings.queue_budget), |queue| queue.budget),
            "balance": own.and_then(|own| own.balance).unwrap_or(settings.balance_replenish),
            "class_policy": settings.class.to_string(),
            "cost_policy": settings.cost.to_string(),
            "max_depth": own.and_then(|own| own.max_depth).or(self.options.limits.max_depth),
            "robots": self.options.robots_policy(host).to_string(),
            "revisit": own.and_then(|own| own.revisit).map(format_duration),
            "strategy": self.options.strategy.name,
            "retries_max": self.options.retry.max,
        })
    }

    fn state(&self, url: &UrlReport) -> Value {
        let name =
            if self.is_there { url.state.to_string() } else { "unknown: there is no crawl yet".to_owned() };
        let request = url.request.as_deref();
        json!({
            "name": name,
            "reason": url.reason,
            "due": listing::time(url.due),
            "depth": request.map(|request| request.depth),
            "hops": request.map(|request| &request.hop_path),
            "via": request.and_then(|request| request.via.as_deref()),
            "seed": request.and_then(|request| request.seed.as_deref()),
        })
    }
}

fn budget(queue: &QueueReport) -> Value {
    json!({
        "budget": queue.budget,
        "spent": queue.spent,
        "balance": queue.balance,
        "latest_cost": queue.latest_cost,
        "average_cost": queue.average_cost,
    })
}

fn pace(queue: &QueueReport) -> Value {
    json!({
        "queue_state": queue.state.to_string(),
        "why": moment::dated(&queue.why),
        "pending": queue.pending,
        "leased": queue.leased,
        "next_fetch": listing::time(queue.next_fetch),
        "group": queue.group.as_deref(),
    })
}

fn told_lease(lease: &LeaseReport) -> Value {
    json!({
        "id": lease.id.0,
        "granted": moment::write(lease.granted),
        "deadline": moment::write(lease.deadline),
        "delivery": lease.delivery,
    })
}
