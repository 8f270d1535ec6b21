//! An export, imported.
//!
//! A crawl that is new is paused until all of it is there, and has a note meanwhile that tells how far the import has come. So
//! one that was interrupted goes on behind what it had restored, and nothing of it is restored twice.

use std::sync::Arc;

use serde_json::json;
use trapline_core::{IdentityKey, Timestamp};
use trapline_frontier::{
    CrawlChange, CrawlState, ErrorKind, Frontier, NewCrawl, NoteWrite, QueueRecord, Record, Steer, Store,
    UrlRecord, UrlState,
};

use super::target::{Tally, Target, check_sizes};
use super::{Problem, Reading, has_note, wrong};
use crate::frontier_command::fields::Fields;
use crate::frontier_command::transfer::read::{self, Line, UrlLine};
use crate::frontier_command::transfer::{Counts, CrawlLine};
use crate::frontier_command::{IMPORT_NOTE, moment};

/// A crawl of the file that is being read.
struct Section {
    line: CrawlLine,
    target: Target,
    /// The secret of the crawl that is imported into.
    key: IdentityKey,
    /// It had nothing in it when the import began: then it becomes what was exported.
    is_new: bool,
    /// How far an earlier import of this file came.
    before: Option<Mark>,
    /// The lines there were, bad ones among them.
    seen: Counts,
}

/// A place in a file: so many lines, which hash to this, of the export of that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    exported: Timestamp,
    lines: u64,
    hash: u64,
}

impl Mark {
    fn write(self) -> Vec<u8> {
        let Self { exported, lines, hash } = self;
        json!({ "exported": exported.as_millis(), "lines": lines, "hash": hash }).to_string().into_bytes()
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::read(std::str::from_utf8(bytes).ok()?).ok()?;
        Some(Self {
            exported: Timestamp::from_millis(fields.number("exported").ok()??),
            lines: fields.number("lines").ok()??,
            hash: fields.number("hash").ok()??,
        })
    }
}

/// Imports a file into a store, which is opened once it is known that the file is one of ours.
pub(super) fn import(
    reading: &mut Reading<'_>,
    open: impl FnOnce() -> Result<Arc<dyn Store>, String>,
    tallies: &mut Vec<Tally>,
) -> Result<(), Problem> {
    let exported = match reading.next()? {
        None => return Err("it is empty".to_owned().into()),
        Some((number, fields)) => match read::line(fields) {
            Ok(Line::Header { exported }) => exported,
            Ok(_) => {
                return Err(wrong(number, "it should be the header, {\"format\":\"trapline-frontier\",…}"));
            }
            Err(problem) => return Err(wrong(number, &problem)),
        },
    };
    let store = open()?;
    let mut section = None;
    let imported = import_lines(reading, &store, exported, &mut section, tallies);
    let Some(mut left) = section else { return imported };
    // What was read before the trouble is not lost.
    let flushed = left.target.flush();
    let name = left.target.tally.crawl.clone();
    let is_new = left.is_new;
    tallies.push(left.target.tally);
    imported.and(flushed).map_err(|mut problem| {
        if is_new {
            problem.message += &format!("\n  The crawl `{name}` is paused until all of it is imported.");
        }
        problem
    })
}

