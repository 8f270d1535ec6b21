//! Reads the configuration anew while a crawl runs, and lets it go on by that.

use std::sync::{Arc, Mutex, PoisonError};

use trapline_crawl::{CrawlHandle, Reload};
use trapline_fetch::Fetcher;
use trapline_frontier::{Frontier, StoreError};

use super::refusals::ToldFetcher;
use super::steered::Steered;
use super::terms_told::TermsTold;
use super::{archives, plan, resume, running};
use crate::config::{FileConfig, Flags};
use crate::ended::complain_of_crawl;
use crate::moment;

/// Reads the configuration as the command line of the crawl says, with further flags.
pub(super) type LoadConfig = Arc<dyn Fn(&Flags) -> Result<FileConfig, String> + Send + Sync>;

/// What can be changed only by another crawl, or by running it again: options, or all of a section.
const FIXED: [&str; 9] = [
    "crawl.name",
    "crawl.seeds",
    "crawl.store",
    "crawl.canonical",
    "queue.key",
    "queue.order",
    "queue.partitions",
    "output",
    "log",
];

/// Lets a crawl that runs go on with another configuration.
pub(super) struct Reloading {
    pub(super) load: LoadConfig,
    pub(super) frontier: Frontier,
    pub(super) handle: CrawlHandle,
    /// What the run began with.
    pub(super) began: FileConfig,
    /// What it goes by now.
    pub(super) present: Mutex<FileConfig>,
    /// What fetches now.
    pub(super) fetcher: Mutex<Fetcher>,
    /// One change at a time.
    pub(super) turn: tokio::sync::Mutex<()>,
}

/// Whether an option can be changed only by another crawl, or by running it again.
pub(super) fn is_fixed(option: &str) -> bool {
    let section = option.split('.').next().unwrap_or_default();
    FIXED.iter().any(|fixed| *fixed == option || *fixed == section) && option != "output.canonical"
}

impl Reloading {
    /// Looks at what the crawl goes by now.
    pub(super) fn look<T>(&self, look: impl FnOnce(&FileConfig) -> T) -> T {
        look(&self.present.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the configuration anew; what was steered stays on top. Answers for people.
    pub(super) async fn reload(&self) -> Result<String, String> {
        let _turn = self.turn.lock().await;
        self.go_on(&self.steered().await?).await
    }

    /// Sets options on top of the configuration.
    pub(super) async fn steer(&self, change: Steered) -> Result<String, String> {
        let _turn = self.turn.lock().await;
        self.go_on(&self.steered().await?.and(change)).await
    }

    /// Forgets what was steered.
    pub(super) async fn forget(&self) -> Result<String, String> {
        let _turn = self.turn.lock().await;
        self.go_on(&Steered::default()).await
    }

    async fn steered(&self) -> Result<Steered, String> {
        Steered::load(&self.frontier, moment::now()).await.map_err(|error| told(&error))
    }

    async fn go_on(&self, steered: &Steered) -> Result<String, String> {
        let (load, steering) = (Arc::clone(&self.load), steered.clone());
        // It looks at files, and tries out whether a fetcher can be made of it.
        let config = tokio::task::spawn_blocking(move || steering.apply(&*load)).await;
        let config = config.map_err(|error| error.to_string())??;
        let before = self.look(FileConfig::clone);
        let mut reload = Reload::options(plan::crawl_options(&config)?);
        let mut other = None;
        if fetches_otherwise(&before, &config) {
            let mut options =
                config.fetch_options().map_err(|(option, message)| format!("{option}: {message}"))?;
            for warning in options.warnings() {
                complain_of_crawl(&warning);
            }
            // Archives stay those that the crawl began with.
            archives::keep_raw(&self.began, &mut options);
            let fetcher = Fetcher::new(options).map_err(|error| error.to_string())?;
            reload.robots = Some(Some(running::robots(&self.frontier, &fetcher, &config)));
            reload.fetch = Some(Arc::new(ToldFetcher(fetcher.clone())));
            other = Some(fetcher);
        }
        for warning in &config.warnings() {
            complain_of_crawl(warning);
        }
        self.handle
            .reload(reload)
            .await
            .unwrap_or_else(|| Err("the crawl has ended meanwhile".to_owned()))?;
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = config.clone();
        if let Some(fetcher) = other {
            *self.fetcher.lock().unwrap_or_else(PoisonError::into_inner) = fetcher;
        }
        // From here on the crawl goes by it, whatever else cannot be done.
        let half = |error: StoreError| {
            format!("the crawl goes by it, but queues and the store may not know: {error}")
        };
        steered.keep(&self.frontier, moment::now()).await.map_err(half)?;
        resume::apply_changes(&self.frontier, &before, &config).await.map_err(half)?;
        TermsTold::tell(&self.frontier, &config).await.map_err(half)?;
        let later = fixed_changes(&self.began, &config);
        Ok(if later.is_empty() {
            "done".to_owned()
        } else {
            format!("done, but for {}: it holds from the next run or crawl on", later.join(", "))
        })
    }
}

/// Whether pages are fetched in another way. Passwords are not shown to be compared: who has some gets a new fetcher each time.
fn fetches_otherwise(before: &FileConfig, now: &FileConfig) -> bool {
    let differs = |name: &&str| match (before.section(name), now.section(name)) {
        (Some(was), Some(is)) => was.items().iter().any(|item| was.get(item.key) != is.get(item.key)),
        _ => true,
    };
    let has_secrets = |config: &FileConfig| {
        let proxied = config.lists.host.iter().any(|host| host.proxy.is_some());
        !config.lists.credentials.is_empty() || proxied || config.fetch.proxy.is_some()
    };
    ["", "fetch", "limits", "connect", "dns", "cookies", "robots"].iter().any(differs) || has_secrets(now)
}

fn told(error: &StoreError) -> String {
    error.to_string()
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
