//! One crawl on its way from one store to the other.
//!
//! The copy is made paused and has a mark until it was compared. URLs come first, then queues, notes and counts, each batch in one step with
//! the mark that tells of it. Both sides are asked as of one moment, which is in the mark: as long as nobody else uses the original, nothing in it
//! moves, however long the copy takes or rests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trapline_frontier::{
    CrawlChange, CrawlReport, CrawlState, Frontier, NewCrawl, NoteWrite, Order, QueueRecord, Record, Steer,
    Store,
};

use super::ask::{
    AS_IT_IS, attach, counts, job_under_way, mark_of, note_of, notes, report, restore, stats, steer, told,
    write_note,
};
use super::compare::{Clock, Compared, Comparison};
use super::mark::{COPY_NOTE, Mark, Part, Print};
use super::pages::{Pages, QUEUES, URLS};
use super::progress::Progress;
use super::stop::Stop;
use crate::frontier_command::IMPORT_NOTE;
use crate::output::plain;

/// How much is restored at once, in records and, roughly, in bytes.
const BATCH: usize = if cfg!(test) { 3 } else { 1000 };
const BATCH_BYTES: usize = 8 << 20;

/// So often the URLs are gone through again if time that passed in the original has hidden some.
const ROUNDS: usize = 5;

/// So often it is asked whether leases are still out.
const POLL: Duration = Duration::from_millis(200);

/// One crawl, where it is and where it is to be.
pub(super) struct Course<'a> {
    /// The stores as they are shown.
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    /// The source as the mark names it.
    pub(super) place: &'a str,
    pub(super) source: &'a Arc<dyn Store>,
    pub(super) target: &'a Arc<dyn Store>,
    pub(super) crawl: &'a str,
    /// Its name in the copy.
    pub(super) copy: &'a str,
    pub(super) wait: Duration,
    /// The copy is not resumed.
    pub(super) stays_paused: bool,
    /// The original is not paused.
    pub(super) leaves_running: bool,
    pub(super) anew: bool,
    pub(super) clock: Clock<'a>,
    pub(super) stop: &'a Stop,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) compared: Compared,
    /// How many URLs were leased in the original: they are pending in the copy.
    pub(super) leased: u64,
    /// What was done: `copied`, `compared`, or `there already`.
    pub(super) done: &'static str,
    /// The copy's state.
    pub(super) state: String,
    /// The original was paused for it.
    pub(super) was_paused: bool,
}

/// What is there under the copy's name.
enum Found {
    Nothing,
    /// A crawl of the same key, in which nothing is yet: an earlier command made it, and came no further.
    Made,
    /// A copy of this crawl, half-made.
    Marked(Box<Mark>),
    /// A crawl of the same key, which is not being copied.
    Other,
}

