//! What a robots.txt says to one agent, ready to be asked about many paths.
//!
//! Of all rules that match, the longest decides, and Allow if two are equally long. Rules without a wildcard inside are found in
//! two sorted lists. Those with one stand in the order in which they decide, so that the first that matches is the one; a
//! sieve of a few words each tells most of them apart from a path without looking at their text, and what is left is
//! searched for (see [`search`](super::search)).

use std::fmt;
use std::time::Duration;

use url::{Position, Url};

use super::Answer;
use super::pattern::{ODD, kinds_of, spell_path};
use super::search::Search;

/// What a robots.txt says to one agent.
#[derive(Clone, Debug)]
pub struct Rules {
    pub(super) answer: Answer,
    pub(super) delay: Option<Duration>,
    /// Whether a group named the agent, or `*`.
    pub(super) addressed: bool,
    /// What records and wildcards point into.
    pub(super) text: Vec<u8>,
    pub(super) records: Vec<Record>,
    /// By their text.
    pub(super) prefixes: Vec<Prefix>,
    /// By their text.
    pub(super) exacts: Vec<Exact>,
    /// In the order in which they decide, and for each one its sieve.
    pub(super) wildcards: Vec<Wildcard>,
    pub(super) sieves: Vec<Sieve>,
    pub(super) segments: Vec<Piece>,
}

/// A rule as it was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) line: u32,
    pub(super) allow: bool,
    pub(super) pattern: Piece,
}

impl Record {
    /// Which of two rules that both match decides: the greater one.
    pub(super) fn weight(&self) -> (u32, bool) {
        (self.pattern.len, self.allow)
    }
}

/// A part of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// A rule that matches what begins with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    pub(super) text: Piece,
    /// The next shorter one of the list with which this one begins.
    pub(super) shorter: Option<u32>,
    /// The record that decides among this one and the shorter ones. It need not be this one's: stars at its end make a
    /// rule weigh more.
    pub(super) record: u32,
}

/// A rule that matches what equals it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact {
    pub(super) text: Piece,
    pub(super) record: u32,
}

/// A rule with a wildcard inside: a head, then segments in this order with anything between them, then a tail at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wildcard {
    pub(super) record: u32,
    pub(super) head: Piece,
    /// Empty if the path may end with anything.
    pub(super) tail: Piece,
    pub(super) segments_start: u32,
    pub(super) segments_end: u32,
    /// No shorter path can match.
    pub(super) bytes_min: u32,
}

/// What a path must have so that a wildcard rule is worth looking at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sieve {
    /// These kinds of bytes.
    pub(super) kinds: u64,
    /// These first bytes, as far as the mask reaches.
    pub(super) head: u64,
    pub(super) mask: u64,
}

/// Whether a path may be fetched, and who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'a> {
    /// Whether it may.
    pub allowed: bool,
    /// The line that decided, if a line did.
    pub line: Option<RuleLine<'a>>,
    /// What decided.
    pub because: Because,
}

/// What decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Because {
    /// A rule: see [`Decision::line`].
    Rule,
    /// There is no rule for this path, so that it is allowed.
    NoRule,
    /// There is no group for this agent, so that everything is allowed.
    NoGroup,
    /// It is `/robots.txt`, which is always allowed.
    RobotsTxt,
    /// There is no robots.txt, so that everything is allowed.
    NoFile,
    /// robots.txt cannot be had, so that nothing is allowed.
    Unreachable,
    /// To find out would take too long, so that it is not allowed. Only files made for this come here: ten thousands of
    /// wildcard rules and a path of kilobytes that nearly matches all of them.
    TooCostly,
}

/// A rule and its line.
///
/// Displayed as the line that it was understood as: `Disallow: /a*b$`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleLine<'a> {
    /// The line, counted from 1.
    pub number: u32,
    /// Whether it is an `Allow`.
    pub allows: bool,
    /// Its pattern, with percent-encoding normalized.
    pub pattern: &'a str,
}

impl fmt::Display for RuleLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", if self.allows { "Allow" } else { "Disallow" }, self.pattern)
    }
}

