//! Two crawls compared, record by record, in memory that does not grow with them.
//!
//! Each side is read once into sums of hashes, some ten thousand of them. Where sums differ, both sides are read again and only what
//! belongs to those sums is kept and compared; a difference counts if it is still there. So neither the order in which a store tells
//! its records nor time that passes between two readings is taken for one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value, json};
use trapline_core::{Identity, Timestamp};
use trapline_frontier::{CrawlRecord, CrawlReport, Frontier, Record, Settings, UrlRecord, UrlStanding};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::mark::COPY_NOTE;
use super::pages::{self, QUEUES, URLS};
use super::progress::Progress;
use super::stop::Stop;
use crate::frontier_command::IMPORT_NOTE;
use crate::frontier_command::transfer::write;

/// How many sums there are.
const SUMS: usize = 1 << 14;

/// Of so many sums that differ, the records are looked at one by one.
const LOOKED_AT: usize = 64;

/// So often both sides are read again to see whether a difference is still there.
const CONFIRMATIONS: usize = 2;

/// What the other side does not have, or has otherwise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Difference {
    /// `url`, `queue`, `note`, `counts` or `settings`.
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) what: String,
}

impl Difference {
    pub(super) fn value(&self) -> Value {
        json!({ "kind": self.kind, "name": self.name, "what": self.what })
    }
}

/// What came of a comparison.
#[derive(Clone, Debug, Default)]
pub(super) struct Compared {
    /// How much the first side has.
    pub(super) urls: u64,
    pub(super) queues: u64,
    pub(super) notes: u64,
    pub(super) differences: Vec<Difference>,
    /// There are more than were looked at.
    pub(super) and_more: bool,
}

/// What time it is.
pub(super) type Clock<'a> = &'a (dyn Fn() -> Timestamp + Sync);

/// What is compared, and how.
pub(super) struct Comparison<'a> {
    pub(super) from: &'a Frontier,
    pub(super) to: &'a Frontier,
    /// As of when both are read first.
    pub(super) now: Timestamp,
    /// Leases were out when the copy was made: in it they have come back, and in the original they may have expired since.
    pub(super) had_leases: bool,
    pub(super) clock: Clock<'a>,
    pub(super) stop: &'a Stop,
}

/// How a record is told to be compared.
struct Told {
    kind: &'static str,
    /// What it is found by: the identity of a URL, the key of a queue or note.
    id: Vec<u8>,
    /// What people call it.
    name: String,
    line: String,
}

/// Tells records so that those of a copy are the same as those of its original.
struct Teller {
    had_leases: bool,
    /// The last URL, if it was pending in its turn: its queue, class and identity.
    last: Option<(Arc<str>, u8, Identity)>,
}

impl Teller {
    fn tell(&mut self, record: &Record) -> Option<Told> {
        match record {
            Record::Url(url) => Some(self.url(url)),
            Record::Queue(queue) => {
                let mut queue = (**queue).clone();
                // A lease that came back may have ended the session.
                queue.active &= !self.had_leases;
                Some(Told {
                    kind: "queue",
                    id: queue.key.as_bytes().to_vec(),
                    name: queue.key.to_string(),
                    line: write::queue(&queue),
                })
            }
            Record::Note(note) if [COPY_NOTE, IMPORT_NOTE].contains(&&*note.key) => None,
            Record::Note(note) => Some(Told {
                kind: "note",
                id: note.key.as_bytes().to_vec(),
                name: note.key.clone(),
                line: write::note(note),
            }),
            Record::Crawl(crawl) => {
                let expired = if self.had_leases { 0 } else { crawl.expired };
                let line = write::counts(&CrawlRecord { expired, ..*crawl });
                Some(Told { kind: "counts", id: Vec::new(), name: String::new(), line })
            }
        }
    }

    fn url(&mut self, record: &UrlRecord) -> Told {
        let is_in_turn = matches!(record.standing, UrlStanding::Pending(_));
        let this = (Arc::clone(&record.key), record.class, record.identity);
        let last = self.last.take();
        let behind = last.filter(|last| is_in_turn && (&last.0, last.1) == (&this.0, this.1));
        self.last = is_in_turn.then_some(this);
        let came_back = matches!(record.standing, UrlStanding::Leased | UrlStanding::Returned(_));
        let mut line = if self.had_leases && came_back {
            let standing = UrlStanding::Returned(Timestamp::ZERO);
            write::url(&UrlRecord { standing, expiries: 0, ..record.clone() }, None)
        } else {
            write::url(record, None)
        };
        if let Some((_, _, behind)) = behind {
            line.insert_str(1, &format!("\"behind\":\"{:032x}\",", behind.0));
        }
        Told {
            kind: "url",
            id: record.identity.0.to_be_bytes().to_vec(),
            name: record.request.url.clone(),
            line,
        }
    }
}

