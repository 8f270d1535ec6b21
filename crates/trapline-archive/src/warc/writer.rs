//! The thread that writes: it takes all visits that wait, writes them, syncs once, and tells everybody. Meanwhile the next ones gather.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use tokio::sync::oneshot;
use trapline_crawl::ports::ArchiveError;

use super::WarcOptions;
use super::file::WarcFile;
use super::files::Files;
use super::group::Group;
use super::gzip::Gzips;
use super::recovery::complete_what_is_left;
use super::scan::RecordCounts;
use super::seen::Seen;

/// So much is written between two syncs at most.
const BATCH_BYTES_MAX: u64 = 16 << 20;

/// While so many visits are under way, those that come within this time are synced together: each sync has its price, and nobody waits
/// for one page.
const CROWD: usize = 16;
const TOGETHER: Duration = Duration::from_millis(3);

type Answer = Result<String, ArchiveError>;

/// What the thread is asked for.
enum Job {
    Keep(Box<Group>, oneshot::Sender<Answer>),
    /// No more comes.
    Close(oneshot::Sender<Result<(), ArchiveError>>),
}

/// The thread that writes.
pub(super) struct Writer {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    counts: Arc<Mutex<RecordCounts>>,
    /// How many visits are being kept.
    under_way: Arc<AtomicUsize>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(
        files: Arc<dyn Files>,
        folder: PathBuf,
        options: WarcOptions,
        seen: Arc<Seen>,
        gzips: Arc<Gzips>,
    ) -> std::io::Result<Self> {
        let (jobs, asked) = mpsc::channel();
        let counts = Arc::default();
        let under_way = Arc::default();
        let desk = Desk {
            files,
            folder,
            options,
            seen,
            gzips,
            file: None,
            serial: 0,
            has_left: false,
            counts: Arc::clone(&counts),
            under_way: Arc::clone(&under_way),
        };
        let thread = std::thread::Builder::new().name("warc".to_owned()).spawn(move || desk.work(&asked))?;
        Ok(Self { jobs: Mutex::new(Some(jobs)), counts, under_way, thread: Mutex::new(Some(thread)) })
    }

    /// A visit is being kept, as long as this lives.
    pub(super) fn begin(&self) -> UnderWay<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(&self.under_way)
    }

    /// Has a group written. The answer comes when it is safe, and says where it is.
    pub(super) fn send(&self, group: Group, answer: oneshot::Sender<Answer>) -> Result<(), ArchiveError> {
        let closed = || ArchiveError("the archive was closed".to_owned());
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let jobs = jobs.as_ref().ok_or_else(closed)?;
        jobs.send(Job::Keep(Box::new(group), answer)).map_err(|_| closed())
    }

    /// Completes the file, and waits for it.
    pub(super) async fn close(&self) -> Result<(), ArchiveError> {
        let Some(jobs) = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let (answer, answered) = oneshot::channel();
        if jobs.send(Job::Close(answer)).is_err() {
            return Err(ArchiveError("the thread that writes is gone".to_owned()));
        }
        answered.await.unwrap_or_else(|_| Err(ArchiveError("the thread that writes is gone".to_owned())))
    }

    pub(super) fn counts(&self) -> RecordCounts {
        *locked(&self.counts)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Without anybody who could ask, the thread completes its file and ends.
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

/// A visit that is being kept.
pub(super) struct UnderWay<'w>(&'w AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the thread has.
struct Desk {
    files: Arc<dyn Files>,
    folder: PathBuf,
    options: WarcOptions,
    seen: Arc<Seen>,
    gzips: Arc<Gzips>,
    file: Option<WarcFile>,
    serial: u64,
    /// A file could not be written on, or completed.
    has_left: bool,
    counts: Arc<Mutex<RecordCounts>>,
    under_way: Arc<AtomicUsize>,
}

impl Desk {
    fn work(mut self, asked: &mpsc::Receiver<Job>) {
        while let Ok(first) = asked.recv() {
            if self.under_way.load(Ordering::Relaxed) >= CROWD {
                std::thread::sleep(TOGETHER);
            }
            let (mut groups, mut answers, mut bytes) = (Vec::new(), Vec::new(), 0);
            let mut next = Some(first);
            let mut close = None;
            while let Some(job) = next {
                match job {
                    Job::Keep(group, answer) => {
                        bytes += group.bytes.len() as u64;
                        groups.push(*group);
                        answers.push(answer);
                    }
                    Job::Close(answer) => close = Some(answer),
                }
                let is_enough = bytes >= BATCH_BYTES_MAX || close.is_some();
                next = if is_enough { None } else { asked.try_recv().ok() };
            }
            self.write(groups, answers);
            if let Some(answer) = close {
                // Who has asked may not wait any more.
                let _ = answer.send(self.complete());
                return;
            }
        }
        if let Err(error) = self.complete() {
            tracing::warn!(%error, "a WARC file is not complete; opening the folder again completes it");
        }
    }

    /// Writes groups, as many at once as fit into a file.
    fn write(&mut self, mut groups: Vec<Group>, mut answers: Vec<oneshot::Sender<Answer>>) {
        while !groups.is_empty() {
            let mut bytes = self.file.as_ref().map_or(0, WarcFile::bytes);
            let mut fitting = 0;
            for group in &groups {
                if fitting > 0 && bytes >= self.options.max_size {
                    break;
                }
                bytes += group.bytes.len() as u64;
                fitting += 1;
            }
            let rest = groups.split_off(fitting);
            let later = answers.split_off(fitting);
            let written = self.write_batch(&mut groups);
            for (group, answer) in groups.into_iter().zip(answers) {
                let place = written.clone().map(|file| format!("warc:{file}#{}", group.entry.offset));
                // Who has asked may not wait any more.
                let _ = answer.send(place);
            }
            (groups, answers) = (rest, later);
        }
    }

    /// Writes groups into one file, and completes it when it is large enough. Answers its name.
    fn write_batch(&mut self, groups: &mut [Group]) -> Result<String, ArchiveError> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                if self.has_left {
                    complete_what_is_left(&self.folder).map_err(|error| {
                        ArchiveError(format!(
                            "cannot complete what is left in {}: {error}",
                            self.folder.display()
                        ))
                    })?;
                    self.has_left = false;
                }
                let begun = WarcFile::create(
                    &*self.files,
                    &self.folder,
                    &self.options,
                    &mut self.serial,
                    &self.gzips,
                )?;
                locked(&self.counts).warcinfo += 1;
                begun
            }
        };
        let name = file.final_name();
        let appended = file.append(groups);
        let is_full = file.bytes() >= self.options.max_size;
        if file.is_broken() {
            // Let go of, it is recovered like one that a crash has left, before another one is begun.
            self.has_left = true;
        } else {
            self.file = Some(file);
        }
        appended?;
        for group in groups {
            *locked(&self.counts) += group.counts;
            if let Some((digest, original)) = group.novel.take() {
                self.seen.add(digest, original);
            }
        }
        if is_full && let Err(error) = self.complete() {
            // What is in it is safe all the same, and it is completed before another one is begun.
            tracing::warn!(%error, "a WARC file is not complete yet");
            self.has_left = true;
        }
        Ok(name)
    }

    fn complete(&mut self) -> Result<(), ArchiveError> {
        self.file.take().map_or(Ok(()), WarcFile::complete)
    }
}

fn locked(counts: &Mutex<RecordCounts>) -> MutexGuard<'_, RecordCounts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}
