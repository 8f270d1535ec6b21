//! The chronicle of a crawl: what its visits add up to in all runs, and how it went over time.
//!
//! It is what reports need and the frontier does not know: media types, visits by status, rates. Its size is bounded, however
//! long a crawl goes on. It lies in the crawl's folder and, as a note, in its store, so that who has one of them can be told;
//! what was written to `pages.jsonl` after it was last saved is counted when it is read.

mod counts;
mod series;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Value, json};

pub(crate) use counts::{Counts, Seen, Sum};
pub(crate) use series::{Point, Series};

/// The file in the crawl's folder.
pub(crate) const FILE: &str = "chronicle.json";

/// What the keys of these notes in a store begin with; the rest names the folder of a crawler.
pub(crate) const NOTES: &str = "chronicle/";

/// The version of its form.
const VERSION: u64 = 1;

/// What a crawler has done in all runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chronicle {
    pub(crate) counts: Counts,
    pub(crate) series: Series,
    /// How much of `pages.jsonl` is counted.
    pub(crate) pages_bytes: u64,
}

impl Chronicle {
    /// As it is kept.
    pub(crate) fn json(&self) -> Value {
        json!({
            "v": VERSION,
            "pages_bytes": self.pages_bytes,
            "counts": self.counts.json(),
            "series": self.series.json(),
        })
    }

    /// What was kept; None if it cannot be read, by this version at least.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        if value["v"].as_u64() != Some(VERSION) {
            return None;
        }
        Some(Self {
            counts: Counts::read(&value["counts"])?,
            series: Series::read(&value["series"])?,
            pages_bytes: value["pages_bytes"].as_u64()?,
        })
    }

    /// What is in a folder; None if there is none, or not a whole one.
    pub(crate) fn of_folder(folder: &Path) -> Option<Self> {
        Self::read(&std::fs::read(folder.join(FILE)).ok()?)
    }

    /// Which of two knows more.
    pub(crate) fn better(self, other: Self) -> Self {
        let knows = |one: &Self| (one.pages_bytes, one.counts.visits);
        if knows(&other) > knows(&self) { other } else { self }
    }

    /// Counts the visits of `pages.jsonl` that are not counted yet, up to so many bytes of it, whole lines only.
    pub(crate) fn catch_up(&mut self, pages: &Path, up_to: u64) -> std::io::Result<()> {
        if self.pages_bytes >= up_to {
            return Ok(());
        }
        let mut file = File::open(pages)?;
        file.seek(SeekFrom::Start(self.pages_bytes))?;
        let mut lines = BufReader::with_capacity(1 << 16, file.take(up_to - self.pages_bytes));
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = lines.read_until(b'\n', &mut line)?;
            if line.last() != Some(&b'\n') {
                return Ok(());
            }
            self.pages_bytes += read as u64;
            if let Ok(value) = serde_json::from_slice::<Value>(&line) {
                self.counts.visit(&Seen::of_line(&value));
            }
        }
    }

    /// What several crawlers have done together.
    pub(crate) fn together(all: Vec<Self>) -> Self {
        let mut counts = Counts::default();
        all.iter().for_each(|one| counts.add(&one.counts));
        let series = Series::together(all.into_iter().map(|one| one.series).collect());
        Self { counts, series, pages_bytes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_was_written_since_is_counted_once_and_torn_ends_are_not() {
        let path = std::env::temp_dir().join(format!("trapline-chronicle-{}", std::process::id()));
        let line = |status: u16| {
            format!(
                "{}\n",
                json!({"url": "http://a.test/", "outcome": "done", "status": status, "bytes": 10, "mime": "text/html"})
            )
        };
        let mut file = File::create(&path).unwrap();
        write!(file, "{}{}{}", line(200), line(404), &line(500)[..20]).unwrap();
        let mut chronicle = Chronicle::default();
        for _ in 0..2 {
            chronicle.catch_up(&path, u64::MAX).unwrap();
            assert_eq!((chronicle.counts.visits, chronicle.counts.pages), (2, 2));
        }
        write!(file, "{}", &line(500)[20..]).unwrap();
        let bytes = std::fs::metadata(&path).unwrap().len();
        chronicle.catch_up(&path, bytes).unwrap();
        assert_eq!((chronicle.counts.visits, chronicle.pages_bytes), (3, bytes));
        let kept = chronicle.json().to_string();
        assert_eq!(Chronicle::read(kept.as_bytes()), Some(chronicle));
        for broken in [&kept[..kept.len() / 2], "{}", "{\"v\":2}", "[]"] {
            assert_eq!(Chronicle::read(broken.as_bytes()), None);
        }
        std::fs::remove_file(path).unwrap();
    }
}
