//! A crawl in an image: all that there is little of. What there may be much of follows: see `kept.rs` and the other files.

use prost::{Message, Oneof};
use trapline_core::Timestamp;

use super::kept::{DeathMessage, DisregardMessage, KeptMessage, LeaseMessage, NoteMessage};
use super::parts::{MomentMessage, SpanMessage, entry, moment, read_span, shifted};
use super::{BadImage, parts};
use crate::engine::crawl::Crawl;
use crate::engine::jobs::{Job, Jobs, Task};
use crate::engine::queues::QueueId;
use crate::pattern::Pattern;
use crate::report::{CrawlState, JobReport};
use crate::settings::Settings;
use crate::verbs::{DeadChange, UrlsChange};

#[derive(Clone, PartialEq, Message)]
pub(super) struct CrawlMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) key: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    pub(super) settings: Option<SettingsMessage>,
    #[prost(uint32, tag = "4")]
    pub(super) partitions: u32,
    #[prost(uint64, tag = "5")]
    pub(super) started: u64,
    #[prost(bool, tag = "6")]
    pub(super) paused: bool,
    /// Why it is finished, if it is.
    #[prost(string, optional, tag = "7")]
    pub(super) finished: Option<String>,
    #[prost(uint64, tag = "8")]
    pub(super) now: u64,
    #[prost(uint64, tag = "9")]
    pub(super) rank: u64,
    #[prost(bool, tag = "10")]
    pub(super) unswept: bool,
    /// One for each generation that has ended.
    #[prost(message, repeated, tag = "11")]
    pub(super) reconsidered: Vec<MomentMessage>,
    #[prost(message, optional, tag = "12")]
    pub(super) period_set: Option<MomentMessage>,
    #[prost(uint64, tag = "13")]
    pub(super) charged_before_period_set: u64,
    #[prost(message, optional, tag = "14")]
    pub(super) period_timer: Option<MomentMessage>,
    #[prost(uint64, repeated, tag = "15")]
    pub(super) url_counts: Vec<u64>,
    #[prost(uint64, tag = "16")]
    pub(super) fetched: u64,
    #[prost(uint64, tag = "17")]
    pub(super) bytes: u64,
    #[prost(uint64, tag = "18")]
    pub(super) spent: u64,
    #[prost(uint64, tag = "19")]
    pub(super) granted: u64,
    #[prost(uint64, tag = "20")]
    pub(super) expired: u64,
    #[prost(message, repeated, tag = "21")]
    pub(super) groups: Vec<GroupMessage>,
    /// The partition whose turn it is.
    #[prost(uint64, tag = "22")]
    pub(super) turn: u64,
    /// These four are only in images of early versions; they have frames of their own now.
    #[prost(message, repeated, tag = "23")]
    pub(super) leases: Vec<LeaseMessage>,
    #[prost(message, repeated, tag = "24")]
    pub(super) deaths: Vec<DeathMessage>,
    #[prost(message, repeated, tag = "25")]
    pub(super) disregards: Vec<DisregardMessage>,
    #[prost(message, repeated, tag = "26")]
    pub(super) notes: Vec<NoteMessage>,
    #[prost(message, repeated, tag = "27")]
    pub(super) jobs: Vec<JobMessage>,
    #[prost(uint64, tag = "28")]
    pub(super) last_job: u64,
    /// The first free slots.
    #[prost(uint32, tag = "29")]
    pub(super) free: u32,
    #[prost(uint32, tag = "30")]
    pub(super) free_live: u32,
    /// How many follow.
    #[prost(uint32, tag = "31")]
    pub(super) records: u32,
    #[prost(uint32, tag = "32")]
    pub(super) lives: u32,
    #[prost(uint32, tag = "33")]
    pub(super) queues: u32,
    #[prost(uint32, tag = "34")]
    pub(super) mores: u32,
    #[prost(message, repeated, tag = "35")]
    pub(super) ended_jobs: Vec<EndedJobMessage>,
    /// How many of those follow that early versions have here.
    #[prost(message, optional, tag = "36")]
    pub(super) kept: Option<KeptMessage>,
    /// Whether ranks tell dates.
    #[prost(bool, tag = "37")]
    pub(super) is_dated: bool,
}