impl Course<'_> {
    /// Compares, and copies nothing.
    pub(super) fn compare(&self, progress: &mut Progress) -> Result<Outcome, String> {
        let from = self.original()?;
        let Some(to) = attach(self.target, self.copy)? else {
            return Err(format!(
                "there is no crawl `{}` in {}: there is nothing to compare with",
                plain(self.copy),
                self.to
            ));
        };
        let now = (self.clock)();
        let leased = Print::of(&stats(&from, now)?).leased;
        let mark = mark_of(&to)?.and_then(|bytes| Mark::read(&bytes));
        let had_leases = leased > 0 || mark.is_some_and(|mark| mark.print.leased > 0);
        let comparison =
            Comparison { from: &from, to: &to, now, had_leases, clock: self.clock, stop: self.stop };
        let compared = comparison.run(progress)?;
        let state = report(&to, now)?.state.to_string();
        Ok(Outcome { compared, leased, done: "compared", state, was_paused: false })
    }

    /// Copies, goes on copying, or finds that there is nothing left to copy.
    pub(super) fn run(&self, progress: &mut Progress) -> Result<Outcome, String> {
        let from = self.original()?;
        let original = report(&from, AS_IT_IS)?;
        let found = self.find(&from, &original)?;
        let mut mark = match found {
            Found::Other => return self.pass_over(&from, &original, progress),
            Found::Marked(mark) if !self.anew => *mark,
            Found::Marked(mark) => {
                self.steer_target(CrawlChange::Delete)?;
                // It had been paused for the copy that is thrown away.
                let state =
                    if original.state == CrawlState::Paused { mark.state } else { original.state.clone() };
                self.make(&original)?;
                self.first_mark(state)
            }
            Found::Nothing => {
                self.make(&original)?;
                self.first_mark(original.state.clone())
            }
            Found::Made => self.first_mark(original.state.clone()),
        };
        let to =
            attach(self.target, self.copy)?.ok_or("somebody has removed the copy that was being made")?;
        if (Part::Urls..Part::Copied).contains(&mark.part) {
            self.check_unused(&from, &mark)?;
        }
        let went = self.go(&from, &to, &mut mark, progress);
        went.map_err(|problem| self.half_made(&problem, &mark))
    }

    fn go(
        &self,
        from: &Frontier,
        to: &Frontier,
        mark: &mut Mark,
        progress: &mut Progress,
    ) -> Result<Outcome, String> {
        if mark.part == Part::Begun {
            self.begin(from, to, mark, progress)?;
        }
        if mark.part == Part::Urls {
            self.copy_urls(from, to, mark, progress)?;
        }
        if mark.part == Part::Queues {
            self.copy_queues(from, to, mark, progress)?;
        }
        if mark.part == Part::Notes {
            self.copy_notes(from, to, mark)?;
        }
        let mut compared = Compared { urls: mark.print.urls, ..Compared::default() };
        if mark.part == Part::Copied {
            let had_leases = mark.print.leased > 0;
            let comparison =
                Comparison { from, to, now: mark.now, had_leases, clock: self.clock, stop: self.stop };
            compared = comparison.run(progress)?;
            // A crawl that was used while it was copied cannot be the same, and whoever wanted that has been told.
            if compared.differences.is_empty() || self.leaves_running {
                mark.part = Part::Compared;
                write_note(to, mark.now, mark.note())?;
            }
        }
        if mark.part == Part::Compared {
            self.take_state(to, mark)?;
        }
        let state = report(to, mark.now)?.state.to_string();
        let was_paused = mark.state == CrawlState::Running && !self.leaves_running;
        Ok(Outcome { compared, leased: mark.print.leased, done: "copied", state, was_paused })
    }

    /// The crawl that is to be copied, if it is whole.
    fn original(&self) -> Result<Frontier, String> {
        let name = plain(self.crawl);
        let from = attach(self.source, self.crawl)?
            .ok_or_else(|| format!("the crawl `{name}` is gone from {}", self.from))?;
        for (note, what) in
            [(COPY_NOTE, "the half-made copy of another crawl"), (IMPORT_NOTE, "half imported")]
        {
            if note_of(&from, note)?.is_some() {
                return Err(format!(
                    "the crawl `{name}` in {} is {what}: let that come to its end first",
                    self.from
                ));
            }
        }
        Ok(from)
    }

    /// Looks at what is there under the copy's name.
    fn find(&self, from: &Frontier, original: &CrawlReport) -> Result<Found, String> {
        let Some(to) = attach(self.target, self.copy)? else { return Ok(Found::Nothing) };
        let name = plain(self.copy);
        let there = report(&to, AS_IT_IS)?;
        if let Some(bytes) = mark_of(&to)? {
            let mark = Mark::read(&bytes).filter(|_| there.key == original.key);
            return match mark {
                Some(mark) if (&*mark.place, &*mark.crawl) == (self.place, self.crawl) => {
                    Ok(Found::Marked(Box::new(mark)))
                }
                Some(mark) => Err(format!(
                    "the crawl `{name}` in {} is the half-made copy of `{}` in {}: let that come to its end first, or give this \
                     one another name with --as",
                    self.to,
                    plain(&mark.crawl),
                    plain(&mark.place),
                )),
                None => Err(format!(
                    "the crawl `{name}` in {} is the half-made copy of another crawl: let that come to its end first, or give \
                     this one another name with --as",
                    self.to
                )),
            };
        }
        if there.key != original.key {
            return Err(self.is_there("and it is another one"));
        }
        if self.is_original(from, &to)? {
            return Err(format!(
                "`{name}` would be copied onto itself: {} and {} are one store; give the copy another name with --as",
                self.from, self.to
            ));
        }
        let is_empty = Print::of(&stats(&to, AS_IT_IS)?).work.iter().all(|count| *count == 0);
        let has_notes = !notes(&to, AS_IT_IS, None)?.0.is_empty();
        let is_made = is_empty && !has_notes && there.settings == original.settings;
        Ok(if is_made && there.partitions == original.partitions { Found::Made } else { Found::Other })
    }

    /// Whether both are the same crawl, under two URLs of one store that do not look like it: what is written in one is there in
    /// the other.
    fn is_original(&self, from: &Frontier, to: &Frontier) -> Result<bool, String> {
        if self.crawl != self.copy {
            return Ok(false);
        }
        let key = format!("{COPY_NOTE}.probe.{}", std::process::id());
        let write = |value| NoteWrite { key: key.clone(), value, expires: None };
        write_note(from, AS_IT_IS, write(Some(Vec::new())))?;
        let is_there = note_of(to, &key);
        write_note(from, AS_IT_IS, write(None))?;
        Ok(is_there?.is_some())
    }

    /// A crawl that is there and not half-made: if it is the same, all is well.
    fn pass_over(
        &self,
        from: &Frontier,
        original: &CrawlReport,
        progress: &mut Progress,
    ) -> Result<Outcome, String> {
        let to = attach(self.target, self.copy)?.ok_or("the copy is gone")?;
        let now = (self.clock)();
        let there = report(&to, now)?;
        let (one, two) = (Print::of(&stats(from, now)?), Print::of(&stats(&to, now)?));
        let may_be_same = one.work == two.work
            && there.partitions == original.partitions
            && there.settings == original.settings;
        if !may_be_same {
            return Err(self.is_there("and it is not the same any more, or was never copied to its end"));
        }
        let comparison =
            Comparison { from, to: &to, now, had_leases: one.leased > 0, clock: self.clock, stop: self.stop };
        let compared = comparison.run(progress)?;
        if !compared.differences.is_empty() {
            return Err(self.is_there("and it is not the same any more; --verify-only lists what differs"));
        }
        let state = there.state.to_string();
        Ok(Outcome { compared, leased: 0, done: "there already", state, was_paused: false })
    }

    fn is_there(&self, what: &str) -> String {
        format!(
            "there is a crawl `{}` in {} already, {what}; give the copy another name with --as, or choose others with --crawl",
            plain(self.copy),
            self.to
        )
    }

    /// Makes the copy, with nothing in it yet.
    fn make(&self, original: &CrawlReport) -> Result<(), String> {
        self.steer_target(CrawlChange::Create(NewCrawl {
            key: original.key,
            partitions: original.partitions,
            settings: original.settings.clone(),
        }))
    }

    fn steer_target(&self, change: CrawlChange) -> Result<(), String> {
        let steered = self.target.steer(self.copy, (self.clock)(), Steer::Crawl(change));
        pollster::block_on(steered).map(drop).map_err(told)
    }

    fn first_mark(&self, state: CrawlState) -> Mark {
        Mark {
            place: self.place.to_owned(),
            crawl: self.crawl.to_owned(),
            state,
            now: (self.clock)(),
            part: Part::Begun,
            cursor: None,
            skip: 0,
            queues: None,
            print: Print::default(),
        }
    }

    /// Lets the original come to rest. What state it had is written down before it is paused.
    fn begin(
        &self,
        from: &Frontier,
        to: &Frontier,
        mark: &mut Mark,
        progress: &mut Progress,
    ) -> Result<(), String> {
        steer(to, mark.now, CrawlChange::Pause)?;
        write_note(to, mark.now, mark.note())?;
        if !self.leaves_running {
            if mark.state == CrawlState::Running {
                steer(from, (self.clock)(), CrawlChange::Pause)?;
            }
            self.rest(from, progress)?;
        }
        mark.now = (self.clock)();
        mark.print = Print::of(&stats(from, mark.now)?);
        mark.part = Part::Urls;
        write_note(to, mark.now, mark.note())
    }

    /// Waits for leases and background jobs.
    fn rest(&self, from: &Frontier, progress: &mut Progress) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            self.stop.check()?;
            let now = (self.clock)();
            let leased = Print::of(&stats(from, now)?).leased;
            let job = job_under_way(from, now)?;
            if leased == 0 && job.is_none() {
                return Ok(());
            }
            if begun.elapsed() >= self.wait {
                return match job {
                    Some(job) => Err(format!(
                        "a background job is still under way there ({}); wait for it, or give --wait more time",
                        plain(&job)
                    )),
                    None => Ok(()),
                };
            }
            let what = match job {
                Some(job) => format!("waiting for a job: {}", plain(&job)),
                None => format!("waiting for {leased} leases to be settled or to expire"),
            };
            progress.begin(self.crawl, &what, 0, 0);
            progress.tell(0);
            std::thread::sleep(POLL.min(self.wait));
        }
    }

    /// A copy that was interrupted goes on only if nobody has worked on the original since.
    fn check_unused(&self, from: &Frontier, mark: &Mark) -> Result<(), String> {
        let print = Print::of(&stats(from, mark.now)?);
        if print.work != mark.print.work && !self.leaves_running {
            return Err(format!(
                "the crawl `{}` in {} was used since this copy was begun (it knows {} URLs now, and knew {}); --anew throws \
                 away what was copied and begins again",
                plain(self.crawl),
                self.from,
                print.urls,
                mark.print.urls
            ));
        }
        Ok(())
    }

    /// Time has passed in the original, and what moved meanwhile was passed over. What is copied is known, and is not copied twice; but what has
    /// come to the front meanwhile could only be put behind it.
    fn go_through_again(&self, from: &Frontier, mark: &mut Mark) -> Result<(), String> {
        (mark.cursor, mark.skip, mark.now) = (None, 0, (self.clock)());
        let original = report(from, mark.now)?;
        if original.settings.order == Order::Lifo {
            self.steer_target(CrawlChange::Delete)?;
            self.make(&original)?;
            self.steer_target(CrawlChange::Pause)?;
        }
        let print = Print::of(&stats(from, mark.now)?);
        mark.print = Print { leased: mark.print.leased, ..print };
        self.steer_target(CrawlChange::Note(mark.note()))
    }

    /// Whether time has passed in the original since the moment as of which it is copied.
    fn has_moved(from: &Frontier, mark: &Mark) -> Result<bool, String> {
        Ok(Print::of(&stats(from, mark.now)?).time != mark.print.time)
    }

    /// Copies the URLs, and sees to it that none was hidden by time that passed.
    fn copy_urls(
        &self,
        from: &Frontier,
        to: &Frontier,
        mark: &mut Mark,
        progress: &mut Progress,
    ) -> Result<(), String> {
        for _ in 0..ROUNDS {
            self.copy_urls_once(from, to, mark, progress)?;
            let (one, two) = (stats(from, mark.now)?, stats(to, mark.now)?);
            if Print::of(&one).urls <= Print::of(&two).urls {
                break;
            }
            self.go_through_again(from, mark)?;
        }
        (mark.part, mark.queues) = (Part::Queues, mark.cursor);
        write_note(to, mark.now, mark.note())
    }

    fn copy_urls_once(
        &self,
        from: &Frontier,
        to: &Frontier,
        mark: &mut Mark,
        progress: &mut Progress,
    ) -> Result<(), String> {
        let there = Print::of(&stats(to, mark.now)?).urls;
        progress.begin(self.crawl, "copying URLs", there, mark.print.urls);
        let mut copied = there;
        for page in Pages::read(from, mark.now, mark.cursor, URLS) {
            let page = page?;
            let is_last = page.records.iter().any(|record| !matches!(record, Record::Url(_)));
            let urls = page.records.into_iter().filter(|record| matches!(record, Record::Url(_)));
            let urls: Vec<_> = urls.skip(mark.skip as usize).collect();
            // Queues begin on the last page, so that is where to look for them.
            let next = if is_last { page.at } else { page.next };
            copied += self.restore(to, mark, urls, page.at, next)?;
            progress.tell(copied);
            if is_last {
                mark.skip = 0;
                break;
            }
        }
        Ok(())
    }

    fn copy_queues(
        &self,
        from: &Frontier,
        to: &Frontier,
        mark: &mut Mark,
        progress: &mut Progress,
    ) -> Result<(), String> {
        let total = mark.print.work.get(1).copied().unwrap_or_default();
        progress.begin(self.crawl, "copying queues", 0, total);
        let mut copied = 0;
        for page in Pages::read(from, mark.now, mark.cursor, QUEUES) {
            let page = page?;
            let is_last =
                page.records.iter().any(|record| matches!(record, Record::Note(_) | Record::Crawl(_)));
            let queues = page.records.into_iter().filter(|record| matches!(record, Record::Queue(_)));
            let queues: Vec<_> = queues.skip(mark.skip as usize).collect();
            for batch in queues.chunks(BATCH) {
                copied += batch.len() as u64;
                let skip = mark.skip + batch.len() as u64;
                self.restore_batch(to, mark, batch.to_vec(), page.at, skip)?;
                progress.tell(copied);
            }
            if is_last {
                break;
            }
            (mark.cursor, mark.skip) = (page.next, 0);
        }
        if Self::has_moved(from, mark)? {
            Self::mend_queues(from, to, mark)?;
        }
        // The cursor stays where the queues end: behind them are the counts.
        (mark.part, mark.skip) = (Part::Notes, 0);
        write_note(to, mark.now, mark.note())
    }

    /// Queues may have changed places while they were told, and one may have been passed over. Those to which something has happened
    /// are restored unless they were; the place of the others is all that they have.
    fn mend_queues(from: &Frontier, to: &Frontier, mark: &Mark) -> Result<(), String> {
        for page in Pages::read(from, mark.now, mark.queues, QUEUES) {
            let used = page?.records.into_iter().filter(|record| match record {
                Record::Queue(queue) => !is_plain(queue),
                Record::Url(_) | Record::Note(_) | Record::Crawl(_) => false,
            });
            for batch in batches(used.collect()) {
                restore(to, mark.now, batch)?;
            }
        }
        Ok(())
    }

    /// Copies notes, all of them however far an earlier command came, and then the counts, with which all is there.
    fn copy_notes(&self, from: &Frontier, to: &Frontier, mark: &mut Mark) -> Result<(), String> {
        let mut cursor = None;
        loop {
            self.stop.check()?;
            let (notes, next) = notes(from, mark.now, cursor)?;
            let notes: Vec<_> =
                notes.into_iter().filter(|note| !is_ours(&note.key)).map(Record::Note).collect();
            for batch in batches(notes) {
                steer(to, mark.now, CrawlChange::Restore(batch))?;
            }
            match next {
                Some(next) => cursor = Some(next),
                None => break,
            }
        }
        let counts = counts(from, mark)?;
        mark.part = Part::Copied;
        restore(to, mark.now, vec![Record::Crawl(counts), mark.record()]).map(drop)
    }

    /// Restores what is left of a page, batch by batch, each with its mark. Answers how much of it was not known.
    fn restore(
        &self,
        to: &Frontier,
        mark: &mut Mark,
        records: Vec<Record>,
        at: Option<u64>,
        next: Option<u64>,
    ) -> Result<u64, String> {
        let mut restored = 0;
        let mut batches = batches(records).into_iter().peekable();
        while let Some(batch) = batches.next() {
            let skip = mark.skip + batch.len() as u64;
            let (at, skip) = if batches.peek().is_some() { (at, skip) } else { (next, 0) };
            restored += self.restore_batch(to, mark, batch, at, skip)?;
        }
        (mark.cursor, mark.skip) = (next, 0);
        Ok(restored)
    }

    fn restore_batch(
        &self,
        to: &Frontier,
        mark: &mut Mark,
        mut batch: Vec<Record>,
        cursor: Option<u64>,
        skip: u64,
    ) -> Result<u64, String> {
        self.stop.check()?;
        let after = Mark { cursor, skip, ..mark.clone() };
        batch.push(after.record());
        let restored = restore(to, mark.now, batch)?;
        *mark = after;
        Ok(restored.saturating_sub(1))
    }

    /// All is there: the copy goes on as the original stood.
    fn take_state(&self, to: &Frontier, mark: &Mark) -> Result<(), String> {
        let is_over = matches!(report(to, mark.now)?.state, CrawlState::Finished(_));
        match &mark.state {
            CrawlState::Finished(reason) if !is_over => {
                steer(to, (self.clock)(), CrawlChange::Finish(reason.clone()))?;
            }
            CrawlState::Running if !is_over && !self.stays_paused => {
                steer(to, (self.clock)(), CrawlChange::Resume)?;
            }
            CrawlState::Running | CrawlState::Paused | CrawlState::Finished(_) => {}
        }
        steer(to, AS_IT_IS, CrawlChange::Note(Mark::removal()))
    }

    /// What went wrong, and how things stand.
    fn half_made(&self, problem: &str, mark: &Mark) -> String {
        let mut told = format!(
            "{problem}\n  The copy `{}` in {} is not whole yet, and paused. The same command goes on where it is.",
            plain(self.copy),
            self.to
        );
        if mark.state == CrawlState::Running && !self.leaves_running {
            told += &format!("\n  `{}` in {} was paused for it.", plain(self.crawl), self.from);
        }
        told
    }

    /// What people should know of what was done.
    pub(super) fn sentences(&self, outcome: &Outcome) -> Vec<String> {
        let (name, copy) = (plain(self.crawl), plain(self.copy));
        let mut told = Vec::new();
        let is_same = outcome.compared.differences.is_empty();
        if outcome.done != "copied" {
            told.extend(is_same.then(|| "Both are the same.".to_owned()));
            return told;
        }
        if outcome.leased > 0 {
            told.push(format!(
                "{} URLs were leased in {}: in the copy they are pending, and first in their class. Whoever has such a lease cannot \
                 settle it there.",
                outcome.leased, self.from
            ));
        }
        if !is_same && !self.leaves_running {
            told.push(format!(
                "`{copy}` in {} stays paused. The same command compares once more; with --anew it copies once more.",
                self.to
            ));
        }
        if outcome.was_paused {
            told.push(format!("`{name}` in {} was paused, and stays so.", self.from));
        }
        told
    }
}