fn import_lines(
    reading: &mut Reading<'_>,
    store: &Arc<dyn Store>,
    exported: Timestamp,
    section: &mut Option<Section>,
    tallies: &mut Vec<Tally>,
) -> Result<(), Problem> {
    let (mut crawls, mut all) = (0, Counts::default());
    let mut is_ended = false;
    let mut urls = 0_u64;
    while let Some((number, fields)) = reading.next()? {
        if is_ended {
            return Err(wrong(number, "it comes after the end"));
        }
        let kind = Kind::of(&fields);
        let line = match read::line(fields) {
            Ok(line) => line,
            Err(problem) if kind.is_one_of_many() => {
                reading.bad(number, &problem)?;
                if let Some(section) = section {
                    section.target.tally.bad += 1;
                    kind.count(&mut section.seen);
                }
                continue;
            }
            // Without it, the lines that follow mean nothing.
            Err(problem) => return Err(wrong(number, &problem)),
        };
        match (line, section.as_mut()) {
            (Line::Header { .. }, _) => return Err(wrong(number, "a header comes first, and once")),
            (Line::Crawl(_), Some(open)) => {
                return Err(wrong(number, &format!("the crawl `{}` has not ended yet", open.line.name)));
            }
            (Line::Crawl(line), None) => {
                if reading.at.is_named && crawls > 0 {
                    return Err(wrong(
                        number,
                        "a second crawl begins, and --crawl names one; without it each keeps its name",
                    ));
                }
                let name = if reading.at.is_named { reading.at.crawl.to_owned() } else { line.name.clone() };
                let opened = Section::open(store, &name, *line, exported);
                *section = Some(opened.map_err(|problem| wrong(number, &problem.message))?);
            }
            (Line::CrawlEnd(name, counts), Some(open)) => {
                if (&name, counts) != (&open.line.name, open.seen) {
                    let Counts { urls, queues, notes } = open.seen;
                    return Err(wrong(
                        number,
                        &format!(
                            "`{name}` ends with {} URLs, {} queues and {} notes, and there were {urls}, {queues} and {notes} of \
                             `{}`: lines are missing",
                            counts.urls, counts.queues, counts.notes, open.line.name
                        ),
                    ));
                }
                open.end()?;
                crawls += 1;
                all.add(counts);
                tallies.extend(section.take().map(|section| section.target.tally));
            }
            (Line::End { crawls: told, counts }, None) => {
                if (told, counts) != (crawls, all) {
                    return Err(wrong(number, "it counts other crawls than there were: lines are missing"));
                }
                is_ended = true;
            }
            (Line::End { .. }, Some(open)) => {
                return Err(wrong(number, &format!("the crawl `{}` has not ended yet", open.line.name)));
            }
            (_, None) => return Err(wrong(number, "it belongs to a crawl, and none has begun")),
            (line, Some(open)) => {
                kind.count(&mut open.seen);
                urls += u64::from(matches!(line, Line::Url(_)));
                let mark = Mark { exported, lines: number, hash: reading.lines.hash() };
                if open.is_before(mark)? {
                    open.target.tally.urls += u64::from(matches!(line, Line::Url(_)));
                    open.target.tally.known += u64::from(matches!(line, Line::Url(_)));
                    continue;
                }
                if let Err(problem) = open.take(line, reading.lines.line_bytes(), mark) {
                    match problem {
                        Refused::Line(problem) => {
                            reading.bad(number, &problem)?;
                            open.target.tally.bad += 1;
                        }
                        Refused::Store(problem) => return Err(problem),
                    }
                }
                if urls.is_multiple_of(1000) {
                    reading.progress.set_message(format!("{}: {urls} URLs", open.target.tally.crawl));
                }
            }
        }
    }
    if is_ended {
        Ok(())
    } else {
        Err("it ends before its last line, which counts the others: it was cut off".to_owned().into())
    }
}

/// Which kind of line it is, before it is known whether it can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Url,
    Queue,
    Note,
    Other,
}

impl Kind {
    fn of(fields: &Fields) -> Self {
        let kinds = [("url", Self::Url), ("queue", Self::Queue), ("note", Self::Note)];
        kinds.into_iter().find(|(name, _)| fields.has(name)).map_or(Self::Other, |(_, kind)| kind)
    }

    /// Whether it can be left out.
    fn is_one_of_many(self) -> bool {
        self != Self::Other
    }

    fn count(self, counts: &mut Counts) {
        match self {
            Self::Url => counts.urls += 1,
            Self::Queue => counts.queues += 1,
            Self::Note => counts.notes += 1,
            Self::Other => {}
        }
    }
}

/// Why a line was not taken.
enum Refused {
    Line(String),
    Store(Problem),
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self::Store(problem)
    }
}