impl Told {
    /// Which sum it belongs to.
    fn sum(&self) -> usize {
        let id = xxh3_64(&[self.kind.as_bytes(), &[0], &self.id].concat());
        (id % SUMS as u64) as usize
    }
}

/// One side, summed up.
struct Summed {
    sums: Vec<u128>,
    urls: u64,
    queues: u64,
    notes: u64,
}

/// What of one side belongs to the sums that are looked at.
type Kept = BTreeMap<(&'static str, Vec<u8>), (String, Vec<String>)>;

impl Comparison<'_> {
    /// Compares all there is.
    pub(super) fn run(&self, progress: &mut Progress) -> Result<Compared, String> {
        let ask = |frontier: &Frontier| {
            let report = pollster::block_on(frontier.report(self.now)).map_err(|error| error.to_string())?;
            let stats = pollster::block_on(frontier.stats(self.now)).map_err(|error| error.to_string())?;
            Ok::<_, String>((report, stats.urls.iter().sum::<u64>()))
        };
        let ((from, of_from), (to, of_to)) = (ask(self.from)?, ask(self.to)?);
        let total = of_from + of_to;
        progress.begin(self.from.crawl(), "comparing URLs", 0, total);
        let (one, two) = self.both(progress, self.now, Self::summed)?;
        let mut compared =
            Compared { urls: one.urls, queues: one.queues, notes: one.notes, ..Compared::default() };
        compared.differences = settings_differ(&from, &to);
        let mut differing: Vec<usize> = (0..SUMS).filter(|sum| one.sums[*sum] != two.sums[*sum]).collect();
        if differing.is_empty() {
            return Ok(compared);
        }
        compared.and_more = differing.len() > LOOKED_AT;
        differing.truncate(LOOKED_AT);
        let mut found: Option<Vec<Difference>> = None;
        for _ in 0..CONFIRMATIONS {
            progress.begin(self.from.crawl(), "looking at differences", 0, total);
            let (one, two) = self.both(progress, (self.clock)(), |side, frontier, now, read| {
                side.kept(frontier, now, read, &differing)
            })?;
            let mut again = differences(&one, &two);
            if let Some(before) = found {
                let before: std::collections::BTreeSet<_> =
                    before.iter().map(|one| (one.kind, one.name.clone())).collect();
                again.retain(|one| before.contains(&(one.kind, one.name.clone())));
            }
            let is_same = again.is_empty();
            found = Some(again);
            if is_same {
                break;
            }
        }
        compared.differences.extend(found.unwrap_or_default());
        Ok(compared)
    }

    /// Reads both sides at once.
    fn both<T: Send>(
        &self,
        progress: &mut Progress,
        now: Timestamp,
        read: impl Fn(&Self, &Frontier, Timestamp, &AtomicU64) -> Result<T, String> + Sync,
    ) -> Result<(T, T), String> {
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let sides = [self.from, self.to].map(|frontier| scope.spawn(|| read(self, frontier, now, &done)));
            while !sides.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                progress.tell(done.load(Ordering::Relaxed));
                std::thread::sleep(Duration::from_millis(1));
            }
            let [one, two] = sides.map(|side| match side.join() {
                Ok(read) => read,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            Ok((one?, two?))
        })
    }

    fn summed(&self, frontier: &Frontier, now: Timestamp, read: &AtomicU64) -> Result<Summed, String> {
        let mut summed = Summed { sums: vec![0; SUMS], urls: 0, queues: 0, notes: 0 };
        self.each(frontier, now, read, |told| {
            match told.kind {
                "url" => summed.urls += 1,
                "queue" => summed.queues += 1,
                "note" => summed.notes += 1,
                _ => {}
            }
            let sum = &mut summed.sums[told.sum()];
            *sum = sum.wrapping_add(xxh3_128(told.line.as_bytes()));
        })?;
        Ok(summed)
    }

    fn kept(
        &self,
        frontier: &Frontier,
        now: Timestamp,
        read: &AtomicU64,
        sums: &[usize],
    ) -> Result<Kept, String> {
        let mut kept = Kept::new();
        self.each(frontier, now, read, |told| {
            if sums.contains(&told.sum()) {
                let (_, lines) = kept.entry((told.kind, told.id)).or_insert_with(|| (told.name, Vec::new()));
                lines.push(told.line);
            }
        })?;
        // Entries of one URL are in no order.
        kept.values_mut().for_each(|(_, lines)| lines.sort());
        Ok(kept)
    }

    fn each(
        &self,
        frontier: &Frontier,
        now: Timestamp,
        read: &AtomicU64,
        mut take: impl FnMut(Told),
    ) -> Result<(), String> {
        let mut teller = Teller { had_leases: self.had_leases, last: None };
        let (mut at, mut limit) = (None, URLS);
        loop {
            self.stop.check()?;
            let page = pages::page(frontier, now, at, limit)?;
            let urls = page.records.iter().filter(|record| matches!(record, Record::Url(_))).count();
            if urls < page.records.len() {
                limit = QUEUES;
            }
            page.records.iter().filter_map(|record| teller.tell(record)).for_each(&mut take);
            read.fetch_add(urls as u64, Ordering::Relaxed);
            match page.next {
                Some(next) => at = Some(next),
                None => return Ok(()),
            }
        }
    }
}

