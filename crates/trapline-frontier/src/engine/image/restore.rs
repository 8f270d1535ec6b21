//! A crawl made from an image: what was left out, because it follows from the rest, is made again.
//!
//! Frames come with checksums, so what cannot be is a bug or a wrong version, not a broken disk; it is an error all the
//! same, never a panic.

use std::sync::Arc;

use trapline_core::{IdentityKey, Timestamp};

use super::BadImage;
use super::crawl::{CrawlMessage, EndedJobMessage};
use super::kept::{DeathMessage, DisregardMessage, KeptMessage, LeaseMessage, NoteMessage};
use super::lent::{self, LentLives, LentRecords};
use super::mores::PlainMoresMessage;
use super::parts::{read_moment, unshifted};
use super::queues::QueuesMessage;
use crate::engine::Engine;
use crate::engine::chunks::CHUNK;
use crate::engine::crawl::Crawl;
use crate::engine::moment::Moment;
use crate::engine::queues::{QueueId, Retired, Standing};
use crate::engine::room::Room;
use crate::engine::timers::Event;
use crate::engine::urls::{EntryId, Live, Record, State};
use crate::frame_source::FrameSource;
use crate::report::CrawlState;
use crate::verbs::NewCrawl;

/// So many places of the seen table are looked at ahead.
const TOUCHED_AHEAD: u32 = 64;

/// A crawl of which some frames were read.
#[derive(Debug)]
pub(super) struct Restored {
    crawl: Crawl,
    message: CrawlMessage,
    room: Option<Arc<Room>>,
    /// Where frames stay, if they do.
    source: Option<Arc<dyn FrameSource>>,
    /// There cannot be more.
    most_records: u64,
    /// The first so many records stay in their frames.
    lent: u32,
    /// A bit for each live part that stands in a tree, or did once, as far as records are lent.
    in_trees: Vec<u64>,
    /// Which of the records that are lent wait for a timer.
    waiting: Vec<EntryId>,
}

impl Restored {
    pub(super) fn begin(
        mut message: CrawlMessage,
        engine: &Engine,
        source: Option<&(Arc<dyn FrameSource>, u64)>,
    ) -> Result<Self, BadImage> {
        let key = <[u8; 32]>::try_from(message.key.as_slice()).map_err(|_| BadImage::Impossible("a key"))?;
        let settings = message.settings.as_ref().ok_or(BadImage::Lacks("settings"))?.read()?;
        if message.partitions == 0 || message.partitions > crate::engine::MOST_PARTITIONS {
            return Err(BadImage::Impossible("a number of partitions"));
        }
        let new = NewCrawl { settings, partitions: message.partitions, key: IdentityKey::from_bytes(key) };
        let name = Arc::from(message.name.as_str());
        let started = Timestamp::from_millis(message.started);
        let mut crawl = Crawl::new(name, started, new, engine.outside(), engine.planted);
        crawl.state = match (message.finished.take(), message.paused) {
            (Some(reason), _) => CrawlState::Finished(reason),
            (None, true) => CrawlState::Paused,
            (None, false) => CrawlState::Running,
        };
        crawl.now = Timestamp::from_millis(message.now);
        crawl.rank = message.rank;
        crawl.urls.is_dated = message.is_dated;
        crawl.unswept = message.unswept;
        crawl.generation = message.reconsidered.len() as u64;
        crawl.reconsidered = message.reconsidered.iter().copied().map(Moment::from).collect();
        crawl.period_set = read_moment(message.period_set);
        crawl.charged_before_period_set = Timestamp::from_millis(message.charged_before_period_set);
        crawl.url_counts =
            message.url_counts.as_slice().try_into().map_err(|_| BadImage::Impossible("counts of URLs"))?;
        crawl.fetched = message.fetched;
        crawl.bytes = message.bytes;
        crawl.spent = message.spent;
        crawl.granted = message.granted;
        crawl.expired = message.expired;
        for group in &message.groups {
            let id = crawl.groups.find_or_make(&Arc::from(group.name.as_str()));
            crawl.groups[id].next_fetch = read_moment(group.next_fetch);
            crawl.groups[id].waits = group.waits;
        }
        crawl.urls.free = EntryId(unshifted(message.free));
        crawl.urls.free_live = unshifted(message.free_live);
        let (leases, deaths) = (std::mem::take(&mut message.leases), std::mem::take(&mut message.deaths));
        let (disregards, notes) =
            (std::mem::take(&mut message.disregards), std::mem::take(&mut message.notes));
        if let Some((source, _)) = source {
            crawl.urls.records.begin_lending(Arc::clone(source), lent::records);
            crawl.urls.live.begin_lending(Arc::clone(source), lent::lives);
        }
        let mut restored = Self {
            crawl,
            message,
            room: engine.room.clone(),
            source: source.map(|(source, _)| Arc::clone(source)),
            most_records: source.map_or(0, |(_, most)| *most),
            lent: 0,
            in_trees: Vec::new(),
            waiting: Vec::new(),
        };
        restored.leases(&leases)?;
        restored.deaths(deaths)?;
        restored.disregards(disregards)?;
        restored.notes(notes);
        Ok(restored)
    }