impl Section {
    fn open(
        store: &Arc<dyn Store>,
        name: &str,
        line: CrawlLine,
        exported: Timestamp,
    ) -> Result<Self, Problem> {
        let now = moment::now();
        let attach = || pollster::block_on(Frontier::builder(name).attach(Arc::clone(store), now));
        let (frontier, mut is_new) = match attach() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let new =
                    NewCrawl { key: line.key, partitions: line.partitions, settings: line.settings.clone() };
                let create = Steer::Crawl(CrawlChange::Create(new));
                pollster::block_on(store.steer(name, now, create))?;
                (attach()?, true)
            }
            attached => (attached?, false),
        };
        let (report, stats) =
            (pollster::block_on(frontier.report(now))?, pollster::block_on(frontier.stats(now))?);
        let before = has_note(&frontier, IMPORT_NOTE)?.as_deref().and_then(Mark::read);
        if let Some(before) = before.filter(|before| before.exported != exported) {
            let earlier = moment::write(before.exported);
            return Err(format!(
                "into the crawl `{name}` another export, of {earlier}, was imported and not to its end; import that one \
                 first, or choose another crawl with --crawl"
            )
            .into());
        }
        if before.is_none()
            && let CrawlState::Finished(reason) = &report.state
        {
            return Err(format!("the crawl `{name}` is finished ({reason}) and takes nothing more").into());
        }
        let known: u64 = UrlState::ALL.iter().map(|state| stats.urls_in(*state)).sum();
        is_new |= before.is_some() || known + stats.granted + stats.queues.iter().sum::<u64>() == 0;
        if is_new {
            pollster::block_on(frontier.steer_crawl(now, CrawlChange::Pause))?;
        }
        let target = Target::new(frontier);
        Ok(Self { line, target, key: report.key, is_new, before, seen: Counts::default() })
    }

    /// Whether a line was imported before, when the import of this file was interrupted.
    fn is_before(&self, mark: Mark) -> Result<bool, Problem> {
        match self.before {
            Some(before) if mark.lines == before.lines && mark.hash != before.hash => Err(wrong(
                mark.lines,
                "up to here this is not the file whose import was interrupted; import that one first, or choose another crawl \
                 with --crawl",
            )),
            Some(before) => Ok(mark.lines <= before.lines),
            None => Ok(false),
        }
    }

    /// Takes one line that belongs to the crawl.
    fn take(&mut self, line: Line, bytes: usize, mark: Mark) -> Result<(), Refused> {
        let record = match line {
            Line::Url(url) => {
                self.target.tally.urls += 1;
                self.url(*url).map_err(Refused::Line)?
            }
            Line::Queue(queue) => {
                check_sizes(&queue.key, "").map_err(Refused::Line)?;
                if !self.is_new && is_plain(&queue) {
                    return Ok(());
                }
                Record::Queue(queue)
            }
            Line::Note(note) => {
                if note.key == IMPORT_NOTE {
                    return Err(Refused::Line(format!("the note `{IMPORT_NOTE}` is not to be imported")));
                }
                let is_known = !self.is_new
                    && has_note(&self.target.frontier, &note.key).map_err(Problem::from)?.is_some();
                if is_known {
                    return Ok(());
                }
                Record::Note(note)
            }
            Line::Counts(counts) if self.is_new => Record::Crawl(counts),
            _ => return Ok(()),
        };
        let is_full = self.target.push(record, bytes)?;
        if self.is_new {
            self.target.marker = Some(mark.write());
        }
        if is_full {
            self.target.flush()?;
        }
        Ok(())
    }

    fn url(&self, url: UrlLine) -> Result<Record, String> {
        let UrlLine {
            request,
            key,
            identity,
            class,
            cost,
            standing,
            page,
            visits,
            retries,
            expiries,
            entries,
        } = url;
        check_sizes(&key, &request.url)?;
        let (request, identity) = match identity.filter(|_| self.key == self.line.key) {
            Some(identity) => (Arc::new(request), identity),
            None => {
                let prepared = self.target.frontier.prepare_in(request, Some(&key));
                let candidate = prepared.map_err(|error| error.to_string())?;
                (candidate.request, candidate.identity)
            }
        };
        Ok(Record::Url(Box::new(UrlRecord {
            request,
            identity,
            key: key.into(),
            class,
            cost,
            standing,
            page: page.map(Arc::new),
            visits,
            retries,
            expiries,
            entries,
        })))
    }

    /// All of it is there: the crawl goes on as it stood.
    fn end(&mut self) -> Result<(), Problem> {
        self.target.flush()?;
        if !self.is_new {
            return Ok(());
        }
        let frontier = &self.target.frontier;
        let state = match &self.line.state {
            CrawlState::Running => Some(CrawlChange::Resume),
            CrawlState::Paused => None,
            CrawlState::Finished(reason) => Some(CrawlChange::Finish(reason.clone())),
        };
        if let Some(state) = state {
            pollster::block_on(frontier.steer_crawl(moment::now(), state))?;
        }
        let note = NoteWrite { key: IMPORT_NOTE.to_owned(), value: None, expires: None };
        pollster::block_on(frontier.steer_crawl(moment::now(), CrawlChange::Note(note)))?;
        Ok(())
    }
}

/// Whether a queue has nothing but its place among others, and perhaps a session that has not begun.
fn is_plain(queue: &QueueRecord) -> bool {
    let QueueRecord { key, active, balance, .. } = queue;
    *queue
        == QueueRecord { key: Arc::clone(key), active: *active, balance: *balance, ..QueueRecord::default() }
}
