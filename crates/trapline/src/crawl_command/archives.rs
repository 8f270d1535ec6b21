//! The archives of a crawl, opened: from their URLs to what keeps pages.

use std::sync::Arc;

use trapline_archive::{BodyArchive, WarcArchive, WarcInfo};
use trapline_crawl::ArchivePlace;
use trapline_crawl::ports::Archive;
use trapline_extract::SitemapLimits;
use trapline_fetch::FetchOptions;

use super::s3_client::S3Connector;
use crate::archive_url::{ArchiveKind, ArchiveUrl};
use crate::config::FileConfig;
use crate::ended::complain_of_crawl;

/// The archives of a crawl.
pub(super) struct OpenArchives(Vec<(ArchivePlace, Arc<dyn Archive>)>);

impl OpenArchives {
    /// Opens all that the configuration names. Each is tried out, so that who begins with one that cannot be written to hears of it.
    pub(super) async fn open(config: &FileConfig, fetch: &FetchOptions) -> Result<Self, String> {
        let mut all = Vec::new();
        for url in &config.output.archives {
            let archive = open(&url.0, config, fetch).await;
            all.push((url.0.place, archive.map_err(|error| format!("--archive {}: {error}", url.0.text()))?));
        }
        Ok(Self(all))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ArchivePlace, Arc<dyn Archive>)> {
        self.0.iter().map(|(place, archive)| (*place, Arc::clone(archive)))
    }

    /// Completes what is begun.
    pub(super) async fn close(&self) {
        for (_, archive) in &self.0 {
            if let Err(error) = archive.close().await {
                complain_of_crawl(&format!(
                    "{} is not complete: {error}; the next crawl with it completes it",
                    archive.name()
                ));
            }
        }
    }
}

/// What the fetcher has to keep of responses for the archives that there are.
pub(super) fn keep_raw(config: &FileConfig, options: &mut FetchOptions) {
    if !config.output.archives.iter().any(|url| url.0.wants_raw()) {
        return;
    }
    options.keep_raw = true;
    let limits = &mut options.limits;
    let body = limits.encoded_bytes_max.max(SitemapLimits::default().decoded_bytes_max);
    // Chunks have heads of their own.
    let most = body.saturating_add(body / 4).saturating_add(limits.header_bytes_max as u64);
    limits.raw_bytes_max = usize::try_from(most).unwrap_or(usize::MAX);
}

async fn open(
    url: &ArchiveUrl,
    config: &FileConfig,
    fetch: &FetchOptions,
) -> Result<Arc<dyn Archive>, String> {
    let bodies = match &url.kind {
        ArchiveKind::Warc(folder, options) => {
            let info = WarcInfo {
                crawl: Some(config.crawl.name.clone()),
                robots: Some(config.robots.policy.to_string()),
                user_agent: Some(fetch.user_agent_header()),
            };
            let options = trapline_archive::WarcOptions { info, ..(**options).clone() };
            let archive = WarcArchive::open(folder, options).map_err(|error| error.to_string())?;
            return Ok(Arc::new(archive));
        }
        ArchiveKind::Folder(folder, compression) => BodyArchive::folder(folder, *compression),
        ArchiveKind::S3 { bucket, prefix, compression } => {
            let connector = S3Connector::new(&fetch.dial)?;
            BodyArchive::s3(bucket, prefix, *compression, connector)
        }
    };
    let bodies = bodies.map_err(|error| error.to_string())?;
    bodies.probe().await.map_err(|error| error.to_string())?;
    Ok(Arc::new(bodies))
}
