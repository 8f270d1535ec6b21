//! Reads the configuration anew while a crawl runs, and lets it go on by that.

use std::sync::{Arc, Mutex, PoisonError};

use trapline_core::Terms;
use trapline_crawl::candidate::QueueOptions;
use trapline_crawl::{CrawlHandle, Reload};
use trapline_fetch::Fetcher;
use trapline_frontier::{Frontier, Query, QueueChange, Rows, Scan, StoreError};

use super::refusals::ToldFetcher;
use super::steered::Steered;
use super::{archives, plan, resume, run};
use crate::config::{FileConfig, Flags};
use crate::ended::complain;
use crate::moment;

/// Reads the configuration as the command line of the crawl says, with further flags.
pub(super) type LoadConfig = Arc<dyn Fn(&Flags) -> Result<FileConfig, String> + Send + Sync>;

/// What can be changed only by another crawl, or by running it again: options, or all of a section.
const FIXED: [&str; 8] = [
    "crawl.name",
    "crawl.seeds",
    "crawl.store",
    "crawl.canonical",
    "queue.key",
    "queue.order",
    "output",
    "log",
];

/// Lets a crawl that runs go on with another configuration.
pub(super) struct Reloading {
    pub(super) load: LoadConfig,
    pub(super) frontier: Frontier,
    pub(super) handle: CrawlHandle,
    /// What it goes by now.
    pub(super) present: Mutex<FileConfig>,
}

impl Reloading {
    /// Reads the configuration anew; what was steered stays on top. Answers for people.
    pub(super) async fn reload(&self) -> Result<String, String> {
        let steered = Steered::load(&self.frontier, moment::now()).await.map_err(|error| told(&error))?;
        self.go_on(&steered).await
    }

    /// Sets options on top of the configuration.
    pub(super) async fn steer(&self, change: Steered) -> Result<String, String> {
        let steered =
            Steered::load(&self.frontier, moment::now()).await.map_err(|error| told(&error))?.and(change);
        let said = self.go_on(&steered).await?;
        steered.keep(&self.frontier, moment::now()).await.map_err(|error| told(&error))?;
        Ok(said)
    }

    /// Forgets what was steered.
    pub(super) async fn forget(&self) -> Result<String, String> {
        let said = self.go_on(&Steered::default()).await?;
        Steered::default().keep(&self.frontier, moment::now()).await.map_err(|error| told(&error))?;
        Ok(said)
    }

    async fn go_on(&self, steered: &Steered) -> Result<String, String> {
        let config = steered.apply(&*self.load)?;
        let options = plan::crawl_options(&config)?;
        let mut fetch_options =
            config.fetch_options().map_err(|(option, message)| format!("{option}: {message}"))?;
        for warning in fetch_options.warnings().iter().chain(&config.warnings()) {
            complain(&format!("trapline crawl: {warning}"));
        }
        let before = self.present.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Archives stay those that the crawl began with.
        archives::keep_raw(&before, &mut fetch_options);
        let fetcher = Fetcher::new(fetch_options).map_err(|error| error.to_string())?;
        let robots = run::robots(&self.frontier, &fetcher, &config);
        let queues = (plan::queue_options(&before)?, plan::queue_options(&config)?);
        let reload =
            Reload { options, fetch: Some(Arc::new(ToldFetcher(fetcher))), robots: Some(Some(robots)) };
        self.handle
            .reload(reload)
            .await
            .unwrap_or_else(|| Err("the crawl has ended meanwhile".to_owned()))?;
        resume::apply_settings(&self.frontier, &config).await.map_err(|error| told(&error))?;
        apply_terms(&self.frontier, &queues.0, &queues.1).await.map_err(|error| told(&error))?;
        let later = fixed_changes(&before, &config);
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(if later.is_empty() {
            "done".to_owned()
        } else {
            format!("done, but for {}: it holds from the next run or crawl on", later.join(", "))
        })
    }
}

fn told(error: &StoreError) -> String {
    error.to_string()
}

/// Tells queues that there are already on what terms they stand now, where that has changed.
async fn apply_terms(
    frontier: &Frontier,
    before: &QueueOptions,
    now: &QueueOptions,
) -> Result<(), StoreError> {
    if before.hosts.iter().next().is_none() && now.hosts.iter().next().is_none() {
        return Ok(());
    }
    let mut scan = Scan::new(Query::Queues { keys: None, state: None });
    loop {
        let page = frontier.scan(moment::now(), &scan).await?;
        let Rows::Queues(queues) = page.rows else { return Ok(()) };
        for queue in queues {
            let host = host_of(&queue.key);
            let terms = now.terms(host);
            if before.terms(host) == terms {
                continue;
            }
            frontier.steer_queue(moment::now(), &queue.key, QueueChange::DefaultTerms).await?;
            if terms != Terms::default() {
                frontier.steer_queue(moment::now(), &queue.key, QueueChange::Terms(terms)).await?;
            }
        }
        match page.cursor {
            None => return Ok(()),
            cursor => scan.cursor = cursor,
        }
    }
}

/// A queue is named after its host, with the port behind it if that is another than usual.
fn host_of(key: &str) -> &str {
    match key.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => key,
    }
}

/// What is different, and holds only later.
fn fixed_changes(before: &FileConfig, now: &FileConfig) -> Vec<String> {
    let mut changed = Vec::new();
    for fixed in FIXED {
        let (section, key) =
            fixed.split_once('.').map_or((fixed, None), |(section, key)| (section, Some(key)));
        let (Some(was), Some(is)) = (before.section(section), now.section(section)) else { continue };
        let is_meant = |name: &str| key.map_or(name != "canonical", |key| key == name);
        for item in was.items().iter().filter(|item| is_meant(item.key)) {
            if was.get(item.key) != is.get(item.key) {
                changed.push(format!("{section}.{}", item.key));
            }
        }
    }
    changed
}
