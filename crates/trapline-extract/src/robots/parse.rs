//! From the bytes of a robots.txt to its groups.
//!
//! A group is one or more `User-agent` lines and the rules after them. Only a rule ends the list of agents: RFC 9309 says that
//! other lines, known or not, must not split a group.

use encoding_rs::{UTF_16BE, UTF_16LE};

use super::fault::FAULTS_MAX;
use super::lines::{self, Name, Said};
use super::{
    Answer, CRAWL_DELAY_MAX, Delay, Entry, Group, ROBOTS_BYTES_MAX, Robots, RobotsFault, RobotsFaultKind,
    RuleEntry, agent, pattern,
};

pub(super) fn parse(bytes: &[u8]) -> Robots {
    let mut robots = Robots::empty(Answer::Rules);
    let (text, cut) = match bytes.get(..ROBOTS_BYTES_MAX) {
        Some(kept) => (kept, bytes.len() > kept.len()),
        None => (bytes, false),
    };
    robots.truncated = cut;
    let wide = match text {
        [0xff, 0xfe, ..] => Some(UTF_16LE),
        [0xfe, 0xff, ..] => Some(UTF_16BE),
        _ => None,
    };
    let decoded = wide.map(|encoding| encoding.decode_with_bom_removal(text).0);
    if decoded.is_some() {
        robots.fault(1, RobotsFaultKind::Utf16);
    }
    let text = decoded.as_deref().map_or(text, str::as_bytes);
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    // Whether the last line is a whole one, only the byte behind it could tell.
    let ended = matches!(text.last(), Some(b'\n' | b'\r'));

    let mut reading = Reading { robots, open: false };
    let mut all = lines::lines(text).peekable();
    while let Some(line) = all.next() {
        if cut && !ended && all.peek().is_none() {
            reading.robots.fault(line.number, RobotsFaultKind::Cut);
            break;
        }
        reading.line(line.number, line.bytes);
        if cut && all.peek().is_none() {
            reading.robots.fault(line.number + 1, RobotsFaultKind::Cut);
        }
    }
    let mut robots = reading.robots;
    robots.text.shrink_to_fit();
    robots.groups.shrink_to_fit();
    robots
}

struct Reading {
    robots: Robots,
    /// Whether the last group still takes agents.
    open: bool,
}

impl Reading {
    fn line(&mut self, line: u32, bytes: &[u8]) {
        match lines::read(bytes) {
            Said::Nothing => {}
            Said::Nonsense => self.robots.fault(line, RobotsFaultKind::NotALine),
            Said::Pair { name, misspelled, bare, value } => {
                if misspelled {
                    self.robots.fault(line, RobotsFaultKind::Misspelled);
                }
                if bare {
                    self.robots.fault(line, RobotsFaultKind::MissingColon);
                }
                match name {
                    Name::UserAgent => self.agent(line, value),
                    Name::Allow => self.rule(line, true, value),
                    Name::Disallow => self.rule(line, false, value),
                    Name::CrawlDelay => self.delay(line, value),
                    Name::Sitemap => self.sitemap(line, value),
                    Name::Other => {}
                }
            }
        }
    }

    fn agent(&mut self, line: u32, value: &[u8]) {
        if !self.open {
            self.robots.groups.push(Group::default());
            self.open = true;
        }
        let token = agent::token(value);
        if token.is_empty() {
            // It names nobody, but it is the beginning of a group: what follows is not for those before it.
            return self.robots.fault(line, RobotsFaultKind::NoAgent);
        }
        let entry = self.robots.keep(line, token);
        if let Some(group) = self.robots.groups.last_mut() {
            group.agents.push(entry);
        }
    }

    fn rule(&mut self, line: u32, allow: bool, value: &[u8]) {
        self.open = false;
        if self.robots.groups.is_empty() {
            return self.robots.fault(line, RobotsFaultKind::OutsideGroup);
        }
        // An empty path is no rule: `Disallow:` means that nothing is disallowed.
        let Some(first) = value.first() else { return };
        if !matches!(first, b'/' | b'*') {
            return self.robots.fault(line, RobotsFaultKind::NoPath);
        }
        let mut spelled = Vec::with_capacity(value.len());
        pattern::spell_pattern(value, &mut spelled);
        // The one spelling is ASCII.
        let spelled = String::from_utf8(spelled).unwrap_or_default();
        let pattern = self.robots.keep(line, &spelled);
        if let Some(group) = self.robots.groups.last_mut() {
            group.rules.push(RuleEntry { allow, pattern });
        }
    }

    fn delay(&mut self, line: u32, value: &[u8]) {
        let Some(ms) = read_delay(value) else {
            return self.robots.fault(line, RobotsFaultKind::NoDelay);
        };
        let longest = u32::try_from(CRAWL_DELAY_MAX.as_millis()).unwrap_or(u32::MAX);
        if ms > f64::from(longest) {
            self.robots.fault(line, RobotsFaultKind::LongDelay);
        }
        let Some(group) = self.robots.groups.last_mut() else {
            return self.robots.fault(line, RobotsFaultKind::OutsideGroup);
        };
        let agents = u32::try_from(group.agents.len()).unwrap_or(u32::MAX);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was brought into range")]
        let ms = ms.ceil().min(longest.into()) as u32;
        group.delays.push(Delay { line, agents, ms });
    }

    fn sitemap(&mut self, line: u32, value: &[u8]) {
        if value.is_empty() {
            return self.robots.fault(line, RobotsFaultKind::NoSitemap);
        }
        let entry = self.robots.keep(line, &String::from_utf8_lossy(value));
        self.robots.sitemaps.push(entry);
    }
}

/// Milliseconds, if it is a number of seconds that makes sense. Words behind it are forgiven.
fn read_delay(value: &[u8]) -> Option<f64> {
    let word = value.split(|byte| byte.is_ascii_whitespace()).next()?;
    let seconds: f64 = std::str::from_utf8(word).ok()?.parse().ok()?;
    (seconds.is_finite() && seconds >= 0.0).then_some(seconds * 1000.0)
}

impl Robots {
    fn fault(&mut self, line: u32, kind: RobotsFaultKind) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(RobotsFault { line, kind });
        } else {
            self.faults_left_off += 1;
        }
    }

    /// Keeps a text. No file is long enough for more text than can be counted.
    pub(super) fn keep(&mut self, line: u32, text: &str) -> Entry {
        let position = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let entry = Entry { line, start: position(self.text.len()), len: position(text.len()) };
        self.text.push_str(text);
        entry
    }
}
