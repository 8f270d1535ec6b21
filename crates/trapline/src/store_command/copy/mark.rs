//! The mark of a crawl that is being copied: a note in the copy that says from where, and how far that has come.
//!
//! It is written in the same step as what it tells of, so that nothing is copied twice or left out, wherever the command was killed.

use serde_json::{Value, json};
use trapline_core::Timestamp;
use trapline_frontier::{CrawlState, NoteWrite, QueueState, Record, Stats, UrlState};

/// The key of the note.
pub(super) const COPY_NOTE: &str = "trapline.copy";

/// What is copied, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// Nothing yet: leases may be waited for.
    Begun,
    Urls,
    Queues,
    Notes,
    /// All is there, and is to be compared.
    Copied,
    /// All is the same; only the state is to be taken on.
    Compared,
}

const PARTS: [(Part, &str); 6] = [
    (Part::Begun, "begun"),
    (Part::Urls, "urls"),
    (Part::Queues, "queues"),
    (Part::Notes, "notes"),
    (Part::Copied, "copied"),
    (Part::Compared, "compared"),
];

/// How far a copy has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The store that it is copied from.
    pub(super) place: String,
    /// The crawl there.
    pub(super) crawl: String,
    /// The state that it had before it was paused.
    pub(super) state: CrawlState,
    /// The moment as of which it is copied.
    pub(super) now: Timestamp,
    pub(super) part: Part,
    /// Where in the part to go on, and how many records from there on are copied already.
    pub(super) cursor: Option<u64>,
    pub(super) skip: u64,
    /// Where the queues begin, once that is known.
    pub(super) queues: Option<u64>,
    /// What there was at that moment.
    pub(super) print: Print,
}

/// What a crawl looks like from outside: enough to notice that somebody has used it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Print {
    /// What does not change as time passes, unless leases are out: how many URLs are known, done for good, fetched and so on.
    pub(super) work: Vec<u64>,
    /// What changes as time passes: URLs and queues by state.
    pub(super) time: Vec<u64>,
    pub(super) urls: u64,
    pub(super) leased: u64,
}

impl Print {
    pub(super) fn of(stats: &Stats) -> Self {
        let urls: u64 = stats.urls.iter().sum();
        let work = vec![
            urls,
            stats.queues.iter().sum(),
            stats.urls_in(UrlState::Disregarded),
            stats.urls_in(UrlState::Dead),
            stats.fetched,
            stats.bytes,
            stats.spent,
            stats.granted,
        ];
        let mut time: Vec<u64> = UrlState::ALL.iter().map(|state| stats.urls_in(*state)).collect();
        time.push(stats.visits_waiting);
        time.extend(QueueState::ALL.iter().map(|state| stats.queues_in(*state)));
        Self { work, time, urls, leased: stats.urls_in(UrlState::Leased) }
    }
}

impl Mark {
    /// The note that says so.
    pub(super) fn note(&self) -> NoteWrite {
        NoteWrite { key: COPY_NOTE.to_owned(), value: Some(self.write()), expires: None }
    }

    /// The same as a record, to be restored with what it tells of.
    pub(super) fn record(&self) -> Record {
        Record::Note(self.note())
    }

    /// The note that takes it away.
    pub(super) fn removal() -> NoteWrite {
        NoteWrite { key: COPY_NOTE.to_owned(), value: None, expires: None }
    }

    fn write(&self) -> Vec<u8> {
        let part = PARTS.iter().find(|(part, _)| *part == self.part).map(|(_, name)| *name);
        let reason = match &self.state {
            CrawlState::Finished(reason) => Some(reason),
            CrawlState::Running | CrawlState::Paused => None,
        };
        json!({
            "place": self.place,
            "crawl": self.crawl,
            "state": self.state.to_string(),
            "reason": reason,
            "now": self.now.as_millis(),
            "part": part,
            "cursor": self.cursor,
            "skip": self.skip,
            "queues": self.queues,
            "work": self.print.work,
            "time": self.print.time,
            "urls": self.print.urls,
            "leased": self.print.leased,
        })
        .to_string()
        .into_bytes()
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let numbers =
            |name: &str| value[name].as_array()?.iter().map(Value::as_u64).collect::<Option<Vec<_>>>();
        let state = match &*text("state")? {
            "running" => CrawlState::Running,
            "paused" => CrawlState::Paused,
            "finished" => CrawlState::Finished(text("reason")?),
            _ => return None,
        };
        let part = text("part")?;
        Some(Self {
            place: text("place")?,
            crawl: text("crawl")?,
            state,
            now: Timestamp::from_millis(value["now"].as_u64()?),
            part: PARTS.iter().find(|(_, name)| *name == part)?.0,
            cursor: value["cursor"].as_u64(),
            skip: value["skip"].as_u64()?,
            queues: value["queues"].as_u64(),
            print: Print {
                work: numbers("work")?,
                time: numbers("time")?,
                urls: value["urls"].as_u64()?,
                leased: value["leased"].as_u64()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for (part, _) in PARTS {
            for state in
                [CrawlState::Running, CrawlState::Paused, CrawlState::Finished("\0 \"enough\"\n".to_owned())]
            {
                let mark = Mark {
                    place: "disk:/tmp/a b".to_owned(),
                    crawl: "\u{1b}💡\n".to_owned(),
                    state,
                    now: Timestamp::from_millis(u64::MAX),
                    part,
                    cursor: Some(u64::MAX),
                    skip: 7,
                    queues: None,
                    print: Print { work: vec![0, u64::MAX], time: vec![1], urls: 2, leased: 3 },
                };
                assert_eq!(Mark::read(&mark.write()), Some(mark));
            }
        }
        for bad in [&b""[..], b"{}", b"\xff", b"[]", b"{\"place\":1}"] {
            assert_eq!(Mark::read(bad), None);
        }
    }
}
