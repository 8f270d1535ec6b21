//! Writing trace scripts, the way [`parse`](super::parse()) reads them: for traces that programs make, such as the model test's finds.

use std::fmt::{self, Display, Formatter};

use trapline_core::{NO_BUDGET, Statement, Terms, format_duration};

use super::meaning::write_hex;
use super::{Admit, Claim, CrawlVerb, Script, Settle, SettleAs, Steering, Step, Verb};

impl Display for Script {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.settings {
            writeln!(f, "set {name} {value}")?;
        }
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.at, self.verb)?;
        match self.expected.as_deref() {
            None => Ok(()),
            Some("") => f.write_str(" ->"),
            Some(expected) => write!(f, " -> {expected}"),
        }
    }
}

impl Display for Verb {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admit(admit) => admit.fmt(f),
            Self::Claim(claim) => claim.fmt(f),
            Self::Settle(settle) => settle.fmt(f),
            Self::Steer { key, change } => write!(f, "steer {}{change}", word(key)),
            Self::Crawl(crawl) => crawl.fmt(f),
            Self::DeadReplay(url) => write!(f, "dead replay {}", word(url)),
            Self::Forget(url) => write!(f, "forget {}", word(url)),
            Self::Url(url) => write!(f, "url {}", word(url)),
            Self::Page(url) => write!(f, "page {}", word(url)),
            Self::Queue(key) => write!(f, "queue {}", word(key)),
            Self::Restart => f.write_str("restart"),
            Self::Crash => f.write_str("crash"),
        }
    }
}

fn option(f: &mut Formatter<'_>, name: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name}={}", word(&value.to_string())))
}

/// Text as one word: in quotes if it would not be read as one.
fn word(text: &str) -> String {
    let plain = !text.is_empty() && !text.starts_with(['"', '#']) && !text.contains(char::is_whitespace);
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
}

impl Display for Admit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "admit {}", word(&self.url))?;
        option(f, "class", self.class)?;
        option(f, "cost", self.cost)?;
        option(f, "priority", self.priority)?;
        option(f, "score", self.score)?;
        option(f, "depth", (self.depth > 0).then_some(self.depth))?;
        option(f, "via", self.via.as_ref())?;
        option(f, "key", self.key.as_ref())?;
        write_terms(f, &self.terms)?;
        if self.improve {
            f.write_str(" improve")?;
        }
        if self.dont_filter {
            f.write_str(" dont_filter")?;
        }
        match self.statement {
            None => Ok(()),
            Some(Statement::Done) => f.write_str(" state=done"),
            Some(Statement::Next(time)) => write!(f, " next={time}"),
        }
    }
}

fn write_terms(f: &mut Formatter<'_>, terms: &Terms) -> fmt::Result {
    option(f, "precedence", terms.precedence)?;
    let budget = |budget: u64| if budget == NO_BUDGET { "none".to_owned() } else { budget.to_string() };
    option(f, "queue_budget", terms.queue_budget.map(budget))?;
    option(f, "balance_replenish", terms.balance_replenish)?;
    option(f, "delay", terms.delay.map(format_duration))?;
    option(f, "concurrency", terms.concurrency)?;
    option(f, "group", terms.group.as_deref().map(|group| if group.is_empty() { "none" } else { group }))
}

impl Display for Claim {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "claim {}", self.urls)?;
        option(f, "per_queue", self.per_queue)?;
        option(f, "queues", self.queues)?;
        option(f, "min_queues", self.min_queues)?;
        option(f, "keys", self.keys.as_ref().map(|keys| keys.join(",")))?;
        option(f, "except", (!self.except.is_empty()).then(|| self.except.join(",")))?;
        option(f, "lease", self.lease.map(format_duration))
    }
}

impl Display for Settle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "settle {}", word(&self.url))?;
        match &self.outcome {
            SettleAs::Done { visit, next } => {
                f.write_str(" done")?;
                option(f, "next", next.as_ref())?;
                option(f, "status", (visit.status > 0).then_some(visit.status))?;
                option(f, "bytes", (visit.bytes > 0).then_some(visit.bytes))?;
                option(f, "digest", visit.digest.as_deref().map(write_hex))?;
                option(f, "simhash", visit.simhash)?;
                option(f, "etag", visit.etag.as_ref())?;
                option(f, "last_modified", visit.last_modified.as_ref())?;
            }
            SettleAs::Retry { at } => write!(f, " retry at={at}")?,
            SettleAs::Release => f.write_str(" release")?,
            SettleAs::Dead { reason } => write!(f, " dead reason={}", word(reason))?,
            SettleAs::Disregard => f.write_str(" disregard")?,
            SettleAs::Renew { lease } => write!(f, " renew for={}", format_duration(*lease))?,
        }
        option(f, "delay", self.delay.map(format_duration))?;
        option(f, "links", (!self.links.is_empty()).then(|| self.links.join(",")))?;
        option(f, "lease", self.lease)
    }
}

impl Display for Steering {
    /// Begins with the space that separates it from the key.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terms(terms) => write_terms(f, terms),
            Self::Block(until) => write!(f, " block={until}"),
            Self::Unblock => f.write_str(" unblock"),
            Self::Retire => f.write_str(" retire"),
            Self::Reinstate => f.write_str(" reinstate"),
            Self::Purge => f.write_str(" purge"),
            Self::Delete => f.write_str(" delete"),
        }
    }
}

impl Display for CrawlVerb {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("crawl")?;
        match self {
            Self::Pause => f.write_str(" pause"),
            Self::Resume => f.write_str(" resume"),
            Self::Finish => f.write_str(" finish"),
            Self::Set(settings) => settings.iter().try_for_each(|(name, value)| write!(f, " {name}={value}")),
            Self::Show => Ok(()),
        }
    }
}
