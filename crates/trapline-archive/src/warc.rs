//! WARC 1.1 files: each visit as records, each record a gzip member, and an index beside each file.
//!
//! A file is called `NAME.warc.gz.open` until it is complete. Many visits are synced at once, by a thread of its own; what a crash
//! leaves half-written is cut off when the folder is opened again.

mod cdxj;
mod file;
mod files;
mod group;
mod gzip;
mod name;
mod record;
mod recovery;
mod scan;
mod seen;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::{Semaphore, oneshot};
use trapline_core::Timestamp;
use trapline_crawl::fetch::Visit;
use trapline_crawl::ports::{Archive, ArchiveError};

use self::files::{Files, RealFiles};
use self::group::{Exchange, Group};
use self::gzip::Gzips;
use self::seen::Seen;
use self::writer::Writer;

pub use self::name::NameTemplate;
pub use self::scan::{RecordCounts, WarcScan, scan_warc};

/// What is no longer than this is compressed where it is, in a millisecond or two: another thread would cost more than it spares.
const AT_ONCE_BYTES: usize = 128 << 10;

/// How WARC files are written.
#[derive(Clone, Debug)]
pub struct WarcOptions {
    /// A file that has become this large is completed, and another one begun. Defaults to 1 GiB.
    pub max_size: u64,
    /// What files are called. Defaults to `{prefix}-{timestamp}-{serial}-{host}`.
    pub name: NameTemplate,
    /// How hard gzip tries, from 1 to 9. Defaults to 6.
    pub level: u32,
    /// So many digests of bodies are remembered, so that a body that comes again is not written again; 0 for none. Defaults to 100,000.
    pub dedup: usize,
    /// What the files say about themselves.
    pub info: WarcInfo,
}

impl Default for WarcOptions {
    fn default() -> Self {
        Self {
            max_size: 1 << 30,
            name: NameTemplate::default(),
            level: 6,
            dedup: 100_000,
            info: WarcInfo::default(),
        }
    }
}

/// What the `warcinfo` record of a file says.
#[derive(Clone, Debug, Default)]
pub struct WarcInfo {
    /// The crawl it belongs to.
    pub crawl: Option<String>,
    /// How robots.txt was treated, such as `obey`.
    pub robots: Option<String>,
    /// What was sent as `User-Agent`.
    pub user_agent: Option<String>,
}

/// A folder of WARC files that is written to.
pub struct WarcArchive {
    name: String,
    writer: Writer,
    seen: Arc<Seen>,
    gzips: Arc<Gzips>,
    /// Compressing takes a processor, so that no more of it goes on at once than there are.
    turns: Arc<Semaphore>,
}

impl WarcArchive {
    /// Opens a folder, makes it if need be, and completes what a crash has left in it.
    pub fn open(folder: &Path, options: WarcOptions) -> Result<Self, ArchiveError> {
        Self::open_on(Arc::new(RealFiles), folder, options)
    }

    fn open_on(files: Arc<dyn Files>, folder: &Path, options: WarcOptions) -> Result<Self, ArchiveError> {
        let trouble = |what: &str, error: std::io::Error| {
            ArchiveError(format!("cannot {what} {}: {error}", folder.display()))
        };
        std::fs::create_dir_all(folder).map_err(|error| trouble("make the folder", error))?;
        recovery::complete_what_is_left(folder)
            .map_err(|error| trouble("complete what is left in", error))?;
        let seen = Arc::new(Seen::new(options.dedup));
        seen.read(folder).map_err(|error| trouble("read the indexes in", error))?;
        let turns = std::thread::available_parallelism().map_or(1, usize::from);
        let gzips = Arc::new(Gzips::new(options.level));
        let writer = Writer::start(files, folder.to_owned(), options, Arc::clone(&seen), Arc::clone(&gzips))
            .map_err(|error| trouble("start a thread to write to", error))?;
        Ok(Self {
            name: format!("warc:{}", folder.display()),
            writer,
            seen,
            gzips,
            turns: Arc::new(Semaphore::new(turns)),
        })
    }

    /// How many records it has written since it was opened, those of them that are safe.
    pub fn counts(&self) -> RecordCounts {
        self.writer.counts()
    }
}

#[async_trait]
impl Archive for WarcArchive {
    fn name(&self) -> &str {
        &self.name
    }

    async fn keep(&self, visit: &Visit) -> Result<Option<String>, ArchiveError> {
        let Some(exchange) = Exchange::of(visit)? else { return Ok(None) };
        let gone = |_| ArchiveError("the archive was closed".to_owned());
        let _under_way = self.writer.begin();
        let group = if exchange.bytes() <= AT_ONCE_BYTES {
            Group::of(&exchange, &self.seen, &self.gzips)?
        } else {
            let _turn =
                self.turns.acquire().await.map_err(|_| ArchiveError("the archive was closed".to_owned()))?;
            let (seen, gzips) = (Arc::clone(&self.seen), Arc::clone(&self.gzips));
            let compressing = tokio::task::spawn_blocking(move || Group::of(&exchange, &seen, &gzips));
            compressing.await.map_err(|error| ArchiveError(format!("cannot compress a page: {error}")))??
        };
        let (answer, answered) = oneshot::channel();
        self.writer.send(group, answer)?;
        answered.await.map_err(gone)?.map(Some)
    }

    async fn close(&self) -> Result<(), ArchiveError> {
        self.writer.close().await
    }
}

/// The machine's name, as far as it can be part of a file's.
fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let name: String =
        name.chars().map(|c| if name::is_fit(c) && c != '.' { c } else { '-' }).take(64).collect();
    if name.is_empty() { "host".to_owned() } else { name }
}

/// What the machine's clock says.
fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A path with something behind it.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
