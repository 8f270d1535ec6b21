//! What visits add up to, by status, media type and error. Names come from servers and have no end, so that only so many are told
//! apart.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use trapline_core::Timestamp;
use trapline_crawl::{PageLine, is_page};

/// How many names of a kind are told apart; further ones are counted as others.
const NAMES_MAX: usize = 256;

/// How much of a name is kept.
const NAME_BYTES_MAX: usize = 100;

/// What is counted together.
const OTHERS: &str = "others";

/// So many visits, and the bytes that came with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) visits: u64,
    pub(crate) bytes: u64,
}

/// What visits add up to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) visits: u64,
    pub(crate) pages: u64,
    pub(crate) bytes: u64,
    pub(crate) retries: u64,
    /// How long all visits took together, in microseconds.
    pub(crate) us: u64,
    pub(crate) first: Option<Timestamp>,
    pub(crate) last: Option<Timestamp>,
    /// Responses.
    pub(crate) statuses: BTreeMap<String, Sum>,
    /// Of pages.
    pub(crate) mimes: BTreeMap<String, Sum>,
    /// Requests without a response.
    pub(crate) errors: BTreeMap<String, Sum>,
    /// What was not fetched, or not taken, by rule.
    pub(crate) skipped: BTreeMap<String, Sum>,
}

/// What is counted of a visit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen<'s> {
    at: Option<Timestamp>,
    outcome: &'s str,
    status: Option<u16>,
    error: Option<&'s str>,
    mime: Option<&'s str>,
    bytes: u64,
    us: u64,
}

impl<'s> Seen<'s> {
    pub(crate) fn of_page(page: &'s PageLine) -> Self {
        Self {
            at: Some(page.at),
            outcome: page.outcome,
            status: page.status,
            error: page.error.as_deref(),
            mime: page.mime.as_deref(),
            bytes: page.encoded_bytes,
            us: u64::try_from(page.times.total.as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// Of a line of `pages.jsonl`.
    pub(crate) fn of_line(line: &'s Value) -> Self {
        Self {
            at: line["at"].as_str().and_then(trapline_core::parse_utc),
            outcome: line["outcome"].as_str().unwrap_or_default(),
            status: line["status"].as_u64().and_then(|status| u16::try_from(status).ok()),
            error: line["error"].as_str(),
            mime: line["mime"].as_str(),
            bytes: line["bytes"].as_u64().unwrap_or_default(),
            us: (line["ms"]["total"].as_f64().unwrap_or_default() * 1000.0) as u64,
        }
    }
}

impl Counts {
    /// Counts a visit.
    pub(crate) fn visit(&mut self, seen: &Seen<'_>) {
        let one = Sum { visits: 1, bytes: seen.bytes };
        let is_page = is_page(seen.outcome);
        self.visits += 1;
        self.pages += u64::from(is_page);
        self.bytes += seen.bytes;
        self.retries += u64::from(seen.outcome == "retry");
        self.us = self.us.saturating_add(seen.us);
        if self.first.is_none() {
            self.first = seen.at;
        }
        self.last = self.last.max(seen.at);
        if let Some(status) = seen.status {
            count(&mut self.statuses, &status.to_string(), one);
        }
        if let Some(error) = seen.error {
            count(&mut self.errors, error, one);
        }
        if let Some(mime) = seen.mime.filter(|_| is_page) {
            count(&mut self.mimes, mime, one);
        }
    }

    /// Counts something that was not fetched.
    pub(crate) fn skip(&mut self, reason: &str) {
        count(&mut self.skipped, reason, Sum { visits: 1, bytes: 0 });
    }

    /// Responses whose status begins so.
    pub(crate) fn responses(&self, begins: char) -> u64 {
        let those = self.statuses.iter().filter(|(status, _)| status.starts_with(begins));
        those.map(|(_, sum)| sum.visits).sum()
    }

    /// Requests without a response.
    pub(crate) fn no_response(&self) -> u64 {
        self.errors.values().map(|sum| sum.visits).sum()
    }

    /// Counts what others have counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.visits += other.visits;
        self.pages += other.pages;
        self.bytes += other.bytes;
        self.retries += other.retries;
        self.us = self.us.saturating_add(other.us);
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.last = self.last.max(other.last);
        for (mine, theirs) in [
            (&mut self.statuses, &other.statuses),
            (&mut self.mimes, &other.mimes),
            (&mut self.errors, &other.errors),
            (&mut self.skipped, &other.skipped),
        ] {
            theirs.iter().for_each(|(name, sum)| count(mine, name, *sum));
        }
    }

    pub(super) fn json(&self) -> Value {
        let named = |sums: &BTreeMap<String, Sum>| {
            let pairs = sums.iter().map(|(name, sum)| (name.clone(), json!([sum.visits, sum.bytes])));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        json!({
            "visits": self.visits,
            "pages": self.pages,
            "bytes": self.bytes,
            "retries": self.retries,
            "us": self.us,
            "first": self.first.map(Timestamp::as_millis),
            "last": self.last.map(Timestamp::as_millis),
            "statuses": named(&self.statuses),
            "mimes": named(&self.mimes),
            "errors": named(&self.errors),
            "skipped": named(&self.skipped),
        })
    }

    pub(super) fn read(value: &Value) -> Option<Self> {
        let number = |name: &str| value[name].as_u64();
        let time = |name: &str| number(name).map(Timestamp::from_millis);
        let named = |name: &str| {
            let pairs = value[name].as_object()?.iter();
            let sum = |sum: &Value| Some(Sum { visits: sum[0].as_u64()?, bytes: sum[1].as_u64()? });
            pairs.map(|(name, value)| Some((name.clone(), sum(value)?))).collect::<Option<BTreeMap<_, _>>>()
        };
        Some(Self {
            visits: number("visits")?,
            pages: number("pages")?,
            bytes: number("bytes")?,
            retries: number("retries")?,
            us: number("us")?,
            first: time("first"),
            last: time("last"),
            statuses: named("statuses")?,
            mimes: named("mimes")?,
            errors: named("errors")?,
            skipped: named("skipped")?,
        })
    }
}

fn count(sums: &mut BTreeMap<String, Sum>, name: &str, more: Sum) {
    let name = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
    let room = sums.len() < NAMES_MAX;
    let sum = match sums.get_mut(name) {
        Some(sum) => sum,
        None => sums.entry(if room { name } else { OTHERS }.to_owned()).or_default(),
    };
    sum.visits += more.visits;
    sum.bytes += more.bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_end_take_no_more_room_and_all_are_counted() {
        let mut counts = Counts::default();
        for number in 0..5000 {
            let mime = format!("x/{number}{}", "é".repeat(200));
            counts.visit(&Seen { outcome: "done", mime: Some(&mime), bytes: 2, ..Seen::default() });
        }
        assert!(counts.mimes.len() <= NAMES_MAX + 1);
        assert_eq!(counts.mimes.values().map(|sum| sum.visits).sum::<u64>(), 5000);
        assert!(counts.json().to_string().len() < 40_000);
        let mut twice = counts.clone();
        twice.add(&counts);
        assert_eq!((twice.visits, twice.bytes), (10_000, 20_000));
        assert_eq!(twice.mimes.values().map(|sum| sum.bytes).sum::<u64>(), 20_000);
    }
}