impl Rules {
    /// Whether a URL may be fetched: its path and its query count, whatever its host.
    pub fn check(&self, url: &Url) -> Decision<'_> {
        self.decide(url[Position::BeforePath..Position::AfterQuery].as_bytes())
    }

    /// The same for a path, with its query, in any spelling. A fragment does not count.
    pub fn check_path(&self, path: &str) -> Decision<'_> {
        self.decide(path.split('#').next().unwrap_or_default().as_bytes())
    }

    /// How long the agent is to wait between two fetches; the longest, where the file says several.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.delay
    }

    fn decide(&self, path: &[u8]) -> Decision<'_> {
        let because = |allowed, because| Decision { allowed, line: None, because };
        if path == b"/robots.txt" {
            return because(true, Because::RobotsTxt);
        }
        match self.answer {
            Answer::Allow => return because(true, Because::NoFile),
            Answer::Disallow => return because(false, Because::Unreachable),
            Answer::Rules if !self.addressed => return because(true, Because::NoGroup),
            Answer::Rules => {}
        }
        let mut rooted = Vec::new();
        let path = if path.first() == Some(&b'/') {
            path
        } else {
            rooted.push(b'/');
            rooted.extend_from_slice(path);
            &rooted
        };
        let kinds = kinds_of(path);
        let found = if kinds & ODD == 0 {
            self.find(path, kinds)
        } else {
            let path = spell_path(path);
            if *path == *b"/robots.txt" {
                return because(true, Because::RobotsTxt);
            }
            self.find(&path, kinds_of(&path))
        };
        match found {
            Err(TooCostly) => because(false, Because::TooCostly),
            Ok(None) => because(true, Because::NoRule),
            Ok(Some(record)) => {
                let line = self.line(record);
                Decision { allowed: line.allows, line: Some(line), because: Because::Rule }
            }
        }
    }

    /// The record that decides about a path in the one spelling.
    fn find(&self, path: &[u8], kinds: u64) -> Result<Option<u32>, TooCostly> {
        let plain = self.heavier(self.prefix_of(path), self.equal_to(path));
        let rivals = match plain {
            None => self.wildcards.len(),
            Some(plain) => {
                let weight = self.record(plain).weight();
                self.wildcards.partition_point(|rival| self.record(rival.record).weight() > weight)
            }
        };
        let first = first_word(path);
        let mut search = Search::new(path);
        for (sieve, rival) in self.sieves.iter().zip(&self.wildcards).take(rivals) {
            if sieve.kinds & !kinds != 0 || (sieve.head ^ first) & sieve.mask != 0 {
                continue;
            }
            if self.matches(rival, path, &mut search)? {
                return Ok(Some(rival.record));
            }
        }
        Ok(plain)
    }

    /// Whether a wildcard rule matches. Taking the first place for each segment is enough: what matches with a later
    /// place also does with the first.
    fn matches(&self, rule: &Wildcard, path: &[u8], search: &mut Search<'_>) -> Result<bool, TooCostly> {
        if path.len() < rule.bytes_min as usize
            || !path.starts_with(self.piece(rule.head))
            || !path.ends_with(self.piece(rule.tail))
        {
            return Ok(false);
        }
        let mut from = rule.head.len as usize;
        let end = path.len() - rule.tail.len as usize;
        let segments = self.segments.get(rule.segments_start as usize..rule.segments_end as usize);
        for segment in segments.unwrap_or_default() {
            match search.find(self.piece(*segment), from, end)? {
                Some(at) => from = at + segment.len as usize,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// The record of the heaviest rule with which a path begins.
    fn prefix_of(&self, path: &[u8]) -> Option<u32> {
        let after = self.prefixes.partition_point(|prefix| self.piece(prefix.text) <= path);
        let mut prefix = self.prefixes.get(after.checked_sub(1)?)?;
        // All that the path begins with are among this one and its shorter ones.
        let text = self.piece(prefix.text);
        let common = text.iter().zip(path).take_while(|(one, other)| one == other).count();
        while prefix.text.len as usize > common {
            prefix = self.prefixes.get(prefix.shorter? as usize)?;
        }
        Some(prefix.record)
    }

    fn equal_to(&self, path: &[u8]) -> Option<u32> {
        let place = self.exacts.binary_search_by(|exact| self.piece(exact.text).cmp(path)).ok()?;
        Some(self.exacts.get(place)?.record)
    }

    fn heavier(&self, one: Option<u32>, other: Option<u32>) -> Option<u32> {
        match (one, other) {
            (Some(one), Some(other)) if self.record(one).weight() >= self.record(other).weight() => Some(one),
            (one, None) => one,
            (_, other) => other,
        }
    }

    fn line(&self, record: u32) -> RuleLine<'_> {
        let record = self.record(record);
        let pattern = std::str::from_utf8(self.piece(record.pattern)).unwrap_or_default();
        RuleLine { number: record.line, allows: record.allow, pattern }
    }

    pub(super) fn record(&self, record: u32) -> &Record {
        &self.records[record as usize]
    }

    pub(super) fn piece(&self, piece: Piece) -> &[u8] {
        &self.text[piece.start as usize..][..piece.len as usize]
    }
}

/// The first eight bytes as a number, the first one highest; what is missing is zero.
pub(super) fn first_word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(word) => u64::from_be_bytes(*word),
        None => bytes.iter().enumerate().fold(0, |word, (place, byte)| word | u64::from(*byte) << (56 - 8 * place)),
    }
}

/// The budget of a decision is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooCostly;