fn is_ours(key: &str) -> bool {
    key == IMPORT_NOTE || key.starts_with(COPY_NOTE)
}

/// Whether nothing has happened to a queue but that it was given URLs, and perhaps a turn.
fn is_plain(queue: &QueueRecord) -> bool {
    let QueueRecord { key, active, balance, .. } = queue;
    *queue
        == QueueRecord { key: Arc::clone(key), active: *active, balance: *balance, ..QueueRecord::default() }
}

/// Records in batches that are neither too many nor too long.
fn batches(records: Vec<Record>) -> Vec<Vec<Record>> {
    let mut batches: Vec<Vec<Record>> = Vec::new();
    let mut bytes = 0;
    for record in records {
        let more = size(&record);
        match batches.last_mut().filter(|batch| batch.len() < BATCH && bytes + more <= BATCH_BYTES) {
            Some(batch) => {
                bytes += more;
                batch.push(record);
            }
            None => {
                bytes = more;
                batches.push(vec![record]);
            }
        }
    }
    batches
}

/// About how many bytes a record has, where that may be many.
fn size(record: &Record) -> usize {
    match record {
        Record::Url(url) => {
            let request = &url.request;
            let headers: usize = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
            let metadata: usize = request.metadata.values().flatten().map(String::len).sum();
            request.url.len() + request.body.len() + request.opaque.len() + headers + metadata
        }
        Record::Note(note) => note.value.as_ref().map_or(0, Vec::len),
        Record::Queue(_) | Record::Crawl(_) => 0,
    }
}
