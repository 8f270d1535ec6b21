//! What a crawler did, read from the visits that a server saw: how often, how close together, how many at once.

use std::collections::{BTreeMap, BTreeSet};

use crate::visit::Visit;

/// What one site saw of a crawl.
#[derive(Clone, Debug, Default)]
pub struct Visits {
    /// In the order of their beginnings.
    all: Vec<Visit>,
}

impl Visits {
    /// Those of one site, by its name.
    pub fn of(visits: &[Visit], site: &str) -> Self {
        let mut all: Vec<_> = visits.iter().filter(|visit| visit.site == site).cloned().collect();
        all.sort_by_key(|visit| (visit.began_ms, visit.ended_ms));
        Self { all }
    }

    /// All of them, in the order of their beginnings.
    pub fn all(&self) -> &[Visit] {
        &self.all
    }

    /// Those of pages and what belongs to them: all but of robots.txt.
    fn pages(&self) -> impl Iterator<Item = &Visit> {
        self.all.iter().filter(|visit| visit.path != "/robots.txt")
    }

    /// What was asked for, without robots.txt, in a form that does not depend on which characters a client escapes.
    pub fn paths(&self) -> BTreeSet<String> {
        self.pages().map(|visit| unescaped(&visit.path)).collect()
    }

    /// What was asked for more than once, and how often, without robots.txt.
    pub fn repeated(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for visit in self.pages() {
            *counts.entry(unescaped(&visit.path)).or_insert(0) += 1;
        }
        counts.retain(|_, count| *count > 1);
        counts
    }

    /// The shortest time from the end of all requests before one to its beginning, and which one that was. Negative where they overlap. None if
    /// there were fewer than two. robots.txt counts: it is a request like any other.
    pub fn shortest_gap_ms(&self) -> Option<(i64, &Visit)> {
        let mut ended_ms: Option<u64> = None;
        let mut shortest: Option<(i64, &Visit)> = None;
        for visit in &self.all {
            if let Some(ended_ms) = ended_ms {
                let gap = signed(visit.began_ms) - signed(ended_ms);
                if shortest.is_none_or(|(known, _)| gap < known) {
                    shortest = Some((gap, visit));
                }
            }
            ended_ms = ended_ms.max(Some(visit.ended_ms));
        }
        shortest
    }

    /// The most requests that were being answered at the same time.
    pub fn most_at_once(&self) -> usize {
        let mut events = Vec::new();
        for (number, visit) in self.all.iter().enumerate() {
            // What ends at a millisecond is over before what begins at it; those that take no time come between, one by one.
            let (end, begin) = if visit.began_ms == visit.ended_ms { (1, 1) } else { (0, 2) };
            events.push((visit.began_ms, begin, number, 1_i64));
            events.push((visit.ended_ms, end, number, -1));
        }
        events.sort_unstable_by_key(|&(at, order, number, change)| (at, order, number, -change));
        let (mut now, mut most) = (0_i64, 0);
        for (.., change) in events {
            now += change;
            most = most.max(now);
        }
        usize::try_from(most).unwrap_or(0)
    }

    /// What was asked for below a path that robots.txt may have closed.
    pub fn below(&self, prefix: &str) -> Vec<&Visit> {
        self.all.iter().filter(|visit| unescaped(&visit.path).starts_with(prefix)).collect()
    }

    /// What began after a moment by the same machine's clock.
    pub fn began_after(&self, moment_ms: u64) -> Vec<&Visit> {
        self.all.iter().filter(|visit| visit.began_ms > moment_ms).collect()
    }
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// A path and query with the escapes undone of all bytes that need none, and the others in capitals. Clients differ there: some escape `~`
/// or an apostrophe, and some keep what a page has written.
pub fn unescaped(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = String::with_capacity(path.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = (bytes[at] == b'%').then(|| path.get(at + 1..at + 3)).flatten();
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (byte, length) = byte.map_or((bytes[at], 1), |byte| (byte, 3));
        let is_structure = length == 3 && b"%/?#&=+;".contains(&byte);
        if byte.is_ascii_graphic() && !is_structure {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        at += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(path: &str, began_ms: u64, ended_ms: u64) -> Visit {
        Visit {
            site: "a".to_owned(),
            method: "GET".to_owned(),
            path: path.to_owned(),
            status: 200,
            connection: 1,
            began_ms,
            ended_ms,
            agent: String::new(),
        }
    }

    fn visits(all: &[(&str, u64, u64)]) -> Visits {
        let all: Vec<_> = all.iter().map(|&(path, began, ended)| visit(path, began, ended)).collect();
        Visits::of(&all, "a")
    }

    #[test]
    fn gaps_are_from_the_last_end_to_the_next_beginning() {
        let seen = visits(&[("/1", 0, 10), ("/2", 60, 61), ("/3", 100, 101)]);
        assert_eq!(seen.shortest_gap_ms().map(|(gap, visit)| (gap, visit.path.as_str())), Some((39, "/3")));
        assert_eq!(seen.most_at_once(), 1);
        // A long request is behind a short one that began later.
        let seen = visits(&[("/1", 0, 100), ("/2", 10, 20), ("/3", 90, 95)]);
        assert_eq!(seen.shortest_gap_ms().map(|(gap, visit)| (gap, visit.path.as_str())), Some((-90, "/2")));
        assert_eq!(seen.most_at_once(), 2);
        // Those that take no time are one at a time.
        assert_eq!(visits(&[("/1", 3, 3), ("/2", 3, 3), ("/3", 3, 7)]).most_at_once(), 1);
        assert_eq!(visits(&[("/1", 3, 4), ("/2", 4, 4), ("/3", 0, 7)]).most_at_once(), 2);
        assert_eq!(visits(&[("/1", 0, 10)]).shortest_gap_ms(), None);
    }

    #[test]
    fn what_is_asked_for_twice_is_told_however_it_is_escaped() {
        let seen = visits(&[
            ("/robots.txt", 0, 1),
            ("/robots.txt", 1, 2),
            ("/~a", 3, 4),
            ("/%7ea", 5, 6),
            ("/b", 7, 8),
        ]);
        assert_eq!(seen.repeated(), BTreeMap::from([("/~a".to_owned(), 2)]));
        assert_eq!(seen.paths(), ["/b", "/~a"].map(str::to_owned).into());
        assert_eq!(seen.below("/~").len(), 2);
        assert_eq!(seen.began_after(5).len(), 1);
    }

    #[test]
    fn escapes_that_mean_something_stay() {
        assert_eq!(unescaped("/a%2fb%3Fc?d=%26"), "/a%2Fb%3Fc?d=%26");
        assert_eq!(unescaped("/%c3%A4%zz%"), "/%C3%A4%zz%");
        assert_eq!(unescaped("/a%20b'(c)%27"), "/a%20b'(c)'");
    }
}