    pub(super) fn leases(&mut self, leases: &[LeaseMessage]) -> Result<(), BadImage> {
        for lease in leases {
            self.message.known_entry(lease.entry)?;
            self.crawl.leases.insert(lease.id, lease.read());
        }
        Ok(())
    }

    pub(super) fn deaths(&mut self, deaths: Vec<DeathMessage>) -> Result<(), BadImage> {
        for death in deaths {
            let id = self.message.known_entry(death.entry)?;
            self.crawl.dead_letters.insert(id, death.read());
        }
        Ok(())
    }

    pub(super) fn disregards(&mut self, disregards: Vec<DisregardMessage>) -> Result<(), BadImage> {
        for disregard in disregards {
            let id = self.message.known_entry(disregard.entry)?;
            self.crawl.disregards.insert(id, disregard.reason);
        }
        Ok(())
    }

    pub(super) fn notes(&mut self, notes: Vec<NoteMessage>) {
        for (key, note) in notes.into_iter().map(NoteMessage::read) {
            self.crawl.notes.insert(key, note);
        }
    }

    pub(super) fn records(&mut self, records: Vec<Record>) {
        for record in records {
            self.crawl.urls.records.push(record);
        }
        self.relieve();
    }

    /// Records that stay in their frame. The seen table has them from now on.
    pub(super) fn lent_records(&mut self, records: &LentRecords) -> Result<(), BadImage> {
        let urls = &mut self.crawl.urls;
        let first = urls.slots();
        if first == 0 {
            urls.reserve_seen(self.most_records.min(self.message.records.into()) as usize);
        }
        if first != self.lent || !urls.records.lend(records.frame, records.len()) {
            return Err(BadImage::Impossible("records in pieces"));
        }
        self.lent = urls.slots();
        let identities: Vec<_> = records.identities().collect();
        for some in identities.chunks(TOUCHED_AHEAD as usize) {
            // Where they will be is looked at before, all at once: none of these looks waits for another.
            urls.touch_seen(some.iter().map(|(_, identity)| *identity));
            for (at, identity) in some {
                urls.restore_seen(EntryId(first + at), *identity);
            }
        }
        Ok(())
    }

    pub(super) fn lives(&mut self, lives: Vec<Live>) {
        for live in lives {
            if live.in_tree {
                self.note_in_tree(self.crawl.urls.live.len());
            }
            self.crawl.urls.live.push(live);
        }
        self.relieve();
    }

    /// Live parts that stay in their frame.
    pub(super) fn lent_lives(&mut self, lives: &LentLives) -> Result<(), BadImage> {
        let first = self.crawl.urls.live.len();
        if !self.crawl.urls.live.lend(lives.frame, lives.len()) {
            return Err(BadImage::Impossible("live parts in pieces"));
        }
        for at in lives.in_trees() {
            self.note_in_tree(first + at);
        }
        Ok(())
    }

    fn note_in_tree(&mut self, live: usize) {
        if self.in_trees.len() <= live / 64 {
            self.in_trees.resize(live / 64 + 1, 0);
        }
        self.in_trees[live / 64] |= 1 << (live % 64);
    }

    pub(super) fn mores(&mut self, message: PlainMoresMessage) -> Result<(), BadImage> {
        let urls = &mut self.crawl.urls;
        for more in message.mores {
            let id = self.message.known_entry(more.entry)?;
            if urls.more.get(id).is_some() {
                return Err(BadImage::Impossible("one entry twice"));
            }
            let more = more.read()?;
            if id.0 < self.lent {
                if more.newer.is_some() {
                    urls.forget_seen(id);
                }
                if more.due != Moment::ZERO {
                    self.waiting.push(id);
                }
            }
            urls.more.put(id, more);
        }
        self.relieve();
        Ok(())
    }

