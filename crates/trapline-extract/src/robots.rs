//! robots.txt, as RFC 9309 says: which paths of a host an agent may fetch, and what else the file tells.
//!
//! [`Robots`] is a file that was read: its groups, rules, delays and sitemaps, small enough to be kept. [`Rules`] is what it
//! says to one agent, made ready for many questions. Not here: fetching it, caching it, and what a status code means; for
//! those who know, there are [`Robots::allow_all`] and [`Robots::disallow_all`].

mod agent;
mod bytes;
mod compile;
mod fault;
mod index;
mod lines;
mod parse;
mod pattern;
mod rules;
mod search;

use std::time::Duration;

pub use bytes::BytesError;
pub use fault::{RobotsFault, RobotsFaultKind};
pub use rules::{Because, Decision, RuleLine, Rules};

/// How much of a file is read, as RFC 9309 asks for at least. What lies behind it does not count.
pub const ROBOTS_BYTES_MAX: usize = 500 * 1024;

/// The longest delay between two fetches that a file can ask for.
pub const CRAWL_DELAY_MAX: Duration = Duration::from_hours(24);

/// A robots.txt that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Robots {
    answer: Answer,
    /// Everything that is text, one after the other. What is kept of a line points into it.
    text: String,
    groups: Vec<Group>,
    sitemaps: Vec<Entry>,
    truncated: bool,
    faults: Vec<RobotsFault>,
    faults_left_off: u64,
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    /// The rules of a file.
    Rules,
    /// There is no file, or none that is for us to read: everything is allowed.
    Allow,
    /// The file cannot be had: nothing is allowed.
    Disallow,
}

/// A line's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    line: u32,
    start: u32,
    len: u32,
}

/// Lines that belong together: agents, and the rules for them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Group {
    agents: Vec<Entry>,
    rules: Vec<RuleEntry>,
    delays: Vec<Delay>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RuleEntry {
    allow: bool,
    pattern: Entry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Delay {
    line: u32,
    /// It is for so many of the group's agents: those who were named before it.
    agents: u32,
    ms: u32,
}

impl Robots {
    /// Reads a file. Whatever the bytes are, something comes out: see [`faults`](Self::faults) for what was odd about them.
    ///
    /// ```
    /// use trapline_extract::Robots;
    ///
    /// let robots = Robots::parse(b"User-agent: *\nDisallow: /private/\nAllow: /private/open\nCrawl-delay: 2");
    /// let rules = robots.for_agent("trapline");
    /// assert!(rules.check_path("/").allowed);
    /// assert!(!rules.check_path("/private/x").allowed);
    /// assert!(rules.check_path("/private/open/x").allowed);
    /// assert_eq!(rules.check_path("/private/x").line.unwrap().number, 2);
    /// assert_eq!(rules.crawl_delay().unwrap().as_secs(), 2);
    /// ```
    pub fn parse(bytes: &[u8]) -> Self {
        parse::parse(bytes)
    }

    /// No rules: what a host without robots.txt says (a status of 4xx).
    pub fn allow_all() -> Self {
        Self::empty(Answer::Allow)
    }

    /// Nothing may be fetched: what a host says whose robots.txt cannot be had (a status of 5xx, or no answer).
    pub fn disallow_all() -> Self {
        Self::empty(Answer::Disallow)
    }

    fn empty(answer: Answer) -> Self {
        Self {
            answer,
            text: String::new(),
            groups: Vec::new(),
            sitemaps: Vec::new(),
            truncated: false,
            faults: Vec::new(),
            faults_left_off: 0,
        }
    }

    /// What the file says to an agent.
    ///
    /// The name is cut to its product token, so that `Trapline/1.2 (+https://…)` asks as `Trapline`. All groups that name this
    /// token count, in any case of letters. If there are none, all groups for `*` do; if there are none either, everything
    /// is allowed.
    pub fn for_agent(&self, name: &str) -> Rules {
        compile::compile(self, &[name])
    }

    /// What the file says to an agent that goes by several names, the most specific one first: the first that a group
    /// names is the one that counts.
    pub fn for_agents(&self, names: &[&str]) -> Rules {
        compile::compile(self, names)
    }

    /// The file's groups, in its order, as they stand: agents that have several are not merged yet.
    pub fn groups(&self) -> impl Iterator<Item = RobotsGroup<'_>> {
        self.groups.iter().map(|group| RobotsGroup { robots: self, group })
    }

    /// The addresses of sitemaps, each with its line. They are as they were written: perhaps relative, perhaps of another
    /// host, perhaps nonsense.
    pub fn sitemaps(&self) -> impl Iterator<Item = (u32, &str)> {
        self.sitemaps.iter().map(|entry| (entry.line, self.text(*entry)))
    }

    /// Whether the file was longer than is read.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// What was odd about the file. At most a thousand things are listed. They are no part of the byte form.
    pub fn faults(&self) -> &[RobotsFault] {
        &self.faults
    }

    /// How many more faults there were.
    pub fn faults_left_off(&self) -> u64 {
        self.faults_left_off
    }

    /// A compact form to be kept, made for [`from_bytes`](Self::from_bytes). Its first byte is a version.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes::write(self)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. Everything else is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BytesError> {
        bytes::read(bytes)
    }

    fn text(&self, entry: Entry) -> &str {
        // All entries were made with the text they point into.
        self.text.get(entry.start as usize..(entry.start + entry.len) as usize).unwrap_or_default()
    }
}

/// A group of a file.
#[derive(Clone, Copy, Debug)]
pub struct RobotsGroup<'a> {
    robots: &'a Robots,
    group: &'a Group,
}

impl<'a> RobotsGroup<'a> {
    /// Whom it is for: product tokens as they were written, or `*`, each with its line.
    pub fn agents(&self) -> impl Iterator<Item = (u32, &'a str)> + use<'a> {
        let robots = self.robots;
        self.group.agents.iter().map(move |entry| (entry.line, robots.text(*entry)))
    }

    /// Its rules.
    pub fn rules(&self) -> impl Iterator<Item = RuleLine<'a>> + use<'a> {
        let robots = self.robots;
        self.group.rules.iter().map(move |rule| RuleLine {
            number: rule.pattern.line,
            allows: rule.allow,
            pattern: robots.text(rule.pattern),
        })
    }

    /// Its delays, each with its line and the number of agents it is for: those who were named before it.
    pub fn delays(&self) -> impl Iterator<Item = (u32, usize, Duration)> + use<'a> {
        let delays = self.group.delays.iter();
        delays.map(|delay| (delay.line, delay.agents as usize, Duration::from_millis(delay.ms.into())))
    }
}
