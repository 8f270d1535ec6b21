//! Makes [`Rules`] of the groups that are for an agent: each pattern once, by kind, in the order in which it is looked for.

use std::time::Duration;

use super::pattern::kind;
use super::rules::{Exact, Piece, Prefix, Record, Rules, Sieve, Wildcard, first_word};
use super::{Group, Robots, agent};

pub(super) fn compile(robots: &Robots, names: &[&str]) -> Rules {
    let mut rules = Rules {
        answer: robots.answer,
        delay: None,
        addressed: false,
        text: Vec::new(),
        records: Vec::new(),
        prefixes: Vec::new(),
        exacts: Vec::new(),
        wildcards: Vec::new(),
        sieves: Vec::new(),
        segments: Vec::new(),
    };
    let tokens = names.iter().map(|name| agent::token(name.as_bytes())).filter(|token| !token.is_empty());
    for token in tokens.chain(["*"]) {
        for group in &robots.groups {
            take_group(robots, group, token, &mut rules);
        }
        if rules.addressed {
            break;
        }
    }
    Sorting { rules, shapes: Vec::new() }.sort()
}

fn take_group(robots: &Robots, group: &Group, token: &str, rules: &mut Rules) {
    let named = |agent| robots.text(agent).eq_ignore_ascii_case(token);
    let Some(place) = group.agents.iter().position(|agent| named(*agent)) else { return };
    rules.addressed = true;
    for rule in &group.rules {
        let pattern = robots.text(rule.pattern);
        let piece = append(&mut rules.text, pattern.as_bytes());
        rules.records.push(Record { line: rule.pattern.line, allow: rule.allow, pattern: piece });
    }
    let delays = group.delays.iter().filter(|delay| place < delay.agents as usize);
    if let Some(delay) = delays.map(|delay| delay.ms).max() {
        rules.delay = rules.delay.max(Some(Duration::from_millis(delay.into())));
    }
}

fn append(text: &mut Vec<u8>, more: &[u8]) -> Piece {
    // No file is long enough for more text than can be counted.
    let position = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    let piece = Piece { start: position(text.len()), len: position(more.len()) };
    text.extend_from_slice(more);
    piece
}

struct Sorting {
    rules: Rules,
    /// The wildcard patterns without the stars that make no difference, each with its record.
    shapes: Vec<(Piece, u32)>,
}

impl Sorting {
    fn sort(mut self) -> Rules {
        for record in 0..self.rules.records.len() {
            self.file(u32::try_from(record).unwrap_or(u32::MAX));
        }
        self.sort_prefixes();
        self.sort_exacts();
        self.sort_wildcards();
        self.rules
    }

    /// Puts a record where it belongs.
    fn file(&mut self, record: u32) {
        let Piece { start, len } = self.rules.record(record).pattern;
        let pattern = self.rules.piece(Piece { start, len });
        let (open, anchored) = match pattern {
            [open @ .., b'$'] => (open, true),
            open => (open, false),
        };
        let bare = open.len() - open.iter().rev().take_while(|byte| **byte == b'*').count();
        // An end behind a star says nothing.
        let anchored = anchored && bare == open.len();
        let text = Piece { start, len: u32::try_from(bare).unwrap_or(len) };
        if !open[..bare].contains(&b'*') {
            match anchored {
                true => self.rules.exacts.push(Exact { text, record }),
                false => self.rules.prefixes.push(Prefix { text, shorter: None, record }),
            }
            return;
        }
        let mut shape = open[..bare].to_vec();
        shape.dedup_by(|one, other| *one == b'*' && *other == b'*');
        if anchored {
            shape.push(b'$');
        }
        let shape = append(&mut self.rules.text, &shape);
        self.shapes.push((shape, record));
    }

