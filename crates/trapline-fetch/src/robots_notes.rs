//! Where robots.txt files are remembered beyond this process: a few bytes for each authority.

use async_trait::async_trait;
use trapline_core::Timestamp;
use trapline_frontier::{CrawlChange, Frontier, NoteWrite, Query, Rows, Scan, StoreError};

/// A memory for robots.txt files that outlives the process, and that other workers may share.
///
/// An authority is scheme, host and port: `https://example.com:443`.
#[async_trait]
pub trait RobotsNotes: Send + Sync {
    /// What was put for an authority, unless it has expired.
    async fn get(&self, now: Timestamp, authority: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Puts what is known of an authority, in place of what was, until then.
    async fn put(
        &self,
        now: Timestamp,
        authority: &str,
        value: Vec<u8>,
        expires: Timestamp,
    ) -> Result<(), StoreError>;
}

/// The key ends with a sign that no authority has, so that none is the beginning of another.
fn key(authority: &str) -> String {
    format!("robots/{authority}/")
}

#[async_trait]
impl RobotsNotes for Frontier {
    async fn get(&self, now: Timestamp, authority: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let scan = Scan { limit: 1, ..Scan::new(Query::Notes { prefix: key(authority) }) };
        match self.scan(now, &scan).await?.rows {
            Rows::Notes(mut notes) => Ok(notes.pop().map(|note| note.value)),
            _ => Ok(None),
        }
    }

    async fn put(
        &self,
        now: Timestamp,
        authority: &str,
        value: Vec<u8>,
        expires: Timestamp,
    ) -> Result<(), StoreError> {
        let note = NoteWrite { key: key(authority), value: Some(value), expires: Some(expires) };
        self.steer_crawl(now, CrawlChange::Note(note)).await.map(|_| ())
    }
}