/// Settings by their names, as texts; those a text would round are beside it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct SettingsMessage {
    #[prost(btree_map = "string, string", tag = "1")]
    values: std::collections::BTreeMap<String, String>,
    #[prost(message, optional, tag = "2")]
    lease: Option<SpanMessage>,
    #[prost(message, optional, tag = "3")]
    delay: Option<SpanMessage>,
    #[prost(message, optional, tag = "4")]
    queue_budget_period: Option<SpanMessage>,
    #[prost(message, optional, tag = "5")]
    max_time: Option<SpanMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct GroupMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) next_fetch: Option<MomentMessage>,
    #[prost(bool, tag = "3")]
    pub(super) waits: bool,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct JobMessage {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    /// A sweep if this and the next are left out.
    #[prost(string, optional, tag = "2")]
    purge: Option<String>,
    #[prost(bool, optional, tag = "3")]
    replay: Option<bool>,
    #[prost(uint32, tag = "4")]
    queue: u32,
    #[prost(uint64, tag = "5")]
    before: u64,
    #[prost(uint32, tag = "6")]
    passed: u32,
    #[prost(uint32, tag = "7")]
    total: u32,
    #[prost(bool, tag = "8")]
    again: bool,
    #[prost(uint64, tag = "9")]
    affected: u64,
    #[prost(message, optional, tag = "10")]
    urls: Option<UrlsMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct UrlsMessage {
    #[prost(string, optional, tag = "1")]
    pattern: Option<String>,
    #[prost(oneof = "UrlsChangeMessage", tags = "2, 3, 4")]
    change: Option<UrlsChangeMessage>,
}

#[derive(Clone, PartialEq, Oneof)]
enum UrlsChangeMessage {
    #[prost(bool, tag = "2")]
    Forget(bool),
    #[prost(bool, tag = "3")]
    Revisit(bool),
    #[prost(uint64, tag = "4")]
    ForgetPages(u64),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EndedJobMessage {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    what: String,
    #[prost(uint64, tag = "3")]
    passed: u64,
    #[prost(uint64, tag = "4")]
    total: u64,
    #[prost(uint64, tag = "5")]
    affected: u64,
}

impl EndedJobMessage {
    fn of(job: &JobReport) -> Self {
        let JobReport { id, what, passed, total, affected, ended: _ } = job.clone();
        Self { id, what, passed, total, affected }
    }

    pub(super) fn read(self) -> JobReport {
        let Self { id, what, passed, total, affected } = self;
        JobReport { id, what, passed, total, affected, ended: true }
    }
}

impl CrawlMessage {
    pub(super) fn of(crawl: &Crawl) -> Self {
        let Jobs { jobs, last, ended } = &crawl.jobs;
        Self {
            name: crawl.name.to_string(),
            key: crawl.key.as_bytes().to_vec(),
            settings: Some(SettingsMessage::of(&crawl.settings)),
            partitions: crawl.lines.len(),
            started: crawl.started.as_millis(),
            paused: crawl.state == CrawlState::Paused,
            finished: match &crawl.state {
                CrawlState::Finished(reason) => Some(reason.clone()),
                CrawlState::Running | CrawlState::Paused => None,
            },
            now: crawl.now.as_millis(),
            rank: crawl.rank,
            unswept: crawl.unswept,
            reconsidered: crawl.reconsidered.iter().copied().map(MomentMessage::from).collect(),
            period_set: moment(crawl.period_set),
            charged_before_period_set: crawl.charged_before_period_set.as_millis(),
            period_timer: crawl.period_timer.map(MomentMessage::from),
            url_counts: crawl.url_counts.to_vec(),
            fetched: crawl.fetched,
            bytes: crawl.bytes,
            spent: crawl.spent,
            granted: crawl.granted,
            expired: crawl.expired,
            groups: crawl
                .groups
                .iter()
                .map(|group| GroupMessage {
                    name: group.name.to_string(),
                    next_fetch: moment(group.next_fetch),
                    waits: group.waits,
                })
                .collect(),
            turn: crawl.lines.turn as u64,
            leases: Vec::new(),
            deaths: Vec::new(),
            disregards: Vec::new(),
            notes: Vec::new(),
            jobs: jobs.iter().map(|(id, job)| JobMessage::of(*id, job)).collect(),
            last_job: *last,
            ended_jobs: ended.iter().map(EndedJobMessage::of).collect(),
            free: entry(crawl.urls.free.some()),
            free_live: shifted(crawl.urls.free_live),
            records: crawl.urls.slots(),
            lives: crawl.urls.live.len() as u32,
            queues: crawl.queues.len(),
            mores: crawl.urls.more.len() as u32,
            kept: Some(KeptMessage::of(crawl)),
            is_dated: crawl.urls.is_dated,
        }
    }
}

impl SettingsMessage {
    fn of(settings: &Settings) -> Self {
        let values = Settings::NAMES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), settings.get(name)?)))
            .collect();
        Self {
            values,
            lease: Some(settings.lease.into()),
            delay: Some(settings.delay.into()),
            queue_budget_period: settings.queue_budget_period.map(SpanMessage::from),
            max_time: settings.max_time.map(SpanMessage::from),
        }
    }

    pub(super) fn read(&self) -> Result<Settings, BadImage> {
        let mut settings = Settings::default();
        for (name, value) in &self.values {
            // What a period or a limit of no time at all would be as a text is not one; the exact value follows.
            if !matches!(name.as_str(), "lease" | "delay" | "queue_budget_period" | "max_time") {
                settings.set(name, value).map_err(|_| BadImage::Impossible("a setting"))?;
            }
        }
        settings.lease = read_span(self.lease)?.ok_or(BadImage::Lacks("how long leases are"))?;
        settings.delay = read_span(self.delay)?.ok_or(BadImage::Lacks("how long delays are"))?;
        settings.queue_budget_period = read_span(self.queue_budget_period)?;
        settings.max_time = read_span(self.max_time)?;
        Ok(settings)
    }
}