    pub(super) fn queues(&mut self, message: QueuesMessage) -> Result<(), BadImage> {
        for queue in message.queues {
            let queue = queue.read(self.message.records)?;
            if u32::from(queue.partition) >= self.message.partitions
                || queue.group().is_some_and(|group| group.0 as usize >= self.message.groups.len())
                || matches!(queue.retired(), Some(Retired::OverBudget(g)) if g > self.crawl.generation)
            {
                return Err(BadImage::Impossible("a queue"));
            }
            self.crawl.queues.restore(queue);
        }
        Ok(())
    }

    /// The crawl, now that everything was read.
    pub(super) fn end(mut self) -> Result<Crawl, BadImage> {
        let message = &self.message;
        let crawl = &self.crawl;
        let counts = [
            (crawl.urls.slots(), message.records),
            (crawl.urls.live.len() as u32, message.lives),
            (crawl.queues.len(), message.queues),
            (crawl.urls.more.len() as u32, message.mores),
        ];
        let kept = KeptMessage::of(crawl);
        if counts.iter().any(|(has, said)| has != said) || message.kept.is_some_and(|said| said != kept) {
            return Err(BadImage::Lacks("some of its frames"));
        }
        self.check_records()?;
        self.make_jobs()?;
        self.make_orders()?;
        self.make_lines();
        self.make_timers();
        self.crawl.urls.is_all_kept();
        self.crawl.queues.is_all_kept();
        Ok(self.crawl)
    }

    /// What was read of it need not be in memory.
    fn relieve(&mut self) {
        self.crawl.relieve(self.room.as_ref());
    }

    /// The same now and then, on the way through all entries.
    fn relieve_at(&mut self, slot: u32) {
        if slot.is_multiple_of(CHUNK as u32) {
            self.relieve();
        }
    }

    /// Whether what records refer to is there; and the seen table. Those that are lent have their checksum.
    fn check_records(&mut self) -> Result<(), BadImage> {
        let (lives, queues) = (self.message.lives, self.message.queues);
        self.crawl.urls.reserve_seen(self.message.records as usize);
        for slot in self.lent..self.message.records {
            self.relieve_at(slot);
            let urls = &mut self.crawl.urls;
            if slot.is_multiple_of(TOUCHED_AHEAD) {
                let ahead = slot..(slot + TOUCHED_AHEAD).min(self.message.records);
                urls.touch_seen(ahead.map(|slot| urls[EntryId(slot)].identity()));
            }
            let id = EntryId(slot);
            if urls.state(id) == State::Free {
                continue;
            }
            let record = &urls[id];
            let has_live = record.live < lives;
            let has_more = urls.more.get(id).is_some();
            if record.queue.0 >= queues
                || record.state().is_live() && !has_live
                || record.has_more() != has_more
                || waits(record.state()) && !has_more
            {
                return Err(BadImage::Impossible("a record"));
            }
            if urls.more(id).newer.is_none() {
                urls.restore_seen(id, urls[id].identity());
            }
        }
        Ok(())
    }

    fn make_jobs(&mut self) -> Result<(), BadImage> {
        let crawl = &mut self.crawl;
        for job in &self.message.jobs {
            if job.id > self.message.last_job {
                return Err(BadImage::Impossible("a job"));
            }
            crawl.jobs.jobs.insert(job.id, job.read(self.message.queues)?);
        }
        crawl.jobs.last = self.message.last_job;
        let ended = std::mem::take(&mut self.message.ended_jobs);
        crawl.jobs.ended = ended.into_iter().map(EndedJobMessage::read).collect();
        Ok(())
    }

    /// The trees of the queues' orders; their lanes are there already.
    fn make_orders(&mut self) -> Result<(), BadImage> {
        for chunk in 0..(self.lent as usize).div_ceil(CHUNK) {
            for id in self.perhaps_in_trees(chunk)? {
                self.make_order(id);
            }
            self.relieve();
        }
        for slot in self.lent..self.message.records {
            self.relieve_at(slot);
            self.make_order(EntryId(slot));
        }
        Ok(())
    }

