//! Bodies as objects, each under a key of its content and the date: in a folder, or in a bucket of any server that speaks S3.
//!
//! `2026/05/01/ab/abcdef….zst`: the date of the visit, then BLAKE3 of the decoded body, then how it is compressed. What came twice on a day
//! is there once. Where the body of a URL is, the results of the crawl say.

mod compression;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::client::HttpConnector;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig};
use trapline_core::{Civil, Timestamp};
use trapline_crawl::fetch::Visit;
use trapline_crawl::ports::{Archive, ArchiveError};

pub use compression::BodyCompression;

/// So many keys are remembered, so that what came a moment ago is not sent again.
const RECENT_MAX: usize = 10_000;

/// What is written to see whether anything can be.
const PROBE: &str = ".trapline";

/// Keeps bodies in a folder or a bucket.
pub struct BodyArchive {
    /// Such as `s3://bucket/prefix`.
    name: String,
    store: Arc<dyn ObjectStore>,
    /// What all keys begin with, in a bucket.
    prefix: Key,
    compression: BodyCompression,
    /// Keys that were written of late.
    recent: Mutex<BTreeSet<String>>,
}

impl BodyArchive {
    /// Bodies in a folder, which is made if need be.
    pub fn folder(folder: &Path, compression: BodyCompression) -> Result<Self, ArchiveError> {
        let trouble = |error: &dyn std::fmt::Display| {
            ArchiveError(format!("cannot keep bodies in {}: {error}", folder.display()))
        };
        std::fs::create_dir_all(folder).map_err(|error| trouble(&error))?;
        let store =
            LocalFileSystem::new_with_prefix(folder).map_err(|error| trouble(&error))?.with_fsync(true);
        Ok(Self::new(format!("file:{}", folder.display()), Arc::new(store), Key::default(), compression))
    }

    /// Bodies in a bucket. Endpoint, region and credentials are those of the environment (`AWS_ENDPOINT_URL`, `AWS_REGION`,
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and so on); the connector makes the connections.
    pub fn s3(
        bucket: &str,
        prefix: &str,
        compression: BodyCompression,
        connector: impl HttpConnector,
    ) -> Result<Self, ArchiveError> {
        let prefix =
            Key::parse(prefix).map_err(|error| ArchiveError(format!("`{prefix}` is no prefix: {error}")))?;
        let name = match prefix.as_ref() {
            "" => format!("s3://{bucket}"),
            prefix => format!("s3://{bucket}/{prefix}"),
        };
        let store =
            bucket_of(bucket, connector).map_err(|why| ArchiveError(format!("cannot use {name}: {why}")))?;
        Ok(Self::new(name, store, prefix, compression))
    }

    fn new(name: String, store: Arc<dyn ObjectStore>, prefix: Key, compression: BodyCompression) -> Self {
        Self { name, store, prefix, compression, recent: Mutex::default() }
    }

    /// Writes a small object, `.trapline`, to see whether bodies could be.
    pub async fn probe(&self) -> Result<(), ArchiveError> {
        let note: &[u8] = b"Bodies of pages, kept by trapline.\n";
        self.put(PROBE, note.into()).await
    }

    async fn put(&self, key: &str, content: Bytes) -> Result<(), ArchiveError> {
        let place = self.prefix.parts().chain(Key::from(key).parts()).collect::<Key>();
        let put = self.store.put(&place, PutPayload::from_bytes(content)).await;
        put.map(drop).map_err(|error| {
            ArchiveError(format!(
                "cannot write {}/{key}: {}; the crawl goes on by itself when it can",
                self.name,
                short(&error)
            ))
        })
    }

    fn is_recent(&self, key: &str) -> bool {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }

    fn remember(&self, key: String) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= RECENT_MAX {
            recent.clear();
        }
        recent.insert(key);
    }
}

#[async_trait]
impl Archive for BodyArchive {
    fn name(&self) -> &str {
        &self.name
    }

    async fn keep(&self, visit: &Visit) -> Result<Option<String>, ArchiveError> {
        let Some(response) = visit.response.as_ref().filter(|response| !response.body.is_empty()) else {
            return Ok(None);
        };
        let body = response.body.clone();
        let digest = match &visit.page {
            Some(page) => page.digest,
            None => *blake3::hash(&body).as_bytes(),
        };
        let key = key(visit.started, &digest, self.compression);
        let place = Some(format!("{}/{key}", self.name));
        if self.is_recent(&key) {
            return Ok(place);
        }
        let compression = self.compression;
        let compressing = tokio::task::spawn_blocking(move || compression.compress(body));
        let content =
            compressing.await.map_err(|error| ArchiveError(format!("cannot compress a body: {error}")))??;
        self.put(&key, content).await?;
        self.remember(key);
        Ok(place)
    }
}

/// Reads an object of a bucket, with the endpoint and the credentials of the environment.
pub async fn read_object(bucket: &str, key: &str, connector: impl HttpConnector) -> Result<Bytes, String> {
    let place = Key::parse(key).map_err(|error| format!("`{key}` is no key: {error}"))?;
    let store = bucket_of(bucket, connector)?;
    let found = store.get(&place).await.map_err(|error| short(&error))?;
    found.bytes().await.map_err(|error| short(&error))
}

/// A bucket, with the endpoint and the credentials of the environment.
fn bucket_of(bucket: &str, connector: impl HttpConnector) -> Result<Arc<dyn ObjectStore>, String> {
    // Who waits longer is the crawl, and it says so.
    let retry = RetryConfig {
        max_retries: 2,
        retry_timeout: Duration::from_secs(20),
        backoff: BackoffConfig { init_backoff: Duration::from_millis(100), ..BackoffConfig::default() },
    };
    let builder = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry);
    match builder.with_http_connector(connector).build() {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(format!("{error}; look at the AWS_* variables of the environment")),
    }
}

/// Where a body belongs.
fn key(at: Timestamp, digest: &[u8; 32], compression: BodyCompression) -> String {
    let Civil { year, month, day, .. } = at.into();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{year:04}/{month:02}/{day:02}/{}/{hex}{}", &hex[..2], compression.suffix())
}

/// An error on one line.
fn short(error: &object_store::Error) -> String {
    let text = error.to_string();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_of_the_date_and_the_content() {
        let at = Timestamp::from_millis(951_782_400_123);
        let key = |compression| key(at, &[0xab; 32], compression);
        let plain = format!("2000/02/29/ab/{}", "ab".repeat(32));
        assert_eq!(key(BodyCompression::None), plain);
        assert_eq!(key(BodyCompression::Zstd), format!("{plain}.zst"));
        assert_eq!(key(BodyCompression::Brotli), format!("{plain}.br"));
    }
}
