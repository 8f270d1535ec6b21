//! The byte form of a robots.txt that was read: to be kept in a store, where hands that are not ours may have been at it.
//!
//! A version, who decides, whether the file was cut; then groups and sitemaps, every number as a varint (seven bits a byte,
//! lowest first), every text with its length before it. The reader takes only what the writer can have written.

use super::agent::is_token;
use super::{
    Answer, CRAWL_DELAY_MAX, Delay, Entry, Group, ROBOTS_BYTES_MAX, Robots, RuleEntry,
};

const VERSION: u8 = 1;

/// An octet of a file takes at most three in the one spelling.
const TEXT_BYTES_MAX: usize = 3 * ROBOTS_BYTES_MAX;

/// More than any file can come to: its text, and a few numbers for each of its lines.
const BYTES_MAX: usize = 4 << 20;

/// Why bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BytesError {
    /// Another version wrote them: read the file anew.
    Version(u8),
    /// They are damaged, or were never a robots.txt of ours.
    Damaged,
}

impl std::fmt::Display for BytesError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Version(version) => write!(
                f,
                "cannot read a kept robots.txt of version {version}: this build knows version {VERSION}; fetch the file anew"
            ),
            Self::Damaged => f.write_str("cannot read a kept robots.txt: it is damaged; fetch the file anew"),
        }
    }
}

impl std::error::Error for BytesError {}

pub(super) fn write(robots: &Robots) -> Vec<u8> {
    let answer = match robots.answer {
        Answer::Rules => 0,
        Answer::Allow => 1,
        Answer::Disallow => 2,
    };
    let mut out = Vec::with_capacity(robots.text.len() + 16 * robots.groups.len() + 16);
    out.extend([VERSION, answer, u8::from(robots.truncated)]);
    let text = |out: &mut Vec<u8>, entry: Entry| {
        number(out, entry.line);
        number(out, entry.len);
        out.extend_from_slice(robots.text(entry).as_bytes());
    };
    count(&mut out, robots.groups.len());
    for group in &robots.groups {
        count(&mut out, group.agents.len());
        group.agents.iter().for_each(|agent| text(&mut out, *agent));
        count(&mut out, group.rules.len());
        for rule in &group.rules {
            out.push(u8::from(rule.allow));
            text(&mut out, rule.pattern);
        }
        count(&mut out, group.delays.len());
        for delay in &group.delays {
            number(&mut out, delay.line);
            number(&mut out, delay.agents);
            number(&mut out, delay.ms);
        }
    }
    count(&mut out, robots.sitemaps.len());
    robots.sitemaps.iter().for_each(|sitemap| text(&mut out, *sitemap));
    out
}

fn count(out: &mut Vec<u8>, count: usize) {
    // A file has fewer lines than that.
    number(out, u32::try_from(count).unwrap_or(u32::MAX));
}

fn number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(super) fn read(bytes: &[u8]) -> Result<Robots, BytesError> {
    match bytes {
        [VERSION, ..] if bytes.len() > BYTES_MAX => Err(BytesError::Damaged),
        [VERSION, rest @ ..] => Reading { rest }.robots().ok_or(BytesError::Damaged),
        [version, ..] => Err(BytesError::Version(*version)),
        [] => Err(BytesError::Damaged),
    }
}

struct Reading<'a> {
    rest: &'a [u8],
}

impl<'a> Reading<'a> {
    fn robots(mut self) -> Option<Robots> {
        let mut robots = Robots::empty(match self.byte()? {
            0 => Answer::Rules,
            1 => Answer::Allow,
            2 => Answer::Disallow,
            _ => return None,
        });
        robots.truncated = self.flag()?;
        for _ in 0..self.count()? {
            let group = self.group(&mut robots)?;
            robots.groups.push(group);
        }
        for _ in 0..self.count()? {
            let (line, text) = self.text()?;
            let text = std::str::from_utf8(text).ok()?;
            let sitemap = keep(&mut robots, line, text)?;
            robots.sitemaps.push(sitemap);
        }
        let empty = robots.groups.is_empty() && robots.sitemaps.is_empty() && !robots.truncated;
        (self.rest.is_empty() && (robots.answer == Answer::Rules || empty)).then_some(robots)
    }

    fn group(&mut self, robots: &mut Robots) -> Option<Group> {
        let mut group = Group::default();
        for _ in 0..self.count()? {
            let (line, text) = self.text()?;
            let text = std::str::from_utf8(text).ok()?;
            if text != "*" && (text.is_empty() || !text.bytes().all(is_token)) {
                return None;
            }
            group.agents.push(keep(robots, line, text)?);
        }
        for _ in 0..self.count()? {
            let allow = self.flag()?;
            let (line, text) = self.text()?;
            let sound = matches!(text, [b'/' | b'*', ..]) && text.iter().all(u8::is_ascii_graphic);
            let text = std::str::from_utf8(text).ok().filter(|_| sound)?;
            group.rules.push(RuleEntry { allow, pattern: keep(robots, line, text)? });
        }
        for _ in 0..self.count()? {
            let delay = Delay { line: self.number()?, agents: self.number()?, ms: self.number()? };
            let sound = u128::from(delay.ms) <= CRAWL_DELAY_MAX.as_millis()
                && delay.agents as usize <= group.agents.len();
            group.delays.push(Some(delay).filter(|_| sound)?);
        }
        Some(group)
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u32> {
        let mut number = 0_u32;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            let bits = u32::from(byte & 0x7f);
            let shifted = bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
            number |= shifted;
            if byte < 0x80 {
                // The shortest way of writing a number is the only one.
                return (byte != 0 || shift == 0).then_some(number);
            }
        }
        None
    }

    /// A count of things, each of which takes at least a byte.
    fn count(&mut self) -> Option<usize> {
        let count = self.number()? as usize;
        (count <= self.rest.len()).then_some(count)
    }

    fn text(&mut self) -> Option<(u32, &'a [u8])> {
        let line = self.number()?;
        let len = self.number()? as usize;
        let (text, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some((line, text))
    }
}

fn keep(robots: &mut Robots, line: u32, text: &str) -> Option<Entry> {
    (robots.text.len() + text.len() <= TEXT_BYTES_MAX).then(|| robots.keep(line, text))
}