    /// Which records of a chunk that is lent, or was, may stand in a tree.
    fn perhaps_in_trees(&self, chunk: usize) -> Result<Vec<EntryId>, BadImage> {
        if self.in_trees.is_empty() {
            return Ok(Vec::new());
        }
        let slots = (chunk * CHUNK) as u32..self.lent.min(((chunk + 1) * CHUNK) as u32);
        let Some((frame, source)) = self.crawl.urls.records.frame_of(chunk).zip(self.source.as_ref()) else {
            return Ok(slots.map(EntryId).collect());
        };
        let bytes = source.frame(frame).ok_or(BadImage::Lacks("a frame that was there"))?;
        let lives = lent::lives_of_records(&bytes, slots.len()).ok_or(BadImage::Impossible("a record"))?;
        let is_in_tree = |live: u64| {
            let live = live.wrapping_sub(1);
            self.in_trees.get((live / 64) as usize).is_some_and(|bits| bits >> (live % 64) & 1 != 0)
        };
        Ok(slots.zip(lives).filter(|(_, live)| is_in_tree(*live)).map(|(slot, _)| EntryId(slot)).collect())
    }

    fn make_order(&mut self, id: EntryId) {
        let Crawl { urls, queues, settings, .. } = &mut self.crawl;
        if urls.state(id) != State::Pending || !urls.live(id).in_tree {
            return;
        }
        let queue = &mut queues[urls[id].queue];
        let gone = urls[id].deletions != queue.deletions() || urls.live(id).purges != queue.purges();
        if !gone {
            queue.order.restore_in_tree(settings.order, urls, id);
        }
    }

    /// The census, and who stands where.
    fn make_lines(&mut self) {
        let crawl = &mut self.crawl;
        let mut in_line = Vec::new();
        for id in (0..crawl.queues.len()).map(QueueId) {
            let queue = &crawl.queues[id];
            crawl.census.add(queue, crawl.generation);
            let (partition, standing) = (queue.partition, queue.standing);
            match (standing, queue.retired(), queue.group()) {
                (Standing::Nowhere, ..) => {}
                (Standing::InGroup, _, Some(group)) => {
                    let turn = crawl.turn_of(id);
                    crawl.join_group(group, partition, turn);
                }
                (Standing::Aside, Some(Retired::OverBudget(generation)), _) => {
                    let turn = crawl.turn_of(id);
                    let ended = crawl.reconsidered.get(generation as usize).copied();
                    crawl.lines.of(partition).restore_aside(turn, generation, ended);
                }
                _ => in_line.push((queue.age().since, id)),
            }
        }
        // The eldest first: whoever joins in order costs little.
        in_line.sort_unstable();
        for (_, id) in in_line {
            let turn = crawl.turn_of(id);
            crawl.lines.of(crawl.queues[id].partition).join(turn);
        }
        crawl.lines.turn = (self.message.turn as usize).min(crawl.lines.len() as usize - 1);
    }

    fn make_timers(&mut self) {
        let crawl = &mut self.crawl;
        for id in (0..crawl.queues.len()).map(QueueId) {
            if let Some(moment) = crawl.queues[id].timer_moment() {
                crawl.timers.set(moment, Event::Queue(id));
            }
        }
        for id in std::mem::take(&mut self.waiting) {
            self.crawl.timers.set(self.crawl.urls.more(id).due, Event::Due(id));
        }
        for slot in self.lent..self.message.records {
            self.relieve_at(slot);
            let (crawl, id) = (&mut self.crawl, EntryId(slot));
            if waits(crawl.urls.state(id)) {
                crawl.timers.set(crawl.urls.more(id).due, Event::Due(id));
            }
        }
        let crawl = &mut self.crawl;
        for (lease, grant) in crawl.leases.iter() {
            crawl.timers.set(crawl.expiry_of(grant.deadline), Event::Expiry(lease));
        }
        crawl.period_timer = self.message.period_timer.map(Moment::from);
        if let Some(moment) = crawl.period_timer {
            crawl.timers.set(moment, Event::Period);
        }
    }
}

/// Whether an entry in this state waits for a timer.
fn waits(state: State) -> bool {
    matches!(state, State::Retrying | State::Scheduled | State::Revisiting)
}

impl CrawlMessage {
    fn known_entry(&self, entry: u32) -> Result<EntryId, BadImage> {
        if entry < self.records { Ok(EntryId(entry)) } else { Err(BadImage::Impossible("an entry")) }
    }
}
