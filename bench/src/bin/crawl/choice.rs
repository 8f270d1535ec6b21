//! What was chosen on the command line.

use std::path::PathBuf;

pub const USAGE: &str = "crawl [--ours PATH] [--only ours,scrapy,scrapy-set,colly,spider] [--pages N] [--hosts N] [--concurrency N] [--per-host N] \
     [--delay SECONDS] [--seconds N] [--robots on|off] [--samples] [-- FLAG…]";

pub struct Choice {
    /// A release binary of trapline. Without one, only the peers are measured.
    pub ours: Option<PathBuf>,
    /// Further flags for it.
    pub ours_flags: Vec<String>,
    pub only: Vec<String>,
    /// In all. Defaults to 100,000.
    pub pages: u64,
    /// Defaults to 1,000.
    pub hosts: u32,
    /// Requests at once. Defaults to 200.
    pub concurrency: usize,
    /// Requests at once to one host. Defaults to 4, and to 1 with a delay.
    pub per_host: usize,
    /// Between two requests to a host. Defaults to 0.
    pub delay_s: f64,
    /// With a delay: how long it is watched. Defaults to 40.
    pub seconds: u64,
    /// Whether robots.txt is asked for and obeyed. Defaults to true.
    pub robots: bool,
    /// Prints what is resident as the crawl goes on.
    pub samples: bool,
}

impl Choice {
    pub fn read(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut choice = Self {
            ours: None,
            ours_flags: Vec::new(),
            only: Vec::new(),
            pages: 100_000,
            hosts: 1_000,
            concurrency: 200,
            per_host: 0,
            delay_s: 0.0,
            seconds: 40,
            robots: true,
            samples: false,
        };
        let mut words = words;
        while let Some(word) = words.next() {
            if word == "--samples" {
                choice.samples = true;
                continue;
            }
            if word == "--" {
                choice.ours_flags = words.collect();
                break;
            }
            let value = words.next().ok_or_else(|| format!("`{word}` lacks a value; {USAGE}"))?;
            let wrong = || format!("`{word} {value}` makes no sense; {USAGE}");
            match word.as_str() {
                "--ours" => choice.ours = Some(PathBuf::from(&value)),
                "--only" => choice.only = value.split(',').map(str::to_owned).collect(),
                "--pages" => choice.pages = value.parse().map_err(|_| wrong())?,
                "--hosts" => choice.hosts = value.parse().map_err(|_| wrong())?,
                "--concurrency" => choice.concurrency = value.parse().map_err(|_| wrong())?,
                "--per-host" => choice.per_host = value.parse().map_err(|_| wrong())?,
                "--delay" => choice.delay_s = value.parse().map_err(|_| wrong())?,
                "--seconds" => choice.seconds = value.parse().map_err(|_| wrong())?,
                "--robots" if value == "on" || value == "off" => choice.robots = value == "on",
                _ => return Err(wrong()),
            }
        }
        if choice.per_host == 0 {
            choice.per_host = if choice.delay_s > 0.0 { 1 } else { 4 };
        }
        if choice.only.is_empty() {
            let ours = choice.ours.as_ref().map(|_| "ours");
            choice.only = ours
                .into_iter()
                .chain(["scrapy", "scrapy-set", "colly", "spider"])
                .map(str::to_owned)
                .collect();
        }
        Ok(choice)
    }
}
