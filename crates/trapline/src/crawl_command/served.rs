//! A crawl as a part of a service: it begins with it, waits for URLs instead of ending, and is steered through it.

use std::sync::{Arc, PoisonError};

use async_trait::async_trait;
use trapline_crawl::candidate::Prospect;
use trapline_server::{Crawler, CrawlerProgram, NoPolicy};

use super::folder::Folder;
use super::reloading::{LoadConfig, Reloading};
use super::run::raise_file_limit;
use super::running::{Run, written_report};
use super::steered::Steered;
use super::watch::Telling;
use super::{plan, seeds};
use crate::config::FileConfig;
use crate::ended::complain;
use crate::store_url::Shared;

/// A crawl that a service is about to begin.
pub(crate) struct ServedCrawl {
    folder: Folder,
    config: FileConfig,
    load: LoadConfig,
    seeds: Vec<Prospect>,
}

impl ServedCrawl {
    /// Takes the folder for results, and tells what is wrong with the configuration while somebody looks.
    pub(crate) fn prepare(config: FileConfig, load: LoadConfig) -> Result<Self, String> {
        plan::crawl_options(&config)?;
        config.fetch_options().map_err(|(option, message)| format!("{option}: {message}"))?;
        let seed = |seed: &String| seeds::read(seed).map_err(|wrong| format!("`{seed}`: {wrong}"));
        let seeds = config.crawl.seeds.iter().map(seed).collect::<Result<_, _>>()?;
        raise_file_limit(&config);
        let folder = Folder::take(&config.output.dir)?;
        // How another run stood is no news of this one.
        let _ = std::fs::remove_file(folder.path().join("status.json"));
        Ok(Self { folder, config, load, seeds })
    }

    /// Where the results go.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Crawls until it is told to stop, or a limit ends it.
    pub(crate) async fn run(self, store: Shared, in_memory: bool, crawler: Arc<Crawler>) {
        let run = Run {
            folder: &self.folder,
            shared: store,
            in_memory,
            load: self.load,
            seeds: self.seeds,
            sources: Vec::new(),
            needs_seeds: false,
            telling: Telling { quiet: true, json: false, period: None },
            service: Some(Arc::clone(&crawler)),
        };
        match run.go(&self.config).await {
            Ok(ran) => {
                let how = ran.ending.sentence();
                tracing::info!("the crawl has ended: {how}");
                if let Err(error) = written_report(&ran, self.folder.path(), false) {
                    complain(&format!("trapline serve: {error}"));
                }
                crawler.ended(how);
            }
            Err(error) => {
                complain(&format!(
                    "trapline serve: the crawl has ended, and what is served is the frontier: {error}"
                ));
                // What it says of disks and servers is not for those who call.
                crawler.ended("there was trouble; the log of the service says more".to_owned());
            }
        }
    }
}

/// The program around a crawl that is served.
pub(super) struct Served(pub(super) Arc<Reloading>);

#[async_trait]
impl CrawlerProgram for Served {
    fn seed(&self, text: &str) -> Result<Prospect, String> {
        seeds::read(text.trim())
    }

    async fn set_policy(&self, hosts: &str, options: &[(String, String)]) -> Result<String, NoPolicy> {
        let options: Vec<_> = options.iter().map(|(name, value)| format!("{name}={value}")).collect();
        // What is wrong by itself is told in words that name nothing but what was sent.
        let steered = Steered::of(&options, Some(hosts)).map_err(NoPolicy::Wrong)?;
        steered.check().map_err(NoPolicy::Wrong)?;
        self.0.steer(steered).await.map_err(NoPolicy::Failed)
    }

    fn names_remembered(&self) -> u64 {
        let fetcher = self.0.fetcher.lock().unwrap_or_else(PoisonError::into_inner);
        fetcher.dialer().names_remembered()
    }
}