impl JobMessage {
    fn of(id: u64, job: &Job) -> Self {
        let Job { task, before, passed, total, again, affected } = job;
        let (mut purge, mut replay, mut urls) = (None, None, None);
        let queue = match task {
            Task::Sweep => None,
            Task::Purge { queue, pattern } => {
                purge = Some(pattern.to_string());
                *queue
            }
            Task::Dead { queue, change } => {
                replay = Some(*change == DeadChange::Replay);
                *queue
            }
            Task::Urls { queue, pattern, change } => {
                urls = Some(UrlsMessage::of(pattern.as_ref(), *change));
                *queue
            }
        };
        Self {
            id,
            purge,
            replay,
            queue: queue.map_or(0, |queue| shifted(queue.0)),
            before: *before,
            passed: *passed,
            total: *total,
            again: *again,
            affected: *affected,
            urls,
        }
    }

    pub(super) fn read(&self, queues: u32) -> Result<Job, BadImage> {
        let queue = (self.queue != 0).then(|| QueueId(parts::unshifted(self.queue)));
        if queue.is_some_and(|queue| queue.0 >= queues) {
            return Err(BadImage::Impossible("the queue of a job"));
        }
        let task = match (&self.purge, self.replay, &self.urls) {
            (Some(pattern), ..) => Task::Purge { queue, pattern: Pattern::new(pattern.clone()) },
            (None, Some(replay), _) => {
                let change = if replay { DeadChange::Replay } else { DeadChange::Purge };
                Task::Dead { queue, change }
            }
            (None, None, Some(urls)) => urls.read(queue)?,
            (None, None, None) => Task::Sweep,
        };
        Ok(Job {
            task,
            before: self.before,
            passed: self.passed,
            total: self.total,
            again: self.again,
            affected: self.affected,
        })
    }
}

impl UrlsMessage {
    fn of(pattern: Option<&Pattern>, change: UrlsChange) -> Self {
        let change = match change {
            UrlsChange::Forget => UrlsChangeMessage::Forget(true),
            UrlsChange::Revisit => UrlsChangeMessage::Revisit(true),
            UrlsChange::ForgetPages(before) => UrlsChangeMessage::ForgetPages(before.as_millis()),
        };
        Self { pattern: pattern.map(ToString::to_string), change: Some(change) }
    }

    fn read(&self, queue: Option<QueueId>) -> Result<Task, BadImage> {
        let change = match self.change.as_ref().ok_or(BadImage::Lacks("what a job does"))? {
            UrlsChangeMessage::Forget(_) => UrlsChange::Forget,
            UrlsChangeMessage::Revisit(_) => UrlsChange::Revisit,
            UrlsChangeMessage::ForgetPages(before) => {
                UrlsChange::ForgetPages(Timestamp::from_millis(*before))
            }
        };
        Ok(Task::Urls { queue, pattern: self.pattern.clone().map(Pattern::new), change })
    }
}