fn settings_differ(from: &CrawlReport, to: &CrawlReport) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut tell = |name: &str, what: String| {
        differences.push(Difference { kind: "settings", name: name.to_owned(), what });
    };
    if from.key != to.key {
        tell("identity_key", "is another one".to_owned());
    }
    if from.partitions != to.partitions {
        tell("partitions", format!("{} and {}", from.partitions, to.partitions));
    }
    for name in Settings::NAMES {
        let (one, two) =
            (from.settings.get(name).unwrap_or_default(), to.settings.get(name).unwrap_or_default());
        if one != two {
            tell(name, format!("{one} and {two}"));
        }
    }
    differences
}

/// What is not the same on both sides.
fn differences(one: &Kept, two: &Kept) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (key @ (kind, _), (name, lines)) in one {
        let what = match two.get(key) {
            None => "is missing in the copy".to_owned(),
            Some((_, others)) if others == lines => continue,
            Some((_, others)) => how(lines, others),
        };
        differences.push(Difference { kind, name: name.clone(), what });
    }
    for (key @ (kind, _), (name, _)) in two {
        if !one.contains_key(key) {
            let what = "is in the copy only".to_owned();
            differences.push(Difference { kind, name: name.clone(), what });
        }
    }
    differences
}

/// In which of their fields the same thing differs.
fn how(one: &[String], two: &[String]) -> String {
    if one.len() != two.len() {
        return format!("has {} entries, and {} in the copy", one.len(), two.len());
    }
    let fields = |line: &String| match serde_json::from_str(line) {
        Ok(Value::Object(fields)) => flat(fields),
        _ => Map::new(),
    };
    let mut told: Vec<String> = Vec::new();
    for (one, two) in one.iter().zip(two) {
        let (one, two) = (fields(one), fields(two));
        let names = one.keys().chain(two.keys().filter(|name| !one.contains_key(*name)));
        for name in names.filter(|name| one.get(*name) != two.get(*name)) {
            let brief = |value: Option<&Value>| {
                let text = value.map_or_else(|| "none".to_owned(), ToString::to_string);
                if text.chars().count() > 40 { text.chars().take(40).chain(['…']).collect() } else { text }
            };
            let what = match &**name {
                "behind" => "stands in another place".to_owned(),
                name => {
                    format!("{name} is {}, and {} in the copy", brief(one.get(name)), brief(two.get(name)))
                }
            };
            if !told.contains(&what) {
                told.push(what);
            }
        }
    }
    told.join("; ")
}

/// The fields of what is one thing within another, as if they were its own.
fn flat(fields: Map<String, Value>) -> Map<String, Value> {
    fields
        .into_iter()
        .flat_map(|(name, value)| match (&*name, value) {
            ("counts", Value::Object(counts)) => counts,
            (_, value) => Map::from_iter([(name, value)]),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_by_what_differs() {
        let kept = |records: &[(&'static str, &str, &[&str])]| -> Kept {
            records
                .iter()
                .map(|(kind, name, lines)| {
                    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
                    ((*kind, name.as_bytes().to_vec()), ((*name).to_owned(), lines))
                })
                .collect()
        };
        let one = kept(&[
            ("url", "a", &["{\"url\":\"a\",\"state\":\"done\",\"visits\":1}"]),
            ("url", "b", &["{\"url\":\"b\"}"]),
            ("url", "c", &["{\"behind\":\"0\",\"url\":\"c\"}"]),
            ("url", "d", &["{}", "{}"]),
            ("counts", "", &["{\"counts\":{\"granted\":7,\"turn\":1}}"]),
        ]);
        let two = kept(&[
            ("url", "a", &["{\"url\":\"a\",\"state\":\"pending\"}"]),
            ("url", "c", &["{\"url\":\"c\"}"]),
            ("url", "d", &["{}"]),
            ("url", "e", &["{\"url\":\"e\"}"]),
            ("counts", "", &["{\"counts\":{\"granted\":8,\"turn\":1}}"]),
        ]);
        let told: Vec<_> = differences(&one, &two)
            .into_iter()
            .map(|one| format!("{} {} {}", one.kind, one.name, one.what))
            .collect();
        assert_eq!(
            told,
            [
                "counts  granted is 7, and 8 in the copy",
                "url a state is \"done\", and \"pending\" in the copy; visits is 1, and none in the copy",
                "url b is missing in the copy",
                "url c stands in another place",
                "url d has 2 entries, and 1 in the copy",
                "url e is in the copy only",
            ]
        );
        assert_eq!(differences(&one, &one), []);
    }
}