    fn sort_prefixes(&mut self) {
        let mut prefixes = std::mem::take(&mut self.rules.prefixes);
        let rules = &self.rules;
        prefixes.sort_by(|one, other| {
            let text = rules.piece(one.text).cmp(rules.piece(other.text));
            text.then_with(|| rules.precedence(one.record, other.record))
        });
        prefixes.dedup_by(|later, first| rules.piece(later.text) == rules.piece(first.text));
        // Those with which the one at hand begins, the shortest first.
        let mut open: Vec<usize> = Vec::new();
        for place in 0..prefixes.len() {
            let text = rules.piece(prefixes[place].text);
            while open.last().is_some_and(|last| !text.starts_with(rules.piece(prefixes[*last].text))) {
                open.pop();
            }
            if let Some(last) = open.last() {
                let shorter = prefixes[*last].record;
                let prefix = &mut prefixes[place];
                prefix.shorter = u32::try_from(*last).ok();
                if rules.record(shorter).weight() > rules.record(prefix.record).weight() {
                    prefix.record = shorter;
                }
            }
            open.push(place);
        }
        self.rules.prefixes = prefixes;
    }

    fn sort_exacts(&mut self) {
        let mut exacts = std::mem::take(&mut self.rules.exacts);
        let rules = &self.rules;
        exacts.sort_by(|one, other| {
            let text = rules.piece(one.text).cmp(rules.piece(other.text));
            text.then_with(|| rules.precedence(one.record, other.record))
        });
        exacts.dedup_by(|later, first| rules.piece(later.text) == rules.piece(first.text));
        self.rules.exacts = exacts;
    }

    fn sort_wildcards(&mut self) {
        let mut shapes = std::mem::take(&mut self.shapes);
        let rules = &self.rules;
        shapes.sort_by(|one, other| {
            let shape = rules.piece(one.0).cmp(rules.piece(other.0));
            shape.then_with(|| rules.precedence(one.1, other.1))
        });
        shapes.dedup_by(|later, first| rules.piece(later.0) == rules.piece(first.0));
        shapes.sort_by(|one, other| rules.precedence(one.1, other.1));
        for (shape, record) in shapes {
            self.add_wildcard(shape, record);
        }
    }

    fn add_wildcard(&mut self, shape: Piece, record: u32) {
        let rules = &mut self.rules;
        let segments_start = u32::try_from(rules.segments.len()).unwrap_or(u32::MAX);
        let text = &rules.text[shape.start as usize..][..shape.len as usize];
        let (text, anchored) = match text {
            [text @ .., b'$'] => (text, true),
            text => (text, false),
        };
        let (mut kinds, mut bytes_min) = (0, 0);
        let mut start = shape.start;
        for part in text.split(|byte| *byte == b'*') {
            let len = u32::try_from(part.len()).unwrap_or(u32::MAX);
            kinds |= part.iter().fold(0, |set, byte| set | kind(*byte));
            bytes_min += len;
            rules.segments.push(Piece { start, len });
            start += len + 1;
        }
        let tail = if anchored { rules.segments.pop().unwrap_or_default() } else { Piece::default() };
        let head = rules.segments[segments_start as usize];
        // Heads lie with the segments, but are none.
        let segments_end = u32::try_from(rules.segments.len()).unwrap_or(u32::MAX);
        let segments_start = segments_start + 1;
        rules.wildcards.push(Wildcard { record, head, tail, segments_start, segments_end, bytes_min });
        let word = first_word(rules.piece(head));
        let mask = match head.len {
            0 => 0,
            1..8 => !0 << (64 - 8 * head.len),
            _ => !0,
        };
        rules.sieves.push(Sieve { kinds, head: word, mask });
    }
}

impl Rules {
    /// The heavier rule first, and of those that weigh the same the one that was written first.
    fn precedence(&self, one: u32, other: u32) -> std::cmp::Ordering {
        let (one, other) = (self.record(one), self.record(other));
        other.weight().cmp(&one.weight()).then(one.line.cmp(&other.line))
    }
}
